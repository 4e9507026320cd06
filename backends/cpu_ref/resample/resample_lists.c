/* resample_lists.c -- resample and its gradient by lists: for each output element, in each dim, its source elements and their
 * weights. prepare builds the lists; y from x and dx from dy differ in nothing else. Of a long list BURST terms are added in real, and
 * these in double.
 *
 *   channels last   an element's channels are the weighted sum of its sources' channels, four at a time; or as below, if that is less work
 *   otherwise       the source rows of an output row are summed, then each of its elements from that row */
#include "kit/convert.h"
#include "cpu_ref.h"

enum { GRAIN = 16384,                     /* multiply-adds that justify one more thread */
       AT_ONCE = 4,                       /* rows summed in one pass */
       BURST = 256,                       /* terms of a long list that are added in real */
       LONGEST = 32768 };                 /* elements of a row whose sum stays in cache */

/* Output element o has entries begin[o] to begin[o + 1] - 1; each: the number for every o, 0 if it varies. */
typedef struct list { int32_t *begin, *source, each; real *weight; } list;

typedef struct resampling {
  int32_t  in, out, threads;              /* in, out: values of the request; threads: that the workspace is sized for */
  uint32_t dtype;
  bool     channels_last, rows_first;     /* rows_first: with channels last, sum rows before elements */
  int64_t  bytes, n, c, in_dim[3], out_dim[3], in_stride[5], out_stride[5];
  int64_t  sources, scratch;              /* per thread: rows, floats */
  list     list[3];
} resampling;

/* ---- sums of rows ----------------------------------------------------------------------------------------------- */

typedef struct rows {
  real *sum, *wide;                      /* wide: AT_ONCE widened rows, if x is narrower */
  double *total;                          /* of a long list's bursts */
  int64_t n, added;                       /* added: times AT_ONCE rows */
  uint32_t dtype;
  int taken;
  bool begun;                             /* sum holds something */
  const real *row[AT_ONCE];
  real weight[AT_ONCE];
} rows;

/* In scratch of ROWS n reals, which begins with the doubles. */
enum { ROWS = 3 + AT_ONCE };
static rows rows_in(real *scratch, int64_t n, uint32_t dtype)
{
  return (rows){ .total = (double *)(void *)scratch, .sum = scratch + 2 * n, .wide = scratch + 3 * n, .n = n, .dtype = dtype };
}

CPU_INLINE void add_some(real *restrict sum, bool begun, const real *const *row, const real *weight, int some, int64_t n)
{
  const real *a = row[0], *b = row[1], *c = row[2], *d = row[3], w = weight[0], x = weight[1], y = weight[2], z = weight[3];
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    real s = (begun ? sum[i] : 0) + w * a[i];
    if (some > 1) s += x * b[i];
    if (some > 2) s += y * c[i];
    if (some > 3) s += z * d[i];
    sum[i] = s;
  }
}

CPU_INLINE void add_any(const rows *r, bool begun)
{
  switch (r->taken) {
  case 1:  add_some(r->sum, begun, r->row, r->weight, 1, r->n); break;
  case 2:  add_some(r->sum, begun, r->row, r->weight, 2, r->n); break;
  case 3:  add_some(r->sum, begun, r->row, r->weight, 3, r->n); break;
  default: add_some(r->sum, begun, r->row, r->weight, 4, r->n); break;
  }
}

static void add_taken(rows *r)
{
  if (r->begun) add_any(r, true);
  else add_any(r, false);
  r->begun = true;
  r->taken = 0;
  if (++r->added % (BURST / AT_ONCE)) return;
  const bool first = r->added == BURST / AT_ONCE;
#pragma omp simd
  for (int64_t i = 0; i < r->n; i++) {
    r->total[i] = (first ? 0 : r->total[i]) + (double)r->sum[i];
    r->sum[i] = 0;
  }
}

