/* rnn_block.cu -- all steps of a layer of few units, each sequence within one block: it has all recurrent weights in registers
 * (rnn_block.cuh) and h in shared memory, in two buffers in turn, so a step is waited for by one barrier of the block alone. Sums are f32,
 * of weights opened to f32.
 *
 *   sums [gate] of a unit = r h           lanes share out the depth, then each has one or two gates, whose functions it makes
 *
 * A step reads one buffer and writes the other; the barrier at its end lies between any write and the reads of the next step, and between
 * these and the next write to the same buffer. Sums of x come by copies to shared memory some steps ahead, each by the thread that reads
 * it. Several blocks share a multiprocessor where they fit, and others follow.
 *
 * Not: f64; more units than registers and shared memory hold (128); projection, gru with the reset before: a second product; tensors of
 * more than 2^31 bytes. */
#include "rnn_block.cuh"
#include "kit/shared_memory.h"

template <int PARTS, int GATES>
__global__ static void __launch_bounds__(BLOCK_THREADS, PARTS == 4 ? 2 : 1) rnn_block(const __grid_constant__ cuda_rnn_block p)
{
  constexpr int EACH = 4 / PARTS, UNITS = 32 / PARTS, CHUNKS = (PARTS == 4 ? CUDA_RNN_BLOCK_FEW : CUDA_RNN_BLOCK_MOST) / (4 * PARTS);
  typedef block_weights<GATES, PARTS, CHUNKS> W;
  constexpr int PITCH = W::PITCH;
  extern __shared__ __align__(16) char room[];
  const int batch = (int)p.net[0].batch, direction = blockIdx.x / batch, b = blockIdx.x % batch, threads = blockDim.x;
  const block_room k(room, PITCH, EACH);
  const cuda_rnn &net = rnn_near(p.net[direction], k.net);
  const int lane = threadIdx.x % 32, within = lane % UNITS, part = lane / UNITS, u = threadIdx.x / 32 * UNITS + within;
  for (int i = threadIdx.x; i < 2 * PITCH; i += threads) k.states[i] = 0;
  __syncthreads();
  const int H = (int)net.hidden, steps = (int)net.steps, gate0 = part * EACH;
  const int length = (int)rnn_length(net, b), forth = net.reversed ? -1 : 1, t0 = net.reversed ? length - 1 : 0;
  const block_limits limits = { net.cell, block_held((float)net.clip) };
  const bool there = u < H, mine = there && part == 0, drops = net.dropout != 0;

  W w;
  w.depth = H, w.part = part, w.own = block_held(shared_address(k.states + w.place(0)));
  w.load(k.rest, [&](int at, float4 (&v)[GATES]) {
#pragma unroll
    for (int g = 0; g < GATES; g++)
      v[g] = there ? block_four(p, direction, net.dtype, (int64_t)g * H + u, at, H) : make_float4(0, 0, 0, 0);
  });
  float by_x[EACH] = {}, by_h[EACH] = {};            /* biases; of a gru's n beside r h */
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (there && gate0 + e < GATES) {
      const int row = (gate0 + e) * H + u;
      by_x[e] = rnn_get<float>(net.bw, row), by_h[e] = rnn_get<float>(net.br, row);
    }
  float h = there ? rnn_get<float>(net.h0, b, u) : 0, c = there ? rnn_get<float>(net.c0, b, u) : 0;
  if (mine) k.states[u] = h;

  const int64_t row = net.width, places = net.batch * row;
  block_cursor y(net.out, t0, b, net.first + u, forth), cells(net.cells_at, t0, b, u, forth),
    gates(net.gates_at, t0, b, (int64_t)gate0 * H + u, forth),
    next(net.next, net.dtype, t0 * places + b * row + net.first + u, forth * places);
  if (!mine) y.dtype = next.dtype = ~0u;             /* what a lane does not store: without a branch at every step */
  if (!there || part != 1) cells.dtype = ~0u;
  if (!there) gates.dtype = ~0u;
  const int beyond = H * (int)net.gates_at.stride[2], x_step = forth * batch * (int)net.rows;
  const float *x_from = (const float *)net.sums + ((int64_t)t0 * batch + b) * net.rows + gate0 * H + u;
  float *ring = k.ring + threadIdx.x;
  auto fetch = [&](int s) {
    if (s < length && there)
#pragma unroll
      for (int e = 0; e < EACH; e++)
        if (gate0 + e < GATES) copy_async<4>(shared_address(ring + (s % AHEAD * EACH + e) * threads), x_from + e * H, 4);
    x_from += x_step;
    copy_async_commit();
  };
  for (int s = 0; s < AHEAD; s++) fetch(s);
  __syncthreads();

#pragma unroll 1
  for (int s = 0; s < length; s++) {
    float sum[4], x[EACH], kept[EACH], raw = 0;
    copy_async_wait<AHEAD - 1>();
#pragma unroll
    for (int e = 0; e < EACH; e++) x[e] = ring[(s % AHEAD * EACH + e) * threads] + by_x[e];
    w.multiply((s & 1) * PITCH, sum);
    if (GATES > 1) block_halve<2>(sum, lane, 16);
    else sum[0] += __shfl_xor_sync(~0u, sum[0], 16);
    if (PARTS == 4) {
      if (GATES > 1) block_halve<1>(sum, lane, 8);
      else sum[0] += __shfl_xor_sync(~0u, sum[0], 8);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) sum[e] += by_h[e], kept[e] = x[e] + sum[e];
    auto of = [&](const float *v, int g) { return __shfl_sync(~0u, v[g % EACH], g / EACH * UNITS + within); };
    if (GATES == 4) {
      kept[0] = rnn_sigmoid_or_tanh(kept[0], gate0 == 2);
      if (EACH == 2) kept[EACH - 1] = rnn_sigmoid(kept[EACH - 1]);
      raw = of(kept, 1) * c + of(kept, 0) * of(kept, 2);
      c = rnn_bounded(limits, raw);
      h = of(kept, 3) * rnn_tanh(c);
    } else if (GATES == 3) {
      const float n_x = of(x, 2), n_h = of(sum, 2);
#pragma unroll
      for (int e = 0; e < EACH; e++) kept[e] = rnn_sigmoid(kept[e]);
      const float r = of(kept, 0), z = of(kept, 1), made = rnn_tanh(n_x + r * n_h);
      h = (1 - z) * made + z * h;
      if (gate0 == 2) kept[0] = made;
      if (gate0 + EACH == 4) kept[EACH - 1] = n_h;
    } else
      h = rnn_plain(limits, kept[0]);
    if (mine) k.states[(~s & 1) * PITCH + u] = h;
    __syncthreads();
    float given = h;
    if (drops && next)
      given = rnn_dropped(net, ((net.layer * net.steps + t0 + forth * s) * net.batch + b) * net.width + net.first + u, h);
    y.put(h), next.put(given);
    if (GATES == 4) cells.put(raw);
#pragma unroll
    for (int e = 0; e < (GATES > 1 ? EACH : 0); e++) gates.put(kept[e], e * beyond);
    y.go(), next.go(), cells.go(), gates.go();
    fetch(s + AHEAD);
  }
  if (!there) return;
  for (int t = length; t < steps; t++) {  /* beyond the sequence's end */
    if (part == 0) rnn_give(net, t, b, u, 0.f);
    if (part == 1) rnn_put(net.cells_at, t, b, u, 0.f);
    for (int e = 0; e < EACH && GATES > 1; e++) rnn_put(net.gates_at, t, b, (gate0 + e) * H + u, 0.f);
  }
  if (part == 0) rnn_put(net.ht, b, u, 0, h);
  if (part == 1) rnn_put(net.ct, b, u, 0, c);
}

