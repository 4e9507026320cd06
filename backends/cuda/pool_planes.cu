/* pool_planes.cu -- pooling of packed f16, bf16 and f32 planes (NCHW): a block brings whole planes, or a band of one, to shared
 * memory in 16-byte loads, and takes its windows from there.
 *
 *   max       y = the largest tap inside x, NaN above all, the first of equals; no tap inside: -Inf
 *   average   y = sum of taps inside x / divisor, 0 where none is
 *
 * small: square windows of SIZE every STEP, known to the compiler: a thread takes STRIP outputs of a column, and what two of
 * them share once. other: any window; up to 32 lanes take the columns of one and join what they found. */
#include "cuda_backend.h"
#include "engines.h"
#include "vector.cuh"

enum { THREADS = 256, STRIP = 4, BATCH = 4, STAGE = 26 << 10, STAGE_MOST = 96 << 10 };
enum { MAX, MAX_INDEX, AVERAGE };

struct planes {
  const void *x;
  void    *y, *indices;
  uint32_t index_dtype;
  int32_t  include_pad;
  int32_t  h, w, oh, ow, size[2], step[2], dilation[2], before[2], after[2];
  int64_t  total;                         /* elements of x */
  uint32_t count, per_block;              /* planes */
  int32_t  bands, band;                   /* of a plane, one block each; output rows of one */
  int32_t  lanes;
};

/* What was found of a window so far, and where: its tap's number. */
template <int mode> struct found {
  float v;
  int   tap;

  __device__ found() : v(mode == AVERAGE ? 0.f : -INFINITY), tap(-1) {}
  __device__ __forceinline__ void take(float a, int at)
  {
    if (mode == AVERAGE) v += a;
    else if (mode == MAX) v = v >= a || v != v ? v : a;
    else if (tap < 0 || a > v || (a != a && v == v)) v = a, tap = at;
  }
  /* Taps of another, of which some may come before ours. */
  __device__ __forceinline__ void join(float a, int at)
  {
    if (mode != MAX_INDEX) take(a, at);
    else if (at >= 0 && (tap < 0 || a > v || (a != a && v == v) || ((a == v || (a != a && v != v)) && at < tap))) v = a, tap = at;
  }
};

template <class T> __device__ __forceinline__ float tap_value(const T *s, int i);
struct bf16_bits { uint16_t h; };
struct f16_bits { uint16_t h; };
template <> __device__ __forceinline__ float tap_value(const float *s, int i) { return s[i]; }
template <> __device__ __forceinline__ float tap_value(const bf16_bits *s, int i) { return bf16_to_float(s[i].h); }
template <> __device__ __forceinline__ float tap_value(const f16_bits *s, int i) { return f16_to_float(s[i].h); }
__device__ __forceinline__ void tap_store(float *y, float v) { *y = v; }
__device__ __forceinline__ void tap_store(bf16_bits *y, float v) { y->h = float_to_bf16(v); }
__device__ __forceinline__ void tap_store(f16_bits *y, float v) { y->h = float_to_f16(v); }

/* Of the window from `start` on: taps that count, along one dim. */
__device__ __forceinline__ int taps_of(const planes &p, int d, int start, int extent)
{
  int n = 0;
  if (p.dilation[d] == 1) {
    n = min(start + p.size[d], p.include_pad ? extent + p.after[d] : extent) - (p.include_pad ? start : max(start, 0));
  } else {
    for (int r = 0; r < p.size[d]; r++) {
      int at = start + r * p.dilation[d];
      n += p.include_pad ? at < extent + p.after[d] : at >= 0 && at < extent;
    }
  }
  return max(n, 0);
}

template <class T, int mode> __device__ __forceinline__ void put(const planes &p, uint32_t plane, int oy, int ox, const found<mode> &f)
{
  int64_t to = ((int64_t)plane * p.oh + oy) * p.ow + ox;
  int y0 = oy * p.step[0] - p.before[0], x0 = ox * p.step[1] - p.before[1];
  float v = f.v;
  if (mode == AVERAGE && f.tap >= 0) v /= (float)(taps_of(p, 0, y0, p.h) * taps_of(p, 1, x0, p.w));
  tap_store((T *)p.y + to, v);
  if (mode == MAX_INDEX) {
    int r = f.tap / p.size[1], c = f.tap - r * p.size[1];
    bool place = p.index_dtype != QN_U8 && f.tap >= 0;
    element_store_wrapped(p.indices, to, p.index_dtype, place ? (y0 + r * p.dilation[0]) * p.w + x0 + c * p.dilation[1] : f.tap);
  }
}

