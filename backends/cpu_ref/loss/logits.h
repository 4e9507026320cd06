/* logits.h -- operations of losses on a row of logits in f32 (f64: by the C library); static, compiled once per instruction set. */
#ifndef CPU_LOGITS_H
#define CPU_LOGITS_H
#include "kit/convert.h"
#include "kit/pointwise_math.h"

#ifdef CPU_REAL_F64
CPU_INLINE real logits_exp(real x) { return exp(x); }
#else
CPU_INLINE real logits_exp(real x) { return m_exp(x); }
#endif

static inline real logits_largest(const real *x, real m, int64_t n)
{
#pragma omp simd reduction(max: m)
  for (int64_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
  return m;
}

static inline real logits_sum_of_exp(const real *x, real m, int64_t n)
{
  real s = 0;
#pragma omp simd reduction(+: s)
  for (int64_t i = 0; i < n; i++) s += logits_exp(x[i] - m);
  return s;
}

/* n elements as real: in place, or converted into buffer. */
static inline const real *logits_open(const char *from, uint32_t dtype, int64_t n, real *buffer)
{
  if (dtype == CPU_REAL) return (const real *)(const void *)from;
  row_to_real(buffer, from, dtype, n);
  return buffer;
}

static inline void logits_gradient(real *dx, const real *x, real lse, real g, real spread, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = g * (logits_exp(x[i] - lse) - spread);
}

#endif
