/* attention_mma_backward.cuh -- attention's gradient by mma.sync; S and P are made again, never in memory.
 *
 *   P = exp(scale q k' - lse)    dS = P (dy v' - D)    D = rowsum(dy y) - dlse
 *   dv = P' dy    dk = scale dS' q    dq = scale dS k
 *
 * One kernel, launched for keys and for queries. A block owns a tile of 64 rows of one head (keys and values: for dk and dv; queries and
 * dy: for dq) and walks over the tiles of the other side that these rows see, in the case of keys over all heads of their group, loaded by
 * cp.async in two stages. A warp owns 16 rows: both products over the head's dim give it S and dP of 16 x 64 pairs (for keys transposed),
 * whose registers, made P and dS, are the left operands of the products that add to its gradients. So a gradient is the sum of one
 * warp in one order, without atomics; in return S and dP are made twice (7 products in all instead of 5).
 *
 * A weight of 0 times NaN or Inf is NaN: what a row must not see could reach its gradient. So each row is looked at before it is
 * stored, and if it is not finite, computed again by one warp that reads only what the row sees. */
#pragma once
#include <cfloat>
#include "attention_mma_backward.h"
#include "attention_scores.cuh"
#include "kit/random.cuh"
#include "kit/sm80.cuh"

template <int kind_, int D_, bool KEYS_, bool CHANGED_> struct attention_gradient_shape {
  static constexpr int kind = kind_, D = D_, tile = CUDA_ATTENTION_BLOCK * D * 2, stage = 2 * tile, statistics = CUDA_ATTENTION_BLOCK * 8;
  static constexpr bool KEYS = KEYS_, CHANGED = CHANGED_;      /* CHANGED: softcap, bias, mask, blocks, slopes or dropout */
  static constexpr int COLUMNS = KEYS && D > 64 ? 32 : 64, blocks = D > 64 || CHANGED ? 2 : 3;       /* what the registers hold */
  static constexpr int shared = 3 * stage + (KEYS ? 2 * statistics : 0);
};

/* ---- a row's statistics -------------------------------------------------------------------------------------------- */

/* In place of lse log2 e where lse is -Inf (all scores are -Inf, or none is seen): no finite score reaches it. */
#define ATTENTION_UNSEEN FLT_MAX

template <int kind> __device__ __forceinline__ void attention_eight(float (&x)[8], const cuda_attention_rows &r, int64_t at)
{
  if (r.f32) {
    const float4 a = *(const float4 *)((const float *)r.p + at), b = *(const float4 *)((const float *)r.p + at + 4);
    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w, x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
    return;
  }
  const uint4 v = *(const uint4 *)((const uint16_t *)r.p + at);
  const uint32_t w[4] = { v.x, v.y, v.z, v.w };
#pragma unroll
  for (int i = 0; i < 8; i++) x[i] = attention_value<kind>((uint16_t)(w[i / 2] >> 16 * (i % 2)));
}

/* 16 lanes a row. */
template <int kind> __global__ void __launch_bounds__(128) attention_statistics(const __grid_constant__ cuda_attention_backward a)
{
  const int64_t row = blockIdx.x * (int64_t)8 + threadIdx.x / 16;
  const int head = (int)(row / a.padded), i = (int)(row % a.padded), b = head / a.heads, h = head % a.heads, c = threadIdx.x % 16 * 8;
  float lse = -INFINITY, sum = 0;
  if (i < attention_length(a.q_lengths, b * a.q_lengths_stride, a.q_lengths_i64, a.queries))
    lse = a.lse[b * a.lse_stride[0] + h * a.lse_stride[1] + i * a.lse_stride[2]];
  if (lse != -INFINITY && c < a.y.size) {
    float dy[8], y[8];
    attention_eight<kind>(dy, a.dy, b * a.dy.stride[0] + h * a.dy.stride[1] + i * a.dy.stride[2] + c);
    attention_eight<kind>(y, a.y, b * a.y.stride[0] + h * a.y.stride[1] + i * a.y.stride[2] + c);
#pragma unroll
    for (int e = 0; e < 8; e++) sum = fmaf(dy[e], y[e], sum);
  }
  sum = warp_sum<16>(sum);
  if (threadIdx.x % 16) return;
  if (a.dlse && lse != -INFINITY) sum -= a.dlse[b * a.dlse_stride[0] + h * a.dlse_stride[1] + i * a.dlse_stride[2]];
  ((float2 *)a.statistics)[row] = make_float2(lse == -INFINITY ? ATTENTION_UNSEEN : lse * 1.44269504f, sum);
}

