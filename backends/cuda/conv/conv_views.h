/* conv_views.h -- index geometry of a convolution's tensors for kernels. */
#ifndef QN_CUDA_CONV_VIEWS_H
#define QN_CUDA_CONV_VIEWS_H
#include <stdint.h>

/* x or dy; strides in elements. Of a volume each plane is an image, and every `planes` of these lie volume_stride apart. */
typedef struct cuda_conv_pixels {
  int64_t n_stride, c_stride, h_stride, w_stride;
  int32_t n, c, h, w;
  int64_t volume_stride;
  int32_t planes;                         /* 0: no volume */
} cuda_conv_pixels;

/* Filters as a product's operand: rows are outputs, columns are summed over. */
typedef struct cuda_conv_filters {
  int64_t row_stride, col_stride, d_stride, r_stride, s_stride;
  int32_t rows, cols, taps, taps_h, taps_w;
  int32_t unfolded, reversed;             /* unfolded: a column is a (tap, channel); reversed: taps from the last to the first */
} cuda_conv_filters;

#ifdef __CUDACC__
static __device__ __forceinline__ int64_t cuda_conv_image(const cuda_conv_pixels &p, int n)
{
  const int volume = p.planes ? n / p.planes : 0;
  return volume * p.volume_stride + (n - volume * p.planes) * p.n_stride;
}
/* Where a tap lies, from a row's and column's first. */
static __device__ __forceinline__ int64_t cuda_conv_tap(const cuda_conv_filters &f, int tap)
{
  const int line = tap / f.taps_w, d = line / f.taps_h;
  return d * f.d_stride + (line - d * f.taps_h) * f.r_stride + (tap - line * f.taps_w) * f.s_stride;
}
#endif
#endif
