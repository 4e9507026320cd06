/* attention_wgmma.cuh -- attention on Hopper's Tensor Cores: y = softmax(mask(scale q k')) v, scores never in memory.
 *
 * Persistent: a block takes tiles of BM queries of one head from a counter, under a causal mask the longest first, in sections of
 * heads whose keys and values fit the L2 cache. Warp 1 of the first warpgroup takes them, a tile ahead, and fetches into L2 what they
 * begin with; warp 0 loads q, k and v by TMA, k and v through rings of STAGES blocks of BN keys, q through QS buffers, so that the
 * next tile's are there when a tile ends. Each of the other warpgroups owns 64 queries and goes its own way, past the blocks that none
 * of its queries sees: S = q k' by wgmma from shared memory, running maxima and sums in registers, O += P v with P from registers.
 * The next S is issued before this P v, so the softmax runs under both. Keys go from last to first, so that blocks that need a mask come
 * first under a causal one; where a warpgroup's queries see few keys of the first, it multiplies and weighs no more of them.
 *
 * What changes scores: a bias of each query and key comes by TMA as well, by warps 2 and 3, a ring of tiles for each warpgroup, and a warp
 * finds its scores' by ldmatrix. Biases and masks of keys alone are 16 more elements of q and k, which those warps write. All else is
 * read where it lies in memory, score by score.
 *
 * A weight of 0 times a NaN or Inf value is NaN: what a query must not see could reach its result (the rest of a block on
 * the diagonal, of a sequence's end). So each row is looked at before it is stored, and if it is not finite, computed again by one
 * warp that reads only what the query sees. That is also where scores out of reach of the running maximum (below -1e30) end.
 *
 * ptxas moves waits and named barriers up past arithmetic. What keeps them behind it: a dependence of the wait on the results, by a
 * branch that is never taken (stop_if). */
#pragma once
#include "attention_wgmma.h"
#include "attention_change.cuh"

/* How scores change: singly, by all that changes them; by a tile of biases; by a term of each key. */
enum { ATTENTION_PLAIN, ATTENTION_CHANGED, ATTENTION_TILES, ATTENTION_TERMS };
template <bool RAGGED> struct attention_tile;

template <int kind_, int BM_, int BN_, int D_, int DV_, int STAGES_, int QS_, bool RAGGED_, int change>
struct attention_shape {
  static constexpr bool RAGGED = RAGGED_, CHANGED = change == ATTENTION_CHANGED, TILES = change == ATTENTION_TILES,
                        TERMS = change == ATTENTION_TERMS, ANY = change != ATTENTION_PLAIN;
  typedef attention_tile<RAGGED> tile;
  static constexpr int kind = kind_, D = D_, DV = DV_, BM = BM_, BN = BN_, STAGES = STAGES_, QS = QS_, WGS = BM / 64;
  static constexpr int threads = 128 * (WGS + 1);
  static constexpr int P = (D + 63) / 64 * 64, PV = (DV + 63) / 64 * 64;          /* elements of their rows in shared memory */
  static constexpr int q_bytes = BM * P * 2, k_bytes = BN * P * 2, v_bytes = BN * PV * 2;
  /* Behind them, of each warpgroup, tiles of biases; or terms of keys for each stage, and of queries. */
  static constexpr int header = 2048, operands = header + QS * q_bytes + STAGES * (k_bytes + v_bytes), bias_bytes = 64 * BN * 2,
                       terms_bytes = BN * 32, room = (227 * 1024 - operands) / (WGS * bias_bytes), BIASES = room < 3 ? room : 3;
  static constexpr int shared = operands + (TILES ? WGS * BIASES * bias_bytes : TERMS ? STAGES * terms_bytes + 64 * 32 : 0);
  static constexpr int NARROW = !ANY && BN == 128 && D <= 96 ? 80 : 0;    /* keys of a last block of which no more are seen */
  static_assert(STAGES <= 4 && QS <= 2 && shared <= 227 * 1024, "");
};

/* ---- tiles --------------------------------------------------------------------------------------------------------- */

