/* sampling_points.c -- spatial transformer in f32: an image at the points of a grid, and the gradients.
 *
 * A block of points is converted once to image offsets and weights, for all channels of a thread. A thread has a block of points
 * (y, dgrid), or a block of channels and all points (dx): each element has one owner, which adds in the order of the points.
 *
 *   channels last   a point's channels are the weighted sum of its taps' channels
 *   otherwise       a channel's points are gathered from one plane */
#include "kit/convert.h"
#include "cpu_ref.h"

enum { BLOCK = 512,                       /* points; in two dims their tables fit into 32 KB */
       ASK = 8,                           /* one point in so many gets a prefetch */
       CHANNELS = 16,                     /* of dx per owner */
       LONG = 4096,                       /* terms of a sum that are added in f32 */
       GRAIN = 4096 };                    /* multiply-adds that justify one more thread */

typedef struct sampler {
  int32_t  x, y, grid, out;               /* values of the request: x or dx, y or dy; out is y, dx or dgrid */
  uint32_t op, x_dtype, grid_dtype, out_dtype;
  int64_t  x_bytes, n, c, dims, points, extent[3], point[3];       /* missing dims come first, with extent 1 */
  int64_t  x_stride[5], y_stride[5], grid_stride[5], out_stride[5];           /* N, C, spatial; grids: N, points, coordinate */
  bool     last, side;                    /* last: channels are innermost; side: y's points are contiguous */
  int64_t  scratch;                       /* floats per thread, if dx is not f32 */
  int64_t  places, aside;                 /* dx of more than LONG points, per thread: counted places, sums put aside */
  qn_sampling rule;
} sampler;

/* ---- a block of points ------------------------------------------------------------------------------------------ */

/* A block's coordinates along one axis: the element below, weights of it and the next one, and the derivatives of these. */
typedef struct axis { int32_t below[BLOCK]; float weight[2][BLOCK], slope[2][BLOCK]; } axis;

/* Tap k of each point is at[k] elements from the image's first and has weight[k], whose derivative by each coordinate is slope[k];
 * a missing tap has weight 0 and at 0. */
typedef struct block {
  int32_t at[8][BLOCK];                   /* first, so that its vectors do not cross cache lines */
  float   weight[8][BLOCK], slope[3][8][BLOCK];
  int64_t n, from[BLOCK];                 /* from: offset of each point in y */
  int64_t to[BLOCK];                      /* to: offset in dgrid */
  bool    nan[BLOCK];
  axis    axes[3];
} block;

/* `at` mirrored at low and high; *slope flips with it. */
CPU_INLINE float mirrored(float at, float low, float high, float *slope)
{
  const float span = high - low, from = fabsf(at - low), turns = floorf(from / span), rest = from - turns * span;
  const bool odd = turns - 2 * floorf(turns / 2) != 0, still = !(high > low);
  *slope = still ? 0 : odd != (at < low) ? -*slope : *slope;
  return still ? low : odd ? high - rest : low + rest;
}

CPU_INLINE void axis_points(axis *to, const float *restrict g, int64_t count, int64_t n, bool corners, uint32_t padding, bool nearest)
{
  const float extent = (float)n, last = (float)(n - 1), steep = corners ? last / 2 : extent / 2, low = corners ? 0 : -0.5f;
  const int32_t places = (int32_t)n;
  int32_t *restrict below = to->below;
  float *restrict weight0 = to->weight[0], *restrict weight1 = to->weight[1], *restrict slope0 = to->slope[0],
      *restrict slope1 = to->slope[1];
#pragma omp simd
  for (int64_t i = 0; i < count; i++) {
    /* reflection has a period of 4, taken off exactly: a far point keeps its digits */
    const float at = padding == QN_SAMPLE_REFLECTION ? g[i] - 4 * rintf(g[i] / 4) : g[i];
    float p = corners ? (at + 1) / 2 * last : ((at + 1) * extent - 1) / 2, slope = steep;
    if (padding == QN_SAMPLE_REFLECTION) p = mirrored(p, low, last - low, &slope);
    if (padding != QN_SAMPLE_ZEROS) {
      slope = p > 0 && p < last ? slope : 0;
      p = p > 0 ? p : 0;
      p = p < last ? p : last;
    }
    const bool here = p > -1 && p < extent;
    p = here ? p : 0;
    const float under = nearest ? rintf(p) : floorf(p), above = p - under;
    const int32_t place = (int32_t)under;
    const bool first = here && place >= 0 && place < places, second = here && !nearest && place + 1 < places;
    below[i] = place;
    weight0[i] = !first ? 0 : nearest ? 1 : 1 - above;
    weight1[i] = second ? above : 0;
    slope0[i] = first && !nearest ? -slope : 0;
    slope1[i] = second ? slope : 0;
  }
}

