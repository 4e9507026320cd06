/* element.cuh -- conversion of elements of any dtype to and from registers. As in the schema's cast: to nearest even, floats
 * overflow to infinity, integers and 8-bit floats saturate, NaN becomes integer 0, bool is "not 0". */
#pragma once
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <quern/quern.h>

__device__ __forceinline__ float bf16_to_float(uint16_t h) { return __uint_as_float((uint32_t)h << 16); }
__device__ __forceinline__ float f16_to_float(uint16_t h) { return __half2float(__ushort_as_half(h)); }
__device__ __forceinline__ uint16_t float_to_bf16(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
__device__ __forceinline__ uint16_t float_to_f16(float x) { return __half_as_ushort(__float2half_rn(x)); }
__device__ __forceinline__ float f8_to_float(uint8_t b, __nv_fp8_interpretation_t kind)
{
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(b, kind)));
}
/* lo goes to the low half. */
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

/* Tells the compiler that the dtype is one of three, so that it emits no code for others. */
__device__ __forceinline__ uint32_t dtype3(uint32_t dtype) { return dtype == QN_F32 ? QN_F32 : dtype == QN_BF16 ? QN_BF16 : QN_F16; }

/* T: float, double or int64_t. float loses digits of f64 and of integers above 2^24. */
template <class T> __device__ __forceinline__ T element_load(const void *base, int64_t i, uint32_t dtype)
{
  switch (dtype) {
  case QN_F64:  return (T)((const double *)base)[i];
  case QN_F32:  return (T)((const float *)base)[i];
  case QN_F16:  return (T)f16_to_float(((const uint16_t *)base)[i]);
  case QN_BF16: return (T)bf16_to_float(((const uint16_t *)base)[i]);
  case QN_E4M3: return (T)f8_to_float(((const uint8_t *)base)[i], __NV_E4M3);
  case QN_E5M2: return (T)f8_to_float(((const uint8_t *)base)[i], __NV_E5M2);
  case QN_I8:   return (T)((const int8_t *)base)[i];
  case QN_U8:   return (T)((const uint8_t *)base)[i];
  case QN_I32:  return (T)((const int32_t *)base)[i];
  case QN_I64:  return (T)((const int64_t *)base)[i];
  default:      return (T)(((const uint8_t *)base)[i] != 0);
  }
}

__device__ __forceinline__ int64_t integer_clamp(int64_t v, uint32_t dtype)
{
  int64_t low = dtype == QN_I8 ? -128 : dtype == QN_I32 ? INT32_MIN : dtype == QN_U8 || dtype == QN_BOOL ? 0 : INT64_MIN;
  int64_t high = dtype == QN_I8 ? 127 : dtype == QN_I32 ? INT32_MAX : dtype == QN_U8 ? 255 : dtype == QN_BOOL ? 1 : INT64_MAX;
  return v < low ? low : v > high ? high : v;
}

/* Stores the low bits of v: integer arithmetic wraps. */
__device__ __forceinline__ void element_store_wrapped(void *base, int64_t i, uint32_t dtype, int64_t v)
{
  switch (dtype) {
  case QN_I64: ((int64_t *)base)[i] = v; break;
  case QN_I32: ((int32_t *)base)[i] = (int32_t)v; break;
  case QN_BOOL: ((uint8_t *)base)[i] = v != 0; break;
  default:     ((uint8_t *)base)[i] = (uint8_t)v; break;
  }
}

__device__ __forceinline__ void element_store(void *base, int64_t i, uint32_t dtype, double x)
{
  switch (dtype) {
  case QN_F64:  ((double *)base)[i] = x; break;
  case QN_F32:  ((float *)base)[i] = (float)x; break;
  case QN_F16:  ((uint16_t *)base)[i] = __half_as_ushort(__double2half(x)); break;
  case QN_BF16: ((uint16_t *)base)[i] = __bfloat16_as_ushort(__double2bfloat16(x)); break;
  case QN_E4M3: ((uint8_t *)base)[i] = __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E4M3); break;
  case QN_E5M2: ((uint8_t *)base)[i] = __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E5M2); break;
  case QN_BOOL: ((uint8_t *)base)[i] = x != 0; break;
  default:      /* __double2ll_rn saturates, but does not turn NaN into 0 */
    element_store_wrapped(base, i, dtype, x != x ? 0 : integer_clamp(__double2ll_rn(x), dtype));
    break;
  }
}

__device__ __forceinline__ void element_store(void *base, int64_t i, uint32_t dtype, float x)
{
  switch (dtype) {
  case QN_F64:  ((double *)base)[i] = x; break;
  case QN_F32:  ((float *)base)[i] = x; break;
  case QN_F16:  ((uint16_t *)base)[i] = float_to_f16(x); break;
  case QN_BF16: ((uint16_t *)base)[i] = float_to_bf16(x); break;
  default:      element_store(base, i, dtype, (double)x); break;
  }
}

/* As a cast does. 16-bit floats are rounded straight from the integer, because rounding to double first could break ties; for
 * 8-bit floats double is exact up to 2^53, far beyond their range. */
__device__ __forceinline__ void element_store(void *base, int64_t i, uint32_t dtype, int64_t v)
{
  switch (dtype) {
  case QN_F64:  ((double *)base)[i] = (double)v; break;
  case QN_F32:  ((float *)base)[i] = (float)v; break;
  case QN_F16:  ((uint16_t *)base)[i] = __half_as_ushort(__ll2half_rn(v)); break;
  case QN_BF16: ((uint16_t *)base)[i] = __bfloat16_as_ushort(__ll2bfloat16_rn(v)); break;
  case QN_E4M3: case QN_E5M2: element_store(base, i, dtype, (double)v); break;
  case QN_BOOL: ((uint8_t *)base)[i] = v != 0; break;
  default:      element_store_wrapped(base, i, dtype, integer_clamp(v, dtype)); break;
  }
}
