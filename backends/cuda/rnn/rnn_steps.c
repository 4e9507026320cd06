/* rnn_steps.c -- recurrent networks. Of each layer and direction: sums [place][row] = w x, all places in one product of the matmul
 * engines'; then
 *
 *   steps   any network, step by step: product [b][row] = r h, also the matmul engines', then the gates (rnn_steps.cu); gru with the reset
 *           before: of r and z, then of n with r h; with projection: h before it, then its product
 *   vector  the same for few sequences, product and gates of a step in one launch (rnn_vector.cu)
 *   cluster all steps of both directions in one kernel, a share of the batch in each cluster of blocks (rnn_cluster.cu)
 *   block   the same in each block alone (rnn_block.cu)
 *   grid    the same over all blocks (rnn_grid.cuh), where they hold the weights
 *   wavefront   all steps of several layers in one kernel (rnn_wavefront.cuh), each a step behind the one below; w x is made there, too
 *
 * Sums are f32 (f64 for f64); h has x's dtype from step to step (of a unit's own state, in all but steps, what is exchanged), c that of
 * sums. */
#include "engines.h"
#include "rnn_block.h"
#include "rnn_cluster.h"
#include "rnn_grid.h"
#include "rnn_vector.h"
#include "rnn_wavefront.h"
#include "kit/shared_memory.h"

enum { IN, LAY, RECURRENT, RESET, PROJECT, PARTS };
enum way { STEPS, VECTOR, GRID, CLUSTER, BLOCK, WAVEFRONT };

typedef struct state {
  cuda_rnn_problem p;
  enum way way;
  cuda_rnn_walk walk;
  cuda_rnn_gathering gathering;
  cuda_rnn_alone alone;
  cuda_rnn_front_plan front;
  uint64_t sums[2], product, inner, c[2], h[2], full, reset, next[2], laid;       /* places in workspace */
} state;

/* ---- prepare ------------------------------------------------------------------------------------------- */

/* Are recurrent weights laid out once in rows that begin aligned, as the best products by h want them at every step? */
static bool lays(const cuda_rnn_problem *p)
{
  const cuda_rnn *q = &p->net;
  bool aligned = true;
  for (int64_t k = 0; k < p->n; k++) {
    const cuda_rnn_operand *o = &p->list[RNN_R][k];
    aligned = aligned && o->align >= 16 && (o->stride[1] != 1 || o->stride[0] % 8 == 0);
  }
  return !aligned && qn_kit_bytes(q->dtype) == 2 && !q->before && q->steps >= 8 && q->rows * q->state >= 1 << 18;
}

static qn_status prepare_layer(const qn_request *r, qn_prepared *out, state *st, int64_t layer, int64_t direction)
{
  cuda_rnn_problem *p = &st->p;
  const cuda_rnn *q = &p->net;
  const int64_t k = layer * p->directions + direction, inputs = layer ? q->width : p->inputs, H = q->hidden, places = q->steps * q->batch;
  const cuda_rnn_operand *w = &p->list[RNN_W][k], *rec = &p->list[RNN_R][k], *projection = &p->list[RNN_PROJECTION][k];
  const double times = (double)q->steps;
  qn_part **part = p->part + k * PARTS;
  const qn_value x = layer ? cuda_rnn_matrix(q->dtype, 16, places, inputs, inputs, 1) : cuda_rnn_places(p, &p->one[RNN_X], inputs);
  qn_status s = cuda_rnn_product(r, out, p, &part[IN], x, cuda_rnn_weight(w, true),
                                 cuda_rnn_matrix(p->sum, 16, places, q->rows, q->rows, 1), 1);
  if (st->way != STEPS) return s;
  qn_value by = cuda_rnn_weight(rec, true);
  if (!s && q->h_row != q->state) {
    by = cuda_rnn_matrix(q->dtype, 16, q->state, 1, q->rows, q->h_row);
    s = cuda_rnn_copy(r, out, p, &part[LAY], cuda_rnn_weight(rec, false), cuda_rnn_matrix(q->dtype, 16, q->rows, q->h_row, q->state, 1));
  }
  if (q->before) by.dim[1] = 2 * H;
  if (!s)
    s = cuda_rnn_product(r, out, p, &part[RECURRENT], cuda_rnn_matrix(q->dtype, 16, q->batch, q->h_row, q->state, 1), by,
                         cuda_rnn_matrix(p->sum, 16, q->batch, q->rows, by.dim[1], 1), times);
  if (!s && q->before) {
    by.dim[1] = H;
    by.align = cuda_rnn_aligned(by.align, 2 * H * rec->stride[0] * (int64_t)qn_kit_bytes(rec->dtype));
    s = cuda_rnn_product(r, out, p, &part[RESET], cuda_rnn_matrix(q->dtype, 16, q->batch, H, H, 1), by,
                         cuda_rnn_matrix(p->sum, 16, q->batch, H, H, 1), times);
  }
  if (!s && q->projects)
    s = cuda_rnn_product(r, out, p, &part[PROJECT], cuda_rnn_matrix(q->dtype, 16, q->batch, H, H, 1), cuda_rnn_weight(projection, true),
                         cuda_rnn_matrix(p->sum, 16, q->batch, q->state, q->state, 1), times);
  return s;
}

