/* rnn_wavefront.cuh -- all steps of several layers in one kernel: while a layer is at a step, the one below it is at the next.
 *
 *   sums [64 lines][64 sequences] = weights of what the layer takes [lines][depth] inputs + recurrent weights [lines][depth] states
 *
 * A block keeps both kinds of weights of its lines from the first step to the last: the first in registers, as wgmma's a, the others in
 * shared memory. Two warpgroups share out the depth, chunk by chunk of 64 numbers. A thread of a third one copies what is multiplied,
 * tiles that lie in global memory as wgmma reads them, to a ring of stages: those of the inputs as soon as the layer below has left them,
 * which is long before the states of the step before; so a block multiplies by inputs while it would wait for states.
 *
 * Each layer and share of the batch has a count of the blocks that have written their part of a step. Tiles of all steps are kept, so
 * nobody waits until they are read. All blocks are resident (a cooperative launch). */
#pragma once
#include "rnn_cells.cuh"
#include "rnn_wavefront.h"
#include "kit/wgmma.cuh"

/* The bytes of number k of line l in shared memory, [chunk][64 lines][128 bytes], swizzled. */
__device__ __forceinline__ uint32_t front_place(int l, int k)
{
  return (uint32_t)((k / 64 * 64 + l) * 128 + ((k % 64 / 8 ^ l % 8) << 4) + k % 8 * 2);
}
/* The least a count must be. What the asynchronous proxy reads is ordered by it, too. */
__device__ __forceinline__ void front_wait(const uint32_t *count, uint32_t least)
{
  uint32_t now;
  do
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(count) : "memory");
  while (now < least);
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
/* Which gate a line of four is the sum of, of the inputs' weights and of the recurrent ones; -1: none. A gru's n has two sums. */
__device__ __forceinline__ int front_gate(const cuda_rnn &net, bool recurrent, int slot)
{
  if (net.cell == QN_RNN_LSTM) return slot;
  if (net.cell != QN_RNN_GRU) return slot ? -1 : 0;
  return slot < 2 ? slot : slot == 2 ? (recurrent ? -1 : 2) : recurrent ? 2 : -1;
}

