/* loss_rows.cu -- cross_entropy and its gradient, f16, bf16 and f32, contiguous classes, rows at one
 * stride: logits are read once.
 *
 *   loss   lse - (1 - smoothing) x[label] - smoothing mean x, 0 for an ignored label        lse = m + ln sum exp(x - m), m = max x
 *   dx     dy (exp(x - lse) - smoothing / C - (1 - smoothing) [c = label]), C classes
 *
 * Forward: short rows in the registers of a warp or of 8 lanes. Longer rows by a block: each thread keeps a running maximum and
 * sum of exponentials, with its next loads, of this row or of its next one, in flight; then the threads' results are merged.
 * Reduced losses: each block adds up those of its rows, and the last block to finish adds up the blocks' sums in a fixed order.
 * Backward: a block, or some lanes of a warp, takes a stretch of a row, up to two vectors a thread.
 * Refused: f64, classes that are not contiguous, rows at several strides; weights, probabilities, log-probabilities. */
#include "cuda_backend.h"
#include "engines.h"
#include "logits.cuh"
#include "kit/sums.cuh"

struct rows {
  const void  *x, *labels;
  const float *dy;                        /* backward: dy, lse and count are read; forward: loss is written */
  void        *dx;
  float       *loss, *lse, *count;
  double2     *part;                      /* partial sums of each block: losses, rows that count */
  uint32_t    *ticket;
  uint32_t     x_dtype, dx_dtype, label_dtype;
  int32_t      reduction;
  int64_t      rows, classes, ignore;
  uint32_t     lanes, stretches;          /* backward: threads of a stretch, stretches of a row */
  int64_t      x_step, dx_step, label_step, loss_step, lse_step;           /* between rows */
  float        smoothing, spread;         /* spread: smoothing / C */

  __device__ __forceinline__ int64_t label(int64_t row) const
  {
    return label_dtype == QN_I64 ? ((const int64_t *)labels)[row * label_step] : ((const int32_t *)labels)[row * label_step];
  }
};

/* ---- forward ------------------------------------------------------------------------------------------------------- */

/* FEW_ROWS: one block does them all; FEW_LANES: lanes for a row of up to FEW_WORDS words */
enum { WARPS_BLOCK = 512, ROW_BLOCK = 128, FEW_ROWS = 64, FEW_LANES = 8, FEW_WORDS = 32 };

/* Adds up, over all blocks, the sums held by every lanes-th lane, and writes count and the reduced loss. */
template <int block, int lanes> __device__ __forceinline__ void add_up(const rows &r, double sum, double count)
{
  __shared__ double2 of[block / 32];
  __shared__ bool last;
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int o = lanes; o < 32; o *= 2) sum += __shfl_xor_sync(~0u, sum, o), count += __shfl_xor_sync(~0u, count, o);
  const auto meet = [&] {                 /* the block's sums, to warp 0 */
    if (lane == 0) of[threadIdx.x / 32] = make_double2(sum, count);
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = count = 0;
    if (lane < block / 32) sum = of[lane].x, count = of[lane].y;
    sum = warp_sum(sum), count = warp_sum(count);
  };
  meet();
  if (gridDim.x > 1) {
    if (threadIdx.x == 0) {
      r.part[blockIdx.x] = make_double2(sum, count);
      __threadfence();
      last = atomicInc(r.ticket, gridDim.x - 1) == gridDim.x - 1;          /* atomicInc wraps to 0 for the next launch */
      __threadfence();
    }
    __syncthreads();
    if (!last) return;
    sum = count = 0;
#pragma unroll 4
    for (unsigned b = threadIdx.x; b < gridDim.x; b += block) {
      const double2 part = __ldcg(r.part + b);
      sum += part.x, count += part.y;
    }
    sum = warp_sum(sum), count = warp_sum(count);
    meet();
  }
  if (threadIdx.x) return;
  if (r.count) *r.count = (float)count;
  if (r.reduction != QN_REDUCTION_NONE) *r.loss = (float)(r.reduction == QN_REDUCTION_MEAN ? sum / count : sum);
}

