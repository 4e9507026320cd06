/* norm_parameters.cuh -- a block's slice of a row's parameters, kept in registers across rows as raw 16-byte words; the second pass of
 * dscale and dshift, which adds up the partial sums of the blocks that shared the rows (add_parts) or of items (add_items); and the launch
 * of a kernel, with the latter behind it. */
#pragma once
#include "norm_layout.cuh"
#include "kit/element.cuh"
#include "kit/sm90.cuh"
#include "kit/sums.cuh"
#include "kit/vector.cuh"

/* Word `at` of a parameter; `absent`: value where there is no such parameter. */
template <int dtype> __device__ __forceinline__ void parameter_word(uint4 &w, const void *p, float absent, int at, bool there = true)
{
  float v[vector_per_16<dtype>];
#pragma unroll
  for (int e = 0; e < vector_per_16<dtype>; e++) v[e] = absent;
  w = p && there ? __ldg((const uint4 *)p + at) : vector_close<dtype>(v, 0);
}
/* Words first, first + apart, ..., n of them. */
template <int dtype, int N>
__device__ __forceinline__ void parameter_words(uint4 (&w)[N], const void *p, float absent, int first, int apart, int n)
{
#pragma unroll
  for (int k = 0; k < N; k++) parameter_word<dtype>(w[k], p, absent, first + k * apart, k < n);
}
/* Keeps the compiler from hoisting the conversion to f32 out of the row loop, which would double the registers. */
template <int N> __device__ __forceinline__ void parameter_stay(uint4 (&w)[N])
{
#pragma unroll
  for (int k = 0; k < N; k++) asm volatile("" : "+r"(w[k].x), "+r"(w[k].y), "+r"(w[k].z), "+r"(w[k].w));
}

/* ---- sums over blocks that share the rows ---- */

struct column_parts {
  const float *part;                      /* [jobs, n, pitch], of which `length` count */
  void    *to[2];
  uint32_t dtype[2];
  int32_t  n, jobs;
  bool     early;                         /* launched early (programmatic dependent launch); it then waits for the producers */
  int64_t  length, pitch;
};

/* 32 x 32 threads add 32 columns. All loads of a thread (up to 160 blocks) are in flight at once; the order of the sum is fixed. */
__global__ static void __launch_bounds__(1024) add_parts(const __grid_constant__ column_parts a)
{
  constexpr int U = 5;
  __shared__ float shared[32][33];
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  const int64_t columns = a.n * a.pitch, from = blockIdx.x * (int64_t)32;
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
  const int which = j >= a.pitch;
  if (x || j >= columns || j - which * a.pitch >= a.length) return;
  element_store(a.to[which], j - which * a.pitch, dtype3(a.dtype[which]), sum);
}

static inline qn_status column_parts_add(const column_parts &a, cudaStream_t stream)
{
  if (!a.n) return QN_OK;
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  const cudaLaunchConfig_t config = { dim3((unsigned)qn_ceil_div(a.n * a.pitch, 32)), dim3(1024), 0, stream, &early, a.early };
  void *arguments[] = { (void *)&a };
  return cuda_check(cudaLaunchKernelExC(&config, (const void *)add_parts, arguments), "add_parts");
}

/* ---- sums over items ---- */

/* The final sums for dscale and dshift. sums: [copies, sides, parts, channels]; added over copies and parts. sides: items
 * with different channels. */
struct item_sums {
  const float2 *sums;
  void    *dscale, *dshift;
  uint32_t dtype[2];
  int64_t  copies, sides;
  int32_t  parts, channels;
};

/* dscale and dshift: adds up the items' sums. A block has ADDED channels; the threads of a channel each add every 128th entry,
 * then the block's warps are combined. A fixed order, so deterministic. */
enum { ADDED = 8, ADDERS = 1024 };        /* channels and threads of a block */
__global__ static void __launch_bounds__(ADDERS) add_items(const __grid_constant__ item_sums a)
{
  __shared__ float2 of_warp[ADDERS / 32][ADDED];
  const int64_t channels = a.sides * a.channels, first = blockIdx.x * (int64_t)ADDED,
                j = min(first + threadIdx.x % ADDED, channels - 1), side = j / a.channels;
  const uint32_t n = (uint32_t)a.copies * (uint32_t)a.parts;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float2 sum = make_float2(0, 0);
#pragma unroll 8
  for (uint32_t i = threadIdx.x / ADDED; i < n; i += ADDERS / ADDED) {
    const uint32_t copy = i / (uint32_t)a.parts;
    const float2 v = a.sums[((copy * a.sides + side) * a.parts + (i - copy * (uint32_t)a.parts)) * a.channels + (j - side * a.channels)];
    sum.x += v.x, sum.y += v.y;
  }
#pragma unroll
  for (int o = ADDED; o < 32; o *= 2) sum.x += __shfl_xor_sync(~0u, sum.x, o), sum.y += __shfl_xor_sync(~0u, sum.y, o);
  if (lane < ADDED) of_warp[warp][lane] = sum;
  __syncthreads();
  if (warp >= ADDED || first + warp >= channels) return;
  sum = of_warp[lane][warp];
  sum = make_float2(warp_sum(sum.x), warp_sum(sum.y));
  if (lane) return;
  if (a.dscale) element_store(a.dscale, first + warp, dtype3(a.dtype[0]), sum.y);
  if (a.dshift) element_store(a.dshift, first + warp, dtype3(a.dtype[1]), sum.x);
}
static inline qn_status item_sums_add(const item_sums &a, const qn_launch *launch)
{
  add_items<<<(unsigned)qn_ceil_div(a.sides * a.channels, ADDED), ADDERS, 0, (cudaStream_t)launch->stream>>>(a);
  return cuda_check(cudaGetLastError(), "add_items");
}

/* ---- an engine's launch ---- */

/* What every engine's state begins with. */
struct norm_plan {
  norm_problem of;
  const void *kernel;
  uint32_t blocks, cluster, threads, shared;      /* cluster: blocks of one, or CUDA_TOGETHER; shared: bytes of a block */
  item_sums sums;                         /* no channels: none */

  void point(norm_args *a, const qn_launch *launch) const
  {
    for (int t = 0; t < TENSORS; t++) a->p[t] = of.number[t] < 0 ? nullptr : launch->ptr[of.number[t]];
  }
  /* Makes a workspace for partial sums of dscale and dshift, if they are wanted. */
  void sum_items(int64_t copies, int64_t sides, int32_t parts, int32_t channels, qn_prepared *out)
  {
    if (of.number[DSCALE] < 0 && of.number[DSHIFT] < 0) return;
    sums = { nullptr, nullptr, nullptr, { of.dtype[DSCALE], of.dtype[DSHIFT] }, copies, sides, parts, channels };
    out->workspace = (uint64_t)(copies * sides * parts * channels) * sizeof(float2);
  }
  float2 *sums_in(const qn_launch *launch) const { return sums.channels ? (float2 *)launch->workspace : nullptr; }
  qn_status launch_with(void **arguments, const norm_args &a, const qn_launch *launch, const char *name) const
  {
    const qn_status status = cuda_launch_clusters(kernel, blocks, cluster, threads, shared, arguments, launch, name);
    if (status || !sums.channels) return status;
    item_sums last = sums;
    last.sums = sums_in(launch), last.dscale = a.p[DSCALE], last.dshift = a.p[DSHIFT];
    return item_sums_add(last, launch);
  }
};
static inline qn_status norm_build(const qn_request *, qn_prepared *p) { return cuda_allow_shared(((const norm_plan *)p->state)->kernel); }
