/* rnn_cluster_f32.cu -- the walk of rnn_cluster.cu in f32, without Tensor Cores: a warp has all gates of 4 units.
 *
 *   sums [gate and unit][sequence] = r h        a lane keeps 8 numbers of each of 16 lines in registers, those of its places along the
 *                                               depth; lanes halve the sums of a sequence until each has a line's (rnn_fold)
 *
 * Then a lane is a unit of one sequence: 4 units, up to 8 sequences. Exchange and order are those of rnn_cluster.cu. */
#include "rnn_cells.cuh"
#include "rnn_cluster.h"
#include "kit/sm90.cuh"

enum { WARPS = 8, UNITS = 4, SHARE = 8, LINES = 16, QUADS = 2 };

template <int cell> __device__ __forceinline__ float f32_gates(const cuda_rnn &net, const float (&of_h)[4], const float (&bias)[4],
                                                               float (&gate)[4], float h, float &c, float &raw)
{
#pragma unroll
  for (int g = 0; g < 4; g++) {
    if (g < 2 || cell == QN_RNN_LSTM) gate[g] += of_h[g] + bias[g];
    else if (g == 2) gate[2] += bias[2], gate[3] = of_h[2] + bias[3];
  }
  if (cell == QN_RNN_LSTM) return rnn_lstm(net, gate, c, raw);
  return cell == QN_RNN_GRU ? rnn_gru(gate, h) : rnn_plain(net, gate[0]);
}

__global__ static void __launch_bounds__(32 * WARPS, 1) rnn_cluster_f32(const __grid_constant__ cuda_rnn_cluster p)
{
  extern __shared__ __align__(16) char room[];
  const int group = blockIdx.x / p.parts, direction = group / p.shares, rank = blockIdx.x % p.parts;
  const cuda_rnn &net = p.net[direction];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, steps = (int)net.steps, H = (int)net.hidden, gates = (int)net.gates;
  const int first = rank * WARPS * UNITS + warp * UNITS, u = first + lane % UNITS, b0 = group % p.shares * p.share, b = b0 + lane / UNITS;
  const int n_batch = min(p.share, (int)net.batch - b0);
  const bool lstm = net.cell == QN_RNN_LSTM, gru = net.cell == QN_RNN_GRU;
  const uint32_t full = shared_address(room);
  float *states = (float *)(room + 16), *mine = states + 2 * SHARE * p.depth + warp * LINES * SHARE;      /* [line][sequence] */
  if (threadIdx.x < 2) barrier_init(full + threadIdx.x * 8, p.parts > 1 ? 1 : WARPS);
  barrier_init_fence();
  __syncthreads();
  auto expect = [&](int buffer) {
    if (p.parts > 1 && threadIdx.x == 0) barrier_expect(full + buffer * 8, (uint32_t)(p.share * p.depth * 4));
  };
  for (int i = 0; i < 2; i++) expect(i);
  cluster_sync();

  /* This warp's units of h to every block, by way of `mine`: [sequence][unit]. */
  auto send = [&](int buffer, float h) {
    __syncwarp();
    mine[lane] = h;
    __syncwarp();
    for (int i = lane; i < SHARE * p.parts; i += 32) {
      const int of = i % SHARE, to = i / SHARE;
      if (of >= p.share) continue;
      const float4 v = *(const float4 *)(mine + of * UNITS);
      float *at = states + (buffer * SHARE + of) * p.depth + first;
      if (p.parts == 1) *(float4 *)at = v;
      else cluster_send(cluster_address(shared_address(at), to), v.x, v.y, v.z, v.w, cluster_address(full + buffer * 8, to));
    }
    __syncwarp();
    if (p.parts == 1 && lane == 0) barrier_arrive(full + buffer * 8);
  };

  const bool there = lane / UNITS < n_batch && u < H;
  const int length = there ? (int)rnn_length(net, b) : -1;
  float h = there ? rnn_get<float>(net.h0, b, u) : 0, c = there ? rnn_get<float>(net.c0, b, u) : 0, gate[4] = {}, bias[4] = {};
  send(0, h);
#pragma unroll
  for (int g = 0; g < 4; g++)
    if (u < H && g < gates) {
      const float bw = rnn_get<float>(net.bw, g * H + u), br = rnn_get<float>(net.br, g * H + u);
      bias[g] = gru && g == 2 ? bw : bw + br;
      if (gru && g == 2) bias[3] = br;
    }
  float4 w[LINES][QUADS];                 /* line: gate times 4 and unit */
#pragma unroll
  for (int l = 0; l < LINES; l++)
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
      const int k = (i * 32 + lane) * 4, g = l / UNITS, of = first + l % UNITS;
      const float *from = (const float *)p.weights[direction] + (g * (int64_t)H + of) * p.weights_row[direction];
      float v[4] = {};
      if (g < gates && of < H && k < H) {
        if (p.whole) {
          const float4 q = *(const float4 *)(from + k);
          v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
        } else
#pragma unroll
          for (int j = 0; j < 4; j++)
            if (k + j < H) v[j] = from[(k + j) * p.weights_step[direction]];
      }
      w[l][i] = make_float4(v[0], v[1], v[2], v[3]);
    }
  auto fetch = [&](int s) {
    const float *from = (const float *)net.sums + (rnn_time(net, length, s) * net.batch + b) * net.rows + u;
#pragma unroll
    for (int g = 0; g < 4; g++) gate[g] = g < gates && s < length ? __ldcs(from + (int64_t)g * H) : 0;
  };
  fetch(0);
