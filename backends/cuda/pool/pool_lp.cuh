/* pool_lp.cuh -- powers, roots and scaling shared by the lp pooling engines. */
#pragma once

enum { LP_MOST = 64 };                    /* largest p: 2^p and sums of it stay finite in f32 */

static __device__ __noinline__ float lp_power_of(float t, float p) { return powf(t, p); }

/* t to the power p, t >= 0. */
template <int V> __device__ __forceinline__ void lp_power(float (&t)[V], float p)
{
  float all[V];
#pragma unroll
  for (int i = 0; i < V; i++) all[i] = p == 0 ? 1 : t[i];
  if (p == rintf(p) && p <= 8) {
#pragma unroll 1
    for (int k = 1; k < (int)p; k++)
#pragma unroll
      for (int i = 0; i < V; i++) all[i] *= t[i];
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) all[i] = lp_power_of(t[i], p);
  }
#pragma unroll
  for (int i = 0; i < V; i++) t[i] = all[i];
}

__device__ __forceinline__ float lp_root(float t, float p)
{
  return p == 1 ? t : p == 2 ? sqrtf(t) : p == 3 ? cbrtf(t) : lp_power_of(t, 1 / p);
}

/* A power of two near the largest tap; in units of it no power overflows. */
struct lp_unit {
  float up, unit, inverse;  /* up: lifts values out of the subnormal range, where the inverse of a power of two would overflow */

  lp_unit() = default;
  __device__ __forceinline__ lp_unit(float most)
  {
    up = most < 0x1p-64f ? 0x1p80f : 1;
    unit = __uint_as_float(__float_as_uint(most * up) & 0x7f800000u);
    unit = most > 0 && most < INFINITY ? unit : 1;
    inverse = 1 / unit;
  }
  __device__ __forceinline__ float of(float t) const { return t * up * inverse; }
  __device__ __forceinline__ float back(float t) const { return t * unit / up; }
};
/* A sum of powers above this has lost nothing to underflow. */
#define LP_LEAST 0x1p-80f

/* Adds the contribution of one window to dx. */
template <int V>
__device__ __forceinline__ void lp_gradient(float (&sum)[V], const float (&x)[V], const float (&y)[V], const float (&dy)[V], float p)
{
  float t[V];
#pragma unroll
  for (int i = 0; i < V; i++) t[i] = fabsf(x[i]) / y[i];
  lp_power(t, p - 1);
#pragma unroll
  for (int i = 0; i < V; i++) sum[i] += y[i] != 0 ? dy[i] * (x[i] > 0 ? 1 : x[i] < 0 ? -1 : x[i]) * t[i] : 0;
}
