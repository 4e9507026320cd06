/* norm_split.cu -- normalization of few large groups with one parameter each (batch norm, and long rows without parameters of
 * their own), forward and backward: a group is cut into chunks, so that the whole device works on it.
 *
 *   1. measure   each chunk's mean and sum of squared distances from it; for a gradient sum dy and sum dy h
 *   2. combine   the chunks of a group in a fixed order (Chan, Golub, LeVeque); statistics, running ones, dscale and dshift
 *   3. apply     y = h scale + shift, or dx = rstd (dy scale - mean g - h mean(g h)), with h = (x - mean) rstd, g = dy scale; in
 *                reverse order, to hit what is still in L2. Pointwise ops behind y are fused (norm_follow.cuh)
 *
 * columns: groups are contiguous (channels last). planes: a group is contiguous runs of elements (channels first).
 * Refused: f64, outer dims that do not merge, other strides. */
#include <type_traits>
#include "cuda_backend.h"
#include "kit/eight.cuh"
#include "engines.h"
#include "norm_far.cuh"
#include "norm_follow.cuh"
#include "norm_moments.cuh"
#include "norm_nests.h"

enum { V = 8, THREADS = 256, WARPS = THREADS / 32, RESIDENT = 3, MAX_CHUNKS = 2000 };
/* From SCALE on: one element for each group. y is dx for a gradient. */
enum { X, Y, DY, SCALE, SHIFT, MEAN, RSTD, RUNNING_MEAN, RUNNING_VAR, NEW_MEAN, NEW_VAR, DSCALE, DSHIFT, TENSORS };

enum { F_MEAN, F_RSTD, F_SCALE, F_P, F_Q, FACTORS };      /* factors of a group for apply; F_Q: gradients only */

struct split {
  void    *p[TENSORS];
  uint32_t dtype[TENSORS];
  int64_t  step[TENSORS];                 /* from group to group */
  int64_t  groups, n;                     /* n: elements of a group = lines * line */
  int64_t  lines, line;                   /* line: elements; 1 for columns */
  int64_t  line_step[3];                  /* between lines, of x, y, dy */
  int64_t  chunk, pieces;                 /* in lines (columns) or vectors (planes) */
  int64_t  share;                         /* part of a chunk for one block of apply */
  int32_t  chunks, lanes;                 /* lanes: columns: threads along a line; a power of two up to 32 */
  float    eps, momentum;
  bool     columns, centred, backward;
  norm_tail tail;
  float4  *part;                          /* [chunks, groups] */
  float   *factor;                        /* [FACTORS, groups] */

  __device__ float get(int t, int64_t g, float absent) const
  {
    return p[t] ? element_load<float>(p[t], g * step[t], dtype3(dtype[t])) : absent;
  }
  __device__ void put(int t, int64_t g, float v) const { if (p[t]) element_store(p[t], g * step[t], dtype3(dtype[t]), v); }
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

/* ---- measure, columns: a thread has V groups of every step-th line ---------------------------------------------------------- */

template <int whole> constexpr int batch_of = whole == QN_BF16 || whole == QN_F16 ? 4 : 2;        /* packets of a batch */

struct place {                            /* of a thread among columns */
  int64_t g0, from;                       /* first group, first line */
  int     n, step, count;                 /* groups; distance of its lines, their number */

