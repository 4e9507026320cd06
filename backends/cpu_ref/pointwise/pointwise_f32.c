/* pointwise_f32.c -- the pointwise functions in f32, also for f16, bf16 and f8: a row of numbers at a time.
 *
 * cpu_eval_f32 has a line per op; above it are the functions that need more than an expression, and the loops. Rows may
 * be identical in memory, but not overlap otherwise. Compiled with contraction and no other relaxation: NaN, infinities and
 * signed zeros come out as by the formulas of ops.h. */
#include <tgmath.h>
#include "kit/pointwise_tile.h"
#include "kit/pointwise_math.h"
#include "kit/convert.h"

/* ---- activations --------------------------------------------------------------------------------- */

CPU_INLINE float f_relu(float x, float a, float b)       { (void)a, (void)b; return x < 0.0f ? 0.0f : x; }
CPU_INLINE float f_leaky_relu(float x, float a, float b) { (void)b; return x > 0.0f ? x : a * x; }
CPU_INLINE float f_elu(float x, float a, float b)        { (void)b; return x > 0.0f ? x : a * m_expm1_negative(x); }
CPU_INLINE float f_gelu(float x, float a, float b)
{
  (void)a, (void)b;
  return 0.5f * x * (1.0f + m_erf(x * 0.707106781f));
}
/* (1 + tanh u) / 2 = sigmoid(2u), which keeps its precision where tanh nears -1 */
CPU_INLINE float gelu_inner(float x) { return 1.59576912f * (x + 0.044715f * x * x * x); }
CPU_INLINE float f_gelu_tanh(float x, float a, float b)  { (void)a, (void)b; return m_times_sigmoid(x, gelu_inner(x)); }
CPU_INLINE float f_silu(float x, float a, float b)       { (void)a; return m_times_sigmoid(x, b * x); }
CPU_INLINE float f_sigmoid(float x, float a, float b)    { (void)a, (void)b; return m_sigmoid(x); }
CPU_INLINE float f_tanh(float x, float a, float b)       { (void)a, (void)b; return m_tanh(x); }
CPU_INLINE float f_softplus(float x, float a, float b)   /* max(bx, 0)/b + ln(1 + e^-|bx|)/b */
{
  (void)a;
  const float linear = (b > 0.0f) == (x > 0.0f) ? x : x != x ? x : 0.0f;
  return linear + m_log1p_unit(m_exp(-m_abs(b * x))) / b;
}
CPU_INLINE float clamp_to_6(float x) { x = x < 0.0f ? 0.0f : x; return x > 6.0f ? 6.0f : x; }
CPU_INLINE float f_hardswish(float x, float a, float b)  { (void)a, (void)b; return x * (clamp_to_6(x + 3.0f) * (1 / 6.0f)); }
/* tanh(ln(1 + e)) = e (e + 2) / (e (e + 2) + 2); 1 in f32 from x = 20 on */
CPU_INLINE float f_mish(float x, float a, float b)
{
  (void)a, (void)b;
  const float e = m_exp(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f), far = m_times_exp(x, x);
  return x < -20.0f ? far : x * (n / (n + 2.0f));         /* n / (n + 2) tends to e */
}
CPU_INLINE float f_clip(float x, float a, float b)
{
  const float low = x < a ? a : x;
  return low > b ? b : low;
}

/* ---- their gradients, by the forward's x ----------------------------------------------------------- */

