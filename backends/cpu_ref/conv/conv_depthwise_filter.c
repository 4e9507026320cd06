/* conv_depthwise_filter.c -- conv_backward_filter with one input channel per group, by planes (NCHW; any strides, floats but f64).
 *
 *   dw[k, 0, r] = sum over n, p of dy[n, k, p] x[n, c, p stride + r dilation - pad],   c = k C / K
 *
 * A strip of a plane of x is copied as conv_depthwise.c does (conv_strip.h), after which a row of dy and a tap are a dot product of two
 * rows; a few taps share the row of dy. Each filter is one thread's, so sums are in one order. conv_channels_filter.c takes channels
 * last. */
#include "kit/simd.h"
#include "cpu_ref.h"
#include "conv_lanes.h"
#include "conv_strip.h"
#ifdef _OPENMP
#include <omp.h>
#endif

#define TAPS_MAX 64                       /* limit on the taps of one plane of a window */
#define STRIP_FLOATS 8192                 /* of copied x */
#define TAPS 8                            /* accumulators in flight */
#define SLACK 16

typedef struct gradient {
  cpu_window x;
  int64_t  dy_stride[5];                  /* N, K, spatial */
  uint32_t dy_dtype, dw_dtype;
  int64_t  dw_stride[QN_MAX_RANK];
  int32_t  x_value, dy_value, dw_value, rank;
  int64_t  images, filters, each;         /* each: filters of a channel */
  int64_t  shift[2];                      /* positions of the first pixel's first tap: y, x */
  int64_t  rows, lines, line;             /* of a strip: rows of dy, lines of x; floats of a line */
  int64_t  per_thread;                    /* floats of workspace */
  int      threads;
  const cpu_gemm_isa *isa;
  const char *x_data, *dy_data;           /* of the current launch */
  char    *dw_data;
} gradient;

/* totals[i] += the sum over rows of dy x[at[i]...], for `taps` taps, a constant of each copy. */
CPU_INLINE void dot(const int taps, const float *x, int64_t x_row, const int64_t *at, const float *dy, int64_t dy_row, int64_t rows,
                    int64_t n, double *totals)
{
  v_f32 sum[TAPS] = {0};
  for (int64_t r = 0; r < rows; r++, x += x_row, dy += dy_row) {
    int64_t t = 0;
    for (; t + CPU_LANES <= n; t += CPU_LANES) {
      const v_f32 d = v_load(dy + t);
#pragma GCC unroll 8
      for (int i = 0; i < taps; i++) sum[i] += d * v_load(x + at[i] + t);
    }
    if (t < n) {                          /* both are masked: what is beyond the row may be infinite */
      const v_f32 d = load_some(dy + t, n - t);
#pragma GCC unroll 8
      for (int i = 0; i < taps; i++) sum[i] += d * load_some(x + at[i] + t, n - t);
    }
  }
  for (int i = 0; i < taps; i++) {
    float all = 0;
    for (int l = 0; l < CPU_LANES; l++) all += sum[i][l];
    totals[i] += all;
  }
}

static void dots(int64_t taps, const float *x, int64_t x_row, const int64_t *at, const float *dy, int64_t dy_row, int64_t rows, int64_t n,
                 double *totals)
{
  int64_t i = 0;
  for (; i + TAPS <= taps; i += TAPS) dot(TAPS, x, x_row, at + i, dy, dy_row, rows, n, totals + i);
  for (; i + 5 <= taps; i += 5) dot(5, x, x_row, at + i, dy, dy_row, rows, n, totals + i);
  for (; i + 3 <= taps; i += 3) dot(3, x, x_row, at + i, dy, dy_row, rows, n, totals + i);
  for (; i < taps; i++) dot(1, x, x_row, at + i, dy, dy_row, rows, n, totals + i);
}

