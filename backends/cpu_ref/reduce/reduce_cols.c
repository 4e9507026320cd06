/* reduce_cols.c -- reductions that keep the fastest dim: rows of contiguous elements are accumulated into a row of results.
 *
 * The accumulators of a band of BAND columns stay in L1 while the reduced dims are walked in memory order. Sums are f32
 * for BURST rows, then added to totals in double; or, where they leave f32's range, in double. */
#include "reduce_plan.h"

enum { BAND = 256, BURST = 64 };

/* The accumulators of a band. */
typedef struct band {
  float    sum[BAND];                     /* of a burst; extremes: the largest key */
  double   total[BAND];                   /* extremes of f64: the largest key */
  uint64_t whole[BAND];                   /* for integers: of either kind */
  int32_t  where[BAND];
} band;

/* ---- a row of a band --------------------------------------------------------------------------------------- */

static void row_add(float *sum, const float *x, int64_t n, key k)
{
#pragma omp simd
  for (int64_t j = 0; j < n; j++) sum[j] += f_key(x[j], k);
}

static void row_add_wide(double *total, const float *x, int64_t n, key k)
{
#pragma omp simd
  for (int64_t j = 0; j < n; j++) total[j] += (double)f_key(x[j], k);
}

static void row_add_squares(double *total, const float *x, int64_t n)
{
#pragma omp simd
  for (int64_t j = 0; j < n; j++) total[j] += (double)x[j] * (double)x[j];
}

static void row_multiply(double *total, const float *x, int64_t n)
{
#pragma omp simd
  for (int64_t j = 0; j < n; j++) total[j] *= (double)x[j];
}

static void row_largest(float *best, const float *x, int64_t n, key k)
{
#pragma omp simd
  for (int64_t j = 0; j < n; j++) {
    const float v = f_key(x[j], k);
    best[j] = ((v > best[j]) | (v != v)) ? v : best[j];
  }
}

static void row_where(float *best, int32_t *where, const float *x, int64_t n, int32_t at, key k)
{
#pragma omp simd
  for (int64_t j = 0; j < n; j++) {
    const float v = f_key(x[j], k);
    const bool better = (v > best[j]) | ((v != v) & (best[j] == best[j])) | (where[j] < 0);
    best[j] = better ? v : best[j];
    where[j] = better ? at : where[j];
  }
}

static void row_f64(uint32_t op, band *b, const double *x, int64_t n, int32_t at, key64 k, double by)
{
  double *total = b->total;
  int32_t *where = b->where;
  if (!is_extreme(op)) {
#pragma omp simd
    for (int64_t j = 0; j < n; j++) total[j] += d_key(x[j], k) * by;
    return;
  }
#pragma omp simd
  for (int64_t j = 0; j < n; j++) {
    const double v = d_key(x[j], k);
    const bool better = (v > total[j]) | ((v != v) & (total[j] == total[j])) | (where[j] < 0);
    total[j] = better ? v : total[j];
    where[j] = better ? at : where[j];
  }
}

static void row_i64(uint32_t op, band *b, const int64_t *x, int64_t n, int32_t at, key64 k)
{
  uint64_t *whole = b->whole;
  int32_t *where = b->where;
  if (op == QN_OP_REDUCE_SUM)
#pragma omp simd
    for (int64_t j = 0; j < n; j++) whole[j] += (uint64_t)x[j];
  else if (op == QN_OP_REDUCE_PROD)
#pragma omp simd
    for (int64_t j = 0; j < n; j++) whole[j] *= (uint64_t)x[j];
  else
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
      const int64_t v = x[j] ^ k.xor;
      const bool better = (v > (int64_t)whole[j]) | (where[j] < 0);
      whole[j] = better ? (uint64_t)v : whole[j];
      where[j] = better ? at : where[j];
    }
}

static void flush(band *b, int64_t n)
{
#pragma omp simd
  for (int64_t j = 0; j < n; j++) {
    b->total[j] += (double)b->sum[j];
    b->sum[j] = 0;
  }
}

