/* conv_layout.h -- passes after a convolution's product (conv_layout.cu). */
#ifndef QN_CUDA_CONV_LAYOUT_H
#define QN_CUDA_CONV_LAYOUT_H
#include <quern/backend.h>
#ifdef __cplusplus
extern "C" {
#endif
/* to[i] = sum over parts of from[part][i], in a fixed order. */
qn_status cuda_conv_join(void *to, uint32_t dtype, const float *from, int parts, int64_t n, void *stream);
#ifdef __cplusplus
}
#endif
#endif
