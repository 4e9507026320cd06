/* select_lines.cuh -- the lines along an axis of x, y and indices: how select_lines.cu and select_scan.cu describe them. */
#pragma once
#include "cuda_backend.h"
#include "engines.h"
#include "kit/vector.cuh"

enum { THREADS = 256, WARPS = THREADS / 32, MAX_DIMS = 7 };

struct lines {
  const void *x;
  void    *y, *indices;                   /* indices NULL: not wanted */
  uint32_t x_dtype, y_dtype, wide;        /* wide: i64 indices */
  int32_t  rank, smallest, exclusive, reverse;
  uint32_t count, n, k;                   /* lines, their length, k */
  uint32_t parts, part;                   /* parts of a line and their length */
  uint32_t lanes;                         /* a scan's threads of a line, or (columns) of lines side by side */
  void    *sums;                          /* workspace: sums of parts; for top_k their candidates */
  uint32_t dim[MAX_DIMS];                 /* other dims, innermost first */
  int64_t  x_stride[MAX_DIMS], y_stride[MAX_DIMS], index_stride[MAX_DIMS];
  int64_t  x_step, y_step, index_step;    /* along the axis; x's is 1 except in cumsum's columns */
};

__device__ __forceinline__ int64_t line_begin(const lines &s, uint32_t line, const int64_t *stride)
{
  int64_t offset = 0;
  for (int d = 0; d < s.rank; d++) {
    uint32_t q = d + 1 < s.rank ? line / s.dim[d] : 0;
    offset += (line - q * s.dim[d]) * stride[d];
    line = q;
  }
  return offset;
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct line_state { lines s; int32_t x, y, indices; };

/* Describes lines along `axis` of x, y and indices (if wanted); returns NULL, or the rule that is broken. */
static const char *lines_of(lines *s, const qn_value *x, const qn_value *y, const qn_value *indices, int axis)
{
  if (x->dim[axis] > INT32_MAX) return "lines shorter than 2^31";
  qn_nest nest = {};
  nest.n = 3;
  for (int d = 0; d < x->rank; d++) {
    if (d == axis) continue;
    nest.dim[nest.rank] = x->dim[d];
    nest.stride[0][nest.rank] = x->stride[d], nest.stride[1][nest.rank] = y->stride[d];
    nest.stride[2][nest.rank++] = indices ? indices->stride[d] : y->stride[d];
  }
  qn_nest_simplify(&nest);
  double count = 1;
  s->rank = nest.rank;
  for (int d = 0; d < nest.rank; d++) {
    int from = nest.rank - 1 - d;
    count *= (double)nest.dim[from];
    if (count > INT32_MAX) return "fewer than 2^31 lines";
    s->dim[d] = (uint32_t)nest.dim[from];
    s->x_stride[d] = nest.stride[0][from], s->y_stride[d] = nest.stride[1][from], s->index_stride[d] = nest.stride[2][from];
  }
  s->count = (uint32_t)count;
  s->n = (uint32_t)x->dim[axis];
  s->x_dtype = x->dtype, s->y_dtype = y->dtype;
  s->x_step = x->dim[axis] > 1 ? x->stride[axis] : 1;
  s->y_step = y->stride[axis];
  s->index_step = indices ? indices->stride[axis] : 0;
  s->wide = indices && indices->dtype == QN_I64;
  return nullptr;
}

static qn_status keep(qn_prepared *out, const lines *s, int32_t x, int32_t y, int32_t indices)
{
  line_state st = {};
  st.s = *s;
  st.x = x, st.y = y, st.indices = indices;
  return cuda_keep(out, &st, sizeof st);
}
