/* conv_tf32_layout.cu -- passes around conv_tf32's product. Before: pixels to channels last, unfolded windows, and the second
 * operand split and swizzled into shared memory order. After: partial sums of a gradient by the filter are added in order. */
#include "conv_tf32.h"
#include "cuda_backend.h"
#include "kit/element.cuh"

static unsigned blocks(int64_t n, int per) { return (unsigned)qn_ceil_div(n, per); }

/* ---- channels last ---------------------------------------------------------------------------- */

struct spread_pixels { cuda_conv_pixels at; int32_t step_h, step_w, w, pixels, c4, tiles_c, tiles_p; };

/* 32 pixels of 64 channels: read along whichever dim is contiguous, written along channels in vectors of four. */
template <bool by_channel>
__global__ void __launch_bounds__(256) conv_pack_pixels(float4 *to, const float *from, const __grid_constant__ spread_pixels s)
{
  __shared__ float tile[64][33];
  int t = threadIdx.x, tile_c = blockIdx.x % s.tiles_c, rest = blockIdx.x / s.tiles_c, image = rest / s.tiles_p;
  int p0 = (rest - image * s.tiles_p) * 32, c0 = tile_c * 64;
  const int64_t first = cuda_conv_image(s.at, image);
  float v[8];
#pragma unroll
  for (int i = 0; i < 8; i++) {
    int c = by_channel ? t % 64 : t / 32 + 8 * i, p = by_channel ? t / 64 + 4 * i : t % 32;
    int h = (p0 + p) / s.w, w = p0 + p - h * s.w, y = h / s.step_h, x = w / s.step_w;
    bool there = p0 + p < s.pixels && c0 + c < s.at.c && y * s.step_h == h && x * s.step_w == w;
    v[i] = there ? from[first + (c0 + c) * s.at.c_stride + y * s.at.h_stride + x * s.at.w_stride] : 0;
  }
#pragma unroll
  for (int i = 0; i < 8; i++) {
    int c = by_channel ? t % 64 : t / 32 + 8 * i, p = by_channel ? t / 64 + 4 * i : t % 32;
    tile[c][p] = v[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int c = t % 16 * 4, p = t / 16 + 16 * i;
    if (p0 + p >= s.pixels || c0 + c >= s.c4) continue;
    to[((int64_t)image * s.pixels + p0 + p) * (s.c4 / 4) + (c0 + c) / 4] =
      make_float4(tile[c][p], tile[c + 1][p], tile[c + 2][p], tile[c + 3][p]);
  }
}

qn_status cuda_conv_pack_pixels(float *to, const float *from, const cuda_conv_pixels *at, int step_h, int step_w, void *stream)
{
  spread_pixels s = {};
  s.at = *at;
  s.step_h = step_h, s.step_w = step_w;
  s.w = (at->w - 1) * step_w + 1;
  s.pixels = ((at->h - 1) * step_h + 1) * s.w;
  s.c4 = (int32_t)qn_round_up(at->c, 4);
  s.tiles_c = (int32_t)qn_ceil_div(s.c4, 64);
  s.tiles_p = (int32_t)qn_ceil_div(s.pixels, 32);
  unsigned n = (unsigned)((int64_t)at->n * s.tiles_c * s.tiles_p);
  if (at->c_stride == 1) conv_pack_pixels<true><<<n, 256, 0, (cudaStream_t)stream>>>((float4 *)to, from, s);
  else conv_pack_pixels<false><<<n, 256, 0, (cudaStream_t)stream>>>((float4 *)to, from, s);
  return cuda_check(cudaGetLastError(), "conv_pack_pixels");
}

/* ---- windows --------------------------------------------------------------------------------------- */

struct windows { cuda_conv_pixels at; cuda_conv_unfold u; int32_t depth, quads; int64_t units; };

__global__ void __launch_bounds__(256) conv_pack_windows(float4 *to, const float *from, const __grid_constant__ windows s)
{
  int64_t unit = blockIdx.x * (int64_t)256 + threadIdx.x;
  if (unit >= s.units) return;
  int quad = (int)(unit % s.quads), pixel = (int)(unit / s.quads), hw = s.u.out_h * s.u.out_w, n = pixel / hw;
  int p = (pixel - n * hw) / s.u.out_w, q = pixel - n * hw - p * s.u.out_w;
  float v[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int k = quad * 4 + i, tap = k / s.at.c, c = k - tap * s.at.c, r = tap / s.u.taps_w;
    int h = p * s.u.stride_h + r * s.u.dilation_h - s.u.pad_h, w = q * s.u.stride_w + (tap - r * s.u.taps_w) * s.u.dilation_w - s.u.pad_w;
    bool there = k < s.depth && h >= 0 && h < s.at.h && w >= 0 && w < s.at.w;
    v[i] = there ? from[n * s.at.n_stride + c * s.at.c_stride + h * s.at.h_stride + w * s.at.w_stride] : 0;
  }
  to[unit] = make_float4(v[0], v[1], v[2], v[3]);
}

qn_status cuda_conv_pack_windows(float *to, const float *from, const cuda_conv_pixels *at, const cuda_conv_unfold *u, void *stream)
{
  windows s = {};
  s.at = *at;
  s.u = *u;
  s.depth = at->c * u->taps_h * u->taps_w;
  s.quads = (int32_t)qn_ceil_div(s.depth, 4);
  s.units = (int64_t)at->n * u->out_h * u->out_w * s.quads;
  conv_pack_windows<<<blocks(s.units, 256), 256, 0, (cudaStream_t)stream>>>((float4 *)to, from, s);
  return cuda_check(cudaGetLastError(), "conv_pack_windows");
}

/* ---- the second operand ------------------------------------------------------------------------------ */

struct packed { int32_t rows, bn, tiles, split; int64_t units; };

/* Splits and stores four elements of a row of 32. For infinities see conv_tf32.cu. */
__device__ __forceinline__ void store_split(float *to, const packed &s, int64_t step, int row, int quad, const float (&v)[4])
{
  int tile = row / s.bn, r = row - tile * s.bn;
  float *at = to + ((step * s.tiles + tile) * (s.split ? 2 : 1) * s.bn + r) * 32 + ((quad ^ (r & 7)) << 2);
  float high[4], low[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint32_t bits = __float_as_uint(v[i]);
    bool infinite = (bits & 0x7fffffff) == 0x7f800000;
    float top = __uint_as_float(v[i] == v[i] ? bits & 0xffffe000 : 0x7fffffff);
    high[i] = infinite && s.split ? __uint_as_float((bits & 0x80000000) | 0x3f800000) : top;
    low[i] = infinite ? v[i] : v[i] - top;
  }
  *(float4 *)at = make_float4(high[0], high[1], high[2], high[3]);
  if (s.split) *(float4 *)(at + s.bn * 32) = make_float4(low[0], low[1], low[2], low[3]);
}

static packed packed_for(int64_t rows, int64_t steps, int bn, bool split, int quads)
{
  packed s = {};
  s.rows = (int32_t)rows;
  s.bn = bn;
  s.tiles = (int32_t)qn_ceil_div(rows, bn);
  s.split = split;
  s.units = steps * s.tiles * bn * quads;
  return s;
}

__global__ void __launch_bounds__(256)
    conv_pack_filters(float *to, const float *from, const __grid_constant__ packed s, const __grid_constant__ cuda_conv_filters f,
                      const __grid_constant__ cuda_conv_classes classes)
{
  int64_t unit = blockIdx.x * (int64_t)256 + threadIdx.x;
  if (unit >= s.units) return;
  int quad = (int)(unit % 8), rows = s.tiles * s.bn, row = (int)(unit / 8 % rows), step = (int)(unit / 8 / rows), number = 0;
  while (number + 1 < classes.n && step >= classes.of[number + 1].start) number++;
  const cuda_conv_class &k = classes.of[number];
  int chunks = (f.cols + 31) / 32, tap = f.unfolded ? 0 : (step - k.start) / chunks, line = tap / k.taps[0], d = line / k.taps[1];
  int col = (f.unfolded ? step : step - k.start - tap * chunks) * 32 + quad * 4;
  const int64_t at_tap = (k.filter[0] + (tap - line * k.taps[0]) * classes.pace[0]) * f.s_stride +
                         (k.filter[1] + (line - d * k.taps[1]) * classes.pace[1]) * f.r_stride +
                         (k.filter[2] + d * classes.pace[2]) * f.d_stride;
  float v[4];
#pragma unroll
  for (int i = 0; i < 4; i++, col++) {
    int at = f.unfolded ? col / f.cols : 0, c = col - at * f.cols;
    bool there = row < s.rows && (f.unfolded ? at < f.taps : c < f.cols);
    v[i] = there ? from[row * f.row_stride + c * f.col_stride + (f.unfolded ? cuda_conv_tap(f, at) : at_tap)] : 0;
  }
  store_split(to, s, step, row, quad, v);
}

qn_status cuda_conv_pack_filters(float *to, const float *from, const cuda_conv_filters *f, const cuda_conv_classes *classes, int bn,
                                 bool split, void *stream)
{
  const cuda_conv_class *last = &classes->of[classes->n - 1];
  packed s = packed_for(f->rows, last->start + last->steps, bn, split, 8);
  conv_pack_filters<<<blocks(s.units, 256), 256, 0, (cudaStream_t)stream>>>(to, from, s, *f, *classes);
  return cuda_check(cudaGetLastError(), "conv_pack_filters");
}

enum gradient_order { BY_FILTER, BY_PIXEL, BY_EIGHT };      /* contiguous: filters; pixels; pixels in whole aligned groups of eight */

/* Eight pixels of a filter's gradient: even ones first, then odd ones, the order in which the other operand is read. */
template <int order>
__global__ void __launch_bounds__(256)
    conv_pack_gradient(float *to, const float *from, const __grid_constant__ packed s, const __grid_constant__ cuda_conv_pixels at)
{
  int64_t unit = blockIdx.x * (int64_t)256 + threadIdx.x;
  if (unit >= s.units) return;
  const uint32_t rows = s.tiles * s.bn;
  const int64_t step = unit / (rows * 4);
  const uint32_t rest = (uint32_t)(unit - step * (rows * 4));
  const int row = order == BY_FILTER ? rest % rows : rest / 4, eight = order == BY_FILTER ? rest / rows : rest % 4;
  int pixel = (int)(step * 32 + eight * 8), hw = at.h * at.w, n = pixel / hw, h = (pixel - n * hw) / at.w, w = pixel - n * hw - h * at.w;
  float even[4] = {0, 0, 0, 0}, odd[4] = {0, 0, 0, 0};
  if (order == BY_EIGHT) {
    if (row < s.rows && n < at.n) {
      const float4 *p = (const float4 *)(from + cuda_conv_image(at, n) + row * at.c_stride + (pixel - n * hw));
      float4 lo = p[0], hi = p[1];
      even[0] = lo.x, odd[0] = lo.y, even[1] = lo.z, odd[1] = lo.w, even[2] = hi.x, odd[2] = hi.y, even[3] = hi.z, odd[3] = hi.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++) {
      float v = row < s.rows && n < at.n ? from[cuda_conv_image(at, n) + row * at.c_stride + h * at.h_stride + w * at.w_stride] : 0;
      if (i % 2) odd[i / 2] = v;
      else even[i / 2] = v;
      if (++w == at.w) {
        w = 0;
        if (++h == at.h) h = 0, n++;
      }
    }
  }
  store_split(to, s, step, row, eight * 2, even);
  store_split(to, s, step, row, eight * 2 + 1, odd);
}

qn_status cuda_conv_pack_gradient(float *to, const float *from, const cuda_conv_pixels *at, int bn, bool split, void *stream)
{
  packed s = packed_for(at->c, qn_ceil_div((int64_t)at->n * at->h * at->w, 32), bn, split, 4);
  bool planes = (at->w_stride == 1 || at->w == 1) && (at->h_stride == at->w || at->h == 1) && at->h * at->w % 8 == 0;
  bool eights = planes && (uintptr_t)from % 16 == 0 && (at->n_stride | at->volume_stride | at->c_stride) % 4 == 0;
  void (*kernel)(float *, const float *, packed, cuda_conv_pixels) =
    eights ? conv_pack_gradient<BY_EIGHT> : at->c_stride == 1 ? conv_pack_gradient<BY_FILTER> : conv_pack_gradient<BY_PIXEL>;
  kernel<<<blocks(s.units, 256), 256, 0, (cudaStream_t)stream>>>(to, from, s, *at);
  return cuda_check(cudaGetLastError(), "conv_pack_gradient");
}

/* ---- parts --------------------------------------------------------------------------------------------- */

struct joined { cuda_conv_filters f; int32_t parts, by_channel; int64_t rows, rows_of_tap, n; };

__global__ void __launch_bounds__(256) conv_join_filters(float *to, const float *from, const __grid_constant__ joined s)
{
  int64_t i = blockIdx.x * (int64_t)256 + threadIdx.x;
  if (i >= s.n) return;
  const cuda_conv_filters &f = s.f;
  int c, tap;
  int64_t rest;
  if (s.by_channel) c = (int)(i % f.cols), tap = (int)(i / f.cols % f.taps), rest = i / f.cols / f.taps;
  else tap = (int)(i % f.taps), c = (int)(i / f.taps % f.cols), rest = i / f.taps / f.cols;
  const float *at = from + rest * s.rows + (f.unfolded ? tap * f.cols : tap * s.rows_of_tap) + c;
  float sum = 0;
#pragma unroll 16
  for (int p = 0; p < s.parts; p++) sum += at[p * s.rows * f.rows];
  to[rest * f.row_stride + c * f.col_stride + cuda_conv_tap(f, tap)] = sum;
}

qn_status cuda_conv_join_filters(float *to, const float *parts, const cuda_conv_filters *f, int n_parts, int64_t rows, int64_t rows_of_tap,
                                 void *stream)
{
  joined s = {};
  s.f = *f;
  s.parts = n_parts;
  s.by_channel = f->col_stride == 1 && f->taps > 1;
  s.rows = rows;
  s.rows_of_tap = rows_of_tap;
  s.n = (int64_t)f->rows * f->cols * f->taps;
  conv_join_filters<<<blocks(s.n, 256), 256, 0, (cudaStream_t)stream>>>(to, parts, s);
  return cuda_check(cudaGetLastError(), "conv_join_filters");
}
