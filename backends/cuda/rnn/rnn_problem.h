/* rnn_problem.h -- recurrent networks as the engines that go step by step see them: what the kernels of rnn_steps.cu are told of one
 * layer and direction, and the host's part that forward and gradient share (rnn_problem.c). */
#ifndef QN_CUDA_RNN_PROBLEM_H
#define QN_CUDA_RNN_PROBLEM_H
#include "cuda_backend.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- one layer and direction ------------------------------------------------------------------------- */

typedef struct cuda_rnn_tensor { void *p; int64_t stride[4]; uint32_t dtype; } cuda_rnn_tensor;        /* p NULL: absent */
typedef struct cuda_rnn_key { const int64_t *p; int64_t value; } cuda_rnn_key;                        /* p NULL: value */

/* A place is a time and a sequence, t batch + b. Workspace is packed, in x's dtype, or in that of sums: f32, f64 for f64. */
typedef struct cuda_rnn {
  uint32_t dtype;                         /* of x */
  int32_t  cell, before, reversed, projects, gradient;
  int32_t  early;                         /* kernels of a step wait for what they read: they may be launched while it is made */
  int64_t  steps, batch, inputs, hidden, state, gates, rows, kept, width;   /* inputs: of this layer; rows: gates times hidden */
  int64_t  layer, first;                  /* first: of this direction's states in a row of `width` */
  int64_t  h_row;                         /* of h: from one sequence's state to the next's */
  double   clip, dropout;
  cuda_rnn_key    seed, offset;
  cuda_rnn_tensor lengths, h0, c0;        /* [batch], [batch, i] */
  cuda_rnn_tensor ht, ct;                 /* of the gradient: dht, dct */
  cuda_rnn_tensor below, out;             /* [t, b, i]: what the layer takes (x, inner) and gives (inner, y), before dropout */
  cuda_rnn_tensor gates_at, cells_at;     /* [t, b, i] */
  cuda_rnn_tensor bw, br;                 /* [row] */
  cuda_rnn_tensor dout, dh0, dc0;         /* gradients: by what it gives [t, b, i] */
  /* workspace of sums */
  void *sums;                             /* [place][row] w x */
  void *product, *inner;                  /* [b][row] of a step, [b][hidden] */
  void *c;                                /* [b][hidden]; of the gradient dc */
  void *direct;                           /* [b][state]: what reaches h beside r (gru) */
  /* workspace of x's dtype */
  void *h, *full, *reset;                 /* [b][h_row], [b][hidden]: before projection, r h */
  void *next;                             /* [place][width]: what the next layer takes; NULL: none */
  void *slope_x, *slope_h, *slope_state;  /* [place][row], likewise, [place][state]; slope_h NULL: slope_x's */
  void *step;                             /* [b][row] slopes of a step, [b][state] */
} cuda_rnn;

/* Kernels (rnn_steps.cu). s: the step; stage 1: what follows the product by the reset state, or by projection. */
qn_status cuda_rnn_early(int32_t *early);
qn_status cuda_rnn_begin(const cuda_rnn *p, void *stream);
qn_status cuda_rnn_reset(const cuda_rnn *p, int64_t s, void *stream);
qn_status cuda_rnn_cell(const cuda_rnn *p, int64_t s, void *stream);
qn_status cuda_rnn_project(const cuda_rnn *p, int64_t s, void *stream);
qn_status cuda_rnn_end(const cuda_rnn *p, void *stream);

qn_status cuda_rnn_slopes_state(const cuda_rnn *p, int64_t s, void *stream);
qn_status cuda_rnn_slopes(const cuda_rnn *p, int64_t s, void *stream);
qn_status cuda_rnn_slopes_reset(const cuda_rnn *p, int64_t s, void *stream);
qn_status cuda_rnn_slopes_end(const cuda_rnn *p, void *stream);
enum { CUDA_RNN_BELOW, CUDA_RNN_BEFORE, CUDA_RNN_BEFORE_RESET, CUDA_RNN_FULL };
qn_status cuda_rnn_lay(const cuda_rnn *p, int what, void *to, void *stream);           /* a factor of the weights' gradients, [place][..] */
/* to [t, b, i] = the sum of one or two of [place][inputs], in the dtype of sums, dropout undone; 0 beyond a sequence's end */
qn_status cuda_rnn_finish(const cuda_rnn *p, const void *one, const void *other, const cuda_rnn_tensor *to, void *stream);

