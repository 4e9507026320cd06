/* team.cuh -- what the blocks of a team tell one another: pairs of numbers, each of which carries the item's number, so that who
 * reads them sees whether they are there. No counter is met at, no fence is waited for.
 *
 * Places are used again in turn. A block with at most n items under way tells of item i when it has heard all of item i - n; who told of
 * that one had heard all of item i - 2n. So 2n places suffice. */
#pragma once
#include "sm90.cuh"
#include "team.h"

struct team_member {
  const cuda_team &t;
  int      team, rank;
  ulonglong2 *told;                       /* [turns, parts, each] */

  /* shared: the block's own, of cuda_team_shared bytes, if there are any. */
  __device__ team_member(const cuda_team &team_of, ulonglong2 *shared) : t(team_of)
  {
    team = (int)(blockIdx.x / (uint32_t)t.parts), rank = (int)(blockIdx.x - team * (uint32_t)t.parts);
    told = t.cluster ? shared : (ulonglong2 *)t.told + team * cuda_team_words(&t);
  }
  /* All of a block, before anything is told. */
  __device__ __forceinline__ void begin() const
  {
    if (t.parts == 1 || !t.cluster) return;
    for (int i = threadIdx.x; i < cuda_team_words(&t); i += blockDim.x) told[i] = make_ulonglong2(0, 0);
    __syncthreads();
#if __CUDA_ARCH__ >= 900
    cluster_sync();
#endif
  }
  /* What a part tells of an item: places take turns, and at is the item's, item % t.turns. */
  __device__ __forceinline__ ulonglong2 *place(int at, int part) const { return told + (at * (t.parts + t.totals) + part) * t.each; }
  /* One thread: pair i of the block's part. */
  __device__ __forceinline__ void tell(int item, int i, float2 v) const { tell_to(place(item % t.turns, rank) + i, item, v); }
  __device__ __forceinline__ void tell_to(ulonglong2 *to, int item, float2 v) const
  {
    uint64_t tag = (uint64_t)(uint32_t)(item + 1) << 32, x = tag | __float_as_uint(v.x), y = tag | __float_as_uint(v.y);
#if __CUDA_ARCH__ >= 900
    if (t.cluster) {
      for (int b = 0; b < t.parts; b++)
        asm volatile("st.relaxed.cluster.shared::cluster.v2.u64 [%0], {%1, %2};" :: "r"(cluster_address(shared_address(to), b)), "l"(x), "l"(y) : "memory");
      return;
    }
#endif
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" :: "l"(to), "l"(x), "l"(y) : "memory");
  }
  /* One thread: pair i of all that are told of an item, [parts, each]. */
  __device__ __forceinline__ float2 hear(int item, int i) const
  {
    const ulonglong2 *from = place(item % t.turns, 0) + i;
    uint64_t x, y;
    do
#if __CUDA_ARCH__ >= 900
      if (t.cluster) asm volatile("ld.relaxed.cluster.shared::cta.v2.u64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "r"(shared_address(from)) : "memory");
      else
#endif
      asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "l"(from) : "memory");
    while ((uint32_t)(x >> 32) != (uint32_t)item + 1 || (uint32_t)(y >> 32) != (uint32_t)item + 1);
    return make_float2(__uint_as_float((uint32_t)x), __uint_as_float((uint32_t)y));
  }
  /* A warp: each lane's pairs at `from`, so many apart, of n that are told of an item (beyond: 0); all words are asked for before one is
   * looked at. */
  template <int N> __device__ __forceinline__ void hear_some(const ulonglong2 *all, int item, int from, int apart, int n, float2 (&v)[N]) const
  {
    const uint32_t tag = (uint32_t)item + 1;
    bool there;
    do {
      uint64_t x[N], y[N];
      there = true;
#pragma unroll
      for (int j = 0; j < N; j++) {
        x[j] = y[j] = (uint64_t)tag << 32;
        if (from + j * apart < n) asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(x[j]), "=l"(y[j]) : "l"(all + from + j * apart) : "memory");
      }
#pragma unroll
      for (int j = 0; j < N; j++) {
        there &= (uint32_t)(x[j] >> 32) == tag && (uint32_t)(y[j] >> 32) == tag;
        v[j] = make_float2(__uint_as_float((uint32_t)x[j]), __uint_as_float((uint32_t)y[j]));
      }
    } while (!__all_sync(~0u, there));
  }
  /* Pair i of all parts, each lane every 32nd's. */
  template <int N> __device__ __forceinline__ void hear_parts(int item, int i, float2 (&v)[N]) const
  {
    hear_some(place(item % t.turns, 0), item, threadIdx.x % 32 * t.each + i, 32 * t.each, t.parts * t.each, v);
  }
  /* A warp, when its block has heard all: the last block's leaves what is global 0. */
  __device__ __forceinline__ void leave_warp() const
  {
    const int words = (int)cuda_team_words(&t), lane = threadIdx.x % 32;
    uint32_t *met = (uint32_t *)((ulonglong2 *)t.told + (int64_t)t.teams * words) + team, before = 0;
    if (lane == 0) {
      __threadfence();
      before = atomicAdd(met, 1);
      __threadfence();
    }
    if (__shfl_sync(~0u, before, 0) != (uint32_t)t.parts - 1) return;
    if (lane == 0) *met = 0;
    for (int i = lane; i < words; i += 32) told[i] = make_ulonglong2(0, 0);
  }
  /* All of a block, at the end: nothing is told to a block that has ended. */
  __device__ __forceinline__ void leave() const
  {
    if (t.parts == 1) return;
    __syncthreads();                      /* all is heard */
#if __CUDA_ARCH__ >= 900
    if (t.cluster) {
      cluster_sync();
      return;
    }
#endif
    if (threadIdx.x < 32) leave_warp();
  }
};
