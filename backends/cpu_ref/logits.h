/* logits.h -- what losses do along a row of logits in f32; static, in a copy for each instruction set. */
#ifndef CPU_LOGITS_H
#define CPU_LOGITS_H
#include "convert.h"
#include "pointwise_math.h"

static inline float logits_largest(const float *x, float m, int64_t n)
{
#pragma omp simd reduction(max: m)
  for (int64_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
  return m;
}

static inline float logits_sum_of_exp(const float *x, float m, int64_t n)
{
  float s = 0;
#pragma omp simd reduction(+: s)
  for (int64_t i = 0; i < n; i++) s += m_exp(x[i] - m);
  return s;
}

/* n elements as f32: where they lie, or in buffer. */
static inline const float *logits_open(const char *from, uint32_t dtype, int64_t n, float *buffer)
{
  if (dtype == QN_F32) return (const float *)(const void *)from;
  row_to_f32(buffer, from, dtype, n);
  return buffer;
}

static inline void logits_gradient(float *dx, const float *x, float lse, float g, float spread, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = g * (m_exp(x[i] - lse) - spread);
}

#endif
