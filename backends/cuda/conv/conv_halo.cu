/* conv_halo.cu -- convolution and its gradient by x of f32, f16 and bf16 as tf32 products, gathered in shared memory: for groups of few
 * channels, few filters, short sums, in any layout. One to three spatial dims; of two, bias, fold and relu are fused.
 *
 *   y[n, k, p] = sum over channels c of k's group and taps r of x[n, c, p stride + r dilation - pad] w[k, c, r]
 *
 * A block has up to 32 filters of a group and a tile of pixels (conv_simt.cuh). The planes that the tile sees are copied to shared memory
 * once, with their halo, and rounded to tf32 there; a product's row is a pixel, its k a (plane, tap), and an element of it lies at the sum
 * of what the two add to the address. So a window is never copied out, and an input is loaded and rounded once for all taps and filters.
 * Backward data is the same sum over dy with the filter reversed.
 *
 * Elements are multiplied by 2^24, so that subnormals keep their digits. Sums that are not finite are made again in plain f32, of what
 * exists.
 *
 * Refused: f32 by math below tf32 (it holds the others); sums over more than 4096 terms, which would need a second level. */
#include "conv_simt.cuh"
#include "engines.h"
#include <math.h>

enum { SHARED = 47 << 10, EIGHT = 8 };

static __device__ __forceinline__ float rounded_tf32(float x)
{
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x * 0x1p24f));
  return __uint_as_float(bits);
}

static __device__ __noinline__ float sum_again(const simt &p, const simt_block &b, int q, int k)
{
  return simt_sum_again(p, b, b.down(), b.across(), q, b.k0 + k);
}

