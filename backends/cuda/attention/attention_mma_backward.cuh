/* attention_mma_backward.cuh -- attention's gradient by mma.sync; S and P are made again, never in memory.
 *
 *   P = exp(scale q k' - lse)    dS = P (dy v' - D)    D = rowsum(dy y) - dlse
 *   dv = P' dy    dk = scale dS' q    dq = scale dS k
 *
 * One kernel, launched for keys and for queries. A block owns a tile of 64 rows of one head (keys and values: for dk and dv; queries and
 * dy: for dq) and walks over the tiles of the other side that these rows see, in the case of keys over all heads of their group, loaded by
 * cp.async in two stages. A warp owns 16 rows: both products over the head's dim give it S and dP of 16 x 64 pairs (for keys transposed),
 * whose registers, made P and dS, are the left operands of the products that add to its gradients. So a gradient is the sum of one
 * warp in one order, without atomics; in return S and dP are made twice (7 products in all instead of 5), and once more for dbias.
 *
 * dbias, the sum of dS over what bias is spread over: a block owns 64 queries by OTHER keys of bias, or all of what it is spread over, and
 * walks over all tiles of all sequences and heads that add to it, in one order. Where bias has few tiles, several blocks share the walk:
 * each adds up a part of it, and another kernel adds the parts.
 *
 * A weight of 0 times NaN or Inf is NaN: what a row must not see could reach its gradient. So each row is looked at before it is
 * stored, and if it is not finite, computed again by one warp that reads only what the row sees. */
#pragma once
#include "attention_gradient.cuh"
#include "attention_mma_backward.h"
#include "kit/sm80.cuh"

/* D1, D2: elements of a key, of a value; OTHER: rows of a tile of the other side; SUM1: dq or dk, SUM2: dv; CHANGED: softcap, bias, mask,
 * blocks, slopes or dropout; COLUMNS: of S at a time, what the registers hold. */
template <int kind_, int D1_, int D2_, bool KEYS_, bool SUM1_, bool CHANGED_> struct attention_gradient_shape {
  static constexpr int kind = kind_, D1 = D1_, D2 = D2_, CHUNK = attention_operand<kind>::CHUNK, size = 16 / CHUNK;
  static constexpr int OTHER = size == 4 ? 2048 / D1 : D1 > 128 ? 32 : 64;
  static constexpr bool KEYS = KEYS_, SUM1 = SUM1_, SUM2 = KEYS && (D2 <= 128 || !SUM1), CHANGED = CHANGED_;
  static constexpr int COLUMNS = KEYS && D1 > 64 && OTHER > 32 ? 32 : OTHER, blocks = D1 > 64 || CHANGED ? 2 : 3;
  static constexpr int own = CUDA_ATTENTION_BLOCK * (D1 + D2) * size, stage = OTHER * (D1 + D2) * size, statistics = OTHER * 8;
  static constexpr int shared = own + 2 * stage + (KEYS ? 2 * statistics : 0);
};

/* ---- S and dP ------------------------------------------------------------------------------------------------------- */

/* Rows of D elements, n of them, to shared memory, 16 bytes a copy; there the pieces of a row change places by the row's number, against
 * bank conflicts. row0 and `rows`: of the sequence, which begins at `begin`. */
