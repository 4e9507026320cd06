/* conv_grouped.cu -- grouped convolution with few channels a group (conv_grouped.cuh), forward and backward data, by mma.sync: a
 * warp has one group, its 8 NT filters, and 16 QM pixels. Persistent blocks keep the filters in shared memory in fragment order
 * and walk over tiles, double buffered.
 *
 * Backward data is a forward sum over dy with the filter reversed. With a forward stride the pixels of dx fall into residue
 * classes: those of a class see the same taps, and form a stride-1 convolution of their own, stored `apart` from each other. One
 * launch for all classes.
 *
 * In merged groups the filter's zeros meet other groups' channels; a sum that is not finite is therefore made again without them. */
#include "conv_grouped.cuh"
#include "conv_store.cuh"
#include "engines.h"

enum { STAGE = 64 * 2 + 16 };             /* STAGE: bytes of a pixel of y in shared memory, padded against bank conflicts */

struct grouped {
  grouped_shape f;                        /* its out and size: the largest of any class */
  cuda_conv_span spans[2][CUDA_CONV_APART];
  int32_t  apart[2], extent[2];            /* pixels of y: between those of a class; in total */
  plane    x;
  const uint16_t *w;
  void    *y;
  uint32_t out_dtype;
  int32_t  under, written, turned;        /* channels of a group of the read and written tensor; the filter is transposed */
  /* plain: the epilogue is only column (bias), factor (fold, -1: none) and relu, and y has x's dtype */
  int32_t  column, factor, relu, plain;
  int32_t  buffer;                        /* bytes between tiles of x */
  int32_t  words;                         /* two elements of a chunk of a filter are a word */
  cuda_steps steps;
};

/* Loads the slab's filters in fragment order: [GROUPS][steps][NT][32 lanes][2 chunks], two elements of a chunk each. A thread
 * steps from one pair of chunks to the next, and has BATCH of them in flight: a block computes nothing before its filters are there. */
template <int GROUPS, int NT, bool merged>
static __device__ __forceinline__ void load_filters(const grouped &p, uint32_t *filters, int steps, int first, const cuda_conv_span &down,
                                                    const cuda_conv_span &across)
{
  enum { MINE = GROUPS * NT * 64 / GROUPED_THREADS, BATCH = NT == 1 ? 4 : 6 };         /* held to the registers */
  static_assert(MINE * GROUPED_THREADS == GROUPS * NT * 64, "a thread's words are of the same chunks");
  const grouped_shape &f = p.f;
  const int64_t up = p.turned ? f.w_stride[0] : f.w_stride[1];            /* between elements of a chunk */
  const int from = threadIdx.x / 2 % 4 * 2, each = merged ? p.under / f.merged : 0;
  const uint16_t *w[MINE];
  bool there[MINE];
  int low[MINE];                          /* first element of the own group */
#pragma unroll
  for (int m = 0; m < MINE; m++) {
    const int i = m * GROUPED_THREADS + threadIdx.x, j = i / 64 % NT, at = i / (64 * NT), to = j * 8 + i / 8 % 8,
              own = merged ? to / (p.written / f.merged) : 0;
    there[m] = first + at < f.groups && to < p.written;
    low[m] = own * each;
    w[m] = p.w + (int64_t)(first + at) * f.filters * f.w_stride[0] + to * (p.turned ? f.w_stride[1] : f.w_stride[0]) + from * up -
           (merged ? (int64_t)own * (f.channels / f.merged) * f.w_stride[1] : 0);
  }
  int r = 0, s = 0, chunk = threadIdx.x % 2;
  for (; chunk >= f.chunks && r < down.taps; chunk -= f.chunks)
    if (++s == across.taps) s = 0, r++;
  for (int begin = 0; begin < steps; begin += BATCH) {
    uint32_t word[BATCH][MINE];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const bool tap = begin + b < steps && r < down.taps && across.taps;
      const int64_t at = (down.tap + r * down.tap_step) * f.w_stride[2] + (across.tap + s * across.tap_step) * f.w_stride[3] +
                         chunk * 8 * up;
#pragma unroll
      for (int m = 0; m < MINE; m++) {
        const uint16_t *e = w[m] + at;
        word[b][m] = 0;
        if (!tap || !there[m]) continue;
        if constexpr (merged) {
          const uint32_t c = chunk * 8 + from - low[m];
          word[b][m] = (c < (uint32_t)each ? e[0] : 0u) | (c + 1 < (uint32_t)each ? (uint32_t)e[up] << 16 : 0u);
        } else word[b][m] = p.words ? *(const uint32_t *)e : e[0] | (uint32_t)e[up] << 16;
      }
      for (chunk += 2; chunk >= f.chunks && r < down.taps; chunk -= f.chunks)
        if (++s == across.taps) s = 0, r++;
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++)
#pragma unroll
      for (int m = 0; m < MINE; m++) {
        const int i = m * GROUPED_THREADS + threadIdx.x;
        if (begin + b < steps) filters[(i / (64 * NT) * steps + begin + b) * (NT * 64) + i % (64 * NT)] = word[b][m];
      }
  }
}

