/* conv_depthwise_mma.cu -- depthwise convolution by Tensor Cores (conv_depthwise_mma.cuh), f16 and bf16, windows up to 7x7,
 * stride 1, forward and backward data (a forward sum over dy with the filter reversed).
 *
 * A persistent block has 32 channels and walks over tiles of 16x16 outputs; a warp has four of the channels. The band also
 * multiplies by taps of 0: a sum that is not finite is therefore recomputed plainly. */
#include "conv_depthwise_mma.cuh"
#include "engines.h"
#include "conv_store.cuh"

/* AT_ONCE: items a thread has in flight */
enum { WARPS = 8, EACH = 4, THREADS = WARPS * 32, CHANNELS = WARPS * EACH, AT_ONCE = 5 };
enum { PAIRS_OF_TAPS = 22 };              /* of a window's row: (w[d], w[d + 1]) for d from -8 on, 0 outside the window */
typedef band_planes<BAND_ROWS, BAND_PAIRS, CHANNELS / 8> planes;

struct depthwise {
  plane    x;
  const uint16_t *w;
  void    *y;
  int32_t  out[2], before[2], size[2];
  int32_t  flip, column, factor, relu;     /* operands of bias and fold (-1: none) */
  int32_t  tiles_h, tiles_w, tiles;
  int64_t  w_stride[3];                   /* K, R, S */
  cuda_steps steps;
};

/* Offset of tap (r, s) in the filter. */
static __device__ __forceinline__ int64_t tap_at(const depthwise &p, int channel, int r, int s)
{
  if (p.flip) r = p.size[0] - 1 - r, s = p.size[1] - 1 - s;
  return channel * p.w_stride[0] + r * p.w_stride[1] + s * p.w_stride[2];
}

/* Recomputes output (row, column) of the tile at (y0, x0) from the channel's plane. */
template <int dtype>
static __device__ __noinline__ float sum_again(const depthwise &p, const unsigned char *plane, float sum, int y0, int x0, int row,
                                               int column, int channel)
{
  for (int r = 0; r < p.size[0]; r++)
    for (int s = 0; s < p.size[1]; s++) {
      int y = y0 + row + r - p.before[0], x = x0 + column + s - p.before[1];
      if ((uint32_t)y >= (uint32_t)p.x.h || (uint32_t)x >= (uint32_t)p.x.w) continue;
      sum = fmaf(element_load<float>(plane + (row + r) * BAND_LINE, column + s + 1, dtype),
                 element_load<float>(p.w, tap_at(p, channel, r, s), dtype), sum);
    }
  return sum;
}