/* Filter k, the plane of taps rz. */
static void plane_of_taps(const gradient *g, int64_t k, int64_t rz, float *work)
{
  const cpu_window *w = &g->x;
  const cpu_window_axis *const za = &w->axis[0], *const ya = &w->axis[1], *const xa = &w->axis[2];
  const int64_t pitch = xa->step * g->line, taps = ya->taps * xa->taps, bytes = qn_kit_bytes(w->dtype);
  const bool in_place = g->dy_dtype == QN_F32 && (g->dy_stride[4] == 1 || xa->n == 1);
  float *const source = work, *const rows_of_dy = work + g->lines * pitch + SLACK;
  double totals[TAPS_MAX] = {0};
  int64_t at[TAPS_MAX];
  for (int64_t i = 0; i < taps; i++) {
    const int64_t across = i % xa->taps * xa->tap_step;
    at[i] = i / xa->taps * ya->tap_step * pitch + across % xa->step * g->line + across / xa->step;
  }
  for (int64_t image = 0; image < g->images; image++)
    for (int64_t z = 0; z < za->n; z++) {
      const int64_t depth = z * za->step + rz * za->tap_step + za->start;
      if (depth < 0 || depth >= za->extent) continue;
      const char *const plane = g->x_data + (image * w->stride[0] + k / g->each * w->stride[1] + depth * w->stride[2]) * bytes;
      const char *const dy_plane = g->dy_data + (image * g->dy_stride[0] + k * g->dy_stride[1] + z * g->dy_stride[2])
                                                * qn_kit_bytes(g->dy_dtype);
      for (int64_t y0 = 0; y0 < ya->n; y0 += g->rows) {
        const int64_t rows = qn_min_i64(g->rows, ya->n - y0), top = y0 * ya->step + g->shift[0];
        const int64_t lines = (rows - 1) * ya->step + (ya->taps - 1) * ya->tap_step + 1;
        for (int64_t l = 0; l < lines; l++) {
          const bool inside = top + l >= 0 && top + l < ya->extent;
          cpu_lay_line(w, g->isa, g->shift[1], g->line, plane + (inside ? (top + l) * w->stride[3] * bytes : 0), inside,
                       source + l * pitch);
        }
        const float *dy = (const float *)dy_plane + y0 * g->dy_stride[3];
        if (!in_place) {
          for (int64_t r = 0; r < rows; r++)
            g->isa->widen[g->dy_dtype](dy_plane + (y0 + r) * g->dy_stride[3] * qn_kit_bytes(g->dy_dtype), g->dy_stride[4], xa->n,
                                       rows_of_dy + r * xa->n);
          dy = rows_of_dy;
        }
        dots(taps, source, ya->step * pitch, at, dy, in_place ? g->dy_stride[3] : xa->n, rows, xa->n, totals);
      }
    }
  for (int64_t i = 0; i < taps; i++) {
    const int64_t r[3] = {rz, i / xa->taps, i % xa->taps};
    const float total = (float)totals[i];
    int64_t offset = k * g->dw_stride[0];
    for (int32_t d = 2; d < g->rank; d++) offset += r[d + 3 - g->rank] * g->dw_stride[d];
    g->isa->narrow[g->dw_dtype](&total, 1, g->dw_data + offset * qn_kit_bytes(g->dw_dtype), 1);
  }
}

