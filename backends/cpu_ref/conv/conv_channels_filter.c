/* conv_channels_filter.c -- conv_backward_filter of f32 images with channels last, read in place: depthwise, groups, few channels.
 * Images whose rows run along pixels (NCHW) are laid out so first.
 *
 *   dw[out, in, tap] = sum over pixels of dy[pixel, out] x[at that tap of the pixel's window, in]
 *
 * A few places (tap, in) of a few vectors of outputs stay in registers while the pixels of a strip of lines pass. The lanes of a vector are
 *   outputs    of one group: each element of x is multiplied by vectors of dy
 *   groups     several groups of as few outputs as inputs (one: depthwise): lane by lane its group's input, by one permutation of x
 * A pixel whose tap is beyond the image is left out: of a chunk of several taps the pixels inside for all of them are one loop, and the
 * edges are loops of one tap. The pixels are summed in parts, whose number depends on the problem only, and the parts in order. */
#include "kit/simd.h"
#include "cpu_ref.h"
#include "conv_lanes.h"
#include "conv_window.h"

#define PLACES 12                         /* of a chunk, at most */
#define VECTORS 2                         /* of outputs, at most */
#define LANES_MAX 16                      /* of any instruction set's copy */
#define STRIP 128                         /* pixels of a strip: its x and dy stay in cache while the chunks pass */
#define PART 256                          /* pixels that justify a part of its own */
#define ITEMS 16                          /* of work, if there are as many */
#define PIECE 128                         /* places written at a time */
#define LINE_BYTES (1 << 18)              /* of x and dy, that a second-level cache keeps */

typedef struct gradient {
  cpu_window x;
  int64_t dy_stride[5];                   /* N, C, spatial */
  bool    groups;                         /* what the lanes are */
  int64_t lanes, ins, outs;               /* ins, outs: of a group */
  int64_t blocks, vectors;                /* blocks of outputs: groups, or vectors of several; vectors of each */
  int64_t places, all;                    /* places of a block; outputs of all blocks */
  int64_t images, rows, strips;           /* rows: of a strip; strips: of all images */
  int64_t parts, block_parts;
  int64_t part_floats;
  int32_t x_value, dy_value, dw_value, rank;
  uint32_t dw_dtype;
  int64_t dw_stride[QN_MAX_RANK];
  const cpu_gemm_isa *isa;
  bool    x_copied, dy_copied;            /* laid out channels last in the workspace; then, as given: */
  qn_value x_given, dy_given;
  int64_t x_floats, dy_floats;            /* of those copies */
  const float *x_data, *dy_data;          /* of the current launch */
  char   *dw_data;
} gradient;

/* ---- chunks --------------------------------------------------------------------------------------- */

/* The pixels of a rectangle, and what a chunk reads of the first one. */
typedef struct area {
  const float *x, *dy;
  int64_t rows, pixels;                   /* of a row */
  int64_t x_row, dy_row, x_ahead, dy_ahead;
  int64_t lanes;                          /* of dy's vectors together that are inside */
  int64_t apart;                          /* groups: taps in x */
} area;

/* sums[place][lane] += dy[lane] x[place], places 1 apart in x */
CPU_INLINE void by_outputs(const int places, const int vectors, const area *a, float *sums)
{
  v_f32 sum[PLACES][VECTORS];
#pragma GCC unroll 12
  for (int i = 0; i < places; i++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) sum[i][v] = v_load(sums + (i * vectors + v) * CPU_LANES);
  for (int64_t r = 0; r < a->rows; r++) {
    const float *x = a->x + r * a->x_row, *dy = a->dy + r * a->dy_row;
    for (int64_t t = 0; t < a->pixels; t++, x += a->x_ahead, dy += a->dy_ahead) {
      v_f32 d[VECTORS];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; v++) d[v] = load_some(dy + v * CPU_LANES, a->lanes - v * CPU_LANES);
#pragma GCC unroll 12
      for (int i = 0; i < places; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) sum[i][v] += x[i] * d[v];
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < places; i++)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; v++) memcpy(sums + (i * vectors + v) * CPU_LANES, &sum[i][v], sizeof sum[i][v]);
}

