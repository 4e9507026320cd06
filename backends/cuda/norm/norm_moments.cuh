/* norm_moments.cuh -- mean and sum of squared distances from it, merged from parts (Chan, Golub, LeVeque), across lanes too. */
#pragma once
#include "kit/sums.cuh"

struct moments {                          /* mean of the elements seen, and the sum of their squared distances from it */
  float mean, squares, count;             /* infinite elements make the mean infinite or NaN, as a plain sum would */

  __device__ void join(const moments &b)
  {
    if (b.count == 0) return;
    float all = count + b.count, share = __fdividef(b.count, all), d = b.mean - mean;
    mean = fabsf(d) < INFINITY ? mean + d * share : mean + b.mean;
    squares += b.squares + (count == 0 ? 0 : d * d * count * share);
    count = all;
  }
  __device__ float4 pack() const { return make_float4(mean, squares, count, 0); }
  __device__ static moments unpack(float4 v) { return { v.x, v.y, v.z }; }
};

/* Moments of n numbers from s1, s2, the sums of d and d^2, where d is the distance from `from`, one of them or the mean of some
 * of them. That bounds the cancellation to a factor of about n. */
__device__ __forceinline__ moments moments_about(float from, float s1, float s2, float n, bool centred)
{
  float share = n > 0 ? __fdividef(1, n) : 0;
  return { centred ? from + s1 * share : 0, centred ? s2 - s1 * s1 * share : s2, n };
}
__device__ __forceinline__ float finite_or_0(float x) { return fabsf(x) < INFINITY ? x : 0; }
/* The median of three: a reference point should not be an outlier, which would cost all others their digits. */
__device__ __forceinline__ float middle(float a, float b, float c) { return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c)); }

template <class S> __device__ __forceinline__ S from_below(const S &mine, int o)
{
  float4 v = mine.pack();
  return S::unpack(make_float4(__shfl_down_sync(~0u, v.x, o), __shfl_down_sync(~0u, v.y, o), __shfl_down_sync(~0u, v.z, o), 0));
}
/* Merges the lanes' moments, `all` elements in total; all lanes get the result. Relative to the first lane's mean, so the sums
 * need one pass. */
__device__ __forceinline__ moments warp_join_lanes(const moments &mine, float all)
{
  const float about = finite_or_0(__shfl_sync(~0u, mine.mean, 0)), d = mine.mean - about, s1 = mine.count * d;
  return moments_about(about, warp_sum(s1), warp_sum(mine.squares + s1 * d), all, true);
}
/* Merges of(0..n-1) over `width` neighbouring lanes, a power of 2; all of them get the result. Relative to the first mean. */
template <class F> __device__ __forceinline__ moments lanes_join_all(int width, int n, F of)
{
  const float about = finite_or_0(of(0).mean);
  float count = 0, s1 = 0, s2 = 0;
#pragma unroll 1
  for (int i = threadIdx.x & (width - 1); i < n; i += width) {
    const moments m = of(i);
    const float d = m.mean - about, s = m.count * d;
    count += m.count;
    s1 += s;
    s2 += m.squares + s * d;
  }
  return moments_about(about, lanes_sum(s1, width), lanes_sum(s2, width), lanes_sum(count, width), true);
}
template <class F> __device__ __forceinline__ moments warp_join_all(int n, F of) { return lanes_join_all(32, n, of); }
/* Merges lanes that are `apart` from one another by a tree; the first ones get the result. */
template <class S> __device__ __forceinline__ void warp_join(S &mine, int apart)
{
  for (int o = apart; o < 32; o *= 2) mine.join(from_below(mine, o));
}
