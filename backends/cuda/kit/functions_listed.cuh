/* functions_listed.cuh -- the functions of functions.def, for pointwise engines only: kernels that fuse common functions do not carry them. */
#pragma once
#include <cmath>
#include <quern/quern.h>

/* a - b floor(a / b): it has b's sign, also where it is 0. */
template <class T> __device__ __forceinline__ T fn_mod(T a, T b)
{
  const T r = fmod(a, b), other = (r < T(0)) != (b < T(0)) ? r + b : r;
  return r == T(0) ? copysign(r, b) : other;
}

/* A predicate gives 0 or 1. Unary: b is not used. */
template <class T> __device__ __forceinline__ T fn_listed(uint32_t op, T a, T b)
{
  switch (op) {
#define QN_FUNCTION(OP, half_ulps, oracle, fast) case QN_OP_##OP: return fast;
#include <quern/functions.def>
  default: return a;
  }
}

__device__ __forceinline__ int64_t fn_listed_integer(uint32_t op, int64_t a, int64_t b)
{
  switch (op) {
#define QN_INTEGER(OP, expression) case QN_OP_##OP: return expression;
#include <quern/functions.def>
  default: return a;
  }
}

static inline bool fn_is_listed(uint32_t op)
{
  switch (op) {
#define QN_FUNCTION(OP, half_ulps, oracle, fast) case QN_OP_##OP:
#include <quern/functions.def>
    return true;
  default: return false;
  }
}
