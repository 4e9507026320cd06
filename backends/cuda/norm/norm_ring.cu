/* norm_ring.cu -- layer_norm and rms_norm of very long rows (f16, bf16, f32) on sm_90, up to the shared memory of the whole
 * device: each element is read once and written once.
 *
 * A row belongs to a team of persistent blocks, one per SM; each has the same slice of every row and keeps that slice's
 * parameters in registers. Shared memory is a ring of STAGES rows' slices: one is written out, AHEAD are already measured, the
 * rest are being copied. One warp publishes the block's moments to the team, others collect the team's (team.cuh); nobody stalls
 * as long as that exchange takes less than AHEAD rows. Worker threads copy (cp.async) and read their own words.
 * Refused: rows that fit one block's slice, other layouts. */
#include "norm_sums.cuh"
#include "kit/team.cuh"

enum { WORDS = 4, WORKERS = 512, WARPS = WORKERS / 32, RECEIVERS = 2, STAGES = 6, AHEAD = 4, TURNS = 8 };
/* SLICE: 16-byte words of a block at most */
enum { SLICE = WORDS * WORKERS, THREADS = WORKERS + 32 + 32 * RECEIVERS, MAX_PARTS = 160 };
static_assert(TURNS > AHEAD, "what is measured is not written over before all have read it");

struct rings : norm_args {
  int64_t  step[TENSORS];                 /* from row to row: x and y in words, mean and rstd in elements */
  int32_t  rows, words, share;            /* words: 16-byte words of a row; share: of a block's slice */
  int32_t  receivers;                     /* warps that collect; no more than needed, because polling costs memory bandwidth */
  cuda_team team;
};

/* Passed between a block's warps; TURNS rows in rotation. Aligned so that what follows starts at bank 0. */
struct alignas(128) mailbox {
  float2   of_warp[TURNS][WARPS];         /* per warp: mean and sum of squared distances */
  float2   statistic[TURNS];              /* mean and rstd of the row */
  uint64_t measured[TURNS], known[TURNS];
};

__device__ __forceinline__ uint32_t turn_barrier(uint64_t *of, int i) { return shared_address(of + i % TURNS); }
__device__ __forceinline__ uint32_t turn_parity(int i) { return i / TURNS & 1; }

/* Words of a block's slice (n words) that one thread has. */
__device__ __forceinline__ int words_of(int thread, int n) { return thread < n ? (n - thread + WORKERS - 1) / WORKERS : 0; }

/* ---- worker warps: measure and write -------------------------------------------------------------------------------------- */

