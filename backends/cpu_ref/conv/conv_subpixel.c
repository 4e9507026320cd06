/* conv_subpixel.c -- conv_backward_data with a stride as one matrix product, whose outputs are a pixel's channels in all phases.
 *
 *   dx[n, c, t stride + phase - pad] = sum over taps j and filters k of dy[n, k, t - j] w[k, c, phase + j stride]
 *
 * So pixels t see windows of ceil(size / stride) taps of dy, and each gives the stride's phases of dx, side by side: patch embeddings
 * (one tap, no overlap), transposed convolutions of sound and images. Where the size is no multiple of the stride, taps beyond the
 * filter are zeros, and sums that an infinity times such a zero has made NaN are made once more, of the filter's taps alone;
 * conv_gemm.c runs each phase as a product of its own, which is faster where zeros are many. The product's
 * columns are what dx runs along: pixels (NCHW) or channels (NHWC). Every element of dx is written once. No dilation. */
#include "kit/simd.h"
#include "cpu_ref.h"
#include "conv_window.h"

#define MOST_PHASES (1 << 20)
#define MANY_ZEROS 1.4                    /* times the taps, with those beyond the filter; above it phases were faster, if they are few */

typedef struct subpixel {
  cpu_gemm    gemm;                       /* batch: groups */
  cpu_window  window;                     /* of dy; pixels are t */
  bool        pixels_in_columns;          /* outputs are then rows, and (channel, phase); else columns, and (phase, channel) */
  int32_t     dy_value, w_value, dx_value;
  qn_value    w, dx;
  int64_t     size[3], stride[3], pad[3]; /* of three spatial dims; missing ones have size and stride 1 */
  int64_t     phases, channels;           /* channels: of a group of dx */
  bool        zeros;                      /* there are taps beyond the filter */
  int64_t     ld;                         /* of the filter as laid out in workspace */
  uint64_t    laid_bytes;
  const char *dy_data, *w_data;           /* of the current launch */
  char       *dx_data, *laid;
} subpixel;

static int64_t stride_of(const qn_value *v, int d) { return d < 5 - v->rank ? 0 : v->stride[d + v->rank - 3]; }
static int64_t dim_of(const qn_value *v, int d) { return d < 5 - v->rank ? 1 : v->dim[d + v->rank - 3]; }

static void split(int64_t i, const int64_t n[3], int64_t at[3])
{
  for (int d = 2; d >= 0; d--) {
    at[d] = i % n[d];
    i /= n[d];
  }
}

/* ---- the filter ------------------------------------------------------------------------------ */

#define RUN   64                          /* taps converted at a time */
#define STRIP 32                          /* of so many filters, whose places are neighbours */

typedef union strip { float f32[STRIP][RUN]; double f64[STRIP][RUN]; } strip;
typedef union turned { float f32[RUN][STRIP]; double f64[RUN][STRIP]; } turned;

/* to[x][k] = from[k][x] */
static void turn(const subpixel *s, const strip *from, int64_t rows, int64_t columns, turned *to)
{
  if (s->gemm.type == CPU_GEMM_F32) {
    s->gemm.isa->turn(from->f32[0], RUN, rows, columns, to->f32[0], STRIP);
    return;
  }
  for (int64_t x = 0; x < columns; x++)
    for (int64_t k = 0; k < rows; k++) to->f64[x][k] = from->f64[k][x];
}

