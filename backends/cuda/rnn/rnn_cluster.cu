/* rnn_cluster.cu -- all steps of a layer of few units in one kernel: a cluster of blocks keeps all of the layer's recurrent weights and
 * takes a share of the batch from the first step to the last, so that nothing but the cluster is waited for.
 *
 *   sums [gate and unit][sequence] = r h        a warp has all gates of 8 units and the whole depth: a tile of 16 lines is two gates of
 *                                               them, so a thread's sums are the four gates of a unit in two sequences, and c and h stay
 *                                               in its registers
 *
 * Weights are fragments of mma.sync: of KEPT times 32 numbers of the depth in registers, of the rest in shared memory. h of a step is in
 * the shared memory of every block, in two buffers in turn: a warp sends its 16 bytes of each sequence to all blocks of its cluster, and
 * a buffer's mbarrier counts what has come; a block alone stores, and its warps arrive. A block that sends h of step s + 2 has received
 * all of s + 1, which its peers sent when they had read s: no buffer is overwritten too early, and no warp waits for its block.
 *
 * bf16, f16; f32 by rnn_cluster_f32.cu. Compute capability 9.0. Not: more than 512 units, 256 of f32; projection; gru with the reset
 * before. */
#include "rnn_cells.cuh"
#include "rnn_cluster.h"
#include "kit/shared_memory.h"
#include "kit/sm90.cuh"

enum { WARPS = 8, KEPT = 8, MOST_PARTS = 8, AHEAD = 4 };   /* AHEAD: steps, at whose end DRAM has answered */

/* Numbers from a sequence's h to the next one's: 8 lanes that read two of them at once meet no bank twice. */
QN_EITHER_SIDE int32_t pitch_of(int32_t depth) { return depth + 32; }

