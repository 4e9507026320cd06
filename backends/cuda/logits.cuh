/* logits.cuh -- a row of logits (f32, f16 or bf16) read once: its maximum, the sum of exponentials, the sum; by a warp or a block. */
#pragma once
#include <type_traits>
#include "functions.cuh"
#include "vector.cuh"

enum { LOGITS_V = 8, LOGITS_MOST = 1 << 30 };             /* of a row */

__device__ __forceinline__ float exp_of(float x) { return fn_exp2(x * 1.44269504f); }

__device__ __forceinline__ float logit(const void *x, uint32_t dtype, int64_t at)
{
  if (dtype == QN_F32) return ((const float *)x)[at];
  uint16_t h = ((const uint16_t *)x)[at];
  return dtype == QN_BF16 ? bf16_to_float(h) : f16_to_float(h);
}

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
  __device__ __forceinline__ void join_warp()
  {
    float top = m;
#pragma unroll
    for (int o = 16; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
    s *= exp_of(m - shift(top));
    m = top;
#pragma unroll
    for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o), sum += __shfl_xor_sync(~0u, sum, o);
  }
};

template <int threads> __device__ __forceinline__ joint join_threads(joint j, joint *shared)
{
  j.join_warp();
  if (threads > 32) {
    __syncthreads();                      /* what is there has been read */
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = j;
    __syncthreads();
    j = shared[0];
    for (int w = 1; w < threads / 32; w++) j.join(shared[w]);
  }
  return j;
}

/* Eight logits wherever they lie: less code than vector.cuh's for all dtypes, which small problems wait for. */
struct loose {
  float held[LOGITS_V];

  __device__ __forceinline__ void load(const void *x, uint32_t dtype, int64_t at, int n, float none)
  {
    uint32_t bits[LOGITS_V];              /* all on their way before one is opened */
#pragma unroll
    for (int i = 0; i < LOGITS_V; i++)
      if (i < n) bits[i] = dtype == QN_F32 ? ((const uint32_t *)x)[at + i] : ((const uint16_t *)x)[at + i];
#pragma unroll
    for (int i = 0; i < LOGITS_V; i++) {
      float v = dtype == QN_F32 ? __uint_as_float(bits[i]) : dtype == QN_BF16 ? bf16_to_float((uint16_t)bits[i]) : f16_to_float((uint16_t)bits[i]);
      held[i] = i < n ? v : none;
    }
  }
  __device__ __forceinline__ void open(float (&v)[LOGITS_V]) const
  {
#pragma unroll
    for (int i = 0; i < LOGITS_V; i++) v[i] = held[i];
  }
};

/* One thread's share of a stretch of a row, from class c on: K vectors, so that their loads overlap. */
template <int threads, int K, int whole> struct stretch {
  enum { LENGTH = threads * LOGITS_V * K };
  typename std::conditional<whole == 0, loose, packet<whole>>::type q[K];

  __device__ __forceinline__ static int left(int classes, int c, int k)            /* logits of vector k that there are */
  {
    return max(min(classes - c - (int)(k * threads + threadIdx.x % threads) * LOGITS_V, (int)LOGITS_V), 0);
  }
  __device__ __forceinline__ void load(const void *x, uint32_t dtype, int64_t row, int classes, int c)
  {
    int64_t at = row + c + threadIdx.x % threads * LOGITS_V;
#pragma unroll
    for (int k = 0; k < K; k++) q[k].load(x, dtype, at + k * threads * LOGITS_V, left(classes, c, k), -INFINITY);
  }
  /* total: the sum of x, too. */
  __device__ __forceinline__ void join(int classes, int c, bool total, joint &j) const
  {
#pragma unroll
    for (int k = 0; k < K; k++) {
      float v[LOGITS_V], next = j.m, s = 0;
      q[k].open(v);
#pragma unroll
      for (int i = 0; i < LOGITS_V; i++) next = fmaxf(next, v[i]);
      float by = joint::shift(next);
#pragma unroll
      for (int i = 0; i < LOGITS_V; i++) s += exp_of(v[i] - by);
      if (total && left(classes, c, k) > 0)
#pragma unroll
        for (int i = 0; i < LOGITS_V; i++) j.sum += whole || i < left(classes, c, k) ? v[i] : 0;
      j.s = j.s * exp_of(j.m - by) + s;
      j.m = next;
    }
  }
};

template <int threads, int K, int whole> __device__ __forceinline__ joint read_row(const void *x, uint32_t dtype, int64_t at, int classes, bool total)
{
  joint j = { -INFINITY, 0, 0 };
  for (int c = 0; c < classes; c += stretch<threads, K, whole>::LENGTH) {
    stretch<threads, K, whole> s;
    s.load(x, dtype, at, classes, c);
    s.join(classes, c, total, j);
  }
  return j;
}
