/* matmul_wgmma_f16.cu -- the kernels of matmul_wgmma.cuh on f16. */
#include "matmul_wgmma.cuh"
#include "matmul_wgmma_tiles.h"

#define TILE(bm, bn, splits, ...)                                                                                       \
  { bm, bn, splits, gemm_shape<MMA_F16, bm, bn, splits>::threads, gemm_shape<MMA_F16, bm, bn, splits>::shared, \
    (const void *)matmul_wgmma<MMA_F16, bm, bn, splits>, gemm_in_blocks<MMA_F16, bm, bn, splits>() },

const cuda_gemm_kernel cuda_gemm_f16[] = {
  CUDA_GEMM_TILES_16(TILE)
  {}
};
