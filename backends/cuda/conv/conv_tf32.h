/* conv_tf32.h -- shared by host and kernels of conv_tf32. */
#ifndef QN_CUDA_CONV_TF32_H
#define QN_CUDA_CONV_TF32_H
#include <cuda.h>
#include <quern/backend.h>
#include "conv_views.h"
#include "kit/divisor.h"
#include "program/steps.h"

enum { CUDA_TF32_ROWS = 128, CUDA_TF32_DEPTH = 32 };        /* of a tile; of a k step */
enum { CUDA_TF32_CLASSES = 16 };

/* Pixels that see the same taps: all, or in a gradient by x with strides those of one residue. By dims: W, H, D. */
typedef struct cuda_conv_class {
  int64_t out;                            /* elements to its first pixel */
  int32_t start, steps;                   /* its k steps, as the packed operand has them */
  int32_t taps[3], first[3];              /* first: of these, in windows */
  int32_t filter[3];                      /* and in the filters */
  int32_t limit[3];                       /* its pixels; rows beyond are not stored */
} cuda_conv_class;
typedef struct cuda_conv_classes {
  int32_t n, pace[3];                     /* pace: from tap to tap in the filters */
  cuda_conv_class of[CUDA_TF32_CLASSES];
} cuda_conv_classes;

typedef struct cuda_conv_tf32 {           /* the product's parameter */
  CUtensorMap a;                          /* the gathered tensor, channels last */
  const float *b;                         /* packed: [k steps][tiles of columns][high, low][columns][32], swizzled */
  void    *out;
  int64_t  out_stride[5], part_stride;    /* row in an image, column, by_rows by_lines images, image, by_rows images */
  uint32_t out_dtype;
  int32_t  along;                         /* out is contiguous along columns (0) or rows (1), if at all */
  int32_t  m, n, image_rows;              /* image_rows: rows of an image, as out lies: of a line of pixels where lines lie apart */
  int32_t  tiles_m, tiles_n, parts, k_steps, share;         /* parts: partial sums of `share` k steps each, or classes */
  int32_t  turns;                         /* a tile's classes run side by side: what they store between each other meets in the cache */
  int32_t  taps_w, taps_h, chunks;        /* taps along W, H (filter gradient); chunks of a tap: 32 channels each */
  int32_t  blocks;                        /* filter gradient: taps times chunks, 32 rows each */
  cuda_divisor by_w, by_hw, by_planes;    /* pixels of a row, of an image, planes of the output grid */
  cuda_divisor by_rows, by_lines;         /* see out_stride */
  int32_t  stride_w, stride_h, start_w, start_h, dilation_w, dilation_h;
  int32_t  planes, stride_d, start_d, dilation_d;           /* planes: D of the output grid, 0: two spatial dims */
  cuda_conv_classes classes;              /* none of a filter gradient */
  cuda_steps steps;
} cuda_conv_tf32;

typedef struct cuda_conv_tf32_kernel { int32_t bn, shared; const void *function[2]; } cuda_conv_tf32_kernel;    /* [filter] */

/* Unfolded windows: [pixels][taps][channels] (im2col). */
typedef struct cuda_conv_unfold {
  int32_t out_h, out_w, taps_h, taps_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
} cuda_conv_unfold;

#ifdef __cplusplus
extern "C" {
#endif
/* By number of products (1: tf32, 3: 3xtf32), then by variant; a function that is NULL there is not. */
extern const cuda_conv_tf32_kernel cuda_conv_tf32_one[], cuda_conv_tf32_three[];
qn_status cuda_conv_tf32_launch(const cuda_conv_tf32 *g, const cuda_conv_tf32_kernel *kernel, bool filter, int grid, void *stream);

/* conv_tf32_layout.cu. to: [n][(h-1) step_h + 1][(w-1) step_w + 1][c rounded up to 4] = from, zeros between. */
qn_status cuda_conv_pack_pixels(float *to, const float *from, const cuda_conv_pixels *at, int step_h, int step_w, void *stream);
/* to: [n][out_h][out_w][taps c rounded up to 4] */
qn_status cuda_conv_pack_windows(float *to, const float *from, const cuda_conv_pixels *at, const cuda_conv_unfold *u, void *stream);
/* Packs the product's second operand from filters, or from dy (a k step is then 32 pixels). bn: tile width; split: high and low parts. */
qn_status cuda_conv_pack_filters(float *to, const float *from, const cuda_conv_filters *f, const cuda_conv_classes *classes, int bn,
                                 bool split, void *stream);
qn_status cuda_conv_pack_gradient(float *to, const float *from, const cuda_conv_pixels *at, int bn, bool split, void *stream);
/* dw = sum of the parts [filters][rows: tap, channels]. */
qn_status cuda_conv_join_filters(float *to, const float *parts, const cuda_conv_filters *f, int n_parts, int64_t rows, int64_t rows_of_tap,
                                 void *stream);
#ifdef __cplusplus
}
#endif
#endif
