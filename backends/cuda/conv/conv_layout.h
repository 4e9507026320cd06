/* conv_layout.h -- passes beside a convolution's product (conv_layout.cu). */
#ifndef QN_CUDA_CONV_LAYOUT_H
#define QN_CUDA_CONV_LAYOUT_H
#include "cuda_backend.h"
#include "kit/divisor.h"
#ifdef __cplusplus
extern "C" {
#endif
/* to[i] = sum over parts of from[part][i], in a fixed order. */
qn_status cuda_conv_join(void *to, uint32_t dtype, const float *from, int parts, int64_t n, void *stream);

/* A tensor [N, C, spatial] of any strides beside its packed copy, channels last: rows (n, pixel) of channels. C are groups of
 * `width` channels, and N groups of `filters`, that the copy may pad with zeros. */
typedef struct cuda_relayout {
  int64_t  n_stride, c_stride, stride[3]; /* of the tensor; spatial: W, H, D */
  uint32_t rows, channels;                /* of the copy */
  uint32_t width, filters;                /* of a group of the tensor */
  cuda_divisor by_pixels, by_w, by_h, by_width, by_filters;              /* the last two: of a group of the copy */
  int32_t  bytes, pairs;                  /* of an element, 2 or 4; pairs: two elements of 2 bytes can be moved at once */
} cuda_relayout;

/* Describes v [N, C, spatial] or [C], whose N has n_groups groups, each to become `filters`, and C c_groups, each to become `width`.
 * False: elements not of 2 or 4 bytes, or 2^31 rows or more. */
bool cuda_relayout_of(cuda_relayout *l, const qn_value *v, int64_t n_groups, int64_t filters, int64_t c_groups, int64_t width);
/* Tensor to copy; back: copy to tensor. */
qn_status cuda_relayout_run(const cuda_relayout *l, void *tensor, void *copy, bool back, void *stream);
#ifdef __cplusplus
}
#endif
#endif
