/* softmax_rows.cu -- softmax, log-softmax and their gradients on f16, bf16 and f32, each element read once and written once.
 *
 *   softmax       y = exp(x - m) / s        dx = y (dy - sum y dy)        m = max x,  s = sum exp(x - m)
 *   log_softmax   y = x - m - ln s          dx = dy - exp(y) sum dy
 *
 * rows: the axis is contiguous and short enough for the registers of a warp, a block, or (on Hopper) a cluster of blocks.
 * long: contiguous and longer: two passes, the second from the cache.
 * columns: the axis is not innermost; a thread takes four neighbouring columns along it, twice. */
#include <cfloat>
#include "cuda_backend.h"
#include "engines.h"
#include "row.cuh"
#include "vector.cuh"

enum { MAX_OUTER = 4, V = 8 };

struct rows {
  const void *x, *dy;                     /* backward: x is y */
  void    *y;
  uint32_t x_dtype, dy_dtype, y_dtype;
  int32_t  logarithm, backward, parts;    /* parts: blocks for a row */
  int64_t  length, count;
  int64_t  step[3];                       /* along the axis: x, y, dy */
  int32_t  rank;                          /* of the other dims, innermost first */
  uint32_t dim[MAX_OUTER];
  int64_t  stride[3][MAX_OUTER];

  __device__ void begin(int64_t row, int64_t at[3]) const
  {
    at[0] = at[1] = at[2] = 0;
    uint32_t rest = (uint32_t)row;
    for (int d = 0; d < rank; d++) {
      uint32_t q = rest / dim[d], i = rest - q * dim[d];
      for (int t = 0; t < 3; t++) at[t] += i * stride[t][d];
      rest = q;
    }
  }
};

/* ---- reductions over the threads of a row: the same tree every time ------------------------------------ */

