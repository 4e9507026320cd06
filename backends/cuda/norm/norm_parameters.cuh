/* norm_parameters.cuh -- a block's slice of a row's parameters, kept in registers across rows as raw 16-byte words. */
#pragma once
#include "kit/vector.cuh"

/* Loads words first, first + apart, ... (those below n of N). `absent`: value where there is no such parameter. */
template <int dtype, int N>
__device__ __forceinline__ void parameter_words(uint4 (&w)[N], const void *p, float absent, int first, int apart, int n)
{
  float v[vector_per_16<dtype>];
#pragma unroll
  for (int e = 0; e < vector_per_16<dtype>; e++) v[e] = absent;
#pragma unroll
  for (int k = 0; k < N; k++) w[k] = p && k < n ? __ldg((const uint4 *)p + first + k * apart) : vector_close<dtype>(v, 0);
}
/* Keeps the compiler from hoisting the conversion to f32 out of the row loop, which would double the registers. */
template <int N> __device__ __forceinline__ void parameter_stay(uint4 (&w)[N])
{
#pragma unroll
  for (int k = 0; k < N; k++) asm volatile("" : "+r"(w[k].x), "+r"(w[k].y), "+r"(w[k].z), "+r"(w[k].w));
}
