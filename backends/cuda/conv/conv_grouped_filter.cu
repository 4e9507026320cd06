/* conv_grouped_filter.cu -- grouped convolution with few channels a group (conv_grouped.cuh), backward filter, by mma.sync.
 *
 *   dw[k, r, s, c] = sum over images and outputs (p, q) of dy[n, k, p, q] x[n, c, p stride + r dilation - pad, ...]
 *
 * A product for each group: chunks of its windows (two make sixteen rows) by its filters, summed over a tile's outputs, sixteen
 * at a time. A warp has one group, MS pairs of chunks and 8 NT filters in registers; each block leaves a partial sum in
 * workspace; these are added in order. */
#include "conv_grouped.cuh"
#include "engines.h"

enum { MS = 5, WARPS = GROUPED_THREADS / 32 };

struct grouped_filter {
  grouped_shape f;
  plane    x, dy;
  float   *parts;                         /* [part][filter][R][S][channel of a group] */
  int32_t  dy_pixel, dy_load, dy_side;    /* for dy, like f.pixel, f.load and f.side */
  int32_t  all;                           /* chunks of a window */
  int32_t  jobs;                          /* of a group: pairs of chunks, MS at a time */
  int32_t  buffer;                        /* bytes between pairs of tiles */
};

/* Two transposed 8 x 8 matrices; lanes 0-7 and 8-15 give their row addresses. */
static __device__ __forceinline__ void load_two_turned(uint32_t &r0, uint32_t &r1, uint32_t at)
{
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(at) : "memory");
}

/* Eight channels a group, 3x3, stride 1, tiles eight pixels wide: sixteen outputs are two rows, and the matrix of a pixel row at
 * one of the three taps along it is loaded once for all rows of the window. Pairs of chunks are taps 0 and 1 of each row, tap 2
 * of the first two rows, and of the last. */
template <class mma>
static __device__ __forceinline__ void sum_columns(const grouped_shape &f, float (&sum)[MS][1][4], uint32_t x, uint32_t dy, int dy_pixel,
                                                   uint32_t nothing)
{
  int lane = threadIdx.x % 32, last = f.x_h - 1, outputs = f.tile_h * 8;
  uint32_t now[4], below[4], right[4];    /* taps 0 and 1 of two rows, twice; tap 2 of four */
  x += lane % 8 * f.pixel;
  auto two = [&](uint32_t (&to)[4], int row) { load_matrices<true>(to, x + min(row + lane / 16, last) * f.line + lane / 8 % 2 * f.pixel); };
  two(now, 0);
#pragma unroll 2
  for (int row = 0; row < f.tile_h; row += 2) {
    uint32_t b0, b1;
    int output = row * 8 + lane % 16;
    load_two_turned(b0, b1, output < outputs ? dy + output * dy_pixel : nothing);
    two(below, row + 2);
    load_matrices<true>(right, x + min(row + lane / 8, last) * f.line + 2 * f.pixel);
    mma::product(sum[0][0], now, b0, b1);
    mma::product(sum[1][0], { now[2], now[3], below[0], below[1] }, b0, b1);
    mma::product(sum[2][0], below, b0, b1);
    mma::product(sum[3][0], { right[0], right[1], right[1], right[2] }, b0, b1);
    mma::product(sum[4][0], { right[2], 0, right[3], 0 }, b0, b1);
#pragma unroll
    for (int i = 0; i < 4; i++) now[i] = below[i];
  }
}
/* The chunk of the window that half h of pair i is; 9: none. */
static __device__ __forceinline__ int chunk_in_columns(int i, int h) { return i < 3 ? i * 3 + h : i == 3 ? h * 3 + 2 : h ? 9 : 8; }

