/* select_lines.cu -- top_k and sort (the top n) along a contiguous axis (a line a block; short ones a warp) and cumsum.
 *
 * top_k sorts by 32-bit keys in element order (NaN last, -0 equals 0; inverted for the smallest).
 *   bits    up to 1024 elements, 8 or 32 a lane of a warp, k at most 128: the k-th key is found bit by bit, and the chosen are sorted in
 *           shared memory
 *   radix   passes histogram 11 bits of the keys that match the prefix so far, until few enough candidates remain: a further pass
 *           is cheaper than sorting thousands. One more pass gathers them (of too many equals the first) for a bitonic sort in
 *           shared memory. If there are few lines each is cut into parts, whose top k go to workspace and are merged by a second
 *           launch
 *
 * cumsum: contiguous lines in pieces of 1024: scan of 4 elements by thread, warp, block, in f32 (integers in 64 bits); along
 * another dim a thread has four neighbouring lines. If there are few lines each is cut into parts: one launch sums the parts, the
 * next starts each part from the sums before it. The cuts do not depend on the device.
 * Refused: 64-bit elements; k above 2048; strides where no dim is contiguous. */
#include "cuda_backend.h"
#include "engines.h"
#include "kit/vector.cuh"

enum { THREADS = 256, WARPS = THREADS / 32, MAX_DIMS = 7 };

struct lines {
  const void *x;
  void    *y, *indices;                   /* indices NULL: not wanted */
  uint32_t x_dtype, y_dtype, wide;        /* wide: i64 indices */
  int32_t  rank, smallest, exclusive, reverse;
  uint32_t count, n, k;                   /* lines, their length, k */
  uint32_t parts, part;                   /* parts of a line and their length; for cumsum_lines a multiple of PIECE */
  void    *sums;                          /* workspace: sums of parts; for top_k their candidates */
  uint32_t dim[MAX_DIMS];                 /* other dims, innermost first */
  int64_t  x_stride[MAX_DIMS], y_stride[MAX_DIMS], index_stride[MAX_DIMS];
  int64_t  x_step, y_step, index_step;    /* along the axis; x's is 1 except in cumsum_columns */
};

__device__ __forceinline__ int64_t line_begin(const lines &s, uint32_t line, const int64_t *stride)
{
  int64_t offset = 0;
  for (int d = 0; d < s.rank; d++) {
    uint32_t q = d + 1 < s.rank ? line / s.dim[d] : 0;
    offset += (line - q * s.dim[d]) * stride[d];
    line = q;
  }
  return offset;
}

/* ---- top_k: keys ---------------------------------------------------------------------------------------------- */

__device__ __forceinline__ uint32_t key_of(const lines &s, int64_t at)
{
  uint32_t key;
  if (s.x_dtype >= QN_I8) {
    key = (uint32_t)element_load<int64_t>(s.x, at, s.x_dtype) ^ 0x80000000u;
  } else {
    float v = element_load<float>(s.x, at, s.x_dtype) + 0.0f;   /* -0 becomes 0 */
    uint32_t u = __float_as_uint(v);
    key = v != v ? ~0u : u >> 31 ? ~u : u | 0x80000000u;
  }
  return s.smallest ? ~key : key;
}

/* Key and place as one number that sorts larger keys first, then earlier places. */
__device__ __forceinline__ uint64_t pair_of(uint32_t key, uint32_t place) { return (uint64_t)~key << 32 | place; }

__device__ __forceinline__ void put(const lines &s, int64_t from, int64_t to, int64_t number, uint32_t rank, uint32_t place)
{
  int64_t x = from + place, y = to + rank * s.y_step;
  switch (s.x_dtype) {
  case QN_F32: case QN_I32: ((uint32_t *)s.y)[y] = ((const uint32_t *)s.x)[x]; break;
  case QN_F16: case QN_BF16: ((uint16_t *)s.y)[y] = ((const uint16_t *)s.x)[x]; break;
  default: ((uint8_t *)s.y)[y] = ((const uint8_t *)s.x)[x]; break;
  }
  if (!s.indices) return;
  if (s.wide) ((int64_t *)s.indices)[number + rank * s.index_step] = place;
  else ((int32_t *)s.indices)[number + rank * s.index_step] = (int32_t)place;
}

