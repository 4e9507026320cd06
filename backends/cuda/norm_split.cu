/* norm_split.cu -- normalization of few large groups with a parameter for each (batch norm, long rows without parameters of
 * their own): a group is cut into chunks, so that the whole device works on it.
 *
 *   1. measure   each chunk's mean and sum of squared distances by Welford's recurrence; for a gradient sum dy and sum dy h
 *   2. combine   the chunks of a group, in order (Chan, Golub, LeVeque); statistics and parameters become y = x a + dy b + c
 *   3. apply     that, element by element
 *
 * columns: groups lie side by side (channels last). planes: a group is runs of contiguous elements (channels first). */
#include "cuda_backend.h"
#include "engines.h"
#include "vector.cuh"

enum { V = 8, THREADS = 256, LANES = 32, LINES = THREADS / LANES, MAX_CHUNKS = 256 };
/* Tensors with an element, or more, for each group. y is dx in a gradient. */
enum { X, Y, DY, SCALE, SHIFT, MEAN, RSTD, VAR, RUNNING_MEAN, RUNNING_VAR, NEW_MEAN, NEW_VAR, DSCALE, DSHIFT, TENSORS };

struct split {
  void    *p[TENSORS];
  uint32_t dtype[TENSORS];
  int64_t  step[TENSORS];                 /* from group to group */
  int64_t  groups, n;                     /* n: elements of a group = lines * line */
  int64_t  lines, line;                   /* columns: line is 1 */
  int64_t  line_step[3];                  /* of x, y, dy from line to line */
  int64_t  chunk;                         /* lines (columns) or vectors (planes) of a chunk */
  int32_t  chunks;
  float    eps, momentum;
  bool     columns, centred, backward, given;       /* given: mean and var are inputs */
  float2  *part;                          /* [chunks, groups] */
  float   *factor;                        /* [groups, 3]: a, b, c */

  __device__ float get(int t, int64_t g, float absent) const { return p[t] ? element_load<float>(p[t], g * step[t], dtype[t]) : absent; }
  __device__ void put(int t, int64_t g, float v) const { if (p[t]) element_store(p[t], g * step[t], dtype[t], v); }
  __host__ __device__ int64_t vectors() const { return (line + V - 1) / V; }            /* of a line of a plane */
};

/* ---- what is gathered of a chunk ------------------------------------------------------------------------------ */

/* Forward: the mean of what was seen, and the sum of squared distances from it. Gradient: sum dy, sum dy h. */
struct gathered { float first, second, count; };

__device__ __forceinline__ gathered joined(gathered a, gathered b, bool add)
{
  if (add) return { a.first + b.first, a.second + b.second, a.count + b.count };
  if (b.count == 0) return a;
  float all = a.count + b.count, share = b.count / all, d = b.first - a.first;
  return { a.first + d * share, a.second + b.second + d * d * a.count * share, all };
}

/* Joins what the threads of a block hold of one group; thread 0's is the block's. */
__device__ __forceinline__ gathered block_joined(gathered mine, bool add)
{
  __shared__ gathered of_warp[THREADS / 32];
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {       /* in a fixed order, neighbours first */
    gathered other = { __shfl_down_sync(~0u, mine.first, o), __shfl_down_sync(~0u, mine.second, o), __shfl_down_sync(~0u, mine.count, o) };
    mine = joined(mine, other, add);
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int w = 1; w < THREADS / 32; w++) mine = joined(mine, of_warp[w], add);
  return mine;
}

