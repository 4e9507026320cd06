/* rnn_slice.cuh -- all steps of a layer of at most 128 units, in blocks that wait for nobody: a block has 8 sequences and all the weights.
 *
 * A warp has 16 units, whose weights are rows of A (mma.sync), in registers from the first step to the last; the columns are the sequences.
 * A thread's sums of the gates are those of the same 2 units of 2 sequences, so c and h stay with it; what all warps read of a step (h; the
 * slopes) is in shared memory, in two buffers in turn. Along the depth numbers are paired as in rnn_grid.cuh. */
#pragma once
#include "rnn_grid.cuh"

enum { RNN_SLICE_UNITS = 128, RNN_SLICE_BATCH = 8 };

/* Tile m, rows of both halves; row: of `weights`, -1: none. */
template <int BLOCKS>
__device__ __forceinline__ void rnn_slice_load(uint32_t (&a)[BLOCKS][2][4], const void *weights, int64_t row_step, const int64_t (&row)[2],
                                               int depth)
{
#pragma unroll
  for (int half = 0; half < 2; half++)
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
      const int k = i * 32 + threadIdx.x % 4 * 8;
      const uint4 v = row[half] >= 0 && k < depth ? *(const uint4 *)((const uint16_t *)weights + row[half] * row_step + k)
                                                  : make_uint4(0, 0, 0, 0);
      a[i][0][half] = v.x, a[i][0][2 + half] = v.y, a[i][1][half] = v.z, a[i][1][2 + half] = v.w;
    }
}

/* The units and sequences of a thread: sum c is of unit[c / 2] and sequence b[c % 2]. */
struct rnn_slice_part {
  int unit[2], b[2], length[2];
  bool has[2];                            /* unit */
  __device__ __forceinline__ rnn_slice_part(const cuda_rnn_grid &p, const cuda_rnn &net)
  {
    const int lane = threadIdx.x % 32, b0 = blockIdx.x % p.batch_blocks * RNN_SLICE_BATCH;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      unit[i] = threadIdx.x / 32 * 16 + lane / 4 + 8 * i, has[i] = unit[i] < net.hidden;
      b[i] = b0 + lane % 4 * 2 + i;
      length[i] = b[i] < net.batch ? (int)rnn_length(net, b[i]) : 0;
    }
  }
  __device__ __forceinline__ bool there(const cuda_rnn &net, int c) const { return has[c / 2] && b[c % 2] < net.batch; }
  __device__ __forceinline__ int64_t time(const cuda_rnn &net, int c, int s) const
  {
    return s < length[c % 2] && net.reversed ? length[c % 2] - 1 - s : s;
  }
};

