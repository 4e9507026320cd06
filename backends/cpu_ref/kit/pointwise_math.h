/* pointwise_math.h -- elementary functions of one f32, branch-free, so that a loop over them vectorises.
 *
 * Largest errors found (ulp): exp, log and expm1 1; log1p, erf, tanh, sin and cos 2; sigmoid 3; pow 0.52.
 * NaN, infinities, zeros and subnormals come out as from C's functions. In "a > b ? x : a" the direction of the
 * comparison is chosen so that NaN is kept. Written for contraction: a product and a sum may become one fma. */
#ifndef CPU_POINTWISE_MATH_H
#define CPU_POINTWISE_MATH_H
#include "simd.h"

CPU_INLINE float   m_of_bits(int32_t b) { float x; memcpy(&x, &b, sizeof x); return x; }
CPU_INLINE int32_t m_bits(float x)      { int32_t b; memcpy(&b, &x, sizeof b); return b; }
CPU_INLINE float   m_abs(float x)       { return m_of_bits(m_bits(x) & 0x7fffffff); }
CPU_INLINE float   m_sign_of(float magnitude, float x) { return m_of_bits(m_bits(magnitude) | (m_bits(x) & INT32_MIN)); }

/* 2^k, and a - b, on any bits: for NaN the result is discarded, but must be defined. */
CPU_INLINE float   m_exp2i(int32_t k)               { return m_of_bits((int32_t)((uint32_t)(k + 127) << 23)); }
CPU_INLINE int32_t m_minus(int32_t a, int32_t b)    { return (int32_t)((uint32_t)a - (uint32_t)b); }

/* x = k ln 2 + r, |r| <= ln 2 / 2. Adding 1.5 2^23 leaves the nearest integer in the low bits. */
#define M_ROUND 12582912.0f
CPU_INLINE float m_reduce(float x, int32_t *k)
{
  const float shifted = x * 1.44269504f + M_ROUND, n = shifted - M_ROUND;
  *k = m_minus(m_bits(shifted), m_bits(M_ROUND));
  return (x - n * 0.693359375f) - n * -2.12194440e-4f;     /* the first factor has 9 bits: n times it is exact */
}
/* e^r - 1 there */
CPU_INLINE float m_expm1_reduced(float r)
{
  const float p = (((1.381446258e-03f * r + 8.368780836e-03f) * r + 4.166839272e-02f) * r + 1.666651964e-01f) * r
                + 4.999999404e-01f;
  return p * (r * r) + r;
}

CPU_INLINE float m_exp(float x)
{
  int32_t k;
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const float y = m_expm1_reduced(m_reduce(x, &k)) + 1.0f;
  const int32_t half = k >> 1;            /* 2^k in two factors: k may exceed f32's exponents */
  return y * m_exp2i(half) * m_exp2i(k - half);
}

/* f g e^x without underflow before the final product, nor overflow for g up to 10^4 with x far below 0. Below x = -10^4, e^x counts as
 * 0, even times an infinite f. */
CPU_INLINE float m_product_exp(float f, float g, float x)
{
  int32_t k;
  const float zero = x < -1e4f ? 0.0f : 1.0f;
  x = x > 89.0f ? 89.0f : x;
  x = x < -200.0f ? -200.0f : x;
  const float y = m_expm1_reduced(m_reduce(x, &k)) + 1.0f;
  const int32_t third = (int32_t)((uint32_t)k * 11u) >> 5;    /* k is -288 to 128; from NaN any k will do */
  return y * m_exp2i(third) * f * m_exp2i(third) * g * (m_exp2i(k - 2 * third) * zero);      /* f y could overflow */
}
CPU_INLINE float m_times_exp(float f, float x) { return m_product_exp(f, 1.0f, x); }

/* e^x - 1 for x <= 0 */
CPU_INLINE float m_expm1_negative(float x)
{
  int32_t k;
  x = x < -30.0f ? -30.0f : x;
  const float e = m_expm1_reduced(m_reduce(x, &k)), scale = m_exp2i(k);
  return scale * e + (scale - 1.0f);
}

