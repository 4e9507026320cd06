/* loss_rows.cu -- cross-entropy and its gradient where the classes of a row lie side by side and rows at one distance.
 *
 * Forward: a row by a warp or a block, read once: each thread joins what it reads to its own maximum and sum of exponentials,
 * then the threads join theirs. Reduced losses: each block adds up those of its rows, the last block to finish adds up the blocks'.
 * Backward: eight elements by a thread, whichever row they are of. */
#include "cuda_backend.h"
#include "engines.h"
#include "logits.cuh"

enum { V = LOGITS_V };

struct rows {
  const void  *x, *labels;
  const float *dy;                        /* in a gradient, which reads lse and count; else loss is written */
  void        *dx;
  float       *loss, *lse, *count;
  double      *part;                      /* [blocks, 2]: losses, rows that count */
  uint32_t    *ticket;
  uint32_t     x_dtype, dx_dtype, label_dtype;
  int32_t      reduction;
  int64_t      rows, classes, ignore;
  int64_t      x_step, dx_step, label_step, loss_step, lse_step;           /* from row to row */
  float        smoothing, spread;         /* smoothing / C */

  __device__ __forceinline__ int64_t label(int64_t row) const
  {
    return label_dtype == QN_I64 ? ((const int64_t *)labels)[row * label_step] : ((const int32_t *)labels)[row * label_step];
  }
};

/* ---- forward ------------------------------------------------------------------------------------------------------- */

/* threads: of a row. Blocks of narrow rows have several side by side. */
template <int threads> constexpr int block_of = threads < 128 ? 128 : threads;
template <int threads, int K, int whole> __global__ static void __launch_bounds__(block_of<threads>) loss_rows(const __grid_constant__ rows r)
{
  constexpr int side = block_of<threads> / threads;
  __shared__ joint shared[threads / 32];
  __shared__ double losses[side], counts[side];
  __shared__ bool last;
  const int lane = threadIdx.x % threads, which = threadIdx.x / threads;
  double sum = 0, count = 0;
  for (int64_t row = (int64_t)blockIdx.x * side + which; row < r.rows; row += (int64_t)gridDim.x * side) {
    int64_t label = r.label(row), at = row * r.x_step;
    float lse = 0, loss = 0;
    if (label != r.ignore) {
      joint j = join_threads<threads>(read_row<threads, K, whole>(r.x, r.x_dtype, at, r.classes, r.smoothing > 0, lane), shared);
      lse = joint::shift(j.m) + logf(j.s);
      loss = lse;
      if (lane == 0 && label >= 0 && label < r.classes) loss -= (1 - r.smoothing) * element_load<float>(r.x, at + label, r.x_dtype);
      if (r.smoothing > 0) loss -= r.spread * j.sum;
      count += 1;
    }
    if (lane) continue;
    sum += loss;
    if (r.lse) r.lse[row * r.lse_step] = lse;
    if (r.reduction == QN_REDUCTION_NONE) r.loss[row * r.loss_step] = loss;
  }
  if (!r.part) return;

  if (lane == 0) losses[which] = sum, counts[which] = count;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < side; i++) sum += losses[i], count += counts[i];
    r.part[2 * blockIdx.x] = sum;
    r.part[2 * blockIdx.x + 1] = count;
    __threadfence();
    last = atomicInc(r.ticket, gridDim.x - 1) == gridDim.x - 1;            /* and leaves 0 */
  }
  __syncthreads();
  if (!last || threadIdx.x >= 32) return;
  __threadfence();
  sum = count = 0;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += 32) sum += __ldcg(r.part + 2 * b), count += __ldcg(r.part + 2 * b + 1);
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o), count += __shfl_xor_sync(~0u, count, o);
  if (threadIdx.x) return;
  if (r.count) *r.count = (float)count;
  if (r.reduction != QN_REDUCTION_NONE) *r.loss = (float)(r.reduction == QN_REDUCTION_MEAN ? sum / count : sum);
}

/* ---- backward ------------------------------------------------------------------------------------------------------ */

template <int whole> __global__ static void __launch_bounds__(256) loss_backward_rows(const __grid_constant__ rows r)
{
  uint32_t vectors = (uint32_t)((r.classes + V - 1) / V), i = blockIdx.x * 256 + threadIdx.x, row = i / vectors;
  if (row >= r.rows) return;
  int64_t c = (int64_t)(i - row * vectors) * V, label = r.label(row);
  int n = (int)min(r.classes - c, (int64_t)V);
  float v[V] = {};
  if (label != r.ignore) {
    float g = r.dy[row * r.loss_step], lse = r.lse[row * r.lse_step];
    if (r.reduction == QN_REDUCTION_MEAN) g /= *r.count;
    if (whole) vector_load_whole<whole>(v, r.x, row * r.x_step + c);
    else vector_load(v, r.x, r.x_dtype, row * r.x_step + c, 1, n);
#pragma unroll
    for (int k = 0; k < V; k++) v[k] = g * (exp_of(v[k] - lse) - (c + k == label ? 1 - r.smoothing : 0) - r.spread);
  }
  if (whole) vector_store_whole<whole>(v, r.dx, row * r.dx_step + c);
  else vector_store(v, r.dx, r.dx_dtype, row * r.dx_step + c, 1, n);
}

