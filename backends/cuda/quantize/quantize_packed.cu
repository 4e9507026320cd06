/* quantize_packed.cu -- quantize, dequantize and quantize_dynamic of packed tensors: 16 bytes of floats a thread and step.
 *
 *   spread   given scales: one for all, or one for each block of whole vectors; optionally amax of the whole tensor
 *   each     given scales: one for each element of the last dim
 *   lanes    dynamic scales: a block is a few neighbouring lanes' vectors (MX: 32 elements)
 *   tiles    dynamic scales: a block is a row or tile that a warp or thread block holds in registers
 *   columns  dynamic scales: a block is up to 32 rows of one column
 *   extreme  dynamic, one scale for the whole tensor: a first pass for amax, then spread
 *   kept     the same for tensors that (mostly) fit on chip: that part is read only once
 *
 * The limit is instructions per element: 16-bit magnitudes are compared two at a time, and a vector whose largest magnitude is
 * below the limit needs no per-element checks. */
#include "quantize_packed.cuh"

/* ---- given scales -------------------------------------------------------------------------------------------- */

/* Scales and zero points of a thread's vectors. */
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
/* One scale for all, from the partial maxima of the kernel before. */
__device__ __forceinline__ void scale_join(const problem &p, float (&scale)[U], int (&zero)[U])
{
  uint32_t most = 0;
  wait_for_first();
  for (uint32_t i = threadIdx.x; i < p.parts; i += THREADS) most = max(most, p.part[i]);
  const float one = scale_make(p, among_threads(most), 0, blockIdx.x == 0 && threadIdx.x == 0);
#pragma unroll
  for (int u = 0; u < U; u++) scale[u] = one, zero[u] = 0;
}

/* Last vectors first: the pass before left those in L2. amax must be 0 before the atomicMax (wait_for_first). */
template <int in> __global__ static void __launch_bounds__(THREADS) quantize_spread(const __grid_constant__ problem p)
{
  const uint32_t first = (gridDim.x - 1 - blockIdx.x) * THREADS * p.steps + threadIdx.x;
  uint4 word[U];
  float scale[U];
  int zero[U];
#pragma unroll
  for (int u = 0; u < U; u++)
    if (u < p.steps && first + u * THREADS < p.vectors) word[u] = __ldg((const uint4 *)p.x + first + u * THREADS);
  if (p.parts) scale_join(p, scale, zero);
  else scales_spread(p, first, scale, zero);
  scaler c;
  bool plain;
  uint32_t most = 0, odd = 0;
#pragma unroll
  for (int u = 0; u < U; u++) {
    uint32_t vector = first + u * THREADS;
    if (u >= p.steps || vector >= p.vectors) break;
    uint32_t m = magnitude<in>(largest<in>(word[u]));
    most = max(most, m);
    if (u == 0 || p.levels) plain = scaler_set(p, c, scale[u], zero[u]);
    store_scaled<in>(p, vector, word[u], c);
    if (!(plain & __uint_as_float(m) < limit_of(p))) odd |= 1u << u;
  }
#pragma unroll
  for (int u = 0; u < U; u++)
    if (odd >> u & 1) store_odd<in>(p, first + u * THREADS, scale[u], zero[u]);
  if (p.tail && blockIdx.x == 0 && threadIdx.x < p.tail)           /* only with one scale for the tensor */
    most = max(most, store_last<in>(p, (int64_t)p.vectors * per_vector<in> + threadIdx.x, scale[0], zero[0]));
  if (!p.amax || p.parts) return;
  most = among_threads(most);
  if (threadIdx.x) return;
  wait_for_first();
  atomicMax((uint32_t *)p.amax, most);
}

/* A thread's vector of columns in up to U rows, which share the columns' scales. */
struct strip {
  uint32_t column, first;                 /* vector number: in the row, in the tensor */
  int      rows;
  __device__ __forceinline__ strip(const problem &p)
  {
    uint32_t id = blockIdx.x * THREADS + threadIdx.x, row = cuda_quotient(id, p.across, &column) * U;
    first = row * p.pitch + column;
    rows = min((int)p.rows - (int)row, (int)U);
  }
};

