/* norm_columns.c -- normalization and its gradients where the fastest dim is one of columns that share statistics in groups or have
 * their own: batch, instance and group norm with channels last, batch norm per activation.
 *
 *   y = (x - mean) rstd scale + shift        dx = rstd (g - mean g - h mean(g h)), h = (x - mean) rstd, g = dy scale
 *
 * A plane (an image; for batch norm the batch) is rows of groups of `wide` columns; each group has its own statistics. A chunk of
 * rows, which stays in cache, gives a group's mean and the squares about it; chunks are merged in order:
 *   sum (x - mean)^2 = sum over chunks of their squares + n_k (mean_k - mean)^2.
 * The gradients need sums per column only: a group's are those weighted by scale. Each plane is done by one thread, or if planes are
 * few by all threads; each chunk is summed the same way by whichever thread, so the number of threads changes nothing. */
#include "kit/convert.h"
#include "cpu_ref.h"
#include "norm_range.h"
#include "norm_columns_loops.h"

enum { BAND = 4096 / sizeof(real),        /* columns at a time */
       CHUNK = 16384, LEAST_ROWS = 8, MOST_ROWS = 2048,       /* elements of a chunk; rows, however long or short */
       UNIT = 64,                         /* columns whose chunks are merged at a time, or one larger group */
       LONG = 64, LONG_IN_LONG_ROWS = 16 };       /* width of a group from which norm_runs is faster */
enum { X, Y, DY, SCALE, SHIFT, MEAN, RSTD, VAR, RUNNING_MEAN, RUNNING_VAR, NEW_MEAN, NEW_VAR, DSCALE, DSHIFT, TENSORS };
enum { BY_MEAN, BY_RSTD, BY_SUM, BY_ALONG, STATISTICS,                     /* per group of a plane */
       BY_POWER = BY_SUM };               /* forward: multiplies x; mean and rstd are those of the product (norm_range.h) */

typedef struct problem {
  bool     backward, centred, given;      /* given: mean and var are inputs */
  bool     own;                           /* each plane has its own scale and shift */
  int64_t  planes, rows, groups, wide, columns;
  int64_t  part, chunks;                  /* rows of a chunk, chunks of a plane */
  double   eps, momentum;
  int32_t  value[TENSORS];                /* -1: absent */
  uint32_t dtype[TENSORS];
  int64_t  step[TENSORS], inner[TENSORS]; /* from group to group, and between columns of a group */
  qn_nest  outer, nest;                   /* the planes, and the rows of one */
} problem;

/* ---- addresses ---------------------------------------------------------------------------------------------- */

typedef struct work {
  const problem *p;
  void *const *ptr;
  real  *by_group;                        /* [planes, STATISTICS, groups] */
  real  *by_column;                       /* [planes or 1, 2, columns]: scale and shift */
  real  *found;                           /* [planes, chunks, 2, groups]: means, squares; gradients: [.., columns]: sums of dy, dy h */
} work;

static real *by_group(const work *w, int64_t plane, int which) { return w->by_group + (plane * STATISTICS + which) * w->p->groups; }
static real *by_column(const work *w, int64_t plane, int second)
{
  return w->by_column + ((w->p->own ? plane : 0) * 2 + second) * w->p->columns;
}
static int64_t sums_of(const problem *p) { return p->backward ? p->columns : p->groups; }
static real *found(const work *w, int64_t plane, int64_t chunk, int second)
{
  return w->found + ((plane * w->p->chunks + chunk) * 2 + second) * sums_of(w->p);
}
static int64_t rows_of(const problem *p, int64_t chunk) { return qn_min_i64((chunk + 1) * p->part, p->rows) - chunk * p->part; }

static void begin_plane(const work *w, int64_t plane, qn_walk *at) { qn_walk_begin(at, &w->p->outer, w->p->outer.rank, plane); }

