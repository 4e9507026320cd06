/* rnn_steps_backward.c -- the gradient of recurrent networks.
 *
 * Of each layer and direction, from the last step to the first, dh = dy + what later steps leave (with projection: times it)
 *   the gates' slopes, from what forward left       slope_x, slope_h [place][row]; of this step also side by side
 *   product [b][state] = slopes r                   what reaches h of the step before (gru: dh z beside it)
 * by
 *   steps   any network: the products are the matmul engines', the rest is rnn_steps.cu's
 *   vector  the same for few sequences, product and slopes of a step in one launch (rnn_vector_backward.cu)
 *   block   all steps of both directions in one kernel, each sequence in a block alone (rnn_block_backward.cu)
 *   grid    the same over all blocks (rnn_grid.cuh), where they hold the weights
 *   wavefront   all steps of several layers in one kernel (rnn_wavefront_backward.cu), which passes dx of a layer to the one below itself;
 *           or of one layer's directions
 * and then, in products over all places, the matmul engines'
 *   dw = slope_x' inputs      dr = slope_h' states before      dbw, dbr: slopes added up      dprojection = slope_state' h before it
 *   dx = slope_x w, of both directions added up
 * Gru with the reset before multiplies the slopes of n by r first, which gives the slope of the reset gate. */
#include "engines.h"
#include "rnn_block.h"
#include "rnn_grid.h"
#include "rnn_vector.h"
#include "rnn_wavefront.h"
#include "kit/shared_memory.h"

enum { FULL, RESET, CARRY, TURN, DW, DR, DR_RESET, DPROJECTION, DBW, DBR, DX, PARTS };
enum way { STEPS, VECTOR, BLOCK, GRID, WAVEFRONT };

typedef struct state {
  cuda_rnn_problem p;
  enum way way;
  cuda_rnn_walk walk;
  cuda_rnn_alone alone;
  cuda_rnn_front_plan front;
  uint64_t slope_x[CUDA_RNN_FRONT_LAYERS], slope_h[CUDA_RNN_FRONT_LAYERS];          /* by direction; by layer of a launch */
  uint64_t slope_state, step[2], product, inner, c[2], straight[2], turned[2], in, before, before_reset, full, by[2], dout[2];
} state;

/* ---- prepare ------------------------------------------------------------------------------------------- */

/* Are the slopes of r h other than those of w x? */
static bool apart(const cuda_rnn *q) { return q->gates == 3 && !q->before; }
/* Do layers of one launch give each other what they take back? */
static bool passes(const state *st) { return st->way == WAVEFRONT && !st->front.apart; }
static bool wanted(const cuda_rnn_problem *p, int list, int64_t k) { return p->list[list][k].value >= 0; }
/* Is what a layer took made in workspace? Does its product write dx as it is? */
static bool lay_below(const state *st, int64_t layer)
{
  const cuda_rnn_problem *p = &st->p;
  const cuda_rnn_operand *below = &p->one[layer ? RNN_INNER : RNN_X];
  const int64_t *stride = below->stride + (layer > 0), batch = p->net.batch;
  return p->one[RNN_LENGTHS].value >= 0 || (layer && p->net.dropout > 0) ||
         (p->net.steps > 1 && batch > 1 && stride[0] != batch * stride[1]);
}
static bool writes_dx(const state *st, int64_t layer)
{
  return st->p.directions == 1 && st->p.one[RNN_LENGTHS].value < 0 && !(layer && st->p.net.dropout > 0);
}

/* Are states before each step what forward gave, one step further? Then dr needs no copy of them. */
static const cuda_rnn_operand *given_of(const cuda_rnn_problem *p, int64_t layer)
{
  return &p->one[layer < p->layers - 1 ? RNN_INNER : RNN_Y];
}
static bool shifts(const cuda_rnn_problem *p, int64_t layer)
{
  const cuda_rnn *q = &p->net;
  const cuda_rnn_operand *given = given_of(p, layer);
  const int64_t *stride = given->stride + (layer < p->layers - 1);
  return q->steps > 1 && !q->before && p->one[RNN_H0].value < 0 && p->one[RNN_LENGTHS].value < 0 && given->dtype == q->dtype &&
         (q->batch == 1 || stride[0] == q->batch * stride[1]);
}
/* Is dbr dbw? */
static bool one_bias(const cuda_rnn_problem *p, int64_t k)
{
  return !apart(&p->net) && wanted(p, RNN_DBW, k) && wanted(p, RNN_DBR, k) && p->list[RNN_DBW][k].dtype == p->list[RNN_DBR][k].dtype;
}

