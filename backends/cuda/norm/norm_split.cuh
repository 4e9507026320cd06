/* norm_split.cuh -- part of norm_split.cu: the problem, a thread's packets, and the first launch, which measures each chunk. */
#pragma once
#include "norm_follow.cuh"
#include "norm_sums.cuh"

enum { V = 8, THREADS = 256, WARPS = THREADS / 32, RESIDENT = 3, MAX_CHUNKS = 2000 };
enum { F_MEAN, F_RSTD, F_SCALE, F_P, F_Q, FACTORS };      /* factors of a group for apply; F_Q: gradients only */

struct split : norm_args {
  int64_t  step[TENSORS], image_step[TENSORS], run_step[PARAMETERS_END];  /* from group to group; image to image; column to column */
  cuda_divisor by_image, by_run;          /* groups (columns) of an image; columns of a group */
  int64_t  groups;                        /* groups (columns) of all images */
  int64_t  lines, line;                   /* line: elements; 1 for columns */
  int64_t  line_step[PARAMETERS_END];     /* between lines */
  int64_t  chunk, pieces;                 /* in lines (columns) or vectors (planes) */
  int64_t  share;                         /* part of a chunk for one block of apply */
  uint32_t side, across, chunks;          /* blocks that cover all groups; columns: those of an image; chunks of a group */
  int32_t  lanes;                         /* columns: log2 of the threads along a line, at most 5 */
  bool     columns, backward;
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
  __device__ float get(int t, int64_t g, float absent) const { return parameter(t, place(t, g), absent); }
  __device__ void store(int t, int64_t g, float v) const { if (p[t]) element_store(p[t], place(t, g), dtype3(dtype[t]), v); }
  __device__ float scale_of(int64_t g) const { return backward ? finite_or_nan(get(SCALE, g, 1)) : get(SCALE, g, 1); }
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

/* ---- a thread's packets ------------------------------------------------------------------------------------------------------- */

/* Kinds of work: y and relu, or a measurement; dx, or its sums; y and any steps, in a kernel of its own that has the registers for them; y
 * and relu by given statistics; y and any steps with parameters that vary within a group (planes). */
enum { FORWARD, BACKWARD, FOLLOWED, GIVEN, VARIED };
template <int what> constexpr bool has_steps = what == FOLLOWED || what == VARIED;
template <int whole> constexpr int batch_of = whole == QN_F32 || !whole ? 2 : 4;         /* packets of a batch */

/* offsets of a packet; n elements of it exist; planes: its line, its first element's place there */
struct place { int64_t x, y, dy; int n; uint32_t line; int64_t along; };

/* Vector j of a group of planes, which begins at `group`. */
template <int whole> __device__ __forceinline__ place place_of(const split &s, const place &group, uint32_t j, uint32_t vectors)
{
  const uint32_t line = j / vectors;
  const int64_t at = (int64_t)(j - line * vectors) * V;
  return { group.x + line * s.line_step[X] + at, group.y + line * s.line_step[Y] + at, group.dy + line * s.line_step[DY] + at,
           whole ? (int)V : (int)min((int64_t)V, s.line - at), line, at };
}
template <int what> __device__ __forceinline__ place group_of(const split &s, int64_t g)
{
  if (what == GIVEN) return { g * s.step[X], g * s.step[Y], 0 };        /* no images: less to do before the first load */
  return { s.place(X, g), s.place(Y, g), s.place(DY, g) };
}

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

/* ---- measure ---------------------------------------------------------------------------------------------------------------- */

/* What a thread gathers of N groups: V, one for each element of a packet, or one: mean and squared distances, or sum dy and sum dy h. */
template <bool backward, int N> struct gathered {
  float a[N], b[N], count;                /* count: elements of a group */
  float mean[backward ? N : 1], rstd[backward ? N : 1];

  /* Adds a batch; n: elements of its packets. Distances are taken from the mean so far, at first from an element, or the median of three:
   * with s1 = sum d, s2 = sum d^2 over the batch and n elements afterwards, the mean moves by s1 / n and squares by s2 - s1^2 / n. Little
   * cancels, because s1^2 <= B s2. */
  template <int what, int whole, int B>
  __device__ __forceinline__ void add(const split &s, const batch<what, whole, B> &l, const int (&n)[B])
  {
    float v[V], u[V], from[N], s1[N] = {}, s2[N] = {};
    int more = 0;
    const auto there = [&](int k, int i) { return whole || N > 1 || i < n[k]; };
    if constexpr (backward) {
#pragma unroll
      for (int k = 0; k < B; k++) {
        l.x[k].open(v);
        l.second[k].open(u);
#pragma unroll
        for (int i = 0; i < V; i++) a[i % N] += u[i], b[i % N] += there(k, i) ? u[i] * ((v[i] - mean[i % N]) * rstd[i % N]) : 0;
      }
      return;
    }
    if (s.centred && count == 0) {
      l.x[0].open(v);
#pragma unroll
      for (int i = 0; i < N; i++) a[i] = N == 1 && (whole || n[0] > 2) ? middle(v[0], v[1], v[2]) : v[i];
    }
#pragma unroll
    for (int i = 0; i < N; i++) from[i] = finite_or_0(a[i]);
#pragma unroll
    for (int k = 0; k < B; k++) {
      l.x[k].open(v);
      more += N > 1 ? 1 : whole ? (int)V : n[k];
#pragma unroll
      for (int i = 0; i < V; i++) {
        const float d = there(k, i) ? v[i] - from[i % N] : 0;
        s1[i % N] += d;
        s2[i % N] += d * d;
      }
    }
    count += (float)more;
    const float share = 1 / count;
#pragma unroll
    for (int i = 0; i < N; i++) {
      b[i] += s.centred ? s2[i] - s1[i] * s1[i] * share : s2[i];
      if (s.centred) a[i] += s1[i] * share;
    }
  }
  template <class S> __device__ __forceinline__ S result(int i) const { return S::unpack(make_float4(a[i], b[i], count, 0)); }
};

/* Columns: a thread has V groups of every apart-th line. */
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
  gathered<backward, V> all = {};
  if constexpr (backward) {
#pragma unroll
    for (int i = 0; i < V; i++) {
      all.mean[i] = s.centred && i < n ? s.get(MEAN, first_of + g0 + i, 0) : 0;
      all.rstd[i] = i < n ? s.get(RSTD, first_of + g0 + i, 1) : 1;
    }
  }
  const int any[B] = {};
  int k = 0;
  batch<what, whole, B> next;
  if (B <= count) load(next, 0);
#pragma unroll 1
  for (; k + B <= count; k += B) {        /* the next batch's loads are in flight */
    const batch<what, whole, B> now = next;
    if (k + 2 * B <= count) load(next, k + B);
    all.add(s, now, any);
  }
#pragma unroll 1
  for (; k < count; k++) {
    batch<what, whole, 1> one;
    load(one, k);
    all.add(s, one, { 0 });
  }
#pragma unroll
  for (int i = 0; i < V; i++) {
    S one = all.template result<S>(i);
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

/* Planes: a block has a chunk of one group. */
template <bool backward, int whole>
__global__ void __launch_bounds__(THREADS, whole ? RESIDENT + 1 : 1) measure_planes(const __grid_constant__ split s)
{
  typedef typename std::conditional<backward, sums, moments>::type S;
  constexpr int B = backward ? batch_of<whole> : 2 * batch_of<whole>, what = backward ? BACKWARD : FORWARD;
  __shared__ float4 of_warp[WARPS];
  const int64_t g = blockIdx.x;
  const place group = group_of<what>(s, g);
  const uint32_t vectors = (uint32_t)s.vectors(), to = (uint32_t)min((blockIdx.y + 1) * s.chunk, s.pieces);
  uint32_t j = (uint32_t)(blockIdx.y * s.chunk) + threadIdx.x;
  gathered<backward, 1> mine = {};
  if (backward) mine.mean[0] = s.centred ? s.get(MEAN, g, 0) : 0, mine.rstd[0] = s.get(RSTD, g, 1);
  const auto take = [&](auto packets) {
    constexpr int P = decltype(packets)::value;
    batch<what, whole, P> l;
    int n[P];
    l.template load<false>(s, [&](int k) {
      const place w = place_of<whole>(s, group, j + k * THREADS, vectors);
      n[k] = w.n;
      return w;
    });
    mine.add(s, l, n);
    j += P * THREADS;
  };
#pragma unroll 1
  while (j + (B - 1) * THREADS < to) take(std::integral_constant<int, B>());
#pragma unroll 1
  while (j < to) take(std::integral_constant<int, 1>());
  S all = mine.template result<S>(0);
  warp_join(all, 1);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = all.pack();
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < WARPS; w++) all.join(S::unpack(of_warp[w]));
  s.part[blockIdx.y * s.groups + g] = all.pack();
}
