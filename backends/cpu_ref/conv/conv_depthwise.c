/* conv_depthwise.c -- conv_forward and conv_backward_data of depthwise convolutions (one channel per group): direct loops.
 *
 *   y[n, c, p] = sum_r w[c, 0, r] x[n, c, p stride + r dilation - pad] + bias[c]
 *
 * There is no sum over channels, hence no matrix product; the loops run along contiguous elements. By planes (NCHW, any
 * strides, any float but f64): a strip of a plane is copied with its padding and, for stride s, its columns grouped by index mod
 * s; then every tap of every pixel is a shifted read of whole vectors, without edge cases. By channels (NHWC, f32): a
 * vector of channels for a few pixels at a time, read in place. Windows are those of conv_window.h, so the gradient by the data
 * is the same loops over the phases of its stride. With a single phase, following pointwise ops are fused (gemm_follow.h). */
#include "kit/simd.h"
#include "cpu_ref.h"
#include "conv_gemm.h"
#include "conv_strip.h"
#include "gemm/gemm_follow.h"
#ifdef _OPENMP
#include <omp.h>
#endif

#define APART_MAX (1 << 20)               /* floats between a window's first and last tap, unless the problem has as many */
#define TAPS_MAX 64                       /* limit on the taps of one plane of a window, and on its lines */
#define CHANNELS_MAX (CPU_ROW_MAX / 2)     /* at a time: a buffer of PIXELS times as many, and a program after it, share 48 KiB of stack */
#define STRIP_FLOATS 12288                /* of copied source: with its sums it fits a first- or second-level cache */
#define VECTORS 8                         /* accumulators in flight: two products a cycle wait four cycles for their sums */
#define PLANES_BYTES 131072               /* of dx, all of whose phases are computed while it is in a cache */
#define SLACK (4 * LANES_MAX)
#define LANES_MAX 16                      /* of any instruction set's copy: prepare is common to all */

typedef struct depthwise {
  cpu_conv conv;
  bool     by_channels;
  int64_t  shift[3];                      /* the least source position that a tap of the first pixel reads, on each axis */
  int64_t  lines, line;                   /* by planes: source lines of a strip; floats between lines of the same remainder */
  int64_t  rows;                          /* of a strip's output */
  int64_t  per_thread, most;              /* floats of workspace: of this phase, of any */
  cpu_follow follow;
} depthwise;

/* ---- by planes ---------------------------------------------------------------------------------- */

/* out[t] (+)= sum over the taps of w[tap] source[at[tap] + t], for `vectors` vectors of t */
CPU_INLINE void block_taps(const int vectors, const float *source, const int64_t *at, const float *w, int64_t taps, float *out, bool add)
{
  v_f32 sum[VECTORS];
#pragma GCC unroll 8
  for (int v = 0; v < vectors; v++) sum[v] = add ? v_load(out + v * CPU_LANES) : v_all(0);
  for (int64_t i = 0; i < taps; i++) {
    const float *const from = source + at[i];
    const v_f32 f = v_all(w[i]);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) sum[v] += f * v_load(from + v * CPU_LANES);
  }
#pragma GCC unroll 8
  for (int v = 0; v < vectors; v++) memcpy(out + v * CPU_LANES, &sum[v], sizeof sum[v]);
}

/* The same for t < n, rounded up to whole vectors. */
static void add_taps(const float *source, const int64_t *at, const float *w, int64_t taps, float *out, int64_t n, bool add)
{
  int64_t t = 0, left = qn_ceil_div(n, CPU_LANES);
  for (; left >= 8; left -= 8, t += 8 * CPU_LANES) block_taps(8, source + t, at, w, taps, out + t, add);
  if (left >= 4) {
    block_taps(4, source + t, at, w, taps, out + t, add);
    left -= 4;
    t += 4 * CPU_LANES;
  }
  if (left == 3) block_taps(3, source + t, at, w, taps, out + t, add);
  else if (left == 2) block_taps(2, source + t, at, w, taps, out + t, add);
  else if (left == 1) block_taps(1, source + t, at, w, taps, out + t, add);
}

static bool inside(const cpu_window_axis *axis, int64_t position)
{
  return position >= 0 && position < axis->extent;
}

