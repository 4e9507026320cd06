/* rnn_block_backward.cu -- the gradient's walk through all steps, each sequence within one block as in rnn_block.cu: from the last step to
 * the first, dh = dy + r' slopes of the step after.
 *
 *   sums [unit] = r' slopes       a lane has 4 units and a part of the depth, gates times units; in the end a unit's lanes all have its sum
 *
 * All lanes of a unit make all its slopes; each gives its own gates' on. What forward left of a step is on its way to registers while the
 * one before it is made (of several sequences: the next), and comes into the L2 cache some steps earlier. Of the two buffers of slopes a
 * step reads one and writes the other; the barrier at its end orders both. */
#include "rnn_block.cuh"
#include "kit/sm80.cuh"

/* What forward left of a step, as it lies. */
template <int GATES> struct block_left {
  uint32_t gate[GATES == 1 ? 1 : 4], cell, old, dy;

  /* inside: the step is one of the sequence's. */
  __device__ __forceinline__ void fetch(const cuda_rnn &net, int s, int t, int before, int b, int u, bool inside)
  {
#pragma unroll
    for (int g = 0; g < (GATES == 1 ? 1 : 4); g++) gate[g] = 0;
    cell = old = dy = 0;
    if (!inside) return;
    const int H = (int)net.hidden, first = (int)net.first + u;
    if (GATES > 1) {
      const int at = block_at(net.gates_at, t, b, u), step = H * (int)net.gates_at.stride[2];
#pragma unroll
      for (int g = 0; g < 4; g++) gate[g] = block_get(net.gates_at, at + g * step);
    }
    if (GATES == 4) {
      cell = block_get(net.cells_at, block_at(net.cells_at, t, b, u));
      if (s) old = block_get(net.cells_at, block_at(net.cells_at, before, b, u));
    } else if (GATES == 3) {
      if (s) old = block_get(net.out, block_at(net.out, before, b, first));
    } else
      cell = block_get(net.out, block_at(net.out, t, b, first));
    dy = block_get(net.dout, block_at(net.dout, t, b, first));
  }
};

__device__ __forceinline__ void block_bring(const cuda_rnn_tensor &t, int at)
{
  prefetch_L2((const char *)t.p + (int64_t)at * (t.dtype == QN_F32 ? 4 : 2));
}