/* Adds the remaining rows; the sum of no rows is 0. */
static void end_rows(rows *r)
{
  if (r->taken) add_taken(r);
  else if (!r->begun) memset(r->sum, 0, (size_t)r->n * sizeof(real));
  if (r->added < BURST / AT_ONCE) return;
#pragma omp simd
  for (int64_t i = 0; i < r->n; i++) r->sum[i] = (real)(r->total[i] + (double)r->sum[i]);
}

CPU_INLINE void take_row(rows *r, const char *in, real weight)
{
  r->row[r->taken] = (const real *)(const void *)in;
  if (r->dtype != CPU_REAL) {
    real *wide = r->wide + r->taken * r->n;
    row_to_real(wide, in, r->dtype, r->n);
    r->row[r->taken] = wide;
  }
  r->weight[r->taken++] = weight;
  if (r->taken == AT_ONCE) add_taken(r);
}

/* ---- a row of the output ------------------------------------------------------------------------------------------ */

typedef struct source { const char *row; real weight; } source;

/* The source rows of output row (o0, o1). */
static int64_t sources_of(const resampling *s, const char *in, int64_t o0, int64_t o1, source *to)
{
  const list *l = s->list;
  int64_t n = 0;
  for (int32_t a = l[0].begin[o0]; a < l[0].begin[o0 + 1]; a++)
    for (int32_t b = l[1].begin[o1]; b < l[1].begin[o1 + 1]; b++)
      to[n++] = (source){ in + (l[0].source[a] * s->in_stride[2] + l[1].source[b] * s->in_stride[3]) * s->bytes,
                          l[0].weight[a] * l[1].weight[b] };
  return n;
}

/* Channels last: elements of one row, each from the same number of sources. */
CPU_INLINE void sum_each_channels(real *y, int64_t y_apart, const real *x, int64_t x_apart, const list *l, int each, int64_t places,
                                  int64_t n)
{
  for (int64_t o = 0; o < places; o++) {
    const real *row[AT_ONCE] = { NULL };
    real weight[AT_ONCE] = { 0 };
    for (int k = 0; k < each; k++) row[k] = x + l->source[o * each + k] * x_apart, weight[k] = l->weight[o * each + k];
    add_some(y + o * y_apart, false, row, weight, each, n);
  }
}

/* Returns whether it was done. */
static bool sum_channels(const resampling *s, const real *x, int64_t x_apart, char *out)
{
  const list *l = &s->list[2];
  const int64_t apart = s->out_stride[4], places = s->out_dim[2], n = s->c;
  real *y = (real *)(void *)out;
  if (s->dtype != CPU_REAL) return false;
  switch (l->each) {
  case 1:  sum_each_channels(y, apart, x, x_apart, l, 1, places, n); return true;
  case 2:  sum_each_channels(y, apart, x, x_apart, l, 2, places, n); return true;
  case 4:  sum_each_channels(y, apart, x, x_apart, l, 4, places, n); return true;
  default: return false;
  }
}

/* Channels last: each element from its sources. */
static void row_of_channels(const resampling *s, const source *from, int64_t n, char *out, real *scratch)
{
  const list *l = &s->list[2];
  const int64_t apart = s->in_stride[4] * s->bytes;
  if (n == 1 && from->weight == 1 && sum_channels(s, (const real *)(const void *)from->row, s->in_stride[4], out)) return;
  rows r = rows_in(scratch, s->c, s->dtype);
  for (int64_t o = 0; o < s->out_dim[2]; o++) {
    char *at = out + o * s->out_stride[4] * s->bytes;
    if (s->dtype == CPU_REAL) r.sum = (real *)(void *)at;
    r.begun = false, r.added = 0;
    for (int32_t c = l->begin[o]; c < l->begin[o + 1]; c++)
      for (int64_t k = 0; k < n; k++) take_row(&r, from[k].row + l->source[c] * apart, from[k].weight * l->weight[c]);
    end_rows(&r);
    if (s->dtype != CPU_REAL) row_from_real(at, r.sum, s->dtype, s->c);
  }
}

