/* rnn_grid.cuh -- all steps of a layer in one kernel: a block keeps the recurrent weights of some units in registers (of many units
 * a part of them in shared memory) from the first step to the last, and c and h of its units in shared memory.
 *
 *   forward    sums [line][sequence] = r h, lines: the gates of its units      depth: states
 *   gradient   sums [unit][sequence] = r' slopes                               depth: gates times units
 *
 * What the units of all blocks leave at a step (h; the slopes) goes through global memory: a block writes its own, arrives at a counter,
 * does what nobody waits for, waits for the others, and copies all of it to shared memory, each number to the thread that multiplies it:
 * the warps share out the depth, so no thread reads another's, and their sums are added in shared memory. Copies (cp.async) of up to
 * `ring` groups of sequences are under way at once. Two buffers in turn: a block that writes a step's has seen all arrive that read
 * the step before's. All blocks are resident (a cooperative launch). */
#pragma once
#include <type_traits>
#include "kit/meet.cuh"
#include "rnn_cells.cuh"
#include "rnn_grid_weights.cuh"

/* ---- a block ------------------------------------------------------------------------------------------- */

/* An item is a unit of this block and one of its sequences, units fastest; a thread has every 256th. */
template <class W> struct rnn_block {
  const cuda_rnn_grid &p;
  const cuda_rnn &net;
  W w;
  int units, unit0, n_units, b0, n_batch, items, pitch, slices, turn;
  uint32_t *met;
  typename W::number *exchange;           /* of this share of the batch */
  int64_t other;                          /* from the first buffer to the second */
  uint4 *mine;                            /* this thread's pieces: [ring][pieces][thread] */
  float *sums, *slot, *h, *c, *bias;
  int *length;

  __device__ __forceinline__ rnn_block(const cuda_rnn_grid &given, bool gradient, float *room)
    : p(given), net(given.net[blockIdx.x / (given.unit_blocks * given.batch_blocks)])
  {
    const int of_group = blockIdx.x % p.unit_blocks, group = blockIdx.x / p.unit_blocks, share = group % p.batch_blocks;
    const int direction = group / p.batch_blocks;
    units = 1 << p.unit_shift, unit0 = of_group << p.unit_shift, n_units = min(units, (int)net.hidden - unit0);
    b0 = share * p.batch_share, n_batch = min(p.batch_share, (int)net.batch - b0);
    items = units * p.batch_share, pitch = cuda_rnn_grid_pitch(p.batch_share);
    slices = W::slices ? W::slices : CUDA_RNN_GRID_THREADS / 32 / p.groups, turn = 0;
    met = p.met + group;
    other = (int64_t)p.batch_blocks * p.batch_share * p.row;
    exchange = (typename W::number *)p.exchange[direction] + (int64_t)b0 * p.row;
    const int beyond = p.row - p.depth;
    for (int i = threadIdx.x; of_group == 0 && i < beyond * p.batch_share; i += CUDA_RNN_GRID_THREADS)
      for (int buffer = 0; buffer < 2; buffer++)
        exchange[buffer * other + i / beyond * p.row + p.depth + i % beyond] = typename W::number(0);
    mine = (uint4 *)(room + W::laid) + threadIdx.x;
    sums = room + p.sums_at, slot = room + p.slots_at;
    h = slot + CUDA_RNN_GRID_SLOTS * items, c = h + items;
    bias = c + items, length = (int *)(bias + 2 * net.gates * units);
    for (int b = threadIdx.x; b < p.batch_share; b += CUDA_RNN_GRID_THREADS) length[b] = b < n_batch ? (int)rnn_length(net, b0 + b) : 0;
    const int warp = threadIdx.x / 32;
    const rnn_lines of = { units, unit0, (int)net.hidden, gradient ? 1 : (int)net.gates, p.unit_shift };
    w.load(p, p.weights[direction], p.weights_row[direction], of, W::slices ? 0 : warp / slices, room);
    __syncthreads();
  }

  __device__ __forceinline__ int unit_of(int i) const { return i & (units - 1); }
  __device__ __forceinline__ int sequence_of(int i) const { return i >> p.unit_shift; }
  __device__ __forceinline__ bool there(int i) const { return unit_of(i) < n_units && sequence_of(i) < n_batch; }
  __device__ __forceinline__ float &kept(int field, int i) const { return slot[field * items + i]; }
  __device__ __forceinline__ int time(int b, int s) const { return s < length[b] && net.reversed ? length[b] - 1 - s : s; }
  /* The sum of line l of sequence b, in the order of the warps: as many as share out the depth, which W knows or bounds. */
  __device__ __forceinline__ float total(int l, int b) const
  {
    constexpr int most = W::slices ? W::slices : CUDA_RNN_GRID_THREADS / 32;
    const float *from = sums + (l / W::lines * slices * W::lines + l % W::lines) * pitch + b;
    float part[most], sum = 0;
#pragma unroll
    for (int i = 0; i < most; i++) part[i] = W::slices || i < slices ? from[i * W::lines * pitch] : 0;
#pragma unroll
    for (int i = 0; i < most; i++) sum += part[i];
    return sum;
  }
  __device__ __forceinline__ void send(int buffer, int i, int g, float v) const
  {
    if (unit_of(i) < n_units)
      exchange[buffer * other + sequence_of(i) * p.row + g * (int)net.hidden + unit0 + unit_of(i)] = W::pack(v);
  }
  __device__ __forceinline__ void arrive() { blocks_arrive(met); }
  __device__ __forceinline__ void wait() { blocks_wait(met, p.unit_blocks, ++turn); }
  /* between(): what is done while the first copies are under way. */
  template <class F> __device__ __forceinline__ void multiply(int buffer, const F &between)
  {
    const typename W::number *from = exchange + buffer * other;
    if constexpr (W::resident) w.multiply(p, from, sums);
    else multiply_pieces(from, between);
    __syncthreads();
  }
  template <class F> __device__ __forceinline__ void multiply_pieces(const typename W::number *from, const F &between)
  {
    constexpr int step = W::pieces * CUDA_RNN_GRID_THREADS;
    for (int i = 0; i < p.ring; i++) w.fetch(p, from, i * W::group, shared_address(mine + i * step));
    between();
#pragma unroll 1
    for (int n = 0, at = 0; n < p.batch_share; n += W::group) {
      if (p.ring == 4) copy_async_wait<3>();
      else copy_async_wait<1>();
      w.multiply(p, mine + at * step, n, sums);
      w.fetch(p, from, n + p.ring * W::group, shared_address(mine + at * step));      /* what was there has been read, by this thread */
      at = at + 1 == p.ring ? 0 : at + 1;
    }
  }
};

