/* conv_few.cu -- 1x1 convolution of planes into at most eight channels, or from at most eight, on FP32 cores: the last layers of
 * segmentation, heads, images' channels. f32, f16, bf16; forward and backward data (x and y, filters and channels change places).
 *
 *   y[n, k, p] = sum over channels c of w[k, c] x[n, c, p]
 *
 * There is little to multiply and all of x or y to move: a thread has 16 bytes of pixels, and either sums of all filters, into which it
 * takes channel after channel, or all channels, from which it makes filter after filter. Filters are in shared memory, in f32.
 *
 * Refused: sums over more than 4096 terms, which would need a second level; pixels that are no whole vectors. */
#include "conv_kernel.h"
#include "conv_store.cuh"
#include "kit/divisor.h"
#include "kit/vector.cuh"
#include "engines.h"

enum { THREADS = 128, TERMS = 4096, FEW = 8, AT_ONCE = 8 };

struct few {
  const void *x, *w;
  void    *y;
  int32_t  channels, filters;             /* summed over and written */
  int32_t  vectors;                       /* of all images' planes */
  cuda_divisor by_plane;                  /* vectors of a plane */
  int64_t  x_stride[2], y_stride[2], w_stride[2];           /* image, channel; filter, channel */
  int32_t  column, factor, relu;          /* operands of bias and fold (-1: none) */
  cuda_steps steps;
};

/* The end of filter k's sums of V pixels from element `at` on. */
template <int dtype, int V> __device__ __forceinline__ void put(const few &p, float (&v)[V], int k, int64_t at)
{
  float bias = 0;
  if (p.column >= 0) {
    const cuda_operand &o = p.steps.operand[p.column];
    bias = element_load<float>(o.p, k * o.stride[1], dtype3(o.dtype));
  }
  const column_fold fold = fold_of(p.steps, p.factor, k);
#pragma unroll
  for (int i = 0; i < V; i++) {
    v[i] = folded(v[i] + bias, fold);
    if (p.relu) v[i] = v[i] < 0 ? 0 : v[i];                 /* keeps NaN */
  }
  vector_store_whole<dtype>(v, p.y, at + k * p.y_stride[1]);
}

