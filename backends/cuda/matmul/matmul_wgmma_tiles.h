/* matmul_wgmma_tiles.h -- the compiled tiles of matmul_wgmma, into how many parts their k is split, and their measured times.
 *
 *   X(bm, bn, splits, step, fixed, fixed_t)
 *
 * Nanoseconds on an H200: of a k step of 128 bytes, and of everything else (launch, filling the ring, epilogue) with the operands
 * in order and swapped. 16 bits: fitted, by cost() in matmul_wgmma.c, to each tile's times on 33 products of 64 cubed to
 * 12544 x 1024 x 256 and batches. The others: from two depths of k with all multiprocessors busy; tf32 from memory, the rest from L2. */
#ifndef QN_CUDA_MATMUL_WGMMA_TILES_H
#define QN_CUDA_MATMUL_WGMMA_TILES_H

#define CUDA_GEMM_TILES_16(X) \
  X(128, 256, 1, 636, 3051, 5320) X(128, 128, 1, 325, 2657, 4339) X(128, 128, 2, 388, 3850, 8300) \
  X(128, 64, 1, 175, 2369, 3327) X(128, 80, 1, 235, 3000, 5500) X(128, 160, 1, 403, 2950, 7500) \
  X(128, 192, 1, 480, 2880, 9000) X(128, 64, 4, 178, 2869, 2980) X(64, 128, 1, 178, 2481, 3527) \
  X(64, 128, 2, 256, 3500, 3400) X(64, 64, 1, 146, 2224, 2938) X(64, 64, 2, 145, 2850, 2950) \
  X(64, 32, 1, 143, 2137, 2215) X(64, 16, 1, 132, 1995, 2028)
#define CUDA_GEMM_TILES_TF32(X) \
  X(128, 256, 1, 612, 7924, 15120) X(128, 128, 1, 317, 5724, 9382) X(128, 128, 2, 387, 6508, 8386) \
  X(128, 64, 1, 291, 3409, 5660) X(64, 128, 1, 215, 4185, 8355) \
  X(64, 128, 2, 276, 4814, 6559) X(64, 64, 1, 176, 3547, 5243) X(64, 64, 2, 191, 4320, 4893) \
  X(64, 32, 1, 166, 3070, 4965) X(64, 16, 1, 110, 3242, 3573)
#define CUDA_GEMM_TILES_3XTF32(X) \
  X(128, 256, 1, 2118, 6108, 12260) X(128, 128, 1, 1390, 1600, 4207) X(128, 128, 2, 1362, 3701, 5660) \
  X(128, 64, 1, 826, 3793, 5594) X(64, 64, 1, 522, 3580, 5501) \
  X(64, 64, 2, 545, 5004, 6451) X(64, 32, 1, 375, 3640, 4613) X(64, 16, 1, 246, 6167, 6064)
/* 8-bit floats: sums promoted, and raw. */
#define CUDA_GEMM_TILES_F8(X) \
  X(128, 256, 1, 795, 4238, 8350) X(128, 128, 2, 468, 4975, 5976) X(128, 64, 1, 261, 2575, 3550) \
  X(64, 64, 1, 212, 2179, 2915) X(64, 16, 1, 139, 2000, 2017)
#define CUDA_GEMM_TILES_F8_RAW(X) \
  X(128, 256, 1, 575, 4028, 8161) X(128, 64, 1, 266, 1538, 2666)
#define CUDA_GEMM_TILES_I8(X) \
  X(128, 256, 1, 574, 5859, 29547) X(128, 64, 1, 265, 1742, 8305) X(64, 64, 1, 133, 2148, 4621) \
  X(64, 16, 1, 114, 3296, 3016)
#endif
