/* pool_lp.c -- lp pooling and its gradient, a tap of many windows at a time: vectors run along channels if they are the fastest dim
 * (NHWC), else along W (NCHW). In the latter case wide windows that are few are done one by one, with vectors along their taps, and
 * forward the short rows of a small plane are joined.
 *
 *   forward   two passes over the taps: the largest, most, then the sum of (|tap|/most)^p, so that no power overflows
 *   backward  a row of dx gathers dy sign(x) (|x|/y)^(p-1) from the windows that hold it
 *
 * "Lanes" are the elements along that dim. */
#include "pool_window.h"
#include "kit/pointwise_math.h"

enum { STRETCH = 256,                     /* lanes for which libm may compute powers */
       SHORT = 64, SMALL = 1024 };        /* windows of a short row; windows of a small plane */

/* Lanes `to` to `to + n - 1` have this tap inside x. x: the first of them; backward, y and dy: those of its window. */
typedef struct tap { const char *x, *y, *dy; int64_t to, n; } tap;

/* One thread's scratch, carved from the workspace. */
typedef struct scratch {
  tap   *taps;                            /* of the current lanes */
  span  *spans;                           /* size[2]: the windows along W whose tap r lies inside x */
  float *most, *sum, *term, *wide[3], *packed;             /* lanes */
  double *total;                          /* lanes: long sums */
} scratch;

static int64_t taps_of(const pooling *v) { return v->size[0] * v->size[1] * v->size[2]; }

static bool few_windows(const pooling *v) { return v->fast == SW && v->size[2] > 4 * v->out[2]; }

static bool by_planes(const pooling *v)
{
  return v->fast == SW && !v->backward && !few_windows(v) && v->out[2] <= SHORT && v->out[1] > 1 && v->out[1] * v->out[2] <= SMALL;
}

static int64_t lanes_of(const pooling *v)
{
  if (by_planes(v)) return qn_round_up(qn_max_i64(v->in[2], v->out[1] * v->out[2]), 16);
  return qn_round_up(v->fast == SC ? v->c : qn_max_i64(v->in[2], v->out[2]), 16);
}

static int64_t carve(const pooling *v, char *base, scratch *s)
{
  float **row[] = { &s->most, &s->sum, &s->term, &s->wide[0], &s->wide[1], &s->wide[2], &s->packed };
  int64_t at = 0;
  s->taps = (tap *)(void *)base, at += taps_of(v) * (int64_t)sizeof *s->taps;
  s->spans = (span *)(void *)(base + at), at = qn_round_up(at + v->size[2] * (int64_t)sizeof *s->spans, 64);
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) *row[i] = (float *)(void *)(base + at), at += lanes_of(v) * 4;
  s->total = (double *)(void *)(base + at), at += lanes_of(v) * 8;
  return qn_round_up(at, 256);
}

static void find_spans(const pooling *v, span *spans)
{
  for (int64_t r = 0; r < v->size[2]; r++) places_of_tap(v, 2, r, &spans[r].first, &spans[r].end);
}

/* ---- rows of lanes --------------------------------------------------------------------------------------------- */

/* n lanes of a tensor, `stride` elements apart, as contiguous f32: in place, or in buffer. */
static const float *fetch(const pool_tensor *t, const char *at, int64_t stride, int64_t n, float *buffer, float *packed)
{
  const float *x = (const float *)(const void *)at;
  if (t->dtype == QN_F32 && stride == 1) return x;
  if (t->dtype == QN_F32 && stride == 2)  /* spelled out so that it vectorises */
#pragma omp simd
    for (int64_t i = 0; i < n; i++) buffer[i] = x[2 * i];
  else if (stride == 1) row_to_f32(buffer, at, t->dtype, n);
  else {
    gather_row(packed, at, t->bytes, stride, n);
    row_to_f32(buffer, packed, t->dtype, n);
  }
  return buffer;
}

