/* attention_mma_backward.h -- the kernels of attention_mma_backward.cuh. */
#ifndef QN_CUDA_ATTENTION_MMA_BACKWARD_H
#define QN_CUDA_ATTENTION_MMA_BACKWARD_H
#include "attention_gradient.h"

/* Kernels for up to d elements of a key and dv of a value. Passes: over keys for dk and dv, or, if there are three, for dk and then for dv;
 * over queries for dq. kernel: also for changed scores. */
typedef struct cuda_attention_backward_kernels {
  int32_t d, dv;
  const void *statistics, *sink, *clear;                    /* clear: rows of ragged tensors */
  const void *bias, *bias_join;           /* dbias, by tiles of bias_keys keys; of its parts */
  int32_t bias_keys, bias_shared;
  struct { int32_t keys, shared; const void *kernel[2]; } pass[3];             /* shared 0: none */
} cuda_attention_backward_kernels;
extern const cuda_attention_backward_kernels cuda_attention_backward_bf16[], cuda_attention_backward_f16[],     /* by d; ended by d 0 */
                                             cuda_attention_backward_f32[];

/* Those of attention_whole.cuh: blocks of a multiprocessor; of plain scores, of changed ones. */
typedef struct cuda_attention_whole_kernels { int32_t shared, blocks; const void *kernel[2]; } cuda_attention_whole_kernels;
extern const cuda_attention_whole_kernels cuda_attention_whole_bf16, cuda_attention_whole_f16;

#define CUDA_ATTENTION_BACKWARD_SHAPES(X, PASS) X(64, 64) X(128, 128) X(192, 128) X(256, 256, PASS(256, 256))
#define CUDA_ATTENTION_BACKWARD_SHAPES_F32(X) X(64, 64) X(128, 128)
#endif
