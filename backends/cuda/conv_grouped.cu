/* conv_grouped.cu -- convolution in groups of few channels (conv_grouped.cuh), forward and backward by the data, by mma.sync: a warp
 * has one group, its filters of 8 NT, and 16 QM pixels. Blocks stay, with the filters in shared memory as the instruction wants
 * them, and walk over tiles. Backward by the data, at stride 1, is the forward sum over dy with the filter turned round. */
#include "conv_grouped.cuh"
#include "conv_layout.h"
#include "engines.h"
#include "steps.cuh"

enum { STAGE = 68 };                      /* floats of a pixel of y in shared memory: 64, and 4 so that rows begin in other banks */

struct grouped {
  grouped_shape f;
  plane    x;
  const uint16_t *w;
  void    *y;
  uint32_t out_dtype;
  int32_t  under, written, turned;        /* channels of a group of x and y as this kernel sees them; backward by the data */
  cuda_steps steps;
};

template <class mma, int NT> __global__ void __launch_bounds__(GROUPED_THREADS) conv_grouped(const __grid_constant__ grouped p)
{
  enum { GROUPS = 8 / NT, QM = 8 / NT };  /* of a block; sixteens of pixels of a warp */
  const grouped_shape &f = p.f;
  extern __shared__ uint4 shared[];
  int steps = (f.all + 1) / 2, lane = threadIdx.x % 32, warp = threadIdx.x / 32, group = warp % GROUPS, m0 = warp / GROUPS * QM;
  int first = blockIdx.y * GROUPS;
  uint2 *filters = (uint2 *)shared;       /* [GROUPS][steps][NT][32 lanes] */
  int *runs = (int *)(filters + GROUPS * steps * NT * 32), *pixels = runs + (steps + 1) / 2 * 4;        /* bytes from x: of chunks (-1: none), of pixels */
  uint32_t nothing = shared_address(pixels + GROUPED_PIXELS), x = nothing + 16;
  float *stage = (float *)(pixels + GROUPED_PIXELS + 4);
  for (int i = threadIdx.x; i < GROUPS * steps * NT * 64; i += GROUPED_THREADS) {
    int half = i % 2, l = i / 2 % 32, j = i / 64 % NT, step = i / (64 * NT) % steps, at = i / (64 * NT * steps), chunk = step * 2 + half;
    int tap = chunk / f.chunks, r = tap / f.size[1], s = tap - r * f.size[1], from = (chunk - tap * f.chunks) * 8 + l % 4 * 2, to = j * 8 + l / 4;
    uint32_t word = 0;
    if (chunk < f.all && first + at < f.groups && to < p.written)
      for (int e = 0; e < 2; e++) {
        int k = p.turned ? from + e : to, c = p.turned ? to : from + e;
        int64_t where = ((int64_t)(first + at) * f.filters + k) * f.w_stride[0] + c * f.w_stride[1] +
                        (p.turned ? f.size[0] - 1 - r : r) * f.w_stride[2] + (p.turned ? f.size[1] - 1 - s : s) * f.w_stride[3];
        word |= (uint32_t)p.w[where] << 16 * e;
      }
    ((uint32_t *)filters)[i] = word;
  }
  for (int i = threadIdx.x; i < steps * 2; i += GROUPED_THREADS) runs[i] = i < f.all ? grouped_chunk(f, i) : -1;
  if (threadIdx.x < GROUPED_PIXELS) {     /* beyond the tile: its first */
    int h = threadIdx.x / f.tile_w, w = threadIdx.x - h * f.tile_w;
    pixels[threadIdx.x] = h < f.tile_h ? (h * f.stride[0] * f.x_w + w * f.stride[1]) * f.pixel : 0;
  }
  if (threadIdx.x < 4) pixels[GROUPED_PIXELS + threadIdx.x] = 0;

  for (int tile = blockIdx.x; tile < f.tiles; tile += gridDim.x) {
    int n, y0, x0;
    grouped_tile(f, tile, &n, &y0, &x0);
    __syncthreads();
    tile_load<2>(x, f.pixel, p.x, n, y0 * f.stride[0] - f.before[0], x0 * f.stride[1] - f.before[1], f.x_h, f.x_w, first * p.under, f.load);
    tile_wait();
    __syncthreads();
    float sum[QM][NT][4] = {};
    uint32_t from[QM];
#pragma unroll
    for (int m = 0; m < QM; m++) from[m] = x + pixels[(m0 + m) * 16 + lane % 16] + group * p.under * 2;
    const uint2 *mine = filters + group * steps * NT * 32 + lane;
    for (int step = 0; step < steps; step++, mine += NT * 32) {
      int run = runs[step * 2 + lane / 16];
      uint32_t a[QM][4];
#pragma unroll
      for (int m = 0; m < QM; m++) load_matrices<false>(a[m], run < 0 ? nothing : from[m] + run);
#pragma unroll
      for (int j = 0; j < NT; j++) {
        uint2 b = mine[j * 32];
#pragma unroll
        for (int m = 0; m < QM; m++) mma::product(sum[m][j], a[m], b.x, b.y);
      }
    }
    __syncthreads();                      /* the stage lies over x */
#pragma unroll
    for (int m = 0; m < QM; m++)
#pragma unroll
      for (int j = 0; j < NT; j++) {
        float *to = stage + ((m0 + m) * 16 + lane / 4) * STAGE + (group * NT + j) * 8 + lane % 4 * 2;
        *(float2 *)to = make_float2(sum[m][j][0], sum[m][j][1]);
        *(float2 *)(to + 8 * STAGE) = make_float2(sum[m][j][2], sum[m][j][3]);
      }
    __syncthreads();
    for (int i = threadIdx.x; i < GROUPED_PIXELS * 8; i += GROUPED_THREADS) {
      int px = i / 8, h = px / f.tile_w, w = px - h * f.tile_w, at = i % 8 / NT, c = i % NT * 8;
      if (h >= f.tile_h || y0 + h >= f.out[0] || x0 + w >= f.out[1] || first + at >= f.groups || c >= p.written) continue;
      int channel = (first + at) * p.written + c, pixel = (n * f.out[0] + y0 + h) * f.out[1] + x0 + w;
      const float4 *s = (const float4 *)(stage + px * STAGE + i % 8 * 8);
      float v[8] = {s[0].x, s[0].y, s[0].z, s[0].w, s[1].x, s[1].y, s[1].z, s[1].w};
      steps_apply(p.steps, v, pixel, channel, 0, 0, 0, 8);
      store8(v, p.y, p.out_dtype, (int64_t)pixel * (f.groups * p.written) + channel, 1, 8);
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

struct state {
  grouped  p;
  cuda_chain chain;
  const void *function;
  int32_t  x, w, blocks, slabs, shared;
};

static const void *const functions[2][4] = {
  { (const void *)conv_grouped<mma_bf16, 1>, (const void *)conv_grouped<mma_bf16, 2>, (const void *)conv_grouped<mma_bf16, 4>, (const void *)conv_grouped<mma_bf16, 8> },
  { (const void *)conv_grouped<mma_f16, 1>, (const void *)conv_grouped<mma_f16, 2>, (const void *)conv_grouped<mma_f16, 4>, (const void *)conv_grouped<mma_f16, 8> },
};

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
  if (data && (c.stride[0] > 1 || c.stride[1] > 1))
    return qn_refuse(out, "backward data walks dy pixel by pixel", "dy", "a stride of 1", "%lld", (long long)(c.stride[0] > 1 ? c.stride[0] : c.stride[1]));
  const qn_value *in = data ? c.y : c.x, *to = &r->value[chain.out];
  p.under = data ? f->filters : f->channels;
  p.written = data ? f->channels : f->filters;
  p.turned = data;
  p.x.h = f->in[0], p.x.w = f->in[1], p.x.channels = (int32_t)in->dim[1];
  p.out_dtype = to->dtype;
  p.steps = chain.steps;
  int kind = f->beside == 8 ? 0 : f->beside == 4 ? 1 : f->beside == 2 ? 2 : 3, steps = (f->all + 1) / 2;
  int64_t fixed = (int64_t)steps * 64 * 32 + (steps + 1) / 2 * 16 + GROUPED_PIXELS * 4 + 16, stage = (int64_t)GROUPED_PIXELS * STAGE * 4;
  if (!grouped_shape_tile(f, to->dim[0], GROUPED_SHARED - fixed))
    return qn_refuse(out, "filters and a tile's pixels in shared memory", "w", "fewer taps or channels", "%d", f->all);
  int64_t slabs = qn_ceil_div(f->groups, f->beside), x_bytes = (int64_t)f->x_h * f->x_w * f->pixel, shared = fixed + qn_max_i64(x_bytes, stage);
  if (slabs > 65535) return qn_refuse(out, "a grid of blocks", "x", "fewer groups", "%d", f->groups);

  state *st = (state *)r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  int64_t resident = r->device->units * qn_min_i64(200 << 10, GROUPED_SHARED * 2) / (shared + 1024), rounds = qn_ceil_div(f->tiles, qn_max_i64(resident / slabs, 1));
  st->p = p;
  st->chain = chain;
  st->function = functions[in->dtype == QN_F16][kind];
  st->x = data ? c.y_at : c.x_at, st->w = c.w_at;
  st->blocks = (int32_t)qn_ceil_div(f->tiles, rounds), st->slabs = (int32_t)slabs, st->shared = (int32_t)shared;
  double bytes = (double)qn_elements(to) * (double)qn_kit_bytes(to->dtype) + (double)qn_elements(in) * 2;
  double product = (double)f->tiles * GROUPED_PIXELS * (double)slabs * 64 * steps * 16 / (r->device->units * 1024 * 0.5);
  out->estimate = 4000 + product + bytes / 3500;
  out->state = st;
  out->n_ops = chain.n_ops;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_F32_TC;
  return QN_OK;
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  return cuda_check(cudaFuncSetAttribute(((const state *)out->state)->function, cudaFuncAttributeMaxDynamicSharedMemorySize, GROUPED_SHARED + (16 << 10)), "cudaFuncSetAttribute");
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  grouped p = st->p;
  p.x.p = launch->ptr[st->x];
  p.w = (const uint16_t *)launch->ptr[st->w];
  p.y = launch->ptr[st->chain.out];
  cuda_chain_bind(&p.steps, &st->chain, launch->ptr);
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(st->function, dim3(st->blocks, st->slabs), dim3(GROUPED_THREADS), arguments, st->shared, (cudaStream_t)launch->stream), "conv_grouped");
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

#define ROW(op) { "grouped", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES, nullptr, nullptr, \
                  prepare, build, run, release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA) };
const qn_engine_list cuda_conv_grouped_list = { row, sizeof row / sizeof *row };
