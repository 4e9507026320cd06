/* norm_split.cu -- normalization of few large groups, forward and backward: a group is cut into chunks, so that the whole device works on
 * it. split: groups with one parameter each (batch norm, and long rows without parameters of their own), in as many chunks as fill the
 * device. chunks: parameters vary within a group, and a group's chunks depend on its own size alone, so results are batch invariant.
 * inference (batch_norm_inference): the last launch alone.
 *
 *   1. measure   each chunk's mean and sum of squared distances from it; for a gradient sum dy and sum dy h
 *   2. combine   the chunks of a group in a fixed order (Chan, Golub, LeVeque); statistics, running ones, dscale and dshift
 *   3. apply     y = h scale + shift, or dx = rstd (dy scale - mean g - h mean(g h)), with h = (x - mean) rstd, g = dy scale; in
 *                reverse order, to hit what is still in L2. Pointwise ops behind y are fused (norm_follow.cuh). (rstd scale is not folded
 *                into one factor: subnormal scales would lose digits.)
 *
 * columns: channels last; a group is a channel, or (chunks) a run of neighbouring channels in all lines of an image, whose columns are
 * measured each and joined by combine. planes: a group is contiguous runs of elements (channels first).
 * Refused: outer dims that do not merge (chunks: more than images and groups), other strides; gradients of planes whose parameters vary. */
#include <type_traits>
#include "norm_layout.cuh"
#include "norm_follow.cuh"
#include "norm_moments.cuh"
#include "norm_parameters.cuh"

enum { V = 8, THREADS = 256, WARPS = THREADS / 32, RESIDENT = 3, MAX_CHUNKS = 2000 };
enum { F_MEAN, F_RSTD, F_SCALE, F_P, F_Q, FACTORS };      /* factors of a group for apply; F_Q: gradients only */

struct split {
  void    *p[TENSORS];
  uint32_t dtype[TENSORS];
  int64_t  step[TENSORS], image_step[TENSORS], run_step[PARAMETERS_END];  /* from group to group; image to image; column to column */
  cuda_divisor by_image, by_run;          /* groups (columns) of an image; columns of a group */
  int64_t  groups, n;                     /* groups (columns) of all images; elements of a group */
  int64_t  lines, line;                   /* line: elements; 1 for columns */
  int64_t  line_step[PARAMETERS_END];     /* between lines */
  int64_t  chunk, pieces;                 /* in lines (columns) or vectors (planes) */
  int64_t  share;                         /* part of a chunk for one block of apply */
  uint32_t side, across, chunks;          /* blocks that cover all groups; columns: those of an image; chunks of a group */
  int32_t  lanes;                         /* columns: log2 of the threads along a line, at most 5 */
  float    eps, momentum;
  bool     columns, centred, backward;
  bool     plain;                         /* apply by columns: parameters are contiguous aligned f32 */
  norm_tail tail;
  float4  *part;                          /* [chunks, groups] */
  float2  *sums;                          /* columns of runs: sums of dy and dy h [groups]; NULL: not wanted */
  float   *factor;                        /* [FACTORS, groups]; NULL: apply computes them from the parameters */

  /* The offset of a group (or column) in tensor t. */
  __device__ int64_t place(int t, int64_t g) const
  {
    uint32_t column, rest;
    const uint32_t image = cuda_quotient((uint32_t)g, by_image, &column), group = cuda_quotient(column, by_run, &rest);
    return image * image_step[t] + group * step[t] + (t < PARAMETERS_END ? rest * run_step[t] : 0);
  }
  __device__ float get(int t, int64_t g, float absent) const
  {
    return p[t] ? element_load<float>(p[t], place(t, g), dtype3(dtype[t])) : absent;
  }
  __device__ void put(int t, int64_t g, float v) const { if (p[t]) element_store(p[t], place(t, g), dtype3(dtype[t]), v); }
  __device__ void keep(int64_t g, float mean, float rstd, float scale, float p, float q) const
  {
    float *f = factor + g;
    f[0] = mean, f[groups] = rstd, f[2 * groups] = scale, f[3 * groups] = p, f[4 * groups] = q;
  }
  __host__ __device__ int64_t vectors() const { return (line + V - 1) / V; }            /* vectors of a line of a plane */
};

/* ---- partial results of a chunk ------------------------------------------------------------------------------------------ */

struct sums {                             /* sum dy and sum dy h */
  float dy, dyh;

  __device__ void join(const sums &b) { dy += b.dy, dyh += b.dyh; }
  __device__ float4 pack() const { return make_float4(dy, dyh, 0, 0); }
  __device__ static sums unpack(float4 v) { return { v.x, v.y }; }
};

/* Adds a batch of B elements for each of N groups. Distances are taken from the mean so far, at first from an element: with s1 =
 * sum d, s2 = sum d^2 over the batch and n elements afterwards, the mean moves by s1 / n and squares by s2 - s1^2 / n. Little
 * cancels, because s1^2 <= B s2. v(b): loads element b of each group into an array. */
template <int B, int N, class F>
__device__ __forceinline__ void moments_add(float (&mean)[N], float (&squares)[N], float count, bool centred, F v)
{
  float from[N], s1[N] = {}, s2[N] = {}, w[N], share = 1 / (count + B);
  if (centred && count == 0) v(0, mean);
#pragma unroll
  for (int i = 0; i < N; i++) from[i] = fabsf(mean[i]) < INFINITY ? mean[i] : 0;
#pragma unroll
  for (int b = 0; b < B; b++) {
    v(b, w);
#pragma unroll
    for (int i = 0; i < N; i++) {
      float d = w[i] - from[i];
      s1[i] += d;
      s2[i] += d * d;
    }
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    squares[i] += centred ? s2[i] - s1[i] * s1[i] * share : s2[i];
    if (centred) mean[i] += s1[i] * share;
  }
}