template <bool bf16, int TILES> struct cluster_block {       /* TILES: of 8 sequences */
  static constexpr uint32_t dtype = bf16 ? QN_BF16 : QN_F16;
  static constexpr int share = 8 * TILES, units = 8 * WARPS;
  const cuda_rnn_cluster &p;
  const cuda_rnn &net;
  int lane, warp, rank, unit, pitch, blocks;    /* blocks: of 32 numbers along the depth */
  uint16_t *h;                            /* [2][share][pitch] */
  uint16_t *stage;                        /* this warp's [share][8] */
  uint4 *rest;                            /* weights that are not kept: [block][tile][half][thread] */
  uint32_t full;                          /* two mbarriers */
  uint32_t a[KEPT][2][2][4];

  __device__ __forceinline__ static uint16_t pack(float x) { return bf16 ? float_to_bf16(x) : float_to_f16(x); }
  __device__ __forceinline__ static void product(float (&d)[4], const uint32_t (&x)[4], uint32_t b0, uint32_t b1)
  {
    if (bf16) mma_bf16::product(d, x, b0, b1);
    else mma_f16::product(d, x, b0, b1);
  }
  __device__ __forceinline__ cluster_block(const cuda_rnn_cluster &given, cuda_rnn *near, char *room)
    : p(given), net(rnn_near(given.net[blockIdx.x / (given.parts * given.shares)], near))
  {
    lane = threadIdx.x % 32, warp = threadIdx.x / 32, rank = blockIdx.x % p.parts;
    unit = rank * units + warp * 8 + lane / 4;
    pitch = pitch_of(p.depth), blocks = p.depth / 32;
    full = shared_address(room);
    stage = (uint16_t *)(room + 16) + warp * share * 8;
    h = (uint16_t *)(room + 16) + WARPS * share * 8;
    rest = (uint4 *)(h + 2 * share * pitch) + threadIdx.x;
    __syncthreads();
  }
  /* Numbers k .. k + 7 of this lane's unit, gate g. */
  __device__ __forceinline__ uint4 weight(int direction, int g, int k) const
  {
    if (g >= net.gates || unit >= net.hidden || k >= net.hidden) return make_uint4(0, 0, 0, 0);
    const uint16_t *from = (const uint16_t *)p.weights[direction] + (g * net.hidden + unit) * p.weights_row[direction];
    if (p.whole) return *(const uint4 *)(from + k);
    uint32_t word[4] = {};
#pragma unroll
    for (int i = 0; i < 8; i++)
      if (k + i < net.hidden) word[i / 2] |= (uint32_t)from[(k + i) * p.weights_step[direction]] << i % 2 * 16;
    return make_uint4(word[0], word[1], word[2], word[3]);
  }
  /* Of tile m along a block of 32: two products' fragments. */
  __device__ __forceinline__ void load(int direction, int m, int block, uint32_t (&to)[2][4]) const
  {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const uint4 v = weight(direction, 2 * m + i, block * 32 + lane % 4 * 8);
      to[0][i] = v.x, to[0][2 + i] = v.y, to[1][i] = v.z, to[1][2 + i] = v.w;
    }
  }
  __device__ __forceinline__ void load_all(int direction)
  {
#pragma unroll
    for (int i = 0; i < KEPT; i++)
#pragma unroll
      for (int m = 0; m < 2; m++) load(direction, m, i, a[i][m]);
    for (int i = KEPT; i < blocks; i++)
#pragma unroll
      for (int m = 0; m < 2; m++) {
        uint32_t of[2][4];
        load(direction, m, i, of);
#pragma unroll
        for (int j = 0; j < 2; j++) rest[(((i - KEPT) * 2 + m) * 2 + j) * 32 * WARPS] = make_uint4(of[j][0], of[j][1], of[j][2], of[j][3]);
      }
  }
  __device__ __forceinline__ uint32_t arrived(int buffer) const { return full + buffer * 8; }
  __device__ __forceinline__ void expect(int buffer) const
  {
    if (p.parts > 1 && threadIdx.x == 0) barrier_expect(arrived(buffer), (uint32_t)(share * p.depth * 2));
  }
  /* What is in `stage` of this warp's units to every block. */
  __device__ __forceinline__ void send(int buffer) const
  {
    __syncwarp();
    for (int i = lane; i < share * p.parts; i += 32) {
      const int b = i % share, to = i / share;
      const uint4 v = *(const uint4 *)(stage + b * 8);
      uint16_t *at = h + (buffer * share + b) * pitch + rank * units + warp * 8;
      if (p.parts == 1) *(uint4 *)at = v;
      else
        cluster_send(cluster_address(shared_address(at), to), __uint_as_float(v.x), __uint_as_float(v.y), __uint_as_float(v.z),
                     __uint_as_float(v.w), cluster_address(arrived(buffer), to));
    }
    __syncwarp();
    if (p.parts == 1 && lane == 0) barrier_arrive(arrived(buffer));
  }
  __device__ __forceinline__ void multiply(int buffer, float (&sum)[TILES][2][4]) const
  {
    const uint16_t *from = h + (buffer * share + lane / 4) * pitch + lane % 4 * 8;
    float more[TILES][2][4] = {};         /* two chains, of the halves of 32 */
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
      if (i >= blocks) break;
#pragma unroll
      for (int n = 0; n < TILES; n++) {
        const uint4 b = *(const uint4 *)(from + n * 8 * pitch + i * 32);
#pragma unroll
        for (int m = 0; m < 2; m++) product(sum[n][m], a[i][m][0], b.x, b.y), product(more[n][m], a[i][m][1], b.z, b.w);
      }
    }
#pragma unroll 2
    for (int i = KEPT; i < blocks; i++) {
      uint32_t w[2][2][4];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const uint4 v = rest[((i - KEPT) * 4 + j) * 32 * WARPS];
        w[j / 2][j % 2][0] = v.x, w[j / 2][j % 2][1] = v.y, w[j / 2][j % 2][2] = v.z, w[j / 2][j % 2][3] = v.w;
      }
#pragma unroll
      for (int n = 0; n < TILES; n++) {
        const uint4 b = *(const uint4 *)(from + n * 8 * pitch + i * 32);
#pragma unroll
        for (int m = 0; m < 2; m++) product(sum[n][m], w[m][0], b.x, b.y), product(more[n][m], w[m][1], b.z, b.w);
      }
    }
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
      for (int i = 0; i < 8; i++) sum[n][i / 4][i % 4] += more[n][i / 4][i % 4];
  }
};

