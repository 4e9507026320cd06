/* bound_loss.c -- losses from logits. u: unit roundoff of the computing type; c(n): a sum of n terms (bound_sums.c); p = exp(x - lse).
 *
 * cross-entropy
 *   lse       e_l = c(C) + sum p (2|x - m| + |m| + 4) u + 2 sum p e_x + u (|m| + 2|ln s| + 2|lse| + 2),  lse = m + ln s
 *   loss      e_l + (1 - smoothing)(e_x + 2u |x_label|) + smoothing (mean e_x + (c(C) + 2u) mean|x|) + 2u (the sum of its terms)
 *   reduced   the sum of e and c(rows) times the sum of |loss|, over count for a mean
 *   backward  e = |g| (p (exp(d) - 1) + 3u T) + (e_g + 2u |g|) T,  d = (2|x - lse| + 4) u + e_x + e_lse,  T = p + [label] + smoothing/C
 *
 * with weights w, probabilities or log-probabilities (lse = 0, e_l = 0); a = t w, e_a = (1 - smoothing)|w| e_t + |t| e_w + 4u (|t w| whole)
 *   loss      |sum a| e_l + sum |a| e_x + sum e_a (|lse| + |x|) + (c(C) + 4u) sum |a| (|lse| + |x|)
 *   count     sum e_w + (c(rows) + 2u) sum |w|; the mean's further error: |loss| e_count / |count|
 *   backward  as above with p sum a for p, its e_x p sum e_a, and |a| for [label] + smoothing/C
 *   by probabilities   g f (lse - x), f = (1 - smoothing) w: |g f| (e_lse + e_x) + (e_g |f| + |g| e_f) |lse - x| + 6u |g f (lse - x)|
 *
 * If g is infinite and its factor within its own error of 0, no single value is right; nor if exp(x - lse) is beyond the computing
 * type's range, which cannot happen with x's own lse.
 *
 * ctc   E = x - lse; A, B the logarithms of sums over paths to and from a state (ctc_direct.c); P = exp(A + B - L)
 *   E         e_E = e_x + e_lse + 2u (|x| + |lse| + |E|)
 *   A, B      one step's: ln(sum w exp(e)) over what it comes from, w its shares, + e_E + u (16 + 2|the sum| + 2|A|)
 *   loss      e_L = the largest over frames of ln(sum P exp(e_A + e_B)) + u (16 + 2|L|): paths may be cut anywhere
 *   backward  e = |g| (p (exp(d) - 1) + sum P (exp(d_s) - 1) + (n + 3) u T) + (e_g + 2u |g|) T,
 *             d_s = e_A + e_B + e_L + u (8 + 2|A| + 2|B| + 4|L|),  T = p + sum P over the class's n states */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

struct loss {
  struct qc_node *n;
  const qn_entropy *a;
  struct qc_value *x, *labels, *probabilities, *weights;
  int64_t classes, rows, inner;           /* inner: elements between the classes of a row */
  double u, c;
};

static int64_t first_of(const struct loss *s, int64_t row) { return row / s->inner * s->inner * s->classes + row % s->inner; }

static int64_t integer(const struct qc_value *v, int64_t i)
{
  const char *at = (const char *)v->twin + (size_t)i * qn_dtype_bytes(v->q.dtype);
  int32_t narrow;
  int64_t wide;
  if (v->q.dtype == QN_I64) {
    memcpy(&wide, at, sizeof wide);
    return wide;
  }
  memcpy(&narrow, at, sizeof narrow);
  return narrow;
}
static int64_t label_of(const struct loss *s, int64_t row) { return s->labels ? integer(s->labels, row) : -1; }
static bool counts(const struct loss *s, int64_t row) { return !s->labels || integer(s->labels, row) != s->a->ignore; }
static bool plain(const struct loss *s) { return s->labels && !s->weights && s->a->input == QN_LOGITS; }

static double settled(double e) { return isnan(e) ? INFINITY : e; }
static double known(double y, double e) { return isinf(e) && isfinite(y) ? QC_ANY : settled(e); }

