/* conv_depthwise_filter.cu -- the gradient by the filter of a convolution in which each channel has one of its own.
 *
 *   dw[c, r, s] = sum over images and outputs (p, q) of dy[n, c, p, q] x[n, c, p stride + r - pad, q stride + s - pad]
 *
 * Square windows of 3, 5 or 7 without dilation, channels last. A block copies tiles of dy and the pixels of x below them to shared
 * memory, one pair of tiles after the other. A thread has two neighbouring channels, small windows whole, of larger ones a row,
 * and keeps the sums in registers. A block's share of the tiles gives one part of the sum, in workspace; the parts are joined in
 * order. */
#include "conv_depthwise.cuh"
#include "conv_layout.h"
#include "conv_problem.h"
#include "engines.h"

enum { THREADS = 256, SHARED = 72 << 10 };

struct depthwise {
  plane    x, dy;
  float   *parts;                         /* [part][channel][S][S] */
  int32_t  channels, before[2];
  int32_t  pairs, chunks;                 /* of channels in a block; in chunks of 16 bytes */
  int32_t  lanes, places_h, places_w;     /* threads side by side for the same sums; their places in a tile */
  int32_t  x_h, x_w, dy_h, dy_w;          /* a tile, in pixels */
  int32_t  tiles_h, tiles_w, tiles;
};

/* Adds what TH x TW outputs give to RT rows of the window: d, x where the first lies. Of the outputs, high x wide exist; whole:
 * all. (A dy that is not there may not meet an x, which may be NaN.) */
