/* quantize.cuh -- shared by the quantization engines: reading scales, and computing them from a block's largest magnitude. */
#pragma once
#include "kit/element.cuh"

template <class T> __host__ __device__ constexpr T quantize_largest(uint32_t dtype)
{
  return dtype == QN_E4M3 ? T(448) : dtype == QN_E5M2 ? T(57344) : T(127);
}
__host__ __device__ constexpr int quantize_emax(uint32_t dtype) { return dtype == QN_E4M3 ? 8 : dtype == QN_E5M2 ? 15 : 6; }

__device__ __forceinline__ float e8m0_to_float(uint8_t b)
{
  return __uint_as_float(b == 255 ? 0x7fc00000u : b ? (uint32_t)b << 23 : 0x00400000u);
}
template <class T> __device__ __forceinline__ T scale_load(const void *base, int64_t i, uint32_t dtype)
{
  return dtype == QN_E8M0 ? (T)e8m0_to_float(((const uint8_t *)base)[i]) : element_load<T>(base, i, dtype);
}

template <class T> __device__ __forceinline__ T plain_scale(T amax, uint32_t dtype)
{
  T scale = amax / quantize_largest<T>(dtype);
  return scale == 0 ? T(1) : scale;
}
/* 2^(floor(log2 amax) - emax) as e8m0: amax's exponent field minus emax. */
__device__ __forceinline__ uint8_t power_scale(float amax, uint32_t dtype)
{
  uint32_t bits = __float_as_uint(amax);
  return (uint8_t)(bits >= 0x7f800000u ? 255 : max(0, (int)(bits >> 23) - quantize_emax(dtype)));
}
__device__ __forceinline__ uint8_t power_scale(double amax, uint32_t dtype)
{
  if (!(amax < INFINITY)) return 255;
  int e = (int)(__double_as_longlong(amax) >> 52) - 1023 + 127 - quantize_emax(dtype);
  return (uint8_t)(e < 0 ? 0 : e > 254 ? 255 : e);
}
