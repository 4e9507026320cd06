/* lrn_tiles.c -- local response and divisive normalization and their gradients in f32, a tile at a time: the channels of some positions,
 * or the planes of some channels, in scratch that fits the cache. Without means a window's sum is a running sum along each dim of the
 * window, whole rows of the tile at a time. With means the mean is subtracted in each tap: expanding the square would cancel.
 *
 *   y  = x b^-beta, b = k + alpha/n sum x^2        dx = g - 2 alpha beta/n x sum(g x/b), g = dy b^-beta, over the mirrored window
 *   with means m: (x - m)^2 for x^2, and sum(g' x'/b' (x - m')) for x sum(g x/b); dmeans = 2 alpha beta/n g x/b sum(x - m) */
#include "kit/convert.h"
#include "cpu_ref.h"
#include "kit/pointwise_math.h"

enum { BLOCK = 64,                        /* extent of a tile in the dims that the window does not span */
       ROWS = 4096 };                     /* elements, if channels are contiguous */

typedef struct normalizer {
  int32_t  in, x, means, out, dmeans;     /* values of the request, -1: absent; in: dy, or x */
  uint32_t dtype;
  int64_t  bytes;
  bool     backward;
  int64_t  runs, length, step;            /* a tile: contiguous runs, `step` apart */
  int64_t  tiles, blocks, tile_step;      /* tiles in all; per group, `length` apart; from group to group */
  int64_t  extent;                        /* of a group: its last tile may be shorter */
  int32_t  dims;                          /* that the window spans */
  int64_t  n[3], inner[3];                /* their extents, and strides within the tile */
  int64_t  before, after;
  float    k, alpha, beta;                /* alpha/n */
} normalizer;

static int64_t floats(const normalizer *s) { return qn_round_up(s->runs * s->length, 16); }
/* A row of the window's last dim, padded for the vector at its end. */
static int64_t row_floats(const normalizer *s) { return qn_round_up(s->n[s->dims - 1] * s->inner[s->dims - 1], 16) + 16; }
/* With means also: a row that holds each element's index, and one at either end of the tile's arrays for taps to read. */
static int64_t scratch(const normalizer *s) { return floats(s) * (3 + s->backward) + (s->means < 0 ? 0 : floats(s) + 3 * row_floats(s)); }

/* ---- a tile --------------------------------------------------------------------------------------------------- */

/* to[i] = the sum of from[i - before] to from[i + after] along a dim of n, `inner` elements apart. */
static void sum_along(float *restrict to, const float *restrict from, int64_t n, int64_t inner, int64_t before, int64_t after,
                      int64_t elements)
{
  const int64_t slab = n * inner;
  memset(to, 0, (size_t)elements * sizeof *to);
  for (int64_t o = -qn_min_i64(before, n - 1); o <= qn_min_i64(after, n - 1); o++) {
    const int64_t begin = qn_max_i64(0, -o) * inner, end = (n - qn_max_i64(0, o)) * inner;
    for (int64_t at = 0; at < elements; at += slab) {
      float *restrict t = to + at;
      const float *restrict f = from + at + o * inner;
#pragma omp simd
      for (int64_t i = begin; i < end; i++) t[i] += f[i];
    }
  }
}

/* Sums *from over the window, dim by dim, through both buffers; the result is in *from. */
static void sum_windows(const normalizer *s, float **from, float **spare, bool mirrored, int64_t elements)
{
  for (int d = 0; d < s->dims; d++) {
    sum_along(*spare, *from, s->n[d], s->inner[d], mirrored ? s->after : s->before, mirrored ? s->before : s->after, elements);
    float *t = *from;
    *from = *spare;
    *spare = t;
  }
}

enum { SQUARES, DISTANCES, SHARES };

/* sum = over the taps of each position's window (SHARES: of the mirrored window, of r). Vectors run along rows of the last dim, where
 * `index` holds each element's index; what a tap reads beyond a row's ends is masked out. */
