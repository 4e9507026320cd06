/* rnn_problem.c -- reads a recurrent network's request, and delegates its products (rnn_problem.h). */
#include "rnn_problem.h"
#include "kit/part.h"

/* Roles of both ops; -1: the op has none. */
#define F(name) QN_ROLE_RNN_FORWARD_##name
#define B(name) QN_ROLE_RNN_BACKWARD_##name
static const int8_t single_role[2][RNN_SINGLES] = {
  { F(X), F(Y), F(H0), F(C0), F(LENGTHS), F(SEED), F(OFFSET), F(HT), F(CT), F(GATES), F(CELLS), F(INNER), -1, -1, -1, -1 },
  { B(X), B(Y), B(H0), B(C0), B(LENGTHS), B(SEED), B(OFFSET), B(DHT), B(DCT), B(GATES), B(CELLS), B(INNER), B(DY), B(DX), B(DH0), B(DC0) },
};
static const int8_t list_role[2][RNN_LISTS] = {
  { F(W), F(R), F(PROJECTION), F(BW), F(BR), -1, -1, -1, -1, -1 },
  { B(W), B(R), B(PROJECTION), -1, -1, B(DW), B(DR), B(DPROJECTION), B(DBW), B(DBR) },
};
#undef F
#undef B

static cuda_rnn_operand operand_of(const qn_request *r, int32_t value)
{
  cuda_rnn_operand o = { .value = value };
  if (value < 0) return o;
  const qn_value *v = &r->value[value];
  o.dtype = v->dtype, o.align = v->align;
  memcpy(o.dim, v->dim, sizeof o.dim);
  memcpy(o.stride, v->stride, sizeof o.stride);
  return o;
}

qn_status cuda_rnn_read(const qn_request *r, qn_prepared *out, size_t state_bytes, int32_t parts_each)
{
  const qn_node *op = &r->op[0];
  const qn_rnn *a = op->attr;
  const int gradient = op->op == QN_OP_RNN_BACKWARD;
  const qn_value *x = &r->value[qn_role(op, (uint32_t)single_role[gradient][RNN_X])];
  const qn_value *w = &r->value[qn_role(op, (uint32_t)list_role[gradient][RNN_R])];
  const int64_t directions = a->direction == QN_RNN_BOTH ? 2 : 1, n = a->layers * directions;
  if (!x->dim[0] || !x->dim[1] || !x->dim[2]) return qn_refuse(out, "products of something", "x", "no dim of 0", "%s", "one");

  const size_t lists = (size_t)(RNN_LISTS * n) * sizeof(cuda_rnn_operand), parts = (size_t)(n * parts_each) * sizeof(qn_part *);
  state_bytes = (size_t)qn_round_up((int64_t)state_bytes, 16);
  cuda_rnn_problem *p = cuda_state(out, state_bytes + lists + parts);
  if (!p) return QN_NO_MEMORY;
  cuda_rnn_operand *list = (cuda_rnn_operand *)(void *)((char *)p + state_bytes);
  p->part = (qn_part **)(void *)((char *)list + lists);
  p->parts_each = parts_each;
  p->directions = directions, p->layers = a->layers, p->n = n, p->inputs = x->dim[2];
  p->sum = x->dtype == QN_F64 ? QN_F64 : QN_F32;
  cuda_rnn *q = &p->net;
  q->dtype = x->dtype, q->gradient = gradient, q->cell = (int32_t)a->cell, q->clip = a->clip, q->dropout = a->dropout;
  q->reversed = a->direction == QN_RNN_BACKWARD;
  q->before = a->cell == QN_RNN_GRU && a->reset == QN_RNN_RESET_BEFORE;
  q->steps = x->dim[0], q->batch = x->dim[1];
  q->gates = a->cell == QN_RNN_LSTM ? 4 : a->cell == QN_RNN_GRU ? 3 : 1;
  q->kept = q->gates == 3 && !q->before ? 4 : q->gates == 1 ? 0 : q->gates;
  q->rows = w->dim[0], q->hidden = q->rows / q->gates, q->state = q->h_row = w->dim[1], q->width = directions * q->state;
  for (int i = 0; i < RNN_SINGLES; i++) p->one[i] = operand_of(r, qn_role_at(op, single_role[gradient][i]));
  for (int i = 0; i < RNN_LISTS; i++) {
    const int role = list_role[gradient][i];
    p->list[i] = list + i * n;
    for (int64_t k = 0; k < n; k++) {
      const int32_t at = role < 0 ? 0 : op->first[role] + (int32_t)k;
      p->list[i][k] = operand_of(r, role >= 0 && at < op->first[role + 1] ? op->arg[at] : -1);
    }
  }
  q->projects = p->list[RNN_PROJECTION]->value >= 0;
  for (int i = 0; i < 2; i++) {
    const int32_t key = p->one[RNN_SEED + i].value;
    if (key >= 0 && r->value[key].flags & QN_VALUE_HOST) p->host_keys |= 1u << i;
  }
  out->traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE;       /* less what products lack */
  return QN_OK;
}

