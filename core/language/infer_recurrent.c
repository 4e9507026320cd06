/* infer_recurrent.c -- recurrent networks: lists with a tensor for each layer and direction, states, and what forward leaves to
 * backward. */
#include <string.h>
#include "problem.h"

enum { NONE = -1 };

/* The roles of one of the two ops; in the gradient the d... stand beside what they are gradients of. */
typedef struct roles {
  int x, y, w, r, bw, br, projection, h0, c0, lengths, seed, ht, ct, gates, cells, inner;
  int dx, dw, dr, dbw, dbr, dprojection, dh0, dc0, dy;
} roles;

static const roles forward = {
  .x = QN_ROLE_RNN_FORWARD_X, .y = QN_ROLE_RNN_FORWARD_Y, .w = QN_ROLE_RNN_FORWARD_W, .r = QN_ROLE_RNN_FORWARD_R,
  .bw = QN_ROLE_RNN_FORWARD_BW, .br = QN_ROLE_RNN_FORWARD_BR, .projection = QN_ROLE_RNN_FORWARD_PROJECTION,
  .h0 = QN_ROLE_RNN_FORWARD_H0, .c0 = QN_ROLE_RNN_FORWARD_C0, .lengths = QN_ROLE_RNN_FORWARD_LENGTHS, .seed = QN_ROLE_RNN_FORWARD_SEED,
  .ht = QN_ROLE_RNN_FORWARD_HT, .ct = QN_ROLE_RNN_FORWARD_CT, .gates = QN_ROLE_RNN_FORWARD_GATES, .cells = QN_ROLE_RNN_FORWARD_CELLS,
  .inner = QN_ROLE_RNN_FORWARD_INNER, .dx = NONE, .dw = NONE, .dr = NONE, .dbw = NONE, .dbr = NONE, .dprojection = NONE, .dh0 = NONE,
  .dc0 = NONE, .dy = NONE,
};
static const roles backward = {
  .x = QN_ROLE_RNN_BACKWARD_X, .y = QN_ROLE_RNN_BACKWARD_Y, .w = QN_ROLE_RNN_BACKWARD_W, .r = QN_ROLE_RNN_BACKWARD_R, .bw = NONE,
  .br = NONE, .projection = QN_ROLE_RNN_BACKWARD_PROJECTION, .h0 = QN_ROLE_RNN_BACKWARD_H0, .c0 = QN_ROLE_RNN_BACKWARD_C0,
  .lengths = QN_ROLE_RNN_BACKWARD_LENGTHS, .seed = QN_ROLE_RNN_BACKWARD_SEED, .ht = QN_ROLE_RNN_BACKWARD_DHT,
  .ct = QN_ROLE_RNN_BACKWARD_DCT, .gates = QN_ROLE_RNN_BACKWARD_GATES, .cells = QN_ROLE_RNN_BACKWARD_CELLS,
  .inner = QN_ROLE_RNN_BACKWARD_INNER, .dx = QN_ROLE_RNN_BACKWARD_DX, .dw = QN_ROLE_RNN_BACKWARD_DW, .dr = QN_ROLE_RNN_BACKWARD_DR,
  .dbw = QN_ROLE_RNN_BACKWARD_DBW, .dbr = QN_ROLE_RNN_BACKWARD_DBR, .dprojection = QN_ROLE_RNN_BACKWARD_DPROJECTION,
  .dh0 = QN_ROLE_RNN_BACKWARD_DH0, .dc0 = QN_ROLE_RNN_BACKWARD_DC0, .dy = QN_ROLE_RNN_BACKWARD_DY,
};

/* The sizes that every tensor follows from. */
typedef struct sizes { int64_t steps, batch, inputs, gates, hidden, state, directions, layers; uint32_t dtype; } sizes;

static int32_t count(const qn__problem *p, int role) { return role == NONE ? 0 : p->node->first[role + 1] - p->node->first[role]; }
static qn_value *given(const qn__problem *p, int role) { return role == NONE ? NULL : qn__arg(p, (uint32_t)role); }