/* The address of a group's number, or its k-th column's. */
static char *place(const work *w, int t, const qn_walk *plane, int64_t group, int64_t k)
{
  const problem *p = w->p;
  if (p->value[t] < 0) return NULL;
  return (char *)w->ptr[p->value[t]] + (plane->offset[t] + group * p->step[t] + k * p->inner[t]) * qn_kit_bytes(p->dtype[t]);
}
static double number(const work *w, int t, const qn_walk *plane, int64_t group, int64_t k, double absent)
{
  const char *at = place(w, t, plane, group, k);
  return at ? qn_load_f64(at, w->p->dtype[t]) : absent;
}
static void put(const work *w, int t, const qn_walk *plane, int64_t group, double x)
{
  char *at = place(w, t, plane, group, 0);
  if (at) qn_store_f64(at, w->p->dtype[t], x);
}

/* n elements of t from column i of a row on: in place, or converted into buffer. */
static const real *piece(const work *w, int t, const qn_walk *plane, const qn_walk *row, int64_t i, int64_t n, real *buffer)
{
  const char *from = (const char *)w->ptr[w->p->value[t]] + (plane->offset[t] + row->offset[t] + i) * qn_kit_bytes(w->p->dtype[t]);
  if (w->p->dtype[t] == CPU_REAL) return (const real *)(const void *)from;
  row_to_real(buffer, from, w->p->dtype[t], n);
  return buffer;
}

/* ---- a chunk ------------------------------------------------------------------------------------------------ */

#define EACH_ROW(p, chunk, row)                                                                              \
  for (int64_t r_ = (qn_walk_begin(&row, &(p)->nest, (p)->nest.rank, (chunk) * (p)->part), rows_of(p, chunk)); \
       r_ > 0; r_--, qn_walk_next(&row))

/* n elements from column i on of the next rows, of which `left` are left; returns how many. */
static int next_rows(const work *w, const qn_walk *plane, qn_walk *row, int64_t left, int64_t i, int64_t n, real buffer[][BAND],
                     const real *x[TOGETHER])
{
  const int rows = (int)qn_min_i64(TOGETHER, left);
  for (int k = 0; k < rows; k++, qn_walk_next(row)) x[k] = piece(w, X, plane, row, i, n, buffer[k]);
  return rows;
}

#define EACH_ROWS(w, chunk, plane, row, i, n, buffer, x, rows)                                                           \
  for (int64_t left_ = (qn_walk_begin(&row, &(w)->p->nest, (w)->p->nest.rank, (chunk) * (w)->p->part), rows_of((w)->p, chunk)), rows;   \
       left_ > 0 && (rows = next_rows(w, &plane, &row, left_, i, n, buffer, x), 1); left_ -= rows)

/* Bands of whole groups, or of part of a wider one: their means, then the squares about them. */
static void look_forward(const work *w, int64_t plane, int64_t chunk)
{
  const problem *p = w->p;
  real *mean = found(w, plane, chunk, 0), *squares = found(w, plane, chunk, 1);
  real column[BAND], rest[BAND], from[TOGETHER][BAND], sum[BAND], buffer[BAND];
  const real *x[TOGETHER];
  const int64_t together = qn_max_i64(1, BAND / p->wide);
  const real count = (real)rows_of(p, chunk) * (real)p->wide;
  qn_walk at, row;
  begin_plane(w, plane, &at);
  memset(mean, 0, (size_t)(2 * p->groups) * sizeof *mean);
  for (int64_t g = 0; g < p->groups; g += together) {
    const int64_t groups = qn_min_i64(together, p->groups - g), first = g * p->wide, width = groups * p->wide;
    for (int64_t i = 0; i < width && p->centred; i += BAND) {
      const int64_t n = qn_min_i64(BAND, width - i);
      memset(column, 0, sizeof column);
      EACH_ROWS(w, chunk, at, row, first + i, n, from, x, rows) add_rows(column, x, (int)rows, n);
      fold(mean + g, column, n, p->wide);
    }
    for (int64_t k = 0; k < groups; k++) mean[g + k] /= count;
    memset(sum, 0, sizeof sum);
    for (int64_t i = 0; i < width; i += BAND) {
      const int64_t n = qn_min_i64(BAND, width - i);
      const real *about = spread(mean + g, i, n, p->wide, buffer);
      memset(column, 0, sizeof column);
      memset(rest, 0, sizeof rest);
      EACH_ROWS(w, chunk, at, row, first + i, n, from, x, rows) add_spreads(rest, column, x, (int)rows, about, n);
      fold(squares + g, column, n, p->wide);
      fold(sum, rest, n, p->wide);
    }
    for (int64_t k = 0; k < groups && p->centred; k++) {
      if (!isfinite(mean[g + k])) continue;
      const real off = sum[k] / count, moved = mean[g + k] + off;
      squares[g + k] -= count * off * off;
      mean[g + k] = moved;
    }
  }
}