static qn_value below_of(const state *st, int64_t layer, int64_t inputs)
{
  const cuda_rnn_problem *p = &st->p;
  if (lay_below(st, layer)) return cuda_rnn_matrix(p->net.dtype, 16, p->net.steps * p->net.batch, inputs, inputs, 1);
  cuda_rnn_operand o = p->one[layer ? RNN_INNER : RNN_X];
  if (layer) {
    o.align = cuda_rnn_aligned(o.align, o.stride[0] * (int64_t)qn_kit_bytes(o.dtype));
    memmove(o.stride, o.stride + 1, 3 * sizeof *o.stride);
  }
  return cuda_rnn_places(p, &o, inputs);
}

static qn_status prepare_weights(const qn_request *r, qn_prepared *out, state *st, int64_t layer, int64_t k, qn_part **part)
{
  cuda_rnn_problem *p = &st->p;
  const cuda_rnn *q = &p->net;
  const int64_t inputs = layer ? q->width : p->inputs, H = q->hidden, P = q->state, places = q->steps * q->batch;
  const uint32_t d = q->dtype;
  const int64_t r_rows = q->before ? 2 * H : q->rows;
  qn_status s = QN_OK;
  if (wanted(p, RNN_DW, k))
    s = cuda_rnn_product(r, out, p, &part[DW], cuda_rnn_matrix(d, 16, q->rows, 1, places, q->rows), below_of(st, layer, inputs),
                         cuda_rnn_weight(&p->list[RNN_DW][k], false), 1);
  if (!s && wanted(p, RNN_DR, k)) {
    qn_value to = cuda_rnn_weight(&p->list[RNN_DR][k], false);
    qn_value before = cuda_rnn_matrix(d, 16, places, P, P, 1), slopes = cuda_rnn_matrix(d, 16, r_rows, 1, places, q->rows);
    to.dim[0] = r_rows;
    if (shifts(p, layer)) {
      const cuda_rnn_operand *given = given_of(p, layer);
      const int64_t *stride = given->stride + (layer < p->layers - 1), row = stride[q->batch > 1], bytes = (int64_t)qn_kit_bytes(d);
      const int64_t items = layer < p->layers - 1 ? given->stride[0] : 0, kept = places - q->batch;
      uint32_t align = cuda_rnn_aligned(given->align, items * bytes);
      align = cuda_rnn_aligned(cuda_rnn_aligned(align, P * stride[2] * bytes), stride[0] * bytes);
      before = cuda_rnn_matrix(d, align, kept, row, P, stride[2]);
      slopes = cuda_rnn_matrix(d, cuda_rnn_aligned(16, q->batch * q->rows * bytes), r_rows, 1, kept, q->rows);
    }
    s = cuda_rnn_product(r, out, p, &part[DR], slopes, before, to, 1);
    if (!s && q->before) {
      const uint32_t align = cuda_rnn_aligned(16, 2 * H * (int64_t)qn_kit_bytes(d));
      to.dim[0] = H, to.align = cuda_rnn_aligned(to.align, 2 * H * to.stride[0] * (int64_t)qn_kit_bytes(to.dtype));
      s = cuda_rnn_product(r, out, p, &part[DR_RESET], cuda_rnn_matrix(d, align, H, 1, places, q->rows), before, to, 1);
    }
  }
  if (!s && wanted(p, RNN_DPROJECTION, k))
    s = cuda_rnn_product(r, out, p, &part[DPROJECTION], cuda_rnn_matrix(d, 16, P, 1, places, P), cuda_rnn_matrix(d, 16, places, H, H, 1),
                         cuda_rnn_weight(&p->list[RNN_DPROJECTION][k], false), 1);
  for (int i = 0; i < 2 && !s; i++) {
    const cuda_rnn_operand *to = &p->list[RNN_DBW + i][k];
    const qn_value row = cuda_rnn_matrix(to->dtype, to->align, 1, q->rows * to->stride[0], q->rows, to->stride[0]);
    if (to->value < 0) continue;
    if (i && one_bias(p, k)) {
      const cuda_rnn_operand *w = &p->list[RNN_DBW][k];
      s = cuda_rnn_copy(r, out, p, &part[DBR], cuda_rnn_matrix(w->dtype, w->align, 1, q->rows * w->stride[0], q->rows, w->stride[0]), row);
    } else
      s = cuda_rnn_add_rows(r, out, p, &part[DBW + i], cuda_rnn_matrix(d, 16, places, q->rows, q->rows, 1), row);
  }
  return s;
}

