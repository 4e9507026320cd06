/* conv_grouped_filter.cu -- convolution in groups of few channels (conv_grouped.cuh), backward by the filter, by mma.sync.
 *
 *   dw[k, r, s, c] = sum over images and outputs (p, q) of dy[n, k, p, q] x[n, c, p stride + r dilation - pad, ...]
 *
 * A product for each group: chunks of its windows, two for sixteen rows, by its filters, summed over the outputs of a tile,
 * sixteen at a time. A warp has one group, MS pairs of chunks and 8 NT filters, whose sums it keeps; a block's share of the tiles
 * gives one part of the sum, in workspace; the parts are joined in order. */
#include "conv_grouped.cuh"
#include "conv_layout.h"
#include "engines.h"

enum { MS = 5, WARPS = GROUPED_THREADS / 32 };

struct grouped_filter {
  grouped_shape f;
  plane    x, dy;
  float   *parts;                         /* [part][filter][R][S][channel of a group] */
  int32_t  dy_pixel;                      /* bytes of a pixel of dy in shared memory, as f.pixel */
  int32_t  jobs;                          /* of a group: pairs of chunks, MS at a time */
};

/* Two 8 x 8 matrices turned over: lanes 0-7 and 8-15 hold their rows' addresses. */
static __device__ __forceinline__ void load_two_turned(uint32_t &r0, uint32_t &r1, uint32_t at)
{
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r0), "=r"(r1) : "r"(at) : "memory");
}

template <class mma, int NT> __global__ void __launch_bounds__(GROUPED_THREADS) conv_grouped_filter(const __grid_constant__ grouped_filter p)
{
  enum { GROUPS = 8 / NT };
  const grouped_shape &f = p.f;
  extern __shared__ uint4 shared[];
  int lane = threadIdx.x % 32, first = blockIdx.y * GROUPS, job = blockIdx.z * WARPS + threadIdx.x / 32, group = job / p.jobs, step0 = (job - group * p.jobs) * MS;
  bool works = group < GROUPS && first + group < f.groups;
  int *pixels = (int *)shared;            /* of a tile: bytes from x */
  uint32_t nothing = shared_address(pixels + GROUPED_PIXELS), x = nothing + 16, dy = x + f.x_h * f.x_w * f.pixel;
  if (threadIdx.x < GROUPED_PIXELS) {
    int h = threadIdx.x / f.tile_w, w = threadIdx.x - h * f.tile_w;
    pixels[threadIdx.x] = (h * f.stride[0] * f.x_w + w * f.stride[1]) * f.pixel;
  }
  if (threadIdx.x < 4) pixels[GROUPED_PIXELS + threadIdx.x] = 0;
  int run[MS];                            /* of this lane's half of a pair of chunks */
#pragma unroll
  for (int i = 0; i < MS; i++) run[i] = grouped_chunk(f, min((step0 + i) * 2 + lane / 8 % 2, f.all - 1)) + group * f.channels * 2;
  float sum[MS][NT][4] = {};
  for (int tile = blockIdx.x; tile < f.tiles; tile += gridDim.x) {
    int n, y0, x0;
    grouped_tile(f, tile, &n, &y0, &x0);
    __syncthreads();
    tile_load<2>(x, f.pixel, p.x, n, y0 * f.stride[0] - f.before[0], x0 * f.stride[1] - f.before[1], f.x_h, f.x_w, first * f.channels, f.load);
    tile_load<2>(dy, p.dy_pixel, p.dy, n, y0, x0, f.tile_h, f.tile_w, first * f.filters, f.beside * f.filters / 8);
    tile_wait();
    __syncthreads();
    if (!works) continue;
    int high = min(f.tile_h, f.out[0] - y0), wide = min(f.tile_w, f.out[1] - x0), last = high * f.tile_w;
    for (int px = 0; px < last; px += 16) {
      /* outputs that are not there: both sides are 0, for the x below them may be anything */
      int mine = px + lane % 8 + lane / 16 * 8, other = px + lane % 16;
      bool there = mine < last && mine % f.tile_w < wide, other_there = other < last && other % f.tile_w < wide;
      uint32_t from = x + pixels[mine & (GROUPED_PIXELS - 1)], beside = dy + other * p.dy_pixel + group * f.filters * 2, b[NT][2];
#pragma unroll
      for (int j = 0; j < NT; j++) load_two_turned(b[j][0], b[j][1], other_there && j * 8 < f.filters ? beside + j * 16 : nothing);
#pragma unroll
      for (int i = 0; i < MS; i++) {
        uint32_t a[4];
        load_matrices<true>(a, there ? from + run[i] : nothing);
#pragma unroll
        for (int j = 0; j < NT; j++) mma::product(sum[i][j], a, b[j][0], b[j][1]);
      }
    }
  }
  if (!works) return;
  int64_t window = (int64_t)f.all * 8;
  float *part = p.parts + ((int64_t)blockIdx.x * f.groups + first + group) * f.filters * window;
#pragma unroll
  for (int i = 0; i < MS; i++)
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        int chunk = (step0 + i) * 2 + e / 2, k = j * 8 + lane % 4 * 2 + e % 2;
        if (chunk < f.all && k < f.filters) part[k * window + chunk * 8 + lane / 4] = sum[i][j][e];
      }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

