/* bound_sampling.c -- grids from affine maps, images at the points of a grid, and the gradients. u: unit roundoff of the computing type;
 * errors e of inputs are propagated.
 *
 * A point's position in an extent of n has an error of q = 2u((|g| + 1) n + 1), with reflection 4u(|p| + n) more, and none if g has
 * few digits. Within q of a discontinuity it may be on either side: a tap's true weight w is computed between w - q and w + q + 2u,
 * for every element that a point within q may have as a tap (nearest: 0 or 1), and
 *   y, dx     e = (c(taps) + 3du) S+ + S+ - S,  S+ = sum |v| product(w + q + 2u), S the same with w;  nearest: exact, or S+ if unsure
 *   dgrid     the same with the slope in place of its dim's weight; 2 S+ more if the point may be in either of two cells, or on
 *             either side of an end
 * cubic: a weight is within 1.5 q + 8u, a slope within its factor times 5 q + 16u: the kernel and its derivative are continuous.
 * If an Inf or NaN has a weight that may be 0, nothing is known.
 *
 *   grid      c(d + 1) sum |theta xy| + 3u sum |theta|      dtheta     (c(n) + 4u) sum |dy xy| + 3u sum |dy| */
#include <math.h>
#include <stdlib.h>
#include "conform.h"

/* ---- affine maps -------------------------------------------------------------------------------------------------- */

static double coordinate(const qn_sampling *a, const qn_value *grid, int d, const int64_t *at, int j)
{
  if (j == d)
    return 1;
  double n = (double)grid->dim[d - j], i = (double)at[d - j];
  return a->align_corners ? (n > 1 ? (2 * i - (n - 1)) / (n - 1) : 0) : (2 * i + 1 - n) / n;
}

/* Adds the error of each term theta xy of grid, or dy xy of dtheta, to its output's. */
static void bound_affine(struct qc_node *n, const struct qc_numerics *k)
{
  bool back = n->op->forward != 0;
  const struct qc_value *in = n->in[0];
  struct qc_value *out = n->out[0];
  const qn_value *grid = back ? &in->q : &out->q;
  int d = grid->rank - 2;
  double u = qc_unit(n->compute), points = (double)(qc_elements(grid) / grid->dim[0] / d);
  double c = qc_sum_error(k, n->compute, back ? points : d + 1) + 4 * u;
  double *size = qc_alloc((size_t)out->n * sizeof *size + 8);    /* sums of magnitudes */
  for (int64_t i = 0; i < qc_elements(grid); i++) {
    int64_t at[QN_MAX_RANK], rest = i;
    for (int m = d + 1; m >= 0; rest /= grid->dim[m], m--)
      at[m] = rest % grid->dim[m];
    for (int j = 0; j <= d; j++) {
      int64_t theta = (at[0] * d + at[d + 1]) * (d + 1) + j, from = back ? i : theta, to = back ? theta : i;
      double xy = fabs(coordinate(n->attr, grid, d, at, j)), v = fabs(in->y[from]);
      if (out->e[to] == QC_ANY)
        continue;
      size[to] += isfinite(v) ? v * xy : 0;
      if ((isinf(v) && xy < 1e-6) || qc_overflows(n->compute, size[to]))
        out->e[to] = QC_ANY;
      else if (isfinite(v))
        out->e[to] += c * v * xy + 3 * u * v + in->e[from] + qc_half_ulp(n->compute, 0);
    }
  }
  free(size);
}

/* ---- points ------------------------------------------------------------------------------------------------------- */

enum { MOST = 6 };                      /* limit on possible taps in one dim; beyond it nothing is known */

/* One dim of a point. nominal: the twin's weights; high: their upper bounds; sure: the weight cannot be 0 in one and not in the other. */
struct dim {
  int     n;
  bool    nan, unknown, either;         /* either: the slope may be that of another cell, or 0 beyond an end */
  int64_t place[MOST];
  double  nominal[MOST], high[MOST], slope[MOST];
  double  scale, steep[MOST];           /* upper bound of the slope's factor; of a tap's slope */
  bool    sure[MOST], firm[MOST];       /* firm: so with the slope */
};