#define RNN_ITEMS(block, i) for (int i = threadIdx.x; i < (block).items; i += CUDA_RNN_GRID_THREADS)

/* As rnn_at, where strides and places have 32 bits. */
__device__ __forceinline__ int64_t rnn_near_at(const cuda_rnn_tensor &t, int i, int j, int k = 0)
{
  return (int64_t)i * (int)t.stride[0] + (int64_t)j * (int)t.stride[1] + (int64_t)k * (int)t.stride[2];
}

/* ---- forward ------------------------------------------------------------------------------------------- */

/* The sums of x of step s are on their way to slots 0 to 3; what multiply waits for comes later. */
template <class W> __device__ __forceinline__ void rnn_fetch(const rnn_block<W> &k, int s)
{
  const cuda_rnn &net = k.net;
  RNN_ITEMS(k, i) {
    const int b = k.sequence_of(i);
    if (!k.there(i) || s >= k.length[b]) continue;
    const int place = k.time(b, s) * (int)net.batch + k.b0 + b, rows = (int)net.rows;
    const float *from = (const float *)net.sums + (int64_t)place * rows + k.unit0 + k.unit_of(i);
#pragma unroll
    for (int g = 0; g < 4; g++)
      if (g < net.gates) copy_async<4>(shared_address(&k.kept(g, i)), from + g * net.hidden, 4);
  }
  copy_async_commit();
}

