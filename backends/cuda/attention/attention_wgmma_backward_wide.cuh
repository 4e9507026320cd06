/* attention_wgmma_backward_wide.cuh -- attention's gradient on Hopper's Tensor Cores for rows of more than 128 elements.
 *
 * As attention_wgmma_backward.cuh, but sums of dk and dv of 128 keys would not fit into registers. A block owns 64 keys and values, and the
 * two warpgroups part the work by products: warpgroup 0 makes S' = k q' and, of its weights P', dv += P' dy; warpgroup 1 makes
 * dP' = v dy' and, with the weights that it gets through shared memory, dk += dS' q. Each makes half of dq's columns, in two pieces of up
 * to 64. q has two stages, dy one.
 *
 * What keeps the one buffer of weights and the one of dS' from being overwritten too soon: new weights are made after warpgroup 1 has
 * handed on dS', which it does when it has read the last ones; and new dS' needs new weights, which warpgroup 0 makes when its products of
 * the last dS' have ended. */
#pragma once
#include "attention_wgmma_backward.cuh"

template <int kind_, int D_, bool CHANGED_> struct attention_wgmma_backward_wide {
  static constexpr bool CHANGED = CHANGED_;
  static constexpr int kind = kind_, D1 = D_, D2 = D_, BN = 64, BM = 64, COLUMNS = D_ / 2, threads = 384;
  static constexpr int REST = COLUMNS - 64;                  /* columns of dq's second piece */
  static constexpr int rows_bytes = 64 * D_ * 2, ds_bytes = BN * BM * 2, weights_bytes = BN * BM * 4, sum_bytes = 64 * 64 * 4,
                       statistics = BM * 8, header = 1024 + 2 * statistics;
  static constexpr int shared = header + 5 * rows_bytes + ds_bytes + weights_bytes + 2 * sum_bytes;
  static_assert(shared <= 227 * 1024 && header % 1024 == 0, "");
};
/* What a warpgroup sums up: dv (0) or dk (1). */
template <class T, int W> struct attention_wide_sum {
  static constexpr int kind = T::kind, D1 = T::D1, D2 = T::D2;
  static constexpr bool KEYS = true, SUM1 = W == 1, SUM2 = W == 0, CHANGED = T::CHANGED;
};
/* Stores 16 rows of dv (which 0) or dk. */
template <class T, int N>
__device__ __forceinline__ void attention_wide_end(const cuda_attention_gradient &a, const attention_own &t, int row0, int which,
                                                   float (&sum)[N])
{
  float none[1];
  if (which) attention_gradient_end<attention_wide_sum<T, 1>>(a, t, row0, sum, none);
  else attention_gradient_end<attention_wide_sum<T, 0>>(a, t, row0, none, sum);
}

