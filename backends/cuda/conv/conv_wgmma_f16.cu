/* conv_wgmma_f16.cu -- the kernels of conv_wgmma.cuh on f16. */
#include "conv_wgmma.cuh"
#define CONV_KIND MMA_F16

const cuda_gemm_kernel cuda_conv_f16[3][16] = CONV_KERNELS;