static qn_status prepare(const qn_request *r, qn_prepared *out, enum way way)
{
  qn_status s = cuda_rnn_read(r, out, sizeof(state), PARTS);
  if (s) return s;
  state *st = out->state;
  cuda_rnn_problem *p = &st->p;
  const cuda_rnn *q = &p->net;
  st->way = way;
  if (way == STEPS && lays(p)) p->net.h_row = qn_round_up(q->state, 8);
  if (way == VECTOR) s = cuda_rnn_vector_plan(r, out, p);
  if (way == GRID) s = cuda_rnn_grid_plan(r, out, p, &st->walk);
  if (way == CLUSTER) s = cuda_rnn_cluster_plan(r, out, p, &st->gathering);
  if (way == BLOCK) s = cuda_rnn_block_plan(r, out, p, &st->alone);
  if (way == WAVEFRONT) s = cuda_rnn_front_prepare(r, out, p, &st->front);
  for (int64_t k = 0; k < p->n && !s && way != WAVEFRONT; k++) s = prepare_layer(r, out, st, k / p->directions, k % p->directions);
  if (s) {
    cuda_rnn_release(out);
    return s;
  }
  if (way == WAVEFRONT) return QN_OK;
  const int64_t places = q->steps * q->batch, units = q->batch * q->hidden;
  for (int i = 0; i < 2; i++) {
    st->sums[i] = i && way == STEPS ? st->sums[0] : cuda_rnn_take(out, i < p->directions ? places * q->rows : 0, p->sum);
    st->next[i] = cuda_rnn_take(out, p->layers > 1 ? places * q->width : 0, q->dtype);
    if (way != VECTOR || i >= p->directions) continue;
    st->c[i] = cuda_rnn_take(out, units, p->sum), st->h[i] = cuda_rnn_take(out, 2 * units, q->dtype);
  }
  if (way == STEPS) {
    st->product = cuda_rnn_take(out, q->batch * q->rows, p->sum);
    st->inner = cuda_rnn_take(out, units, p->sum), st->c[0] = cuda_rnn_take(out, units, p->sum);
    st->h[0] = cuda_rnn_take(out, q->batch * q->h_row, q->dtype);
    st->laid = cuda_rnn_take(out, q->h_row != q->state ? q->rows * q->h_row : 0, q->dtype);
    st->full = cuda_rnn_take(out, units, q->dtype), st->reset = cuda_rnn_take(out, units, q->dtype);
    const double launch = qn_kit_bytes(q->dtype) == 2 ? 2000 : 2500;       /* beside products; of 16 bits measured */
    out->estimate += (double)p->n * (3000 + (double)q->steps * (launch + (double)units * 5 / 1000) * (1 + q->before + q->projects));
  }
  cuda_rnn_take_scratch(out, p);
  return QN_OK;
}
static qn_status prepare_steps(const qn_request *r, qn_prepared *out) { return prepare(r, out, STEPS); }
static qn_status prepare_grid(const qn_request *r, qn_prepared *out) { return prepare(r, out, GRID); }
static qn_status prepare_cluster(const qn_request *r, qn_prepared *out) { return prepare(r, out, CLUSTER); }
static qn_status prepare_vector(const qn_request *r, qn_prepared *out) { return prepare(r, out, VECTOR); }
static qn_status prepare_block(const qn_request *r, qn_prepared *out) { return prepare(r, out, BLOCK); }
static qn_status prepare_wavefront(const qn_request *r, qn_prepared *out) { return prepare(r, out, WAVEFRONT); }

