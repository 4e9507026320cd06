/* loss_rows.c -- cross-entropy and its gradient in f32 (loss_rows_f64.c: in f64), where the classes of a row are contiguous.
 *
 * A row is done by one thread, in one pass, span by span: each span's maximum and sum of exponentials are merged into the
 * row's. Reduced losses are stored per row and added in row order, so that the number of threads changes nothing. */
#include "cpu_ref.h"
#include "logits.h"

enum { SPAN = 2048 };
enum { X, DX, LABELS, LOSS, LSE, COUNT, TENSORS };        /* in the gradient, LOSS is dy */

typedef struct problem {
  qn_entropy a;
  bool     backward;
  int64_t  rows, classes;
  int32_t  value[TENSORS];                /* -1: absent */
  uint32_t dtype[TENSORS];
  qn_nest  nest;                          /* rows: every dim but the axis */
} problem;

/* ---- loops ----------------------------------------------------------------------------------------------- */

/* In double if real has not the range. */
static double sum_of(const real *x, int64_t n)
{
  real s = 0;
#pragma omp simd reduction(+: s)
  for (int64_t i = 0; i < n; i++) s += x[i];
  if (isfinite(s)) return (double)s;
  double wide = 0;
  for (int64_t i = 0; i < n; i++) wide += (double)x[i];
  return wide;
}

/* ---- a row ------------------------------------------------------------------------------------------------- */

typedef struct place { const problem *p; char *at[TENSORS]; } place;

static const real *span_of(const place *w, int64_t i, int64_t n, real *buffer)
{
  return logits_open(w->at[X] + i * qn_kit_bytes(w->p->dtype[X]), w->p->dtype[X], n, buffer);
}

static double forward_row(const place *w)
{
  const problem *p = w->p;
  const int64_t label = qn_load_i64(w->at[LABELS], p->dtype[LABELS]);
  real buffer[SPAN], m = -INFINITY;
  double s = 0, sum = 0, lse = 0, loss = 0;
  if (label != p->a.ignore) {
    for (int64_t i = 0; i < p->classes; i += SPAN) {
      const int64_t n = qn_min_i64(SPAN, p->classes - i);
      const real *x = span_of(w, i, n, buffer), next = logits_largest(x, m, n), from = next == -INFINITY ? 0 : next;
      s = (s == 0 ? 0 : s * exp((double)m - from)) + (double)logits_sum_of_exp(x, from, n);
      m = next;
      if (p->a.smoothing > 0) sum += sum_of(x, n);
    }
    lse = (m == -INFINITY ? 0 : m) + log(s);
    loss = lse;
    if (label >= 0 && label < p->classes && p->a.smoothing < 1)
      loss -= (1 - p->a.smoothing) * qn_load_f64(w->at[X] + label * qn_kit_bytes(p->dtype[X]), p->dtype[X]);
    if (p->a.smoothing > 0) loss -= p->a.smoothing / (double)p->classes * sum;
  }
  if (w->at[LSE]) *(real *)(void *)w->at[LSE] = (real)lse;
  return loss;
}

static void backward_row(const place *w)
{
  const problem *p = w->p;
  const int64_t label = qn_load_i64(w->at[LABELS], p->dtype[LABELS]), bytes = qn_kit_bytes(p->dtype[DX]);
  real buffer[SPAN], out[SPAN], g = *(const real *)(const void *)w->at[LOSS];
  const real lse = *(const real *)(const void *)w->at[LSE], spread = (real)(p->a.smoothing / (double)p->classes);
  if (p->a.reduction == QN_REDUCTION_MEAN) g /= *(const real *)(const void *)w->at[COUNT];
  for (int64_t i = 0; i < p->classes; i += SPAN) {
    const int64_t n = qn_min_i64(SPAN, p->classes - i);
    if (label == p->a.ignore) {
      memset(w->at[DX] + i * bytes, 0, (size_t)(n * bytes));
      continue;
    }
    real *dx = p->dtype[DX] == CPU_REAL ? (real *)(void *)w->at[DX] + i : out;
    const real *x = span_of(w, i, n, buffer);
    const bool here = label >= i && label < i + n;
    const real at_label = here ? g * ((logits_exp(x[label - i] - lse) - (real)(1 - p->a.smoothing)) - spread) : 0;
    logits_gradient(dx, x, lse, g, spread, n);
    if (here) dx[label - i] = at_label;
    if (dx == out) row_from_real(w->at[DX] + i * bytes, out, p->dtype[DX], n);
  }
}

/* ---- run ------------------------------------------------------------------------------------------------------- */

static void run_rows(const problem *p, const qn_launch *launch, int64_t first, int64_t end, double *losses)
{
  qn_walk walk;
  place w = { .p = p };
  qn_walk_begin(&walk, &p->nest, p->nest.rank, first);
  for (int64_t row = first; row < end; row++, qn_walk_next(&walk)) {
    for (int t = 0; t < TENSORS; t++)
      w.at[t] = p->value[t] < 0 ? NULL : (char *)launch->ptr[p->value[t]] + walk.offset[t] * qn_kit_bytes(p->dtype[t]);
    if (p->backward) {
      backward_row(&w);
      continue;
    }
    const double loss = forward_row(&w);
    if (losses) losses[row] = loss;
    else *(real *)(void *)w.at[LOSS] = (real)loss;
  }
}

