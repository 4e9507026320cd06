/* select_rows.cu -- rows by their number, and their sums; rows with one element set.
 *
 *   gather        a thread moves units of 16 (8, 4, 2, 1) bytes of y, each from the row that its index names
 *   scatter_add   the indices are sorted with their places (by digits of 8 bits, the least first, so that places of one index stay
 *                 in order); then a thread adds up four neighbouring elements of one row of dx over the places that name it. No
 *                 atomic sum: the same bits every time, and rows that nothing names are written as 0 by the same pass.
 *
 *   one_hot       a thread writes 16 bytes of y, which may belong to several rows
 *
 * Dims are merged as far as x, y and the indices run on together. */
#include "cuda_backend.h"
#include "engines.h"
#include "divisor.h"
#include "vector.cuh"

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
  int64_t  x_stride[MAX_DIMS], y_stride[MAX_DIMS], index_stride[MAX_DIMS];      /* bytes, bytes, elements */
  int64_t  length, row_bytes;             /* x's dim along the axis, and from one of its rows to the next */
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
  const qn_value *x = cuda_value(r, QN_ROLE_GATHER_X), *y = cuda_value(r, QN_ROLE_GATHER_Y), *indices = cuda_value(r, QN_ROLE_GATHER_INDICES);
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

/* ---- scatter_add: sorting ------------------------------------------------------------------------------------ */

enum { PER_THREAD = 8, TILE = THREADS * PER_THREAD, DIGITS = 256, SCAN_THREADS = 1024 };

struct scattering {
  const void *dy, *indices;
  void    *dx;
  uint32_t dy_dtype, dx_dtype;
  int32_t  wide, index_rank, rank;
  uint32_t n, tiles, length;              /* indices; tiles of them; rows of dx */
  uint32_t index_dim[MAX_DIMS], dim[MAX_DIMS], groups, units;   /* dims innermost first; dim[0] in groups of 4; units: for each row */
  int64_t  index_stride[MAX_DIMS], named_stride[MAX_DIMS];      /* of indices and of dy, over the dims of indices */
  int64_t  dy_stride[MAX_DIMS], dx_stride[MAX_DIMS], row_stride;
  uint32_t *key[2], *place[2], *count, *first;        /* workspace; count[digit][tile]; first[row]: in the sorted order */
};

/* Offset of the i-th place over these dims. */
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

/* The first pass reads the indices themselves; those out of range become `length` and so come last. */
__device__ __forceinline__ uint32_t key_at(const scattering &s, int pass, uint32_t i)
{
  if (pass) return s.key[pass & 1][i];
  int64_t index = index_at(s.indices, s.wide, offset_of(i, s.index_rank, s.index_dim, s.index_stride));
  return index >= 0 && index < s.length ? (uint32_t)index : s.length;
}

__global__ static void __launch_bounds__(THREADS) scatter_count(const __grid_constant__ scattering s, int pass)
{
  __shared__ uint32_t count[DIGITS];
  count[threadIdx.x] = 0;
  __syncthreads();
  for (int k = 0; k < PER_THREAD; k++) {
    uint32_t i = blockIdx.x * TILE + k * THREADS + threadIdx.x;
    if (i < s.n) atomicAdd(&count[key_at(s, pass, i) >> 8 * pass & 0xff], 1u);
  }
  __syncthreads();
  s.count[threadIdx.x * s.tiles + blockIdx.x] = count[threadIdx.x];
}

/* Each count becomes the sum of those before it. One block. */
__global__ static void __launch_bounds__(SCAN_THREADS) scatter_scan(const __grid_constant__ scattering s)
{
  __shared__ uint32_t warp_sum[32];
  uint32_t n = DIGITS * s.tiles, each = (n + SCAN_THREADS - 1) / SCAN_THREADS;
  uint32_t begin = min(threadIdx.x * each, n), end = min(begin + each, n), sum = 0, lane = threadIdx.x % 32;
  for (uint32_t i = begin; i < end; i++) sum += s.count[i];
  uint32_t upto = sum;
  for (int o = 1; o < 32; o *= 2) {
    uint32_t v = __shfl_up_sync(~0u, upto, o);
    if (lane >= o) upto += v;
  }
  if (lane == 31) warp_sum[threadIdx.x / 32] = upto;
  __syncthreads();
  uint32_t before = upto - sum;
  for (uint32_t w = 0; w < threadIdx.x / 32; w++) before += warp_sum[w];
  for (uint32_t i = begin; i < end; i++) {
    uint32_t v = s.count[i];
    s.count[i] = before;
    before += v;
  }
}