static void look_backward(const work *w, int64_t plane, int64_t chunk)
{
  const problem *p = w->p;
  real *sum = found(w, plane, chunk, 0), *along = found(w, plane, chunk, 1);
  real from[BAND], given[BAND], buffer[2][BAND];
  qn_walk at, row;
  begin_plane(w, plane, &at);
  memset(sum, 0, (size_t)(2 * p->columns) * sizeof *sum);
  for (int64_t i = 0; i < p->columns; i += BAND) {
    const int64_t n = qn_min_i64(BAND, p->columns - i);
    const real *mean = spread(by_group(w, plane, BY_MEAN), i, n, p->wide, buffer[0]);
    const real *rstd = spread(by_group(w, plane, BY_RSTD), i, n, p->wide, buffer[1]);
    EACH_ROW(p, chunk, row)
      add_along(sum + i, along + i, piece(w, DY, &at, &row, i, n, given), piece(w, X, &at, &row, i, n, from), mean, rstd, n);
  }
}

static void write(const work *w, int64_t plane, int64_t chunk)
{
  const problem *p = w->p;
  real from[BAND], given[BAND], to[BAND], buffer[STATISTICS][BAND];
  qn_walk at, row;
  begin_plane(w, plane, &at);
  for (int64_t i = 0; i < p->columns; i += BAND) {
    const int64_t n = qn_min_i64(BAND, p->columns - i);
    const real *scale = by_column(w, plane, 0) + i, *shift = by_column(w, plane, 1) + i, *by[STATISTICS] = { NULL };
    const int64_t g = i / p->wide, groups = (i + n - 1) / p->wide + 1 - g;
    const bool far = !p->backward && !all_are_1(by_group(w, plane, BY_POWER) + g, groups);
    for (int k = 0; k < (p->backward ? STATISTICS : BY_POWER + far); k++) by[k] = spread(by_group(w, plane, k), i, n, p->wide, buffer[k]);
    EACH_ROW(p, chunk, row) {
      char *out = (char *)w->ptr[p->value[Y]] + (at.offset[Y] + row.offset[Y] + i) * qn_kit_bytes(p->dtype[Y]);
      real *y = p->dtype[Y] == CPU_REAL ? (real *)(void *)out : to;
      const real *x = piece(w, X, &at, &row, i, n, from);
      if (far) multiply(from, x, by[BY_POWER], n), x = from;
      if (p->backward) gradient(y, piece(w, DY, &at, &row, i, n, given), x, by[BY_MEAN], by[BY_RSTD], scale, by[BY_SUM], by[BY_ALONG], n);
      else normalize(y, x, by[BY_MEAN], by[BY_RSTD], scale, shift, n);
      if (y == to) row_from_real(out, to, p->dtype[Y], n);
    }
  }
}

/* ---- a group: merging its chunks -------------------------------------------------------------------------------- */

/* The sum of b x - from or its square over a group, element by element; or LARGEST, of |x|. Chunk by chunk, so that sums stay short. */
enum { SUM, SQUARES, LARGEST };
static double over_group(const work *w, const qn_walk *at, int64_t group, int what, double by, double from)
{
  const problem *p = w->p;
  double all = 0;
  real buffer;
  qn_walk row;
  for (int64_t chunk = 0; chunk < p->chunks; chunk++) {
    double sum = 0;
    EACH_ROW(p, chunk, row)
      for (int64_t c = group * p->wide; c < (group + 1) * p->wide; c++) {
        const double x = by * (double)*piece(w, X, at, &row, c, 1, &buffer) - from;
        sum = what == LARGEST ? fmax(sum, fabs(x)) : sum + (what == SQUARES ? x * x : x);
      }
    all = what == LARGEST ? fmax(all, sum) : all + sum;
  }
  return all;
}

