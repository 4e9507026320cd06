/* attention_whole_f16.cu -- the kernels of attention_whole.cuh on f16. */
#include "attention_whole.cuh"

const cuda_attention_whole_kernels cuda_attention_whole_f16 = ATTENTION_WHOLE_KERNELS(MMA_F16);