/* dsink = -sum exp(sink - lse) D: a head a block. */
template <int kind> __global__ void __launch_bounds__(1024) attention_sink_gradient(const __grid_constant__ cuda_attention_backward a)
{
  __shared__ float part[32];
  const int h = blockIdx.x;
  const float sink = a.sink[h * a.sink_stride] * 1.44269504f;
  float sum = 0;
  for (int b = 0; b < a.batch; b++) {
    const float2 *of = (const float2 *)a.statistics + ((int64_t)b * a.heads + h) * a.padded;
    for (int i = threadIdx.x; i < a.padded; i += 1024)
      if (of[i].x != ATTENTION_UNSEEN) sum = fmaf(-fn_exp2(sink - of[i].x), of[i].y, sum);
  }
  sum = block_sum<1024>(sum, part);
  if (threadIdx.x == 0) a.dsink[h * a.dsink_stride] = sum;
}

/* ---- tiles --------------------------------------------------------------------------------------------------------- */

/* A tile of own rows, and which of the other side's they see: row r those from r + shift - before to r + shift + after. */
struct attention_own {
  int b, h, row0, own, other, shift, before, after;         /* own, other: how many rows the sequence has */
  __device__ __forceinline__ int low(int r) const { return before < 0 ? 0 : max(0, r + shift - before); }
  __device__ __forceinline__ int high(int r) const { return r >= own ? -1 : after < 0 ? other - 1 : min(other - 1, r + shift + after); }
};
template <bool KEYS> __device__ __forceinline__ attention_own attention_own_at(const cuda_attention_backward &a, uint32_t block)
{
  const int heads = KEYS ? a.heads / a.group : a.heads,
            tiles = ((KEYS ? a.keys : a.queries) + CUDA_ATTENTION_BLOCK - 1) / CUDA_ATTENTION_BLOCK;
  const uint32_t n = (uint32_t)a.section[!KEYS] * tiles, first = block / n * a.section[!KEYS], in = block % n,
                 together = min((uint32_t)a.section[!KEYS], (uint32_t)(a.batch * heads) - first), head = first + in % together,
                 m = in / together;
  attention_own t;
  /* Under a causal mask the first keys and the last queries see the most: they begin. */
  t.b = head / heads, t.h = head % heads, t.row0 = (KEYS || a.right < 0 ? m : tiles - 1 - m) * CUDA_ATTENTION_BLOCK;
  const int queries = attention_length(a.q_lengths, t.b * a.q_lengths_stride, a.q_lengths_i64, a.queries),
            keys = attention_length(a.kv_lengths, t.b * a.kv_lengths_stride, a.kv_lengths_i64, a.keys),
            shift = a.top_left ? 0 : keys - queries;
  t.own = KEYS ? keys : queries, t.other = KEYS ? queries : keys, t.shift = KEYS ? -shift : shift;
  t.before = KEYS ? a.right : a.left, t.after = KEYS ? a.left : a.right;
  return t;
}

/* ---- one pair of query i and key j ------------------------------------------------------------------------------------ */

struct attention_head {                   /* of queries */
  int b, h, shift;
  float slope;
};
template <bool KEYS>
__device__ __forceinline__ attention_head attention_head_of(const cuda_attention_backward &a, const attention_own &t, int h)
{
  return { t.b, h, KEYS ? -t.shift : t.shift, a.slopes ? a.slopes[t.b * a.slopes_stride[0] + h * a.slopes_stride[1]] : 0 };
}

