/* select_rows.cu -- gather, scatter_add and one_hot by rows.
 *
 *   gather        a thread copies units of 16 (8, 4, 2, 1) bytes of y from the row that the index names
 *   scatter_add   without atomics, so deterministic: a block owns some rows of dx. It scans all indices twice, lists in order the
 *                 places that name its rows, sorts them by row, and then a thread adds four neighbouring elements over the row's
 *                 places. Rows without any are written as 0 in the same pass
 *   one_hot       a thread writes 16 bytes of y, which may span several rows
 *
 * Dims are merged as far as x, y and the indices allow. Refused: more than 6 dims that remain; f64 sums. */
#include "cuda_backend.h"
#include "engines.h"
#include "kit/divisor.h"
#include "kit/sums.cuh"
#include "kit/vector.cuh"

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
  g.dim[0] = 1;
  g.wide = indices->dtype == QN_I64;
  g.length = x->dim[axis];
  g.row_bytes = x->stride[axis] * esize;
  double units = 1;
  for (int d = 0; d < nest.rank; d++) {
    int from = nest.rank - 1 - d;
    units *= (double)nest.dim[from];
    if (units > 4e9) return qn_refuse(out, "fewer than 2^32 elements", "y", "4e9", "%g", units);
    g.dim[d] = (uint32_t)nest.dim[from];
    g.y_stride[d] = nest.stride[0][from] * esize;
    g.x_stride[d] = nest.stride[1][from] * esize;
    g.index_stride[d] = nest.stride[2][from];
  }
  int64_t unit = esize, align = x->align < y->align ? x->align : y->align;
  bool runs = nest.rank && g.x_stride[0] == esize && g.y_stride[0] == esize;
  while (runs && unit < 16 && 2 * unit <= align) {
    int64_t sum = (int64_t)g.dim[0] * esize | g.row_bytes;
    for (int d = 1; d < g.rank; d++) sum |= g.x_stride[d] | g.y_stride[d];
    if (sum % (2 * unit)) break;
    unit *= 2;
  }
  if (runs) {
    g.dim[0] = (uint32_t)((int64_t)g.dim[0] * esize / unit);
    g.x_stride[0] = g.y_stride[0] = unit;
  }
  g.units = 1;
  for (int d = 0; d < g.rank; d++) g.units *= g.dim[d];
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

/* ---- scatter_add ------------------------------------------------------------------------------------------- */

/* AT_ONCE: loads of a thread in flight; BLOCK: places of a running sum */
enum { SCATTER_THREADS = 512, SCATTER_WARPS = SCATTER_THREADS / 32, MOST_ROWS = 2048, NOTED = 2048, AT_ONCE = 4, BLOCK = 4096 };

struct scattering {
  const void *dy, *indices;
  void    *dx;
  uint32_t dy_dtype, dx_dtype;
  int32_t  wide, index_rank, rank;
  uint32_t n, length, rows;               /* number of indices; rows of dx, rows of a block */
  uint32_t index_dim[MAX_DIMS], dim[MAX_DIMS], units;           /* innermost first; dim[0] in groups of 4; units: of a row */
  cuda_divisor by_units, by_groups;
  int64_t  index_stride[MAX_DIMS], named_stride[MAX_DIMS];      /* of indices and of dy, over the dims of indices */
  int64_t  dy_stride[MAX_DIMS], dx_stride[MAX_DIMS], row_stride;
  uint2    *noted;                        /* workspace: (row, place) lists of blocks with more than NOTED of them, one after the other */
  uint32_t *sorted;                       /* the places sorted by row */
};

/* Offset of element i over these dims. */
__device__ __forceinline__ int64_t offset_of(uint32_t i, int rank, const uint32_t *dim, const int64_t *stride)
{
  int64_t offset = 0;
  for (int d = 0; d < rank; d++) {
    uint32_t q = d + 1 < rank ? i / dim[d] : 0;
    offset += (i - q * dim[d]) * stride[d];
    i = q;
  }
  return offset;
}

/* The rows that places i, i + 32, ... below `end` name; `length` for those out of range. */
template <int whole> __device__ __forceinline__ void rows_named(uint32_t (&row)[AT_ONCE], const scattering &s, uint32_t i, uint32_t end)
{
#pragma unroll
  for (int k = 0; k < AT_ONCE; k++, i += 32) {
    row[k] = s.length;
    if (i >= end) continue;
    int64_t index = index_at(s.indices, s.wide, whole ? i * s.index_stride[0] : offset_of(i, s.index_rank, s.index_dim, s.index_stride));
    if (index >= 0 && index < s.length) row[k] = (uint32_t)index;
  }
}