/* ---- host ------------------------------------------------------------------------------------------ */

/* Are all places of a tensor [.., i, j, k] within 31 bits of bytes, and does a step's code know its numbers? */
static bool fits(const cuda_rnn_operand *o, int first)
{
  if (o->value < 0) return true;
  int64_t most = 0;
  for (int i = first; i < 4; i++) {
    const int64_t step = o->stride[i] < 0 ? -o->stride[i] : o->stride[i];
    if (o->dim[i] > 1 && step > INT32_MAX) return false;
    if (o->dim[i] > 1) most += step * qn_min_i64(o->dim[i] - 1, INT32_MAX);
  }
  return most <= INT32_MAX / 4 && (o->dtype == QN_F32 || o->dtype == QN_F16 || o->dtype == QN_BF16);
}

static qn_status refused(const qn_request *r, const cuda_rnn_problem *p, qn_prepared *out)
{
  const cuda_rnn *q = &p->net;
  if (r->device->arch_major < 8)
    return qn_refuse(out, "compute capability 8.0 or above", "", "8.0", "%d.%d", (int)r->device->arch_major, (int)r->device->arch_minor);
  if (q->dtype == QN_F64) return qn_refuse(out, "computes in f32", "x", "f32, f16, bf16", "f64");
  if (q->projects) return qn_refuse(out, "a state is what its cell gives", "projection", "none", "one");
  if (q->before) return qn_refuse(out, "all gates come of one product by h", "reset", "after", "before");
  if (q->hidden > CUDA_RNN_BLOCK_MOST)
    return qn_refuse(out, "recurrent weights in the registers and shared memory of a block", "r", "128 units or fewer", "%lld",
                     (long long)q->hidden);
  static const int three[] = { RNN_Y, RNN_DY }, four[] = { RNN_GATES, RNN_CELLS, RNN_INNER };
  bool small = q->steps <= INT32_MAX / 4 / qn_max_i64(q->rows, q->width) / q->batch;
  for (int i = 0; i < 2; i++) small = small && fits(&p->one[three[i]], 0);
  for (int i = 0; i < 3; i++) small = small && fits(&p->one[four[i]], 1);
  if (!small) return qn_refuse(out, "places of 31 bits, of f32, f16 or bf16", "x", "fewer steps or sequences", "%s", "more, or others");
  return QN_OK;
}