/* The gates of N items at a step, whose chains overlap; h on its way to the other blocks. */
template <class W, int cell, int N> __device__ __forceinline__ void rnn_items(const rnn_block<W> &k, int s, int first)
{
  constexpr int GATES = cell == QN_RNN_LSTM ? 4 : cell == QN_RNN_GRU ? 3 : 1;
  const cuda_rnn &net = k.net;
  const float *br = k.bias + GATES * k.units;
  const bool goes_on = s < (int)net.steps - 1;
  float gate[N][4] = {}, raw[N] = {}, h[N], c[N];
#pragma unroll
  for (int n = 0; n < N; n++) {
    const int i = first + n * CUDA_RNN_GRID_THREADS, b = k.sequence_of(i), u = k.unit_of(i);
    h[n] = k.h[i], c[n] = k.c[i];
#pragma unroll
    for (int g = 0; g < GATES; g++) {
      const int l = (g << k.p.unit_shift) + u;
      const float of_x = k.kept(g, i) + k.bias[l], of_h = k.total(l, b) + br[l];
      if (cell == QN_RNN_GRU && g == 2) gate[n][2] = of_x, gate[n][3] = of_h;
      else gate[n][g] = of_x + of_h;
    }
  }
#pragma unroll
  for (int n = 0; n < N; n++) {
    if (cell == QN_RNN_LSTM) h[n] = rnn_lstm(net, gate[n], c[n], raw[n]);
    else h[n] = cell == QN_RNN_GRU ? rnn_gru(gate[n], h[n]) : rnn_plain(net, gate[n][0]);
  }
#pragma unroll
  for (int n = 0; n < N; n++) {
    const int i = first + n * CUDA_RNN_GRID_THREADS;
    const bool inside = k.there(i) && s < k.length[k.sequence_of(i)];
    if (inside) {
      k.h[i] = h[n], k.c[i] = c[n], k.kept(4, i) = raw[n];
#pragma unroll
      for (int g = 0; g < (GATES == 1 ? 1 : 4); g++) k.kept(g, i) = gate[n][g];
    }
    if (goes_on) k.send(~s & 1, i, 0, inside ? h[n] : k.h[i]);
  }
}

/* All items, two at a time where a thread has as many. */
template <class W, int cell> __device__ __forceinline__ void rnn_gates_step(const rnn_block<W> &k, int s)
{
  int i = threadIdx.x;
  for (; i + CUDA_RNN_GRID_THREADS < k.items; i += 2 * CUDA_RNN_GRID_THREADS) rnn_items<W, cell, 2>(k, s, i);
  if (i < k.items) rnn_items<W, cell, 1>(k, s, i);
}

/* What a step leaves to others than the next step. */
template <class W> __device__ __forceinline__ void rnn_leave(const rnn_block<W> &k, int s)
{
  const cuda_rnn &net = k.net;
  RNN_ITEMS(k, i) {
    if (!k.there(i)) continue;
    const int b = k.sequence_of(i), at = k.b0 + b, u = k.unit0 + k.unit_of(i), t = k.time(b, s), hidden = (int)net.hidden;
    const bool inside = s < k.length[b];
    const float y = inside ? k.h[i] : 0.f;
    auto put = [&](const cuda_rnn_tensor &to, int unit, float v) {
      const int64_t place = rnn_near_at(to, t, at, unit);
      if (to.dtype == W::dtype) element_store(to.p, place, W::dtype, v);
      else element_store(to.p, place, to.dtype, v);
    };
    if (net.out.p) put(net.out, (int)net.first + u, y);
    if (net.next) {
      const int64_t place = (int64_t)(t * (int)net.batch + at) * (int)net.width + (int)net.first + u;
      element_store(net.next, place, W::dtype, rnn_dropped(net, net.layer * net.steps * net.batch * net.width + place, y));
    }
    if (net.gates_at.p)
      for (int g = 0; g < (int)net.kept; g++) put(net.gates_at, g * hidden + u, inside ? k.kept(g, i) : 0.f);
    if (net.cells_at.p) put(net.cells_at, u, inside ? k.kept(4, i) : 0.f);
  }
}

