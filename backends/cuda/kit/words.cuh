/* words.cuh -- a row of f32, f16 or bf16 that begins at any element, as the aligned 16-byte words inside it; the few elements
 * before the first word and after the last (edges) go to one thread each.
 *
 * Rows with another phase (first element modulo a word) group their elements into words differently, so sums over words round
 * differently there. */
#pragma once
#include "vector.cuh"

struct row_words {
  int lead, count, left;                  /* elements before the words, words, elements after them */
};

template <int dtype> __device__ __forceinline__ row_words words_of(int64_t at, int length)
{
  constexpr int E = vector_per_16<dtype>;
  row_words w;
  w.lead = min((int)(-at & (E - 1)), length);
  w.count = (length - w.lead) / E;
  w.left = length - w.lead - w.count * E;
  return w;
}

enum { EDGE_THREADS = 15 };               /* threads needed for the edges of a row */

/* Index in the row of the edge element of thread t; -1: none. */
__device__ __forceinline__ int edge_of(const row_words &w, int length, int t)
{
  return t < w.lead ? t : t >= 8 && t < 8 + w.left ? length - w.left + t - 8 : -1;
}

template <int dtype> __device__ __forceinline__ float edge_load(const void *base, int64_t at)
{
  if (dtype == QN_F32) return ((const float *)base)[at];
  uint16_t h = ((const uint16_t *)base)[at];
  return dtype == QN_BF16 ? bf16_to_float(h) : f16_to_float(h);
}
template <int dtype> __device__ __forceinline__ void edge_store(void *base, int64_t at, float v)
{
  if (dtype == QN_F32) ((float *)base)[at] = v;
  else ((uint16_t *)base)[at] = dtype == QN_BF16 ? float_to_bf16(v) : float_to_f16(v);
}

/* A word of -Inf. */
template <int dtype> __device__ __forceinline__ uint4 word_of_least()
{
  constexpr uint32_t h = dtype == QN_F32 ? 0xff800000u : dtype == QN_BF16 ? 0xff80ff80u : 0xfc00fc00u;
  return make_uint4(h, h, h, h);
}