/* ---- a thread's packets ------------------------------------------------------------------------------------------------------- */

/* Kinds of work: y and relu, or a measurement; dx, or its sums; y and any steps, in a kernel of its own that has the registers for them; y
 * and relu by given statistics; y and any steps with parameters that vary within a group (planes). */
enum { FORWARD, BACKWARD, FOLLOWED, GIVEN, VARIED };
template <int what> constexpr bool has_steps = what == FOLLOWED || what == VARIED;
template <int whole> constexpr int batch_of = whole == QN_F32 || !whole ? 2 : 4;         /* packets of a batch */

/* offsets of a packet; n elements of it exist; planes: its line, its first element's place there */
struct place { int64_t x, y, dy; int n; uint32_t line; int64_t along; };

/* Vector j of a group of planes, which begins at `group`. */
__device__ __forceinline__ place place_of(const split &s, const place &group, uint32_t j, uint32_t vectors)
{
  const uint32_t line = j / vectors;
  const int64_t at = (int64_t)(j - line * vectors) * V;
  return { group.x + line * s.line_step[X] + at, group.y + line * s.line_step[Y] + at, group.dy + line * s.line_step[DY] + at,
           (int)min((int64_t)V, s.line - at), line, at };
}
__device__ __forceinline__ place group_of(const split &s, int64_t g) { return { s.place(X, g), s.place(Y, g), s.place(DY, g) }; }

/* A packet's elements of parameter t, which varies within groups; base: the group's place. */
__device__ __forceinline__ eight varied(const split &s, int t, int64_t base, const place &w, float absent)
{
  const int64_t at = base + w.line * s.line_step[t];
  if (s.p[t] && s.run_step[t] == 1) return eight_load(s.p[t], s.dtype[t], at + w.along, w.n);
  const float one = s.p[t] ? element_load<float>(s.p[t], at, dtype3(s.dtype[t])) : absent;
  return { { one, one, one, one, one, one, one, one } };
}

/* B packets; at(b): where packet b is. */
template <int what, int whole, int B> struct batch {
  static constexpr bool backward = what == BACKWARD, two = what == BACKWARD || has_steps<what>;
  packet<whole> x[B], second[two ? B : 1];

  /* once: it is not read again, so that a streaming load suffices */
  template <bool once> static __device__ __forceinline__ void load_one(packet<whole> &to, const void *p, uint32_t dtype, int64_t at, int n)
  {
    if constexpr (whole && once) to.load_once(p, at, n);
    else if constexpr (whole || once) to.load(p, dtype3(dtype), at, n, 0);
    else eight_load(p, dtype3(dtype), at, n).to(to.held);
  }
  template <bool once, class At> __device__ __forceinline__ void load(const split &s, const At &at)
  {
#pragma unroll
    for (int b = 0; b < B; b++) {
      const place w = at(b);
      load_one<once>(x[b], s.p[X], s.dtype[X], w.x, w.n);
      if constexpr (backward) load_one<once>(second[b], s.p[DY], s.dtype[DY], w.dy, w.n);
      if constexpr (has_steps<what>) if (s.tail.second) second[b].load(s.tail.second, dtype3(s.dtype[Y]), w.y, w.n, 0);
    }
  }
  template <class At, class F> __device__ __forceinline__ void finish(const split &s, const At &at, const F &f) const
  {
#pragma unroll
    for (int b = 0; b < B; b++) {
      const place w = at(b);
      if (w.n <= 0) continue;
      float v[V], u[V] = {};
      x[b].open(v);
      if constexpr (backward) second[b].open(u);
      if constexpr (what == VARIED) {
        const eight scale = varied(s, SCALE, f.scale_at, w, 1), shift = varied(s, SHIFT, f.shift_at, w, 0);
#pragma unroll
        for (int i = 0; i < V; i++) v[i] = f.template of<what>(i, v[i], 0) * scale.v[i] + shift.v[i];
      } else {
#pragma unroll
        for (int i = 0; i < V; i++) v[i] = f.template of<what>(i, v[i], u[i]);
      }
      if constexpr (!backward) s.tail.follow<has_steps<what>>(v, second[two ? b : 0], w.y, w.n);
      if constexpr (whole) vector_store_once<whole>(v, s.p[Y], w.y);         /* streaming store: x should stay in L2 */
      else vector_store(v, s.p[Y], dtype3(s.dtype[Y]), w.y, 1, w.n);
    }
  }
};

/* ---- measure, columns: a thread has V groups of every apart-th line --------------------------------------------------------- */

/* Per group of a thread: its moments, or sum dy and sum dy h. */
template <bool backward> struct gathered {
  float a[V], b[V];
  float mean[backward ? V : 1], rstd[backward ? V : 1];

  template <int what, int whole, int B> __device__ __forceinline__ void add(const split &s, const batch<what, whole, B> &l, int before)
  {
    if constexpr (!backward) {
      moments_add<B>(a, b, (float)before, s.centred, [&](int k, float (&v)[V]) { l.x[k].open(v); });
    } else {
#pragma unroll
      for (int k = 0; k < B; k++) {
        float v[V], u[V];
        l.x[k].open(v);
        l.second[k].open(u);
#pragma unroll
        for (int i = 0; i < V; i++) a[i] += u[i], b[i] += u[i] * ((v[i] - mean[i]) * rstd[i]);
      }
    }
  }
};

