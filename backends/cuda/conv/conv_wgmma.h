/* conv_wgmma.h -- shared by host and kernels of conv_wgmma. */
#ifndef QN_CUDA_CONV_WGMMA_H
#define QN_CUDA_CONV_WGMMA_H
#include "kit/divisor.h"
#include "matmul/matmul_wgmma.h"

enum { CUDA_CONV_FORWARD, CUDA_CONV_DATA, CUDA_CONV_FILTER };

/* A grid of pixels, the rows of the product (filter gradient: what is summed over), and the taps of their windows. Along each
 * spatial dim (W, H, D) pixel i at tap j reads gathered[i stride + start + j step]; w's tap number is weight[3] + the sum over
 * dims of j weight. */
typedef struct cuda_conv_grid {
  int32_t w, hw, dhw, pixels;             /* pixels of a row, a plane, an image, all images */
  cuda_divisor by_w, by_hw, by_dhw;
  int32_t taps_w, taps_hw, taps;          /* taps of a row, a plane, in total; 0: an empty sum */
  int32_t start[3], stride[3], step[3], weight[4];
} cuda_conv_grid;

enum { CUDA_CONV_CLASSES = 4 };           /* of one launch */
typedef struct cuda_conv {                /* the kernel's parameter */
  cuda_gemm gemm;                         /* its a (filter gradient: dy) or b (w) is the operand that is not gathered; batch0: classes */
  int32_t   chunks;                       /* k steps of a tap; filter gradient: x's channels in units of 64 */
  int32_t   volume;                       /* TMA maps have five dims, not four */
  cuda_conv_grid grid[CUDA_CONV_CLASSES];
  uint32_t *ticket;                       /* gemm.batch1 parts of a sum, forward and data: arrivals of each tile's warpgroups */
  int32_t   eights;                       /* columns of a tile that its parts keep (in gemm.kept), in eights */
  CUtensorMap gathered[CUDA_CONV_CLASSES], written[CUDA_CONV_CLASSES];  /* written: backward data only; else gemm.y */
} cuda_conv;

/* Tiles and shares that are compiled, and what an H200 takes in ns: for a k step of a tile, and for a tile beside its steps. Least
 * squares over the rows of bench/workloads/anchors.q (bf16) on which a tile is within 2.5 times of the best, each pinned in turn:
 * QUERN_ENGINE=conv_forward=cuda/wgmma:128x256_k1 quern-bench --backend cuda --workload anchors.q
 * (but forward and data of 128x128 in two shares: no row is small enough; its step, and a join as the other's; their 128x192 lies between). */
#define CUDA_CONV_FORWARD_TILES(X) \
  X(128, 320, 1, 841, 1308) X(128, 256, 1, 655, 1286) X(128, 192, 1, 500, 1200) X(128, 128, 1, 352, 1034) X(128, 128, 2, 352, 3400) \
  X(256, 64, 1, 497, 787) X(128, 64, 1, 263, 624)
#define CUDA_CONV_DATA_TILES(X) \
  X(128, 320, 1, 853, 1095) X(128, 256, 1, 701, 1023) X(128, 192, 1, 520, 1070) X(256, 128, 1, 700, 2043) \
  X(128, 128, 1, 360, 1102) X(128, 128, 2, 360, 3500) \
  X(256, 64, 1, 492, 1057) X(128, 64, 1, 263, 692)
#define CUDA_CONV_FILTER_TILES(X) \
  X(128, 320, 1, 860, 1925) X(128, 192, 1, 487, 2190) X(128, 128, 1, 350, 632) X(128, 128, 2, 313, 2500) X(128, 64, 1, 200, 1186) \
  X(64, 192, 1, 303, 927) X(64, 64, 1, 127, 1382)

/* May a tile's sums have parts, forward and data? Those of 256 rows were 3% to 8% slower for it, in parts or not; wide ones spill. */
#ifdef __CUDACC__
__host__ __device__ constexpr
#else
static inline
#endif
bool cuda_conv_in_parts(int bm, int bn, int splits) { return splits == 1 && bm == 128 && bn <= 256; }

#ifdef __cplusplus
extern "C" {
#endif
extern const cuda_gemm_kernel cuda_conv_bf16[3][16], cuda_conv_f16[3][16];     /* [forward, data, filter], closed by bm 0 */
#ifdef __cplusplus
}
#endif
#endif
