/* conv_depthwise_rows.cu -- depthwise convolution with filters of one row, by Tensor Cores, f16 and bf16, rows contiguous: sound and
 * speech, any stride and dilation; backward data of stride 1 (a forward sum over dy with the filter reversed).
 *
 *   y[8 m + j] = sum over k of x[8 m stride - pad + k] b[k][j]        b[k][j] = w[(k - j stride) / dilation], 0 where that is no tap
 *
 * is a product: its rows m overlap in x, where they lie 8 stride elements apart, as ldmatrix reads them, and b is a band made in registers.
 * A warp has up to 512 outputs of a row, whose inputs it copies to shared memory of its own, padded with zeros. The band's zeros are
 * multiplied too: a sum that is not finite is made again, plainly.
 *
 * Refused: windows that with seven strides exceed what registers hold of the band. */
#include "conv_kernel.h"
#include "conv_store.cuh"
#include "kit/divisor.h"
#include "kit/element.cuh"
#include "kit/sm80.cuh"
#include "engines.h"

/* TILE: outputs of a product; MOST: of a warp; STEPS: of 16 k; AT_ONCE: elements that a lane has in flight */
enum { WARPS = 4, TILE = 128, MOST = 4, STEPS = 6, AT_ONCE = 20 };

struct rows {
  const uint16_t *x, *w;
  void    *y;
  uint32_t out_dtype;
  int32_t  rows, in, out;                 /* of all planes; elements of a row */
  int32_t  channels, stride, dilation, before, taps, flip;
  int32_t  parts, tiles, steps_k, count;  /* parts of a row; of a part: tiles; of a product: steps; inputs that a part reads */
  int32_t  pairs;                         /* two outputs can be stored at once */
  int32_t  column, factor, relu;          /* operands of bias and fold (-1: none) */
  int64_t  w_stride[2];                   /* filter, tap */
  cuda_divisor by_part, by_plane;         /* parts of a row; rows of a plane */
  cuda_steps steps;
};

__device__ __forceinline__ int64_t tap_at(const rows &p, int channel, int tap)
{
  return channel * p.w_stride[0] + (p.flip ? p.taps - 1 - tap : tap) * p.w_stride[1];
}

/* Output o of a row, added of what exists. */
template <int dtype> static __device__ __noinline__ float sum_again(const rows &p, const uint16_t *x, int channel, int o)
{
  float sum = 0;
  for (int t = 0; t < p.taps; t++) {
    const int i = o * p.stride - p.before + t * p.dilation;
    if ((uint32_t)i >= (uint32_t)p.in) continue;
    sum = fmaf(element_load<float>(x, i, dtype), element_load<float>(p.w, tap_at(p, channel, t), dtype), sum);
  }
  return sum;
}

