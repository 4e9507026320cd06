/* norm_ring.cu -- layer_norm and rms_norm of long rows, up to all that the device's shared memory holds: each element is read once and
 * written once.
 *
 * A row is a team's, whose blocks (one to a multiprocessor) stay and have the same slice of every row, the parameters' in registers.
 * Shared memory holds slices of STAGES rows: one is written out, AHEAD more are measured, others are on their way. What a block has
 * measured one of its warps tells the team, others hear what the team told (team.cuh), so nobody waits for anybody as long as the
 * news take less than AHEAD rows. A thread copies its own words and reads them there itself. */
#include "cuda_backend.h"
#include "engines.h"
#include "norm_moments.cuh"
#include "shared_memory.h"
#include "team.cuh"
#include "vector.cuh"

enum { WORDS = 4, WORKERS = 512, WARPS = WORKERS / 32, HEARERS = 2, STAGES = 6, AHEAD = 4, TURNS = 8, MAX_OUTER = 4 };
enum { SLICE = WORDS * WORKERS, THREADS = WORKERS + 32 + 32 * HEARERS, MAX_PARTS = 160 };        /* SLICE: 16-byte words of a block at most */
enum { X, Y, SCALE, SHIFT, MEAN, RSTD, TENSORS };
static_assert(TURNS > AHEAD, "what is measured is not written over before all have read it");

struct rings {
  void    *p[TENSORS];
  int32_t  rank;                          /* of the dims that rows are counted by, innermost first */
  uint32_t dim[MAX_OUTER];
  int64_t  stride[TENSORS][MAX_OUTER];
  int64_t  length;
  int32_t  rows, words, share;            /* words: 16-byte ones, of a row, of a block's slice */
  cuda_team team;
  float    eps;
  bool     centred;

  __device__ __forceinline__ int64_t place(int row, int t) const
  {
    if (rank < 2) return row * stride[t][0];
    uint32_t rest = (uint32_t)row;
    int64_t at = 0;
#pragma unroll 1
    for (int d = 0; d < rank; d++) {
      uint32_t q = rest / dim[d];
      at += (rest - q * dim[d]) * stride[t][d];
      rest = q;
    }
    return at;
  }
};

/* What passes between a block's warps; rows take turns. */
struct news {
  float4   of_warp[TURNS][WARPS];
  float2   statistic[TURNS];              /* mean and rstd */
  uint64_t measured[TURNS], known[TURNS];
  bool     last;
};

__device__ __forceinline__ uint32_t turn_barrier(uint64_t *of, int i) { return shared_address(of + i % TURNS); }
__device__ __forceinline__ uint32_t turn_parity(int i) { return i / TURNS & 1; }

/* ---- those who measure and write ---------------------------------------------------------------------------------------- */

