/* attention_wgmma_backward.cuh -- attention's gradient on Hopper's Tensor Cores (the formulas: attention_gradient.cuh).
 *
 * A block owns 128 keys and values of one head, takes its number from a counter, and walks over the tiles of BM queries that see them, the
 * last first, in all heads of their group. Warp 0 of the first warpgroup loads q and dy with their rows' statistics by TMA, through rings
 * of two stages. Each of the two other warpgroups owns 64 keys: S' = k q' and dP' = v dy' by wgmma from shared memory; P' and dS' stay in
 * registers as the left operands of dv += P' dy and dk += dS' q. dS' also goes to shared memory, where both read it for dq = dS k: each
 * makes 64 rows of it (D 64: half of the queries, all columns; else all queries, half of the columns). Warps 1 and 2 of the first
 * warpgroup add that to sums in f32 in an order of their own: [B, heads, tiles][2 warpgroups][columns / 8][128 threads][4]. Another
 * kernel makes dq of them.
 *
 * Keys of 192 elements leave 80 of 240 registers beside dk and dv, and less shared memory: of a tile's queries first one half, then the
 * other goes as far as dv and dk; dq comes in two products, of a block of 64 columns and of half of the third; and dS' and dq have one
 * buffer instead of two.
 *
 * Where there are few blocks for so many multiprocessors, several share the heads of a group: their sums of dk and dv go to memory, and
 * a third kernel adds them.
 *
 * A bias whose rows TMA takes is loaded with q, 64 keys of 64 queries at a time, to where dS' of the same pairs will lie; there a warp
 * finds its keys by transposed loads.
 *
 * Held: where a head's queries are two tiles at most (four, if rows have 32 elements), sums of dq stay in shared memory; a block takes
 * whole heads, one after the other, all blocks of keys of one, and makes dq itself. Keys of the next are loaded while results are stored.
 *
 * In one order: the blocks of keys that see a tile of queries add to it in turn, first keys first. They also take their numbers so, so
 * no block waits for one that has not begun.
 *
 * ptxas moves waits up past arithmetic: a store that never happens, but depends on all exponentials, keeps the wait for dP' behind them. */
#pragma once
#include "attention_gradient.cuh"
#include "attention_wgmma_backward.h"

/* D1: elements of a key, D2: of a value; P1, P2: of their rows in shared memory. COLUMNS: of dq, those that a warpgroup makes of 64
 * queries; BUFFERS: of dS' and of dq. */
template <int kind_, int D1_, int D2_, bool CHANGED_> struct attention_wgmma_backward_shape {
  static constexpr int kind = kind_, D1 = D1_, D2 = D2_, P1 = (D1 + 63) / 64 * 64, P2 = (D2 + 63) / 64 * 64, BN = 128,
                       BM = D1 > 64 ? 64 : 128, COLUMNS = D1 > 64 ? P1 / 2 : 64, threads = 384;
  static constexpr bool KEYS = true, SUM1 = true, SUM2 = true, CHANGED = CHANGED_;
  static constexpr int BUFFERS = D1 > 128 ? 1 : 2, PIECE = D1 > 128 ? BM / 2 : BM;
  static constexpr int k_bytes = BN * P1 * 2, v_bytes = BN * P2 * 2, q_bytes = BM * P1 * 2, dy_bytes = BM * P2 * 2, ds_bytes = BN * BM * 2,
                       sum_bytes = 64 * COLUMNS * 4, statistics = BM * 8, header = 1024 + 2 * statistics;
  static constexpr int shared = header + k_bytes + v_bytes + 2 * (q_bytes + dy_bytes) + BUFFERS * (ds_bytes + 2 * sum_bytes);
  static_assert(shared <= 227 * 1024, "");
};
template <int kind_, int D1_, int D2_, bool CHANGED_> struct attention_finish_shape {
  static constexpr int kind = kind_, D1 = (D1_ + 63) / 64 * 64, D2 = (D2_ + 63) / 64 * 64, BM = D1 > 64 ? 64 : 128,
                       COLUMNS = D1 > 64 ? D1 / 2 : 64;
  static constexpr bool KEYS = false, SUM1 = true, SUM2 = false, CHANGED = CHANGED_;
};
template <int kind_, int D1_, int D2_, bool CHANGED_> struct attention_held_shape {
  static constexpr int kind = kind_, D1 = D1_, D2 = D2_;
  static constexpr bool KEYS = false, SUM1 = true, SUM2 = false, CHANGED = CHANGED_;
};

