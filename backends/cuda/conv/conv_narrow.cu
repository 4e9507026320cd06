/* conv_narrow.cu -- f32 convolution with 3x3 filters of at most four channels (a first layer), on FP32 cores, with bias, fold and
 * relu fused. Any layout of x and w; y with contiguous W.
 *
 *   y[n, k, p, q] = sum over channels and taps of x[n, c, p + r - pad, q + s - pad] w[k, c, r, s]
 *
 * A block has 64 filters of an 8x32 tile, with the input tile and the filters in shared memory; a warp has eight filters, a
 * thread two groups of four neighbouring outputs. */
#include "conv_kernel.h"
#include "conv_store.cuh"
#include "engines.h"
#include "kit/sm80.cuh"

enum { CHANNELS = 4, THREADS = 256, SLICE = 64, MINE = 8, ROWS = 8, COLUMNS = 32, HALF = COLUMNS / 2, X_PITCH = COLUMNS + 4, TAPS = 9 };

struct narrow {
  const float *x, *w;
  float   *y;
  int32_t  channels, filters, in[2], out[2], before[2];
  int32_t  column, factor, relu;          /* operands of bias and fold (-1: none) */
  int32_t  across, image;                 /* tiles of a row, of an image */
  int64_t  x_stride[4], w_stride[4], y_stride[3];
  cuda_steps steps;
};

__global__ void __launch_bounds__(THREADS, 2) conv_narrow(const __grid_constant__ narrow p)
{
  __shared__ float4 x4[CHANNELS * (ROWS + 2) * X_PITCH / 4], w4[CHANNELS * TAPS * SLICE / 4];
  float *x = (float *)x4, *w = (float *)w4;
  int n = blockIdx.x / p.image, rest = blockIdx.x - n * p.image, tile = rest / p.across, y0 = tile * ROWS,
      x0 = (rest - tile * p.across) * COLUMNS;
  int k0 = blockIdx.y * SLICE, taps = p.channels * TAPS;
  for (int i = threadIdx.x; i < p.channels * (ROWS + 2) * (COLUMNS + 2); i += THREADS) {
    int line = i / (COLUMNS + 2), column = i - line * (COLUMNS + 2), c = line / (ROWS + 2), row = line - c * (ROWS + 2);
    int h = y0 + row - p.before[0], v = x0 + column - p.before[1];
    bool there = (unsigned)h < (unsigned)p.in[0] && (unsigned)v < (unsigned)p.in[1];
    const float *from = there ? p.x + n * p.x_stride[0] + c * p.x_stride[1] + h * p.x_stride[2] + v * p.x_stride[3] : p.x;
    copy_async<4>(shared_address(x + line * X_PITCH + column), from, there ? 4 : 0);
  }
  for (int i = threadIdx.x; i < taps * SLICE; i += THREADS) {
    int k = i / taps, t = i - k * taps, c = t / TAPS, r = (t - c * TAPS) / 3, s = t % 3;
    bool there = k0 + k < p.filters;
    const float *from = there ? p.w + (k0 + k) * p.w_stride[0] + c * p.w_stride[1] + r * p.w_stride[2] + s * p.w_stride[3] : p.w;
    copy_async<4>(shared_address(w + t * SLICE + k), from, there ? 4 : 0);
  }
  copy_async_commit();
  copy_async_wait<0>();
  __syncthreads();

  int lane = threadIdx.x % 32, k = threadIdx.x / 32 * MINE, row = lane / 4, column = lane % 4 * 4;
  float sum[2][4][MINE] = {};
  for (int c = 0; c < p.channels; c++)
#pragma unroll
    for (int r = 0; r < 3; r++) {
      float seen[2][6];
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const float *from = x + (c * (ROWS + 2) + row + r) * X_PITCH + half * HALF + column;
        float4 a = *(const float4 *)from;
        float2 b = *(const float2 *)(from + 4);
        seen[half][0] = a.x, seen[half][1] = a.y, seen[half][2] = a.z, seen[half][3] = a.w, seen[half][4] = b.x, seen[half][5] = b.y;
      }
#pragma unroll
      for (int s = 0; s < 3; s++) {
        const float4 *filter = (const float4 *)(w + (c * TAPS + r * 3 + s) * SLICE + k);
        float4 a = filter[0], b = filter[1];
        float of[MINE] = { a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w };
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
          for (int i = 0; i < 4; i++)
#pragma unroll
            for (int m = 0; m < MINE; m++) sum[half][i][m] = fmaf(seen[half][i + s], of[m], sum[half][i][m]);
      }
    }

  if (y0 + row >= p.out[0]) return;
