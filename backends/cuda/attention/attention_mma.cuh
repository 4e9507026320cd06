/* attention_mma.cuh -- attention by mma.sync, from compute capability 8.0 on: y = softmax(mask(softcap(scale q k') + bias)) v.
 *
 * A block of four warps takes 64 rows: queries of one sequence, with the heads of a group side by side, since they share their keys (so
 * few queries fill the Tensor Cores too). Keys and values come by cp.async in blocks of BN, two stages; S = q k' and its softmax are in
 * registers, O += P v with P from registers (attention_scores.cuh). Rows are addressed one by one: ragged sequences and
 * pages cost nothing.
 *
 * A block of 16 rows, for few of which attention_few.cuh does not take: each warp has a quarter of each block of keys, and they join at last.
 *
 * `splits`: the keys of a tile are shared by that many blocks; the last one to end joins their parts in one order.
 *
 * A weight of 0 times NaN is NaN, so a row that is not finite is computed again by a warp that reads only what it sees. */
#pragma once
#include "attention_change.cuh"
#include "attention_dropout.cuh"
#include "attention_mma.h"
#include "attention_scores.cuh"
#include "kit/sm80.cuh"

template <int kind_, int D_, int BN_, int ROWS_, bool PLAIN_> struct attention_many_shape {
  static constexpr int kind = kind_, D = D_, BN = BN_, ROWS = ROWS_, CHUNK = attention_operand<kind>::CHUNK;
  static constexpr bool PLAIN = PLAIN_, FEW = ROWS == 16, DROPS = !PLAIN && (kind != MMA_3XTF32 || D <= 128), TOGETHER = DROPS;     /* else it would spill */
  typedef typename attention_operand<kind>::element element;
  static constexpr float UNIT = kind == MMA_3XTF32 ? 0x1p24f : 1;       /* of values: so that the digits of subnormals are not cut off */
  static constexpr int N = FEW ? BN / 4 : BN;               /* keys of a warp */
  static constexpr int row = D / CHUNK * 16, stage = BN * row, shared = ROWS * row + 4 * stage + 2 * BN;
  static_assert(N % 16 == 0, "");
};

/* ---- geometry ---------------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ int64_t attention_integer(const void *p, int64_t at, int i64)
{
  return i64 ? ((const int64_t *)p)[at] : ((const int32_t *)p)[at];
}

/* A sequence's head of keys: where it begins, how far it goes. */
struct attention_sequence { int b, g, q0, k0, queries, keys, shift; };
/* That of a tile; row0: the tile's first row, tokens: the sequence's queries before lengths. The last tiles come first, for under a causal
 * mask they see the most. Ragged, a head has the tiles of all its sequences, some of them without rows, and tokens of no sequence are a
 * sequence that sees nothing (b -1, or the batch). */
template <int ROWS>
__device__ __forceinline__ attention_sequence attention_sequence_at(const cuda_attention_many &a, int tile, int &row0, int &tokens)
{
  const int of = tile / a.tiles, m = a.tiles - 1 - tile % a.tiles, key_heads = a.heads / a.group;
  attention_sequence s = { of / key_heads, of % key_heads, 0, 0, 0, a.keys, 0 };
  row0 = m * ROWS, tokens = a.queries;
  if (a.q_starts) {
    const int sequences = a.batch + 2, i = attention_sequence_of<ROWS, true>(a.q_starts, a.q_starts_stride, a.q_starts_i64, sequences,
                                                                             a.queries, m, a.group);
    int begin;
    s.q0 = attention_start<ROWS, true>(a.q_starts, a.q_starts_stride, a.q_starts_i64, i, tokens, begin, a.group, sequences);
    s.b = i - 1, s.g = of, row0 = (m - begin) * ROWS;
    if (s.b < 0 || s.b == a.batch) {
      s.keys = 0;
      return s;
    }
  }
  int tile_of_keys;
  if (a.kv_starts) s.k0 = attention_start<1>(a.kv_starts, a.kv_starts_stride, a.kv_starts_i64, s.b, s.keys, tile_of_keys);
  s.queries = attention_length(a.q_lengths, s.b * a.q_lengths_stride, a.q_lengths_i64, tokens);
  s.keys = attention_length(a.kv_lengths, s.b * a.kv_lengths_stride, a.kv_lengths_i64, s.keys);
  s.shift = a.top_left ? 0 : s.keys - s.queries;
  return s;
}

