/* pool_planes.c -- pooling where the last spatial dim is the fastest (NCHW): a plane per thread, with rows as vectors.
 *
 * Forward, a window is computed in two steps: along W, a row of x becomes a row of partial results; then such rows are combined
 * along H and D. Partial rows that later windows need are kept. As each row is done first, the first of equal
 * maxima remains the first in row-major order. Backward, a window's gradient is added to the rows it covers, or at
 * the position of its maximum, in a plane of `real`: dx itself if of that dtype. */
#include "pool_window.h"

/* One thread's scratch, carved from the workspace. */
typedef struct scratch {
  real    *wide;                         /* W or P: a row of x or dy, widened */
  real    *partial;                      /* rows * P: results along W, and for maxima their numbers */
  int32_t *partial_number;
  int64_t *tag;                           /* rows: the row of x that it holds */
  real    *best;                         /* P */
  int32_t *number;                        /* P */
  real    *count;                        /* P: taps counted along W */
  double  *total;                        /* P: long sums */
  real    *plane;                        /* backward, D * H * W */
  int64_t  rows;
} scratch;

static int64_t kept_rows(const pooling *v) { return v->size[0] * qn_min_i64((v->size[1] - 1) * v->dilation[1] + 1, v->in[1]); }

static int64_t carve(const pooling *v, char *base, scratch *s)
{
  const int64_t size = sizeof(real), row = qn_round_up(v->in[2] * size, 64), out = qn_round_up(v->out[2] * size, 64), rows = kept_rows(v);
  int64_t at = 0;
  s->rows = rows;
  s->wide = (real *)(void *)(base + at), at += qn_max_i64(out, row);
  s->best = (real *)(void *)(base + at), at += qn_max_i64(out, row);
  s->number = (int32_t *)(void *)(base + at), at += out;
  s->count = (real *)(void *)(base + at), at += out;
  s->partial = (real *)(void *)(base + at), at += rows * out;
  s->partial_number = (int32_t *)(void *)(base + at), at += rows * out;
  s->tag = (int64_t *)(void *)(base + at), at += qn_round_up(rows * 8, 64);
  s->total = (double *)(void *)(base + at), at += qn_round_up(v->out[2] * 8, 64);
  s->plane = (real *)(void *)(base + at);
  if (pool_needs_plane(v)) at += qn_round_up(v->in[0] * v->in[1] * v->in[2] * size, 64);
  return qn_round_up(at, 256);
}

/* ---- along W --------------------------------------------------------------------------------------------- */

/* Strides 1 and 2 are spelled out so that they vectorise. */
static void columns_sum(real *y, const real *x, int64_t step, int64_t n)
{
  if (step == 1)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
  else if (step == 2)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] += x[2 * i];
  else
    for (int64_t i = 0; i < n; i++) y[i] += x[step * i];
}

CPU_INLINE real larger(real best, real x) { return ((x > best) | (x != x)) ? x : best; }

static void columns_max(real *y, const real *x, int64_t step, int64_t n)
{
  if (step == 1)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = larger(y[i], x[i]);
  else if (step == 2)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = larger(y[i], x[2 * i]);
  else
    for (int64_t i = 0; i < n; i++) y[i] = larger(y[i], x[step * i]);
}

CPU_INLINE bool beats(real x, real best, int32_t number)
{
  return (x > best) | ((x != x) & (best == best)) | (number < 0);
}

static void columns_argmax(real *y, int32_t *number, const real *x, int64_t step, int32_t first, int32_t each, int64_t n)
{
  if (step == 2)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
      const bool better = beats(x[2 * i], y[i], number[i]);
      y[i] = better ? x[2 * i] : y[i];
      number[i] = better ? first + (int32_t)i * each : number[i];
    }
  else
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
      const bool better = beats(x[step * i], y[i], number[i]);
      y[i] = better ? x[step * i] : y[i];
      number[i] = better ? first + (int32_t)i * each : number[i];
    }
}

/* Windows along W that are wide but few: done one by one. */
static bool few_windows(const pooling *v)
{
  return v->before[2] == 0 && (v->out[2] - 1) * v->step[2] + v->size[2] <= v->in[2] && v->dilation[2] == 1 && v->size[2] > 4 * v->out[2];
}