/* from: channels are the few, not filters. FEW_: how many there may be */
template <int dtype, bool from, int FEW_> __global__ void __launch_bounds__(THREADS) conv_few(const __grid_constant__ few p)
{
  static_assert(sizeof(few) <= CUDA_CONV_PARAMETERS, "room for them in the state");
  constexpr int V = dtype == QN_F32 ? 4 : 8;
  extern __shared__ float filters[];      /* of each of the many, FEW_ */
  const int many = from ? p.filters : p.channels, some = from ? p.channels : p.filters;
  for (int e = threadIdx.x; e < many * FEW_; e += THREADS) {
    const int of = e / FEW_, one = e % FEW_;
    filters[e] = one < some ? element_load<float>(p.w, (from ? of : one) * p.w_stride[0] + (from ? one : of) * p.w_stride[1], dtype) : 0;
  }
  __syncthreads();
  const int vector = blockIdx.x * THREADS + threadIdx.x;
  if (vector >= p.vectors) return;
  uint32_t pixel, image = cuda_quotient(vector, p.by_plane, &pixel);
  const int64_t at = image * p.x_stride[0] + pixel * V, to = image * p.y_stride[0] + pixel * V;
  float held[FEW_][V] = {};               /* sums; from few: channels */
  if constexpr (from) {
#pragma unroll
    for (int c = 0; c < FEW_; c++)
      if (c < p.channels) vector_load_whole<dtype>(held[c], p.x, at + c * p.x_stride[1]);
#pragma unroll 1
    for (int k = 0; k < p.filters; k++) {
      float v[V] = {};
#pragma unroll
      for (int c = 0; c < FEW_; c++)
        if (c < p.channels)
#pragma unroll
          for (int i = 0; i < V; i++) v[i] = fmaf(held[c][i], filters[k * FEW_ + c], v[i]);
      put<dtype>(p, v, k, to);
    }
  } else {
#pragma unroll 1
    for (int c0 = 0; c0 < p.channels; c0 += AT_ONCE) {
      uint4 raw[AT_ONCE];
#pragma unroll
      for (int j = 0; j < AT_ONCE; j++)
        if (c0 + j < p.channels) raw[j] = *(const uint4 *)((const char *)p.x + (at + (c0 + j) * p.x_stride[1]) * (16 / V));
#pragma unroll
      for (int j = 0; j < AT_ONCE; j++) {
        if (c0 + j >= p.channels) break;
        float v[V];
        vector_load_whole<dtype>(v, &raw[j], 0);
#pragma unroll
        for (int k = 0; k < FEW_; k++)
#pragma unroll
          for (int i = 0; i < V; i++) held[k][i] = fmaf(v[i], filters[(c0 + j) * FEW_ + k], held[k][i]);
      }
    }
#pragma unroll
    for (int k = 0; k < FEW_; k++)
      if (k < p.filters) put<dtype>(p, held[k], k, to);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

#define KERNELS(dtype) { { (const void *)conv_few<dtype, false, 4>, (const void *)conv_few<dtype, false, FEW> }, \
                         { (const void *)conv_few<dtype, true, 4>, (const void *)conv_few<dtype, true, FEW> } }
static const void *const kernels[3][2][2] = { KERNELS(QN_F32), KERNELS(QN_F16), KERNELS(QN_BF16) };

/* Elements of a plane that is contiguous, in whole vectors of 16 bytes; 0: it is not. */
static int64_t plane_of(const qn_value *v, int64_t unit)
{
  int64_t pixels = 1;
  for (int d = v->rank - 1; d >= 2; d--) {
    if (v->dim[d] > 1 && v->stride[d] != pixels) return 0;
    pixels *= v->dim[d];
  }
  for (int d = 0; d < 2; d++)
    if (v->dim[d] > 1 && v->stride[d] % unit) return 0;
  return v->align >= 16 && pixels % unit == 0 ? pixels : 0;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  few p = {};
  cuda_chain chain;
  qn_status status = cuda_conv_problem_read_volume(&c, r, out);
  if (!status) status = cuda_conv_wants_ampere(r, out);
  if (status) return status;
  const bool data = c.mode == CUDA_CONV_DATA;
  for (int d = 0; d < 3; d++)
    if (c.size[d] != 1 || c.stride[d] != 1 || c.before[d] || c.in[d] != c.out[d])
      return qn_refuse(out, "filters of one tap, stride of 1, no padding", "w", "1", "%lld", (long long)c.size[d]);
  if (c.groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)c.groups);
  qn_request alone = *r;
  if (c.x->rank != 4) alone.n_ops = 1;                      /* followers are addressed in two spatial dims */
  if ((status = cuda_conv_problem_bias_relu(&c, &alone, &chain, &p.column, &p.factor, &p.relu, out))) return status;
  const qn_value *x = data ? c.y : c.x, *y = &r->value[chain.out];
  if (y->dtype != x->dtype) return qn_refuse(out, "dtypes", "y", "that of x", "%s", qn_kit_name(y->dtype));
  const int64_t unit = 16 / (int64_t)qn_kit_bytes(x->dtype), pixels = plane_of(x, unit);
  if (!pixels || !plane_of(y, unit))
    return qn_refuse(out, "contiguous planes of whole vectors", cuda_conv_name(&c, x), "nchw, aligned to 16 bytes", "%s", "other strides");
  const int64_t channels = x->dim[1], filters = y->dim[1], some = qn_min_i64(channels, filters), many = qn_max_i64(channels, filters);
  if (some > FEW) return qn_refuse(out, "at most 8 channels, or filters", "w", "8", "%lld", (long long)some);
  const int each = some <= 4 ? 4 : FEW;
  if (channels > TERMS) return qn_refuse(out, "at most 4096 terms in a sum", "w", "4096", "%lld", (long long)channels);
  if (many * each * 4 > 48 << 10)
    return qn_refuse(out, "filters in shared memory", "w", "48 KB of f32", "%lld", (long long)(many * each * 4));
  const int64_t vectors = x->dim[0] * pixels / unit;
  if (vectors > INT32_MAX - THREADS) return qn_refuse(out, "vectors that 31 bits count", "x", "fewer", "%lld", (long long)vectors);
  const bool from = channels < filters;
  p.channels = (int32_t)channels, p.filters = (int32_t)filters, p.vectors = (int32_t)vectors;
  p.by_plane = cuda_divide_by(pixels / unit);
  for (int d = 0; d < 2; d++) p.x_stride[d] = x->stride[d], p.y_stride[d] = y->stride[d], p.w_stride[d] = c.w->stride[data ? 1 - d : d];
  p.steps = chain.steps;

  const int which = x->dtype == QN_F32 ? 0 : x->dtype == QN_F16 ? 1 : 2;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, kernels[which][from][each == FEW], &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)qn_ceil_div(vectors, THREADS), k->grid[1] = k->grid[2] = 1;
  k->threads = THREADS, k->shared = (uint32_t)(many * each * 4);
  cuda_conv_kernel_pointer(k, data ? c.y_at : c.x_at, offsetof(few, x));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(few, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(few, steps), offsetof(few, y));
  /* few threads take channel after channel, eight in flight, or store one filter after another */
  const double bytes = (double)(qn_elements(x) + qn_elements(y)) * (double)qn_kit_bytes(x->dtype);
  const double instructions = (double)vectors / 32 * (double)many * (double)unit * (each + 1.5);
  const double issued = instructions / (r->device->units * 4 * 1.7 * 0.7);
  const double in_turn = (double)qn_ceil_div(many, AT_ONCE) * (from ? 100 : 700);
  double most = bytes / 3600;
  if (issued > most) most = issued;
  out->estimate = 3500 + (in_turn > most ? in_turn : most);
  return QN_OK;
}

#define ROW(op, pattern) { "few", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, nullptr, pattern, \
                        prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr) };
CUDA_ENGINES(conv_few) = { row, sizeof row / sizeof *row };