/* The sum for a channel of y at position (h, w) of its class, over its own group alone. */
template <int dtype>
static __device__ float sum_again(const grouped &p, const cuda_conv_span &down, const cuda_conv_span &across, int channel,
                                               int n, int h, int w)
{
  const grouped_shape &f = p.f;
  int written = p.written / f.merged, under = p.under / f.merged, own = channel / written;
  int64_t up = p.turned ? f.w_stride[0] : f.w_stride[1];
  const uint16_t *filter = p.turned ? p.w + (int64_t)own * under * f.w_stride[0] + (channel - own * written) * f.w_stride[1]
                                    : p.w + channel * f.w_stride[0];
  float sum = 0;
  for (int r = 0; r < down.taps; r++)
    for (int s = 0; s < across.taps; s++) {
      int row = h * f.stride[0] - down.before + r * f.dilation[0], column = w * f.stride[1] - across.before + s * f.dilation[1];
      if ((uint32_t)row >= (uint32_t)p.x.h || (uint32_t)column >= (uint32_t)p.x.w) continue;
      int64_t from = (((int64_t)n * p.x.h + row) * p.x.w + column) * p.x.channels + own * under;
      int64_t tap = (down.tap + r * down.tap_step) * f.w_stride[2] + (across.tap + s * across.tap_step) * f.w_stride[3];
      for (int c = 0; c < under; c++)
        sum = fmaf(element_load<float>(p.x.p, from + c, dtype), element_load<float>(filter, tap + c * up, dtype), sum);
    }
  return sum;
}

template <int dtype>
static __device__ __noinline__ void store_again(const grouped &p, const cuda_conv_span &down, const cuda_conv_span &across, int channel,
                                                int pixel, int n, int h, int w)
{
  float lo = sum_again<dtype>(p, down, across, channel, n, h, w), hi = sum_again<dtype>(p, down, across, channel + 1, n, h, w);
  store_pair(p.steps, make_float2(lo, hi), p.y, p.out_dtype, pixel, channel, p.f.groups * p.written);
}

/* Eight channels a group, 3x3, stride 1, tiles eight pixels wide: a tile row is a matrix for each of the three taps along it.
 * Sixteen pixels are two rows, and each matrix is loaded once for all rows of the window. taps: this group's. */
