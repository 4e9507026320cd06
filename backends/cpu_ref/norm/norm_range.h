/* norm_range.h -- norms of values near the ends of real's range, for norm_runs and norm_columns.
 *
 * Statistics that left the range (Inf, NaN, or a variance of nearly 0 beside an eps as small) are made again, of x times a power of
 * two that brings its largest element near 2^40, where squares fit and few small elements become subnormal:
 *
 *   y = (b x - b mean) (rstd / b),  rstd / b = 1 / sqrt(b^2 var + b^2 eps) */
#ifndef CPU_NORM_RANGE_H
#define CPU_NORM_RANGE_H
#include "kit/simd.h"

#ifdef CPU_REAL_F64
enum { NORM_EXPONENT = 1022 };
static const double norm_least = 0x1p-960;
#else
enum { NORM_EXPONENT = 126 };
static const double norm_least = 0x1p-100;               /* of var + eps: smaller squares lose digits */
#endif

static inline bool norm_is_plain(double mean, double var, double eps)
{
  return isfinite(mean) && var + eps >= norm_least && var < (double)INFINITY;
}

/* most: the largest |x|. Where it is 0, Inf or NaN, no power helps. */
static inline real norm_power(real most, double eps)
{
  if (!(most > 0 && most < (real)INFINITY)) return 1;
  const int e = ilogb(fmax((double)most, sqrt(eps))) - 40;
  return (real)ldexp(1, -(int)qn_max_i64(-NORM_EXPONENT, qn_min_i64(NORM_EXPONENT, e)));
}

/* For a given mean, from which x may be further away than the largest number. */
static inline real norm_power_given(double mean)
{
  return fabs(mean) < ldexp(1, NORM_EXPONENT) ? 1 : (real)0.0625;
}

/* As a real. A constant's, which may be beyond real's range, multiplies zeros only. */
static inline real norm_rstd(double rstd)
{
  const real most = (real)ldexp(1, NORM_EXPONENT);
  return rstd < (double)INFINITY && rstd > (double)most ? most : (real)rstd;
}

/* The variance, by the mean square about a rounded mean that was off by `rest`. */
static inline double norm_var(double square, double rest)
{
  const double var = square - rest * rest;
  return var < 0 ? 0 : var;
}
#endif