template <class mma, int dtype, int NT, bool columns>
__global__ void __launch_bounds__(GROUPED_THREADS, NT < 4 ? 2 : 1) conv_grouped_filter(const __grid_constant__ grouped_filter p)
{
  enum { GROUPS = 8 / NT };
  const grouped_shape &f = p.f;
  extern __shared__ uint4 shared[];
  int lane = threadIdx.x % 32, first = blockIdx.y * GROUPS, job = blockIdx.z * WARPS + threadIdx.x / 32, group = job / p.jobs,
      step0 = (job - group * p.jobs) * MS;
  bool works = group < GROUPS && first + group < f.groups;
  int *pixels = (int *)shared, *places = pixels + GROUPED_PIXELS;        /* of a tile: byte offsets from x; positions */
  uint32_t nothing = shared_address(places + GROUPED_PIXELS), tiles = nothing + 16;
  tile_copy<2> copy_x(f.x_w, f.load), copy_dy(f.tile_w, p.dy_load);
  tile_walk walk(blockIdx.x, gridDim.x, f.tiles_h, f.tiles_w), ahead = walk;
  auto load = [&](const tile_walk &t, int at) {
    uint32_t x = tiles + at * p.buffer;
    int y0 = t.i * f.tile_h, x0 = t.j * f.tile_w;
    copy_x.load(x, p.x, t.n, y0 * f.stride[0] - f.before[0], x0 * f.stride[1] - f.before[1], first * f.channels, f.x_h, f.x_w, f.load,
                f.side, f.pixel, f.line);
    copy_dy.load(x + f.x_h * f.line, p.dy, t.n, y0, x0, first * f.filters, f.tile_h, f.tile_w, p.dy_load, p.dy_side, p.dy_pixel,
                 f.tile_w * p.dy_pixel);
  };
  if (f.buffers == 2) load(walk, 0);
  copy_async_commit();
  if (threadIdx.x < GROUPED_PIXELS) {
    int place = grouped_place(f, threadIdx.x);
    places[threadIdx.x] = place;
    pixels[threadIdx.x] = (place >> 16) * f.stride[0] * f.line + (place & 0xffff) * f.stride[1] * f.pixel;
  }
  if (threadIdx.x < 4) places[GROUPED_PIXELS + threadIdx.x] = 0;
  int run[MS];                            /* offset of this lane's half of each pair of chunks */
#pragma unroll
  for (int i = 0; i < MS; i++)
    run[i] = grouped_chunk(f, f.size[1], min((step0 + i) * 2 + lane / 8 % 2, p.all - 1)) + group * f.channels * 2;
  float sum[MS][NT][4] = {};
  int at = 0, last = f.tile_h * f.tile_w;
  for (int tile = blockIdx.x; tile < f.tiles; tile += gridDim.x) {
    ahead.next(f.tiles_h, f.tiles_w);
    if (f.buffers == 1) load(walk, 0);
    else if (tile + (int)gridDim.x < f.tiles) load(ahead, at ^ 1);
    copy_async_commit();
    if (f.buffers == 1) copy_async_wait<0>();
    else copy_async_wait<1>();
    __syncthreads();
    int high = f.out[0] - walk.i * f.tile_h, wide = f.out[1] - walk.j * f.tile_w;
    uint32_t x = tiles + at * p.buffer, dy = x + f.x_h * f.line + group * f.filters * 2;
    if constexpr (columns) {
      if (works) sum_columns<mma>(f, sum, x + group * 16, dy, p.dy_pixel, nothing);
    } else {
      for (int px = 0; px < last && works; px += 16) {
        /* missing outputs: dy must read as 0, and their x may be anything, so it is masked */
        int mine = px + lane % 8 + lane / 16 * 8, other = px + lane % 16, place = places[mine];
        bool there = place >= 0 && place >> 16 < high && (place & 0xffff) < wide;
        uint32_t from = x + pixels[mine], beside = dy + other * p.dy_pixel, b[NT][2];
#pragma unroll
        for (int j = 0; j < NT; j++) load_two_turned(b[j][0], b[j][1], other < last && j * 8 < f.filters ? beside + j * 16 : nothing);
#pragma unroll
        for (int i = 0; i < MS; i++) {
          uint32_t a[4];
          load_matrices<true>(a, there ? from + run[i] : nothing);
#pragma unroll
          for (int j = 0; j < NT; j++) mma::product(sum[i][j], a, b[j][0], b[j][1]);
        }
      }
    }
    __syncthreads();
    at ^= f.buffers - 1;
    walk = ahead;
  }
  if (!works) return;
  int channels = f.channels / f.merged, filters = f.filters / f.merged;         /* of a group of the convolution */
  int64_t window = (int64_t)f.size[0] * f.size[1] * channels;
  float *part = p.parts + ((int64_t)blockIdx.x * f.groups + first + group) * f.filters * window;
#pragma unroll
  for (int i = 0; i < MS; i++)
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        int chunk = columns ? chunk_in_columns(i, e / 2) : (step0 + i) * 2 + e / 2, k = j * 8 + lane % 4 * 2 + e % 2;
        int tap = chunk / f.chunks, c = (chunk - tap * f.chunks) * 8 + lane / 4 - k / filters * channels;
        if (chunk >= p.all || k >= f.filters || (uint32_t)c >= (uint32_t)channels) continue;
        if (columns && !isfinite(sum[i][j][e]))             /* a missing output has met an Inf or NaN of x */
          sum[i][j][e] = tile_sum_again<dtype>(p.x, (first + group) * 8 + lane / 4, p.dy, (first + group) * 8 + k, chunk / 3 - f.before[0],
                                               chunk % 3 - f.before[1], 1, 1, f.tile_h, f.tile_w, f.tiles_h, f.tiles_w, f.tiles);
        part[k * window + tap * channels + c] = sum[i][j][e];
      }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

