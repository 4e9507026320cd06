/* sums.cuh -- sums over the threads of a warp or block, always by the same tree; every thread gets the result. */
#pragma once

/* Over `lanes` neighbouring lanes. */
template <int lanes = 32, class T> __device__ __forceinline__ T warp_sum(T v)
{
#pragma unroll
  for (int o = lanes / 2; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
/* Over `width` neighbouring lanes, a power of 2. */
template <class T> __device__ __forceinline__ T lanes_sum(T v, int width)
{
#pragma unroll
  for (int o = 16; o; o >>= 1) {
    const T other = __shfl_xor_sync(~0u, v, o);
    if (o < width) v += other;
  }
  return v;
}

/* part: shared memory, one element per warp. */
template <int threads, class T> __device__ __forceinline__ T block_sum(T v, T *part)
{
  v = warp_sum(v);
  __syncthreads();                        /* part may still be read from an earlier call */
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = 0;
  for (int w = 0; w < threads / 32; w++) v += part[w];
  return v;
}
template <int threads> __device__ __forceinline__ double block_sum(double v)
{
  __shared__ double part[threads / 32];
  return block_sum<threads>(v, part);
}

/* Exclusive prefix sum: the sum over the threads before this one; *total: over all. */
template <int threads, class T> __device__ __forceinline__ T block_before(T v, T *part, T *total)
{
  T upto = v;                             /* inclusive prefix within the warp */
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    const T other = __shfl_up_sync(~0u, upto, o);
    upto += (int)threadIdx.x % 32 >= o ? other : 0;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 31) part[threadIdx.x / 32] = upto;
  __syncthreads();
  T before = upto - v;
  *total = 0;
  for (int w = 0; w < threads / 32; w++) before += w < (int)threadIdx.x / 32 ? part[w] : 0, *total += part[w];
  return before;
}