/* The sum of whole rows; a single row of weight 1 is returned in place. */
static const real *sum_rows(const resampling *s, const source *from, int64_t n, rows *r)
{
  if (s->dtype == CPU_REAL && n == 1 && from->weight == 1) return (const real *)(const void *)from->row;
  for (int64_t k = 0; k < n; k++) take_row(r, from[k].row, from[k].weight);
  end_rows(r);
  return r->sum;
}

/* Channels last: rows first, then elements. */
static void row_of_channels_by_rows(const resampling *s, const source *from, int64_t n, char *out, real *scratch)
{
  const list *l = &s->list[2];
  const int64_t length = s->in_dim[2] * s->c;
  rows of_rows = rows_in(scratch, length, s->dtype);
  const real *const x = sum_rows(s, from, n, &of_rows);
  if (sum_channels(s, x, s->c, out)) return;
  rows r = { .sum = of_rows.wide + AT_ONCE * length, .total = of_rows.total, .n = s->c, .dtype = CPU_REAL };
  for (int64_t o = 0; o < s->out_dim[2]; o++) {
    char *at = out + o * s->out_stride[4] * s->bytes;
    if (s->dtype == CPU_REAL) r.sum = (real *)(void *)at;
    r.begun = false, r.added = 0;
    for (int32_t c = l->begin[o]; c < l->begin[o + 1]; c++) {
      if (r.taken == AT_ONCE) add_taken(&r);
      r.row[r.taken] = x + l->source[c] * s->c;
      r.weight[r.taken++] = l->weight[c];
    }
    end_rows(&r);
    if (s->dtype != CPU_REAL) row_from_real(at, r.sum, s->dtype, s->c);
  }
}

/* Elements of one row, each from the same number of sources. */
CPU_INLINE void sum_each(real *restrict y, const real *restrict x, const list *l, int each, int64_t n)
{
  for (int64_t o = 0; o < n; o++) {
    real total = 0;
    for (int k = 0; k < each; k++) total += l->weight[o * each + k] * x[l->source[o * each + k]];
    y[o] = total;
  }
}

CPU_INLINE real sum_list(const real *restrict x, const list *l, int32_t c, int32_t end)
{
  real sum = 0;
  for (; c < end; c++) sum += l->weight[c] * x[l->source[c]];
  return sum;
}

static void sum_places(real *restrict y, const real *restrict x, const list *l, int64_t n)
{
  switch (l->each) {
  case 1: sum_each(y, x, l, 1, n); return;
  case 2: sum_each(y, x, l, 2, n); return;
  case 4: sum_each(y, x, l, 4, n); return;
  }
  for (int64_t o = 0; o < n; o++) {
    double total = 0;                     /* of a long list's parts */
    int32_t c = l->begin[o];
    const int32_t end = l->begin[o + 1];
    for (; end - c > BURST; c += BURST) total += (double)sum_list(x, l, c, c + BURST);
    y[o] = (real)(total + (double)sum_list(x, l, c, end));
  }
}

/* One channel: rows first, then elements. */
static void row_of_places(const resampling *s, const source *from, int64_t n, char *out, real *scratch)
{
  rows r = rows_in(scratch, s->in_dim[2], s->dtype);
  real *y = s->dtype == CPU_REAL ? (real *)(void *)out : r.wide + AT_ONCE * r.n;
  sum_places(y, sum_rows(s, from, n, &r), &s->list[2], s->out_dim[2]);
  if (s->dtype != CPU_REAL) row_from_real(out, y, s->dtype, s->out_dim[2]);
}