template <class F> __device__ __forceinline__ float join_warp(float v, F f)
{
#pragma unroll
  for (int o = 16; o; o >>= 1) v = f(v, __shfl_xor_sync(~0u, v, o));
  return v;
}
/* Over a block of 32 warps. */
template <class F> __device__ __forceinline__ float join_block(float v, float *shared, F f)
{
  v = join_warp(v, f);
  __syncthreads();                        /* what is there has been read */
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  return join_warp(shared[threadIdx.x % 32], f);
}
struct larger { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
struct total  { __device__ float operator()(float a, float b) const { return a + b; } };

/* whole: all tensors of that dtype, in whole aligned vectors; 0: anything. */
template <int whole> __device__ __forceinline__ void row_load(float (&v)[V], const void *base, uint32_t dtype, int64_t at, int n)
{
  if (!whole) vector_load(v, base, dtype, at, 1, n);
  else if (n > 0) vector_load_whole<whole ? whole : QN_F32>(v, base, at);
}
template <int whole> __device__ __forceinline__ void row_store(const float (&v)[V], void *base, uint32_t dtype, int64_t at, int n)
{
  if (n <= 0) return;
  if (whole) vector_store_whole<whole ? whole : QN_F32>(v, base, at);
  else vector_store(v, base, dtype, at, 1, n);
}

/* ---- rows in registers ----------------------------------------------------------------------------------- */

/* A row is `parts` blocks (of a cluster) of `threads` threads, each with K packets of V. Blocks to be resident, where 16 bits an
 * element leave the registers: */
template <int threads, int whole> constexpr int row_resident = whole == QN_BF16 || whole == QN_F16 ? (threads == 32 ? 768 : 1024) / row_block<threads> : 1;

struct row_share {                        /* of one thread */
  int64_t at[3];                            /* where the row begins */
  int     first, rank;                    /* of the row: the thread's first element; the block's rank */
};
template <int threads> __device__ __forceinline__ bool row_begin(const rows &r, int K, row_share *w)
{
  constexpr int per_block = row_block<threads> / threads;
  int64_t row = row_enter<threads>(r.parts, &w->rank) * (int64_t)per_block + threadIdx.x / threads;
  if (row >= r.count) return false;       /* whole warps, and whole blocks where a row is a block's */
  w->first = (w->rank * threads * K + threadIdx.x % threads) * V;
  r.begin(row, w->at);
  return true;
}

/* exp(x), x <= 0: to 2 ulps and |x| units of rounding. */
__device__ __forceinline__ float exp_below(float x)
{
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
  return y;
}

template <int threads, int K, int whole> __global__ void __launch_bounds__(row_block<threads>, row_resident<threads, whole>) softmax_rows(const __grid_constant__ rows r)
{
  __shared__ float4 pairs[row_pairs<threads>];
  row_share w;
  if (!row_begin<threads>(r, K, &w)) return;
  packet<whole> x[K];
  float m = -FLT_MAX, s = 0, e[K][V];     /* so that exp(x - m) is 0 where all x are -Inf, and 0 / 0 is NaN */
#pragma unroll
  for (int k = 0; k < K; k++) {
    int j = w.first + k * threads * V;
    x[k].load(r.x, r.x_dtype, w.at[0] + j, min((int)V, (int)r.length - j), -INFINITY);
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    x[k].open(e[k]);
#pragma unroll
    for (int i = 0; i < V; i++) m = fmaxf(m, e[k][i]);
  }
  m = join_warp(m, larger());
#pragma unroll
  for (int k = 0; k < K; k++)
#pragma unroll
    for (int i = 0; i < V; i++) {
      float y = exp_below(e[k][i] - m);
      s += y;
      if (!r.logarithm) e[k][i] = y;
    }
  s = join_warp(s, total());
  float scale = 1 / s;
  if (threads > 32) {                     /* the warps' sums were of exp(x - m) with an m each */
    int lane = threadIdx.x % 32, n = row_exchange<threads>(r.parts, w.rank, 0, false, pairs, make_float4(m, s, 0, 0));
    float top = -FLT_MAX;
    for (int i = lane; i < n; i += 32) top = fmaxf(top, pairs[i].x);
    top = join_warp(top, larger());
    s = 0;
    for (int i = lane; i < n; i += 32) s += pairs[i].y * exp_below(pairs[i].x - top);
    s = join_warp(s, total());
    scale = exp_below(m - top) / s;
    m = top;
  }
  float ln = logf(s);
#pragma unroll
  for (int k = 0; k < K; k++) {
    int j = w.first + k * threads * V;
#pragma unroll
    for (int i = 0; i < V; i++) e[k][i] = r.logarithm ? e[k][i] - m - ln : e[k][i] * scale;
    row_store<whole>(e[k], r.y, r.y_dtype, w.at[1] + j, min((int)V, (int)r.length - j));
  }
}

template <int threads, int K, int whole> __global__ void __launch_bounds__(row_block<threads>, row_resident<threads, whole>) softmax_backward_rows(const __grid_constant__ rows r)
{
  __shared__ float4 pairs[row_pairs<threads>];
  row_share w;
  if (!row_begin<threads>(r, K, &w)) return;
  packet<whole> y[K], dy[K];
  float s = 0;
#pragma unroll
  for (int k = 0; k < K; k++) {
    int j = w.first + k * threads * V;
    int n = min((int)V, (int)r.length - j);
    y[k].load(r.x, r.x_dtype, w.at[0] + j, n, 0);
    dy[k].load(r.dy, r.dy_dtype, w.at[2] + j, n, 0);
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    float a[V], b[V];
    y[k].open(a);
    dy[k].open(b);
#pragma unroll
    for (int i = 0; i < V; i++) s += r.logarithm ? b[i] : a[i] * b[i];
  }
  s = join_warp(s, total());
  if (threads > 32) {
    int n = row_exchange<threads>(r.parts, w.rank, 0, false, pairs, make_float4(s, 0, 0, 0));
    s = 0;
    for (int i = threadIdx.x % 32; i < n; i += 32) s += pairs[i].x;
    s = join_warp(s, total());
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    int j = w.first + k * threads * V;
    float a[V], b[V];
    y[k].open(a);
    dy[k].open(b);
#pragma unroll
    for (int i = 0; i < V; i++) a[i] = r.logarithm ? b[i] - expf(a[i]) * s : a[i] * (b[i] - s);
    row_store<whole>(a, r.y, r.y_dtype, w.at[1] + j, min((int)V, (int)r.length - j));
  }
}

/* ---- long rows ---------------------------------------------------------------------------------------------- */

/* The maximum so far, and the sum of exp(x - m); -Inf - -Inf is taken for 0. */
__device__ __forceinline__ void online(float &m, float &s, float m2, float s2)
{
  float top = fmaxf(m, m2);
  s = s * (m == top ? 1.f : expf(m - top)) + s2 * (m2 == top ? 1.f : expf(m2 - top));
  m = top;
}

template <int whole> __global__ void __launch_bounds__(1024) softmax_long(const __grid_constant__ rows r)
{
  __shared__ float shared[32];
  int64_t at[3];
  r.begin(blockIdx.x, at);
  float m = -INFINITY, s = 0, w = 0;
#pragma unroll 2
  for (int64_t j = threadIdx.x * V; j < r.length; j += 1024 * V) {
    float v[V], top = m;
    int n = (int)min((int64_t)V, r.length - j);
    row_load<whole>(v, r.x, r.x_dtype, at[0] + j, n);
    if (r.backward) {
      float dy[V];
      row_load<whole>(dy, r.dy, r.dy_dtype, at[2] + j, n);
#pragma unroll
      for (int i = 0; i < V; i++) w += whole || i < n ? (r.logarithm ? dy[i] : v[i] * dy[i]) : 0;
      continue;
    }
#pragma unroll
    for (int i = 0; i < V; i++) top = whole || i < n ? fmaxf(top, v[i]) : top;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < V; i++) sum += whole || i < n ? (v[i] == top ? 1.f : expf(v[i] - top)) : 0;
    s = s * (m == top ? 1.f : expf(m - top)) + sum;
    m = top;
  }
  if (r.backward) {
    w = join_block(w, shared, total());
  } else {
    float top = join_block(m, shared, larger());
    s = join_block(s * (m == top ? 1.f : expf(m - top)), shared, total());
    m = top;
    if (m == -INFINITY || m == INFINITY) s = NAN;           /* what exp(x - m) would have summed to */
  }
  float scale = 1 / s, ln = logf(s);
#pragma unroll 2
  for (int64_t j = threadIdx.x * V; j < r.length; j += 1024 * V) {
    float v[V];
    int n = (int)min((int64_t)V, r.length - j);
    row_load<whole>(v, r.x, r.x_dtype, at[0] + j, n);
    if (r.backward) {
      float dy[V];
      row_load<whole>(dy, r.dy, r.dy_dtype, at[2] + j, n);
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = r.logarithm ? dy[i] - expf(v[i]) * w : v[i] * (dy[i] - w);
    } else {
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = r.logarithm ? v[i] - m - ln : expf(v[i] - m) * scale;
    }
    row_store<whole>(v, r.y, r.y_dtype, at[1] + j, n);
  }
}

