/* softmax_rows.cu -- softmax, log-softmax and their gradients on f16, bf16 and f32, each element read once and written once.
 *
 *   softmax       y = exp(x - m) / s        dx = y (dy - sum y dy)        m = max x,  s = sum exp(x - m)
 *   log_softmax   y = x - m - ln s          dx = dy - exp(y) sum dy
 *
 * lanes: a row of a contiguous axis in the registers of a warp, or of a part of one.
 * kept: longer ones in the shared memory of a block, or (on Hopper) of a cluster's blocks. Each thread copies the words that it will
 * read itself, so registers stay few and several blocks share a multiprocessor: one's loads run under another's stores.
 * long: those that do not fit there are read twice, the second time partly from the cache.
 * any: dtypes or phases that differ, twice by a block.
 * columns: the axis is not innermost; a thread takes four neighbouring columns along it, twice. */
#include <cfloat>
#include "cuda_backend.h"
#include "engines.h"
#include "sm90.cuh"
#include "words.cuh"

enum { MAX_OUTER = 4, V = 8, LANES_MOST = 1024, BLOCK_MOST = 512, KEPT_PARTS = 8,
       KEPT_SHARE = 32 * 1024, KEPT_TOLD = 2048 };         /* bytes: of a block where a row may have more; set aside */

struct rows {
  const void *x, *dy;                     /* backward: x is y */
  void    *y;
  uint32_t x_dtype, dy_dtype, y_dtype;
  int32_t  logarithm, backward;
  int32_t  lanes;                         /* lanes: for a row */
  int32_t  parts, share;                  /* kept: blocks for a row, words of each */
  int32_t  steady;                        /* all rows begin at one phase */
  int64_t  length, count;
  int64_t  step[3];                       /* along the axis: x, y, dy */
  int32_t  rank;                          /* of the other dims, innermost first */
  uint32_t dim[MAX_OUTER];
  int64_t  stride[3][MAX_OUTER];

  __device__ void begin(int64_t row, int64_t at[3]) const
  {
    at[0] = at[1] = at[2] = 0;
    uint32_t rest = (uint32_t)row;
#pragma unroll 1
    for (int d = 0; d < rank; d++) {
      uint32_t q = rest / dim[d], i = rest - q * dim[d];
      for (int t = 0; t < 3; t++) at[t] += i * stride[t][d];
      rest = q;
    }
  }
};

/* ---- the arithmetic ------------------------------------------------------------------------------------------ */

