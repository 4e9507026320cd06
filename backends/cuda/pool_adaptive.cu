/* pool_adaptive.cu -- pooling into a number of windows that share x out, and its gradients.
 *
 *   x [N, C, X]   y, indices [N, C, P]; in each dim window i holds floor(i X / P) to ceil((i + 1) X / P)
 *   backward      dx = the sum of dy over the windows whose index is this place, or of dy / places over those that hold it: place a
 *                 lies in windows floor(a P / X) to ceil((a + 1) P / X), the same rule with x and y exchanged
 *
 * shared: a thread takes one place of y in several layers; of dx four neighbours in several layers, channels or columns, as they lie.
 * direct: one place, for any strides and sizes, in double. */
#include "divisor.h"
#include "engines.h"
#include "spatial.cuh"

struct sharing : spatial {
  void    *indices;                       /* NULL: none */
  int32_t  average, wide;                 /* wide: i64 indices */
  int64_t  index_stride[5], index_layer;  /* N, C, spatial; from one layer to the next */
  int32_t  columns;                       /* a gradient's: neighbours are columns, not channels */
  int32_t  units, groups, cells[3], layer_groups;         /* ... its grid */
  cuda_divisor by_groups, by_cells[3], by_layers, by_in[3], by_out[3];
};

/* Windows of `places` among `windows`: begins and ends of the i-th. */
template <class I> __device__ __forceinline__ void window_of(I i, I places, I windows, I *begin, I *end)
{
  *begin = i * places / windows;
  *end = ((i + 1) * places + windows - 1) / windows;
}

__device__ __forceinline__ int64_t index_at(const sharing &s, int64_t at)
{
  return s.wide ? ((const int64_t *)s.indices)[at] : ((const int32_t *)s.indices)[at];
}
/* The same among places below 2^31; -1: none. */
__device__ __forceinline__ int place_at(const sharing &s, int64_t at)
{
  int64_t i = index_at(s, at);
  return i == (int)i ? (int)i : -1;
}

template <class T, class I, int V, int L>
__global__ static void __launch_bounds__(128) adaptive_forward(const __grid_constant__ sharing s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<I> at = cell_of<I, V, L>(s, (I)unit);
    I begin[3], end[3], best[L][V], layers = (I)s.layers - at.layer;
    T held[L][V];
#pragma unroll
    for (int d = 0; d < 3; d++) window_of<I>(at.o[d], (I)s.in_dim[d], (I)s.out_dim[d], &begin[d], &end[d]);
#pragma unroll
    for (int l = 0; l < L; l++)
#pragma unroll
      for (int i = 0; i < V; i++) {
        held[l][i] = s.average ? T(0) : T(-INFINITY);
        best[l][i] = (begin[0] * (I)s.in_dim[1] + begin[1]) * (I)s.in_dim[2] + begin[2];
      }
    int64_t from = image_of(at, s.in_stride, s.in_layer);
#pragma unroll 1
    for (I a = begin[0]; a < end[0]; a++)
#pragma unroll 1
      for (I b = begin[1]; b < end[1]; b++) {
        int64_t row = from + a * s.in_stride[2] + b * s.in_stride[3];
#pragma unroll 1
        for (I c = begin[2]; c < end[2]; c++) {
          T v[L][V];
#pragma unroll
          for (int l = 0; l < L; l++)
            if (l < layers) load(v[l], s.in, s.in_dtype, row + c * s.in_stride[4] + l * s.in_layer);
          I here = (a * (I)s.in_dim[1] + b) * (I)s.in_dim[2] + c;
#pragma unroll
          for (int l = 0; l < L; l++)
#pragma unroll
            for (int i = 0; i < V; i++)
              if (s.average) held[l][i] += v[l][i];
              else if (v[l][i] > held[l][i] || (v[l][i] != v[l][i] && held[l][i] == held[l][i])) held[l][i] = v[l][i], best[l][i] = here;
        }
      }
    T places = (T)((end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]));
    int64_t to = offset_of(at, s.out_stride, s.out_layer), number = offset_of(at, s.index_stride, s.index_layer);