template <class T, int ORDER> __global__ void __launch_bounds__(T::threads, 1)
    attention_wide_gradient(const __grid_constant__ cuda_attention_gradient a, const __grid_constant__ cuda_attention_gradient_maps maps)
{
  constexpr int D = T::D1, BN = T::BN, BM = T::BM, ROWS = T::rows_bytes, SUM = T::sum_bytes, PLACE = BM * T::COLUMNS;
  /* Named barriers: weights are there; dS' is; a warpgroup's piece of dq is; there is room for the next. */
  enum { WEIGHTS = 1, DS = 2, FULL = 3, FREE = 5 };
  extern __shared__ __align__(1024) unsigned char shared[];
  enum : uint32_t { OWN_FULL = 0, Q_FULL = 16, Q_EMPTY = 32, DY_FULL = 48, DY_EMPTY = 64, STATISTICS = 1024, K0 = T::header,
                    V0 = K0 + ROWS, DY0 = V0 + ROWS, Q0 = DY0 + ROWS, DS0 = Q0 + 2 * ROWS, WEIGHTS0 = DS0 + T::ds_bytes,
                    SUM0 = WEIGHTS0 + T::weights_bytes };
  const uint32_t base = shared_address(shared);
  attention_own &t = *(attention_own *)(shared + 128);       /* there it takes no registers; t.h: of a group's heads a share */
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  grid_dependency_wait();
  if (threadIdx.x == 0) {
    t = attention_own_at<true, BN>(a, atomicAdd(a.turns, 1));
    barrier_init(base + OWN_FULL, 1), barrier_init(base + DY_FULL, 1), barrier_init(base + DY_EMPTY, 2);
    for (int i = 0; i < 16; i += 8) barrier_init(base + Q_FULL + i, 1), barrier_init(base + Q_EMPTY + i, 2);
    barrier_init_fence();
  }
  __syncthreads();
  const int key_head = t.h / a.shares;
  attention_walk<BM> walk(a, t, BN);
  if (group == 0) {
    registers_lower<24>();
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0 && walk.total) {
      barrier_expect(base + OWN_FULL, 2 * ROWS);
      for (int c = 0; c < D; c += 64) tma_load(base + K0 + c * BN * 2, &maps.map[1], c, t.row0, key_head, t.b, base + OWN_FULL);
      for (int c = 0; c < D; c += 64) tma_load(base + V0 + c * BN * 2, &maps.map[2], c, t.row0, key_head, t.b, base + OWN_FULL);
      int stage = 0, phase = 1;
      for (int i = 0; i < walk.total; i++, walk.next()) {
        const float *of = a.statistics + walk.tile(a, t) * (2 * BM);
        barrier_wait(base + Q_EMPTY + stage * 8, phase), barrier_expect(base + Q_FULL + stage * 8, ROWS + T::statistics);
        for (int c = 0; c < D; c += 64)
          tma_load(base + Q0 + stage * ROWS + c * BM * 2, &maps.map[0], c, walk.m * BM, walk.h, t.b, base + Q_FULL + stage * 8);
        bulk_load(base + STATISTICS + stage * T::statistics, of, T::statistics, base + Q_FULL + stage * 8);
        barrier_wait(base + DY_EMPTY, ~i & 1), barrier_expect(base + DY_FULL, ROWS);
        for (int c = 0; c < D; c += 64)
          tma_load(base + DY0 + c * BM * 2, &maps.map[3], c, walk.m * BM, walk.h, t.b, base + DY_FULL);
        stage ^= 1, phase ^= stage == 0;
      }
    } else if (warp == 1 || warp == 2) {
      const int w = warp - 1;
      const bool lead = threadIdx.x % 32 == 0;
      auto add = [&](int64_t at, int bytes, bool more) {     /* the piece that is there to sums, from `at` on */
        __syncwarp();                                        /* named barriers count warps */
        group_sync(FULL + w, 160);
        if (lead) bulk_add(a.sums + at, base + SUM0 + w * SUM, bytes), tma_store_commit(), tma_store_wait_read<0>();
        __syncwarp();
        if (more) group_arrive(FREE + w, 160);
      };
      if (walk.total) group_arrive(FREE + w, 160);
      for (int left = walk.total; left; left--, walk.next()) {
        const int64_t tile = walk.tile(a, t) * 2 + w;
        if (ORDER == CUDA_ATTENTION_ONE_ORDER && lead)
          turn_wait(a.turns + 1 + tile, (uint32_t)(t.row0 / BN - max(0, a.left < 0 ? 0 : walk.m * BM - t.shift - a.left) / BN));
        add(tile * PLACE, SUM, true);
        add(tile * PLACE + SUM / 4, BM * T::REST * 4, left > 1);
        if (ORDER == CUDA_ATTENTION_ONE_ORDER && lead) {
          tma_store_wait<0>();
          turn_end(a.turns + 1 + tile);
        }
      }
      if (lead) tma_store_wait<0>();
    }
  } else {
    registers_raise<240>();
    uint32_t at = base, w = group - 1, thread = threadIdx.x % 128;
    auto anew = [&] { asm volatile("" : "+r"(at), "+r"(w), "+r"(thread)); };       /* else what follows from them is kept in registers */
    auto by_dims = [&](uint32_t from) { return mma_descriptor(at + from, 16, 1024, 128); };
    auto by_rows = [&](uint32_t from) { return mma_descriptor(at + from, 64 * 128, 1024, 128); };
    float sum[D / 2], s[32], dq[32], rest[T::REST / 2];
    uint32_t left_operand[16], hidden[1];
    const int whole_high = t.high(t.row0 + BN - 1) < 0 ? -1 : t.high(t.row0), whole_low = t.low(t.row0 + BN - 1);
#pragma unroll
    for (int i = 0; i < D / 2; i++) sum[i] = 0;
    if (walk.total) {
      barrier_wait(at + OWN_FULL, 0);
      int stage = 0, phase = 0, left = walk.total, dy_phase = 0;
      auto q0 = [&] { return Q0 + stage * ROWS; };
      do {
        anew();
        const uint32_t q_full = at + Q_FULL + stage * 8, statistics = at + STATISTICS + stage * T::statistics + thread % 4 * 8;
        const int column0 = walk.m * BM, column = column0 + (int)(thread % 4 * 2), key = t.row0 + (int)(thread / 32 * 16 + thread % 32 / 4);
        if constexpr (T::CHANGED) {
#pragma unroll
          for (int i = 0; i < 32; i++) s[i] = 0;
          if (w == 0) attention_hidden<32>(a, t.b, walk.h, key, column, hidden), attention_biases(a, t.b, walk.h, key, column, s);
        }
        if (w == 0) barrier_wait(q_full, phase);
        else barrier_wait(at + DY_FULL, dy_phase);
        wgmma_fence();                    /* S' or dP' */
#pragma unroll
        for (int k = 0; k < D / 16; k++)
          wgmma<T::kind, 0, 0>(s, by_dims(K0 + w * ROWS) + k / 4 * (BN * 8) + k % 4 * 2,
                               by_dims(w ? (uint32_t)DY0 : q0()) + k / 4 * (BM * 8) + k % 4 * 2, k > 0 || T::CHANGED);
        wgmma_commit();
        wgmma_wait<0>();
        const uint32_t weights = at + WEIGHTS0 + thread * 16;
        if (w == 0) {
          if constexpr (T::CHANGED) {
            attention_changed_weights(a, t, walk.h, key, column, s, hidden, [&](int j) { return attention_two(statistics + j * 32); });
          } else {
            if (column0 + BM - 1 > whole_high || column0 < whole_low) {
              const int up[2] = { t.high(key) - column, t.high(key + 8) - column },
                        down[2] = { t.low(key) - column, t.low(key + 8) - column };
              attention_mask(s, down, up);
            }
            attention_weights(s, statistics, a.scale_log2);
          }
#pragma unroll
          for (int j = 0; j < 8; j++) attention_put_four(weights + j * 2048, s + 4 * j);
          group_arrive(WEIGHTS, 256);
          attention_pack<T::kind>(s, left_operand);
          barrier_wait(at + DY_FULL, dy_phase);
        } else {
          barrier_wait(q_full, phase);
          group_sync(WEIGHTS, 256);
#pragma unroll
          for (int j = 0; j < 8; j++) {
            const float2 d = attention_two(statistics + 256 + j * 32);
            const float4 p = attention_four(weights + j * 2048);
            s[4 * j] = p.x * (s[4 * j] - d.x), s[4 * j + 1] = p.y * (s[4 * j + 1] - d.y);
            s[4 * j + 2] = p.z * (s[4 * j + 2] - d.x), s[4 * j + 3] = p.w * (s[4 * j + 3] - d.y);
            if (T::CHANGED && a.softcap > 0) {
              const float2 lse = attention_two(statistics + j * 32);
              const float by = 0.693147181f / a.softcap;
              s[4 * j] *= attention_slope_of(p.x, lse.x, by), s[4 * j + 1] *= attention_slope_of(p.y, lse.y, by);
              s[4 * j + 2] *= attention_slope_of(p.z, lse.x, by), s[4 * j + 3] *= attention_slope_of(p.w, lse.y, by);
            }
          }
          attention_pack<T::kind>(s, left_operand);
          attention_store_ds(at + DS0, left_operand, (int)(thread / 32 * 16 + thread % 16), 0, 0);
          proxy_fence();
        }
        wgmma_fence();                    /* dv += P' dy or dk += dS' q */
#pragma unroll
        for (int k = 0; k < 4; k++)
          attention_add_rows<T::kind>(sum, left_operand + 4 * k, by_rows(w ? q0() : (uint32_t)DY0) + k * 128, BM * 8);
        wgmma_commit();
        group_sync(DS, 256);
        auto make_dq = [&](auto &to, uint32_t columns) {     /* dq = dS k: of 64 queries and the columns that begin there */
          wgmma_fence();
#pragma unroll
          for (int k = 0; k < BN / 16; k++)
            wgmma<T::kind, 1, 1>(to, by_rows(DS0) + k * 128, by_rows(K0 + columns) + k * 128, k > 0);
          wgmma_commit();
        };
        auto store_dq = [&](const float *x, int n) {         /* 16 bytes of each thread side by side */
          group_sync(FREE + w, 160);
#pragma unroll
          for (int j = 0; j < n; j++) attention_put_four(at + SUM0 + w * SUM + j * 2048 + thread * 16, x + 4 * j);
          proxy_fence();
          group_arrive(FULL + w, 160);
        };
        make_dq(dq, w * (BN * 128));
        wgmma_wait<1>();
        if (thread == 0) barrier_arrive(at + DY_EMPTY), barrier_arrive(at + Q_EMPTY + stage * 8);
        make_dq(rest, T::REST == 64 ? (2 + w) * (BN * 128) : 2 * (BN * 128) + w * 64);
        wgmma_wait<1>();
        store_dq(dq, 8);
        wgmma_wait<0>();
        store_dq(rest, T::REST / 8);
        stage ^= 1, phase ^= stage == 0, dy_phase ^= 1;
        walk.next();
      } while (--left);
    }
    if (a.shares == 1) {
      attention_wide_end<T>(a, t, t.row0 + (int)(thread / 32 * 16), (int)w, sum);
    } else {
      float4 *to = (float4 *)a.parts + (attention_part_at<BN>(a, t) * 2 + w) * (D * 16) + thread;
#pragma unroll
      for (int i = 0; i < D / 8; i++) to[i * 128] = make_float4(sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]);
    }
  }
}

