/* pool_adaptive_planes.c -- adaptive pooling and its gradients where the last spatial dim is the fastest (NCHW): a plane per thread.
 *
 * Forward, the rows of x that a row of windows covers are combined into one, with vectors along W; then each window combines its
 * columns of that row. Backward, a row of averages is spread over W once and added to each of those rows; a maximum's gradient goes to
 * its index, if that is in the window. */
#include "pool_window.h"

/* One thread's scratch, carved from the workspace. */
typedef struct scratch {
  span    *spans;                         /* P: a window's columns */
  float   *wide, *column;                 /* wide: W or P, a widened row; column: W, the combined rows */
  int32_t *place;                         /* W: position of a column's maximum, in x's plane */
  float   *best;                          /* P */
  int32_t *number;                        /* P */
  double  *total;                         /* W: long sums */
  float   *plane;                         /* backward, D * H * W */
} scratch;

static int64_t carve(const pooling *v, char *base, scratch *s)
{
  const int64_t row = qn_round_up(qn_max_i64(v->in[2], v->out[2]) * 4, 64);
  int64_t at = 0;
  s->spans = (span *)(void *)(base + at), at += qn_round_up(v->out[2] * (int64_t)sizeof(span), 64);
  s->wide = (float *)(void *)(base + at), at += row;
  s->column = (float *)(void *)(base + at), at += row;
  s->place = (int32_t *)(void *)(base + at), at += row;
  s->best = (float *)(void *)(base + at), at += row;
  s->number = (int32_t *)(void *)(base + at), at += row;
  s->total = (double *)(void *)(base + at), at += qn_round_up(v->in[2] * 8, 64);
  s->plane = (float *)(void *)(base + at);
  if (pool_needs_plane(v)) at += qn_round_up(v->in[0] * v->in[1] * v->in[2] * 4, 64);
  return qn_round_up(at, 256);
}

/* ---- forward: combine rows into one, then columns into windows ------------------------------------------------ */

static void rows_argmax(float *column, int32_t *place, const float *row, int32_t base, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const bool better = (row[i] > column[i]) | ((row[i] != row[i]) & (column[i] == column[i]));
    column[i] = better ? row[i] : column[i];
    place[i] = better ? base + (int32_t)i : place[i];
  }
}

/* Combines the rows of windows (pd, ph), times POOL_SMALL if small, into s->column, for maxima with their positions. */
CPU_INLINE void fold_rows(const pooling *v, const char *plane, int64_t pd, int64_t ph, bool numbered, bool small, scratch *s)
{
  int64_t terms = 1;
  const int64_t d0 = start_of(v, 0, pd), h0 = start_of(v, 1, ph), depth = size_of(v, 0, pd), height = size_of(v, 1, ph), n = v->in[2];
  for (int64_t d = d0; d < d0 + depth; d++)
    for (int64_t h = h0; h < h0 + height; h++) {
      const float *row = pool_wide(&v->x, plane + (d * v->x.stride[SD] + h * v->x.stride[SH]) * v->x.bytes, n, s->wide);
      const int32_t base = (int32_t)((d * v->in[1] + h) * n);
      if (small) row = pool_small(row, n, s->wide);
      if (d == d0 && h == h0) {
        memcpy(s->column, row, (size_t)n * 4);
        for (int64_t i = 0; numbered && i < n; i++) s->place[i] = base + (int32_t)i;
      } else if (!v->maximum) {
        pool_row_sum(s->column, row, n);
        if (v->far) pool_flush(s->total, s->column, ++terms, n);
      } else if (!numbered) pool_row_max(s->column, row, n);
      else rows_argmax(s->column, s->place, row, base, n);
    }
  pool_join(s->total, s->column, terms, n);
}

CPU_INLINE void window_average_of(const pooling *v, const scratch *s, float rows, bool far)
{
  for (int64_t p = 0; p < v->out[2]; p++) {
    const span w = s->spans[p];
    float sum = 0;
    if (far) sum = (float)pool_run_sum(s->column + w.first, w.end - w.first);
    else for (int64_t i = w.first; i < w.end; i++) sum += s->column[i];
    s->best[p] = sum / (rows * (float)(w.end - w.first));
  }
}

static void window_average(const pooling *v, const scratch *s, float rows)
{
  if (v->far) window_average_of(v, s, rows, true);
  else window_average_of(v, s, rows, false);
}

static void window_max(const scratch *s, int64_t windows)
{
  for (int64_t p = 0; p < windows; p++) {
    const span w = s->spans[p];
    float best = s->column[w.first];
    for (int64_t i = w.first + 1; i < w.end; i++) best = f_larger(best, s->column[i]);
    s->best[p] = best;
  }
}

/* Among equal columns, and among NaNs, takes the lowest position. */
static void window_argmax(const scratch *s, int64_t windows)
{
  for (int64_t p = 0; p < windows; p++) {
    const span w = s->spans[p];
    int64_t best = w.first;
    for (int64_t i = w.first + 1; i < w.end; i++) {
      const float here = s->column[i], held = s->column[best];
      const bool like = here == held || (here != here && held != held), beats = here > held || (here != here && held == held);
      if (beats || (like && s->place[i] < s->place[best])) best = i;
    }
    s->best[p] = s->column[best];
    s->number[p] = s->place[best];
  }
}

