/* norm_follow.cuh -- the pointwise ops behind a normalization: relu where the values are, all else out of line, for it is long. */
#pragma once
#include "chain.h"
#include "steps.cuh"

struct eight { float v[8]; };

/* Eight elements of y after the steps, the first at element `at` of tensors that lie as y does; n of them exist. */
static __device__ __noinline__ eight follow_steps(const cuda_steps &steps, eight a, int64_t at, int n)
{
  steps_apply(steps, a.v, (int)(at / CUDA_ALIKE_ROW), (int)(at % CUDA_ALIKE_ROW), 0, 0, 0, n);
  return a;
}

__device__ __forceinline__ void follow(const cuda_steps &steps, bool relu, float (&v)[8], int64_t at, int n)
{
  if (relu) {
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = fn_unary(QN_OP_RELU, v[i], 0.f, 0.f);
  }
  if (steps.n == 0) return;
  eight a;
#pragma unroll
  for (int i = 0; i < 8; i++) a.v[i] = v[i];
  a = follow_steps(steps, a, at, n);
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = a.v[i];
}