template <int PARTS, int GATES>
__global__ static void __launch_bounds__(BLOCK_THREADS, PARTS == 4 ? 2 : 1) rnn_block_gradient(const __grid_constant__ cuda_rnn_block p)
{
  constexpr int EACH = 4 / PARTS, UNITS = 32 / PARTS, GROUPS = UNITS / 4, LANES = 32 / GROUPS;
  constexpr int CHUNKS = (PARTS == 4 ? CUDA_RNN_BLOCK_FEW : CUDA_RNN_BLOCK_MOST) * GATES / (4 * LANES);
  typedef block_weights<4, LANES, CHUNKS> W;
  constexpr int PITCH = W::PITCH;
  extern __shared__ __align__(16) char room[];
  const int direction = blockIdx.x / p.shares, b0 = blockIdx.x % p.shares * p.share, threads = blockDim.x, share = p.share;
  const block_room k(room, share, PITCH, 0);
  const cuda_rnn &net = rnn_near(p.net[direction], k.net);
  const int lane = threadIdx.x % 32, part = lane / UNITS, first = threadIdx.x / 32 * UNITS + lane % GROUPS * 4;
  const int u = first + lane / GROUPS % 4;
  __syncthreads();
  const int H = (int)net.hidden, steps = (int)net.steps, batch = (int)net.batch, rows = (int)net.rows, n_batch = min(share, batch - b0);
  const block_limits limits = { net.cell, (float)net.clip };
  const bool there = u < H;

  W w;
  w.depth = rows, w.part = lane / GROUPS;
  w.load(k.rest, [&](int at, float4 (&v)[4]) {
    float4 row[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      row[i] = at + i < rows && first < H ? block_four(p, direction, net.dtype, at + i, first, H) : make_float4(0, 0, 0, 0);
    v[0] = make_float4(row[0].x, row[1].x, row[2].x, row[3].x), v[1] = make_float4(row[0].y, row[1].y, row[2].y, row[3].y);
    v[2] = make_float4(row[0].z, row[1].z, row[2].z, row[3].z), v[3] = make_float4(row[0].w, row[1].w, row[2].w, row[3].w);
  });
  for (int n = threadIdx.x; n < share; n += threads) k.length[n] = n < n_batch ? (int)rnn_length(net, b0 + n) : 0;
  for (int i = threadIdx.x; i < 2 * share * PITCH; i += threads) k.states[i] = 0;
  for (int n = 0; n < n_batch; n++)       /* dc; of a gru what reaches h beside r */
    k.own[n * threads + threadIdx.x] = GATES == 4 && there ? rnn_get<float>(net.ct, b0 + n, u) : 0;
  __syncthreads();

  auto time = [&](int length, int s) { return s < length && net.reversed ? length - 1 - s : s; };
  block_left<GATES> left;
  auto fetch = [&](int n, int s) {
    const int length = k.length[n];
    left.fetch(net, s, time(length, s), time(length, s - 1), b0 + n, u, there && s < length);
  };
  auto bring = [&](int n, int s) {        /* a unit's first lane */
    const int length = k.length[n];
    if (part || !there || s < 0 || s >= length) return;
    const int t = time(length, s), b = b0 + n;
    if (GATES > 1) {
      const int at = block_at(net.gates_at, t, b, u), step = H * (int)net.gates_at.stride[2];
#pragma unroll
      for (int g = 0; g < 4; g++) block_bring(net.gates_at, at + g * step);
    }
    if (GATES == 4 && s) block_bring(net.cells_at, block_at(net.cells_at, time(length, s - 1), b, u));
    if (GATES != 4) block_bring(net.out, block_at(net.out, t, b, (int)net.first + u));
    block_bring(net.dout, block_at(net.dout, t, b, (int)net.first + u));
  };
  /* What reaches h of sequence n from a step's slopes. */
  auto reaching = [&](const float *slopes) {
    float sum[4];
    w.multiply(slopes, sum);
    block_halve<2>(sum, lane, 2 * GROUPS);
    block_halve<1>(sum, lane, GROUPS);
#pragma unroll
    for (int bit = UNITS; bit < 32; bit *= 2) sum[0] += __shfl_xor_sync(~0u, sum[0], bit);
    return sum[0];
  };
  for (int i = 1; i < AHEAD; i++)
    for (int n = 0; n < n_batch; n++) bring(n, steps - 1 - i);
  fetch(0, steps - 1);

#pragma unroll 1
  for (int s = steps - 1; s >= 0; s--) {
    const float *slopes = k.states + (~s & 1) * share * PITCH;
    float *next = k.states + (s & 1) * share * PITCH;
#pragma unroll 1
    for (int n = 0; n < n_batch; n++) {
      const int length = k.length[n], b = b0 + n;
      const bool inside = there && s < length;
      float gate[4] = {}, of_h = 0, cell = 0, old = 0, own = k.own[n * threads + threadIdx.x];
      if (GATES > 1)
#pragma unroll
        for (int g = 0; g < 4; g++) gate[g] = block_open(left.gate[GATES == 1 ? 0 : g], net.gates_at.dtype);
      if (GATES == 4) {
        cell = block_open(left.cell, net.cells_at.dtype);
        old = s ? rnn_bounded(limits, block_open(left.old, net.cells_at.dtype)) : inside ? rnn_get<float>(net.c0, b, u) : 0;
      } else if (GATES == 3)
        old = s ? block_open(left.old, net.out.dtype) : inside ? rnn_get<float>(net.h0, b, u) : 0;
      else
        cell = block_open(left.cell, net.out.dtype);
      const float dy = block_open(left.dy, net.dout.dtype);
      if (n + 1 < n_batch) fetch(n + 1, s);
      else if (s) fetch(0, s - 1);
      float dh = reaching(slopes + n * PITCH);
      if (GATES == 3) dh += own;
      if (s == length - 1) dh = there ? rnn_get<float>(net.ht, b, u) : 0;
      dh += dy;
      if (GATES == 4) rnn_lstm_slopes(limits, gate, cell, old, dh, own);
      else if (GATES == 3) {
        rnn_gru_slopes(gate, old, dh, of_h);
        own = dh;
      } else
        gate[0] = rnn_plain_slope(limits, cell, dh);
      if (inside) k.own[n * threads + threadIdx.x] = own;
      if (!there) continue;
      const int row = (time(length, s) * batch + b) * rows + u;
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        const int g = part * EACH + e;
        if (g >= GATES) continue;
        float v = gate[e];
#pragma unroll
        for (int i = 1; i < PARTS; i++) v = part == i ? gate[i * EACH + e] : v;
        const float h = !inside ? 0 : GATES == 3 && g == 2 ? of_h : v;
        next[n * PITCH + g * H + u] = h;
        block_put(net.slope_x, net.dtype, row + g * H, inside ? v : 0);
        if (GATES == 3) block_put(net.slope_h, net.dtype, row + g * H, h);
      }
      bring(n, s - AHEAD);
    }
    __syncthreads();
  }
  for (int n = 0; n < n_batch; n++) {
    const int length = k.length[n], b = b0 + n;
    if (net.dh0.p) {
      float dh = reaching(k.states + n * PITCH);
      if (GATES == 3) dh += k.own[n * threads + threadIdx.x];
      if (part == 0 && there) rnn_put(net.dh0, b, u, 0, length ? dh : rnn_get<float>(net.ht, b, u));
    }
    if (GATES == 4 && part == 1 && there) rnn_put(net.dc0, b, u, 0, k.own[n * threads + threadIdx.x]);
  }
}

const void *const cuda_rnn_block_backward[2][3] = {
  { (const void *)rnn_block_gradient<4, 1>, (const void *)rnn_block_gradient<4, 3>, (const void *)rnn_block_gradient<4, 4> },
  { (const void *)rnn_block_gradient<2, 1>, (const void *)rnn_block_gradient<2, 3>, (const void *)rnn_block_gradient<2, 4> },
};
