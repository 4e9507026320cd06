/* conv_layout.cu -- adds the partial sums of a gradient by the filter, in a fixed order. */
#include "conv_layout.h"
#include "cuda_backend.h"
#include "vector.cuh"

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

/* Many parts of few elements: SLICES threads an element add every SLICES-th part, then their sums are added in order. */
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
  if (parts >= 2 * SLICES && n < 1 << 18)
    conv_join_many<<<(unsigned)qn_ceil_div(n, 32), 32 * SLICES, 0, (cudaStream_t)stream>>>(to, dtype, from, parts, n);
  else conv_join<<<(unsigned)qn_ceil_div(n, 512), 128, 0, (cudaStream_t)stream>>>(to, dtype, from, parts, n);
  return cuda_check(cudaGetLastError(), "conv_join");
}
