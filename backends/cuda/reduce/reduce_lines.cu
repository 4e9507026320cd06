/* reduce_lines.cu -- reductions of f16, bf16 and f32, and sums of f64 and i32, in a fixed order (deterministic).
 *
 *   sum, mean, prod, max, min   norm1 = sum |x|   norm2 = sqrt(sum x^2)   amax = max |x|   argmax, argmin = position of the first
 *
 * rows: the reduced elements are contiguous, in one run or several; some lanes of a warp, or a block, compute a result.
 * columns: the kept elements are contiguous; a thread takes 8 neighbouring columns and every n-th line, a block up to 256
 *   columns; with few lines and very many columns a thread takes all lines.
 * Several loads per thread are in flight. With few results, the elements of each are divided into parts: for columns, in a
 * cluster (sm_90) if that fills the device; else the last block to finish merges all parts of its results, in order.
 * Refused: other dtypes, dims that do not merge (4 kept, 2 reduced), no contiguous dim. */
#include "reduce_lines.cuh"
#include "engines.h"

/* ---- rows ------------------------------------------------------------------------------------------------ */

/* A row by l.lanes lanes of a warp, or by the block. */
template <int kind, int whole>
__global__ void __launch_bounds__(THREADS, whole == QN_BF16 || whole == QN_F16 || whole == QN_F32 ? RESIDENT : 1)
reduce_rows(const __grid_constant__ lines l)
{
  typedef typename accumulator<kind, whole>::type A;
  __shared__ A shared[THREADS];
  uint32_t threads = l.lanes, t = threadIdx.x % threads;
  int64_t job = blockIdx.x * (int64_t)(THREADS / threads) + threadIdx.x / threads;
  bool here = job < l.results * l.parts;  /* excess lanes stay, for the shuffles */
  if (!here) job = 0;
  uint32_t result = (uint32_t)(l.parts == 1 ? job : quotient(job, (uint32_t)l.parts)), part = (uint32_t)(job - (int64_t)result * l.parts);
  int64_t share = quotient(l.items + l.parts - 1, (uint32_t)l.parts);
  A sum[V];
  const walk w(l, l.place(result, l.x_stride), V, V, part * share + t, min(l.items, (part + 1) * share), threads);
  collect<kind, whole>(sum, l, w.left > 0, w.number, l.number_unit, [&](auto &to) { gather<kind, whole, false>(to, l, w, 0); });
#pragma unroll
  for (int half = V / 2; half; half >>= 1)
#pragma unroll
    for (int i = 0; i < V / 2; i++)
      if (i < half) sum[i] = join<kind>(sum[i], sum[i + half]);
  A v = join_warp<kind>(sum[0], (int)min(threads, 32u));
  if (threads == THREADS) {
    if (t % 32 == 0) shared[t / 32] = v;
    __syncthreads();
    v = shared[0];
    for (int w = 1; w < THREADS / 32; w++) v = join<kind>(v, shared[w]);
  }
  if (l.parts == 1) {
    if (here && t == 0) finish<kind>(l, result, v);
    return;
  }
  if (t == 0) ((A *)l.partial)[part * l.results + result] = v;      /* with parts, a row takes the whole block */
  if (last_part(l, result)) join_parts<kind>(l, result, 1, shared);
}

/* ---- columns ----------------------------------------------------------------------------------------------- */

/* The same address in another block of the cluster. */
template <class A> __device__ __forceinline__ volatile A *of_block(A *p, int rank)
{
  uint64_t there = (uint64_t)p;
#if __CUDA_ARCH__ >= 900
  asm("mapa.u64 %0, %0, %1;" : "+l"(there) : "r"(rank));
#endif
  return (volatile A *)there;
}

