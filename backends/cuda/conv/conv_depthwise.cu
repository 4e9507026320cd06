/* conv_depthwise.cu -- depthwise convolution (each channel has its own filters), forward and backward data. There is no sum over
 * channels for Tensor Cores: a memory-bound sum over windows.
 *
 *   strip    one filter a channel, 3x3, stride 1, no dilation, channels last: a thread has a pair of channels of 7x7 outputs,
 *            streams the input rows, the next ones prefetched, and adds each to the three output rows that see it; all in
 *            registers
 *   window   5x5 or 7x7, or stride 2: the input tile of a block is copied to shared memory (cp.async, double buffered); a thread
 *            has a pair of channels of a tile of outputs, walks the rows, and adds each to all outputs that see it
 *   near     one filter a channel, 1x1, 3x3 or 5x5 of stride 1 (the only one in backward data), 3x3 or 5x5 of stride 2, no dilation,
 *            tensors of any strides within 2^30 elements: a thread has 2x4 outputs of one channel, or of two neighbours, and loads
 *            all that they see at once, from L1 where others have loaded it: one wait, which is what counts in small problems
 *   any      everything else, any strides: an output a thread
 *
 * Backward data is the same sum over dy with the filter reversed; with a forward stride only every stride-th tap falls on a dy.
 * Both read window tap r of output o at i = (o mul + r step + off) / div, where that is an integer. */
#include "conv_depthwise.cuh"
#include "conv_kernel.h"
#include "conv_store.cuh"
#include "engines.h"
#include "kit/divisor.h"

enum { THREADS = 256, SHARED = 72 << 10, STRIP = 7, STRIP_THREADS = 128, NEAR_H = 2, NEAR_W = 4 };
enum { STEPS, BIAS, FOLD };               /* epilogue of a strip: any steps; bias and relu; bias, fold and relu */

struct depthwise {
  plane    x;                             /* the windowed tensor (backward: dy) */
  const void *w;
  void    *y;
  uint32_t dtype, out_dtype;
  int32_t  channels, in[2], out[2];       /* channels: of y */
  int32_t  per_group, data;               /* per_group: filters of a group; data: backward data */
  int32_t  size[2], mul[2], step[2], off[2], div[2];
  /* plain: the epilogue is only column (bias), factor (fold, -1: none) and relu, and y has x's dtype */
  int32_t  flip, column, relu, plain;
  int32_t  pairs, chunks, side;           /* window: pairs of channels of a block; 16-byte chunks of those; rows copied at once */
  /* thread tiles in a block; input tile in pixels; blocks of an image; all tiles */
  int32_t  lanes_h, lanes_w, tile_h, tile_w, blocks_h, blocks_w, tiles;
  int64_t  units;                         /* any: outputs; strip: tiles times channel pairs; near: times channels or pairs */
  int32_t  channels_fastest, factor;
  cuda_divisor by_c, by_h, by_w;          /* near: channels or pairs, tiles down, tiles across */
  int32_t  side_by_side;                  /* near: y's columns are stored in twos */
  int64_t  x_stride[4], y_stride[4], w_stride[3];           /* N, C, H, W; K, R, S */
  cuda_steps steps;
};