/* The sum of window p along W, for windows that are few or long. */
static real sum_along(const pooling *v, const real *x, int64_t p)
{
  const span taps = taps_inside(v, 2, p);
  const int64_t n = taps.end - taps.first, step = v->dilation[2];
  if (n <= 0) return 0;
  x += position(v, 2, p, taps.first);
  if (step == 1) return (real)pool_run_sum(x, n);
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (double)x[i * step];
  return (real)sum;
}

/* Combines a row x along W. numbers: for u8 the taps' numbers, else positions in the row. */
static void pool_row(const pooling *v, real *y, int32_t *number, uint32_t numbers, const real *x)
{
  if (!v->maximum && (few_windows(v) || v->size[2] > POOL_BURST)) {
    for (int64_t p = 0; p < v->out[2]; p++) y[p] = sum_along(v, x, p);
    return;
  }
  for (int64_t p = 0; p < v->out[2]; p++) y[p] = v->maximum ? -INFINITY : 0;
  for (int64_t p = 0; number && p < v->out[2]; p++) number[p] = -1;
  for (int64_t r = 0; r < v->size[2]; r++) {
    int64_t p, end;
    places_of_tap(v, 2, r, &p, &end);
    if (p >= end) continue;
    const real *from = x + position(v, 2, p, r);
    if (!v->maximum) columns_sum(y + p, from, v->step[2], end - p);
    else if (!number) columns_max(y + p, from, v->step[2], end - p);
    else if (numbers == QN_U8) columns_argmax(y + p, number + p, from, v->step[2], (int32_t)r, 0, end - p);
    else columns_argmax(y + p, number + p, from, v->step[2], (int32_t)position(v, 2, p, r), (int32_t)v->step[2], end - p);
  }
}

/* ---- down H and D ------------------------------------------------------------------------------------------ */

static void combine_max(real *best, const real *row, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) best[i] = larger(best[i], row[i]);
}

static void combine_argmax(real *best, int32_t *number, const real *row, const int32_t *row_number, int32_t base, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const bool better = (row_number[i] >= 0) & beats(row[i], best[i], number[i]);
    best[i] = better ? row[i] : best[i];
    number[i] = better ? base + row_number[i] : number[i];
  }
}

/* Row (pd, ph) of windows over plane x, times POOL_SMALL if small, into s->best, for maxima also s->number. */
CPU_INLINE void pool_rows(const pooling *v, const pool_tensor *x, const char *plane, int64_t pd, int64_t ph, bool numbered,
                      uint32_t numbers, bool small, scratch *s)
{
  int64_t terms = 0;
  const int64_t n = v->out[2], size = sizeof(real), pitch = qn_round_up(n * size, 64) / size, per_depth = s->rows / v->size[0];
  for (int64_t i = 0; i < n; i++) s->best[i] = v->maximum ? -INFINITY : 0;
  for (int64_t i = 0; numbered && i < n; i++) s->number[i] = -1;
  for (int64_t rd = 0; rd < v->size[0]; rd++) {
    const int64_t d = position(v, 0, pd, rd);
    if (!inside(v, 0, d)) continue;
    for (int64_t rh = 0; rh < v->size[1]; rh++) {
      const int64_t h = position(v, 1, ph, rh);
      if (!inside(v, 1, h)) continue;
      const int64_t slot = rd * per_depth + h % per_depth, tag = d * v->in[1] + h;
      real *row = s->partial + slot * pitch;
      int32_t *row_number = numbered ? s->partial_number + slot * pitch : NULL;
      if (s->tag[slot] != tag) {
        const char *from = plane + (d * x->stride[SD] + h * x->stride[SH]) * x->bytes;
        const real *wide = pool_wide(x, from, v->in[2], s->wide);
        pool_row(v, row, row_number, numbers, small ? pool_small(wide, v->in[2], s->wide) : wide);
        s->tag[slot] = tag;
      }
      if (!v->maximum) {
        columns_sum(s->best, row, 1, n);
        if (v->far) pool_flush(s->total, s->best, ++terms, n);
      } else if (!numbered) combine_max(s->best, row, n);
      else combine_argmax(s->best, s->number, row, row_number, (int32_t)number_base(v, numbers, rd, rh, d, h), n);
    }
  }
  pool_join(s->total, s->best, terms, n);
}

