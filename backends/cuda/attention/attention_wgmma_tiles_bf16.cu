/* attention_wgmma_tiles_bf16.cu -- the kernels of attention_wgmma.cuh on bf16 that add tiles of biases. */
#include "attention_wgmma.cuh"

#define KERNEL(bm, bn, d, dv, stages, qs) ATTENTION_TILES_KERNEL(MMA_BF16, bm, bn, d, dv, stages, qs)
const cuda_attention_kernel cuda_attention_tiles_bf16[] = { CUDA_ATTENTION_TILES_SHAPES(KERNEL) {} };