/* first > last: no query of the tile sees a key. rows: those whose results are stored. */
template <> struct attention_tile<false> {
  int b, h, row0, queries, keys, shift, first, last;        /* the first and last block of keys */
  __device__ __forceinline__ int high(const cuda_attention &a, int row) const       /* the last key that a query sees */
  {
    return row >= queries ? -1 : a.right < 0 ? keys - 1 : min(keys - 1, row + shift + a.right);
  }
  __device__ __forceinline__ int low(const cuda_attention &a, int row) const { return a.left < 0 ? 0 : max(0, row + shift - a.left); }
  __device__ __forceinline__ int rows(const cuda_attention &a) const { return a.queries; }
  /* Where row i of queries, key j lie in their tensors. */
  __device__ __forceinline__ int query(int i) const { return i; }
  __device__ __forceinline__ int key(int j) const { return j; }
  __device__ __forceinline__ int key_b() const { return b; }
};
/* b: of queries' tensor. A box of keys may end in the next sequence: as keys beyond a length, masks hide them. */
template <> struct attention_tile<true> : attention_tile<false> {
  int q0, k0, of_keys, tokens;            /* where the sequence begins; b of keys; its queries before lengths */
  __device__ __forceinline__ int rows(const cuda_attention &) const { return tokens; }
  __device__ __forceinline__ int query(int i) const { return q0 + i; }
  __device__ __forceinline__ int key(int j) const { return k0 + j; }
  __device__ __forceinline__ int key_b() const { return of_keys; }
};
/* Where tile m of ragged tensors lies. Tokens of no sequence are one that sees nothing. */
template <int BM> __device__ __forceinline__ void attention_ragged_at(const cuda_attention &a, attention_tile<true> &t, int m)
{
  int sequence = t.b, begin;
  t.q0 = t.k0 = 0, t.of_keys = t.b, t.tokens = a.queries, t.keys = a.keys;
  if (a.q_starts) {
    const int sequences = a.sequences + 2, i = attention_sequence_of<BM, true>(a.q_starts, a.q_starts_stride, a.q_starts_i64, sequences,
                                                                               a.queries, m);
    t.q0 = attention_start<BM, true>(a.q_starts, a.q_starts_stride, a.q_starts_i64, i, t.tokens, begin, 1, sequences);
    sequence = t.of_keys = i - 1, t.row0 = (m - begin) * BM;
  }
  if (sequence < 0 || sequence == a.sequences) {
    t.queries = t.keys = 0;
    return;
  }
  if (a.kv_starts) t.k0 = attention_start<1>(a.kv_starts, a.kv_starts_stride, a.kv_starts_i64, sequence, t.keys, begin), t.of_keys = 0;
  t.queries = attention_length(a.q_lengths, sequence * a.q_lengths_stride, a.q_lengths_i64, t.tokens);
  t.keys = attention_length(a.kv_lengths, sequence * a.kv_lengths_stride, a.kv_lengths_i64, t.keys);
}
template <class T> __device__ __forceinline__ typename T::tile attention_tile_at(const cuda_attention &a, uint32_t tile)
{
  constexpr int BM = T::BM, BN = T::BN;
  typename T::tile t;
  const int n = a.section * a.tiles_m, section = tile / n * a.section, heads = min(a.section, a.batch * a.heads - section),
            in = tile - section * a.tiles_m;
  int head, m;
  if (a.right < 0) head = section + in / a.tiles_m, m = in % a.tiles_m;
  else head = section + in % heads, m = a.tiles_m - 1 - in / heads;                     /* later queries see more keys */
  t.b = head / a.heads, t.h = head % a.heads, t.row0 = m * BM;
  if constexpr (T::RAGGED) {
    attention_ragged_at<BM>(a, t, m);
  } else {
    t.queries = attention_length(a.q_lengths, t.b * a.q_lengths_stride, a.q_lengths_i64, a.queries);
    t.keys = attention_length(a.kv_lengths, t.b * a.kv_lengths_stride, a.kv_lengths_i64, a.keys);
  }
  t.shift = a.top_left ? 0 : t.keys - t.queries;
  const int end = min(t.row0 + BM, t.queries) - 1, high = end < t.row0 ? -1 : t.high(a, end), low = t.low(a, t.row0);
  t.first = low / BN, t.last = high < low ? t.first - 1 : high / BN;
  return t;
}

template <class TILE> __device__ __forceinline__ int64_t attention_at(const TILE &t, const int64_t (&stride)[3], int row)
{
  return t.b * stride[0] + t.h * stride[1] + t.query(row) * stride[2];
}

/* What warp 1 tells the others: a tile, and for each warpgroup the blocks that its queries see; b < 0: there are no more. */
struct __align__(16) attention_blocks {
  int first, last, whole_first, whole_last;                 /* whole: all of its queries see all of the block, which needs no mask */
  int narrow;                                               /* its queries see no more than NARROW keys of the last block */
};
template <bool RAGGED> struct attention_slot {
  attention_tile<RAGGED> t;
  attention_blocks of[3];
};
enum { ATTENTION_SLOTS = 8 };
static_assert(256 + ATTENTION_SLOTS * sizeof(attention_slot<true>) <= 2048, "room before q");
template <class T>
__device__ __forceinline__ void attention_fill(attention_slot<T::RAGGED> &s, const cuda_attention &a, const typename T::tile &t)
{
  s.t = t;
#pragma unroll 1
  for (int w = 0; w < T::WGS; w++) {
    const int row = t.row0 + w * 64, end = min(row + 64, t.queries) - 1, high = end < row ? -1 : t.high(a, end), low = t.low(a, row);
    s.of[w] = { low / T::BN, high < low ? low / T::BN - 1 : high / T::BN, (t.low(a, row + 63) + T::BN - 1) / T::BN,
                t.high(a, row + 63) < 0 ? -1 : (t.high(a, row) + 1) / T::BN - 1, high % T::BN < T::NARROW };
  }
}

