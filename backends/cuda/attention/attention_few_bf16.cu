/* attention_few_bf16.cu -- the kernels of attention_few.cuh on bf16. */
#include "attention_few.cuh"

#define KERNEL(d, rows, whole, form) ATTENTION_FEW(MMA_BF16, d, rows, whole, CUDA_FEW_##form)
const cuda_few_kernel cuda_few_bf16[] = { CUDA_FEW_SHAPES(KERNEL) {} };
