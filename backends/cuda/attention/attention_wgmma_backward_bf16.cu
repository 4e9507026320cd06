/* attention_wgmma_backward_bf16.cu -- the kernels of attention_wgmma_backward.cuh and attention_wgmma_backward_wide.cuh on bf16. */
#include "attention_wgmma_backward_wide.cuh"

const cuda_attention_wgmma_backward_kernels cuda_attention_wgmma_backward_bf16[] = {
  ATTENTION_WGMMA_BACKWARD_SHAPES(MMA_BF16) ATTENTION_WGMMA_BACKWARD_WIDE_SHAPES(MMA_BF16) {}
};
