/* lrn.cuh -- shared by the local normalization engines: dims, powers, the roles of a request. */
#ifndef QUERN_CUDA_LRN_CUH
#define QUERN_CUDA_LRN_CUH
#include "kit/divisor.h"

struct dim { int32_t n, inner; cuda_divisor by_n, by_inner; };  /* extent; stride */

static inline void set_dim(dim *d, int64_t n, int64_t inner)
{
  *d = { (int32_t)n, (int32_t)inner, cuda_divide_by(n), cuda_divide_by(inner) };
}

/* Index along a dim of element e. */
__device__ __forceinline__ int32_t index_of(const dim &d, int32_t e)
{
  uint32_t i;
  cuda_quotient(cuda_quotient((uint32_t)e, d.by_inner), d.by_n, &i);
  return (int32_t)i;
}

/* b^-beta, by the approximate log2 and exp2, which the error bound allows for. */
__device__ __forceinline__ float power(float b, float beta) { return beta == 0 ? 1.0f : exp2f(-beta * __log2f(b)); }

/* a/b, b >= 0. The division multiplies by a reciprocal that is 0 where it would be subnormal, for b beyond 2^126: then both are scaled,
 * which loses nothing of a unless a/b vanishes anyway. */
__device__ __forceinline__ float quotient(float a, float b)
{
  float scale = b > 0x1p126f ? 0.25f : 1.0f;
  return __fdividef(a * scale, b * scale);
}

__device__ __forceinline__ float root_of(float a)
{
  float r;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
  return r;
}

/* root = b^-1/2, p = b^-beta; quarters: beta is 3/4. b must not be subnormal; root^2 may be, but is a product, and not flushed. */
template <int V> __device__ __forceinline__ void powers(float (&p)[V], float (&root)[V], const float (&b)[V], bool quarters, float beta)
{
#pragma unroll
  for (int j = 0; j < V; j++) asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root[j]) : "f"(b[j]));
  if (quarters) {
#pragma unroll
    for (int j = 0; j < V; j++) p[j] = root[j] * root_of(root[j]);
  } else {
#pragma unroll
    for (int j = 0; j < V; j++) p[j] = power(b[j], beta);
  }
}

/* Value numbers of the request, -1: absent; in: dy, or x. */
struct roles { int32_t in, x, means, out, dmeans; };

static roles roles_of(const qn_node *op)
{
  uint32_t backward = op->op == QN_OP_LRN_BACKWARD;
  return { qn_role(op, 0), qn_role(op, QN_ROLE_LRN_X + backward), qn_role(op, QN_ROLE_LRN_MEANS + backward),
           qn_role(op, QN_ROLE_LRN_Y + backward), backward ? qn_role(op, QN_ROLE_LRN_BACKWARD_DMEANS) : -1 };
}

#endif
