/* conv_window.c -- im2col: rows of what a convolution's windows read. */
#include "cpu_ref.h"
#include "conv_window.h"

/* ---- geometry ------------------------------------------------------------------------------ */

/* The spatial dim, of `spatial`, that is axis d of three; -1: none, an extent of 1. */
static int32_t spatial_dim(int32_t rank, int d)
{
  const int32_t i = d - (5 - rank);
  return i < 0 ? -1 : i + 2;
}

static int64_t dim_of(const qn_value *v, int d)
{
  const int32_t i = spatial_dim(v->rank, d);
  return i < 0 ? 1 : v->dim[i];
}

/* One tap and no padding: each pixel's window is that pixel, and all spatial dims are merged into one. */
static void collapse(cpu_window *w)
{
  for (int d = 0; d < 3; d++) {
    const cpu_window_axis *x = &w->axis[d];
    if (x->taps != 1 || x->start != 0 || x->step != 1 || x->n != x->extent) return;
    if (d < 2 && w->stride[2 + d] != w->axis[d + 1].extent * w->stride[3 + d] && w->axis[d].n != 1) return;
  }
  w->axis[2].n = w->axis[2].extent = w->pixels;
  w->axis[0].n = w->axis[0].extent = w->axis[1].n = w->axis[1].extent = 1;
}

static void set_source(cpu_window *w, const qn_value *source)
{
  w->dtype = source->dtype;
  w->stride[0] = source->stride[0];
  w->stride[1] = source->stride[1];
  w->pixels = w->taps = 1;
  for (int d = 0; d < 3; d++) {
    const int32_t i = spatial_dim(source->rank, d);
    w->stride[2 + d] = i < 0 ? 0 : source->stride[i];
    w->pixels *= w->axis[d].n;
    w->taps *= w->axis[d].taps;
  }
}

void cpu_window_forward(cpu_window *w, const qn_value *x, const qn_value *y, const qn_value *filter, const qn_conv *conv,
                        bool flat)
{
  for (int d = 0; d < 3; d++) {
    const int32_t i = spatial_dim(x->rank, d) - 2;
    w->axis[d] = (cpu_window_axis){1, 1, 1, 1, 0, 1};
    if (i >= 0) w->axis[d] = (cpu_window_axis){dim_of(y, d), dim_of(filter, d), conv->stride[i], conv->dilation[i],
                                               -conv->pad_before[i], dim_of(x, d)};
  }
  w->channels = filter->dim[1];
  set_source(w, x);
  if (flat) collapse(w);
}

void cpu_window_phase(cpu_window *w, const qn_value *dx, const qn_value *dy, const qn_value *filter, const qn_conv *conv,
                      bool flat, const int64_t phase[3], int64_t first[3], int64_t every[3])
{
  for (int d = 0; d < 3; d++) {
    const int32_t i = spatial_dim(dx->rank, d) - 2;
    w->axis[d] = (cpu_window_axis){1, 1, 1, 1, 0, 1};
    first[d] = 0;
    every[d] = 1;
    if (i < 0) continue;
    /* tap r reaches this phase if stride divides phase + pad - r dilation */
    const int64_t stride = conv->stride[i], dilation = conv->dilation[i], at = phase[d] + conv->pad_before[i];
    const int64_t taps = dim_of(filter, d);
    while (first[d] < taps && (at - first[d] * dilation) % stride != 0) first[d]++;
    while (every[d] * dilation % stride != 0) every[d]++;
    w->axis[d].n = dim_of(dx, d) <= phase[d] ? 0 : qn_ceil_div(dim_of(dx, d) - phase[d], stride);
    w->axis[d].taps = first[d] < taps ? qn_ceil_div(taps - first[d], every[d]) : 0;
    w->axis[d].tap_step = -(every[d] * dilation / stride);
    w->axis[d].start = (at - first[d] * dilation) / stride;
    w->axis[d].extent = dim_of(dy, d);
  }
  w->channels = dy->dim[1] / conv->groups;
  set_source(w, dy);
  if (flat) collapse(w);
}

void cpu_window_pixel(const cpu_window *w, int64_t index, int64_t at[4])
{
  for (int d = 2; d >= 0; d--) {
    at[1 + d] = index % w->axis[d].n;
    index /= w->axis[d].n;
  }
  at[0] = index;
}

void cpu_window_tap(const cpu_window *w, int64_t tap, int64_t at[3])
{
  for (int d = 2; d >= 0; d--) {
    at[d] = tap % w->axis[d].taps;
    tap /= w->axis[d].taps;
  }
}

/* ---- short rows -------------------------------------------------------------------------------- */

/* Rows here are often only a few elements, so for f32 a memcpy call is avoided: four at a time, the rest one by one. */
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

static inline void zero(char *dst, int64_t n, int64_t element)
{
  if (n <= 0) return;
  if (element == 4 && n < 16) for (int64_t i = 0; i < n; i++) ((volatile float *)dst)[i] = 0;
  else memset(dst, 0, (size_t)(n * element));
}

