/* matmul_problem.h -- a matmul request as kernels see it: two operands of rows by k, at most two batch dims, and a chain of steps
 * applied to the sums (matmul_problem.c). */
#ifndef QN_CUDA_MATMUL_PROBLEM_H
#define QN_CUDA_MATMUL_PROBLEM_H
#include "program/chain.h"
#ifdef __cplusplus
extern "C" {
#endif

/* An operand: `rows` (of a: M, of b: N) by k. Strides of dims of size 1 are 0. */
typedef struct cuda_matmul_side {
  int32_t  value;
  uint32_t dtype, align;
  int64_t  rows, row_stride, k_stride, batch_stride[2];
} cuda_matmul_side;

typedef struct cuda_matmul {
  int64_t  m, n, k, batch[2];
  cuda_matmul_side a, b;
  cuda_out_dims dims;                     /* of y: rows, columns, batches */
} cuda_matmul;

/* Refuses dims near 2^31 and above, batches that do not merge into two dims, alpha 0, k 0. */
qn_status cuda_matmul_read(const qn_request *r, qn_prepared *out, cuda_matmul *p);
/* The same for kernels of mma.sync: refuses also devices before 8.0, dtypes but one of f16, bf16 and f32, elements not at their own alignment. */
qn_status cuda_matmul_read_floats(const qn_request *r, qn_prepared *out, cuda_matmul *p);
/* Builds the chain: alpha, beta c, bias, and the pointwise ops that follow (none behind integers). */
qn_status cuda_matmul_chain(const qn_request *r, qn_prepared *out, const cuda_matmul *p, cuda_chain *chain);
static inline int64_t cuda_stride(const qn_value *v, int d) { return d >= 0 && v->dim[d] > 1 ? v->stride[d] : 0; }
#ifdef __cplusplus
}
#endif
#endif