template <bool backward, int whole>
__global__ void __launch_bounds__(THREADS, whole ? RESIDENT : 1) measure_columns(const __grid_constant__ split s)
{
  typedef typename std::conditional<backward, sums, moments>::type S;
  constexpr int B = backward ? batch_of<whole> / 2 : batch_of<whole>;
  __shared__ float4 seen[WARPS][32 * V];
  constexpr int what = backward ? BACKWARD : FORWARD;
  const int lane = threadIdx.x & ((1 << s.lanes) - 1), row = threadIdx.x >> s.lanes, apart = THREADS >> s.lanes;
  const uint32_t image = blockIdx.x / s.across;
  const int64_t column = (int64_t)(blockIdx.x - image * s.across) << s.lanes, g0 = (column | lane) * V, columns = s.by_image.by,
                first_of = image * columns, from = blockIdx.y * s.chunk + row, end = min((blockIdx.y + 1) * s.chunk, s.lines);
  const int64_t x = image * s.image_step[X] + g0, dy = image * s.image_step[DY] + g0;
  const int n = (int)max((int64_t)0, min((int64_t)V, columns - g0)),
            count = n > 0 && from < end ? (int)((end - from + apart - 1) / apart) : 0;        /* lines of the thread */
  const auto load = [&](auto &to, int first) {
    to.template load<false>(s, [&](int b) {
      const int64_t line = from + (int64_t)(first + b) * apart;
      return place{ line * s.line_step[X] + x, 0, line * s.line_step[DY] + dy, n };
    });
  };
  gathered<backward> all = {};
  if constexpr (backward) {
#pragma unroll
    for (int i = 0; i < V; i++) {
      all.mean[i] = s.centred && i < n ? s.get(MEAN, first_of + g0 + i, 0) : 0;
      all.rstd[i] = i < n ? s.get(RSTD, first_of + g0 + i, 1) : 1;
    }
  }
  int k = 0;
  batch<what, whole, B> next;
  if (B <= count) load(next, 0);
#pragma unroll 1
  for (; k + B <= count; k += B) {        /* the next batch's loads are in flight */
    const batch<what, whole, B> now = next;
    if (k + 2 * B <= count) load(next, k + B);
    all.add(s, now, k);
  }
#pragma unroll 1
  for (; k < count; k++) {
    batch<what, whole, 1> one;
    load(one, k);
    all.add(s, one, k);
  }
#pragma unroll
  for (int i = 0; i < V; i++) {
    S one = S::unpack(make_float4(all.a[i], all.b[i], (float)count, 0));
    warp_join(one, 1 << s.lanes);
    if (threadIdx.x % 32 < 1 << s.lanes) seen[threadIdx.x / 32][threadIdx.x % 32 * V + i] = one.pack();
  }
  __syncthreads();
  const int64_t g = column * V + threadIdx.x;               /* one column a thread */
  if (threadIdx.x >= V << s.lanes || g >= columns) return;
  S total = S::unpack(seen[0][threadIdx.x]);
  for (int v = 1; v < WARPS; v++) total.join(S::unpack(seen[v][threadIdx.x]));
  s.part[blockIdx.y * s.groups + first_of + g] = total.pack();
}

/* ---- measure, planes: a block has a chunk of one group ---------------------------------------------------------------------- */

template <int B, bool backward, int whole>
__device__ __forceinline__ void take_vectors(const split &s, const place &g, uint32_t j, uint32_t vectors, float &count, float &a, float &b,
                                             float mean, float rstd)
{
  batch<backward ? BACKWARD : FORWARD, whole, B> l;
  int n[B];
  l.template load<false>(s, [&](int k) {
    const place w = place_of(s, g, j + k * THREADS, vectors);
    n[k] = w.n;
    return w;
  });
  if constexpr (backward) {
#pragma unroll
    for (int k = 0; k < B; k++) {
      float v[V], u[V];
      l.x[k].open(v);
      l.second[k].open(u);
#pragma unroll
      for (int i = 0; i < V; i++) a += u[i], b += whole || i < n[k] ? u[i] * ((v[i] - mean) * rstd) : 0;
    }
  } else {                                /* as moments_add, for one group */
    float v[V], s1 = 0, s2 = 0, more = 0;
    if (s.centred && count == 0) l.x[0].open(v), a = v[0];
    float from = fabsf(a) < INFINITY ? a : 0;
#pragma unroll
    for (int k = 0; k < B; k++) {
      l.x[k].open(v);
      more += (float)n[k];
#pragma unroll
      for (int i = 0; i < V; i++) {
        float d = whole || i < n[k] ? v[i] - from : 0;
        s1 += d;
        s2 += d * d;
      }
    }
    count += more;
    b += s.centred ? s2 - s1 * s1 / count : s2;
    if (s.centred) a += s1 / count;
  }
}

