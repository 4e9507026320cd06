/* conv_mma.cuh -- the loop of matmul_tiled.cuh with one operand gathered from windows, channels last.
 *
 *                     a, BM rows               b, BN columns                  summed over
 *   forward           pixels of x at a tap     filters                        taps, channels
 *   backward data     pixels of dy at a tap    channels of filters            taps, filters
 *   backward filter   filters of dy            channels of x at each tap      pixels of a part
 *
 * Eight channels, 16 bytes, are copied at once, so that all of them belong to one tap. What a window has beyond the tensor is 0. */
#pragma once
#include "conv_mma.h"
#include "matmul_mma.cuh"

/* A stage of the gathered tensor in lines of pixels: the windows of `rows` pixels from row0 on, at taps and channels from k on. */
template <int rows, int bk, int threads> struct conv_pixels {
  typedef tiled_stage<rows, bk, 2, false> stage;
  static constexpr int chunks = bk / 8, at_once = threads / chunks, turns = rows / at_once;
  static_assert(rows % at_once == 0, "whole turns");
  const cuda_conv_mma &g;
  const char *image[turns];
  int h[turns], w[turns];                 /* where the window begins */
  int taps_h, taps_w, r, s, c;            /* this thread's chunk in the next stage */
  uint32_t place;

  __device__ __forceinline__ conv_pixels(const cuda_conv_mma &g, const cuda_conv_span &down, const cuda_conv_span &across, int row0, int k)
    : g(g), taps_h(down.taps), taps_w(across.taps)
  {
    int line = threadIdx.x / chunks, element = threadIdx.x % chunks * 8;
    place = line * stage::pitch + element * 2;
    int tap = (k + element) / g.channels;
    c = k + element - tap * g.channels, r = tap / taps_w, s = tap - r * taps_w;
#pragma unroll
    for (int i = 0; i < turns; i++) {
      int row = row0 + i * at_once + line, rest = row / across.out, n = rest / down.out;
      h[i] = n < g.images ? (rest - n * down.out) * g.pace[0] - down.before : -(1 << 29);
      w[i] = (row - rest * across.out) * g.pace[1] - across.before;
      image[i] = (const char *)g.gathered + (int64_t)n * g.in[0] * g.in[1] * g.channels * 2;
    }
  }
  __device__ __forceinline__ void load(uint32_t to, int, int)
  {
    int down = r * g.step[0], across = s * g.step[1];
#pragma unroll
    for (int i = 0; i < turns; i++) {
      int y = h[i] + down, x = w[i] + across;
      bool there = r < taps_h && (uint32_t)y < (uint32_t)g.in[0] && (uint32_t)x < (uint32_t)g.in[1];
      const char *from = there ? image[i] + (int64_t)((y * g.in[1] + x) * g.channels + c) * 2 : (const char *)g.gathered;
      copy_async<16>(to + place + i * at_once * stage::pitch, from, there ? 16 : 0);
    }
    for (c += bk; c >= g.channels; c -= g.channels)
      if (++s == taps_w) s = 0, r++;
  }
  __device__ __forceinline__ void store(uint32_t) const {}
};

/* The same in lines of (tap, channel), which are rows of the product: pixels from k on are summed over. */
template <int rows, int bk, int threads> struct conv_windows {
  typedef tiled_stage<rows, bk, 2, true> stage;
  static constexpr int chunks = rows / 8, at_once = threads / chunks, turns = bk / at_once;
  static_assert(bk % at_once == 0, "whole turns");
  const cuda_conv_mma &g;
  int h, w, c, line;                      /* of the window of pixel 0 */
  bool exists;
  uint32_t place;

  __device__ __forceinline__ conv_windows(const cuda_conv_mma &g, int row0) : g(g)
  {
    int element = threadIdx.x % chunks * 8, row = row0 + element, tap = row / g.channels, r = tap / g.size_w;
    line = threadIdx.x / chunks;
    place = line * stage::pitch + element * 2;
    exists = row < g.n;
    c = row - tap * g.channels;
    h = r * g.step[0] - g.spans[0][0].before, w = (tap - r * g.size_w) * g.step[1] - g.spans[1][0].before;
  }
  __device__ __forceinline__ void load(uint32_t to, int k, int k_end)
  {
#pragma unroll
    for (int i = 0; i < turns; i++) {
      int pixel = k + i * at_once + line, n = cuda_quotient(pixel, g.by_hw), rest = cuda_quotient(pixel, g.by_w);
      int y = (rest - n * g.spans[0][0].out) * g.pace[0] + h, x = (pixel - rest * g.spans[1][0].out) * g.pace[1] + w;
      bool there = exists && pixel < k_end && (uint32_t)y < (uint32_t)g.in[0] && (uint32_t)x < (uint32_t)g.in[1];
      const char *from = (const char *)g.gathered + (there ? (((int64_t)n * g.in[0] + y) * g.in[1] + x) * g.channels + c : 0) * 2;
      copy_async<16>(to + place + i * at_once * stage::pitch, from, there ? 16 : 0);
    }
  }
  __device__ __forceinline__ void store(uint32_t) const {}
};

