/* conv_depthwise_planes.cuh -- shared by the depthwise kernels that work on planes: a plane is one channel of one image, of one to
 * three spatial dims. A block keeps a box of some neighbouring planes in shared memory, plane by plane whatever the tensor's layout:
 *
 *   planes contiguous (nchw)   contiguous runs (rows, planes, several planes) by 16 bytes; the box has the tensor's address
 *                              modulo 16, and pitches that agree with the tensor's, so rows may begin anywhere
 *   channels last              lines of pixels by 16 bytes of channels, transposed on the way */
#pragma once
#include "conv_kernel.h"
#include "kit/divisor.h"
#include "kit/element.cuh"
#include "kit/sm80.cuh"

enum { CLASSES = 8 };                     /* residue classes along a dim, at most */

/* a / b for what is mostly 1, where a jump saves the twenty instructions of a division. */
static __device__ __forceinline__ int over(int a, int b) { return b == 1 ? a : a / b; }

/* One spatial dim. The outputs of class r are o = r + m apart; tap k of its window m reads i = m mul - before + k gap. In backward
 * data the classes are those of conv_problem.h; otherwise there is one. Tap k is number tap + k tap_step of the filter. */
struct axis {
  int32_t in, out, mul, gap, apart;
  int32_t low, high, div;                 /* output o reads (o mul + low) / div to (o mul + high) / div */
  int32_t tile, tiles;                    /* outputs of a block, a multiple of apart unless there is only one tile */
  int32_t before[CLASSES], taps[CLASSES], tap[CLASSES], tap_step[CLASSES];

  /* Inputs that outputs from `begin` to `end` - 1 read; all in a box that has the whole dim. */
  __device__ __forceinline__ void range(int begin, int end, int &first, int &beyond) const
  {
    const int from = begin * mul + low, to = (end - 1) * mul + high;
    first = tiles == 1 || from <= 0 ? 0 : over(from + div - 1, div);
    beyond = tiles == 1 ? in : to < 0 ? 0 : min(in, over(to, div) + 1);
  }
};

/* A packed tensor, and how a box of it lies in shared memory. Dims: depth, rows, columns. */
struct planes {
  void    *p;
  int64_t  total;                         /* elements */
  int32_t  dim[3], channels;              /* channels of an image */
  int32_t  last;                          /* channels last */
  int32_t  whole;                         /* number of dims, counted from columns, that a box holds entirely */
  int32_t  pitch[3];                      /* in the box, from plane to plane, depth to depth, row to row */
  int32_t  vector;                        /* elements copied at once: 16 bytes, or 1 */
  int32_t  room;                          /* elements of a box */
};

/* Planes plane to plane + count - 1 of image n, positions first to end - 1. shift: of the box's first element. */
struct box {
  int n, plane, count, first[3], end[3], shift;

  __device__ __forceinline__ int at(const planes &t, int k, int d, int h, int w) const
  {
    return shift + k * t.pitch[0] + (d - first[0]) * t.pitch[1] + (h - first[1]) * t.pitch[2] + w - first[2];
  }
  __device__ __forceinline__ bool has(int d, int i) const { return i >= first[d] && i < end[d]; }
  __device__ __forceinline__ int64_t origin(const planes &t) const
  {
    const int64_t size = (int64_t)t.dim[0] * t.dim[1] * t.dim[2];
    if (t.last) return (int64_t)n * size * t.channels + plane;
    return ((int64_t)n * t.channels + plane) * size + ((int64_t)first[0] * t.dim[1] + first[1]) * t.dim[2] + first[2];
  }
};

__device__ __forceinline__ void box_place(box &b, const planes &t) { b.shift = t.last ? 0 : (int)(b.origin(t) & (t.vector - 1)); }

/* Number of this thread among the THREADS that share a box: a block, or 32: a warp. */
template <int THREADS> __device__ __forceinline__ int box_thread() { return THREADS == 32 ? threadIdx.x % 32 : threadIdx.x; }

/* Calls run(from, at, length, lane, lanes) for each contiguous run of the box: its offsets in the tensor and in the box, its
 * elements; `lanes` threads share it, of which this is number `lane`. */
