/* logits.cuh -- a row of logits read once: its maximum, the sum of exponentials, the sum; by a warp or a block. */
#pragma once
#include "functions.cuh"
#include "vector.cuh"

enum { LOGITS_V = 8 };

__device__ __forceinline__ float exp_of(float x) { return fn_exp2(x * 1.44269504f); }

/* A maximum, the sum of exp(x - maximum), the sum of x. */
struct joint {
  float m, s, sum;

  __device__ __forceinline__ static float shift(float m) { return m == -INFINITY ? 0 : m; }
  __device__ __forceinline__ void join(joint o)
  {
    float next = fmaxf(m, o.m), by = shift(next);
    s = s * exp_of(m - by) + o.s * exp_of(o.m - by);
    m = next;
    sum += o.sum;
  }
};

template <int threads> __device__ __forceinline__ joint join_threads(joint j, joint *shared)
{
#pragma unroll
  for (int o = 16; o; o >>= 1) j.join({ __shfl_xor_sync(~0u, j.m, o), __shfl_xor_sync(~0u, j.s, o), __shfl_xor_sync(~0u, j.sum, o) });
  if (threads > 32) {
    __syncthreads();                      /* what is there has been read */
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = j;
    __syncthreads();
    j = shared[0];
    for (int w = 1; w < threads / 32; w++) j.join(shared[w]);
  }
  return j;
}

/* One thread's share of a row of logits, the sum of x only if `total`: K vectors at a time, so that their loads overlap. */
template <int threads, int K, int whole> __device__ __forceinline__ joint read_row(const void *x, uint32_t dtype, int64_t at, int64_t classes, bool total, int lane)
{
  joint j = { -INFINITY, 0, 0 };
  for (int64_t c = lane * LOGITS_V; c < classes; c += threads * LOGITS_V * K) {
    packet<whole> q[K];
#pragma unroll
    for (int k = 0; k < K; k++) {
      int64_t left = classes - c - k * threads * LOGITS_V;
      q[k].load(x, dtype, at + c + k * threads * LOGITS_V, (int)(left < LOGITS_V ? left : LOGITS_V), -INFINITY);
    }
    float next = j.m, s = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      float v[LOGITS_V];
      q[k].open(v);
#pragma unroll
      for (int i = 0; i < LOGITS_V; i++) next = fmaxf(next, v[i]);
    }
    float by = joint::shift(next);
#pragma unroll
    for (int k = 0; k < K; k++) {
      float v[LOGITS_V];
      q[k].open(v);
#pragma unroll
      for (int i = 0; i < LOGITS_V; i++) s += exp_of(v[i] - by);
      if (total)
        for (int i = 0; i < LOGITS_V; i++) j.sum += c + k * threads * LOGITS_V + i < classes ? v[i] : 0;
    }
    j.s = j.s * exp_of(j.m - by) + s;
    j.m = next;
  }
  return j;
}
