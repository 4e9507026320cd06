/* loss_rows.c -- cross-entropy and its gradients in f32 (loss_rows_f64.c: in f64), where the classes of a row are contiguous.
 *
 * A row is done by one thread, in one pass, span by span: each span's maximum and sum of exponentials are merged into the
 * row's. With weights, probabilities or log-probabilities a second pass adds t w (lse - x), in double. Reduced losses are stored
 * per row and added in row order, so that the number of threads changes nothing.
 * Refused: classes, and their weights, that are not contiguous. */
#include "cpu_ref.h"
#include "logits.h"

enum { SPAN = 2048, SHARES = 512 };       /* SHARES: of a span with weights or probabilities */
enum { X, DX, LABELS, LOSS, LSE, COUNT, PROBABILITIES, WEIGHTS, TENSORS };        /* in the gradient, LOSS is dy */

typedef struct problem {
  qn_entropy a;
  bool     backward, weighted;            /* weighted: not the plain case of labels alone and logits */
  bool     by_probabilities;              /* the gradient is by these, and called DX */
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

/* Of a row with probabilities: -1, no class. */
static int64_t label_of(const problem *p, const char *labels) { return labels ? qn_load_i64(labels, p->dtype[LABELS]) : -1; }
static bool counts(const problem *p, const char *labels) { return !labels || label_of(p, labels) != p->a.ignore; }
static double weight(const problem *p, const char *weights, int64_t class)
{
  return weights && class >= 0 && class < p->classes ? (double)((const real *)(const void *)weights)[class] : 1;
}

/* t w of n classes, at most SHARES, from the i-th on. */
static void shares(const place *w, int64_t label, int64_t i, int64_t n, double *tw)
{
  const problem *p = w->p;
  const double spread = p->a.smoothing / (double)p->classes, rest = 1 - p->a.smoothing;
  real buffer[SHARES];
  for (int64_t k = 0; k < n; k++) tw[k] = spread;
  if (w->at[PROBABILITIES] && rest > 0) {
    const uint32_t dtype = p->dtype[PROBABILITIES];
    const real *part = logits_open(w->at[PROBABILITIES] + i * qn_kit_bytes(dtype), dtype, n, buffer);
    for (int64_t k = 0; k < n; k++) tw[k] += part[k] == 0 ? 0 : rest * (double)part[k];
  }
  if (label >= i && label < i + n) tw[label - i] += rest;
  if (!w->at[WEIGHTS]) return;
  const real *weights = (const real *)(const void *)w->at[WEIGHTS] + i;
  for (int64_t k = 0; k < n; k++) tw[k] = tw[k] == 0 || weights[k] == 0 ? 0 : tw[k] * (double)weights[k];
}

/* The sum of t w, and with x of t w (lse - x); a label of no class has x 0 and weight 1. */
static double sum_of_shares(const place *w, int64_t label, const double *lse)
{
  const problem *p = w->p;
  const bool known = label >= 0 && label < p->classes, all = w->at[PROBABILITIES] || p->a.smoothing > 0;
  const int64_t first = all ? 0 : label, end = all ? p->classes : known ? label + 1 : first;
  double tw[SHARES], sum = w->at[LABELS] && !known && p->a.smoothing < 1 ? (1 - p->a.smoothing) * (lse ? *lse : 1) : 0;
  real buffer[SHARES];
  for (int64_t i = first; i < end; i += SHARES) {
    const int64_t n = qn_min_i64(SHARES, end - i);
    shares(w, label, i, n, tw);
    const real *x = lse ? span_of(w, i, n, buffer) : NULL;
    for (int64_t k = 0; k < n; k++)
      if (tw[k] != 0) sum += lse ? (*lse - (double)x[k]) * tw[k] : tw[k];
  }
  return sum;
}

static double forward_row(const place *w)
{
  const problem *p = w->p;
  const int64_t label = label_of(p, w->at[LABELS]);
  real buffer[SPAN], m = -INFINITY;
  double s = 0, sum = 0, lse = 0, loss = 0;
  if (counts(p, w->at[LABELS])) {
    for (int64_t i = 0; i < p->classes && p->a.input == QN_LOGITS; i += SPAN) {
      const int64_t n = qn_min_i64(SPAN, p->classes - i);
      const real *x = span_of(w, i, n, buffer), next = logits_largest(x, m, n), from = next == -INFINITY ? 0 : next;
      s = (s == 0 ? 0 : s * exp((double)m - from)) + (double)logits_sum_of_exp(x, from, n);
      m = next;
      if (p->a.smoothing > 0 && !p->weighted) sum += sum_of(x, n);
    }
    if (p->a.input == QN_LOGITS) lse = (m == -INFINITY ? 0 : m) + log(s);
    if (p->weighted) loss = sum_of_shares(w, label, &lse);
    else {
      loss = lse;
      if (label >= 0 && label < p->classes && p->a.smoothing < 1)
        loss -= (1 - p->a.smoothing) * qn_load_f64(w->at[X] + label * qn_kit_bytes(p->dtype[X]), p->dtype[X]);
      if (p->a.smoothing > 0) loss -= p->a.smoothing / (double)p->classes * sum;
    }
  }
  if (w->at[LSE]) *(real *)(void *)w->at[LSE] = (real)lse;
  return loss;
}

/* With weights, probabilities or log-probabilities. */
static void weighted_gradient(const place *w, int64_t label, real g)
{
  const problem *p = w->p;
  const double total = p->a.input == QN_LOGITS ? sum_of_shares(w, label, NULL) : 0;
  const real lse = total != 0 ? *(const real *)(const void *)w->at[LSE] : 0;
  double tw[SHARES];
  real buffer[SHARES];
  for (int64_t i = 0; i < p->classes; i += SHARES) {
    const int64_t n = qn_min_i64(SHARES, p->classes - i);
    shares(w, label, i, n, tw);
    const real *x = total != 0 ? span_of(w, i, n, buffer) : buffer;
    for (int64_t k = 0; k < n; k++)
      buffer[k] = (real)((double)g * ((total != 0 ? (double)logits_exp(x[k] - lse) * total : 0) - tw[k]));
    row_from_real(w->at[DX] + i * qn_kit_bytes(p->dtype[DX]), buffer, p->dtype[DX], n);
  }
}

static void plain_gradient(const place *w, int64_t label, real g)
{
  const problem *p = w->p;
  const int64_t bytes = qn_kit_bytes(p->dtype[DX]);
  const real lse = w->at[LSE] ? *(const real *)(const void *)w->at[LSE] : 0, spread = (real)(p->a.smoothing / (double)p->classes);
  real buffer[SPAN], out[SPAN];
  for (int64_t i = 0; i < p->classes; i += SPAN) {
    const int64_t n = qn_min_i64(SPAN, p->classes - i);
    real *dx = p->dtype[DX] == CPU_REAL ? (real *)(void *)w->at[DX] + i : out;
    const real *x = span_of(w, i, n, buffer);
    const bool here = label >= i && label < i + n;
    const real at_label = here ? g * ((logits_exp(x[label - i] - lse) - (real)(1 - p->a.smoothing)) - spread) : 0;
    logits_gradient(dx, x, lse, g, spread, n);
    if (here) dx[label - i] = at_label;
    if (dx == out) row_from_real(w->at[DX] + i * bytes, out, p->dtype[DX], n);
  }
}

/* g (1 - smoothing) w (lse - x): by probabilities. */
static void gradient_by_probabilities(const place *w, real g)
{
  const problem *p = w->p;
  const double lse = w->at[LSE] ? (double)*(const real *)(const void *)w->at[LSE] : 0, rest = 1 - p->a.smoothing;
  const double factor = (double)g * rest;
  const real *weights = (const real *)(const void *)w->at[WEIGHTS];
  real buffer[SPAN], out[SPAN];
  for (int64_t i = 0; i < p->classes; i += SPAN) {
    const int64_t n = qn_min_i64(SPAN, p->classes - i);
    const real *x = span_of(w, i, n, buffer);
    if (rest == 0) memset(out, 0, (size_t)n * sizeof *out);
    else if (weights)
#pragma omp simd
      for (int64_t k = 0; k < n; k++) {
        const double share = factor * (double)weights[i + k];
        out[k] = weights[i + k] == 0 ? 0 : (real)(share * (lse - (double)x[k]));
      }
    else
#pragma omp simd
      for (int64_t k = 0; k < n; k++) out[k] = (real)(factor * (lse - (double)x[k]));
    row_from_real(w->at[DX] + i * qn_kit_bytes(p->dtype[DX]), out, p->dtype[DX], n);
  }
}

static void backward_row(const place *w)
{
  const problem *p = w->p;
  real g = *(const real *)(const void *)w->at[LOSS];
  if (p->a.reduction == QN_REDUCTION_MEAN) g /= *(const real *)(const void *)w->at[COUNT];
  if (p->by_probabilities) gradient_by_probabilities(w, g);
  else if (!counts(p, w->at[LABELS])) memset(w->at[DX], 0, (size_t)(p->classes * qn_kit_bytes(p->dtype[DX])));
  else (p->weighted ? weighted_gradient : plain_gradient)(w, label_of(p, w->at[LABELS]), g);   /* the frame of one */
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

/* Their number, or the sum of their labels' weights. */
static double count_rows(const problem *p, const qn_launch *launch)
{
  if (p->value[LABELS] < 0) return (double)p->rows;
  const char *weights = p->value[WEIGHTS] < 0 ? NULL : launch->ptr[p->value[WEIGHTS]];
  double count = 0;
  qn_walk walk;
  qn_walk_begin(&walk, &p->nest, p->nest.rank, 0);
  for (int64_t row = 0; row < p->rows; row++, qn_walk_next(&walk)) {
    const char *labels = (const char *)launch->ptr[p->value[LABELS]] + walk.offset[LABELS] * qn_kit_bytes(p->dtype[LABELS]);
    if (counts(p, labels)) count += weight(p, weights, label_of(p, labels));
  }
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
  const double count = count_rows(p, launch);
  if (p->value[COUNT] >= 0) *(real *)launch->ptr[p->value[COUNT]] = (real)count;
  if (!losses) return QN_OK;
  double sum = 0;
  for (int64_t row = 0; row < p->rows; row++) sum += losses[row];
  *(real *)launch->ptr[p->value[LOSS]] = (real)(p->a.reduction == QN_REDUCTION_MEAN ? sum / count : sum);
  return QN_OK;
}

/* ---- prepare ----------------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static const uint8_t forward_role[TENSORS] = { QN_ROLE_CROSS_ENTROPY_X, 255, QN_ROLE_CROSS_ENTROPY_LABELS, QN_ROLE_CROSS_ENTROPY_LOSS,
                                               QN_ROLE_CROSS_ENTROPY_LSE, QN_ROLE_CROSS_ENTROPY_COUNT, QN_ROLE_CROSS_ENTROPY_PROBABILITIES,
                                               QN_ROLE_CROSS_ENTROPY_WEIGHTS };
static const uint8_t backward_role[TENSORS] = { QN_ROLE_CROSS_ENTROPY_BACKWARD_X, QN_ROLE_CROSS_ENTROPY_BACKWARD_DX,
  QN_ROLE_CROSS_ENTROPY_BACKWARD_LABELS, QN_ROLE_CROSS_ENTROPY_BACKWARD_DY, QN_ROLE_CROSS_ENTROPY_BACKWARD_LSE,
  QN_ROLE_CROSS_ENTROPY_BACKWARD_COUNT, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES, QN_ROLE_CROSS_ENTROPY_BACKWARD_WEIGHTS };

static const uint8_t probabilities_role[TENSORS] = { QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_X,
  QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_DPROBABILITIES, 255, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_DY,
  QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_LSE, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_COUNT, 255,
  QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_WEIGHTS };

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  problem p = { .a = *(const qn_entropy *)op->attr, .backward = op->op != QN_OP_CROSS_ENTROPY,
                .by_probabilities = op->op == QN_OP_CROSS_ENTROPY_BACKWARD_PROBABILITIES, .rows = 1 };
  const uint8_t *role = p.by_probabilities ? probabilities_role : p.backward ? backward_role : forward_role;
  const qn_value *v[TENSORS];
  for (int t = 0; t < TENSORS; t++) {
    p.value[t] = role[t] == 255 ? -1 : qn_role(op, role[t]);
    v[t] = p.value[t] < 0 ? NULL : &request->value[p.value[t]];
    if (v[t]) p.dtype[t] = v[t]->dtype;
  }
  const qn_value *x = v[X];
  if ((x->dtype == QN_F64) != (CPU_REAL == QN_F64))
    return qn_refuse(prepared, "computes in " CPU_REAL_NAME, "x", CPU_REALS, "%s", qn_kit_name(x->dtype));
  for (int t = X; t < TENSORS; t++) {
    const char *const names[TENSORS] = { "x", p.by_probabilities ? "dprobabilities" : "dx",
                                         [PROBABILITIES] = "probabilities", [WEIGHTS] = "weights" };
    const int64_t step = v[t] && names[t] ? v[t]->stride[t == WEIGHTS ? 0 : p.a.axis] : 1;
    if (step != 1 && x->dim[p.a.axis] > 1)
      return qn_refuse(prepared, "the classes of a row must be contiguous", names[t], "stride 1", "%lld", (long long)step);
  }
  p.classes = x->dim[p.a.axis];
  p.weighted = v[PROBABILITIES] || v[WEIGHTS] || p.a.input != QN_LOGITS;
  p.nest.n = TENSORS;
  for (int32_t d = 0; d < x->rank; d++) {
    if (d == p.a.axis) continue;
    p.nest.dim[p.nest.rank] = x->dim[d];
    for (int t = 0; t < TENSORS; t++) p.nest.stride[t][p.nest.rank] = t != WEIGHTS && v[t] && v[t]->dim[d] > 1 ? v[t]->stride[d] : 0;
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
#define ROWS(name, run) ROW(name, run, QN_OP_CROSS_ENTROPY), ROW(name, run, QN_OP_CROSS_ENTROPY_BACKWARD), \
  ROW(name, run, QN_OP_CROSS_ENTROPY_BACKWARD_PROBABILITIES),
static const qn_engine row[] = { CPU_COPIES(ROWS, "rows" CPU_REAL_SUFFIX, cpu_loss_rows_run) };
const qn_engine_list cpu_loss_rows = { row, sizeof row / sizeof *row };
#endif