/* Four neighbouring elements of dy, raw: of a known dtype, aligned, one stride between places; or (whole 0) any, of which n exist. */
template <int whole> struct quad {
  uint32_t word[whole == QN_F32 ? 4 : 2];

  __device__ __forceinline__ void load(const scattering &s, int64_t at, uint32_t place, int)
  {
    at += place * s.named_stride[0];
    if constexpr (whole == QN_F32) *(uint4 *)word = *(const uint4 *)((const float *)s.dy + at);
    else *(uint2 *)word = *(const uint2 *)((const uint16_t *)s.dy + at);
  }
  __device__ __forceinline__ float open(int i) const
  {
    if (whole == QN_F32) return __uint_as_float(word[i]);
    uint16_t h = (uint16_t)(word[i / 2] >> i % 2 * 16);
    return whole == QN_BF16 ? bf16_to_float(h) : f16_to_float(h);
  }
};
template <> struct quad<0> {
  float held[4];

  __device__ __forceinline__ void load(const scattering &s, int64_t at, uint32_t place, int n)
  {
    vector_load(held, s.dy, s.dy_dtype, at + offset_of(place, s.index_rank, s.index_dim, s.named_stride), s.dy_stride[0], n);
  }
  __device__ __forceinline__ float open(int i) const { return held[i]; }
};

/* Adds places j..last-1 of a row in order, in blocks, so that no running sum is long. */
template <int whole>
__device__ __noinline__ float4 add_places(const scattering &s, int64_t x, int n, const uint32_t *sorted, uint32_t j, uint32_t last,
                                          float4 sum)
{
#pragma unroll 1
  for (uint32_t end; j < last; j = end) {
    float4 part = {};
    end = min(last, j + BLOCK);
#pragma unroll 1
    for (; j < end; j += AT_ONCE) {
      quad<whole> v[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) v[k].load(s, x, sorted[min(j + k, end - 1)], n);
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++)
        if (j + k < end) part.x += v[k].open(0), part.y += v[k].open(1), part.z += v[k].open(2), part.w += v[k].open(3);
    }
    sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
  }
  return sum;
}

/* The u-th group of four in a block's rows: its row, and its offsets in dy (without the place) and dx. */
template <int whole> struct group {
  uint32_t row;
  int      n;
  int64_t  x, y;

  __device__ __forceinline__ group(const scattering &s, uint32_t begin, uint32_t u)
  {
    uint32_t unit, at;
    row = cuda_quotient(u, s.by_units, &unit);
    y = (begin + row) * s.row_stride;
    if (whole) {
      x = 4 * unit, y += 4 * unit, n = 4;
      return;
    }
    uint32_t q = cuda_quotient(unit, s.by_groups, &at);
    at *= 4;
    n = min(4u, s.dim[0] - at);
    x = at * s.dy_stride[0] + offset_of(q, s.rank - 1, s.dim + 1, s.dy_stride + 1);
    y += at * s.dx_stride[0] + offset_of(q, s.rank - 1, s.dim + 1, s.dx_stride + 1);
  }
};