/* ---- one row again, by a warp, in plain f32 --------------------------------------------------------------------- */

template <class T> __device__ __noinline__ void attention_row_again(const cuda_attention &a, const typename T::tile &t, int row)
{
  constexpr int kind = T::kind, D = T::D, DV = T::DV;
  const int lane = threadIdx.x % 32, low = t.low(a, row), high = t.high(a, row), g = t.h / a.group;
  const uint16_t *q = a.q_rows + attention_at(t, a.q_stride, row);
  const uint16_t *k = a.k_rows + t.key_b() * a.k_stride[0] + g * a.k_stride[1],
                 *v = a.v_rows + t.key_b() * a.v_stride[0] + g * a.v_stride[1];
  float x[D / 32], sum[DV / 32] = {}, m = -INFINITY, l = 0;
#pragma unroll
  for (int i = 0; i < D / 32; i++) x[i] = lane + 32 * i < a.d ? attention_value<kind>(q[lane + 32 * i]) : 0;
  auto score = [&](int j, bool &hidden) {
    float s = 0;
#pragma unroll
    for (int i = 0; i < D / 32; i++)
      if (lane + 32 * i < a.d) s = fmaf(x[i], attention_value<kind>(k[t.key(j) * a.k_stride[2] + lane + 32 * i]), s);
    s = warp_sum(s), hidden = false;
    if (T::ANY) s = attention_changed_one(a.change, t.b, t.h, row, j, row + t.shift - j, s, hidden);
    if (T::TERMS && a.change.valued) return s;
    return __fmul_rn(s, a.scale);                           /* the same each time: not fused with what is subtracted */
  };
  bool hidden;
#pragma unroll 1
  for (int j = low; j <= high; j++) {
    const float s = score(j, hidden);
    m = m != m || s <= m ? m : s;                           /* a NaN stays */
  }
  if (m != -INFINITY) {
#pragma unroll 1
    for (int j = low; j <= high; j++) {
      const float p = expf(score(j, hidden) - m);
      if (T::ANY && hidden) continue;
      l += p;
#pragma unroll
      for (int i = 0; i < DV / 32; i++)
        if (lane + 32 * i < a.dv) sum[i] = fmaf(p, attention_value<kind>(v[t.key(j) * a.v_stride[2] + lane + 32 * i]), sum[i]);
    }
  }
  const float sink = a.sink ? a.sink[t.h * a.sink_stride] : -INFINITY, top = m != m || m >= sink ? m : sink;
  const float all = m == -INFINITY ? 0 : l * expf(m - top), more = sink == -INFINITY ? 0 : expf(sink - top);
  const int64_t at = attention_at(t, a.y_stride, row);
  const float by = m == -INFINITY ? 0 : expf(m - top) / (all + more);
#pragma unroll
  for (int i = 0; i < DV / 32; i++)
    if (lane + 32 * i < a.dv) attention_store(a, at, lane + 32 * i, m == -INFINITY ? 0 : sum[i] * by, kind == MMA_BF16);
  if (lane) return;
  if (a.lse) a.lse[attention_at(t, a.lse_stride, row)] = top == -INFINITY ? top : top + logf(all + more);
  if (a.max) a.max[attention_at(t, a.max_stride, row)] = m;
}

__device__ __forceinline__ void stop_if(bool never) { if (never) asm volatile("trap;"); }

/* Nothing, as the result of a row whose query sees no key: by the four threads that have it. */
template <class TILE> __device__ __forceinline__ void attention_unseen(const cuda_attention &a, const TILE &t, int row, bool bf16)
{
  const int64_t at = attention_at(t, a.y_stride, row);
  for (int c = threadIdx.x % 4; c < a.dv; c += 4) attention_store(a, at, c, 0, bf16);
  if (threadIdx.x % 4) return;
  if (a.lse) a.lse[attention_at(t, a.lse_stride, row)] =
      a.sink && row < t.queries ? a.sink[t.h * a.sink_stride] : -INFINITY;
  if (a.max) a.max[attention_at(t, a.max_stride, row)] = -INFINITY;
}

/* Stores this warp's 16 rows, from row0 on; of those that must be computed again, bits 4 i and 4 i + 1 are set: rows i and i + 8. No
 * product of this warpgroup runs meanwhile, so both rows of a thread go side by side: their sums, logarithms and addresses. */
