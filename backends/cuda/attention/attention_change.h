/* attention_change.h -- what changes single scores: t = softcap(scale q k') + bias - slope |distance|, or -Inf where a mask is false. */
#ifndef QN_CUDA_ATTENTION_CHANGE_H
#define QN_CUDA_ATTENTION_CHANGE_H
#include "cuda_backend.h"

/* A tensor that broadcasts over sequences, heads, queries, keys: strides are 0 there. p NULL: there is none. */
typedef struct cuda_attention_spread { const void *p; int64_t stride[4]; uint32_t dtype; } cuda_attention_spread;

typedef struct cuda_attention_change {
  cuda_attention_spread bias, mask;
  const float *slopes;                    /* NULL: none */
  int64_t    slopes_stride[2];            /* of sequences, heads */
  int32_t    bias_pieces, mask_pieces;    /* eight keys may be loaded at once */
  int32_t    valued;                      /* finite scores change: by more than a mask */
  float      scale, softcap;
} cuda_attention_change;

static inline void cuda_attention_spread_read(const qn_request *r, int32_t value, cuda_attention_spread *to)
{
  if (value < 0) return;
  to->dtype = r->value[value].dtype;
  for (int i = 0; i < 4; i++) to->stride[i] = r->value[value].dim[i] > 1 ? r->value[value].stride[i] : 0;
}
/* Its keys lie side by side, and each eighth of them is aligned to eight. */
static inline int32_t cuda_attention_in_pieces(const qn_request *r, int32_t value, const cuda_attention_spread *t, uint32_t size)
{
  return value >= 0 && t->stride[3] == 1 && t->stride[0] % 8 == 0 && t->stride[1] % 8 == 0 && t->stride[2] % 8 == 0 &&
         r->value[value].align >= 8 * size;
}
/* value: its index, -1: absent. keys: those of a sequence; 0: of ragged ones, which begin anywhere in their rows. */
static inline void cuda_attention_change_read(const qn_request *r, int32_t bias, int32_t mask, int32_t slopes, float softcap, float scale,
                                              int64_t keys, cuda_attention_change *to)
{
  cuda_attention_spread_read(r, bias, &to->bias), cuda_attention_spread_read(r, mask, &to->mask);
  to->bias_pieces = keys && keys % 8 == 0 && to->bias.dtype != QN_F32 && cuda_attention_in_pieces(r, bias, &to->bias, 2);
  to->mask_pieces = keys && keys % 8 == 0 && cuda_attention_in_pieces(r, mask, &to->mask, 1);
  if (slopes >= 0) {
    const qn_value *v = &r->value[slopes];
    to->slopes_stride[0] = v->rank == 2 && v->dim[0] > 1 ? v->stride[0] : 0, to->slopes_stride[1] = v->stride[v->rank - 1];
  }
  to->softcap = softcap, to->scale = scale, to->valued = bias >= 0 || slopes >= 0 || softcap > 0;
}
#endif
