/* quantize_packed.cu -- numbers in 8 bits and back, of packed tensors: 16 bytes of floats by a thread at a time, each read once.
 *
 *   spread   scales are given: one for all, or for blocks of whole vectors; with amax of the whole tensor, if that is wanted
 *   each     scales are given: one for each element of the last dim
 *   lanes    scales are made: a block is a few neighbouring lanes' vectors (MX: 32 elements)
 *   tiles    scales are made: a block is a row or a tile that a warp or a block of threads keeps in its registers
 *   columns  scales are made: a block is up to 32 rows of one column
 *   extreme  and, where it fits none, one for the whole tensor, made in a pass of its own before spread
 *
 * What limits these is how many instructions an element costs: 16-bit magnitudes are compared two at a time, and a vector whose
 * largest says that nothing in it is odd goes without questions. A quotient is the division's, correctly rounded, for the price of
 * three multiplications: by the reciprocal, then corrected by its exact remainder (Markstein 1990). What is rounded then lies within
 * 1.5 2^-24 units of the last place of the true quotient; all pairs of significands whose quotient is so near to a tie, 93 million,
 * have been tried. By odd scales, and of infinities, the division itself is taken. */
#include "quantize_packed.h"
#include "quantize.cuh"
#include "vector.cuh"

enum { THREADS = CUDA_QUANTIZE_THREADS, U = CUDA_QUANTIZE_VECTORS, LEVELS = CUDA_QUANTIZE_LEVELS, COLUMN_ROWS = CUDA_QUANTIZE_COLUMN };
template <int dtype> constexpr int per_vector = vector_per_16<dtype>;

using problem = cuda_quantization;

/* ---- magnitudes, as the bits of f32 or of both halves of a word, among which NaN is the largest -------------- */

__device__ __forceinline__ uint32_t larger_halves(uint32_t a, uint32_t b) { return __vmaxs2(a, b); }

template <int in> __device__ __forceinline__ uint32_t largest(uint4 q)
{
  uint32_t m = in == QN_F32 ? 0x7fffffffu : 0x7fff7fffu, a = q.x & m, b = q.y & m, c = q.z & m, d = q.w & m;
  return in == QN_F32 ? max(max(a, b), max(c, d)) : larger_halves(larger_halves(a, b), larger_halves(c, d));
}
template <int in> __device__ __forceinline__ uint32_t larger(uint32_t a, uint32_t b) { return in == QN_F32 ? max(a, b) : larger_halves(a, b); }
/* As the bits of one f32. */
template <int in> __device__ __forceinline__ uint32_t magnitude(uint32_t most)
{
  uint32_t half = max(most & 0xffff, most >> 16);
  return in == QN_F32 ? most : in == QN_BF16 ? half << 16 : __float_as_uint(f16_to_float((uint16_t)half));
}
/* Of several at once, whose shuffles then overlap. */
template <int N> __device__ __forceinline__ void among_lanes(uint32_t (&most)[N], uint32_t lanes)
{
  for (uint32_t o = lanes / 2; o; o >>= 1)
#pragma unroll
    for (int i = 0; i < N; i++) most[i] = max(most[i], __shfl_xor_sync(~0u, most[i], o));
}

/* ---- scales -------------------------------------------------------------------------------------------------- */

struct scaler {
  float s, r, limit;                      /* limit: of magnitudes whose quotients need no question; NaN: of none */
  int   zero;
  __device__ __forceinline__ void set(const problem &p, float scale, int zero_point)
  {
    bool plain = p.powers ? scale == scale : scale > 0x1p-60f && scale < 0x1p60f;
    s = scale;
    if (p.powers) {                       /* 2^-127 to 2^127 both */
      r = __uint_as_float(max(0x7f000000u - (__float_as_uint(scale) & 0x7f800000u), 0x00400000u));
    } else {                              /* what __frcp_rn does, but for the question whether scale is plain */
      asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(scale));
      r = fmaf(fmaf(-scale, r, 1), r, r);
    }
    limit = !plain ? __uint_as_float(0x7fc00000u) : p.powers ? INFINITY : 0x1p60f;
    zero = zero_point;
  }
  /* The sign of 0 is kept. */
  __device__ __forceinline__ float quotient(float x) const
  {
    float q = x * r;
    return fmaf(fmaf(q, s, -x), -r, q);
  }
};
template <int V> __device__ __forceinline__ void quotients(const problem &p, float (&v)[V], const scaler &c)
{
  if (p.powers) {                         /* whose reciprocals are exact */
#pragma unroll
    for (int i = 0; i < V; i++) v[i] *= c.r;
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = c.quotient(v[i]);
  }
}