/* ---- columns -------------------------------------------------------------------------------------------------- */

enum { W = 4 };                           /* neighbouring columns of a thread; dim[0] of the other dims is contiguous */

__global__ void __launch_bounds__(128) softmax_columns(const __grid_constant__ rows r)
{
  uint32_t per_row = (r.dim[0] + W - 1) / W;
  int64_t item = blockIdx.x * (int64_t)128 + threadIdx.x, at[3];
  uint32_t outer = (uint32_t)(item / per_row), c0 = (uint32_t)(item - (int64_t)outer * per_row) * W;
  if ((int64_t)outer * r.dim[0] >= r.count) return;
  r.begin((int64_t)outer * r.dim[0] + c0, at);
  int n = min((int)(r.dim[0] - c0), (int)W);
  float m[W], s[W];
#pragma unroll
  for (int i = 0; i < W; i++) m[i] = -INFINITY, s[i] = 0;
  for (int64_t j = 0; j < r.length; j++) {
    float v[W], dy[W];
    vector_load(v, r.x, r.x_dtype, at[0] + j * r.step[0], r.stride[0][0], n);
    if (r.backward) {
      vector_load(dy, r.dy, r.dy_dtype, at[2] + j * r.step[2], r.stride[2][0], n);
#pragma unroll
      for (int i = 0; i < W; i++) s[i] += r.logarithm ? dy[i] : v[i] * dy[i];
    } else {
#pragma unroll
      for (int i = 0; i < W; i++) online(m[i], s[i], v[i], v[i] != v[i] ? v[i] : 1.f);
    }
  }
  float scale[W], ln[W];
#pragma unroll
  for (int i = 0; i < W; i++) {
    if (!r.backward && (m[i] == -INFINITY || m[i] == INFINITY)) s[i] = NAN;
    scale[i] = 1 / s[i];
    ln[i] = logf(s[i]);
  }
  for (int64_t j = 0; j < r.length; j++) {
    float v[W], dy[W];
    vector_load(v, r.x, r.x_dtype, at[0] + j * r.step[0], r.stride[0][0], n);
    if (r.backward) {
      vector_load(dy, r.dy, r.dy_dtype, at[2] + j * r.step[2], r.stride[2][0], n);
#pragma unroll
      for (int i = 0; i < W; i++) v[i] = r.logarithm ? dy[i] - expf(v[i]) * s[i] : v[i] * (dy[i] - s[i]);
    } else {
#pragma unroll
      for (int i = 0; i < W; i++) v[i] = r.logarithm ? v[i] - m[i] - ln[i] : expf(v[i] - m[i]) * scale[i];
    }
    vector_store(v, r.y, r.y_dtype, at[1] + j * r.step[1], r.stride[1][0], n);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct state { rows r; int32_t number[3]; };                /* x, y, dy */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  bool backward = op->op == QN_OP_SOFTMAX_BACKWARD || op->op == QN_OP_LOG_SOFTMAX_BACKWARD;
  int32_t number[3] = { op->arg[0], op->arg[backward ? 2 : 1], op->arg[backward ? 1 : 0] };
  const qn_value *v[3], *x = &r->value[number[0]];
  for (int t = 0; t < 3; t++) v[t] = &r->value[number[t]];
  for (int t = 0; t < 3; t++)
    if (v[t]->dtype != QN_F32 && v[t]->dtype != QN_F16 && v[t]->dtype != QN_BF16)
      return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", "another");
  int64_t axis = ((const qn_axis *)op->attr)->axis;
  if (axis < 0) axis += x->rank;
  rows k = {};
  k.length = x->dim[axis];
  k.count = qn_elements(x) / k.length;
  if (k.count > INT32_MAX) return qn_refuse(out, "fewer than 2^31 rows", "x", "", "%lld", (long long)k.count);
  qn_nest nest = {};
  nest.n = 3;
  for (int d = 0; d < x->rank; d++) {
    if (d == axis) continue;
    nest.dim[nest.rank] = x->dim[d];
    for (int t = 0; t < 3; t++) nest.stride[t][nest.rank] = v[t]->stride[d];
    nest.rank++;
  }
  qn_nest_simplify(&nest);
  if (nest.rank > MAX_OUTER) return qn_refuse(out, "at most 4 other dims that do not merge", "x", "4", "%d", nest.rank);
  k.rank = nest.rank;
  bool contiguous = true;
  for (int t = 0; t < 3; t++) {
    k.step[t] = k.length > 1 ? v[t]->stride[axis] : 1;
    contiguous &= k.step[t] == 1;
    for (int d = 0; d < nest.rank; d++) k.stride[t][d] = nest.stride[t][nest.rank - 1 - d];
  }
  for (int d = 0; d < nest.rank; d++) k.dim[d] = (uint32_t)nest.dim[nest.rank - 1 - d];
  if (nest.rank == 0) k.rank = 1, k.dim[0] = 1;
  k.x_dtype = v[0]->dtype;
  k.y_dtype = v[1]->dtype;
  k.dy_dtype = v[2]->dtype;
  k.backward = backward;
  k.logarithm = op->op == QN_OP_LOG_SOFTMAX || op->op == QN_OP_LOG_SOFTMAX_BACKWARD;
  if (!contiguous && k.count * 8 < k.length)
    return qn_refuse(out, "a contiguous axis, or many columns", "x", "a stride of 1", "%lld", (long long)k.step[0]);

  k.parts = row_parts(r->device, k.length, ROW_SHARE);                 /* 0: long */
  if (k.count * k.parts > INT32_MAX) k.parts = 0;

  state st = {};
  st.r = k;
  memcpy(st.number, number, sizeof number);
  out->word[0] = contiguous;
  bool whole = k.length % V == 0;         /* word[1]: the one dtype, or 0 */
  for (int t = 0; t < 3; t++) {
    whole &= v[t]->dtype == x->dtype && v[t]->align >= 16;
    for (int d = 0; d < k.rank; d++) whole &= k.stride[t][d] % V == 0;
  }
  out->word[1] = whole ? x->dtype : 0;
  if (contiguous && k.length > ROW_SHARE) out->traits &= ~(uint64_t)QN_TRAIT_PORTABLE;        /* without clusters a row is one block's */
  return cuda_keep(out, &st, sizeof st);
}

template <int threads, int K, int whole> static qn_status launch_as(rows &r, cudaStream_t stream)
{
  constexpr int block = row_block<threads>, per_block = block / threads;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = { (unsigned)r.parts, 1, 1 };
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)((r.count * r.parts + per_block - 1) / per_block));
  config.blockDim = dim3(block);
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = r.parts > 1;
  void *args[] = { &r };
  const void *kernel = r.backward ? (const void *)softmax_backward_rows<threads, K, whole> : (const void *)softmax_rows<threads, K, whole>;
  return cuda_check(cudaLaunchKernelExC(&config, kernel, args), "softmax_rows");
}

