/* conv_gemm.c -- conv_forward and conv_backward_data as matrix products over window places, with im2col a block at a time.
 *
 *   sum[pixel, out] = sum over places (in, tap) of source[at that place of the pixel's window] filter[out, in, tap]
 *
 * Forward, the source is x and `out` counts K. The gradient by the data has dy as source and `out` counts C; stride splits dx
 * into phases, and each is such a sum over the taps that reach it. Blocks of the source are laid out as the product asks for
 * them, never the whole im2col matrix. The product's columns are what y runs along: pixels (NCHW) or channels (NHWC). The filter
 * is laid out once per run, or read in place if its rows already have the needed order.
 * Wins whenever a group has more than a few channels; conv_depthwise.c takes groups of one. */
#include "kit/simd.h"
#include "cpu_ref.h"
#include "conv_window.h"
#include "gemm/gemm_epilogue.h"
#include "conv_gemm.h"

/* ---- the filter ------------------------------------------------------------------------------ */

/* Lays out row `out` of a group: its places in order. */
static void lay_row(const cpu_conv *c, int64_t group, int64_t out, char *dst)
{
  const cpu_window *w = &c->window;
  const int64_t from = qn_kit_bytes(c->filter_dtype), to = (int64_t)cpu_gemm_row_bytes(c->gemm.type);
  const char *const src = c->filter + (c->filter_first + group * c->filter_group + out * c->filter_out) * from;
  const int64_t run = w->axis[2].taps;
  for (int64_t line = 0; line < w->axis[0].taps * w->axis[1].taps; line++) {
    const char *const taps = src + (line / w->axis[1].taps * c->filter_tap[0] + line % w->axis[1].taps * c->filter_tap[1]) * from;
    if (c->taps_fastest)
      for (int64_t in = 0; in < w->channels; in++)
        c->gemm.isa->widen[c->filter_dtype](taps + in * c->filter_in * from, c->filter_tap[2], run,
                                            dst + (in * w->taps + line * run) * to);
    else
      for (int64_t tap = 0; tap < run; tap++)
        c->gemm.isa->widen[c->filter_dtype](taps + tap * c->filter_tap[2] * from, c->filter_in, w->channels,
                                            dst + (line * run + tap) * w->channels * to);
  }
}

/* Lays out the places of one tap, each a row along `out`. */
static void lay_tap(const cpu_conv *c, int64_t group, int64_t tap, char *dst)
{
  const cpu_window *w = &c->window;
  int64_t at[3];
  cpu_window_tap(w, tap, at);
  const int64_t offset = c->filter_first + group * c->filter_group + at[0] * c->filter_tap[0] + at[1] * c->filter_tap[1]
                         + at[2] * c->filter_tap[2];
  cpu_gemm_lay(c->gemm.isa, c->filter_dtype, c->filter + offset * qn_kit_bytes(c->filter_dtype), c->filter_in, c->filter_out,
               w->channels, c->gemm.n, dst, c->laid_ld);
}

static void lay_filter(const cpu_conv *c, const qn_launch *launch)
{
  const int64_t to = (int64_t)cpu_gemm_row_bytes(c->gemm.type), groups = c->gemm.batch;
  const int threads = cpu_threads(launch, (int64_t)c->laid_bytes / to);
  if (c->pixels_in_columns) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t row = 0; row < groups * c->gemm.m; row++) {
      char *const dst = c->laid + row * c->laid_ld * to;
      lay_row(c, row / c->gemm.m, row % c->gemm.m, dst);
      if (c->gemm.k % 2) memset(dst + c->gemm.k * to, 0, (size_t)to);       /* the i16 kernel takes rows in pairs */
    }
  } else {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < groups * c->window.taps; i++)
      lay_tap(c, i / c->window.taps, i % c->window.taps, c->laid + i * c->window.channels * c->laid_ld * to);
  }
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static const char *group_source(const cpu_conv *c, int64_t group)
{
  return c->source + group * c->window.channels * c->window.stride[1] * qn_kit_bytes(c->window.dtype);
}

/* pixels in columns: rows of A are rows of the filter */
static void filter_rows(const cpu_gemm *g, int64_t group, int64_t i0, int64_t mc, int64_t k0, int64_t kc,
                        void *buffer, const void **row, int64_t *step)
{
  const cpu_conv *c = g->user;
  const int64_t element = (int64_t)cpu_gemm_row_bytes(g->type);
  const char *first = c->laid + ((group * g->m + i0) * c->laid_ld + k0) * element;
  int64_t distance = c->laid_ld * element;
  (void)kc;
  (void)buffer;
  if (c->filter_in_place) {
    first = c->filter + (c->filter_first + group * c->filter_group + i0 * c->filter_out + k0) * element;
    distance = c->filter_out * element;
  }
  for (int64_t i = 0; i < mc; i++) row[i] = first + i * distance;
  *step = 1;
}