__global__ static void __launch_bounds__(THREADS) measure_columns(const __grid_constant__ split s)
{
  __shared__ gathered seen[LINES][LANES * V + 1];
  int lane = threadIdx.x % LANES, y = threadIdx.x / LANES;
  int64_t g0 = (blockIdx.x * (int64_t)LANES + lane) * V, from = blockIdx.y * s.chunk, to = min(from + s.chunk, s.lines);
  int n = (int)max((int64_t)0, min((int64_t)V, s.groups - g0));
  float first[V], second[V], mean[V], rstd[V], count = 0;
#pragma unroll
  for (int i = 0; i < V; i++) {
    first[i] = second[i] = 0;
    mean[i] = s.backward && i < n ? s.get(MEAN, g0 + i, 0) : 0;
    rstd[i] = s.backward && i < n ? s.get(RSTD, g0 + i, 1) : 1;
  }
#pragma unroll 4
  for (int64_t r = from + y; r < to && n > 0; r += LINES) {
    float x[V], dy[V];
    vector_load(x, s.p[X], s.dtype[X], r * s.line_step[X] + g0, 1, n);
    if (s.backward) {
      vector_load(dy, s.p[DY], s.dtype[DY], r * s.line_step[DY] + g0, 1, n);
#pragma unroll
      for (int i = 0; i < V; i++) first[i] += dy[i], second[i] += dy[i] * ((x[i] - mean[i]) * rstd[i]);
    } else if (s.centred) {
      float share = 1 / ++count;
#pragma unroll
      for (int i = 0; i < V; i++) {
        float d = x[i] - first[i];
        first[i] += d * share;
        second[i] += d * (x[i] - first[i]);
      }
    } else {
      count++;
#pragma unroll
      for (int i = 0; i < V; i++) second[i] += x[i] * x[i];
    }
  }
#pragma unroll
  for (int i = 0; i < V; i++) seen[y][lane * V + i] = { first[i], second[i], count };
  __syncthreads();
  int64_t g = blockIdx.x * (int64_t)(LANES * V) + threadIdx.x;        /* one column for each thread */
  if (g >= s.groups) return;
  gathered all = seen[0][threadIdx.x];
  for (int w = 1; w < LINES; w++) all = joined(all, seen[w][threadIdx.x], s.backward);
  s.part[blockIdx.y * s.groups + g] = make_float2(all.first, all.second);
}

__global__ static void __launch_bounds__(THREADS) measure_planes(const __grid_constant__ split s)
{
  int64_t g = blockIdx.x, vectors = s.vectors(), from = blockIdx.y * s.chunk, to = min(from + s.chunk, s.lines * vectors);
  float mean = s.backward ? s.get(MEAN, g, 0) : 0, rstd = s.backward ? s.get(RSTD, g, 1) : 1;
  gathered all = { 0, 0, 0 };
#pragma unroll 4
  for (int64_t j = from + threadIdx.x; j < to; j += THREADS) {
    int64_t line = j / vectors, at = (j - line * vectors) * V;
    int n = (int)min((int64_t)V, s.line - at);
    float x[V], dy[V];
    vector_load(x, s.p[X], s.dtype[X], g * s.step[X] + line * s.line_step[X] + at, 1, n);
    gathered here = { 0, 0, (float)n };
    if (s.backward) {
      vector_load(dy, s.p[DY], s.dtype[DY], g * s.step[DY] + line * s.line_step[DY] + at, 1, n);
#pragma unroll
      for (int i = 0; i < V; i++) here.first += dy[i], here.second += dy[i] * ((x[i] - mean) * rstd);
    } else {
      if (s.centred) {
#pragma unroll
        for (int i = 0; i < V; i++) here.first += x[i];
        here.first /= n;
      }
#pragma unroll
      for (int i = 0; i < V; i++) {
        float d = i < n ? x[i] - here.first : 0;
        here.second += d * d;
      }
    }
    all = joined(all, here, s.backward);
  }
  all = block_joined(all, s.backward);
  if (threadIdx.x == 0) s.part[blockIdx.y * s.groups + g] = make_float2(all.first, all.second);
}

/* ---- combine: a group by one warp, which takes its chunks in order ---------------------------------------------- */

__device__ __forceinline__ float elements_of(const split &s, int chunk)
{
  int64_t all = s.columns ? s.lines : s.lines * s.vectors(), from = chunk * s.chunk, to = min(from + s.chunk, all);
  if (s.columns) return (float)(to - from);
  int64_t vectors = s.vectors(), short_by = vectors * V - s.line;    /* each line's last vector lacks so many */
  return (float)((to - from) * V - (to / vectors - from / vectors) * short_by);
}

