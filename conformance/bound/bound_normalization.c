/* bound_normalization.c -- normalization. u: unit roundoff of the computing type; c(n): a sum of n terms (bound_sums.c); errors e of
 * inputs are propagated. Over a group of n, with d = x - mean, S = mean|x|:
 *
 *   mean     e_m = 2u |mean| + (c + 2u) D + mean e_x,  D = mean|d| + max|d|: summed about a value of the group, so that a constant
 *            group is off by the rounding of its mean alone; and half the least subnormal for each rounding
 *   var      e_v = (c + 4u)(var + S sd) + e_m^2 + mean(2|d| e_x + e_x^2)     two passes, Welford or a shift near the mean:
 *                  relative c sqrt(1 + mean^2/var) (Chan, Golub, LeVeque 1983); a difference of squares has c mean^2
 *   rstd     between 1/sqrt(t + e_v) and 1/sqrt(max(t - e_v, eps)), t = var + eps, and 4u of it
 *   y        |scale|(e_d (r + e_r) + |d| e_r) + 4u|d r scale| + 2u(|shift| + |y|),  e_d = e_m + e_x + 2u(|x| + |mean|),
 *            which also covers x (r scale) + (shift - mean r scale)
 *   backward h = d r, g = dy scale, G = mean|g|, B = mean|g h|:
 *            e_h = r (e_x + e_m + 2u(|x| + |mean|)) + |d| e_r + 3u|h|
 *            dx = r (g + G + |h| B) with (c + 4u) on the means;  dscale: sum |dy| e_h + (c + 4u) sum |dy h|
 *
 * Sums and squares of finite elements do not overflow on the way to a mean or a rstd that the type holds. If h (or g) may underflow to 0
 * and meets an infinity, the product is infinite or NaN: either is right. If a sum or a product of the gradient overflows the computing
 * type, nothing is known. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <quern/kit.h>
#include "conform.h"

struct norm {
  const struct qc_node *n;
  struct qc_value *part[15];            /* indexed as qn_norm_roles; NULL: absent */
  const qn_value  *x;
  double u, eps, momentum;
};

#define PART(s, name) ((s)->part[offsetof(qn_norm_roles, name)])

/* The packed element of v for an index of x; each dim of v is x's or 1. */
static int64_t broadcast(const struct qc_value *v, const int64_t *index)
{
  int64_t at = 0;
  for (int d = 0; d < v->q.rank; d++)
    at = at * v->q.dim[d] + (v->q.dim[d] == 1 ? 0 : index[d]);
  return at;
}

struct number { double y, e; };
static struct number look(const struct qc_value *v, const int64_t *index, double absent)
{
  if (!v)
    return (struct number){absent, 0};
  int64_t at = broadcast(v, index);
  return (struct number){v->y[at], v->e ? v->e[at] : 0};
}

/* Sets e; if a finite value has an unknown error, ANY. */
static void set(struct qc_value *v, const int64_t *index, double e)
{
  if (v)
    v->e[broadcast(v, index)] = isfinite(e) ? e : isfinite(v->y[broadcast(v, index)]) ? QC_ANY : INFINITY;
}

/* Not 0, but so small that it may become 0 in the computing type. */
static bool vanishes(const struct norm *s, double v) { return v > 0 && v < qc_least_normal(s->n->compute); }

/* ---- the elements of a group: those of x whose index equals `home` in the dims not in mask -------------------------- */

static int64_t count(const qn_value *x, uint64_t mask, bool reduced)
{
  int64_t n = 1;
  for (int d = 0; d < x->rank; d++)
    n *= (mask >> d & 1) == reduced ? x->dim[d] : 1;
  return n;
}

static void place(const qn_value *x, uint64_t mask, int64_t group, int64_t j, int64_t *index)
{
  for (int d = x->rank - 1; d >= 0; d--) {
    int64_t *i = mask >> d & 1 ? &j : &group;
    index[d] = *i % x->dim[d];
    *i /= x->dim[d];
  }
}

/* To the group's next element; after the last to the first. Divisions take long. */
static void next(const qn_value *x, uint64_t mask, int64_t *index)
{
  for (int d = x->rank - 1; d >= 0; d--) {
    if (!(mask >> d & 1))
      continue;
    if (++index[d] < x->dim[d])
      return;
    index[d] = 0;
  }
}

/* ---- forward ------------------------------------------------------------------------------------------------------- */