static qn_status prepare_layer(const qn_request *r, qn_prepared *out, state *st, int64_t layer, int64_t direction)
{
  cuda_rnn_problem *p = &st->p;
  const cuda_rnn *q = &p->net;
  const int64_t k = layer * p->directions + direction, inputs = layer ? q->width : p->inputs, H = q->hidden, P = q->state;
  const int64_t places = q->steps * q->batch;
  const uint32_t d = q->dtype;
  const double times = (double)q->steps;
  qn_part **part = p->part + k * PARTS;
  qn_status s = QN_OK;
  qn_value by = cuda_rnn_weight(&p->list[RNN_R][k], false), x = cuda_rnn_matrix(p->sum, 16, places, inputs, inputs, 1);
  if (q->projects)
    s = cuda_rnn_product(r, out, p, &part[FULL], cuda_rnn_matrix(d, 16, q->batch, P, P, 1),
                         cuda_rnn_weight(&p->list[RNN_PROJECTION][k], false), cuda_rnn_matrix(p->sum, 16, q->batch, H, H, 1), times);
  if (!s && q->before) {
    qn_value of_n = by;
    of_n.dim[0] = H, of_n.align = cuda_rnn_aligned(by.align, 2 * H * by.stride[0] * (int64_t)qn_kit_bytes(by.dtype));
    s = cuda_rnn_product(r, out, p, &part[RESET],
                         cuda_rnn_matrix(d, cuda_rnn_aligned(16, 2 * H * (int64_t)qn_kit_bytes(d)), q->batch, q->rows, H, 1), of_n,
                         cuda_rnn_matrix(p->sum, 16, q->batch, H, H, 1), times);
    by.dim[0] = 2 * H;
  }
  if (st->way == GRID || st->way == VECTOR)
    s = cuda_rnn_copy(r, out, p, &part[TURN], cuda_rnn_weight(&p->list[RNN_R][k], true), cuda_rnn_matrix(d, 16, P, q->rows, q->rows, 1));
  else if (!s && st->way == STEPS)
    s = cuda_rnn_product(r, out, p, &part[CARRY], cuda_rnn_matrix(d, 16, q->batch, q->rows, by.dim[0], 1), by,
                         cuda_rnn_matrix(p->sum, 16, q->batch, P, P, 1), times);
  if (!s) s = prepare_weights(r, out, st, layer, k, part);
  if (writes_dx(st, layer))
    x = layer ? cuda_rnn_matrix(d, 16, places, inputs, inputs, 1) : cuda_rnn_places(p, &p->one[RNN_DX], inputs);
  if (!s && !(passes(st) && layer))
    s = cuda_rnn_product(r, out, p, &part[DX], cuda_rnn_matrix(d, 16, places, q->rows, q->rows, 1),
                         cuda_rnn_weight(&p->list[RNN_W][k], false), x, 1);
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
  if (way == VECTOR) s = cuda_rnn_vector_plan(r, out, p);
  if (way == BLOCK) s = cuda_rnn_block_plan(r, out, p, &st->alone);
  if (way == GRID) s = cuda_rnn_grid_plan(r, out, p, &st->walk);
  if (way == WAVEFRONT) s = cuda_rnn_front_prepare(r, out, p, &st->front);
  for (int64_t k = 0; k < p->n && !s; k++) s = prepare_layer(r, out, st, k / p->directions, k % p->directions);
  if (s) {
    cuda_rnn_release(out);
    return s;
  }
  const int64_t places = q->steps * q->batch, units = q->batch * q->hidden;
  const int64_t widest = p->layers > 1 ? qn_max_i64(p->inputs, q->width) : p->inputs;
  bool lay = false, adds = false, before = false;
  for (int64_t l = 0; l < p->layers; l++) lay |= lay_below(st, l), adds |= !writes_dx(st, l) && !(passes(st) && l);
  for (int64_t k = 0; k < p->n; k++) before |= wanted(p, RNN_DR, k) && !shifts(p, k / p->directions);
  for (int i = 0; i < CUDA_RNN_FRONT_LAYERS; i++) {
    const bool used = i < (passes(st) ? st->front.at_once : p->directions);
    st->slope_x[i] = cuda_rnn_take(out, used ? places * q->rows : 0, q->dtype);
    st->slope_h[i] = cuda_rnn_take(out, used && apart(q) ? places * q->rows : 0, q->dtype);
  }
  for (int i = 0; i < 2; i++) {
    const bool used = i < p->directions;
    st->turned[i] = cuda_rnn_take(out, used && (way == GRID || way == VECTOR) ? q->rows * q->state : 0, q->dtype);
    /* What goes from step to step; others than these keep it themselves, steps makes one direction after the other. */
    const int64_t walked = (way == STEPS && !i) || (way == VECTOR && used) ? q->batch : 0;
    st->step[i] = cuda_rnn_take(out, (way == VECTOR ? 2 : 1) * walked * q->rows, q->dtype);
    st->c[i] = cuda_rnn_take(out, walked * q->hidden, p->sum), st->straight[i] = cuda_rnn_take(out, walked * q->hidden, p->sum);
  }
  st->slope_state = cuda_rnn_take(out, q->projects ? places * q->state : 0, q->dtype);
  st->product = cuda_rnn_take(out, way == STEPS ? q->batch * q->state : 0, p->sum);
  st->inner = cuda_rnn_take(out, way == STEPS ? units : 0, p->sum);
  st->in = cuda_rnn_take(out, lay ? places * widest : 0, q->dtype);
  st->before = cuda_rnn_take(out, before ? places * q->state : 0, q->dtype);
  st->before_reset = cuda_rnn_take(out, q->before ? places * q->state : 0, q->dtype);
  st->full = cuda_rnn_take(out, q->projects ? places * q->hidden : 0, q->dtype);
  for (int i = 0; i < 2; i++) {
    st->by[i] = cuda_rnn_take(out, adds && i < p->directions ? places * widest : 0, p->sum);
    st->dout[i] = cuda_rnn_take(out, p->layers > 1 && !passes(st) ? places * q->width : 0, q->dtype);
  }
  cuda_rnn_take_scratch(out, p);
  /* Beside products, of 16 bits measured: most of a launch is over before the one before it has ended. */
  const double launch = qn_kit_bytes(q->dtype) == 2 ? 500 : 2500;
  if (way == STEPS)
    out->estimate += (double)p->n * (double)q->steps * (launch + (double)units * 7 / 1000) * (1 + q->before + q->projects);
  return QN_OK;
}
static qn_status prepare_steps(const qn_request *r, qn_prepared *out) { return prepare(r, out, STEPS); }
static qn_status prepare_vector(const qn_request *r, qn_prepared *out) { return prepare(r, out, VECTOR); }
static qn_status prepare_block(const qn_request *r, qn_prepared *out) { return prepare(r, out, BLOCK); }
static qn_status prepare_grid(const qn_request *r, qn_prepared *out) { return prepare(r, out, GRID); }
static qn_status prepare_wavefront(const qn_request *r, qn_prepared *out) { return prepare(r, out, WAVEFRONT); }

