/* sampling.cu -- grid_sample (linear, nearest) and its gradient with respect to the grid, f16, bf16 and f32, optionally fused
 * with affine_grid.
 *
 *   y      the sum over a point's taps of the product of its weights times x; taps of weight 0 do not count
 *   dgrid  the sum over channels and taps of dy x times the other dims' weights and this dim's slope
 *
 * vectors: channels contiguous, two spatial dims. A block computes the taps of its points once into shared memory; then its
 *   threads take 16-byte vectors of channels of them.
 * points: any layout, also 3-d. A thread has a point and some of its channels, so that neighbouring threads sample neighbouring
 *   points; where channels are contiguous, LANES threads share a point. Partial slopes are added in a fixed order.
 * direct: one element or point a thread, in double, any size and dtype. */
#include "kit/divisor.h"
#include "engines.h"
#include "sampling.cuh"
#include "kit/vector.cuh"

enum { THREADS = 128, LANES = 8, PARTS = 4, PLACES = 64, ACROSS = 16 };

struct problem : points {
  int32_t  count;                         /* points of all images */
  cuda_divisor per_image, per_line, lanes;    /* points of an image, of a line; vectors of a point's channels */
  int32_t  group;                         /* vectors, backward: threads that share a point */
  cuda_divisor tiles[3];                  /* points: grid of blocks: tiles along the grid's dims, innermost first */
  int32_t  wide, high, each;              /* points: size of a tile; channels a thread */
  share    of;
  const void *x, *dy;
  void    *out;                           /* y, or dgrid */
  uint32_t x_dtype, dy_dtype, out_dtype;
  int64_t  x_stride[5], y_stride[5], out_stride[5];     /* N, C, spatial; dgrid: N, its dims, the coordinate */
};

/* Offset of tap k from the image's first element, and its weight; offset 0 if the weight is 0. */
template <class T, class I> __device__ __forceinline__ T tap_of(const problem &s, const axis<T, I> (&a)[3], int k, int64_t *at)
{
  T w = 1;
  *at = 0;
#pragma unroll
  for (int d = 0; d < 3; d++) {
    int b = tap_bit<I>(k, d);
    w *= a[d].weight[b];
    *at += (a[d].below + b) * s.x_stride[2 + d];
  }
  if (w == 0) *at = 0;
  return w;
}

/* The weight of tap k in the derivative along dim `by`. */
template <class T, class I> __device__ __forceinline__ T slope_of(const axis<T, I> (&a)[3], int k, int by)
{
  T p = a[by].in[tap_bit<I>(k, by)] ? (tap_bit<I>(k, by) ? a[by].slope : -a[by].slope) : T(0);
#pragma unroll
  for (int d = 0; d < 3; d++)
    if (d != by) p *= a[d].weight[tap_bit<I>(k, d)];
  return p;
}

/* ---- vectors ------------------------------------------------------------------------------------------------------- */

/* Of a block's points: offsets of the image, of each tap in it, and of y's pixel; W sets of weights. */
template <int W> struct taps {
  int64_t from[THREADS], to[THREADS];
  int4    at[THREADS];
  float4  weight[W][THREADS];
};