static double mirrored(double at, double low, double high, double *sign)
{
  if (high <= low)
    return *sign = 0, low;
  double span = high - low, from = fabs(at - low), turns = floor(from / span), rest = from - turns * span;
  *sign *= (at < low) != (fmod(turns, 2) != 0) ? -1 : 1;
  return fmod(turns, 2) != 0 ? high - rest : low + rest;
}

static double keys(double x, double *slope)
{
  double d = fabs(x), a = -0.75;
  *slope = (d <= 1 ? (3 * (a + 2) * d - 2 * (a + 3)) * d : d < 2 ? a * ((3 * d - 10) * d + 8) : 0) * (x < 0 ? -1 : 1);
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : d < 2 ? a * (((d - 5) * d + 8) * d - 4) : 0;
}

/* Where the padding finds an element beyond the ends; -1: nowhere. */
static int64_t padded(const qn_sampling *a, double at, double n)
{
  if (a->padding == QN_SAMPLE_ZEROS)
    return at >= 0 && at < n ? (int64_t)at : -1;
  if (a->padding == QN_SAMPLE_BORDER)
    return (int64_t)fmin(fmax(at, 0), n - 1);
  double low = a->align_corners ? 0 : -0.5, sign;
  return (int64_t)rint(mirrored(at, low, n - 1 - low, &sign));
}

static void cubic_taps(struct dim *t, const qn_sampling *a, double p, double q, double n, double u)
{
  if (a->padding == QN_SAMPLE_ZEROS && !(p > -3 && p < n + 2))
    return;
  if (a->padding == QN_SAMPLE_BORDER)
    p = fmin(fmax(p, -3), n + 2);
  for (double at = floor(p - q) - 1; at <= floor(p + q) + 2 && t->n < MOST; at++) {
    int64_t place = padded(a, at, n);
    double slope, w = keys(p - at, &slope);
    if (place < 0)
      continue;
    t->place[t->n] = place;
    t->nominal[t->n] = fabs(w);
    t->high[t->n] = q > 0 || (w != 0 && w != 1) ? fabs(w) + 1.5 * q + 8 * u : fabs(w);
    t->slope[t->n] = t->scale * slope;
    t->steep[t->n] = q > 0 || slope != 0 ? t->scale * (fabs(slope) + 5 * q + 16 * u) : 0;
    t->sure[t->n] = q == 0 || fabs(w) > 1.5 * q + 8 * u;
    t->firm[t->n] = q == 0 || fabs(slope) > 5 * q + 16 * u;
    t->n++;
  }
}