template <class T, int D, int n>
__device__ __forceinline__ void attention_copy(uint32_t to, const cuda_attention_rows &r, int b, int h, int begin, int row0, int rows)
{
  typedef typename attention_operand<T::kind>::element element;
  constexpr int CHUNK = T::CHUNK;
  const element *p = (const element *)r.p + b * r.stride[0] + h * r.stride[1] + begin * r.stride[2];
#pragma unroll
  for (int i = 0; i < n * D / CHUNK / 128; i++) {
    const int at = i * 128 + threadIdx.x, row = at / (D / CHUNK), piece = at % (D / CHUNK);
    const bool in = row0 + row < rows && piece * CHUNK < r.size;
    const element *from = in ? p + (row0 + row) * r.stride[2] + piece * CHUNK : (const element *)r.p;
    copy_async<16>(to + row * D * T::size + ((piece ^ row & 7) << 4), from, in ? 16 : 0);
  }
}
template <int kind> __device__ __forceinline__ void attention_multiply(float *sum, const uint32_t *x, const uint32_t (&y)[4])
{
  attention_product<kind>(sum, x, y[0], y[1]), attention_product<kind>(sum + 4, x, y[2], y[3]);      /* 16 columns */
}
/* This warp's 16 rows by COLUMNS of the other side: s = q k', g = dy v'. */
template <class T>
__device__ __forceinline__ void attention_pairs(uint32_t own1, uint32_t own2, uint32_t other1, uint32_t other2, float (&s)[T::COLUMNS / 2],
                                                float (&g)[T::COLUMNS / 2])
{
  constexpr int D1 = T::D1, D2 = T::D2, COLUMNS = T::COLUMNS, CHUNK = T::CHUNK, pitch1 = D1 * T::size, pitch2 = D2 * T::size;
  /* Where this lane's row of a fragment is: of a left operand; of a right one. The row's number modulo 8 is the lane's in each. */
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, turned = lane & 7, left = warp * 16 + lane % 16,
                 right = lane % 8 + lane / 16 * 8;
  auto piece = [&](uint32_t n) { return (n ^ turned) << 4; };
#pragma unroll
  for (int i = 0; i < COLUMNS / 2; i++) s[i] = g[i] = 0;
#pragma unroll
  for (int k = 0; k < (D1 > D2 ? D1 : D2) / CHUNK; k += 2) {
    uint32_t x[4], y[4];
    if (k < D1 / CHUNK) {
      load_matrices<false>(x, own1 + left * pitch1 + piece(k + lane / 16));
#pragma unroll
      for (int j = 0; j < COLUMNS; j += 16) {
        load_matrices<false>(y, other1 + (right + j) * pitch1 + piece(k + lane / 8 % 2));
        attention_multiply<T::kind>(s + j / 2, x, y);
      }
    }
    if (k < D2 / CHUNK && T::SUM1) {
      load_matrices<false>(x, own2 + left * pitch2 + piece(k + lane / 16));
#pragma unroll
      for (int j = 0; j < COLUMNS; j += 16) {
        load_matrices<false>(y, other2 + (right + j) * pitch2 + piece(k + lane / 8 % 2));
        attention_multiply<T::kind>(g + j / 2, x, y);
      }
    }
  }
}

/* ---- dq, dk, dv ------------------------------------------------------------------------------------------------------ */