/* ---- at launch ------------------------------------------------------------------------------------------- */

/* Item k of the first dim, or all. */
static cuda_rnn_tensor tensor_of(const qn_launch *launch, const cuda_rnn_operand *o, int64_t k, bool item)
{
  cuda_rnn_tensor t = { .dtype = o->dtype };
  if (o->value < 0 || !launch->ptr[o->value]) return t;
  t.p = (char *)launch->ptr[o->value] + (item ? k * o->stride[0] * (int64_t)qn_kit_bytes(o->dtype) : 0);
  memcpy(t.stride, o->stride + item, (size_t)(4 - item) * sizeof *t.stride);
  return t;
}

static cuda_rnn_key key_of(const qn_launch *launch, const cuda_rnn_operand *o, bool host)
{
  if (o->value < 0) return (cuda_rnn_key){ NULL, 0 };
  const void *at = launch->ptr[o->value];
  return host ? (cuda_rnn_key){ NULL, qn_load_i64(at, o->dtype) } : (cuda_rnn_key){ at, 0 };
}

cuda_rnn cuda_rnn_net(const cuda_rnn_problem *p, const qn_launch *launch, int64_t layer, int64_t direction)
{
  const int64_t k = layer * p->directions + direction;
  cuda_rnn q = p->net;
  q.layer = layer, q.first = direction * q.state, q.inputs = layer ? q.width : p->inputs;
  q.reversed = q.reversed || direction;
  q.seed = key_of(launch, &p->one[RNN_SEED], p->host_keys & 1), q.offset = key_of(launch, &p->one[RNN_OFFSET], p->host_keys & 2);
  q.lengths = tensor_of(launch, &p->one[RNN_LENGTHS], 0, false);
  q.h0 = tensor_of(launch, &p->one[RNN_H0], k, true), q.c0 = tensor_of(launch, &p->one[RNN_C0], k, true);
  q.ht = tensor_of(launch, &p->one[RNN_HT], k, true), q.ct = tensor_of(launch, &p->one[RNN_CT], k, true);
  q.dh0 = tensor_of(launch, &p->one[RNN_DH0], k, true), q.dc0 = tensor_of(launch, &p->one[RNN_DC0], k, true);
  q.gates_at = tensor_of(launch, &p->one[RNN_GATES], k, true), q.cells_at = tensor_of(launch, &p->one[RNN_CELLS], k, true);
  q.below = layer ? tensor_of(launch, &p->one[RNN_INNER], layer - 1, true) : tensor_of(launch, &p->one[RNN_X], 0, false);
  q.out = layer < p->layers - 1 ? tensor_of(launch, &p->one[RNN_INNER], layer, true) : tensor_of(launch, &p->one[RNN_Y], 0, false);
  if (layer == p->layers - 1) q.dout = tensor_of(launch, &p->one[RNN_DY], 0, false);
  q.bw = tensor_of(launch, &p->list[RNN_BW][k], 0, false), q.br = tensor_of(launch, &p->list[RNN_BR][k], 0, false);
  return q;
}

/* ---- delegated products ---------------------------------------------------------------------------------- */

qn_value cuda_rnn_matrix(uint32_t dtype, uint32_t align, int64_t rows, int64_t row, int64_t columns, int64_t column)
{
  return (qn_value){ .dtype = dtype, .rank = 2, .dim = { rows, columns, 1, 1, 1, 1, 1, 1 }, .stride = { row, column }, .align = align };
}

qn_value cuda_rnn_places(const cuda_rnn_problem *p, const cuda_rnn_operand *o, int64_t columns)
{
  const int64_t steps = p->net.steps, batch = p->net.batch;
  if (steps == 1 || batch == 1 || o->stride[0] == batch * o->stride[1])
    return cuda_rnn_matrix(o->dtype, o->align, steps * batch, batch == 1 ? o->stride[0] : o->stride[1], columns, o->stride[2]);
  return (qn_value){ .dtype = o->dtype, .rank = 3, .dim = { steps, batch, columns, 1, 1, 1, 1, 1 },
                     .stride = { o->stride[0], o->stride[1], o->stride[2] }, .align = o->align };
}

/* Higher: larger errors. */
static int coarseness(uint32_t accumulator)
{
  static const uint32_t order[] = { QN_ACC_DOUBLE, QN_ACC_NATIVE, QN_ACC_F32_TC, QN_ACC_BF16X3, QN_ACC_3XTF32, QN_ACC_TF32, QN_ACC_F16 };
  for (int i = 0; i < 7; i++)
    if (order[i] == accumulator) return i;
  return 7;
}

/* A matrix as [1, rows, columns] beside one of rank 3, or (broadcast) as [steps, batch, columns]. */
static void give_rank(qn_value *v, const qn_value *like, bool by_step)
{
  if (v->rank >= like->rank) return;
  const int64_t row = v->stride[0];
  v->dim[2] = v->dim[1], v->stride[2] = v->stride[1], v->stride[1] = row;
  v->dim[1] = by_step ? like->dim[1] : v->dim[0], v->dim[0] = by_step ? like->dim[0] : 1;
  v->stride[0] = by_step ? row * like->dim[1] : 0;
  v->rank = 3;
}