template <bool bf16, int BLOCKS> struct front_block {        /* 128 BLOCKS numbers along the depth of each kind of weights */
  static constexpr int kind = bf16 ? MMA_BF16 : MMA_F16, RING = BLOCKS == 8 ? 5 : 8, STAGE = 2 * CUDA_RNN_FRONT_TILE;
  static constexpr uint32_t dtype = bf16 ? QN_BF16 : QN_F16;
  static constexpr int ring_at = BLOCKS * STAGE, room_at = ring_at + RING * STAGE;      /* shared memory: weights, ring, `room`, barriers */
  static constexpr int shared_with(int room) { return room_at + room + 16 * RING + 16; }
  const cuda_rnn_front &p;
  const cuda_rnn_front_layer &layer;
  const cuda_rnn &net;
  int index, share, block, b0, half, warp, lane;          /* half: the warpgroup; warp: within it */
  uint32_t shared, full, empty, at, phase;
  uint32_t *own, *below;                  /* counts of this layer, of the one its inputs come from */
  uint32_t a[4 * BLOCKS][4];

  static __device__ __forceinline__ uint16_t pack(float x) { return bf16 ? float_to_bf16(x) : float_to_f16(x); }

  __device__ __forceinline__ front_block(const cuda_rnn_front &given, char *room, int room_bytes)
    : p(given), layer(given.layer[blockIdx.x / (given.unit_blocks * given.shares)]), net(layer.net)
  {
    block = blockIdx.x % p.unit_blocks, share = blockIdx.x / p.unit_blocks % p.shares, index = blockIdx.x / (p.unit_blocks * p.shares);
    b0 = share * CUDA_RNN_FRONT_SHARE, half = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    own = p.met + (index * p.shares + share) * 32, below = own - p.shares * 32;
    shared = shared_address(room), full = shared + room_at + room_bytes, empty = full + 8 * RING, at = 0, phase = 0;
    if (threadIdx.x == 0)
      for (int i = 0; i < RING; i++) barrier_init(full + 8 * i, 1), barrier_init(empty + 8 * i, 8);
    barrier_init_fence();
    __syncthreads();
  }
  __device__ __forceinline__ void next()
  {
    if (++at == RING) at = 0, phase ^= 1;
  }
  __device__ __forceinline__ static void sync() { group_sync(1, 256); }

  /* Adds up both warpgroups' halves of the depth: each keeps half of the sums and leaves the others in `swap`. each(n, ...): four sums. */
  static constexpr int SWAP = 2 * 4 * 128 * 16;
  template <class F> __device__ __forceinline__ void join(const float (&d)[32], float4 *swap, const F &each) const
  {
    float4 *to = swap + half * 512 + threadIdx.x % 128;
#pragma unroll
    for (int n = 0; n < 4; n++) {
      const int own = 4 * n, other = 16 + 4 * n;
      to[n * 128] = half ? make_float4(d[own], d[own + 1], d[own + 2], d[own + 3])
                         : make_float4(d[other], d[other + 1], d[other + 2], d[other + 3]);
    }
    sync();
    const float4 *from = swap + (1 - half) * 512 + threadIdx.x % 128;
#pragma unroll
    for (int n = 0; n < 4; n++) {
      const int low = 4 * n, high = 16 + 4 * n;
      const float4 more = from[n * 128];
      each(n, (half ? d[high] : d[low]) + more.x, (half ? d[high + 1] : d[low + 1]) + more.y, (half ? d[high + 2] : d[low + 2]) + more.z,
           (half ? d[high + 3] : d[low + 3]) + more.w);
    }
  }

  /* ---- the copying warp: one thread ---- */

  /* The step's tiles, `chunks` of them, then zeros. */
  __device__ __forceinline__ void copy(const char *from, int chunks)
  {
    for (int i = 0; i < BLOCKS; i++) {
      barrier_wait(empty + 8 * at, phase ^ 1);
      barrier_expect(full + 8 * at, STAGE);
      for (int g = 0; g < 2; g++) {
        const int chunk = g * BLOCKS + i;
        const void *tile = chunk < chunks ? from + (int64_t)chunk * CUDA_RNN_FRONT_TILE : (const char *)p.zeros;
        bulk_load(shared + ring_at + (2 * at + g) * CUDA_RNN_FRONT_TILE, tile, CUDA_RNN_FRONT_TILE, full + 8 * at);
      }
      next();
    }
  }
  __device__ __forceinline__ int64_t tiles_at(int slot, int chunks) const
  {
    return ((int64_t)share * p.slots + slot) * chunks * CUDA_RNN_FRONT_TILE;
  }

  /* ---- the other warps ---- */

  /* Weights to shared memory: F gives the address of a number, and says along which dim numbers lie side by side. */
  template <class F> __device__ __forceinline__ void fill(const F &of, char *to) const
  {
    constexpr int pieces = 64 * 128 * BLOCKS / 8;
#pragma unroll 4
    for (int i = threadIdx.x; i < pieces; i += 256) {
      const int k = F::along_depth ? i % (16 * BLOCKS) * 8 : i / 8, l = F::along_depth ? i / (16 * BLOCKS) : i % 8 * 8;
      const uint16_t *from = of.at(l, k);
      if (F::along_depth && of.whole) {   /* all 8 are there or none is */
        copy_async<16>(shared + front_place(l, k), from ? from : (const uint16_t *)p.zeros, from ? 16 : 0);
        continue;
      }
      uint4 word = make_uint4(0, 0, 0, 0);
      if (of.whole) {
        if (from) word = *(const uint4 *)from;
      } else {
        uint32_t w[4] = {};
        for (int e = 0; e < 8; e++) {
          const uint16_t *one = F::along_depth ? of.at(l, k + e) : of.at(l + e, k);
          w[e / 2] |= (one ? (uint32_t)*one : 0) << e % 2 * 16;
        }
        word = make_uint4(w[0], w[1], w[2], w[3]);
      }
      if constexpr (F::along_depth) *(uint4 *)(to + front_place(l, k)) = word;
      else {
        const uint32_t w[4] = { word.x, word.y, word.z, word.w };
#pragma unroll
        for (int e = 0; e < 8; e++) *(uint16_t *)(to + front_place(F::line(l + e), k)) = (uint16_t)(w[e / 2] >> e % 2 * 16);
      }
    }
    copy_async_commit();
    copy_async_wait<0>();
  }
  /* Both kinds: those of the inputs, by way of shared memory, to registers. */
  template <class F> __device__ __forceinline__ void load(const F &of_inputs, const F &recurrent, char *room)
  {
    fill(of_inputs, room);
    sync();
#pragma unroll
    for (int i = 0; i < 4 * BLOCKS; i++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        a[i][e] = *(const uint32_t *)(room + front_place(warp * 16 + lane / 4 + e % 2 * 8,
                                                         (half * BLOCKS * 4 + i) * 16 + e / 2 * 8 + lane % 4 * 2));
    sync();
    fill(recurrent, room);
    proxy_fence();
    sync();
  }
  __device__ __forceinline__ void release(uint32_t stage) const
  {
    if (lane == 0) barrier_arrive(empty + 8 * stage);
  }
  /* d (+)= this warpgroup's half of the weights times a step's tiles. */
  template <bool of_inputs> __device__ __forceinline__ void multiply(float (&d)[32], bool fresh)
  {
    uint32_t before = 0;
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
      const uint32_t tile = shared + ring_at + (2 * at + half) * CUDA_RNN_FRONT_TILE;
      const uint32_t rows = shared + (half * BLOCKS + i) * CUDA_RNN_FRONT_TILE;
      barrier_wait(full + 8 * at, phase);
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < 4; k++) {
        const uint64_t b = mma_descriptor(tile + 32 * k, 0, 1024, 128);
        if (of_inputs) wgmma_registers<kind, 0>(d, a[4 * i + k], b, !fresh || i || k);
        else wgmma<kind, 0, 0>(d, mma_descriptor(rows + 32 * k, 0, 1024, 128), b, !fresh || i || k);
      }
      wgmma_commit();
      if (i) {
        wgmma_wait<1>();
        release(before);
      }
      before = at;
      next();
    }
    wgmma_wait<0>();
    release(before);
  }
  /* This block's part of a step is written: all of its threads come here. */
  __device__ __forceinline__ void arrive() const
  {
    sync();
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], %1;" :: "l"(own), "r"(1u) : "memory");
  }
  /* The last block to come here leaves all counts 0. */
  __device__ __forceinline__ void leave() const
  {
    const int counts = p.layers * p.shares;
    uint32_t *left = p.met + counts * 32;
    if (threadIdx.x) return;
    __threadfence();                      /* this block's additions to `own` come before that to `left` */
    const bool last = atomicAdd(left, 1) == gridDim.x - 1;
    __threadfence();
    if (!last) return;
    for (int i = 0; i <= counts; i++) p.met[i * 32] = 0;
  }
};
