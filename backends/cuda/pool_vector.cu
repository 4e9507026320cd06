/* pool_vector.cu -- pooling of f16, bf16 and f32: a thread takes V neighbouring channels of one output (channels last), or one
 * output element (any other layout), with 32-bit index arithmetic. Windows overlap in the caches.
 *
 *   max       y = the largest tap inside x, NaN above all, the first of equals; no tap inside: -Inf
 *   average   y = sum of taps inside x / divisor, 0 where none is
 *
 * Neighbouring threads are neighbours in memory: channels first if they are contiguous, else along the innermost extent. */
#include "cuda_backend.h"
#include "engines.h"
#include "vector.cuh"

struct pool {
  const void *x;
  void    *y, *indices;
  uint32_t dtype, index_dtype;
  int32_t  average, include_pad;
  uint32_t n, c, units, groups;           /* groups: of V channels; units: threads with work */
  int32_t  in[3], out[3], size[3], step[3], dilation[3], before[3], after[3];
  int64_t  x_stride[5], y_stride[5], index_stride[5];       /* N, C, spatial */
};

enum { MAX, MAX_INDEX, AVERAGE };

/* whole: all of that dtype, in whole aligned vectors; 0: anything. */
template <int V, int mode, int whole> __global__ void __launch_bounds__(128) pool_vector(const __grid_constant__ pool p)
{
  uint32_t unit = blockIdx.x * 128 + threadIdx.x;
  if (unit >= p.units) return;
  uint32_t rest = unit, c, o[3];
  if (V > 1) {                            /* channels innermost */
    uint32_t q = rest / p.groups;
    c = (rest - q * p.groups) * V;
    rest = q;
  }
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    uint32_t q = rest / p.out[d];
    o[d] = rest - q * p.out[d];
    rest = q;
  }
  if (V == 1) {
    uint32_t q = rest / p.groups;
    c = rest - q * p.groups;
    rest = q;
  }
  uint32_t n = rest;
  int many = whole ? V : min(V, (int)(p.c - c));
  int64_t base = n * p.x_stride[0] + c * p.x_stride[1];
  int begin[3];
#pragma unroll
  for (int d = 0; d < 3; d++) begin[d] = (int)o[d] * p.step[d] - p.before[d];
  float best[V];
  int tap[V], divisor = 0, found = 0;
