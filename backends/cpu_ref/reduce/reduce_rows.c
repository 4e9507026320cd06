/* reduce_rows.c -- reductions over the fastest dim and any others: each output accumulates rows of contiguous elements.
 *
 * A row is taken in stretches of at most SPAN elements, with four vectors of accumulators to hide the latency of an
 * addition. arg... finds a stretch's extreme first, and its index only if it beats the best so far. */
#include "reduce_plan.h"

enum { SPAN = 2048 };

/* ---- a stretch of f32 ------------------------------------------------------------------------------------ */

CPU_INLINE v_f32 v_key(v_f32 x, key k) { return (v_f32)(((v_i32)x & k.and) ^ k.xor); }

/* In f32, unless the sum leaves its range. */
static double stretch_sum(const float *x, int64_t n, key k)
{
  v_f32 a = { 0 }, b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * CPU_LANES <= n; i += 4 * CPU_LANES) {
    a += v_key(v_load(x + i), k);
    b += v_key(v_load(x + i + CPU_LANES), k);
    c += v_key(v_load(x + i + 2 * CPU_LANES), k);
    d += v_key(v_load(x + i + 3 * CPU_LANES), k);
  }
  for (; i + CPU_LANES <= n; i += CPU_LANES) a += v_key(v_load(x + i), k);
  a = (a + b) + (c + d);
  double s = 0;
  for (int j = 0; j < CPU_LANES; j++) s += (double)a[j];
  for (; i < n; i++) s += (double)f_key(x[i], k);
  if (isfinite(s)) return s;
  s = 0;
  for (i = 0; i < n; i++) s += (double)f_key(x[i], k);
  return s;
}

/* In f32, unless the sum is near f32's limits, where squares may underflow or overflow: then again in double. */
static double stretch_squares(const float *x, int64_t n)
{
  v_f32 a = { 0 }, b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * CPU_LANES <= n; i += 4 * CPU_LANES) {
    const v_f32 p = v_load(x + i), q = v_load(x + i + CPU_LANES);
    const v_f32 r = v_load(x + i + 2 * CPU_LANES), s = v_load(x + i + 3 * CPU_LANES);
    a += p * p;
    b += q * q;
    c += r * r;
    d += s * s;
  }
  a = (a + b) + (c + d);
  double sum = 0;
  for (int j = 0; j < CPU_LANES; j++) sum += (double)a[j];
  for (; i < n; i++) sum += (double)x[i] * (double)x[i];
  if (sum > 0x1p-90 && sum < 0x1p126) return sum;
  sum = 0;
  for (i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
  return sum;
}

static double stretch_product(const float *x, int64_t n)
{
  enum { CHAINS = 16 };                   /* doubles: two to four vectors, enough to hide a multiplication */
  double p[CHAINS];
  for (int j = 0; j < CHAINS; j++) p[j] = 1;
  int64_t i = 0;
  for (; i + CHAINS <= n; i += CHAINS)
#pragma omp simd
    for (int j = 0; j < CHAINS; j++) p[j] *= (double)x[i + j];
  for (int j = 1; j < CHAINS; j++) p[0] *= p[j];
  for (; i < n; i++) p[0] *= (double)x[i];
  return p[0];
}

static float stretch_largest(const float *x, int64_t n, key k)
{
  v_f32 a = v_all(-INFINITY), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * CPU_LANES <= n; i += 4 * CPU_LANES) {
    a = v_larger(a, v_key(v_load(x + i), k));
    b = v_larger(b, v_key(v_load(x + i + CPU_LANES), k));
    c = v_larger(c, v_key(v_load(x + i + 2 * CPU_LANES), k));
    d = v_larger(d, v_key(v_load(x + i + 3 * CPU_LANES), k));
  }
  a = v_larger(v_larger(a, b), v_larger(c, d));
  float m = -INFINITY;
  for (int j = 0; j < CPU_LANES; j++) m = f_larger(m, a[j]);
  for (; i < n; i++) m = f_larger(m, f_key(x[i], k));
  return m;
}