CPU_INLINE void sum_taps(const normalizer *s, int kind, float *sum, const float *x, const float *m, const float *r, const int32_t *index,
                         int64_t elements)
{
  const int64_t before = kind == SHARES ? s->after : s->before, after = kind == SHARES ? s->before : s->after;
  const int last = s->dims - 1;
  const int64_t n0 = last > 1 ? s->n[0] : 1, n1 = last > 0 ? s->n[last - 1] : 1, n = s->n[last], inner = s->inner[last], row = n * inner;
  for (int64_t line = 0; line < elements / row; line++) {
    const int64_t i1 = line % n1, i0 = line / n1 % n0, low0 = -qn_min_i64(before, i0), low1 = -qn_min_i64(before, i1);
    const int64_t lines0 = qn_min_i64(after, n0 - 1 - i0) - low0 + 1, lines1 = qn_min_i64(after, n1 - 1 - i1) - low1 + 1;
    for (int64_t c = 0; c < row; c += CPU_LANES) {
      const int64_t at = line * row + c;
      const v_f32 own = v_load(kind == SHARES ? x + at : m + at);
      v_f32 total = { 0 };
      for (int64_t o = -qn_min_i64(before, n - 1); o <= qn_min_i64(after, n - 1); o++) {
        const v_i32 to = (v_i32)v_load(index + c) + (int32_t)o, inside = (to >= 0) & (to < (int32_t)n);
        v_f32 part = { 0 };               /* per o, for shorter chains of additions */
        int64_t tap = at + o * inner + (low0 * n1 + low1) * row;
        for (int64_t l0 = 0; l0 < lines0; l0++, tap += (n1 - lines1) * row)
          for (int64_t l1 = 0; l1 < lines1; l1++, tap += row) {
            const v_f32 d = kind == SHARES ? own - v_load(m + tap) : v_load(x + tap) - own;
            part += kind == SHARES ? v_load(r + tap) * d : kind == SQUARES ? d * d : d;
          }
        total += (v_f32)(inside & (v_i32)part);
      }
      memcpy(sum + at, &total, (size_t)qn_min_i64(CPU_LANES, row - c) * sizeof *sum);
    }
  }
}

static void squares(float *restrict to, const float *restrict x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) to[i] = x[i] * x[i];
}

/* The power -beta; the usual one, 3/4, takes two square roots. */
enum { ANY, NONE, THREE_QUARTERS };
static int power_of(const normalizer *s) { return s->beta == 0 ? NONE : s->beta == 0.75f ? THREE_QUARTERS : ANY; }

CPU_INLINE float raised(float b, float beta, int power)
{
  const float root = sqrtf(b);
  return power == NONE ? 1.0f : power == THREE_QUARTERS ? 1.0f / (root * sqrtf(root)) : m_exp(-beta * m_log(b));
}

CPU_INLINE void scale_by(const normalizer *s, float *restrict x, const float *restrict sum, int power, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) x[i] *= raised(s->k + s->alpha * sum[i], s->beta, power);
}

static void scale(const normalizer *s, float *x, const float *sum, int64_t n)
{
  switch (power_of(s)) {
  case NONE:           scale_by(s, x, sum, NONE, n); break;
  case THREE_QUARTERS: scale_by(s, x, sum, THREE_QUARTERS, n); break;
  default:             scale_by(s, x, sum, ANY, n); break;
  }
}

/* dy becomes g, and the sum of squares becomes g x/b. */
CPU_INLINE void spread_by(const normalizer *s, float *restrict dy, const float *restrict x, float *restrict sum, int power, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float b = s->k + s->alpha * sum[i];
    dy[i] *= raised(b, s->beta, power);
    sum[i] = dy[i] * x[i] / b;
  }
}