/* Dispatches by rule, so that each case is a branch-free loop. */
static void axis_block(const qn_sampling *a, const float *g, int64_t count, int64_t n, axis *to)
{
  const bool nearest = a->mode == QN_RESAMPLE_NEAREST;
  if (a->padding == QN_SAMPLE_REFLECTION) axis_points(to, g, count, n, a->align_corners, QN_SAMPLE_REFLECTION, nearest);
  else if (a->padding == QN_SAMPLE_ZEROS) axis_points(to, g, count, n, a->align_corners, QN_SAMPLE_ZEROS, nearest);
  else axis_points(to, g, count, n, a->align_corners, a->padding, nearest);
}

/* Tap k, given by these axes: offset, weight and, if asked for, slopes. */
static void taps_of(const sampler *s, const axis *axes, int k, bool slopes, block *b)
{
  float *weight = b->weight[k];
  int32_t *at = b->at[k];
  int32_t any[BLOCK];
  for (int64_t i = 0; i < b->n; i++) weight[i] = 1, at[i] = 0, any[i] = 0;
  for (int d = 3 - (int)s->dims; d < 3; d++) {
    const int bit = k >> (2 - d) & 1;
    const uint32_t stride = (uint32_t)s->x_stride[2 + d];      /* overflow happens only where there is no tap */
#pragma omp simd
    for (int64_t i = 0; i < b->n; i++) {
      weight[i] *= axes[d].weight[bit][i];
      at[i] = (int32_t)((uint32_t)at[i] + ((uint32_t)axes[d].below[i] + (uint32_t)bit) * stride);
    }
  }
  for (int by = 3 - (int)s->dims; by < 3 && slopes; by++) {
    float *slope = b->slope[by][k];
    memcpy(slope, axes[by].slope[k >> (2 - by) & 1], (size_t)b->n * sizeof *slope);
    for (int d = 3 - (int)s->dims; d < 3; d++)
      for (int64_t i = 0; i < b->n && d != by; i++) slope[i] *= axes[d].weight[k >> (2 - d) & 1][i];
    for (int64_t i = 0; i < b->n; i++) any[i] |= slope[i] != 0;
  }
  for (int64_t i = 0; i < b->n; i++) {
    at[i] = (weight[i] != 0) | any[i] ? at[i] : 0;
    weight[i] = b->nan[i] ? 0 : weight[i];
  }
  for (int64_t i = b->n; i < BLOCK; i++) at[i] = 0, weight[i] = 0;      /* pad to a whole vector */
}

static void points_block(const sampler *s, const qn_launch *launch, int64_t n, int64_t first, bool slopes, block *b)
{
  const int64_t row = s->point[2], plane = row * s->point[1];
  const char *grid = launch->ptr[s->grid];
  int64_t at[3] = { first / plane, first % plane / row, first % row }, from[BLOCK];
  float g[BLOCK];
  b->n = qn_min_i64(BLOCK, s->points - first);
  for (int64_t i = 0; i < b->n; i++) {
    b->nan[i] = false;
    from[i] = n * s->grid_stride[0] + at[0] * s->grid_stride[1] + at[1] * s->grid_stride[2] + at[2] * s->grid_stride[3];
    b->from[i] = n * s->y_stride[0] + at[0] * s->y_stride[2] + at[1] * s->y_stride[3] + at[2] * s->y_stride[4];
    b->to[i] = n * s->out_stride[0] + at[0] * s->out_stride[1] + at[1] * s->out_stride[2] + at[2] * s->out_stride[3];
    for (int d = 2; d >= 0 && ++at[d] == s->point[d] && d > 0; d--) at[d] = 0;
  }
  for (int d = 3 - (int)s->dims; d < 3; d++) {
    for (int64_t i = 0; i < b->n; i++) {
      const int64_t here = from[i] + (2 - d) * s->grid_stride[4];
      g[i] = s->grid_dtype == QN_F32 ? ((const float *)(const void *)grid)[here]
          : (float)qn_load_f64(grid + here * qn_kit_bytes(s->grid_dtype), s->grid_dtype);
      b->nan[i] |= isnan(g[i]) || (isinf(g[i]) && s->rule.padding == QN_SAMPLE_REFLECTION);
    }
    axis_block(&s->rule, g, b->n, s->extent[d], &b->axes[d]);
  }
  for (int k = 0; k < 1 << s->dims; k++) taps_of(s, b->axes, k, slopes, b);
}

