/* attention_wgmma.cuh -- attention on Hopper's Tensor Cores: y = softmax(mask(scale q k')) v, scores never in memory.
 *
 * Persistent: a block takes tiles of BM queries of one head from a counter, under a causal mask the longest first, in sections of
 * heads whose keys and values fit the L2 cache. Warp 0 loads q, k and v by TMA, k and v through rings of two stages of BN keys.
 * Each of the other warpgroups owns 64 queries: S = q k' by wgmma from shared memory, running maxima and sums in registers,
 * O += P v with P from registers. The next S is issued before this P v, so the softmax runs under both; the warpgroups take
 * turns in issuing. Keys go from last to first, so that blocks that need a mask come first under a causal one.
 *
 * A weight of 0 times a NaN or Inf value is NaN: what a query must not see could reach its result (the rest of a block on
 * the diagonal, of a sequence's end). So each row is looked at before it is stored, and if it is not finite, computed again by one
 * warp that reads only what the query sees. That is also where scores out of reach of the running maximum (below -1e30) end.
 *
 * ptxas moves waits and named barriers up past arithmetic. What keeps them behind it: a dependence of the wait on the results, by a
 * branch that is never taken (stop_if). */
#pragma once
#include "attention_wgmma.h"
#include "attention_scores.cuh"

template <int kind_, int D_, int DV_, int WGS_, int BN_> struct attention_shape {
  static constexpr int kind = kind_, D = D_, DV = DV_, WGS = WGS_, BN = BN_, BM = 64 * WGS, threads = 128 * (WGS + 1);
  static constexpr int q_bytes = BM * D * 2, k_bytes = BN * D * 2, v_bytes = BN * DV * 2;
  static constexpr int shared = 2048 + q_bytes + 2 * (k_bytes + v_bytes);
};

/* ---- tiles --------------------------------------------------------------------------------------------------------- */

/* first > last: no query of the tile sees a key. */
struct attention_tile {
  int b, h, row0, queries, keys, shift, first, last;        /* the first and last block of keys */
  __device__ __forceinline__ int high(const cuda_attention &a, int row) const       /* the last key that a query sees */
  {
    return row >= queries ? -1 : a.right < 0 ? keys - 1 : min(keys - 1, row + shift + a.right);
  }
  __device__ __forceinline__ int low(const cuda_attention &a, int row) const { return a.left < 0 ? 0 : max(0, row + shift - a.left); }
};
template <int BM, int BN> __device__ __forceinline__ attention_tile attention_tile_at(const cuda_attention &a, uint32_t tile)
{
  attention_tile t;
  const int n = a.section * a.tiles_m, section = tile / n * a.section, heads = min(a.section, a.batch * a.heads - section),
            in = tile - section * a.tiles_m;
  int head, m;
  if (a.right < 0) head = section + in / a.tiles_m, m = in % a.tiles_m;
  else head = section + in % heads, m = a.tiles_m - 1 - in / heads;                     /* later queries see more keys */
  t.b = head / a.heads, t.h = head % a.heads, t.row0 = m * BM;
  t.queries = attention_length(a.q_lengths, t.b * a.q_lengths_stride, a.q_lengths_i64, a.queries);
  t.keys = attention_length(a.kv_lengths, t.b * a.kv_lengths_stride, a.kv_lengths_i64, a.keys);
  t.shift = a.top_left ? 0 : t.keys - t.queries;
  const int end = min(t.row0 + BM, t.queries) - 1, high = end < t.row0 ? -1 : t.high(a, end), low = t.low(a, t.row0);
  t.first = low / BN, t.last = high < low ? t.first - 1 : high / BN;
  return t;
}

/* ---- one row again, by a warp, in plain f32 --------------------------------------------------------------------- */

