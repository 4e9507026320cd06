/* bound_reduction.c -- reductions and pooling: one element from many.
 *
 *   sum, mean, norm1, average   e = (c(n) + 2u) S, S = the op on absolute values (mean, average: already divided)
 *   prod                        e = (n + 2) u |y|          norm2   e = (c(n)/2 + 2u) |y|
 *   logsumexp                   e = c(n) + (6 ln n + 16) u + 4 u |y|: of the sum, its terms' exponents, the largest x and the logarithm
 *   variance                    e = (c(n) + 6u) y + n d^2 / (n - correction), d = (c(n) + 2u) mean |x|: a mean d off adds n d^2
 *   cumprod                     as prod, of all along the axis        scatter_...: as the sum, the product or the choice that they make
 *   max, min, amax, indices     exact
 *   cumsum, scatter_add, pad_backward   as sum, with the number of terms of each element
 * Integers are exact; so is an average of them but for its one rounding.
 * Sums of integer fills are exact while S fits the accumulator, and so is their mean if the divisor is a power of two. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

static double terms(const struct qc_node *n)
{
  double in = (double)n->in[0]->n, out = (double)n->out[0]->n;
  return out > 0 ? in / out : 0;
}

/* S <= 2^bits in units of the inputs' last bit. */
static bool fits_exactly(const struct qc_node *n, const double *s, double divisor)
{
  if (!qc_inputs_exact(n) || frexp(divisor, &(int){0}) != 0.5)
    return false;
  int bits = qc_fraction_bits(n->in[0]->y, n->in[0]->n);
  if (bits == QC_MANY_BITS)             /* subnormals, whose quotient is rounded */
    return false;
  double limit = ldexp(1, (n->compute == QN_F64 ? 53 : 24) - bits) / divisor;
  for (int64_t i = 0; i < n->out[0]->n; i++)
    if (!(s[i] <= limit))
      return false;
  return true;
}

/* Exactness fails if partial sums are stored in 16 bits etc., or with any accumulator but the native one and double. */
static bool plain(const struct qc_numerics *k)
{
  for (int i = 0; i < k->n; i++)
    if (k->part[i].store || (k->part[i].accumulator != QN_ACC_NATIVE && k->part[i].accumulator != QN_ACC_DOUBLE))
      return false;
  return true;
}

static void add_sum_error(struct qc_node *n, const struct qc_numerics *k, double terms_summed, double divisor, bool exact_able)
{
  struct qc_value *y = n->out[0];
  if (!n->s)
    n->s = qc_abs_run(n, false);
  n->divisor = divisor;
  if (exact_able && plain(k) && fits_exactly(n, n->s, divisor))
    return;
  double c = qc_sum_error(k, n->compute, terms_summed) + 2 * qc_unit(n->compute);
  for (int64_t i = 0; i < y->n; i++)
    y->e[i] = c * fabs(n->s[i]) + terms_summed * qc_half_ulp(n->compute, 0);
  qc_propagate_abs(n);
}

/* Sums whose terms are the inputs themselves: the op run on ones counts the terms. */
void qc_bound_counted_sum(struct qc_node *n, const struct qc_numerics *k)
{
  struct qc_value *y = n->out[0];
  double *one = qc_alloc((size_t)n->in[0]->n * sizeof *one + 8), *count = qc_alloc((size_t)y->n * sizeof *count + 8);
  const void *in[64] = {one};
  void *out[QN_MAX_ROLES] = {count};
  for (int64_t i = 0; i < n->in[0]->n; i++)
    one[i] = 1;
  qc_twin_run(n->twin, in, out);
  if (!n->s)
    n->s = qc_abs_run(n, false);
  if (!plain(k) || !fits_exactly(n, n->s, 1)) {
    for (int64_t i = 0; i < y->n; i++)
      y->e[i] = count[i] > 1 ? qc_sum_error(k, n->compute, count[i]) * fabs(n->s[i]) : 0;
    qc_propagate_abs(n);
  }
  free(count);
  free(one);
}