/* ---- channels last ------------------------------------------------------------------------------------------------ */

static inline float *f32(const qn_launch *launch, int32_t value, int64_t at) { return (float *)launch->ptr[value] + at; }

/* n elements as f32: in place, or converted into wide. */
static const float *row(const sampler *s, const qn_launch *launch, int32_t value, int64_t at, int64_t n, float *wide)
{
  if (s->x_dtype == QN_F32) return f32(launch, value, at);
  row_to_f32(wide, (const char *)launch->ptr[value] + at * s->x_bytes, s->x_dtype, n);
  return wide;
}

static void add_row(float *restrict sum, const float *restrict in, float w, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) sum[i] += w * in[i];
}

static float dot(const float *restrict a, const float *restrict b, int64_t n)
{
  float sum = 0;
#pragma omp simd reduction(+: sum)
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* A point's channels from four taps at once. */
static void sample_four(float *restrict y, const float *image, const block *b, int64_t i, int64_t n)
{
  const float *restrict x0 = image + b->at[0][i], *restrict x1 = image + b->at[1][i];
  const float *restrict x2 = image + b->at[2][i], *restrict x3 = image + b->at[3][i];
  const float w0 = b->weight[0][i], w1 = b->weight[1][i], w2 = b->weight[2][i], w3 = b->weight[3][i];
#pragma omp simd
  for (int64_t c = 0; c < n; c++) y[c] = w0 * x0[c] + w1 * x1[c] + w2 * x2[c] + w3 * x3[c];
}

static void sample_rows(const sampler *s, const qn_launch *launch, int64_t n, const block *b)
{
  float sum[BLOCK], wide[BLOCK];
  const bool four = s->x_dtype == QN_F32 && s->dims == 2;
  const int64_t image = n * s->x_stride[0];
  for (int64_t i = 0; i < b->n; i++) {
    if (four && b->weight[0][i] != 0 && b->weight[1][i] != 0 && b->weight[2][i] != 0 && b->weight[3][i] != 0) {
      sample_four(f32(launch, s->out, b->from[i]), f32(launch, s->x, image), b, i, s->c);
      continue;
    }
    for (int64_t c = 0; c < s->c; c += BLOCK) {
      const int64_t count = qn_min_i64(BLOCK, s->c - c);
      for (int64_t e = 0; e < count; e++) sum[e] = b->nan[i] ? NAN : 0;
      for (int k = 0; k < 1 << s->dims; k++)
        if (b->weight[k][i] != 0) add_row(sum, row(s, launch, s->x, image + b->at[k][i] + c, count, wide), b->weight[k][i], count);
      row_from_f32((char *)launch->ptr[s->out] + (b->from[i] + c) * s->x_bytes, sum, s->x_dtype, count);
    }
  }
}

static void slope_rows(const sampler *s, const qn_launch *launch, int64_t n, const block *b, float (*sum)[BLOCK])
{
  float wide[BLOCK], wide_x[BLOCK];
  for (int64_t i = 0; i < b->n; i++)
    for (int64_t c = 0; c < s->c; c += BLOCK) {
      const int64_t count = qn_min_i64(BLOCK, s->c - c);
      const float *dy = row(s, launch, s->y, b->from[i] + c, count, wide);
      for (int k = 0; k < 1 << s->dims; k++) {
        float product = 0;
        bool any = false;
        for (int by = 3 - (int)s->dims; by < 3; by++) any |= b->slope[by][k][i] != 0;
        if (any) product = dot(dy, row(s, launch, s->x, n * s->x_stride[0] + b->at[k][i] + c, count, wide_x), count);
        for (int by = 3 - (int)s->dims; by < 3; by++)
          if (b->slope[by][k][i] != 0) sum[by][i] += b->slope[by][k][i] * product;
      }
    }
}

/* ---- points of one plane ------------------------------------------------------------------------------------------ */

/* The block's points in channel c of dy, as f32: in place, or in wide. */
static const float *plane_dy(const sampler *s, const qn_launch *launch, const block *b, int64_t c, float *wide)
{
  const char *from = launch->ptr[s->y];
  if (s->side) return row(s, launch, s->y, b->from[0] + c * s->y_stride[1], b->n, wide);
  for (int64_t i = 0; i < b->n; i++) wide[i] = (float)qn_load_f64(from + (b->from[i] + c * s->y_stride[1]) * s->x_bytes, s->x_dtype);
  return wide;
}

/* Prefetches the cache lines of another plane that points from i on will gather: gathers are not prefetched by hardware. */
CPU_INLINE void ask_taps(const float *x, const block *b, int64_t i, int taps)
{
  for (int64_t e = i; e < i + CPU_LANES; e += ASK)
    __builtin_prefetch(x + b->at[0][e]), __builtin_prefetch(x + b->at[taps - 1][e]);
}

/* sum += w x, tap by tap, skipping w = 0; next: the plane to prefetch. */
CPU_INLINE void sample_taps(float *sum, const float *x, const float *next, const block *b, int taps)
{
  for (int64_t i = 0; i < b->n; i += CPU_LANES) {
    v_f32 v = v_load(sum + i);
    ask_taps(next, b, i, taps);
    for (int k = 0; k < taps; k++) {
      const v_f32 w = v_load(b->weight[k] + i);
      v += v_select(w != 0, w * v_gather(x, b->at[k] + i), v_all(0));
    }
    memcpy(sum + i, &v, sizeof v);
  }
}

/* For each tap, product += x dy; dy is padded to a whole vector. */
CPU_INLINE void multiply_taps(float (*product)[BLOCK], const float *x, const float *next, const float *dy, const block *b, int taps)
{
  for (int64_t i = 0; i < b->n; i += CPU_LANES) {
    ask_taps(next, b, i, taps);
    for (int k = 0; k < taps; k++) {
      const v_f32 v = v_load(product[k] + i) + v_gather(x, b->at[k] + i) * v_load(dy + i);
      memcpy(product[k] + i, &v, sizeof v);
    }
  }
}

/* The values of tap k, of 16-bit elements, as f32. */
static void gather(const sampler *s, const qn_launch *launch, int64_t base, const int32_t *restrict at, float *restrict to, int64_t n)
{
  const uint16_t *x = (const uint16_t *)launch->ptr[s->x] + base;
  uint16_t held[BLOCK];
  for (int64_t i = 0; i < n; i++) held[i] = x[at[i]];
  row_to_f32(to, held, s->x_dtype, n);
}

/* sum += w v, skipping w = 0. */
static void add_points(float *restrict sum, const float *restrict w, const float *restrict v, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) sum[i] += w[i] != 0 ? w[i] * v[i] : 0;
}

