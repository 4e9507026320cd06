/* larger.cuh -- the larger of two numbers in one instruction where there is one: NaN above all, of zeros either. */
#pragma once

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
