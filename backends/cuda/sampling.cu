/* sampling.cu -- an image at the points of a grid, and the gradient by the points.
 *
 *   y      the sum over a point's taps of the product of each dim's weight times x; a tap of weight 0 does not count
 *   dgrid  the sum over channels and taps of dy x times the other dims' weights and this dim's slope
 *
 * vectors: channels are innermost: what a point's taps are is worked out once by a thread, for those that have 16 bytes of its channels each.
 * points: a point and some of its channels by a thread; where channels are innermost eight threads share them, and add up by shuffles.
 * direct: one element, or point, by a thread in double, for any size. */
#include "divisor.h"
#include "engines.h"
#include "sampling.cuh"
#include "vector.cuh"

enum { THREADS = 128, LANES = 8 };

struct problem : points {
  int32_t  count;                         /* points of all images */
  cuda_divisor per_image, per_line, lanes;    /* points of an image and of a line of it; vectors of a point's channels */
  int32_t  group;                         /* of vectors: threads of a point in its slopes */
  share    of;
  const void *x, *dy;
  void    *out;                           /* y, or dgrid */
  uint32_t x_dtype, dy_dtype, out_dtype;
  int64_t  x_stride[5], y_stride[5], out_stride[5];     /* N, C, spatial; of dgrid N, its dims, its coordinates */
};

/* Elements from an image's first to tap k's, and the tap's weight; where that is 0, from the first to itself. */
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

/* The weight of tap k in the slope along dim `by`. */
template <class T, class I> __device__ __forceinline__ T slope_of(const axis<T, I> (&a)[3], int k, int by)
{
  T p = a[by].in[tap_bit<I>(k, by)] ? (tap_bit<I>(k, by) ? a[by].slope : -a[by].slope) : T(0);
#pragma unroll
  for (int d = 0; d < 3; d++)
    if (d != by) p *= a[d].weight[tap_bit<I>(k, d)];
  return p;
}

/* ---- vectors ------------------------------------------------------------------------------------------------------- */

/* A block's points: elements from x's first to an image's and on to each tap, and to what y has of the point; weights W times. */
template <int W> struct taps {
  int64_t from[THREADS], to[THREADS];
  int4    at[THREADS];
  float4  weight[W][THREADS];
};

/* Point first + threadIdx.x; false: there is none. */
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

/* The vector at each tap of a point, where a weight is not 0. */
template <uint32_t dtype, int W> __device__ __forceinline__ void load_taps(uint4 (&q)[4], const float (&w)[W][4], const problem &s, const taps<W> &t, int p, int channel)
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
  constexpr int V = vector_per_16<dtype>;
  __shared__ taps<1> t;
  const uint32_t first = blockIdx.x * THREADS, vectors = min(s.count - first, (uint32_t)THREADS) * s.lanes.by;
  find_taps(s, t, first, NULL);
  __syncthreads();
