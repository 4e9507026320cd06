/* loss_direct.c -- cross-entropy from logits or log-probabilities, and its gradient.
 *
 *   lse = m + ln sum exp(x - m), m = max x; 0 for log-probabilities      loss = sum t w (lse - x)
 *   dx = g (exp(x - lse) sum t w - t w), for log-probabilities -g t w; g = dy or dy / count
 *   dprobabilities = g (1 - smoothing) w (lse - x), 0 where (1 - smoothing) w is 0
 *   t = (1 - smoothing) [label] + smoothing / C, or with probabilities in place of [label]; terms whose t or w is 0 are left out */
#include <stdbool.h>
#include "direct.h"

typedef struct problem {
  cpu_tensor x, labels, probabilities, weights, loss, lse, count, dy, dx;
  const qn_entropy *a;
  int64_t classes, rows, dim[QN_MAX_RANK];                /* dim: x's, 1 along the axis */
} problem;

static void row_index(const problem *v, int64_t row, int64_t *index) { cpu_place(row, v->x.rank, v->dim, index); }
static int64_t at(const cpu_tensor *t, const int64_t *index)      /* t has 1 in some dims */
{
  int64_t offset = 0;
  for (int32_t d = 0; d < t->rank; d++) offset += t->dim[d] == 1 ? 0 : index[d] * t->stride[d];
  return offset;
}
/* -1, a label of no class, for rows that have probabilities. */
static int64_t label_of(const problem *v, const int64_t *index)
{
  return v->labels.p ? qn_load_i64(cpu_at(&v->labels, at(&v->labels, index)), v->labels.dtype) : -1;
}
static bool counts(const problem *v, int64_t label) { return !v->labels.p || label != v->a->ignore; }
static double of_class(const problem *v, const cpu_tensor *t, int64_t *index, int64_t class)
{
  index[v->a->axis] = class;
  return cpu_get(t, cpu_offset(t->rank, index, t->stride));
}
static double weight(const problem *v, int64_t class)      /* 1 for a label of no class */
{
  return v->weights.p && class >= 0 && class < v->classes ? cpu_get(&v->weights, class * v->weights.stride[0]) : 1;
}
/* t w of a class. */
static long double share(const problem *v, int64_t *index, int64_t label, int64_t class)
{
  const long double whole = v->probabilities.p ? of_class(v, &v->probabilities, index, class) : class == label, w = weight(v, class);
  const long double smoothing = v->a->smoothing, t = (smoothing < 1 && whole != 0 ? (1 - smoothing) * whole : 0) + smoothing / v->classes;
  return t != 0 && w != 0 ? t * w : 0;
}

/* Also writes the row's lse and loss. */
static long double row_loss(const problem *v, int64_t row)
{
  int64_t index[QN_MAX_RANK];
  row_index(v, row, index);
  const int64_t label = label_of(v, index), lse_at = v->lse.p ? at(&v->lse, index) : 0;
  const int64_t loss_at = v->a->reduction == QN_REDUCTION_NONE ? at(&v->loss, index) : -1;
  long double lse = 0, loss = 0;
  if (counts(v, label)) {
    if (v->a->input == QN_LOGITS) {
      long double m = -INFINITY, s = 0;
      for (int64_t j = 0; j < v->classes; j++) m = fmaxl(m, of_class(v, &v->x, index, j));
      if (m == -INFINITY) m = 0;
      for (int64_t j = 0; j < v->classes; j++) s += expl(of_class(v, &v->x, index, j) - m);
      lse = m + logl(s);
    }
    const bool known = label >= 0 && label < v->classes, all = v->probabilities.p || v->a->smoothing > 0;
    for (int64_t j = all ? 0 : label; j < (all ? v->classes : known ? label + 1 : label); j++) {
      const long double tw = share(v, index, label, j);
      if (tw != 0) loss += (lse - of_class(v, &v->x, index, j)) * tw;
    }
    if (v->labels.p && !known && v->a->smoothing < 1) loss += (1 - (long double)v->a->smoothing) * lse;
  }
  if (v->lse.p) cpu_put(&v->lse, lse_at, (double)lse);
  if (loss_at >= 0) cpu_put(&v->loss, loss_at, (double)loss);
  return loss;
}

enum { ABSENT = 255 };                    /* a role that the op lacks */

static cpu_tensor tensor_of(const qn_prepared *p, const qn_launch *launch, uint8_t role)
{
  return role == ABSENT ? (cpu_tensor){ 0 } : cpu_tensor_of(p, launch, role, 0);
}