static void stretch_where(const float *x, int64_t n, key k, int64_t base, partial *p)
{
  const float m = stretch_largest(x, n, k);
  const bool nan = m != m;
  if (p->where >= 0 && !((double)m > p->best || (nan && p->best == p->best))) return;
  for (int64_t i = 0; i < n; i++) {
    const float v = f_key(x[i], k);
    if (nan ? v == v : v != m) continue;
    p->best = (double)m;
    p->where = base + i;
    return;
  }
}

static void stretch_f32(const reduction *r, const float *x, int64_t n, int64_t base, partial *p)
{
  switch (r->op) {
  case QN_OP_REDUCE_PROD:  p->total *= stretch_product(x, n); break;
  case QN_OP_REDUCE_NORM2: p->total += stretch_squares(x, n); break;
  case QN_OP_REDUCE_SUM: case QN_OP_REDUCE_MEAN: case QN_OP_REDUCE_NORM1:
    p->total += stretch_sum(x, n, r->key);
    break;
  case QN_OP_ARGMAX: case QN_OP_ARGMIN: stretch_where(x, n, r->key, base, p); break;
  default:
    p->best = (double)f_larger((float)p->best, stretch_largest(x, n, r->key));
    p->where = 0;
    break;
  }
}

/* ---- a stretch of f64, of integers ------------------------------------------------------------------------- */

static void stretch_f64(const reduction *r, const double *x, int64_t n, int64_t base, partial *p)
{
  const key64 k = r->key64;
  if (!is_extreme(r->op)) {
    const double by = r->by;
    double s = 0;
#pragma omp simd reduction(+: s)
    for (int64_t i = 0; i < n; i++) s += d_key(x[i], k) * by;
    p->total += s;
    return;
  }
  double most = -INFINITY;
  int nan = 0;
#pragma omp simd reduction(max: most) reduction(|: nan)
  for (int64_t i = 0; i < n; i++) {
    const double v = d_key(x[i], k);
    most = v > most ? v : most;
    nan |= v != v;
  }
  const bool had = p->best != p->best;
  if (p->where >= 0 && (had || (!nan && most <= p->best))) return;
  int64_t first = 0;
  while (is_arg(r->op) && (nan ? x[first] == x[first] : d_key(x[first], k) != most)) first++;
  p->best = nan ? (double)NAN : most;
  p->where = base + first;
}

/* Integers unwidened: a vector holds more of the narrow ones. */
static uint64_t integer_sum(const void *x, uint32_t dtype, int64_t n)
{
  const int64_t *l = x;
  const int32_t *w = x;
  const int8_t *b = x;
  const uint8_t *u = x;
  int64_t s = 0;                          /* cannot overflow: at most SPAN narrow ones */
  uint64_t wrapping = 0;
  switch (dtype) {
  case QN_I32:
#pragma omp simd reduction(+: s)
    for (int64_t i = 0; i < n; i++) s += w[i];
    break;
  case QN_I8:
#pragma omp simd reduction(+: s)
    for (int64_t i = 0; i < n; i++) s += b[i];
    break;
  case QN_U8:
#pragma omp simd reduction(+: s)
    for (int64_t i = 0; i < n; i++) s += u[i];
    break;
  default:
#pragma omp simd reduction(+: wrapping)
    for (int64_t i = 0; i < n; i++) wrapping += (uint64_t)l[i];
    return wrapping;
  }
  return (uint64_t)s;
}

