/* bound_contraction.c -- matmul and the convolutions: y = alpha sum a b + beta c + bias.
 *
 *   S = the same on absolute values,  n = terms in a sum
 *   e = c(n) S + 4 u S if alpha, beta or bias take part (their own roundings) + the effect of inexact inputs
 * Exact where every term is a multiple of one power of two and S fits the accumulator's bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

/* Number of terms per output element, padding included. */
static double terms(const struct qc_node *n)
{
  const qn_value *in0 = &n->in[0]->q, *in1 = &n->in[1]->q;
  double taps = 1, positions = (double)in0->dim[0];
  switch (n->op->kind) {
  case QN_OP_MATMUL:
    return (double)in0->dim[in0->rank - 1];
  case QN_OP_CONV_FORWARD:              /* w: K, C/groups, taps */
    for (int k = 1; k < in1->rank; k++)
      taps *= (double)in1->dim[k];
    return taps;
  case QN_OP_CONV_BACKWARD_DATA:        /* dx by dy, w: K/groups and taps */
    for (int k = 2; k < in1->rank; k++)
      taps *= (double)in1->dim[k];
    return taps * (double)in1->dim[0] / (double)qc_attr_int(n->op, n->attr, "groups", 0, 0, 1);
  case QN_OP_CONV_BACKWARD_FILTER:      /* dw by x, dy: N and positions */
    for (int k = 2; k < in1->rank; k++)
      positions *= (double)in1->dim[k];
    return positions;
  }
  return INFINITY;
}

/* Bits that the accumulator keeps, counted from the largest sum's first. */
static int accumulator_bits(const struct qc_numerics *k, uint32_t compute)
{
  int bits = compute == QN_F64 ? 53 : 24;
  for (int i = 0; i < k->n; i++) {
    const qn_numerics *d = &k->part[i];
    if (d->accumulator == QN_ACC_F16)
      bits = bits < 11 ? bits : 11;
    if (d->accumulator == QN_ACC_F8_FAST)
      bits = bits < 13 ? bits : 13;
    if (d->store && qc_is_float(d->store)) {
      int kept = (int)-log2(qc_unit(d->store));
      bits = bits < kept ? bits : kept;
    }
    if (d->method != QN_METHOD_DIRECT)
      bits = d->method == QN_METHOD_WINOGRAD && d->tile == 2 ? bits - 8 : 0;    /* F(2,3): dyadic constants, growth < 2^8 */
  }
  return bits;
}

static int fraction_bits(const struct qc_node *n, const char *role)
{
  const struct qc_value *v = qc_role(n, role);
  return v && v->y ? qc_fraction_bits(v->y, v->n) : 0;
}

static bool fits_exactly(const struct qc_node *n, const struct qc_numerics *k)
{
  if (!qc_inputs_exact(n))
    return false;
  int product = qc_fraction_bits(n->in[0]->y, n->in[0]->n) + qc_fraction_bits(n->in[1]->y, n->in[1]->n);
  product += fraction_bits(n, "alpha");
  int prior = fraction_bits(n, "c") + fraction_bits(n, "beta"), bias = fraction_bits(n, "bias");
  int most = product > prior ? product : prior;
  most = most > bias ? most : bias;
  if (most >= QC_MANY_BITS)
    return false;
  double limit = ldexp(1, accumulator_bits(k, n->compute) - most);
  for (int64_t i = 0; i < n->out[0]->n; i++)
    if (!(n->s[i] <= limit))
      return false;
  return true;
}

/* FFT has a normwise bound: u (21 log2 N + 24) sum_c ||x_c|| ||w_c|| <= that factor times sqrt(sum x^2 sum w^2). An Inf or NaN
 * must affect its own windows only: it is left out of the norms. */
static void add_fft(struct qc_node *n)
{
  double norm[2] = {0, 0}, size = 1;
  for (int i = 0; i < 2; i++)
    for (int64_t k = 0; k < n->in[i]->n; k++)
      if (isfinite(n->in[i]->y[k]))
        norm[i] += n->in[i]->y[k] * n->in[i]->y[k];
  for (int k = 2; k < n->in[0]->q.rank; k++)
    size *= 2 * (double)(n->in[0]->q.dim[k] + n->in[1]->q.dim[k]);
  for (int64_t i = 0; i < n->out[0]->n; i++)
    n->out[0]->e[i] += 0x1p-24 * (21 * log2(size) + 24) * sqrt(norm[0] * norm[1]);
}