static void forget(scratch *s)
{
  for (int64_t i = 0; i < s->rows; i++) s->tag[i] = -1;
}

/* Divides a row of windows: by the taps counted along D and H times those along W. */
static void divide(const pooling *v, real *y, int64_t pd, int64_t ph, const real *count)
{
  const real down = (real)(taps_counted(v, 0, pd) * taps_counted(v, 1, ph));
#pragma omp simd
  for (int64_t i = 0; i < v->out[2]; i++) {
    const real by = down * count[i];
    y[i] = y[i] / (by > 0.0f ? by : 1.0f);
  }
}

static void count_along_w(const pooling *v, scratch *s)
{
  for (int64_t p = 0; p < v->out[2]; p++) s->count[p] = (real)taps_counted(v, 2, p);
}

/* The average over a plane without gaps, as one row. */
static bool one_average(const pooling *v)
{
  return !v->maximum && v->in[0] * v->in[1] == 1 && pool_whole(v, 0) && pool_whole(v, 1) && pool_whole(v, 2);
}

CPU_INLINE void pool_plane_of(const pooling *v, const qn_launch *launch, int64_t n, int64_t c, bool small, scratch *s)
{
  const bool numbered = v->indices.value >= 0;
  const char *plane = tensor_at(&v->x, launch, n, c, 0, 0, 0);
  forget(s);
  for (int64_t pd = 0; pd < v->out[0]; pd++)
    for (int64_t ph = 0; ph < v->out[1]; ph++) {
      pool_rows(v, &v->x, plane, pd, ph, numbered, v->indices.dtype, small, s);
      if (!v->maximum) divide(v, s->best, pd, ph, s->count);
      char *to = tensor_at(&v->y, launch, n, c, pd, ph, 0);
      if (small) pool_mend(&v->y, to, s->best, v->out[2], s->wide);
      row_from_real(to, s->best, v->y.dtype, v->out[2]);
      if (numbered) put_indices(tensor_at(&v->indices, launch, n, c, pd, ph, 0), v->indices.dtype, s->number, v->out[2]);
    }
}

static void forward(const pooling *v, const qn_launch *launch, int64_t n, int64_t c, scratch *s)
{
  if (one_average(v)) {
    const real *x = pool_wide(&v->x, tensor_at(&v->x, launch, n, c, 0, 0, 0), v->in[2], s->wide);
    real mean = (real)(pool_run_sum(x, v->in[2]) / (double)v->in[2]);
    if (!isfinite(mean))
      mean = (real)(pool_run_sum(pool_small(x, v->in[2], s->wide), v->in[2]) / (double)v->in[2] / (double)POOL_SMALL);
    row_from_real(tensor_at(&v->y, launch, n, c, 0, 0, 0), &mean, v->y.dtype, 1);
    return;
  }
  pool_plane_of(v, launch, n, c, false, s);
  if (!v->maximum && pool_plane_is_odd(v, launch, n, c)) pool_plane_of(v, launch, n, c, true, s);
}

/* ---- backward ------------------------------------------------------------------------------------------------- */

/* a / b through b's inverse; for a below 2^31 and b below 2^8, a + 1/2 is too far from a multiple of b for rounding to reach it. */
CPU_INLINE int32_t quotient(int32_t a, double inverse)    { return (int32_t)((a + 0.5) * inverse); }
CPU_INLINE int32_t quotient_u8(int32_t a, float inverse)  { return (int32_t)(((float)a + 0.5f) * inverse); }

/* Up to places_named, rows of n windows are whole vectors; what lies beyond the last window becomes -1. */