/* One thread: the loss of a row from its statistics; in double, since of large logits parts overflow f32 where the loss does not. */
__device__ __forceinline__ void put_loss(const rows &r, int64_t row, bool counts, const joint &j, float chosen, double &sum, double &count)
{
  float lse = 0;
  double loss = 0;
  if (counts) {
    lse = joint::shift(j.m) + logf(j.s);
    /* a weight of 0 adds nothing, not even an infinite logit */
    loss = r.smoothing < 1 ? lse - (1 - r.smoothing) * (double)chosen : lse;
    if (r.smoothing > 0) loss -= j.sum;
    count += 1;
  }
  sum += loss;
  if (r.lse) r.lse[row * r.lse_step] = lse;
  if (r.reduction == QN_REDUCTION_NONE) r.loss[row * r.loss_step] = (float)loss;
}

/* A row by `lanes` neighbouring lanes, K words each. */
template <int K, int lanes, int whole>
__global__ static void __launch_bounds__(WARPS_BLOCK, 2) loss_warps(const __grid_constant__ rows r)
{
  constexpr int N = logits<whole>::N, side = WARPS_BLOCK / lanes, EDGES = lanes > EDGE_THREADS ? 1 : 2;
  const int lane = threadIdx.x % lanes;
  double sum = 0, count = 0;
#pragma unroll 1
  for (int64_t of_warp = blockIdx.x * (int64_t)side + threadIdx.x / 32 * (32 / lanes); of_warp < r.rows;
       of_warp += (int64_t)gridDim.x * side) {
    const int64_t row = of_warp + threadIdx.x % 32 / lanes;
    const bool here = lanes == 32 || row < r.rows;        /* excess lanes stay, for the shuffles */
    const logits<whole> x(r.x, whole, here ? row * r.x_step : 0, here ? (int)r.classes : 0);
    held<whole> q[K];
    joint j = { -INFINITY, 0, 0 };
    float edge[EDGES], chosen = 0;
    int end[EDGES];
#pragma unroll
    for (int k = 0; k < K; k++) q[k].load(x, lane + lanes * k);
#pragma unroll
    for (int i = 0; i < EDGES; i++) {
      end[i] = x.edge(lane + lanes * i);
      edge[i] = end[i] >= 0 ? logit(r.x, whole, x.at + end[i]) : -INFINITY;
    }
    const int64_t label = here ? r.label(row) : -1;
    if (label >= 0 && label < r.classes) chosen = logit(r.x, whole, x.at + label);
    float v[K][N];
#pragma unroll
    for (int i = 0; i < EDGES; i++) j.m = fmaxf(j.m, edge[i]);
#pragma unroll
    for (int k = 0; k < K; k++) {
      q[k].open(v[k]);
#pragma unroll
      for (int e = 0; e < N; e++) j.m = fmaxf(j.m, v[k][e]);
    }
#pragma unroll
    for (int o = lanes / 2; o; o >>= 1) j.m = fmaxf(j.m, __shfl_xor_sync(~0u, j.m, o));
    const float by = joint::shift(j.m);
#pragma unroll
    for (int i = 0; i < EDGES; i++) {
      j.s += exp_of(edge[i] - by);
      if (end[i] >= 0) j.sum = fmaf(edge[i], r.spread, j.sum);
    }
#pragma unroll
    for (int k = 0; k < K; k++) {
#pragma unroll
      for (int e = 0; e < N; e++) j.s += exp_of(v[k][e] - by);
      if (r.smoothing > 0 && lane + lanes * k < x.w.count)
#pragma unroll
        for (int e = 0; e < N; e++) j.sum = fmaf(v[k][e], r.spread, j.sum);
    }
    j.s = warp_sum<lanes>(j.s);
    if (r.smoothing > 0) j.sum = warp_sum<lanes>(j.sum);
    if (lane == 0 && here) put_loss(r, row, label != r.ignore, j, chosen, sum, count);
  }
  if (r.part) add_up<WARPS_BLOCK, lanes>(r, sum, count);
}