template <bool bf16, int GATES> __global__ static void __launch_bounds__(CUDA_RNN_GRID_THREADS, 1)
    rnn_slice_forward(const __grid_constant__ cuda_rnn_grid p)
{
  typedef rnn_mma<bf16, 1, 1> mma;
  constexpr int BLOCKS = RNN_SLICE_UNITS / 32, PITCH = RNN_SLICE_UNITS + 32;        /* 64 bytes: reads of two sequences lie apart */
  __shared__ __align__(16) uint16_t states[2][RNN_SLICE_BATCH][PITCH];
  const int direction = blockIdx.x / p.batch_blocks, lane = threadIdx.x % 32, steps = (int)p.net[direction].steps;
  const cuda_rnn &net = p.net[direction];
  const rnn_slice_part at(p, net);
  uint32_t a[GATES][BLOCKS][2][4];
  float bias_x[GATES][2], bias_h[GATES][2], h[4], cell[4], x[GATES][4];
#pragma unroll
  for (int g = 0; g < GATES; g++) {
    int64_t row[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      row[i] = at.has[i] ? g * net.hidden + at.unit[i] : -1;
      bias_x[g][i] = at.has[i] ? rnn_get<float>(net.bw, row[i]) : 0;
      bias_h[g][i] = at.has[i] ? rnn_get<float>(net.br, row[i]) : 0;
    }
    rnn_slice_load(a[g], p.weights[direction], p.weights_row[direction], row, p.depth);
  }
  auto fetch = [&](float (&to)[GATES][4], int s) {
#pragma unroll
    for (int c = 0; c < 4; c++) {
      const bool inside = at.has[c / 2] && s < at.length[c % 2];
      const float *from = (const float *)net.sums + (at.time(net, c, s) * net.batch + at.b[c % 2]) * net.rows + at.unit[c / 2];
#pragma unroll
      for (int g = 0; g < GATES; g++) to[g][c] = inside ? from[g * net.hidden] : 0;
    }
  };
  for (int i = threadIdx.x; i < 2 * RNN_SLICE_BATCH * PITCH; i += CUDA_RNN_GRID_THREADS) (&states[0][0][0])[i] = 0;
  __syncthreads();
#pragma unroll
  for (int c = 0; c < 4; c++) {
    h[c] = at.there(net, c) ? rnn_get<float>(net.h0, at.b[c % 2], at.unit[c / 2]) : 0;
    cell[c] = at.there(net, c) ? rnn_get<float>(net.c0, at.b[c % 2], at.unit[c / 2]) : 0;
    states[0][lane % 4 * 2 + c % 2][at.unit[c / 2]] = mma::pack(h[c]);
  }
  fetch(x, 0);
  __syncthreads();
#pragma unroll 1
  for (int s = 0; s < steps; s++) {
    float next[GATES][4], sum[GATES][4] = {};
    fetch(next, s + 1);                   /* beyond the last: nothing is read */
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
      const uint4 v = *(const uint4 *)&states[s & 1][lane / 4][i * 32 + lane % 4 * 8];
#pragma unroll
      for (int g = 0; g < GATES; g++) {
        mma::product(sum[g], a[g][i][0], v.x, v.y);
        mma::product(sum[g], a[g][i][1], v.z, v.w);
      }
    }
    float gate[4][4] = {}, raw[4] = {};
#pragma unroll
    for (int c = 0; c < 4; c++) {
      if (s >= at.length[c % 2] || !at.has[c / 2]) continue;
      float own[4] = {};
#pragma unroll
      for (int g = 0; g < GATES; g++) {
        const float of_x = x[g][c] + bias_x[g][c / 2], of_h = sum[g][c] + bias_h[g][c / 2];
        if (GATES == 3 && g == 2) own[2] = of_x, own[3] = of_h;
        else own[g] = of_x + of_h;
      }
      if (GATES == 4) h[c] = rnn_lstm(net, own, cell[c], raw[c]);
      else h[c] = GATES == 3 ? rnn_gru(own, h[c]) : rnn_plain(net, own[0]);
#pragma unroll
      for (int g = 0; g < 4; g++) gate[g][c] = own[g];
    }
#pragma unroll
    for (int c = 0; c < 4; c++)
      if (at.has[c / 2]) states[~s & 1][lane % 4 * 2 + c % 2][at.unit[c / 2]] = mma::pack(h[c]);
    __syncthreads();
#pragma unroll
    for (int c = 0; c < 4; c++) {
      if (!at.there(net, c)) continue;
      const int b = at.b[c % 2], u = at.unit[c / 2];
      const int64_t t = at.time(net, c, s);
      rnn_give(net, t, b, u, s < at.length[c % 2] ? h[c] : 0.f);
      if (GATES > 1 && net.gates_at.p)
#pragma unroll
        for (int g = 0; g < 4; g++) rnn_put(net.gates_at, t, b, g * net.hidden + u, gate[g][c]);
      if (GATES == 4) rnn_put(net.cells_at, t, b, u, raw[c]);
    }
#pragma unroll
    for (int g = 0; g < GATES; g++)
#pragma unroll
      for (int c = 0; c < 4; c++) x[g][c] = next[g][c];
  }
#pragma unroll
  for (int c = 0; c < 4; c++) {
    if (!at.there(net, c)) continue;
    rnn_put(net.ht, at.b[c % 2], at.unit[c / 2], 0, h[c]);
    rnn_put(net.ct, at.b[c % 2], at.unit[c / 2], 0, cell[c]);
  }
}

/* Weights: r turned. h: what reaches h beside r (gru). */
template <bool bf16, int GATES> __global__ static void __launch_bounds__(CUDA_RNN_GRID_THREADS, 1)
    rnn_slice_backward(const __grid_constant__ cuda_rnn_grid p)
{
  typedef rnn_mma<bf16, 1, 1> mma;
  constexpr int KEPT = GATES == 1 ? 0 : 4, BLOCKS = GATES * RNN_SLICE_UNITS / 32, PITCH = GATES * RNN_SLICE_UNITS + 32;
  __shared__ __align__(16) uint16_t slopes[2][RNN_SLICE_BATCH][PITCH];
  const int direction = blockIdx.x / p.batch_blocks, lane = threadIdx.x % 32, steps = (int)p.net[direction].steps;
  const cuda_rnn &net = p.net[direction];
  const rnn_slice_part at(p, net);
  const int64_t row[2] = { at.has[0] ? at.unit[0] : -1, at.has[1] ? at.unit[1] : -1 };
  uint32_t a[BLOCKS][2][4];
  float h[4] = {}, dc[4], sum[4] = {};
  rnn_slice_load(a, p.weights[direction], p.weights_row[direction], row, p.depth);
  for (int i = threadIdx.x; i < 2 * RNN_SLICE_BATCH * PITCH; i += CUDA_RNN_GRID_THREADS) (&slopes[0][0][0])[i] = 0;
#pragma unroll
  for (int c = 0; c < 4; c++) dc[c] = at.there(net, c) ? rnn_get<float>(net.ct, at.b[c % 2], at.unit[c / 2]) : 0;
  __syncthreads();
  auto multiply = [&](int buffer) {
    float more[4] = {};
#pragma unroll
    for (int c = 0; c < 4; c++) sum[c] = 0;
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
      const uint4 v = *(const uint4 *)&slopes[buffer][lane / 4][i * 32 + lane % 4 * 8];
      mma::product(sum, a[i][0], v.x, v.y);
      mma::product(more, a[i][1], v.z, v.w);
    }
#pragma unroll
    for (int c = 0; c < 4; c++) sum[c] += more[c];
  };
