/* pool_found.cuh -- what a window reduces to, of any pooling: maxima with or without their taps, sums, and sums of powers with their roots
 * and gradients (lp). */
#pragma once
#include "pool.cuh"

/* ---- lp: powers, roots and scaling ----------------------------------------------------------------------------------------- */

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

/* In 16-bit dtypes the error of exp2(log2(t) / 3), about 2^-18 for t in LP_LEAST..inf, does not show. */
template <int dtype> __device__ __forceinline__ float lp_cube_root(float t)
{
  return dtype == QN_F32 ? cbrtf(t) : exp2f(__log2f(t) * (1 / 3.f));
}

/* A sum of powers above this has lost nothing to underflow. */
#define LP_LEAST 0x1p-80f

/* A tap's power; of one that is not 0 a trifle more, so that a sum is 0 only where all its taps are (squares of f16 do not vanish). */
template <int dtype> __device__ __forceinline__ float lp_tap(float a, float p)
{
  const float least = fminf(fabsf(a), 0x1p-126f);
  if (p == 2) return dtype == QN_F16 ? a * a : fmaf(a, a, least);
  if (p == 3) return fmaf(a * a, fabsf(a), least);
  float t[1] = { fabsf(a) };
  lp_power(t, p);
  return t[0] + least;
}

/* The norm of a window whose sum of powers over- or underflows, with the taps scaled by their maximum. */
inline __device__ __noinline__ float lp_scaled(const pool &p, int64_t plane, int o0, int o1, int o2)
{
  const int o[3] = { o0, o1, o2 };
  const window w = window_of(p, o);
  float most = 0, sum = 0;
  taps_again(p, plane, w, [&](float v) { most = larger(most, fabsf(v)); });
  if (!(most > 0 && most < INFINITY)) return most;
  /* In units of a power of two near the maximum no power overflows; of subnormal values, lifted first, its inverse would. */
  const float up = most < 0x1p-64f ? 0x1p80f : 1, unit = __uint_as_float(__float_as_uint(most * up) & 0x7f800000u), inverse = 1 / unit;
  taps_again(p, plane, w, [&](float v) {
    float t[1] = { fabsf(v) * up * inverse };
    lp_power(t, p.p);
    sum += t[0];
  });
  return lp_root(sum, p.p) * unit / up;
}

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

/* ---- reductions of windows ------------------------------------------------------------------------------------------------ */

enum { MAX, MAX_INDEX, AVERAGE, SQUARES, CUBES, POWERS };                 /* from SQUARES on: lp, with p 2, 3, any */

/* The reduction of a window's taps so far, for V channels; tap: -1 until one was seen; MAX_INDEX: the maximum's; most: POWERS: the largest;
 * any: SQUARES, CUBES: the taps as loaded, OR-ed together, of which only signs are left where all are 0. */
template <int V, int mode> struct found {
  float v[V], most[mode == POWERS ? V : 1];
  int   tap[mode == MAX_INDEX ? V : 1];
  uint32_t any[4] = {};

  __device__ __forceinline__ found()
  {
#pragma unroll
    for (int i = 0; i < V; i++)
      v[i] = mode >= AVERAGE ? 0.f : -INFINITY, most[mode == POWERS ? i : 0] = 0, tap[mode == MAX_INDEX ? i : 0] = -1;
  }
  __device__ __forceinline__ void take(const float (&a)[V], int at, float p = 0)
  {
    if constexpr (mode == POWERS) {
      float t[V];
#pragma unroll
      for (int i = 0; i < V; i++) t[i] = fabsf(a[i]), most[i] = larger(most[i], t[i]);
      lp_power(t, p);
#pragma unroll
      for (int i = 0; i < V; i++) v[i] += t[i];
    } else
#pragma unroll
      for (int i = 0; i < V; i++)
        if (mode == AVERAGE) v[i] += a[i];
        else if (mode == SQUARES) v[i] += a[i] * a[i];
        else if (mode == CUBES) v[i] += a[i] * a[i] * fabsf(a[i]);
        else if (mode == MAX) v[i] = larger(v[i], a[i]);
        else if (tap[i] < 0 || a[i] > v[i] || (a[i] != a[i] && v[i] == v[i])) v[i] = a[i], tap[i] = at;
    if (mode != MAX_INDEX) tap[0] = at;
  }
  __device__ __forceinline__ void take(float a, int at)
  {
    const float one[V] = { a };
    take(one, at);
  }
  /* Appends the result of later taps, whose numbers begin at `from`. */
  __device__ __forceinline__ void join(const found &b, int from)
  {
    if (mode == MAX_INDEX) {
#pragma unroll
      for (int i = 0; i < V; i++)
        if (b.tap[i] >= 0 && (tap[i] < 0 || b.v[i] > v[i] || (b.v[i] != b.v[i] && v[i] == v[i]))) v[i] = b.v[i], tap[i] = from + b.tap[i];
    } else if (mode >= SQUARES) {
#pragma unroll
      for (int i = 0; i < V; i++) {
        v[i] += b.v[i], any[i % 4] |= b.any[i % 4];
        if (mode == POWERS) most[mode == POWERS ? i : 0] = larger(most[mode == POWERS ? i : 0], b.most[mode == POWERS ? i : 0]);
      }
    } else if (b.tap[0] >= 0) {
      take(b.v, 0);
    }
  }
};

/* Merges another maximum with its tap number, whose taps may precede ours: the first of equals, the first NaN; tap -1: none yet. */
__device__ __forceinline__ void join_taps(float &v, int &tap, float a, int other)
{
  bool same = a == v || (a != a && v != v);
  if (same ? (uint32_t)other < (uint32_t)tap : a > v || a != a) v = a, tap = other;
}
