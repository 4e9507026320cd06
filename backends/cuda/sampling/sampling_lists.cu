/* sampling_lists.cu -- gradient of grid_sample with respect to the image, 2-d, channels contiguous, small grids; deterministic.
 * sampling_sorted's method in two kernels:
 *
 *   sort     a block scans all points of an image and lists those of a band of its cells, by cell, then by number
 *   gather   a thread computes 16 bytes of channels: dx = the sum of dy times weight over the points of the four cells around it
 *
 * A cell is the area between four pixels: an extent of n has n + 1 of them, including those beyond the first and last pixel.
 * Optionally fused with affine_grid. Refused: f64, 3-d, points of an image that do not fit shared memory, channels that are no
 * 16-byte vectors. */
#include "kit/divisor.h"
#include "engines.h"
#include "sampling.cuh"
#include "kit/shared_memory.h"
#include "kit/sums.cuh"

enum { THREADS = 128, SORT_THREADS = 1024, BATCH = 4, MOST_BANDS = 64 };

struct problem : points {
  int32_t  count, whole;                  /* points of an image; whole: the grid is packed f32 pairs */
  int32_t  across, cells, band, bands;    /* cells of a line, of an image, of a band; bands of an image */
  cuda_divisor by_bands, by_line, by_column, by_image, lanes;         /* blocks; points of a line; dx: columns, lines; vectors of a pixel */
  int32_t *begin;                         /* [images, cells + 1]: where each cell's points begin in `listed` */
  /* [images, count]: points by cell: weights of the upper column and line, byte offset of dy in the image */
  float4  *listed;
  const void *dy;
  void    *dx;
  uint32_t dtype;
  int64_t  units, dy_stride[4], dx_stride[4];       /* N, C, spatial */
};

/* Computes the points of an image by number. */
struct source {
  const float2 *grid;                     /* if whole */
  int64_t from;
  float   theta[2][3];                    /* if fused with affine_grid */

  __device__ __forceinline__ source(const problem &s, int32_t n) : grid(NULL), from(n * s.grid_stride[0])
  {
    if (s.whole) grid = (const float2 *)((const float *)s.grid + from);
#pragma unroll
    for (int k = 0; k < 6; k++) {
      float v[1] = { 0 };
      if (s.map.theta) load(v, s.map.theta, s.map.dtype, n * s.map.stride[0] + k / 3 * s.map.stride[1] + k % 3 * s.map.stride[2]);
      theta[k / 3][k % 3] = v[0];
    }
  }
  __device__ __forceinline__ float2 point(const problem &s, int32_t i) const
  {
    if (grid) return __ldg(grid + i);
    uint32_t column, line = cuda_quotient((uint32_t)i, s.by_line, &column);
    if (s.map.theta) {
      const float x = along_of(s, 0, (int32_t)column), y = along_of(s, 1, (int32_t)line);
      return make_float2(fmaf(theta[0][1], y, fmaf(theta[0][0], x, theta[0][2])), fmaf(theta[1][1], y, fmaf(theta[1][0], x, theta[1][2])));
    }
    const int64_t at = from + line * s.grid_stride[2] + column * s.grid_stride[3];
    float x[1], y[1];
    load(x, s.grid, s.grid_dtype, at);
    load(y, s.grid, s.grid_dtype, at + s.grid_stride[4]);
    return make_float2(x[0], y[0]);
  }
};

/* A point's axes (line, column); true: NaN, or infinite with reflection. */
__device__ __forceinline__ bool axes_of(const points &s, float2 g, axis<float, int32_t> (&a)[2])
{
  a[0] = axis_of<float, int32_t>(s, g.y, (int32_t)s.extent[1]);
  a[1] = axis_of<float, int32_t>(s, g.x, (int32_t)s.extent[2]);
  return g.x != g.x || g.y != g.y || (s.padding == QN_SAMPLE_REFLECTION && (fabsf(g.x) == INFINITY || fabsf(g.y) == INFINITY));
}