/* To their places, in order within a tile: warp by warp, and within a warp by lane. */
__global__ static void __launch_bounds__(THREADS) scatter_place(const __grid_constant__ scattering s, int pass)
{
  constexpr int WARPS = THREADS / 32;
  __shared__ uint32_t next[DIGITS], in_warp[WARPS][DIGITS];
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  next[threadIdx.x] = s.count[threadIdx.x * s.tiles + blockIdx.x];
  for (int k = 0; k < PER_THREAD; k++) {
    uint32_t i = blockIdx.x * TILE + k * THREADS + threadIdx.x;
    bool there = i < s.n;
    uint32_t key = there ? key_at(s, pass, i) : 0, place = there && pass ? s.place[pass & 1][i] : i;
    uint32_t digit = there ? key >> 8 * pass & 0xff : DIGITS;
    for (int w = 0; w < WARPS; w++) in_warp[w][threadIdx.x] = 0;
    __syncthreads();
    uint32_t same = 0;                    /* lanes with this digit */
    for (int bit = 0; bit < 9; bit++) {
      uint32_t set = __ballot_sync(~0u, digit >> bit & 1);
      same = bit ? same & (digit >> bit & 1 ? set : ~set) : digit & 1 ? set : ~set;
    }
    uint32_t rank = __popc(same & ((1u << lane) - 1));
    if (there && rank == 0) in_warp[warp][digit] = __popc(same);
    __syncthreads();
    if (there) {
      uint32_t to = next[digit] + rank;
      for (uint32_t w = 0; w < warp; w++) to += in_warp[w][digit];
      s.key[~pass & 1][to] = key;
      s.place[~pass & 1][to] = place;
    }
    __syncthreads();
    uint32_t all = 0;
    for (int w = 0; w < WARPS; w++) all += in_warp[w][threadIdx.x];
    next[threadIdx.x] += all;
    __syncthreads();
  }
}

/* first[row] = how many sorted keys are below it. */
__global__ static void __launch_bounds__(THREADS) scatter_rows_begin(const __grid_constant__ scattering s, int passes)
{
  uint32_t row = blockIdx.x * THREADS + threadIdx.x, low = 0, high = s.n;
  if (row > s.length) return;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (s.key[passes & 1][middle] < row) low = middle + 1;
    else high = middle;
  }
  s.first[row] = low;
}

/* ---- scatter_add: sums ---------------------------------------------------------------------------------------- */

__global__ static void __launch_bounds__(THREADS) scatter_sum(const __grid_constant__ scattering s, int passes)
{
  const uint32_t *place = s.place[passes & 1];
  uint64_t all = (uint64_t)s.length * s.units;
  for (uint64_t i = blockIdx.x * (uint64_t)THREADS + threadIdx.x; i < all; i += (uint64_t)gridDim.x * THREADS) {
    uint32_t row = all >> 32 ? (uint32_t)(i / s.units) : (uint32_t)i / s.units, unit = (uint32_t)(i - (uint64_t)row * s.units);
    uint32_t q = unit / s.groups, at = (unit - q * s.groups) * 4;
    int n = min(4u, s.dim[0] - at);
    int64_t from = at * s.dy_stride[0], to = row * s.row_stride + at * s.dx_stride[0];
    if (s.rank > 1) {
      from += offset_of(q, s.rank - 1, s.dim + 1, s.dy_stride + 1);
      to += offset_of(q, s.rank - 1, s.dim + 1, s.dx_stride + 1);
    }
    float sum[4] = {};
    uint32_t j = s.first[row], end = s.first[row + 1];
    for (; j + 4 <= end; j += 4) {        /* four rows in flight, added in order */
      float v[4][4];
#pragma unroll
      for (int k = 0; k < 4; k++)
        vector_load<4>(v[k], s.dy, s.dy_dtype, from + offset_of(place[j + k], s.index_rank, s.index_dim, s.named_stride), s.dy_stride[0], n);
#pragma unroll
      for (int k = 0; k < 4; k++)
#pragma unroll
        for (int e = 0; e < 4; e++) sum[e] += v[k][e];
    }
    for (; j < end; j++) {
      float v[4];
      vector_load<4>(v, s.dy, s.dy_dtype, from + offset_of(place[j], s.index_rank, s.index_dim, s.named_stride), s.dy_stride[0], n);
#pragma unroll
      for (int e = 0; e < 4; e++) sum[e] += v[e];
    }
    vector_store<4>(sum, s.dx, s.dx_dtype, to, s.dx_stride[0], n);
  }
}