/* Output rows [y0, y0 + rows) of a plane of image n, channel c, at depth z. */
static void strip(const depthwise *d, int64_t n, int64_t c, int64_t z, int64_t y0, int64_t rows, float *work)
{
  const cpu_conv *conv = &d->conv;
  const cpu_window *w = &conv->window;
  const cpu_window_axis *const za = &w->axis[0], *const ya = &w->axis[1], *const xa = &w->axis[2];
  const int64_t pitch = xa->step * d->line, bytes = qn_kit_bytes(w->dtype);
  const int64_t last = conv->epilogue.rank - 1, taps = ya->taps * xa->taps;
  /* joined: rows of sums are as far apart as the source lines, so one loop does them all; else at a distance in whole vectors */
  const bool joined = ya->step == 1 && xa->step == 1;
  const int64_t apart = joined ? pitch : qn_round_up(xa->n, LANES_MAX);
  float *const source = work, *const sums = work + d->lines * pitch + SLACK;
  int64_t at[TAPS_MAX];
  float filter[TAPS_MAX];
  bool any = false;
  for (int64_t i = 0, ry = 0; ry < ya->taps; ry++)         /* for each plane again: divisions only where the stride needs them */
    for (int64_t rx = 0; rx < xa->taps; rx++) {
      const int64_t across = rx * xa->tap_step + xa->start - d->shift[2], down = ry * ya->tap_step + ya->start - d->shift[1];
      at[i++] = down * pitch + (xa->step == 1 ? across : across % xa->step * d->line + across / xa->step);
    }
  for (int64_t tap = 0; tap < za->taps && taps > 0; tap++) {
    const int64_t depth = z * za->step + tap * za->tap_step + za->start;
    if (!inside(za, depth)) continue;
    const char *const plane = conv->source + (n * w->stride[0] + c * w->stride[1] + depth * w->stride[2]) * bytes;
    const int64_t top = y0 * ya->step + d->shift[1];
    for (int64_t l = 0; l < d->lines; l++)
      cpu_lay_line(w, conv->gemm.isa, d->shift[2], d->line, plane + (inside(ya, top + l) ? (top + l) * w->stride[3] * bytes : 0),
                   inside(ya, top + l), source + l * pitch);
    const char *const taps_of = conv->filter + (conv->filter_first + c * conv->filter_group + tap * conv->filter_tap[0])
                                               * qn_kit_bytes(conv->filter_dtype);
    for (int64_t ry = 0; ry < ya->taps; ry++)
      conv->gemm.isa->widen[conv->filter_dtype](taps_of + ry * conv->filter_tap[1] * qn_kit_bytes(conv->filter_dtype),
                                                conv->filter_tap[2], xa->taps, filter + ry * xa->taps);
    if (joined) add_taps(source, at, filter, taps, sums, (rows - 1) * pitch + xa->n, any);
    else
      for (int64_t r = 0; r < rows; r++)
        add_taps(source + r * ya->step * pitch, at, filter, taps, sums + r * apart, xa->n, any);
    any = true;
  }
  if (!any) memset(sums, 0, (size_t)(rows * apart) * sizeof *sums);
  int64_t index[QN_MAX_RANK] = {n, c};
  if (last >= 4) index[2] = z;
  if (conv->flat && last >= 3) {          /* close the gaps between rows */
    for (int64_t r = 1; r < rows; r++) memmove(sums + r * xa->n, sums + r * apart, (size_t)xa->n * sizeof *sums);
    index[last - 1] = y0;
    cpu_epilogue_row(&conv->epilogue, index, (int32_t)last, rows * xa->n, sums);
    return;
  }
  for (int64_t r = 0; r < rows; r++) {
    if (last >= 3) index[last - 1] = y0 + r;
    cpu_epilogue_row(&conv->epilogue, index, (int32_t)last, xa->n, sums + r * apart);
  }
}

/* ---- by channels ----------------------------------------------------------------------------------- */

#define PIXELS 4

/* pixel_taps for channels [c, c + vectors * CPU_LANES) */
CPU_INLINE void vectors_of_taps(const int pixels, const int vectors, const float *source, int64_t ahead, const int64_t *at,
                                const float *const *filter, int64_t taps, int64_t c, const float *bias, float *sums, int64_t apart)
{
  v_f32 sum[PIXELS][VECTORS];
#pragma GCC unroll 4
  for (int p = 0; p < pixels; p++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) sum[p][v] = v_load(bias + c + v * CPU_LANES);
  for (int64_t i = 0; i < taps; i++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) {
      const v_f32 f = v_load(filter[i] + c + v * CPU_LANES);
#pragma GCC unroll 4
      for (int p = 0; p < pixels; p++) sum[p][v] += f * v_load(source + p * ahead + at[i] + c + v * CPU_LANES);
    }
#pragma GCC unroll 4
  for (int p = 0; p < pixels; p++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) memcpy(sums + p * apart + c + v * CPU_LANES, &sum[p][v], sizeof sum[p][v]);
}