/* ---- run ------------------------------------------------------------------------------------------------ */

static qn_status walk(const state *st, const qn_launch *launch, const cuda_rnn *q, int64_t k)
{
  const cuda_rnn_problem *p = &st->p;
  const cuda_rnn_operand *rec = &p->list[RNN_R][k];
  const int64_t skipped = 2 * q->hidden;
  const char *r = launch->ptr[rec->value], *r_n = r + skipped * rec->stride[0] * (int64_t)qn_kit_bytes(rec->dtype);
  const char *n_slopes = (const char *)q->step + skipped * (int64_t)qn_kit_bytes(q->dtype);
  void *stream = launch->stream;
  qn_status s = QN_OK;
  for (int64_t i = q->steps - 1; i >= 0 && !s; i--) {
    if (q->projects) {
      s = cuda_rnn_slopes_state(q, i, stream);
      if (!s) s = cuda_rnn_multiply(p, launch, k, FULL, q->step, launch->ptr[p->list[RNN_PROJECTION][k].value], q->inner);
    }
    if (!s) s = cuda_rnn_slopes(q, i, stream);
    if (!s && q->before) {
      s = cuda_rnn_multiply(p, launch, k, RESET, n_slopes, r_n, q->inner);
      if (!s) s = cuda_rnn_slopes_reset(q, i, stream);
    }
    if (!s) s = cuda_rnn_multiply(p, launch, k, CARRY, q->step, r, q->product);
  }
  return s ? s : cuda_rnn_slopes_end(q, stream);
}

