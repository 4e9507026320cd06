/* rnn_wavefront.h -- what the host (rnn_wavefront.c) tells the kernels of rnn_wavefront.cuh. */
#ifndef QN_CUDA_RNN_WAVEFRONT_H
#define QN_CUDA_RNN_WAVEFRONT_H
#include "rnn_problem.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Tiles: of a share of the batch, of a step, [chunk][sequence][64 numbers], the 8 pieces of 16 bytes of a row moved as wgmma reads them. */
enum { CUDA_RNN_FRONT_LAYERS = 4, CUDA_RNN_FRONT_SHARE = 64, CUDA_RNN_FRONT_TILE = 64 * 128, CUDA_RNN_FRONT_THREADS = 384 };

typedef struct cuda_rnn_front_layer {
  cuda_rnn net;
  const void *weights[2];                 /* w, r (of the gradient: w of the layer above) */
  int64_t  row[2], column[2];             /* their strides, in elements */
  const void *inputs;                     /* tiles: of x, of the layer below (of the gradient: slopes of the layer above); NULL: none */
  void    *states, *passed;               /* tiles: h (slopes by h) of each step; what the next layer takes, NULL: the same */
  int32_t  input_chunks, follows;         /* follows: inputs are made in this launch, by the layer before it in the list */
} cuda_rnn_front_layer;

/* Blocks: [layer][share of the batch][share of the units]. */
typedef struct cuda_rnn_front {
  cuda_rnn_front_layer layer[CUDA_RNN_FRONT_LAYERS];
  uint32_t *met;                          /* [layer][share], a line of 128 bytes each, then the blocks that have left */
  const void *zeros;                      /* a tile */
  void     *partial;                      /* of the gradient: sums on their way to other blocks; 0 before a launch */
  int32_t  layers, shares, unit_blocks, chunks, slots;       /* chunks: of states of a step; slots: steps of all tiles */
} cuda_rnn_front;

typedef struct cuda_rnn_front_kernel {
  int32_t  depth, shared;                 /* the most numbers of a layer's states or inputs; bytes of shared memory */
  const void *run;
} cuda_rnn_front_kernel;
extern const cuda_rnn_front_kernel cuda_rnn_front_forward_f16[], cuda_rnn_front_forward_bf16[], cuda_rnn_front_backward_f16[],
                                   cuda_rnn_front_backward_bf16[];       /* ended by depth 0 */
extern const int64_t cuda_rnn_front_partial;                /* bytes of `partial` of a block */
/* x as tiles of slots 1, 2, ..., in the order of steps. */
qn_status cuda_rnn_front_lay(const cuda_rnn *net, void *tiles, int32_t chunks, int32_t shares, int32_t slots, void *stream);

/* What prepare decides. */
typedef struct cuda_rnn_front_plan {
  const cuda_rnn_front_kernel *kernel;
  bool     apart;                         /* a launch has one layer, in as many directions as go at once: see front_run_layer */
  int32_t  at_once, shares, unit_blocks, chunks, input_chunks, slots;
  int64_t  cleared;                       /* bytes from zeros on: a tile, of the gradient partial as well */
  uint64_t inputs, zeros, states[CUDA_RNN_FRONT_LAYERS + 1], passed[CUDA_RNN_FRONT_LAYERS + 1];      /* places in workspace */
} cuda_rnn_front_plan;

/* Chooses a kernel, or refuses; adds workspace, counters, numerics and the estimate of all layers to out's. */
qn_status cuda_rnn_front_prepare(const qn_request *r, qn_prepared *out, const cuda_rnn_problem *p, cuda_rnn_front_plan *plan);
/* n layers at once, from the given one upwards, of the gradient downwards. */
qn_status cuda_rnn_front_run(const cuda_rnn_front_plan *plan, const cuda_rnn_problem *p, const qn_launch *launch, int64_t from, int32_t n,
                             const cuda_rnn *net);
/* Of the gradient, where plan says apart: all directions of a layer, to which products over all places give what it takes. */
qn_status cuda_rnn_front_run_layer(const cuda_rnn_front_plan *plan, const cuda_rnn_problem *p, const qn_launch *launch,
                                   const cuda_rnn *net);

#ifdef __cplusplus
}
#endif
#endif