/* Row r of a sequence: query i of head h. low to high: the keys that lengths and the window admit. */
struct attention_line {
  int i, h, low, high;
  __device__ __forceinline__ attention_line(const cuda_attention_many &a, const attention_sequence &s, int r)
  {
    uint32_t in_group;
    i = (int)cuda_quotient((uint32_t)r, a.by_group, &in_group), h = s.g * a.group + (int)in_group;
    const int at = i + s.shift;
    high = i >= s.queries ? -1 : a.right < 0 ? s.keys - 1 : min(s.keys - 1, at + a.right);
    low = a.left < 0 ? 0 : max(0, at - a.left);
  }
  template <class T> __device__ __forceinline__ int64_t at(const attention_sequence &s, const T (&stride)[3], bool ragged) const
  {
    return (ragged ? 0 : s.b) * stride[0] + h * stride[1] + (int64_t)(s.q0 + i) * stride[2];
  }
};

/* Blocks of BN keys that any of rows row0 to end - 1 may see: the part `split` of them. first > last: none. */
template <int BN>
__device__ __forceinline__ void attention_blocks(const cuda_attention_many &a, const attention_sequence &s, int row0, int end, int split,
                                                 int &first, int &last)
{
  first = 0, last = -1;
  if (row0 < end) {
    const attention_line upper(a, s, row0), lower(a, s, end - 1);
    if (lower.high >= upper.low) first = upper.low / BN, last = lower.high / BN;
  }
  if (a.splits > 1) {
    const int each = (int)cuda_quotient(max(0, last - first + a.splits), a.by_splits);       /* of last - first + 1, rounded up */
    first += split * each, last = min(last, first + each - 1);
  }
}

/* Where key j lies; false: on no page that exists. */
__device__ __forceinline__ bool attention_key(const cuda_attention_many &a, const attention_sequence &s, int j, const int64_t (&stride)[3],
                                              int64_t &at)
{
  if (!a.pages) {
    at = (a.kv_starts ? 0 : s.b) * stride[0] + s.g * stride[1] + (int64_t)(s.k0 + j) * stride[2];
    return true;
  }
  const int64_t page = attention_integer(a.pages, s.b * a.pages_stride[0] + j / a.page * a.pages_stride[1], a.pages_i64);
  at = page * stride[0] + s.g * stride[1] + j % a.page * stride[2];
  return page >= 0 && page < a.n_pages;
}
__device__ __forceinline__ int64_t attention_spread(const cuda_attention_spread &t, int b, int h, int64_t i, int64_t j)
{
  return b * t.stride[0] + h * t.stride[1] + i * t.stride[2] + j * t.stride[3];
}

/* The score of key j from the product of query and key, times 1 / (unit ln 2); -Inf if mask or blocks hide it. */
static __device__ __noinline__ float attention_score(const cuda_attention_many &a, const attention_sequence &s, const attention_line &line,
                                                     int j, float x, bool &hidden)
{
  x = attention_changed_one(a.change, s.b, line.h, s.q0 + line.i, s.k0 + j, line.i + s.shift - j, x, hidden);
  if (a.blocks.p) {
    const int block = j / a.block_kv;
    const uint8_t bits = ((const uint8_t *)a.blocks.p)[attention_spread(a.blocks, s.b, line.h, line.i / a.block_q, block / 8)];
    hidden |= !(bits >> block % 8 & 1);
  }
  return hidden ? -INFINITY : x;
}

/* Single scores are changed, by more than dropout. */
__device__ __forceinline__ bool attention_scored(const cuda_attention_many &a)
{
  return a.change.valued || a.change.mask.p || a.blocks.p;
}