template <int dtype, int S, int stride, int TH, int TW>
__global__ void __launch_bounds__(THREADS, 3) depthwise_window(const __grid_constant__ depthwise p)
{
  static_assert(sizeof(depthwise) <= CUDA_CONV_PARAMETERS, "room for them in the state");
  constexpr int rows = (TH - 1) * stride + S, columns = (TW - 1) * stride + S, PITCH = depthwise_pitch<S>;
  typedef typename pair_of<dtype>::type raw;
  extern __shared__ float2 taps[];        /* [S][S][PITCH], then two input tiles (double buffer) */
  raw *tiles = (raw *)(taps + S * S * PITCH);
  int first = blockIdx.y * p.pairs * 2, pixels = p.tile_h * p.tile_w;
  tile_copy<sizeof(raw) / 2> copy(p.tile_w, p.chunks);
  tile_walk walk(blockIdx.x, gridDim.x, p.blocks_h, p.blocks_w), ahead = walk;
  auto load = [&](const tile_walk &t, int at) {
    copy.load(shared_address(tiles + at * pixels * PITCH), p.x, t.n, t.i * p.lanes_h * TH * stride + p.off[0],
              t.j * p.lanes_w * TW * stride + p.off[1], first, p.tile_h, p.tile_w, p.chunks, p.side, PITCH * sizeof(raw),
              p.tile_w * PITCH * sizeof(raw));
  };
  load(walk, 0);
  copy_async_commit();
  for (int i = threadIdx.x; i < p.pairs * 2 * S * S; i += blockDim.x) {
    int c = i / (S * S), t = i - c * (S * S), r = t / S, s = t - r * S;
    float w = 0;
    if (first + c < p.channels) w = element_load<float>(p.w, (first + c) * p.w_stride[0] + r * p.w_stride[1] + s * p.w_stride[2], dtype);
    if (p.flip) t = S * S - 1 - t;
    ((float *)taps)[t * PITCH * 2 + c] = w;
  }

  int lane = threadIdx.x / p.pairs, pair = threadIdx.x - lane * p.pairs, lane_h = lane / p.lanes_w, lane_w = lane - lane_h * p.lanes_w;
  int channel = first + pair * 2;
  bool works = lane_h < p.lanes_h && channel < p.channels;
  float2 bias = works ? bias_pair(p.steps, p.column, channel) : make_float2(0, 0);
  const float2 *mine = taps + pair;
  int at = 0;
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x, at ^= 1) {
    ahead.next(p.blocks_h, p.blocks_w);
    if (tile + (int)gridDim.x < p.tiles) load(ahead, at ^ 1);
    copy_async_commit();
    copy_async_wait<1>();
    __syncthreads();
    int y0 = (walk.i * p.lanes_h + lane_h) * TH, x0 = (walk.j * p.lanes_w + lane_w) * TW, high = min(TH, p.out[0] - y0),
        wide = min(TW, p.out[1] - x0);
    if (works && high > 0 && wide > 0) {
      const raw *in = tiles + (at * pixels + lane_h * TH * stride * p.tile_w + lane_w * TW * stride) * PITCH + pair;
      float2 sum[TH][TW];
#pragma unroll
      for (int t = 0; t < TH; t++)
#pragma unroll
        for (int q = 0; q < TW; q++) sum[t][q] = bias;
#pragma unroll (S <= 3 ? rows : 1)
      for (int i = 0; i < rows; i++, in += p.tile_w * PITCH) {
        float2 v[columns];
#pragma unroll
        for (int j = 0; j < columns; j++) v[j] = pair_floats<dtype>(in[j * PITCH]);
#pragma unroll
        for (int t = 0; t < TH; t++) {
          int r = i - t * stride;
          if (r < 0 || r >= S) continue;
#pragma unroll
          for (int s = 0; s < S; s++) {
            float2 w = mine[(r * S + s) * PITCH];
#pragma unroll
            for (int q = 0; q < TW; q++) pair_add(sum[t][q], v[q * stride + s], w);
          }
        }
      }

      int64_t pixel = ((int64_t)walk.n * p.out[0] + y0) * p.out[1] + x0;
      if (p.plain) {
        if (p.factor >= 0) {
          column_fold lo = fold_of(p.steps, p.factor, channel), hi = fold_of(p.steps, p.factor, channel + 1);
#pragma unroll
          for (int t = 0; t < TH; t++)
#pragma unroll
            for (int q = 0; q < TW; q++) sum[t][q] = make_float2(folded(sum[t][q].x, lo), folded(sum[t][q].y, hi));
        }
        if (p.relu)
#pragma unroll
          for (int t = 0; t < TH; t++)
#pragma unroll
            for (int q = 0; q < TW; q++) sum[t][q] = make_float2(fn_max(sum[t][q].x, 0.f), fn_max(sum[t][q].y, 0.f));
        int step = p.channels / 2;
#pragma unroll
        for (int t = 0; t < TH; t++) {
          raw *to = (raw *)p.y + ((pixel + t * p.out[1]) * p.channels + channel) / 2;
#pragma unroll
          for (int q = 0; q < TW; q++, to += step)
            if (t < high && q < wide) *to = pair_raw<dtype>(sum[t][q]);
        }
      } else {
#pragma unroll
        for (int t = 0; t < TH; t++)
#pragma unroll
          for (int q = 0; q < TW; q++)
            if (t < high && q < wide) store_pair(p.steps, sum[t][q], p.y, p.out_dtype, (int)pixel + t * p.out[1] + q, channel, p.channels);
      }
    }
    __syncthreads();
    walk = ahead;
  }
}

