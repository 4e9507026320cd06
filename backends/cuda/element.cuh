/* element.cuh -- elements of any dtype to and from registers. Conversions are those of the schema's cast: to nearest even,
 * floats overflow to infinity, integers and 8-bit floats saturate, NaN becomes integer 0. */
#pragma once
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <quern/quern.h>

__host__ __device__ __forceinline__ int element_bytes(uint32_t dtype)
{
  return dtype == QN_F64 || dtype == QN_I64 ? 8 : dtype == QN_F32 || dtype == QN_I32 ? 4 : dtype == QN_F16 || dtype == QN_BF16 ? 2 : 1;
}

__device__ __forceinline__ float bf16_to_float(uint16_t h) { return __uint_as_float((uint32_t)h << 16); }
__device__ __forceinline__ float f16_to_float(uint16_t h) { return __half2float(__ushort_as_half(h)); }
__device__ __forceinline__ uint16_t float_to_bf16(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
__device__ __forceinline__ uint16_t float_to_f16(float x) { return __half_as_ushort(__float2half_rn(x)); }
__device__ __forceinline__ float f8_to_float(uint8_t b, __nv_fp8_interpretation_t kind)
{
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(b, kind)));
}
/* First to the low half. */
__device__ __forceinline__ uint32_t pack_bf16(float lo, float hi)
{
  __nv_bfloat162 p = __floats2bfloat162_rn(lo, hi);
  return *(uint32_t *)&p;
}
__device__ __forceinline__ uint32_t pack_f16(float lo, float hi)
{
  __half2 p = __floats2half2_rn(lo, hi);
  return *(uint32_t *)&p;
}
