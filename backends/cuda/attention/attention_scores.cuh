/* attention_scores.cuh -- what attention's kernels on Tensor Cores share: blocks of scores in registers.
 *
 * A warp has 16 rows of a block; with lane = 4 g + q thread's s[4 j], s[4 j + 1] are row g, columns 8 j + 2 q and the next, s[4 j + 2] and
 * s[4 j + 3] the same of row g + 8: an accumulator of mma.sync and of wgmma. */
#pragma once
#include "kit/element.cuh"
#include "kit/functions.cuh"
#include "kit/sums.cuh"
#include "kit/wgmma.cuh"

__device__ __forceinline__ int attention_length(const void *lengths, int64_t at, int i64, int most)
{
  if (!lengths) return most;
  const int64_t n = i64 ? ((const int64_t *)lengths)[at] : ((const int32_t *)lengths)[at];
  return (int)(n < 0 ? 0 : n > most ? most : n);
}
/* ---- ragged rows ------------------------------------------------------------------------------------------------------ */

/* Sequence b of ragged rows: the first token; n: in, of all, out, of the sequence; tile: of a head's tiles of BLOCK rows its first, where
 * each sequence begins a tile, since (x + y) / BLOCK + 1 >= x / BLOCK + (y + BLOCK - 1) / BLOCK. each: rows of a token. So a head has
 * all each / BLOCK + sequences tiles, some of which may have no rows.
 *
 * OUTSIDE: the tokens before the first start are a sequence, number 0, and so are those behind the last; sequences counts them. */
template <int BLOCK, bool OUTSIDE = false>
__device__ __forceinline__ int attention_start(const void *starts, int64_t stride, int i64, int b, int &n, int &tile, int each = 1,
                                               int sequences = 0)
{
  const int64_t all = n;
  auto at = [&](int of) {
    if (OUTSIDE && of == 0) return 0;
    if (OUTSIDE && of == sequences) return (int)all;
    if (OUTSIDE) of--;
    const int64_t x = i64 ? ((const int64_t *)starts)[of * stride] : ((const int32_t *)starts)[of * stride];
    return (int)(x < 0 ? 0 : x > all ? all : x);
  };
  const int first = at(b);
  n = max(0, at(b + 1) - first), tile = first * each / BLOCK + b;
  return first;
}
/* The sequence of a head's tile, which it may have no rows in. */
template <int BLOCK, bool OUTSIDE = false>
__device__ __forceinline__ int attention_sequence_of(const void *starts, int64_t stride, int i64, int sequences, int all, int tile,
                                                     int each = 1)
{
  int low = 0, high = sequences - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    int n = all, first;
    attention_start<BLOCK, OUTSIDE>(starts, stride, i64, middle, n, first, each, sequences);
    if (first <= tile) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* What a kind of product reads: elements, those in 16 bytes, those of k (32 bytes, an accumulator's columns) that it sums over. */
template <int kind> struct attention_operand { typedef uint16_t element; enum { CHUNK = 8, K = 16 }; };
template <> struct attention_operand<MMA_3XTF32> { typedef float element; enum { CHUNK = 4, K = 8 }; };

template <int kind> __device__ __forceinline__ float attention_value(float x) { return x; }
template <int kind> __device__ __forceinline__ float attention_value(uint16_t x)
{
  return kind == MMA_BF16 ? bf16_to_float(x) : f16_to_float(x);
}

/* d += a b by mma.sync: 16 x 8 sums over K of k; a: of rows in shared memory, or an accumulator's part as attention_pack makes it. */
template <int kind> __device__ __forceinline__ void attention_product(float *d, const uint32_t *a, uint32_t b0, uint32_t b1)
{
  float (&sums)[4] = *(float (*)[4])d;
  const uint32_t (&words)[4] = *(const uint32_t (*)[4])a;
  if constexpr (kind == MMA_BF16) mma_bf16::product(sums, words, b0, b1);
  if constexpr (kind == MMA_F16) mma_f16::product(sums, words, b0, b1);
  if constexpr (kind == MMA_3XTF32) {
    uint32_t a_hi[4], a_lo[4], b_hi[2], b_lo[2];
#pragma unroll
    for (int i = 0; i < 4; i++) mma_split(__uint_as_float(words[i]), a_hi[i], a_lo[i]);
    mma_split(__uint_as_float(b0), b_hi[0], b_lo[0]), mma_split(__uint_as_float(b1), b_hi[1], b_lo[1]);
    mma_tf32::product(sums, a_lo, b_hi[0], b_hi[1]);
    mma_tf32::product(sums, a_hi, b_lo[0], b_lo[1]);
    mma_tf32::product(sums, a_hi, b_hi[0], b_hi[1]);
  }
}
/* b of two products, 16 columns from `column` on, from rows of k: row r's chunk c is at rows + r * pitch + ((c ^ r % 8) << 4), and `rows`
 * is one whose number is a multiple of 8. With tf32 the order of k is an accumulator's, a thread has two neighbours; elements are
 * multiplied by `by`. */
template <int kind>
__device__ __forceinline__ void attention_summed(uint32_t (&b)[4], uint32_t rows, uint32_t pitch, int column, float by = 1)
{
  const uint32_t lane = threadIdx.x % 32;
  if constexpr (kind != MMA_3XTF32) {
    load_matrices<true>(b, rows + lane % 16 * pitch + ((column / 8 + lane / 16 ^ lane & 7) << 4));
  } else {
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
      const uint32_t r = lane % 4 * 2 + i % 2, c = (uint32_t)column / 4 + i / 2 * 2 + lane / 16;
      float x;
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(rows + r * pitch + ((c ^ r) << 4) + lane / 4 % 4 * 4) : "memory");
      b[i] = __float_as_uint(x * by);
    }
  }
}