/* STRIP x STRIP outputs of two channels from (y0, x0) on. whole: all outputs exist, and at most the outermost input pixels do not. */
template <int dtype, int then, bool whole>
static __device__ __forceinline__ void strip_sum(const depthwise &p, const float2 (&w)[9], float2 bias, int n, int y0, int x0, int channel)
{
  enum { ROWS = STRIP + 2, COLUMNS = STRIP + 2, AHEAD = 1 };
  typedef typename pair_of<dtype>::type raw;
  int top = y0 + p.off[0], left = x0 + p.off[1], high = p.out[0] - y0, wide = p.out[1] - x0, step = p.channels / 2;
  const raw *from = (const raw *)p.x.p + (((int64_t)n * p.x.h + top) * p.x.w + left) * step + channel / 2;
  int pixel = (n * p.out[0] + y0) * p.out[1] + x0;
  raw *to = (raw *)p.y + (int64_t)pixel * step + channel / 2;
  bool first = left >= 0, last = left + COLUMNS <= p.x.w;
  raw rows[AHEAD + 1][COLUMNS];
  float2 sum[3][STRIP];
  const int factor = then == FOLD ? p.factor : -1;
  column_fold lo = fold_of(p.steps, factor, channel), hi = fold_of(p.steps, factor, channel + 1);
  auto load = [&](int r) {
    bool row = (whole && r > 0 && r < ROWS - 1) || (uint32_t)(top + r) < (uint32_t)p.x.h;
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
      bool column = whole ? j == 0 ? first : j == COLUMNS - 1 ? last : true : (uint32_t)(left + j) < (uint32_t)p.x.w;
      rows[r % (AHEAD + 1)][j] = row && column ? from[j * step] : raw();
    }
    from += p.x.w * step;
  };
#pragma unroll
  for (int r = 0; r < AHEAD; r++) load(r);
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    if (r + AHEAD < ROWS) load(r + AHEAD);
    if (r < STRIP)
#pragma unroll
      for (int q = 0; q < STRIP; q++) sum[r % 3][q] = bias;
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) {
      float2 v = pair_floats<dtype>(rows[r % (AHEAD + 1)][j]);
#pragma unroll
      for (int a = 0; a < 3; a++)
#pragma unroll
        for (int b = 0; b < 3; b++)
          if (r - a >= 0 && r - a < STRIP && j - b >= 0 && j - b < STRIP) pair_add(sum[(r - a) % 3][j - b], v, w[a * 3 + b]);
    }
    int o = r - 2;                        /* this output row is complete */
    if (o < 0) continue;
    if (!whole && o >= high) break;
    float2 (&done)[STRIP] = sum[(r + 1) % 3];
    if (then == FOLD)
#pragma unroll
      for (int q = 0; q < STRIP; q++) done[q] = make_float2(folded(done[q].x, lo), folded(done[q].y, hi));
    if (then != STEPS && p.relu)
#pragma unroll
      for (int q = 0; q < STRIP; q++) done[q] = make_float2(fn_max(done[q].x, 0.f), fn_max(done[q].y, 0.f));
#pragma unroll
    for (int q = 0; q < STRIP; q++) {
      if (!whole && q >= wide) continue;
      if (then == STEPS) store_pair(p.steps, done[q], p.y, p.out_dtype, pixel + o * p.out[1] + q, channel, p.channels);
      else to[q * step] = pair_raw<dtype>(done[q]);
    }
    to += p.out[1] * step;
  }
}

/* 3x3, stride 1. Grid: tiles times channel pairs, the pair fastest. */
template <int dtype, int then>
__global__ void __launch_bounds__(STRIP_THREADS, then == BIAS && dtype != QN_F32 ? 5 : 4)
    depthwise_strip(const __grid_constant__ depthwise p)
{
  int unit = blockIdx.x * STRIP_THREADS + threadIdx.x, rest = unit / p.pairs, channel = (unit - rest * p.pairs) * 2;
  int n = rest / (p.blocks_h * p.blocks_w), tile = rest - n * (p.blocks_h * p.blocks_w), i = tile / p.blocks_w;
  int y0 = i * STRIP, x0 = (tile - i * p.blocks_w) * STRIP, top = y0 + p.off[0], left = x0 + p.off[1];
  if (unit >= p.units) return;
  float2 w[9], bias = bias_pair(p.steps, p.column, channel);
#pragma unroll
  for (int t = 0; t < 9; t++) {
    int64_t at = channel * p.w_stride[0] + (p.flip ? 2 - t / 3 : t / 3) * p.w_stride[1] + (p.flip ? 2 - t % 3 : t % 3) * p.w_stride[2];
    w[t] = make_float2(element_load<float>(p.w, at, dtype), element_load<float>(p.w, at + p.w_stride[0], dtype));
  }
  bool whole = y0 + STRIP <= p.out[0] && x0 + STRIP <= p.out[1] && top >= -1 && left >= -1 && top + STRIP + 1 <= p.x.h &&
               left + STRIP + 1 <= p.x.w;
  if (then != STEPS && whole) strip_sum<dtype, then, then != STEPS>(p, w, bias, n, y0, x0, channel);
  else strip_sum<dtype, then, false>(p, w, bias, n, y0, x0, channel);
}