/* sums[pixel][c] = bias[c] + the sum over taps, for pixels all of whose taps are inside, `ahead` elements apart in the source
 * and `apart` in the sums. */
CPU_INLINE void pixel_taps(const int pixels, const float *source, int64_t ahead, const int64_t *at, const float *const *filter,
                           int64_t taps, int64_t channels, const float *bias, float *sums, int64_t apart)
{
  const int vectors = VECTORS / pixels;
  int64_t c = 0;
  for (; c + vectors * CPU_LANES <= channels; c += vectors * CPU_LANES)
    vectors_of_taps(pixels, vectors, source, ahead, at, filter, taps, c, bias, sums, apart);
  for (; c + CPU_LANES <= channels; c += CPU_LANES) vectors_of_taps(pixels, 1, source, ahead, at, filter, taps, c, bias, sums, apart);
  for (; c < channels; c++)
    for (int p = 0; p < pixels; p++) {
      float sum = bias[c];
      for (int64_t i = 0; i < taps; i++) sum += filter[i][c] * source[p * ahead + at[i] + c];
      sums[p * apart + c] = sum;
    }
}

/* One output row, channels [c0, c0 + channels). laid: [tap][channel] of all channels, then their bias. Sums go straight to y if it is
 * f32 and runs along channels; else through a buffer of a few pixels, which form one row if y has them side by side. */
static void row_of_pixels(const depthwise *d, const float *laid, int64_t n, int64_t z, int64_t y, int64_t c0, int64_t channels)
{
  const cpu_conv *conv = &d->conv;
  const cpu_window *w = &conv->window;
  const cpu_window_axis *const x = &w->axis[2];
  const int64_t all = conv->y_is.dim[1], last = conv->epilogue.rank - 1;
  const cpu_operand *const out = &conv->epilogue.y;
  const bool straight = out->dtype == QN_F32 && out->stride[1] == 1 && !conv->epilogue.follow;
  const bool joined = out->stride[1] == 1 && out->stride[last] == channels;
  const int64_t apart = straight ? out->stride[last] : joined ? channels : CHANNELS_MAX;     /* straight, one pixel a row: 0 */
  const int64_t room = straight ? 0 : PIXELS * CHANNELS_MAX / apart;
  const float *const bias = laid + w->taps * all + c0;
  float buffer[PIXELS * CHANNELS_MAX];
  int64_t at[TAPS_MAX], across[TAPS_MAX], lines = 0;       /* the taps whose line is inside, in order */
  const float *filter[TAPS_MAX];
  for (int64_t tap = 0; tap < w->taps; tap++) {
    int64_t i[3];
    cpu_window_tap(w, tap, i);
    const int64_t pz = z * w->axis[0].step + i[0] * w->axis[0].tap_step + w->axis[0].start;
    const int64_t py = y * w->axis[1].step + i[1] * w->axis[1].tap_step + w->axis[1].start;
    if (!inside(&w->axis[0], pz) || !inside(&w->axis[1], py)) continue;
    across[lines] = i[2] * x->tap_step + x->start;
    at[lines] = pz * w->stride[2] + py * w->stride[3] + across[lines] * w->stride[4];
    filter[lines++] = laid + tap * all + c0;
  }
  /* pixels all of whose taps are inside: low to high - 1 */
  int64_t least = 0, most = 0;
  for (int64_t i = 0; i < lines; i++) {
    if (i == 0 || across[i] < least) least = across[i];
    if (i == 0 || across[i] > most) most = across[i];
  }
  const int64_t low = qn_min_i64(x->n, qn_max_i64(0, qn_ceil_div(-least, x->step)));
  const int64_t high = qn_max_i64(low, qn_min_i64(x->n, qn_ceil_div(x->extent - most, x->step)));
  const float *const source = (const float *)conv->source + n * w->stride[0] + c0 * w->stride[1];
  int64_t index[QN_MAX_RANK] = {n, c0};
  cpu_epilogue unbiased = conv->epilogue;                  /* bias is already in the sums */
  unbiased.bias.base = NULL;
  if (last >= 4) index[2] = z;
  if (last >= 3) index[last - 1] = y;
  for (int64_t t = 0, pixels, held = 0; t < x->n; t += pixels) {
    const float *const here = source + t * x->step * w->stride[4];
    index[last] = t;
    float *const sums = straight ? (float *)cpu_operand_at(out, conv->epilogue.rank, index) : buffer + held * apart;
    pixels = 1;
    if (t >= low && t + PIXELS <= high) {
      pixels = PIXELS;
      pixel_taps(PIXELS, here, x->step * w->stride[4], at, filter, lines, channels, bias, sums, apart);
    } else if (t >= low && t < high) {
      pixel_taps(1, here, 0, at, filter, lines, channels, bias, sums, apart);
    } else {
      int64_t seen[TAPS_MAX], n_seen = 0;
      const float *weight[TAPS_MAX];
      for (int64_t i = 0; i < lines; i++) {
        if (!inside(x, t * x->step + across[i])) continue;
        seen[n_seen] = at[i];
        weight[n_seen++] = filter[i];
      }
      pixel_taps(1, here, 0, seen, weight, n_seen, channels, bias, sums, apart);
    }
    held += pixels;
    if (straight || (held + PIXELS <= room && t + pixels < x->n)) continue;
    const int64_t rows = joined ? 1 : held, n = joined ? held * channels : channels;
    for (int64_t p = 0; p < rows; p++) {
      index[last] = t + pixels - held + p;
      cpu_epilogue_row(&unbiased, index, 1, n, buffer + p * apart);
    }
    held = 0;
  }
}