/* t to the power e, for t >= 0. */
static void raise_row(float *t, float e, int64_t n)
{
  if (e == 0)
    for (int64_t i = 0; i < n; i++) t[i] = 1;
  else if (e == 2)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) t[i] = t[i] * t[i];
  else if (e == 3)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) t[i] = t[i] * t[i] * t[i];
  else if (e != 1)
    for (int64_t first = 0; first < n; first += STRETCH) {
      const int64_t m = qn_min_i64(STRETCH, n - first);
      float *a = t + first, base[STRETCH];
      int32_t beyond = 0;
      memcpy(base, a, (size_t)m * 4);
#pragma omp simd reduction(|: beyond)
      for (int64_t i = 0; i < m; i++) {
        beyond |= m_pow_beyond(base[i], e);
        a[i] = m_pow(base[i], e);
      }
      for (int64_t i = 0; beyond && i < m; i++)
        if (m_pow_beyond(base[i], e)) a[i] = powf(base[i], e);
    }
}

static void lanes_max(float *most, const float *x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float a = m_abs(x[i]);
    most[i] = ((a > most[i]) | (a != a)) ? a : most[i];
  }
}

static void lanes_ratio(float *t, const float *x, const float *by, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) t[i] = m_abs(x[i]) / by[i];
}

static void lanes_add(float *sum, int64_t step, const float *x, int64_t n)
{
  if (step == 1)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) sum[i] += x[i];
  else
    for (int64_t i = 0; i < n; i++) sum[i * step] += x[i];
}

static float run_max(float most, const float *x, int64_t n)
{
  v_f32 each = v_all(most);
  int64_t i = 0;
  for (; i + CPU_LANES <= n; i += CPU_LANES) each = v_larger(each, (v_f32)((v_i32)v_load(x + i) & INT32_MAX));
  for (int k = 0; k < CPU_LANES; k++) most = f_larger(most, each[k]);
  for (; i < n; i++) most = f_larger(most, m_abs(x[i]));
  return most;
}

/* If most is 0, Inf or NaN it is also the result, and the sum is ignored. */
static void lanes_root(float *y, const float *most, float *sum, double p, int64_t n)
{
  if (p == 2)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) sum[i] = sqrtf(sum[i]);
  else raise_row(sum, (float)(1 / p), n);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = ((most[i] > 0.0f) & (most[i] < INFINITY)) ? most[i] * sum[i] : most[i];
}

/* dy sign(x) t, for windows with y != 0 */
static void lanes_gradient(float *t, const float *dy, const float *x, const float *y, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float sign = x[i] > 0.0f ? 1.0f : x[i] < 0.0f ? -1.0f : x[i];
    const float whole = dy[i] * sign * t[i];
    t[i] = y[i] != 0.0f ? whole : 0.0f;
  }
}

/* ---- forward: the windows at an index, whose entry for v->fast is 0 ----------------------------------------------- */

static char *element(const pool_tensor *t, const qn_launch *launch, const int64_t at[AXES])
{
  return tensor_at(t, launch, at[SN], at[SC], at[SD], at[SH], at[SW]);
}

static int64_t list_taps(const pooling *v, const qn_launch *launch, const int64_t window[AXES], scratch *s)
{
  int64_t n = 0;
  for (int64_t rd = 0; rd < v->size[0]; rd++) {
    const int64_t d = position(v, 0, window[SD], rd);
    for (int64_t rh = 0; rh < v->size[1] && inside(v, 0, d); rh++) {
      const int64_t h = position(v, 1, window[SH], rh);
      for (int64_t rw = 0; rw < v->size[2] && inside(v, 1, h); rw++) {
        const span along = v->fast == SW ? s->spans[rw] : (span){ 0, v->c };
        const int64_t w = position(v, 2, v->fast == SW ? along.first : window[SW], rw);
        if (along.first < along.end && inside(v, 2, w))
          s->taps[n++] = (tap){ .x = tensor_at(&v->x, launch, window[SN], window[SC], d, h, w), .to = along.first,
                                .n = along.end - along.first };
      }
    }
  }
  return n;
}