template <int in> __global__ static void __launch_bounds__(THREADS, 4) quantize_each(const __grid_constant__ problem p)
{
  constexpr int V = per_vector<in>;
  const strip at(p);
  if (at.rows <= 0) return;
  uint4 word[U];
#pragma unroll
  for (int u = 0; u < U; u++)
    if (u < at.rows) word[u] = __ldg((const uint4 *)p.x + at.first + u * p.pitch);
  scaler c[V];
  int zero[V];
  float scale[V];
  scales_beside(p, (int64_t)at.column * V, scale, zero);
  const bool plain = scalers_set(p, c, scale);
  uint32_t odd = 0;
#pragma unroll
  for (int u = 0; u < U; u++) {
    if (u >= at.rows) break;
    float v[V];
    vector_open<in>(v, 0, word[u]);
    quotients<true>(p, v, c);
    store_octets<true>(p, at.first + u * p.pitch, v, zero);
    if (!(plain & __uint_as_float(magnitude<in>(largest<in>(word[u]))) < limit_of(p))) odd |= 1u << u;
  }
  for (; odd; odd &= odd - 1) store_odd_each<in>(p, at.first + (__ffs(odd) - 1) * p.pitch, (int64_t)at.column * V);
}

template <int V> __device__ __forceinline__ void widen_f8(float (&v)[V], const uint32_t (&word)[V / 4], __nv_fp8_interpretation_t kind)
{
#pragma unroll
  for (int i = 0; i < V; i += 2) {
    const __half2_raw h = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)(word[i / 4] >> i % 4 * 8), kind);
    v[i] = f16_to_float(h.x), v[i + 1] = f16_to_float(h.y);
  }
}
/* Widens V 8-bit values and subtracts each one's zero point, or the first. */
template <bool each, int V>
__device__ __forceinline__ void widen(const problem &p, float (&v)[V], const uint32_t (&word)[V / 4], const int *zero)
{
  if (p.y_dtype == QN_E4M3) return widen_f8(v, word, __NV_E4M3);
  if (p.y_dtype == QN_E5M2) return widen_f8(v, word, __NV_E5M2);
#pragma unroll
  for (int i = 0; i < V; i++) {
    const int octet = (int)(word[i / 4] >> i % 4 * 8);
    v[i] = (float)((p.y_dtype == QN_U8 ? (int)(uint8_t)octet : (int)(int8_t)octet) - zero[each ? i : 0]);
  }
}
/* With a scale each, or the first. */
template <int out, bool each>
__device__ __forceinline__ void store_widened(const problem &p, uint32_t vector, uint2 octets, const float *scale, const int *zero)
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
  if (per_vector<out> == 8) return __ldg((const uint2 *)p.y + vector);
  return make_uint2(__ldg((const uint32_t *)p.y + vector), 0);
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
  const strip at(p);
  if (at.rows <= 0) return;
  uint2 word[U];
#pragma unroll
  for (int u = 0; u < U; u++)
    if (u < at.rows) word[u] = load_octets<out>(p, at.first + u * p.pitch);
  float scale[V];
  int zero[V];
  scales_beside(p, (int64_t)at.column * V, scale, zero);
#pragma unroll
  for (int u = 0; u < U; u++)
    if (u < at.rows) store_widened<out, true>(p, at.first + u * p.pitch, word[u], scale, zero);
}

/* ---- dynamic scales --------------------------------------------------------------------------------------------------------- */

template <int in> __global__ static void __launch_bounds__(THREADS, 6) quantize_lanes(const __grid_constant__ problem p)
{
  const uint32_t first = blockIdx.x * THREADS * p.steps + threadIdx.x;
  uint4 word[U];
  uint32_t most[U], odd = 0;
  scaler c[U];
#pragma unroll
  for (int u = 0; u < U; u++)
    word[u] = u < p.steps && first + u * THREADS < p.vectors ? __ldg((const uint4 *)p.x + first + u * THREADS) : make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int u = 0; u < U; u++) most[u] = magnitude<in>(largest<in>(word[u]));
  among_lanes(most, p.lanes);
#pragma unroll
  for (int u = 0; u < U; u++) {
    uint32_t vector = first + u * THREADS;
    if (u >= p.steps || vector >= p.vectors) break;
    bool plain = scaler_set(p, c[u], scale_make(p, most[u], cuda_quotient(vector, p.wide), vector % p.lanes == 0), 0);
    store_scaled<in>(p, vector, word[u], c[u]);
    if (!(plain & __uint_as_float(most[u]) < limit_of(p))) odd |= 1u << u;
  }
