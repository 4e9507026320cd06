/* rnn_single.cuh -- what the kernels of one step share (rnn_single.cu, rnn_single_mma.cu). */
#pragma once
#include "rnn_cells.cuh"
#include "rnn_single.h"

/* The gates of a unit of a sequence from their sums, biases added, and all that is stored of it; h, c: the state before. */
template <int GATES>
__device__ __forceinline__ void rnn_single_end(const cuda_rnn &net, int64_t b, int64_t u, float (&gate)[4], float h, float c)
{
  const bool inside = rnn_length(net, b) > 0;
  float raw = 0;
  if (inside) {
    if (GATES == 4) h = rnn_lstm(net, gate, c, raw);
    else h = GATES == 3 ? rnn_gru(gate, h) : rnn_plain(net, gate[0]);
  }
  rnn_give(net, 0, b, u, inside ? h : 0.f);
#pragma unroll
  for (int g = 0; g < 4; g++)
    if (g < net.kept) rnn_put(net.gates_at, 0, b, g * net.hidden + u, inside ? gate[g] : 0.f);
  rnn_put(net.cells_at, 0, b, u, raw);
  rnn_put(net.ht, b, u, 0, h);
  rnn_put(net.ct, b, u, 0, c);
}
/* What of a gate's biases is added to sum g; of a gru's n, whose sums by x and by h0 stay apart, one each. */
template <int GATES> __device__ __forceinline__ float rnn_single_bias(int g, float bw, float br)
{
  return GATES != 3 || g < 2 ? bw + br : g == 2 ? bw : br;
}