template <int dtype, bool centred>
__device__ __forceinline__ void work(const rings &a, mailbox &n, const team_member &team, uint4 *slots, int rows)
{
  constexpr int E = vector_per_16<dtype>;
  const int first = team.rank * a.share + threadIdx.x, count = words_of(threadIdx.x, min(a.share, a.words - team.rank * a.share));
  const int64_t x_step = a.team.teams * a.step[X], y_step = a.team.teams * a.step[Y];
  const uint4 *x = (const uint4 *)a.p[X] + team.team * a.step[X] + first;
  uint4 *y = (uint4 *)a.p[Y] + team.team * a.step[Y] + first;
  uint4 *slot = slots + threadIdx.x;
  const auto kept = [&](int stage, int k) { return slot + (stage * WORDS + k) * WORKERS; };
  const auto fetch = [&](int i, int stage) {
    if (i < rows)
#pragma unroll
      for (int k = 0; k < WORDS; k++)
        if (k < count) copy_async<16>(shared_address(kept(stage, k)), x + i * x_step + k * WORKERS, 16);
    copy_async_commit();
  };
  for (int i = 0; i < STAGES; i++) fetch(i, i);
  uint4 scale[WORDS], shift[WORDS];
  parameter_words<dtype>(scale, a.p[SCALE], 1, first, WORKERS, count);
  if (centred) parameter_words<dtype>(shift, a.p[SHIFT], 0, first, WORKERS, count);

  const float mine = (float)(count * E), all = warp_sum(mine);
  int to_measure = 0, to_write = 0;       /* stage numbers */
  const auto measure = [&](int i) {
    float from[1] = {}, s1[1] = {}, s2[1] = {};
    if (centred && count > 0) {
      float v[E];
      vector_open<dtype>(v, 0, *kept(to_measure, 0));
      from[0] = finite_or_0(v[0]);
    }
#pragma unroll
    for (int k = 0; k < WORDS; k++) {
      if (k >= count) break;
      add_word<dtype, centred>(*kept(to_measure, k), from, s1, s2);
    }
    if (++to_measure == STAGES) to_measure = 0;
    moments warp = { 0, 0, 0 };
    if (centred) warp = warp_join_lanes(moments_about(from[0], s1[0], s2[0], mine, true), all);
    else warp.squares = warp_sum(s2[0]);
    if (threadIdx.x % 32) return;
    n.of_warp[i % TURNS][threadIdx.x / 32] = make_float2(warp.mean, warp.squares);
    barrier_arrive(turn_barrier(n.measured, i));
  };
#pragma unroll 1
  for (int i = -AHEAD; i < rows; i++) {
    if (i + AHEAD < rows) {
      copy_async_wait<STAGES - AHEAD - 1>();
      measure(i + AHEAD);
    }
    if (i < 0) continue;
    barrier_wait(turn_barrier(n.known, i), turn_parity(i));
    const float2 s = n.statistic[i % TURNS];
    float mean[1] = { s.x }, rstd[1] = { s.y };
    const float unit = centred ? far_unit(mean, rstd) : 1;
    uint4 *to = y + i * y_step;
    parameter_stay(scale);
    if (centred) parameter_stay(shift);
#pragma unroll
    for (int k = 0; k < WORDS; k++) {
      if (k >= count) break;
      float v[E], w[E], u[E];
      vector_open<dtype>(v, 0, *kept(to_write, k));
      vector_open<dtype>(w, 0, scale[k]);
      if (centred) vector_open<dtype>(u, 0, shift[k]);
#pragma unroll
      for (int e = 0; e < E; e++) v[e] = centred ? fmaf(far_normalized(v[e], unit, mean[0], rstd[0]), w[e], u[e]) : v[e] * s.y * w[e];
      to[k * WORKERS] = vector_close<dtype>(v, 0);
    }
    fetch(i + STAGES, to_write);
    if (++to_write == STAGES) to_write = 0;
  }
  copy_async_wait<0>();
}

/* ---- exchange warps: publish and collect ---------------------------------------------------------------------------------- */

template <int E> __device__ __forceinline__ void publish_rows(const rings &a, mailbox &n, const team_member &team, int rows)
{
  const int lane = threadIdx.x % 32, slice = min(a.share, a.words - team.rank * a.share);
  int words = 0;                          /* words of the worker warp whose moments this lane reads */
  for (int t = 0; t < 32 && lane < WARPS; t++) words += words_of(lane * 32 + t, slice);
  const float of = (float)(words * E);
#pragma unroll 1
  for (int i = 0; i < rows; i++) {
    barrier_wait(turn_barrier(n.measured, i), turn_parity(i));
    const float2 m = lane < WARPS ? n.of_warp[i % TURNS][lane] : make_float2(0, 0);
    const moments all = warp_join_lanes({ m.x, m.y, of }, (float)(slice * E));
    if (lane == 0) team.publish(i, 0, make_float2(all.mean, all.squares));
  }
}

template <int dtype, bool centred, int N>
__device__ __forceinline__ void receive_rows(const rings &a, mailbox &n, const team_member &team, int rows, int receiver)
{
  constexpr int E = vector_per_16<dtype>;
  float of[N];                            /* elements of the parts this lane reads */
#pragma unroll
  for (int k = 0; k < N; k++) {
    const int b = threadIdx.x % 32 + 32 * k;
    of[k] = b < a.team.parts ? (float)(min(a.share, a.words - b * a.share) * E) : 0;
  }
#pragma unroll 1
  for (int i = receiver; i < rows; i += a.receivers) {
    float2 v[N];
    team.receive_parts(i, 0, v);
    const float about = finite_or_0(__shfl_sync(~0u, v[0].x, 0));
    float s1 = 0, s2 = 0;
#pragma unroll
    for (int k = 0; k < N; k++) {
      const float d = v[k].x - about, s = of[k] * d;
      s1 += s;
      s2 += v[k].y + s * d;
    }
    s1 = warp_sum(s1), s2 = warp_sum(s2);
    const int64_t row = team.team + (int64_t)i * a.team.teams;
    const moments all = { about + s1 * a.inverse, s2 - s1 * s1 * a.inverse, 0 };
    const norm_statistics is = statistics_of(a, dtype, all, row * a.step[X] * E, 1, 0, (int64_t)a.words * E, 32);
    if (threadIdx.x % 32) continue;
    n.statistic[i % TURNS] = make_float2(is.mean, is.rstd);
    barrier_arrive(turn_barrier(n.known, i));
    if (team.rank == 0) a.put(MEAN, row * a.step[MEAN], is.mean), a.put(RSTD, row * a.step[RSTD], is.rstd);
  }
}