/* pixels in columns and channels contiguous: rows of windows, transposed */
#define WINDOWS 32
#define PLACES 128                        /* of a window at a time */

static const void *turned_columns(const cpu_gemm *g, int64_t group, int64_t k0, int64_t kc, int64_t j0, int64_t nc,
                                  void *buffer, int64_t *step)
{
  const cpu_conv *c = g->user;
  const int64_t ld = cpu_gemm_ld(g->nc, sizeof(float));
  float windows[WINDOWS][PLACES];
  for (int64_t j = 0; j < nc; j += WINDOWS)
    for (int64_t k = 0; k < kc; k += PLACES) {
      const int64_t n = qn_min_i64(WINDOWS, nc - j), places = qn_min_i64(PLACES, kc - k);
      for (int64_t i = 0; i < n; i++)
        cpu_window_places(g->isa, &c->window, group_source(c, group), j0 + j + i, k0 + k, places, (char *)windows[i]);
      g->isa->turn(windows[0], PLACES, n, places, (float *)buffer + k * ld + j, ld);
    }
  *step = ld;
  return buffer;
}

/* pixels in columns: a row for each place */
static const void *source_columns(const cpu_gemm *g, int64_t group, int64_t k0, int64_t kc, int64_t j0, int64_t nc,
                                  void *buffer, int64_t *step)
{
  const cpu_conv *c = g->user;
  const int64_t ld = cpu_gemm_ld(g->nc, cpu_gemm_row_bytes(g->type));
  cpu_window_pixels(g->isa, &c->window, group_source(c, group), c->taps_fastest, k0, kc, j0, nc, buffer, ld);
  *step = ld;
  return buffer;
}

/* pixels in rows */
static void source_rows(const cpu_gemm *g, int64_t group, int64_t i0, int64_t mc, int64_t k0, int64_t kc,
                        void *buffer, const void **row, int64_t *step)
{
  const cpu_conv *c = g->user;
  const cpu_window *w = &c->window;
  const int64_t element = (int64_t)cpu_gemm_row_bytes(g->type), ld = cpu_gemm_ld(g->kc, (size_t)element);
  *step = 1;
  for (int64_t i = 0; i < mc; i++) {
    if (c->source_in_place) {
      int64_t at[4], offset = k0;
      cpu_window_pixel(w, i0 + i, at);
      offset += at[0] * w->stride[0];
      for (int d = 0; d < 3; d++) offset += (at[1 + d] * w->axis[d].step + w->axis[d].start) * w->stride[2 + d];
      row[i] = group_source(c, group) + offset * element;
    } else {
      char *const to = (char *)buffer + i * ld * element;
      cpu_window_places(g->isa, w, group_source(c, group), i0 + i, k0, kc, to);
      if (g->type == CPU_GEMM_I16 && kc % 2) memset(to + kc * element, 0, (size_t)element);
      row[i] = to;
    }
  }
}

/* pixels in rows: the filter's places */
static const void *filter_columns(const cpu_gemm *g, int64_t group, int64_t k0, int64_t kc, int64_t j0, int64_t nc,
                                  void *buffer, int64_t *step)
{
  const cpu_conv *c = g->user;
  (void)kc;
  (void)nc;
  (void)buffer;
  *step = c->laid_ld;
  return c->laid + ((group * g->k + k0) * c->laid_ld + j0) * (int64_t)cpu_gemm_row_bytes(g->type);
}

/* ---- tiles of y ----------------------------------------------------------------------------------- */

/* The index in y's dims of the pixel at `at`, and how many pixels run from there along the axis; `at` moves past them. */
static int64_t next_run(const cpu_conv *c, int64_t at[4], int64_t *index)
{
  const cpu_window *w = &c->window;
  const int32_t rank = c->epilogue.rank;
  index[0] = at[0];
  if (c->flat) {
    index[c->axis] = (at[1] * w->axis[1].n + at[2]) * w->axis[2].n + at[3];
    at[0]++;
    at[1] = at[2] = at[3] = 0;
    return w->pixels - index[c->axis];
  }
  for (int32_t d = 2; d < rank; d++) index[d] = at[4 - rank + d];
  cpu_window_next_line(w, at);
  return w->axis[2].n - index[rank - 1];
}

