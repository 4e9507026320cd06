/* select_lines.cu -- top_k and cumsum along a contiguous axis, a line by one block, a short line by one warp.
 *
 * top_k orders elements as 32-bit keys that rise with them (NaN the last, -0 and 0 one key; turned round for the smallest).
 *   warp    at most 256 elements: each lane holds 8; k times the largest of all is found and struck out
 *   radix   four passes over the line, each counting one byte of the keys that agree so far, find the k-th key; one more gathers the
 *           larger ones, and of its equals the first; then k pairs of key and place are sorted (bitonic) in shared memory
 *
 * cumsum goes along in pieces of 1024: sums of 4 by thread, then by warp, then by block, in f32 (integers in 64 bits). Where lines
 * are few each is cut in parts: one launch sums each part up, the next begins each part with the sums before it. */
#include "cuda_backend.h"
#include "engines.h"
#include "vector.cuh"

enum { THREADS = 256, WARPS = THREADS / 32, MAX_DIMS = 7 };

struct lines {
  const void *x;
  void    *y, *indices;                   /* indices NULL: not wanted */
  uint32_t x_dtype, y_dtype, wide;        /* wide: i64 indices */
  int32_t  rank, smallest, exclusive, reverse;
  uint32_t count, n, k;                   /* lines, their length, how many are chosen of each */
  uint32_t parts, part;                   /* of cumsum, a multiple of PIECE */
  void    *sums;                          /* workspace: of each line's parts */
  uint32_t dim[MAX_DIMS];                 /* the other dims, innermost first */
  int64_t  x_stride[MAX_DIMS], y_stride[MAX_DIMS], index_stride[MAX_DIMS];
  int64_t  y_step, index_step;            /* along the axis; x's is 1 */
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

/* Larger keys first, then earlier places: as one number, rising. */
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

enum { HELD = 8, SHORT = 32 * HELD, FEW = 32 };

__global__ static void __launch_bounds__(THREADS) top_k_warp(const __grid_constant__ lines s)
{
  uint32_t lane = threadIdx.x % 32, line = blockIdx.x * WARPS + threadIdx.x / 32;
  if (line >= s.count) return;
  int64_t from = line_begin(s, line, s.x_stride), to = line_begin(s, line, s.y_stride), number = line_begin(s, line, s.index_stride);
  uint64_t held[HELD];
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    uint32_t place = i * 32 + lane;
    held[i] = place < s.n ? pair_of(key_of(s, from + place), place) : ~0ull;
  }
  uint32_t mine = 0;                      /* the place of the chosen one whose rank is this lane's number */
  for (uint32_t rank = 0; rank < s.k; rank++) {
    uint64_t best = held[0];
#pragma unroll
    for (int i = 1; i < HELD; i++) best = held[i] < best ? held[i] : best;
    for (int o = 16; o; o /= 2) {
      uint64_t other = __shfl_xor_sync(~0u, best, o);
      best = other < best ? other : best;
    }
#pragma unroll
    for (int i = 0; i < HELD; i++) held[i] = held[i] == best ? ~0ull : held[i];
    if (lane == rank) mine = (uint32_t)best;
  }
  if (lane < s.k) put(s, from, to, number, lane, mine);
}

/* ---- top_k of long lines ---------------------------------------------------------------------------------------- */

enum { MOST = 2048 };                     /* chosen of a line */

/* How many of the block's threads before this one say yes; *all: how many there are. */
__device__ __forceinline__ uint32_t rank_in_block(bool yes, uint32_t *count, uint32_t *all)
{
  uint32_t votes = __ballot_sync(~0u, yes), lane = threadIdx.x % 32, warp = threadIdx.x / 32, before = 0;
  __syncthreads();                        /* the last round's counts have been read */
  if (lane == 0) count[warp] = __popc(votes);
  __syncthreads();
  *all = 0;
  for (uint32_t w = 0; w < WARPS; w++) {
    before += w < warp ? count[w] : 0;
    *all += count[w];
  }
  return before + __popc(votes & ((1u << lane) - 1));
}

