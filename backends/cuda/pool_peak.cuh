/* pool_peak.cuh -- maxima as integers in the order of floats, and sums at the places that bits of a word say. */
#pragma once
#include "pool_gradient.cuh"

/* The floats of a word as integers in their order: -0 as 0, all NaN alike and above all; 0 is less than any. */
template <int dtype> __device__ __forceinline__ uint32_t order_of(uint32_t w)
{
  if constexpr (dtype == QN_F32) {
#ifdef __CUDA_ARCH__
    const uint32_t b = __float_as_uint(__fadd_rn(__uint_as_float(w), 0.f));          /* a sum's NaN is 7fffffff */
#else
    const float v = __uint_as_float(w) + 0.f;
    const uint32_t b = v == v ? __float_as_uint(v) : 0x7fffffffu;
#endif
    return b ^ ((uint32_t)((int32_t)b >> 31) | 0x80000000u);
  } else {
    uint32_t b;                           /* a sum's NaN is 7fff */
    if constexpr (dtype == QN_BF16) {
      const __nv_bfloat162 sum = __hadd2(*(const __nv_bfloat162 *)&w, __floats2bfloat162_rn(0, 0));
      b = *(const uint32_t *)&sum;
    } else {
      const __half2 sum = __hadd2(*(const __half2 *)&w, __floats2half2_rn(0, 0));
      b = *(const uint32_t *)&sum;
    }
    return b ^ ((b >> 15 & 0x10001u) * 0xffffu | 0x80008000u);
  }
}

/* sum += v if that bit is set: said so, the bits of a word become predicates many at once. */
__device__ __forceinline__ void add_at_bit(float &sum, uint32_t bits, int bit, float v)
{
#ifdef __CUDA_ARCH__
  asm("{ .reg .pred p; .reg .b32 b; and.b32 b, %1, %2; setp.ne.u32 p, b, 0; @p add.f32 %0, %0, %3; }" : "+f"(sum) : "r"(bits), "r"(1u << bit), "f"(v));
#else
  if (bits >> bit & 1) sum += v;
#endif
}
