/* conv_planes.cuh -- implicit GEMM in any layout: positions and the bits that padding is tested by, the operands of the three directions,
 * the kernel. What it computes, and what it refuses: conv_planes.cu. */
#pragma once
#include <type_traits>
#include "conv_kernel.h"
#include "conv_store.cuh"
#include "kit/divisor.h"
#include "matmul/matmul_mma.cuh"

enum { TAPS = 1024, BITS = 30, SUM = 8192 };                /* SUM: pixels of a partial sum, at most */
static const uint32_t PIXEL = 1u << BITS, NEVER = 2u << BITS;

/* The taps along a dim that reach the pixels of a class: number, index of the first; where it reads for pixel 0; steps of both. */
struct planes_axis { int32_t count, first, every, shift, step; };

struct planes {
  const void *gathered, *other;           /* x or dy; w or dy */
  void    *out;
  uint32_t dtype, out_dtype;
  int32_t  mode, images, channels;        /* channels: of a group of the gathered tensor */
  int32_t  m, n, k;                       /* of a group; of data: of the largest class */
  int32_t  tiles_n, share;                /* share: pixels of a partial sum */
  int64_t  elements;                      /* of dw */
  int32_t  in[3], extent[3], size[3];     /* of the gathered tensor; of the pixels' tensor; of the filter: H, W, D */
  int32_t  pace[3], apart[3], step[3], before[3], every[3];              /* pixel i reads at i pace; pixels of a class are `apart` */
  int32_t  field[3];                      /* first bit of a dim's taps; -1: all are inside */
  int32_t  last, along;                   /* k (or rows) is (tap, channel); out is contiguous along columns 0, rows 1 */
  int32_t  gathered_stride[5], other_stride[5], out_stride[5];           /* N, C, H, W, D; of w: columns, channels, taps */
  int64_t  gathered_group, other_group;
  cuda_divisor by[8];                     /* channels if last, else taps: bit d set where a dim has one tap less than most */
  cuda_divisor by_w, by_hw, by_dhw;       /* pixels of a row, a plane, an image (filter) */
  int32_t  column, factor, relu;          /* operands of bias and fold (-1: none) */
  cuda_steps steps;
};

struct planes_tap { int32_t at, other; uint32_t need; };    /* what it adds to the two addresses */

/* ---- positions ------------------------------------------------------------------------------------------------- */

/* Pixel k of all images, where there are no classes: image and position. */
__device__ __forceinline__ int planes_pixel(const planes &g, int k, int (&i)[3])
{
  const int line = cuda_quotient(k, g.by_w), plane = cuda_quotient(k, g.by_hw), n = cuda_quotient(k, g.by_dhw);
  i[1] = k - line * g.extent[1], i[0] = line - plane * g.extent[0], i[2] = plane - n * g.extent[2];
  return n;
}

struct planes_class {
  planes_axis axis[3];
  int residue[3], group;
  int pixels[3];                          /* H, W, D */

  __device__ __forceinline__ planes_class(const planes &g)
  {
    int rest = blockIdx.z;
    residue[1] = rest % g.apart[1], rest /= g.apart[1];
    residue[0] = rest % g.apart[0], rest /= g.apart[0];
    residue[2] = rest % g.apart[2], group = rest / g.apart[2];
#pragma unroll
    for (int d = 0; d < 3; d++) {
      planes_axis &a = axis[d];
      a = { g.size[d], 0, 1, -g.before[d], g.step[d] };
      pixels[d] = (g.extent[d] - residue[d] + g.apart[d] - 1) / g.apart[d];
      if (g.mode != CUDA_CONV_DATA) continue;
      const int from = residue[d] + g.before[d];
      while (a.first < g.every[d] && (from - a.first * g.step[d]) % g.apart[d]) a.first++;
      a.every = g.every[d];
      a.count = a.first < g.every[d] ? max(0, (g.size[d] - a.first + a.every - 1) / a.every) : 0;
      a.shift = (from - a.first * g.step[d]) / g.apart[d];
      a.step = -(a.every * g.step[d]) / g.apart[d];
    }
  }
  __device__ __forceinline__ int taps() const { return axis[0].count * axis[1].count * axis[2].count; }
  __device__ __forceinline__ int rows(const planes &g) const { return g.images * pixels[0] * pixels[1] * pixels[2]; }

