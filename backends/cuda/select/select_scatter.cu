/* select_scatter.cu -- scatter_add: the places of dy are sorted by the row that they name, and added in that order. No atomics on
 * floats, and no cut depends on the device, so deterministic; a row that most indices name costs no more than others.
 *
 * A list of up to 4096 is sorted in one launch (list_rank); a longer one digit by digit:
 *   count   per tile of the list: how many rows have each value of a digit of at most 10 bits
 *   order   a stable counting sort by that digit; one count and one order for each digit, the lowest first
 *   sum     a thread adds a slice of the list for four neighbouring elements. A run (neighbours that name one row) inside the slice is a
 *           row of dx; the sums of runs that cross its ends are joined in the block, in order. Rows that no place names are written
 *           as 0 by further blocks, which look for them in the list
 *   join    the runs that cross the ends of what a block has
 *
 * Indices out of range become the row after the last, which is not written. Refused: more than 6 dims that remain; f64 sums. */
#include "cuda_backend.h"
#include "engines.h"
#include "kit/divisor.h"
#include "kit/offsets.cuh"
#include "kit/vector.cuh"
#include "select_order.cuh"

enum { MAX_DIMS = 6, ADDERS = 256, AHEAD = 8,           /* loads of a thread in flight */
       MOST_SLICES = 32,                  /* of a block */
       CLEARED = 512, CLEARED_GROUPS = 2048,            /* most rows, and groups of 4 of a row, that a block writes as 0 */
       ENOUGH = 1024 };                   /* such blocks */

struct scattering {
  const void *dy, *indices;
  void    *dx;
  uint32_t dy_dtype, dx_dtype;
  int32_t  wide, index_rank, rank;
  uint32_t n, length;                     /* number of indices; rows of dx */
  uint32_t index_dim[MAX_DIMS], dim[MAX_DIMS], units;           /* innermost first; dim[0] in elements; units: groups of 4 of a row */
  cuda_divisor by_groups;                 /* of dim[0] */
  int64_t  index_stride[MAX_DIMS], named_stride[MAX_DIMS];      /* of indices and of dy, over the dims of indices */
  int64_t  dy_stride[MAX_DIMS], dx_stride[MAX_DIMS], row_stride;
  tiles    tile;                          /* of the list, for the sort */
  uint32_t slice, lanes, slices, cleared; /* places of a thread; groups of 4 and slices of a block; rows that a block clears */
  uint32_t columns, chunks;               /* blocks beside each other for a row; slices of the list by blocks */
  uint32_t *counts;                       /* workspace: of each tile, by digit */
  uint2    *list, *ends;                  /* (row, place), sorted; of each chunk its last row, and how it ends */
  float4   *open;                         /* chunks x (first, last run) x units: sums of runs that cross the ends */
};

/* ---- sort ------------------------------------------------------------------------------------------------------ */

/* from NULL: the indices as they are. */
__device__ __forceinline__ uint2 entry_at(const scattering &s, const uint2 *from, uint32_t i)
{
  if (from) return from[i];
  const int64_t at = offset_of(i, s.index_rank, s.index_dim, s.index_stride);
  const int64_t index = s.wide ? ((const int64_t *)s.indices)[at] : ((const int32_t *)s.indices)[at];
  return make_uint2(index >= 0 && index < s.length ? (uint32_t)index : s.length, i);
}

/* ---- sum ------------------------------------------------------------------------------------------------------- */

/* Of a stretch of the list. HEAD: its first run began earlier; THROUGH: that run goes on after it; TAIL: another one that begins in
 * it does. */
enum { HEAD = 1, THROUGH = 2, TAIL = 4 };

