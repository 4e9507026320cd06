/* conv_store.cuh -- epilogue of a convolution, two neighbouring channels of a pixel at a time. */
#pragma once
#include "program/steps.cuh"
#include "kit/vector.cuh"

/* The general case (other steps than bias and relu, other dtypes), out of line because it is long. */
static __device__ __noinline__ void store_pair(const cuda_steps &steps, float2 v, void *y, uint32_t dtype, int pixel, int channel,
                                               int channels)
{
  float u[8] = {v.x, v.y}, two[2];
  steps_apply(steps, u, pixel, channel, 0, 0, 0, 2);
  two[0] = u[0], two[1] = u[1];
  vector_store(two, y, dtype, (int64_t)pixel * channels + channel, 1, 2);
}

/* The fold (chain.h) of channel c, applied after the bias: v factor + shift; the identity for operand -1. */
struct column_fold { float factor, shift; };
static __device__ __forceinline__ column_fold fold_of(const cuda_steps &steps, int factor, int c)
{
  if (factor < 0) return { 1, 0 };
  return { ((const float *)steps.operand[factor].p)[c], ((const float *)steps.operand[factor + 1].p)[c] };
}
static __device__ __forceinline__ float folded(float v, column_fold f) { return fmaf(v, f.factor, f.shift); }

/* The bias of channels channel, channel + 1; 0 without one (column -1). */
static __device__ __forceinline__ float2 bias_pair(const cuda_steps &steps, int column, int channel)
{
  float b[2] = {0, 0};
  if (column >= 0) {
    const cuda_operand &o = steps.operand[column];
    vector_load(b, o.p, o.dtype, channel * o.stride[1], o.stride[1], 2);
  }
  return make_float2(b[0], b[1]);
}