#pragma unroll
  for (int u = 0; u < U; u++)
    if (odd >> u & 1) store_odd<in>(p, first + u * THREADS, c[u].s, 0);
}

/* Steps through a thread's vectors of a tile (row, column). */
struct walk {
  uint32_t r, c;
  __device__ __forceinline__ walk(const problem &p, uint32_t t) { r = cuda_quotient(t, p.wide), c = t - r * p.wide.by; }
  __device__ __forceinline__ void on(const problem &p)
  {
    r += p.step_rows, c += p.step_columns;
    if (c >= p.wide.by) c -= p.wide.by, r++;
  }
};

/* A tile of p.high rows and p.wide vectors (smaller at the edges), by a warp or a thread block. */
template <int in, int threads>
__global__ static void __launch_bounds__(threads < 128 ? 128 : threads) quantize_tiles(const __grid_constant__ problem p)
{
  constexpr int K = CUDA_QUANTIZE_KEPT;
  constexpr int tiles = threads < 128 ? 128 / threads : 1;
  __shared__ uint32_t part[threads / 32];
  uint32_t tile = blockIdx.x * tiles + threadIdx.x / threads, t = threadIdx.x % threads, all[1] = {};
  if (tile >= p.tiles) return;            /* whole warps leave */
  uint32_t down = cuda_quotient(tile, p.across), row = down * p.high, column = (tile - down * p.across.by) * p.wide.by;
  uint32_t high = min(p.high, p.rows - row), wide = min(p.wide.by, p.pitch - column), steps = p.steps, base = row * p.pitch + column;
  uint4 word[K];
  walk from(p, t), to = from;
#pragma unroll
  for (int k = 0; k < K; k++, from.on(p)) {
    if (k >= steps) break;
    word[k] = from.r < high && from.c < wide ? __ldg((const uint4 *)p.x + base + from.r * p.pitch + from.c) : make_uint4(0, 0, 0, 0);
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
  const bool plain = scaler_set(p, s, scale_make(p, all[0], tile, t == 0), 0) & __uint_as_float(all[0]) < limit_of(p);
#pragma unroll
  for (int k = 0; k < K; k++, to.on(p)) {
    if (k >= steps) break;
    if (to.r < high && to.c < wide) store_scaled<in>(p, base + to.r * p.pitch + to.c, word[k], s);
  }
  if (plain) return;
  to = walk(p, t);
  for (uint32_t k = 0; k < steps; k++, to.on(p))
    if (to.r < high && to.c < wide) store_odd<in>(p, base + to.r * p.pitch + to.c, s.s, 0);
}

/* Each column of p.high rows is a block: a thread has a vector of columns and every fourth row; the four warps share the rows. */
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
    word[k] = r < end && c < p.pitch ? __ldg((const uint4 *)p.x + r * p.pitch + c) : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < COLUMN_ROWS / 4; k++) join(word[k]);
  part[warp][lane] = most;
  __syncthreads();
  if (c >= p.pitch) end = row;            /* beyond x's columns */
#pragma unroll
  for (int w = 0; w < 4; w++) join(part[w][lane]);
  float all[V];
  vector_open<in>(all, 0, most);
  scaler s[V];
  float scale[V];
  int64_t first = ((int64_t)down * p.pitch + c) * V;
#pragma unroll
  for (int i = 0; i < V; i++) scale[i] = scale_make(p, __float_as_uint(all[i]), first + i, warp == 0 && row < end);
  bool plain = scalers_set(p, s, scale);
#pragma unroll
  for (int i = 0; i < V; i++) plain &= all[i] < limit_of(p);
  if (__syncthreads_or(!plain)) {         /* also a barrier: the scales have been written */
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
    quotients<true>(p, v, s);
    store_octets<true>(p, r * p.pitch + c, v, zero);
  }
}

template <int in> __global__ static void __launch_bounds__(THREADS) quantize_extreme(const __grid_constant__ problem p)
{
  let_second_begin();
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
  if (threadIdx.x == 0) p.part[blockIdx.x] = most;
}

