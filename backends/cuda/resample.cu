/* resample.cu -- x at points between its places, and the gradient.
 *
 *   y    the sum over the taps around its point of the product of each dim's weight times x; a tap of weight 0 is not read
 *   dx   the sum over the points that have it as a tap of dy times its weight, gathered
 *
 * Points are exact fractions, so that weights come from a remainder, not from the difference of two large floats. points: one place
 * of the output by one thread, in several layers and for four channels where they lie so. direct: the same in double, for any size. */
#include "engines.h"
#include "spatial.cuh"

struct resampling : spatial {
  int32_t mode, grid;
};

/* Point i of y in x, over an extent of x places by y: over / under. */
template <class I> __device__ __forceinline__ void point_of(int grid, I i, I x, I y, I *over, I *under)
{
  if (grid == QN_GRID_HALF_PIXEL) *over = (2 * i + 1) * x - y, *under = 2 * y;
  else if (grid == QN_GRID_ASYMMETRIC) *over = i * x, *under = y;
  else *over = y > 1 ? i * (x - 1) : 0, *under = y > 1 ? y - 1 : 1;
}

template <class I> __device__ __forceinline__ I floor_div(I a, I b) { I q = a / b; return q - (q * b > a); }
template <class I> __device__ __forceinline__ I clamp(I v, I most) { return v < 0 ? 0 : v > most ? most : v; }

template <class T> __device__ __forceinline__ T cubic(T z)        /* Keys' kernel at distance z >= 0 */
{
  return z <= 1 ? (T(1.25) * z - T(2.25)) * z * z + 1 : ((T(-0.75) * z + T(3.75)) * z - 6) * z + 3;
}

/* The taps of a point: 1, 2 or 4 by mode. */
template <class T, class I, int MODE> __device__ __forceinline__ void taps_of(int grid, I i, I x, I y, I (&place)[1 << MODE], T (&weight)[1 << MODE])
{
  I over, under;
  point_of<I>(grid, i, x, y, &over, &under);
  if constexpr (MODE == QN_RESAMPLE_NEAREST) {
    if (grid != QN_GRID_ASYMMETRIC) over = 2 * over + under, under *= 2;
    place[0] = clamp<I>(floor_div<I>(over, under), x - 1);
    weight[0] = 1;
  } else {
    I below = floor_div<I>(over, under), rest = over - below * under;
    T t = (T)rest / (T)under, u = (T)(under - rest) / (T)under;
    constexpr int first = MODE == QN_RESAMPLE_CUBIC ? -1 : 0;
#pragma unroll
    for (int k = 0; k < 1 << MODE; k++) {
      place[k] = clamp<I>(below + first + k, x - 1);
      if constexpr (MODE == QN_RESAMPLE_LINEAR) weight[k] = k ? t : u;
      else weight[k] = cubic<T>(k == 0 ? 1 + t : k == 1 ? t : k == 2 ? u : 1 + u);
    }
  }
}