/* ---- top_k of short lines -------------------------------------------------------------------------------------- */

enum { SHORT = 1024, SORTED = 128 };

__device__ __forceinline__ uint32_t warp_count(uint32_t v)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(~0u, v);
#else
  for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
  return v;
#endif
}

/* HELD: elements a lane. */
template <int HELD> __global__ static void __launch_bounds__(THREADS) top_k_bits(const __grid_constant__ lines s)
{
  __shared__ uint64_t of_block[WARPS][SORTED];
  const uint32_t lane = threadIdx.x % 32, line = blockIdx.x * WARPS + threadIdx.x / 32, before = (1u << lane) - 1;
  if (line >= s.count) return;
  const int64_t from = line_begin(s, line, s.x_stride), to = line_begin(s, line, s.y_stride), number = line_begin(s, line, s.index_stride);
  uint64_t *const pair = of_block[threadIdx.x / 32];
  uint32_t key[HELD];
#pragma unroll
  for (int i = 0; i < HELD; i++) key[i] = i * 32 + lane < s.n ? key_of(s, from + i * 32 + lane) : 0;

  /* the largest key that k keys reach; where just k reach a smaller one, that will do */
  uint32_t least = 0, reach = s.n;
  for (uint32_t bit = 1u << 31; bit && reach != s.k; bit >>= 1) {
    uint32_t count = 0;
#pragma unroll
    for (int i = 0; i < HELD; i++) count += key[i] >= (least | bit);
    count = warp_count(count);
    if (count >= s.k) least |= bit, reach = count;
  }
  /* those above it, and of those that equal it the first */
  const uint32_t equals = reach - s.k;    /* too many */
  uint32_t chosen = 0, more = 0;
  if (equals)
#pragma unroll
    for (int i = 0; i < HELD; i++) more += i * 32 + lane < s.n && key[i] > least;
  uint32_t room = s.k - (equals ? warp_count(more) : 0);      /* for equals */
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    const uint32_t place = i * 32 + lane;
    const bool there = place < s.n, same = there && key[i] == least;
    const uint32_t sames = __ballot_sync(~0u, same);
    const bool takes = (there && key[i] > least) || (same && __popc(sames & before) < (int)room);
    const uint32_t taken = __ballot_sync(~0u, takes);
    if (takes) pair[chosen + __popc(taken & before)] = pair_of(key[i], place);
    chosen += __popc(taken), room -= min(room, (uint32_t)__popc(sames));
  }
  uint32_t sorted = 1;
  while (sorted < s.k) sorted *= 2;
  for (uint32_t i = s.k + lane; i < sorted; i += 32) pair[i] = ~0ull;
  __syncwarp();
  for (uint32_t size = 2; size <= sorted; size *= 2)
    for (uint32_t apart = size / 2; apart; apart /= 2) {
      for (uint32_t i = lane; i < sorted / 2; i += 32) {
        const uint32_t a = i / apart * apart * 2 + i % apart, b = a + apart;
        const uint64_t low = pair[a], high = pair[b];
        if ((low > high) == !(a & size)) pair[a] = high, pair[b] = low;
      }
      __syncwarp();
    }
  for (uint32_t i = lane; i < s.k; i += 32) put(s, from, to, number, i, (uint32_t)pair[i]);
}

/* ---- top_k of long lines ---------------------------------------------------------------------------------------- */

/* MOST: largest k; ROOM: candidates to sort, unless k is larger */
enum { CROWD = 512, CROWD_WARPS = CROWD / 32, AHEAD = 8, BINS = 2048, MOST = 2048, ROOM = 1024 };

/* The elements of a line or part: BYTES wide, or (8) the pairs left by parts. Raw loads are converted later, so that several are
 * in flight. */
template <int BYTES> struct source;
template <> struct source<1> { typedef uint8_t raw; };
template <> struct source<2> { typedef uint16_t raw; };
template <> struct source<4> { typedef uint32_t raw; };
template <> struct source<8> { typedef uint64_t raw; };

