/* functions.cuh -- the schema's functions of one and two floats, as their formulas say; in float, and in double for f64. */
#pragma once
#include <cmath>
#include <quern/quern.h>

/* a e^x, rounded only once where e^x alone would be subnormal. */
template <class T> __device__ __forceinline__ T fn_times_exp(T a, T x)
{
  T h = exp(T(0.5) * x);
  return a * h * h;
}
/* a sigmoid(x): 1 / (1 + e^-x), or e^x / (1 + e^x) where e^-x would overflow. */
__device__ __forceinline__ float fn_ratio(float a, float b) { return __fdividef(a, b); }    /* b from 1 to 2 */
__device__ __forceinline__ double fn_ratio(double a, double b) { return a / b; }
template <class T> __device__ __forceinline__ T fn_times_sigmoid(T a, T x)
{
  T e = exp(-fabs(x));
  return x < T(-30) ? fn_times_exp(a, x) : a * fn_ratio(x < T(0) ? e : T(1), T(1) + e);
}
template <class T> __device__ __forceinline__ T fn_sigmoid(T x) { return fn_times_sigmoid(T(1), x); }
/* ln(1 + e^(beta x)) / beta, without overflow: where beta x > 0 its first term is x. */
template <class T> __device__ __forceinline__ T fn_softplus(T x, T beta = 1)
{
  const T z = beta * x;
  return (z > T(0) ? x : T(0)) + log1p(exp(-fabs(z))) / beta;
}
template <class T> __device__ __forceinline__ T fn_min(T a, T b) { return a != a || a <= b ? a : b; }
template <class T> __device__ __forceinline__ T fn_max(T a, T b) { return a != a || a >= b ? a : b; }

/* gelu(x) = x Phi(x). In double Phi uses erfc, which keeps its digits where Phi is small. In float,
 * with a = |x|: Phi(-a) = e^(-a^2/2) r(a), r a polynomial in t = 1 / (1 + 0.3 a); error 1e-8, in the tail 3e-6 relative. */
