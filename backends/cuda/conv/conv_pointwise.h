/* conv_pointwise.h -- shared by host and kernels of conv_pointwise. */
#ifndef QN_CUDA_CONV_POINTWISE_H
#define QN_CUDA_CONV_POINTWISE_H
#include "conv_kernel.h"
#include "kit/divisor.h"
#include "matmul/matmul_tiled.h"

/* A tensor whose spatial dims are one run of elements: strides of images, channels and groups, in elements. */
typedef struct cuda_pointwise_side { const void *p; int64_t image, channel, group; } cuda_pointwise_side;

/* The kernel's parameter: for each group a product of m rows by n columns, summed over k.
 *
 *                     rows        columns                k
 *   forward           filters     pixels of all images   channels
 *   backward data     channels    pixels of all images   filters
 *   backward filter   filters     channels               pixels of all images */
typedef struct cuda_pointwise {
  cuda_tiled_side w;                      /* forward, data; its groups are batch_stride[0] apart */
  cuda_pointwise_side read, dy;           /* x, or in backward data dy; dy of backward filter */
  cuda_pointwise_side out;
  uint32_t out_dtype;
  int32_t  m, n, k, tiles_m;
  int32_t  bytes, each;                   /* of one copy of pixels: 16, 8 or 4; pixels stored at once: 4, 2 or 1 */
  int32_t  share;                         /* backward filter: k of one partial sum; these are `elements` apart */
  int64_t  elements;
  cuda_divisor by_pixels;                 /* of an image */
  int32_t  column, factor, relu;          /* operands of bias and fold (-1: none) */
  cuda_steps steps;
} cuda_pointwise;

typedef struct cuda_pointwise_kernel {
  int32_t bm, bn, bk, stages, threads, resident, rate;      /* rate: multiply-adds a cycle and SM */
  int32_t stage[2], tile;                 /* bytes of shared memory: [w has rows contiguous] */
  int32_t aligned_only;                   /* cannot read filters that cp.async cannot copy */
  const void *function[2];
} cuda_pointwise_kernel;

/* The compiled tiles: two with stages of 64 bytes of k, for short sums, and the others, of 128. */
#define CUDA_POINTWISE_TILES(X) X("64x128_short") X("32x128_short") X("128x128") X("64x128") X("64x64") X("32x64")
enum { CUDA_POINTWISE_SIZES = 6 };

#ifdef __cplusplus
extern "C" {
#endif
/* conv_kernel.c: cuda_conv_kernel_run; early: of a kernel that waits itself for the earlier ones of the stream, and begins beside them. */
qn_status cuda_conv_kernel_start(const cuda_conv_kernel *k, const qn_launch *launch, bool early);

/* [filter]; not every tile exists for both, nor for every dtype */
typedef const cuda_pointwise_kernel cuda_pointwise_table[2][CUDA_POINTWISE_SIZES];
extern cuda_pointwise_table cuda_pointwise_bf16, cuda_pointwise_f16, cuda_pointwise_tf32, cuda_pointwise_3xtf32;
#ifdef __cplusplus
}
#endif
#endif
