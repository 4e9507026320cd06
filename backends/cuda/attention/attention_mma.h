/* attention_mma.h -- what the host (attention_mma.c) tells the kernels of attention_mma.cuh. */
#ifndef QN_CUDA_ATTENTION_MMA_H
#define QN_CUDA_ATTENTION_MMA_H
#include "attention_change.h"
#include "attention_gradient.h"
#include "kit/divisor.h"

typedef struct cuda_attention_many {
  const void *q, *k, *v;
  void      *y;
  float     *lse, *max;                   /* NULL: not wanted */
  const float *sink;                      /* NULL: none, as the rest */
  const void *q_lengths, *kv_lengths, *q_starts, *kv_starts, *pages;
  cuda_attention_change change;
  cuda_attention_spread blocks;
  float     *parts;                       /* workspace: each part's sums, maxima, divisors */
  uint32_t  *tickets;                     /* of each tile whose keys are split: parts that have ended */
  int64_t    q_stride[3], k_stride[3], v_stride[3], y_stride[3], lse_stride[3], max_stride[3];  /* sequences (pages), heads, rows */
  int64_t    sink_stride, q_lengths_stride, kv_lengths_stride, q_starts_stride, kv_starts_stride, pages_stride[2];
  int32_t    q_lengths_i64, kv_lengths_i64, q_starts_i64, kv_starts_i64, pages_i64;
  int32_t    batch, heads, group;         /* group: query heads that share a key head */
  int32_t    queries, keys, d, dv;        /* of a sequence; of all of them, where they are ragged */
  int32_t    left, right, top_left, y_f32, block_q, block_kv;
  int32_t    n_pages, page;               /* pages that exist, keys of one */
  int32_t    tiles, splits;               /* of a sequence's head, or if queries are ragged, of a head; of a tile's keys */
  cuda_attention_key seed, offset;
  uint32_t   threshold;                   /* of 2^16 draws, those that drop a weight */
  float      kept;                        /* the factor of weights that dropout keeps */
  cuda_divisor by_group, by_splits, by_page;
  float      unit;                        /* what a score is multiplied by for base 2: log2 e, or with scale where nothing is added */
} cuda_attention_many;

typedef struct cuda_attention_many_kernel {
  int32_t d, dv, bn, rows, threads, own, shared;            /* own: values need not be within keys */
  const void *plain, *any;                /* any: with what changes single scores */
} cuda_attention_many_kernel;
extern const cuda_attention_many_kernel cuda_attention_many_bf16[], cuda_attention_many_f16[],
                                        cuda_attention_many_f32[];        /* ended by d 0 */
/* Longer rows (attention_wide.cuh), by mma.sync and, on 9.0, by wgmma. */
extern const cuda_attention_many_kernel cuda_attention_wide_bf16[], cuda_attention_wide_f16[],
                                        cuda_attention_wide_wgmma_bf16[], cuda_attention_wide_wgmma_f16[];
enum { CUDA_ATTENTION_THREADS = 128, CUDA_ATTENTION_SPLITS = 64 };            /* at most */

/* Elements of a key and a value, keys of a block, rows of a tile: of two for the same elements the fewer rows first. */
#define CUDA_ATTENTION_MANY_SHAPES(X) X(64, 64, 16) X(64, 64, 64) X(128, 64, 16) X(128, 64, 64) X(256, 64, 16) X(256, 32, 64)
#define CUDA_ATTENTION_MANY_SHAPES_F32(X) X(64, 64, 64) X(128, 32, 64) X(256, 16, 64)
/* Keys of a block, stages, values of their own: what 163 KB of shared memory have room for, and 227. */
#define CUDA_ATTENTION_WIDE_SHAPES(X) X(32, 2, false) X(32, 1, true)
#define CUDA_ATTENTION_WIDE_WGMMA_SHAPES(X) X(64, 2, false) X(32, 2, true)
#endif
