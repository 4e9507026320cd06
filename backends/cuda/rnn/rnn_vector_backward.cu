/* rnn_vector_backward.cu -- a step of the gradient's walk for few sequences in one launch, as rnn_vector.cu's of the forward: a block makes
 * the slopes of 4 units of up to 8 sequences.
 *
 *   what reaches h of a unit = its row of r turned by the slopes of the step after       a warp takes 512 bytes of every 2 KB of the 4
 *                                                                                        rows, so slopes are read once for 4 units
 *
 * What forward left of the step and the first pieces of the rows are on their way before the step after has ended. */
#include "rnn_steps.cuh"
#include "rnn_vector.h"
#include "kit/vector.cuh"

enum { WARPS = 4, UNITS = 4 };

/* Have all tensors that a step reads the dtype of the weights? */
template <uint32_t dtype> __device__ __forceinline__ bool uniform(const cuda_rnn &net)
{
  return (!net.gates_at.p || net.gates_at.dtype == dtype) && (!net.cells_at.p || net.cells_at.dtype == dtype) &&
         (!net.c0.p || net.c0.dtype == dtype) && (!net.h0.p || net.h0.dtype == dtype) && net.out.dtype == dtype && net.dout.dtype == dtype;
}
/* What forward left of a step, and dy: all loads are under way before the first is opened, if no switch of dtypes lies between. */
template <uint32_t dtype, int GATES, bool same>
__device__ __forceinline__ void fetch(float (&left)[7], const cuda_rnn &net, int64_t length, int s, int b, int u)
{
  const int64_t t = rnn_time(net, length, s), before = s ? rnn_time(net, length, s - 1) : 0;
  uint32_t raw[7] = {};
  auto get = [&](int n, const cuda_rnn_tensor &from, int64_t i, int64_t j, int64_t k) {
    if (!same) left[n] = rnn_get<float>(from, i, j, k);
    else if (from.p && dtype == QN_F32) raw[n] = ((const uint32_t *)from.p)[rnn_at(from, i, j, k)];
    else if (from.p) raw[n] = ((const uint16_t *)from.p)[rnn_at(from, i, j, k)];
  };
#pragma unroll
  for (int g = 0; g < (GATES == 1 ? 0 : 4); g++) get(g, net.gates_at, t, b, g * net.hidden + u);
  if (GATES == 1) get(4, net.out, t, b, net.first + u);
  if (GATES == 4) get(4, net.cells_at, t, b, u);
  if (GATES == 4 && s) get(5, net.cells_at, before, b, u);
  if (GATES == 3 && s) get(5, net.out, before, b, net.first + u);
  if (GATES != 1 && !s) get(5, GATES == 4 ? net.c0 : net.h0, b, u, 0);
  get(6, net.dout, t, b, net.first + u);
#pragma unroll
  for (int n = 0; n < 7 && same; n++)
    left[n] = dtype == QN_F32 ? __uint_as_float(raw[n]) : dtype == QN_F16 ? f16_to_float((uint16_t)raw[n])
                                                                          : bf16_to_float((uint16_t)raw[n]);
}

/* Step -1: dh0, dc0. */
template <int dtype, int GATES, int N>
__global__ static void __launch_bounds__(32 * WARPS, N > 1 ? 3 : 4)
    rnn_vector_gradient(const __grid_constant__ cuda_rnn_vector p, int64_t step)
{
  constexpr int V = vector_per_16<dtype>, SUMS = UNITS * N, AT_ONCE = N == 8 ? 1 : 2;
  __shared__ float part[WARPS][SUMS];
  const cuda_rnn &net = p.net[blockIdx.y];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, u0 = blockIdx.x / p.groups * UNITS, u = u0 + lane % UNITS, s = (int)step;
  const int H = (int)net.hidden, depth = (int)net.rows, batch = (int)net.batch, b0 = blockIdx.x % p.groups * N, b = b0 + lane / UNITS;
  const bool mine = warp == 0 && lane < SUMS && u < H && b < batch, multiplies = s < (int)net.steps - 1 && (s >= 0 || net.dh0.p);
  const uint4 *line[UNITS];
#pragma unroll
  for (int l = 0; l < UNITS; l++)
    line[l] = vector_place<dtype>(p.weights[blockIdx.y], (int64_t)min(u0 + l, H - 1) * p.weights_row[blockIdx.y]) + threadIdx.x;
  uint4 row[AT_ONCE][UNITS];
  auto load = [&](int k) {                /* k: pieces of a row */
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const int at = k + i * 32 * WARPS;
#pragma unroll
      for (int l = 0; l < UNITS; l++)
        row[i][l] = multiplies && (at + (int)threadIdx.x) * V < depth ? __ldg(line[l] + at) : make_uint4(0, 0, 0, 0);
    }
  };
  load(0);
  const int64_t length = mine ? rnn_length(net, b) : 0, t = rnn_time(net, length, s);
  const bool inside = s >= 0 && s < length, last = s == length - 1;
  float left[7] = {}, dh = 0, dc = 0, of_h = 0;      /* of the step: gates, cell or h, that before it, dy */
  if (inside) {
    if (uniform<dtype>(net)) fetch<dtype, GATES, true>(left, net, length, s, b, u);
    else fetch<dtype, GATES, false>(left, net, length, s, b, u);
  }
  float gate[4] = { left[0], left[1], left[2], left[3] };
  const float cell = left[4], old = GATES == 4 && s > 0 ? rnn_bounded(net, left[5]) : left[5], dy = left[6];
  if (mine && (last || length == 0)) {
    dh = rnn_get<float>(net.ht, b, u);
    if (GATES == 4) dc = rnn_get<float>(net.ct, b, u);
  }
  rnn_wait_before();

  const int64_t buffer = (int64_t)batch * depth, e = (int64_t)b * H + u;
  const void *from = vector_place<dtype>(net.step, (~s & 1) * buffer);
  char *to = (char *)net.step + (s & 1) * buffer * (dtype == QN_F32 ? 4 : 2);
  float sum[SUMS] = {}, direct = 0;
  if (mine && s < length - 1) {
    if (GATES == 4) dc = ((const float *)net.c)[e];
    if (GATES == 3) direct = ((const float *)net.direct)[e];
  }