template <int dtype, bool centred> __global__ void __launch_bounds__(THREADS, 1) norm_ring(const __grid_constant__ rings a)
{
  constexpr int E = vector_per_16<dtype>;
  extern __shared__ uint4 slots[];
  __shared__ mailbox n;
  const team_member team(a.team, nullptr);
  const int rows = (a.rows - team.team + a.team.teams - 1) / a.team.teams, warp = threadIdx.x / 32, receiver = warp - WARPS - 1;
  if (threadIdx.x < TURNS) {
    barrier_init(shared_address(n.measured + threadIdx.x), WARPS);
    barrier_init(shared_address(n.known + threadIdx.x), 1);
  }
  __syncthreads();
  if (warp < WARPS) work<dtype, centred>(a, n, team, slots, rows);
  else if (warp == WARPS) publish_rows<E>(a, n, team, rows);
  else if (receiver >= a.receivers) {}
  else if (a.team.parts <= 32) receive_rows<dtype, centred, 1>(a, n, team, rows, receiver);
  else if (a.team.parts <= 64) receive_rows<dtype, centred, 2>(a, n, team, rows, receiver);
  else receive_rows<dtype, centred, MAX_PARTS / 32>(a, n, team, rows, receiver);
  team.leave();
}

/* ---- prepare, rows --------------------------------------------------------------------------------------------------- */

struct state : norm_plan {
  rings a;

  void bind(rings *to, const qn_launch *launch) const { to->team.published = launch->counters; }
};
enum { SHARED = STAGES * SLICE * 16 };    /* 192 KB of the 227 that a block has on 9.0 */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state s = {};
  rings &a = s.a;
  const norm_problem &p = s.of;
  const qn_status status = norm_open(r, 9, &s.of, &a, out);
  if (status) return status;
  bool wide;
  if (!norm_word_rows(r, &p, a.step, &wide) || wide)
    return qn_refuse(out, "rows and parameters of one dtype, contiguous, in 16-byte words, at one step; parameters alike for all rows", "x",
                     "", "%s", "another layout");
  const int64_t words = p.length * p.bytes / 16, slices = qn_ceil_div(words, SLICE);
  if (slices < 2 || slices > qn_min_i64(r->device->units, MAX_PARTS) || p.groups > INT32_MAX / 2)
    return qn_refuse(out, "rows longer than a block's slice, no longer than all of the device's, fewer than 2^30", "x",
                     "more than 32 KB, up to that for each multiprocessor", "%lld elements", (long long)p.length);

  a.rows = (int32_t)p.groups, a.words = (int32_t)words;
  a.share = (int32_t)qn_round_up(qn_ceil_div(words, slices), 8);            /* multiples of a 128-byte cache line */
  a.team.parts = (int32_t)qn_ceil_div(words, a.share);
  a.team.teams = (int32_t)qn_min_i64(p.groups, r->device->units / a.team.parts);
  a.receivers = a.team.parts <= 64 ? 1 : RECEIVERS;
  a.team.each = 1, a.team.turns = 2 * TURNS;
  s.blocks = (uint32_t)(a.team.teams * a.team.parts), s.cluster = CUDA_TOGETHER, s.threads = THREADS, s.shared = SHARED;
  s.kernel = cuda_by_dtype(p.dtype[X], [&](auto d) {
    return p.centred ? (const void *)norm_ring<d(), true> : (const void *)norm_ring<d(), false>;
  });
  out->counters = (uint64_t)cuda_team_counters(&a.team);
  out->estimate = 9000 + p.moved / 4130;
  return cuda_keep(out, &s, sizeof s);
}

static const qn_engine row[] = { NORM_ROWS(state, "ring", QN_TRAIT_BATCH_INVARIANT, prepare) };
CUDA_ENGINES(norm_ring) = { row, sizeof row / sizeof *row };