__global__ static void __launch_bounds__(THREADS) top_k_radix(const __grid_constant__ lines s, uint32_t sorted)
{
  __shared__ uint64_t pair[MOST];
  __shared__ uint32_t count[THREADS], votes[WARPS], prefix, wanted;
  int64_t from = line_begin(s, blockIdx.x, s.x_stride);
  uint32_t t = threadIdx.x;
  if (t == 0) prefix = 0, wanted = s.k;
  for (int shift = 24; shift >= 0; shift -= 8) {
    count[t] = 0;
    __syncthreads();
    uint32_t known = prefix;
    for (uint32_t i = t; i < s.n; i += THREADS) {
      uint32_t key = key_of(s, from + i);
      if (shift == 24 || key >> (shift + 8) == known) atomicAdd(&count[key >> shift & 0xff], 1u);
    }
    __syncthreads();
    if (t == 0) {                         /* the byte of the wanted-th largest */
      uint32_t left = wanted, byte = 255;
      for (; byte > 0 && count[byte] < left; byte--) left -= count[byte];
      prefix = known << 8 | byte;
      wanted = left;
    }
    __syncthreads();
  }
  uint32_t last = prefix, equals = wanted, larger = s.k - equals, n_larger = 0, n_equal = 0;
  for (uint32_t i = t; i < sorted; i += THREADS)
    if (i >= s.k) pair[i] = ~0ull;
  for (uint32_t start = 0; start < s.n && (n_larger < larger || n_equal < equals); start += THREADS) {
    uint32_t i = start + t, key = i < s.n ? key_of(s, from + i) : 0, all;
    uint32_t at = n_larger + rank_in_block(i < s.n && key > last, votes, &all);
    if (i < s.n && key > last) pair[at] = pair_of(key, i);
    n_larger += all;
    at = n_equal + rank_in_block(i < s.n && key == last, votes, &all);
    if (i < s.n && key == last && at < equals) pair[larger + at] = pair_of(key, i);
    n_equal += all;
  }
  for (uint32_t size = 2; size <= sorted; size *= 2)
    for (uint32_t step = size / 2; step; step /= 2) {
      __syncthreads();
      for (uint32_t i = t; i < sorted / 2; i += THREADS) {
        uint32_t a = i / step * 2 * step + i % step, b = a + step;
        bool rising = (a & size) == 0;
        uint64_t u = pair[a], v = pair[b];
        if ((u > v) == rising) pair[a] = v, pair[b] = u;
      }
    }
  __syncthreads();
  int64_t to = line_begin(s, blockIdx.x, s.y_stride), number = line_begin(s, blockIdx.x, s.index_stride);
  for (uint32_t i = t; i < s.k; i += THREADS) put(s, from, to, number, i, (uint32_t)pair[i]);
}

/* ---- cumsum ------------------------------------------------------------------------------------------------------- */

enum { EACH = 4, PIECE = THREADS * EACH, MOST_PARTS = 1024 };

