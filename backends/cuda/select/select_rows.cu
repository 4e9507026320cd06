/* select_rows.cu -- gather and one_hot by rows.
 *
 *   gather        a thread copies units of 16 (8, 4, 2, 1) bytes of y from the row that the index names
 *   one_hot       a thread writes 16 bytes of y, which may span several rows
 *
 * Dims are merged as far as x, y and the indices allow. Refused: more than 6 dims that remain. */
#include "cuda_backend.h"
#include "engines.h"
#include "kit/divisor.h"
#include "kit/offsets.cuh"

enum { MAX_DIMS = 6, UNITS = 4, THREADS = 256 };

__device__ __forceinline__ int64_t index_at(const void *indices, bool wide, int64_t at)
{
  return wide ? ((const int64_t *)indices)[at] : ((const int32_t *)indices)[at];
}

/* ---- gather ------------------------------------------------------------------------------------------------ */

struct gathering {
  const char *x;
  char    *y;
  const void *indices;
  int32_t  rank, wide;                    /* wide: i64 indices */
  uint32_t units, dim[MAX_DIMS];          /* innermost in y first; dim[0] counts units */
  int64_t  x_stride[MAX_DIMS], y_stride[MAX_DIMS], index_stride[MAX_DIMS];      /* in bytes, bytes, elements */
  int64_t  length, row_bytes;             /* x's dim along the axis; bytes between its rows */
};

template <class T> __global__ void __launch_bounds__(THREADS) gather_rows(const __grid_constant__ gathering g)
{
  T value[UNITS];
  int64_t to[UNITS];
#pragma unroll
  for (int u = 0; u < UNITS; u++) {
    uint32_t unit = (blockIdx.x * UNITS + u) * THREADS + threadIdx.x, rest = unit;
    int64_t from = 0, place = 0;
    to[u] = 0;
    value[u] = T();
#pragma unroll
    for (int d = 0; d < MAX_DIMS; d++)
      if (d < g.rank) {
        uint32_t q = d + 1 < g.rank ? rest / g.dim[d] : 0, i = rest - q * g.dim[d];
        from += i * g.x_stride[d];
        to[u] += i * g.y_stride[d];
        place += i * g.index_stride[d];
        rest = q;
      }
    if (unit >= g.units) continue;
    int64_t index = index_at(g.indices, g.wide, place);
    if (index >= 0 && index < g.length) value[u] = *(const T *)(g.x + from + index * g.row_bytes);
  }
#pragma unroll
  for (int u = 0; u < UNITS; u++)
    if ((blockIdx.x * UNITS + u) * THREADS + threadIdx.x < g.units) *(T *)(g.y + to[u]) = value[u];
}

struct gather_state { gathering g; int32_t x, y, indices, bytes; };

static qn_status gather_prepare(const qn_request *r, qn_prepared *out)
{
  const qn_value *x = cuda_value(r, QN_ROLE_GATHER_X), *y = cuda_value(r, QN_ROLE_GATHER_Y),
                 *indices = cuda_value(r, QN_ROLE_GATHER_INDICES);
  int axis = (int)((const qn_axis *)r->op[0].attr)->axis, esize = (int)qn_kit_bytes(y->dtype);
  qn_nest nest = {};
  qn_nest_begin(&nest, y);
  nest.n = 3;
  for (int d = 0; d < y->rank; d++) {
    bool named = d >= axis && d < axis + indices->rank;
    nest.stride[1][d] = named ? 0 : x->stride[d < axis ? d : d - indices->rank + 1];
    nest.stride[2][d] = named ? indices->stride[d - axis] : 0;
  }
  qn_nest_simplify(&nest);
  if (nest.rank > MAX_DIMS) return qn_refuse(out, "at most 6 dims that do not merge", "y", "6", "%d", nest.rank);
  gathering g = {};
  g.rank = nest.rank ? nest.rank : 1;
  g.wide = indices->dtype == QN_I64;
  g.length = x->dim[axis];
  g.row_bytes = x->stride[axis] * esize;
  int64_t across = nest.rank ? nest.dim[nest.rank - 1] : 1;          /* elements of a run, then its units */
  for (int d = 0; d < nest.rank; d++) {
    int from = nest.rank - 1 - d;
    g.dim[d] = (uint32_t)nest.dim[from];          /* checked below */
    g.y_stride[d] = nest.stride[0][from] * esize;
    g.x_stride[d] = nest.stride[1][from] * esize;
    g.index_stride[d] = nest.stride[2][from];
  }
  int64_t unit = esize, align = x->align < y->align ? x->align : y->align;
  bool runs = nest.rank && g.x_stride[0] == esize && g.y_stride[0] == esize;
  while (runs && unit < 16 && 2 * unit <= align) {
    int64_t sum = across * esize | g.row_bytes;
    for (int d = 1; d < g.rank; d++) sum |= g.x_stride[d] | g.y_stride[d];
    if (sum % (2 * unit)) break;
    unit *= 2;
  }
  if (runs) {
    across = across * esize / unit;
    g.x_stride[0] = g.y_stride[0] = unit;
  }
  g.dim[0] = (uint32_t)across;
  double units = (double)across;
  for (int d = 1; d < nest.rank; d++) units *= (double)nest.dim[nest.rank - 1 - d];
  if (units > 4e9) return qn_refuse(out, "fewer than 2^32 units", "y", "4e9", "%g", units);
  g.units = (uint32_t)units;
  gather_state st = {};
  const qn_node *op = &r->op[0];
  st.g = g;
  st.x = qn_role(op, QN_ROLE_GATHER_X), st.y = qn_role(op, QN_ROLE_GATHER_Y), st.indices = qn_role(op, QN_ROLE_GATHER_INDICES);
  st.bytes = (int32_t)unit;
  return cuda_keep(out, &st, sizeof st);
}

