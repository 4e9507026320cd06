/* norm_split.cu -- normalization of few large groups with one parameter each (batch norm, and long rows without parameters of their own),
 * forward and backward: a group is cut into chunks, so that the whole device works on it. And batch_norm_inference: the last launch alone.
 *
 *   1. measure   each chunk's mean and sum of squared distances from it; for a gradient sum dy and sum dy h
 *   2. combine   the chunks of a group in a fixed order (Chan, Golub, LeVeque); statistics, running ones, dscale and dshift
 *   3. apply     y = h scale + shift, or dx = rstd (dy scale - mean g - h mean(g h)), with h = (x - mean) rstd, g = dy scale; in
 *                reverse order, to hit what is still in L2. Pointwise ops behind y are fused (norm_follow.cuh). (rstd scale is not folded
 *                into one factor: subnormal scales would lose digits.)
 *
 * columns: groups are contiguous (channels last). planes: a group is contiguous runs of elements (channels first).
 * Refused: outer dims that do not merge, other strides, parameters that vary within a group. */
#include <type_traits>
#include "norm_layout.cuh"
#include "norm_follow.cuh"
#include "norm_moments.cuh"

enum { V = 8, THREADS = 256, WARPS = THREADS / 32, RESIDENT = 3, MAX_CHUNKS = 2000 };
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
  uint32_t side, chunks;                  /* blocks that cover all groups; chunks of a group */
  int32_t  lanes;                         /* columns: log2 of the threads along a line, at most 5 */
  float    eps, momentum;
  bool     columns, centred, backward;
  bool     plain;                         /* apply by columns: parameters are contiguous aligned f32 */
  norm_tail tail;
  float4  *part;                          /* [chunks, groups] */
  float   *factor;                        /* [FACTORS, groups]; NULL: apply computes them from the parameters */

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

/* ---- a thread's packets ------------------------------------------------------------------------------------------------------- */

/* Kinds of work: y and relu, or a measurement; dx, or its sums; y and any steps, in a kernel of its own that has the registers for them; y
 * and relu by given statistics. */
enum { FORWARD, BACKWARD, FOLLOWED, GIVEN };
template <int whole> constexpr int batch_of = whole == QN_F32 || !whole ? 2 : 4;         /* packets of a batch */

struct place { int64_t x, y, dy; int n; };                /* offsets of a packet; n elements of it exist */

/* Vector j of a group of planes. */
__device__ __forceinline__ place place_of(const split &s, int64_t g, uint32_t j, uint32_t vectors)
{
  uint32_t line = j / vectors;
  int64_t at = (int64_t)(j - line * vectors) * V;
  return { g * s.step[X] + line * s.line_step[X] + at, g * s.step[Y] + line * s.line_step[Y] + at,
           g * s.step[DY] + line * s.line_step[DY] + at, (int)min((int64_t)V, s.line - at) };
}