/* ---- run ------------------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_conv_depthwise_filter_run);
qn_status CPU_NAME(cpu_conv_depthwise_filter_run)(const qn_prepared *p, const qn_launch *launch)
{
  gradient g = *(const gradient *)p->state;
  g.x_data = launch->ptr[g.x_value];
  g.dy_data = launch->ptr[g.dy_value];
  g.dw_data = launch->ptr[g.dw_value];
  const int64_t items = g.filters * g.x.axis[0].taps, work = g.images * g.x.pixels * g.filters * g.x.taps;
  const int threads = (int)qn_min_i64(cpu_threads(launch, work / 2), g.threads);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t i = 0; i < items; i++) {
#ifdef _OPENMP
    float *const work_of = (float *)launch->workspace + omp_get_thread_num() * g.per_thread;
#else
    float *const work_of = launch->workspace;
#endif
    plane_of_taps(&g, i / g.x.axis[0].taps, i % g.x.axis[0].taps, work_of);
  }
  return QN_OK;
}

/* ---- prepare ---------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *out)
{
  const qn_node *node = &request->op[0];
  const qn_conv *conv = node->attr;
  const qn_status status = cpu_isa_check(request, out);
  if (status) return status;
  gradient g = {.x_value = qn_role(node, QN_ROLE_CONV_BACKWARD_FILTER_X), .dy_value = qn_role(node, QN_ROLE_CONV_BACKWARD_FILTER_DY),
                .dw_value = qn_role(node, QN_ROLE_CONV_BACKWARD_FILTER_DW), .isa = cpu_gemm_isa_of(request->device)};
  const qn_value *x = &request->value[g.x_value], *dy = &request->value[g.dy_value], *dw = &request->value[g.dw_value];
  if (dw->dim[1] != 1)
    return qn_refuse(out, "each input channel must be a group of its own", "dw", "groups = C", "groups %lld of C %lld",
                     (long long)conv->groups, (long long)x->dim[1]);
  if (cpu_gemm_type(x->dtype) != CPU_GEMM_F32)
    return qn_refuse(out, "sums in f32", "x", "a float of at most 32 bits", "dtype %u", x->dtype);
  g.rank = dw->rank;
  g.dw_dtype = dw->dtype;
  g.dy_dtype = dy->dtype;
  memcpy(g.dw_stride, dw->stride, sizeof g.dw_stride);
  cpu_window_forward(&g.x, x, dy, dw, conv, false);
  const cpu_window_axis *const xa = &g.x.axis[2], *const ya = &g.x.axis[1];
  if (ya->taps * xa->taps > TAPS_MAX)
    return qn_refuse(out, "keeps a window's offsets at hand", "dw", "at most 64 taps a plane", "%lld", (long long)(ya->taps * xa->taps));
  if (xa->step > TAPS_MAX)
    return qn_refuse(out, "sorts a line by the stride's remainders", "dy", "a stride of at most 64", "%lld", (long long)xa->step);
  g.dy_stride[0] = dy->stride[0];
  g.dy_stride[1] = dy->stride[1];
  for (int d = 0; d < 3; d++) g.dy_stride[2 + d] = d < 5 - dy->rank ? 0 : dy->stride[d + dy->rank - 3];
  g.images = x->dim[0];
  g.filters = dw->dim[0];
  g.each = g.filters / conv->groups;
  g.shift[0] = ya->start;
  g.shift[1] = xa->start;
  g.line = xa->n + (xa->taps - 1) * xa->tap_step / xa->step + 1;
  const int64_t reach = (ya->taps - 1) * ya->tap_step, pitch = xa->step * g.line;
  g.rows = qn_max_i64(1, qn_min_i64(ya->n, (STRIP_FLOATS / pitch - reach) / ya->step));
  g.lines = (g.rows - 1) * ya->step + reach + 1;
  g.per_thread = qn_round_up(g.lines * pitch + g.rows * xa->n + 2 * SLACK, 64);
  g.threads = request->demands->threads;
  out->workspace = (uint64_t)(g.per_thread * g.threads) * sizeof(float);
  const double vectors = 16 * (double)qn_ceil_div(xa->n, 16) * (g.x.stride[4] == 1 || xa->n == 1 ? 1 : 4);
  out->estimate = CPU_VECTOR_NS / 8 * (double)(g.images * g.filters) * (double)(g.x.pixels / xa->n) * vectors * (double)(g.x.taps + 8);
  return cpu_keep(out, &g, sizeof g);
}

#define ROWS(name_, run_)                                                                                              \
  {.name = name_, .op = QN_OP_CONV_BACKWARD_FILTER, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,          \
   .prepare = prepare, .run = run_, .release = cpu_release},
static const qn_engine rows[] = {CPU_COPIES(ROWS, "depthwise", cpu_conv_depthwise_filter_run)};
const qn_engine_list cpu_conv_depthwise_filter = {rows, sizeof rows / sizeof *rows};
#endif
