/* norm_split.cu -- normalization of few large groups with a parameter for each (batch norm, long rows without parameters of
 * their own): a group is cut into chunks, so that the whole device works on it.
 *
 *   1. measure   each chunk's mean and sum of squared distances by Welford's recurrence; for a gradient four sums
 *   2. combine   the chunks of a group in a fixed order (Chan, Golub, LeVeque); statistics, running ones, dscale and dshift
 *   3. apply     y = h scale + shift, or dx = rstd (dy scale - mean g - h mean(g h)), with h = (x - mean) rstd, g = dy scale
 *
 * columns: groups lie side by side (channels last). planes: a group is runs of contiguous elements (channels first). */
#include "cuda_backend.h"
#include "engines.h"
#include "vector.cuh"

enum { V = 8, THREADS = 256, LANES = 32, LINES = THREADS / LANES, MAX_CHUNKS = 256, FACTORS = 5 };
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
  float4  *part;                          /* [chunks, groups] */
  float   *factor;                        /* [groups, FACTORS] */

  __device__ float get(int t, int64_t g, float absent) const { return p[t] ? element_load<float>(p[t], g * step[t], dtype[t]) : absent; }
  __device__ void put(int t, int64_t g, float v) const { if (p[t]) element_store(p[t], g * step[t], dtype[t], v); }
  __device__ void load(float (&v)[V], int t, int64_t at, int n) const { vector_load(v, p[t], dtype[t], at, 1, n); }
  __host__ __device__ int64_t vectors() const { return (line + V - 1) / V; }            /* of a line of a plane */
};

/* ---- what is gathered of a chunk ------------------------------------------------------------------------------ */

/* A mean that takes in one more: infinities stay what a sum would make of them. */
__device__ __forceinline__ float moved(float mean, float x, float d, float share) { return fabsf(d) < INFINITY ? mean + d * share : mean + x; }

struct moments {                          /* of x: the mean of what was seen, and the sum of squared distances from it */
  float mean, squares, count;

  __device__ void add(float x, float share, bool centred)
  {
    float d = centred ? x - mean : x;
    if (centred) mean = moved(mean, x, d, share);
    squares += d * (x - mean);
  }
  __device__ void join(const moments &b)
  {
    if (b.count == 0) return;
    float all = count + b.count, share = b.count / all, d = b.mean - mean;
    mean = moved(mean, b.mean, d, share);
    squares += b.squares + (count == 0 ? 0 : d * d * count * share);
    count = all;
  }
  __device__ float4 pack() const { return make_float4(mean, squares, count, 0); }
  __device__ static moments unpack(float4 v) { return { v.x, v.y, v.z }; }
};

struct sums {                             /* of g, g h, dy and dy h */
  float g, gh, dy, dyh;

  __device__ void add(float dy_, float scale, float h)
  {
    float g_ = dy_ * scale;
    g += g_, gh += g_ * h, dy += dy_, dyh += dy_ * h;
  }
  __device__ void join(const sums &b) { g += b.g, gh += b.gh, dy += b.dy, dyh += b.dyh; }
  __device__ float4 pack() const { return make_float4(g, gh, dy, dyh); }
  __device__ static sums unpack(float4 v) { return { v.x, v.y, v.z, v.w }; }
};

template <class S> __device__ __forceinline__ S from_below(const S &mine, int o)
{
  float4 v = mine.pack();
  return S::unpack(make_float4(__shfl_down_sync(~0u, v.x, o), __shfl_down_sync(~0u, v.y, o), __shfl_down_sync(~0u, v.z, o), __shfl_down_sync(~0u, v.w, o)));
}
/* Lane 0 gets the warp's, neighbours joined first. */
template <class S> __device__ __forceinline__ void warp_join(S &mine)
{
#pragma unroll
  for (int o = 1; o < 32; o *= 2) mine.join(from_below(mine, o));
}

/* ---- measure ---------------------------------------------------------------------------------------------------- */

