/* loss_direct.c -- cross-entropy from logits, and its gradient.
 *
 *   lse = m + ln sum exp(x - m), m = max x      loss = lse - (1 - smoothing) x[label] - smoothing mean x
 *   dx = g (exp(x - lse) - (1 - smoothing) [label] - smoothing / C), g = dy or dy / count */
#include "direct.h"

typedef struct problem {
  cpu_tensor x, labels, loss, lse, count, dy, dx;
  const qn_entropy *a;
  int64_t classes, rows;
} problem;

/* The index of a row: its position among labels, which have extent 1 along the axis. */
static void row_index(const problem *v, int64_t row, int64_t *index) { cpu_place(row, v->labels.rank, v->labels.dim, index); }
static int64_t at(const cpu_tensor *t, const int64_t *index)      /* t has 1 in some dims */
{
  int64_t offset = 0;
  for (int32_t d = 0; d < t->rank; d++) offset += t->dim[d] == 1 ? 0 : index[d] * t->stride[d];
  return offset;
}
static int64_t label_of(const problem *v, const int64_t *index)
{
  return qn_load_i64(cpu_at(&v->labels, at(&v->labels, index)), v->labels.dtype);
}
static long double logit(const problem *v, int64_t *index, int64_t class)
{
  index[v->a->axis] = class;
  return cpu_get(&v->x, cpu_offset(v->x.rank, index, v->x.stride));
}

/* Also writes the row's lse and loss. */
static long double row_loss(const problem *v, int64_t row)
{
  int64_t index[QN_MAX_RANK];
  row_index(v, row, index);
  const int64_t label = label_of(v, index), lse_at = v->lse.p ? at(&v->lse, index) : 0;
  const int64_t loss_at = v->a->reduction == QN_REDUCTION_NONE ? at(&v->loss, index) : -1;
  long double lse = 0, loss = 0;
  if (label != v->a->ignore) {
    long double m = -INFINITY, s = 0;
    cpu_sum all = { 0 };
    for (int64_t j = 0; j < v->classes; j++) m = fmaxl(m, logit(v, index, j));
    if (m == -INFINITY) m = 0;
    for (int64_t j = 0; j < v->classes; j++) s += expl(logit(v, index, j) - m);
    lse = m + logl(s);
    loss = lse - (label >= 0 && label < v->classes && v->a->smoothing < 1 ? (1 - v->a->smoothing) * logit(v, index, label) : 0);
    for (int64_t j = 0; j < v->classes && v->a->smoothing > 0; j++) cpu_sum_add(&all, (double)logit(v, index, j));
    if (v->a->smoothing > 0) loss -= v->a->smoothing * cpu_sum_value(&all) / v->classes;
  }
  if (v->lse.p) cpu_put(&v->lse, lse_at, (double)lse);
  if (loss_at >= 0) cpu_put(&v->loss, loss_at, (double)loss);
  return loss;
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  problem v = {
    .x = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_X, 0), .labels = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_LABELS, 0),
    .loss = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_LOSS, 0), .lse = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_LSE, 0),
    .count = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_COUNT, 0), .a = ((const cpu_kept *)p->state)->attr,
  };
  v.classes = v.x.dim[v.a->axis];
  v.rows = v.labels.elements;
  int64_t count = 0;
  for (int64_t row = 0; row < v.rows; row++) {
    int64_t index[QN_MAX_RANK];
    row_index(&v, row, index);
    count += label_of(&v, index) != v.a->ignore;
  }
  if (v.count.p) cpu_put(&v.count, 0, (double)count);
  if (v.a->reduction == QN_REDUCTION_NONE) {
#pragma omp parallel for num_threads(cpu_team(launch, v.rows, v.classes * 16))
    for (int64_t row = 0; row < v.rows; row++) row_loss(&v, row);
    return QN_OK;
  }
  long double sum = 0;
  for (int64_t row = 0; row < v.rows; row++) sum += row_loss(&v, row);
  cpu_put(&v.loss, 0, (double)(v.a->reduction == QN_REDUCTION_MEAN ? sum / count : sum));
  return QN_OK;
}

static void row_gradient(const problem *v, int64_t row)
{
  int64_t index[QN_MAX_RANK];
  row_index(v, row, index);
  const int64_t label = label_of(v, index);
  const long double lse = cpu_get(&v->lse, at(&v->lse, index)), smoothing = v->a->smoothing;
  long double g = cpu_get(&v->dy, at(&v->dy, index));
  if (v->a->reduction == QN_REDUCTION_MEAN) g /= cpu_get(&v->count, 0);
  for (int64_t j = 0; j < v->classes; j++) {
    long double dx = 0;
    index[v->a->axis] = j;
    if (label != v->a->ignore) dx = g * (expl(logit(v, index, j) - lse) - (j == label ? 1 - smoothing : 0) - smoothing / v->classes);
    cpu_put(&v->dx, cpu_offset(v->dx.rank, index, v->dx.stride), (double)dx);
  }
}

static qn_status backward(const qn_prepared *p, const qn_launch *launch)
{
  problem v = {
    .dy = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_DY, 0),
        .x = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_X, 0),
        .labels = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_LABELS, 0),
        .lse = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_LSE, 0),
        .count = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_COUNT, 0),
        .dx = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_DX, 0), .a = ((const cpu_kept *)p->state)->attr,
  };
  v.classes = v.x.dim[v.a->axis];
  v.rows = v.labels.elements;
#pragma omp parallel for num_threads(cpu_team(launch, v.rows, v.classes * 16))
  for (int64_t row = 0; row < v.rows; row++) row_gradient(&v, row);
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_CROSS_ENTROPY, forward),
  CPU_DIRECT_ROW(QN_OP_CROSS_ENTROPY_BACKWARD, backward),
};
const qn_engine_list cpu_loss_direct = { row, sizeof row / sizeof *row };
