/* rnn_block_backward.cu -- the gradient's walk through all steps, each sequence within one block as in rnn_block.cu: from the last step to
 * the first, dh = dy + r' slopes of the step after.
 *
 *   sums [unit] = r' slopes       a lane has 4 units and a part of the depth, gates times units; in the end a unit's lanes all have its sum
 *
 * All lanes of a unit make all its slopes; each gives its own gates' on. What forward left of a step is on its way to registers while the
 * one after it is made, and comes into the L2 cache some steps earlier. Of the two buffers of slopes a step reads one and writes the other;
 * the barrier at its end orders both. */
#include "rnn_block.cuh"
#include "kit/sm80.cuh"

template <int PARTS, int GATES>
__global__ static void __launch_bounds__(BLOCK_THREADS, PARTS == 4 ? 2 : 1) rnn_block_gradient(const __grid_constant__ cuda_rnn_block p)
{
  constexpr int EACH = 4 / PARTS, UNITS = 32 / PARTS, GROUPS = UNITS / 4, LANES = 32 / GROUPS;
  constexpr int CHUNKS = (PARTS == 4 ? CUDA_RNN_BLOCK_FEW : CUDA_RNN_BLOCK_MOST) * GATES / (4 * LANES), LEFT = GATES == 1 ? 1 : 4;
  typedef block_weights<4, LANES, CHUNKS> W;
  constexpr int PITCH = W::PITCH;
  extern __shared__ __align__(16) char room[];
  const int batch = (int)p.net[0].batch, direction = blockIdx.x / batch, b = blockIdx.x % batch, threads = blockDim.x;
  const block_room k(room, PITCH, 0);
  const cuda_rnn &net = rnn_near(p.net[direction], k.net);
  const int lane = threadIdx.x % 32, part = lane / UNITS, first = threadIdx.x / 32 * UNITS + lane % GROUPS * 4;
  const int u = first + lane / GROUPS % 4, gate0 = part * EACH;
  for (int i = threadIdx.x; i < 2 * PITCH; i += threads) k.states[i] = 0;
  __syncthreads();
  const int H = (int)net.hidden, steps = (int)net.steps, rows = (int)net.rows;
  const int length = (int)rnn_length(net, b), forth = net.reversed ? 1 : -1, t0 = net.reversed ? 0 : length - 1;
  const block_limits limits = { net.cell, block_held((float)net.clip) };
  const bool there = u < H;

  W w;
  w.depth = rows, w.part = lane / GROUPS, w.own = block_held(shared_address(k.states + w.place(0)));
  w.load(k.rest, [&](int at, float4 (&v)[4]) {
    float4 row[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
      row[i] = at + i < rows && first < H ? block_four(p, direction, net.dtype, at + i, first, H) : make_float4(0, 0, 0, 0);
    v[0] = make_float4(row[0].x, row[1].x, row[2].x, row[3].x), v[1] = make_float4(row[0].y, row[1].y, row[2].y, row[3].y);
    v[2] = make_float4(row[0].z, row[1].z, row[2].z, row[3].z), v[3] = make_float4(row[0].w, row[1].w, row[2].w, row[3].w);
  });
  /* own: dc; of a gru what reaches h beside r. before: the cell before the first step, of a gru h. */
  const float last = there ? rnn_get<float>(net.ht, b, u) : 0;
  const float before = !there || GATES == 1 ? 0 : rnn_get<float>(GATES == 4 ? net.c0 : net.h0, b, u);
  float own = GATES == 4 && there ? rnn_get<float>(net.ct, b, u) : 0;

  const int64_t place = (int64_t)rows * batch, slope0 = t0 * place + (int64_t)b * rows + (int64_t)gate0 * H + u;
  block_cursor gates(net.gates_at, t0, b, u, forth), dy(net.dout, t0, b, net.first + u, forth),
    state = GATES == 4 ? block_cursor(net.cells_at, t0, b, u, forth) : block_cursor(net.out, t0, b, net.first + u, forth),
    slope_x(net.slope_x, net.dtype, slope0, forth * place), slope_h(net.slope_h, net.dtype, slope0, forth * place);
  const int beyond = H * (int)net.gates_at.stride[2];
  /* Of a step: gates, dy, and the state before it (tanh, relu: after it); an lstm's after it was that before the step after. */
  uint32_t gate_raw[LEFT] = {}, old_raw = 0, cell_raw = 0, dy_raw = 0;
  auto fetch = [&](int s) {               /* the cursors stand at step s, state's at s - 1 */
    if (!there) return;
    if (GATES > 1)
#pragma unroll
      for (int g = 0; g < LEFT; g++) gate_raw[g] = gates.get(g * beyond);
    dy_raw = dy.get();
    cell_raw = old_raw;
    if (s || GATES == 1) old_raw = state.get();
  };
  auto bring = [&](int s, int ahead) {    /* step s, `ahead` before that of the cursors: lanes of a unit share its tensors out */
    if (!there || s < 1) return;
    if (GATES > 1)
#pragma unroll
      for (int e = 0; e < EACH; e++) prefetch_L2(gates.at + gates.step * ahead + (gates.dtype == QN_F32 ? 4 : 2) * (gate0 + e) * beyond);
    const char *at = part ? dy.at + dy.step * ahead : state.at + state.step * ahead;
    if (part < 2) prefetch_L2(at);
  };
  /* What reaches h from a step's slopes. */
  auto reaching = [&](int skipped) {
    float sum[4];
    w.multiply(skipped, sum);
    block_halve<2>(sum, lane, 2 * GROUPS);
    block_halve<1>(sum, lane, GROUPS);
#pragma unroll
    for (int bit = UNITS; bit < 32; bit *= 2) sum[0] += __shfl_xor_sync(~0u, sum[0], bit);
    return sum[0];
  };
  if (length) {
    if (GATES == 4 && there) old_raw = state.get();
    if (GATES > 1) state.go();
    for (int i = 1; i < AHEAD; i++) bring(length - 1 - i, i);
    fetch(length - 1);
  }
  __syncthreads();

#pragma unroll 1
  for (int s = length - 1; s >= 0; s--) {
    float gate[4] = {}, of_h = 0;
    if (GATES > 1)
#pragma unroll
      for (int g = 0; g < LEFT; g++) gate[g] = gates.open(gate_raw[g]);
    const float cell = GATES == 4 ? state.open(cell_raw) : GATES == 1 ? state.open(old_raw) : 0, by_y = dy.open(dy_raw);
    float old = before;
    if (s && GATES > 1) old = GATES == 4 ? rnn_bounded(limits, state.open(old_raw)) : state.open(old_raw);
    gates.go(), dy.go(), state.go();
    if (s) fetch(s - 1);
    bring(s - 1 - AHEAD, AHEAD);
    float dh = last;
    if (s < length - 1) {
      dh = reaching((~s & 1) * PITCH);
      if (GATES == 3) dh += own;
    }
    dh += by_y;
    if (GATES == 4) rnn_lstm_slopes(limits, gate, cell, old, dh, own);
    else if (GATES == 3) {
      rnn_gru_slopes(gate, old, dh, of_h);
      own = dh;
    } else
      gate[0] = rnn_plain_slope(limits, cell, dh);
    float of_x[EACH], given[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      of_x[e] = gate[e];
#pragma unroll
      for (int i = 1; i < PARTS; i++) of_x[e] = part == i ? gate[i * EACH + e] : of_x[e];
      given[e] = GATES == 3 && gate0 + e == 2 ? of_h : of_x[e];
      if (there && gate0 + e < GATES) k.states[(s & 1) * PITCH + (gate0 + e) * H + u] = given[e];
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      if (!there || gate0 + e >= GATES) continue;
      slope_x.put(of_x[e], e * H);
      if (GATES == 3) slope_h.put(given[e], e * H);
    }
    slope_x.go(), slope_h.go();
  }
  if (net.dh0.p) {
    const float dh = length ? reaching(0) + (GATES == 3 ? own : 0) : last;
    if (part == 0 && there) rnn_put(net.dh0, b, u, 0, dh);
  }
  if (!there) return;
  if (GATES == 4 && part == 1) rnn_put(net.dc0, b, u, 0, own);
  for (int64_t t = length; t < steps; t++) {         /* beyond the sequence's end */
    const int64_t at = t * place + (int64_t)b * rows + u;
    for (int g = gate0; g < gate0 + EACH && g < GATES; g++) {
      element_store(net.slope_x, at + g * H, net.dtype, 0.f);
      if (net.slope_h) element_store(net.slope_h, at + g * H, net.dtype, 0.f);
    }
  }
}

const void *const cuda_rnn_block_backward[2][3] = {
  { (const void *)rnn_block_gradient<4, 1>, (const void *)rnn_block_gradient<4, 3>, (const void *)rnn_block_gradient<4, 4> },
  { (const void *)rnn_block_gradient<2, 1>, (const void *)rnn_block_gradient<2, 3>, (const void *)rnn_block_gradient<2, 4> },
};
