/* norm_follow.cuh -- pointwise ops fused after a normalization. activation: the one that kernels short of registers apply. tail: a second
 * tensor of y's layout is added and relu applied inline; any other steps run in an out-of-line function, because their code is long; only
 * where y is in whole vectors. */
#pragma once
#include <type_traits>
#include "program/chain.h"
#include "program/steps.cuh"
#include "kit/eight.cuh"
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

/* ---- tails ---- */

/* Applies the steps to n of eight elements of y, the first at element `at` of tensors with y's layout. */
static __device__ __noinline__ eight follow_steps(const cuda_steps &steps, eight a, int64_t at, int n)
{
  steps_apply(steps, a.v, (int)(at / CUDA_ALIKE_ROW), (int)(at % CUDA_ALIKE_ROW), 0, 0, 0, n);
  return a;
}

/* What the kernel applies: y = relu(y + second), then steps. Kernels short of registers (all = false) only apply relu. */
struct norm_tail {
  bool        relu;
  const void *second;                     /* NULL: none */
  cuda_steps  steps;

  /* For n elements of y from `at` on; more: those of `second`, raw. */
  template <bool all, int whole> __device__ __forceinline__ void follow(float (&v)[8], const packet<whole> &more, int64_t at, int n) const
  {
    if constexpr (all) if (second) {
      float u[8];
      more.open(u);
#pragma unroll
      for (int i = 0; i < 8; i++) v[i] += u[i];
    }
    if (relu) {
#pragma unroll
      for (int i = 0; i < 8; i++) v[i] = fn_unary(QN_OP_RELU, v[i], 0.f, 0.f);
    }
    if constexpr (all) if (steps.n) follow_steps(steps, eight_of(v), at, n).to(v);
  }
};

/* The plan's side of it. */
struct norm_follower { cuda_chain chain; int32_t second; };

/* Fuses what follows value y: all if y is in whole vectors of its dtype, else relu; true if that is more than relu. chain.out is the value
 * to write. */
static inline bool norm_follower_read(norm_follower *f, const qn_request *r, int32_t y, bool whole, norm_tail *tail, qn_prepared *out)
{
  const cuda_out_dims dims = { { -1, -1, -1, -1 }, CUDA_ALIKE };
  for (qn_request some = *r; ; some.n_ops = f->chain.n_ops - 1) {
    cuda_chain_begin(&f->chain, y);
    cuda_chain_follow(&f->chain, &some, &dims);
    const qn_value *to = &r->value[f->chain.out];
    out->n_ops = f->chain.n_ops;
    f->second = cuda_chain_second(&f->chain, r, to->dtype, &tail->relu);
    const bool more = f->second >= 0 || f->chain.steps.n > 0;
    if (f->chain.n_ops == 1 || (to->dtype == r->value[y].dtype && (whole ? to->align >= 16 : !more))) return more;
  }
}

static inline void norm_follower_bind(const norm_follower *f, norm_tail *tail, const qn_launch *launch)
{
  tail->second = f->second < 0 ? nullptr : launch->ptr[f->second];
  tail->steps = f->chain.steps;
  cuda_chain_bind(&tail->steps, &f->chain, launch->ptr);
}