CPU_INLINE float m_log(float x)
{
  const float normal = x < 1.17549435e-38f ? x * 8388608.0f : x;
  const float less = x < 1.17549435e-38f ? 23.0f : 0.0f;
  const int32_t above = m_minus(m_bits(normal), 0x3f3504f3);       /* sqrt 1/2: to bring the mantissa within a factor sqrt 2 of 1 */
  const float e = (float)(above >> 23) - less;
  const float f = m_of_bits((above & 0x7fffff) + 0x3f3504f3) - 1.0f, f2 = f * f;
  float p = 6.746552140e-02f;
  p = p * f + -1.167562827e-01f;
  p = p * f + 1.188819036e-01f;
  p = p * f + -1.240559444e-01f;
  p = p * f + 1.421954930e-01f;
  p = p * f + -1.666799486e-01f;
  p = p * f + 2.000211924e-01f;
  p = p * f + -2.500000894e-01f;
  p = p * f + 3.333331347e-01f;
  const float low = (p * f * f2 + e * -2.12194440e-4f) - 0.5f * f2;
  float y = (f + low) + e * 0.693359375f;
  y = x < INFINITY ? y : x;               /* Inf, NaN */
  y = x < 0.0f ? NAN : y;
  return x == 0.0f ? -INFINITY : y;
}

/* ln(1 + x) for 0 <= x <= 1, as 2 artanh(x / (2 + x)) */
CPU_INLINE float m_log1p_unit(float x)
{
  const float s = x / (2.0f + x), s2 = s * s;
  const float p = (((1.215084121e-01f * s2 + 1.071373746e-01f) * s2 + 1.430844963e-01f) * s2 + 1.999943852e-01f) * s2
                + 3.333333731e-01f;
  return 2.0f * s + 2.0f * s * s2 * p;
}

/* Near 0 x P(x^2); beyond 1 1 - e^-Q(x), Q = -ln erfc. */
CPU_INLINE float m_erf(float x)
{
  const float a = m_abs(x), t = a > 4.0f ? 4.0f : a, x2 = x * x;
  float p = 7.889114931e-05f;
  p = p * x2 + -8.020839887e-04f;
  p = p * x2 + 5.189535208e-03f;
  p = p * x2 + -2.685444430e-02f;
  p = p * x2 + 1.128360033e-01f;
  p = p * x2 + -3.761262596e-01f;
  const float near = x * 1.28379107e-1f + x * (p * x2) + x;
  float q = 2.169869003e-05f;
  q = q * t + -4.414860159e-04f;
  q = q * t + 4.205354489e-03f;
  q = q * t + -2.521053702e-02f;
  q = q * t + 1.084224284e-01f;
  q = q * t + 6.332160830e-01f;
  q = q * t + 1.129580498e+00f;
  q = q * t + -1.885068050e-04f;
  int32_t k;
  const float e = m_expm1_reduced(m_reduce(-q, &k)), scale = m_exp2i(k);
  const float far = m_sign_of((1.0f - scale) - scale * e, x);
  return a > 1.0f ? far : near;
}

/* Near 0 x + x^3 P(x^2); else 1 - 2 / (e^2x + 1). */
CPU_INLINE float m_tanh(float x)
{
  const float a = m_abs(x), x2 = x * x;
  const float p = (((-5.660769530e-03f * x2 + 2.060198784e-02f) * x2 + -5.372922495e-02f) * x2 + 1.333132833e-01f) * x2
                + -3.333327770e-01f;
  const float near = x * x2 * p + x;
  const float far = m_sign_of(1.0f - 2.0f / (m_exp(2.0f * (a > 10.0f ? 10.0f : a)) + 1.0f), x);
  return a > 0.625f ? far : near;
}

