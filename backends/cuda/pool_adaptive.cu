/* pool_adaptive.cu -- pooling into a number of windows that share x out, and its gradients.
 *
 *   x [N, C, X]   y, indices [N, C, P]; in each dim window i holds floor(i X / P) to ceil((i + 1) X / P)
 *   backward      dx = the sum of dy over the windows whose index is this place, or of dy / places over those that hold it: place a
 *                 lies in windows floor(a P / X) to ceil((a + 1) P / X), the same rule with x and y exchanged
 *
 * shared: a thread takes one place of y (or dx) for V neighbouring channels, or for one where channels are no neighbours; places
 * in the order of memory. direct: the same, for any strides and sizes, in double. */
#include "direct.cuh"
#include "engines.h"
#include "vector.cuh"

struct sharing {
  const void *in;                         /* x or dy */
  void    *out, *indices;                 /* y or dx; indices NULL: none */
  uint32_t in_dtype, out_dtype;
  int32_t  average, wide, channels_last;  /* wide: i64 indices */
  int64_t  n, c, units;
  int64_t  in_dim[3], out_dim[3];
  int64_t  in_stride[5], out_stride[5], index_stride[5];      /* N, C, spatial */
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

template <class I, int V> struct cell { I n, c, o[3]; };

/* The unit's cell: channels innermost where they lie so. */
template <class I, int V> __device__ __forceinline__ cell<I, V> cell_of(const sharing &s, I unit)
{
  cell<I, V> at;
  I groups = (I)s.c / V;
  if (s.channels_last) at.c = unit % groups * V, unit /= groups;
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    at.o[d] = unit % (I)s.out_dim[d];
    unit /= (I)s.out_dim[d];
  }
  if (!s.channels_last) at.c = unit % groups * V, unit /= groups;
  at.n = unit;
  return at;
}

template <class T, int V> __device__ __forceinline__ void load(T (&v)[V], const void *p, uint32_t dtype, int64_t at)
{
  if constexpr (V == 1) v[0] = element_load<T>(p, at, dtype);
  else vector_load<V>(v, p, dtype, at, 1, V);
}
template <class T, int V> __device__ __forceinline__ void store(const T (&v)[V], void *p, uint32_t dtype, int64_t at)
{
  if constexpr (V == 1) element_store(p, at, dtype, v[0]);
  else vector_store<V>(v, p, dtype, at, 1, V);
}

template <class T, class I, int V> __global__ static void __launch_bounds__(128) adaptive_forward(const __grid_constant__ sharing s)
{
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < s.units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<I, V> at = cell_of<I, V>(s, (I)unit);
    I begin[3], end[3];
#pragma unroll
    for (int d = 0; d < 3; d++) window_of<I>(at.o[d], (I)s.in_dim[d], (I)s.out_dim[d], &begin[d], &end[d]);
    T held[V];
    I best[V];
#pragma unroll
    for (int i = 0; i < V; i++) held[i] = s.average ? T(0) : T(-INFINITY), best[i] = (begin[0] * (I)s.in_dim[1] + begin[1]) * (I)s.in_dim[2] + begin[2];
    int64_t from = at.n * s.in_stride[0] + at.c * s.in_stride[1];
    for (I a = begin[0]; a < end[0]; a++)
      for (I b = begin[1]; b < end[1]; b++) {
        int64_t row = from + a * s.in_stride[2] + b * s.in_stride[3];
        for (I c = begin[2]; c < end[2]; c++) {
          T v[V];
          load<T, V>(v, s.in, s.in_dtype, row + c * s.in_stride[4]);
#pragma unroll
          for (int i = 0; i < V; i++)
            if (s.average) held[i] += v[i];
            else if (v[i] > held[i] || (v[i] != v[i] && held[i] == held[i])) held[i] = v[i], best[i] = (a * (I)s.in_dim[1] + b) * (I)s.in_dim[2] + c;
        }
      }
    T places = (T)((end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]));
    int64_t to = at.n * s.out_stride[0] + at.c * s.out_stride[1];
#pragma unroll
    for (int d = 0; d < 3; d++) to += at.o[d] * s.out_stride[2 + d];
#pragma unroll
    for (int i = 0; i < V; i++) held[i] = s.average ? held[i] / places : held[i];
    store<T, V>(held, s.out, s.out_dtype, to);
    if (!s.indices) continue;
    int64_t number = at.n * s.index_stride[0] + at.c * s.index_stride[1];
#pragma unroll
    for (int d = 0; d < 3; d++) number += at.o[d] * s.index_stride[2 + d];
#pragma unroll
    for (int i = 0; i < V; i++)
      if (s.wide) ((int64_t *)s.indices)[number + i * s.index_stride[1]] = best[i];
      else ((int32_t *)s.indices)[number + i * s.index_stride[1]] = (int32_t)best[i];
  }
}

