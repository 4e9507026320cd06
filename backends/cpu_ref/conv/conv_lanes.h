/* conv_lanes.h -- for the convolution engines: parts of vectors, and images laid out channels last. */
#ifndef CPU_CONV_LANES_H
#define CPU_CONV_LANES_H
#include "kit/simd.h"
#include "gemm/gemm_core.h"

/* The first n elements, n >= 1, then zeros: what lies behind them is not read. */
CPU_INLINE v_f32 load_some(const float *p, int64_t n)
{
  if (n >= CPU_LANES) return v_load(p);
#if defined __AVX512F__
  return (v_f32)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif defined __AVX2__
  return (v_f32)_mm256_maskload_ps(p, (__m256i)((v_i32){0, 1, 2, 3, 4, 5, 6, 7} < (int32_t)n));
#else
  v_f32 v = {p[0]};
  for (int l = 1; l < CPU_LANES - 1; l++)
    if (l < n) v[l] = p[l];
  return v;
#endif
}

#define LAY_PIXELS 64                     /* laid out at a time */

/* Whether cpu_lay_channels can lay out that f32 tensor. */
static inline bool cpu_runs_along_pixels(const qn_value *v)
{
  return v->stride[v->rank - 1] == 1 || v->dim[v->rank - 1] == 1;
}

/* The strides of the same tensor, packed with channels last; returns its elements. */
static inline int64_t cpu_channels_last(qn_value *v)
{
  int64_t elements = v->dim[1];
  v->stride[1] = 1;
  for (int32_t d = v->rank - 1; d >= 2; d--) {
    v->stride[d] = elements;
    elements *= v->dim[d];
  }
  v->stride[0] = elements;
  return elements * v->dim[0];
}

/* Copies a tensor whose rows run along pixels to `packed`, with channels last, or back. */
static inline void cpu_lay_channels(const qn_value *v, float *planes, const cpu_gemm_isa *isa, int threads, float *packed, bool back)
{
  const int64_t channels = v->dim[1];
  int32_t inner = v->rank - 1;
  int64_t width = v->dim[inner], lines = v->dim[0];
  while (inner > 2 && v->stride[inner - 1] == width) width *= v->dim[--inner];       /* several dims are one line */
  for (int32_t d = 2; d < inner; d++) lines *= v->dim[d];
  const int64_t pieces = qn_ceil_div(width, LAY_PIXELS);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t item = 0; item < lines * pieces; item++) {
    const int64_t line = item / pieces, first = item % pieces * LAY_PIXELS, n = qn_min_i64(LAY_PIXELS, width - first);
    int64_t rest = line, offset = first;
    for (int32_t d = inner - 1; d >= 2; d--) {
      offset += rest % v->dim[d] * v->stride[d];
      rest /= v->dim[d];
    }
    float *const plane = planes + offset + rest * v->stride[0], *const pixel = packed + (line * width + first) * channels;
    if (back) isa->turn(pixel, channels, n, channels, plane, v->stride[1]);
    else isa->turn(plane, v->stride[1], channels, n, pixel, channels);
  }
}
#define CPU_LAY_NS 1                      /* an element of it, in the estimates' units */

#endif
