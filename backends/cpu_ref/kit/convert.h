/* convert.h -- converts rows between narrow dtypes and the types that engines compute in, in vector code; static, compiled once
 * per instruction set. Contiguous rows only: strided ones go through gather_row and scatter_row.
 *
 *   f16    by the CPU's instruction where there is one, else by integer arithmetic: exact, or rounded to nearest even
 *   bf16   the upper half of an f32
 *   f8     by integer arithmetic: exact, or rounded to nearest even and saturated */
#ifndef CPU_CONVERT_H
#define CPU_CONVERT_H
#include "simd.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

/* ---- one element, branch-free ------------------------------------------------------------------ */

CPU_INLINE float f16_widen(uint16_t h)
{
  const float scaled = qn_f32_of_bits((uint32_t)(h & 0x7fff) << 13) * 0x1p112f;            /* subnormals included */
  const uint32_t special = (h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0;
  return qn_f32_of_bits(qn_bits_of_f32(scaled) | special | (uint32_t)(h & 0x8000) << 16);
}

CPU_INLINE uint16_t f16_narrow(float x)
{
  const uint32_t bits = qn_bits_of_f32(x), a = bits & 0x7fffffff;
  const uint32_t normal = (a - 0x38000000u + 0xfff + (a >> 13 & 1)) >> 13;
  const uint32_t subnormal = qn_bits_of_f32(qn_f32_of_bits(a) + 0.5f) - 0x3f000000u;       /* the sum rounds to 2^-24 */
  uint32_t h = a < 0x38800000u ? subnormal : normal;
  h = a >= 0x477ff000u ? 0x7c00u : h;
  h = a > 0x7f800000u ? 0x7e00u : h;
  return (uint16_t)(h | (bits >> 16 & 0x8000));
}

CPU_INLINE uint16_t bf16_narrow(float x)
{
  const uint32_t bits = qn_bits_of_f32(x), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (uint16_t)((bits & 0x7fffffff) > 0x7f800000u ? 0x7fc0u : rounded);
}

CPU_INLINE float e4m3_widen(uint8_t b)
{
  const float scaled = qn_f32_of_bits((uint32_t)(b & 0x7f) << 20) * 0x1p120f;              /* subnormals included */
  const uint32_t nan = (b & 0x7f) == 0x7f ? 0x7fc00000u : 0;
  return qn_f32_of_bits(qn_bits_of_f32(scaled) | nan | (uint32_t)(b & 0x80) << 24);
}

/* fraction: its number of bits; a: the magnitude's bits; least: a power of two whose last place is the least subnormal; normal: the
 * bits of the least normal number; most: those of the largest number. */
CPU_INLINE uint8_t f8_narrow(float x, int fraction, float least, uint32_t normal, uint32_t most, uint8_t saturated)
{
  const uint32_t bits = qn_bits_of_f32(x), a = bits & 0x7fffffff, shift = 23 - (uint32_t)fraction;
  const uint32_t rounded = (a - normal + (1u << fraction << shift) + (1u << (shift - 1)) - 1 + (a >> shift & 1)) >> shift;
  const uint32_t subnormal = qn_bits_of_f32(qn_f32_of_bits(a) + least) - qn_bits_of_f32(least);        /* the sum rounds */
  uint32_t h = a < normal ? subnormal : rounded;
  h = a >= most ? saturated : h;
  return (uint8_t)(a > 0x7f800000u ? 0x7fu : h | (bits >> 24 & 0x80));
}
CPU_INLINE uint8_t e4m3_narrow(float x) { return f8_narrow(x, 3, 0x1p14f, 0x3c800000u, 0x43e00000u, 0x7e); }
CPU_INLINE uint8_t e5m2_narrow(float x) { return f8_narrow(x, 2, 0x1p7f, 0x38800000u, 0x47600000u, 0x7b); }

/* ---- rows of floats ----------------------------------------------------------------------------- */

static inline void f16_row_widen(float *restrict y, const uint16_t *restrict x, int64_t n)
{
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x + i))));
#else
#pragma omp simd
#endif
  for (int64_t k = i; k < n; k++) y[k] = f16_widen(x[k]);
}