/* The parts of 64 keys to dk or dv. */
template <class T> __global__ void __launch_bounds__(128) attention_wide_join(const __grid_constant__ cuda_attention_gradient a)
{
  constexpr int D = T::D1;
  const int tiles = (a.keys + T::BN - 1) / T::BN, which = blockIdx.x % 2, at = blockIdx.x / 2, head = at / tiles, heads = a.heads / a.group;
  attention_own t = attention_own_of<true>(a, head / heads, head % heads * a.shares, at % tiles * T::BN);
  float sum[D / 2] = {};
#pragma unroll 1
  for (int n = 0; n < a.shares; n++, t.h++) {
    const float4 *from = (const float4 *)a.parts + (attention_part_at<T::BN>(a, t) * 2 + which) * (D * 16) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < D / 8; i++) {
      const float4 x = from[i * 128];
      sum[4 * i] += x.x, sum[4 * i + 1] += x.y, sum[4 * i + 2] += x.z, sum[4 * i + 3] += x.w;
    }
  }
  t.h = head % heads;
  attention_wide_end<T>(a, t, t.row0 + threadIdx.x / 32 * 16, which, sum);
}

#define ATTENTION_WGMMA_BACKWARD_WIDE_OF(kind, d, changed)                                                               \
  { { (const void *)attention_wide_gradient<attention_wgmma_backward_wide<kind, d, changed>, CUDA_ATTENTION_ANY_ORDER>,   \
      (const void *)attention_wide_gradient<attention_wgmma_backward_wide<kind, d, changed>, CUDA_ATTENTION_ONE_ORDER>, NULL }, \
    (const void *)attention_gradient_finish<attention_finish_shape<kind, d, d, changed>>,                                \
    (const void *)attention_wide_join<attention_wgmma_backward_wide<kind, d, changed>> }
#define ATTENTION_WGMMA_BACKWARD_WIDE(kind, d)                                                                           \
  { d, d, attention_wgmma_backward_wide<kind, d, false>::BM, attention_wgmma_backward_wide<kind, d, false>::BN,          \
    attention_wgmma_backward_wide<kind, d, false>::threads, attention_wgmma_backward_wide<kind, d, false>::shared,       \
    { ATTENTION_WGMMA_BACKWARD_WIDE_OF(kind, d, false), ATTENTION_WGMMA_BACKWARD_WIDE_OF(kind, d, true) } },
#define ATTENTION_WGMMA_BACKWARD_WIDE_SHAPES(kind) ATTENTION_WGMMA_BACKWARD_WIDE(kind, 192) ATTENTION_WGMMA_BACKWARD_WIDE(kind, 256)
