/* attention_mma_backward.h -- what the host (attention_mma_backward.c) tells the kernels of attention_mma_backward.cuh. */
#ifndef QN_CUDA_ATTENTION_MMA_BACKWARD_H
#define QN_CUDA_ATTENTION_MMA_BACKWARD_H
#include "cuda_backend.h"

enum { CUDA_ATTENTION_BLOCK = 64 };       /* queries or keys of a tile */

typedef struct cuda_attention_rows {      /* [B, heads, S, size], elements side by side */
  void    *p;
  int64_t  stride[3];
  int32_t  size, f32;                     /* f32: its elements are, else they are as q's */
} cuda_attention_rows;

typedef struct cuda_attention_key { const int64_t *p; int64_t value; } cuda_attention_key;      /* p NULL: value */

typedef struct cuda_attention_backward {
  cuda_attention_rows q, k, v, dy, y, dq, dk, dv;           /* dv.p NULL: v is the first elements of k, its gradient a part of dk */
  const float *lse, *dlse, *sink;         /* dlse, sink: or NULL */
  float      *dsink;
  float      *statistics;                 /* workspace [B, heads, padded][2]: lse log2 e, D */
  const void *q_lengths, *kv_lengths;     /* NULL: all are as long as the tensors */
  int64_t    lse_stride[3], dlse_stride[3], sink_stride, dsink_stride, q_lengths_stride, kv_lengths_stride;
  int32_t    batch, heads, group;         /* group: query heads that share a key head */
  int32_t    queries, keys, padded;       /* padded: queries, to whole blocks */
  int32_t    left, right;                 /* -1: no bound */
  int32_t    top_left, q_lengths_i64, kv_lengths_i64;
  int32_t    section[2];                  /* key heads, heads: whose tiles are taken together, so that what they read stays in L2 */
  float      scale, scale_log2;           /* of scores; times log2 e */
  /* What changes single scores. */
  const void    *bias;
  const uint8_t *mask, *blocks;
  const float   *slopes;
  int64_t    bias_stride[4], mask_stride[4], blocks_stride[4], slopes_stride[2];         /* 0: spread over this dim */
  int32_t    block_q, block_kv;
  uint32_t   bias_dtype, threshold;       /* threshold: of 2^16 draws, those that drop a weight */
  float      softcap, kept;               /* 0: no softcap; kept: the factor of weights that dropout keeps */
  cuda_attention_key seed, offset;
} cuda_attention_backward;

/* Kernels for up to d elements of a key and of a value. gradients: of queries, of keys; each also for changed scores. */
typedef struct cuda_attention_backward_kernels {
  int32_t d, shared[2];
  const void *statistics, *gradients[2][2], *sink;
} cuda_attention_backward_kernels;
extern const cuda_attention_backward_kernels cuda_attention_backward_bf16[], cuda_attention_backward_f16[];      /* by d; ended by d 0 */
#endif
