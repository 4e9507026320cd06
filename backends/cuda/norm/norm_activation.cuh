/* norm_activation.cuh -- the one activation after a normalization that is fused into its kernel. */
#pragma once
#include <type_traits>
#include "program/chain.h"
#include "kit/functions.cuh"

struct norm_activation { uint32_t op; float beta; };      /* op: QN_OP_... of NORM_ACTIVATIONS; 0: none */

#define NORM_ACTIVATIONS(X) X(RELU) X(GELU) X(GELU_TANH) X(SILU)
/* v / (1 + 2^(u by)), to the precision of f16 and bf16. Both terms of the divisor are scaled by 2^-20: it stays finite as long as
 * the result is not 0, and the last product keeps the digits of a subnormal result. */
__device__ __forceinline__ float norm_times_sigmoid(float v, float u, float by)
{
  const float e = fn_exp2(fmaf(u, by, -20.f));
  return v * (fn_reciprocal(e + 0x1p-20f) * 0x1p-20f);
}
/* op: 0, or one of NORM_ACTIVATIONS. rounded: the result is stored in 16 bits, so the approximations suffice. */
template <bool rounded, uint32_t op, int N> __device__ __forceinline__ void activate(float beta, float (&v)[N])
{
#pragma unroll
  for (int i = 0; i < N; i++)
    if (rounded && op == QN_OP_SILU) v[i] = norm_times_sigmoid(v[i], v[i], -1.4426950408889634f * beta);
    else if (rounded && op == QN_OP_GELU_TANH) v[i] = norm_times_sigmoid(v[i], fn_twice_u(v[i]), -1.4426950408889634f);
    else if (op) v[i] = fn_unary(op, v[i], 0.f, beta);
}
/* Calls f with the op as a compile-time constant, so that the loop inside f does not test it. */
template <class F> __device__ __forceinline__ void with_activation(const norm_activation &a, F f)
{
  switch (a.op) {
#define ACT(name) case QN_OP_##name: f(std::integral_constant<uint32_t, QN_OP_##name>()); return;
  NORM_ACTIVATIONS(ACT)
#undef ACT
  default: f(std::integral_constant<uint32_t, 0>());
  }
}
template <bool rounded, int N> __device__ __forceinline__ void activate(const norm_activation &a, float (&v)[N])
{
  with_activation(a, [&](auto op) { activate<rounded, decltype(op)::value>(a.beta, v); });
}

/* Is what is left of a chain at most one activation of NORM_ACTIVATIONS? relu: one was already taken from its front. */
static inline bool norm_activation_is(norm_activation *a, const cuda_steps *left, bool relu)
{
  a->op = relu ? (uint32_t)QN_OP_RELU : 0;
  if (left->n == 0) return true;
  if (left->n > 1 || relu) return false;
  a->op = left->step[0].op, a->beta = left->step[0].beta;
#define ACT(name) || a->op == QN_OP_##name
  return false NORM_ACTIVATIONS(ACT);
#undef ACT
}

/* Fuses the activation that follows y, if there is one; returns the value to write in place of y. */
static inline int32_t norm_activation_behind(const qn_request *r, int32_t y, norm_activation *a, qn_prepared *out)
{
  const cuda_out_dims dims = { { -1, -1, -1, -1 }, CUDA_ALIKE };
  const uint32_t dtype = r->value[y].dtype;
  for (qn_request some = *r; ; some.n_ops--) {
    cuda_chain chain;
    bool relu;
    cuda_chain_begin(&chain, y);
    cuda_chain_follow(&chain, &some, &dims);
    out->n_ops = some.n_ops = chain.n_ops;
    const qn_value *to = &r->value[chain.out];
    if (cuda_chain_second(&chain, r, dtype, &relu) < 0 && norm_activation_is(a, &chain.steps, relu) &&
        (chain.n_ops == 1 || (to->dtype == dtype && to->align >= 16)))
      return chain.out;
  }
}
