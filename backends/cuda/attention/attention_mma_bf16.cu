/* attention_mma_bf16.cu -- the kernels of attention_mma.cuh on bf16, and what clears the results of tokens that are in no sequence. */
#include "attention_mma.cuh"

#define KERNEL(d, bn, rows) ATTENTION_MANY(MMA_BF16, d, bn, rows)
const cuda_attention_many_kernel cuda_attention_many_bf16[] = { CUDA_ATTENTION_MANY_SHAPES(KERNEL) {} };

__global__ void attention_clear(const __grid_constant__ cuda_attention_many a)
{
  const int h = blockIdx.y;
  for (int64_t i = blockIdx.x; i < a.queries; i += gridDim.x) {
    const int64_t at = h * a.y_stride[1] + i * a.y_stride[2];
    for (int c = threadIdx.x; c < a.dv; c += blockDim.x) attention_store(a, at, c, 0, true);
    if (threadIdx.x == 0 && a.lse) a.lse[h * a.lse_stride[1] + i * a.lse_stride[2]] = -INFINITY;
    if (threadIdx.x == 0 && a.max) a.max[h * a.max_stride[1] + i * a.max_stride[2]] = -INFINITY;
  }
}

qn_status cuda_attention_clear(const cuda_attention_many *a, void *stream)
{
  if (!a->queries || !a->heads) return QN_OK;
  const dim3 grid((unsigned)qn_min_i64(a->queries, 4096), (unsigned)a->heads);
  attention_clear<<<grid, 64, 0, (cudaStream_t)stream>>>(*a);
  return cuda_check(cudaGetLastError(), "attention_clear");
}
