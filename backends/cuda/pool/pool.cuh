/* pool.cuh -- shared by the pooling engines: window geometry of up to three spatial dims in 32-bit arithmetic, and the grid of work units.
 *
 *   max        y = the largest tap inside x; NaN wins, then the first of equals; no tap inside: -Inf
 *   average    y = sum of taps inside x / divisor, 0 where there is none
 *   lp         y = (sum of |tap|^p)^(1/p)
 *   gradients  dx[x] = the sum over windows of: dy, where the maximum came from x, by its index (u8: tap number; i32, i64: offset in the
 *              plane) or recomputed from x; of those that cover x, dy / divisor; or lp's dy sign(x) (|x| / y)^(p - 1), 0 where y is 0
 *
 * Windows either have a fixed size and step or are adaptive: in each dim, window o covers floor(o in / out) up to ceil((o + 1) in
 * / out). Adaptive windows that all have the same size are treated as fixed ones. */
#pragma once
#include <cuda_pipeline_primitives.h>
#include "cuda_backend.h"
#include "engines.h"
#include "kit/dispatch.cuh"
#include "kit/divisor.h"
#include "kit/larger.cuh"
#include "kit/shared_memory.h"
#include "kit/words.cuh"

/* ---- raw elements of a dtype known at compile time ---------------------------------------------------------------- */

template <int dtype> constexpr int bytes_of = dtype == QN_F32 ? 4 : 2;
template <int dtype> using stored = std::conditional_t<dtype == QN_F32, uint32_t, uint16_t>;
/* One element, in the low bits of a word; that of a value. */
template <int dtype> __device__ __forceinline__ uint32_t element(const void *x, int64_t at) { return ((const stored<dtype> *)x)[at]; }
template <int dtype> __device__ __forceinline__ uint32_t closed(float v)
{
  return dtype == QN_F32 ? __float_as_uint(v) : dtype == QN_BF16 ? float_to_bf16(v) : float_to_f16(v);
}
template <int dtype> __device__ __forceinline__ void element_put(void *y, int64_t at, uint32_t h)
{
  ((stored<dtype> *)y)[at] = (stored<dtype>)h;
}
/* Element i of a word of one f32 or two 16-bit elements; such a word. */
template <int dtype> constexpr int per_word = dtype == QN_F32 ? 1 : 2;
template <int dtype> __device__ __forceinline__ float word_get(uint32_t w, int i)
{
  if (dtype == QN_F32) return __uint_as_float(w);
  if (dtype == QN_BF16) return __uint_as_float(i ? w & 0xffff0000u : w << 16);
  return f16_to_float((uint16_t)(i ? w >> 16 : w));
}
template <int dtype> __device__ __forceinline__ uint32_t word_of(const float *v)
{
  return dtype == QN_F32  ? __float_as_uint(v[0])
       : dtype == QN_BF16 ? pack_bf16(v[0], v[per_word<dtype> - 1])
                          : pack_f16(v[0], v[per_word<dtype> - 1]);
}
/* N neighbours in one access. */
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) several { T v[N]; };
template <int N> using words = several<uint32_t, N>;
template <int N> __device__ __forceinline__ words<N> load_words(const char *at, int64_t offset) { return *(const words<N> *)(at + offset); }
template <int dtype, int N> __device__ __forceinline__ float element_of(const words<N> &q, int i)
{
  return word_get<dtype>(q.v[i / per_word<dtype> % N], i % per_word<dtype>);
}

/* ---- staging in shared memory --------------------------------------------------------------------------------------- */