/* One tensor for each layer and direction. wide: f32 is taken beside x's dtype. */
static qn_status settle_list(const qn__problem *p, const sizes *s, int role, bool wide, int rank, int64_t dim0, int64_t dim1,
                             int64_t dim1_above)
{
  const int32_t n = count(p, role);
  const char *name = n ? qn__role_name(p, (uint32_t)role) : "";
  if (!n) return QN_OK;
  if ((qn__wide)s->layers * s->directions != n)
    return qn__refuse(p, name, "has %d tensors; must have one for each layer and direction: %lld by %lld", (int)n, (long long)s->layers,
                      (long long)s->directions);
  for (int32_t k = 0; k < n; k++) {
    qn_value *v = &p->value[p->node->arg[p->node->first[role] + k]];
    const uint32_t set = QN__BIT(s->dtype) | (wide && s->dtype != QN_F64 ? QN__BIT(QN_F32) : 0);
    const int64_t dim[2] = { dim0, k < s->directions ? dim1 : dim1_above };
    if (v->dtype && !(set & QN__BIT(v->dtype)))
      return qn__refuse(p, name, "dtype of tensor %d is %s; accepted here: %s", (int)k, qn_dtype_name(v->dtype), qn__dtypes(set).s);
    const qn_status status = qn__settle_value(p, (uint32_t)role, v, s->dtype, rank, dim);
    if (status) return status;
  }
  return QN_OK;
}

static qn_status settle(const qn__problem *p, const sizes *s, int role, bool wide, int rank, const int64_t *dim)
{
  if (!given(p, role)) return QN_OK;
  const qn_status status = qn__dtype_in(p, (uint32_t)role, QN__BIT(s->dtype) | (wide && s->dtype != QN_F64 ? QN__BIT(QN_F32) : 0));
  return status ? status : qn__settle(p, (uint32_t)role, s->dtype, rank, dim);
}

/* The sizes, from x, the first of r, and whether there is a projection. */
static qn_status sizes_of(const qn__problem *p, const roles *r, sizes *s)
{
  const qn_rnn *a = p->attr;
  const qn_value *x = given(p, r->x), *first = given(p, r->r);
  if (x->rank != 3) return qn__refuse(p, "x", "rank is %d; must be 3: steps, sequences, features", x->rank);
  if (first->rank != 2) return qn__refuse(p, "r", "rank is %d; must be 2: rows of the gates, columns of the state", first->rank);
  *s = (sizes){ x->dim[0], x->dim[1], x->dim[2], .gates = a->cell == QN_RNN_LSTM ? 4 : a->cell == QN_RNN_GRU ? 3 : 1,
                .state = first->dim[1], .directions = a->direction == QN_RNN_BOTH ? 2 : 1, .layers = a->layers, .dtype = x->dtype };
  s->hidden = first->dim[0] / s->gates;
  if (first->dim[0] % s->gates)
    return qn__refuse(p, "r", "has %lld rows; must have a multiple of the cell's %lld gates", (long long)first->dim[0],
                      (long long)s->gates);
  if (given(p, r->projection)) {
    if (a->cell != QN_RNN_LSTM) return qn__refuse(p, "projection", "is given, but cell is not lstm, which alone has one");
  } else if (s->state != s->hidden)
    return qn__refuse(p, "r", "dims are %lldx%lld; without projection they must be %lldx%lld", (long long)first->dim[0],
                      (long long)first->dim[1], (long long)first->dim[0], (long long)s->hidden);
  return QN_OK;
}