/* A warp has MT times 16 pixels, a block NT times 8 filters. */
template <int MT, int NT, bool halves>
__global__ void __launch_bounds__(SIMT_THREADS, MT * NT > 8 ? 3 : 4) conv_halo(const __grid_constant__ simt p)
{
  static_assert(sizeof(simt) <= CUDA_CONV_PARAMETERS, "room for them in the state");
  extern __shared__ float4 shared[];
  const simt_block b(p);
  if (!b.exists) return;
  const cuda_conv_span &down = b.down(), &across = b.across(), &deep = b.deep();
  const int taps = down.taps * across.taps, planes = p.channels * deep.taps, pitch = p.terms + 4;      /* 4 modulo 8: no bank conflicts */
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / 4, column = lane % 4;
  float *filters = (float *)shared;       /* [k][term] */
  int2 *at = (int2 *)(filters + NT * EIGHT * pitch);        /* of a term: in the windows, in w */
  float *windows = (float *)(at + p.terms);                 /* [plane][image][row][column] */
  int *offsets = (int *)(windows + (p.chunk * p.plane + 3) / 4 * 4);           /* of the windows in x */
  b.find_windows(offsets);

  /* the tile's sixteens of pixels are dealt to the warps in turn */
  const int count = (p.together * p.tile_h * p.tile_w + 15) / 16, mine = (count - warp + SIMT_WARPS - 1) / SIMT_WARPS;
  const auto pixel = [&](int m, int side) { return ((m * SIMT_WARPS + warp) * 2 + side) * EIGHT + row; };
  int base[MT][2];
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int side = 0; side < 2; side++) {
      uint32_t place, w, image = cuda_quotient(pixel(m, side), p.by_tile, &place), h = cuda_quotient(place, p.by_row, &w);
      base[m][side] = (int)image < p.together ? (image * p.x_h + h * p.pace[0]) * p.pitch + w * p.pace[1] + b.lead : 0;
    }
  float sum[MT][NT][4] = {};
  for (int first = 0; first < planes && taps; first += p.chunk) {
    const int here = min(p.chunk, planes - first), terms = here * taps, padded = (terms + 7) & ~7;
    __syncthreads();
    b.take_windows<halves>(windows, 0x1p24f, offsets, first, here);
    if (first == 0 || deep.taps > 1)      /* otherwise they repeat, `first` channels on */
      for (int i = threadIdx.x; i < p.terms; i += SIMT_THREADS) {
        const int k = i / taps, tap = i - k * taps, r = tap / across.taps, s = tap - r * across.taps,
                  c = deep.taps > 1 ? (first + k) / deep.taps : k, d = deep.taps > 1 ? first + k - c * deep.taps : 0;
        at[i] = k >= here ? make_int2(0, 0)                 /* times 0: of a plane that was copied */
                          : make_int2(k * p.plane + r * p.step[0] * p.pitch + s * p.step[1],
                                      (int)(c * p.w_stride[1] + (down.tap + r * down.tap_step) * p.w_stride[2] +
                                            (across.tap + s * across.tap_step) * p.w_stride[3] +
                                            (deep.tap + d * deep.tap_step) * p.w_stride[4]));
      }
    __syncthreads();
    const int64_t from = b.group * p.w_group + b.k0 * p.w_stride[0] + (deep.taps > 1 ? 0 : first * p.w_stride[1]);
    for (int k = warp; k < NT * EIGHT; k += SIMT_WARPS)
#pragma unroll 4
      for (int i = lane; i < padded; i += 32) {
        const bool real = k < b.block_k && i < terms;
        b.take_filter<halves>(filters + k * pitch + i, 0x1p24f, from + k * p.w_stride[0] + at[i].y, real);
      }
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    const auto round = [&](float *v, int n) {
      for (int i = threadIdx.x; i < (n + 3) / 4; i += SIMT_THREADS) {
        float4 *to = (float4 *)v + i, four = *to;
        *to = make_float4(rounded_tf32(four.x), rounded_tf32(four.y), rounded_tf32(four.z), rounded_tf32(four.w));
      }
    };
    if constexpr (!halves) {              /* tf32 holds the others */
      round(filters, NT * EIGHT * pitch), round(windows, here * p.plane);
      __syncthreads();
    }
    const uint32_t *of = (const uint32_t *)filters + row * pitch + column, *seen = (const uint32_t *)windows;
    for (int k = 0; k < padded; k += EIGHT) {
      const int lo = at[k + column].x, hi = at[k + column + 4].x;
      uint32_t f[NT][2];
#pragma unroll
      for (int j = 0; j < NT; j++) f[j][0] = of[j * EIGHT * pitch + k], f[j][1] = of[j * EIGHT * pitch + k + 4];
#pragma unroll
      for (int m = 0; m < MT; m++) {
        if (m >= mine) continue;
        const uint32_t a[4] = { seen[base[m][0] + lo], seen[base[m][1] + lo], seen[base[m][0] + hi], seen[base[m][1] + hi] };
#pragma unroll
        for (int j = 0; j < NT; j++) mma_tf32::product(sum[m][j], a, f[j][0], f[j][1]);
      }
    }
  }

  /* the sums go through shared memory, so that neighbouring threads store neighbours */
  constexpr int PIXELS = MT * SIMT_WARPS * 16, PITCH = PIXELS + 4;          /* 4 modulo 32: no bank conflicts */
  float *tile = (float *)shared;          /* [k][pixel] */
  int64_t *places = (int64_t *)(tile + NT * EIGHT * PITCH);
  __syncthreads();
  for (int q = threadIdx.x; q < PIXELS; q += SIMT_THREADS) places[q] = b.place(q);
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
      for (int i = 0; i < 4; i++) tile[(j * EIGHT + column * 2 + i % 2) * PITCH + pixel(m, i / 2)] = sum[m][j][i] * 0x1p-48f;
  __syncthreads();
  const bool last = p.y_stride[1] == 1 && p.filters > 1;
