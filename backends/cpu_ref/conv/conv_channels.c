/* conv_channels.c -- conv_forward and conv_backward_data of f32 images with channels last, read in place; other images are copied so.
 *
 *   sum[pixel, out] = sum over taps, in of source[at that tap of the pixel's window, in] filter[out, in, tap]
 *
 * A tile of pixels of a line and of outputs stays in registers while the taps and channels of their windows pass, without im2col, which
 * would take longer than the product where a group has few outputs. A source that runs along pixels (NCHW) is laid out with channels
 * last first, and for such a y the sums of some pixels are turned. What the lanes of a vector are depends on the problem:
 *   outputs    of one group: an element of the source is multiplied by a vector of filters
 *   groups     several groups of fewer outputs than lanes, as many as inputs: lane by lane its group's input, by one permutation
 *   inputs     if outputs are few and inputs many (the gradient by an image): vectors of inputs, summed up at the end
 * Pixels whose windows reach beyond the image read zeros there. Windows are those of conv_window.h, so the gradient by the data is the
 * same loops over the phases of its stride. With a single phase, following pointwise ops are fused (gemm_follow.h). */
#include "kit/simd.h"
#include "cpu_ref.h"
#include "conv_gemm.h"
#include "conv_lanes.h"
#include "gemm/gemm_follow.h"

#define TAPS_MAX 256                      /* limit on the taps of a window */
#define INS_MAX 1024                      /* limit on the inputs of a group: pixels outside read that many zeros */
#define PIXELS 8                          /* in a tile, at most */
#define VECTORS 4                         /* of outputs in a tile, at most */
#define LANES_MAX 16                      /* of any instruction set's copy */
#define CHUNK 256                         /* pixels between which a block's filters stay in cache */
#define HELD 1024                         /* sums of a line before they are turned, if y runs along pixels */

enum form { OUTPUTS, GROUPS, INPUTS };

typedef struct channels {
  cpu_conv  conv;
  enum form form;
  int64_t   lanes;
  int64_t   ins, outs;                    /* of a group */
  int64_t   blocks, vectors;              /* blocks of filters: groups, or (GROUPS) vectors of outputs; vectors of each */
  int64_t   places;                       /* of a block: (tap, in); INPUTS: in vectors */
  cpu_follow follow;
  bool      copied, y_copied;             /* runs along pixels: the source is laid out with channels last first; y, if in phases, last */
  qn_value  given, y_given;               /* those tensors */
  uint64_t  copy_bytes, y_bytes;          /* of those copies */
} channels;

/* Part of a window that is contiguous in memory. */
typedef struct run {
  int64_t from;                           /* from the pixel's first element */
  int32_t n, place;                       /* at most TAPS_MAX * INS_MAX; a line's runs are a third of a small stack */
  int64_t across;                         /* its position on the last axis, from the pixel's */
} run;

typedef struct line {
  const cpu_window_axis *x;
  run  tap[TAPS_MAX], joined[TAPS_MAX];   /* joined: neighbouring taps that are contiguous, for pixels all of whose taps are inside */
  int  taps, n_joined;
  int64_t low, high;                      /* those pixels */
} line;

static const float zeros[INS_MAX + LANES_MAX];

/* ---- tiles ------------------------------------------------------------------------------------ */

/* What the pixels of a tile read: `here` is the first one's, they are `ahead` elements apart. Beyond the line: zeros. */
CPU_INLINE void sources(const int pixels, const run *r, const float *here, int64_t ahead, const cpu_window_axis *edge, int64_t t,
                        const float **from)
{
#pragma GCC unroll 8
  for (int p = 0; p < pixels; p++) {
    from[p] = here + p * ahead + r->from;
    if (!edge) continue;
    const int64_t at = (t + p) * edge->step + r->across;
    if (at < 0 || at >= edge->extent) from[p] = zeros;
  }
}

