/* norm_columns_loops.h -- norm_columns's loops over a band of columns: sums of rows, what is written, and the step from columns to
 * groups of them and back. */
#ifndef CPU_NORM_COLUMNS_LOOPS_H
#define CPU_NORM_COLUMNS_LOOPS_H
#include <stdbool.h>
#include "kit/convert.h"

enum { TOGETHER = 4 };                    /* rows that are added at a time */

/* Several rows at a time, so that sums are seldom loaded and stored. */
static void add_rows(real *sum, const real *const x[TOGETHER], int rows, int64_t n)
{
  if (rows == TOGETHER) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) sum[i] += (x[0][i] + x[1][i]) + (x[2][i] + x[3][i]);
    return;
  }
  for (int k = 0; k < rows; k++)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) sum[i] += x[k][i];
}

/* The sums of x - from, which is 0 but for rounding, and of its square. */
static void add_spreads(real *rest, real *squares, const real *const x[TOGETHER], int rows, const real *from, int64_t n)
{
  if (rows == TOGETHER) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
      const real a = x[0][i] - from[i], b = x[1][i] - from[i], c = x[2][i] - from[i], d = x[3][i] - from[i];
      rest[i] += (a + b) + (c + d);
      squares[i] += (a * a + b * b) + (c * c + d * d);
    }
    return;
  }
  for (int k = 0; k < rows; k++)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
      const real away = x[k][i] - from[i];
      rest[i] += away;
      squares[i] += away * away;
    }
}

static void add_along(real *sum, real *along, const real *dy, const real *x, const real *mean, const real *rstd, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    sum[i] += dy[i];
    along[i] += dy[i] * ((x[i] - mean[i]) * rstd[i]);
  }
}

static bool all_are_1(const real *x, int64_t n)
{
  int others = 0;
#pragma omp simd reduction(|: others)
  for (int64_t i = 0; i < n; i++) others |= x[i] != 1;
  return !others;
}

static void multiply(real *y, const real *x, const real *by, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * by[i];
}

static void normalize(real *y, const real *x, const real *mean, const real *rstd, const real *scale, const real *shift, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean[i]) * rstd[i] * scale[i] + shift[i];
}

/* sum, along: the means of g and g h */
static void gradient(real *dx, const real *dy, const real *x, const real *mean, const real *rstd, const real *scale,
                     const real *sum, const real *along, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = rstd[i] * (dy[i] * scale[i] - (sum[i] + (x[i] - mean[i]) * rstd[i] * along[i]));
}

/* Adds the sums of each group's columns to total. */
CPU_INLINE void fold_by(real *total, const real *sum, int64_t n, int64_t wide)
{
  for (int64_t i = 0; i < n; i += wide) {
    double s = 0;
    for (int64_t k = i; k < qn_min_i64(i + wide, n); k++) s += (double)sum[k];
    *total++ += (real)s;
  }
}

static void fold(real *total, const real *sum, int64_t n, int64_t wide)
{
  if (wide == 1)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) total[i] += sum[i];
  else switch (n % wide ? 0 : wide) {
  case 2: fold_by(total, sum, n, 2); break;
  case 4: fold_by(total, sum, n, 4); break;
  case 8: fold_by(total, sum, n, 8); break;
  default: fold_by(total, sum, n, wide);
  }
}

/* Repeats each group's number for its columns: n columns from the i-th on. */
CPU_INLINE void repeat(real *to, const real *number, int64_t n, int64_t wide)
{
  for (int64_t k = 0; k < n; k += wide, number++)
    for (int64_t j = k; j < k + wide; j++) to[j] = *number;
}

static const real *spread(const real *number, int64_t i, int64_t n, int64_t wide, real *buffer)
{
  number += i / wide;
  switch (i % wide || n % wide ? 0 : wide) {
  case 1: return number;
  case 2: repeat(buffer, number, n, 2); return buffer;
  case 4: repeat(buffer, number, n, 4); return buffer;
  case 8: repeat(buffer, number, n, 8); return buffer;
  }
  for (int64_t k = 0, in = i % wide; k < n; in = 0, number++) {
    const int64_t end = qn_min_i64(k + wide - in, n);
    for (; k < end; k++) buffer[k] = *number;
  }
  return buffer;
}
#endif
