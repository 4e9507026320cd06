/* quantize_packed.cuh -- building blocks of quantize_packed.cu: magnitudes, scales, conversion to 8 bits and back.
 *
 * The quotient x / scale is correctly rounded at the cost of three multiplications: multiply by the reciprocal, then correct by
 * the exact remainder (Markstein 1990). The value before the last rounding is within 1.5 2^-24 ulp of the true quotient; all
 * pairs of significands whose quotient is that close to a tie, 93 million, were checked exhaustively. For extreme scales and
 * infinities the true division is used. */
#pragma once
#include "quantize_packed.h"
#include "kit/meet.cuh"
#include "quantize.cuh"
#include "kit/vector.cuh"

enum {
  THREADS = CUDA_QUANTIZE_THREADS,
  KEEPERS = CUDA_QUANTIZE_KEEPERS,
  HELD = CUDA_QUANTIZE_HELD,
  AT_ONCE = 4,
  U = CUDA_QUANTIZE_VECTORS,
  LEVELS = CUDA_QUANTIZE_LEVELS,
  COLUMN_ROWS = CUDA_QUANTIZE_COLUMN
};
template <int dtype> constexpr int per_vector = vector_per_16<dtype>;

using problem = cuda_quantization;

/* ---- magnitudes: bits of f32, or of both 16-bit halves of a word; NaN is the largest ---------------------------------------- */

template <int in> __device__ __forceinline__ uint32_t largest(uint4 q)
{
  uint32_t m = in == QN_F32 ? 0x7fffffffu : 0x7fff7fffu, a = q.x & m, b = q.y & m, c = q.z & m, d = q.w & m;
  return in == QN_F32 ? max(max(a, b), max(c, d)) : __vmaxs2(__vmaxs2(a, b), __vmaxs2(c, d));
}
template <int in> __device__ __forceinline__ uint32_t larger(uint32_t a, uint32_t b) { return in == QN_F32 ? max(a, b) : __vmaxs2(a, b); }
/* The magnitude as f32 bits. */
template <int in> __device__ __forceinline__ uint32_t magnitude(uint32_t most)
{
  uint32_t half = max(most & 0xffff, most >> 16);
  return in == QN_F32 ? most : in == QN_BF16 ? half << 16 : __float_as_uint(f16_to_float((uint16_t)half));
}
/* Maxima over `lanes` lanes of N values at once, so that the shuffles overlap. */
template <int N> __device__ __forceinline__ void among_lanes(uint32_t (&most)[N], uint32_t lanes)
{
  for (uint32_t o = lanes / 2; o; o >>= 1)
#pragma unroll
    for (int i = 0; i < N; i++) most[i] = max(most[i], __shfl_xor_sync(~0u, most[i], o));
}

/* ---- scales -------------------------------------------------------------------------------------------------- */

/* Magnitudes from here on take the slow path. */
__device__ __forceinline__ float limit_of(const problem &p) { return p.powers ? INFINITY : 0x1p60f; }

struct scaler {
  float s, r;
  int   zero;
  __device__ __forceinline__ void power(float scale)       /* a power of two from 2^-127 to 2^127, and so is its inverse */
  {
    s = scale, r = __uint_as_float(max(0x7f000000u - (__float_as_uint(scale) & 0x7f800000u), 0x00400000u));
  }
  __device__ __forceinline__ void other(float scale)       /* __frcp_rn without its test for special scales */
  {
    s = scale;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(scale));
    r = fmaf(fmaf(-scale, r, 1), r, r);
  }
  /* Keeps the sign of 0. */
  __device__ __forceinline__ float quotient(float x) const
  {
    float q = x * r;
    return fmaf(fmaf(q, s, -x), -r, q);
  }
};
/* Sets N scalers; true if all scales are plain, so that quotients of magnitudes below the limit need no checks. */
template <int N> __device__ __forceinline__ bool scalers_set(const problem &p, scaler *c, const float (&scale)[N])
{
  bool plain = true;
  if (p.powers) {
#pragma unroll
    for (int i = 0; i < N; i++) c[i].power(scale[i]), plain &= scale[i] == scale[i];
  } else {
#pragma unroll
    for (int i = 0; i < N; i++) c[i].other(scale[i]), plain &= scale[i] > 0x1p-60f & scale[i] < 0x1p60f;
  }
  return plain;
}
__device__ __forceinline__ bool scaler_set(const problem &p, scaler &c, float scale, int zero)
{
  const float one[1] = { scale };
  c.zero = zero;
  return scalers_set(p, &c, one);
}
/* Divides each element by its own scale, or all by the first. */
template <bool each, int V> __device__ __forceinline__ void quotients(const problem &p, float (&v)[V], const scaler *c)
{
  if (p.powers) {                         /* the reciprocals are exact */
#pragma unroll
    for (int i = 0; i < V; i++) v[i] *= c[each ? i : 0].r;
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = c[each ? i : 0].quotient(v[i]);
  }
}