/* Reads all of x for amax, then quantizes the last vectors, which are still in registers and shared memory. The first `again`
 * vectors are left to quantize_spread. */
template <int in> __global__ static void __launch_bounds__(KEEPERS, 1) quantize_kept(const __grid_constant__ problem p)
{
  extern __shared__ uint4 room[];
  const uint32_t t = threadIdx.x, step = gridDim.x * KEEPERS, first = blockIdx.x * KEEPERS + t;
  const uint4 *x = (const uint4 *)p.x, none = make_uint4(0, 0, 0, 0);
  uint32_t most = 0;
#pragma unroll 1
  for (uint32_t v = first; v < p.again; v += step * AT_ONCE) {
    uint4 word[AT_ONCE];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) word[u] = v + u * step < p.again ? x[v + u * step] : none;
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) most = larger<in>(most, largest<in>(word[u]));
  }
  const uint32_t mine = p.again + first;
#pragma unroll 1
  for (uint32_t k = 0; k < p.kept; k += U) {
    uint4 word[U];
#pragma unroll
    for (int u = 0; u < U; u++) word[u] = k + u < p.kept && mine + (k + u) * step < p.vectors ? __ldcs(x + mine + (k + u) * step) : none;
#pragma unroll
    for (int u = 0; u < U; u++) {
      most = larger<in>(most, largest<in>(word[u]));
      if (k + u < p.kept) room[(k + u) * KEEPERS + t] = word[u];
    }
  }
  const uint32_t held = mine + p.kept * step;
  uint4 word[HELD];
#pragma unroll
  for (int u = 0; u < HELD; u++) word[u] = held + u * step < p.vectors ? __ldcs(x + held + u * step) : none;
#pragma unroll
  for (int u = 0; u < HELD; u++) most = larger<in>(most, largest<in>(word[u]));
  most = magnitude<in>(most);
  const int64_t tail = (int64_t)p.vectors * per_vector<in> + t;
  const bool has_tail = blockIdx.x == 0 && t < p.tail;
  if (has_tail) most = max(most, __float_as_uint(element_load<float>(p.x, tail, in)) & 0x7fffffffu);
  most = among_blocks(p, among_threads<KEEPERS>(most));
  let_second_begin();

  const float scale = scale_make(p, most, 0, p.again == 0 && blockIdx.x == 0 && t == 0);
  scaler c;
  const bool plain = scaler_set(p, c, scale, 0) & __uint_as_float(most) < limit_of(p);
  if (has_tail) store_last<in>(p, tail, scale, 0);
  if (!plain) {
    for (uint32_t v = p.again + first; v < p.vectors; v += step) store_odd<in>(p, v, scale, 0);
    return;
  }
#pragma unroll
  for (int u = 0; u < HELD; u++)
    if (held + u * step < p.vectors) store_scaled<in>(p, held + u * step, word[u], c);
#pragma unroll 2
  for (uint32_t k = 0; k < p.kept; k++)
    if (mine + k * step < p.vectors) store_scaled<in>(p, mine + k * step, room[k * KEEPERS + t], c);
}

__global__ static void quantize_clear(const __grid_constant__ problem p)
{
  let_second_begin();
  if (threadIdx.x == 0) *(uint32_t *)p.amax = 0;
}

template <int dtype> static cuda_quantize_kernels kernels_of()
{
  return { { (const void *)quantize_spread<dtype>, (const void *)quantize_each<dtype> },
           { (const void *)dequantize_spread<dtype>, (const void *)dequantize_each<dtype> },
           (const void *)quantize_lanes<dtype>,
           { (const void *)quantize_tiles<dtype, 32>, (const void *)quantize_tiles<dtype, 128>, (const void *)quantize_tiles<dtype, 256>,
             (const void *)quantize_tiles<dtype, 512>, (const void *)quantize_tiles<dtype, 1024> },
           (const void *)quantize_columns<dtype>,
           (const void *)quantize_extreme<dtype>,
           (const void *)quantize_kept<dtype>,
           (const void *)quantize_clear };
}
cuda_quantize_kernels cuda_quantize_kernels_of(uint32_t dtype)
{
  return dtype == QN_F32 ? kernels_of<QN_F32>() : dtype == QN_F16 ? kernels_of<QN_F16>() : kernels_of<QN_BF16>();
}