template <bool backward, int whole>
__global__ void __launch_bounds__(THREADS, whole ? RESIDENT + 1 : 1) measure_planes(const __grid_constant__ split s)
{
  typedef typename std::conditional<backward, sums, moments>::type S;
  constexpr int B = backward ? batch_of<whole> : 2 * batch_of<whole>;
  __shared__ float4 of_warp[WARPS];
  int64_t g = blockIdx.x;
  const place group = group_of(s, g);
  uint32_t vectors = (uint32_t)s.vectors(), j = (uint32_t)(blockIdx.y * s.chunk) + threadIdx.x,
           to = (uint32_t)min((blockIdx.y + 1) * s.chunk, s.pieces);
  float mean = backward && s.centred ? s.get(MEAN, g, 0) : 0, rstd = backward ? s.get(RSTD, g, 1) : 1, a = 0, b = 0, count = 0;
#pragma unroll 1
  for (; j + (B - 1) * THREADS < to; j += B * THREADS) take_vectors<B, backward, whole>(s, group, j, vectors, count, a, b, mean, rstd);
#pragma unroll 1
  for (; j < to; j += THREADS) take_vectors<1, backward, whole>(s, group, j, vectors, count, a, b, mean, rstd);
  S all = S::unpack(make_float4(a, b, count, 0));
  warp_join(all, 1);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = all.pack();
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < WARPS; w++) all.join(S::unpack(of_warp[w]));
  s.part[blockIdx.y * s.groups + g] = all.pack();
}

/* ---- combine: a block has 2 neighbouring groups, 128 threads each ------------------------------------------------------------ */

enum { TOGETHER = 2, BY = THREADS / TOGETHER };

template <class S> __device__ __forceinline__ S of_group(const split &s, int64_t g)
{
  __shared__ float4 seen[WARPS * TOGETHER];
  const int lane = threadIdx.x % 32;
  S all = {};
#pragma unroll 4
  for (int i = threadIdx.x / TOGETHER; i < (int)s.chunks && g < s.groups; i += BY) all.join(S::unpack(s.part[i * s.groups + g]));
  warp_join(all, TOGETHER);
  if (lane < TOGETHER) seen[threadIdx.x / 32 * TOGETHER + lane] = all.pack();
  __syncthreads();
  all = S::unpack(lane < WARPS * TOGETHER ? seen[lane] : make_float4(0, 0, 0, 0));
  warp_join(all, TOGETHER);
  return all;                             /* valid in the first TOGETHER threads */
}

/* Writes the statistics of group g that are wanted; out of line, because its registers would spill. */
static __device__ __noinline__ void leave(const split &s, int64_t g, far_statistics of)
{
  norm_leave(s.momentum, of.mean, of.rstd, of.unbiased, [&](int t) { return s.get(t, g, 0); }, [&](int t, float v) { s.put(t, g, v); });
}

__global__ static void __launch_bounds__(THREADS) combine(const __grid_constant__ split s)
{
  int64_t g = blockIdx.x * (int64_t)TOGETHER + threadIdx.x % TOGETHER;
  float n = (float)s.n;
  if (s.backward) {
    sums all = of_group<sums>(s, g);
    if (threadIdx.x >= TOGETHER || g >= s.groups) return;
    float mean = s.centred ? s.get(MEAN, g, 0) : 0, scale = s.get(SCALE, g, 1), p = scale * all.dy / n, q = scale * all.dyh / n;
    if (!(fabsf(scale) < INFINITY)) p = q = NAN;            /* g would be infinite: the differences are NaN */
    s.put(DSCALE, g, all.dyh);
    s.put(DSHIFT, g, all.dy);
    s.keep(g, mean, s.get(RSTD, g, 1), scale, s.centred ? p : 0, q);
  } else {
    const moments all = of_group<moments>(s, g);
    if (threadIdx.x >= 32) return;
    far_statistics of = { all.mean, 1 / sqrtf(all.squares / n + s.eps), all.squares / (s.n > 1 ? n - 1 : 1) };
    for (int i = 0; i < TOGETHER; i++) {
      const int64_t h = blockIdx.x * (int64_t)TOGETHER + i;
      if (s.dtype[X] == QN_F16 || h >= s.groups || !far_out(__shfl_sync(~0u, all.squares, i))) continue;
      const far_statistics far = far_measure({ s.p[X], s.dtype[X], s.lines, s.line_step[X], s.line }, s.place(X, h), s.centred,
                                             s.eps, 32);
      if (threadIdx.x == i) of = far;
    }
    if (threadIdx.x >= TOGETHER || g >= s.groups) return;
    leave(s, g, of);
    s.keep(g, of.mean, of.rstd, s.get(SCALE, g, 1), s.get(SHIFT, g, 0), 0);
  }
}

/* Columns of runs: a block joins the columns of one group, a warp the chunks of one column after another. */
template <bool backward> __global__ void __launch_bounds__(THREADS) combine_runs(const __grid_constant__ split s)
{
  typedef typename std::conditional<backward, sums, moments>::type S;
  __shared__ float4 of_warp[WARPS];
  const int run = (int)s.by_run.by, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t first = (int64_t)blockIdx.x * run;
  const float n = (float)s.n;
  const auto scale_of = [&](int64_t g) {  /* with an infinite scale g - mean g is NaN, so dx is */
    const float scale = s.get(SCALE, g, 1);
    return !backward || fabsf(scale) < INFINITY ? scale : NAN;
  };
  S all = {};
  for (int64_t g = first + warp; g < first + run; g += WARPS) {
    S column = {};
#pragma unroll 4
    for (uint32_t i = lane; i < s.chunks; i += 32) column.join(S::unpack(s.part[i * s.groups + g]));
    if constexpr (backward) {
      warp_join(column, 1);
      if (lane) continue;
      if (s.sums) s.sums[g] = make_float2(column.dy, column.dyh);
      const float scale = scale_of(g);
      column = { column.dy * scale, column.dyh * scale };
    }
    all.join(column);
  }
  warp_join(all, 1);
  if (lane == 0) of_warp[warp] = all.pack();
  __syncthreads();
  all = S::unpack(of_warp[0]);
  for (int w = 1; w < WARPS; w++) all.join(S::unpack(of_warp[w]));
  if constexpr (backward) {
    const float mean = s.centred ? s.get(MEAN, first, 0) : 0, rstd = s.get(RSTD, first, 1);
    for (int64_t g = first + threadIdx.x; g < first + run; g += THREADS)
      s.keep(g, mean, rstd, scale_of(g), s.centred ? all.dy / n : 0, all.dyh / n);
  } else {
    far_statistics of = { all.mean, 1 / sqrtf(all.squares / n + s.eps), 0 };
    if (s.dtype[X] != QN_F16 && far_out(all.squares))
      of = far_measure({ s.p[X], s.dtype[X], s.lines, s.line_step[X], run }, s.place(X, first), s.centred, s.eps, 32);
    if (threadIdx.x == 0) leave(s, first, of);
    for (int64_t g = first + threadIdx.x; g < first + run; g += THREADS)
      s.keep(g, of.mean, of.rstd, scale_of(g), s.get(SHIFT, g, 0), 0);
  }
}