/* Fills in point first + threadIdx.x; false: there is none. */
template <int W> __device__ __forceinline__ bool find_taps(const problem &s, taps<W> &t, uint32_t first, int64_t *out)
{
  uint32_t i = first + threadIdx.x, line, at[3] = { 0, 0, 0 }, n;
  if (i >= (uint32_t)s.count) return false;
  n = cuda_quotient(i, s.per_image, &line);
  at[1] = cuda_quotient(line, s.per_line, &at[2]);
  const int32_t place[3] = { 0, (int32_t)at[1], (int32_t)at[2] };
  axis<float, int32_t> a[3];
  bool nan = axes_of<float, int32_t, 2>(s, (int32_t)n, place, a);
  float w[W][4];
  int32_t to[4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    bool any = false;
#pragma unroll
    for (int i = 0; i < W; i++) {
      w[i][k] = nan ? NAN : W == 1 ? a[1].weight[k >> 1] * a[2].weight[k & 1] : slope_of(a, k, 2 - i);
      any |= w[i][k] != 0;
    }
    to[k] = any && !nan ? (int32_t)((a[1].below + (k >> 1)) * s.x_stride[3] + (a[2].below + (k & 1)) * s.x_stride[4]) : 0;
  }
  t.from[threadIdx.x] = n * s.x_stride[0];
  t.to[threadIdx.x] = n * s.y_stride[0] + place[1] * s.y_stride[3] + place[2] * s.y_stride[4];
  t.at[threadIdx.x] = make_int4(to[0], to[1], to[2], to[3]);
#pragma unroll
  for (int i = 0; i < W; i++) t.weight[i][threadIdx.x] = make_float4(w[i][0], w[i][1], w[i][2], w[i][3]);
  if (out) *out = n * s.out_stride[0] + place[1] * s.out_stride[2] + place[2] * s.out_stride[3];
  return true;
}

/* The vectors at a point's four taps; zero where no weight uses them. */
template <uint32_t dtype, int W>
__device__ __forceinline__ void load_taps(uint4 (&q)[4], const float (&w)[W][4], const problem &s, const taps<W> &t, int p, int channel)
{
  const int4 at = t.at[p];
  const int32_t to[4] = { at.x, at.y, at.z, at.w };
  const int64_t from = t.from[p] + channel;
#pragma unroll
  for (int k = 0; k < 4; k++) q[k] = w[0][k] != 0 || w[W - 1][k] != 0 ? *vector_place<dtype>(s.x, from + to[k]) : make_uint4(0, 0, 0, 0);
}
template <int W> __device__ __forceinline__ void load_weights(float (&w)[W][4], const taps<W> &t, int p)
{
#pragma unroll
  for (int i = 0; i < W; i++) {
    float4 q = t.weight[i][p];
    w[i][0] = q.x, w[i][1] = q.y, w[i][2] = q.z, w[i][3] = q.w;
  }
}

template <uint32_t dtype> __global__ static void __launch_bounds__(THREADS) sample_vectors(const __grid_constant__ problem s)
{
  constexpr int V = vector_per_16<dtype>, BATCH = 2;
  __shared__ taps<1> t;
  const uint32_t first = blockIdx.x * THREADS, vectors = min(s.count - first, (uint32_t)THREADS) * s.lanes.by;
  find_taps(s, t, first, NULL);
  __syncthreads();
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < vectors; i += BATCH * THREADS) {
    uint32_t lane[BATCH], p[BATCH];
    float w[BATCH][1][4];
    uint4 q[BATCH][4];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      p[b] = cuda_quotient(min(i + b * THREADS, vectors - 1), s.lanes, &lane[b]);
      load_weights(w[b], t, p[b]);
      load_taps<dtype>(q[b], w[b], s, t, p[b], lane[b] * V);
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      float sum[V] = {};
#pragma unroll
      for (int k = 0; k < 4; k++) {
        float x[V];
        vector_open<dtype>(x, 0, q[b][k]);
#pragma unroll
        for (int e = 0; e < V; e++) sum[e] = fmaf(w[b][0][k], x[e], sum[e]);
      }
      if (i + b * THREADS < vectors) vector_store_whole<dtype>(sum, s.out, t.to[p[b]] + lane[b] * V);
    }
  }
}