template <class T>
__device__ __forceinline__ unsigned attention_end(const cuda_attention &a, const typename T::tile &of, int row0,
                                                  const attention_softmax &st, const float (&sum)[T::DV / 2])
{
  const typename T::tile t = of;          /* from shared memory once */
  const int lane = threadIdx.x % 32, row = row0 + lane / 4;
  float l[2] = { st.l[0], st.l[1] }, probe[4] = {};
#pragma unroll
  for (int i = 0; i < T::DV / 2; i++) probe[i % 4] = fmaf(sum[i], 0.f, probe[i % 4]);
  float not_finite[2] = { probe[0] + probe[1], probe[2] + probe[3] };
#pragma unroll
  for (int by = 1; by < 4; by *= 2)
#pragma unroll
    for (int h = 0; h < 2; h++)
      l[h] += __shfl_xor_sync(~0u, l[h], by), not_finite[h] += __shfl_xor_sync(~0u, not_finite[h], by);
  unsigned again = 0;
  bool whole[2], unseen[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {           /* without a branch, each of which costs some ten instructions' time */
    const int at = row + 8 * h, high = a.right < 0 ? t.keys - 1 : min(t.keys - 1, at + t.shift + a.right);
    const bool sees = (at < t.queries) & (high >= t.low(a, at)), there = at < t.rows(a);
    const bool good = (not_finite[h] == 0) & (l[h] >= 1e-30f) & (l[h] < INFINITY) & (fabsf(st.m[h]) < 1e30f);
    again |= __ballot_sync(~0u, there & sees & !good & (lane % 4 == 0)) << h;
    whole[h] = there & sees & good, unseen[h] = there & !sees;
  }
  if (unseen[0] | unseen[1]) {
#pragma unroll 1
    for (int h = 0; h < 2; h++)
      if (unseen[h]) attention_unseen(a, t, row + 8 * h, T::kind == MMA_BF16);
  }
  const int64_t at = attention_at(t, a.y_stride, row);
  attention_put<T::kind, T::DV>(a, at, sum, 0, fn_reciprocal(l[0]), whole[0]);
  attention_put<T::kind, T::DV>(a, at + 8 * a.y_stride[2], sum, 1, fn_reciprocal(l[1]), whole[1]);
  if (lane % 4 == 0 && a.lse) {
    float *lse = a.lse + attention_at(t, a.lse_stride, row);
    const float log0 = fmaf(st.m[0], a.scale, __logf(l[0])), log1 = fmaf(st.m[1], a.scale, __logf(l[1]));
    if (whole[0]) *lse = log0;
    if (whole[1]) lse[8 * a.lse_stride[2]] = log1;
  }
  if (lane % 4 == 0 && a.max) {
    float *max = a.max + attention_at(t, a.max_stride, row);
    if (whole[0]) *max = st.m[0] * a.scale;
    if (whole[1]) max[8 * a.max_stride[2]] = st.m[1] * a.scale;
  }
  return again;
}

/* ---- terms of keys ------------------------------------------------------------------------------------------------- */

/* Biases and masks that are the same for all queries are products too: 16 more elements of each key, (bias in three parts, which together
 * have all of its bits; 0, ...), and of each query (unit, unit, unit, 0, ...). A masked key's bias is -Inf. Rows of 32 bytes, swizzled.
 * unit: a power of two that makes parts about as large as biases are. */
__device__ __forceinline__ void attention_terms_store(uint32_t to, uint32_t x, uint32_t y)
{
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %3};" :: "r"(to), "f"(__uint_as_float(x)), "f"(__uint_as_float(y)), "f"(0.f) : "memory");
}
template <class T> __device__ __forceinline__ void attention_terms_begin(uint32_t to, float unit)
{
  const uint32_t x = T::kind == MMA_BF16 ? pack_bf16(unit, unit) : pack_f16(unit, unit);
  for (int i = threadIdx.x; i < T::STAGES * T::BN * 2; i += T::threads) attention_terms_store(to + i * 16, 0, 0);
  to += T::STAGES * T::terms_bytes;
  for (int i = threadIdx.x; i < 128; i += T::threads) {
    const bool first = (i & 1) == (i / 8 & 1);
    attention_terms_store(to + i * 16, first ? x : 0, first ? x & 0xffff : 0);
  }
}
/* By 64 threads, from 64 on. */
template <class T> struct attention_terms {
  const cuda_attention &a;
  int64_t bias, mask;
  static __device__ __forceinline__ int64_t from(const cuda_attention_spread &t, int b, int h) { return b * t.stride[0] + h * t.stride[1]; }
  __device__ __forceinline__ attention_terms(const cuda_attention &a, int b, int h)
    : a(a), bias(from(a.change.bias, b, h)), mask(from(a.change.mask, b, h)) {}
  static __device__ __forceinline__ uint32_t pair(float x, float y) { return T::kind == MMA_BF16 ? pack_bf16(x, y) : pack_f16(x, y); }
  static __device__ __forceinline__ float part(float x) { return attention_value<T::kind>((uint16_t)pair(x, 0)); }
  template <class F> __device__ __forceinline__ void put(uint32_t to, int key, F &&wait) const
  {
    const cuda_attention_spread &of = a.change.bias, &hides = a.change.mask;
    float x[T::BN / 64];
#pragma unroll
    for (int i = 0; i < T::BN / 64; i++) {
      const int j = key + (int)threadIdx.x - 64 + 64 * i;
      x[i] = 0;
      if (j >= a.keys) continue;
      if (of.p) x[i] = element_load<float>(of.p, bias + j * of.stride[3], dtype3(of.dtype)) * a.by_unit;
      if (hides.p && !((const uint8_t *)hides.p)[mask + j * hides.stride[3]]) x[i] = -INFINITY;
    }
    wait();
#pragma unroll
    for (int i = 0; i < T::BN / 64; i++) {
      const uint32_t row = threadIdx.x - 64 + 64 * i;
      const float first = part(x[i]), rest = fabsf(first) < INFINITY ? x[i] - first : 0, second = part(rest), third = rest - second;
      attention_terms_store(to + row * 32 + (row / 4 % 2 << 4), pair(first, second), pair(third, 0));
    }
  }
};

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

