/* chain.h -- reads the chain of pointwise ops that follows a contraction from a request (chain.c), for steps.h.
 *
 * Behind a convolution the chain may include one normalization by given statistics, folded into (v + less) factor + shift: three
 * rows that chain_fold.cu recomputes in workspace in each run, before the convolution. The mean is subtracted first, as in the
 * formula: where a sum is near the mean, v factor + addend would keep the rounding errors of both products. */
#ifndef QN_CUDA_CHAIN_H
#define QN_CUDA_CHAIN_H
#include "cuda_backend.h"
#include "steps.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Tensors with one element per channel each. */
enum { CUDA_FOLD_BIAS, CUDA_FOLD_MEAN, CUDA_FOLD_VAR, CUDA_FOLD_SCALE, CUDA_FOLD_SHIFT, CUDA_FOLD_TENSORS };
typedef struct cuda_fold {
  int32_t  value[CUDA_FOLD_TENSORS];      /* value indices in the request; -1: absent */
  uint32_t dtype[CUDA_FOLD_TENSORS];
  int64_t  stride[CUDA_FOLD_TENSORS];     /* between channels */
  int32_t  channels;                      /* 0: no fold */
  int32_t  less;                          /* index of the operand with the row `less`; the next two are factor and shift */
  float    eps;
} cuda_fold;

typedef struct cuda_chain {
  cuda_steps steps;                       /* operands' p and host scalars are filled in at launch, by cuda_chain_bind */
  cuda_fold  fold;
  int32_t    value[CUDA_MAX_OPERANDS];    /* each operand's value index in the request; -1: a row of the fold */
  uint32_t   dtype[CUDA_MAX_OPERANDS];    /* of host scalars */
  uint8_t    host[CUDA_MAX_OPERANDS];
  int32_t    out;                         /* index of the value that the chain ends in */
  uint32_t   n_ops;                       /* ops absorbed, including the contraction itself */
} cuda_chain;

/* How the kernel addresses the output, which decides the layouts that operands may have. */
enum {
  /* an operand's stride[i] steps along dim dim_of[i] of y, -1: none (a merged dim is named by its innermost) */
  CUDA_BY_DIMS,
  /* a convolution's packed output: rows are pixels, columns channels; an operand has the same layout or is one row */
  CUDA_CHANNELS_LAST,
  /* an operand has y's layout or is a scalar; element `at` is (row, col) of rows of CUDA_ALIKE_ROW */
  CUDA_ALIKE
};
enum { CUDA_ALIKE_ROW = 1 << 24 };
typedef struct cuda_out_dims { int32_t dim_of[4], lies; } cuda_out_dims;

void cuda_chain_begin(cuda_chain *c, int32_t out);
/* Adds an operand and returns its index; -1: no room, or a dtype that steps cannot read. */
int  cuda_chain_operand(cuda_chain *c, const qn_request *r, int32_t value, const cuda_out_dims *dims);
/* Begins with a convolution's bias [K], one row along columns; bias: its value index, -1: none. */
qn_status cuda_chain_begin_conv(cuda_chain *c, const qn_request *r, int32_t out, int32_t bias, qn_prepared *p);
bool cuda_chain_step(cuda_chain *c, uint32_t op, int operand, bool reversed, float alpha, float beta);     /* false: no room */
/* Absorbs as many of r->op[1...] as follow c->out one after another. */
void cuda_chain_follow(cuda_chain *c, const qn_request *r, const cuda_out_dims *dims);
/* True if the chain is at most: an operand per column, the fold's factor and (the next operand) shift, relu. The plain epilogue
 * then applies them; outputs are operand indices, -1 for none. */
bool cuda_chain_column_relu(const cuda_chain *c, int32_t *column, int32_t *factor, int32_t *relu);
/* Takes an addition of a tensor of this dtype, in whole aligned vectors, and a relu from the front of a chain over alike
 * operands; returns the tensor's value index, or -1. */
int32_t cuda_chain_second(cuda_chain *c, const qn_request *r, uint32_t dtype, bool *relu);
void cuda_chain_bind(cuda_steps *steps, const cuda_chain *c, void *const *ptr);

/* Folding: the pattern of an engine's row by which the planner offers the norm, the workspace a run needs, and its first
 * launch, which replaces cuda_chain_bind:
 *   less = bias - mean      factor = scale / sqrt(var + eps) */
extern const qn_pattern cuda_chain_pattern;
static inline int64_t cuda_fold_pitch(const cuda_fold *f) { return qn_round_up(f->channels, 64); }        /* elements from row to row */
static inline uint64_t cuda_chain_bytes(const cuda_chain *c) { return (uint64_t)cuda_fold_pitch(&c->fold) * 3 * sizeof(float); }
qn_status cuda_chain_start(cuda_steps *steps, const cuda_chain *c, const qn_launch *launch, void *rows);
qn_status cuda_chain_fold(const cuda_fold *f, void *const *ptr, float *rows, void *stream);
/* The fold of a normalization of x, with the bias that it absorbs (-1: none); false: there is none. */
bool cuda_fold_read(cuda_fold *f, const qn_request *r, const qn_node *norm, int32_t x, int32_t bias);
#ifdef __cplusplus
}
#endif
#endif