/* end: of the lines that are here. */
template <class T, int mode, int SIZE, int STEP>
__device__ __forceinline__ void small_windows(const planes &p, const T *s, uint32_t plane0, int n, int o0, int rows, int end)
{
  constexpr int lines = (STRIP - 1) * STEP + SIZE;
  int strips = (rows + STRIP - 1) / STRIP, units = n * strips * p.ow;
  for (int unit = threadIdx.x; unit < units; unit += THREADS) {
    int q = unit / p.ow, ox = unit - q * p.ow, k = q / strips, oy = o0 + (q - k * strips) * STRIP;
    int x0 = ox * STEP - p.before[1], y0 = oy * STEP - p.before[0];
    const T *line = s + ((int64_t)k * p.h + y0) * p.w + x0;
    found<mode> f[STRIP];
#pragma unroll
    for (int r = 0; r < lines; r++) {
      found<mode> g;
      if ((unsigned)(y0 + r) < (unsigned)end) {
#pragma unroll
        for (int c = 0; c < SIZE; c++)
          if ((unsigned)(x0 + c) < (unsigned)p.w) {
            g.take(tap_value(line, r * p.w + c), c);
            if (mode != MAX_INDEX) g.tap = 0;
          }
      }
#pragma unroll
      for (int i = 0; i < STRIP; i++)
        if (r >= i * STEP && r < i * STEP + SIZE) {
          if (mode != MAX_INDEX) f[i].take(g.v, 0), f[i].tap = max(f[i].tap, g.tap);
          else if (g.tap >= 0) f[i].take(g.v, (r - i * STEP) * SIZE + g.tap);
        }
    }
#pragma unroll
    for (int i = 0; i < STRIP; i++)
      if (oy + i < o0 + rows) put<T, mode>(p, plane0 + k, oy + i, ox, f[i]);
  }
}

template <class T, int mode>
__device__ __forceinline__ void other_windows(const planes &p, const T *s, uint32_t plane0, int n, int o0, int rows)
{
  int lane = threadIdx.x % p.lanes, units = n * rows * p.ow, step = THREADS / p.lanes;
  for (int first = 0; first < units; first += step) {       /* all lanes of a warp stay */
    int unit = first + threadIdx.x / p.lanes;
    bool here = unit < units;
    int q = unit / p.ow, ox = unit - q * p.ow, k = q / rows, oy = o0 + q - k * rows;
    int x0 = ox * p.step[1] - p.before[1], y0 = oy * p.step[0] - p.before[0];
    const T *plane = s + (int64_t)k * p.h * p.w;
    found<mode> f;
    for (int r = 0; here && r < p.size[0]; r++) {
      int y = y0 + r * p.dilation[0];
      if ((unsigned)y >= (unsigned)p.h) continue;
      for (int c = lane; c < p.size[1]; c += p.lanes) {
        int x = x0 + c * p.dilation[1];
        if ((unsigned)x >= (unsigned)p.w) continue;
        f.take(tap_value(plane, y * p.w + x), r * p.size[1] + c);
        if (mode != MAX_INDEX) f.tap = 0;
      }
    }
    for (int o = p.lanes / 2; o; o /= 2) {
      float v = __shfl_xor_sync(~0u, f.v, o);
      int tap = __shfl_xor_sync(~0u, f.tap, o);
      f.join(v, tap);
      if (mode != MAX_INDEX) f.tap = max(f.tap, tap);
    }
    if (here && lane == 0) put<T, mode>(p, plane0 + k, oy, ox, f);
  }
}