/* Dropout's draws for key j, which is even, and the next. */
static __device__ __noinline__ uint32_t attention_line_draws(const cuda_attention_many &a, const attention_sequence &s,
                                                             const attention_line &line, int j)
{
  return attention_draws((uint64_t)(a.seed.p ? *a.seed.p : a.seed.value), (uint64_t)(a.offset.p ? *a.offset.p : a.offset.value),
                         (uint64_t)((int64_t)s.b * a.heads + line.h), line.i, j);
}
/* Weights of rows g and g + 8 that dropout leaves; j: the first's key. What it keeps is scaled at the end. */
template <int N>
__device__ __forceinline__ void attention_drop(const cuda_attention_many &a, const attention_sequence &s, const attention_line (&line)[2],
                                               int j, float (&x)[N])
{
  const uint64_t seed = (uint64_t)(a.seed.p ? *a.seed.p : a.seed.value), offset = (uint64_t)(a.offset.p ? *a.offset.p : a.offset.value);
#pragma unroll
  for (int h = 0; h < 2; h++)
#pragma unroll
    for (int i = 0; i < N; i += 16) {
      uint32_t draws[4];
      attention_row_draws(draws, seed, offset, (uint64_t)((int64_t)s.b * a.heads + line[h].h), line[h].i, (j & ~7) + 2 * i);
#pragma unroll
      for (int k = 0; k < 4 && i + 4 * k < N; k++) {
        if ((draws[k] & 0xffff) < a.threshold) x[i + 4 * k + 2 * h] = 0;
        if (draws[k] >> 16 < a.threshold) x[i + 4 * k + 2 * h + 1] = 0;
      }
    }
}

/* ---- one row again, by a warp, in plain f32 ------------------------------------------------------------------------------ */

template <class T>
__device__ __noinline__ void attention_many_again(const cuda_attention_many &a, const attention_sequence &s, const attention_line &line)
{
  const int lane = threadIdx.x % 32;
  const typename T::element *q = (const typename T::element *)a.q + line.at(s, a.q_stride, a.q_starts),
                            *k = (const typename T::element *)a.k, *v = (const typename T::element *)a.v;
  float x[T::D / 32], sum[T::D / 32] = {}, m = -INFINITY, l = 0;
#pragma unroll
  for (int i = 0; i < T::D / 32; i++) x[i] = lane + 32 * i < a.d ? attention_value<T::kind>(q[lane + 32 * i]) : 0;
  const float natural = a.change.valued ? 1 : a.change.scale;
  auto score = [&](int j, bool &hidden) {
    int64_t at;
    hidden = !attention_key(a, s, j, a.k_stride, at);
    if (!hidden) attention_score(a, s, line, j, 0, hidden);
    if (hidden) return -INFINITY;
    float p = 0;
#pragma unroll
    for (int i = 0; i < T::D / 32; i++)
      if (lane + 32 * i < a.d) p = fmaf(x[i], attention_value<T::kind>(k[at + lane + 32 * i]), p);
    return __fmul_rn(attention_score(a, s, line, j, warp_sum(p), hidden), natural);         /* as it is the second time */
  };
  bool hidden;
#pragma unroll 1
  for (int j = line.low; j <= line.high; j++) {
    const float t = score(j, hidden);
    m = m != m || t <= m ? m : t;                           /* a NaN stays */
  }
#pragma unroll 1
  for (int j = line.low; j <= line.high && m != -INFINITY; j++) {
    const float t = score(j, hidden);
    int64_t at;
    if (hidden || !attention_key(a, s, j, a.v_stride, at)) continue;
    const float p = expf(t - m);
    l += p;
    if (T::DROPS && a.threshold && (attention_line_draws(a, s, line, j & ~1) >> 16 * (j & 1) & 0xffff) < a.threshold) continue;
#pragma unroll
    for (int i = 0; i < T::D / 32; i++)
      if (lane + 32 * i < a.dv) sum[i] = fmaf(p, attention_value<T::kind>(v[at + lane + 32 * i]), sum[i]);
  }
  const float sink = a.sink ? a.sink[line.h * a.sink_stride] : -INFINITY, top = m != m || m >= sink ? m : sink;
  const float all = m == -INFINITY ? 0 : l * expf(m - top), more = sink == -INFINITY ? 0 : expf(sink - top);
  const float by = m == -INFINITY ? 0 : expf(m - top) / (all + more) * (T::DROPS ? a.kept : 1);
  const int64_t at = line.at(s, a.y_stride, a.q_starts);
#pragma unroll
  for (int i = 0; i < T::D / 32; i++)
    if (lane + 32 * i < a.dv) attention_store(a, at, lane + 32 * i, m == -INFINITY ? 0 : sum[i] * by, T::kind == MMA_BF16);
  if (lane) return;
  if (a.lse) a.lse[line.at(s, a.lse_stride, a.q_starts)] = top == -INFINITY ? top : top + logf(all + more);
  if (a.max) a.max[line.at(s, a.max_stride, a.q_starts)] = m;
}

