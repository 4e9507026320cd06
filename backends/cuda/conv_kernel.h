/* conv_kernel.h -- the host half of an engine whose convolution is one kernel with one struct of parameters: what run fills in of
 * them, and the launch (conv_kernel.c). A gradient by the filter may leave its sum in parts, in workspace, which are then joined
 * in order. */
#ifndef QN_CUDA_CONV_KERNEL_H
#define QN_CUDA_CONV_KERNEL_H
#include "chain.h"
#include "conv_problem.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_CONV_PARAMETERS = 2048, CUDA_CONV_POINTERS = 4 };
typedef union cuda_conv_parameters { unsigned char byte[CUDA_CONV_PARAMETERS]; uint64_t aligned; } cuda_conv_parameters;

/* An engine's state. Places are offsets in the parameters. */
typedef struct cuda_conv_kernel {
  const void *function;
  uint32_t grid[3], threads, shared;
  struct { int32_t value; uint32_t at; } pointer[CUDA_CONV_POINTERS];
  int32_t  n_pointers;
  cuda_chain chain;                       /* what follows the sums, if has_steps */
  bool     has_steps;
  uint32_t steps_at;
  int64_t  parts, elements;               /* of the sum; of dw. parts 0: there are none */
  uint32_t parts_at, dw_dtype;
  int32_t  dw;
  cuda_conv_parameters parameters;
} cuda_conv_kernel;

/* These are the row's, with cuda_release. */
qn_status cuda_conv_kernel_build(const qn_request *r, qn_prepared *out);
qn_status cuda_conv_kernel_run(const qn_prepared *p, const qn_launch *launch);

/* out's state, of which grid, threads and shared are still to be said; NULL: no memory. */
cuda_conv_kernel *cuda_conv_kernel_begin(qn_prepared *out, const void *function, const void *parameters, size_t bytes);
void cuda_conv_kernel_pointer(cuda_conv_kernel *k, int32_t value, size_t at);
void cuda_conv_kernel_steps(cuda_conv_kernel *k, qn_prepared *out, const cuda_chain *chain, size_t at, size_t out_at);
void cuda_conv_kernel_parts(cuda_conv_kernel *k, qn_prepared *out, const cuda_conv_problem *c, int64_t parts, int64_t elements, size_t at);

/* In how many equal shares `most` blocks walk over tiles. */
static inline int64_t cuda_conv_shares(int64_t tiles, int64_t most) { return qn_ceil_div(tiles, qn_ceil_div(tiles, qn_max_i64(most, 1))); }
/* The same where each share leaves a part of dw's sum and workspace may be limited; 0: refused. */
int64_t cuda_conv_shares_of_sum(const qn_request *r, qn_prepared *out, int64_t tiles, int64_t most, int64_t elements);

/* What kernels want: refused else. channels_last: packed, aligned to 16 bytes. */
qn_status cuda_conv_wants_ampere(const qn_request *r, qn_prepared *out);
qn_status cuda_conv_wants_halves(const cuda_conv_problem *c, qn_prepared *out);
qn_status cuda_conv_wants_channels_last(const qn_value *v, const char *name, qn_prepared *out);
/* Reads the problem; refuses all but 16 bits with x and y in packed channels last, on sm_80 and up. */
qn_status cuda_conv_read_halves(cuda_conv_problem *c, const qn_request *r, qn_prepared *out);
/* f32 by 3 x 3 filters of one to four channels, one group, stride and dilation 1. */
qn_status cuda_conv_wants_narrow(const cuda_conv_problem *c, qn_prepared *out);

/* Rows of whole vectors of 16 bytes, of f32, each aligned? */
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
