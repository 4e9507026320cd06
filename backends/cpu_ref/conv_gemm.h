/* conv_gemm.h -- a convolution as a product, for the engines that run it: conv_gemm.c and the fused form. */
#ifndef CPU_CONV_GEMM_H
#define CPU_CONV_GEMM_H
#include "conv_window.h"
#include "gemm_epilogue.h"

typedef struct cpu_conv {
  /* asked */
  bool         backward;                  /* the gradient by the data: y is dx, the source dy */
  qn_conv      attr;
  qn_value     source_is, filter_is, y_is;
  int32_t      source_value, filter_value;
  cpu_epilogue epilogue;
  bool         flat;                      /* y, and all that is spread over it, runs through space in equal steps */
  int64_t      phases;
  int          threads;                   /* that the workspace is cut for */
  /* of the phase at hand */
  cpu_gemm     gemm;                      /* batch: groups */
  cpu_window   window;
  int64_t      y_offset;
  bool         pixels_in_columns;         /* of the product; else channels are */
  bool         taps_fastest;              /* places are (in, tap); else (tap, in) */
  bool         source_in_place, filter_in_place;
  uint32_t     filter_dtype;              /* and its strides: */
  int64_t      filter_first, filter_group, filter_out, filter_in, filter_tap[3];
  int64_t      laid_ld;                   /* the filter as laid out */
  uint64_t     laid_bytes;
  /* of the launch */
  const char  *source, *filter;
  char        *laid;
} cpu_conv;

/* Fills in what is asked by request->op[0], conv_forward or conv_backward_data, and gives the workspace's bytes. */
uint64_t cpu_conv_set(cpu_conv *c, const qn_request *request);
/* Does a tensor spread over y run through the spatial dims in equal steps? */
bool cpu_conv_flat(const cpu_operand *o, const qn_value *y);
void cpu_conv_run(cpu_conv *c, const qn_launch *launch);       /* writes in *c: a copy of what was set */

#endif