/* ---- forward ------------------------------------------------------------------------------------------------------- */

/* lse of n logits, `step` apart, and its error. */
static double lse_of(const struct loss *s, int64_t first, double *e)
{
  double m = -INFINITY, sum = 0, d = 0;
  for (int64_t j = 0; j < s->classes; j++)
    m = fmax(m, s->x->y[first + j * s->inner]);
  for (int64_t j = 0; j < s->classes; j++) {
    double x = s->x->y[first + j * s->inner], ex = s->x->e[first + j * s->inner], grow = x == m ? 1 : exp(x - m);
    sum += grow;
    d += grow > 0 ? grow * ((2 * fabs(x - m) + fabs(m) + 4) * s->u + 2 * ex) : 0;
  }
  double lse = m + log(sum);
  *e = s->c + d / sum + s->u * (fabs(m) + 2 * fabs(log(sum)) + 2 * fabs(lse) + 2);
  return lse;
}

/* t w of a class (of no class: of a label of no class), and its error. */
static double share(const struct loss *s, int64_t row, int64_t class, double *e)
{
  int64_t label = label_of(s, row), i = first_of(s, row) + class * s->inner;
  bool none = class < 0, known = label >= 0 && label < s->classes;
  double keep = 1 - s->a->smoothing, spread = none ? 0 : s->a->smoothing / (double)s->classes;
  double whole = none ? !known : class == label, ep = 0;
  double w = none || !s->weights ? 1 : s->weights->y[class], ew = none || !s->weights ? 0 : s->weights->e[class];
  if (s->probabilities) {
    whole = none ? 0 : s->probabilities->y[i];
    ep = none ? 0 : s->probabilities->e[i];
  }
  double t = (keep > 0 && whole != 0 ? keep * whole : 0) + spread;
  *e = keep * ep * fabs(w) + fabs(t) * ew;
  if (t == 0 || w == 0)
    return 0;
  *e += 4 * s->u * fabs(w) * (keep * fabs(whole) + spread) + qc_half_ulp(s->n->compute, 0);
  return t * w;
}

static void weighted_errors(const struct loss *s, int64_t row, double *of_lse, double *of_loss, double *loss)
{
  double lse = s->a->input == QN_LOGITS ? lse_of(s, first_of(s, row), of_lse) : 0, total = 0, size = 0, ea;
  for (int64_t j = -1; j < s->classes; j++) {
    int64_t i = first_of(s, row) + j * s->inner;
    double a = share(s, row, j, &ea), x = j < 0 ? 0 : s->x->y[i], ex = j < 0 ? 0 : s->x->e[i];
    if (a == 0 && ea == 0)
      continue;
    *loss += a == 0 ? 0 : a * (lse - x);
    total += a;
    size += fabs(a) * (fabs(lse) + fabs(x));
    *of_loss += fabs(a) * ex + ea * (fabs(lse) + fabs(x));
  }
  *of_loss += (total == 0 ? 0 : fabs(total) * *of_lse) + (s->c + 4 * s->u) * size;
  if (qc_overflows(s->n->compute, size))
    *of_loss = INFINITY;
}

static void row_errors(const struct loss *s, int64_t row, double *of_lse, double *of_loss, double *loss)
{
  int64_t label = label_of(s, row), first = first_of(s, row);
  double total = 0, size = 0, inexact = 0, smoothing = s->a->smoothing;
  *of_lse = *of_loss = *loss = 0;
  if (!counts(s, row))
    return;
  if (!plain(s)) {
    weighted_errors(s, row, of_lse, of_loss, loss);
    return;
  }
  double lse = lse_of(s, first, of_lse), n = (double)s->classes;
  for (int64_t j = 0; j < s->classes; j++) {
    total += s->x->y[first + j * s->inner];
    size += fabs(s->x->y[first + j * s->inner]);
    inexact += s->x->e[first + j * s->inner];
  }
  bool known = label >= 0 && label < s->classes && smoothing < 1;
  double at = known ? s->x->y[first + label * s->inner] : 0, e = known ? s->x->e[first + label * s->inner] : 0;
  double spread = smoothing > 0 ? smoothing * total / n : 0;
  *loss = lse - (1 - smoothing) * at - spread;
  *of_loss = *of_lse + (1 - smoothing) * (e + 2 * s->u * fabs(at)) + 2 * s->u * (fabs(lse) + fabs(at) + fabs(spread) + fabs(*loss));
  if (smoothing > 0)
    *of_loss += qc_overflows(s->n->compute, size) ? INFINITY : smoothing * (inexact + (s->c + 2 * s->u) * size) / n;
}

