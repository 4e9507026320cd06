/* meet.cuh -- a grid-wide barrier for cooperative launches (all blocks resident). */
#pragma once
#include <stdint.h>

/* The barrier's two halves: this block has done its part; all blocks have. Release and acquire cost less than __threadfence. */
__device__ __forceinline__ void blocks_arrive(uint32_t *met)
{
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], %1;" :: "l"(met), "r"(1u) : "memory");
}
__device__ __forceinline__ void blocks_wait(uint32_t *met, uint32_t blocks, uint32_t turn)
{
  uint32_t arrived = 0;
  while (threadIdx.x == 0 && arrived < blocks * turn)
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(arrived) : "l"(met) : "memory");
  __syncthreads();
}

/* Barrier over `blocks` blocks; what any of them wrote before it is visible after it. met: 0 before the first; turn counts from 1. */
__device__ __forceinline__ void blocks_meet(uint32_t *met, uint32_t blocks, uint32_t turn)
{
  blocks_arrive(met);
  blocks_wait(met, blocks, turn);
}

/* Last call of each block: the last block resets met to 0, when all have passed the final barrier. */
__device__ __forceinline__ void blocks_leave(uint32_t *met, uint32_t blocks, uint32_t turns)
{
  if (threadIdx.x == 0 && atomicAdd(met, 1) == blocks * turns + blocks - 1) *met = 0;
}
