/* bound_softmax.c -- softmax, log-softmax and their gradients, row by row along the axis.
 *
 *   softmax                d_i = (2|x_i - m| + |m| + 4) u + input error,  e = y (d_i + sum y_j d_j + c(n))
 *   log_softmax            e = u (2|x_i - m| + |m| + 8) + c(n) + input error of x_i and the row's mean
 *   softmax_backward       e = y [3u (|dy| + T) + c(n) T + n t] + t,  T = sum y |dy|
 *   log_softmax_backward   e = 2u |dx| + exp(y) [8u |sum dy| + c(n) sum |dy| + u |y| |sum dy|] + 6t |sum dy| + t
 *
 * t: half the least subnormal, the error of a product that underflows; of an exponential 6 t (bound_pointwise.c). If a sum may
 * overflow, or an exponential that may be 0 or infinite meets an infinity or something that may be 0, nothing is known. */
#include <math.h>
#include <stdlib.h>
#include "conform.h"

/* One row: `n` elements `step` apart. */
struct row { const double *a, *b, *y, *ea, *eb; double *e; int64_t n, step; double u, c, t; uint32_t compute; };

static void softmax_row(const struct row *r)
{
  double m = -INFINITY, mean = 0;
  for (int64_t i = 0; i < r->n; i++)
    m = fmax(m, r->a[i * r->step]);
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < r->n; i++) {
      double x = r->a[i * r->step], y = r->y[i * r->step], own = 2 * r->ea[i * r->step];
      double d = y > 0 ? (2 * fabs(x - m) + fabs(m) + 4) * r->u + own : 0;
      if (pass == 0)
        mean += y * d;
      else
        r->e[i * r->step] = y * (d + mean + r->c) + (fabs(x - m) < INFINITY ? 2 * r->t : 0);
    }
}

static void log_softmax_row(const struct row *r)
{
  double m = -INFINITY, mean = 0;
  for (int64_t i = 0; i < r->n; i++)
    m = fmax(m, r->a[i * r->step]);
  for (int64_t i = 0; i < r->n; i++)
    mean += exp(r->y[i * r->step]) * r->ea[i * r->step];
  for (int64_t i = 0; i < r->n; i++) {
    double x = r->a[i * r->step];
    r->e[i * r->step] = r->u * (2 * fabs(x - m) + fabs(m) + 8) + r->c + r->ea[i * r->step] + 2 * mean;
  }
}

static void softmax_backward_row(const struct row *r)
{
  double t = 0, inexact = 0;
  for (int64_t i = 0; i < r->n; i++) {
    double y = fabs(r->a[i * r->step]), dy = fabs(r->b[i * r->step]);
    t += y * dy;
    inexact += (y + r->ea[i * r->step]) * (dy + r->eb[i * r->step]) - y * dy + r->t;
  }
  for (int64_t i = 0; i < r->n; i++) {
    double y = fabs(r->a[i * r->step]), dy = fabs(r->b[i * r->step]), ey = r->ea[i * r->step], edy = r->eb[i * r->step];
    r->e[i * r->step] = qc_overflows(r->compute, dy + t) ? QC_ANY
                      : y * (3 * r->u * (dy + t) + r->c * t) + y * (edy + inexact) + ey * (dy + edy + t + inexact) + r->t;
  }
}

static void log_softmax_backward_row(const struct row *r)
{
  double sum = 0, magnitude = 0, inexact = 0;
  for (int64_t i = 0; i < r->n; i++) {
    sum += r->b[i * r->step];
    magnitude += fabs(r->b[i * r->step]);
    inexact += r->eb[i * r->step];
  }
  for (int64_t i = 0; i < r->n; i++) {
    double y = r->a[i * r->step], grow = exp(y), ey = expm1(r->ea[i * r->step]), *e = &r->e[i * r->step];
    bool lost = isfinite(y) && grow < qc_least_normal(r->compute) && isinf(sum);
    bool grown = isfinite(y) && grow >= qc_overflow(r->compute) &&
        !(grow * (fabs(sum) - inexact - r->c * magnitude) >= qc_overflow(r->compute));
    *e = 2 * r->u * fabs(r->y[i * r->step]) + r->eb[i * r->step] + (6 * fabs(sum) + 1) * r->t;
    if (grow > 0)
      *e += grow * inexact + grow * (r->u * (8 + fabs(y)) * fabs(sum) + r->c * magnitude) + grow * ey * (fabs(sum) + inexact);
    if (lost || grown || qc_overflows(r->compute, magnitude))
      *e = QC_ANY;
  }
}

void qc_bound_softmax(struct qc_node *n, const struct qc_numerics *k)
{
  const qn_value *q = &n->out[0]->q;
  int64_t axis = ((const qn_axis *)n->attr)->axis, inner = 1;
  axis = axis < 0 ? axis + q->rank : axis;
  for (int d = (int)axis + 1; d < q->rank; d++)
    inner *= q->dim[d];
  int64_t len = q->dim[axis], outer = n->out[0]->n / (len * inner);
  struct row r = {.n = len, .step = inner, .u = qc_unit(n->compute), .c = qc_sum_error(k, n->compute, (double)len),
                  .t = qc_half_ulp(n->compute, 0), .compute = n->compute};
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      int64_t at = o * len * inner + i;
      struct qc_value *a = n->in[0], *b = n->n_in > 1 ? n->in[1] : a;
      r.a = a->y + at, r.ea = a->e + at, r.b = b->y + at, r.eb = b->e + at, r.y = n->out[0]->y + at, r.e = n->out[0]->e + at;
      switch (n->op->kind) {
      case QN_OP_SOFTMAX:              softmax_row(&r); break;
      case QN_OP_SOFTMAX_BACKWARD:     softmax_backward_row(&r); break;
      case QN_OP_LOG_SOFTMAX:          log_softmax_row(&r); break;
      case QN_OP_LOG_SOFTMAX_BACKWARD: log_softmax_backward_row(&r); break;
      }
    }
}
