/* softmax_rows.cu -- softmax, log_softmax and their gradients, f16, bf16 and f32: where a row fits, each element is read once
 * and written once.
 *
 *   softmax       y = exp(x - m) / s        dx = y (dy - sum y dy)        m = max x,  s = sum exp(x - m)
 *   log_softmax   y = x - m - ln s          dx = dy - exp(y) sum dy
 *
 * Contiguous axis:
 *   short   a row by a thread
 *   lanes   a row in the registers of 8, 16 or 32 lanes
 *   kept    longer rows in the shared memory of a block or (sm_90) a cluster. A thread copies (cp.async) and later reads the
 *           same words, so registers are few, several blocks share an SM, and the loads of one overlap the stores of another
 *   long    rows that do not fit are read twice by a block, the second time partly from L2
 *   any     tensors that differ in dtype or in alignment: read twice by a block
 * Another axis: softmax_columns.cuh.
 * Refused: f64, more than 4 outer dims that do not merge, few long columns. */
#include "cuda_backend.h"
#include "engines.h"
#include "kit/shared_memory.h"
#include "softmax_columns.cuh"

/* SHORT_MOST, LANES_MOST: elements; BLOCK_MOST: threads; KEPT_SHARE: bytes of a block of a cluster; KEPT_TOLD: bytes left for static shared memory */
enum { V = 8, SHORT_MOST = V, SHORT_BLOCK = 128, LANES_MOST = 1024, BLOCK_MOST = 512,
       KEPT_SHARE = 32 * 1024, KEPT_TOLD = 2048 };

/* Merges n warps' results from shared memory; every warp gets the same. */
template <bool backward> __device__ __forceinline__ spread join_partial(const spread *partial, int n)
{
  spread j = { -FLT_MAX, 0 };
  for (int i = threadIdx.x % 32; i < n; i += 32) {
    if (backward) j.s += partial[i].s;
    else j.join(partial[i]);
  }
  return join_warp<backward>(j);
}

/* ---- short: a row in the registers of a thread ------------------------------------------------------------------------- */

template <bool backward> __global__ static void __launch_bounds__(SHORT_BLOCK) softmax_short(const __grid_constant__ rows r)
{
  const int64_t row = blockIdx.x * (int64_t)SHORT_BLOCK + threadIdx.x;
  if (row >= r.count) return;
  const int n = (int)r.length;
  int64_t at[3];
  r.begin(row, at);
  float v[V], d[V];
  vector_load(v, r.x, r.x_dtype, at[0], 1, n);
  if (backward) vector_load(d, r.dy, r.dy_dtype, at[2], 1, n);
  spread j = { -FLT_MAX, 0 };
#pragma unroll
  for (int e = 0; e < V; e++) {
    if (backward) j.s += e < n ? finish::term(r.logarithm, v[e], d[e]) : 0;
    else v[e] = e < n ? v[e] : -INFINITY;
  }
  if (!backward) j.join(v, max_of(v));
  const finish f = finish_of<backward>(j, r.logarithm);
#pragma unroll
  for (int e = 0; e < V; e++) v[e] = backward ? f.backward(r.logarithm, v[e], d[e]) : f.forward(r.logarithm, v[e]);
  vector_store(v, r.y, r.y_dtype, at[1], 1, n);
}

/* ---- lanes: a row in the registers of 8, 16 or 32 lanes ------------------------------------------------------------ */

/* LEAST: log2 of the fewest lanes; FEW: words a thread for short rows, which instruction fetch bounds. */
enum { LANES_BLOCK = 128, LANES_LEAST = 3, LANES_FEW = 2 };
template <int dtype> constexpr int lanes_words = dtype == QN_F32 ? 8 : 4;  /* words a thread */

/* The position of a thread's row and of its part of it. end: its elements outside the 16-byte words, or -1. */
template <int dtype> struct lanes_place {
  int64_t at[3];
  row_words w;
  int lanes, lane, end[2];

  __device__ __forceinline__ lanes_place(const rows &r)
  {
    int64_t row = blockIdx.x * (int64_t)(LANES_BLOCK >> r.lane_bits) + (threadIdx.x >> r.lane_bits);
    const int length = row < r.count ? (int)r.length : 0;  /* excess lanes stay, for the shuffles */
    lanes = 1 << r.lane_bits, lane = threadIdx.x & (lanes - 1);
    r.begin(row, at);
    w = words_of<dtype>(at[0], length);
    for (int i = 0; i < 2; i++) end[i] = r.edges ? edge_of(w, length, lane + i * lanes) : -1;
  }
  __device__ __forceinline__ bool has(int k) const { return lane + k * lanes < w.count; }
  __device__ __forceinline__ bool none(int k) const { return k * lanes >= w.count; }       /* no lane of the row has word k */
  __device__ __forceinline__ uint4 *word(const void *base, int t, int k) const
  {
    return (uint4 *)vector_place<dtype>(base, at[t] + w.lead) + lane + k * lanes;
  }
};