/* Rows (channel, phase) of places (tap, filter), for one channel. */
static void lay_rows(const subpixel *s, int64_t group, int64_t channel, char *to)
{
  const int64_t element = (int64_t)cpu_gemm_row_bytes(s->gemm.type), filters = s->window.channels, from = qn_kit_bytes(s->w.dtype);
  const int64_t *n = s->size, *stride = s->stride, taps[2] = {s->window.axis[1].taps, s->window.axis[2].taps};
  strip line_of;                          /* [filter][tap] */
  turned of_tap;                          /* [tap][filter] */
  if (s->phases * s->window.taps != n[0] * n[1] * n[2]) memset(to, 0, (size_t)(s->phases * s->ld * element));
  for (int64_t k = 0; k < filters; k += STRIP)
    for (int64_t line = 0; line < n[0] * n[1]; line++) {
      const int64_t z = line / n[1], y = line % n[1], here = qn_min_i64(STRIP, filters - k);
      const char *const w = s->w_data + ((group * filters + k) * s->w.stride[0] + channel * s->w.stride[1] + z * stride_of(&s->w, 0) +
                                         y * stride_of(&s->w, 1)) * from;
      for (int64_t x0 = 0; x0 < n[2]; x0 += RUN) {
        const int64_t run = qn_min_i64(RUN, n[2] - x0);
        for (int64_t i = 0; i < here; i++)
          s->gemm.isa->widen[s->w.dtype](w + (i * s->w.stride[0] + x0 * stride_of(&s->w, 2)) * from, stride_of(&s->w, 2), run,
                                        element == 8 ? (void *)line_of.f64[i] : line_of.f32[i]);
        turn(s, &line_of, here, run, &of_tap);
        for (int64_t i = 0; i < run; i++) {
          const int64_t x = x0 + i, phase = (z % stride[0] * stride[1] + y % stride[1]) * stride[2] + x % stride[2];
          const int64_t tap = (z / stride[0] * taps[0] + y / stride[1]) * taps[1] + x / stride[2];
          memcpy(to + (phase * s->ld + tap * filters + k) * element, element == 8 ? (void *)of_tap.f64[i] : of_tap.f32[i],
                 (size_t)(here * element));
        }
      }
    }
}

/* The row of a place (tap, filter k), of columns (phase, channel). */
static void lay_place(const subpixel *s, int64_t group, int64_t tap, int64_t k, char *to)
{
  const int64_t element = (int64_t)cpu_gemm_row_bytes(s->gemm.type), first = (group * s->window.channels + k) * s->w.stride[0];
  int64_t j[3], p[3];
  cpu_window_tap(&s->window, tap, j);
  for (int64_t phase = 0; phase < s->phases; phase++, to += s->channels * element) {
    int64_t offset = first;
    bool there = true;
    split(phase, s->stride, p);
    for (int d = 0; d < 3; d++) {
      const int64_t r = p[d] + j[d] * s->stride[d];
      there &= r < s->size[d];
      offset += r * stride_of(&s->w, d);
    }
    if (there) s->gemm.isa->widen[s->w.dtype](s->w_data + offset * qn_kit_bytes(s->w.dtype), s->w.stride[1], s->channels, to);
    else memset(to, 0, (size_t)(s->channels * element));
  }
}

static void lay_filter(const subpixel *s, const qn_launch *launch)
{
  const int64_t element = (int64_t)cpu_gemm_row_bytes(s->gemm.type);
  const int64_t each = s->pixels_in_columns ? s->channels : s->gemm.k, rows = s->pixels_in_columns ? s->phases : 1;
  const int threads = cpu_threads(launch, (int64_t)s->laid_bytes / element);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t i = 0; i < s->gemm.batch * each; i++) {
    char *const to = s->laid + i * rows * s->ld * element;
    if (s->pixels_in_columns) lay_rows(s, i / each, i % each, to);
    else lay_place(s, i / each, i % each / s->window.channels, i % s->window.channels, to);
  }
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static const char *group_dy(const subpixel *s, int64_t group)
{
  return s->dy_data + group * s->window.channels * s->window.stride[1] * qn_kit_bytes(s->window.dtype);
}

static void rows_of(const cpu_gemm *g, int64_t group, int64_t i0, int64_t mc, int64_t k0, int64_t kc, void *buffer, const void **row,
                    int64_t *step)
{
  const subpixel *s = g->user;
  const int64_t element = (int64_t)cpu_gemm_row_bytes(g->type), ld = cpu_gemm_ld(g->kc, (size_t)element);
  *step = 1;
  for (int64_t i = 0; i < mc; i++) {
    char *const to = (char *)buffer + i * ld * element;
    if (s->pixels_in_columns) {
      row[i] = s->laid + ((group * g->m + i0 + i) * s->ld + k0) * element;
    } else {
      cpu_window_places(g->isa, &s->window, group_dy(s, group), i0 + i, k0, kc, to);
      row[i] = to;
    }
  }
}