static void finish(const cpu_gemm *g, int64_t group, int64_t i0, int64_t mc, int64_t j0, int64_t nc, void *acc, int64_t ld)
{
  const cpu_conv *c = g->user;
  const int64_t element = g->type == CPU_GEMM_F64 ? 8 : 4, pixels = c->pixels_in_columns ? nc : mc;
  int64_t index[QN_MAX_RANK] = {0}, at[4];
  cpu_window_pixel(&c->window, c->pixels_in_columns ? j0 : i0, at);
  for (int64_t p = 0, run; p < pixels; p += run) {
    run = qn_min_i64(next_run(c, at, index), pixels - p);
    if (c->pixels_in_columns)
      for (int64_t i = 0; i < mc; i++) {
        index[1] = group * g->m + i0 + i;
        cpu_epilogue_row(&c->epilogue, index, c->axis, run, (char *)acc + (i * ld + p) * element);
      }
    else
      for (int64_t i = 0; i < run; i++, index[c->axis]++) {
        index[1] = group * g->n + j0;
        cpu_epilogue_row(&c->epilogue, index, 1, nc, (char *)acc + (p + i) * ld * element);
      }
  }
}

/* ---- reading the problem ---------------------------------------------------------------------------- */

/* Are rows of the filter contiguous, with places in this order? */
static bool lies_in_order(const cpu_conv *c, bool taps_fastest)
{
  const cpu_window *w = &c->window;
  const int64_t n[4] = {w->axis[2].taps, w->axis[1].taps, w->axis[0].taps, w->channels};
  const int64_t stride[4] = {c->filter_tap[2], c->filter_tap[1], c->filter_tap[0], c->filter_in};
  int64_t expected = 1;
  for (int i = 0; i < 4; i++) {
    const int at = taps_fastest ? i : (i + 3) % 4;
    if (n[at] != 1 && stride[at] != expected) return false;
    expected *= n[at];
  }
  return true;
}

/* Does each pixel read a single tap, inside the source? */
static bool reads_in_place(const cpu_window *w)
{
  for (int d = 0; d < 3; d++) {
    const cpu_window_axis *x = &w->axis[d];
    if (x->start < 0 || (x->n - 1) * x->step + x->start >= x->extent) return false;
  }
  return w->taps == 1 && (w->stride[1] == 1 || w->channels == 1) && (w->dtype == QN_F32 || w->dtype == QN_F64);
}

/* Chooses the form of the product, from window and filter strides. */
static uint64_t choose(cpu_conv *c, int threads)
{
  const qn_value *y = &c->y_is;
  const int64_t groups = c->attr.groups, images = y->dim[0];
  cpu_gemm *g = &c->gemm;
  const cpu_window *w = &c->window;
  const int64_t outs = y->dim[1] / groups, pixels = images * w->pixels;
  const bool whole = c->filter_dtype == QN_F32 || c->filter_dtype == QN_F64;
  const bool in_rows = whole && (lies_in_order(c, true) || lies_in_order(c, false));
  /* y runs along channels: they are the columns, unless so few pixels that laying out the filter would cost more (the number of pixels
   * decides the order of places then, so not where a batch of another size must have the same bits) */
  c->pixels_in_columns = y->stride[1] != 1 || y->dim[1] == 1 || (in_rows && pixels < outs && !c->must_follow_y && !g->one_order);
  c->taps_fastest = c->pixels_in_columns && (!in_rows || lies_in_order(c, true));
  c->filter_in_place = c->pixels_in_columns && in_rows;
  c->source_in_place = !c->pixels_in_columns && reads_in_place(w);

  g->type = cpu_gemm_type(w->dtype);
  g->batch = groups;
  g->m = c->pixels_in_columns ? outs : pixels;
  g->n = c->pixels_in_columns ? pixels : outs;
  g->k = w->taps * w->channels;
  g->a = c->pixels_in_columns ? filter_rows : source_rows;
  g->b = !c->pixels_in_columns ? filter_columns
       : w->stride[1] == 1 && !c->taps_fastest && g->type == CPU_GEMM_F32 ? turned_columns : source_columns;
  g->keep_rows = c->pixels_in_columns;
  g->keep_columns = !c->pixels_in_columns && !c->source_in_place;
  g->b_ready = !c->pixels_in_columns;
  g->finish = finish;
  const uint64_t bytes = cpu_gemm_plan(g, threads);
  c->laid_ld = cpu_gemm_ld(c->pixels_in_columns ? g->k + 1 : qn_round_up(g->n, g->isa->type[g->type].nr),
                           cpu_gemm_row_bytes(g->type));
  c->laid_bytes = c->filter_in_place ? 0 : (uint64_t)(groups * (c->pixels_in_columns ? g->m : g->k) * c->laid_ld)
                                           * cpu_gemm_row_bytes(g->type);
  return c->laid_bytes + bytes;
}