  __device__ __forceinline__ planes_tap tap(const planes &g, int t) const
  {
    int i[3], rest = t / axis[1].count;
    i[1] = t - rest * axis[1].count, i[2] = rest / axis[0].count, i[0] = rest - i[2] * axis[0].count;
    planes_tap tap = { 0, 0, PIXEL };
#pragma unroll
    for (int d = 0; d < 3; d++) {
      tap.at += (axis[d].shift + i[d] * axis[d].step) * g.gathered_stride[2 + d];
      tap.other += (axis[d].first + i[d] * axis[d].every) * g.other_stride[2 + d];
      if (g.field[d] >= 0) tap.need |= 1u << (g.field[d] + i[d]);
    }
    return tap;
  }
  /* Of the pixel at `at` along d: the taps that are inside. */
  __device__ __forceinline__ uint32_t inside(const planes &g, int d, int at) const
  {
    if (g.field[d] < 0) return 0;
    uint32_t mask = 0;
    int from = at * g.pace[d] + axis[d].shift;
    for (int i = 0; i < axis[d].count; i++, from += axis[d].step)
      if ((uint32_t)from < (uint32_t)g.in[d]) mask |= 1u << (g.field[d] + i);
    return mask;
  }
  /* A pixel's element of channel 0 before any tap, its bits, and (data, forward) its place in out, -1: none. */
  __device__ __forceinline__ uint32_t pixel(const planes &g, int row, int *at, int *place) const
  {
    int i[3], n;
    if (g.mode == CUDA_CONV_DATA) {
      const int line = row / pixels[1], plane = line / pixels[0];
      n = plane / pixels[2];
      i[1] = row - line * pixels[1], i[0] = line - plane * pixels[0], i[2] = plane - n * pixels[2];
    } else n = planes_pixel(g, row, i);
    *at = 0, *place = -1;
    if (n >= g.images) return 0;
    *at = n * g.gathered_stride[0], *place = n * g.out_stride[0];
    uint32_t mask = PIXEL;
#pragma unroll
    for (int d = 0; d < 3; d++) {
      *at += i[d] * g.pace[d] * g.gathered_stride[2 + d];
      *place += (i[d] * g.apart[d] + residue[d]) * g.out_stride[2 + d];
      mask |= inside(g, d, i[d]);
    }
    return mask;
  }
};

/* ---- operands: an element at a time ------------------------------------------------------------------------------ */

/* `count` copies of a stage on their way to shared memory, of `each` neighbouring elements (1 or 4). */
template <bool half, int each, int count> struct planes_copies {
  typedef typename std::conditional<half, uint16_t, float>::type number;
  typedef typename std::conditional<each == 4, uint2, uint16_t>::type unit;
  unit v[half ? count : 1];

  __device__ __forceinline__ void start(int i, uint32_t to, const number *from, bool there)
  {
    if constexpr (!half) copy_async<4 * each>(to, from, there ? 4 * each : 0);
    else if (there) v[i] = *(const unit *)from;
    else v[i] = unit{};
  }
  __device__ __forceinline__ void finish(int i, uint32_t to, uint32_t dtype) const
  {
    const auto widen = [&](uint32_t bits) {
      return __float_as_uint(dtype == QN_BF16 ? bf16_to_float((uint16_t)bits) : f16_to_float((uint16_t)bits));
    };
    if constexpr (!half) return;
    else if constexpr (each == 1) shared_store(to, widen(v[i]));
    else for (int j = 0; j < 4; j++) shared_store(to + 4 * j, widen((j < 2 ? v[i].x : v[i].y) >> j % 2 * 16));
  }
};

