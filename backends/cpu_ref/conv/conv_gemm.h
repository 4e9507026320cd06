/* conv_gemm.h -- a convolution as a matrix product, for the engines that run it: conv_gemm.c and gemm_fused.c. */
#ifndef CPU_CONV_GEMM_H
#define CPU_CONV_GEMM_H
#include "conv_window.h"
#include "gemm/gemm_epilogue.h"

#define CPU_CONV_PHASES 64                /* limit on phases, each of which is a pass of its own */

typedef struct cpu_conv {
  /* the problem */
  bool         backward;                  /* the gradient by the data: y is dx, the source dy */
  qn_conv      attr;
  qn_value     source_is, filter_is, y_is;
  int32_t      source_value, filter_value;
  cpu_epilogue epilogue;
  bool         must_follow_y;             /* rows of sums must run along y's fastest dim, even where that is slower */
  bool         flat;                      /* consecutive pixels are equally far apart in y */
  int32_t      axis;                      /* the spatial dim along which rows of pixels run */
  int64_t      phases;
  int          threads;                   /* that the workspace is sized for */
  double       ns;                        /* an estimate, of all phases on one thread */
  /* of the current phase */
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
  /* of the current launch */
  const char  *source, *filter;
  char        *laid;
} cpu_conv;

/* Reads the problem, and the geometry of one phase (forward: the only one, 0), for an engine with loops of its own. */
void cpu_conv_ask(cpu_conv *c, const qn_request *request, const cpu_gemm_isa *isa);
void cpu_conv_phase(cpu_conv *c, int64_t phase);
void cpu_conv_bind(cpu_conv *c, void *const *ptr);             /* sets source, filter and the epilogue's tensors */

/* Reads the problem from request->op[0], conv_forward or conv_backward_data, and returns the workspace's bytes. The result is
 * unusable if phases exceeds CPU_CONV_PHASES. */
uint64_t cpu_conv_set(cpu_conv *c, const qn_request *request, const cpu_gemm_isa *isa);
void cpu_conv_run(cpu_conv *c, const qn_launch *launch);       /* modifies *c: pass a copy */

#endif
