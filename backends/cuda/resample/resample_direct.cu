/* resample_direct.cu -- resampling (nearest, linear, cubic) and its gradient, in double: any strides, sizes and dtypes.
 *
 *   y    the sum over its taps of the product of each dim's weight times x; a tap of weight 0 is not read
 *   antialias: a tap j of output i has the kernel's weight at ((2j + 1) P - (2i + 1) X) / (2 max(X, P)) over the sum of these inside x
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

/* ---- antialias ------------------------------------------------------------------------------------------------- */

__device__ static double wide_kernel(const ruler &r, bool cubes, int64_t i, int64_t j)
{
  const int64_t x = r.ratio_places, y = r.ratio_points;
  const double z = fabs((double)((2 * j + 1) * y - (2 * i + 1) * x)) / (double)(2 * (x > y ? x : y));
  return cubes ? z < 2 ? cubic(z, r.cubic) : 0 : z < 1 ? 1 - z : 0;
}

/* The elements j of n whose (2j + 1) by is within the kernel's reach of (2i + 1) of, and perhaps one on either side. */
__device__ static void wide_range(const ruler &r, bool cubes, int64_t i, int64_t of, int64_t by, int64_t n, int64_t *first, int64_t *end)
{
  const int64_t reach = 2 * (of > by ? of : by) * (cubes ? 2 : 1);
  const int64_t from = floor_div<int64_t>((2 * i + 1) * of - reach - by, 2 * by);
  const int64_t to = floor_div<int64_t>((2 * i + 1) * of + reach - by, 2 * by) + 2;
  *first = from < 0 ? 0 : from, *end = to > n ? n : to;
}

__device__ static double wide_total(const ruler &r, bool cubes, int64_t i)
{
  int64_t first, end;
  double sum = 0;
  wide_range(r, cubes, i, r.ratio_places, r.ratio_points, r.places, &first, &end);
  for (int64_t j = first; j < end; j++) sum += wide_kernel(r, cubes, i, j);
  return sum;
}

__global__ static void __launch_bounds__(128) resample_wide(const __grid_constant__ resampling s, int64_t units, bool back)
{
  const bool cubes = s.mode == QN_RESAMPLE_CUBIC;
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<int64_t> at = cell_of<int64_t, 1, 1>(s, unit, s.out_dim);
    int64_t first[3], end[3], j[3] = {}, from = image_of(at, s.in_stride, s.in_layer);
    double sum[1] = { 0 }, v[1], total = 1;
    for (int d = 0; d < 3; d++) {
      const ruler &r = s.dim[d];
      if (back) wide_range(r, cubes, at.o[d], r.ratio_points, r.ratio_places, r.points, &first[d], &end[d]);
      else {
        wide_range(r, cubes, at.o[d], r.ratio_places, r.ratio_points, r.places, &first[d], &end[d]);
        total *= wide_total(r, cubes, at.o[d]);
      }
    }
    const auto weight = [&](int d) {
      const ruler &r = s.dim[d];
      if (!back) return wide_kernel(r, cubes, at.o[d], j[d]);
      const double w = wide_kernel(r, cubes, j[d], at.o[d]);
      return w != 0 ? w / wide_total(r, cubes, j[d]) : 0.0;
    };
    for (j[0] = first[0]; j[0] < end[0]; j[0]++) {
      const double outer = weight(0);
      for (j[1] = first[1]; j[1] < end[1] && outer != 0; j[1]++) {
        const double middle = outer * weight(1);
        for (j[2] = first[2]; j[2] < end[2] && middle != 0; j[2]++) {
          const double w = middle * weight(2);
          if (w == 0) continue;
          load(v, s.in, s.in_dtype, from + j[0] * s.in_stride[2] + j[1] * s.in_stride[3] + j[2] * s.in_stride[4]);
          sum[0] += w / total * v[0];
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
  if (((const qn_resampling *)k->attr)->antialias) {
    const int64_t units = spatial_units(&s, 1, 1);
    resample_wide<<<direct_blocks(units, 128), 128, 0, stream>>>(s, units, !forward);
  } else if (s.mode == QN_RESAMPLE_NEAREST) launch_mode<QN_RESAMPLE_NEAREST>(s, forward, stream);
  else if (s.mode == QN_RESAMPLE_LINEAR) launch_mode<QN_RESAMPLE_LINEAR>(s, forward, stream);
  else launch_mode<QN_RESAMPLE_CUBIC>(s, forward, stream);
  return direct_launched("resample");
}

static const qn_engine row[] = { DIRECT_ROW(QN_OP_RESAMPLE, run_direct), DIRECT_ROW(QN_OP_RESAMPLE_BACKWARD, run_direct) };
CUDA_ENGINES(resample_direct) = { row, sizeof row / sizeof *row };