/* Elements of a line are numbered in the order of the sum. */
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
  } else {                                /* the same places from their lowest on, turned round */
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

/* The sum over the block's threads before this one; *all: over all of them. */
template <class T> __device__ __forceinline__ T sum_before(T v, T *warp_sum, T *all)
{
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T upto = v;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    T other = __shfl_up_sync(~0u, upto, o);
    if (lane >= o) upto = other + upto;
  }
  __syncthreads();                        /* the last round's sums have been read */
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

/* Lines along `axis` of x, y and, if wanted, indices; NULL, or what is in the way. */
static const char *lines_of(lines *s, const qn_value *x, const qn_value *y, const qn_value *indices, int axis)
{
  if (x->dtype == QN_F64 || x->dtype == QN_I64) return "elements of at most 32 bits";
  if (x->dim[axis] > 1 && x->stride[axis] != 1) return "a contiguous axis";
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
  s->y_step = y->stride[axis];
  s->index_step = indices ? indices->stride[axis] : 0;
  s->wide = indices && indices->dtype == QN_I64;
  return nullptr;
}

static qn_status keep(const qn_request *r, qn_prepared *out, const lines *s, int32_t x, int32_t y, int32_t indices)
{
  line_state *st = (line_state *)r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->s = *s;
  st->x = x, st->y = y, st->indices = indices;
  out->state = st;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_NATIVE;
  return QN_OK;
}

static qn_status top_k_prepare(const qn_request *r, qn_prepared *out)
{
  const qn_ranking *a = (const qn_ranking *)r->op[0].attr;
  lines s = {};
  const char *why = lines_of(&s, cuda_value(r, QN_ROLE_TOP_K_X), cuda_value(r, QN_ROLE_TOP_K_Y), cuda_value(r, QN_ROLE_TOP_K_INDICES), (int)a->axis);
  if (why) return qn_refuse(out, why, "x", "", "%s", "");
  if (a->k > MOST) return qn_refuse(out, "the chosen are sorted in shared memory", "k", "2048 at most", "%lld", (long long)a->k);
  s.k = (uint32_t)a->k, s.smallest = a->smallest != 0;
  const qn_node *op = &r->op[0];
  return keep(r, out, &s, qn_role(op, QN_ROLE_TOP_K_X), qn_role(op, QN_ROLE_TOP_K_Y), qn_role(op, QN_ROLE_TOP_K_INDICES));
}

static qn_status top_k_run(const qn_prepared *p, const qn_launch *launch)
{
  const line_state *st = (const line_state *)p->state;
  lines s = st->s;
  s.x = launch->ptr[st->x];
  s.y = launch->ptr[st->y];
  s.indices = st->indices < 0 ? nullptr : launch->ptr[st->indices];
  uint32_t sorted = 1;
  while (sorted < s.k) sorted *= 2;
  if (s.n <= SHORT && s.k <= FEW) top_k_warp<<<(s.count + WARPS - 1) / WARPS, THREADS, 0, (cudaStream_t)launch->stream>>>(s);
  else top_k_radix<<<s.count, THREADS, 0, (cudaStream_t)launch->stream>>>(s, sorted);
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
  /* parts for about 2048 blocks in all, whatever the device */
  int64_t pieces = qn_ceil_div(s.n, PIECE), parts = qn_min_i64(qn_min_i64(MOST_PARTS, pieces), qn_ceil_div(2048, s.count));
  s.part = (uint32_t)(qn_ceil_div(pieces, parts) * PIECE);
  s.parts = (uint32_t)qn_ceil_div(s.n, s.part);
  if ((double)s.count * s.parts > INT32_MAX) return qn_refuse(out, "fewer than 2^31 parts of lines", "x", "2^31", "%u", s.count);
  if (s.parts > 1) out->workspace = (size_t)s.count * s.parts * 8;
  return keep(r, out, &s, qn_role(&r->op[0], QN_ROLE_CUMSUM_X), qn_role(&r->op[0], QN_ROLE_CUMSUM_Y), -1);
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
  if (qn_is_integer(s.x_dtype)) cumsum_launch<int64_t>(s, (cudaStream_t)launch->stream);
  else cumsum_launch<float>(s, (cudaStream_t)launch->stream);
  return cuda_check(cudaGetLastError(), "cumsum");
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

static const qn_engine row[] = {
  { "lines", QN_OP_TOP_K, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    top_k_prepare, nullptr, top_k_run, release },
  { "lines", QN_OP_CUMSUM, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_PORTABLE, nullptr, nullptr,
    cumsum_prepare, nullptr, cumsum_run, release },
};
const qn_engine_list cuda_select_lines_list = { row, sizeof row / sizeof *row };
