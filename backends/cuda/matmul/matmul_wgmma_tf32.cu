/* matmul_wgmma_tf32.cu -- the kernels of matmul_wgmma.cuh for f32, rounded to tf32 or split into two. */
#include "matmul_wgmma.cuh"
#include "matmul_wgmma_tiles.h"

#define TILE(kind, bm, bn, splits)                                                                       \
  { bm, bn, splits, gemm_shape<kind, bm, bn, splits>::threads,                                     \
    gemm_shape<kind, bm, bn, splits>::shared,                                                      \
    (const void *)matmul_wgmma<kind, bm, bn, splits>, gemm_in_blocks<kind, bm, bn, splits>() },
#define ROUNDED(bm, bn, splits, ...) TILE(MMA_TF32, bm, bn, splits)
#define SPLIT(bm, bn, splits, ...)   TILE(MMA_3XTF32, bm, bn, splits)
#define TURNED(bm, bn, splits, ...) turned<bm, bn, splits>(),

/* The largest tile has no registers to turn in. */
template <int BM, int BN, int splits> static constexpr cuda_gemm_kernel turned()
{
  typedef gemm_shape<MMA_TF32, BM, BN, splits> shape;
  if constexpr (BM * BN < 128 * 256)
    return { BM, BN, splits, shape::threads, shape::shared, (const void *)matmul_wgmma<MMA_TF32, BM, BN, splits, false, false, true>,
             gemm_in_blocks<MMA_TF32, BM, BN, splits, true>() };
  else return { BM, BN, splits, shape::threads, shape::shared, NULL, NULL };
}

const cuda_gemm_kernel cuda_gemm_tf32[] = {
  CUDA_GEMM_TILES_TF32(ROUNDED)
  {}
};
const cuda_gemm_kernel cuda_gemm_tf32_turned[] = {
  CUDA_GEMM_TILES_TF32(TURNED)
  {}
};
const cuda_gemm_kernel cuda_gemm_3xtf32[] = {
  CUDA_GEMM_TILES_3XTF32(SPLIT)
  {}
};
