/* bound.c -- the error bound of a result: |got - y| <= e, element by element, for a graph op by op; ops.def names
 * the function of each.
 *
 * e of a value is its own op's error, plus the effect of its inputs' errors, plus the rounding to its dtype; a fused engine
 * that skips the rounding of an intermediate stays within that. Exact results (integer fills whose sums fit the accumulator,
 * copies, comparisons) have e = 0 and are compared bit for bit. If nothing can be said, e is QC_ANY. */
#include <stdlib.h>
#include <string.h>
#include "conform.h"

/* The bounds for some declared numerics, of all values of a problem under its current fill. Engines that declare the same take turns with
 * others: each is computed once. */
struct qc_bounds {
  struct qc_bounds *next;
  qn_numerics part[QC_MAX_OPS];
  int n_parts;
  struct of_value { double *e; bool exact, once; } *of;        /* while other bounds are in force */
};

void qc_bounds_free(struct qc_problem *p)
{
  for (struct qc_bounds *b = p->bounds, *next; b; b = next) {
    next = b->next;
    for (uint32_t i = 0; i < p->view->n_values; i++)
      free(b->of[i].e);
    free(b->of);
    free(b);
  }
  p->bounds = p->bound = NULL;
}

/* The values' bounds and those of b change places. */
static void swap(struct qc_problem *p, struct qc_bounds *b)
{
  for (uint32_t i = 0; i < p->view->n_values && b; i++) {
    struct qc_value *v = &p->value[i];
    const struct of_value kept = {v->e, v->exact, v->once};
    v->e = b->of[i].e;
    v->exact = b->of[i].exact;
    v->once = b->of[i].once;
    b->of[i] = kept;
  }
}

/* Puts the bounds for these numerics in force; false: they are new, and those in force are to be computed. */
static bool turn_to(struct qc_problem *p, const qn_numerics *parts, int n_parts)
{
  struct qc_bounds *b = p->bounds;
  while (b && (n_parts != b->n_parts || memcmp(parts, b->part, (size_t)n_parts * sizeof *parts)))
    b = b->next;
  const bool known = b;
  if (!known) {
    b = qc_alloc(sizeof *b);
    b->of = qc_alloc(p->view->n_values * sizeof *b->of);
    b->n_parts = n_parts;
    memcpy(b->part, parts, (size_t)n_parts * sizeof *parts);
    b->next = p->bounds;
    p->bounds = b;
    for (uint32_t i = 0; i < p->view->n_values && p->bound; i++) {      /* the values' own are the first's */
      struct qc_value *v = &p->value[i];
      const size_t bytes = (size_t)v->n * sizeof *v->e;
      b->of[i] = (struct of_value){v->e ? memcpy(qc_alloc(bytes + 8), v->e, bytes) : NULL, v->exact, v->once};
    }
  }
  if (b != p->bound && p->bound) {
    swap(p, b);                         /* b's come into force; b holds what was in force */
    struct of_value *of = p->bound->of;
    p->bound->of = b->of;
    b->of = of;
  }
  p->bound = b;
  return known;
}

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
  if (turn_to(p, parts, n_parts))
    return;
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