static void settle_forward(const work *w, int64_t plane, const qn_walk *at, int64_t group)
{
  const problem *p = w->p;
  const double n = (double)p->rows * (double)p->wide, m = p->momentum;
  double mean = number(w, MEAN, at, group, 0, 0), var = number(w, VAR, at, group, 0, 0), by = 1;
  if (p->given) {
    by = (double)norm_power_given(mean);
    mean *= by, var *= by * by;
  } else {
    mean = var = 0;
    for (int64_t k = 0; k < p->chunks; k++) mean += (double)rows_of(p, k) * (double)p->wide * (double)found(w, plane, k, 0)[group];
    mean /= n;
    for (int64_t k = 0; k < p->chunks; k++) {
      const double away = (double)found(w, plane, k, 0)[group] - mean;
      var += (double)found(w, plane, k, 1)[group] + (double)rows_of(p, k) * (double)p->wide * away * away;
    }
    var = norm_var(var / n, 0);
    if (!norm_is_plain(mean, var, p->eps)) {
      by = (double)norm_power((real)over_group(w, at, group, LARGEST, 1, 0), p->eps);
      mean = p->centred ? over_group(w, at, group, SUM, by, 0) / n : 0;
      var = over_group(w, at, group, SQUARES, by, mean) / n;
    }
    const double whole = mean / by, spread = var / by / by;
    put(w, NEW_MEAN, at, group, (1 - m) * number(w, RUNNING_MEAN, at, group, 0, 0) + m * whole);
    put(w, NEW_VAR, at, group, (1 - m) * number(w, RUNNING_VAR, at, group, 0, 0) + m * (n > 1 ? spread * n / (n - 1) : spread));
    put(w, MEAN, at, group, whole);
  }
  const double rstd = 1 / sqrt(var + p->eps * by * by);
  put(w, RSTD, at, group, rstd * by);
  by_group(w, plane, BY_MEAN)[group] = (real)mean;
  by_group(w, plane, BY_RSTD)[group] = norm_rstd(rstd);
  by_group(w, plane, BY_POWER)[group] = (real)by;
}

/* The sums of g and g h over a group whose scale is infinite, term by term: each has its own sign. */
static void sum_each(const work *w, int64_t plane, const qn_walk *at, int64_t group, double *sum, double *along)
{
  const problem *p = w->p;
  const real mean = by_group(w, plane, BY_MEAN)[group], rstd = by_group(w, plane, BY_RSTD)[group];
  real from, given;
  qn_walk row;
  *sum = *along = 0;
  for (int64_t chunk = 0; chunk < p->chunks; chunk++)
    EACH_ROW(p, chunk, row)
      for (int64_t c = group * p->wide; c < (group + 1) * p->wide; c++) {
        const real g = *piece(w, DY, at, &row, c, 1, &given) * by_column(w, plane, 0)[c];
        *sum += (double)g;
        *along += (double)(g * ((*piece(w, X, at, &row, c, 1, &from) - mean) * rstd));
      }
}

/* n columns' sums over the planes from first to end. */
static void totals(const work *w, int64_t first, int64_t end, int64_t column, int64_t n, double *sum, double *along)
{
  memset(sum, 0, (size_t)n * sizeof *sum);
  memset(along, 0, (size_t)n * sizeof *along);
  for (int64_t k = first * w->p->chunks; k < end * w->p->chunks; k++) {
    const real *s = found(w, 0, k, 0) + column, *t = found(w, 0, k, 1) + column;
    for (int64_t j = 0; j < n; j++) sum[j] += (double)s[j], along[j] += (double)t[j];
  }
}