#pragma unroll
  for (int m = 0; m < MINE; m++) {
    if (k0 + k + m >= p.filters) return;
    float bias = 0;
    column_fold fold = fold_of(p.steps, p.factor, k0 + k + m);
    if (p.column >= 0) {
      const cuda_operand &o = p.steps.operand[p.column];
      bias = element_load<float>(o.p, (k0 + k + m) * o.stride[1], o.dtype);
    }
    float *to = p.y + n * p.y_stride[0] + (k0 + k + m) * p.y_stride[1] + (y0 + row) * p.y_stride[2] + x0 + column;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float v[4];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        v[i] = folded(sum[half][i][m] + bias, fold);
        if (p.relu) v[i] = v[i] < 0 ? 0 : v[i];             /* keeps NaN */
      }
      if (x0 + half * HALF + column < p.out[1]) *(float4 *)(to + half * HALF) = make_float4(v[0], v[1], v[2], v[3]);
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  qn_status status = cuda_conv_problem_read(&c, r, out);
  if (status || (status = cuda_conv_wants_narrow(&c, out))) return status;
  cuda_chain chain;
  narrow p = {};
  if ((status = cuda_conv_problem_bias_relu(&c, r, &chain, &p.column, &p.factor, &p.relu, out))) return status;
  const qn_value *y = &r->value[chain.out];
  if (y->dtype != QN_F32 || !cuda_conv_rows_of_vectors(y))
    return qn_refuse(out, "rows of whole vectors of 16 bytes", "y", "a multiple of 4", "%lld", (long long)c.out[1]);
  p.channels = (int32_t)c.channels, p.filters = (int32_t)c.filters;
  for (int d = 0; d < 2; d++) p.in[d] = (int32_t)c.in[d], p.out[d] = (int32_t)c.out[d], p.before[d] = (int32_t)c.before[d];
  for (int d = 0; d < 4; d++) p.x_stride[d] = c.x->stride[d], p.w_stride[d] = c.w->stride[d];
  for (int d = 0; d < 3; d++) p.y_stride[d] = y->stride[d];
  int64_t across = qn_ceil_div(c.out[1], COLUMNS), image = across * qn_ceil_div(c.out[0], ROWS), slices = qn_ceil_div(c.filters, SLICE);
  if (image * c.x->dim[0] > INT32_MAX || slices > 65535) return qn_refuse(out, "a grid of blocks", "y", "fewer", "%s", "more");
  p.across = (int32_t)across, p.image = (int32_t)image;
  p.steps = chain.steps;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, (const void *)conv_narrow, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)(image * c.x->dim[0]), k->grid[1] = (uint32_t)slices;
  k->threads = THREADS;
  cuda_conv_kernel_pointer(k, c.x_at, offsetof(narrow, x));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(narrow, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(narrow, steps), offsetof(narrow, y));
  double rounds = (double)qn_ceil_div(image * c.x->dim[0] * slices, 2 * r->device->units);
  out->estimate = 4000 + rounds * (1000 + 1500 * (double)c.channels);
  return QN_OK;
}

static const qn_engine row[] = {
  { "narrow", QN_OP_CONV_FORWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,
    nullptr, &cuda_chain_pattern, prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release },
};
CUDA_ENGINES(conv_narrow) = { row, sizeof row / sizeof *row };