/* ---- run ------------------------------------------------------------------------------------------------ */

static qn_status walk(const state *st, const qn_launch *launch, cuda_rnn *q, int64_t k)
{
  const cuda_rnn_problem *p = &st->p;
  const cuda_rnn_operand *rec = &p->list[RNN_R][k];
  const char *r = launch->ptr[rec->value], *r_n = r + 2 * q->hidden * rec->stride[0] * (int64_t)qn_kit_bytes(rec->dtype);
  char *base = launch->workspace;
  void *stream = launch->stream;
  q->product = base + st->product, q->inner = base + st->inner, q->c = base + st->c[0];
  q->h = base + st->h[0], q->full = base + st->full, q->reset = base + st->reset;
  qn_status s = cuda_rnn_begin(q, stream);
  if (!s && q->h_row != q->state) {
    s = cuda_rnn_multiply(p, launch, k, LAY, r, base + st->laid, NULL);
    r = base + st->laid;
  }
  for (int64_t i = 0; i < q->steps && !s; i++) {
    s = cuda_rnn_multiply(p, launch, k, RECURRENT, q->h, r, q->product);
    if (!s && q->before) s = cuda_rnn_reset(q, i, stream);
    if (!s && q->before) s = cuda_rnn_multiply(p, launch, k, RESET, q->reset, r_n, q->inner);
    if (!s) s = cuda_rnn_cell(q, i, stream);
    if (!s && q->projects)
      s = cuda_rnn_multiply(p, launch, k, PROJECT, q->full, launch->ptr[p->list[RNN_PROJECTION][k].value], q->inner);
    if (!s && q->projects) s = cuda_rnn_project(q, i, stream);
  }
  return s ? s : cuda_rnn_end(q, stream);
}

/* Both directions at once. */
static qn_status walk_vector(const state *st, const qn_launch *launch, const cuda_rnn net[2], const void *const weights[2],
                             const int64_t weights_row[2])
{
  const int64_t directions = st->p.directions, steps = net[0].steps;
  const size_t other = (size_t)(steps & 1) * (size_t)(net[0].batch * net[0].hidden) * qn_kit_bytes(net[0].dtype);
  cuda_rnn_vector v = { .net = { net[0], net[1] }, .weights = { weights[0], weights[1] },
                        .weights_row = { weights_row[0], weights_row[1] } };
  qn_status s = QN_OK;
  for (int64_t d = 0; d < directions && !s; d++) {
    v.net[d].h = (char *)launch->workspace + st->h[d], v.net[d].c = (char *)launch->workspace + st->c[d];
    s = cuda_rnn_begin(&v.net[d], launch->stream);
  }
  for (int64_t i = 0; i < steps && !s; i++) s = cuda_rnn_vector_step(&v, directions, i, launch->stream);
  for (int64_t d = 0; d < directions && !s; d++) {
    v.net[d].h = (char *)v.net[d].h + other;
    s = cuda_rnn_end(&v.net[d], launch->stream);
  }
  return s;
}

