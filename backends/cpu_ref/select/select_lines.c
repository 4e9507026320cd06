/* select_lines.c -- top_k, sort (the top n) and cumsum, a line along the axis per thread.
 *
 * top_k turns each element into a number that descends in the wanted order: its inverted key above its index. Numbers below the
 * k-th smallest so far are collected in a buffer of about 2k, which is cut to the k smallest whenever full; the others are
 * dropped at once. For small k the k smallest are kept sorted. cumsum runs along the axis with a band of contiguous lines, or with
 * a few that are not contiguous, their sums in double. */
#include <stdlib.h>
#include "kit/convert.h"
#include "cpu_ref.h"

enum { BAND = 64,                         /* contiguous lines of cumsum at a time */
       IN_STEP = 4,                       /* lines at a time if not contiguous */
       FEW = 16,                          /* largest k for which the smallest are kept sorted */
       WIDE = 1024 };                     /* elements of top_k widened at a time */

typedef struct lines {
  int32_t  x, y, indices;                 /* values of the request; indices -1: not wanted */
  uint32_t x_dtype, y_dtype, index_dtype;
  int64_t  bytes, n, k, count, x_step, y_step, index_step;
  bool     smallest, exclusive, reverse;
  int32_t  threads;                       /* that the workspace is sized for */
  qn_nest  nest;                          /* the other dims: x, y, indices */
} lines;

static const qn_value *value_of(const qn_request *request, uint32_t role)
{
  const int32_t i = qn_role(&request->op[0], role);
  return i < 0 ? NULL : &request->value[i];
}

static lines lines_of(const qn_value *x, const qn_value *y, const qn_value *indices, int64_t axis)
{
  lines s = { .x_dtype = x->dtype, .y_dtype = y->dtype, .bytes = qn_kit_bytes(x->dtype), .n = x->dim[axis], .x_step = x->stride[axis],
              .y_step = y->stride[axis], .indices = -1, .count = 1 };
  if (indices) s.index_dtype = indices->dtype, s.index_step = indices->stride[axis];
  s.nest.n = 3;
  for (int32_t d = 0; d < x->rank; d++) {
    if (d == axis) continue;
    s.count *= x->dim[d];
    s.nest.dim[s.nest.rank] = x->dim[d];
    s.nest.stride[0][s.nest.rank] = x->stride[d];
    s.nest.stride[1][s.nest.rank] = y->stride[d];
    s.nest.stride[2][s.nest.rank++] = indices ? indices->stride[d] : y->stride[d];
  }
  qn_nest_simplify(&s.nest);
  return s;
}

/* ---- top_k ---------------------------------------------------------------------------------------------------- */

static int64_t buffer_size(const lines *s) { return qn_min_i64(s->n, 2 * s->k + 256); }

/* Numbers that descend in the wanted order: larger element first, then lower index. */
static void pairs_of(const lines *s, const char *x, int64_t first, int64_t n, uint64_t *pair)
{
  uint32_t key[WIDE];
  if (qn_is_integer(s->x_dtype)) {
    for (int64_t i = 0; i < n; i++)
      key[i] = (uint32_t)qn_load_i64(x + (first + i) * s->x_step * s->bytes, s->x_dtype) ^ 0x80000000u;
  } else {
    float wide[WIDE];
    char packed[WIDE * 4];
    const char *from = x + first * s->x_step * s->bytes;
    if (s->x_step != 1) gather_row(packed, from, s->bytes, s->x_step, n), from = packed;
    row_to_f32(wide, from, s->x_dtype, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
      const uint32_t u = qn_bits_of_f32(wide[i] + 0.0f);  /* turns -0 into 0 */
      key[i] = wide[i] != wide[i] ? ~0u : u >> 31 ? ~u : u | 0x80000000u;
    }
  }
  const uint32_t turn = s->smallest ? 0 : ~0u;
  for (int64_t i = 0; i < n; i++) pair[i] = (uint64_t)(key[i] ^ turn) << 32 | (uint32_t)(first + i);
}

