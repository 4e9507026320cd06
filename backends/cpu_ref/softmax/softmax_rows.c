/* softmax_rows.c -- softmax, log-softmax and their gradients along one axis, in f32.
 *
 *   softmax       y = e^(x - m) / s         dx = y (dy - t), t = sum y dy
 *   log_softmax   y = x - m - ln s          dx = dy - e^y t, t = sum dy             m = max x, s = sum e^(x - m)
 *
 * If the axis is the fastest dim, rows are done one at a time; otherwise a band of neighbouring rows is walked along the axis with
 * whole vectors across it. f32 is read and written in place: three passes, of which a row that fits the cache pays one. Narrower
 * formats are widened as they are read, and their exponentials computed twice unless the row fits a buffer. Sums: f32 lanes
 * over at most SPAN terms, and these in double. A row is done by one thread. */
#include "kit/convert.h"
#include "cpu_ref.h"
#include "kit/pointwise_math.h"

enum { SPAN = 4096,                       /* elements of a row in a buffer: 16 KB */
       PACKED = 1024,                     /* elements gathered or to be scattered */
       BAND = 128,                        /* rows in a band */
       BURST = 64 };                      /* steps along the axis summed in f32 */

enum { X, DY, Y, TENSORS };               /* forward: X and Y; backward: the forward's y as X, dx as Y */

typedef struct problem {
  uint32_t op;
  bool     logarithm, band;
  int64_t  length;                        /* of the axis */
  int32_t  n;                             /* tensors */
  int32_t  value[TENSORS];
  uint32_t dtype[TENSORS];
  int64_t  bytes[TENSORS], step[TENSORS]; /* step: along the axis, in elements */
  qn_nest  nest;                          /* the other dims; tensors in the order Y, X, DY */
} problem;

/* ---- one row, or a piece of it -------------------------------------------------------------------------- */

static float row_max(const float *x, int64_t n)
{
  v_f32 a = v_all(-INFINITY), b = a;
  int64_t i = 0;
  for (; i + 2 * CPU_LANES <= n; i += 2 * CPU_LANES) {
    a = v_larger(a, v_load(x + i));
    b = v_larger(b, v_load(x + i + CPU_LANES));
  }
  a = v_larger(a, b);
  float m = -INFINITY;
  for (int k = 0; k < CPU_LANES; k++) m = f_larger(m, a[k]);
  for (; i < n; i++) m = f_larger(m, x[i]);
  return m;
}

static float row_exp_sum(float *y, const float *x, float m, int64_t n)
{
  float s = 0;
#pragma omp simd reduction(+: s)
  for (int64_t i = 0; i < n; i++) {
    const float e = m_exp(x[i] - m);
    y[i] = e;
    s += e;
  }
  return s;
}

static float row_exp_sum_only(const float *x, float m, int64_t n)
{
  float s = 0;
#pragma omp simd reduction(+: s)
  for (int64_t i = 0; i < n; i++) s += m_exp(x[i] - m);
  return s;
}

static void row_scale(float *y, const float *x, float by, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * by;
}

static void row_centre(float *y, const float *x, float m, float log_s, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) - log_s;
}

static float row_sum(const float *x, int64_t n)
{
  float s = 0;
#pragma omp simd reduction(+: s)
  for (int64_t i = 0; i < n; i++) s += x[i];
  return s;
}

static float row_dot(const float *x, const float *y, int64_t n)
{
  float s = 0;
#pragma omp simd reduction(+: s)
  for (int64_t i = 0; i < n; i++) s += x[i] * y[i];
  return s;
}

static void row_gradient(float *dx, const float *y, const float *dy, float t, bool logarithm, int64_t n)
{
  if (logarithm)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dx[i] = dy[i] - m_exp(y[i]) * t;
  else
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dx[i] = y[i] * (dy[i] - t);
}

/* ---- a row at a time ---------------------------------------------------------------------------------------- */

static bool in_place(const problem *p, int t) { return p->dtype[t] == QN_F32 && p->step[t] == 1; }

/* n elements of tensor t's row from the i-th on, as f32: in place, or in buffer. */
static const float *piece(const problem *p, int t, const char *row, int64_t i, int64_t n, float *buffer)
{
  const int64_t step = p->step[t] * p->bytes[t];
  const char *from = row + i * step;
  char packed[PACKED * 4];
  if (in_place(p, t)) return (const float *)(const void *)from;
  if (p->step[t] == 1) row_to_f32(buffer, from, p->dtype[t], n);
  else
    for (int64_t k = 0; k < n; k += PACKED) {
      const int64_t m = qn_min_i64(PACKED, n - k);
      gather_row(packed, from + k * step, p->bytes[t], p->step[t], m);
      row_to_f32(buffer + k, packed, p->dtype[t], m);
    }
  return buffer;
}

