/* conv_depthwise_filter.cu -- gradient by the filter of depthwise convolution, one filter a channel.
 *
 *   dw[c, r, s] = sum over images and outputs (p, q) of dy[n, c, p, q] x[n, c, p stride + r - pad, q stride + s - pad]
 *
 * Square windows of 3, 5 and in f32 7, no dilation, channels last. 3x3 at stride 1 by strips: a thread has a pair of channels and
 * the whole window, and streams the rows of x and dy of 7x7 outputs; each row of x meets the three rows of dy that see it. Other
 * windows: a block copies tiles of dy and x to shared memory (double buffered); a thread has a pair of channels and the whole
 * window, or a row of a large one, in registers. Each block leaves a partial sum in workspace; these are added in order. */
#include "conv_depthwise.cuh"
#include "conv_kernel.h"
#include "engines.h"

enum { THREADS = 256, SHARED = 72 << 10, STRIP_H = 7, STRIP_W = 7, STRIP_THREADS = 128 };

struct depthwise {
  plane    x, dy;
  float   *parts;                         /* [part][channel][S][S] */
  int32_t  channels, before[2];
  int32_t  pairs, chunks;                 /* pairs of channels of a block; 16-byte chunks of those */
  int32_t  lanes, places_h, places_w;     /* threads that share the same sums; their places in a tile */
  int32_t  x_h, x_w, dy_h, dy_w;          /* tiles, in pixels */
  int32_t  x_side, dy_side;               /* rows copied at once */
  int32_t  tiles_h, tiles_w, tiles;
};

/* Adds the contribution of TH x TW outputs to RT rows of the window; d, x: where the first lies. high x wide of them exist;
 * whole: all. (A missing dy must not be multiplied by its x, which may be NaN.) */
template <int dtype, int S, int RT, int stride, int TH, int TW, bool whole, class raw>
__device__ __forceinline__ void depthwise_place(float2 (&sum)[RT][S], const raw *d, int d_row, const raw *x, int x_row, int high, int wide)
{
  constexpr int rows = (TH - 1) * stride + RT, columns = (TW - 1) * stride + S, PITCH = depthwise_pitch<S>;
  float2 g[TH][TW];
#pragma unroll
  for (int t = 0; t < TH; t++)
#pragma unroll
    for (int q = 0; q < TW; q++) g[t][q] = pair_floats<dtype>(d[t * d_row + q * PITCH]);
#pragma unroll
  for (int i = 0; i < rows; i++, x += x_row) {
    float2 v[columns];
#pragma unroll
    for (int j = 0; j < columns; j++) v[j] = pair_floats<dtype>(x[j * PITCH]);
#pragma unroll
    for (int t = 0; t < TH; t++) {
      int r = i - t * stride;
      if (r < 0 || r >= RT) continue;
#pragma unroll
      for (int q = 0; q < TW; q++)
        if (whole || (t < high && q < wide))
#pragma unroll
          for (int s = 0; s < S; s++) pair_add(sum[r][s], g[t][q], v[q * stride + s]);
    }
  }
}

/* Adds the sums of the lanes that share them, `width` threads apart, and writes N of a channel's `all` sums, from `first` on, to
 * the block's part. */
template <int N>
__device__ __forceinline__ void depthwise_leave(const depthwise &p, const float2 *sum, float2 *others, int width, int lane, int channel,
                                                int all, int first)
{
  if (lane > 0 && lane < p.lanes)         /* [lanes - 1][N][width] */
#pragma unroll
    for (int i = 0; i < N; i++) others[((lane - 1) * N + i) * width] = sum[i];
  __syncthreads();
  if (lane > 0 || channel >= p.channels) return;
  float *to = p.parts + ((int64_t)blockIdx.x * p.channels + channel) * all + first;
#pragma unroll
  for (int i = 0; i < N; i++) {
    float2 v = sum[i];
    for (int l = 0; l < p.lanes - 1; l++) {
      float2 u = others[(l * N + i) * width];
      v.x += u.x, v.y += u.y;
    }
    to[i] = v.x;
    to[all + i] = v.y;
  }
}

