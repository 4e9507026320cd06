/* rnn_grid_weights.cuh -- how a block of rnn_grid.cuh keeps its weights and multiplies by them. W:
 *   rnn_mma    bf16, f16 by mma.sync: lines are rows of A, sequences columns of B. Of 32 numbers along the depth a lane takes 8 side by
 *              side, in A and B alike, as k 2q, 2q + 1, 2q + 8, 2q + 9 of two products
 *   rnn_wgmma  the same by wgmma (rnn_grid_wgmma.cu): both operands in shared memory, two warpgroups share out the depth
 *   rnn_simt   f32: a thread keeps 4 numbers of each of LINES lines; lanes exchange halves of their sums until each has a line's */
#pragma once
#include "rnn_cells.cuh"
#include "rnn_grid.h"
#include "kit/sm80.cuh"

/* The row of the weights that is line l of this block; -1: none. */
struct rnn_lines {
  int units, unit0, hidden, gates, shift;
  __device__ __forceinline__ int64_t row(int l) const
  {
    const int g = l >> shift, u = l & (units - 1);
    return g < gates && unit0 + u < hidden ? (int64_t)g * hidden + unit0 + u : -1;
  }
};

/* 16 TILES lines, 256 BLOCKS numbers along the depth: of a warp's blocks of 32 the first KEPT lie in registers, the others in shared
 * memory. As few blocks of each warp as the depth needs are used. */