template <int THREADS, class F> __device__ __forceinline__ void box_runs(const planes &t, const box &b, F run)
{
  const int deep = b.end[0] - b.first[0], high = b.end[1] - b.first[1], wide = b.end[2] - b.first[2];
  if (deep <= 0 || high <= 0 || wide <= 0) return;
  const int inner = t.dim[1] * t.dim[2], plane = t.dim[0] * inner;
  const int runs = t.whole == 3 ? 1 : b.count * (t.whole == 2 ? 1 : t.whole == 1 ? deep : deep * high);
  const int length = t.whole == 3 ? b.count * plane : t.whole == 2 ? deep * inner : t.whole == 1 ? high * wide : wide;
  const int64_t origin = b.origin(t);
  const int lanes = runs == 1 ? THREADS : 32;
  for (int i = box_thread<THREADS>() / lanes; i < runs; i += THREADS / lanes) {
    int k = i, d = 0, h = 0;
    if (t.whole == 0) k = i / high, h = i - k * high;
    if (t.whole <= 1) {
      const int q = k / deep;
      d = k - q * deep, k = q;
    }
    run(origin + (int64_t)k * plane + d * inner + h * t.dim[2], b.shift + k * t.pitch[0] + d * t.pitch[1] + h * t.pitch[2], length,
        (int)threadIdx.x % lanes, lanes);
  }
}

/* The same for channels last, for each PIECES pieces (some channels of a pixel) that a thread has in flight: run(from, at, begin, most,
 * bits, pieces): offsets of the line's first channel and pixel; pieces begin, begin + 32, ... below `most`, of which the lowest `bits`
 * bits count the `pieces` of a pixel, the others pixels. */
template <int THREADS, int PIECES, class F> __device__ __forceinline__ void box_pixels(const planes &t, const box &b, F run)
{
  const int deep = b.end[0] - b.first[0], high = b.end[1] - b.first[1], wide = b.end[2] - b.first[2];
  const int pieces = (b.count + t.vector - 1) / t.vector, bits = 32 - __clz(pieces - 1), most = max(wide, 0) << bits;
  for (int line = box_thread<THREADS>() / 32; line < max(deep, 0) * high; line += THREADS / 32) {
    const int d = line / high, h = line - d * high;
    const int64_t from = b.origin(t) + (((int64_t)(b.first[0] + d) * t.dim[1] + b.first[1] + h) * t.dim[2] + b.first[2]) * t.channels;
    const int at = d * t.pitch[1] + h * t.pitch[2];
    for (int i = threadIdx.x % 32; i < most; i += 32 * PIECES) run(from, at, i, most, bits, pieces);
  }
}

/* Begins to copy the box to shared memory; the caller waits for asynchronous copies and for the block. */
template <class T, int THREADS, int PIECES> __device__ __forceinline__ void box_load(const planes &t, const box &b, T *to)
{
  enum { E = 16 / sizeof(T) };
  const T *p = (const T *)t.p;
  if (!t.last) {
    box_runs<THREADS>(t, b, [&](int64_t from, int at, int length, int lane, int lanes) {
      const int lead = at & (E - 1);
      int vectors = t.vector == 1 ? 0 : (lead + length + E - 1) / E;
      if (vectors && from - lead + (int64_t)vectors * E > t.total) vectors = (int)((t.total - (from - lead)) / E);
      const T *source = p + from - (t.vector == 1 ? 0 : lead);
      T *target = to + at - (t.vector == 1 ? 0 : lead);
      for (int v = lane; v < vectors; v += lanes) copy_async<16>(shared_address(target + v * E), source + v * E, 16);
      const int all = length + (t.vector == 1 ? 0 : lead);
      for (int i = vectors * E + lane; i < all; i += lanes) target[i] = source[i];        /* the tensor's end, no whole vector */
    });
    return;
  }
  box_pixels<THREADS, PIECES>(t, b, [&](int64_t from, int at, int begin, int most, int bits, int pieces) {
    uint4 v[PIECES];
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
      const int i = begin + k * 32, piece = i & ((1 << bits) - 1), column = i >> bits;
      if (i >= most || piece >= pieces) continue;
      const T *source = p + from + (int64_t)column * t.channels + piece * t.vector;
      if (t.vector == 1) v[k].x = sizeof(T) == 4 ? *(const uint32_t *)source : *(const uint16_t *)source;
      else v[k] = *(const uint4 *)source;
    }
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
      const int i = begin + k * 32, piece = i & ((1 << bits) - 1), column = i >> bits;
      if (i >= most || piece >= pieces) continue;
      T *target = to + at + column + piece * t.vector * t.pitch[0];
      const uint32_t word[4] = { v[k].x, v[k].y, v[k].z, v[k].w };
#pragma unroll
      for (int e = 0; e < E; e++)
        if (e == 0 || t.vector > 1) {
          const uint32_t bits_of = sizeof(T) == 4 ? word[e & 3] : word[e / 2 & 3] >> (e & 1) * 16;
          if constexpr (sizeof(T) == 4) target[e * t.pitch[0]] = __uint_as_float(bits_of);
          else target[e * t.pitch[0]] = (uint16_t)bits_of;
        }
    }
  });
}