static void add_demands(qn_prepared *out, cuda_rnn_problem *p, const qn_prepared *answer, double times, double ns_if_unknown)
{
  const uint64_t any = QN_TRAIT_TENSOR_CORES | QN_TRAIT_REDUCED | QN_TRAIT_FINITE_ONLY | QN_TRAIT_FLUSHES;
  out->estimate += times * (answer->estimate > 0 ? answer->estimate : ns_if_unknown);
  out->traits = (out->traits & (answer->traits | any)) | (answer->traits & any);
  if (answer->math > out->math) out->math = answer->math;
  if (answer->counters > out->counters) out->counters = answer->counters;
  if (answer->workspace > p->scratch_bytes) p->scratch_bytes = answer->workspace;
}

static void add_numerics(qn_prepared *out, const qn_prepared *answer)
{
  if (coarseness(answer->numerics.accumulator) > coarseness(out->numerics.accumulator)) {
    const uint32_t store = out->numerics.store;
    out->numerics = answer->numerics;
    if (!out->numerics.store) out->numerics.store = store;
  } else if (answer->numerics.store)
    out->numerics.store = answer->numerics.store;
}

qn_status cuda_rnn_product(const qn_request *r, qn_prepared *out, cuda_rnn_problem *p, qn_part **to, qn_value a, qn_value b, qn_value y,
                           double times)
{
  static const int32_t first[] = { 0, 1, 2, 2, 2, 2, 2, 3 }, arg[] = { 0, 1, 2 };
  give_rank(&a, &y, true), give_rank(&y, &a, true), give_rank(&b, &y, false);
  qn_value value[] = { a, b, y };
  const qn_node node = { .op = QN_OP_MATMUL, .family = QN_FAMILY_CONTRACTION, .n_roles = 7, .n_inputs = 6, .first = first, .arg = arg };
  const qn_status s = cuda_part_prepare(r, &node, value, to);
  if (s) return s;
  const qn_prepared *answer = r->host->part_answer(*to);
  const double flops = 2.0 * (double)y.dim[0] * (double)y.dim[1] * (double)y.dim[2] * (double)a.dim[a.rank - 1];
  add_demands(out, p, answer, times, 3000 + flops / 2000);
  add_numerics(out, answer);
  return QN_OK;
}

qn_status cuda_rnn_add_rows(const qn_request *r, qn_prepared *out, cuda_rnn_problem *p, qn_part **to, qn_value x, qn_value y)
{
  static const int32_t first[] = { 0, 1, 2 };
  static const qn_axes rows = { sizeof(qn_axes), 1, 0, 0 };
  qn_value value[] = { x, y };
  const qn_node node = { .op = QN_OP_REDUCE_SUM, .family = QN_FAMILY_REDUCTION, .attr = &rows, .n_roles = 2, .n_inputs = 1, .first = first,
                         .arg = first };
  const qn_status s = cuda_part_prepare(r, &node, value, to);
  if (s) return s;
  const qn_prepared *answer = r->host->part_answer(*to);
  add_demands(out, p, answer, 1, 3000 + (double)(x.dim[0] * x.dim[1]) * (double)qn_kit_bytes(x.dtype) / 3000);
  add_numerics(out, answer);
  return QN_OK;
}

qn_status cuda_rnn_copy(const qn_request *r, qn_prepared *out, cuda_rnn_problem *p, qn_part **to, qn_value x, qn_value y)
{
  const qn_status s = cuda_part_copy(r, &x, &y, to);
  return s ? s : (add_demands(out, p, r->host->part_answer(*to), 1, 3000), QN_OK);
}

qn_status cuda_rnn_multiply(const cuda_rnn_problem *p, const qn_launch *launch, int64_t k, int which, const void *a, const void *b,
                            void *y)
{
  void *ptr[] = { (void *)(uintptr_t)a, (void *)(uintptr_t)b, y };
  return cuda_host->part_run(p->part[k * p->parts_each + which], launch, ptr, (char *)launch->workspace + p->scratch, launch->counters);
}

uint64_t cuda_rnn_take(qn_prepared *out, int64_t n, uint32_t dtype)
{
  const uint64_t at = out->workspace;
  out->workspace += (uint64_t)qn_round_up(n * (int64_t)qn_kit_bytes(dtype), 256);
  return at;
}

qn_status cuda_rnn_build(const qn_request *r, qn_prepared *out)
{
  cuda_rnn_problem *p = out->state;
  qn_status s = cuda_rnn_early(&p->net.early);
  (void)r;
  for (int64_t i = 0; i < p->n * p->parts_each && !s; i++)
    if (p->part[i]) s = cuda_host->part_build(p->part[i]);
  return s;
}

void cuda_rnn_release(qn_prepared *out)
{
  const cuda_rnn_problem *p = out->state;
  for (int64_t i = 0; p && i < p->n * p->parts_each; i++)
    if (p->part[i]) cuda_host->part_release(p->part[i]);
  cuda_release(out);
}
