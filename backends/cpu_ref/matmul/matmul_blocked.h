/* matmul_blocked.h -- a matmul as a blocked product, for the engines that run it: matmul_blocked.c and gemm_fused.c. */
#ifndef CPU_MATMUL_BLOCKED_H
#define CPU_MATMUL_BLOCKED_H
#include "gemm/gemm_epilogue.h"

/* One matrix of the product: rows along m or n, columns along k. */
typedef struct cpu_matrix {
  const char *base;                       /* of the current launch */
  int32_t  value;                         /* its index in the request */
  uint32_t dtype;
  int64_t  row, k;                        /* strides, in elements */
  int64_t  batch[QN_MAX_RANK];
} cpu_matrix;

typedef struct cpu_matmul {
  cpu_gemm     gemm;
  cpu_epilogue epilogue;
  cpu_matrix   left, right;               /* of the product as computed */
  int32_t      row_dim, column_dim;       /* the dims of y along which the product's rows and columns run */
  int64_t      batch_dim[QN_MAX_RANK];
} cpu_matmul;

/* Reads the problem from request->op[0], a matmul, and returns the workspace's bytes. */
uint64_t cpu_matmul_set(cpu_matmul *m, const qn_request *request, const cpu_gemm_isa *isa);
void cpu_matmul_run(cpu_matmul *m, const qn_launch *launch);   /* modifies *m: pass a copy */

#endif
