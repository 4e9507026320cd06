/* softmax.cuh -- shared by the softmax and log_softmax engines: problem, arithmetic, cp.async to shared memory.
 *
 * exp(x - m) is computed as the square of 2^(c x - c m), c = log2(e) / 2: one multiply-add before the power, and subnormal
 * results keep their digits. The rounding of c m scales all terms of a row alike, so it cancels; for abs(m) > 2^30 it would overflow,
 * but there all x < m are so far from m that exp(x - m) is 0, also with c = 1, where c m is exact. */
#pragma once
#include <cfloat>
#include "kit/functions.cuh"
#include "kit/sm90.cuh"
#include "kit/words.cuh"

constexpr float SOFTMAX_C = 0.72134752f;

__device__ __forceinline__ float softmax_c(float m) { return fabsf(m) > 0x1p30f ? 1 : SOFTMAX_C; }
__device__ __forceinline__ float softmax_root(float x, float c, float cm) { return fn_exp2(fmaf(x, c, -cm)); }

template <int N> __device__ __forceinline__ float max_of(const float (&v)[N])
{
  float top = v[0];
#pragma unroll
  for (int i = 1; i < N; i++) top = fmaxf(top, v[i]);
  return top;
}
/* The largest element of a 16-byte word. */
template <int dtype> __device__ __forceinline__ float word_max(uint4 q)
{
#if __CUDA_ARCH__ >= 800
  if (dtype == QN_BF16) {
    asm("max.bf16x2 %0, %0, %1;" : "+r"(q.x) : "r"(q.y));
    asm("max.bf16x2 %0, %0, %1;" : "+r"(q.z) : "r"(q.w));
    asm("max.bf16x2 %0, %0, %1;" : "+r"(q.x) : "r"(q.z));
    return fmaxf(__uint_as_float(q.x << 16), __uint_as_float(q.x & 0xffff0000u));
  }
  if (dtype == QN_F16) {
    asm("max.f16x2 %0, %0, %1;" : "+r"(q.x) : "r"(q.y));
    asm("max.f16x2 %0, %0, %1;" : "+r"(q.z) : "r"(q.w));
    asm("max.f16x2 %0, %0, %1;" : "+r"(q.x) : "r"(q.z));
    return fmaxf(f16_to_float((uint16_t)q.x), f16_to_float((uint16_t)(q.x >> 16)));
  }
#endif
  float v[vector_per_16<dtype>];
  vector_open<dtype>(v, 0, q);
  return max_of(v);
}

/* Running maximum and sum of squares. m starts at the lowest finite number: a row of all -Inf gives terms of 0, and 0 / 0 = NaN. */
struct spread {
  float m, s;

  __device__ __forceinline__ float c() const { return softmax_c(m); }
  __device__ __forceinline__ float cm() const { return __fmul_rn(c(), m); }
  __device__ __forceinline__ void raise(float top)
  {
    float before = cm();
    m = top;
    float r = fn_exp2(before - cm());
    s *= r * r;
  }
  /* Adds x, whose largest is `top`; -Inf adds nothing. */
  template <int N> __device__ __forceinline__ void join(const float (&x)[N], float top)
  {
    raise(fmaxf(m, top));
    const float by = c(), of_m = cm();
#pragma unroll
    for (int i = 0; i < N; i++) {
      float r = softmax_root(x[i], by, of_m);
      s = fmaf(r, r, s);
    }
  }
  template <int dtype, int N> __device__ __forceinline__ void join(const uint4 (&q)[N])
  {
    constexpr int E = vector_per_16<dtype>;
    float x[N * E], top = m;
#pragma unroll
    for (int k = 0; k < N; k++) {
      top = fmaxf(top, word_max<dtype>(q[k]));
      vector_open<dtype>(x, k * E, q[k]);
    }
    join(x, top);
  }
  __device__ __forceinline__ void join(spread o)
  {
    raise(fmaxf(m, o.m));
    o.raise(m);
    s += o.s;
  }
  template <int N> __device__ __forceinline__ void join(spread (&o)[N])
  {
    float top = m;
#pragma unroll
    for (int i = 0; i < N; i++) top = fmaxf(top, o[i].m);
    raise(top);
#pragma unroll
    for (int i = 0; i < N; i++) {
      o[i].raise(m);
      s += o[i].s;
    }
  }
};

