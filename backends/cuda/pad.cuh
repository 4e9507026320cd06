/* pad.cuh -- what pad and its gradient share: the dims of a tensor that is read with a border more or less than of one that is
 * written without gaps. */
#pragma once
#include "cuda_backend.h"
#include "divisor.h"

enum { PAD_DIMS = 6 };

struct padding {
  const char *in;
  char    *out;
  int32_t  rank, mode;
  uint32_t out_dim[PAD_DIMS], in_dim[PAD_DIMS], before[PAD_DIMS];         /* innermost first; out's run on without gaps */
  cuda_divisor by_out[PAD_DIMS];
  int64_t  in_stride[PAD_DIMS];           /* bytes */
};

/* False: more dims than PAD_DIMS that do not merge. */
static inline bool pad_fill(padding *p, const qn_padding *a, const qn_value *in, const qn_value *out)
{
  int esize = (int)qn_kit_bytes(out->dtype), order[QN_MAX_RANK], n = 0;   /* out's dims, slowest first */
  p->mode = (int32_t)a->mode;
  for (int d = 0; d < out->rank; d++) {
    if (out->dim[d] == 1 && in->dim[d] == 1) continue;
    int at = n++;
    for (; at > 0 && out->stride[order[at - 1]] < out->stride[d]; at--) order[at] = order[at - 1];
    order[at] = d;
  }
  for (int i = n - 1; i >= 0; i--) {      /* innermost first; a dim joins the one inside it if neither is padded and in runs on */
    int d = order[i], inner = p->rank - 1;
    if (p->rank && p->in_dim[inner] == p->out_dim[inner] && in->stride[d] * esize == p->in_stride[inner] * (int64_t)p->in_dim[inner] && in->dim[d] == out->dim[d]) {
      p->in_dim[inner] *= (uint32_t)in->dim[d];
      p->out_dim[inner] *= (uint32_t)out->dim[d];
      continue;
    }
    if (p->rank == PAD_DIMS) return false;
    p->in_dim[p->rank] = (uint32_t)in->dim[d], p->out_dim[p->rank] = (uint32_t)out->dim[d], p->before[p->rank] = (uint32_t)a->pad_before[d];
    p->in_stride[p->rank++] = in->stride[d] * esize;
  }
  if (!p->rank) p->rank = 1, p->in_dim[0] = p->out_dim[0] = 1, p->in_stride[0] = esize;
  for (int d = 0; d < p->rank; d++) p->by_out[d] = cuda_divide_by(p->out_dim[d]);
  return true;
}