template <class T, int mode, int SIZE, int STEP> __global__ void __launch_bounds__(THREADS) pool_planes(const __grid_constant__ planes p)
{
  extern __shared__ uint4 stage[];
  constexpr int E = 16 / sizeof(T);
  uint32_t group = p.bands == 1 ? blockIdx.x : blockIdx.x / p.bands, plane0 = group * p.per_block;
  int n = (int)min(p.per_block, p.count - plane0), o0 = 0, rows = p.oh, first = 0, last = n * p.h;
  if (p.bands > 1) {                      /* per_block is 1 */
    o0 = (int)(blockIdx.x - group * p.bands) * p.band;
    rows = min(p.band, p.oh - o0);
    first = min(max(o0 * p.step[0] - p.before[0], 0), p.h);
    last = max(first, min((o0 + rows - 1) * p.step[0] - p.before[0] + (p.size[0] - 1) * p.dilation[0] + 1, p.h));
  }
  int64_t plane = (int64_t)plane0 * p.h * p.w, from = plane + (int64_t)first * p.w, begin = from / E * E;
  int vectors = (int)((plane + (int64_t)last * p.w - begin + E - 1) / E);
  for (int i = threadIdx.x; i < vectors; i += BATCH * THREADS) {
    uint4 q[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      int at = i + b * THREADS;
      if (at < vectors && begin + (int64_t)(at + 1) * E <= p.total) q[b] = ((const uint4 *)((const T *)p.x + begin))[at];
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      int at = i + b * THREADS;
      if (at >= vectors) continue;
      if (begin + (int64_t)(at + 1) * E <= p.total) stage[at] = q[b];
      else
        for (int64_t j = begin + (int64_t)at * E; j < p.total; j++) ((T *)stage)[j - begin] = ((const T *)p.x)[j];
    }
  }
  __syncthreads();
  const T *s = (const T *)stage + (from - begin) - (int64_t)first * p.w;
  if (SIZE) small_windows<T, mode, SIZE, STEP>(p, s, plane0, n, o0, rows, p.bands > 1 ? last : p.h);
  else other_windows<T, mode>(p, s, plane0, n, o0, rows);
}

