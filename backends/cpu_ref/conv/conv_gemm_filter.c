/* conv_gemm_filter.c -- conv_backward_filter as a matrix product that sums over pixels.
 *
 *   dw[out, in, tap] = sum over pixels of dy[pixel, out] x[at (in, tap) of the pixel's window]
 *
 * If x runs along channels (NHWC), a window is a row of places and the result is [out, place]; if x runs along pixels
 * (NCHW), a place is a row of pixels and the result is [place, out]. Either way x is laid out by copies only, a block at
 * a time, and dy is transposed if necessary. Pixels are many and dw is small, so the sum is often split among threads:
 * into a number of parts that depends on the problem, not on the machine. */
#include "cpu_ref.h"
#include "conv_window.h"

typedef struct gradient {
  cpu_gemm    gemm;                       /* batch: groups */
  cpu_window  x, dy;                      /* dy's windows are single pixels */
  bool        places_in_columns;          /* places are (tap, in); else they are rows, and (in, tap) */
  int32_t     x_value, dy_value, dw_value;
  bool        whole;                      /* a filter of dw lies place after place */
  uint32_t    dw_dtype;
  int64_t     dw_stride[QN_MAX_RANK];
  int32_t     rank;
  const char *x_data, *dy_data;           /* of the current launch */
  char       *dw_data;
} gradient;

/* ---- blocks --------------------------------------------------------------------------------- */

#define STRIP 32                          /* rows transposed at a time */
#define PIECE 128                         /* of each */

static const char *of_group(const cpu_window *w, const char *data, int64_t group)
{
  return data + group * w->channels * w->stride[1] * qn_kit_bytes(w->dtype);
}

/* dst[c][pixel] = dy[pixel, c] */
static void dy_by_channel(const gradient *p, int64_t group, int64_t c0, int64_t channels, int64_t first, int64_t pixels,
                          char *dst, int64_t ld)
{
  const cpu_window *w = &p->dy;
  const char *const data = of_group(w, p->dy_data, group);
  if (w->stride[1] == 1 && p->gemm.type == CPU_GEMM_F32) {
    float strip[STRIP][PIECE];
    for (int64_t i = 0; i < pixels; i += STRIP)
      for (int64_t c = 0; c < channels; c += PIECE) {
        const int64_t n = qn_min_i64(STRIP, pixels - i), m = qn_min_i64(PIECE, channels - c);
        for (int64_t s = 0; s < n; s++) cpu_window_places(p->gemm.isa, w, data, first + i + s, c0 + c, m, (char *)strip[s]);
        p->gemm.isa->turn(strip[0], PIECE, n, m, (float *)dst + c * ld + i, ld);
      }
  } else {
    cpu_window_pixels(p->gemm.isa, w, data, true, c0, channels, first, pixels, dst, ld);
  }
}

/* dst[pixel][c] = dy[pixel, c] */
static void dy_by_pixel(const gradient *p, int64_t group, int64_t c0, int64_t channels, int64_t first, int64_t pixels,
                        char *dst, int64_t ld)
{
  const cpu_window *w = &p->dy;
  const char *const data = of_group(w, p->dy_data, group);
  const int64_t element = (int64_t)cpu_gemm_row_bytes(p->gemm.type);
  if (w->stride[1] != 1 && p->gemm.type == CPU_GEMM_F32) {
    float strip[STRIP][PIECE];
    for (int64_t i = 0; i < channels; i += STRIP)
      for (int64_t k = 0; k < pixels; k += PIECE) {
        const int64_t n = qn_min_i64(STRIP, channels - i), m = qn_min_i64(PIECE, pixels - k);
        cpu_window_pixels(p->gemm.isa, w, data, true, c0 + i, n, first + k, m, (char *)strip, PIECE);
        p->gemm.isa->turn(strip[0], PIECE, n, m, (float *)dst + k * ld + i, ld);
      }
  } else {
    for (int64_t i = 0; i < pixels; i++) cpu_window_places(p->gemm.isa, w, data, first + i, c0, channels, dst + i * ld * element);
  }
}