static void settle_backward(const work *w, int64_t plane, const qn_walk *at, int64_t group, int64_t groups)
{
  const problem *p = w->p;
  const double n = (double)p->rows * (double)p->wide;
  for (int64_t g = group; g < group + groups; g++) by_group(w, plane, BY_SUM)[g] = by_group(w, plane, BY_ALONG)[g] = 0;
  double sums[UNIT], alongs[UNIT], sum = 0, along = 0;
  bool infinite = false;
  for (int64_t c = group * p->wide, end = (group + groups) * p->wide, first = c; c < end; c++) {
    if ((c - first) % UNIT == 0) totals(w, plane, plane + 1, c, qn_min_i64(UNIT, end - c), sums, alongs);
    const double scale = (double)by_column(w, plane, 0)[c];
    infinite |= isinf(scale);
    sum += scale * sums[(c - first) % UNIT];
    along += scale * alongs[(c - first) % UNIT];
    if ((c + 1) % p->wide) continue;
    if (infinite) sum_each(w, plane, at, c / p->wide, &sum, &along);
    by_group(w, plane, BY_SUM)[c / p->wide] = (real)(p->centred ? sum / n : 0);
    by_group(w, plane, BY_ALONG)[c / p->wide] = (real)(along / n);
    sum = along = 0, infinite = false;
  }
}

static int64_t groups_of_unit(const problem *p) { return qn_max_i64(1, UNIT / p->wide); }
static int64_t units_of(const problem *p) { return qn_ceil_div(p->groups, groups_of_unit(p)); }

static void settle(const work *w, int64_t plane, int64_t unit)
{
  const int64_t first = unit * groups_of_unit(w->p), n = qn_min_i64(groups_of_unit(w->p), w->p->groups - first);
  qn_walk at;
  begin_plane(w, plane, &at);
  if (w->p->backward) settle_backward(w, plane, &at, first, n);
  else for (int64_t g = first; g < first + n; g++) settle_forward(w, plane, &at, g);
}

/* dscale and dshift of some columns, summed over all planes. */
static void settle_parameters(const work *w, int64_t first, int64_t n)
{
  const problem *p = w->p;
  double sum[UNIT], along[UNIT];
  qn_walk at;
  begin_plane(w, 0, &at);
  totals(w, 0, p->planes, first, n, sum, along);
  for (int64_t j = 0; j < n; j++) {
    char *dscale = place(w, DSCALE, &at, (first + j) / p->wide, (first + j) % p->wide);
    char *dshift = place(w, DSHIFT, &at, (first + j) / p->wide, (first + j) % p->wide);
    if (dscale) qn_store_f64(dscale, p->dtype[DSCALE], along[j]);
    if (dshift) qn_store_f64(dshift, p->dtype[DSHIFT], sum[j]);
  }
}

/* ---- run ------------------------------------------------------------------------------------------------------- */

static void load_parameters(const work *w, int64_t plane)
{
  const problem *p = w->p;
  qn_walk at;
  begin_plane(w, plane, &at);
  for (int64_t c = 0; c < p->columns; c++) {
    by_column(w, plane, 0)[c] = (real)number(w, SCALE, &at, c / p->wide, c % p->wide, 1);
    by_column(w, plane, 1)[c] = (real)number(w, SHIFT, &at, c / p->wide, c % p->wide, 0);
  }
}

static void load_plane(const work *w, int64_t plane)
{
  const problem *p = w->p;
  qn_walk at;
  begin_plane(w, plane, &at);
  if (p->own) load_parameters(w, plane);
  for (int64_t g = 0; g < p->groups && p->backward; g++) {
    by_group(w, plane, BY_MEAN)[g] = (real)number(w, MEAN, &at, g, 0, 0);
    by_group(w, plane, BY_RSTD)[g] = (real)number(w, RSTD, &at, g, 0, 1);
  }
}

static void look(const work *w, int64_t plane, int64_t chunk)
{
  if (w->p->backward) look_backward(w, plane, chunk);
  else if (!w->p->given) look_forward(w, plane, chunk);
}

static void run_plane(const work *w, int64_t plane)
{
  load_plane(w, plane);
  for (int64_t k = 0; k < w->p->chunks; k++) look(w, plane, k);
  for (int64_t u = 0; u < units_of(w->p); u++) settle(w, plane, u);
  for (int64_t k = 0; k < w->p->chunks; k++) write(w, plane, k);
}