/* One output, added of what exists; any strides of the tensors, several filters a channel. */
static __device__ __noinline__ float sum_of(const depthwise &p, int64_t n, int c, int h, int w)
{
  float sum = 0;
  int many = p.data ? p.per_group : 1, from = p.data ? c * p.per_group : c / p.per_group, filter = p.data ? from : c;
  for (int j = 0; j < many; j++) {
    int64_t x = n * p.x_stride[0] + (from + j) * p.x_stride[1], tap = (filter + j) * p.w_stride[0];
    for (int r = 0; r < p.size[0]; r++) {
      int up = h * p.mul[0] + r * p.step[0] + p.off[0], i = up / p.div[0];
      if (up < 0 || i * p.div[0] != up || i >= p.in[0]) continue;
      for (int s = 0; s < p.size[1]; s++) {
        int across = w * p.mul[1] + s * p.step[1] + p.off[1], k = across / p.div[1];
        if (across < 0 || k * p.div[1] != across || k >= p.in[1]) continue;
        sum = fmaf(element_load<float>(p.x.p, x + i * p.x_stride[2] + k * p.x_stride[3], dtype3(p.dtype)),
                   element_load<float>(p.w, tap + r * p.w_stride[1] + s * p.w_stride[2], dtype3(p.dtype)), sum);
      }
    }
  }
  return sum;
}

template <int dtype> struct near_raw { typedef uint16_t type; };
template <> struct near_raw<QN_F32> { typedef float type; };

/* What a thread of `near` has of a pixel: V channels, as stored and as numbers. */
template <int dtype, int V> struct near_of {
  typedef typename pair_of<dtype>::type raw;
  typedef float2 number;
  static __device__ __forceinline__ float2 numbers(raw v) { return pair_floats<dtype>(v); }
  static __device__ __forceinline__ raw rounded(float2 v) { return pair_raw<dtype>(v); }
  static __device__ __forceinline__ float2 of(float lo, float hi) { return make_float2(lo, hi); }
  static __device__ __forceinline__ float &part(float2 &v, int i) { return i ? v.y : v.x; }
  static __device__ __forceinline__ void add(float2 &sum, float2 a, float2 b) { pair_add(sum, a, b); }
};
template <int dtype> struct near_of<dtype, 1> {
  typedef typename near_raw<dtype>::type raw;
  typedef float number;
  static __device__ __forceinline__ float numbers(raw v)
  {
    if constexpr (dtype == QN_F32) return v;
    else return dtype == QN_BF16 ? bf16_to_float(v) : f16_to_float(v);
  }
  static __device__ __forceinline__ raw rounded(float v)
  {
    if constexpr (dtype == QN_F32) return v;
    else return dtype == QN_BF16 ? float_to_bf16(v) : float_to_f16(v);
  }
  static __device__ __forceinline__ float of(float lo, float) { return lo; }
  static __device__ __forceinline__ float &part(float &v, int) { return v; }
  static __device__ __forceinline__ void add(float &sum, float a, float b) { sum = fmaf(a, b, sum); }
};

/* Grid: units; channels fastest if they are contiguous, otherwise columns. Missing inputs count as 0; a sum that is not finite is
 * therefore added again, of what exists. */
template <int dtype, int S, int stride, int V>
__global__ void __launch_bounds__(STRIP_THREADS, 4) depthwise_near(const __grid_constant__ depthwise p)
{
  constexpr int ROWS = (NEAR_H - 1) * stride + S, COLUMNS = (NEAR_W - 1) * stride + S;
  typedef near_of<dtype, V> many;
  typedef typename near_raw<dtype>::type element;
  typedef typename many::raw raw;
  const uint32_t unit = blockIdx.x * STRIP_THREADS + threadIdx.x;
  if (unit >= (uint32_t)p.units) return;
  uint32_t c, i, j, n, rest;
  if (p.channels_fastest)
    rest = cuda_quotient(unit, p.by_c, &c), rest = cuda_quotient(rest, p.by_w, &j), n = cuda_quotient(rest, p.by_h, &i);
  else
    rest = cuda_quotient(unit, p.by_w, &j), rest = cuda_quotient(rest, p.by_h, &i), n = cuda_quotient(rest, p.by_c, &c);
  const int channel = c * V, y0 = i * NEAR_H, x0 = j * NEAR_W, back = p.flip ? S - 1 : 0, top = y0 * stride + p.off[0] - back,
            left = x0 * stride + p.off[1] - back;

  raw v[ROWS][COLUMNS];
  /* modulo 2^32: places in the padding wrap, those that exist lie below 2^30 and are exact */
  const uint32_t down = (uint32_t)p.x_stride[2], across = (uint32_t)p.x_stride[3];
  const uint32_t at = n * (uint32_t)p.x_stride[0] + channel * (uint32_t)p.x_stride[1] + top * down + left * across;
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int q = 0; q < COLUMNS; q++) {
      const bool there = (uint32_t)(top + r) < (uint32_t)p.in[0] && (uint32_t)(left + q) < (uint32_t)p.in[1];
      v[r][q] = there ? *(const raw *)((const element *)p.x.p + (at + r * down + q * across)) : raw();
    }
  typename many::number w[S][S], sum[NEAR_H][NEAR_W] = {};