/* The tiles of queries that a block of keys visits: from last down to first, for each of its heads. */
template <int BM> struct attention_walk {
  int first, last, total, m, h;
  __device__ __forceinline__ attention_walk(const cuda_attention_gradient &a, const attention_own &t, int keys)
  {
    const int end = min(t.row0 + keys, t.own) - 1, top = end < t.row0 ? -1 : t.high(end), bottom = t.low(t.row0);
    first = bottom / BM, last = top < bottom ? first - 1 : top / BM;
    const int from = t.h % a.shares * a.share;
    total = (last - first + 1) * min(a.share, a.group - from), m = last, h = t.h / a.shares * a.group + from;
  }
  __device__ __forceinline__ void next()
  {
    if (--m < first) m = last, h++;
  }
  __device__ __forceinline__ int64_t tile(const cuda_attention_gradient &a, const attention_own &t) const       /* of all heads' */
  {
    return ((int64_t)t.b * a.heads + h) * (a.padded / BM) + m;
  }
};

/* Where the part of a block of keys lies: [B, key heads, parts of a group, blocks]. */
template <int BN> __device__ __forceinline__ int64_t attention_part_at(const cuda_attention_gradient &a, const attention_own &t)
{
  return ((int64_t)t.b * (a.heads / a.group * a.shares) + t.h) * ((a.keys + BN - 1) / BN) + t.row0 / BN;
}

/* d += a b, a from registers, b MN-major: `chunk`, in units of a descriptor, is between its blocks of 64 columns. */
template <int kind, int N>
__device__ __forceinline__ void attention_add_rows(float (&d)[N], const uint32_t *a, uint64_t b, int chunk)
{
  if constexpr (N == 96) {
    wgmma_registers<kind, 1>(*(float (*)[64])d, a, b, 1);
    wgmma_registers<kind, 1>(*(float (*)[32])(d + 64), a, b + 2 * chunk, 1);
  } else {
    wgmma_registers<kind, 1>(d, a, b, 1);
  }
}

/* Shared memory, two and four floats of this thread side by side. */
__device__ __forceinline__ float2 attention_two(uint32_t from)
{
  float2 x;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(from) : "memory");
  return x;
}
__device__ __forceinline__ float4 attention_four(uint32_t from)
{
  float4 x;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "r"(from) : "memory");
  return x;
}
__device__ __forceinline__ void attention_put_four(uint32_t to, const float *x)
{
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" :: "r"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]) : "memory");
}
/* Weights of scores, rows of keys. statistics: those of this thread's first two queries, or their D: 8 queries are 32 bytes, 64 are 512.
 * Returns a number below 0 if one is below 0, which none is. */
template <int N> __device__ __forceinline__ int attention_weights(float (&s)[N], uint32_t statistics, float scale_log2)
{
  int signs = 0;
#pragma unroll
  for (int j = 0; j < N / 4; j++) {
    const float2 lse = attention_two(statistics + j / 8 * 512 + j % 8 * 32);
#pragma unroll
    for (int i = 4 * j; i < 4 * j + 4; i++) {
      s[i] = fn_exp2(fmaf(s[i], scale_log2, i % 2 ? -lse.y : -lse.x));
      signs |= __float_as_int(s[i]);
    }
  }
  return signs;
}
/* dS' of weights and dP': rows of 64 queries for each key, 128 bytes; from query `first` on. */
template <int M> __device__ __forceinline__ void attention_store_ds(uint32_t to, const uint32_t (&ds)[M], int row, int first, int block)
{
#pragma unroll
  for (int k = 0; k < M / 4; k++) {
    const int j = first / 16 + k;
    store_matrix(to + j / 4 * block + row * 128 + ((j % 4 * 2 + threadIdx.x % 32 / 16 ^ row & 7) << 4), ds[4 * k], ds[4 * k + 1],
                 ds[4 * k + 2], ds[4 * k + 3]);
  }
}

