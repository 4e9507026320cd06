/* bound_lrn.c -- local response and divisive normalization. u: unit roundoff of the computing type; c(n): a sum of n terms
 * (bound_sums.c); errors e of inputs are propagated.
 *
 *   d     x - m, in each tap: e_d = e_x + e_m + u|d|; without means d = x
 *   b     e_b = alpha/n ((c + 4u) sum d^2 + sum (2|d| e_d + e_d^2)) + 2u k + u b
 *   f     b^-beta, with relative error (1 - e_b/b)^-beta - 1 + (4 + 8 beta (1 + |log2 b|)) u, for an exponential of a rounded logarithm
 *   y     f e_x + |x| e_f + 2u |y|
 *   dx    g = dy f, r = g x/b, h = 2 alpha beta/n: e_g + h (sum (e_r |d| + |r| e_d) + c sum|r d|) + 5u h sum|r d| + 2u |g|
 *   dm    h r sum d: h (e_r |sum d| + |r| (sum e_d + c sum|d|)) + 5u h |r sum d|
 *
 * An underflowing product or power adds an error of t or 4t, t half the least subnormal, times its other factors. If a power may be 0
 * in the computing type and meets an infinite dy, if a square, a power or a product overflows it, or if b may be 0,
 * nothing is known of r, nor of sums over it. */
#include <math.h>
#include <stdlib.h>
#include "conform.h"

struct local {
  const struct qc_value *x, *means;     /* means NULL: 0 */
  uint32_t compute;
  double alpha, beta, k, u, tiny;       /* alpha/n; half the least subnormal */
  int64_t before[QN_MAX_RANK], after[QN_MAX_RANK];
};

struct number { double y, e; };

/* The positions of the window at position i, or those whose windows hold it; returns their number. */
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

/* x at position i less the mean at position m. */
static struct number distance(const struct local *s, int64_t i, int64_t m)
{
  struct number d = {s->x->y[i], s->x->e[i]};
  if (s->means) {
    d.y -= s->means->y[m];
    d.e += s->means->e[m] + s->u * fabs(d.y);
  }
  return d;
}

/* Relative error of b^-power; infinite if b may be 0. */
static double power_error(const struct local *s, struct number b, double power)
{
  if (isinf(b.y) || power == 0)
    return 0;
  return b.e < b.y / 2 ? pow(1 - b.e / b.y, -power) - 1 + (4 + 8 * power * (1 + fabs(log2(b.y)))) * s->u : INFINITY;
}

/* Results for the window at position i. */
struct middle {
  struct number b, f, distances;        /* f: b^-beta; distances: sum d */
  bool unknown;                         /* b may be 0, or is not finite in the computing type */
};

static struct middle middle_of(const struct local *s, const struct qc_numerics *k, int64_t i, int64_t *place)
{
  int64_t terms = window(s, i, false, place);
  double c = qc_sum_error(k, s->compute, (double)terms), squares = 0, spread = 0, magnitudes = 0, off_by = 0;
  struct middle m = {.distances = {0, 0}};
  for (int64_t t = 0; t < terms; t++) {
    struct number d = distance(s, place[t], i);
    squares += d.y * d.y;
    spread += 2 * fabs(d.y) * d.e + d.e * d.e;
    m.distances.y += d.y;
    magnitudes += fabs(d.y);
    off_by += d.e;
  }
  m.b.y = s->k + s->alpha * squares;
  m.b.e = s->alpha * ((c + 4 * s->u) * squares + spread + (double)terms * s->tiny) + 2 * s->u * s->k + s->u * m.b.y;
  m.f.y = pow(m.b.y, -s->beta);
  m.f.e = power_error(s, m.b, s->beta) * m.f.y + 4 * s->tiny;
  m.distances.e = off_by + c * magnitudes;
  m.unknown = qc_overflows(s->compute, squares) || qc_overflows(s->compute, m.b.y) || qc_overflows(s->compute, m.f.y) || isinf(m.f.e);
  return m;
}

/* For dy at a position: dy f is not finite in the computing type, or f may be 0, which gives NaN times an infinity. */
static bool unknown_share(const struct local *s, const struct middle *m, double dy, double x)
{
  double g = dy * m->f.y;
  bool vanishes = isinf(dy) && m->f.y > 0 && m->f.y - m->f.e < qc_least_normal(s->compute);
  return m->unknown || vanishes || qc_overflows(s->compute, g) || qc_overflows(s->compute, g * x) ||
      qc_overflows(s->compute, g * x / m->b.y);
}

