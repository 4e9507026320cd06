/* attention_mma_backward.h -- the kernels of attention_mma_backward.cuh. */
#ifndef QN_CUDA_ATTENTION_MMA_BACKWARD_H
#define QN_CUDA_ATTENTION_MMA_BACKWARD_H
#include "attention_gradient.h"

/* Kernels for up to d elements of a key and of a value. gradients: of queries, of keys; each also for changed scores. */
typedef struct cuda_attention_backward_kernels {
  int32_t d, shared[2];
  const void *statistics, *gradients[2][2], *sink;
} cuda_attention_backward_kernels;
extern const cuda_attention_backward_kernels cuda_attention_backward_bf16[], cuda_attention_backward_f16[];      /* by d; ended by d 0 */
#endif