static void measured_statistics(const struct norm *s, uint64_t mask, int64_t group, double c, struct number *mean, struct number *var)
{
  int64_t n = count(s->x, mask, true), index[QN_MAX_RANK];
  bool centred = s->n->op->kind != QN_OP_RMS_NORM;
  double sum = 0, size = 0, inexact = 0, squares = 0, spread = 0, away = 0, farthest = 0, tiny = qc_half_ulp(s->n->compute, 0);
  place(s->x, mask, group, 0, index);
  for (int64_t j = 0; j < n; j++, next(s->x, mask, index)) {
    struct number x = look(PART(s, x), index, 0);
    sum += x.y;
    size += fabs(x.y);
    inexact += x.e;
  }
  mean->y = centred ? sum / (double)n : 0;
  place(s->x, mask, group, 0, index);
  for (int64_t j = 0; j < n; j++, next(s->x, mask, index)) {
    struct number x = look(PART(s, x), index, 0);
    double d = fabs(x.y - mean->y);
    squares += d * d;
    away += d / (double)n;
    farthest = fmax(farthest, d);
    spread += 2 * d * x.e + x.e * x.e;
  }
  mean->e = centred ? 2 * s->u * fabs(mean->y) + (c + 2 * s->u) * (away + farthest) + inexact / (double)n +
      qc_roundings((double)n) * tiny : 0;
  var->y = squares / (double)n;
  var->e = isinf(squares) ? INFINITY
      : (c + 4 * s->u) * (var->y + (centred ? size / (double)n * sqrt(var->y) : 0)) + mean->e * mean->e + spread / (double)n + tiny;
}

static void forward_group(const struct norm *s, uint64_t mask, int64_t group, const struct qc_numerics *k)
{
  int64_t n = count(s->x, mask, true), index[QN_MAX_RANK];
  struct number mean, var;
  double u = s->u;
  place(s->x, mask, group, 0, index);
  if (PART(s, var)) {
    mean = look(PART(s, mean), index, 0);
    var = look(PART(s, var), index, 0);
  } else {
    measured_statistics(s, mask, group, qc_sum_error(k, s->n->compute, (double)n), &mean, &var);
  }
  double t = var.y + s->eps, least = fmax(t - var.e, s->eps * (1 - 2 * u)), r = 1 / sqrt(t), high = 1 / sqrt(least);
  double er = fmax(high - r, r - 1 / sqrt(t + var.e)) + 4 * u * high, m = s->momentum, tiny = qc_half_ulp(s->n->compute, 0);
  er = isinf(var.e) ? INFINITY : er;
  struct number running = look(PART(s, running_mean), index, 0), running_var = look(PART(s, running_var), index, 0);
  double correction = n > 1 ? (double)n / (double)(n - 1) : 1;
  if (!PART(s, var))
    set(PART(s, mean), index, mean.e + u * fabs(mean.y));
  set(PART(s, rstd), index, er);
  set(PART(s, new_mean), index, m * mean.e + running.e + 3 * u * ((1 - m) * fabs(running.y) + m * fabs(mean.y)) + 3 * tiny);
  set(PART(s, new_var), index, m * correction * (var.e + 3 * u * var.y) + running_var.e +
                               3 * u * ((1 - m) * fabs(running_var.y) + m * correction * var.y) + 3 * tiny);
  place(s->x, mask, group, 0, index);
  for (int64_t j = 0; j < n; j++, next(s->x, mask, index)) {
    struct number x = look(PART(s, x), index, 0), scale = look(PART(s, scale), index, 1), shift = look(PART(s, shift), index, 0);
    double d = fabs(x.y - mean.y), ed = mean.e + x.e + 2 * u * (fabs(x.y) + fabs(mean.y)), y = fabs(look(PART(s, y), index, 0).y);
    double e = fabs(scale.y) * (ed * (r + er) + d * er + tiny) + scale.e * (d + ed) * (r + er) + 4 * u * d * r * fabs(scale.y);
    double folded = (fabs(x.y) + fabs(mean.y)) * r;     /* its terms, before they cancel */
    if ((isinf(scale.y) && vanishes(s, d * r)) || qc_overflows(s->n->compute, folded) ||
        qc_overflows(s->n->compute, folded * fabs(scale.y) + fabs(shift.y)))
      e = QC_ANY;
    else
      e += shift.e + 2 * u * (fabs(shift.y) + y) + tiny;
    set(PART(s, y), index, e);
  }
}

/* ---- backward ------------------------------------------------------------------------------------------------------ */

struct term { struct number g, h, r; double dy, edy; };       /* magnitudes, for one element */

static struct term term_at(const struct norm *s, const int64_t *index)
{
  struct number x = look(PART(s, x), index, 0), mean = look(PART(s, mean), index, 0), r = look(PART(s, rstd), index, 1);
  struct number dy = look(PART(s, dy), index, 0), scale = look(PART(s, scale), index, 1);
  double d = fabs(x.y - mean.y), ed = x.e + mean.e + 2 * s->u * (fabs(x.y) + fabs(mean.y)), size = fabs(r.y);
  struct term t = {.r = {size, r.e}, .dy = fabs(dy.y), .edy = dy.e};
  t.h.y = d * size;
  double tiny = qc_half_ulp(s->n->compute, 0);
  t.h.e = size * ed + (d + ed) * r.e + 3 * s->u * t.h.y + tiny;
  t.g.y = fabs(dy.y * scale.y);
  t.g.e = fabs(dy.y) * scale.e + (fabs(scale.y) + scale.e) * dy.e + s->u * t.g.y + tiny;
  return t;
}

