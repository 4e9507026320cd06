/* bound_lrn.c -- local response normalization. u: unit of the computation; c(n): a sum of n terms (bound.c); e of inputs is carried along.
 *
 *   b     e_b = alpha/n ((c + 4u) sum x^2 + sum (2|x| e_x + e_x^2)) + 2u k + u b
 *   f     b^-beta: (1 - e_b/b)^-beta - 1 of it, and (4 + 8 beta (1 + |log2 b|)) u of it, for an exponential of a rounded logarithm
 *   y     f e_x + |x| e_f + 2u |y|
 *   dx    g = dy f, r = g x/b, h = 2 alpha beta/n: e_g + h (|x| (sum e_r + c sum|r|) + e_x sum|r|) + 5u h |x| sum|r| + 2u |g| */
#include <math.h>
#include <stdlib.h>
#include "conform.h"

struct local {
  const qn_value *x;
  double alpha, beta, k, u, tiny;       /* alpha/n */
  int64_t before[QN_MAX_RANK], after[QN_MAX_RANK];
};

struct number { double y, e; };

/* The sum of v[j] over the window around place i, or over the places whose windows hold it; n: how many they are. */
static double sum(const struct local *s, const double *v, int64_t i, bool mirrored, double *n)
{
  int64_t at[QN_MAX_RANK], low[QN_MAX_RANK], high[QN_MAX_RANK], j[QN_MAX_RANK];
  double total = 0;
  for (int d = s->x->rank - 1; d >= 0; i /= s->x->dim[d], d--) {
    at[d] = i % s->x->dim[d];
    int64_t back = mirrored ? s->after[d] : s->before[d], ahead = mirrored ? s->before[d] : s->after[d];
    j[d] = low[d] = at[d] > back ? at[d] - back : 0;
    high[d] = s->x->dim[d] - 1 - at[d] > ahead ? at[d] + ahead : s->x->dim[d] - 1;
  }
  *n = 0;
  for (int d = 0; d >= 0;) {
    int64_t place = 0;
    for (d = 0; d < s->x->rank; d++)
      place = place * s->x->dim[d] + j[d];
    total += v[place];
    ++*n;
    for (d = s->x->rank - 1; d >= 0 && ++j[d] > high[d]; d--)
      j[d] = low[d];
  }
  return total;
}

/* What b^-power is off by, in parts of it; infinite where b may be 0. */
static double power_error(const struct local *s, struct number b, double power)
{
  if (isinf(b.y) || power == 0)
    return 0;
  return b.e < b.y / 2 ? pow(1 - b.e / b.y, -power) - 1 + (4 + 8 * power * (1 + fabs(log2(b.y)))) * s->u : INFINITY;
}

void qc_bound_lrn(struct qc_node *n, const struct qc_numerics *k)
{
  const qn_local_norm *a = n->attr;
  const struct qc_value *x = qc_role(n, "x"), *dy = qc_role(n, "dy");
  struct qc_value *out = n->out[0];
  struct local s = {.x = &x->q, .alpha = a->alpha, .beta = a->beta, .k = a->k, .u = qc_unit(n->compute), .tiny = qc_half_ulp(n->compute, 0)};
  size_t bytes = (size_t)x->n * sizeof(double) + 8;
  double *square = qc_alloc(bytes), *spread = qc_alloc(bytes), *r = qc_alloc(bytes), *er = qc_alloc(bytes), *g = qc_alloc(bytes), *eg = qc_alloc(bytes);
  for (int d = 0; d < x->q.rank; d++)
    if (a->region == QN_LOCAL_WITHIN ? d >= 2 : d == 1) {
      s.before[d] = (a->size - 1) / 2;
      s.after[d] = a->size / 2;
      s.alpha /= (double)a->size;
    }
  for (int64_t i = 0; i < x->n; i++) {
    square[i] = x->y[i] * x->y[i];
    spread[i] = 2 * fabs(x->y[i]) * x->e[i] + x->e[i] * x->e[i];
  }
  for (int64_t i = 0; i < x->n; i++) {
    double terms, squares = sum(&s, square, i, false, &terms), c = qc_sum_error(k, n->compute, terms), v = fabs(x->y[i]);
    struct number b = {s.k + s.alpha * squares, 0};
    b.e = s.alpha * ((c + 4 * s.u) * squares + sum(&s, spread, i, false, &terms) + terms * s.tiny) + 2 * s.u * s.k + s.u * b.y;
    double f = pow(b.y, -s.beta), off = power_error(&s, b, s.beta);
    if (!dy) {
      out->e[i] = f * x->e[i] + off * f * (v + x->e[i]) + 2 * s.u * v * f + (2 + v) * s.tiny;
    } else {
      g[i] = fabs(dy->y[i]) * f;
      eg[i] = f * dy->e[i] + off * f * (fabs(dy->y[i]) + dy->e[i]) + s.u * g[i] + (1 + fabs(dy->y[i])) * s.tiny;
      r[i] = isinf(b.y) ? 0 : g[i] * v / b.y;
      er[i] = isinf(b.y) ? 0 : (eg[i] * (v + x->e[i]) + g[i] * x->e[i]) / b.y + (power_error(&s, b, 1) + 3 * s.u) * r[i] + s.tiny;
    }
  }
  for (int64_t i = 0; dy && i < x->n; i++) {
    double terms, t = sum(&s, r, i, true, &terms), et = sum(&s, er, i, true, &terms) + qc_sum_error(k, n->compute, terms) * t;
    double v = fabs(x->y[i]), h = 2 * s.alpha * s.beta;
    out->e[i] = eg[i] + h * (v * et + x->e[i] * (t + et)) + 5 * s.u * h * v * t + 2 * s.u * g[i] + (3 + h * v) * s.tiny;
  }
  for (int64_t i = 0; i < x->n; i++)    /* where b may be 0 nothing is known; where it is infinite, nothing is off */
    if (isnan(out->e[i]) || isinf(out->e[i]))
      out->e[i] = isinf(out->e[i]) ? QC_ANY : 0;
  free(square);
  free(spread);
  free(r);
  free(er);
  free(g);
  free(eg);
}