template <int dtype, int K>
__global__ static void __launch_bounds__(LANES_BLOCK, dtype == QN_F32 ? 6 : 7) softmax_lanes(const __grid_constant__ rows r)
{
  constexpr int E = vector_per_16<dtype>;
  const lanes_place<dtype> p(r);
  uint4 q[K];
  float e[K][E], edge[2], m = -FLT_MAX, s = 0;
#pragma unroll
  for (int k = 0; k < K; k++) q[k] = p.has(k) ? *p.word(r.x, 0, k) : word_of_least<dtype>();
  if (r.edges)
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
  m = max_lanes(m, p.lanes);
  const float c = softmax_c(m), cm = spread{ m, 0 }.cm();
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (p.none(k)) continue;
#pragma unroll
    for (int i = 0; i < E; i++) {
      float root = softmax_root(e[k][i], c, cm), y = root * root;
      s += y;
      if (!r.logarithm) e[k][i] = y;
    }
  }
  if (r.edges)
#pragma unroll
    for (int i = 0; i < 2; i++) {
      float root = softmax_root(edge[i], c, cm);
      s = fmaf(root, root, s);
    }
  const finish f = finish_of<false>({ m, sum_lanes(s, p.lanes) }, r.logarithm);
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (!p.has(k)) continue;
#pragma unroll
    for (int i = 0; i < E; i++) e[k][i] = r.logarithm ? f.forward(true, e[k][i]) : e[k][i] * f.b;
    *p.word(r.y, 1, k) = vector_close<dtype>(e[k], 0);
  }
  if (r.edges)
#pragma unroll
    for (int i = 0; i < 2; i++)
      if (p.end[i] >= 0) edge_store<dtype>(r.y, p.at[1] + p.end[i], f.forward(r.logarithm, edge[i]));
}

template <int dtype, int K>
__global__ static void __launch_bounds__(LANES_BLOCK, dtype == QN_F32 ? 5 : 6) softmax_backward_lanes(const __grid_constant__ rows r)
{
  constexpr int E = vector_per_16<dtype>;
  const lanes_place<dtype> p(r);
  uint4 y[K], dy[K];
  float edge[2], edge_dy[2], s = 0;
#pragma unroll
  for (int k = 0; k < K; k++) {
    y[k] = dy[k] = make_uint4(0, 0, 0, 0);
    if (p.has(k)) y[k] = *p.word(r.x, 0, k), dy[k] = *p.word(r.dy, 2, k);
  }
  if (r.edges)
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
  const finish f = finish_of<true>({ 0, sum_lanes(s, p.lanes) }, r.logarithm);
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (!p.has(k)) continue;
    float a[E], b[E];
    vector_open<dtype>(a, 0, y[k]);
    vector_open<dtype>(b, 0, dy[k]);
#pragma unroll
    for (int i = 0; i < E; i++) a[i] = f.backward(r.logarithm, a[i], b[i]);
    *p.word(r.y, 1, k) = vector_close<dtype>(a, 0);
  }
  if (r.edges)
#pragma unroll
    for (int i = 0; i < 2; i++)
      if (p.end[i] >= 0) edge_store<dtype>(r.y, p.at[1] + p.end[i], f.backward(r.logarithm, edge[i], edge_dy[i]));
}

/* ---- kept, long: a row by a block or a cluster ------------------------------------------------------------------------- */

/* Writes a thread's words: every step-th from the i-th on. */
template <int dtype, bool backward, bool logarithm>
__device__ __forceinline__ void finish_words(finish f, uint4 *y, const uint4 *x, const uint4 *dy, int i, int n, int step)
{
  constexpr int E = vector_per_16<dtype>;
#pragma unroll 2
  for (; i < n; i += step) {
    float v[E], d[E];
    vector_open<dtype>(v, 0, x[i]);
    if (backward) vector_open<dtype>(d, 0, dy[i]);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = backward ? f.backward(logarithm, v[e], d[e]) : f.forward(logarithm, v[e]);
    y[i] = vector_close<dtype>(v, 0);
  }
}