struct state {
  grouped_filter p;
  const void *function;
  int32_t  x, dy, dw, parts, slabs, deep, shared;
  uint32_t dw_dtype;
  int64_t  elements;
};

static const void *const functions[2][4] = {
  { (const void *)conv_grouped_filter<mma_bf16, 1>, (const void *)conv_grouped_filter<mma_bf16, 2>, (const void *)conv_grouped_filter<mma_bf16, 4>, (const void *)conv_grouped_filter<mma_bf16, 8> },
  { (const void *)conv_grouped_filter<mma_f16, 1>, (const void *)conv_grouped_filter<mma_f16, 2>, (const void *)conv_grouped_filter<mma_f16, 4>, (const void *)conv_grouped_filter<mma_f16, 8> },
};

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  grouped_filter p = {};
  grouped_shape *f = &p.f;
  qn_status status = grouped_shape_read(f, &c, r, out);
  if (status) return status;
  if (!qn_is_channels_last(c.w)) return qn_refuse(out, "packed filters, channels last", "dw", "nhwc", "%s", "other strides");
  int kind = f->beside == 8 ? 0 : f->beside == 4 ? 1 : f->beside == 2 ? 2 : 3;
  p.jobs = (f->all + 2 * MS - 1) / (2 * MS);
  p.dy_pixel = f->beside * f->filters * 2 + 16;
  p.x.h = f->in[0], p.x.w = f->in[1], p.x.channels = (int32_t)c.channels;
  p.dy.h = f->out[0], p.dy.w = f->out[1], p.dy.channels = (int32_t)c.filters;
  int64_t fixed = GROUPED_PIXELS * 4 + 16 + (int64_t)GROUPED_PIXELS * p.dy_pixel;
  if (!grouped_shape_tile(f, c.x->dim[0], GROUPED_SHARED - fixed))
    return qn_refuse(out, "a tile's pixels in shared memory", "x", "fewer taps or channels", "%d", f->all);
  int64_t slabs = qn_ceil_div(f->groups, f->beside), deep = qn_ceil_div((int64_t)f->beside * p.jobs, WARPS), elements = (int64_t)c.filters * f->all * 8;
  int64_t shared = fixed + (int64_t)f->x_h * f->x_w * f->pixel, resident = r->device->units * qn_min_i64(3, (220 << 10) / (shared + 1024));
  int64_t parts = qn_ceil_div(f->tiles, qn_ceil_div(f->tiles, qn_max_i64(resident / (slabs * deep), 1)));
  parts = qn_min_i64(parts, (int64_t)(r->demands->workspace_limit / (uint64_t)(elements * 4)));
  if (parts < 1 || slabs > 65535 || deep > 65535) return qn_refuse(out, "workspace for a part of the sum", "dw", "", "%lld", (long long)elements * 4);

  state *st = (state *)r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->p = p;
  st->function = functions[c.x->dtype == QN_F16][kind];
  st->x = c.x_at, st->dy = c.y_at, st->dw = c.w_at;
  st->parts = (int32_t)parts, st->slabs = (int32_t)slabs, st->deep = (int32_t)deep, st->shared = (int32_t)shared;
  st->dw_dtype = c.w->dtype;
  st->elements = elements;
  double bytes = (double)(qn_elements(c.x) + qn_elements(c.y)) * 2 * (double)deep;
  double product = (double)f->tiles * GROUPED_PIXELS * (double)(slabs * deep) * WARPS * MS * 16 * (64.0 / f->beside) / (r->device->units * 1024 * 0.4);
  out->estimate = 7000 + product + bytes / 3500 + (double)(parts * elements) * 8 / 2500;
  out->workspace = (uint64_t)(parts * elements * 4);
  out->state = st;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_F32_TC;
  return QN_OK;
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  return cuda_check(cudaFuncSetAttribute(((const state *)out->state)->function, cudaFuncAttributeMaxDynamicSharedMemorySize, GROUPED_SHARED), "cudaFuncSetAttribute");
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  grouped_filter p = st->p;
  p.x.p = launch->ptr[st->x];
  p.dy.p = launch->ptr[st->dy];
  p.parts = (float *)launch->workspace;
  void *arguments[] = { &p };
  qn_status s = cuda_check(cudaLaunchKernel(st->function, dim3(st->parts, st->slabs, st->deep), dim3(GROUPED_THREADS), arguments, st->shared, (cudaStream_t)launch->stream), "conv_grouped_filter");
  if (s) return s;
  return cuda_conv_join(launch->ptr[st->dw], st->dw_dtype, p.parts, st->parts, st->elements, launch->stream);
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

static const qn_engine row[] = {
  { "grouped", QN_OP_CONV_BACKWARD_FILTER, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, nullptr, nullptr, prepare, build, run, release },
};
const qn_engine_list cuda_conv_grouped_filter_list = { row, sizeof row / sizeof *row };