static void add_products(float *restrict sum, const float *restrict a, const float *restrict b, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) sum[i] += a[i] * b[i];
}

static void sample_planes(const sampler *s, const qn_launch *launch, int64_t n, const block *b)
{
  float sum[BLOCK], v[BLOCK], none[BLOCK] = { 0 };
  char *y = launch->ptr[s->out];
  for (int64_t i = 0; i < b->n; i++) none[i] = b->nan[i] ? NAN : 0;
  for (int64_t c = 0; c < s->c; c++) {
    const int64_t base = n * s->x_stride[0] + c * s->x_stride[1], next = c + 1 < s->c ? base + s->x_stride[1] : base;
    memcpy(sum, none, sizeof sum);
    if (s->x_dtype == QN_F32 && s->dims == 2) sample_taps(sum, f32(launch, s->x, base), f32(launch, s->x, next), b, 4);
    else if (s->x_dtype == QN_F32) sample_taps(sum, f32(launch, s->x, base), f32(launch, s->x, next), b, 1 << s->dims);
    else
      for (int k = 0; k < 1 << s->dims; k++) {
        gather(s, launch, base, b->at[k], v, b->n);
        add_points(sum, b->weight[k], v, b->n);
      }
    if (s->side) row_from_f32(y + (b->from[0] + c * s->y_stride[1]) * s->x_bytes, sum, s->x_dtype, b->n);
    for (int64_t i = 0; i < b->n && !s->side; i++) qn_store_f64(y + (b->from[i] + c * s->y_stride[1]) * s->x_bytes, s->x_dtype, sum[i]);
  }
}

