/* attention_wgmma_backward.cuh -- attention's gradient on Hopper's Tensor Cores (the formulas: attention_gradient.cuh).
 *
 * A block owns 128 keys and values of one head, takes its number from a counter, and walks over the tiles of BM queries that see them, the
 * last first, in all heads of their group. Warp 0 of the first warpgroup loads q and dy with their rows' statistics by TMA, through rings
 * of two stages. Each of the two other warpgroups owns 64 keys: S' = k q' and dP' = v dy' by wgmma from shared memory; P' and dS' stay in
 * registers as the left operands of dv += P' dy and dk += dS' q. dS' also goes to shared memory, where both read it for dq = dS k: each
 * makes 64 x 64 of it (D 128: half of the columns; D 64: half of the queries). Warps 1 and 2 of the first warpgroup add that, 16 KB, to
 * sums in f32 in an order of their own: [B, heads, tiles][2 warpgroups][8][128 threads][4]. Another kernel makes dq of them.
 *
 * Where there are few blocks for so many multiprocessors, the heads of a group are shared by group / share blocks: their sums of dk and
 * dv go to memory, and a third kernel adds them.
 *
 * In one order: the blocks of keys that see a tile of queries add to it in turn, first keys first. They also take their numbers so, so
 * no block waits for one that has not begun.
 *
 * ptxas moves waits up past arithmetic: a store that never happens, but depends on all exponentials, keeps the wait for dP' behind them. */
#pragma once
#include "attention_gradient.cuh"
#include "attention_wgmma_backward.h"

template <int kind_, int D_> struct attention_wgmma_backward_shape {
  static constexpr int kind = kind_, D = D_, D1 = D, D2 = D, BN = 128, BM = D > 64 ? 64 : 128, threads = 384;
  static constexpr bool KEYS = true, SUM1 = true, SUM2 = true, CHANGED = false;
  static constexpr int own_bytes = BN * D * 2, tile_bytes = BM * D * 2, ds_bytes = BN * BM * 2, sum_bytes = 64 * 64 * 4,
                       statistics = BM * 8, header = 1024 + 2 * statistics;
  static constexpr int shared = header + 2 * own_bytes + 4 * tile_bytes + 2 * ds_bytes + 2 * sum_bytes;
};
template <int kind_, int D_> struct attention_finish_shape {
  static constexpr int kind = kind_, D = D_, D1 = D, D2 = D;
  static constexpr bool KEYS = false, SUM1 = true, SUM2 = false, CHANGED = false;
};