template <int kind, int D, int DV>
__device__ __noinline__ void attention_row_again(const cuda_attention &a, const attention_tile &t, int row)
{
  const int lane = threadIdx.x % 32, low = t.low(a, row), high = t.high(a, row), g = t.h / a.group;
  const uint16_t *q = a.q_rows + t.b * a.q_stride[0] + t.h * a.q_stride[1] + row * a.q_stride[2];
  const uint16_t *k = a.k_rows + t.b * a.k_stride[0] + g * a.k_stride[1], *v = a.v_rows + t.b * a.v_stride[0] + g * a.v_stride[1];
  float x[D / 32], sum[DV / 32] = {}, m = -INFINITY, l = 0;
#pragma unroll
  for (int i = 0; i < D / 32; i++) x[i] = lane + 32 * i < a.d ? attention_value<kind>(q[lane + 32 * i]) : 0;
  auto score = [&](int j) {
    float s = 0;
#pragma unroll
    for (int i = 0; i < D / 32; i++)
      if (lane + 32 * i < a.d) s = fmaf(x[i], attention_value<kind>(k[j * a.k_stride[2] + lane + 32 * i]), s);
    return warp_sum(s) * a.scale;
  };
#pragma unroll 1
  for (int j = low; j <= high; j++) {
    const float s = score(j);
    m = m != m || s <= m ? m : s;                           /* a NaN stays */
  }
  if (m != -INFINITY) {
#pragma unroll 1
    for (int j = low; j <= high; j++) {
      const float p = expf(score(j) - m);
      l += p;
#pragma unroll
      for (int i = 0; i < DV / 32; i++)
        if (lane + 32 * i < a.dv) sum[i] = fmaf(p, attention_value<kind>(v[j * a.v_stride[2] + lane + 32 * i]), sum[i]);
    }
  }
  const float sink = a.sink ? a.sink[t.h * a.sink_stride] : -INFINITY, top = m != m || m >= sink ? m : sink;
  const float all = m == -INFINITY ? 0 : l * expf(m - top), more = sink == -INFINITY ? 0 : expf(sink - top);
  const int64_t at = t.b * a.y_stride[0] + t.h * a.y_stride[1] + row * a.y_stride[2];
  const float by = m == -INFINITY ? 0 : expf(m - top) / (all + more);
#pragma unroll
  for (int i = 0; i < DV / 32; i++)
    if (lane + 32 * i < a.dv) attention_store(a, at, lane + 32 * i, m == -INFINITY ? 0 : sum[i] * by, kind == MMA_BF16);
  if (lane) return;
  if (a.lse) a.lse[t.b * a.lse_stride[0] + t.h * a.lse_stride[1] + row * a.lse_stride[2]] = top == -INFINITY ? top : top + logf(all + more);
  if (a.max) a.max[t.b * a.max_stride[0] + t.h * a.max_stride[1] + row * a.max_stride[2]] = m;
}

__device__ __forceinline__ void stop_if(bool never) { if (never) asm volatile("trap;"); }

/* Stores this warp's 16 rows, from row0 on. */
template <class T>
__device__ __forceinline__ void attention_end(const cuda_attention &a, const attention_tile &t, int row0, const attention_softmax &st,
                                              const float (&sum)[T::DV / 2])
{
  const int lane = threadIdx.x % 32;
  unsigned again[2];
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = row0 + lane / 4 + 8 * h;
    const bool sees = t.high(a, row) >= t.low(a, row), there = row < a.queries;
    float l = st.l[h], probe = 0;
    l += __shfl_xor_sync(~0u, l, 1), l += __shfl_xor_sync(~0u, l, 2);
#pragma unroll
    for (int j = 0; j < T::DV / 8; j++) probe = fmaf(sum[4 * j + 2 * h], 0.f, fmaf(sum[4 * j + 2 * h + 1], 0.f, probe));
    probe += __shfl_xor_sync(~0u, probe, 1), probe += __shfl_xor_sync(~0u, probe, 2);
    const bool bad = there && sees && !(probe == 0 && l >= 1e-30f && l < INFINITY && fabsf(st.m[h]) < 1e30f);
    again[h] = __ballot_sync(~0u, bad && lane % 4 == 0);
    const int64_t at = t.b * a.y_stride[0] + t.h * a.y_stride[1] + row * a.y_stride[2];
    attention_put<T::kind, T::DV>(a, at, sum, h, 1 / l, there && sees && !bad);
    for (int c = lane % 4; c < a.dv && there && !sees; c += 4) attention_store(a, at, c, 0, T::kind == MMA_BF16);
    if (!there || bad || lane % 4) continue;
    const float sink = a.sink && row < t.queries ? a.sink[t.h * a.sink_stride] : -INFINITY;
    if (a.lse) a.lse[t.b * a.lse_stride[0] + t.h * a.lse_stride[1] + row * a.lse_stride[2]] = sees ? fmaf(st.m[h], a.scale, logf(l)) : sink;
    if (a.max) a.max[t.b * a.max_stride[0] + t.h * a.max_stride[1] + row * a.max_stride[2]] = sees ? st.m[h] * a.scale : -INFINITY;
  }