/* Begins to copy elements from..end (of `total`) to shared memory in aligned 16-byte words; returns the position of `from` there. */
template <int bytes, int threads>
__device__ __forceinline__ int stage_in(char *to, const void *base, int64_t from, int64_t end, int64_t total)
{
  constexpr int E = 16 / bytes;
  const int64_t begin = from / E * E;
  const char *x = (const char *)base + begin * bytes;
  const int words = (int)((end - begin + E - 1) / E), whole = (int)min((int64_t)words, (total - begin) / E);
  for (int i = threadIdx.x; i < whole; i += threads) __pipeline_memcpy_async(to + i * 16, x + i * 16, 16);
  /* the tail of the tensor that is no whole word */
  for (int i = whole * 16 + threadIdx.x; whole < words && i < (int)(total - begin) * bytes; i += threads) to[i] = x[i];
  return (int)(from - begin);
}

/* ---- geometry ---------------------------------------------------------------------------------------------------- */

struct pool {
  const void *x, *dy;
  void    *y, *dx, *indices;
  uint32_t dtype, index_dtype;
  int32_t  whole_indices;                 /* a vector of V indices is contiguous and aligned */
  int32_t  average, adaptive, include_pad;
  int32_t  channels_last;                 /* channels are contiguous: scalar units (V == 1) run along the channels */
  float    p;                             /* lp: the exponent */
  float    inverse[10];                   /* 1 / number of taps; [0] is 0 */
  uint32_t n, c, units, groups, splits;   /* groups: of V channels; units: of work, each done by `splits` threads */
  int32_t  band;                          /* outputs of one column that form one unit */
  int32_t  in[3], out[3], size[3], step[3], dilation[3], before[3], after[3];
  uint32_t count;                         /* planes; set by pool_wants_flat() */
  int64_t  x_stride[5], y_stride[5], dx_stride[5], index_stride[5];       /* N, C, spatial */
  cuda_divisor by_cell[4], by_step[3], by_out[3], by_extent[3];         /* cells: the grid of units, innermost first; extents: of x */
};

/* of a unit; the channel varies fastest where channels are contiguous, else the innermost extent */
struct place { uint32_t n, c; int o[3]; };

/* The image of a unit, and where in the grid it is. */
__device__ __forceinline__ uint32_t cell_of(const pool &p, uint32_t unit, uint32_t (&at)[4])
{
#pragma unroll
  for (int d = 0; d < 4; d++) unit = cuda_quotient(unit, p.by_cell[d], &at[d]);
  return unit;
}
template <int V> __device__ __forceinline__ place place_of(const pool &p, uint32_t unit)
{
  uint32_t at[4];
  unit = cell_of(p, unit, at);
  return V > 1 || p.channels_last ? place{ unit, at[0] * V, { (int)at[3], (int)at[2], (int)at[1] } }
                                  : place{ unit, at[3], { (int)at[2], (int)at[1], (int)at[0] } };
}

__device__ __forceinline__ int window_begin(const pool &p, int d, int o)
{
  return p.adaptive ? (int)cuda_quotient((uint32_t)o * p.in[d], p.by_out[d]) : o * p.step[d] - p.before[d];
}
__device__ __forceinline__ int window_size(const pool &p, int d, int o)
{
  return p.adaptive ? (int)cuda_quotient((uint32_t)(o + 1) * p.in[d] + p.out[d] - 1, p.by_out[d]) - window_begin(p, d, o) : p.size[d];
}

struct window { int begin[3], size[3]; };
__device__ __forceinline__ window window_of(const pool &p, const int o[3])
{
  window w;
#pragma unroll
  for (int d = 0; d < 3; d++) w.begin[d] = window_begin(p, d, o[d]), w.size[d] = window_size(p, d, o[d]);
  return w;
}

/* Number of taps along dim d that count towards the mean, for a window from `start` on. taps_beside: dilation 1 only. */
__device__ __forceinline__ int taps_beside(const pool &p, int d, int start, int size)
{
  return max(0, min(start + size, p.include_pad ? p.in[d] + p.after[d] : p.in[d]) - (p.include_pad ? start : max(start, 0)));
}
__device__ __forceinline__ int taps_of(const pool &p, int d, int start, int size)
{
  int n = 0;
  if (p.dilation[d] == 1) return taps_beside(p, d, start, size);
  for (int r = 0; r < size; r++) {
    int at = start + r * p.dilation[d];
    n += p.include_pad ? at < p.in[d] + p.after[d] : at >= 0 && at < p.in[d];
  }
  return n;
}
__device__ __forceinline__ float divisor_of(const pool &p, const window &w)
{
  float taps = 1;
#pragma unroll
  for (int d = 0; d < 3; d++) taps *= (float)taps_of(p, d, w.begin[d], w.size[d]);
  return taps;
}