#pragma unroll 1
  for (int k = 0; k * V < depth && multiplies; k += AT_ONCE * 32 * WARPS) {
    uint4 now[AT_ONCE][UNITS];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
#pragma unroll
      for (int l = 0; l < UNITS; l++) now[i][l] = row[i][l];
    load(k + AT_ONCE * 32 * WARPS);
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const int at = (k + i * 32 * WARPS + threadIdx.x) * V;
      if (at >= depth) continue;
      uint4 x[N];
#pragma unroll
      for (int n = 0; n < N; n++) x[n] = *vector_place<dtype>(from, (int64_t)min(b0 + n, batch - 1) * depth + at);
      float v[UNITS][V];
#pragma unroll
      for (int l = 0; l < UNITS; l++) vector_open<dtype>(v[l], 0, now[i][l]);
#pragma unroll
      for (int n = 0; n < N; n++) {
        float of[V];
        vector_open<dtype>(of, 0, x[n]);
#pragma unroll
        for (int l = 0; l < UNITS; l++)
#pragma unroll
          for (int j = 0; j < V; j++) sum[n * UNITS + l] = fmaf(v[l][j], of[j], sum[n * UNITS + l]);
      }
    }
  }
  rnn_fold<SUMS / 2>(sum, lane);          /* sum lane % SUMS */
#pragma unroll
  for (int half = SUMS; half < 32; half *= 2) sum[0] += __shfl_xor_sync(~0u, sum[0], half);
  if (lane < SUMS) part[warp][lane] = sum[0];
  __syncthreads();
  if (!mine) return;
  const float reaching = (part[0][lane] + part[1][lane]) + (part[2][lane] + part[3][lane]);
  if (s < length - 1) dh = reaching + direct;
  if (s < 0) {
    rnn_put(net.dh0, b, u, 0, dh);
    rnn_put(net.dc0, b, u, 0, dc);
    return;
  }
  if (inside) {
    dh += dy;
    if (GATES == 4) {
      rnn_lstm_slopes(net, gate, cell, old, dh, dc);
      ((float *)net.c)[e] = dc;
    } else if (GATES == 3) {
      rnn_gru_slopes(gate, old, dh, of_h);
      ((float *)net.direct)[e] = dh;
    } else
      gate[0] = rnn_plain_slope(net, cell, dh);
  }
  const int64_t at = (t * batch + b) * net.rows + u;
#pragma unroll
  for (int g = 0; g < GATES; g++) {
    const float by_h = GATES == 3 && g == 2 ? of_h : gate[g];
    element_store(net.slope_x, at + g * (int64_t)H, dtype, gate[g]);
    if (GATES == 3) element_store(net.slope_h, at + g * (int64_t)H, dtype, by_h);
    element_store(to, (int64_t)b * depth + g * (int64_t)H + u, dtype, by_h);
  }
}

/* ---- host ------------------------------------------------------------------------------------------ */

template <int dtype, int GATES, int N> struct backward {
  static const void *kernel() { return (const void *)rnn_vector_gradient<dtype, GATES, N>; }
};

qn_status cuda_rnn_vector_back(cuda_rnn_vector *p, int64_t directions, int64_t s, void *stream)
{
  const cuda_rnn &q = p->net[0];
  p->groups = (int32_t)qn_ceil_div(q.batch, cuda_rnn_vector_at_once(q.batch));
  void *arguments[] = { p, &s };
  /* What the last step reads may still be under way. */
  const dim3 blocks((unsigned)(qn_ceil_div(q.hidden, UNITS) * p->groups), (unsigned)directions);
  return cuda_launch_kernel(cuda_rnn_vector_kernel<backward>(q), q.early && s < q.steps - 1, blocks, 32 * WARPS, 0, arguments, stream,
                            "rnn_vector_backward");
}