/* ---- operands: forward, data ------------------------------------------------------------------------------------- */

/* A k: its channel and tap. */
__device__ __forceinline__ int planes_split(const planes &g, const cuda_divisor &by, int k, int *tap)
{
  uint32_t r, q = cuda_quotient(k, by, &r);
  *tap = g.last ? q : r;
  return g.last ? r : q;
}

/* Lines of k, pixels inner. */
template <class P, bool half, int each> struct planes_pixels {
  typedef typename tiled_shape<P>::operand_a::stage stage;
  static constexpr int wide = each == 1 ? 32 : P::BM / each, at_once = P::threads / wide, lines = P::BK / at_once;
  static constexpr int runs = P::BM / (wide * each);
  static_assert(P::rows_a && P::BK % at_once == 0, "whole lines");
  typedef planes_copies<half, each, lines * runs> copies;
  const planes &g;
  const cuda_divisor &by;
  const planes_tap *table;
  const typename copies::number *from;
  copies moved;
  int at[runs];
  uint32_t mask[runs], place;

  __device__ __forceinline__ planes_pixels(const planes &g, const planes_class &of, const cuda_divisor &by, const planes_tap *table, int m0)
    : g(g), by(by), table(table), from((const typename copies::number *)g.gathered + of.group * g.gathered_group)
  {
    place = threadIdx.x / wide * stage::pitch + threadIdx.x % wide * each * 4;
    int unused;
#pragma unroll
    for (int i = 0; i < runs; i++) mask[i] = of.pixel(g, m0 + (threadIdx.x % wide + wide * i) * each, &at[i], &unused);
  }
  __device__ __forceinline__ void load(uint32_t to, int k, int k_end)
  {
#pragma unroll
    for (int j = 0; j < lines; j++) {
      const int line = k + threadIdx.x / wide + j * at_once;
      int tap, c = planes_split(g, by, line < k_end ? line : 0, &tap), add = c * g.gathered_stride[1] + table[tap].at;
      const uint32_t need = line < k_end ? table[tap].need : NEVER;
#pragma unroll
      for (int i = 0; i < runs; i++) {
        const bool there = !(~mask[i] & need);
        moved.start(j * runs + i, to + place + j * at_once * stage::pitch + i * 128, from + (there ? at[i] + add : 0), there);
      }
    }
  }
  __device__ __forceinline__ void store(uint32_t to) const
  {
#pragma unroll
    for (int i = 0; i < lines * runs; i++) moved.finish(i, to + place + i / runs * at_once * stage::pitch + i % runs * 128, g.dtype);
  }
};

/* Columns of k: sixteen lanes copy a column's stage. */
template <class P, bool half> struct planes_filters {
  typedef typename tiled_shape<P>::operand_b::stage stage;
  static constexpr int step = P::threads / P::BK, turns = P::BN / step;
  static_assert(!P::rows_b && P::BN % step == 0, "whole columns");
  typedef planes_copies<half, 1, turns> copies;
  const planes &g;
  const cuda_divisor &by;
  const planes_tap *table;
  const typename copies::number *from;
  copies moved;
  int left;
  uint32_t place;

  __device__ __forceinline__ planes_filters(const planes &g, const planes_class &of, const cuda_divisor &by, const planes_tap *table,
                                            int n0)
    : g(g), by(by), table(table)
  {
    const int col = threadIdx.x / P::BK;
    from = (const typename copies::number *)g.other + of.group * g.other_group + (n0 + col) * (int64_t)g.other_stride[0];
    left = g.n - n0 - col;
    place = col * stage::pitch + threadIdx.x % P::BK * 4;
  }
  __device__ __forceinline__ void load(uint32_t to, int k, int k_end)
  {
    const int line = k + threadIdx.x % P::BK, here = line < k_end ? left : 0;
    int tap, c = planes_split(g, by, line < k_end ? line : 0, &tap), add = c * g.other_stride[1] + table[tap].other;
#pragma unroll
    for (int i = 0; i < turns; i++) {
      const bool there = i * step < here;
      moved.start(i, to + place + i * step * stage::pitch,
                  there ? from + add + i * step * g.other_stride[0] : (const typename copies::number *)g.other, there);
    }
  }
  __device__ __forceinline__ void store(uint32_t to) const
  {
#pragma unroll
    for (int i = 0; i < turns; i++) moved.finish(i, to + place + i * step * stage::pitch, g.dtype);
  }
};