/* Offset in the plane of a tap, from its number in the window. */
__device__ __forceinline__ int place_in_plane(const pool &p, const window &w, int tap)
{
  int q = tap / w.size[2], r2 = tap - q * w.size[2], r0 = q / w.size[1], r1 = q - r0 * w.size[1];
  return ((w.begin[0] + r0 * p.dilation[0]) * p.in[1] + w.begin[1] + r1 * p.dilation[1]) * p.in[2] + w.begin[2] + r2 * p.dilation[2];
}

/* Calls the visitor for the taps of a window that lie inside x, in row-major order, with their numbers. Of the rows, only every
 * p.splits-th from `split` on. */
template <int V, int whole, class F>
__device__ __forceinline__ void pool_taps(const pool &p, const place &at, const window &w, int split, F visitor)
{
  enum { AT_ONCE = 4 };
  int64_t base = at.n * p.x_stride[0] + at.c * p.x_stride[1];
  for (int r0 = 0; r0 < w.size[0]; r0++) {
    int z = w.begin[0] + r0 * p.dilation[0];
    for (int r1 = split; r1 < w.size[1]; r1 += p.splits) {
      int y = w.begin[1] + r1 * p.dilation[1];
      if ((unsigned)z >= (unsigned)p.in[0] || (unsigned)y >= (unsigned)p.in[1]) continue;
      int64_t row = base + z * p.x_stride[2] + y * p.x_stride[3];
      for (int r2 = 0; r2 < w.size[2]; r2 += AT_ONCE) {
        uint4 q[AT_ONCE];                 /* whole: raw, as loaded */
        float v[whole ? 1 : AT_ONCE][V];
        bool inside[AT_ONCE];
#pragma unroll
        for (int b = 0; b < AT_ONCE; b++) {
          int x = w.begin[2] + (r2 + b) * p.dilation[2];
          inside[b] = r2 + b < w.size[2] && (unsigned)x < (unsigned)p.in[2];
          if (!inside[b]) continue;
          if (whole) q[b] = *vector_place<whole ? whole : QN_F32>(p.x, row + x * p.x_stride[4]);
          else v[whole ? 0 : b][0] = element_load<float>(p.x, row + x * p.x_stride[4], dtype3(p.dtype));
        }
#pragma unroll
        for (int b = 0; b < AT_ONCE; b++) {
          if (!inside[b]) continue;
          if (whole) vector_open<whole ? whole : QN_F32>(v[0], 0, q[b]);
          visitor(v[whole ? 0 : b], (r0 * w.size[1] + r1) * w.size[2] + r2 + b);
        }
      }
    }
  }
}

/* The windows of dim d that may cover positions x..end-1; they do where x - window_begin is a multiple of the dilation. */
struct range { int begin, end; };
__device__ __forceinline__ range windows_over(const pool &p, int d, int x, int end)
{
  if (p.adaptive)                         /* the same formula with the roles of x and y exchanged */
    return { (int)cuda_quotient(x * p.out[d], p.by_extent[d]), (int)cuda_quotient(end * p.out[d] + p.in[d] - 1, p.by_extent[d]) };
  const int from = x + p.before[d] - (p.size[d] - 1) * p.dilation[d];
  return { from <= 0 ? 0 : (int)cuda_quotient(from + p.step[d] - 1, p.by_step[d]),
           min((int)cuda_quotient(end - 1 + p.before[d], p.by_step[d]) + 1, p.out[d]) };
}

/* ---- slow paths: a window once more, where its sum over- or underflowed ---------------------------------------------------- */