static const void *columns_of(const cpu_gemm *g, int64_t group, int64_t k0, int64_t kc, int64_t j0, int64_t nc, void *buffer, int64_t *step)
{
  const subpixel *s = g->user;
  const size_t element = cpu_gemm_row_bytes(g->type);
  *step = s->ld;
  if (!s->pixels_in_columns) return s->laid + ((group * g->k + k0) * s->ld + j0) * (int64_t)element;
  *step = cpu_gemm_ld(g->nc, element);
  cpu_window_pixels(g->isa, &s->window, group_dy(s, group), false, k0, kc, j0, nc, buffer, *step);
  return buffer;
}

/* ---- tiles of dx ----------------------------------------------------------------------------------- */

static double number(const subpixel *s, const strip *v, int64_t i) { return s->gemm.type == CPU_GEMM_F64 ? v->f64[0][i] : v->f32[0][i]; }

/* The sum of a phase of pixel `at` (image, D, H, W), of a channel of a group, from the formula. */
static double sum_again(const subpixel *s, int64_t group, int64_t channel, const int64_t phase[3], const int64_t at[4])
{
  const int64_t filters = s->window.channels;
  const char *const dy = group_dy(s, group), *const w = s->w_data + (group * filters * s->w.stride[0] + channel * s->w.stride[1]) *
                                                                  qn_kit_bytes(s->w.dtype);
  double sum = 0;
  for (int64_t tap = 0; tap < s->window.taps; tap++) {
    int64_t j[3], of_dy = at[0] * s->window.stride[0], of_w = 0;
    bool there = true;
    cpu_window_tap(&s->window, tap, j);
    for (int d = 0; d < 3; d++) {
      const int64_t r = phase[d] + j[d] * s->stride[d], p = at[1 + d] - j[d];
      there &= r < s->size[d] && p >= 0 && p < s->window.axis[d].extent;
      of_dy += p * s->window.stride[2 + d], of_w += r * stride_of(&s->w, d);
    }
    for (int64_t k = 0, n; there && k < filters; k += n) {
      strip a, b;
      n = qn_min_i64(RUN, filters - k);
      s->gemm.isa->widen[s->window.dtype](dy + (of_dy + k * s->window.stride[1]) * qn_kit_bytes(s->window.dtype), s->window.stride[1], n,
                                          &a);
      s->gemm.isa->widen[s->w.dtype](w + (of_w + k * s->w.stride[0]) * qn_kit_bytes(s->w.dtype), s->w.stride[0], n, &b);
      for (int64_t i = 0; i < n; i++) sum += number(s, &a, i) * number(s, &b, i);
    }
  }
  return sum;
}

/* Makes those of n sums once more that are NaN: of pixels from `at` on (by_pixel), or of channels from `channel` on. */
static void mend(const subpixel *s, void *sums, int64_t n, int64_t group, int64_t channel, const int64_t phase[3], const int64_t at[4],
                 bool by_pixel)
{
  for (int64_t i = 0; i < n; i++) {
    const double v = s->gemm.type == CPU_GEMM_F64 ? ((double *)sums)[i] : ((float *)sums)[i];
    if (v == v) continue;
    const int64_t here[4] = {at[0], at[1], at[2], at[3] + (by_pixel ? i : 0)};
    const double again = sum_again(s, group, channel + (by_pixel ? 0 : i), phase, here);
    if (s->gemm.type == CPU_GEMM_F64) ((double *)sums)[i] = again;
    else ((float *)sums)[i] = (float)again;
  }
}

/* Position along dim d of pixel t's phase; false: beyond dx. */
static bool position(const subpixel *s, int d, int64_t t, int64_t phase, int64_t *at)
{
  *at = t * s->stride[d] + phase - s->pad[d];
  return *at >= 0 && *at < dim_of(&s->dx, d);
}

