/* norm_activation.cuh -- the one activation behind a normalization that is taken where the values are. */
#pragma once
#include "chain.h"
#include "functions.cuh"

struct norm_activation { uint32_t op; float beta; };      /* QN_OP_...: one of these; 0: none */

#define NORM_ACTIVATIONS(X) X(RELU) X(GELU) X(GELU_TANH) X(SILU)
/* v sigmoid(-c), to what f16 and bf16 hold; c: in factors of 2, u times `by`. All of the quotient is 2^-20 of itself: e^c is finite as long as
 * the result is not 0, and the factor of v as fine as that, subnormal or not. */
__device__ __forceinline__ float norm_times_sigmoid(float v, float u, float by)
{
  const float e = fn_exp2(fmaf(u, by, -20.f));
  return v * (fn_reciprocal(e + 0x1p-20f) * 0x1p-20f);
}
/* rounded: v goes to 16 bits. */
template <bool rounded, int N> __device__ __forceinline__ void activate(const norm_activation &a, float (&v)[N])
{
  if (rounded && (a.op == QN_OP_SILU || a.op == QN_OP_GELU_TANH)) {
    const float by = -1.4426950408889634f * (a.op == QN_OP_SILU ? a.beta : 1.f);
#pragma unroll
    for (int i = 0; i < N; i++) v[i] = norm_times_sigmoid(v[i], a.op == QN_OP_SILU ? v[i] : fn_twice_u(v[i]), by);
    return;
  }
  switch (a.op) {
#define ACT(name) case QN_OP_##name: _Pragma("unroll") for (int i = 0; i < N; i++) v[i] = fn_unary(QN_OP_##name, v[i], 0.f, a.beta); break;
  NORM_ACTIVATIONS(ACT)
#undef ACT
  }
}

/* Whether what is left of a chain is one activation, or nothing. relu: one was taken from its front. */
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

/* The value that is written in place of y: what the activation behind it makes, if there is one. */
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
    if (cuda_chain_second(&chain, r, dtype, &relu) < 0 && norm_activation_is(a, &chain.steps, relu) && (chain.n_ops == 1 || (to->dtype == dtype && to->align >= 16)))
      return chain.out;
  }
}
