/* norm_planes.cu -- layer_norm and rms_norm over contiguous groups with parameters per channel (group and instance norm, channels first),
 * and their gradients, f16, bf16 and f32, sm_80 and up: groups are held in shared memory, so each element is read once and written once.
 *
 *   with h = (x - mean) rstd, g = dy scale:
 *   y = act(h scale + shift)
 *   dx = rstd (g - mean g - h mean(g h)), dscale = sum dy h, dshift = sum dy         rms_norm: mean and mean g are 0
 *
 * Forward, a block handles one group, or several small ones; the other resident blocks hide the latency. A gradient's group belongs to a
 * block, a cluster, or a team of co-resident blocks (team.cuh): its sums of g and g h are its channels' sums of dy and dy h, weighted by
 * their scales; those are also added up over the groups (norm_parameters.cuh). Copies are by cp.async.
 * Refused: channels below 16 bytes (gradients: 8 elements), groups that do not fit twice into an SM's (gradients: the device's) shared
 * memory. */
#include <type_traits>
#include "norm_layout.cuh"
#include "norm_follow.cuh"
#include "norm_moments.cuh"
#include "norm_parameters.cuh"
#include "kit/team.cuh"

/* THREADS, LEAST: of a block at most, at least; WORDS: of a thread, if that covers the group; V: elements of a gradient's vector */
enum { THREADS = 512, LEAST = 128, WORDS = 16, V = 8 };

/* ---- forward ---------------------------------------------------------------------------------------------------------------------- */

struct planes {
  void    *p[TENSORS];
  uint32_t dtype[TENSORS];
  norm_items outer;
  int64_t  length;                        /* elements of a group */
  int32_t  groups, words;                 /* words: 16-byte words of a group */
  int32_t  width, together;               /* threads a group; groups a block */
  int32_t  repeat, channels;              /* elements of a channel; channels of a group */
  cuda_divisor by_repeat;
  float    eps;
  bool     centred;
  norm_activation act;

  __device__ __forceinline__ float parameter(int t, int64_t at, float none) const
  {
    return p[t] ? element_load<float>(p[t], at, dtype3(dtype[t])) : none;
  }
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
    all = warp_join_all(a.width / 32, [&](int w) { return moments::unpack(of_warp[first + w]); });
  }
  float mean = all.mean, rstd = 1 / sqrtf(all.squares / (float)a.length + a.eps);
  if (whole != QN_F16 && far_out(all.squares) && there) {
    const far_statistics far = far_measure({ a.p[X], whole, 1, 0, a.length }, a.outer.place(group, X), a.centred, a.eps, 32);
    mean = far.mean, rstd = far.rstd;
  }
  if (t == 0 && there && a.p[MEAN]) ((float *)a.p[MEAN])[a.outer.place(group, MEAN)] = mean;
  if (t == 0 && there && a.p[RSTD]) ((float *)a.p[RSTD])[a.outer.place(group, RSTD)] = rstd;

  const float unit = far_unit(mean, rstd);
  uint4 *y = (uint4 *)vector_place<whole>(a.p[Y], a.outer.place(group, Y));
#pragma unroll 2
  for (int k = t; k < words; k += a.width) {
    vector_open<whole>(v, 0, held[k]);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = far_normalized(v[e], unit, mean, rstd);
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

struct plane_gradients {
  planes   a;
  int32_t  items, vectors, share;         /* vectors of a group, of a block's share of it */
  cuda_team team;                         /* the blocks that share a group */
  int32_t  unit, pieces;                  /* lanes that sum a channel together; such units a channel */
  float2  *sums;                          /* partial sums of dy and dy h: [groups, parts, channels of a group]; NULL: not wanted */
};

/* Shared memory holds x's vectors in order: all first words, then (f32) all second words; then dy's. Word-wise, so that the lanes' 16-byte
 * accesses are contiguous. */
template <int whole> struct held_vectors {
  static constexpr int words = whole == QN_F32 ? 2 : 1;
  uint32_t base;
  int      share;

  struct raw {
    uint4 word[words];
    __device__ __forceinline__ void open(float (&v)[V]) const
    {
#pragma unroll
      for (int w = 0; w < words; w++) vector_open<whole>(v, w * vector_per_16<whole>, word[w]);
    }
  };
  __device__ __forceinline__ uint32_t place(int v, int w) const { return base + (w * share + v) * 16; }
  __device__ __forceinline__ raw get(int v, int from) const       /* from: 0: x's, words: dy's */
  {
    raw q;
#pragma unroll
    for (int w = 0; w < words; w++) {
      uint4 &r = q.word[w];
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "r"(place(v, from + w)) : "memory");
    }
    return q;
  }
};