/* visit(value) for the taps of a window inside x; plane: offset of its plane in x. */
template <class F> __device__ __forceinline__ void taps_again(const pool &p, int64_t plane, const window &w, F visit)
{
#pragma unroll 1
  for (int i = 0; i < w.size[0] * w.size[1]; i++) {
    const int z = w.begin[0] + i / w.size[1] * p.dilation[0], y = w.begin[1] + i % w.size[1] * p.dilation[1];
    if ((unsigned)z >= (unsigned)p.in[0] || (unsigned)y >= (unsigned)p.in[1]) continue;
    const int64_t row = plane + z * p.x_stride[2] + y * p.x_stride[3];
#pragma unroll 1
    for (int r = 0; r < w.size[2]; r++) {
      const int x = w.begin[2] + r * p.dilation[2];
      if ((unsigned)x < (unsigned)p.in[2]) visit(element_load<float>(p.x, row + x * p.x_stride[4], dtype3(p.dtype)));
    }
  }
}

/* The mean of a window whose sum overflows in float though its mean does not, in double. Inlined: a call, though never made, costs
 * kernels 5%. */
__device__ __forceinline__ float pool_far_mean(const pool &p, int64_t plane, int o0, int o1, int o2)
{
  const int o[3] = { o0, o1, o2 };
  const window w = window_of(p, o);
  double sum = 0;
  taps_again(p, plane, w, [&](float v) { sum += v; });
  return (float)(sum / fmax((double)divisor_of(p, w), 1.));
}
/* Is a mean not finite, so that pool_far_mean is to be asked? f16 has no such sums. */
template <int dtype> __device__ __forceinline__ bool pool_far(float mean) { return dtype != QN_F16 && !(fabsf(mean) < INFINITY); }
/* Mends those of the first `many` means that are not finite, by far(i). */
template <int dtype, int N, class F> __device__ __forceinline__ void pool_mend(float (&mean)[N], int many, F far)
{
  bool any = false;
#pragma unroll
  for (int i = 0; i < N; i++) any |= pool_far<dtype>(mean[i]);
  if (!any) return;
#pragma unroll 1
  for (int i = 0; i < many; i++) {        /* one copy of the code; constant indices keep the means in registers */
    float v = 0;
#pragma unroll
    for (int e = 0; e < N; e++) v = e == i ? mean[e] : v;
    if (!pool_far<dtype>(v)) continue;
    v = far(i);
#pragma unroll
    for (int e = 0; e < N; e++) mean[e] = e == i ? v : mean[e];
  }
}

/* ---- sweeps ---------------------------------------------------------------------------------------------------- */

/* SWEEP adjacent windows of stride 1 along a line, whose common part is reduced once. */
enum { SWEEP = 5 };                       /* windows a thread; odd, so that neighbouring lanes read different banks */

/* Reduces with `join`, from `none` on, SWEEP windows of `size` >= SWEEP places; window k begins at first + k. Places outside
 * 0..extent-1 are skipped. load: reads the V values of one place. */
template <int V, class T, class L, class J>
__device__ __forceinline__ void sweep(T (&f)[SWEEP][V], int first, int size, int extent, T none, L load, J join)
{
  enum { AT_ONCE = 3 };
  const auto join_all = [&](T (&a)[V], const T (&b)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) a[i] = join(a[i], b[i]);
  };
  const auto place = [&](T (&v)[V], int at, bool within) {
    if (within && (unsigned)at < (unsigned)extent) return load(v, at);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = none;
  };
  T all[V], left[SWEEP - 1][V], right[SWEEP - 1][V];
#pragma unroll
  for (int k = 0; k < SWEEP - 1; k++) place(left[k], first + k, true), place(right[k], first + size + k, true);
#pragma unroll
  for (int i = 0; i < V; i++) all[i] = none;
