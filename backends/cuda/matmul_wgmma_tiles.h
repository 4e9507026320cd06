/* matmul_wgmma_tiles.h -- the tiles of matmul_wgmma that are compiled, into how many shares their sums are split, and what they take.
 *
 *   X(bm, bn, shares, step, fixed, fixed_t)
 *
 * Measured on an H200 with a unit of work on every multiprocessor: nanoseconds of a k step of 128 bytes, and of all else (launch,
 * filling the ring, epilogue), with the operands as they are and exchanged; 16-bit and tf32 from memory, the others from the cache.
 * A later kernel wants them measured anew: two depths of k give both. */
#ifndef QN_CUDA_MATMUL_WGMMA_TILES_H
#define QN_CUDA_MATMUL_WGMMA_TILES_H

#define CUDA_GEMM_TILES_16(X) \
  X(128, 256, 1, 636, 5635, 11427) X(128, 128, 1, 322, 5378, 6961) X(128, 128, 2, 388, 3850, 8300) \
  X(128, 64, 1, 301, 1648, 2839) X(128, 64, 2, 295, 5093, 5335) \
  X(128, 64, 4, 256, 5760, 5988) X(64, 128, 1, 215, 2949, 5283) X(64, 128, 2, 256, 5175, 5072) \
  X(64, 64, 1, 167, 2215, 3110) X(64, 64, 2, 183, 4221, 4026) X(64, 32, 1, 114, 3082, 4105) \
  X(64, 16, 1, 104, 3557, 3226)
#define CUDA_GEMM_TILES_TF32(X) \
  X(128, 256, 1, 612, 7924, 15120) X(128, 128, 1, 317, 5724, 9382) X(128, 128, 2, 387, 6508, 8386) \
  X(128, 64, 1, 291, 3409, 5660) X(128, 64, 2, 310, 4780, 5595) X(64, 128, 1, 215, 4185, 8355) \
  X(64, 128, 2, 276, 4814, 6559) X(64, 64, 1, 176, 3547, 5243) X(64, 64, 2, 191, 4320, 4893) \
  X(64, 32, 1, 166, 3070, 4965) X(64, 16, 1, 110, 3242, 3573)
#define CUDA_GEMM_TILES_3XTF32(X) \
  X(128, 256, 1, 2118, 6108, 12260) X(128, 128, 1, 1390, 705, 4207) X(128, 128, 2, 1362, 3701, 5660) \
  X(128, 64, 1, 826, 3793, 5594) X(128, 64, 2, 896, 5315, 6073) X(64, 64, 1, 522, 3580, 5501) \
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
