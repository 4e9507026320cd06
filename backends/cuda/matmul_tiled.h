/* matmul_tiled.h -- what the host and the kernels of matmul_tiled share. */
#ifndef QN_CUDA_MATMUL_TILED_H
#define QN_CUDA_MATMUL_TILED_H
#include <quern/backend.h>
#include "steps.h"

/* An operand: `rows` (a: of M, b: of N) by k. */
typedef struct cuda_tiled_side {
  const void *p;
  int64_t row_stride, k_stride, batch_stride[2];            /* elements */
  int32_t rows;
  int32_t bytes;                          /* of one asynchronous copy: 16, 8 or 4; 0: element by element */
} cuda_tiled_side;

typedef struct cuda_tiled {               /* the kernel's parameter */
  cuda_tiled_side a, b;
  void    *out;
  int64_t  out_stride[4];                 /* row, col, b0, b1 */
  uint32_t out_dtype;
  int32_t  along;                         /* dim of the tile along which y is contiguous: 0 columns, 1 rows */
  int32_t  k, share;                      /* all of it, and of one split: a multiple of a stage's */
  int32_t  splits, tiles_m, tiles_n, batch0;
  int32_t  group;                         /* tiles of M that are walked before N advances */
  float    *partial;                      /* splits > 1: their sums, tile by tile */
  uint32_t *ticket;                       /* and how many of a tile's are there */
  cuda_steps steps;
} cuda_tiled;

typedef struct cuda_tiled_kernel {
  int32_t bm, bn, bk, threads, resident;  /* elements of k in a stage; CTAs that a multiprocessor holds */
  int32_t rate;                           /* products a cycle and multiprocessor, for estimates */
  int32_t lies;                           /* operands in shared memory: 0 k contiguous, 1 rows, -1 either */
  int32_t aligned_only;                   /* no way for what cannot be copied by 4 bytes or more */
  int32_t shared[2][2];                   /* [rows of a contiguous in shared memory][rows of b] */
  const void *function[2][2];
} cuda_tiled_kernel;

/* Tiles of each table below, largest first; what the sums may be split into. */
#define CUDA_TILED_TILES(X) X(128, 128) X(64, 64) X(16, 64)
#define CUDA_TILED_SIMT_TILES(X) X(128, 128) X(64, 64) X(16, 128)
enum { CUDA_TILED_SIZES = 3 };

#ifdef __cplusplus
extern "C" {
#endif
extern const cuda_tiled_kernel cuda_mma_bf16[], cuda_mma_f16[], cuda_mma_tf32[], cuda_mma_3xtf32[], cuda_mma_i8[], cuda_simt_f32[];
#ifdef __cplusplus
}
#endif
#endif