#pragma unroll 4
  for (int i = threadIdx.x; i < NT * EIGHT * PIXELS; i += SIMT_THREADS) {
    const int k = last ? i % (NT * EIGHT) : i / PIXELS, q = last ? i / (NT * EIGHT) : i % PIXELS, channel = b.group * p.filters + b.k0 + k;
    const int64_t to = places[q];
    if (k >= b.block_k || to < 0) continue;
    float v = tile[k * PITCH + q];
    if (!isfinite(v)) v = sum_again(p, b, q, k);
    if (p.column >= 0) {
      const cuda_operand &o = p.steps.operand[p.column];
      v += element_load<float>(o.p, channel * o.stride[1], dtype3(o.dtype));
    }
    if (p.factor >= 0) v = folded(v, fold_of(p.steps, p.factor, channel));
    if (p.relu) v = v < 0 ? 0 : v;                          /* keeps NaN */
    if constexpr (halves) element_store(p.y, to + channel * p.y_stride[1], dtype3(p.out_dtype), v);
    else ((float *)p.y)[to + channel * p.y_stride[1]] = v;
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

#define KERNELS(MT, halves) \
  { (const void *)conv_halo<MT, 1, halves>, (const void *)conv_halo<MT, 2, halves>, (const void *)conv_halo<MT, 3, halves>, \
    (const void *)conv_halo<MT, 4, halves> }
static const void *const kernels[2][2][4] = { { KERNELS(2, false), KERNELS(4, false) }, { KERNELS(2, true), KERNELS(4, true) } };

/* Lays out the tile for warps of `sixteens` times 16 pixels, and estimates its time; 0: it does not fit. */
static double lay(simt *p, const cuda_conv_problem *c, const qn_device *device, int sixteens, bool one_image, int64_t *shared)
{
  const int nt = (p->block_k + EIGHT - 1) / EIGHT, taps = simt_taps(p, 0) * simt_taps(p, 1), pixels = SIMT_WARPS * sixteens * 16;
  const int64_t by_tap = nt * EIGHT * 4 + (int64_t)sizeof(int2), eighth = nt * EIGHT * 4 * (EIGHT + 4) + EIGHT * (int64_t)sizeof(int2) + 16;
  *shared = simt_tile(p, pixels, one_image ? 1 : 127, SHARED, eighth, by_tap);
  if (!*shared) return 0;
  *shared = qn_max_i64(*shared, (int64_t)nt * EIGHT * (pixels + 4) * 4 + pixels * 8);
  p->terms = (int32_t)qn_round_up((int64_t)p->chunk * taps, EIGHT);
  const double classes = (double)p->apart[0] * p->apart[1] * p->apart[2], planes = (double)p->channels * c->size[2] / p->apart[2];
  const double blocks = (double)qn_ceil_div(p->planes, p->together) * p->tiles_h * p->tiles_w * (double)(c->groups * p->blocks_k) * classes;
  const double terms = (double)qn_round_up((int64_t)p->channels * c->size[0] * c->size[1] * c->size[2], EIGHT) / classes;
  const double mine = (double)qn_ceil_div((int64_t)p->together * p->tile_h * p->tile_w, 16 * SIMT_WARPS);
  /* instructions of a warp: copies, rounding, products, stores */
  const double vectors = (double)qn_ceil_div((int64_t)p->x_h * (p->pitch / p->vector), 32) * (p->x_stride[3] != 1 && p->in[1] > 1 ? 4 : 1);
  const double copy = planes * p->together / SIMT_WARPS * (60 + 11 * vectors) + nt * 2 * terms / 32 * 16,
               round = p->dtype != QN_F32 ? 0 : (planes * p->plane + nt * EIGHT * terms) / 512 * 18,
               product = terms / EIGHT * (10 + 4 * nt + mine * (12 + 2 * nt)),
               store = (double)sixteens * nt * (4 + 4 * 16);
  const double steps = 1500 + copy + round + product + store, work = steps * SIMT_WARPS / 2.4;
  /* cycles of the SM with the most blocks; each also waits for its copies, chunk by chunk */
  const int most = (int)qn_min_i64(sixteens * nt > 8 ? 3 : 4, (227 << 10) / (*shared + 1024));
  const double at_once = ceil(blocks / (double)device->units), rounds = ceil(at_once / most), deep = at_once < most ? at_once : most;
  const double chunks = ceil(planes / p->chunk), alone = 3 * steps + 2500 + 2000 * chunks, busy = deep * work > alone ? deep * work : alone;
  const double left = at_once - (rounds - 1) * most, end = left * work > alone ? left * work : alone;
  /* as measured: chunks wait for each other; windows of small images are mostly edges; a single tap leaves a copy unused; lanes whose
   * pixels lie apart meet bank conflicts */
  const double widened = p->dtype != QN_F32 ? 2 : 1;        /* as measured; their copies are waited for plane by plane */
  const double slow = widened * (1 + 0.14 * (chunks - 1)) * (p->together > 1 ? 1.6 : 1) * (taps == 1 ? 2 : 1) * (p->pace[1] > 1 ? 1.3 : 1);
  const double ns = slow * ((rounds - 1) * busy + end) / 1.7;
  const double memory = simt_bytes(p, c) / 3000;
  return 3000 + (ns > memory ? ns + 0.2 * memory : memory + 0.2 * ns);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  simt p = {};
  cuda_chain chain;
  qn_status status = simt_read(&p, &c, &chain, r, out);
  if (status) return status;
  const bool halves = p.dtype != QN_F32;
  if (!halves && r->demands->math < QN_MATH_TF32) return qn_refuse(out, "math of tf32", "", "tf32", "%s", "more exact");
  const bool one_order = r->demands->determinism >= QN_DET_BATCH;           /* what a tile sees at once orders its sums */
  int64_t shared = 0, room = 0;
  double least = 0;
  simt best = p;
  int found = 0;
  for (int sixteens = 4; sixteens >= 2 && !(one_order && least > 0); sixteens -= 2) {
    simt other = p;
    const double time = lay(&other, &c, r->device, sixteens, one_order, &room);
    if (time <= 0 || (least > 0 && time >= least)) continue;
    least = time, best = other, found = sixteens, shared = room;
  }
  p = best;
  if (!found) return qn_refuse(out, "a tile's windows in shared memory", "w", "fewer taps", "%lld", (long long)(c.size[0] * c.size[1]));
  const int64_t tiles = qn_ceil_div(p.planes, p.together) * p.tiles_h * p.tiles_w, blocks_k = c.groups * p.blocks_k,
                classes = (int64_t)p.apart[0] * p.apart[1] * p.apart[2];
  if (tiles > INT32_MAX || blocks_k > 65535 || classes > 65535)
    return qn_refuse(out, "a grid of blocks", "y", "fewer groups", "%s", "more");
  const bool data = c.mode == CUDA_CONV_DATA;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, kernels[halves][found / 4][(p.block_k + EIGHT - 1) / EIGHT - 1], &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)tiles, k->grid[1] = (uint32_t)blocks_k, k->grid[2] = (uint32_t)classes;
  k->threads = SIMT_THREADS, k->shared = (uint32_t)shared;
  cuda_conv_kernel_pointer(k, data ? c.y_at : c.x_at, offsetof(simt, x));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(simt, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(simt, steps), offsetof(simt, y));
  out->math = halves ? QN_MATH_STRICT : QN_MATH_TF32;
  out->numerics.accumulator = halves ? QN_ACC_F32_TC : QN_ACC_TF32;
  if (one_order) out->traits |= QN_TRAIT_BATCH_INVARIANT;
  out->estimate = least;
  return QN_OK;
}

#define ROW(op, pattern) { "halo", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, nullptr, pattern, \
                        prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr) };
CUDA_ENGINES(conv_halo) = { row, sizeof row / sizeof *row };