/* An early launch's blocks wait here for what comes before. */
__device__ __forceinline__ void attention_wait()
{
#if __CUDA_ARCH__ >= 900
  grid_dependency_wait();
#endif
}

/* From here on the next kernel may begin, if it waits as well. */
__device__ __forceinline__ void attention_early()
{
#if __CUDA_ARCH__ >= 900
  grid_dependents_launch();
#endif
}

/* ---- parts ---------------------------------------------------------------------------------------------------------------- */

/* The block has stored its part: true in the last one of the tile. */
__device__ __forceinline__ bool attention_last_part(const cuda_attention_many &a, int tile)
{
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(a.tickets + tile, 1) == a.splits - 1;
    if (last) a.tickets[tile] = 0;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

/* Stores what this thread has of its block's part; true in the last block of the tile, with all parts joined in order. */
template <int THREADS, int N>
__device__ __forceinline__ bool attention_join(const cuda_attention_many &a, int tile, int split, attention_softmax &st, float (&sum)[N])
{
  constexpr int words = (N + 4) * THREADS;
  float4 *mine = (float4 *)(a.parts + ((int64_t)tile * a.splits + split) * words) + threadIdx.x;
  mine[0] = make_float4(st.m[0], st.m[1], st.l[0], st.l[1]);
#pragma unroll
  for (int i = 0; i < N / 4; i++) mine[(i + 1) * THREADS] = make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
  __threadfence();
  if (!attention_last_part(a, tile)) return false;
  const float4 *part = (const float4 *)(a.parts + (int64_t)tile * a.splits * words) + threadIdx.x;
  float m[2] = { -1e30f, -1e30f };
  for (int p = 0; p < a.splits; p++) {
    const float4 has = __ldcg(part + (int64_t)p * (words / 4));
    m[0] = fmaxf(m[0], has.x), m[1] = fmaxf(m[1], has.y);
  }
  st.m[0] = m[0], st.m[1] = m[1], st.l[0] = st.l[1] = 0;
#pragma unroll
  for (int i = 0; i < N; i++) sum[i] = 0;
  for (int p = 0; p < a.splits; p++) {
    const float4 *of = part + (int64_t)p * (words / 4), has = __ldcg(of);
    const float by[2] = { fn_exp2((has.x - m[0]) * a.unit), fn_exp2((has.y - m[1]) * a.unit) };
    st.l[0] = fmaf(has.z, by[0], st.l[0]), st.l[1] = fmaf(has.w, by[1], st.l[1]);
#pragma unroll
    for (int i = 0; i < N / 4; i++) {
      const float4 v = __ldcg(of + (i + 1) * THREADS);
      sum[4 * i] = fmaf(v.x, by[0], sum[4 * i]), sum[4 * i + 1] = fmaf(v.y, by[0], sum[4 * i + 1]);
      sum[4 * i + 2] = fmaf(v.z, by[1], sum[4 * i + 2]), sum[4 * i + 3] = fmaf(v.w, by[1], sum[4 * i + 3]);
    }
  }
  return true;
}

/* The same of a tile of 16 rows, which the first warp has, and of which `rows` exist: their parts are many and small, so they are stored by
 * rows, and the last block's threads each sum four columns of a row, many parts in flight. room: the block's shared memory. */
enum { ATTENTION_PARTS = CUDA_ATTENTION_SPLITS };
template <int D>
__device__ __forceinline__ bool attention_join_few(const cuda_attention_many &a, int tile, int split, int rows, float *room,
                                                   attention_softmax &st, float (&sum)[D / 2])
{
  constexpr int words = 16 * (D + 2), pitch = D + 4, IN_FLIGHT = 16;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, r = lane / 4, column = lane % 4 * 2;
  const float *parts = a.parts + (int64_t)tile * a.splits * words;
  if (warp == 0) {
    float *mine = a.parts + ((int64_t)tile * a.splits + split) * words;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float l = st.l[h];
      l += __shfl_xor_sync(~0u, l, 1), l += __shfl_xor_sync(~0u, l, 2);
      if (r + 8 * h >= rows) continue;
      if (lane % 4 == 0) *(float2 *)(mine + 2 * (r + 8 * h)) = make_float2(st.m[h], l);
#pragma unroll
      for (int j = 0; j < D / 8; j++)
        *(float2 *)(mine + 32 + (r + 8 * h) * D + 8 * j + column) = make_float2(sum[4 * j + 2 * h], sum[4 * j + 2 * h + 1]);
    }
    __threadfence();
  }
  if (!attention_last_part(a, tile)) return false;
  float *by = room, *joined = room + 16 * ATTENTION_PARTS;  /* [16][parts]; [16] rows of sums, then a maximum and a divisor */
  for (int row = warp; row < rows; row += 4) {
    float2 has[ATTENTION_PARTS / 32];
    float m = -1e30f, l = 0;
#pragma unroll
    for (int i = 0; i < ATTENTION_PARTS / 32; i++) {
      const int p = lane + 32 * i;
      has[i] = p < a.splits ? __ldcg((const float2 *)(parts + (int64_t)p * words + 2 * row)) : make_float2(-1e30f, 0);
      m = fmaxf(m, has[i].x);
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
#pragma unroll
    for (int i = 0; i < ATTENTION_PARTS / 32; i++) {
      const float of = fn_exp2((has[i].x - m) * a.unit);
      by[row * ATTENTION_PARTS + lane + 32 * i] = of, l = fmaf(has[i].y, of, l);
    }
    l = warp_sum(l);
    if (lane == 0) joined[row * pitch + D] = m, joined[row * pitch + D + 1] = l;
  }
  __syncthreads();
  for (int item = threadIdx.x; item < rows * (D / 4); item += CUDA_ATTENTION_THREADS) {
    const int row = item / (D / 4), c = item % (D / 4) * 4;
    const float *from = parts + 32 + row * D + c;
    float4 x = {};
    for (int p = 0; p < a.splits; p += IN_FLIGHT) {
      float4 v[IN_FLIGHT];
#pragma unroll
      for (int i = 0; i < IN_FLIGHT; i++)
        v[i] = p + i < a.splits ? __ldcg((const float4 *)(from + (int64_t)(p + i) * words)) : make_float4(0, 0, 0, 0);
#pragma unroll
      for (int i = 0; i < IN_FLIGHT; i++) {
        const float of = by[row * ATTENTION_PARTS + p + i];
        x.x = fmaf(v[i].x, of, x.x), x.y = fmaf(v[i].y, of, x.y), x.z = fmaf(v[i].z, of, x.z), x.w = fmaf(v[i].w, of, x.w);
      }
    }
    *(float4 *)(joined + row * pitch + c) = x;
  }
  __syncthreads();
  if (warp) return false;
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float *of = joined + (r + 8 * h) * pitch;
    const bool is = r + 8 * h < rows;
    st.m[h] = is ? of[D] : -1e30f, st.l[h] = is && lane % 4 == 0 ? of[D + 1] : 0;
#pragma unroll
    for (int j = 0; j < D / 8; j++) {
      const float2 x = is ? *(const float2 *)(of + 8 * j + column) : make_float2(0, 0);
      sum[4 * j + 2 * h] = x.x, sum[4 * j + 2 * h + 1] = x.y;
    }
  }
  return true;
}

