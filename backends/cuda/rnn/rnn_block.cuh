/* rnn_block.cuh -- what both kernels that take a sequence through all steps of a layer within one block share: the recurrent weights, which
 * stay in registers (of an lstm of more than 64 units a quarter in shared memory), and their product by what a step leaves.
 *
 * A warp has 32 / PARTS units, a unit PARTS lanes, each with EACH of its gates. Of the product a lane has LINES lines, of which LANES lanes
 * share out the depth, 4 numbers of each at a time: in the forward lines are the gates of its unit; in the gradient 4 units. */
#pragma once
#include "rnn_block.h"
#include "rnn_cells.cuh"
#include "kit/sm80.cuh"

enum { AHEAD = CUDA_RNN_BLOCK_AHEAD, BLOCK_THREADS = 256 };

/* What rnn_cells.cuh asks of a net, in registers. */
struct block_limits { int32_t cell; float clip; };

/* The same, as the compiler does not know: it would compute anew at every step, where that is waited for, what is cheap but slow to come,
 * as what it converts, the place of shared memory and the number of the thread. */
template <class T> __device__ __forceinline__ T block_held(T v) { return __shfl_sync(~0u, v, threadIdx.x % 32); }

template <int LINES, int LANES, int CHUNKS> struct block_weights {
  static constexpr int KEPT = CHUNKS * LINES < CUDA_RNN_BLOCK_KEPT ? CHUNKS : CUDA_RNN_BLOCK_KEPT / LINES;
  static constexpr int CHAINS = LINES == 1 ? 4 : 2, PITCH = CHUNKS * LANES * 4;
  float4 w[LINES][KEPT];
  const float4 *rest;                     /* of this thread: [chunk][line][thread] */
  int depth, part;                        /* part: of the depth, this lane's */
  uint32_t own;                           /* where in shared memory what is multiplied begins for this lane */

  __device__ __forceinline__ int place(int chunk) const { return (chunk * LANES + part) * 4; }
  template <class Load> __device__ __forceinline__ void load(float4 *room, Load of)
  {
    rest = room + threadIdx.x;
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
      float4 v[LINES];
      of(place(i), v);
#pragma unroll
      for (int l = 0; l < LINES; l++) {
        if (i < KEPT) w[l][i < KEPT ? i : 0] = v[l];
        else room[((i - KEPT) * LINES + l) * blockDim.x + threadIdx.x] = v[l];
      }
    }
  }
  /* Loads of 4 chunks are under way at once. */
  __device__ __forceinline__ void multiply(int skipped, float (&sum)[4]) const        /* skipped: numbers */
  {
    float chain[LINES][CHAINS] = {};
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
      if (i && i % 4 == 0 && i * LANES * 4 >= depth) break;
      float from[4];
      shared_load(from, own + 4 * (skipped + i * LANES * 4));
#pragma unroll
      for (int l = 0; l < LINES; l++) {
        const float4 v = i < KEPT ? w[l][i < KEPT ? i : 0] : rest[((i - KEPT) * LINES + l) * blockDim.x];
        float &to = chain[l][i % CHAINS];
        to = fmaf(v.x, from[0], to), to = fmaf(v.y, from[1], to), to = fmaf(v.z, from[2], to), to = fmaf(v.w, from[3], to);
      }
    }
#pragma unroll
    for (int l = 0; l < 4; l++) {
      sum[l] = 0;
      if (l >= LINES) continue;
      sum[l] = chain[l % LINES][0] + chain[l % LINES][1];
      if (CHAINS == 4) sum[l] += chain[l % LINES][2 % CHAINS] + chain[l % LINES][CHAINS - 1];
    }
  }
};

/* Of 2 half sums a lane keeps those of its bit. */
template <int half> __device__ __forceinline__ void block_halve(float (&sum)[4], int lane, int bit)
{
  const bool upper = lane & bit;
#pragma unroll
  for (int l = 0; l < half; l++) {
    const float keep = upper ? sum[l + half] : sum[l], give = upper ? sum[l] : sum[l + half];
    sum[l] = keep + __shfl_xor_sync(~0u, give, bit);
  }
}