template <int kind, int whole>
__global__ void __launch_bounds__(whole ? 2 * THREADS : THREADS, 1) reduce_columns(const __grid_constant__ lines l)
{
  typedef typename accumulator<kind, whole>::type A;
  extern __shared__ double room[];
  A *shared = (A *)room;                  /* [warp][column]; then for a cluster [part][its columns] */
  uint32_t t = threadIdx.x, lane = t % l.lanes, line = t / l.lanes, step = blockDim.x / l.lanes, outer = blockIdx.z;
  uint32_t wide = l.lanes * V, first = blockIdx.x * wide, c0 = first + lane * V, result = outer * l.dim[0] + first;
  int n = (int)max((int64_t)0, min((int64_t)V, (int64_t)l.dim[0] - c0));
  A sum[V];
#if __CUDA_ARCH__ >= 900
  if (l.clustered) cluster_arrive();
#endif
  int64_t from = l.place(outer * l.dim[0] + (n > 0 ? c0 : 0), l.x_stride);
  if constexpr (whole != 0) {
    const uint32_t begin = blockIdx.y * l.share + line, end = n > 0 ? min((uint32_t)l.length, (blockIdx.y + 1) * l.share) : 0;
    collect<kind, whole>(sum, l, begin < end, begin * l.number_unit, 0,
                         [&](auto &to) { gather_lines<kind, whole>(to, l, from, begin, end, step); });
  } else {
    int64_t share = quotient(l.items + l.parts - 1, (uint32_t)l.parts), end = n > 0 ? min(l.items, (blockIdx.y + 1) * share) : 0;
    const walk w(l, from, l.line_stride, 1, blockIdx.y * share + line, end, step);
    collect<kind, whole>(sum, l, w.left > 0, w.number, 0, [&](auto &to) { gather<kind, whole, true>(to, l, w, n); });
  }
  if (step == 1) {                        /* a thread has whole columns: results go through shared memory for coalesced stores */
#pragma unroll
    for (int i = 0; i < V; i++) shared[t * V + i] = sum[i];
    __syncthreads();
    for (uint32_t c = t; c < wide && first + c < l.dim[0]; c += blockDim.x) finish<kind>(l, result + c, shared[c]);
    return;
  }
#pragma unroll
  for (int i = 0; i < V; i++) {
    for (uint32_t o = 16; o >= l.lanes; o >>= 1) sum[i] = join<kind>(sum[i], __shfl_xor_sync(~0u, sum[i], o));
    if (t % 32 < l.lanes) shared[t / 32 * wide + lane * V + i] = sum[i];
  }
  __syncthreads();
  const bool here = t < wide && first + t < l.dim[0];
  A v = nothing<kind, A>();
  if (here) {
    v = shared[t];
#pragma unroll 8
    for (uint32_t w = 1; w < blockDim.x / 32; w++) v = join<kind>(v, shared[w * wide + t]);
    if (l.parts == 1) finish<kind>(l, result + t, v);
    else if (!l.clustered) ((A *)l.partial)[blockIdx.y * l.results + result + t] = v;
  }
  if (l.parts == 1) return;
#if __CUDA_ARCH__ >= 900
  if (l.clustered) {                      /* each block merges the parts of some columns, which the others store to it */
    const uint32_t some = wide / l.parts, c = blockIdx.y * some + t;
    A *brought = shared + blockDim.x / 32 * wide;
    cluster_wait();                       /* all blocks have started */
    if (here) *of_block(brought + blockIdx.y * some + t % some, (int)(t / some)) = v;
    cluster_sync();
    if (t < some && first + c < l.dim[0]) {
      v = brought[t];
      for (int k = 1; k < l.parts; k++) v = join<kind>(v, brought[k * some + t]);
      finish<kind>(l, result + c, v);
    }
    return;
  }
#endif
  if (last_part(l, outer * gridDim.x + blockIdx.x)) join_parts<kind>(l, result, (int)min(wide, l.dim[0] - first), shared);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct state { lines l; int32_t x, y, columns, threads; uint32_t whole; unsigned blocks[3]; };      /* threads: of a block */

static int kind_of(uint32_t op)
{
  switch (op) {
  case QN_OP_REDUCE_NORM2: return SUM_SQUARES;
  case QN_OP_REDUCE_PROD:  return PRODUCT;
  case QN_OP_REDUCE_MAX: case QN_OP_REDUCE_MIN: case QN_OP_REDUCE_AMAX: return MAXIMUM;
  case QN_OP_ARGMAX: case QN_OP_ARGMIN: return PLACE;
  default: return SUM;
  }
}
static int accumulator_bytes(uint32_t op, uint32_t x)
{
  return kind_of(op) == SUM_SQUARES || kind_of(op) == PLACE || x == QN_F64 || x == QN_I32 ? 8 : 4;
}

/* columns: aims at one block per SM. Blocks as wide as that allows, but at least 128 bytes; if still too few, parts in
 * clusters. False: that would leave the device too empty, or parts too small. */
static bool fill_device(lines *l, state *st, const qn_device *device)
{
  int64_t outer = l->results / l->dim[0], units = device->units, blocks;
  int least = 16 / bytes_of(l->x_dtype), lanes = 32, parts = 1;
  while (lanes > least && (lanes * V >= 2 * (int64_t)l->dim[0] || qn_ceil_div(l->dim[0], lanes * V) * outer * 4 < units * 3)) lanes /= 2;
  blocks = qn_ceil_div(l->dim[0], lanes * V) * outer;
  while (cuda_has_clusters(device) && parts < MOST_PARTS && blocks * parts * 4 < units * 3) parts *= 2;
  int64_t work = l->length * lanes / parts;
  if (lanes * V >= 2 * (int64_t)l->dim[0] || blocks * parts * 4 < units * (parts == 1 ? 3 : 1) || (parts > 1 && work < 4 * THREADS) ||
      work > (int64_t)MOST_TERMS * THREADS)
    return false;
  l->lanes = (uint32_t)lanes, l->parts = parts, l->clustered = parts > 1;
  st->threads = blocks * parts > units || work < 8 * THREADS ? THREADS : 2 * THREADS;
  return true;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_value *x = &r->value[op->arg[0]], *y = &r->value[op->arg[1]];
  uint64_t mask = ((const qn_axes *)op->attr)->mask;
  if (((const qn_axes *)op->attr)->last) return qn_refuse(out, "finds the first of equals", "last", "0", "%s", "1");
  const bool sum = kind_of(op->op) == SUM, wide = sum && (x->dtype == QN_F64 || x->dtype == QN_I32);
  if (!wide && x->dtype != QN_F32 && x->dtype != QN_F16 && x->dtype != QN_BF16)
    return qn_refuse(out, "dtypes", "x", sum ? "f16, bf16, f32, f64 or i32" : "f16, bf16 or f32", "%s", qn_kit_name(x->dtype));
  qn_nest kept = {}, gone = {};
  kept.n = 2;
  gone.n = kind_of(op->op) == PLACE ? 2 : 1;
  int64_t number = 1;
  for (int d = x->rank - 1; d >= 0; d--)
    if (!mask || mask >> d & 1) {
      gone.dim[gone.rank] = x->dim[d];
      gone.stride[0][gone.rank] = x->stride[d];
      gone.stride[1][gone.rank++] = number;
      number *= x->dim[d];
    }
  for (int d = 0; d < x->rank; d++)
    if (mask && !(mask >> d & 1)) {
      kept.dim[kept.rank] = x->dim[d];
      kept.stride[0][kept.rank] = x->stride[d];
      kept.stride[1][kept.rank++] = y->stride[d];
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
  if (l.results > INT32_MAX || l.count > ((int64_t)1 << 38))
    return qn_refuse(out, "fewer than 2^31 results, each of at most 2^38 elements", "y", "", "%lld of %lld", (long long)l.results,
                     (long long)l.count);
  if (kind_of(op->op) == PLACE && l.count > UINT32_MAX) return qn_refuse(out, "places in 32 bits", "x", "", "%lld", (long long)l.count);
  if (kept.rank > MAX_KEPT || gone.rank > 2)
    return qn_refuse(out, "at most 4 kept and 2 reduced dims that do not merge", "x", "", "%d and %d", kept.rank, gone.rank);
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
  l.number_unit = gone.rank ? (uint32_t)gone.stride[1][inner] : 1;
  l.number_repeat = gone.rank == 2 ? (uint32_t)gone.stride[1][0] : 0;
  int64_t runs = gone.rank == 2 ? gone.dim[0] : 1;
  l.runs = (uint32_t)runs;
  l.repeat_stride = gone.rank == 2 ? gone.stride[0][0] : 0;
  l.ordered = gone.rank < 2 || gone.stride[1][0] >= l.length * gone.stride[1][inner];
  if (l.length > INT32_MAX || runs > INT32_MAX) return qn_refuse(out, "runs below 2^31 elements", "x", "", "%lld", (long long)l.length);
  bool columns = kept.rank > 0 && l.x_stride[0] == 1 && l.line_stride != 1;
  if (!columns && l.line_stride != 1 && l.length > 1)
    return qn_refuse(out, "a contiguous dim, kept or reduced", "x", "a stride of 1", "%lld", (long long)l.line_stride);

  state st = {};
  l.run = (uint32_t)(columns ? l.length : qn_ceil_div(l.length, V));
  l.items = runs * l.run;
  bool whole = x->align >= 16 && l.repeat_stride % V == 0 && (columns ? l.dim[0] % V == 0 && l.line_stride % V == 0 : l.length % V == 0);
  for (int d = columns; d < l.rank; d++) whole &= l.x_stride[d] % V == 0;
  if (wide && !whole)
    return qn_refuse(out, "f64 and i32 in whole packets", "x", "runs and strides of 8 elements, aligned to 16 bytes", "%s", "others");
  st.whole = whole ? x->dtype : 0;
  st.columns = columns;
  st.threads = THREADS;
  int64_t outer = columns ? l.results / l.dim[0] : 1, blocks, parts;    /* parts: enough to fill the SMs, each with some work */
  if (outer > 65535) return qn_refuse(out, "at most 65535 outer places", "x", "65535", "%lld", (long long)outer);
  if (columns && whole && l.runs == 1 && l.length <= MOST_LINES && l.results >= V * THREADS * (int64_t)r->device->units) {
    st.threads = THREADS / 2;
    l.lanes = (uint32_t)st.threads;
    parts = 1;
    blocks = qn_ceil_div(l.dim[0], l.lanes * V) * outer;
  } else if (columns && whole && fill_device(&l, &st, r->device)) {
    parts = l.parts;
    blocks = qn_ceil_div(l.dim[0], l.lanes * V) * outer;
  } else if (columns) {
    l.lanes = 32;
    while (l.lanes > 1 && l.lanes * V / 2 >= l.dim[0]) l.lanes /= 2;
    for (;; l.lanes /= 2) {               /* narrower blocks, where wide ones would have many parts to merge */
      blocks = qn_ceil_div(l.dim[0], l.lanes * V) * outer;
      parts = (whole ? 2 : RESIDENT) * (int64_t)r->device->units / blocks;
      if (l.lanes <= 8 || parts <= 16) break;
    }
    parts = qn_min_i64(parts, (whole ? l.length : l.items) * l.lanes / THREADS / 4);
    parts = qn_max_i64(parts, qn_ceil_div(l.items * l.lanes, (int64_t)THREADS * MOST_TERMS));
  } else {
    /* a packet of f64 is four words, so fewer rows suffice for a warp each */
    l.lanes = (l.items > 64 && l.results < (x->dtype == QN_F64 ? 4 : 16) * r->device->units) || l.items > 32 * MOST_TERMS ? THREADS : 32;
    /* fewer lanes where each would have few packets and the rows still occupy all resident threads */
    while (l.lanes <= 32 && l.lanes > 4 && l.items < 8 * l.lanes &&
           l.results * l.lanes / 2 >= RESIDENT * THREADS * (int64_t)r->device->units)
      l.lanes /= 2;
    blocks = qn_ceil_div(l.results, THREADS / l.lanes);
    parts = l.lanes < THREADS || blocks >= r->device->units ? 1
                                                            : qn_min_i64(qn_ceil_div(2 * r->device->units, blocks), l.items / THREADS / 4);
    if (l.lanes == THREADS) parts = qn_max_i64(parts, qn_ceil_div(l.items, (int64_t)THREADS * MOST_TERMS));
  }
  int64_t part_bytes = l.results * accumulator_bytes(l.op, l.x_dtype);
  if (!l.clustered) {
    parts = qn_max_i64(1, qn_min_i64(parts, blocks > 512 ? 1 : 1024));
    if ((uint64_t)(parts * part_bytes) > r->demands->workspace_limit) parts = 1;
    if (parts > 1) out->workspace = (uint64_t)(parts * part_bytes), out->counters = (uint64_t)blocks * 4;
  }
  const int64_t share = qn_ceil_div(l.length, parts), threads = st.threads / (columns ? l.lanes : THREADS / l.lanes),
                terms = columns && whole ? runs * qn_ceil_div(share, threads) : qn_ceil_div(l.items, parts * threads);
  if (sum && !wide && terms > MOST_TERMS)
    return qn_refuse(out, "sums in parts of 4096 terms, which need workspace if there are more than 4096 for each thread", "x", "",
                     "%lld of %d threads", (long long)l.count, (int)threads);
  st.blocks[0] = (unsigned)(blocks / outer);
  st.blocks[2] = (unsigned)outer;
  l.parts = (int32_t)parts;
  l.share = (uint32_t)share;
  l.keep = l.op == QN_OP_REDUCE_NORM1 || l.op == QN_OP_REDUCE_AMAX ? 0x7fffffffu : ~0u;
  l.flip = l.op == QN_OP_REDUCE_MIN || l.op == QN_OP_ARGMIN ? 0x80000000u : 0;
  l.none = l.op == QN_OP_REDUCE_PROD ? 1 : l.flip ? INFINITY : l.op == QN_OP_REDUCE_MAX || l.op == QN_OP_ARGMAX ? -INFINITY : 0;
  st.l = l;
  st.x = op->arg[0];
  st.y = op->arg[1];
  return cuda_keep(out, &st, sizeof st);
}

template <int kind, int whole> static void launch_as(const state *st, const lines &l, cudaStream_t stream)
{
  if (st->columns) {
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = { 1, (unsigned)l.parts, 1 };
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(st->blocks[0], (unsigned)l.parts, st->blocks[2]);
    config.blockDim = dim3((unsigned)st->threads);
    config.dynamicSmemBytes = sizeof(typename accumulator<kind, whole>::type) *
                              ((size_t)st->threads * (l.lanes > 32 ? (size_t)V : l.lanes > 4 ? l.lanes / 4 : 1) +
                               (l.clustered ? l.lanes * V : 0));
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = l.clustered;
    cudaLaunchKernelEx(&config, reduce_columns<kind, whole>, l);
  } else {
    reduce_rows<kind, whole><<<st->blocks[0] * (unsigned)l.parts, THREADS, 0, stream>>>(l);
  }
}

template <int kind> static void launch_kind(const state *st, const lines &l, cudaStream_t stream)
{
  if constexpr (kind == SUM) {
    if (st->whole == QN_F64) return launch_as<kind, QN_F64>(st, l, stream);
    if (st->whole == QN_I32) return launch_as<kind, QN_I32>(st, l, stream);
  }
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
  l.partial = launch->workspace;
  l.tickets = (uint32_t *)launch->counters;
  switch (kind_of(l.op)) {
  case SUM_SQUARES: launch_kind<SUM_SQUARES>(st, l, stream); break;
  case PRODUCT:     launch_kind<PRODUCT>(st, l, stream); break;
  case MAXIMUM:     launch_kind<MAXIMUM>(st, l, stream); break;
  case PLACE:       launch_kind<PLACE>(st, l, stream); break;
  default:          launch_kind<SUM>(st, l, stream); break;
  }
  return cuda_check(cudaGetLastError(), "reduce_lines");
}

#define ROW(op) { "lines", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW(QN_OP_REDUCE_SUM), ROW(QN_OP_REDUCE_MEAN), ROW(QN_OP_REDUCE_PROD), ROW(QN_OP_REDUCE_MAX), ROW(QN_OP_REDUCE_MIN),
  ROW(QN_OP_REDUCE_NORM1), ROW(QN_OP_REDUCE_NORM2), ROW(QN_OP_REDUCE_AMAX), ROW(QN_OP_ARGMAX), ROW(QN_OP_ARGMIN),
};
CUDA_ENGINES(reduce_lines) = { row, sizeof row / sizeof *row };
