/* norm_split.cuh -- part of norm_split.cu: the problem, a thread's packets, and the first launch, which measures each chunk. */
#pragma once
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
    if (s.centred && count == 0) l.x[0].open(v), a = n[0] > 2 ? middle(v[0], v[1], v[2]) : v[0];
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
