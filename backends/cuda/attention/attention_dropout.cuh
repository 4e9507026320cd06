/* attention_dropout.cuh -- which weights dropout takes, the same in forward and gradient, whatever the tiles: a draw of 16 bits for each
 * query and key, by the library's random numbers (kit/random.cuh). */
#pragma once
#include "attention_scores.cuh"
#include "kit/random.cuh"

/* Dropout's draws, of 16 bits, for query i and keys j, which is even, and j + 1; head: of those of all sequences. */
__device__ __forceinline__ uint32_t attention_draws(uint64_t seed, uint64_t offset, uint64_t head, int i, int j)
{
  uint32_t w[4];
  random_words(w, seed, offset + (head << 32), (uint64_t)(j / 8) | (uint64_t)i << 32);
  return j & 4 ? (j & 2 ? w[3] : w[2]) : (j & 2 ? w[1] : w[0]);
}
static __device__ __noinline__ uint4 attention_words(uint64_t seed, uint64_t offset, uint64_t head, int i, int j)
{
  uint32_t w[4];
  random_words(w, seed, offset + (head << 32), (uint64_t)(j / 8) | (uint64_t)i << 32);
  return make_uint4(w[0], w[1], w[2], w[3]);
}

/* The draws of an accumulator's row, query i: for this thread's two keys of each of four times eight from key j on, a multiple of 8. Of
 * these each thread of a quad makes one eight's. */
__device__ __forceinline__ void attention_row_draws(uint32_t (&draws)[4], uint64_t seed, uint64_t offset, uint64_t head, int i, int j)
{
  const uint4 w = attention_words(seed, offset, head, i, j + threadIdx.x % 4 * 8);
  draws[0] = w.x, draws[1] = w.y, draws[2] = w.z, draws[3] = w.w;
  quad_transpose(draws);
}
/* Where an accumulator's rows are keys: bit 4 c + 2 h + e, whether the draw of key j + 8 h + g, j a multiple of 8, and query i + 8 c + e
 * is below the threshold; c: 0, 1. Each of the eight threads that have these queries makes the draws of one query and eight keys. */
__device__ __forceinline__ uint32_t attention_column_drops(uint64_t seed, uint64_t offset, uint64_t head, int i, int j, uint32_t threshold)
{
  const uint32_t g = threadIdx.x % 32 / 4;
  const uint4 w = attention_words(seed, offset, head, i + (int)(g / 4 * 8 + g % 2), j + (int)(g / 2 % 2 * 8));
  uint32_t drops = 0;
#pragma unroll
  for (uint32_t r = 0; r < 8; r++) {
    const uint32_t to = g ^ r, lower = to & 2 ? w.y : w.x, upper = to & 2 ? w.w : w.z,
                   got = __shfl_xor_sync(~0u, to & 4 ? upper : lower, 4 * r);
    drops |= (uint32_t)((got >> 16 * (g & 1) & 0xffff) < threshold) << (g ^ r);
  }
  return drops;
}