/* n pixels from `at` on along the last dim, of one channel and phase. */
static void put_line(const subpixel *s, cpu_narrow *narrow, const char *sums, int64_t channel, const int64_t at[4], const int64_t phase[3],
                     int64_t n)
{
  const int64_t element = s->gemm.type == CPU_GEMM_F64 ? 8 : 4, step = s->stride[2], room = dim_of(&s->dx, 2);
  int64_t z, y, first = at[3] * step + phase[2] - s->pad[2];
  if (!position(s, 0, at[1], phase[0], &z) || !position(s, 1, at[2], phase[1], &y)) return;
  const int64_t skip = first < 0 ? qn_ceil_div(-first, step) : 0, end = qn_min_i64(n, first < room ? qn_ceil_div(room - first, step) : 0);
  if (skip >= end) return;
  first += skip * step;
  const int64_t offset = at[0] * s->dx.stride[0] + channel * s->dx.stride[1] + z * stride_of(&s->dx, 0) + y * stride_of(&s->dx, 1) +
                         first * stride_of(&s->dx, 2);
  narrow(sums + skip * element, end - skip, s->dx_data + offset * qn_kit_bytes(s->dx.dtype), step * stride_of(&s->dx, 2));
}

static void finish(const cpu_gemm *g, int64_t group, int64_t i0, int64_t mc, int64_t j0, int64_t nc, void *acc, int64_t ld)
{
  const subpixel *s = g->user;
  const int64_t element = g->type == CPU_GEMM_F64 ? 8 : 4;
  cpu_narrow *const narrow = g->isa->narrow[s->dx.dtype];
  int64_t at[4], phase[3];
  cpu_window_pixel(&s->window, s->pixels_in_columns ? j0 : i0, at);
  if (s->pixels_in_columns) {
    for (int64_t p = 0, run; p < nc; p += run) {
      run = qn_min_i64(s->window.axis[2].n - at[3], nc - p);
      for (int64_t i = 0; i < mc; i++) {
        split((i0 + i) % s->phases, s->stride, phase);
        if (s->zeros) mend(s, (char *)acc + (i * ld + p) * element, run, group, (i0 + i) / s->phases, phase, at, true);
        put_line(s, narrow, (char *)acc + (i * ld + p) * element, group * s->channels + (i0 + i) / s->phases, at, phase, run);
      }
      cpu_window_next_line(&s->window, at);
    }
    return;
  }
  for (int64_t i = 0; i < mc; i++) {
    for (int64_t j = 0, run; j < nc; j += run) {
      const int64_t channel = (j0 + j) % s->channels;
      int64_t x[3], offset = at[0] * s->dx.stride[0] + (group * s->channels + channel) * s->dx.stride[1];
      bool inside = true;
      split((j0 + j) / s->channels, s->stride, phase);
      for (int d = 0; d < 3; d++) {
        inside &= position(s, d, at[1 + d], phase[d], &x[d]);
        offset += x[d] * stride_of(&s->dx, d);
      }
      run = qn_min_i64(s->channels - channel, nc - j);
      if (inside && s->zeros) mend(s, (char *)acc + (i * ld + j) * element, run, group, channel, phase, at, false);
      if (inside) narrow((char *)acc + (i * ld + j) * element, run, s->dx_data + offset * qn_kit_bytes(s->dx.dtype), s->dx.stride[1]);
    }
    if (++at[3] == s->window.axis[2].n) cpu_window_next_line(&s->window, at);
  }
}

/* ---- prepare ------------------------------------------------------------------------------------------ */

