/* meet.cuh -- a grid-wide barrier for cooperative launches (all blocks resident). */
#pragma once
#include <stdint.h>

/* Barrier over `blocks` blocks; what any of them wrote before it is visible after it. met: 0 before the first; turn counts from 1. */
__device__ __forceinline__ void blocks_meet(uint32_t *met, uint32_t blocks, uint32_t turn)
{
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(met, 1);
    while (*(volatile uint32_t *)met < blocks * turn) {}
    __threadfence();
  }
  __syncthreads();
}

/* Last call of each block: the last block resets met to 0, when all have passed the final barrier. */
__device__ __forceinline__ void blocks_leave(uint32_t *met, uint32_t blocks, uint32_t turns)
{
  if (threadIdx.x == 0 && atomicAdd(met, 1) == blocks * turns + blocks - 1) *met = 0;
}
