/* pool_peak.cuh -- where maxima are, and sums there. */
#pragma once
#include "pool_gradient.cuh"

/* A word of floats of which equals have the same bits: -0 as 0, all NaN alike. */
template <int dtype> __device__ __forceinline__ uint32_t plain(uint32_t w)
{
  if constexpr (dtype == QN_F32) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(__fadd_rn(__uint_as_float(w), 0.f));          /* a sum's NaN is 7fffffff */
#else
    const float v = __uint_as_float(w) + 0.f;
    return v == v ? __float_as_uint(v) : 0x7fffffffu;
#endif
  } else if constexpr (dtype == QN_BF16) {                  /* 7fff */
    const __nv_bfloat162 sum = __hadd2(*(const __nv_bfloat162 *)&w, __floats2bfloat162_rn(0, 0));
    return *(const uint32_t *)&sum;
  } else {
    const __half2 sum = __hadd2(*(const __half2 *)&w, __floats2half2_rn(0, 0));
    return *(const uint32_t *)&sum;
  }
}

/* The floats of a word as integers in their order, NaN above all; 0 is less than any. */
template <int dtype> __device__ __forceinline__ uint32_t order_of(uint32_t w)
{
  const uint32_t b = plain<dtype>(w);
  return dtype == QN_F32 ? b ^ ((uint32_t)((int32_t)b >> 31) | 0x80000000u) : b ^ ((b >> 15 & 0x10001u) * 0xffffu | 0x80008000u);
}

/* v to the first of a and b whose plain float, x or y, is the largest, else to c. Of a word of two floats, the lower or (half is 1) the upper. begun: how many of
 * a, b and c have had something; the others are set. */
template <int dtype, int half = 0, int begun = 3> __device__ __forceinline__ void give(float &a, float &b, float &c, uint32_t x, uint32_t y, uint32_t largest, float v)
{
  constexpr uint32_t mask = dtype == QN_F32 ? ~0u : half ? 0xffff0000u : 0xffffu;
  static_assert(begun >= 1 && begun <= 3, "a at least");
  if (begun < 2) b = 0;
#ifdef __CUDA_ARCH__
  if (begun == 3) {
    if (dtype == QN_F32)
      asm("{ .reg .pred p, n, q, r; setp.eq.u32 p|n, %3, %5; setp.eq.and.u32 q|r, %4, %5, n; @p add.f32 %0, %0, %6; @q add.f32 %1, %1, %6; @r add.f32 %2, %2, %6; }"
          : "+f"(a), "+f"(b), "+f"(c) : "r"(x), "r"(y), "r"(largest), "f"(v));
    else
      asm("{ .reg .pred p, n, q, r; .reg .b32 s, t; xor.b32 s, %3, %5; and.b32 s, s, %7; xor.b32 t, %4, %5; and.b32 t, t, %7; setp.eq.u32 p|n, s, 0;"
          " setp.eq.and.u32 q|r, t, 0, n; @p add.f32 %0, %0, %6; @q add.f32 %1, %1, %6; @r add.f32 %2, %2, %6; }"
          : "+f"(a), "+f"(b), "+f"(c) : "r"(x), "r"(y), "r"(largest), "f"(v), "n"(mask));
  } else {
    if (dtype == QN_F32)
      asm("{ .reg .pred p, n, q, r; setp.eq.u32 p|n, %3, %5; setp.eq.and.u32 q|r, %4, %5, n; @p add.f32 %0, %0, %6; @q add.f32 %1, %1, %6; selp.f32 %2, %6, 0f00000000, r; }"
          : "+f"(a), "+f"(b), "=f"(c) : "r"(x), "r"(y), "r"(largest), "f"(v));
    else
      asm("{ .reg .pred p, n, q, r; .reg .b32 s, t; xor.b32 s, %3, %5; and.b32 s, s, %7; xor.b32 t, %4, %5; and.b32 t, t, %7; setp.eq.u32 p|n, s, 0;"
          " setp.eq.and.u32 q|r, t, 0, n; @p add.f32 %0, %0, %6; @q add.f32 %1, %1, %6; selp.f32 %2, %6, 0f00000000, r; }"
          : "+f"(a), "+f"(b), "=f"(c) : "r"(x), "r"(y), "r"(largest), "f"(v), "n"(mask));
  }
#else
  const bool first = ((x ^ largest) & mask) == 0, second = !first && ((y ^ largest) & mask) == 0;
  if (begun < 3) c = 0;
  (first ? a : second ? b : c) += v;
#endif
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
