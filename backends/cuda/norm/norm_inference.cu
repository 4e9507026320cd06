/* norm_inference.cu -- batch_norm_inference, f16, bf16 and f32: y = (x - mean) rstd scale + shift, rstd = 1 / sqrt(var + eps), in
 * one launch. A block computes the factors of its own groups while its loads of x are in flight. (rstd scale is not folded into
 * one factor: subnormal scales would lose digits.)
 *
 * columns: groups are contiguous (channels last); a thread has V channels of several rows.
 * planes: a group is contiguous runs of elements (channels first).
 * An added tensor of y's layout, relu, and other pointwise steps are fused (norm_follow.cuh).
 * Refused: f64, parameters that vary within a group, other strides. */
#include <cstring>
#include "cuda_backend.h"
#include "engines.h"
#include "norm_follow.cuh"
#include "norm_nests.h"
#include "kit/vector.cuh"

enum { V = 8, THREADS = 256 };
enum { X, Y, MEAN, VAR, SCALE, SHIFT, TENSORS };

struct inference {
  void    *p[TENSORS];
  uint32_t dtype[TENSORS];
  int64_t  step[TENSORS];                 /* from group to group */
  int64_t  line_step[2];                  /* between lines, of x and y */
  int64_t  groups, lines, line;           /* line: elements of a line; 1 for columns */
  uint32_t side;                          /* blocks that cover all groups: columns: 1 << lanes vectors each, planes: one group each */
  int32_t  lanes;                         /* columns: log2 of the threads along a line, at most 5 */
  int32_t  batches;                       /* batches of packets a thread */
  bool     plain;                         /* columns: parameters are contiguous aligned f32 */
  float    eps;
  norm_tail tail;

  __host__ __device__ int64_t vectors() const { return (line + V - 1) / V; }            /* vectors of a line of a plane */
};

template <int whole> constexpr int batch_of = whole == QN_F32 ? 2 : 4;                   /* packets whose loads are in flight together */

/* A parameter of N neighbouring groups, of which n exist. */
template <int N> struct numbers { float v[N]; };

template <int N> static __device__ numbers<N> any_numbers(const void *p, uint32_t dtype, int64_t at, int64_t step, int n)
{
  numbers<N> f;
#pragma unroll
  for (int i = 0; i < N; i++) f.v[i] = i < n ? element_load<float>(p, at + i * step, dtype3(dtype)) : 0;
  return f;
}
/* Out of line, so that the usual path keeps its loads together. */
static __device__ __noinline__ numbers<V> odd_numbers(const void *p, uint32_t dtype, int64_t at, int64_t step, int n)
{
  return any_numbers<V>(p, dtype, at, step, n);
}

template <int N> struct factors {
  numbers<N> mean, rstd, scale, shift;

  __device__ __forceinline__ numbers<N> read(const inference &s, int t, int64_t g, int n, float absent)
  {
    if (s.p[t] && N == 1) return any_numbers<N>(s.p[t], s.dtype[t], g * s.step[t], 0, n);
    if constexpr (N > 1) if (s.p[t] && !s.plain) return odd_numbers(s.p[t], s.dtype[t], g * s.step[t], s.step[t], n);
    numbers<N> f;
#pragma unroll
    for (int i = 0; i < N; i++) f.v[i] = absent;
    if constexpr (N > 1) if (s.p[t] && n > 0) vector_load_whole<QN_F32>(f.v, s.p[t], g);
    return f;
  }
  __device__ __forceinline__ factors(const inference &s, int64_t g, int n)
  {
    mean = read(s, MEAN, g, n, 0);
    rstd = read(s, VAR, g, n, 1);
    scale = read(s, SCALE, g, n, 1);
    shift = read(s, SHIFT, g, n, 0);
#pragma unroll
    for (int i = 0; i < N; i++) rstd.v[i] = 1 / sqrtf(rstd.v[i] + s.eps);
  }
  __device__ __forceinline__ float of(int i, float x) const { return (x - mean.v[i]) * rstd.v[i] * scale.v[i] + shift.v[i]; }
};

struct place { int64_t x, y; int n; };    /* offsets of a packet; n elements of it exist */

