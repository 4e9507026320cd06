/* sampling_points.c -- a spatial transformer in f32: an image at the points of a grid, and the gradients.
 *
 * A block of points is worked out once, as places in the image and weights, for all channels that a thread has. A thread has a block of
 * points (y, dgrid), or a block of channels and all points (dx): each element has one owner, who adds in the order of the points.
 *
 *   channels last   a point's channels are the weighted sum of its taps' channels
 *   otherwise       a channel's points are gathered, from one plane */
#include "convert.h"
#include "cpu_ref.h"

enum { BLOCK = 256,                       /* points */
       CHANNELS = 16,                     /* of dx by one owner */
       GRAIN = 4096 };                    /* multiply-adds that are worth a thread */

typedef struct sampler {
  int32_t  x, y, grid, out;               /* values of the request: x or dx, y or dy; out is y, dx or dgrid */
  uint32_t op, x_dtype, grid_dtype, out_dtype;
  int64_t  x_bytes, n, c, dims, points, extent[3], point[3];       /* dims that are missing come first, with one place */
  int64_t  x_stride[5], y_stride[5], grid_stride[5], out_stride[5];           /* N, C, spatial; grids: N, points, coordinate */
  bool     last, side;                    /* channels are innermost; else y's points lie side by side */
  int64_t  scratch;                       /* floats of one thread, where dx is not f32 */
  qn_sampling rule;
} sampler;

/* ---- a block of points ------------------------------------------------------------------------------------------ */

/* Tap k of each point lies at[k] from the image's first element and weighs weight[k], which grows as the coordinates do by slope[k];
 * 0 and at 0 where there is none. */
typedef struct block {
  int64_t n, from[BLOCK];                 /* each point in y */
  int64_t to[BLOCK];                      /* and in dgrid */
  bool    nan[BLOCK];
  int32_t at[8][BLOCK];
  float   weight[8][BLOCK], slope[3][8][BLOCK];
} block;

typedef struct axis { int64_t below; bool in[2]; float weight[2], slope; } axis;

static float mirrored(float at, float low, float high, float *slope)
{
  if (high <= low) return *slope = 0, low;
  const float span = high - low, from = fabsf(at - low), turns = floorf(from / span), rest = from - turns * span;
  const bool odd = fmodf(turns, 2) != 0;
  if (odd != (at < low)) *slope = -*slope;
  return odd ? high - rest : low + rest;
}

static axis axis_of(const qn_sampling *a, float g, int64_t n)
{
  axis t = { 0 };
  const float last = (float)(n - 1);
  float p = a->align_corners ? (g + 1) / 2 * last : ((g + 1) * (float)n - 1) / 2;
  t.slope = a->align_corners ? last / 2 : (float)n / 2;
  if (a->padding == QN_SAMPLE_REFLECTION) p = a->align_corners ? mirrored(p, 0, last, &t.slope) : mirrored(p, -0.5f, last + 0.5f, &t.slope);
  if (a->padding != QN_SAMPLE_ZEROS) {
    if (!(p > 0 && p < last)) t.slope = 0;
    p = p > 0 ? p : 0;
    p = p < last ? p : last;
  }
  if (!(p > -1 && p < (float)n)) return t;
  if (a->mode == QN_RESAMPLE_NEAREST) {
    t.below = (int64_t)rintf(p);
    t.in[0] = t.below >= 0 && t.below < n;
    t.weight[0] = t.in[0];
    t.slope = 0;
    return t;
  }
  const float under = floorf(p), above = p - under;
  t.below = (int64_t)under;
  t.in[0] = t.below >= 0, t.in[1] = t.below + 1 < n;
  t.weight[0] = t.in[0] ? 1 - above : 0, t.weight[1] = t.in[1] ? above : 0;
  return t;
}

static void one_point(const sampler *s, const char *grid, int64_t n, const int64_t at[3], bool slopes, block *b, int64_t i)
{
  axis a[3];
  int64_t from = n * s->grid_stride[0];
  for (int d = 0; d < 3; d++) from += at[d] * s->grid_stride[1 + d];
  b->nan[i] = false;
  b->from[i] = n * s->y_stride[0] + at[0] * s->y_stride[2] + at[1] * s->y_stride[3] + at[2] * s->y_stride[4];
  b->to[i] = n * s->out_stride[0] + at[0] * s->out_stride[1] + at[1] * s->out_stride[2] + at[2] * s->out_stride[3];
  for (int d = 0; d < 3; d++) {
    a[d] = (axis){ .in = { true, false }, .weight = { 1, 0 } };
    if (d < 3 - s->dims) continue;
    const int64_t here = from + (2 - d) * s->grid_stride[4];
    const float g = s->grid_dtype == QN_F32 ? ((const float *)(const void *)grid)[here]
                                            : (float)qn_load_f64(grid + here * qn_kit_bytes(s->grid_dtype), s->grid_dtype);
    b->nan[i] |= isnan(g) || (isinf(g) && s->rule.padding == QN_SAMPLE_REFLECTION);
    a[d] = axis_of(&s->rule, g, s->extent[d]);
  }
  for (int k = 0; k < 1 << s->dims; k++) {
    int64_t place = 0;
    float w = 1;
    bool any = false;
    for (int d = 0; d < 3; d++) {
      const int bit = k >> (2 - d) & 1;
      place += (a[d].below + bit) * s->x_stride[2 + d];
      w *= a[d].weight[bit];
    }
    for (int by = 3 - (int)s->dims; by < 3 && slopes; by++) {
      const int own = k >> (2 - by) & 1;
      float v = a[by].in[own] ? (own ? a[by].slope : -a[by].slope) : 0;
      for (int d = 0; d < 3; d++) v *= d == by ? 1 : a[d].weight[k >> (2 - d) & 1];
      b->slope[by][k][i] = v;
      any |= v != 0;
    }
    b->weight[k][i] = b->nan[i] ? 0 : w;
    b->at[k][i] = w != 0 || any ? (int32_t)place : 0;
  }
}

