/* rnn_wavefront.c -- all steps of several layers in one kernel: how the kernels of rnn_wavefront.cuh are cut to a problem, their launches.
 * As many layers as the device has room for go at once, the rest follow in further launches. The gradient of both directions, which no
 * layer may begin before the one above has ended, goes a layer at a time.
 *
 * Not: f32, f64; forward, both directions (a layer's first step needs the last one of the layer below); projection; gru with the reset
 * before; more than 1024 units or, of forward, inputs, whose weights fill registers and shared memory of a block of 16 units; the gradient
 * of dropout between layers. */
#include "rnn_wavefront.h"
#include "kit/shared_memory.h"

static qn_status refused(const qn_request *r, const cuda_rnn_problem *p, qn_prepared *out)
{
  const cuda_rnn *q = &p->net;
  if (r->device->arch_major != 9 || r->device->arch_minor)
    return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", (int)r->device->arch_major,
                     (int)r->device->arch_minor);
  if (q->dtype != QN_F16 && q->dtype != QN_BF16)
    return qn_refuse(out, "products by the Tensor Cores of 16-bit numbers", "x", "f16, bf16", "%s", "another dtype");
  if (p->directions != 1 && !q->gradient)
    return qn_refuse(out, "layers follow each other step by step", "direction", "forward, backward", "both");
  if (q->projects) return qn_refuse(out, "a state is what its cell gives", "projection", "none", "one");
  if (q->before) return qn_refuse(out, "all gates come of one product by h", "reset", "after", "before");
  if (q->gradient && q->dropout > 0 && p->layers > 1)
    return qn_refuse(out, "what a layer takes back goes into its sums as it is", "dropout", "0", "%g", q->dropout);
  if (q->steps > INT32_MAX / 1024) return qn_refuse(out, "counters of 32 bits", "x", "fewer steps", "%lld", (long long)q->steps);
  return QN_OK;
}

/* Does the next layer take other tiles than a layer's own next step? Forward what dropout leaves; of a gru's gradient the slope of n by x,
 * where the own step takes that by h. */
static bool passes_other(const cuda_rnn_problem *p)
{
  return p->layers > 1 && (p->net.gradient ? p->net.cell == QN_RNN_GRU : p->net.dropout > 0);
}

qn_status cuda_rnn_front_prepare(const qn_request *r, qn_prepared *out, const cuda_rnn_problem *p, cuda_rnn_front_plan *plan)
{
  const qn_status s = refused(r, p, out);
  if (s) return s;
  const cuda_rnn *q = &p->net;
  const int64_t depth = q->gradient ? q->hidden : qn_max_i64(q->hidden, p->inputs), shares = qn_ceil_div(q->batch, CUDA_RNN_FRONT_SHARE);
  static const cuda_rnn_front_kernel *const list[2][2] = { { cuda_rnn_front_forward_f16, cuda_rnn_front_forward_bf16 },
                                                           { cuda_rnn_front_backward_f16, cuda_rnn_front_backward_bf16 } };
  const cuda_rnn_front_kernel *k = list[q->gradient != 0][q->dtype == QN_BF16];
  while (k->depth && k->depth < depth) k++;
  if (!k->depth)
    return qn_refuse(out, "weights in the registers and shared memory of a block", "w, r",
                     q->gradient ? "1024 units" : "1024 units and inputs", "%lld", (long long)depth);
  if (k->shared > cuda_room(r))
    return qn_refuse(out, "weights in the shared memory of a block", "", "a device that gives a block more", "%lld bytes",
                     (long long)k->shared);
  plan->kernel = k, plan->shares = (int32_t)shares, plan->slots = (int32_t)q->steps + 1;
  plan->chunks = (int32_t)qn_ceil_div(q->hidden, 64), plan->input_chunks = (int32_t)qn_ceil_div(p->inputs, 64);
  plan->unit_blocks = 4 * plan->chunks;
  const int64_t room = r->device->units / (plan->unit_blocks * shares);
  if (room < 1) return qn_refuse(out, "all blocks resident", "x", "fewer units or sequences", "%lld sequences", (long long)q->batch);
  if (!q->gradient && shares * q->steps * plan->input_chunks > INT32_MAX / 2)
    return qn_refuse(out, "x is laid in one launch, two blocks a tile", "x", "fewer steps, sequences or inputs", "%lld steps",
                     (long long)q->steps);
  plan->apart = q->gradient && p->directions > 1;
  plan->at_once = (int32_t)qn_min_i64(qn_min_i64(room, plan->apart ? p->directions : p->layers), CUDA_RNN_FRONT_LAYERS);

  const int64_t of_chunk = shares * plan->slots * CUDA_RNN_FRONT_TILE, chunks = q->gradient ? plan->unit_blocks : plan->chunks;
  const int64_t input_bytes = q->gradient ? 0 : of_chunk * plan->input_chunks;
  plan->cleared = CUDA_RNN_FRONT_TILE + (q->gradient ? plan->at_once * shares * plan->unit_blocks * cuda_rnn_front_partial : 0);
  plan->inputs = cuda_rnn_take(out, input_bytes / 2, q->dtype);
  plan->zeros = cuda_rnn_take(out, plan->cleared / 2, q->dtype);
  for (int i = 0; i < CUDA_RNN_FRONT_LAYERS + 1; i++) {     /* the last layer of a launch is read by the next one */
    const bool used = i < (plan->apart ? plan->at_once : qn_min_i64(plan->at_once + 1, p->layers));
    const bool passes = used && passes_other(p) && !plan->apart;
    plan->states[i] = cuda_rnn_take(out, used ? of_chunk * chunks / 2 : 0, q->dtype);
    plan->passed[i] = cuda_rnn_take(out, passes ? of_chunk * chunks / 2 : 0, q->dtype);
  }
  const uint64_t counters = (uint64_t)(plan->at_once * shares + 1) * 32 * sizeof(uint32_t);
  if (out->counters < counters) out->counters = counters;
  out->traits |= QN_TRAIT_TENSOR_CORES;
  if (out->numerics.accumulator == QN_ACC_NATIVE) out->numerics.accumulator = QN_ACC_F32_TC;
  out->traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);         /* a larger batch may not fit */
  const double launches = (double)(plan->apart ? p->layers * qn_ceil_div(p->directions, plan->at_once)
                                               : qn_ceil_div(p->layers, plan->at_once));
  const double steps = (double)(plan->apart ? q->steps : q->steps + plan->at_once - 1);
  /* Of 1024 units 6.1, 9.4 us; measured 5.7, 9.4; of both directions, or where one layer's shares fill the device, 11 to 12. */
  const double crowded = plan->apart || (q->gradient && room < 2) ? 2.0 * k->depth : 0;
  const double step = (q->gradient ? 7600 + 1.8 * k->depth : 4400 + 1.66 * k->depth) + crowded;
  out->estimate += 4000 + (double)input_bytes / 1000 + launches * (60000 + steps * step);
  return QN_OK;
}

