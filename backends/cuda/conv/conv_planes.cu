/* conv_planes.cu -- convolution and its gradients as implicit GEMM by mma.sync in any layout, without a copy in memory: f32 as tf32 (math
 * tf32) or 3xTF32 (math f32), f16 and bf16 as tf32, which holds them. One to three spatial dims; any groups, channels, strides.
 *
 *                     a, BM rows                          b, BN columns    summed over
 *   forward           pixels of y: x at a tap             filters          channels, taps
 *   backward data     pixels of dx: dy at a tap           channels         filters, taps that reach these pixels
 *   backward filter   (channel, tap): x                   filters: dy      pixels of a part
 *
 * matmul_tiled.cuh's main loop; each element is a cp.async of its own (of 16 bits: goes through a register), neighbouring lanes along
 * the pixels; under a single tap four neighbouring pixels are. What a tap adds to a pixel's address stands in a table. Whether it falls
 * into padding is one test: a pixel has a bit for each tap along each dim that stays inside the tensor, a tap has those that it needs.
 * In backward data a stride divides dx's pixels into residue classes that see the same taps; one launch for all. A filter gradient's
 * partial sums go to workspace and are added in order. Sums that are not finite are made again in plain f32, without padding.
 *
 * Refused: more taps than the table holds, or bits than a word; tensors that 31 bits do not address. */
#include <type_traits>
#include "conv_kernel.h"
#include "conv_store.cuh"
#include "engines.h"
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

/* ---- host ------------------------------------------------------------------------------------------------------------ */

/* rate: multiply-adds a cycle and SM, as measured on an H200 (tf32, 16 bits) */
struct planes_kernel {
  int32_t bm, bn, bk, threads, resident[2], rate[2], shared[2];          /* [filter] */
  const void *function[2][2];             /* [filter][by fours] */
};
/* Of P<rows_a, split>. */
#define KERNEL(P, split, half, rate, rate_filter) \
  { P<true, split>::BM, P<true, split>::BN, P<true, split>::BK, P<true, split>::threads, \
    { P<true, split>::resident, P<false, split>::resident }, { rate, rate_filter }, \
    { tiled_shape<P<true, split>>::shared + P<true, split>::BM * 4, tiled_shape<P<false, split>>::shared }, \
    { { (const void *)conv_planes<P<true, split>, half, 1, false>, (const void *)conv_planes<P<true, split>, half, 4, false> }, \
      { (const void *)conv_planes<P<false, split>, half, 1, true>, (const void *)conv_planes<P<false, split>, half, 4, true> } } }
template <bool rows_a, bool split> using large = mma_product<mma_tf32, 4, 2, 2, 2, 64, 4, 2, 4, rows_a, false, true, split>;
template <bool rows_a, bool split> using wide = mma_product<mma_tf32, 2, 4, 4, 2, 64, 4, 2, 4, rows_a, false, true, split>;
template <bool rows_a, bool split> using small = mma_product<mma_tf32, 2, 2, 2, 2, 64, 4, 3, 4, rows_a, false, true, split>;
template <bool rows_a, bool split> using of_48 = mma_product<mma_tf32, 4, 1, 2, 3, 64, 4, rows_a ? 3 : 2, 4, rows_a, false, true, split>;
template <bool rows_a, bool split> using of_32 = mma_product<mma_tf32, 4, 1, 2, 2, 64, 4, 3, 4, rows_a, false, true, split>;
template <bool rows_a, bool split> using of_16 = mma_product<mma_tf32, 4, 1, 2, 1, 64, 4, 4, 4, rows_a, false, true, split>;
enum { ONE, THREE, HALVES, KINDS };       /* tf32, 3xTF32, 16-bit elements */
static const planes_kernel kernels[][KINDS] = {
  { KERNEL(large, false, false, 118, 90), KERNEL(large, true, false, 70, 60), KERNEL(large, false, true, 75, 75) },
  { KERNEL(small, false, false, 105, 90), KERNEL(small, true, false, 65, 60), KERNEL(small, false, true, 60, 60) },
  { KERNEL(of_48, false, false, 120, 80), KERNEL(of_48, true, false, 70, 55), KERNEL(of_48, false, true, 75, 60) },
  { KERNEL(of_32, false, false, 90, 85), KERNEL(of_32, true, false, 60, 50), KERNEL(of_32, false, true, 75, 60) },
  { KERNEL(of_16, false, false, 40, 30), KERNEL(of_16, true, false, 32, 25), KERNEL(of_16, false, true, 35, 28) },
  { KERNEL(wide, false, false, 150, 110), {}, {} },
};
static const char *const names[] = { "128x64", "64x64", "128x48", "128x32", "128x16", "128x128", nullptr };
enum { SIZES = sizeof kernels / sizeof *kernels };