/* kept: words are kept in shared memory; else each is read twice. blockIdx.y: the block's rank in the row. */
template <int dtype, bool backward, bool kept>
__global__ static void __launch_bounds__(BLOCK_MOST, 3) softmax_blocks(const __grid_constant__ rows r)
{
  constexpr int E = vector_per_16<dtype>, AT_ONCE = dtype == QN_F16 ? 2 : 4;
  extern __shared__ uint4 words[];        /* kept: x, then dy */
  __shared__ spread partial[KEPT_PARTS * BLOCK_MOST / 32];
#if __CUDA_ARCH__ >= 900
  __shared__ uint64_t all_received[16];  /* one barrier, padded to 128 bytes to keep `words` aligned to the banks */
#endif
  const int length = (int)r.length, share = (int)r.share, rank = blockIdx.y, warps = blockDim.x / 32, step = blockDim.x;
  int64_t at[3];
  r.begin(blockIdx.x, at);
  const row_words w = words_of<dtype>(at[0], length);
  const int first = rank * share, n = min(share, w.count - first), end = rank ? -1 : edge_of(w, length, threadIdx.x);
  /* warps begin at 128-byte lines of y, so only the first one writes a partial line */
  const int begin = (int)threadIdx.x - (r.steady ? 0 : (int)(((at[1] + w.lead) / E + first) & 7)), mine = begin < 0 ? begin + step : begin;
  const uint4 *x = vector_place<dtype>(r.x, at[0] + w.lead) + first, *dy = vector_place<dtype>(r.dy, at[2] + w.lead) + first;
#pragma unroll 4
  for (int i = mine; kept && i < n; i += step) {
    keep(words + i, x + i);
    if (backward) keep(words + share + i, dy + i);
  }
  float edge = backward ? 0 : -INFINITY, edge_dy = 0;
  if (end >= 0) {
    edge = edge_load<dtype>(r.x, at[0] + end);
    if (backward) edge_dy = edge_load<dtype>(r.dy, at[2] + end);
  }
#if __CUDA_ARCH__ >= 900
  if (r.parts > 1) send_begin(shared_address(all_received), warps * r.parts * (int)sizeof(spread));
#endif
  if (kept) keep_wait(), x = words, dy = words + share;

  spread j = { -FLT_MAX, 0 };
  int i = mine;
  if (backward) {
    j.s = finish::term(r.logarithm, edge, edge_dy);
#pragma unroll 2
    for (; i < n; i += step) {
      float v[E], d[E];
      vector_open<dtype>(v, 0, x[i]);
      vector_open<dtype>(d, 0, dy[i]);
#pragma unroll
      for (int e = 0; e < E; e++) j.s += finish::term(r.logarithm, v[e], d[e]);
    }
  } else {
    for (; i + (AT_ONCE - 1) * step < n; i += AT_ONCE * step) {
      uint4 q[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) q[k] = x[i + k * step];
      j.join<dtype>(q);
    }
    for (; i < n; i += step) {
      uint4 q[1] = { x[i] };
      j.join<dtype>(q);
    }
    float one[1] = { edge };
    j.join(one, edge);
  }
  j = join_warp<backward>(j);
#if __CUDA_ARCH__ >= 900
  if (r.parts > 1) {
    const uint32_t bar = shared_address(all_received);
    const int to = threadIdx.x % 32;
    cluster_wait();
    if (to < r.parts) send(partial + rank * warps + threadIdx.x / 32, bar, to, j);
    barrier_wait(bar, 0);
  } else
#endif
  {
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = j;
    __syncthreads();
  }
  const finish f = finish_of<backward>(join_partial<backward>(partial, warps * r.parts), r.logarithm);

  uint4 *y = (uint4 *)vector_place<dtype>(r.y, at[1] + w.lead) + first;
  if (r.logarithm) finish_words<dtype, backward, true>(f, y, x, dy, mine, n, step);
  else finish_words<dtype, backward, false>(f, y, x, dy, mine, n, step);
  if (end >= 0) edge_store<dtype>(r.y, at[1] + end, backward ? f.backward(r.logarithm, edge, edge_dy) : f.forward(r.logarithm, edge));
}

/* ---- any: dtypes or alignments that differ ----------------------------------------------------------------------------- */

template <bool backward> __global__ static void __launch_bounds__(BLOCK_MOST) softmax_any(const __grid_constant__ rows r)
{
  __shared__ spread partial[32];
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
    if (!backward) j.join(v, max_of(v));
  }
  j = join_warp<backward>(j);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = j;
  __syncthreads();
  const finish f = finish_of<backward>(join_partial<backward>(partial, blockDim.x / 32), r.logarithm);