template <class T> static void gather_launch(const gathering &g, cudaStream_t stream)
{
  gather_rows<T><<<(unsigned)qn_ceil_div(g.units, THREADS * UNITS), THREADS, 0, stream>>>(g);
}

static qn_status gather_run(const qn_prepared *p, const qn_launch *launch)
{
  const gather_state *st = (const gather_state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  gathering g = st->g;
  g.x = (const char *)launch->ptr[st->x];
  g.y = (char *)launch->ptr[st->y];
  g.indices = launch->ptr[st->indices];
  switch (st->bytes) {
  case 16: gather_launch<uint4>(g, stream); break;
  case 8:  gather_launch<uint64_t>(g, stream); break;
  case 4:  gather_launch<uint32_t>(g, stream); break;
  case 2:  gather_launch<uint16_t>(g, stream); break;
  default: gather_launch<uint8_t>(g, stream); break;
  }
  return cuda_check(cudaGetLastError(), "gather_rows");
}

/* ---- one_hot ---------------------------------------------------------------------------------------------------- */

struct encoding {
  char    *y;
  const void *indices;
  int32_t  wide, rank;
  uint32_t elements, units, depth, dim[MAX_DIMS];         /* rows, innermost dim first */
  cuda_divisor by_depth;
  int64_t  stride[MAX_DIMS];              /* of indices */
  uint64_t on, off;
};

template <class T> __global__ void __launch_bounds__(THREADS) one_hot_units(const __grid_constant__ encoding e)
{
  constexpr int V = 16 / sizeof(T);
  int64_t index[UNITS];
  uint32_t row[UNITS], k[UNITS];
#pragma unroll
  for (int u = 0; u < UNITS; u++) {
    uint32_t unit = (blockIdx.x * UNITS + u) * THREADS + threadIdx.x;
    row[u] = cuda_quotient(min(unit, e.units - 1) * V, e.by_depth, &k[u]);
    index[u] = index_at(e.indices, e.wide, offset_of(row[u], e.rank, e.dim, e.stride));
  }
#pragma unroll
  for (int u = 0; u < UNITS; u++) {
    union { uint4 whole; T element[V]; } out;
    uint32_t unit = (blockIdx.x * UNITS + u) * THREADS + threadIdx.x, first = unit * V, n = min(e.elements - first, (uint32_t)V);
    if (unit >= e.units) return;
    int hit = index[u] >= k[u] && index[u] < min(k[u] + V, e.depth) ? (int)(index[u] - k[u]) : -1;
#pragma unroll
    for (int i = 0; i < V; i++) out.element[i] = (T)(i == hit ? e.on : e.off);
    for (uint32_t at = e.depth - k[u]; at < n; at += e.depth) {         /* rows that begin inside this unit */
      int64_t to = index_at(e.indices, e.wide, offset_of(++row[u], e.rank, e.dim, e.stride));
      hit = to >= 0 && to < e.depth ? (int)(to + at < V ? to + at : V) : V;
#pragma unroll
      for (int i = 0; i < V; i++)
        if (i == hit) out.element[i] = (T)e.on;
    }
    if (n == V) *(uint4 *)(e.y + (int64_t)first * sizeof(T)) = out.whole;
    else for (int i = 0; i < V; i++)
      if (i < (int)n) *(T *)(e.y + (int64_t)(first + i) * sizeof(T)) = out.element[i];
  }
}

struct one_hot_state { encoding e; int32_t y, indices, bytes; };

static qn_status one_hot_prepare(const qn_request *r, qn_prepared *out)
{
  const qn_one_hot_encoding *a = (const qn_one_hot_encoding *)r->op[0].attr;
  const qn_value *y = cuda_value(r, QN_ROLE_ONE_HOT_Y), *indices = cuda_value(r, QN_ROLE_ONE_HOT_INDICES);
  int esize = (int)qn_kit_bytes(y->dtype);
  if (!qn_is_dense(y) || y->align < 16 || (a->depth > 1 && y->stride[a->axis] != 1))
    return qn_refuse(out, "16 bytes are stored at once", "y", "no gaps, rows along the axis, 16-byte alignment", "%s", "");
  if (qn_elements(y) > INT32_MAX)
    return qn_refuse(out, "elements are counted in 31 bits", "y", "below 2^31", "%lld", (long long)qn_elements(y));
  encoding e = {};
  qn_nest nest = {};
  nest.n = 2;
  for (int d = 0; d < indices->rank; d++) {
    nest.dim[d] = indices->dim[d];
    nest.stride[0][d] = y->stride[d < a->axis ? d : d + 1], nest.stride[1][d] = indices->stride[d];
  }
  nest.rank = indices->rank;
  qn_nest_simplify(&nest);                /* rows in memory order */
  if (nest.rank > MAX_DIMS) return qn_refuse(out, "at most 6 dims that do not merge", "indices", "6", "%d", nest.rank);
  e.rank = nest.rank;
  for (int d = 0; d < nest.rank; d++) {
    e.dim[d] = (uint32_t)nest.dim[nest.rank - 1 - d];
    e.stride[d] = nest.stride[1][nest.rank - 1 - d];
  }
  e.wide = indices->dtype == QN_I64;
  e.depth = (uint32_t)a->depth, e.by_depth = cuda_divide_by(a->depth);
  e.elements = (uint32_t)qn_elements(y);
  e.units = (uint32_t)qn_ceil_div(e.elements, 16 / esize);
  qn_store_f64(&e.on, y->dtype, a->on);
  qn_store_f64(&e.off, y->dtype, a->off);
  one_hot_state st = {};
  st.e = e;
  st.y = qn_role(&r->op[0], QN_ROLE_ONE_HOT_Y), st.indices = qn_role(&r->op[0], QN_ROLE_ONE_HOT_INDICES);
  st.bytes = esize;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status one_hot_run(const qn_prepared *p, const qn_launch *launch)
{
  const one_hot_state *st = (const one_hot_state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  encoding e = st->e;
  unsigned blocks = (unsigned)qn_ceil_div(e.units, THREADS * UNITS);
  e.y = (char *)launch->ptr[st->y];
  e.indices = launch->ptr[st->indices];
  switch (st->bytes) {
  case 8:  one_hot_units<uint64_t><<<blocks, THREADS, 0, stream>>>(e); break;
  case 4:  one_hot_units<uint32_t><<<blocks, THREADS, 0, stream>>>(e); break;
  case 2:  one_hot_units<uint16_t><<<blocks, THREADS, 0, stream>>>(e); break;
  default: one_hot_units<uint8_t><<<blocks, THREADS, 0, stream>>>(e); break;
  }
  return cuda_check(cudaGetLastError(), "one_hot_units");
}

/* ---- rows of the table ------------------------------------------------------------------------------------------ */

static const qn_engine row[] = {
  { "rows", QN_OP_GATHER, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    gather_prepare, nullptr, gather_run, cuda_release },
  { "units", QN_OP_ONE_HOT, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    one_hot_prepare, nullptr, one_hot_run, cuda_release },
};
CUDA_ENGINES(select_rows) = { row, sizeof row / sizeof *row };
