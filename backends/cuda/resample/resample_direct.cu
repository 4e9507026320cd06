/* resample_direct.cu -- resampling (nearest, linear, cubic) and its gradient, in double: any strides, sizes and dtypes.
 *
 *   y    the sum over its taps of the product of each dim's weight times x; a tap of weight 0 is not read
 *   dx   the sum over the outputs that have it as a tap of dy times its weight, gathered */
#include "engines.h"
#include "resample.cuh"

template <int MODE> __global__ static void __launch_bounds__(128) resample_direct(const __grid_constant__ resampling s, int64_t units)
{
  typedef point<double, int64_t, MODE> spot;
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<int64_t> at = cell_of<int64_t, 1, 1>(s, unit, s.out_dim);
    spot p[3] = { { s.dim[0], at.o[0] }, { s.dim[1], at.o[1] }, { s.dim[2], at.o[2] } };
    double weight[3][spot::TAPS], sum[1] = { 0 }, v[1];
    for (int d = 0; d < 3; d++) p[d].weights(s.dim[d], weight[d]);
    int64_t from = image_of(at, s.in_stride, s.in_layer);
    for (int a = 0; a < spot::TAPS; a++)
      for (int b = 0; b < spot::TAPS; b++)
        for (int c = 0; c < spot::TAPS; c++) {
          double w = weight[0][a] * weight[1][b] * weight[2][c];
          if (w == 0) continue;
          load(v, s.in, s.in_dtype,
               from + p[0].place(s.dim[0], a) * s.in_stride[2] + p[1].place(s.dim[1], b) * s.in_stride[3] +
                   p[2].place(s.dim[2], c) * s.in_stride[4]);
          sum[0] += w * v[0];
        }
    store(sum, s.out, s.out_dtype, offset_of(at, s.out_stride, s.out_layer));
  }
}

template <int MODE>
__global__ static void __launch_bounds__(128) resample_backward_direct(const __grid_constant__ resampling s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<int64_t> at = cell_of<int64_t, 1, 1>(s, unit, s.out_dim);
    int64_t begin[3], end[3], from = image_of(at, s.in_stride, s.in_layer);
    double sum[1] = { 0 }, v[1];
    for (int d = 0; d < 3; d++) points_near<int64_t>(s.dim[d], at.o[d], &begin[d], &end[d]);
    for (int64_t a = begin[0]; a < end[0]; a++) {
      double outer = weight_in<double, int64_t, MODE>(s.dim[0], a, at.o[0]);
      for (int64_t b = begin[1]; b < end[1] && outer != 0; b++) {
        double middle = outer * weight_in<double, int64_t, MODE>(s.dim[1], b, at.o[1]);
        for (int64_t c = begin[2]; c < end[2] && middle != 0; c++) {
          double w = middle * weight_in<double, int64_t, MODE>(s.dim[2], c, at.o[2]);
          if (w == 0) continue;
          load(v, s.in, s.in_dtype, from + a * s.in_stride[2] + b * s.in_stride[3] + c * s.in_stride[4]);
          sum[0] += w * v[0];
        }
      }
    }
    store(sum, s.out, s.out_dtype, offset_of(at, s.out_stride, s.out_layer));
  }
}

template <int MODE> static void launch_mode(const resampling &s, bool forward, cudaStream_t stream)
{
  int64_t units = spatial_units(&s, 1, 1);
  unsigned blocks = direct_blocks(units, 128);
  if (forward) resample_direct<MODE><<<blocks, 128, 0, stream>>>(s, units);
  else resample_backward_direct<MODE><<<blocks, 128, 0, stream>>>(s, units);
}

static qn_status run_direct(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  bool forward = k->op == QN_OP_RESAMPLE;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  resampling s = resampling_of((const qn_resampling *)k->attr, forward, &k->value[0], &k->value[1]);
  s.in = launch->ptr[k->number[0]];
  s.out = launch->ptr[k->number[1]];
  if (s.mode == QN_RESAMPLE_NEAREST) launch_mode<QN_RESAMPLE_NEAREST>(s, forward, stream);
  else if (s.mode == QN_RESAMPLE_LINEAR) launch_mode<QN_RESAMPLE_LINEAR>(s, forward, stream);
  else launch_mode<QN_RESAMPLE_CUBIC>(s, forward, stream);
  return direct_launched("resample");
}

static const qn_engine row[] = { DIRECT_ROW(QN_OP_RESAMPLE, run_direct), DIRECT_ROW(QN_OP_RESAMPLE_BACKWARD, run_direct) };
CUDA_ENGINES(resample_direct) = { row, sizeof row / sizeof *row };
