/* conv_first_data.cu -- a network's first layer (conv_first.cuh), backward data.
 *
 *   dx[n, c, i stride + a, j stride + b] = sum over filters k and taps (r, s) of dy[n, k, p, q] w[k, c, r, s]
 *     with  p = i + (a + pad - r) / stride,  q = j + (b + pad - s) / stride,  where those are integers
 *
 * Positions (i, j) are the product's rows, channels its columns. At stride 2 a position stands for four pixels (a, b): each dy is
 * loaded once and multiplied by the taps of all four, which have accumulators of their own. Filters come in slices of 64; a tile
 * of dy and all its taps are in shared memory. */
#include "conv_first.cuh"
#include "engines.h"

enum { THREADS = 256, SHARED = 112 << 10, SLICE = 64, PIXEL = SLICE * 2 + 16 };      /* PIXEL: bytes, padded against bank conflicts */

struct first_data {
  first_shape f;                          /* its tile: positions, with their dy */
  const uint16_t *dy, *w;
  void    *dx;
  uint32_t dx_dtype;
  int32_t  places[2];
  int32_t  low[2], high[2];               /* range of p - i, q - j */
  int32_t  dy_h, dy_w;
  int32_t  columns;                       /* channels that the filters in shared memory have room for: 4 or 8 */
};

