/* bound_loss.c -- cross-entropy. u: unit of the computation; c(n): a sum of n terms (bound.c); p = exp(x - lse).
 *
 *   lse       e_l = c(C) + sum p (2|x - m| + |m| + 4) u + 2 sum p e_x + u (|m| + 2|ln s| + 2|lse| + 2),  lse = m + ln s
 *   loss      e_l + (1 - smoothing)(e_x + 2u |x_label|) + smoothing (mean e_x + (c(C) + 2u) mean|x|) + 2u (the sum of its terms)
 *   reduced   the sum of e and c(rows) times the sum of |loss|, over count for a mean
 *   backward  e = |g| (p (exp(d) - 1) + 3u T) + (e_g + 2u |g|) T,  d = (2|x - lse| + 4) u + e_x + e_lse,  T = p + [label] + smoothing/C
 *
 * An infinite g times what the computation's own error may take for 0 has no one right value; nor has what is made of an exp(x - lse)
 * beyond the computation's range, which no lse of x's own gives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

struct loss {
  struct qc_node *n;
  const qn_entropy *a;
  struct qc_value *x, *labels;
  int64_t classes, rows, inner;           /* inner: elements between the classes of a row */
  double u, c;
};

static int64_t first_of(const struct loss *s, int64_t row) { return row / s->inner * s->inner * s->classes + row % s->inner; }

static int64_t label_of(const struct loss *s, int64_t row)
{
  const char *at = (const char *)s->labels->twin + (size_t)row * qn_dtype_bytes(s->labels->q.dtype);
  int32_t narrow;
  int64_t wide;
  if (s->labels->q.dtype == QN_I64) {
    memcpy(&wide, at, sizeof wide);
    return wide;
  }
  memcpy(&narrow, at, sizeof narrow);
  return narrow;
}

static double settled(double e) { return isnan(e) ? INFINITY : e; }

/* ---- forward ------------------------------------------------------------------------------------------------------- */

static void row_errors(const struct loss *s, int64_t row, double *of_lse, double *of_loss, double *loss)
{
  int64_t label = label_of(s, row), first = first_of(s, row);
  double m = -INFINITY, sum = 0, d = 0, total = 0, size = 0, inexact = 0, smoothing = s->a->smoothing;
  *of_lse = *of_loss = *loss = 0;
  if (label == s->a->ignore)
    return;
  for (int64_t j = 0; j < s->classes; j++)
    m = fmax(m, s->x->y[first + j * s->inner]);
  for (int64_t j = 0; j < s->classes; j++) {
    double x = s->x->y[first + j * s->inner], ex = s->x->e[first + j * s->inner], grow = x == m ? 1 : exp(x - m);
    sum += grow;
    d += grow > 0 ? grow * ((2 * fabs(x - m) + fabs(m) + 4) * s->u + 2 * ex) : 0;
    total += x;
    size += fabs(x);
    inexact += ex;
  }
  double lse = m + log(sum), n = (double)s->classes;
  *of_lse = s->c + d / sum + s->u * (fabs(m) + 2 * fabs(log(sum)) + 2 * fabs(lse) + 2);
  bool known = label >= 0 && label < s->classes;
  double at = known ? s->x->y[first + label * s->inner] : 0, e = known ? s->x->e[first + label * s->inner] : 0;
  double spread = smoothing > 0 ? smoothing * total / n : 0;
  *loss = lse - (1 - smoothing) * at - spread;
  *of_loss = *of_lse + (1 - smoothing) * (e + 2 * s->u * fabs(at)) + 2 * s->u * (fabs(lse) + fabs(at) + fabs(spread) + fabs(*loss));
  if (smoothing > 0)
    *of_loss += smoothing * (inexact + (s->c + 2 * s->u) * size) / n;
}

static void forward(const struct loss *s, const struct qc_numerics *k)
{
  struct qc_value *loss = qc_role(s->n, "loss"), *lse = qc_role(s->n, "lse");
  double sum = 0, size = 0, count = 0;
  for (int64_t row = 0; row < s->rows; row++) {
    double of_lse, of_loss, y;
    row_errors(s, row, &of_lse, &of_loss, &y);
    if (lse)
      lse->e[row] = settled(of_lse);
    if (s->a->reduction == QN_REDUCTION_NONE)
      loss->e[row] = settled(of_loss);
    sum += of_loss;
    size += fabs(y);
    count += label_of(s, row) != s->a->ignore;
  }
  if (s->a->reduction == QN_REDUCTION_NONE)
    return;
  double e = sum + (qc_sum_error(k, s->n->compute, (double)s->rows) + 2 * s->u) * size;
  loss->e[0] = settled(s->a->reduction == QN_REDUCTION_MEAN ? e / count : e);
}

/* ---- backward ------------------------------------------------------------------------------------------------------ */

static void backward(const struct loss *s)
{
  struct qc_value *dy = qc_role(s->n, "dy"), *lse = qc_role(s->n, "lse"), *count = qc_role(s->n, "count"), *dx = s->n->out[0];
  double spread = s->a->smoothing / (double)s->classes, tiny = qc_half_ulp(s->n->compute, 0);
  double vanishing = s->n->compute == QN_F64 ? 0x1p-1022 : 0x1p-126;
  for (int64_t row = 0; row < s->rows; row++) {
    int64_t label = label_of(s, row), first = first_of(s, row), of = dy->n == 1 ? 0 : row;
    double g = dy->y[of], eg = dy->e[of];
    if (s->a->reduction == QN_REDUCTION_MEAN) {
      g /= count->y[0];
      eg = eg / fabs(count->y[0]) + fabs(g) * count->e[0] / fabs(count->y[0]);
    }
    for (int64_t j = 0; j < s->classes && label != s->a->ignore; j++) {
      int64_t i = first + j * s->inner;
      double away = s->x->y[i] - lse->y[row], p = exp(away), d = (2 * fabs(away) + 4) * s->u + s->x->e[i] + lse->e[row];
      double at = j == label ? 1 - s->a->smoothing : 0, t = p + at + spread;
      double inner = (p > 0 ? p * expm1(d) : 0) + 3 * s->u * t + vanishing;
      bool undecided = (isinf(g) && fabs(p - at - spread) <= inner) || p >= qc_overflow(s->n->compute);
      dx->e[i] = undecided ? QC_ANY : settled(fabs(g) * inner + (eg + 2 * s->u * fabs(g)) * t + tiny);
    }
  }
}

void qc_bound_loss(struct qc_node *n, const struct qc_numerics *k)
{
  struct loss s = {.n = n, .a = n->attr, .x = qc_role(n, "x"), .labels = qc_role(n, "labels"), .u = qc_unit(n->compute), .inner = 1};
  int axis = (int)(s.a->axis < 0 ? s.a->axis + s.x->q.rank : s.a->axis);
  s.classes = s.x->q.dim[axis];
  s.rows = s.labels->n;
  for (int k2 = axis + 1; k2 < s.x->q.rank; k2++)
    s.inner *= s.x->q.dim[k2];
  s.c = qc_sum_error(k, n->compute, (double)s.classes);
  if (n->op->kind == QN_OP_CROSS_ENTROPY)
    forward(&s, k);
  else
    backward(&s);
}