template <class mma, int dtype> __global__ void __launch_bounds__(THREADS, 3) depthwise_mma(const __grid_constant__ depthwise p)
{
  static_assert(sizeof(depthwise) <= CUDA_CONV_PARAMETERS, "room for them in the state");
  extern __shared__ uint4 shared[];
  unsigned char *x = (unsigned char *)shared;
  uint32_t *taps = (uint32_t *)(x + planes::bytes);         /* [CHANNELS][BAND_MOST][PAIRS_OF_TAPS] */
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, first = blockIdx.y * CHANNELS;
  uint16_t *filters = (uint16_t *)shared;                   /* raw filters, in the memory that the planes use later */
#pragma unroll 7
  for (int i = threadIdx.x; i < CHANNELS * BAND_MOST * BAND_MOST; i += THREADS) {
    int channel = i / (BAND_MOST * BAND_MOST), tap = i - channel * (BAND_MOST * BAND_MOST), r = tap / BAND_MOST, s = tap - r * BAND_MOST;
    filters[i] = first + channel < p.x.channels && r < p.size[0] && s < p.size[1] ? p.w[tap_at(p, first + channel, r, s)] : 0;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < CHANNELS * BAND_MOST * PAIRS_OF_TAPS; i += THREADS) {
    int row = i / PAIRS_OF_TAPS, d = i - row * PAIRS_OF_TAPS - 8;
    uint32_t lo = (uint32_t)d < BAND_MOST ? filters[row * BAND_MOST + d] : 0,
             hi = (uint32_t)(d + 1) < BAND_MOST ? filters[row * BAND_MOST + d + 1] : 0;
    taps[i] = lo | hi << 16;
  }
  __syncthreads();

  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    int rest = tile / p.tiles_w, n = rest / p.tiles_h, y0 = (rest - n * p.tiles_h) * BAND_SIDE, x0 = (tile - rest * p.tiles_w) * BAND_SIDE;
    int high = min((int)BAND_SIDE, p.out[0] - y0), wide = min((int)BAND_SIDE, p.out[1] - x0);
    for (int i = threadIdx.x; i < planes::items; i += THREADS * AT_ONCE) {
      band_item v[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) v[k] = planes::fetch(p.x, n, y0 - p.before[0], x0 - p.before[1] - 1, first, i + k * THREADS);
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) planes::put(x, i + k * THREADS, v[k]);
    }
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < EACH; i++) {
      int at = warp * EACH + i, channel = first + at;
      unsigned char *plane = x + planes::at(at);
      uint32_t from = shared_address(plane) + lane % 16 * BAND_LINE + lane / 16 * 16;
      const uint32_t *mine = taps + at * (BAND_MOST * PAIRS_OF_TAPS) + 2 * t - g + 7;
      float bias = 0;
      if (p.column >= 0 && channel < p.x.channels)
        bias = element_load<float>(p.steps.operand[p.column].p, channel, p.steps.operand[p.column].dtype);
      column_fold fold = fold_of(p.steps, channel < p.x.channels ? p.factor : -1, channel);
      float sum[2][4];
#pragma unroll
      for (int j = 0; j < 2; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) sum[j][e] = bias;
#pragma unroll
      for (int r = 0; r < BAND_MOST; r++) {                 /* taps beyond the window are 0 */
        uint32_t b0 = mine[r * PAIRS_OF_TAPS], b1 = mine[r * PAIRS_OF_TAPS + 8];
#pragma unroll
        for (int j = 0; j < 2; j++) {
          uint32_t a[4];
          load_matrices<false>(a, from + r * BAND_LINE + j * 16);
          mma::product(sum[j], a, b0, b1);
        }
      }
      bool bad = false;
#pragma unroll
      for (int j = 0; j < 2; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) bad |= !isfinite(sum[j][e]);
      if (bad)
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
          for (int e = 0; e < 4; e++) {
            int row = g + e / 2 * 8, column = j * 8 + 2 * t + e % 2;
            if (row < high && column < wide && channel < p.x.channels && !isfinite(sum[j][e]))
              sum[j][e] = sum_again<dtype>(p, plane, bias, y0, x0, row, column, channel);
          }
      __syncwarp();                       /* the plane has been read and now takes the outputs */
#pragma unroll
      for (int j = 0; j < 2; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          float lo = folded(sum[j][half * 2], fold), hi = folded(sum[j][half * 2 + 1], fold);
          if (p.relu) lo = fn_max(lo, 0.f), hi = fn_max(hi, 0.f);
          ((uint32_t *)plane)[(g + half * 8) * BAND_PAIRS + j * 4 + t] = dtype == QN_BF16 ? pack_bf16(lo, hi) : pack_f16(lo, hi);
        }
    }
    __syncthreads();
    uint16_t *image = (uint16_t *)p.y + (((int64_t)n * p.out[0] + y0) * p.out[1] + x0) * p.x.channels + first;