CPU_INLINE float g_relu(float dy, float x, float a, float b)       { (void)a, (void)b; return x > 0.0f ? dy : 0.0f; }
CPU_INLINE float g_leaky_relu(float dy, float x, float a, float b) { (void)b; return x > 0.0f ? dy : a * dy; }
CPU_INLINE float g_elu(float dy, float x, float a, float b)        { (void)b; return x > 0.0f ? dy : a * m_times_exp(dy, x); }
CPU_INLINE float g_gelu(float dy, float x, float a, float b)
{
  (void)a, (void)b;
  const float cdf = 0.5f * (1.0f + m_erf(x * 0.707106781f)), pdf = 0.398942280f * m_exp(-0.5f * x * x);
  return dy * (cdf + x * pdf);
}
/* x, but at least `limit`, below which its sigmoid is 0 anyway: the product with it must not overflow. -Inf stays. */
CPU_INLINE float not_below(float limit, float x) { return ((x < limit) & (x > -INFINITY)) ? limit : x; }
CPU_INLINE float g_gelu_tanh(float dy, float x, float a, float b)  /* s (1 + x 2 (1 - s) du/dx), s = sigmoid(2u) */
{
  (void)a, (void)b;
  const float u = gelu_inner(x), v = not_below(-100.0f, x), v2 = x > 100.0f ? 1e4f : v * v;
  return m_product_sigmoid(dy, 1.0f + v * (2.0f * m_sigmoid(-u)) * (0.797884561f * (1.0f + 0.134145f * v2)), u);
}
CPU_INLINE float g_silu(float dy, float x, float a, float b)
{
  (void)a;
  const float most = m_abs(x) < INFINITY ? 2e4f : INFINITY, bx = b * x, up = bx < -most ? -most : bx, z = up > most ? most : up;
  return m_product_sigmoid(dy, 1.0f + z * m_sigmoid(-z), z);
}
CPU_INLINE float g_sigmoid(float dy, float x, float a, float b)
{
  (void)a, (void)b;
  const float e = m_exp(-m_abs(x)), t = 1.0f / (1.0f + e);
  return m_times_exp(dy * t * t, -m_abs(x));
}
CPU_INLINE float g_tanh(float dy, float x, float a, float b)       /* 1 - tanh^2 = 4e / (1 + e)^2, e = e^-2|x| */
{
  (void)a, (void)b;
  const float e = m_exp(-2.0f * m_abs(x)), t = 1.0f / (1.0f + e);
  return m_product_exp(dy * t * t, 4.0f, -2.0f * m_abs(x));
}
CPU_INLINE float g_softplus(float dy, float x, float a, float b)   { (void)a; return m_times_sigmoid(dy, b * x); }
CPU_INLINE float g_hardswish(float dy, float x, float a, float b)
{
  (void)a, (void)b;
  const float inside = (2.0f * x + 3.0f) * (1 / 6.0f), right = x >= 3.0f ? 1.0f : inside;
  return dy * (x <= -3.0f ? 0.0f : right);
}
CPU_INLINE float g_mish(float dy, float x, float a, float b)       /* as f_mish; 1 - t^2 = 4 (n + 1) / (n + 2)^2 */
{
  (void)a, (void)b;
  const float e = m_exp(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f), r = 1.0f / (n + 2.0f), s = e / (1.0f + e);
  const float left = x > 20.0f ? 0.0f : 4.0f * (n + 1.0f) * r * r, v = not_below(-2e4f, x);
  const float far = m_product_exp(dy, 1.0f + v, v);
  return x < -20.0f ? far : dy * (n * r + x * s * left);
}
CPU_INLINE float g_over_root(float a, float b, float alpha, float beta) { (void)beta; return a / __builtin_sqrtf(b + alpha); }
CPU_INLINE float g_clip(float dy, float x, float a, float b)
{
  const float below = x < b ? dy : 0.0f;
  return x > a ? below : 0.0f;
}

/* ---- arithmetic ------------------------------------------------------------------------------------ */

CPU_INLINE float f_add(float x, float y) { return x + y; }
CPU_INLINE float f_sub(float x, float y) { return x - y; }
CPU_INLINE float f_mul(float x, float y) { return x * y; }
CPU_INLINE float f_div(float x, float y) { return x / y; }
CPU_INLINE float f_min(float x, float y) { const float m = y < x ? y : x; return y != y ? y : m; }
CPU_INLINE float f_max(float x, float y) { const float m = y > x ? y : x; return y != y ? y : m; }

CPU_INLINE int32_t f_eq(float x, float y) { return x == y; }
CPU_INLINE int32_t f_ne(float x, float y) { return x != y; }
CPU_INLINE int32_t f_lt(float x, float y) { return x < y; }
CPU_INLINE int32_t f_le(float x, float y) { return x <= y; }
CPU_INLINE int32_t f_gt(float x, float y) { return x > y; }
CPU_INLINE int32_t f_ge(float x, float y) { return x >= y; }

