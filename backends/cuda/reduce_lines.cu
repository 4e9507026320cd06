/* reduce_lines.cu -- reductions of f16, bf16 and f32 at the speed of memory, in f32, in a fixed order.
 *
 *   sum, mean, prod, max, min   norm1 = sum |x|   norm2 = sqrt(sum x^2)   amax = max |x|
 *
 * rows: what is reduced is contiguous; a warp or a block for each result.
 * columns: what is kept is contiguous; a block takes 256 columns, its warps every eighth line.
 * Where that makes too few blocks the lines are split, and a second kernel joins the parts in order. */
#include "cuda_backend.h"
#include "engines.h"
#include "functions.cuh"
#include "vector.cuh"

enum { V = 8, MAX_KEPT = 4, COLUMNS = 256, WARPS = 8 };
/* |x| and -x are masks on the way in (and, for min, on the way out); squares are summed in double, for they overflow. */
enum { SUM, SUM_SQUARES, PRODUCT, MAXIMUM };
template <int kind> struct accumulator { typedef float type; };
template <> struct accumulator<SUM_SQUARES> { typedef double type; };

struct lines {
  const void *x;
  void    *y;
  double  *partial;                       /* [part][result]; NULL: one part */
  uint32_t keep, flip;                    /* bits of x */
  uint32_t x_dtype, y_dtype, op;
  int32_t  parts;
  int64_t  results, count;                /* how many, of how many elements each */
  int64_t  length, repeat, repeat_stride; /* count = repeat runs of length */
  int64_t  line_stride;                   /* columns: between elements of a run */
  int32_t  rank;                          /* of what is kept, innermost first */
  uint32_t dim[MAX_KEPT];
  int64_t  x_stride[MAX_KEPT], y_stride[MAX_KEPT];

  __device__ int64_t place(uint32_t i, const int64_t *stride) const
  {
    int64_t at = 0;
    for (int d = 0; d < rank; d++) {
      uint32_t q = i / dim[d];
      at += (i - q * dim[d]) * stride[d];
      i = q;
    }
    return at;
  }
};

