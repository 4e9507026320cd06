/* random.cuh -- what the engines of random numbers and dropout share: keys, and what is made of a word. */
#pragma once
#include <cstdint>
#include <quern/kit.h>

/* A key in host memory is read at the launch (p stays NULL), one on the device, an i64, by the kernel. */
struct random_key {
  const int64_t *p;
  int64_t value;
  __device__ uint64_t get() const { return (uint64_t)(p ? *p : value); }
};
static inline random_key random_key_of(const qn_value *v, const void *at)
{
  if (!v) return { nullptr, 0 };
  if (v->flags & QN_VALUE_HOST) return { nullptr, qn_load_i64(at, v->dtype) };
  return { (const int64_t *)at, 0 };
}

template <class T> __device__ __forceinline__ T random_uniform(uint32_t word) { return (T)(int32_t)(word >> 8) * T(0x1p-24); }

__device__ __forceinline__ void random_sincos(float t, float *s, float *c) { sincospif(t, s, c); }
__device__ __forceinline__ void random_sincos(double t, double *s, double *c) { sincospi(t, s, c); }
__device__ __forceinline__ float random_log(float x) { return logf(x); }
__device__ __forceinline__ double random_log(double x) { return log(x); }
/* Two of the standard normal distribution, by Box and Muller. */
template <class T> __device__ __forceinline__ void random_normal(uint32_t first, uint32_t second, T *a, T *b)
{
  T s, c, radius = sqrt(T(-2) * random_log(random_uniform<T>(first) + T(0x1p-24)));
  random_sincos(T(2) * random_uniform<T>(second), &s, &c);
  *a = radius * c;
  *b = radius * s;
}
