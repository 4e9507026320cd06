/* attention_dropout.cuh -- which weights dropout takes, the same in forward and gradient, whatever the tiles: a draw of 16 bits for each
 * query and key, by the library's random numbers (kit/random.cuh). */
#pragma once
#include "kit/random.cuh"

/* Dropout's draws, of 16 bits, for query i and keys j, which is even, and j + 1; head: of those of all sequences. */
__device__ __forceinline__ uint32_t attention_draws(uint64_t seed, uint64_t offset, uint64_t head, int i, int j)
{
  uint32_t w[4];
  random_words(w, seed, offset + (head << 32), (uint64_t)(j / 8) | (uint64_t)i << 32);
  return j & 4 ? (j & 2 ? w[3] : w[2]) : (j & 2 ? w[1] : w[0]);
}
