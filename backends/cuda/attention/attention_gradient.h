/* attention_gradient.h -- what engines of attention's gradient tell their kernels, and how they read it from a request. */
#ifndef QN_CUDA_ATTENTION_GRADIENT_H
#define QN_CUDA_ATTENTION_GRADIENT_H
#include "cuda_backend.h"

enum { CUDA_ATTENTION_BLOCK = 64 };       /* queries or keys of a tile */

typedef struct cuda_attention_rows {      /* [B, heads, S, size], elements side by side */
  void    *p;
  int64_t  stride[3];
  int32_t  size, f32;                     /* f32: its elements are, else they are as q's */
} cuda_attention_rows;

/* Dropout's seed and offset. p NULL: value. Where a launch finds one: index -1: absent, which is 0. */
typedef struct cuda_attention_key { const int64_t *p; int64_t value; } cuda_attention_key;
typedef struct cuda_attention_key_request { int32_t index; bool host; uint32_t dtype; } cuda_attention_key_request;
cuda_attention_key_request cuda_attention_key_read(const qn_request *r, uint32_t role);
cuda_attention_key cuda_attention_key_at(cuda_attention_key_request of, const qn_launch *launch);

typedef struct cuda_attention_gradient {
  cuda_attention_rows q, k, v, dy, y, dq, dk, dv;           /* dv.p NULL: v is the first elements of k, its gradient a part of dk */
  const float *lse, *dlse, *sink;         /* dlse, sink: or NULL */
  float      *dsink;
  float      *statistics;                 /* workspace [B, heads, padded / 64][2][64]: lse log2 e, D; of ragged queries B is 1 */
  float      *sums;                       /* workspace [B, heads, padded, sums_row] of dq in an engine's order; sums_row 0: none */
  uint32_t   *turns;                      /* workspace, zeros; NULL: none */
  float      *parts;                      /* workspace: sums of dk and dv where several blocks share the heads of a group, or of dbias */
  const void *q_lengths, *kv_lengths;     /* NULL: all are as long as the tensors */
  const void *q_starts, *kv_starts;       /* NULL: not ragged */
  int64_t    lse_stride[3], dlse_stride[3], sink_stride, dsink_stride;
  int64_t    q_lengths_stride, kv_lengths_stride, q_starts_stride, kv_starts_stride;
  int32_t    batch, heads, group;         /* batch: sequences; group: query heads that share a key head */
  int32_t    share, shares;               /* of a group's heads: those that one block of keys adds up; blocks that have some */
  int32_t    queries, keys, padded;       /* of a sequence, or of all if ragged; padded: queries, each sequence's to whole tiles */
  int32_t    left, right;                 /* -1: no bound */
  int32_t    top_left, q_lengths_i64, kv_lengths_i64, q_starts_i64, kv_starts_i64, sums_row, n_turns;
  int32_t    section[2];                  /* key heads, heads: whose tiles are taken together, so that what they read stays in L2 */
  float      scale, scale_log2;           /* of scores; times log2 e */
  void      *dbias;                       /* as bias, but for what is spread: dbias_dim 1, and the sum over it */
  int64_t    dbias_stride[4];
  int32_t    dbias_dim[4], dbias_parts;   /* parts: blocks that share a tile's sum, in `parts` [elements of dbias][dbias_parts] */
  /* What changes single scores. */
  const void    *bias;
  const uint8_t *mask, *blocks;
  const float   *slopes;
  int64_t    bias_stride[4], mask_stride[4], blocks_stride[4], slopes_stride[2];         /* 0: spread over this dim */
  int32_t    block_q, block_kv;
  uint32_t   bias_dtype, dbias_dtype, threshold;            /* threshold: of 2^16 draws, those that drop a weight */
  float      softcap, kept;               /* 0: no softcap; kept: the factor of weights that dropout keeps */
  cuda_attention_key seed, offset;
} cuda_attention_gradient;

/* The gradient's without addresses, and where a launch finds them. */
enum { CUDA_ATTENTION_ROWS_READ = 8, CUDA_ATTENTION_DV = 7,          /* DV: its place in rows; places in pointers */
       CUDA_ATTENTION_BIAS = 6, CUDA_ATTENTION_BLOCKS = 8, CUDA_ATTENTION_SLOPES = 9, CUDA_ATTENTION_DBIAS = 12, CUDA_ATTENTION_POINTERS };
typedef struct cuda_attention_gradient_request {
  cuda_attention_gradient a;
  int32_t  rows[CUDA_ATTENTION_ROWS_READ], pointers[CUDA_ATTENTION_POINTERS];   /* indices of values; -1: absent */
  bool     changed, ragged[2];            /* changed: something changes single scores; ragged: queries, keys */
  cuda_attention_key_request seed, offset;
} cuda_attention_gradient_request;

/* bf16, f16 or f32 rows of whole 8 elements, up to `most` elements of a key and of a value. `tile`: queries of a tile; `keys`: keys of
 * one. Else refuses. */
qn_status cuda_attention_gradient_read(const qn_request *r, int64_t most, int64_t tile, int64_t keys, cuda_attention_gradient_request *to,
                                       qn_prepared *out);
void cuda_attention_gradient_addresses(const cuda_attention_gradient_request *from, const qn_launch *launch, cuda_attention_gradient *a);
/* Rows of statistics. */
int64_t cuda_attention_gradient_statistics(const cuda_attention_gradient_request *of);
/* Tiles of queries (0) or of keys (1). Of ragged ones: room for each sequence's last, which is not whole. */
int64_t cuda_attention_gradient_tiles(const cuda_attention_gradient_request *of, int which, int64_t tile);
/* Rows that a tile visits on the other side, on average. */
double cuda_attention_gradient_visits(const cuda_attention_gradient_request *of, int which);
qn_status cuda_attention_gradient_launch(const void *kernel, uint32_t grid, uint32_t threads, int32_t shared, cuda_attention_gradient *a,
                                         void *stream);
#endif