__device__ __forceinline__ uint32_t ends_of(const scattering &s, uint32_t a, uint32_t b, uint32_t *first)
{
  *first = s.length;
  if (a >= b) return 0;
  const uint32_t last = s.list[b - 1].x, before = a ? s.list[a - 1].x : ~0u, after = b < s.n ? s.list[b].x : ~0u;
  *first = s.list[a].x;
  const bool head = *first < s.length && before == *first, goes_on = last < s.length && last == after;
  return (head ? HEAD : 0) | (goes_on ? head && *first == last ? THROUGH : TAIL : 0);
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

/* A group of four of a row: how many exist, and its offsets in dy (without the place) and dx (without the row). */
template <int whole> struct group {
  int      n;
  int64_t  x, y;

  __device__ __forceinline__ group(const scattering &s, uint32_t unit)
  {
    uint32_t at;
    x = y = 4 * (int64_t)unit, n = 4;
    if (whole) return;
    uint32_t q = cuda_quotient(unit, s.by_groups, &at);
    at *= 4;
    n = min(4u, s.dim[0] - at);
    x = at * s.dy_stride[0] + offset_of(q, s.rank - 1, s.dim + 1, s.dy_stride + 1);
    y = at * s.dx_stride[0] + offset_of(q, s.rank - 1, s.dim + 1, s.dx_stride + 1);
  }
};

template <int whole> __device__ __noinline__ void store_row(const scattering &s, const group<whole> &g, uint32_t row, float4 sum)
{
  const int64_t at = g.y + row * s.row_stride;
  const float out[4] = { sum.x, sum.y, sum.z, sum.w };
  if (!whole) vector_store<4>(out, s.dx, s.dx_dtype, at, s.dx_stride[0], g.n);
  else if (s.dx_dtype == QN_F32) *(float4 *)((float *)s.dx + at) = sum;
  else if (s.dx_dtype == QN_BF16) *(uint2 *)((uint16_t *)s.dx + at) = make_uint2(pack_bf16(sum.x, sum.y), pack_bf16(sum.z, sum.w));
  else *(uint2 *)((uint16_t *)s.dx + at) = make_uint2(pack_f16(sum.x, sum.y), pack_f16(sum.z, sum.w));
}

__device__ __forceinline__ void add(float4 &sum, float4 v) { sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w; }

/* The first place from low on whose row is not below; by a whole block. */
__device__ __forceinline__ uint32_t place_of(const scattering &s, uint32_t low, uint32_t row)
{
  uint32_t high = s.n;
  while (low < high) {                    /* ADDERS places cut what is left into parts that differ by one at most */
    const uint32_t rest = high - low, probe = low + (uint32_t)((uint64_t)rest * threadIdx.x / ADDERS);
    const uint32_t below = __syncthreads_count(s.list[probe].x < row);
    if (below == 0) return low;
    if (below < ADDERS) high = low + (uint32_t)((uint64_t)rest * below / ADDERS);
    low += (uint32_t)((uint64_t)rest * (below - 1) / ADDERS) + 1;
  }
  return low;
}

/* Writes 0 to those of a block's rows that no place names. */
template <int whole> __device__ __forceinline__ void clear_rows(const scattering &s, uint32_t block)
{
  __shared__ bool named[CLEARED];
  const uint32_t t = threadIdx.x, parts = (s.units + CLEARED_GROUPS - 1) / CLEARED_GROUPS, begin = block / parts * s.cleared;
  const uint32_t rows = min(s.cleared, s.length - begin), unit = block % parts * CLEARED_GROUPS;
  const uint32_t units = min((uint32_t)CLEARED_GROUPS, s.units - unit);
  const uint32_t from = place_of(s, 0, begin), to = place_of(s, from, begin + rows);
  for (uint32_t row = t; row < rows; row += ADDERS) {
    uint32_t low = from, high = to;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (s.list[middle].x < begin + row) low = middle + 1;
      else high = middle;
    }
    named[row] = low < to && s.list[low].x == begin + row;
  }
  __syncthreads();
  uint32_t lanes = 1;                     /* of a row */
  while (lanes < units && lanes < ADDERS) lanes *= 2;
  for (uint32_t row = t / lanes; row < rows; row += ADDERS / lanes)
    for (uint32_t u = t % lanes; u < units && !named[row]; u += lanes)
      store_row(s, group<whole>(s, unit + u), begin + row, make_float4(0, 0, 0, 0));
}