#pragma unroll 1
  for (int s = 0; s < steps; s++) {
    const int buffer = s & 1;
    barrier_wait(full + buffer * 8, (uint32_t)(s >> 1 & 1));
    if (s + 2 < steps) expect(buffer);
    const float *from = states + buffer * SHARE * p.depth;
#pragma unroll 1
    for (int n = 0; n < n_batch; n++) {
      float sum[LINES] = {};
#pragma unroll
      for (int i = 0; i < QUADS; i++) {
        const int k = (i * 32 + lane) * 4;
        if (k >= p.depth) continue;
        const float4 x = *(const float4 *)(from + n * p.depth + k);
#pragma unroll
        for (int l = 0; l < LINES; l++)
          sum[l] = fmaf(w[l][i].x, x.x, fmaf(w[l][i].y, x.y, fmaf(w[l][i].z, x.z, fmaf(w[l][i].w, x.w, sum[l]))));
      }
      __syncwarp();
      rnn_fold<LINES / 2>(sum, lane);
      sum[0] += __shfl_xor_sync(~0u, sum[0], LINES);
      if (lane < LINES) mine[lane * SHARE + n] = sum[0];
    }
    __syncwarp();
    float of_h[4], raw = 0, state = c, given;
#pragma unroll
    for (int g = 0; g < 4; g++) of_h[g] = mine[(g * UNITS + lane % UNITS) * SHARE + lane / UNITS];
    if (lstm) given = f32_gates<QN_RNN_LSTM>(net, of_h, bias, gate, h, state, raw);
    else if (gru) given = f32_gates<QN_RNN_GRU>(net, of_h, bias, gate, h, state, raw);
    else given = f32_gates<QN_RNN_TANH>(net, of_h, bias, gate, h, state, raw);
    const bool inside = s < length;
    h = inside ? given : h, c = inside ? state : c;
    if (s + 1 < steps) send(~buffer & 1, h);
    if (length >= 0) {
      const int64_t t = rnn_time(net, length, s);
      rnn_give_as<QN_F32>(net, t, b, u, inside ? h : 0.f);
      if (net.gates_at.p)
#pragma unroll
        for (int g = 0; g < 4; g++)
          if (g < net.kept) rnn_put_as<QN_F32>(net.gates_at, t, b, g * H + u, inside ? gate[g] : 0.f);
      rnn_put_as<QN_F32>(net.cells_at, t, b, u, inside ? raw : 0.f);
    }
    if (s + 1 < steps) fetch(s + 1);
  }
  if (length >= 0) {
    rnn_put(net.ht, b, u, 0, h);
    rnn_put(net.ct, b, u, 0, c);
  }
  cluster_sync();
}
const void *const cuda_rnn_cluster_f32 = (const void *)rnn_cluster_f32;