#pragma unroll
  for (int r = 0; r < S; r++)
#pragma unroll
    for (int s = 0; s < S; s++) {
      const element *tap = (const element *)p.w + channel * p.w_stride[0] + (p.flip ? S - 1 - r : r) * p.w_stride[1] +
                           (p.flip ? S - 1 - s : s) * p.w_stride[2];
      w[r][s] = many::of(near_of<dtype, 1>::numbers(*tap), V == 1 ? 0.f : near_of<dtype, 1>::numbers(tap[p.w_stride[0]]));
    }
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int q = 0; q < COLUMNS; q++) {
      const typename many::number x = many::numbers(v[r][q]);
#pragma unroll
      for (int t = 0; t < NEAR_H; t++)
#pragma unroll
        for (int u = 0; u < NEAR_W; u++)
          if (r - t * stride >= 0 && r - t * stride < S && q - u * stride >= 0 && q - u * stride < S)
            many::add(sum[t][u], x, w[r - t * stride][q - u * stride]);
    }

  const uint32_t to = n * (uint32_t)p.y_stride[0] + channel * (uint32_t)p.y_stride[1] + y0 * (uint32_t)p.y_stride[2] +
                      x0 * (uint32_t)p.y_stride[3];
  float bias[V] = {};
  column_fold fold[V];
#pragma unroll
  for (int k = 0; k < V; k++) {
    if (p.column >= 0) {
      const cuda_operand &o = p.steps.operand[p.column];
      bias[k] = element_load<float>(o.p, (channel + k) * o.stride[1], dtype3(o.dtype));
    }
    fold[k] = fold_of(p.steps, p.factor, channel + k);
  }
#pragma unroll
  for (int t = 0; t < NEAR_H; t++) {
    raw out[NEAR_W];
#pragma unroll
    for (int u = 0; u < NEAR_W; u++) {
#pragma unroll
      for (int k = 0; k < V; k++) {
        float &one = many::part(sum[t][u], k);
        if (!isfinite(one) && y0 + t < p.out[0] && x0 + u < p.out[1]) one = sum_of(p, n, channel + k, y0 + t, x0 + u);
        one = folded(one + bias[k], fold[k]);
        if (p.relu) one = fn_max(one, 0.f);
      }
      out[u] = many::rounded(sum[t][u]);
    }
    if (y0 + t >= p.out[0]) continue;
    element *line = (element *)p.y + (to + t * (uint32_t)p.y_stride[2]);
    if constexpr (V == 1 && NEAR_W % 2 == 0)
      if (p.side_by_side) {
        struct alignas(2 * sizeof(raw)) two { raw lo, hi; };
#pragma unroll
        for (int u = 0; u < NEAR_W; u += 2)
          if (x0 + u < p.out[1]) *(two *)(line + u) = { out[u], out[u + 1] };
        continue;
      }
#pragma unroll
    for (int u = 0; u < NEAR_W; u++)
      if (x0 + u < p.out[1]) *(raw *)(line + u * (uint32_t)p.y_stride[3]) = out[u];
  }
}

__global__ void __launch_bounds__(THREADS) depthwise_any(const __grid_constant__ depthwise p)
{
  int64_t unit = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (unit >= p.units) return;
  int64_t rest = unit, q;
  int o[2], c;
  auto next = [&](int extent) { q = rest / extent; int i = (int)(rest - q * extent); rest = q; return i; };
  if (p.channels_fastest) c = next(p.channels), o[1] = next(p.out[1]), o[0] = next(p.out[0]);
  else o[1] = next(p.out[1]), o[0] = next(p.out[0]), c = next(p.channels);
  const int64_t n = rest;
  float sum = sum_of(p, n, c, o[0], o[1]);
  if (p.steps.n) {
    float u[8] = {sum};
    steps_apply(p.steps, u, (int)((n * p.out[0] + o[0]) * p.out[1] + o[1]), c, 0, 0, 0, 1);
    sum = u[0];
  }
  element_store(p.y, n * p.y_stride[0] + c * p.y_stride[1] + o[0] * p.y_stride[2] + o[1] * p.y_stride[3], p.out_dtype, sum);
}

/* ---- host ------------------------------------------------------------------------------------------------- */

struct kernel { const void *function; int32_t size, stride, th, tw, pitch; uint32_t dtype; int32_t then; };    /* pitch 0: strips */
#define KERNEL(dtype, S, stride, TH, TW) \
  { (const void *)depthwise_window<dtype, S, stride, TH, TW>, S, stride, TH, TW, depthwise_pitch<S>, dtype, -1 },