#pragma unroll
    for (int k = 0; k < BAND_SIDE * BAND_SIDE / 2 * (CHANNELS / 8) / THREADS; k++) {
      int i = k * THREADS + threadIdx.x, chunk = i % (CHANNELS / 8), pair = i / (CHANNELS / 8) % (BAND_SIDE / 2),
          row = i / (CHANNELS / 8 * BAND_SIDE / 2);
      if (row >= high || pair * 2 >= wide || first + chunk * 8 >= p.x.channels) continue;
      const uint32_t *word = (const uint32_t *)(x + planes::at(chunk * 8)) + row * BAND_PAIRS + pair;
      uint32_t v[8];
#pragma unroll
      for (int e = 0; e < 8; e++) v[e] = word[e * (planes::step / 4)];
      uint16_t *to = image + (row * p.out[1] + pair * 2) * p.x.channels + chunk * 8;
      *(uint4 *)to = make_uint4(__byte_perm(v[0], v[1], 0x5410), __byte_perm(v[2], v[3], 0x5410), __byte_perm(v[4], v[5], 0x5410),
                                __byte_perm(v[6], v[7], 0x5410));
      if (pair * 2 + 1 < wide)
        *(uint4 *)(to + p.x.channels) = make_uint4(__byte_perm(v[0], v[1], 0x7632), __byte_perm(v[2], v[3], 0x7632),
                                                   __byte_perm(v[4], v[5], 0x7632), __byte_perm(v[6], v[7], 0x7632));
    }
    __syncthreads();
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  depthwise p = {};
  cuda_chain chain;
  qn_status status = cuda_conv_band_read(&c, r, out);
  if (!status) status = cuda_conv_problem_chain(&c, r, &chain, out);
  if (status) return status;
  bool data = c.mode == CUDA_CONV_DATA;
  const qn_value *in = data ? c.y : c.x, *to = &r->value[chain.out];
  if (!cuda_chain_column_relu(&chain, &p.column, &p.factor, &p.relu) || to->dtype != in->dtype || to->align < 16)
    return qn_refuse(out, "no more than a bias and relu behind the sums, of the same dtype", "y", "", "%u steps", chain.steps.n);
  p.x.h = (int32_t)(data ? c.out[0] : c.in[0]), p.x.w = (int32_t)(data ? c.out[1] : c.in[1]), p.x.channels = (int32_t)c.channels;
  p.flip = data;
  for (int d = 0; d < 2; d++) {
    p.out[d] = (int32_t)(data ? c.in[d] : c.out[d]);
    p.size[d] = (int32_t)c.size[d];
    p.before[d] = (int32_t)(data ? c.size[d] - 1 - c.before[d] : c.before[d]);
  }
  p.w_stride[0] = c.w->stride[0], p.w_stride[1] = c.w_stride[0], p.w_stride[2] = c.w_stride[1];
  p.tiles_h = (int32_t)qn_ceil_div(p.out[0], BAND_SIDE), p.tiles_w = (int32_t)qn_ceil_div(p.out[1], BAND_SIDE);
  p.tiles = (int32_t)(c.x->dim[0] * p.tiles_h * p.tiles_w);
  p.steps = chain.steps;
  int64_t slabs = qn_ceil_div(c.channels, CHANNELS);
  if (slabs > 65535) return qn_refuse(out, "a grid of blocks", "x", "fewer channels", "%lld", (long long)c.channels);

  uint32_t shared = planes::bytes + CHANNELS * BAND_MOST * PAIRS_OF_TAPS * 4;
  const void *function = in->dtype == QN_F16 ? (const void *)depthwise_mma<mma_f16, QN_F16>
                                             : (const void *)depthwise_mma<mma_bf16, QN_BF16>;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, function, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)cuda_conv_shares(p.tiles, 3 * r->device->units / slabs), k->grid[1] = (uint32_t)slabs;
  k->threads = THREADS, k->shared = shared;
  cuda_conv_kernel_pointer(k, data ? c.y_at : c.x_at, offsetof(depthwise, x.p));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(depthwise, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(depthwise, steps), offsetof(depthwise, y));
  double moved = (double)(qn_elements(in) + qn_elements(to)) * 2 / 2500,
         turned = (double)p.tiles * (double)slabs * 5200 / (1.7 * r->device->units);
  out->estimate = 4000 + (moved > turned ? moved : turned);
  out->numerics.accumulator = QN_ACC_F32_TC;
  return QN_OK;
}

#define ROW(op, pattern) { "depthwise_mma", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES, \
                        nullptr, pattern, prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr) };
CUDA_ENGINES(conv_depthwise_mma) = { row, sizeof row / sizeof *row };