/* ---- run -------------------------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_resample_lists_run);
qn_status CPU_NAME(cpu_resample_lists_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const resampling *s = prepared->state;
  const int64_t images = s->channels_last ? s->n : s->n * s->c, plane = s->out_dim[0] * s->out_dim[1], rows = images * plane;
  const int64_t work = s->n * s->c * (plane * s->out_dim[2] + s->in_dim[0] * s->in_dim[1] * s->in_dim[2]) * 2;
  const int threads = (int)qn_min_i64(qn_min_i64(launch->threads, s->threads), 1 + work / GRAIN);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int t = 0; t < threads; t++) {
    source *sources = (source *)launch->workspace + t * s->sources;
    real *scratch = (real *)((source *)launch->workspace + threads * s->sources) + t * s->scratch;
    for (int64_t row = rows * t / threads; row < rows * (t + 1) / threads; row++) {
      const int64_t image = row / plane, o0 = row % plane / s->out_dim[1], o1 = row % s->out_dim[1];
      const int64_t n = s->channels_last ? image : image / s->c, c = s->channels_last ? 0 : image % s->c;
      const char *in = (const char *)launch->ptr[s->in] + (n * s->in_stride[0] + c * s->in_stride[1]) * s->bytes;
      char *out = (char *)launch->ptr[s->out]
                + (n * s->out_stride[0] + c * s->out_stride[1] + o0 * s->out_stride[2] + o1 * s->out_stride[3]) * s->bytes;
      const int64_t n_sources = sources_of(s, in, o0, o1, sources);
      if (s->rows_first) row_of_channels_by_rows(s, sources, n_sources, out, scratch);
      else if (s->channels_last) row_of_channels(s, sources, n_sources, out, scratch);
      else row_of_places(s, sources, n_sources, out, scratch);
    }
  }
  return QN_OK;
}

/* ---- prepare -------------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static double cubic(double z, double a)   /* Keys' kernel */
{
  z = fabs(z);
  return z <= 1 ? ((a + 2) * z - (a + 3)) * z * z + 1 : ((a * z - 5 * a) * z + 8 * a) * z - 4 * a;
}

/* The points of y in one dim: x and y are the extents, ratio_x / ratio_y is X/P in coordinates. */
typedef struct points { int64_t x, y, ratio_x, ratio_y; } points;

/* The taps of point i; returns their number. */
static int taps_of(const qn_resampling *a, const points *p, int64_t i, int32_t place[4], double weight[4])
{
  int64_t over = i * p->ratio_x, under = p->ratio_y;
  if (a->grid == QN_GRID_HALF_PIXEL) over = (2 * i + 1) * p->ratio_x - p->ratio_y, under = 2 * p->ratio_y;
  else if (a->grid == QN_GRID_ALIGN_CORNERS) over = p->y > 1 ? i * (p->x - 1) : 0, under = p->y > 1 ? p->y - 1 : 1;
  if (a->mode == QN_RESAMPLE_NEAREST) qn_round_place(a, &over, &under);
  const int64_t below = qn_floor_div(over, under);
  const double t = (double)(over - below * under) / (double)under, u = (double)(under - over + below * under) / (double)under;
  const int n = a->mode == QN_RESAMPLE_NEAREST ? 1 : a->mode == QN_RESAMPLE_LINEAR ? 2 : 4;
  for (int k = 0; k < n; k++) {
    place[k] = (int32_t)qn_max_i64(0, qn_min_i64(below + k - (n == 4), p->x - 1));
    weight[k] = n == 1 ? 1 : n == 2 ? (k ? t : u) : cubic(k < 2 ? t + 1 - k : u + k - 2, a->coefficient);
  }
  return n;
}

static double wide_kernel(const qn_resampling *a, const points *p, int64_t i, int64_t j)
{
  const int64_t x = p->ratio_x, y = p->ratio_y;
  const double z = fabs((double)((2 * j + 1) * y - (2 * i + 1) * x)) / (double)(2 * qn_max_i64(x, y));
  return a->mode == QN_RESAMPLE_LINEAR ? (z < 1 ? 1 - z : 0) : z < 2 ? cubic(z, a->coefficient) : 0;
}