template <int V> __device__ __forceinline__ void quotients_each(const problem &p, float (&v)[V], const scaler (&c)[V])
{
  if (p.powers) {
#pragma unroll
    for (int i = 0; i < V; i++) v[i] *= c[i].r;
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = c[i].quotient(v[i]);
  }
}

/* Of the dtypes there are here, so that no code is made for others. */
__device__ __forceinline__ float scale_load(const problem &p, int64_t at)
{
  if (p.scale_dtype == QN_F32) return ((const float *)p.scale)[at];
  if (p.scale_dtype == QN_E8M0) return e8m0_to_float(((const uint8_t *)p.scale)[at]);
  uint16_t h = ((const uint16_t *)p.scale)[at];
  return p.scale_dtype == QN_BF16 ? bf16_to_float(h) : f16_to_float(h);
}
__device__ __forceinline__ int zero_load(const problem &p, int64_t at)
{
  return !p.zero ? 0 : p.y_dtype == QN_U8 ? p.zero[at] : (int8_t)p.zero[at];
}

/* Several scales and zero points: all on their way before the first is wanted. */
template <int N> __device__ __forceinline__ void scales_load(const problem &p, const uint32_t (&at)[N], float (&scale)[N], int (&zero)[N])
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
    for (int i = 0; i < N; i++) zero[i] = zero_load(p, at[i]);
}

/* ---- V elements to V octets and back ------------------------------------------------------------------------- */

__device__ __forceinline__ bool is_f8(uint32_t dtype) { return dtype == QN_E4M3 || dtype == QN_E5M2; }

