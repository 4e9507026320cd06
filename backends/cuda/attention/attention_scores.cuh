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
template <int kind> __device__ __forceinline__ float attention_value(uint16_t x)
{
  return kind == MMA_BF16 ? bf16_to_float(x) : f16_to_float(x);
}

/* d += a b: 16 x 8 sums over 16 of k, a an accumulator's part as attention_pack makes it. */
template <int kind> __device__ __forceinline__ void attention_product(float *d, const uint32_t *a, uint32_t b0, uint32_t b1)
{
  float (&sums)[4] = *(float (*)[4])d;
  const uint32_t (&words)[4] = *(const uint32_t (*)[4])a;
  if (kind == MMA_BF16) mma_bf16::product(sums, words, b0, b1);
  else mma_f16::product(sums, words, b0, b1);
}

struct attention_softmax { float m[2], l[2]; };             /* m: unscaled; l: of this thread's columns */

/* Limits are relative to this thread's first column. */
template <int N> __device__ __forceinline__ void attention_mask(float (&s)[N], const int (&low)[2], const int (&high)[2])
{
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int column = i / 4 * 8 + i % 2, h = i / 2 % 2;
    if (column > high[h] || column < low[h]) s[i] = -INFINITY;
  }
}
/* New maxima; by: the factor of what was added up under the old ones. */
template <int N> __device__ __forceinline__ void attention_maximum(const float (&s)[N], attention_softmax &st, float scale, float (&by)[2])
{
#pragma unroll
  for (int h = 0; h < 2; h++) {
    float m = st.m[h];
#pragma unroll
    for (int j = 0; j < N / 4; j++) m = fmaxf(m, fmaxf(s[4 * j + 2 * h], s[4 * j + 2 * h + 1]));
    m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
    m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
    by[h] = fn_exp2((st.m[h] - m) * scale), st.m[h] = m;
  }
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
/* P as the a of wgmma_registers: an accumulator's layout is that of a. */
template <int kind, int N> __device__ __forceinline__ void attention_pack(const float (&s)[N], uint32_t (&p)[N / 2])
{
#pragma unroll
  for (int i = 0; i < N / 2; i++) p[i] = kind == MMA_BF16 ? pack_bf16(s[2 * i], s[2 * i + 1]) : pack_f16(s[2 * i], s[2 * i + 1]);
}
template <int N> __device__ __forceinline__ void attention_rescale(float (&sum)[N], const float (&by)[2])
{
#pragma unroll
  for (int i = 0; i < N; i++) sum[i] *= by[i / 2 % 2];
}
/* x[i] of lane q of a quad becomes x[q] of lane i: four words of an accumulator's row become 16 contiguous bytes. */
__device__ __forceinline__ void quad_transpose(uint32_t (&x)[4])
{
  const bool odd = threadIdx.x & 1, upper = threadIdx.x & 2;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const uint32_t got = __shfl_xor_sync(~0u, odd ? x[i] : x[i + 1], 1);
    if (odd) x[i] = got;
    else x[i + 1] = got;
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const uint32_t got = __shfl_xor_sync(~0u, upper ? x[i] : x[i + 2], 2);
    if (upper) x[i] = got;
    else x[i + 2] = got;
  }
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
#pragma unroll
  for (int i = 0; i < DV / 32; i++) {
    uint32_t x[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const float lower = sum[16 * i + 4 * j + 2 * h] * by, upper = sum[16 * i + 4 * j + 2 * h + 1] * by;
      x[j] = kind == MMA_BF16 ? pack_bf16(lower, upper) : pack_f16(lower, upper);
    }
    quad_transpose(x);
    if (there && 32 * i + 8 * q < a.dv) *(uint4 *)((uint16_t *)a.y + at + 32 * i + 8 * q) = make_uint4(x[0], x[1], x[2], x[3]);
  }
}