/* The rows of taps of window pw, each s->taps[i].n long, dilation[2] apart. */
static int64_t list_rows(const pooling *v, const qn_launch *launch, const int64_t window[AXES], int64_t pw, scratch *s)
{
  const span ds = taps_inside(v, 0, window[SD]), hs = taps_inside(v, 1, window[SH]), ws = taps_inside(v, 2, pw);
  int64_t n = 0;
  for (int64_t rd = ds.first; rd < ds.end; rd++)
    for (int64_t rh = hs.first; rh < hs.end && ws.first < ws.end; rh++)
      s->taps[n++] = (tap){ .x = tensor_at(&v->x, launch, window[SN], window[SC], position(v, 0, window[SD], rd),
                                           position(v, 1, window[SH], rh), position(v, 2, pw, ws.first)), .n = ws.end - ws.first };
  return n;
}

static void forward_few(const pooling *v, const qn_launch *launch, const int64_t window[AXES], int64_t n, scratch *s)
{
  float *most = s->wide[1];
  for (int64_t p = 0; p < n; p++) {
    const int64_t rows = list_rows(v, launch, window, p, s);
    double sum = 0;
    most[p] = 0;
    for (const tap *t = s->taps; t < s->taps + rows; t++)
      most[p] = run_max(most[p], fetch(&v->x, t->x, v->dilation[2], t->n, s->wide[0], s->packed), t->n);
    for (int64_t i = 0; rows > 0 && i < s->taps->n; i++) s->most[i] = most[p];
    for (const tap *t = s->taps; t < s->taps + rows; t++) {
      lanes_ratio(s->term, fetch(&v->x, t->x, v->dilation[2], t->n, s->wide[0], s->packed), s->most, t->n);
      raise_row(s->term, (float)v->p, t->n);
      sum += pool_run_sum(s->term, t->n);
    }
    s->sum[p] = (float)sum;
  }
  lanes_root(s->wide[0], most, s->sum, v->p, n);
  row_from_f32(element(&v->y, launch, window), s->wide[0], v->y.dtype, n);
}

static void forward(const pooling *v, const qn_launch *launch, const int64_t window[AXES], int64_t n, scratch *s)
{
  const int64_t taps = list_taps(v, launch, window, s), step = v->fast == SW ? v->step[2] : 1;
  for (int64_t i = 0; i < n; i++) s->most[i] = s->sum[i] = 0;
  for (const tap *t = s->taps; t < s->taps + taps; t++)
    lanes_max(s->most + t->to, fetch(&v->x, t->x, step, t->n, s->wide[0], s->packed), t->n);
  for (const tap *t = s->taps; t < s->taps + taps; t++) {
    lanes_ratio(s->term, fetch(&v->x, t->x, step, t->n, s->wide[0], s->packed), s->most + t->to, t->n);
    raise_row(s->term, (float)v->p, t->n);
    lanes_add(s->sum + t->to, 1, s->term, t->n);
    pool_flush(s->total, s->sum, t - s->taps + 1, n);
  }
  pool_join(s->total, s->sum, taps, n);
  lanes_root(s->wide[0], s->most, s->sum, v->p, n);
  row_from_f32(element(&v->y, launch, window), s->wide[0], v->y.dtype, n);
}

/* A tap of all windows of a plane, as lanes in s->wide[0]; 0, which changes nothing, where it is outside x. */
static void gather_tap(const pooling *v, const qn_launch *launch, const int64_t window[AXES], const int64_t tap[3], scratch *s)
{
  const int64_t d = position(v, 0, window[SD], tap[0]), columns = v->out[2];
  const span along = s->spans[tap[2]];
  float *lanes = s->wide[0];
  memset(lanes, 0, (size_t)(v->out[1] * columns) * sizeof *lanes);
  for (int64_t ph = 0; ph < v->out[1] && inside(v, 0, d) && along.first < along.end; ph++, lanes += columns) {
    const int64_t h = position(v, 1, ph, tap[1]), n = along.end - along.first;
    if (!inside(v, 1, h)) continue;
    const char *at = tensor_at(&v->x, launch, window[SN], window[SC], d, h, position(v, 2, along.first, tap[2]));
    const float *x = fetch(&v->x, at, v->step[2], n, lanes + along.first, s->packed);
    if (x != lanes + along.first) memcpy(lanes + along.first, x, (size_t)n * sizeof *x);
  }
}

