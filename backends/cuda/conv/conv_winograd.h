/* conv_winograd.h -- shared by host and kernels of conv_winograd. */
#ifndef QN_CUDA_CONV_WINOGRAD_H
#define QN_CUDA_CONV_WINOGRAD_H
#include <stdbool.h>
#include <quern/backend.h>
#include "conv_views.h"

/* F(m x m, r x r): m outputs and a = m + r - 1 inputs of a tile, per dim. */
typedef struct cuda_winograd { int32_t m, r, a; } cuda_winograd;

/* Tiles of images in row order, from (start_h, start_w) on, m pixels apart, of `size` x `size` pixels; pixels outside are 0.
 * There are `units` of them in parts of `share`; those beyond `tiles` are 0. */
typedef struct cuda_winograd_tiles {
  int32_t m, size, start_h, start_w;
  int32_t row_tiles, image_tiles, tiles, share, units;
} cuda_winograd_tiles;

/* For recomputing sums that the transforms made NaN or infinite (an Inf, or numbers near overflow, in the tile). */
typedef struct cuda_winograd_again {
  const float *pixels, *other;            /* other: filters, or dy */
  cuda_conv_pixels at, gradient;
  cuda_conv_filters filters;
  int32_t start_h, start_w;               /* the first pixel under the first tap */
} cuda_winograd_again;

/* Parameters of the output transform (y or dx). */
typedef struct cuda_winograd_outputs {
  cuda_winograd_tiles tiles;
  cuda_conv_pixels at;                    /* of the output */
  const void *bias;                       /* NULL: none */
  const float *factor, *shift;            /* the fold, by channel; NULL: none */
  int64_t  bias_stride;
  uint32_t bias_dtype;
  int32_t  relu;
  cuda_winograd_again again;
} cuda_winograd_outputs;

#ifdef __cplusplus
extern "C" {
#endif
/* to [a][a][parts][share][c], or with `across` [a][a][parts][c][share] = B^T x B of each tile; G x G^T where a tile has m pixels by dim. */
qn_status cuda_winograd_images(const cuda_winograd *f, float *to, const float *from, const cuda_conv_pixels *at,
                               const cuda_winograd_tiles *t, bool across, void *stream);
/* to [a][a][rows][cols] = G w G^T */
qn_status cuda_winograd_filters(const cuda_winograd *f, float *to, const float *from, const cuda_conv_filters *at, void *stream);
/* to = A^T from A of each tile, from [a][a][tiles][c] */
qn_status cuda_winograd_outputs_launch(const cuda_winograd *f, float *to, const float *from, const cuda_winograd_outputs *s, void *stream);
/* dw = A^T from A, from [a][a][parts][rows][cols] summed over parts first; A^T r by a */
qn_status cuda_winograd_gradient(const cuda_winograd *f, float *to, const float *from, const cuda_winograd_again *s, int parts,
                                 void *stream);
#ifdef __cplusplus
}
#endif
#endif