template <class W>
__global__ static void __launch_bounds__(CUDA_RNN_GRID_THREADS, 1) rnn_grid_forward(const __grid_constant__ cuda_rnn_grid p)
{
  extern __shared__ __align__(1024) float room[];
  rnn_block<W> k(p, false, room);
  const cuda_rnn &net = k.net;
  const int steps = (int)net.steps, gates = (int)net.gates;
  for (int l = threadIdx.x; l < gates * k.units; l += CUDA_RNN_GRID_THREADS) {
    const int g = l >> p.unit_shift, u = l & (k.units - 1);
    k.bias[l] = u < k.n_units ? rnn_get<float>(net.bw, g * net.hidden + k.unit0 + u) : 0;
    k.bias[gates * k.units + l] = u < k.n_units ? rnn_get<float>(net.br, g * net.hidden + k.unit0 + u) : 0;
  }
  RNN_ITEMS(k, i) {
    const int b = k.b0 + k.sequence_of(i), u = k.unit0 + k.unit_of(i);
    k.h[i] = k.there(i) ? rnn_get<float>(net.h0, b, u) : 0;
    k.c[i] = k.there(i) ? rnn_get<float>(net.c0, b, u) : 0;
    k.send(0, i, 0, k.h[i]);
  }
  k.arrive();
  rnn_fetch(k, 0);
#pragma unroll 1
  for (int s = 0; s < steps; s++) {
    k.wait();
    k.multiply(s & 1, [] {});
    if (net.cell == QN_RNN_LSTM) rnn_gates_step<W, QN_RNN_LSTM>(k, s);
    else if (net.cell == QN_RNN_GRU) rnn_gates_step<W, QN_RNN_GRU>(k, s);
    else rnn_gates_step<W, QN_RNN_TANH>(k, s);
    if (s < steps - 1) k.arrive();
    rnn_leave(k, s);
    if (s < steps - 1) rnn_fetch(k, s + 1);
  }
  RNN_ITEMS(k, i) {
    if (!k.there(i)) continue;
    const int b = k.b0 + k.sequence_of(i), u = k.unit0 + k.unit_of(i);
    rnn_put(net.ht, b, u, 0, k.h[i]);
    rnn_put(net.ct, b, u, 0, k.c[i]);
  }
  blocks_leave(k.met, p.unit_blocks, steps);
}

/* ---- gradient ------------------------------------------------------------------------------------------ */

__device__ __forceinline__ void rnn_prefetch(const cuda_rnn_tensor &t, int i, int j, int k)
{
  if (t.p) prefetch_L2((const char *)t.p + rnn_near_at(t, i, j, k) * (t.dtype == QN_F32 ? 4 : 2));
}

/* What forward left of step s, and dy: gates in slots 0 to 3, the cell (or h) of the step, that before it, dy. */
enum { SLOT_CELL = 4, SLOT_OLD = 5, SLOT_DY = 6 };
/* Have all tensors that the gradient reads the dtype of the exchange? */
template <class W> __device__ __forceinline__ bool rnn_uniform(const cuda_rnn &net)
{
  return (!net.gates_at.p || net.gates_at.dtype == W::dtype) && (!net.cells_at.p || net.cells_at.dtype == W::dtype) &&
         (!net.c0.p || net.c0.dtype == W::dtype) && (!net.h0.p || net.h0.dtype == W::dtype) && net.out.dtype == W::dtype &&
         net.dout.dtype == W::dtype;
}
/* Of two items of a thread, the second 256 further, as they are in memory if `raw` is the dtype of the exchange, which no switch of dtypes
 * delays: all loads are under way before the first is opened. */