/* sums[p][lane] = bias[lane] + the sum over runs */
CPU_INLINE void by_outputs(const int pixels, const int vectors, const run *r, int runs, const float *here, int64_t ahead,
                           const cpu_window_axis *edge, int64_t t, const float *filter, const float *bias, float *sums, int64_t apart)
{
  v_f32 sum[PIXELS][VECTORS];
#pragma GCC unroll 8
  for (int p = 0; p < pixels; p++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sum[p][v] = v_load(bias + v * CPU_LANES);
  for (int i = 0; i < runs; i++, r++) {
    const float *from[PIXELS], *w = filter + r->place * vectors * CPU_LANES;
    sources(pixels, r, here, ahead, edge, t, from);
    for (int64_t c = 0; c < r->n; c++, w += vectors * CPU_LANES) {
      v_f32 f[VECTORS];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) f[v] = v_load(w + v * CPU_LANES);
#pragma GCC unroll 8
      for (int p = 0; p < pixels; p++) {
        const float x = from[p][c];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) sum[p][v] += x * f[v];
      }
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < pixels; p++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) memcpy(sums + p * apart + v * CPU_LANES, &sum[p][v], sizeof sum[p][v]);
}

/* The same for one vector of several groups, of `ins` inputs and outputs each: lane l takes input l / ins * ins + c. */
CPU_INLINE void by_groups(const int pixels, const int ins, const run *r, int runs, const float *here, int64_t ahead,
                          const cpu_window_axis *edge, int64_t t, int64_t lanes, const float *filter, const float *bias, float *sums,
                          int64_t apart)
{
  v_f32 sum[PIXELS];
  v_i32 first;
  for (int l = 0; l < CPU_LANES; l++) first[l] = l / ins * ins;
#pragma GCC unroll 8
  for (int p = 0; p < pixels; p++) sum[p] = v_load(bias);
  for (int i = 0; i < runs; i++, r++) {
    const float *from[PIXELS], *w = filter + r->place * CPU_LANES;
    v_f32 x[PIXELS];
    sources(pixels, r, here, ahead, edge, t, from);
#pragma GCC unroll 8
    for (int p = 0; p < pixels; p++) x[p] = load_some(from[p], lanes);
#pragma GCC unroll 8
    for (int c = 0; c < ins; c++) {
      const v_f32 f = v_load(w + c * CPU_LANES);
      const v_i32 at = first + c;
#pragma GCC unroll 8
      for (int p = 0; p < pixels; p++) sum[p] += __builtin_shuffle(x[p], at) * f;
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < pixels; p++) memcpy(sums + p * apart, &sum[p], sizeof sum[p]);
}

/* sums[p][out] = bias[out] + the sum over runs of vectors of inputs, the last one partial */
CPU_INLINE void by_inputs(const int pixels, const int outs, const run *r, int runs, const float *here, int64_t ahead,
                          const cpu_window_axis *edge, int64_t t, int64_t stride, const float *filter, const float *bias, float *sums,
                          int64_t apart)
{
  v_f32 sum[PIXELS][VECTORS] = {0};
  for (int i = 0; i < runs; i++, r++) {
    const float *from[PIXELS], *w = filter + r->place * CPU_LANES;
    sources(pixels, r, here, ahead, edge, t, from);
    for (int64_t c = 0; c < r->n; c += CPU_LANES, w += CPU_LANES) {
      v_f32 f[VECTORS];
#pragma GCC unroll 4
      for (int o = 0; o < outs; o++) f[o] = v_load(w + o * stride);
#pragma GCC unroll 8
      for (int p = 0; p < pixels; p++) {
        const v_f32 x = load_some(from[p] + c, r->n - c);
#pragma GCC unroll 4
        for (int o = 0; o < outs; o++) sum[p][o] += x * f[o];
      }
    }
  }
  for (int p = 0; p < pixels; p++)
    for (int o = 0; o < outs; o++) {
      float all = 0;
      for (int l = 0; l < CPU_LANES; l++) all += sum[p][o][l];
      sums[p * apart + o] = bias[o] + all;
    }
}

/* A tile of `pixels` pixels and `vectors` vectors (INPUTS: outputs), its numbers constant in each copy. */
typedef struct tile {
  const run *r;
  int runs;
  const float *here;
  int64_t ahead;
  const cpu_window_axis *edge;
  int64_t t, lanes, stride;
  const float *filter, *bias;
  float *sums;
  int64_t apart;
} tile;

CPU_INLINE void sum_tile(enum form form, const int pixels, const int n, const tile *a)
{
  if (form == OUTPUTS)
    by_outputs(pixels, n, a->r, a->runs, a->here, a->ahead, a->edge, a->t, a->filter, a->bias, a->sums, a->apart);
  else if (form == GROUPS)
    by_groups(pixels, n, a->r, a->runs, a->here, a->ahead, a->edge, a->t, a->lanes, a->filter, a->bias, a->sums, a->apart);
  else
    by_inputs(pixels, n, a->r, a->runs, a->here, a->ahead, a->edge, a->t, a->stride, a->filter, a->bias, a->sums, a->apart);
}

CPU_INLINE void tile_of(enum form form, int pixels, const int n, const tile *a)
{
  switch (pixels) {
  case 8: sum_tile(form, 8, n, a); return;
  case 7: sum_tile(form, 7, n, a); return;
  case 6: sum_tile(form, 6, n, a); return;
  case 5: sum_tile(form, 5, n, a); return;
  case 4: sum_tile(form, 4, n, a); return;
  case 3: sum_tile(form, 3, n, a); return;
  case 2: sum_tile(form, 2, n, a); return;
  default: sum_tile(form, 1, n, a); return;
  }
}

/* n: vectors of outputs, inputs of a group, outputs */
static __attribute__((noinline)) void outputs_tile(int pixels, int n, const tile *a)
{
  if (n == 4) tile_of(OUTPUTS, pixels, 4, a);
  else if (n == 2) tile_of(OUTPUTS, pixels, 2, a);
  else tile_of(OUTPUTS, pixels, 1, a);
}

static __attribute__((noinline)) void groups_tile(int pixels, int n, const tile *a)
{
  if (n == 8) tile_of(GROUPS, pixels, 8, a);
  else if (n == 4) tile_of(GROUPS, pixels, 4, a);
  else tile_of(GROUPS, pixels, 2, a);
}

static __attribute__((noinline)) void inputs_tile(int pixels, int n, const tile *a)
{
  if (n == 4) tile_of(INPUTS, pixels, 4, a);
  else if (n == 3) tile_of(INPUTS, pixels, 3, a);
  else if (n == 2) tile_of(INPUTS, pixels, 2, a);
  else tile_of(INPUTS, pixels, 1, a);
}

/* ---- the filter, as laid out -------------------------------------------------------------------- */

/* OUTPUTS, GROUPS: [block][vectors in steps of 4, 2, 1][tap][in][lane]; INPUTS: [group][out][tap][in, up to whole vectors]. */

static int step_of(int64_t left)
{
  return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

static int64_t laid_floats(const channels *d)
{
  return d->blocks * d->places * (d->form == INPUTS ? d->outs : d->vectors) * d->lanes;
}

static void lay_tap(const channels *d, int64_t block, int64_t tap, float *laid)
{
  const cpu_conv *c = &d->conv;
  int64_t i[3];
  cpu_window_tap(&c->window, tap, i);
  const float *const w = (const float *)c->filter + c->filter_first + i[0] * c->filter_tap[0] + i[1] * c->filter_tap[1] +
                         i[2] * c->filter_tap[2];
  if (d->form == INPUTS) {
    const int64_t row = d->places / c->window.taps * d->lanes;
    for (int64_t o = 0; o < d->outs; o++) {
      float *const to = laid + ((block * d->outs + o) * d->places * d->lanes) + tap * row;
      c->gemm.isa->widen[QN_F32](w + block * c->filter_group + o * c->filter_out, c->filter_in, d->ins, to);
      memset(to + d->ins, 0, (size_t)(row - d->ins) * sizeof *to);
    }
    return;
  }
  const int64_t width = d->vectors * d->lanes, all = c->y_is.dim[1];
  float *const first = laid + block * d->places * width;
  for (int64_t v = 0, step; v < d->vectors; v += step) {
    step = step_of(d->vectors - v);
    const int64_t n = step * d->lanes;
    float *const to = first + v * d->lanes * d->places + tap * d->ins * n;
    memset(to, 0, (size_t)(d->ins * n) * sizeof *to);
    if (d->form == OUTPUTS)
      cpu_gemm_lay(c->gemm.isa, QN_F32, w + block * c->filter_group + v * d->lanes * c->filter_out, c->filter_in, c->filter_out, d->ins,
                   qn_min_i64(n, d->outs - v * d->lanes), to, n);
    else
      for (int64_t o = 0; o < n && block * n + o < all; o += d->outs)
        cpu_gemm_lay(c->gemm.isa, QN_F32, w + (block * n + o) / d->outs * c->filter_group, c->filter_in, c->filter_out, d->ins, d->outs,
                     to + o, n);
  }
}

/* ---- lines of pixels ------------------------------------------------------------------------------ */

static bool inside(const cpu_window_axis *axis, int64_t position)
{
  return position >= 0 && position < axis->extent;
}

/* The runs that pixels of line (z, y) read. */
static void read_line(const channels *d, int64_t z, int64_t y, line *l)
{
  const cpu_window *w = &d->conv.window;
  const cpu_window_axis *const x = &w->axis[2];
  const int64_t per_tap = d->places / qn_max_i64(w->taps, 1);
  int64_t least = 0, most = 0;
  l->x = x;
  l->taps = l->n_joined = 0;
  for (int64_t tap = 0; tap < w->taps; tap++) {
    int64_t i[3];
    cpu_window_tap(w, tap, i);
    const int64_t pz = z * w->axis[0].step + i[0] * w->axis[0].tap_step + w->axis[0].start;
    const int64_t py = y * w->axis[1].step + i[1] * w->axis[1].tap_step + w->axis[1].start;
    if (!inside(&w->axis[0], pz) || !inside(&w->axis[1], py)) continue;
    const int64_t across = i[2] * x->tap_step + x->start;
    const run r = {pz * w->stride[2] + py * w->stride[3] + across * w->stride[4], (int32_t)d->ins, (int32_t)(tap * per_tap), across};
    run *const before = l->n_joined ? &l->joined[l->n_joined - 1] : NULL;
    if (before && d->form == OUTPUTS && i[2] && before->from + before->n == r.from) before->n += (int32_t)d->ins;
    else l->joined[l->n_joined++] = r;
    if (!l->taps || across < least) least = across;
    if (!l->taps || across > most) most = across;
    l->tap[l->taps++] = r;
  }
  l->low = qn_min_i64(x->n, qn_max_i64(0, qn_ceil_div(-least, x->step)));
  l->high = qn_max_i64(l->low, qn_min_i64(x->n, qn_ceil_div(x->extent - most, x->step)));
}

/* Pixels of a tile with `sums` sums each: there are 32 registers with AVX-512, else 16. */
static int most_pixels(const channels *d, int sums)
{
  return d->lanes == 16 ? (sums == VECTORS ? 6 : PIXELS) : sums == 1 ? PIXELS : sums == 2 ? 5 : 3;
}

/* `pixels` pixels of a line from index on, of outputs [first, first + outs), to a y that runs along pixels. */
static __attribute__((noinline)) void put_pixels(const channels *d, const cpu_epilogue *e, int64_t index[], int64_t first, int64_t outs,
                                                 const float *sums, int64_t width, int64_t pixels)
{
  float turned[HELD];
  const int64_t apart = HELD / width;
  d->conv.gemm.isa->turn(sums, width, pixels, outs, turned, apart);
  for (int64_t o = 0; o < outs; o++) {
    index[1] = first + o;
    cpu_epilogue_row(e, index, e->rank - 1, pixels, turned + o * apart);
  }
}

/* Outputs [first, first + outs) of a line's pixels, n as outputs_tile. Sums go straight to y if it is f32 and runs along channels. */
static void outputs_of_line(const channels *d, const line *l, int64_t image, int64_t z, int64_t y, int64_t source, int64_t first,
                            int64_t outs, int n, tile *a)
{
  const cpu_conv *conv = &d->conv;
  const cpu_window *w = &conv->window;
  const int64_t last = conv->epilogue.rank - 1, pixels = w->axis[2].n;
  const cpu_operand *const out = &conv->epilogue.y;
  const int64_t width = d->form == OUTPUTS ? n * d->lanes : d->form == GROUPS ? d->lanes : n;
  const bool straight = out->dtype == QN_F32 && (out->stride[1] == 1 || outs == 1) && !conv->epilogue.follow;
  const bool turns = !straight && out->stride[1] != 1 && !conv->epilogue.follow;
  const int64_t tiles = qn_ceil_div(pixels, most_pixels(d, d->form == GROUPS ? 2 : n)), each = qn_ceil_div(pixels, tiles);
  float buffer[HELD];
  int64_t index[QN_MAX_RANK] = {image, first};
  cpu_epilogue unbiased = conv->epilogue;                  /* bias is already in the sums */
  unbiased.bias.base = NULL;
  if (last >= 4) index[2] = z;
  if (last >= 3) index[last - 1] = y;
  const float *const from = (const float *)conv->source + image * w->stride[0] + source * w->stride[1];
  a->ahead = w->axis[2].step * w->stride[4];
  for (int64_t t = 0, now, held = 0; t < pixels; t += now) {
    now = qn_min_i64(each, pixels - t);
    const bool whole = t >= l->low && t + now <= l->high;
    index[last] = t;
    float *const to = straight ? (float *)cpu_operand_at(out, conv->epilogue.rank, index) : NULL;
    const bool in_place = straight && outs == width;
    a->here = from + t * a->ahead;
    a->t = t;
    a->edge = whole ? NULL : l->x;
    a->r = whole ? l->joined : l->tap;
    a->runs = whole ? l->n_joined : l->taps;
    a->sums = in_place ? to : buffer + held * width;
    a->apart = in_place ? out->stride[last] : width;
    (d->form == OUTPUTS ? outputs_tile : d->form == GROUPS ? groups_tile : inputs_tile)((int)now, n, a);
    if (in_place) continue;
    if (turns) {
      held += now;
      if ((held + each) * width <= HELD && t + now < pixels) continue;
      index[last] = t + now - held;
      put_pixels(d, &unbiased, index, first, outs, buffer, width, held);
      held = 0;
      continue;
    }
    for (int64_t p = 0; p < now; p++) {
      index[last] = t + p;
      if (straight) memcpy(to + p * out->stride[last], buffer + p * width, (size_t)outs * sizeof *to);
      else cpu_epilogue_row(&unbiased, index, 1, outs, buffer + p * width);
    }
  }
}

/* Lines [line, line + n) of one block. */
static void block_of_lines(const channels *d, const float *laid, const float *bias, int64_t block, int64_t first_line, int64_t n)
{
  const cpu_window *w = &d->conv.window;
  const int64_t all = d->conv.y_is.dim[1];
  tile a = {.stride = d->places * d->lanes};
  line l;
  int64_t z_seen = -1, y_seen = -1;
  for (int64_t i = first_line; i < first_line + n; i++) {
    const int64_t y = i % w->axis[1].n, z = i / w->axis[1].n % w->axis[0].n, image = i / w->axis[1].n / w->axis[0].n;
    if (z != z_seen || y != y_seen) read_line(d, z, y, &l);
    z_seen = z;
    y_seen = y;
    if (d->form == INPUTS) {
      a.filter = laid + block * d->outs * a.stride;
      a.bias = bias + block * d->outs;
      outputs_of_line(d, &l, image, z, y, block * d->ins, block * d->outs, d->outs, (int)d->outs, &a);
    } else if (d->form == GROUPS) {
      a.filter = laid + block * d->places * d->lanes;
      a.bias = bias + block * d->lanes;
      a.lanes = qn_min_i64(d->lanes, all - block * d->lanes);
      outputs_of_line(d, &l, image, z, y, block * d->lanes, block * d->lanes, a.lanes, (int)d->ins, &a);
    } else {
      for (int64_t v = 0, step; v < d->vectors; v += step) {
        const int64_t done = v * d->lanes;
        step = step_of(d->vectors - v);
        a.filter = laid + (block * d->vectors + v) * d->lanes * d->places;
        a.bias = bias + block * d->outs + done;
        outputs_of_line(d, &l, image, z, y, block * d->ins, block * d->outs + done, qn_min_i64(step * d->lanes, d->outs - done), (int)step,
                        &a);
      }
    }
  }
}

/* ---- one phase ---------------------------------------------------------------------------------------- */

/* Sizes for the current phase; returns the workspace's floats: the filter, then bias. */
static int64_t size_up(channels *d)
{
  d->places = d->conv.window.taps * (d->form == INPUTS ? qn_ceil_div(d->ins, d->lanes) : d->ins);
  return laid_floats(d) + d->conv.y_is.dim[1] + VECTORS * LANES_MAX;
}

/* Lines of pixels that are one item of work. */
static int64_t lines_each(const cpu_conv *c, int threads)
{
  const int64_t lines = c->y_is.dim[0] * c->window.axis[0].n * c->window.axis[1].n;
  return qn_max_i64(1, qn_min_i64(CHUNK / c->window.axis[2].n, lines / (4 * threads)));
}

static void run_phase(const channels *d, int threads, float *laid)
{
  const cpu_conv *conv = &d->conv;
  const cpu_window *w = &conv->window;
  const int64_t all = conv->y_is.dim[1], lines = conv->y_is.dim[0] * w->axis[0].n * w->axis[1].n;
  float *const bias = laid + laid_floats(d);
  memset(bias, 0, (size_t)(all + VECTORS * LANES_MAX) * sizeof *bias);
  if (conv->epilogue.bias.base) conv->gemm.isa->widen[conv->epilogue.bias.dtype](conv->epilogue.bias.base, conv->epilogue.bias.stride[1],
                                                                                 all, bias);
  const int64_t chunk = lines_each(conv, threads), chunks = qn_ceil_div(lines, chunk);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
#pragma omp for schedule(static)
    for (int64_t i = 0; i < d->blocks * w->taps; i++) lay_tap(d, i / w->taps, i % w->taps, laid);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < chunks * d->blocks; i++)
      block_of_lines(d, laid, bias, i % d->blocks, i / d->blocks * chunk, qn_min_i64(chunk, lines - i / d->blocks * chunk));
  }
}