static void forward(const struct loss *s, const struct qc_numerics *k)
{
  struct qc_value *loss = qc_role(s->n, "loss"), *lse = qc_role(s->n, "lse"), *counted = qc_role(s->n, "count");
  double sum = 0, size = 0, count = 0, of_count = 0, weights = 0;
  for (int64_t row = 0; row < s->rows; row++) {
    double of_lse, of_loss, y;
    row_errors(s, row, &of_lse, &of_loss, &y);
    if (lse)
      lse->e[row] = settled(of_lse);
    if (s->a->reduction == QN_REDUCTION_NONE)
      loss->e[row] = known(y, of_loss);
    sum += of_loss;
    size += fabs(y);
    if (!counts(s, row))
      continue;
    int64_t label = s->weights ? label_of(s, row) : -1;
    bool known = label >= 0 && label < s->classes;
    count += known ? s->weights->y[label] : 1;
    weights += known ? fabs(s->weights->y[label]) : 1;
    of_count += known ? s->weights->e[label] : 0;
  }
  if (s->weights)
    of_count += (qc_sum_error(k, s->n->compute, (double)s->rows) + 2 * s->u) * weights;
  if (counted)
    counted->e[0] = known(count, qc_overflows(s->n->compute, weights) ? INFINITY : of_count);
  if (s->a->reduction == QN_REDUCTION_NONE)
    return;
  double e = sum + (qc_sum_error(k, s->n->compute, (double)s->rows) + 2 * s->u) * size;
  if (s->a->reduction == QN_REDUCTION_MEAN)
    e = of_count > 0 && fabs(count) <= 2 * of_count ? INFINITY : (e + (of_count > 0 ? 2 * fabs(loss->y[0]) * of_count : 0)) / fabs(count);
  loss->e[0] = known(loss->y[0], e);
}

/* ---- backward ------------------------------------------------------------------------------------------------------ */

static void weighted_gradient(const struct loss *s, int64_t row, double g, double eg)
{
  const struct qc_value *lse = qc_role(s->n, "lse");
  struct qc_value *dx = s->n->out[0];
  double total = 0, of_total = 0, size = 0, ea, tiny = qc_half_ulp(s->n->compute, 0), vanishing = qc_least_normal(s->n->compute);
  for (int64_t j = -1; j < s->classes; j++) {
    double a = share(s, row, j, &ea);
    total += a;
    size += fabs(a);
    of_total += ea;
  }
  of_total += (s->c + 2 * s->u) * size;
  for (int64_t j = 0; j < s->classes; j++) {
    int64_t i = first_of(s, row) + j * s->inner;
    double a = share(s, row, j, &ea), p = 0, d = 0;
    if (lse && (total != 0 || of_total != 0)) {
      double away = s->x->y[i] - lse->y[row];
      p = exp(away);
      d = (2 * fabs(away) + 4) * s->u + s->x->e[i] + lse->e[row];
    }
    double t = p * fabs(total) + fabs(a), inner = (p > 0 ? p * (expm1(d) * fabs(total) + exp(d) * of_total) : 0) + ea + 3 * s->u * t;
    inner += vanishing * (1 + size);
    bool undecided = (isinf(g) && fabs(p * total - a) <= inner) || qc_overflows(s->n->compute, g) ||
                     p * fmax(1, size) >= qc_overflow(s->n->compute);
    dx->e[i] = undecided ? QC_ANY : settled(fabs(g) * inner + (eg + 2 * s->u * fabs(g)) * t + tiny);
  }
}