/* The tiles of queries that a block of keys visits: from last down to first, for each of its heads. */
template <int BM> struct attention_walk {
  int first, last, total, m, h;
  __device__ __forceinline__ attention_walk(const cuda_attention_gradient &a, const attention_own &t, int keys)
  {
    const int end = min(t.row0 + keys, t.own) - 1, top = end < t.row0 ? -1 : t.high(end), bottom = t.low(t.row0);
    first = bottom / BM, last = top < bottom ? first - 1 : top / BM, total = (last - first + 1) * a.share;
    m = last, h = t.h * a.share;
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
  return ((int64_t)t.b * (a.heads / a.share) + t.h) * ((a.keys + BN - 1) / BN) + t.row0 / BN;
}

template <class T, bool ORDERED> __global__ void __launch_bounds__(T::threads, 1)
    attention_wgmma_gradient(const __grid_constant__ cuda_attention_gradient a, const __grid_constant__ cuda_attention_gradient_maps maps)
{
  constexpr int D = T::D, BN = T::BN, BM = T::BM, OWN = T::own_bytes, TILE = T::tile_bytes, DS = T::ds_bytes, SUM = T::sum_bytes;
  enum { BOTH = 1, FULL = 2, FREE = 4 };  /* named barriers: of both warpgroups; of a warpgroup's part of dq */
  extern __shared__ __align__(1024) unsigned char shared[];
  const uint32_t base = shared_address(shared), own_full = base, q_full = base + 16, q_empty = base + 32, dy_full = base + 48,
                 dy_empty = base + 64, statistics = base + 1024, k0 = base + T::header, v0 = k0 + OWN, q0 = v0 + OWN, dy0 = q0 + 2 * TILE,
                 ds0 = dy0 + 2 * TILE, sum0 = ds0 + 2 * DS;
  volatile uint32_t *number = (volatile uint32_t *)(shared + 128);
  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);
  if (threadIdx.x == 0) {
    *number = atomicAdd(a.turns, 1);
    barrier_init(own_full, 1);
    for (int i = 0; i < 16; i += 8)
      barrier_init(q_full + i, 1), barrier_init(dy_full + i, 1), barrier_init(q_empty + i, 2), barrier_init(dy_empty + i, 2);
    barrier_init_fence();
  }
  __syncthreads();
  const attention_own t = attention_own_at<true, BN>(a, *number);                        /* t.h: of a group's heads a share */
  const int key_head = t.h / (a.group / a.share);
  attention_walk<BM> walk(a, t, BN);
  if (group == 0) {
    registers_lower<24>();
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0 && walk.total) {
      barrier_expect(own_full, 2 * OWN);
      for (int c = 0; c < D; c += 64) {
        tma_load(k0 + c * BN * 2, &maps.map[1], c, t.row0, key_head, t.b, own_full);
        tma_load(v0 + c * BN * 2, &maps.map[2], c, t.row0, key_head, t.b, own_full);
      }
      int stage = 0, phase = 1;
      for (int i = 0; i < walk.total; i++, walk.next()) {
        const float *of = a.statistics + walk.tile(a, t) * (2 * BM);
        barrier_wait(q_empty + stage * 8, phase), barrier_expect(q_full + stage * 8, TILE + T::statistics);
        for (int c = 0; c < D; c += 64)
          tma_load(q0 + stage * TILE + c * BM * 2, &maps.map[0], c, walk.m * BM, walk.h, t.b, q_full + stage * 8);
        bulk_load(statistics + stage * T::statistics, of, T::statistics, q_full + stage * 8);
        barrier_wait(dy_empty + stage * 8, phase), barrier_expect(dy_full + stage * 8, TILE);
        for (int c = 0; c < D; c += 64)
          tma_load(dy0 + stage * TILE + c * BM * 2, &maps.map[3], c, walk.m * BM, walk.h, t.b, dy_full + stage * 8);
        stage ^= 1, phase ^= stage == 0;
      }
    } else if (warp == 1 || warp == 2) {
      const int w = warp - 1;
      const bool lead = threadIdx.x % 32 == 0;
      for (int i = 0; i < walk.total; i++, walk.next()) {
        if (lead) tma_store_wait_read<0>();
        __syncwarp();
        group_arrive(FREE + w, 160);
        group_sync(FULL + w, 160);
        if (!lead) continue;
        const int64_t at = walk.tile(a, t) * 2 + w;
        if (ORDERED) turn_wait(a.turns + 1 + at, (uint32_t)(t.row0 / BN - max(0, a.left < 0 ? 0 : walk.m * BM - t.shift - a.left) / BN));
        bulk_add(a.sums + at * (SUM / 4), sum0 + w * SUM, SUM);
        tma_store_commit();
        if (!ORDERED) continue;
        tma_store_wait<0>();
        turn_end(a.turns + 1 + at);
      }
      if (lead) tma_store_wait<0>();
    }
  } else {
    registers_raise<240>();
    const int w = group - 1, lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32, top = t.row0 + w * 64, row0 = top + warp * 16,
              column = lane % 4 * 2;
    const bool lead = threadIdx.x % 128 == 0;
    /* k is the head's dim; a query; a key. */
    const uint64_t k_own = mma_descriptor(k0 + w * 8192, 16, 1024, 128), v_own = mma_descriptor(v0 + w * 8192, 16, 1024, 128),
                   q_rows = mma_descriptor(q0, 16, 1024, 128), dy_rows = mma_descriptor(dy0, 16, 1024, 128),
                   q_columns = mma_descriptor(q0, BM * 128, 1024, 128), dy_columns = mma_descriptor(dy0, BM * 128, 1024, 128),
                   ds_columns = mma_descriptor(ds0 + (BM == 128 ? w * 16384 : 0), 16384, 1024, 128),
                   k_columns = mma_descriptor(k0 + (BM == 128 ? 0 : w * 16384), 16384, 1024, 128);
    float dv[D / 2], dk[D / 2], s[BM / 2], g[BM / 2], dq[32];
    uint32_t p[BM / 4], ds[BM / 4];
    /* This thread's rows: keys, and the columns of a tile, queries, that each sees, counted from its first. */
    const int high[2] = { t.high(row0 + lane / 4) - column, t.high(row0 + lane / 4 + 8) - column },
              low[2] = { t.low(row0 + lane / 4) - column, t.low(row0 + lane / 4 + 8) - column };
    const int whole_high = t.high(top + 63) < 0 ? -1 : t.high(top), whole_low = t.low(top + 63);
#pragma unroll
    for (int i = 0; i < D / 2; i++) dv[i] = dk[i] = 0;
    if (walk.total) {
      barrier_wait(own_full, 0);
      int stage = 0, phase = 0, left = walk.total;
      do {
        barrier_wait(q_full + stage * 8, phase);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < D / 16; k++)
          wgmma<T::kind, 0, 0>(s, k_own + k / 4 * (BN * 8) + k % 4 * 2, q_rows + stage * (TILE >> 4) + k / 4 * (BM * 8) + k % 4 * 2, k > 0);
        wgmma_commit();
        barrier_wait(dy_full + stage * 8, phase);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < D / 16; k++)
          wgmma<T::kind, 0, 0>(g, v_own + k / 4 * (BN * 8) + k % 4 * 2, dy_rows + stage * (TILE >> 4) + k / 4 * (BM * 8) + k % 4 * 2,
                               k > 0);
        wgmma_commit();
        wgmma_wait<1>();
        const int column0 = walk.m * BM;
        if (column0 + BM - 1 > whole_high || column0 < whole_low) {
          const int up[2] = { high[0] - column0, high[1] - column0 }, down[2] = { low[0] - column0, low[1] - column0 };
          attention_mask(s, down, up);
        }
        const uint32_t of = statistics + stage * T::statistics + column * 4;
        int signs = 0;
#pragma unroll
        for (int j = 0; j < BM / 8; j++) {
          float x, y;
          asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(of + j / 8 * 512 + j % 8 * 32) : "memory");
#pragma unroll
          for (int i = 4 * j; i < 4 * j + 4; i++) {
            s[i] = fn_exp2(fmaf(s[i], a.scale_log2, i % 2 ? -y : -x));
            signs |= __float_as_int(s[i]);
          }
        }
        asm volatile("{.reg .pred p; setp.lt.s32 p, %0, 0; @p st.shared.u32 [%1], %0;}" :: "r"(signs), "r"(base + 256) : "memory");
        wgmma_wait<0>();