/* ---- one phase ----------------------------------------------------------------------------------------- */

/* Sizes for the current phase; returns the workspace's floats. */
static int64_t size_up(depthwise *d)
{
  const cpu_window *w = &d->conv.window;
  const cpu_window_axis *x = &w->axis[2], *y = &w->axis[1];
  for (int i = 0; i < 3; i++) {
    const int64_t far = (w->axis[i].taps - 1) * w->axis[i].tap_step;
    d->shift[i] = w->axis[i].start + (w->axis[i].taps > 0 ? qn_min_i64(0, far) : 0);
  }
  if (d->by_channels) {
    d->per_thread = 0;
    return (w->taps + 1) * d->conv.y_is.dim[1];
  }
  const int64_t reach_x = x->taps > 0 ? (x->taps - 1) * (x->tap_step < 0 ? -x->tap_step : x->tap_step) : 0;
  const int64_t reach_y = y->taps > 0 ? (y->taps - 1) * (y->tap_step < 0 ? -y->tap_step : y->tap_step) : 0;
  d->line = x->n + reach_x / x->step + 1;
  const int64_t pitch = x->step * d->line;
  d->rows = qn_max_i64(1, qn_min_i64(y->n, (STRIP_FLOATS / pitch - reach_y) / y->step));
  d->lines = (d->rows - 1) * y->step + reach_y + 1;
  d->per_thread = qn_round_up(d->lines * pitch + d->rows * qn_max_i64(pitch, qn_round_up(x->n, LANES_MAX)) + 2 * SLACK, 64);
  return d->per_thread * d->conv.threads;
}

static void run_planes(const depthwise *d, int threads, float *workspace)
{
  const cpu_window *w = &d->conv.window;
  const int64_t channels = d->conv.y_is.dim[1], depths = w->axis[0].n, strips = qn_ceil_div(w->axis[1].n, d->rows);
  const int64_t items = d->conv.y_is.dim[0] * channels * depths * strips;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t item = 0; item < items; item++) {
#ifdef _OPENMP
    float *const work = workspace + omp_get_thread_num() * d->per_thread;
#else
    float *const work = workspace;
#endif
    const int64_t y0 = item % strips * d->rows, z = item / strips % depths, c = item / strips / depths % channels;
    strip(d, item / strips / depths / channels, c, z, y0, qn_min_i64(d->rows, w->axis[1].n - y0), work);
  }
}

