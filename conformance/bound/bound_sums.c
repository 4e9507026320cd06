/* bound_sums.c -- common to the bounds of all families: the error of a sum by its declared numerics, the op on absolute
 * values, the effect of inexact inputs on it. */
#include <math.h>
#include <stdlib.h>
#include "conform.h"

enum { BLOCK = 4096 };

/* A long sum is made in blocks of at most BLOCK terms, or as a tree, or in two levels. */
double qc_roundings(double n)
{
  return fmin(n, n / BLOCK + BLOCK);
}

/* c(n) for one declaration: a sum of n terms lies within c(n) S of the exact one, S the sum of absolute values.
 * The square-root law (Higham, Mary 2019; lambda 8) needs rounding to nearest and independent terms. Truncating tensor
 * cores: 1.25 r covers 2 lost bits per 4 to 16 products. The others use their own unit roundoff. */
static double declared_error(const qn_numerics *d, uint32_t compute, double n, bool random)
{
  double u = qc_unit(compute), r = qc_roundings(n), tc = (1.25 * r + 32) * 0x1p-24, store = d->store ? qc_unit(d->store) : 0, c;
  switch (d->accumulator) {
  case QN_ACC_F32_TC:  c = tc; break;
  case QN_ACC_TF32:    c = 0x1p-9 + tc; break;
  case QN_ACC_3XTF32:  c = 0x1p-20 + (3.75 * r + 32) * 0x1p-24; break;
  case QN_ACC_BF16X3:  c = 0x1p-22 + (7.5 * r + 32) * 0x1p-24; break;
  case QN_ACC_F16:     c = n * 0x1p-11; break;
  case QN_ACC_F8_FAST:
    c = d->promote ? 1.1 * fmin(n, d->promote) * 0x1p-13 + (qc_roundings(n / d->promote) + 32) * 0x1p-24 : 1.1 * n * 0x1p-13;
    break;
  case QN_ACC_DOUBLE:  c = n * 0x1p-53; break;
  default:             c = u * (random ? fmin(r, 8 * sqrt(r) + 16) : r);
  }
  return c + 2 * store;                 /* each term is stored at most once, each stored sum once more */
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
  double power = 1;                     /* 2^most */
  for (int64_t i = 0; i < n && most < QC_MANY_BITS; i++) {
    if (!isfinite(v[i]))
      return QC_MANY_BITS;
    for (; v[i] * power != floor(v[i] * power) && most < QC_MANY_BITS; power *= 2)
      most++;
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
  if (n->n_out > 1)                     /* indices, not needed here */
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

void qc_bound_moved(struct qc_node *n, const struct qc_numerics *k)
{
  (void)k;
  if (qc_inputs_exact(n))
    return;
  double *in[64] = {0};
  for (int i = 0; i < n->n_in; i++)
    in[i] = n->in[i]->e;
  void *out[1] = {n->out[0]->e};
  qc_twin_run(n->twin, (const void *const *)in, out);
}
