/* select_lines.cuh -- the lines along an axis of x, y and indices, and the keys by which they are ranked. */
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
  int64_t  x_step, y_step, index_step;    /* along the axis */
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

/* ---- keys of top_k and sort, in element order (NaN last, -0 equals 0); inverted for the smallest ------------------ */

/* Elements of BYTES. Loaded raw, without branches, so that several are in flight, and made keys later. */
template <int BYTES> struct source;
template <> struct source<1> { typedef uint8_t raw; typedef uint32_t key; };
template <> struct source<2> { typedef uint16_t raw; typedef uint32_t key; };
template <> struct source<4> { typedef uint32_t raw; typedef uint32_t key; };
template <> struct source<8> { typedef uint64_t raw; typedef uint64_t key; };

template <int BYTES> __device__ __forceinline__ typename source<BYTES>::key key_from(const lines &s, typename source<BYTES>::raw raw)
{
  typename source<BYTES>::key key;
  if constexpr (BYTES == 8) {
    const uint64_t top = 1ull << 63;
    const double v = __longlong_as_double((int64_t)raw) + 0.0;          /* -0 becomes 0 */
    const uint64_t u = (uint64_t)__double_as_longlong(v);
    key = s.x_dtype == QN_I64 ? raw ^ top : v != v ? ~0ull : u & top ? ~u : u | top;
  } else if (s.x_dtype >= QN_I8) {        /* of 8 bits the lowest alone are in order too */
    key = BYTES == 1 && s.x_dtype == QN_I8 ? (uint32_t)(int32_t)(int8_t)raw ^ 0x80000080u : raw ^ 0x80000000u;
  } else {
    const float v = (BYTES == 4               ? __uint_as_float(raw)
                     : s.x_dtype == QN_BF16 ? bf16_to_float((uint16_t)raw)
                                            : f16_to_float((uint16_t)raw)) + 0.0f;
    const uint32_t u = __float_as_uint(v);
    key = v != v ? ~0u : u >> 31 ? ~u : u | 0x80000000u;
  }
  return s.smallest ? ~key : key;
}

__device__ __forceinline__ void put(const lines &s, int64_t from, int64_t to, int64_t number, uint32_t rank, uint32_t place)
{
  int64_t x = from + place * s.x_step, y = to + rank * s.y_step;
  switch (s.x_dtype) {
  case QN_F64: case QN_I64: ((uint64_t *)s.y)[y] = ((const uint64_t *)s.x)[x]; break;
  case QN_F32: case QN_I32: ((uint32_t *)s.y)[y] = ((const uint32_t *)s.x)[x]; break;
  case QN_F16: case QN_BF16: ((uint16_t *)s.y)[y] = ((const uint16_t *)s.x)[x]; break;
  default: ((uint8_t *)s.y)[y] = ((const uint8_t *)s.x)[x]; break;
  }
  if (!s.indices) return;
  if (s.wide) ((int64_t *)s.indices)[number + rank * s.index_step] = place;
  else ((int32_t *)s.indices)[number + rank * s.index_step] = (int32_t)place;
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct line_state { lines s; int32_t x, y, indices; };

/* Describes lines along `axis` of x, y and indices (if wanted); returns NULL, or the rule that is broken. */
static inline const char *lines_of(lines *s, const qn_value *x, const qn_value *y, const qn_value *indices, int axis)
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

static inline qn_status keep(qn_prepared *out, const lines *s, int32_t x, int32_t y, int32_t indices)
{
  line_state st = {};
  st.s = *s;
  st.x = x, st.y = y, st.indices = indices;
  return cuda_keep(out, &st, sizeof st);
}

/* The same of top_k's or sort's lines; sort is the n smallest or largest, and its roles have the same numbers. */
static inline const char *ranking_of(lines *s, const qn_request *r)
{
  const qn_value *x = cuda_value(r, QN_ROLE_TOP_K_X), *indices = cuda_value(r, QN_ROLE_TOP_K_INDICES);
  int64_t axis, k;
  *s = {};
  if (r->op[0].op == QN_OP_SORT) {
    const qn_sorting *a = (const qn_sorting *)r->op[0].attr;
    axis = a->axis, k = x->dim[axis], s->smallest = !a->descending;
  } else {
    const qn_ranking *a = (const qn_ranking *)r->op[0].attr;
    axis = a->axis, k = a->k, s->smallest = a->smallest != 0;
  }
  const char *why = lines_of(s, x, cuda_value(r, QN_ROLE_TOP_K_Y), indices, (int)axis);
  s->k = (uint32_t)k;
  return why;
}