template <class T> __global__ void __launch_bounds__(128, T::blocks) attention_gradient(const __grid_constant__ cuda_attention_gradient a)
{
  constexpr int D1 = T::D1, D2 = T::D2, BLOCK = CUDA_ATTENTION_BLOCK, OTHER = T::OTHER, COLUMNS = T::COLUMNS,
                K = attention_operand<T::kind>::K, pitch1 = D1 * T::size, pitch2 = D2 * T::size;
  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t own1 = shared_address(shared), own2 = own1 + BLOCK * pitch1, other0 = own1 + T::own,
                 statistics0 = other0 + 2 * T::stage;
  const float *stage_statistics = (const float *)(shared + T::own + 2 * T::stage);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __shared__ attention_own t;             /* there it takes no registers */
  if (threadIdx.x == 0) t = attention_own_at<T::KEYS, BLOCK, true>(a, blockIdx.x);
  __syncthreads();
  const int end = min(t.row0 + BLOCK, t.own) - 1, top = end < t.row0 ? -1 : t.high(end), bottom = t.low(t.row0), first = bottom / OTHER,
            each = top < bottom ? 0 : top / OTHER - first + 1, total = each * (T::KEYS ? a.group : 1);
  auto head = [&](int turn) { return T::KEYS ? t.h * a.group + turn / each : t.h; };

  auto load_turn = [&](int turn) {
    const uint32_t to = other0 + turn % 2 * T::stage;
    const int h = head(turn), row0 = (first + turn % each) * OTHER;
    attention_copy<T, D1, OTHER>(to, T::KEYS ? a.q : a.k, t.other_b, T::KEYS ? h : h / a.group, t.other0, row0, t.other);
    attention_copy<T, D2, OTHER>(to + OTHER * pitch1, T::KEYS ? a.dy : a.v, t.other_b, T::KEYS ? h : h / a.group, t.other0, row0, t.other);
    if (T::KEYS && threadIdx.x < OTHER / 2) {
      const int half = threadIdx.x / (OTHER / 4), piece = threadIdx.x % (OTHER / 4);
      copy_async<16>(statistics0 + turn % 2 * T::statistics + threadIdx.x * 16,
                     attention_statistics_at(a, t.statistics, h, t.first + row0) + half * BLOCK + piece * 4, 16);
    }
  };

  float sum1[T::SUM1 ? D1 / 2 : 1], sum2[T::SUM2 ? D2 / 2 : 1];
#pragma unroll
  for (int i = 0; i < (T::SUM1 ? D1 / 2 : 1); i++) sum1[i] = 0;
#pragma unroll
  for (int i = 0; i < (T::SUM2 ? D2 / 2 : 1); i++) sum2[i] = 0;
  const int row = t.row0 + warp * 16 + lane / 4, column = lane % 4 * 2;
  const int whole_high = t.row0 + BLOCK > t.own ? -1 : t.high(t.row0), whole_low = t.low(t.row0 + BLOCK - 1);
  float2 own_statistics[2] = {};
  if (!T::KEYS) {
    own_statistics[0] = attention_statistics_of(a, t.statistics, t.h, t.first + row);                        /* padded to whole tiles */
    own_statistics[1] = attention_statistics_of(a, t.statistics, t.h, t.first + row + 8);
  }
  if (total) {
    attention_copy<T, D1, BLOCK>(own1, T::KEYS ? a.k : a.q, t.own_b, t.h, t.own0, t.row0, t.own);
    if (T::SUM1) attention_copy<T, D2, BLOCK>(own2, T::KEYS ? a.v : a.dy, t.own_b, t.h, t.own0, t.row0, t.own);
    load_turn(0);
    copy_async_commit();
  }
#pragma unroll 1
  for (int turn = 0; turn < total; turn++) {
    if (turn + 1 < total) load_turn(turn + 1);
    copy_async_commit();
    copy_async_wait<1>();
    __syncthreads();
#pragma unroll 1
    for (int part = 0; part < OTHER; part += COLUMNS) {
      const int column0 = (first + turn % each) * OTHER + part;
      const uint32_t stage = other0 + turn % 2 * T::stage, other1 = stage + part * pitch1, other2 = stage + OTHER * pitch1 + part * pitch2;
      float s[COLUMNS / 2], g[COLUMNS / 2];
      attention_pairs<T>(own1, own2, other1, other2, s, g);
      /* The columns that this thread's rows see, counted from its first. */
      const int from = column0 + column, up[2] = { t.high(row) - from, t.high(row + 8) - from },
                down[2] = { t.low(row) - from, t.low(row + 8) - from };
      if (!T::CHANGED && (column0 + COLUMNS - 1 > whole_high || column0 < whole_low)) attention_mask(s, down, up);
      const attention_head its = attention_head_of<T::KEYS>(a, t, head(turn));
      const uint32_t drops = T::CHANGED && a.threshold ? attention_drops<T::KEYS, COLUMNS / 2>(a, its, row, column0) : 0;
      const float kept = T::CHANGED && a.threshold ? a.kept : 1;
#pragma unroll
      for (int i = 0; i < COLUMNS / 2; i++) {
        const int in = i / 4 * 8 + i % 2, h = i / 2 % 2, c = column0 + column + in, r = row + 8 * h;
        const float *stats = stage_statistics + turn % 2 * 2 * OTHER + part + column + in;
        const float2 st = T::KEYS ? make_float2(stats[0], stats[OTHER]) : own_statistics[h];
        if (T::CHANGED && (in > up[h] || in < down[h])) s[i] = g[i] = 0;
        else attention_pair<T::CHANGED>(a, its, T::KEYS ? c : r, T::KEYS ? r : c, st, s[i], g[i], drops >> i & 1 ? 0 : kept);
      }
      uint32_t p[COLUMNS / 2 * 8 / K], ds[COLUMNS / 2 * 8 / K];
      if (T::SUM2) attention_pack<T::kind>(s, p);
      if (T::SUM1) attention_pack<T::kind>(g, ds);
#pragma unroll
      for (int k = 0; k < COLUMNS; k += K)
#pragma unroll
        for (int j = 0; j < (D1 > D2 ? D1 : D2); j += 16) {
          uint32_t y[4];
          if constexpr (T::SUM1) {
            if (j < D1) {
              attention_summed<T::kind>(y, other1 + k * pitch1, pitch1, j);
              attention_multiply<T::kind>(sum1 + j / 2, ds + k / K * 4, y);
            }
          }
          if constexpr (T::SUM2) {
            if (j < D2) {
              attention_summed<T::kind>(y, other2 + k * pitch2, pitch2, j);
              attention_multiply<T::kind>(sum2 + j / 2, p + k / K * 4, y);
            }
          }
        }
    }
    __syncthreads();                      /* the stage is free */
  }

  attention_gradient_end<T>(a, t, t.row0 + warp * 16, sum1, sum2);
}

