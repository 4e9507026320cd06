/* attention_gradient.cuh -- what the kernels of attention's gradient share: rows' statistics, which rows see each other, one pair, results.
 *
 *   P = exp(scale q k' - lse)    dS = P (dy v' - D)    D = rowsum(dy y) - dlse
 *   dv = P' dy    dk = scale dS' q    dq = scale dS k
 *
 * A weight of 0 times NaN or Inf is NaN: what a row must not see could reach its gradient. So each row is looked at before it is
 * stored, and if it is not finite, computed again by one warp that reads only what the row sees. */
#pragma once
#include <cfloat>
#include "attention_dropout.cuh"
#include "attention_gradient.h"
#include "attention_scores.cuh"

/* ---- a row's statistics -------------------------------------------------------------------------------------------- */

/* In place of lse log2 e where lse is -Inf (all scores are -Inf, or none is seen): no finite score reaches it. */
#define ATTENTION_UNSEEN FLT_MAX

/* Eight elements, as they lie in memory. */
struct attention_eight { uint4 x, y; };
__device__ __forceinline__ attention_eight attention_eight_of(const cuda_attention_rows &r, int64_t at)
{
  attention_eight e = {};
  const uint4 *p = (const uint4 *)((const char *)r.p + at * (r.f32 ? 4 : 2));
  e.x = p[0];
  if (r.f32) e.y = p[1];
  return e;
}
template <int kind>
__device__ __forceinline__ float attention_product_of(const attention_eight &a, bool a_f32, const attention_eight &b, bool b_f32)
{
  float sum = 0;
  auto value = [](const attention_eight &e, bool f32, int i) {
    const uint32_t words[8] = { e.x.x, e.x.y, e.x.z, e.x.w, e.y.x, e.y.y, e.y.z, e.y.w };
    return f32 ? __uint_as_float(words[i]) : attention_value<kind>((uint16_t)(words[i / 2] >> 16 * (i % 2)));
  };
#pragma unroll
  for (int i = 0; i < 8; i++) sum = fmaf(value(a, a_f32, i), value(b, b_f32, i), sum);
  return sum;
}

/* Of row i of q, counted from its sequence's or, if ragged, its head's first: lse log2 e and D. */
__device__ __forceinline__ float *attention_statistics_at(const cuda_attention_gradient &a, int b, int h, int i)
{
  const int in = i % CUDA_ATTENTION_BLOCK;
  return a.statistics + (((int64_t)b * a.heads + h) * a.padded + i - in) * 2 + in;
}
__device__ __forceinline__ float2 attention_statistics_of(const cuda_attention_gradient &a, int b, int h, int i)
{
  const float *p = attention_statistics_at(a, b, h, i);
  return make_float2(p[0], p[CUDA_ATTENTION_BLOCK]);
}

/* A block makes 64 rows', of which a thread asks for four at once; it also clears their part of dq's sums and of what their adders
 * count. */
