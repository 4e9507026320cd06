/* sampling_sorted.cu -- gradient of grid_sample with respect to the image, any layout, 2-d and 3-d; deterministic: points are
 * sorted by the cell they fall into, then by number, and each pixel of dx gathers from the cells around it.
 *
 *   count    each point's cell, and the number of points of each cell
 *   begin    where each cell's points begin (scan)
 *   order    each cell's points, in arrival order, then sorted by number: a point counts the smaller numbers in its cell, so a
 *            cell of n points costs n^2, spread over n threads
 *   gather   dx = the sum of dy times weight over the points of 2^d cells
 *
 * A cell is the area between pixels: an extent of n has n + 1 of them, including those beyond the first and last pixel. All
 * channels share the sorting. direct: each pixel looks at every point of its image, in double. */
#include "engines.h"
#include "sampling.cuh"
#include "kit/sums.cuh"

enum { THREADS = 128, SCAN_THREADS = 256, SPAN = 16, CHUNK = SCAN_THREADS * SPAN, EACH = 8,
       BLOCK = 4096 };                    /* points of a running sum */

struct problem : points {
  share    of;
  const void *dy;
  void    *dx;
  uint32_t dtype;
  int64_t  images;
  int64_t  dy_stride[5], dx_stride[5];    /* N, C, spatial */
  int32_t  layers, cells, count;          /* 3-d: cells along the first dim, else 1; cells of all images; points of all images */
  int32_t *held, *begin, *total;          /* points in each cell; exclusive scan of that, cells + 1; total of each chunk of the scan */
  int32_t *cell, *came, *number;          /* per point: its cell or -1; its arrival number in the cell; points by cell */
  /* per point: weights of the upper taps, offset in an image of dy; the same sorted */
  float4  *seen, *sorted;
};

__device__ __forceinline__ int32_t cell_at(const problem &s, int32_t n, int32_t a, int32_t b, int32_t c)
{
  return ((n * s.layers + (s.layers > 1 ? a : 0)) * (int32_t)(s.extent[1] + 1) + b) * (int32_t)(s.extent[2] + 1) + c;
}

__global__ static void __launch_bounds__(THREADS) count_points(const __grid_constant__ problem s)
{
  int32_t i = blockIdx.x * THREADS + threadIdx.x, at[3], rest = i;
  if (i >= s.count) return;
#pragma unroll
  for (int d = 2; d >= 0; d--) at[d] = rest % (int32_t)s.point[d], rest /= (int32_t)s.point[d];
  axis<float, int32_t> a[3];
  bool there = !axes_of<float, int32_t>(s, rest, at, a);
  float high[3];
#pragma unroll
  for (int d = 0; d < 3; d++) {
    there &= held_by(a[d]);
    high[d] = upper_of(s, a[d]);
  }
  s.seen[i] = make_float4(high[0], high[1], high[2],
                          __int_as_float((int32_t)(at[0] * s.dy_stride[2] + at[1] * s.dy_stride[3] + at[2] * s.dy_stride[4])));
  int32_t cell = cell_at(s, rest, a[0].below + 1, a[1].below + 1, a[2].below + 1);
  s.cell[i] = there ? cell : -1;
  if (there) s.came[i] = atomicAdd(&s.held[cell], 1);
}

__global__ static void __launch_bounds__(SCAN_THREADS) total_cells(const __grid_constant__ problem s)
{
  __shared__ int32_t shared[SCAN_THREADS / 32];
  int32_t sum = 0;
  for (int32_t k = 0, i = blockIdx.x * CHUNK + threadIdx.x; k < SPAN; k++, i += SCAN_THREADS) sum += i < s.cells ? s.held[i] : 0;
  sum = block_sum<SCAN_THREADS>(sum, shared);
  if (threadIdx.x == 0) s.total[blockIdx.x] = sum;
}

/* The begin of each cell: points in chunks before, in threads before, in this thread's cells before. */
__global__ static void __launch_bounds__(SCAN_THREADS) begin_cells(const __grid_constant__ problem s)
{
  __shared__ int32_t shared[SCAN_THREADS / 32];
  int32_t before = 0, held[SPAN], sum = 0, i = blockIdx.x * CHUNK + threadIdx.x * SPAN;
  for (int32_t c = threadIdx.x; c < (int32_t)blockIdx.x; c += SCAN_THREADS) before += s.total[c];
  before = block_sum<SCAN_THREADS>(before, shared);
#pragma unroll
  for (int k = 0; k < SPAN; k++) sum += held[k] = i + k < s.cells ? s.held[i + k] : 0;
  int32_t all;
  before += block_before<SCAN_THREADS>(sum, shared, &all);
#pragma unroll
  for (int k = 0; k < SPAN; k++) {
    if (i + k <= s.cells) s.begin[i + k] = before;
    before += held[k];
  }
}