#define KERNEL(mma, dtype, NT, columns) (const void *)conv_grouped_filter<mma, dtype, NT, columns>
#define KERNELS(mma, dtype) \
  { KERNEL(mma, dtype, 1, false), KERNEL(mma, dtype, 2, false), KERNEL(mma, dtype, 4, false), KERNEL(mma, dtype, 8, false), \
    KERNEL(mma, dtype, 1, true) }
static const void *const functions[2][5] = { KERNELS(mma_bf16, QN_BF16), KERNELS(mma_f16, QN_F16) };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  grouped_filter p = {};
  grouped_shape *f = &p.f;
  qn_status status = grouped_shape_read(f, &c, r, out);
  if (status) return status;
  if (!qn_is_channels_last(c.w)) return qn_refuse(out, "packed filters, channels last", "dw", "nhwc", "%s", "other strides");
  int kind = grouped_in_columns(f) ? 4 : f->beside == 8 ? 0 : f->beside == 4 ? 1 : f->beside == 2 ? 2 : 3;
  p.all = f->chunks * f->size[0] * f->size[1];
  p.jobs = (p.all + 2 * MS - 1) / (2 * MS);
  p.dy_pixel = f->beside * f->filters * 2 + 16;
  p.x.h = (int32_t)c.in[0], p.x.w = (int32_t)c.in[1], p.x.channels = (int32_t)c.channels;
  p.dy.h = f->out[0], p.dy.w = f->out[1], p.dy.channels = (int32_t)c.filters;
  int64_t fixed = GROUPED_PIXELS * 8 + 16;
  if (!grouped_shape_fit(f, r->device, c.x->dim[0], fixed, (int64_t)GROUPED_PIXELS * p.dy_pixel, 0, kind == 4))
    return qn_refuse(out, "a tile's pixels in shared memory", "x", "fewer taps or channels", "%d", p.all);
  p.dy_load = f->beside * f->filters / 8, p.dy_side = tile_side(GROUPED_THREADS, f->tile_w, p.dy_load);
  p.buffer = f->x_h * f->line + GROUPED_PIXELS * p.dy_pixel;
  int64_t slabs = qn_ceil_div(f->groups, f->beside), deep = qn_ceil_div((int64_t)f->beside * p.jobs, WARPS),
          elements = (int64_t)c.filters * f->size[0] * f->size[1] * (f->channels / f->merged);
  int64_t shared = fixed + p.buffer * f->buffers, resident = r->device->units * grouped_resident(shared, kind < 2 || kind == 4 ? 2 : 1);
  if (slabs > 65535 || deep > 65535) return qn_refuse(out, "a grid of blocks", "x", "fewer groups", "%d", f->groups);
  int64_t parts = cuda_conv_shares_of_sum(r, out, f->tiles, resident / (slabs * deep), elements);
  if (parts < 1) return QN_UNSUPPORTED;

  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, functions[c.x->dtype == QN_F16][kind], &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)parts, k->grid[1] = (uint32_t)slabs, k->grid[2] = (uint32_t)deep;
  k->threads = GROUPED_THREADS, k->shared = (uint32_t)shared;
  cuda_conv_kernel_pointer(k, c.x_at, offsetof(grouped_filter, x.p));
  cuda_conv_kernel_pointer(k, c.y_at, offsetof(grouped_filter, dy.p));
  cuda_conv_kernel_parts(k, out, &c, parts, elements, offsetof(grouped_filter, parts));
  double bytes = (double)(qn_elements(c.x) + qn_elements(c.y)) * 2 * (double)deep;
  const double pixels = (double)f->tiles * (double)qn_round_up(f->tile_h * f->tile_w, 16);
  double product = pixels * (double)(slabs * deep) * WARPS * MS * 16 * (64.0 / f->beside) / (r->device->units * 1024 * 1.0);
  out->estimate = 7000 + product + bytes / 3500 + (double)(parts * elements) * 8 / 4000;
  out->numerics.accumulator = QN_ACC_F32_TC;
  return QN_OK;
}

static const qn_engine row[] = {
  { "grouped", QN_OP_CONV_BACKWARD_FILTER, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, nullptr, nullptr, prepare,
    cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release },
};
CUDA_ENGINES(conv_grouped_filter) = { row, sizeof row / sizeof *row };