/* The products at a point sum over channels only, or (gradient by the filter) over tiles of dy. */
static void add_winograd(struct qc_node *n, const struct qc_numerics *k, const qn_numerics *d)
{
  double *s = qc_winograd_sum(n, d->tile, d->filter), sums = n->n_terms / (d->filter * d->filter);
  if (n->op->kind == QN_OP_CONV_BACKWARD_FILTER) {
    const qn_value *dy = &n->in[1]->q;
    sums = (double)dy->dim[0];
    for (int i = 2; i < dy->rank; i++)
      sums *= ceil((double)dy->dim[i] / d->tile);
  }
  double c = qc_sum_error(k, n->compute, sums);
  for (int64_t i = 0; i < n->out[0]->n; i++)
    n->out[0]->e[i] += (c + 2.0 * 3 * (d->tile + d->filter) * 0x1p-24) * s[i];
  free(s);
}

/* Operands rounded to tf32, and the low parts of split ones, are spaced 2^-136 apart near zero: half of that is lost, times the
 * other operand. */
static void add_tf32_subnormals(struct qc_node *n)
{
  double largest = 0;
  for (int i = 0; i < 2; i++)
    for (int64_t k = 0; k < n->in[i]->n; k++)
      if (isfinite(n->in[i]->y[k]))
        largest = fmax(largest, fabs(n->in[i]->y[k]));
  for (int64_t i = 0; i < n->out[0]->n; i++)
    n->out[0]->e[i] += n->n_terms * largest * 0x1p-136;
}

/* A tap in the padding may be left out, or be 0 times the other operand (ops.h): if that is Inf or NaN, both the sum and NaN are right.
 * Of the non-finite terms, those inside are counted by the op itself, and all of them by channel. */
static void free_padding(struct qc_node *n)
{
  const struct qc_value *b = n->in[1], *y = n->out[0];
  const bool filter = n->op->kind == QN_OP_CONV_BACKWARD_FILTER, data = n->op->kind == QN_OP_CONV_BACKWARD_DATA;
  const int64_t *of = b->q.dim, channels = y->q.dim[!filter], groups = qc_attr_int(n->op, n->attr, "groups", 0, 0, 1);
  double *in[64] = {0}, *inside = qc_alloc((size_t)y->n * sizeof *inside + 8), *all = qc_alloc((size_t)channels * sizeof *all + 8);
  for (int i = 0; i < n->n_in; i++) {   /* ones; where not finite; and no bias */
    in[i] = qc_alloc((size_t)n->in[i]->n * sizeof **in + 8);
    for (int64_t k = 0; i < 2 && k < n->in[i]->n; k++)
      in[i][k] = i == 0 || !isfinite(b->y[k]);
  }
  for (int64_t k = 0, rest = b->n / (of[0] * of[1]); k < b->n; k++) {
    int64_t second = k / rest % of[1], first = k / rest / of[1];
    int64_t channel = filter ? second : data ? first / (of[0] / groups) * of[1] + second : first;
    all[channel] += in[1][k];
  }
  qc_twin_run(n->twin, (const void *const *)in, (void *[]){inside});
  for (int64_t i = 0; i < y->n; i++) {
    int64_t rest = y->n / y->q.dim[0] / (filter ? 1 : channels);
    if (inside[i] < all[i / rest % channels])
      y->e[i] = QC_ANY;
  }
  for (int i = 0; i < n->n_in; i++)
    free(in[i]);
  free(inside);
  free(all);
}

void qc_bound_contraction(struct qc_node *n, const struct qc_numerics *k)
{
  double *e = n->out[0]->e;
  if (!n->s) {
    n->s = qc_abs_run(n, false);
    for (int64_t i = 0; i < n->out[0]->n; i++)
      n->s[i] = fabs(n->s[i]);
    n->n_terms = terms(n);
    const struct qc_value *alpha = qc_role(n, "alpha");         /* sums are made before they are scaled */
    n->divisor = alpha && alpha->y[0] != 0 ? fmax(1, fabs(1 / alpha->y[0])) : 1;
  }
  if (fits_exactly(n, k))
    return;
  double c = qc_sum_error(k, n->compute, n->n_terms);
  bool epilogue = n->n_in > 2;
  if (epilogue)
    c += 4 * qc_unit(n->compute);
  for (int64_t i = 0; i < n->out[0]->n; i++)
    e[i] = c * n->s[i] + n->n_terms * qc_half_ulp(n->compute, 0);
  for (int i = 0; i < k->n; i++) {
    if (k->part[i].accumulator == QN_ACC_TF32 || k->part[i].accumulator == QN_ACC_3XTF32)
      add_tf32_subnormals(n);
    if (k->part[i].method == QN_METHOD_WINOGRAD && n->op->kind != QN_OP_MATMUL)
      add_winograd(n, k, &k->part[i]);
    if (k->part[i].method == QN_METHOD_FFT && n->op->kind != QN_OP_MATMUL)
      add_fft(n);
  }
  qc_propagate_abs(n);
  if (k->special && n->op->kind != QN_OP_MATMUL && n->in[1]->n)
    free_padding(n);
}