static void left_block(const cpu_gemm *g, int64_t group, int64_t i0, int64_t mc, int64_t k0, int64_t kc,
                       void *buffer, const void **row, int64_t *step)
{
  const gradient *p = g->user;
  const int64_t element = (int64_t)cpu_gemm_row_bytes(g->type), ld = cpu_gemm_ld(g->kc, (size_t)element);
  if (p->places_in_columns) dy_by_channel(p, group, i0, mc, k0, kc, buffer, ld);
  else cpu_window_pixels(g->isa, &p->x, of_group(&p->x, p->x_data, group), true, i0, mc, k0, kc, buffer, ld);
  for (int64_t i = 0; i < mc; i++) {
    char *const to = (char *)buffer + i * ld * element;
    if (g->type == CPU_GEMM_I16 && kc % 2) memset(to + kc * element, 0, (size_t)element);
    row[i] = to;
  }
  *step = 1;
}

static const void *right_block(const cpu_gemm *g, int64_t group, int64_t k0, int64_t kc, int64_t j0, int64_t nc,
                               void *buffer, int64_t *step)
{
  const gradient *p = g->user;
  const int64_t element = (int64_t)cpu_gemm_row_bytes(g->type), ld = cpu_gemm_ld(g->nc, (size_t)element);
  *step = ld;
  if (!p->places_in_columns) dy_by_pixel(p, group, j0, nc, k0, kc, buffer, ld);
  else
    for (int64_t i = 0; i < kc; i++)
      cpu_window_places(g->isa, &p->x, of_group(&p->x, p->x_data, group), k0 + i, j0, nc, (char *)buffer + i * ld * element);
  return buffer;
}

/* ---- tiles of dw -------------------------------------------------------------------------------- */

static char *dw_at(const gradient *p, int64_t out, int64_t in, int64_t tap)
{
  int64_t at[3], offset = out * p->dw_stride[0] + in * p->dw_stride[1];
  cpu_window_tap(&p->x, tap, at);
  for (int32_t d = 2; d < p->rank; d++) offset += at[d + 3 - p->rank] * p->dw_stride[d];
  return p->dw_data + offset * qn_kit_bytes(p->dw_dtype);
}

/* Places are rows of sums, of which neighbours are neighbours in dw: a strip of them at a time, for each filter. Filters lie far apart; to
 * store place after place, each in all filters, would take longer than the product. */
static void finish_turned(const gradient *p, int64_t group, int64_t i0, int64_t mc, int64_t j0, int64_t nc, const float *acc, int64_t ld)
{
  float turned[PIECE][STRIP];
  for (int64_t i = 0; i < mc; i += STRIP)
    for (int64_t j = 0; j < nc; j += PIECE) {
      const int64_t n = qn_min_i64(STRIP, mc - i), m = qn_min_i64(PIECE, nc - j);
      p->gemm.isa->turn(acc + i * ld + j, ld, n, m, turned[0], STRIP);
      for (int64_t c = 0; c < m; c++)
        p->gemm.isa->narrow[p->dw_dtype](turned[c], n,
                                         p->dw_data + ((group * p->dy.channels + j0 + j + c) * p->dw_stride[0] + i0 + i) *
                                                        qn_kit_bytes(p->dw_dtype), 1);
    }
}

static void finish(const cpu_gemm *g, int64_t group, int64_t i0, int64_t mc, int64_t j0, int64_t nc, void *acc, int64_t ld)
{
  const gradient *p = g->user;
  if (p->whole && g->type == CPU_GEMM_F32 && nc > 1) {
    finish_turned(p, group, i0, mc, j0, nc, acc, ld);
    return;
  }
  const int64_t element = g->type == CPU_GEMM_F64 ? 8 : 4, outs = p->dy.channels, ins = p->x.channels;
  cpu_narrow *const narrow = g->isa->narrow[p->dw_dtype];
  for (int64_t i = 0; i < mc; i++) {
    const char *const sums = (char *)acc + i * ld * element;
    if (!p->places_in_columns) {
      narrow(sums, nc, dw_at(p, group * outs + j0, (i0 + i) / p->x.taps, (i0 + i) % p->x.taps), p->dw_stride[0]);
      continue;
    }
    for (int64_t j = 0, run; j < nc; j += run) {
      const int64_t tap = (j0 + j) / ins, in = (j0 + j) % ins;
      run = qn_min_i64(ins - in, nc - j);
      narrow(sums + j * element, run, dw_at(p, group * outs + i0 + i, in, tap), p->dw_stride[1]);
    }
  }
}

