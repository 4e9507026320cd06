/* attention_wgmma_backward.h -- what the host (attention_wgmma_backward.c) tells the kernels of attention_wgmma_backward.cuh. */
#ifndef QN_CUDA_ATTENTION_WGMMA_BACKWARD_H
#define QN_CUDA_ATTENTION_WGMMA_BACKWARD_H
#include "attention_gradient.h"

/* q, k, v, dy: [D, S, heads, B]; if bias_tiles is not 0, bias: [keys, queries, heads or 1, B or 1]. */
typedef struct cuda_attention_gradient_maps { CUtensorMap map[5]; int32_t bias_tiles; } cuda_attention_gradient_maps;

/* In which order blocks of keys add to dq. Held: a block adds all of a head's, in shared memory. */
enum { CUDA_ATTENTION_ANY_ORDER, CUDA_ATTENTION_ONE_ORDER, CUDA_ATTENTION_HELD, CUDA_ATTENTION_ORDERS };

/* Kernels for up to d elements of a key and dv of a value: tiles of bm queries and bn keys. of: plain scores, changed ones (NULL: none).
 * finish: dq of its sums; join: dk and dv of their parts. */
typedef struct cuda_attention_wgmma_backward_of {
  const void *gradient[CUDA_ATTENTION_ORDERS], *finish, *join;
} cuda_attention_wgmma_backward_of;
typedef struct cuda_attention_wgmma_backward_kernels {
  int32_t d, dv, bm, bn, threads, shared;
  cuda_attention_wgmma_backward_of of[2];
} cuda_attention_wgmma_backward_kernels;
extern const cuda_attention_wgmma_backward_kernels cuda_attention_wgmma_backward_bf16[],              /* by d, dv; ended by d 0 */
                                                   cuda_attention_wgmma_backward_f16[];
#endif