__device__ __forceinline__ int64_t attention_spread_at(const int64_t (&stride)[4], const attention_head &of, int i, int j)
{
  return of.b * stride[0] + of.h * stride[1] + i * stride[2] + j * stride[3];
}
static __device__ __noinline__ bool attention_blocked(const cuda_attention_backward &a, const attention_head &of, int i, int j)
{
  const int block = j / a.block_kv;
  return !(a.blocks[attention_spread_at(a.blocks_stride, of, i / a.block_q, block / 8)] >> block % 8 & 1);
}
static __device__ __noinline__ float attention_keep(const cuda_attention_backward &a, const attention_head &of, int i, int j)
{
  uint32_t w[4];
  const uint64_t head = (uint64_t)((int64_t)of.b * a.heads + of.h);
  random_words(w, (uint64_t)(a.seed.p ? *a.seed.p : a.seed.value), (uint64_t)(a.offset.p ? *a.offset.p : a.offset.value) + (head << 32),
               (uint64_t)(j / 8) | (uint64_t)i << 32);
  const uint32_t word = j & 4 ? (j & 2 ? w[3] : w[2]) : (j & 2 ? w[1] : w[0]);
  return (word >> 16 * (j & 1) & 0xffff) < a.threshold ? 0 : a.kept;
}

/* From q k' and dy v' to the weight and dS; false: a mask hides the key. */
template <bool CHANGED>
__device__ __forceinline__ bool attention_pair(const cuda_attention_backward &a, const attention_head &of, int i, int j, float2 st,
                                               float &s, float &g)
{
  if (!CHANGED) {
    s = fn_exp2(fmaf(s, a.scale_log2, -st.x)), g = s * (g - st.y);
    return true;
  }
  if ((a.mask && !a.mask[attention_spread_at(a.mask_stride, of, i, j)]) || (a.blocks && attention_blocked(a, of, i, j))) {
    s = g = 0;
    return false;
  }
  float x = s * a.scale, slope = 1;
  if (a.softcap > 0) {
    const float t = tanhf(x / a.softcap);
    x = a.softcap * t, slope = 1 - t * t;
  }
  if (a.bias) x += element_load<float>(a.bias, attention_spread_at(a.bias_stride, of, i, j), dtype3(a.bias_dtype));
  x -= of.slope * (float)abs(i + of.shift - j);
  const float p = fn_exp2(fmaf(x, 1.44269504f, -st.x)), kept = a.threshold ? attention_keep(a, of, i, j) : 1;
  g = p * ((kept > 0 ? kept * g : 0) - st.y) * slope, s = kept * p;
  return true;
}

/* ---- rows to memory --------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ int64_t attention_at(const cuda_attention_rows &r, int b, int h, int row)
{
  return b * r.stride[0] + h * r.stride[1] + row * r.stride[2];
}

struct attention_result { void *y; int32_t y_f32, dv; };   /* as attention_store and attention_put take it */
__device__ __forceinline__ attention_result attention_result_in(const cuda_attention_rows &r) { return { r.p, r.f32, r.size }; }

