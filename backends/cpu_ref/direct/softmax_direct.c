/* softmax_direct.c -- softmax, log-softmax and their gradients along one dim, a row per thread.
 *
 *   softmax       y = exp(x - m) / s        dx = y (dy - sum y dy)        m = max x,  s = sum exp(x - m)
 *   log_softmax   y = x - m - ln s          dx = dy - exp(y) sum dy
 *
 * A row with NaN or +Inf, or one all -Inf, has s = NaN, and so is NaN throughout. */
#include "direct.h"

/* The rows of a tensor: its other dims, enumerated as one. */
typedef struct rows {
  int32_t axis;
  int64_t length, count;
} rows;

static rows rows_of(const qn_prepared *p, const cpu_tensor *t)
{
  const cpu_kept *kept = p->state;
  const int64_t axis = ((const qn_axis *)kept->attr)->axis;
  rows r;
  r.axis = (int32_t)(axis < 0 ? axis + t->rank : axis);
  r.length = t->dim[r.axis];
  r.count = t->elements / r.length;
  return r;
}

/* Offset of the i-th row of t. */
static int64_t row_offset(const cpu_tensor *t, const rows *r, int64_t i)
{
  int64_t offset = 0;
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    if (d == r->axis) continue;
    offset += i % t->dim[d] * t->stride[d];
    i /= t->dim[d];
  }
  return offset;
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const int logarithm = kept->op == QN_OP_LOG_SOFTMAX;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_SOFTMAX_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_SOFTMAX_Y, 0);
  const rows r = rows_of(p, &x);

#pragma omp parallel for num_threads(cpu_team(launch, r.count, r.length * 16))
  for (int64_t i = 0; i < r.count; i++) {
    const int64_t from = row_offset(&x, &r, i), to = row_offset(&y, &r, i);
    const int64_t x_step = x.stride[r.axis], y_step = y.stride[r.axis];
    long double m = -INFINITY, s = 0;
    for (int64_t j = 0; j < r.length; j++) m = fmaxl(m, cpu_get(&x, from + j * x_step));
    for (int64_t j = 0; j < r.length; j++) s += expl(cpu_get(&x, from + j * x_step) - m);
    for (int64_t j = 0; j < r.length; j++) {
      const long double centred = cpu_get(&x, from + j * x_step) - m;
      cpu_put(&y, to + j * y_step, (double)(logarithm ? centred - logl(s) : expl(centred) / s));
    }
  }
  return QN_OK;
}

static qn_status backward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const int logarithm = kept->op == QN_OP_LOG_SOFTMAX_BACKWARD;
  const cpu_tensor y = cpu_tensor_of(p, launch, QN_ROLE_SOFTMAX_BACKWARD_Y, 0);
  const cpu_tensor dy = cpu_tensor_of(p, launch, QN_ROLE_SOFTMAX_BACKWARD_DY, 0);
  const cpu_tensor dx = cpu_tensor_of(p, launch, QN_ROLE_SOFTMAX_BACKWARD_DX, 0);
  const rows r = rows_of(p, &y);

#pragma omp parallel for num_threads(cpu_team(launch, r.count, r.length * 16))
  for (int64_t i = 0; i < r.count; i++) {
    const int64_t from = row_offset(&y, &r, i), by = row_offset(&dy, &r, i), to = row_offset(&dx, &r, i);
    const int64_t y_step = y.stride[r.axis], dy_step = dy.stride[r.axis], dx_step = dx.stride[r.axis];
    cpu_sum sum = { 0 };
    for (int64_t j = 0; j < r.length; j++) {
      if (logarithm) cpu_sum_add(&sum, cpu_get(&dy, by + j * dy_step));
      else cpu_sum_add_product(&sum, cpu_get(&y, from + j * y_step), cpu_get(&dy, by + j * dy_step));
    }
    const long double t = cpu_sum_total(&sum);
    for (int64_t j = 0; j < r.length; j++) {
      const long double yj = cpu_get(&y, from + j * y_step), dyj = cpu_get(&dy, by + j * dy_step);
      cpu_put(&dx, to + j * dx_step, (double)(logarithm ? dyj - expl(yj) * t : yj * (dyj - t)));
    }
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_SOFTMAX, forward),
  CPU_DIRECT_ROW(QN_OP_LOG_SOFTMAX, forward),
  CPU_DIRECT_ROW(QN_OP_SOFTMAX_BACKWARD, backward),
  CPU_DIRECT_ROW(QN_OP_LOG_SOFTMAX_BACKWARD, backward),
};
const qn_engine_list cpu_softmax_direct = { row, sizeof row / sizeof *row };