/* g of a row: dy, or dy / count. */
static double upstream(const struct loss *s, const struct qc_value *dy, const struct qc_value *count, int64_t row, double *eg)
{
  int64_t of = dy->n == 1 ? 0 : row;
  double g = dy->y[of];
  *eg = dy->e[of];
  if (s->a->reduction == QN_REDUCTION_MEAN) {
    g /= count->y[0];
    *eg = *eg / fabs(count->y[0]) + fabs(g) * count->e[0] / fabs(count->y[0]) + qc_half_ulp(s->n->compute, 0);
  }
  return g;
}

static void backward(const struct loss *s)
{
  struct qc_value *dy = qc_role(s->n, "dy"), *lse = qc_role(s->n, "lse"), *count = qc_role(s->n, "count"), *dx = s->n->out[0];
  double spread = s->a->smoothing / (double)s->classes, tiny = qc_half_ulp(s->n->compute, 0);
  double vanishing = qc_least_normal(s->n->compute);
  for (int64_t row = 0; row < s->rows; row++) {
    int64_t label = label_of(s, row), first = first_of(s, row);
    double eg, g = upstream(s, dy, count, row, &eg);
    if (counts(s, row) && !plain(s)) {
      weighted_gradient(s, row, g, eg);
      continue;
    }
    for (int64_t j = 0; j < s->classes && counts(s, row); j++) {
      int64_t i = first + j * s->inner;
      double away = s->x->y[i] - lse->y[row], p = exp(away), d = (2 * fabs(away) + 4) * s->u + s->x->e[i] + lse->e[row];
      double at = j == label ? 1 - s->a->smoothing : 0, t = p + at + spread;
      double inner = (p > 0 ? p * expm1(d) : 0) + 3 * s->u * t + vanishing;
      bool undecided = (isinf(g) && fabs(p - at - spread) <= inner) || qc_overflows(s->n->compute, g) || p >= qc_overflow(s->n->compute);
      dx->e[i] = undecided ? QC_ANY : settled(fabs(g) * inner + (eg + 2 * s->u * fabs(g)) * t + tiny);
    }
  }
}

/* By probabilities: a product of g, f = (1 - smoothing) w and lse - x. */
static void backward_probabilities(const struct loss *s)
{
  struct qc_value *dy = qc_role(s->n, "dy"), *lse = qc_role(s->n, "lse"), *count = qc_role(s->n, "count"), *out = s->n->out[0];
  double keep = 1 - s->a->smoothing, tiny = qc_half_ulp(s->n->compute, 0);
  for (int64_t row = 0; row < s->rows; row++) {
    double eg, g = upstream(s, dy, count, row, &eg);
    for (int64_t j = 0; j < s->classes; j++) {
      int64_t i = first_of(s, row) + j * s->inner;
      double f = keep * (s->weights ? s->weights->y[j] : 1), ef = keep * (s->weights ? s->weights->e[j] : 0);
      if (f == 0 && ef == 0)
        continue;
      double away = fabs((lse ? lse->y[row] : 0) - s->x->y[i]), e = (lse ? lse->e[row] : 0) + s->x->e[i];
      double size = fabs(g) * fmax(1, fabs(f)) * fmax(1, away);
      bool undecided = isinf(g) ? away <= e : isfinite(size) && qc_overflows(s->n->compute, size);
      out->e[i] = undecided ? QC_ANY
                : settled(fabs(g * f) * e + (eg * (fabs(f) + ef) + fabs(g) * ef) * (away + e) + 6 * s->u * fabs(g * f) * away
                          + tiny * (1 + (1 + fabs(f)) * away));
    }
  }
}

/* ---- connectionist temporal classification ------------------------------------------------------------------------- */

