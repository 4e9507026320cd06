/* eight.cuh -- eight neighbouring elements per call, not inlined: long code used in many places is compiled once per kernel. */
#pragma once
#include "vector.cuh"

struct eight {
  float v[8];

  __device__ __forceinline__ void to(float (&w)[8]) const
  {
#pragma unroll
    for (int i = 0; i < 8; i++) w[i] = v[i];
  }
};
__device__ __forceinline__ eight eight_of(const float (&v)[8])
{
  eight a;
#pragma unroll
  for (int i = 0; i < 8; i++) a.v[i] = v[i];
  return a;
}

/* Loads f32, bf16 or f16 at any alignment; the first n exist, the others are 0. */
static __device__ __noinline__ eight eight_load(const void *base, uint32_t dtype, int64_t at, int n)
{
  eight a;
  vector_load(a.v, base, dtype3(dtype), at, 1, n);
  return a;
}
static __device__ __noinline__ void eight_store(eight a, void *base, uint32_t dtype, int64_t at, int n)
{
  vector_store(a.v, base, dtype3(dtype), at, 1, n);
}