static void points_block(const sampler *s, const qn_launch *launch, int64_t n, int64_t first, bool slopes, block *b)
{
  const int64_t row = s->point[2], plane = row * s->point[1];
  int64_t at[3] = { first / plane, first % plane / row, first % row };
  b->n = qn_min_i64(BLOCK, s->points - first);
  for (int64_t i = 0; i < b->n; i++) {
    one_point(s, launch->ptr[s->grid], n, at, slopes, b, i);
    for (int d = 2; d >= 0 && ++at[d] == s->point[d] && d > 0; d--) at[d] = 0;
  }
}

/* ---- rows of channels, side by side ------------------------------------------------------------------------------- */

static inline float *f32(const qn_launch *launch, int32_t value, int64_t at) { return (float *)launch->ptr[value] + at; }

/* n elements as f32: where they are, or in wide. */
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

static void sample_rows(const sampler *s, const qn_launch *launch, int64_t n, const block *b)
{
  float sum[BLOCK], wide[BLOCK];
  for (int64_t i = 0; i < b->n; i++)
    for (int64_t c = 0; c < s->c; c += BLOCK) {
      const int64_t count = qn_min_i64(BLOCK, s->c - c);
      for (int64_t e = 0; e < count; e++) sum[e] = b->nan[i] ? NAN : 0;
      for (int k = 0; k < 1 << s->dims; k++)
        if (b->weight[k][i] != 0) add_row(sum, row(s, launch, s->x, n * s->x_stride[0] + b->at[k][i] + c, count, wide), b->weight[k][i], count);
      row_from_f32((char *)launch->ptr[s->out] + (b->from[i] + c) * s->x_bytes, sum, s->x_dtype, count);
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

/* The points of a block in channel c of dy, as f32: where they are, or in wide. */
static const float *plane_dy(const sampler *s, const qn_launch *launch, const block *b, int64_t c, float *wide)
{
  const char *from = launch->ptr[s->y];
  if (s->side) return row(s, launch, s->y, b->from[0] + c * s->y_stride[1], b->n, wide);
  for (int64_t i = 0; i < b->n; i++) wide[i] = (float)qn_load_f64(from + (b->from[i] + c * s->y_stride[1]) * s->x_bytes, s->x_dtype);
  return wide;
}

static void gather(const sampler *s, const qn_launch *launch, int64_t base, const int32_t *restrict at, float *restrict to, int64_t n)
{
  if (s->x_dtype == QN_F32) {
    const float *restrict x = f32(launch, s->x, base);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) to[i] = x[at[i]];
  } else {
    const uint16_t *x = (const uint16_t *)launch->ptr[s->x] + base;
    uint16_t held[BLOCK];
    for (int64_t i = 0; i < n; i++) held[i] = x[at[i]];
    row_to_f32(to, held, s->x_dtype, n);
  }
}

/* sum += w v, but where w is 0. */
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
  float sum[BLOCK], v[BLOCK], none[BLOCK];
  char *y = launch->ptr[s->out];
  for (int64_t i = 0; i < b->n; i++) none[i] = b->nan[i] ? NAN : 0;
  for (int64_t c = 0; c < s->c; c++) {
    memcpy(sum, none, (size_t)b->n * sizeof *sum);
    for (int k = 0; k < 1 << s->dims; k++) {
      gather(s, launch, n * s->x_stride[0] + c * s->x_stride[1], b->at[k], v, b->n);
      add_points(sum, b->weight[k], v, b->n);
    }
    if (s->side) row_from_f32(y + (b->from[0] + c * s->y_stride[1]) * s->x_bytes, sum, s->x_dtype, b->n);
    for (int64_t i = 0; i < b->n && !s->side; i++) qn_store_f64(y + (b->from[i] + c * s->y_stride[1]) * s->x_bytes, s->x_dtype, sum[i]);
  }
}