static problem problem_of(const qn_prepared *p, const qn_launch *launch, const uint8_t role[7])
{
  problem v = {
    .x = tensor_of(p, launch, role[0]), .labels = tensor_of(p, launch, role[1]), .probabilities = tensor_of(p, launch, role[2]),
    .weights = tensor_of(p, launch, role[3]), .loss = tensor_of(p, launch, role[4]), .lse = tensor_of(p, launch, role[5]),
    .count = tensor_of(p, launch, role[6]), .a = ((const cpu_kept *)p->state)->attr, .rows = 1,
  };
  v.classes = v.x.dim[v.a->axis];
  for (int32_t d = 0; d < v.x.rank; d++) v.rows *= v.dim[d] = d == v.a->axis ? 1 : v.x.dim[d];
  return v;
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  static const uint8_t role[7] = { QN_ROLE_CROSS_ENTROPY_X, QN_ROLE_CROSS_ENTROPY_LABELS, QN_ROLE_CROSS_ENTROPY_PROBABILITIES,
    QN_ROLE_CROSS_ENTROPY_WEIGHTS, QN_ROLE_CROSS_ENTROPY_LOSS, QN_ROLE_CROSS_ENTROPY_LSE, QN_ROLE_CROSS_ENTROPY_COUNT };
  const problem v = problem_of(p, launch, role);
  long double count = 0, sum = 0;
  for (int64_t row = 0; row < v.rows; row++) {
    int64_t index[QN_MAX_RANK];
    row_index(&v, row, index);
    const int64_t label = label_of(&v, index);
    if (counts(&v, label)) count += weight(&v, label);
  }
  if (v.count.p) cpu_put(&v.count, 0, (double)count);
  if (v.a->reduction == QN_REDUCTION_NONE) {
#pragma omp parallel for num_threads(cpu_team(launch, v.rows, v.classes * 16))
    for (int64_t row = 0; row < v.rows; row++) row_loss(&v, row);
    return QN_OK;
  }
  for (int64_t row = 0; row < v.rows; row++) sum += row_loss(&v, row);
  cpu_put(&v.loss, 0, (double)(v.a->reduction == QN_REDUCTION_MEAN ? sum / count : sum));
  return QN_OK;
}

static void row_gradient(const problem *v, int64_t row)
{
  int64_t index[QN_MAX_RANK];
  row_index(v, row, index);
  const int64_t label = label_of(v, index);
  const bool logits = v->a->input == QN_LOGITS;
  long double g = cpu_get(&v->dy, at(&v->dy, index)), total = 0;        /* total: the sum of t w; without an lse it does not matter */
  const long double lse = logits ? cpu_get(&v->lse, at(&v->lse, index)) : 0;
  if (v->a->reduction == QN_REDUCTION_MEAN) g /= cpu_get(&v->count, 0);
  for (int64_t j = 0; j < v->classes && logits; j++) total += share(v, index, label, j);
  if (logits && v->labels.p && (label < 0 || label >= v->classes)) total += 1 - (long double)v->a->smoothing;
  for (int64_t j = 0; j < v->classes; j++) {
    long double dx = 0;
    if (counts(v, label))
      dx = g * ((total != 0 ? expl(of_class(v, &v->x, index, j) - lse) * total : 0) - share(v, index, label, j));
    index[v->a->axis] = j;
    cpu_put(&v->dx, cpu_offset(v->dx.rank, index, v->dx.stride), (double)dx);
  }
}

static qn_status backward(const qn_prepared *p, const qn_launch *launch)
{
  static const uint8_t role[7] = { QN_ROLE_CROSS_ENTROPY_BACKWARD_X, QN_ROLE_CROSS_ENTROPY_BACKWARD_LABELS,
    QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES, QN_ROLE_CROSS_ENTROPY_BACKWARD_WEIGHTS, QN_ROLE_CROSS_ENTROPY_BACKWARD_DY,
    QN_ROLE_CROSS_ENTROPY_BACKWARD_LSE, QN_ROLE_CROSS_ENTROPY_BACKWARD_COUNT };
  problem v = problem_of(p, launch, role);
  v.dy = v.loss;
  v.dx = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_DX, 0);
#pragma omp parallel for num_threads(cpu_team(launch, v.rows, v.classes * 16))
  for (int64_t row = 0; row < v.rows; row++) row_gradient(&v, row);
  return QN_OK;
}

static void row_of_probabilities(const problem *v, int64_t row)
{
  int64_t index[QN_MAX_RANK];
  row_index(v, row, index);
  long double g = cpu_get(&v->dy, at(&v->dy, index));
  const long double lse = v->a->input == QN_LOGITS ? cpu_get(&v->lse, at(&v->lse, index)) : 0;
  if (v->a->reduction == QN_REDUCTION_MEAN) g /= cpu_get(&v->count, 0);
  for (int64_t j = 0; j < v->classes; j++) {
    const long double w = (1 - (long double)v->a->smoothing) * weight(v, j);
    const long double dp = w != 0 ? g * w * (lse - of_class(v, &v->x, index, j)) : 0;
    index[v->a->axis] = j;
    cpu_put(&v->dx, cpu_offset(v->dx.rank, index, v->dx.stride), (double)dp);
  }
}

static qn_status backward_probabilities(const qn_prepared *p, const qn_launch *launch)
{
  static const uint8_t role[7] = { QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_X, ABSENT, ABSENT,
    QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_WEIGHTS, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_DY,
    QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_LSE, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_COUNT };
  problem v = problem_of(p, launch, role);
  v.dy = v.loss;
  v.dx = cpu_tensor_of(p, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_DPROBABILITIES, 0);
#pragma omp parallel for num_threads(cpu_team(launch, v.rows, v.classes))
  for (int64_t row = 0; row < v.rows; row++) row_of_probabilities(&v, row);
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_CROSS_ENTROPY, forward),
  CPU_DIRECT_ROW(QN_OP_CROSS_ENTROPY_BACKWARD, backward),
  CPU_DIRECT_ROW(QN_OP_CROSS_ENTROPY_BACKWARD_PROBABILITIES, backward_probabilities),
};
const qn_engine_list cpu_loss_direct = { row, sizeof row / sizeof *row };
