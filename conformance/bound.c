/* bound.c -- how far a result may lie from the reference: |got - y| <= e, element by element, for a graph op by op.
 *
 * e of a value is its own op's error, plus what the errors of its inputs do, plus the rounding to its dtype; a fused engine
 * that skips the rounding of an intermediate stays within that. What is exact (integer fills whose sums fit the accumulator,
 * copies, comparisons) has e = 0 and is compared bit for bit. Here: sums, and what serves all families. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

/* c(n) for one declaration: a sum of n terms lies within c(n) S of the exact one, S the sum of absolute values.
 * The square-root law (Higham, Mary 2019; lambda 8) wants rounding to nearest and independent terms. Truncating tensor
 * cores: 1.25 n covers 2 lost bits each 4 to 16 products. The others follow their own unit. */
static double declared_error(const qn_numerics *d, uint32_t compute, double n, bool random)
{
  double u = qc_unit(compute), tc = (1.25 * n + 32) * 0x1p-24, store = d->store ? qc_unit(d->store) : 0, c;
  switch (d->accumulator) {
  case QN_ACC_F32_TC:  c = tc; break;
  case QN_ACC_TF32:    c = 0x1p-9 + tc; break;
  case QN_ACC_3XTF32:  c = 0x1p-20 + (3.75 * n + 32) * 0x1p-24; break;
  case QN_ACC_BF16X3:  c = 0x1p-22 + (7.5 * n + 32) * 0x1p-24; break;
  case QN_ACC_F16:     c = n * 0x1p-11; break;
  case QN_ACC_F8_FAST:
    c = d->promote ? 1.1 * fmin(n, d->promote) * 0x1p-13 + (n / d->promote + 32) * 0x1p-24 : 1.1 * n * 0x1p-13;
    break;
  case QN_ACC_DOUBLE:  c = n * 0x1p-53; break;
  default:             c = u * (random ? fmin(n, 8 * sqrt(n) + 16) : n);
  }
  return c + 2 * store;                 /* each term passes through at most one store, each stored sum through one more */
}

double qc_sum_error(const struct qc_numerics *k, uint32_t compute, double n)
{
  double worst = 0;
  for (int i = 0; i < k->n; i++)
    worst = fmax(worst, declared_error(&k->part[i], compute, n, k->random));
  return worst;
}

int qc_fraction_bits(const double *v, int64_t n)
{
  int most = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(v[i]))
      return 99;
    int bits = 0;
    for (double x = v[i]; x != floor(x) && bits < 99; x *= 2)
      bits++;
    if (bits > most)
      most = bits;
  }
  return most;
}

bool qc_inputs_exact(const struct qc_node *n)
{
  for (int i = 0; i < n->n_in; i++)
    if (!n->in[i]->exact)
      return false;
  return true;
}

double *qc_abs_run(struct qc_node *n, bool with_e)
{
  double *in[64] = {0}, *s = qc_alloc((size_t)n->out[0]->n * sizeof *s + 8);
  for (int i = 0; i < n->n_in; i++) {
    struct qc_value *v = n->in[i];
    if (!v->y || v->q.flags & QN_VALUE_HOST)
      continue;
    in[i] = qc_alloc((size_t)v->n * sizeof **in + 8);
    for (int64_t k = 0; k < v->n; k++)
      in[i][k] = fabs(v->y[k]) + (with_e ? v->e[k] : 0);
  }
  if (!n->absolute)
    n->absolute = qc_twin_absolute(n);
  void *out[QN_MAX_ROLES] = {s}, *spare = NULL;
  if (n->n_out > 1)                     /* indices, which nobody wants here */
    out[1] = spare = qc_alloc((size_t)n->out[1]->n * 8 + 8);
  qc_twin_run(n->absolute, (const void *const *)in, out);
  free(spare);
  for (int i = 0; i < n->n_in; i++)
    free(in[i]);
  return s;
}

void qc_propagate_abs(struct qc_node *n)
{
  if (qc_inputs_exact(n))
    return;
  double *wide = qc_abs_run(n, true);
  for (int64_t i = 0; i < n->out[0]->n; i++)
    n->out[0]->e[i] += fabs(wide[i]) - fabs(n->s[i]);
  free(wide);
}