#pragma unroll 1
  for (int at = SWEEP - 1; at < size; at += AT_ONCE) {
    T v[AT_ONCE][V];
#pragma unroll
    for (int b = 0; b < AT_ONCE; b++) place(v[b], first + at + b, at + b < size);
#pragma unroll
    for (int b = 0; b < AT_ONCE; b++) join_all(all, v[b]);
  }
#pragma unroll
  for (int k = 1; k < SWEEP - 1; k++) join_all(left[SWEEP - 2 - k], left[SWEEP - 1 - k]), join_all(right[k], right[k - 1]);
#pragma unroll
  for (int k = 0; k < SWEEP; k++) {
#pragma unroll
    for (int i = 0; i < V; i++) f[k][i] = all[i];
    if (k < SWEEP - 1) join_all(f[k], left[k]);
    if (k > 0) join_all(f[k], right[k - 1]);
  }
}

static inline bool sweep_takes(const pool &p)
{
  bool takes = !p.adaptive;
  for (int d = 1; d < 3; d++) takes = takes && p.size[d] >= SWEEP && p.step[d] == 1 && p.dilation[d] == 1;
  return takes;
}

/* ---- host: what all pooling engines keep and launch ---------------------------------------------------------- */

struct pool_tensors { int32_t x, y, dy, dx, indices; };     /* value numbers of the request; -1: none */
typedef const void *pool_kernel;

/* P: a kernel's argument, a pool or derived from it. */
template <class P> struct pool_state {
  P        p;
  pool_tensors of;
  pool_kernel kernel;
  int      how;                           /* of a gradient (pool_gradient.cuh) */
  uint32_t blocks, threads, shared;
  double   moved;                         /* bytes of the op's tensors */

  /* What else than these the argument takes from a launch; a state has its own where there is something. */
  void bind(P *, const qn_launch *) const {}
};

template <class P, class S> static qn_status pool_run(const qn_prepared *prepared, const qn_launch *launch)
{
  const S *s = (const S *)prepared->state;
  const auto pointer = [&](int32_t number) { return number < 0 ? nullptr : launch->ptr[number]; };
  P p = s->p;
  p.x = pointer(s->of.x), p.y = pointer(s->of.y), p.dy = pointer(s->of.dy), p.dx = pointer(s->of.dx), p.indices = pointer(s->of.indices);
  s->bind(&p, launch);
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(s->kernel, s->blocks, s->threads, arguments, s->shared, (cudaStream_t)launch->stream),
                    prepared->engine->name);
}
template <class P> static qn_status pool_build(const qn_request *, qn_prepared *prepared)
{
  const pool_state<P> *s = (const pool_state<P> *)prepared->state;
  return s->shared > 48 << 10 ? cuda_allow_shared(s->kernel) : QN_OK;
}

/* Keeps a state whose kernel takes `threads` threads, in blocks of `block`, and moves `rate` bytes a ns where it has many. */
template <class P> static inline qn_status pool_keep(pool_state<P> *s, double threads, uint32_t block, double rate, qn_prepared *out)
{
  if (threads > INT32_MAX) return qn_refuse(out, "fewer than 2^31 threads", s->of.dx < 0 ? "x" : "dx", "", "%s", "more");
  s->blocks = (uint32_t)qn_ceil_div((int64_t)threads, (int64_t)block), s->threads = block;
  out->estimate = 3000 + s->moved / rate;
  return cuda_keep(out, s, sizeof *s);
}

template <class P, class S = pool_state<P>>
static constexpr qn_engine pool_row(const char *name, uint32_t op, qn_status (*prepare)(const qn_request *, qn_prepared *))
{
  return { name, op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, prepare,
           pool_build<P>, pool_run<P, S>, cuda_release };
}

/* The rows of an engine for the forward ops, for their gradients, but lp. */
#define POOL_ROWS(P, name, prepare)                                                                  \
  pool_row<P>(name, QN_OP_POOL_MAX, prepare), pool_row<P>(name, QN_OP_POOL_AVERAGE, prepare),        \
    pool_row<P>(name, QN_OP_POOL_ADAPTIVE_MAX, prepare), pool_row<P>(name, QN_OP_POOL_ADAPTIVE_AVERAGE, prepare)