/* round(q) + zero, before it is saturated: rounded by a sum whose last place is 1. What is far above stays so as an integer. */
__device__ __forceinline__ int level(float q, int zero) { return __float_as_int(fmaxf(q, -0x1p22f) + 0x1.8p23f) + (zero - 0x4b400000); }
/* Saturates, a is the first octet. */
__device__ __forceinline__ uint32_t join(int a, int b, int c, int d, uint32_t dtype)
{
  uint32_t word;
  if (dtype == QN_U8) asm("{.reg .b32 t; cvt.pack.sat.u8.s32.b32 t, %4, %3, 0; cvt.pack.sat.u8.s32.b32 %0, %2, %1, t;}" : "=r"(word) : "r"(a), "r"(b), "r"(c), "r"(d));
  else asm("{.reg .b32 t; cvt.pack.sat.s8.s32.b32 t, %4, %3, 0; cvt.pack.sat.s8.s32.b32 %0, %2, %1, t;}" : "=r"(word) : "r"(a), "r"(b), "r"(c), "r"(d));
  return word;
}
__device__ __forceinline__ uint32_t f8_octets(float a, float b, float c, float d, __nv_fp8_interpretation_t kind)
{
  return __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, kind)
       | (uint32_t)__nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, kind) << 16;
}
/* plain: all quotients are numbers. */
template <bool plain, int V> __device__ __forceinline__ void store_octets(const problem &p, uint32_t vector, const float (&q)[V], const int (&zero)[V])
{
  uint32_t word[V / 4], dtype = p.y_dtype;
  if (is_f8(dtype)) {
#pragma unroll
    for (int i = 0; i < V; i += 4)
      word[i / 4] = dtype == QN_E4M3 ? f8_octets(q[i], q[i + 1], q[i + 2], q[i + 3], __NV_E4M3) : f8_octets(q[i], q[i + 1], q[i + 2], q[i + 3], __NV_E5M2);
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

/* A vector by one scale; whether it must be made again. most: its, or its block's, largest magnitude. */
template <int in> __device__ __forceinline__ bool store_scaled(const problem &p, uint32_t vector, uint4 word, uint32_t most, const scaler &c)
{
  constexpr int V = per_vector<in>;
  float v[V];
  int zero[V];
  vector_open<in>(v, 0, word);
  quotients(p, v, c);
#pragma unroll
  for (int i = 0; i < V; i++) zero[i] = c.zero;
  store_octets<true>(p, vector, v, zero);
  return !(__uint_as_float(most) < c.limit);
}

/* What is not plain is made again when the others are done, out of their way: by one scale, or by one for each element from this
 * place on. */
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
  float v[V];
  int zero[V];
  vector_open<in>(v, 0, ((const uint4 *)p.x)[vector]);
#pragma unroll
  for (int i = 0; i < V; i++) {
    v[i] /= scale_load(p, at + i);
    zero[i] = zero_load(p, at + i);
  }
  store_octets<false>(p, vector, v, zero);
}

/* The scale that a largest magnitude makes; written by one thread. */
__device__ __forceinline__ float scale_make(const problem &p, uint32_t most, int64_t at, bool writes)
{
  float amax = __uint_as_float(most), scale;
  if (p.scale_dtype == QN_E8M0) {
    uint8_t power = power_scale(amax, p.y_dtype);
    if (writes) ((uint8_t *)p.scale)[at] = power;
    scale = e8m0_to_float(power);
  } else {
    scale = plain_scale(amax, p.y_dtype);
    if (writes) ((float *)p.scale)[at] = scale;
  }
  if (writes && p.amax) ((float *)p.amax)[at] = amax;
  return scale;
}

/* The largest of a block's threads, in its first. */
__device__ __forceinline__ uint32_t among_threads(uint32_t most)
{
  __shared__ uint32_t part[THREADS / 32];
  uint32_t all[1] = { most };
  among_lanes(all, 32);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = all[0];
  __syncthreads();
  for (int w = 0; w < THREADS / 32; w++) all[0] = max(all[0], part[w]);
  return all[0];
}

/* ---- given scales -------------------------------------------------------------------------------------------- */

/* Of a thread's vectors. */
__device__ __forceinline__ void scales_spread(const problem &p, uint32_t first, float (&scale)[U], int (&zero)[U])
{
  uint32_t rest[U], at[U];
#pragma unroll
  for (int u = 0; u < U; u++) {
    uint32_t vector = first + u * THREADS;
    rest[u] = u < p.steps && vector < p.vectors ? vector : 0;
    at[u] = 0;
  }
#pragma unroll
  for (int l = 0; l < LEVELS; l++) {
    if (l >= p.levels) break;
#pragma unroll
    for (int u = 0; u < U; u++) {
      uint32_t index, outer = cuda_quotient(rest[u], p.dim[l], &index);
      at[u] += cuda_quotient(index, p.block[l]) * p.stride[l];
      rest[u] = outer;
    }
  }
  scales_load(p, at, scale, zero);
}
/* Of the V columns from here on. */
template <int V> __device__ __forceinline__ void scales_beside(const problem &p, uint32_t first, float (&scale)[V], int (&zero)[V])
{
  uint32_t at[V];
#pragma unroll
  for (int i = 0; i < V; i++) at[i] = first + i;
  scales_load(p, at, scale, zero);
}

/* amax, if it is wanted, holds 0 before. The last come first, which a pass before may have left in the cache. */
template <int in> __global__ static void __launch_bounds__(THREADS) quantize_spread(const __grid_constant__ problem p)
{
  constexpr int V = per_vector<in>;
  const uint32_t first = (gridDim.x - 1 - blockIdx.x) * THREADS * p.steps + threadIdx.x;
  uint4 word[U];
  float scale[U];
  int zero[U];
#pragma unroll
  for (int u = 0; u < U; u++)
    if (u < p.steps && first + u * THREADS < p.vectors) word[u] = __ldcs((const uint4 *)p.x + first + u * THREADS);
  scales_spread(p, first, scale, zero);
  scaler c;
  uint32_t most = 0, odd = 0;
#pragma unroll
  for (int u = 0; u < U; u++) {
    uint32_t vector = first + u * THREADS;
    if (u >= p.steps || vector >= p.vectors) break;
    uint32_t m = magnitude<in>(largest<in>(word[u]));
    most = max(most, m);
    if (u == 0 || p.levels) c.set(p, scale[u], zero[u]);
    if (store_scaled<in>(p, vector, word[u], m, c)) odd |= 1u << u;
  }
#pragma unroll
  for (int u = 0; u < U; u++)
    if (odd >> u & 1) store_odd<in>(p, first + u * THREADS, scale[u], zero[u]);
  if (p.tail && blockIdx.x == 0 && threadIdx.x < p.tail) {         /* of a tensor with one scale */
    int64_t i = (int64_t)p.vectors * V + threadIdx.x;
    float x = element_load<float>(p.x, i, in), q = x / scale[0];
    most = max(most, __float_as_uint(x) & 0x7fffffffu);
    p.y[i] = (uint8_t)(is_f8(p.y_dtype) ? f8_octets(q, 0, 0, 0, p.y_dtype == QN_E4M3 ? __NV_E4M3 : __NV_E5M2) : join(level(q == q ? q : 0, zero[0]), 0, 0, 0, p.y_dtype));
  }
  if (!p.amax) return;
  most = among_threads(most);
  if (threadIdx.x == 0) atomicMax((uint32_t *)p.amax, most);
}

/* A thread has a vector of columns in p.high rows, which share the columns' scales. */
template <int in> __global__ static void __launch_bounds__(THREADS, 4) quantize_each(const __grid_constant__ problem p)
{
  constexpr int V = per_vector<in>;
  uint32_t id = blockIdx.x * THREADS + threadIdx.x, down = cuda_quotient(id, p.across), column = id - down * p.across.by;
  uint32_t row = down * p.high, end = min(p.rows, row + p.high), at = column * V;
  if (row >= p.rows) return;
  scaler c[V];
  int zero[V];
  float scale[V], limit = 0;
  scales_beside(p, at, scale, zero);
#pragma unroll
  for (int i = 0; i < V; i++) {
    c[i].set(p, scale[i], 0);
    limit = i && c[i].limit != limit ? __uint_as_float(0x7fc00000u) : c[i].limit;          /* alike, or NaN */
  }
  uint32_t first = row, odd = 0;
  for (; row < end; row += U) {
    uint4 word[U];
#pragma unroll
    for (int u = 0; u < U; u++)
      if (row + u < end) word[u] = __ldcs((const uint4 *)p.x + (row + u) * p.pitch + column);
#pragma unroll
    for (int u = 0; u < U; u++) {
      if (row + u >= end) break;
      float v[V];
      vector_open<in>(v, 0, word[u]);
      quotients_each(p, v, c);
      store_octets<true>(p, (row + u) * p.pitch + column, v, zero);
      if (!(__uint_as_float(magnitude<in>(largest<in>(word[u]))) < limit)) odd |= 1u << (row + u - first);
    }
  }
  for (; odd; odd &= odd - 1) store_odd_each<in>(p, (first + __ffs(odd) - 1) * p.pitch + column, at);
}

template <int V> __device__ __forceinline__ void widen_f8(float (&v)[V], const uint32_t (&word)[V / 4], __nv_fp8_interpretation_t kind)
{
#pragma unroll
  for (int i = 0; i < V; i += 2) {
    const __half2_raw h = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)(word[i / 4] >> i % 4 * 8), kind);
    v[i] = f16_to_float(h.x), v[i + 1] = f16_to_float(h.y);
  }
}
/* V octets, less a zero point each or the first. */
template <bool each, int V> __device__ __forceinline__ void widen(const problem &p, float (&v)[V], const uint32_t (&word)[V / 4], const int *zero)
{
  if (p.y_dtype == QN_E4M3) return widen_f8(v, word, __NV_E4M3);
  if (p.y_dtype == QN_E5M2) return widen_f8(v, word, __NV_E5M2);
#pragma unroll
  for (int i = 0; i < V; i++) {
    const int octet = (int)(word[i / 4] >> i % 4 * 8);
    v[i] = (float)((p.y_dtype == QN_U8 ? (int)(uint8_t)octet : (int)(int8_t)octet) - zero[each ? i : 0]);
  }
}
/* By a scale each, or by the first. */
template <int out, bool each> __device__ __forceinline__ void store_widened(const problem &p, uint32_t vector, uint2 octets, const float *scale, const int *zero)
{
  constexpr int V = per_vector<out>;
  const uint32_t word[2] = { octets.x, octets.y };
  float v[V];
  widen<each>(p, v, (const uint32_t (&)[V / 4])word, zero);
#pragma unroll
  for (int i = 0; i < V; i++) v[i] *= scale[each ? i : 0];
  *((uint4 *)p.x + vector) = vector_close<out>(v, 0);
}
template <int out> __device__ __forceinline__ uint2 load_octets(const problem &p, uint32_t vector)
{
  if (per_vector<out> == 8) return __ldcs((const uint2 *)p.y + vector);
  return make_uint2(__ldcs((const uint32_t *)p.y + vector), 0);
}