/* A row by a block; K: words a thread has in flight. */
template <int K, int whole> __global__ static void __launch_bounds__(ROW_BLOCK, 1024 / ROW_BLOCK) loss_rows(const __grid_constant__ rows r)
{
  constexpr int warps = ROW_BLOCK / 32;
  __shared__ joint shared[2][warps];      /* double-buffered: warp 0 may still read the last row's */
  const int t = threadIdx.x;
  double sum = 0, count = 0;
  int64_t row = blockIdx.x, label = 0;
  stretch<ROW_BLOCK, K, whole> q;
  float edge = 0;                         /* of the next row, valid if end >= 0 */
  int end = -1;
  logits<whole> next(r.x, r.x_dtype, row * r.x_step, row < r.rows ? (int)r.classes : 0);
  if (row < r.rows) label = r.label(row);
  q.load(next, 0);
  if ((end = next.edge(t)) >= 0) edge = logit(r.x, r.x_dtype, next.at + end);
  for (int turn = 0; row < r.rows; row += gridDim.x, turn ^= 1) {
    const bool counts = label != r.ignore;
    const logits<whole> here = next;
    float chosen = 0;
    if (t == 0 && label >= 0 && label < r.classes) chosen = logit(r.x, r.x_dtype, here.at + label);
    joint j = { -INFINITY, 0, 0 };
    if (end >= 0) j = joint::of(edge, r.spread);
    const int64_t after = row + gridDim.x;
    next = logits<whole>(r.x, r.x_dtype, after * r.x_step, after < r.rows ? (int)r.classes : 0);
    if (after < r.rows) label = r.label(after);
    if ((end = next.edge(t)) >= 0) edge = logit(r.x, r.x_dtype, next.at + end);
    int from = 0;
    for (; counts && from + q.LENGTH < here.w.count; from += q.LENGTH) q.join(here, from, r.spread, j, here, from + q.LENGTH);
    q.join(here, from, r.spread, j, next, 0);
    j.join_warp();
    if (t % 32 == 0) shared[turn][t / 32] = j;
    __syncthreads();
    if (t >= 32) continue;
    j = { -INFINITY, 0, 0 };
    if (t < warps) j = shared[turn][t];
    j.join_warp();
    if (t == 0) put_loss(r, row, counts, j, chosen, sum, count);
  }
  if (r.part) add_up<ROW_BLOCK, 32>(r, sum, count);
}

/* ---- backward ------------------------------------------------------------------------------------------------------ */

struct slope {                            /* the gradient of a row's loss */
  float g, lse, spread, chosen;           /* g: dy, divided by count for a mean; chosen: 1 - smoothing */
  int64_t label;
  bool  counts;

  /* Replaces logits x of classes c, c + 1, ... by their gradients. */
  template <int N> __device__ __forceinline__ void at(float (&x)[N], int64_t c) const
  {
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = exp_of(x[i] - lse) - spread;
    if (label >= c && label < c + N)
#pragma unroll
      for (int i = 0; i < N; i++) x[i] -= c + i == label ? chosen : 0;
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = counts ? g * x[i] : 0;     /* last: an infinite g in each term would give inf - inf */
  }
};

template <int whole> __device__ __forceinline__ void vector_put(const float (&v)[logits<whole>::N], void *base, uint32_t, int64_t at, int)
{
  *(uint4 *)vector_place<whole>(base, at) = vector_close<whole>(v, 0);
}
template <> __device__ __forceinline__ void vector_put<0>(const float (&v)[LOGITS_V], void *base, uint32_t dtype, int64_t at, int n)
{
  vector_store(v, base, dtype, at, 1, n);
}