/* Converts tap numbers to positions in x's plane; -1: no tap, or one outside x. */
static void places_of_taps(const pooling *v, int64_t pd, int64_t ph, int32_t *place, int64_t n)
{
  const int32_t taps = (int32_t)(v->size[0] * v->size[1] * v->size[2]), step = (int32_t)v->step[2];
  const int32_t columns = (int32_t)v->size[2], rows = (int32_t)v->size[1];
  const int32_t in_d = (int32_t)v->in[0], in_h = (int32_t)v->in[1], in_w = (int32_t)v->in[2];
  const int32_t d0 = (int32_t)position(v, 0, pd, 0), h0 = (int32_t)position(v, 1, ph, 0), w0 = (int32_t)position(v, 2, 0, 0);
  const int32_t by_d = (int32_t)v->dilation[0], by_h = (int32_t)v->dilation[1], by_w = (int32_t)v->dilation[2];
  const float per_column = 1.0f / (float)columns, per_row = 1.0f / (float)rows;
#pragma omp simd
  for (int64_t p = 0; p < n; p++) {
    const bool known = (place[p] >= 0) & (place[p] < taps);
    const int32_t tap = known ? place[p] : 0, row = quotient_u8(tap, per_column), depth = quotient_u8(row, per_row);
    const int32_t d = d0 + depth * by_d, h = h0 + (row - depth * rows) * by_h;
    const int32_t w = w0 + (int32_t)p * step + (tap - row * columns) * by_w;
    const bool there = known & (d >= 0) & (d < in_d) & (h >= 0) & (h < in_h) & (w >= 0) & (w < in_w);
    place[p] = there ? (d * in_h + h) * in_w + w : -1;
  }
}

/* Keeps the positions that are inside their window; -1 for the others. */
static void places_in_windows(const pooling *v, int64_t pd, int64_t ph, int32_t *place, int64_t n)
{
  const int32_t step = (int32_t)v->step[2], in_h = (int32_t)v->in[1], in_w = (int32_t)v->in[2];
  const int32_t d0 = (int32_t)position(v, 0, pd, 0), h0 = (int32_t)position(v, 1, ph, 0), w0 = (int32_t)position(v, 2, 0, 0);
  int32_t span[3];
  for (int d = 0; d < 3; d++) span[d] = (int32_t)((v->size[d] - 1) * v->dilation[d]);
  const int32_t span_d = span[0], span_h = span[1], span_w = span[2];
  const double per_column = 1.0 / in_w, per_row = 1.0 / in_h;
  const int32_t all = (int32_t)(v->in[0] * v->in[1] * v->in[2]);
  const bool gaps = v->dilation[0] > 1 || v->dilation[1] > 1 || v->dilation[2] > 1;
#pragma omp simd
  for (int64_t p = 0; p < n; p++) {
    const int32_t row = quotient(place[p], per_column), depth = quotient(row, per_row);
    const int32_t d = depth - d0, h = row - depth * in_h - h0, w = place[p] - row * in_w - (w0 + (int32_t)p * step);
    const bool there = (place[p] >= 0) & (place[p] < all) & (d >= 0) & (d <= span_d) & (h >= 0) & (h <= span_h) & (w >= 0) & (w <= span_w);
    place[p] = there ? place[p] : -1;
  }
  for (int64_t p = 0; gaps && p < v->out[2]; p++) {
    if (place[p] < 0) continue;
    const int64_t row = place[p] / in_w, d = row / in_h - d0, h = row % in_h - h0, w = place[p] % in_w - position(v, 2, p, 0);
    if (d % v->dilation[0] || h % v->dilation[1] || w % v->dilation[2]) place[p] = -1;
  }
}

/* The positions given by a row of windows' indices; -1: none, or one outside the window. */
static void places_named(const pooling *v, const void *index, int64_t pd, int64_t ph, int32_t *place)
{
  const int64_t windows = v->out[2], n = qn_round_up(windows, 16);
  const uint64_t all = (uint64_t)(v->in[0] * v->in[1] * v->in[2]);
  for (int64_t p = windows; p < n; p++) place[p] = -1;
  if (v->indices.dtype == QN_U8) {
    for (int64_t p = 0; p < windows; p++) place[p] = ((const uint8_t *)index)[p];
    places_of_taps(v, pd, ph, place, n);
    return;
  }
  if (v->indices.dtype == QN_I32) memcpy(place, index, (size_t)windows * 4);
  else for (int64_t p = 0; p < windows; p++) {
    const int64_t named = ((const int64_t *)index)[p];
    place[p] = (uint64_t)named < all ? (int32_t)named : -1;
  }
  places_in_windows(v, pd, ph, place, n);
}