template <int kind> __global__ void __launch_bounds__(128) attention_statistics(const __grid_constant__ cuda_attention_gradient a)
{
  constexpr int BLOCK = CUDA_ATTENTION_BLOCK, ROWS = 4;
  const int tiles = a.padded / BLOCK, head = blockIdx.x / tiles, tile = blockIdx.x % tiles, b = head / a.heads, h = head % a.heads,
            lanes = a.y.size > 64 ? 16 : 8, lane = threadIdx.x % lanes, step = 128 / lanes;
  int row0 = tile * BLOCK, has = a.queries, first = 0, sequence = b;
  if (a.q_starts) {
    int begin;
    sequence = attention_sequence_of<BLOCK>(a.q_starts, a.q_starts_stride, a.q_starts_i64, a.batch, has, tile);
    first = attention_start<BLOCK>(a.q_starts, a.q_starts_stride, a.q_starts_i64, sequence, has, begin);
    row0 -= begin * BLOCK;
  }
  has = attention_length(a.q_lengths, sequence * a.q_lengths_stride, a.q_lengths_i64, has);
#pragma unroll 1
  for (int r = threadIdx.x / lanes; r < BLOCK; r += ROWS * step) {
    float lse[ROWS], sum[ROWS] = {};
#pragma unroll
    for (int n = 0; n < ROWS; n++) {
      const int i = row0 + r + n * step;
      lse[n] = i >= 0 && i < has ? a.lse[b * a.lse_stride[0] + h * a.lse_stride[1] + (first + i) * a.lse_stride[2]] : -INFINITY;
    }
#pragma unroll 1
    for (int c = lane * 8; c < a.y.size; c += 8 * lanes) {
      attention_eight dy[ROWS] = {}, y[ROWS] = {};
#pragma unroll
      for (int n = 0; n < ROWS; n++) {
        const int i = row0 + r + n * step;
        if (i < 0 || i >= has) continue;
        dy[n] = attention_eight_of(a.dy, b * a.dy.stride[0] + h * a.dy.stride[1] + (first + i) * a.dy.stride[2] + c);
        y[n] = attention_eight_of(a.y, b * a.y.stride[0] + h * a.y.stride[1] + (first + i) * a.y.stride[2] + c);
      }
#pragma unroll
      for (int n = 0; n < ROWS; n++) sum[n] += attention_product_of<kind>(dy[n], a.dy.f32, y[n], a.y.f32);
    }
#pragma unroll
    for (int n = 0; n < ROWS; n++) {
      const int i = row0 + r + n * step;
      for (int o = 1; o < lanes; o *= 2) sum[n] += __shfl_xor_sync(~0u, sum[n], o);
      if (lane) continue;
      const bool seen = lse[n] != -INFINITY;
      if (a.dlse && seen) sum[n] -= a.dlse[b * a.dlse_stride[0] + h * a.dlse_stride[1] + (first + i) * a.dlse_stride[2]];
      float *to = a.statistics + (int64_t)blockIdx.x * 2 * BLOCK + r + n * step;
      to[0] = seen ? lse[n] * 1.44269504f : ATTENTION_UNSEEN, to[BLOCK] = seen ? sum[n] : 0;
    }
  }
  float *sums = a.sums + (int64_t)blockIdx.x * BLOCK * a.sums_row;
  for (int c = threadIdx.x * 4; c < BLOCK * a.sums_row; c += 512) *(float4 *)(sums + c) = make_float4(0, 0, 0, 0);
  const int64_t turn = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
  if (a.turns && threadIdx.x < BLOCK && turn < a.n_turns) a.turns[turn] = 0;
}

/* dsink = -sum exp(sink - lse) D: a head a block. */
template <int kind> __global__ void __launch_bounds__(1024) attention_sink_gradient(const __grid_constant__ cuda_attention_gradient a)
{
  __shared__ float part[32];
  const int h = blockIdx.x;
  const float sink = a.sink[h * a.sink_stride] * 1.44269504f;
  float sum = 0;
  for (int b = 0; b < (a.q_starts ? 1 : a.batch); b++) {
    for (int i = threadIdx.x; i < a.padded; i += 1024) {
      const float2 of = attention_statistics_of(a, b, h, i);
      if (of.x != ATTENTION_UNSEEN) sum = fmaf(-fn_exp2(sink - of.x), of.y, sum);
    }
  }
  sum = block_sum<1024>(sum, part);
  if (threadIdx.x == 0) a.dsink[h * a.dsink_stride] = sum;
}

/* Zeros: gradients of ragged rows, of which some may be no sequence's. 16 lanes a row. */
template <int kind> __global__ void __launch_bounds__(128) attention_gradient_clear(const __grid_constant__ cuda_attention_gradient a)
{
  auto clear = [&](const cuda_attention_rows &r, int heads, int rows) {
    for (int64_t row = blockIdx.x * (int64_t)8 + threadIdx.x / 16; row < (int64_t)heads * rows; row += gridDim.x * (int64_t)8)
      for (int c = threadIdx.x % 16 * 8; c < r.size; c += 128) {
        const int64_t at = row / rows * r.stride[1] + row % rows * r.stride[2] + c;
        const bool wide = r.f32 || kind == MMA_3XTF32;
        uint4 *to = (uint4 *)((char *)r.p + at * (wide ? 4 : 2));
        to[0] = make_uint4(0, 0, 0, 0);
        if (wide) to[1] = make_uint4(0, 0, 0, 0);
      }
  };
  if (a.q_starts) clear(a.dq, a.heads, a.queries);
  if (!a.kv_starts) return;
  clear(a.dk, a.heads / a.group, a.keys);
  if (a.dv.p) clear(a.dv, a.heads / a.group, a.keys);
}

/* ---- tiles --------------------------------------------------------------------------------------------------------- */

