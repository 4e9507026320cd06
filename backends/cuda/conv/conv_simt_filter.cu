/* conv_simt_filter.cu -- f32 gradient by the filter on FP32 cores, for what Tensor Cores gain nothing from: groups of few channels. Any
 * layout of x and dy, one to three spatial dims.
 *
 *   dw[k, c, r] = sum over images and outputs p of dy[n, k, p] x[n, c, p stride + r dilation - pad]    c: of k's group
 *
 * A thread has a place (channel, tap) of a group's windows and KB filters, and sums over the outputs of tiles that stand in shared
 * memory with their windows; where places are fewer than threads, several threads share them. An image here is a plane of H by W:
 * taps along D count as channels. A tile's sums are added to those of the tiles before it; each block leaves its own in workspace,
 * and these are added in order. */
#include "conv_kernel.h"
#include "kit/divisor.h"
#include "engines.h"
#include "kit/sm80.cuh"

enum { THREADS = 256, WARPS = THREADS / 32, FLOATS = 11 << 10, SHARED = FLOATS * 4, MOST_PIXELS = 512 };

struct simt_filter {
  const float *x, *dy;
  float   *parts;                         /* [part][K][C of a group][D, H, W] */
  int32_t  channels, filters, places;     /* of a group; places: of a window */
  int32_t  block_places, blocks_places, blocks_k;           /* places of a block; blocks of a group */
  int32_t  in[3], out[3], size[3], pace[3], step[3], before[3];          /* H, W, D */
  int32_t  tile_h, tile_w, tiles_h, tiles_w, tiles;
  int32_t  x_h, pitch, planes;            /* windows of a tile; planes (channel, tap along D) of a block, at most */
  cuda_divisor by_row, by_pitch;          /* outputs of a tile's row; pitch */
  int64_t  x_stride[5], dy_stride[5];
};