/* The same for a vector of groups of `ins` inputs and outputs, and several taps: lane l takes input l / ins * ins + c. */
CPU_INLINE void by_groups(const int taps, const int ins, const area *a, float *sums)
{
  v_f32 sum[PLACES];
  v_i32 first;
  for (int l = 0; l < CPU_LANES; l++) first[l] = l / ins * ins;
#pragma GCC unroll 12
  for (int i = 0; i < taps * ins; i++) sum[i] = v_load(sums + i * CPU_LANES);
  for (int64_t r = 0; r < a->rows; r++) {
    const float *x = a->x + r * a->x_row, *dy = a->dy + r * a->dy_row;
    for (int64_t t = 0; t < a->pixels; t++, x += a->x_ahead, dy += a->dy_ahead) {
      const v_f32 d = load_some(dy, a->lanes);
#pragma GCC unroll 8
      for (int i = 0; i < taps; i++) {
        const v_f32 from = load_some(x + i * a->apart, a->lanes);
        if (ins == 1) sum[i] += d * from;
        else
#pragma GCC unroll 8
          for (int c = 0; c < ins; c++) sum[i * ins + c] += d * __builtin_shuffle(from, first + c);
      }
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < taps * ins; i++) memcpy(sums + i * CPU_LANES, &sum[i], sizeof sum[i]);
}

/* n: places, or taps; each a constant of its copy. */
CPU_INLINE void outputs_of(const int vectors, int n, const area *a, float *sums)
{
  switch (n) {
  case 12: by_outputs(12, vectors, a, sums); return;
  case 11: by_outputs(11, vectors, a, sums); return;
  case 10: by_outputs(10, vectors, a, sums); return;
  case 9: by_outputs(9, vectors, a, sums); return;
  case 8: by_outputs(8, vectors, a, sums); return;
  case 7: by_outputs(7, vectors, a, sums); return;
  case 6: by_outputs(6, vectors, a, sums); return;
  case 5: by_outputs(5, vectors, a, sums); return;
  case 4: by_outputs(4, vectors, a, sums); return;
  case 3: by_outputs(3, vectors, a, sums); return;
  case 2: by_outputs(2, vectors, a, sums); return;
  default: by_outputs(1, vectors, a, sums); return;
  }
}

CPU_INLINE void taps_of(const int ins, int n, const area *a, float *sums)
{
  const int most = ins == 8 ? 1 : ins == 4 ? 3 : ins == 2 ? 4 : 8;
  switch (n) {
  case 8: by_groups(most < 8 ? most : 8, ins, a, sums); return;
  case 7: by_groups(most < 7 ? most : 7, ins, a, sums); return;
  case 6: by_groups(most < 6 ? most : 6, ins, a, sums); return;
  case 5: by_groups(most < 5 ? most : 5, ins, a, sums); return;
  case 4: by_groups(most < 4 ? most : 4, ins, a, sums); return;
  case 3: by_groups(most < 3 ? most : 3, ins, a, sums); return;
  case 2: by_groups(most < 2 ? most : 2, ins, a, sums); return;
  default: by_groups(1, ins, a, sums); return;
  }
}

/* n places (groups: taps) of `step` vectors. */
static __attribute__((noinline)) void chunk(const gradient *p, int step, int n, const area *a, float *sums)
{
  if (!p->groups && step == 2) outputs_of(2, n, a, sums);
  else if (!p->groups) outputs_of(1, n, a, sums);
  else if (p->ins == 8) taps_of(8, n, a, sums);
  else if (p->ins == 4) taps_of(4, n, a, sums);
  else if (p->ins == 2) taps_of(2, n, a, sums);
  else taps_of(1, n, a, sums);
}

/* ---- strips ----------------------------------------------------------------------------------------- */

/* Positions t in [from, to) whose t step + at is inside. */
static void clip(const cpu_window_axis *x, int64_t at, int64_t *from, int64_t *to)
{
  *from = qn_max_i64(*from, qn_ceil_div(-at, x->step));
  *to = qn_max_i64(*from, qn_min_i64(*to, qn_ceil_div(x->extent - at, x->step)));
}

/* One rectangle: places [first, first + n) of a line of taps. at: of the line's first tap and pixel, in x. */
static void rectangle(const gradient *p, int step, area *a, const float *x, const float *dy, int64_t first, int n, int64_t from, int64_t to,
                      float *sums)
{
  const cpu_window_axis *const ax = &p->x.axis[2];
  const int64_t unit = p->groups ? 1 : p->ins, tap = first / unit, in = first % unit;
  if (from >= to) return;
  a->pixels = to - from;
  a->x = x + (from * ax->step + tap * ax->tap_step) * p->x.stride[4] + in;
  a->dy = dy + from * p->dy_stride[4];
  chunk(p, step, n, a, sums + first * (p->groups ? p->ins : step) * p->lanes);
}

/* A line of taps over rows of a strip; `sums` are the line's. */
static void line_of_taps(const gradient *p, int step, area *a, const float *x, const float *dy, float *sums)
{
  const cpu_window_axis *const ax = &p->x.axis[2];
  const int64_t unit = p->groups ? 1 : p->ins;             /* a tap's places; a chunk of several taps must be contiguous in x */
  const bool joined = p->groups || ax->tap_step * p->x.stride[4] == p->ins;
  const int64_t most = p->groups ? (p->ins == 8 ? 1 : p->ins == 4 ? 3 : p->ins == 2 ? 4 : 8) : p->lanes == 16 ? PLACES : PLACES / 2;
  const int64_t whole = joined ? ax->taps * unit : unit, n_whole = joined ? 1 : ax->taps;
  const int64_t each = qn_ceil_div(whole, qn_ceil_div(whole, most));
  for (int64_t w = 0; w < n_whole; w++)
    for (int64_t at = 0; at < whole; at += each) {
      const int64_t first = w * whole + at, n = qn_min_i64(each, whole - at);
      const int64_t tap0 = first / unit, tap1 = (first + n - 1) / unit;
      int64_t from = 0, to = ax->n;
      for (int64_t tap = tap0; tap <= tap1; tap++) clip(ax, tap * ax->tap_step + ax->start, &from, &to);
      rectangle(p, step, a, x, dy, first, (int)n, from, to, sums);
      for (int64_t tap = tap0; tap <= tap1 && tap0 < tap1; tap++) {
        const int64_t begin = qn_max_i64(first, tap * unit), count = qn_min_i64(first + n, (tap + 1) * unit) - begin;
        int64_t low = 0, high = ax->n;
        clip(ax, tap * ax->tap_step + ax->start, &low, &high);
        rectangle(p, step, a, x, dy, begin, (int)count, low, from < to ? qn_min_i64(from, high) : high, sums);
        if (from < to) rectangle(p, step, a, x, dy, begin, (int)count, qn_max_i64(to, low), high, sums);
      }
    }
}

/* Outputs of `step` vectors: every line of taps over the strip. source, first: channels of x and of dy. */
static void vectors_of_strip(const gradient *p, int64_t strip, int step, int64_t source, int64_t first, int64_t lanes, float *sums)
{
  const cpu_window *w = &p->x;
  const cpu_window_axis *const az = &w->axis[0], *const ay = &w->axis[1], *const ax = &w->axis[2];
  const int64_t across = qn_ceil_div(ay->n, p->rows), y0 = strip % across * p->rows, z = strip / across % az->n;
  const int64_t image = strip / across / az->n, line = ax->taps * p->ins * step * p->lanes;
  area a = {.x_row = ay->step * w->stride[3], .dy_row = p->dy_stride[3], .x_ahead = ax->step * w->stride[4], .dy_ahead = p->dy_stride[4],
            .lanes = lanes, .apart = ax->tap_step * w->stride[4]};
  for (int64_t rz = 0; rz < az->taps; rz++) {
    const int64_t pz = z * az->step + rz * az->tap_step + az->start;
    if (pz < 0 || pz >= az->extent) continue;
    for (int64_t ry = 0; ry < ay->taps; ry++) {
      const int64_t at = ry * ay->tap_step + ay->start;
      int64_t from = y0, to = qn_min_i64(y0 + p->rows, ay->n);
      clip(ay, at, &from, &to);
      if (from >= to) continue;
      a.rows = to - from;
      line_of_taps(p, step, &a, p->x_data + image * w->stride[0] + source + pz * w->stride[2] + (from * ay->step + at) * w->stride[3] +
                   ax->start * w->stride[4],
                   p->dy_data + image * p->dy_stride[0] + first + z * p->dy_stride[2] + from * p->dy_stride[3],
                   sums + (rz * ay->taps + ry) * line);
    }
  }
}

/* Strips [s0, s1) for blocks [b0, b1). sums: of the part. */
static void sum_part(const gradient *p, int64_t s0, int64_t s1, int64_t b0, int64_t b1, float *sums)
{
  const int64_t width = p->vectors * p->lanes;
  memset(sums + b0 * p->places * width, 0, (size_t)((b1 - b0) * p->places * width) * sizeof *sums);
  for (int64_t s = s0; s < s1; s++)
    for (int64_t b = b0; b < b1; b++) {
      float *const block = sums + b * p->places * width;
      if (p->groups) {
        vectors_of_strip(p, s, 1, b * p->lanes, b * p->lanes, qn_min_i64(p->lanes, p->all - b * p->lanes), block);
        continue;
      }
      for (int64_t v = 0, step; v < p->vectors; v += step) {
        step = qn_min_i64(VECTORS, p->vectors - v);
        vectors_of_strip(p, s, (int)step, b * p->ins, b * p->outs + v * p->lanes, p->outs - v * p->lanes,
                         block + v * p->lanes * p->places);
      }
    }
}

/* ---- dw ------------------------------------------------------------------------------------------------ */

/* Sums the parts of a block's vectors v to v + step - 1, into the first one's, and writes them. */
static void write_vectors(const gradient *p, int64_t block, int64_t v, int64_t step, float *sums)
{
  const int64_t n = step * p->lanes, at = (block * p->vectors + v) * p->lanes * p->places;
  const int64_t first = p->groups ? block * p->lanes : block * p->outs + v * p->lanes;
  const int64_t outs = qn_min_i64(n, p->groups ? p->all - first : p->outs - v * p->lanes);
  float *const own = sums + at, turned[VECTORS * LANES_MAX * PIECE];
  for (int64_t part = 1; part < p->parts; part++) {
    const float *const other = sums + part * p->part_floats + at;
    for (int64_t i = 0; i < n * p->places; i++) own[i] += other[i];
  }
  for (int64_t from = 0; from < p->places; from += PIECE) {
    const int64_t places = qn_min_i64(PIECE, p->places - from);
    cpu_gemm_lay(p->isa, QN_F32, own + from * n, 1, n, outs, places, turned, PIECE);
    for (int64_t i = 0, run; i < places; i += run) {
      const int64_t tap = (from + i) / p->ins, in = (from + i) % p->ins;
      int64_t r[3], offset = in * p->dw_stride[1];
      run = qn_min_i64(p->ins - in, places - i);
      cpu_window_tap(&p->x, tap, r);
      for (int32_t d = 2; d < p->rank; d++) offset += r[d + 3 - p->rank] * p->dw_stride[d];
      for (int64_t o = 0; o < outs; o++)
        p->isa->narrow[p->dw_dtype](turned + o * PIECE + i, run,
                                    p->dw_data + (offset + (first + o) * p->dw_stride[0]) * qn_kit_bytes(p->dw_dtype), p->dw_stride[1]);
    }
  }
}

/* ---- run ------------------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_conv_channels_filter_run);
qn_status CPU_NAME(cpu_conv_channels_filter_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  gradient g = *(const gradient *)prepared->state, *const p = &g;
  float *const x_copy = launch->workspace, *const dy_copy = x_copy + p->x_floats, *const sums = dy_copy + p->dy_floats;
  const int64_t steps = qn_ceil_div(p->vectors, VECTORS), items = p->parts * p->block_parts;
  const int threads = cpu_threads(launch, p->images * p->x.pixels * p->all * p->places / 4);
  p->x_data = launch->ptr[p->x_value];
  p->dy_data = launch->ptr[p->dy_value];
  p->dw_data = launch->ptr[p->dw_value];
  if (p->x_copied) {
    cpu_lay_channels(&p->x_given, launch->ptr[p->x_value], p->isa, threads, x_copy, false);
    p->x_data = x_copy;
  }
  if (p->dy_copied) {
    cpu_lay_channels(&p->dy_given, launch->ptr[p->dy_value], p->isa, threads, dy_copy, false);
    p->dy_data = dy_copy;
  }
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < items; i++) {
      const int64_t part = i / p->block_parts, b = i % p->block_parts;
      sum_part(p, part * p->strips / p->parts, (part + 1) * p->strips / p->parts, b * p->blocks / p->block_parts,
               (b + 1) * p->blocks / p->block_parts, sums + part * p->part_floats);
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < p->blocks * steps; i++)
      write_vectors(p, i / steps, i % steps * VECTORS, qn_min_i64(VECTORS, p->vectors - i % steps * VECTORS), sums);
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
  gradient p = {.x_value = qn_role(node, QN_ROLE_CONV_BACKWARD_FILTER_X), .dy_value = qn_role(node, QN_ROLE_CONV_BACKWARD_FILTER_DY),
                .dw_value = qn_role(node, QN_ROLE_CONV_BACKWARD_FILTER_DW), .isa = cpu_gemm_isa_of(request->device)};
  const qn_value *x = &request->value[p.x_value], *dy = &request->value[p.dy_value], *dw = &request->value[p.dw_value];
  if (x->dtype != QN_F32) return qn_refuse(out, "multiplies f32", "x", "f32", "dtype %u", x->dtype);
  p.x_copied = x->stride[1] != 1 && x->dim[1] != 1;
  p.dy_copied = dy->stride[1] != 1 && dy->dim[1] != 1;
  if (p.x_copied && !cpu_runs_along_pixels(x))
    return qn_refuse(out, "reads runs of channels, or of pixels", "x", "either 1 apart", "%lld apart", (long long)x->stride[1]);
  if (p.dy_copied && !cpu_runs_along_pixels(dy))
    return qn_refuse(out, "reads runs of channels, or of pixels", "dy", "either 1 apart", "%lld apart", (long long)dy->stride[1]);
  p.x_given = *x;
  p.dy_given = *dy;
  qn_value x_last = *x, dy_last = *dy;                     /* as read */
  if (p.x_copied) p.x_floats = qn_round_up(cpu_channels_last(&x_last), 64);
  if (p.dy_copied) p.dy_floats = qn_round_up(cpu_channels_last(&dy_last), 64);
  x = &x_last;
  dy = &dy_last;
  p.rank = dw->rank;
  p.dw_dtype = dw->dtype;
  memcpy(p.dw_stride, dw->stride, sizeof p.dw_stride);
  cpu_window_forward(&p.x, x, dy, dw, conv, false);
  p.dy_stride[0] = dy->stride[0];
  p.dy_stride[1] = dy->stride[1];
  for (int d = 0; d < 3; d++) p.dy_stride[2 + d] = d < 5 - dy->rank ? 0 : dy->stride[d + dy->rank - 3];
  p.lanes = strstr(out->engine->name, "_avx512") ? 16 : strstr(out->engine->name, "_avx2") ? 8 : 4;
  p.ins = p.x.channels;
  p.all = dy->dim[1];
  p.outs = p.all / conv->groups;
  p.groups = p.ins == p.outs && conv->groups > 1 && (p.ins == 1 || p.ins == 2 || p.ins == 4 || p.ins == 8) && p.ins < p.lanes;
  p.blocks = p.groups ? qn_ceil_div(p.all, p.lanes) : conv->groups;
  p.vectors = p.groups ? 1 : qn_ceil_div(p.outs, p.lanes);
  p.places = p.x.taps * p.ins;
  p.images = x->dim[0];
  p.rows = qn_max_i64(1, qn_min_i64(p.x.axis[1].n, STRIP / p.x.axis[2].n));
  p.strips = p.images * p.x.axis[0].n * qn_ceil_div(p.x.axis[1].n, p.rows);
  const int64_t pixels = p.images * p.x.pixels;
  p.parts = qn_max_i64(1, qn_min_i64(qn_min_i64(ITEMS, p.strips), pixels / PART));
  p.block_parts = qn_min_i64(p.blocks, qn_ceil_div(ITEMS, p.parts));
  p.part_floats = p.blocks * p.vectors * p.lanes * p.places;
  out->workspace = (uint64_t)(p.x_floats + p.dy_floats + p.parts * p.part_floats) * sizeof(float);
  /* a line is summed whole for each chunk of places: a long one leaves the cache meanwhile */
  const double line = (double)p.x.axis[2].n * (double)(p.ins * p.x.axis[2].step + p.outs) * sizeof(float);
  const double tile = (p.groups ? (p.ins == 1 ? 1.5 : 2.2) : p.vectors == 1 ? 1.3 : 1) * (p.lanes == 16 ? 1 : p.groups ? 1.15 : 0.9) *
                      (line > LINE_BYTES ? 3 : 1);
  out->estimate = CPU_VECTOR_NS * tile * (double)(p.blocks * p.vectors) * (double)p.places * (double)(pixels + 16 * p.parts) +
                  CPU_LAY_NS * (double)(p.x_floats + p.dy_floats);
  return cpu_keep(out, &p, sizeof p);
}

#define ROWS(name_, run_)                                                                                              \
  {.name = name_, .op = QN_OP_CONV_BACKWARD_FILTER, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,          \
   .prepare = prepare, .run = run_, .release = cpu_release},
static const qn_engine rows[] = {CPU_COPIES(ROWS, "channels", cpu_conv_channels_filter_run)};
const qn_engine_list cpu_conv_channels_filter = {rows, sizeof rows / sizeof *rows};
#endif