template <uint32_t dtype> __global__ static void __launch_bounds__(THREADS) slope_vectors(const __grid_constant__ problem s)
{
  constexpr int V = vector_per_16<dtype>;
  __shared__ taps<2> t;
  __shared__ float2 slope[THREADS];
  const uint32_t first = blockIdx.x * THREADS;
  const int groups = THREADS / s.group, lane = threadIdx.x % s.group;
  int64_t out;
  const bool mine = find_taps(s, t, first, &out);
  __syncthreads();
#pragma unroll 1
  for (int p = threadIdx.x / s.group; p < THREADS; p += groups) {
    float sum[2] = { 0, 0 };
    float w[2][4];
    bool any = false;
    load_weights(w, t, p);
#pragma unroll
    for (int k = 0; k < 4; k++) any |= first + p < (uint32_t)s.count && (w[0][k] != 0 || w[1][k] != 0);
    for (int c = lane * V; any && c < (int)s.of.channels; c += s.group * V) {
      float g[V];
      uint4 q[4];
      load_taps<dtype>(q, w, s, t, p, c);
      vector_load_whole<dtype>(g, s.dy, t.to[p] + c);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        float x[V], by = 0;
        vector_open<dtype>(x, 0, q[k]);
#pragma unroll
        for (int e = 0; e < V; e++) by = fmaf(g[e], x[e], by);
#pragma unroll
        for (int i = 0; i < 2; i++)
          if (w[i][k] != 0) sum[i] = fmaf(w[i][k], by, sum[i]);
      }
    }
#pragma unroll 1
    for (int o = s.group / 2; o; o >>= 1) sum[0] += __shfl_xor_sync(~0u, sum[0], o), sum[1] += __shfl_xor_sync(~0u, sum[1], o);
    if (lane == 0) slope[p] = make_float2(sum[0], sum[1]);
  }
  __syncthreads();
  if (!mine) return;
  element_store(s.out, out, s.out_dtype, slope[threadIdx.x].x);
  element_store(s.out, out + s.out_stride[4], s.out_dtype, slope[threadIdx.x].y);
}

/* ---- points -------------------------------------------------------------------------------------------------------- */

/* A block's point, in a tile ACROSS wide. A warp covers 8x4 points: their taps are close together even if the grid is rotated. */
struct place_in_grid { int32_t n, at[3]; bool there; };

__device__ __forceinline__ place_in_grid place_of(const problem &s, uint32_t number)
{
  uint32_t x, y, z, tile = cuda_quotient(blockIdx.x, s.tiles[0], &x);
  place_in_grid p;
  p.n = (int32_t)cuda_quotient(cuda_quotient(tile, s.tiles[1], &y), s.tiles[2], &z);
  x = x * s.wide + (s.high == 1 ? number : number % 8 + number / 32 % 2 * 8);
  y = y * s.high + (s.high == 1 ? 0 : number / 8 % 4 + number / 64 * 4);
  p.at[0] = (int32_t)z, p.at[1] = (int32_t)y, p.at[2] = (int32_t)x;
  p.there = y < s.point[1] && x < s.point[2];
  return p;
}

/* The addresses of a point's taps in channel 0; used: those with a weight. */
template <int BYTES, int TAPS> struct corners {
  const char *from[TAPS];
  bool        used[TAPS];

  __device__ __forceinline__ void fetch(uint32_t (&q)[TAPS], int64_t channel) const
  {
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
      q[k] = 0;
      if (used[k]) q[k] = fetch_element<BYTES>(from[k] + channel);
    }
  }
};