template <class mma, int QM>
static __device__ __forceinline__ void sum_columns(const grouped_shape &f, float (&sum)[QM][1][4], uint32_t x, const uint32_t *taps)
{
  int lane = threadIdx.x % 32, last = f.x_h - 1;
  uint32_t w[9], now[4], below[4], right[2], right_below[4];            /* taps 0 and 1 of two rows; tap 2 of two and of four rows */
#pragma unroll
  for (int i = 0; i < 9; i++) w[i] = taps[(i / 2 * 32 + lane) * 2 + i % 2];
  x += lane % 8 * f.pixel;
  auto two = [&](uint32_t(&to)[4], int row) { load_matrices<false>(to, x + min(row + lane / 8 % 2, last) * f.line + lane / 16 * f.pixel); };
  auto four = [&](uint32_t (&to)[4], int row) { load_matrices<false>(to, x + min(row + lane / 8, last) * f.line + 2 * f.pixel); };
  two(now, 0);
  four(right_below, 0);
  right[0] = right_below[0], right[1] = right_below[1];
#pragma unroll
  for (int m = 0; m < QM; m++) {
    if (2 * m >= f.tile_h) break;
    two(below, 2 * m + 2);
    if (m % 2 == 0) four(right_below, 2 * m + 2);
    uint32_t next[2] = { right_below[m % 2 * 2], right_below[m % 2 * 2 + 1] };
    mma::product(sum[m][0], now, w[0], w[1]);
    mma::product(sum[m][0], { now[1], below[0], now[3], below[2] }, w[3], w[4]);
    mma::product(sum[m][0], below, w[6], w[7]);
    mma::product(sum[m][0], { right[0], right[1], 0, 0 }, w[2], 0);
    mma::product(sum[m][0], { right[1], next[0], 0, 0 }, w[5], 0);
    mma::product(sum[m][0], { next[0], next[1], 0, 0 }, w[8], 0);
#pragma unroll
    for (int i = 0; i < 4; i++) now[i] = below[i];
    right[0] = next[0], right[1] = next[1];
  }
}

