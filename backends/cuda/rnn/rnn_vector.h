/* rnn_vector.h -- what the host tells the kernels of rnn_vector.cu and rnn_vector_backward.cu. */
#ifndef QN_CUDA_RNN_VECTOR_H
#define QN_CUDA_RNN_VECTOR_H
#include "rnn_problem.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_rnn_vector {
  cuda_rnn net[2];                        /* of each direction; two of h, of the gradient of `step`: a step reads one, writes the other */
  const void *weights[2];                 /* r; of the gradient turned, [unit][row] */
  int64_t  weights_row[2];
  int32_t  groups;                        /* of sequences that a warp takes at once */
} cuda_rnn_vector;

/* Refuses, or adds the estimate of all layers to out's. */
qn_status cuda_rnn_vector_plan(const qn_request *r, qn_prepared *out, const cuda_rnn_problem *p);
/* Step s of a layer in all its directions. */
qn_status cuda_rnn_vector_step(cuda_rnn_vector *p, int64_t directions, int64_t s, void *stream);
qn_status cuda_rnn_vector_back(cuda_rnn_vector *p, int64_t directions, int64_t s, void *stream);     /* s -1: gradients by first states */

/* Sequences that a warp takes at once. */
static inline int64_t cuda_rnn_vector_at_once(int64_t batch) { return batch == 1 ? 1 : batch <= 4 ? 4 : 8; }

#ifdef __cplusplus
}
#endif
#endif
