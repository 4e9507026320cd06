/* conv_pointwise.cuh -- the product of a convolution with filters of one tap over planes, by mma.sync: matmul_tiled.cuh's main loop,
 * operands that walk over the pixels of all images, and an epilogue that stores whole rows of pixels.
 *
 * A line of a stage is a channel's run of pixels (forward, data), or a row is (backward filter); each thread copies units of `bytes`,
 * none of which straddles two images. */
#pragma once
#include "conv_pointwise.h"
#include "conv_store.cuh"
#include "kit/element.cuh"
#include "matmul/matmul_mma.cuh"

/* ---- operands ------------------------------------------------------------------------------------------------------- */

/* Lines of k (channels), columns (pixels) inner. A thread's column stays, so that its address is made once. */
template <class P> struct pointwise_columns {
  typedef typename tiled_shape<P>::operand_b::stage stage;
  static_assert(P::rows_b, "pixels are contiguous");
  const char *from;                       /* at k 0, in this thread's first line */
  int64_t pace;                           /* bytes between channels */
  int bytes, line;
  bool there;
  uint32_t place;

  __device__ __forceinline__ pointwise_columns(const cuda_pointwise &g, int n0, int group) : bytes(g.bytes)
  {
    const int per_line = stage::inner * P::esize / bytes, at = threadIdx.x % per_line * bytes, col = n0 + at / P::esize;
    uint32_t pixel;
    const int image = cuda_quotient(col, g.by_pixels, &pixel);
    line = threadIdx.x / per_line;
    there = col < g.n;
    pace = g.read.channel * P::esize;
    from = (const char *)g.read.p + (image * g.read.image + group * g.read.group + pixel) * P::esize + line * pace;
    place = line * stage::pitch + at;
  }
  template <int width> __device__ __forceinline__ void copy(uint32_t to, const char *at, int left) const
  {
    constexpr int lines = P::threads * width / (stage::inner * P::esize), turns = (stage::outer + lines - 1) / lines;
    static_assert(lines > 0 && P::threads % lines == 0, "whole lines");
#pragma unroll
    for (int i = 0; i < turns; i++) {
      const int l = line + i * lines;
      if (stage::outer % lines && l >= stage::outer) break;
      copy_async<width>(to + place + i * lines * stage::pitch, at + i * lines * pace, there && l < left ? width : 0);
    }
  }
  __device__ __forceinline__ void load(uint32_t to, int k, int k_end) const
  {
    const char *at = from + k * pace;
    if (bytes == 16) copy<16>(to, at, k_end - k);
    else if (bytes == 8) copy<8>(to, at, k_end - k);
    else copy<4>(to, at, k_end - k);
  }
  __device__ __forceinline__ void store(uint32_t) const {}
};

/* Rows are channels, k (pixels) inner. */
template <class P, class stage> struct pointwise_rows {
  const cuda_divisor &by_pixels;
  const char *from;                       /* in this thread's first row */
  int64_t image, pace;                    /* bytes between images, channels */
  int bytes, at, left;                    /* at: this thread's pixels in a stage; left: rows from its first one on */
  uint32_t place;

  __device__ __forceinline__ pointwise_rows(const cuda_pointwise &g, const cuda_pointwise_side &s, int row0, int rows, int group)
    : by_pixels(g.by_pixels), image(s.image * P::esize), pace(s.channel * P::esize), bytes(g.bytes)
  {
    const int per_row = stage::inner * P::esize / bytes, row = threadIdx.x / per_row, inside = threadIdx.x % per_row * bytes;
    at = inside / P::esize;
    left = rows - row0 - row;
    from = (const char *)s.p + group * s.group * P::esize + (row0 + row) * pace;
    place = row * stage::pitch + inside;
  }
  template <int width> __device__ __forceinline__ void copy(uint32_t to, const char *from, bool there) const
  {
    constexpr int rows = P::threads * width / (stage::inner * P::esize), turns = (stage::outer + rows - 1) / rows;
    static_assert(rows > 0 && stage::outer % rows == 0, "whole rows");
#pragma unroll
    for (int i = 0; i < turns; i++)
      copy_async<width>(to + place + i * rows * stage::pitch, from + i * rows * pace, there && i * rows < left ? width : 0);
  }
  __device__ __forceinline__ void load(uint32_t to, int k, int k_end) const
  {
    const bool there = k + at < k_end;
    uint32_t pixel;
    const int n = cuda_quotient(there ? k + at : 0, by_pixels, &pixel);
    const char *here = from + n * image + pixel * P::esize;
    if (bytes == 16) copy<16>(to, here, there);
    else if (bytes == 8) copy<8>(to, here, there);
    else copy<4>(to, here, there);
  }
  __device__ __forceinline__ void store(uint32_t) const {}
};