static void forward_plane(const pooling *v, const qn_launch *launch, const int64_t window[AXES], scratch *s)
{
  const int64_t n = v->out[1] * v->out[2];
  for (int64_t i = 0; i < n; i++) s->most[i] = s->sum[i] = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < taps_of(v); i++) {
      gather_tap(v, launch, window, (int64_t[]){ i / v->size[2] / v->size[1], i / v->size[2] % v->size[1], i % v->size[2] }, s);
      if (pass == 0) {
        lanes_max(s->most, s->wide[0], n);
        continue;
      }
      lanes_ratio(s->term, s->wide[0], s->most, n);
      raise_row(s->term, (float)v->p, n);
      lanes_add(s->sum, 1, s->term, n);
      pool_flush(s->total, s->sum, i + 1, n);
    }
  pool_join(s->total, s->sum, taps_of(v), n);
  lanes_root(s->wide[0], s->most, s->sum, v->p, n);
  for (int64_t ph = 0; ph < v->out[1]; ph++)
    row_from_f32(tensor_at(&v->y, launch, window[SN], window[SC], window[SD], ph, 0), s->wide[0] + ph * v->out[2], v->y.dtype, v->out[2]);
}

/* ---- backward: a row of dx, whose index for v->fast is 0 -------------------------------------------------------------- */

/* As list_taps, for a position in x; window by window. */
static int64_t list_windows(const pooling *v, const qn_launch *launch, const int64_t place[AXES], scratch *s)
{
  const bool along_w = v->fast == SW;
  const span ds = windows_over(v, 0, place[SD]), hs = windows_over(v, 1, place[SH]);
  const span ws = along_w ? (span){ 0, v->size[2] } : windows_over(v, 2, place[SW]);
  int64_t n = 0;
  for (int64_t pd = ds.first; pd < ds.end; pd++)
    for (int64_t ph = hs.first; ph < hs.end; ph++) {
      if (tap_at(v, 0, pd, place[SD]) < 0 || tap_at(v, 1, ph, place[SH]) < 0) continue;
      for (int64_t i = ws.first; i < ws.end; i++) {        /* one tap of contiguous windows; or one window's channels */
        const span along = along_w ? s->spans[i] : (span){ 0, v->c };
        const int64_t pw = along_w ? along.first : i, w = along_w ? position(v, 2, pw, i) : place[SW];
        if (along.first >= along.end || (!along_w && tap_at(v, 2, pw, w) < 0)) continue;
        const int64_t from[AXES] = { place[SN], place[SC], place[SD], place[SH], w };
        const int64_t window[AXES] = { place[SN], place[SC], pd, ph, pw };
        s->taps[n++] = (tap){ element(&v->seen, launch, from), element(&v->made, launch, window), element(&v->y, launch, window),
                              along_w ? w : 0, along.end - along.first };
      }
    }
  return n;
}

static void backward_few(const pooling *v, const qn_launch *launch, const int64_t place[AXES], int64_t n, scratch *s)
{
  const span ds = windows_over(v, 0, place[SD]), hs = windows_over(v, 1, place[SH]);
  for (int64_t i = 0; i < n; i++) s->sum[i] = 0;
  const int64_t high = hs.end - hs.first;
  for (int64_t i = 0; i < (ds.end - ds.first) * high * v->out[2]; i++) {
    const int64_t row = i / v->out[2], pd = ds.first + row / high, ph = hs.first + row % high, pw = i % v->out[2];
    const span taps = taps_inside(v, 2, pw);
    const int64_t w = position(v, 2, pw, taps.first), many = taps.end - taps.first;
    if (many <= 0 || tap_at(v, 0, pd, place[SD]) < 0 || tap_at(v, 1, ph, place[SH]) < 0) continue;
    const int64_t from[AXES] = { place[SN], place[SC], place[SD], place[SH], w }, window[AXES] = { place[SN], place[SC], pd, ph, pw };
    const float *x = fetch(&v->seen, element(&v->seen, launch, from), v->dilation[2], many, s->wide[0], s->packed);
    const float y = (float)qn_load_f64(element(&v->made, launch, window), v->made.dtype);
    const float dy = (float)qn_load_f64(element(&v->y, launch, window), v->y.dtype);
    for (int64_t k = 0; k < many; k++) s->wide[1][k] = y, s->wide[2][k] = dy;
    lanes_ratio(s->term, x, s->wide[1], many);
    raise_row(s->term, (float)(v->p - 1), many);
    lanes_gradient(s->term, s->wide[2], x, s->wide[1], many);
    lanes_add(s->sum + w, v->dilation[2], s->term, many);
  }
  row_from_f32(element(&v->x, launch, place), s->sum, v->x.dtype, n);
}

