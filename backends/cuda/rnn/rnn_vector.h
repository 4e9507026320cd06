/* rnn_vector.h -- what the host tells the kernel of rnn_vector.cu. */
#ifndef QN_CUDA_RNN_VECTOR_H
#define QN_CUDA_RNN_VECTOR_H
#include "rnn_problem.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_rnn_vector {
  cuda_rnn net[2];                        /* of each direction; h: [2][b][hidden], of which a step reads one and writes the other */
  const void *weights[2];                 /* r */
  int64_t  weights_row[2];
  int32_t  groups;                        /* of sequences that a warp takes at once */
} cuda_rnn_vector;

/* Refuses, or adds the estimate of all layers to out's. */
qn_status cuda_rnn_vector_plan(const qn_request *r, qn_prepared *out, const cuda_rnn_problem *p);
/* Step s of a layer in all its directions. */
qn_status cuda_rnn_vector_step(cuda_rnn_vector *p, int64_t directions, int64_t s, void *stream);

#ifdef __cplusplus
}
#endif
#endif