/* A thread takes TH x TW outputs at once, and RT rows of the window. */
template <int dtype, int S, int RT, int stride, int TH, int TW>
__global__ void __launch_bounds__(THREADS, 3) depthwise_filter(const __grid_constant__ depthwise p)
{
  constexpr int shares = S / RT, PITCH = depthwise_pitch<S>;
  typedef typename pair_of<dtype>::type raw;
  extern __shared__ float2 shared[];      /* a tile of x and one of dy, double buffered */
  int width = p.pairs * shares, lane = threadIdx.x / width, column = threadIdx.x - lane * width;
  int share = column / p.pairs, pair = column - share * p.pairs, first = blockIdx.y * p.pairs * 2, channel = first + pair * 2,
      r0 = share * RT;
  int pixels = p.x_h * p.x_w + p.dy_h * p.dy_w;
  tile_copy<sizeof(raw) / 2> copy_x(p.x_w, p.chunks), copy_dy(p.dy_w, p.chunks);
  tile_walk walk(blockIdx.x, gridDim.x, p.tiles_h, p.tiles_w), ahead = walk;
  auto load = [&](const tile_walk &t, int at) {
    int y0 = t.i * p.dy_h, x0 = t.j * p.dy_w;
    uint32_t x = shared_address((raw *)shared + at * pixels * PITCH);
    copy_x.load(x, p.x, t.n, y0 * stride - p.before[0], x0 * stride - p.before[1], first, p.x_h, p.x_w, p.chunks, p.x_side,
                PITCH * sizeof(raw), p.x_w * PITCH * sizeof(raw));
    copy_dy.load(x + p.x_h * p.x_w * PITCH * sizeof(raw), p.dy, t.n, y0, x0, first, p.dy_h, p.dy_w, p.chunks, p.dy_side,
                 PITCH * sizeof(raw), p.dy_w * PITCH * sizeof(raw));
  };
  load(walk, 0);
  copy_async_commit();
  float2 sum[RT][S] = {};
  int at = 0;
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x, at ^= 1) {
    ahead.next(p.tiles_h, p.tiles_w);
    if (tile + (int)gridDim.x < p.tiles) load(ahead, at ^ 1);
    copy_async_commit();
    copy_async_wait<1>();
    __syncthreads();
    int y0 = walk.i * p.dy_h, x0 = walk.j * p.dy_w;
    const raw *x = (const raw *)shared + at * pixels * PITCH + pair, *dy = x + p.x_h * p.x_w * PITCH;
    for (int place = lane < p.lanes ? lane : p.places_h * p.places_w; place < p.places_h * p.places_w; place += p.lanes) {
      int ph = place / p.places_w, pw = place - ph * p.places_w;
      ph *= TH, pw *= TW;
      int high = p.dy.h - y0 - ph, wide = p.dy.w - x0 - pw;
      if (high <= 0 || wide <= 0) continue;
      const raw *d = dy + (ph * p.dy_w + pw) * PITCH, *v = x + ((ph * stride + r0) * p.x_w + pw * stride) * PITCH;
      if (high >= TH && wide >= TW)
        depthwise_place<dtype, S, RT, stride, TH, TW, true>(sum, d, p.dy_w * PITCH, v, p.x_w * PITCH, high, wide);
      else depthwise_place<dtype, S, RT, stride, TH, TW, false>(sum, d, p.dy_w * PITCH, v, p.x_w * PITCH, high, wide);
    }
    __syncthreads();
    walk = ahead;
  }

  depthwise_leave<RT * S>(p, &sum[0][0], shared + column, width, lane, channel, S * S, r0 * S);
}

/* Adds the contribution of STRIP_H x STRIP_W outputs. d, x: dy and x of the first; top, left: its row and column in x. At most
 * the outermost pixels of x do not exist. */
