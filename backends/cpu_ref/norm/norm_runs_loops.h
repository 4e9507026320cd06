/* norm_runs_loops.h -- norm_runs's loops over a piece: sums, spreads about a mean, and what is written, with parameters that are one
 * number (all), one for each element (each), or summed by element (by place). */
#ifndef CPU_NORM_RUNS_LOOPS_H
#define CPU_NORM_RUNS_LOOPS_H
#include <stdbool.h>
#include "kit/convert.h"

/* Sums use four vectors: the latency of an addition is about four issue slots. A piece's are added to a total in double, whose lanes
 * are added once per group. */
enum { LANES = CPU_VECTOR_BYTES / sizeof(real), WAYS = 4, STEP = WAYS * LANES };

typedef struct total { v_f64 lanes[sizeof(double) / sizeof(real)]; double others; } total;

CPU_INLINE void add_ways(total *t, const v_real s[WAYS])
{
  const v_real all = (s[0] + s[1]) + (s[2] + s[3]);
  enum { PARTS = sizeof(double) / sizeof(real) };
  real part[PARTS] __attribute__((vector_size(CPU_VECTOR_BYTES / PARTS)));
  memcpy(part, &all, sizeof all);
  for (int k = 0; k < PARTS; k++) t->lanes[k] += __builtin_convertvector(part[k], v_f64);
}

CPU_INLINE double total_of(const total *t)
{
  const v_f64 all = t->lanes[0] + (sizeof(real) < sizeof(double) ? t->lanes[sizeof(double) / sizeof(real) - 1] : (v_f64){ 0 });
  double sum = t->others;
  for (int k = 0; k < CPU_LANES_F64 / 2; k++) sum += all[k] + all[k + CPU_LANES_F64 / 2];
  return sum;
}

static void add_sum(total *sum, const real *x, int64_t n)
{
  v_real s[WAYS] = { { 0 } };
  int64_t i = 0;
  for (; i + STEP <= n; i += STEP)
#pragma GCC unroll 4
    for (int k = 0; k < WAYS; k++) s[k] += v_load_real(x + i + k * LANES);
  for (; i + LANES <= n; i += LANES) s[0] += v_load_real(x + i);
  add_ways(sum, s);
  for (; i < n; i++) sum->others += (double)x[i];
}

/* rest: the sum of x - mean, by which rounding has moved the mean */
CPU_INLINE void add_spread(total *rest, total *squares, const real *x, real mean, int64_t n)
{
  v_real s[WAYS] = { { 0 } }, t[WAYS] = { { 0 } };
  int64_t i = 0;
  for (; i + STEP <= n; i += STEP)
#pragma GCC unroll 4
    for (int k = 0; k < WAYS; k++) {
      const v_real from = v_load_real(x + i + k * LANES) - mean;
      if (rest) s[k] += from;
      t[k] += from * from;
    }
  for (; i + LANES <= n; i += LANES) {
    const v_real from = v_load_real(x + i) - mean;
    if (rest) s[0] += from;
    t[0] += from * from;
  }
  if (rest) add_ways(rest, s);
  add_ways(squares, t);
  for (; i < n; i++) {
    const real from = x[i] - mean;
    if (rest) rest->others += (double)from;
    squares->others += (double)(from * from);
  }
}

static void add_spread_about(total *rest, total *squares, const real *x, real mean, int64_t n) { add_spread(rest, squares, x, mean, n); }
static void add_squares(total *squares, const real *x, int64_t n) { add_spread(NULL, squares, x, 0, n); }

static real largest_of(const real *x, real most, int64_t n)
{
#pragma omp simd reduction(max: most)
  for (int64_t i = 0; i < n; i++) {
    const real size = x[i] < 0 ? -x[i] : x[i];
    most = size > most ? size : most;
  }
  return most;
}

static void multiply(real *y, const real *x, real by, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * by;
}

static void normalize_all(real *y, const real *x, real mean, real rstd, real scale, real shift, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * scale + shift;
}

static void normalize_each(real *y, const real *x, real mean, real rstd, const real *scale, const real *shift, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * scale[i] + shift[i];
}

/* sum, along: sums of g and g h; scale NULL: g is dy */
CPU_INLINE void add_products(double *sum, double *along, const real *dy, const real *x, real mean, real rstd, const real *scale, int64_t n)
{
  v_real s[WAYS] = { { 0 } }, t[WAYS] = { { 0 } };
  total all = { 0 }, product = { 0 };
  int64_t i = 0;
  for (; i + STEP <= n; i += STEP)
#pragma GCC unroll 4
    for (int k = 0; k < WAYS; k++) {
      const int64_t at = i + k * LANES;
      const v_real g = scale ? v_load_real(dy + at) * v_load_real(scale + at) : v_load_real(dy + at);
      s[k] += g;
      t[k] += g * ((v_load_real(x + at) - mean) * rstd);
    }
  add_ways(&all, s);
  add_ways(&product, t);
  for (; i < n; i++) {
    const real g = scale ? dy[i] * scale[i] : dy[i];
    all.others += (double)g;
    product.others += (double)(g * ((x[i] - mean) * rstd));
  }
  *sum += total_of(&all), *along += total_of(&product);
}

static void add_all(double *sum, double *along, const real *dy, const real *x, real mean, real rstd, int64_t n)
{
  add_products(sum, along, dy, x, mean, rstd, NULL, n);
}

static void add_each(double *sum, double *along, const real *dy, const real *x, real mean, real rstd, const real *scale, int64_t n)
{
  add_products(sum, along, dy, x, mean, rstd, scale, n);
}

/* sum, along: the means of g and g h */
static void gradient_all(real *dx, const real *dy, const real *x, real mean, real rstd, real scale, real sum, real along, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = rstd * (dy[i] * scale - (sum + (x[i] - mean) * rstd * along));
}

static void gradient_each(real *dx, const real *dy, const real *x, real mean, real rstd, const real *scale, real sum, real along, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = rstd * (dy[i] * scale[i] - (sum + (x[i] - mean) * rstd * along));
}

static void add_by_place(real *by_scale, real *by_shift, const real *dy, const real *x, real mean, real rstd, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    by_scale[i] += dy[i] * ((x[i] - mean) * rstd);
    by_shift[i] += dy[i];
  }
}
#endif
