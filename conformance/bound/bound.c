/* bound.c -- the error bound of a result: |got - y| <= e, element by element, for a graph op by op; ops.def names
 * the function of each.
 *
 * e of a value is its own op's error, plus the effect of its inputs' errors, plus the rounding to its dtype; a fused engine
 * that skips the rounding of an intermediate stays within that. Exact results (integer fills whose sums fit the accumulator,
 * copies, comparisons) have e = 0 and are compared bit for bit. If nothing can be said, e is QC_ANY. */
#include <string.h>
#include "conform.h"

/* Adds the rounding of a computed value to its own dtype. counted: the dtype whose last rounding e includes already. */
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

/* Quantization is defined bit by bit, hence exact; from an inexact input the result may be a whole step off. */
void qc_bound_quantization(struct qc_node *n, const struct qc_numerics *k)
{
  (void)k;
  for (int o = 0; o < n->n_out && !qc_inputs_exact(n); o++)
    for (int64_t i = 0; n->out[o]->e && i < n->out[o]->n; i++)
      n->out[o]->e[i] = QC_ANY;
}

/* If the magnitudes of a sum's terms add up beyond the computing type's range, one order of summation overflows and another does
 * not: Inf, NaN and the number are all right. A mean does not overflow on the way: its terms may be divided first. */
static void bound_overflow(struct qc_node *n)
{
  const bool mean = n->op->family == QN_FAMILY_REDUCTION || n->op->family == QN_FAMILY_POOLING;
  for (int64_t i = 0; n->s && n->out[0]->e && i < n->out[0]->n; i++)
    if (qc_overflows(n->compute, mean ? n->s[i] : n->s[i] * n->divisor))
      n->out[0]->e[i] = QC_ANY;
}

void qc_bound(struct qc_problem *p, const qn_numerics *parts, int n_parts)
{
  struct qc_numerics k = {parts, n_parts, p->random, p->special};
  if (n_parts == p->n_bounded && !memcmp(parts, p->bounded, (size_t)n_parts * sizeof *parts))
    return;
  p->n_bounded = n_parts;
  memcpy(p->bounded, parts, (size_t)n_parts * sizeof *parts);
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
    qc_bound_op(n, &k);
    bound_overflow(n);
    for (int o = 0; o < n->n_out; o++)
      round_output(n->out[o], n->op->family == QN_FAMILY_POINTWISE ? n->compute : QN_DTYPE_NONE);
  }
}