#pragma unroll 1
  for (int i = 0; i < 16; i++)
    if (again[i / 8] >> i % 8 * 4 & 1) attention_row_again<T::kind, T::D, T::DV>(a, t, row0 + i);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

template <class T> __global__ void __launch_bounds__(T::threads, 1) attention_wgmma(const __grid_constant__ cuda_attention a)
{
  constexpr int D = T::D, DV = T::DV, BN = T::BN, BM = T::BM, WGS = T::WGS, NONE = 0x7fffffff;
  enum { TURN = 2, OWN = 5 };             /* named barriers: a warpgroup's turn, its own */
  extern __shared__ unsigned char shared_raw[];
  unsigned char *shared = (unsigned char *)(((uintptr_t)shared_raw + 1023) & ~(uintptr_t)1023);
  const uint32_t base = shared_address(shared), q0 = base + 1024, k0 = q0 + T::q_bytes, v0 = k0 + 2 * T::k_bytes, q_full = base,
                 q_empty = base + 8, k_full = base + 16, k_empty = base + 32, v_full = base + 48, v_empty = base + 64;
  volatile uint32_t *slot = (volatile uint32_t *)(shared + 128);               /* the tile of the next two turns */
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  if (threadIdx.x == 0) {
    barrier_init(q_full, 1), barrier_init(q_empty, WGS);
    for (int i = 0; i < 16; i += 8)
      barrier_init(k_full + i, 1), barrier_init(v_full + i, 1), barrier_init(k_empty + i, WGS), barrier_init(v_empty + i, WGS);
    barrier_init_fence();
  }
  __syncthreads();
  grid_dependency_wait();
  if (group == 0) {
    /* Loads. A stage's q follows its first k, which the tile before has left free already. */
    registers_lower<WGS == 2 ? 24 : 32>();
    if (threadIdx.x == 0) {
      int stage = 0, phase = 1, turn = 0;
      uint32_t tile = atomicAdd(a.counter, 1);
      for (; tile < a.tiles; turn++) {
        const uint32_t next = atomicAdd(a.counter, 1);       /* needed only when this tile has ended */
        const attention_tile t = attention_tile_at<BM, BN>(a, tile);
        const int g = t.h / a.group;
        if (t.first > t.last) {
          barrier_wait(q_empty, (turn & 1) ^ 1);
          slot[turn & 1] = tile;
          barrier_arrive(q_full);
        }
        for (int n = t.last; n >= t.first; n--) {
          barrier_wait(k_empty + stage * 8, phase), barrier_expect(k_full + stage * 8, T::k_bytes);
          for (int c = 0; c < D; c += 64) tma_load(k0 + stage * T::k_bytes + c * BN * 2, &a.k, c, n * BN, g, t.b, k_full + stage * 8);
          if (n == t.last) {
            barrier_wait(q_empty, (turn & 1) ^ 1);
            slot[turn & 1] = tile;
            barrier_expect(q_full, T::q_bytes);
            for (int c = 0; c < D; c += 64) tma_load(q0 + c * BM * 2, &a.q, c, t.row0, t.h, t.b, q_full);
          }
          barrier_wait(v_empty + stage * 8, phase), barrier_expect(v_full + stage * 8, T::v_bytes);
          for (int c = 0; c < DV; c += 64) tma_load(v0 + stage * T::v_bytes + c * BN * 2, &a.v, c, n * BN, g, t.b, v_full + stage * 8);
          stage ^= 1, phase ^= stage == 0;
        }
        tile = next;
      }
      barrier_wait(q_empty, (turn & 1) ^ 1);
      slot[turn & 1] = NONE;
      barrier_arrive(q_full);
      if (atomicAdd(a.counter + 1, 1) == gridDim.x - 1) a.counter[0] = a.counter[1] = 0;        /* all blocks have taken their last */
    }
  } else {
    registers_raise<WGS == 2 ? 240 : 160>();
    const int w = group - 1, lane = threadIdx.x % 32, mine = TURN + w, after = TURN + (w + 1) % WGS;
    const bool lead = threadIdx.x % 128 == 0;
    const uint64_t dq = mma_descriptor(q0 + w * 8192, 16, 1024, 128), dk = mma_descriptor(k0, 16, 1024, 128),
                   dv = mma_descriptor(v0, BN * 128, 1024, 128);
    int stage = 0, phase = 0;
    float sum[DV / 2], s[BN / 2], by[2];
    uint32_t p[BN / 4];
    attention_softmax st;
    auto scores = [&](int of) {           /* s = q k' */
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < D / 16; k++)
        wgmma<T::kind, 0, 0>(s, dq + k / 4 * (BM * 8) + (k & 3) * 2, dk + of * (T::k_bytes >> 4) + k / 4 * (BN * 8) + (k & 3) * 2, k > 0);
      wgmma_commit();
    };
    auto add = [&](int of) {              /* sum += p v */
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < BN / 16; k++) wgmma_registers<T::kind, 1>(sum, p + 4 * k, dv + of * (T::v_bytes >> 4) + k * 128, 1);
      wgmma_commit();
    };
    if (w == WGS - 1) group_arrive(TURN, 256);               /* the first turn is warpgroup 0's */
    for (int turn = 0;; turn++) {
      barrier_wait(q_full, turn & 1);
      const uint32_t tile = slot[turn & 1];
      if (tile == NONE) break;
      group_sync(OWN + w, 128);                              /* all have read the slot */
      const attention_tile t = attention_tile_at<BM, BN>(a, tile);
      const int top = t.row0 + w * 64, row0 = top + threadIdx.x % 128 / 32 * 16, column = lane % 4 * 2;
      /* Blocks that all 64 queries see whole need no mask: they end at or before `whole_high` and begin from `whole_low` on. */
      const int whole_high = t.high(a, top + 63) < 0 ? -1 : t.high(a, top), whole_low = t.low(a, top + 63);
      const int high[2] = { t.high(a, row0 + lane / 4) - column, t.high(a, row0 + lane / 4 + 8) - column },
                low[2] = { t.low(a, row0 + lane / 4) - column, t.low(a, row0 + lane / 4 + 8) - column };
      const float sink = a.sink ? a.sink[t.h * a.sink_stride] : -INFINITY;
      st.m[0] = st.m[1] = sink == -INFINITY ? -1e30f : sink / a.scale;
      st.l[0] = st.l[1] = sink == -INFINITY || lane % 4 ? 0 : 1;
#pragma unroll
      for (int i = 0; i < DV / 2; i++) sum[i] = 0;
      int n = t.last;
      auto softmax = [&] {
        if ((n + 1) * BN - 1 > whole_high || n * BN < whole_low) {
          const int up[2] = { high[0] - n * BN, high[1] - n * BN }, down[2] = { low[0] - n * BN, low[1] - n * BN };
          attention_mask(s, down, up);
        }
        attention_maximum(s, st, a.scale_log2, by);
        attention_exponentials(s, st, a.scale_log2, by);
      };
      if (n < t.first) {
        if (lead) barrier_arrive(q_empty);
      } else {
        barrier_wait(k_full + stage * 8, phase);
        scores(stage), wgmma_wait<0>();
        if (lead) barrier_arrive(k_empty + stage * 8);
        if (lead && n == t.first) barrier_arrive(q_empty);
        softmax();
        attention_pack<T::kind>(s, p);
        if (n > t.first) do {
          n--;
          const int stage1 = stage ^ 1, phase1 = phase ^ stage;
          barrier_wait(k_full + stage1 * 8, phase1);
          group_sync(mine, 256);
          scores(stage1);
          barrier_wait(v_full + stage * 8, phase);
          add(stage);
          group_arrive(after, 256);
          wgmma_wait<1>();
          if (lead) barrier_arrive(k_empty + stage1 * 8);
          if (lead && n == t.first) barrier_arrive(q_empty);
          softmax();
          stop_if((st.l[0] < 0) | (st.l[1] < 0));            /* the products end under the softmax, not before it */
          wgmma_wait<0>();
          if (lead) barrier_arrive(v_empty + stage * 8);
          attention_rescale(sum, by), attention_pack<T::kind>(s, p);
          stage = stage1, phase = phase1;
        } while (n > t.first);
        barrier_wait(v_full + stage * 8, phase);
        add(stage), wgmma_wait<0>();
        if (lead) barrier_arrive(v_empty + stage * 8);
        stage ^= 1, phase ^= stage == 0;
      }
      attention_end<T>(a, t, row0, st, sum);
    }
    if (w == 0) group_sync(TURN, 256);                       /* takes the last turn, which nobody used */
  }
}

#define ATTENTION_KERNEL(kind, d, dv, wgs, bn) \
  { d, dv, attention_shape<kind, d, dv, wgs, bn>::BM, bn, attention_shape<kind, d, dv, wgs, bn>::threads, \
    attention_shape<kind, d, dv, wgs, bn>::shared, (const void *)attention_wgmma<attention_shape<kind, d, dv, wgs, bn>> },