static int64_t columns(const reduction *r) { return r->kept.dim[r->kept.rank - 1]; }

/* ---- a part of a band: rows first to end - 1 of the reduced dims ------------------------------------------------ */

static void add_part(const reduction *r, const char *x, int64_t part, int64_t n, bool wide, band *b)
{
  const int64_t first = part * r->part, end = qn_min_i64(first + r->part, r->count);
  const bool extreme = is_extreme(r->op);
  int64_t buffer[BAND];
  for (int64_t j = 0; j < n; j++) {
    b->sum[j] = extreme ? -INFINITY : 0;
    b->total[j] = r->op == QN_OP_REDUCE_PROD;
    b->whole[j] = r->op == QN_OP_REDUCE_PROD;
    b->where[j] = is_arg(r->op) || (extreme && r->in != IN_F32) ? -1 : 0;
  }
  qn_walk walk;
  qn_walk_begin(&walk, &r->gone, r->gone.rank, first);
  for (int64_t i = first; i < end; i++, qn_walk_next(&walk)) {
    const void *row = widen(r, x + walk.offset[0] * r->x_bytes, n, buffer);
    const int32_t place = is_arg(r->op) ? (int32_t)i : 0;
    if (r->in == IN_F64) row_f64(r->op, b, row, n, place, r->key64, r->by);
    else if (r->in == IN_I64) row_i64(r->op, b, row, n, place, r->key64);
    else switch (r->op) {
    case QN_OP_REDUCE_PROD:  row_multiply(b->total, row, n); break;
    case QN_OP_REDUCE_NORM2: row_add_squares(b->total, row, n); break;
    case QN_OP_ARGMAX: case QN_OP_ARGMIN: row_where(b->sum, b->where, row, n, place, r->key); break;
    case QN_OP_REDUCE_MAX: case QN_OP_REDUCE_MIN: case QN_OP_REDUCE_AMAX: row_largest(b->sum, row, n, r->key); break;
    default:
      if (wide) {
        row_add_wide(b->total, row, n, r->key);
        break;
      }
      row_add(b->sum, row, n, r->key);
      if ((i + 1 - first) % BURST == 0) flush(b, n);
      break;
    }
  }
  if (!extreme) flush(b, n);
}

static void one_part(const reduction *r, const char *x, int64_t part, int64_t n, band *b)
{
  add_part(r, x, part, n, false, b);
  if (r->in != IN_F32 || is_extreme(r->op) || r->op == QN_OP_REDUCE_PROD || r->op == QN_OP_REDUCE_NORM2) return;
  double odd = 0;                         /* NaN where a total is not finite */
#pragma omp simd reduction(+: odd)
  for (int64_t j = 0; j < n; j++) odd += b->total[j] - b->total[j];
  if (odd != 0) add_part(r, x, part, n, true, b);
}

static partial partial_of(const reduction *r, const band *b, int64_t j)
{
  const double best = !is_extreme(r->op) ? 0 : r->in == IN_F64 ? b->total[j] : (double)b->sum[j];
  return (partial){ .total = b->total[j], .best = best, .whole = b->whole[j], .where = b->where[j] };
}

/* ---- prepare: refuses if the fastest dim is reduced (reduce_rows) ------------------------------------------------ */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  reduction r = { 0 };
  qn_status status = cpu_isa_check(request, prepared);
  if (!status) status = reduction_of(request, prepared, &r);
  if (status) return status;
  const int32_t last = r.kept.rank - 1;
  if (last < 0 || r.kept.stride[0][last] != 1)
    return qn_refuse(prepared, "keeps the fastest dim", "x", "its fastest dim not among the axes", "%s", "");
  if (is_arg(r.op) && r.count > INT32_MAX)
    return qn_refuse(prepared, "counts places in 32 bits", "x", "at most 2^31 - 1 along the axes", "%lld", (long long)r.count);
  const int64_t wide = qn_min_i64(columns(&r), BAND);
  r.part = qn_round_up(qn_max_i64(1, PART / wide), BURST);
  r.parts = qn_ceil_div(r.count, r.part);
  return reduction_keep(request, prepared, &r, r.outputs / columns(&r) * qn_ceil_div(columns(&r), BAND), r.outputs);
}
#endif

