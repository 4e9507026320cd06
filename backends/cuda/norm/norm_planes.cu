/* norm_planes.cu -- layer_norm and rms_norm over contiguous groups with parameters per channel (group and instance norm, channels first),
 * and their gradients, f16, bf16 and f32, sm_80 and up: groups are held in shared memory, so each element is read once and written once.
 *
 * Forward, a block handles one group, or several small ones; the other resident blocks hide the latency. A gradient's group belongs to a
 * block, a cluster, or a team of co-resident blocks (team.cuh): its sums of g and g h are its channels' sums of dy and dy h, weighted by
 * their scales; those are also added up over the groups (norm_sums.cuh). Copies are by cp.async.
 * Refused: channels below 16 bytes, groups that do not fit twice into an SM's (gradients: the device's) shared memory. */
#include "norm_follow.cuh"
#include "norm_sums.cuh"
#include "kit/team.cuh"

/* THREADS, LEAST: of a block at most, at least; WORDS: of a thread, if that covers the group */
enum { THREADS = 512, LEAST = 128, WORDS = 16 };

/* ---- forward ---------------------------------------------------------------------------------------------------------------------- */

struct planes : norm_args {
  norm_items outer;
  int64_t  length;                        /* elements of a group */
  int32_t  groups, words;                 /* words: 16-byte words of a group */
  int32_t  width, together;               /* threads a group; groups a block */
  int32_t  repeat, channels;              /* elements of a channel; channels of a group */
  cuda_divisor by_repeat;
  norm_activation act;
};

/* pieces: a word splits into so many equal pieces of one channel each; 0: a channel may end anywhere in a word. */
template <int whole, int pieces> __global__ void __launch_bounds__(THREADS, 2) norm_planes(const __grid_constant__ planes a)
{
  constexpr int E = vector_per_16<whole>;
  extern __shared__ uint4 shared[];
  __shared__ float4 of_warp[THREADS / 32];
  const int sub = (uint32_t)threadIdx.x / (uint32_t)a.width, t = threadIdx.x - sub * a.width, group = blockIdx.x * a.together + sub;
  const bool there = group < a.groups;
  const int words = there ? a.words : 0;
  uint4 *held = shared + sub * a.words;
  float2 *table = (float2 *)(shared + a.together * a.words) + sub * a.channels;           /* scale and shift of each channel */
  const uint4 *x = vector_place<whole>(a.p[X], a.outer.place(group, X));
#pragma unroll 4
  for (int k = t; k < words; k += a.width) copy_async<16>(shared_address(held + k), x + k, 16);
  copy_async_commit();
  if (there) {
    const int64_t scale = a.outer.place(group, SCALE), shift = a.outer.place(group, SHIFT);
    for (int c = t; c < a.channels; c += a.width)
      table[c] = make_float2(a.parameter(SCALE, scale + c, 1), a.parameter(SHIFT, shift + c, 0));
  }
  copy_async_wait<0>();

  float v[E], from[1] = {}, s1[1] = {}, s2[1] = {};
  int n = 0;
  if (a.centred && t < words) {
    vector_open<whole>(v, 0, held[t]);
    from[0] = finite_or_0(v[0]);
  }
#pragma unroll 4
  for (int k = t; k < words; k += a.width, n += E) add_word<whole, true>(held[k], from, s1, s2);
  moments all = warp_join_lanes(moments_about(from[0], s1[0], s2[0], (float)n, a.centred), warp_sum((float)n));
  if (a.width == 32) __syncwarp();        /* makes the table visible */
  else {
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = all.pack();
    __syncthreads();
    const int first = sub * a.width / 32;
    all = lanes_join_all(32, a.width / 32, [&](int w) { return moments::unpack(of_warp[first + w]); });
  }
  const norm_statistics of = statistics_of(a, whole, all, a.outer.place(group, X), 1, 0, a.length, 32);
  if (t == 0 && there) a.put(MEAN, a.outer.place(group, MEAN), of.mean), a.put(RSTD, a.outer.place(group, RSTD), of.rstd);

  float mean[1] = { of.mean }, rstd[1] = { of.rstd };
  const float unit = far_unit(mean, rstd);
  uint4 *y = (uint4 *)vector_place<whole>(a.p[Y], a.outer.place(group, Y));
#pragma unroll 2
  for (int k = t; k < words; k += a.width) {
    vector_open<whole>(v, 0, held[k]);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = far_normalized(v[e], unit, mean[0], rstd[0]);
    if constexpr (pieces) {
#pragma unroll
      for (int i = 0; i < pieces; i++) {
        const float2 of = table[cuda_quotient(k * E + i * (E / pieces), a.by_repeat)];
#pragma unroll
        for (int e = i * (E / pieces); e < (i + 1) * (E / pieces); e++) v[e] = fmaf(v[e], of.x, of.y);
      }
    } else {
      const int c = cuda_quotient(k * E, a.by_repeat), left = (c + 1) * a.repeat - k * E;
      const float2 here = table[c], next = left < E ? table[c + 1] : here;
#pragma unroll
      for (int e = 0; e < E; e++) v[e] = fmaf(v[e], e < left ? here.x : next.x, e < left ? here.y : next.y);
    }
    if (a.act.op) activate<whole != QN_F32>(a.act, v);
    y[k] = vector_close<whole>(v, 0);
  }
}