static void add_to_maxima(const pooling *v, const qn_launch *launch, int64_t n, int64_t c, int64_t pd, int64_t ph,
                          const real *dy, const pool_plane *g, scratch *s)
{
  if (v->indices.value < 0) pool_rows(v, &v->seen, tensor_at(&v->seen, launch, n, c, 0, 0, 0), pd, ph, true, QN_I32, false, s);
  else places_named(v, tensor_at(&v->indices, launch, n, c, pd, ph, 0), pd, ph, s->number);
  for (int64_t p = 0; p < v->out[2]; p++)
    if (s->number[p] >= 0) g->p[s->number[p]] += dy[p];
}

/* dy / divisor, summed over the windows that cover each column, then added to each row that those windows cover. */
static void add_to_windows(const pooling *v, int64_t pd, int64_t ph, const real *dy, const pool_plane *g, scratch *s)
{
  real *spread = s->best, *each = s->partial;
  memcpy(each, dy, (size_t)v->out[2] * sizeof *each);
  divide(v, each, pd, ph, s->count);
  for (int64_t w = 0; w < v->in[2]; w++) spread[w] = 0;
  for (int64_t p = 0; few_windows(v) && p < v->out[2]; p++)
#pragma omp simd
    for (int64_t r = 0; r < v->size[2]; r++) spread[p * v->step[2] + r] += each[p];
  for (int64_t r = 0; !few_windows(v) && r < v->size[2]; r++) {
    int64_t p, end;
    places_of_tap(v, 2, r, &p, &end);
    real *to = spread + position(v, 2, p, r);
    for (int64_t i = 0; i < end - p; i++) to[i * v->step[2]] += each[p + i];
  }
  for (int64_t rd = 0; rd < v->size[0]; rd++) {
    const int64_t d = position(v, 0, pd, rd);
    for (int64_t rh = 0; rh < v->size[1] && inside(v, 0, d); rh++) {
      const int64_t h = position(v, 1, ph, rh);
      if (inside(v, 1, h)) columns_sum(pool_plane_row(g, d, h), spread, 1, v->in[2]);
    }
  }
}

static void backward(const pooling *v, const qn_launch *launch, int64_t n, int64_t c, scratch *s)
{
  const pool_plane g = pool_plane_begin(v, launch, n, c, s->plane);
  forget(s);
  for (int64_t pd = 0; pd < v->out[0]; pd++)
    for (int64_t ph = 0; ph < v->out[1]; ph++) {
      const real *dy = pool_wide(&v->y, tensor_at(&v->y, launch, n, c, pd, ph, 0), v->out[2], s->wide);
      if (v->maximum && v->indices.value < 0 && dy == s->wide) {     /* finding the maxima overwrites that row */
        memcpy(s->count, dy, (size_t)v->out[2] * sizeof *dy);
        dy = s->count;
      }
      if (v->maximum) add_to_maxima(v, launch, n, c, pd, ph, dy, &g, s);
      else add_to_windows(v, pd, ph, dy, &g, s);
    }
  pool_plane_end(v, launch, n, c, &g);
}

/* ---- prepare: refuses unless W is the fastest dim (else pool_channels) -------------------------------------------- */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  pooling v;
  scratch s;
  qn_status status = cpu_isa_check(request, prepared);
  if (!status) status = pooling_of(request, prepared, SW, &v);
  if (status) return status;
  pool_join_rows(&v);
  v.scratch = carve(&v, NULL, &s);
  return pooling_keep(request, prepared, &v, 0);
}
#endif

/* ---- run ------------------------------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_pool_planes_run);
qn_status CPU_NAME(cpu_pool_planes_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const pooling *v = prepared->state;
  const int64_t planes = v->n * v->c;
  const int threads = pool_threads(v, launch, planes);
  const int64_t share = qn_ceil_div(planes, threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int64_t first = 0; first < planes; first += share) {
    scratch s;
    carve(v, (char *)launch->workspace + first / share * v->scratch, &s);
    count_along_w(v, &s);
    for (int64_t i = first; i < qn_min_i64(first + share, planes); i++) {
      if (v->backward) backward(v, launch, i / v->c, i % v->c, &s);
      else forward(v, launch, i / v->c, i % v->c, &s);
    }
  }
  return QN_OK;
}

#ifdef CPU_BASELINE
static const qn_engine row[] = { CPU_COPIES(POOL_ROWS, "planes" CPU_REAL_SUFFIX, cpu_pool_planes_run) };
const qn_engine_list cpu_pool_planes = { row, sizeof row / sizeof *row };
#endif