/* B packets; at(b): where packet b is. */
template <int what, int whole, int B> struct batch {
  static constexpr bool backward = what == BACKWARD, two = what == BACKWARD || what == FOLLOWED;
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
      if constexpr (what == FOLLOWED) if (s.tail.second) second[b].load(s.tail.second, dtype3(s.dtype[Y]), w.y, w.n, 0);
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
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = f.template of<what>(i, v[i], u[i]);
      if constexpr (!backward) s.tail.follow<what == FOLLOWED>(v, second[two ? b : 0], w.y, w.n);
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
  const int64_t g0 = ((int64_t)blockIdx.x << s.lanes | lane) * V, from = blockIdx.y * s.chunk + row,
                end = min((blockIdx.y + 1) * s.chunk, s.lines);
  const int n = (int)max((int64_t)0, min((int64_t)V, s.groups - g0)),
            count = n > 0 && from < end ? (int)((end - from + apart - 1) / apart) : 0;        /* lines of the thread */
  const auto load = [&](auto &to, int first) {
    to.template load<false>(s, [&](int b) {
      const int64_t line = from + (int64_t)(first + b) * apart;
      return place{ line * s.line_step[X] + g0, 0, line * s.line_step[DY] + g0, n };
    });
  };
  gathered<backward> all = {};
  if constexpr (backward) {
#pragma unroll
    for (int i = 0; i < V; i++) {
      all.mean[i] = s.centred && i < n ? s.get(MEAN, g0 + i, 0) : 0;
      all.rstd[i] = i < n ? s.get(RSTD, g0 + i, 1) : 1;
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
  int64_t g = ((int64_t)blockIdx.x << s.lanes) * V + threadIdx.x;     /* one column a thread */
  if (threadIdx.x >= V << s.lanes || g >= s.groups) return;
  S total = S::unpack(seen[0][threadIdx.x]);
  for (int v = 1; v < WARPS; v++) total.join(S::unpack(seen[v][threadIdx.x]));
  s.part[blockIdx.y * s.groups + g] = total.pack();
}

/* ---- measure, planes: a block has a chunk of one group ---------------------------------------------------------------------- */

template <int B, bool backward, int whole>
__device__ __forceinline__ void take_vectors(const split &s, int64_t g, uint32_t j, uint32_t vectors, float &count, float &a, float &b,
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
  for (int i = threadIdx.x / TOGETHER; i < (int)s.chunks && g < s.groups; i += BY) all.join(S::unpack(s.part[i * s.groups + g]));
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
      const far_statistics far = far_measure({ s.p[X], s.dtype[X], s.lines, s.line_step[X], s.line }, h * s.step[X], s.centred,
                                             s.eps, 32);
      if (threadIdx.x == i) of = far;
    }
    if (threadIdx.x >= TOGETHER || g >= s.groups) return;
    norm_leave(s.momentum, of.mean, of.rstd, of.unbiased, [&](int t) { return s.get(t, g, 0); }, [&](int t, float v) { s.put(t, g, v); });
    s.keep(g, of.mean, of.rstd, s.get(SCALE, g, 1), s.get(SHIFT, g, 0), 0);
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
      if constexpr (what == BACKWARD) q = computed<whole>(s, F_Q, g, n);
    } else {
      mean = read(s, MEAN, g, n, 0);
      rstd = read(s, VAR, g, n, 1);
      scale = read(s, SCALE, g, n, 1);
      p = read(s, SHIFT, g, n, 0);
#pragma unroll
      for (int i = 0; i < N; i++) rstd.v[i] = 1 / sqrtf(rstd.v[i] + s.eps);
    }
    if constexpr (what == FORWARD || what == FOLLOWED) unit = far_unit(mean.v, rstd.v);
  }
  template <int what> __device__ __forceinline__ float of(int element, float x, float dy) const
  {
    const int i = element % N;
    const bool far = what == FORWARD || what == FOLLOWED;
    const float h = far ? far_normalized(x, unit, mean.v[i], rstd.v[i]) : (x - mean.v[i]) * rstd.v[i];
    return what == BACKWARD ? rstd.v[i] * (dy * scale.v[i] - p.v[i] - h * q.v[i]) : h * scale.v[i] + p.v[i];
  }
};

