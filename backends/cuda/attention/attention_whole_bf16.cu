/* attention_whole_bf16.cu -- the kernels of attention_whole.cuh on bf16. */
#include "attention_whole.cuh"

const cuda_attention_whole_kernels cuda_attention_whole_bf16 = ATTENTION_WHOLE_KERNELS(MMA_BF16);