template <int whole> struct worker {
  static constexpr int E = vector_per_16<whole>;
  const rings &a;
  news    &n;
  const team_member &team;
  uint4   *slot;                          /* the thread's first */
  int32_t  first, count;                  /* words: its first in the row, how many */
  float    all;                           /* elements of the warp */
  uint4    scale[WORDS], shift[WORDS];

  __device__ worker(const rings &a, news &n, const team_member &team, uint4 *slots) : a(a), n(n), team(team), slot(slots + threadIdx.x)
  {
    first = team.rank * a.share + threadIdx.x;
    const int end = min((team.rank + 1) * a.share, a.words);
    count = first < end ? (end - first + WORKERS - 1) / WORKERS : 0;
    all = warp_sum((float)(count * E));
  }
  __device__ __forceinline__ int row_of(int i) const { return team.team + i * a.team.teams; }
  __device__ __forceinline__ const uint4 *word(int t, int row) const { return (const uint4 *)vector_place<whole>(a.p[t], a.place(row, t)) + first; }
  /* Word k of the i-th row's slice. */
  __device__ __forceinline__ uint4 *kept(int i, int k) const { return slot + (i % STAGES * WORDS + k) * WORKERS; }

  __device__ __forceinline__ void fetch(int i)
  {
    if (row_of(i) < a.rows) {
      const uint4 *x = word(X, row_of(i));
#pragma unroll
      for (int k = 0; k < WORDS; k++)
        if (k < count) copy_async<16>(shared_address(kept(i, k)), x + k * WORKERS, 16);
    }
    copy_async_commit();
  }
  __device__ __forceinline__ void load_parameters()
  {
    float one[E], none[E] = {};
#pragma unroll
    for (int e = 0; e < E; e++) one[e] = 1;
#pragma unroll
    for (int k = 0; k < WORDS; k++) {
      scale[k] = vector_close<whole>(one, 0), shift[k] = vector_close<whole>(none, 0);
      if (k < count && a.p[SCALE]) scale[k] = ((const uint4 *)a.p[SCALE])[first + k * WORKERS];
      if (k < count && a.p[SHIFT]) shift[k] = ((const uint4 *)a.p[SHIFT])[first + k * WORKERS];
    }
  }
  template <bool centred> __device__ __forceinline__ moments mine(int i) const
  {
    float v[E], from = 0, s1 = 0, s2 = 0;
    if (centred && count > 0) {
      vector_open<whole>(v, 0, *kept(i, 0));
#pragma unroll
      for (int e = 0; e < E; e++) from += v[e];
      from = finite_or_0(from * (1.f / E));
    }
#pragma unroll
    for (int k = 0; k < WORDS; k++) {
      if (k >= count) break;
      vector_open<whole>(v, 0, *kept(i, k));
#pragma unroll
      for (int e = 0; e < E; e++) {
        const float d = centred ? v[e] - from : v[e];
        if (centred) s1 += d;
        s2 += d * d;
      }
    }
    return moments_about(from, s1, s2, (float)(count * E), centred);
  }
  __device__ __forceinline__ void measure(int i)
  {
    const moments warp = warp_join_lanes(a.centred ? mine<true>(i) : mine<false>(i), all);
    if (threadIdx.x % 32) return;
    n.of_warp[i % TURNS][threadIdx.x / 32] = warp.pack();
    barrier_arrive(turn_barrier(n.measured, i));
  }
  __device__ __forceinline__ void write(int i)
  {
    uint4 *y = (uint4 *)word(Y, row_of(i));
    barrier_wait(turn_barrier(n.known, i), turn_parity(i));
    const float2 s = n.statistic[i % TURNS];
#pragma unroll
    for (int k = 0; k < WORDS; k++) {
      if (k >= count) break;
      float v[E], w[E], u[E];
      vector_open<whole>(v, 0, *kept(i, k));
      vector_open<whole>(w, 0, scale[k]);
      vector_open<whole>(u, 0, shift[k]);
#pragma unroll
      for (int e = 0; e < E; e++) v[e] = fmaf((v[e] - s.x) * s.y, w[e], u[e]);
      y[k * WORKERS] = vector_close<whole>(v, 0);
    }
  }
  __device__ __forceinline__ void work(int rows)
  {
    for (int i = 0; i < STAGES; i++) fetch(i);
    load_parameters();
#pragma unroll 1
    for (int i = -AHEAD; i < rows; i++) {
      if (i + AHEAD < rows) {
        copy_async_wait<STAGES - AHEAD - 1>();
        measure(i + AHEAD);
      }
      if (i < 0) continue;
      write(i);
      fetch(i + STAGES);
    }
    copy_async_wait<0>();
  }
};

/* ---- those who tell and hear ------------------------------------------------------------------------------------------------ */

__device__ __forceinline__ void tell_rows(news &n, const team_member &team, int rows)
{
#pragma unroll 1
  for (int i = 0; i < rows; i++) {
    barrier_wait(turn_barrier(n.measured, i), turn_parity(i));
    const moments slice = warp_join_all(WARPS, [&](int w) { return moments::unpack(n.of_warp[i % TURNS][w]); });
    if (threadIdx.x % 32 == 0) team.tell(i, 0, make_float2(slice.mean, slice.squares));
  }
}