template <int BYTES, int D> __global__ static void __launch_bounds__(THREADS) sample_points(const __grid_constant__ problem s)
{
  constexpr int TAPS = 1 << D, BATCH = 4;
  const place_in_grid p = place_of(s, s.of.last ? threadIdx.x / LANES : threadIdx.x);
  if (!p.there) return;
  const bool bf16 = s.x_dtype == QN_BF16;
  axis<float, int32_t> a[3];
  const float none = axes_of<float, int32_t, D>(s, p.n, p.at, a) ? NAN : 0;
  corners<BYTES, TAPS> t;
  float w[TAPS];
#pragma unroll
  for (int k = 0; k < TAPS; k++) {
    int64_t at;
    w[k] = tap_of<float, int32_t>(s, a, k, &at);
    t.used[k] = w[k] != 0, t.from[k] = (const char *)s.x + (p.n * s.x_stride[0] + at) * BYTES;
  }
  char *to = (char *)s.out + (p.n * s.y_stride[0] + p.at[0] * s.y_stride[2] + p.at[1] * s.y_stride[3] + p.at[2] * s.y_stride[4]) * BYTES;
  const int64_t down = s.x_stride[1] * BYTES, over = s.y_stride[1] * BYTES;
  const int step = s.of.last ? LANES : 1, end = min(((int)blockIdx.y + 1) * s.each, (int)s.of.channels);
  int c = (int)blockIdx.y * s.each + (s.of.last ? threadIdx.x % LANES : 0);
#pragma unroll 1
  for (; c < end; c += BATCH * step) {
    uint32_t q[BATCH][TAPS];
#pragma unroll
    for (int i = 0; i < BATCH; i++) t.fetch(q[i], min(c + i * step, end - 1) * down);
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      float sum = none;
#pragma unroll
      for (int k = 0; k < TAPS; k++) sum = fmaf(w[k], element_of<BYTES>(q[i][k], bf16), sum);
      if (c + i * step < end) put_element<BYTES>(to + (c + i * step) * over, sum, bf16);
    }
  }
}

/* First sums dy x over the channels for each tap, then combines these sums into the slopes. */
template <int BYTES, int D> __global__ static void __launch_bounds__(PARTS * PLACES) slope_points(const __grid_constant__ problem s)
{
  constexpr int TAPS = 1 << D, BATCH = 16 / TAPS;
  __shared__ float shared[D][PARTS * PLACES];
  const int part = s.of.last ? threadIdx.x % LANES : threadIdx.x / PLACES;
  const place_in_grid p = place_of(s, s.of.last ? threadIdx.x / LANES : threadIdx.x % PLACES);
  const bool bf16 = s.x_dtype == QN_BF16;
  axis<float, int32_t> a[3];
  const bool nan = p.there && axes_of<float, int32_t, D>(s, p.n, p.at, a);
  corners<BYTES, TAPS> t;
  float w[TAPS][D], by[TAPS] = {};
  bool any = false;
#pragma unroll
  for (int k = 0; k < TAPS; k++) {
    int64_t at = 0;
    t.used[k] = false;
#pragma unroll
    for (int d = 0; d < D; d++) t.used[k] |= p.there && (w[k][d] = slope_of(a, k, d + 3 - D)) != 0;
#pragma unroll
    for (int d = 0; d < 3; d++) at += t.used[k] ? (a[d].below + tap_bit<int32_t>(k, d)) * s.x_stride[2 + d] : 0;
    t.from[k] = (const char *)s.x + (p.n * s.x_stride[0] + at) * BYTES, any |= t.used[k];
  }
  const char *from = (const char *)s.dy +
                     (p.n * s.y_stride[0] + p.at[0] * s.y_stride[2] + p.at[1] * s.y_stride[3] + p.at[2] * s.y_stride[4]) * BYTES;
  const int64_t down = s.x_stride[1] * BYTES, over = s.y_stride[1] * BYTES;
  const int step = s.of.last ? LANES : 1, first = s.of.last ? part : part * s.each,
            end = !any      ? 0
                : s.of.last ? (int)s.of.channels
                            : min(first + s.each, (int)s.of.channels);
#pragma unroll 1
  for (int c = first; c < end; c += BATCH * step) {
    uint32_t q[BATCH][TAPS], g[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      g[i] = fetch_last<BYTES>(from + min(c + i * step, end - 1) * over);
      t.fetch(q[i], min(c + i * step, end - 1) * down);
    }
#pragma unroll
    for (int i = 0; i < BATCH; i++)
#pragma unroll
      for (int k = 0; k < TAPS; k++)
        if (t.used[k] && c + i * step < end) by[k] = fmaf(element_of<BYTES>(g[i], bf16), element_of<BYTES>(q[i][k], bf16), by[k]);
  }
  float sum[D] = {};
#pragma unroll
  for (int d = 0; d < D; d++)
#pragma unroll
    for (int k = 0; k < TAPS; k++) sum[d] += t.used[k] && w[k][d] != 0 ? w[k][d] * by[k] : 0;
#pragma unroll
  for (int d = 0; d < D; d++) shared[d][threadIdx.x] = sum[d];
  __syncthreads();
  if (!p.there || part) return;
  const int64_t to = p.n * s.out_stride[0] + p.at[0] * s.out_stride[1] + p.at[1] * s.out_stride[2] + p.at[2] * s.out_stride[3];
#pragma unroll
  for (int d = 0; d < D; d++) {
    if (d < D - s.dims) continue;
    float v = sum[d];
    for (int i = 1; i < (s.of.last ? LANES : PARTS); i++) v += shared[d][threadIdx.x + i * (s.of.last ? 1 : PLACES)];
    element_store(s.out, to + (D - 1 - d) * s.out_stride[4], s.out_dtype, nan ? NAN : v);
  }
}

