/* chain.h -- reads the chain of pointwise ops behind a contraction off a request (chain.c), for steps.h.
 *
 * Behind a convolution it may hold normalization by given statistics, folded: (v + less) factor + shift, three rows that chain_fold.cu
 * makes anew in each run, in workspace, before the convolution. The mean goes first, as the formula has it: where a sum is near it,
 * v factor + addend would keep the rounding of both products. */
#ifndef QN_CUDA_CHAIN_H
#define QN_CUDA_CHAIN_H
#include "cuda_backend.h"
#include "steps.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Each tensor has one element for each channel. */
enum { CUDA_FOLD_BIAS, CUDA_FOLD_MEAN, CUDA_FOLD_VAR, CUDA_FOLD_SCALE, CUDA_FOLD_SHIFT, CUDA_FOLD_TENSORS };
typedef struct cuda_fold {
  int32_t  value[CUDA_FOLD_TENSORS];      /* of the request; -1: absent */
  uint32_t dtype[CUDA_FOLD_TENSORS];
  int64_t  stride[CUDA_FOLD_TENSORS];     /* from channel to channel */
  int32_t  channels;                      /* 0: nothing is folded */
  int32_t  less;                          /* the operand of that row; the next two are factor and shift */
  float    eps;
} cuda_fold;

typedef struct cuda_chain {
  cuda_steps steps;                       /* operands' p and host scalars are filled in at launch, by chain_bind */
  cuda_fold  fold;
  int32_t    value[CUDA_MAX_OPERANDS];    /* each operand's value of the request; -1: a row of the fold's */
  uint32_t   dtype[CUDA_MAX_OPERANDS];    /* of the host scalars */
  uint8_t    host[CUDA_MAX_OPERANDS];
  int32_t    out;                         /* the value that the chain ends in */
  uint32_t   n_ops;                       /* taken, the anchor included */
} cuda_chain;

/* The output as the kernel sees it, and how operands may lie. */
enum {
  CUDA_BY_DIMS,                           /* dim_of[i] is the dim of y that stride[i] of an operand steps along, -1: none (a merged
                                             dim is named by its innermost) */
  CUDA_CHANNELS_LAST,                     /* of a convolution's packed output rows are pixels, columns channels; an operand lies
                                             alike or is one row */
  CUDA_ALIKE                              /* an operand lies as y does, or is a scalar; element `at` is named as (row, col) of rows
                                             of CUDA_ALIKE_ROW */
};
enum { CUDA_ALIKE_ROW = 1 << 24 };
typedef struct cuda_out_dims { int32_t dim_of[4], lies; } cuda_out_dims;

void cuda_chain_begin(cuda_chain *c, int32_t out);
/* Its place among the operands; -1: no room, or a dtype that steps do not read. */
int  cuda_chain_operand(cuda_chain *c, const qn_request *r, int32_t value, const cuda_out_dims *dims);
/* Begins with a convolution's bias [K], a row along columns; bias: its value, -1: none. */
qn_status cuda_chain_begin_conv(cuda_chain *c, const qn_request *r, int32_t out, int32_t bias, qn_prepared *p);
bool cuda_chain_step(cuda_chain *c, uint32_t op, int operand, bool reversed, float alpha, float beta);     /* false: no room */
/* Takes as many of r->op[1...] as go on from c->out one after the other. */
void cuda_chain_follow(cuda_chain *c, const qn_request *r, const cuda_out_dims *dims);
/* No more than a bias for each column, then the fold's factor and (the next operand) shift, then relu? Then the plain epilogue takes
 * them: the operands, -1 for none. */
bool cuda_chain_column_relu(const cuda_chain *c, int32_t *column, int32_t *factor, int32_t *relu);
/* Takes from the front of a chain over alike operands the addition of a tensor of this dtype in whole aligned vectors, and relu:
 * the tensor's value, or -1. */
int32_t cuda_chain_second(cuda_chain *c, const qn_request *r, uint32_t dtype, bool *relu);
void cuda_chain_bind(cuda_steps *steps, const cuda_chain *c, void *const *ptr);

/* What a row says that folds, so that the planner offers it; what a run of it needs of workspace, and does in the place of bind:
 *   less = bias - mean      factor = scale / sqrt(var + eps) */
extern const uint32_t cuda_chain_also[];
static inline int64_t cuda_fold_pitch(const cuda_fold *f) { return qn_round_up(f->channels, 64); }        /* from row to row */
static inline uint64_t cuda_chain_bytes(const cuda_chain *c) { return (uint64_t)cuda_fold_pitch(&c->fold) * 3 * sizeof(float); }
qn_status cuda_chain_start(cuda_steps *steps, const cuda_chain *c, const qn_launch *launch, void *rows);
qn_status cuda_chain_fold(const cuda_fold *f, void *const *ptr, float *rows, void *stream);
#ifdef __cplusplus
}
#endif
#endif