/* A point's cell, or -1 if it has no taps, and its axes. */
__device__ __forceinline__ int32_t cell_of(const problem &s, float2 g, axis<float, int32_t> (&a)[2])
{
  const bool there = !axes_of(s, g, a) && held_by(a[0]) && held_by(a[1]);
  return there ? (a[0].below + 1) * s.across + a[1].below + 1 : -1;
}
template <int BYTES> __global__ static void __launch_bounds__(SORT_THREADS, 1) sort_points(const __grid_constant__ problem s)
{
  extern __shared__ __align__(16) char shared[];
  __shared__ int32_t part[SORT_THREADS / 32];
  int32_t *cell = (int32_t *)shared, *list = cell + s.count, *held = list + s.count;
  uint32_t band;
  const int32_t n = (int32_t)cuda_quotient(blockIdx.x, s.by_bands, &band), first = (int32_t)band * s.band,
                cells = min(s.band, s.cells - first);
  for (int32_t k = threadIdx.x; k < cells; k += SORT_THREADS) held[k] = 0;
  __syncthreads();
  const source grid(s, n);
  int32_t before = 0;                     /* number of points in earlier bands */
#pragma unroll 1
  for (int32_t i = threadIdx.x; i < s.count; i += BATCH * SORT_THREADS) {
    float2 g[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) g[b] = grid.point(s, min(i + b * SORT_THREADS, s.count - 1));
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      if (i + b * SORT_THREADS >= s.count) break;
      axis<float, int32_t> a[2];
      const int32_t c = cell_of(s, g[b], a);
      before += c >= 0 && c < first;
      const bool mine = c >= first && c < first + cells;
      cell[i + b * SORT_THREADS] = mine ? c - first : -1;
      if (mine) atomicAdd(&held[c - first], 1);
    }
  }
  before = block_sum<SORT_THREADS>(before, part);
  /* exclusive scan of the counts; a thread has consecutive cells */
  const int32_t each = (cells + SORT_THREADS - 1) / SORT_THREADS, from = min((int32_t)threadIdx.x * each, cells),
                to = min(from + each, cells);
  int32_t sum = 0;
  for (int32_t k = from; k < to; k++) sum += held[k];
  int32_t total, start = block_before<SORT_THREADS>(sum, part, &total);
  int32_t *begin = s.begin + (int64_t)n * (s.cells + 1) + first;
  for (int32_t k = from; k < to; k++) {
    const int32_t v = held[k];
    held[k] = start, begin[k] = before + start;
    start += v;
  }
  if (threadIdx.x == 0 && first + cells == s.cells) begin[cells] = before + total;
  __syncthreads();
  /* lists the points of each cell, SORT_THREADS at a time; within such a round the order is arbitrary */
  for (int32_t first = 0; first < s.count; first += SORT_THREADS) {
    const int32_t i = first + (int32_t)threadIdx.x;
    if (i < s.count && cell[i] >= 0) list[atomicAdd(&held[cell[i]], 1)] = i;
    __syncthreads();
  }
  float4 *listed = s.listed + (int64_t)n * s.count + before;
  for (int32_t j = threadIdx.x; j < total; j += SORT_THREADS) {
    /* sorts within a round by number; held[c] is now the end of cell c */
    const int32_t i = list[j], c = cell[i], end = held[c], start = c ? held[c - 1] : 0, time = i / SORT_THREADS;
    int32_t at = j;
    for (int32_t k = j - 1; k >= start && list[k] / SORT_THREADS == time; k--) at -= list[k] > i;
    for (int32_t k = j + 1; k < end && list[k] / SORT_THREADS == time; k++) at += list[k] < i;
    axis<float, int32_t> a[2];
    cell_of(s, grid.point(s, i), a);
    uint32_t column, line = cuda_quotient((uint32_t)i, s.by_line, &column);
    listed[at] = make_float4(upper_of(s, a[1]), upper_of(s, a[0]),
                             __int_as_float((int32_t)(line * s.dy_stride[2] + column * s.dy_stride[3]) * BYTES), 0);
  }
}

