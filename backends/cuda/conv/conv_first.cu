/* conv_first.cu -- a network's first layer (conv_first.cuh), forward: 16 outputs of a row by 32 or 64 filters, summed over the
 * window's chunks. Persistent blocks keep the filters in shared memory in fragment order and walk over tiles.
 *
 * A thread's accumulators are columns 2t and 2t + 1 of each product of eight filters; which filter a column is, is free. With
 * filter 32 (j/4) + 8 (n/2) + 2 (j%4) + n%2 at column n of product j a thread has eight neighbouring filters: a 16-byte store. */
#include "conv_first.cuh"
#include "conv_store.cuh"
#include "engines.h"

enum { THREADS = 256, SHARED = 100 << 10 };

struct first {
  first_shape f;
  const uint16_t *x, *w;
  void    *y;
  uint32_t out_dtype;
  int32_t  column, factor, relu, plain;   /* plain: the epilogue is only column (bias), factor (fold, -1: none) and relu */
  cuda_steps steps;
};

static __device__ __noinline__ void finish(const first &p, float4 lo, float4 hi, int pixel, int filter)
{
  float v[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
  steps_apply(p.steps, v, pixel, filter, 0, 0, 0, 8);
  store8(v, p.y, p.out_dtype, (int64_t)pixel * p.f.filters + filter, 1, 8);
}

/* 32 BN filters; 16 QM outputs of a row at once. */
template <class mma, int dtype, int BN, int QM> __global__ void __launch_bounds__(THREADS, 2) conv_first(const __grid_constant__ first p)
{
  static_assert(sizeof(first) <= CUDA_CONV_PARAMETERS, "room for them in the state");
  const first_shape &f = p.f;
  extern __shared__ uint4 shared[];
  int steps = (f.all + 1) / 2, lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  uint2 *filters = (uint2 *)shared;       /* [steps][4 BN][32 lanes] */
  int2 *runs = (int2 *)(filters + steps * 4 * BN * 32);     /* [steps][2]: byte offset of the chunk (-1: none); its valid elements */
  uint32_t x = shared_address(runs + steps * 2);
  int k0 = blockIdx.y * 32 * BN;
  for (int i = threadIdx.x; i < steps * 2; i += THREADS) {
    int r = i / f.chunks, c = i - r * f.chunks;
    runs[i] = i < f.all ? make_int2((r * f.dilation * f.row * 2 + c * 8) * 2, min(8, f.run - c * 8)) : make_int2(0, 0);
  }
  for (int i = threadIdx.x; i < steps * 4 * BN * 64; i += THREADS) {
    int half = i % 2, l = i / 2 % 32, j = i / 64 % (4 * BN), step = i / (256 * BN);
    int n = l / 4, k = k0 + 32 * (j / 4) + 8 * (n / 2) + 2 * (j % 4) + n % 2, chunk = step * 2 + half, r = chunk / f.chunks;
    uint32_t word = 0;
    for (int e = 0; e < 2; e++) {
      int at = (chunk - r * f.chunks) * 8 + l % 4 * 2 + e, s = at / f.pitch, c = at - s * f.pitch;
      if (r < f.size[0] && s < f.size[1] && c < f.channels && k < f.filters)
        word |= (uint32_t)p.w[k * f.w_stride[0] + c * f.w_stride[1] + r * f.w_stride[2] + s * f.w_stride[3]] << 16 * e;
    }
    ((uint32_t *)filters)[i] = word;
  }

  for (int tile = blockIdx.x; tile < f.tiles; tile += gridDim.x) {
    int n, y0, x0;
    first_tile(f, tile, &n, &y0, &x0);
    __syncthreads();
    first_load<1>(x, f, p.x, n, y0, x0);
    __syncthreads();
    int across = f.tile_w / 16, units = f.tile_h * across, step_w = f.stride[1] * f.pitch * 2;
    for (int unit = warp * QM; unit < units; unit += THREADS / 32 * QM) {
      float sum[QM][4 * BN][4] = {};
      uint32_t from[QM];
#pragma unroll
      for (int m = 0; m < QM; m++) {
        int u = min(unit + m, units - 1), h = u / across, w = u - h * across;
        from[m] = x + h * f.stride[0] * f.row * 4 + (w * 16 + g) * step_w + t * 4;
      }
      for (int step = 0; step < steps; step++) {
        int4 run = *(const int4 *)(runs + step * 2);
        /* masks for a chunk that ends early */
        uint32_t low = 2 * t + 1 < run.y ? ~0u : 2 * t < run.y ? 0xffffu : 0, high = 2 * t + 1 < run.w ? ~0u : 2 * t < run.w ? 0xffffu : 0;
        uint32_t a[QM][4];
#pragma unroll
        for (int m = 0; m < QM; m++) {
          a[m][0] = shared_word(from[m] + run.x) & low, a[m][1] = shared_word(from[m] + run.x + 8 * step_w) & low;
          a[m][2] = shared_word(from[m] + run.z) & high, a[m][3] = shared_word(from[m] + run.z + 8 * step_w) & high;
        }
#pragma unroll
        for (int j = 0; j < 4 * BN; j++) {
          uint2 b = filters[(step * 4 * BN + j) * 32 + lane];
#pragma unroll
          for (int m = 0; m < QM; m++) mma::product(sum[m][j], a[m], b.x, b.y);
        }
      }
#pragma unroll
      for (int half = 0; half < BN; half++) {
        int filter = k0 + half * 32 + t * 8;
        if (filter >= f.filters) continue;
        float bias[8] = {};
        if (p.column >= 0) {
          const cuda_operand &o = p.steps.operand[p.column];
          vector_load(bias, o.p, o.dtype, filter * o.stride[1], o.stride[1], 8);
        }
#pragma unroll
        for (int e = 0; e < 8; e++) {
          column_fold fold = fold_of(p.steps, p.factor, filter + e);
#pragma unroll
          for (int i = 0; i < QM * 2; i++) {
            float &v = sum[i / 2][half * 4 + e / 2][i % 2 * 2 + e % 2];
            v = folded(v + bias[e], fold);
          }
        }
#pragma unroll
        for (int i = 0; i < QM * 2; i++) {                   /* row g, and row g + 8 */
          int m = i / 2, part = i % 2 * 2, u = unit + m, h = u / across, w = (u - h * across) * 16 + g + part * 4;
          if (u >= units || y0 + h >= f.out[0] || x0 + w >= f.out[1]) continue;
          int pixel = (n * f.out[0] + y0 + h) * f.out[1] + x0 + w;
          float v[8];
#pragma unroll
          for (int e = 0; e < 8; e++) v[e] = sum[m][half * 4 + e / 2][part + e % 2];
          if (p.plain && p.out_dtype == dtype) {
            if (p.relu)
#pragma unroll
              for (int e = 0; e < 8; e++) v[e] = fn_max(v[e], 0.f);
            vector_store_whole<dtype>(v, p.y, (int64_t)pixel * f.filters + filter);
          } else {
            finish(p, make_float4(v[0], v[1], v[2], v[3]), make_float4(v[4], v[5], v[6], v[7]), pixel, filter);
          }
        }
      }
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

static const void *const functions[2][2] = {
  { (const void *)conv_first<mma_bf16, QN_BF16, 1, 4>, (const void *)conv_first<mma_bf16, QN_BF16, 2, 2> },
  { (const void *)conv_first<mma_f16, QN_F16, 1, 4>, (const void *)conv_first<mma_f16, QN_F16, 2, 2> },
};

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  first p = {};
  first_shape *f = &p.f;
  qn_status status = first_shape_read(f, &c, r, true, out);
  if (status) return status;
  cuda_chain chain;
  if ((status = cuda_conv_problem_chain(&c, r, &chain, out))) return status;
  const qn_value *to = &r->value[chain.out];
  if (to->align < 16) return qn_refuse(out, "aligned to 16 bytes", "y", "16", "%u", to->align);
  p.steps = chain.steps;
  p.plain = cuda_chain_column_relu(&chain, &p.column, &p.factor, &p.relu) && to->dtype == c.x->dtype;
  if (!p.plain) p.column = p.factor = -1;
  p.out_dtype = to->dtype;
  int bn = f->filters > 32 ? 2 : 1, steps = (f->all + 1) / 2, fixed = steps * (4 * bn * 256 + 16);
  const int64_t room = qn_min_i64(SHARED, (int64_t)r->device->shared_per_block);
  const int slabs = (int)qn_ceil_div(f->filters, 32 * bn), per_unit = 2;
  const int64_t resident = qn_max_i64(r->device->units * per_unit / slabs, 1);
  double least = 0;
  int best_h = 0, best_w = 0;
  for (int w = 16; w < f->out[1] + 16 && w <= 512; w += 16)
    for (int h = 1; h <= f->out[0] && h * w <= 1024; h++) {
      first_shape_tile(f, to->dim[0], h, w);
      double cost = (double)qn_ceil_div(f->tiles, resident) *                        /* the tiles of the block that has most */
                    ((double)qn_round_up(h * w, bn == 2 ? 256 : 512) * bn * 2 * steps + (double)f->x_h * f->x_w * f->pitch * 4 + 1000);
      if (fixed + first_x_bytes(f) > room || f->x_w >= 4096 || (least > 0 && cost >= least)) continue;
      least = cost, best_h = h, best_w = w;
    }
  if (!best_h) return qn_refuse(out, "filters and a tile's pixels in shared memory", "w", "fewer taps", "%d", f->size[0] * f->size[1]);
  first_shape_tile(f, to->dim[0], best_h, best_w);
  if (slabs > 65535) return qn_refuse(out, "a grid of blocks", "y", "fewer filters", "%d", f->filters);

  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, functions[c.x->dtype == QN_F16][bn - 1], &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)cuda_conv_shares(f->tiles, resident), k->grid[1] = (uint32_t)slabs;
  k->threads = THREADS, k->shared = (uint32_t)(fixed + first_x_bytes(f));
  cuda_conv_kernel_pointer(k, c.x_at, offsetof(first, x));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(first, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(first, steps), offsetof(first, y));
  double bytes = (double)qn_elements(to) * (double)qn_kit_bytes(to->dtype) + (double)qn_elements(c.x) * 2;
  double product = (double)f->tiles * f->tile_h * f->tile_w * slabs * bn * 32 * steps * 16 / (r->device->units * 1024 * 1.2);
  const double copies = (double)f->tiles * slabs * ((double)f->x_h * f->x_w * f->pitch * 4 + 1000) / (r->device->units * 16);
  out->estimate = 4000 + (product > bytes / 3500 ? product : bytes / 3500) + copies;
  out->numerics.accumulator = QN_ACC_F32_TC;
  return QN_OK;
}

static const qn_engine row[] = {
  { "first_layer", QN_OP_CONV_FORWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES,
    nullptr, &cuda_chain_pattern, prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release },
};
CUDA_ENGINES(conv_first) = { row, sizeof row / sizeof *row };