__device__ __forceinline__ double fn_phi(double x) { return 0.5 * erfc(x * -0.70710678118654752440); }
__device__ __forceinline__ float fn_exp2(float x)          /* subnormal results are flushed to 0 */
{
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fn_reciprocal(float x)   /* the same */
{
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fn_phi_given(float x, float bell)         /* bell = e^(-x^2/2) */
{
  const float t = fn_reciprocal(fmaf(0.3f, fabsf(x), 1.f));
  float r = 0.0341215329f;
  r = fmaf(r, t, -0.149783732f);
  r = fmaf(r, t, 0.19181731f);
  r = fmaf(r, t, -0.0386409494f);
  r = fmaf(r, t, 0.119759036f);
  r = fmaf(r, t, 0.102793424f);
  r = fmaf(r, t, 0.120272747f);
  r = fmaf(r, t, 0.119660623f) * t * bell;
  return x < 0 ? r : 1 - r;
}
__device__ __forceinline__ float fn_bell(float x) { return fn_exp2(x * -0.72134752f * x); }
__device__ __forceinline__ float fn_phi(float x) { return fn_phi_given(x, fn_bell(x)); }
/* gelu_tanh(x) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3) */
template <class T> __device__ __forceinline__ T fn_twice_u(T x)
{
  return T(1.59576912160573071176) * (x + T(0.044715) * x * x * x);
}
__device__ __forceinline__ double fn_gelu_derivative(double x) { return fn_phi(x) + x * exp(-0.5 * x * x) * 0.39894228040143267794; }
__device__ __forceinline__ float fn_gelu_derivative(float x)
{
  float bell = fn_bell(x);
  return fmaf(x * 0.39894228f, bell, fn_phi_given(x, bell));
}
template <class T> __device__ __forceinline__ T fn_gelu_tanh_derivative(T x)
{
  T t = fn_twice_u(x);
  /* NaN at infinity would come from inf times 0 */
  if (fabs(t) > (sizeof(T) == 8 ? T(760) : T(110))) return (x > T(0) ? T(1) : T(0)) + (x - x);
  return fn_sigmoid(t) + x * T(1.59576912160573071176) * (T(1) + T(0.134145) * x * x) * fn_sigmoid(t) * fn_sigmoid(-t);
}
/* x scale, clamped to +-3000 if x is finite: e^-1500 is 0, and neither x scale nor a product with it overflows before. */
template <class T> __device__ __forceinline__ T fn_bounded(T x, T scale = 1)
{
  const T z = scale * x;
  return x - x != T(0) ? z : z < T(-3000) ? T(-3000) : z > T(3000) ? T(3000) : z;
}
/* a b e^x for x far below 0, without overflow of a b. */
template <class T> __device__ __forceinline__ T fn_product_exp(T a, T b, T x)
{
  T h = exp(T(0.5) * x);
  return a * h * b * h;
}
/* dy s (1 + z (1 - s)), z = beta x, s = sigmoid(z) */
template <class T> __device__ __forceinline__ T fn_silu_backward(T dy, T x, T beta)
{
  const T z = fn_bounded(x, beta), slope = T(1) + z * fn_sigmoid(-z);
  return z < T(-30) ? fn_product_exp(dy, slope, z) : dy * fn_times_sigmoid(slope, z);
}
/* x tanh(softplus(x)): with e = e^x, tanh is (e^2 + 2e) / (e^2 + 2e + 2). */
template <class T> __device__ __forceinline__ T fn_mish(T x)
{
  return x < T(-30) ? fn_times_exp(x, x) : x * tanh(fn_softplus(x));
}
template <class T> __device__ __forceinline__ T fn_mish_backward(T dy, T x)
{
  if (x < T(-30)) return fn_product_exp(dy, T(1) + fn_bounded(x), x);
  T t = tanh(fn_softplus(x));
  return dy * (t + x * fn_sigmoid(x) * (T(1) - t) * (T(1) + t));
}
template <class T> __device__ __forceinline__ T fn_tanh_derivative(T x)    /* 1 - tanh^2, without cancellation */
{
  T c = cosh(x);
  return T(1) / (c * c);
}

/* Unary ops: arithmetic and activations. */
template <class T> __device__ __forceinline__ T fn_unary(uint32_t op, T x, T alpha, T beta)
{
  switch (op) {
  case QN_OP_NEG:        return -x;
  case QN_OP_ABS:        return fabs(x);
  case QN_OP_SIGN:       return x != x ? x : T(x > T(0)) - T(x < T(0));
  case QN_OP_EXP:        return exp(x);
  case QN_OP_LOG:        return log(x);
  case QN_OP_SQRT:       return sqrt(x);
  case QN_OP_RSQRT:      return T(1) / sqrt(x);
  case QN_OP_RECIPROCAL: return T(1) / x;
  case QN_OP_ERF:        return erf(x);
  case QN_OP_SIN:        return sin(x);
  case QN_OP_COS:        return cos(x);
  case QN_OP_FLOOR:      return floor(x);
  case QN_OP_CEIL:       return ceil(x);
  case QN_OP_ROUND:      return rint(x);
  case QN_OP_TRUNC:      return trunc(x);
  case QN_OP_RELU:       return x < T(0) ? T(0) : x;
  case QN_OP_LEAKY_RELU: return x > T(0) ? x : alpha * x;
  case QN_OP_ELU:        return x > T(0) ? x : alpha * expm1(x);
  case QN_OP_GELU:       return x * fn_phi(x);
  case QN_OP_GELU_TANH:  return fn_times_sigmoid(x, fn_twice_u(x));
  case QN_OP_SILU:       return fn_times_sigmoid(x, beta * x);
  case QN_OP_SIGMOID:    return fn_sigmoid(x);
  case QN_OP_TANH:       return tanh(x);
  case QN_OP_SOFTPLUS:   return fn_softplus(x, beta);
  case QN_OP_HARDSWISH:  return x * (fn_min(fn_max(x + T(3), T(0)), T(6)) / T(6));
  case QN_OP_MISH:       return fn_mish(x);
  case QN_OP_CLIP:       return fn_min(fn_max(x, alpha), beta);
  default:               return x;                         /* cast */
  }
}

/* Binary ops; for a backward activation a, b are dy and x. */
template <class T> __device__ __forceinline__ T fn_binary(uint32_t op, T a, T b, T alpha, T beta)
{
  switch (op) {
  case QN_OP_ADD: return a + b;
  case QN_OP_SUB: return a - b;
  case QN_OP_MUL: return a * b;
  case QN_OP_DIV: return a / b;
  case QN_OP_MIN: return fn_min(a, b);
  case QN_OP_MAX: return fn_max(a, b);
  case QN_OP_POW: return pow(a, b);
  case QN_OP_RELU_BACKWARD:       return b > T(0) ? a : T(0);
  case QN_OP_LEAKY_RELU_BACKWARD: return b > T(0) ? a : alpha * a;
  case QN_OP_ELU_BACKWARD:        return b > T(0) ? a : alpha * fn_times_exp(a, b);
  case QN_OP_GELU_BACKWARD:       return a * fn_gelu_derivative(b);
  case QN_OP_GELU_TANH_BACKWARD:  return a * fn_gelu_tanh_derivative(b);
  case QN_OP_SILU_BACKWARD:       return fn_silu_backward(a, b, beta);
  case QN_OP_SIGMOID_BACKWARD:    return fn_times_sigmoid(a * fn_sigmoid(fabs(b)), -fabs(b));
  case QN_OP_TANH_BACKWARD:       return a * fn_tanh_derivative(b);
  case QN_OP_SOFTPLUS_BACKWARD:   return fn_times_sigmoid(a, beta * b);
  case QN_OP_HARDSWISH_BACKWARD:  return a * (b <= T(-3) ? T(0) : b >= T(3) ? T(1) : (T(2) * b + T(3)) / T(6));
  case QN_OP_MISH_BACKWARD:       return fn_mish_backward(a, b);
  case QN_OP_CLIP_BACKWARD:       return b > alpha && b < beta ? a : T(0);
  default: return a;
  }
}