/* The largest of x, or of ~x if xor is -1, which reverses the order. */
static int64_t integer_largest(const void *x, uint32_t dtype, int64_t xor, int64_t n)
{
  const int64_t *l = x;
  const int32_t *w = x, xor_w = (int32_t)xor;
  const int8_t *b = x, xor_b = (int8_t)xor;
  const uint8_t *u = x, xor_u = (uint8_t)xor;
  int64_t most = INT64_MIN;
  int32_t most_w = INT32_MIN;
  int8_t most_b = INT8_MIN;
  uint8_t most_u = 0;
  switch (dtype) {
  case QN_I32:
#pragma omp simd reduction(max: most_w)
    for (int64_t i = 0; i < n; i++) most_w = (w[i] ^ xor_w) > most_w ? (w[i] ^ xor_w) : most_w;
    return most_w;
  case QN_I8:
#pragma omp simd reduction(max: most_b)
    for (int64_t i = 0; i < n; i++) {
      const int8_t v = (int8_t)(b[i] ^ xor_b);
      most_b = v > most_b ? v : most_b;
    }
    return most_b;
  case QN_U8:
#pragma omp simd reduction(max: most_u)
    for (int64_t i = 0; i < n; i++) {
      const uint8_t v = (uint8_t)(u[i] ^ xor_u);
      most_u = v > most_u ? v : most_u;
    }
    return xor ? ~(int64_t)(uint8_t)~most_u : most_u;
  default:
#pragma omp simd reduction(max: most)
    for (int64_t i = 0; i < n; i++) most = (l[i] ^ xor) > most ? (l[i] ^ xor) : most;
    return most;
  }
}

static void stretch_integers(const reduction *r, const void *x, int64_t n, int64_t base, partial *p)
{
  if (r->op == QN_OP_REDUCE_SUM) {
    p->whole += integer_sum(x, r->x_dtype, n);
    return;
  }
  if (r->op == QN_OP_REDUCE_PROD) {
    for (int64_t i = 0; i < n; i++) p->whole *= (uint64_t)qn_load_i64((const char *)x + i * r->x_bytes, r->x_dtype);
    return;
  }
  const int64_t most = integer_largest(x, r->x_dtype, r->key64.xor, n);
  if (p->where >= 0 && most <= (int64_t)p->whole) return;
  int64_t first = 0;
  while (is_arg(r->op) && (qn_load_i64((const char *)x + first * r->x_bytes, r->x_dtype) ^ r->key64.xor) != most) first++;
  p->whole = (uint64_t)most;
  p->where = base + first;
}

static void stretch(const reduction *r, const void *x, int64_t n, int64_t base, partial *p)
{
  switch (r->in) {
  case IN_F64: stretch_f64(r, x, n, base, p); break;
  case IN_I64: stretch_integers(r, x, n, base, p); break;
  default:     stretch_f32(r, x, n, base, p); break;
  }
}

/* ---- a part of one output: some rows, or some stretches of its one row ------------------------------------- */

static int64_t row_length(const reduction *r) { return r->gone.rank ? r->gone.dim[r->gone.rank - 1] : 1; }

static void row_piece(const reduction *r, const char *x, int64_t from, int64_t n, int64_t base, partial *p)
{
  const int64_t stride = r->gone.rank ? r->gone.stride[0][r->gone.rank - 1] : 1;
  float buffer[SPAN];
  char packed[SPAN * 8];
  for (int64_t i = from; i < from + n; i += SPAN) {
    const int64_t m = qn_min_i64(SPAN, from + n - i);
    const char *at = x + i * stride * r->x_bytes;
    if (stride != 1) {
      gather_row(packed, at, r->x_bytes, stride, m);
      at = packed;
    }
    stretch(r, r->in == IN_F32 ? widen(r, at, m, buffer) : at, m, base + i, p);
  }
}

static partial one_part(const reduction *r, const char *x, int64_t part)
{
  partial p = partial_begin(r);
  const int64_t length = row_length(r), rows = r->count / length;
  if (rows == 1) {
    const int64_t from = part * PART;
    row_piece(r, x, from, qn_min_i64(PART, length - from), 0, &p);
    return p;
  }
  qn_walk walk;
  const int64_t first = part * r->part, end = qn_min_i64(first + r->part, rows);
  qn_walk_begin(&walk, &r->gone, r->gone.rank - 1, first);
  for (int64_t i = first; i < end; i++, qn_walk_next(&walk))
    row_piece(r, x + walk.offset[0] * r->x_bytes, 0, length, i * length, &p);
  return p;
}