template <int BYTES> __device__ __forceinline__ uint64_t pair_from(const lines &s, typename source<BYTES>::raw raw, uint32_t place)
{
  if constexpr (BYTES == 8) return raw;
  uint32_t key;
  if (s.x_dtype >= QN_I8) {
    key = (s.x_dtype == QN_I8 ? (uint32_t)(int32_t)(int8_t)raw : (uint32_t)raw) ^ 0x80000000u;
  } else {
    float v = (s.x_dtype == QN_F32    ? __uint_as_float((uint32_t)raw)
               : s.x_dtype == QN_BF16 ? bf16_to_float((uint16_t)raw)
                                      : f16_to_float((uint16_t)raw)) +
              0.0f;
    uint32_t u = __float_as_uint(v);
    key = v != v ? ~0u : u >> 31 ? ~u : u | 0x80000000u;
  }
  return pair_of(s.smallest ? ~key : key, place);
}

/* Calls f(pair) for n elements from x on, the first of which has number `first`, in any order. */
template <int BYTES, class F> __device__ __forceinline__ void each_pair(const lines &s, const void *x, uint32_t first, uint32_t n, F f)
{
  typedef typename source<BYTES>::raw raw;
  for (uint32_t start = threadIdx.x; start < n; start += AHEAD * CROWD) {
    raw held[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) held[u] = start + u * CROWD < n ? ((const raw *)x)[start + u * CROWD] : raw();
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      if (start + u * CROWD < n) f(pair_from<BYTES>(s, held[u], first + start + u * CROWD));
  }
}

/* Exclusive sum of v over the block's threads; *all: the total. */
__device__ __forceinline__ uint32_t count_before(uint32_t v, uint32_t *warp_count, uint32_t *all)
{
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, upto = v, before = 0;
  for (int o = 1; o < 32; o *= 2) {
    uint32_t other = __shfl_up_sync(~0u, upto, o);
    if (lane >= o) upto += other;
  }
  __syncthreads();                        /* warp_count has been read */
  if (lane == 31) warp_count[warp] = upto;
  __syncthreads();
  *all = 0;
  for (uint32_t w = 0; w < CROWD_WARPS; w++) {
    before += w < warp ? warp_count[w] : 0;
    *all += warp_count[w];
  }
  return before + upto - v;
}