template <class S, bool backward> __global__ void __launch_bounds__(THREADS) measure_columns(const __grid_constant__ split s)
{
  __shared__ float4 seen[LINES][LANES * V];
  int lane = threadIdx.x % LANES, y = threadIdx.x / LANES;
  int64_t g0 = (blockIdx.x * (int64_t)LANES + lane) * V, from = blockIdx.y * s.chunk, to = min(from + s.chunk, s.lines);
  int n = (int)max((int64_t)0, min((int64_t)V, s.groups - g0));
  S all[V] = {};
  float mean[V], rstd[V], scale[V], count = 0;
  if constexpr (backward) {
#pragma unroll
    for (int i = 0; i < V; i++) {
      mean[i] = i < n ? s.get(MEAN, g0 + i, 0) : 0;
      rstd[i] = i < n ? s.get(RSTD, g0 + i, 1) : 1;
      scale[i] = i < n ? s.get(SCALE, g0 + i, 1) : 1;
    }
  }
#pragma unroll 2
  for (int64_t r = from + y; r < to && n > 0; r += LINES) {
    float x[V], dy[V];
    s.load(x, X, r * s.line_step[X] + g0, n);
    if constexpr (backward) {
      s.load(dy, DY, r * s.line_step[DY] + g0, n);
#pragma unroll
      for (int i = 0; i < V; i++) all[i].add(dy[i], scale[i], (x[i] - mean[i]) * rstd[i]);
    } else {
      float share = 1 / ++count;
#pragma unroll
      for (int i = 0; i < V; i++) all[i].add(x[i], share, s.centred);
    }
  }
#pragma unroll
  for (int i = 0; i < V; i++) {
    if constexpr (!backward) all[i].count = count;
    seen[y][lane * V + i] = all[i].pack();
  }
  __syncthreads();
  int64_t g = blockIdx.x * (int64_t)(LANES * V) + threadIdx.x;        /* one column for each thread */
  if (g >= s.groups) return;
  S total = S::unpack(seen[0][threadIdx.x]);
  for (int w = 1; w < LINES; w++) total.join(S::unpack(seen[w][threadIdx.x]));
  s.part[blockIdx.y * s.groups + g] = total.pack();
}

template <class S, bool backward> __global__ void __launch_bounds__(THREADS) measure_planes(const __grid_constant__ split s)
{
  __shared__ float4 of_warp[THREADS / 32];
  int64_t g = blockIdx.x, vectors = s.vectors(), from = blockIdx.y * s.chunk, to = min(from + s.chunk, s.lines * vectors);
  float mean = backward ? s.get(MEAN, g, 0) : 0, rstd = backward ? s.get(RSTD, g, 1) : 1, scale = backward ? s.get(SCALE, g, 1) : 1;
  S all = {};
#pragma unroll 2
  for (int64_t j = from + threadIdx.x; j < to; j += THREADS) {
    int64_t line = j / vectors, at = (j - line * vectors) * V;
    int n = (int)min((int64_t)V, s.line - at);
    float x[V], dy[V];
    s.load(x, X, g * s.step[X] + line * s.line_step[X] + at, n);
    if constexpr (backward) {
      s.load(dy, DY, g * s.step[DY] + line * s.line_step[DY] + at, n);
#pragma unroll
      for (int i = 0; i < V; i++)
        if (i < n) all.add(dy[i], scale, (x[i] - mean) * rstd);
    } else {
      moments here = { 0, 0, (float)n };
      if (s.centred) {
#pragma unroll
        for (int i = 0; i < V; i++) here.mean += x[i];
        here.mean /= n;
      }
#pragma unroll
      for (int i = 0; i < V; i++) {
        float d = i < n ? x[i] - here.mean : 0;
        here.squares += d * d;
      }
      all.join(here);
    }
  }
  warp_join(all);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = all.pack();
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < THREADS / 32; w++) all.join(S::unpack(of_warp[w]));
  s.part[blockIdx.y * s.groups + g] = all.pack();
}

/* ---- combine: a group by one warp --------------------------------------------------------------------------------- */

template <class S> __device__ __forceinline__ S of_group(const split &s, int64_t g)
{
  S all = {};
  for (int i = threadIdx.x % 32; i < s.chunks; i += 32) all.join(S::unpack(s.part[i * s.groups + g]));
  warp_join(all);
  return all;
}

__global__ static void __launch_bounds__(THREADS) combine(const __grid_constant__ split s)
{
  int64_t g = blockIdx.x * (int64_t)(THREADS / 32) + threadIdx.x / 32;
  if (g >= s.groups) return;
  float n = (float)s.n, mean, rstd, p, q = 0;
  if (s.backward) {
    sums all = of_group<sums>(s, g);
    mean = s.get(MEAN, g, 0), rstd = s.get(RSTD, g, 1);
    p = s.centred ? all.g / n : 0, q = all.gh / n;
    if (threadIdx.x % 32) return;
    s.put(DSCALE, g, all.dyh);
    s.put(DSHIFT, g, all.dy);
  } else {
    moments all = of_group<moments>(s, g);
    float var = s.given ? s.get(VAR, g, 0) : all.squares / n;
    mean = s.given ? s.get(MEAN, g, 0) : all.mean, rstd = 1 / sqrtf(var + s.eps), p = s.get(SHIFT, g, 0);
    if (threadIdx.x % 32) return;
    if (!s.given) {
      s.put(MEAN, g, mean);
      s.put(RSTD, g, rstd);
      s.put(NEW_MEAN, g, (1 - s.momentum) * s.get(RUNNING_MEAN, g, 0) + s.momentum * mean);
      s.put(NEW_VAR, g, (1 - s.momentum) * s.get(RUNNING_VAR, g, 0) + s.momentum * (s.n > 1 ? all.squares / (n - 1) : var));
    }
  }
  float *factor = s.factor + g * FACTORS;
  factor[0] = mean, factor[1] = rstd, factor[2] = s.get(SCALE, g, 1), factor[3] = p, factor[4] = q;
}

