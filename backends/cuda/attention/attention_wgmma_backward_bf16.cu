/* attention_wgmma_backward_bf16.cu -- the kernels of attention_wgmma_backward.cuh on bf16. */
#include "attention_wgmma_backward.cuh"

const cuda_attention_wgmma_backward_kernels cuda_attention_wgmma_backward_bf16[] = {
  ATTENTION_WGMMA_BACKWARD_SHAPES(MMA_BF16) {}
};