__global__ static void __launch_bounds__(THREADS) number_points(const __grid_constant__ problem s)
{
  int32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i < s.count && s.cell[i] >= 0) s.number[s.begin[s.cell[i]] + s.came[i]] = i;
}

__global__ static void __launch_bounds__(THREADS) order_points(const __grid_constant__ problem s)
{
  int32_t j = blockIdx.x * THREADS + threadIdx.x, smaller = 0;
  if (j >= s.begin[s.cells]) return;
  int32_t i = s.number[j], begin = s.begin[s.cell[i]], end = s.begin[s.cell[i] + 1];
  for (int32_t k = begin; k < end; k++) smaller += s.number[k] < i;
  s.sorted[begin + smaller] = s.seen[i];
}

/* Sums dy times weight for EACH channels of a pixel: single ones, or vectors of V (16 bytes). Two cells side by side are one run
 * of points, of which BATCH are loaded at once. */
template <int BYTES, int V>
__global__ static void __launch_bounds__(THREADS, V == 1 ? 8 : 9) gather_points(const __grid_constant__ problem s, int64_t units)
{
  constexpr int N = EACH / V, BATCH = 4, WORDS = V == 1 ? 1 : 4;
  int64_t unit = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (unit >= units) return;
  const bool bf16 = s.dtype == QN_BF16;
  unit_place<int32_t> u = unit_of<int32_t>(s.of, s.extent, (int32_t)unit);
  channels_of<int32_t, V> c(s.of, u.lane);
  const int many = (c.end - c.c + c.step - 1) / c.step;    /* how many of the N exist */
  const char *from = (const char *)s.dy + (u.n * s.dy_stride[0] + c.c * s.dy_stride[1]) * BYTES;
  const int64_t step = c.step * s.dy_stride[1] * BYTES;
  float sum[N][V] = {}, blocks[N][V] = {};
#pragma unroll 1
  /* the pairs of cells around this pixel: bits as of a tap, without the last dim */
  for (int k = s.dims == 2 ? 1 : 3; k >= 0; k--) {
    const int a = k >> 1, b = k & 1;
    const int32_t *begin = s.begin + cell_at(s, u.n, u.at[0] + 1 - a, u.at[1] + 1 - b, u.at[2]);
    const int32_t middle = begin[1], end = begin[2];
#pragma unroll 1
    for (int32_t j = begin[0]; j < end; j += BATCH) {
      if (j - begin[0] >= BLOCK && (j - begin[0]) % BLOCK == 0)
#pragma unroll
        for (int m = 0; m < EACH; m++) blocks[m / V][m % V] += sum[m / V][m % V], sum[m / V][m % V] = 0;
      float4 seen[BATCH];
      float w[BATCH];
      uint32_t q[BATCH][N][WORDS];
#pragma unroll
      for (int i = 0; i < BATCH; i++) seen[i] = s.sorted[min(j + i, end - 1)];
#pragma unroll
      for (int i = 0; i < BATCH; i++) {
        w[i] = (a ? seen[i].x : 1 - seen[i].x) * (b ? seen[i].y : 1 - seen[i].y) * (j + i < middle ? seen[i].z : 1 - seen[i].z);
        if (j + i >= end) w[i] = 0;
        const char *at = from + (int64_t)__float_as_int(seen[i].w) * BYTES;
#pragma unroll
        for (int m = 0; m < N; m++, at += step) {
          uint4 v = {};
          if (w[i] != 0 && m < many) {
            if (V == 1) v.x = fetch_element<BYTES>(at);
            else v = __ldg((const uint4 *)at);
          }
          q[i][m][0] = v.x;
          if (V > 1) q[i][m][1 % WORDS] = v.y, q[i][m][2 % WORDS] = v.z, q[i][m][3 % WORDS] = v.w;
        }
      }
#pragma unroll
      for (int i = 0; i < BATCH; i++)
#pragma unroll
        for (int m = 0; m < N; m++)
#pragma unroll
          for (int e = 0; e < V; e++) {
            const uint32_t word = q[i][m][e * BYTES / 4], h = BYTES == 4 ? word : e & 1 ? word >> 16 : word & 0xffff;
            sum[m][e] = fmaf(w[i], element_of<BYTES>(h, bf16), sum[m][e]);
          }
    }
  }
  const int64_t to = u.n * s.dx_stride[0] + c.c * s.dx_stride[1] + u.at[0] * s.dx_stride[2] + u.at[1] * s.dx_stride[3] +
                     u.at[2] * s.dx_stride[4];
#pragma unroll
  for (int m = 0; m < N; m++) {
    if (m >= many) break;
    constexpr int F = V == 1 ? 1 : 4;
#pragma unroll
    for (int e = 0; e < V; e += F) {
      float v[F];
#pragma unroll
      for (int i = 0; i < F; i++) v[i] = blocks[m][e + i] + sum[m][e + i];
      store(v, s.dx, s.dtype, to + m * c.step * s.dx_stride[1] + e);
    }
  }
}