/* exp(x): to 2 ulps and |x| units of rounding. As a term of a sum near 1 or above, what is subnormal may be 0. */
__device__ __forceinline__ float exp_of(float x)
{
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
  return y;
}
__device__ __forceinline__ float exp2_term(float x)
{
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float exp_term(float x) { return exp2_term(x * 1.44269504f); }

/* A maximum so far, and the sum of exp(x - m). It begins with the least number, so that exp(x - m) is 0 where all x are -Inf, and
 * 0 / 0 is NaN. */
struct spread {
  float m, s;

  template <int N> __device__ __forceinline__ void join(const float (&v)[N])
  {
    float top = m, sum = 0;
#pragma unroll
    for (int i = 0; i < N; i++) top = fmaxf(top, v[i]);
#pragma unroll
    for (int i = 0; i < N; i++) sum += exp_term(v[i] - top);
    s = s * exp_term(m - top) + sum;
    m = top;
  }
  __device__ __forceinline__ void join(spread o)
  {
    float top = fmaxf(m, o.m);
    s = s * exp_term(m - top) + o.s * exp_term(o.m - top);
    m = top;
  }
};

/* Over neighbouring lanes of a warp, all of them or a part. */
__device__ __forceinline__ float sum_lanes(float v, int lanes = 32)
{
  for (int o = lanes / 2; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
__device__ __forceinline__ float max_lanes(float v, int lanes = 32)
{
  for (int o = lanes / 2; o; o >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, o));
  return v;
}
/* The warp's threads' in one; of gradients, which have no maximum, the sum. */
template <bool backward> __device__ __forceinline__ spread join_warp(spread j)
{
  if (backward) return { j.m, sum_lanes(j.s) };
  float top = max_lanes(j.m);
  return { top, sum_lanes(j.s * exp_term(j.m - top)) };
}
/* n warps' that lie in shared memory, the same in all warps. */
template <bool backward> __device__ __forceinline__ spread join_told(const spread *told, int n)
{
  spread j = { -FLT_MAX, 0 };
  for (int i = threadIdx.x % 32; i < n; i += 32) {
    if (backward) j.s += told[i].s;
    else j.join(told[i]);
  }
  return join_warp<backward>(j);
}

/* What a row's elements become, once the whole row is known. */
struct finish {
  float m, s, scale, ln;                  /* backward: s alone */
  bool  logarithm;

  __device__ __forceinline__ float forward(float x) const { return logarithm ? x - m - ln : exp_of(x - m) * scale; }
  /* Of a long row, whose sum errs by more than a square does: fewer instructions, and what is subnormal stays. */
  __device__ __forceinline__ float forward_long(float x) const
  {
    float root = exp2_term((x - m) * 0.72134752f);
    return logarithm ? x - m - ln : root * scale * root;
  }
  __device__ __forceinline__ float backward(float y, float dy) const { return logarithm ? dy - exp_of(y) * s : y * (dy - s); }
  /* A term of a gradient's sum. */
  __device__ __forceinline__ static float term(bool logarithm, float y, float dy) { return logarithm ? dy : y * dy; }
};
__device__ __forceinline__ finish finish_of(spread j, bool logarithm) { return { j.m, j.s, 1 / j.s, logf(j.s), logarithm }; }

/* ---- lanes: a row in the registers of 8, 16 or 32 lanes ------------------------------------------------------------ */

enum { LANES_BLOCK = 128, LANES_LEAST = 8 };
template <int dtype> constexpr int lanes_words = dtype == QN_F32 ? 8 : 4;  /* of a thread */

/* Where a thread's row and its part of it lie. */
template <int dtype> struct lanes_place {
  int64_t at[3];
  row_words w;
  int lane, end[2];

  __device__ __forceinline__ lanes_place(const rows &r)
  {
    int64_t row = blockIdx.x * (int64_t)(LANES_BLOCK / r.lanes) + threadIdx.x / r.lanes;
    const int length = row < r.count ? (int)r.length : 0;  /* its lanes stay, for the warp's others */
    lane = threadIdx.x % r.lanes;
    r.begin(row, at);
    w = words_of<dtype>(at[0], length);
    for (int i = 0; i < 2; i++) end[i] = edge_of(w, length, lane + i * r.lanes);
  }
  __device__ __forceinline__ bool has(const rows &r, int k) const { return lane + k * r.lanes < w.count; }
  __device__ __forceinline__ bool none(const rows &r, int k) const { return k * r.lanes >= w.count; }       /* in the row */
  __device__ __forceinline__ uint4 *word(const rows &r, const void *base, int t, int k) const
  {
    return (uint4 *)vector_place<dtype>(base, at[t] + w.lead) + lane + k * r.lanes;
  }
};

template <int dtype> __global__ static void __launch_bounds__(LANES_BLOCK, dtype == QN_F32 ? 6 : 7) softmax_lanes(const __grid_constant__ rows r)
{
  constexpr int E = vector_per_16<dtype>, K = lanes_words<dtype>;
  const lanes_place<dtype> p(r);
  uint4 q[K];
  float e[K][E], edge[2], m = -FLT_MAX, s = 0;
#pragma unroll
  for (int k = 0; k < K; k++) q[k] = p.has(r, k) ? *p.word(r, r.x, 0, k) : word_of_least<dtype>();
#pragma unroll
  for (int i = 0; i < 2; i++) {
    edge[i] = p.end[i] < 0 ? -INFINITY : edge_load<dtype>(r.x, p.at[0] + p.end[i]);
    m = fmaxf(m, edge[i]);
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    vector_open<dtype>(e[k], 0, q[k]);
#pragma unroll
    for (int i = 0; i < E; i++) m = fmaxf(m, e[k][i]);
  }
  m = max_lanes(m, r.lanes);
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (p.none(r, k)) continue;
#pragma unroll
    for (int i = 0; i < E; i++) {
      float y = exp_of(e[k][i] - m);
      s += y;
      if (!r.logarithm) e[k][i] = y;
    }
  }
#pragma unroll
  for (int i = 0; i < 2; i++) s += exp_term(edge[i] - m);
  const finish f = finish_of({ m, sum_lanes(s, r.lanes) }, r.logarithm);
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (!p.has(r, k)) continue;
#pragma unroll
    for (int i = 0; i < E; i++) e[k][i] = r.logarithm ? f.forward(e[k][i]) : e[k][i] * f.scale;
    *p.word(r, r.y, 1, k) = vector_close<dtype>(e[k], 0);
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (p.end[i] >= 0) edge_store<dtype>(r.y, p.at[1] + p.end[i], f.forward(edge[i]));
}

template <int dtype> __global__ static void __launch_bounds__(LANES_BLOCK, dtype == QN_F32 ? 5 : 6) softmax_backward_lanes(const __grid_constant__ rows r)
{
  constexpr int E = vector_per_16<dtype>, K = lanes_words<dtype>;
  const lanes_place<dtype> p(r);
  uint4 y[K], dy[K];
  float edge[2], edge_dy[2], s = 0;
#pragma unroll
  for (int k = 0; k < K; k++) {
    y[k] = dy[k] = make_uint4(0, 0, 0, 0);
    if (p.has(r, k)) y[k] = *p.word(r, r.x, 0, k), dy[k] = *p.word(r, r.dy, 2, k);
  }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    edge[i] = p.end[i] < 0 ? 0 : edge_load<dtype>(r.x, p.at[0] + p.end[i]);
    edge_dy[i] = p.end[i] < 0 ? 0 : edge_load<dtype>(r.dy, p.at[2] + p.end[i]);
    s += finish::term(r.logarithm, edge[i], edge_dy[i]);
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    float a[E], b[E];
    vector_open<dtype>(a, 0, y[k]);
    vector_open<dtype>(b, 0, dy[k]);
#pragma unroll
    for (int i = 0; i < E; i++) s += finish::term(r.logarithm, a[i], b[i]);
  }
  const finish f = finish_of({ 0, sum_lanes(s, r.lanes) }, r.logarithm);
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (!p.has(r, k)) continue;
    float a[E], b[E];
    vector_open<dtype>(a, 0, y[k]);
    vector_open<dtype>(b, 0, dy[k]);
#pragma unroll
    for (int i = 0; i < E; i++) a[i] = f.backward(a[i], b[i]);
    *p.word(r, r.y, 1, k) = vector_close<dtype>(a, 0);
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (p.end[i] >= 0) edge_store<dtype>(r.y, p.at[1] + p.end[i], f.backward(edge[i], edge_dy[i]));
}

