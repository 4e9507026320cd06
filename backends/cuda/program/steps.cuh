/* steps.cuh -- device side of steps.h: applies the chain to eight elements at a time. */
#pragma once
#include "kit/element.cuh"
#include "kit/functions.cuh"
#include "steps.h"

/* Loads p[0], p[stride], ..., of which the first n exist; the others are 0. */
__device__ __forceinline__ void load8(float (&w)[8], const void *base, uint32_t dtype, int64_t at, int64_t stride, int n)
{
#pragma unroll
  for (int i = 0; i < 8; i++) w[i] = 0;
  if (dtype == QN_F32) {
    const float *p = (const float *)base + at;
    if (stride == 1 && n == 8 && !((uintptr_t)p & 15)) {
      float4 lo = *(const float4 *)p, hi = *(const float4 *)(p + 4);
      w[0] = lo.x, w[1] = lo.y, w[2] = lo.z, w[3] = lo.w, w[4] = hi.x, w[5] = hi.y, w[6] = hi.z, w[7] = hi.w;
    } else {
#pragma unroll
      for (int i = 0; i < 8; i++) if (i < n) w[i] = p[i * stride];
    }
    return;
  }
  const uint16_t *p = (const uint16_t *)base + at;
  uint16_t h[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  if (stride == 1 && n == 8 && !((uintptr_t)p & 15)) {
    uint4 q = *(const uint4 *)p;
    h[0] = q.x, h[1] = q.x >> 16, h[2] = q.y, h[3] = q.y >> 16, h[4] = q.z, h[5] = q.z >> 16, h[6] = q.w, h[7] = q.w >> 16;
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++) if (i < n) h[i] = p[i * stride];
  }
  if (dtype == QN_BF16) {
#pragma unroll
    for (int i = 0; i < 8; i++) w[i] = bf16_to_float(h[i]);
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++) w[i] = f16_to_float(h[i]);
  }
}

__device__ __forceinline__ void store8(const float (&v)[8], void *base, uint32_t dtype, int64_t at, int64_t stride, int n)
{
  if (dtype == QN_F32) {
    float *p = (float *)base + at;
    if (stride == 1 && n == 8 && !((uintptr_t)p & 15)) {
      *(float4 *)p = make_float4(v[0], v[1], v[2], v[3]);
      *(float4 *)(p + 4) = make_float4(v[4], v[5], v[6], v[7]);
    } else {
#pragma unroll
      for (int i = 0; i < 8; i++) if (i < n) p[i * stride] = v[i];
    }
    return;
  }
  uint16_t *p = (uint16_t *)base + at;
  uint4 q;
  if (dtype == QN_BF16)
    q = make_uint4(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7]));
  else
    q = make_uint4(pack_f16(v[0], v[1]), pack_f16(v[2], v[3]), pack_f16(v[4], v[5]), pack_f16(v[6], v[7]));
  if (stride == 1 && n == 8 && !((uintptr_t)p & 15)) {
    *(uint4 *)p = q;
  } else {
    uint16_t h[8] = {(uint16_t)q.x, (uint16_t)(q.x >> 16), (uint16_t)q.y, (uint16_t)(q.y >> 16),
                     (uint16_t)q.z, (uint16_t)(q.z >> 16), (uint16_t)q.w, (uint16_t)(q.w >> 16)};
#pragma unroll
    for (int i = 0; i < 8; i++) if (i < n) p[i * stride] = h[i];
  }
}

__device__ __forceinline__ void store8(const int (&v)[8], void *base, uint32_t, int64_t at, int64_t stride, int n)
{
  int *p = (int *)base + at;
#pragma unroll
  for (int i = 0; i < 8; i++) if (i < n) p[i * stride] = v[i];
}

/* Functions allowed in a chain; the host's list is in chain.c. */
#define CUDA_STEP_UNARY(X) X(NEG) X(ABS) X(RELU) X(LEAKY_RELU) X(ELU) X(GELU) X(GELU_TANH) X(SILU) X(SIGMOID) X(TANH) \
  X(SOFTPLUS) X(HARDSWISH) X(MISH) X(CLIP)
#define CUDA_STEP_BINARY(X) X(ADD) X(SUB) X(MUL) X(DIV) X(MIN) X(MAX) X(RELU_BACKWARD) X(LEAKY_RELU_BACKWARD) \
  X(CLIP_BACKWARD) X(GELU_BACKWARD) X(GELU_TANH_BACKWARD) X(SILU_BACKWARD)

__device__ __forceinline__ void step_apply(const cuda_step &s, float (&v)[8], const float (&w)[8])
{
  switch (s.op) {
#define STEP(name) case QN_OP_##name: _Pragma("unroll") for (int i = 0; i < 8; i++) \
    v[i] = fn_unary(QN_OP_##name, v[i], s.alpha, s.beta); break;
    CUDA_STEP_UNARY(STEP)
#undef STEP
#define STEP(name) case QN_OP_##name: _Pragma("unroll") for (int i = 0; i < 8; i++) \
    v[i] = fn_binary(QN_OP_##name, s.reversed ? w[i] : v[i], s.reversed ? v[i] : w[i], s.alpha, s.beta); break;
    CUDA_STEP_BINARY(STEP)
#undef STEP
  default: break;
  }
}

/* v: n elements from (row, col) on, along columns (along 0) or rows (along 1), of matrix (b0, b1). */
__device__ __forceinline__ void steps_apply(const cuda_steps &steps, float (&v)[8], int row, int col, int b0, int b1, int along, int n)
{
#pragma unroll 1
  for (int k = 0; k < steps.n; k++) {
    const cuda_step &s = steps.step[k];
    float w[8];
    if (s.operand >= 0) {
      const cuda_operand &o = steps.operand[s.operand];
      if (o.p) {
        load8(w, o.p, o.dtype, row * o.stride[0] + col * o.stride[1] + b0 * o.stride[2] + b1 * o.stride[3], o.stride[along ? 0 : 1], n);
      } else {
#pragma unroll
        for (int i = 0; i < 8; i++) w[i] = o.scalar;
      }
    }
    if (s.op == CUDA_STEP_ALPHA) {
#pragma unroll
      for (int i = 0; i < 8; i++) v[i] = w[i] == 0 ? 0 : w[i] * v[i];
    } else if (s.op == CUDA_STEP_BETA) {
      const cuda_operand &o = steps.operand[s.operand + 1];
      float beta = w[0], u[8];
      if (beta == 0) continue;
      load8(u, o.p, o.dtype, row * o.stride[0] + col * o.stride[1] + b0 * o.stride[2] + b1 * o.stride[3], o.stride[along ? 0 : 1], n);
#pragma unroll
      for (int i = 0; i < 8; i++) v[i] += beta * u[i];
    } else {
      step_apply(s, v, w);
    }
  }
}

/* Integer sums: only additions of i32. */
__device__ __forceinline__ void steps_apply(const cuda_steps &steps, int (&v)[8], int row, int col, int b0, int b1, int along, int n)
{
#pragma unroll 1
  for (int k = 0; k < steps.n; k++) {
    const cuda_operand &o = steps.operand[steps.step[k].operand];
    const int *p = (const int *)o.p + row * o.stride[0] + col * o.stride[1] + b0 * o.stride[2] + b1 * o.stride[3];
#pragma unroll
    for (int i = 0; i < 8; i++) if (i < n) v[i] += p[i * o.stride[along ? 0 : 1]];
  }
}