/* ---- direct -------------------------------------------------------------------------------------------------------- */

__global__ static void __launch_bounds__(THREADS) sample_direct(const __grid_constant__ problem s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)THREADS + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * THREADS) {
    unit_place<int64_t> u = unit_of<int64_t>(s.of, s.point, unit);
    axis<double, int64_t> a[3];
    double sum[1] = { axes_of<double, int64_t>(s, u.n, u.at, a) ? NAN : 0 };
    for (int k = 0; k < 8; k++) {
      int64_t at;
      double v[1], w = tap_of<double, int64_t>(s, a, k, &at);
      if (w == 0) continue;
      load(v, s.x, s.x_dtype, u.n * s.x_stride[0] + u.lane * s.x_stride[1] + at);
      sum[0] += w * v[0];
    }
    store(sum, s.out, s.out_dtype,
          u.n * s.y_stride[0] + u.lane * s.y_stride[1] + u.at[0] * s.y_stride[2] + u.at[1] * s.y_stride[3] + u.at[2] * s.y_stride[4]);
  }
}

__global__ static void __launch_bounds__(THREADS) slope_direct(const __grid_constant__ problem s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)THREADS + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * THREADS) {
    unit_place<int64_t> u = unit_of<int64_t>(s.of, s.point, unit);
    axis<double, int64_t> a[3];
    const bool nan = axes_of<double, int64_t>(s, u.n, u.at, a);
    const int64_t there = u.n * s.y_stride[0] + u.at[0] * s.y_stride[2] + u.at[1] * s.y_stride[3] + u.at[2] * s.y_stride[4];
    double sum[3] = {};
    for (int k = 0; k < 8; k++)
      for (int d = 3 - s.dims; d < 3; d++) {
        const double w = slope_of(a, k, d);
        if (w == 0) continue;
        int64_t at = u.n * s.x_stride[0];
        for (int j = 0; j < 3; j++) at += (a[j].below + tap_bit<int64_t>(k, j)) * s.x_stride[2 + j];
        for (int64_t c = 0; c < s.of.channels; c++) {
          double v[1], g[1];
          load(v, s.x, s.x_dtype, at + c * s.x_stride[1]);
          load(g, s.dy, s.dy_dtype, there + c * s.y_stride[1]);
          sum[d] += w * v[0] * g[0];
        }
      }
    const int64_t to = u.n * s.out_stride[0] + u.at[0] * s.out_stride[1] + u.at[1] * s.out_stride[2] + u.at[2] * s.out_stride[3];
    for (int d = 3 - s.dims; d < 3; d++) {
      double v[1] = { nan ? (double)NAN : sum[d] };
      store(v, s.out, s.out_dtype, to + (2 - d) * s.out_stride[4]);
    }
  }
}

