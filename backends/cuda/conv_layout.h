/* conv_layout.h -- what convolutions want done before and after their products (conv_layout.cu). */
#ifndef QN_CUDA_CONV_LAYOUT_H
#define QN_CUDA_CONV_LAYOUT_H
#include <quern/backend.h>
#ifdef __cplusplus
extern "C" {
#endif
/* to [N][(P-1) step_h + 1][(Q-1) step_w + 1][C] = from [N][P][Q][C] with zeros between; 16-bit, C a multiple of 8. */
qn_status cuda_conv_spread(void *to, const void *from, const int64_t dim[4], const int64_t stride[3], int step_h, int step_w, void *stream);
/* to[i] = sum over parts of from[part][i], always in the same order. */
qn_status cuda_conv_join(void *to, uint32_t dtype, const float *from, int parts, int64_t n, void *stream);
#ifdef __cplusplus
}
#endif
#endif