#pragma unroll
        for (int j = 0; j < BM / 8; j++) {
          float x, y;
          asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(of + 256 + j / 8 * 512 + j % 8 * 32) : "memory");
#pragma unroll
          for (int i = 4 * j; i < 4 * j + 4; i++) g[i] = s[i] * (g[i] - (i % 2 ? y : x));
        }
        attention_pack<T::kind>(s, p), attention_pack<T::kind>(g, ds);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BM / 16; k++) wgmma_registers<T::kind, 1>(dv, p + 4 * k, dy_columns + stage * (TILE >> 4) + k * 128, 1);
        wgmma_commit();
        /* dS', rows of 64 queries for each key */
        const int buffer = left & 1;
        const uint32_t row = w * 64 + warp * 16 + lane % 16, to = ds0 + buffer * DS + row * 128;
#pragma unroll
        for (int j = 0; j < BM / 16; j++)
          store_matrix(to + j / 4 * 16384 + ((j % 4 * 2 + lane / 16 ^ row & 7) << 4), ds[4 * j], ds[4 * j + 1], ds[4 * j + 2],
                       ds[4 * j + 3]);
        proxy_fence();
        group_sync(BOTH, 256);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BN / 16; k++)
          wgmma<T::kind, 1, 1>(dq, ds_columns + buffer * (DS >> 4) + k * 128, k_columns + k * 128, k > 0);
        wgmma_commit();
        wgmma_wait<1>();
        if (lead) barrier_arrive(dy_empty + stage * 8);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BM / 16; k++) wgmma_registers<T::kind, 1>(dk, ds + 4 * k, q_columns + stage * (TILE >> 4) + k * 128, 1);
        wgmma_commit();
        wgmma_wait<1>();
        group_sync(FREE + w, 160);
#pragma unroll
        for (int j = 0; j < 8; j++)
          asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
                       :: "r"(sum0 + w * SUM + j * 2048 + threadIdx.x % 128 * 16), "f"(dq[4 * j]), "f"(dq[4 * j + 1]),
                          "f"(dq[4 * j + 2]), "f"(dq[4 * j + 3]) : "memory");
        proxy_fence();
        group_arrive(FULL + w, 160);
        wgmma_wait<0>();
        if (lead) barrier_arrive(q_empty + stage * 8);
        stage ^= 1, phase ^= stage == 0;
        walk.next();
      } while (--left);
    }
    if (a.share == a.group) {
      attention_gradient_end<T>(a, t, row0, dk, dv);
    } else {
      float4 *to = (float4 *)a.parts + (attention_part_at<BN>(a, t) * 2 + w) * (D / 4 * 128) + threadIdx.x % 128;
#pragma unroll
      for (int i = 0; i < D / 8; i++) {
        to[i * 256] = make_float4(dk[4 * i], dk[4 * i + 1], dk[4 * i + 2], dk[4 * i + 3]);
        to[i * 256 + 128] = make_float4(dv[4 * i], dv[4 * i + 1], dv[4 * i + 2], dv[4 * i + 3]);
      }
    }
  }
}

