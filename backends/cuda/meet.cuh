/* meet.cuh -- blocks of a launch, all resident (it is a cooperative one), wait for one another. */
#pragma once
#include <stdint.h>

/* All of these blocks have come so far, and what they wrote before is seen. met: 0 before the first; `turn` counts from 1. */
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

/* The last one out leaves 0: all have seen the last meeting. */
__device__ __forceinline__ void blocks_leave(uint32_t *met, uint32_t blocks, uint32_t turns)
{
  if (threadIdx.x == 0 && atomicAdd(met, 1) == blocks * turns + blocks - 1) *met = 0;
}
