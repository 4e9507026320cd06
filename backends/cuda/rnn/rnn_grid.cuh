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
 * the step before's. All blocks are resident (a cooperative launch).
 *
 * Weights W:
 *   rnn_mma    bf16, f16 by mma.sync: lines are rows of A, sequences columns of B. Of 32 numbers along the depth a lane takes 8 side by
 *              side, in A and B alike, as k 2q, 2q + 1, 2q + 8, 2q + 9 of two products
 *   rnn_wgmma  the same by wgmma (rnn_grid_wgmma.cu): both operands in shared memory, two warpgroups share out the depth
 *   rnn_simt   f32: a thread keeps 4 numbers of each of LINES lines; lanes exchange halves of their sums until each has a line's */
#pragma once
#include <type_traits>
#include "kit/meet.cuh"
#include "rnn_cells.cuh"
#include "rnn_grid.h"
#include "kit/sm80.cuh"

/* ---- weights ------------------------------------------------------------------------------------------- */

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
#pragma unroll
    for (int j = 0; j < at_once; j++) {
      if (n + 8 * j >= p.batch_share) break;
#pragma unroll
      for (int i = 0; i < BLOCKS; i++) {
        const int b = n + 8 * j + threadIdx.x % 32 / 4, k = depth_of(p, i);
        if (i >= p.blocks) break;
        const bool there = k < p.depth;
        copy_async<16>(to + (j * BLOCKS + i) * CUDA_RNN_GRID_THREADS * 16, from + (there ? (int64_t)b * p.depth + k : 0), there ? 16 : 0);
      }
    }
    copy_async_commit();
  }
  __device__ __forceinline__ void multiply(const cuda_rnn_grid &p, const uint4 *mine, int n, float *sums) const
  {
    const int lane = threadIdx.x % 32, pitch = cuda_rnn_grid_pitch(p.batch_share);
    sums += (threadIdx.x / 32 * lines + lane / 4) * pitch + n + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < at_once; j++) {
      if (n + 8 * j >= p.batch_share) break;
      float sum[TILES][4] = {}, more[TILES][4] = {};
#pragma unroll
      for (int first = 0; first < BLOCKS; first += LAID ? 2 : 4) {
        constexpr int most = BLOCKS < 4 ? BLOCKS : LAID ? 2 : 4;
        uint4 b[most];                    /* all are under way before the first is multiplied */
        if (first >= p.blocks) break;
#pragma unroll
        for (int e = 0; e < most; e++)
          b[e] = first + e < BLOCKS && first + e < p.blocks ? mine[(j * BLOCKS + first + e) * CUDA_RNN_GRID_THREADS] : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int e = 0; e < most; e++) {
          if (first + e >= BLOCKS || first + e >= p.blocks) break;
          multiply_block(sum, more, first + e, b[e]);
        }
      }
