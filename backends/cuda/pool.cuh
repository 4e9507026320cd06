/* pool.cuh -- what the pooling engines share: windows over up to three spatial dims in 32-bit arithmetic, and units of work. */
#pragma once
#include "cuda_backend.h"
#include "vector.cuh"

struct pool {
  const void *x, *dy;
  void    *y, *dx, *indices;
  uint32_t dtype, index_dtype;
  int32_t  average, include_pad;
  uint32_t n, c, units, groups, splits;   /* groups: of V channels; units: of work, for `splits` threads each */
  int32_t  band;                          /* outputs of a column that are one unit */
  int32_t  in[3], out[3], size[3], step[3], dilation[3], before[3], after[3];
  int64_t  x_stride[5], y_stride[5], dx_stride[5], index_stride[5];       /* N, C, spatial */
};

struct place { uint32_t n, c; int o[3]; };  /* of one unit: channels innermost (V > 1), or the innermost extent */

template <int V> __device__ __forceinline__ place place_of(const pool &p, uint32_t unit, const int32_t out[3])
{
  place at;
  uint32_t rest = unit;
  if (V > 1) {
    uint32_t q = rest / p.groups;
    at.c = (rest - q * p.groups) * V;
    rest = q;
  }
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    uint32_t q = out[d] == 1 ? rest : rest / out[d];
    at.o[d] = (int)(rest - q * out[d]);
    rest = q;
  }
  if (V == 1) {
    uint32_t q = rest / p.groups;
    at.c = rest - q * p.groups;
    rest = q;
  }
  at.n = rest;
  return at;
}

/* Of the window from `start` on: taps that count, along one dim. */
__device__ __forceinline__ int taps_of(const pool &p, int d, int start)
{
  int n = 0;
  if (p.dilation[d] == 1)
    return max(0, min(start + p.size[d], p.include_pad ? p.in[d] + p.after[d] : p.in[d]) - (p.include_pad ? start : max(start, 0)));
  for (int r = 0; r < p.size[d]; r++) {
    int at = start + r * p.dilation[d];
    n += p.include_pad ? at < p.in[d] + p.after[d] : at >= 0 && at < p.in[d];
  }
  return n;
}

/* ---- host -------------------------------------------------------------------------------------------------- */

static inline void pool_strides(const qn_value *v, int64_t *stride)
{
  for (int d = 0; d < v->rank; d++) stride[d < 2 ? d : d + 5 - v->rank] = v->stride[d];
}

/* Do vectors of v channels lie at whole multiples of their size? */
static inline bool pool_steps(const int64_t *stride, int v)
{
  for (int d = 0; d < 5; d++)
    if (d != 1 && stride[d] % v) return false;
  return true;
}

/* The geometry of a pooling of x to y; false: too large. */
static inline bool pool_fill(pool *p, const qn_node *op, const qn_value *x, const qn_value *y)
{
  const qn_pool *attr = (const qn_pool *)op->attr;
  memset(p, 0, sizeof *p);
  if (x->dim[0] > INT32_MAX || x->dim[1] > INT32_MAX) return false;
  p->dtype = x->dtype;
  p->n = (uint32_t)x->dim[0];
  p->c = (uint32_t)x->dim[1];
  p->average = op->op == QN_OP_POOL_AVERAGE || op->op == QN_OP_POOL_AVERAGE_BACKWARD;
  p->include_pad = attr->include_pad != 0;
  int missing = 5 - x->rank;
  for (int d = 0; d < 3; d++) {
    int from = d - missing;
    bool here = from >= 0;
    int64_t in = here ? x->dim[2 + from] : 1, output = here ? y->dim[2 + from] : 1;
    int64_t size = !here ? 1 : attr->window[from] ? attr->window[from] : in;
    int64_t step = !here ? 1 : attr->stride[from] ? attr->stride[from] : size, dilation = here ? attr->dilation[from] : 1;
    int64_t before = here ? attr->pad_before[from] : 0, after = here ? attr->pad_after[from] : 0;
    if (in + before + after > 1 << 29 || size * dilation > 1 << 29 || step > 1 << 29 || output * step > 1 << 30) return false;
    p->in[d] = (int32_t)in, p->out[d] = (int32_t)output, p->size[d] = (int32_t)size, p->step[d] = (int32_t)step;
    p->dilation[d] = (int32_t)dilation, p->before[d] = (int32_t)before, p->after[d] = (int32_t)after;
  }
  pool_strides(x, p->x_stride);
  pool_strides(y, p->y_stride);
  return true;
}

/* One unit for v channels of each place; false: too many. */
static inline bool pool_units(pool *p, int v, const int32_t places[3])
{
  p->groups = (uint32_t)qn_ceil_div(p->c, v);
  double units = (double)p->n * p->groups * places[0] * places[1] * places[2];
  p->units = units > 4e9 ? 0 : (uint32_t)units;
  return units <= 4e9;
}