/* A step of this thread's sequences, whether or not they last so long: nothing branches. gate: sums of x, becomes what is kept. */
template <int cell, int TILES>
__device__ __forceinline__ void cluster_gates(const cuda_rnn &net, int s, const int (&length)[TILES][2], const float (&bias)[4],
                                              const float (&sum)[TILES][2][4], float (&gate)[TILES][2][4], float (&h)[TILES][2],
                                              float (&c)[TILES][2], float (&raw)[TILES][2])
{
#pragma unroll
  for (int n = 0; n < TILES; n++)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      float (&at)[4] = gate[n][j], state = c[n][j], given;
#pragma unroll
      for (int g = 0; g < 4; g++) {
        const float of_h = sum[n][g / 2][g % 2 * 2 + j];
        if (g < 2 || cell == QN_RNN_LSTM) at[g] += of_h + bias[g];
        else if (g == 2) at[2] += bias[2], at[3] = of_h + bias[3];
      }
      if (cell == QN_RNN_LSTM) given = rnn_lstm(net, at, state, raw[n][j]);
      else given = cell == QN_RNN_GRU ? rnn_gru(at, h[n][j]) : rnn_plain(net, at[0]);
      const bool inside = s < length[n][j];
      h[n][j] = inside ? given : h[n][j], c[n][j] = inside ? state : c[n][j], raw[n][j] = inside ? raw[n][j] : 0;
    }
}

template <bool bf16, int TILES>
__global__ static void __launch_bounds__(32 * WARPS, 1) rnn_cluster(const __grid_constant__ cuda_rnn_cluster p)
{
  extern __shared__ __align__(16) char room[];
  __shared__ cuda_rnn near;
  cluster_block<bf16, TILES> k(p, &near, room);
  const cuda_rnn &net = k.net;
  const int group = blockIdx.x / p.parts, direction = group / p.shares, b0 = group % p.shares * k.share + k.lane % 4 * 2;
  const int steps = (int)net.steps, H = (int)net.hidden, u = k.unit;
  const bool lstm = net.cell == QN_RNN_LSTM, gru = net.cell == QN_RNN_GRU;
  if (threadIdx.x < 2) barrier_init(k.arrived(threadIdx.x), p.parts > 1 ? 1 : WARPS);
  barrier_init_fence();
  __syncthreads();
  for (int i = 0; i < 2; i++) k.expect(i);
  cluster_sync();

  /* Sequence n, j of a thread: b0 + 8 n + j. */
  float h[TILES][2], c[TILES][2], gate[TILES][2][4], bias[4] = {};
  int length[TILES][2];
#pragma unroll
  for (int n = 0; n < TILES; n++)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const int b = b0 + 8 * n + j;
      const bool there = b < net.batch && u < H;
      length[n][j] = there ? (int)rnn_length(net, b) : -1;
      h[n][j] = there ? rnn_get<float>(net.h0, b, u) : 0, c[n][j] = there ? rnn_get<float>(net.c0, b, u) : 0;
      k.stage[(8 * n + k.lane % 4 * 2 + j) * 8 + k.lane / 4] = k.pack(h[n][j]);
    }
  k.send(0);
#pragma unroll
  for (int g = 0; g < 4; g++)
    if (u < H && g < net.gates) {
      const float bw = rnn_get<float>(net.bw, g * H + u), br = rnn_get<float>(net.br, g * H + u);
      bias[g] = gru && g == 2 ? bw : bw + br;
      if (gru && g == 2) bias[3] = br;
    }
  k.load_all(direction);

  /* Addresses go from step to step; what the loop asks of net is asked once. */
  const int64_t forth = net.reversed ? -1 : 1, by_step = forth * net.batch * net.rows;
  const int gates = (int)net.gates;
  auto sums_of = [&](int last, int b) { return (const float *)net.sums + (rnn_time(net, last, 0) * net.batch + b) * net.rows + u; };
  const float *from[TILES][2], *further[TILES];
  /* Where a step gives y alone, all steps long. */
  const bool alone = net.out.dtype == k.dtype && net.out.p && !net.next && !net.gates_at.p && !net.cells_at.p && !net.lengths.p;
  const int64_t y_step = forth * net.out.stride[0];
  uint16_t *y[TILES][2];
#pragma unroll
  for (int n = 0; n < TILES; n++)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const int b = b0 + 8 * n + j;
      from[n][j] = sums_of(length[n][j], b);
      y[n][j] = (uint16_t *)net.out.p + rnn_at(net.out, rnn_time(net, length[n][j], 0), b, net.first + u);
    }
  /* The sums of x of step s come while h does. */
  auto fetch = [&](int s) {
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
      for (int j = 0; j < 2; j++) {
#pragma unroll
        for (int g = 0; g < 4; g++) gate[n][j][g] = g < gates && s < length[n][j] ? __ldcs(from[n][j] + g * H) : 0;
        from[n][j] += by_step;
      }
  };
  /* Those of a step further on are brought to the L2 cache: of a sequence and gate 8 units' lie side by side, a lane has one of these. */
  const int brought = k.lane / 4 % 2, of_gate = k.lane / 8;
