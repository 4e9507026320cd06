/* norm_parts.cuh -- second pass of dscale and dshift: adds up the partial sums of the blocks that shared the rows. */
#pragma once
#include "cuda_backend.h"
#include "kit/element.cuh"
#include "kit/sm90.cuh"
#include "kit/sums.cuh"

struct column_parts {
  const float *part;                      /* [jobs, n, length] */
  void    *to[2];
  uint32_t dtype[2];
  int32_t  n, jobs;
  bool     early;                         /* launched early (programmatic dependent launch); it then waits for the producers */
  int64_t  length;
};

/* 32 x 32 threads add 32 columns. All loads of a thread (up to 160 blocks) are in flight at once; the order of the sum is fixed. */
__global__ static void __launch_bounds__(1024) add_parts(const __grid_constant__ column_parts a)
{
  constexpr int U = 5;
  __shared__ float shared[32][33];
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  const int64_t columns = a.n * a.length, from = blockIdx.x * (int64_t)32;
  float sum = 0;
#if __CUDA_ARCH__ >= 900
  grid_dependency_wait();
#endif
  if (from + x < columns)
    for (int b = y; b < a.jobs; b += 32 * U) {
      float v[U];
#pragma unroll
      for (int u = 0; u < U; u++) v[u] = b + 32 * u < a.jobs ? a.part[(b + 32 * u) * columns + from + x] : 0;
#pragma unroll
      for (int u = 0; u < U; u++) sum += v[u];
    }
  shared[y][x] = sum;
  __syncthreads();
  sum = warp_sum(shared[x][y]);
  const int64_t j = from + y;
  if (x || j >= columns) return;
  const int which = j >= a.length;
  element_store(a.to[which], j - which * a.length, dtype3(a.dtype[which]), sum);
}

/* wanted: value numbers of dscale and dshift; -1: absent. */
static column_parts column_parts_of(const qn_request *r, const int32_t (&wanted)[2], int32_t jobs, int64_t length)
{
  column_parts a = {};
  for (int i = 0; i < 2; i++)
    if (wanted[i] >= 0) a.dtype[a.n++] = r->value[wanted[i]].dtype;
  a.jobs = jobs, a.length = length;
  a.early = r->device->arch_major >= 9;
  return a;
}
static uint64_t column_parts_bytes(const column_parts *a) { return (uint64_t)a->jobs * (uint64_t)(a->n * a->length) * sizeof(float); }
/* Where the first job writes its sums in the workspace; returns the stride between jobs. */
static int64_t column_parts_place(column_parts *a, const int32_t (&wanted)[2], const qn_launch *launch, float *(&place)[2])
{
  a->part = (float *)launch->workspace;
  for (int i = 0, n = 0; i < 2; i++) {
    place[i] = wanted[i] < 0 ? nullptr : (float *)launch->workspace + n * a->length;
    if (wanted[i] >= 0) a->to[n++] = launch->ptr[wanted[i]];
  }
  return a->n * a->length;
}
static qn_status column_parts_add(const column_parts &a, cudaStream_t stream)
{
  if (!a.n) return QN_OK;
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)qn_ceil_div(a.n * a.length, 32));
  config.blockDim = dim3(1024);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = a.early;
  void *arguments[] = { (void *)&a };
  return cuda_check(cudaLaunchKernelExC(&config, (const void *)add_parts, arguments), "add_parts");
}