static struct dim dim_of(const qn_sampling *a, double g, double eg, int64_t n, double u)
{
  struct dim t = {0};
  double last = (double)(n - 1), scale = a->align_corners ? last / 2 : (double)n / 2;
  double p = a->align_corners ? (g + 1) / 2 * last : ((g + 1) * (double)n - 1) / 2;
  t.scale = scale;
  t.nan = isnan(g) || (isinf(g) && (a->padding == QN_SAMPLE_REFLECTION || a->mode == QN_RESAMPLE_CUBIC));
  if (t.nan)
    return t;
  bool few = eg == 0 && n < 4096 && fabs(g) <= 64 && g * 16 == floor(g * 16);
  double q = few || isinf(g) ? 0 : 2 * u * ((fabs(g) + 1) * (double)n + 1) + scale * eg;
  if (a->mode == QN_RESAMPLE_CUBIC) {
    if (a->padding == QN_SAMPLE_REFLECTION && fabs(g) > 2)      /* its period, exactly */
      return dim_of(a, g - 4 * rint(g / 4), eg, n, u);
    q += few || a->padding != QN_SAMPLE_REFLECTION ? 0 : 4 * u * (fabs(p) + (double)n);
    t.unknown = q > 0.5;
    if (!t.unknown)
      cubic_taps(&t, a, p, q, (double)n, u);
    return t;
  }
  if (a->padding == QN_SAMPLE_REFLECTION) {
    q += few ? 0 : 4 * u * (fabs(p) + (double)n);
    p = a->align_corners ? mirrored(p, 0, last, &scale) : mirrored(p, -0.5, last + 0.5, &scale);
  }
  if (q > 1) {
    t.unknown = true;
    return t;
  }
  if (a->padding != QN_SAMPLE_ZEROS) {
    t.either = q > 0 && (fabs(p) <= q || fabs(p - last) <= q);
    scale = p > 0 && p < last ? scale : 0;
    p = p > 0 ? p : 0;
    p = p < last ? p : last;
  }
  if (!(p > -1 - q && p < (double)n + q))
    return t;
  bool nearest = a->mode == QN_RESAMPLE_NEAREST;
  double from = nearest ? rint(p - q) : floor(p - q), to = nearest ? rint(p + q) : floor(p + q) + 1, own = nearest ? rint(p) : floor(p);
  t.either |= !nearest && to > from + 1;
  for (double at = from; at <= to && t.n < MOST; at++) {
    if (at < 0 || at > last)
      continue;
    double w = nearest ? from == to : fmax(0, 1 - fabs(p - at));      /* nearest, unsure: each may have 0 or 1 */
    t.place[t.n] = (int64_t)at;
    t.nominal[t.n] = w;
    t.high[t.n] = nearest ? 1 : w > 0 || q > 0 ? fmin(1, w + q + (w == 1 ? 0 : 2 * u)) : 0;
    t.slope[t.n] = nearest || at < own || at > own + 1 ? 0 : at == own ? -scale : scale;
    t.steep[t.n] = fabs(t.slope[t.n]);
    t.firm[t.n] = !t.either;
    t.sure[t.n] = nearest ? from == to : q == 0 || w > q;
    t.n++;
  }
  return t;
}

struct point { struct dim dim[3]; bool nan, unknown; int taps; };

/* Point i of the grid, in an image of these extents. */
static struct point point_of(const qn_sampling *a, const struct qc_value *grid, int64_t i, const qn_value *image, double u)
{
  struct point s = {.taps = 1};
  int d = grid->q.rank - 2;
  for (int k = 0; k < 3; k++) {
    s.dim[k] = (struct dim){.n = 1, .nominal = {1}, .high = {1}, .sure = {true}};
    if (k >= 3 - d)
      s.dim[k] = dim_of(a, grid->y[i * d + 2 - k], grid->e[i * d + 2 - k], image->dim[k - 3 + image->rank], u);
    s.nan |= s.dim[k].nan;
    s.unknown |= s.dim[k].unknown;
    s.taps *= s.dim[k].n;
  }
  s.unknown &= !s.nan;
  return s;
}

struct tap { int64_t place; double low, high; bool sure; };     /* low: nominal */

/* Tap k, with the slope of dim `by` in place of its weight if by >= 0. */
static struct tap tap_of(const struct point *s, const qn_value *image, int k, int by)
{
  struct tap t = {0, 1, 1, true};
  int at[3];
  for (int d = 2; d >= 0; k /= s->dim[d].n, d--)
    at[d] = k % s->dim[d].n;
  for (int d = 0; d < 3; d++) {
    const struct dim *m = &s->dim[d];
    t.place = t.place * (d >= 5 - image->rank ? image->dim[d - 3 + image->rank] : 1) + m->place[at[d]];
    t.low *= d == by ? fabs(m->slope[at[d]]) : m->nominal[at[d]];
    t.high *= d == by ? (m->either ? m->scale : m->steep[at[d]]) : m->high[at[d]];
    t.sure &= d == by ? m->firm[at[d]] : m->sure[at[d]];
  }
  return t;
}

/* ---- sums --------------------------------------------------------------------------------------------------------- */

/* S, S+ and the number of terms of one output; lost: the number of possible roundings by half a subnormal's ulp, each times the
 * factors applied later; unknown: an Inf or NaN has a weight that may be 0. */
struct sums { double s, high, e, n, lost; bool unknown; };