template <int kind, class A> __device__ __forceinline__ A join(A a, A b)
{
  return kind == PRODUCT ? a * b : kind == MAXIMUM ? fn_max(a, b) : a + b;
}
template <int kind, class A> __device__ __forceinline__ A seen(const lines &l, float v)
{
  v = __uint_as_float((__float_as_uint(v) & l.keep) ^ l.flip);
  return kind == SUM_SQUARES ? (A)v * (A)v : (A)v;
}
template <int kind, class A> __device__ __forceinline__ A nothing() { return kind == PRODUCT ? A(1) : kind == MAXIMUM ? -(A)INFINITY : A(0); }
template <int kind, class A> __device__ __forceinline__ A join_warp(A v)
{
#pragma unroll
  for (int o = 16; o; o >>= 1) v = join<kind>(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

template <class A> __device__ __forceinline__ void finish(const lines &l, uint32_t result, A v)
{
  if (l.op == QN_OP_REDUCE_MEAN) v /= (A)l.count;
  if (l.op == QN_OP_REDUCE_NORM2) v = sqrt(v);
  element_store(l.y, l.place(result, l.y_stride), l.y_dtype, l.flip ? -v : v);
}

/* whole: x is of that dtype, in whole aligned vectors; 0: anything. */
template <int whole> __device__ __forceinline__ void line_load(const lines &l, float (&v)[V], int64_t at, int n)
{
  if (whole) vector_load_whole<whole ? whole : QN_F32>(v, l.x, at);
  else vector_load(v, l.x, l.x_dtype, at, 1, n);
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

template <int kind, int whole, int threads> __global__ void __launch_bounds__(256) reduce_rows(const __grid_constant__ lines l)
{
  typedef typename accumulator<kind>::type A;
  __shared__ A shared[8];
  constexpr int per_block = 256 / threads;
  int t = threadIdx.x % threads;
  int64_t job = blockIdx.x * (int64_t)per_block + threadIdx.x / threads;
  if (job >= l.results * l.parts) return;
  uint32_t result = (uint32_t)(job / l.parts), part = (uint32_t)(job - (int64_t)result * l.parts);
  int64_t from = l.place(result, l.x_stride), share = (l.length + l.parts - 1) / l.parts;
  share = (share + V - 1) / V * V;
  int64_t begin = part * share, end = min(l.length, begin + share);
  A sum[V];
#pragma unroll
  for (int i = 0; i < V; i++) sum[i] = nothing<kind, A>();
  for (int64_t k = 0; k < l.repeat; k++) {
    int64_t base = from + k * l.repeat_stride;
#pragma unroll 4
    for (int64_t j = begin + t * V; j < end; j += threads * V) {
      float v[V];
      int n = (int)min((int64_t)V, end - j);
      line_load<whole>(l, v, base + j, n);
#pragma unroll
      for (int i = 0; i < V; i++)
        if (whole || i < n) sum[i] = join<kind>(sum[i], seen<kind, A>(l, v[i]));
    }
  }
#pragma unroll
  for (int half = V / 2; half; half >>= 1)
#pragma unroll
    for (int i = 0; i < V / 2; i++)
      if (i < half) sum[i] = join<kind>(sum[i], sum[i + half]);
  A v = join_warp<kind>(sum[0]);
  if (threads > 32) {
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = shared[0];
    for (int w = 1; w < threads / 32; w++) v = join<kind>(v, shared[w]);
  }
  if (t == 0) {
    if (l.partial) l.partial[part * l.results + result] = v;
    else finish(l, result, v);
  }
}

/* ---- columns ----------------------------------------------------------------------------------------------- */

template <int kind, int whole> __global__ void __launch_bounds__(256) reduce_columns(const __grid_constant__ lines l)
{
  typedef typename accumulator<kind>::type A;
  __shared__ A shared[WARPS][COLUMNS];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t c0 = blockIdx.x * COLUMNS + lane * V, outer = blockIdx.z;
  int n = (int)max((int64_t)0, min((int64_t)V, (int64_t)l.dim[0] - c0));
  int64_t share = (l.length + l.parts - 1) / l.parts, begin = blockIdx.y * share, end = min(l.length, begin + share);
  A sum[V];
#pragma unroll
  for (int i = 0; i < V; i++) sum[i] = nothing<kind, A>();
  if (n > 0) {
    int64_t from = l.place(outer * l.dim[0] + c0, l.x_stride);
    for (int64_t k = 0; k < l.repeat; k++) {
      int64_t base = from + k * l.repeat_stride;
#pragma unroll 4
      for (int64_t j = begin + warp; j < end; j += WARPS) {
        float v[V];
        line_load<whole>(l, v, base + j * l.line_stride, n);
#pragma unroll
        for (int i = 0; i < V; i++) sum[i] = join<kind>(sum[i], seen<kind, A>(l, v[i]));
      }
    }
  }
#pragma unroll
  for (int i = 0; i < V; i++) shared[warp][lane * V + i] = sum[i];
  __syncthreads();
  uint32_t c = blockIdx.x * COLUMNS + threadIdx.x;
  if (c >= l.dim[0]) return;
  A v = shared[0][threadIdx.x];
#pragma unroll
  for (int w = 1; w < WARPS; w++) v = join<kind>(v, shared[w][threadIdx.x]);
  uint32_t result = outer * l.dim[0] + c;
  if (l.partial) l.partial[blockIdx.y * l.results + result] = v;
  else finish(l, result, v);
}

/* ---- joining parts -------------------------------------------------------------------------------------------- */

template <int kind> __global__ void __launch_bounds__(128) reduce_parts(const __grid_constant__ lines l)
{
  int64_t result = blockIdx.x * (int64_t)128 + threadIdx.x;
  if (result >= l.results) return;
  typedef typename accumulator<kind>::type A;
  A v = (A)l.partial[result];
  for (int p = 1; p < l.parts; p++) v = join<kind>(v, (A)l.partial[p * l.results + result]);
  finish(l, (uint32_t)result, v);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct state { lines l; int32_t x, y, columns; uint32_t whole; unsigned blocks[3]; };

static int kind_of(uint32_t op)
{
  switch (op) {
  case QN_OP_REDUCE_NORM2: return SUM_SQUARES;
  case QN_OP_REDUCE_PROD:  return PRODUCT;
  case QN_OP_REDUCE_MAX: case QN_OP_REDUCE_MIN: case QN_OP_REDUCE_AMAX: return MAXIMUM;
  default: return SUM;
  }
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_value *x = &r->value[op->arg[0]], *y = &r->value[op->arg[1]];
  uint64_t mask = ((const qn_axes *)op->attr)->mask;
  if ((x->dtype != QN_F32 && x->dtype != QN_F16 && x->dtype != QN_BF16) || !qn_is_float(y->dtype))
    return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", "another");
  qn_nest kept = {}, gone = {};
  kept.n = 2;
  gone.n = 1;
  for (int d = 0; d < x->rank; d++) {
    if (!mask || mask >> d & 1) {
      gone.dim[gone.rank] = x->dim[d];
      gone.stride[0][gone.rank++] = x->stride[d];
    } else {
      kept.dim[kept.rank] = x->dim[d];
      kept.stride[0][kept.rank] = x->stride[d];
      kept.stride[1][kept.rank++] = y->stride[d];
    }
  }
  qn_nest_simplify(&kept);
  qn_nest_simplify(&gone);
  lines l = {};
  l.op = op->op;
  l.x_dtype = x->dtype;
  l.y_dtype = y->dtype;
  l.results = qn_elements(y);
  l.count = l.results ? qn_elements(x) / l.results : 0;
  if (l.count == 0) return qn_refuse(out, "something to reduce", "x", "1 or more", "%s", "0");
  if (l.results > INT32_MAX || l.count > ((int64_t)1 << 40)) return qn_refuse(out, "fewer than 2^31 results", "y", "", "%s", "more");
  if (kept.rank > MAX_KEPT || gone.rank > 2) return qn_refuse(out, "at most 4 kept and 2 reduced dims that do not merge", "x", "", "%s", "more");
  l.rank = kept.rank;
  for (int d = 0; d < kept.rank; d++) {
    int from = kept.rank - 1 - d;
    l.dim[d] = (uint32_t)kept.dim[from];
    l.x_stride[d] = kept.stride[0][from];
    l.y_stride[d] = kept.stride[1][from];
  }
  int inner = gone.rank - 1;
  l.length = gone.rank ? gone.dim[inner] : 1;
  l.line_stride = gone.rank ? gone.stride[0][inner] : 1;
  l.repeat = gone.rank == 2 ? gone.dim[0] : 1;
  l.repeat_stride = gone.rank == 2 ? gone.stride[0][0] : 0;
  bool columns = kept.rank > 0 && l.x_stride[0] == 1 && l.line_stride != 1;
  if (!columns && l.line_stride != 1 && l.length > 1)
    return qn_refuse(out, "a contiguous dim, kept or reduced", "x", "a stride of 1", "%lld", (long long)l.line_stride);

  state *st = (state *)r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  int64_t enough = 8 * (int64_t)r->device->units, blocks, parts;
  st->columns = columns;
  if (columns) {
    int64_t outer = l.results / l.dim[0], across = qn_ceil_div(l.dim[0], COLUMNS);
    if (outer > 65535) {
      r->host->free(st);
      return qn_refuse(out, "at most 65535 outer places", "x", "65535", "%lld", (long long)outer);
    }
    blocks = across * outer;
    parts = qn_min_i64(qn_ceil_div(enough, blocks), qn_max_i64(1, l.length / 64));
    st->blocks[0] = (unsigned)across;
    st->blocks[2] = (unsigned)outer;
  } else {
    blocks = l.length <= 1024 ? qn_ceil_div(l.results, 8) : l.results;
    parts = qn_min_i64(qn_ceil_div(enough, blocks * 2), qn_max_i64(1, l.length / 8192));
  }
  if (parts > 1024) parts = 1024;
  if ((uint64_t)(parts * l.results * 8) > r->demands->workspace_limit) parts = 1;
  l.parts = (int32_t)parts;
  l.keep = l.op == QN_OP_REDUCE_NORM1 || l.op == QN_OP_REDUCE_AMAX ? 0x7fffffffu : ~0u;
  l.flip = l.op == QN_OP_REDUCE_MIN ? 0x80000000u : 0;
  bool whole = x->align >= 16 && l.repeat_stride % V == 0 && (columns ? l.dim[0] % V == 0 && l.line_stride % V == 0 : l.length % V == 0);
  for (int d = columns; d < l.rank; d++) whole &= l.x_stride[d] % V == 0;
  st->whole = whole ? x->dtype : 0;
  st->l = l;
  st->x = op->arg[0];
  st->y = op->arg[1];
  out->state = st;
  out->workspace = parts > 1 ? (uint64_t)(parts * l.results * 8) : 0;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_NATIVE;
  return QN_OK;
}

template <int kind, int whole> static void launch_as(const state *st, const lines &l, cudaStream_t stream)
{
  if (st->columns) reduce_columns<kind, whole><<<dim3(st->blocks[0], (unsigned)l.parts, st->blocks[2]), 256, 0, stream>>>(l);
  else if (l.length <= 1024) reduce_rows<kind, whole, 32><<<(unsigned)qn_ceil_div(l.results * l.parts, 8), 256, 0, stream>>>(l);
  else reduce_rows<kind, whole, 256><<<(unsigned)(l.results * l.parts), 256, 0, stream>>>(l);
  if (l.partial) reduce_parts<kind><<<(unsigned)qn_ceil_div(l.results, 128), 128, 0, stream>>>(l);
}

template <int kind> static void launch_kind(const state *st, const lines &l, cudaStream_t stream)
{
  if (st->whole == QN_F32) launch_as<kind, QN_F32>(st, l, stream);
  else if (st->whole == QN_BF16) launch_as<kind, QN_BF16>(st, l, stream);
  else if (st->whole == QN_F16) launch_as<kind, QN_F16>(st, l, stream);
  else launch_as<kind, 0>(st, l, stream);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = (const state *)p->state;
  lines l = st->l;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  l.x = launch->ptr[st->x];
  l.y = launch->ptr[st->y];
  l.partial = l.parts > 1 ? (double *)launch->workspace : nullptr;
  switch (kind_of(l.op)) {
  case SUM_SQUARES: launch_kind<SUM_SQUARES>(st, l, stream); break;
  case PRODUCT:     launch_kind<PRODUCT>(st, l, stream); break;
  case MAXIMUM:     launch_kind<MAXIMUM>(st, l, stream); break;
  default:          launch_kind<SUM>(st, l, stream); break;
  }
  return cuda_check(cudaGetLastError(), "reduce_lines");
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

#define ROW(op) { "lines", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare, nullptr, run, release }
static const qn_engine row[] = {
  ROW(QN_OP_REDUCE_SUM), ROW(QN_OP_REDUCE_MEAN), ROW(QN_OP_REDUCE_PROD), ROW(QN_OP_REDUCE_MAX), ROW(QN_OP_REDUCE_MIN),
  ROW(QN_OP_REDUCE_NORM1), ROW(QN_OP_REDUCE_NORM2), ROW(QN_OP_REDUCE_AMAX),
};
const qn_engine_list cuda_reduce_lines_list = { row, sizeof row / sizeof *row };
