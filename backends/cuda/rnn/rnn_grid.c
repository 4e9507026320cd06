/* rnn_grid.c -- all steps of a layer in one kernel: how the kernels of rnn_grid.cuh are cut to a problem, their launch.
 *
 * Not: f64; weights that do not fit the multiprocessors (beyond about 2000 units of an lstm in f16, the gradient's 1280); a batch whose
 * sums do not fit shared memory; projection; gru with the reset before. */
#include "rnn_grid.h"
#include "kit/shared_memory.h"

static qn_status refused(const qn_request *r, const cuda_rnn_problem *p, qn_prepared *out)
{
  const cuda_rnn *q = &p->net;
  const int64_t unit = q->dtype == QN_F32 ? 4 : 8;
  if (r->device->arch_major < 8)
    return qn_refuse(out, "compute capability 8.0 or above", "", "8.0", "%d.%d", (int)r->device->arch_major, (int)r->device->arch_minor);
  if (q->dtype == QN_F64) return qn_refuse(out, "computes in f32", "x", "f32, f16, bf16", "f64");
  if (q->projects) return qn_refuse(out, "a state is what its cell gives", "projection", "none", "one");
  if (q->before) return qn_refuse(out, "all gates come of one product by h", "reset", "after", "before");
  if (q->hidden % unit)
    return qn_refuse(out, "states in pieces of 16 bytes", "r", q->dtype == QN_F32 ? "a multiple of 4" : "a multiple of 8", "%lld",
                     (long long)q->hidden);
  if (q->steps > INT32_MAX / 512) return qn_refuse(out, "counters of 32 bits", "x", "fewer steps", "%lld", (long long)q->steps);
  if (q->steps > INT32_MAX / q->batch || q->rows > INT32_MAX)
    return qn_refuse(out, "places of 32 bits", "x", "fewer steps or sequences", "%lld steps", (long long)q->steps);
  static const int given[] = { RNN_Y, RNN_DY, RNN_INNER, RNN_GATES, RNN_CELLS, RNN_H0, RNN_C0 };    /* from the third: by layer */
  for (int i = 0; i < (int)(sizeof given / sizeof *given); i++) {
    const cuda_rnn_operand *o = &p->one[given[i]];
    for (int d = i > 1; d < 4 && o->value >= 0; d++)
      if (o->stride[d] > INT32_MAX || o->stride[d] < -INT32_MAX)
        return qn_refuse(out, "strides of 32 bits", "y", "smaller ones", "%lld", (long long)o->stride[d]);
  }
  for (int64_t k = 0; k < p->n && !q->gradient; k++) {
    const cuda_rnn_operand *w = &p->list[RNN_R][k];
    if (w->stride[1] != 1 || w->stride[0] % unit || w->align < 16)
      return qn_refuse(out, "16-byte loads of weights", "r", "rows of numbers side by side, aligned", "%s", "another layout");
  }
  return QN_OK;
}

/* Cuts the problem for a kernel; false: does not fit. */
static bool cut(const qn_request *r, const cuda_rnn_problem *p, const cuda_rnn_grid_kernel *k, cuda_rnn_walk *w)
{
  const cuda_rnn *q = &p->net;
  cuda_rnn_grid *g = &w->grid;
  const int64_t depth = q->gradient ? q->rows : q->hidden, gates = q->gradient ? 1 : q->gates, grain = k->simt ? 1 : 8;
  w->kernel = q->gradient ? k->backward : k->forward;
  if (!w->kernel || depth > k->depth) return false;
  int64_t along = CUDA_RNN_GRID_THREADS;  /* SIMT: threads that share out the depth of a line */
  while (k->simt && along > 32 && (along / 2) * (k->depth / CUDA_RNN_GRID_THREADS) >= depth) along /= 2;
  g->groups = (int32_t)(CUDA_RNN_GRID_THREADS / along);
  const int64_t lines = (int64_t)k->lines * g->groups;
  g->unit_shift = 0;
  while ((2 << g->unit_shift) * gates <= lines && (1 << g->unit_shift) < q->hidden) g->unit_shift++;
  const int64_t units = 1 << g->unit_shift;
  g->depth = (int32_t)depth, g->blocks = (int32_t)qn_ceil_div(depth, CUDA_RNN_GRID_THREADS);
  g->row = k->simt || k->columns ? g->depth : g->blocks * CUDA_RNN_GRID_THREADS;
  g->unit_blocks = (int32_t)qn_ceil_div(q->hidden, units);
  const int64_t most = r->device->units / (g->unit_blocks * p->directions);
  if (most < 1 || q->batch > (1 << 20)) return false;
  g->batch_share = (int32_t)qn_round_up(qn_ceil_div(q->batch, qn_min_i64(most, qn_ceil_div(q->batch, grain))), grain);
  if (k->columns && g->batch_share > k->columns) return false;
  g->batch_blocks = (int32_t)qn_ceil_div(q->batch, g->batch_share);
  w->blocks = (int32_t)(g->unit_blocks * g->batch_blocks * p->directions);
  for (g->ring = 4; g->ring >= 2; g->ring /= 2) {
    const int64_t shared = cuda_rnn_grid_shared(g, k, (int32_t)q->gates);
    w->shared = (int32_t)shared;
    if (shared <= cuda_room(r)) return true;
  }
  return false;
}