template <int whole> __global__ void __launch_bounds__(SCATTER_THREADS, whole ? 2 : 1) scatter_rows(const __grid_constant__ scattering s)
{
  __shared__ uint2 noted_here[NOTED];
  __shared__ uint32_t sorted_here[NOTED], first[MOST_ROWS + 1], inside[SCATTER_WARPS], below[SCATTER_WARPS];
  uint32_t t = threadIdx.x, lane = t % 32, warp = t / 32, begin = blockIdx.x * s.rows, rows = min(s.rows, s.length - begin);

  /* Each warp scans a stretch of the indices: how many name the block's rows, how many name earlier rows? */
  uint32_t stretch = (s.n + SCATTER_THREADS - 1) / SCATTER_THREADS * 32, from = warp * stretch, end = min(from + stretch, s.n);
  uint32_t row[AT_ONCE], mine = 0, under = 0;
  for (uint32_t i = from; i < end; i += 32 * AT_ONCE) {
    rows_named<whole>(row, s, i + lane, end);
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) mine += row[k] - begin < rows, under += row[k] < begin;
  }
  mine = warp_sum(mine), under = warp_sum(under);
  if (lane == 0) inside[warp] = mine, below[warp] = under;
  __syncthreads();
  uint32_t to = 0, all = 0, before = 0;
  for (uint32_t w = 0; w < SCATTER_WARPS; w++) {
    if (w == warp) to = all;
    all += inside[w], before += below[w];
  }
  uint2 *noted = all > NOTED ? s.noted + before : noted_here;
  uint32_t *sorted = all > NOTED ? s.sorted + before : sorted_here;
  if (mine)
    for (uint32_t i = from; i < end; i += 32 * AT_ONCE) {
      rows_named<whole>(row, s, i + lane, end);
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) {
        bool here = row[k] - begin < rows;
        uint32_t set = __ballot_sync(~0u, here);
        if (here) noted[to + __popc(set & ((1u << lane) - 1))] = make_uint2(row[k] - begin, i + 32 * k + lane);
        to += __popc(set);
      }
    }
  __syncthreads();

  for (uint32_t r = t; r <= rows; r += SCATTER_THREADS) {       /* a thread's row: its places follow those of earlier rows */
    uint32_t at = 0;
#pragma unroll 8
    for (uint32_t j = 0; j < all; j++) at += noted[j].x < r;
    first[r] = at;
#pragma unroll 8
    for (uint32_t j = 0; j < all; j++)
      if (noted[j].x == r) sorted[at++] = noted[j].y;
  }
  __syncthreads();

  constexpr int GROUPS = whole ? AT_ONCE : 1;
  uint32_t units = rows * s.units, step = gridDim.y * SCATTER_THREADS;
  for (uint32_t u = blockIdx.y * SCATTER_THREADS + t; u < units; u += GROUPS * step) {
    quad<whole> v[GROUPS];                /* the first place of each group; few rows have more */
#pragma unroll
    for (int k = 0; k < GROUPS; k++) {
      group<whole> g(s, begin, min(u + k * step, units - 1));
      uint32_t j = first[g.row];
      if (j < first[g.row + 1]) v[k].load(s, g.x, sorted[j], g.n);
    }
#pragma unroll
    for (int k = 0; k < GROUPS; k++) {
      if (u + k * step >= units) break;
      group<whole> g(s, begin, u + k * step);
      uint32_t j = first[g.row], last = first[g.row + 1];
      float4 sum = {};
      if (j < last) sum = make_float4(v[k].open(0), v[k].open(1), v[k].open(2), v[k].open(3));
      if (j + 1 < last) sum = add_places<whole>(s, g.x, g.n, sorted, j + 1, last, sum);
      const float out[4] = { sum.x, sum.y, sum.z, sum.w };
      if (!whole) vector_store<4>(out, s.dx, s.dx_dtype, g.y, s.dx_stride[0], g.n);
      else if (s.dx_dtype == QN_F32) *(float4 *)((float *)s.dx + g.y) = sum;
      else if (s.dx_dtype == QN_BF16) *(uint2 *)((uint16_t *)s.dx + g.y) = make_uint2(pack_bf16(sum.x, sum.y), pack_bf16(sum.z, sum.w));
      else *(uint2 *)((uint16_t *)s.dx + g.y) = make_uint2(pack_f16(sum.x, sum.y), pack_f16(sum.z, sum.w));
    }
  }
}

struct scatter_state { scattering s; int32_t dy, indices, dx; uint32_t whole; dim3 blocks; };