template <int dtype, int S, int RT, int stride, int TH, int TW, bool whole, class raw>
__device__ __forceinline__ void depthwise_place(float2 (&sum)[RT][S], const raw *d, int d_row, const raw *x, int x_row, int high, int wide)
{
  constexpr int rows = (TH - 1) * stride + RT, columns = (TW - 1) * stride + S;
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

/* A thread takes TH x TW outputs at once, RT rows of the window. */
template <int dtype, int S, int RT, int stride, int TH, int TW>
__global__ void __launch_bounds__(THREADS, 3) depthwise_filter(const __grid_constant__ depthwise p)
{
  constexpr int shares = S / RT;
  typedef typename pair_of<dtype>::type raw;
  extern __shared__ float2 shared[];      /* a tile of x and one of dy, twice: one pair on its way while the other is used */
  int width = p.pairs * shares, lane = threadIdx.x / width, column = threadIdx.x - lane * width;
  int share = column / p.pairs, pair = column - share * p.pairs, first = blockIdx.y * p.pairs * 2, channel = first + pair * 2, r0 = share * RT;
  int pixels = p.x_h * p.x_w + p.dy_h * p.dy_w;
  auto load = [&](int tile, int at) {
    int rest = tile / p.tiles_w, tw = tile - rest * p.tiles_w, n = rest / p.tiles_h, th = rest - n * p.tiles_h, y0 = th * p.dy_h, x0 = tw * p.dy_w;
    uint32_t x = shared_address((raw *)shared + at * pixels * PITCH), dy = x + p.x_h * p.x_w * PITCH * sizeof(raw);
    tile_load<sizeof(raw) / 2>(x, PITCH * sizeof(raw), p.x, n, y0 * stride - p.before[0], x0 * stride - p.before[1], p.x_h, p.x_w, first, p.chunks);
    tile_load<sizeof(raw) / 2>(dy, PITCH * sizeof(raw), p.dy, n, y0, x0, p.dy_h, p.dy_w, first, p.chunks);
  };
  load(blockIdx.x, 0);
  copy_async_commit();
  float2 sum[RT][S] = {};
  int at = 0;
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x, at ^= 1) {
    if (tile + (int)gridDim.x < p.tiles) load(tile + gridDim.x, at ^ 1);
    copy_async_commit();
    copy_async_wait<1>();
    __syncthreads();
    int rest = tile / p.tiles_w, y0 = rest % p.tiles_h * p.dy_h, x0 = (tile - rest * p.tiles_w) * p.dy_w;
    const raw *x = (const raw *)shared + at * pixels * PITCH + pair, *dy = x + p.x_h * p.x_w * PITCH;
    for (int place = lane < p.lanes ? lane : p.places_h * p.places_w; place < p.places_h * p.places_w; place += p.lanes) {
      int ph = place / p.places_w, pw = place - ph * p.places_w;
      ph *= TH, pw *= TW;
      int high = p.dy.h - y0 - ph, wide = p.dy.w - x0 - pw;
      if (high <= 0 || wide <= 0) continue;
      const raw *d = dy + (ph * p.dy_w + pw) * PITCH, *v = x + ((ph * stride + r0) * p.x_w + pw * stride) * PITCH;
      if (high >= TH && wide >= TW) depthwise_place<dtype, S, RT, stride, TH, TW, true>(sum, d, p.dy_w * PITCH, v, p.x_w * PITCH, high, wide);
      else depthwise_place<dtype, S, RT, stride, TH, TW, false>(sum, d, p.dy_w * PITCH, v, p.x_w * PITCH, high, wide);
    }
    __syncthreads();
  }

  float2 *others = shared + column;       /* [lanes - 1][RT S][width] */
  if (lane > 0 && lane < p.lanes)
#pragma unroll
    for (int i = 0; i < RT * S; i++) others[((lane - 1) * RT * S + i) * width] = sum[i / S][i % S];
  __syncthreads();
  if (lane > 0 || channel >= p.channels) return;
  float *to = p.parts + ((int64_t)blockIdx.x * p.channels + channel) * S * S + r0 * S;
#pragma unroll
  for (int i = 0; i < RT * S; i++) {
    float2 v = sum[i / S][i % S];
    for (int l = 0; l < p.lanes - 1; l++) {
      float2 u = others[(l * RT * S + i) * width];
      v.x += u.x, v.y += u.y;
    }
    to[i] = v.x;
    to[S * S + i] = v.y;
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

struct kernel { const void *function; int32_t size, rows, stride, th, tw; uint32_t dtype; };
#define KERNEL(dtype, S, RT, stride, TH, TW) { (const void *)depthwise_filter<dtype, S, RT, stride, TH, TW>, S, RT, stride, TH, TW, dtype },
#define KERNELS(dtype) KERNEL(dtype, 3, 3, 1, 2, 7) KERNEL(dtype, 3, 3, 2, 2, 7) KERNEL(dtype, 5, 1, 1, 1, 14) KERNEL(dtype, 5, 1, 2, 1, 7) KERNEL(dtype, 7, 1, 1, 1, 14)
static const kernel kernels[] = { KERNELS(QN_BF16) KERNELS(QN_F16) KERNELS(QN_F32) };

struct state {
  depthwise p;
  const kernel *kernel_;
  int32_t  x, dy, dw, parts, slabs, shared;
  uint32_t dw_dtype;
  int64_t  elements;
};

/* How many channels, and which tiles, a block takes: least traffic and idle threads. */
static void divide(state *st, int64_t images, const int64_t out[2])
{
  depthwise *p = &st->p;
  const kernel *k = st->kernel_;
  int bytes = (int)qn_kit_bytes(k->dtype), chunk = 8 / bytes, chunks = p->channels / 2 / chunk, shares = k->size / k->rows;      /* chunk: pairs in 16 bytes */
  p->chunks = (int32_t)qn_ceil_div(chunks, qn_ceil_div(chunks, PITCH / chunk));
  p->pairs = p->chunks * chunk;
  st->slabs = (int32_t)qn_ceil_div(chunks, p->chunks);
  int most = THREADS / (p->pairs * shares), all_h = (int)qn_ceil_div(out[0], k->th), all_w = (int)qn_ceil_div(out[1], k->tw);
  double least = 0;
  for (int w = 1; w <= all_w && w <= 4 * most; w++)
    for (int h = 1; h <= all_h && h * w <= 4 * most + 14; h++) {
      int dy_h = h * k->th, dy_w = w * k->tw, x_h = (dy_h - 1) * k->stride + k->size, x_w = (dy_w - 1) * k->stride + k->size;
      int lanes = h * w < most ? h * w : most, shared = 2 * (x_h * x_w + dy_h * dy_w) * PITCH * 2 * bytes;
      int sums = (lanes - 1) * k->rows * k->size * p->pairs * shares * 8;
      int64_t tiles_h = qn_ceil_div(all_h, h), tiles_w = qn_ceil_div(all_w, w);
      double cost = (double)(tiles_h * tiles_w) * (x_h * x_w + dy_h * dy_w + (double)qn_ceil_div(h * w, lanes) * most * k->th * k->tw);
      if (shared < sums) shared = sums;
      if (shared > SHARED || (least > 0 && cost >= least)) continue;
      least = cost;
      p->lanes = lanes, p->places_h = h, p->places_w = w;
      p->x_h = x_h, p->x_w = x_w, p->dy_h = dy_h, p->dy_w = dy_w;
      p->tiles_h = (int32_t)tiles_h, p->tiles_w = (int32_t)tiles_w, p->tiles = (int32_t)(images * tiles_h * tiles_w);
      st->shared = shared;
    }
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  qn_status status = cuda_conv_problem_read(&c, r, out);
  if (status) return status;
  if (r->device->arch_major < 8) return qn_refuse(out, "made for compute capability 8.0 and up", "", "8.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  if (c.groups != c.channels || c.filters != c.channels || c.groups == 1)
    return qn_refuse(out, "one filter for each channel", "x", "as many groups as channels, two or more", "%lld", (long long)c.groups);
  const kernel *found = nullptr;
  for (const kernel &k : kernels)
    if (k.dtype == c.x->dtype && c.size[0] == k.size && c.size[1] == k.size && c.stride[0] == k.stride && c.stride[1] == k.stride && c.dilation[0] == 1 && c.dilation[1] == 1) found = &k;
  if (!found)
    return qn_refuse(out, "square windows of 3, 5 or 7 without dilation, stride 1, to 5 also 2", "dw", "", "%lldx%lld", (long long)c.size[0], (long long)c.size[1]);
  int eight = 16 / (int)qn_kit_bytes(c.x->dtype);
  if (c.channels % eight || !qn_is_channels_last(c.x) || !qn_is_channels_last(c.y) || c.x->align < 16 || c.y->align < 16)
    return qn_refuse(out, "packed channels last, in units of 16 bytes", "x", "nhwc", "C %lld", (long long)c.channels);
  if (!qn_is_packed(c.w)) return qn_refuse(out, "packed filters", "dw", "", "%s", "other strides");

  state *st = (state *)r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  depthwise *p = &st->p;
  st->kernel_ = found;
  p->channels = (int32_t)c.channels;
  p->x.h = (int32_t)c.in[0], p->x.w = (int32_t)c.in[1], p->dy.h = (int32_t)c.out[0], p->dy.w = (int32_t)c.out[1];
  p->x.channels = p->dy.channels = p->channels;
  for (int d = 0; d < 2; d++) p->before[d] = (int32_t)c.before[d];
  divide(st, c.x->dim[0], c.out);
  int64_t elements = c.channels * c.size[0] * c.size[1], most = r->device->units * qn_min_i64(3, (225 << 10) / (st->shared + 1024));
  int64_t rounds = qn_ceil_div(p->tiles, qn_max_i64(most / st->slabs, 1)), parts = qn_ceil_div(p->tiles, rounds);
  parts = qn_min_i64(parts, (int64_t)(r->demands->workspace_limit / (uint64_t)(elements * 4)));
  if (parts < 1 || st->slabs > 65535) {
    r->host->free(st);
    return qn_refuse(out, "workspace for a part of the sum", "dw", "", "%lld", (long long)elements * 4);
  }
  st->x = c.x_at, st->dy = c.y_at, st->dw = c.w_at;
  st->parts = (int32_t)parts;
  st->dw_dtype = c.w->dtype;
  st->elements = elements;
  double bytes = (double)(qn_elements(c.x) + qn_elements(c.y)) * (double)qn_kit_bytes(c.x->dtype), sums = (double)qn_elements(c.y) * (double)(c.size[0] * c.size[1]);
  double moved = bytes / 3800, added = sums / (r->device->units * 128 * 0.9);
  out->estimate = 6000 + (moved > added ? moved : added);
  out->workspace = (uint64_t)(parts * elements * 4);
  out->state = st;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_NATIVE;
  return QN_OK;
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  return cuda_check(cudaFuncSetAttribute(((const state *)out->state)->kernel_->function, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED), "cudaFuncSetAttribute");
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  const kernel *k = st->kernel_;
  depthwise p = st->p;
  p.x.p = launch->ptr[st->x];
  p.dy.p = launch->ptr[st->dy];
  p.parts = (float *)launch->workspace;
  void *arguments[] = { &p };
  qn_status s = cuda_check(cudaLaunchKernel(k->function, dim3(st->parts, st->slabs), dim3((unsigned)qn_round_up(p.pairs * (k->size / k->rows) * p.lanes, 32)), arguments, st->shared, (cudaStream_t)launch->stream), "depthwise_filter");
  if (s) return s;
  return cuda_conv_join(launch->ptr[st->dw], st->dw_dtype, p.parts, st->parts, st->elements, launch->stream);
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

static const qn_engine row[] = {
  { "depthwise", QN_OP_CONV_BACKWARD_FILTER, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare, build, run, release },
};
const qn_engine_list cuda_conv_depthwise_filter_list = { row, sizeof row / sizeof *row };
