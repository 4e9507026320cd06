/* attention_change.cuh -- bias, masks, slopes and a cap, applied to a block of scores in registers (attention_scores.cuh has their layout).
 *
 * A thread has pairs of keys, every eighth pair of a row. Where rows of bias or mask are pieces of eight keys, the four threads of a row
 * load a piece each of 32 keys, and exchange pairs. */
#pragma once
#include "attention_change.h"
#include "attention_scores.cuh"

/* PRECISE: else with an error of some 2^-22 of the cap, by tanh(x) = 1 - 2 / (1 + e^2x). */
template <bool PRECISE> __device__ __forceinline__ float attention_capped(float x, float cap)
{
  if (PRECISE) return cap * tanhf(x / cap);
  return cap * (1 - 2 * fn_reciprocal(1 + fn_exp2(x * (2 * 1.44269504089f / cap))));
}
__device__ __forceinline__ float attention_bias_value(uint16_t x, bool bf16) { return bf16 ? bf16_to_float(x) : f16_to_float(x); }

/* Four pairs of a row's scores from i on, h: row g or g + 8, times `by`, with bias. */
template <int N> __device__ __forceinline__ void attention_bias_add(float (&s)[N], float by, int i, int h, const uint32_t *pairs, bool bf16)
{
#pragma unroll
  for (int j = 0; j < 4; j++) {
    float *x = s + i + 4 * j + 2 * h;
    x[0] = fmaf(x[0], by, attention_bias_value((uint16_t)pairs[j], bf16));
    x[1] = fmaf(x[1], by, attention_bias_value((uint16_t)(pairs[j] >> 16), bf16));
  }
}
/* s by + bias, of a tile in shared memory: this warpgroup's 64 queries by 64 keys, in rows of 128 swizzled bytes; the next 64 keys are
 * 8192 bytes behind. */
template <int N> __device__ __forceinline__ void attention_bias_tile(uint32_t tile, float by, bool bf16, float (&s)[N])
{
  const uint32_t lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16, at = tile + row * 128 + ((lane / 16 ^ row % 8) << 4);
#pragma unroll
  for (int j = 0; j < N / 8; j++) {
    uint32_t x[4];
    load_matrices<false>(x, (at ^ j % 4 << 5) + j / 4 * 8192);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float *pair = s + 8 * j + 2 * i;
      pair[0] = fmaf(pair[0], by, attention_bias_value((uint16_t)x[i], bf16));
      pair[1] = fmaf(pair[1], by, attention_bias_value((uint16_t)(x[i] >> 16), bf16));
    }
  }
}
/* Of rows in memory that are whole pieces. */
template <int N>
__device__ __forceinline__ void attention_bias_now(const cuda_attention_change &c, const int64_t (&row)[2], int block, int keys, float by,
                                                   float (&s)[N])
{
#pragma unroll
  for (int i = 0; i + 16 <= N; i += 16)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int key = block + threadIdx.x % 4 * 8 + 2 * i;
      uint4 x = {};
      if (key < keys) x = __ldg((const uint4 *)((const uint16_t *)c.bias.p + row[h] + key));
      uint32_t pairs[4] = { x.x, x.y, x.z, x.w };
      quad_transpose(pairs);
      attention_bias_add(s, by, i, h, pairs, c.bias.dtype == QN_BF16);
    }
}
/* One by one: keys that there are. key: this thread's first. */
template <uint32_t dtype, int N>
__device__ __forceinline__ void attention_bias_each(const cuda_attention_change &c, const int64_t (&row)[2], int key, int keys, float by,
                                                    float (&s)[N])
{
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int j = key + i / 4 * 8 + i % 2;
    s[i] = fmaf(s[i], by, j < keys ? element_load<float>(c.bias.p, row[i / 2 % 2] + j * c.bias.stride[3], dtype) : 0);
  }
}
template <int N>
__device__ __forceinline__ void attention_masked(const cuda_attention_change &c, const int64_t (&row)[2], int block, int keys, float (&s)[N])
{
  const uint8_t *mask = (const uint8_t *)c.mask.p;
  if (c.mask_pieces && N % 16 == 0) {
    const int piece = block + threadIdx.x % 4 * 8;
    uint32_t words[N / 4];                /* of each, two keys of row g, and of row g + 8 */
#pragma unroll
    for (int i = 0; i < N / 16; i++) {
      uint2 x = {}, y = {};
      if (piece + 32 * i < keys) {
        x = __ldg((const uint2 *)(mask + row[0] + piece + 32 * i));
        y = __ldg((const uint2 *)(mask + row[1] + piece + 32 * i));
      }
      words[4 * i] = __byte_perm(x.x, y.x, 0x5410), words[4 * i + 1] = __byte_perm(x.x, y.x, 0x7632);
      words[4 * i + 2] = __byte_perm(x.y, y.y, 0x5410), words[4 * i + 3] = __byte_perm(x.y, y.y, 0x7632);
    }
    quad_transpose(words);
#pragma unroll
    for (int j = 0; j < N / 4; j++)
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (!(words[j] >> 8 * k & 0xff)) s[4 * j + k] = -INFINITY;
    return;
  }
  const int key = block + threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int j = key + i / 4 * 8 + i % 2;
    if (j < keys && !mask[row[i / 2 % 2] + j * c.mask.stride[3]]) s[i] = -INFINITY;
  }
}