template <int dtype, class raw>
__device__ __forceinline__ void depthwise_strip(float2 (&sum)[3][3], const raw *d, const raw *x, const depthwise &p, int top, int left)
{
  enum { ROWS = STRIP_H + 2, COLUMNS = STRIP_W + 2 };
  int step = p.channels / 2;
  bool first = left >= 0, last = left + COLUMNS <= p.x.w;
  raw v[2][COLUMNS], g[4][STRIP_W];
  auto load = [&](int r) {                /* loads row r of x, and of dy */
    bool row = (r > 0 && r < ROWS - 1) || (uint32_t)(top + r) < (uint32_t)p.x.h;
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) v[r % 2][j] = row && (j == 0 ? first : j == COLUMNS - 1 ? last : true) ? x[j * step] : raw();
    x += p.x.w * step;
    if (r >= STRIP_H) return;
#pragma unroll
    for (int q = 0; q < STRIP_W; q++) g[r % 4][q] = d[q * step];
    d += p.dy.w * step;
  };
  load(0);
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    if (r + 1 < ROWS) load(r + 1);
    float2 u[COLUMNS];
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) u[j] = pair_floats<dtype>(v[r % 2][j]);
#pragma unroll
    for (int a = 0; a < 3; a++) {
      int o = r - a;
      if (o < 0 || o >= STRIP_H) continue;
#pragma unroll
      for (int q = 0; q < STRIP_W; q++) {
        float2 e = pair_floats<dtype>(g[o % 4][q]);
#pragma unroll
        for (int b = 0; b < 3; b++) pair_add(sum[a][b], e, u[q + b]);
      }
    }
  }
}
/* The same for high x wide outputs one by one (a missing dy must not be multiplied by its x, which may be NaN). */
template <int dtype, class raw>
__device__ __forceinline__ void depthwise_tail(float2 (&sum)[3][3], const raw *d, const raw *x, const depthwise &p, int top, int left,
                                               int high, int wide)
{
  int step = p.channels / 2;
  for (int o = 0; o < high; o++)
    for (int q = 0; q < wide; q++) {
      float2 e = pair_floats<dtype>(d[(o * p.dy.w + q) * step]);
#pragma unroll
      for (int a = 0; a < 3; a++)
#pragma unroll
        for (int b = 0; b < 3; b++) {
          bool there = (uint32_t)(top + o + a) < (uint32_t)p.x.h && (uint32_t)(left + q + b) < (uint32_t)p.x.w;
          pair_add(sum[a][b], e, pair_floats<dtype>(there ? x[((o + a) * p.x.w + q + b) * step] : raw()));
        }
    }
}

template <int dtype> __global__ void __launch_bounds__(STRIP_THREADS, 4) depthwise_filter_strips(const __grid_constant__ depthwise p)
{
  typedef typename pair_of<dtype>::type raw;
  extern __shared__ float2 shared[];
  int lane = threadIdx.x / p.pairs, pair = threadIdx.x - lane * p.pairs, channel = (blockIdx.y * p.pairs + pair) * 2, step = p.channels / 2;
  float2 sum[3][3] = {};
  for (int tile = lane < p.lanes && channel < p.channels ? blockIdx.x * p.lanes + lane : p.tiles; tile < p.tiles;
       tile += gridDim.x * p.lanes) {
    int rest = tile / p.tiles_w, n = rest / p.tiles_h, y0 = (rest - n * p.tiles_h) * STRIP_H, x0 = (tile - rest * p.tiles_w) * STRIP_W;
    int top = y0 - p.before[0], left = x0 - p.before[1], high = p.dy.h - y0, wide = p.dy.w - x0;
    const raw *d = (const raw *)p.dy.p + (((int64_t)n * p.dy.h + y0) * p.dy.w + x0) * step + channel / 2;
    const raw *x = (const raw *)p.x.p + (((int64_t)n * p.x.h + top) * p.x.w + left) * step + channel / 2;
    bool whole = high >= STRIP_H && wide >= STRIP_W && top >= -1 && left >= -1 && top + STRIP_H + 1 <= p.x.h && left + STRIP_W + 1 <= p.x.w;
    if (whole) depthwise_strip<dtype>(sum, d, x, p, top, left);
    else depthwise_tail<dtype>(sum, d, x, p, top, left, min(high, (int)STRIP_H), min(wide, (int)STRIP_W));
  }
  depthwise_leave<9>(p, &sum[0][0], shared + pair, p.pairs, lane, channel, 9, 0);
}

/* ---- host ------------------------------------------------------------------------------------------------- */

