/* conv_layout.cu -- before the product: a strided convolution's gradient with zeros between its pixels, so that its gradient by
 * the data becomes one of stride 1. After it: the parts of a gradient by the filter summed in order. */
#include "conv_layout.h"
#include "cuda_backend.h"
#include "vector.cuh"

struct spread { int64_t units, n_stride, h_stride, w_stride; uint32_t c8, w, h, step_h, step_w; };        /* strides in elements of from */

__global__ void __launch_bounds__(256) conv_spread(uint4 *to, const uint16_t *from, const __grid_constant__ spread s)
{
  int64_t unit = blockIdx.x * (int64_t)256 + threadIdx.x;
  if (unit >= s.units) return;
  uint32_t c = (uint32_t)(unit % s.c8);
  int64_t rest = unit / s.c8;
  uint32_t w = (uint32_t)(rest % s.w);
  rest /= s.w;
  uint32_t h = (uint32_t)(rest % s.h);
  uint4 v = make_uint4(0, 0, 0, 0);
  if (h % s.step_h == 0 && w % s.step_w == 0)
    v = *(const uint4 *)(from + rest / s.h * s.n_stride + h / s.step_h * s.h_stride + w / s.step_w * s.w_stride + c * 8);
  to[unit] = v;
}

qn_status cuda_conv_spread(void *to, const void *from, const int64_t dim[4], const int64_t stride[3], int step_h, int step_w, void *stream)
{
  spread s = {};
  s.c8 = (uint32_t)(dim[3] / 8);
  s.h = (uint32_t)((dim[1] - 1) * step_h + 1);
  s.w = (uint32_t)((dim[2] - 1) * step_w + 1);
  s.units = dim[0] * s.h * s.w * s.c8;
  s.n_stride = stride[0], s.h_stride = stride[1], s.w_stride = stride[2];
  s.step_h = (uint32_t)step_h, s.step_w = (uint32_t)step_w;
  conv_spread<<<(unsigned)qn_ceil_div(s.units, 256), 256, 0, (cudaStream_t)stream>>>((uint4 *)to, (const uint16_t *)from, s);
  return cuda_check(cudaGetLastError(), "conv_spread");
}

__global__ void __launch_bounds__(128) conv_join(void *to, uint32_t dtype, const float *from, int parts, int64_t n)
{
  int64_t i = (blockIdx.x * (int64_t)128 + threadIdx.x) * 4;
  if (i >= n) return;
  float sum[4] = {0, 0, 0, 0};
#pragma unroll 4
  for (int p = 0; p < parts; p++) {
    float v[4];
    vector_load(v, from, QN_F32, p * n + i, 1, (int)min((int64_t)4, n - i));
#pragma unroll
    for (int k = 0; k < 4; k++) sum[k] += v[k];
  }
  vector_store(sum, to, dtype, i, 1, (int)min((int64_t)4, n - i));
}

/* Many parts of few elements: SLICES threads for each element add every SLICES-th part, and their sums are added in order. */
enum { SLICES = 16 };
__global__ void __launch_bounds__(32 * SLICES) conv_join_many(void *to, uint32_t dtype, const float *from, int parts, int64_t n)
{
  __shared__ float sums[SLICES][33];
  int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  int64_t i = blockIdx.x * (int64_t)32 + lane;
  float sum = 0;
  if (i < n) {
#pragma unroll 8
    for (int p = slice; p < parts; p += SLICES) sum += from[p * n + i];
  }
  sums[slice][lane] = sum;
  __syncthreads();
  if (slice || i >= n) return;
#pragma unroll
  for (int s = 1; s < SLICES; s++) sum += sums[s][lane];
  element_store(to, i, dtype, sum);
}

qn_status cuda_conv_join(void *to, uint32_t dtype, const float *from, int parts, int64_t n, void *stream)
{
  if (parts >= 2 * SLICES && n < 1 << 18) conv_join_many<<<(unsigned)qn_ceil_div(n, 32), 32 * SLICES, 0, (cudaStream_t)stream>>>(to, dtype, from, parts, n);
  else conv_join<<<(unsigned)qn_ceil_div(n, 512), 128, 0, (cudaStream_t)stream>>>(to, dtype, from, parts, n);
  return cuda_check(cudaGetLastError(), "conv_join");
}