/* Nanoseconds of so many tiles of so many stages of k. */
static double cost(const planes_kernel *k, bool filter, double tiles, double steps, double bytes, int units)
{
  const double each = (double)k->bm * k->bn * k->bk / k->rate[filter], room = (double)units * k->resident[filter];
  double cycles = 0;
  for (double left = tiles; left > 0; left -= room) {       /* full waves, then the remainder */
    const double rounds = left >= 2 * room ? (double)(int64_t)(left / room) : 1;
    const double deep = left >= room ? k->resident[filter] : left > units ? left / units : 1;
    const double stage = each * deep;
    cycles += rounds * (steps * (stage > 450 ? stage : 450) + 5000 + k->bm * k->bn / 2.5 * deep);
    left -= (rounds - 1) * room;
  }
  const double ns = cycles / 1.7, memory = bytes / (25.0 * units);
  return 3000 + (ns > memory ? ns + 0.15 * memory : memory + 0.15 * ns);
}

static void narrow_strides(int32_t (&to)[5], const int64_t (&from)[5])
{
  for (int i = 0; i < 5; i++) to[i] = (int32_t)from[i];
}

/* Are the pixels of all images in units of four that lie side by side, and aligned? */
static bool by_fours(const qn_value *v)
{
  int64_t pixels = 1;
  bool fits = v->align >= 4 * (uint32_t)qn_kit_bytes(v->dtype) && (v->dim[1] == 1 || v->stride[1] % 4 == 0);
  for (int d = v->rank - 1; d >= 2; d--) fits = fits && (v->dim[d] == 1 || v->stride[d] == pixels), pixels *= v->dim[d];
  return fits && pixels % 4 == 0 && (v->dim[0] == 1 || v->stride[0] % 4 == 0);
}

