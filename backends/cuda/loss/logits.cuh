/* logits.cuh -- reading a row of logits (f32, f16, bf16) once by a warp or block: online maximum, sum of exponentials, and weighted sum. */
#pragma once
#include "kit/functions.cuh"
#include "kit/words.cuh"

enum { LOGITS_V = 8, LOGITS_MOST = 1 << 30 };             /* largest row */

__device__ __forceinline__ float exp_of(float x) { return fn_exp2(x * 1.44269504f); }

__device__ __forceinline__ float logit(const void *x, uint32_t dtype, int64_t at)
{
  if (dtype == QN_F32) return ((const float *)x)[at];
  uint16_t h = ((const uint16_t *)x)[at];
  return dtype == QN_BF16 ? bf16_to_float(h) : f16_to_float(h);
}

/* Maximum, sum of exp(x - maximum), sum of x times a weight: weighted first, as the sum alone may overflow. */
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
  __device__ __forceinline__ static joint of(float x, float weight) { return { x, exp_of(x - shift(x)), x * weight }; }
  /* Merges N logits (missing ones are -Inf), except for their weighted sum. */
  template <int N> __device__ __forceinline__ void join(const float (&v)[N])
  {
    float next = m, here = 0;
#pragma unroll
    for (int i = 0; i < N; i++) next = fmaxf(next, v[i]);
    float by = shift(next);
#pragma unroll
    for (int i = 0; i < N; i++) here += exp_of(v[i] - by);
    s = s * exp_of(m - by) + here;
    m = next;
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
    __syncthreads();                      /* shared[] has been read */
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = j;
    __syncthreads();
    j = shared[0];
    for (int w = 1; w < threads / 32; w++) j.join(shared[w]);
  }
  return j;
}

/* A row as vectors. whole: the dtype, 16-byte words of a row of any alignment; 0: any dtype, eight elements each. */
template <int whole> struct logits {
  static constexpr int N = whole ? vector_per_16<whole> : LOGITS_V;
  const void *x;
  uint32_t dtype;
  int classes;
  int64_t at;
  row_words w;

  __device__ __forceinline__ logits(const void *x_, uint32_t dtype_, int64_t at_, int classes_)
    : x(x_), dtype(dtype_), classes(classes_), at(at_)
  {
    if (whole) w = words_of<whole>(at, classes);
    else w = { 0, (classes + N - 1) / N, 0 };
  }
  __device__ __forceinline__ int left(int i) const { return classes - i * N; }       /* elements from vector i on (whole 0) */
  /* The element outside of the 16-byte words that this lane handles, or -1. */
  __device__ __forceinline__ int edge(int lane) const { return whole ? edge_of(w, classes, lane) : -1; }
};

/* A vector of a row, raw; missing elements are -Inf. */
template <int whole> struct held {
  uint4 bits;

  __device__ __forceinline__ void load(const logits<whole> &row, int i)
  {
    bits = i < row.w.count ? vector_place<whole>(row.x, row.at + row.w.lead)[i] : word_of_least<whole>();
  }
  __device__ __forceinline__ void open(float (&v)[logits<whole>::N]) const { vector_open<whole>(v, 0, bits); }
};
/* Less code than vector.cuh's generic path: small problems are bound by instruction fetch. */
template <> struct held<0> {
  float value[LOGITS_V];

  __device__ __forceinline__ void load(const logits<0> &row, int from)
  {
    const int64_t at = row.at + (int64_t)from * LOGITS_V;
    const int n = row.left(from);
    uint32_t bits[LOGITS_V];              /* all loads in flight before the first is used */
#pragma unroll
    for (int i = 0; i < LOGITS_V; i++)
      if (i < n) bits[i] = row.dtype == QN_F32 ? ((const uint32_t *)row.x)[at + i] : ((const uint16_t *)row.x)[at + i];
#pragma unroll
    for (int i = 0; i < LOGITS_V; i++) {
      float v = row.dtype == QN_F32  ? __uint_as_float(bits[i])
              : row.dtype == QN_BF16 ? bf16_to_float((uint16_t)bits[i])
                                     : f16_to_float((uint16_t)bits[i]);
      value[i] = i < n ? v : -INFINITY;
    }
  }
  __device__ __forceinline__ void open(float (&v)[LOGITS_V]) const
  {
#pragma unroll
    for (int i = 0; i < LOGITS_V; i++) v[i] = value[i];
  }
};

/* A thread's K vectors of a stretch of a row, from vector `from` on; their loads overlap. */
template <int threads, int K, int whole> struct stretch {
  enum { LENGTH = threads * K };          /* in vectors */
  held<whole> q[K];

  __device__ __forceinline__ static int vector(int from, int k) { return from + k * threads + (int)threadIdx.x % threads; }
  __device__ __forceinline__ void load(const logits<whole> &row, int from)
  {
#pragma unroll
    for (int k = 0; k < K; k++) q[k].load(row, vector(from, k));
  }
  /* Merges these vectors into j, loading those of the stretch at `next_from` of `next` in their place. weight: of the sum; 0: none. */
  __device__ __forceinline__ void join(const logits<whole> &row, int from, float weight, joint &j, const logits<whole> &next, int next_from)
  {
#pragma unroll
    for (int k = 0; k < K; k++) {
      float v[logits<whole>::N];
      q[k].open(v);
      q[k].load(next, vector(next_from, k));
      j.join(v);
      if (weight > 0 && vector(from, k) < row.w.count)
#pragma unroll
        for (int e = 0; e < logits<whole>::N; e++) j.sum = fmaf(whole || e < row.left(vector(from, k)) ? v[e] : 0, weight, j.sum);
    }
  }
};

template <int threads, int K, int whole>
__device__ __forceinline__ joint read_row(const void *x, uint32_t dtype, int64_t at, int classes, float weight)
{
  const logits<whole> row(x, dtype, at, classes);
  const int end = row.edge(threadIdx.x % threads);
  joint j = { -INFINITY, 0, 0 };
  if (end >= 0) j = joint::of(logit(x, dtype, at + end), weight);
  stretch<threads, K, whole> s;
  s.load(row, 0);
  for (int from = 0; from < row.w.count; from += s.LENGTH) s.join(row, from, weight, j, row, from + s.LENGTH);
  return j;
}
