/* conv_mma.cuh -- matmul_tiled.cuh's main loop with one operand gathered from windows, channels last (implicit GEMM).
 *
 *                     a, BM rows               b, BN columns                  summed over
 *   forward           pixels of x at a tap     filters                        taps, channels
 *   backward data     pixels of dy at a tap    channels of filters            taps, filters
 *   backward filter   filters of dy            channels of x at each tap      pixels of a part
 *
 * A copy moves 16 bytes of channels, which all belong to one tap; taps outside the tensor read as 0. Sums of f32 that are not
 * finite are recomputed in plain f32. Where a sum is split, the CTA that arrives last adds the parts in order (tiled_join). */
#pragma once
#include "conv_mma.h"
#include "matmul/matmul_mma.cuh"

/* ---- positions ------------------------------------------------------------------------------------------------------------- */

/* A tap of a window, or a pixel (d then counts the planes of all images); W is innermost. */
struct conv_place {
  int h, w, d;
  __device__ __forceinline__ conv_place() {}
  __device__ __forceinline__ conv_place(int i, int extent_h, int extent_w)
  {
    int row = i / extent_w;
    w = i - row * extent_w, d = row / extent_h, h = row - d * extent_h;
  }
  __device__ __forceinline__ void next(int extent_h, int extent_w)
  {
    if (++w < extent_w) return;
    w = 0;
    if (++h == extent_h) h = 0, d++;
  }
};

/* The windows of a residue class of pixels, and a group; W is innermost in the grid. */
struct conv_class {
  const cuda_conv_mma &g;
  int which;                              /* group, and residues along D, H, W in two bits each: in one register */
  static_assert(CUDA_CONV_APART <= 4, "two bits");

  __device__ __forceinline__ conv_class(const cuda_conv_mma &g) : g(g)
  {
    int rest = blockIdx.z / g.apart[1], w = blockIdx.z - rest * g.apart[1], row = rest / g.apart[0], group = row / g.apart[2];
    which = ((group * 4 + row - group * g.apart[2]) * 4 + rest - row * g.apart[0]) * 4 + w;
  }
  __device__ __forceinline__ int group() const { return which >> 6; }
  __device__ __forceinline__ int residue(int dim) const { return which >> (dim == 2 ? 4 : dim == 0 ? 2 : 0) & 3; }         /* H, W, D */

  __device__ __forceinline__ const cuda_conv_span &h() const { return g.spans[0][residue(0)]; }
  __device__ __forceinline__ const cuda_conv_span &w() const { return g.spans[1][residue(1)]; }
  __device__ __forceinline__ const cuda_conv_span &d() const { return g.spans[2][residue(2)]; }
  /* The gathered tensor from the group's channels on. */
  template <class T> __device__ __forceinline__ const T *gathered() const { return (const T *)g.gathered + (int64_t)group() * g.channels; }
  __device__ __forceinline__ int pixels() const { return h().out * w().out * d().out; }
  __device__ __forceinline__ int taps() const { return h().taps * w().taps * d().taps; }
  __device__ __forceinline__ conv_place pixel(int i) const { return conv_place(i, h().out, w().out); }
  __device__ __forceinline__ conv_place tap(int i) const { return conv_place(i, h().taps, w().taps); }
  /* Number in the filter of tap t. */
  __device__ __forceinline__ int tap_of(const conv_place &t) const
  {
    return ((d().tap + t.d * d().tap_step) * g.size[0] + h().tap + t.h * h().tap_step) * g.size[1] + w().tap + t.w * w().tap_step;
  }
  /* Turns a pixel into its window's first position; returns its image. */
  __device__ __forceinline__ int window(conv_place &p) const
  {
    int n = p.d / d().out;
    p.h = p.h * g.pace[0] - h().before, p.w = p.w * g.pace[1] - w().before, p.d = (p.d - n * d().out) * g.pace[2] - d().before;
    return n;
  }
};

/* Is a position inside the gathered tensor? And its element offset in the image. */
__device__ __forceinline__ bool conv_inside(const cuda_conv_mma &g, int h, int w, int d)
{
  return (uint32_t)h < (uint32_t)g.in[0] && (uint32_t)w < (uint32_t)g.in[1] && (uint32_t)d < (uint32_t)g.in[2];
}
__device__ __forceinline__ int conv_offset(const cuda_conv_mma &g, int h, int w, int d)
{
  return ((d * g.in[0] + h) * g.in[1] + w) * g.pitch;
}
__device__ __forceinline__ int64_t conv_image(const cuda_conv_mma &g) { return (int64_t)g.in[0] * g.in[1] * g.in[2] * g.pitch; }

