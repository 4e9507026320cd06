/* conv_first_filter.cu -- a network's first layer (conv_first.cuh), backward filter.
 *
 *   dw[k, r, s, c] = sum over images and outputs (p, q) of dy[n, k, p, q] x[n, c, p stride + r dilation - pad, q stride + s - pad]
 *
 * A product of filters (slices of 64) by elements of a window (chunks of eight), summed over outputs, sixteen of a row at a time.
 * Tiles of dy and x are in shared memory. A warp has NC chunks and a share of the outputs; a block adds its warps' sums to a
 * partial sum in workspace; these are added in order. */
#include "conv_first.cuh"
#include "engines.h"

enum { THREADS = 256, WARPS = THREADS / 32, SHARED = 112 << 10, SLICE = 64, PIXEL = SLICE * 2 + 16, NC = 6 };     /* PIXEL: bytes */

struct first_filter {
  first_shape f;
  const uint16_t *x, *dy;
  float   *parts;                         /* [part][filter][R][S][C] */
  int32_t  columns;                       /* warps side by side over chunks: 1, 2, 4 or 8 */
};

template <class mma> __global__ void __launch_bounds__(THREADS, 2) conv_first_filter(const __grid_constant__ first_filter p)
{
  const first_shape &f = p.f;
  extern __shared__ uint4 shared[];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  int column = warp % p.columns, share = warp / p.columns, shares = WARPS / p.columns, first = (blockIdx.z * p.columns + column) * NC,
      k0 = blockIdx.y * SLICE;
  uint32_t dy = shared_address(shared), x = dy + f.tile_h * f.tile_w * PIXEL;
  int step_w = f.stride[1] * f.pitch * 2, across = f.tile_w / 16, units = f.tile_h * across;
  uint32_t run[NC];                       /* byte offset of this thread's element of each chunk from an output's */
#pragma unroll
  for (int c = 0; c < NC; c++) {
    int r = min(first + c, f.all - 1) / f.chunks, at = (min(first + c, f.all - 1) - r * f.chunks) * 8 + g;
    run[c] = x + (r * f.dilation * f.row * 2 + min(at, f.run - 1)) * 2 + 2 * t * step_w;
  }
  float sum[4][NC][4] = {};
  for (int tile = blockIdx.x; tile < f.tiles; tile += gridDim.x) {
    int n, y0, x0;
    first_tile(f, tile, &n, &y0, &x0);
    __syncthreads();
    for (int i = threadIdx.x; i < f.tile_h * f.tile_w * (SLICE / 8); i += THREADS) {
      int chunk = i % (SLICE / 8), at = i / (SLICE / 8), h = at / f.tile_w, w = at - h * f.tile_w, k = k0 + chunk * 8;
      bool there = y0 + h < f.out[0] && x0 + w < f.out[1] && k < f.filters;
      const uint16_t *from = there ? p.dy + (((int64_t)n * f.out[0] + y0 + h) * f.out[1] + x0 + w) * f.filters + k : p.dy;
      copy_async<16>(dy + at * PIXEL + chunk * 16, from, there ? 16 : 0);
    }
    copy_async_commit();
    first_load<4>(x, f, p.x, n, y0, x0);
    copy_async_wait<0>();
    __syncthreads();
    for (int unit = share; unit < units; unit += shares) {
      int h = unit / across, w = (unit - h * across) * 16;
      if (y0 + h >= f.out[0]) break;
      /* outputs beyond the row's end have no dy, and their x may be anything: mask it */
      int left = f.out[1] - x0 - w - 2 * t;
      uint32_t low = left > 1 ? ~0u : left > 0 ? 0xffffu : 0, high = left > 9 ? ~0u : left > 8 ? 0xffffu : 0;
      uint32_t a[4][4], at = dy + (h * f.tile_w + w + lane / 16 * 8 + lane % 8) * PIXEL + lane / 8 % 2 * 16;
#pragma unroll
      for (int m = 0; m < 4; m++) load_matrices<true>(a[m], at + m * 32);
      uint32_t below = h * f.stride[0] * f.row * 4 + w * step_w;
#pragma unroll
      for (int c = 0; c < NC; c++) {
        uint32_t from = run[c] + below;
        uint32_t b0 = (shared_half(from) | shared_half(from + step_w) << 16) & low;
        uint32_t b1 = (shared_half(from + 8 * step_w) | shared_half(from + 9 * step_w) << 16) & high;
#pragma unroll
        for (int m = 0; m < 4; m++) mma::product(sum[m][c], a[m], b0, b1);
      }
    }
  }

  /* add the shares' sums, one after the other */
  float *sums = (float *)shared + column * (4 * NC * 4 * 32) + lane;
  for (int s = 1; s < shares; s++) {
    __syncthreads();
    if (share == s)
#pragma unroll
      for (int i = 0; i < 4 * NC * 4; i++) sums[i * 32] = sum[i / (NC * 4)][i / 4 % NC][i % 4];
    __syncthreads();
    if (share == 0)
#pragma unroll
      for (int i = 0; i < 4 * NC * 4; i++) sum[i / (NC * 4)][i / 4 % NC][i % 4] += sums[i * 32];
  }
  if (share) return;
  float *part = p.parts + (int64_t)blockIdx.x * f.filters * f.size[0] * f.run;
#pragma unroll
  for (int m = 0; m < 4; m++)
#pragma unroll
    for (int c = 0; c < NC; c++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        int k = k0 + m * 16 + e / 2 * 8 + g, r = (first + c) / f.chunks, at = (first + c - r * f.chunks) * 8 + 2 * t + e % 2;
        if (k < f.filters && r < f.size[0] && at < f.run) part[(k * f.size[0] + r) * f.run + at] = sum[m][c][e];
      }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  first_filter p = {};
  first_shape *f = &p.f;
  qn_status status = first_shape_read(f, &c, r, false, out);
  if (status) return status;
  if (!qn_is_channels_last(c.w)) return qn_refuse(out, "packed filters, channels last", "dw", "nhwc", "%s", "other strides");
  int columns = 1;
  while (columns < WARPS && columns * NC < f->all) columns *= 2;
  p.columns = columns;
  const int64_t slices = qn_ceil_div(f->filters, SLICE), deep = qn_ceil_div(f->all, columns * NC),
                resident = qn_max_i64(2 * r->device->units / (slices * deep), 1);
  int best_h = 0, best_w = 0;
  const int64_t room = qn_min_i64(SHARED, (int64_t)r->device->shared_per_block);
  double least = 0;
  for (int w = 16; w < f->out[1] + 16 && w <= 512; w += 16)
    for (int h = 1; h <= f->out[0] && h * w <= 512; h++) {
      first_shape_tile(f, c.x->dim[0], h, w);
      int shares = WARPS / columns;
      double cost = (double)qn_ceil_div(f->tiles, resident) *                        /* the tiles of the block that has most */
                    ((double)qn_round_up(h * w / 16, shares) * 16 * 4 + (double)f->x_h * f->x_w * f->pitch + h * w + 200);
      if (h * w * PIXEL + first_x_bytes(f) > room || f->x_w >= 4096 || (least > 0 && cost >= least)) continue;
      least = cost, best_h = h, best_w = w;
    }
  if (!best_h) return qn_refuse(out, "a tile's pixels in shared memory", "x", "smaller windows", "%d", f->size[1]);
  first_shape_tile(f, c.x->dim[0], best_h, best_w);
  const int64_t elements = (int64_t)f->filters * f->size[0] * f->run;
  if (slices > 65535) return qn_refuse(out, "a grid of blocks", "dy", "fewer filters", "%d", f->filters);
  int64_t parts = cuda_conv_shares_of_sum(r, out, f->tiles, resident, elements);
  if (parts < 1) return QN_UNSUPPORTED;

  const void *function = c.x->dtype == QN_F16 ? (const void *)conv_first_filter<mma_f16> : (const void *)conv_first_filter<mma_bf16>;
  int64_t pixels = best_h * best_w * PIXEL + first_x_bytes(f), sums = (int64_t)columns * 4 * NC * 4 * 32 * 4;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, function, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)parts, k->grid[1] = (uint32_t)slices, k->grid[2] = (uint32_t)deep;
  k->threads = THREADS, k->shared = (uint32_t)qn_max_i64(pixels, sums);
  cuda_conv_kernel_pointer(k, c.x_at, offsetof(first_filter, x));
  cuda_conv_kernel_pointer(k, c.y_at, offsetof(first_filter, dy));
  cuda_conv_kernel_parts(k, out, &c, parts, elements, offsetof(first_filter, parts));
  double product = (double)f->tiles * best_h * best_w * (double)(slices * deep * columns) * SLICE * NC * 8 /
                   (r->device->units * 1024 * 0.8);
  out->estimate = 7000 + product + (double)(parts * elements) * 8 / 2500;
  out->numerics.accumulator = QN_ACC_F32_TC;
  return QN_OK;
}

static const qn_engine row[] = {
  { "first_layer", QN_OP_CONV_BACKWARD_FILTER, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, nullptr, nullptr, prepare,
    cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release },
};
CUDA_ENGINES(conv_first_filter) = { row, sizeof row / sizeof *row };