static const void *const forward[2][3] = {
  { (const void *)rnn_block<4, 1>, (const void *)rnn_block<4, 3>, (const void *)rnn_block<4, 4> },
  { (const void *)rnn_block<2, 1>, (const void *)rnn_block<2, 3>, (const void *)rnn_block<2, 4> },
};

qn_status cuda_rnn_block_plan(const qn_request *r, qn_prepared *out, const cuda_rnn_problem *p, cuda_rnn_alone *to)
{
  const qn_status s = refused(r, p, out);
  if (s) return s;
  const cuda_rnn *q = &p->net;
  const int64_t large = q->hidden > CUDA_RNN_BLOCK_FEW, parts = large ? 2 : 4, each = 4 / parts, gates = q->gates;
  const int64_t units = large ? CUDA_RNN_BLOCK_MOST : CUDA_RNN_BLOCK_FEW, depth = q->gradient ? gates * units : units;
  const int64_t lines = q->gradient ? 4 : gates, chunks = units * gates / (4 * parts * lines);
  to->kernel = (q->gradient ? cuda_rnn_block_backward : forward)[large][gates == 1 ? 0 : gates - 2];
  to->threads = (int32_t)qn_round_up(q->hidden * parts, 32);
  const int64_t rest = qn_max_i64(chunks - CUDA_RNN_BLOCK_KEPT / lines, 0) * lines, ring = q->gradient ? 0 : CUDA_RNN_BLOCK_AHEAD * each;
  to->shared = (int32_t)(qn_round_up(sizeof(cuda_rnn), 16) + 4 * (2 * depth + ring * to->threads) + 16 * rest * to->threads);
  if (to->shared > cuda_room(r))
    return qn_refuse(out, "weights and states in shared memory", "r", "fewer units", "%lld", (long long)q->hidden);
  out->traits &= ~(uint64_t)(QN_TRAIT_PORTABLE | QN_TRAIT_BATCH_INVARIANT);         /* places, shared memory: a limit */
  /* Registers let so many blocks in, which share what a multiprocessor does in a cycle, but not what they wait for. */
  const int64_t beside = large ? 1 : qn_min_i64(512 / to->threads, 8), blocks = q->batch * p->directions;
  const double waves = (double)qn_ceil_div(blocks, r->device->units * beside);
  const double near = (double)qn_min_i64(qn_ceil_div(blocks, r->device->units), beside);
  const double product = (double)(q->rows * qn_round_up(q->hidden, 4 * parts)) / 200 * (rest ? 1.5 : 1.1);
  const double step = 2.3 * (product * near + 100 * (near + 1) + (q->gradient ? 50 : 0));
  out->estimate += (double)p->layers * (5000 + waves * ((double)(q->rows * q->hidden) / 14 + (double)q->steps * step));
  return QN_OK;
}

qn_status cuda_rnn_block_run(const cuda_rnn_alone *how, const cuda_rnn net[2], const void *const weights[2], const int64_t weights_row[2],
                             const int64_t weights_step[2], const qn_launch *launch)
{
  cuda_rnn_block g = {};
  const uintptr_t piece = net[0].dtype == QN_F32 ? 16 : 8;
  const int directions = weights[1] ? 2 : 1;
  g.whole = net[0].hidden % 4 == 0;
  for (int d = 0; d < directions; d++) {
    g.net[d] = net[d], g.weights[d] = weights[d], g.weights_row[d] = weights_row[d], g.weights_step[d] = weights_step[d];
    if ((uintptr_t)weights[d] % piece || weights_row[d] % 4 || weights_step[d] != 1) g.whole = 0;
  }
  void *arguments[] = { &g };
  return cuda_launch_clusters(how->kernel, (unsigned)(directions * net[0].batch), 1, (unsigned)how->threads, (size_t)how->shared, arguments,
                              launch, "rnn_block");
}