/* Adds the largest e among the inputs of each output: the op max applied to e. Only for ops that select one of their inputs. */
static void add_picked_error(struct qc_node *n)
{
  if (qc_inputs_exact(n))
    return;
  double worst = 0;
  for (int64_t i = 0; i < n->in[0]->n; i++)
    worst = fmax(worst, n->in[0]->e[i]);
  for (int64_t i = 0; i < n->out[0]->n; i++)
    n->out[0]->e[i] += worst;
}

/* Where element i of x goes in y, which has 1 in the reduced dims. */
static int64_t reduced_place(const qn_value *x, const qn_value *y, int64_t i)
{
  int64_t at = 0, step = 1;
  for (int d = x->rank - 1; d >= 0; d--) {
    at += y->dim[d] > 1 ? i % x->dim[d] * step : 0;
    i /= x->dim[d];
    step *= y->dim[d];
  }
  return at;
}

static void bound_variance(struct qc_node *n, const struct qc_numerics *k, double count)
{
  const struct qc_value *x = n->in[0];
  struct qc_value *y = n->out[0];
  const double c = qc_sum_error(k, n->compute, count), u = qc_unit(n->compute);
  const double left = count - (double)((const qn_axes *)n->attr)->correction;
  double *size = qc_alloc((size_t)y->n * sizeof *size + 8), *worst = qc_alloc((size_t)y->n * sizeof *worst + 8);
  for (int64_t i = 0; i < x->n; i++) {
    const int64_t at = reduced_place(&x->q, &y->q, i);
    size[at] += fabs(x->y[i]) / count;
    worst[at] = fmax(worst[at], x->e[i]);
  }
  for (int64_t i = 0; i < y->n; i++) {
    const double d = (c + 2 * u) * size[i], spread = left > 0 ? count / left : 0;
    /* inputs that move by w change the distances from the mean by 2w */
    y->e[i] = (c + 6 * u) * y->y[i] + spread * d * d + 4 * worst[i] * (sqrt(y->y[i] * spread) + worst[i] * spread)
              + count * qc_half_ulp(n->compute, 0);
    if (isnan(y->e[i])) y->e[i] = 0;
  }
  free(size);
  free(worst);
}

void qc_bound_reduction(struct qc_node *n, const struct qc_numerics *k)
{
  struct qc_value *y = n->out[0];
  double count = terms(n), u = qc_unit(n->compute);
  switch (n->op->kind) {
  case QN_OP_REDUCE_SUM: case QN_OP_REDUCE_NORM1:
    add_sum_error(n, k, count, 1, true);
    break;
  case QN_OP_REDUCE_MEAN:
    add_sum_error(n, k, count, count > 0 ? count : 1, true);
    break;
  case QN_OP_REDUCE_LOGSUMEXP:
    for (int64_t i = 0; i < y->n; i++)
      y->e[i] = isfinite(y->y[i]) ? qc_sum_error(k, n->compute, count) + (6 * log(count) + 16 + 4 * fabs(y->y[i])) * u : 0;
    add_picked_error(n);
    break;
  case QN_OP_REDUCE_VARIANCE:
    bound_variance(n, k, count);
    break;
  case QN_OP_REDUCE_PROD:
    for (int64_t i = 0; i < y->n; i++)
      y->e[i] = (count + 2) * fmax(u * fabs(y->y[i]), qc_half_ulp(n->compute, 0));
    break;
  case QN_OP_REDUCE_NORM2:
    for (int64_t i = 0; i < y->n; i++)
      y->e[i] = (qc_sum_error(k, n->compute, count) / 2 + 2 * u) * fabs(y->y[i]) + qc_half_ulp(n->compute, 0);
    add_picked_error(n);
    break;
  default:
    add_picked_error(n);
  }
}