/* One sample: E, A and B of its states in its frames, and their errors, [frames][states]. */
struct paths {
  struct loss s;                          /* rows are (frame, sample) */
  const qn_ctc *a;
  int64_t n, samples, longest, frames, states;
  double *e, *to, *from, *of_e, *of_to, *of_from;
  double  l, of_l;
  bool    undecided;                      /* some emission is +Inf */
};

static int64_t class_of(const struct paths *p, int64_t state)
{
  return state % 2 ? integer(p->s.labels, p->n * p->longest + state / 2) : p->a->blank;
}
static bool may_skip(const struct paths *p, int64_t state)
{
  return state % 2 && state > 2 && class_of(p, state) != class_of(p, state - 2);
}

/* ln(sum exp y), and its error: the effect of e and of computing it. */
static double log_of_sum(const struct paths *p, int n, const double *y, const double *e, double *error)
{
  double m = -INFINITY, sum = 0, grown = 0;
  for (int i = 0; i < n; i++)
    m = isnan(y[i]) || isnan(m) ? NAN : fmax(m, y[i]);
  *error = 0;
  if (!isfinite(m))
    return m;
  for (int i = 0; i < n; i++) {
    sum += exp(y[i] - m);
    grown += y[i] == -INFINITY ? 0 : exp(y[i] - m) * expm1(e[i]);
  }
  *error = log1p(grown / sum) + p->s.u * (16 + 2 * fabs(m + log(sum)));
  return m + log(sum);
}

static void emissions_of(struct paths *p, int64_t t, double lse, double of_lse)
{
  for (int64_t i = 0; i < p->states; i++) {
    int64_t c = class_of(p, i), at = (t * p->samples + p->n) * p->s.classes + c, k = t * p->states + i;
    bool known = c >= 0 && c < p->s.classes;
    double x = known ? p->s.x->y[at] : 0, ex = known ? p->s.x->e[at] : 0;
    p->e[k] = i % 2 && c == p->a->blank ? -INFINITY : x - lse;
    p->of_e[k] = isfinite(p->e[k]) ? ex + of_lse + 2 * p->s.u * (fabs(x) + fabs(lse) + fabs(p->e[k])) : 0;
    p->undecided |= p->e[k] == INFINITY;
  }
}

/* way 1: computes A; -1: computes B. */
static void walk(struct paths *p, int way)
{
  for (int64_t k = 0; k < p->frames; k++) {
    int64_t t = way > 0 ? k : p->frames - 1 - k;
    for (int64_t i = 0; i < p->states; i++) {
      double y[3], e[3], sum = way > 0 ? (i < 2 ? 0 : -INFINITY) : i >= p->states - 2 ? 0 : -INFINITY, error = 0;
      int n = 0;
      for (int64_t d = 0; d < 3 && k > 0; d++) {
        int64_t j = i - way * d, at = (t - way) * p->states + j;
        if (j < 0 || j >= p->states || (d == 2 && !may_skip(p, way > 0 ? i : j)))
          continue;
        y[n] = way > 0 ? p->to[at] : p->from[at] + p->e[at];
        e[n++] = way > 0 ? p->of_to[at] : p->of_from[at] + p->of_e[at] + 2 * p->s.u * fabs(p->from[at] + p->e[at]);
      }
      if (k > 0)
        sum = log_of_sum(p, n, y, e, &error);
      int64_t at = t * p->states + i;
      if (way < 0) {
        p->from[at] = sum, p->of_from[at] = error;
        continue;
      }
      p->to[at] = sum + p->e[at];
      p->of_to[at] = isfinite(p->to[at]) ? error + p->of_e[at] + 2 * p->s.u * fabs(p->to[at]) : 0;
    }
  }
}