static inline void f16_row_narrow(uint16_t *restrict y, const float *restrict x, int64_t n)
{
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i *)(void *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#else
#pragma omp simd
#endif
  for (int64_t k = i; k < n; k++) y[k] = f16_narrow(x[k]);
}

static inline void bf16_row_widen(float *restrict y, const uint16_t *restrict x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = qn_f32_of_bits((uint32_t)x[i] << 16);
}

static inline void bf16_row_narrow(uint16_t *restrict y, const float *restrict x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = bf16_narrow(x[i]);
}

static inline void e4m3_row_widen(float *restrict y, const uint8_t *restrict x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = e4m3_widen(x[i]);
}

static inline void e5m2_row_widen(float *restrict y, const uint8_t *restrict x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = f16_widen((uint16_t)(x[i] << 8));                /* e5m2 is the upper byte of f16 */
}

static inline void e4m3_row_narrow(uint8_t *restrict y, const float *restrict x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = e4m3_narrow(x[i]);
}

static inline void e5m2_row_narrow(uint8_t *restrict y, const float *restrict x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = e5m2_narrow(x[i]);
}

static inline void i8_row_widen(float *restrict y, const int8_t *restrict x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i];
}

static inline void u8_row_widen(float *restrict y, const uint8_t *restrict x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i];
}

/* To the nearest integer, ties to even, and saturated: adding 3 2^22 leaves no fraction bits. NaN is 0. */
CPU_INLINE int32_t integer_of(float x, float least, float most)
{
  const float inside = x > most ? most : x > least ? x : x <= least ? least : 0;
  return (int32_t)((inside + 0x1.8p23f) - 0x1.8p23f);
}

static inline void i8_row_narrow(int8_t *restrict y, const float *restrict x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (int8_t)integer_of(x[i], -128, 127);
}

static inline void u8_row_narrow(uint8_t *restrict y, const float *restrict x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (uint8_t)integer_of(x[i], 0, 255);
}

/* n elements of a float dtype (not f64), of i8 or u8, as f32. */
static inline void row_to_f32(float *restrict y, const void *restrict x, uint32_t dtype, int64_t n)
{
  const uint8_t *b = x;
  switch (dtype) {
  case QN_F32:  memcpy(y, x, (size_t)n * 4); break;
  case QN_F16:  f16_row_widen(y, x, n); break;
  case QN_BF16: bf16_row_widen(y, x, n); break;
  case QN_E4M3: e4m3_row_widen(y, b, n); break;
  case QN_I8:   i8_row_widen(y, x, n); break;
  case QN_U8:   u8_row_widen(y, b, n); break;
  default:      e5m2_row_widen(y, b, n); break;
  }
}

/* n integers as i64. */
static inline void row_to_i64(int64_t *restrict y, const void *restrict x, uint32_t dtype, int64_t n)
{
  const int8_t *bytes = x;
  const uint8_t *natural = x;
  const int32_t *words = x;
  switch (dtype) {
  case QN_I64: memcpy(y, x, (size_t)n * 8); break;
  case QN_I32:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = words[i];
    break;
  case QN_I8:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = bytes[i];
    break;
  default:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = natural[i];
    break;
  }
}

static inline void row_from_f32(void *restrict y, const float *restrict x, uint32_t dtype, int64_t n)
{
  uint8_t *b = y;
  switch (dtype) {
  case QN_F32:  memcpy(y, x, (size_t)n * 4); break;
  case QN_F16:  f16_row_narrow(y, x, n); break;
  case QN_BF16: bf16_row_narrow(y, x, n); break;
  case QN_E4M3: e4m3_row_narrow(b, x, n); break;
  case QN_I8:   i8_row_narrow(y, x, n); break;
  case QN_U8:   u8_row_narrow(b, x, n); break;
  default:      e5m2_row_narrow(b, x, n); break;
  }
}