__global__ static void __launch_bounds__(THREADS) combine(const __grid_constant__ split s)
{
  int64_t g = blockIdx.x * (int64_t)(THREADS / 32) + threadIdx.x / 32;
  int lane = threadIdx.x % 32;
  if (g >= s.groups) return;
  gathered all = { 0, 0, 0 };
  for (int i = lane; i < s.chunks; i += 32) {
    float2 part = s.part[i * s.groups + g];
    all = joined(all, { part.x, part.y, elements_of(s, i) }, s.backward);
  }
#pragma unroll
  for (int o = 1; o < 32; o *= 2)
    all = joined(all, { __shfl_down_sync(~0u, all.first, o), __shfl_down_sync(~0u, all.second, o), __shfl_down_sync(~0u, all.count, o) }, s.backward);
  if (lane) return;
  float n = (float)s.n, scale = s.get(SCALE, g, 1), *factor = s.factor + g * 3;
  if (s.backward) {
    float mean = s.get(MEAN, g, 0), rstd = s.get(RSTD, g, 1), a = rstd * scale, by_x = -a * rstd * (all.second / n);
    factor[0] = by_x;
    factor[1] = a;
    factor[2] = -(s.centred ? a * (all.first / n) : 0) - mean * by_x;
    s.put(DSCALE, g, all.second);
    s.put(DSHIFT, g, all.first);
    return;
  }
  float mean = s.given ? s.get(MEAN, g, 0) : all.first, var = s.given ? s.get(VAR, g, 0) : all.second / n, rstd = 1 / sqrtf(var + s.eps);
  factor[0] = rstd * scale;
  factor[1] = 0;
  factor[2] = s.get(SHIFT, g, 0) - mean * factor[0];
  if (s.given) return;
  s.put(MEAN, g, mean);
  s.put(RSTD, g, rstd);
  s.put(NEW_MEAN, g, (1 - s.momentum) * s.get(RUNNING_MEAN, g, 0) + s.momentum * mean);
  s.put(NEW_VAR, g, (1 - s.momentum) * s.get(RUNNING_VAR, g, 0) + s.momentum * (s.n > 1 ? all.second / (n - 1) : var));
}

/* ---- apply ------------------------------------------------------------------------------------------------------- */

__global__ static void __launch_bounds__(THREADS) apply_columns(const __grid_constant__ split s)
{
  int lane = threadIdx.x % LANES, y = threadIdx.x / LANES;
  int64_t g0 = (blockIdx.x * (int64_t)LANES + lane) * V, from = blockIdx.y * s.chunk, to = min(from + s.chunk, s.lines);
  int n = (int)max((int64_t)0, min((int64_t)V, s.groups - g0));
  float a[V], b[V], c[V];
#pragma unroll
  for (int i = 0; i < V; i++) {
    const float *factor = s.factor + (g0 + i) * 3;
    a[i] = i < n ? factor[0] : 0, b[i] = i < n ? factor[1] : 0, c[i] = i < n ? factor[2] : 0;
  }
#pragma unroll 4
  for (int64_t r = from + y; r < to && n > 0; r += LINES) {
    float x[V], dy[V];
    vector_load(x, s.p[X], s.dtype[X], r * s.line_step[X] + g0, 1, n);
    if (s.backward) vector_load(dy, s.p[DY], s.dtype[DY], r * s.line_step[DY] + g0, 1, n);
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = x[i] * a[i] + (s.backward ? dy[i] * b[i] + c[i] : c[i]);
    vector_store(x, s.p[Y], s.dtype[Y], r * s.line_step[Y] + g0, 1, n);
  }
}