/* A tile of own rows, and which of the other side's they see: row r those from r + shift - before to r + shift + after. */
struct attention_own {
  int b, h, row0, own, other, shift, before, after;         /* own, other: how many rows the sequence has */
  int rows, own_b, own0, other_b, other0, first, statistics;          /* rows: whose results are stored; where those of the sequence lie */
  __device__ __forceinline__ int low(int r) const { return before < 0 ? 0 : max(0, r + shift - before); }
  __device__ __forceinline__ int high(int r) const { return r >= own ? -1 : after < 0 ? other - 1 : min(other - 1, r + shift + after); }
};
template <bool KEYS, bool RAGGED = false>
__device__ __forceinline__ attention_own attention_own_of(const cuda_attention_gradient &a, int b, int h, int row0)
{
  attention_own t = { b, h, row0 };
  int queries = a.queries, keys = a.keys, q0 = 0, k0 = 0, q_tile = 0, k_tile;
  if (RAGGED && a.q_starts)
    q0 = attention_start<CUDA_ATTENTION_BLOCK>(a.q_starts, a.q_starts_stride, a.q_starts_i64, b, queries, q_tile);
  if (RAGGED && a.kv_starts)
    k0 = attention_start<CUDA_ATTENTION_BLOCK>(a.kv_starts, a.kv_starts_stride, a.kv_starts_i64, b, keys, k_tile);
  queries = attention_length(a.q_lengths, b * a.q_lengths_stride, a.q_lengths_i64, queries);
  keys = attention_length(a.kv_lengths, b * a.kv_lengths_stride, a.kv_lengths_i64, keys);
  const int shift = a.top_left ? 0 : keys - queries, q_b = RAGGED && a.q_starts ? 0 : b, k_b = RAGGED && a.kv_starts ? 0 : b;
  t.own = KEYS ? keys : queries, t.other = KEYS ? queries : keys, t.shift = KEYS ? -shift : shift;
  t.before = KEYS ? a.right : a.left, t.after = KEYS ? a.left : a.right;
  t.own_b = KEYS ? k_b : q_b, t.other_b = KEYS ? q_b : k_b, t.own0 = KEYS ? k0 : q0, t.other0 = KEYS ? q0 : k0;
  t.first = q_tile * CUDA_ATTENTION_BLOCK, t.statistics = q_b;
  t.rows = RAGGED && (KEYS ? a.kv_starts : a.q_starts) ? t.own : KEYS ? a.keys : a.queries;
  return t;
}
template <bool KEYS, int BLOCK = CUDA_ATTENTION_BLOCK, bool RAGGED = false>
__device__ __forceinline__ attention_own attention_own_at(const cuda_attention_gradient &a, uint32_t block)
{
  if (RAGGED && (KEYS ? a.kv_starts : a.q_starts)) {
    const void *starts = KEYS ? a.kv_starts : a.q_starts;
    const int64_t stride = KEYS ? a.kv_starts_stride : a.q_starts_stride;
    const int i64 = KEYS ? a.kv_starts_i64 : a.q_starts_i64, all = KEYS ? a.keys : a.queries, tiles = all / BLOCK + a.batch,
              h = block / tiles, tile = block % tiles, b = attention_sequence_of<BLOCK>(starts, stride, i64, a.batch, all, tile);
    int n = all, begin;
    attention_start<BLOCK>(starts, stride, i64, b, n, begin);
    return attention_own_of<KEYS, RAGGED>(a, b, h, tile < begin ? n : (tile - begin) * BLOCK);      /* n: none of it */
  }
  const int heads = KEYS ? a.heads / a.group * a.shares : a.heads, tiles = ((KEYS ? a.keys : a.queries) + BLOCK - 1) / BLOCK;
  const uint32_t n = (uint32_t)a.section[!KEYS] * tiles, first = block / n * a.section[!KEYS], in = block % n,
                 together = min((uint32_t)a.section[!KEYS], (uint32_t)(a.batch * heads) - first), head = first + in % together,
                 m = in / together;
  /* Under a causal mask the first keys and the last queries see the most: they begin. */
  return attention_own_of<KEYS, RAGGED>(a, head / heads, head % heads, (KEYS || a.right < 0 ? m : tiles - 1 - m) * BLOCK);
}

/* ---- one pair of query i and key j ------------------------------------------------------------------------------------ */