/* ---- the gradient ------------------------------------------------------------------------------------------------------------------ */

struct plane_gradients : planes {
  cuda_team team;                         /* the blocks that share a group */
  int32_t  share;                         /* words of a block's share of a group */
  int32_t  unit, pieces;                  /* lanes that sum a channel together; such units a channel */
  float2  *sums;                          /* partial sums of dy and dy h: [groups, parts, channels of a group]; NULL: not wanted */
};

/* The words of a block's share that are in shared memory: x's, then dy's. */
struct held_words {
  uint32_t base;
  int      share;

  __device__ __forceinline__ uint32_t place(int k, bool dy) const { return base + (dy * share + k) * 16; }
  __device__ __forceinline__ uint4 get(int k, bool dy) const
  {
    uint4 q;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w) : "r"(place(k, dy)) : "memory");
    return q;
  }
};

/* A lane's part of the sums over one piece of channel c; words from .. to - 1 are the block's. */
template <int whole>
__device__ __forceinline__ float2 sum_channel(const plane_gradients &g, const held_words &held, int from, int to, int c, int piece,
                                              int lane, float mean, float rstd)
{
  constexpr int E = vector_per_16<whole>;
  const int first = c * g.repeat, end = first + g.repeat, stop = min(to, (end + E - 1) / E);
  float2 s = make_float2(0, 0);
#pragma unroll 2
  for (int k = max(first / E, from) + piece * g.unit + lane; k < stop; k += g.pieces * g.unit) {
    float x[E], dy[E];
    vector_open<whole>(x, 0, held.get(k - from, false));
    vector_open<whole>(dy, 0, held.get(k - from, true));
    const auto add = [&](int e) { s.x += dy[e], s.y += dy[e] * ((x[e] - mean) * rstd); };
    if (k * E >= first && k * E + E <= end) {
#pragma unroll
      for (int e = 0; e < E; e++) add(e);
    } else {                              /* the word overlaps a neighbouring channel */
#pragma unroll
      for (int e = 0; e < E; e++)
        if (k * E + e >= first && k * E + e < end) add(e);
    }
  }
  return s;
}