static void put_piece(const problem *p, char *row, int64_t i, int64_t n, const float *y)
{
  const int64_t step = p->step[Y] * p->bytes[Y];
  char *to = row + i * step, packed[PACKED * 4];
  if (p->step[Y] == 1) row_from_f32(to, y, p->dtype[Y], n);
  else
    for (int64_t k = 0; k < n; k += PACKED) {
      const int64_t m = qn_min_i64(PACKED, n - k);
      row_from_f32(packed, y + k, p->dtype[Y], m);
      scatter_row(to + k * step, packed, p->bytes[Y], p->step[Y], m);
    }
}

static void forward_row(const problem *p, char *const at[TENSORS])
{
  float from[SPAN], to[SPAN], m = -INFINITY;
  float *const y = in_place(p, Y) ? (float *)(void *)at[Y] : NULL;
  const bool whole = p->length <= SPAN;
  const float *x = NULL;                  /* for a whole row: read once */
  double s = 0;
  for (int64_t i = 0; i < p->length; i += SPAN) {
    const int64_t n = qn_min_i64(SPAN, p->length - i);
    x = piece(p, X, at[X], i, n, from);
    m = f_larger(m, row_max(x, n));
  }
  for (int64_t i = 0; i < p->length; i += SPAN) {
    const int64_t n = qn_min_i64(SPAN, p->length - i);
    if (!whole) x = piece(p, X, at[X], i, n, from);
    if (p->logarithm) s += (double)row_exp_sum_only(x, m, n);
    else s += (double)row_exp_sum(y ? y + i : to, x, m, n);
  }
  const float log_s = (float)log(s), by = (float)(1 / s);
  for (int64_t i = 0; i < p->length; i += SPAN) {
    const int64_t n = qn_min_i64(SPAN, p->length - i);
    float *out = y ? y + i : to;
    if (p->logarithm) {
      if (!whole) x = piece(p, X, at[X], i, n, from);
      row_centre(out, x, m, log_s, n);
    } else {
      if (!whole && !y) row_exp_sum(to, piece(p, X, at[X], i, n, from), m, n);
      row_scale(out, out, by, n);
    }
    if (!y) put_piece(p, at[Y], i, n, to);
  }
}

static void backward_row(const problem *p, char *const at[TENSORS])
{
  float forward[SPAN], gradient[SPAN];
  float *const dx = in_place(p, Y) ? (float *)(void *)at[Y] : NULL;
  const bool whole = p->length <= SPAN;
  const float *y = NULL, *dy = NULL;
  double t = 0;
  for (int64_t i = 0; i < p->length; i += SPAN) {
    const int64_t n = qn_min_i64(SPAN, p->length - i);
    dy = piece(p, DY, at[DY], i, n, gradient);
    if (!p->logarithm || whole) y = piece(p, X, at[X], i, n, forward);
    t += (double)(p->logarithm ? row_sum(dy, n) : row_dot(y, dy, n));
  }
  for (int64_t i = 0; i < p->length; i += SPAN) {
    const int64_t n = qn_min_i64(SPAN, p->length - i);
    if (!whole) {
      dy = piece(p, DY, at[DY], i, n, gradient);
      y = piece(p, X, at[X], i, n, forward);
    }
    row_gradient(dx ? dx + i : gradient, y, dy, (float)t, p->logarithm, n);       /* over dy, which is done with */
    if (!dx) put_piece(p, at[Y], i, n, gradient);
  }
}

/* ---- a band of neighbouring rows: element j of each vector belongs to row j ----------------------------------- */

static const float *across(const problem *p, int t, const char *band, int64_t i, int64_t rows, float *buffer)
{
  const char *from = band + i * p->step[t] * p->bytes[t];
  if (p->dtype[t] == QN_F32) return (const float *)(const void *)from;
  row_to_f32(buffer, from, p->dtype[t], rows);
  return buffer;
}

/* Where to compute the band's i-th outputs: in place, or in buffer, to be converted afterwards. */
static float *across_out(const problem *p, char *band, int64_t i, float *buffer)
{
  return p->dtype[Y] == QN_F32 ? (float *)(void *)(band + i * p->step[Y] * p->bytes[Y]) : buffer;
}
static void put_across(const problem *p, char *band, int64_t i, int64_t rows, const float *buffer)
{
  if (p->dtype[Y] != QN_F32) row_from_f32(band + i * p->step[Y] * p->bytes[Y], buffer, p->dtype[Y], rows);
}

