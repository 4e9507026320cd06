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
#ifdef __CUDACC__
/* K<dtype, gates, sequences at once>::kernel() of a net. */
template <template <int, int, int> class K, int dtype, int GATES> const void *cuda_rnn_vector_kernel(int64_t n)
{
  return n == 1 ? K<dtype, GATES, 1>::kernel() : n == 4 ? K<dtype, GATES, 4>::kernel() : K<dtype, GATES, 8>::kernel();
}
template <template <int, int, int> class K, int dtype> const void *cuda_rnn_vector_kernel(int64_t gates, int64_t n)
{
  return gates == 4 ? cuda_rnn_vector_kernel<K, dtype, 4>(n) : gates == 3 ? cuda_rnn_vector_kernel<K, dtype, 3>(n)
                                                                          : cuda_rnn_vector_kernel<K, dtype, 1>(n);
}
template <template <int, int, int> class K> const void *cuda_rnn_vector_kernel(const cuda_rnn &q)
{
  const int64_t n = cuda_rnn_vector_at_once(q.batch);
  return q.dtype == QN_F32 ? cuda_rnn_vector_kernel<K, QN_F32>(q.gates, n)
       : q.dtype == QN_F16 ? cuda_rnn_vector_kernel<K, QN_F16>(q.gates, n) : cuda_rnn_vector_kernel<K, QN_BF16>(q.gates, n);
}
#endif
#endif
