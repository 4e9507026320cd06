/* conv_product.h -- delegates a batched f32 product to the fastest matmul engine that the demands allow. */
#ifndef QN_CUDA_CONV_PRODUCT_H
#define QN_CUDA_CONV_PRODUCT_H
#include "cuda_backend.h"

typedef struct cuda_product {             /* must stay in the engine's state: the part keeps pointers into it */
  qn_value value[3];                      /* a [batch, M, K], b [batch, K, N], y [batch, M, N] */
  qn_node  node;
  qn_part *part;
} cuda_product;

static inline qn_value cuda_product_matrix(int64_t batch, int64_t batch_stride, int64_t rows, int64_t row_stride, int64_t cols,
                                           int64_t col_stride, uint32_t align, bool written)
{
  return (qn_value){ .dtype = QN_F32,
                     .rank = 3,
                     .dim = { batch, rows, cols, 1, 1, 1, 1, 1 },
                     .stride = { batch_stride, row_stride, col_stride },
                     .align = align,
                     .flags = written ? QN_VALUE_ESCAPE : 0,
                     .producer = written ? 0 : -1,
                     .last_user = written ? -1 : 0,
                     .over = -1 };
}

/* Prepares the part for p->value. tf32: rounding to tf32 is allowed. False: no engine takes it. */
static inline bool cuda_product_prepare(cuda_product *p, const qn_request *r, bool tf32)
{
  static const int32_t first[] = { 0, 1, 2, 2, 2, 2, 2, 3 }, arg[] = { 0, 1, 2 };
  static const char *const engines[] = { NULL, "cuda/wgmma_3xtf32", "cuda/simt" };
  p->node = (qn_node){ .op = QN_OP_MATMUL, .family = QN_FAMILY_CONTRACTION, .n_roles = 7, .n_inputs = 6, .first = first, .arg = arg };
  qn_request part = { .struct_size = sizeof part, .instance = r->instance, .op = &p->node, .n_ops = 1, .n_values = 3, .value = p->value };
  for (int i = 0; i < (tf32 ? 1 : 3); i++) {
    if (r->host->part_prepare(r, &part, engines[i], &p->part)) continue;
    if (tf32 || r->host->part_answer(p->part)->numerics.accumulator != QN_ACC_TF32) return true;
    r->host->part_release(p->part);
    p->part = NULL;
  }
  return false;
}

/* release function of an engine whose state begins with a cuda_product. */
static inline void cuda_product_release(qn_prepared *p)
{
  const cuda_product *product = (const cuda_product *)p->state;
  if (product && product->part) cuda_host->part_release(product->part);
  cuda_release(p);
}
#endif
