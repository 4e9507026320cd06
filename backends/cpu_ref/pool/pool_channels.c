/* pool_channels.c -- pooling, also adaptive, where channels are the fastest dim (NHWC): vectors along channels, a tap at a time.
 *
 * Backward gathers: an element of dx collects from each window that covers it, so threads never write to the same place. A maximum's
 * gradient goes where its index says; if indices are not given they are first recomputed, into workspace. */
#include "pool_window.h"

enum { BAND = 4096 / sizeof(real) };      /* channels at a time */

/* ---- a tap -------------------------------------------------------------------------------------------------- */

static void tap_argmax(real *y, int32_t *number, const real *x, int32_t here, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const bool better = (x[i] > y[i]) | ((x[i] != x[i]) & (y[i] == y[i])) | (number[i] < 0);
    y[i] = better ? x[i] : y[i];
    number[i] = better ? here : number[i];
  }
}

/* Adds a window's share to an element of dx: dy where its number is `here`, or for averages dy / by. The first share is stored, not
 * added. The numbers' dtype and `first` are constants at each call. */
CPU_INLINE void add_where_as(real *dx, const real *dy, const void *number, uint32_t dtype, int64_t here, bool first, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const bool chosen = dtype == QN_U8 ? ((const uint8_t *)number)[i] == (uint8_t)here
                      : dtype == QN_I32 ? ((const int32_t *)number)[i] == (int32_t)here : ((const int64_t *)number)[i] == here;
    dx[i] = (first ? 0.0f : dx[i]) + (chosen ? dy[i] : 0.0f);
  }
}

CPU_INLINE void add_where_of(real *dx, const real *dy, const void *number, uint32_t dtype, int64_t here, bool first, int64_t n)
{
  if (dtype == QN_U8) add_where_as(dx, dy, number, QN_U8, here, first, n);
  else if (dtype == QN_I32) add_where_as(dx, dy, number, QN_I32, here, first, n);
  else add_where_as(dx, dy, number, QN_I64, here, first, n);
}

static void add_where(real *dx, const real *dy, const void *number, uint32_t dtype, int64_t here, bool first, int64_t n)
{
  if (first) add_where_of(dx, dy, number, dtype, here, true, n);
  else add_where_of(dx, dy, number, dtype, here, false, n);
}

static void add_divided(real *dx, const real *dy, real by, bool first, int64_t n)
{
  if (first)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dx[i] = dy[i] / by;
  else
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dx[i] += dy[i] / by;
}

/* ---- forward: one window, a band of channels ------------------------------------------------------------------ */

/* Pools into y x, times POOL_SMALL if small, and for maxima into number if wanted. */
CPU_INLINE void pool(const pooling *v, const pool_tensor *x, const qn_launch *launch, const int64_t at[AXES], const span taps[3],
                 int64_t c, int64_t n, uint32_t numbers, bool small, real *y, int32_t *number)
{
  real buffer[BAND];
  double total[BAND];
  int64_t terms = 0;
  for (int64_t i = 0; i < n; i++) y[i] = v->maximum ? -INFINITY : 0;
  for (int64_t i = 0; number && i < n; i++) number[i] = -1;
  for (int64_t rd = taps[0].first; rd < taps[0].end; rd++)
    for (int64_t rh = taps[1].first; rh < taps[1].end; rh++) {
      const int64_t d = position(v, 0, at[SD], rd), h = position(v, 1, at[SH], rh);
      const int64_t base = number_base(v, numbers, rd, rh, d, h), w0 = start_of(v, 2, at[SW]);
      for (int64_t rw = taps[2].first; rw < taps[2].end; rw++) {
        const int64_t w = w0 + rw * v->dilation[2];
        const real *from = pool_wide(x, tensor_at(x, launch, at[SN], c, d, h, w), n, buffer);
        if (!v->maximum) {
          pool_row_sum(y, small ? pool_small(from, n, buffer) : from, n);
          if (v->far) pool_flush(total, y, ++terms, n);
        } else if (number) tap_argmax(y, number, from, (int32_t)(base + (numbers == QN_U8 ? rw : w)), n);
        else pool_row_max(y, from, n);
      }
    }
  pool_join(total, y, terms, n);
}

