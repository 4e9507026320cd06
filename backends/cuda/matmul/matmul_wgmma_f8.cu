/* matmul_wgmma_f8.cu -- the kernels of matmul_wgmma.cuh for 8-bit floats, promoted and raw. */
#include "matmul_wgmma.cuh"
#include "matmul_wgmma_tiles.h"

#define TILE(kind, bm, bn, splits, promoted)                                                                         \
  { bm, bn, splits, gemm_shape<kind, bm, bn, splits, promoted>::threads,                                       \
    gemm_shape<kind, bm, bn, splits, promoted>::shared,                                                        \
    (const void *)matmul_wgmma<kind, bm, bn, splits, promoted>, NULL },

#define PROMOTED(bm, bn, splits, ...) TILE(KIND, bm, bn, splits, true)
#define RAW(bm, bn, splits, ...)      TILE(KIND, bm, bn, splits, false)
#define KIND MMA_E4M3
static const cuda_gemm_kernel promoted_44[] = { CUDA_GEMM_TILES_F8(PROMOTED) {} }, raw_44[] = { CUDA_GEMM_TILES_F8_RAW(RAW) {} };
#undef KIND
#define KIND MMA_E4M3_E5M2
static const cuda_gemm_kernel promoted_45[] = { CUDA_GEMM_TILES_F8(PROMOTED) {} }, raw_45[] = { CUDA_GEMM_TILES_F8_RAW(RAW) {} };
#undef KIND
#define KIND MMA_E5M2_E4M3
static const cuda_gemm_kernel promoted_54[] = { CUDA_GEMM_TILES_F8(PROMOTED) {} }, raw_54[] = { CUDA_GEMM_TILES_F8_RAW(RAW) {} };
#undef KIND
#define KIND MMA_E5M2
static const cuda_gemm_kernel promoted_55[] = { CUDA_GEMM_TILES_F8(PROMOTED) {} }, raw_55[] = { CUDA_GEMM_TILES_F8_RAW(RAW) {} };

const cuda_gemm_kernel *const cuda_gemm_f8[4] = { promoted_44, promoted_45, promoted_54, promoted_55 };
const cuda_gemm_kernel *const cuda_gemm_f8_raw[4] = { raw_44, raw_45, raw_54, raw_55 };