/* e^-|x| never overflows; both branches keep their relative precision. */
CPU_INLINE float m_sigmoid(float x)
{
  const float e = m_exp(-m_abs(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

/* f g sigmoid(x), likewise: f g / (1 + e), times e if x < 0, with e = e^-|x| computed both whole and in factors. */
CPU_INLINE float m_product_sigmoid(float f, float g, float x)
{
  int32_t k;
  const float z = -m_abs(x), zero = z < -1e4f ? 0.0f : 1.0f;
  const float y = m_expm1_reduced(m_reduce(z < -200.0f ? -200.0f : z, &k)) + 1.0f;
  const int32_t third = (int32_t)((uint32_t)k * 11u) >> 5;
  const float scale = m_exp2i(third), last = m_exp2i(k - 2 * third);
  const float t = f / (1.0f + y * scale * scale * last), left = y * scale * t * scale * g * (last * zero);
  return x < 0.0f ? left : t * g;
}
CPU_INLINE float m_times_sigmoid(float f, float x) { return m_product_sigmoid(f, 1.0f, x); }

/* x in quarter turns, in double: x = k pi/2 + r. pi/2's first part has 33 bits, so k times it is exact for |x| < 2^20.
 * Larger x, m_turns_beyond, are left to libm. */
CPU_INLINE float m_reduce_turns(float x, int32_t *k)
{
  const double near = m_abs(x) < 1048576.0f ? x : 0.0f;
  const double n = (near * 0.63661977236758134 + 6755399441055744.0) - 6755399441055744.0;
  *k = (int32_t)n;
  return (float)((near - n * 1.57079632673412561e+00) - n * 6.07710050650619225e-11);
}
CPU_INLINE bool m_turns_beyond(float x) { return !(m_abs(x) < 1048576.0f); }

CPU_INLINE float m_sin_of(float r, int32_t quarter)
{
  const float r2 = r * r;
  const float s = ((-1.951665326e-04f * r2 + 8.332173340e-03f) * r2 + -1.666665524e-01f) * r2 * r + r;
  const float c = ((2.443240919e-05f * r2 + -1.388730947e-03f) * r2 + 4.166664556e-02f) * (r2 * r2) + (1.0f - 0.5f * r2);
  return m_of_bits(m_bits(quarter & 1 ? c : s) ^ (int32_t)((uint32_t)(quarter & 2) << 30));
}
CPU_INLINE float m_sin(float x)
{
  int32_t k;
  const float r = m_reduce_turns(x, &k);
  return x == 0.0f ? x : m_sin_of(r, k);
}
CPU_INLINE float m_cos(float x)
{
  int32_t k;
  const float r = m_reduce_turns(x, &k);
  return m_sin_of(r, k + 1);
}

/* b for a test of oddness: from 2^24 on all floats are even. */
CPU_INLINE float m_below_even(float b)   { return m_abs(b) < 16777216.0f ? b : 0.0f; }

/* What m_pow leaves to libm: Inf, NaN, zero or subnormal a, and negative a with non-integer b. */
CPU_INLINE bool m_pow_beyond(float a, float b)
{
  const float small = m_below_even(b);
  return (int)!(m_abs(a) < INFINITY) | !(m_abs(b) < INFINITY) | (m_abs(a) < 1.17549435e-38f)
       | ((a < 0.0f) & ((float)(int32_t)small != small));
}

/* a^b as 2^(b log2 |a|) in double. */
CPU_INLINE float m_pow(float a, float b)
{
  const int32_t above = (m_bits(a) & 0x7fffffff) - 0x3f3504f3;
  const double m = (double)m_of_bits((above & 0x7fffff) + 0x3f3504f3), s = (m - 1.0) / (m + 1.0), s2 = s * s;
  double p = 2.61396344943960024e-01;
  p = p * s2 + 3.20617890967042352e-01;
  p = p * s2 + 4.12198380450295720e-01;
  p = p * s2 + 5.77078017385408648e-01;
  p = p * s2 + 9.61796693924011348e-01;
  p = p * s2 + 2.88539008177792722e+00;
  double y = (double)b * (p * s + (double)(above >> 23));
  y = y > 200.0 ? 200.0 : y;
  y = y < -200.0 ? -200.0 : y;
  const double shifted = y + 6755399441055744.0, r = y - (shifted - 6755399441055744.0);
  int64_t k;
  memcpy(&k, &shifted, sizeof k);
  double q = 1.53164716269826124e-05;
  q = q * r + 1.54697582214528839e-04;
  q = q * r + 1.33334226055389221e-03;
  q = q * r + 9.61802552111545861e-03;
  q = q * r + 5.55041097615472517e-02;
  q = q * r + 2.40226512142070137e-01;
  q = q * r + 6.93147180535014340e-01;
  q = q * r + 9.99999999959484964e-01;
  k = (int64_t)((uint64_t)k << 52) + 0x3ff0000000000000;
  double scale;
  memcpy(&scale, &k, sizeof scale);
  const int32_t odd_sign = (int32_t)((uint32_t)(int32_t)m_below_even(b) << 31);
  return m_of_bits(m_bits((float)(q * scale)) | (m_bits(a) & odd_sign));
}
#endif