/* A block for each part of a line (BYTES 8: for each line). last: writes the line's result, else candidates to workspace. */
template <int BYTES> __global__ static void __launch_bounds__(CROWD) top_k_radix(const __grid_constant__ lines s, bool last)
{
  __shared__ uint64_t pair[MOST];
  __shared__ uint32_t bin[BINS], warp_count[CROWD_WARPS], found[3], held;
  uint32_t t = threadIdx.x, line = BYTES == 8 ? blockIdx.x : blockIdx.x / s.parts, part = BYTES == 8 ? 0 : blockIdx.x % s.parts;
  uint32_t first = part * s.part, n = BYTES == 8 ? s.parts * s.k : min(s.n - first, s.part), all;
  int64_t from = line_begin(s, line, s.x_stride);
  const void *x = BYTES == 8 ? (const void *)((const uint64_t *)s.sums + (int64_t)line * n)
                             : (const char *)s.x + (from + first) * (BYTES == 8 ? 1 : BYTES);
  /* find the prefix of the wanted-th pair, 11 bits a pass, until few enough pairs share it */
  uint32_t chosen = min(s.k, n), wanted = chosen, known = 0, alike = n, room = s.k > ROOM ? MOST : ROOM;
  int shift = 32;
  while (shift > 0 && chosen - wanted + alike > room) {
    int above = shift;
    shift = shift == 32 ? 21 : shift == 21 ? 10 : 0;
    uint32_t mask = (1u << (above - shift)) - 1;
    for (uint32_t i = t; i < BINS; i += CROWD) bin[i] = 0;
    __syncthreads();
    each_pair<BYTES>(s, x, first, n, [&](uint64_t p) {
      uint32_t high = (uint32_t)(p >> 32);
      if (above == 32 || high >> above == known) atomicAdd(&bin[high >> shift & mask], 1u);
    });
    __syncthreads();
    uint32_t own = 0;
    for (int i = 0; i < BINS / CROWD; i++) own += bin[t * (BINS / CROWD) + i];
    uint32_t before = count_before(own, warp_count, &all);
    if (before < wanted && wanted <= before + own) {
      uint32_t i = t * (BINS / CROWD);
      for (; before + bin[i] < wanted; i++) before += bin[i];
      found[0] = i, found[1] = wanted - before, found[2] = bin[i];
    }
    __syncthreads();
    known = (above == 32 ? 0 : known << (above - shift)) | found[0];
    wanted = found[1], alike = found[2];
    __syncthreads();
  }
  if (t == 0) held = 0;
  __syncthreads();
  bool crowded = chosen - wanted + alike > room;          /* too many equals: take the first of them, in order */
  each_pair<BYTES>(s, x, first, n, [&](uint64_t p) {
    uint32_t high = shift == 32 ? 0 : (uint32_t)(p >> 32) >> shift;
    if (high < known || (high == known && !crowded)) pair[atomicAdd(&held, 1u)] = p;
  });
  __syncthreads();
  uint32_t m = held, equals = 0;
  for (uint32_t start = 0; crowded && start < n && equals < wanted; start += CROWD) {
    uint64_t p = start + t < n ? pair_from<BYTES>(s, ((const typename source<BYTES>::raw *)x)[start + t], first + start + t) : ~0ull;
    bool equal = start + t < n && (uint32_t)(p >> 32) == known;
    uint32_t at = equals + count_before(equal, warp_count, &all);
    if (equal && at < wanted) pair[m + at] = p;
    equals += all;
  }
  if (crowded) m += wanted;
  uint32_t sorted = 1;
  while (sorted < m) sorted *= 2;
  for (uint32_t i = m + t; i < sorted; i += CROWD) pair[i] = ~0ull;
  for (uint32_t size = 2; size <= sorted; size *= 2)
    for (uint32_t step = size / 2; step; step /= 2) {
      __syncthreads();
      for (uint32_t i = t; i < sorted / 2; i += CROWD) {
        uint32_t a = i / step * 2 * step + i % step, b = a + step;
        uint64_t u = pair[a], v = pair[b];
        if ((u > v) == ((a & size) == 0)) pair[a] = v, pair[b] = u;
      }
    }
  __syncthreads();
  if (!last) {
    for (uint32_t i = t; i < s.k; i += CROWD) ((uint64_t *)s.sums)[(int64_t)blockIdx.x * s.k + i] = i < chosen ? pair[i] : ~0ull;
    return;
  }
  int64_t to = line_begin(s, line, s.y_stride), number = line_begin(s, line, s.index_stride);
  for (uint32_t i = t; i < s.k; i += CROWD) put(s, from, to, number, i, (uint32_t)pair[i]);
}

/* ---- cumsum of neighbouring lines ------------------------------------------------------------------------------------------- */

enum { BESIDE = 4, STEPS = 8 };           /* lines a thread; elements of each loaded ahead */

/* Elements of BESIDE neighbouring lines; parts of a line by different threads. sums: [parts][lines], f32. */
__global__ static void __launch_bounds__(128) cumsum_columns(const __grid_constant__ lines s, bool sums_only)
{
  uint32_t groups = (s.dim[0] + BESIDE - 1) / BESIDE, unit = blockIdx.x * 128 + threadIdx.x;
  uint32_t others = s.count / s.dim[0], all = groups * others;
  uint32_t part = unit / all, rest = unit - part * all, other = rest / groups, column = (rest - other * groups) * BESIDE;
  if (part >= s.parts) return;
  int n = (int)min(s.dim[0] - column, (uint32_t)BESIDE);
  uint32_t line = other * s.dim[0] + column;
  int64_t from = line_begin(s, line, s.x_stride), to = line_begin(s, line, s.y_stride);
  float sum[BESIDE] = {}, *sums = (float *)s.sums;
  for (uint32_t p = 0; !sums_only && p < part; p++)
    for (int i = 0; i < n; i++) sum[i] += sums[(int64_t)p * s.count + line + i];
  uint32_t begin = part * s.part, end = min(s.n, begin + s.part);
  for (uint32_t j = begin; j < end; j += STEPS) {
    float v[STEPS][BESIDE];
#pragma unroll
    for (int k = 0; k < STEPS; k++)
      vector_load<BESIDE>(v[k], s.x, s.x_dtype, from + (int64_t)(s.reverse ? s.n - 1 - (j + k) : j + k) * s.x_step, 1, j + k < end ? n : 0);
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
      float before[BESIDE];
#pragma unroll
      for (int i = 0; i < BESIDE; i++) before[i] = sum[i], sum[i] += v[k][i];
      if (sums_only || j + k >= end) continue;
      int64_t at = to + (int64_t)(s.reverse ? s.n - 1 - (j + k) : j + k) * s.y_step;
      if (s.exclusive) vector_store<BESIDE>(before, s.y, s.y_dtype, at, 1, n);
      else vector_store<BESIDE>(sum, s.y, s.y_dtype, at, 1, n);
    }
  }
  for (int i = 0; sums_only && i < n; i++) sums[(int64_t)part * s.count + line + i] = sum[i];
}

