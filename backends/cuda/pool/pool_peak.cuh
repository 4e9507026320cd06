/* pool_peak.cuh -- bit tricks shared by max pooling gradients: comparing floats as integers, predicated sums. */
#pragma once
#include "pool_gradient.cuh"

/* Canonical bits of the floats of a word, so that equal values have equal bits: -0 becomes 0, all NaN alike. */
template <int dtype> __device__ __forceinline__ uint32_t plain(uint32_t w)
{
  if constexpr (dtype == QN_F32) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(__fadd_rn(__uint_as_float(w), 0.f));          /* the NaN of a sum is 0x7fffffff */
#else
    const float v = __uint_as_float(w) + 0.f;
    return v == v ? __float_as_uint(v) : 0x7fffffffu;
#endif
  } else if constexpr (dtype == QN_BF16) {                  /* the NaN of a sum is 0x7fff */
    const __nv_bfloat162 sum = __hadd2(*(const __nv_bfloat162 *)&w, __floats2bfloat162_rn(0, 0));
    return *(const uint32_t *)&sum;
  } else {
    const __half2 sum = __hadd2(*(const __half2 *)&w, __floats2half2_rn(0, 0));
    return *(const uint32_t *)&sum;
  }
}

/* The floats of a word as unsigned integers in the same order, NaN largest; no float maps to 0. */
template <int dtype> __device__ __forceinline__ uint32_t order_of(uint32_t w)
{
  const uint32_t b = plain<dtype>(w);
  return dtype == QN_F32 ? b ^ ((uint32_t)((int32_t)b >> 31) | 0x80000000u) : b ^ ((b >> 15 & 0x10001u) * 0xffffu | 0x80008000u);
}

/* if (adds) sum += v, as a predicated add; compilers emit add and select. */
__device__ __forceinline__ void add_if(float &sum, bool adds, float v)
{
#ifdef __CUDA_ARCH__
  asm("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p add.f32 %0, %0, %2; }" : "+f"(sum) : "r"((uint32_t)adds), "f"(v));
#else
  if (adds) sum += v;
#endif
}

/* Are two words equal, or, of words of two floats, the lower (half 0) or upper (half 1) halves? Written so that the result is a
 * register, not a predicate. */
template <int dtype, int half> __device__ __forceinline__ bool same(uint32_t x, uint32_t y)
{
  constexpr uint32_t mask = dtype == QN_F32 ? ~0u : half ? 0xffff0000u : 0xffffu;
#ifdef __CUDA_ARCH__
  uint32_t is;
  asm("{ .reg .pred p; .reg .b32 t; xor.b32 t, %1, %2; and.b32 t, t, %3; setp.eq.u32 p, t, 0; selp.u32 %0, 1, 0, p; }"
      : "=r"(is)
      : "r"(x), "r"(y), "n"(mask));
  return is;
#else
  return ((x ^ y) & mask) == 0;
#endif
}

/* Adds v to a if x is the largest, else to b if y is, else to c; x, y, largest: canonical words, of which the lower or (half 1)
 * the upper half is compared. begun: how many of a, b, c already hold a sum; the others are assigned. */
template <int dtype, int half = 0, int begun = 3>
__device__ __forceinline__ void add_to_first(float &a, float &b, float &c, uint32_t x, uint32_t y, uint32_t largest, float v)
{
  const bool first = same<dtype, half>(x, largest), second = same<dtype, half>(y, largest);
  if (begun < 1) a = first ? v : 0;
  else add_if(a, first, v);
  const float rest = first ? 0 : v;
  if (begun < 2) b = second ? rest : 0;
  else add_if(b, second, rest);
  if (begun < 3) c = second ? 0 : rest;
  else add_if(c, !second, rest);
}

/* if (bits has `bit`) sum += v; written so that the compiler extracts many bits of a word into predicates at once. */
__device__ __forceinline__ void add_at_bit(float &sum, uint32_t bits, int bit, float v)
{
#ifdef __CUDA_ARCH__
  asm("{ .reg .pred p; .reg .b32 b; and.b32 b, %1, %2; setp.ne.u32 p, b, 0; @p add.f32 %0, %0, %3; }"
      : "+f"(sum)
      : "r"(bits), "r"(1u << bit), "f"(v));
#else
  if (bits >> bit & 1) sum += v;
#endif
}