template <int threads, int K> static qn_status launch_rows(rows &r, uint64_t whole, cudaStream_t stream)
{
  if (whole == QN_F32) return launch_as<threads, K, QN_F32>(r, stream);
  if (whole == QN_BF16) return launch_as<threads, K, QN_BF16>(r, stream);
  if (whole == QN_F16) return launch_as<threads, K, QN_F16>(r, stream);
  return launch_as<threads, K, 0>(r, stream);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = (const state *)p->state;
  rows r = st->r;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  r.x = launch->ptr[st->number[0]];
  r.y = launch->ptr[st->number[1]];
  r.dy = launch->ptr[st->number[2]];
  if (!p->word[0]) {
    int64_t items = qn_ceil_div(r.dim[0], W) * (r.count / r.dim[0]);
    softmax_columns<<<(unsigned)qn_ceil_div(items, 128), 128, 0, stream>>>(r);
  }
  else if (r.length <= 256) return launch_rows<32, 1>(r, p->word[1], stream);
  else if (r.length <= 1024) return launch_rows<32, 4>(r, p->word[1], stream);
  else if (r.length <= 4096) return launch_rows<128, 4>(r, p->word[1], stream);
  else if (r.length <= 8192) return launch_rows<256, 4>(r, p->word[1], stream);
  else if (r.length <= (int64_t)ROW_SHARE * r.parts) return launch_rows<512, 4>(r, p->word[1], stream);
  else if (p->word[1] == QN_F32) softmax_long<QN_F32><<<(unsigned)r.count, 1024, 0, stream>>>(r);
  else if (p->word[1] == QN_BF16) softmax_long<QN_BF16><<<(unsigned)r.count, 1024, 0, stream>>>(r);
  else if (p->word[1] == QN_F16) softmax_long<QN_F16><<<(unsigned)r.count, 1024, 0, stream>>>(r);
  else softmax_long<0><<<(unsigned)r.count, 1024, 0, stream>>>(r);
  return cuda_check(cudaGetLastError(), "softmax_rows");
}

#define ROW(op) { "rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_SOFTMAX), ROW(QN_OP_LOG_SOFTMAX), ROW(QN_OP_SOFTMAX_BACKWARD), ROW(QN_OP_LOG_SOFTMAX_BACKWARD) };
const qn_engine_list cuda_softmax_rows_list = { row, sizeof row / sizeof *row };