template <class mma, int dtype> __global__ void __launch_bounds__(WARPS * 32, 8) depthwise_rows(const __grid_constant__ rows p)
{
  static_assert(sizeof(rows) <= CUDA_CONV_PARAMETERS, "room for them in the state");
  extern __shared__ uint4 shared[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, item = blockIdx.x * WARPS + warp;
  uint32_t part, row = cuda_quotient(item, p.by_part, &part);
  if ((int)row >= p.rows) return;
  const int channel = cuda_quotient(row, p.by_plane) % p.channels, begin = part * (p.tiles * TILE);
  const uint16_t *const x = p.x + (int64_t)row * p.in;
  uint16_t *const mine = (uint16_t *)shared + warp * p.count;

  const int first = begin * p.stride - p.before;
  for (int e0 = lane; e0 < p.count; e0 += 32 * AT_ONCE) {
    uint16_t v[AT_ONCE];
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++) {
      const int e = e0 + 32 * j, i = first + e;
      v[j] = e < p.count && (uint32_t)i < (uint32_t)p.in ? x[i] : 0;
    }
#pragma unroll
    for (int j = 0; j < AT_ONCE; j++)
      if (e0 + 32 * j < p.count) mine[e0 + 32 * j] = v[j];
  }
  uint32_t b[STEPS][2];                   /* of this lane: column lane / 4, two neighbouring k at lane % 4 * 2, and eight further on */
  const int from = lane % 4 * 2 - lane / 4 * p.stride;
#pragma unroll
  for (int s = 0; s < STEPS; s++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      uint32_t two[2] = { 0, 0 };
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int at = from + s * 16 + half * 8 + i, tap = p.dilation == 1 ? at : at / p.dilation;
        if (s < p.steps_k && at >= 0 && tap < p.taps && tap * p.dilation == at) two[i] = p.w[tap_at(p, channel, tap)];
      }
      b[s][half] = two[0] | two[1] << 16;
    }
  float bias = 0;
  if (p.column >= 0) {
    const cuda_operand &o = p.steps.operand[p.column];
    bias = element_load<float>(o.p, channel * o.stride[1], o.dtype);
  }
  const column_fold fold = fold_of(p.steps, p.factor, channel);
  __syncwarp();

  const uint32_t at = shared_address(mine) + lane % 16 * 16 * p.stride + lane / 16 * 16;
  const int64_t to = (int64_t)row * p.out;