/* Sums by index, of x and the updates: as many terms as there are ones. */
static void bound_scatter(struct qc_node *n, const struct qc_numerics *k)
{
  struct qc_value *y = n->out[0];
  const int64_t mode = ((const qn_scattering *)n->attr)->mode;
  const double most = (double)n->in[2]->n + 1, u = qc_unit(n->compute);
  if (mode == QN_SCATTER_ADD) {
    double *one = qc_alloc((size_t)(n->in[0]->n + n->in[2]->n) * sizeof *one + 8), *count = qc_alloc((size_t)y->n * sizeof *count + 8);
    for (int64_t i = 0; i < n->in[0]->n + n->in[2]->n; i++)
      one[i] = 1;
    const void *in[64] = {one, NULL, one};
    void *out[QN_MAX_ROLES] = {count};
    qc_twin_run(n->twin, in, out);
    if (!n->s)
      n->s = qc_abs_run(n, false);
    for (int64_t i = 0; i < y->n; i++)
      y->e[i] = count[i] > 1 ? qc_sum_error(k, n->compute, count[i]) * fabs(n->s[i]) : 0;
    qc_propagate_abs(n);
    free(count);
    free(one);
    return;
  }
  if (mode == QN_SCATTER_MUL)
    for (int64_t i = 0; i < y->n; i++)
      y->e[i] = most * fmax(u * fabs(y->y[i]), qc_half_ulp(n->compute, 0));
  if (qc_inputs_exact(n))
    return;
  for (int64_t i = 0; i < y->n; i++)    /* of an inexact product nothing is said */
    y->e[i] = mode == QN_SCATTER_MUL ? QC_ANY : y->e[i];
  add_picked_error(n);
  double worst = 0;
  for (int64_t i = 0; i < n->in[2]->n; i++)
    worst = fmax(worst, n->in[2]->e[i]);
  for (int64_t i = 0; i < y->n; i++)
    y->e[i] += worst;
}

void qc_bound_scan(struct qc_node *n, const struct qc_numerics *k)
{
  struct qc_value *y = n->out[0];
  if (n->op->kind == QN_OP_CUMSUM) {
    qc_bound_counted_sum(n, k);
    return;
  }
  const double count = (double)n->in[0]->q.dim[((const qn_scan *)n->attr)->axis], u = qc_unit(n->compute);
  if (n->op->kind == QN_OP_CUMPROD)
    for (int64_t i = 0; i < y->n; i++)
      y->e[i] = qc_inputs_exact(n) ? (count + 2) * fmax(u * fabs(y->y[i]), qc_half_ulp(n->compute, 0)) : QC_ANY;
  else
    add_picked_error(n);
}

/* one_hot and iota are exact, top_k and sort as max. */
void qc_bound_selection(struct qc_node *n, const struct qc_numerics *k)
{
  if (n->op->kind == QN_OP_SCATTER_ADD || n->op->kind == QN_OP_PAD_BACKWARD)
    qc_bound_counted_sum(n, k);
  else if (n->op->kind == QN_OP_SCATTER_ELEMENTS || n->op->kind == QN_OP_SCATTER_ND)
    bound_scatter(n, k);
  else if (n->op->kind == QN_OP_TOP_K || n->op->kind == QN_OP_SORT)
    add_picked_error(n);
}

/* ---- pooling ------------------------------------------------------------------------------ */

/* Adaptive windows: `outer` elements of x, `inner` windows in one dim. Their sizes differ unless one divides the other. */
static bool adaptive(const struct qc_node *n)
{
  return qc_attr_int(n->op, n->attr, "size", 0, 0, -1) >= 0;
}

static bool uneven(int64_t places, int64_t windows) { return windows && places % windows; }
static double adaptive_taps(int64_t places, int64_t windows)
{
  return windows ? ceil((double)places / (double)windows) + uneven(places, windows) : 0;
}

/* The largest number of taps inside x of any window; *padded: some windows have fewer. */
static double window_taps(const struct qc_node *n, const qn_value *plane, bool *padded)
{
  double taps = 1;
  if (adaptive(n)) {
    *padded = false;
    for (int d = 0; d < plane->rank - 2; d++) {
      int64_t windows = qc_attr_int(n->op, n->attr, "size", d, 0, 0);
      taps *= adaptive_taps(plane->dim[2 + d], windows);
      *padded |= uneven(plane->dim[2 + d], windows);
    }
    return taps;
  }
  *padded = qc_attr_int(n->op, n->attr, "ceil_mode", 0, 0, 0) != 0;
  for (int d = 0; d < plane->rank - 2; d++) {
    int64_t window = qc_attr_int(n->op, n->attr, "window", d, 0, 0);
    taps *= (double)(window && window < plane->dim[2 + d] ? window : plane->dim[2 + d]);     /* taps beyond x add nothing */
    *padded |= qc_attr_int(n->op, n->attr, "pad", d, 0, 0) || qc_attr_int(n->op, n->attr, "pad", d, 1, 0);
  }
  return taps;
}