static void paths_make(struct paths *p, int64_t n, const struct qc_value *x_lengths, const struct qc_value *label_lengths)
{
  int64_t frames = p->s.rows / p->samples, labels = integer(label_lengths, n);
  p->n = n;
  p->frames = integer(x_lengths, n) < 0 ? 0 : integer(x_lengths, n) > frames ? frames : integer(x_lengths, n);
  p->states = 2 * (labels < 0 ? 0 : labels > p->longest ? p->longest : labels) + 1;
  p->undecided = false;
  double **part[] = {&p->e, &p->to, &p->from, &p->of_e, &p->of_to, &p->of_from};
  for (int i = 0; i < 6; i++)
    *part[i] = qc_alloc((size_t)(p->frames * p->states) * sizeof(double) + 8);
}
static void paths_free(struct paths *p)
{
  double *part[] = {p->e, p->to, p->from, p->of_e, p->of_to, p->of_from};
  for (int i = 0; i < 6; i++)
    free(part[i]);
}

static void join_paths(struct paths *p)
{
  walk(p, 1);
  walk(p, -1);
  p->l = p->states == 1 && p->frames == 0 ? 0 : -INFINITY;
  p->of_l = 0;
  for (int64_t t = p->frames - 1; t >= 0; t--) {
    double m = -INFINITY, sum = 0, grown = 0;
    for (int64_t i = t * p->states; i < (t + 1) * p->states; i++)
      m = fmax(m, p->to[i] + p->from[i]);
    for (int64_t i = t * p->states; i < (t + 1) * p->states && isfinite(m); i++) {
      double share = exp(p->to[i] + p->from[i] - m);
      sum += share;
      grown += share > 0 ? share * expm1(p->of_to[i] + p->of_from[i]) : 0;
    }
    if (!isfinite(m))
      continue;
    p->l = m + log(sum);
    p->of_l = fmax(p->of_l, log1p(grown / sum));
  }
  for (int64_t i = p->states > 1 ? p->states - 2 : 0; i < p->states && p->frames > 0; i++)
    if (isnan(p->to[(p->frames - 1) * p->states + i]))
      p->l = NAN;                       /* not "no path": other classes still have their softmax */
  p->of_l += p->s.u * (16 + 2 * fabs(p->l));
}

static void ctc_forward(struct paths *p, struct qc_node *n, const struct qc_numerics *k)
{
  struct qc_value *loss = qc_role(n, "loss"), *lse = qc_role(n, "lse");
  double sum = 0, size = 0;
  for (int64_t i = 0; i < p->samples; i++) {
    paths_make(p, i, qc_role(n, "x_lengths"), qc_role(n, "label_lengths"));
    for (int64_t t = 0; t < p->frames; t++) {
      double of_lse, y = lse_of(&p->s, (t * p->samples + i) * p->s.classes, &of_lse);
      if (lse)
        lse->e[t * p->samples + i] = settled(of_lse);
      emissions_of(p, t, y, of_lse);
    }
    join_paths(p);
    double e = isfinite(p->l) ? settled(p->of_l) : 0;
    if (p->a->reduction == QN_REDUCTION_NONE)
      loss->e[i] = e;
    sum += e;
    size += isfinite(p->l) ? fabs(p->l) : 0;
    paths_free(p);
  }
  if (p->a->reduction == QN_REDUCTION_NONE)
    return;
  double e = sum + (qc_sum_error(k, n->compute, (double)p->samples) + 2 * p->s.u) * size;
  loss->e[0] = p->a->reduction == QN_REDUCTION_MEAN ? e / (double)p->samples : e;
}