/* ---- operands ----------------------------------------------------------------------------------------------- */

/* A stage of the gathered operand, one line a pixel: `rows` pixels from row0 on, taps and channels from k on. */
template <class P> struct conv_pixels {
  typedef typename tiled_shape<P>::operand_a::stage stage;
  static constexpr int unit = 16 / P::esize, chunks = P::BK / unit, at_once = P::threads / chunks, turns = P::BM / at_once;
  static_assert(P::BM % at_once == 0, "whole turns");
  const cuda_conv_mma &g;
  const conv_class &of;
  const char *image[turns];
  /* begin: first position of each window; tap, c: tap and channel of this thread's chunk in the next stage */
  conv_place begin[turns], tap;
  int c;
  uint32_t place;

  __device__ __forceinline__ conv_pixels(const cuda_conv_mma &g, const conv_class &of, int row0, int k) : g(g), of(of)
  {
    int line = threadIdx.x / chunks, element = threadIdx.x % chunks * unit, t = (k + element) / g.channels;
    place = line * stage::pitch + element * P::esize;
    c = k + element - t * g.channels;
    tap = of.tap(t);
#pragma unroll
    for (int i = 0; i < turns; i++) {
      begin[i] = of.pixel(row0 + i * at_once + line);
      int n = of.window(begin[i]);
      if (n >= g.images) begin[i].h = -(1 << 29);
      image[i] = (const char *)g.gathered + (n * conv_image(g) + (int64_t)of.group() * g.channels) * P::esize;
    }
  }
  __device__ __forceinline__ void load(uint32_t to, int, int)
  {
    int h = tap.h * g.step[0], w = tap.w * g.step[1], d = tap.d * g.step[2];
#pragma unroll
    for (int i = 0; i < turns; i++) {
      const conv_place &b = begin[i];
      bool there = tap.d < of.d().taps && conv_inside(g, b.h + h, b.w + w, b.d + d);
      const char *from = there ? image[i] + (int64_t)(conv_offset(g, b.h + h, b.w + w, b.d + d) + c) * P::esize : (const char *)g.gathered;
      copy_async<16>(to + place + i * at_once * stage::pitch, from, there ? 16 : 0);
    }
    for (c += P::BK; c >= g.channels; c -= g.channels) tap.next(of.h().taps, of.w().taps);
  }
  __device__ __forceinline__ void store(uint32_t) const {}
};

/* The same with one line a (tap, channel), the columns of the product; pixels from k on are summed over. */
template <class P> struct conv_windows {
  typedef typename tiled_shape<P>::operand_b::stage stage;
  static constexpr int unit = 16 / P::esize, chunks = P::BN / unit, at_once = P::threads / chunks, turns = P::BK / at_once;
  static_assert(P::BK % at_once == 0, "whole turns");
  const cuda_conv_mma &g;
  conv_place first;                       /* first position of pixel 0's window */
  int c, line;                            /* c: of the tensor's channels */
  bool exists;
  uint32_t place;

  __device__ __forceinline__ conv_windows(const cuda_conv_mma &g, const conv_class &of, int col0) : g(g)
  {
    int element = threadIdx.x % chunks * unit, col = col0 + element, tap = col / g.channels;
    line = threadIdx.x / chunks;
    place = line * stage::pitch + element * P::esize;
    exists = col < g.n;
    c = of.group() * g.channels + col - tap * g.channels;
    first = conv_place(tap, g.size[0], g.size[1]);
    first.h = first.h * g.step[0] - of.h().before, first.w = first.w * g.step[1] - of.w().before,
    first.d = first.d * g.step[2] - of.d().before;
  }
  __device__ __forceinline__ void load(uint32_t to, int k, int k_end)
  {
#pragma unroll
    for (int i = 0; i < turns; i++) {
      int pixel = k + i * at_once + line, row = cuda_quotient(pixel, g.by_w), plane = cuda_quotient(pixel, g.by_hw),
          n = cuda_quotient(pixel, g.by_dhw);
      int w = (pixel - row * g.spans[1][0].out) * g.pace[1] + first.w, h = (row - plane * g.spans[0][0].out) * g.pace[0] + first.h;
      int d = (plane - n * g.spans[2][0].out) * g.pace[2] + first.d;
      bool there = exists && pixel < k_end && conv_inside(g, h, w, d);
      const char *from = (const char *)g.gathered + (there ? n * conv_image(g) + conv_offset(g, h, w, d) + c : 0) * P::esize;
      copy_async<16>(to + place + i * at_once * stage::pitch, from, there ? 16 : 0);
    }
  }
  __device__ __forceinline__ void store(uint32_t) const {}
};

