/* number.h -- number formats on the host, part of kit.h; static inlines only, C99 and C++.
 *
 *   conversions   f32 or f64 to f16, bf16, e4m3, e5m2, rounded once to nearest even, and back, exactly; to e8m0 rounds down
 *   elements      one element of any dtype as a double or an int64_t, at any alignment
 *   division      of integers, rounded as the names say
 *
 * Where formats differ: overflow gives Inf in f16, bf16 and f32, and the largest finite number in e4m3 and e5m2 (for an infinite
 * input too); integers saturate; NaN gives NaN, or 0 in an integer; bool is "not equal to 0". Conversion to an integer rounds
 * to nearest, ties to even. */
#ifndef QUERN_NUMBER_H
#define QUERN_NUMBER_H
#include <math.h>
#include <string.h>
#include <quern/quern.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---- bits ---------------------------------------------------------------------------------- */

static inline uint32_t qn_bits_of_f32(float x)     { uint32_t b; memcpy(&b, &x, sizeof b); return b; }
static inline uint64_t qn_bits_of_f64(double x)    { uint64_t b; memcpy(&b, &x, sizeof b); return b; }
static inline float    qn_f32_of_bits(uint32_t b)  { float x; memcpy(&x, &b, sizeof x); return x; }
static inline double   qn_f64_of_bits(uint64_t b)  { double x; memcpy(&x, &b, sizeof x); return x; }

/* ---- small floats -------------------------------------------------------------------------- */

/* The bits of |x|, x finite, rounded to a format with `fraction` bits and this exponent bias, as if its exponent had no upper
 * limit: the caller turns a result past the format's largest into Inf or the largest. */
static inline uint32_t qn_round_magnitude(double x, int fraction, int bias)
{
  const uint64_t bits = qn_bits_of_f64(x) & 0x7fffffffffffffffu;
  int exponent = (int)(bits >> 52) - 1023;
  const uint64_t significand = (bits & 0xfffffffffffffu) | 0x10000000000000u;
  int shift = 52 - fraction;
  if (exponent < 1 - bias) {              /* subnormal in the format: all have the least exponent */
    shift += 1 - bias - exponent;
    exponent = 1 - bias;
    if (shift > 54) return 0;             /* below half of the smallest; f64's own subnormals too */
  }
  const uint64_t odd = significand >> shift & 1;
  const uint64_t rounded = (significand + ((uint64_t)1 << (shift - 1)) - 1 + odd) >> shift;
  /* the leading bit, if present, adds 1 to the exponent; so does a carry out of the fraction */
  return (uint32_t)(((uint64_t)(exponent + bias - 1) << fraction) + rounded);
}

static inline uint16_t qn_f16_from_f64(double x)
{
  const uint16_t sign = (uint16_t)(qn_bits_of_f64(x) >> 63 << 15);
  if (x != x) return 0x7e00;
  if (fabs(x) >= 65520.0) return sign | 0x7c00;            /* halfway between 65504 and 2^16: to even is Inf */
  return sign | (uint16_t)qn_round_magnitude(x, 10, 15);
}

static inline uint16_t qn_bf16_from_f64(double x)
{
  const uint16_t sign = (uint16_t)(qn_bits_of_f64(x) >> 63 << 15);
  if (x != x) return 0x7fc0;
  if (fabs(x) >= (2 - 1 / 256.0) * 170141183460469231731687303715884105728.0)   /* halfway from the largest to 2^128 */
    return sign | 0x7f80;
  return sign | (uint16_t)qn_round_magnitude(x, 7, 127);
}

static inline uint8_t qn_e4m3_from_f64(double x)
{
  const uint8_t sign = (uint8_t)(qn_bits_of_f64(x) >> 63 << 7);
  if (x != x) return 0x7f;
  if (fabs(x) >= 448.0) return sign | 0x7e;
  return sign | (uint8_t)qn_round_magnitude(x, 3, 7);
}

static inline uint8_t qn_e5m2_from_f64(double x)
{
  const uint8_t sign = (uint8_t)(qn_bits_of_f64(x) >> 63 << 7);
  if (x != x) return 0x7f;
  if (fabs(x) >= 57344.0) return sign | 0x7b;
  return sign | (uint8_t)qn_round_magnitude(x, 2, 15);
}