#pragma unroll
  for (int n = 0; n < TILES; n++)
    further[n] = sums_of(brought ? length[n][1] : length[n][0], b0 + 8 * n + brought) + of_gate * H - k.lane / 4 + by_step;
  auto bring = [&](int s) {
#pragma unroll
    for (int n = 0; n < TILES; n++) {
      if (s < (brought ? length[n][1] : length[n][0]) && of_gate < gates) prefetch_L2(further[n]);
      further[n] += by_step;
    }
  };
  for (int s = 1; s < AHEAD; s++) bring(s);
  fetch(0);
#pragma unroll 1
  for (int s = 0; s < steps; s++) {
    const int buffer = s & 1;
    float sum[TILES][2][4] = {}, raw[TILES][2] = {};
    barrier_wait(k.arrived(buffer), (uint32_t)(s >> 1 & 1));
    if (s + 2 < steps) k.expect(buffer);
    k.multiply(buffer, sum);
    if (lstm) cluster_gates<QN_RNN_LSTM>(net, s, length, bias, sum, gate, h, c, raw);
    else if (gru) cluster_gates<QN_RNN_GRU>(net, s, length, bias, sum, gate, h, c, raw);
    else cluster_gates<QN_RNN_TANH>(net, s, length, bias, sum, gate, h, c, raw);
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
      for (int j = 0; j < 2; j++) k.stage[(8 * n + k.lane % 4 * 2 + j) * 8 + k.lane / 4] = k.pack(h[n][j]);
    if (s + 1 < steps) k.send(~buffer & 1);
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
      for (int j = 0; j < 2; j++) {
        if (length[n][j] < 0) continue;
        if (alone) {
          *y[n][j] = k.pack(h[n][j]);
          y[n][j] += y_step;
          continue;
        }
        const int b = b0 + 8 * n + j;
        const bool inside = s < length[n][j];
        const int64_t t = rnn_time(net, length[n][j], s);
        rnn_give_as<k.dtype>(net, t, b, u, inside ? h[n][j] : 0.f);
        if (net.gates_at.p)
#pragma unroll
          for (int g = 0; g < 4; g++)
            if (g < net.kept) rnn_put_as<k.dtype>(net.gates_at, t, b, g * H + u, inside ? gate[n][j][g] : 0.f);
        rnn_put_as<k.dtype>(net.cells_at, t, b, u, raw[n][j]);
      }
    if (s + 1 < steps) fetch(s + 1);
    bring(s + AHEAD);
  }
#pragma unroll
  for (int n = 0; n < TILES; n++)
#pragma unroll
    for (int j = 0; j < 2; j++) {
      if (length[n][j] < 0) continue;
      rnn_put(net.ht, b0 + 8 * n + j, u, 0, h[n][j]);
      rnn_put(net.ct, b0 + 8 * n + j, u, 0, c[n][j]);
    }
  cluster_sync();                         /* a peer may still be sending what this block has counted */
}

/* ---- host ------------------------------------------------------------------------------------------ */

static qn_status refused(const qn_request *r, const cuda_rnn_problem *p, qn_prepared *out)
{
  const cuda_rnn *q = &p->net;
  if (r->device->arch_major != 9 || r->device->arch_minor)
    return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", (int)r->device->arch_major,
                     (int)r->device->arch_minor);
  if (q->dtype == QN_F64) return qn_refuse(out, "computes in f32", "x", "f32, f16, bf16", "f64");
  if (q->projects) return qn_refuse(out, "a state is what its cell gives", "projection", "none", "one");
  if (q->before) return qn_refuse(out, "all gates come of one product by h", "reset", "after", "before");
  const int64_t most = MOST_PARTS * (q->dtype == QN_F32 ? 32 : 64);
  if (q->hidden > most)
    return qn_refuse(out, "recurrent weights in the registers and shared memory of a cluster", "r",
                     q->dtype == QN_F32 ? "256 units or fewer" : "512 units or fewer", "%lld", (long long)q->hidden);
  if (q->steps > INT32_MAX / 4 || q->batch > 1 << 20)
    return qn_refuse(out, "counts of 32 bits", "x", "fewer steps or sequences", "%lld steps", (long long)q->steps);
  return QN_OK;
}