/* fill_list's pass for antialias: the elements of x that the widened kernel of point i covers. */
static void enter_wide(list *l, const qn_resampling *a, const points *p, int64_t i, bool backward, bool fill)
{
  const int64_t x = p->ratio_x, y = p->ratio_y, reach = 2 * qn_max_i64(x, y) * (a->mode == QN_RESAMPLE_CUBIC ? 2 : 1);
  const int64_t first = qn_max_i64(0, qn_floor_div((2 * i + 1) * x - reach - y, 2 * y)),
      end = qn_min_i64(p->x, qn_floor_div((2 * i + 1) * x + reach - y, 2 * y) + 2);
  double sum = 0;
  for (int64_t j = first; j < end; j++) sum += wide_kernel(a, p, i, j);
  for (int64_t j = first; j < end; j++) {
    const double w = wide_kernel(a, p, i, j);
    if (w == 0) continue;
    int32_t *at = &l->begin[(backward ? j : i) + 1];
    if (fill) {
      l->source[*at] = (int32_t)(backward ? i : j);
      l->weight[*at] = (real)(w / sum);
    }
    ++*at;
  }
}

/* Enters all points' taps under the point (forward) or the tap (backward), in the order of points. Taps of weight 0 are left out. Equal
 * taps of a point are merged only backward: forward each must see its infinity. */
static void fill_list(list *l, const qn_resampling *a, const points *p, bool backward)
{
  const int64_t outputs = backward ? p->x : p->y;
  for (int pass = 0; pass < 2; pass++) {  /* count, then fill: begin[o] ends as o's end */
    for (int64_t i = 0; i < p->y; i++) {
      int32_t place[4];
      double weight[4];
      if (a->antialias) {
        enter_wide(l, a, p, i, backward, pass);
        continue;
      }
      const int n = taps_of(a, p, i, place, weight);
      for (int k = 0; k < n; k++) {
        double sum = backward ? 0 : weight[k];
        bool first = true;
        for (int j = 0; j < n && backward; j++) {
          if (place[j] != place[k]) continue;
          sum += weight[j];
          first &= j >= k;
        }
        if (!first || sum == 0) continue;
        int32_t *at = &l->begin[(backward ? place[k] : i) + 1];
        if (pass) {
          l->source[*at] = (int32_t)(backward ? i : place[k]);
          l->weight[*at] = (real)sum;
        }
        ++*at;
      }
    }
    if (pass) return;
    for (int64_t o = outputs; o > 0; o--) l->begin[o] = l->begin[o - 1];      /* shift by one: begin[o] is again where o begins */
    l->begin[0] = 0;
    for (int64_t o = 1; o <= outputs; o++) l->begin[o] += l->begin[o - 1];
  }
}