/* ---- apply -------------------------------------------------------------------------------------------------------------------------- */

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
/* plain: of f32, contiguous, aligned, all or none existing. */
template <int N, bool plain> __device__ __forceinline__ numbers<N> floats(const float *from, int n, float absent)
{
  numbers<N> f;
#pragma unroll
  for (int i = 0; i < N; i++) f.v[i] = !plain && i < n ? from[i] : absent;
  if constexpr (plain) if (from && n > 0) vector_load_whole<QN_F32>(f.v, from, 0);
  return f;
}

/* The factors of N neighbouring groups. */
template <int N> struct factors {
  numbers<N> mean, rstd, scale, p, q;
  float      unit;                        /* of far_normalized */
  int64_t    scale_at, shift_at;          /* VARIED: the group's place in scale and shift */

  __device__ __forceinline__ numbers<N> read(const split &s, int t, int64_t g, int n, float absent)
  {
    if (s.p[t] && N == 1) return any_numbers<N>(s.p[t], s.dtype[t], g * s.step[t], 0, n);
    if constexpr (N > 1) {
      if (s.p[t] && !s.plain) return odd_numbers(s.p[t], s.dtype[t], g * s.step[t], s.step[t], n);
      return floats<N, true>(s.p[t] ? (const float *)s.p[t] + g : nullptr, n, absent);
    }
    return floats<N, false>(nullptr, 0, absent);
  }
  template <int whole> __device__ __forceinline__ numbers<N> computed(const split &s, int k, int64_t g, int n)
  {
    return floats<N, whole != 0 && N == V>(s.factor + k * s.groups + g, n, 0);
  }
  template <int what, int whole> __device__ __forceinline__ void take(const split &s, int64_t g, int n)
  {
    if (what != GIVEN && (what != FOLLOWED || s.factor)) {
      mean = computed<whole>(s, F_MEAN, g, n), rstd = computed<whole>(s, F_RSTD, g, n), scale = computed<whole>(s, F_SCALE, g, n);
      p = computed<whole>(s, F_P, g, n);
      if constexpr (what == VARIED) scale_at = s.place(SCALE, g), shift_at = s.place(SHIFT, g);
      if constexpr (what == BACKWARD) q = computed<whole>(s, F_Q, g, n);
    } else {
      mean = read(s, MEAN, g, n, 0);
      rstd = read(s, VAR, g, n, 1);
      scale = read(s, SCALE, g, n, 1);
      p = read(s, SHIFT, g, n, 0);
#pragma unroll
      for (int i = 0; i < N; i++) rstd.v[i] = 1 / sqrtf(rstd.v[i] + s.eps);
    }
    if constexpr (what == FORWARD || has_steps<what>) unit = far_unit(mean.v, rstd.v);
  }
  template <int what> __device__ __forceinline__ float of(int element, float x, float dy) const
  {
    const int i = element % N;
    const bool far = what == FORWARD || has_steps<what>;
    const float h = far ? far_normalized(x, unit, mean.v[i], rstd.v[i]) : (x - mean.v[i]) * rstd.v[i];
    if (what == VARIED) return h;
    return what == BACKWARD ? rstd.v[i] * (dy * scale.v[i] - p.v[i] - h * q.v[i]) : h * scale.v[i] + p.v[i];
  }
};

template <int what, int whole, bool columns>
constexpr int apply_batch = what == BACKWARD ? columns ? batch_of<whole> / 2 : batch_of<whole> : whole ? batch_of<whole> : 4;
constexpr int resident(bool columns, int what, int whole)
{
  return !whole ? 1 : what == FOLLOWED || what == VARIED ? 2 : columns ? RESIDENT : RESIDENT + 1;
}

/* apply's blocks take parts of measure's chunks, in reverse order: the last measured first. */
template <int what> __device__ __forceinline__ void apply_range(const split &s, uint32_t block, int64_t *from, int64_t *to)
{
  if (what == GIVEN) {
    *from = block * (uint32_t)s.share, *to = min(*from + s.share, s.pieces);
    return;
  }
  const uint32_t part = block / s.chunks, chunk = s.chunks - 1 - (block - part * s.chunks);
  *to = min((chunk + 1) * s.chunk, s.pieces) - part * s.share;
  *from = max(chunk * s.chunk, *to - s.share);
}