/* Tensors that this cell, or this number of layers, has or needs. */
static qn_status check_presence(const qn__problem *p, const roles *r)
{
  const qn_rnn *a = p->attr;
  const bool lstm = a->cell == QN_RNN_LSTM, gated = lstm || a->cell == QN_RNN_GRU, back = r->dx != NONE;
  const int only_lstm[] = { r->c0, r->ct, r->cells, r->dc0 };
  for (int i = 0; i < 4 && !lstm; i++)
    if (given(p, only_lstm[i]))
      return qn__refuse(p, qn__role_name(p, (uint32_t)only_lstm[i]), "is given, but cell is not lstm, which alone has a cell state");
  if (given(p, r->gates) && !gated)
    return qn__refuse(p, "gates", "is given, but cell has none; y and inner hold what backward needs");
  if (given(p, r->inner) && a->layers == 1)
    return qn__refuse(p, "inner", "is given, but layers is 1: nothing lies between layers");
  if (a->dropout > 0 && a->layers > 1 && !given(p, r->seed)) return qn__refuse(p, "seed", "is missing; dropout wants it");
  if (!back) return QN_OK;
  if (gated && !given(p, r->gates))
    return qn__refuse(p, "gates", "is missing; the gradient of this cell wants what forward left in it");
  if (lstm && !given(p, r->cells)) return qn__refuse(p, "cells", "is missing; the gradient of lstm wants what forward left in it");
  if (a->layers > 1 && !given(p, r->inner))
    return qn__refuse(p, "inner", "is missing; the gradient of several layers wants what forward left in it");
  if (given(p, r->dprojection) && !given(p, r->projection)) return qn__refuse(p, "dprojection", "is wanted where no projection is given");
  return QN_OK;
}

qn_status qn__infer_recurrent(const qn__problem *p)
{
  const roles *r = p->op->kind == QN_OP_RNN_BACKWARD ? &backward : &forward;
  const qn_rnn *a = p->attr;
  sizes s;
  qn_status status = sizes_of(p, r, &s);
  if (status || (status = check_presence(p, r))) return status;

  const int64_t rows = s.gates * s.hidden, width = s.directions * s.state;
  const struct { int role; bool wide; int rank; int64_t dim0, dim1, above; } list[] = {
    { r->w, false, 2, rows, s.inputs, width }, { r->r, false, 2, rows, s.state, s.state }, { r->bw, true, 1, rows, 1, 1 },
    { r->br, true, 1, rows, 1, 1 }, { r->projection, false, 2, s.state, s.hidden, s.hidden }, { r->dw, true, 2, rows, s.inputs, width },
    { r->dr, true, 2, rows, s.state, s.state }, { r->dbw, true, 1, rows, 1, 1 }, { r->dbr, true, 1, rows, 1, 1 },
    { r->dprojection, true, 2, s.state, s.hidden, s.hidden },
  };
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if ((status = settle_list(p, &s, list[i].role, list[i].wide, list[i].rank, list[i].dim0, list[i].dim1, list[i].above))) return status;

  const int64_t each = s.layers * s.directions;           /* bounded by the length of the list w */
  const int64_t kept = a->cell == QN_RNN_GRU && a->reset == QN_RNN_RESET_AFTER ? rows + s.hidden : rows;
  const struct { int role; bool wide; int rank; int64_t dim[4]; } one[] = {
    { r->x, false, 3, { s.steps, s.batch, s.inputs } }, { r->dx, false, 3, { s.steps, s.batch, s.inputs } },
    { r->y, false, 3, { s.steps, s.batch, width } }, { r->dy, false, 3, { s.steps, s.batch, width } },
    { r->h0, false, 3, { each, s.batch, s.state } }, { r->ht, false, 3, { each, s.batch, s.state } },
    { r->dh0, false, 3, { each, s.batch, s.state } }, { r->c0, true, 3, { each, s.batch, s.hidden } },
    { r->ct, true, 3, { each, s.batch, s.hidden } }, { r->dc0, true, 3, { each, s.batch, s.hidden } },
    { r->gates, false, 4, { each, s.steps, s.batch, kept } }, { r->cells, true, 4, { each, s.steps, s.batch, s.hidden } },
    { r->inner, false, 4, { s.layers - 1, s.steps, s.batch, width } },
  };
  for (size_t i = 0; i < sizeof one / sizeof *one; i++)
    if ((status = settle(p, &s, one[i].role, one[i].wide, one[i].rank, one[i].dim))) return status;
  return given(p, r->lengths) ? qn__settle(p, (uint32_t)r->lengths, QN_I32, 1, &s.batch) : QN_OK;
}
