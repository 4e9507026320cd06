/* rnn_cluster.h -- what the host decides for the kernels of rnn_cluster.cu. */
#ifndef QN_CUDA_RNN_CLUSTER_H
#define QN_CUDA_RNN_CLUSTER_H
#include "rnn_problem.h"
#ifdef __cplusplus
extern "C" {
#endif

/* What a kernel is told. */
typedef struct cuda_rnn_cluster {
  cuda_rnn net[2];                        /* of each direction */
  const void *weights[2];
  int64_t  weights_row[2], weights_step[2];
  int32_t  parts, share, shares;          /* blocks of a cluster; its sequences; shares of the batch */
  int32_t  depth, whole;                  /* units of all blocks; weights in aligned pieces of 16 bytes */
} cuda_rnn_cluster;
extern const void *const cuda_rnn_cluster_f32;       /* 32 units a block, to 8 sequences (rnn_cluster_f32.cu) */

/* Of f32: barriers, h of 8 sequences twice, sums of 16 lines a warp. */
#define CUDA_RNN_CLUSTER_F32_SHARED(depth) (16 + 4 * (2 * 8 * (int64_t)(depth) + 8 * 16 * 8))

typedef struct cuda_rnn_gathering {
  const void *kernel;
  int32_t  parts, share;                  /* blocks of a cluster; its sequences */
  int32_t  blocks, threads, shared, depth;
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
