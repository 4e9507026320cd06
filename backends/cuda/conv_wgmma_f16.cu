/* conv_wgmma_f16.cu -- the kernels of conv_wgmma.cuh on f16. */
#include "conv_wgmma.cuh"

#define KERNEL(bm, bn, splits, mode)                                                                                           \
  { bm, bn, splits, gemm_shape<MMA_F16, bm, bn, splits>::threads, gemm_shape<MMA_F16, bm, bn, splits>::shared,                             \
    (const void *)conv_wgmma<MMA_F16, bm, bn, splits, mode> },
#define FORWARD(bm, bn, splits, step, tile) KERNEL(bm, bn, splits, CUDA_CONV_FORWARD)
#define DATA(bm, bn, splits, step, tile)    KERNEL(bm, bn, splits, CUDA_CONV_DATA)
#define FILTER(bm, bn, splits, step, tile)  KERNEL(bm, bn, splits, CUDA_CONV_FILTER)

const cuda_gemm_kernel cuda_conv_f16[3][16] = { { CUDA_CONV_FORWARD_TILES(FORWARD) }, { CUDA_CONV_DATA_TILES(DATA) }, { CUDA_CONV_FILTER_TILES(FILTER) } };