CPU_INLINE float f_neg(float x, float a, float b)   { (void)a, (void)b; return -x; }
CPU_INLINE float f_abs(float x, float a, float b)   { (void)a, (void)b; return m_abs(x); }
CPU_INLINE float f_sign(float x, float a, float b)
{
  (void)a, (void)b;
  const float positive = x > 0.0f ? 1.0f : x;             /* keeps zeros and NaN */
  return x < 0.0f ? -1.0f : positive;
}
CPU_INLINE float f_exp(float x, float a, float b)   { (void)a, (void)b; return m_exp(x); }
CPU_INLINE float f_log(float x, float a, float b)   { (void)a, (void)b; return m_log(x); }
CPU_INLINE float f_sqrt(float x, float a, float b)  { (void)a, (void)b; return __builtin_sqrtf(x); }
CPU_INLINE float f_rsqrt(float x, float a, float b) { (void)a, (void)b; return 1.0f / __builtin_sqrtf(x); }
CPU_INLINE float f_reciprocal(float x, float a, float b) { (void)a, (void)b; return 1.0f / x; }
CPU_INLINE float f_erf(float x, float a, float b)   { (void)a, (void)b; return m_erf(x); }
CPU_INLINE float f_floor(float x, float a, float b) { (void)a, (void)b; return __builtin_floorf(x); }
CPU_INLINE float f_ceil(float x, float a, float b)  { (void)a, (void)b; return __builtin_ceilf(x); }
CPU_INLINE float f_round(float x, float a, float b) { (void)a, (void)b; return __builtin_rintf(x); }
CPU_INLINE float f_trunc(float x, float a, float b) { (void)a, (void)b; return __builtin_truncf(x); }

/* ---- loops ------------------------------------------------------------------------------------------ */

typedef struct rows { float *y; const float *a, *b; int64_t n; float alpha, beta; } rows;

CPU_INLINE bool one(rows r, float (*f)(float, float, float))
{
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) r.y[i] = f(r.a[i], r.alpha, r.beta);
  return true;
}

CPU_INLINE bool two(rows r, float (*f)(float, float))
{
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) r.y[i] = f(r.a[i], r.b[i]);
  return true;
}

CPU_INLINE bool gradient(rows r, float (*f)(float, float, float, float))
{
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) r.y[i] = f(r.a[i], r.b[i], r.alpha, r.beta);
  return true;
}

CPU_INLINE bool compare(rows r, int32_t (*f)(float, float))
{
  int32_t *y = (int32_t *)(void *)r.y;
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) y[i] = f(r.a[i], r.b[i]);
  return true;
}

static bool choose(rows r, const int32_t *c)
{
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) r.y[i] = c[i] ? r.a[i] : r.b[i];
  return true;
}

/* For functions that leave some arguments to libm: these are saved before y, which may be x, is written. */
enum { STRETCH = 256 };

CPU_INLINE bool turns(rows r, float (*fast)(float), float (*all)(float))
{
  float rest[STRETCH];
  for (int64_t at = 0; at < r.n; at += STRETCH) {
    const int64_t n = qn_min_i64(STRETCH, r.n - at);
    const float *x = r.a + at;
    float *y = r.y + at;
    int32_t beyond = 0;
#pragma omp simd reduction(|: beyond)
    for (int64_t i = 0; i < n; i++) beyond |= m_turns_beyond(x[i]);
    if (beyond) memcpy(rest, x, (size_t)n * sizeof *x);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = fast(x[i]);
    for (int64_t i = 0; beyond && i < n; i++)
      if (m_turns_beyond(rest[i])) y[i] = all(rest[i]);
  }
  return true;
}

static bool power(rows r)
{
  float base[STRETCH], exponent[STRETCH];
  for (int64_t at = 0; at < r.n; at += STRETCH) {
    const int64_t n = qn_min_i64(STRETCH, r.n - at);
    const float *a = r.a + at, *b = r.b + at;
    float *y = r.y + at;
    int32_t beyond = 0, other = 0;
#pragma omp simd reduction(|: beyond, other)
    for (int64_t i = 0; i < n; i++) {
      beyond |= m_pow_beyond(a[i], b[i]);
      other |= b[i] != 2.0f;
    }
    if (!other) {
#pragma omp simd
      for (int64_t i = 0; i < n; i++) y[i] = a[i] * a[i];
      continue;
    }
    if (beyond) {
      memcpy(base, a, (size_t)n * sizeof *a);
      memcpy(exponent, b, (size_t)n * sizeof *b);
    }
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = m_pow(a[i], b[i]);
    for (int64_t i = 0; beyond && i < n; i++)
      if (m_pow_beyond(base[i], exponent[i])) y[i] = powf(base[i], exponent[i]);
  }
  return true;
}