/* Loads N scales and zero points, all in flight before the first is used. Branches only over the dtypes that occur, to keep the
 * code small. */
template <class I, int N> __device__ __forceinline__ void scales_load(const problem &p, const I (&at)[N], float (&scale)[N], int (&zero)[N])
{
  if (p.scale_dtype == QN_F32) {
#pragma unroll
    for (int i = 0; i < N; i++) scale[i] = ((const float *)p.scale)[at[i]];
  } else if (p.scale_dtype == QN_E8M0) {
    uint8_t power[N];
#pragma unroll
    for (int i = 0; i < N; i++) power[i] = ((const uint8_t *)p.scale)[at[i]];
#pragma unroll
    for (int i = 0; i < N; i++) scale[i] = e8m0_to_float(power[i]);
  } else {
    uint16_t half[N];
#pragma unroll
    for (int i = 0; i < N; i++) half[i] = ((const uint16_t *)p.scale)[at[i]];
#pragma unroll
    for (int i = 0; i < N; i++) scale[i] = p.scale_dtype == QN_BF16 ? bf16_to_float(half[i]) : f16_to_float(half[i]);
  }
#pragma unroll
  for (int i = 0; i < N; i++) zero[i] = 0;
  if (p.zero)
#pragma unroll
    for (int i = 0; i < N; i++) zero[i] = p.y_dtype == QN_U8 ? p.zero[at[i]] : (int8_t)p.zero[at[i]];
}
/* For the V elements from `first` on. */
template <int V> __device__ __forceinline__ void scales_beside(const problem &p, int64_t first, float (&scale)[V], int (&zero)[V])
{
  int64_t at[V];
#pragma unroll
  for (int i = 0; i < V; i++) at[i] = first + i;
  scales_load(p, at, scale, zero);
}

/* ---- V elements to 8 bits and back ---------------------------------------------------------------------------------------- */

__device__ __forceinline__ bool is_f8(uint32_t dtype) { return dtype == QN_E4M3 || dtype == QN_E5M2; }

/* round(q) + zero as an integer, by adding 1.5 2^23; values far out of range stay out of range, for the saturation. */
__device__ __forceinline__ int level(float q, int zero) { return __float_as_int(fmaxf(q, -0x1p22f) + 0x1.8p23f) + (zero - 0x4b400000); }
/* Saturates four integers and packs them, a in the lowest byte. */
__device__ __forceinline__ uint32_t join(int a, int b, int c, int d, uint32_t dtype)
{
  uint32_t word;
  if (dtype == QN_U8)
    asm("{.reg .b32 t; cvt.pack.sat.u8.s32.b32 t, %4, %3, 0; cvt.pack.sat.u8.s32.b32 %0, %2, %1, t;}"
        : "=r"(word)
        : "r"(a), "r"(b), "r"(c), "r"(d));
  else
    asm("{.reg .b32 t; cvt.pack.sat.s8.s32.b32 t, %4, %3, 0; cvt.pack.sat.s8.s32.b32 %0, %2, %1, t;}"
        : "=r"(word)
        : "r"(a), "r"(b), "r"(c), "r"(d));
  return word;
}
__device__ __forceinline__ uint32_t f8_octets(float a, float b, float c, float d, __nv_fp8_interpretation_t kind)
{
  return __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, kind)
       | (uint32_t)__nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, kind) << 16;
}
/* plain: no quotient is NaN. */
template <bool plain, int V>
__device__ __forceinline__ void store_octets(const problem &p, uint32_t vector, const float (&q)[V], const int (&zero)[V])
{
  uint32_t word[V / 4], dtype = p.y_dtype;
  if (is_f8(dtype)) {
#pragma unroll
    for (int i = 0; i < V; i += 4)
      word[i / 4] = dtype == QN_E4M3 ? f8_octets(q[i], q[i + 1], q[i + 2], q[i + 3], __NV_E4M3)
                                     : f8_octets(q[i], q[i + 1], q[i + 2], q[i + 3], __NV_E5M2);
  } else {
    int o[V];
#pragma unroll
    for (int i = 0; i < V; i++) o[i] = level(plain || q[i] == q[i] ? q[i] : 0, zero[i]);
#pragma unroll
    for (int i = 0; i < V; i += 4) word[i / 4] = join(o[i], o[i + 1], o[i + 2], o[i + 3], dtype);
  }
  if (V == 8) ((uint2 *)p.y)[vector] = make_uint2(word[0], word[V / 4 - 1]);
  else ((uint32_t *)p.y)[vector] = word[0];
}