static inline void see(const cpu_gemm_isa *isa, uint32_t dtype, const char *src, int64_t stride, int64_t n, char *dst)
{
  if (n <= 0) return;
  if (dtype != QN_F32 || stride != 1 || n >= 64) {
    isa->widen[dtype](src, stride, n, dst);
    return;
  }
  const float *from = (const float *)src;
  float *to = (float *)dst;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) *(four *)(to + i) = *(const four *)(from + i);
  for (; i < n; i++) to[i] = from[i];
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool inside(const cpu_window_axis *axis, int64_t position)
{
  return position >= 0 && position < axis->extent;
}

void cpu_window_next_line(const cpu_window *w, int64_t at[4])
{
  at[3] = 0;
  if (++at[2] < w->axis[1].n) return;
  at[2] = 0;
  if (++at[1] < w->axis[0].n) return;
  at[1] = 0;
  at[0]++;
}

/* What a tap reads of a channel, for the pixels from `at` on. */
static void lines_of_pixels(const cpu_gemm_isa *isa, const cpu_window *w, const char *source, const int64_t r[3], const int64_t from_at[4],
                            int64_t n, char *dst)
{
  const cpu_window_axis *const x = &w->axis[2];
  const int64_t from = qn_kit_bytes(w->dtype), to = (int64_t)cpu_gemm_row_bytes(cpu_gemm_type(w->dtype));
  int64_t at[4] = {from_at[0], from_at[1], from_at[2], from_at[3]};
  /* the pixels of a line whose tap is inside: low to high - 1 */
  const int64_t shift = r[2] * x->tap_step + x->start;
  const int64_t low = qn_max_i64(0, qn_ceil_div(-shift, x->step));
  const int64_t high = qn_max_i64(low, qn_min_i64(x->n, qn_ceil_div(x->extent - shift, x->step)));
  for (int64_t done = 0; done < n;) {
    const int64_t z = at[1] * w->axis[0].step + r[0] * w->axis[0].tap_step + w->axis[0].start;
    const int64_t y = at[2] * w->axis[1].step + r[1] * w->axis[1].tap_step + w->axis[1].start;
    const int64_t end = qn_min_i64(x->n, at[3] + n - done);
    const int64_t start = qn_min_i64(qn_max_i64(at[3], low), end), stop = qn_max_i64(start, qn_min_i64(end, high));
    char *const line = dst + (done - at[3]) * to;
    if (inside(&w->axis[0], z) && inside(&w->axis[1], y)) {
      const int64_t offset = at[0] * w->stride[0] + z * w->stride[2] + y * w->stride[3]
                             + (start * x->step + shift) * w->stride[4];
      zero(line + at[3] * to, start - at[3], to);
      see(isa, w->dtype, source + offset * from, x->step * w->stride[4], stop - start, line + start * to);
      zero(line + stop * to, end - stop, to);
    } else {
      zero(line + at[3] * to, end - at[3], to);
    }
    done += end - at[3];
    cpu_window_next_line(w, at);
  }
}

/* The same if a plane of pixels has the source's width and steps: a tap then reads the source plane shifted, except beyond the ends of
 * lines. So a run of lines is one copy, after which those ends are cleared. */
static void planes_of_pixels(const cpu_gemm_isa *isa, const cpu_window *w, const char *source, const int64_t r[3],
                             const int64_t from_at[4], int64_t n, char *dst)
{
  const int64_t from = qn_kit_bytes(w->dtype), to = (int64_t)cpu_gemm_row_bytes(cpu_gemm_type(w->dtype));
  const int64_t width = w->axis[2].n, plane = w->axis[1].n * width;
  const int64_t dx = r[2] * w->axis[2].tap_step + w->axis[2].start, dy = r[1] * w->axis[1].tap_step + w->axis[1].start;
  const int64_t shift = dy * width + dx;
  const int64_t low = qn_max_i64(0, -dy) * width, high = qn_min_i64(w->axis[1].n, w->axis[1].extent - dy) * width;
  const int64_t gap = qn_min_i64(width, dx < 0 ? -dx : dx), gap_at = dx < 0 ? 0 : width - gap;
  int64_t at[4] = {from_at[0], from_at[1], from_at[2], from_at[3]};
  for (int64_t done = 0; done < n;) {
    const int64_t z = at[1] * w->axis[0].step + r[0] * w->axis[0].tap_step + w->axis[0].start;
    const int64_t begin = at[2] * width + at[3], end = qn_min_i64(plane, begin + n - done);
    char *const pixel = dst + (done - begin) * to;         /* the plane's first */
    /* the pixels that read anything of this plane, and among them those whose line is inside */
    const int64_t first = qn_min_i64(qn_max_i64(begin, inside(&w->axis[0], z) ? low : end), end);
    const int64_t last = qn_max_i64(first, qn_min_i64(end, high));
    const int64_t start = qn_min_i64(qn_max_i64(first, -shift), last);
    const int64_t stop = qn_max_i64(start, qn_min_i64(last, w->axis[1].extent * width - shift));
    zero(pixel + begin * to, start - begin, to);
    see(isa, w->dtype, source + (at[0] * w->stride[0] + z * w->stride[2] + (start + shift) * w->stride[4]) * from, w->stride[4],
        stop - start, pixel + start * to);
    zero(pixel + stop * to, end - stop, to);
    for (int64_t line = qn_max_i64(at[2] * width, low); gap && line < last; line += width) {
      const int64_t clear = qn_max_i64(line + gap_at, start);
      zero(pixel + clear * to, qn_min_i64(line + gap_at + gap, stop) - clear, to);
    }
    done += end - begin;
    at[2] = w->axis[1].n - 1;
    cpu_window_next_line(w, at);
  }
}