struct kernel { const void *function; int32_t size, rows, stride, th, tw, pitch; uint32_t dtype; };      /* pitch 0: strips */
#define KERNEL(dtype, S, RT, stride, TH, TW) \
  { (const void *)depthwise_filter<dtype, S, RT, stride, TH, TW>, S, RT, stride, TH, TW, depthwise_pitch<S>, dtype },
#define STRIPS(dtype) { (const void *)depthwise_filter_strips<dtype>, 3, 3, 1, STRIP_H, STRIP_W, 0, dtype },
#define KERNELS(dtype) STRIPS(dtype) KERNEL(dtype, 3, 3, 2, 2, 7) KERNEL(dtype, 5, 1, 1, 1, 14) KERNEL(dtype, 5, 1, 2, 1, 7)
/* 16-bit 7x7: conv_depthwise_mma_filter.cu */
static const kernel kernels[] = { KERNELS(QN_BF16) KERNELS(QN_F16) KERNELS(QN_F32) KERNEL(QN_F32, 7, 1, 1, 1, 14) };

/* Chooses channels and tile of a block, minimising traffic and idle threads. */
static void divide(depthwise *p, const kernel *k, int64_t images, const int64_t out[2], int *slabs, int *least_shared)
{
  /* chunk: pairs in 16 bytes */
  int bytes = (int)qn_kit_bytes(k->dtype), chunk = 8 / bytes, chunks = p->channels / 2 / chunk, shares = k->size / k->rows;
  p->chunks = (int32_t)qn_ceil_div(chunks, qn_ceil_div(chunks, k->pitch / chunk));
  p->pairs = p->chunks * chunk;
  *slabs = (int)qn_ceil_div(chunks, p->chunks);
  int most = THREADS / (p->pairs * shares), all_h = (int)qn_ceil_div(out[0], k->th), all_w = (int)qn_ceil_div(out[1], k->tw);
  double least = 0;
  for (int w = 1; w <= all_w && w <= 4 * most; w++)
    for (int h = 1; h <= all_h && h * w <= 4 * most + 14; h++) {
      int dy_h = h * k->th, dy_w = w * k->tw, x_h = (dy_h - 1) * k->stride + k->size, x_w = (dy_w - 1) * k->stride + k->size;
      if (k->pitch < 32) x_w |= 1;        /* an odd row pitch avoids bank conflicts */
      int lanes = h * w < most ? h * w : most, shared = 2 * (x_h * x_w + dy_h * dy_w) * k->pitch * 2 * bytes;
      int sums = (lanes - 1) * k->rows * k->size * p->pairs * shares * 8;
      int64_t tiles_h = qn_ceil_div(all_h, h), tiles_w = qn_ceil_div(all_w, w);
      double cost = (double)(tiles_h * tiles_w) * (x_h * x_w + dy_h * dy_w + (double)qn_ceil_div(h * w, lanes) * most * k->th * k->tw);
      if (shared < sums) shared = sums;
      if (shared > SHARED || (least > 0 && cost >= least)) continue;
      least = cost;
      p->lanes = lanes, p->places_h = h, p->places_w = w;
      p->x_h = x_h, p->x_w = x_w, p->dy_h = dy_h, p->dy_w = dy_w;
      p->tiles_h = (int32_t)tiles_h, p->tiles_w = (int32_t)tiles_w, p->tiles = (int32_t)(images * tiles_h * tiles_w);
      *least_shared = shared;
    }
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  qn_status status = cuda_conv_problem_read(&c, r, out);
  if (!status) status = cuda_conv_wants_ampere(r, out);
  if (!status) status = cuda_conv_wants_channels_last(c.x, "x", out);
  if (!status) status = cuda_conv_wants_channels_last(c.y, "y", out);
  if (status) return status;
  if (c.groups != c.channels || c.filters != c.channels || c.groups == 1)
    return qn_refuse(out, "one filter for each channel", "x", "as many groups as channels, two or more", "%lld", (long long)c.groups);
  const kernel *found = nullptr;
  for (const kernel &k : kernels)
    if (k.dtype == c.x->dtype && c.size[0] == k.size && c.size[1] == k.size && c.stride[0] == k.stride && c.stride[1] == k.stride &&
        c.dilation[0] == 1 && c.dilation[1] == 1)
      found = &k;
  if (!found)
    return qn_refuse(out, "square windows of 3, 5, in f32 7, without dilation, stride 1, to 5 also 2", "dw", "", "%lldx%lld",
                     (long long)c.size[0], (long long)c.size[1]);
  int eight = 16 / (int)qn_kit_bytes(c.x->dtype);
  if (c.channels % eight)
    return qn_refuse(out, "channels in units of 16 bytes", "x", eight == 8 ? "a multiple of 8" : "a multiple of 4", "%lld",
                     (long long)c.channels);
  if (!qn_is_packed(c.w)) return qn_refuse(out, "packed filters", "dw", "", "%s", "other strides");

  depthwise p = {};
  p.channels = (int32_t)c.channels;
  p.x.h = (int32_t)c.in[0], p.x.w = (int32_t)c.in[1], p.dy.h = (int32_t)c.out[0], p.dy.w = (int32_t)c.out[1];
  p.x.channels = p.dy.channels = p.channels;
  for (int d = 0; d < 2; d++) p.before[d] = (int32_t)c.before[d];
  int slabs = 0, shared = 0, threads = STRIP_THREADS;
  int64_t resident = 0;
  if (found->pitch) {
    divide(&p, found, c.x->dim[0], c.out, &slabs, &shared);
    threads = (int)qn_round_up(p.pairs * (found->size / found->rows) * p.lanes, 32);
    p.x_side = tile_side(threads, p.x_w, p.chunks), p.dy_side = tile_side(threads, p.dy_w, p.chunks);
    resident = r->device->units * qn_min_i64(3, (225 << 10) / (shared + 1024));
  } else {
    int64_t pairs = p.channels / 2;
    p.pairs = (int32_t)qn_ceil_div(pairs, qn_ceil_div(pairs, 32));
    p.lanes = STRIP_THREADS / p.pairs;
    slabs = (int)qn_ceil_div(pairs, p.pairs);
    p.tiles_h = (int32_t)qn_ceil_div(c.out[0], STRIP_H), p.tiles_w = (int32_t)qn_ceil_div(c.out[1], STRIP_W);
    p.tiles = (int32_t)(c.x->dim[0] * p.tiles_h * p.tiles_w);
    shared = (p.lanes - 1) * 9 * p.pairs * 8;
    resident = r->device->units * 4;
  }
  if (slabs > 65535) return qn_refuse(out, "a grid of blocks", "x", "fewer channels", "%d", p.channels);
  int64_t elements = c.channels * c.size[0] * c.size[1], walkers = found->pitch ? 1 : p.lanes;
  int64_t parts = cuda_conv_shares_of_sum(r, out, qn_ceil_div(p.tiles, walkers), resident / slabs, elements);
  if (parts < 1) return QN_UNSUPPORTED;

  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, found->function, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)parts, k->grid[1] = (uint32_t)slabs;
  k->threads = (uint32_t)threads, k->shared = (uint32_t)shared;
  cuda_conv_kernel_pointer(k, c.x_at, offsetof(depthwise, x.p));
  cuda_conv_kernel_pointer(k, c.y_at, offsetof(depthwise, dy.p));
  cuda_conv_kernel_parts(k, out, &c, parts, elements, offsetof(depthwise, parts));
  double bytes = (double)(qn_elements(c.x) + qn_elements(c.y)) * (double)qn_kit_bytes(c.x->dtype),
         sums = (double)qn_elements(c.y) * (double)(c.size[0] * c.size[1]);
  const bool large = found->pitch && found->size == 5;   /* 5x5, as measured */
  double moved = bytes / (large ? 1900 : 3800), added = sums / (r->device->units * 128 * (large ? 0.42 : found->pitch ? 0.52 : 0.9));
  out->estimate = (large ? 12000 : 6000) + (moved > added ? moved : added);
  return QN_OK;
}

static const qn_engine row[] = {
  { "depthwise", QN_OP_CONV_BACKWARD_FILTER, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare,
    cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release },
};
CUDA_ENGINES(conv_depthwise_filter) = { row, sizeof row / sizeof *row };