/* ORDER: what cuda_attention_wgmma_backward_order says. */
template <class T, int ORDER> __global__ void __launch_bounds__(T::threads, 1)
    attention_wgmma_gradient(const __grid_constant__ cuda_attention_gradient a, const __grid_constant__ cuda_attention_gradient_maps maps)
{
  constexpr int D1 = T::D1, D2 = T::D2, BN = T::BN, BM = T::BM, DS = T::ds_bytes, SUM = T::sum_bytes, BUFFERS = T::BUFFERS,
                PIECE = T::PIECE, SUMS = D1 < 64 ? D1 / 8 : 8;         /* of dq's columns, eights that there are */
  constexpr bool ORDERED = ORDER == CUDA_ATTENTION_ONE_ORDER, HELD = ORDER == CUDA_ATTENTION_HELD;
  /* Named barriers: of both warpgroups; of a warpgroup's part of dq; of what a warpgroup has read of the only dS', or of biases. */
  enum { BOTH = 1, FULL = 2, FREE = 4, READ = 6 };
  extern __shared__ __align__(1024) unsigned char shared[];
  /* Offsets into shared memory. */
  enum : uint32_t { OWN_FULL = 0, OWN_EMPTY = 8, Q_FULL = 16, Q_EMPTY = 32, DY_FULL = 48, DY_EMPTY = 64, STATISTICS = 1024, K0 = T::header,
                    V0 = K0 + T::k_bytes, Q0 = V0 + T::v_bytes, DY0 = Q0 + 2 * T::q_bytes, DS0 = DY0 + 2 * T::dy_bytes,
                    SUM0 = DS0 + BUFFERS * DS };
  const uint32_t base = shared_address(shared);
  /* There they take no registers; h: of a group's heads a share. Held, the next is made while the last one's results are stored. */
  attention_own (&own)[2] = *(attention_own (*)[2])(shared + 128);
  const int tiles_n = (a.keys + BN - 1) / BN, heads = a.batch * a.heads,
            jobs = HELD ? (heads - (int)blockIdx.x + (int)gridDim.x - 1) / (int)gridDim.x * tiles_n : 1;
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  grid_dependency_wait();
  if (threadIdx.x == 0) {
    if (!HELD) own[0] = attention_own_at<true, BN>(a, atomicAdd(a.turns, 1));
    barrier_init(base + OWN_FULL, 1), barrier_init(base + OWN_EMPTY, 2);
    for (int i = 0; i < 16; i += 8) {
      barrier_init(base + Q_FULL + i, 1), barrier_init(base + DY_FULL + i, 1);
      barrier_init(base + Q_EMPTY + i, 2), barrier_init(base + DY_EMPTY + i, 2);
    }
    barrier_init_fence();
  }
  __syncthreads();
  if (group == 0) {
    registers_lower<24>();
    const int warp = threadIdx.x / 32;
    int stage = 0, phase = 1;
    for (int job = 0; threadIdx.x == 0 && job < jobs; job++) {
      attention_own &t = own[job % 2];
      if (HELD) {
        const int head = (int)blockIdx.x + job / tiles_n * (int)gridDim.x;
        barrier_wait(base + OWN_EMPTY, ~job & 1);
        t = attention_own_of<true>(a, head / a.heads, head % a.heads, job % tiles_n * BN);
      }
      const int key_head = t.h / a.shares;
      attention_walk<BM> walk(a, t, BN);
      if (!HELD && !walk.total) break;
      barrier_expect(base + OWN_FULL, T::k_bytes + T::v_bytes);
      for (int c = 0; c < D1; c += 64) tma_load(base + K0 + c * BN * 2, &maps.map[1], c, t.row0, key_head, t.b, base + OWN_FULL);
      for (int c = 0; c < D2; c += 64) tma_load(base + V0 + c * BN * 2, &maps.map[2], c, t.row0, key_head, t.b, base + OWN_FULL);
      for (int i = 0; i < walk.total; i++, walk.next()) {
        const float *of = a.statistics + walk.tile(a, t) * (2 * BM);
        const bool bias = T::CHANGED && maps.bias_tiles;
        barrier_wait(base + Q_EMPTY + stage * 8, phase);
        barrier_expect(base + Q_FULL + stage * 8, T::q_bytes + T::statistics + (bias ? DS : 0));
        for (int c = 0; bias && c < BM * BN / 64; c += 64)   /* 64 queries and keys at a time: the keys of the first, of the second */
          tma_load(base + DS0 + (HELD ? stage : (walk.total - i) % BUFFERS) * DS + c * 128, &maps.map[4], t.row0 + c % BN,
                   walk.m * BM + c / BN * 64, a.bias_stride[1] ? walk.h : 0, a.bias_stride[0] ? t.b : 0, base + Q_FULL + stage * 8);
        for (int c = 0; c < D1; c += 64)
          tma_load(base + Q0 + stage * T::q_bytes + c * BM * 2, &maps.map[0], c, walk.m * BM, walk.h, t.b, base + Q_FULL + stage * 8);
        bulk_load(base + STATISTICS + stage * T::statistics, of, T::statistics, base + Q_FULL + stage * 8);
        barrier_wait(base + DY_EMPTY + stage * 8, phase), barrier_expect(base + DY_FULL + stage * 8, T::dy_bytes);
        for (int c = 0; c < D2; c += 64)
          tma_load(base + DY0 + stage * T::dy_bytes + c * BM * 2, &maps.map[3], c, walk.m * BM, walk.h, t.b, base + DY_FULL + stage * 8);
        stage ^= 1, phase ^= stage == 0;
      }
    }
    if (!HELD && (warp == 1 || warp == 2)) {
      const attention_own &t = own[0];
      attention_walk<BM> walk(a, t, BN);
      const int w = warp - 1;
      /* Of dq's columns those that there are: they come first. */
      const int bytes = T::COLUMNS > 64 ? SUM : min(SUM, (a.dq.size - (BM == 128 ? 0 : w * 64)) / 8 * 2048);
      const bool lead = threadIdx.x % 32 == 0;
      if (walk.total) group_arrive(FREE + w, 160);
      for (int left = walk.total; left; left--, walk.next()) {
        __syncwarp();                                        /* named barriers count warps */
        group_sync(FULL + w, 160);
        auto free = [&] {                                    /* of two buffers the other */
          if (lead) tma_store_wait_read<0>();
          __syncwarp();
          if (left > 1) group_arrive(FREE + w, 160);
        };
        if (BUFFERS > 1) free();
        if (lead) {
          const int64_t at = walk.tile(a, t) * 2 + w;
          if (ORDERED)
            turn_wait(a.turns + 1 + at, (uint32_t)(t.row0 / BN - max(0, a.left < 0 ? 0 : walk.m * BM - t.shift - a.left) / BN));
          if (bytes > 0) bulk_add(a.sums + at * (SUM / 4), base + SUM0 + (w * BUFFERS + left % BUFFERS) * SUM, (uint32_t)bytes);
          tma_store_commit();
          if (ORDERED) {
            tma_store_wait<0>();
            turn_end(a.turns + 1 + at);
          }
        }
        if (BUFFERS == 1) free();
      }
      if (lead) tma_store_wait<0>();
    }
  } else {
    registers_raise<240>();
    /* What follows from these three is made anew in each turn: the compiler, from which `anew` hides them, would otherwise keep it all in
     * registers, of which dk and dv leave few. */
    uint32_t at = base, w = group - 1, thread = threadIdx.x % 128;
    auto anew = [&] { asm volatile("" : "+r"(at), "+r"(w), "+r"(thread)); };
    auto own_row = [&] { return (int)(w * 64 + thread / 32 * 16); };                      /* of the block's keys this warp's first */
    auto first_column = [&] { return (int)(thread % 4 * 2); };
    auto lead = [&] { return thread == 0; };
    /* Operands that begin at `from`, an offset into shared memory: k is the head's dim; or a query, a key: `rows` of them. */
    auto by_dims = [&](uint32_t from) { return mma_descriptor(at + from, 16, 1024, 128); };
    auto by_rows = [&](uint32_t from, int rows) { return mma_descriptor(at + from, rows * 128, 1024, 128); };
    float dv[D2 / 2], dk[D1 / 2], s[PIECE / 2], g[PIECE / 2], dq[4 * SUMS];
    uint32_t p[PIECE / 4], ds[PIECE / 4], hidden[(PIECE + 63) / 64];
    static_assert(!T::CHANGED || (PIECE == BM && BUFFERS == 2), "a bias lies where dS' will");
    int stage = 0, phase = 0;
#pragma unroll 1
    for (int job = 0; job < jobs; job++) {
      if (HELD) barrier_wait(at + OWN_FULL, job & 1);
      const attention_own &t = own[job % 2];
      attention_walk<BM> walk(a, t, BN);
      const int top = t.row0 + w * 64, whole_high = t.high(top + 63) < 0 ? -1 : t.high(top), whole_low = t.low(top + 63);
#pragma unroll
      for (int i = 0; i < D2 / 2; i++) dv[i] = 0;
#pragma unroll
      for (int i = 0; i < D1 / 2; i++) dk[i] = 0;
      auto held = [&](int m, int j) { return at + SUM0 + w * BUFFERS * SUM + (m * SUMS + j) * 2048 + thread * 16; };
      if (HELD && job % tiles_n == 0) {
        const float zeros[4] = {};
#pragma unroll
        for (int j = 0; j < BUFFERS * SUM / 2048; j++) attention_put_four(held(0, j), zeros);
      }
      if (walk.total) {
        if (!HELD) barrier_wait(at + OWN_FULL, 0);
        int left = walk.total;
        auto multiply_q = [&](int piece) {  /* s = k q', with biases */
          wgmma_fence();
#pragma unroll
          for (int k = 0; k < D1 / 16; k++)
            wgmma<T::kind, 0, 0>(s, by_dims(K0 + w * 8192) + k / 4 * (BN * 8) + k % 4 * 2,
                                 by_dims(Q0 + stage * T::q_bytes + piece * 128) + k / 4 * (BM * 8) + k % 4 * 2, k > 0 || T::CHANGED);
          wgmma_commit();
        };
        auto multiply_dy = [&](int piece) { /* g = v dy' */
          wgmma_fence();
#pragma unroll
          for (int k = 0; k < D2 / 16; k++)
            wgmma<T::kind, 0, 0>(g, by_dims(V0 + w * 8192) + k / 4 * (BN * 8) + k % 4 * 2,
                                 by_dims(DY0 + stage * T::dy_bytes + piece * 128) + k / 4 * (BM * 8) + k % 4 * 2, k > 0);
          wgmma_commit();
        };
        auto add_dv = [&](int piece) {      /* dv += P' dy */
          wgmma_fence();
#pragma unroll
          for (int k = 0; k < PIECE / 16; k++)
            wgmma_registers<T::kind, 1>(dv, p + 4 * k, by_rows(DY0 + stage * T::dy_bytes, BM) + (piece / 16 + k) * 128, 1);
          wgmma_commit();
        };
        auto add_dk = [&](int piece) {      /* dk += dS' q */
          wgmma_fence();
#pragma unroll
          for (int k = 0; k < PIECE / 16; k++)
            attention_add_rows<T::kind>(dk, ds + 4 * k, by_rows(Q0 + stage * T::q_bytes, BM) + (piece / 16 + k) * 128, BM * 8);
          wgmma_commit();
        };
        auto statistics_of = [&](int piece) { return at + STATISTICS + stage * T::statistics + first_column() * 4 + piece * 4; };
        auto hold = [&](int signs) {
          asm volatile("{.reg .pred p; setp.lt.s32 p, %0, 0; @p st.shared.u32 [%1], %0;}" :: "r"(signs), "r"(at + 512) : "memory");
        };
        auto key = [&] { return t.row0 + own_row() + (int)(thread % 32 / 4); };
        auto before = [&](int buffer) {
          if constexpr (T::CHANGED) {
            const int query = walk.m * BM + first_column();
            attention_hidden<PIECE / 2>(a, t.b, walk.h, key(), query, hidden);
            if (maps.bias_tiles) {
              barrier_wait(at + Q_FULL + stage * 8, phase);
              attention_biases_in(a, at + DS0 + buffer * DS + w * 8192, BN * 128, s);
            } else {
              attention_biases(a, t.b, walk.h, key(), query, s);
            }
          }
        };
        /* Scores that more changes than a bias and a mask. While they become weights, registers for dP' are short. */
        auto costly = [&] { return T::CHANGED && (a.slopes || a.softcap > 0); };
        auto costly_weights = [&] {
          if constexpr (T::CHANGED) {
            const uint32_t from = statistics_of(0);
            hold(attention_changed_weights(a, t, walk.h, key(), walk.m * BM + first_column(), s, hidden,
                                           [&](int j) { return attention_two(from + j / 8 * 512 + j % 8 * 32); }));
          }
        };
        auto weights = [&](int piece) {     /* of the scores in s */
          const int column0 = walk.m * BM + piece;
          if constexpr (T::CHANGED) {
            if (costly()) return;
            if (a.mask) attention_hide(s, hidden);
          }
          if (column0 + PIECE - 1 > whole_high || column0 < whole_low) {
            /* This thread's rows are keys: the columns, queries, that each sees, counted from its first. */
            const int from = column0 + first_column(), up[2] = { t.high(key()) - from, t.high(key() + 8) - from },
                      down[2] = { t.low(key()) - from, t.low(key() + 8) - from };
            attention_mask(s, down, up);
          }
          hold(attention_weights(s, statistics_of(piece), a.scale_log2));
        };
        auto gradients = [&](int piece) {   /* dS' of the weights in s and dP' in g; both as left operands */
#pragma unroll
          for (int j = 0; j < PIECE / 8; j++) {
            const float2 d = attention_two(statistics_of(piece) + 256 + j / 8 * 512 + j % 8 * 32);
#pragma unroll
            for (int i = 4 * j; i < 4 * j + 4; i++) g[i] = s[i] * (g[i] - (i % 2 ? d.y : d.x));
          }
          if (T::CHANGED && a.softcap > 0) {
#pragma unroll
            for (int j = 0; j < PIECE / 8; j++) {
              const float2 lse = attention_two(statistics_of(piece) + j / 8 * 512 + j % 8 * 32);
#pragma unroll
              for (int i = 4 * j; i < 4 * j + 4; i++) g[i] *= attention_slope_of(s[i], i % 2 ? lse.y : lse.x, 0.693147181f / a.softcap);
            }
          }
          attention_pack<T::kind>(s, p), attention_pack<T::kind>(g, ds);
        };
        auto store_ds = [&](int piece, int buffer) {
          attention_store_ds(at + DS0 + buffer * DS, ds, own_row() + (int)(thread % 16), piece, BN * 128);
        };
        auto store_dq = [&](const float *x, int first, int n, int buffer) {          /* 16 bytes of each thread side by side */
#pragma unroll
          for (int j = 0; j < n; j++)
            attention_put_four(at + SUM0 + (w * BUFFERS + buffer) * SUM + (first + j) * 2048 + thread * 16, x + 4 * j);
        };
        auto make_dq = [&](int buffer) {    /* dq = dS k: of 64 queries and 64 dims */
          wgmma_fence();
#pragma unroll
          for (int k = 0; k < BN / 16; k++)
            wgmma<T::kind, 1, 1>(dq, by_rows(DS0 + buffer * DS + (BM == 128 ? w * 16384 : 0), BN) + k * 128,
                                 by_rows(K0 + (BM == 128 ? 0 : w * 16384), BN) + k * 128, k > 0);
          wgmma_commit();
        };
        do {
          anew();
          const int buffer = HELD ? stage : left % BUFFERS;
          before(buffer);
          barrier_wait(at + Q_FULL + stage * 8, phase);
          multiply_q(0);
          if (costly()) wgmma_wait<0>(), costly_weights();
          barrier_wait(at + DY_FULL + stage * 8, phase);
          multiply_dy(0);
          wgmma_wait<1>();
          weights(0);
          wgmma_wait<0>();
          gradients(0);
          add_dv(0);
          if (BUFFERS == 1 && left < walk.total) group_sync(READ + w, 256);
          if (T::CHANGED && maps.bias_tiles) group_sync(READ + w, 128);      /* dS' takes the place of biases */
          store_ds(0, buffer);
          if constexpr (PIECE == BM) {
            proxy_fence();
            group_sync(BOTH, 256);
            make_dq(buffer);
            wgmma_wait<1>();
            if (lead()) barrier_arrive(at + DY_EMPTY + stage * 8);
            add_dk(0);
            wgmma_wait<1>();
            if (HELD) {
#pragma unroll
              for (int j = 0; j < SUMS; j++) {
                const float4 x = attention_four(held(walk.m, j));
                dq[4 * j] += x.x, dq[4 * j + 1] += x.y, dq[4 * j + 2] += x.z, dq[4 * j + 3] += x.w;
                attention_put_four(held(walk.m, j), dq + 4 * j);
              }
            } else {
              group_sync(FREE + w, 160);
              store_dq(dq, 0, SUMS, buffer);
              proxy_fence();
              group_arrive(FULL + w, 160);
            }
            wgmma_wait<0>();
            if (lead()) barrier_arrive(at + Q_EMPTY + stage * 8);
          } else {
            add_dk(0);
            multiply_q(PIECE);
            wgmma_wait<1>();
            multiply_dy(PIECE);
            wgmma_wait<1>();
            weights(PIECE);
            wgmma_wait<0>();
            gradients(PIECE);
            add_dv(PIECE), add_dk(PIECE);
            store_ds(PIECE, buffer);
            proxy_fence();
            wgmma_wait<0>();
            group_sync(BOTH, 256);
            if (lead()) barrier_arrive(at + DY_EMPTY + stage * 8), barrier_arrive(at + Q_EMPTY + stage * 8);
            make_dq(buffer);
            group_sync(FREE + w, 160);
            wgmma_wait<0>();
            store_dq(dq, 0, 8, buffer);
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < BN / 16; k++)
              wgmma<T::kind, 1, 1>(g, by_rows(DS0, BN) + k * 128, by_rows(K0 + 2 * 16384 + w * 64, BN) + k * 128, k > 0);
            wgmma_commit();
            wgmma_wait<0>();
            if (left > 1) group_arrive(READ + (w ^ 1), 256);
            store_dq(g, 8, 4, buffer);
            proxy_fence();
            group_arrive(FULL + w, 160);
          }
          stage ^= 1, phase ^= stage == 0;
          walk.next();
        } while (--left);
      }
      if (HELD && lead()) barrier_arrive(at + OWN_EMPTY);
      if (HELD || a.shares == 1) {
        attention_gradient_end<T>(a, t, t.row0 + own_row(), dk, dv);
      } else {
        float4 *to = (float4 *)a.parts + (attention_part_at<BN>(a, t) * 2 + w) * ((D1 + D2) * 16) + thread;
#pragma unroll
        for (int i = 0; i < D1 / 8; i++) to[i * 128] = make_float4(dk[4 * i], dk[4 * i + 1], dk[4 * i + 2], dk[4 * i + 3]);
        to += D1 * 16;
#pragma unroll
        for (int i = 0; i < D2 / 8; i++) to[i * 128] = make_float4(dv[4 * i], dv[4 * i + 1], dv[4 * i + 2], dv[4 * i + 3]);
      }
      if constexpr (HELD) {
        if (job % tiles_n != tiles_n - 1) continue;
        const attention_own queries = attention_own_of<false>(a, t.b, t.h, 0);
#pragma unroll 1
        for (int m = 0; m * BM < a.padded; m++) {
          float none[1];
#pragma unroll
          for (int j = 0; j < SUMS; j++) {
            const float4 x = attention_four(held(m, j));
            dq[4 * j] = x.x, dq[4 * j + 1] = x.y, dq[4 * j + 2] = x.z, dq[4 * j + 3] = x.w;
          }
          attention_gradient_end<attention_held_shape<T::kind, D1, D2, T::CHANGED>>(a, queries, m * BM + own_row(), dq, none);
        }
      }
    }
  }
}