template <class T, class I, int V, int L, int MODE>
__global__ static void __launch_bounds__(128) resample_points(const __grid_constant__ resampling s, int64_t units)
{
  constexpr int TAPS = 1 << MODE;
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<I> at = cell_of<I, V, L>(s, (I)unit);
    I place[3][TAPS], layers = (I)s.layers - at.layer;
    T weight[3][TAPS], sum[L][V];
#pragma unroll
    for (int d = 0; d < 3; d++) taps_of<T, I, MODE>(s.grid, at.o[d], (I)s.in_dim[d], (I)s.out_dim[d], place[d], weight[d]);
#pragma unroll
    for (int l = 0; l < L; l++)
#pragma unroll
      for (int i = 0; i < V; i++) sum[l][i] = 0;
    int64_t from = image_of(at, s.in_stride, s.in_layer);
#pragma unroll 1                          /* small code: what a tap costs is shared by the layers */
    for (int a = 0; a < TAPS; a++) {
      if (weight[0][a] == 0) continue;
#pragma unroll 1
      for (int b = 0; b < TAPS; b++) {
        T outer = weight[0][a] * weight[1][b];
        if (outer == 0) continue;
        int64_t row = from + place[0][a] * s.in_stride[2] + place[1][b] * s.in_stride[3];
#pragma unroll 1
        for (int c = 0; c < TAPS; c++) {
          T w = outer * weight[2][c], v[L][V];
          int64_t tap = row + place[2][c] * s.in_stride[4];
          if (w == 0) continue;
#pragma unroll
          for (int l = 0; l < L; l++)
            if (l < layers) load(v[l], s.in, s.in_dtype, tap + l * s.in_layer);
#pragma unroll
          for (int l = 0; l < L; l++)
#pragma unroll
            for (int i = 0; i < V; i++) sum[l][i] += w * v[l][i];
        }
      }
    }
    int64_t to = offset_of(at, s.out_stride, s.out_layer);
#pragma unroll
    for (int l = 0; l < L; l++)
      if (l < layers) store(sum[l], s.out, s.out_dtype, to + l * s.out_layer);
  }
}

/* The weight of place j in point i. */
template <class T, class I, int MODE> __device__ __forceinline__ T weight_in(int grid, I i, I j, I x, I y)
{
  I place[1 << MODE];
  T weight[1 << MODE], sum = 0;
  taps_of<T, I, MODE>(grid, i, x, y, place, weight);
#pragma unroll
  for (int k = 0; k < 1 << MODE; k++) sum += place[k] == j ? weight[k] : T(0);
  return sum;
}

/* Points that may have place j as a tap: those within two places of it, all beyond an edge. */
template <class I> __device__ __forceinline__ void points_near(int grid, I j, I x, I y, I *begin, I *end)
{
  I step = grid == QN_GRID_HALF_PIXEL ? 2 * x : grid == QN_GRID_ASYMMETRIC ? x : x - 1, over, under;
  point_of<I>(grid, 0, x, y, &over, &under);      /* point i is (over + i step) / under */
  *begin = j == 0 || step == 0 ? 0 : clamp<I>(floor_div<I>((j - 2) * under - over, step), y);
  *end = j == x - 1 || step == 0 ? y : clamp<I>(floor_div<I>((j + 2) * under - over, step) + 1, y);
}

