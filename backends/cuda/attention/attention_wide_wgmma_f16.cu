/* attention_wide_wgmma_f16.cu -- the kernels of attention_wide.cuh on f16, by wgmma. */
#include "attention_wide.cuh"

#define KERNEL(bn, stages, own) ATTENTION_WIDE(MMA_F16, bn, stages, own, true)
const cuda_attention_many_kernel cuda_attention_wide_wgmma_f16[] = { CUDA_ATTENTION_WIDE_WGMMA_SHAPES(KERNEL) {} };
