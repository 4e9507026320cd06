/* conv_depthwise.cuh -- shared by the depthwise kernels: a thread's pair of neighbouring channels. */
#pragma once
#include "conv_tile.cuh"
#include "kit/vector.cuh"

template <int dtype> struct pair_of { typedef uint32_t type; };
template <> struct pair_of<QN_F32> { typedef float2 type; };
template <int dtype> __device__ __forceinline__ float2 pair_floats(typename pair_of<dtype>::type v)
{
  if constexpr (dtype == QN_F32) return v;
  else if constexpr (dtype == QN_BF16) return make_float2(__uint_as_float(v << 16), __uint_as_float(v & 0xffff0000u));
  else return make_float2(f16_to_float((uint16_t)v), f16_to_float((uint16_t)(v >> 16)));
}
template <int dtype> __device__ __forceinline__ typename pair_of<dtype>::type pair_raw(float2 v)
{
  if constexpr (dtype == QN_F32) return v;
  else return dtype == QN_BF16 ? pack_bf16(v.x, v.y) : pack_f16(v.x, v.y);
}
__device__ __forceinline__ void pair_add(float2 &sum, float2 a, float2 b)
{
  sum.x = fmaf(a.x, b.x, sum.x);
  sum.y = fmaf(a.y, b.y, sum.y);
}

/* Pairs of channels that a pixel of a tile has room for in shared memory; fewer for large windows, so that larger tiles fit. */
template <int S> constexpr int depthwise_pitch = S < 7 ? 32 : 16;
