/* pool_backward.cu -- gradients of pooling, adaptive too, of f16, bf16 and f32: a thread gathers V neighbouring channels of one place of dx
 * (channels last), or one place (any other layout), so that no two threads add to one place.
 *
 *   max       dx[x] = the sum of dy over the windows whose maximum came from x: by its indices, or by x once more
 *   average   dx[x] = the sum of dy / divisor over the windows that cover x */
#include "engines.h"
#include "pool.cuh"

enum { BY_INDEX, BY_X, AVERAGE, THREADS = 128 };

template <int V, int whole> __device__ __forceinline__ void fetch(float (&v)[V], const pool &p, const void *base, int64_t at, int many)
{
  if (whole) vector_load_whole<whole ? whole : QN_F32>(v, base, at);
  else vector_load(v, base, p.dtype, at, 1, many);
}

/* Which tap of the window from `begin` on is the maximum: the first of equals, the first NaN. */
template <int V, int whole>
__device__ __forceinline__ void maximum(int (&tap)[V], const pool &p, int64_t base, const int begin[3], int many)
{
  float best[V];
#pragma unroll
  for (int i = 0; i < V; i++) tap[i] = -1, best[i] = -INFINITY;
  for (int r0 = 0, t = 0; r0 < p.size[0]; r0++)
    for (int r1 = 0; r1 < p.size[1]; r1++)
      for (int r2 = 0; r2 < p.size[2]; r2++, t++) {
        int z = begin[0] + r0 * p.dilation[0], y = begin[1] + r1 * p.dilation[1], x = begin[2] + r2 * p.dilation[2];
        if ((unsigned)z >= (unsigned)p.in[0] || (unsigned)y >= (unsigned)p.in[1] || (unsigned)x >= (unsigned)p.in[2]) continue;
        float v[V];
        fetch<V, whole>(v, p, p.x, base + z * p.x_stride[2] + y * p.x_stride[3] + x * p.x_stride[4], many);
#pragma unroll
        for (int i = 0; i < V; i++)
          if (tap[i] < 0 || v[i] > best[i] || (v[i] != v[i] && best[i] == best[i])) best[i] = v[i], tap[i] = t;
      }
}

template <int V, int how, int whole> __global__ void __launch_bounds__(THREADS, 4) pool_backward(const __grid_constant__ pool p)
{
  uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= p.units) return;
  place at = place_of<V>(p, unit);
  int many = whole ? V : min(V, (int)(p.c - at.c)), first[3], last[3];
  int64_t x_base = at.n * p.x_stride[0] + at.c * p.x_stride[1], y_base = at.n * p.y_stride[0] + at.c * p.y_stride[1];
  int64_t index_base = at.n * p.index_stride[0] + at.c * p.index_stride[1];
  int64_t here = ((int64_t)at.o[0] * p.in[1] + at.o[1]) * p.in[2] + at.o[2];
  float sum[V] = {};
#pragma unroll
  for (int d = 0; d < 3; d++) windows_over(p, d, at.o[d], &first[d], &last[d]);
  for (int o0 = first[0]; o0 <= last[0]; o0++)
    for (int o1 = first[1]; o1 <= last[1]; o1++)
      for (int o2 = first[2]; o2 <= last[2]; o2++) {
        int o[3] = { o0, o1, o2 }, r[3];
        const window w = window_of(p, o);
        bool covers = true;
#pragma unroll
        for (int d = 0; d < 3; d++) {
          r[d] = p.dilation[d] == 1 ? at.o[d] - w.begin[d] : (at.o[d] - w.begin[d]) / p.dilation[d];
          covers &= r[d] * p.dilation[d] == at.o[d] - w.begin[d];
        }
        if (!covers) continue;
        int tap = (r[0] * w.size[1] + r[1]) * w.size[2] + r[2];
        float dy[V];
        fetch<V, whole>(dy, p, p.dy, y_base + o0 * p.y_stride[2] + o1 * p.y_stride[3] + o2 * p.y_stride[4], many);
        if (how == AVERAGE) {
          float divisor = divisor_of(p, w);
#pragma unroll
          for (int i = 0; i < V; i++) sum[i] += dy[i] / divisor;
        } else if (how == BY_INDEX) {
          int64_t index = index_base + o0 * p.index_stride[2] + o1 * p.index_stride[3] + o2 * p.index_stride[4];
#pragma unroll
          for (int i = 0; i < V; i++)
            if (i < many) {
              int64_t k = element_load<int64_t>(p.indices, index + i * p.index_stride[1], p.index_dtype);
              sum[i] += k == (p.index_dtype == QN_U8 ? tap : here) ? dy[i] : 0;
            }
        } else {
          int chosen[V];
          maximum<V, whole>(chosen, p, x_base, w.begin, many);
#pragma unroll
          for (int i = 0; i < V; i++) sum[i] += chosen[i] == tap ? dy[i] : 0;
        }
      }
  int64_t to = at.n * p.dx_stride[0] + at.c * p.dx_stride[1] + at.o[0] * p.dx_stride[2] + at.o[1] * p.dx_stride[3] + at.o[2] * p.dx_stride[4];
  if (whole) vector_store_whole<whole ? whole : QN_F32>(sum, p.dx, to);
  else vector_store(sum, p.dx, p.dtype, to, 1, many);
}

