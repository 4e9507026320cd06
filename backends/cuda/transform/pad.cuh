/* pad.cuh -- geometry shared by pad and its gradient: `in` is read with a border more or less than `out`, which is written and
 * has no gaps. */
#pragma once
#include "cuda_backend.h"
#include "kit/divisor.h"

enum { PAD_DIMS = 6 };

struct padding {
  const char *in;
  char    *out;
  int32_t  rank, mode;
  uint32_t out_dim[PAD_DIMS], in_dim[PAD_DIMS], before[PAD_DIMS];         /* innermost first; out is contiguous in this order */
  cuda_divisor by_out[PAD_DIMS];
  int64_t  in_stride[PAD_DIMS];           /* in bytes */
};

/* Fills the dims; false: more than PAD_DIMS remain after merging. */
static inline bool pad_fill(padding *p, const qn_padding *a, const qn_value *in, const qn_value *out)
{
  int esize = (int)qn_kit_bytes(out->dtype), order[QN_MAX_RANK], n = 0;   /* out's dims, largest stride first */
  p->mode = (int32_t)a->mode;
  for (int d = 0; d < out->rank; d++) {
    if (out->dim[d] == 1 && in->dim[d] == 1) continue;
    int at = n++;
    for (; at > 0 && out->stride[order[at - 1]] < out->stride[d]; at--) order[at] = order[at - 1];
    order[at] = d;
  }
  /* innermost first; a dim merges with the one inside if neither is padded and `in` is contiguous across them */
  for (int i = n - 1; i >= 0; i--) {
    int d = order[i], inner = p->rank - 1;
    if (p->rank && p->in_dim[inner] == p->out_dim[inner] && in->stride[d] * esize == p->in_stride[inner] * (int64_t)p->in_dim[inner] &&
        in->dim[d] == out->dim[d]) {
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

/* The index in 0..n-1 that output index `at` shows; -1: the pad value. */
static __host__ __device__ __forceinline__ int pad_shown(int mode, uint32_t at, uint32_t before, uint32_t n)
{
  int from = (int)(at - before);
  if (from >= 0 && from < (int)n) return from;
  if (mode == QN_PAD_REFLECT) return from < 0 ? -from : 2 * ((int)n - 1) - from;
  return mode == QN_PAD_REPLICATE ? (from < 0 ? 0 : (int)n - 1) : -1;
}

/* Byte offset in `in` for the outer dims from FIRST on; -1: pad value. */
template <int FIRST> __device__ __forceinline__ int64_t pad_source(const padding &p, uint32_t outer)
{
  int64_t offset = 0;
  bool inside = true;
#pragma unroll
  for (int d = FIRST; d < PAD_DIMS; d++)
    if (d < p.rank) {
      uint32_t j = outer;
      if (d + 1 < p.rank) outer = cuda_quotient(outer, p.by_out[d], &j);
      int from = pad_shown(p.mode, j, p.before[d], p.in_dim[d]);
      inside &= from >= 0;
      offset += from * p.in_stride[d];
    }
  return inside ? offset : -1;
}

/* Gradient: the k-th index of dy along dim d that shows index j of dx; *count: how many there are. */
__device__ __forceinline__ int pad_shows(const padding &p, int d, int j, int k, int *count)
{
  int n = (int)p.out_dim[d], before = (int)p.before[d], all = (int)p.in_dim[d], here = j + before;
  *count = 1;
  if (p.mode == QN_PAD_REPLICATE) {
    int first = j ? here : 0, last = j == n - 1 ? all - 1 : here;
    *count = last - first + 1;
    return first + k;
  }
  if (p.mode != QN_PAD_REFLECT) return here;
  int left = before - j, right = before + 2 * (n - 1) - j;
  bool mirrored = j > 0 && left >= 0;
  *count = 1 + mirrored + (j < n - 1 && right < all);
  return k == 0 ? here : k == 1 && mirrored ? left : right;
}

/* Gradient: byte offset of the k-th place of dy that shows this place of the dims from FIRST on; *count: how many there are. */
template <int FIRST> __device__ __forceinline__ int64_t pad_sources(const padding &p, uint32_t outer, int k, int *count)
{
  int64_t offset = 0;
  *count = 1;
#pragma unroll
  for (int d = FIRST; d < PAD_DIMS; d++)
    if (d < p.rank) {
      uint32_t j = outer;
      if (d + 1 < p.rank) outer = cuda_quotient(outer, p.by_out[d], &j);
      int n, from = pad_shows(p, d, (int)j, 0, &n);
      if (n > 1) {
        from = pad_shows(p, d, (int)j, k % n, &n);
        k /= n;
        *count *= n;
      }
      offset += from * p.in_stride[d];
    }
  return offset;
}

/* Indices once[0]..once[1]-1 of dx along dim d are shown by one index of dy each. */
static inline void pad_once(const padding &p, int d, int32_t once[2])
{
  const int32_t n = (int32_t)p.out_dim[d], before = (int32_t)p.before[d], after = (int32_t)p.in_dim[d] - n - before;
  once[0] = 0, once[1] = n;
  if (p.mode == QN_PAD_REFLECT) once[0] = before ? before + 1 : 0, once[1] = after ? n - 1 - after : n;
  if (p.mode == QN_PAD_REPLICATE) once[0] = before > 0, once[1] = n - (after > 0);
}