CPU_INLINE void pool_plane_of(const pooling *v, const qn_launch *launch, int64_t n, int64_t c, bool small, scratch *s)
{
  const bool numbered = v->indices.value >= 0;
  const char *plane = tensor_at(&v->x, launch, n, c, 0, 0, 0);
  for (int64_t pd = 0; pd < v->out[0]; pd++)
    for (int64_t ph = 0; ph < v->out[1]; ph++) {
      fold_rows(v, plane, pd, ph, numbered, small, s);
      if (!v->maximum) window_average(v, s, (float)(size_of(v, 0, pd) * size_of(v, 1, ph)));
      else if (numbered) window_argmax(s, v->out[2]);
      else window_max(s, v->out[2]);
      char *to = tensor_at(&v->y, launch, n, c, pd, ph, 0);
      if (small) pool_mend(&v->y, to, s->best, v->out[2], s->wide);
      row_from_f32(to, s->best, v->y.dtype, v->out[2]);
      if (numbered) put_indices(tensor_at(&v->indices, launch, n, c, pd, ph, 0), v->indices.dtype, s->number, v->out[2]);
    }
}

static void forward(const pooling *v, const qn_launch *launch, int64_t n, int64_t c, scratch *s)
{
  pool_plane_of(v, launch, n, c, false, s);
  if (!v->maximum && pool_plane_is_odd(v, launch, n, c)) pool_plane_of(v, launch, n, c, true, s);
}

/* ---- backward ------------------------------------------------------------------------------------------------- */

static void add_to_rows(const pooling *v, int64_t pd, int64_t ph, const float *dy, const pool_plane *g, scratch *s)
{
  const int64_t d0 = start_of(v, 0, pd), h0 = start_of(v, 1, ph), depth = size_of(v, 0, pd), height = size_of(v, 1, ph);
  memset(s->column, 0, (size_t)v->in[2] * 4);
  for (int64_t p = 0; p < v->out[2]; p++) {
    const span w = s->spans[p];
    const float each = dy[p] / (float)(depth * height * (w.end - w.first));
    for (int64_t i = w.first; i < w.end; i++) s->column[i] += each;
  }
  for (int64_t d = d0; d < d0 + depth; d++)
    for (int64_t h = h0; h < h0 + height; h++) pool_row_sum(pool_plane_row(g, d, h), s->column, v->in[2]);
}

static void add_to_maxima(const pooling *v, const char *indices, int64_t pd, int64_t ph, const float *dy, const pool_plane *g,
                          const scratch *s)
{
  const int64_t d0 = start_of(v, 0, pd), h0 = start_of(v, 1, ph), depth = size_of(v, 0, pd), height = size_of(v, 1, ph);
  const int64_t all = v->in[0] * v->in[1] * v->in[2];
  const uint32_t columns = (uint32_t)v->in[2], rows = (uint32_t)v->in[1];
  for (int64_t p = 0; p < v->out[2]; p++) {
    const int64_t place = v->indices.dtype == QN_I64 ? ((const int64_t *)(const void *)indices)[p]
                                                     : ((const int32_t *)(const void *)indices)[p];
    if (place < 0 || place >= all) continue;
    const uint32_t row = (uint32_t)place / columns, w = (uint32_t)place - row * columns;
    const uint32_t d = v->in[0] == 1 ? 0 : row / rows, h = row - d * rows;
    if (d >= d0 && d < d0 + depth && h >= h0 && h < h0 + height && w >= s->spans[p].first && w < s->spans[p].end)
      g->p[place] += dy[p];
  }
}

static void backward(const pooling *v, const qn_launch *launch, int64_t n, int64_t c, scratch *s)
{
  const pool_plane g = pool_plane_begin(v, launch, n, c, s->plane);
  for (int64_t pd = 0; pd < v->out[0]; pd++)
    for (int64_t ph = 0; ph < v->out[1]; ph++) {
      const float *dy = pool_wide(&v->y, tensor_at(&v->y, launch, n, c, pd, ph, 0), v->out[2], s->wide);
      if (v->maximum) add_to_maxima(v, tensor_at(&v->indices, launch, n, c, pd, ph, 0), pd, ph, dy, &g, s);
      else add_to_rows(v, pd, ph, dy, &g, s);
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
  v.scratch = carve(&v, NULL, &s);
  return pooling_keep(request, prepared, &v, 0);
}
#endif

/* ---- run ------------------------------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_pool_adaptive_planes_run);
qn_status CPU_NAME(cpu_pool_adaptive_planes_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const pooling *v = prepared->state;
  const int64_t planes = v->n * v->c;
  const int threads = pool_threads(v, launch, planes);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int t = 0; t < threads; t++) {
    scratch s;
    carve(v, (char *)launch->workspace + t * v->scratch, &s);
    for (int64_t p = 0; p < v->out[2]; p++) s.spans[p] = (span){ start_of(v, 2, p), start_of(v, 2, p) + size_of(v, 2, p) };
    for (int64_t i = planes * t / threads; i < planes * (t + 1) / threads; i++) {
      if (v->backward) backward(v, launch, i / v->c, i % v->c, &s);
      else forward(v, launch, i / v->c, i % v->c, &s);
    }
  }
  return QN_OK;
}

#ifdef CPU_BASELINE
static const qn_engine row[] = { CPU_COPIES(POOL_ADAPTIVE_ROWS, "planes", cpu_pool_adaptive_planes_run) };
const qn_engine_list cpu_pool_adaptive_planes = { row, sizeof row / sizeof *row };
#endif