/* Over `lanes` neighbouring lanes; or (apart > 1) over lanes that far apart. */
__device__ __forceinline__ float sum_lanes(float v, int lanes = 32, int apart = 1)
{
  for (int o = lanes / 2; o >= apart; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
__device__ __forceinline__ float max_lanes(float v, int lanes = 32, int apart = 1)
{
  for (int o = lanes / 2; o >= apart; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  return v;
}
/* Merges the lanes of a warp that are `apart`; a gradient has no maximum, only the sum. */
template <bool backward> __device__ __forceinline__ spread join_warp(spread j, int apart = 1)
{
  if (!backward) j.raise(max_lanes(j.m, 32, apart));
  j.s = sum_lanes(j.s, 32, apart);
  return j;
}

/* Maps a row's elements once its maximum and sum are known. */
struct finish {
  float a, b, c;                          /* softmax: c m, 1 / s, c; log_softmax: m, ln s; backward: only b = s */

  __device__ __forceinline__ float forward(bool logarithm, float x) const
  {
    if (logarithm) return x - a - b;
    float r = softmax_root(x, c, a);
    return r * b * r;
  }
  __device__ __forceinline__ float backward(bool logarithm, float y, float dy) const
  {
    float r = softmax_root(y, SOFTMAX_C, 0);
    return logarithm ? dy - r * b * r : y * (dy - b);
  }
  /* A term of the gradient's sum. */
  __device__ __forceinline__ static float term(bool logarithm, float y, float dy) { return logarithm ? dy : y * dy; }
};
template <bool backward> __device__ __forceinline__ finish finish_of(spread j, bool logarithm)
{
  if (backward) return { 0, j.s, 0 };
  if (logarithm) {                        /* in units of the largest element's own term, which rounding keeps from being 1 */
    const float root = softmax_root(j.m, j.c(), j.cm()), unit = __fmul_rn(root, root);
    return { j.m, log1pf((j.s - unit) / unit), 0 };
  }
  return { j.cm(), 1 / j.s, j.c() };
}

/* ---- the problem ------------------------------------------------------------------------------------------------ */

enum { MAX_OUTER = 4, KEPT_PARTS = 8 };  /* KEPT_PARTS: of a cluster */

struct rows {                             /* fields that short rows use first are together */
  const void *x, *dy;                     /* backward: x is y */
  void    *y;
  int64_t  length, count;
  int32_t  lane_bits;                     /* log2 of the lanes of a row; columns: of neighbouring words of a block */
  int32_t  steady, edges;  /* steady: all rows have the same alignment; edges: some have elements outside the 16-byte words */
  int32_t  rank;                          /* of the other dims, innermost first */
  int64_t  stride[MAX_OUTER][3];          /* of x, y, dy */
  int32_t  logarithm, backward;
  uint32_t x_dtype, dy_dtype, y_dtype;
  int32_t  parts;                         /* blocks of a row, or of columns */
  int32_t  together;                      /* columns: of these, blocks in a cluster */
  int64_t  share;                         /* of one part: words, or lines */
  int32_t  phase, room;                   /* columns: TOGETHER, MEET, or MEASURE and WRITE; words that a block keeps */
  spread  *partial;                       /* columns: partial results, [parts / together][count]; for MEET [count][parts] */
  uint32_t *met;                          /* counters for MEET */
  int64_t  step[3];                       /* along the axis: x, y, dy */
  uint32_t dim[MAX_OUTER];

  __device__ void begin(int64_t row, int64_t at[3]) const
  {
    uint32_t rest = (uint32_t)row;
    for (int t = 0; t < 3; t++) at[t] = rank == 1 ? rest * stride[0][t] : 0;
#pragma unroll 1
    for (int d = 0; d < rank && rank > 1; d++) {
      uint32_t q = d + 1 < rank ? rest / dim[d] : 0, i = rest - q * dim[d];
      for (int t = 0; t < 3; t++) at[t] += i * stride[d][t];
      rest = q;
    }
  }
};

struct state {
  rows     r;
  int32_t  number[3];                     /* x, y, dy */
  const void *kernel;
  unsigned blocks, threads, shared;       /* shared: bytes */
};

/* ---- what is kept ----------------------------------------------------------------------------------------------- */

/* Copies a word to shared memory; only the same thread reads it back, so no barrier is needed. */
__device__ __forceinline__ void keep(uint4 *to, const uint4 *from)
{
#if __CUDA_ARCH__ >= 800
  copy_async<16>(shared_address(to), from, 16);
#else
  *to = *from;
#endif
}
__device__ __forceinline__ void keep_wait()
{
#if __CUDA_ARCH__ >= 800
  copy_async_commit();
  copy_async_wait<0>();
#endif
}

/* Exchange between a cluster's blocks: each receives `bytes`, counted by its mbarrier. send() needs a cluster_wait before, so
 * that all barriers are initialised. */
__device__ __forceinline__ void send_begin(uint32_t bar, int bytes)
{
  if (threadIdx.x == 0) {
    barrier_init(bar, 1);
    barrier_init_fence();
    barrier_expect(bar, bytes);
  }
  __syncwarp();
  cluster_arrive_relaxed();
}
__device__ __forceinline__ void send(const spread *place, uint32_t bar, int block, spread j)
{
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];"
               :: "r"(cluster_address(shared_address(place), block)), "f"(j.m), "f"(j.s), "r"(cluster_address(bar, block)) : "memory");
}