/* ---- run ------------------------------------------------------------------------------------------------------------ */

/* A band of columns at some index of the kept dims. */
typedef struct place { const char *x; char *y; int64_t n, first, y_step; } place;

static place place_of(const reduction *r, const qn_launch *launch, int64_t i)
{
  const int32_t last = r->kept.rank - 1;
  const int64_t bands = qn_ceil_div(columns(r), BAND), from = i % bands * BAND;
  qn_walk walk;
  qn_walk_begin(&walk, &r->kept, last, i / bands);
  place p = { .n = qn_min_i64(BAND, columns(r) - from), .first = i / bands * columns(r) + from };
  p.y_step = r->kept.stride[1][last];
  p.x = (const char *)launch->ptr[r->x] + (walk.offset[0] + from) * r->x_bytes;
  p.y = (char *)launch->ptr[r->y] + (walk.offset[1] + from * p.y_step) * r->y_bytes;
  return p;
}

static void run_band(const reduction *r, const place *at)
{
  band b;
  partial total[BAND];
  for (int64_t k = 0; k < r->parts; k++) {
    one_part(r, at->x, k, at->n, &b);
    for (int64_t j = 0; j < at->n; j++) {
      const partial p = partial_of(r, &b, j);
      if (k == 0) total[j] = p; else partial_fold(r, &total[j], &p);
    }
  }
  bool lost = false;
  for (int64_t j = 0; j < at->n; j++) {
    char *y = at->y + j * at->y_step * r->y_bytes;
    if (r->by != 1 && isfinite(qn_load_f64(y, r->y_dtype))) continue;       /* again, for others */
    partial_store(r, &total[j], y);
    lost |= is_lost(r, &total[j]);
  }
  const reduction again = small(r);
  if (lost) run_band(&again, at);
}

CPU_RUNS(cpu_reduce_cols_run);
qn_status CPU_NAME(cpu_reduce_cols_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const reduction *r = prepared->state;
  const int64_t bands = r->outputs / columns(r) * qn_ceil_div(columns(r), BAND);
  const int threads = cpu_threads(launch, r->outputs * r->count);
  partial *kept = launch->workspace;      /* of output i, part k: kept[k * outputs + i] */
  if (!r->shared || threads == 1) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < bands; i++) {
      const place at = place_of(r, launch, i);
      run_band(r, &at);
    }
    return QN_OK;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < bands * r->parts; i++) {
    const int64_t part = i / bands;
    const place at = place_of(r, launch, i % bands);
    band b;
    one_part(r, at.x, part, at.n, &b);
    for (int64_t j = 0; j < at.n; j++) kept[part * r->outputs + at.first + j] = partial_of(r, &b, j);
  }
  for (int64_t i = 0; i < bands; i++) {
    const place at = place_of(r, launch, i);
    bool lost = false;
    for (int64_t j = 0; j < at.n; j++) {
      partial total = kept[at.first + j];
      for (int64_t k = 1; k < r->parts; k++) partial_fold(r, &total, &kept[k * r->outputs + at.first + j]);
      partial_store(r, &total, at.y + j * at.y_step * r->y_bytes);
      lost |= is_lost(r, &total);
    }
    const reduction again = small(r);
    if (lost) run_band(&again, &at);
  }
  return QN_OK;
}

#ifdef CPU_BASELINE
static const qn_engine row[] = { CPU_COPIES(REDUCTION_ROWS, "cols", cpu_reduce_cols_run) };
const qn_engine_list cpu_reduce_cols = { row, sizeof row / sizeof *row };
#endif