static qn_status check(const qn_request *r, const cuda_conv_problem *c, qn_prepared *out)
{
  qn_status status = cuda_conv_wants_ampere(r, out);
  if (status) return status;
  const qn_value *all[] = { c->x, c->w, c->y };
  for (int i = 0; i < 3; i++)
    if (qn_extent(all[i]) > INT32_MAX)
      return qn_refuse(out, "tensors that 31 bits address", cuda_conv_name(c, all[i]), "fewer than 2^31 elements", "%s", "more");
  if (c->size[0] * c->size[1] * c->size[2] > TAPS)
    return qn_refuse(out, "taps of a table", "w", "1024", "%lld", (long long)(c->size[0] * c->size[1] * c->size[2]));
  if (c->mode == CUDA_CONV_FILTER && !qn_is_packed(c->w) && !qn_is_channels_last(c->w))
    return qn_refuse(out, "packed filters", "dw", "nchw or nhwc", "%s", "other strides");
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  planes p = {};
  cuda_chain chain;
  qn_status status = cuda_conv_problem_read_volume(&c, r, out);
  if (status || (status = check(r, &c, out))) return status;
  const bool data = c.mode == CUDA_CONV_DATA, filter = c.mode == CUDA_CONV_FILTER;
  const qn_value *gathered = data ? c.y : c.x, *written = data ? c.x : filter ? c.w : c.y;
  const int kind = gathered->dtype != QN_F32 ? HALVES : r->demands->math >= QN_MATH_TF32 ? ONE : THREE;
  const int64_t channels = (data ? c.filters : c.channels) / c.groups, columns = (data ? c.channels : c.filters) / c.groups;
  int64_t classes = 1, taps = 1, pixels = c.x->dim[0], fields = 0;
  p.mode = c.mode;
  for (int d = 0; d < 3; d++) {
    p.in[d] = (int32_t)(data ? c.out[d] : c.in[d]), p.extent[d] = (int32_t)(data ? c.in[d] : c.out[d]), p.size[d] = (int32_t)c.size[d];
    p.apart[d] = data ? (int32_t)c.stride[d] : 1, p.pace[d] = data ? 1 : (int32_t)c.stride[d];
    p.step[d] = (int32_t)c.dilation[d], p.before[d] = (int32_t)c.before[d], p.every[d] = data ? cuda_conv_every(&c, d) : 1;
    const int64_t most = qn_ceil_div(c.size[d], p.every[d]), reach = (c.size[d] - 1) * c.dilation[d] - c.before[d];
    const bool whole = data ? reach < c.stride[d] && c.before[d] == 0 && c.in[d] <= c.out[d] * c.stride[d]
                            : c.before[d] == 0 && (c.out[d] - 1) * c.stride[d] + reach < c.in[d];
    p.field[d] = whole ? -1 : (int32_t)fields;
    fields += whole ? 0 : most;
    classes *= p.apart[d], taps *= most;
    pixels *= qn_ceil_div(p.extent[d], p.apart[d]);
  }
  if (fields > BITS)
    return qn_refuse(out, "bits of a word for taps that padding may hide", "w", "filters of fewer taps", "%lld", (long long)fields);
  const int64_t table = filter ? 0 : taps * (int64_t)sizeof(planes_tap);
  const int64_t m = filter ? channels * taps : pixels, k = filter ? pixels : channels * taps;
  if (qn_max_i64(m, k) > INT32_MAX - 512) return qn_refuse(out, "rows and sums that 31 bits count", "x", "fewer", "%s", "more");
  if (!filter) {
    qn_request alone = *r;
    if (c.x->rank != 4) alone.n_ops = 1;                    /* followers are addressed in two spatial dims */
    if ((status = cuda_conv_problem_bias_relu(&c, &alone, &chain, &p.column, &p.factor, &p.relu, out))) return status;
    written = &r->value[chain.out];
    if (qn_extent(written) > INT32_MAX)
      return qn_refuse(out, "tensors that 31 bits address", "y", "fewer than 2^31 elements", "%s", "more");
    p.steps = chain.steps;
  }
  bool fours = taps == 1 && classes == 1 && by_fours(gathered) && (!filter || by_fours(c.y));
  for (int d = 0; d < 3; d++) fours = fours && c.size[d] == 1 && c.stride[d] == 1 && c.in[d] == c.out[d] && p.field[d] < 0;
  int64_t stride[5];
  cuda_conv_strides(stride, gathered);
  narrow_strides(p.gathered_stride, stride);
  p.gathered_group = channels * stride[1];
  cuda_conv_strides(stride, filter ? c.y : c.w);
  p.other_group = (filter ? columns * stride[1] : (data ? channels : columns) * stride[0]);
  narrow_strides(p.other_stride, stride);
  if (data) p.other_stride[0] = (int32_t)stride[1], p.other_stride[1] = (int32_t)stride[0];
  cuda_conv_strides(stride, written);
  narrow_strides(p.out_stride, stride);
  p.along = filter || !(stride[1] == 1 && columns > 1);
  p.last = filter ? !qn_is_packed(c.w) : p.gathered_stride[1] == 1 && channels > 1;
  p.images = (int32_t)c.x->dim[0], p.channels = (int32_t)channels;
  p.m = (int32_t)m, p.n = (int32_t)columns, p.k = (int32_t)k;
  p.elements = columns * c.groups * m;
  for (int i = 0; i < 8; i++) {
    int64_t some = 1;
    for (int d = 0; d < 3; d++) some *= qn_ceil_div(c.size[d], p.every[d]) - (i >> d & 1);
    p.by[i] = cuda_divide_by(p.last ? channels : qn_max_i64(some, 1));
  }
  p.by_w = cuda_divide_by(p.extent[1]), p.by_hw = cuda_divide_by((int64_t)p.extent[0] * p.extent[1]);
  p.by_dhw = cuda_divide_by((int64_t)p.extent[0] * p.extent[1] * p.extent[2]);
  if (classes * c.groups > 65535) return qn_refuse(out, "a grid of blocks", "x", "at most 65535 groups, of each of the stride's remainders",
                                                   "%lld", (long long)(classes * c.groups));
  const double bytes =
    (double)qn_kit_bytes(gathered->dtype) * ((double)qn_elements(c.x) + (double)qn_elements(c.y) + (double)qn_elements(c.w));
  const double sum = filter ? (double)k : (double)channels * (double)(c.size[0] * c.size[1] * c.size[2]) / (double)classes;
  const bool one_order = r->demands->determinism >= QN_DET_BATCH && !filter;
  double least = 0;
  int64_t best_parts = 1;
  int best = -1;
  for (int i = 0; i < SIZES && !(one_order && best >= 0); i++) {
    const planes_kernel *kernel = &kernels[i][kind];
    if (!kernel->threads || (r->variant && strcmp(r->variant, names[i]))) continue;
    if (kernel->shared[filter] + table > (int64_t)r->device->shared_per_block) continue;
    const int64_t tiles = qn_ceil_div(m, kernel->bm) * qn_ceil_div(columns, kernel->bn);
    const int64_t room = (int64_t)r->device->units * kernel->resident[filter];
    for (int rounds = 1; rounds <= (filter ? 3 : 1); rounds++) {
      int64_t parts = 1;
      if (filter) parts = qn_max_i64(qn_min_i64(rounds * room / (tiles * c.groups), k / 128), qn_ceil_div(k, SUM));
      if (parts > 1 && (uint64_t)(parts * p.elements * 4) > r->demands->workspace_limit) continue;
      const double units = (double)(tiles * classes * c.groups * parts);
      double t = cost(kernel, filter, units, (double)qn_ceil_div((int64_t)(sum / (double)parts), kernel->bk), bytes, (int)r->device->units);
      if (parts > 1) t += 2000 + (double)(parts * p.elements * 4) / 2000;
      if (best < 0 || t < least) best = i, least = t, best_parts = parts;
    }
  }
  if (best < 0)
    return qn_refuse(out, "a tile whose stages fit into shared memory, workspace for partial sums", "", "more", "%llu",
                     (unsigned long long)r->device->shared_per_block);
  const planes_kernel *kernel = &kernels[best][kind];
  const int64_t tiles_n = qn_ceil_div(columns, kernel->bn), tiles = qn_ceil_div(m, kernel->bm) * tiles_n;
  if (tiles > INT32_MAX) return qn_refuse(out, "fewer than 2^31 tiles", "", "", "%lld", (long long)tiles);
  p.tiles_n = (int32_t)tiles_n;
  p.dtype = gathered->dtype, p.out_dtype = written->dtype;
  p.share = (int32_t)qn_round_up(qn_ceil_div(k, best_parts), kernel->bk);
  const int64_t parts = filter ? qn_ceil_div(k, p.share) : 1;
  if (parts > 1) p.out_dtype = QN_F32;
  if (parts > 65535) return qn_refuse(out, "a grid of blocks", "x", "fewer pixels", "%lld", (long long)k);
  cuda_conv_kernel *launch = cuda_conv_kernel_begin(out, kernel->function[filter][fours], &p, sizeof p);
  if (!launch) return QN_NO_MEMORY;
  launch->grid[0] = (uint32_t)tiles, launch->grid[1] = (uint32_t)parts, launch->grid[2] = (uint32_t)(classes * c.groups);
  launch->threads = (uint32_t)kernel->threads;
  launch->shared = (uint32_t)(kernel->shared[filter] + table);
  cuda_conv_kernel_pointer(launch, data ? c.y_at : c.x_at, offsetof(planes, gathered));
  cuda_conv_kernel_pointer(launch, filter ? c.y_at : c.w_at, offsetof(planes, other));
  if (!filter) cuda_conv_kernel_steps(launch, out, &chain, offsetof(planes, steps), offsetof(planes, out));
  else if (parts == 1) cuda_conv_kernel_pointer(launch, c.w_at, offsetof(planes, out));
  else cuda_conv_kernel_parts(launch, out, &c, parts, p.elements, offsetof(planes, out));
  out->math = kind == ONE ? QN_MATH_TF32 : kind == THREE ? QN_MATH_F32 : QN_MATH_STRICT;
  out->numerics.accumulator = kind == ONE ? QN_ACC_TF32 : kind == THREE ? QN_ACC_3XTF32 : QN_ACC_F32_TC;
  if (r->demands->determinism >= QN_DET_BATCH) out->traits |= QN_TRAIT_BATCH_INVARIANT;
  out->variant = names[best];
  out->estimate = least;
  return QN_OK;
}

#define ROW(op, pattern) { "planes", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, names, pattern, \
                           prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr),
                                 ROW(QN_OP_CONV_BACKWARD_FILTER, nullptr) };
CUDA_ENGINES(conv_planes) = { row, sizeof row / sizeof *row };