struct attention_head {                   /* of queries */
  int b, h, shift, q0, k0;
  float slope;
};
template <bool KEYS>
__device__ __forceinline__ attention_head attention_head_of(const cuda_attention_gradient &a, const attention_own &t, int h)
{
  const float slope = a.slopes ? a.slopes[t.b * a.slopes_stride[0] + h * a.slopes_stride[1]] : 0;
  return { t.b, h, KEYS ? -t.shift : t.shift, KEYS ? t.other0 : t.own0, KEYS ? t.own0 : t.other0, slope };
}

__device__ __forceinline__ int64_t attention_spread_at(const int64_t (&stride)[4], const attention_head &of, int i, int j)
{
  return of.b * stride[0] + of.h * stride[1] + i * stride[2] + j * stride[3];
}
static __device__ __noinline__ bool attention_blocked(const cuda_attention_gradient &a, const attention_head &of, int i, int j)
{
  const int block = j / a.block_kv;
  return !(a.blocks[attention_spread_at(a.blocks_stride, of, i / a.block_q, block / 8)] >> block % 8 & 1);
}
static __device__ __noinline__ float attention_keep(const cuda_attention_gradient &a, const attention_head &of, int i, int j)
{
  if (!a.threshold) return 1;
  const uint64_t head = (uint64_t)((int64_t)of.b * a.heads + of.h);
  const uint32_t draws = attention_draws((uint64_t)(a.seed.p ? *a.seed.p : a.seed.value),
                                         (uint64_t)(a.offset.p ? *a.offset.p : a.offset.value), head, i, j & ~1);
  return (draws >> 16 * (j & 1) & 0xffff) < a.threshold ? 0 : a.kept;
}

/* Which weights of a block dropout takes: bit n is s[n]'s; row: this thread's first, column: the block's first, a multiple of 8. */
template <bool KEYS, int N>
__device__ __forceinline__ uint32_t attention_drops(const cuda_attention_gradient &a, const attention_head &of, int row, int column)
{
  const uint64_t seed = (uint64_t)(a.seed.p ? *a.seed.p : a.seed.value), offset = (uint64_t)(a.offset.p ? *a.offset.p : a.offset.value),
                 head = (uint64_t)((int64_t)of.b * a.heads + of.h);
  uint32_t drops = 0;
  static_assert(N <= 32 && N % 8 == 0, "");
  if constexpr (KEYS) {
#pragma unroll
    for (int n = 0; n < N; n += 8)
      drops |= attention_column_drops(seed, offset, head, column + 2 * n + threadIdx.x % 4 * 2, row & ~7, a.threshold) << n;
  } else {
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int n = 0; n < N; n += 16) {
        uint32_t draws[4];
        attention_row_draws(draws, seed, offset, head, row + 8 * h, column + 2 * n);
#pragma unroll
        for (int k = 0; k < 4 && n + 4 * k < N; k++)
          drops |= ((draws[k] & 0xffff) < a.threshold) << (n + 4 * k + 2 * h) | (draws[k] >> 16 < a.threshold) << (n + 4 * k + 2 * h + 1);
      }
  }
  return drops;
}

/* From q k' and dy v' to the weight and dS, that of the score before softcap or, for BIAS, after it; kept: what dropout multiplies the
 * weight by; false: a mask hides the key. */
template <bool CHANGED, bool BIAS = false>
__device__ __forceinline__ bool attention_pair(const cuda_attention_gradient &a, const attention_head &of, int i, int j, float2 st,
                                               float &s, float &g, float kept)
{
  if (!CHANGED) {
    s = fn_exp2(fmaf(s, a.scale_log2, -st.x)), g = s * (g - st.y);
    return true;
  }
  if ((a.mask && !a.mask[attention_spread_at(a.mask_stride, of, of.q0 + i, of.k0 + j)]) || (a.blocks && attention_blocked(a, of, i, j))) {
    s = g = 0;
    return false;
  }
  float x = s * a.scale, slope = 1;
  if (a.softcap > 0) {
    const float t = tanhf(x / a.softcap);
    x = a.softcap * t, slope = 1 - t * t;
  }
  if (a.bias) x += element_load<float>(a.bias, attention_spread_at(a.bias_stride, of, of.q0 + i, of.k0 + j), dtype3(a.bias_dtype));
  x -= of.slope * (float)abs(i + of.shift - j);
  const float p = fn_exp2(fmaf(x, 1.44269504f, -st.x));
  g = p * ((kept > 0 ? kept * g : 0) - st.y) * (BIAS ? 1 : slope), s = kept * p;
  return true;
}

