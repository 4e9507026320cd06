/* reduce_lines.cuh -- what the kernels of rows and of columns share: accumulators, packets of 8 elements and how they are summed, the end
 * of a result, parts of a result and their merge. What is reduced, and in which order: reduce_lines.cu. */
#pragma once
#include "cuda_backend.h"
#include "kit/larger.cuh"
#include "kit/offsets.cuh"
#include "kit/sm90.cuh"
#include "kit/vector.cuh"

/* RESIDENT: blocks on an SM; MOST_PARTS: blocks of a cluster; MOST_LINES: of a thread that takes whole columns; MOST_TERMS: of one
 * running sum, the rest is a tree over threads, and blocks where parts are needed */
enum { V = 8, MAX_KEPT = 4, THREADS = 256, RESIDENT = 4, MOST_PARTS = 8, MOST_LINES = 64, MOST_TERMS = 4096 };
/* |x| and -x (for min) are bit masks on input, and for min on output. Squares are summed in double, because they overflow f32.
 * PLACE: a 64-bit key whose upper word is ordered as x (NaN largest) and whose lower word falls with x's number, so that the
 * largest key is the first of the largest elements. */
enum { SUM, SUM_SQUARES, PRODUCT, MAXIMUM, PLACE };
template <int kind, int whole> struct accumulator { typedef float type; };
template <int whole> struct accumulator<SUM_SQUARES, whole> { typedef double type; };
template <int whole> struct accumulator<PLACE, whole> { typedef uint64_t type; };
template <> struct accumulator<SUM, QN_F64> { typedef double type; };
template <> struct accumulator<SUM, QN_I32> { typedef int64_t type; };

__host__ __device__ constexpr int bytes_of(uint32_t dtype) { return dtype == QN_F64 ? 8 : dtype == QN_F32 || dtype == QN_I32 ? 4 : 2; }

/* Eight raw elements. */
template <int whole> struct eight : packet<whole> { typedef float number; };
template <class T> struct eight_of {
  typedef T number;
  T v[V];

  __device__ __forceinline__ void load(const void *base, uint32_t, int64_t at, int n, float)
  {
#pragma unroll
    for (int k = 0; k < (int)(sizeof v / 16); k++)
      ((uint4 *)v)[k] = n > 0 ? ((const uint4 *)((const T *)base + at))[k] : make_uint4(0, 0, 0, 0);
  }
  __device__ __forceinline__ void open(T (&to)[V]) const
  {
#pragma unroll
    for (int i = 0; i < V; i++) to[i] = v[i];
  }
};
template <> struct eight<QN_F64> : eight_of<double> {};
template <> struct eight<QN_I32> : eight_of<int32_t> {};

struct lines {
  const void *x;
  void    *y;
  void    *partial;                       /* [part][result], accumulators */
  uint32_t *tickets;                      /* for each group of results: how many of its parts are done */
  uint32_t keep, flip;                    /* masks on x: and, exclusive or */
  float    none;                          /* the neutral element */
  uint32_t x_dtype, y_dtype, op;
  int32_t  parts, clustered;              /* clustered: the parts of a result form a cluster */
  bool     ordered;                       /* element numbers increase from run to run */
  int64_t  results, count;                /* results; elements reduced to each */
  int64_t  length, repeat_stride;         /* a result's elements are `runs` runs of this length, at this stride */
  uint32_t runs;
  int64_t  line_stride;                   /* columns: between elements of a run */
  int64_t  items;                         /* packets of 8 (rows) or lines (columns) of a result */
  uint32_t run;                           /* ... of one run */
  uint32_t share;                         /* columns: lines of a run that one part takes */
  uint32_t number_unit, number_repeat;    /* steps of the row-major element number within a run, and between runs */
  /* columns: threads along a line; rows: threads of a row. A power of two up to 32, or all of the block */
  uint32_t lanes;
  int32_t  rank;                          /* of the kept dims, innermost first */
  uint32_t dim[MAX_KEPT];
  int64_t  x_stride[MAX_KEPT], y_stride[MAX_KEPT];

