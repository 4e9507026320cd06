/* norm_moments.cuh -- mean and sum of squared distances from it, joined from parts (Chan, Golub, LeVeque), across lanes too. */
#pragma once
#include "sums.cuh"

struct moments {                          /* of x: the mean of what was seen, and the sum of squared distances from it */
  float mean, squares, count;             /* infinities make of a mean what they make of a sum */

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

/* Of n numbers, from the sums of their distances from one of them, or from the mean of some, and of those squared: it loses no more digits
 * than n has. */
__device__ __forceinline__ moments moments_about(float from, float s1, float s2, float n, bool centred)
{
  float share = n > 0 ? __fdividef(1, n) : 0;
  return { centred ? from + s1 * share : 0, centred ? s2 - s1 * s1 * share : s2, n };
}
__device__ __forceinline__ float finite_or_0(float x) { return fabsf(x) < INFINITY ? x : 0; }
/* The second of three: what distances are taken from should be no number far from all others, for it would cost them their digits. */
__device__ __forceinline__ float middle(float a, float b, float c) { return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c)); }

template <class S> __device__ __forceinline__ S from_below(const S &mine, int o)
{
  float4 v = mine.pack();
  return S::unpack(make_float4(__shfl_down_sync(~0u, v.x, o), __shfl_down_sync(~0u, v.y, o), __shfl_down_sync(~0u, v.z, o), 0));
}
/* A warp's, one of each lane, `all` numbers together; everyone gets it. Sums about the first lane's mean: one trip over the lanes, for
 * at most as many digits as there are of them. */
__device__ __forceinline__ moments warp_join_lanes(const moments &mine, float all)
{
  const float about = finite_or_0(__shfl_sync(~0u, mine.mean, 0)), d = mine.mean - about, s1 = mine.count * d;
  return moments_about(about, warp_sum(s1), warp_sum(mine.squares + s1 * d), all, true);
}
/* All n of them by `width` neighbouring lanes, a power of 2, each lane every so manyth; all of those get it. Sums about the first one's mean. */
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
/* Lanes that are `apart` from one another, neighbours joined first; the first of them gets it all. */
template <class S> __device__ __forceinline__ void warp_join(S &mine, int apart)
{
  for (int o = apart; o < 32; o *= 2) mine.join(from_below(mine, o));
}