template <class mma, int dtype, int stride>
__global__ void __launch_bounds__(THREADS, 2) conv_first_data(const __grid_constant__ first_data p)
{
  enum { QM = 2, PHASES = stride * stride, SLICES = SLICE / 16 };
  const first_shape &f = p.f;
  extern __shared__ uint4 shared[];
  int taps = f.size[0] * f.size[1], lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  uint2 *filters = (uint2 *)shared;       /* [taps][SLICE / 16][columns][4] */
  uint32_t dy = shared_address(filters + taps * (SLICE / 16) * p.columns * 4);
  int across = f.tile_w / 16, units = f.tile_h * across, unit = warp * QM;
  for (int tile = blockIdx.x; tile < f.tiles; tile += gridDim.x) {
    int n, i0, j0;
    first_tile(f, tile, &n, &i0, &j0);
    float sum[PHASES][QM][4] = {};
    for (int k0 = 0; k0 < f.filters; k0 += SLICE) {
      __syncthreads();
      for (int i = threadIdx.x; i < p.dy_h * p.dy_w * (SLICE / 8); i += THREADS) {
        int chunk = i % (SLICE / 8), at = i / (SLICE / 8), h = at / p.dy_w, w = at - h * p.dy_w;
        int y = i0 + p.low[0] + h, x = j0 + p.low[1] + w, k = k0 + chunk * 8;
        bool there = (uint32_t)y < (uint32_t)f.out[0] && (uint32_t)x < (uint32_t)f.out[1] && k < f.filters;
        const uint16_t *from = there ? p.dy + (((int64_t)n * f.out[0] + y) * f.out[1] + x) * f.filters + k : p.dy;
        copy_async<16>(dy + at * PIXEL + chunk * 16, from, there ? 16 : 0);
      }
      copy_async_commit();
      if (tile == (int)blockIdx.x || f.filters > SLICE)
        for (int i = threadIdx.x; i < taps * SLICE * p.columns; i += THREADS) {
          int e = i % 2, half = i / 2 % 2, k = i / 4 % 4 * 2 + half * 8 + e, c = i / 16 % p.columns,
              slice = i / (16 * p.columns) % (SLICE / 16), tap = i / (SLICE * p.columns);
          int r = tap / f.size[1], s = tap - r * f.size[1];
          k += k0 + slice * 16;
          bool there = k < f.filters && c < f.channels;
          ((uint16_t *)filters)[i] = there ? p.w[k * f.w_stride[0] + c * f.w_stride[1] + r * f.w_stride[2] + s * f.w_stride[3]] : 0;
        }
      copy_async_wait<0>();
      __syncthreads();
      if (unit >= units) continue;
      uint32_t from[QM];
#pragma unroll
      for (int m = 0; m < QM; m++) {
        int u = min(unit + m, units - 1), h = u / across, w = u - h * across;
        from[m] = dy + (h * p.dy_w + w * 16 + lane % 16) * PIXEL + lane / 16 * 16;
      }
      const uint2 *mine = filters + (g % p.columns) * 4 + t;           /* columns beyond the channels repeat others and are not stored */
      for (int op = p.low[0]; op <= p.high[0]; op++)
        for (int oq = p.low[1]; oq <= p.high[1]; oq++) {
          uint32_t at = ((op - p.low[0]) * p.dy_w + oq - p.low[1]) * PIXEL, a[SLICES][QM][4];
          int r0 = f.before[0] - op * stride, s0 = f.before[1] - oq * stride;
#pragma unroll
          for (int i = 0; i < SLICES; i++)
#pragma unroll
            for (int m = 0; m < QM; m++) load_matrices<false>(a[i][m], from[m] + at + i * 32);
          auto taps_of = [&](int phase, uint2 (&b)[SLICES]) {
            const uint2 *tap = mine + ((r0 + phase / stride) * f.size[1] + s0 + phase % stride) * SLICES * p.columns * 4;
#pragma unroll
            for (int i = 0; i < SLICES; i++) b[i] = tap[i * p.columns * 4];
          };
          /* all phases together: independent accumulators hide the latency */
          if (r0 >= 0 && r0 + stride <= f.size[0] && s0 >= 0 && s0 + stride <= f.size[1]) {
            uint2 b[PHASES][SLICES];
#pragma unroll
            for (int phase = 0; phase < PHASES; phase++) taps_of(phase, b[phase]);
#pragma unroll
            for (int i = 0; i < SLICES; i++)
#pragma unroll
              for (int phase = 0; phase < PHASES; phase++)
#pragma unroll
                for (int m = 0; m < QM; m++) mma::product(sum[phase][m], a[i][m], b[phase][i].x, b[phase][i].y);
            continue;
          }
#pragma unroll
          for (int phase = 0; phase < PHASES; phase++) {
            if ((uint32_t)(r0 + phase / stride) >= (uint32_t)f.size[0] || (uint32_t)(s0 + phase % stride) >= (uint32_t)f.size[1]) continue;
            uint2 b[SLICES];
            taps_of(phase, b);
#pragma unroll
            for (int i = 0; i < SLICES; i++)
#pragma unroll
              for (int m = 0; m < QM; m++) mma::product(sum[phase][m], a[i][m], b[i].x, b[i].y);
          }
        }
    }
#pragma unroll
    for (int phase = 0; phase < PHASES; phase++)
#pragma unroll
      for (int m = 0; m < QM; m++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          int u = unit + m, h = u / across, w = (u - h * across) * 16 + g + e / 2 * 8, c = 2 * t + e % 2;
          int y = (i0 + h) * stride + phase / stride, x = (j0 + w) * stride + phase % stride;
          if (u >= units || y >= f.in[0] || x >= f.in[1] || c >= f.channels) continue;
          int64_t to = (((int64_t)n * f.in[0] + y) * f.in[1] + x) * f.channels + c;
          float v = sum[phase][m][e];
          if (p.dx_dtype == dtype) ((uint16_t *)p.dx)[to] = (uint16_t)(dtype == QN_BF16 ? pack_bf16(v, v) : pack_f16(v, v));
          else element_store(p.dx, to, p.dx_dtype, v);
        }
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

static const void *const functions[2][2] = {
  { (const void *)conv_first_data<mma_bf16, QN_BF16, 1>, (const void *)conv_first_data<mma_bf16, QN_BF16, 2> },
  { (const void *)conv_first_data<mma_f16, QN_F16, 1>, (const void *)conv_first_data<mma_f16, QN_F16, 2> },
};

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  first_data p = {};
  first_shape *f = &p.f;
  qn_status status = first_shape_read(f, &c, r, false, out);
  if (status) return status;
  int stride = f->stride[0];
  if (f->stride[1] != stride || stride > 2 || f->dilation != 1)
    return qn_refuse(out, "stride 1 or 2, no dilation", "dx", "", "stride %d,%d", f->stride[0], f->stride[1]);
  p.columns = f->channels <= 4 ? 4 : 8;
  for (int d = 0; d < 2; d++) {
    p.places[d] = (int32_t)qn_ceil_div(f->in[d], stride);
    p.low[d] = (int32_t)qn_ceil_div(f->before[d] - f->size[d] + 1, stride);
    p.high[d] = (int32_t)qn_floor_div(stride - 1 + f->before[d], stride);
  }
  int fixed = f->size[0] * f->size[1] * SLICE * p.columns * 2, best_h = 0, best_w = 0;
  const int64_t room = qn_min_i64(SHARED, (int64_t)r->device->shared_per_block);
  double least = 0;
  for (int w = 16; w < p.places[1] + 16 && w <= 256; w += 16)
    for (int h = 1; h <= p.places[0] && h * w <= 256; h++) {           /* two groups of sixteen for each warp */
      int64_t pixels = (int64_t)(h + p.high[0] - p.low[0]) * (w + p.high[1] - p.low[1]);
      const int64_t tiles = c.x->dim[0] * qn_ceil_div(p.places[0], h) * qn_ceil_div(p.places[1], w);
      double cost = (double)qn_ceil_div(tiles, 2 * r->device->units) * ((double)pixels + 2 * 256);    /* of the block that has most */
      if (fixed + pixels * PIXEL > room || (least > 0 && cost >= least)) continue;
      least = cost, best_h = h, best_w = w;
    }
  if (!best_h) return qn_refuse(out, "filters and a tile of dy in shared memory", "w", "fewer taps", "%d", f->size[0] * f->size[1]);
  f->tile_h = best_h, f->tile_w = best_w;
  f->tiles_h = (int32_t)qn_ceil_div(p.places[0], best_h), f->tiles_w = (int32_t)qn_ceil_div(p.places[1], best_w);
  f->tiles = (int32_t)(c.x->dim[0] * f->tiles_h * f->tiles_w);
  p.dy_h = best_h + p.high[0] - p.low[0], p.dy_w = best_w + p.high[1] - p.low[1];

  p.dx_dtype = c.x->dtype;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, functions[c.y->dtype == QN_F16][stride - 1], &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)cuda_conv_shares(f->tiles, 2 * r->device->units);
  k->threads = THREADS, k->shared = (uint32_t)(fixed + p.dy_h * p.dy_w * PIXEL);
  cuda_conv_kernel_pointer(k, c.y_at, offsetof(first_data, dy));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(first_data, w));
  cuda_conv_kernel_pointer(k, c.x_at, offsetof(first_data, dx));
  double sums = (double)f->tiles * 256 * f->size[0] * f->size[1] * (double)qn_round_up(f->filters, SLICE) * 8;
  out->estimate = 6500 + sums / (r->device->units * 1024 * 0.6) + (double)qn_elements(c.y) * 2 / 3500;
  out->numerics.accumulator = QN_ACC_F32_TC;
  return QN_OK;
}

static const qn_engine row[] = {
  { "first_layer", QN_OP_CONV_BACKWARD_DATA, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES,
    nullptr, nullptr, prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release },
};
CUDA_ENGINES(conv_first_data) = { row, sizeof row / sizeof *row };
