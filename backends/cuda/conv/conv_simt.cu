/* conv_simt.cu -- f32 convolution and its gradient by x on FP32 cores, for what Tensor Cores gain nothing from: groups of few channels, short
 * sums. Any layout, one to three spatial dims, bias, fold and relu fused in two.
 *
 *   y[n, k, p] = sum over channels c of k's group and taps r of x[n, c, p stride + r dilation - pad] w[k, c, r]
 *
 * A block has the filters of a group, up to KB a thread, and a tile of pixels, PX a thread, that may span small images; windows and
 * filters of a few channels at a time stand in shared memory. An image here is a plane of H by W: taps along D count as channels.
 * Backward data is the same sum over dy with the filter reversed; with a stride the pixels of dx fall into residue classes, each a
 * convolution of stride 1 (conv_problem.h).
 *
 * Refused: sums over more than 4096 terms, which would need a second level. */
#include "conv_kernel.h"
#include "conv_store.cuh"
#include "kit/divisor.h"
#include "engines.h"
#include "kit/sm80.cuh"

enum { THREADS = 128, WARPS = THREADS / 32, SHARED = 40 << 10, TERMS = 4096, MOST_FILTERS = 32 };

struct simt {
  const float *x, *w;
  float   *y;
  int32_t  channels, filters;             /* summed over and written, of a group */
  int32_t  block_k, blocks_k;             /* filters of a block; blocks of a group */
  int32_t  in[3], extent[3];              /* of x and y: H, W, D */
  int32_t  apart[3], pace[3], step[3];    /* of y's pixels of a class; of windows in x; of taps */
  cuda_conv_span spans[3][CUDA_CONV_APART];
  int32_t  images, planes;                /* N; planes of y of the largest class */
  int32_t  together, tile_h, tile_w, tiles_h, tiles_w;      /* a tile: images, rows, columns */
  int32_t  x_h, pitch, plane;             /* of its windows in shared memory */
  cuda_divisor by_tile, by_row, by_pitch, by_together, by_k;             /* pixels of a tile's image, of its row; padded filters */
  int32_t  chunk;                         /* planes (channel, tap along D) at a time */
  int32_t  column, factor, relu;          /* operands of bias and fold (-1: none) */
  int64_t  x_stride[5], w_stride[5], y_stride[5];           /* N, C, H, W, D; w: written, summed over, taps */
  int64_t  w_group;                       /* from one group's filters to the next's */
  cuda_steps steps;
};