/* The parts of 64 keys and values to dk and dv. */
template <class T> __global__ void __launch_bounds__(128) attention_gradient_join(const __grid_constant__ cuda_attention_gradient a)
{
  constexpr int D1 = T::D1, D2 = T::D2;
  const int tiles = (a.keys + T::BN - 1) / T::BN, parts = a.shares, w = blockIdx.x % 2, at = blockIdx.x / 2, head = at / tiles,
            heads = a.heads / a.group;
  attention_own t = attention_own_of<true>(a, head / heads, head % heads * parts, at % tiles * T::BN);
  float dk[D1 / 2] = {}, dv[D2 / 2] = {};
#pragma unroll 1
  for (int n = 0; n < parts; n++, t.h++) {
    const float4 *from = (const float4 *)a.parts + (attention_part_at<T::BN>(a, t) * 2 + w) * ((D1 + D2) * 16) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < D1 / 8; i++) {
      const float4 x = from[i * 128];
      dk[4 * i] += x.x, dk[4 * i + 1] += x.y, dk[4 * i + 2] += x.z, dk[4 * i + 3] += x.w;
    }
    from += D1 * 16;
#pragma unroll
    for (int i = 0; i < D2 / 8; i++) {
      const float4 y = from[i * 128];
      dv[4 * i] += y.x, dv[4 * i + 1] += y.y, dv[4 * i + 2] += y.z, dv[4 * i + 3] += y.w;
    }
  }
  t.h = head % heads;
  attention_gradient_end<T>(a, t, t.row0 + w * 64 + threadIdx.x / 32 * 16, dk, dv);
}