/* Filters for backward data: a line of channels for each (tap, filter) from k on. */
template <class P> struct conv_turned {
  typedef typename tiled_shape<P>::operand_b::stage stage;
  static constexpr int unit = 16 / P::esize, chunks = P::BN / unit, at_once = P::threads / chunks, turns = P::BK / at_once;
  static_assert(P::BK % at_once == 0, "whole turns");
  const cuda_conv_mma &g;
  const conv_class &of;
  conv_place tap[turns];
  int filter[turns], channel;
  uint32_t place;

  __device__ __forceinline__ conv_turned(const cuda_conv_mma &g, const conv_class &of, int col0, int k) : g(g), of(of)
  {
    int line = threadIdx.x / chunks, element = threadIdx.x % chunks * unit;
    place = line * stage::pitch + element * P::esize;
    channel = col0 + element;
#pragma unroll
    for (int i = 0; i < turns; i++) {
      int t = (k + i * at_once + line) / g.channels;
      filter[i] = k + i * at_once + line - t * g.channels;
      tap[i] = of.tap(t);
    }
  }
  __device__ __forceinline__ void load(uint32_t to, int, int)
  {
#pragma unroll
    for (int i = 0; i < turns; i++) {
      bool there = tap[i].d < of.d().taps && channel < g.n;
      const char *from = (const char *)g.filters +
                         (there ? ((int64_t)(of.group() * g.channels + filter[i]) * g.taps + of.tap_of(tap[i])) * g.n + channel : 0) *
                           P::esize;
      copy_async<16>(to + place + i * at_once * stage::pitch, from, there ? 16 : 0);
      for (filter[i] += P::BK; filter[i] >= g.channels; filter[i] -= g.channels) tap[i].next(of.h().taps, of.w().taps);
    }
  }
  __device__ __forceinline__ void store(uint32_t) const {}
};

/* ---- the kernel --------------------------------------------------------------------------------------------- */

/* Recomputes one sum in plain f32; backward filter: over pixels k..k_end-1. */
template <int mode>
static __device__ __noinline__ float conv_sum_again(const cuda_conv_mma &g, const conv_class &of, int row, int col, int k, int k_end)
{
  const float *from = of.gathered<float>(), *other = (const float *)(mode == CUDA_CONV_DATA ? g.filters : g.other.p);
  other += of.group() * (mode == CUDA_CONV_DATA ? (int64_t)g.channels * g.taps * g.n : g.other.batch_stride[0]);
  float sum = 0;
  if (mode == CUDA_CONV_FILTER) {
    int t = col / g.channels, c = col - t * g.channels;
    conv_place tap(t, g.size[0], g.size[1]);
    for (int i = k; i < k_end; i++) {
      conv_place p = of.pixel(i);
      int n = of.window(p), h = p.h + tap.h * g.step[0], w = p.w + tap.w * g.step[1], d = p.d + tap.d * g.step[2];
      if (conv_inside(g, h, w, d)) sum += from[n * conv_image(g) + conv_offset(g, h, w, d) + c] * other[i * g.other.k_stride + row];
    }
  } else {
    conv_place p = of.pixel(row), tap(0, 1, 1);
    int n = of.window(p);
    for (; tap.d < of.d().taps; tap.next(of.h().taps, of.w().taps)) {
      int h = p.h + tap.h * g.step[0], w = p.w + tap.w * g.step[1], d = p.d + tap.d * g.step[2], t = of.tap_of(tap);
      if (!conv_inside(g, h, w, d)) continue;
      const float *x = from + n * conv_image(g) + conv_offset(g, h, w, d);
#pragma unroll 1
      for (int c = 0; c < g.channels; c++)
        sum += x[c] * other[mode == CUDA_CONV_DATA ? ((int64_t)c * g.taps + t) * g.n + col : ((int64_t)col * g.taps + t) * g.channels + c];
    }
  }
  return sum;
}