template <int whole> __global__ static void __launch_bounds__(ADDERS, whole ? 3 : 2) scatter_sum(const __grid_constant__ scattering s)
{
  __shared__ float4 head[ADDERS], tail[ADDERS];
  __shared__ uint2 end_of[MOST_SLICES];
  const uint32_t chunk = blockIdx.x / s.columns, t = threadIdx.x, lane = t % s.lanes, mine = t / s.lanes;
  if (chunk >= s.chunks) {
    clear_rows<whole>(s, blockIdx.x - s.chunks * s.columns);
    return;
  }
  const uint32_t unit = blockIdx.x % s.columns * s.lanes + lane, begin = chunk * s.slices * s.slice;
  const uint32_t a = min(s.n, begin + mine * s.slice), b = min(s.n, a + s.slice);
  const bool exists = unit < s.units;
  const group<whole> g(s, exists ? unit : 0);
  uint32_t row;
  const uint32_t ends = ends_of(s, a, b, &row);
  if (lane == 0) end_of[mine] = make_uint2(row, ends);
  if (exists && a < b) {
    bool began = ends & HEAD;             /* the run at hand, in an earlier slice */
    float4 sum = {};
    for (uint32_t j = a; j < b; j += AHEAD) {
      uint2 e[AHEAD];
      quad<whole> v[AHEAD];
#pragma unroll
      for (int k = 0; k < AHEAD; k++) e[k] = s.list[min(j + k, b - 1)];
#pragma unroll
      for (int k = 0; k < AHEAD; k++)
        if (e[k].x < s.length) v[k].load(s, g.x, e[k].y, g.n);
#pragma unroll
      for (int k = 0; k < AHEAD; k++) {
        if (j + k >= b || e[k].x >= s.length) continue;
        if (e[k].x != row) {
          if (began) head[t] = sum;
          else store_row(s, g, row, sum);
          row = e[k].x, began = false, sum = make_float4(0, 0, 0, 0);
        }
        add(sum, make_float4(v[k].open(0), v[k].open(1), v[k].open(2), v[k].open(3)));
      }
    }
    if (began) head[t] = sum;
    else if (ends & TAIL) tail[t] = sum;
    else if (row < s.length) store_row(s, g, row, sum);
  }
  __syncthreads();
  if (mine) return;

  bool began = true, goes_on = false;     /* the run at hand: in an earlier block; after the slice at hand */
  float4 sum = {};
  float4 *open = s.open + (int64_t)2 * chunk * s.units + unit;
  if (exists)
    for (uint32_t k = 0; k < s.slices; k++) {
      const uint2 end = end_of[k];
      if (end.y & HEAD) {
        add(sum, head[k * s.lanes + lane]);
        goes_on = end.y & THROUGH;
        if (!goes_on && began) open[0] = sum;
        else if (!goes_on) store_row(s, g, end.x, sum);
      }
      if (end.y & TAIL) sum = tail[k * s.lanes + lane], began = false, goes_on = true;
    }
  if (exists && goes_on) open[began ? 0 : s.units] = sum;
  if (t == 0 && blockIdx.x % s.columns == 0) {
    const uint32_t end = min(s.n, begin + s.slices * s.slice);
    s.ends[chunk] = make_uint2(s.list[end - 1].x, ends_of(s, begin, end, &row));
  }
}