/* Moves the k smallest of n to the front, in any order. All are distinct. */
static void cut(uint64_t *a, int64_t n, int64_t k)
{
  for (int64_t low = 0, high = n - 1; low < high;) {
    const uint64_t pivot = a[low + (high - low) / 2];
    int64_t i = low, j = high;
    while (i <= j) {
      while (a[i] < pivot) i++;
      while (a[j] > pivot) j--;
      if (i <= j) {
        const uint64_t t = a[i];
        a[i++] = a[j];
        a[j--] = t;
      }
    }
    if (k - 1 <= j) high = j;
    else if (k - 1 >= i) low = i;
    else return;
  }
}

static int rising(const void *a, const void *b)
{
  const uint64_t u = *(const uint64_t *)a, v = *(const uint64_t *)b;
  return (u > v) - (u < v);
}

/* Inserts into the sorted smallest, dropping the largest. Branch-free, since the position is unpredictable. */
static void keep(uint64_t *least, int64_t k, uint64_t pair)
{
  for (int64_t i = k - 1; i > 0; i--) {
    const uint64_t above = least[i - 1] > pair ? least[i - 1] : pair;
    least[i] = least[i] < above ? least[i] : above;
  }
  least[0] = least[0] < pair ? least[0] : pair;
}

/* The k smallest, sorted. */
static void rank_few(const lines *s, const char *x, uint64_t *least)
{
  uint64_t pair[WIDE];
  for (int64_t i = 0; i < s->k; i++) least[i] = UINT64_MAX;
  for (int64_t first = 0; first < s->n; first += WIDE) {
    const int64_t n = qn_min_i64(WIDE, s->n - first);
    pairs_of(s, x, first, n, pair);
    for (int64_t i = 0; i < n; i++)
      if (pair[i] < least[s->k - 1]) keep(least, s->k, pair[i]);
  }
}

static void rank_many(const lines *s, const char *x, uint64_t *buffer)
{
  const int64_t room = buffer_size(s);
  int64_t held = 0;
  uint64_t limit = UINT64_MAX;            /* once k are held, the largest of them */
  for (int64_t first = 0; first < s->n; first += WIDE) {
    const int64_t n = qn_min_i64(WIDE, s->n - first);
    uint64_t pair[WIDE];
    pairs_of(s, x, first, n, pair);
    for (int64_t i = 0; i < n; i++) {
      if (pair[i] > limit) continue;
      buffer[held++] = pair[i];
      if (held < room || first + i + 1 == s->n) continue;
      cut(buffer, held, s->k);
      held = s->k;
      limit = 0;
      for (int64_t k = 0; k < held; k++) limit = buffer[k] > limit ? buffer[k] : limit;
    }
  }
  cut(buffer, held, s->k);
  qsort(buffer, (size_t)s->k, sizeof *buffer, rising);
}

static void rank_line(const lines *s, const char *x, char *y, char *indices, uint64_t *buffer)
{
  if (s->k <= FEW) rank_few(s, x, buffer);
  else rank_many(s, x, buffer);
  for (int64_t k = 0; k < s->k; k++) {
    const int64_t place = (int64_t)(uint32_t)buffer[k];
    memcpy(y + k * s->y_step * s->bytes, x + place * s->x_step * s->bytes, (size_t)s->bytes);
    if (indices) qn_store_i64(indices + k * s->index_step * qn_kit_bytes(s->index_dtype), s->index_dtype, place);
  }
}

