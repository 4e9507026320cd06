/* gemm_kernel.c -- the inner loops of the blocked product, compiled once per instruction set.
 *
 * A tile of mr x nr sums stays in registers while k runs; each step loads a vector or two of b and multiplies them by
 * one broadcast element of each row of a. Its size fits the register file: 6 x 2 vectors of 16 registers, 12 x 2 of
 * AVX-512's 32. The routines that widen, narrow and transpose follow below.
 *
 * Compile with -ffp-contract=fast: products and sums are fused where the instruction set can. */
#include <string.h>
#include <quern/kit.h>
#include "gemm_core.h"
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef QN_ISA
#define QN_ISA baseline
#endif
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define MR 12
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define MR 6
#else
#define VECTOR_BYTES 16
#define MR 6
#endif
#define NV 2                              /* vectors in a row of the tile */
#define INLINE static inline __attribute__((always_inline))

/* ---- tiles -------------------------------------------------------------------------------- */

typedef float f32_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef double f64_vector __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t i32_vector __attribute__((vector_size(VECTOR_BYTES)));

INLINE f32_vector f32_step(f32_vector sum, float a, f32_vector b)
{
  return sum + a * b;
}

INLINE f64_vector f64_step(f64_vector sum, double a, f64_vector b)
{
  return sum + a * b;
}

/* Two products of i16 at once: exact in i32, as |i16| here is at most 255. */
INLINE i32_vector i16_step(i32_vector sum, int32_t a, i32_vector b)
{
  i32_vector pair = (i32_vector){0} + a;
#if defined(__AVX512BW__)
  return sum + (i32_vector)_mm512_madd_epi16((__m512i)pair, (__m512i)b);
#elif defined(__AVX2__)
  return sum + (i32_vector)_mm256_madd_epi16((__m256i)pair, (__m256i)b);
#elif defined(__SSE2__)
  return sum + (i32_vector)_mm_madd_epi16((__m128i)pair, (__m128i)b);
#else
  for (int i = 0; i < VECTOR_BYTES / 4; i++) {
    int16_t x[2], y[2];
    memcpy(x, (int32_t[]){pair[i]}, 4);
    memcpy(y, (int32_t[]){b[i]}, 4);
    sum[i] += x[0] * y[0] + x[1] * y[1];
  }
  return sum;
#endif
}

#define SCALAR float
#define VECTOR f32_vector
#define STEP f32_step
#define TILE f32_tile
#define MICRO f32_micro
#include "gemm_tile.h"
#define SCALAR double
#define VECTOR f64_vector
#define STEP f64_step
#define TILE f64_tile
#define MICRO f64_micro
#include "gemm_tile.h"
#define SCALAR int32_t
#define VECTOR i32_vector
#define STEP i16_step
#define TILE i16_tile
#define MICRO i16_micro
#include "gemm_tile.h"

/* ---- widening and narrowing a row ---------------------------------------------------------- */

static void widen_f32(const void *src, int64_t stride, int64_t n, void *dst)
{
  const float *from = src;
  float *to = dst;
  if (stride == 1) memcpy(to, from, (size_t)n * sizeof *to);
  else if (stride == 2) for (int64_t i = 0; i < n; i++) to[i] = from[i * 2];         /* a constant becomes shuffles */
  else for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
}

static void widen_f64(const void *src, int64_t stride, int64_t n, void *dst)
{
  const double *from = src;
  double *to = dst;
  if (stride == 1) memcpy(to, from, (size_t)n * sizeof *to);
  else for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
}

static void widen_i32(const void *src, int64_t stride, int64_t n, void *dst)
{
  const int32_t *from = src;
  int32_t *to = dst;
  for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
}

static void widen_f16(const void *src, int64_t stride, int64_t n, void *dst)
{
  const uint16_t *from = src;
  float *to = dst;
  int64_t i = 0;
#if defined(__F16C__)
  if (stride == 1)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
#endif
  for (; i < n; i++) to[i] = qn_f16_to_f32(from[i * stride]);
}

static void widen_bf16(const void *src, int64_t stride, int64_t n, void *dst)
{
  const uint16_t *from = src;
  float *to = dst;
  if (stride == 1) for (int64_t i = 0; i < n; i++) to[i] = qn_bf16_to_f32(from[i]);
  else for (int64_t i = 0; i < n; i++) to[i] = qn_bf16_to_f32(from[i * stride]);
}

static void widen_e4m3(const void *src, int64_t stride, int64_t n, void *dst)
{
  const uint8_t *from = src;
  float *to = dst;
  for (int64_t i = 0; i < n; i++) to[i] = qn_e4m3_to_f32(from[i * stride]);
}

static void widen_e5m2(const void *src, int64_t stride, int64_t n, void *dst)
{
  const uint8_t *from = src;
  float *to = dst;
  for (int64_t i = 0; i < n; i++) to[i] = qn_e5m2_to_f32(from[i * stride]);
}