template <int E, int N> __device__ __forceinline__ void hear_rows(const rings &a, news &n, const team_member &team, int rows, int hearer)
{
  float of[N];                            /* elements of the parts that the lane hears from */
#pragma unroll
  for (int k = 0; k < N; k++) {
    const int b = threadIdx.x % 32 + 32 * k;
    of[k] = b < a.team.parts ? (float)((min((b + 1) * a.share, a.words) - b * a.share) * E) : 0;
  }
#pragma unroll 1
  for (int i = hearer; i < rows; i += HEARERS) {
    float2 v[N];
    team.hear_parts(i, 0, v);
    const float about = finite_or_0(__shfl_sync(~0u, v[0].x, 0));
    float s1 = 0, s2 = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
      const float d = v[k].x - about, s = of[k] * d;
      s1 += s;
      s2 += v[k].y + s * d;
    }
    const moments all = moments_about(about, warp_sum(s1), warp_sum(s2), (float)a.length, true);
    if (threadIdx.x % 32) continue;
    const float rstd = 1 / sqrtf(all.squares / (float)a.length + a.eps);
    const int row = team.team + i * a.team.teams;
    n.statistic[i % TURNS] = make_float2(all.mean, rstd);
    barrier_arrive(turn_barrier(n.known, i));
    if (team.rank == 0 && a.p[MEAN]) ((float *)a.p[MEAN])[a.place(row, MEAN)] = all.mean;
    if (team.rank == 0 && a.p[RSTD]) ((float *)a.p[RSTD])[a.place(row, RSTD)] = rstd;
  }
}

template <int whole> __global__ void __launch_bounds__(THREADS, 1) norm_ring(const __grid_constant__ rings a)
{
  extern __shared__ uint4 slots[];
  __shared__ news n;
  const team_member team(a.team, nullptr);
  const int rows = (a.rows - team.team + a.team.teams - 1) / a.team.teams, warp = threadIdx.x / 32;
  if (threadIdx.x < TURNS) {
    barrier_init(shared_address(n.measured + threadIdx.x), WARPS);
    barrier_init(shared_address(n.known + threadIdx.x), 1);
  }
  __syncthreads();
  if (warp < WARPS) worker<whole>(a, n, team, slots).work(rows);
  else if (warp == WARPS) tell_rows(n, team, rows);
  else if (a.team.parts <= 32) hear_rows<vector_per_16<whole>, 1>(a, n, team, rows, warp - WARPS - 1);
  else hear_rows<vector_per_16<whole>, MAX_PARTS / 32>(a, n, team, rows, warp - WARPS - 1);
  team.leave(&n.last);
}

/* ---- prepare, build, run ---------------------------------------------------------------------------------------------------- */