/* Filters as backward by the data reads them: lines of channels, one for each (tap, filter) from k on. */
template <int rows, int bk, int threads> struct conv_turned {
  typedef tiled_stage<rows, bk, 2, true> stage;
  static constexpr int chunks = rows / 8, at_once = threads / chunks, turns = bk / at_once;
  static_assert(bk % at_once == 0, "whole turns");
  const cuda_conv_mma &g;
  const cuda_conv_span &down, &across;
  int r[turns], s[turns], filter[turns], channel;
  uint32_t place;

  __device__ __forceinline__ conv_turned(const cuda_conv_mma &g, const cuda_conv_span &down, const cuda_conv_span &across, int row0) : g(g), down(down), across(across)
  {
    int line = threadIdx.x / chunks, element = threadIdx.x % chunks * 8;
    place = line * stage::pitch + element * 2;
    channel = row0 + element;
#pragma unroll
    for (int i = 0; i < turns; i++) {
      int tap = (i * at_once + line) / g.channels;
      filter[i] = i * at_once + line - tap * g.channels, r[i] = tap / across.taps, s[i] = tap - r[i] * across.taps;
    }
  }
  __device__ __forceinline__ void load(uint32_t to, int, int)
  {
#pragma unroll
    for (int i = 0; i < turns; i++) {
      int tap = (down.tap + r[i] * down.tap_step) * g.size_w + across.tap + s[i] * across.tap_step;
      bool there = r[i] < down.taps && channel < g.n;
      const char *from = (const char *)g.filters + (there ? ((int64_t)filter[i] * g.taps + tap) * g.n + channel : 0) * 2;
      copy_async<16>(to + place + i * at_once * stage::pitch, from, there ? 16 : 0);
      for (filter[i] += bk; filter[i] >= g.channels; filter[i] -= g.channels)
        if (++s[i] == across.taps) s[i] = 0, r[i]++;
    }
  }
  __device__ __forceinline__ void store(uint32_t) const {}
};

/* ---- the kernel --------------------------------------------------------------------------------------------- */

/* The tile of sums in shared memory through the steps to the output's rows. apart: pixels of a class, (0, 0) at `corner`. */
template <int BM, int BN> static __device__ __noinline__ void conv_mma_finish(const cuda_conv_mma &g, const float *tile, int pitch, int m0, int n0, int m, int out_h, int out_w, int corner, int64_t base)
{
  for (int i = threadIdx.x; i < BM * BN / 8; i += blockDim.x) {
    int r = i / (BN / 8), c = i % (BN / 8) * 8, row = m0 + r, col = n0 + c, n = min(8, g.n - col);
    if (row >= m || n <= 0) continue;
    if (g.apart[0] > 1 || g.apart[1] > 1) {
      int rest = row / out_w, image = rest / out_h;
      row = (image * g.extent[0] + (rest - image * out_h) * g.apart[0]) * g.extent[1] + (row - rest * out_w) * g.apart[1] + corner;
    }
    float v[8];
#pragma unroll
    for (int e = 0; e < 8; e++) v[e] = tile[r * pitch + c + e];
    steps_apply(g.steps, v, row, col, 0, 0, 0, n);
    store8(v, g.out, g.out_dtype, base + (int64_t)row * g.n + col, 1, n);
  }
}

static_assert(sizeof(cuda_conv_mma) <= 2048, "room for them in the state of conv_kernel.h");

/* Grid: tiles, columns fastest; parts of the sum; classes. */
template <class P, int mode> __global__ void __launch_bounds__(P::threads, P::resident) conv_mma(const __grid_constant__ cuda_conv_mma g)
{
  typedef tiled_shape<P> shape;
  extern __shared__ __align__(16) unsigned char shared[];
  uint32_t ring = shared_address(shared);
  int tile_m = blockIdx.x / g.tiles_n, m0 = tile_m * P::BM, n0 = (blockIdx.x - tile_m * g.tiles_n) * P::BN, k = blockIdx.y * g.share;
  int class_h = blockIdx.z / g.apart[1], class_w = blockIdx.z - class_h * g.apart[1];
  const cuda_conv_span &down = g.spans[0][class_h], &across = g.spans[1][class_w];
  int m = mode == CUDA_CONV_FILTER ? g.other.rows : g.images * down.out * across.out;
  if (m0 >= m) return;                    /* of a smaller class than others */
  P p(threadIdx.x);
  if constexpr (mode == CUDA_CONV_FORWARD) {
    conv_pixels<P::BM, P::BK, P::threads> a(g, down, across, m0, k);
    tiled_operand<P::BN, P::BK, 2, false, P::threads, false> b(g.other, n0, 0, 0);
    tiled_sum(p, a, b, ring, k, g.k);
  } else if constexpr (mode == CUDA_CONV_DATA) {
    int taps = down.taps * across.taps;
    if (taps) {
      conv_pixels<P::BM, P::BK, P::threads> a(g, down, across, m0, k);
      conv_turned<P::BN, P::BK, P::threads> b(g, down, across, n0);
      tiled_sum(p, a, b, ring, k, taps * g.channels);
    }
  } else {
    tiled_operand<P::BM, P::BK, 2, true, P::threads, false> a(g.other, m0, 0, 0);
    conv_windows<P::BN, P::BK, P::threads> b(g, n0);
    tiled_sum(p, a, b, ring, k, min(g.k, k + g.share));
  }
  __syncthreads();                        /* the ring becomes the tile */
  p.put((float *)shared, shape::pitch);
  __syncthreads();
  conv_mma_finish<P::BM, P::BN>(g, (const float *)shared, shape::pitch, m0, n0, m, down.out, across.out, class_h * g.extent[1] + class_w, blockIdx.y * g.out_parts);
}

/* Of P<rows_a, rows_b>. */
#define CONV_MMA_KERNEL(P, rate, mode, rows_a, rows_b) \
  { P<rows_a, rows_b>::BM, P<rows_a, rows_b>::BN, P<rows_a, rows_b>::threads, P<rows_a, rows_b>::resident, rate, tiled_shape<P<rows_a, rows_b>>::shared, \
    (const void *)conv_mma<P<rows_a, rows_b>, mode> }