/* rnn_steps_four.cu: cell and slopes where cuda_rnn_fours says so. */
bool      cuda_rnn_fours(const cuda_rnn *p);
qn_status cuda_rnn_cell_four(const cuda_rnn *p, int64_t s, void *stream);
qn_status cuda_rnn_slopes_four(const cuda_rnn *p, int64_t s, void *stream);

/* ---- the host's part --------------------------------------------------------------------------------- */

typedef struct cuda_rnn_operand {
  int32_t  value;                         /* -1: absent */
  uint32_t dtype, align;
  int64_t  dim[4], stride[4];
} cuda_rnn_operand;

enum { RNN_X, RNN_Y, RNN_H0, RNN_C0, RNN_LENGTHS, RNN_SEED, RNN_OFFSET, RNN_HT, RNN_CT, RNN_GATES, RNN_CELLS, RNN_INNER,
       RNN_DY, RNN_DX, RNN_DH0, RNN_DC0, RNN_SINGLES };
enum { RNN_W, RNN_R, RNN_PROJECTION, RNN_BW, RNN_BR, RNN_DW, RNN_DR, RNN_DPROJECTION, RNN_DBW, RNN_DBR, RNN_LISTS };

/* What all delegated products of an engine need, and how they are computed. */
typedef struct cuda_rnn_problem {
  cuda_rnn net;                           /* all but what differs from layer to layer, and addresses */
  int64_t  directions, layers, inputs, n; /* n: layers times directions; inputs: of the first layer */
  uint32_t sum, host_keys;                /* sum: dtype of sums; host_keys: bit 0 seed, bit 1 offset */
  int32_t  parts_each;
  qn_part **part;                         /* [n][parts_each] */
  uint64_t scratch, scratch_bytes;        /* the products' own workspace: place, bytes */
  cuda_rnn_operand one[RNN_SINGLES], *list[RNN_LISTS];     /* [n] */
} cuda_rnn_problem;

/* Makes the engine's state, which begins with a problem, and reads the request into it. Refuses what has no work. */
qn_status cuda_rnn_read(const qn_request *r, qn_prepared *out, size_t state_bytes, int32_t parts_each);
/* The net of a layer and direction at this launch; workspace is left NULL. */
cuda_rnn  cuda_rnn_net(const cuda_rnn_problem *p, const qn_launch *launch, int64_t layer, int64_t direction);
qn_status cuda_rnn_build(const qn_request *r, qn_prepared *out);
void      cuda_rnn_release(qn_prepared *out);

/* A matrix, or (rank 3) one for each step. */
qn_value cuda_rnn_matrix(uint32_t dtype, uint32_t align, int64_t rows, int64_t row, int64_t columns, int64_t column);
qn_value cuda_rnn_places(const cuda_rnn_problem *p, const cuda_rnn_operand *o, int64_t columns);        /* [t, b, i] as rows of places */
static inline qn_value cuda_rnn_weight(const cuda_rnn_operand *w, bool turned)      /* turned: as [columns, rows] */
{
  return cuda_rnn_matrix(w->dtype, w->align, w->dim[turned], w->stride[turned], w->dim[!turned], w->stride[!turned]);
}
/* Prepares y = a b, which will run `times` times; adds its demands and numerics to out's. */
qn_status cuda_rnn_product(const qn_request *r, qn_prepared *out, cuda_rnn_problem *p, qn_part **part, qn_value a, qn_value b, qn_value y,
                           double times);
qn_status cuda_rnn_copy(const qn_request *r, qn_prepared *out, cuda_rnn_problem *p, qn_part **part, qn_value x, qn_value y);
/* y [1, column] = x's rows added up. */
qn_status cuda_rnn_add_rows(const qn_request *r, qn_prepared *out, cuda_rnn_problem *p, qn_part **part, qn_value x, qn_value y);
qn_status cuda_rnn_multiply(const cuda_rnn_problem *p, const qn_launch *launch, int64_t k, int which, const void *a, const void *b,
                            void *y);
/* Places `n` elements in workspace; at last what the products need. */
uint64_t cuda_rnn_take(qn_prepared *out, int64_t n, uint32_t dtype);
static inline void cuda_rnn_take_scratch(qn_prepared *out, cuda_rnn_problem *p)
{
  p->scratch = out->workspace;
  out->workspace += p->scratch_bytes;
}
/* The alignment of what lies this many bytes further. */
static inline uint32_t cuda_rnn_aligned(uint32_t align, int64_t bytes)
{
  while (align > 1 && bytes % align) align /= 2;
  return align;
}

#ifdef __cplusplus
}
#endif
#endif
