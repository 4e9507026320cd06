/* attention_few_f16.cu -- the kernels of attention_few.cuh on f16. */
#include "attention_few.cuh"

#define KERNEL(d, rows, whole, form) ATTENTION_FEW(MMA_F16, d, rows, whole, CUDA_FEW_##form)
const cuda_few_kernel cuda_few_f16[] = { CUDA_FEW_SHAPES(KERNEL) {} };
