/* pool_far.cuh -- shared by forward pooling: the mean of a window whose sum overflows in float though its mean does not, in double
 * (only of elements near the largest float, or with an infinity or a NaN among them); and SWEEP adjacent windows of stride 1 along a
 * line, whose common part is reduced once. */
#pragma once
#include "pool.cuh"

/* plane: offset of the window's plane in x. Inlined: a call, though never made, costs kernels 5%. */
__device__ __forceinline__ float pool_far_mean(const pool &p, int64_t plane, int o0, int o1, int o2)
{
  const int o[3] = { o0, o1, o2 };
  const window w = window_of(p, o);
  double sum = 0;
#pragma unroll 1
  for (int i = 0; i < w.size[0] * w.size[1]; i++) {
    const int z = w.begin[0] + i / w.size[1] * p.dilation[0], y = w.begin[1] + i % w.size[1] * p.dilation[1];
    if ((unsigned)z >= (unsigned)p.in[0] || (unsigned)y >= (unsigned)p.in[1]) continue;
    const int64_t row = plane + z * p.x_stride[2] + y * p.x_stride[3];
#pragma unroll 1
    for (int r = 0; r < w.size[2]; r++) {
      const int x = w.begin[2] + r * p.dilation[2];
      if ((unsigned)x < (unsigned)p.in[2]) sum += element_load<float>(p.x, row + x * p.x_stride[4], dtype3(p.dtype));
    }
  }
  return (float)(sum / fmax((double)divisor_of(p, w), 1.));
}
/* Is a mean not finite, so that pool_far_mean is to be asked? f16 has no such sums. */
template <int dtype> __device__ __forceinline__ bool pool_far(float mean) { return dtype != QN_F16 && !(fabsf(mean) < INFINITY); }
/* Mends those of the first `many` means that are not finite, by far(i). */
template <int dtype, int N, class F> __device__ __forceinline__ void pool_mend(float (&mean)[N], int many, F far)
{
  bool any = false;
#pragma unroll
  for (int i = 0; i < N; i++) any |= pool_far<dtype>(mean[i]);
  if (!any) return;
#pragma unroll 1
  for (int i = 0; i < many; i++) {        /* one copy of the code; constant indices keep the means in registers */
    float v = 0;
#pragma unroll
    for (int e = 0; e < N; e++) v = e == i ? mean[e] : v;
    if (!pool_far<dtype>(v)) continue;
    v = far(i);
#pragma unroll
    for (int e = 0; e < N; e++) mean[e] = e == i ? v : mean[e];
  }
}

/* ---- sweeps ---------------------------------------------------------------------------------------------------- */

enum { SWEEP = 5 };                       /* windows a thread; odd, so that neighbouring lanes read different banks */

/* Reduces with `join`, from `none` on, SWEEP windows of `size` >= SWEEP places; window k begins at first + k. Places outside
 * 0..extent-1 are skipped. load: reads the V values of one place. */
template <int V, class T, class L, class J>
__device__ __forceinline__ void sweep(T (&f)[SWEEP][V], int first, int size, int extent, T none, L load, J join)
{
  enum { AT_ONCE = 3 };
  const auto join_all = [&](T (&a)[V], const T (&b)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) a[i] = join(a[i], b[i]);
  };
  const auto place = [&](T (&v)[V], int at, bool within) {
    if (within && (unsigned)at < (unsigned)extent) return load(v, at);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = none;
  };
  T all[V], left[SWEEP - 1][V], right[SWEEP - 1][V];
#pragma unroll
  for (int k = 0; k < SWEEP - 1; k++) place(left[k], first + k, true), place(right[k], first + size + k, true);
#pragma unroll
  for (int i = 0; i < V; i++) all[i] = none;
#pragma unroll 1
  for (int at = SWEEP - 1; at < size; at += AT_ONCE) {
    T v[AT_ONCE][V];
#pragma unroll
    for (int b = 0; b < AT_ONCE; b++) place(v[b], first + at + b, at + b < size);
#pragma unroll
    for (int b = 0; b < AT_ONCE; b++) join_all(all, v[b]);
  }
#pragma unroll
  for (int k = 1; k < SWEEP - 1; k++) join_all(left[SWEEP - 2 - k], left[SWEEP - 1 - k]), join_all(right[k], right[k - 1]);
#pragma unroll
  for (int k = 0; k < SWEEP; k++) {
#pragma unroll
    for (int i = 0; i < V; i++) f[k][i] = all[i];
    if (k < SWEEP - 1) join_all(f[k], left[k]);
    if (k > 0) join_all(f[k], right[k - 1]);
  }
}

static inline bool sweep_takes(const pool &p)
{
  bool takes = !p.adaptive;
  for (int d = 1; d < 3; d++) takes = takes && p.size[d] >= SWEEP && p.step[d] == 1 && p.dilation[d] == 1;
  return takes;
}