#define RUN_NS 12                         /* to lay out a run of channels, and an element of it */
#define ELEMENT_NS 0.06
#define STEP_NS 0.4                       /* an element of a run that has gaps */

/* An estimate for the current phase. Windows of channels are laid out tap by tap, planes in runs of pixels. */
static double phase_ns(const cpu_conv *c)
{
  const cpu_window *w = &c->window;
  const cpu_window_axis *const y = &w->axis[1], *const x = &w->axis[2];
  const double sums = (double)c->gemm.batch * (double)c->gemm.m * (double)c->gemm.n;
  const double windows = (double)c->y_is.dim[0] * (double)w->pixels * (double)c->gemm.batch;
  double laid = 0;
  if (w->stride[1] == 1) {
    laid = (double)w->taps * (RUN_NS + ELEMENT_NS * (double)w->channels);
  } else {
    const bool shifted = y->step == 1 && x->step == 1 && x->n == x->extent;      /* a plane is one run */
    const double run = (double)(shifted ? y->n * x->n : x->n);
    laid = (double)c->gemm.k * (RUN_NS / run + (x->step == 1 ? ELEMENT_NS : STEP_NS));
  }
  /* each phase brings all lines of planes into the cache again */
  const double put = c->phases == 1 ? 0.1 : c->y_is.stride[1] == 1 ? 1 : 4;
  return cpu_gemm_ns(&c->gemm) + (c->source_in_place ? 0 : windows * laid) + sums * put;
}

static void set_filter(cpu_conv *c, const int64_t first[3], const int64_t every[3])
{
  const qn_value *f = &c->filter_is;
  const int64_t out_group = f->dim[0] / c->attr.groups;
  c->filter_dtype = f->dtype;
  c->filter_group = out_group * f->stride[0];
  c->filter_out = f->stride[c->backward ? 1 : 0];
  c->filter_in = f->stride[c->backward ? 0 : 1];
  c->filter_first = 0;
  for (int d = 0; d < 3; d++) {
    const int32_t i = d - (5 - f->rank) + 2;
    c->filter_tap[d] = i < 2 ? 0 : every[d] * f->stride[i];
    c->filter_first += i < 2 ? 0 : first[d] * f->stride[i];
  }
}

/* Whether consecutive pixels are equally far apart in y. */
static bool is_flat(const qn_value *y)
{
  int32_t inner = -1;
  for (int32_t d = y->rank - 1; d >= 2; d--) {
    if (y->dim[d] == 1) continue;
    if (inner >= 0 && y->stride[d] != y->dim[inner] * y->stride[inner]) return false;
    inner = d;
  }
  return true;
}

/* The dim whose stride that distance is. */
static int32_t innermost(const qn_value *y)
{
  for (int32_t d = y->rank - 1; d > 2; d--)
    if (y->dim[d] > 1) return d;
  return y->rank > 2 ? 2 : 1;
}

void cpu_conv_phase(cpu_conv *c, int64_t phase)
{
  static const int64_t none[3] = {0}, each[3] = {1, 1, 1};
  const int32_t rank = c->y_is.rank;
  if (!c->backward) {
    cpu_window_forward(&c->window, &c->source_is, &c->y_is, &c->filter_is, &c->attr, c->flat);
    set_filter(c, none, each);
    return;
  }
  int64_t at[3] = {0}, first[3], every[3];
  c->y_offset = 0;
  for (int32_t d = rank - 1; d >= 2; d--) {                /* pixels of a phase are `stride` apart in dx */
    const int64_t stride = c->attr.stride[d - 2], from = phase % stride;
    phase /= stride;
    at[d + 3 - rank] = from;
    c->y_offset += from * c->y_is.stride[d];
    c->epilogue.y.stride[d] = c->y_is.dim[d] == 1 ? 0 : c->y_is.stride[d] * stride;
  }
  cpu_window_phase(&c->window, &c->y_is, &c->source_is, &c->filter_is, &c->attr, c->flat, at, first, every);
  set_filter(c, first, every);
}

void cpu_conv_bind(cpu_conv *c, void *const *ptr)
{
  c->source = ptr[c->source_value];
  c->filter = ptr[c->filter_value];
  cpu_epilogue_bind(&c->epilogue, ptr);
  if (c->y_offset) c->epilogue.y.base += c->y_offset * qn_kit_bytes(c->y_is.dtype);
}