/* ---- cumsum ------------------------------------------------------------------------------------------------------- */

enum { EACH = 4, PIECE = THREADS * EACH, MOST_PARTS = 1024 };

/* Elements of a line are numbered in the order of the scan. */
template <class T> __device__ __forceinline__ void load_each(const lines &s, int64_t from, uint32_t i, uint32_t end, T v[EACH])
{
#pragma unroll
  for (int e = 0; e < EACH; e++) v[e] = i + e < end ? element_load<T>(s.x, from + (s.reverse ? s.n - 1 - (i + e) : i + e), s.x_dtype) : 0;
}
template <> __device__ __forceinline__ void load_each(const lines &s, int64_t from, uint32_t i, uint32_t end, float v[EACH])
{
  int n = i < end ? (int)min(end - i, (uint32_t)EACH) : 0;
  float w[EACH];
  if (!s.reverse) {
    vector_load<EACH>(w, s.x, s.x_dtype, from + i, 1, n);
#pragma unroll
    for (int e = 0; e < EACH; e++) v[e] = w[e];
  } else {                                /* load ascending, then reverse */
    vector_load<EACH>(w, s.x, s.x_dtype, from + (int64_t)s.n - i - n, 1, n);
#pragma unroll
    for (int e = 0; e < EACH; e++) v[e] = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
      for (int f = 0; f < EACH; f++)
        if (e + f + 1 == n) v[e] = w[f];
  }
}

template <class T> __device__ __forceinline__ void store_each(const lines &s, int64_t to, uint32_t i, uint32_t end, const T v[EACH])
{
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (i + e < end) element_store_wrapped(s.y, to + (s.reverse ? s.n - 1 - (i + e) : i + e) * s.y_step, s.y_dtype, v[e]);
}
template <> __device__ __forceinline__ void store_each(const lines &s, int64_t to, uint32_t i, uint32_t end, const float v[EACH])
{
  int n = i < end ? (int)min(end - i, (uint32_t)EACH) : 0;
  float w[EACH];
  if (n == 0) return;
#pragma unroll
  for (int e = 0; e < EACH; e++) w[e] = v[e];
  if (s.reverse) {
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
      for (int f = 0; f < EACH; f++)
        if (e + f + 1 == n) w[e] = v[f];
  }
  vector_store<EACH>(w, s.y, s.y_dtype, to + (s.reverse ? (int64_t)s.n - i - n : i) * s.y_step, s.y_step, n);
}

/* Exclusive sum over the block's threads; *all: the total. */
template <class T> __device__ __forceinline__ T sum_before(T v, T *warp_sum, T *all)
{
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T upto = v;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    T other = __shfl_up_sync(~0u, upto, o);
    if (lane >= o) upto = other + upto;
  }
  __syncthreads();                        /* warp_sum has been read */
  if (lane == 31) warp_sum[warp] = upto;
  __syncthreads();
  T before = 0, total = 0;
#pragma unroll
  for (uint32_t w = 0; w < WARPS; w++) {
    if (w == warp) before = total;
    total = total + warp_sum[w];
  }
  T inside = __shfl_up_sync(~0u, upto, 1);
  *all = total;
  return lane ? before + inside : before;
}

