/* elements.cuh -- shared by elements_direct.cu and elements_sorted.cu. */
#pragma once
#include "kit/direct.cuh"
#include "engines.h"

struct elements {
  tensor  x, y, indices, updates;
  int32_t axis, mode, bytes, named;       /* named: the dims of y that a row of indices names */
  int64_t count, rows;
  scalar  start, step;
};

#define FOR_EACH(i, n) \
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (n); i += (int64_t)gridDim.x * blockDim.x)

__device__ inline void copy_bits(const tensor &y, int64_t to, const tensor &x, int64_t from, int bytes)
{
  if (bytes == 8) ((uint64_t *)y.p)[to] = ((const uint64_t *)x.p)[from];
  else if (bytes == 4) ((uint32_t *)y.p)[to] = ((const uint32_t *)x.p)[from];
  else if (bytes == 2) ((uint16_t *)y.p)[to] = ((const uint16_t *)x.p)[from];
  else ((uint8_t *)y.p)[to] = ((const uint8_t *)x.p)[from];
}

__device__ __forceinline__ double join(int mode, double v, double u)
{
  switch (mode) {
  case QN_SCATTER_ADD: return v + u;
  case QN_SCATTER_MUL: return v * u;
  case QN_SCATTER_MAX: return v != v || v >= u ? v : u;
  default:             return v != v || v <= u ? v : u;
  }
}
__device__ __forceinline__ int64_t join(int mode, int64_t v, int64_t u)
{
  switch (mode) {
  case QN_SCATTER_ADD: return (int64_t)((uint64_t)v + (uint64_t)u);
  case QN_SCATTER_MUL: return (int64_t)((uint64_t)v * (uint64_t)u);
  case QN_SCATTER_MAX: return v > u ? v : u;
  default:             return v < u ? v : u;
  }
}
__device__ __forceinline__ void store_joined(const tensor &y, int64_t to, double v) { y.store(to, v); }
__device__ __forceinline__ void store_joined(const tensor &y, int64_t to, int64_t v) { element_store_wrapped(y.p, to, y.dtype, v); }

/* ---- host ------------------------------------------------------------------------------------------------- */

static inline elements scatter_of(const kept *k, const qn_launch *launch)          /* both ops' roles have the same numbers */
{
  const qn_scattering *a = (const qn_scattering *)k->attr;
  elements s = {};
  s.x = direct_tensor(k, launch, QN_ROLE_SCATTER_ELEMENTS_X, 0);
  s.y = direct_tensor(k, launch, QN_ROLE_SCATTER_ELEMENTS_Y, 0);
  s.indices = direct_tensor(k, launch, QN_ROLE_SCATTER_ELEMENTS_INDICES, 0);
  s.updates = direct_tensor(k, launch, QN_ROLE_SCATTER_ELEMENTS_UPDATES, 0);
  s.mode = (int32_t)a->mode;
  s.bytes = (int32_t)qn_kit_bytes(s.y.dtype);
  s.count = direct_elements(s.y);
  if (k->op == QN_OP_SCATTER_ND) {
    s.named = (int32_t)s.indices.dim[s.indices.rank - 1];
    s.rows = direct_elements(s.indices) / s.named;
  } else {
    s.axis = (int32_t)a->axis;
    s.rows = s.indices.dim[s.axis];
  }
  return s;
}