/* Copies the box from shared memory to the tensor. */
template <class T, int THREADS, int PIECES> __device__ __forceinline__ void box_store(const planes &t, const box &b, const T *from)
{
  enum { E = 16 / sizeof(T) };
  T *p = (T *)t.p;
  if (!t.last) {
    box_runs<THREADS>(t, b, [&](int64_t to, int at, int length, int lane, int lanes) {
      if (t.vector == 1) {
        for (int i = lane; i < length; i += lanes) p[to + i] = from[at + i];
        return;
      }
      const int lead = at & (E - 1), vectors = (lead + length + E - 1) / E;
      const T *source = from + at - lead;
      T *target = p + to - lead;
      for (int v = lane; v < vectors; v += lanes) {
        if (v * E >= lead && v * E + E <= lead + length) *(uint4 *)(target + v * E) = *(const uint4 *)(source + v * E);
        else
          for (int i = max(v * E, lead); i < min(v * E + E, lead + length); i++) target[i] = source[i];
      }
    });
    return;
  }
  box_pixels<THREADS, PIECES>(t, b, [&](int64_t to, int at, int begin, int most, int bits, int pieces) {
#pragma unroll
    for (int k = 0; k < PIECES; k++) {
      const int i = begin + k * 32, piece = i & ((1 << bits) - 1), column = i >> bits;
      if (i >= most || piece >= pieces) continue;
      const T *source = from + at + column + piece * t.vector * t.pitch[0];
      T *target = p + to + (int64_t)column * t.channels + piece * t.vector;
      if (t.vector == 1) {
        *target = *source;
        continue;
      }
      uint32_t word[4];
      if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int e = 0; e < 4; e++) word[e] = __float_as_uint(source[e * t.pitch[0]]);
      } else {
#pragma unroll
        for (int e = 0; e < 4; e++) word[e] = source[2 * e * t.pitch[0]] | (uint32_t)source[(2 * e + 1) * t.pitch[0]] << 16;
      }
      *(uint4 *)target = make_uint4(word[0], word[1], word[2], word[3]);
    }
  });
}

template <int dtype> struct plane_element { typedef uint16_t type; };
template <> struct plane_element<QN_F32> { typedef float type; };
template <int dtype> __device__ __forceinline__ float plane_float(typename plane_element<dtype>::type v)
{
  if constexpr (dtype == QN_F32) return v;
  else return dtype == QN_BF16 ? bf16_to_float(v) : f16_to_float(v);
}

/* A number of neighbouring columns, `step` apart, of which some may not exist: those are loaded as 0, without branches. STRIDE 0: with
 * any step. Otherwise step is 1, and MARGIN bytes on either side of a box may be read. */
enum { MARGIN = 192 };
template <int dtype, int WIDE, int STRIDE> struct plane_columns {
  typedef typename plane_element<dtype>::type element;
  uint32_t there[WIDE];                   /* all bits, or none */
  int      at[STRIDE == 0 ? WIDE : 1];

  /* left: the first column. False: none exists. Lines are then read from `left` on, for STRIDE 0 from the box's first column. */
  __device__ __forceinline__ bool find(const box &b, int left, int step)
  {
#pragma unroll
    for (int c = 0; c < WIDE; c++) {
      const int column = left + (STRIDE == 0 ? c * step : c);
      there[c] = column >= b.first[2] && column < b.end[2] ? ~0u : 0;
      if (STRIDE == 0) at[STRIDE == 0 ? c : 0] = max(min(column, b.end[2] - 1), b.first[2]) - b.first[2];
    }
    return left < b.end[2] && left + (WIDE - 1) * (STRIDE == 0 ? step : 1) >= b.first[2];
  }
  __device__ __forceinline__ int begin(const box &b, int left) const { return STRIDE == 0 ? b.first[2] : left; }
  __device__ __forceinline__ void load(float (&v)[WIDE], const element *line) const
  {
#pragma unroll
    for (int c = 0; c < WIDE; c++) {
      const element raw = line[STRIDE == 0 ? at[STRIDE == 0 ? c : 0] : c];
      if constexpr (dtype == QN_F32) v[c] = __uint_as_float(__float_as_uint(raw) & there[c]);
      else v[c] = plane_float<dtype>((element)(raw & there[c]));
    }
  }
};

/* ---- host ------------------------------------------------------------------------------------------------- */