struct scatter_state { scattering s; int32_t dy, indices, dx, passes; size_t at[6]; };

static qn_status scatter_prepare(const qn_request *r, qn_prepared *out)
{
  const qn_value *dy = cuda_value(r, QN_ROLE_SCATTER_ADD_DY), *dx = cuda_value(r, QN_ROLE_SCATTER_ADD_DX);
  const qn_value *indices = cuda_value(r, QN_ROLE_SCATTER_ADD_INDICES);
  int axis = (int)((const qn_axis *)r->op[0].attr)->axis;
  if (dx->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "dx", "f32, f16 or bf16", "%s", "f64");
  int64_t n = qn_elements(indices);
  if (n == 0 || n > INT32_MAX || dx->dim[axis] >= INT32_MAX)
    return qn_refuse(out, "places are counted in 32 bits", "indices", "1 to 2^31 - 1", "%lld", (long long)n);
  qn_nest named = {}, rest = {};          /* indices and dy over the dims of indices; dx and dy over the others */
  named.n = rest.n = 2;
  for (int d = 0; d < indices->rank; d++) {
    named.dim[d] = indices->dim[d];
    named.stride[0][d] = indices->stride[d], named.stride[1][d] = dy->stride[axis + d];
  }
  named.rank = indices->rank;
  for (int d = 0; d < dx->rank; d++) {
    if (d == axis) continue;
    rest.dim[rest.rank] = dx->dim[d];
    rest.stride[0][rest.rank] = dx->stride[d];
    rest.stride[1][rest.rank++] = dy->stride[d < axis ? d : d + indices->rank - 1];
  }
  qn_nest_simplify(&rest);
  /* the indices keep their order, which is that of the sums */
  if (rest.rank > MAX_DIMS || named.rank > MAX_DIMS) return qn_refuse(out, "at most 6 dims that do not merge", "dx", "6", "%d", (int)rest.rank);
  scatter_state st = {};
  scattering *s = &st.s;
  s->dy_dtype = dy->dtype, s->dx_dtype = dx->dtype;
  s->wide = indices->dtype == QN_I64;
  s->n = (uint32_t)n;
  s->tiles = (uint32_t)qn_ceil_div(n, TILE);
  s->length = (uint32_t)dx->dim[axis];
  s->row_stride = dx->stride[axis];
  s->index_rank = named.rank;
  for (int d = 0; d < named.rank; d++) {
    int from = named.rank - 1 - d;
    s->index_dim[d] = (uint32_t)named.dim[from];
    s->index_stride[d] = named.stride[0][from], s->named_stride[d] = named.stride[1][from];
  }
  s->rank = rest.rank ? rest.rank : 1;
  s->dim[0] = 1;
  double units = 1;
  for (int d = 0; d < rest.rank; d++) {
    int from = rest.rank - 1 - d;
    units *= (double)rest.dim[from];
    s->dim[d] = (uint32_t)rest.dim[from];
    s->dx_stride[d] = rest.stride[0][from], s->dy_stride[d] = rest.stride[1][from];
  }
  s->groups = (s->dim[0] + 3) / 4;
  s->units = s->groups;
  for (int d = 1; d < s->rank; d++) s->units *= s->dim[d];
  if (units > 4e9)
    return qn_refuse(out, "rows of fewer than 2^32 elements", "dx", "4e9", "%g", units);
  for (st.passes = 1; st.passes < 4 && s->length >> 8 * st.passes; st.passes++) {}
  size_t bytes = 0, array = (size_t)qn_round_up(n * 4, 256);
  for (int k = 0; k < 4; k++) st.at[k] = bytes, bytes += array;
  st.at[4] = bytes, bytes += (size_t)qn_round_up((int64_t)DIGITS * s->tiles * 4, 256);
  st.at[5] = bytes, bytes += (size_t)qn_round_up(((int64_t)s->length + 1) * 4, 256);
  const qn_node *op = &r->op[0];
  st.dy = qn_role(op, QN_ROLE_SCATTER_ADD_DY), st.indices = qn_role(op, QN_ROLE_SCATTER_ADD_INDICES), st.dx = qn_role(op, QN_ROLE_SCATTER_ADD_DX);
  out->workspace = bytes;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status scatter_run(const qn_prepared *p, const qn_launch *launch)
{
  const scatter_state *st = (const scatter_state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  char *workspace = (char *)launch->workspace;
  scattering s = st->s;
  s.dy = launch->ptr[st->dy];
  s.indices = launch->ptr[st->indices];
  s.dx = launch->ptr[st->dx];
  for (int k = 0; k < 2; k++) s.key[k] = (uint32_t *)(workspace + st->at[k]), s.place[k] = (uint32_t *)(workspace + st->at[2 + k]);
  s.count = (uint32_t *)(workspace + st->at[4]);
  s.first = (uint32_t *)(workspace + st->at[5]);
  for (int pass = 0; pass < st->passes; pass++) {
    scatter_count<<<s.tiles, THREADS, 0, stream>>>(s, pass);
    scatter_scan<<<1, SCAN_THREADS, 0, stream>>>(s);
    scatter_place<<<s.tiles, THREADS, 0, stream>>>(s, pass);
  }
  scatter_rows_begin<<<s.length / THREADS + 1, THREADS, 0, stream>>>(s, st->passes);
  int64_t blocks = qn_ceil_div((int64_t)s.length * s.units, THREADS);
  scatter_sum<<<(unsigned)qn_min_i64(blocks, INT32_MAX), THREADS, 0, stream>>>(s, st->passes);
  return cuda_check(cudaGetLastError(), "scatter_add");
}

/* ---- one_hot ---------------------------------------------------------------------------------------------------- */

struct encoding {
  char    *y;
  const void *indices;
  int32_t  wide, rank;
  uint32_t elements, units, depth, dim[MAX_DIMS];         /* of the rows, innermost first */
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
    for (uint32_t at = e.depth - k[u]; at < n; at += e.depth) {         /* rows that begin in this unit */
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
  if (qn_elements(y) > INT32_MAX) return qn_refuse(out, "elements are counted in 31 bits", "y", "below 2^31", "%lld", (long long)qn_elements(y));
  encoding e = {};
  qn_nest nest = {};
  nest.n = 2;
  for (int d = 0; d < indices->rank; d++) {
    nest.dim[d] = indices->dim[d];
    nest.stride[0][d] = y->stride[d < a->axis ? d : d + 1], nest.stride[1][d] = indices->stride[d];
  }
  nest.rank = indices->rank;
  qn_nest_simplify(&nest);                /* rows in the order of memory */
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
  { "sorted", QN_OP_SCATTER_ADD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_PORTABLE, nullptr, nullptr,
    scatter_prepare, nullptr, scatter_run, cuda_release },
  { "units", QN_OP_ONE_HOT, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    one_hot_prepare, nullptr, one_hot_run, cuda_release },
};
const qn_engine_list cuda_select_rows_list = { row, sizeof row / sizeof *row };