__global__ static void __launch_bounds__(THREADS) apply_planes(const __grid_constant__ split s)
{
  int64_t g = blockIdx.x, vectors = s.vectors(), from = blockIdx.y * s.chunk, to = min(from + s.chunk, s.lines * vectors);
  float a = s.factor[g * 3], b = s.factor[g * 3 + 1], c = s.factor[g * 3 + 2];
#pragma unroll 4
  for (int64_t j = from + threadIdx.x; j < to; j += THREADS) {
    int64_t line = j / vectors, at = (j - line * vectors) * V;
    int n = (int)min((int64_t)V, s.line - at);
    float x[V], dy[V];
    vector_load(x, s.p[X], s.dtype[X], g * s.step[X] + line * s.line_step[X] + at, 1, n);
    if (s.backward) vector_load(dy, s.p[DY], s.dtype[DY], g * s.step[DY] + line * s.line_step[DY] + at, 1, n);
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = x[i] * a + (s.backward ? dy[i] * b + c : c);
    vector_store(x, s.p[Y], s.dtype[Y], g * s.step[Y] + line * s.line_step[Y] + at, 1, n);
  }
}

/* ---- prepare, run --------------------------------------------------------------------------------------------------- */

struct state { split s; int32_t number[TENSORS]; };

static void roles_of(const qn_request *r, int32_t number[TENSORS])
{
  const qn_norm_roles a = qn_norm_roles_of(r->op[0].op);
  const int8_t role[TENSORS] = { a.x, a.y < 0 ? a.dx : a.y, a.dy, a.scale, a.shift, a.mean, a.rstd, a.var, a.running_mean, a.running_var,
                                 a.new_mean, a.new_var, a.dscale, a.dshift };
  for (int t = 0; t < TENSORS; t++) number[t] = role[t] < 0 ? -1 : qn_role(&r->op[0], (uint32_t)role[t]);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_norm *norm = (const qn_norm *)r->op[0].attr;
  state st = {};
  split &s = st.s;
  roles_of(r, st.number);
  const qn_value *x = &r->value[st.number[X]];
  if (x->dtype == QN_F64) return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", "f64");

  qn_nest kept = {}, walked = {};
  kept.n = TENSORS, walked.n = 3;
  s.groups = s.n = 1;
  for (int d = 0; d < x->rank; d++) {
    bool in = norm->mask >> d & 1;
    qn_nest *nest = in ? &walked : &kept;
    nest->dim[nest->rank] = x->dim[d];
    for (int t = 0; t < TENSORS; t++) {
      const qn_value *v = st.number[t] < 0 ? nullptr : &r->value[st.number[t]];
      if (v) s.dtype[t] = v->dtype;
      if (v && t > DY && (in ? v->dim[d] != 1 : v->dim[d] != x->dim[d]))
        return qn_refuse(out, "a parameter must have one element for each group", t == SCALE ? "scale" : t == SHIFT ? "shift" : "dscale",
                         "1 along the dims normalized over", "%lld", (long long)v->dim[d]);
      if (t < nest->n) nest->stride[t][nest->rank] = v ? v->stride[d] : t < 3 ? x->stride[d] : 0;
    }
    nest->rank++;
    *(in ? &s.n : &s.groups) *= x->dim[d];
  }
  /* an absent tensor must not keep dims from merging: it takes the steps of the one before it */
  for (int t = DY + 1; t < TENSORS; t++)
    if (st.number[t] < 0)
      for (int d = 0; d < kept.rank; d++) kept.stride[t][d] = kept.stride[t - 1][d];
  qn_nest_simplify(&kept);
  qn_nest_simplify(&walked);
  if (kept.rank > 1) return qn_refuse(out, "the dims not normalized over must lie as one, in all tensors", "x", "1 that does not merge", "%d", kept.rank);
  bool columns = kept.rank == 1 && walked.rank <= 1, planes = walked.rank == 1 || walked.rank == 2;
  for (int t = 0; t < 3; t++) {
    columns &= kept.rank == 1 && kept.stride[t][0] == 1;
    planes &= walked.rank > 0 && walked.stride[t][walked.rank - 1] == 1;
  }
  if (!columns && !planes)
    return qn_refuse(out, "groups must lie side by side, or in contiguous runs", "x", "channels first or channels last", "%s", "other strides");
  s.columns = columns;
  s.lines = columns ? s.n : walked.rank == 2 ? walked.dim[0] : 1;
  s.line = columns ? 1 : walked.dim[walked.rank - 1];
  for (int t = 0; t < 3; t++) s.line_step[t] = walked.rank && (columns || walked.rank == 2) ? walked.stride[t][0] : 0;
  for (int t = 0; t < TENSORS; t++) s.step[t] = kept.rank ? kept.stride[t][0] : 0;
  s.eps = (float)norm->eps;
  s.momentum = (float)norm->momentum;
  s.centred = r->op[0].op != QN_OP_RMS_NORM && r->op[0].op != QN_OP_RMS_NORM_BACKWARD;
  s.backward = st.number[DY] >= 0;
  s.given = st.number[VAR] >= 0;

  int64_t side = columns ? qn_ceil_div(s.groups, LANES * V) : s.groups, pieces = columns ? s.lines : s.lines * s.vectors();
  if (side > INT32_MAX) return qn_refuse(out, "fewer than 2^31 groups", "x", "", "%lld", (long long)s.groups);
  int64_t least = columns ? 4 * LINES : 4 * THREADS;        /* of a chunk, so that a thread has some to do */
  int64_t chunks = qn_min_i64(qn_ceil_div(pieces, least), qn_min_i64(MAX_CHUNKS, qn_ceil_div(8 * (int64_t)r->device->units, side)));
  s.chunk = qn_ceil_div(pieces, chunks);
  s.chunks = (int32_t)qn_ceil_div(pieces, s.chunk);
  out->workspace = (uint64_t)qn_round_up((int64_t)sizeof(float2) * s.chunks * s.groups, 256) + (uint64_t)s.groups * 3 * sizeof(float);

  state *k = (state *)r->host->alloc(sizeof *k);
  if (!k) return QN_NO_MEMORY;
  *k = st;
  out->state = k;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_NATIVE;
  return QN_OK;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = (const state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  split s = st->s;
  for (int t = 0; t < TENSORS; t++) s.p[t] = st->number[t] < 0 ? nullptr : launch->ptr[st->number[t]];
  s.part = (float2 *)launch->workspace;
  s.factor = (float *)((char *)launch->workspace + qn_round_up((int64_t)sizeof(float2) * s.chunks * s.groups, 256));
  dim3 grid((unsigned)(s.columns ? qn_ceil_div(s.groups, LANES * V) : s.groups), (unsigned)s.chunks);
  if (!s.given) {
    if (s.columns) measure_columns<<<grid, THREADS, 0, stream>>>(s);
    else measure_planes<<<grid, THREADS, 0, stream>>>(s);
  } else s.chunks = 0;
  combine<<<(unsigned)qn_ceil_div(s.groups, THREADS / 32), THREADS, 0, stream>>>(s);
  if (s.columns) apply_columns<<<grid, THREADS, 0, stream>>>(s);
  else apply_planes<<<grid, THREADS, 0, stream>>>(s);
  return cuda_check(cudaGetLastError(), "norm_split");
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

/* How a group is cut depends on the number of groups, so a batch of rows is not invariant. */
#define ROW(op) { "split", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare, nullptr, run, release }
static const qn_engine row[] = {
  ROW(QN_OP_BATCH_NORM), ROW(QN_OP_BATCH_NORM_BACKWARD), ROW(QN_OP_BATCH_NORM_INFERENCE),
  ROW(QN_OP_LAYER_NORM), ROW(QN_OP_LAYER_NORM_BACKWARD), ROW(QN_OP_RMS_NORM), ROW(QN_OP_RMS_NORM_BACKWARD),
};
const qn_engine_list cuda_norm_split_list = { row, sizeof row / sizeof *row };