/* ---- operands: filter -------------------------------------------------------------------------------------------- */

/* Rows (channel, tap), pixels inner. */
template <class P, bool half, int each> struct planes_windows {
  typedef typename tiled_shape<P>::operand_a::stage stage;
  static constexpr int wide = P::BK / each, step = P::threads / wide, turns = P::BM / step;
  static_assert(!P::rows_a && P::BM % step == 0, "whole rows");
  typedef planes_copies<half, each, turns> copies;
  const planes &g;
  const planes_class &of;
  const typename copies::number *from;
  copies moved;
  int at[turns];
  uint32_t need[turns], place;

  __device__ __forceinline__ planes_windows(const planes &g, const planes_class &of, int m0)
    : g(g), of(of), from((const typename copies::number *)g.gathered + of.group * g.gathered_group)
  {
    place = threadIdx.x / wide * stage::pitch + threadIdx.x % wide * each * 4;
#pragma unroll
    for (int i = 0; i < turns; i++) {
      const int row = m0 + threadIdx.x / wide + i * step;
      int which, c = planes_split(g, g.by[0], row < g.m ? row : 0, &which);
      const planes_tap tap = of.tap(g, which);
      at[i] = c * g.gathered_stride[1] + tap.at;
      need[i] = row < g.m ? tap.need : NEVER;
    }
  }
  __device__ __forceinline__ void load(uint32_t to, int k, int k_end)
  {
    const int pixel = k + threadIdx.x % wide * each;
    int i[3], begin = planes_pixel(g, pixel < k_end ? pixel : 0, i) * g.gathered_stride[0];
    uint32_t mask = pixel < k_end ? PIXEL : 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
      begin += i[d] * g.pace[d] * g.gathered_stride[2 + d];
      mask |= of.inside(g, d, i[d]);
    }
#pragma unroll
    for (int r = 0; r < turns; r++) {
      const bool there = !(~mask & need[r]);
      moved.start(r, to + place + r * step * stage::pitch, from + (there ? begin + at[r] : 0), there);
    }
  }
  __device__ __forceinline__ void store(uint32_t to) const
  {
#pragma unroll
    for (int i = 0; i < turns; i++) moved.finish(i, to + place + i * step * stage::pitch, g.dtype);
  }
};

/* Columns of dy, pixels inner. */
template <class P, bool half, int each> struct planes_gradient {
  typedef typename tiled_shape<P>::operand_b::stage stage;
  static constexpr int wide = P::BK / each, step = P::threads / wide, turns = (P::BN + step - 1) / step;
  typedef planes_copies<half, each, turns> copies;
  const planes &g;
  const typename copies::number *from;
  copies moved;
  int left;
  uint32_t place;

  __device__ __forceinline__ planes_gradient(const planes &g, const planes_class &of, int n0) : g(g)
  {
    const int col = threadIdx.x / wide;
    from = (const typename copies::number *)g.other + of.group * g.other_group + (n0 + col) * (int64_t)g.other_stride[1];
    left = g.n - n0 - col;
    place = col * stage::pitch + threadIdx.x % wide * each * 4;
  }
  __device__ __forceinline__ bool there(int i) const { return P::BN % step == 0 || (int)threadIdx.x / wide + i * step < P::BN; }
  __device__ __forceinline__ void load(uint32_t to, int k, int k_end)
  {
    const int pixel = k + threadIdx.x % wide * each, here = pixel < k_end ? left : 0;
    int i[3], add = planes_pixel(g, pixel < k_end ? pixel : 0, i) * g.other_stride[0];
#pragma unroll
    for (int d = 0; d < 3; d++) add += i[d] * g.other_stride[2 + d];
#pragma unroll
    for (int r = 0; r < turns && there(r); r++) {
      const bool full = r * step < here;
      moved.start(r, to + place + r * step * stage::pitch,
                  full ? from + add + r * step * g.other_stride[1] : (const typename copies::number *)g.other, full);
    }
  }
  __device__ __forceinline__ void store(uint32_t to) const
  {
#pragma unroll
    for (int i = 0; i < turns && there(i); i++)
      moved.finish(i, to + place + i * step * stage::pitch, g.dtype);
  }
};

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