enum { SLOPE_BLOCK = 128 };
template <int whole> constexpr int slope_words = whole ? 2 : 1;            /* words a thread */

template <int whole> __global__ static void __launch_bounds__(SLOPE_BLOCK) loss_backward_rows(const __grid_constant__ rows r)
{
  constexpr int N = logits<whole>::N, K = slope_words<whole>;
  const uint32_t i = blockIdx.x * (SLOPE_BLOCK / r.lanes) + threadIdx.x / r.lanes, row = i / r.stretches, lane = threadIdx.x % r.lanes;
  if (row >= r.rows) return;
  const int first = (int)((i - row * r.stretches) * r.lanes * K + lane);
  const logits<whole> x(r.x, r.x_dtype, row * r.x_step, (int)r.classes);
  const int64_t to = row * r.dx_step;
  const int end = x.edge(first);
  held<whole> q[K];                       /* loads are issued before the label is known */
  float edge[1] = { 0 };
#pragma unroll
  for (int k = 0; k < K; k++) q[k].load(x, first + k * (int)r.lanes);
  if (end >= 0) edge[0] = logit(r.x, r.x_dtype, x.at + end);
  slope s = { r.dy[row * r.loss_step], r.lse[row * r.lse_step], r.spread, 0, r.label(row), false };
  if (r.reduction == QN_REDUCTION_MEAN) s.g /= *r.count;
  s.chosen = 1 - r.smoothing;
  s.counts = s.label != r.ignore;
#pragma unroll
  for (int k = 0; k < K; k++) {
    const int word = first + k * (int)r.lanes, c = x.w.lead + word * N;
    if (word >= x.w.count) break;
    float v[N];
    q[k].open(v);
    s.at(v, c);
    vector_put<whole>(v, r.dx, r.dx_dtype, to + c, min(x.left(word), (int)N));
  }
  if (whole && end >= 0) {
    s.at(edge, end);
    edge_store<whole ? whole : QN_F32>(r.dx, to + end, edge[0]);
  }
}

/* ---- prepare, run -------------------------------------------------------------------------------------------------- */

enum { X, DX, LABELS, LOSS, LSE, COUNT, TENSORS };        /* LOSS is dy for a gradient */

struct state {
  rows     r;
  int32_t  number[TENSORS];               /* value numbers of the request; -1: absent */
  bool     backward, joined;
  const void *kernel;
  unsigned blocks, threads;
};

template <int whole> static const void *kernel_of(int64_t words)
{
  if (words <= FEW_WORDS)
    return words <= FEW_LANES ? (const void *)loss_warps<1, FEW_LANES, whole> : (const void *)loss_warps<4, FEW_LANES, whole>;
  return words <= 128 ? (const void *)loss_warps<4, 32, whole> : (const void *)loss_rows<4, whole>;
}
static const void *backward_kernel_of(uint32_t whole)
{
  switch (whole) {
  case QN_F32:  return (const void *)loss_backward_rows<QN_F32>;
  case QN_F16:  return (const void *)loss_backward_rows<QN_F16>;
  case QN_BF16: return (const void *)loss_backward_rows<QN_BF16>;
  default:      return (const void *)loss_backward_rows<0>;
  }
}

/* The stride between rows (all dims but the axis); -1: several strides. */
static int64_t row_step(const qn_value *v, int32_t axis)
{
  int64_t step = 0, rows = 1;
  for (int32_t d = v->rank - 1; d >= 0; d--) {
    if (d == axis || v->dim[d] == 1) continue;
    if (rows == 1) step = v->stride[d];
    else if (v->stride[d] != step * rows) return -1;
    rows *= v->dim[d];
  }
  return step;
}

