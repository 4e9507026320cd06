/* conv_windows.h -- a convolution as products over its windows: how the operands lie, what is copied, and chunks (conv_windows.c). */
#ifndef QN_CUDA_CONV_WINDOWS_H
#define QN_CUDA_CONV_WINDOWS_H
#include "conv_problem.h"
#include "conv_unfold.h"
#ifdef __cplusplus
extern "C" {
#endif

/* y, dy or a copy of dy: strides of images, channels, windows and the outermost dim of windows. */
typedef struct cuda_window_pixels { int64_t image, channel, window, row; uint32_t align; } cuda_window_pixels;

typedef struct cuda_windows {
  int32_t  mode, outer;                   /* the outermost dim that is not 1 */
  int32_t  x, w, y, bias;                 /* value numbers; bias -1: none */
  uint32_t x_dtype, dtype, sum, dw_dtype; /* of x or dx; of cols; of the accumulator */
  int32_t  x_bytes, y_bytes;              /* of an element, of x or dx, and of y or dy */
  bool     view, across;                  /* the windows are a view of x; cols is contiguous along the windows */
  bool     scatter, clear;                /* dx: windows are moved to their places; parts of dx that no window holds are cleared */
  bool     direct;                        /* dw may be the product's result */
  bool     follows;                       /* take the ops that follow */
  bool     copy_dy, copy_filters;         /* to workspace, as below */
  qn_value dy, filters_as;
  cuda_unfold u, named;                   /* of a whole image; with x's own dims */
  cuda_window_pixels p;
  int64_t  images, slab;                  /* slab: rows of dx of a chunk, where windows overlap */
  int64_t  channels, filters, groups;     /* of a group */
  int64_t  w_row, w_stride[5];            /* w_row: between filters, as multiplied */
  uint32_t w_align;
  uint64_t clear_bytes;
} cuda_windows;

qn_status cuda_windows_read(cuda_windows *q, const qn_request *r, qn_prepared *out);
/* Images, and rows of windows along the outermost dim, of a chunk of at most this many bytes of cols. */
void cuda_windows_share(cuda_windows *q, int64_t bytes, int64_t *images, int64_t *rows);
#ifdef __cplusplus
}
#endif
#endif