template <class T> __global__ static void __launch_bounds__(THREADS) cumsum_parts(const __grid_constant__ lines s)
{
  __shared__ T warp_sum[WARPS];
  uint32_t line = blockIdx.x / s.parts, part = blockIdx.x % s.parts;
  int64_t from = line_begin(s, line, s.x_stride);
  uint32_t begin = part * s.part, end = min(s.n, begin + s.part);
  T sum = 0, all;
  for (uint32_t i = begin + threadIdx.x * EACH; i < end; i += PIECE) {
    T v[EACH];
    load_each<T>(s, from, i, end, v);
    sum = sum + ((v[0] + v[1]) + (v[2] + v[3]));
  }
  sum_before<T>(sum, warp_sum, &all);
  if (threadIdx.x == 0) ((T *)s.sums)[blockIdx.x] = all;
}

template <class T> __global__ static void __launch_bounds__(THREADS) cumsum_lines(const __grid_constant__ lines s)
{
  __shared__ T warp_sum[WARPS];
  uint32_t line = blockIdx.x / s.parts, part = blockIdx.x % s.parts;
  int64_t from = line_begin(s, line, s.x_stride), to = line_begin(s, line, s.y_stride);
  uint32_t begin = part * s.part, end = min(s.n, begin + s.part);
  T carry = 0, all;
  if (part) {                             /* the parts before this one, each by one thread at a time, then all of them */
    T sum = 0;
    for (uint32_t k = threadIdx.x; k < part; k += THREADS) sum = sum + ((const T *)s.sums)[line * s.parts + k];
    sum_before<T>(sum, warp_sum, &carry);
  }
  T next[EACH];
  load_each<T>(s, from, begin + threadIdx.x * EACH, end, next);
  for (uint32_t start = begin; start < end; start += PIECE) {
    uint32_t i = start + threadIdx.x * EACH;
    T v[EACH], sum[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) v[e] = next[e];
    if (start + PIECE < end) load_each<T>(s, from, i + PIECE, end, next);
#pragma unroll
    for (int e = 0; e < EACH; e++) sum[e] = e ? sum[e - 1] + v[e] : v[0];
    T before = carry + sum_before<T>(sum[EACH - 1], warp_sum, &all);
#pragma unroll
    for (int e = 0; e < EACH; e++) v[e] = !s.exclusive ? before + sum[e] : e ? before + sum[e - 1] : before;
    store_each<T>(s, to, i, end, v);
    carry = carry + all;
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct line_state { lines s; int32_t x, y, indices; };

/* Describes lines along `axis` of x, y and indices (if wanted); returns NULL, or the rule that is broken. */
static const char *lines_of(lines *s, const qn_value *x, const qn_value *y, const qn_value *indices, int axis)
{
  if (x->dtype == QN_F64 || x->dtype == QN_I64) return "elements of at most 32 bits";
  if (x->dim[axis] > INT32_MAX) return "lines shorter than 2^31";
  qn_nest nest = {};
  nest.n = 3;
  for (int d = 0; d < x->rank; d++) {
    if (d == axis) continue;
    nest.dim[nest.rank] = x->dim[d];
    nest.stride[0][nest.rank] = x->stride[d], nest.stride[1][nest.rank] = y->stride[d];
    nest.stride[2][nest.rank++] = indices ? indices->stride[d] : y->stride[d];
  }
  qn_nest_simplify(&nest);
  double count = 1;
  s->rank = nest.rank;
  for (int d = 0; d < nest.rank; d++) {
    int from = nest.rank - 1 - d;
    count *= (double)nest.dim[from];
    if (count > INT32_MAX) return "fewer than 2^31 lines";
    s->dim[d] = (uint32_t)nest.dim[from];
    s->x_stride[d] = nest.stride[0][from], s->y_stride[d] = nest.stride[1][from], s->index_stride[d] = nest.stride[2][from];
  }
  s->count = (uint32_t)count;
  s->n = (uint32_t)x->dim[axis];
  s->x_dtype = x->dtype, s->y_dtype = y->dtype;
  s->x_step = x->dim[axis] > 1 ? x->stride[axis] : 1;
  s->y_step = y->stride[axis];
  s->index_step = indices ? indices->stride[axis] : 0;
  s->wide = indices && indices->dtype == QN_I64;
  return nullptr;
}

static qn_status keep(qn_prepared *out, const lines *s, int32_t x, int32_t y, int32_t indices)
{
  line_state st = {};
  st.s = *s;
  st.x = x, st.y = y, st.indices = indices;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status top_k_prepare(const qn_request *r, qn_prepared *out)
{
  qn_ranking whole = QN_TOP_K_INIT;
  const qn_ranking *a = (const qn_ranking *)r->op[0].attr;
  if (r->op[0].op == QN_OP_SORT) {        /* the n smallest or largest; its roles have the same numbers */
    const qn_sorting *sort = (const qn_sorting *)r->op[0].attr;
    whole.axis = sort->axis, whole.k = cuda_value(r, QN_ROLE_SORT_X)->dim[sort->axis], whole.smallest = !sort->descending;
    a = &whole;
  }
  lines s = {};
  const char *why = lines_of(&s, cuda_value(r, QN_ROLE_TOP_K_X), cuda_value(r, QN_ROLE_TOP_K_Y), cuda_value(r, QN_ROLE_TOP_K_INDICES),
                             (int)a->axis);
  if (why) return qn_refuse(out, why, "x", "", "%s", "");
  if (s.x_step != 1) return qn_refuse(out, "lines are contiguous", "x", "stride 1 along the axis", "%lld", (long long)s.x_step);
  if (a->k > MOST) return qn_refuse(out, "the chosen are sorted in shared memory", "k", "2048 at most", "%lld", (long long)a->k);
  s.k = (uint32_t)a->k, s.smallest = a->smallest != 0;
  int64_t parts = qn_max_i64(1, qn_min_i64(528 / s.count, s.n / (4 * qn_max_i64(s.k, 1024))));   /* independent of the device */
  s.part = (uint32_t)qn_ceil_div(s.n, parts);
  s.parts = (uint32_t)qn_ceil_div(s.n, s.part);
  if (s.parts > 1) out->workspace = (size_t)s.count * s.parts * s.k * 8;
  const qn_node *op = &r->op[0];
  return keep(out, &s, qn_role(op, QN_ROLE_TOP_K_X), qn_role(op, QN_ROLE_TOP_K_Y), qn_role(op, QN_ROLE_TOP_K_INDICES));
}

static qn_status top_k_run(const qn_prepared *p, const qn_launch *launch)
{
  const line_state *st = (const line_state *)p->state;
  lines s = st->s;
  s.x = launch->ptr[st->x];
  s.y = launch->ptr[st->y];
  s.indices = st->indices < 0 ? nullptr : launch->ptr[st->indices];
  s.sums = launch->workspace;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  int bytes = (int)qn_kit_bytes(s.x_dtype);
  const bool bits = s.n <= SHORT && s.k <= SORTED;
  const uint32_t blocks = (s.count + WARPS - 1) / WARPS;
  if (bits && s.n <= 32 * 8) top_k_bits<8><<<blocks, THREADS, 0, stream>>>(s);
  else if (bits) top_k_bits<32><<<blocks, THREADS, 0, stream>>>(s);
  else if (bytes == 4) top_k_radix<4><<<s.count * s.parts, CROWD, 0, stream>>>(s, s.parts == 1);
  else if (bytes == 2) top_k_radix<2><<<s.count * s.parts, CROWD, 0, stream>>>(s, s.parts == 1);
  else top_k_radix<1><<<s.count * s.parts, CROWD, 0, stream>>>(s, s.parts == 1);
  if (!bits && s.parts > 1) top_k_radix<8><<<s.count, CROWD, 0, stream>>>(s, true);
  return cuda_check(cudaGetLastError(), "top_k");
}

static qn_status cumsum_prepare(const qn_request *r, qn_prepared *out)
{
  const qn_scan *a = (const qn_scan *)r->op[0].attr;
  const qn_value *x = cuda_value(r, QN_ROLE_CUMSUM_X), *y = cuda_value(r, QN_ROLE_CUMSUM_Y);
  lines s = {};
  const char *why = lines_of(&s, x, y, nullptr, (int)a->axis);
  if (why) return qn_refuse(out, why, "x", "", "%s", "");
  s.exclusive = a->exclusive != 0, s.reverse = a->reverse != 0;
  if (s.x_step != 1) {                    /* neighbouring lines: parts for about 2^18 threads in all, independent of the device */
    if (!s.rank || qn_is_integer(x->dtype) || s.x_stride[0] != 1 || s.y_stride[0] != 1)
      return qn_refuse(out, "lines are contiguous, or side by side and of floats", "x", "stride 1 in some dim", "%lld",
                       (long long)s.x_step);
    int64_t threads = (int64_t)(s.count / s.dim[0]) * qn_ceil_div(s.dim[0], BESIDE);
    if (threads > 1 << 30) return qn_refuse(out, "fewer than 2^31 lines", "x", "2^31", "%u", s.count);
    int64_t wanted = qn_max_i64(1, qn_min_i64((1 << 18) / threads, s.n / (4 * STEPS)));
    wanted = qn_max_i64(wanted, qn_ceil_div(s.n, 4096));    /* and none so long that its running sum loses digits */
    s.part = (uint32_t)qn_ceil_div(s.n, wanted);
    s.parts = (uint32_t)qn_ceil_div(s.n, s.part);
    if (s.parts > 1) out->workspace = (size_t)s.count * s.parts * 4;
    return keep(out, &s, qn_role(&r->op[0], QN_ROLE_CUMSUM_X), qn_role(&r->op[0], QN_ROLE_CUMSUM_Y), -1);
  }
  /* parts for about 2048 blocks in all, independent of the device */
  int64_t pieces = qn_ceil_div(s.n, PIECE), parts = qn_min_i64(qn_min_i64(MOST_PARTS, pieces), qn_ceil_div(2048, s.count));
  s.part = (uint32_t)(qn_ceil_div(pieces, parts) * PIECE);
  s.parts = (uint32_t)qn_ceil_div(s.n, s.part);
  if ((double)s.count * s.parts > INT32_MAX) return qn_refuse(out, "fewer than 2^31 parts of lines", "x", "2^31", "%u", s.count);
  if (s.parts > 1) out->workspace = (size_t)s.count * s.parts * 8;
  return keep(out, &s, qn_role(&r->op[0], QN_ROLE_CUMSUM_X), qn_role(&r->op[0], QN_ROLE_CUMSUM_Y), -1);
}

template <class T> static void cumsum_launch(const lines &s, cudaStream_t stream)
{
  if (s.parts > 1) cumsum_parts<T><<<s.count * s.parts, THREADS, 0, stream>>>(s);
  cumsum_lines<T><<<s.count * s.parts, THREADS, 0, stream>>>(s);
}

static qn_status cumsum_run(const qn_prepared *p, const qn_launch *launch)
{
  const line_state *st = (const line_state *)p->state;
  lines s = st->s;
  s.x = launch->ptr[st->x];
  s.y = launch->ptr[st->y];
  s.sums = launch->workspace;
  if (s.x_step != 1) {
    unsigned threads = s.count / s.dim[0] * ((s.dim[0] + BESIDE - 1) / BESIDE) * s.parts, blocks = (threads + 127) / 128;
    if (s.parts > 1) cumsum_columns<<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(s, true);
    cumsum_columns<<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(s, false);
  }
  else if (qn_is_integer(s.x_dtype)) cumsum_launch<int64_t>(s, (cudaStream_t)launch->stream);
  else cumsum_launch<float>(s, (cudaStream_t)launch->stream);
  return cuda_check(cudaGetLastError(), "cumsum");
}

static const qn_engine row[] = {
  { "lines", QN_OP_TOP_K, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    top_k_prepare, nullptr, top_k_run, cuda_release },
  { "lines", QN_OP_SORT, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    top_k_prepare, nullptr, top_k_run, cuda_release },
  { "lines", QN_OP_CUMSUM, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_PORTABLE, nullptr, nullptr,
    cumsum_prepare, nullptr, cumsum_run, cuda_release },
};
CUDA_ENGINES(select_lines) = { row, sizeof row / sizeof *row };