/* ---- dbias ----------------------------------------------------------------------------------------------------------- */

template <class T> __global__ void __launch_bounds__(128, T::blocks)
    attention_bias_gradient(const __grid_constant__ cuda_attention_gradient a)
{
  constexpr int D1 = T::D1, D2 = T::D2, BLOCK = CUDA_ATTENTION_BLOCK, OTHER = T::OTHER, pitch1 = D1 * T::size;
  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t own1 = shared_address(shared), own2 = own1 + BLOCK * pitch1, other1 = own1 + T::own, other2 = other1 + OTHER * pitch1;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, in_tile = warp * 16 + lane / 4, column = lane % 4 * 2,
            tiles_m = (a.queries + BLOCK - 1) / BLOCK, tiles_n = (a.keys + OTHER - 1) / OTHER;
  /* What this block's tile owns, n[d] of each dim from from[d] on: all of it where bias is spread. Of that the block takes a part. */
  int from[4], n[4];
  const int all[4] = { a.batch, a.heads, tiles_m, tiles_n }, part = blockIdx.x % a.dbias_parts;
  int rest = blockIdx.x / a.dbias_parts;
#pragma unroll
  for (int d = 3; d >= 0; d--) {
    const bool spread = a.dbias_dim[d] == 1;
    from[d] = spread ? 0 : rest % all[d], n[d] = spread ? all[d] : 1, rest /= spread ? 1 : all[d];
  }
  const int64_t visits = (int64_t)n[0] * n[1] * n[2];
  float sum[OTHER / 2];
#pragma unroll
  for (int i = 0; i < OTHER / 2; i++) sum[i] = 0;
#pragma unroll 1
  for (int64_t visit = visits * part / a.dbias_parts; visit < visits * (part + 1) / a.dbias_parts; visit++) {
    const int m = from[2] + (int)(visit % n[2]), h = from[1] + (int)(visit / n[2] % n[1]), b = from[0] + (int)(visit / n[2] / n[1]);
    const attention_own t = attention_own_of<false>(a, b, h, m * BLOCK);
    const attention_head its = attention_head_of<false>(a, t, h);
    const int end = min(t.row0 + BLOCK, t.own) - 1, row = t.row0 + in_tile;
    if (end < t.row0) continue;
#pragma unroll 1
    for (int c = max(from[3], t.low(t.row0) / OTHER); c < from[3] + n[3] && c * OTHER <= t.high(end); c++) {
      const int column0 = c * OTHER + column;
      __syncthreads();                    /* the tiles are free */
      attention_copy<T, D1, BLOCK>(own1, a.q, b, h, 0, t.row0, t.own), attention_copy<T, D2, BLOCK>(own2, a.dy, b, h, 0, t.row0, t.own);
      attention_copy<T, D1, OTHER>(other1, a.k, b, h / a.group, 0, c * OTHER, t.other);
      attention_copy<T, D2, OTHER>(other2, a.v, b, h / a.group, 0, c * OTHER, t.other);
      copy_async_commit(), copy_async_wait<0>();
      __syncthreads();
      float s[OTHER / 2], g[OTHER / 2];
      attention_pairs<T>(own1, own2, other1, other2, s, g);
      const float2 st[2] = { attention_statistics_of(a, b, h, row), attention_statistics_of(a, b, h, row + 8) };
      const int low[2] = { t.low(row), t.low(row + 8) }, high[2] = { t.high(row), t.high(row + 8) };
      const uint32_t drops = a.threshold ? attention_drops<false, OTHER / 2>(a, its, row, c * OTHER) : 0;
      const float kept = a.threshold ? a.kept : 1;
#pragma unroll
      for (int i = 0; i < OTHER / 2; i++) {
        const int j = column0 + i / 4 * 8 + i % 2, half = i / 2 % 2;
        if (j < low[half] || j > high[half] || st[half].x == ATTENTION_UNSEEN) continue;
        attention_pair<true, true>(a, its, row + 8 * half, j, st[half], s[i], g[i], drops >> i & 1 ? 0 : kept);
        sum[i] += g[i];
      }
    }
  }

  /* Over the tile's rows: of the warp, then of the four; over its columns. */
  auto store = [&](int i, int j, float x) {
    if (a.dbias_parts > 1) {
      const int64_t element = (((int64_t)from[0] * a.dbias_dim[1] + from[1]) * a.dbias_dim[2] + i) * a.dbias_dim[3] + j;
      a.parts[element * a.dbias_parts + part] = x;
      return;
    }
    const int64_t at = from[0] * a.dbias_stride[0] + from[1] * a.dbias_stride[1] + i * a.dbias_stride[2] + j * a.dbias_stride[3];
    element_store(a.dbias, at, dtype3(a.dbias_dtype), x);
  };
  const bool over_rows = a.dbias_dim[2] == 1, over_columns = a.dbias_dim[3] == 1;
  float *of_warps = (float *)shared;        /* [4][OTHER] */
  __syncthreads();
  if (over_rows) {
#pragma unroll
    for (int i = 0; i < OTHER / 2; i++) {
      if (i / 2 % 2) continue;
      float x = sum[i] + sum[i + 2];
      for (int o = 4; o < 32; o *= 2) x += __shfl_xor_sync(~0u, x, o);
      if (lane < 4) of_warps[warp * OTHER + column + i / 4 * 8 + i % 2] = x;
    }
    __syncthreads();
    if (warp) return;
    float all_columns = 0;
    for (int c = lane; c < OTHER; c += 32) {
      const float x = of_warps[c] + of_warps[OTHER + c] + of_warps[2 * OTHER + c] + of_warps[3 * OTHER + c];
      all_columns += x;
      if (!over_columns && from[3] * OTHER + c < a.keys) store(0, from[3] * OTHER + c, x);
    }
    all_columns = warp_sum(all_columns);
    if (over_columns && lane == 0) store(0, 0, all_columns);
    return;
  }
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int row = from[2] * BLOCK + in_tile + 8 * half;
    float all_columns = 0;
#pragma unroll
    for (int i = 0; i < OTHER / 2; i++) {
      if (i / 2 % 2 != half) continue;
      const int j = from[3] * OTHER + column + i / 4 * 8 + i % 2;
      all_columns += sum[i];
      if (!over_columns && row < a.queries && j < a.keys) store(row, j, sum[i]);
    }
    all_columns += __shfl_xor_sync(~0u, all_columns, 1), all_columns += __shfl_xor_sync(~0u, all_columns, 2);
    if (over_columns && lane % 4 == 0 && row < a.queries) store(row, 0, all_columns);
  }
}