static void set(struct qc_value *v, int64_t i, double e, bool unknown)
{
  v->e[i] = unknown || (isfinite(v->y[i]) && !isfinite(e)) ? QC_ANY : isfinite(e) ? e : 0;
}

static void forward(const struct local *s, struct qc_value *y, const struct qc_numerics *k, int64_t *place)
{
  for (int64_t i = 0; i < y->n; i++) {
    struct middle m = middle_of(s, k, i, place);
    double v = fabs(s->x->y[i]), e = s->x->e[i];
    set(y, i, m.f.y * e + m.f.e * (v + e) + 2 * s->u * v * m.f.y + s->tiny, m.unknown);
  }
}

static void backward(const struct local *s, const struct qc_value *dy, struct qc_value *dx, struct qc_value *dmeans,
                     const struct qc_numerics *k, int64_t *place)
{
  const struct qc_value *x = s->x;
  size_t n = (size_t)x->n + 1;
  struct number *g = qc_alloc(n * sizeof *g), *r = qc_alloc(n * sizeof *r);      /* magnitudes */
  bool *unknown = qc_alloc(n);
  double h = 2 * s->alpha * s->beta;
  for (int64_t i = 0; i < x->n; i++) {
    struct middle m = middle_of(s, k, i, place);
    double v = fabs(x->y[i]), w = fabs(dy->y[i]);
    g[i] = (struct number){w * m.f.y, m.f.y * dy->e[i] + m.f.e * (w + dy->e[i]) + s->u * w * m.f.y + s->tiny};
    if (!isinf(m.b.y)) {
      r[i].y = g[i].y * v / m.b.y;
      r[i].e = (g[i].e * (v + x->e[i]) + g[i].y * x->e[i] + s->tiny) / m.b.y + (power_error(s, m.b, 1) + 3 * s->u) * r[i].y + s->tiny;
    }
    unknown[i] = unknown_share(s, &m, w, v);
    struct number d = {fabs(m.distances.y), m.distances.e};
    bool sign_unknown = isinf(r[i].y) && d.y <= d.e && d.e > 0;
    if (dmeans)
      set(dmeans, i, h * (r[i].e * (d.y + d.e) + r[i].y * d.e + 5 * s->u * r[i].y * d.y) + (2 + h) * s->tiny,
          unknown[i] || sign_unknown || qc_overflows(s->compute, r[i].y * d.y));
  }
  for (int64_t i = 0; i < x->n; i++) {
    int64_t terms = window(s, i, true, place);
    double c = qc_sum_error(k, s->compute, (double)terms), v = fabs(x->y[i]), sum = 0, off = 0;
    bool any = unknown[i];
    for (int64_t t = 0; t < terms; t++) {
      struct number d = distance(s, i, place[t]), of = r[place[t]];
      sum += of.y * fabs(d.y);
      off += (of.e + c * of.y) * (fabs(d.y) + d.e) + of.y * d.e + (s->means ? s->tiny : 0);
      any |= unknown[place[t]];
    }
    set(dx, i, g[i].e + h * off + 5 * s->u * h * sum + 2 * s->u * g[i].y + (3 + h * v) * s->tiny, any || qc_overflows(s->compute, sum));
  }
  free(g);
  free(r);
  free(unknown);
}

void qc_bound_lrn(struct qc_node *n, const struct qc_numerics *k)
{
  const qn_local_norm *a = n->attr;
  const struct qc_value *x = qc_role(n, "x"), *dy = qc_role(n, "dy");
  struct local s = {.x = x, .means = qc_role(n, "means"), .compute = n->compute, .alpha = a->alpha, .beta = a->beta, .k = a->k,
                    .u = qc_unit(n->compute), .tiny = qc_half_ulp(n->compute, 0)};
  int64_t *place = qc_alloc((size_t)x->n * sizeof *place + 8);
  for (int d = 0; d < x->q.rank; d++)
    if (a->region == QN_LOCAL_WITHIN ? d >= 2 : d == 1) {
      s.before[d] = (a->size - 1) / 2;
      s.after[d] = a->size / 2;
      s.alpha /= (double)a->size;
    }
  if (dy)
    backward(&s, dy, n->out[0], n->n_out > 1 ? n->out[1] : NULL, k, place);
  else
    forward(&s, n->out[0], k, place);
  free(place);
}