static void widen_i8(const void *src, int64_t stride, int64_t n, void *dst)
{
  const int8_t *from = src;
  int16_t *to = dst;
  if (stride == 1) for (int64_t i = 0; i < n; i++) to[i] = from[i];
  else for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
}

static void widen_u8(const void *src, int64_t stride, int64_t n, void *dst)
{
  const uint8_t *from = src;
  int16_t *to = dst;
  if (stride == 1) for (int64_t i = 0; i < n; i++) to[i] = from[i];
  else for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
}

static void narrow_f32(const void *src, int64_t n, void *dst, int64_t stride)
{
  const float *from = src;
  float *to = dst;
  if (stride == 1) memcpy(to, from, (size_t)n * sizeof *to);
  else for (int64_t i = 0; i < n; i++) to[i * stride] = from[i];
}

static void narrow_f64(const void *src, int64_t n, void *dst, int64_t stride)
{
  const double *from = src;
  double *to = dst;
  for (int64_t i = 0; i < n; i++) to[i * stride] = from[i];
}

static void narrow_i32(const void *src, int64_t n, void *dst, int64_t stride)
{
  const int32_t *from = src;
  int32_t *to = dst;
  for (int64_t i = 0; i < n; i++) to[i * stride] = from[i];
}

static void narrow_f16(const void *src, int64_t n, void *dst, int64_t stride)
{
  const float *from = src;
  uint16_t *to = dst;
  int64_t i = 0;
#if defined(__F16C__)
  if (stride == 1)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; i++) to[i * stride] = qn_f16_from_f32(from[i]);
}

static void narrow_bf16(const void *src, int64_t n, void *dst, int64_t stride)
{
  const float *from = src;
  uint16_t *to = dst;
  if (stride == 1) for (int64_t i = 0; i < n; i++) to[i] = qn_bf16_from_f32(from[i]);
  else for (int64_t i = 0; i < n; i++) to[i * stride] = qn_bf16_from_f32(from[i]);
}

/* ---- rows into columns ---------------------------------------------------------------------- */

enum { SQUARE = VECTOR_BYTES < 32 ? 4 : 8 };

#if defined(__AVX2__)
INLINE void turn_square(const float *src, int64_t src_ld, float *dst, int64_t dst_ld)
{
  __m256 r[8], pair[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(src + i * src_ld);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    pair[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    pair[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    r[4 * i] = _mm256_shuffle_ps(pair[4 * i], pair[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(pair[4 * i], pair[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm256_shuffle_ps(pair[4 * i + 1], pair[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(pair[4 * i + 1], pair[4 * i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    _mm256_storeu_ps(dst + i * dst_ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(dst + (i + 4) * dst_ld, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}
#else
INLINE void turn_square(const float *src, int64_t src_ld, float *dst, int64_t dst_ld)
{
  for (int c = 0; c < SQUARE; c++)
    for (int r = 0; r < SQUARE; r++) dst[c * dst_ld + r] = src[r * src_ld + c];
}
#endif

static void turn(const float *src, int64_t src_ld, int64_t rows, int64_t columns, float *dst, int64_t dst_ld)
{
  int64_t r = 0;
  for (; r + SQUARE <= rows; r += SQUARE) {
    int64_t c = 0;
    for (; c + SQUARE <= columns; c += SQUARE) turn_square(src + r * src_ld + c, src_ld, dst + c * dst_ld + r, dst_ld);
    for (; c < columns; c++)
      for (int i = 0; i < SQUARE; i++) dst[c * dst_ld + r + i] = src[(r + i) * src_ld + c];
  }
  for (; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) dst[c * dst_ld + r] = src[r * src_ld + c];
}

/* ---- the table ------------------------------------------------------------------------------ */

const cpu_gemm_isa PASTE(cpu_gemm_, QN_ISA) = {
  .name = TEXT(QN_ISA),
  .type = {
    [CPU_GEMM_F32] = {MR, NV * VECTOR_BYTES / 4, f32_micro},
    [CPU_GEMM_F64] = {MR, NV * VECTOR_BYTES / 8, f64_micro},
    [CPU_GEMM_I16] = {MR, NV * VECTOR_BYTES / 4, i16_micro},
  },
  .widen = {
    [QN_F64] = widen_f64, [QN_F32] = widen_f32, [QN_F16] = widen_f16, [QN_BF16] = widen_bf16,
    [QN_E4M3] = widen_e4m3, [QN_E5M2] = widen_e5m2, [QN_I8] = widen_i8, [QN_U8] = widen_u8, [QN_I32] = widen_i32,
  },
  .narrow = {
    [QN_F64] = narrow_f64, [QN_F32] = narrow_f32, [QN_F16] = narrow_f16, [QN_BF16] = narrow_bf16, [QN_I32] = narrow_i32,
  },
  .turn = turn,
};
