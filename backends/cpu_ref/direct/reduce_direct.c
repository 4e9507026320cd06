/* reduce_direct.c -- reductions: y = one number from all of x along some dims, which remain in y as dims of 1. Each output is computed by
 * one thread, row-major in the reduced dims.
 *
 *   variance = sum (x - mean)^2 / (n - correction)   logsumexp = ln sum e^x   any, all: max, min of bool
 *   sum, mean, prod, max, min   norm1 = sum |x|   norm2 = sqrt(sum x^2)   amax = max |x|   argmax, argmin = where, row-major
 *
 * Over nothing: 0, NaN, 1, -Inf, +Inf (integers: least, largest), 0, 0, 0, -1. NaN wins in max, min, amax, and the first
 * NaN in argmax and argmin; else the first of equals. */
#include "direct.h"

/* The part of x that makes one element of y: the reduced dims. */
typedef struct reduction {
  uint32_t   op;                          /* any, all: as reduce_max, reduce_min */
  int        last;                        /* of equal extremes */
  int64_t    correction;
  cpu_tensor x;
  int32_t    rank;                        /* of the reduced dims */
  int64_t    count, dim[QN_MAX_RANK], stride[QN_MAX_RANK];
} reduction;

static int64_t offset_of(const reduction *r, int64_t base, int64_t j)
{
  for (int32_t d = r->rank - 1; d >= 0; d--) {
    base += j % r->dim[d] * r->stride[d];
    j /= r->dim[d];
  }
  return base;
}

/* ---- sums and products ------------------------------------------------------------------------ */

static double variance(const reduction *r, int64_t base)
{
  cpu_sum sum = { 0 };
  for (int64_t j = 0; j < r->count; j++) cpu_sum_add(&sum, cpu_get(&r->x, offset_of(r, base, j)));
  const long double mean = cpu_sum_total(&sum) / r->count;
  long double squares = 0;
  for (int64_t j = 0; j < r->count; j++) {
    const long double far = cpu_get(&r->x, offset_of(r, base, j)) - mean;
    squares += far * far;
  }
  return (double)(squares / qn_max_i64(r->count - r->correction, 0));
}

static double logsumexp(const reduction *r, int64_t base)
{
  double most = -INFINITY;
  for (int64_t j = 0; j < r->count; j++) {
    const double v = cpu_get(&r->x, offset_of(r, base, j));
    if (isnan(v) || v > most) most = v;
  }
  if (!isfinite(most)) return most;
  long double sum = 0;
  for (int64_t j = 0; j < r->count; j++) sum += expl((long double)cpu_get(&r->x, offset_of(r, base, j)) - most);
  return (double)(most + logl(sum));
}

static double floating_sum(const reduction *r, int64_t base)
{
  if (r->op == QN_OP_REDUCE_VARIANCE) return variance(r, base);
  if (r->op == QN_OP_REDUCE_LOGSUMEXP) return logsumexp(r, base);
  cpu_sum sum = { 0 };
  long double squares = 0, product = 1;
  for (int64_t j = 0; j < r->count; j++) {
    const double v = cpu_get(&r->x, offset_of(r, base, j));
    switch (r->op) {
    case QN_OP_REDUCE_NORM1: cpu_sum_add(&sum, fabs(v)); break;
    case QN_OP_REDUCE_NORM2: squares += (long double)v * v; break;     /* no overflow in the wide exponent */
    case QN_OP_REDUCE_PROD:  product *= v; break;
    default:                 cpu_sum_add(&sum, v); break;
    }
  }
  switch (r->op) {
  case QN_OP_REDUCE_MEAN:  return (double)(cpu_sum_total(&sum) / r->count);
  case QN_OP_REDUCE_NORM2: return (double)sqrtl(squares);
  case QN_OP_REDUCE_PROD:  return (double)product;
  default:                 return cpu_sum_value(&sum);
  }
}

static int64_t integer_sum(const reduction *r, int64_t base)           /* modulo 2^64 */
{
  uint64_t sum = r->op == QN_OP_REDUCE_PROD;
  for (int64_t j = 0; j < r->count; j++) {
    const uint64_t v = (uint64_t)qn_load_i64(cpu_at(&r->x, offset_of(r, base, j)), r->x.dtype);
    if (r->op == QN_OP_REDUCE_PROD) sum *= v; else sum += v;
  }
  return (int64_t)sum;
}

/* ---- extremes --------------------------------------------------------------------------------- */