template <class mma, int dtype, int NT, bool columns, bool merged>
__global__ void __launch_bounds__(GROUPED_THREADS, NT == 1 ? 3 : 2) conv_grouped(const __grid_constant__ grouped p)
{
  enum { GROUPS = 8 / NT, QM = 8 / NT };  /* groups of a block; groups of 16 pixels of a warp */
  static_assert(sizeof(grouped) <= CUDA_CONV_PARAMETERS, "room for them in the state");
  const grouped_shape &f = p.f;
  int residue_h = blockIdx.z / p.apart[1], residue_w = blockIdx.z - residue_h * p.apart[1];
  const cuda_conv_span &down = p.spans[0][residue_h], &across = p.spans[1][residue_w];
  extern __shared__ uint4 shared[];
  int all = f.chunks * down.taps * across.taps, steps = (all + 1) / 2, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int group = warp % GROUPS, m0 = warp / GROUPS * QM, first = blockIdx.y * GROUPS;
  uint2 *filters = (uint2 *)shared;       /* [GROUPS][steps][NT][32 lanes] */
  /* byte offsets of chunks (-1: none), of pixels */
  int *runs = (int *)(filters + GROUPS * steps * NT * 32), *pixels = runs + (steps + 1) / 2 * 4;
  int *places = pixels + GROUPED_PIXELS;
  float2 *bias = (float2 *)(places + GROUPED_PIXELS);      /* of the slab's 64 channels */
  uint32_t nothing = shared_address(bias + 32), x = nothing + 16;
  tile_copy<2> copy(f.x_w, f.load);
  tile_walk walk(blockIdx.x, gridDim.x, f.tiles_h, f.tiles_w), ahead = walk;
  auto load = [&](const tile_walk &t, int at) {
    copy.load(x + at * p.buffer, p.x, t.n, t.i * f.tile_h * f.stride[0] - down.before, t.j * f.tile_w * f.stride[1] - across.before,
              first * p.under, f.x_h, f.x_w, f.load, f.side, f.pixel, f.line);
  };
  if (f.buffers == 2) load(walk, 0);
  copy_async_commit();
  load_filters<GROUPS, NT, merged>(p, (uint32_t *)filters, steps, first, down, across);
  for (int i = threadIdx.x; i < steps * 2; i += GROUPED_THREADS) runs[i] = i < all ? grouped_chunk(f, across.taps, i) : -1;
  if (threadIdx.x < GROUPED_PIXELS) {     /* pixels beyond the tile repeat its first */
    int place = grouped_place(f, threadIdx.x), h = place >> 16, w = place & 0xffff;
    places[threadIdx.x] = place;
    pixels[threadIdx.x] = place >= 0 ? h * f.stride[0] * f.line + w * f.stride[1] * f.pixel : 0;
  }
  if (threadIdx.x < 2) bias[32 + threadIdx.x] = make_float2(0, 0);
  if (threadIdx.x < 32) {
    int j = threadIdx.x * 2, c = j % (NT * 8), at_group = first + j / (NT * 8);
    bias[threadIdx.x] = at_group < f.groups && c < p.written ? bias_pair(p.steps, p.column, at_group * p.written + c) : make_float2(0, 0);
  }

  int at = 0;
  for (int tile = blockIdx.x; tile < f.tiles; tile += gridDim.x) {
    ahead.next(f.tiles_h, f.tiles_w);
    if (f.buffers == 1) load(walk, 0);
    else if (tile + (int)gridDim.x < f.tiles) load(ahead, at ^ 1);
    copy_async_commit();
    if (f.buffers == 1) copy_async_wait<0>();
    else copy_async_wait<1>();
    __syncthreads();
    uint32_t here = x + at * p.buffer;
    float sum[QM][NT][4] = {};
    if constexpr (columns) {
      sum_columns<mma>(f, sum, here + group * p.under * 2, (const uint32_t *)(filters + group * steps * 32));
    } else {
      uint32_t from[QM];
#pragma unroll
      for (int m = 0; m < QM; m++) from[m] = here + pixels[(m0 + m) * 16 + lane % 16] + group * p.under * 2;
      const uint2 *mine = filters + group * steps * NT * 32 + lane;
      int run = runs[lane / 16];
      for (int step = 0; step < steps; step++, mine += NT * 32) {
        uint32_t a[QM][4];
#pragma unroll
        for (int m = 0; m < QM; m++) load_matrices<false>(a[m], run < 0 ? nothing : from[m] + run);
        run = runs[step * 2 + 2 + lane / 16];                 /* for the next step; behind the last is unused data */
#pragma unroll
        for (int j = 0; j < NT; j++) {
          uint2 b = mine[j * 32];
#pragma unroll
          for (int m = 0; m < QM; m++) mma::product(sum[m][j], a[m], b.x, b.y);
        }
      }
    }

    int y0 = walk.i * f.tile_h, x0 = walk.j * f.tile_w,
        corner = (walk.n * p.extent[0] + y0 * p.apart[0] + residue_h) * p.extent[1] + x0 * p.apart[1] + residue_w;
    int high = down.out - y0, wide = across.out - x0;
    auto pixel_of = [&](int place) {      /* number of the pixel in y; -1: none */
      int h = place >> 16, w = place & 0xffff;
      return place >= 0 && h < high && w < wide ? corner + h * p.apart[0] * p.extent[1] + w * p.apart[1] : -1;
    };
    uint32_t odd = 0;                     /* sums that are not finite */
    if (merged) {
#pragma unroll
      for (int i = 0; i < QM * NT * 4; i++) odd |= (uint32_t)!isfinite(sum[i / (NT * 4)][i / 4 % NT][i % 4]) << i;
    }
    if (p.plain) {
      __syncthreads();                    /* the stage reuses the memory of the tile just finished */
#pragma unroll
      for (int j = 0; j < NT; j++) {
        int c = j * 8 + lane % 4 * 2, channel = (first + group) * p.written + c;
        bool there = first + group < f.groups && c < p.written;
        float2 more = bias[(group * NT + j) * 4 + lane % 4];
        column_fold of_lo = fold_of(p.steps, there ? p.factor : -1, channel), of_hi = fold_of(p.steps, there ? p.factor : -1, channel + 1);
#pragma unroll
        for (int m = 0; m < QM; m++)
#pragma unroll
          for (int half = 0; half < 2; half++) {
            float lo = folded(sum[m][j][half * 2] + more.x, of_lo), hi = folded(sum[m][j][half * 2 + 1] + more.y, of_hi);
            if (p.relu) lo = fn_max(lo, 0.f), hi = fn_max(hi, 0.f);
            shared_store(here + ((m0 + m) * 16 + half * 8 + lane / 4) * STAGE + (group * NT + j) * 16 + lane % 4 * 4,
                         dtype == QN_BF16 ? pack_bf16(lo, hi) : pack_f16(lo, hi));
          }
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < GROUPED_PIXELS * 8 / GROUPED_THREADS; k++) {
        int i = k * GROUPED_THREADS + threadIdx.x, pixel = pixel_of(places[i / 8]), at_group = first + i % 8 / NT, c = i % NT * 8;
        if (pixel < 0 || at_group >= f.groups || c >= p.written) continue;
        float v[4];
        shared_load(v, here + i / 8 * STAGE + i % 8 * 16);
        *(float4 *)((uint16_t *)p.y + (int64_t)pixel * (f.groups * p.written) + at_group * p.written + c) =
          make_float4(v[0], v[1], v[2], v[3]);
      }
    } else {
#pragma unroll
      for (int m = 0; m < QM; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          int pixel = pixel_of(places[(m0 + m) * 16 + half * 8 + lane / 4]);
#pragma unroll
          for (int j = 0; j < NT; j++) {
            int c = j * 8 + lane % 4 * 2;
            if (pixel < 0 || first + group >= f.groups || c >= p.written) continue;
            store_pair(p.steps, make_float2(sum[m][j][half * 2], sum[m][j][half * 2 + 1]), p.y, p.out_dtype, pixel,
                       (first + group) * p.written + c, f.groups * p.written);
          }
        }
    }
    __syncthreads();
    while (merged && odd) {               /* rare: behind the others' stores */
      int i = (__ffs(odd) - 1) & ~1, m = i / (NT * 4), j = i / 4 % NT, place = places[(m0 + m) * 16 + i / 2 % 2 * 8 + lane / 4],
          pixel = pixel_of(place), c = j * 8 + lane % 4 * 2;
      odd &= ~(3u << i);
      if (pixel < 0 || first + group >= f.groups || c >= p.written) continue;
      store_again<dtype>(p, down, across, (first + group) * p.written + c, pixel, walk.n, y0 + (place >> 16), x0 + (place & 0xffff));
    }
    at ^= f.buffers - 1;
    walk = ahead;
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

#define KERNEL(mma, dtype, NT, columns, merged) (const void *)conv_grouped<mma, dtype, NT, columns, merged>
#define KERNELS(mma, dtype, merged) \
  { KERNEL(mma, dtype, 1, false, merged), KERNEL(mma, dtype, 2, false, merged), KERNEL(mma, dtype, 4, false, merged), \
    KERNEL(mma, dtype, 8, false, merged), KERNEL(mma, dtype, 1, true, merged) }
static const void *const functions[2][2][5] = { { KERNELS(mma_bf16, QN_BF16, false), KERNELS(mma_bf16, QN_BF16, true) },
                                                { KERNELS(mma_f16, QN_F16, false), KERNELS(mma_f16, QN_F16, true) } };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  grouped p = {};
  grouped_shape *f = &p.f;
  qn_status status = grouped_shape_read(f, &c, r, out);
  if (status) return status;
  cuda_chain chain;
  if ((status = cuda_conv_problem_chain(&c, r, &chain, out))) return status;
  bool data = c.mode == CUDA_CONV_DATA;
  if (data && (c.stride[0] > CUDA_CONV_APART || c.stride[1] > CUDA_CONV_APART))
    return qn_refuse(out, "backward data of strides to 4", "dx", "1 to 4", "%lld",
                     (long long)(c.stride[0] > CUDA_CONV_APART ? c.stride[0] : c.stride[1]));
  const qn_value *in = data ? c.y : c.x, *to = &r->value[chain.out];
  p.under = data ? f->filters : f->channels;
  p.written = data ? f->channels : f->filters;
  p.turned = data;
  for (int d = 0; d < 2; d++) {
    p.apart[d] = data ? f->stride[d] : 1;
    p.extent[d] = (int32_t)(data ? c.in[d] : c.out[d]);
    for (int i = 0; i < p.apart[d]; i++) p.spans[d][i] = cuda_conv_span_of(&c, d, i);
    if (!data) continue;
    int every = cuda_conv_every(&c, d);
    f->size[d] = (f->size[d] + every - 1) / every;
    f->dilation[d] = f->dilation[d] * every / f->stride[d];
    f->stride[d] = 1;
    f->out[d] = p.spans[d][0].out;
  }
  p.x.h = (int32_t)(data ? c.out[0] : c.in[0]), p.x.w = (int32_t)(data ? c.out[1] : c.in[1]), p.x.channels = (int32_t)in->dim[1];
  p.out_dtype = to->dtype;
  p.steps = chain.steps;
  p.plain = cuda_chain_column_relu(&chain, &p.column, &p.factor, &p.relu) && to->dtype == in->dtype && to->align >= 16;
  if (!p.plain) p.column = p.factor = -1;
  p.words = f->w_stride[p.turned ? 0 : 1] == 1 && c.w->align >= 4;
  for (int d = 0; d < 4; d++) p.words &= d == (p.turned ? 0 : 1) || f->w_stride[d] % 2 == 0;
  int64_t classes = p.apart[0] * p.apart[1];
  int kind = grouped_in_columns(f) && classes == 1 ? 4
           : f->beside == 8                        ? 0
           : f->beside == 4                        ? 1
           : f->beside == 2                        ? 2
                                                   : 3,
      steps = (f->chunks * f->size[0] * f->size[1] + 1) / 2;
  int64_t fixed = (int64_t)steps * 64 * 32 + (steps + 1) / 2 * 16 + GROUPED_PIXELS * 8 + 256 + 16, stage = GROUPED_PIXELS * STAGE;
  if (!grouped_shape_fit(f, r->device, to->dim[0], fixed, 0, stage, kind == 4))
    return qn_refuse(out, "filters and a tile's pixels in shared memory", "w", "fewer taps or channels", "%d",
                     f->size[0] * f->size[1] * p.under);
  p.buffer = (int32_t)qn_max_i64((int64_t)f->x_h * f->line, stage);
  int64_t slabs = qn_ceil_div(f->groups, f->beside), shared = fixed + p.buffer * f->buffers;
  if (slabs > 65535) return qn_refuse(out, "a grid of blocks", "x", "fewer groups", "%d", f->groups);

  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, functions[in->dtype == QN_F16][f->merged > 1][kind], &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  int64_t resident = r->device->units * grouped_resident(shared, kind == 0 || kind == 4 ? 3 : 2);
  k->grid[0] = (uint32_t)cuda_conv_shares(f->tiles, resident / (slabs * classes)), k->grid[1] = (uint32_t)slabs,
  k->grid[2] = (uint32_t)classes;
  k->threads = GROUPED_THREADS, k->shared = (uint32_t)shared;
  cuda_conv_kernel_pointer(k, data ? c.y_at : c.x_at, offsetof(grouped, x.p));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(grouped, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(grouped, steps), offsetof(grouped, y));
  double bytes = (double)qn_elements(to) * (double)qn_kit_bytes(to->dtype) + (double)qn_elements(in) * 2;
  double product = (double)f->tiles * GROUPED_PIXELS * (double)(slabs * classes) * 64 * steps * 16 / (r->device->units * 1024 * 0.5);
  /* transposed filters of several chunks are loaded element by element before anything is computed: measured with 16 channels a group */
  out->estimate = 4000 + product + bytes / 3500 + (p.turned && f->chunks > 1 ? 750.0 * steps : 0);
  out->numerics.accumulator = QN_ACC_F32_TC;
  return QN_OK;
}

#define ROW(op, pattern) { "grouped", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES, \
                        nullptr, pattern, prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr) };
CUDA_ENGINES(conv_grouped) = { row, sizeof row / sizeof *row };