/* B packets of a thread; at(b): where packet b is. */
template <bool tailed, int whole> struct batch {
  enum { B = batch_of<whole> };
  packet<whole> x[B], second[tailed ? B : 1];

  template <class At> __device__ __forceinline__ void load(const inference &s, const At &at)
  {
#pragma unroll
    for (int b = 0; b < B; b++) {
      const place w = at(b);
      if constexpr (whole) x[b].load_once(s.p[X], w.x, w.n);
      else x[b].load(s.p[X], dtype3(s.dtype[X]), w.x, w.n, 0);
      if constexpr (tailed) if (s.tail.second) second[b].load(s.tail.second, 0, w.y, w.n, 0);
    }
  }
  template <class At, int N> __device__ __forceinline__ void finish(const inference &s, const At &at, const factors<N> &f) const
  {
#pragma unroll
    for (int b = 0; b < B; b++) {
      const place w = at(b);
      if (w.n <= 0) continue;
      float v[V];
      x[b].open(v);
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = f.of(i % N, v[i]);
      s.tail.follow<tailed>(v, second[tailed ? b : 0], w.y, w.n);
      if constexpr (whole) vector_store_once<whole>(v, s.p[Y], w.y);
      else vector_store(v, s.p[Y], dtype3(s.dtype[Y]), w.y, 1, w.n);
    }
  }
};

constexpr int resident(bool columns, bool tailed, int whole) { return !whole ? 1 : tailed ? 2 : columns ? 3 : 4; }

template <bool tailed, int whole>
__global__ void __launch_bounds__(THREADS, resident(true, tailed, whole)) by_columns(const __grid_constant__ inference s)
{
  constexpr int B = batch_of<whole>;
  const int lane = threadIdx.x & ((1 << s.lanes) - 1), row = threadIdx.x >> s.lanes, apart = THREADS >> s.lanes;
  const uint32_t part = blockIdx.x / s.side;
  const int64_t g = ((int64_t)(blockIdx.x - part * s.side) << s.lanes | lane) * V, from = (int64_t)part * s.batches * (B * apart) + row;
  const int n = (int)min((int64_t)V, s.groups - g), lines = (int)min((int64_t)s.batches * (B * apart), s.lines - from);
  int64_t x = from * s.line_step[X] + g, y = from * s.line_step[Y] + g;
  const int64_t x_apart = apart * s.line_step[X], y_apart = apart * s.line_step[Y];
  int line = 0;
  auto at = [&](int b) { return place{ x + b * x_apart, y + b * y_apart, line + b * apart < lines ? n : 0 }; };
  batch<tailed, whole> some;
  some.load(s, at);
  const factors<V> f(s, g, n);
#pragma unroll 1
  for (;;) {
    some.finish(s, at, f);
    line += B * apart, x += B * x_apart, y += B * y_apart;
    if (line >= lines) break;
    some.load(s, at);
  }
}

template <bool tailed, int whole>
__global__ void __launch_bounds__(THREADS, resident(false, tailed, whole)) by_planes(const __grid_constant__ inference s)
{
  constexpr int B = batch_of<whole>;
  const uint32_t groups = (uint32_t)s.groups, part = blockIdx.x / groups, g = blockIdx.x - part * groups, vectors = (uint32_t)s.vectors();
  uint32_t from = part * (uint32_t)s.batches * (B * THREADS) + threadIdx.x;
  const uint32_t end = from + (uint32_t)s.batches * (B * THREADS);
  auto at = [&](int b) {
    const uint32_t j = from + b * THREADS, line = j / vectors;
    const int64_t in = (int64_t)(j - line * vectors) * V;
    return place{ g * s.step[X] + line * s.line_step[X] + in, g * s.step[Y] + line * s.line_step[Y] + in,
                  line < s.lines ? (int)min((int64_t)V, s.line - in) : 0 };
  };
  batch<tailed, whole> some;
  some.load(s, at);
  const factors<1> f(s, g, 1);
#pragma unroll 1
  for (;;) {
    some.finish(s, at, f);
    from += B * THREADS;
    if (from == end) break;
    some.load(s, at);
  }
}

/* ---- prepare, run --------------------------------------------------------------------------------------------------- */

typedef void (*kernel)(inference);
struct state { inference s; norm_follower after; kernel by; uint32_t blocks; int32_t number[TENSORS]; };

template <bool tailed, int whole> static kernel kernel_of(bool columns)
{
  return columns ? by_columns<tailed, whole> : by_planes<tailed, whole>;
}
template <bool tailed> static kernel kernel_for(uint32_t dtype, bool columns)
{
  return dtype == QN_F32  ? kernel_of<tailed, QN_F32>(columns)
       : dtype == QN_BF16 ? kernel_of<tailed, QN_BF16>(columns)
                          : kernel_of<tailed, QN_F16>(columns);
}