static void choose_shape(state *s, const qn_device *device, uint32_t whole)
{
  const int64_t words = qn_ceil_div(s->r.classes, whole == QN_F32 ? 4 : 8);
  const bool warps = whole && words <= 128;
  s->kernel = whole == QN_F32   ? kernel_of<QN_F32>(words)
              : whole == QN_F16 ? kernel_of<QN_F16>(words)
              : whole           ? kernel_of<QN_BF16>(words)
                                : (const void *)loss_rows<1, 0>;
  s->threads = warps ? WARPS_BLOCK : ROW_BLOCK;
  const int64_t side = !warps ? 1 : s->r.rows <= FEW_ROWS ? FEW_ROWS : WARPS_BLOCK / (words <= FEW_WORDS ? FEW_LANES : 32);
  s->blocks = (unsigned)qn_min_i64(qn_ceil_div(s->r.rows, side), (int64_t)device->units * (1024 / s->threads));
}

static qn_status prepare(const qn_request *request, qn_prepared *out)
{
  const qn_node *op = &request->op[0];
  const qn_entropy *attr = (const qn_entropy *)op->attr;
  static const char *const names[TENSORS] = { "x", "dx", "labels", "loss", "lse", "count" };
  static const int8_t forward[TENSORS] = { QN_ROLE_CROSS_ENTROPY_X, -1, QN_ROLE_CROSS_ENTROPY_LABELS, QN_ROLE_CROSS_ENTROPY_LOSS,
                                           QN_ROLE_CROSS_ENTROPY_LSE, QN_ROLE_CROSS_ENTROPY_COUNT };
  static const int8_t backward[TENSORS] = { QN_ROLE_CROSS_ENTROPY_BACKWARD_X, QN_ROLE_CROSS_ENTROPY_BACKWARD_DX,
    QN_ROLE_CROSS_ENTROPY_BACKWARD_LABELS, QN_ROLE_CROSS_ENTROPY_BACKWARD_DY, QN_ROLE_CROSS_ENTROPY_BACKWARD_LSE,
    QN_ROLE_CROSS_ENTROPY_BACKWARD_COUNT };
  state s = {};
  s.backward = op->op == QN_OP_CROSS_ENTROPY_BACKWARD;
  if (qn_role_at(op, s.backward ? QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES : QN_ROLE_CROSS_ENTROPY_PROBABILITIES) >= 0)
    return qn_refuse(out, "takes labels", "probabilities", "absent", "%s", "given");
  if (qn_role_at(op, s.backward ? QN_ROLE_CROSS_ENTROPY_BACKWARD_WEIGHTS : QN_ROLE_CROSS_ENTROPY_WEIGHTS) >= 0)
    return qn_refuse(out, "weighs all classes alike", "weights", "absent", "%s", "given");
  if (attr->input != QN_LOGITS) return qn_refuse(out, "takes logits", "input", "logits", "%s", "log_probabilities");
  const qn_value *v[TENSORS];
  int64_t step[TENSORS] = {};
  int32_t axis = (int32_t)attr->axis;
  for (int t = 0; t < TENSORS; t++) {
    s.number[t] = qn_role_at(op, (s.backward ? backward : forward)[t]);
    v[t] = s.number[t] < 0 ? nullptr : &request->value[s.number[t]];
    if (v[t] && (step[t] = row_step(v[t], axis)) < 0)
      return qn_refuse(out, "rows must lie at one distance", names[t], "dims beside the axis that merge", "%s", "several distances");
  }
  const qn_value *x = v[X];
  if (x->dtype == QN_F64) return qn_refuse(out, "computes in f32", "x", "f32, f16 or bf16", "%s", "f64");
  for (int t = X; t <= DX; t++)
    if (v[t] && v[t]->stride[axis] != 1 && x->dim[axis] > 1)
      return qn_refuse(out, "the classes of a row must lie side by side", names[t], "stride 1", "%lld", (long long)v[t]->stride[axis]);

  if (x->dim[axis] > LOGITS_MOST) return qn_refuse(out, "at most 2^30 classes", "x", "fewer", "%lld", (long long)x->dim[axis]);
  rows *r = &s.r;
  r->classes = x->dim[axis];
  r->rows = qn_elements(v[LABELS]);
  r->x_dtype = x->dtype, r->label_dtype = v[LABELS]->dtype;
  r->x_step = step[X], r->label_step = step[LABELS], r->loss_step = step[LOSS], r->lse_step = step[LSE], r->dx_step = step[DX];
  r->reduction = (int32_t)attr->reduction;
  r->ignore = attr->ignore;
  r->smoothing = (float)attr->smoothing;
  r->spread = (float)(attr->smoothing / (double)r->classes);
  const int64_t per_word = x->dtype == QN_F32 ? 4 : 8;
  bool whole = x->align >= 16, steady = step[X] % per_word == 0;
  if (s.backward) {
    r->dx_dtype = v[DX]->dtype;
    whole &= v[DX]->dtype == x->dtype && v[DX]->align >= 16 && (step[DX] - step[X]) % per_word == 0;
    int64_t words = whole ? qn_max_i64(r->classes / per_word, 1) : qn_ceil_div(r->classes, LOGITS_V),
            each = whole ? slope_words<QN_F32> : slope_words<0>;
    r->lanes = EDGE_THREADS + 1;          /* so that the threads with edge elements are in the first stretch */
    while (r->lanes < SLOPE_BLOCK && r->lanes * each < words) r->lanes *= 2;
    int64_t stretches = qn_ceil_div(words, r->lanes * each), blocks = qn_ceil_div(r->rows * stretches, SLOPE_BLOCK / r->lanes);
    if (blocks * SLOPE_BLOCK > INT32_MAX)
      return qn_refuse(out, "fewer than 2^31 vectors", "x", "", "%lld", (long long)(r->rows * words));
    r->stretches = (uint32_t)stretches;
    s.kernel = backward_kernel_of(whole ? x->dtype : 0);
    s.blocks = (unsigned)blocks;
    s.threads = SLOPE_BLOCK;
  } else {
    if (whole) {                          /* a row's alignment, and so the order of its sum, may depend on its number */
      if (request->demands->determinism >= QN_DET_BATCH) {
        if (r->classes % per_word) whole = false;
        else if (!steady)
          return qn_refuse(out, "rows begin with a 16-byte word, where the batch must not matter", "x", "", "%lld apart",
                           (long long)step[X]);
      } else if (!steady) {
        out->traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);
      }
    }
    choose_shape(&s, request->device, whole ? x->dtype : 0);
    s.joined = attr->reduction != QN_REDUCTION_NONE || v[COUNT];
    if (s.joined) out->workspace = s.blocks * sizeof(double2), out->counters = 4;
    /* the order of the sum depends on how many blocks the device holds */
    if (attr->reduction != QN_REDUCTION_NONE) out->traits &= ~(uint64_t)QN_TRAIT_PORTABLE;
  }

  return cuda_keep(out, &s, sizeof s);
}

static void *pointer(const qn_launch *launch, int32_t number) { return number < 0 ? nullptr : launch->ptr[number]; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  rows r = s->r;
  r.x = pointer(launch, s->number[X]), r.labels = pointer(launch, s->number[LABELS]), r.dx = pointer(launch, s->number[DX]);
  r.lse = (float *)pointer(launch, s->number[LSE]), r.count = (float *)pointer(launch, s->number[COUNT]);
  r.dy = r.loss = (float *)pointer(launch, s->number[LOSS]);
  if (s->joined) r.part = (double2 *)launch->workspace, r.ticket = (uint32_t *)launch->counters;
  void *arguments[] = { &r };
  return cuda_check(cudaLaunchKernel(s->kernel, dim3(s->blocks), dim3(s->threads), arguments, 0, (cudaStream_t)launch->stream),
                    "loss_rows");
}

#define ROW(op) { "rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CROSS_ENTROPY), ROW(QN_OP_CROSS_ENTROPY_BACKWARD) };
CUDA_ENGINES(loss_rows) = { row, sizeof row / sizeof *row };
