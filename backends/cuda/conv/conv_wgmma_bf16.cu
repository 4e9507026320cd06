/* conv_wgmma_bf16.cu -- the kernels of conv_wgmma.cuh on bf16. */
#include "conv_wgmma.cuh"
#define CONV_KIND MMA_BF16

const cuda_gemm_kernel cuda_conv_bf16[3][16] = CONV_KERNELS;
