/* sampling.cu -- an image at the points of a grid, and the gradient by the points.
 *
 *   y      the sum over a point's taps of the product of each dim's weight times x; a tap of weight 0 does not count
 *   dgrid  the sum over channels and taps of dy x times the other dims' weights and this dim's slope
 *
 * points: a point and some of its channels by a thread; where channels are innermost eight threads share them, and add up by shuffles.
 * direct: one element, or point, by a thread in double, for any size. */
#include "engines.h"
#include "sampling.cuh"

enum { THREADS = 128, LANES = 8 };

struct problem : points {
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

template <class T, class I, int V, int D> __global__ static void __launch_bounds__(THREADS) sample(const __grid_constant__ problem s, int64_t units)
{
  constexpr int TAPS = 1 << D;
  for (int64_t unit = blockIdx.x * (int64_t)THREADS + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * THREADS) {
    unit_place<I> u = unit_of<I>(s.of, s.point, (I)unit);
    axis<T, I> a[3];
    bool nan = axes_of<T, I>(s, u.n, u.at, a);
    T w[TAPS];
    int64_t at[TAPS], from = u.n * s.x_stride[0];
    int64_t to = u.n * s.y_stride[0] + u.at[0] * s.y_stride[2] + u.at[1] * s.y_stride[3] + u.at[2] * s.y_stride[4];
#pragma unroll
    for (int k = 0; k < TAPS; k++) w[k] = tap_of<T, I>(s, a, k, &at[k]);
    channels_of<I, V> c(s.of, u.lane);
#pragma unroll 2
    for (; c.c < c.end; c.c += c.step) {
      T v[TAPS][V], sum[V];
#pragma unroll
      for (int k = 0; k < TAPS; k++) load(v[k], s.x, s.x_dtype, from + c.c * s.x_stride[1] + at[k]);
#pragma unroll
      for (int i = 0; i < V; i++) {
        sum[i] = nan ? T(NAN) : T(0);
#pragma unroll
        for (int k = 0; k < TAPS; k++) sum[i] += w[k] != 0 ? w[k] * v[k][i] : T(0);
      }
      store(sum, s.out, s.out_dtype, to + c.c * s.y_stride[1]);
    }
  }
}

template <class T, class I, int V, int D> __global__ static void __launch_bounds__(THREADS) sample_slopes(const __grid_constant__ problem s, int64_t units)
{
  constexpr int TAPS = 1 << D;
  for (int64_t first = blockIdx.x * (int64_t)THREADS; first < units; first += (int64_t)gridDim.x * THREADS) {
    int64_t unit = first + threadIdx.x;
    bool mine = unit < units;
    unit_place<I> u = unit_of<I>(s.of, s.point, mine ? (I)unit : 0);
    axis<T, I> a[3];
    bool nan = axes_of<T, I>(s, u.n, u.at, a);
    T w[TAPS][D], sum[D];
    int64_t at[TAPS], from = u.n * s.x_stride[0];
    int64_t there = u.n * s.y_stride[0] + u.at[0] * s.y_stride[2] + u.at[1] * s.y_stride[3] + u.at[2] * s.y_stride[4];
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
      bool any = false;
#pragma unroll
      for (int by = 3 - D; by < 3; by++) {
        T p = a[by].in[tap_bit<I>(k, by)] ? (tap_bit<I>(k, by) ? a[by].slope : -a[by].slope) : T(0);
#pragma unroll
        for (int d = 0; d < 3; d++)
          if (d != by) p *= a[d].weight[tap_bit<I>(k, d)];
        w[k][by - 3 + D] = p;
        any |= p != 0;
      }
      at[k] = 0;
#pragma unroll
      for (int d = 0; d < 3; d++) at[k] += any ? (a[d].below + tap_bit<I>(k, d)) * s.x_stride[2 + d] : 0;
    }
#pragma unroll
    for (int d = 0; d < D; d++) sum[d] = 0;
    channels_of<I, V> c(s.of, u.lane);
#pragma unroll 2
    for (; mine && c.c < c.end; c.c += c.step) {
      T v[TAPS][V], g[V];
      load(g, s.dy, s.dy_dtype, there + c.c * s.y_stride[1]);
#pragma unroll
      for (int k = 0; k < TAPS; k++) load(v[k], s.x, s.x_dtype, from + c.c * s.x_stride[1] + at[k]);
#pragma unroll
      for (int k = 0; k < TAPS; k++)
#pragma unroll
        for (int d = 0; d < D; d++)
#pragma unroll
          for (int i = 0; i < V; i++) sum[d] += w[k][d] != 0 ? w[k][d] * (v[k][i] * g[i]) : T(0);
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

struct sampling_state { problem s; int32_t grid, x, dy, out, vector; int64_t units; };

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

template <class T, class I, int V, int D> static qn_status launch_one(const problem &s, bool forward, int64_t units, void *stream)
{
  unsigned blocks = direct_blocks(units, THREADS);
  if (forward) sample<T, I, V, D><<<blocks, THREADS, 0, (cudaStream_t)stream>>>(s, units);
  else sample_slopes<T, I, V, D><<<blocks, THREADS, 0, (cudaStream_t)stream>>>(s, units);
  return direct_launched("sampling");
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  bool forward = op->op == QN_OP_GRID_SAMPLE;
  sampling_state st = {};
  st.x = op->arg[forward ? 0 : 1], st.grid = op->arg[forward ? 1 : 2], st.dy = op->arg[forward ? 2 : 0], st.out = op->arg[forward ? 2 : 3];
  const qn_value *x = &r->value[st.x], *y = &r->value[st.dy], *grid = &r->value[st.grid];
  if (x->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  st.s = problem_of(op->attr, forward, x, y, grid, &r->value[st.out]);
  int64_t places = qn_elements(x) / x->dim[1], points = qn_elements(y) / y->dim[1], c = x->dim[1];
  if (places > 1 << 30 || (double)points * (double)(c + LANES) > 1 << 30) return qn_refuse(out, "places are counted in 31 bits", "grid", "fewer points", "%lld", (long long)points);
  bool last = c > 1 && x->stride[1] == 1 && y->stride[1] == 1, whole = last && x->rank == 4 && c % 4 == 0 && x->align >= 16 && y->align >= 16;
  for (int d = 0; d < x->rank; d++)
    if (d != 1) whole = whole && x->stride[d] % 4 == 0 && y->stride[d] % 4 == 0;
  st.vector = whole ? 4 : 1;
  /* enough threads to fill a device, each with as many channels as that leaves: what a point costs is shared by them */
  int64_t lanes = last ? LANES : forward ? qn_min_i64(qn_ceil_div(c, 4), qn_max_i64(1, (1 << 20) / points)) : 1;
  st.s.of = { last, c, lanes, qn_ceil_div(c, lanes) };
  st.units = points * lanes;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const sampling_state *st = (const sampling_state *)p->state;
  bool forward = p->engine->op == QN_OP_GRID_SAMPLE;
  problem s = st->s;
  s.grid = launch->ptr[st->grid], s.x = launch->ptr[st->x], s.dy = launch->ptr[st->dy], s.out = launch->ptr[st->out];
  if (s.dims == 3) return launch_one<float, int32_t, 1, 3>(s, forward, st->units, launch->stream);
  return st->vector == 4 ? launch_one<float, int32_t, 4, 2>(s, forward, st->units, launch->stream)
                         : launch_one<float, int32_t, 1, 2>(s, forward, st->units, launch->stream);
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
  return launch_one<double, int64_t, 1, 3>(s, forward, units, launch->stream);
}

#define ROWS(op)                                                                                                                 \
  { "points", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,           \
    prepare, nullptr, run, cuda_release },                                                                                        \
  DIRECT_ROW(op, run_direct)
static const qn_engine row[] = { ROWS(QN_OP_GRID_SAMPLE), ROWS(QN_OP_GRID_SAMPLE_BACKWARD_GRID) };
const qn_engine_list cuda_sampling_list = { row, sizeof row / sizeof *row };
