/* pool_adaptive.cu -- pooling into a number of windows that share x out, and its gradients.
 *
 *   x [N, C, X]   y, indices [N, C, P]; in each dim window i holds floor(i X / P) to ceil((i + 1) X / P)
 *   backward      dx = the sum of dy over the windows whose index is this place, or of dy / places over those that hold it: place a
 *                 lies in windows floor(a P / X) to ceil((a + 1) P / X), the same rule with x and y exchanged
 *
 * shared: a thread takes one place of y (or dx) in several layers, for four channels where they lie so. direct: the same, for any
 * strides and sizes, in double. */
#include "engines.h"
#include "spatial.cuh"

struct sharing : spatial {
  void    *indices;                       /* NULL: none */
  int32_t  average, wide;                 /* wide: i64 indices */
  int64_t  index_stride[5], index_layer;  /* N, C, spatial; from one layer to the next */
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

template <class T, class I, int V, int L>
__global__ static void __launch_bounds__(128) adaptive_backward(const __grid_constant__ sharing s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<I> at = cell_of<I, V, L>(s, (I)unit);
    I first[3], end[3], layers = (I)s.layers - at.layer;  /* windows that hold this place */
    T sum[L][V];
#pragma unroll
    for (int d = 0; d < 3; d++) window_of<I>(at.o[d], (I)s.in_dim[d], (I)s.out_dim[d], &first[d], &end[d]);
#pragma unroll
    for (int l = 0; l < L; l++)
#pragma unroll
      for (int i = 0; i < V; i++) sum[l][i] = 0;
    I here = (at.o[0] * (I)s.out_dim[1] + at.o[1]) * (I)s.out_dim[2] + at.o[2];
    int64_t from = image_of(at, s.in_stride, s.in_layer), number = image_of(at, s.index_stride, s.index_layer);
    for (I a = first[0]; a < end[0]; a++)
      for (I b = first[1]; b < end[1]; b++)
        for (I c = first[2]; c < end[2]; c++) {
          I w[3] = { a, b, c }, begin, last, places = 1;
#pragma unroll
          for (int d = 0; d < 3; d++) {
            window_of<I>(w[d], (I)s.out_dim[d], (I)s.in_dim[d], &begin, &last);
            places *= last - begin;
          }
          int64_t window = from + a * s.in_stride[2] + b * s.in_stride[3] + c * s.in_stride[4];
          int64_t index = number + a * s.index_stride[2] + b * s.index_stride[3] + c * s.index_stride[4];
          T v[L][V];
#pragma unroll
          for (int l = 0; l < L; l++)
            if (l < layers) load(v[l], s.in, s.in_dtype, window + l * s.in_layer);
#pragma unroll
          for (int l = 0; l < L; l++) {
            if (l >= layers) break;
#pragma unroll
            for (int i = 0; i < V; i++)
              if (s.average) sum[l][i] += v[l][i] / (T)places;
              else if (index_at(s, index + l * s.index_layer + i * s.index_stride[1]) == here) sum[l][i] += v[l][i];
          }
        }
    int64_t to = offset_of(at, s.out_stride, s.out_layer);
#pragma unroll
    for (int l = 0; l < L; l++)
      if (l < layers) store(sum[l], s.out, s.out_dtype, to + l * s.out_layer);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct sharing_state { sharing s; int32_t in, out, indices, vector; };

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

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  int32_t role = indices_role(op->op), indices = role < 0 ? -1 : qn_role(op, (uint32_t)role), to = op->arg[op->first[op->n_inputs]];
  const qn_value *x = &r->value[op->arg[0]], *y = &r->value[to];
  if (x->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  sharing s = sharing_of(op, x, y, indices < 0 ? nullptr : &r->value[indices]);
  if (!spatial_small(&s)) return qn_refuse(out, "places are counted in 31 bits", "x", "fewer", "%lld", (long long)spatial_units(&s, 1, 1));
  sharing_state st = {};
  st.vector = spatial_vector(&s, x, y);
  st.s = s;
  st.in = op->arg[0], st.out = to, st.indices = indices;
  return cuda_keep(out, &st, sizeof st);
}

template <class T, class I, int V, int L> static qn_status launch_one(const sharing &s, bool forward, void *stream)
{
  int64_t units = spatial_units(&s, V, L);
  unsigned blocks = direct_blocks(units, 128);
  if (forward) adaptive_forward<T, I, V, L><<<blocks, 128, 0, (cudaStream_t)stream>>>(s, units);
  else adaptive_backward<T, I, V, L><<<blocks, 128, 0, (cudaStream_t)stream>>>(s, units);
  return direct_launched("pool_adaptive");
}

static bool is_forward(uint32_t op) { return op == QN_OP_POOL_ADAPTIVE_MAX || op == QN_OP_POOL_ADAPTIVE_AVERAGE; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const sharing_state *st = (const sharing_state *)p->state;
  sharing s = st->s;
  s.in = launch->ptr[st->in];
  s.out = launch->ptr[st->out];
  s.indices = st->indices < 0 ? nullptr : launch->ptr[st->indices];
  bool forward = is_forward(p->engine->op);
  if (st->vector == 4) return launch_one<float, int32_t, 4, 4>(s, forward, launch->stream);
  return launch_one<float, int32_t, 1, 8>(s, forward, launch->stream);
}

static qn_status run_direct(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
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
  return launch_one<double, int64_t, 1, 1>(s, is_forward(k->op), launch->stream);
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