template <class raw> struct rnn_left { raw gate[2][4], cell[2], old[2], dy[2]; };
template <class W, class raw> __device__ __forceinline__ rnn_left<raw> rnn_load_left(const rnn_block<W> &k, int s, int first)
{
  const cuda_rnn &net = k.net;
  auto get = [](const cuda_rnn_tensor &t, int i, int j, int e = 0) -> raw {
    if constexpr (std::is_same_v<raw, typename W::number>) return t.p ? ((const raw *)t.p)[rnn_near_at(t, i, j, e)] : raw(0);
    else return rnn_get<float>(t, i, j, e);
  };
  const bool lstm = net.cell == QN_RNN_LSTM, gru = net.cell == QN_RNN_GRU;
  const int hidden = (int)net.hidden, kept = net.gates_at.p ? (int)net.kept : 0, of_out = (int)net.first;
  rnn_left<raw> left = {};
#pragma unroll
  for (int n = 0; n < 2; n++) {
    const int i = first + n * CUDA_RNN_GRID_THREADS, b = k.sequence_of(i), at = k.b0 + b, u = k.unit0 + k.unit_of(i);
    if (i >= k.items || !k.there(i) || s >= k.length[b]) continue;
    const int t = k.time(b, s), before = s ? k.time(b, s - 1) : 0;
    if constexpr (std::is_same_v<raw, typename W::number>) {
      const raw *from = (const raw *)net.gates_at.p + rnn_near_at(net.gates_at, t, at, u);
      const int64_t step = (int64_t)hidden * (int)net.gates_at.stride[2];
#pragma unroll
      for (int g = 0; g < 4; g++, from += step)
        if (g < kept) left.gate[n][g] = *from;
    } else
#pragma unroll
      for (int g = 0; g < 4; g++)
        if (g < kept) left.gate[n][g] = get(net.gates_at, t, at, g * hidden + u);
    if (lstm) {
      left.cell[n] = get(net.cells_at, t, at, u);
      left.old[n] = s ? get(net.cells_at, before, at, u) : get(net.c0, at, u);
    } else if (gru) left.old[n] = s ? get(net.out, before, at, of_out + u) : get(net.h0, at, u);
    else left.cell[n] = get(net.out, t, at, of_out + u);
    left.dy[n] = get(net.dout, t, at, of_out + u);
  }
  return left;
}
template <class W, class raw>
__device__ __forceinline__ void rnn_place_left(const rnn_block<W> &k, int s, int first, const rnn_left<raw> &left)
{
  auto open = [](raw x) -> float {
    if constexpr (std::is_same_v<raw, typename W::number>) return W::open(x);
    else return x;
  };
#pragma unroll
  for (int n = 0; n < 2; n++) {
    const int i = first + n * CUDA_RNN_GRID_THREADS;
    if (i >= k.items) continue;
#pragma unroll
    for (int g = 0; g < 4; g++) k.kept(g, i) = open(left.gate[n][g]);
    const float old = open(left.old[n]);
    k.kept(SLOT_CELL, i) = open(left.cell[n]);
    k.kept(SLOT_OLD, i) = k.net.cell == QN_RNN_LSTM && s ? rnn_bounded(k.net, old) : old;
    k.kept(SLOT_DY, i) = open(left.dy[n]);
  }
}
/* Of all items from `first` on, at once; those of the step before are brought nearer. */
template <class W, class raw> __device__ __forceinline__ void rnn_fetch_back(const rnn_block<W> &k, int s, int first)
{
  const cuda_rnn &net = k.net;
  for (int i = first; i < k.items && s; i += CUDA_RNN_GRID_THREADS) {
    const int b = k.sequence_of(i), at = k.b0 + b, u = k.unit0 + k.unit_of(i);
    if (!k.there(i) || s - 1 >= k.length[b]) continue;
    const int t = k.time(b, s - 1);
#pragma unroll
    for (int g = 0; g < 4; g++)
      if (g < (int)net.kept) rnn_prefetch(net.gates_at, t, at, g * (int)net.hidden + u);
    rnn_prefetch(net.cells_at, s > 1 ? k.time(b, s - 2) : t, at, u);
    rnn_prefetch(net.dout, t, at, (int)net.first + u);
  }
  for (int i = first; i < k.items; i += 2 * CUDA_RNN_GRID_THREADS) rnn_place_left(k, s, i, rnn_load_left<W, raw>(k, s, i));
}