/* Columns: a thread has V groups of every apart-th line of the block's. The factors are read while the first loads are in flight. */
template <int what, int whole>
__global__ void __launch_bounds__(THREADS, resident(true, what, whole)) apply_columns(const __grid_constant__ split s)
{
  constexpr int B = apply_batch<what, whole, true>;
  const int lane = threadIdx.x & ((1 << s.lanes) - 1), row = threadIdx.x >> s.lanes, apart = THREADS >> s.lanes;
  const uint32_t block = blockIdx.x / s.side;
  int64_t from, to;
  apply_range<what>(s, block, &from, &to);
  const uint32_t sideways = blockIdx.x - block * s.side, image = sideways / s.across;
  const int64_t g = ((int64_t)(sideways - image * s.across) << s.lanes | lane) * V;
  const int n = (int)min((int64_t)V, s.by_image.by - g), lines = (int)(to - from) - row;
  const auto start = [&](int t) { return image * s.image_step[t] + (from + row) * s.line_step[t] + g; };
  int64_t x = start(X), y = start(Y), dy = start(DY);
  const int64_t x_apart = apart * s.line_step[X], y_apart = apart * s.line_step[Y], dy_apart = apart * s.line_step[DY];
  int line = 0;
  const auto at = [&](int b) {
    return place{ x + b * x_apart, y + b * y_apart, dy + b * dy_apart, line + b * apart < lines ? n : 0 };
  };
  batch<what, whole, B> some;
  some.template load<true>(s, at);
  factors<V> f;
  f.template take<what, whole>(s, (int64_t)image * s.by_image.by + g, n);
#pragma unroll 1
  for (;;) {
    some.finish(s, at, f);
    line += B * apart, x += B * x_apart, y += B * y_apart, dy += B * dy_apart;
    if (line >= lines) break;
    some.template load<true>(s, at);
  }
}

/* Planes: a block has vectors of one group. */
template <int what, int whole>
__global__ void __launch_bounds__(THREADS, resident(false, what, whole)) apply_planes(const __grid_constant__ split s)
{
  constexpr int B = apply_batch<what, whole, false>;
  const uint32_t block = blockIdx.x / s.side, g = blockIdx.x - block * s.side, vectors = (uint32_t)s.vectors();
  int64_t begin, to;
  apply_range<what>(s, block, &begin, &to);
  uint32_t from = (uint32_t)begin;
  const place group = group_of(s, g);
  const auto at = [&](int b) {
    const uint32_t j = from + threadIdx.x + b * THREADS;
    place w = place_of(s, group, j, vectors);
    if (j >= to) w.n = 0;
    return w;
  };
  batch<what, whole, B> some;
  some.template load<true>(s, at);
  factors<1> f;
  f.template take<what, whole>(s, g, 1);
#pragma unroll 1
  for (;;) {
    some.finish(s, at, f);
    from += B * THREADS;
    if (from >= to) break;
    some.template load<true>(s, at);
  }
}

/* ---- prepare, run ------------------------------------------------------------------------------------------------------------------- */

typedef void (*kernel)(split);
struct state { split s; norm_follower after; int32_t number[TENSORS]; kernel measure, combine, apply; unsigned applied, combined; };

template <int whole> static kernel measure_kernel(bool columns, bool backward)
{
  return columns ? backward ? measure_columns<true, whole> : measure_columns<false, whole>
                 : backward ? measure_planes<true, whole> : measure_planes<false, whole>;
}
template <int what, int whole> static kernel apply_kernel(bool columns)
{
  if constexpr (what != VARIED) if (columns) return apply_columns<what, whole>;
  return apply_planes<what, whole>;
}
template <int what> static kernel apply_of_dtype(uint32_t dtype, bool columns)
{
  return norm_of_dtype(dtype, apply_kernel<what, QN_F32>, apply_kernel<what, QN_BF16>, apply_kernel<what, QN_F16>)(columns);
}
static void choose_kernels(state *st, bool whole, bool tailed, bool given, bool varied)
{
  const split &s = st->s;
  const uint32_t dtype = s.dtype[X];
  st->measure = whole ? norm_of_dtype(dtype, measure_kernel<QN_F32>, measure_kernel<QN_BF16>, measure_kernel<QN_F16>)(s.columns, s.backward)
                      : measure_kernel<0>(s.columns, s.backward);
  if (varied && !s.columns)
    st->apply = whole ? apply_of_dtype<VARIED>(dtype, false) : apply_kernel<VARIED, 0>(false);
  else if (!whole)
    st->apply = (given ? apply_kernel<GIVEN, 0> : s.backward ? apply_kernel<BACKWARD, 0> : apply_kernel<FORWARD, 0>)(s.columns);
  else if (given && !tailed) st->apply = apply_of_dtype<GIVEN>(dtype, s.columns);
  else if (s.backward) st->apply = apply_of_dtype<BACKWARD>(dtype, s.columns);
  else st->apply = tailed ? apply_of_dtype<FOLLOWED>(dtype, s.columns) : apply_of_dtype<FORWARD>(dtype, s.columns);
}

static const char *const variants[] = { "1", "2", "4", nullptr };      /* inference: batches a thread */