/* The rounding of a computed value to its own dtype. counted: the dtype whose last rounding e has already. */
static void round_output(struct qc_value *v, uint32_t counted)
{
  if (!v->y)
    return;
  double u = qc_unit(v->q.dtype);
  v->once = true;
  for (int64_t i = 0; i < v->n && v->once; i++)
    v->once = v->e[i] == 0;
  v->exact = v->once;
  for (int64_t i = 0; i < v->n; i++) {
    if (v->once && qc_round(v->q.dtype, v->y[i]) == v->y[i])
      continue;
    v->exact = false;
    if (v->e[i] == QC_ANY)
      continue;
    if (v->once || u > qc_unit(counted))
      v->e[i] = qc_half_ulp(v->q.dtype, v->y[i]) + (1 + u) * v->e[i];
  }
}

/* Quantization is exact, being defined bit by bit; what it makes of an inexact input may lie a whole step aside. */
static void bound_quantization(struct qc_node *n)
{
  for (int o = 0; o < n->n_out && !qc_inputs_exact(n); o++)
    for (int64_t i = 0; n->out[o]->e && i < n->out[o]->n; i++)
      n->out[o]->e[i] = QC_ANY;
}

void qc_bound(struct qc_problem *p, const qn_numerics *parts, int n_parts)
{
  struct qc_numerics k = {parts, n_parts, p->random};
  for (uint32_t i = 0; i < p->view->n_ops; i++) {
    struct qc_node *n = &p->node[i];
    for (int o = 0; o < n->n_out; o++) {
      n->out[o]->exact = n->out[o]->once = true;
      if (n->out[o]->e)
        memset(n->out[o]->e, 0, (size_t)n->out[o]->n * sizeof(double));
    }
    if (!n->out[0]->n)
      continue;
    if (!n->out[0]->y && n->op->family != QN_FAMILY_POOLING && n->op->family != QN_FAMILY_TRAINING)
      continue;                         /* integers and booleans: exact */
    switch (n->op->family) {
    case QN_FAMILY_CONTRACTION: qc_bound_contraction(p, n, &k); break;
    case QN_FAMILY_POINTWISE:   qc_bound_pointwise(p, n); break;
    case QN_FAMILY_REDUCTION:   qc_bound_reduction(p, n, &k); break;
    case QN_FAMILY_SOFTMAX:     qc_bound_softmax(p, n, &k); break;
    case QN_FAMILY_POOLING:     qc_bound_pooling(p, n, &k); break;
    case QN_FAMILY_RESAMPLING:  qc_bound_resampling(n, &k); break;
    case QN_FAMILY_SELECTION:   qc_bound_selection(p, n, &k); break;
    case QN_FAMILY_SCAN:        qc_bound_counted_sum(p, n, &k); break;
    case QN_FAMILY_TRANSFORM:   qc_bound_transform(p, n); break;
    case QN_FAMILY_NORMALIZATION: qc_bound_normalization(p, n, &k); break;
    case QN_FAMILY_SAMPLING:    qc_bound_sampling(n, &k); break;
    case QN_FAMILY_LOCAL:       qc_bound_lrn(n, &k); break;
    case QN_FAMILY_RANDOM:      qc_bound_random(n); break;
    case QN_FAMILY_LOSS:        qc_bound_loss(n, &k); break;
    case QN_FAMILY_TRAINING:    qc_bound_training(n, &k); break;
    case QN_FAMILY_QUANTIZATION: bound_quantization(n); break;
    }
    for (int o = 0; o < n->n_out; o++)
      round_output(n->out[o], n->op->family == QN_FAMILY_POINTWISE ? n->compute : QN_DTYPE_NONE);
  }
}

/* A transform moves errors with the values. */
void qc_bound_transform(struct qc_problem *p, struct qc_node *n)
{
  (void)p;
  if (qc_inputs_exact(n))
    return;
  double *in[64] = {0};
  for (int i = 0; i < n->n_in; i++)
    in[i] = n->in[i]->e;
  void *out[1] = {n->out[0]->e};
  qc_twin_run(n->twin, (const void *const *)in, out);
}