#pragma unroll
    for (int l = 0; l < L; l++) {
      if (l >= layers) break;
#pragma unroll
      for (int i = 0; i < V; i++) held[l][i] = s.average ? held[l][i] / places : held[l][i];
      store(held[l], s.out, s.out_dtype, to + l * s.out_layer);
      if (!s.indices) continue;
#pragma unroll
      for (int i = 0; i < V; i++) {
        int64_t place = number + l * s.index_layer + i * s.index_stride[1];
        if (s.wide) ((int64_t *)s.indices)[place] = best[l][i];
        else ((int32_t *)s.indices)[place] = (int32_t)best[l][i];
      }
    }
  }
}

__global__ static void __launch_bounds__(128) adaptive_backward(const __grid_constant__ sharing s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<int64_t> at = cell_of<int64_t, 1, 1>(s, unit);
    int64_t first[3], end[3];             /* windows that hold this place */
    double sum[1] = {};
#pragma unroll
    for (int d = 0; d < 3; d++) window_of(at.o[d], s.in_dim[d], s.out_dim[d], &first[d], &end[d]);
    int64_t here = (at.o[0] * s.out_dim[1] + at.o[1]) * s.out_dim[2] + at.o[2];
    int64_t from = image_of(at, s.in_stride, s.in_layer), number = image_of(at, s.index_stride, s.index_layer);
    for (int64_t a = first[0]; a < end[0]; a++)
      for (int64_t b = first[1]; b < end[1]; b++)
        for (int64_t c = first[2]; c < end[2]; c++) {
          int64_t w[3] = { a, b, c }, begin, last, places = 1;
#pragma unroll
          for (int d = 0; d < 3; d++) {
            window_of(w[d], s.out_dim[d], s.in_dim[d], &begin, &last);
            places *= last - begin;
          }
          double v[1];
          load(v, s.in, s.in_dtype, from + a * s.in_stride[2] + b * s.in_stride[3] + c * s.in_stride[4]);
          if (s.average) sum[0] += v[0] / (double)places;
          else if (index_at(s, number + a * s.index_stride[2] + b * s.index_stride[3] + c * s.index_stride[4]) == here) sum[0] += v[0];
        }
    store(sum, s.out, s.out_dtype, offset_of(at, s.out_stride, s.out_layer));
  }
}

enum { LAYERS = 8 };                      /* of a thread */

/* The gradient for V neighbours, columns or channels, in each of LAYERS layers: which windows hold them, and how many places those have,
 * is worked out once. */
template <int dtype, int V, bool columns> __global__ static void __launch_bounds__(128) adaptive_gradient(const __grid_constant__ sharing s)
{
  constexpr int L = LAYERS, U = columns ? 1 : V;          /* U: numbers of dy for a window and a layer */
  int unit = (int)(blockIdx.x * 128 + threadIdx.x), q;
  if (unit >= s.units) return;
  cell<int> at;
  q = cuda_quotient(unit, s.by_groups);
  at.c = (unit - q * s.groups) * U;
  unit = q;
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    q = cuda_quotient(unit, s.by_cells[d]);
    at.o[d] = unit - q * s.cells[d];
    unit = q;
  }
  at.n = cuda_quotient(unit, s.by_layers);
  at.layer = (unit - at.n * s.layer_groups) * L;
  if (columns) at.o[2] *= V;
  int first[3], end[3], x = at.o[2], layers = (int)s.layers - at.layer;
#pragma unroll
  for (int d = 0; d < 3; d++) {           /* windows */
    int last = at.o[d] + (d == 2 && columns ? V : 1), in = (int)s.in_dim[d], out = (int)s.out_dim[d];
    first[d] = cuda_quotient(at.o[d] * in, s.by_out[d]);
    end[d] = cuda_quotient(last * in + out - 1, s.by_out[d]);
  }
  float sum[L][V];
#pragma unroll
  for (int l = 0; l < L; l++)
#pragma unroll
    for (int i = 0; i < V; i++) sum[l][i] = 0;
  int here = (at.o[0] * (int)s.out_dim[1] + at.o[1]) * (int)s.out_dim[2] + x;
  int64_t from = image_of(at, s.in_stride, s.in_layer), number = image_of(at, s.index_stride, s.index_layer);
#pragma unroll 1
  for (int a = first[0]; a < end[0]; a++)
#pragma unroll 1
    for (int b = first[1]; b < end[1]; b++)