/* ---- prepare -------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static bool rows_are_places(const channels *d)
{
  return d->conv.epilogue.y.stride[1] == 1 || d->conv.y_is.dim[1] == 1;
}

static double larger(double a, double b) { return a > b ? a : b; }
#define BLOCK_BYTES (1 << 18)             /* of filters that a second-level cache keeps */
#define RELOAD_NS 0.15                    /* a byte of them */

/* A step is a tap and an input (INPUTS: a vector of them): it loads a vector of filters and an element of each pixel for as many
 * products, which wait for their tile's last ones. Steps of a line's pixels, in products; OUTPUTS: by vectors as they are taken. */
static double line_products(const channels *d)
{
  const double pixels = (double)d->conv.window.axis[2].n;
  double all = 0;
  if (d->lanes == 16 || d->form != OUTPUTS) {
    const double tile = pixels < PIXELS ? pixels : PIXELS, sums = d->form == INPUTS ? (double)d->outs : (double)d->vectors;
    const double step = d->form == GROUPS ? 2 * tile + 1 : larger(tile * sums, tile + sums);
    return pixels / tile * larger(step, 4) * (d->lanes == 16 ? 1 : 1.2);
  }
  for (int64_t v = 0, sums; v < d->vectors; v += sums) {
    sums = step_of(d->vectors - v);
    const int64_t n = d->conv.window.axis[2].n, tiles = qn_ceil_div(n, most_pixels(d, (int)sums)), tile = qn_ceil_div(n, tiles);
    all += (double)tiles * larger((double)(tile * sums), larger((double)(tile + sums), 7));
  }
  return 0.93 * all;
}