/* ---- prepare: refuses if the fastest dim is kept (reduce_cols) ----------------------------------------------- */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  reduction r = { 0 };
  qn_status status = cpu_isa_check(request, prepared);
  if (!status) status = reduction_of(request, prepared, &r);
  if (status) return status;
  const int32_t last = r.kept.rank - 1;
  if (last >= 0 && r.kept.stride[0][last] == 1 && r.kept.dim[last] >= 4 && r.count > 1)
    return qn_refuse(prepared, "reduces along the fastest dim", "x", "its fastest dim among the axes", "%s", "");
  const int64_t length = row_length(&r), rows = r.count / length;
  r.part = rows == 1 ? 1 : qn_max_i64(1, PART / length);
  r.parts = rows == 1 ? qn_ceil_div(length, PART) : qn_ceil_div(rows, r.part);
  return reduction_keep(request, prepared, &r, r.outputs, r.outputs);
}
#endif

/* ---- run -------------------------------------------------------------------------------------------------------- */

static partial all_parts(const reduction *r, const char *x)
{
  partial total = one_part(r, x, 0);
  for (int64_t k = 1; k < r->parts; k++) {
    const partial p = one_part(r, x, k);
    partial_fold(r, &total, &p);
  }
  return total;
}

static void store(const reduction *r, const qn_launch *launch, const qn_walk *walk, const partial *p)
{
  char *y = (char *)launch->ptr[r->y] + walk->offset[1] * r->y_bytes;
  if (is_lost(r, p)) {
    const reduction again = small(r);
    const partial mean = all_parts(&again, (const char *)launch->ptr[r->x] + walk->offset[0] * r->x_bytes);
    partial_store(&again, &mean, y);
  } else {
    partial_store(r, p, y);
  }
}

static void run_outputs(const reduction *r, const qn_launch *launch, int64_t first, int64_t end)
{
  qn_walk walk;
  qn_walk_begin(&walk, &r->kept, r->kept.rank, first);
  for (int64_t i = first; i < end; i++, qn_walk_next(&walk)) {
    const partial total = all_parts(r, (const char *)launch->ptr[r->x] + walk.offset[0] * r->x_bytes);
    store(r, launch, &walk, &total);
  }
}

static void run_shared(const reduction *r, const qn_launch *launch, int threads)
{
  partial *p = launch->workspace;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < r->outputs * r->parts; i++) {
    qn_walk walk;
    qn_walk_begin(&walk, &r->kept, r->kept.rank, i / r->parts);
    p[i] = one_part(r, (const char *)launch->ptr[r->x] + walk.offset[0] * r->x_bytes, i % r->parts);
  }
  for (int64_t i = 0; i < r->outputs; i++) {
    qn_walk walk;
    qn_walk_begin(&walk, &r->kept, r->kept.rank, i);
    for (int64_t k = 1; k < r->parts; k++) partial_fold(r, &p[i * r->parts], &p[i * r->parts + k]);
    store(r, launch, &walk, &p[i * r->parts]);
  }
}

CPU_RUNS(cpu_reduce_rows_run);
qn_status CPU_NAME(cpu_reduce_rows_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const reduction *r = prepared->state;
  const int threads = cpu_threads(launch, r->outputs * r->count);
  if (r->shared && threads > 1) {
    run_shared(r, launch, threads);
    return QN_OK;
  }
  const int64_t share = qn_ceil_div(r->outputs, threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int64_t first = 0; first < r->outputs; first += share)
    run_outputs(r, launch, first, qn_min_i64(first + share, r->outputs));
  return QN_OK;
}

#ifdef CPU_BASELINE
static const qn_engine row[] = { CPU_COPIES(REDUCTION_ROWS, "rows", cpu_reduce_rows_run) };
const qn_engine_list cpu_reduce_rows = { row, sizeof row / sizeof *row };
#endif
