/* attention_mma_backward_f16.cu -- the kernels of attention_mma_backward.cuh on f16. */
#include "attention_mma_backward.cuh"

const cuda_attention_backward_kernels cuda_attention_backward_f16[] = {
  ATTENTION_BACKWARD_KERNELS(MMA_F16, 64) ATTENTION_BACKWARD_KERNELS(MMA_F16, 128) {}
};
