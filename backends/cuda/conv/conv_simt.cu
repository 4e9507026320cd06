/* conv_simt.cu -- f32 convolution and its gradient by x on FP32 cores, for what Tensor Cores gain nothing from: groups of few channels,
 * short sums. Any layout, one to three spatial dims, bias, fold and relu fused in two.
 *
 *   y[n, k, p] = sum over channels c of k's group and taps r of x[n, c, p stride + r dilation - pad] w[k, c, r]
 *
 * A block has the filters of a group, up to KB a thread, and a tile of pixels, PX a thread (conv_simt.cuh); windows and filters of a few
 * channels at a time stand in shared memory. Backward data is the same sum over dy with the filter reversed.
 *
 * Refused: sums over more than 4096 terms, which would need a second level. */
#include "conv_simt.cuh"
#include "engines.h"

enum { SHARED = 40 << 10 };

template <int PX, int KB> __global__ void __launch_bounds__(SIMT_THREADS) conv_simt(const __grid_constant__ simt p)
{
  extern __shared__ float4 shared[];
  const simt_block b(p);
  if (!b.exists) return;
  const cuda_conv_span &down = b.down(), &across = b.across(), &deep = b.deep();
  const int padded_k = (p.block_k + KB - 1) / KB * KB, taps = down.taps * across.taps;
  float *filters = (float *)shared, *windows = filters + p.chunk * taps * padded_k;     /* [chunk][tap][k]; [chunk][image][row][column] */

  /* this thread's pixels and filters */
  const int by_k = padded_k / KB, by_pixel = SIMT_THREADS / by_k, mine_k = threadIdx.x / by_pixel, lane = threadIdx.x % by_pixel;
  int base[PX];                           /* of a pixel in the windows */
#pragma unroll
  for (int i = 0; i < PX; i++) {
    uint32_t at, w, q = lane + i * by_pixel, image = cuda_quotient(q, p.by_tile, &at), h = cuda_quotient(at, p.by_row, &w);
    bool there = (int)image < p.together && mine_k < by_k;
    base[i] = there ? (image * p.x_h + h * p.pace[0]) * p.pitch + w * p.pace[1] + b.lead : 0;
  }
  int *tap_at = (int *)(windows + p.chunk * p.plane), *offsets = tap_at + taps;           /* of a tap in w; of windows in x */
  for (int tap = threadIdx.x; tap < taps; tap += SIMT_THREADS) {
    int r = tap / across.taps, s = tap - r * across.taps;
    tap_at[tap] = (int)((down.tap + r * down.tap_step) * p.w_stride[2] + (across.tap + s * across.tap_step) * p.w_stride[3]);
  }
  b.find_windows(offsets);
  float sum[PX][KB] = {};
  const int planes = p.channels * deep.taps;
  for (int first = 0; first < planes && taps; first += p.chunk) {
    const int here = min(p.chunk, planes - first);
    __syncthreads();
    b.copy_windows(shared_address(windows), offsets, first, here);
    for (int i = 0; i < here; i++) {
      int plane = first + i, c = plane / deep.taps, d = plane - c * deep.taps;
      const float *from = p.w + b.group * p.w_group + b.k0 * p.w_stride[0] + c * p.w_stride[1] +
                          (deep.tap + d * deep.tap_step) * p.w_stride[4];
      uint32_t to = shared_address(filters + i * taps * padded_k);
      if (i == 0 && first == 0) __syncthreads();            /* tap_at */
      for (int e = threadIdx.x; e < taps * padded_k; e += SIMT_THREADS) {
        uint32_t k, tap = cuda_quotient(e, p.by_k, &k);
        bool real = (int)k < b.block_k;
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
  for (int i = 0; i < PX; i++) to[i] = mine_k < by_k ? b.place(lane + i * by_pixel) : -1;
#pragma unroll
  for (int j = 0; j < KB; j++) {
    const int k = mine_k * KB + j, channel = b.group * p.filters + b.k0 + k;
    if (k >= b.block_k) break;
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

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  simt p = {};
  cuda_chain chain;
  qn_status status = simt_read(&p, &c, &chain, r, out);
  if (status) return status;
  const int64_t channels = p.channels, classes = (int64_t)p.apart[0] * p.apart[1] * p.apart[2];
  const bool data = c.mode == CUDA_CONV_DATA;
  const bool narrow = p.block_k <= 4;
  const int each = narrow ? 4 : 8, mine = narrow ? 8 : 4, padded_k = (int)qn_round_up(p.block_k, each);
  const int pixels = SIMT_THREADS / (padded_k / each) * mine;
  p.by_k = cuda_divide_by(padded_k);
  if (!simt_tile(&p, pixels, 127, SHARED, 64 + (int64_t)simt_taps(&p, 0) * simt_taps(&p, 1) * 4, padded_k * 4))
    return qn_refuse(out, "a tile's windows in shared memory", "w", "fewer taps", "%lld", (long long)(c.size[0] * c.size[1]));
  const int64_t tiles = qn_ceil_div(p.planes, p.together) * p.tiles_h * p.tiles_w, blocks_k = c.groups * p.blocks_k;
  if (tiles > INT32_MAX || blocks_k > 65535 || classes > 65535)
    return qn_refuse(out, "a grid of blocks", "y", "fewer groups", "%s", "more");
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, narrow ? (const void *)conv_simt<8, 4> : (const void *)conv_simt<4, 8>, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)tiles, k->grid[1] = (uint32_t)blocks_k, k->grid[2] = (uint32_t)classes;
  k->threads = SIMT_THREADS, k->shared = SHARED;
  cuda_conv_kernel_pointer(k, data ? c.y_at : c.x_at, offsetof(simt, x));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(simt, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(simt, steps), offsetof(simt, y));
  double terms = (double)(channels * c.size[0] * c.size[1] * c.size[2]) / (double)classes;
  double products = (double)(tiles * blocks_k * classes) * pixels * padded_k * terms;
  double bytes = 4 * ((double)qn_elements(c.x) + (double)qn_elements(c.y));
  /* a stride's classes copy the windows that they share, each for itself; windows of small images are mostly edges */
  const double rate = classes > 1 ? 0.18 : p.together > 1 ? 0.3 : 0.4;
  const double all = products / (r->device->units * 128 * 1.7 * rate) + bytes / 3000;
  /* a block takes one plane after another; few blocks wait for each one's copy */
  const int deep = simt_taps(&p, 2), taps = simt_taps(&p, 0) * simt_taps(&p, 1);
  const double in_turn = (double)channels * deep * (500 + 65.0 * taps + 0.6 * p.plane);
  /* as measured: words that lie apart are fetched and stored a sector each; a single tap leaves a window's copy unused */
  const bool apart = (p.x_stride[3] != 1 && p.in[1] > 1) || (p.y_stride[3] > 4 && p.spans[1][0].out > 1);
  const double slow = apart ? 3 : taps == 1 && classes == 1 ? 2.2 : 1;
  out->estimate = 4000 + slow * (all > in_turn ? all : in_turn);
  return QN_OK;
}

#define ROW(op, pattern) { "simt", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, nullptr, pattern, \
                        prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr) };
CUDA_ENGINES(conv_simt) = { row, sizeof row / sizeof *row };