#pragma unroll
  for (int i = 0; i < V; i++) best[i] = mode == AVERAGE ? 0.f : -INFINITY, tap[i] = -1;
  int t = 0;
  for (int r0 = 0; r0 < p.size[0]; r0++) {
    int z = begin[0] + r0 * p.dilation[0];
    for (int r1 = 0; r1 < p.size[1]; r1++) {
      int y = begin[1] + r1 * p.dilation[1];
      bool line = z >= 0 && z < p.in[0] && y >= 0 && y < p.in[1];
      bool declared = z < p.in[0] + p.after[0] && y < p.in[1] + p.after[1];
      if (!line && !(mode == AVERAGE && p.include_pad && declared)) {
        t += p.size[2];
        continue;
      }
      int64_t row = base + z * p.x_stride[2] + y * p.x_stride[3];
#pragma unroll 4
      for (int r2 = 0; r2 < p.size[2]; r2++, t++) {
        int x = begin[2] + r2 * p.dilation[2];
        bool inside = line && x >= 0 && x < p.in[2];
        if (mode == AVERAGE) divisor += p.include_pad ? declared && x < p.in[2] + p.after[2] : inside;
        if (!inside) continue;
        float v[V];
        if (whole) vector_load_whole<whole ? whole : QN_F32>(v, p.x, row + x * p.x_stride[4]);
        else vector_load(v, p.x, p.dtype, row + x * p.x_stride[4], 1, many);
#pragma unroll
        for (int i = 0; i < V; i++) {
          if (mode == AVERAGE) {
            best[i] += v[i];
          } else if (mode == MAX) {
            best[i] = v[i] > best[i] || v[i] != v[i] ? v[i] : best[i];
          } else if (tap[i] < 0 || v[i] > best[i] || (v[i] != v[i] && best[i] == best[i])) {
            best[i] = v[i];
            tap[i] = p.index_dtype == QN_U8 ? t : (z * p.in[1] + y) * p.in[2] + x;
          }
        }
        found = 1;
      }
    }
  }
  if (mode == AVERAGE) {
#pragma unroll
    for (int i = 0; i < V; i++) best[i] = found ? best[i] / (float)divisor : 0;
  }
  int64_t to = n * p.y_stride[0] + c * p.y_stride[1] + o[0] * p.y_stride[2] + o[1] * p.y_stride[3] + o[2] * p.y_stride[4];
  if (whole) vector_store_whole<whole ? whole : QN_F32>(best, p.y, to);
  else vector_store(best, p.y, p.dtype, to, 1, many);
  if (mode == MAX_INDEX) {
    int64_t at = n * p.index_stride[0] + c * p.index_stride[1] + o[0] * p.index_stride[2] + o[1] * p.index_stride[3] + o[2] * p.index_stride[4];
#pragma unroll
    for (int i = 0; i < V; i++)
      if (i < many) element_store_wrapped(p.indices, at + i * p.index_stride[1], p.index_dtype, tap[i]);       /* -1 is 255 of u8 */
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

struct state { pool p; int32_t x, y, indices, v; uint32_t whole; };

static void strides_of(const qn_value *v, int64_t *stride)
{
  for (int d = 0; d < v->rank; d++) stride[d < 2 ? d : d + 5 - v->rank] = v->stride[d];
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_pool *attr = (const qn_pool *)op->attr;
  const qn_value *x = cuda_value(r, QN_ROLE_POOL_MAX_X), *y = cuda_value(r, QN_ROLE_POOL_MAX_Y);
  int32_t indices = op->op == QN_OP_POOL_MAX ? qn_role(op, QN_ROLE_POOL_MAX_INDICES) : -1;
  if (x->dtype != QN_F32 && x->dtype != QN_F16 && x->dtype != QN_BF16) return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", "another");
  pool p = {};
  p.dtype = x->dtype;
  p.average = op->op == QN_OP_POOL_AVERAGE;
  p.include_pad = attr->include_pad != 0;
  int missing = 5 - x->rank;
  double plane = 1;
  for (int d = 0; d < 3; d++) {
    int from = d - missing;
    bool here = from >= 0;
    int64_t in = here ? x->dim[2 + from] : 1, output = here ? y->dim[2 + from] : 1;
    int64_t size = !here ? 1 : attr->window[from] ? attr->window[from] : in;
    int64_t step = !here ? 1 : attr->stride[from] ? attr->stride[from] : size, dilation = here ? attr->dilation[from] : 1;
    int64_t before = here ? attr->pad_before[from] : 0, after = here ? attr->pad_after[from] : 0;
    if (in + before + after > 1 << 29 || size * dilation > 1 << 29 || step > 1 << 29 || output * step > 1 << 30)
      return qn_refuse(out, "extents below 2^29", "x", "", "%lld", (long long)in);
    p.in[d] = (int32_t)in, p.out[d] = (int32_t)output, p.size[d] = (int32_t)size, p.step[d] = (int32_t)step;
    p.dilation[d] = (int32_t)dilation, p.before[d] = (int32_t)before, p.after[d] = (int32_t)after;
    plane *= (double)in;
  }
  strides_of(x, p.x_stride);
  strides_of(y, p.y_stride);
  if (indices >= 0) {
    p.index_dtype = r->value[indices].dtype;
    strides_of(&r->value[indices], p.index_stride);
    if (plane > INT32_MAX) return qn_refuse(out, "places below 2^31", "x", "", "%s", "more");
  }
  int v = p.x_stride[1] == 1 && p.y_stride[1] == 1 && x->dim[1] > 1 ? (x->dtype == QN_F32 ? 4 : 8) : 1;
  double units = (double)x->dim[0] * (double)qn_ceil_div(x->dim[1], v) * p.out[0] * p.out[1] * p.out[2];
  if (units > 4e9 || x->dim[1] > INT32_MAX) return qn_refuse(out, "fewer than 2^32 units", "y", "", "%s", "more");
  p.n = (uint32_t)x->dim[0];
  p.c = (uint32_t)x->dim[1];
  p.groups = (uint32_t)qn_ceil_div(x->dim[1], v);
  p.units = (uint32_t)units;
  state *st = (state *)r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->p = p;
  st->x = qn_role(op, QN_ROLE_POOL_MAX_X);
  st->y = qn_role(op, QN_ROLE_POOL_MAX_Y);
  st->indices = indices;
  st->v = v;
  bool whole = v > 1 && x->dim[1] % 8 == 0 && x->align >= 16 && y->align >= 16;
  for (int d = 0; d < 5; d++)
    if (d != 1) whole &= p.x_stride[d] % 8 == 0 && p.y_stride[d] % 8 == 0;
  st->whole = whole ? x->dtype : 0;
  out->state = st;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_NATIVE;
  return QN_OK;
}

template <int V, int whole> static void launch_as(const pool &p, cudaStream_t stream)
{
  unsigned blocks = (p.units + 127) / 128;
  if (p.average) pool_vector<V, AVERAGE, whole><<<blocks, 128, 0, stream>>>(p);
  else if (p.indices) pool_vector<V, MAX_INDEX, whole><<<blocks, 128, 0, stream>>>(p);
  else pool_vector<V, MAX, whole><<<blocks, 128, 0, stream>>>(p);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  pool p = st->p;
  p.x = launch->ptr[st->x];
  p.y = launch->ptr[st->y];
  p.indices = st->indices >= 0 ? launch->ptr[st->indices] : nullptr;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  if (st->whole == QN_BF16) launch_as<8, QN_BF16>(p, stream);
  else if (st->whole == QN_F16) launch_as<8, QN_F16>(p, stream);
  else if (st->whole == QN_F32) launch_as<4, QN_F32>(p, stream);
  else if (st->v == 8) launch_as<8, 0>(p, stream);
  else if (st->v == 4) launch_as<4, 0>(p, stream);
  else launch_as<1, 0>(p, stream);
  return cuda_check(cudaGetLastError(), "pool_vector");
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

#define ROW(op) { "vector", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, release }
static const qn_engine row[] = { ROW(QN_OP_POOL_MAX), ROW(QN_OP_POOL_AVERAGE) };
const qn_engine_list cuda_pool_vector_list = { row, sizeof row / sizeof *row };