/* ---- blocks of keys by queries whose scores change -------------------------------------------------------------------- */

/* Element i of a block in registers is that of key + i / 2 % 2 * 8 and query + i / 4 * 8 + i % 2; of keys and queries past the last, the
 * last. take(i, x): x of each; spread over queries, memory is read once a key. */
template <int N, class E, class F>
__device__ __forceinline__ void attention_block_of(const cuda_attention_gradient &a, const E *p, const int64_t (&stride)[4], int b, int h,
                                                   int key, int query, F &&take)
{
  p += b * stride[0] + h * stride[1];
  const E *of[2] = { p + min(key, a.keys - 1) * stride[3], p + min(key + 8, a.keys - 1) * stride[3] };
  if (stride[2] == 0) {
    const E x[2] = { *of[0], *of[1] };
#pragma unroll
    for (int i = 0; i < N; i++) take(i, x[i / 2 % 2]);
    return;
  }
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    const int64_t at[2] = { min(query + 2 * i, a.queries - 1) * stride[2], min(query + 2 * i + 1, a.queries - 1) * stride[2] };
#pragma unroll
    for (int e = 0; e < 4; e++) take(i + e, of[e / 2][at[e % 2]]);
  }
}
/* Before the products that make scores, so that memory is read while they are waited for: a bit of each that the mask hides. */
template <int N>
__device__ __forceinline__ void attention_hidden(const cuda_attention_gradient &a, int b, int h, int key, int query,
                                                 uint32_t (&hidden)[N / 32])
{
#pragma unroll
  for (int i = 0; i < N / 32; i++) hidden[i] = 0;
  if (a.mask && a.mask_stride[2] == 0)
    attention_block_of<4>(a, a.mask, a.mask_stride, b, h, key, query, [&](int i, uint8_t x) {
#pragma unroll
      for (int j = 0; j < N / 32; j++) hidden[j] |= x ? 0 : 0x11111111u << i;
    });
  else if (a.mask)
    attention_block_of<N>(a, a.mask, a.mask_stride, b, h, key, query,
                          [&](int i, uint8_t x) { hidden[i / 32] |= (uint32_t)!x << i % 32; });
}
/* Likewise: in s biases, as products, or zeros. */
template <int N>
__device__ __forceinline__ void attention_biases(const cuda_attention_gradient &a, int b, int h, int key, int query, float (&s)[N])
{
#pragma unroll
  for (int i = 0; i < N; i++) s[i] = 0;
  if (!a.bias) return;
  const float by = 1 / a.scale;
  if (a.bias_dtype == QN_F32)
    attention_block_of<N>(a, (const float *)a.bias, a.bias_stride, b, h, key, query, [&](int i, float x) { s[i] = x * by; });
  else
    attention_block_of<N>(a, (const uint16_t *)a.bias, a.bias_stride, b, h, key, query, [&](int i, uint16_t x) {
      s[i] = (a.bias_dtype == QN_BF16 ? bf16_to_float(x) : f16_to_float(x)) * by;
    });
}
/* The same, of a tile in shared memory: 64 keys of 64 queries, rows of 128 swizzled bytes, and `apart` bytes behind it the next 64
 * queries'. */