/* The largest number of windows that hold one element. */
static double overlap(const struct qc_node *n, const qn_value *plane)
{
  double most = 1;
  for (int d = 0; d < plane->rank - 2 && adaptive(n); d++)        /* by symmetry of windows and elements */
    most *= adaptive_taps(qc_attr_int(n->op, n->attr, "size", d, 0, 0), plane->dim[2 + d]);
  for (int d = 0; d < plane->rank - 2 && !adaptive(n); d++) {
    int64_t window = qc_attr_int(n->op, n->attr, "window", d, 0, 0), stride = qc_attr_int(n->op, n->attr, "stride", d, 0, 0);
    window = window ? window : plane->dim[2 + d];
    stride = stride ? stride : window;
    most *= (double)((qc_attr_int(n->op, n->attr, "dilation", d, 0, 1) * (window - 1)) / stride + 1);
  }
  return most;
}

static double p_of(const struct qc_node *n)
{
  return ((const qn_pool *)n->attr)->p;
}

void qc_bound_pooling(struct qc_node *n, const struct qc_numerics *k)
{
  bool padded, back = n->op->forward != 0;
  const qn_value *plane = back ? &n->out[0]->q : &n->in[0]->q;
  double taps = window_taps(n, plane, &padded), u = qc_unit(n->compute), power = 10 * u;   /* of a power function: 5 ulp */
  switch (n->op->kind) {
  case QN_OP_POOL_AVERAGE: case QN_OP_POOL_ADAPTIVE_AVERAGE:
    if (!qc_is_float(n->out[0]->q.dtype))
      break;
    add_sum_error(n, k, taps, taps, !padded);
    break;
  case QN_OP_POOL_AVERAGE_BACKWARD: case QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD:
    add_sum_error(n, k, overlap(n, plane), taps, !padded);
    break;
  case QN_OP_POOL_LP:                   /* t = |x|/m, t^p, their sum, its root, times m */
    for (int64_t i = 0; i < n->out[0]->n; i++)
      n->out[0]->e[i] = ((qc_sum_error(k, n->compute, taps) + power) / p_of(n) + power + 4 * u) * fabs(n->out[0]->y[i]) + 2
          * qc_half_ulp(n->compute, 0);
    add_picked_error(n);
    break;
  case QN_OP_POOL_LP_BACKWARD:
    if (!n->s)
      n->s = qc_abs_run(n, false);
    for (int64_t i = 0; i < n->out[0]->n; i++)
      n->out[0]->e[i] = (qc_sum_error(k, n->compute, overlap(n, plane)) + power + (p_of(n) + 3) * u) * n->s[i]
                        + overlap(n, plane) * qc_half_ulp(n->compute, 0);
    break;
  case QN_OP_POOL_MAX_BACKWARD: case QN_OP_POOL_ADAPTIVE_MAX_BACKWARD: {
    /* |dy| scattered in the same way: absolute values for the twin's dy, x and indices unchanged */
    double *dy = qc_alloc((size_t)n->in[0]->n * sizeof *dy + 8);
    for (int64_t i = 0; i < n->in[0]->n; i++)
      dy[i] = fabs(n->in[0]->y[i]);
    free(n->s);
    n->s = qc_alloc((size_t)n->out[0]->n * sizeof *n->s + 8);
    const void *in[64] = {dy};
    void *out[1] = {n->s};
    qc_twin_run(n->twin, in, out);
    free(dy);
    if (plain(k) && fits_exactly(n, n->s, 1))
      break;
    double c = qc_sum_error(k, n->compute, overlap(n, plane) - 1);
    for (int64_t i = 0; i < n->out[0]->n; i++)
      n->out[0]->e[i] = c * n->s[i];
    break;
  }
  default:
    add_picked_error(n);
  }
}
