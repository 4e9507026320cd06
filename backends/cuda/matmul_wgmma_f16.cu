/* matmul_wgmma_f16.cu -- the kernels of matmul_wgmma.cuh on f16. */
#include "matmul_wgmma.cuh"
#include "matmul_wgmma_tiles.h"

#define KERNEL(bm, bn, splits, gathered)                                                                 \
  { bm, bn, splits, gemm_shape<MMA_F16, bm, bn, 0, 0, splits>::threads,                                 \
    gemm_shape<MMA_F16, bm, bn, 0, 0, splits>::shared,                                                  \
    { { (const void *)matmul_wgmma<MMA_F16, bm, bn, 0, 0, splits, false, gathered>,                    \
        (const void *)matmul_wgmma<MMA_F16, bm, bn, 0, 1, splits, false, gathered> },                  \
      { (const void *)matmul_wgmma<MMA_F16, bm, bn, 1, 0, splits, false, gathered>,                    \
        (const void *)matmul_wgmma<MMA_F16, bm, bn, 1, 1, splits, false, gathered> } } },
#define TILE(bm, bn, splits, ...)     KERNEL(bm, bn, splits, false)
#define GATHERED(bm, bn, splits, ...) KERNEL(bm, bn, splits, true)

const cuda_gemm_kernel cuda_gemm_f16[] = {
  CUDA_GEMM_TILES_16(TILE) CUDA_GEMM_GATHERED_16(GATHERED)
  {}
};