/* ---- apply ------------------------------------------------------------------------------------------------------- */

struct factors {
  float mean, rstd, scale, p, q;

  __device__ void read(const split &s, int64_t g)
  {
    const float *f = s.factor + g * FACTORS;
    mean = f[0], rstd = f[1], scale = f[2], p = f[3], q = f[4];
  }
  template <bool backward> __device__ float of(float x, float dy) const
  {
    float h = (x - mean) * rstd;
    return backward ? rstd * (dy * scale - p - h * q) : h * scale + p;
  }
};

template <bool backward> __global__ void __launch_bounds__(THREADS) apply_columns(const __grid_constant__ split s)
{
  int lane = threadIdx.x % LANES, y = threadIdx.x / LANES;
  int64_t g0 = (blockIdx.x * (int64_t)LANES + lane) * V, from = blockIdx.y * s.chunk, to = min(from + s.chunk, s.lines);
  int n = (int)max((int64_t)0, min((int64_t)V, s.groups - g0));
  factors f[V] = {};
#pragma unroll
  for (int i = 0; i < V; i++)
    if (i < n) f[i].read(s, g0 + i);
#pragma unroll 2
  for (int64_t r = from + y; r < to && n > 0; r += LINES) {
    float x[V], dy[V];
    s.load(x, X, r * s.line_step[X] + g0, n);
    if (backward) s.load(dy, DY, r * s.line_step[DY] + g0, n);
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = f[i].of<backward>(x[i], backward ? dy[i] : 0);
    vector_store(x, s.p[Y], s.dtype[Y], r * s.line_step[Y] + g0, 1, n);
  }
}

template <bool backward> __global__ void __launch_bounds__(THREADS) apply_planes(const __grid_constant__ split s)
{
  int64_t g = blockIdx.x, vectors = s.vectors(), from = blockIdx.y * s.chunk, to = min(from + s.chunk, s.lines * vectors);
  factors f;
  f.read(s, g);
#pragma unroll 2
  for (int64_t j = from + threadIdx.x; j < to; j += THREADS) {
    int64_t line = j / vectors, at = (j - line * vectors) * V;
    int n = (int)min((int64_t)V, s.line - at);
    float x[V], dy[V];
    s.load(x, X, g * s.step[X] + line * s.line_step[X] + at, n);
    if (backward) s.load(dy, DY, g * s.step[DY] + line * s.line_step[DY] + at, n);
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = f.of<backward>(x[i], backward ? dy[i] : 0);
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
        return qn_refuse(out, "a parameter must have one element for each group", t == SCALE ? "scale" : t == SHIFT ? "shift" : t == DSCALE ? "dscale" : "dshift",
                         "1 along the dims normalized over, x's dims along the others", "%lld", (long long)v->dim[d]);
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
  out->workspace = (uint64_t)qn_round_up((int64_t)sizeof(float4) * s.chunks * s.groups, 256) + (uint64_t)s.groups * FACTORS * sizeof(float);

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
  s.part = (float4 *)launch->workspace;
  s.factor = (float *)((char *)launch->workspace + qn_round_up((int64_t)sizeof(float4) * s.chunks * s.groups, 256));
  dim3 grid((unsigned)(s.columns ? qn_ceil_div(s.groups, LANES * V) : s.groups), (unsigned)s.chunks);
  if (s.given) s.chunks = 0;
  else if (s.backward) (s.columns ? measure_columns<sums, true> : measure_planes<sums, true>)<<<grid, THREADS, 0, stream>>>(s);
  else (s.columns ? measure_columns<moments, false> : measure_planes<moments, false>)<<<grid, THREADS, 0, stream>>>(s);
  combine<<<(unsigned)qn_ceil_div(s.groups, THREADS / 32), THREADS, 0, stream>>>(s);
  if (s.backward) (s.columns ? apply_columns<true> : apply_planes<true>)<<<grid, THREADS, 0, stream>>>(s);
  else (s.columns ? apply_columns<false> : apply_planes<false>)<<<grid, THREADS, 0, stream>>>(s);
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