static void run_together(const work *w, int threads)
{
  const int64_t chunks = w->p->chunks, units = units_of(w->p);
  for (int64_t plane = 0; plane < w->p->planes; plane++) load_plane(w, plane);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
#pragma omp for schedule(static)
    for (int64_t k = 0; k < w->p->planes * chunks; k++) look(w, k / chunks, k % chunks);
#pragma omp for schedule(static)
    for (int64_t u = 0; u < w->p->planes * units; u++) settle(w, u / units, u % units);
#pragma omp for schedule(static)
    for (int64_t k = 0; k < w->p->planes * chunks; k++) write(w, k / chunks, k % chunks);
  }
}

CPU_RUNS(cpu_norm_columns_run);
qn_status CPU_NAME(cpu_norm_columns_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  work w = { .p = p, .ptr = launch->ptr, .by_group = launch->workspace };
  w.by_column = w.by_group + p->planes * STATISTICS * p->groups;
  w.found = w.by_column + (p->own ? p->planes : 1) * 2 * p->columns;
  const int threads = (int)qn_min_i64(cpu_threads(launch, p->planes * p->rows * p->columns * 4), p->planes * p->chunks);
  if (!p->own) load_parameters(&w, 0);
  if (p->planes >= 4 * threads || p->planes % threads == 0) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t plane = 0; plane < p->planes; plane++) run_plane(&w, plane);
  } else run_together(&w, threads);
  if (p->value[DSCALE] < 0 && p->value[DSHIFT] < 0) return QN_OK;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t c = 0; c < p->columns; c += UNIT) settle_parameters(&w, c, qn_min_i64(UNIT, p->columns - c));
  return QN_OK;
}

/* ---- prepare ----------------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static const char *const names[TENSORS] = { "x", "y", "dy", "scale", "shift", "mean", "rstd", "var", "running_mean", "running_var",
                                            "new_mean", "new_var", "dscale", "dshift" };

static bool is_parameter(int t) { return t == SCALE || t == SHIFT || t == DSCALE || t == DSHIFT; }

/* Removes the fastest dim from a nest; step: each tensor's stride there. */
static int64_t take_last(qn_nest *nest, int64_t step[TENSORS])
{
  nest->rank--;
  for (int t = 0; t < TENSORS; t++) step[t] = nest->stride[t][nest->rank];
  return nest->dim[nest->rank];
}

