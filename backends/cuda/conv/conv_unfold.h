/* conv_unfold.h -- the windows of a convolution as the rows of a matrix, and back (conv_unfold.cu).
 *
 *   cols[n, g, p, k] = x[n, g C + c, p stride + r dilation - before]    k = (c, r), or (r, c) where channels come last
 *
 * p runs over the windows of a chunk, r over the taps; a tap outside x is 0. Dims are D, H, W; missing ones are 1. */
#ifndef QN_CUDA_CONV_UNFOLD_H
#define QN_CUDA_CONV_UNFOLD_H
#include "cuda_backend.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_unfold {
  int32_t in[3], out[3], size[3], step[3], dilation[3], before[3];
  int32_t images, groups, channels;       /* channels of a group */
  int32_t last;                           /* k = (r, c) */
  int32_t k, bytes;                       /* elements of a row; bytes of an element */
  int64_t x_stride[5];                    /* N, C, D, H, W */
  int64_t n_step, g_step, p_step, k_step; /* of cols: one of p_step and k_step is 1 */
  uint32_t align;                         /* of x, in bytes */
} cuda_unfold;

/* Elements that gather and scatter move at once: 1, or so many that they make 4 to 16 bytes. */
int cuda_unfold_run(const cuda_unfold *u);
/* Writes cols. Where k_step is 1, p_step is a multiple of 16 bytes, and what follows k in a row is undefined. */
qn_status cuda_unfold_gather(const cuda_unfold *u, const void *x, void *cols, void *stream);
/* Writes x from cols, where no two windows share an element (k_step 1). What no window holds is left alone. */
qn_status cuda_unfold_scatter(const cuda_unfold *u, void *x, const void *cols, void *stream);
/* x = the sum over the taps that hold an element, in a fixed order; cols in f32, f64 or i32. Writes all of x. */
qn_status cuda_unfold_fold(const cuda_unfold *u, void *x, uint32_t dtype, const void *cols, void *stream);
/* dw[f, c, r] = sum over parts of from[part][f][k]; from in f32, f64 or i32, `filters` over all groups; w_stride: K, C, D, H, W. */
qn_status cuda_unfold_join(const cuda_unfold *u, void *dw, uint32_t dtype, const int64_t w_stride[5], int64_t filters, const void *from,
                           int64_t parts, void *stream);
#ifdef __cplusplus
}
#endif
#endif
