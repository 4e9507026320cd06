/* functions.cuh -- the schema's functions of one and two floats, each as its formula says; in float, and in double for f64. */
#pragma once
#include <cmath>
#include <quern/quern.h>

template <class T> __device__ __forceinline__ T fn_sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
template <class T> __device__ __forceinline__ T fn_softplus(T x)           /* ln(1 + e^x) without overflow */
{
  return x != x ? x : (x > T(0) ? x : T(0)) + log1p(exp(-fabs(x)));
}
template <class T> __device__ __forceinline__ T fn_min(T a, T b) { return a != a || a <= b ? a : b; }
template <class T> __device__ __forceinline__ T fn_max(T a, T b) { return a != a || a >= b ? a : b; }

/* gelu(x) = x Phi(x), Phi by the complementary error function: it keeps its digits where Phi is small. */
template <class T> __device__ __forceinline__ T fn_phi(T x) { return T(0.5) * erfc(x * T(-0.70710678118654752440)); }
/* gelu_tanh(x) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3) */
template <class T> __device__ __forceinline__ T fn_twice_u(T x)
{
  return T(1.59576912160573071176) * (x + T(0.044715) * x * x * x);
}
template <class T> __device__ __forceinline__ T fn_gelu_derivative(T x)
{
  return fn_phi(x) + x * exp(T(-0.5) * x * x) * T(0.39894228040143267794);
}
template <class T> __device__ __forceinline__ T fn_gelu_tanh_derivative(T x)
{
  T t = fn_twice_u(x), s = fn_sigmoid(t);
  return s + x * T(1.59576912160573071176) * (T(1) + T(0.134145) * x * x) * s * fn_sigmoid(-t);
}
template <class T> __device__ __forceinline__ T fn_silu_derivative(T x, T beta)
{
  return fn_sigmoid(beta * x) * (T(1) + beta * x * fn_sigmoid(-beta * x));
}
template <class T> __device__ __forceinline__ T fn_mish_derivative(T x)
{
  T t = tanh(fn_softplus(x));
  return t + x * fn_sigmoid(x) * (T(1) - t) * (T(1) + t);
}
template <class T> __device__ __forceinline__ T fn_tanh_derivative(T x)    /* 1 - tanh^2, without cancellation */
{
  T c = cosh(x);
  return T(1) / (c * c);
}

/* x of the unary op: arithmetic and activations. */
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
  case QN_OP_RELU:       return x < T(0) ? T(0) : x;
  case QN_OP_LEAKY_RELU: return x > T(0) ? x : alpha * x;
  case QN_OP_ELU:        return x > T(0) ? x : alpha * expm1(x);
  case QN_OP_GELU:       return x * fn_phi(x);
  case QN_OP_GELU_TANH:  return x * fn_sigmoid(fn_twice_u(x));
  case QN_OP_SILU:       return x * fn_sigmoid(beta * x);
  case QN_OP_SIGMOID:    return fn_sigmoid(x);
  case QN_OP_TANH:       return tanh(x);
  case QN_OP_SOFTPLUS:   return fn_softplus(beta * x) / beta;
  case QN_OP_HARDSWISH:  return x * fn_min(fn_max(x + T(3), T(0)), T(6)) / T(6);
  case QN_OP_MISH:       return x * tanh(fn_softplus(x));
  case QN_OP_CLIP:       return fn_min(fn_max(x, alpha), beta);
  default:               return x;                         /* cast */
  }
}

/* a, b of the binary op; of a backward activation dy and x. */
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
  case QN_OP_ELU_BACKWARD:        return b > T(0) ? a : alpha * exp(b) * a;
  case QN_OP_GELU_BACKWARD:       return a * fn_gelu_derivative(b);
  case QN_OP_GELU_TANH_BACKWARD:  return a * fn_gelu_tanh_derivative(b);
  case QN_OP_SILU_BACKWARD:       return a * fn_silu_derivative(b, beta);
  case QN_OP_SIGMOID_BACKWARD:    return a * fn_sigmoid(b) * fn_sigmoid(-b);
  case QN_OP_TANH_BACKWARD:       return a * fn_tanh_derivative(b);
  case QN_OP_SOFTPLUS_BACKWARD:   return a * fn_sigmoid(beta * b);
  case QN_OP_HARDSWISH_BACKWARD:  return a * (b <= T(-3) ? T(0) : b >= T(3) ? T(1) : (T(2) * b + T(3)) / T(6));
  case QN_OP_MISH_BACKWARD:       return a * fn_mish_derivative(b);
  case QN_OP_CLIP_BACKWARD:       return b > alpha && b < beta ? a : T(0);
  default: return a;
  }
}