  __device__ int64_t place(uint32_t i, const int64_t *stride) const { return offset_of(i, rank, dim, stride); }
};

/* A thread's best so far for PLACE, if its element numbers increase: comparing values costs a third of comparing keys. */
struct found { float value; uint32_t number; };
template <class A> constexpr bool finds = false;
template <> constexpr bool finds<found> = true;

template <int kind, class A> __device__ __forceinline__ A join(A a, A b)
{
  return kind == PRODUCT ? a * b : kind == MAXIMUM ? (A)larger((float)a, (float)b) : kind == PLACE ? max(a, b) : a + b;
}
__device__ __forceinline__ float masked(const lines &l, float v) { return __uint_as_float((__float_as_uint(v) & l.keep) ^ l.flip); }
__device__ __forceinline__ uint64_t key_of(float v, uint32_t number)
{
  uint32_t bits = __float_as_uint(v + 0.f), order = bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);       /* -0 becomes 0 */
  return (uint64_t)(v == v ? order : ~0u) << 32 | ~number;
}
/* Element v with this number as an accumulator. */
template <int kind, class A> __device__ __forceinline__ A seen(const lines &l, float v, uint32_t number)
{
  v = masked(l, v);
  if constexpr (kind == PLACE) return key_of(v, number);
  return kind == SUM_SQUARES ? (A)v * (A)v : (A)v;
}
template <int kind, class A> __device__ __forceinline__ A seen(const lines &l, double v, uint32_t)
{
  return l.op == QN_OP_REDUCE_NORM1 ? fabs(v) : v;
}
template <int kind, class A> __device__ __forceinline__ A seen(const lines &, int32_t v, uint32_t) { return v; }
template <int kind, class A> __device__ __forceinline__ A nothing()
{
  if constexpr (kind == MAXIMUM) return -INFINITY;
  return A(kind == PRODUCT);
}
template <int kind, class A, class T> __device__ __forceinline__ void see(A &sum, const lines &l, T v, uint32_t number)
{
  sum = join<kind>(sum, seen<kind, A>(l, v, number));
}
template <int kind> __device__ __forceinline__ void see(found &best, const lines &l, float v, uint32_t number)
{
  v = masked(l, v);
  if (!(v <= best.value) & best.value == best.value) best = { v, number };       /* NaN beats all but NaN */
}
template <int kind, class A> __device__ __forceinline__ A join_warp(A v, int lanes)
{
  for (int o = lanes / 2; o; o >>= 1) v = join<kind>(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

/* The mean of numbers whose sum overflows, or among which is an infinity or a NaN. Inlined: a call, though never made, costs 5%. */
__device__ __forceinline__ double far_mean(const lines &l, uint32_t result)
{
  constexpr double UNIT = 0x1p-64;
  constexpr int BLOCK = 512;              /* two short sums round less than one long one */
  const int64_t from = l.place(result, l.x_stride);
  double sum = 0;
#pragma unroll 1
  for (uint32_t run = 0; run < l.runs; run++)
#pragma unroll 1
    for (int64_t i = 0; i < l.length && sum == sum; i += BLOCK) {
      double of_block = 0;
#pragma unroll 1
      for (int64_t j = i; j < l.length && j < i + BLOCK; j++)
        of_block += element_load<double>(l.x, from + run * l.repeat_stride + j * l.line_stride, l.x_dtype) * UNIT;
      sum += of_block;
    }
  return sum / (double)l.count / UNIT;
}

template <int kind, class A> __device__ __forceinline__ void finish(const lines &l, uint32_t result, A v)
{
  if (l.op == QN_OP_REDUCE_MEAN) v /= (A)l.count;
  if constexpr (kind == SUM)
    if (l.op == QN_OP_REDUCE_MEAN && !(fabs(v) < INFINITY)) v = (A)far_mean(l, result);
  if (l.op == QN_OP_REDUCE_NORM2) v = sqrt(v);
  element_store(l.y, l.place(result, l.y_stride), l.y_dtype, l.flip ? -v : v);
}
template <int kind> __device__ __forceinline__ void finish(const lines &l, uint32_t result, uint64_t v)
{
  element_store_wrapped(l.y, l.place(result, l.y_stride), l.y_dtype, (uint32_t)~v);
}
template <int kind> __device__ __forceinline__ void finish(const lines &l, uint32_t result, int64_t v)
{
  element_store_wrapped(l.y, l.place(result, l.y_stride), l.y_dtype, v);
}

/* Divides in 32 bits where a fits: short rows would notice the cost of a 64-bit division. */
__device__ __forceinline__ int64_t quotient(int64_t a, uint32_t b) { return a >> 32 ? a / b : (int64_t)((uint32_t)a / b); }

/* Iterates over a result's items first, first + step, ... below end. unit: stride between items of a run; holds: elements of an item. */
struct walk {
  int64_t  at, advance, wrap;             /* offset of the next item; its steps within a run, and on leaving one */
  uint32_t number, number_advance, number_wrap;     /* number of its first element */
  uint32_t place, place_step, per_run;    /* its place in its run */
  int64_t  left;

  __device__ walk(const lines &l, int64_t from, int64_t unit, uint32_t holds, int64_t first, int64_t end, uint32_t step)
  {
    uint32_t run = (uint32_t)quotient(first, l.run), run_step = step / l.run, apart = holds * l.number_unit;
    per_run = l.run;
    place = (uint32_t)(first - (int64_t)run * per_run);
    place_step = step - run_step * per_run;
    at = from + run * l.repeat_stride + place * unit;
    advance = run_step * l.repeat_stride + place_step * unit;
    wrap = l.repeat_stride - per_run * unit;
    number = run * l.number_repeat + place * apart;
    number_advance = run_step * l.number_repeat + place_step * apart;
    number_wrap = l.number_repeat - per_run * apart;
    left = first < end ? quotient(end - first + step - 1, step) : 0;
  }
  __device__ __forceinline__ void next()
  {
    at += advance;
    number += number_advance;
    place += place_step;
    if (place >= per_run) place -= per_run, at += wrap, number += number_wrap;
  }
};

/* loads in flight */
template <int whole, class A> constexpr int batch = whole == 0 || whole == QN_F64 ? 2 : whole == QN_F32 || sizeof(A) == 8 ? 4 : 8;

/* Adds a thread's items to 8 sums. rows: an item is a packet of a run; columns: a line, columns_n elements of which are the thread's. */
template <int kind, int whole, bool columns, class A>
__device__ __forceinline__ void gather(A (&sum)[V], const lines &l, walk w, int columns_n)
{
  constexpr int BATCH = whole == QN_F32 && sizeof(A) == 8 ? 2 : batch<whole, A>;          /* fewer registers, more resident blocks */
  for (; w.left > 0; w.left -= BATCH) {
    eight<whole> x[BATCH];
    int n[BATCH];
    uint32_t number[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      n[b] = b >= w.left ? 0 : columns ? columns_n : whole ? (int)V : (int)min((int64_t)V, l.length - (int64_t)w.place * V);
      x[b].load(l.x, l.x_dtype, w.at, n[b], 0);
      number[b] = w.number;
      w.next();
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      typename eight<whole>::number v[V];
      x[b].open(v);
      if (n[b] > 0)
#pragma unroll
        for (int i = 0; i < V; i++)
          if (whole || i < n[b]) see<kind>(sum[i], l, v[i], number[b] + (columns || finds<A> ? 0 : i * l.number_unit));
    }
  }
}

/* Adds a batch of lines, `apart` bytes from one another. ends: only `left` of them exist; the last is loaded again instead of
 * testing before each load, which would keep the loads from being in flight together. */
template <int kind, int whole, bool ends, class A>
__device__ __forceinline__ void gather_batch(A (&sum)[V], const lines &l, const char *at, int64_t apart, int left, uint32_t number,
                                             uint32_t number_step)
{
  constexpr int BATCH = batch<whole, A>;
  eight<whole> x[BATCH];
#pragma unroll
  for (int b = 0; b < BATCH; b++) {
    x[b].load(at, whole, 0, V, 0);
    if (!ends || b + 1 < left) at += apart;
  }
#pragma unroll
  for (int b = 0; b < BATCH; b++) {
    typename eight<whole>::number v[V];
    x[b].open(v);
#pragma unroll
    for (int i = 0; i < V; i++)
      see<kind>(sum[i], l, ends && b >= left ? (typename eight<whole>::number)l.none : v[i], number + b * number_step);
  }
}

/* Adds lines begin, begin + step, ... below end of each run. */
template <int kind, int whole, class A>
__device__ __forceinline__ void gather_lines(A (&sum)[V], const lines &l, int64_t from, uint32_t begin, uint32_t end, uint32_t step)
{
  constexpr int BATCH = batch<whole, A>, bytes = bytes_of(whole);
  int64_t apart = step * l.line_stride * bytes;
  uint32_t number_step = step * l.number_unit;
#pragma unroll 1
  for (uint32_t run = 0; run < l.runs; run++) {
    const char *at = (const char *)l.x + (from + run * l.repeat_stride + begin * l.line_stride) * bytes;
    uint32_t number = run * l.number_repeat + begin * l.number_unit;
    int left = begin < end ? (int)((end - begin + step - 1) / step) : 0;
#pragma unroll 1
    for (; left >= BATCH; left -= BATCH, at += BATCH * apart, number += BATCH * number_step)
      gather_batch<kind, whole, false>(sum, l, at, apart, left, number, number_step);
    if (left > 0) gather_batch<kind, whole, true>(sum, l, at, apart, left, number, number_step);
  }
}

/* Initialises the sums and lets `into` add a thread's items. PLACE, if ordered: via struct found. any: the thread has items;
 * number: of its first element; apart: difference of the element numbers of adjacent sums. */
template <int kind, int whole, class A, class F>
__device__ __forceinline__ void collect(A (&sum)[V], const lines &l, bool any, uint32_t number, uint32_t apart, F into)
{
  if constexpr (kind == PLACE && whole != 0) {
    if (l.ordered) {
      found best[V];
#pragma unroll
      for (int i = 0; i < V; i++) best[i] = { -INFINITY, number };
      into(best);
#pragma unroll
      for (int i = 0; i < V; i++) sum[i] = any ? key_of(best[i].value, best[i].number + i * apart) : 0;
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < V; i++) sum[i] = nothing<kind, A>();
  into(sum);
}

/* ---- parts of a result ------------------------------------------------------------------------------------- */

/* Is this block the last of all parts of its results to finish? */
__device__ __forceinline__ bool last_part(const lines &l, uint32_t ticket)
{
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();                      /* for the whole block's writes, ordered by __syncthreads */
    last = atomicAdd(&l.tickets[ticket], 1) + 1 == (uint32_t)l.parts;
    if (last) l.tickets[ticket] = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

/* Merges the parts of n <= blockDim.x results: a group of threads takes every groups-th part; then a tree over the groups. */
template <int kind, class A> __device__ void join_parts(const lines &l, uint32_t first, int n, A *shared)
{
  int wide = 1;
  while (wide < n) wide *= 2;
  int groups = blockDim.x / wide, t = threadIdx.x % wide, g = threadIdx.x / wide;
  A v = nothing<kind, A>();
  if (t < n) {
    const A *from = (const A *)l.partial + first + t;
#pragma unroll 8
    for (int p = g; p < l.parts; p += groups) v = join<kind>(v, __ldcg(&from[(int64_t)p * l.results]));
  }
  while (groups > 1) {
    groups /= 2;
    __syncthreads();
    shared[threadIdx.x] = v;
    __syncthreads();
    if (g < groups) v = join<kind>(v, shared[threadIdx.x + groups * wide]);
  }
  if (g == 0 && t < n) finish<kind>(l, first + t, v);
}