template <class T> __global__ void __launch_bounds__(T::threads, 1) attention_wgmma(const __grid_constant__ cuda_attention a)
{
  constexpr int D = T::D, DV = T::DV, BN = T::BN, BM = T::BM, WGS = T::WGS, STAGES = T::STAGES, QS = T::QS, NARROW = T::NARROW;
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t base = shared_address(shared), q0 = base + T::header, k0 = q0 + QS * T::q_bytes, v0 = k0 + STAGES * T::k_bytes,
                 q_full = base, q_empty = base + 32, k_full = base + 64, k_empty = base + 96, v_full = base + 128, v_empty = base + 160,
                 taken = base + 192, ahead = base + 200, more0 = v0 + STAGES * T::v_bytes;
  typedef attention_slot<T::RAGGED> slot_of;
  const uint32_t bias_full = base + 256 + ATTENTION_SLOTS * sizeof(slot_of), bias_empty = bias_full + WGS * T::BIASES * 8;
  static_assert(!T::TILES || 256 + ATTENTION_SLOTS * sizeof(slot_of) + WGS * T::BIASES * 16 <= T::header, "room before q");
  /* Warps 2 and 3 have work of their own. */
  constexpr bool helped = T::TERMS || T::TILES;
  slot_of *slots = (slot_of *)(shared + 256);          /* of eight tiles, since one is read until its tile has ended */
  volatile int *had = (volatile int *)(shared + 208);                /* of each warpgroup: the last block that it had its turn with */
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  if (threadIdx.x == 0) {
    for (int i = 0; i < QS; i++) barrier_init(q_full + i * 8, 1), barrier_init(q_empty + i * 8, 4 * WGS);
    for (int i = 0; i < STAGES * 8; i += 8)
      barrier_init(k_full + i, T::TERMS ? 3 : 1), barrier_init(v_full + i, 1), barrier_init(k_empty + i, WGS), barrier_init(v_empty + i, WGS);
    barrier_init(taken, 1), barrier_init(ahead, helped ? 3 : 1);
    if (T::TILES)
      for (int i = 0; i < WGS * T::BIASES * 8; i += 8) barrier_init(bias_full + i, 1), barrier_init(bias_empty + i, 4);
    for (int i = 0; i < WGS; i++) had[i] = -1;
    barrier_init_fence();
    tma_prefetch_map(&a.q), tma_prefetch_map(&a.k), tma_prefetch_map(&a.v);
    if (T::TILES) tma_prefetch_map(&a.bias);
  }
  if constexpr (T::TERMS) {
    attention_terms_begin<T>(more0, a.unit);
    proxy_fence();
  }
  __syncthreads();
  grid_dependency_wait();
  if (group == 0) {
    registers_lower<WGS == 2 ? 40 : 32>();
    if (threadIdx.x == 0) {
      /* Loads. A tile's q goes first, but follows its first k, for which there is room earlier, if q has one buffer. */
      int stage = 0, phase = 1;
      for (int turn = 0;; turn++) {
        const int b = turn % QS;
        auto q_free = [&] {               /* and of the slots the one after the next */
          barrier_wait(q_empty + b * 8, (turn / QS & 1) ^ 1), barrier_arrive(ahead);
        };
        barrier_wait(taken, turn & 1);
        const typename T::tile t = slots[turn % ATTENTION_SLOTS].t;
        if (t.b < 0 || t.first > t.last) q_free(), barrier_expect(q_full + b * 8, 0);
        if (t.b < 0) break;
        const int g = t.h / a.group;
        auto load_q = [&] {
          q_free(), barrier_expect(q_full + b * 8, T::q_bytes);
          for (int c = 0; c < D; c += 64) tma_load(q0 + b * T::q_bytes + c * BM * 2, &a.q, c, t.query(t.row0), t.h, t.b, q_full + b * 8);
        };
        if (QS > 1 && t.first <= t.last) load_q();
        for (int n = t.last; n >= t.first; n--) {
          barrier_wait(k_empty + stage * 8, phase), barrier_expect(k_full + stage * 8, T::k_bytes);
          for (int c = 0; c < D; c += 64)
            tma_load(k0 + stage * T::k_bytes + c * BN * 2, &a.k, c, t.key(n * BN), g, t.key_b(), k_full + stage * 8);
          if (QS == 1 && n == t.last) load_q();
          barrier_wait(v_empty + stage * 8, phase), barrier_expect(v_full + stage * 8, T::v_bytes);
          for (int c = 0; c < DV; c += 64)
            tma_load(v0 + stage * T::v_bytes + c * BN * 2, &a.v, c, t.key(n * BN), g, t.key_b(), v_full + stage * 8);
          if (++stage == STAGES) stage = 0, phase ^= 1;
        }
      }
    } else if (threadIdx.x == 32) {
      int b = -1, g = -1, k0 = 0;
      for (int turn = 0;; turn++) {
        typename T::tile t;
        do {                              /* past tiles without rows, which ragged tensors have */
          const uint32_t tile = atomicAdd(a.counter, 1);
          if (tile < a.tiles) t = attention_tile_at<T>(a, tile);
          else (attention_tile<false> &)t = { -1, 0, 0, 0, 0, 0, 0, -1 };
        } while (T::RAGGED && t.b >= 0 && t.row0 >= t.rows(a));
        if (turn) barrier_wait(ahead, (turn & 1) ^ 1);
        attention_fill<T>(slots[turn % ATTENTION_SLOTS], a, t);
        barrier_expect(taken, 0);
        if (t.b < 0) break;
        if (t.first > t.last || !a.ahead) continue;
        for (int c = 0; c < D; c += 64) tma_prefetch(&a.q, c, t.query(t.row0), t.h, t.b);
        if (b == t.key_b() && g == t.h / a.group && k0 == t.key(0)) continue;
        b = t.key_b(), g = t.h / a.group, k0 = t.key(0);
        for (int n = t.last; n >= max(t.first, t.last - 1); n--) {
          for (int c = 0; c < D; c += 64) tma_prefetch(&a.k, c, t.key(n * BN), g, b);
          for (int c = 0; c < DV; c += 64) tma_prefetch(&a.v, c, t.key(n * BN), g, b);
        }
      }
      if (atomicAdd(a.counter + 1, 1) == gridDim.x - 1) a.counter[0] = a.counter[1] = 0;        /* all blocks have taken their last */
    } else if (helped && threadIdx.x >= 64) {
      const int w = threadIdx.x / 32 - 2;
      struct { int stage, phase; } ring[2] = { { 0, 1 }, { 0, 1 } };
      for (int turn = 0;; turn++) {
        barrier_wait(taken, turn & 1);
        const slot_of &slot = slots[turn % ATTENTION_SLOTS];
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(ahead);
        if (slot.t.b < 0) break;
        if constexpr (T::TILES) {         /* of warpgroups w and w + 2 */
          const int b = a.change.bias.stride[0] ? slot.t.b : 0, h = a.change.bias.stride[1] ? slot.t.h : 0;
          if (threadIdx.x % 32 == 0)
#pragma unroll 1
            for (int n = slot.t.last; n >= slot.t.first; n--)
#pragma unroll
              for (int j = 0; j < (WGS + 1) / 2; j++) {
                const int g = w + 2 * j, i = g * T::BIASES + ring[j].stage;
                if (g >= WGS || n > slot.of[g].last || n < slot.of[g].first) continue;
                barrier_wait(bias_empty + i * 8, ring[j].phase), barrier_expect(bias_full + i * 8, T::bias_bytes);
                for (int c = 0; c < BN; c += 64)
                  tma_load(more0 + i * T::bias_bytes + c * 128, &a.bias, n * BN + c, slot.t.row0 + g * 64, h, b, bias_full + i * 8);
                if (++ring[j].stage == T::BIASES) ring[j].stage = 0, ring[j].phase ^= 1;
              }
        }
        if constexpr (T::TERMS) {
          const attention_terms<T> terms(a, slot.t.b, slot.t.h);
#pragma unroll 1
          for (int n = slot.t.last; n >= slot.t.first; n--) {
            terms.put(more0 + ring[0].stage * T::terms_bytes, n * BN, [&] { barrier_wait(k_empty + ring[0].stage * 8, ring[0].phase); });
            proxy_fence();
            __syncwarp();
            if (threadIdx.x % 32 == 0) barrier_arrive(k_full + ring[0].stage * 8);
            if (++ring[0].stage == STAGES) ring[0].stage = 0, ring[0].phase ^= 1;
          }
        }
      }
    }
  } else {
    registers_raise<WGS == 2 ? 232 : 160>();
    const int w = group - 1, lane = threadIdx.x % 32;
    const bool lead = threadIdx.x % 128 == 0;
    /* Of descriptors the lower words, where addresses are: sums of 64 bits were a tenth of a block's instructions. */
    const uint32_t dq = (uint32_t)mma_descriptor(q0 + w * 8192, 16, 1024, 128), dk = (uint32_t)mma_descriptor(k0, 16, 1024, 128),
                   dv = (uint32_t)mma_descriptor(v0, BN * 128, 1024, 128);
    const uint64_t upper = mma_descriptor(0, 0, 1024, 128);
    int stage = 0, phase = 0, turn = 0, n = 0, block = 0;   /* of the block of scores in s, or to come there; block: of all tiles' */
    float sum[DV / 2], s[BN / 2], by[2];
    uint32_t p[BN / 4], bias = 0, bias_phase = 0;           /* of the next block of scores: its tile of biases */
    attention_change_rows changes;                          /* of the tile that scores are of */
    attention_softmax st;
    bool grown;
    auto scores = [&](auto &s) {          /* s = q k' */
      const int b = turn % QS;
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < D / 16; k++)
        wgmma<T::kind, 0, 0>(s, upper | (dq + b * (T::q_bytes >> 4) + k / 4 * (BM * 8) + (k & 3) * 2),
                             upper | (dk + stage * (T::k_bytes >> 4) + k / 4 * (BN * 8) + (k & 3) * 2), k > 0);
      if constexpr (T::TERMS)
        wgmma<T::kind, 0, 0>(s, mma_descriptor(more0 + STAGES * T::terms_bytes, 16, 256, 32),
                             mma_descriptor(0, 16, 256, 32) | (uint32_t)(more0 + stage * T::terms_bytes) >> 4, 1);
      wgmma_commit();
    };
    auto add = [&](int of) {              /* sum += p v */
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < BN / 16; k++) wgmma_registers<T::kind, 1>(sum, p + 4 * k, upper | (dv + of * (T::v_bytes >> 4) + k * 128), 1);
      wgmma_commit();
    };
    auto nothing = [&] {
#pragma unroll
      for (int i = 0; i < DV / 2; i++) sum[i] = 0;
    };
    /* Warpgroups in step wait for their scores, and then the Tensor Cores for all of them. So they take turns: of two the second lets the
     * first have a block's scores before it, three issue a block's products one after the other, all round. A hint: none waits long. */
    auto after_the_last = [&] {
      if (WGS > 2 || w)
#pragma unroll 1
        for (int i = 0; i < 64 && had[(w + WGS - 1) % WGS] < block - (w == 0); i++) {}
      __syncwarp();
    };
    auto had_turn = [&] { if (lead) had[w] = block; };
    auto advance = [&] { block++; if (++stage == STAGES) stage = 0, phase ^= 1; };
    /* Blocks that none of these queries sees. No product keeps the four warps together here: one that is two rounds of the ring behind
     * would take a barrier's parity for that of a round not yet complete. */
    auto pass = [&](int blocks) {
#pragma unroll 1
      for (; blocks > 0; blocks--) {
        barrier_wait(k_full + stage * 8, phase), barrier_wait(v_full + stage * 8, phase);
        group_sync(group, 128);
        if (lead) barrier_arrive(k_empty + stage * 8), barrier_arrive(v_empty + stage * 8);
        had_turn(), advance();
      }
    };
    auto q_done = [&] {
      __syncwarp();
      if (lane == 0) barrier_arrive(q_empty + turn % QS * 8);
    };
    /* Read before a block's scores are waited for: what a branch asks must not be loaded when it is asked. */
    attention_blocks seen;
    auto see = [&] { seen = slots[turn % ATTENTION_SLOTS].of[w]; };
    auto s_done = [&] {
      if (lead) barrier_arrive(k_empty + stage * 8);
      if (WGS == 2) had_turn();
      if (n == seen.first) q_done();
    };
    const int warp_row = w * 64 + threadIdx.x % 128 / 32 * 16;
    auto begin = [&](const slot_of &slot) {
      const float sink = a.sink ? a.sink[slot.t.h * a.sink_stride] : -INFINITY;
      st.m[0] = st.m[1] = sink == -INFINITY ? -1e30f : sink / a.scale;
      st.l[0] = st.l[1] = sink == -INFINITY || lane % 4 ? 0 : 1;
      n = slot.of[w].last;
    };
    auto change = [&](const slot_of &slot) {
      const int row = slot.t.row0 + warp_row + lane / 4, last = max(0, a.queries - 1), h[2] = { slot.t.h, slot.t.h },
                i[2] = { min(row, last), min(row + 8, last) };
      changes = attention_change_rows(a.change, slot.t.b, h, i);
    };
    auto softmax = [&](auto &s) {
      const slot_of &slot = slots[turn % ATTENTION_SLOTS];
      if constexpr (T::CHANGED) {
        const int row = slot.t.row0 + warp_row + lane / 4, at[2] = { row + slot.t.shift, row + 8 + slot.t.shift };
        change(slot);                     /* for each block, which takes no registers in between */
        attention_changed<false>(a.change, changes, at, n * BN, a.keys, s);
      }
      if constexpr (T::TILES) {
        const int i = w * T::BIASES + bias;
        barrier_wait(bias_full + i * 8, bias_phase);
        attention_bias_tile(more0 + i * T::bias_bytes, a.change.scale, T::kind == MMA_BF16, s);
        __syncwarp();
        if (lane == 0) barrier_arrive(bias_empty + i * 8);
        if (++bias == T::BIASES) bias = 0, bias_phase ^= 1;
      }
      if (n > seen.whole_last || n < seen.whole_first) {
        const int row = slot.t.row0 + warp_row + lane / 4, column = lane % 4 * 2 + n * BN;
        if (n > seen.whole_last) attention_mask_above(s, slot.t.high(a, row) - column, slot.t.high(a, row + 8) - column);
        if (n < seen.whole_first) attention_mask_below(s, slot.t.low(a, row) - column, slot.t.low(a, row + 8) - column);
      }
      grown = attention_maximum_grown(s, st, a.scale_log2, a.max ? 0 : 8, by);
      attention_exponentials(s, st, a.scale_log2, by);
    };
    for (;;) {                            /* of a tile before nothing is left to do */
      barrier_wait(q_full + turn % QS * 8, turn / QS & 1);
      const slot_of &slot = slots[turn % ATTENTION_SLOTS];
      if (slot.t.b < 0) break;
      if (slot.of[w].last < slot.of[w].first) {
        q_done();
#pragma unroll 1
        for (int row = slot.t.row0 + warp_row + lane / 4, i = 0; i < 2; i++, row += 8)
          if (row < slot.t.rows(a)) attention_unseen(a, slot.t, row, T::kind == MMA_BF16);
        pass(slot.t.last - slot.t.first + 1), turn++;
        continue;
      }
      begin(slot), pass(slot.t.last - n), nothing();
      barrier_wait(k_full + stage * 8, phase);
      after_the_last();
      auto first_block = [&](auto &s, auto &p) {
        scores(s);
        if (WGS > 2) had_turn();
        see();
        wgmma_wait<0>();
        s_done(), softmax(s), attention_pack<T::kind>(s, p);
      };
      if (NARROW && slot.of[w].narrow) {
        if constexpr (NARROW > 0) first_block(*(float (*)[NARROW / 2])s, *(uint32_t (*)[NARROW / 4])p);
#pragma unroll
        for (int i = NARROW / 4; i < BN / 4; i++) p[i] = 0;
      } else {
        first_block(s, p);
      }
      /* Here p is a block's weights, of which the product is to come; the next block's scores go before it. */
      while (n > seen.first) {
        const int of = stage, of_phase = phase;
        n--, advance();
        barrier_wait(k_full + stage * 8, phase);
        after_the_last();
        scores(s);
        barrier_wait(v_full + of * 8, of_phase);
        add(of);
        if (WGS > 2) had_turn();
        see();
        wgmma_wait<1>();
        s_done(), softmax(s);
        stop_if((st.l[0] < 0) | (st.l[1] < 0));              /* the products end under the softmax, not before it */
        wgmma_wait<0>();
        if (lead) barrier_arrive(v_empty + of * 8);
        if (grown) attention_rescale(sum, by);
        attention_pack<T::kind>(s, p);
      }
      barrier_wait(v_full + stage * 8, phase);
      add(stage), wgmma_wait<0>();
      if (lead) barrier_arrive(v_empty + stage * 8);
      advance();
      const unsigned again = attention_end<T>(a, slot.t, slot.t.row0 + warp_row, st, sum);
      pass(n - slot.t.first);
      if (again) {
#pragma unroll 1
        for (int i = 0; i < 16; i++)
          if (again >> (i % 8 * 4 + i / 8) & 1) attention_row_again<T>(a, slot.t, slot.t.row0 + warp_row + i);
      }
      turn++;
    }
    group_sync(group, 128);               /* without it ptxas gives this branch the registers of the other, whose end it shares */
  }
}