__global__ static void __launch_bounds__(THREADS) sample_cubic(const __grid_constant__ problem s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)THREADS + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * THREADS) {
    unit_place<int64_t> u = unit_of<int64_t>(s.of, s.point, unit);
    cubic c[3];
    double sum[1] = { cubics_of(s, u.n, u.at, c) ? NAN : 0 };
    for (int k = 0; k < c[0].n * c[1].n * c[2].n; k++) {
      int64_t place[3], from = u.n * s.x_stride[0] + u.lane * s.x_stride[1];
      double v[1], w = cubic_tap(c, k, -1, place);
      if (w == 0) continue;
      for (int d = 0; d < 3; d++) from += place[d] * s.x_stride[2 + d];
      load(v, s.x, s.x_dtype, from);
      sum[0] += w * v[0];
    }
    store(sum, s.out, s.out_dtype,
          u.n * s.y_stride[0] + u.lane * s.y_stride[1] + u.at[0] * s.y_stride[2] + u.at[1] * s.y_stride[3] + u.at[2] * s.y_stride[4]);
  }
}

__global__ static void __launch_bounds__(THREADS) slope_cubic(const __grid_constant__ problem s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)THREADS + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * THREADS) {
    unit_place<int64_t> u = unit_of<int64_t>(s.of, s.point, unit);
    cubic c[3];
    const bool nan = cubics_of(s, u.n, u.at, c);
    const int64_t there = u.n * s.y_stride[0] + u.at[0] * s.y_stride[2] + u.at[1] * s.y_stride[3] + u.at[2] * s.y_stride[4];
    const int64_t to = u.n * s.out_stride[0] + u.at[0] * s.out_stride[1] + u.at[1] * s.out_stride[2] + u.at[2] * s.out_stride[3];
    for (int by = 3 - s.dims; by < 3; by++) {
      double sum[1] = { nan ? NAN : 0 };
      for (int k = 0; k < c[0].n * c[1].n * c[2].n; k++) {
        int64_t place[3], from = u.n * s.x_stride[0];
        const double w = cubic_tap(c, k, by, place);
        if (w == 0) continue;
        for (int d = 0; d < 3; d++) from += place[d] * s.x_stride[2 + d];
        for (int64_t channel = 0; channel < s.of.channels; channel++) {
          double v[1], g[1];
          load(v, s.x, s.x_dtype, from + channel * s.x_stride[1]);
          load(g, s.dy, s.dy_dtype, there + channel * s.y_stride[1]);
          sum[0] += w * v[0] * g[0];
        }
      }
      store(sum, s.out, s.out_dtype, to + (2 - by) * s.out_stride[4]);
    }
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

/* from: the value that points are computed from */
struct sampling_state {
  problem s;
  bool mapped, forward;
  int32_t from, grid, x, dy, out;
  int64_t units;
  uint32_t groups, threads;
  const void *kernel;
};

static problem problem_of(const void *attr, bool forward, const qn_value *x, const qn_value *y, const qn_value *grid, const qn_value *out)
{
  problem s = {};
  (points &)s = points_of(attr, grid, x);
  s.x_dtype = x->dtype, s.dy_dtype = y->dtype, s.out_dtype = out->dtype;
  spatial_strides(x, s.x_stride);
  spatial_strides(y, s.y_stride);
  if (!forward) s.out_stride[0] = out->stride[0], s.out_stride[4] = out->stride[out->rank - 1];
  for (int d = 0; d < s.dims && !forward; d++) s.out_stride[4 - s.dims + d] = out->stride[1 + d];
  return s;
}

/* What both fast engines check first. */
static qn_status begin(sampling_state *st, const qn_request *r, qn_prepared *out)
{
  sampler of;
  qn_status status = sampler_of(&of, r, out);
  if (status) return status;
  const qn_node *op = of.op;
  if (op->op == QN_OP_GRID_SAMPLE_BACKWARD_DATA)
    return qn_refuse(out, "what is sampled, or the gradient by points", "dx", "", "%s", "another gradient");
  if ((status = sampler_two_taps(op, out))) return status;
  const bool forward = st->forward = op->op == QN_OP_GRID_SAMPLE;
  st->x = op->arg[forward ? 0 : 1], st->grid = op->arg[forward ? 1 : 2], st->dy = op->arg[forward ? 2 : 0],
  st->out = op->arg[forward ? 2 : 3];
  const qn_value *x = &r->value[st->x], *y = &r->value[st->dy], *grid = &r->value[st->grid];
  if (x->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "x", "f32, f16 or bf16", "%s", "f64");
  problem *s = &st->s;
  *s = problem_of(op->attr, forward, x, y, grid, &r->value[st->out]);
  st->mapped = of.mapped, st->from = sampler_points(&of, r, s);
  int64_t places = qn_elements(x) / x->dim[1], count = qn_elements(y) / y->dim[1], c = x->dim[1];
  if (places > 1 << 30 || (double)count * (double)(c + LANES) > 1 << 30)
    return qn_refuse(out, "positions fit 32 bits", "grid", "fewer points", "%lld", (long long)count);
  s->of.channels = c, s->count = (int32_t)count;
  s->per_image = cuda_divide_by(count / x->dim[0]), s->per_line = cuda_divide_by(s->point[2]);
  return QN_OK;
}

template <int BYTES> static const void *points_of(bool forward, bool deep)
{
  if (deep) return forward ? (const void *)sample_points<BYTES, 3> : (const void *)slope_points<BYTES, 3>;
  return forward ? (const void *)sample_points<BYTES, 2> : (const void *)slope_points<BYTES, 2>;
}

static qn_status prepare_points(const qn_request *r, qn_prepared *out)
{
  sampling_state st = {};
  qn_status status = begin(&st, r, out);
  if (status) return status;
  const qn_value *x = &r->value[st.x], *y = &r->value[st.dy];
  problem *s = &st.s;
  bool forward = st.forward, last = x->dim[1] > 1 && x->stride[1] == 1 && y->stride[1] == 1;
  int64_t c = x->dim[1];
  s->of.last = last;
  st.threads = forward ? THREADS : PARTS * PLACES;
  const int32_t places = (int32_t)st.threads / (last ? LANES : forward ? 1 : PARTS);        /* of a block */
  s->high = !last && s->point[1] >= 4 ? places / ACROSS : 1, s->wide = places / s->high;
  s->tiles[0] = cuda_divide_by(qn_ceil_div(s->point[2], s->wide)), s->tiles[1] = cuda_divide_by(qn_ceil_div(s->point[1], s->high)),
  s->tiles[2] = cuda_divide_by(s->point[0]);
  st.units = (int64_t)s->tiles[0].by * s->tiles[1].by * s->tiles[2].by * x->dim[0];
  /* the cost of a point's taps is shared by its channels: only as many threads per point as fill the device */
  s->each = (int32_t)(last       ? c
                      : !forward ? qn_ceil_div(c, PARTS)
                                 : qn_max_i64(qn_max_i64(qn_min_i64(c, 4), qn_ceil_div(c, 65535)), qn_ceil_div(c * s->count, 1 << 20)));
  st.groups = forward ? (uint32_t)qn_ceil_div(c, s->each) : 1;
  st.kernel = x->dtype == QN_F32 ? points_of<4>(forward, s->dims == 3) : points_of<2>(forward, s->dims == 3);
  return cuda_keep(out, &st, sizeof st);
}

template <uint32_t dtype> static const void *vectors_of(bool forward)
{
  return forward ? (const void *)sample_vectors<dtype> : (const void *)slope_vectors<dtype>;
}

static qn_status prepare_vectors(const qn_request *r, qn_prepared *out)
{
  sampling_state st = {};
  qn_status status = begin(&st, r, out);
  if (status) return status;
  const qn_value *x = &r->value[st.x], *y = &r->value[st.dy];
  const int v = x->dtype == QN_F32 ? 4 : 8;
  if (st.s.dims != 2) return qn_refuse(out, "images have two dims", "x", "rank 4", "rank %d", x->rank);
  if (y->dtype != x->dtype) return qn_refuse(out, "one dtype", "y", qn_kit_name(x->dtype), "%s", qn_kit_name(y->dtype));
  if (x->stride[1] != 1 || y->stride[1] != 1 || x->dim[1] % v)
    return qn_refuse(out, "vectors of channels", "x", "channels innermost, of 16 bytes", "%lld channels", (long long)x->dim[1]);
  for (int d = 0; d < 4; d++)
    if (x->align < 16 || y->align < 16 || (d != 1 && (x->stride[d] % v || y->stride[d] % v)))
      return qn_refuse(out, "vectors are aligned", "x", "multiples of 16 bytes", "%s", "other strides");
  if (qn_extent(x) > 0x7fffffff) return qn_refuse(out, "number of positions", "x", "below 2^31", "%lld", (long long)qn_extent(x));
  bool forward = st.forward;
  st.s.lanes = cuda_divide_by(x->dim[1] / v);
  for (st.s.group = 1; st.s.group < 32 && st.s.group < (int32_t)st.s.lanes.by;) st.s.group *= 2;
  st.units = qn_ceil_div(st.s.count, THREADS), st.groups = 1, st.threads = THREADS;
  st.kernel = x->dtype == QN_F32  ? vectors_of<QN_F32>(forward)
            : x->dtype == QN_BF16 ? vectors_of<QN_BF16>(forward)
                                  : vectors_of<QN_F16>(forward);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const sampling_state *st = (const sampling_state *)p->state;
  problem s = st->s;
  sampler_look(&s, st->mapped, launch->ptr[st->from]), s.x = launch->ptr[st->x], s.dy = launch->ptr[st->dy], s.out = launch->ptr[st->out];
  void *arguments[] = { &s };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3((unsigned)st->units, st->groups), dim3(st->threads), arguments, 0,
                                     (cudaStream_t)launch->stream),
                    "sampling");
}

