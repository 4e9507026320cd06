/* steps.h -- the epilogue of a contraction: a chain of pointwise steps applied to each sum before it is stored.
 *
 *   v = sum;  for each step: v = op(v)  or  v = op(v, w)  or  v = op(w, v);  y = v
 *
 * w is a scalar or an element of a tensor, broadcast by strides of 0. Bias, activation, residual and the masks of backward
 * activations are such chains. A region that branches is not; its rest runs on an engine of its own. */
#ifndef QN_CUDA_STEPS_H
#define QN_CUDA_STEPS_H
#include <stdint.h>

enum { CUDA_MAX_STEPS = 8, CUDA_MAX_OPERANDS = 8 };
enum {                                    /* steps besides the schema's pointwise ops */
  CUDA_STEP_ALPHA = 1,                    /* v = w v, and 0 where w is 0, whatever v is */
  CUDA_STEP_BETA  = 2                     /* v = v + w u, u the next operand, not read where w is 0 */
};

/* An operand seen from the output: element (row, col) of matrix (b0, b1). */
typedef struct cuda_operand {
  const void *p;                          /* NULL: the scalar */
  int64_t  stride[4];                     /* row, col, b0, b1; elements */
  uint32_t dtype;
  float    scalar;
} cuda_operand;

typedef struct cuda_step {
  uint32_t op;                            /* QN_OP_... or CUDA_STEP_... */
  int16_t  operand;                       /* -1: none */
  int16_t  reversed;                      /* v is the op's second operand */
  float    alpha, beta;                   /* its attributes */
} cuda_step;

typedef struct cuda_steps {
  int32_t      n, n_operands;
  cuda_step    step[CUDA_MAX_STEPS];
  cuda_operand operand[CUDA_MAX_OPERANDS];
} cuda_steps;
#endif