template <int BYTES> __global__ static void __launch_bounds__(THREADS) gather_vectors(const __grid_constant__ problem s)
{
  constexpr int V = 16 / BYTES;
  const uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= s.units) return;
  const bool bf16 = s.dtype == QN_BF16;
  uint32_t lane, column, line, place = cuda_quotient(unit, s.lanes, &lane);
  const int32_t n = (int32_t)cuda_quotient(cuda_quotient(place, s.by_column, &column), s.by_image, &line);
  const int32_t *begin = s.begin + (int64_t)n * (s.cells + 1) + line * s.across + column;
  const int32_t b0 = begin[0], m0 = begin[1], e0 = begin[2], b1 = begin[s.across], m1 = begin[s.across + 1], e1 = begin[s.across + 2];
  const int32_t above = e0 - b0, all = above + e1 - b1;
  const float4 *listed = s.listed + (int64_t)n * s.count;
  const char *from = (const char *)s.dy + (n * s.dy_stride[0] + lane * V) * BYTES;
  float sum[V] = {};
  float4 seen[BATCH];
  auto look = [&](int32_t j) {
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      const int32_t k = min(j + i, all - 1);
      seen[i] = listed[k < above ? b0 + k : b1 + k - above];
    }
  };
  if (all) look(0);
#pragma unroll 1
  for (int32_t j = 0; j < all; j += BATCH) {
    float w[BATCH];
    uint4 q[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      const int32_t k = j + i;
      const float4 p = seen[i];
      const bool upper = k < above, left = upper ? b0 + k < m0 : b1 + k - above < m1;
      w[i] = (upper ? p.y : 1 - p.y) * (left ? p.x : 1 - p.x);
      if (k >= all) w[i] = 0;
      q[i] = __ldg((const uint4 *)(from + __float_as_int(p.z)));
    }
    look(j + BATCH);
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      if (w[i] == 0) continue;
      const uint32_t word[4] = { q[i].x, q[i].y, q[i].z, q[i].w };
#pragma unroll
      for (int e = 0; e < V; e++) {
        const uint32_t h = BYTES == 4 ? word[e % 4] : e & 1 ? word[e / 2] >> 16 : word[e / 2] & 0xffff;
        sum[e] = fmaf(w[i], element_of<BYTES>(h, bf16), sum[e]);
      }
    }
  }
  const int64_t to = n * s.dx_stride[0] + lane * V + line * s.dx_stride[2] + column * s.dx_stride[3];