/* The warps' shares of the keys, joined in the first one's registers. at: room for what the others have. */
template <int N> __device__ __forceinline__ void attention_join_warps(float *at, float unit, attention_softmax &st, float (&sum)[N])
{
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  __syncthreads();                        /* the room was keys and values */
  if (warp) {
    float *to = at + (warp - 1) * (N + 4) * 32 + lane;
    to[0] = st.m[0], to[32] = st.m[1], to[64] = st.l[0], to[96] = st.l[1];
#pragma unroll
    for (int i = 0; i < N; i++) to[(i + 4) * 32] = sum[i];
  }
  __syncthreads();
  if (warp) return;
#pragma unroll 1
  for (int w = 0; w < 3; w++) {
    const float *of = at + w * (N + 4) * 32 + lane;
    float mine[2], theirs[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const float m = fmaxf(st.m[h], of[h * 32]);
      mine[h] = fn_exp2((st.m[h] - m) * unit), theirs[h] = fn_exp2((of[h * 32] - m) * unit);
      st.m[h] = m, st.l[h] = fmaf(of[(h + 2) * 32], theirs[h], st.l[h] * mine[h]);
    }
#pragma unroll
    for (int i = 0; i < N; i++) sum[i] = fmaf(of[(i + 4) * 32], theirs[i / 2 % 2], sum[i] * mine[i / 2 % 2]);
  }
}

