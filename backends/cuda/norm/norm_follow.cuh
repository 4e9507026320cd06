/* norm_follow.cuh -- pointwise ops fused after a normalization: a second tensor of y's layout is added and relu applied inline;
 * any other steps run in an out-of-line function, because their code is long. Only where y is in whole vectors. */
#pragma once
#include "program/chain.h"
#include "kit/eight.cuh"
#include "program/steps.cuh"

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

/* Fuses what follows value y (in whole vectors of its dtype); true if that is more than relu. chain.out is the value to write. */
static inline bool norm_follower_read(norm_follower *f, const qn_request *r, int32_t y, bool whole, norm_tail *tail, qn_prepared *out)
{
  const cuda_out_dims dims = { { -1, -1, -1, -1 }, CUDA_ALIKE };
  cuda_chain_begin(&f->chain, y);
  f->second = -1;
  if (!whole) return false;
  cuda_chain_follow(&f->chain, r, &dims);
  const qn_value *to = &r->value[f->chain.out];
  if (to->dtype != r->value[y].dtype || to->align < 16) {   /* fuse nothing */
    cuda_chain_begin(&f->chain, y);
    return false;
  }
  out->n_ops = f->chain.n_ops;
  f->second = cuda_chain_second(&f->chain, r, to->dtype, &tail->relu);
  return f->second >= 0 || f->chain.steps.n > 0;
}

static inline void norm_follower_bind(const norm_follower *f, norm_tail *tail, const qn_launch *launch)
{
  tail->second = f->second < 0 ? nullptr : launch->ptr[f->second];
  tail->steps = f->chain.steps;
  cuda_chain_bind(&tail->steps, &f->chain, launch->ptr);
}