/* An estimate for the current phase. */
static double phase_ns(const channels *d)
{
  const cpu_window *w = &d->conv.window;
  const double pixels = (double)d->conv.y_is.dim[0] * (double)w->pixels, width = (double)w->axis[2].n;
  const double sums = d->form == INPUTS ? (double)d->outs : (double)d->vectors;
  const double put = d->form == INPUTS ? 25 * sums : d->conv.epilogue.y.stride[1] == 1 ? 5 : 5 + 35 * sums;
  const double outside = w->axis[2].n <= 8 ? 1 + 2 / (double)d->ins : 1;
  /* filters of a block that its part of the second-level cache does not hold are loaded again for each item */
  const double block = (double)(d->places * qn_min_i64(d->vectors, VECTORS) * d->lanes) * sizeof(float);
  const double again = block > BLOCK_BYTES ? RELOAD_NS * (double)(d->places * d->vectors * d->lanes) * sizeof(float) : 0;
  return (double)d->blocks * pixels * (CPU_VECTOR_NS * (line_products(d) / width * (double)d->places * outside + put) +
                                       again / (double)lines_each(&d->conv, d->conv.threads) / width);
}

/* Reads the problem. Pixels are addressed by dim. */
static void ask(channels *d, const qn_request *request)
{
  cpu_conv_ask(&d->conv, request, cpu_gemm_isa_of(request->device));
  d->conv.flat = false;
  d->given = d->conv.source_is;
  d->copied = d->given.stride[1] != 1 && d->given.dim[1] != 1;
  d->copy_bytes = d->copied ? (uint64_t)qn_round_up(cpu_channels_last(&d->conv.source_is) * (int64_t)sizeof(float), 256) : 0;
  /* each phase would bring every line of y into the cache again */
  d->y_given = d->conv.y_is;
  d->y_copied = d->conv.phases > 1 && d->y_given.dtype == QN_F32 && d->y_given.stride[1] != 1 && d->y_given.dim[1] > 1 &&
                cpu_runs_along_pixels(&d->y_given);
  if (d->y_copied) {
    d->y_bytes = (uint64_t)qn_round_up(cpu_channels_last(&d->conv.y_is) * (int64_t)sizeof(float), 256);
    for (int i = 0; i < 2; i++) d->conv.epilogue.y.stride[i] = d->y_given.dim[i] == 1 ? 0 : d->conv.y_is.stride[i];
  }
}

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *node = &request->op[0];
  const qn_conv *attr = node->attr;
  const qn_value *source = &request->value[node->arg[0]], *filter = &request->value[node->arg[1]];
  const bool backward = node->op == QN_OP_CONV_BACKWARD_DATA;
  const char *const role = backward ? "dy" : "x";
  const qn_status status = cpu_isa_check(request, p);
  if (status) return status;
  if (source->dtype != QN_F32) return qn_refuse(p, "multiplies f32", role, "f32", "dtype %u", source->dtype);
  if (source->stride[1] != 1 && source->dim[1] != 1 && !cpu_runs_along_pixels(source))
    return qn_refuse(p, "reads runs of channels, or of pixels", role, "either 1 apart", "%lld apart", (long long)source->stride[1]);
  int64_t taps = 1;
  for (int32_t i = 2; i < filter->rank; i++) taps *= filter->dim[i];
  if (taps > TAPS_MAX) return qn_refuse(p, "keeps a window's offsets at hand", "w", "at most 256 taps", "%lld", (long long)taps);

  channels d = {0};
  qn_request counted;
  d.ins = source->dim[1] / attr->groups;
  d.outs = (backward ? filter->dim[1] : filter->dim[0] / attr->groups);
  if (d.ins > INS_MAX) return qn_refuse(p, "pixels outside read zeros", role, "at most 1024 channels a group", "%lld", (long long)d.ins);
  d.lanes = strstr(p->engine->name, "_avx512") ? 16 : strstr(p->engine->name, "_avx2") ? 8 : 4;
  d.form = d.outs <= VECTORS && d.ins >= d.lanes ? INPUTS
         : d.ins == d.outs && (d.ins == 2 || d.ins == 4 || d.ins == 8) && d.ins < d.lanes ? GROUPS : OUTPUTS;
  d.blocks = d.form == GROUPS ? qn_ceil_div(d.outs * attr->groups, d.lanes) : attr->groups;
  d.vectors = d.form == GROUPS ? 1 : qn_ceil_div(d.outs, d.lanes);
  if (!cpu_follow_read(&d.follow, request, node->arg[node->first[node->n_inputs]], &counted, p)) return QN_NO_MEMORY;
  ask(&d, &counted);
  cpu_host->free((void *)counted.value);
  if (d.follow.taken && (d.conv.phases > 1 || !rows_are_places(&d))) {
    d.follow.taken = 0;
    ask(&d, request);
  }
  if (d.conv.phases > CPU_CONV_PHASES)
    return qn_refuse(p, "each combination of stride's remainders is a pass of its own", "dx", "at most 64 of them",
                     "%lld", (long long)d.conv.phases);
  for (int64_t phase = 0; phase < d.conv.phases; phase++) {
    cpu_conv_phase(&d.conv, phase);
    const uint64_t bytes = (uint64_t)size_up(&d) * sizeof(float);
    if (bytes > p->workspace) p->workspace = bytes;
    if (d.conv.window.pixels) p->estimate += phase_ns(&d);
  }
  p->estimate += CPU_LAY_NS * (double)(d.copy_bytes + d.y_bytes) / sizeof(float);
  if (d.follow.taken) {                                    /* gemm_fused takes what follows, too: leave it that where it is faster */
    cpu_conv product = {0};
    cpu_conv_set(&product, request, cpu_gemm_isa_of(request->device));
    if (product.ns < p->estimate) d.follow.taken = 0;
    if (!d.follow.taken) ask(&d, request);
  }
  p->workspace += d.copy_bytes + d.y_bytes;
  p->n_ops = 1 + (uint32_t)d.follow.taken;
  return cpu_keep(p, &d, sizeof d);
}
#endif