template <class T, class I, int V> __global__ static void __launch_bounds__(128) adaptive_backward(const __grid_constant__ sharing s)
{
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < s.units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<I, V> at = cell_of<I, V>(s, (I)unit);
    I first[3], end[3];                   /* windows that hold this place */
#pragma unroll
    for (int d = 0; d < 3; d++) window_of<I>(at.o[d], (I)s.in_dim[d], (I)s.out_dim[d], &first[d], &end[d]);
    I here = (at.o[0] * (I)s.out_dim[1] + at.o[1]) * (I)s.out_dim[2] + at.o[2];
    T sum[V];
#pragma unroll
    for (int i = 0; i < V; i++) sum[i] = 0;
    int64_t from = at.n * s.in_stride[0] + at.c * s.in_stride[1], number = at.n * s.index_stride[0] + at.c * s.index_stride[1];
    for (I a = first[0]; a < end[0]; a++)
      for (I b = first[1]; b < end[1]; b++)
        for (I c = first[2]; c < end[2]; c++) {
          I w[3] = { a, b, c }, begin, last, places = 1;
#pragma unroll
          for (int d = 0; d < 3; d++) {
            window_of<I>(w[d], (I)s.out_dim[d], (I)s.in_dim[d], &begin, &last);
            places *= last - begin;
          }
          int64_t index = number + a * s.index_stride[2] + b * s.index_stride[3] + c * s.index_stride[4];
          T v[V];
          load<T, V>(v, s.in, s.in_dtype, from + a * s.in_stride[2] + b * s.in_stride[3] + c * s.in_stride[4]);
#pragma unroll
          for (int i = 0; i < V; i++)
            if (s.average) sum[i] += v[i] / (T)places;
            else if (index_at(s, index + i * s.index_stride[1]) == here) sum[i] += v[i];
        }
    int64_t to = at.n * s.out_stride[0] + at.c * s.out_stride[1];
#pragma unroll
    for (int d = 0; d < 3; d++) to += at.o[d] * s.out_stride[2 + d];
    store<T, V>(sum, s.out, s.out_dtype, to);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct sharing_state { sharing s; int32_t in, out, indices, vector; };

static void strides_of(const qn_value *v, int64_t *stride)
{
  for (int d = 0; d < v->rank; d++) stride[d < 2 ? d : d + 5 - v->rank] = v->stride[d];
}

static sharing sharing_of(const qn_node *op, const qn_value *in, const qn_value *out, const qn_value *indices)
{
  sharing s = {};
  s.in_dtype = in->dtype, s.out_dtype = out->dtype;
  s.average = op->op == QN_OP_POOL_ADAPTIVE_AVERAGE || op->op == QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD;
  s.wide = indices && indices->dtype == QN_I64;
  s.channels_last = out->dim[1] > 1 && out->stride[1] == 1;
  s.n = out->dim[0], s.c = out->dim[1];
  for (int d = 0; d < 3; d++) s.in_dim[d] = s.out_dim[d] = 1;
  for (int d = 2; d < out->rank; d++) s.in_dim[d + 3 - out->rank] = in->dim[d], s.out_dim[d + 3 - out->rank] = out->dim[d];
  strides_of(in, s.in_stride);
  strides_of(out, s.out_stride);
  if (indices) strides_of(indices, s.index_stride);
  s.units = qn_elements(out);
  return s;
}

static int32_t indices_role(uint32_t op)
{
  return op == QN_OP_POOL_ADAPTIVE_MAX ? QN_ROLE_POOL_ADAPTIVE_MAX_INDICES
       : op == QN_OP_POOL_ADAPTIVE_MAX_BACKWARD ? QN_ROLE_POOL_ADAPTIVE_MAX_BACKWARD_INDICES : -1;
}

static bool vector_steps(const int64_t *stride)
{
  for (int d = 0; d < 5; d++)
    if (d != 1 && stride[d] % 4) return false;
  return stride[1] == 1;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  int32_t role = indices_role(op->op), indices = role < 0 ? -1 : qn_role(op, (uint32_t)role), to = op->arg[op->first[op->n_inputs]];
  const qn_value *x = &r->value[op->arg[0]], *y = &r->value[to];
  if (x->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  double most = 1;
  sharing s = sharing_of(op, x, y, indices < 0 ? nullptr : &r->value[indices]);
  for (int d = 0; d < 3; d++) most *= (double)(s.in_dim[d] > s.out_dim[d] ? s.in_dim[d] : s.out_dim[d]);
  bool small = (double)s.units < 1e9 && most < 1e9;
  for (int d = 0; d < 3; d++) small = small && (double)s.in_dim[d] * (double)s.out_dim[d] < 5e8;
  if (!small) return qn_refuse(out, "places are counted in 31 bits", "x", "fewer", "%g", most);
  sharing_state *st = (sharing_state *)r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->vector = s.channels_last && s.c % 4 == 0 && vector_steps(s.in_stride) && vector_steps(s.out_stride) ? 4 : 1;
  s.units /= st->vector;
  st->s = s;
  st->in = op->arg[0], st->out = to, st->indices = indices;
  out->state = st;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_NATIVE;
  return QN_OK;
}

template <class T, class I, int V> static qn_status launch_one(const sharing &s, bool forward, void *stream)
{
  unsigned blocks = direct_blocks(s.units, 128);
  if (forward) adaptive_forward<T, I, V><<<blocks, 128, 0, (cudaStream_t)stream>>>(s);
  else adaptive_backward<T, I, V><<<blocks, 128, 0, (cudaStream_t)stream>>>(s);
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
  if (st->vector == 4) return launch_one<float, int32_t, 4>(s, forward, launch->stream);
  return launch_one<float, int32_t, 1>(s, forward, launch->stream);
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
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
  return launch_one<double, int64_t, 1>(s, is_forward(k->op), launch->stream);
}

#define ROWS(op)                                                                                                                 \
  { "shared", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,           \
    prepare, nullptr, run, release },                                                                                             \
  DIRECT_ROW(op, run_direct)
static const qn_engine row[] = {
  ROWS(QN_OP_POOL_ADAPTIVE_MAX),
  ROWS(QN_OP_POOL_ADAPTIVE_MAX_BACKWARD),
  ROWS(QN_OP_POOL_ADAPTIVE_AVERAGE),
  ROWS(QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD),
};
const qn_engine_list cuda_pool_adaptive_list = { row, sizeof row / sizeof *row };