/* Advances to the next tap; false: it wrapped around to the first. */
static bool next_tap(const cpu_window *w, int64_t r[3])
{
  for (int d = 2; d >= 0; d--) {
    if (++r[d] < w->axis[d].taps) return true;
    r[d] = 0;
  }
  return false;
}

void cpu_window_pixels(const cpu_gemm_isa *isa, const cpu_window *w, const char *source, bool taps_fastest, int64_t place,
                       int64_t places, int64_t first, int64_t n, char *dst, int64_t ld)
{
  const int64_t from = qn_kit_bytes(w->dtype), to = (int64_t)cpu_gemm_row_bytes(cpu_gemm_type(w->dtype));
  const bool planes = w->axis[1].step == 1 && w->axis[2].step == 1 && w->axis[2].n == w->axis[2].extent
                      && w->stride[3] == w->axis[2].extent * w->stride[4];
  int64_t channel = taps_fastest ? place / w->taps : place % w->channels;
  int64_t at[4], r[3];
  cpu_window_pixel(w, first, at);
  cpu_window_tap(w, taps_fastest ? place % w->taps : place / w->channels, r);
  for (int64_t p = 0; p < places; p++, dst += ld * to) {
    (planes ? planes_of_pixels : lines_of_pixels)(isa, w, source + channel * w->stride[1] * from, r, at, n, dst);
    if (taps_fastest) {
      if (!next_tap(w, r)) channel++;
    } else if (++channel == w->channels) {
      channel = 0;
      next_tap(w, r);
    }
  }
}

/* Places [first, first + n), (tap, channel), of one line of taps whose first tap is at `position` on the last axis. */
static void line_of_places(const cpu_gemm_isa *isa, const cpu_window *w, const char *line, int64_t position,
                           int64_t first, int64_t n, char *dst)
{
  const cpu_window_axis *const x = &w->axis[2];
  const int64_t from = qn_kit_bytes(w->dtype), to = (int64_t)cpu_gemm_row_bytes(cpu_gemm_type(w->dtype));
  const int64_t channels = w->channels;
  if (w->stride[1] == 1 && w->stride[4] * x->tap_step == channels && x->tap_step == 1) {
    /* neighbouring taps are contiguous: one run, from the first tap inside to the last */
    const int64_t low = qn_min_i64(qn_max_i64(0, -position), x->taps) * channels;
    const int64_t high = qn_min_i64(qn_max_i64(0, x->extent - position), x->taps) * channels;
    const int64_t start = qn_min_i64(qn_max_i64(first, low), first + n), stop = qn_max_i64(start, qn_min_i64(high, first + n));
    zero(dst, start - first, to);
    see(isa, w->dtype, line + (position * w->stride[4] + start) * from, 1, stop - start, dst + (start - first) * to);
    zero(dst + (stop - first) * to, first + n - stop, to);
    return;
  }
  for (int64_t done = 0; done < n;) {
    const int64_t tap = (first + done) / channels, c = (first + done) % channels, run = qn_min_i64(channels - c, n - done);
    const int64_t at = position + tap * x->tap_step;
    if (inside(x, at)) see(isa, w->dtype, line + (at * w->stride[4] + c * w->stride[1]) * from, w->stride[1], run, dst + done * to);
    else zero(dst + done * to, run, to);
    done += run;
  }
}

void cpu_window_places(const cpu_gemm_isa *isa, const cpu_window *w, const char *source, int64_t pixel, int64_t first, int64_t n,
                       char *dst)
{
  const int64_t from = qn_kit_bytes(w->dtype), to = (int64_t)cpu_gemm_row_bytes(cpu_gemm_type(w->dtype));
  const int64_t line_places = w->axis[2].taps * w->channels;
  int64_t at[4];
  cpu_window_pixel(w, pixel, at);
  const int64_t position = at[3] * w->axis[2].step + w->axis[2].start;
  for (int64_t done = 0; done < n;) {
    const int64_t line = (first + done) / line_places, place = (first + done) % line_places;
    const int64_t run = qn_min_i64(line_places - place, n - done);
    const int64_t z = at[1] * w->axis[0].step + line / w->axis[1].taps * w->axis[0].tap_step + w->axis[0].start;
    const int64_t y = at[2] * w->axis[1].step + line % w->axis[1].taps * w->axis[1].tap_step + w->axis[1].start;
    if (inside(&w->axis[0], z) && inside(&w->axis[1], y))
      line_of_places(isa, w, source + (at[0] * w->stride[0] + z * w->stride[2] + y * w->stride[3]) * from, position,
                     place, run, dst + done * to);
    else zero(dst + done * to, run, to);
    done += run;
  }
}