#define STRIPS(dtype, then) { (const void *)depthwise_strip<dtype, then>, 3, 1, STRIP, STRIP, 0, dtype, then },
#define KERNELS(dtype) \
  STRIPS(dtype, BIAS) STRIPS(dtype, FOLD) STRIPS(dtype, STEPS) \
  KERNEL(dtype, 3, 2, 2, 7) KERNEL(dtype, 5, 1, 2, 7) KERNEL(dtype, 5, 2, 1, 7) KERNEL(dtype, 7, 1, 2, 7)
static const kernel kernels[] = { KERNELS(QN_BF16) KERNELS(QN_F16) KERNELS(QN_F32) };

enum { TILES, NEAR, ANY };
static const char *const names[] = { "tiles", "near", "any", nullptr };

struct near_kernel { const void *function; uint32_t dtype; int32_t size, stride, many; };
#define NEAR_KERNELS(dtype, many) \
  { (const void *)depthwise_near<dtype, 1, 1, many>, dtype, 1, 1, many }, \
  { (const void *)depthwise_near<dtype, 3, 1, many>, dtype, 3, 1, many }, \
  { (const void *)depthwise_near<dtype, 3, 2, many>, dtype, 3, 2, many }, \
  { (const void *)depthwise_near<dtype, 5, 1, many>, dtype, 5, 1, many }, \
  { (const void *)depthwise_near<dtype, 5, 2, many>, dtype, 5, 2, many },
static const near_kernel near_kernels[] = { NEAR_KERNELS(QN_BF16, 1) NEAR_KERNELS(QN_BF16, 2) NEAR_KERNELS(QN_F16, 1)
                                            NEAR_KERNELS(QN_F16, 2) NEAR_KERNELS(QN_F32, 1) };

/* Can two neighbouring channels be loaded at once? */
static bool in_pairs(const qn_value *v)
{
  bool fits = v->dtype != QN_F32 && v->stride[1] == 1 && v->dim[1] % 2 == 0 && v->align >= 2 * (uint32_t)qn_kit_bytes(v->dtype);
  for (int d = 0; d < v->rank; d++) fits = fits && (d == 1 || v->dim[d] == 1 || v->stride[d] % 2 == 0);
  return fits;
}

/* The kernel that loads from L1, or NULL. */
static const near_kernel *find_near(const cuda_conv_problem *c, const depthwise *p, const qn_value *in, const qn_value *out)
{
  if (c->filters != c->channels || !p->plain || p->div[0] != 1 || p->div[1] != 1 || p->mul[0] != p->mul[1] || c->size[0] != c->size[1] ||
      c->dilation[0] != 1 || c->dilation[1] != 1 || qn_extent(in) > INT32_MAX / 2 || qn_extent(out) > INT32_MAX / 2)
    return nullptr;
  const int many = in_pairs(in) && in_pairs(out) ? 2 : 1;
  for (const near_kernel &k : near_kernels)
    if (k.dtype == p->dtype && k.size == c->size[0] && k.stride == p->mul[0] && k.many == many) return &k;
  return nullptr;
}

/* The kernel for this kind of window, or NULL. */
static const kernel *find(const cuda_conv_problem *c, const depthwise *p, const qn_value *in, const qn_value *out)
{
  int eight = 16 / (int)qn_kit_bytes(in->dtype);
  bool fits = c->filters == c->channels && p->channels % eight == 0 && qn_is_channels_last(in) && qn_is_channels_last(out) &&
              in->align >= 16 && out->align >= 2 * (uint32_t)qn_kit_bytes(out->dtype) && c->size[0] == c->size[1] && c->dilation[0] == 1 &&
              c->dilation[1] == 1 && p->div[0] == 1 && p->div[1] == 1 && p->mul[0] == p->mul[1];
  const int32_t then = !p->plain ? STEPS : p->factor >= 0 ? FOLD : BIAS;
  if (fits)
    for (const kernel &k : kernels)
      if (k.dtype == p->dtype && k.size == c->size[0] && k.stride == p->mul[0] && (k.then < 0 || k.then == then)) return &k;
  return nullptr;
}