/* Index and value of the extreme; -1 over nothing. */
static int64_t floating_extreme(const reduction *r, int64_t base, double *value)
{
  const int least = r->op == QN_OP_REDUCE_MIN || r->op == QN_OP_ARGMIN;
  int64_t where = -1;
  *value = least ? INFINITY : r->op == QN_OP_REDUCE_AMAX ? 0 : -INFINITY;
  for (int64_t j = 0; j < r->count; j++) {
    const double x = cpu_get(&r->x, offset_of(r, base, j)), v = r->op == QN_OP_REDUCE_AMAX ? fabs(x) : x;
    if (where < 0 || (least ? v < *value : v > *value) || (r->last && v == *value) || (isnan(v) && (r->last || !isnan(*value)))) {
      where = j;
      *value = v;
    }
  }
  return where;
}

static int64_t integer_extreme(const reduction *r, int64_t base, int64_t *value)
{
  const int least = r->op == QN_OP_REDUCE_MIN || r->op == QN_OP_ARGMIN;
  int64_t where = -1;
  *value = least ? qn_largest(r->x.dtype) : qn_least(r->x.dtype);
  for (int64_t j = 0; j < r->count; j++) {
    const int64_t v = qn_load_i64(cpu_at(&r->x, offset_of(r, base, j)), r->x.dtype);
    if (where < 0 || (least ? v < *value : v > *value) || (r->last && v == *value)) {
      where = j;
      *value = v;
    }
  }
  return where;
}

/* ---- run -------------------------------------------------------------------------------------- */

static void reduce_one(const reduction *r, int64_t base, const cpu_tensor *y, int64_t to)
{
  const int whole = !qn_is_float(r->x.dtype);
  double extreme = 0;
  int64_t integer_extreme_value = 0, where;
  switch (r->op) {
  case QN_OP_REDUCE_MAX: case QN_OP_REDUCE_MIN: case QN_OP_REDUCE_AMAX: case QN_OP_ARGMAX: case QN_OP_ARGMIN:
    where = whole ? integer_extreme(r, base, &integer_extreme_value) : floating_extreme(r, base, &extreme);
    if (r->op == QN_OP_ARGMAX || r->op == QN_OP_ARGMIN) qn_store_i64(cpu_at(y, to), y->dtype, where);
    else if (whole) qn_store_i64(cpu_at(y, to), y->dtype, integer_extreme_value);
    else cpu_put(y, to, extreme);
    break;
  default:
    if (whole) qn_store_i64(cpu_at(y, to), y->dtype, qn_wrap(y->dtype, integer_sum(r, base)));
    else cpu_put(y, to, floating_sum(r, base));
    break;
  }
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_axes *axes = kept->attr;
  const uint64_t mask = axes->mask;       /* core has replaced 0 by all dims */
  const cpu_tensor x = cpu_tensor_of(p, launch, 0, 0), y = cpu_tensor_of(p, launch, 1, 0);
  reduction r = { .op = kept->op, .last = axes->last != 0, .correction = axes->correction, .x = x, .count = 1 };
  if (r.op == QN_OP_REDUCE_ANY) r.op = QN_OP_REDUCE_MAX;
  if (r.op == QN_OP_REDUCE_ALL) r.op = QN_OP_REDUCE_MIN;
  for (int32_t d = 0; d < x.rank; d++) {
    if (!(mask >> d & 1)) continue;
    r.dim[r.rank] = x.dim[d];
    r.stride[r.rank++] = x.stride[d];
    r.count *= x.dim[d];
  }

#pragma omp parallel for num_threads(cpu_team(launch, y.elements, r.count * 2))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK];
    cpu_place(i, y.rank, y.dim, index);                   /* 0 in each reduced dim */
    reduce_one(&r, cpu_offset(x.rank, index, x.stride), &y, cpu_offset(y.rank, index, y.stride));
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_REDUCE_SUM, run),
  CPU_DIRECT_ROW(QN_OP_REDUCE_MEAN, run),
  CPU_DIRECT_ROW(QN_OP_REDUCE_PROD, run),
  CPU_DIRECT_ROW(QN_OP_REDUCE_MAX, run),
  CPU_DIRECT_ROW(QN_OP_REDUCE_MIN, run),
  CPU_DIRECT_ROW(QN_OP_REDUCE_NORM1, run),
  CPU_DIRECT_ROW(QN_OP_REDUCE_NORM2, run),
  CPU_DIRECT_ROW(QN_OP_REDUCE_AMAX, run),
  CPU_DIRECT_ROW(QN_OP_ARGMAX, run),
  CPU_DIRECT_ROW(QN_OP_ARGMIN, run),
  CPU_DIRECT_ROW(QN_OP_REDUCE_ANY, run),
  CPU_DIRECT_ROW(QN_OP_REDUCE_ALL, run),
  CPU_DIRECT_ROW(QN_OP_REDUCE_LOGSUMEXP, run),
  CPU_DIRECT_ROW(QN_OP_REDUCE_VARIANCE, run),
};
const qn_engine_list cpu_reduce_direct = { row, sizeof row / sizeof *row };