#pragma unroll 1
      for (int c = first[2]; c < end[2]; c++) {
        int w[3] = { a, b, c }, begin = 0, last = 0, places = 1;
#pragma unroll
        for (int d = 0; d < 3; d++) {
          int in = (int)s.in_dim[d], out = (int)s.out_dim[d];
          begin = cuda_quotient(w[d] * out, s.by_in[d]);
          last = cuda_quotient((w[d] + 1) * out + in - 1, s.by_in[d]);
          places *= last - begin;
        }
        int64_t window = from + a * s.in_stride[2] + b * s.in_stride[3] + c * s.in_stride[4];
        int64_t index = number + a * s.index_stride[2] + b * s.index_stride[3] + c * s.index_stride[4];
        float v[L][U];
        int place[L][U];                  /* that dy went to; average: all */
#pragma unroll
        for (int l = 0; l < L; l++)
#pragma unroll
          for (int i = 0; i < U; i++) v[l][i] = 0, place[l][i] = -1;
#pragma unroll
        for (int l = 0; l < L; l++)
          if (l < layers) load(v[l], s.in, dtype, window + l * s.in_layer);
        if (s.average) {
          float share = 1 / (float)places;
#pragma unroll
          for (int i = 0; i < V; i++)
            if (!columns || (x + i >= begin && x + i < last))
#pragma unroll
              for (int l = 0; l < L; l++) sum[l][i] += v[l][i % U] * share;
        } else {
#pragma unroll
          for (int l = 0; l < L; l++)
            if (l < layers)
#pragma unroll
              for (int i = 0; i < U; i++) place[l][i] = place_at(s, index + l * s.index_layer + i * s.index_stride[1]);
#pragma unroll
          for (int i = 0; i < V; i++)
            if (!columns || (x + i >= begin && x + i < last))
#pragma unroll
              for (int l = 0; l < L; l++) sum[l][i] += place[l][i % U] == here + (columns ? i : 0) ? v[l][i % U] : 0;
        }
      }
  int64_t to = offset_of(at, s.out_stride, s.out_layer);
#pragma unroll
  for (int l = 0; l < L; l++)
    if (l < layers) store(sum[l], s.out, dtype, to + l * s.out_layer);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct sharing_state { sharing s; int32_t in, out, indices, neighbours; };

static sharing sharing_of(const qn_node *op, const qn_value *in, const qn_value *out, const qn_value *indices)
{
  sharing s = {};
  spatial_fill(&s, in, out);
  s.average = op->op == QN_OP_POOL_ADAPTIVE_AVERAGE || op->op == QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD;
  s.wide = indices && indices->dtype == QN_I64;
  if (indices) spatial_strides(indices, s.index_stride);
  s.index_layer = s.index_stride[!s.channels_last];
  return s;
}

static int32_t indices_role(uint32_t op)
{
  return op == QN_OP_POOL_ADAPTIVE_MAX ? QN_ROLE_POOL_ADAPTIVE_MAX_INDICES
       : op == QN_OP_POOL_ADAPTIVE_MAX_BACKWARD ? QN_ROLE_POOL_ADAPTIVE_MAX_BACKWARD_INDICES : -1;
}

static bool is_forward(uint32_t op) { return op == QN_OP_POOL_ADAPTIVE_MAX || op == QN_OP_POOL_ADAPTIVE_AVERAGE; }

