/* norm_columns.c -- normalization and its gradients, where the fastest dim is not normalized over and all others are: batch
 * norm with channels last, or by activation.
 *
 *   y = (x - mean) rstd scale + shift        dx = rstd (g - mean g - h mean(g h)), h = (x - mean) rstd, g = dy scale
 *
 * A column has statistics of its own; what is read are rows. A chunk of them, which stays in the cache, gives each column's sum and its
 * squares about the chunk's own mean; the chunks' are joined in order, so that threads change nothing:
 *   sum (x - mean)^2 = sum over chunks of their squares + n_k (mean_k - mean)^2. */
#include "convert.h"
#include "cpu_ref.h"

enum { BAND = 1024,                       /* columns at a time */
       CHUNK = 16384, LEAST_ROWS = 8 };   /* elements of a chunk, and rows however long */
enum { X, Y, DY, SCALE, SHIFT, MEAN, RSTD, VAR, RUNNING_MEAN, RUNNING_VAR, NEW_MEAN, NEW_VAR, DSCALE, DSHIFT, TENSORS };
enum { A_MEAN, A_RSTD, A_SCALE, A_SHIFT, A_SUM, A_ALONG, ARRAYS };         /* a number for each column */

typedef struct problem {
  bool     backward, centred, given;
  int64_t  rows, columns, part;           /* part: rows of a chunk */
  double   eps, momentum;
  int32_t  value[TENSORS];                /* -1: absent */
  uint32_t dtype[TENSORS];
  int64_t  step[TENSORS];                 /* from column to column */
  qn_nest  nest;                          /* the rows of x, y, dy */
} problem;

static int64_t chunks_of(const problem *p) { return qn_ceil_div(p->rows, p->part); }

/* ---- loops ----------------------------------------------------------------------------------------------- */

static void add(real *sum, const real *x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) sum[i] += x[i];
}

static void add_squares(real *sum, const real *x, const real *from, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) sum[i] += (x[i] - from[i]) * (x[i] - from[i]);
}

static void add_along(real *sum, real *along, const real *dy, const real *x, const real *mean, const real *rstd, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    sum[i] += dy[i];
    along[i] += dy[i] * ((x[i] - mean[i]) * rstd[i]);
  }
}

static void normalize(real *y, const real *x, const real *mean, const real *rstd, const real *scale, const real *shift, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean[i]) * rstd[i] * scale[i] + shift[i];
}

/* sum, along: means of g and g h */
static void gradient(real *dx, const real *dy, const real *x, const real *mean, const real *rstd, const real *scale,
                     const real *sum, const real *along, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = rstd[i] * (dy[i] * scale[i] - (sum[i] + (x[i] - mean[i]) * rstd[i] * along[i]));
}

/* ---- a chunk ------------------------------------------------------------------------------------------------ */

typedef struct work {
  const problem *p;
  void *const *ptr;
  real  *array;                          /* [ARRAYS, columns] */
  real  *found;                          /* [chunks, 2, columns]: sums, and squares or sums of dy h */
} work;

static real *array_of(const work *w, int which) { return w->array + which * w->p->columns; }

/* n elements of t from column i of a row on: where they are, or in buffer. */
static const real *piece(const work *w, int t, const qn_walk *row, int64_t i, int64_t n, real *buffer)
{
  const char *from = (const char *)w->ptr[w->p->value[t]] + (row->offset[t] + i) * qn_kit_bytes(w->p->dtype[t]);
  if (w->p->dtype[t] == CPU_REAL) return (const real *)(const void *)from;
  row_to_real(buffer, from, w->p->dtype[t], n);
  return buffer;
}

#define EACH_ROW(p, chunk, row)                                                                                            \
  for (int64_t r_ = (chunk) * (p)->part, end_ = (qn_walk_begin(&row, &(p)->nest, (p)->nest.rank, r_), qn_min_i64(r_ + (p)->part, (p)->rows)); \
       r_ < end_; r_++, qn_walk_next(&row))

static void look(const work *w, int64_t chunk)
{
  const problem *p = w->p;
  real *sum = w->found + chunk * 2 * p->columns, *second = sum + p->columns, from[BAND], given[BAND], mean[BAND];
  const real rows = (real)(qn_min_i64((chunk + 1) * p->part, p->rows) - chunk * p->part);
  qn_walk row;
  memset(sum, 0, (size_t)(2 * p->columns) * sizeof *sum);
  for (int64_t i = 0; i < p->columns; i += BAND) {
    const int64_t n = qn_min_i64(BAND, p->columns - i);
    if (p->backward) {
      EACH_ROW(p, chunk, row)
        add_along(sum + i, second + i, piece(w, DY, &row, i, n, given), piece(w, X, &row, i, n, from), array_of(w, A_MEAN) + i, array_of(w, A_RSTD) + i, n);
      continue;
    }
    if (p->centred) EACH_ROW(p, chunk, row) add(sum + i, piece(w, X, &row, i, n, from), n);
    for (int64_t k = 0; k < n; k++) mean[k] = sum[i + k] / rows;
    EACH_ROW(p, chunk, row) add_squares(second + i, piece(w, X, &row, i, n, from), mean, n);
  }
}