/* The parts of dbias: a warp an element. */
static __global__ void __launch_bounds__(128) attention_bias_join(const __grid_constant__ cuda_attention_gradient a)
{
  int64_t rest = blockIdx.x * (int64_t)4 + threadIdx.x / 32, at = 0;
  const float *parts = a.parts + rest * a.dbias_parts;
#pragma unroll
  for (int d = 3; d >= 0; d--) at += rest % a.dbias_dim[d] * a.dbias_stride[d], rest /= a.dbias_dim[d];
  if (rest) return;                       /* past the last */
  float sum = 0;
  for (int i = threadIdx.x % 32; i < a.dbias_parts; i += 32) sum += parts[i];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) element_store(a.dbias, at, dtype3(a.dbias_dtype), sum);
}

#define ATTENTION_PASS(kind, d, dv, keys, sum1)                                                                              \
  { keys, attention_gradient_shape<kind, d, dv, keys, sum1, false>::shared,                                                 \
    { (const void *)attention_gradient<attention_gradient_shape<kind, d, dv, keys, sum1, false>>,                           \
      (const void *)attention_gradient<attention_gradient_shape<kind, d, dv, keys, sum1, true>> } },
#define ATTENTION_BACKWARD_KERNELS(kind, d, dv, ...)                                                                         \
  { d, dv, (const void *)attention_statistics<kind>, (const void *)attention_sink_gradient<kind>,                           \
    (const void *)attention_gradient_clear<kind>,                                                                           \
    (const void *)attention_bias_gradient<attention_gradient_shape<kind, d, dv, false, true, true>>,                        \
    (const void *)attention_bias_join,                                                                                      \
    attention_gradient_shape<kind, d, dv, false, true, true>::OTHER,                                                        \
    attention_gradient_shape<kind, d, dv, false, true, true>::own + attention_gradient_shape<kind, d, dv, false, true, true>::stage, \
    { ATTENTION_PASS(kind, d, dv, true, true) __VA_ARGS__ ATTENTION_PASS(kind, d, dv, false, true) } },