template <int KB> __global__ void __launch_bounds__(THREADS) conv_simt_filter(const __grid_constant__ simt_filter p)
{
  constexpr int PITCH = KB + 4;           /* of an output's filters */
  extern __shared__ float4 shared[];
  const int flat = p.size[0] * p.size[1], plane_floats = p.x_h * p.pitch, pixels = p.tile_h * p.tile_w;
  int rest = blockIdx.y;
  const int place0 = rest % p.blocks_places * p.block_places;
  rest /= p.blocks_places;
  const int k0 = rest % p.blocks_k * KB, group = rest / p.blocks_k, here_k = min(KB, p.filters - k0);
  const int here = min(p.block_places, p.places - place0), plane0 = place0 / flat, planes = (place0 + here - 1) / flat - plane0 + 1;
  float *dy = (float *)shared, *windows = dy + pixels * PITCH;          /* [output][k]; [plane][row][column] */
  int *bases = (int *)(windows + p.planes * plane_floats);               /* of outputs in a plane of windows; -1: beyond the tensor */
  const int sharers = THREADS / p.block_places, mine = threadIdx.x % p.block_places, share = threadIdx.x / p.block_places;
  const bool works = mine < here && share < sharers;
  const int place = place0 + mine, tap = place % flat, r = tap / p.size[1], s = tap - r * p.size[1];
  const float *window = windows + (works ? (place / flat - plane0) * plane_floats + r * p.step[0] * p.pitch + s * p.step[1] : 0);
  float total[KB] = {};
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    const int image = tile / (p.tiles_h * p.tiles_w), at = tile - image * (p.tiles_h * p.tiles_w);
    const int h0 = at / p.tiles_w * p.tile_h, w0 = at % p.tiles_w * p.tile_w, n = image / p.out[2], d_out = image - n * p.out[2];
    __syncthreads();
    for (int i = threadIdx.x; i < pixels; i += THREADS) {
      uint32_t w, h = cuda_quotient(i, p.by_row, &w);
      bases[i] = h0 + (int)h < p.out[0] && w0 + (int)w < p.out[1] ? (int)(h * p.pace[0] * p.pitch + w * p.pace[1]) : -1;
    }
    for (int i = threadIdx.x / 32; i < planes; i += WARPS) {                 /* a warp copies a plane */
      int plane = plane0 + i, c = plane / p.size[2], r_d = plane - c * p.size[2], d = d_out * p.pace[2] + r_d * p.step[2] - p.before[2];
      int top = h0 * p.pace[0] - p.before[0], left = w0 * p.pace[1] - p.before[1];
      bool there = (unsigned)d < (unsigned)p.in[2];
      const float *from = p.x + n * p.x_stride[0] + (group * p.channels + c) * p.x_stride[1] + top * p.x_stride[2] + left * p.x_stride[3] +
                          d * p.x_stride[4];
      uint32_t to = shared_address(windows + i * plane_floats);
      for (int e = threadIdx.x % 32; e < plane_floats; e += 32) {
        uint32_t w, h = cuda_quotient(e, p.by_pitch, &w);
        bool inside = there && (unsigned)(top + h) < (unsigned)p.in[0] && (unsigned)(left + w) < (unsigned)p.in[1];
        copy_async<4>(to + e * 4, inside ? from + h * p.x_stride[2] + w * p.x_stride[3] : p.x, inside ? 4 : 0);
      }
    }
    for (int k = threadIdx.x / 32; k < here_k; k += WARPS) {
      const float *from = p.dy + n * p.dy_stride[0] + (group * p.filters + k0 + k) * p.dy_stride[1] + h0 * p.dy_stride[2] +
                          w0 * p.dy_stride[3] + d_out * p.dy_stride[4];
      for (int i = threadIdx.x % 32; i < pixels; i += 32) {
        uint32_t w, h = cuda_quotient(i, p.by_row, &w);
        if (h0 + (int)h < p.out[0] && w0 + (int)w < p.out[1])
          copy_async<4>(shared_address(dy + i * PITCH + k), from + h * p.dy_stride[2] + w * p.dy_stride[3], 4);
      }
    }
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    if (!works) continue;
    float sum[KB] = {};
#pragma unroll 4
    for (int q = share; q < pixels; q += sharers) {
      int base = bases[q];
      if (base < 0) continue;
      float seen = window[base];
#pragma unroll
      for (int j = 0; j < KB; j += 4) {
        float4 g = *(const float4 *)(dy + q * PITCH + j);
        sum[j] = fmaf(seen, g.x, sum[j]), sum[j + 1] = fmaf(seen, g.y, sum[j + 1]), sum[j + 2] = fmaf(seen, g.z, sum[j + 2]),
        sum[j + 3] = fmaf(seen, g.w, sum[j + 3]);
      }
    }
#pragma unroll
    for (int j = 0; j < KB; j++) total[j] += sum[j];
  }

  __syncthreads();                        /* adds the sharers' sums, in order */
  float *sums = (float *)shared;          /* [share][place][k] */
  if (works) {
#pragma unroll
    for (int j = 0; j < KB; j++) sums[(share * p.block_places + mine) * KB + j] = total[j];
  }
  __syncthreads();
  float *part = p.parts + ((int64_t)blockIdx.x * gridDim.y / (p.blocks_k * p.blocks_places) + group) * p.filters * p.places;
  for (int i = threadIdx.x; i < here * here_k; i += THREADS) {
    int k = i / here, at = i - k * here;
    float v = sums[at * KB + k];
    for (int t = 1; t < sharers; t++) v += sums[(t * p.block_places + at) * KB + k];
    part[(int64_t)(k0 + k) * p.places + place0 + at] = v;
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

/* The tile of most outputs that fits; false: none does. */
static bool choose_tile(simt_filter *p, int kb)
{
  for (int pixels = MOST_PIXELS; pixels > 0; pixels /= 2) {
    p->tile_w = (int32_t)qn_ceil_div(p->out[1], qn_ceil_div(p->out[1], pixels));
    p->tile_h = (int32_t)qn_min_i64(p->out[0], pixels / p->tile_w);
    p->tile_h = (int32_t)qn_ceil_div(p->out[0], qn_ceil_div(p->out[0], p->tile_h));
    p->x_h = (p->tile_h - 1) * p->pace[0] + (p->size[0] - 1) * p->step[0] + 1;
    p->pitch = (p->tile_w - 1) * p->pace[1] + (p->size[1] - 1) * p->step[1] + 1;
    int64_t outputs = p->tile_h * p->tile_w;
    p->by_row = cuda_divide_by(p->tile_w), p->by_pitch = cuda_divide_by(p->pitch);
    if (outputs * (kb + 4) + (int64_t)p->planes * p->x_h * p->pitch + outputs <= FLOATS) return true;
  }
  return false;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  simt_filter p = {};
  qn_status status = cuda_conv_problem_read_volume(&c, r, out);
  if (status || (status = cuda_conv_wants_ampere(r, out)) || (status = cuda_conv_wants_f32(&c, out))) return status;
  if (!qn_is_packed(c.w)) return qn_refuse(out, "packed filters", "dw", "nchw", "%s", "other strides");
  int64_t channels = c.channels / c.groups, filters = c.filters / c.groups, flat = c.size[0] * c.size[1], places = channels * c.size[2] * flat;
  for (int d = 0; d < 3; d++) {
    p.in[d] = (int32_t)c.in[d], p.out[d] = (int32_t)c.out[d], p.size[d] = (int32_t)c.size[d];
    p.pace[d] = (int32_t)c.stride[d], p.step[d] = (int32_t)c.dilation[d], p.before[d] = (int32_t)c.before[d];
  }
  const int kb = filters <= 4 ? 4 : filters <= 8 ? 8 : 16;
  p.channels = (int32_t)channels, p.filters = (int32_t)filters, p.places = (int32_t)places;
  p.blocks_places = (int32_t)qn_ceil_div(places, THREADS);
  p.block_places = (int32_t)qn_ceil_div(places, p.blocks_places);
  p.blocks_k = (int32_t)qn_ceil_div(filters, kb);
  p.planes = (int32_t)qn_min_i64(channels * c.size[2], (p.block_places + flat - 2) / flat + 1);
  if (!choose_tile(&p, kb)) return qn_refuse(out, "windows of an output in shared memory", "dw", "smaller windows", "%lld", (long long)flat);
  p.tiles_h = (int32_t)qn_ceil_div(c.out[0], p.tile_h), p.tiles_w = (int32_t)qn_ceil_div(c.out[1], p.tile_w);
  int64_t tiles = c.x->dim[0] * c.out[2] * p.tiles_h * p.tiles_w, blocks = c.groups * p.blocks_k * p.blocks_places, elements = c.filters * places;
  if (tiles > INT32_MAX || blocks > 65535) return qn_refuse(out, "a grid of blocks", "dw", "fewer filters", "%lld", (long long)blocks);
  p.tiles = (int32_t)tiles;
  cuda_conv_strides(p.x_stride, c.x);
  cuda_conv_strides(p.dy_stride, c.y);
  int64_t parts = cuda_conv_shares_of_sum(r, out, tiles, qn_max_i64(1, 4 * r->device->units / blocks), elements);
  if (parts < 1) return QN_UNSUPPORTED;
  const void *function = kb == 4 ? (const void *)conv_simt_filter<4> : kb == 8 ? (const void *)conv_simt_filter<8> : (const void *)conv_simt_filter<16>;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, function, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)parts, k->grid[1] = (uint32_t)blocks;
  k->threads = THREADS, k->shared = SHARED;
  cuda_conv_kernel_pointer(k, c.x_at, offsetof(simt_filter, x));
  cuda_conv_kernel_pointer(k, c.y_at, offsetof(simt_filter, dy));
  cuda_conv_kernel_parts(k, out, &c, parts, elements, offsetof(simt_filter, parts));
  double products = (double)tiles * p.tile_h * p.tile_w * (double)(p.block_places * (THREADS / p.block_places)) / (THREADS / p.block_places) *
                    kb * (double)blocks;
  const double all = products / (r->device->units * 128 * 1.7 * 0.2) +
                     4 * ((double)qn_elements(c.x) + (double)qn_elements(c.y)) * p.blocks_k / 2500 + (double)(parts * elements) * 8 / 2500;
  /* a block's tiles, one after another: copies, then as many rounds as a thread has outputs */
  const double rounds = (double)(p.tile_h * p.tile_w) / (THREADS / p.block_places), copies = (double)p.planes / WARPS * p.x_h * p.pitch / 32;
  const double in_turn = 3000 + (double)qn_ceil_div(tiles, parts) * (2000 + 35 * rounds + 40 * copies);
  out->estimate = 7000 + (all > in_turn ? all : in_turn);
  return QN_OK;
}

static const qn_engine row[] = {
  { "simt", QN_OP_CONV_BACKWARD_FILTER, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare, cuda_conv_kernel_build,
    cuda_conv_kernel_run, cuda_release },
};
CUDA_ENGINES(conv_simt_filter) = { row, sizeof row / sizeof *row };