/* The grid of units of a gradient; returns how many neighbours one takes. */
static int gradient_units(sharing *s, const qn_value *dy, const qn_value *dx)
{
  int v = spatial_vector(s, dy, dx);
  bool rows = !s->channels_last && s->out_stride[4] == 1 && s->out_dim[2] % 4 == 0 && dx->align >= 16;
  for (int d = 0; d < 4; d++) rows = rows && s->out_stride[d] % 4 == 0;
  s->columns = v == 1;
  if (rows) v = 4;
  s->groups = (int32_t)(s->columns ? s->channels : s->channels / v);
  s->layer_groups = (int32_t)qn_ceil_div(s->layers, LAYERS);
  s->by_groups = cuda_divide_by(s->groups);
  s->by_layers = cuda_divide_by(s->layer_groups);
  int64_t units = s->outer * s->layer_groups * s->groups;
  for (int d = 0; d < 3; d++) {
    s->cells[d] = (int32_t)(d == 2 && rows ? s->out_dim[d] / v : s->out_dim[d]);
    s->by_cells[d] = cuda_divide_by(s->cells[d]);
    s->by_in[d] = cuda_divide_by(s->in_dim[d]);
    s->by_out[d] = cuda_divide_by(s->out_dim[d]);
    units *= s->cells[d];
  }
  s->units = (int32_t)units;
  return v;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  int32_t role = indices_role(op->op), indices = role < 0 ? -1 : qn_role(op, (uint32_t)role), to = op->arg[op->first[op->n_inputs]];
  const qn_value *x = &r->value[op->arg[0]], *y = &r->value[to];
  if (x->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  if (x->dtype != y->dtype) return qn_refuse(out, "one dtype", "y", qn_kit_name(x->dtype), "%s", qn_kit_name(y->dtype));
  sharing s = sharing_of(op, x, y, indices < 0 ? nullptr : &r->value[indices]);
  if (!spatial_small(&s)) return qn_refuse(out, "places are counted in 31 bits", "x", "fewer", "%lld", (long long)spatial_units(&s, 1, 1));
  sharing_state st = {};
  st.neighbours = is_forward(op->op) ? 1 : gradient_units(&s, x, y);
  st.s = s;
  st.in = op->arg[0], st.out = to, st.indices = indices;
  return cuda_keep(out, &st, sizeof st);
}

template <class T, class I, int L> static void launch_forward(const sharing &s, cudaStream_t stream)
{
  int64_t units = spatial_units(&s, 1, L);
  adaptive_forward<T, I, 1, L><<<direct_blocks(units, 128), 128, 0, stream>>>(s, units);
}

template <int dtype> static void launch_gradient(const sharing &s, int neighbours, cudaStream_t stream)
{
  unsigned blocks = (unsigned)(s.units + 127) / 128;
  if (!s.columns) adaptive_gradient<dtype, 4, false><<<blocks, 128, 0, stream>>>(s);
  else if (neighbours == 4) adaptive_gradient<dtype, 4, true><<<blocks, 128, 0, stream>>>(s);
  else adaptive_gradient<dtype, 1, true><<<blocks, 128, 0, stream>>>(s);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const sharing_state *st = (const sharing_state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  sharing s = st->s;
  s.in = launch->ptr[st->in];
  s.out = launch->ptr[st->out];
  s.indices = st->indices < 0 ? nullptr : launch->ptr[st->indices];
  if (is_forward(p->engine->op)) launch_forward<float, int32_t, LAYERS>(s, stream);
  else if (s.out_dtype == QN_F32) launch_gradient<QN_F32>(s, st->neighbours, stream);
  else if (s.out_dtype == QN_BF16) launch_gradient<QN_BF16>(s, st->neighbours, stream);
  else launch_gradient<QN_F16>(s, st->neighbours, stream);
  return direct_launched("pool_adaptive");
}

static qn_status run_direct(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  int32_t role = indices_role(k->op);
  uint32_t n_inputs = k->op == QN_OP_POOL_ADAPTIVE_MAX_BACKWARD ? 2 : 1;
  bool indexed = role >= 0 && direct_count(k, (uint32_t)role);
  const qn_value *x = &k->value[0], *y = &k->value[k->first[n_inputs]];
  qn_node op = {};
  op.op = k->op;
  sharing s = sharing_of(&op, x, y, indexed ? &k->value[k->first[role]] : nullptr);
  s.in = direct_tensor(k, launch, 0, 0).p;
  s.out = direct_tensor(k, launch, n_inputs, 0).p;
  s.indices = indexed ? direct_tensor(k, launch, (uint32_t)role, 0).p : nullptr;
  int64_t units = spatial_units(&s, 1, 1);
  if (is_forward(k->op)) launch_forward<double, int64_t, 1>(s, stream);
  else adaptive_backward<<<direct_blocks(units, 128), 128, 0, stream>>>(s, units);
  return direct_launched("pool_adaptive");
}

#define ROWS(op)                                                                                                                 \
  { "shared", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,           \
    prepare, nullptr, run, cuda_release },                                                                                        \
  DIRECT_ROW(op, run_direct)
static const qn_engine row[] = {
  ROWS(QN_OP_POOL_ADAPTIVE_MAX),
  ROWS(QN_OP_POOL_ADAPTIVE_MAX_BACKWARD),
  ROWS(QN_OP_POOL_ADAPTIVE_AVERAGE),
  ROWS(QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD),
};
const qn_engine_list cuda_pool_adaptive_list = { row, sizeof row / sizeof *row };