static void backward_group(const struct norm *s, uint64_t mask, int64_t group, const struct qc_numerics *k)
{
  int64_t n = count(s->x, mask, true), index[QN_MAX_RANK];
  double c = qc_sum_error(k, s->n->compute, (double)n), u = s->u;
  struct number g = {0, 0}, b = {0, 0};
  bool any = false;
  place(s->x, mask, group, 0, index);
  for (int64_t j = 0; j < n; j++, next(s->x, mask, index)) {
    struct term t = term_at(s, index);
    g.y += t.g.y / (double)n;
    g.e += t.g.e / (double)n;
    b.y += t.g.y * t.h.y / (double)n;
    any |= (isinf(t.g.y) && vanishes(s, t.h.y)) || (isinf(t.h.y) && vanishes(s, t.g.y)) || qc_overflows(s->n->compute, t.h.y);
    b.e += (t.g.y * t.h.e + t.g.e * (t.h.y + t.h.e)) / (double)n;
  }
  any |= qc_overflows(s->n->compute, g.y * (double)n) || qc_overflows(s->n->compute, b.y * (double)n);
  g.e += (c + 2 * u) * g.y;
  b.e += (c + 4 * u) * b.y;
  if (s->n->op->kind == QN_OP_RMS_NORM_BACKWARD)
    g = (struct number){0, 0};
  place(s->x, mask, group, 0, index);
  for (int64_t j = 0; j < n; j++, next(s->x, mask, index)) {
    struct term t = term_at(s, index);
    double q = t.g.y + g.y + t.h.y * b.y;
    double eq = t.g.e + g.e + t.h.y * b.e + t.h.e * (b.y + b.e) + 3 * u * q;
    bool unknown = any || (isinf(b.y) && vanishes(s, t.h.y)) || qc_overflows(s->n->compute, q) || qc_overflows(s->n->compute, t.r.y * q);
    set(PART(s, dx), index, unknown ? QC_ANY : t.r.y * eq + t.r.e * (q + eq) + 3 * u * t.r.y * q + qc_half_ulp(s->n->compute, 0));
  }
}

static void by_parameter(const struct norm *s, struct qc_value *out, bool products, const struct qc_numerics *k)
{
  uint64_t mask = 0;
  for (int d = 0; out && d < out->q.rank; d++)
    mask |= (uint64_t)(out->q.dim[d] == 1) << d;
  int64_t groups = out ? count(s->x, mask, false) : 0, n = count(s->x, mask, true), index[QN_MAX_RANK];
  double c = qc_sum_error(k, s->n->compute, (double)n) + 4 * s->u;
  for (int64_t i = 0; i < groups; i++) {
    double e = 0, size = 0;
    bool any = false;
    if (n)
      place(s->x, mask, i, 0, index);
    for (int64_t j = 0; j < n; j++, next(s->x, mask, index)) {
      struct term t = term_at(s, index);
      any |= products && ((isinf(t.dy) && vanishes(s, t.h.y)) || qc_overflows(s->n->compute, t.h.y));
      size += products ? t.dy * t.h.y : t.dy;
      e += products ? t.dy * t.h.e + t.edy * (t.h.y + t.h.e) + c * t.dy * t.h.y : t.edy + c * t.dy;
    }
    place(s->x, mask, i, 0, index);
    set(out, index, any || qc_overflows(s->n->compute, size) ? QC_ANY : e + qc_half_ulp(s->n->compute, 0));
  }
}

void qc_bound_normalization(struct qc_node *n, const struct qc_numerics *k)
{
  const qn_norm *norm = n->attr;
  const qn_norm_roles roles = qn_norm_roles_of(n->op->kind);
  struct norm s = {.n = n, .u = qc_unit(n->compute), .eps = norm->eps, .momentum = norm->momentum};
  for (size_t i = 0; i < sizeof s.part / sizeof *s.part; i++) {
    int8_t role = ((const int8_t *)&roles)[i];
    s.part[i] = role < 0 ? NULL : qc_role(n, n->op->role[role].name);
  }
  s.x = &PART(&s, x)->q;
  for (int64_t i = 0; i < count(s.x, norm->mask, false); i++)
    (PART(&s, dy) ? backward_group : forward_group)(&s, norm->mask, i, k);
  by_parameter(&s, PART(&s, dscale), true, k);
  by_parameter(&s, PART(&s, dshift), false, k);
}