/* Splits x's dims into planes, rows, groups, and columns of a group. */
static qn_status read_layout(const qn_value *const v[TENSORS], uint64_t mask, problem *p, qn_prepared *prepared)
{
  const qn_value *x = v[X];
  p->nest.n = p->outer.n = TENSORS;
  for (int32_t d = 0; d < x->rank; d++) {
    const bool walked = mask >> d & 1;
    qn_nest *nest = walked ? &p->nest : &p->outer;
    nest->dim[nest->rank] = x->dim[d];
    for (int t = 0; t < TENSORS; t++)
      nest->stride[t][nest->rank] = !v[t] ? x->stride[d] : t > DY && v[t]->dim[d] == 1 ? 0 : v[t]->stride[d];
    for (int t = SCALE; t < TENSORS; t++)
      if (v[t] && !(is_parameter(t) && v[t]->dim[d] == 1) && v[t]->dim[d] != (walked && !is_parameter(t) ? 1 : x->dim[d]))
        return qn_refuse(prepared, "statistics have an element for each group, parameters x's dims or 1", names[t], "those", "%s",
                         "other dims");
    nest->rank++;
  }
  qn_nest_simplify(&p->nest);
  qn_nest_simplify(&p->outer);
  p->wide = 1;
  if (p->nest.rank && p->nest.stride[X][p->nest.rank - 1] == 1) p->wide = take_last(&p->nest, p->inner);
  if (!p->outer.rank) return qn_refuse(prepared, "groups must be contiguous", "x", "channels last, or the last dims", "%s", "one group");
  p->groups = take_last(&p->outer, p->step);
  p->columns = p->groups * p->wide;
  p->rows = p->planes = 1;
  for (int32_t d = 0; d < p->nest.rank; d++) p->rows *= p->nest.dim[d];
  for (int32_t d = 0; d < p->outer.rank; d++) p->planes *= p->outer.dim[d];
  for (int t = X; t <= DY; t++)
    if (p->step[t] != p->wide || (p->wide > 1 && p->inner[t] != 1))
      return qn_refuse(prepared, "groups must be contiguous", "x", "channels last, or the last dims", "%s", "other strides");

  bool by_column = false;
  for (int t = SCALE; t < TENSORS; t++) {
    if (!v[t] || !is_parameter(t)) continue;
    by_column |= p->step[t] != 0 && p->inner[t] != 0;
    bool across = false;
    for (int32_t d = 0; d < p->nest.rank; d++) across |= p->nest.stride[t][d] != 0;
    if (across) return qn_refuse(prepared, "parameters are the same for all rows", names[t], "1 along the rows", "%s", "other dims");
    for (int32_t d = 0; d < p->outer.rank; d++) p->own |= p->outer.stride[t][d] != 0;
    const bool gradient = t >= DSCALE, summed = (p->groups > 1 && !p->step[t]) || (p->wide > 1 && !p->inner[t]);
    if (gradient && (p->own || summed))
      return qn_refuse(prepared, "gradients of parameters have an element for each column", names[t], "columns", "%s", "other dims");
  }
  const int64_t too_wide = p->columns > CHUNK ? LONG_IN_LONG_ROWS : LONG;
  if (p->wide > 1 && !by_column && (p->rows == 1 || p->wide >= too_wide))
    return qn_refuse(prepared, "groups must not be long runs", "x", "channels last", "%lld in a row", (long long)p->wide);
  return QN_OK;
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *node = &request->op[0];
  const qn_norm *norm = node->attr;
  const qn_norm_roles a = qn_norm_roles_of(node->op);
  const int8_t role[TENSORS] = { a.x, a.y < 0 ? a.dx : a.y, a.dy, a.scale, a.shift, a.mean, a.rstd, a.var, a.running_mean, a.running_var,
                                 a.new_mean, a.new_var, a.dscale, a.dshift };
  problem p = { .backward = a.dy >= 0, .given = a.var >= 0, .eps = norm->eps, .momentum = norm->momentum,
                .centred = node->op != QN_OP_RMS_NORM && node->op != QN_OP_RMS_NORM_BACKWARD };
  const qn_value *v[TENSORS];
  for (int t = 0; t < TENSORS; t++) {
    p.value[t] = qn_role_at(node, role[t]);
    v[t] = p.value[t] < 0 ? NULL : &request->value[p.value[t]];
    if (v[t]) p.dtype[t] = v[t]->dtype;
    if (v[t] && (v[t]->dtype == QN_F64) != (CPU_REAL == QN_F64))
      return qn_refuse(prepared, "computes in " CPU_REAL_NAME, names[t], CPU_REALS, "%s", qn_kit_name(v[t]->dtype));
  }
  if ((status = read_layout(v, norm->mask, &p, prepared))) return status;
  p.part = qn_min_i64(p.rows, qn_max_i64(LEAST_ROWS, qn_min_i64(MOST_ROWS, CHUNK / p.columns)));
  p.chunks = qn_ceil_div(p.rows, p.part);
  const int64_t kept = p.given ? 0 : 2 * p.chunks * sums_of(&p);
  prepared->workspace = (uint64_t)(p.planes * (STATISTICS * p.groups + kept) + (p.own ? p.planes : 1) * 2 * p.columns) * sizeof(real);
  return cpu_keep(prepared, &p, sizeof p);
}

#define ROW(name_, run_, anchor)                                                                                 \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
    .prepare = prepare, .run = run_, .release = cpu_release }
#define ROWS(name, run)                                                                                          \
  ROW(name, run, QN_OP_LAYER_NORM), ROW(name, run, QN_OP_LAYER_NORM_BACKWARD), ROW(name, run, QN_OP_RMS_NORM),    \
  ROW(name, run, QN_OP_RMS_NORM_BACKWARD), ROW(name, run, QN_OP_BATCH_NORM), ROW(name, run, QN_OP_BATCH_NORM_BACKWARD), \
  ROW(name, run, QN_OP_BATCH_NORM_INFERENCE),
static const qn_engine row[] = { CPU_COPIES(ROWS, "columns" CPU_REAL_SUFFIX, cpu_norm_columns_run) };
const qn_engine_list cpu_norm_columns = { row, sizeof row / sizeof *row };
#endif