#pragma unroll
  for (int e = 0; e < V; e += 4) {
    const float v[4] = { sum[e], sum[e + 1], sum[e + 2], sum[e + 3] };
    store(v, s.dx, s.dtype, to + e);
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
/* from: the value that points are computed from */
struct lists_state { problem s; bool mapped; int32_t from, dy, dx; uint32_t blocks, sorters, shared; kernel sort, gather; };

static uint64_t carve(problem *s, int64_t images, void *workspace)
{
  s->listed = (float4 *)workspace;
  s->begin = (int32_t *)(s->listed + images * s->count);
  return (uint64_t)images * ((uint64_t)s->count * sizeof(float4) + ((uint64_t)s->cells + 1) * sizeof(int32_t));
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  lists_state st = {};
  sampler of;
  qn_status status = sampler_of(&of, r, out);
  if (status) return status;
  const qn_node *op = of.op;
  if (op->op != QN_OP_GRID_SAMPLE_BACKWARD_DATA) return qn_refuse(out, "the gradient by the image", "dx", "", "%s", "another");
  st.dy = op->arg[0], st.dx = op->arg[2];
  const qn_value *dy = &r->value[st.dy], *grid = &r->value[op->arg[1]], *dx = &r->value[st.dx];
  if (dx->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "dy", "f32, f16 or bf16", "%s", "f64");
  if ((status = sampler_two_taps(op, out))) return status;
  if (dx->rank != 4) return qn_refuse(out, "images have two dims", "dx", "rank 4", "rank %d", dx->rank);
  const int bytes = dx->dtype == QN_F32 ? 4 : 2, v = 16 / bytes;
  const int64_t c = dx->dim[1], images = dx->dim[0], width = dx->dim[3], height = dx->dim[2], count = grid->dim[1] * grid->dim[2],
                cells = (width + 1) * (height + 1);
  bool vectors = dx->stride[1] == 1 && dy->stride[1] == 1 && c % v == 0 && dx->align >= 16 && dy->align >= 16;
  for (int d = 0; d < 4; d++) vectors = vectors && (d == 1 || (dy->stride[d] % v == 0 && dx->stride[d] % v == 0));
  if (!vectors) return qn_refuse(out, "vectors of channels", "dx", "channels innermost, of 16 bytes", "%lld channels", (long long)c);
  if (count > 1 << 20 || cells > 1 << 24 || (double)(count + cells) * (double)images > 1e9 || (double)qn_elements(dx) > 1e9 ||
      qn_extent(dy) > 1 << 29)
    return qn_refuse(out, "positions fit 32 bits", "dx", "fewer", "%lld", (long long)cells);
  /* bands: enough to fill the device, but every band scans all points */
  const int64_t room = (int64_t)r->device->shared_per_block - 1024 - 8 * count,
                least = room > 0 ? qn_ceil_div(4 * cells, room) : MOST_BANDS + 1;
  if (least > MOST_BANDS) return qn_refuse(out, "an image's points in shared memory", "grid", "fewer points", "%lld", (long long)count);
  problem *s = &st.s;
  (points &)*s = points_of(op->attr, grid, dx);
  st.mapped = of.mapped, st.from = sampler_points(&of, r, s);
  s->whole = !of.mapped && grid->dtype == QN_F32 && grid->align >= 8 && grid->stride[3] == 1 && grid->stride[2] == 2 &&
             grid->stride[1] == 2 * grid->dim[2] && grid->stride[0] % 2 == 0;
  s->count = (int32_t)count, s->cells = (int32_t)cells, s->across = (int32_t)(width + 1), s->dtype = dx->dtype;
  s->band = (int32_t)qn_ceil_div(cells, qn_max_i64(least, qn_min_i64(MOST_BANDS, qn_max_i64(1, r->device->units / images)))),
  s->bands = (int32_t)qn_ceil_div(cells, s->band);
  for (int d = 0; d < 4; d++) s->dy_stride[d] = dy->stride[d], s->dx_stride[d] = dx->stride[d];
  s->by_bands = cuda_divide_by(s->bands), s->by_line = cuda_divide_by(grid->dim[2]), s->lanes = cuda_divide_by(c / v);
  s->by_column = cuda_divide_by(width), s->by_image = cuda_divide_by(height);
  s->units = images * width * height * (c / v);
  st.sort = bytes == 4 ? (kernel)sort_points<4> : (kernel)sort_points<2>,
  st.gather = bytes == 4 ? (kernel)gather_vectors<4> : (kernel)gather_vectors<2>;
  st.sorters = (uint32_t)(images * s->bands), st.shared = (uint32_t)(4 * (2 * count + s->band)),
  st.blocks = direct_blocks(s->units, THREADS);
  out->workspace = carve(s, images, NULL);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status build(const qn_request *, qn_prepared *prepared)
{
  const lists_state *st = (const lists_state *)prepared->state;
  return st->shared > 47 << 10 ? cuda_allow_shared(st->sort) : QN_OK;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const lists_state *st = (const lists_state *)p->state;
  problem s = st->s;
  sampler_look(&s, st->mapped, launch->ptr[st->from]), s.dy = launch->ptr[st->dy], s.dx = launch->ptr[st->dx];
  carve(&s, st->sorters / s.bands, launch->workspace);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  void *arguments[] = { &s };
  qn_status status = cuda_check(cudaLaunchKernel(st->sort, dim3(st->sorters), dim3(SORT_THREADS), arguments, st->shared, stream),
                                "sampling_lists");
  return status ? status
                : cuda_check(cudaLaunchKernel(st->gather, dim3(st->blocks), dim3(THREADS), arguments, 0, stream), "sampling_lists");
}

#define ROW(op, pattern) { "lists", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
                        nullptr, pattern, prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_GRID_SAMPLE_BACKWARD_DATA, nullptr), ROW(QN_OP_AFFINE_GRID, &samplers_pattern) };
CUDA_ENGINES(sampling_lists) = { row, sizeof row / sizeof *row };
