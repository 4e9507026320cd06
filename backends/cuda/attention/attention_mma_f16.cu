/* attention_mma_f16.cu -- the kernels of attention_mma.cuh on f16. */
#include "attention_mma.cuh"

#define KERNEL(d, bn, rows) ATTENTION_MANY(MMA_F16, d, bn, rows)
const cuda_attention_many_kernel cuda_attention_many_f16[] = { CUDA_ATTENTION_MANY_SHAPES(KERNEL) {} };