#pragma unroll
      for (int m = 0; m < TILES; m++) {
        if (TILES < 4)
#pragma unroll
          for (int c = 0; c < 4; c++) sum[m][c] += more[m][c];
        float *to = sums + m * 16 * pitch + 8 * j;
        *(float2 *)to = make_float2(sum[m][0], sum[m][1]);
        *(float2 *)(to + 8 * pitch) = make_float2(sum[m][2], sum[m][3]);
      }
    }
  }
  /* Few sums are made in two chains, sum and more. */
  __device__ __forceinline__ void multiply_block(float (&sum)[TILES][4], float (&more)[TILES][4], int block, const uint4 &b) const
  {
#pragma unroll
    for (int m = 0; m < TILES; m++) {
      float (&other)[4] = TILES < 4 ? more[m] : sum[m];
      if (block < KEPT) {
        product(sum[m], a[m][block < KEPT ? block : 0][0], b.x, b.y);
        product(other, a[m][block < KEPT ? block : 0][1], b.z, b.w);
        continue;
      }
      const uint4 *from = more_a + (m * LAID + block - KEPT) * 2 * CUDA_RNN_GRID_THREADS, v = from[0], w = from[CUDA_RNN_GRID_THREADS];
      const uint32_t one[4] = { v.x, v.y, v.z, v.w }, two[4] = { w.x, w.y, w.z, w.w };
      product(sum[m], one, b.x, b.y);
      product(other, two, b.z, b.w);
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
    other = (int64_t)p.batch_blocks * p.batch_share * p.depth;
    exchange = (typename W::number *)p.exchange[direction] + (int64_t)b0 * p.depth;
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
  __device__ __forceinline__ int64_t time(int b, int s) const { return s < length[b] && net.reversed ? length[b] - 1 - s : s; }
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
      exchange[buffer * other + (int64_t)sequence_of(i) * p.depth + g * net.hidden + unit0 + unit_of(i)] = W::pack(v);
  }
  __device__ __forceinline__ void arrive() { blocks_arrive(met); }
  __device__ __forceinline__ void wait() { blocks_wait(met, p.unit_blocks, ++turn); }
  __device__ __forceinline__ void multiply(int buffer)
  {
    const typename W::number *from = exchange + buffer * other;
    if constexpr (W::resident) w.multiply(p, from, sums);
    else multiply_pieces(from);
    __syncthreads();
  }
  __device__ __forceinline__ void multiply_pieces(const typename W::number *from)
  {
    constexpr int step = W::pieces * CUDA_RNN_GRID_THREADS;
    for (int i = 0; i < p.ring; i++) w.fetch(p, from, i * W::group, shared_address(mine + i * step));
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

/* ---- forward ------------------------------------------------------------------------------------------- */

/* The sums of x of step s are on their way to slots 0 to 3; what multiply waits for comes later. */
template <class W> __device__ __forceinline__ void rnn_fetch(const rnn_block<W> &k, int s)
{
  const cuda_rnn &net = k.net;
  RNN_ITEMS(k, i) {
    const int b = k.sequence_of(i);
    if (!k.there(i) || s >= k.length[b]) continue;
    const float *from = (const float *)net.sums + (k.time(b, s) * net.batch + k.b0 + b) * net.rows + k.unit0 + k.unit_of(i);
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
    const int b = k.sequence_of(i), u = k.unit0 + k.unit_of(i);
    const int64_t t = k.time(b, s);
    const bool inside = s < k.length[b];
    rnn_give_as<W::dtype>(net, t, k.b0 + b, u, inside ? k.h[i] : 0.f);
    if (net.gates_at.p)
      for (int g = 0; g < net.kept; g++) rnn_put_as<W::dtype>(net.gates_at, t, k.b0 + b, g * net.hidden + u, inside ? k.kept(g, i) : 0.f);
    if (net.cells_at.p) rnn_put_as<W::dtype>(net.cells_at, t, k.b0 + b, u, inside ? k.kept(4, i) : 0.f);
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
    k.multiply(s & 1);
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

__device__ __forceinline__ void rnn_prefetch(const cuda_rnn_tensor &t, int64_t i, int64_t j, int64_t k)
{
  if (t.p) prefetch_L2((const char *)t.p + rnn_at(t, i, j, k) * (t.dtype == QN_F32 ? 4 : 2));
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
/* Of two items at a time: all loads are under way before the first is opened, if no switch of dtypes lies between. */
template <class W, bool uniform> __device__ __forceinline__ void rnn_fetch_items(const rnn_block<W> &k, int s)
{
  typedef std::conditional_t<uniform, typename W::number, float> raw;
  const cuda_rnn &net = k.net;
  auto get = [](const cuda_rnn_tensor &t, int64_t i, int64_t j, int64_t e = 0) -> raw {
    if constexpr (uniform) return t.p ? ((const raw *)t.p)[rnn_at(t, i, j, e)] : raw(0);
    else return rnn_get<float>(t, i, j, e);
  };
  auto open = [](raw x) -> float {
    if constexpr (uniform) return W::open(x);
    else return x;
  };
  const bool lstm = net.cell == QN_RNN_LSTM, gru = net.cell == QN_RNN_GRU;
  for (int first = threadIdx.x; first < k.items; first += 2 * CUDA_RNN_GRID_THREADS) {
    raw gate[2][4] = {}, cell[2] = {}, old[2] = {}, dy[2] = {};
#pragma unroll
    for (int n = 0; n < 2; n++) {
      const int i = first + n * CUDA_RNN_GRID_THREADS, b = k.sequence_of(i), at = k.b0 + b, u = k.unit0 + k.unit_of(i);
      if (i >= k.items || !k.there(i) || s >= k.length[b]) continue;
      const int64_t t = k.time(b, s), before = s ? k.time(b, s - 1) : 0;
#pragma unroll
      for (int g = 0; g < 4; g++)
        if (g < net.kept) gate[n][g] = get(net.gates_at, t, at, g * net.hidden + u);
      if (lstm) {
        cell[n] = get(net.cells_at, t, at, u);
        old[n] = s ? get(net.cells_at, before, at, u) : get(net.c0, at, u);
      } else if (gru) old[n] = s ? get(net.out, before, at, net.first + u) : get(net.h0, at, u);
      else cell[n] = get(net.out, t, at, net.first + u);
      dy[n] = get(net.dout, t, at, net.first + u);
    }
#pragma unroll
    for (int n = 0; n < 2; n++) {
      const int i = first + n * CUDA_RNN_GRID_THREADS;
      if (i >= k.items) continue;
#pragma unroll
      for (int g = 0; g < 4; g++) k.kept(g, i) = open(gate[n][g]);
      k.kept(SLOT_CELL, i) = open(cell[n]);
      k.kept(SLOT_OLD, i) = lstm && s ? rnn_bounded(net, open(old[n])) : open(old[n]);
      k.kept(SLOT_DY, i) = open(dy[n]);
    }
  }
}
template <class W> __device__ __forceinline__ void rnn_fetch_back(const rnn_block<W> &k, int s)
{
  const cuda_rnn &net = k.net;
  RNN_ITEMS(k, i) {                       /* those of the step before are brought nearer */
    const int b = k.sequence_of(i), at = k.b0 + b, u = k.unit0 + k.unit_of(i);
    if (!k.there(i) || s == 0 || s - 1 >= k.length[b]) continue;
    const int64_t t = k.time(b, s - 1);
#pragma unroll
    for (int g = 0; g < 4; g++)
      if (g < net.kept) rnn_prefetch(net.gates_at, t, at, g * net.hidden + u);
    rnn_prefetch(net.cells_at, s > 1 ? k.time(b, s - 2) : t, at, u);
    rnn_prefetch(net.dout, t, at, net.first + u);
  }
  if (rnn_uniform<W>(net)) rnn_fetch_items<W, true>(k, s);
  else rnn_fetch_items<W, false>(k, s);
}

/* The step's slopes to where products over all places read them; slot 4: that of r h in n. */
template <class W> __device__ __forceinline__ void rnn_leave_back(const rnn_block<W> &k, int s)
{
  const cuda_rnn &net = k.net;
  RNN_ITEMS(k, i) {
    if (!k.there(i)) continue;
    const int b = k.sequence_of(i);
    const bool inside = s < k.length[b];
    const int64_t row = (k.time(b, s) * net.batch + k.b0 + b) * net.rows + k.unit0 + k.unit_of(i);
#pragma unroll
    for (int g = 0; g < 4; g++) {
      if (g >= net.gates) break;
      ((typename W::number *)net.slope_x)[row + g * net.hidden] = W::pack(inside ? k.kept(g, i) : 0.f);
      if (net.slope_h) ((typename W::number *)net.slope_h)[row + g * net.hidden] = W::pack(inside ? k.kept(g == 2 ? 4 : g, i) : 0.f);
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
  rnn_fetch_back(k, steps - 1);
#pragma unroll 1
  for (int s = steps - 1; s >= 0; s--) {
    if (s < steps - 1) {
      k.wait();
      k.multiply(~s & 1);
    }
    if (net.cell == QN_RNN_LSTM) rnn_slopes_step<W, QN_RNN_LSTM>(k, s);
    else if (net.cell == QN_RNN_GRU) rnn_slopes_step<W, QN_RNN_GRU>(k, s);
    else rnn_slopes_step<W, QN_RNN_TANH>(k, s);
    k.arrive();
    rnn_leave_back(k, s);
    if (s) rnn_fetch_back(k, s - 1);
  }
  k.wait();
  if (net.dh0.p) k.multiply(0);
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