static void forward_band(const problem *p, char *const at[TENSORS], int64_t rows)
{
  float m[BAND], s[BAND], from[BAND], to[BAND];
  double total[BAND];
  for (int64_t j = 0; j < rows; j++) {
    m[j] = -INFINITY;
    s[j] = 0;
    total[j] = 0;
  }
  for (int64_t i = 0; i < p->length; i++) {
    const float *x = across(p, X, at[X], i, rows, from);
#pragma omp simd
    for (int64_t j = 0; j < rows; j++) m[j] = ((x[j] > m[j]) | (x[j] != x[j])) ? x[j] : m[j];
  }
  for (int64_t i = 0; i < p->length; i++) {
    const float *x = across(p, X, at[X], i, rows, from);
    if (p->logarithm) {
#pragma omp simd
      for (int64_t j = 0; j < rows; j++) s[j] += m_exp(x[j] - m[j]);
    } else {
      float *y = across_out(p, at[Y], i, to);
#pragma omp simd
      for (int64_t j = 0; j < rows; j++) {
        const float e = m_exp(x[j] - m[j]);
        y[j] = e;
        s[j] += e;
      }
    }
    if ((i + 1) % BURST == 0 || i + 1 == p->length)
      for (int64_t j = 0; j < rows; j++) {
        total[j] += (double)s[j];
        s[j] = 0;
      }
  }
  for (int64_t j = 0; j < rows; j++) s[j] = (float)(p->logarithm ? log(total[j]) : 1 / total[j]);
  const bool kept = !p->logarithm && p->dtype[Y] == QN_F32;          /* y holds the exponentials */
  for (int64_t i = 0; i < p->length; i++) {
    float *y = across_out(p, at[Y], i, to);
    const float *x = kept ? y : across(p, X, at[X], i, rows, from);
    if (p->logarithm)
#pragma omp simd
      for (int64_t j = 0; j < rows; j++) y[j] = (x[j] - m[j]) - s[j];
    else if (kept)
#pragma omp simd
      for (int64_t j = 0; j < rows; j++) y[j] = y[j] * s[j];
    else
#pragma omp simd
      for (int64_t j = 0; j < rows; j++) y[j] = m_exp(x[j] - m[j]) * s[j];
    put_across(p, at[Y], i, rows, y);
  }
}

static void backward_band(const problem *p, char *const at[TENSORS], int64_t rows)
{
  float s[BAND], forward[BAND], gradient[BAND], to[BAND];
  double total[BAND];
  for (int64_t j = 0; j < rows; j++) {
    s[j] = 0;
    total[j] = 0;
  }
  for (int64_t i = 0; i < p->length; i++) {
    const float *dy = across(p, DY, at[DY], i, rows, gradient);
    const float *y = p->logarithm ? NULL : across(p, X, at[X], i, rows, forward);
    if (p->logarithm)
#pragma omp simd
      for (int64_t j = 0; j < rows; j++) s[j] += dy[j];
    else
#pragma omp simd
      for (int64_t j = 0; j < rows; j++) s[j] += y[j] * dy[j];
    if ((i + 1) % BURST == 0 || i + 1 == p->length)
      for (int64_t j = 0; j < rows; j++) {
        total[j] += (double)s[j];
        s[j] = 0;
      }
  }
  for (int64_t j = 0; j < rows; j++) s[j] = (float)total[j];
  for (int64_t i = 0; i < p->length; i++) {
    const float *dy = across(p, DY, at[DY], i, rows, gradient), *y = across(p, X, at[X], i, rows, forward);
    float *dx = across_out(p, at[Y], i, to);
    if (p->logarithm)
#pragma omp simd
      for (int64_t j = 0; j < rows; j++) dx[j] = dy[j] - m_exp(y[j]) * s[j];
    else
#pragma omp simd
      for (int64_t j = 0; j < rows; j++) dx[j] = y[j] * (dy[j] - s[j]);
    put_across(p, at[Y], i, rows, dx);
  }
}

