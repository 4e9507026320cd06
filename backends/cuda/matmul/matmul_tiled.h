/* matmul_tiled.h -- what the host and the kernels of matmul_tiled share. */
#ifndef QN_CUDA_MATMUL_TILED_H
#define QN_CUDA_MATMUL_TILED_H
#include <quern/backend.h>
#include "program/steps.h"

/* An operand: `rows` (of a: M, of b: N) by k. */
typedef struct cuda_tiled_side {
  const void *p;
  int64_t row_stride, k_stride, batch_stride[2];            /* elements */
  int32_t rows;
  int32_t bytes;                          /* of one asynchronous copy: 16, 8 or 4; 0: element by element */
} cuda_tiled_side;

/* Partial sums, tile by tile, of the splits of k, if there are several, and of what a CTA has summed of a longer share. */
typedef struct cuda_tiled_parts {
  float    *partial;
  uint32_t *ticket;                       /* splits > 1: arrivals of each tile */
  int32_t   splits;
} cuda_tiled_parts;

typedef struct cuda_tiled {               /* the kernel's parameter */
  cuda_tiled_side a, b;
  void    *out;
  int64_t  out_stride[4];                 /* row, col, b0, b1 */
  uint32_t out_dtype;
  int32_t  along;                         /* the tile's dim along which y is contiguous: 0 columns, 1 rows */
  int32_t  k, share;                      /* k in total, and of one split (a multiple of a stage's k) */
  int32_t  tiles_m, tiles_n, batch0;
  int32_t  group;                         /* tile rows visited before advancing along N (L2 locality) */
  int32_t  block;                         /* k elements of one running sum (a multiple of a stage's) */
  cuda_tiled_parts parts;
  cuda_steps steps;
} cuda_tiled;

typedef struct cuda_tiled_kernel {
  int32_t bm, bn, bk, threads, resident;  /* k elements of a stage; resident: CTAs per multiprocessor */
  int32_t rate;                           /* products per cycle and multiprocessor, for estimates */
  int32_t lies;                           /* layout in shared memory: 0 k contiguous, 1 rows, -1 either */
  int32_t aligned_only;                   /* cannot read operands that cp.async cannot copy (less than 4 bytes aligned) */
  int32_t shared[2][2];                   /* bytes; [a has rows contiguous in shared memory][b has] */
  const void *function[2][2];
} cuda_tiled_kernel;

/* A running sum's rounding errors grow with its length, and Tensor Cores truncate: longer sums are made in blocks of so many terms. */
static inline int32_t cuda_tiled_block(int esize) { return esize == 4 ? 8192 : esize == 2 ? 32768 : INT32_MAX; }

/* Tiles of each kernel table below, largest first. */
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
