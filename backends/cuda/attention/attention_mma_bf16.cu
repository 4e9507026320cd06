/* attention_mma_bf16.cu -- the kernels of attention_mma.cuh on bf16. */
#include "attention_mma.cuh"

#define KERNEL(d, bn, rows) ATTENTION_MANY(MMA_BF16, d, bn, rows)
const cuda_attention_many_kernel cuda_attention_many_bf16[] = { CUDA_ATTENTION_MANY_SHAPES(KERNEL) {} };
