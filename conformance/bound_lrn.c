/* bound_lrn.c -- local response and divisive normalization. u: unit of the computation; c(n): a sum of n terms (bound.c); e of inputs is
 * carried along.
 *
 *   d     x - m, in each tap: e_d = e_x + e_m + u|d|; x, without means
 *   b     e_b = alpha/n ((c + 4u) sum d^2 + sum (2|d| e_d + e_d^2)) + 2u k + u b
 *   f     b^-beta: (1 - e_b/b)^-beta - 1 of it, and (4 + 8 beta (1 + |log2 b|)) u of it, for an exponential of a rounded logarithm
 *   y     f e_x + |x| e_f + 2u |y|
 *   dx    g = dy f, r = g x/b, h = 2 alpha beta/n: e_g + h (sum (e_r |d| + |r| e_d) + c sum|r d|) + 5u h sum|r d| + 2u |g|
 *   dm    h r sum d: h (e_r |sum d| + |r| (sum e_d + c sum|d|)) + 5u h |r sum d| */
#include <math.h>
#include <stdlib.h>
#include "conform.h"

struct local {
  const struct qc_value *x, *means;     /* means NULL: 0 */
  double alpha, beta, k, u, tiny;       /* alpha/n */
  int64_t before[QN_MAX_RANK], after[QN_MAX_RANK];
};

struct number { double y, e; };

/* The places of the window around place i, or those whose windows hold it; how many they are. */
static int64_t window(const struct local *s, int64_t i, bool mirrored, int64_t *place)
{
  const qn_value *x = &s->x->q;
  int64_t low[QN_MAX_RANK], high[QN_MAX_RANK], j[QN_MAX_RANK], n = 0;
  for (int d = x->rank - 1; d >= 0; i /= x->dim[d], d--) {
    int64_t at = i % x->dim[d], back = mirrored ? s->after[d] : s->before[d], ahead = mirrored ? s->before[d] : s->after[d];
    j[d] = low[d] = at > back ? at - back : 0;
    high[d] = x->dim[d] - 1 - at > ahead ? at + ahead : x->dim[d] - 1;
  }
  for (int d = 0; d >= 0; n++) {
    place[n] = 0;
    for (d = 0; d < x->rank; d++)
      place[n] = place[n] * x->dim[d] + j[d];
    for (d = x->rank - 1; d >= 0 && ++j[d] > high[d]; d--)
      j[d] = low[d];
  }
  return n;
}

/* x at place i less the mean at place m. */
static struct number distance(const struct local *s, int64_t i, int64_t m)
{
  struct number d = {s->x->y[i], s->x->e[i]};
  if (s->means) {
    d.y -= s->means->y[m];
    d.e += s->means->e[m] + s->u * fabs(d.y);
  }
  return d;
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
  struct qc_value *out = n->out[0], *dmeans = n->n_out > 1 ? n->out[1] : NULL;
  struct local s = {.x = x, .means = qc_role(n, "means"), .alpha = a->alpha, .beta = a->beta, .k = a->k, .u = qc_unit(n->compute), .tiny = qc_half_ulp(n->compute, 0)};
  size_t bytes = (size_t)x->n * sizeof(double) + 8;
  double *r = qc_alloc(bytes), *er = qc_alloc(bytes), *g = qc_alloc(bytes), *eg = qc_alloc(bytes);
  int64_t *place = qc_alloc(bytes);
  for (int d = 0; d < x->q.rank; d++)
    if (a->region == QN_LOCAL_WITHIN ? d >= 2 : d == 1) {
      s.before[d] = (a->size - 1) / 2;
      s.after[d] = a->size / 2;
      s.alpha /= (double)a->size;
    }
  double h = 2 * s.alpha * s.beta;
  for (int64_t i = 0; i < x->n; i++) {
    int64_t terms = window(&s, i, false, place);
    double c = qc_sum_error(k, n->compute, (double)terms), v = fabs(x->y[i]), squares = 0, spread = 0, distances = 0, magnitudes = 0, off_by = 0;
    for (int64_t t = 0; t < terms; t++) {
      struct number d = distance(&s, place[t], i);
      squares += d.y * d.y;
      spread += 2 * fabs(d.y) * d.e + d.e * d.e;
      distances += d.y;
      magnitudes += fabs(d.y);
      off_by += d.e;
    }
    struct number b = {s.k + s.alpha * squares, 0};
    b.e = s.alpha * ((c + 4 * s.u) * squares + spread + (double)terms * s.tiny) + 2 * s.u * s.k + s.u * b.y;
    double f = pow(b.y, -s.beta), off = power_error(&s, b, s.beta);
    if (!dy) {
      out->e[i] = f * x->e[i] + off * f * (v + x->e[i]) + 2 * s.u * v * f + (2 + v) * s.tiny;
    } else {
      g[i] = fabs(dy->y[i]) * f;
      eg[i] = f * dy->e[i] + off * f * (fabs(dy->y[i]) + dy->e[i]) + s.u * g[i] + (1 + fabs(dy->y[i])) * s.tiny;
      r[i] = isinf(b.y) ? 0 : g[i] * v / b.y;
      er[i] = isinf(b.y) ? 0 : (eg[i] * (v + x->e[i]) + g[i] * x->e[i]) / b.y + (power_error(&s, b, 1) + 3 * s.u) * r[i] + s.tiny;
      if (s.means && !isinf(b.y))       /* g x may underflow too */
        er[i] += s.tiny / b.y;
      if (dmeans) {
        struct number d = {fabs(distances), off_by + c * magnitudes};
        dmeans->e[i] = h * (er[i] * (d.y + d.e) + r[i] * d.e + 5 * s.u * r[i] * d.y) + (2 + h) * s.tiny;
      }
    }
  }
  for (int64_t i = 0; dy && i < x->n; i++) {
    int64_t terms = window(&s, i, true, place);
    double c = qc_sum_error(k, n->compute, (double)terms), v = fabs(x->y[i]), sum = 0, off = 0;
    for (int64_t t = 0; t < terms; t++) {
      struct number d = distance(&s, i, place[t]);
      sum += r[place[t]] * fabs(d.y);
      off += (er[place[t]] + c * r[place[t]]) * (fabs(d.y) + d.e) + r[place[t]] * d.e + (s.means ? s.tiny : 0);
    }
    out->e[i] = eg[i] + h * off + 5 * s.u * h * sum + 2 * s.u * g[i] + (3 + h * v) * s.tiny;
  }
  for (int o = 0; o < n->n_out; o++)    /* where b may be 0 nothing is known; where it is infinite, nothing is off */
    for (int64_t i = 0; i < x->n; i++)
      if (isnan(n->out[o]->e[i]) || isinf(n->out[o]->e[i]))
        n->out[o]->e[i] = isinf(n->out[o]->e[i]) ? QC_ANY : 0;
  free(place);
  free(r);
  free(er);
  free(g);
  free(eg);
}