/* One row again, by a warp, in plain f32. */
template <class T> __device__ __noinline__ void attention_gradient_again(const cuda_attention_backward &a, const attention_own &t, int row)
{
  constexpr int N = T::D / 32;
  const int lane = threadIdx.x % 32, low = t.low(row), high = t.high(row);
  const cuda_attention_rows &x1 = T::KEYS ? a.k : a.q, &x2 = T::KEYS ? a.v : a.dy, &y1 = T::KEYS ? a.q : a.k, &y2 = T::KEYS ? a.dy : a.v;
  auto load = [&](float (&x)[N], const cuda_attention_rows &r, int h, int at) {
    const uint16_t *p = (const uint16_t *)r.p + attention_at(r, t.b, h, at);
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = lane + 32 * i < r.size ? attention_value<T::kind>(p[lane + 32 * i]) : 0;
  };
  float sum1[N] = {}, sum2[N] = {}, own1[N], own2[N], other1[N], other2[N];
  load(own1, x1, t.h, row), load(own2, x2, t.h, row);
#pragma unroll 1
  for (int n = 0; n < (T::KEYS ? a.group : 1); n++) {
    const int h = T::KEYS ? t.h * a.group + n : t.h, of_other = T::KEYS ? h : h / a.group;
    const attention_head of = attention_head_of<T::KEYS>(a, t, h);
    const float2 *statistics = (const float2 *)a.statistics + ((int64_t)t.b * a.heads + h) * a.padded;
#pragma unroll 1
    for (int c = low; c <= high; c++) {
      const int i = T::KEYS ? c : row, j = T::KEYS ? row : c;
      const float2 st = statistics[i];
      load(other1, y1, of_other, c), load(other2, y2, of_other, c);
      float s = 0, g = 0;
#pragma unroll
      for (int e = 0; e < N; e++) s = fmaf(own1[e], other1[e], s), g = fmaf(own2[e], other2[e], g);
      s = warp_sum(s), g = warp_sum(g);
      if (!attention_pair<T::CHANGED>(a, of, i, j, st, s, g)) continue;
      if (st.x == ATTENTION_UNSEEN) s = g = 0;
#pragma unroll
      for (int e = 0; e < N; e++) sum1[e] = fmaf(g, other1[e], sum1[e]), sum2[e] = fmaf(s, other2[e], sum2[e]);
    }
  }
  auto store = [&](const cuda_attention_rows &to, const float (&x)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++)
      if (lane + 32 * i < to.size)
        attention_store(attention_result_in(to), attention_at(to, t.b, t.h, row), lane + 32 * i, x[i], T::kind == MMA_BF16);
  };
#pragma unroll
  for (int i = 0; i < N; i++) sum1[i] = fmaf(sum1[i], a.scale, T::KEYS && !a.dv.p ? sum2[i] : 0);
  store(T::KEYS ? a.dk : a.dq, sum1);
  if (T::KEYS && a.dv.p) store(a.dv, sum2);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