#define POOL_BACKWARD_ROWS(P, name, prepare)                                                                   \
  pool_row<P>(name, QN_OP_POOL_MAX_BACKWARD, prepare), pool_row<P>(name, QN_OP_POOL_AVERAGE_BACKWARD, prepare), \
    pool_row<P>(name, QN_OP_POOL_ADAPTIVE_MAX_BACKWARD, prepare), pool_row<P>(name, QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD, prepare)

/* ---- host: geometry ---------------------------------------------------------------------------------------- */

enum { LP_MOST = 64 };                    /* largest p: 2^p and sums of it stay finite in f32 */

static inline void pool_strides(const qn_value *v, int64_t *stride)
{
  for (int d = 0; d < v->rank; d++) stride[d < 2 ? d : d + 5 - v->rank] = v->stride[d];
}

/* Are all strides but the channel's multiples of v, so that vectors of v channels are aligned? */
static inline bool pool_steps(const int64_t *stride, int v)
{
  for (int d = 0; d < 5; d++)
    if (d != 1 && stride[d] % v) return false;
  return true;
}

static inline bool pool_is_adaptive(uint32_t op)
{
  return op == QN_OP_POOL_ADAPTIVE_MAX || op == QN_OP_POOL_ADAPTIVE_AVERAGE || op == QN_OP_POOL_ADAPTIVE_MAX_BACKWARD ||
         op == QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD;
}
static inline bool pool_is_average(uint32_t op)
{
  return op == QN_OP_POOL_AVERAGE || op == QN_OP_POOL_AVERAGE_BACKWARD || op == QN_OP_POOL_ADAPTIVE_AVERAGE ||
         op == QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD;
}
/* Refuses all but packed NCHW planes; the first `aligned` of x, y, dy, dx and the indices must be aligned to 16 bytes. */
static inline qn_status pool_wants_planes(const qn_request *r, const pool_tensors &of, int aligned, qn_prepared *out)
{
  const int32_t value[] = { of.x, of.y, of.dy, of.dx, of.indices };
  for (int i = 0; i < 5; i++) {
    if (value[i] < 0) continue;
    const qn_value *v = &r->value[value[i]];
    if (!qn_is_packed(v)) return qn_refuse(out, "packed planes", "x", "nchw", "%s", "other strides");
    if (i < aligned && v->align < 16) return qn_refuse(out, "16-byte alignment", "x", "16", "%u", v->align);
  }
  return QN_OK;
}

/* Geometry of dim d from attribute entry `from`; false: too large for 32-bit arithmetic. */
static inline bool pool_dim(pool *p, int d, const qn_pool *attr, int from, int64_t in, int64_t out)
{
  int64_t size = attr->window[from] ? attr->window[from] : in, step = attr->stride[from] ? attr->stride[from] : size;
  int64_t before = attr->pad_before[from], after = attr->pad_after[from], dilation = attr->dilation[from];
  if (in + before + after >= 1 << 29 || size * dilation > 1 << 29 || step > 1 << 29 || out * step > 1 << 30) return false;
  p->in[d] = (int32_t)in, p->out[d] = (int32_t)out, p->size[d] = (int32_t)size, p->step[d] = (int32_t)step;
  p->dilation[d] = (int32_t)dilation, p->before[d] = (int32_t)before, p->after[d] = (int32_t)after;
  return true;
}
/* Adaptive dim: windows of one size, or (p->adaptive) of sizes that differ by at most one from it. */
static inline bool pool_share(pool *p, int d, int64_t in, int64_t out)
{
  if (in >= 1 << 29 || out >= 1 << 29 || (in + 1) * (out + 1) > INT32_MAX) return false;
  p->in[d] = (int32_t)in, p->out[d] = (int32_t)out, p->size[d] = p->step[d] = (int32_t)qn_ceil_div(in, out);
  p->adaptive |= in % out != 0;
  return true;
}

