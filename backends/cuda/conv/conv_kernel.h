/* conv_kernel.h -- host side of engines whose convolution is one kernel with one parameter struct: the pointers that run fills
 * in, and the launch (conv_kernel.c). A gradient by the filter may leave partial sums in workspace, which are then added in order. */
#ifndef QN_CUDA_CONV_KERNEL_H
#define QN_CUDA_CONV_KERNEL_H
#include "program/chain.h"
#include "conv_problem.h"
#include "matmul/matmul_tiled.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_CONV_PARAMETERS = 2048, CUDA_CONV_POINTERS = 4 };
typedef union cuda_conv_parameters { unsigned char byte[CUDA_CONV_PARAMETERS]; uint64_t aligned; } cuda_conv_parameters;

/* An engine's state. `at` fields are offsets in the parameters. */
typedef struct cuda_conv_kernel {
  const void *function;
  uint32_t grid[3], threads, shared;
  struct { int32_t value; uint32_t at; } pointer[CUDA_CONV_POINTERS];
  int32_t  n_pointers;
  cuda_chain chain;                       /* the fused ops, if has_steps */
  bool     has_steps;
  uint32_t steps_at;
  bool     has_splits;                    /* parts of a tile's sum, in workspace from `partial` on, are added by the last CTA */
  uint32_t splits_at;                     /* of a cuda_tiled_parts */
  uint64_t partial;
  int64_t  parts, elements;               /* partial sums of dw, elements of dw; parts 0: none */
  uint32_t parts_at, dw_dtype;
  int32_t  dw;
  cuda_conv_parameters parameters;
} cuda_conv_kernel;

/* build and run of the engine row; its release is cuda_release. */
qn_status cuda_conv_kernel_build(const qn_request *r, qn_prepared *out);
qn_status cuda_conv_kernel_run(const qn_prepared *p, const qn_launch *launch);

/* Allocates out's state; the caller still sets grid, threads and shared. NULL: no memory. */
cuda_conv_kernel *cuda_conv_kernel_begin(qn_prepared *out, const void *function, const void *parameters, size_t bytes);
void cuda_conv_kernel_pointer(cuda_conv_kernel *k, int32_t value, size_t at);
void cuda_conv_kernel_steps(cuda_conv_kernel *k, qn_prepared *out, const cuda_chain *chain, size_t at, size_t out_at);
/* After the steps: workspace and counters for `splits` parts of each of so many tiles of so many bytes. */
void cuda_conv_kernel_splits(cuda_conv_kernel *k, qn_prepared *out, int64_t splits, int64_t tiles, int64_t bytes, size_t at);
void cuda_conv_kernel_parts(cuda_conv_kernel *k, qn_prepared *out, const cuda_conv_problem *c, int64_t parts, int64_t elements, size_t at);

/* The number of equal shares of the tiles for at most `most` blocks. */
static inline int64_t cuda_conv_shares(int64_t tiles, int64_t most) { return qn_ceil_div(tiles, qn_ceil_div(tiles, qn_max_i64(most, 1))); }
/* The same where each share leaves a partial dw in workspace, which may be limited; 0: refused. */
int64_t cuda_conv_shares_of_sum(const qn_request *r, qn_prepared *out, int64_t tiles, int64_t most, int64_t elements);

/* Common refusals. channels_last: packed, aligned to 16 bytes. */
qn_status cuda_conv_wants_ampere(const qn_request *r, qn_prepared *out);
qn_status cuda_conv_wants_halves(const cuda_conv_problem *c, qn_prepared *out);
qn_status cuda_conv_wants_channels_last(const qn_value *v, const char *name, qn_prepared *out);
/* Reads the problem; refuses all but f16 and bf16 with x and y packed channels last, on sm_80 and up. */
qn_status cuda_conv_read_halves(cuda_conv_problem *c, const qn_request *r, qn_prepared *out);
/* f32, 3x3 filters of one to four channels, one group, stride and dilation 1. */
qn_status cuda_conv_wants_narrow(const cuda_conv_problem *c, qn_prepared *out);

/* f32 rows of whole aligned 16-byte vectors? */
static inline bool cuda_conv_rows_of_vectors(const qn_value *v)
{
  bool whole = v->rank == 4 && v->stride[3] == 1 && v->dim[3] % 4 == 0 && v->align >= 16;
  for (int d = 0; whole && d < 3; d++) whole = v->dim[d] == 1 || v->stride[d] % 4 == 0;
  return whole;
}

#ifdef __cplusplus
}
#endif
#endif