#pragma unroll 1
  for (int64_t i = threadIdx.x * V; i < r.length; i += blockDim.x * V) {
    float v[V], d[V];
    int n = read(v, d, i);
#pragma unroll
    for (int e = 0; e < V; e++) v[e] = backward ? f.backward(r.logarithm, v[e], d[e]) : f.forward(r.logarithm, v[e]);
    vector_store(v, r.y, r.y_dtype, at[1] + i, 1, n);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

template <int dtype> static const void *lanes_of(bool backward, bool few)
{
  if (backward)
    return few ? (const void *)softmax_backward_lanes<dtype, LANES_FEW>
               : (const void *)softmax_backward_lanes<dtype, lanes_words<dtype>>;
  return few ? (const void *)softmax_lanes<dtype, LANES_FEW> : (const void *)softmax_lanes<dtype, lanes_words<dtype>>;
}
template <int dtype> static const void *blocks_of(bool backward, bool kept)
{
  if (backward) return kept ? (const void *)softmax_blocks<dtype, true, true> : (const void *)softmax_blocks<dtype, true, false>;
  return kept ? (const void *)softmax_blocks<dtype, false, true> : (const void *)softmax_blocks<dtype, false, false>;
}

/* Most bytes of a row that one block keeps; longer rows take a cluster. */
static int64_t kept_alone(const rows *r) { return r->backward ? (int64_t)KEPT_SHARE : 2 * (int64_t)KEPT_SHARE; }
/* Chooses the blocks of a row so that several fit an SM. portable: no clusters, so that all devices choose alike. */
static void choose_blocks(state *s, const qn_device *device, bool portable)
{
  rows *r = &s->r;
  const int64_t words = r->length / (r->x_dtype == QN_F32 ? 4 : 8), each = 16 * (r->backward ? 2 : 1);
  int64_t parts = 1;
  if (words * each > kept_alone(r))
    while (parts < KEPT_PARTS && words * each > KEPT_SHARE * parts) parts *= 2;
  bool fits = parts == 1 || (!portable && cuda_has_clusters(device));
  if (!fits) parts = 1;
  const int64_t share = qn_ceil_div(words, parts), bytes = share * each;
  fits &= bytes + KEPT_TOLD <= (int64_t)device->shared_per_block;
  r->parts = (int32_t)parts;
  r->share = share;
  s->kernel = r->x_dtype == QN_F32   ? blocks_of<QN_F32>(r->backward, fits)
              : r->x_dtype == QN_F16 ? blocks_of<QN_F16>(r->backward, fits)
                                     : blocks_of<QN_BF16>(r->backward, fits);
  s->blocks = (unsigned)r->count;
  s->threads = bytes <= 16 * 1024 ? 128 : bytes <= KEPT_SHARE ? 256 : BLOCK_MOST;
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
      return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", qn_kit_name(v[t]->dtype));
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
  r->rank = nest.rank, r->parts = 1;
  /* whole: one dtype, and a row has the same offset from 16 bytes in all tensors; steady: all rows have the same */
  bool contiguous = true, whole = r->length <= INT32_MAX, steady = true, columns = true;
  int64_t per_word = x->dtype == QN_F32 ? 4 : 8;
  for (int t = 0; t < 3; t++) {
    r->step[t] = r->length > 1 ? v[t]->stride[axis] : 1;
    contiguous &= r->step[t] == 1;
    whole &= v[t]->dtype == x->dtype && v[t]->align >= 16;
    columns &= nest.rank > 0 && nest.stride[t][nest.rank - 1] == 1 && r->step[t] % per_word == 0;
    for (int d = 0; d < nest.rank; d++) {
      int64_t stride = r->stride[d][t] = nest.stride[t][nest.rank - 1 - d];
      steady &= stride % per_word == 0;
      columns &= d == 0 || stride % per_word == 0;
      whole &= (stride - r->stride[d][0]) % per_word == 0;
    }
  }
  for (int d = 0; d < nest.rank; d++) r->dim[d] = (uint32_t)nest.dim[nest.rank - 1 - d];
  if (nest.rank == 0) r->rank = 1, r->dim[0] = 1;
  r->steady = steady, r->edges = !steady || r->length % per_word;
  r->x_dtype = x->dtype, r->y_dtype = v[1]->dtype, r->dy_dtype = v[2]->dtype;
  columns &= whole && r->dim[0] % per_word == 0;
  if (!contiguous && !columns && r->count * 8 < r->length)
    return qn_refuse(out, "a contiguous axis, or many columns", "x", "a stride of 1", "%lld", (long long)r->step[0]);

  const bool brief = contiguous && r->length <= SHORT_MOST;
  if (contiguous && whole && !brief) {    /* a row's alignment, and so the order of its sums, may depend on its number */
    if (request->demands->determinism >= QN_DET_BATCH) {
      if (r->length % per_word) whole = false;
      else if (!steady)
        return qn_refuse(out, "rows begin with a 16-byte word, where the batch must not matter", "x", "", "%s", "other strides");
    } else if (!steady) {
      out->traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);
    }
  }
  if (brief) {
    s.kernel = r->backward ? (const void *)softmax_short<true> : (const void *)softmax_short<false>;
    s.threads = SHORT_BLOCK;
    s.blocks = (unsigned)qn_ceil_div(r->count, SHORT_BLOCK);
  } else if (!contiguous) {
    if (!columns || !choose_columns(&s, request->device, request->demands, out)) choose_any_columns(&s);
  } else if (whole && r->length <= LANES_MOST) {
    const bool few = r->length <= 32 * LANES_FEW * per_word;
    const int64_t each = few ? LANES_FEW * per_word : LANES_MOST / 32;     /* elements a lane */
    s.kernel = x->dtype == QN_F32   ? lanes_of<QN_F32>(r->backward, few)
               : x->dtype == QN_F16 ? lanes_of<QN_F16>(r->backward, few)
                                    : lanes_of<QN_BF16>(r->backward, few);
    s.threads = LANES_BLOCK;
    r->lane_bits = LANES_LEAST;
    while (each << r->lane_bits < r->length) r->lane_bits++;
    s.blocks = (unsigned)qn_ceil_div(r->count, LANES_BLOCK >> r->lane_bits);
  } else if (whole) {
    choose_blocks(&s, request->device, request->demands->determinism == QN_DET_PORTABLE);
    if (r->length * (x->dtype == QN_F32 ? 4 : 2) * (r->backward ? 2 : 1) > kept_alone(r) &&
        request->demands->determinism != QN_DET_PORTABLE)
      out->traits &= ~(uint64_t)QN_TRAIT_PORTABLE;         /* without clusters one block takes a row */
  } else {
    s.kernel = r->backward ? (const void *)softmax_any<true> : (const void *)softmax_any<false>;
    s.threads = (unsigned)qn_min_i64(qn_ceil_div(r->length, 32 * V) * 32, BLOCK_MOST);
    s.blocks = (unsigned)r->count;
  }
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *p)
{
  const state *s = (const state *)p->state;
  return s->shared ? cuda_allow_shared(s->kernel) : QN_OK;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  rows r = s->r;
  r.x = launch->ptr[s->number[0]];
  r.y = launch->ptr[s->number[1]];
  r.dy = launch->ptr[s->number[2]];
  r.partial = (spread *)launch->workspace;
  r.met = (uint32_t *)launch->counters;
  const uint32_t together = r.phase == MEASURE ? (uint32_t)r.together : (uint32_t)r.parts;
  cudaLaunchAttribute cluster = {}, early = {}, resident = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = { 1, together, 1 };
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  resident.id = cudaLaunchAttributeCooperative;
  resident.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(s->blocks, (unsigned)r.parts);
  config.blockDim = dim3(s->threads);
  config.dynamicSmemBytes = s->shared;
  config.stream = (cudaStream_t)launch->stream;
  config.attrs = r.phase == MEET ? &resident : &cluster;
  config.numAttrs = r.phase == MEET || together > 1;
  void *args[] = { &r };
  if (r.phase == MEASURE) {
    const qn_status status = cuda_check(cudaLaunchKernelExC(&config, s->kernel, args), "softmax_rows");
    if (status) return status;
    r.phase = WRITE;
    config.attrs = &early;
    config.numAttrs = r.together > 1;     /* clusters imply sm_90: the kernel may start early and waits */
  }
  return cuda_check(cudaLaunchKernelExC(&config, s->kernel, args), "softmax_rows");
}

#define ROW(op) { "rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_SOFTMAX), ROW(QN_OP_LOG_SOFTMAX), ROW(QN_OP_SOFTMAX_BACKWARD), ROW(QN_OP_LOG_SOFTMAX_BACKWARD) };
CUDA_ENGINES(softmax_rows) = { row, sizeof row / sizeof *row };