static int64_t most_entries(const list *l, int64_t outputs)
{
  int64_t most = 0;
  for (int64_t o = 0; o < outputs; o++) most = qn_max_i64(most, l->begin[o + 1] - l->begin[o]);
  return most;
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  const qn_value *in = &request->value[op->arg[0]], *out = &request->value[op->arg[1]];
  const bool backward = op->op == QN_OP_RESAMPLE_BACKWARD;
  const int taps = 1 << ((const qn_resampling *)op->attr)->mode;
  if ((in->dtype == QN_F64) != (CPU_REAL == QN_F64))
    return qn_refuse(prepared, "accumulates in " CPU_REAL_NAME, "x", CPU_REALS, "%s", qn_kit_name(in->dtype));
  resampling s = { .in = op->arg[0], .out = op->arg[1], .dtype = in->dtype, .bytes = qn_kit_bytes(in->dtype), .n = out->dim[0],
                   .c = out->dim[1], .threads = request->demands->threads };
  int64_t bytes = 0, entries[3], most[3];
  for (int d = 0; d < 3; d++) s.in_dim[d] = s.out_dim[d] = 1;
  for (int d = 0; d < in->rank; d++) {
    const int to = d < 2 ? d : d + 5 - in->rank;
    s.in_stride[to] = in->stride[d], s.out_stride[to] = out->stride[d];
    if (d >= 2) s.in_dim[to - 2] = in->dim[d], s.out_dim[to - 2] = out->dim[d];
  }
  for (int d = 0; d < 3; d++) {
    if (s.in_dim[d] > 1 << 24 || s.out_dim[d] > 1 << 24)
      return qn_refuse(prepared, "lists of 2^24 places", "x", "smaller extents", "%lld", (long long)s.in_dim[d]);
    const int64_t points = backward ? s.in_dim[d] : s.out_dim[d];
    const bool widened = ((const qn_resampling *)op->attr)->antialias;
    const int64_t wide = widened ? (backward ? s.out_dim[d] : s.in_dim[d]) / qn_max_i64(points, 1) + 2 : 1;
    entries[d] = qn_round_up(points * taps * wide, 2);
    bytes += (qn_round_up(s.out_dim[d] + 2, 2) + entries[d]) * (int64_t)sizeof(int32_t) + entries[d] * (int64_t)sizeof(real);
  }
  s.channels_last = s.c > 1 && s.in_stride[1] == 1 && s.out_stride[1] == 1;
  if (!s.channels_last && ((s.in_dim[2] > 1 && s.in_stride[4] != 1) || (s.out_dim[2] > 1 && s.out_stride[4] != 1)))
    return qn_refuse(prepared, "rows, or channels, are contiguous in both", "x", "stride 1 in one of both", "%lld",
                     (long long)s.in_stride[4]);
  char *memory = cpu_state(prepared, sizeof s + (size_t)bytes);
  if (!memory) return QN_NO_MEMORY;
  int32_t *at = (int32_t *)(void *)(memory + sizeof s);
  for (int d = 0; d < 3; d++) {
    s.list[d] = (list){ .begin = at, .source = at + qn_round_up(s.out_dim[d] + 2, 2) };
    s.list[d].weight = (real *)(void *)(s.list[d].source + entries[d]);
    at = (int32_t *)(void *)(s.list[d].weight + entries[d]);
    points p = { .x = backward ? s.out_dim[d] : s.in_dim[d], .y = backward ? s.in_dim[d] : s.out_dim[d] };
    p.ratio_x = p.x, p.ratio_y = p.y;
    if (d >= 5 - in->rank) qn_resample_ratio(op->attr, d - (5 - in->rank), &p.ratio_x, &p.ratio_y);
    fill_list(&s.list[d], op->attr, &p, backward);
    most[d] = most_entries(&s.list[d], s.out_dim[d]);
    s.list[d].each = most[d] * s.out_dim[d] == s.list[d].begin[s.out_dim[d]] ? (int32_t)most[d] : 0;
  }
  const int64_t length = s.in_dim[2] * s.c, sums = most[0] * most[1] * most[2] * s.out_dim[2] * s.c;
  s.rows_first = s.channels_last && s.in_stride[4] == s.c && length <= LONGEST &&
                 most[0] * most[1] * length + most[2] * s.out_dim[2] * s.c < sums;
  s.scratch = qn_round_up(s.rows_first ? ROWS * length + s.c : s.channels_last ? ROWS * s.c
                          : ROWS * s.in_dim[2] + s.out_dim[2], 16);
  s.sources = qn_round_up(most[0] * most[1], 4);
  prepared->workspace = (uint64_t)s.threads * ((uint64_t)s.sources * sizeof(source) + (uint64_t)s.scratch * sizeof(real));
  memcpy(memory, &s, sizeof s);
  return QN_OK;
}

#define ROW(name_, run_, anchor)                                                                                     \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED,                                                            \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, .prepare = prepare, .run = run_, .release = cpu_release }
#define ROWS(name, run) ROW(name, run, QN_OP_RESAMPLE), ROW(name, run, QN_OP_RESAMPLE_BACKWARD),
static const qn_engine row[] = { CPU_COPIES(ROWS, "lists" CPU_REAL_SUFFIX, cpu_resample_lists_run) };
const qn_engine_list cpu_resample_lists = { row, sizeof row / sizeof *row };
#endif
