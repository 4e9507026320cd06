/* conv_wgmma_f16.cu -- the kernel of matmul_wgmma.cuh gathering windows of f16. */
#include "matmul_wgmma.cuh"

#define KERNEL(bm, bn, splits, ta, tb, mode)                                                             \
  { bm, bn, splits, gemm_shape<MMA_F16, bm, bn, ta, tb, splits>::threads,                               \
    gemm_shape<MMA_F16, bm, bn, ta, tb, splits>::shared,                                                \
    { { (const void *)matmul_wgmma<MMA_F16, bm, bn, ta, tb, splits, mode>, 0 }, { 0, 0 } } },
#define FORWARD(bm, bn, splits) KERNEL(bm, bn, splits, 0, 0, CUDA_GEMM_FORWARD)
#define DATA(bm, bn, splits)    KERNEL(bm, bn, splits, 0, 1, CUDA_GEMM_BACKWARD_DATA)
#define FILTER(bm, bn, splits)  KERNEL(bm, bn, splits, 1, 1, CUDA_GEMM_BACKWARD_FILTER)

const cuda_gemm_kernel cuda_conv_forward_f16[] = { CUDA_CONV_TILES(FORWARD) {} };
const cuda_gemm_kernel cuda_conv_data_f16[] = { CUDA_CONV_TILES(DATA) {} };
const cuda_gemm_kernel cuda_conv_filter_f16[] = { CUDA_CONV_FILTER_TILES(FILTER) {} };