/* ---- sums again -------------------------------------------------------------------------------------------------------- */

/* One sum of f32 terms in plain f32, for those that rounding to tf32 has spoilt; of backward filter over pixels k to k_end. */
template <bool filter>
static __device__ __noinline__ float pointwise_again(const cuda_pointwise &g, int group, int row, int col, int k, int k_end)
{
  float sum = 0;
  const float *read = (const float *)g.read.p + group * g.read.group;
  if (filter) {
    const float *dy = (const float *)g.dy.p + group * g.dy.group + row * g.dy.channel;
    for (; k < k_end; k++) {
      uint32_t pixel;
      const int n = cuda_quotient(k, g.by_pixels, &pixel);
      sum = fmaf(dy[n * g.dy.image + pixel], read[n * g.read.image + col * g.read.channel + pixel], sum);
    }
    return sum;
  }
  uint32_t pixel;
  const int n = cuda_quotient(col, g.by_pixels, &pixel);
  const float *w = (const float *)g.w.p + group * g.w.batch_stride[0] + row * g.w.row_stride;
  for (; k < k_end; k++) sum = fmaf(w[k * g.w.k_stride], read[n * g.read.image + k * g.read.channel + pixel], sum);
  return sum;
}

/* ---- epilogues ----------------------------------------------------------------------------------------------------------- */

template <int each> __device__ __forceinline__ void pointwise_put(void *out, uint32_t dtype, int64_t at, const float (&v)[each])
{
  if (dtype == QN_F32) {
    float *to = (float *)out + at;
    if constexpr (each == 4) *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
    else if constexpr (each == 2) *(float2 *)to = make_float2(v[0], v[1]);
    else *to = v[0];
    return;
  }
  uint16_t *to = (uint16_t *)out + at;
  if constexpr (each == 1) {
    *to = dtype == QN_BF16 ? float_to_bf16(v[0]) : float_to_f16(v[0]);
  } else {
    uint32_t two[each / 2];
#pragma unroll
    for (int i = 0; i < each / 2; i++) two[i] = dtype == QN_BF16 ? pack_bf16(v[2 * i], v[2 * i + 1]) : pack_f16(v[2 * i], v[2 * i + 1]);
    if constexpr (each == 4) *(uint2 *)to = make_uint2(two[0], two[1]);
    else *(uint32_t *)to = two[0];
  }
}

/* Stores a tile of pixels: a thread has the same `each` columns in every row that it takes. */
template <class P, int each>
__device__ __forceinline__ void pointwise_finish(const cuda_pointwise &g, const float *tile, int m0, int n0, int group)
{
  constexpr int pitch = tiled_shape<P>::pitch, units = P::BN / each, rows = P::threads / units, turns = P::BM / rows;
  static_assert(P::threads % units == 0 && P::BM % rows == 0, "whole rows");
  const int at = threadIdx.x % units * each, first = threadIdx.x / units, col = n0 + at;
  if (col >= g.n) return;
  uint32_t pixel;
  const int image = cuda_quotient(col, g.by_pixels, &pixel), channel0 = group * g.m + m0;
  const int64_t base = image * g.out.image + channel0 * g.out.channel + pixel;
#pragma unroll 4
  for (int i = 0; i < turns; i++) {
    const int r = first + i * rows;
    if (m0 + r >= g.m) break;
    float v[each];
    if constexpr (each == 4) {
      const float4 q = *(const float4 *)(tile + r * pitch + at);
      v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
    } else {
#pragma unroll
      for (int e = 0; e < each; e++) v[e] = tile[r * pitch + at + e];
    }
    if constexpr (P::again) {
#pragma unroll
      for (int e = 0; e < each; e++)
        if (!isfinite(v[e])) v[e] = pointwise_again<false>(g, group, m0 + r, col + e, 0, g.k);
    }
    if (g.column >= 0) {
      const cuda_operand &o = g.steps.operand[g.column];
      const float bias = element_load<float>(o.p, (channel0 + r) * o.stride[1], dtype3(o.dtype));
#pragma unroll
      for (int e = 0; e < each; e++) v[e] += bias;
    }
    if (g.factor >= 0) {
      const column_fold by = fold_of(g.steps, g.factor, channel0 + r);
#pragma unroll
      for (int e = 0; e < each; e++) v[e] = folded(v[e], by);
    }
    if (g.relu) {
#pragma unroll
      for (int e = 0; e < each; e++) v[e] = v[e] < 0 ? 0 : v[e];          /* keeps NaN */
    }
    pointwise_put<each>((void *)g.out.p, g.out_dtype, base + r * g.out.channel, v);
  }
}