static inline uint16_t qn_f16_from_f32(float x)  { return qn_f16_from_f64(x); }     /* f32 to f64 is exact */
static inline uint8_t  qn_e4m3_from_f32(float x) { return qn_e4m3_from_f64(x); }
static inline uint8_t  qn_e5m2_from_f32(float x) { return qn_e5m2_from_f64(x); }
static inline uint16_t qn_bf16_from_f32(float x)
{
  const uint32_t bits = qn_bits_of_f32(x);
  if (x != x) return 0x7fc0;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float qn_f16_to_f32(uint16_t h)
{
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = h & 0x7fff;
  if (magnitude >= 0x7c00) return qn_f32_of_bits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x0400) return qn_f32_of_bits(sign | ((magnitude << 13) + (112u << 23)));
  return (sign ? -5.9604644775390625e-8f : 5.9604644775390625e-8f) * (float)magnitude;
}
static inline float qn_bf16_to_f32(uint16_t h) { return qn_f32_of_bits((uint32_t)h << 16); }
static inline float qn_e4m3_to_f32(uint8_t b)
{
  const uint32_t sign = (uint32_t)(b & 0x80) << 24, magnitude = b & 0x7f;
  if (magnitude == 0x7f) return qn_f32_of_bits(sign | 0x7fc00000);
  if (magnitude >= 0x08) return qn_f32_of_bits(sign | ((magnitude << 20) + (120u << 23)));
  return (sign ? -0.001953125f : 0.001953125f) * (float)magnitude;
}
static inline float qn_e5m2_to_f32(uint8_t b) { return qn_f16_to_f32((uint16_t)(b << 8)); }   /* e5m2 is the upper byte of f16 */

static inline double qn_f16_to_f64(uint16_t h)  { return qn_f16_to_f32(h); }
static inline double qn_bf16_to_f64(uint16_t h) { return qn_bf16_to_f32(h); }
static inline double qn_e4m3_to_f64(uint8_t b)  { return qn_e4m3_to_f32(b); }
static inline double qn_e5m2_to_f64(uint8_t b)  { return qn_e5m2_to_f32(b); }

static inline float  qn_e8m0_to_f32(uint8_t b) { return qn_f32_of_bits(b == 255 ? 0x7fc00000u : b ? (uint32_t)b << 23 : 0x00400000u); }
static inline double qn_e8m0_to_f64(uint8_t b) { return qn_e8m0_to_f32(b); }
/* The largest power of two <= x, at least 2^-127; NaN for Inf and NaN. */
static inline uint8_t qn_e8m0_from_f64(double x)
{
  int exponent;
  if (!(x < 340282366920938463463374607431768211456.0)) return 255;
  if (x < 1.1754943508222875e-38) return 0;
  frexp(x, &exponent);
  return (uint8_t)(exponent - 1 + 127);
}

/* ---- dtypes -------------------------------------------------------------------------------- */

/* As qn_dtype_bytes, which backends cannot call. */
static inline int64_t qn_kit_bytes(uint32_t dtype)
{
  switch (dtype) {
  case QN_F64: case QN_I64: return 8;
  case QN_F32: case QN_I32: return 4;
  case QN_F16: case QN_BF16: return 2;
  case QN_E4M3: case QN_E5M2: case QN_E8M0: case QN_I8: case QN_U8: case QN_BOOL: return 1;
  default: return 0;
  }
}
/* As qn_dtype_name. */
static inline const char *qn_kit_name(uint32_t dtype)
{
  switch (dtype) {
#define QN_KIT_NAME(name, value, text, bytes) case QN_##name: return text;
  QN_DTYPE_MAP(QN_KIT_NAME)
#undef QN_KIT_NAME
  default: return "?";
  }
}
static inline int qn_is_float(uint32_t dtype) { return dtype >= QN_F64 && dtype <= QN_E5M2; }
static inline int qn_is_integer(uint32_t dtype) { return dtype >= QN_I8 && dtype <= QN_I64; }   /* bool is neither */

/* The least and largest values of an integer dtype or bool. */
static inline int64_t qn_least(uint32_t dtype)
{
  switch (dtype) {
  case QN_I8:  return INT8_MIN;
  case QN_I32: return INT32_MIN;
  case QN_I64: return INT64_MIN;
  default:     return 0;
  }
}
static inline int64_t qn_largest(uint32_t dtype)
{
  switch (dtype) {
  case QN_I8:  return INT8_MAX;
  case QN_U8:  return UINT8_MAX;
  case QN_I32: return INT32_MAX;
  case QN_I64: return INT64_MAX;
  default:     return 1;
  }
}

static inline int64_t qn_i64_from_f64(double x)            /* to nearest even, saturating; NaN gives 0 */
{
  if (x != x) return 0;
  if (x >= 9223372036854775808.0) return INT64_MAX;
  if (x <= -9223372036854775808.0) return INT64_MIN;
  return (int64_t)rint(x);
}

/* v as a double that rounds to any narrower format as v itself would: if v needs more than 53 bits, those lost are ORed into the
 * last bit (sticky). */
static inline double qn_f64_sticky_from_i64(int64_t v)
{
  const uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
  if (magnitude >> 53 == 0) return (double)v;
  const double x = (double)(int64_t)(magnitude >> 11 | ((magnitude & 0x7ff) != 0)) * 2048.0;
  return v < 0 ? -x : x;
}