template <class T> __global__ void __launch_bounds__(128, T::blocks) attention_gradient(const __grid_constant__ cuda_attention_backward a)
{
  constexpr int D = T::D, BLOCK = CUDA_ATTENTION_BLOCK, COLUMNS = T::COLUMNS, pitch = D * 2;
  extern __shared__ __align__(128) unsigned char shared[];
  const uint32_t own1 = shared_address(shared), own2 = own1 + T::tile, other0 = own1 + T::stage;
  const float2 *stage_statistics = (const float2 *)(shared + 3 * T::stage);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const attention_own t = attention_own_at<T::KEYS>(a, blockIdx.x);
  const int end = min(t.row0 + BLOCK, t.own) - 1, top = end < t.row0 ? -1 : t.high(end), bottom = t.low(t.row0), first = bottom / BLOCK,
            each = top < bottom ? 0 : top / BLOCK - first + 1, total = each * (T::KEYS ? a.group : 1);
  auto head = [&](int turn) { return T::KEYS ? t.h * a.group + turn / each : t.h; };

  /* 64 rows, 16 bytes a copy; in shared memory the pieces of a row change places by the row's number, against bank conflicts. */
  auto load = [&](uint32_t to, const cuda_attention_rows &r, int h, int row0, int rows) {
    const uint16_t *p = (const uint16_t *)r.p + t.b * r.stride[0] + h * r.stride[1];
#pragma unroll
    for (int i = 0; i < BLOCK * D / 1024; i++) {
      const int at = i * 128 + threadIdx.x, row = at / (D / 8), piece = at % (D / 8);
      const bool in = row0 + row < rows && piece * 8 < r.size;
      copy_async<16>(to + row * pitch + ((piece ^ row & 7) << 4), in ? p + (row0 + row) * r.stride[2] + piece * 8 : (const uint16_t *)r.p,
                     in ? 16 : 0);
    }
  };
  auto load_turn = [&](int turn) {
    const uint32_t to = other0 + turn % 2 * T::stage;
    const int h = head(turn), row0 = (first + turn % each) * BLOCK;
    load(to, T::KEYS ? a.q : a.k, T::KEYS ? h : h / a.group, row0, t.other);
    load(to + T::tile, T::KEYS ? a.dy : a.v, T::KEYS ? h : h / a.group, row0, t.other);
    if (T::KEYS && threadIdx.x < T::statistics / 16)
      copy_async<16>(own1 + 3 * T::stage + turn % 2 * T::statistics + threadIdx.x * 16,
                     a.statistics + (((int64_t)t.b * a.heads + h) * a.padded + row0) * 2 + threadIdx.x * 4, 16);
  };

  float sum1[D / 2], sum2[T::KEYS ? D / 2 : 1];
#pragma unroll
  for (int i = 0; i < D / 2; i++) sum1[i] = 0;
#pragma unroll
  for (int i = 0; i < (T::KEYS ? D / 2 : 1); i++) sum2[i] = 0;
  /* This thread's rows, and the columns of a tile that each sees, counted from its first. */
  const int row = t.row0 + warp * 16 + lane / 4, column = lane % 4 * 2;
  const int high[2] = { t.high(row) - column, t.high(row + 8) - column }, low[2] = { t.low(row) - column, t.low(row + 8) - column };
  const int whole_high = t.row0 + BLOCK > t.own ? -1 : t.high(t.row0), whole_low = t.low(t.row0 + BLOCK - 1);
  float2 own_statistics[2] = {};
  if (!T::KEYS) {
    const float2 *of = (const float2 *)a.statistics + ((int64_t)t.b * a.heads + t.h) * a.padded + row;       /* padded to whole tiles */
    own_statistics[0] = of[0], own_statistics[1] = of[8];
  }
  /* Where this lane's row of a fragment is: of a left operand; of a right one whose rows are columns of S; of one whose rows are summed
   * over. The row's number modulo 8 is the lane's in each. */
  const uint32_t turned = lane & 7, left = (warp * 16 + lane % 16) * pitch, right = (lane % 8 + lane / 16 * 8) * pitch,
                 summed = lane % 16 * pitch;
  auto piece = [&](uint32_t n) { return (n ^ turned) << 4; };
  auto multiply = [](float *sum, const uint32_t *x, const uint32_t (&y)[4]) {                 /* 16 columns */
    attention_product<T::kind>(sum, x, y[0], y[1]), attention_product<T::kind>(sum + 4, x, y[2], y[3]);
  };

  if (total) {
    load(own1, T::KEYS ? a.k : a.q, t.h, t.row0, t.own), load(own2, T::KEYS ? a.v : a.dy, t.h, t.row0, t.own);
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
    for (int part = 0; part < BLOCK; part += COLUMNS) {
      const int column0 = (first + turn % each) * BLOCK + part;
      const uint32_t other1 = other0 + turn % 2 * T::stage + part * pitch, other2 = other1 + T::tile;
      float s[COLUMNS / 2], g[COLUMNS / 2];
#pragma unroll
      for (int i = 0; i < COLUMNS / 2; i++) s[i] = g[i] = 0;
#pragma unroll
      for (int k = 0; k < D / 8; k += 2) {
        uint32_t x[4], y[4];
        load_matrices<false>(x, own1 + left + piece(k + lane / 16));
#pragma unroll
        for (int j = 0; j < COLUMNS; j += 16) {
          load_matrices<false>(y, other1 + right + j * pitch + piece(k + lane / 8 % 2));
          multiply(s + j / 2, x, y);
        }
        load_matrices<false>(x, own2 + left + piece(k + lane / 16));
#pragma unroll
        for (int j = 0; j < COLUMNS; j += 16) {
          load_matrices<false>(y, other2 + right + j * pitch + piece(k + lane / 8 % 2));
          multiply(g + j / 2, x, y);
        }
      }

      const int up[2] = { high[0] - column0, high[1] - column0 }, down[2] = { low[0] - column0, low[1] - column0 };
      if (!T::CHANGED && (column0 + COLUMNS - 1 > whole_high || column0 < whole_low)) attention_mask(s, down, up);
      const attention_head of = attention_head_of<T::KEYS>(a, t, head(turn));
#pragma unroll
      for (int i = 0; i < COLUMNS / 2; i++) {
        const int in = i / 4 * 8 + i % 2, h = i / 2 % 2, c = column0 + column + in, r = row + 8 * h;
        const float2 st = T::KEYS ? stage_statistics[turn % 2 * BLOCK + part + column + in] : own_statistics[h];
        if (T::CHANGED && (in > up[h] || in < down[h])) s[i] = g[i] = 0;
        else attention_pair<T::CHANGED>(a, of, T::KEYS ? c : r, T::KEYS ? r : c, st, s[i], g[i]);
      }
      uint32_t p[COLUMNS / 4], ds[COLUMNS / 4];
      if (T::KEYS) attention_pack<T::kind>(s, p);
      attention_pack<T::kind>(g, ds);
#pragma unroll
      for (int k = 0; k < COLUMNS; k += 16)
#pragma unroll
        for (int j = 0; j < D; j += 16) {
          uint32_t y[4];
          const uint32_t at = summed + k * pitch + piece(j / 8 + lane / 16);
          load_matrices<true>(y, other1 + at);
          multiply(sum1 + j / 2, ds + k / 4, y);
          if (!T::KEYS) continue;
          load_matrices<true>(y, other2 + at);
          multiply(sum2 + j / 2, p + k / 4, y);
        }
    }
    __syncthreads();                      /* the stage is free */
  }

  unsigned again[2];
#pragma unroll
  for (int i = 0; i < D / 2; i++) sum1[i] *= a.scale;
  if constexpr (T::KEYS) {
#pragma unroll
    for (int i = 0; i < D / 2; i++) sum1[i] += a.dv.p ? 0 : sum2[i];
  }
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const int at = row + 8 * h;
    const bool there = at < (T::KEYS ? a.keys : a.queries);
    float probe = 0;
#pragma unroll
    for (int j = 0; j < D / 8; j++) {
      probe = fmaf(sum1[4 * j + 2 * h], 0.f, fmaf(sum1[4 * j + 2 * h + 1], 0.f, probe));
      if constexpr (T::KEYS) probe = fmaf(sum2[4 * j + 2 * h], 0.f, fmaf(sum2[4 * j + 2 * h + 1], 0.f, probe));
    }
    probe += __shfl_xor_sync(~0u, probe, 1), probe += __shfl_xor_sync(~0u, probe, 2);
    const bool bad = there && !(probe == 0);
    again[h] = __ballot_sync(~0u, bad && lane % 4 == 0);
    const cuda_attention_rows &to = T::KEYS ? a.dk : a.dq;
    attention_put<T::kind, D>(attention_result_in(to), attention_at(to, t.b, t.h, at), sum1, h, 1, there && !bad);
    if constexpr (T::KEYS)
      if (a.dv.p) attention_put<T::kind, D>(attention_result_in(a.dv), attention_at(a.dv, t.b, t.h, at), sum2, h, 1, there && !bad);
  }
#pragma unroll 1
  for (int i = 0; i < 16; i++)
    if (again[i / 8] >> i % 8 * 4 & 1) attention_gradient_again<T>(a, t, t.row0 + warp * 16 + i);
}

#define ATTENTION_GRADIENT(kind, d, keys, changed) (const void *)attention_gradient<attention_gradient_shape<kind, d, keys, changed>>
#define ATTENTION_BACKWARD_KERNELS(kind, d)                                                                             \
  { d, { attention_gradient_shape<kind, d, false, false>::shared, attention_gradient_shape<kind, d, true, false>::shared }, \
    (const void *)attention_statistics<kind>,                                                                           \
    { { ATTENTION_GRADIENT(kind, d, false, false), ATTENTION_GRADIENT(kind, d, false, true) },                          \
      { ATTENTION_GRADIENT(kind, d, true, false), ATTENTION_GRADIENT(kind, d, true, true) } },                          \
    (const void *)attention_sink_gradient<kind> },