static int64_t count_rows(const problem *p, const qn_launch *launch)
{
  int64_t count = 0;
  qn_walk walk;
  qn_walk_begin(&walk, &p->nest, p->nest.rank, 0);
  for (int64_t row = 0; row < p->rows; row++, qn_walk_next(&walk))
    count += qn_load_i64((char *)launch->ptr[p->value[LABELS]] + walk.offset[LABELS] * qn_kit_bytes(p->dtype[LABELS]),
                         p->dtype[LABELS]) != p->a.ignore;
  return count;
}

CPU_RUNS(cpu_loss_rows_run);
qn_status CPU_NAME(cpu_loss_rows_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  double *losses = !p->backward && p->a.reduction != QN_REDUCTION_NONE ? launch->workspace : NULL;
  const int64_t threads = qn_min_i64(cpu_threads(launch, p->rows * p->classes * 4), p->rows), share = qn_ceil_div(p->rows, threads);
#pragma omp parallel for num_threads((int)threads) schedule(static, 1) if (threads > 1)
  for (int64_t first = 0; first < p->rows; first += share)
    run_rows(p, launch, first, qn_min_i64(first + share, p->rows), losses);
  if (p->backward || (!losses && p->value[COUNT] < 0)) return QN_OK;
  const int64_t count = count_rows(p, launch);
  if (p->value[COUNT] >= 0) *(real *)launch->ptr[p->value[COUNT]] = (real)count;
  if (!losses) return QN_OK;
  double sum = 0;
  for (int64_t row = 0; row < p->rows; row++) sum += losses[row];
  *(real *)launch->ptr[p->value[LOSS]] = (real)(p->a.reduction == QN_REDUCTION_MEAN ? sum / (double)count : sum);
  return QN_OK;
}

/* ---- prepare ----------------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static const uint8_t forward_role[TENSORS] = { QN_ROLE_CROSS_ENTROPY_X, 255, QN_ROLE_CROSS_ENTROPY_LABELS, QN_ROLE_CROSS_ENTROPY_LOSS,
                                               QN_ROLE_CROSS_ENTROPY_LSE, QN_ROLE_CROSS_ENTROPY_COUNT };
static const uint8_t backward_role[TENSORS] = { QN_ROLE_CROSS_ENTROPY_BACKWARD_X, QN_ROLE_CROSS_ENTROPY_BACKWARD_DX,
  QN_ROLE_CROSS_ENTROPY_BACKWARD_LABELS, QN_ROLE_CROSS_ENTROPY_BACKWARD_DY, QN_ROLE_CROSS_ENTROPY_BACKWARD_LSE,
  QN_ROLE_CROSS_ENTROPY_BACKWARD_COUNT };

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  problem p = { .a = *(const qn_entropy *)op->attr, .backward = op->op == QN_OP_CROSS_ENTROPY_BACKWARD, .rows = 1 };
  const uint8_t *role = p.backward ? backward_role : forward_role;
  const qn_value *v[TENSORS];
  for (int t = 0; t < TENSORS; t++) {
    p.value[t] = role[t] == 255 ? -1 : qn_role(op, role[t]);
    v[t] = p.value[t] < 0 ? NULL : &request->value[p.value[t]];
    if (v[t]) p.dtype[t] = v[t]->dtype;
  }
  const qn_value *x = v[X];
  if ((x->dtype == QN_F64) != (CPU_REAL == QN_F64))
    return qn_refuse(prepared, "computes in " CPU_REAL_NAME, "x", CPU_REALS, "%s", qn_kit_name(x->dtype));
  for (int t = X; t <= DX; t++)
    if (v[t] && v[t]->stride[p.a.axis] != 1 && x->dim[p.a.axis] > 1)
      return qn_refuse(prepared, "the classes of a row must be contiguous", t == X ? "x" : "dx", "stride 1", "%lld",
                       (long long)v[t]->stride[p.a.axis]);
  p.classes = x->dim[p.a.axis];
  p.nest.n = TENSORS;
  for (int32_t d = 0; d < x->rank; d++) {
    if (d == p.a.axis) continue;
    p.nest.dim[p.nest.rank] = x->dim[d];
    for (int t = 0; t < TENSORS; t++) p.nest.stride[t][p.nest.rank] = v[t] && v[t]->dim[d] > 1 ? v[t]->stride[d] : 0;
    p.nest.rank++;
    p.rows *= x->dim[d];
  }
  qn_nest_simplify(&p.nest);
  if (!p.backward && p.a.reduction != QN_REDUCTION_NONE) prepared->workspace = (uint64_t)p.rows * sizeof(double);

  return cpu_keep(prepared, &p, sizeof p);
}

#define ROW(name_, run_, anchor)                                                                                 \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
    .prepare = prepare, .run = run_, .release = cpu_release }
#define ROWS(name, run) ROW(name, run, QN_OP_CROSS_ENTROPY), ROW(name, run, QN_OP_CROSS_ENTROPY_BACKWARD),
static const qn_engine row[] = { CPU_COPIES(ROWS, "rows" CPU_REAL_SUFFIX, cpu_loss_rows_run) };
const qn_engine_list cpu_loss_rows = { row, sizeof row / sizeof *row };
#endif
