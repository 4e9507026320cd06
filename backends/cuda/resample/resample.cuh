/* resample.cuh -- shared by the resampling engines: sample positions as exact fractions, so that weights come from an integer
 * remainder and not from the difference of two large floats. */
#pragma once
#include "kit/divisor.h"
#include "kit/spatial.cuh"

/* Output i samples position (first + i step) / under; for nearest half a pixel is added, so that the floor is the nearest. */
struct ruler {
  int64_t first, step, under, places, points;
  int64_t ratio_places, ratio_points;     /* X/P in coordinates; by a scale factor it is not that of the extents */
  float   inverse;                        /* of under */
  cuda_divisor by, by_step;               /* by: of under */
  double  cubic;                          /* the coefficient, where weights are doubles; in float it is -3/4 */
};

struct resampling : spatial {
  int32_t mode;
  ruler   dim[3];
};

template <class I> __device__ __forceinline__ I floor_div(I a, I b) { I q = a / b; return q - (q * b > a); }
template <class I> __device__ __forceinline__ I clamp(I v, I most) { return v < 0 ? 0 : v > most ? most : v; }

__device__ __forceinline__ double cubic(double z, double a)       /* Keys' kernel at distance z >= 0 */
{
  return z <= 1 ? ((a + 2) * z - (a + 3)) * z * z + 1 : ((a * z - 5 * a) * z + 8 * a) * z - 4 * a;
}
__device__ __forceinline__ float cubic(float z, double)           /* a = -0.75 */
{
  typedef float T;
  return z <= 1 ? (T(1.25) * z - T(2.25)) * z * z + 1 : ((T(-0.75) * z + T(3.75)) * z - 6) * z + 3;
}

/* A sample has TAPS neighbouring taps, the first at below + FIRST; taps beyond an edge are clamped to it. */
template <class T, class I, int MODE> struct point {
  static constexpr int TAPS = 1 << MODE, FIRST = MODE == QN_RESAMPLE_CUBIC ? -1 : 0;
  I below, rest;

  __device__ __forceinline__ point(const ruler &r, I i)
  {
    I over = (I)r.first + i * (I)r.step;
    if constexpr (sizeof(I) == 4) {       /* positions are above -1 */
      uint32_t left;
      below = (I)cuda_quotient((uint32_t)(over + (I)r.under), r.by, &left) - 1, rest = (I)left;
    } else below = floor_div<I>(over, (I)r.under), rest = over - below * (I)r.under;
  }
  __device__ __forceinline__ void next(const ruler &r)
  {
    I under = (I)r.under;
    rest += (I)r.step;
    if (rest < under) return;
    I places = rest < 2 * under ? 1 : rest / under;
    below += places, rest -= places * under;
  }
  __device__ __forceinline__ I place(const ruler &r, int k) const { return clamp<I>(below + FIRST + k, (I)r.places - 1); }
  __device__ __forceinline__ void weights(const ruler &r, T (&w)[TAPS]) const
  {
    T t, u;
    if constexpr (sizeof(T) == 4) t = (float)rest * r.inverse, u = 1 - t;
    else t = (T)rest / (T)r.under, u = (T)((I)r.under - rest) / (T)r.under;
#pragma unroll
    for (int k = 0; k < TAPS; k++)
      w[k] = MODE == QN_RESAMPLE_NEAREST ? T(1)
           : MODE == QN_RESAMPLE_LINEAR  ? (k ? t : u)
                                         : cubic(k == 0 ? 1 + t : k == 1 ? t : k == 2 ? u : 1 + u, r.cubic);
  }
};

/* The weight of input j in output i. */
template <class T, class I, int MODE> __device__ __forceinline__ T weight_in(const ruler &r, I i, I j)
{
  typedef point<T, I, MODE> at;
  at p(r, i);
  T weight[at::TAPS], sum = 0;
  p.weights(r, weight);
#pragma unroll
  for (int k = 0; k < at::TAPS; k++) sum += p.place(r, k) == j ? weight[k] : T(0);
  return sum;
}

/* The outputs that may have input j as a tap: within two pixels of it, or beyond an edge. */
template <class I> __device__ __forceinline__ void points_near(const ruler &r, I j, I *begin, I *end)
{
  I step = (I)r.step;
  *begin = j == 0 || step == 0 ? 0 : clamp<I>(floor_div<I>((j - 2) * (I)r.under - (I)r.first, step), (I)r.points);
  *end = j == (I)r.places - 1 || step == 0 ? (I)r.points : clamp<I>(floor_div<I>((j + 2) * (I)r.under - (I)r.first, step) + 1, (I)r.points);
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

/* d: the spatial dim in the attributes; below 0: a dim that x lacks. */
static inline ruler ruler_of(const qn_resampling *a, int d, int64_t x, int64_t y)
{
  int64_t across = x, by = y;
  if (d >= 0) qn_resample_ratio(a, d, &across, &by);
  ruler r = { 0, across, by, x, y, across, by, 0, {}, {}, a->coefficient };
  if (a->grid == QN_GRID_HALF_PIXEL) r.first = across - by, r.step = 2 * across, r.under = 2 * by;
  else if (a->grid == QN_GRID_ALIGN_CORNERS) r.step = y > 1 ? x - 1 : 0, r.under = y > 1 ? y - 1 : 1;
  if (!r.under) r.under = 1;              /* no outputs: nothing is sampled */
  if (a->mode == QN_RESAMPLE_NEAREST) {
    const int64_t plain = r.under;
    qn_round_place(a, &r.first, &r.under);
    if (r.under != plain) r.step *= 2;
  }
  r.inverse = (float)(1 / (double)r.under);
  r.by = cuda_divide_by(r.under), r.by_step = cuda_divide_by(r.step ? r.step : 1);
  return r;
}

static inline resampling resampling_of(const qn_resampling *a, bool forward, const qn_value *in, const qn_value *out)
{
  resampling s = {};
  spatial_fill(&s, in, out);
  s.mode = (int32_t)a->mode;
  for (int d = 0; d < 3; d++) {
    const int own = d - (5 - in->rank);
    s.dim[d] = forward ? ruler_of(a, own, s.in_dim[d], s.out_dim[d]) : ruler_of(a, own, s.out_dim[d], s.in_dim[d]);
  }
  return s;
}