/* The parts of 64 keys and values to dk and dv. */
template <class T> __global__ void __launch_bounds__(128) attention_gradient_join(const __grid_constant__ cuda_attention_gradient a)
{
  constexpr int D = T::D;
  const int tiles = (a.keys + T::BN - 1) / T::BN, parts = a.group / a.share, w = blockIdx.x % 2, at = blockIdx.x / 2, head = at / tiles,
            heads = a.heads / a.group;
  attention_own t = attention_own_of<true>(a, head / heads, head % heads * parts, at % tiles * T::BN);
  float dk[D / 2] = {}, dv[D / 2] = {};
#pragma unroll 1
  for (int n = 0; n < parts; n++, t.h++) {
    const float4 *from = (const float4 *)a.parts + (attention_part_at<T::BN>(a, t) * 2 + w) * (D / 4 * 128) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < D / 8; i++) {
      const float4 x = from[i * 256], y = from[i * 256 + 128];
      dk[4 * i] += x.x, dk[4 * i + 1] += x.y, dk[4 * i + 2] += x.z, dk[4 * i + 3] += x.w;
      dv[4 * i] += y.x, dv[4 * i + 1] += y.y, dv[4 * i + 2] += y.z, dv[4 * i + 3] += y.w;
    }
  }
  t.h = head % heads;
  attention_gradient_end<T>(a, t, t.row0 + w * 64 + threadIdx.x / 32 * 16, dk, dv);
}

/* A tile's sums to dq. */
template <class T> __global__ void __launch_bounds__(256) attention_gradient_finish(const __grid_constant__ cuda_attention_gradient a)
{
  constexpr int BM = T::D > 64 ? 64 : 128;
  __shared__ uint32_t again[BM / 32];
  const int tiles = a.padded / BM, head = blockIdx.x / tiles, w = threadIdx.x / 128, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const attention_own t = attention_own_of<false>(a, head / a.heads, head % a.heads, (int)(blockIdx.x % tiles) * BM);
  const float4 *from = (const float4 *)a.sums + ((int64_t)blockIdx.x * 2 + w) * 1024 + threadIdx.x % 128;
  const int in = (BM == 128 ? w * 64 : 0) + warp % 4 * 16 + lane / 4, column = BM == 128 ? 0 : w * 64;
  float sum[32];
  if (threadIdx.x < BM / 32) again[threadIdx.x] = 0;
#pragma unroll
  for (int j = 0; j < 8; j++) {
    const float4 x = from[j * 128];
    sum[4 * j] = x.x, sum[4 * j + 1] = x.y, sum[4 * j + 2] = x.z, sum[4 * j + 3] = x.w;
  }
  __syncthreads();
  const attention_result to = { a.dq.p, a.dq.f32, a.dq.size - column };
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int row = t.row0 + in + 8 * h;
    float probe = 0;
#pragma unroll
    for (int j = 0; j < 8; j++) probe = fmaf(sum[4 * j + 2 * h], 0.f, fmaf(sum[4 * j + 2 * h + 1], 0.f, probe));
    const bool there = row < a.queries;
    if (there && !(probe == 0)) atomicOr(&again[(row - t.row0) / 32], 1u << (row - t.row0) % 32);
    attention_put<T::kind, 64>(to, attention_at(a.dq, t.b, t.h, row) + column, sum, h, a.scale, there);
  }
  __syncthreads();
#pragma unroll 1
  for (int i = warp; i < BM; i += 8)
    if (again[i / 32] >> i % 32 & 1) attention_gradient_again<T>(a, t, t.row0 + i);
}

#define ATTENTION_WGMMA_BACKWARD(kind, d)                                                                            \
  { d, attention_wgmma_backward_shape<kind, d>::BM, attention_wgmma_backward_shape<kind, d>::BN,                     \
    attention_wgmma_backward_shape<kind, d>::threads, attention_wgmma_backward_shape<kind, d>::shared,               \
    { (const void *)attention_wgmma_gradient<attention_wgmma_backward_shape<kind, d>, false>,                        \
      (const void *)attention_wgmma_gradient<attention_wgmma_backward_shape<kind, d>, true> },                       \
    (const void *)attention_gradient_finish<attention_finish_shape<kind, d>>,                                        \
    (const void *)attention_gradient_join<attention_wgmma_backward_shape<kind, d>> },