/* Describes the packed tensor v; false: it is neither packed nor packed channels last. images: of its planes, 1 if it is taken as
 * one image. */
static inline bool planes_describe(planes *t, const qn_value *v, bool one_image)
{
  const int dims = v->rank - 2, size = (int)qn_kit_bytes(v->dtype);
  const bool packed = qn_is_packed(v), last = !packed && qn_is_channels_last(v);
  if (!packed && !last) return false;
  t->total = qn_elements(v);
  for (int d = 0; d < 3; d++) t->dim[d] = d < 3 - dims ? 1 : (int32_t)v->dim[2 + d - (3 - dims)];
  t->last = last;
  const int64_t channels = one_image ? v->dim[0] * v->dim[1] : v->dim[1];
  t->channels = (int32_t)channels;
  t->vector = v->align >= 16 && (!last || v->dim[1] % (16 / size) == 0) ? 16 / size : 1;
  return channels <= INT32_MAX;
}

/* Planes of a block, at most `most` and in whole units, such that all blocks have about as many. */
static inline int64_t planes_per(const planes *t, int64_t most, int64_t unit)
{
  most = qn_max_i64(most / unit * unit, unit);
  const int64_t blocks = qn_ceil_div(t->channels, most);
  return qn_round_up(qn_ceil_div(t->channels, blocks), unit);
}

/* Smallest number, at least `least` + room for two vectors, that is `like` modulo a vector's elements. */
static inline int64_t planes_pitch(int64_t least, int64_t like, int vector)
{
  const int64_t most = least + 2 * vector - 1;
  return most + (((like - most) % vector) + vector) % vector;
}

/* Lays out boxes of `count` planes of `extent` each, of which the last `whole` dims are the tensor's. False: too large. */
static inline bool planes_lay(planes *t, int64_t count, const int64_t extent[3], int whole)
{
  const int64_t inner = (int64_t)t->dim[1] * t->dim[2], plane = inner * t->dim[0];
  int64_t row, depth, pitch, room;
  if (t->last) {
    row = extent[2], depth = row * extent[1], pitch = depth * extent[0];
    pitch += (9 - pitch % 8) % 8;         /* 1 modulo 8: transposing meets few bank conflicts */
    room = pitch * count;
  } else {
    row = whole >= 1 ? t->dim[2] : planes_pitch(extent[2], t->dim[2], t->vector);
    depth = whole >= 2 ? inner : planes_pitch((extent[1] - 1) * row + extent[2], inner, t->vector);
    pitch = whole == 3 ? plane : planes_pitch((extent[0] - 1) * depth + (extent[1] - 1) * row + extent[2], plane, t->vector);
    room = pitch * count + 2 * t->vector;
  }
  t->whole = whole;
  t->pitch[0] = (int32_t)pitch, t->pitch[1] = (int32_t)depth, t->pitch[2] = (int32_t)row;
  t->room = (int32_t)qn_round_up(room, 16);
  return room < 1 << 20;
}

/* Dim d (depth, rows, columns) of a problem, in backward data with its classes; false: more of them than CLASSES. */
static inline bool axis_of(axis *a, const cuda_conv_problem *c, int d)
{
  const int from = d == 0 ? 2 : d - 1;    /* conv_problem.h counts rows, columns, depth */
  const bool data = c->mode == CUDA_CONV_DATA;
  const int64_t reach = (c->size[from] - 1) * c->dilation[from];
  a->in = (int32_t)(data ? c->out[from] : c->in[from]), a->out = (int32_t)(data ? c->in[from] : c->out[from]);
  a->mul = data ? 1 : (int32_t)c->stride[from];
  a->apart = data ? (int32_t)c->stride[from] : 1;
  a->gap = (int32_t)(data ? c->dilation[from] * cuda_conv_every(c, from) / c->stride[from] : c->dilation[from]);
  a->low = (int32_t)(data ? c->before[from] - reach : -c->before[from]);
  a->high = (int32_t)(a->low + reach);
  a->div = a->apart;
  if (a->apart > CLASSES) return false;
  for (int r = 0; r < a->apart; r++) {
    const cuda_conv_span s = cuda_conv_span_of(c, from, r);
    a->before[r] = s.before, a->taps[r] = s.taps, a->tap[r] = s.tap, a->tap_step[r] = s.tap_step;
  }
  return true;
}

/* Inputs that `tile` outputs read, at most. */
static inline int64_t axis_reach(const axis *a, int64_t tile)
{
  return qn_min_i64(a->in, ((tile - 1) * a->mul + a->high - a->low) / a->div + 1);
}