static real divisor(const pooling *v, int64_t pd, int64_t ph, int64_t pw)
{
  const real by = (real)(taps_counted(v, 0, pd) * taps_counted(v, 1, ph) * taps_counted(v, 2, pw));
  return by > 0 ? by : 1;
}

CPU_INLINE void window(const pooling *v, const qn_launch *launch, const int64_t at[AXES], const span taps[3], bool small)
{
  const bool numbered = v->indices.value >= 0;
  real narrow[BAND], wide[BAND];
  int32_t number[BAND];
  for (int64_t c = 0; c < v->c; c += BAND) {
    const int64_t n = qn_min_i64(BAND, v->c - c);
    char *to = tensor_at(&v->y, launch, at[SN], c, at[SD], at[SH], at[SW]);
    real *y = v->y.dtype == CPU_REAL && !small ? (real *)(void *)to : narrow;
    pool(v, &v->x, launch, at, taps, c, n, v->indices.dtype, small, y, numbered ? number : NULL);
    if (!v->maximum) {
      const real by = divisor(v, at[SD], at[SH], at[SW]);
#pragma omp simd
      for (int64_t i = 0; i < n; i++) y[i] = y[i] / by;
    }
    if (small) pool_mend(&v->y, to, y, n, wide);
    if (y == narrow) row_from_real(to, y, v->y.dtype, n);
    if (numbered) put_indices(tensor_at(&v->indices, launch, at[SN], c, at[SD], at[SH], at[SW]), v->indices.dtype, number, n);
  }
}

static void forward(const pooling *v, const qn_launch *launch, const int64_t at[AXES], const span taps[3])
{
  window(v, launch, at, taps, false);
}
static void forward_small(const pooling *v, const qn_launch *launch, const int64_t at[AXES], const span taps[3])
{
  window(v, launch, at, taps, true);
}

/* ---- backward: one place of dx ------------------------------------------------------------------------------------ */

/* Recomputed indices, in order, channels fastest. */
static int32_t *found_at(const pooling *v, const qn_launch *launch, int64_t n, int64_t d, int64_t h, int64_t w)
{
  return (int32_t *)launch->workspace + (((n * v->out[0] + d) * v->out[1] + h) * v->out[2] + w) * v->c;
}

static void find(const pooling *v, const qn_launch *launch, const int64_t at[AXES], const span taps[3])
{
  real y[BAND];
  for (int64_t c = 0; c < v->c; c += BAND)
    pool(v, &v->seen, launch, at, taps, c, qn_min_i64(BAND, v->c - c), QN_I32, false, y,
         found_at(v, launch, at[SN], at[SD], at[SH], at[SW]) + c);
}

/* Adds to dx the share of a window in which this element has number `here`. */
static void take(const pooling *v, const qn_launch *launch, const int64_t window[AXES], int64_t c, int64_t n, int64_t here, bool first,
                 real *dx)
{
  real buffer[BAND];
  const real *dy = pool_wide(&v->y, tensor_at(&v->y, launch, window[SN], c, window[SD], window[SH], window[SW]), n, buffer);
  if (!v->maximum) add_divided(dx, dy, divisor(v, window[SD], window[SH], window[SW]), first, n);
  else if (v->indices.value < 0)
    add_where(dx, dy, found_at(v, launch, window[SN], window[SD], window[SH], window[SW]) + c, QN_I32, here, first, n);
  else
    add_where(dx, dy, tensor_at(&v->indices, launch, window[SN], c, window[SD], window[SH], window[SW]), v->indices.dtype, here, first, n);
}