/* Quantizes a vector with one scale. */
template <int in> __device__ __forceinline__ void store_scaled(const problem &p, uint32_t vector, uint4 word, const scaler &c)
{
  constexpr int V = per_vector<in>;
  float v[V];
  int zero[V];
  vector_open<in>(v, 0, word);
  quotients<false>(p, v, &c);
#pragma unroll
  for (int i = 0; i < V; i++) zero[i] = c.zero;
  store_octets<true>(p, vector, v, zero);
}

/* Slow path, run after all others: true divisions, with one scale, or with one for each element from `at` on. */
template <int in> __device__ __noinline__ static void store_odd(const problem &p, uint32_t vector, float scale, int zero_point)
{
  constexpr int V = per_vector<in>;
  float v[V];
  int zero[V];
  vector_open<in>(v, 0, ((const uint4 *)p.x)[vector]);
#pragma unroll
  for (int i = 0; i < V; i++) {
    v[i] /= scale;
    zero[i] = zero_point;
  }
  store_octets<false>(p, vector, v, zero);
}
template <int in> __device__ __noinline__ static void store_odd_each(const problem &p, uint32_t vector, int64_t at)
{
  constexpr int V = per_vector<in>;
  float v[V], scale[V];
  int zero[V];
  vector_open<in>(v, 0, ((const uint4 *)p.x)[vector]);
  scales_beside(p, at, scale, zero);
#pragma unroll
  for (int i = 0; i < V; i++) v[i] /= scale[i];
  store_octets<false>(p, vector, v, zero);
}

/* Quantizes a single element; returns its magnitude. */
template <int in> __device__ __forceinline__ uint32_t store_last(const problem &p, int64_t i, float scale, int zero)
{
  const float x = element_load<float>(p.x, i, in), q = x / scale;
  p.y[i] = (uint8_t)(is_f8(p.y_dtype) ? f8_octets(q, 0, 0, 0, p.y_dtype == QN_E4M3 ? __NV_E4M3 : __NV_E5M2)
                                      : join(level(q == q ? q : 0, zero), 0, 0, 0, p.y_dtype));
  return __float_as_uint(x) & 0x7fffffffu;
}

/* Computes the scale from the largest magnitude; one thread writes it. */
__device__ __forceinline__ float scale_make(const problem &p, uint32_t most, int64_t at, bool writes)
{
  float amax = __uint_as_float(most), scale;
  if (p.scale_dtype == QN_E8M0) {
    uint8_t power = power_scale(amax, p.y_dtype);
    if (writes) ((uint8_t *)p.scale)[at] = power;
    scale = e8m0_to_float(power);
  } else {
    const float by = quantize_largest<float>(p.y_dtype), q = amax * (1 / by);
    /* equals the division: checked exhaustively */
    scale = amax > 0x1p-60f && amax < 0x1p60f ? fmaf(fmaf(-by, q, amax), 1 / by, q) : plain_scale(amax, p.y_dtype);
    if (writes) ((float *)p.scale)[at] = scale;
  }
  if (writes && p.amax) ((float *)p.amax)[at] = amax;
  return scale;
}

/* Maximum over a block's threads. */
template <int threads = THREADS> __device__ __forceinline__ uint32_t among_threads(uint32_t most)
{
  __shared__ uint32_t part[threads / 32];
  uint32_t all[1] = { most };
  among_lanes(all, 32);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = all[0];
  __syncthreads();
  for (int w = 0; w < threads / 32; w++) all[0] = max(all[0], part[w]);
  return all[0];
}
/* Maximum over all blocks of the (cooperative) grid. */
__device__ __forceinline__ uint32_t among_blocks(const problem &p, uint32_t most)
{
  __shared__ uint32_t all;
  if (threadIdx.x == 0) p.part[blockIdx.x] = all = most;
  blocks_meet(p.met, gridDim.x, 1);
  for (uint32_t i = threadIdx.x; i < gridDim.x; i += blockDim.x) atomicMax(&all, __ldcg(p.part + i));
  __syncthreads();
  blocks_leave(p.met, gridDim.x, 1);
  return all;
}

/* Programmatic dependent launch: the first kernel lets the second start early, which waits before it uses the first's results. */
__device__ __forceinline__ void let_second_begin()
{
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}
__device__ __forceinline__ void wait_for_first()
{
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