#define ATTENTION_KERNEL_OF(kind, bm, bn, d, dv, stages, qs, change, ragged)                                                 \
  { #bm "x" #bn, d, dv, bm, bn, attention_shape<kind, bm, bn, d, dv, stages, qs, false, change>::threads,                   \
    attention_shape<kind, bm, bn, d, dv, stages, qs, false, change>::shared,                                                \
    (const void *)attention_wgmma<attention_shape<kind, bm, bn, d, dv, stages, qs, false, change>>, ragged },
#define ATTENTION_KERNEL(kind, bm, bn, d, dv, stages, qs)                                                                    \
  ATTENTION_KERNEL_OF(kind, bm, bn, d, dv, stages, qs, ATTENTION_PLAIN,                                                     \
                      ((const void *)attention_wgmma<attention_shape<kind, bm, bn, d, dv, stages, qs, true, ATTENTION_PLAIN>>))
#define ATTENTION_CHANGED_KERNEL(kind, bm, bn, d, dv, stages, qs)                                                            \
  ATTENTION_KERNEL_OF(kind, bm, bn, d, dv, stages, qs, ATTENTION_CHANGED, NULL)
#define ATTENTION_TILES_KERNEL(kind, bm, bn, d, dv, stages, qs)                                                              \
  ATTENTION_KERNEL_OF(kind, bm, bn, d, dv, stages, qs, ATTENTION_TILES, NULL)
#define ATTENTION_TERMS_KERNEL(kind, bm, bn, d, dv, stages, qs)                                                              \
  ATTENTION_KERNEL_OF(kind, bm, bn, d, dv, stages, qs, ATTENTION_TERMS, NULL)
