/* flops.c -- the FLOPs of an op, from its shapes alone: a part of the schema, for those who judge times or size of a problem. ops.def
 * says which of these functions is whose; for many ops it says a number per element.
 *
 * They follow convention: a multiply-add is two; a pointwise function, a comparison or a window's tap is one; what an
 * engine really executes (Winograd, padding, recomputation) does not count. */
#include <string.h>
#include <quern/kit.h>
#include "problem.h"

static const qn_value *role(const qn_value *value, const qn_node *op, const char *name)
{
  const qn_op_info *info = qn_op_find(op->op);
  for (uint32_t r = 0; r < info->n_roles; r++)
    if (!strcmp(info->role[r].name, name)) return op->first[r] < op->first[r + 1] ? &value[op->arg[op->first[r]]] : NULL;
  return NULL;
}

static double elements(const qn_value *v) { return v ? (double)qn_elements(v) : 0; }

static const qn_value *first_output(const qn_value *value, const qn_node *op)
{
  return &value[op->arg[op->first[op->n_inputs]]];
}

double qn__flops_matmul(const qn_value *value, const qn_node *op)
{
  const qn_value *a = role(value, op, "a");
  return 2 * elements(role(value, op, "y")) * (double)a->dim[a->rank - 1];
}

/* All three directions do the same multiplications: one per output element of the forward, channel and tap. */
double qn__flops_conv(const qn_value *value, const qn_node *op)
{
  const qn_value *y = role(value, op, op->op == QN_OP_CONV_FORWARD ? "y" : "dy");
  const qn_value *w = role(value, op, op->op == QN_OP_CONV_BACKWARD_FILTER ? "dw" : "w");
  return 2 * elements(y) * elements(w) / (double)(w->dim[0] ? w->dim[0] : 1);
}

double qn__flops_pool(const qn_value *value, const qn_node *op)
{
  const qn_pool *pool = op->attr;
  bool backward = qn_op_find(op->op)->forward;
  const qn_value *x = backward ? first_output(value, op) : role(value, op, "x");
  double n = elements(backward ? role(value, op, "dy") : role(value, op, "y"));
  if (op->op == QN_OP_POOL_MAX_BACKWARD)
    return n;
  for (int i = 0; i < x->rank - 2; i++)
    n *= (double)(pool->window[i] ? pool->window[i] : x->dim[2 + i]);
  return n;
}

/* A multiply-add for each tap of each point. */
double qn__flops_resampling(const qn_value *value, const qn_node *op)
{
  const bool back = qn_op_find(op->op)->forward;
  const qn_value *y = role(value, op, back ? "dy" : "y"), *x = role(value, op, back ? "dx" : "x");
  const qn_resampling *a = op->attr;
  double taps = 1;
  for (int d = 2; d < y->rank; d++)
    taps *= (1 << a->mode) * (a->antialias && y->dim[d] && x->dim[d] > y->dim[d] ? (double)x->dim[d] / (double)y->dim[d] : 1);
  return taps > 1 ? 2 * taps * elements(y) : 0;
}

/* An update has about four multiply-adds, a root and a division per parameter; a norm one multiply-add. */
double qn__flops_training(const qn_value *value, const qn_node *op)
{
  double n = 0;
  for (int32_t k = op->first[0]; k < op->first[1]; k++)
    n += elements(&value[op->arg[k]]);
  return role(value, op, "params") ? 10 * n : 2 * n;
}

/* As softmax; for each state of a frame (two per label) three exponentials, a logarithm and five other operations, its gradient twice
 * that. */
double qn__flops_ctc(const qn_value *value, const qn_node *op)
{
  const qn_value *x = role(value, op, "x"), *labels = role(value, op, "labels");
  double states = (double)x->dim[0] * (2 * elements(labels) + (double)x->dim[1]);
  return 5 * elements(x) + (op->op == QN_OP_CTC_LOSS ? 9 : 18) * states;
}

/* A multiply-add per element of a window (across: in one dim, within: in all), in a gradient of two windows; a power, two products. */
double qn__flops_lrn(const qn_value *value, const qn_node *op)
{
  const qn_local_norm *a = op->attr;
  const qn_value *x = role(value, op, "x");
  double window = (double)a->size;
  for (int d = 3; d < x->rank && a->region == QN_LOCAL_WITHIN; d++)
    window *= (double)a->size;
  return (2 * window + 3) * elements(x) * (qn_op_find(op->op)->forward ? 2 : 1);
}

