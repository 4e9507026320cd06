/* attention_wgmma_terms_f16.cu -- the kernels of attention_wgmma.cuh on f16 whose scores have a term of each key. */
#include "attention_wgmma.cuh"

#define KERNEL(bm, bn, d, dv, stages, qs) ATTENTION_TERMS_KERNEL(MMA_F16, bm, bn, d, dv, stages, qs)
const cuda_attention_kernel cuda_attention_terms_f16[] = { CUDA_ATTENTION_TERMS_SHAPES(KERNEL) {} };