/* First each tap's sum over channels, then times the slopes. */
static void slope_planes(const sampler *s, const qn_launch *launch, int64_t n, const block *b, float (*sum)[BLOCK])
{
  const int taps = 1 << s->dims;
  float wide[BLOCK] = { 0 }, v[BLOCK], product[8][BLOCK];
  memset(product, 0, (size_t)taps * sizeof *product);
  for (int64_t c = 0; c < s->c; c++) {
    const float *dy = plane_dy(s, launch, b, c, wide);
    const int64_t base = n * s->x_stride[0] + c * s->x_stride[1], next = c + 1 < s->c ? base + s->x_stride[1] : base;
    if (b->n % CPU_LANES && dy != wide) dy = memcpy(wide, dy, (size_t)b->n * sizeof *dy);
    if (s->x_dtype == QN_F32 && s->dims == 2) multiply_taps(product, f32(launch, s->x, base), f32(launch, s->x, next), dy, b, 4);
    else if (s->x_dtype == QN_F32) multiply_taps(product, f32(launch, s->x, base), f32(launch, s->x, next), dy, b, taps);
    else
      for (int k = 0; k < taps; k++) {
        gather(s, launch, base, b->at[k], v, b->n);
        add_products(product[k], v, dy, b->n);
      }
  }
  for (int k = 0; k < taps; k++)
    for (int by = 3 - (int)s->dims; by < 3; by++) add_points(sum[by], b->slope[by][k], product[k], b->n);
}

/* ---- owners ------------------------------------------------------------------------------------------------------- */

static void by_points(const sampler *s, const qn_launch *launch, int64_t n, int64_t first, block *b)
{
  const bool slopes = s->op == QN_OP_GRID_SAMPLE_BACKWARD_GRID;
  points_block(s, launch, n, first, slopes, b);
  if (!slopes) {
    if (s->last) sample_rows(s, launch, n, b);
    else sample_planes(s, launch, n, b);
    return;
  }
  float sum[3][BLOCK] = { { 0 } };
  if (s->last) slope_rows(s, launch, n, b, sum);
  else slope_planes(s, launch, n, b, sum);
  char *to = launch->ptr[s->out];
  for (int64_t i = 0; i < b->n; i++)
    for (int64_t d = 0; d < s->dims; d++) {
      const float slope = b->nan[i] ? NAN : sum[2 - d][i];
      const int64_t at = b->to[i] + d * s->out_stride[4];
      if (s->out_dtype == QN_F32) *f32(launch, s->out, at) = slope;
      else qn_store_f64(to + at * qn_kit_bytes(s->out_dtype), s->out_dtype, slope);
    }
}

/* So that long sums are made in blocks: places count their terms, and one that has had LONG puts the sums of its channels aside. */
typedef struct aside { int32_t place; float sum[CHANNELS]; } aside;
typedef struct longest { int64_t n; aside *list; uint16_t *count; } longest;

static void put_aside(const sampler *s, const block *b, float *dx, int64_t channels, int64_t step, longest *l)
{
  for (int k = 0; k < 1 << s->dims; k++)
    for (int64_t i = 0; i < b->n; i++) {
      const int64_t place = s->last ? b->at[k][i] / s->c : b->at[k][i];
      if (b->weight[k][i] == 0 || ++l->count[place] < LONG) continue;
      aside *to = &l->list[l->n++];
      l->count[place] = 0;
      to->place = (int32_t)place;
      for (int64_t m = 0; m < channels; m++) {
        float *from = dx + (s->last ? place * step + m : m * step + place);
        to->sum[m] = *from, *from = 0;
      }
    }
}

static void take_back(const sampler *s, float *dx, int64_t channels, int64_t step, const longest *l)
{
  for (int64_t i = 0; i < l->n; i++)
    for (int64_t m = 0; m < channels; m++)
      dx[s->last ? l->list[i].place * step + m : m * step + l->list[i].place] += l->list[i].sum[m];
}