/* Applies the steps to the tile of sums in shared memory and stores it. apart: distance of a class's pixels; corner: its first pixel. */
template <class P, int mode>
static __device__ __noinline__ void conv_mma_finish(const cuda_conv_mma &g, const conv_class &of, const float *tile, int m0, int n0, int m,
                                                    int corner)
{
  for (int i = threadIdx.x; i < P::BM * P::BN / 8; i += blockDim.x) {
    int r = i / (P::BN / 8), c = i % (P::BN / 8) * 8, row = m0 + r, col = n0 + c, n = min(8, g.n - col), k = blockIdx.y * g.share;
    if (row >= m || n <= 0) continue;
    float v[8];
#pragma unroll
    for (int e = 0; e < 8; e++) v[e] = tile[r * tiled_shape<P>::pitch + c + e];
    if constexpr (P::again) {
#pragma unroll
      for (int e = 0; e < 8; e++)
        if (e < n && !isfinite(v[e])) v[e] = conv_sum_again<mode>(g, of, row, col + e, k, min(g.k, k + g.share));
    }
    if (g.apart[0] > 1 || g.apart[1] > 1 || g.apart[2] > 1) {
      conv_place p = of.pixel(row);
      int image = p.d / of.d().out, plane = image * g.extent[2] + (p.d - image * of.d().out) * g.apart[2];
      row = (plane * g.extent[0] + p.h * g.apart[0]) * g.extent[1] + p.w * g.apart[1] + corner;
    }
    steps_apply(g.steps, v, row, of.group() * g.n + col, 0, 0, 0, n);
    store8(v, g.out, g.out_dtype, blockIdx.y * g.out_parts + of.group() * g.out_group + row * g.out_row + col, 1, n);
  }
}

static_assert(sizeof(cuda_conv_mma) <= 2048, "room for them in the state of conv_kernel.h");

/* Grid: tiles, columns fastest; partial sums; classes, of each group. */
template <class P, int mode> __global__ void __launch_bounds__(P::threads, P::resident) conv_mma(const __grid_constant__ cuda_conv_mma g)
{
  typedef tiled_shape<P> shape;
  extern __shared__ __align__(16) unsigned char shared[];
  uint32_t ring = shared_address(shared);
  int tile_m = blockIdx.x / g.tiles_n, m0 = tile_m * P::BM, n0 = (blockIdx.x - tile_m * g.tiles_n) * P::BN, k = blockIdx.y * g.share;
  const conv_class of(g);
  int m = mode == CUDA_CONV_FILTER ? g.other.rows : g.images * of.pixels();
  if (m0 >= m) return;                    /* this class has fewer pixels than others */
  P p(threadIdx.x);
  if constexpr (mode == CUDA_CONV_FORWARD) {
    conv_pixels<P> a(g, of, m0, k);
    tiled_operand<P::BN, P::BK, P::esize, false, P::threads, false> b(g.other, n0, of.group(), 0);
    tiled_sum(p, a, b, ring, k, min(g.k, k + g.share));
  } else if constexpr (mode == CUDA_CONV_DATA) {
    if (of.taps()) {
      conv_pixels<P> a(g, of, m0, k);
      conv_turned<P> b(g, of, n0, k);
      tiled_sum(p, a, b, ring, k, min(of.taps() * g.channels, k + g.share));
    }
  } else {
    tiled_operand<P::BM, P::BK, P::esize, true, P::threads, false, P::pad_a> a(g.other, m0, of.group(), 0);
    conv_windows<P> b(g, of, n0);
    tiled_sum(p, a, b, ring, k, min(g.k, k + g.share));
  }
  if constexpr (mode != CUDA_CONV_FILTER) {
    const int tiles = gridDim.x * gridDim.z;
    if (g.parts.splits > 1 && !tiled_join(g.parts, p, blockIdx.z * gridDim.x + blockIdx.x, tiles, blockIdx.y)) return;
  }
  __syncthreads();                        /* the ring's memory becomes the output tile */
  p.put((float *)shared, shape::pitch);
  __syncthreads();
  conv_mma_finish<P, mode>(g, of, (const float *)shared, m0, n0, m,
                           (of.residue(2) * g.extent[0] + of.residue(0)) * g.extent[1] + of.residue(1));
}

/* Of P<rows_a, rows_b>. */
#define CONV_MMA_KERNEL(P, rate, mode, rows_a, rows_b) \
  { P<rows_a, rows_b>::BM, P<rows_a, rows_b>::BN, P<rows_a, rows_b>::BK, P<rows_a, rows_b>::threads, \
    P<rows_a, rows_b>::resident, rate, tiled_shape<P<rows_a, rows_b>>::shared, \
    (const void *)conv_mma<P<rows_a, rows_b>, mode> }
