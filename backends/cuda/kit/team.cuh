/* team.cuh -- exchange between the blocks of a team: pairs of floats, each float in a 64-bit word with the item's number as a
 * tag, so that readers poll the data itself, without counters and fences.
 *
 * Buffers are reused in turn. A block with at most n items in flight publishes item i only after it has read all parts of item
 * i - n, whose publishers had by then read all parts of item i - 2n. So 2n buffers suffice. */
#pragma once
#include "sm90.cuh"
#include "team.h"

struct team_member {
  const cuda_team &t;
  int      team, rank;
  ulonglong2 *published;                  /* of this team: [turns, parts + totals, each] */

  /* shared: cuda_team_shared bytes of the block's shared memory; unused without a cluster. */
  __device__ team_member(const cuda_team &team_of, ulonglong2 *shared) : t(team_of)
  {
    team = (int)(blockIdx.x / (uint32_t)t.parts), rank = (int)(blockIdx.x - team * (uint32_t)t.parts);
    published = t.cluster ? shared : (ulonglong2 *)t.published + team * cuda_team_words(&t);
  }
  /* The whole block, before anything is published: clears the tags. Global memory is zero already. */
  __device__ __forceinline__ void begin() const
  {
    if (t.parts == 1 || !t.cluster) return;
    for (int i = threadIdx.x; i < cuda_team_words(&t); i += blockDim.x) published[i] = make_ulonglong2(0, 0);
    __syncthreads();
#if __CUDA_ARCH__ >= 900
    cluster_sync();
#endif
  }
  /* The words of a part; at: the item's buffer, item % t.turns. */
  __device__ __forceinline__ ulonglong2 *place(int at, int part) const { return published + (at * (t.parts + t.totals) + part) * t.each; }
  /* One thread: publishes pair i of the block's part. */
  __device__ __forceinline__ void publish(int item, int i, float2 v) const { publish_to(place(item % t.turns, rank) + i, item, v); }
  __device__ __forceinline__ void publish_to(ulonglong2 *to, int item, float2 v) const
  {
    uint64_t tag = (uint64_t)(uint32_t)(item + 1) << 32, x = tag | __float_as_uint(v.x), y = tag | __float_as_uint(v.y);
#if __CUDA_ARCH__ >= 900
    if (t.cluster) {
      for (int b = 0; b < t.parts; b++)
        asm volatile("st.relaxed.cluster.shared::cluster.v2.u64 [%0], {%1, %2};"
                     :: "r"(cluster_address(shared_address(to), b)), "l"(x), "l"(y) : "memory");
      return;
    }
#endif
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" :: "l"(to), "l"(x), "l"(y) : "memory");
  }
  /* One thread: waits for pair i of those published for an item, [parts, each]. */
  __device__ __forceinline__ float2 receive(int item, int i) const
  {
    const ulonglong2 *from = place(item % t.turns, 0) + i;
    uint64_t x, y;
    do
#if __CUDA_ARCH__ >= 900
      if (t.cluster)
        asm volatile("ld.relaxed.cluster.shared::cta.v2.u64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "r"(shared_address(from)) : "memory");
      else
#endif
      asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "l"(from) : "memory");
    while ((uint32_t)(x >> 32) != (uint32_t)item + 1 || (uint32_t)(y >> 32) != (uint32_t)item + 1);
    return make_float2(__uint_as_float((uint32_t)x), __uint_as_float((uint32_t)y));
  }
  /* A warp: each lane waits for N of the n pairs at `all`, from number `from` on, `apart` from one another (0 beyond n). All
   * loads are issued before a tag is checked. Global memory only. */
  template <int N>
  __device__ __forceinline__ void receive_some(const ulonglong2 *all, int item, int from, int apart, int n, float2 (&v)[N]) const
  {
    const uint32_t tag = (uint32_t)item + 1;
    bool there;
    do {
      uint64_t x[N], y[N];
      there = true;
#pragma unroll
      for (int j = 0; j < N; j++) {
        x[j] = y[j] = (uint64_t)tag << 32;
        if (from + j * apart < n)
          asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                       : "=l"(x[j]), "=l"(y[j]) : "l"(all + from + j * apart) : "memory");
      }
#pragma unroll
      for (int j = 0; j < N; j++) {
        there &= (uint32_t)(x[j] >> 32) == tag && (uint32_t)(y[j] >> 32) == tag;
        v[j] = make_float2(__uint_as_float((uint32_t)x[j]), __uint_as_float((uint32_t)y[j]));
      }
    } while (!__all_sync(~0u, there));
  }
  /* A warp: pair i of every part; a lane gets those of every 32nd part. */
  template <int N> __device__ __forceinline__ void receive_parts(int item, int i, float2 (&v)[N]) const
  {
    receive_some(place(item % t.turns, 0), item, threadIdx.x % 32 * t.each + i, 32 * t.each, t.parts * t.each, v);
  }
  /* A warp, after its block has read everything: that of the team's last block zeroes the team's global memory for the next launch. */
  __device__ __forceinline__ void leave_warp() const
  {
    const int words = (int)cuda_team_words(&t), lane = threadIdx.x % 32;
    uint32_t *met = (uint32_t *)((ulonglong2 *)t.published + (int64_t)t.teams * words) + team, before = 0;
    if (lane == 0) {
      __threadfence();
      before = atomicAdd(met, 1);
      __threadfence();
    }
    if (__shfl_sync(~0u, before, 0) != (uint32_t)t.parts - 1) return;
    if (lane == 0) *met = 0;
    for (int i = lane; i < words; i += 32) published[i] = make_ulonglong2(0, 0);
  }
  /* The whole block, at the end. A block of a cluster must not exit while others still store to it. */
  __device__ __forceinline__ void leave() const
  {
    if (t.parts == 1) return;
    __syncthreads();                      /* every thread has read all it needs */
#if __CUDA_ARCH__ >= 900
    if (t.cluster) {
      cluster_sync();
      return;
    }
#endif
    if (threadIdx.x < 32) leave_warp();
  }
};