static void spread(const normalizer *s, float *dy, const float *x, float *sum, int64_t n)
{
  switch (power_of(s)) {
  case NONE:           spread_by(s, dy, x, sum, NONE, n); break;
  case THREE_QUARTERS: spread_by(s, dy, x, sum, THREE_QUARTERS, n); break;
  default:             spread_by(s, dy, x, sum, ANY, n); break;
  }
}

static void gather(float by, float *restrict g, const float *restrict x, const float *restrict sum, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) g[i] -= by * (x[i] * sum[i]);       /* in this order: by x may be 0 where sum is infinite */
}

/* ---- where squares leave f32's range: element by element, in double ------------------------------------------------ */

static bool all_finite(const float *x, int64_t n)
{
  int others = 0;
#pragma omp simd reduction(|: others)
  for (int64_t i = 0; i < n; i++) others |= x[i] - x[i] != 0;
  return !others;
}

static double over_window(const normalizer *s, const float *x, const float *dy, int64_t i, bool mirrored);
static double base_at(const normalizer *s, const float *x, int64_t i)
{
  return (double)s->k + (double)s->alpha * over_window(s, x, NULL, i, false);
}

/* The sum of x^2 over the window at i; with dy, of dy x b^-(beta+1), b being that at each place. */
static double over_window(const normalizer *s, const float *x, const float *dy, int64_t i, bool mirrored)
{
  const int64_t before = mirrored ? s->after : s->before, after = mirrored ? s->before : s->after;
  int64_t low[3] = { 0 }, high[3] = { 0 }, step[3] = { 0 };
  for (int d = 0; d < s->dims; d++) {
    const int64_t at = i / s->inner[d] % s->n[d];
    low[d] = -qn_min_i64(before, at), high[d] = qn_min_i64(after, s->n[d] - 1 - at), step[d] = s->inner[d];
  }
  double sum = 0;
  for (int64_t o = low[0]; o <= high[0]; o++)
    for (int64_t p = low[1]; p <= high[1]; p++)
      for (int64_t q = low[2]; q <= high[2]; q++) {
        const int64_t j = i + o * step[0] + p * step[1] + q * step[2];
        sum += (double)x[j] * (dy ? (double)dy[j] * pow(base_at(s, x, j), -(double)s->beta - 1) : (double)x[j]);
      }
  return sum;
}

/* As normalize. to: scratch */
static void normalize_far(const normalizer *s, float *y, const float *x, float *to, int64_t n)
{
  const double by = 2 * (double)s->alpha * (double)s->beta;
  for (int64_t i = 0; i < n; i++) {
    const double g = (double)y[i] * pow(base_at(s, x, i), -(double)s->beta);
    to[i] = (float)(s->backward ? g - by * ((double)x[i] * over_window(s, x, y, i, true)) : g);
  }
  memcpy(y, to, (size_t)n * sizeof *y);
}

/* a: the sums of squares; b: scratch */
static void finish(const normalizer *s, float *y, float *x, float *a, float *b, int64_t n)
{
  if (s->backward) {
    spread(s, y, x, a, n);
    sum_windows(s, &a, &b, true, n);
    gather(2 * s->alpha * s->beta, y, x, a, n);
  } else {
    scale(s, y, a, n);
  }
}

/* y = x, or dx = dy, in place; a, b: scratch. */
static void normalize(const normalizer *s, float *y, float *x, float *a, float *b, int64_t n)
{
  squares(a, x, n);
  sum_windows(s, &a, &b, false, n);
  const bool plain = all_finite(a, n);
  const int64_t slab = plain ? n : s->n[0] * s->inner[0];  /* elements that have windows in common */
  for (int64_t i = 0; i < n; i += slab)
    if (plain || all_finite(a + i, slab)) finish(s, y + i, x + i, a + i, b + i, slab);
    else normalize_far(s, y + i, x + i, b + i, slab);
}