/* Each tap's products over the channels first, then by the slopes. */
static void slope_planes(const sampler *s, const qn_launch *launch, int64_t n, const block *b, float (*sum)[BLOCK])
{
  const int taps = 1 << s->dims;
  float wide[BLOCK], v[BLOCK], product[8][BLOCK];
  for (int k = 0; k < taps; k++) memset(product[k], 0, (size_t)b->n * sizeof **product);
  for (int64_t c = 0; c < s->c; c++) {
    const float *dy = plane_dy(s, launch, b, c, wide);
    for (int k = 0; k < taps; k++) {
      gather(s, launch, n * s->x_stride[0] + c * s->x_stride[1], b->at[k], v, b->n);
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
    for (int64_t d = 0; d < s->dims; d++)
      qn_store_f64(to + (b->to[i] + d * s->out_stride[4]) * qn_kit_bytes(s->out_dtype), s->out_dtype, b->nan[i] ? NAN : sum[2 - d][i]);
}

/* dx of some channels of an image, in place or in scratch: [C, X] or, channels last, [X, C]. */
static void by_channels(const sampler *s, const qn_launch *launch, int64_t n, int64_t c, block *b, float *scratch)
{
  const int64_t channels = qn_min_i64(CHANNELS, s->c - c), places = s->extent[0] * s->extent[1] * s->extent[2], base = n * s->x_stride[0] + c * s->x_stride[1];
  const bool in_place = s->x_dtype == QN_F32;
  float *dx = in_place ? f32(launch, s->out, base) : scratch;
  const int64_t run = s->last ? channels : places, runs = s->last ? places : channels;      /* both lie packed */
  const int64_t own = s->last ? s->c : places, step = in_place ? own : run;
  for (int64_t r = 0; r < runs; r++) memset(dx + r * step, 0, (size_t)run * sizeof *dx);
  for (int64_t first = 0; first < s->points; first += BLOCK) {
    points_block(s, launch, n, first, false, b);
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
  for (int64_t r = 0; r < runs && !in_place; r++)
    row_from_f32((char *)launch->ptr[s->out] + (base + r * own) * s->x_bytes, dx + r * step, s->x_dtype, run);
}

CPU_RUNS(cpu_sampling_points_run);
qn_status CPU_NAME(cpu_sampling_points_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const sampler *s = prepared->state;
  const bool by_image = s->op == QN_OP_GRID_SAMPLE_BACKWARD_DATA;
  const int64_t parts = by_image ? qn_ceil_div(s->c, CHANNELS) : qn_ceil_div(s->points, BLOCK), all = s->n * parts;
  const int threads = (int)qn_min_i64(launch->threads, qn_min_i64(all, s->n * s->points * s->c / GRAIN + 1));
  const int64_t share = qn_ceil_div(all, threads), bytes = qn_round_up((int64_t)sizeof(block), 64) + s->scratch * 4;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int64_t first = 0; first < all; first += share) {
    char *memory = (char *)launch->workspace + first / share * bytes;
    for (int64_t i = first; i < qn_min_i64(first + share, all); i++) {
      if (by_image) by_channels(s, launch, i / parts, i % parts * CHANNELS, (block *)(void *)memory, (float *)(void *)(memory + bytes - s->scratch * 4));
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
  if (x->dtype == QN_F64) return qn_refuse(prepared, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  s.last = x->dim[1] > 1 && qn_is_channels_last(x) && y->stride[1] == 1;
  if (!s.last && !qn_is_packed(x)) return qn_refuse(prepared, "the image is packed, with its channels first or last", "x", "one of both", "%s", "strides");
  s.x_dtype = x->dtype, s.grid_dtype = grid->dtype, s.out_dtype = out->dtype, s.x_bytes = qn_kit_bytes(x->dtype);
  s.n = x->dim[0], s.c = x->dim[1], s.dims = x->rank - 2, s.points = 1;
  int64_t places = 1;
  for (int d = 0; d < 3; d++) s.extent[d] = s.point[d] = 1;
  for (int d = 2; d < x->rank; d++) {
    s.extent[d + 3 - x->rank] = x->dim[d], s.point[d + 3 - x->rank] = y->dim[d];
    places *= x->dim[d], s.points *= y->dim[d];
  }
  if (places * s.c > INT32_MAX) return qn_refuse(prepared, "an image's places are counted in 31 bits", "x", "fewer", "%lld", (long long)places);
  spatial_strides(x, s.x_stride);
  spatial_strides(y, s.y_stride);
  s.side = (s.point[2] == 1 || s.y_stride[4] == 1) && (s.point[1] == 1 || s.y_stride[3] == s.point[2])
        && (s.point[0] == 1 || s.y_stride[2] == s.point[2] * s.point[1]);
  grid_strides(grid, s.grid_stride);
  if (op->op == QN_OP_GRID_SAMPLE_BACKWARD_GRID) grid_strides(out, s.out_stride);
  if (op->op == QN_OP_GRID_SAMPLE_BACKWARD_DATA && s.x_dtype != QN_F32) s.scratch = qn_round_up(places * qn_min_i64(s.c, CHANNELS), 16);
  prepared->workspace = (uint64_t)(request->demands->threads * (qn_round_up((int64_t)sizeof(block), 64) + s.scratch * 4));
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
