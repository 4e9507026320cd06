/* attention_cache.cuh -- writes into a cache of another dtype: eight neighbours of a row divided by the scale of their block, rounded and
 * saturated as quantize does. */
#pragma once
#include "cuda_backend.h"
#include "kit/divisor.h"
#include "kit/vector.cuh"

/* by: pages, heads, places, elements that share a scale; strides 0 where all do. */
struct cache_scale { const float *p; int64_t stride[4]; cuda_divisor by[4]; };         /* p NULL: not divided */

static void cache_scale_of(cache_scale *t, const qn_value *scale, const qn_value *cache)
{
  for (int d = 0; d < 4; d++) {
    const int64_t n = scale->rank ? scale->dim[d] : 1;
    t->stride[d] = n > 1 ? scale->stride[d] : 0, t->by[d] = cuda_divide_by(qn_max_i64(1, n > 1 ? cache->dim[d] / n : 1));
  }
}
static bool cache_scale_taken(const qn_value *scale) { return scale->dtype == QN_F32 && scale->align >= 4; }
static bool cache_dtype(uint32_t dtype)
{
  return dtype == QN_F32 || dtype == QN_F16 || dtype == QN_BF16 || dtype == QN_E4M3 || dtype == QN_E5M2 || dtype == QN_I8;
}

__device__ __forceinline__ uint32_t cache_byte(float x, uint32_t dtype)
{
  if (dtype == QN_I8) return (uint8_t)(x == x ? __float2int_rn(fminf(fmaxf(x, -128.f), 127.f)) : 0);
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, dtype == QN_E4M3 ? __NV_E4M3 : __NV_E5M2);
}

/* n of the elements from number c on of a row at base[at], whose stride is given; where: the row's page, head, place. */
__device__ __forceinline__ void cache_store(float (&x)[8], const cache_scale &scale, const uint32_t (&where)[3], void *base, uint32_t dtype,
                                            int64_t at, int c, int64_t stride, int n)
{
  if (scale.p) {
    const float *s = scale.p;
#pragma unroll
    for (int d = 0; d < 3; d++) s += cuda_quotient(where[d], scale.by[d]) * scale.stride[d];
#pragma unroll
    for (int i = 0; i < 8; i++) x[i] = __fdiv_rn(x[i], s[i < n ? cuda_quotient((uint32_t)(c + i), scale.by[3]) * scale.stride[3] : 0]);
  }
  at += c * stride;
  if (dtype == QN_F32 || dtype == QN_F16 || dtype == QN_BF16) {
    vector_store(x, base, dtype3(dtype), at, stride, n);
    return;
  }
  uint8_t *to = (uint8_t *)base + at;
  uint32_t word[2] = { 0, 0 };
#pragma unroll
  for (int i = 0; i < 8; i++) word[i / 4] |= cache_byte(x[i], dtype) << i % 4 * 8;
  if (stride == 1 && n == 8 && vector_aligned(to, 8)) {
    *(uint2 *)to = make_uint2(word[0], word[1]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; i++) if (i < n) to[i * stride] = (uint8_t)(word[i / 4] >> i % 4 * 8);
}