/* ---- the kernel ------------------------------------------------------------------------------------------------------------ */

/* Shared memory: rows of D elements in chunks of 16 bytes, chunk c of row r at c ^ r % 8. */
template <class T> __device__ __forceinline__ uint32_t attention_chunk(uint32_t base, int r, int c)
{
  return base + r * T::row + ((c ^ (r & 7)) << 4);
}

template <class T> __global__ void __launch_bounds__(CUDA_ATTENTION_THREADS, T::D > 128 ? 1 : T::FEW ? 3 : 2)
    attention_mma(const __grid_constant__ cuda_attention_many a)
{
  constexpr int D = T::D, BN = T::BN, N = T::N, ROWS = T::ROWS, CHUNK = T::CHUNK, K = attention_operand<T::kind>::K, chunks = D / CHUNK;
  typedef typename T::element element;
  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t q0 = shared_address(shared), k0 = q0 + ROWS * T::row, v0 = k0 + 2 * T::stage;
  unsigned char *there = shared + ROWS * T::row + 4 * T::stage;     /* of a stage's keys: those on a page that exists */
  const int tile = blockIdx.x / a.splits, split = blockIdx.x % a.splits, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  attention_wait();
  int row0, tokens;
  const attention_sequence s = attention_sequence_at<ROWS>(a, tile, row0, tokens);
  const int end = min(row0 + ROWS, s.queries * a.group);
  const volatile int rows = tokens * a.group;               /* in memory until the end: the loop has no register for it */
  if (a.q_starts && row0 >= rows) return;

  int first, last;
  attention_blocks<BN>(a, s, row0, end, split, first, last);

  /* A thread copies one piece of a row, always the same, of every eighth, 16th, ... row. */
  constexpr int STEP = CUDA_ATTENTION_THREADS / chunks;
  const int piece = threadIdx.x % chunks;
  auto bytes = [&](int width) { return max(0, min(16, (width - piece * CHUNK) * (16 / CHUNK))); };
  auto load = [&](uint32_t to, const element *from, int n, int r) { copy_async<16>(attention_chunk<T>(to, r, piece), from, n); };
  const int k_bytes = bytes(a.d), v_bytes = bytes(a.dv);
  const element *keys = (const element *)a.k, *values = (const element *)a.v;
  /* Where this thread's piece of row 0 is: computed for each block, which takes no registers in between. */
  auto head_at = [&](const int64_t (&stride)[3]) {
    const int64_t at = s.g * stride[1] + piece * CHUNK;
    return a.pages ? at : at + (a.kv_starts ? 0 : s.b) * stride[0] + s.k0 * stride[2];
  };
  auto load_keys = [&](int n, int stage) {
    const int r0 = threadIdx.x / chunks, j0 = n * BN + r0;
    const element *k = keys + head_at(a.k_stride), *v = values + head_at(a.v_stride);
    if (!a.pages) {
#pragma unroll
      for (int i = 0; i < BN; i += STEP) {
        const bool is = j0 + i < s.keys;
        load(k0 + stage * T::stage, is && k_bytes ? k + (j0 + i) * a.k_stride[2] : keys, is ? k_bytes : 0, r0 + i);
        load(v0 + stage * T::stage, is && v_bytes ? v + (j0 + i) * a.v_stride[2] : values, is ? v_bytes : 0, r0 + i);
      }
      return;
    }
#pragma unroll (chunks > 32 ? 1 : 4)
    for (int i = 0; i < BN; i += STEP) {
      const int j = j0 + i;
      bool is = j < s.keys;
      int64_t at_k = 0, at_v = 0;
      if (is) {
        const int64_t page = attention_integer(a.pages, s.b * a.pages_stride[0] + j / a.page * a.pages_stride[1], a.pages_i64);
        is = page >= 0 && page < a.n_pages;
        at_k = page * a.k_stride[0] + j % a.page * a.k_stride[2], at_v = page * a.v_stride[0] + j % a.page * a.v_stride[2];
      }
      load(k0 + stage * T::stage, is && k_bytes ? k + at_k : keys, is ? k_bytes : 0, r0 + i);
      load(v0 + stage * T::stage, is && v_bytes ? v + at_v : values, is ? v_bytes : 0, r0 + i);
      if (piece == 0) there[stage * BN + r0 + i] = is;
    }
  };
#pragma unroll 1
  for (int r = threadIdx.x / chunks; r < ROWS; r += STEP) {
    const bool is = row0 + r < end && k_bytes;
    const element *q = (const element *)a.q;
    load(q0, is ? q + attention_line(a, s, row0 + r).at(s, a.q_stride, a.q_starts) + piece * CHUNK : q, is ? k_bytes : 0, r);
  }
  copy_async_commit();

  float sum[D / 2], by[2];
  attention_softmax st;
  const int first_row = T::FEW ? 0 : warp * 16, first_key = T::FEW ? warp * N : 0, row = row0 + first_row + lane / 4;
  const attention_line line[2] = { attention_line(a, s, row), attention_line(a, s, row + 8) };
  const int column = first_key + lane % 4 * 2, high[2] = { line[0].high - column, line[1].high - column },
            low[2] = { line[0].low - column, line[1].low - column };
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float sink = a.sink && split == 0 && (!T::FEW || warp == 0) ? a.sink[line[h].h * a.sink_stride] : -INFINITY;
    st.m[h] = sink == -INFINITY ? -1e30f : sink / (a.unit * 0.69314718056f);
    st.l[h] = sink == -INFINITY || lane % 4 ? 0 : 1;
  }