/* The geometry of a pooling from x to y; false: too large (an offset in a plane must fit 31 bits). */
static inline bool pool_fill(pool *p, const qn_node *op, const qn_value *x, const qn_value *y)
{
  const qn_pool *attr = pool_is_adaptive(op->op) ? nullptr : (const qn_pool *)op->attr;
  if (x->dim[0] > INT32_MAX || x->dim[1] > INT32_MAX) return false;
  p->dtype = x->dtype;
  p->n = (uint32_t)x->dim[0];
  p->c = (uint32_t)x->dim[1];
  p->splits = 1;
  p->average = pool_is_average(op->op);
  if (attr) p->include_pad = attr->include_pad != 0, p->p = (float)attr->p;
  for (int taps = 1; taps < 10; taps++) p->inverse[taps] = 1 / (float)taps;
  for (int d = 0; d < 3; d++) {
    int from = d - (5 - x->rank);
    p->in[d] = p->out[d] = p->size[d] = p->step[d] = p->dilation[d] = 1;
    if (from >= 0 &&
        !(attr ? pool_dim(p, d, attr, from, x->dim[2 + from], y->dim[2 + from]) : pool_share(p, d, x->dim[2 + from], y->dim[2 + from])))
      return false;
    p->by_out[d] = cuda_divide_by(p->out[d]), p->by_extent[d] = cuda_divide_by(p->in[d]);
  }
  pool_strides(x, p->x_stride);
  pool_strides(y, p->y_stride);
  p->channels_last = p->c > 1 && p->x_stride[1] == 1 && p->y_stride[1] == 1;
  return (double)p->in[0] * p->in[1] * p->in[2] <= INT32_MAX;
}

/* Reads an op that has these tensors: its dtype, of which the core has checked that all float operands share it, and the geometry. */
template <class P> static inline qn_status pool_read(pool_state<P> *s, const pool_tensors &of, const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const char *const name = of.dx < 0 ? "x" : "dx";
  const qn_value *x = &r->value[of.x < 0 ? of.dx : of.x], *y = &r->value[of.dx < 0 ? of.y : of.dy];
  s->of = of;
  for (int i = 0; i < op->first[op->n_roles]; i++)
    s->moved += (double)qn_elements(&r->value[op->arg[i]]) * (double)qn_kit_bytes(r->value[op->arg[i]].dtype);
  if (x->dtype != QN_F32 && x->dtype != QN_F16 && x->dtype != QN_BF16)
    return qn_refuse(out, "dtypes", name, "f16, bf16 or f32", "%s", qn_kit_name(x->dtype));
  if (!pool_fill(&s->p, op, x, y)) return qn_refuse(out, "extents below 2^29, planes below 2^31", name, "", "%s", "more");
  if (of.indices >= 0) s->p.index_dtype = r->value[of.indices].dtype;
  if ((op->op == QN_OP_POOL_LP || op->op == QN_OP_POOL_LP_BACKWARD) && s->p.p > LP_MOST)
    return qn_refuse(out, "powers that are floats", "p", "at most 64", "%g", s->p.p);
  return QN_OK;
}
/* The same of a forward op, all of which have the same roles. */
template <class P> static inline qn_status pool_read(pool_state<P> *s, const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const bool maxima = op->op == QN_OP_POOL_MAX || op->op == QN_OP_POOL_ADAPTIVE_MAX;
  return pool_read(s, { qn_role(op, QN_ROLE_POOL_MAX_X), qn_role(op, QN_ROLE_POOL_MAX_Y), -1, -1,
                        maxima ? qn_role(op, QN_ROLE_POOL_MAX_INDICES) : -1 }, r, out);
}