template <int PX, int KB> __global__ void __launch_bounds__(THREADS) conv_simt(const __grid_constant__ simt p)
{
  extern __shared__ float4 shared[];
  int rest = blockIdx.z, residue[3];
  residue[1] = rest % p.apart[1], rest /= p.apart[1];
  residue[0] = rest % p.apart[0], residue[2] = rest / p.apart[0];
  const cuda_conv_span &down = p.spans[0][residue[0]], &across = p.spans[1][residue[1]], &deep = p.spans[2][residue[2]];
  const int planes_y = p.images * deep.out;
  if (planes_y == 0 || down.out == 0 || across.out == 0) return;
  const int group = blockIdx.y / p.blocks_k, k0 = (blockIdx.y - group * p.blocks_k) * p.block_k, block_k = min(p.block_k, p.filters - k0);
  const int tiles = p.tiles_h * p.tiles_w, image0 = blockIdx.x / tiles * p.together, tile = blockIdx.x % tiles;
  const int h0 = tile / p.tiles_w * p.tile_h, w0 = tile % p.tiles_w * p.tile_w;
  const int padded_k = (p.block_k + KB - 1) / KB * KB, taps = down.taps * across.taps;
  float *filters = (float *)shared, *windows = filters + p.chunk * taps * padded_k;     /* [chunk][tap][k]; [chunk][image][row][column] */

  /* this thread's pixels and filters */
  const int by_k = padded_k / KB, by_pixel = THREADS / by_k, mine_k = threadIdx.x / by_pixel, lane = threadIdx.x % by_pixel;
  int base[PX], place[PX];                /* of a pixel in the windows; its image, row and column in 8, 12 and 12 bits; -1: none */
#pragma unroll
  for (int i = 0; i < PX; i++) {
    uint32_t at, w, q = lane + i * by_pixel, image = cuda_quotient(q, p.by_tile, &at), h = cuda_quotient(at, p.by_row, &w);
    bool there = (int)image < p.together && mine_k < by_k;
    base[i] = there ? (image * p.x_h + h * p.pace[0]) * p.pitch + w * p.pace[1] : 0;
    place[i] = there ? (int)(image << 24 | h << 12 | w) : -1;
  }
  int *tap_at = (int *)(windows + p.chunk * p.plane);       /* of a tap in w */
  for (int tap = threadIdx.x; tap < taps; tap += THREADS) {
    int r = tap / across.taps, s = tap - r * across.taps;
    tap_at[tap] = (int)((down.tap + r * down.tap_step) * p.w_stride[2] + (across.tap + s * across.tap_step) * p.w_stride[3]);
  }
  float sum[PX][KB] = {};
  const int planes = p.channels * deep.taps;
  for (int first = 0; first < planes && taps; first += p.chunk) {
    const int here = min(p.chunk, planes - first);
    __syncthreads();
    for (int job = threadIdx.x / 32; job < here * p.together; job += WARPS) {            /* a warp copies an image's windows */
      uint32_t image, i = cuda_quotient(job, p.by_together, &image);
      int plane = first + i, c = plane / deep.taps, r = plane - c * deep.taps, at = image0 + image, n = at / deep.out;
      int d = (at - n * deep.out) * p.pace[2] + r * p.step[2] - deep.before, top = h0 * p.pace[0] - down.before, left = w0 * p.pace[1] - across.before;
      bool there = at < planes_y && (unsigned)d < (unsigned)p.in[2];
      const float *from = p.x + n * p.x_stride[0] + (group * p.channels + c) * p.x_stride[1] + top * p.x_stride[2] + left * p.x_stride[3] +
                          d * p.x_stride[4];
      uint32_t to = shared_address(windows + i * p.plane + image * p.x_h * p.pitch);
      for (int e = threadIdx.x % 32; e < p.x_h * p.pitch; e += 32) {
        uint32_t w, h = cuda_quotient(e, p.by_pitch, &w);
        bool inside = there && (unsigned)(top + h) < (unsigned)p.in[0] && (unsigned)(left + w) < (unsigned)p.in[1];
        copy_async<4>(to + e * 4, inside ? from + h * p.x_stride[2] + w * p.x_stride[3] : p.x, inside ? 4 : 0);
      }
    }
    for (int i = 0; i < here; i++) {
      int plane = first + i, c = plane / deep.taps, d = plane - c * deep.taps;
      const float *from = p.w + group * p.w_group + k0 * p.w_stride[0] + c * p.w_stride[1] + (deep.tap + d * deep.tap_step) * p.w_stride[4];
      uint32_t to = shared_address(filters + i * taps * padded_k);
      if (i == 0 && first == 0) __syncthreads();            /* tap_at */
      for (int e = threadIdx.x; e < taps * padded_k; e += THREADS) {
        uint32_t k, tap = cuda_quotient(e, p.by_k, &k);
        bool real = (int)k < block_k;
        copy_async<4>(to + e * 4, real ? from + k * p.w_stride[0] + tap_at[tap] : p.w, real ? 4 : 0);
      }
    }
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    const float *filter = filters + mine_k * KB;
    for (int plane = 0; plane < here; plane++)
      for (int r = 0; r < down.taps; r++)
        for (int s = 0; s < across.taps; s++, filter += padded_k) {
          const float *window = windows + plane * p.plane + r * p.step[0] * p.pitch + s * p.step[1];
          float of[KB], seen[PX];
#pragma unroll
          for (int j = 0; j < KB; j += 4) {
            float4 four = *(const float4 *)(filter + j);
            of[j] = four.x, of[j + 1] = four.y, of[j + 2] = four.z, of[j + 3] = four.w;
          }
#pragma unroll
          for (int i = 0; i < PX; i++) seen[i] = window[base[i]];
#pragma unroll
          for (int i = 0; i < PX; i++)
#pragma unroll
            for (int j = 0; j < KB; j++) sum[i][j] = fmaf(seen[i], of[j], sum[i][j]);
        }
  }

  int64_t to[PX];
#pragma unroll
  for (int i = 0; i < PX; i++) {
    int plane = image0 + (place[i] >> 24), h = h0 + (place[i] >> 12 & 0xfff), w = w0 + (place[i] & 0xfff), n = plane / deep.out, d = plane - n * deep.out;
    to[i] = place[i] < 0 || plane >= planes_y || h >= down.out || w >= across.out ? -1
          : n * p.y_stride[0] + (h * p.apart[0] + residue[0]) * p.y_stride[2] + (w * p.apart[1] + residue[1]) * p.y_stride[3] +
            (d * p.apart[2] + residue[2]) * p.y_stride[4];
  }
#pragma unroll
  for (int j = 0; j < KB; j++) {
    const int k = mine_k * KB + j, channel = group * p.filters + k0 + k;
    if (k >= block_k) break;
    column_fold fold = fold_of(p.steps, p.factor, channel);
    float bias = 0;
    if (p.column >= 0) {
      const cuda_operand &o = p.steps.operand[p.column];
      bias = element_load<float>(o.p, channel * o.stride[1], o.dtype);
    }
#pragma unroll
    for (int i = 0; i < PX; i++) {
      float v = folded(sum[i][j] + bias, fold);
      if (p.relu) v = v < 0 ? 0 : v;                        /* keeps NaN */
      if (to[i] >= 0) p.y[to[i] + channel * p.y_stride[1]] = v;
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

/* The tile of at most `pixels` with the fewest tiles; false: its windows do not fit. */
static bool choose_tile(simt *p, int pixels, int padded_k)
{
  const cuda_conv_span *s[3] = { &p->spans[0][0], &p->spans[1][0], &p->spans[2][0] };
  const int out_h = s[0]->out, out_w = s[1]->out;
  p->together = 1;
  p->tile_w = out_w < pixels ? out_w : (int)qn_ceil_div(out_w, qn_ceil_div(out_w, pixels));
  for (int rows = (int)qn_min_i64(out_h, pixels / p->tile_w); rows > 0; rows = rows / 2) {
    p->tile_h = (int)qn_ceil_div(out_h, qn_ceil_div(out_h, rows));
    if (p->tile_h == out_h && p->tile_w == out_w) p->together = (int)qn_min_i64(qn_min_i64(pixels / (out_h * out_w), p->planes), 127);
    for (; p->together > 0; p->together /= 2) {
      int taps_h = 0, taps_w = 0;
      for (int i = 0; i < p->apart[0]; i++) taps_h = p->spans[0][i].taps > taps_h ? p->spans[0][i].taps : taps_h;
      for (int i = 0; i < p->apart[1]; i++) taps_w = p->spans[1][i].taps > taps_w ? p->spans[1][i].taps : taps_w;
      p->x_h = (p->tile_h - 1) * p->pace[0] + (taps_h > 0 ? taps_h - 1 : 0) * p->step[0] + 1;
      p->pitch = (p->tile_w - 1) * p->pace[1] + (taps_w > 0 ? taps_w - 1 : 0) * p->step[1] + 1;
      p->plane = p->together * p->x_h * p->pitch;
      int64_t each = ((int64_t)p->plane + (int64_t)taps_h * taps_w * padded_k) * 4;
      p->chunk = (int)qn_min_i64((SHARED - 64 - (int64_t)taps_h * taps_w * 4) / each, p->channels * qn_max_i64(1, s[2]->taps));
      if (p->chunk > 0) {
        p->by_tile = cuda_divide_by(p->tile_h * p->tile_w), p->by_row = cuda_divide_by(p->tile_w);
        p->by_pitch = cuda_divide_by(p->pitch), p->by_together = cuda_divide_by(p->together), p->by_k = cuda_divide_by(padded_k);
        p->tiles_h = (int)qn_ceil_div(out_h, p->tile_h), p->tiles_w = (int)qn_ceil_div(out_w, p->tile_w);
        return true;
      }
    }
    p->together = 1;
  }
  return false;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  simt p = {};
  cuda_chain chain;
  qn_status status = cuda_conv_problem_read_volume(&c, r, out);
  if (status || (status = cuda_conv_wants_ampere(r, out)) || (status = cuda_conv_wants_f32(&c, out))) return status;
  const bool data = c.mode == CUDA_CONV_DATA;
  const int64_t channels = (data ? c.filters : c.channels) / c.groups, filters = (data ? c.channels : c.filters) / c.groups;
  if (channels * c.size[0] * c.size[1] * c.size[2] > TERMS)
    return qn_refuse(out, "at most 4096 terms in a sum", "w", "4096", "%lld", (long long)(channels * c.size[0] * c.size[1] * c.size[2]));
  int64_t classes = 1;
  for (int d = 0; d < 3; d++) {
    if (data && c.stride[d] > CUDA_CONV_APART)
      return qn_refuse(out, "backward data of strides to 4", "dx", "1 to 4", "%lld", (long long)c.stride[d]);
    p.in[d] = (int32_t)(data ? c.out[d] : c.in[d]);
    p.extent[d] = (int32_t)(data ? c.in[d] : c.out[d]);
    p.apart[d] = data ? (int32_t)c.stride[d] : 1;
    p.pace[d] = data ? 1 : (int32_t)c.stride[d];
    p.step[d] = (int32_t)(data ? c.dilation[d] * cuda_conv_every(&c, d) / c.stride[d] : c.dilation[d]);
    for (int i = 0; i < p.apart[d]; i++) p.spans[d][i] = cuda_conv_span_of(&c, d, i);
    classes *= p.apart[d];
  }
  qn_request alone = *r;
  if (c.x->rank != 4) alone.n_ops = 1;                      /* followers are addressed in two spatial dims */
  if ((status = cuda_conv_problem_bias_relu(&c, &alone, &chain, &p.column, &p.factor, &p.relu, out))) return status;
  const qn_value *y = &r->value[chain.out];
  if (y->dtype != QN_F32) return qn_refuse(out, "dtypes", "y", "f32", "%s", qn_kit_name(y->dtype));
  p.channels = (int32_t)channels, p.filters = (int32_t)filters;
  p.blocks_k = (int32_t)qn_ceil_div(filters, MOST_FILTERS);
  p.block_k = (int32_t)qn_ceil_div(filters, p.blocks_k);
  p.images = (int32_t)c.x->dim[0], p.planes = p.images * p.spans[2][0].out;
  cuda_conv_strides(p.x_stride, data ? c.y : c.x);
  cuda_conv_strides(p.y_stride, y);
  cuda_conv_strides(p.w_stride, c.w);
  int64_t reach = 0;                      /* taps are counted in 31 bits */
  for (int d = 0; d < 2; d++) reach += (c.size[d] - 1) * c.w_stride[d];
  if (reach > INT32_MAX) return qn_refuse(out, "a filter of fewer than 2^31 elements", "w", "", "%lld", (long long)reach);
  p.w_group = (data ? channels : filters) * c.w->stride[0];
  if (data) p.w_stride[0] = c.w->stride[1], p.w_stride[1] = c.w->stride[0];
  p.steps = chain.steps;
  const bool narrow = p.block_k <= 4;
  const int each = narrow ? 4 : 8, mine = narrow ? 8 : 4, padded_k = (int)qn_round_up(p.block_k, each), pixels = THREADS / (padded_k / each) * mine;
  if (!choose_tile(&p, pixels, padded_k))
    return qn_refuse(out, "a tile's windows in shared memory", "w", "fewer taps", "%lld", (long long)(c.size[0] * c.size[1]));
  const int64_t tiles = qn_ceil_div(p.planes, p.together) * p.tiles_h * p.tiles_w, blocks_k = c.groups * p.blocks_k;
  if (tiles > INT32_MAX || blocks_k > 65535 || classes > 65535) return qn_refuse(out, "a grid of blocks", "y", "fewer groups", "%s", "more");
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, narrow ? (const void *)conv_simt<8, 4> : (const void *)conv_simt<4, 8>, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)tiles, k->grid[1] = (uint32_t)blocks_k, k->grid[2] = (uint32_t)classes;
  k->threads = THREADS, k->shared = SHARED;
  cuda_conv_kernel_pointer(k, data ? c.y_at : c.x_at, offsetof(simt, x));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(simt, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(simt, steps), offsetof(simt, y));
  double terms = (double)(channels * c.size[0] * c.size[1] * c.size[2]) / (double)classes;
  double products = (double)(tiles * blocks_k * classes) * pixels * padded_k * terms;
  double bytes = 4 * ((double)qn_elements(c.x) + (double)qn_elements(c.y));
  /* a stride's classes copy the windows that they share, each for itself; windows of small images are mostly edges */
  const double rate = classes > 1 ? 0.18 : p.together > 1 ? 0.3 : 0.4, all = products / (r->device->units * 128 * 1.7 * rate) + bytes / 3000;
  /* a block takes one plane after another; few blocks wait for each one's copy */
  int deep = 0, taps = 0;
  for (int i = 0; i < p.apart[2]; i++) deep = p.spans[2][i].taps > deep ? p.spans[2][i].taps : deep;
  for (int i = 0; i < p.apart[0]; i++)
    for (int j = 0; j < p.apart[1]; j++) {
      const int flat = p.spans[0][i].taps * p.spans[1][j].taps;
      taps = flat > taps ? flat : taps;
    }
  const double in_turn = (double)channels * deep * (500 + 65.0 * taps + 0.6 * p.plane);
  /* as measured: words that lie apart are fetched a sector each; a single tap leaves a window's copy unused */
  const double slow = p.x_stride[3] != 1 && p.in[1] > 1 ? 3 : taps == 1 && classes == 1 ? 2.2 : 1;
  out->estimate = 4000 + slow * (all > in_turn ? all : in_turn);
  return QN_OK;
}

#define ROW(op, pattern) { "simt", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, nullptr, pattern, \
                        prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr) };
CUDA_ENGINES(conv_simt) = { row, sizeof row / sizeof *row };
