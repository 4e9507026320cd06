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

template <class S> __device__ __forceinline__ S from_below(const S &mine, int o)
{
  float4 v = mine.pack();
  return S::unpack(make_float4(__shfl_down_sync(~0u, v.x, o), __shfl_down_sync(~0u, v.y, o), __shfl_down_sync(~0u, v.z, o), 0));
}
/* A warp's, one of each lane; everyone gets it. */
__device__ __forceinline__ moments warp_join_lanes(const moments &mine)
{
  float count = warp_sum(mine.count), mean = warp_sum(mine.mean * mine.count);
  mean = count > 0 ? mean / count : 0;
  float d = mine.mean - mean;
  return { mean, warp_sum(mine.count > 0 ? mine.squares + d * d * mine.count : 0), count };
}
/* All n of them by a warp, each lane every 32nd; everyone gets it. of(i) is asked twice. */
template <class F> __device__ __forceinline__ moments warp_join_all(int n, F of)
{
  float count = 0, mean = 0, squares = 0;
#pragma unroll 1
  for (int i = threadIdx.x % 32; i < n; i += 32) {
    moments m = of(i);
    count += m.count;
    mean += m.mean * m.count;
  }
  count = warp_sum(count);
  mean = warp_sum(mean);
  mean = count > 0 ? mean / count : 0;
#pragma unroll 1
  for (int i = threadIdx.x % 32; i < n; i += 32) {
    moments m = of(i);
    squares += m.squares + (m.mean - mean) * (m.mean - mean) * m.count;
  }
  return { mean, warp_sum(squares), count };
}
/* Lanes that are `apart` from one another, neighbours joined first; the first of them gets it all. */
template <class S> __device__ __forceinline__ void warp_join(S &mine, int apart)
{
  for (int o = apart; o < 32; o *= 2) mine.join(from_below(mine, o));
}