static void add(struct sums *to, const struct tap *t, double v, double e, double factor)
{
  if (t->high == 0)
    return;
  if (!isfinite(v)) {
    to->unknown |= !t->sure;
    return;
  }
  to->s += t->low * v;
  to->high += t->high * v;
  to->e += t->high * e;
  to->n += t->low > 0 || !t->sure;
  to->lost += t->low > 0 || !t->sure ? 3 * fmax(1, factor) : 0;
}

static double error_of(const struct sums *s, const struct qc_node *n, const struct qc_numerics *k, int d, bool nearest)
{
  double u = qc_unit(n->compute), tiny = qc_half_ulp(n->compute, 0);
  if (s->unknown || qc_overflows(n->compute, s->high))
    return QC_ANY;
  if (nearest)
    return s->e + s->high - s->s + (s->n > 1 ? qc_sum_error(k, n->compute, s->n) * s->high : 0);
  return s->e + s->high - s->s + (qc_sum_error(k, n->compute, s->n) + (3 * d + 4) * u) * s->high + s->lost * tiny;
}

void qc_bound_sampling(struct qc_node *n, const struct qc_numerics *k)
{
  if (n->op->kind == QN_OP_AFFINE_GRID || n->op->kind == QN_OP_AFFINE_GRID_BACKWARD) {
    bound_affine(n, k);
    return;
  }
  const qn_sampling *a = n->attr;
  const struct qc_value *grid = qc_role(n, "grid"), *x = qc_role(n, "x"), *dy = qc_role(n, "dy");
  struct qc_value *out = n->out[0];
  const qn_value *image = x ? &x->q : &out->q;
  bool by_image = !x, forward = !dy, nearest = a->mode == QN_RESAMPLE_NEAREST;
  int d = image->rank - 2;
  int64_t channels = image->dim[1], points = 1, places = 1;
  for (int m = 0; m < d; m++) {
    points *= grid->q.dim[1 + m];
    places *= image->dim[2 + m];
  }
  struct sums *sum = qc_alloc((size_t)out->n * sizeof *sum + 8);
  bool *lost = qc_alloc((size_t)image->dim[0] + 1);    /* images with a point that may be anywhere */
  for (int64_t i = 0; i < image->dim[0] * points; i++) {
    struct point s = point_of(a, grid, i, image, qc_unit(n->compute));
    int64_t batch = i / points;
    if (s.nan)
      continue;                         /* certainly NaN, or nothing */
    lost[batch] |= s.unknown;
    for (int64_t c = 0; c < channels; c++) {
      int64_t at = (batch * channels + c) * points + i % points, base = (batch * channels + c) * places;
      if (s.unknown && forward)
        sum[at].unknown = true;
      for (int m = 0; m < s.taps && !s.unknown; m++) {
        struct tap t = tap_of(&s, image, m, -1);
        if (forward)
          add(&sum[at], &t, fabs(x->y[base + t.place]), x->e[base + t.place], 1);
        else if (by_image)
          add(&sum[base + t.place], &t, fabs(dy->y[at]), dy->e[at], 1);
        for (int by = 0; by < d && !forward && !by_image; by++) {
          t = tap_of(&s, image, m, 2 - by);
          double v = fabs(x->y[base + t.place]), g = fabs(dy->y[at]);
          struct sums *to = &sum[i * d + by];
          add(to, &t, v * g, v * dy->e[at] + x->e[base + t.place] * (g + dy->e[at]), s.dim[2 - by].scale);
          to->e += s.dim[2 - by].either && isfinite(v * g) ? 2 * t.high * v * g : 0;
          to->unknown |= t.high > 0 && ((isinf(v) && g < 1e-30) || (isinf(g) && v < 1e-30));
        }
      }
    }
    for (int by = 0; by < d && !forward && !by_image; by++)
      sum[i * d + by].unknown |= s.unknown;
  }
  for (int64_t i = 0; i < out->n; i++)
    out->e[i] = by_image && lost[i / places / channels] ? QC_ANY : error_of(&sum[i], n, k, d, nearest);
  free(sum);
  free(lost);
}