__global__ static void __launch_bounds__(THREADS) gather_direct(const __grid_constant__ problem s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)THREADS + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * THREADS) {
    unit_place<int64_t> u = unit_of<int64_t>(s.of, s.extent, unit);
    double sum[1] = { 0 };
    int64_t at[3];
    for (at[0] = 0; at[0] < s.point[0]; at[0]++)
      for (at[1] = 0; at[1] < s.point[1]; at[1]++)
        for (at[2] = 0; at[2] < s.point[2]; at[2]++) {
          axis<double, int64_t> a[3];
          if (axes_of<double, int64_t>(s, u.n, at, a)) continue;
          double w = 1, v[1];
          for (int d = 0; d < 3; d++) {
            int64_t tap = u.at[d] - a[d].below;
            w *= tap == 0 ? a[d].weight[0] : tap == 1 ? a[d].weight[1] : 0;
          }
          if (w == 0) continue;
          load(v, s.dy, s.dtype,
               u.n * s.dy_stride[0] + u.lane * s.dy_stride[1] + at[0] * s.dy_stride[2] + at[1] * s.dy_stride[3] + at[2] * s.dy_stride[4]);
          sum[0] += w * v[0];
        }
    store(sum, s.dx, s.dtype,
          u.n * s.dx_stride[0] + u.lane * s.dx_stride[1] + u.at[0] * s.dx_stride[2] + u.at[1] * s.dx_stride[3] + u.at[2] * s.dx_stride[4]);
  }
}

