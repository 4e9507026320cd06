/* norm_rows_backward.cu -- gradients of layer_norm and rms_norm by contiguous rows, f16, bf16, f32, which the registers of a warp, a block
 * or (sm_90) a cluster hold: each element is read once and written once (rows). Rows of other alignment or of several dtypes are read
 * twice (two_pass).
 *
 *   with h = (x - mean) rstd, g = dy scale:  dx = rstd (g - mean g - h mean(g h))        rms_norm: without mean g
 *   dscale = sum dy h, dshift = sum dy:      per block in registers, then added up over the blocks (norm_parameters.cuh)
 *
 * Blocks are persistent, one per SM, so that a thread always has the same columns; the next row's loads are in flight meanwhile.
 * Refused: groups that are not contiguous, or longer than 8 blocks hold; parameters that vary from group to group. */
#include "norm_layout.cuh"
#include "norm_parameters.cuh"
#include "kit/eight.cuh"

enum { BLOCK = 512, V = 8, EACH = 16, MAX_PARTS = 8 };    /* EACH: elements of a thread by words; twice as many by elements */

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

/* ---- by words ----------------------------------------------------------------------------------------------------------------- */

/* A thread's words of a row, raw. */
template <int K> struct row_words {
  uint4 x[K], dy[K];
  float mean, rstd;
};

/* Writes the block's column sums from word `first` on, added over its row groups in order; stage: shared memory for all its words. */
template <int threads, int K, int E>
__device__ __forceinline__ void write_part(float *to, const float (&sum)[K][E], float4 *stage, int first, int words)
{
  constexpr int groups = BLOCK / threads, Q = E / 4;
  const int t = threadIdx.x % threads, group = threadIdx.x / threads;
  if (groups == 1) {
#pragma unroll
    for (int k = 0; k < K; k++)
      if (first + t + k * threads < words) vector_store_whole<QN_F32>(sum[k], to, (int64_t)(first + t + k * threads) * E);
    return;
  }
  __syncthreads();                        /* [groups, quarters of a word, words] */
#pragma unroll
  for (int k = 0; k < K; k++)
#pragma unroll
    for (int q = 0; q < Q; q++) {
      const float *v = &sum[k][q * 4];
      stage[((group * Q + q) * K + k) * threads + t] = make_float4(v[0], v[1], v[2], v[3]);
    }
  __syncthreads();
  for (int j = threadIdx.x; j < Q * words; j += BLOCK) {
    float4 all = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int g = 0; g < groups; g++) {
      const float4 v = stage[(g * Q + j % Q) * K * threads + j / Q];
      all.x += v.x, all.y += v.y, all.z += v.z, all.w += v.w;
    }
    ((float4 *)to)[j] = all;
  }
}

/* A block handles 512 / threads rows at a time. */
template <int threads, int dtype, bool centred, bool cluster>
__global__ void __launch_bounds__(BLOCK, 1) by_words(const __grid_constant__ rows_back a)
{
  constexpr int E = vector_per_16<dtype>, K = EACH / E, groups = BLOCK / threads;
  constexpr bool early = dtype != QN_F32;                   /* load the next row before this one is reduced, scale before all */
  __shared__ float4 stage[groups > 1 ? BLOCK * K * E / 4 : 1];
  const int t = threadIdx.x % threads, group = threadIdx.x / threads;
  int rank;
  const int job = row_enter<cluster>(a.parts, &rank), first = rank * threads * K, mine = a.words - first - t, step = a.jobs * groups;
  int row = job * groups + group, ahead = row, turn = 0;
  const uint4 *x = (const uint4 *)a.p[X] + row * a.step[X] + first + t, *dy = (const uint4 *)a.p[DY] + row * a.step[DY] + first + t;
  uint4 *dx = (uint4 *)a.p[Y] + row * a.step[Y] + first + t, scale[K];
  float dscale[K][E] = {}, dshift[K][E] = {};
  row_words<K> next;
  const auto load_next = [&] {
    if (ahead < a.rows) {
#pragma unroll
      for (int k = 0; k < K; k++)
        if (k * threads < mine) next.x[k] = x[k * threads], next.dy[k] = dy[k * threads];
      next.mean = centred ? ((const float *)a.p[MEAN])[ahead * a.step[MEAN]] : 0;
      next.rstd = ((const float *)a.p[RSTD])[ahead * a.step[RSTD]];
      x += a.hop[X], dy += a.hop[DY];
    }
    ahead += step;
  };
  load_next();
  const int count = mine > 0 ? (mine + threads - 1) / threads : 0;
  if (early) parameter_words<dtype>(scale, a.p[SCALE], 1, first + t, threads, count);
#pragma unroll 1
  for (bool begun = false; row < a.rows; row += step, dx += a.hop[Y], turn ^= 1, begun = true) {
    const row_words<K> now = next;
    if (early) load_next();
    float h[K][E], g[K][E], sum = 0, along = 0;
    if (early) parameter_stay(scale);
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (k * threads >= mine) break;
      float w[E];
      vector_open<dtype>(h[k], 0, now.x[k]);
      vector_open<dtype>(g[k], 0, now.dy[k]);
      if (!early) parameter_word<dtype>(scale[k], a.p[SCALE], 1, first + t + k * threads);
      vector_open<dtype>(w, 0, scale[k]);
#pragma unroll
      for (int e = 0; e < E; e++) {
        h[k][e] = (h[k][e] - (centred ? now.mean : 0)) * now.rstd;
        dscale[k][e] = fmaf(g[k][e], h[k][e], dscale[k][e]);
        if (centred) dshift[k][e] += g[k][e];
        g[k][e] *= w[e];
        if (centred) sum += g[k][e];
        along = fmaf(g[k][e], h[k][e], along);
      }
    }
    const float2 s = row_sums<threads, cluster, centred>(sum, along, a.parts, rank, begun, turn);
    const float c0 = -now.rstd * (s.x * a.inverse), c1 = -now.rstd * (s.y * a.inverse);
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (k * threads >= mine) break;
#pragma unroll
      for (int e = 0; e < E; e++) g[k][e] = fmaf(g[k][e], now.rstd, centred ? fmaf(h[k][e], c1, c0) : h[k][e] * c1);
      dx[k * threads] = vector_close<dtype>(g[k], 0);
    }
    if (!early) load_next();
  }