/* ---- host ------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct state { planes p; int32_t x, y, indices; uint32_t blocks, shared; kernel kernel; };

template <class T, int mode> static kernel choose_window(const planes &p)
{
  bool square = p.size[0] == p.size[1] && p.step[0] == p.step[1] && p.dilation[0] == 1 && p.dilation[1] == 1;
  if (square && p.size[0] == 3 && p.step[0] == 2) return (kernel)pool_planes<T, mode, 3, 2>;
  if (square && p.size[0] == 3 && p.step[0] == 1) return (kernel)pool_planes<T, mode, 3, 1>;
  if (square && p.size[0] == 2 && p.step[0] == 2) return (kernel)pool_planes<T, mode, 2, 2>;
  return (kernel)pool_planes<T, mode, 0, 0>;
}
template <class T> static kernel choose_mode(const planes &p, bool average, bool index)
{
  return average ? choose_window<T, AVERAGE>(p) : index ? choose_window<T, MAX_INDEX>(p) : choose_window<T, MAX>(p);
}

static int most_shared(const qn_device *device) { return (int)qn_min_i64(STAGE_MOST, (int64_t)device->shared_per_block); }

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_pool *attr = (const qn_pool *)op->attr;
  const qn_value *x = cuda_value(r, QN_ROLE_POOL_MAX_X), *y = cuda_value(r, QN_ROLE_POOL_MAX_Y);
  int32_t indices = op->op == QN_OP_POOL_MAX ? qn_role(op, QN_ROLE_POOL_MAX_INDICES) : -1;
  if (x->dtype != QN_F32 && x->dtype != QN_F16 && x->dtype != QN_BF16) return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", "another");
  if (x->rank > 4) return qn_refuse(out, "1 or 2 spatial dims", "x", "2", "%d", x->rank - 2);
  if (!qn_is_packed(x) || !qn_is_packed(y) || (indices >= 0 && !qn_is_packed(&r->value[indices]))) return qn_refuse(out, "packed planes", "x", "nchw", "%s", "strides");
  if (x->align < 16) return qn_refuse(out, "16-byte alignment", "x", "16", "%u", x->align);
  planes p = {};
  int missing = 4 - x->rank;
  for (int d = 0; d < 2; d++) {
    int from = d - missing;
    bool here = from >= 0;
    int64_t in = here ? x->dim[2 + from] : 1, output = here ? y->dim[2 + from] : 1;
    int64_t size = !here ? 1 : attr->window[from] ? attr->window[from] : in;
    int64_t step = !here ? 1 : attr->stride[from] ? attr->stride[from] : size;
    int64_t before = here ? attr->pad_before[from] : 0, after = here ? attr->pad_after[from] : 0, dilation = here ? attr->dilation[from] : 1;
    if (in + before + after > 1 << 14 || size * dilation > 1 << 14 || step > 1 << 14)
      return qn_refuse(out, "extents below 2^14", "x", "", "%lld", (long long)in);
    (d ? p.w : p.h) = (int32_t)in, (d ? p.ow : p.oh) = (int32_t)output, p.size[d] = (int32_t)size, p.step[d] = (int32_t)step;
    p.dilation[d] = (int32_t)dilation, p.before[d] = (int32_t)before, p.after[d] = (int32_t)after;
  }
  p.include_pad = attr->include_pad != 0;
  p.total = qn_elements(x);
  int64_t count = p.total / ((int64_t)p.h * p.w);
  if (count > INT32_MAX) return qn_refuse(out, "fewer than 2^31 planes", "x", "", "%lld", (long long)count);
  p.count = (uint32_t)count;
  if (indices >= 0) p.index_dtype = r->value[indices].dtype;

  /* As many planes as make a good stage, or as many rows of outputs. */
  int64_t esize = qn_kit_bytes(x->dtype), line = p.w * esize, plane = p.h * line, reach = (int64_t)(p.size[0] - 1) * p.dilation[0] + 1;
  int64_t units = 2 * r->device->units, most = most_shared(r->device);
  p.per_block = (uint32_t)qn_max_i64(1, qn_min_i64(STAGE / 2 / plane, qn_ceil_div(count, units)));
  p.bands = 1, p.band = p.oh;
  int64_t shared = p.per_block * plane + 32;
  if (plane > STAGE) {
    int64_t band = (STAGE / line - reach) / p.step[0] + 1;
    if (band < STRIP) band = qn_min_i64(STRIP, ((most - 32) / line - reach) / p.step[0] + 1);
    p.band = (int32_t)qn_max_i64(1, qn_min_i64(band, p.oh));
    p.bands = (int32_t)qn_ceil_div(p.oh, p.band);
    shared = ((int64_t)(p.band - 1) * p.step[0] + reach) * line + 32;
    if (shared > most) return qn_refuse(out, "a window's lines in shared memory", "x", "96 KB", "%lld", (long long)(reach * line));
  }
  p.lanes = 1;
  while (p.lanes < 32 && p.lanes * 2 <= p.size[1]) p.lanes *= 2;
  double blocks = (double)qn_ceil_div(count, p.per_block) * p.bands;
  if (blocks > INT32_MAX) return qn_refuse(out, "fewer than 2^31 blocks", "x", "", "%s", "more");
  state *st = (state *)r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->p = p;
  st->x = qn_role(op, QN_ROLE_POOL_MAX_X);
  st->y = qn_role(op, QN_ROLE_POOL_MAX_Y);
  st->indices = indices;
  st->blocks = (uint32_t)blocks;
  st->shared = (uint32_t)shared;
  bool average = op->op == QN_OP_POOL_AVERAGE;
  st->kernel = x->dtype == QN_F32 ? choose_mode<float>(p, average, indices >= 0)
             : x->dtype == QN_BF16 ? choose_mode<bf16_bits>(p, average, indices >= 0) : choose_mode<f16_bits>(p, average, indices >= 0);
  out->state = st;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_NATIVE;
  return QN_OK;
}

static qn_status build(const qn_request *r, qn_prepared *prepared)
{
  const state *st = (const state *)prepared->state;
  if (st->shared <= 48 << 10) return QN_OK;
  return cuda_check(cudaFuncSetAttribute(st->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most_shared(r->device)), "pool_planes");
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  planes p = st->p;
  p.x = launch->ptr[st->x];
  p.y = launch->ptr[st->y];
  p.indices = st->indices >= 0 ? launch->ptr[st->indices] : nullptr;
  void *args[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel, st->blocks, THREADS, args, st->shared, (cudaStream_t)launch->stream), "pool_planes");
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

#define ROW(op) { "planes", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, build, run, release }
static const qn_engine row[] = { ROW(QN_OP_POOL_MAX), ROW(QN_OP_POOL_AVERAGE) };
const qn_engine_list cuda_pool_planes_list = { row, sizeof row / sizeof *row };
