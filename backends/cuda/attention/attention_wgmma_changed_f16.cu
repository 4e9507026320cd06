/* attention_wgmma_changed_f16.cu -- the kernels of attention_wgmma.cuh on f16 that change single scores. */
#include "attention_wgmma.cuh"

#define KERNEL(bm, bn, d, dv, stages, qs) ATTENTION_CHANGED_KERNEL(MMA_F16, bm, bn, d, dv, stages, qs)
const cuda_attention_kernel cuda_attention_changed_f16[] = { CUDA_ATTENTION_CHANGED_SHAPES(KERNEL) {} };