static qn_status top_k_prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_value *of = value_of(request, QN_ROLE_TOP_K_X);
  const bool all = request->op[0].op == QN_OP_SORT;       /* the n smallest or largest; its roles have the same numbers */
  const qn_sorting *sort = request->op[0].attr;
  const qn_ranking *a = request->op[0].attr;
  qn_ranking whole = QN_TOP_K_INIT;
  if (all) {
    whole.axis = sort->axis, whole.k = of->dim[sort->axis], whole.smallest = !sort->descending;
    a = &whole;
  }
  const qn_value *x = of, *indices = value_of(request, QN_ROLE_TOP_K_INDICES);
  if (x->dtype == QN_F64 || x->dtype == QN_I64)
    return qn_refuse(prepared, "keys have 32 bits", "x", "a narrower dtype", "%s", qn_kit_name(x->dtype));
  if (x->dim[a->axis] > INT32_MAX)
    return qn_refuse(prepared, "places have 32 bits", "x", "lines shorter than 2^31", "%lld", (long long)x->dim[a->axis]);
  lines s = lines_of(x, value_of(request, QN_ROLE_TOP_K_Y), indices, a->axis);
  s.x = qn_role(&request->op[0], QN_ROLE_TOP_K_X), s.y = qn_role(&request->op[0], QN_ROLE_TOP_K_Y);
  s.indices = qn_role(&request->op[0], QN_ROLE_TOP_K_INDICES);
  s.k = a->k;
  s.smallest = a->smallest != 0;
  s.threads = request->demands->threads;
  prepared->workspace = (uint64_t)(s.threads * buffer_size(&s)) * 8;
  return cpu_keep(prepared, &s, sizeof s);
}

static qn_status top_k_run(const qn_prepared *prepared, const qn_launch *launch)
{
  const lines *s = prepared->state;
  const int threads = (int)qn_min_i64(qn_min_i64(cpu_threads(launch, 4 * s->count * s->n), s->threads), s->count);
  uint64_t *workspace = launch->workspace;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int t = 0; t < threads; t++) {
    const int64_t first = s->count * t / threads, end = s->count * (t + 1) / threads;
    qn_walk walk;
    qn_walk_begin(&walk, &s->nest, s->nest.rank, first);
    for (int64_t line = first; line < end; line++, qn_walk_next(&walk))
      rank_line(s, (const char *)launch->ptr[s->x] + walk.offset[0] * s->bytes, (char *)launch->ptr[s->y] + walk.offset[1] * s->bytes,
                s->indices < 0 ? NULL : (char *)launch->ptr[s->indices] + walk.offset[2] * qn_kit_bytes(s->index_dtype),
                workspace + t * buffer_size(s));
  }
  return QN_OK;
}

/* ---- cumsum ----------------------------------------------------------------------------------------------------- */

/* Several lines of f32 at once, sums in registers: a line's additions depend on each other. */
CPU_INLINE void sum_some(const lines *s, const float *x, float *y, int64_t x_apart, int64_t y_apart, int some)
{
  const int64_t way = s->reverse ? -1 : 1, x_step = way * s->x_step, y_step = way * s->y_step, n = s->n;
  const bool exclusive = s->exclusive;
  double before[IN_STEP], sum[IN_STEP] = { 0 };
  if (s->reverse) x += (n - 1) * s->x_step, y += (n - 1) * s->y_step;
  for (int64_t j = 0; j < n; j++) {
#pragma GCC unroll 4
    for (int i = 0; i < some; i++) before[i] = sum[i], sum[i] += (double)x[i * x_apart + j * x_step];
#pragma GCC unroll 4
    for (int i = 0; i < some; i++) y[i * y_apart + j * y_step] = (float)(exclusive ? before[i] : sum[i]);
  }
}

static void sum_lines(const lines *s, const float *x, float *y, int64_t x_apart, int64_t y_apart, int64_t n)
{
  int64_t i = 0;
  for (; i + IN_STEP <= n; i += IN_STEP) sum_some(s, x + i * x_apart, y + i * y_apart, x_apart, y_apart, IN_STEP);
  for (; i < n; i++) sum_some(s, x + i * x_apart, y + i * y_apart, x_apart, y_apart, 1);
}