static qn_status run_direct(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  bool forward = k->op == QN_OP_GRID_SAMPLE;
  int x = forward ? 0 : 1, grid = forward ? 1 : 2, y = forward ? 2 : 0, out = forward ? 2 : 3;
  problem s = problem_of(k->attr, forward, &k->value[x], &k->value[y], &k->value[grid], &k->value[out]);
  s.x = launch->ptr[k->number[x]], s.grid = launch->ptr[k->number[grid]], s.dy = launch->ptr[k->number[y]],
  s.out = launch->ptr[k->number[out]];
  int64_t c = k->value[x].dim[1];
  s.of = { 0, c, forward ? c : 1, forward ? 1 : c };
  const qn_value *points = &k->value[out];                 /* backward: without the coordinate dim */
  int64_t units = qn_elements(points) / (forward ? 1 : points->dim[points->rank - 1]);
  unsigned blocks = direct_blocks(units, THREADS);
  if (s.mode == QN_RESAMPLE_CUBIC) {
    if (forward) sample_cubic<<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(s, units);
    else slope_cubic<<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(s, units);
  } else if (forward) sample_direct<<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(s, units);
  else slope_direct<<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(s, units);
  return direct_launched("sampling");
}

#define ROW(name, pattern, op, prepare) \
  { name, op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
    nullptr, pattern, prepare, nullptr, run, cuda_release }
#define TUNED(op, pattern) ROW("vectors", pattern, op, prepare_vectors), ROW("points", pattern, op, prepare_points)
#define ROWS(op) TUNED(op, nullptr), DIRECT_ROW(op, run_direct)
static const qn_engine row[] = { ROWS(QN_OP_GRID_SAMPLE), ROWS(QN_OP_GRID_SAMPLE_BACKWARD_GRID), TUNED(QN_OP_AFFINE_GRID, &samplers_pattern) };
CUDA_ENGINES(sampling) = { row, sizeof row / sizeof *row };