/* All phases of some planes before the next planes: each phase writes a part of every line of dx. */
static void run_phases(const depthwise *problem, int threads, void *const *ptr, float *workspace)
{
  const qn_value *dx = &problem->conv.y_is;
  const int64_t channels = dx->dim[1], planes = dx->dim[0] * channels, bytes = qn_elements(dx) / planes * qn_kit_bytes(dx->dtype);
  const int64_t block = qn_max_i64(1, qn_min_i64(PLANES_BYTES / bytes, planes / threads));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t first = 0; first < planes; first += block) {
#ifdef _OPENMP
    float *const work = workspace + omp_get_thread_num() * problem->most;
#else
    float *const work = workspace;
#endif
    depthwise d = *problem;
    for (int64_t phase = 0; phase < d.conv.phases; phase++) {
      cpu_conv_phase(&d.conv, phase);
      const cpu_window *w = &d.conv.window;
      if (w->pixels == 0) continue;
      size_up(&d);
      cpu_conv_bind(&d.conv, ptr);
      for (int64_t plane = first; plane < qn_min_i64(planes, first + block); plane++)
        for (int64_t z = 0; z < w->axis[0].n; z++)
          for (int64_t y0 = 0; y0 < w->axis[1].n; y0 += d.rows)
            strip(&d, plane / channels, plane % channels, z, y0, qn_min_i64(d.rows, w->axis[1].n - y0), work);
    }
  }
}

static void run_channels(const depthwise *d, int threads, float *laid)
{
  const cpu_conv *conv = &d->conv;
  const cpu_window *w = &conv->window;
  const int64_t channels = conv->y_is.dim[1], rows = conv->y_is.dim[0] * w->axis[0].n * w->axis[1].n;
  const int64_t parts = qn_ceil_div(channels, CHANNELS_MAX), bytes = qn_kit_bytes(conv->filter_dtype);
  for (int64_t tap = 0; tap < w->taps; tap++) {
    int64_t i[3];
    cpu_window_tap(w, tap, i);
    const int64_t offset = conv->filter_first + i[0] * conv->filter_tap[0] + i[1] * conv->filter_tap[1] + i[2] * conv->filter_tap[2];
    conv->gemm.isa->widen[conv->filter_dtype](conv->filter + offset * bytes, conv->filter_group, channels, laid + tap * channels);
  }
  const cpu_operand *const bias = &conv->epilogue.bias;
  if (bias->base) conv->gemm.isa->widen[bias->dtype](bias->base, bias->stride[1], channels, laid + w->taps * channels);
  else memset(laid + w->taps * channels, 0, (size_t)channels * sizeof *laid);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t item = 0; item < rows * parts; item++) {
    const int64_t row = item / parts, c0 = item % parts * CHANNELS_MAX;
    row_of_pixels(d, laid, row / w->axis[1].n / w->axis[0].n, row / w->axis[1].n % w->axis[0].n, row % w->axis[1].n, c0,
                  qn_min_i64(CHANNELS_MAX, channels - c0));
  }
}

