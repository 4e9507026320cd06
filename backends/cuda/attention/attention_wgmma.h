/* attention_wgmma.h -- what the host (attention_wgmma.c) tells the kernels of attention_wgmma.cuh. */
#ifndef QN_CUDA_ATTENTION_WGMMA_H
#define QN_CUDA_ATTENTION_WGMMA_H
#include "attention_change.h"

typedef struct cuda_attention {
  CUtensorMap q, k, v;                    /* [D, S, heads, B] */
  CUtensorMap bias;                       /* of kernels that add tiles of it: [keys, queries, heads or 1, B or 1] */
  void       *y;
  float      *lse, *max;                  /* NULL: not wanted */
  const float *sink;                      /* NULL: none */
  const void *q_lengths, *kv_lengths;     /* NULL: all are as long as the tensors */
  uint32_t   *counter;                    /* next tile; blocks that have ended */
  /* The same memory as the maps', for rows that are computed again one by one. */
  const uint16_t *q_rows, *k_rows, *v_rows;
  int64_t    q_stride[3], k_stride[3], v_stride[3], y_stride[3], lse_stride[3], max_stride[3];     /* of sequences, heads, rows */
  int64_t    sink_stride, q_lengths_stride, kv_lengths_stride;
  int32_t    batch, heads, group;         /* group: query heads that share a key head */
  int32_t    queries, keys, d, dv;
  int32_t    left, right;                 /* -1: no bound */
  int32_t    top_left, y_f32, q_lengths_i64, kv_lengths_i64;
  int32_t    ahead;                       /* fetch into L2 what the next tile begins with */
  int32_t    tiles_m, section;            /* section: heads whose tiles are taken together, so that their keys stay in L2 */
  uint32_t   tiles;
  float      scale, scale_log2;           /* of scores, 1 where they are changed by more than a mask; times log2 e */
  cuda_attention_change change;
  float      unit, by_unit;               /* of terms of keys: what queries have, what biases are multiplied by */
  /* Ragged: batch is that of queries' tensor, 1 if they are, and tiles_m counts those of all sequences. NULL: not ragged. */
  const void *q_starts, *kv_starts;
  int64_t    q_starts_stride, kv_starts_stride;
  int32_t    q_starts_i64, kv_starts_i64, sequences;
} cuda_attention;

typedef struct cuda_attention_kernel {
  const char *tile;
  int32_t d, dv, bm, bn, threads, shared;
  const void *function, *ragged;          /* ragged, NULL: a kernel that changes scores */
} cuda_attention_kernel;
#ifdef __cplusplus
extern "C" {
#endif
extern const cuda_attention_kernel cuda_attention_bf16[], cuda_attention_f16[],          /* by d, then dv; ended by d 0 */
                                   cuda_attention_changed_bf16[], cuda_attention_changed_f16[],
                                   cuda_attention_tiles_bf16[], cuda_attention_tiles_f16[],
                                   cuda_attention_terms_bf16[], cuda_attention_terms_f16[];
/* The map of a tensor [B, heads, S, D] by boxes of `rows` and 64 elements, at an address that run replaces. */
qn_status cuda_attention_map(const cuda_driver *driver, CUtensorMap *map, const qn_value *v, int rows);
#ifdef __cplusplus
}
#endif

/* What the kernels are made for, smallest first: queries of a tile, keys of a block; elements of a key, of a value; stages of keys and
 * values; buffers of q. */
#define CUDA_ATTENTION_SHAPES(X) \
  X(192, 128, 64, 64, 3, 1) X(128, 128, 64, 64, 3, 2) X(128, 128, 96, 96, 2, 2) \
  X(128, 128, 128, 128, 2, 2) X(128, 176, 128, 128, 2, 1) X(128, 128, 192, 128, 2, 1) X(128, 80, 256, 256, 2, 1)
/* Those that change single scores, whose keys of a block are whole pieces. */
#define CUDA_ATTENTION_CHANGED_SHAPES(X) X(128, 128, 64, 64, 3, 2) X(128, 128, 128, 128, 2, 2) X(128, 64, 256, 256, 2, 1)
/* Those that add tiles of biases. */
#define CUDA_ATTENTION_TILES_SHAPES(X) \
  X(192, 128, 64, 64, 3, 1) X(128, 128, 64, 64, 3, 2) X(128, 128, 128, 128, 2, 2) X(128, 64, 256, 256, 2, 1)
/* Those whose scores have a term of each key. */
#define CUDA_ATTENTION_TERMS_SHAPES(X) \
  X(192, 128, 64, 64, 3, 1) X(128, 128, 64, 64, 3, 2) X(128, 128, 128, 128, 2, 2) X(128, 64, 256, 256, 2, 1)
#endif