struct attention_softmax { float m[2], l[2]; };             /* m: unscaled; l: of this thread's columns */

/* Hides columns; limits, of rows g and g + 8, are relative to this thread's first column. */
template <int N> __device__ __forceinline__ void attention_mask_above(float (&s)[N], int high0, int high1)
{
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i / 4 * 8 + i % 2 > (i / 2 % 2 ? high1 : high0)) s[i] = -INFINITY;
}
template <int N> __device__ __forceinline__ void attention_mask_below(float (&s)[N], int low0, int low1)
{
#pragma unroll
  for (int i = 0; i < N; i++)
    if (i / 4 * 8 + i % 2 < (i / 2 % 2 ? low1 : low0)) s[i] = -INFINITY;
}
template <int N> __device__ __forceinline__ void attention_mask(float (&s)[N], const int (&low)[2], const int (&high)[2])
{
  attention_mask_above(s, high[0], high[1]), attention_mask_below(s, low[0], low[1]);
}
/* New maxima; by: the factor of what was added up under the old ones. Four chains side by side: one alone waits for each of its steps. */
template <int N> __device__ __forceinline__ void attention_maximum(const float (&s)[N], attention_softmax &st, float scale, float (&by)[2])
{
  float m[4] = { st.m[0], st.m[0], st.m[1], st.m[1] };
#pragma unroll
  for (int i = 0; i < N; i++) m[i % 4 / 2 * 2 + i / 4 % 2] = fmaxf(m[i % 4 / 2 * 2 + i / 4 % 2], s[i]);
  m[0] = fmaxf(m[0], m[1]), m[1] = fmaxf(m[2], m[3]);
#pragma unroll
  for (int i = 1; i < 4; i *= 2)
#pragma unroll
    for (int h = 0; h < 2; h++) m[h] = fmaxf(m[h], __shfl_xor_sync(~0u, m[h], i));
#pragma unroll
  for (int h = 0; h < 2; h++) by[h] = fn_exp2((st.m[h] - m[h]) * scale), st.m[h] = m[h];
}
/* The same, but maxima stay as they are while none of the warp's has grown by more than 2^limit: false then, and by is 1. */
template <int N> __device__ __forceinline__ bool attention_maximum_grown(const float (&s)[N], attention_softmax &st, float scale,
                                                                         float limit, float (&by)[2])
{
  attention_softmax to = st;
  attention_maximum(s, to, scale, by);
  const bool grown = __any_sync(~0u, (to.m[0] - st.m[0]) * scale > limit || (to.m[1] - st.m[1]) * scale > limit);
#pragma unroll
  for (int h = 0; h < 2; h++) st.m[h] = grown ? to.m[h] : st.m[h], by[h] = grown ? by[h] : 1;
  return grown;
}
template <int N>
__device__ __forceinline__ void attention_exponentials(float (&s)[N], attention_softmax &st, float scale, const float (&by)[2])
{
#pragma unroll
  for (int h = 0; h < 2; h++) {
    const float m = st.m[h] * scale;
    float l = st.l[h] * by[h];
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
      const float x = fn_exp2(fmaf(s[4 * j + 2 * h], scale, -m)), y = fn_exp2(fmaf(s[4 * j + 2 * h + 1], scale, -m));
      s[4 * j + 2 * h] = x, s[4 * j + 2 * h + 1] = y, l += x + y;
    }
    st.l[h] = l;
  }
}
/* P as the a of wgmma_registers and attention_product: an accumulator's layout is that of a; of tf32's with k in another order. */
template <int kind, int N, int M> __device__ __forceinline__ void attention_pack(const float (&s)[N], uint32_t (&p)[M])
{
  static_assert(M * attention_operand<kind>::K == N * 8, "all of them");
#pragma unroll
  for (int i = 0; i < M; i++)
    p[i] = kind == MMA_3XTF32 ? __float_as_uint(s[i / 4 * 4 + i % 2 * 2 + i / 2 % 2])
         : kind == MMA_BF16 ? pack_bf16(s[2 * i % N], s[(2 * i + 1) % N]) : pack_f16(s[2 * i % N], s[(2 * i + 1) % N]);
}
template <int N> __device__ __forceinline__ void attention_rescale(float (&sum)[N], const float (&by)[2])
{
#pragma unroll
  for (int i = 0; i < N; i++) sum[i] *= by[i / 2 % 2];
}
/* Of each four words: x[i] of lane q of a quad becomes x[q] of lane i; four words of an accumulator's row become 16 contiguous bytes. All
 * fours go side by side: one alone waits for its words twice. */