template <int N>
__device__ __forceinline__ void attention_biases_in(const cuda_attention_gradient &a, uint32_t tile, int apart, float (&s)[N])
{
  const uint32_t lane = threadIdx.x % 32, row = lane % 8 + lane / 16 * 8;
  const float by = 1 / a.scale;
  tile += row * 128 + ((threadIdx.x % 128 / 32 * 2 + lane / 8 % 2 ^ lane % 8) << 4);
#pragma unroll
  for (int j = 0; j < N / 8; j++) {
    uint32_t x[4];
    load_matrices<true>(x, tile + j / 4 * apart + j % 4 * 2048);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float2 pair = a.bias_dtype == QN_BF16 ? make_float2(bf16_to_float((uint16_t)x[i]), bf16_to_float((uint16_t)(x[i] >> 16)))
                                                  : make_float2(f16_to_float((uint16_t)x[i]), f16_to_float((uint16_t)(x[i] >> 16)));
      s[8 * j + 2 * i] = pair.x * by, s[8 * j + 2 * i + 1] = pair.y * by;
    }
  }
}
/* Scores that the mask hides are -Inf. */
template <int N> __device__ __forceinline__ void attention_hide(float (&s)[N], const uint32_t (&hidden)[N / 32])
{
#pragma unroll
  for (int i = 0; i < N; i++)
    if (hidden[i / 32] >> i % 32 & 1) s[i] = -INFINITY;
}
/* Weights of these scores. statistics(j): of the two queries of element 4 j. Returns a number below 0 if a weight is, which none is. */
template <int N, class S>
__device__ __forceinline__ int attention_changed_weights(const cuda_attention_gradient &a, const attention_own &t, int h, int key,
                                                         int query, float (&s)[N], const uint32_t (&hidden)[N / 32],
                                                         S &&statistics)
{
  const int up[2] = { t.high(key) - query, t.high(key + 8) - query }, down[2] = { t.low(key) - query, t.low(key + 8) - query };
  const attention_head of = attention_head_of<true>(a, t, h);
  const float slope = of.slope * 1.44269504f, away = (float)(query + of.shift - key), capped = a.softcap * 1.44269504f;
  int signs = 0;
  if (a.softcap > 0) {
    const float by = a.scale_log2 / capped * 2.88539008f;
#pragma unroll
    for (int i = 0; i < N; i++) s[i] = fmaf(-2, fn_reciprocal(1 + fn_exp2(s[i] * by)), 1);
  }
  const float scale = a.softcap > 0 ? capped : a.scale_log2;
#pragma unroll
  for (int j = 0; j < N / 4; j++) {
    const float2 lse = statistics(j);
#pragma unroll
    for (int i = 4 * j; i < 4 * j + 4; i++) {
      const int r = i / 2 % 2, in = 8 * j + i % 2;
      const float x = fn_exp2(fmaf(-slope, fabsf(away + (float)(in - 8 * r)), fmaf(s[i], scale, i % 2 ? -lse.y : -lse.x)));
      s[i] = in <= up[r] && in >= down[r] && !(hidden[i / 32] >> i % 32 & 1) ? x : 0;
      signs |= __float_as_int(s[i]);
    }
  }
  return signs;
}
/* Softcap's slope, from the weight that it gave, where neither bias nor slopes are added to scores. */
__device__ __forceinline__ float attention_slope_of(float weight, float lse, float by)    /* by: 1 / (softcap log2 e) */
{
  const float tanh = (__log2f(weight) + lse) * by;
  return fmaxf(fmaf(-tanh, tanh, 1), 0);
}

/* ---- rows to memory --------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ int64_t attention_at(const cuda_attention_rows &r, int b, int h, int row)
{
  return b * r.stride[0] + h * r.stride[1] + row * r.stride[2];
}

struct attention_result { void *y; int32_t y_f32, dv; };   /* as attention_store and attention_put take it */
__device__ __forceinline__ attention_result attention_result_in(const cuda_attention_rows &r) { return { r.p, r.f32, r.size }; }

