/* larger.cuh -- the larger of two numbers, in one instruction where there is one: NaN wins; of two zeros either. */
#pragma once
#include "element.cuh"

__device__ __forceinline__ float larger(float a, float b)
{
#if __CUDA_ARCH__ >= 800
  float v;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
  return v;
#else
  return a >= b || a != a ? a : b;
#endif
}

/* The larger in each half of a word of two f16 or bf16. */
template <int dtype> __device__ __forceinline__ uint32_t larger_pair(uint32_t a, uint32_t b)
{
#if __CUDA_ARCH__ >= 800
  uint32_t v;
  if (dtype == QN_BF16) asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
  else asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
  return v;
#else
  if (dtype == QN_BF16)
    return pack_bf16(larger(bf16_to_float((uint16_t)a), bf16_to_float((uint16_t)b)),
                     larger(bf16_to_float(a >> 16), bf16_to_float(b >> 16)));
  return pack_f16(larger(f16_to_float((uint16_t)a), f16_to_float((uint16_t)b)), larger(f16_to_float(a >> 16), f16_to_float(b >> 16)));
#endif
}
