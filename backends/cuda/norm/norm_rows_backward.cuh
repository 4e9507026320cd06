/* norm_rows_backward.cuh -- what the gradients by rows, of whole words (norm_rows_backward.cu) and of elements (norm_two_pass_backward.cu),
 * share: which rows a block has, the exchange of a row's sums, and the host half. Blocks are persistent, one per SM, so that a thread has
 * the same columns of all its rows, and adds up dscale and dshift in registers. */
#pragma once
#include "norm_layout.cuh"
#include "norm_parameters.cuh"

enum { BLOCK = 512, EACH = 16, MAX_PARTS = 8 };    /* EACH: elements of a thread by words; twice as many by elements */

struct rows_back {
  void    *p[TENSORS];
  uint32_t dtype[TENSORS];
  float   *part[2];                       /* partial sums of dscale and dshift; NULL: not wanted */
  int64_t  part_step;                     /* between blocks (or clusters) */
  int64_t  step[TENSORS], hop[DY + 1];    /* words: from row to row (x, dx, dy in words); to the next row of the same threads */
  norm_items outer;                       /* elements: numbers rows */
  int32_t  rows, words, length;           /* words: of a row, 16 bytes each */
  int32_t  parts, jobs;                   /* blocks for a row; blocks, or clusters, that share the rows */
  float    inverse;                       /* 1 / row length */
  bool     centred;
};

/* ---- which row a thread has; exchange between the row's warps --------------------------------------------------------------- */

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

struct rows_back_state {
  rows_back a;
  column_parts parts;
  int32_t  number[TENSORS];               /* value numbers of the request; -1: absent */
  const void *kernel;
};

/* Divides the rows, of at most `share` elements a block; *size: 0 for `least` threads to a row, 1 for `factor` times as many, ...; refuses
 * rows that are too long. */
static inline qn_status rows_back_divide(const qn_request *r, const norm_problem &p, int64_t share, int least, int factor,
                                         rows_back_state *s, int *size, qn_prepared *out)
{
  rows_back &a = s->a;
  for (a.parts = 1; a.parts < MAX_PARTS && p.length > share * a.parts;) a.parts *= 2;
  if (p.length > share * a.parts || (a.parts > 1 && !cuda_has_clusters(r->device)))
    return qn_refuse(out, "a row must fit into the registers of a block, on Hopper of a cluster", "x", "", "%lld", (long long)p.length);
  if (p.groups > INT32_MAX / MAX_PARTS) return qn_refuse(out, "fewer than 2^28 rows", "x", "", "%lld", (long long)p.groups);
  memcpy(s->number, p.number, sizeof s->number);
  memcpy(a.dtype, p.dtype, sizeof a.dtype);
  a.rows = (int32_t)p.groups, a.length = (int32_t)p.length, a.words = (int32_t)(p.length * p.bytes / 16);
  a.inverse = 1 / (float)p.length, a.centred = p.centred;
  int threads = least;
  for (*size = 0; threads < BLOCK && p.length > threads * share / BLOCK; threads *= factor) ++*size;
  *size += a.parts > 1;
  a.jobs = (int32_t)qn_min_i64(qn_ceil_div(p.groups, BLOCK / threads), qn_max_i64(1, r->device->units / a.parts));
  for (int t = X; t <= DY; t++) a.hop[t] = (int64_t)a.jobs * (BLOCK / threads) * a.step[t];
  s->parts = column_parts_of(r, p, a.jobs);
  a.part_step = s->parts.n * p.length;
  out->workspace = (uint64_t)(a.jobs * a.part_step) * sizeof(float);
  return QN_OK;
}

static qn_status rows_back_run(const qn_prepared *p, const qn_launch *launch)
{
  const rows_back_state *s = (const rows_back_state *)p->state;
  rows_back a = s->a;
  column_parts parts = s->parts;
  norm_pointers(a.p, s->number, launch);
  column_parts_place(&parts, a.p, launch, a.part);
  void *arguments[] = { &a };
  const qn_status status = cuda_launch_clusters(s->kernel, (unsigned)(a.jobs * a.parts), (unsigned)a.parts, BLOCK, 0, arguments, launch,
                                                "rows_back");
  return status ? status : column_parts_add(parts, (cudaStream_t)launch->stream);
}