static qn_status scatter_prepare(const qn_request *r, qn_prepared *out)
{
  const qn_value *dy = cuda_value(r, QN_ROLE_SCATTER_ADD_DY), *dx = cuda_value(r, QN_ROLE_SCATTER_ADD_DX);
  const qn_value *indices = cuda_value(r, QN_ROLE_SCATTER_ADD_INDICES);
  int axis = (int)((const qn_axis *)r->op[0].attr)->axis;
  if (dx->dtype == QN_F64 || dy->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "dx", "f32, f16 or bf16", "%s", "f64");
  int64_t n = qn_elements(indices);
  if (n == 0 || n > INT32_MAX || dx->dim[axis] >= INT32_MAX)
    return qn_refuse(out, "number of positions", "indices", "1 to 2^31 - 1", "%lld", (long long)n);
  qn_nest named = {}, rest = {};          /* named: dims of indices (indices and dy); rest: the other dims (dx and dy) */
  named.n = 3, rest.n = 2;
  named.rank = indices->rank;
  for (int64_t d = named.rank - 1, number = 1; d >= 0; number *= named.dim[d--]) {
    named.dim[d] = indices->dim[d];
    named.stride[0][d] = number;          /* keeps the dims in index order, which is the order of the sums */
    named.stride[1][d] = indices->stride[d], named.stride[2][d] = dy->stride[axis + d];
  }
  qn_nest_simplify(&named);
  for (int d = 0; d < dx->rank; d++) {
    if (d == axis) continue;
    rest.dim[rest.rank] = dx->dim[d];
    rest.stride[0][rest.rank] = dx->stride[d];
    rest.stride[1][rest.rank++] = dy->stride[d < axis ? d : d + indices->rank - 1];
  }
  qn_nest_simplify(&rest);
  if (rest.rank > MAX_DIMS || named.rank > MAX_DIMS)
    return qn_refuse(out, "at most 6 dims that do not merge", "dx", "6", "%d", (int)rest.rank);
  scatter_state st = {};
  scattering *s = &st.s;
  s->dy_dtype = dy->dtype, s->dx_dtype = dx->dtype;
  s->wide = indices->dtype == QN_I64;
  s->n = (uint32_t)n;
  s->length = (uint32_t)dx->dim[axis];
  s->row_stride = dx->stride[axis];
  s->index_rank = named.rank;
  for (int d = 0; d < named.rank; d++) {
    int from = named.rank - 1 - d;
    s->index_dim[d] = (uint32_t)named.dim[from];
    s->index_stride[d] = named.stride[1][from], s->named_stride[d] = named.stride[2][from];
  }
  s->rank = rest.rank ? rest.rank : 1;
  s->dim[0] = 1;
  double elements = 1, units = 1;
  for (int d = 0; d < rest.rank; d++) {
    int from = rest.rank - 1 - d;
    elements *= (double)rest.dim[from], units *= (double)(d ? rest.dim[from] : qn_ceil_div(rest.dim[from], 4));
    s->dim[d] = (uint32_t)rest.dim[from];
    s->dx_stride[d] = rest.stride[0][from], s->dy_stride[d] = rest.stride[1][from];
  }
  if (elements > 4e9 || units > INT32_MAX)
    return qn_refuse(out, "rows of fewer than 2^32 elements, and of 2^31 groups of four", "dx", "4e9", "%g", elements);
  uint32_t blocks = 2 * (uint32_t)r->device->units;
  s->units = (uint32_t)units;
  s->by_groups = cuda_divide_by((s->dim[0] + 3) / 4), s->by_units = cuda_divide_by(s->units);
  s->rows = (uint32_t)qn_min_i64(qn_min_i64(MOST_ROWS, qn_ceil_div(s->length, blocks)), qn_max_i64(1, INT32_MAX / (int64_t)s->units));
  st.blocks.x = (s->length + s->rows - 1) / s->rows;
  st.blocks.y = (uint32_t)qn_max_i64(1, qn_min_i64(blocks / st.blocks.x, qn_ceil_div((int64_t)s->rows * s->units, SCATTER_THREADS)));
  bool whole = s->rank == 1 && s->index_rank <= 1 && s->dim[0] % 4 == 0 && s->dy_stride[0] == 1 && s->dx_stride[0] == 1 &&
               s->named_stride[0] % 4 == 0 && s->row_stride % 4 == 0;
  if (whole && dy->align >= 16 && dx->align >= 16) st.whole = dy->dtype;
  const qn_node *op = &r->op[0];
  st.dy = qn_role(op, QN_ROLE_SCATTER_ADD_DY), st.indices = qn_role(op, QN_ROLE_SCATTER_ADD_INDICES),
  st.dx = qn_role(op, QN_ROLE_SCATTER_ADD_DX);
  if (n > NOTED) out->workspace = (uint64_t)n * (sizeof *s->noted + sizeof *s->sorted);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status scatter_run(const qn_prepared *p, const qn_launch *launch)
{
  const scatter_state *st = (const scatter_state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  scattering s = st->s;
  s.dy = launch->ptr[st->dy];
  s.indices = launch->ptr[st->indices];
  s.dx = launch->ptr[st->dx];
  s.noted = (uint2 *)launch->workspace;
  s.sorted = (uint32_t *)(s.noted + s.n);
  switch (st->whole) {
  case QN_F32:  scatter_rows<QN_F32><<<st->blocks, SCATTER_THREADS, 0, stream>>>(s); break;
  case QN_BF16: scatter_rows<QN_BF16><<<st->blocks, SCATTER_THREADS, 0, stream>>>(s); break;
  case QN_F16:  scatter_rows<QN_F16><<<st->blocks, SCATTER_THREADS, 0, stream>>>(s); break;
  default:      scatter_rows<0><<<st->blocks, SCATTER_THREADS, 0, stream>>>(s); break;
  }
  return cuda_check(cudaGetLastError(), "scatter_rows");
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
  { "ranges", QN_OP_SCATTER_ADD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_PORTABLE, nullptr, nullptr,
    scatter_prepare, nullptr, scatter_run, cuda_release },
  { "units", QN_OP_ONE_HOT, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    one_hot_prepare, nullptr, one_hot_run, cuda_release },
};
CUDA_ENGINES(select_rows) = { row, sizeof row / sizeof *row };