/* ---- kept, long: a row by a block, or by a cluster's ------------------------------------------------------------------ */

__device__ __forceinline__ void keep(uint4 *to, const uint4 *from)
{
#if __CUDA_ARCH__ >= 800
  copy_async<16>(shared_address(to), from, 16);
#else
  *to = *from;
#endif
}

/* To shared memory of another block of the cluster. */
__device__ __forceinline__ void tell(uint32_t there, spread j)
{
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" :: "r"(there), "f"(j.m), "f"(j.s) : "memory");
}

/* kept: in shared memory; else each word is read twice. */
template <int dtype, bool backward, bool kept> __global__ static void __launch_bounds__(BLOCK_MOST) softmax_blocks(const __grid_constant__ rows r)
{
  constexpr int E = vector_per_16<dtype>;
  extern __shared__ uint4 words[];        /* kept: of x, of dy */
  __shared__ spread told[KEPT_PARTS * BLOCK_MOST / 32];
  const int length = (int)r.length, warps = blockDim.x / 32, warp = threadIdx.x / 32;
  int rank = 0;
  uint32_t row = blockIdx.x;
#if __CUDA_ARCH__ >= 900
  if (r.parts > 1) rank = (int)cluster_rank(), row /= (uint32_t)r.parts, cluster_arrive();
#endif
  int64_t at[3];
  r.begin(row, at);
  const row_words w = words_of<dtype>(at[0], length);
  const int first = rank * r.share, n = min(r.share, w.count - first), end = rank ? -1 : edge_of(w, length, threadIdx.x);
  /* A warp's words fill lines of 128 bytes: it is the first ones that are few. */
  const int begin = (int)threadIdx.x - (r.steady ? 0 : (int)(((at[1] + w.lead) / E + first) & 7)), mine = begin < 0 ? begin + (int)blockDim.x : begin;
  const uint4 *x = vector_place<dtype>(r.x, at[0] + w.lead) + first, *dy = vector_place<dtype>(r.dy, at[2] + w.lead) + first;
#pragma unroll 4
  for (int i = mine; kept && i < n; i += blockDim.x) {
    keep(words + i, x + i);
    if (backward) keep(words + r.share + i, dy + i);
  }
  float edge = backward ? 0 : -INFINITY, edge_dy = 0;
  if (end >= 0) {
    edge = edge_load<dtype>(r.x, at[0] + end);
    if (backward) edge_dy = edge_load<dtype>(r.dy, at[2] + end);
  }
#if __CUDA_ARCH__ >= 800
  copy_async_commit();
  copy_async_wait<0>();
#endif
  const uint4 *from = kept ? words : x, *from_dy = kept ? words + r.share : dy;

  spread j = { fmaxf(edge, -FLT_MAX), backward ? finish::term(r.logarithm, edge, edge_dy) : 0 };
  if (!backward) j.s = exp_term(edge - j.m);
#pragma unroll kept ? 2 : 4
  for (int i = mine; i < n; i += blockDim.x) {
    float v[E], d[E];
    vector_open<dtype>(v, 0, from[i]);
    if (backward) {
      vector_open<dtype>(d, 0, from_dy[i]);
#pragma unroll
      for (int e = 0; e < E; e++) j.s += finish::term(r.logarithm, v[e], d[e]);
    } else {
      j.join(v);
    }
  }
  j = join_warp<backward>(j);
#if __CUDA_ARCH__ >= 900
  if (r.parts > 1) {
    int to = threadIdx.x % 32;
    cluster_wait();                       /* all have begun */
    if (to < r.parts) tell(cluster_address(shared_address(told + rank * warps + warp), to), j);
    cluster_sync();
  } else
#endif
  {
    if (threadIdx.x % 32 == 0) told[warp] = j;
    __syncthreads();
  }
  const finish f = finish_of(join_told<backward>(told, warps * r.parts), r.logarithm);

  uint4 *y = (uint4 *)vector_place<dtype>(r.y, at[1] + w.lead) + first;
#pragma unroll 2
  for (int i = mine; i < n; i += blockDim.x) {
    float v[E], d[E];
    vector_open<dtype>(v, 0, from[i]);
    if (backward) vector_open<dtype>(d, 0, from_dy[i]);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = backward ? f.backward(v[e], d[e]) : f.forward_long(v[e]);
    y[i] = vector_close<dtype>(v, 0);
  }
  if (end >= 0) edge_store<dtype>(r.y, at[1] + end, backward ? f.backward(edge, edge_dy) : f.forward_long(edge));
}