/* Both directions at once. */
static qn_status walk_vector(const cuda_rnn net[2], int64_t directions, const void *const weights[2], const qn_launch *launch)
{
  cuda_rnn_vector v = { .net = { net[0], net[1] }, .weights = { weights[0], weights[1] }, .weights_row = { net[0].rows, net[0].rows } };
  const int64_t end = net[0].dh0.p || net[0].dc0.p ? -1 : 0;
  qn_status s = QN_OK;
  for (int64_t i = net[0].steps - 1; i >= end && !s; i--) s = cuda_rnn_vector_back(&v, directions, i, launch->stream);
  return s;
}

/* The weights' gradients, and that by what the layer took. */
static qn_status products(const state *st, const qn_launch *launch, const cuda_rnn *q, int64_t k, void *by)
{
  const cuda_rnn_problem *p = &st->p;
  char *base = launch->workspace;
  void *stream = launch->stream;
  const void *slope_h = q->slope_h ? q->slope_h : q->slope_x;
  const int64_t skipped = 2 * q->hidden;
  qn_status s = QN_OK;
  if (wanted(p, RNN_DW, k)) {
    const void *below = q->below.p;
    if (lay_below(st, q->layer)) {
      below = base + st->in;
      s = cuda_rnn_lay(q, CUDA_RNN_BELOW, base + st->in, stream);
    }
    if (!s) s = cuda_rnn_multiply(p, launch, k, DW, q->slope_x, below, launch->ptr[p->list[RNN_DW][k].value]);
  }
  if (!s && wanted(p, RNN_DR, k)) {
    const cuda_rnn_operand *to = &p->list[RNN_DR][k];
    char *dr = launch->ptr[to->value];
    const void *before = base + st->before, *slopes = slope_h;
    if (shifts(p, q->layer)) {            /* backwards in time a step's state before it is that of the time after */
      const int64_t bytes = (int64_t)qn_kit_bytes(q->dtype);
      before = (char *)q->out.p + (q->first * q->out.stride[2] + (q->reversed ? q->out.stride[0] : 0)) * bytes;
      if (!q->reversed) slopes = (const char *)slope_h + q->batch * q->rows * bytes;
    } else
      s = cuda_rnn_lay(q, CUDA_RNN_BEFORE, base + st->before, stream);
    if (!s) s = cuda_rnn_multiply(p, launch, k, DR, slopes, before, dr);
    if (!s && q->before) {
      s = cuda_rnn_lay(q, CUDA_RNN_BEFORE_RESET, base + st->before_reset, stream);
      if (!s)
        s = cuda_rnn_multiply(p, launch, k, DR_RESET, (const char *)slope_h + skipped * (int64_t)qn_kit_bytes(q->dtype),
                              base + st->before_reset, dr + skipped * to->stride[0] * (int64_t)qn_kit_bytes(to->dtype));
    }
  }
  if (!s && wanted(p, RNN_DPROJECTION, k)) {
    s = cuda_rnn_lay(q, CUDA_RNN_FULL, base + st->full, stream);
    if (!s)
      s = cuda_rnn_multiply(p, launch, k, DPROJECTION, q->slope_state, base + st->full, launch->ptr[p->list[RNN_DPROJECTION][k].value]);
  }
  if (!s && wanted(p, RNN_DBW, k)) s = cuda_rnn_multiply(p, launch, k, DBW, q->slope_x, launch->ptr[p->list[RNN_DBW][k].value], NULL);
  if (!s && one_bias(p, k))
    s = cuda_rnn_multiply(p, launch, k, DBR, launch->ptr[p->list[RNN_DBW][k].value], launch->ptr[p->list[RNN_DBR][k].value], NULL);
  else if (!s && wanted(p, RNN_DBR, k)) s = cuda_rnn_multiply(p, launch, k, DBR, slope_h, launch->ptr[p->list[RNN_DBR][k].value], NULL);
  if (s || (passes(st) && q->layer)) return s;
  return cuda_rnn_multiply(p, launch, k, DX, q->slope_x, launch->ptr[p->list[RNN_W][k].value], by);
}

