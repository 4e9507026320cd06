/* conv_layout.h -- what convolutions want done after their products (conv_layout.cu). */
#ifndef QN_CUDA_CONV_LAYOUT_H
#define QN_CUDA_CONV_LAYOUT_H
#include <quern/backend.h>
#ifdef __cplusplus
extern "C" {
#endif
/* to[i] = sum over parts of from[part][i], always in the same order. */
qn_status cuda_conv_join(void *to, uint32_t dtype, const float *from, int parts, int64_t n, void *stream);
#ifdef __cplusplus
}
#endif
#endif