/* Four numbers of a row of weights. */
__device__ __forceinline__ float4 block_four(const cuda_rnn_block &p, int direction, uint32_t dtype, int64_t row, int at, int n)
{
  const void *from = p.weights[direction];
  const int64_t e = row * p.weights_row[direction] + at * p.weights_step[direction];
  if (p.whole && at + 3 < n) {
    if (dtype == QN_F32) return *(const float4 *)((const float *)from + e);
    const uint2 v = *(const uint2 *)((const uint16_t *)from + e);
    const uint16_t half[4] = { (uint16_t)v.x, (uint16_t)(v.x >> 16), (uint16_t)v.y, (uint16_t)(v.y >> 16) };
    if (dtype == QN_F16) return make_float4(f16_to_float(half[0]), f16_to_float(half[1]), f16_to_float(half[2]), f16_to_float(half[3]));
    return make_float4(bf16_to_float(half[0]), bf16_to_float(half[1]), bf16_to_float(half[2]), bf16_to_float(half[3]));
  }
  float v[4];
#pragma unroll
  for (int i = 0; i < 4; i++) v[i] = at + i < n ? element_load<float>(from, e + i * p.weights_step[direction], dtype3(dtype)) : 0;
  return make_float4(v[0], v[1], v[2], v[3]);
}

/* A number of a tensor, from step to step: 31 bits of bytes. */
struct block_cursor {
  char *at;
  int step;
  uint32_t dtype;                         /* of nothing: none of the three */

  __device__ __forceinline__ block_cursor(void *p, uint32_t of, int64_t place, int64_t to_next)
    : at((char *)p + (of == QN_F32 ? 4 : 2) * place), step((of == QN_F32 ? 4 : 2) * (int)to_next), dtype(p ? of : ~0u) {}
  __device__ __forceinline__ block_cursor(const cuda_rnn_tensor &t, int64_t i, int64_t j, int64_t k, int forth)
    : block_cursor(t.p, t.dtype, rnn_at(t, i, j, k), forth * t.stride[0]) {}

  __device__ __forceinline__ explicit operator bool() const { return dtype != ~0u; }
  __device__ __forceinline__ void go() { at += step; }
  __device__ __forceinline__ void put(float v, int beyond = 0) const        /* beyond: elements */
  {
    const uint16_t half = dtype == QN_F16 ? float_to_f16(v) : float_to_bf16(v);
    if (dtype == QN_F32) __stcg((float *)at + beyond, v);
    if (dtype == QN_F16 || dtype == QN_BF16) __stcg((uint16_t *)at + beyond, half);          /* no table of branches */
  }
  /* As it lies; opened when it has come. */
  __device__ __forceinline__ uint32_t get(int beyond = 0) const
  {
    return dtype == QN_F32 ? __ldg((const uint32_t *)at + beyond) : __ldg((const uint16_t *)at + beyond);
  }
  __device__ __forceinline__ float open(uint32_t raw) const
  {
    return dtype == QN_F32 ? __uint_as_float(raw) : dtype == QN_F16 ? f16_to_float((uint16_t)raw) : bf16_to_float((uint16_t)raw);
  }
};

/* Shared memory: the net; what a step reads and what it writes; in the forward sums of x of the steps to come; weights. */
struct block_room {
  cuda_rnn *net;
  float *states, *ring;
  float4 *rest;
  __device__ __forceinline__ block_room(void *room, int pitch, int each)
  {
    net = (cuda_rnn *)room;
    states = (float *)((char *)room + (sizeof(cuda_rnn) + 15) / 16 * 16);
    ring = states + 2 * pitch;
    rest = (float4 *)(ring + AHEAD * each * blockDim.x);
  }
};