template <int out> __global__ static void __launch_bounds__(THREADS) dequantize_spread(const __grid_constant__ problem p)
{
  uint32_t first = blockIdx.x * THREADS * p.steps + threadIdx.x;
  uint2 word[U];
#pragma unroll
  for (int u = 0; u < U; u++)
    if (u < p.steps && first + u * THREADS < p.vectors) word[u] = load_octets<out>(p, first + u * THREADS);
  float scale[U];
  int zero[U];
  scales_spread(p, first, scale, zero);
#pragma unroll
  for (int u = 0; u < U; u++) {
    uint32_t vector = first + u * THREADS;
    if (u >= p.steps || vector >= p.vectors) break;
    store_widened<out, false>(p, vector, word[u], scale + u, zero + u);
  }
  if (p.tail && blockIdx.x == 0 && threadIdx.x < p.tail) {
    int64_t i = (int64_t)p.vectors * per_vector<out> + threadIdx.x;
    const uint32_t word[1] = { p.y[i] };
    float v[4];
    widen<false>(p, v, word, zero);
    element_store((void *)p.x, i, out, v[0] * scale[0]);
  }
}

template <int out> __global__ static void __launch_bounds__(THREADS) dequantize_each(const __grid_constant__ problem p)
{
  constexpr int V = per_vector<out>;
  uint32_t id = blockIdx.x * THREADS + threadIdx.x, down = cuda_quotient(id, p.across), column = id - down * p.across.by;
  uint32_t row = down * p.high, end = min(p.rows, row + p.high);
  if (row >= p.rows) return;
  float scale[V];
  int zero[V];
  scales_beside(p, column * V, scale, zero);
  for (; row < end; row += U) {
    uint2 word[U];
#pragma unroll
    for (int u = 0; u < U; u++)
      if (row + u < end) word[u] = load_octets<out>(p, (row + u) * p.pitch + column);
#pragma unroll
    for (int u = 0; u < U; u++)
      if (row + u < end) store_widened<out, true>(p, (row + u) * p.pitch + column, word[u], scale, zero);
  }
}

