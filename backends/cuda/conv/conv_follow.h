/* conv_follow.h -- the ops that follow a convolution, told to the product that computes it (conv_follow.c).
 *
 * A region of a matmul and pointwise ops, for part_prepare: the tensors are seen as [batch, group, window, filter], as the product's
 * result is. A normalization by given statistics becomes three ops on rows that the caller makes by cuda_chain_fold. */
#ifndef QN_CUDA_CONV_FOLLOW_H
#define QN_CUDA_CONV_FOLLOW_H
#include "program/chain.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_FOLLOW_NODES = 1 + CUDA_MAX_STEPS, CUDA_FOLLOW_VALUES = 4 + 2 * CUDA_MAX_STEPS };
enum { CUDA_FOLLOW_ROW = -4, CUDA_FOLLOW_NONE = -1 };       /* ROW + i: row i of the fold, i < 3 */

/* The alignment of what lies this many bytes further, or any multiple. */
static inline uint32_t cuda_aligned(uint32_t align, int64_t bytes)
{
  while (align > 1 && bytes % align) align /= 2;
  return align;
}

/* How the result lies: of a chunk, or of all. */
typedef struct cuda_follow_view {
  int64_t batch, groups, rows, filters;   /* rows: windows of a batch */
  int64_t windows;                        /* of an image */
  int32_t rank, out[3], outer;            /* of the result; windows along D, H, W of a whole image; the dim that chunks divide */
  bool    merged, by_image, by_row;       /* images in one batch; an address may be of any image, of any row */
} cuda_follow_view;

typedef struct cuda_follow {
  uint32_t n_nodes, n_values;
  qn_node  node[CUDA_FOLLOW_NODES];       /* the first, its ops, and the first values are the caller's */
  qn_value value[CUDA_FOLLOW_VALUES];
  int32_t  first[CUDA_FOLLOW_NODES][8], arg[CUDA_FOLLOW_NODES][4];
  uint32_t ops[CUDA_FOLLOW_NODES];        /* of the request that a prefix of nodes completes; 0: it ends within one */
  int32_t  at[CUDA_FOLLOW_VALUES];        /* value number in the request, or as above */
  int64_t  image[CUDA_FOLLOW_VALUES], row[CUDA_FOLLOW_VALUES];      /* bytes from an image, a row of windows, to the next */
  cuda_fold fold;
} cuda_follow;

/* Adds as many of r->op[1...] as follow the result one after another; y: its number in r and in f; bias: the convolution's, in r, or -1. */
void cuda_follow_add(cuda_follow *f, const qn_request *r, const cuda_follow_view *view, int32_t y, int32_t y_here, int32_t bias,
                     uint32_t most);
#ifdef __cplusplus
}
#endif
#endif