/* ---- prepare --------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
/* Whether rows of sums run along consecutive elements of y. */
static bool rows_are_places(const depthwise *d)
{
  const int32_t axis = d->by_channels ? 1 : d->conv.epilogue.rank - 1;
  return d->conv.epilogue.y.stride[axis] == 1 || d->conv.y_is.dim[axis] == 1;
}

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *node = &request->op[0];
  const qn_conv *attr = node->attr;
  const qn_value *source = &request->value[node->arg[0]], *filter = &request->value[node->arg[1]];
  const qn_status status = cpu_isa_check(request, p);
  if (status) return status;
  if (attr->groups != filter->dim[0] || filter->dim[1] != 1)
    return qn_refuse(p, "each channel must be a group of its own, with one filter", "w", "groups = K = C", "groups %lld",
                     (long long)attr->groups);
  if (cpu_gemm_type(source->dtype) != CPU_GEMM_F32)
    return qn_refuse(p, "sums in f32", node->op == QN_OP_CONV_FORWARD ? "x" : "dy", "a float of at most 32 bits", "dtype %u",
                     source->dtype);
  int64_t plane_taps = 1;
  for (int32_t d = 2; d < filter->rank; d++) plane_taps *= filter->dim[d];
  if (plane_taps > TAPS_MAX)
    return qn_refuse(p, "keeps a window's offsets at hand", "w", "at most 64 taps", "%lld", (long long)plane_taps);

  for (int32_t d = 0; d < filter->rank - 2; d++)
    if (attr->stride[d] > TAPS_MAX)
      return qn_refuse(p, "sorts a line by the stride's remainders", "y", "a stride of at most 64", "%lld", (long long)attr->stride[d]);

  depthwise d = {0};
  qn_request counted;
  d.by_channels = source->dtype == QN_F32 && source->stride[1] == 1 && source->dim[1] > 1;
  if (!cpu_follow_read(&d.follow, request, node->arg[node->first[node->n_inputs]], &counted, p)) return QN_NO_MEMORY;
  cpu_conv_ask(&d.conv, &counted, cpu_gemm_isa_of(request->device));
  cpu_host->free((void *)counted.value);
  if (d.follow.taken && (d.conv.phases > 1 || !rows_are_places(&d))) {
    d.follow.taken = 0;
    cpu_conv_ask(&d.conv, request, cpu_gemm_isa_of(request->device));
  }
  if (d.conv.phases > CPU_CONV_PHASES)
    return qn_refuse(p, "each combination of stride's remainders is a pass of its own", "dx", "at most 64 of them",
                     "%lld", (long long)d.conv.phases);
  const bool flat = d.conv.flat && d.conv.axis == d.conv.epilogue.rank - 1;
  d.conv.flat = false;                                     /* here pixels are addressed by dim */
  for (int64_t phase = 0; phase < d.conv.phases; phase++) {
    cpu_conv_phase(&d.conv, phase);
    const uint64_t bytes = (uint64_t)size_up(&d) * sizeof(float);
    if (bytes > p->workspace) p->workspace = bytes;
    if (d.per_thread > d.most) d.most = d.per_thread;
  }
  const int64_t floats = qn_elements(source) + qn_elements(&d.conv.y_is);
  if (d.most > qn_max_i64(APART_MAX, floats))
    return qn_refuse(p, "lays out the lines that a window reaches, zeros between them too", "w",
                     "lines of at most a million elements, or of x and y together", "%lld", (long long)d.most);
  d.conv.flat = flat;
  p->n_ops = 1 + (uint32_t)d.follow.taken;
  p->estimate = (double)d.conv.y_is.dim[0] * (double)(d.conv.y_is.dim[1] * d.conv.window.pixels) * (double)(plane_taps + 8) *
                CPU_VECTOR_NS / 8;
  return cpu_keep(p, &d, sizeof d);
}
#endif

/* ---- run ------------------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_conv_depthwise_run);
qn_status CPU_NAME(cpu_conv_depthwise_run)(const qn_prepared *p, const qn_launch *launch)
{
  depthwise d = *(const depthwise *)p->state;
  if (d.follow.taken) cpu_follow_bind(&d.follow, &d.conv.epilogue, launch->ptr);
  const int64_t planes = d.conv.y_is.dim[0] * d.conv.y_is.dim[1];
  if (d.conv.phases > 1 && !d.by_channels) {
    const int64_t work = qn_elements(&d.conv.y_is) + d.conv.window.taps * qn_elements(&d.conv.source_is);
    if (work) run_phases(&d, (int)qn_min_i64(cpu_threads(launch, work), d.conv.threads), launch->ptr, launch->workspace);
    return QN_OK;
  }
  for (int64_t phase = 0; phase < d.conv.phases; phase++) {
    if (d.conv.phases > 1) {
      cpu_conv_phase(&d.conv, phase);
      size_up(&d);
    }
    if (d.conv.window.pixels == 0) continue;
    cpu_conv_bind(&d.conv, launch->ptr);
    const int64_t work = planes * d.conv.window.pixels * (d.conv.window.taps + 1);
    const int threads = (int)qn_min_i64(cpu_threads(launch, work), d.conv.threads);
    if (d.by_channels) run_channels(&d, threads, launch->workspace);
    else run_planes(&d, threads, launch->workspace);
  }
  return QN_OK;
}

#ifdef CPU_BASELINE
#define ROWS(name_, run_)                                                                                              \
  {.name = name_, .op = QN_OP_CONV_FORWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,                  \
   .pattern = &cpu_program_pattern, .prepare = prepare, .run = run_, .release = cpu_release},                    \
  {.name = name_, .op = QN_OP_CONV_BACKWARD_DATA, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,            \
   .pattern = &cpu_program_pattern, .prepare = prepare, .run = run_, .release = cpu_release},
static const qn_engine rows[] = {CPU_COPIES(ROWS, "depthwise", cpu_conv_depthwise_run)};
const qn_engine_list cpu_conv_depthwise = {rows, sizeof rows / sizeof *rows};
#endif