/* ---- scales made on the way ---------------------------------------------------------------------------------- */

template <int in> __global__ static void __launch_bounds__(THREADS) quantize_lanes(const __grid_constant__ problem p)
{
  const uint32_t first = blockIdx.x * THREADS * p.steps + threadIdx.x;
  uint4 word[U];
  uint32_t most[U], odd = 0;
  scaler c[U];
#pragma unroll
  for (int u = 0; u < U; u++)
    word[u] = u < p.steps && first + u * THREADS < p.vectors ? __ldcs((const uint4 *)p.x + first + u * THREADS) : make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int u = 0; u < U; u++) most[u] = magnitude<in>(largest<in>(word[u]));
  among_lanes(most, p.lanes);
#pragma unroll
  for (int u = 0; u < U; u++) {
    uint32_t vector = first + u * THREADS;
    if (u >= p.steps || vector >= p.vectors) break;
    c[u].set(p, scale_make(p, most[u], cuda_quotient(vector, p.wide), vector % p.lanes == 0), 0);
    if (store_scaled<in>(p, vector, word[u], most[u], c[u])) odd |= 1u << u;
  }
#pragma unroll
  for (int u = 0; u < U; u++)
    if (odd >> u & 1) store_odd<in>(p, first + u * THREADS, c[u].s, 0);
}