/* ---- prepare: refuses f64, for which exponentials would be libm's here too ----------------------------------------- */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *node = &request->op[0];
  const bool backward = node->op == QN_OP_SOFTMAX_BACKWARD || node->op == QN_OP_LOG_SOFTMAX_BACKWARD;
  const int32_t order[TENSORS] = { 0, 1, backward ? 2 : 1 };         /* roles: x, y or y, dy, dx */
  const qn_value *y = &request->value[node->arg[order[Y]]];
  const int64_t named = ((const qn_axis *)node->attr)->axis;
  const int32_t axis = (int32_t)(named < 0 ? named + y->rank : named);
  problem p = { .op = node->op, .n = backward ? 3 : 2, .length = y->dim[axis] };
  p.logarithm = node->op == QN_OP_LOG_SOFTMAX || node->op == QN_OP_LOG_SOFTMAX_BACKWARD;

  bool fast_axis = true;
  for (int k = 0; k < TENSORS; k++) {
    const int t = (k + Y) % TENSORS;      /* Y first: its order is the nest's */
    if (t == DY && !backward) continue;
    qn_value v = request->value[node->arg[order[t]]];
    if (v.dtype == QN_F64) return qn_refuse(prepared, "computes in f32", t == Y ? "y" : "x", "f32, f16, bf16", "f64");
    p.value[t] = node->arg[order[t]];
    p.dtype[t] = v.dtype;
    p.bytes[t] = qn_kit_bytes(v.dtype);
    p.step[t] = v.stride[axis];
    fast_axis &= p.step[t] == 1 || p.length == 1;
    v.dim[axis] = 1;
    if (k == 0) qn_nest_begin(&p.nest, &v);
    else qn_nest_add(&p.nest, &v);
  }
  qn_nest_simplify(&p.nest);
  const int32_t last = p.nest.rank - 1;
  p.band = !fast_axis && last >= 0 && p.nest.dim[last] >= 4;
  for (int32_t t = 0; t < p.nest.n && p.band; t++) p.band = p.nest.stride[t][last] == 1;
  if (fast_axis) prepared->traits |= QN_TRAIT_BATCH_INVARIANT;      /* otherwise the other dims decide whether there are bands */

  return cpu_keep(prepared, &p, sizeof p);
}
#endif

/* ---- run ---------------------------------------------------------------------------------------------------------- */

/* Addresses of the tensors at an index of the nest, `rows` further on. */
static void locate(const problem *p, const qn_walk *walk, const qn_launch *launch, int64_t rows, char *at[TENSORS])
{
  at[Y] = (char *)launch->ptr[p->value[Y]] + (walk->offset[0] + rows) * p->bytes[Y];
  at[X] = (char *)launch->ptr[p->value[X]] + (walk->offset[1] + rows) * p->bytes[X];
  at[DY] = p->n == 3 ? (char *)launch->ptr[p->value[DY]] + (walk->offset[2] + rows) * p->bytes[DY] : NULL;
}

static void run_rows(const problem *p, const qn_launch *launch, int64_t first, int64_t end)
{
  qn_walk walk;
  qn_walk_begin(&walk, &p->nest, p->nest.rank, first);
  for (int64_t i = first; i < end; i++, qn_walk_next(&walk)) {
    char *at[TENSORS];
    locate(p, &walk, launch, 0, at);
    if (p->n == 2) forward_row(p, at); else backward_row(p, at);
  }
}

static void run_bands(const problem *p, const qn_launch *launch, int64_t first, int64_t end)
{
  const int64_t inner = p->nest.dim[p->nest.rank - 1], bands = qn_ceil_div(inner, BAND);
  for (int64_t i = first; i < end; i++) {
    const int64_t from = i % bands * BAND, rows = qn_min_i64(BAND, inner - from);
    qn_walk walk;
    char *at[TENSORS];
    qn_walk_begin(&walk, &p->nest, p->nest.rank - 1, i / bands);
    locate(p, &walk, launch, from, at);
    if (p->n == 2) forward_band(p, at, rows); else backward_band(p, at, rows);
  }
}

CPU_RUNS(cpu_softmax_rows_run);
qn_status CPU_NAME(cpu_softmax_rows_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  int64_t rows = 1;
  for (int32_t i = 0; i < p->nest.rank; i++) rows *= p->nest.dim[i];
  int64_t pieces = rows;
  if (p->band) {
    const int64_t inner = p->nest.dim[p->nest.rank - 1];
    pieces = rows / inner * qn_ceil_div(inner, BAND);
  }
  const int64_t threads = qn_min_i64(cpu_threads(launch, rows * p->length * 4), pieces);
  const int64_t share = qn_ceil_div(pieces, threads);
#pragma omp parallel for num_threads((int)threads) schedule(static, 1) if (threads > 1)
  for (int64_t first = 0; first < pieces; first += share) {
    const int64_t end = qn_min_i64(first + share, pieces);
    if (p->band) run_bands(p, launch, first, end); else run_rows(p, launch, first, end);
  }
  return QN_OK;
}

#ifdef CPU_BASELINE
#define ROW(name_, run_, anchor)                                                                                 \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare,  \
    .run = run_, .release = cpu_release }
#define ROWS(name, run)                                                                                          \
  ROW(name, run, QN_OP_SOFTMAX), ROW(name, run, QN_OP_SOFTMAX_BACKWARD), ROW(name, run, QN_OP_LOG_SOFTMAX),       \
  ROW(name, run, QN_OP_LOG_SOFTMAX_BACKWARD),
static const qn_engine row[] = { CPU_COPIES(ROWS, "rows", cpu_softmax_rows_run) };
const qn_engine_list cpu_softmax_rows = { row, sizeof row / sizeof *row };
#endif