template <bool bf16, int TILES, int BLOCKS, int KEPT> struct rnn_mma {
  typedef uint16_t number;
  static constexpr uint32_t dtype = bf16 ? QN_BF16 : QN_F16;
  static constexpr bool resident = false;
  static constexpr int lines = 16 * TILES, slices = CUDA_RNN_GRID_THREADS / 32, at_once = TILES >= 4 || BLOCKS >= 8 ? 1 : 2;
  static constexpr int group = 8 * at_once, pieces = at_once * BLOCKS, LAID = BLOCKS - KEPT;
  static constexpr bool FEW = BLOCKS <= 4;        /* so few that not asking which of them there are is worth code of its own */
  static constexpr int CHAINS = TILES >= 4 ? 1 : TILES > 1 ? 2 : 4;          /* few sums are made in several chains */
  static constexpr int laid = 8 * TILES * LAID * CUDA_RNN_GRID_THREADS;      /* numbers of 4 bytes of weights in shared memory */
  uint32_t a[TILES][KEPT][2][4];
  const uint4 *more_a;                    /* this thread's: [tile][block][half][thread] */

  static __device__ __forceinline__ uint16_t pack(float x) { return bf16 ? float_to_bf16(x) : float_to_f16(x); }
  static __device__ __forceinline__ float open(uint16_t x) { return bf16 ? bf16_to_float(x) : f16_to_float(x); }
  static __device__ __forceinline__ int depth_of(const cuda_rnn_grid &p, int block)
  {
    return (threadIdx.x / 32 * p.blocks + block) * 32 + threadIdx.x % 4 * 8;
  }

  __device__ __forceinline__ void load(const cuda_rnn_grid &p, const void *weights, int64_t row_step, const rnn_lines &of, int,
                                       float *room)
  {
    const int lane = threadIdx.x % 32;
    uint4 *to = (uint4 *)room + threadIdx.x;
    more_a = to;
#pragma unroll
    for (int m = 0; m < TILES; m++) {
      const int64_t row = of.row(m * 16 + lane / 4), other = of.row(m * 16 + 8 + lane / 4);
#pragma unroll
      for (int i = 0; i < BLOCKS; i++) {
        const int k = depth_of(p, i);
        const bool there = i < p.blocks && k < p.depth;
        const uint16_t *from = (const uint16_t *)weights + k;
        const uint4 v = there && row >= 0 ? *(const uint4 *)(from + row * row_step) : make_uint4(0, 0, 0, 0);
        const uint4 w = there && other >= 0 ? *(const uint4 *)(from + other * row_step) : make_uint4(0, 0, 0, 0);
        if (i < KEPT) {
          const int at = i < KEPT ? i : 0;
          a[m][at][0][0] = v.x, a[m][at][0][1] = w.x, a[m][at][0][2] = v.y, a[m][at][0][3] = w.y;
          a[m][at][1][0] = v.z, a[m][at][1][1] = w.z, a[m][at][1][2] = v.w, a[m][at][1][3] = w.w;
        } else {
          to[((m * LAID + i - KEPT) * 2) * CUDA_RNN_GRID_THREADS] = make_uint4(v.x, w.x, v.y, w.y);
          to[((m * LAID + i - KEPT) * 2 + 1) * CUDA_RNN_GRID_THREADS] = make_uint4(v.z, w.z, v.w, w.w);
        }
      }
    }
  }
  /* This thread's pieces of `group` sequences from n on. */
  __device__ __forceinline__ void fetch(const cuda_rnn_grid &p, const uint16_t *from, int n, uint32_t to) const
  {
    if (FEW && p.blocks == BLOCKS) fetch_blocks<true>(p, from, n, to);
    else fetch_blocks<false>(p, from, n, to);
    copy_async_commit();
  }
  template <bool all> __device__ __forceinline__ void fetch_blocks(const cuda_rnn_grid &p, const uint16_t *from, int n, uint32_t to) const
  {
#pragma unroll
    for (int j = 0; j < at_once; j++) {
      const uint16_t *first = from + (n + 8 * j + threadIdx.x % 32 / 4) * p.row + depth_of(p, 0);
      if (n + 8 * j >= p.batch_share) break;
#pragma unroll
      for (int i = 0; i < BLOCKS; i++) {
        if (!all && i >= p.blocks) break;
        copy_async<16>(to + (j * BLOCKS + i) * CUDA_RNN_GRID_THREADS * 16, first + 32 * i, 16);
      }
    }
  }
  __device__ __forceinline__ void multiply(const cuda_rnn_grid &p, const uint4 *mine, int n, float *sums) const
  {
    if (FEW && p.blocks == BLOCKS) multiply_blocks<true>(p, mine, n, sums);
    else multiply_blocks<false>(p, mine, n, sums);
  }
  template <bool all> __device__ __forceinline__ void multiply_blocks(const cuda_rnn_grid &p, const uint4 *mine, int n, float *sums) const
  {
    const int lane = threadIdx.x % 32, pitch = cuda_rnn_grid_pitch(p.batch_share);
    sums += (threadIdx.x / 32 * lines + lane / 4) * pitch + n + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < at_once; j++) {
      if (n + 8 * j >= p.batch_share) break;
      float sum[CHAINS][TILES][4] = {};
#pragma unroll
      for (int first = 0; first < BLOCKS; first += LAID ? 2 : 4) {
        constexpr int most = BLOCKS < 4 ? BLOCKS : LAID ? 2 : 4;
        uint4 b[most];                    /* all are under way before the first is multiplied, even if some are not wanted */
        if (!all && first >= p.blocks) break;
#pragma unroll
        for (int e = 0; e < most; e++) b[e] = mine[(j * BLOCKS + (first + e < BLOCKS ? first + e : 0)) * CUDA_RNN_GRID_THREADS];
#pragma unroll
        for (int e = 0; e < most; e++) {
          if (first + e >= BLOCKS || (!all && e && first + e >= p.blocks)) break;
          multiply_block(sum, first + e, b[e]);
        }
      }
#pragma unroll
      for (int m = 0; m < TILES; m++) {
        float total[4];
#pragma unroll
        for (int c = 0; c < 4; c++) {
          total[c] = sum[0][m][c];
          if (CHAINS > 1) total[c] += sum[CHAINS / 2][m][c];
          if (CHAINS > 2) total[c] += sum[1 % CHAINS][m][c] + sum[3 % CHAINS][m][c];
        }
        float *to = sums + m * 16 * pitch + 8 * j;
        *(float2 *)to = make_float2(total[0], total[1]);
        *(float2 *)(to + 8 * pitch) = make_float2(total[2], total[3]);
      }
    }
  }
  __device__ __forceinline__ void multiply_block(float (&sum)[CHAINS][TILES][4], int block, const uint4 &b) const
  {
#pragma unroll
    for (int m = 0; m < TILES; m++) {
      float (&one)[4] = sum[2 * block % CHAINS][m], (&two)[4] = sum[(2 * block + 1) % CHAINS][m];
      if (block < KEPT) {
        product(one, a[m][block < KEPT ? block : 0][0], b.x, b.y);
        product(two, a[m][block < KEPT ? block : 0][1], b.z, b.w);
        continue;
      }
      const uint4 *from = more_a + (m * LAID + block - KEPT) * 2 * CUDA_RNN_GRID_THREADS, v = from[0], w = from[CUDA_RNN_GRID_THREADS];
      const uint32_t first[4] = { v.x, v.y, v.z, v.w }, second[4] = { w.x, w.y, w.z, w.w };
      product(one, first, b.x, b.y);
      product(two, second, b.z, b.w);
    }
  }
  static __device__ __forceinline__ void product(float (&d)[4], const uint32_t (&x)[4], uint32_t b0, uint32_t b1)
  {
    if (bf16) mma_bf16::product(d, x, b0, b1);
    else mma_f16::product(d, x, b0, b1);
  }
};