/* ---- prepare, run -------------------------------------------------------------------------------------------------- */

enum { X, DX, LABELS, LOSS, LSE, COUNT, TENSORS };        /* in a gradient LOSS is dy */

struct state {
  rows     r;
  int32_t  number[TENSORS];               /* values of the request; -1: absent */
  bool     backward, joined;
  const void *kernel;
  unsigned blocks, threads;
};

template <int threads, int K> static const void *kernel_of(uint32_t whole)
{
  switch (whole) {
  case QN_F32:  return (const void *)loss_rows<threads, K, QN_F32>;
  case QN_F16:  return (const void *)loss_rows<threads, K, QN_F16>;
  case QN_BF16: return (const void *)loss_rows<threads, K, QN_BF16>;
  default:      return (const void *)loss_rows<threads, K, 0>;
  }
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

/* The one distance between rows, whose dims are all but the axis; -1: they have several. */
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
  int64_t classes = s->r.classes;
  unsigned threads = classes <= 1024 ? 32 : classes <= 16384 ? 256 : 512, per_unit = threads == 32 ? 16 : 2048 / threads;
  s->kernel = classes <= 256 ? kernel_of<32, 1>(whole) : classes <= 1024 ? kernel_of<32, 4>(whole)
            : classes <= 16384 ? kernel_of<256, 4>(whole) : kernel_of<512, 4>(whole);
  s->threads = threads == 32 ? block_of<32> : threads;
  int64_t blocks = qn_ceil_div(s->r.rows, s->threads / threads);
  s->blocks = (unsigned)qn_min_i64(blocks, (int64_t)device->units * per_unit);
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

  rows *r = &s.r;
  r->classes = x->dim[axis];
  r->rows = qn_elements(v[LABELS]);
  r->x_dtype = x->dtype, r->label_dtype = v[LABELS]->dtype;
  r->x_step = step[X], r->label_step = step[LABELS], r->loss_step = step[LOSS], r->lse_step = step[LSE], r->dx_step = step[DX];
  r->reduction = (int32_t)attr->reduction;
  r->ignore = attr->ignore;
  r->smoothing = (float)attr->smoothing;
  r->spread = (float)(attr->smoothing / (double)r->classes);
  bool whole = x->align >= 16 && step[X] % V == 0 && r->classes % V == 0;
  if (s.backward) {
    r->dx_dtype = v[DX]->dtype;
    whole &= v[DX]->dtype == x->dtype && v[DX]->align >= 16 && step[DX] % V == 0;
    int64_t vectors = r->rows * qn_ceil_div(r->classes, V);
    if (vectors > INT32_MAX) return qn_refuse(out, "fewer than 2^31 vectors of 8", "x", "", "%lld", (long long)vectors);
    s.kernel = backward_kernel_of(whole ? x->dtype : 0);
    s.blocks = (unsigned)qn_ceil_div(vectors, 256);
    s.threads = 256;
  } else {
    choose_shape(&s, request->device, whole ? x->dtype : 0);
    s.joined = attr->reduction != QN_REDUCTION_NONE || v[COUNT];
    if (s.joined) out->workspace = s.blocks * 2 * sizeof(double), out->counters = 4;
    if (attr->reduction != QN_REDUCTION_NONE) out->traits &= ~(uint64_t)QN_TRAIT_PORTABLE;    /* as many blocks as the device holds */
  }

  state *kept = (state *)request->host->alloc(sizeof *kept);
  if (!kept) return QN_NO_MEMORY;
  *kept = s;
  out->state = kept;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_NATIVE;
  return QN_OK;
}

static void *pointer(const qn_launch *launch, int32_t number) { return number < 0 ? nullptr : launch->ptr[number]; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  rows r = s->r;
  r.x = pointer(launch, s->number[X]), r.labels = pointer(launch, s->number[LABELS]), r.dx = pointer(launch, s->number[DX]);
  r.lse = (float *)pointer(launch, s->number[LSE]), r.count = (float *)pointer(launch, s->number[COUNT]);
  r.dy = r.loss = (float *)pointer(launch, s->number[LOSS]);
  if (s->joined) r.part = (double *)launch->workspace, r.ticket = (uint32_t *)launch->counters;
  void *arguments[] = { &r };
  return cuda_check(cudaLaunchKernel(s->kernel, dim3(s->blocks), dim3(s->threads), arguments, 0, (cudaStream_t)launch->stream), "loss_rows");
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

#define ROW(op) { "rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, release }
static const qn_engine row[] = { ROW(QN_OP_CROSS_ENTROPY), ROW(QN_OP_CROSS_ENTROPY_BACKWARD) };
const qn_engine_list cuda_loss_rows_list = { row, sizeof row / sizeof *row };