/* dx of some channels of an image, in place or in scratch: [C, X] or, channels last, [X, C]. */
static void by_channels(const sampler *s, const qn_launch *launch, int64_t n, int64_t c, block *b, float *scratch)
{
  const int64_t channels = qn_min_i64(CHANNELS, s->c - c), places = s->extent[0] * s->extent[1] * s->extent[2],
      base = n * s->x_stride[0] + c * s->x_stride[1];
  const bool in_place = s->x_dtype == QN_F32;
  float *dx = in_place ? f32(launch, s->out, base) : scratch;
  const int64_t run = s->last ? channels : places, runs = s->last ? places : channels;      /* both lie packed */
  const int64_t own = s->last ? s->c : places, step = in_place ? own : run;
  longest l = { .list = (aside *)(void *)(scratch + s->scratch) };
  l.count = (uint16_t *)(void *)(l.list + s->aside);
  memset(l.count, 0, (size_t)s->places * sizeof *l.count);
  for (int64_t r = 0; r < runs; r++) memset(dx + r * step, 0, (size_t)run * sizeof *dx);
  for (int64_t first = 0; first < s->points; first += BLOCK) {
    points_block(s, launch, n, first, false, b);
    if (s->aside) put_aside(s, b, dx, channels, step, &l);
    float dy[BLOCK];
    for (int64_t i = 0; i < b->n && s->last; i++) {
      const float *from = row(s, launch, s->y, b->from[i] + c, channels, dy);
      for (int k = 0; k < 1 << s->dims; k++)
        if (b->weight[k][i] != 0) add_row(dx + b->at[k][i] / s->c * step, from, b->weight[k][i], channels);
    }
    for (int64_t m = 0; m < channels && !s->last; m++) {
      const float *from = plane_dy(s, launch, b, c + m, dy);
      for (int k = 0; k < 1 << s->dims; k++)
        for (int64_t i = 0; i < b->n; i++)
          if (b->weight[k][i] != 0) dx[m * step + b->at[k][i]] += b->weight[k][i] * from[i];
    }
  }
  take_back(s, dx, channels, step, &l);
  for (int64_t r = 0; r < runs && !in_place; r++)
    row_from_f32((char *)launch->ptr[s->out] + (base + r * own) * s->x_bytes, dx + r * step, s->x_dtype, run);
}

/* Of a thread's workspace: a block, floats, sums put aside, counts. */
static int64_t bytes_of(const sampler *s)
{
  return qn_round_up(qn_round_up((int64_t)sizeof(block), 64) + s->scratch * 4 + s->aside * (int64_t)sizeof(aside) + s->places * 2, 64);
}

CPU_RUNS(cpu_sampling_points_run);
qn_status CPU_NAME(cpu_sampling_points_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const sampler *s = prepared->state;
  const bool by_image = s->op == QN_OP_GRID_SAMPLE_BACKWARD_DATA;
  const int64_t parts = by_image ? qn_ceil_div(s->c, CHANNELS) : qn_ceil_div(s->points, BLOCK), all = s->n * parts;
  const int threads = (int)qn_min_i64(launch->threads, qn_min_i64(all, s->n * s->points * s->c / GRAIN + 1));
  const int64_t share = qn_ceil_div(all, threads), bytes = bytes_of(s);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int64_t first = 0; first < all; first += share) {
    char *memory = (char *)launch->workspace + first / share * bytes;
    for (int64_t i = first; i < qn_min_i64(first + share, all); i++) {
      if (by_image)
        by_channels(s, launch, i / parts, i % parts * CHANNELS, (block *)(void *)memory,
                    (float *)(void *)(memory + qn_round_up((int64_t)sizeof(block), 64)));
      else by_points(s, launch, i / parts, i % parts * BLOCK, (block *)(void *)memory);
    }
  }
  return QN_OK;
}

/* ---- prepare ------------------------------------------------------------------------------------------------------ */

#ifdef CPU_BASELINE
static void spatial_strides(const qn_value *v, int64_t *stride)
{
  for (int d = 0; d < v->rank; d++) stride[d < 2 ? d : d + 5 - v->rank] = v->stride[d];
}