template <int whole> __global__ void __launch_bounds__(THREADS, 2) norm_planes_gradient(const __grid_constant__ plane_gradients g)
{
  constexpr int E = vector_per_16<whole>, AT_ONCE = 2;
  extern __shared__ uint4 shared[];
  const planes &a = g;
  const team_member team(g.team, (ulonglong2 *)shared);
  uint4 *const slots = shared + cuda_team_shared(&g.team) / 16;
  const held_words held = { shared_address(slots), g.share };
  /* sum: [channels, pieces]; received: [parts] */
  float2 *const sum = (float2 *)(slots + (int64_t)2 * g.share), *const received = sum + a.channels * g.pieces;
  float *const scales = (float *)(received + g.team.parts); /* [2, channels]: other threads may still read the last group's */
  const int t = threadIdx.x, threads = blockDim.x, unit = (uint32_t)t / (uint32_t)g.unit, lane = t - unit * g.unit,
            units = (uint32_t)threads / (uint32_t)g.unit, from = team.rank * g.share, to = min(from + g.share, a.words), mine = to - from;
  for (int item = team.team, turn = 0; item < a.groups; item += g.team.teams, turn++) {
    const uint4 *x = vector_place<whole>(a.p[X], a.outer.place(item, X)) + from;
    const uint4 *dy = vector_place<whole>(a.p[DY], a.outer.place(item, DY)) + from;
    const int64_t scale_at = a.outer.place(item, SCALE);
#pragma unroll 2
    for (int k = t; k < mine; k += threads) {
      copy_async<16>(held.place(k, false), x + k, 16);
      copy_async<16>(held.place(k, true), dy + k, 16);
    }
    copy_async_commit();
    if (turn == 0) team.begin();
    const float mean = a.centred ? a.statistic(MEAN, a.outer.place(item, MEAN)) : 0, rstd = a.statistic(RSTD, a.outer.place(item, RSTD));
    float *const scale = scales + turn % 2 * a.channels;
    for (int c = t; c < a.channels; c += threads) scale[c] = finite_or_nan(a.parameter(SCALE, scale_at + c, 1));
    copy_async_wait<0>();
    __syncthreads();                      /* all threads' copies have landed */
#pragma unroll 1
    for (int i = 0; i < a.channels * g.pieces; i += units) {
      const int c = (uint32_t)(i + unit) / (uint32_t)g.pieces;
      float2 s = c < a.channels ? sum_channel<whole>(g, held, from, to, c, i + unit - c * g.pieces, lane, mean, rstd) : make_float2(0, 0);
#pragma unroll 1
      for (int o = g.unit / 2; o; o /= 2) s.x += __shfl_xor_sync(~0u, s.x, o), s.y += __shfl_xor_sync(~0u, s.y, o);
      if (lane == 0 && c < a.channels) sum[i + unit] = s;
    }
    __syncthreads();
    float2 all = make_float2(0, 0);
    for (int i = t % 32; i < a.channels * g.pieces; i += 32) {
      const float w = scale[(uint32_t)i / (uint32_t)g.pieces];
      all.x += sum[i].x * w, all.y += sum[i].y * w;
    }
    all = make_float2(warp_sum(all.x), warp_sum(all.y));
    if (g.team.parts > 1) {               /* the parts' sums, added in order */
      if (t == 0) team.publish(turn, 0, all);
      for (int i = t; i < g.team.parts; i += threads) received[i] = team.receive(turn, i);
      __syncthreads();
      all = make_float2(0, 0);
      for (int b = 0; b < g.team.parts; b++) all.x += received[b].x, all.y += received[b].y;
    }
    const float share = 1 / (float)a.length, less = a.centred ? all.x * share : 0, along = all.y * share;
    for (int c = t; g.sums && c < a.channels; c += threads) {
      float2 channel = make_float2(0, 0);
      for (int i = c * g.pieces; i < (c + 1) * g.pieces; i++) channel.x += sum[i].x, channel.y += sum[i].y;
      g.sums[((int64_t)item * g.team.parts + team.rank) * a.channels + c] = channel;
    }
    uint4 *const dx = (uint4 *)vector_place<whole>(a.p[Y], a.outer.place(item, Y)) + from;
    const auto write = [&](int k, auto some) {
      constexpr int n = decltype(some)::value;
      uint4 q[n], p[n];
#pragma unroll
      for (int b = 0; b < n; b++) q[b] = held.get(k + b * threads, false), p[b] = held.get(k + b * threads, true);
#pragma unroll
      for (int b = 0; b < n; b++) {
        float x[E], dy[E];
        vector_open<whole>(x, 0, q[b]);
        vector_open<whole>(dy, 0, p[b]);
        const int j = (from + k + b * threads) * E, c = cuda_quotient(j, a.by_repeat), left = (c + 1) * a.repeat - j;
        const float here = scale[c], next = left < E ? scale[c + 1] : here;
#pragma unroll
        for (int e = 0; e < E; e++) x[e] = rstd * (dy[e] * (e < left ? here : next) - less - (x[e] - mean) * rstd * along);
        dx[k + b * threads] = vector_close<whole>(x, 0);
      }
    };
    int k = t;
#pragma unroll 1
    for (; k + (AT_ONCE - 1) * threads < mine; k += AT_ONCE * threads) write(k, std::integral_constant<int, AT_ONCE>());
#pragma unroll 1
    for (; k < mine; k += threads) write(k, std::integral_constant<int, 1>());
  }
  team.leave();
}

