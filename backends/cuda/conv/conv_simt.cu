/* conv_simt.cu -- convolution and its gradient by x on FP32 cores, of f32, f16 and bf16, for what Tensor Cores gain nothing from: groups of
 * few channels, short sums. Any layout, one to three spatial dims, bias, fold and relu fused in two.
 *
 *   y[n, k, p] = sum over channels c of k's group and taps r of x[n, c, p stride + r dilation - pad] w[k, c, r]
 *
 * A block has the filters of a group, up to KB a thread, and a tile of pixels, PX a thread (conv_simt.cuh); windows and filters of a few
 * channels at a time stand in shared memory. Backward data is the same sum over dy with the filter reversed; into few channels with a
 * stride, a thread has a pixel of each class of H and W: four classes of three channels are twelve filters. Of those a sum that is not
 * finite is made again.
 *
 * Refused: sums over more than 4096 terms, which would need a second level. */
#include "conv_simt.cuh"
#include "engines.h"

enum { SHARED = 40 << 10, MOST_JOINED = 4, TWELVE = 12 };       /* channels of joined classes; filters of theirs a thread may have */

/* Filter k of the block: joined, it is a channel of a class. */
template <bool JOINED> struct simt_filter {
  int of, channel, h, w;                  /* of its class's filters; of y; its class */
  int64_t at;                             /* in y, from the pixel of the first class */
  const simt &p;

  __device__ __forceinline__ simt_filter(const simt &p, const simt_block &b, int k) : of(b.k0 + k), h(0), w(0), p(p)
  {
    if (JOINED) h = of / p.joined, of -= h * p.joined, w = h % p.apart[1], h /= p.apart[1];
    channel = b.group * (JOINED ? p.joined : p.filters) + of;
    at = channel * p.y_stride[1] + (JOINED ? h * p.y_stride[2] + w * p.y_stride[3] : 0);
  }
  __device__ __forceinline__ bool exists(int row, int column) const
  {
    return !JOINED || (row + h < p.extent[0] && column + w < p.extent[1]);
  }
};

