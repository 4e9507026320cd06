/* norm_rows_backward.cuh -- what the gradients by rows, of words (norm_rows.cu) and of elements (norm_two_pass_backward.cu), share: which
 * rows a block has, the exchange of a row's sums, and the host half. Blocks are persistent, one per SM, so that a thread has the same
 * columns of all its rows, and adds up dscale and dshift in registers. */
#pragma once
#include "norm_layout.cuh"
#include "norm_parameters.cuh"

enum { BLOCK = 512, EACH = 16, MAX_PARTS = 8 };           /* threads of a block; elements of a thread, read once; blocks of a row */

struct row_division {
  float   *part[2];                       /* partial sums of dscale and dshift; NULL: not wanted */
  int64_t  part_step;                     /* between blocks (or clusters) */
  int32_t  parts, jobs;                   /* blocks for a row; blocks, or clusters, that share the rows */
};

/* The number of the block's (or cluster's) first group of rows, and its rank in the cluster; signals to the cluster that it started. */
template <bool cluster> __device__ __forceinline__ int row_enter(int parts, int *rank)
{
  *rank = 0;
#if __CUDA_ARCH__ >= 900
  if (cluster) {
    *rank = (int)cluster_rank();
    cluster_arrive();
    return blockIdx.x / (uint32_t)parts;
  }
#endif
  return blockIdx.x;
}

/* A row's sums (of along alone, unless both) over its warps, in all its blocks. turn: 0 and 1 alternate. A row within a block uses a named
 * barrier. begun: the cluster has already synchronised since row_enter. */
template <int threads, bool cluster, bool both>
__device__ __forceinline__ float2 row_sums(float sum, float along, int parts, int rank, bool begun, int turn)
{
  constexpr int warps = threads / 32, groups = BLOCK / threads;
  __shared__ float2 of_warp[2][BLOCK / 32];
  if (both) sum = warp_sum(sum);
  along = warp_sum(along);
  if (threads == 32) return make_float2(sum, along);
  const int group = threadIdx.x / threads, warp = threadIdx.x % threads / 32;
#if __CUDA_ARCH__ >= 900
  if (cluster) {
    __shared__ float4 of_cluster[2][warps * MAX_PARTS];
    const int to = threadIdx.x % 32;
    if (!begun) cluster_wait();
    if (to < parts) cluster_store(cluster_address(shared_address(&of_cluster[turn][rank * warps + warp]), to), sum, along, 0, 0);
    cluster_sync();
    sum = along = 0;
    for (int i = to; i < warps * parts; i += 32) sum += of_cluster[turn][i].x, along += of_cluster[turn][i].y;
    return make_float2(warp_sum(sum), warp_sum(along));
  }
#endif
  if (threadIdx.x % 32 == 0) of_warp[turn][group * warps + warp] = make_float2(sum, along);
  group_sync(groups > 1 ? 1 + group : 0, threads);
  sum = along = 0;
#pragma unroll 4
  for (int w = 0; w < warps; w++) {
    const float2 s = of_warp[turn][group * warps + w];
    sum += s.x, along += s.y;
  }
  return make_float2(sum, along);
}

/* ---- host --------------------------------------------------------------------------------------------------------------------- */

/* The blocks of a row, of at most `share` elements each; refuses longer rows. */
static inline qn_status row_divide(const qn_request *r, const norm_problem &p, int64_t share, row_division *a, qn_prepared *out)
{
  for (a->parts = 1; a->parts < MAX_PARTS && p.length > share * a->parts;) a->parts *= 2;
  if (p.length > share * a->parts || (a->parts > 1 && !cuda_has_clusters(r->device)))
    return qn_refuse(out, "a row must fit into the registers of a block, on Hopper of a cluster", "x", "", "%lld", (long long)p.length);
  return p.groups > INT32_MAX / MAX_PARTS ? qn_refuse(out, "fewer than 2^28 rows", "x", "", "%lld", (long long)p.groups) : QN_OK;
}

struct row_plan : norm_plan {
  column_parts parts;

  /* Divides the rows, of `threads` threads each, among the blocks. pitch: floats of a block's sum. */
  void share_rows(const qn_request *r, int threads, int64_t pitch, row_division *a, qn_prepared *out)
  {
    a->jobs = (int32_t)qn_min_i64(qn_ceil_div(of.groups, BLOCK / threads), qn_max_i64(1, r->device->units / a->parts));
    blocks = (uint32_t)(a->jobs * a->parts), cluster = (uint32_t)a->parts, this->threads = BLOCK;
    for (int t = DSCALE; t <= DSHIFT; t++)
      if (of.number[t] >= 0) parts.dtype[parts.n++] = of.dtype[t];
    parts.jobs = a->jobs, parts.length = of.length, parts.pitch = pitch, parts.early = r->device->arch_major >= 9;
    a->part_step = parts.n * pitch;
    out->workspace = (uint64_t)(a->jobs * a->part_step) * sizeof(float);
  }
  /* a: the kernel's argument. */
  template <class A> qn_status run(A a, const qn_launch *launch, const char *name) const
  {
    column_parts sums = parts;
    point(&a, launch);
    sums.part = (float *)launch->workspace;
    for (int i = 0, n = 0; i < 2; i++)
      if (a.p[DSCALE + i]) a.part[i] = (float *)launch->workspace + n * sums.pitch, sums.to[n++] = a.p[DSCALE + i];
    void *arguments[] = { &a };
    const qn_status status = launch_with(arguments, a, launch, name);
    return status ? status : column_parts_add(sums, (cudaStream_t)launch->stream);
  }
};
