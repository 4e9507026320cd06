/* gemm_epilogue.h -- what becomes of the sums of a contraction: y = alpha sum + beta c + bias, rounded once, or more where
 * a fused engine says so. Rows of y are addressed by their index in y's dims and the dim that they run along. */
#ifndef CPU_GEMM_EPILOGUE_H
#define CPU_GEMM_EPILOGUE_H
#include "gemm_core.h"

#define CPU_ROW_MAX 1024                  /* elements of a row at a time */

/* A tensor spread over y's dims. */
typedef struct cpu_operand {
  char    *base;                          /* set by cpu_epilogue_bind; NULL: absent */
  int32_t  value;                         /* its number in the request; -1: absent */
  uint32_t dtype;
  int64_t  stride[QN_MAX_RANK];           /* 0 along dims in which it is broadcast */
} cpu_operand;

typedef struct cpu_epilogue cpu_epilogue;
struct cpu_epilogue {
  const cpu_gemm_isa *isa;
  uint32_t    type;                       /* of the sums: CPU_GEMM_... */
  int32_t     rank;
  cpu_operand alpha_at, beta_at;
  double      alpha, beta;                /* set by cpu_epilogue_bind */
  cpu_operand c, bias, y;
  /* (optional) what follows, on sums with bias and all, instead of rounding and storing them: n of them from y's element
   * `place` on, counted by y's strides. */
  void (*follow)(const cpu_epilogue *e, int64_t place, int64_t n, const void *sum);
  const void *user;
};

/* A value over y's dims, its last dim y's last, as broadcasting has it; value -1 gives an absent one. */
cpu_operand cpu_operand_of(const qn_request *request, int32_t value, int32_t rank);
char       *cpu_operand_at(const cpu_operand *o, int32_t rank, const int64_t *index);

/* Finds the tensors and reads the scalars of this launch. */
void cpu_epilogue_bind(cpu_epilogue *e, void *const *ptr);
/* Finishes n sums that lie side by side and belong to y from `index` along `axis`; writes over them. */
void cpu_epilogue_row(const cpu_epilogue *e, const int64_t *index, int32_t axis, int64_t n, void *sum);

#endif
