/* rnn_grid.h -- what the host (rnn_grid.c) tells the kernels of rnn_grid.cuh. */
#ifndef QN_CUDA_RNN_GRID_H
#define QN_CUDA_RNN_GRID_H
#include "rnn_problem.h"

/* Blocks: [direction][share of the batch][share of the units]; those of one share of the batch wait for one another. */
typedef struct cuda_rnn_grid {
  cuda_rnn  net[2];                       /* of each direction */
  const void *weights[2];                 /* [line][depth]: r; of the gradient r turned, [unit][gate row] */
  void     *exchange[2];                  /* [2][batch][depth] what all blocks read: h, or the step's slopes; batch rounded up */
  uint32_t *met;                          /* of each direction and share of the batch */
  int64_t   weights_row[2];
  int32_t   depth, row;                   /* state, or gate rows; a row of the exchange, of mma as long as its blocks, zeros after depth */
  int32_t   unit_shift, unit_blocks;      /* units of a block: 1 << unit_shift */
  int32_t   batch_share, batch_blocks;    /* sequences of a block, a multiple of 8 */
  int32_t   groups;                       /* of warps, each with lines of its own (SIMT) */
  int32_t   blocks;                       /* of 32 numbers along the depth, of each warp (by mma) */
  int32_t   ring;                         /* 4 or 2: copies under way at once */
  int32_t   sums_at, slots_at;            /* in shared memory, in floats: behind weights and copies; behind sums */
} cuda_rnn_grid;

typedef struct cuda_rnn_grid_kernel {
  int32_t lines, depth;                   /* lines of weights that a block (SIMT: a group of warps) keeps, the most numbers of each */
  int32_t pieces, simt;                   /* pieces: of 16 bytes that a thread copies at a time */
  int32_t laid;                           /* of mma's weights what lies in shared memory, in floats */
  int32_t columns;                        /* wgmma: the most sequences; else 0 */
  const void *forward, *backward;         /* one of them; NULL: the other */
} cuda_rnn_grid_kernel;
#ifdef __cplusplus
extern "C" {
#endif
extern const cuda_rnn_grid_kernel cuda_rnn_grid_f16[], cuda_rnn_grid_bf16[], cuda_rnn_grid_f32[],
                                  cuda_rnn_grid_wgmma_f16[], cuda_rnn_grid_wgmma_bf16[];            /* ended by lines 0 */
#ifdef __cplusplus
}
#endif
enum { CUDA_RNN_GRID_THREADS = 256, CUDA_RNN_GRID_SLOTS = 7 };

/* Shared memory: weights that registers have no room for, copies, sums of each warp (a pitch that keeps reads of 8 units of 4 sequences
 * apart), slots of each unit and sequence, h, c, biases, lengths. With wgmma: weights, a step's h or the sums made of it, slots ... */
QN_EITHER_SIDE int32_t cuda_rnn_grid_pitch(int32_t share) { return share + 4; }
static inline int64_t cuda_rnn_grid_shared(cuda_rnn_grid *g, const cuda_rnn_grid_kernel *k, int32_t gates)
{
  const int64_t units = 1 << g->unit_shift, share = g->batch_share, items = share * units, pitch = cuda_rnn_grid_pitch((int32_t)share);
  const int64_t copies = k->columns ? k->lines * (int64_t)k->depth / 2 : k->laid + 4 * (int64_t)g->ring * k->pieces * CUDA_RNN_GRID_THREADS;
  const int64_t sums = k->columns ? qn_max_i64(k->columns * (int64_t)k->depth / 2, 2 * k->lines * pitch) : 8 * k->lines * pitch;
  g->sums_at = (int32_t)copies, g->slots_at = (int32_t)(copies + sums);
  return 4 * (copies + sums + (CUDA_RNN_GRID_SLOTS + 2) * items + 2 * gates * units + share);
}

/* What prepare decides: the kernel, how the work is cut, workspace. */
typedef struct cuda_rnn_walk {
  cuda_rnn_grid grid;                     /* all but nets and addresses */
  const void *kernel;
  uint64_t exchange[2];                   /* places in workspace */
  int32_t  blocks, shared;
} cuda_rnn_walk;

#ifdef __cplusplus
extern "C" {
#endif
/* Chooses a kernel, or refuses; adds workspace, counters, numerics and the estimate of all layers to out's. */
qn_status cuda_rnn_grid_plan(const qn_request *r, qn_prepared *out, const cuda_rnn_problem *p, cuda_rnn_walk *walk);
/* All steps of a layer. */
qn_status cuda_rnn_grid_run(const cuda_rnn_walk *walk, const cuda_rnn net[2], const void *const weights[2], const int64_t weights_row[2],
                            const qn_launch *launch);
#ifdef __cplusplus
}
#endif
#endif