static qn_status run_layer(const state *st, const qn_launch *launch, int64_t layer)
{
  const cuda_rnn_problem *p = &st->p;
  char *base = launch->workspace;
  const int64_t inputs = layer ? p->net.width : p->inputs, width = p->net.width, batch = p->net.batch;
  cuda_rnn net[2] = { { 0 } };
  void *by[2] = { NULL, NULL };
  const void *weights[2] = { NULL, NULL };
  int64_t weights_row[2] = { p->net.rows, p->net.rows }, weights_step[2] = { 1, 1 };
  qn_status s = QN_OK;
  cuda_rnn_tensor to = { base + st->dout[layer % 2], { batch * inputs, inputs, 1 }, p->net.dtype };
  if (!layer) {
    const cuda_rnn_operand *dx = &p->one[RNN_DX];
    to.p = launch->ptr[dx->value], to.dtype = dx->dtype;
    memcpy(to.stride, dx->stride, sizeof to.stride);
  }
  for (int64_t d = 0; d < p->directions && !s; d++) {
    const int64_t k = layer * p->directions + d, own = st->way == VECTOR ? d : 0;
    cuda_rnn *q = &net[d];
    *q = cuda_rnn_net(p, launch, layer, d);
    if (!q->dout.p) q->dout = (cuda_rnn_tensor){ base + st->dout[(layer + 1) % 2], { batch * width, width, 1 }, q->dtype };
    q->slope_x = base + st->slope_x[d], q->slope_h = apart(q) ? base + st->slope_h[d] : NULL;
    q->slope_state = base + st->slope_state, q->product = base + st->product, q->inner = base + st->inner;
    q->step = base + st->step[own], q->c = base + st->c[own], q->direct = base + st->straight[own];
    if (st->way == BLOCK) {
      const cuda_rnn_operand *rec = &p->list[RNN_R][k];
      weights[d] = launch->ptr[rec->value], weights_row[d] = rec->stride[0], weights_step[d] = rec->stride[1];
    } else
      weights[d] = base + st->turned[d];
    by[d] = writes_dx(st, layer) ? to.p : base + st->by[d];
    if (st->way == GRID || st->way == VECTOR)
      s = cuda_rnn_multiply(p, launch, k, TURN, launch->ptr[p->list[RNN_R][k].value], base + st->turned[d], NULL);
    else if (st->way == STEPS) {
      s = walk(st, launch, q, k);
      if (!s) s = products(st, launch, q, k, by[d]);
    }
  }
  if (!s && st->way == GRID) s = cuda_rnn_grid_run(&st->walk, net, weights, weights_row, launch);
  if (!s && st->way == VECTOR) s = walk_vector(net, p->directions, weights, launch);
  if (!s && st->way == WAVEFRONT) s = cuda_rnn_front_run_layer(&st->front, p, launch, net);
  if (!s && st->way == BLOCK) s = cuda_rnn_block_run(&st->alone, net, weights, weights_row, weights_step, launch);
  for (int64_t d = 0; d < p->directions && st->way != STEPS && !s; d++) s = products(st, launch, &net[d], layer * p->directions + d, by[d]);
  return s || writes_dx(st, layer) ? s : cuda_rnn_finish(&net[0], by[0], by[1], &to, launch->stream);
}