static void backward(const pooling *v, const qn_launch *launch, const int64_t at[AXES], const span windows[3])
{
  const uint32_t numbers = v->indices.value < 0 ? QN_I32 : v->indices.dtype;
  real narrow[BAND];
  for (int64_t c = 0; c < v->c; c += BAND) {
    const int64_t n = qn_min_i64(BAND, v->c - c);
    char *to = tensor_at(&v->x, launch, at[SN], c, at[SD], at[SH], at[SW]);
    real *dx = v->x.dtype == CPU_REAL ? (real *)(void *)to : narrow;
    double total[BAND];
    int64_t terms = 0;
    bool first = true;                    /* since the last flush */
    for (int64_t pd = windows[0].first; pd < windows[0].end; pd++)
      for (int64_t ph = windows[1].first; ph < windows[1].end; ph++) {
        const int64_t rd = tap_at(v, 0, pd, at[SD]), rh = tap_at(v, 1, ph, at[SH]);
        for (int64_t pw = windows[2].first; pw < windows[2].end && rd >= 0 && rh >= 0; pw++) {
          const int64_t rw = tap_at(v, 2, pw, at[SW]), window[AXES] = { at[SN], 0, pd, ph, pw };
          const int64_t here = number_base(v, numbers, rd, rh, at[SD], at[SH]) + (numbers == QN_U8 ? rw : at[SW]);
          if (rw < 0) continue;
          take(v, launch, window, c, n, here, first, dx);
          first = pool_flush(total, dx, ++terms, n);
        }
      }
    if (terms == 0) memset(dx, 0, (size_t)n * sizeof *dx);      /* no window holds it */
    pool_join(total, dx, terms, n);
    if (dx == narrow) row_from_real(to, dx, v->x.dtype, n);
  }
}

/* ---- prepare: refuses unless channels are the fastest dim (else pool_planes) ------------------------------------------ */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  pooling v;
  qn_status status = cpu_isa_check(request, prepared);
  if (!status) status = pooling_of(request, prepared, SC, &v);
  if (status) return status;
  const int64_t found = v.seen.value < 0 ? 0 : v.n * v.c * v.out[0] * v.out[1] * v.out[2] * 4;
  return pooling_keep(request, prepared, &v, found);
}
#endif

/* ---- run ------------------------------------------------------------------------------------------------------------------- */

typedef void place_fn(const pooling *, const qn_launch *, const int64_t at[AXES], const span spans[3]);
typedef span span_fn(const pooling *, int d, int64_t at);

static void each_of_row(const pooling *v, const qn_launch *launch, int64_t at[AXES], int64_t n, span_fn *span_of, place_fn *f)
{
  span spans[3] = { span_of(v, 0, at[SD]), span_of(v, 1, at[SH]) };
  for (at[SW] = 0; at[SW] < n; at[SW]++) {
    spans[2] = span_of(v, 2, at[SW]);
    f(v, launch, at, spans);
  }
}

/* Calls f for each element, with the result of span_of along D, H and W; again for a row that is odd. */
static void for_each_place(const pooling *v, const qn_launch *launch, const int64_t dim[3], span_fn *span_of, place_fn *f, place_fn *again)
{
  const int64_t rows = v->n * dim[0] * dim[1];
  const int threads = pool_threads(v, launch, rows);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t i = 0; i < rows; i++) {
    int64_t at[AXES] = { i / dim[1] / dim[0], 0, i / dim[1] % dim[0], i % dim[1], 0 };
    each_of_row(v, launch, at, dim[2], span_of, f);
    if (again && pool_is_odd(&v->y, tensor_at(&v->y, launch, at[SN], 0, at[SD], at[SH], 0), dim[2], v->y.stride[SW], v->c))
      each_of_row(v, launch, at, dim[2], span_of, again);
  }
}

CPU_RUNS(cpu_pool_channels_run);
qn_status CPU_NAME(cpu_pool_channels_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const pooling *v = prepared->state;
  if (v->seen.value >= 0) for_each_place(v, launch, v->out, taps_inside, find, NULL);
  if (v->backward) for_each_place(v, launch, v->in, windows_over, backward, NULL);
  else for_each_place(v, launch, v->out, taps_inside, forward, v->maximum ? NULL : forward_small);
  return QN_OK;
}

#ifdef CPU_BASELINE
static const qn_engine row[] = { CPU_COPIES(POOL_ROWS, "channels" CPU_REAL_SUFFIX, cpu_pool_channels_run)
                                 CPU_COPIES(POOL_ADAPTIVE_ROWS, "channels" CPU_REAL_SUFFIX, cpu_pool_channels_run) };
const qn_engine_list cpu_pool_channels = { row, sizeof row / sizeof *row };
#endif
