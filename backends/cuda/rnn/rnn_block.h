/* rnn_block.h -- what the host decides for the kernels of rnn_block.cu and rnn_block_backward.cu. */
#ifndef QN_CUDA_RNN_BLOCK_H
#define QN_CUDA_RNN_BLOCK_H
#include "rnn_problem.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Blocks: [direction][sequence]. */
typedef struct cuda_rnn_block {
  cuda_rnn net[2];                        /* of each direction */
  const void *weights[2];                 /* r; from row to row, from number to number: */
  int64_t  weights_row[2], weights_step[2];
  int32_t  whole;                         /* rows of weights begin aligned, in pieces of 4 numbers side by side */
} cuda_rnn_block;

/* What prepare decides. */
typedef struct cuda_rnn_alone {
  const void *kernel;
  int32_t threads, shared;
} cuda_rnn_alone;

/* Parts of the depth of a unit, each a lane's: 4 of up to 64 units, 2 of up to 128. */
enum { CUDA_RNN_BLOCK_FEW = 64, CUDA_RNN_BLOCK_MOST = 128, CUDA_RNN_BLOCK_AHEAD = 4, CUDA_RNN_BLOCK_KEPT = 40 };
extern const void *const cuda_rnn_block_backward[2][3];      /* [few or more units][tanh, relu; gru; lstm] */

/* Chooses a kernel, or refuses; adds numerics and the estimate of all layers to out's. */
qn_status cuda_rnn_block_plan(const qn_request *r, qn_prepared *out, const cuda_rnn_problem *p, cuda_rnn_alone *to);
/* All steps of a layer. */
qn_status cuda_rnn_block_run(const cuda_rnn_alone *how, const cuda_rnn net[2], const void *const weights[2], const int64_t weights_row[2],
                             const int64_t weights_step[2], const qn_launch *launch);

#ifdef __cplusplus
}
#endif
#endif