/* The step's slopes to where products over all places read them; slot 4: that of r h in n. */
template <class W> __device__ __forceinline__ void rnn_leave_back(const rnn_block<W> &k, int s)
{
  const cuda_rnn &net = k.net;
  RNN_ITEMS(k, i) {
    if (!k.there(i)) continue;
    const int b = k.sequence_of(i);
    const bool inside = s < k.length[b];
    const int place = k.time(b, s) * (int)net.batch + k.b0 + b, rows = (int)net.rows, hidden = (int)net.hidden;
    const int64_t row = (int64_t)place * rows + k.unit0 + k.unit_of(i);
#pragma unroll
    for (int g = 0; g < 4; g++) {
      if (g >= (int)net.gates) break;
      ((typename W::number *)net.slope_x)[row + g * hidden] = W::pack(inside ? k.kept(g, i) : 0.f);
      if (net.slope_h) ((typename W::number *)net.slope_h)[row + g * hidden] = W::pack(inside ? k.kept(g == 2 ? 4 : g, i) : 0.f);
    }
  }
}

/* The slopes of N items at a step, on their way to the other blocks. In h: what reaches h beside r (gru); in c: dc. */
template <class W, int cell, int N> __device__ __forceinline__ void rnn_slopes_items(const rnn_block<W> &k, int s, int first)
{
  constexpr int GATES = cell == QN_RNN_LSTM ? 4 : cell == QN_RNN_GRU ? 3 : 1, KEPT = GATES == 1 ? 0 : 4;
  const cuda_rnn &net = k.net;
  const bool last_step = s == (int)net.steps - 1;
  float gate[N][4] = {}, dh[N], dc[N], cell_of[N], old[N], of_h[N] = {};
#pragma unroll
  for (int n = 0; n < N; n++) {
    const int i = first + n * CUDA_RNN_GRID_THREADS, b = k.sequence_of(i), u = k.unit_of(i);
    dh[n] = last_step ? 0 : k.total(u, b) + k.h[i];
    if (s == k.length[b] - 1) dh[n] = k.there(i) ? rnn_get<float>(net.ht, k.b0 + b, k.unit0 + u) : 0;
    dh[n] += k.kept(SLOT_DY, i);
    dc[n] = k.c[i], cell_of[n] = k.kept(SLOT_CELL, i), old[n] = k.kept(SLOT_OLD, i);
#pragma unroll
    for (int g = 0; g < KEPT; g++) gate[n][g] = k.kept(g, i);
  }
#pragma unroll
  for (int n = 0; n < N; n++) {
    if (cell == QN_RNN_LSTM) rnn_lstm_slopes(net, gate[n], cell_of[n], old[n], dh[n], dc[n]);
    else if (cell == QN_RNN_GRU) rnn_gru_slopes(gate[n], old[n], dh[n], of_h[n]);
    else gate[n][0] = rnn_plain_slope(net, cell_of[n], dh[n]);
  }
#pragma unroll
  for (int n = 0; n < N; n++) {
    const int i = first + n * CUDA_RNN_GRID_THREADS;
    const bool inside = k.there(i) && s < k.length[k.sequence_of(i)];
    if (inside) {
      if (cell == QN_RNN_LSTM) k.c[i] = dc[n];
      if (cell == QN_RNN_GRU) k.h[i] = dh[n];
      k.kept(4, i) = of_h[n];
    }
#pragma unroll
    for (int g = 0; g < GATES; g++) {
      if (inside) k.kept(g, i) = gate[n][g];
      k.send(s & 1, i, g, !inside ? 0 : cell == QN_RNN_GRU && g == 2 ? of_h[n] : gate[n][g]);
    }
  }
}

