/* attention_wide.cuh -- attention of rows that are too long for one warp's registers: keys of up to 576 elements, values of up to 512,
 * which may be the first elements of their keys (latent attention: every query head of a sequence reads the same 576 numbers a key).
 *
 * A block of eight warps takes 64 rows, as attention_mma.cuh does: queries of one sequence with the heads of a group side by side. Warps
 * w and w + 4 have rows 16 w to 16 w + 15: of S = q k' each takes half of a block's keys, of O += P v half of the columns. They tell
 * each other their maxima, and P, through shared memory. Keys come by cp.async; where values lie within keys they are loaded once.
 *
 * WGMMA: the products by Hopper's wgmma, of which each four warps issue one for their half; else by mma.sync.
 *
 * `splits`, and rows that are not finite: as there. */
#pragma once
#include "attention_mma.cuh"

template <int kind_, int BN_, int STAGES_, bool OWN_, bool WGMMA_, bool PLAIN_> struct attention_wide_shape {
  static constexpr int kind = kind_, D = 576, DV = 512, BN = BN_, STAGES = STAGES_, ROWS = 64, N = BN / 2;      /* N: keys of a warp */
  static constexpr bool OWN = OWN_, WGMMA = WGMMA_, PLAIN = PLAIN_, DROPS = !PLAIN;         /* OWN: values are not within keys */
  typedef uint16_t element;
  /* Rows lie in chunks of 64 elements, 128 bytes, swizzled: chunk c of all rows, then the next. */
  static constexpr int chunk = BN * 128, k_stage = D / 64 * chunk, stage = k_stage + (OWN ? DV / 64 * chunk : 0);
  static constexpr int q_bytes = D / 64 * ROWS * 128, p_bytes = ROWS * 128;
  static constexpr int shared = 1024 + q_bytes + p_bytes + STAGES * stage;
  static_assert(BN % 32 == 0 && BN <= 64 && STAGES <= 2 && shared + 2048 <= 227 * 1024, "");
};
enum { ATTENTION_WIDE_THREADS = 256 };

/* 16 bytes, number c of a row, of `rows` rows. */
__device__ __forceinline__ uint32_t attention_wide_at(uint32_t base, int rows, int r, int c)
{
  return base + c / 8 * rows * 128 + r * 128 + ((c ^ r) % 8 << 4);
}
struct attention_wide_half { void *y; int y_f32, dv; };     /* of attention_put: columns of one of the two warps */

template <class T> __global__ void __launch_bounds__(ATTENTION_WIDE_THREADS, 1)
    attention_wide(const __grid_constant__ cuda_attention_many a)
{
  constexpr int BN = T::BN, N = T::N, ROWS = T::ROWS, HALF = T::DV / 2, THREADS = ATTENTION_WIDE_THREADS;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ float tops[2][ROWS];         /* the largest score of each row's halves */
  __shared__ float2 ends[2][ROWS];        /* divisors, and what is not 0 if sums are not finite */
  __shared__ bool there[2][BN];           /* of a stage's keys: those on a page that exists */
  const uint32_t q0 = (shared_address(shared) + 1023) & ~1023u, p0 = q0 + T::q_bytes, k0 = p0 + T::p_bytes;
  const int tile = blockIdx.x / a.splits, split = blockIdx.x % a.splits, warp = __shfl_sync(~0u, threadIdx.x / 32, 0),
            lane = threadIdx.x % 32, half = warp / 4, pair = warp % 4, q_chunks = T::WGMMA ? T::D / 64 : (a.d + 63) / 64;
  attention_wait();
  int row0, tokens;
  const attention_sequence s = attention_sequence_at<ROWS>(a, tile, row0, tokens);
  const int end = min(row0 + ROWS, s.queries * a.group), rows = tokens * a.group;
  if (a.q_starts && row0 >= rows) return;

  int first, last;
  attention_blocks<BN>(a, s, row0, end, split, first, last);

  /* Eight threads copy a row, each its 16 bytes of every chunk. */
  auto load_row = [&](uint32_t to, int of_rows, int chunks, const void *of, int64_t at, bool is, int width, int r) {
    const int piece = threadIdx.x % 8;
    const typename T::element *from = (const typename T::element *)of + at + piece * 8;
#pragma unroll 3
    for (int c = 0; c < chunks; c++) {
      const int bytes = is ? max(0, min(16, (width - c * 64 - piece * 8) * 2)) : 0;
      copy_async<16>(attention_wide_at(to, of_rows, r, c * 8 + piece), bytes ? (const void *)(from + c * 64) : of, bytes);
    }
  };
  auto load_keys = [&](int n, int stage) {
#pragma unroll
    for (int r = threadIdx.x / 8; r < BN; r += THREADS / 8) {
      const int j = n * BN + r;
      int64_t of_k = 0, of_v = 0;
      const bool is = j < s.keys && attention_key(a, s, j, a.k_stride, of_k);
      load_row(k0 + stage * T::stage, BN, T::D / 64, a.k, of_k, is, a.d, r);
      if (T::OWN) {
        if (is) attention_key(a, s, j, a.v_stride, of_v);
        load_row(k0 + stage * T::stage + T::k_stage, BN, T::DV / 64, a.v, of_v, is, a.dv, r);
      }
      if (a.pages && threadIdx.x % 8 == 0) there[stage][r] = is;
    }
  };
#pragma unroll 1
  for (int r = threadIdx.x / 8; r < ROWS; r += THREADS / 8) {
    const bool is = row0 + r < end;
    load_row(q0, ROWS, q_chunks, a.q, is ? attention_line(a, s, row0 + r).at(s, a.q_stride, a.q_starts) : 0, is, a.d, r);
  }
  if (T::STAGES > 1 && first <= last) load_keys(first, 0);
  copy_async_commit();

  float sum[HALF / 2], by[2];
  attention_softmax st;
  const int mine = pair * 16 + lane / 4, row = row0 + mine;           /* rows `mine` and mine + 8 of the tile */
  const attention_line line[2] = { attention_line(a, s, row), attention_line(a, s, row + 8) };
  const int column = half * N + lane % 4 * 2, high[2] = { line[0].high - column, line[1].high - column },
            low[2] = { line[0].low - column, line[1].low - column };
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float sink = a.sink && split == 0 ? a.sink[line[h].h * a.sink_stride] : -INFINITY;
    st.m[h] = sink == -INFINITY ? -1e30f : sink / (a.unit * 0.69314718056f);
    st.l[h] = sink == -INFINITY || lane % 4 || half ? 0 : 1;
  }