/* Chooses channels and output tile of a block, minimising traffic and idle threads. False: nothing fits. */
static bool divide(depthwise *p, const kernel *k, int64_t images, int64_t room, int *blocks_of_channels, int *least_shared)
{
  int bytes = (int)qn_kit_bytes(p->dtype), chunk = 8 / bytes, chunks = p->channels / 2 / chunk;          /* chunk: pairs in 16 bytes */
  int slabs = (int)qn_ceil_div(chunks, k->pitch / chunk), tiles_h = (int)qn_ceil_div(p->out[0], k->th),
      tiles_w = (int)qn_ceil_div(p->out[1], k->tw);
  p->chunks = (int32_t)qn_ceil_div(chunks, slabs);
  p->pairs = p->chunks * chunk;
  *blocks_of_channels = (int)qn_ceil_div(chunks, p->chunks);
  double least = 0;
  for (int w = 1; w <= tiles_w; w++)
    for (int h = 1; h <= tiles_h && h * w * p->pairs <= THREADS; h++) {
      int tile_h = (h * k->th - 1) * k->stride + k->size, tile_w = (w * k->tw - 1) * k->stride + k->size;
      int shared = k->pitch * (k->size * k->size * 8 + 2 * tile_h * tile_w * 2 * bytes);
      int64_t blocks_h = qn_ceil_div(tiles_h, h), blocks_w = qn_ceil_div(tiles_w, w);
      double cost = (double)(blocks_h * blocks_w) * (tile_h * tile_w + h * k->th * w * k->tw);
      if (shared > room || (least > 0 && cost >= least)) continue;
      least = cost;
      p->lanes_h = h, p->lanes_w = w, p->tile_h = tile_h, p->tile_w = tile_w;
      p->blocks_h = (int32_t)blocks_h, p->blocks_w = (int32_t)blocks_w;
      p->tiles = (int32_t)(images * blocks_h * blocks_w);
      *least_shared = shared;
    }
  return least > 0;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  qn_status status = cuda_conv_problem_read(&c, r, out);
  if (status) return status;
  if (c.groups != c.channels || c.groups == 1)
    return qn_refuse(out, "each channel a group", "x", "as many groups as channels, two or more", "%lld", (long long)c.groups);
  depthwise p = {};
  cuda_chain chain;
  if ((status = cuda_conv_problem_chain(&c, r, &chain, out))) return status;
  bool data = c.mode == CUDA_CONV_DATA;
  const qn_value *in = data ? c.y : c.x, *to = &r->value[chain.out];
  p.dtype = in->dtype;
  p.out_dtype = to->dtype;
  p.data = data;
  p.per_group = (int32_t)(c.filters / c.channels);
  p.channels = (int32_t)to->dim[1];
  double taps = 1, outputs = (double)qn_elements(to);
  for (int d = 0; d < 2; d++) {
    p.in[d] = (int32_t)(data ? c.out[d] : c.in[d]);
    p.out[d] = (int32_t)(data ? c.in[d] : c.out[d]);
    p.size[d] = (int32_t)c.size[d];
    p.mul[d] = data ? 1 : (int32_t)c.stride[d];
    p.div[d] = data ? (int32_t)c.stride[d] : 1;
    p.step[d] = (int32_t)(data ? -c.dilation[d] : c.dilation[d]);
    p.off[d] = (int32_t)(data ? c.before[d] : -c.before[d]);
    taps *= (double)c.size[d];
  }
  int last = to->rank - 1;
  const int64_t from_stride[4] = { in->stride[0], in->stride[1], to->rank == 4 ? in->stride[2] : 0, in->stride[last] };
  const int64_t to_stride[4] = { to->stride[0], to->stride[1], to->rank == 4 ? to->stride[2] : 0, to->stride[last] };
  const int64_t filter_stride[3] = { c.w->stride[0], c.w_stride[0], c.w_stride[1] };
  memcpy(p.x_stride, from_stride, sizeof from_stride);
  memcpy(p.y_stride, to_stride, sizeof to_stride);
  memcpy(p.w_stride, filter_stride, sizeof filter_stride);
  p.steps = chain.steps;
  p.plain = cuda_chain_column_relu(&chain, &p.column, &p.factor, &p.relu) && to->dtype == in->dtype;
  if (!p.plain) p.column = p.factor = -1;

  const kernel *window = find(&c, &p, in, to);
  const near_kernel *near = find_near(&c, &p, in, to);
  double bytes = (outputs + (double)qn_elements(in)) * (double)qn_kit_bytes(p.dtype), sums = outputs * taps * (data ? p.per_group : 1);
  int threads = THREADS, slabs = 1, shared = 0;
  int64_t blocks;
  const auto wanted = [&](int i) { return !r->variant || !strcmp(r->variant, names[i]); };
  if (!wanted(TILES)) window = nullptr;
  if (!wanted(NEAR)) near = nullptr;
  if (!window && !near && !wanted(ANY))
    return qn_refuse(out, "a kernel of that variant", "x",
                     wanted(NEAR) ? "one filter a channel, undilated 1x1, 3x3, 5x5 of stride 1 or forward 3x3, 5x5 of 2, 2^30 elements"
                                  : "one filter a channel, undilated 3x3, 5x5, 7x7 of stride 1 or forward 3x3, 5x5 of 2, channels last",
                     "%s", r->variant);
  const int64_t strips = to->dim[0] * qn_ceil_div(p.out[0], STRIP) * qn_ceil_div(p.out[1], STRIP) * (p.channels / 2);
  if (window && near && r->demands->determinism < QN_DET_BATCH) {
    /* the two add a bias first and last; which one it is depends on the number of images and on the device */
    out->traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);
    /* most lanes would be idle; or, as measured, too few tiles to hide one another's copies */
    if (window->pitch ? outputs < 14000.0 * r->device->units : strips < 128 * (int64_t)r->device->units) window = nullptr;
  }
  p.flip = data;
  out->variant = names[window ? TILES : near ? NEAR : ANY];
  if (window) {
    if (data)                             /* the filter reversed, in ascending steps */
      for (int d = 0; d < 2; d++) p.off[d] -= p.size[d] - 1, p.step[d] = 1;
    p.x.h = p.in[0], p.x.w = p.in[1], p.x.channels = p.channels;
    double moved = bytes / 3800, added = sums / (r->device->units * 128 * (window->pitch ? 0.62 : 1.1));
    out->estimate = 3000 + (moved > added ? moved : added);
  }
  if (window && window->pitch) {
    if (!divide(&p, window, to->dim[0], qn_min_i64(SHARED, (int64_t)r->device->shared_per_block), &slabs, &shared))
      return qn_refuse(out, "a tile's pixels in shared memory", "x", "a device with more", "%llu bytes",
                       (unsigned long long)r->device->shared_per_block);
    threads = (int)qn_round_up(p.pairs * p.lanes_h * p.lanes_w, 32);
    p.side = tile_side(threads, p.tile_w, p.chunks);
    blocks = cuda_conv_shares(p.tiles, 3 * r->device->units / slabs);
  } else if (window) {
    threads = STRIP_THREADS;
    p.pairs = p.channels / 2, p.blocks_h = (int32_t)qn_ceil_div(p.out[0], STRIP), p.blocks_w = (int32_t)qn_ceil_div(p.out[1], STRIP);
    p.units = to->dim[0] * p.blocks_h * p.blocks_w * p.pairs;
    blocks = qn_ceil_div(p.units, STRIP_THREADS);
  } else if (near) {
    const int64_t down = qn_ceil_div(p.out[0], NEAR_H), across = qn_ceil_div(p.out[1], NEAR_W), channels = p.channels / near->many;
    threads = STRIP_THREADS;
    p.channels_fastest = to->stride[1] == 1 && p.channels > 1;
    p.by_c = cuda_divide_by(channels), p.by_h = cuda_divide_by(down), p.by_w = cuda_divide_by(across);
    p.side_by_side = to->stride[to->rank - 1] == 1 && to->dim[to->rank - 1] % 2 == 0 && to->align >= 2 * (uint32_t)qn_kit_bytes(to->dtype);
    for (int d = 0; d < to->rank - 1; d++) p.side_by_side &= to->dim[d] == 1 || to->stride[d] % 2 == 0;
    p.units = to->dim[0] * down * across * channels;
    blocks = qn_ceil_div(p.units, STRIP_THREADS);
    /* as measured, in the scale of conv_depthwise_planes.cu's: the smaller a plane, the more sectors a warp's loads meet */
    const double loads = (double)((NEAR_H - 1) * near->stride + near->size) * ((NEAR_W - 1) * near->stride + near->size),
                 each = (loads * 3.5 + NEAR_H * NEAR_W * (14 + taps) * near->many) *
                        (p.channels_fastest ? 1.2 : 1.05 + 5.0 / (p.out[1] + 2));
    const double moved = bytes / (p.dtype == QN_F32 ? 1350 : 2000), added = (double)p.units * each / (r->device->units * 128 * 1.4);
    const double more = p.channels_fastest || added < 3500 ? added : 2 * added - 3500;          /* large planes go in wider loads */
    out->estimate = 2300 + (moved > more ? moved : more);
  } else {
    p.channels_fastest = to->stride[1] == 1;
    p.units = (int64_t)outputs;
    blocks = qn_ceil_div(p.units, THREADS);
    out->estimate = 3000 + bytes / 2000 + sums / (r->device->units * 8);
  }
  if (blocks * (window || near ? threads : 1) > INT32_MAX || slabs > 65535)
    return qn_refuse(out, "a grid of blocks", "y", "fewer elements", "%s", "more");

  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, window ? window->function : near ? near->function : (const void *)depthwise_any,
                                              &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)blocks, k->grid[1] = (uint32_t)slabs;
  k->threads = (uint32_t)threads, k->shared = (uint32_t)shared;
  cuda_conv_kernel_pointer(k, data ? c.y_at : c.x_at, offsetof(depthwise, x.p));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(depthwise, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(depthwise, steps), offsetof(depthwise, y));
  return QN_OK;
}

#define ROW(op, pattern) { "depthwise", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
                        names, pattern, prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr) };
CUDA_ENGINES(conv_depthwise) = { row, sizeof row / sizeof *row };