/* Rows of bias and of mask, and slopes, of this thread's queries i[2] of heads h[2], whose keys begin at key0. */
struct attention_change_rows {
  int64_t bias[2], mask[2];
  float slope[2];
  __device__ __forceinline__ attention_change_rows() {}
  __device__ __forceinline__ attention_change_rows(const cuda_attention_change &c, int b, const int (&h)[2], const int (&i)[2], int key0 = 0)
  {
#pragma unroll
    for (int r = 0; r < 2; r++) {
      auto at = [&](const cuda_attention_spread &t) { return b * t.stride[0] + h[r] * t.stride[1] + i[r] * t.stride[2] + key0 * t.stride[3]; };
      bias[r] = at(c.bias), mask[r] = at(c.mask);
      slope[r] = c.slopes ? c.slopes[b * c.slopes_stride[0] + h[r] * c.slopes_stride[1]] : 0;
    }
  }
};
/* PRECISE: of f32. Scores of keys from `block` on. at: keys at which these rows' distance is 0. */
template <bool PRECISE, int N>
__device__ __forceinline__ void attention_changed(const cuda_attention_change &c, const attention_change_rows &rows, const int (&at)[2], int block,
                                                  int keys, float (&s)[N])
{
  const int key = block + threadIdx.x % 4 * 2;
  if (c.valued) {
    float by = c.scale;                   /* of scores that are not yet scaled */
    if (c.softcap > 0) {
#pragma unroll
      for (int i = 0; i < N; i++) s[i] = attention_capped<PRECISE>(s[i] * by, c.softcap);
      by = 1;
    }
    if (N % 16 == 0 && c.bias_pieces) attention_bias_now(c, rows.bias, block, keys, by, s);
    else if (c.bias.dtype == QN_F32 && c.bias.p) attention_bias_each<QN_F32>(c, rows.bias, key, keys, by, s);
    else if (c.bias.dtype == QN_BF16 && c.bias.p) attention_bias_each<QN_BF16>(c, rows.bias, key, keys, by, s);
    else if (c.bias.p) attention_bias_each<QN_F16>(c, rows.bias, key, keys, by, s);
    else {
#pragma unroll
      for (int i = 0; i < N; i++) s[i] *= by;
    }
    if (c.slopes) {
#pragma unroll
      for (int i = 0; i < N; i++) s[i] = fmaf(-rows.slope[i / 2 % 2], (float)abs(at[i / 2 % 2] - key - i / 4 * 8 - i % 2), s[i]);
    }
  }
  if (c.mask.p) attention_masked(c, rows.mask, block, keys, s);
}
/* One score, of key j, from the product of query and key; -Inf if the mask hides it. */
static __device__ __noinline__ float attention_changed_one(const cuda_attention_change &c, int b, int h, int i, int j, int distance,
                                                           float x, bool &hidden)
{
  auto from = [&](const cuda_attention_spread &t) { return b * t.stride[0] + h * t.stride[1] + i * t.stride[2] + j * t.stride[3]; };
  if (c.valued) {
    x *= c.scale;
    if (c.softcap > 0) x = attention_capped<true>(x, c.softcap);
    if (c.bias.p) x += element_load<float>(c.bias.p, from(c.bias), dtype3(c.bias.dtype));
    if (c.slopes) x = fmaf(-c.slopes[b * c.slopes_stride[0] + h * c.slopes_stride[1]], (float)abs(distance), x);
  }
  hidden = c.mask.p && !((const uint8_t *)c.mask.p)[from(c.mask)];
  return hidden ? -INFINITY : x;
}