#pragma unroll 1
  for (int s = steps - 1; s >= 0; s--) {
    float gate[4][4] = {}, raw[4] = {}, old[4] = {}, dy[4] = {}, of_h[4] = {};
#pragma unroll
    for (int c = 0; c < 4; c++) {         /* on their way while the product is made */
      if (s >= at.length[c % 2] || !at.has[c / 2]) continue;
      const int b = at.b[c % 2], u = at.unit[c / 2];
      const int64_t t = at.time(net, c, s), before = s ? at.time(net, c, s - 1) : 0;
#pragma unroll
      for (int g = 0; g < KEPT; g++) gate[g][c] = rnn_get<float>(net.gates_at, t, b, g * net.hidden + u);
      dy[c] = rnn_get<float>(net.dout, t, b, net.first + u);
      if (GATES == 4) {
        raw[c] = rnn_get<float>(net.cells_at, t, b, u);
        old[c] = s ? rnn_bounded(net, rnn_get<float>(net.cells_at, before, b, u)) : rnn_get<float>(net.c0, b, u);
      } else if (GATES == 3) old[c] = s ? rnn_get<float>(net.out, before, b, net.first + u) : rnn_get<float>(net.h0, b, u);
      else raw[c] = rnn_get<float>(net.out, t, b, net.first + u);
    }
    if (s < steps - 1) multiply(~s & 1);
#pragma unroll
    for (int c = 0; c < 4; c++) {
      if (s >= at.length[c % 2] || !at.has[c / 2]) continue;
      float own[4] = { gate[0][c], gate[1][c], gate[2][c], gate[3][c] };
      float dh = dy[c] + (s == at.length[c % 2] - 1 ? rnn_get<float>(net.ht, at.b[c % 2], at.unit[c / 2]) : sum[c] + h[c]);
      if (GATES == 4) rnn_lstm_slopes(net, own, raw[c], old[c], dh, dc[c]);
      else if (GATES == 3) {
        rnn_gru_slopes(own, old[c], dh, of_h[c]);
        h[c] = dh;
      } else own[0] = rnn_plain_slope(net, raw[c], dh);
#pragma unroll
      for (int g = 0; g < 4; g++) gate[g][c] = own[g];
    }
#pragma unroll
    for (int c = 0; c < 4; c++)
#pragma unroll
      for (int g = 0; g < GATES; g++) {
        const float v = GATES == 3 && g == 2 ? of_h[c] : gate[g][c];
        if (at.has[c / 2]) slopes[s & 1][lane % 4 * 2 + c % 2][g * net.hidden + at.unit[c / 2]] = mma::pack(v);
      }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < 4; c++) {
      if (!at.there(net, c)) continue;
      const int64_t to = (at.time(net, c, s) * net.batch + at.b[c % 2]) * net.rows + at.unit[c / 2];
#pragma unroll
      for (int g = 0; g < GATES; g++) {
        ((uint16_t *)net.slope_x)[to + g * net.hidden] = mma::pack(gate[g][c]);
        if (GATES == 3) ((uint16_t *)net.slope_h)[to + g * net.hidden] = mma::pack(g == 2 ? of_h[c] : gate[g][c]);
      }
    }
  }
  if (net.dh0.p) multiply(0);
#pragma unroll
  for (int c = 0; c < 4; c++) {
    if (!at.there(net, c)) continue;
    const int b = at.b[c % 2], u = at.unit[c / 2];
    if (net.dh0.p) rnn_put(net.dh0, b, u, 0, at.length[c % 2] ? sum[c] + h[c] : rnn_get<float>(net.ht, b, u));
    rnn_put(net.dc0, b, u, 0, dc[c]);
  }
}

template <bool bf16, int GATES> static cuda_rnn_grid_kernel rnn_slice_forward_of()
{
  return { RNN_SLICE_UNITS, RNN_SLICE_UNITS, 0, 0, GATES, (const void *)rnn_slice_forward<bf16, GATES>, nullptr };
}
template <bool bf16, int GATES> static cuda_rnn_grid_kernel rnn_slice_backward_of()
{
  return { RNN_SLICE_UNITS, GATES * RNN_SLICE_UNITS, 0, 0, GATES, nullptr, (const void *)rnn_slice_backward<bf16, GATES> };
}