qn_status cuda_rnn_front_run(const cuda_rnn_front_plan *plan, const cuda_rnn_problem *p, const qn_launch *launch, int64_t from, int32_t n,
                             const cuda_rnn *net)
{
  char *base = launch->workspace;
  const bool gradient = p->net.gradient, passes = passes_other(p);
  const int64_t first = gradient ? p->layers - 1 : 0, last = p->layers - 1 - first, by = gradient ? -1 : 1, turns = plan->at_once + 1;
  qn_status s = QN_OK;
  cuda_rnn_front g = { .met = launch->counters, .zeros = base + plan->zeros, .partial = base + plan->zeros + CUDA_RNN_FRONT_TILE,
                       .layers = n, .shares = plan->shares, .unit_blocks = plan->unit_blocks, .chunks = plan->chunks,
                       .slots = plan->slots };
  if (from == first || gradient)
    s = cuda_check(cudaMemsetAsync(base + plan->zeros, 0, (size_t)plan->cleared, (cudaStream_t)launch->stream), "cudaMemsetAsync");
  if (!s && from == first && !gradient)
    s = cuda_rnn_front_lay(net, base + plan->inputs, plan->input_chunks, plan->shares, plan->slots, launch->stream);
  for (int i = 0; i < n; i++) {
    const int64_t l = from + by * i, of = l % turns, other = (l - by + turns) % turns;
    cuda_rnn_front_layer *layer = &g.layer[i];
    layer->net = net[i];
    for (int w = 0; w < 2; w++) {
      const bool above = gradient && !w;
      if (above && l == first) continue;
      const cuda_rnn_operand *o = &p->list[w ? RNN_R : RNN_W][l + above];
      layer->weights[w] = launch->ptr[o->value], layer->row[w] = o->stride[0], layer->column[w] = o->stride[1];
    }
    if (l != first) layer->inputs = base + (passes ? plan->passed[other] : plan->states[other]);
    else layer->inputs = gradient ? NULL : base + plan->inputs;
    layer->input_chunks = l == first ? plan->input_chunks : plan->chunks;
    layer->states = base + plan->states[of], layer->follows = i > 0;
    layer->passed = passes && l != last ? base + plan->passed[of] : NULL;
  }
  void *arguments[] = { &g };
  return s ? s : cuda_launch_clusters(plan->kernel->run, (unsigned)(n * plan->shares * plan->unit_blocks), CUDA_TOGETHER,
                                      CUDA_RNN_FRONT_THREADS, (size_t)plan->kernel->shared, arguments, launch, "rnn_wavefront");
}

qn_status cuda_rnn_front_run_layer(const cuda_rnn_front_plan *plan, const cuda_rnn_problem *p, const qn_launch *launch,
                                   const cuda_rnn *net)
{
  char *base = launch->workspace;
  qn_status s = QN_OK;
  for (int64_t d = 0; d < p->directions && !s; d += plan->at_once) {
    const int n = (int)qn_min_i64(plan->at_once, p->directions - d);
    cuda_rnn_front g = { .met = launch->counters, .zeros = base + plan->zeros, .partial = base + plan->zeros + CUDA_RNN_FRONT_TILE,
                         .layers = n, .shares = plan->shares, .unit_blocks = plan->unit_blocks, .chunks = plan->chunks,
                         .slots = plan->slots };
    for (int i = 0; i < n; i++) {
      const cuda_rnn_operand *r = &p->list[RNN_R][net[d + i].layer * p->directions + d + i];
      g.layer[i] = (cuda_rnn_front_layer){ .net = net[d + i], .weights = { NULL, launch->ptr[r->value] }, .row = { 0, r->stride[0] },
                                           .column = { 0, r->stride[1] }, .states = base + plan->states[i] };
    }
    s = cuda_check(cudaMemsetAsync(base + plan->zeros, 0, (size_t)plan->cleared, (cudaStream_t)launch->stream), "cudaMemsetAsync");
    void *arguments[] = { &g };
    if (!s)
      s = cuda_launch_clusters(plan->kernel->run, (unsigned)(n * plan->shares * plan->unit_blocks), CUDA_TOGETHER, CUDA_RNN_FRONT_THREADS,
                               (size_t)plan->kernel->shared, arguments, launch, "rnn_wavefront");
  }
  return s;
}