/* To integers: to nearest even, saturated; NaN gives 0. To narrower floats: rounded, and stored as f32. */
static void to_i32(int32_t *y, const float *x, int64_t n, uint32_t dtype)
{
  const float low = (float)qn_least(dtype), high = (float)qn_largest(dtype);
  const int32_t last = (int32_t)qn_largest(dtype);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float nearest = __builtin_rintf(x[i]), above = nearest < low ? low : nearest;
    const int32_t v = (int32_t)(above < high ? above : 0.0f);
    y[i] = above >= high ? last : v;      /* as a float i32's largest is 2^31: anything below converts */
  }
}

static bool cast(rows r, const cpu_instruction *code)
{
  int32_t *whole = (int32_t *)(void *)r.y;
  uint16_t narrow[STRETCH];               /* wide enough for any format narrower than f32 */
  if (code->out_type == CPU_F64)          /* y and x may share memory only if both are as wide as f64: see compile() */
    for (int64_t i = 0; i < r.n; i++) ((double *)(void *)r.y)[i] = r.a[i];
  else if (code->out_type == CPU_I64)
    for (int64_t i = 0; i < r.n; i++) ((int64_t *)(void *)r.y)[i] = qn_i64_from_f64(r.a[i]);
  else if (code->out_type == CPU_I32 && code->dtype == QN_BOOL)
    for (int64_t i = 0; i < r.n; i++) whole[i] = r.a[i] != 0.0f;
  else if (code->out_type == CPU_I32)
    to_i32(whole, r.a, r.n, code->dtype);
  else if (code->dtype == QN_F32 && r.n)  /* no elements: only a query */
    memmove(r.y, r.a, (size_t)r.n * sizeof *r.a);
  else
    for (int64_t at = 0; at < r.n; at += STRETCH) {
      const int64_t n = qn_min_i64(STRETCH, r.n - at);
      row_from_f32(narrow, r.a + at, code->dtype, n);
      row_to_f32(r.y + at, narrow, code->dtype, n);
    }
  return true;
}

/* ---- functions.def: by the C library, one number at a time ------------------------------------------------ */

static float fn_mod(float a, float b)                     /* a - b floor(a / b): it has b's sign, also where it is 0 */
{
  const float r = fmodf(a, b), other = (r < 0) != (b < 0) ? r + b : r;
  return r == 0 ? copysignf(r, b) : other;
}

static float listed(uint32_t op, float a, float b)
{
  switch (op) {
#define T(x) ((float)(x))
#define QN_FUNCTION(OP, half_ulps, oracle, fast) case QN_OP_##OP: return fast;
#include <quern/functions.def>
#undef T
  default: return NAN;
  }
}

static bool each(rows r, const cpu_instruction *code)
{
  switch (code->op) {
#define QN_FUNCTION(OP, half_ulps, oracle, fast) case QN_OP_##OP:
#include <quern/functions.def>
    break;
  default: return false;
  }
  const float *b = r.b ? r.b : r.a;
  if (code->out_type == CPU_I32)
    for (int64_t i = 0; i < r.n; i++) ((int32_t *)(void *)r.y)[i] = listed(code->op, r.a[i], b[i]) != 0;
  else
    for (int64_t i = 0; i < r.n; i++) r.y[i] = listed(code->op, r.a[i], b[i]);
  return true;
}

/* ---- the table: a line for each op -------------------------------------------------------------------- */