/* n contiguous lines; the case of f32 in both is spelled out to vectorise. */
static void sum_band(const lines *s, const char *x, char *y, bool narrow, int64_t n)
{
  const int64_t y_bytes = qn_kit_bytes(s->y_dtype);
  double sum[BAND] = { 0 };
  for (int64_t j = 0; j < s->n; j++) {
    const int64_t at = s->reverse ? s->n - 1 - j : j;
    const char *from = x + at * s->x_step * s->bytes;
    char *to = y + at * s->y_step * y_bytes;
    if (narrow) {
      const float *xs = (const float *)(const void *)from;
      float *ys = (float *)(void *)to;
#pragma omp simd
      for (int64_t i = 0; i < n; i++) {
        const double before = sum[i], after = before + xs[i];
        ys[i] = (float)(s->exclusive ? before : after);
        sum[i] = after;
      }
    } else for (int64_t i = 0; i < n; i++) {
      const double before = sum[i], after = before + qn_load_f64(from + i * s->bytes, s->x_dtype);
      qn_store_f64(to + i * y_bytes, s->y_dtype, s->exclusive ? before : after);
      sum[i] = after;
    }
  }
}

/* n lines, x_apart and y_apart between them. */
static void sum_task(const lines *s, const char *x, char *y, int64_t x_apart, int64_t y_apart, int64_t n)
{
  const bool narrow = s->x_dtype == QN_F32 && s->y_dtype == QN_F32, beside = n > 1 && x_apart == 1 && y_apart == 1;
  if (beside) sum_band(s, x, y, narrow, n);
  else if (narrow) sum_lines(s, (const float *)(const void *)x, (float *)(void *)y, x_apart, y_apart, n);
  else
    for (int64_t i = 0; i < n; i++) sum_band(s, x + i * x_apart * s->bytes, y + i * y_apart * qn_kit_bytes(s->y_dtype), false, 1);
}

static qn_status cumsum_prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_scan *a = request->op[0].attr;
  const qn_value *x = value_of(request, QN_ROLE_CUMSUM_X), *y = value_of(request, QN_ROLE_CUMSUM_Y);
  if (!qn_is_float(x->dtype) || x->dtype == QN_F64)
    return qn_refuse(prepared, "accumulates in f64", "x", "f32, f16 or bf16", "%s", qn_kit_name(x->dtype));
  lines s = lines_of(x, y, NULL, a->axis);
  s.x = qn_role(&request->op[0], QN_ROLE_CUMSUM_X), s.y = qn_role(&request->op[0], QN_ROLE_CUMSUM_Y);
  s.exclusive = a->exclusive != 0;
  s.reverse = a->reverse != 0;
  if (s.nest.rank == 0) s.nest.rank = 1, s.nest.dim[0] = 1;
  return cpu_keep(prepared, &s, sizeof s);
}

static qn_status cumsum_run(const qn_prepared *prepared, const qn_launch *launch)
{
  const lines *s = prepared->state;
  const int32_t last = s->nest.rank - 1;
  const int64_t beside = s->nest.dim[last], bands = qn_ceil_div(beside, BAND), tasks = s->count / beside * bands;
  const int threads = (int)qn_min_i64(cpu_threads(launch, s->count * s->n), tasks);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t task = 0; task < tasks; task++) {
    const int64_t first = task % bands * BAND, n = qn_min_i64(BAND, beside - first);
    const int64_t xs = s->nest.stride[0][last], ys = s->nest.stride[1][last];
    qn_walk walk;
    qn_walk_begin(&walk, &s->nest, last, task / bands);
    const char *x = (const char *)launch->ptr[s->x] + (walk.offset[0] + first * xs) * s->bytes;
    char *y = (char *)launch->ptr[s->y] + (walk.offset[1] + first * ys) * qn_kit_bytes(s->y_dtype);
    sum_task(s, x, y, xs, ys, n);
  }
  return QN_OK;
}

#define ROW(engine, anchor, prepare_, run_)                                                                         \
  { .name = engine, .op = anchor, .class_ = QN_CLASS_TUNED,                                                          \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, .prepare = prepare_, .run = run_, .release = cpu_release }
static const qn_engine row[] = {
  ROW("lines", QN_OP_TOP_K, top_k_prepare, top_k_run),
  ROW("lines", QN_OP_SORT, top_k_prepare, top_k_run),
  ROW("lines", QN_OP_CUMSUM, cumsum_prepare, cumsum_run),
};
const qn_engine_list cpu_select_lines = { row, sizeof row / sizeof *row };