/* split, inference: the dims not normalized over lie as one; parameters have an element for each group. */
static const char *read_groups(const norm_problem &p, bool given, split *s)
{
  const qn_nest &in = p.in, &outer = p.outer;
  bool varies = false;
  for (int t = SCALE; t < TENSORS; t++)
    for (int d = 0; d < in.rank && t < PARAMETERS_END; d++) varies |= in.stride[t][d] != 0;
  for (int t = DSCALE; t < TENSORS && !given; t++)          /* what is written has an element for each group */
    for (int d = 0; d < outer.rank; d++) varies |= p.number[t] >= 0 && outer.stride[t][d] == 0;
  if (varies) return "a parameter has one element for each group";
  if (outer.rank > 1) return "the dims not normalized over must lie as one, in all tensors";
  s->columns = outer.rank == 1 && in.rank <= 1;
  bool planes = in.rank == 1 || in.rank == 2;
  for (int t = X; t <= DY; t++) {
    if (p.number[t] < 0) continue;
    s->columns &= outer.rank == 1 && outer.stride[t][0] == 1;
    planes &= in.rank > 0 && in.stride[t][in.rank - 1] == 1;
  }
  return s->columns || planes ? nullptr : "groups must lie side by side, or in contiguous runs";
}

/* chunks: the last outer dim numbers groups, one before it images. */
static const char *read_images(const norm_problem &p, split *s)
{
  const qn_nest &in = p.in, &outer = p.outer;
  const int last = in.rank - 1, g = outer.rank - 1;
  if (last < 0 || last > 1 || g > 1) return "groups of one or two dims that do not merge, numbered by one or two";
  const int64_t run = last == 1 ? in.dim[1] : 1;
  bool planes = true;
  s->columns = g >= 0;
  for (int t = X; t <= DY; t++) {
    if (p.number[t] < 0) continue;
    s->columns &= g >= 0 && outer.stride[t][g] == run && (last == 0 || in.stride[t][1] == 1) && (in.dim[0] == 1 || in.stride[t][0] != 1);
    planes &= in.stride[t][last] == 1;
  }
  if (!s->columns && (!planes || p.backward)) return "a group is a run in each of an image's lines, or (forward) contiguous runs";
  for (int t = SCALE; t < PARAMETERS_END; t++) {
    if (p.number[t] < 0) continue;
    if (s->columns && in.stride[t][0] != 0) return "columns: parameters do not vary from line to line";
    if (!s->columns && in.stride[t][last] != 0 && in.stride[t][last] != 1) return "planes: parameters are contiguous, or alike along a run";
    if (t >= DSCALE && ((last == 1 && in.stride[t][1] != 1) || outer.stride[t][g] != run || (g > 0 && outer.stride[t][0] != 0)))
      return "dscale and dshift have an element for each column, for all images";
  }
  return nullptr;
}

/* Chunks of a group; batches of work of one chunk. */
static void cut(split *s, const qn_device *device, bool own, bool tailed, int64_t apart)
{
  const int64_t batch = 4 * apart, blocks = (int64_t)device->units * (s->columns ? RESIDENT : 2 * (RESIDENT + 1));
  const int64_t least = own ? (s->columns ? 2 : 1) * batch : 4 * batch, side = own ? s->columns ? s->across : 1 : s->side;
  /* Chunks for one wave of blocks, or (planes, whose partial results are small) two; at least a few batches a thread. */
  s->chunk = qn_ceil_div(s->pieces, qn_min_i64(qn_ceil_div(s->pieces, least), qn_min_i64(MAX_CHUNKS, qn_max_i64(1, blocks / side))));
  if (s->columns) s->chunk = qn_round_up(s->chunk, batch);
  s->chunks = (uint32_t)qn_ceil_div(s->pieces, s->chunk);
  /* apply: blocks of one batch are fastest, unless their prologue is long */
  s->share = qn_min_i64(s->chunk, !tailed ? qn_round_up(qn_ceil_div(s->chunk, 32), batch)
                                          : qn_max_i64(4 * batch, qn_ceil_div(s->chunk, 16)));
}

