/* row.cuh -- a row by a warp, by a block, or (on Hopper) by a cluster of blocks of 512 threads: which row a thread has, and what
 * the row's warps tell one another. */
#pragma once
#include "sm90.cuh"

enum { ROW_MAX_PARTS = 8, ROW_SHARE = 16384 };            /* blocks for a row; elements of a block of 512 threads at most */
template <int threads> constexpr int row_block = threads < 128 ? 128 : threads;
template <int threads> constexpr int row_pairs = threads == 512 ? 16 * ROW_MAX_PARTS : 16;

/* Blocks, of that share, for a row of this length; 0: it is too long. */
static inline int row_parts(const qn_device *device, int64_t length, int64_t share)
{
  int parts = 1;
  while (parts < ROW_MAX_PARTS && length > share * parts) parts *= 2;
  return length > share * parts || (parts > 1 && device->arch_major < 9) ? 0 : parts;
}

/* The block's first row, counted in rows of a block (or cluster), and its rank in the cluster, which it tells that it has begun. */
template <int threads> __device__ __forceinline__ uint32_t row_enter(int parts, int *rank)
{
  *rank = 0;
#if __CUDA_ARCH__ >= 900
  if (threads == 512 && parts > 1) {
    *rank = (int)cluster_rank();
    cluster_arrive();
    return blockIdx.x / (uint32_t)parts;
  }
#endif
  return blockIdx.x;
}

/* Each warp's four to all warps of the row, in all its blocks; returns how many there are. A row of one block meets at a named
 * barrier. begun: the cluster has met since row_enter. */
template <int threads> __device__ __forceinline__ int row_exchange(int parts, int rank, int barrier, bool begun, float4 *pairs, float4 mine)
{
  constexpr int warps = threads / 32;
  int warp = threadIdx.x % threads / 32;
  if (threadIdx.x % 32 == 0) pairs[rank * warps + warp] = mine;
#if __CUDA_ARCH__ >= 900
  if (threads == 512 && parts > 1) {
    int to = threadIdx.x % 32;
    if (!begun) cluster_wait();
    if (to < parts && to != rank) cluster_store(cluster_address(shared_address(&pairs[rank * warps + warp]), to), mine.x, mine.y, mine.z, mine.w);
    cluster_sync();
    return warps * parts;
  }
#endif
  group_sync(barrier, threads);
  return warps;
}