/* A multiply-add per entry of theta at each point. */
double qn__flops_affine_grid(const qn_value *value, const qn_node *op)
{
  const qn_value *grid = role(value, op, op->op == QN_OP_AFFINE_GRID_BACKWARD ? "dy" : "grid");
  return 2 * (double)(grid->rank - 1) * elements(grid);
}

/* A multiply-add per tap of each sampled element. */
double qn__flops_grid_sample(const qn_value *value, const qn_node *op)
{
  const qn_value *grid = role(value, op, "grid"), *y = role(value, op, op->op == QN_OP_GRID_SAMPLE ? "y" : "dy");
  double d = (double)(grid->rank - 2);
  const double taps = ((const qn_sampling *)op->attr)->mode == QN_RESAMPLE_CUBIC ? 4 : 2;
  return 2 * (d == 2 ? taps * taps : taps * taps * taps) * elements(y) * (op->op == QN_OP_GRID_SAMPLE_BACKWARD_GRID ? d : 1);
}

/* The sum over n queries i of i + c, at least 0 and at most m. */
static double clamped_sum(double n, double c, double m)
{
  double first = c >= 0 ? 0 : -c < n ? -c : n, last = m <= c ? 0 : m - c < n ? m - c : n;
  return ((first + last - 1) / 2 + c) * (last - first) + (n - last) * m;
}

/* A multiply-add for each element of a key and of a value (a gradient: three and two) that the window shows; other masks and lengths are
 * taken to hide nothing. Ragged sequences count as equally long. */
double qn__flops_attention(const qn_value *value, const qn_node *op)
{
  const qn_attention *a = op->attr;
  const qn_value *q = role(value, op, "q"), *k = role(value, op, "k"), *v = role(value, op, "v"), *q_starts = role(value, op, "q_starts");
  const qn_value *kv_starts = role(value, op, "kv_starts"), *pages = op->op == QN_OP_ATTENTION_FORWARD ? role(value, op, "pages") : NULL;
  double b = (double)(q_starts ? q_starts->dim[0] - 1 : q->dim[0]), d = (double)q->dim[3], dv = (double)(v ? v->dim[3] : a->value_size);
  double sq = (double)q->dim[2] / (q_starts && b > 0 ? b : 1), skv = (double)k->dim[2] / (kv_starts && b > 0 ? b : 1);
  if (pages) skv *= (double)pages->dim[1];
  double shift = a->align == QN_ALIGN_TOP_LEFT ? 0 : skv - sq;
  double pairs = a->right < 0 ? sq * skv : clamped_sum(sq, shift + (double)a->right + 1, skv);
  if (a->left >= 0) pairs -= clamped_sum(sq, shift - (double)a->left, skv);
  return b * (double)q->dim[1] * pairs * (op->op == QN_OP_ATTENTION_FORWARD ? 2 * (d + dv) : 6 * d + 4 * dv);
}

/* A multiply-add per weight, step and sequence; in the gradient two, for dx and dw. */
double qn__flops_recurrent(const qn_value *value, const qn_node *op)
{
  const qn_op_info *info = qn_op_find(op->op);
  const qn_value *x = role(value, op, "x");
  double weights = 0;
  for (uint32_t r = 0; r < info->n_inputs; r++)
    for (int32_t k = op->first[r]; k < op->first[r + 1]; k++)
      if (!strcmp(info->role[r].name, "w") || !strcmp(info->role[r].name, "r") || !strcmp(info->role[r].name, "projection"))
        weights += elements(&value[op->arg[k]]);
  return (info->forward ? 4 : 2) * weights * (double)x->dim[0] * (double)x->dim[1];
}

double qn__role_elements(const qn_value *value, const qn_node *op, uint32_t role)
{
  return op->first[role] < op->first[role + 1] ? elements(&value[op->arg[op->first[role]]]) : 0;
}

double qn_flops(const qn_node *op, const qn_value *value) { return qn__op_flops(value, op); }