/* ---- prepare: takes every problem ---------------------------------------------------------------- */

/* The pixels of a tensor as windows of one tap, over the same pixel grid as w's. */
static void identity(cpu_window *own, const cpu_window *w, const qn_value *v, int64_t groups)
{
  *own = *w;
  for (int d = 0; d < 3; d++) own->axis[d] = (cpu_window_axis){w->axis[d].n, 1, 1, 1, 0, w->axis[d].n};
  own->taps = 1;
  own->channels = v->dim[1] / groups;
  own->dtype = v->dtype;
  own->stride[0] = v->stride[0];
  own->stride[1] = v->stride[1];
  for (int d = 0; d < 3; d++) own->stride[2 + d] = d < 5 - v->rank ? 0 : v->stride[d + v->rank - 3];
}

static qn_status prepare(const qn_request *request, qn_prepared *out)
{
  const qn_node *node = &request->op[0];
  const qn_conv *conv = node->attr;
  const cpu_gemm_isa *isa;
  const qn_status status = cpu_gemm_choose(request, out, &isa);
  if (status) return status;
  gradient p = {0};
  p.x_value = qn_role(node, QN_ROLE_CONV_BACKWARD_FILTER_X);
  p.dy_value = qn_role(node, QN_ROLE_CONV_BACKWARD_FILTER_DY);
  p.dw_value = qn_role(node, QN_ROLE_CONV_BACKWARD_FILTER_DW);
  const qn_value *x = &request->value[p.x_value], *dy = &request->value[p.dy_value], *dw = &request->value[p.dw_value];
  p.rank = dw->rank;
  p.dw_dtype = dw->dtype;
  memcpy(p.dw_stride, dw->stride, sizeof p.dw_stride);
  cpu_window_forward(&p.x, x, dy, dw, conv, false);
  identity(&p.dy, &p.x, dy, conv->groups);
  p.places_in_columns = x->dim[1] == 1 ? dy->stride[1] == 1 && dy->dim[1] > 1 : x->stride[1] == 1;

  cpu_gemm *g = &p.gemm;
  const int64_t places = p.x.taps * p.x.channels;
  int64_t next = 1;
  p.whole = !p.places_in_columns;
  for (int32_t d = dw->rank - 1; d >= 1; next *= dw->dim[d], d--) p.whole &= dw->dim[d] == 1 || dw->stride[d] == next;
  g->isa = isa;
  g->type = cpu_gemm_type(x->dtype);
  g->batch = conv->groups;
  g->m = p.places_in_columns ? p.dy.channels : places;
  g->n = p.places_in_columns ? places : p.dy.channels;
  g->k = x->dim[0] * p.x.pixels;
  g->a = left_block;
  g->b = right_block;
  g->finish = finish;
  g->one_order = cpu_gemm_one_order(request);
  out->workspace = cpu_gemm_plan(g, request->demands->threads);
  /* windows of channels are laid out tap by tap; dy and planes in long runs, which several taps shift against each other */
  const double laid = (double)g->batch * (double)g->k;
  out->estimate = cpu_gemm_ns(g) + 0.1 * laid * (double)p.dy.channels +
                  laid * (p.places_in_columns ? (double)p.x.taps * (12 + 0.1 * (double)p.x.channels)
                                         : (p.x.taps == 1 ? 0.1 : p.x.axis[2].step == 1 ? 0.3 : 0.5) * (double)places);
  return cpu_keep(out, &p, sizeof p);
}

/* ---- run ------------------------------------------------------------------------------------------- */

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  gradient p = *(const gradient *)prepared->state;
  p.x_data = launch->ptr[p.x_value];
  p.dy_data = launch->ptr[p.dy_value];
  p.dw_data = launch->ptr[p.dw_value];
  p.gemm.user = &p;
  cpu_gemm_run(&p.gemm, launch->threads, launch->workspace);
  return QN_OK;
}

static const qn_engine rows[] = {
  {.name = "gemm", .op = QN_OP_CONV_BACKWARD_FILTER, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,
   .variants = cpu_gemm_variants, .prepare = prepare, .run = run, .release = cpu_release},
};
const qn_engine_list cpu_conv_gemm_filter = {rows, 1};
