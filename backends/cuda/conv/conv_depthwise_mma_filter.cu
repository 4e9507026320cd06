/* conv_depthwise_mma_filter.cu -- gradient by the filter of depthwise convolution by Tensor Cores (conv_depthwise_mma.cuh), f16
 * and bf16, windows up to 7x7, stride 1.
 *
 *   dw[c, r, s] = sum over images and outputs (p, q) of dy[n, c, p, q] x[n, c, p + r - pad, q + s - pad]
 *
 * For each row r of the window a product, summed over a tile's rows p, of 16 pixels of x by 8 of dy; the sums along its diagonals
 * pixel - q are the taps. A block has 16 channels, one a warp, and keeps the products over all its tiles. Each block leaves a
 * partial sum in workspace; these are added in order. */
#include "conv_depthwise_mma.cuh"
#include "engines.h"

enum { CHANNELS = 16, THREADS = CHANNELS * 32 };
typedef band_planes<BAND_ROWS, BAND_PAIRS, CHANNELS / 8> x_planes;
typedef band_planes<BAND_SIDE, BAND_SIDE / 2, CHANNELS / 8> dy_planes;

struct depthwise {
  plane    x, dy;
  float   *parts;                         /* [part][channel][R][S] */
  int32_t  before[2], size[2];
  int32_t  tiles_h, tiles_w, tiles;
};

template <class mma, int dtype> __global__ void __launch_bounds__(THREADS, 2) depthwise_mma_filter(const __grid_constant__ depthwise p)
{
  extern __shared__ uint4 shared[];
  unsigned char *x = (unsigned char *)shared, *dy = x + x_planes::bytes;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.y * CHANNELS;
  float sum[BAND_MOST][4] = {};
  uint32_t pixels = shared_address(x + x_planes::at(warp)) + (lane % 8 + lane / 16 * 8) * BAND_LINE + lane / 8 % 2 * 16;
  uint32_t gradients = shared_address(dy + dy_planes::at(warp)) + lane % 16 * BAND_LINE + lane / 16 * 16;
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    int rest = tile / p.tiles_w, n = rest / p.tiles_h, y0 = (rest - n * p.tiles_h) * BAND_SIDE, x0 = (tile - rest * p.tiles_w) * BAND_SIDE;
    auto fetch = [&](int i) { return x_planes::fetch(p.x, n, y0 - p.before[0], x0 - p.before[1] - 1, first, i); };
    band_item v = fetch(threadIdx.x), g = dy_planes::fetch(p.dy, n, y0, x0, first, threadIdx.x);
    x_planes::put(x, threadIdx.x, v);
    dy_planes::put(dy, threadIdx.x, g);
    for (int i = threadIdx.x + THREADS; i < x_planes::items; i += THREADS) x_planes::put(x, i, fetch(i));
    __syncthreads();
    uint32_t b[4];                        /* rows 0-7 and 8-15 of columns 0-7, then of columns 8-15 */
    load_matrices<true>(b, gradients);
#pragma unroll
    for (int r = 0; r < BAND_MOST; r++)                     /* products beyond the window are not used */
#pragma unroll
      for (int j = 0; j < 2; j++) {
        uint32_t a[4];
        load_matrices<true>(a, pixels + r * BAND_LINE + j * 16);
        mma::product(sum[r], a, b[j * 2], b[j * 2 + 1]);
      }
    __syncthreads();
  }

  /* sum the diagonals, one row of the window after the other */
  float *product = (float *)shared + warp * (16 * 9);
  int channel = first + warp;
  if (channel >= p.x.channels) return;
  float taps[BAND_MOST];
#pragma unroll
  for (int r = 0; r < BAND_MOST; r++) {
#pragma unroll
    for (int e = 0; e < 4; e++) product[(lane / 4 + e / 2 * 8) * 9 + lane % 4 * 2 + e % 2] = sum[r][e];
    __syncwarp();
    taps[r] = 0;
    if (lane < BAND_MOST)
#pragma unroll
      for (int q = 0; q < 8; q++) taps[r] += product[(q + lane + 1) * 9 + q];
    __syncwarp();
  }
  if (lane >= p.size[1]) return;
#pragma unroll
  for (int r = 0; r < BAND_MOST; r++) {
    if (r >= p.size[0]) break;
    if (!isfinite(taps[r]))
      taps[r] = tile_sum_again<dtype>(p.x, channel, p.dy, channel, r - p.before[0], lane - p.before[1], 1, 1, BAND_SIDE, BAND_SIDE,
                                      p.tiles_h, p.tiles_w, p.tiles);
    p.parts[(((int64_t)blockIdx.x * p.x.channels + channel) * p.size[0] + r) * p.size[1] + lane] = taps[r];
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  depthwise p = {};
  qn_status status = cuda_conv_band_read(&c, r, out);
  if (status) return status;
  if (!qn_is_packed(c.w)) return qn_refuse(out, "packed filters", "dw", "", "%s", "other strides");
  p.x.h = (int32_t)c.in[0], p.x.w = (int32_t)c.in[1], p.dy.h = (int32_t)c.out[0], p.dy.w = (int32_t)c.out[1];
  p.x.channels = p.dy.channels = (int32_t)c.channels;
  for (int d = 0; d < 2; d++) p.before[d] = (int32_t)c.before[d], p.size[d] = (int32_t)c.size[d];
  p.tiles_h = (int32_t)qn_ceil_div(c.out[0], BAND_SIDE), p.tiles_w = (int32_t)qn_ceil_div(c.out[1], BAND_SIDE);
  p.tiles = (int32_t)(c.x->dim[0] * p.tiles_h * p.tiles_w);
  int64_t slabs = qn_ceil_div(c.channels, CHANNELS), elements = c.channels * c.size[0] * c.size[1];
  if (slabs > 65535) return qn_refuse(out, "a grid of blocks", "x", "fewer channels", "%lld", (long long)c.channels);
  int64_t parts = cuda_conv_shares_of_sum(r, out, p.tiles, 2 * r->device->units / slabs, elements);
  if (parts < 1) return QN_UNSUPPORTED;

  uint32_t shared = x_planes::bytes + dy_planes::bytes;
  const void *function = c.x->dtype == QN_F16 ? (const void *)depthwise_mma_filter<mma_f16, QN_F16>
                                              : (const void *)depthwise_mma_filter<mma_bf16, QN_BF16>;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, function, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)parts, k->grid[1] = (uint32_t)slabs;
  k->threads = THREADS, k->shared = shared;
  cuda_conv_kernel_pointer(k, c.x_at, offsetof(depthwise, x.p));
  cuda_conv_kernel_pointer(k, c.y_at, offsetof(depthwise, dy.p));
  cuda_conv_kernel_parts(k, out, &c, parts, elements, offsetof(depthwise, parts));
  double moved = (double)(qn_elements(c.x) + qn_elements(c.y)) * 2 / 2500,
         turned = (double)p.tiles * (double)slabs * 3000 / (1.7 * r->device->units);
  out->estimate = 7000 + (moved > turned ? moved : turned);
  out->numerics.accumulator = QN_ACC_F32_TC;
  return QN_OK;
}

static const qn_engine row[] = {
  { "depthwise_mma", QN_OP_CONV_BACKWARD_FILTER, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, nullptr, nullptr, prepare,
    cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release },
};
CUDA_ENGINES(conv_depthwise_mma_filter) = { row, sizeof row / sizeof *row };