/* Adds dy and dy h of an element. */
__device__ __forceinline__ void add(float2 *sum, float x, float dy, float mean, float rstd)
{
  sum->x += dy;
  sum->y += dy * ((x - mean) * rstd);
}

/* A lane's part of the sums over one piece of channel c; vectors from .. to - 1 are the block's. */
template <int whole>
__device__ __forceinline__ float2 sum_channel(const plane_gradients &g, const held_vectors<whole> &held, int from, int to, int c, int piece,
                                              int lane, float mean, float rstd)
{
  constexpr int words = held_vectors<whole>::words;
  const int first = c * g.a.repeat, end = first + g.a.repeat, stop = min(to, (end + V - 1) / V);
  float2 s = make_float2(0, 0);
#pragma unroll 2
  for (int v = max(first / V, from) + piece * g.unit + lane; v < stop; v += g.pieces * g.unit) {
    float x[V], dy[V];
    held.get(v - from, 0).open(x);
    held.get(v - from, words).open(dy);
    if (v * V >= first && v * V + V <= end) {
#pragma unroll
      for (int e = 0; e < V; e++) add(&s, x[e], dy[e], mean, rstd);
    } else {                              /* the vector overlaps a neighbouring channel */
#pragma unroll
      for (int e = 0; e < V; e++)
        if (v * V + e >= first && v * V + e < end) add(&s, x[e], dy[e], mean, rstd);
    }
  }
  return s;
}