  __device__ place(const split &s, int64_t begin, int64_t end)
  {
    int lane = threadIdx.x % s.lanes, y = threadIdx.x / s.lanes;
    g0 = (blockIdx.x * (int64_t)s.lanes + lane) * V;
    from = begin + y;
    n = (int)max((int64_t)0, min((int64_t)V, s.groups - g0));
    step = THREADS / s.lanes;
    count = n > 0 && from < end ? (int)((end - from + step - 1) / step) : 0;
  }
};

template <int whole> __device__ __forceinline__ void load(packet<whole> &x, const split &s, int t, int64_t at, int n)
{
  if constexpr (whole) x.load(s.p[t], whole, at, n, 0);
  else eight_load(s.p[t], dtype3(s.dtype[t]), at, n).to(x.held);
}
template <int whole> __device__ __forceinline__ void store(const float (&v)[V], const split &s, int64_t at, int n)
{
  if constexpr (whole) vector_store_once<whole>(v, s.p[Y], at);       /* streaming store: x should stay in L2 */
  else eight_store(eight_of(v), s.p[Y], dtype3(s.dtype[Y]), at, n);
}

/* B lines of a thread, raw. */
template <int B, bool backward, int whole> struct lines {
  packet<whole> x[B], dy[backward ? B : 1];

  __device__ __forceinline__ void load(const split &s, const place &w, int first)
  {
#pragma unroll
    for (int b = 0; b < B; b++) {
      int64_t line = w.from + (int64_t)(first + b) * w.step;
      ::load(x[b], s, X, line * s.line_step[X] + w.g0, w.n);
      if constexpr (backward) ::load(dy[b], s, DY, line * s.line_step[DY] + w.g0, w.n);
    }
  }
};

/* Per group of a thread: its moments, or sum dy and sum dy h. */
template <bool backward> struct gathered {
  float a[V], b[V];
  float mean[backward ? V : 1], rstd[backward ? V : 1];

  template <int B, int whole> __device__ __forceinline__ void add(const split &s, const lines<B, backward, whole> &l, int before)
  {
    if constexpr (!backward) {
      moments_add<B>(a, b, (float)before, s.centred, [&](int k, float (&v)[V]) { l.x[k].open(v); });
    } else {
#pragma unroll
      for (int k = 0; k < B; k++) {
        float v[V], u[V];
        l.x[k].open(v);
        l.dy[k].open(u);
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
  place w(s, blockIdx.y * s.chunk, min((blockIdx.y + 1) * s.chunk, s.lines));
  gathered<backward> all = {};
  if constexpr (backward) {
#pragma unroll
    for (int i = 0; i < V; i++) {
      all.mean[i] = s.centred && i < w.n ? s.get(MEAN, w.g0 + i, 0) : 0;
      all.rstd[i] = i < w.n ? s.get(RSTD, w.g0 + i, 1) : 1;
    }
  }
  int k = 0;
  lines<B, backward, whole> next;
  if (B <= w.count) next.load(s, w, 0);
#pragma unroll 1
  for (; k + B <= w.count; k += B) {      /* the next batch's loads are in flight */
    lines<B, backward, whole> now = next;
    if (k + 2 * B <= w.count) next.load(s, w, k + B);
    all.add(s, now, k);
  }
#pragma unroll 1
  for (; k < w.count; k++) {
    lines<1, backward, whole> one;
    one.load(s, w, k);
    all.add(s, one, k);
  }
#pragma unroll
  for (int i = 0; i < V; i++) {
    S one = S::unpack(make_float4(all.a[i], all.b[i], (float)w.count, 0));
    warp_join(one, s.lanes);
    if (threadIdx.x % 32 < s.lanes) seen[threadIdx.x / 32][threadIdx.x % 32 * V + i] = one.pack();
  }
  __syncthreads();
  int64_t g = blockIdx.x * (int64_t)(s.lanes * V) + threadIdx.x;      /* one column a thread */
  if (threadIdx.x >= s.lanes * V || g >= s.groups) return;
  S total = S::unpack(seen[0][threadIdx.x]);
  for (int v = 1; v < WARPS; v++) total.join(S::unpack(seen[v][threadIdx.x]));
  s.part[blockIdx.y * s.groups + g] = total.pack();
}

/* ---- measure, planes: a block has a chunk of one group ---------------------------------------------------------------------- */

struct plane_place { int64_t x, y, dy; int n; };
/* Offsets of vector j of a group, and how many of its elements exist. */
__device__ __forceinline__ plane_place place_of(const split &s, int64_t g, uint32_t j, uint32_t vectors)
{
  uint32_t line = j / vectors;
  int64_t at = (int64_t)(j - line * vectors) * V;
  return { g * s.step[X] + line * s.line_step[X] + at, g * s.step[Y] + line * s.line_step[Y] + at,
           g * s.step[DY] + line * s.line_step[DY] + at, (int)min((int64_t)V, s.line - at) };
}

template <int B, bool backward, int whole>
__device__ __forceinline__ void take_vectors(const split &s, int64_t g, uint32_t j, uint32_t vectors, float &count, float &a, float &b,
                                             float mean, float rstd)
{
  packet<whole> x[B], dy[backward ? B : 1];
  int n[B];
#pragma unroll
  for (int k = 0; k < B; k++) {
    plane_place w = place_of(s, g, j + k * THREADS, vectors);
    load(x[k], s, X, w.x, w.n);
    if constexpr (backward) load(dy[k], s, DY, w.dy, w.n);
    n[k] = w.n;
  }
  if constexpr (backward) {
#pragma unroll
    for (int k = 0; k < B; k++) {
      float v[V], u[V];
      x[k].open(v);
      dy[k].open(u);
#pragma unroll
      for (int i = 0; i < V; i++) a += u[i], b += whole || i < n[k] ? u[i] * ((v[i] - mean) * rstd) : 0;
    }
  } else {                                /* as moments_add, for one group */
    float v[V], s1 = 0, s2 = 0, more = 0;
    if (s.centred && count == 0) x[0].open(v), a = v[0];
    float from = fabsf(a) < INFINITY ? a : 0;
#pragma unroll
    for (int k = 0; k < B; k++) {
      x[k].open(v);
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
  uint32_t vectors = (uint32_t)s.vectors(), j = (uint32_t)(blockIdx.y * s.chunk) + threadIdx.x,
           to = (uint32_t)min((blockIdx.y + 1) * s.chunk, s.pieces);
  float mean = backward && s.centred ? s.get(MEAN, g, 0) : 0, rstd = backward ? s.get(RSTD, g, 1) : 1, a = 0, b = 0, count = 0;
#pragma unroll 1
  for (; j + (B - 1) * THREADS < to; j += B * THREADS) take_vectors<B, backward, whole>(s, g, j, vectors, count, a, b, mean, rstd);
#pragma unroll 1
  for (; j < to; j += THREADS) take_vectors<1, backward, whole>(s, g, j, vectors, count, a, b, mean, rstd);
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
  for (int i = threadIdx.x / TOGETHER; i < s.chunks && g < s.groups; i += BY) all.join(S::unpack(s.part[i * s.groups + g]));
  warp_join(all, TOGETHER);
  if (lane < TOGETHER) seen[threadIdx.x / 32 * TOGETHER + lane] = all.pack();
  __syncthreads();
  all = S::unpack(lane < WARPS * TOGETHER ? seen[lane] : make_float4(0, 0, 0, 0));
  warp_join(all, TOGETHER);
  return all;                             /* valid in the first TOGETHER threads */
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
      const far_statistics far = far_measure({ s.p[X], nullptr, s.dtype[X], s.lines, s.line_step[X], s.line }, h * s.step[X], s.centred,
                                             s.eps, 32);
      if (threadIdx.x == i) of = far;
    }
    if (threadIdx.x >= TOGETHER || g >= s.groups) return;
    s.put(MEAN, g, of.mean);
    s.put(RSTD, g, of.rstd);
    s.put(NEW_MEAN, g, (1 - s.momentum) * s.get(RUNNING_MEAN, g, 0) + s.momentum * of.mean);
    s.put(NEW_VAR, g, (1 - s.momentum) * s.get(RUNNING_VAR, g, 0) + s.momentum * of.unbiased);
    s.keep(g, of.mean, of.rstd, s.get(SCALE, g, 1), s.get(SHIFT, g, 0), 0);
  }
}

/* ---- apply ------------------------------------------------------------------------------------------------------- */

/* The factors of N neighbouring groups. */
template <int N> struct factors {
  float f[FACTORS][N], unit;              /* unit: of far_normalized */

  template <bool backward, int whole> __device__ __forceinline__ void read(const split &s, int64_t g, int n)
  {
#pragma unroll
    for (int k = 0; k < FACTORS - !backward; k++) {
      const float *from = s.factor + k * s.groups + g;
      if constexpr (whole && N == V) vector_load_whole<QN_F32>(f[k], from, 0);
      else
#pragma unroll
        for (int i = 0; i < N; i++) f[k][i] = i < n ? from[i] : 0;
    }
    if constexpr (!backward) unit = far_unit(f[F_MEAN], f[F_RSTD]);
  }
  template <bool backward> __device__ __forceinline__ float of(int i, float x, float dy) const
  {
    float h = backward ? (x - f[F_MEAN][i]) * f[F_RSTD][i] : far_normalized(x, unit, f[F_MEAN][i], f[F_RSTD][i]);
    return backward ? f[F_RSTD][i] * (dy * f[F_SCALE][i] - f[F_P][i] - h * f[F_Q][i]) : h * f[F_SCALE][i] + f[F_P][i];
  }
};

/* apply's blocks take parts of measure's chunks, in reverse order: the last measured first. */
__device__ __forceinline__ void apply_range(const split &s, int64_t *from, int64_t *to)
{
  uint32_t part = blockIdx.y / (uint32_t)s.chunks, chunk = (uint32_t)s.chunks - 1 - (blockIdx.y - part * s.chunks);
  int64_t end = min((chunk + 1) * s.chunk, s.pieces);
  *to = end - part * s.share;
  *from = max(chunk * s.chunk, *to - s.share);
}

/* Kinds of apply: y and relu; dx; y and any steps, in a kernel of its own that has the registers for them. */
enum { FORWARD, BACKWARD, FOLLOWED };

/* Finishes and stores n elements of y or dx at `at`; second: the added tensor's. */
template <int what, int whole>
__device__ __forceinline__ void finish(const split &s, float (&v)[V], const packet<whole> &second, int64_t at, int n)
{
  if constexpr (what != BACKWARD) s.tail.follow<what == FOLLOWED>(v, second, at, n);
  store<whole>(v, s, at, n);
}

template <int B, int what, int whole>
__device__ __forceinline__ void apply_lines(const split &s, const place &w, int first, const factors<V> &f)
{
  constexpr bool backward = what == BACKWARD;
  lines<B, backward, whole> l;
  packet<whole> second[what == FOLLOWED ? B : 1];
  int64_t at = (w.from + (int64_t)first * w.step) * s.line_step[Y] + w.g0, step = w.step * s.line_step[Y];
  l.load(s, w, first);
  if (what == FOLLOWED && s.tail.second)
#pragma unroll
    for (int b = 0; b < B; b++) second[what == FOLLOWED ? b : 0].load(s.tail.second, dtype3(s.dtype[Y]), at + b * step, w.n, 0);
#pragma unroll
  for (int b = 0; b < B; b++) {
    float v[V], u[V] = {};
    l.x[b].open(v);
    if constexpr (backward) l.dy[b].open(u);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = f.template of<backward>(i, v[i], u[i]);
    finish<what>(s, v, second[what == FOLLOWED ? b : 0], at + b * step, w.n);
  }
}

template <int what, int whole> __device__ __forceinline__ void take_columns(const split &s)
{
  constexpr int B = what == BACKWARD ? batch_of<whole> / 2 : batch_of<whole>;
  int64_t from, to;
  apply_range(s, &from, &to);
  place w(s, from, to);
  factors<V> f;
  if (w.n > 0) f.template read<what == BACKWARD, whole>(s, w.g0, w.n);
  int k = 0;
#pragma unroll 1
  for (; k + B <= w.count; k += B) apply_lines<B, what, whole>(s, w, k, f);
#pragma unroll 1
  for (; k < w.count; k++) apply_lines<1, what, whole>(s, w, k, f);
}

template <int B, int what, int whole>
__device__ __forceinline__ void apply_vectors(const split &s, int64_t g, uint32_t j, uint32_t vectors, const factors<1> &f)
{
  constexpr bool backward = what == BACKWARD;
  packet<whole> x[B], dy[backward ? B : 1], second[what == FOLLOWED ? B : 1];
  plane_place w[B];
#pragma unroll
  for (int k = 0; k < B; k++) {
    w[k] = place_of(s, g, j + k * THREADS, vectors);
    load(x[k], s, X, w[k].x, w[k].n);
    if constexpr (backward) load(dy[k], s, DY, w[k].dy, w[k].n);
    if (what == FOLLOWED && s.tail.second) second[what == FOLLOWED ? k : 0].load(s.tail.second, dtype3(s.dtype[Y]), w[k].y, w[k].n, 0);
  }
#pragma unroll
  for (int k = 0; k < B; k++) {
    float v[V], u[V] = {};
    x[k].open(v);
    if constexpr (backward) dy[k].open(u);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = f.template of<backward>(0, v[i], u[i]);
    finish<what>(s, v, second[what == FOLLOWED ? k : 0], w[k].y, w[k].n);
  }
}

template <int what, int whole> __device__ __forceinline__ void take_planes(const split &s)
{
  constexpr int B = batch_of<whole>;
  int64_t g = blockIdx.x, from, to;
  apply_range(s, &from, &to);
  uint32_t vectors = (uint32_t)s.vectors();
  factors<1> f;
  f.template read<what == BACKWARD, whole>(s, g, 1);
  int64_t j = from + threadIdx.x;
#pragma unroll 1
  for (; j + (B - 1) * THREADS < to; j += B * THREADS) apply_vectors<B, what, whole>(s, g, (uint32_t)j, vectors, f);
#pragma unroll 1
  for (; j < to; j += THREADS) apply_vectors<1, what, whole>(s, g, (uint32_t)j, vectors, f);
}

template <int what, int whole>
__global__ void __launch_bounds__(THREADS, whole ? RESIDENT : 1) apply_columns(const __grid_constant__ split s)
{
  take_columns<what, whole>(s);
}
template <int what, int whole>
__global__ void __launch_bounds__(THREADS, whole ? RESIDENT + 1 : 1) apply_planes(const __grid_constant__ split s)
{
  take_planes<what, whole>(s);
}
template <int whole> __device__ __forceinline__ void take_followed(const split &s)
{
  if (s.columns) take_columns<FOLLOWED, whole>(s);
  else take_planes<FOLLOWED, whole>(s);
}
/* One kernel for all dtypes: the steps are long, and each kernel would have its own copy. */
__global__ static void __launch_bounds__(THREADS, 2) apply_followed(const __grid_constant__ split s)
{
  if (s.dtype[Y] == QN_F32) take_followed<QN_F32>(s);
  else if (s.dtype[Y] == QN_BF16) take_followed<QN_BF16>(s);
  else take_followed<QN_F16>(s);
}

/* ---- prepare, run --------------------------------------------------------------------------------------------------- */

typedef void (*kernel)(split);
struct state { split s; norm_follower after; int32_t number[TENSORS]; kernel measure, apply; };

template <int what, int whole> static void choose(state *st)
{
  constexpr bool backward = what == BACKWARD;
  st->measure = st->s.columns ? measure_columns<backward, whole> : measure_planes<backward, whole>;
  st->apply = st->s.columns ? apply_columns<what, whole> : apply_planes<what, whole>;
}
template <int what> static void choose_dtype(state *st, uint32_t whole)
{
  if (whole == QN_F32) choose<what, QN_F32>(st);
  else if (whole == QN_BF16) choose<what, QN_BF16>(st);
  else if (whole == QN_F16) choose<what, QN_F16>(st);
  else choose<what, 0>(st);
}

static void roles_of(const qn_request *r, int32_t number[TENSORS])
{
  const qn_norm_roles a = qn_norm_roles_of(r->op[0].op);
  const int8_t role[TENSORS] = { a.x, a.y < 0 ? a.dx : a.y, a.dy, a.scale, a.shift, a.mean, a.rstd, a.running_mean, a.running_var,
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

  static const char *const name[TENSORS] = { "x", "y", "dy", "scale", "shift", "mean", "rstd", "running_mean", "running_var", "new_mean",
                                             "new_var", "dscale", "dshift" };
  qn_status status = cuda_norm_by_group(r, st.number, name, SCALE, TENSORS, true, out);
  if (status) return status;
  const cuda_norm_nests nest = cuda_norm_nests_of(r, st.number, DY + 1, TENSORS);
  const qn_nest &kept = nest.outer, &walked = nest.walked;
  for (int t = 0; t < TENSORS; t++)
    if (st.number[t] >= 0) s.dtype[t] = r->value[st.number[t]].dtype;
  s.groups = nest.groups;
  s.n = nest.length;
  if (kept.rank > 1)
    return qn_refuse(out, "the dims not normalized over must lie as one, in all tensors", "x", "1 that does not merge", "%d", kept.rank);
  bool columns = kept.rank == 1 && walked.rank <= 1, planes = walked.rank == 1 || walked.rank == 2;
  for (int t = X; t <= DY; t++) {
    if (st.number[t] < 0) continue;
    columns &= kept.rank == 1 && kept.stride[t][0] == 1;
    planes &= walked.rank > 0 && walked.stride[t][walked.rank - 1] == 1;
  }
  if (!columns && !planes)
    return qn_refuse(out, "groups must lie side by side, or in contiguous runs", "x", "channels first or channels last", "%s",
                     "other strides");
  s.columns = columns;
  s.lines = columns ? s.n : walked.rank == 2 ? walked.dim[0] : 1;
  s.line = columns ? 1 : walked.dim[walked.rank - 1];
  for (int t = 0; t < 3; t++) s.line_step[t] = walked.rank && (columns || walked.rank == 2) ? walked.stride[t][0] : 0;
  for (int t = 0; t < TENSORS; t++) s.step[t] = kept.rank ? kept.stride[t][0] : 0;
  s.eps = (float)norm->eps;
  s.momentum = (float)norm->momentum;
  s.centred = r->op[0].op != QN_OP_RMS_NORM && r->op[0].op != QN_OP_RMS_NORM_BACKWARD;
  s.backward = st.number[DY] >= 0;

  s.lanes = 32;
  while (s.lanes > 1 && s.lanes * V / 2 >= s.groups) s.lanes /= 2;
  s.pieces = columns ? s.lines : s.lines * s.vectors();
  int64_t side = columns ? qn_ceil_div(s.groups, s.lanes * V) : s.groups;
  if (side > INT32_MAX || s.pieces > INT32_MAX)
    return qn_refuse(out, "fewer than 2^31 groups and lines", "x", "", "%lld", (long long)s.groups);
  bool whole = columns ? s.groups % V == 0 : s.line % V == 0;
  for (int t = X; t <= DY; t++) {
    const qn_value *v = st.number[t] < 0 ? nullptr : &r->value[st.number[t]];
    if (v) whole &= v->dtype == x->dtype && v->align >= 16 && s.line_step[t] % V == 0 && (columns || s.step[t] % V == 0);
  }
  const bool tailed = norm_follower_read(&st.after, r, st.number[Y], whole && !s.backward, &s.tail, out);
  if (s.backward) choose_dtype<BACKWARD>(&st, whole ? x->dtype : 0);
  else choose_dtype<FORWARD>(&st, whole ? x->dtype : 0);
  if (tailed) st.apply = apply_followed;
  /* Chunks for one wave of blocks, or (planes, whose partial results are small) two; at least a few batches a thread. */
  int64_t batch = batch_of<QN_BF16> * (columns ? THREADS / s.lanes : THREADS), least = 4 * batch;
  int64_t blocks = (int64_t)r->device->units * (columns ? RESIDENT : 2 * (RESIDENT + 1));
  int64_t chunks = qn_min_i64(qn_ceil_div(s.pieces, least), qn_min_i64(MAX_CHUNKS, qn_max_i64(1, blocks / side)));
  s.chunk = qn_ceil_div(s.pieces, chunks);
  if (columns) s.chunk = qn_round_up(s.chunk, batch);
  s.chunks = (int32_t)qn_ceil_div(s.pieces, s.chunk);
  /* apply: blocks of one batch are fastest, unless their prologue is long */
  s.share = qn_min_i64(s.chunk, !tailed ? qn_round_up(qn_ceil_div(s.chunk, 32), batch) : qn_max_i64(least, qn_ceil_div(s.chunk, 16)));
  out->workspace = (uint64_t)s.chunks * (uint64_t)s.groups * sizeof(float4) + (uint64_t)s.groups * FACTORS * sizeof(float);

  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = (const state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  split s = st->s;
  for (int t = 0; t < TENSORS; t++) s.p[t] = st->number[t] < 0 ? nullptr : launch->ptr[st->number[t]];
  s.p[Y] = launch->ptr[st->after.chain.out];
  norm_follower_bind(&st->after, &s.tail, launch);
  s.part = (float4 *)launch->workspace;
  s.factor = (float *)(s.part + (int64_t)s.chunks * s.groups);
  dim3 grid((unsigned)(s.columns ? qn_ceil_div(s.groups, s.lanes * V) : s.groups), (unsigned)s.chunks);
  st->measure<<<grid, THREADS, 0, stream>>>(s);
  combine<<<(unsigned)qn_ceil_div(s.groups, TOGETHER), THREADS, 0, stream>>>(s);
  grid.y *= (unsigned)qn_ceil_div(s.chunk, s.share);
  st->apply<<<grid, THREADS, 0, stream>>>(s);
  return cuda_check(cudaGetLastError(), "norm_split");
}

/* The chunks depend on the number of groups, so results are not batch invariant. */
#define ROW(op) { "split", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW(QN_OP_BATCH_NORM), ROW(QN_OP_BATCH_NORM_BACKWARD),
  ROW(QN_OP_LAYER_NORM), ROW(QN_OP_LAYER_NORM_BACKWARD), ROW(QN_OP_RMS_NORM), ROW(QN_OP_RMS_NORM_BACKWARD),
};
CUDA_ENGINES(norm_split) = { row, sizeof row / sizeof *row };