static void backward(const pooling *v, const qn_launch *launch, const int64_t place[AXES], int64_t n, scratch *s)
{
  const int64_t taps = list_windows(v, launch, place, s), step = v->fast == SW ? v->step[2] : 1;
  for (int64_t i = 0; i < n; i++) s->sum[i] = 0;
  for (const tap *t = s->taps; t < s->taps + taps; t++) {
    const float *x = fetch(&v->seen, t->x, step, t->n, s->wide[0], s->packed);
    const float *y = fetch(&v->made, t->y, 1, t->n, s->wide[1], s->packed);
    const float *dy = fetch(&v->y, t->dy, 1, t->n, s->wide[2], s->packed);
    lanes_ratio(s->term, x, y, t->n);
    raise_row(s->term, (float)(v->p - 1), t->n);
    lanes_gradient(s->term, dy, x, y, t->n);
    lanes_add(s->sum + t->to, step, s->term, t->n);
  }
  row_from_f32(element(&v->x, launch, place), s->sum, v->x.dtype, n);
}

/* ---- prepare: refuses f64, and unless channels or W are the fastest dim ------------------------------------------------ */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  const int32_t x = qn_role(&request->op[0], request->op[0].op == QN_OP_POOL_LP ? QN_ROLE_POOL_LP_X : QN_ROLE_POOL_LP_BACKWARD_X);
  const bool channels = request->value[x].dim[1] > 1 && pool_tensor_of(request, x).stride[SC] == 1;
  pooling v;
  scratch s;
  qn_status status = cpu_isa_check(request, prepared);
  if (!status) status = pooling_of(request, prepared, channels ? SC : SW, &v);
  if (status) return status;
  if (!channels) pool_join_rows(&v);
  v.scratch = carve(&v, NULL, &s);
  return pooling_keep(request, prepared, &v, 0);
}
#endif

/* ---- run ------------------------------------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_pool_lp_run);
qn_status CPU_NAME(cpu_pool_lp_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const pooling *v = prepared->state;
  const int64_t *extent = v->backward ? v->in : v->out;
  int64_t dim[AXES] = { v->n, v->c, extent[0], extent[1], extent[2] }, tasks = 1;
  const int64_t n = dim[v->fast];
  dim[v->fast] = 1;
  if (by_planes(v)) dim[SH] = 1;
  for (int d = 0; d < AXES; d++) tasks *= dim[d];
  const int threads = pool_threads(v, launch, tasks);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int k = 0; k < threads; k++) {
    scratch s;
    carve(v, (char *)launch->workspace + k * v->scratch, &s);
    find_spans(v, s.spans);
    for (int64_t i = tasks * k / threads; i < tasks * (k + 1) / threads; i++) {
      int64_t at[AXES], rest = i;
      for (int d = AXES - 1; d >= 0; d--) at[d] = rest % dim[d], rest /= dim[d];
      if (by_planes(v)) forward_plane(v, launch, at, &s);
      else if (v->backward) (few_windows(v) ? backward_few : backward)(v, launch, at, n, &s);
      else (few_windows(v) ? forward_few : forward)(v, launch, at, n, &s);
    }
  }
  return QN_OK;
}

#ifdef CPU_BASELINE
#define ROWS_OF(name, run) POOL_ROW(name, run, QN_OP_POOL_LP), POOL_ROW(name, run, QN_OP_POOL_LP_BACKWARD),
static const qn_engine row[] = { CPU_COPIES(ROWS_OF, "lanes", cpu_pool_lp_run) };
const qn_engine_list cpu_pool_lp = { row, sizeof row / sizeof *row };
#endif
