/* norm_activation.cuh -- the one activation behind a normalization that is taken where the values are. */
#pragma once
#include "chain.h"
#include "functions.cuh"

struct norm_activation { uint32_t op; float beta; };      /* QN_OP_...: one of these; 0: none */

#define NORM_ACTIVATIONS(X) X(RELU) X(GELU) X(GELU_TANH) X(SILU)
/* v sigmoid(x), to what f16 and bf16 hold: by e^(-|x|/2), twice, where e^x may be subnormal. */
__device__ __forceinline__ float norm_times_sigmoid(float v, float x)
{
  const float h = fn_exp2(fabsf(x) * -0.72134752044448170f), part = x < 0 ? h : 1;
  return v * part * fn_ratio(part, fmaf(h, h, 1.f));
}
/* rounded: v goes to 16 bits. */
template <bool rounded, int N> __device__ __forceinline__ void activate(const norm_activation &a, float (&v)[N])
{
  if (rounded && (a.op == QN_OP_SILU || a.op == QN_OP_GELU_TANH)) {
#pragma unroll
    for (int i = 0; i < N; i++) v[i] = norm_times_sigmoid(v[i], a.op == QN_OP_SILU ? a.beta * v[i] : fn_twice_u(v[i]));
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