#pragma unroll
  for (int i = 0; i < HALF / 2; i++) sum[i] = 0;

  const bool scored = !T::PLAIN && attention_scored(a);
#pragma unroll 1
  for (int n = first, stage = 0; n <= last; n++, stage ^= T::STAGES - 1) {
    if (T::STAGES == 1) load_keys(n, 0);
    else if (n < last) load_keys(n + 1, stage ^ 1);
    copy_async_commit();
    copy_async_wait<T::STAGES - 1>();
    if constexpr (T::WGMMA) proxy_fence();
    __syncthreads();
    const uint32_t keys = k0 + stage * T::stage, values = keys + (T::OWN ? T::k_stage : 0) + half * (HALF / 64) * T::chunk;
    /* S = q k' */
    float x[N / 2] = {};
    if constexpr (T::WGMMA) {
      const uint64_t dq = mma_descriptor(q0, 16, 1024, 128), dk = mma_descriptor(keys + half * N * 128, 16, 1024, 128);
      wgmma_fence();
#pragma unroll                            /* a loop, whose products are in flight over its end, ptxas would serialise */
      for (int k = 0; k < T::D / 16; k++)
        wgmma<T::kind, 0, 0>(x, dq + k / 4 * (ROWS * 128 >> 4) + k % 4 * 2, dk + k / 4 * (T::chunk >> 4) + k % 4 * 2, k > 0);
      wgmma_commit();
      wgmma_wait<0>();
    } else {
#pragma unroll 1
      for (int c = 0; c < q_chunks * 4; c += 4)
#pragma unroll
        for (int k = 0; k < 4; k++) {
          uint32_t q[4];
          load_matrices<false>(q, attention_wide_at(q0, ROWS, pair * 16 + lane % 16, 2 * (c + k) + lane / 16));
#pragma unroll
          for (int j = 0; j < N / 16; j++) {
            uint32_t b[4];
            load_matrices<false>(b, attention_wide_at(keys, BN, half * N + j * 16 + lane / 16 * 8 + lane % 8, 2 * (c + k) + lane / 8 % 2));
            attention_product<T::kind>(x + 8 * j, q, b[0], b[1]);
            attention_product<T::kind>(x + 8 * j + 4, q, b[2], b[3]);
          }
        }
    }
    /* Softmax */
    if (scored || a.pages) {
#pragma unroll
      for (int i = 0; i < N / 2; i++) {
        const int at = column + i / 4 * 8 + i % 2, j = n * BN + at, h = i / 2 % 2;
        bool hidden = a.pages && !there[stage][at];
        if (hidden) x[i] = -INFINITY;
        else if (scored && j <= line[h].high && j >= line[h].low) x[i] = attention_score(a, s, line[h], j, x[i], hidden);
      }
    }
    const int up[2] = { high[0] - n * BN, high[1] - n * BN }, down[2] = { low[0] - n * BN, low[1] - n * BN };
    if (min(up[0], up[1]) < BN || max(down[0], down[1]) > -column) attention_mask(x, down, up);
    attention_softmax to = st;
    attention_maximum(x, to, a.unit, by);
    if (lane % 4 == 0) tops[half][mine] = to.m[0], tops[half][mine + 8] = to.m[1];
    group_sync(1 + pair, 64);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const float top = fmaxf(to.m[h], tops[half ^ 1][mine + 8 * h]);
      by[h] = fn_exp2((st.m[h] - top) * a.unit), st.m[h] = top;
    }
    attention_exponentials(x, st, a.unit, by);
    if (T::DROPS && a.threshold) attention_drop(a, s, line, n * BN + column, x);
    uint32_t p[N / 4];
    attention_pack<T::kind>(x, p);