/* A tile's sums to dq. */
template <class T> __global__ void __launch_bounds__(256) attention_gradient_finish(const __grid_constant__ cuda_attention_gradient a)
{
  constexpr int BM = T::BM, COLUMNS = T::COLUMNS;
  __shared__ uint32_t again[BM / 32];
  const int tiles = a.padded / BM, head = blockIdx.x / tiles, w = threadIdx.x / 128, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const attention_own t = attention_own_of<false>(a, head / a.heads, head % a.heads, (int)(blockIdx.x % tiles) * BM);
  const float4 *from = (const float4 *)a.sums + ((int64_t)blockIdx.x * 2 + w) * (COLUMNS * 16) + threadIdx.x % 128;
  const int in = (BM == 128 ? w * 64 : 0) + warp % 4 * 16 + lane / 4;
  if (threadIdx.x < BM / 32) again[threadIdx.x] = 0;
  grid_dependency_wait();
  __syncthreads();
  auto put = [&](auto &sum, int column) {
    constexpr int N = sizeof sum / sizeof *sum;
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
      const float4 x = column + 8 * j < a.dq.size ? from[j * 128] : make_float4(0, 0, 0, 0);
      sum[4 * j] = x.x, sum[4 * j + 1] = x.y, sum[4 * j + 2] = x.z, sum[4 * j + 3] = x.w;
    }
    const attention_result to = { a.dq.p, a.dq.f32, a.dq.size - column };
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = t.row0 + in + 8 * h;
      float probe = 0;
#pragma unroll
      for (int j = 0; j < N / 4; j++) probe = fmaf(sum[4 * j + 2 * h], 0.f, fmaf(sum[4 * j + 2 * h + 1], 0.f, probe));
      const bool there = row < a.queries;
      if (there && !(probe == 0)) atomicOr(&again[(row - t.row0) / 32], 1u << (row - t.row0) % 32);
      attention_put<T::kind, N * 2>(to, attention_at(a.dq, t.b, t.h, row) + column, sum, h, a.scale, there);
    }
  };
  float sum[32];
  put(sum, BM == 128 ? 0 : w * 64);
  if constexpr (COLUMNS > 64) {
    float rest[(COLUMNS - 64) / 2];
    from += 1024, put(rest, 128 + w * (COLUMNS - 64));
  }
  __syncthreads();