static void ctc_backward(struct paths *p, struct qc_node *n)
{
  const struct qc_value *dy = qc_role(n, "dy"), *lse = qc_role(n, "lse");
  struct qc_value *dx = n->out[0];
  double u = p->s.u, tiny = qc_half_ulp(n->compute, 0), vanishing = qc_least_normal(n->compute);
  for (int64_t i = 0; i < p->samples; i++) {
    double g = dy->y[dy->n == 1 ? 0 : i], eg = dy->e[dy->n == 1 ? 0 : i];
    if (p->a->reduction == QN_REDUCTION_MEAN)
      g /= (double)p->samples, eg = eg / (double)p->samples + tiny;
    paths_make(p, i, qc_role(n, "x_lengths"), qc_role(n, "label_lengths"));
    for (int64_t t = 0; t < p->frames; t++)
      emissions_of(p, t, lse->y[t * p->samples + i], lse->e[t * p->samples + i]);
    join_paths(p);
    for (int64_t k = 0; k < p->frames * p->s.classes; k++) {
      int64_t t = k / p->s.classes, c = k % p->s.classes, row = t * p->samples + i, at = row * p->s.classes + c, states = 0;
      double away = p->s.x->y[at] - lse->y[row], y = exp(away), d = (2 * fabs(away) + 4) * u + p->s.x->e[at] + lse->e[row];
      double inner = (y > 0 ? y * expm1(d) : 0) + vanishing, share = 0;
      for (int64_t s = 0; s < p->states; s++) {
        if (class_of(p, s) != c)
          continue;
        double a = p->to[t * p->states + s], b = p->from[t * p->states + s], part = exp(a + b - p->l);
        double off = p->of_to[t * p->states + s] + p->of_from[t * p->states + s] + p->of_l + u
            * (8 + 2 * fabs(a) + 2 * fabs(b) + 4 * fabs(p->l));
        inner += part > 0 ? part * expm1(off) : vanishing;
        share += part;
        states++;
      }
      inner += ((double)states + 3) * u * (y + share);
      bool any = p->undecided || (isinf(g) && fabs(y - share) <= inner) || qc_overflows(n->compute, g) || y >= qc_overflow(n->compute);
      dx->e[at] = any ? QC_ANY : p->l == -INFINITY ? 0 : settled(fabs(g) * inner + (eg + 2 * u * fabs(g)) * (y + share) + tiny);
    }
    paths_free(p);
  }
}

static void bound_ctc(struct qc_node *n, const struct qc_numerics *k)
{
  struct paths p = {.s = {.n = n, .x = qc_role(n, "x"), .labels = qc_role(n, "labels"), .u = qc_unit(n->compute), .inner = 1},
                    .a = n->attr};
  p.s.classes = p.s.x->q.dim[2];
  p.s.rows = p.s.x->q.dim[0] * p.s.x->q.dim[1];
  p.s.c = qc_sum_error(k, n->compute, (double)p.s.classes);
  p.samples = p.s.x->q.dim[1];
  p.longest = p.s.labels->q.dim[1];
  if (n->op->kind == QN_OP_CTC_LOSS)
    ctc_forward(&p, n, k);
  else
    ctc_backward(&p, n);
}

void qc_bound_loss(struct qc_node *n, const struct qc_numerics *k)
{
  if (n->op->kind == QN_OP_CTC_LOSS || n->op->kind == QN_OP_CTC_LOSS_BACKWARD) {
    bound_ctc(n, k);
    return;
  }
  struct loss s = {.n = n, .a = n->attr, .x = qc_role(n, "x"), .labels = qc_role(n, "labels"), .u = qc_unit(n->compute), .inner = 1,
                   .probabilities = qc_role(n, "probabilities"), .weights = qc_role(n, "weights")};
  int axis = (int)(s.a->axis < 0 ? s.a->axis + s.x->q.rank : s.a->axis);
  s.classes = s.x->q.dim[axis];
  s.rows = 1;
  for (int k2 = 0; k2 < s.x->q.rank; k2++)
    s.rows *= k2 == axis ? 1 : s.x->q.dim[k2];
  for (int k2 = axis + 1; k2 < s.x->q.rank; k2++)
    s.inner *= s.x->q.dim[k2];
  s.c = qc_sum_error(k, n->compute, (double)s.classes);
  if (n->op->kind == QN_OP_CROSS_ENTROPY)
    forward(&s, k);
  else if (n->op->kind == QN_OP_CROSS_ENTROPY_BACKWARD_PROBABILITIES)
    backward_probabilities(&s);
  else
    backward(&s);
}