#if __CUDA_ARCH__ >= 900
  grid_dependents_launch();
#endif
  if (a.part[0]) write_part<threads>(a.part[0] + job * a.part_step, dscale, stage, first, a.words);
  if (centred && a.part[1]) write_part<threads>(a.part[1] + job * a.part_step, dshift, stage, first, a.words);
}

/* ---- by elements -------------------------------------------------------------------------------------------------------------- */

template <int threads, bool cluster> __global__ void __launch_bounds__(BLOCK, 1) by_elements(const __grid_constant__ rows_back a)
{
  constexpr int K = 2 * EACH / V, groups = BLOCK / threads;
  __shared__ float stage[groups > 1 ? K * threads * V : 1];
  const int t = threadIdx.x % threads, group = threadIdx.x / threads;
  int rank, turn = 0;
  const int job = row_enter<cluster>(a.parts, &rank), first = (rank * threads * K + t) * V, step = a.jobs * groups;
  float dscale[K][V] = {}, dshift[K][V] = {};
  bool begun = false;
#pragma unroll 1
  for (int row = job * groups + group; row < a.rows; row += step, turn ^= 1, begun = true) {
    const int64_t x = a.outer.place(row, X), dy = a.outer.place(row, DY), dx = a.outer.place(row, Y);
    const float mean = a.centred ? ((const float *)a.p[MEAN])[a.outer.place(row, MEAN)] : 0;
    const float rstd = ((const float *)a.p[RSTD])[a.outer.place(row, RSTD)];
    /* h, dy and g of the n elements at j */
    const auto load = [&](int j, int n, float (&h)[V], float (&d)[V], float (&g)[V]) {
      const eight u = eight_load(a.p[X], a.dtype[X], x + j, n), v = eight_load(a.p[DY], a.dtype[DY], dy + j, n);
      eight w = v;
      if (a.p[SCALE]) w = eight_load(a.p[SCALE], a.dtype[SCALE], j, n);
#pragma unroll
      for (int i = 0; i < V; i++) {
        h[i] = i < n ? (u.v[i] - mean) * rstd : 0, d[i] = v.v[i];
        g[i] = a.p[SCALE] ? d[i] * w.v[i] : d[i];
      }
    };
    float h[V], d[V], g[V], sum = 0, along = 0;
#pragma unroll 1
    for (int k = 0; k < K; k++) {
      const int j = first + k * threads * V, n = min((int)V, a.length - j);
      if (n <= 0) break;
      load(j, n, h, d, g);
#pragma unroll
      for (int i = 0; i < V; i++) sum += g[i], along += g[i] * h[i];
    }
    const float2 s = row_sums<threads, cluster, true>(sum, along, a.parts, rank, begun, turn);
    sum = a.centred ? s.x * a.inverse : 0, along = s.y * a.inverse;
#pragma unroll
    for (int k = 0; k < K; k++) {
      const int j = first + k * threads * V, n = min((int)V, a.length - j);
      if (n <= 0) break;
      load(j, n, h, d, g);
#pragma unroll
      for (int i = 0; i < V; i++) {
        dscale[k][i] += d[i] * h[i];
        dshift[k][i] += d[i];
        g[i] = rstd * (g[i] - sum - h[i] * along);
      }
      eight_store(eight_of(g), a.p[Y], a.dtype[Y], dx + j, n);
    }
  }
#pragma unroll
  for (int what = 0; what < 2; what++) {
    if (!a.part[what]) continue;
    float *to = a.part[what] + job * a.part_step;
#pragma unroll 1
    for (int q = 0; q < groups; q++) {    /* adds the row groups of the block, in order */
      if (group == q)
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
          for (int i = 0; i < V; i++) {
            const int j = first + k * threads * V + i;
            const float v = what ? dshift[k][i] : dscale[k][i], all = groups > 1 && q ? stage[j] + v : v;
            if (groups > 1 && q < groups - 1) stage[j] = all;
            else if (j < a.length) to[j] = all;
          }
      if (groups > 1) __syncthreads();
    }
  }
}