/* Nanoseconds of a step: the exchange, what a block reads of it, products, sums and gates. */
static double step_cost(const cuda_rnn_problem *p, const cuda_rnn_grid_kernel *k, const cuda_rnn_walk *w)
{
  const cuda_rnn *q = &p->net;
  const cuda_rnn_grid *g = &w->grid;
  const double share = g->batch_share, items = share * (1 << g->unit_shift);
  const double read = share * g->depth * (double)qn_kit_bytes(q->dtype) / 90;
  const double simt = share * (k->lines * (k->depth / 256.0) + 3 * k->lines) * 4 / 1.7;
  const double by_mma = q->gradient ? share / 8 * g->blocks * 60 : share * (k->lines * g->blocks * 256 + k->laid * 4) / 1800;
  const double product = k->simt ? simt : by_mma;
  const double by_wgmma = k->depth / 16.0 * (16 + k->columns / 4) / 1.7;
  const double outside = (double)(p->directions * q->batch * q->hidden) * (double)(q->gates * 6 + 12) / 2000;
  const bool back = q->gradient && !k->simt;
  const double gates = items / CUDA_RNN_GRID_THREADS * (back ? 200.0 * (double)q->gates : 150);
  const double exchange = k->simt ? 4000 : back ? 2600 : 3000;
  if (k->columns) return exchange + fmax(read, by_wgmma) + 0.3 * fmin(read, by_wgmma) + share * 256 / 55 + gates + outside;
  return exchange + (read > product ? read : product) + 0.3 * (read > product ? product : read) + share * k->lines * 8 / 55 +
         gates + outside;
}

qn_status cuda_rnn_grid_plan(const qn_request *r, qn_prepared *out, const cuda_rnn_problem *p, cuda_rnn_walk *walk)
{
  const qn_status s = refused(r, p, out);
  if (s) return s;
  const cuda_rnn *q = &p->net;
  const cuda_rnn_grid_kernel *k = q->dtype == QN_F16 ? cuda_rnn_grid_f16 : q->dtype == QN_BF16 ? cuda_rnn_grid_bf16 : cuda_rnn_grid_f32;
  const cuda_rnn_grid_kernel *by_wgmma = q->dtype == QN_F16 ? cuda_rnn_grid_wgmma_f16 : cuda_rnn_grid_wgmma_bf16;
  double best = 0;
  for (int list = 0; list < (q->dtype != QN_F32 && r->device->arch_major == 9 ? 2 : 1); list++)
    for (k = list ? by_wgmma : k; k->lines; k++) {
      cuda_rnn_walk w = { 0 };
      if (!cut(r, p, k, &w)) continue;
      const double cost = step_cost(p, k, &w);
      if (best > 0 && cost >= best) continue;
      best = cost, *walk = w;
    }
  if (!(best > 0))
    return qn_refuse(out, "recurrent weights in the registers of all multiprocessors, sums in shared memory", "r",
                     "fewer units or sequences", "%lld units", (long long)q->hidden);
  const cuda_rnn_grid *g = &walk->grid;
  for (int64_t d = 0; d < p->directions; d++)
    walk->exchange[d] = cuda_rnn_take(out, 2 * (int64_t)g->batch_blocks * g->batch_share * g->row, q->dtype);
  const uint64_t counters = (uint64_t)(p->directions * g->batch_blocks) * sizeof(uint32_t);
  if (out->counters < counters) out->counters = counters;
  if (q->dtype != QN_F32) {
    out->traits |= QN_TRAIT_TENSOR_CORES;
    if (out->numerics.accumulator == QN_ACC_NATIVE) out->numerics.accumulator = QN_ACC_F32_TC;
  }
  out->traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);         /* a larger batch may not fit */
  const double weights = (double)(p->directions * q->rows * q->hidden) * (double)qn_kit_bytes(q->dtype);
  out->estimate += (double)p->layers * (6000 + weights / 2500 + (double)q->steps * best);
  return QN_OK;
}

qn_status cuda_rnn_grid_run(const cuda_rnn_walk *walk, const cuda_rnn net[2], const void *const weights[2], const int64_t weights_row[2],
                            const qn_launch *launch)
{
  cuda_rnn_grid g = walk->grid;
  for (int d = 0; d < 2; d++) {
    g.net[d] = net[d], g.weights[d] = weights[d], g.weights_row[d] = weights_row[d];
    g.exchange[d] = (char *)launch->workspace + walk->exchange[d];
  }
  g.met = launch->counters;
  void *arguments[] = { &g };
  return cuda_launch_clusters(walk->kernel, (unsigned)walk->blocks, CUDA_TOGETHER, CUDA_RNN_GRID_THREADS,
                              (size_t)walk->shared, arguments, launch, "rnn_grid");
}