/* ---- prepare, rows ------------------------------------------------------------------------------------------------------------ */

struct state : norm_plan {
  plane_gradients a;
  int64_t  sides;                         /* groups with different channels */

  void bind(plane_gradients *to, const qn_launch *launch) const { to->team.published = launch->counters, to->sums = sums_in(launch); }
};

/* Forward: false: two blocks do not fit into an SM. */
static bool place_groups(const qn_device *device, state *s)
{
  planes &a = s->a;
  a.width = 32;
  while (a.width < THREADS && a.words > WORDS * a.width) a.width *= 2;
  a.together = a.width < LEAST ? LEAST / a.width : 1;
  s->threads = (uint32_t)(a.width * a.together), s->blocks = (uint32_t)qn_ceil_div(a.groups, a.together), s->cluster = 1;
  const int64_t bytes = a.together * ((int64_t)a.words * 16 + a.channels * (int64_t)sizeof(float2));
  s->shared = (uint32_t)bytes;
  return bytes + 1536 <= (int64_t)device->shared_per_unit / 2 && bytes + 512 <= (int64_t)device->shared_per_block;
}

/* A gradient's groups in `parts`; true if an SM has room for `resident` blocks, each with one part. */
static bool fits(const qn_device *device, state *s, int64_t resident, int64_t parts, bool cluster)
{
  plane_gradients &g = s->a;
  g.share = (int32_t)qn_round_up(qn_ceil_div(g.words, parts), parts > 1 ? 32 : 1);      /* multiples of cache lines */
  g.team = {};
  g.team.parts = (int32_t)qn_ceil_div(g.words, g.share), g.team.each = 1, g.team.turns = 2, g.team.cluster = cluster;
  int threads = 32;
  while (threads < THREADS && g.share > 8 * threads) threads *= 2;
  const int64_t words = qn_ceil_div(g.repeat, 16 / s->of.bytes);        /* of a channel */
  for (g.unit = 1; g.unit < 32 && g.unit * 2 <= words;) g.unit *= 2;
  g.pieces = (int32_t)qn_max_i64(1, qn_min_i64(threads / g.unit / g.channels, qn_ceil_div(words, g.unit)));
  const int64_t bytes = cuda_team_shared(&g.team) + 8 * (g.channels * (int64_t)(g.pieces + 1) + g.team.parts) + (int64_t)32 * g.share;
  const bool stay = parts > 1 && !cluster;                  /* blocks that exchange through global memory must be resident, and persist */
  g.team.teams = (int32_t)(stay ? qn_min_i64(g.groups, device->units * resident / g.team.parts) : g.groups);
  s->threads = (uint32_t)threads, s->blocks = (uint32_t)(g.team.teams * g.team.parts), s->shared = (uint32_t)bytes;
  s->cluster = g.team.parts == 1 ? 1 : cluster ? (uint32_t)g.team.parts : (uint32_t)CUDA_TOGETHER;
  return bytes <= qn_min_i64((int64_t)device->shared_per_unit / resident - 1024, (int64_t)device->shared_per_block) - 16 &&
         g.team.teams > 0 && g.team.teams * (int64_t)g.team.parts <= INT32_MAX;
}
/* In order of preference: a group to a block, two on an SM, which hide one another's latency; a cluster; a block per SM; then a team of as
 * many blocks as needed. */