/* ---- run --------------------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_conv_channels_run);
qn_status CPU_NAME(cpu_conv_channels_run)(const qn_prepared *p, const qn_launch *launch)
{
  channels d = *(const channels *)p->state;
  float *const y_copy = (float *)((char *)launch->workspace + d.copy_bytes), *const laid = y_copy + d.y_bytes / sizeof *laid;
  if (d.follow.taken) cpu_follow_bind(&d.follow, &d.conv.epilogue, launch->ptr);
  if (d.copied)
    cpu_lay_channels(&d.given, launch->ptr[d.conv.source_value], d.conv.gemm.isa, cpu_threads(launch, qn_elements(&d.given)),
                     launch->workspace, false);
  for (int64_t phase = 0; phase < d.conv.phases; phase++) {
    if (d.conv.phases > 1) {
      cpu_conv_phase(&d.conv, phase);
      size_up(&d);
    }
    if (d.conv.window.pixels == 0) continue;
    cpu_conv_bind(&d.conv, launch->ptr);
    if (d.copied) d.conv.source = launch->workspace;
    if (d.y_copied) d.conv.epilogue.y.base = (char *)(y_copy + d.conv.y_offset);
    const int64_t work = d.conv.y_is.dim[0] * d.conv.window.pixels * d.conv.y_is.dim[1] * (d.places + 1) / 4;
    run_phase(&d, cpu_threads(launch, work), laid);
  }
  if (d.y_copied)
    cpu_lay_channels(&d.y_given, launch->ptr[d.conv.epilogue.y.value], d.conv.gemm.isa, cpu_threads(launch, qn_elements(&d.y_given)),
                     y_copy, true);
  return QN_OK;
}

#ifdef CPU_BASELINE
#define ROWS(name_, run_)                                                                                              \
  {.name = name_, .op = QN_OP_CONV_FORWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,                  \
   .pattern = &cpu_program_pattern, .prepare = prepare, .run = run_, .release = cpu_release},                                     \
  {.name = name_, .op = QN_OP_CONV_BACKWARD_DATA, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,            \
   .pattern = &cpu_program_pattern, .prepare = prepare, .run = run_, .release = cpu_release},
static const qn_engine rows[] = {CPU_COPIES(ROWS, "channels", cpu_conv_channels_run)};
const qn_engine_list cpu_conv_channels = {rows, sizeof rows / sizeof *rows};
#endif