/* ---- host ------------------------------------------------------------------------------------------------- */

struct state { pool p; int32_t dy, indices, x, dx, v; uint32_t whole; };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  state s = {};                           /* dy is the first role of all four, a maximum's indices the second, dx the one output */
  s.dy = op->arg[0];
  s.dx = op->arg[op->first[op->n_inputs]];
  s.indices = pool_is_average(op->op) ? -1 : qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_INDICES);
  s.x = op->op == QN_OP_POOL_MAX_BACKWARD ? qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_X) : -1;
  const qn_value *dx = &r->value[s.dx], *dy = &r->value[s.dy], *x = s.x >= 0 ? &r->value[s.x] : dx;
  if ((dx->dtype != QN_F32 && dx->dtype != QN_F16 && dx->dtype != QN_BF16) || dy->dtype != dx->dtype || x->dtype != dx->dtype)
    return qn_refuse(out, "dtypes", "dx", "f16, bf16 or f32 throughout", "%s", "another");
  if (!pool_fill(&s.p, op, x, dy)) return qn_refuse(out, "extents below 2^29", "dx", "", "%s", "more");
  pool_strides(dx, s.p.dx_stride);
  if (s.indices >= 0) {
    s.p.index_dtype = r->value[s.indices].dtype;
    pool_strides(&r->value[s.indices], s.p.index_stride);
  }
  bool last = s.p.x_stride[1] == 1 && s.p.y_stride[1] == 1 && s.p.dx_stride[1] == 1 && dx->dim[1] > 1;
  s.v = last ? (dx->dtype == QN_F32 ? 4 : 8) : 1;
  if (!pool_units(&s.p, s.v, s.p.in)) return qn_refuse(out, "fewer than 2^31 units", "dx", "", "%s", "more");
  bool whole = last && s.p.c % s.v == 0 && dx->align >= 16 && dy->align >= 16 && x->align >= 16 && pool_steps(s.p.x_stride, s.v) &&
               pool_steps(s.p.y_stride, s.v) && pool_steps(s.p.dx_stride, s.v);
  s.whole = whole ? dx->dtype : 0;
  return cuda_keep(out, &s, sizeof s);
}

template <int V, int whole> static void launch_as(const pool &p, cudaStream_t stream)
{
  unsigned blocks = (p.units + THREADS - 1) / THREADS;
  if (p.average) pool_backward<V, AVERAGE, whole><<<blocks, THREADS, 0, stream>>>(p);
  else if (p.indices) pool_backward<V, BY_INDEX, whole><<<blocks, THREADS, 0, stream>>>(p);
  else pool_backward<V, BY_X, whole><<<blocks, THREADS, 0, stream>>>(p);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  pool p = st->p;
  p.dy = launch->ptr[st->dy];
  p.dx = launch->ptr[st->dx];
  p.x = st->x >= 0 ? launch->ptr[st->x] : nullptr;
  p.indices = st->indices >= 0 ? launch->ptr[st->indices] : nullptr;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  if (st->whole == QN_BF16) launch_as<8, QN_BF16>(p, stream);
  else if (st->whole == QN_F16) launch_as<8, QN_F16>(p, stream);
  else if (st->whole == QN_F32) launch_as<4, QN_F32>(p, stream);
  else if (st->v == 8) launch_as<8, 0>(p, stream);
  else if (st->v == 4) launch_as<4, 0>(p, stream);
  else launch_as<1, 0>(p, stream);
  return cuda_check(cudaGetLastError(), "pool_backward");
}

#define ROW(op) { "gather", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_POOL_MAX_BACKWARD), ROW(QN_OP_POOL_AVERAGE_BACKWARD) };
const qn_engine_list cuda_pool_backward_list = { row, sizeof row / sizeof *row };