#pragma unroll 1
  for (int tile = 0; tile < p.tiles; tile++) {
    float sum[4] = {};
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
      if (s >= p.steps_k) break;
      uint32_t a[4];
      load_matrices<false>(a, at + tile * (TILE * 2) * p.stride + s * 32);
      mma::product(sum, a, b[s][0], b[s][1]);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int o = begin + tile * TILE + (lane / 4 + 8 * half) * 8 + lane % 4 * 2;
      float v[2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        v[i] = sum[half * 2 + i];
        if (!isfinite(v[i]) && o + i < p.out) v[i] = sum_again<dtype>(p, x, channel, o + i);
        v[i] = folded(v[i] + bias, fold);
        if (p.relu) v[i] = v[i] < 0 ? 0 : v[i];             /* keeps NaN */
      }
      if (p.pairs) {
        if (o < p.out) ((uint32_t *)p.y)[(to + o) / 2] = dtype == QN_BF16 ? pack_bf16(v[0], v[1]) : pack_f16(v[0], v[1]);
      } else {
#pragma unroll
        for (int i = 0; i < 2; i++)
          if (o + i < p.out) {
            if (p.out_dtype == QN_F32) ((float *)p.y)[to + o + i] = v[i];
            else ((uint16_t *)p.y)[to + o + i] = p.out_dtype == QN_BF16 ? float_to_bf16(v[i]) : float_to_f16(v[i]);
          }
      }
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

static qn_status check(const qn_request *r, const cuda_conv_problem *c, qn_prepared *out)
{
  qn_status status = cuda_conv_wants_ampere(r, out);
  if (!status) status = cuda_conv_wants_halves(c, out);
  if (status) return status;
  const bool data = c->mode == CUDA_CONV_DATA;
  if (c->groups != c->channels || c->filters != c->channels || c->groups == 1)
    return qn_refuse(out, "one filter for each channel", "x", "as many groups as channels, two or more", "%lld", (long long)c->groups);
  if (!qn_is_packed(c->x) || !qn_is_packed(c->y))
    return qn_refuse(out, "packed planes", data ? "dx" : "x", "nchw", "%s", "other strides");
  for (int d = 0; d < 3; d += 2)
    if (c->size[d] != 1 || c->in[d] != c->out[d] || c->before[d] || c->stride[d] != 1)
      return qn_refuse(out, "filters of one row", "w", "1", "%lld", (long long)c->size[d]);
  if (data && c->stride[1] != 1) return qn_refuse(out, "stride of 1 in backward data", "dx", "1", "%lld", (long long)c->stride[1]);
  const double wide = 7.0 * (double)c->stride[1] + (double)(c->size[1] - 1) * (double)c->dilation[1] + 1;
  if (wide > STEPS * 16) return qn_refuse(out, "a window, and seven strides, of 96 elements", "w", "96", "%.0f", wide);
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  rows p = {};
  cuda_chain chain;
  qn_status status = cuda_conv_problem_read_volume(&c, r, out);
  if (!status) status = check(r, &c, out);
  if (status) return status;
  const bool data = c.mode == CUDA_CONV_DATA;
  qn_request alone = *r;
  if (c.x->rank != 4) alone.n_ops = 1;                      /* followers are addressed in two spatial dims */
  if ((status = cuda_conv_problem_bias_relu(&c, &alone, &chain, &p.column, &p.factor, &p.relu, out))) return status;
  const qn_value *in = data ? c.y : c.x, *to = &r->value[chain.out];
  if (!qn_is_packed(to)) return qn_refuse(out, "packed planes", "y", "nchw", "%s", "other strides");
  const int64_t reach = (c.size[1] - 1) * c.dilation[1];
  p.in = (int32_t)(data ? c.out[1] : c.in[1]), p.out = (int32_t)(data ? c.in[1] : c.out[1]);
  p.channels = (int32_t)c.channels, p.taps = (int32_t)c.size[1], p.flip = data;
  p.stride = (int32_t)c.stride[1], p.dilation = (int32_t)c.dilation[1], p.before = (int32_t)(data ? reach - c.before[1] : c.before[1]);
  p.w_stride[0] = c.w->stride[0], p.w_stride[1] = c.w_stride[1];
  const int64_t lines = c.in[0] * c.in[2], n_rows = c.x->dim[0] * c.channels * lines;
  p.parts = (int32_t)qn_ceil_div(p.out, TILE * MOST);
  p.tiles = (int32_t)qn_ceil_div(qn_ceil_div(p.out, p.parts), TILE);
  p.steps_k = (int32_t)qn_ceil_div(7 * c.stride[1] + reach + 1, 16);
  p.count = (int32_t)((p.tiles * TILE - 8) * c.stride[1] + p.steps_k * 16);
  const int64_t items = n_rows * p.parts;
  if (items > INT32_MAX - WARPS) return qn_refuse(out, "rows that 31 bits count", "x", "fewer", "%lld", (long long)items);
  p.rows = (int32_t)n_rows;
  p.by_part = cuda_divide_by(p.parts), p.by_plane = cuda_divide_by(lines);
  p.out_dtype = to->dtype, p.pairs = to->dtype == in->dtype && p.out % 2 == 0 && to->align >= 4;
  p.steps = chain.steps;

  const void *function = in->dtype == QN_F16 ? (const void *)depthwise_rows<mma_f16, QN_F16>
                                             : (const void *)depthwise_rows<mma_bf16, QN_BF16>;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, function, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)qn_ceil_div(items, WARPS), k->grid[1] = k->grid[2] = 1;
  k->threads = WARPS * 32, k->shared = (uint32_t)(WARPS * p.count * 2);
  cuda_conv_kernel_pointer(k, data ? c.y_at : c.x_at, offsetof(rows, x));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(rows, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(rows, steps), offsetof(rows, y));
  const double moved = (double)(qn_elements(in) * 2 + qn_elements(to) * (int64_t)qn_kit_bytes(to->dtype)) / 2500;
  const double instructions = (double)items * (250 + 12.0 * p.steps_k + p.count / 4.0 + p.tiles * (60 + 6.0 * p.steps_k));
  const double issued = instructions / (r->device->units * 4 * 1.7 * 0.8);
  out->estimate = 4000 + (moved > issued ? moved : issued);
  out->numerics.accumulator = QN_ACC_F32_TC;
  return QN_OK;
}

#define ROW(op, pattern) { "depthwise_rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES, \
                        nullptr, pattern, prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr) };
CUDA_ENGINES(conv_depthwise_rows) = { row, sizeof row / sizeof *row };