/* The same for the type that the file computes in; f64 never mixes with other dtypes. */
#ifdef CPU_REAL_F64
static inline void row_to_real(real *restrict y, const void *restrict x, uint32_t dtype, int64_t n)
{
  (void)dtype;
  memcpy(y, x, (size_t)n * sizeof *y);
}
static inline void row_from_real(void *restrict y, const real *restrict x, uint32_t dtype, int64_t n)
{
  (void)dtype;
  memcpy(y, x, (size_t)n * sizeof *x);
}
CPU_INLINE real load_as(const char *x, int64_t i, uint32_t dtype)
{
  (void)dtype;
  return ((const real *)(const void *)x)[i];
}
CPU_INLINE v_real v_load_as(const char *x, int64_t i, uint32_t dtype)
{
  (void)dtype;
  return v_load_real((const real *)(const void *)x + i);
}
#else
static inline void row_to_real(real *restrict y, const void *restrict x, uint32_t dtype, int64_t n) { row_to_f32(y, x, dtype, n); }
static inline void row_from_real(void *restrict y, const real *restrict x, uint32_t dtype, int64_t n) { row_from_f32(y, x, dtype, n); }
/* Element i of x, f32, f16 or bf16, and a vector from it on. */
CPU_INLINE float load_as(const char *x, int64_t i, uint32_t dtype)
{
  uint16_t half;
  if (dtype == QN_F32) return ((const float *)(const void *)x)[i];
  memcpy(&half, x + 2 * i, 2);
  return dtype == QN_BF16 ? qn_bf16_to_f32(half) : f16_widen(half);
}
CPU_INLINE v_f32 v_load_as(const char *x, int64_t i, uint32_t dtype)
{
  if (dtype == QN_F32) return v_load(x + 4 * i);
#if defined __AVX512F__
  const __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)(x + 2 * i));
  return dtype == QN_BF16 ? (v_f32)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16) : (v_f32)_mm512_cvtph_ps(half);
#elif defined __AVX2__
  const __m128i half = _mm_loadu_si128((const __m128i *)(const void *)(x + 2 * i));
  return dtype == QN_BF16 ? (v_f32)_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16) : (v_f32)_mm256_cvtph_ps(half);
#else
  typedef uint32_t words __attribute__((vector_size(CPU_VECTOR_BYTES)));
  typedef uint16_t halves __attribute__((vector_size(CPU_VECTOR_BYTES / 2)));
  halves half;
  memcpy(&half, x + 2 * i, sizeof half);
  const words h = __builtin_convertvector(half, words);
  if (dtype == QN_BF16) return (v_f32)(h << 16);
  const v_f32 scaled = (v_f32)((h & 0x7fff) << 13) * 0x1p112f;         /* as f16_widen, which lane by lane took 20 times as long */
  return (v_f32)((words)scaled | ((words)((h & 0x7c00) == 0x7c00) & 0x7f800000u) | (h & 0x8000) << 16);
#endif
}
#endif

/* ---- strided rows ------------------------------------------------------------------------------- */

/* Packs n elements of `bytes` bytes that are `stride` elements apart, and the reverse. */
static inline void gather_row(void *restrict y, const void *restrict x, int64_t bytes, int64_t stride, int64_t n)
{
  const char *from = x;
  switch (bytes) {
  case 1: for (int64_t i = 0; i < n; i++) ((uint8_t *)y)[i] = (uint8_t)from[i * stride]; break;
  case 2: for (int64_t i = 0; i < n; i++) memcpy((char *)y + 2 * i, from + 2 * i * stride, 2); break;
  case 4: for (int64_t i = 0; i < n; i++) memcpy((char *)y + 4 * i, from + 4 * i * stride, 4); break;
  default: for (int64_t i = 0; i < n; i++) memcpy((char *)y + 8 * i, from + 8 * i * stride, 8); break;
  }
}

static inline void scatter_row(void *restrict y, const void *restrict x, int64_t bytes, int64_t stride, int64_t n)
{
  char *to = y;
  switch (bytes) {
  case 1: for (int64_t i = 0; i < n; i++) to[i * stride] = ((const char *)x)[i]; break;
  case 2: for (int64_t i = 0; i < n; i++) memcpy(to + 2 * i * stride, (const char *)x + 2 * i, 2); break;
  case 4: for (int64_t i = 0; i < n; i++) memcpy(to + 4 * i * stride, (const char *)x + 4 * i, 4); break;
  default: for (int64_t i = 0; i < n; i++) memcpy(to + 8 * i * stride, (const char *)x + 8 * i, 8); break;
  }
}
#endif