static const char *const variants[] = { "1", "2", "4", nullptr };      /* batches a thread */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const uint32_t role[TENSORS] = {
    QN_ROLE_BATCH_NORM_INFERENCE_X,   QN_ROLE_BATCH_NORM_INFERENCE_Y,     QN_ROLE_BATCH_NORM_INFERENCE_MEAN,
    QN_ROLE_BATCH_NORM_INFERENCE_VAR, QN_ROLE_BATCH_NORM_INFERENCE_SCALE, QN_ROLE_BATCH_NORM_INFERENCE_SHIFT
  };
  state st = {};
  inference &s = st.s;
  for (int t = 0; t < TENSORS; t++) {
    st.number[t] = qn_role(&r->op[0], role[t]);
    if (st.number[t] >= 0) s.dtype[t] = r->value[st.number[t]].dtype;
  }
  const qn_value *x = &r->value[st.number[X]], *y = &r->value[st.number[Y]];
  if (x->dtype == QN_F64) return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", "f64");
  static const char *const name[TENSORS] = { "x", "y", "mean", "var", "scale", "shift" };
  qn_status status = cuda_norm_by_group(r, st.number, name, SCALE, TENSORS, false, out);
  if (status) return status;
  const cuda_norm_nests nest = cuda_norm_nests_of(r, st.number, 2, TENSORS);
  const qn_nest &in = nest.walked, &of = nest.outer;
  if (of.rank > 1)
    return qn_refuse(out, "the dims not normalized over must lie as one, in all tensors", "x", "1 that does not merge", "%d", of.rank);
  bool columns = of.rank == 1 && in.rank <= 1, planes = in.rank == 1 || in.rank == 2;
  for (int t = X; t <= Y; t++) {
    columns &= of.rank == 1 && of.stride[t][0] == 1;
    planes &= in.rank > 0 && in.stride[t][in.rank - 1] == 1;
    s.line_step[t] = in.rank && (columns || in.rank == 2) ? in.stride[t][0] : 0;
  }
  if (!columns && !planes)
    return qn_refuse(out, "groups must lie side by side, or in contiguous runs", "x", "channels first or channels last", "%s",
                     "other strides");
  s.plain = nest.groups % V == 0;
  for (int t = 0; t < TENSORS; t++) {
    s.step[t] = of.rank ? of.stride[t][0] : 0;
    if (t >= MEAN && st.number[t] >= 0) s.plain &= s.dtype[t] == QN_F32 && s.step[t] == 1 && r->value[st.number[t]].align >= 16;
  }
  s.groups = nest.groups;
  s.lines = columns ? nest.length : in.rank == 2 ? in.dim[0] : 1;
  s.line = columns ? 1 : in.dim[in.rank - 1];
  s.eps = (float)((const qn_norm *)r->op[0].attr)->eps;
  s.lanes = 5;
  while (s.lanes > 0 && (V << s.lanes) / 2 >= s.groups) s.lanes--;

  bool whole = (columns ? s.groups : s.line) % V == 0 && y->dtype == x->dtype && x->align >= 16 && y->align >= 16;
  for (int t = X; t <= Y; t++) whole &= s.line_step[t] % V == 0 && (columns || s.step[t] % V == 0);
  const bool tailed = norm_follower_read(&st.after, r, st.number[Y], whole, &s.tail, out);
  st.by = !whole ? kernel_of<false, 0>(columns) : tailed ? kernel_for<true>(x->dtype, columns) : kernel_for<false>(x->dtype, columns);

  /* computing the factors of columns costs as many instructions as two batches: up to four batches a thread if enough blocks
   * remain */
  const int64_t side = columns ? qn_ceil_div(s.groups, V << s.lanes) : s.groups, pieces = columns ? s.lines : s.lines * s.vectors();
  int64_t share = (whole && x->dtype == QN_F32 ? batch_of<QN_F32> : batch_of<0>) * (columns ? THREADS >> s.lanes : THREADS);
  int v = 0;                              /* 1 << v batches */
  if (r->variant) while (strcmp(r->variant, variants[v])) v++;
  else while (columns && v < 2 && (pieces / share >> v) * side > 16 * (int64_t)r->device->units) v++;
  s.batches = 1 << v;
  share <<= v;
  const int64_t parts = qn_ceil_div(pieces, share);
  if (pieces > INT32_MAX || parts > INT32_MAX / side)
    return qn_refuse(out, "fewer than 2^31 groups and lines", "x", "", "%lld", (long long)s.groups);
  s.side = (uint32_t)side;
  st.blocks = (uint32_t)(side * parts);
  out->variant = variants[v];
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = (const state *)p->state;
  inference s = st->s;
  for (int t = 0; t < TENSORS; t++) s.p[t] = st->number[t] < 0 ? nullptr : launch->ptr[st->number[t]];
  s.p[Y] = launch->ptr[st->after.chain.out];
  norm_follower_bind(&st->after, &s.tail, launch);
  st->by<<<st->blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(s);
  return cuda_check(cudaGetLastError(), "norm_inference");
}

static const qn_engine row[] = {
  { "inference", QN_OP_BATCH_NORM_INFERENCE, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC,
    variants, nullptr, prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(norm_inference) = { row, sizeof row / sizeof *row };