#pragma unroll 2
  for (uint32_t i = threadIdx.x; i < vectors; i += THREADS) {
    uint32_t lane, p = cuda_quotient(i, s.lanes, &lane);
    float w[1][4], sum[V] = {};
    uint4 q[4];
    load_weights(w, t, p);
    load_taps<dtype>(q, w, s, t, p, lane * V);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      float x[V];
      vector_open<dtype>(x, 0, q[k]);
#pragma unroll
      for (int e = 0; e < V; e++) sum[e] = fmaf(w[0][k], x[e], sum[e]);
    }
    vector_store_whole<dtype>(sum, s.out, t.to[p] + lane * V);
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
    const bool there = first + p < (uint32_t)s.count;
    for (int c = lane * V; there && c < (int)s.of.channels; c += s.group * V) {
      float w[2][4], g[V];
      uint4 q[4];
      load_weights(w, t, p);
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

template <class T, class I, int D> __global__ static void __launch_bounds__(THREADS) sample(const __grid_constant__ problem s, int64_t units)
{
  constexpr int TAPS = 1 << D;
  for (int64_t unit = blockIdx.x * (int64_t)THREADS + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * THREADS) {
    unit_place<I> u = unit_of<I>(s.of, s.point, (I)unit);
    axis<T, I> a[3];
    bool nan = axes_of<T, I, D>(s, u.n, u.at, a);
    T w[TAPS];
    int64_t at[TAPS], from = u.n * s.x_stride[0];
    int64_t to = u.n * s.y_stride[0] + u.at[0] * s.y_stride[2] + u.at[1] * s.y_stride[3] + u.at[2] * s.y_stride[4];
#pragma unroll
    for (int k = 0; k < TAPS; k++) w[k] = tap_of<T, I>(s, a, k, &at[k]);
    channels_of<I, 1> c(s.of, u.lane);
#pragma unroll 2
    for (; c.c < c.end; c.c += c.step) {
      T v[TAPS][1], sum[1] = { nan ? T(NAN) : T(0) };
#pragma unroll
      for (int k = 0; k < TAPS; k++) load(v[k], s.x, s.x_dtype, from + c.c * s.x_stride[1] + at[k]);
#pragma unroll
      for (int k = 0; k < TAPS; k++) sum[0] += w[k] != 0 ? w[k] * v[k][0] : T(0);
      store(sum, s.out, s.out_dtype, to + c.c * s.y_stride[1]);
    }
  }
}

template <class T, class I, int D> __global__ static void __launch_bounds__(THREADS) sample_slopes(const __grid_constant__ problem s, int64_t units)
{
  constexpr int TAPS = 1 << D;
  for (int64_t first = blockIdx.x * (int64_t)THREADS; first < units; first += (int64_t)gridDim.x * THREADS) {
    int64_t unit = first + threadIdx.x;
    bool mine = unit < units;
    unit_place<I> u = unit_of<I>(s.of, s.point, mine ? (I)unit : 0);
    axis<T, I> a[3];
    bool nan = axes_of<T, I, D>(s, u.n, u.at, a);
    T w[TAPS][D], sum[D];
    int64_t at[TAPS], from = u.n * s.x_stride[0];
    int64_t there = u.n * s.y_stride[0] + u.at[0] * s.y_stride[2] + u.at[1] * s.y_stride[3] + u.at[2] * s.y_stride[4];
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
      bool any = false;
#pragma unroll
      for (int by = 3 - D; by < 3; by++) any |= (w[k][by - 3 + D] = slope_of(a, k, by)) != 0;
      at[k] = 0;
#pragma unroll
      for (int d = 0; d < 3; d++) at[k] += any ? (a[d].below + tap_bit<I>(k, d)) * s.x_stride[2 + d] : 0;
    }
#pragma unroll
    for (int d = 0; d < D; d++) sum[d] = 0;
    channels_of<I, 1> c(s.of, u.lane);
#pragma unroll 2
    for (; mine && c.c < c.end; c.c += c.step) {
      T v[TAPS][1], g[1];
      load(g, s.dy, s.dy_dtype, there + c.c * s.y_stride[1]);
#pragma unroll
      for (int k = 0; k < TAPS; k++) load(v[k], s.x, s.x_dtype, from + c.c * s.x_stride[1] + at[k]);
#pragma unroll
      for (int k = 0; k < TAPS; k++)
#pragma unroll
        for (int d = 0; d < D; d++) sum[d] += w[k][d] != 0 ? w[k][d] * (v[k][0] * g[0]) : T(0);
    }
    if (s.of.last)
#pragma unroll
      for (int d = 0; d < D; d++)
#pragma unroll
        for (int o = LANES / 2; o; o >>= 1) sum[d] += __shfl_xor_sync(~0u, sum[d], o);
    if (!mine || u.lane) continue;
    int64_t to = u.n * s.out_stride[0] + u.at[0] * s.out_stride[1] + u.at[1] * s.out_stride[2] + u.at[2] * s.out_stride[3];
#pragma unroll
    for (int d = 0; d < D; d++) {
      T v[1] = { nan ? T(NAN) : sum[d] };
      if (d >= D - s.dims) store(v, s.out, s.out_dtype, to + (D - 1 - d) * s.out_stride[4]);
    }
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

struct sampling_state { problem s; int32_t grid, x, dy, out; int64_t units; const void *kernel; };

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

template <class T, class I, int D> static qn_status launch_one(const problem &s, bool forward, int64_t units, void *stream)
{
  unsigned blocks = direct_blocks(units, THREADS);
  if (forward) sample<T, I, D><<<blocks, THREADS, 0, (cudaStream_t)stream>>>(s, units);
  else sample_slopes<T, I, D><<<blocks, THREADS, 0, (cudaStream_t)stream>>>(s, units);
  return direct_launched("sampling");
}

/* What the fast engines ask first. */
static qn_status begin(sampling_state *st, const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  bool forward = op->op == QN_OP_GRID_SAMPLE;
  st->x = op->arg[forward ? 0 : 1], st->grid = op->arg[forward ? 1 : 2], st->dy = op->arg[forward ? 2 : 0], st->out = op->arg[forward ? 2 : 3];
  const qn_value *x = &r->value[st->x], *y = &r->value[st->dy], *grid = &r->value[st->grid];
  if (x->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  problem *s = &st->s;
  *s = problem_of(op->attr, forward, x, y, grid, &r->value[st->out]);
  int64_t places = qn_elements(x) / x->dim[1], count = qn_elements(y) / y->dim[1], c = x->dim[1];
  if (places > 1 << 30 || (double)count * (double)(c + LANES) > 1 << 30) return qn_refuse(out, "places are counted in 31 bits", "grid", "fewer points", "%lld", (long long)count);
  s->of.channels = c, s->count = (int32_t)count;
  s->per_image = cuda_divide_by(count / x->dim[0]), s->per_line = cuda_divide_by(s->point[2]);
  return QN_OK;
}

static qn_status prepare_points(const qn_request *r, qn_prepared *out)
{
  sampling_state st = {};
  qn_status status = begin(&st, r, out);
  if (status) return status;
  const qn_value *x = &r->value[st.x], *y = &r->value[st.dy];
  bool forward = r->op[0].op == QN_OP_GRID_SAMPLE, last = x->dim[1] > 1 && x->stride[1] == 1 && y->stride[1] == 1;
  /* enough threads to fill a device, each with as many channels as that leaves: what a point costs is shared by them */
  int64_t c = x->dim[1], lanes = last ? (int64_t)LANES : forward ? qn_min_i64(qn_ceil_div(c, 4), qn_max_i64(1, (1 << 20) / st.s.count)) : 1;
  st.s.of = { last, c, lanes, qn_ceil_div(c, lanes) };
  st.units = st.s.count * lanes;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run_points(const qn_prepared *p, const qn_launch *launch)
{
  const sampling_state *st = (const sampling_state *)p->state;
  bool forward = p->engine->op == QN_OP_GRID_SAMPLE;
  problem s = st->s;
  s.grid = launch->ptr[st->grid], s.x = launch->ptr[st->x], s.dy = launch->ptr[st->dy], s.out = launch->ptr[st->out];
  return s.dims == 3 ? launch_one<float, int32_t, 3>(s, forward, st->units, launch->stream) : launch_one<float, int32_t, 2>(s, forward, st->units, launch->stream);
}

template <uint32_t dtype> static const void *vectors_of(bool forward) { return forward ? (const void *)sample_vectors<dtype> : (const void *)slope_vectors<dtype>; }

static qn_status prepare_vectors(const qn_request *r, qn_prepared *out)
{
  sampling_state st = {};
  qn_status status = begin(&st, r, out);
  if (status) return status;
  const qn_value *x = &r->value[st.x], *y = &r->value[st.dy];
  const int v = x->dtype == QN_F32 ? 4 : 8;
  if (st.s.dims != 2) return qn_refuse(out, "images have two dims", "x", "rank 4", "rank %d", x->rank);
  if (y->dtype != x->dtype) return qn_refuse(out, "one dtype", "y", qn_kit_name(x->dtype), "%s", qn_kit_name(y->dtype));
  if (x->stride[1] != 1 || y->stride[1] != 1 || x->dim[1] % v) return qn_refuse(out, "vectors of channels", "x", "channels innermost, of 16 bytes", "%lld channels", (long long)x->dim[1]);
  for (int d = 0; d < 4; d++)
    if (x->align < 16 || y->align < 16 || (d != 1 && (x->stride[d] % v || y->stride[d] % v))) return qn_refuse(out, "vectors are aligned", "x", "multiples of 16 bytes", "%s", "others");
  if (qn_extent(x) > 0x7fffffff) return qn_refuse(out, "places are counted in 31 bits", "x", "fewer", "%lld", (long long)qn_extent(x));
  bool forward = r->op[0].op == QN_OP_GRID_SAMPLE;
  st.s.lanes = cuda_divide_by(x->dim[1] / v);
  for (st.s.group = 1; st.s.group < 32 && st.s.group < (int32_t)st.s.lanes.by;) st.s.group *= 2;
  st.units = qn_ceil_div(st.s.count, THREADS);
  st.kernel = x->dtype == QN_F32 ? vectors_of<QN_F32>(forward) : x->dtype == QN_BF16 ? vectors_of<QN_BF16>(forward) : vectors_of<QN_F16>(forward);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run_vectors(const qn_prepared *p, const qn_launch *launch)
{
  const sampling_state *st = (const sampling_state *)p->state;
  problem s = st->s;
  s.grid = launch->ptr[st->grid], s.x = launch->ptr[st->x], s.dy = launch->ptr[st->dy], s.out = launch->ptr[st->out];
  void *arguments[] = { &s };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3((unsigned)st->units), dim3(THREADS), arguments, 0, (cudaStream_t)launch->stream), "sampling");
}

static qn_status run_direct(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  bool forward = k->op == QN_OP_GRID_SAMPLE;
  int x = forward ? 0 : 1, grid = forward ? 1 : 2, y = forward ? 2 : 0, out = forward ? 2 : 3;
  problem s = problem_of(k->attr, forward, &k->value[x], &k->value[y], &k->value[grid], &k->value[out]);
  s.x = launch->ptr[k->number[x]], s.grid = launch->ptr[k->number[grid]], s.dy = launch->ptr[k->number[y]], s.out = launch->ptr[k->number[out]];
  int64_t c = k->value[x].dim[1];
  s.of = { 0, c, forward ? c : 1, forward ? 1 : c };
  int64_t units = qn_elements(&k->value[y]) / (forward ? 1 : c);
  return launch_one<double, int64_t, 3>(s, forward, units, launch->stream);
}

#define ROW(name, op, prepare, run) \
  { name, op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, prepare, nullptr, run, cuda_release }
#define ROWS(op) ROW("vectors", op, prepare_vectors, run_vectors), ROW("points", op, prepare_points, run_points), DIRECT_ROW(op, run_direct)
static const qn_engine row[] = { ROWS(QN_OP_GRID_SAMPLE), ROWS(QN_OP_GRID_SAMPLE_BACKWARD_GRID) };
const qn_engine_list cuda_sampling_list = { row, sizeof row / sizeof *row };