#pragma unroll
    for (int i = 0; i < N / 4; i++) shared_store(attention_wide_at(p0, ROWS, mine + i % 2 * 8, half * N / 8 + i / 2) + lane % 4 * 4, p[i]);
    if (__any_sync(~0u, by[0] != 1 || by[1] != 1)) attention_rescale(sum, by);
    /* O += P v */
    if constexpr (T::WGMMA) {
      proxy_fence();
      __syncthreads();
      const uint64_t dp = mma_descriptor(p0, 16, 1024, 128), dv = mma_descriptor(values, T::chunk, 1024, 128);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < BN / 16; k++) wgmma<T::kind, 0, 1>(sum, dp + k * 2, dv + k * 128, 1);
      wgmma_commit();
      wgmma_wait<0>();
    } else {
      group_sync(1 + pair, 64);
#pragma unroll 1
      for (int k = 0; k < BN / 16; k++) {
        uint32_t q[4];
        load_matrices<false>(q, attention_wide_at(p0, ROWS, pair * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
        for (int j = 0; j < HALF / 16; j++) {
          uint32_t b[4];
          attention_summed<T::kind>(b, values + j / 4 * T::chunk + k * 16 * 128, 128, j % 4 * 16);
          attention_product<T::kind>(sum + 8 * j, q, b[0], b[1]);
          attention_product<T::kind>(sum + 8 * j + 4, q, b[2], b[3]);
        }
      }
    }
    __syncthreads();                      /* this stage is loaded next */
  }
  copy_async_wait<0>();
  if (a.splits > 1 && !attention_join<THREADS>(a, tile, split, st, sum)) return;

  /* Results, and rows that are not finite again. */
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float l = st.l[h], probe = 0;
    l += __shfl_xor_sync(~0u, l, 1), l += __shfl_xor_sync(~0u, l, 2);
#pragma unroll
    for (int j = 0; j < HALF / 8; j++) probe = fmaf(sum[4 * j + 2 * h], 0.f, fmaf(sum[4 * j + 2 * h + 1], 0.f, probe));
    probe += __shfl_xor_sync(~0u, probe, 1), probe += __shfl_xor_sync(~0u, probe, 2);
    if (lane % 4 == 0) ends[half][mine + 8 * h] = make_float2(l, probe);
  }
  __syncthreads();
  unsigned again[2];
  const attention_wide_half out = { a.y, a.y_f32, a.dv - half * HALF };
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const bool sees = line[h].high >= line[h].low, is = row + 8 * h < rows;
    const float2 one = ends[0][mine + 8 * h], two = ends[1][mine + 8 * h];
    const float l = one.x + two.x, probe = one.y + two.y;
    const bool bad = is && sees && !(probe == 0 && l >= 1e-30f && l < INFINITY && fabsf(st.m[h]) < 1e30f);
    again[h] = __ballot_sync(~0u, bad && lane % 4 == 0);
    const int64_t at = line[h].at(s, a.y_stride, a.q_starts);
    attention_put<T::kind, HALF>(out, at + half * HALF, sum, h, (T::DROPS ? a.kept : 1) / l, is && sees && !bad);
    if (half) continue;
    for (int c = lane % 4; c < a.dv && is && !sees; c += 4) attention_store(a, at, c, 0, T::kind == MMA_BF16);
    if (!is || bad || lane % 4) continue;
    const float sink = a.sink && line[h].i < s.queries ? a.sink[line[h].h * a.sink_stride] : -INFINITY, natural = a.unit * 0.69314718056f;
    if (a.lse) a.lse[line[h].at(s, a.lse_stride, a.q_starts)] = sees ? fmaf(st.m[h], natural, logf(l)) : sink;
    if (a.max) a.max[line[h].at(s, a.max_stride, a.q_starts)] = sees ? st.m[h] * natural : -INFINITY;
  }
  /* Each of the two warps takes half of them. */
#pragma unroll 1
  for (int i = 0; i < 8; i++)
    if (again[half] >> i * 4 & 1) attention_many_again<T>(a, s, attention_line(a, s, row0 + pair * 16 + half * 8 + i));
}

#define ATTENTION_WIDE(kind, bn, stages, own, by_wgmma) \
  { 576, 512, bn, 64, ATTENTION_WIDE_THREADS, own, attention_wide_shape<kind, bn, stages, own, by_wgmma, true>::shared, \
    (const void *)attention_wide<attention_wide_shape<kind, bn, stages, own, by_wgmma, true>>, \
    (const void *)attention_wide<attention_wide_shape<kind, bn, stages, own, by_wgmma, false>> },