__global__ static void __launch_bounds__(THREADS) gather_cubic(const __grid_constant__ problem s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)THREADS + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * THREADS) {
    unit_place<int64_t> u = unit_of<int64_t>(s.of, s.extent, unit);
    double sum[1] = { 0 };
    int64_t at[3];
    for (at[0] = 0; at[0] < s.point[0]; at[0]++)
      for (at[1] = 0; at[1] < s.point[1]; at[1]++)
        for (at[2] = 0; at[2] < s.point[2]; at[2]++) {
          cubic c[3];
          if (cubics_of(s, u.n, at, c)) continue;
          for (int k = 0; k < c[0].n * c[1].n * c[2].n; k++) {
            int64_t place[3];
            double v[1], w = cubic_tap(c, k, -1, place);
            if (w == 0 || place[0] != u.at[0] || place[1] != u.at[1] || place[2] != u.at[2]) continue;
            load(v, s.dy, s.dtype,
                 u.n * s.dy_stride[0] + u.lane * s.dy_stride[1] + at[0] * s.dy_stride[2] + at[1] * s.dy_stride[3] + at[2] * s.dy_stride[4]);
            sum[0] += w * v[0];
          }
        }
    store(sum, s.dx, s.dtype,
          u.n * s.dx_stride[0] + u.lane * s.dx_stride[1] + u.at[0] * s.dx_stride[2] + u.at[1] * s.dx_stride[3] + u.at[2] * s.dx_stride[4]);
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

struct sorted_state { problem s; int32_t dy, grid, dx; void (*gather)(problem, int64_t); int64_t units; };

static problem problem_of(const void *attr, const qn_value *dy, const qn_value *grid, const qn_value *dx)
{
  problem s = {};
  (points &)s = points_of(attr, grid, dx);
  s.dtype = dx->dtype;
  s.images = dx->dim[0];
  spatial_strides(dy, s.dy_stride);
  spatial_strides(dx, s.dx_stride);
  return s;
}

/* Lays out the workspace; returns its bytes. */
static uint64_t carve(problem *s, void *workspace)
{
  int64_t points = s->count, cells = s->cells, at = 8 * points;
  int32_t *base = (int32_t *)workspace, **part[] = { &s->held, &s->begin, &s->total, &s->cell, &s->came, &s->number };
  int64_t ints[] = { cells, cells + 1, cells / CHUNK + 1, points, points, points };
  s->seen = (float4 *)workspace, s->sorted = s->seen + points;
  for (int i = 0; i < 6; at += ints[i++]) *part[i] = base + at;
  return (uint64_t)at * sizeof(int32_t);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  sorted_state st = { {}, op->arg[0], op->arg[1], op->arg[2], nullptr, 0 };
  const qn_value *dy = &r->value[st.dy], *grid = &r->value[st.grid], *dx = &r->value[st.dx];
  if (dx->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "dy", "f32, f16 or bf16", "%s", "f64");
  qn_status status = sampler_two_taps(op, out);
  if (status) return status;
  problem *s = &st.s;
  *s = problem_of(op->attr, dy, grid, dx);
  int64_t c = dx->dim[1];
  double points = (double)qn_elements(dy) / (double)c, places = (double)qn_elements(dx) / (double)c,
         layers = s->dims == 3 ? (double)(s->extent[0] + 1) : 1,
         cells = (double)s->images * layers * (double)(s->extent[1] + 1) * (double)(s->extent[2] + 1);
  if (points > 1e8 || cells > 1e9 || places * (double)(c + EACH) > 1e9 || qn_extent(dy) > 0x7fffffff)
    return qn_refuse(out, "places and points are counted in 31 bits", "dx", "fewer", "%.0f", places > points ? places : points);
  s->layers = (int32_t)layers, s->count = (int32_t)points, s->cells = (int32_t)cells;
  bool last = c > 1 && dx->stride[1] == 1 && dy->stride[1] == 1, whole = last && dx->align >= 16 && dy->align >= 16;
  const int bytes = dx->dtype == QN_F32 ? 4 : 2, v = 16 / bytes;
  for (int d = 0; d < dx->rank; d++) whole = whole && (d == 1 ? c % v == 0 : dy->stride[d] % v == 0 && dx->stride[d] % v == 0);
  st.gather = bytes == 4 ? whole ? gather_points<4, 4> : gather_points<4, 1> : whole ? gather_points<2, 8> : gather_points<2, 1>;
  s->of = { last, c, qn_ceil_div(c, EACH), EACH };
  st.units = (int64_t)places * s->of.lanes;
  out->workspace = carve(s, NULL);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const sorted_state *st = (const sorted_state *)p->state;
  problem s = st->s;
  s.grid = launch->ptr[st->grid], s.dy = launch->ptr[st->dy], s.dx = launch->ptr[st->dx];
  carve(&s, launch->workspace);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  unsigned of_points = direct_blocks(s.count, THREADS), of_cells = (unsigned)(s.cells / CHUNK + 1),
           of_units = direct_blocks(st->units, THREADS);
  qn_status status = cuda_check(cudaMemsetAsync(s.held, 0, (size_t)s.cells * sizeof *s.held, stream), "grid_sample_backward_data");
  if (status) return status;
  count_points<<<of_points, THREADS, 0, stream>>>(s);
  total_cells<<<of_cells, SCAN_THREADS, 0, stream>>>(s);
  begin_cells<<<of_cells, SCAN_THREADS, 0, stream>>>(s);
  number_points<<<of_points, THREADS, 0, stream>>>(s);
  order_points<<<of_points, THREADS, 0, stream>>>(s);
  st->gather<<<of_units, THREADS, 0, stream>>>(s, st->units);
  return direct_launched("grid_sample_backward_data");
}

static qn_status run_direct(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  problem s = problem_of(k->attr, &k->value[0], &k->value[1], &k->value[2]);
  s.dy = launch->ptr[k->number[0]], s.grid = launch->ptr[k->number[1]], s.dx = launch->ptr[k->number[2]];
  s.of = { 0, k->value[2].dim[1], k->value[2].dim[1], 1 };
  int64_t units = qn_elements(&k->value[2]);
  const unsigned blocks = direct_blocks(units, THREADS);
  if (s.mode == QN_RESAMPLE_CUBIC) gather_cubic<<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(s, units);
  else gather_direct<<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(s, units);
  return direct_launched("grid_sample_backward_data");
}

static const qn_engine row[] = {
  { "sorted", QN_OP_GRID_SAMPLE_BACKWARD_DATA, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,
    nullptr, nullptr, prepare, nullptr, run, cuda_release },
  DIRECT_ROW(QN_OP_GRID_SAMPLE_BACKWARD_DATA, run_direct),
};
CUDA_ENGINES(sampling_sorted) = { row, sizeof row / sizeof *row };