/* Stores a tile of dw, or of one of its partial sums. */
template <class P>
__device__ __forceinline__ void pointwise_finish_filter(const cuda_pointwise &g, const float *tile, int m0, int n0, int group, int k,
                                                        int k_end)
{
  constexpr int pitch = tiled_shape<P>::pitch, rows = P::threads / P::BN > 0 ? P::threads / P::BN : 1;
  static_assert(P::threads % P::BN == 0 && P::BM % rows == 0, "whole rows");
  const int at = threadIdx.x % P::BN, col = n0 + at;
  if (col >= g.n) return;
#pragma unroll 4
  for (int r = threadIdx.x / P::BN; r < P::BM; r += rows) {
    if (m0 + r >= g.m) break;
    float v[1] = { tile[r * pitch + at] };
    if constexpr (P::again)
      if (!isfinite(v[0])) v[0] = pointwise_again<true>(g, group, m0 + r, col, k, k_end);
    pointwise_put<1>((void *)g.out.p, g.out_dtype, blockIdx.y * g.elements + (int64_t)(group * g.m + m0 + r) * g.n + col, v);
  }
}

/* Lets the next kernel of the stream begin, and waits until the earlier ones, which may write the operands, are complete. */
__device__ __forceinline__ void pointwise_wait()
{
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

/* ---- the kernel ------------------------------------------------------------------------------------------------------------ */

/* Grid: tiles, rows fastest, so that tiles of the same pixels run at about the same time; partial sums; groups. */
template <class P, bool filter>
__global__ void __launch_bounds__(P::threads, P::resident) conv_pointwise(const __grid_constant__ cuda_pointwise g)
{
  typedef tiled_shape<P> shape;
  extern __shared__ __align__(16) unsigned char shared[];
  const uint32_t ring = shared_address(shared);
  const int tile_n = blockIdx.x / g.tiles_m, m0 = (blockIdx.x - tile_n * g.tiles_m) * P::BM, n0 = tile_n * P::BN, group = blockIdx.z;
  const int k = filter ? blockIdx.y * g.share : 0, k_end = filter ? min(g.k, k + g.share) : g.k;
  P p(threadIdx.x);
  if constexpr (filter) {
    pointwise_rows<P, typename shape::operand_a::stage> a(g, g.dy, m0, g.m, group);
    pointwise_rows<P, typename shape::operand_b::stage> b(g, g.read, n0, g.n, group);
    pointwise_wait();
    tiled_sum(p, a, b, ring, k, k_end);
  } else {
    typename shape::operand_a a(g.w, m0, group, 0);
    pointwise_columns<P> b(g, n0, group);
    pointwise_wait();
    tiled_sum(p, a, b, ring, 0, k_end);
  }
  __syncthreads();                        /* the ring's memory becomes the tile */
  float *tile = (float *)shared;
  p.put(tile, shape::pitch);
  __syncthreads();
  if constexpr (filter) pointwise_finish_filter<P>(g, tile, m0, n0, group, k, k_end);
  else if (g.each == 4) pointwise_finish<P, 4>(g, tile, m0, n0, group);
  else if (g.each == 2) pointwise_finish<P, 2>(g, tile, m0, n0, group);
  else pointwise_finish<P, 1>(g, tile, m0, n0, group);
}

/* Table entry of the kernels P<rows_a>, of filters with k or rows contiguous; and of the gradient by the filters. */
#define POINTWISE_KERNEL(P, rate) \
  { P<false>::BM, P<false>::BN, P<false>::BK, P<false>::stages, P<false>::threads, P<false>::resident, rate, \
    { tiled_shape<P<false>>::stage_bytes, tiled_shape<P<true>>::stage_bytes }, tiled_shape<P<false>>::tile_bytes, !P<false>::any, \
    { (const void *)conv_pointwise<P<false>, false>, (const void *)conv_pointwise<P<true>, false> } }
#define POINTWISE_FILTER(P, rate) \
  { P::BM, P::BN, P::BK, P::stages, P::threads, P::resident, rate, \
    { tiled_shape<P>::stage_bytes, tiled_shape<P>::stage_bytes }, tiled_shape<P>::tile_bytes, 0, \
    { (const void *)conv_pointwise<P, true>, (const void *)conv_pointwise<P, true> } }