/* ---- prepare, run ---------------------------------------------------------------------------------------------------------- */

struct state {
  rows_back a;
  column_parts parts;
  int32_t  number[TENSORS];               /* value numbers of the request; -1: absent */
  const void *kernel;
};

#define OF(threads, dtype, centred, cluster) (const void *)by_words<threads, dtype, centred, cluster>
#define KERNELS(dtype, centred) \
  { OF(32, dtype, centred, false),  OF(64, dtype, centred, false),  OF(128, dtype, centred, false), OF(256, dtype, centred, false), \
    OF(512, dtype, centred, false), OF(512, dtype, centred, true) }
#define DTYPE(dtype) { KERNELS(dtype, false), KERNELS(dtype, true) }
static const void *const words_kernels[3][2][6] = { DTYPE(QN_F32), DTYPE(QN_BF16), DTYPE(QN_F16) };

static const void *const elements_kernels[3] = { (const void *)by_elements<64, false>, (const void *)by_elements<512, false>,
                                                 (const void *)by_elements<512, true> };

template <bool words> static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  norm_problem p;
  state s = {};
  rows_back &a = s.a;
  const qn_status status = norm_open(r, 0, &p, out);
  if (status) return status;
  bool wide;
  const bool whole = norm_word_rows(r, &p, a.step, &wide) && !wide;
  if (!(words ? whole : norm_rows(&p) && norm_number(p.outer, 1, &a.outer)))
    return qn_refuse(out, "rows are contiguous, as are their parameters, which all rows share (rows: of one dtype, in 16-byte words)", "x",
                     "", "%s", "another layout");
  const int64_t share = BLOCK * EACH * (words ? 1 : 2);
  for (a.parts = 1; a.parts < MAX_PARTS && p.length > share * a.parts;) a.parts *= 2;
  if (p.length > share * a.parts || (a.parts > 1 && !cuda_has_clusters(r->device)))
    return qn_refuse(out, "a row must fit into the registers of a block, on Hopper of a cluster", "x",
                     words ? "at most 8192 or 65536 elements" : "at most 16384 or 131072 elements", "%lld", (long long)p.length);
  if (p.groups > INT32_MAX / MAX_PARTS) return qn_refuse(out, "fewer than 2^28 rows", "x", "", "%lld", (long long)p.groups);
  memcpy(s.number, p.number, sizeof s.number);
  memcpy(a.dtype, p.dtype, sizeof a.dtype);
  a.rows = (int32_t)p.groups, a.length = (int32_t)p.length, a.words = (int32_t)(p.length * p.bytes / 16);
  a.inverse = 1 / (float)p.length, a.centred = p.centred;
  int size = 0, threads = words ? 32 : 64;
  for (; threads < BLOCK && p.length > threads * share / BLOCK; threads *= words ? 2 : 8) size++;
  size += a.parts > 1;
  s.kernel = words ? words_kernels[norm_of_dtype(p.dtype[X], 0, 1, 2)][p.centred][size] : elements_kernels[size];
  a.jobs = (int32_t)qn_min_i64(qn_ceil_div(p.groups, BLOCK / threads), qn_max_i64(1, r->device->units / a.parts));
  for (int t = X; t <= DY; t++) a.hop[t] = (int64_t)a.jobs * (BLOCK / threads) * a.step[t];
  s.parts = column_parts_of(r, p, a.jobs);
  a.part_step = s.parts.n * p.length;
  out->workspace = (uint64_t)(a.jobs * a.part_step) * sizeof(float);
  out->estimate = words ? 5000 + p.moved / 4000 : 10000 + p.moved * 1.7 / 1000;
  return cuda_keep(out, &s, sizeof s);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  rows_back a = s->a;
  column_parts parts = s->parts;
  norm_pointers(a.p, s->number, launch);
  column_parts_place(&parts, a.p, launch, a.part);
  void *arguments[] = { &a };
  const qn_status status = cuda_launch_clusters(s->kernel, (unsigned)(a.jobs * a.parts), (unsigned)a.parts, BLOCK, 0, arguments, launch,
                                                "norm_rows_backward");
  return status ? status : column_parts_add(parts, (cudaStream_t)launch->stream);
}

/* The sums depend on how many blocks the device holds, so they are not portable. */
#define ROW(name, op, words) { name, op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
                               nullptr, nullptr, prepare<words>, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW("rows", QN_OP_LAYER_NORM_BACKWARD, true),      ROW("rows", QN_OP_RMS_NORM_BACKWARD, true),
  ROW("two_pass", QN_OP_LAYER_NORM_BACKWARD, false), ROW("two_pass", QN_OP_RMS_NORM_BACKWARD, false),
};
CUDA_ENGINES(norm_rows_backward) = { row, sizeof row / sizeof *row };