/* One row again, by a warp, in plain f32. */
template <class T> __device__ __noinline__ void attention_gradient_again(const cuda_attention_gradient &a, const attention_own &t, int row)
{
  constexpr int N = (T::D1 > T::D2 ? T::D1 : T::D2) / 32;
  const int lane = threadIdx.x % 32, low = t.low(row), high = t.high(row);
  const cuda_attention_rows &x1 = T::KEYS ? a.k : a.q, &x2 = T::KEYS ? a.v : a.dy, &y1 = T::KEYS ? a.q : a.k, &y2 = T::KEYS ? a.dy : a.v;
  auto load = [&](float (&x)[N], const cuda_attention_rows &r, int b, int h, int at) {
    const auto *p = (const typename attention_operand<T::kind>::element *)r.p + attention_at(r, b, h, at);
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = lane + 32 * i < r.size ? attention_value<T::kind>(p[lane + 32 * i]) : 0;
  };
  float sum1[N] = {}, sum2[N] = {}, own1[N], own2[N], other1[N], other2[N];
  load(own1, x1, t.own_b, t.h, t.own0 + row), load(own2, x2, t.own_b, t.h, t.own0 + row);
#pragma unroll 1
  for (int n = 0; n < (T::KEYS ? a.group : 1); n++) {
    const int h = T::KEYS ? t.h * a.group + n : t.h, of_other = T::KEYS ? h : h / a.group;
    const attention_head of = attention_head_of<T::KEYS>(a, t, h);
#pragma unroll 1
    for (int c = low; c <= high; c++) {
      const int i = T::KEYS ? c : row, j = T::KEYS ? row : c;
      const float2 st = attention_statistics_of(a, t.statistics, h, t.first + i);
      load(other1, y1, t.other_b, of_other, t.other0 + c), load(other2, y2, t.other_b, of_other, t.other0 + c);
      float s = 0, g = 0;
#pragma unroll
      for (int e = 0; e < N; e++) s = fmaf(own1[e], other1[e], s), g = fmaf(own2[e], other2[e], g);
      s = warp_sum(s), g = warp_sum(g);
      if (!attention_pair<T::CHANGED>(a, of, i, j, st, s, g, T::CHANGED ? attention_keep(a, of, i, j) : 1)) continue;
      if (st.x == ATTENTION_UNSEEN) s = g = 0;
#pragma unroll
      for (int e = 0; e < N; e++) sum1[e] = fmaf(g, other1[e], sum1[e]), sum2[e] = fmaf(s, other2[e], sum2[e]);
    }
  }
  auto store = [&](const cuda_attention_rows &to, const float (&x)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++)
      if (lane + 32 * i < to.size)
        attention_store(attention_result_in(to), attention_at(to, t.own_b, t.h, t.own0 + row), lane + 32 * i, x[i], T::kind == MMA_BF16);
  };
#pragma unroll
  for (int i = 0; i < N; i++) sum1[i] = fmaf(sum1[i], a.scale, T::KEYS && !a.dv.p ? sum2[i] : 0);
  if (T::SUM1) store(T::KEYS ? a.dk : a.dq, sum1);
  if (T::SUM2 && a.dv.p) store(a.dv, sum2);
}

/* Stores this warp's 16 rows, from row0 on. SUM1: sums of dS' q or of dS k; SUM2: of P' dy. */
template <class T, int N1, int N2>
__device__ __forceinline__ void attention_gradient_end(const cuda_attention_gradient &a, const attention_own &t, int row0,
                                                       float (&sum1)[N1], float (&sum2)[N2])
{
  const int lane = threadIdx.x % 32;
  unsigned again = 0;                     /* bit 4 g: row g, bit 4 g + 1: row g + 8 */
#pragma unroll
  for (int i = 0; i < N1; i++) sum1[i] *= a.scale;
  if constexpr (T::SUM1 && T::SUM2) {
#pragma unroll
    for (int i = 0; i < N1 && i < N2; i++) sum1[i] += a.dv.p ? 0 : sum2[i];
  }
  float probe[4] = {};                    /* two for each row: one alone waits for each of its steps */
#pragma unroll
  for (int i = 0; i < N1 / 4 * 4; i++) probe[i % 4] = fmaf(sum1[i], 0.f, probe[i % 4]);
#pragma unroll
  for (int i = 0; i < N2 / 4 * 4; i++) probe[i % 4] = fmaf(sum2[i], 0.f, probe[i % 4]);
  float not_finite[2] = { probe[0] + probe[1], probe[2] + probe[3] };
#pragma unroll
  for (int by = 1; by < 4; by *= 2)
#pragma unroll
    for (int h = 0; h < 2; h++) not_finite[h] += __shfl_xor_sync(~0u, not_finite[h], by);
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int at = row0 + lane / 4 + 8 * h;
    const bool there = at < t.rows, bad = there & !(not_finite[h] == 0);
    again |= __ballot_sync(~0u, bad && lane % 4 == 0) << h;
    const cuda_attention_rows &to = T::KEYS ? a.dk : a.dq;
    if constexpr (T::SUM1)
      attention_put<T::kind, T::D1>(attention_result_in(to), attention_at(to, t.own_b, t.h, t.own0 + at), sum1, h, 1, there && !bad);
    if constexpr (T::SUM2)
      if (a.dv.p) attention_put<T::kind, T::D2>(attention_result_in(a.dv), attention_at(a.dv, t.own_b, t.h, t.own0 + at), sum2, h, 1,
                                        there && !bad);
  }
#pragma unroll 1
  for (; again; again &= again - 1) {
    const int bit = __ffs(again) - 1;
    attention_gradient_again<T>(a, t, row0 + bit / 4 + bit % 4 * 8);
  }
}