/* The same with means, in whose place dmeans is stored. */
static void normalize_about(const normalizer *s, float *y, float *x, float *m, float *a, float *b, int32_t *index, int64_t n)
{
  const float by = 2 * s->alpha * s->beta;
  const int64_t extent = s->n[s->dims - 1], inner = s->inner[s->dims - 1];
  for (int64_t i = 0; i < extent; i++)
    for (int64_t j = 0; j < inner; j++) index[i * inner + j] = (int32_t)i;
  memset(index + extent * inner, 0, CPU_LANES * sizeof *index);      /* read by a row's last vector beyond its end */
  sum_taps(s, SQUARES, a, x, m, NULL, index, n);
  if (!s->backward) {
    scale(s, y, a, n);
    return;
  }
  spread(s, y, x, a, n);
  sum_taps(s, SHARES, b, x, m, a, index, n);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] -= by * b[i];
  if (s->dmeans < 0) return;
  sum_taps(s, DISTANCES, b, x, m, NULL, index, n);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) m[i] = by * (a[i] * b[i]);
}

/* In scratch a tile's runs follow one another, each of the tile's length. */
static void one_tile(const normalizer *s, const qn_launch *launch, int64_t tile, float *memory)
{
  const int64_t block = tile % s->blocks, length = qn_min_i64(s->length, s->extent - block * s->length);
  const int64_t at = tile / s->blocks * s->tile_step + block * s->length, all = s->runs * length;
  int32_t *index = (int32_t *)memory;
  float *x = s->means < 0 ? memory : memory + 2 * row_floats(s), *a = x + floats(s), *b = a + floats(s);
  float *dy = s->backward ? b + floats(s) : x, *m = (s->backward ? dy : b) + floats(s);
  const char *from = launch->ptr[s->in], *from_x = launch->ptr[s->x], *means = s->means < 0 ? NULL : launch->ptr[s->means];
  char *to = launch->ptr[s->out], *to_means = s->dmeans < 0 ? NULL : launch->ptr[s->dmeans];
  normalizer t = *s;
  for (int d = 0; d < t.dims; d++)
    if (t.inner[d] % t.length == 0) t.inner[d] = t.inner[d] / t.length * length;
  for (int64_t r = 0; r < s->runs; r++) {
    row_to_f32(dy + r * length, from + (at + r * s->step) * s->bytes, s->dtype, length);
    if (s->backward) row_to_f32(x + r * length, from_x + (at + r * s->step) * s->bytes, s->dtype, length);
    if (means) row_to_f32(m + r * length, means + (at + r * s->step) * s->bytes, s->dtype, length);
  }
  if (means) normalize_about(&t, dy, x, m, a, b, index, all);
  else normalize(&t, dy, x, a, b, all);
  for (int64_t r = 0; r < s->runs; r++) {
    row_from_f32(to + (at + r * s->step) * s->bytes, dy + r * length, s->dtype, length);
    if (to_means) row_from_f32(to_means + (at + r * s->step) * s->bytes, m + r * length, s->dtype, length);
  }
}

CPU_RUNS(cpu_lrn_tiles_run);
qn_status CPU_NAME(cpu_lrn_tiles_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const normalizer *s = prepared->state;
  const int threads = (int)qn_min_i64(cpu_threads(launch, s->tiles * s->runs * s->length * 4), s->tiles);
  const int64_t share = qn_ceil_div(s->tiles, threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int64_t first = 0; first < s->tiles; first += share) {
    float *memory = (float *)launch->workspace + first / share * scratch(s);
    for (int64_t i = first; i < qn_min_i64(first + share, s->tiles); i++) one_tile(s, launch, i, memory);
  }
  return QN_OK;
}