template <bool own> static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  norm_problem p;
  state st = {};
  split &s = st.s;
  const bool given = r->op[0].op == QN_OP_BATCH_NORM_INFERENCE;
  const qn_status status = norm_open(r, 0, &p, out);
  if (status) return status;
  const qn_nest &in = p.in, &outer = p.outer;
  const char *rule = own ? read_images(p, &s) : read_groups(p, given, &s);
  if (rule) return qn_refuse(out, rule, "x", "", "%s", "another layout");
  memcpy(st.number, p.number, sizeof st.number);
  memcpy(s.dtype, p.dtype, sizeof s.dtype);
  const bool columns = s.columns, runs = own && columns, lined = columns || in.rank == 2;
  const int last = in.rank - 1, g = outer.rank - 1;
  const int64_t run = runs && last == 1 ? in.dim[1] : 1, images = own && g > 0 ? outer.dim[0] : 1, line = p.groups / images * run;
  if (line * images > INT32_MAX || p.length > INT32_MAX)
    return qn_refuse(out, "fewer than 2^31 groups, and elements of one", "x", "", "%lld", (long long)p.groups);
  s.groups = line * images, s.n = p.length;
  s.by_image = cuda_divide_by(line), s.by_run = cuda_divide_by(run);
  s.lines = columns ? s.n / run : in.rank == 2 ? in.dim[0] : 1;
  s.line = columns ? 1 : in.dim[last];
  s.plain = s.groups % V == 0;
  for (int t = 0; t < TENSORS; t++) {
    s.step[t] = g >= 0 ? outer.stride[t][g] : 0;
    s.image_step[t] = own && g > 0 ? outer.stride[t][0] : 0;
    if (t < PARAMETERS_END) {
      s.line_step[t] = lined && in.rank ? in.stride[t][0] : 0;
      s.run_step[t] = own && (last == 1 || !columns) ? in.stride[t][last] : 0;
    }
    if (t > DY && p.number[t] >= 0) s.plain &= s.dtype[t] == QN_F32 && s.step[t] == 1 && r->value[p.number[t]].align >= 16;
  }
  s.eps = p.eps, s.momentum = p.momentum, s.centred = p.centred, s.backward = p.backward;
  for (s.lanes = 5; s.lanes > 0 && (V << s.lanes) / 2 >= line;) s.lanes--;
  s.pieces = columns ? s.lines : s.lines * s.vectors();
  const int64_t across = columns ? qn_ceil_div(line, V << s.lanes) : line, side = across * images,
                apart = columns ? THREADS >> s.lanes : THREADS;
  const bool whole = (columns ? line : s.line) % V == 0 && norm_whole(r, &p, V, columns, lined);
  const bool tailed = norm_follower_read(&st.after, r, p.number[Y], whole && !s.backward, &s.tail, out);
  choose_kernels(&st, whole, tailed, given, own);
  st.combine = !runs ? combine : s.backward ? combine_runs<true> : combine_runs<false>;
  st.combined = (unsigned)(runs ? p.groups : qn_ceil_div(s.groups, TOGETHER));
  s.side = (uint32_t)side, s.across = (uint32_t)across, s.chunks = 1, s.chunk = s.pieces;
  if (given) {
    /* computing the factors of columns costs as many instructions as two batches: up to four batches a thread if enough blocks remain */
    s.share = (whole && p.dtype[X] == QN_F32 ? 2 : 4) * apart;
    int v = 0;                            /* 1 << v batches */
    if (r->variant) while (strcmp(r->variant, variants[v])) v++;
    else while (columns && v < 2 && (s.pieces / s.share >> v) * side > 16 * (int64_t)r->device->units) v++;
    s.share <<= v;
    out->variant = variants[v];
  } else {
    cut(&s, r->device, own, tailed, apart);
    if (own && !columns && s.chunks == 1) return qn_refuse(out, "planes of several chunks", "x", "", "%lld elements", (long long)p.length);
    out->workspace = (uint64_t)s.groups * (s.chunks * sizeof(float4) + sizeof(float2) + FACTORS * sizeof(float));
  }
  const int64_t parts = s.chunks * qn_ceil_div(s.chunk, s.share);
  if (parts > INT32_MAX / side) return qn_refuse(out, "fewer than 2^31 blocks", "x", "", "%lld", (long long)s.groups);
  st.applied = (unsigned)(side * parts);
  /* x (and dy) are read twice, the second time from L2 as far as they fit; a block of little work takes 1.5 us nevertheless. (inference
   * has no rival, and none: before a convolution that folds it in, a sum of estimates would decide.) */
  const double again = p.moved / (p.backward ? 1.5 : 2), hit = (double)r->device->cache * 0.5,
               bytes = p.moved + (again > hit ? again - hit * 0.5 : again * 0.5),
               blocks = ((double)side * s.chunks + st.applied) / (double)(r->device->units * 2 * (RESIDENT + 1));
  if (!given) out->estimate = 9000 + fmax(bytes / (whole ? 3800 : 1000), blocks * 1500);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = (const state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  split s = st->s;
  norm_pointers(s.p, st->number, launch);
  s.p[Y] = launch->ptr[st->after.chain.out];
  norm_follower_bind(&st->after, &s.tail, launch);
  if (!s.p[VAR]) {
    s.part = (float4 *)launch->workspace;
    s.sums = (float2 *)(s.part + (int64_t)s.chunks * s.groups);
    s.factor = (float *)(s.sums + s.groups);
    if (st->combine == combine || (!s.p[DSCALE] && !s.p[DSHIFT])) s.sums = nullptr;
    st->measure<<<dim3(s.side, s.chunks), THREADS, 0, stream>>>(s);
    st->combine<<<st->combined, THREADS, 0, stream>>>(s);
  }
  st->apply<<<st->applied, THREADS, 0, stream>>>(s);
  const qn_status status = cuda_check(cudaGetLastError(), "norm_split");
  if (status || !s.sums) return status;
  return item_sums_add({ s.sums, s.p[DSCALE], s.p[DSHIFT], { s.dtype[DSCALE], s.dtype[DSHIFT] }, s.groups / s.by_image.by, 1, 1,
                         (int32_t)s.by_image.by }, launch);
}

/* split's chunks depend on the number of groups, so its results are not batch invariant. */
#define ROW(name, op, own, traits) { name, op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | traits, \
                                     nullptr, nullptr, prepare<own>, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW("split", QN_OP_BATCH_NORM, false, 0), ROW("split", QN_OP_BATCH_NORM_BACKWARD, false, 0),
  ROW("split", QN_OP_LAYER_NORM, false, 0), ROW("split", QN_OP_LAYER_NORM_BACKWARD, false, 0),
  ROW("split", QN_OP_RMS_NORM, false, 0),   ROW("split", QN_OP_RMS_NORM_BACKWARD, false, 0),
  ROW("chunks", QN_OP_LAYER_NORM, true, QN_TRAIT_BATCH_INVARIANT), ROW("chunks", QN_OP_LAYER_NORM_BACKWARD, true, QN_TRAIT_BATCH_INVARIANT),
  ROW("chunks", QN_OP_RMS_NORM, true, QN_TRAIT_BATCH_INVARIANT),   ROW("chunks", QN_OP_RMS_NORM_BACKWARD, true, QN_TRAIT_BATCH_INVARIANT),
  { "inference", QN_OP_BATCH_NORM_INFERENCE, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC,
    variants, nullptr, prepare<false>, nullptr, run, cuda_release },
};
CUDA_ENGINES(norm_split) = { row, sizeof row / sizeof *row };