static void grid_strides(const qn_value *v, int64_t *stride)
{
  stride[0] = v->stride[0], stride[4] = v->stride[v->rank - 1];
  for (int d = 1; d < v->rank - 1; d++) stride[d + 5 - v->rank] = v->stride[d];
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  const int32_t *arg = op->arg;
  sampler s = { .op = op->op, .rule = *(const qn_sampling *)op->attr };
  if (op->op == QN_OP_GRID_SAMPLE) s.x = arg[0], s.grid = arg[1], s.y = s.out = arg[2];
  else if (op->op == QN_OP_GRID_SAMPLE_BACKWARD_DATA) s.y = arg[0], s.grid = arg[1], s.x = s.out = arg[2];
  else s.y = arg[0], s.x = arg[1], s.grid = arg[2], s.out = arg[3];
  const qn_value *x = &request->value[s.x], *y = &request->value[s.y], *grid = &request->value[s.grid], *out = &request->value[s.out];
  if (x->dtype == QN_F64) return qn_refuse(prepared, "accumulates in f32", "x", "f32, f16 or bf16", "%s", "f64");
  if (s.rule.mode == QN_RESAMPLE_CUBIC) return qn_refuse(prepared, "two taps a dim", "mode", "nearest or linear", "%s", "cubic");
  s.last = x->dim[1] > 1 && qn_is_channels_last(x) && y->stride[1] == 1;
  if (!s.last && !qn_is_packed(x))
    return qn_refuse(prepared, "the image is packed, with its channels first or last", "x", "one of both", "%s", "strides");
  s.x_dtype = x->dtype, s.grid_dtype = grid->dtype, s.out_dtype = out->dtype, s.x_bytes = qn_kit_bytes(x->dtype);
  s.n = x->dim[0], s.c = x->dim[1], s.dims = x->rank - 2, s.points = 1;
  int64_t places = 1;
  for (int d = 0; d < 3; d++) s.extent[d] = s.point[d] = 1;
  for (int d = 2; d < x->rank; d++) {
    s.extent[d + 3 - x->rank] = x->dim[d], s.point[d + 3 - x->rank] = y->dim[d];
    places *= x->dim[d], s.points *= y->dim[d];
  }
  if (places * s.c > INT32_MAX)
    return qn_refuse(prepared, "positions in an image fit 32 bits", "x", "fewer", "%lld", (long long)places);
  spatial_strides(x, s.x_stride);
  spatial_strides(y, s.y_stride);
  s.side = (s.point[2] == 1 || s.y_stride[4] == 1) && (s.point[1] == 1 || s.y_stride[3] == s.point[2])
        && (s.point[0] == 1 || s.y_stride[2] == s.point[2] * s.point[1]);
  grid_strides(grid, s.grid_stride);
  if (op->op == QN_OP_GRID_SAMPLE_BACKWARD_GRID) grid_strides(out, s.out_stride);
  if (op->op == QN_OP_GRID_SAMPLE_BACKWARD_DATA && s.x_dtype != QN_F32) s.scratch = qn_round_up(places * qn_min_i64(s.c, CHANNELS), 16);
  if (op->op == QN_OP_GRID_SAMPLE_BACKWARD_DATA && s.points > 2 * LONG) s.places = places, s.aside = (s.points << s.dims) / LONG;
  prepared->workspace = (uint64_t)(request->demands->threads * bytes_of(&s));
  return cpu_keep(prepared, &s, sizeof s);
}

#define SAMPLING_ROW(anchor, engine, function)                                                     \
  { .name = engine, .op = anchor, .class_ = QN_CLASS_TUNED,                                           \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, .prepare = prepare, .run = function, .release = cpu_release },
#define SAMPLING_ROWS(engine, function)                                                            \
  SAMPLING_ROW(QN_OP_GRID_SAMPLE, engine, function)                                                   \
  SAMPLING_ROW(QN_OP_GRID_SAMPLE_BACKWARD_DATA, engine, function)                                     \
  SAMPLING_ROW(QN_OP_GRID_SAMPLE_BACKWARD_GRID, engine, function)
static const qn_engine rows[] = { CPU_COPIES(SAMPLING_ROWS, "points", cpu_sampling_points_run) };
const qn_engine_list cpu_sampling_points = { rows, sizeof rows / sizeof *rows };
#endif