/* All items, two at a time where a thread has as many. */
template <class W, int cell> __device__ __forceinline__ void rnn_slopes_step(const rnn_block<W> &k, int s)
{
  int i = threadIdx.x;
  for (; i + CUDA_RNN_GRID_THREADS < k.items; i += 2 * CUDA_RNN_GRID_THREADS) rnn_slopes_items<W, cell, 2>(k, s, i);
  if (i < k.items) rnn_slopes_items<W, cell, 1>(k, s, i);
}

template <class W>
__global__ static void __launch_bounds__(CUDA_RNN_GRID_THREADS, 1) rnn_grid_backward(const __grid_constant__ cuda_rnn_grid p)
{
  extern __shared__ __align__(1024) float room[];
  rnn_block<W> k(p, true, room);
  const cuda_rnn &net = k.net;
  const int steps = (int)net.steps;
  RNN_ITEMS(k, i) {
    k.h[i] = 0;
    k.c[i] = k.there(i) ? rnn_get<float>(net.ct, k.b0 + k.sequence_of(i), k.unit0 + k.unit_of(i)) : 0;
  }
  /* What forward left of the next step is loaded when a step has been sent, into registers as far as two items go: it arrives while others
   * are waited for. The first turn of the loop does nothing else. */
  const bool uniform = rnn_uniform<W>(net);
  rnn_left<typename W::number> left = {};
#pragma unroll 1
  for (int s = steps; s >= 0; s--) {
    if (s < steps) {
      const auto place = [&] {
        if (uniform) rnn_place_left(k, s, threadIdx.x, left);
      };
      if (s < steps - 1) {
        k.wait();
        k.multiply(~s & 1, place);
      } else place();
      if (net.cell == QN_RNN_LSTM) rnn_slopes_step<W, QN_RNN_LSTM>(k, s);
      else if (net.cell == QN_RNN_GRU) rnn_slopes_step<W, QN_RNN_GRU>(k, s);
      else rnn_slopes_step<W, QN_RNN_TANH>(k, s);
      k.arrive();
      rnn_leave_back(k, s);
    }
    if (s && uniform) {
      left = rnn_load_left<W, typename W::number>(k, s - 1, threadIdx.x);
      rnn_fetch_back<W, typename W::number>(k, s - 1, threadIdx.x + 2 * CUDA_RNN_GRID_THREADS);
    } else if (s) rnn_fetch_back<W, float>(k, s - 1, threadIdx.x);
  }
  k.wait();
  if (net.dh0.p) k.multiply(0, [] {});
  RNN_ITEMS(k, i) {
    if (!k.there(i)) continue;
    const int b = k.sequence_of(i), u = k.unit_of(i);
    if (net.dh0.p)
      rnn_put(net.dh0, k.b0 + b, k.unit0 + u, 0, k.length[b] ? k.total(u, b) + k.h[i] : rnn_get<float>(net.ht, k.b0 + b, k.unit0 + u));
    rnn_put(net.dc0, k.b0 + b, k.unit0 + u, 0, k.c[i]);
  }
  blocks_leave(k.met, p.unit_blocks, steps);
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

template <class W> static cuda_rnn_grid_kernel rnn_grid_forward_of(int depth, bool simt)
{
  return { W::lines, depth, W::pieces, simt, W::laid, 0, (const void *)rnn_grid_forward<W>, nullptr };
}
template <class W> static cuda_rnn_grid_kernel rnn_grid_backward_of(int depth, bool simt)
{
  return { W::lines, depth, W::pieces, simt, W::laid, 0, nullptr, (const void *)rnn_grid_backward<W> };
}