template <int whole> __global__ void __launch_bounds__(THREADS, 2) norm_planes_gradient(const __grid_constant__ plane_gradients g)
{
  typedef held_vectors<whole> H;
  constexpr int words = H::words, at_once = 2 / words;
  extern __shared__ uint4 shared[];
  const planes &a = g.a;
  const team_member team(g.team, (ulonglong2 *)shared);
  uint4 *const slots = shared + cuda_team_shared(&g.team) / 16;
  const H held = { shared_address(slots), g.share };
  /* sum: [channels, pieces]; received: [parts] */
  float2 *const sum = (float2 *)(slots + (int64_t)2 * words * g.share), *const received = sum + a.channels * g.pieces;
  float *const scales = (float *)(received + g.team.parts); /* [2, channels]: other threads may still read the last group's */
  const int t = threadIdx.x, threads = blockDim.x, unit = (uint32_t)t / (uint32_t)g.unit, lane = t - unit * g.unit,
            units = (uint32_t)threads / (uint32_t)g.unit, from = team.rank * g.share, to = min(from + g.share, g.vectors), mine = to - from;
  for (int item = team.team, turn = 0; item < g.items; item += g.team.teams, turn++) {
    const int64_t x_at = a.outer.place(item, X) + (int64_t)from * V, dy_at = a.outer.place(item, DY) + (int64_t)from * V,
                  scale_at = a.outer.place(item, SCALE);
#pragma unroll 2
    for (int v = t; v < mine; v += threads)
#pragma unroll
      for (int w = 0; w < words; w++) {
        copy_async<16>(held.place(v, w), vector_place<whole>(a.p[X], x_at + v * V) + w, 16);
        copy_async<16>(held.place(v, words + w), vector_place<whole>(a.p[DY], dy_at + v * V) + w, 16);
      }
    copy_async_commit();
    if (turn == 0) team.begin();
    const float mean = a.centred ? ((const float *)a.p[MEAN])[a.outer.place(item, MEAN)] : 0;
    const float rstd = ((const float *)a.p[RSTD])[a.outer.place(item, RSTD)];
    float *const scale = scales + turn % 2 * a.channels;
    for (int c = t; c < a.channels; c += threads) {
      const float w = a.parameter(SCALE, scale_at + c, 1);
      scale[c] = fabsf(w) < INFINITY ? w : NAN;             /* with an infinite one g - mean g is NaN, so dx is */
    }
    copy_async_wait<0>();
    __syncthreads();                      /* all threads' copies have landed */
#pragma unroll 1
    for (int i = 0; i < a.channels * g.pieces; i += units) {
      const int c = (uint32_t)(i + unit) / (uint32_t)g.pieces;
      float2 s = c < a.channels ? sum_channel(g, held, from, to, c, i + unit - c * g.pieces, lane, mean, rstd) : make_float2(0, 0);
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
    const int64_t dx_at = a.outer.place(item, Y) + (int64_t)from * V;
    const auto write = [&](int v, auto some) {
      constexpr int n = decltype(some)::value;
      typename H::raw q[n], p[n];
#pragma unroll
      for (int b = 0; b < n; b++) q[b] = held.get(v + b * threads, 0), p[b] = held.get(v + b * threads, words);
#pragma unroll
      for (int b = 0; b < n; b++) {
        float x[V], dy[V];
        q[b].open(x);
        p[b].open(dy);
        const int j = (from + v + b * threads) * V, c = cuda_quotient(j, a.by_repeat), left = (c + 1) * a.repeat - j;
        const float here = scale[c], next = left < V ? scale[c + 1] : here;
#pragma unroll
        for (int e = 0; e < V; e++) x[e] = rstd * (dy[e] * (e < left ? here : next) - less - (x[e] - mean) * rstd * along);
        vector_store_whole<whole>(x, a.p[Y], dx_at + (v + b * threads) * V);
      }
    };
    int v = t;
#pragma unroll 1
    for (; v + (at_once - 1) * threads < mine; v += at_once * threads) write(v, std::integral_constant<int, at_once>());
#pragma unroll 1
    for (; v < mine; v += threads) write(v, std::integral_constant<int, 1>());
  }
  team.leave();
}

/* ---- prepare, build, run ------------------------------------------------------------------------------------------------------------- */

struct state {
  plane_gradients g;
  int32_t  number[TENSORS];               /* value numbers of the request; -1: absent */
  const void *kernel;
  int32_t  threads;
  int64_t  sides, shared;                 /* groups with different channels; bytes of shared memory of a block */
  bool     backward;
};

template <int whole> static const void *forward_kernel(int repeat)
{
  constexpr int E = vector_per_16<whole>;
  return repeat % E == 0       ? (const void *)norm_planes<whole, 1>
       : repeat % (E / 2) == 0 ? (const void *)norm_planes<whole, 2>
                               : (const void *)norm_planes<whole, 0>;
}

/* Forward: false: two blocks do not fit into an SM. */
static bool place_groups(const qn_device *device, state *s)
{
  planes &a = s->g.a;
  a.width = 32;
  while (a.width < THREADS && a.words > WORDS * a.width) a.width *= 2;
  a.together = a.width < LEAST ? LEAST / a.width : 1;
  s->threads = a.width * a.together;
  s->shared = a.together * ((int64_t)a.words * 16 + a.channels * (int64_t)sizeof(float2));
  return s->shared + 1536 <= (int64_t)device->shared_per_unit / 2 && s->shared + 512 <= (int64_t)device->shared_per_block;
}

/* A gradient's groups in `parts`; true if an SM has room for `resident` blocks, each with one part. */
static bool fits(const qn_device *device, state *s, int64_t resident, int64_t parts, bool cluster)
{
  plane_gradients &g = s->g;
  planes &a = g.a;
  g.share = (int32_t)qn_round_up(qn_ceil_div(g.vectors, parts), parts > 1 ? 32 : 1);      /* multiples of cache lines */
  g.team = {};
  g.team.parts = (int32_t)qn_ceil_div(g.vectors, g.share), g.team.each = 1, g.team.turns = 2, g.team.cluster = cluster;
  for (s->threads = 32; s->threads < THREADS && g.share > 8 * s->threads;) s->threads *= 2;
  const int64_t vectors = qn_ceil_div(a.repeat, V);
  for (g.unit = 1; g.unit < 32 && g.unit * 2 <= vectors;) g.unit *= 2;
  g.pieces = (int32_t)qn_max_i64(1, qn_min_i64(s->threads / g.unit / a.channels, qn_ceil_div(vectors, g.unit)));
  s->shared = cuda_team_shared(&g.team) + 8 * (a.channels * (int64_t)(g.pieces + 1) + g.team.parts) +
              (int64_t)2 * V * qn_kit_bytes(a.dtype[X]) * g.share;
  const bool stay = parts > 1 && !cluster;                  /* blocks that exchange through global memory must be resident, and persist */
  g.team.teams = (int32_t)(stay ? qn_min_i64(g.items, device->units * resident / g.team.parts) : g.items);
  return s->shared <= qn_min_i64((int64_t)device->shared_per_unit / resident - 1024, (int64_t)device->shared_per_block) - 16 &&
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
  const norm_items &outer = s->g.a.outer;
  for (int t = SCALE; t < PARAMETERS_END; t++) {
    if (p.number[t] < 0) continue;
    given++;
    varying += outer.rank > 0 && outer.stride[t][0] != 0;
    for (int d = 0; d < outer.rank; d++)
      if (outer.stride[t][d] != 0 && (d > 0 || outer.stride[t][d] != s->g.a.channels))
        return "a gradient's parameters lie like a group's channels, one group's after another's";
  }
  s->sides = varying ? outer.by[0].by : 1;
  return varying && varying < given ? "a gradient's parameters are alike for all groups, or none is" : nullptr;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  norm_problem p;
  state s = {};
  planes &a = s.g.a;
  const qn_status status = norm_open(r, 8, &p, out);
  if (status) return status;
  const int64_t E = p.backward ? (int64_t)V : 16 / p.bytes;
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
  memcpy(s.number, p.number, sizeof s.number);
  memcpy(a.dtype, p.dtype, sizeof a.dtype);
  a.groups = s.g.items = (int32_t)p.groups, a.length = p.length, a.words = (int32_t)(p.length * p.bytes / 16);
  s.g.vectors = (int32_t)(p.length / V);
  a.eps = p.eps, a.centred = p.centred, s.backward = p.backward;
  if (!(p.backward ? share_out(r->device, &s) : place_groups(r->device, &s)))
    return qn_refuse(out, "a gradient's group fits into the device's shared memory, two groups into a multiprocessor's", "x", "",
                     "%lld elements", (long long)p.length);
  const uint32_t dtype = p.dtype[X];
  if (p.backward)
    s.kernel = norm_of_dtype(dtype, (const void *)norm_planes_gradient<QN_F32>, (const void *)norm_planes_gradient<QN_BF16>,
                             (const void *)norm_planes_gradient<QN_F16>);
  else s.kernel = norm_of_dtype(dtype, forward_kernel<QN_F32>, forward_kernel<QN_BF16>, forward_kernel<QN_F16>)(a.repeat);
  if (p.backward) out->counters = (uint64_t)cuda_team_counters(&s.g.team);
  if (p.number[DSCALE] >= 0 || p.number[DSHIFT] >= 0)
    out->workspace = (uint64_t)p.groups * (uint64_t)s.g.team.parts * (uint64_t)a.channels * sizeof(float2);
  out->estimate = p.backward ? 5000 + p.moved / 3700 : 3000 + p.moved / 4000;
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *p) { return cuda_allow_shared(((const state *)p->state)->kernel); }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  plane_gradients g = s->g;
  planes &a = g.a;
  const cuda_team &team = g.team;
  norm_pointers(a.p, s->number, launch);
  g.team.published = launch->counters;
  g.sums = a.p[DSCALE] || a.p[DSHIFT] ? (float2 *)launch->workspace : nullptr;
  void *arguments[] = { s->backward ? (void *)&g : (void *)&a };
  const unsigned blocks = s->backward ? (unsigned)(team.teams * team.parts) : (unsigned)qn_ceil_div(a.groups, a.together);
  const unsigned cluster = !s->backward || team.parts == 1 ? 1 : team.cluster ? (unsigned)team.parts : (unsigned)CUDA_TOGETHER;
  const qn_status status = cuda_launch_clusters(s->kernel, blocks, cluster, (unsigned)s->threads, (size_t)s->shared, arguments, launch,
                                                "norm_planes");
  if (status || !g.sums) return status;
  return item_sums_add({ g.sums, a.p[DSCALE], a.p[DSHIFT], { a.dtype[DSCALE], a.dtype[DSHIFT] }, g.items / s->sides, s->sides, team.parts,
                         a.channels }, launch);
}

#define ROW(op) { "planes", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
                  nullptr, nullptr, prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM), ROW(QN_OP_RMS_NORM), ROW(QN_OP_LAYER_NORM_BACKWARD), ROW(QN_OP_RMS_NORM_BACKWARD) };
CUDA_ENGINES(norm_planes) = { row, sizeof row / sizeof *row };