#pragma unroll 1
  for (int i = warp; i < BM; i += 8)
    if (again[i / 32] >> i % 32 & 1) attention_gradient_again<T>(a, t, t.row0 + i);
}

template <int D1, int D2, int kind, bool CHANGED> constexpr const void *attention_held()
{
  typedef attention_wgmma_backward_shape<kind, D1, D2, CHANGED> shape;
  if constexpr (D1 <= 64) return (const void *)attention_wgmma_gradient<shape, CUDA_ATTENTION_HELD>;
  else return NULL;
}
#define ATTENTION_WGMMA_BACKWARD_OF(kind, d, dv, changed)                                                                \
  { { (const void *)attention_wgmma_gradient<attention_wgmma_backward_shape<kind, d, dv, changed>, CUDA_ATTENTION_ANY_ORDER>, \
      (const void *)attention_wgmma_gradient<attention_wgmma_backward_shape<kind, d, dv, changed>, CUDA_ATTENTION_ONE_ORDER>, \
      attention_held<d, dv, kind, changed>() },                                                                          \
    (const void *)attention_gradient_finish<attention_finish_shape<kind, (d + 63) / 64 * 64, (dv + 63) / 64 * 64, changed>>, \
    (const void *)attention_gradient_join<attention_wgmma_backward_shape<kind, d, dv, changed>> }
