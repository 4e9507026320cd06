/* pad.cuh -- what pad and its gradient share: the dims of a tensor that is read with a border more or less than of one that is
 * written without gaps, and vectors of 16 bytes that stand askew. */
#pragma once
#include "cuda_backend.h"
#include "divisor.h"

enum { PAD_DIMS = 6 };

struct padding {
  const char *in;
  char    *out;
  int32_t  rank, mode;
  uint32_t elements;                      /* of out */
  uint32_t out_dim[PAD_DIMS], in_dim[PAD_DIMS], before[PAD_DIMS];         /* innermost first; out's run on without gaps */
  cuda_divisor by_out[PAD_DIMS];
  int64_t  in_stride[PAD_DIMS], in_bytes; /* bytes; in_bytes: from its first to behind its last */
};

/* 16 bytes from p on, a multiple of E, as the two aligned vectors that hold them; the tensor goes on for 32 from p. */
template <int E> __device__ __forceinline__ uint4 load_askew(const char *p)
{
  uint32_t askew = (uint32_t)((uintptr_t)p & 15);
  const uint4 *at = (const uint4 *)(p - askew);
  uint4 a = at[0], b = askew ? at[1] : a;
  uint32_t w[8] = { a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w };
#pragma unroll
  for (int i = 0; i < 6; i++) w[i] = askew & 8 ? w[i + 2] : w[i];
  if (E < 8)
#pragma unroll
    for (int i = 0; i < 5; i++) w[i] = askew & 4 ? w[i + 1] : w[i];
  if (E < 4)
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = __funnelshift_r(w[i], w[i + 1], (askew & 3) * 8);
  return make_uint4(w[0], w[1], w[2], w[3]);
}
enum { ASKEW = 32 };

/* False: more dims than PAD_DIMS that do not merge. */
static inline bool pad_fill(padding *p, const qn_padding *a, const qn_value *in, const qn_value *out)
{
  int esize = (int)qn_kit_bytes(out->dtype), order[QN_MAX_RANK], n = 0;   /* out's dims, slowest first */
  p->mode = (int32_t)a->mode;
  p->elements = (uint32_t)qn_elements(out);
  p->in_bytes = qn_extent_bytes(in);
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