/* The vectors of a tile that are a thread's, one after the other. */
struct walk {
  uint32_t r, c;
  __device__ __forceinline__ walk(const problem &p, uint32_t t) { r = cuda_quotient(t, p.wide), c = t - r * p.wide.by; }
  __device__ __forceinline__ void on(const problem &p)
  {
    r += p.step_rows, c += p.step_columns;
    if (c >= p.wide.by) c -= p.wide.by, r++;
  }
};

/* A tile of p.high rows and p.wide vectors, the last of each dim smaller: by a warp, or by a block of threads. */
template <int in, int threads> __global__ static void __launch_bounds__(threads < 128 ? 128 : threads) quantize_tiles(const __grid_constant__ problem p)
{
  constexpr int K = CUDA_QUANTIZE_KEPT;
  constexpr int tiles = threads < 128 ? 128 / threads : 1;
  __shared__ uint32_t part[threads / 32];
  uint32_t tile = blockIdx.x * tiles + threadIdx.x / threads, t = threadIdx.x % threads, all[1] = {}, odd = 0;
  if (tile >= p.tiles) return;            /* whole warps */
  uint32_t down = cuda_quotient(tile, p.across), row = down * p.high, column = (tile - down * p.across.by) * p.wide.by;
  uint32_t high = min(p.high, p.rows - row), wide = min(p.wide.by, p.pitch - column), steps = p.steps, base = row * p.pitch + column;
  uint4 word[K];
  walk from(p, t), to = from;
#pragma unroll
  for (int k = 0; k < K; k++, from.on(p)) {
    if (k >= steps) break;
    word[k] = from.r < high && from.c < wide ? __ldcs((const uint4 *)p.x + base + from.r * p.pitch + from.c) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (k >= steps) break;
    all[0] = larger<in>(all[0], largest<in>(word[k]));
  }
  all[0] = magnitude<in>(all[0]);
  among_lanes(all, 32);
  if (threads > 32) {
    if (t % 32 == 0) part[t / 32] = all[0];
    __syncthreads();
    all[0] = part[t % (threads / 32)];
    among_lanes(all, 32);
  }
  scaler s;
  s.set(p, scale_make(p, all[0], tile, t == 0), 0);
#pragma unroll
  for (int k = 0; k < K; k++, to.on(p)) {
    if (k >= steps) break;
    if (to.r < high && to.c < wide && store_scaled<in>(p, base + to.r * p.pitch + to.c, word[k], all[0], s)) odd = 1;
  }
  if (!odd) return;
  to = walk(p, t);
  for (uint32_t k = 0; k < steps; k++, to.on(p))
    if (to.r < high && to.c < wide) store_odd<in>(p, base + to.r * p.pitch + to.c, s.s, 0);
}