static bool share_out(const qn_device *device, state *s)
{
  if (fits(device, s, 2, 1, false)) return true;
  for (int64_t parts = 2; parts <= CUDA_TEAM_CLUSTER && cuda_has_clusters(device); parts *= 2)
    if (fits(device, s, 2, parts, true)) return true;
  if (fits(device, s, 1, 1, false)) return true;
  for (int64_t parts = 2; parts <= 2 * device->units; parts++)
    if (fits(device, s, 2, parts, false)) return true;
  return false;
}

/* Parameters may vary along the innermost outer dim, but then all of them, because dscale and dshift are summed over the same groups. */
static const char *read_sides(const norm_problem &p, state *s)
{
  int given = 0, varying = 0;
  const norm_items &outer = s->a.outer;
  for (int t = SCALE; t < PARAMETERS_END; t++) {
    if (p.number[t] < 0) continue;
    given++;
    varying += outer.rank > 0 && outer.stride[t][0] != 0;
    for (int d = 0; d < outer.rank; d++)
      if (outer.stride[t][d] != 0 && (d > 0 || outer.stride[t][d] != s->a.channels))
        return "a gradient's parameters lie like a group's channels, one group's after another's";
  }
  s->sides = varying ? outer.by[0].by : 1;
  return varying && varying < given ? "a gradient's parameters are alike for all groups, or none is" : nullptr;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state s = {};
  plane_gradients &a = s.a;
  norm_problem &p = s.of;
  const qn_status status = norm_open(r, 8, &p, &a, out);
  if (status) return status;
  const int64_t E = 16 / p.bytes;
  int64_t repeat;
  const char *rule = norm_channels(&p, E, &repeat);
  if (!rule && (p.length % E || p.length > INT32_MAX / 2 || p.groups > INT32_MAX / 2)) rule = "groups of whole words, fewer than 2^30";
  if (!rule && !norm_number(p.outer, 1, &a.outer)) rule = "at most 4 other dims that do not merge";
  if (!rule && !norm_whole(r, &p, E, 0, false)) rule = "x, dy and y of one dtype, in whole words aligned to 16 bytes";
  if (repeat == 0) repeat = p.length;
  a.repeat = (int32_t)repeat, a.channels = (int32_t)(p.length / qn_max_i64(1, repeat)), a.by_repeat = cuda_divide_by(qn_max_i64(1, repeat));
  if (!rule && p.backward) rule = read_sides(p, &s);
  if (rule) return qn_refuse(out, rule, "x", "", "%s", "another layout");
  if (!p.backward) p.number[Y] = norm_activation_behind(r, p.number[Y], &a.act, out);
  a.groups = (int32_t)p.groups, a.length = p.length, a.words = (int32_t)(p.length * p.bytes / 16);
  if (!(p.backward ? share_out(r->device, &s) : place_groups(r->device, &s)))
    return qn_refuse(out, "a gradient's group fits into the device's shared memory, two groups into a multiprocessor's", "x", "",
                     "%lld elements", (long long)p.length);
  s.kernel = cuda_by_dtype(p.dtype[X], [&](auto d) {
    return p.backward              ? (const void *)norm_planes_gradient<d()>
           : a.repeat % E == 0     ? (const void *)norm_planes<d(), 1>
           : a.repeat * 2 % E == 0 ? (const void *)norm_planes<d(), 2>
                                   : (const void *)norm_planes<d(), 0>;
  });
  if (p.backward) out->counters = (uint64_t)cuda_team_counters(&a.team);
  if (p.backward) s.sum_items(p.groups / s.sides, s.sides, a.team.parts, a.channels, out);
  out->estimate = p.backward ? 5000 + p.moved / 3700 : 3000 + p.moved / 4000;
  return cuda_keep(out, &s, sizeof s);
}

static const qn_engine row[] = { NORM_ROWS(state, "planes", QN_TRAIT_BATCH_INVARIANT, prepare),
                                 NORM_BACKWARD_ROWS(state, "planes", QN_TRAIT_BATCH_INVARIANT, prepare) };
CUDA_ENGINES(norm_planes) = { row, sizeof row / sizeof *row };