struct state { rings a; int32_t number[TENSORS]; const void *kernel; };
enum { SHARED = STAGES * SLICE * 16, ROW_LONG = 65536 };  /* ROW_LONG: elements; registers hold shorter ones as well */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_norm_roles roles = qn_norm_roles_of(r->op[0].op);
  const int8_t role[TENSORS] = { roles.x, roles.y, roles.scale, roles.shift, roles.mean, roles.rstd };
  const qn_norm *norm = (const qn_norm *)r->op[0].attr;
  state s = {};
  rings &a = s.a;
  if (r->device->arch_major != 9 || r->device->arch_minor != 0) return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  for (int t = 0; t < TENSORS; t++) s.number[t] = qn_role_at(&r->op[0], role[t]);
  const qn_value *x = &r->value[s.number[X]];
  if (x->dtype != QN_F32 && x->dtype != QN_BF16 && x->dtype != QN_F16) return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", qn_kit_name(x->dtype));
  qn_nest walked = {}, outer = {};
  walked.n = SHIFT + 1, outer.n = TENSORS;
  int64_t rows = 1;
  a.length = 1;
  for (int d = 0; d < x->rank; d++) {
    const bool in = norm->mask >> d & 1;
    qn_nest *nest = in ? &walked : &outer;
    nest->dim[nest->rank] = x->dim[d];
    for (int t = 0; t < nest->n; t++) {
      const qn_value *v = s.number[t] < 0 ? nullptr : &r->value[s.number[t]];
      nest->stride[t][nest->rank] = !v ? (in ? x->stride[d] : 0) : v->dim[d] == 1 ? 0 : v->stride[d];
    }
    nest->rank++;
    *(in ? &a.length : &rows) *= x->dim[d];
  }
  qn_nest_simplify(&walked);
  qn_nest_simplify(&outer);
  bool run = walked.rank == 1;
  for (int t = X; t <= SHIFT; t++) run &= walked.rank == 1 && walked.stride[t][0] == 1;
  if (!run) return qn_refuse(out, "the dims normalized over must lie side by side, alike in all tensors", "x", "one run of stride 1", "%d runs", walked.rank);
  const int64_t per_word = x->dtype == QN_F32 ? 4 : 8, words = a.length / per_word, parts = qn_ceil_div(words, SLICE);
  if (a.length % per_word || parts < 2 || parts > qn_min_i64(r->device->units, MAX_PARTS))
    return qn_refuse(out, "rows of whole 16-byte words, longer than a block's slice, no longer than all of the device's", "x", "more than 32 KB, up to that for each multiprocessor", "%lld elements", (long long)a.length);
  if (outer.rank > MAX_OUTER || rows > INT32_MAX / 2) return qn_refuse(out, "at most 4 other dims that do not merge, fewer than 2^30 rows", "x", "4", "%d", outer.rank);
  bool whole = true;
  a.rank = outer.rank;
  for (int d = 0; d < outer.rank; d++) {
    a.dim[d] = (uint32_t)outer.dim[outer.rank - 1 - d];
    for (int t = 0; t < TENSORS; t++) {
      a.stride[t][d] = outer.stride[t][outer.rank - 1 - d];
      whole &= t > Y || a.stride[t][d] % per_word == 0;
      if ((t == SCALE || t == SHIFT) && a.stride[t][d]) return qn_refuse(out, "parameters are alike for all rows", t == SCALE ? "scale" : "shift", "stride 0", "%lld", (long long)a.stride[t][d]);
    }
  }
  for (int t = X; t <= SHIFT; t++)
    if (s.number[t] >= 0) whole &= r->value[s.number[t]].align >= 16 && r->value[s.number[t]].dtype == x->dtype;
  if (!whole) return qn_refuse(out, "tensors of one dtype, in 16-byte words", "x", "", "%s", "others");
  if (SHARED + 8192 > (int64_t)r->device->shared_per_block) return qn_refuse(out, "shared memory of a block", "", "200 KB", "%lld bytes", (long long)r->device->shared_per_block);

  a.rows = (int32_t)rows, a.words = (int32_t)words;
  a.share = (int32_t)qn_round_up(qn_ceil_div(words, parts), 8);             /* whole lines of the cache */
  a.team.parts = (int32_t)qn_ceil_div(words, a.share);
  a.team.teams = (int32_t)qn_min_i64(rows, r->device->units / a.team.parts);
  a.team.each = 1, a.team.turns = 2 * TURNS;
  a.eps = (float)norm->eps;
  a.centred = r->op[0].op == QN_OP_LAYER_NORM;
  s.kernel = x->dtype == QN_F32 ? (const void *)norm_ring<QN_F32> : x->dtype == QN_BF16 ? (const void *)norm_ring<QN_BF16> : (const void *)norm_ring<QN_F16>;
  out->counters = (uint64_t)cuda_team_counters(&a.team);
  if (a.length >= ROW_LONG) out->estimate = 6000 + (double)rows * (double)words * 32 / 3300;
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *p) { return cuda_allow_shared(((const state *)p->state)->kernel); }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  rings a = s->a;
  for (int t = 0; t < TENSORS; t++) a.p[t] = s->number[t] < 0 ? nullptr : launch->ptr[s->number[t]];
  a.team.told = launch->counters;
  cudaLaunchAttribute together = {};
  together.id = cudaLaunchAttributeCooperative;           /* a team's blocks wait for one another */
  together.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)(a.team.teams * a.team.parts));
  config.blockDim = dim3(THREADS);
  config.dynamicSmemBytes = SHARED;
  config.stream = (cudaStream_t)launch->stream;
  config.attrs = &together;
  config.numAttrs = 1;
  void *arguments[] = { &a };
  return cuda_check(cudaLaunchKernelExC(&config, s->kernel, arguments), "norm_ring");
}

#define ROW(op) { "ring", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, nullptr, nullptr, prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM), ROW(QN_OP_RMS_NORM) };
const qn_engine_list cuda_norm_ring_list = { row, sizeof row / sizeof *row };
