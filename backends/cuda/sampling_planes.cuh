/* sampling_planes.cuh -- planes that lie in memory one after another, through a ring in shared memory: two of them at once are there for points
 * that look anywhere, and what has room of the next two is on its way. */
#pragma once
#include "sampling.cuh"
#include "shared_memory.h"
#include "sm80.cuh"

enum { RING_THREADS = 1024 };

/* Bytes: of a plane, of one of its lines, of the ring (lines, words of 16); from one plane to the next in memory. */
struct planes { int32_t plane, line, ring; int64_t down; };

struct plane_ring {
  const planes &s;
  const char *from;
  uint32_t to;
  int32_t  count, next, at, place, held;  /* planes; what is copied next: a plane and how far into it, and to where; bytes that are here */

  __device__ __forceinline__ plane_ring(const planes &s, const char *from, void *shared, int32_t count)
    : s(s), from(from), to(shared_address(shared)), count(count), next(0), at(0), place(0), held(0) {}

  __device__ __forceinline__ int32_t wrapped(int32_t v) const { return v < s.ring ? v : v - s.ring; }
  __device__ __forceinline__ void fill(int32_t bytes)
  {
#pragma unroll 1
    while (bytes > 0 && next < count) {
      const int32_t n = min(bytes, s.plane - at);
      const char *p = from + next * s.down + at;
#pragma unroll 1
      for (int32_t i = threadIdx.x * 16; i < n; i += RING_THREADS * 16) copy_async<16>(to + wrapped(place + i), p + i, 16);
      bytes -= n, held += n, at += n, place = wrapped(place + n);
      if (at == s.plane) at = 0, next++;
    }
    copy_async_commit();
  }
  /* The next two planes, and the loads of what follows; then the block is done with them. */
  __device__ __forceinline__ void open()
  {
    fill(2 * s.plane - held);
    copy_async_wait<0>();
    __syncthreads();
    fill(s.ring - held);
  }
  __device__ __forceinline__ void close()
  {
    __syncthreads();
    held -= min(held, 2 * s.plane);
  }
};

/* ---- host ---------------------------------------------------------------------------------------------------------- */

static inline bool points_are_packed(const qn_value *grid)
{
  return grid->stride[3] == 1 && grid->stride[2] == 2 && grid->stride[1] == 2 * grid->dim[2];
}

/* Has v planes of lines without gaps that begin at words of 16 bytes? */
static inline bool planes_are_whole(const qn_value *v)
{
  const int64_t each = 16 / qn_kit_bytes(v->dtype), size = v->dim[2] * v->dim[3];
  return v->align >= 16 && (v->stride[3] == 1 || v->dim[3] == 1) && (v->stride[2] == v->dim[3] || v->dim[2] == 1) && size % each == 0 && v->stride[0] % each == 0 &&
         v->stride[1] % each == 0;
}

/* The ring for `channels` planes of v; its size is 0: two do not fit. */
static inline planes planes_of(const qn_value *v, int64_t channels, uint64_t most)
{
  const int64_t bytes = qn_kit_bytes(v->dtype), line = v->dim[3] * bytes, plane = v->dim[2] * line;
  int64_t word = line;
  while (word % 16) word *= 2;
  int64_t ring = qn_min_i64((int64_t)most / word * word, qn_round_up(channels * plane, word));
  if (ring < qn_min_i64(channels, 2) * plane) ring = 0;
  return { (int32_t)plane, (int32_t)line, (int32_t)ring, v->stride[1] * bytes };
}