/* One sum in plain f32 over what is inside; filter: over pixels k to k_end. */
template <bool filter>
static __device__ __noinline__ float planes_sum_again(const planes &g, const planes_class &of, int row, int col, int k, int k_end)
{
  const auto load = [&](const void *p, int64_t i) { return element_load<float>(p, i, dtype3(g.dtype)); };
  int64_t from = of.group * g.gathered_group, other = of.group * g.other_group;
  float sum = 0;
  if (filter) {
    int which, c = planes_split(g, g.by[0], row, &which);
    const planes_tap tap = of.tap(g, which);
    other += col * (int64_t)g.other_stride[1], from += c * (int64_t)g.gathered_stride[1];
    for (; k < k_end; k++) {
      int i[3], n = planes_pixel(g, k, i), at = n * g.gathered_stride[0] + tap.at, to = n * g.other_stride[0];
      uint32_t mask = PIXEL;
      for (int d = 0; d < 3; d++) {
        mask |= of.inside(g, d, i[d]);
        at += i[d] * g.pace[d] * g.gathered_stride[2 + d], to += i[d] * g.other_stride[2 + d];
      }
      if (!(~mask & tap.need)) sum = fmaf(load(g.gathered, from + at), load(g.other, other + to), sum);
    }
    return sum;
  }
  int at, place;
  const uint32_t mask = of.pixel(g, row, &at, &place);
  other += col * (int64_t)g.other_stride[0];
  for (int t = 0; t < of.taps(); t++) {
    const planes_tap tap = of.tap(g, t);
    if (~mask & tap.need) continue;
    for (int c = 0; c < g.channels; c++)
      sum = fmaf(load(g.gathered, from + at + tap.at + c * g.gathered_stride[1]),
                 load(g.other, other + tap.other + c * g.other_stride[1]), sum);
  }
  return sum;
}