template <int what, int whole, bool columns>
constexpr int apply_batch = what == BACKWARD ? columns ? batch_of<whole> / 2 : batch_of<whole> : whole ? batch_of<whole> : 4;
constexpr int resident(bool columns, int what, int whole) { return !whole ? 1 : what == FOLLOWED ? 2 : columns ? RESIDENT : RESIDENT + 1; }

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
  const int64_t g = ((int64_t)(blockIdx.x - block * s.side) << s.lanes | lane) * V;
  const int n = (int)min((int64_t)V, s.groups - g), lines = (int)(to - from) - row;
  int64_t x = (from + row) * s.line_step[X] + g, y = (from + row) * s.line_step[Y] + g, dy = (from + row) * s.line_step[DY] + g;
  const int64_t x_apart = apart * s.line_step[X], y_apart = apart * s.line_step[Y], dy_apart = apart * s.line_step[DY];
  int line = 0;
  const auto at = [&](int b) {
    return place{ x + b * x_apart, y + b * y_apart, dy + b * dy_apart, line + b * apart < lines ? n : 0 };
  };
  batch<what, whole, B> some;
  some.template load<true>(s, at);
  factors<V> f;
  f.template take<what, whole>(s, g, n);
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
  const auto at = [&](int b) {
    const uint32_t j = from + threadIdx.x + b * THREADS;
    place w = place_of(s, g, j, vectors);
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
struct state { split s; norm_follower after; int32_t number[TENSORS]; kernel measure, apply; unsigned applied; };

template <int whole> static kernel measure_kernel(bool columns, bool backward)
{
  return columns ? backward ? measure_columns<true, whole> : measure_columns<false, whole>
                 : backward ? measure_planes<true, whole> : measure_planes<false, whole>;
}
template <int what, int whole> static kernel apply_kernel(bool columns)
{
  return columns ? apply_columns<what, whole> : apply_planes<what, whole>;
}
template <int what> static kernel apply_of_dtype(uint32_t dtype, bool columns)
{
  return norm_of_dtype(dtype, apply_kernel<what, QN_F32>, apply_kernel<what, QN_BF16>, apply_kernel<what, QN_F16>)(columns);
}
static void choose_kernels(state *st, bool whole, bool tailed, bool given)
{
  const split &s = st->s;
  const uint32_t dtype = s.dtype[X];
  st->measure = whole ? norm_of_dtype(dtype, measure_kernel<QN_F32>, measure_kernel<QN_BF16>, measure_kernel<QN_F16>)(s.columns, s.backward)
                      : measure_kernel<0>(s.columns, s.backward);
  if (!whole)
    st->apply = (given ? apply_kernel<GIVEN, 0> : s.backward ? apply_kernel<BACKWARD, 0> : apply_kernel<FORWARD, 0>)(s.columns);
  else if (given && !tailed) st->apply = apply_of_dtype<GIVEN>(dtype, s.columns);
  else if (s.backward) st->apply = apply_of_dtype<BACKWARD>(dtype, s.columns);
  else st->apply = tailed ? apply_of_dtype<FOLLOWED>(dtype, s.columns) : apply_of_dtype<FORWARD>(dtype, s.columns);
}

static const char *const variants[] = { "1", "2", "4", nullptr };      /* inference: batches a thread */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  norm_problem p;
  state st = {};
  split &s = st.s;
  const bool given = r->op[0].op == QN_OP_BATCH_NORM_INFERENCE;
  const qn_status status = norm_open(r, 0, &p, out);
  if (status) return status;
  const qn_nest &in = p.in, &outer = p.outer;
  bool varies = false;
  for (int t = SCALE; t < TENSORS; t++)
    for (int d = 0; d < in.rank && t < PARAMETERS_END; d++) varies |= in.stride[t][d] != 0;
  for (int t = DSCALE; t < TENSORS && !given; t++)          /* what is written has an element for each group */
    for (int d = 0; d < outer.rank; d++) varies |= p.number[t] >= 0 && outer.stride[t][d] == 0;
  if (varies) return qn_refuse(out, "a parameter has one element for each group", "x", "", "%s", "others");
  if (outer.rank > 1)
    return qn_refuse(out, "the dims not normalized over must lie as one, in all tensors", "x", "1 that does not merge", "%d", outer.rank);
  bool columns = outer.rank == 1 && in.rank <= 1, planes = in.rank == 1 || in.rank == 2;
  for (int t = X; t <= DY; t++) {
    if (p.number[t] < 0) continue;
    columns &= outer.rank == 1 && outer.stride[t][0] == 1;
    planes &= in.rank > 0 && in.stride[t][in.rank - 1] == 1;
  }
  if (!columns && !planes)
    return qn_refuse(out, "groups must lie side by side, or in contiguous runs", "x", "channels first or channels last", "%s",
                     "other strides");
  memcpy(st.number, p.number, sizeof st.number);
  memcpy(s.dtype, p.dtype, sizeof s.dtype);
  s.groups = p.groups, s.n = p.length;
  s.columns = columns;
  s.lines = columns ? s.n : in.rank == 2 ? in.dim[0] : 1;
  s.line = columns ? 1 : in.dim[in.rank - 1];
  for (int t = 0; t < 3; t++) s.line_step[t] = in.rank && (columns || in.rank == 2) ? in.stride[t][0] : 0;
  s.plain = s.groups % V == 0;
  for (int t = 0; t < TENSORS; t++) {
    s.step[t] = outer.rank ? outer.stride[t][0] : 0;
    if (t > DY && p.number[t] >= 0) s.plain &= s.dtype[t] == QN_F32 && s.step[t] == 1 && r->value[p.number[t]].align >= 16;
  }
  s.eps = p.eps, s.momentum = p.momentum, s.centred = p.centred, s.backward = p.backward;
  for (s.lanes = 5; s.lanes > 0 && (V << s.lanes) / 2 >= s.groups;) s.lanes--;
  s.pieces = columns ? s.lines : s.lines * s.vectors();
  const int64_t side = columns ? qn_ceil_div(s.groups, V << s.lanes) : s.groups, apart = columns ? THREADS >> s.lanes : THREADS;
  if (side > INT32_MAX || s.pieces > INT32_MAX)
    return qn_refuse(out, "fewer than 2^31 groups and lines", "x", "", "%lld", (long long)s.groups);
  const bool whole = (columns ? s.groups : s.line) % V == 0 && norm_whole(r, &p, V, columns, columns || in.rank == 2);
  const bool tailed = norm_follower_read(&st.after, r, p.number[Y], whole && !s.backward, &s.tail, out);
  choose_kernels(&st, whole, tailed, given);
  s.side = (uint32_t)side, s.chunks = 1, s.chunk = s.pieces;
  if (given) {
    /* computing the factors of columns costs as many instructions as two batches: up to four batches a thread if enough blocks remain */
    s.share = (whole && p.dtype[X] == QN_F32 ? 2 : 4) * apart;
    int v = 0;                            /* 1 << v batches */
    if (r->variant) while (strcmp(r->variant, variants[v])) v++;
    else while (columns && v < 2 && (s.pieces / s.share >> v) * side > 16 * (int64_t)r->device->units) v++;
    s.share <<= v;
    out->variant = variants[v];
  } else {
    /* Chunks for one wave of blocks, or (planes, whose partial results are small) two; at least a few batches a thread. */
    const int64_t batch = 4 * apart, least = 4 * batch, blocks = (int64_t)r->device->units * (columns ? RESIDENT : 2 * (RESIDENT + 1));
    s.chunk = qn_ceil_div(s.pieces, qn_min_i64(qn_ceil_div(s.pieces, least), qn_min_i64(MAX_CHUNKS, qn_max_i64(1, blocks / side))));
    if (columns) s.chunk = qn_round_up(s.chunk, batch);
    s.chunks = (uint32_t)qn_ceil_div(s.pieces, s.chunk);
    /* apply: blocks of one batch are fastest, unless their prologue is long */
    s.share = qn_min_i64(s.chunk, !tailed ? qn_round_up(qn_ceil_div(s.chunk, 32), batch) : qn_max_i64(least, qn_ceil_div(s.chunk, 16)));
    out->workspace = (uint64_t)s.chunks * (uint64_t)s.groups * sizeof(float4) + (uint64_t)s.groups * FACTORS * sizeof(float);
  }
  const int64_t parts = s.chunks * qn_ceil_div(s.chunk, s.share);
  if (parts > INT32_MAX / side) return qn_refuse(out, "fewer than 2^31 groups and lines", "x", "", "%lld", (long long)s.groups);
  st.applied = (unsigned)(side * parts);
  /* x (and dy) are read twice, the second time from L2 as far as they fit. (inference has no rival, and none: before a convolution that
   * folds it in, a sum of estimates would decide.) */
  const double again = p.moved / (p.backward ? 1.5 : 2), hit = (double)r->device->cache * 0.5;
  if (!given) out->estimate = 9000 + (p.moved + (again > hit ? again - hit * 0.5 : again * 0.5)) / 3800;
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
    s.factor = (float *)(s.part + (int64_t)s.chunks * s.groups);
    st->measure<<<dim3(s.side, s.chunks), THREADS, 0, stream>>>(s);
    combine<<<(unsigned)qn_ceil_div(s.groups, TOGETHER), THREADS, 0, stream>>>(s);
  }
  st->apply<<<st->applied, THREADS, 0, stream>>>(s);
  return cuda_check(cudaGetLastError(), "norm_split");
}

/* The chunks depend on the number of groups, so results are not batch invariant. */
#define ROW(op) { "split", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW(QN_OP_BATCH_NORM), ROW(QN_OP_BATCH_NORM_BACKWARD),
  ROW(QN_OP_LAYER_NORM), ROW(QN_OP_LAYER_NORM_BACKWARD), ROW(QN_OP_RMS_NORM), ROW(QN_OP_RMS_NORM_BACKWARD),
  { "inference", QN_OP_BATCH_NORM_INFERENCE, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC,
    variants, nullptr, prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(norm_split) = { row, sizeof row / sizeof *row };
