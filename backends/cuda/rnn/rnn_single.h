/* rnn_single.h -- what the host decides for the kernels of rnn_single.cu and rnn_single_mma.cu. */
#ifndef QN_CUDA_RNN_SINGLE_H
#define QN_CUDA_RNN_SINGLE_H
#include "rnn_problem.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_rnn_single {
  cuda_rnn net;
  const void *x, *w, *r;                  /* x: as the layer takes it */
  int64_t x_row, w_row, r_row;            /* elements */
} cuda_rnn_single;

/* Of 16 bits on compute capability 8.0 and up; terms of a sum, inputs and units, at most so many: Tensor Cores truncate running sums. */
enum { CUDA_RNN_SINGLE_MMA_TERMS = 8 * 32768 };
void cuda_rnn_single_mma(const cuda_rnn_single *p, void *stream);

#ifdef __cplusplus
}
#endif
#endif