void cpu_conv_ask(cpu_conv *c, const qn_request *request, const cpu_gemm_isa *isa)
{
  const qn_node *node = &request->op[0];
  const bool backward = node->op == QN_OP_CONV_BACKWARD_DATA;
  const int32_t y = qn_role(node, backward ? QN_ROLE_CONV_BACKWARD_DATA_DX : QN_ROLE_CONV_FORWARD_Y);
  c->backward = backward;
  c->attr = *(const qn_conv *)node->attr;
  c->source_value = qn_role(node, backward ? QN_ROLE_CONV_BACKWARD_DATA_DY : QN_ROLE_CONV_FORWARD_X);
  c->filter_value = qn_role(node, backward ? QN_ROLE_CONV_BACKWARD_DATA_W : QN_ROLE_CONV_FORWARD_W);
  c->source_is = request->value[c->source_value];
  c->filter_is = request->value[c->filter_value];
  c->y_is = request->value[y];
  c->threads = request->demands->threads;
  c->gemm.one_order = cpu_gemm_one_order(request);
  c->phases = 1;
  for (int32_t d = 2; backward && d < c->y_is.rank; d++)        /* beyond the limit the exact number does not matter */
    c->phases *= qn_min_i64(c->attr.stride[d - 2], CPU_CONV_PHASES + 1);

  cpu_epilogue *e = &c->epilogue;
  e->rank = c->y_is.rank;
  e->alpha_at.value = e->beta_at.value = e->c.value = -1;
  e->bias = cpu_operand_of(request, backward ? -1 : qn_role(node, QN_ROLE_CONV_FORWARD_BIAS), e->rank);
  if (e->bias.value >= 0) {                                /* bias is along dim 1, not the last */
    e->bias.stride[1] = e->bias.stride[e->rank - 1];
    e->bias.stride[e->rank - 1] = 0;
  }
  e->y = cpu_operand_of(request, y, e->rank);
  c->flat = c->phases == 1 && is_flat(&c->y_is);
  c->axis = c->flat ? innermost(&c->y_is) : e->rank - 1;
  c->gemm.isa = e->isa = isa;
  e->type = cpu_gemm_type(c->source_is.dtype);
}

uint64_t cpu_conv_set(cpu_conv *c, const qn_request *request, const cpu_gemm_isa *isa)
{
  uint64_t most = 0;
  cpu_conv_ask(c, request, isa);
  for (int64_t phase = 0; phase < c->phases && c->phases <= CPU_CONV_PHASES; phase++) {
    cpu_conv_phase(c, phase);
    const uint64_t bytes = c->window.pixels ? choose(c, c->threads) : 0;
    c->ns += c->window.pixels ? phase_ns(c) : 0;
    if (bytes > most) most = bytes;
  }
  return most;
}

/* ---- run ------------------------------------------------------------------------------------------------ */

void cpu_conv_run(cpu_conv *c, const qn_launch *launch)
{
  c->laid = launch->workspace;
  c->gemm.user = c;
  for (int64_t phase = 0; phase < c->phases; phase++) {
    if (c->phases > 1) {
      cpu_conv_phase(c, phase);
      if (c->window.pixels == 0) continue;
      choose(c, c->threads);
    }
    cpu_conv_bind(c, launch->ptr);
    if (!c->filter_in_place) lay_filter(c, launch);
    cpu_gemm_run(&c->gemm, launch->threads, c->laid + c->laid_bytes);
  }
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  cpu_conv c = *(const cpu_conv *)p->state;
  cpu_conv_run(&c, launch);
  return QN_OK;
}

/* ---- prepare: takes every problem but strides that make too many phases ------------------------------------- */

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const cpu_gemm_isa *isa;
  const qn_status status = cpu_gemm_choose(request, p, &isa);
  if (status) return status;
  cpu_conv c = {0};
  p->workspace = cpu_conv_set(&c, request, isa);
  if (c.phases > CPU_CONV_PHASES)
    return qn_refuse(p, "each combination of stride's remainders is a pass of its own", "dx", "at most 64 of them",
                     "%lld", (long long)c.phases);
  p->estimate = c.ns;
  return cpu_keep(p, &c, sizeof c);
}

static const qn_engine rows[] = {
  {.name = "gemm", .op = QN_OP_CONV_FORWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,
   .variants = cpu_gemm_variants, .prepare = prepare, .run = run, .release = cpu_release},
  {.name = "gemm", .op = QN_OP_CONV_BACKWARD_DATA, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,
   .variants = cpu_gemm_variants, .prepare = prepare, .run = run, .release = cpu_release},
};
const qn_engine_list cpu_conv_gemm = {rows, 2};