/* The low bits of v, read as the integer dtype: how integer arithmetic wraps. */
static inline int64_t qn_wrap(uint32_t dtype, int64_t v)
{
  const uint64_t u = (uint64_t)v;
  switch (dtype) {
  case QN_I8:  return (int64_t)((u & 0xff) ^ 0x80) - 0x80;
  case QN_U8:  return (int64_t)(u & 0xff);
  case QN_I32: return (int64_t)((u & 0xffffffffu) ^ 0x80000000u) - 0x80000000LL;
  default:     return v;
  }
}

/* ---- elements ------------------------------------------------------------------------------ */

static inline int64_t qn_load_i64(const void *p, uint32_t dtype);
static inline double qn_load_f64(const void *p, uint32_t dtype)
{
  double d;
  float f;
  uint16_t h;
  switch (dtype) {
  case QN_F64:  memcpy(&d, p, 8); return d;
  case QN_F32:  memcpy(&f, p, 4); return f;
  case QN_F16:  memcpy(&h, p, 2); return qn_f16_to_f64(h);
  case QN_BF16: memcpy(&h, p, 2); return qn_bf16_to_f64(h);
  case QN_E4M3: return qn_e4m3_to_f64(*(const uint8_t *)p);
  case QN_E5M2: return qn_e5m2_to_f64(*(const uint8_t *)p);
  case QN_E8M0: return qn_e8m0_to_f64(*(const uint8_t *)p);
  default:      return (double)qn_load_i64(p, dtype);
  }
}

static inline int64_t qn_load_i64(const void *p, uint32_t dtype)
{
  int32_t i;
  int64_t l;
  switch (dtype) {
  case QN_I8:   return *(const int8_t *)p;
  case QN_U8:   return *(const uint8_t *)p;
  case QN_BOOL: return *(const uint8_t *)p != 0;
  case QN_I32:  memcpy(&i, p, 4); return i;
  case QN_I64:  memcpy(&l, p, 8); return l;
  default:      return qn_i64_from_f64(qn_load_f64(p, dtype));
  }
}

static inline void qn_store_i64(void *p, uint32_t dtype, int64_t v);
static inline void qn_store_f64(void *p, uint32_t dtype, double x)
{
  const float f = (float)x;
  uint16_t h;
  switch (dtype) {
  case QN_F64:  memcpy(p, &x, 8); break;
  case QN_F32:  memcpy(p, &f, 4); break;
  case QN_F16:  h = qn_f16_from_f64(x); memcpy(p, &h, 2); break;
  case QN_BF16: h = qn_bf16_from_f64(x); memcpy(p, &h, 2); break;
  case QN_E4M3: *(uint8_t *)p = qn_e4m3_from_f64(x); break;
  case QN_E5M2: *(uint8_t *)p = qn_e5m2_from_f64(x); break;
  case QN_E8M0: *(uint8_t *)p = qn_e8m0_from_f64(x); break;
  case QN_BOOL: *(uint8_t *)p = x != 0; break;
  default:      qn_store_i64(p, dtype, qn_i64_from_f64(x)); break;
  }
}

/* Saturates, as cast does; call qn_wrap first where arithmetic must wrap. */
static inline void qn_store_i64(void *p, uint32_t dtype, int64_t v)
{
  const int64_t low = qn_least(dtype), high = qn_largest(dtype);
  const int64_t within = v < low ? low : v > high ? high : v;
  const int32_t i = (int32_t)within;
  const double d = (double)v;
  switch (dtype) {
  case QN_I8:   *(int8_t *)p = (int8_t)within; break;
  case QN_U8:   *(uint8_t *)p = (uint8_t)within; break;
  case QN_BOOL: *(uint8_t *)p = v != 0; break;
  case QN_I32:  memcpy(p, &i, 4); break;
  case QN_I64:  memcpy(p, &v, 8); break;
  case QN_F64:  memcpy(p, &d, 8); break;
  default:      qn_store_f64(p, dtype, qn_f64_sticky_from_i64(v)); break;
  }
}

/* ---- integer division ---------------------------------------------------------------------- */

/* b > 0 in all of them; a of either sign; rounded as the name says. */
static inline int64_t qn_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static inline int64_t qn_ceil_div(int64_t a, int64_t b)  { return a / b + (a % b > 0); }
static inline int64_t qn_round_up(int64_t a, int64_t b)  { return qn_ceil_div(a, b) * b; }
static inline int64_t qn_min_i64(int64_t a, int64_t b)   { return a < b ? a : b; }
static inline int64_t qn_max_i64(int64_t a, int64_t b)   { return a > b ? a : b; }

#ifdef __cplusplus
}
#endif
#endif