/* ---- prepare ---------------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  const qn_local_norm *a = op->attr;
  const bool backward = op->op == QN_OP_LRN_BACKWARD, within = a->region == QN_LOCAL_WITHIN;
  normalizer s = { .in = qn_role(op, 0), .x = qn_role(op, QN_ROLE_LRN_X + backward), .means = qn_role(op, QN_ROLE_LRN_MEANS + backward),
                   .out = qn_role(op, QN_ROLE_LRN_Y + backward), .dmeans = backward ? qn_role(op, QN_ROLE_LRN_BACKWARD_DMEANS) : -1,
                   .backward = backward };
  const qn_value *x = &request->value[s.x], *in = &request->value[s.in], *out = &request->value[s.out];
  if (x->dtype == QN_F64) return qn_refuse(prepared, "accumulates in f32", "x", "f32, f16 or bf16", "%s", "f64");
  const bool packed = qn_is_packed(x), last = qn_is_channels_last(x);
  if ((!packed && !last) || !qn_same_layout(x, in) || !qn_same_layout(x, out) ||
      (s.means >= 0 && !qn_same_layout(x, &request->value[s.means])) || (s.dmeans >= 0 && !qn_same_layout(x, &request->value[s.dmeans])))
    return qn_refuse(prepared, "tensors are packed and alike, channels first or last", "x", "one layout", "%s", "strides");
  int64_t places = 1;
  double n = 1;
  for (int d = 2; d < x->rank; d++) places *= x->dim[d];
  const int64_t channels = x->dim[1], images = x->dim[0];
  s.dtype = x->dtype, s.bytes = qn_kit_bytes(x->dtype);
  s.before = (a->size - 1) / 2, s.after = a->size / 2;
  const bool side_by_side = !packed || places == 1;
  if (within) {
    s.dims = x->rank - 2;
    int64_t inner = side_by_side ? qn_min_i64(channels, BLOCK) : 1;
    for (int d = s.dims - 1; d >= 0; inner *= s.n[d], d--) s.n[d] = x->dim[2 + d], s.inner[d] = inner;
    for (int d = 0; d < s.dims; d++) n *= (double)a->size;
    s.runs = side_by_side ? places : 1;
    s.length = side_by_side ? qn_min_i64(channels, BLOCK) : places;
    s.step = s.extent = side_by_side ? channels : places;
    s.tile_step = side_by_side ? places * channels : places;
    s.tiles = side_by_side ? images : images * channels;
  } else {
    n = (double)a->size;
    s.dims = 1, s.n[0] = channels, s.inner[0] = side_by_side ? 1 : qn_min_i64(places, BLOCK);
    s.runs = side_by_side ? 1 : channels;
    s.length = side_by_side ? qn_max_i64(1, qn_min_i64(ROWS / channels, images * places)) * channels : qn_min_i64(places, BLOCK);
    s.step = places, s.extent = side_by_side ? images * places * channels : places;
    s.tile_step = places * channels;
    s.tiles = side_by_side ? 1 : images;
  }
  if (s.means >= 0 && s.n[s.dims - 1] > INT32_MAX)
    return qn_refuse(prepared, "number of positions in the last dim", "x", "below 2^31", "%lld", (long long)s.n[s.dims - 1]);
  s.blocks = qn_ceil_div(s.extent, s.length);
  s.tiles *= s.blocks;
  s.k = (float)a->k, s.alpha = (float)(a->alpha / n), s.beta = (float)a->beta;
  prepared->workspace = (uint64_t)(request->demands->threads * scratch(&s)) * sizeof(float);
  return cpu_keep(prepared, &s, sizeof s);
}

#define LRN_ROW(anchor, engine, function)                                                          \
  { .name = engine, .op = anchor, .class_ = QN_CLASS_TUNED,                                           \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT,                                     \
    .prepare = prepare, .run = function, .release = cpu_release },
#define LRN_ROWS(engine, function) LRN_ROW(QN_OP_LRN, engine, function) LRN_ROW(QN_OP_LRN_BACKWARD, engine, function)
static const qn_engine row[] = { CPU_COPIES(LRN_ROWS, "tiles", cpu_lrn_tiles_run) };
const qn_engine_list cpu_lrn_tiles = { row, sizeof row / sizeof *row };
#endif