/* ---- any: dtypes or phases that differ --------------------------------------------------------------------------------- */

template <bool backward> __global__ static void __launch_bounds__(BLOCK_MOST) softmax_any(const __grid_constant__ rows r)
{
  __shared__ spread told[32];
  int64_t at[3];
  r.begin(blockIdx.x, at);
  auto read = [&](float (&v)[V], float (&d)[V], int64_t i) {
    int n = (int)min((int64_t)V, r.length - i);
    vector_load(v, r.x, r.x_dtype, at[0] + i, 1, n);
    if (backward) vector_load(d, r.dy, r.dy_dtype, at[2] + i, 1, n);
    return n;
  };
  spread j = { -FLT_MAX, 0 };
#pragma unroll 1
  for (int64_t i = threadIdx.x * V; i < r.length; i += blockDim.x * V) {
    float v[V], d[V];
    int n = read(v, d, i);
#pragma unroll
    for (int e = 0; e < V; e++) {
      if (backward) j.s += e < n ? finish::term(r.logarithm, v[e], d[e]) : 0;
      else v[e] = e < n ? v[e] : -INFINITY;
    }
    if (!backward) j.join(v);
  }
  j = join_warp<backward>(j);
  if (threadIdx.x % 32 == 0) told[threadIdx.x / 32] = j;
  __syncthreads();
  const finish f = finish_of(join_told<backward>(told, blockDim.x / 32), r.logarithm);
#pragma unroll 1
  for (int64_t i = threadIdx.x * V; i < r.length; i += blockDim.x * V) {
    float v[V], d[V];
    int n = read(v, d, i);
#pragma unroll
    for (int e = 0; e < V; e++) v[e] = backward ? f.backward(v[e], d[e]) : f.forward(v[e]);
    vector_store(v, r.y, r.y_dtype, at[1] + i, 1, n);
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
  spread all[W];
#pragma unroll
  for (int i = 0; i < W; i++) all[i] = { -FLT_MAX, 0 };
  for (int64_t j = 0; j < r.length; j++) {
    float v[W], dy[W];
    vector_load(v, r.x, r.x_dtype, at[0] + j * r.step[0], r.stride[0][0], n);
    if (r.backward) vector_load(dy, r.dy, r.dy_dtype, at[2] + j * r.step[2], r.stride[2][0], n);
#pragma unroll
    for (int i = 0; i < W; i++) {
      float one[] = { v[i] };
      if (r.backward) all[i].s += finish::term(r.logarithm, v[i], dy[i]);
      else all[i].join(one);
    }
  }
  finish f[W];
#pragma unroll
  for (int i = 0; i < W; i++) f[i] = finish_of(all[i], r.logarithm);
  for (int64_t j = 0; j < r.length; j++) {
    float v[W], dy[W];
    vector_load(v, r.x, r.x_dtype, at[0] + j * r.step[0], r.stride[0][0], n);
    if (r.backward) vector_load(dy, r.dy, r.dy_dtype, at[2] + j * r.step[2], r.stride[2][0], n);
#pragma unroll
    for (int i = 0; i < W; i++) v[i] = r.backward ? f[i].backward(v[i], dy[i]) : f[i].forward(v[i]);
    vector_store(v, r.y, r.y_dtype, at[1] + j * r.step[1], r.stride[1][0], n);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct state {
  rows     r;
  int32_t  number[3];                     /* x, y, dy */
  const void *kernel;
  unsigned blocks, threads, shared;       /* shared: bytes */
};

static const void *lanes_kernel(const rows *r)
{
  switch (r->x_dtype) {
  case QN_F32: return r->backward ? (const void *)softmax_backward_lanes<QN_F32> : (const void *)softmax_lanes<QN_F32>;
  case QN_F16: return r->backward ? (const void *)softmax_backward_lanes<QN_F16> : (const void *)softmax_lanes<QN_F16>;
  default:     return r->backward ? (const void *)softmax_backward_lanes<QN_BF16> : (const void *)softmax_lanes<QN_BF16>;
  }
}
template <int dtype> static const void *blocks_of(bool backward, bool kept)
{
  if (backward) return kept ? (const void *)softmax_blocks<dtype, true, true> : (const void *)softmax_blocks<dtype, true, false>;
  return kept ? (const void *)softmax_blocks<dtype, false, true> : (const void *)softmax_blocks<dtype, false, false>;
}

/* Blocks for a row, so that several are on a multiprocessor. portable: the same on all devices. */
static void choose_blocks(state *s, const qn_device *device, bool portable)
{
  rows *r = &s->r;
  const int64_t words = r->length / (r->x_dtype == QN_F32 ? 4 : 8), tensors = r->backward ? 2 : 1;
  r->parts = 1;
  while (r->parts < KEPT_PARTS && words * 16 * tensors > (int64_t)KEPT_SHARE * r->parts) r->parts *= 2;
  bool fits = true;
  if (r->parts > 1 && (portable || device->arch_major < 9 || r->count * r->parts > INT32_MAX)) r->parts = 1, fits = false;
  int64_t share = qn_ceil_div(words, r->parts), bytes = share * 16 * tensors;
  fits &= bytes + KEPT_TOLD <= (int64_t)device->shared_per_block;
  r->share = (int32_t)share;
  s->kernel = r->x_dtype == QN_F32 ? blocks_of<QN_F32>(r->backward, fits) : r->x_dtype == QN_F16 ? blocks_of<QN_F16>(r->backward, fits) : blocks_of<QN_BF16>(r->backward, fits);
  s->blocks = (unsigned)(r->count * r->parts);
  s->threads = share <= 1024 ? 128 : share <= 2048 ? 256 : BLOCK_MOST;
  s->shared = fits ? (unsigned)bytes : 0;
}

static qn_status prepare(const qn_request *request, qn_prepared *out)
{
  const qn_node *op = &request->op[0];
  state s = {};
  rows *r = &s.r;
  r->backward = op->op == QN_OP_SOFTMAX_BACKWARD || op->op == QN_OP_LOG_SOFTMAX_BACKWARD;
  r->logarithm = op->op == QN_OP_LOG_SOFTMAX || op->op == QN_OP_LOG_SOFTMAX_BACKWARD;
  s.number[0] = op->arg[0], s.number[1] = op->arg[r->backward ? 2 : 1], s.number[2] = op->arg[r->backward ? 1 : 0];
  const qn_value *v[3];
  for (int t = 0; t < 3; t++) {
    v[t] = &request->value[s.number[t]];
    if (v[t]->dtype != QN_F32 && v[t]->dtype != QN_F16 && v[t]->dtype != QN_BF16)
      return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", "another");
  }
  const qn_value *x = v[0];
  int64_t axis = ((const qn_axis *)op->attr)->axis;
  if (axis < 0) axis += x->rank;
  r->length = x->dim[axis];
  r->count = qn_elements(x) / r->length;
  if (r->count > INT32_MAX) return qn_refuse(out, "fewer than 2^31 rows", "x", "", "%lld", (long long)r->count);
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
  r->rank = nest.rank;
  /* whole: of one dtype, rows that begin at one phase in all; steady: at the same in every row. */
  bool contiguous = true, whole = r->length <= INT32_MAX, steady = true;
  int64_t per_word = x->dtype == QN_F32 ? 4 : 8;
  for (int t = 0; t < 3; t++) {
    r->step[t] = r->length > 1 ? v[t]->stride[axis] : 1;
    contiguous &= r->step[t] == 1;
    whole &= v[t]->dtype == x->dtype && v[t]->align >= 16;
    for (int d = 0; d < nest.rank; d++) {
      int64_t stride = r->stride[t][d] = nest.stride[t][nest.rank - 1 - d];
      steady &= stride % per_word == 0;
      whole &= (stride - r->stride[0][d]) % per_word == 0;
    }
  }
  for (int d = 0; d < nest.rank; d++) r->dim[d] = (uint32_t)nest.dim[nest.rank - 1 - d];
  if (nest.rank == 0) r->rank = 1, r->dim[0] = 1;
  r->steady = steady;
  r->x_dtype = x->dtype, r->y_dtype = v[1]->dtype, r->dy_dtype = v[2]->dtype;
  if (!contiguous && r->count * 8 < r->length)
    return qn_refuse(out, "a contiguous axis, or many columns", "x", "a stride of 1", "%lld", (long long)r->step[0]);

  if (contiguous && whole) {              /* a row's words, and so its sums' order, may depend on which row it is */
    if (request->demands->determinism >= QN_DET_BATCH) {
      if (r->length % per_word) whole = false;
      else if (!steady) return qn_refuse(out, "rows begin with a 16-byte word, where the batch must not matter", "x", "", "%s", "other strides");
    } else if (!steady) {
      out->traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);
    }
  }
  if (!contiguous) {
    s.kernel = (const void *)softmax_columns;
    s.threads = 128;
    s.blocks = (unsigned)qn_ceil_div(qn_ceil_div(r->dim[0], W) * (r->count / r->dim[0]), s.threads);
  } else if (whole && r->length <= LANES_MOST) {
    s.kernel = lanes_kernel(r);
    s.threads = LANES_BLOCK;
    r->lanes = LANES_LEAST;
    while (r->lanes * (LANES_MOST / 32) < r->length) r->lanes *= 2;
    s.blocks = (unsigned)qn_ceil_div(r->count, LANES_BLOCK / r->lanes);
  } else if (whole) {
    choose_blocks(&s, request->device, request->demands->determinism == QN_DET_PORTABLE);
    if (r->length * (x->dtype == QN_F32 ? 4 : 2) * (r->backward ? 2 : 1) > KEPT_SHARE && request->demands->determinism != QN_DET_PORTABLE)
      out->traits &= ~(uint64_t)QN_TRAIT_PORTABLE;         /* without clusters a row is one block's */
  } else {
    s.kernel = r->backward ? (const void *)softmax_any<true> : (const void *)softmax_any<false>;
    s.threads = (unsigned)qn_min_i64(qn_ceil_div(r->length, 32 * V) * 32, BLOCK_MOST);
    s.blocks = (unsigned)r->count;
  }
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *request, qn_prepared *p)
{
  const state *s = (const state *)p->state;
  if (!s->shared) return QN_OK;
  return cuda_check(cudaFuncSetAttribute(s->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)request->device->shared_per_block - KEPT_TOLD), "softmax_rows");
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  rows r = s->r;
  r.x = launch->ptr[s->number[0]];
  r.y = launch->ptr[s->number[1]];
  r.dy = launch->ptr[s->number[2]];
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = { (unsigned)r.parts, 1, 1 };
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(s->blocks);
  config.blockDim = dim3(s->threads);
  config.dynamicSmemBytes = s->shared;
  config.stream = (cudaStream_t)launch->stream;
  config.attrs = &cluster;
  config.numAttrs = r.parts > 1;
  void *args[] = { &r };
  return cuda_check(cudaLaunchKernelExC(&config, s->kernel, args), "softmax_rows");
}

#define ROW(op) { "rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_SOFTMAX), ROW(QN_OP_LOG_SOFTMAX), ROW(QN_OP_SOFTMAX_BACKWARD), ROW(QN_OP_LOG_SOFTMAX_BACKWARD) };
const qn_engine_list cuda_softmax_rows_list = { row, sizeof row / sizeof *row };
