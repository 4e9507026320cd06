/* matmul_wgmma_i8.cu -- the kernels of matmul_wgmma.cuh for 8-bit integers. */
#include "matmul_wgmma.cuh"
#include "matmul_wgmma_tiles.h"

#define TILE(bm, bn, splits, ...)                                                                             \
  { bm, bn, splits, gemm_shape<KIND, bm, bn, splits>::threads,                                     \
    gemm_shape<KIND, bm, bn, splits>::shared,                                                      \
    (const void *)matmul_wgmma<KIND, bm, bn, splits>, NULL },

#define KIND MMA_S8
static const cuda_gemm_kernel ss[] = { CUDA_GEMM_TILES_I8(TILE) {} };
#undef KIND
#define KIND MMA_S8_U8
static const cuda_gemm_kernel su[] = { CUDA_GEMM_TILES_I8(TILE) {} };
#undef KIND
#define KIND MMA_U8_S8
static const cuda_gemm_kernel us[] = { CUDA_GEMM_TILES_I8(TILE) {} };
#undef KIND
#define KIND MMA_U8
static const cuda_gemm_kernel uu[] = { CUDA_GEMM_TILES_I8(TILE) {} };

const cuda_gemm_kernel *const cuda_gemm_i8[4] = { ss, su, us, uu };
