/* rnn_cluster.h -- what the host decides for the kernels of rnn_cluster.cu. */
#ifndef QN_CUDA_RNN_CLUSTER_H
#define QN_CUDA_RNN_CLUSTER_H
#include "rnn_problem.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_rnn_gathering {
  const void *kernel;
  int32_t  parts, share;                  /* blocks of a cluster; its sequences */
  int32_t  blocks, threads, shared;
} cuda_rnn_gathering;

/* Chooses a kernel, or refuses; adds numerics and the estimate of all layers to out's. */
qn_status cuda_rnn_cluster_plan(const qn_request *r, qn_prepared *out, const cuda_rnn_problem *p, cuda_rnn_gathering *to);
/* All steps of a layer. weights: r of each direction, by elements from row to row and from number to number. */
qn_status cuda_rnn_cluster_run(const cuda_rnn_gathering *how, const cuda_rnn net[2], const void *const weights[2],
                               const int64_t weights_row[2], const int64_t weights_step[2], const qn_launch *launch);

#ifdef __cplusplus
}
#endif
#endif