/* A block for each chunk: the run that begins in it, if it goes on. */
template <int whole> __global__ static void __launch_bounds__(ADDERS / 2) scatter_join(const __grid_constant__ scattering s)
{
  const uint2 end = s.ends[blockIdx.x];
  if (!(end.y & TAIL)) return;
  for (uint32_t unit = blockIdx.y * (ADDERS / 2) + threadIdx.x; unit < s.units; unit += gridDim.y * (ADDERS / 2)) {
    float4 sum = s.open[((int64_t)2 * blockIdx.x + 1) * s.units + unit];
    bool goes_on = true;
    for (uint32_t chunk = blockIdx.x + 1; goes_on; chunk += AHEAD) {        /* sums of few, so that no running sum is long */
      uint32_t ends[AHEAD];
      float4 v[AHEAD], part = {};
#pragma unroll
      for (int k = 0; k < AHEAD; k++) {
        const uint32_t c = min(chunk + k, s.chunks - 1);
        ends[k] = s.ends[c].y, v[k] = s.open[(int64_t)2 * c * s.units + unit];
      }
#pragma unroll
      for (int k = 0; k < AHEAD; k++) {
        if (goes_on) add(part, v[k]);
        goes_on = goes_on && ends[k] & THROUGH;
      }
      add(sum, part);
    }
    store_row(s, group<whole>(s, unit), end.x, sum);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------ */

struct scatter_state { scattering s; int32_t dy, indices, dx; uint32_t whole; };

/* Lays out the workspace; returns its bytes. *other: a second list. */
static uint64_t carve(scattering *s, void *workspace, uint2 **other)
{
  char *const at = (char *)workspace;
  uint64_t bytes = 0;
  s->open = (float4 *)(at + bytes), bytes += (s->chunks > 1 ? (uint64_t)2 * s->chunks * s->units : 0) * sizeof *s->open;
  s->list = (uint2 *)(at + bytes), bytes += (uint64_t)s->n * sizeof *s->list;
  *other = (uint2 *)(at + bytes), bytes += (s->length >> DIGIT ? (uint64_t)s->n : 0) * sizeof *s->list;
  s->ends = (uint2 *)(at + bytes), bytes += (uint64_t)s->chunks * sizeof *s->ends;
  s->counts = (uint32_t *)(at + bytes), bytes += (s->tile.count > 1 ? (uint64_t)s->tile.count * BINS : 0) * sizeof *s->counts;
  return bytes;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
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
  s->units = (uint32_t)units;
  s->by_groups = cuda_divide_by((s->dim[0] + 3) / 4);
  s->tile = tiles_of(n);
  for (s->lanes = 8; s->lanes < 32 && s->lanes < s->units;) s->lanes *= 2;
  s->slices = ADDERS / s->lanes;
  for (s->slice = 16; s->slice < 256 && (double)n * units / s->slice > 1 << 18;) s->slice *= 2;
  s->chunks = (uint32_t)qn_ceil_div(n, (int64_t)s->slices * s->slice);
  s->columns = (s->units + s->lanes - 1) / s->lanes;
  const double bounded = (double)s->length / ENOUGH;          /* many blocks, each with work for its search */
  for (s->cleared = CLEARED; s->cleared > 32 && (s->cleared * units > 8 * CLEARED_GROUPS || s->cleared > bounded);) s->cleared /= 2;
  const double clearing = (double)qn_ceil_div(s->length, s->cleared) * (double)qn_ceil_div(s->units, CLEARED_GROUPS);
  if ((double)s->chunks * s->columns + clearing > INT32_MAX)
    return qn_refuse(out, "fewer than 2^31 blocks", "dy", "2^31", "%g", (double)s->chunks * s->columns + clearing);
  bool whole = s->rank == 1 && s->index_rank <= 1 && s->dim[0] % 4 == 0 && s->dy_stride[0] == 1 && s->dx_stride[0] == 1 &&
               s->named_stride[0] % 4 == 0 && s->row_stride % 4 == 0;
  if (whole && dy->align >= 16 && dx->align >= 16) st.whole = dy->dtype;
  const qn_node *op = &r->op[0];
  st.dy = qn_role(op, QN_ROLE_SCATTER_ADD_DY), st.indices = qn_role(op, QN_ROLE_SCATTER_ADD_INDICES),
  st.dx = qn_role(op, QN_ROLE_SCATTER_ADD_DX);
  uint2 *other;
  out->workspace = carve(s, nullptr, &other);
  return cuda_keep(out, &st, sizeof st);
}

template <int whole> static void launch_sums(const scattering &s, cudaStream_t stream)
{
  const uint32_t clearing = (s.length + s.cleared - 1) / s.cleared * ((s.units + CLEARED_GROUPS - 1) / CLEARED_GROUPS);
  const uint32_t beside = (s.units + ADDERS / 2 - 1) / (ADDERS / 2);
  scatter_sum<whole><<<s.chunks * s.columns + clearing, ADDERS, 0, stream>>>(s);
  if (s.chunks > 1) scatter_join<whole><<<dim3(s.chunks, beside < 64 ? beside : 64), ADDERS / 2, 0, stream>>>(s);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const scatter_state *st = (const scatter_state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  scattering s = st->s;
  s.dy = launch->ptr[st->dy];
  s.indices = launch->ptr[st->indices];
  s.dx = launch->ptr[st->dx];
  uint2 *other;
  carve(&s, launch->workspace, &other);
  sort_list(s, s.length, s.list, other, stream);            /* `length` itself is a row: of indices out of range */
  switch (st->whole) {
  case QN_F32:  launch_sums<QN_F32>(s, stream); break;
  case QN_BF16: launch_sums<QN_BF16>(s, stream); break;
  case QN_F16:  launch_sums<QN_F16>(s, stream); break;
  default:      launch_sums<0>(s, stream); break;
  }
  return cuda_check(cudaGetLastError(), "scatter_add");
}

static const qn_engine row[] = {
  { "sorted", QN_OP_SCATTER_ADD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(select_scatter) = { row, sizeof row / sizeof *row };