#pragma unroll
  for (int i = 0; i < D / 2; i++) sum[i] = 0;

  const bool scored = !T::PLAIN && attention_scored(a), together = T::TOGETHER && scored && !a.blocks.p && !a.pages;
  /* A block ahead. The copies stand here alone: a kernel of a few blocks waits longest for its instructions. */
  for (int n = first - 1, stage = 1; n <= last; n++, stage ^= 1) {
    if (n < last) load_keys(n + 1, stage ^ 1);
    copy_async_commit();
    if (n < first) continue;
    copy_async_wait<1>();
    __syncthreads();
    /* S = q k' */
    float x[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; i++) x[i] = 0;
#pragma unroll (T::PLAIN && chunks > 32 ? 8 : chunks / 2)     /* 256 elements of f32: as many addresses as registers allow */
    for (int k = 0; k < chunks / 2; k++) {
      uint32_t q[4];
      load_matrices<false>(q, attention_chunk<T>(q0, first_row + lane % 16, 2 * k + lane / 16));
#pragma unroll
      for (int j = 0; j < N / 16; j++) {
        uint32_t b[4];
        const int key = first_key + j * 16 + lane / 16 * 8 + lane % 8;
        load_matrices<false>(b, attention_chunk<T>(k0 + stage * T::stage, key, 2 * k + lane / 8 % 2));
        attention_product<T::kind>(x + 8 * j, q, b[0], b[1]);
        attention_product<T::kind>(x + 8 * j + 4, q, b[2], b[3]);
      }
    }
    /* Softmax */
    if (together) {
      const int end_query = max(0, s.queries - 1), h[2] = { line[0].h, line[1].h },
                i[2] = { s.q0 + min(line[0].i, end_query), s.q0 + min(line[1].i, end_query) },
                zero[2] = { line[0].i + s.shift, line[1].i + s.shift }, block = n * BN + first_key;
      const attention_change_rows changes(a.change, s.b, h, i, s.k0);
      attention_changed<T::kind == MMA_3XTF32>(a.change, changes, zero, block, s.keys, x);
    } else if (scored || a.pages) {
#pragma unroll
      for (int i = 0; i < N / 2; i++) {
        const int at = column + i / 4 * 8 + i % 2, j = n * BN + at, h = i / 2 % 2;
        bool hidden = a.pages && !there[stage * BN + at];
        if (hidden) x[i] = -INFINITY;
        else if (scored && j <= line[h].high && j >= line[h].low) x[i] = attention_score(a, s, line[h], j, x[i], hidden);
      }
    }
    const int up[2] = { high[0] - n * BN, high[1] - n * BN }, down[2] = { low[0] - n * BN, low[1] - n * BN };
    if (min(up[0], up[1]) < BN || max(down[0], down[1]) > -column) attention_mask(x, down, up);
    attention_maximum(x, st, a.unit, by);
    attention_exponentials(x, st, a.unit, by);
    if (T::DROPS && a.threshold) attention_drop(a, s, line, n * BN + column, x);
    attention_rescale(sum, by);
    /* O += P v */
    uint32_t p[N / 2 * 8 / K];
    attention_pack<T::kind>(x, p);
#pragma unroll
    for (int k = 0; k < N / K; k++)
#pragma unroll
      for (int j = 0; j < D / 16; j++) {
        uint32_t b[4];
        attention_summed<T::kind>(b, v0 + stage * T::stage + (first_key + k * K) * T::row, T::row, 16 * j, T::UNIT);
        attention_product<T::kind>(sum + 8 * j, p + 4 * k, b[0], b[1]);
        attention_product<T::kind>(sum + 8 * j + 4, p + 4 * k, b[2], b[3]);
      }
    __syncthreads();                      /* this stage is loaded next */
  }
  copy_async_wait<0>();
  if (T::FEW) attention_join_warps((float *)(shared + ROWS * T::row), a.unit, st, sum);
  if (a.splits > 1) {
    bool mine;
    if constexpr (T::FEW) mine = attention_join_few<D>(a, tile, split, min(ROWS, rows - row0), (float *)(shared + ROWS * T::row), st, sum);
    else mine = attention_join<CUDA_ATTENTION_THREADS>(a, tile, split, st, sum);
    if (!mine) return;
  } else if (T::FEW && warp) {
    return;
  }

  /* Results, and rows that are not finite again. */
  unsigned again[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const bool sees = line[h].high >= line[h].low, is = row + 8 * h < rows;
    float l = st.l[h], probe = 0;
    l += __shfl_xor_sync(~0u, l, 1), l += __shfl_xor_sync(~0u, l, 2);
#pragma unroll
    for (int j = 0; j < D / 8; j++) probe = fmaf(sum[4 * j + 2 * h], 0.f, fmaf(sum[4 * j + 2 * h + 1], 0.f, probe));
    probe += __shfl_xor_sync(~0u, probe, 1), probe += __shfl_xor_sync(~0u, probe, 2);
    const bool bad = is && sees && !(probe == 0 && l >= 1e-30f && l < INFINITY && fabsf(st.m[h]) < 1e30f);
    again[h] = __ballot_sync(~0u, bad && lane % 4 == 0);
    const int64_t at = line[h].at(s, a.y_stride, a.q_starts);
    attention_put<T::kind, D>(a, at, sum, h, (T::DROPS ? a.kept : 1) / l / T::UNIT, is && sees && !bad);
    for (int c = lane % 4; c < a.dv && is && !sees; c += 4) attention_store(a, at, c, 0, T::kind == MMA_BF16);
    if (!is || bad || lane % 4) continue;
    const float sink = a.sink && line[h].i < s.queries ? a.sink[line[h].h * a.sink_stride] : -INFINITY, natural = a.unit * 0.69314718056f;
    if (a.lse) a.lse[line[h].at(s, a.lse_stride, a.q_starts)] = sees ? fmaf(st.m[h], natural, logf(l)) : sink;
    if (a.max) a.max[line[h].at(s, a.max_stride, a.q_starts)] = sees ? st.m[h] * natural : -INFINITY;
  }
#pragma unroll 1
  for (int i = 0; i < 16; i++)
    if (again[i / 8] >> i % 8 * 4 & 1) attention_many_again<T>(a, s, attention_line(a, s, row0 + first_row + i));
}

#define ATTENTION_MANY(kind, d, bn, rows) \
  { d, d, bn, rows, CUDA_ATTENTION_THREADS, true, attention_many_shape<kind, d, bn, rows, true>::shared, \
    (const void *)attention_mma<attention_many_shape<kind, d, bn, rows, true>>, \
    (const void *)attention_mma<attention_many_shape<kind, d, bn, rows, false>> },