template <bool bf16> static const void *kernel_of(int tiles)
{
  return tiles == 1 ? (const void *)rnn_cluster<bf16, 1> : (const void *)rnn_cluster<bf16, 2>;
}

qn_status cuda_rnn_cluster_plan(const qn_request *r, qn_prepared *out, const cuda_rnn_problem *p, cuda_rnn_gathering *to)
{
  const qn_status s = refused(r, p, out);
  if (s) return s;
  const cuda_rnn *q = &p->net;
  const bool f32 = q->dtype == QN_F32;
  const int units = (f32 ? 4 : 8) * WARPS;
  to->parts = (int32_t)qn_ceil_div(q->hidden, units), to->threads = 32 * WARPS, to->depth = to->parts * units;
  const int64_t depth = to->depth, rest = f32 ? 0 : qn_max_i64(depth / 32 - KEPT, 0) * 4 * to->threads * 16;
  double best = 0;
  for (int tiles = 1; tiles <= (f32 ? 8 : 2); tiles++) {        /* of f32: sequences */
    const int64_t share = f32 ? tiles : 8 * tiles, clusters = p->directions * qn_ceil_div(q->batch, share);
    const int64_t shared = f32 ? CUDA_RNN_CLUSTER_F32_SHARED(depth) : 16 + 2 * share * (8 * WARPS + 2 * pitch_of((int32_t)depth)) + rest;
    /* More than two blocks leave some multiprocessors of a group over: of 132 there is room for 30 clusters of 4, 15 of 8 (measured). */
    const int64_t at_once = qn_max_i64(to->parts > 2 ? r->device->units * 10 / (11 * to->parts) : r->device->units / to->parts, 1);
    const double products = f32 ? (double)qn_min_i64(q->batch, share) * 350 : (double)tiles * (100 + 3 * (double)depth);
    const double step = (to->parts == 1 ? 600 : 1000) + products;
    const double cost = (double)(qn_ceil_div(clusters, at_once) * q->steps) * step;
    if (shared + (int64_t)sizeof(cuda_rnn) > cuda_room(r) || (best > 0 && cost >= best)) continue;
    best = cost;
    to->share = (int32_t)share, to->blocks = (int32_t)(clusters * to->parts), to->shared = (int32_t)shared;
    if (f32) to->kernel = cuda_rnn_cluster_f32;
    else to->kernel = q->dtype == QN_BF16 ? kernel_of<true>(tiles) : kernel_of<false>(tiles);
  }
  if (!(best > 0)) return qn_refuse(out, "weights and states in shared memory", "r", "fewer units", "%lld units", (long long)q->hidden);
  if (!f32) {
    out->traits |= QN_TRAIT_TENSOR_CORES;
    if (out->numerics.accumulator == QN_ACC_NATIVE) out->numerics.accumulator = QN_ACC_F32_TC;
  }
  out->traits &= ~(uint64_t)(QN_TRAIT_PORTABLE | QN_TRAIT_BATCH_INVARIANT);         /* more sequences: other tiles, and a limit */
  const double weights = (double)(q->rows * q->hidden) * (double)qn_kit_bytes(q->dtype);       /* each cluster reads all */
  out->estimate += (double)p->layers * (6000 + (double)(to->blocks / to->parts) * weights / 5000 + best);
  return QN_OK;
}

qn_status cuda_rnn_cluster_run(const cuda_rnn_gathering *how, const cuda_rnn net[2], const void *const weights[2],
                               const int64_t weights_row[2], const int64_t weights_step[2], const qn_launch *launch)
{
  cuda_rnn_cluster g = {};
  const int64_t unit = net[0].dtype == QN_F32 ? 4 : 8;
  g.whole = 1;
  g.parts = how->parts, g.share = how->share, g.shares = (int32_t)qn_ceil_div(net[0].batch, how->share), g.depth = how->depth;
  for (int d = 0; d < 2; d++) {
    g.net[d] = net[d], g.weights[d] = weights[d], g.weights_row[d] = weights_row[d], g.weights_step[d] = weights_step[d];
    if (weights[d] && ((uintptr_t)weights[d] % 16 || weights_row[d] % unit || weights_step[d] != 1 || net[d].hidden % unit)) g.whole = 0;
  }
  void *arguments[] = { &g };
  return cuda_launch_clusters(how->kernel, (unsigned)how->blocks, (unsigned)how->parts, (unsigned)how->threads, (size_t)how->shared,
                              arguments, launch, "rnn_cluster");
}