static void write(const work *w, int64_t chunk)
{
  const problem *p = w->p;
  real from[BAND], given[BAND], to[BAND];
  qn_walk row;
  for (int64_t i = 0; i < p->columns; i += BAND) {
    const int64_t n = qn_min_i64(BAND, p->columns - i);
    const real *mean = array_of(w, A_MEAN) + i, *rstd = array_of(w, A_RSTD) + i, *scale = array_of(w, A_SCALE) + i;
    EACH_ROW(p, chunk, row) {
      char *at = (char *)w->ptr[p->value[Y]] + (row.offset[Y] + i) * qn_kit_bytes(p->dtype[Y]);
      real *y = p->dtype[Y] == CPU_REAL ? (real *)(void *)at : to;
      const real *x = piece(w, X, &row, i, n, from);
      if (p->backward) gradient(y, piece(w, DY, &row, i, n, given), x, mean, rstd, scale, array_of(w, A_SUM) + i, array_of(w, A_ALONG) + i, n);
      else normalize(y, x, mean, rstd, scale, array_of(w, A_SHIFT) + i, n);
      if (y == to) row_from_real(at, to, p->dtype[Y], n);
    }
  }
}

/* ---- a column ------------------------------------------------------------------------------------------------ */

static char *place(const work *w, int t, int64_t column)
{
  return w->p->value[t] < 0 ? NULL : (char *)w->ptr[w->p->value[t]] + column * w->p->step[t] * qn_kit_bytes(w->p->dtype[t]);
}
static double number(const work *w, int t, int64_t column, double absent)
{
  const char *at = place(w, t, column);
  return at ? qn_load_f64(at, w->p->dtype[t]) : absent;
}
static void put(const work *w, int t, int64_t column, double x)
{
  char *at = place(w, t, column);
  if (at) qn_store_f64(at, w->p->dtype[t], x);
}

/* The k-th chunk's sum, or what stands behind it. */
static double found(const work *w, int64_t k, int second, int64_t column)
{
  return (double)w->found[(2 * k + second) * w->p->columns + column];
}

static void settle_forward(const work *w, int64_t column)
{
  const problem *p = w->p;
  const double n = (double)p->rows, m = p->momentum;
  double mean = number(w, MEAN, column, 0), var = number(w, VAR, column, 0);
  if (!p->given) {
    mean = var = 0;
    for (int64_t k = 0; k < chunks_of(p) && p->centred; k++) mean += found(w, k, 0, column);
    mean /= n;
    for (int64_t k = 0; k < chunks_of(p); k++) {
      const double rows = (double)(qn_min_i64((k + 1) * p->part, p->rows) - k * p->part);
      const double away = p->centred ? (double)((real)found(w, k, 0, column) / (real)rows) - mean : 0;
      var += found(w, k, 1, column) + rows * away * away;
    }
    var /= n;
    put(w, NEW_MEAN, column, (1 - m) * number(w, RUNNING_MEAN, column, 0) + m * mean);
    put(w, NEW_VAR, column, (1 - m) * number(w, RUNNING_VAR, column, 0) + m * (n > 1 ? var * n / (n - 1) : var));
    put(w, MEAN, column, mean);
  }
  const double rstd = 1 / sqrt(var + p->eps);
  put(w, RSTD, column, rstd);
  array_of(w, A_MEAN)[column] = (real)mean;
  array_of(w, A_RSTD)[column] = (real)rstd;
  array_of(w, A_SHIFT)[column] = (real)number(w, SHIFT, column, 0);
}

static void settle_backward(const work *w, int64_t column)
{
  const double given = number(w, SCALE, column, 1), scale = isinf(given) ? NAN : given;      /* whatever the signs: Inf - Inf */
  double sum = 0, along = 0, n = (double)w->p->rows;
  for (int64_t k = 0; k < chunks_of(w->p); k++) {
    sum += found(w, k, 0, column);
    along += found(w, k, 1, column);
  }
  put(w, DSHIFT, column, sum);
  put(w, DSCALE, column, along);
  array_of(w, A_SUM)[column] = (real)(w->p->centred ? scale * sum / n : 0);
  array_of(w, A_ALONG)[column] = (real)(scale * along / n);
}