#define ATTENTION_WGMMA_BACKWARD(kind, d, dv, ...)                                                                            \
  { d, dv, attention_wgmma_backward_shape<kind, d, dv, false>::BM, attention_wgmma_backward_shape<kind, d, dv, false>::BN, \
    attention_wgmma_backward_shape<kind, d, dv, false>::threads, attention_wgmma_backward_shape<kind, d, dv, false>::shared, \
    { ATTENTION_WGMMA_BACKWARD_OF(kind, d, dv, false), __VA_ARGS__ } },
#define ATTENTION_WGMMA_BACKWARD_SHAPES(kind)                                                                            \
  ATTENTION_WGMMA_BACKWARD(kind, 32, 32, ATTENTION_WGMMA_BACKWARD_OF(kind, 32, 32, true))                                \
  ATTENTION_WGMMA_BACKWARD(kind, 64, 64, ATTENTION_WGMMA_BACKWARD_OF(kind, 64, 64, true))                                \
  ATTENTION_WGMMA_BACKWARD(kind, 96, 96, ATTENTION_WGMMA_BACKWARD_OF(kind, 96, 96, true))                                \
  ATTENTION_WGMMA_BACKWARD(kind, 128, 128, ATTENTION_WGMMA_BACKWARD_OF(kind, 128, 128, true))                            \
  ATTENTION_WGMMA_BACKWARD(kind, 192, 128, {})              /* changed scores: no registers are left for that */
