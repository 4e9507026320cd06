/* attention_mma_backward_bf16.cu -- the kernels of attention_mma_backward.cuh on bf16. */
#include "attention_mma_backward.cuh"

const cuda_attention_backward_kernels cuda_attention_backward_bf16[] = {
  ATTENTION_BACKWARD_KERNELS(MMA_BF16, 64) ATTENTION_BACKWARD_KERNELS(MMA_BF16, 128) {}
};
