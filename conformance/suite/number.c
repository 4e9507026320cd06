/* number.c -- dtypes as numbers, by arithmetic on doubles alone, so as to share no bit trick with the conversions under
 * test: a value is rounded by dividing by its quantum, an exact power of two, and the bits are made from the result. */
#include <math.h>
#include <string.h>
#include "conform.h"

/* precision p in bits, least normal exponent, largest finite value; for e4m3 all-ones is NaN and there is no Inf. */
static const struct format { int p, emin, mantissa, bias; double max; bool inf; } formats[QN_DTYPE_COUNT] = {
  [QN_F64]  = {53, -1022, 52, 1023, 1.7976931348623157e308, true},
  [QN_F32]  = {24, -126, 23, 127, 0x1.fffffep127, true},
  [QN_F16]  = {11, -14, 10, 15, 65504, true},
  [QN_BF16] = {8, -126, 7, 127, 0x1.fep127, true},
  [QN_E4M3] = {4, -6, 3, 7, 448, false},
  [QN_E5M2] = {3, -14, 2, 15, 57344, true},
};

/* 2^e, from a table that ldexp filled. */
static double power(int e)
{
  enum { MOST = 1100 };
  static double table[2 * MOST + 1];
  if (!table[MOST])
    for (int k = -MOST; k <= MOST; k++)
      table[MOST + k] = ldexp(1, k);
  return table[MOST + e];
}

bool qc_is_float(uint32_t dtype)
{
  return dtype < QN_DTYPE_COUNT && formats[dtype].p;
}

double qc_unit(uint32_t dtype)
{
  return qc_is_float(dtype) ? power(-formats[dtype].p) : 0;
}

double qc_half_ulp(uint32_t dtype, double v)
{
  if (!qc_is_float(dtype))
    return 0;
  const struct format *f = &formats[dtype];
  return fmax(fabs(v) * power(-f->p), power(f->emin - f->p));
}

double qc_largest(uint32_t dtype)
{
  return formats[dtype].max;
}

double qc_overflow(uint32_t dtype)
{
  const struct format *f = &formats[dtype];
  if (dtype == QN_F64)
    return INFINITY;
  int e;
  frexp(f->max, &e);
  return f->max + power(e - f->p - 1);
}

bool qc_overflows(uint32_t dtype, double v)
{
  return isfinite(v) && fabs(v) >= qc_overflow(dtype);
}

double qc_least_normal(uint32_t dtype)
{
  return power(formats[dtype].emin);
}

static double decode_bits(const struct format *f, uint64_t bits)
{
  int width = 64 - __builtin_clzll(f->inf ? ((uint64_t)(2 * f->bias + 1) << f->mantissa) : 0x78u);
  uint64_t m = bits & ((1ull << f->mantissa) - 1), e = bits >> f->mantissa & (2 * (uint64_t)f->bias + 1);
  double sign = bits >> width & 1 ? -1 : 1;
  if (f->inf && e == 2 * (uint64_t)f->bias + 1)
    return m ? NAN : sign * INFINITY;
  if (!f->inf && e == 15 && m == 7)
    return NAN;
  return sign * (e ? (double)(m + (1ull << f->mantissa)) * power((int)e - f->bias - f->mantissa)
                   : (double)m * power(f->emin - f->mantissa));
}

static uint64_t encode_bits(uint32_t dtype, double v)
{
  const struct format *f = &formats[dtype];
  uint64_t top = (uint64_t)(2 * f->bias + 1) << f->mantissa;
  uint64_t sign = signbit(v) ? 1ull << (64 - __builtin_clzll(f->inf ? top : 0x78u)) : 0;
  double a = fabs(v);
  if (isnan(v))
    return f->inf ? top | 1ull << (f->mantissa - 1) : 0x7f;
  int e;
  frexp(a, &e);
  e = a == 0 || e - 1 < f->emin ? f->emin : e - 1;
  if (!isinf(a)) {
    double quantum = power(e - f->mantissa);
    a = nearbyint(a / quantum) * quantum;
  }
  if (a > f->max) {                     /* 8-bit floats saturate, wider ones overflow */
    if (f->p > 4)
      return sign | top;
    a = f->max;
  }
  if (a < power(f->emin))
    return sign | (uint64_t)(a * power(f->mantissa - f->emin));
  frexp(a, &e);
  uint64_t m = (uint64_t)(a * power(f->mantissa - (e - 1)));
  return sign | (uint64_t)(e - 1 + f->bias) << f->mantissa | (m & ((1ull << f->mantissa) - 1));
}

double qc_decode(uint32_t dtype, const void *p)
{
  uint8_t u8; int8_t i8; uint16_t u16; int32_t i32; int64_t i64; float f32; double f64;
  switch (dtype) {
  case QN_F64: memcpy(&f64, p, 8); return f64;
  case QN_F32: memcpy(&f32, p, 4); return f32;
  case QN_F16: case QN_BF16: memcpy(&u16, p, 2); return decode_bits(&formats[dtype], u16);
  case QN_E4M3: case QN_E5M2: memcpy(&u8, p, 1); return decode_bits(&formats[dtype], u8);
  case QN_I8: memcpy(&i8, p, 1); return i8;
  case QN_U8: case QN_BOOL: memcpy(&u8, p, 1); return u8;
  case QN_E8M0: memcpy(&u8, p, 1); return u8 == 255 ? NAN : ldexp(1, u8 - 127);
  case QN_I32: memcpy(&i32, p, 4); return i32;
  case QN_I64: memcpy(&i64, p, 8); return (double)i64;
  }
  return NAN;
}

void qc_encode(uint32_t dtype, double v, void *p)
{
  if (dtype == QN_F64) {
    memcpy(p, &v, 8);
  } else if (dtype == QN_F32) {
    float f = (float)v;
    memcpy(p, &f, 4);
  } else if (qc_is_float(dtype)) {
    uint64_t bits = encode_bits(dtype, v);
    memcpy(p, &bits, qn_dtype_bytes(dtype));
  } else if (dtype == QN_E8M0) {
    int e = isnan(v) || isinf(v) ? 128 : v > 0 ? (int)floor(log2(v)) : -127;
    uint8_t octet = (uint8_t)((e < -127 ? -127 : e) + 127);
    memcpy(p, &octet, 1);
  } else {
    static const double least[QN_DTYPE_COUNT] = {[QN_I8] = -128, [QN_I32] = -0x1p31, [QN_I64] = -0x1p63};
    static const double most[QN_DTYPE_COUNT] = {[QN_I8] = 127, [QN_U8] = 255, [QN_I32] = 0x1p31 - 1, [QN_I64] = 0x1p63,
                                                [QN_BOOL] = 1};
    int64_t i = dtype == QN_BOOL ? v != 0 : isnan(v) ? 0 : v <= least[dtype] ? (int64_t)least[dtype]
              : v >= most[dtype] ? (dtype == QN_I64 ? INT64_MAX : (int64_t)most[dtype]) : (int64_t)nearbyint(v);
    memcpy(p, &i, qn_dtype_bytes(dtype));       /* assumes little endian */
  }
}

double qc_round(uint32_t dtype, double v)
{
  unsigned char bits[8] = {0};
  qc_encode(dtype, v, bits);
  return qc_decode(dtype, bits);
}
