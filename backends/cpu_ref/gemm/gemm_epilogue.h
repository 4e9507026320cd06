/* gemm_epilogue.h -- what is done with a contraction's sums: y = alpha sum + beta c + bias, rounded once, or a fused engine's
 * program. Rows of y are addressed by their index in y's dims and the dim that they run along. */
#ifndef CPU_GEMM_EPILOGUE_H
#define CPU_GEMM_EPILOGUE_H
#include "gemm_core.h"

#define CPU_ROW_MAX 1024                  /* elements of a row at a time */

/* A tensor broadcast over y's dims. */
typedef struct cpu_operand {
  char    *base;                          /* set by cpu_epilogue_bind; NULL: absent */
  int32_t  value;                         /* its index in the request; -1: absent */
  uint32_t dtype;
  int64_t  stride[QN_MAX_RANK];           /* 0 in broadcast dims */
} cpu_operand;

typedef struct cpu_epilogue cpu_epilogue;
struct cpu_epilogue {
  const cpu_gemm_isa *isa;
  uint32_t    type;                       /* of the sums: CPU_GEMM_... */
  int32_t     rank;
  cpu_operand alpha_at, beta_at;
  double      alpha, beta;                /* set by cpu_epilogue_bind */
  cpu_operand c, bias, y;
  /* (optional) called instead of rounding and storing: sum holds n sums with bias etc. applied, from y's element `place` on, in
   * the order of y's strides. */
  void (*follow)(const cpu_epilogue *e, int64_t place, int64_t n, const void *sum);
  const void *user;
};

/* A value broadcast over y's dims, last dim to last dim; value -1 gives an absent operand. */
cpu_operand cpu_operand_of(const qn_request *request, int32_t value, int32_t rank);
char       *cpu_operand_at(const cpu_operand *o, int32_t rank, const int64_t *index);

/* Sets the pointers and reads the scalars of this launch. */
void cpu_epilogue_bind(cpu_epilogue *e, void *const *ptr);
/* Finishes n contiguous sums that belong to y from `index` along `axis`; overwrites them. */
void cpu_epilogue_row(const cpu_epilogue *e, const int64_t *index, int32_t axis, int64_t n, void *sum);

#endif