/* ---- run ------------------------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_norm_columns_run);
qn_status CPU_NAME(cpu_norm_columns_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  real *array = launch->workspace;
  const work w = { .p = p, .ptr = launch->ptr, .array = array, .found = array + ARRAYS * p->columns };
  const int64_t chunks = chunks_of(p);
  const int threads = (int)qn_min_i64(cpu_threads(launch, p->rows * p->columns * 4), chunks);
  for (int64_t c = 0; c < p->columns; c++) {
    array_of(&w, A_SCALE)[c] = (real)number(&w, SCALE, c, 1);
    if (p->backward) array_of(&w, A_MEAN)[c] = (real)number(&w, MEAN, c, 0), array_of(&w, A_RSTD)[c] = (real)number(&w, RSTD, c, 1);
  }
  if (!p->given) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t k = 0; k < chunks; k++) look(&w, k);
  }
  for (int64_t c = 0; c < p->columns; c++) {
    if (p->backward) settle_backward(&w, c);
    else settle_forward(&w, c);
  }
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t k = 0; k < chunks; k++) write(&w, k);
  return QN_OK;
}

/* ---- prepare ----------------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static const char *const names[TENSORS] = { "x", "y", "dy", "scale", "shift", "mean", "rstd", "var", "running_mean", "running_var",
                                            "new_mean", "new_var", "dscale", "dshift" };

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *node = &request->op[0];
  const qn_norm *norm = node->attr;
  const qn_norm_roles a = qn_norm_roles_of(node->op);
  const int8_t role[TENSORS] = { a.x, a.y < 0 ? a.dx : a.y, a.dy, a.scale, a.shift, a.mean, a.rstd, a.var, a.running_mean, a.running_var,
                                 a.new_mean, a.new_var, a.dscale, a.dshift };
  problem p = { .backward = a.dy >= 0, .given = a.var >= 0, .rows = 1, .eps = norm->eps, .momentum = norm->momentum,
                .centred = node->op != QN_OP_RMS_NORM && node->op != QN_OP_RMS_NORM_BACKWARD };
  const qn_value *v[TENSORS];
  qn_nest across = { .n = TENSORS };
  p.nest.n = 3;
  for (int t = 0; t < TENSORS; t++) {
    p.value[t] = qn_role_at(node, role[t]);
    v[t] = p.value[t] < 0 ? NULL : &request->value[p.value[t]];
    if (v[t]) p.dtype[t] = v[t]->dtype;
    if (v[t] && (v[t]->dtype == QN_F64) != (CPU_REAL == QN_F64))
      return qn_refuse(prepared, "computes in " CPU_REAL_NAME, names[t], CPU_REALS, "%s", qn_kit_name(v[t]->dtype));
  }
  const qn_value *x = v[X];
  for (int32_t d = 0; d < x->rank; d++) {
    const bool walked = norm->mask >> d & 1;
    qn_nest *nest = walked ? &p.nest : &across;
    nest->dim[nest->rank] = x->dim[d];
    for (int t = 0; t < nest->n; t++) nest->stride[t][nest->rank] = (v[t] ? v[t] : x)->stride[d];
    for (int t = SCALE; t < TENSORS; t++)
      if (v[t] && v[t]->dim[d] != (walked ? 1 : x->dim[d]))
        return qn_refuse(prepared, "parameters have an element for each column", names[t], "dims normalized over 1, the others x's", "%s", "other dims");
    nest->rank++;
    if (walked) p.rows *= x->dim[d];
  }
  qn_nest_simplify(&p.nest);
  qn_nest_simplify(&across);
  bool side_by_side = across.rank == 1;
  for (int t = X; t <= DY; t++) side_by_side &= across.stride[t][0] == 1;
  if (!side_by_side) return qn_refuse(prepared, "columns must lie side by side", "x", "channels last, or the last dims", "%s", "other strides");
  p.columns = across.dim[0];
  for (int t = 0; t < TENSORS; t++) p.step[t] = across.stride[t][0];
  p.part = qn_max_i64(LEAST_ROWS, CHUNK / p.columns);
  const int64_t kept = p.given ? 0 : 2 * chunks_of(&p);
  prepared->workspace = (uint64_t)((ARRAYS + kept) * p.columns) * sizeof(real);

  return cpu_keep(prepared, &p, sizeof p);
}

#define ROW(name_, run_, anchor)                                                                                 \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
    .prepare = prepare, .run = run_, .release = cpu_release }
#define ROWS(name, run)                                                                                          \
  ROW(name, run, QN_OP_LAYER_NORM), ROW(name, run, QN_OP_LAYER_NORM_BACKWARD), ROW(name, run, QN_OP_RMS_NORM),    \
  ROW(name, run, QN_OP_RMS_NORM_BACKWARD), ROW(name, run, QN_OP_BATCH_NORM), ROW(name, run, QN_OP_BATCH_NORM_BACKWARD), \
  ROW(name, run, QN_OP_BATCH_NORM_INFERENCE),
static const qn_engine row[] = { CPU_COPIES(ROWS, "columns" CPU_REAL_SUFFIX, cpu_norm_columns_run) };
const qn_engine_list cpu_norm_columns = { row, sizeof row / sizeof *row };
#endif