template <class T, class I, int V, int L, int MODE>
__global__ static void __launch_bounds__(128) resample_gather(const __grid_constant__ resampling s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<I> at = cell_of<I, V, L>(s, (I)unit);
    I begin[3], end[3], layers = (I)s.layers - at.layer;
    T sum[L][V];
#pragma unroll
    for (int d = 0; d < 3; d++) points_near<I>(s.grid, at.o[d], (I)s.out_dim[d], (I)s.in_dim[d], &begin[d], &end[d]);
#pragma unroll
    for (int l = 0; l < L; l++)
#pragma unroll
      for (int i = 0; i < V; i++) sum[l][i] = 0;
    int64_t from = image_of(at, s.in_stride, s.in_layer);
#pragma unroll 1
    for (I a = begin[0]; a < end[0]; a++) {
      T wa = weight_in<T, I, MODE>(s.grid, a, at.o[0], (I)s.out_dim[0], (I)s.in_dim[0]);
      if (wa == 0) continue;
#pragma unroll 1
      for (I b = begin[1]; b < end[1]; b++) {
        T wb = wa * weight_in<T, I, MODE>(s.grid, b, at.o[1], (I)s.out_dim[1], (I)s.in_dim[1]);
        if (wb == 0) continue;
#pragma unroll 1
        for (I c = begin[2]; c < end[2]; c++) {
          T w = wb * weight_in<T, I, MODE>(s.grid, c, at.o[2], (I)s.out_dim[2], (I)s.in_dim[2]), v[L][V];
          int64_t point = from + a * s.in_stride[2] + b * s.in_stride[3] + c * s.in_stride[4];
          if (w == 0) continue;
#pragma unroll
          for (int l = 0; l < L; l++)
            if (l < layers) load(v[l], s.in, s.in_dtype, point + l * s.in_layer);
#pragma unroll
          for (int l = 0; l < L; l++)
#pragma unroll
            for (int i = 0; i < V; i++) sum[l][i] += w * v[l][i];
        }
      }
    }
    int64_t to = offset_of(at, s.out_stride, s.out_layer);
#pragma unroll
    for (int l = 0; l < L; l++)
      if (l < layers) store(sum[l], s.out, s.out_dtype, to + l * s.out_layer);
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

struct resample_state { resampling s; int32_t in, out, vector; };

static resampling resampling_of(const void *attr, const qn_value *in, const qn_value *out)
{
  const qn_resampling *a = (const qn_resampling *)attr;
  resampling s = {};
  spatial_fill(&s, in, out);
  s.mode = (int32_t)a->mode, s.grid = (int32_t)a->grid;
  return s;
}

template <class T, class I, int V, int L, int MODE> static void launch_mode(const resampling &s, bool forward, cudaStream_t stream)
{
  int64_t units = spatial_units(&s, V, L);
  unsigned blocks = direct_blocks(units, 128);
  if (forward) resample_points<T, I, V, L, MODE><<<blocks, 128, 0, stream>>>(s, units);
  else resample_gather<T, I, V, L, MODE><<<blocks, 128, 0, stream>>>(s, units);
}

template <class T, class I, int V, int L> static qn_status launch_one(const resampling &s, bool forward, void *stream)
{
  if (s.mode == QN_RESAMPLE_NEAREST) launch_mode<T, I, V, L, QN_RESAMPLE_NEAREST>(s, forward, (cudaStream_t)stream);
  else if (s.mode == QN_RESAMPLE_LINEAR) launch_mode<T, I, V, L, QN_RESAMPLE_LINEAR>(s, forward, (cudaStream_t)stream);
  else launch_mode<T, I, V, L, QN_RESAMPLE_CUBIC>(s, forward, (cudaStream_t)stream);
  return direct_launched("resample");
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_value *in = &r->value[op->arg[0]], *to = &r->value[op->arg[1]];
  if (in->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  resampling s = resampling_of(op->attr, in, to);
  if (!spatial_small(&s)) return qn_refuse(out, "places are counted in 31 bits", "x", "fewer", "%lld", (long long)spatial_units(&s, 1, 1));
  resample_state *st = (resample_state *)r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->vector = spatial_vector(&s, in, to);
  st->s = s;
  st->in = op->arg[0], st->out = op->arg[1];
  out->state = st;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_NATIVE;
  return QN_OK;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const resample_state *st = (const resample_state *)p->state;
  bool forward = p->engine->op == QN_OP_RESAMPLE;
  resampling s = st->s;
  s.in = launch->ptr[st->in];
  s.out = launch->ptr[st->out];
  if (st->vector == 4) return launch_one<float, int32_t, 4, 4>(s, forward, launch->stream);
  return launch_one<float, int32_t, 1, 8>(s, forward, launch->stream);
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

static qn_status run_direct(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  resampling s = resampling_of(k->attr, &k->value[0], &k->value[1]);
  s.in = launch->ptr[k->number[0]];
  s.out = launch->ptr[k->number[1]];
  return launch_one<double, int64_t, 1, 1>(s, k->op == QN_OP_RESAMPLE, launch->stream);
}

#define ROWS(op)                                                                                                                 \
  { "points", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,           \
    prepare, nullptr, run, release },                                                                                             \
  DIRECT_ROW(op, run_direct)
static const qn_engine row[] = { ROWS(QN_OP_RESAMPLE), ROWS(QN_OP_RESAMPLE_BACKWARD) };
const qn_engine_list cuda_resample_list = { row, sizeof row / sizeof *row };
