/* conv_mma.h -- shared by host and kernels of conv_mma. */
#ifndef QN_CUDA_CONV_MMA_H
#define QN_CUDA_CONV_MMA_H
#include "conv_problem.h"
#include "kit/divisor.h"
#include "matmul/matmul_tiled.h"

/* The kernel's parameter: for each group a product of m rows by n columns, summed over k. Pixels are those of y, or of a class of
 * dx's. Along dim d (H, W, D) pixel i reads, at tap t, element i pace + t step - before of the gathered tensor. */
typedef struct cuda_conv_mma {
  const void *gathered;                   /* x, or for backward data dy; channels last */
  const void *filters;                    /* for backward data */
  cuda_tiled_side other;                  /* forward: w, backward filter: dy */
  void    *out;
  int64_t  out_row, out_group;            /* elements from its row, its group to the next */
  uint32_t out_dtype;
  int32_t  n, images;
  int32_t  k, share;                      /* share: k of one of gridDim.y partial sums */
  cuda_tiled_parts parts;                 /* forward, backward data: where splits > 1 */
  int64_t  out_parts;                     /* backward filter: elements of out between partial sums */
  int32_t  tiles_n;
  int32_t  in[3], channels, pitch;        /* of the gathered tensor; channels: of a group, pitch: of all */
  int32_t  size[2], taps;                 /* the filter's H and W; number of all taps */
  int32_t  pace[3], step[3];
  int32_t  apart[3], extent[3];           /* pixels of the output: between those of a class; in total */
  cuda_conv_span spans[3][CUDA_CONV_APART];
  cuda_divisor by_w, by_hw, by_dhw;       /* backward filter: pixels of a row, a plane, an image */
  cuda_steps steps;
} cuda_conv_mma;

typedef struct cuda_conv_mma_kernel { int32_t bm, bn, bk, threads, resident, rate, shared; const void *function; } cuda_conv_mma_kernel;

/* The compiled tiles. (A kernel's rate: multiply-adds a cycle and SM, for estimates.) */
#define CUDA_CONV_MMA_TILES(X) X(128, 128) X(64, 64) X(128, 32) X(32, 128)
enum { CUDA_CONV_MMA_SIZES = 4 };

#ifdef __cplusplus
extern "C" {
#endif
/* [forward, data, filter]; not every tile exists for every dtype */
typedef const cuda_conv_mma_kernel cuda_conv_mma_table[3][CUDA_CONV_MMA_SIZES];
extern cuda_conv_mma_table cuda_conv_mma_bf16, cuda_conv_mma_f16, cuda_conv_mma_tf32, cuda_conv_mma_3xtf32;
#ifdef __cplusplus
}
#endif
#endif