bool CPU_NAME(cpu_eval_f32)(const cpu_instruction *code, void *const *r, void *y, int64_t n)
{
  rows w = { .y = y, .n = n, .alpha = (float)code->alpha, .beta = (float)code->beta };
  const int32_t *condition = NULL;
  if (n) {
    w.a = r[code->in[0]];
    if (code->in[1] >= 0) w.b = r[code->in[1]];
    if (code->op == QN_OP_SELECT) {
      condition = r[code->in[0]];
      w.a = r[code->in[1]];
      w.b = r[code->in[2]];
    }
  }
  switch (code->op) {
  case QN_OP_ADD:                 return two(w, f_add);
  case QN_OP_SUB:                 return two(w, f_sub);
  case QN_OP_MUL:                 return two(w, f_mul);
  case QN_OP_DIV:                 return two(w, f_div);
  case QN_OP_MIN:                 return two(w, f_min);
  case QN_OP_MAX:                 return two(w, f_max);
  case QN_OP_POW:                 return power(w);
  case QN_OP_EQ:                  return compare(w, f_eq);
  case QN_OP_NE:                  return compare(w, f_ne);
  case QN_OP_LT:                  return compare(w, f_lt);
  case QN_OP_LE:                  return compare(w, f_le);
  case QN_OP_GT:                  return compare(w, f_gt);
  case QN_OP_GE:                  return compare(w, f_ge);
  case QN_OP_SELECT:              return choose(w, condition);
  case QN_OP_CAST:                return cast(w, code);
  case QN_OP_NEG:                 return one(w, f_neg);
  case QN_OP_ABS:                 return one(w, f_abs);
  case QN_OP_SIGN:                return one(w, f_sign);
  case QN_OP_EXP:                 return one(w, f_exp);
  case QN_OP_LOG:                 return one(w, f_log);
  case QN_OP_SQRT:                return one(w, f_sqrt);
  case QN_OP_RSQRT:               return one(w, f_rsqrt);
  case QN_OP_RECIPROCAL:          return one(w, f_reciprocal);
  case QN_OP_ERF:                 return one(w, f_erf);
  case QN_OP_SIN:                 return turns(w, m_sin, sinf);
  case QN_OP_COS:                 return turns(w, m_cos, cosf);
  case QN_OP_FLOOR:               return one(w, f_floor);
  case QN_OP_CEIL:                return one(w, f_ceil);
  case QN_OP_ROUND:               return one(w, f_round);
  case QN_OP_TRUNC:               return one(w, f_trunc);
  case QN_OP_RELU:                return one(w, f_relu);
  case QN_OP_LEAKY_RELU:          return one(w, f_leaky_relu);
  case QN_OP_ELU:                 return one(w, f_elu);
  case QN_OP_GELU:                return one(w, f_gelu);
  case QN_OP_GELU_TANH:           return one(w, f_gelu_tanh);
  case QN_OP_SILU:                return one(w, f_silu);
  case QN_OP_SIGMOID:             return one(w, f_sigmoid);
  case QN_OP_TANH:                return one(w, f_tanh);
  case QN_OP_SOFTPLUS:            return one(w, f_softplus);
  case QN_OP_HARDSWISH:           return one(w, f_hardswish);
  case QN_OP_MISH:                return one(w, f_mish);
  case QN_OP_CLIP:                return one(w, f_clip);
  case QN_OP_RELU_BACKWARD:       return gradient(w, g_relu);
  case QN_OP_LEAKY_RELU_BACKWARD: return gradient(w, g_leaky_relu);
  case QN_OP_ELU_BACKWARD:        return gradient(w, g_elu);
  case QN_OP_GELU_BACKWARD:       return gradient(w, g_gelu);
  case QN_OP_GELU_TANH_BACKWARD:  return gradient(w, g_gelu_tanh);
  case QN_OP_SILU_BACKWARD:       return gradient(w, g_silu);
  case QN_OP_SIGMOID_BACKWARD:    return gradient(w, g_sigmoid);
  case QN_OP_TANH_BACKWARD:       return gradient(w, g_tanh);
  case QN_OP_SOFTPLUS_BACKWARD:   return gradient(w, g_softplus);
  case QN_OP_HARDSWISH_BACKWARD:  return gradient(w, g_hardswish);
  case QN_OP_MISH_BACKWARD:       return gradient(w, g_mish);
  case QN_OP_CLIP_BACKWARD:       return gradient(w, g_clip);
  case CPU_OVER_ROOT:             return gradient(w, g_over_root);
  default:                        return each(w, code);
  }
}