/* Size and step of square windows as two digits, e.g. 32, with any padding; 0: not square, dilated, or too large. */
static inline int square_step(const pool *p)
{
  bool square = p->size[1] == p->size[2] && p->step[1] == p->step[2] && p->dilation[1] == 1 && p->dilation[2] == 1;
  return square && p->size[1] < 10 && p->step[1] < 10 ? 10 * p->size[1] + p->step[1] : 0;
}
/* Size, step and padding of square windows as three digits, e.g. 321; 0: padding of two widths too. */
static inline int square_of(const pool *p)
{
  return p->before[1] == p->before[2] && p->before[1] < 10 && square_step(p) ? 10 * square_step(p) + p->before[1] : 0;
}

/* Have all windows the same divisor? */
static inline bool pool_even(const pool *p)
{
  bool even = !p->adaptive;
  for (int d = 0; d < 3; d++) {
    const int64_t reach = (p->out[d] - 1) * (int64_t)p->step[d] + (p->size[d] - 1) * (int64_t)p->dilation[d];
    even &= p->include_pad ? reach < p->in[d] + p->before[d] + p->after[d] : p->before[d] == 0 && reach < p->in[d];
  }
  return even;
}

/* Folds a leading spatial dim with 1-wide windows into the planes. Indices that are tap numbers (u8) stay valid, indices that are
 * offsets in the volume (`places`) do not; false: the dim cannot be folded. */
static inline bool pool_fold(pool *p, bool places)
{
  bool several = p->in[0] > 1;
  if (p->size[0] != 1 || p->before[0] != 0 || p->in[0] != p->out[0] || (several && (places || p->step[0] != 1))) return false;
  p->in[0] = p->out[0] = 1;
  return true;
}

/* Packed planes, and windows within one; counts the planes. by_extent[0] still divides by a channel's, through which indices count. */
static inline qn_status pool_wants_flat(pool *p, const qn_request *r, const pool_tensors &of, int aligned, bool places, qn_prepared *out)
{
  const char *const name = of.dx < 0 ? "x" : "dx";
  const qn_status status = pool_wants_planes(r, of, aligned, out);
  if (status) return status;
  if (!pool_fold(p, places)) return qn_refuse(out, "windows within a plane", name, "depth 1", "depth %d", p->size[0]);
  const int64_t planes = qn_elements(&r->value[of.x < 0 ? of.dx : of.x]) / ((int64_t)p->in[1] * p->in[2]);
  if (planes > INT32_MAX) return qn_refuse(out, "fewer than 2^31 planes", name, "", "%lld", (long long)planes);
  p->count = (uint32_t)planes;
  return QN_OK;
}

/* Channels per vector (V): 16 bytes of them if every layout allows it, else 1. *whole: the dtype if vectorised, else 0. */
static inline int pool_channels(const pool *p, const int64_t *const stride[], int n, uint32_t align, uint32_t *whole)
{
  int v = p->dtype == QN_F32 ? 4 : 8;
  bool all = p->c > 1 && p->c % v == 0 && align >= 16;
  for (int t = 0; t < n; t++) all = all && stride[t][1] == 1 && pool_steps(stride[t], v);
  *whole = all ? p->dtype : 0;
  return all ? v : 1;
}

/* One unit for each cell of a grid in each image, innermost extent first; returns how many: 2^31 are too many. */
static inline double pool_units(pool *p, const int64_t cells[4])
{
  double units = (double)p->n;
  for (int d = 0; d < 4; d++) units *= (double)cells[d], p->by_cell[d] = cuda_divide_by(cells[d]);
  p->units = units > INT32_MAX ? 0 : (uint32_t)units;
  return units;
}
/* The same for v channels of each cell of a grid of these extents, as place_of() reads it. */
static inline double pool_units(pool *p, int v, const int32_t extent[3])
{
  p->groups = (uint32_t)qn_ceil_div(p->c, v);
  const int64_t last[4] = { p->groups, extent[2], extent[1], extent[0] }, first[4] = { extent[2], extent[1], extent[0], p->groups };
  return pool_units(p, v > 1 || p->channels_last ? last : first);
}