template <int LINES, int QUADS> struct rnn_simt {               /* LINES lines, QUADS times 4 numbers of each a thread */
  typedef float number;
  static constexpr uint32_t dtype = QN_F32;
  static constexpr bool resident = false;
  static constexpr int lines = LINES, slices = 0, group = 8 / QUADS, pieces = 8, laid = 0;
  float4 w[LINES][QUADS];

  static __device__ __forceinline__ float pack(float x) { return x; }
  static __device__ __forceinline__ float open(float x) { return x; }
  static __device__ __forceinline__ int depth_of(const cuda_rnn_grid &p, int quad)
  {
    const int along = CUDA_RNN_GRID_THREADS / p.groups;
    return (quad * along + threadIdx.x % along) * 4;
  }
  __device__ __forceinline__ void load(const cuda_rnn_grid &p, const void *weights, int64_t row_step, const rnn_lines &of, int part,
                                       float *)
  {
#pragma unroll
    for (int l = 0; l < LINES; l++) {
      const int64_t row = of.row(part * LINES + l);
#pragma unroll
      for (int i = 0; i < QUADS; i++) {
        const int k = depth_of(p, i);
        w[l][i] = row >= 0 && k < p.depth ? *(const float4 *)((const float *)weights + row * row_step + k) : make_float4(0, 0, 0, 0);
      }
    }
  }
  __device__ __forceinline__ void fetch(const cuda_rnn_grid &p, const float *from, int n, uint32_t to) const
  {
#pragma unroll
    for (int j = 0; j < group; j++)
#pragma unroll
      for (int i = 0; i < QUADS; i++) {
        const int k = depth_of(p, i);
        const bool there = k < p.depth && n + j < p.batch_share;
        const uint32_t at = to + (j * QUADS + i) * CUDA_RNN_GRID_THREADS * 16;
        if (n + j < p.batch_share) copy_async<16>(at, from + (there ? (int64_t)(n + j) * p.depth + k : 0), there ? 16 : 0);
      }
    copy_async_commit();
  }
  __device__ __forceinline__ void multiply(const cuda_rnn_grid &p, const uint4 *mine, int n, float *sums) const
  {
    const int lane = threadIdx.x % 32, pitch = cuda_rnn_grid_pitch(p.batch_share);
    sums += (threadIdx.x / 32 * LINES + lane % LINES) * pitch + n;
#pragma unroll 1
    for (int j = 0; j < group && n + j < p.batch_share; j++) {
      float sum[LINES] = {};
#pragma unroll
      for (int i = 0; i < QUADS; i++) {
        const float4 x = *(const float4 *)&mine[(j * QUADS + i) * CUDA_RNN_GRID_THREADS];
#pragma unroll
        for (int l = 0; l < LINES; l++)
          sum[l] = fmaf(w[l][i].x, x.x, fmaf(w[l][i].y, x.y, fmaf(w[l][i].z, x.z, fmaf(w[l][i].w, x.w, sum[l]))));
      }
      rnn_fold<LINES / 2>(sum, lane);
#pragma unroll
      for (int half = LINES; half < 32; half *= 2) sum[0] += __shfl_xor_sync(~0u, sum[0], half);
      if (lane < LINES) sums[j] = sum[0];
    }
  }
};