/* Each column of p.high rows is a block: a thread has a vector of columns and every fourth row, the other rows are three other warps'. */
template <int in> __global__ static void __launch_bounds__(128) quantize_columns(const __grid_constant__ problem p)
{
  constexpr int V = per_vector<in>;
  __shared__ uint4 part[4][32];
  uint32_t down = cuda_quotient(blockIdx.x, p.across), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t c = (blockIdx.x - down * p.across.by) * 32 + lane, row = down * p.high, end = min(p.rows, row + p.high);
  uint4 word[COLUMN_ROWS / 4], most = make_uint4(0, 0, 0, 0);
  constexpr uint32_t m = in == QN_F32 ? 0x7fffffffu : 0x7fff7fffu;
  auto join = [&](uint4 q) {
    most = make_uint4(larger<in>(most.x, q.x & m), larger<in>(most.y, q.y & m), larger<in>(most.z, q.z & m), larger<in>(most.w, q.w & m));
  };
#pragma unroll
  for (int k = 0; k < COLUMN_ROWS / 4; k++) {
    uint32_t r = row + warp + 4 * k;
    word[k] = r < end && c < p.pitch ? __ldcs((const uint4 *)p.x + r * p.pitch + c) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < COLUMN_ROWS / 4; k++) join(word[k]);
  part[warp][lane] = most;
  __syncthreads();
  if (c >= p.pitch) end = row;            /* no column of x */
#pragma unroll
  for (int w = 0; w < 4; w++) join(part[w][lane]);
  float all[V];
  vector_open<in>(all, 0, most);
  scaler s[V];
  bool plain = true;
  int64_t first = ((int64_t)down * p.pitch + c) * V;
#pragma unroll
  for (int i = 0; i < V; i++) {
    s[i].set(p, scale_make(p, __float_as_uint(all[i]), first + i, warp == 0 && row < end), 0);
    plain &= all[i] < s[i].limit;
  }
  if (__syncthreads_or(!plain)) {         /* and the scales have been written */
#pragma unroll
    for (int k = 0; k < COLUMN_ROWS / 4; k++)
      if (row + warp + 4 * k < end) store_odd_each<in>(p, (row + warp + 4 * k) * p.pitch + c, first);
    return;
  }
#pragma unroll
  for (int k = 0; k < COLUMN_ROWS / 4; k++) {
    uint32_t r = row + warp + 4 * k;
    if (r >= end) break;
    float v[V];
    int zero[V] = {};
    vector_open<in>(v, 0, word[k]);
    quotients_each(p, v, s);
    store_octets<true>(p, r * p.pitch + c, v, zero);
  }
}

template <int in> __global__ static void __launch_bounds__(THREADS) quantize_extreme(const __grid_constant__ problem p)
{
  uint32_t most = 0, step = gridDim.x * THREADS;
  for (uint32_t first = blockIdx.x * THREADS + threadIdx.x; first < p.vectors; first += step * U) {
    uint4 word[U];
#pragma unroll
    for (int u = 0; u < U; u++)
      word[u] = first + u * step < p.vectors ? ((const uint4 *)p.x)[first + u * step] : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int u = 0; u < U; u++) most = larger<in>(most, largest<in>(word[u]));
  }
  most = magnitude<in>(most);
  if (blockIdx.x == 0 && threadIdx.x < p.tail)
    most = max(most, __float_as_uint(element_load<float>(p.x, (int64_t)p.vectors * per_vector<in> + threadIdx.x, in)) & 0x7fffffffu);
  most = among_threads(most);
  if (threadIdx.x) return;
  atomicMax(&p.counters[0], most);
  __threadfence();
  if (atomicAdd(&p.counters[1], 1) + 1 < gridDim.x) return;
  __threadfence();
  most = atomicExch(&p.counters[0], 0);   /* the last of the blocks has the largest */
  p.counters[1] = 0;
  scale_make(p, most, 0, true);
}

template <int dtype> static cuda_quantize_kernels kernels_of()
{
  return { { (const void *)quantize_spread<dtype>, (const void *)quantize_each<dtype> },
           { (const void *)dequantize_spread<dtype>, (const void *)dequantize_each<dtype> },
           (const void *)quantize_lanes<dtype>,
           { (const void *)quantize_tiles<dtype, 32>, (const void *)quantize_tiles<dtype, 128>, (const void *)quantize_tiles<dtype, 256>,
             (const void *)quantize_tiles<dtype, 512>, (const void *)quantize_tiles<dtype, 1024> },
           (const void *)quantize_columns<dtype>, (const void *)quantize_extreme<dtype> };
}
cuda_quantize_kernels cuda_quantize_kernels_of(uint32_t dtype)
{
  return dtype == QN_F32 ? kernels_of<QN_F32>() : dtype == QN_F16 ? kernels_of<QN_F16>() : kernels_of<QN_BF16>();
}