template <int PX, int KB, bool halves, bool JOINED>
__global__ void __launch_bounds__(SIMT_THREADS, PX * KB > 32 ? 4 : 1) conv_simt(const __grid_constant__ simt p)
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
  const int placed = JOINED ? taps * padded_k : taps;
  int *tap_at = (int *)(windows + p.chunk * p.plane), *offsets = tap_at + placed;         /* of a tap in w; of windows in x */
  for (int e = threadIdx.x; JOINED && e < placed; e += SIMT_THREADS) {                  /* of each filter's tap, if its class sees it */
    uint32_t k, tap = cuda_quotient(e, p.by_k, &k);
    const int of = b.k0 + k, residue = of / p.joined, channel = of - residue * p.joined, h = residue / p.apart[1];
    const cuda_conv_span &rows = p.spans[0][min(h, p.apart[0] - 1)], &columns = p.spans[1][residue - h * p.apart[1]];
    const int r = tap / across.taps - down.before + rows.before, s = tap % across.taps - across.before + columns.before;
    const bool sees = (int)k < b.block_k && (unsigned)r < (unsigned)rows.taps && (unsigned)s < (unsigned)columns.taps;
    tap_at[e] = !sees ? SIMT_NONE : (int)(channel * p.w_stride[0] + (rows.tap + r * rows.tap_step) * p.w_stride[2] +
                                          (columns.tap + s * columns.tap_step) * p.w_stride[3]);
  }
  for (int tap = threadIdx.x; !JOINED && tap < taps; tap += SIMT_THREADS) {
    int r = tap / across.taps, s = tap - r * across.taps;
    tap_at[tap] = (int)((down.tap + r * down.tap_step) * p.w_stride[2] + (across.tap + s * across.tap_step) * p.w_stride[3]);
  }
  b.find_windows(offsets);
  float sum[PX][KB] = {};
  const int planes = p.channels * deep.taps;
  for (int first = 0; first < planes && taps; first += p.chunk) {
    const int here = min(p.chunk, planes - first);
    __syncthreads();
    b.take_windows<halves>(windows, 1, offsets, first, here);
    for (int i = 0; i < here; i++) {
      int plane = first + i, c = plane / deep.taps, d = plane - c * deep.taps;
      const int64_t from = b.group * p.w_group + (JOINED ? 0 : b.k0) * p.w_stride[0] + c * p.w_stride[1] +
                           (deep.tap + d * deep.tap_step) * p.w_stride[4];
      if (i == 0 && first == 0) __syncthreads();            /* tap_at */
      for (int e = threadIdx.x; e < taps * padded_k; e += SIMT_THREADS) {
        uint32_t k, tap = cuda_quotient(e, p.by_k, &k);
        const int64_t at = JOINED ? tap_at[e] : k * p.w_stride[0] + tap_at[tap];
        const bool real = JOINED ? at != SIMT_NONE : (int)k < b.block_k;
        b.take_filter<halves>(filters + i * taps * padded_k + e, 1, from + at, real);
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
  int row[PX], column[PX];
  bool again = false;
#pragma unroll
  for (int i = 0; i < PX; i++) to[i] = mine_k < by_k ? b.place(lane + i * by_pixel, &row[i], &column[i]) : -1;
#pragma unroll
  for (int j = 0; j < KB; j++) {
    const int k = mine_k * KB + j;
    if (k >= b.block_k) break;
    const simt_filter<JOINED> f(p, b, k);
    column_fold fold = fold_of(p.steps, p.factor, f.channel);
    float bias = 0;
    if (p.column >= 0) {
      const cuda_operand &o = p.steps.operand[p.column];
      bias = element_load<float>(o.p, f.channel * o.stride[1], o.dtype);
    }
#pragma unroll
    for (int i = 0; i < PX; i++) {
      if (JOINED) again |= !isfinite(sum[i][j]);
      float v = folded(sum[i][j] + bias, fold);
      if (p.relu) v = v < 0 ? 0 : v;                        /* keeps NaN */
      if (to[i] < 0 || !f.exists(row[i], column[i])) continue;
      if constexpr (halves) element_store(p.y, to[i] + f.at, dtype3(p.out_dtype), v);
      else ((float *)p.y)[to[i] + f.at] = v;
    }
  }
  /* products by zero, of taps that other classes see, were added too. (Gradients have no followers: y is the sum.) */
  if constexpr (JOINED) {
#pragma unroll 1
    for (int e = 0; e < PX * KB && again; e++) {
      const int q = lane + e / KB * by_pixel, k = mine_k * KB + e % KB;
      int row, column;
      const int64_t at = k < b.block_k && mine_k < by_k ? b.place(q, &row, &column) : -1;
      if (at < 0) continue;
      const simt_filter<true> f(p, b, k);
      if (!f.exists(row, column) || isfinite(element_load<float>(p.y, at + f.at, dtype3(p.out_dtype)))) continue;
      element_store(p.y, at + f.at, dtype3(p.out_dtype), simt_sum_again(p, b, p.spans[0][f.h], p.spans[1][f.w], q, f.of));
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

#define KERNELS(halves, joined) (const void *)conv_simt<4, 8, halves, joined>, (const void *)conv_simt<8, 4, halves, joined>
#define JOINED_KERNELS(halves) \
  { KERNELS(halves, true), (const void *)conv_simt<4, TWELVE, halves, true>, (const void *)conv_simt<2, TWELVE, halves, true> }
static const void *const kernels[2][2][4] = {     /* [of 16 bits][joined] */
  { { KERNELS(false, false) }, JOINED_KERNELS(false) }, { { KERNELS(true, false) }, JOINED_KERNELS(true) } };

/* Joins the classes of H and W, if there are some and their taps lie side by side: few filters more. */
static void join(simt *p, const cuda_conv_problem *c)
{
  if (p->filters > MOST_JOINED || p->apart[0] * p->apart[1] == 1 || p->step[0] != 1 || p->step[1] != 1) return;
  for (int d = 0; d < 2; d++) {
    cuda_conv_span *j = &p->spans[d][CUDA_CONV_APART];
    int32_t low = INT32_MAX, high = INT32_MIN;
    for (int i = 0; i < p->apart[d]; i++) {
      const cuda_conv_span *s = &p->spans[d][i];
      if (s->taps) low = (int32_t)qn_min_i64(low, -s->before), high = (int32_t)qn_max_i64(high, s->taps - s->before);
    }
    if (high < low) low = high = 0;
    *j = (cuda_conv_span){ p->spans[d][0].out, -low, high - low, 0, 1 };
    p->extent[d] = (int32_t)c->in[d];
  }
  p->joined = p->filters, p->filters *= p->apart[0] * p->apart[1];
  p->blocks_k = (int32_t)qn_ceil_div(p->filters, SIMT_FILTERS);
  p->block_k = (int32_t)qn_ceil_div(p->filters, p->blocks_k);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  simt p = {};
  cuda_chain chain;
  qn_status status = simt_read(&p, &c, &chain, r, out);
  if (status) return status;
  const bool data = c.mode == CUDA_CONV_DATA;
  join(&p, &c);
  const int64_t channels = p.channels, classes = (int64_t)(p.joined ? 1 : p.apart[0] * p.apart[1]) * p.apart[2];
  p.last = p.vector == 1 && p.x_stride[1] == 1 && channels >= 8 && simt_taps(&p, 2) == 1;
  const bool narrow = p.block_k <= 4, twelve = p.joined && p.block_k % TWELVE == 0;
  const int each = narrow ? 4 : twelve ? TWELVE : 8, padded_k = (int)qn_round_up(p.block_k, each);
  int mine = narrow ? 8 : 4;
  const int64_t places = (int64_t)simt_taps(&p, 0) * simt_taps(&p, 1) * (p.joined ? padded_k : 1);
  p.by_k = cuda_divide_by(padded_k);
  for (;; mine /= 2) {
    if (places * 4 > SHARED || !simt_tile(&p, SIMT_THREADS / (padded_k / each) * mine, 127, SHARED, 64 + places * 4, padded_k * 4))
      return qn_refuse(out, "a tile's windows in shared memory", "w", "fewer taps", "%lld", (long long)(c.size[0] * c.size[1]));
    if (!twelve || mine == 2 || qn_ceil_div(p.planes, p.together) * p.tiles_h * p.tiles_w >= 2 * r->device->units) break;
  }
  const int pixels = SIMT_THREADS / (padded_k / each) * mine;
  const int64_t tiles = qn_ceil_div(p.planes, p.together) * p.tiles_h * p.tiles_w, blocks_k = c.groups * p.blocks_k;
  if (tiles > INT32_MAX || blocks_k > 65535 || classes > 65535)
    return qn_refuse(out, "a grid of blocks", "y", "fewer groups", "%s", "more");
  const int form = narrow ? 1 : !twelve ? 0 : mine == 4 ? 2 : 3;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, kernels[p.dtype != QN_F32][p.joined > 0][form], &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)tiles, k->grid[1] = (uint32_t)blocks_k, k->grid[2] = (uint32_t)classes;
  k->threads = SIMT_THREADS, k->shared = SHARED;
  cuda_conv_kernel_pointer(k, data ? c.y_at : c.x_at, offsetof(simt, x));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(simt, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(simt, steps), offsetof(simt, y));
  const int deep = simt_taps(&p, 2), taps = simt_taps(&p, 0) * simt_taps(&p, 1);
  const double terms = (double)channels * (p.joined ? taps * (double)c.size[2] : (double)(c.size[0] * c.size[1] * c.size[2])) / (double)classes;
  const double products = (double)(tiles * blocks_k * classes) * pixels * padded_k * terms;
  const double bytes = simt_bytes(&p, &c);
  /* a stride's classes copy the windows that they share, each for itself; windows of small images are mostly edges */
  const double rate = classes > 1 ? 0.18 : p.together > 1 ? 0.3 : 0.4;
  const double all = products / (r->device->units * 128 * 1.7 * rate) + bytes / 3000;
  /* a block takes one plane after another; few blocks wait for each one's copy */
  const double in_turn = !p.joined ? (double)channels * deep * (500 + 65.0 * taps + 0.6 * p.plane)
                                   : ceil((double)channels * deep / p.chunk) * (1500 + 0.6 * p.chunk * p.plane) +
                                     (double)channels * deep * taps * (mine == 2 ? 45 : 65);
  /* as measured: words that lie apart are fetched and stored a sector each; a single tap leaves a window's copy unused */
  const bool apart = (p.x_stride[3] != 1 && p.in[1] > 1) || (p.y_stride[3] > 4 && p.spans[1][0].out > 1);
  const double slow = apart ? (p.joined && p.last ? 1.5 : 3) : taps == 1 && classes == 1 ? 2.2 : 1;
  const double widened = p.dtype == QN_F32 ? 1 : p.joined ? 1.2 : 4.2;        /* as measured of first layers of 16 bits */
  out->estimate = 4000 + slow * widened * (all > in_turn ? all : in_turn);
  return QN_OK;
}

#define ROW(op, pattern) { "simt", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, nullptr, pattern, \
                        prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr) };
CUDA_ENGINES(conv_simt) = { row, sizeof row / sizeof *row };