/* n layers from the given one down. */
static qn_status run_layers(const state *st, const qn_launch *launch, int64_t from, int32_t n)
{
  const cuda_rnn_problem *p = &st->p;
  char *base = launch->workspace;
  cuda_rnn net[CUDA_RNN_FRONT_LAYERS] = { { 0 } };
  cuda_rnn_tensor to;
  const cuda_rnn_operand *dx = &p->one[RNN_DX];
  void *by = NULL;
  for (int32_t i = 0; i < n; i++) {
    net[i] = cuda_rnn_net(p, launch, from - i, 0);
    net[i].slope_x = base + st->slope_x[i], net[i].slope_h = apart(&net[i]) ? base + st->slope_h[i] : NULL;
  }
  qn_status s = cuda_rnn_front_run(&st->front, p, launch, from, n, net);
  for (int32_t i = 0; i < n && !s; i++) {
    if (from == i) by = writes_dx(st, 0) ? launch->ptr[dx->value] : base + st->by[0];
    s = products(st, launch, &net[i], from - i, by);
  }
  if (s || from >= n || writes_dx(st, 0)) return s;
  to = (cuda_rnn_tensor){ launch->ptr[dx->value], { 0 }, dx->dtype };
  memcpy(to.stride, dx->stride, sizeof to.stride);
  return cuda_rnn_finish(&net[n - 1], by, NULL, &to, launch->stream);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = prepared->state;
  qn_status s = QN_OK;
  if (passes(st)) {
    for (int64_t l = st->p.layers - 1; l >= 0 && !s; l -= st->front.at_once)
      s = run_layers(st, launch, l, (int32_t)qn_min_i64(st->front.at_once, l + 1));
    return s;
  }
  for (int64_t l = st->p.layers - 1; l >= 0 && !s; l--) s = run_layer(st, launch, l);
  return s;
}

static qn_status build_one_kernel(const qn_request *r, qn_prepared *out)
{
  const state *st = out->state;
  const qn_status s = cuda_allow_shared(st->way == GRID ? st->walk.kernel : st->way == BLOCK ? st->alone.kernel : st->front.kernel->run);
  return s ? s : cuda_rnn_build(r, out);
}

static const qn_engine row[] = {
  { .name = "block", .op = QN_OP_RNN_BACKWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare_block,
    .build = build_one_kernel, .run = run, .release = cuda_rnn_release },
  { .name = "wavefront", .op = QN_OP_RNN_BACKWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare_wavefront,
    .build = build_one_kernel, .run = run, .release = cuda_rnn_release },
  { .name = "grid", .op = QN_OP_RNN_BACKWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare_grid,
    .build = build_one_kernel, .run = run, .release = cuda_rnn_release },
  { .name = "vector", .op = QN_OP_RNN_BACKWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare_vector,
    .build = cuda_rnn_build, .run = run, .release = cuda_rnn_release },
  { .name = "steps", .op = QN_OP_RNN_BACKWARD, .class_ = QN_CLASS_TUNED, .prepare = prepare_steps,
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, .build = cuda_rnn_build, .run = run,
    .release = cuda_rnn_release },
};
CUDA_ENGINES(rnn_steps_backward) = { row, sizeof row / sizeof *row };