static qn_status run_layer(const state *st, const qn_launch *launch, int64_t layer)
{
  const cuda_rnn_problem *p = &st->p;
  char *base = launch->workspace;
  const void *x = layer ? base + st->next[(layer - 1) % 2] : launch->ptr[p->one[RNN_X].value], *weights[2] = { NULL, NULL };
  int64_t weights_row[2] = { 0, 0 }, weights_step[2] = { 0, 0 };
  cuda_rnn net[2] = { { 0 } };
  qn_status s = QN_OK;
  for (int64_t d = 0; d < p->directions && !s; d++) {
    const int64_t k = layer * p->directions + d;
    net[d] = cuda_rnn_net(p, launch, layer, d);
    net[d].sums = base + st->sums[d], net[d].next = layer < p->layers - 1 ? base + st->next[layer % 2] : NULL;
    weights[d] = launch->ptr[p->list[RNN_R][k].value], weights_row[d] = p->list[RNN_R][k].stride[0];
    weights_step[d] = p->list[RNN_R][k].stride[1];
    s = cuda_rnn_multiply(p, launch, k, IN, x, launch->ptr[p->list[RNN_W][k].value], net[d].sums);
    if (!s && st->way == STEPS) s = walk(st, launch, &net[d], k);
  }
  if (s || st->way == STEPS) return s;
  if (st->way == VECTOR) return walk_vector(st, launch, net, weights, weights_row);
  if (st->way == GRID) return cuda_rnn_grid_run(&st->walk, net, weights, weights_row, launch);
  return st->way == BLOCK ? cuda_rnn_block_run(&st->alone, net, weights, weights_row, weights_step, launch)
                          : cuda_rnn_cluster_run(&st->gathering, net, weights, weights_row, weights_step, launch);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = prepared->state;
  qn_status s = QN_OK;
  for (int64_t l = 0; st->way == WAVEFRONT && l < st->p.layers && !s; l += st->front.at_once) {
    const int32_t n = (int32_t)qn_min_i64(st->front.at_once, st->p.layers - l);
    cuda_rnn net[CUDA_RNN_FRONT_LAYERS];
    for (int32_t i = 0; i < n; i++) net[i] = cuda_rnn_net(&st->p, launch, l + i, 0);
    s = cuda_rnn_front_run(&st->front, &st->p, launch, l, n, net);
  }
  if (st->way == WAVEFRONT) return s;
  for (int64_t l = 0; l < st->p.layers && !s; l++) s = run_layer(st, launch, l);
  return s;
}

static qn_status build_one_kernel(const qn_request *r, qn_prepared *out)
{
  const state *st = out->state;
  const qn_status s = cuda_allow_shared(st->way == WAVEFRONT ? st->front.kernel->run : st->way == GRID ? st->walk.kernel :
                                        st->way == BLOCK ? st->alone.kernel : st->gathering.kernel);
  return s ? s : cuda_rnn_build(r, out);
}

static const qn_engine row[] = {
  { .name = "block", .op = QN_OP_RNN_FORWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare_block,
    .build = build_one_kernel, .run = run, .release = cuda_rnn_release },
  { .name = "cluster", .op = QN_OP_RNN_FORWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare_cluster,
    .build = build_one_kernel, .run = run, .release = cuda_rnn_release },
  { .name = "wavefront", .op = QN_OP_RNN_FORWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare_wavefront,
    .build = build_one_kernel, .run = run, .release = cuda_rnn_release },
  { .name = "grid", .op = QN_OP_RNN_FORWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare_grid,
    .build = build_one_kernel, .run = run, .release = cuda_rnn_release },
  { .name = "vector", .op = QN_OP_RNN_FORWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare_vector,
    .build = cuda_rnn_build, .run = run, .release = cuda_rnn_release },
  { .name = "steps", .op = QN_OP_RNN_FORWARD, .class_ = QN_CLASS_TUNED, .prepare = prepare_steps,
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, .build = cuda_rnn_build, .run = run,
    .release = cuda_rnn_release },
};
CUDA_ENGINES(rnn_steps) = { row, sizeof row / sizeof *row };