/* Grid: tiles, columns fastest; partial sums; residues, of each group. Shared memory: the ring, places of a tile's rows, the table. */
template <class P, bool half, int each, bool filter>
__global__ void __launch_bounds__(P::threads, P::resident) conv_planes(const __grid_constant__ planes g)
{
  extern __shared__ __align__(16) unsigned char shared[];
  const uint32_t ring = shared_address(shared);
  int *places = (int *)(shared + tiled_shape<P>::shared);
  planes_tap *table = (planes_tap *)(places + P::BM);
  const planes_class of(g);
  const int tile_m = blockIdx.x / g.tiles_n, m0 = tile_m * P::BM, n0 = (blockIdx.x - tile_m * g.tiles_n) * P::BN;
  const int m = filter ? g.m : of.rows(g), k = blockIdx.y * g.share, taps = of.taps(), group = of.group;
  const int k_end = filter ? min(g.k, k + g.share) : taps * g.channels;
  if (m0 >= m) return;                    /* this class has fewer pixels than others */
  P p(threadIdx.x);
  if constexpr (filter) {
    planes_windows<P, half, each> a(g, of, m0);
    planes_gradient<P, half, each> b(g, of, n0);
    tiled_sum(p, a, b, ring, k, k_end);
  } else {
    int less = 0;                         /* which divisor */
#pragma unroll
    for (int d = 0; d < 3; d++) less |= of.axis[d].count < (g.size[d] + g.every[d] - 1) / g.every[d] ? 1 << d : 0;
    for (int t = threadIdx.x; t < taps; t += P::threads) table[t] = of.tap(g, t);
    if (threadIdx.x < P::BM) {
      int at;
      of.pixel(g, m0 + threadIdx.x, &at, &places[threadIdx.x]);
    }
    __syncthreads();
    if (taps) {
      const cuda_divisor by = g.by[g.last ? 0 : less];
      planes_pixels<P, half, each> a(g, of, by, table, m0);
      planes_filters<P, half> b(g, of, by, table, n0);
      tiled_sum(p, a, b, ring, 0, k_end);
    }
  }
  __syncthreads();                        /* the ring's memory becomes the output tile */
  float *tile = (float *)shared;
  constexpr int pitch = P::BN + 1;
  p.put(tile, pitch);
  __syncthreads();
  constexpr int turns = 8;                /* elements of a thread at a time: their latencies overlap */
  static_assert(P::BM * P::BN % (P::threads * turns) == 0, "whole turns");
#pragma unroll 1
  for (int first = threadIdx.x; first < P::BM * P::BN; first += P::threads * turns) {
    const auto at = [&](int j, int *r, int *c) {
      const int e = first + j * P::threads;
      *r = g.along ? e % P::BM : e / P::BN, *c = g.along ? e / P::BM : e - *r * P::BN;
      return m0 + *r < m && n0 + *c < g.n;
    };
    float v[turns];
    int r[turns], c[turns];
    bool there[turns], finite = true;
#pragma unroll
    for (int j = 0; j < turns; j++) {
      there[j] = at(j, &r[j], &c[j]);
      v[j] = tile[r[j] * pitch + c[j]];
      finite = finite && (!there[j] || isfinite(v[j]));
    }
    if (!finite) {
#pragma unroll 1
      for (int j = 0; j < turns; j++) {
        int row, col;
        if (at(j, &row, &col) && !isfinite(tile[row * pitch + col]))
          tile[row * pitch + col] = planes_sum_again<filter>(g, of, m0 + row, n0 + col, k, k_end);
      }
#pragma unroll
      for (int j = 0; j < turns; j++) v[j] = tile[r[j] * pitch + c[j]];
    }
    const int channel = group * g.n + n0;
    int64_t to[turns];
#pragma unroll
    for (int j = 0; j < turns; j++) {
      if constexpr (filter) to[j] = blockIdx.y * g.elements + (int64_t)(channel + c[j]) * g.m + m0 + r[j];
      else to[j] = places[r[j]] + (channel + c[j]) * (int64_t)g.out_stride[1];
    }
    if constexpr (!filter) {
      if (g.column >= 0) {
        const cuda_operand &o = g.steps.operand[g.column];
#pragma unroll
        for (int j = 0; j < turns; j++)
          if (there[j]) v[j] += element_load<float>(o.p, (channel + c[j]) * o.stride[1], dtype3(o.dtype));
      }
      if (g.factor >= 0) {
#pragma unroll
        for (int j = 0; j < turns; j++)
          if (there[j]) v[j] = folded(v[j], fold_of(g.steps, g.factor, channel + c[j]));
      }
      if (g.relu) {
#pragma unroll
        for (int j = 0; j < turns; j++) v[j] = v[j] < 0 ? 0 : v[j];       /* keeps NaN */
      }
    }
    if (g.out_dtype == QN_F32) {
#pragma unroll
      for (int j = 0; j < turns; j++)
        if (there[j]) ((float *)g.out)[to[j]] = v[j];
    } else {
#pragma unroll
      for (int j = 0; j < turns; j++)
        if (there[j]) ((uint16_t *)g.out)[to[j]] = g.out_dtype == QN_BF16 ? float_to_bf16(v[j]) : float_to_f16(v[j]);
    }
  }
}