template <int N> __device__ __forceinline__ void quad_transpose(uint32_t (&x)[N])
{
  const bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
  uint32_t got[N / 2];
#pragma unroll
  for (int i = 0; i < N; i += 2) got[i / 2] = __shfl_xor_sync(~0u, odd ? x[i] : x[i + 1], 1);
#pragma unroll
  for (int i = 0; i < N; i += 2)
    if (odd) x[i] = got[i / 2];
    else x[i + 1] = got[i / 2];
#pragma unroll
  for (int i = 0; i < N / 2; i++) got[i] = __shfl_xor_sync(~0u, upper ? x[i / 2 * 4 + i % 2] : x[i / 2 * 4 + i % 2 + 2], 2);
#pragma unroll
  for (int i = 0; i < N / 2; i++)
    if (upper) x[i / 2 * 4 + i % 2] = got[i];
    else x[i / 2 * 4 + i % 2 + 2] = got[i];
}

/* ---- results --------------------------------------------------------------------------------------------------------- */

/* A: has y, y_f32, dv. */
template <class A> __device__ __forceinline__ void attention_store(const A &a, int64_t at, int column, float x, bool bf16)
{
  if (a.y_f32) ((float *)a.y)[at + column] = x;
  else ((uint16_t *)a.y)[at + column] = (uint16_t)(bf16 ? pack_bf16(x, 0) : pack_f16(x, 0));
}
/* Row h (0: g, 1: g + 8) of this warp's sums, divided, to y; nothing if not `there`. */
template <int kind, int DV, class A>
__device__ __forceinline__ void attention_put(const A &a, int64_t at, const float (&sum)[DV / 2], int h, float by, bool there)
{
  const int q = threadIdx.x % 4;
  if (a.y_f32) {
#pragma unroll
    for (int j = 0; j < DV / 8; j++)
      if (there && 8 * j + 2 * q < a.dv)
        *(float2 *)((float *)a.y + at + 8 * j + 2 * q) = make_float2(sum[4 * j + 2 * h] * by, sum[4 * j + 2 * h + 1] * by);
    return;
  }
  uint32_t x[DV / 8];
#pragma unroll
  for (int j = 0; j < DV / 8; j++) {
    const float lower = sum[4 * j + 2 * h] * by, upper = sum[4 * j + 2 * h + 1] * by;
    x[j] = kind == MMA_BF16 ? pack_bf16(lower, upper) : pack_f16(lower, upper);
  }
  quad_transpose(x);
#pragma unroll
  for (int i = 0; i < DV / 32; i++)      /* __stcg, because of a plain store nvcc makes four at times */
    if (there && 32 * i + 8 * q < a.dv)
      __stcg((uint4 *)((uint16_t *)a.y + at + 32 * i + 8 * q), make_uint4(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]));
}