/* dy's windows; the number of taps beyond the filter, over those within. */
static double set_window(subpixel *s, const qn_value *dy, const qn_conv *conv)
{
  cpu_window *w = &s->window;
  double zeros = 1;
  *w = (cpu_window){.pixels = 1, .taps = 1, .channels = dy->dim[1] / conv->groups, .dtype = dy->dtype,
                    .stride = {dy->stride[0], dy->stride[1]}};
  s->phases = 1;
  for (int d = 0; d < 3; d++) {
    const int32_t i = d + dy->rank - 5;
    s->size[d] = dim_of(&s->w, d);
    s->stride[d] = i < 0 ? 1 : conv->stride[i];
    s->pad[d] = i < 0 ? 0 : conv->pad_before[i];
    const int64_t taps = qn_ceil_div(s->size[d], s->stride[d]), n = qn_ceil_div(dim_of(&s->dx, d) + s->pad[d], s->stride[d]);
    w->axis[d] = (cpu_window_axis){n, taps, 1, -1, 0, dim_of(dy, d)};
    w->stride[2 + d] = stride_of(dy, d);
    w->pixels *= n;
    w->taps *= taps;
    s->phases *= s->stride[d];
    zeros *= (double)(taps * s->stride[d]) / (double)s->size[d];
  }
  return zeros;
}

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *node = &request->op[0];
  const qn_conv *conv = node->attr;
  const cpu_gemm_isa *isa;
  const qn_status status = cpu_gemm_choose(request, p, &isa);
  if (status) return status;
  subpixel s = {.dy_value = qn_role(node, QN_ROLE_CONV_BACKWARD_DATA_DY), .w_value = qn_role(node, QN_ROLE_CONV_BACKWARD_DATA_W),
                .dx_value = qn_role(node, QN_ROLE_CONV_BACKWARD_DATA_DX)};
  const qn_value *dy = &request->value[s.dy_value];
  s.w = request->value[s.w_value];
  s.dx = request->value[s.dx_value];
  bool strided = false;
  double phases = 1;
  for (int32_t d = 0; d < dy->rank - 2; d++) {
    strided |= conv->stride[d] > 1;
    phases *= (double)conv->stride[d];
    if (conv->dilation[d] != 1) return qn_refuse(p, "no dilation", "w", "1", "%lld", (long long)conv->dilation[d]);
  }
  if (!strided) return qn_refuse(p, "a stride", "dx", "2 or more", "1");
  if (phases > MOST_PHASES) return qn_refuse(p, "strides of fewer phases", "dx", "at most 2^20", "%.0f", phases);
  cpu_gemm *g = &s.gemm;
  g->type = cpu_gemm_type(dy->dtype);
  if (g->type == CPU_GEMM_I16) return qn_refuse(p, "dtypes", "dy", "floats", "%s", qn_kit_name(dy->dtype));
  const double zeros = set_window(&s, dy, conv);
  s.zeros = zeros > 1;
  s.channels = s.w.dim[1];
  s.pixels_in_columns = s.dx.stride[1] != 1 || s.dx.dim[1] == 1;
  const int64_t outs = s.channels * s.phases, pixels = dy->dim[0] * s.window.pixels;
  g->isa = isa;
  g->batch = conv->groups;
  g->m = s.pixels_in_columns ? outs : pixels;
  g->n = s.pixels_in_columns ? pixels : outs;
  g->k = s.window.taps * s.window.channels;
  g->a = rows_of;
  g->b = columns_of;
  g->finish = finish;
  g->keep_rows = s.pixels_in_columns;
  g->keep_columns = g->b_ready = !s.pixels_in_columns;
  p->workspace = cpu_gemm_plan(g, request->demands->threads);
  s.ld = cpu_gemm_ld(s.pixels_in_columns ? g->k : qn_round_up(g->n, isa->type[g->type].nr), cpu_gemm_row_bytes(g->type));
  s.laid_bytes = (uint64_t)(g->batch * (s.pixels_in_columns ? g->m : g->k) * s.ld) * cpu_gemm_row_bytes(g->type);
  p->workspace += s.laid_bytes;
  p->estimate = cpu_gemm_ns(g) + 0.5 * (double)g->batch * (double)g->m * (double)g->n + 0.3 * (double)s.laid_bytes;
  if (zeros > MANY_ZEROS) p->estimate *= 1.5;
  return cpu_keep(p, &s, sizeof s);
}

/* ---- run ------------------------------------------------------------------------------------------------ */

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  subpixel s = *(const subpixel *)p->state;
  s.dy_data = launch->ptr[s.dy_value];
  s.w_data = launch->ptr[s.w_value];
  s.dx_data = launch->ptr[s.dx_value];
  s.laid = launch->workspace;
  s.gemm.user = &s;
  lay_filter(&s, launch);
  cpu_gemm_run(&s.gemm, launch->threads, s.laid + s.laid_bytes);
  return QN_OK;
}

static const qn_engine rows[] = {
  {.name = "subpixel", .op = QN_OP_CONV_BACKWARD_DATA, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,
   .variants = cpu_gemm_variants, .prepare = prepare, .run = run, .release = cpu_release},
};
const qn_engine_list cpu_conv_subpixel = {rows, 1};
