/* norm_bands.cuh -- part of norm_bands.cu: bands, that is the runs of some neighbouring groups, in whole
 * 16-byte words, in all lines of those groups; a thread's part of one; its moments; a block's memory; how a request is cut into bands. */
#pragma once
#include "norm_follow.cuh"
#include "norm_sums.cuh"

enum { MOST_PARTS = 8 };

struct bands : norm_args {
  norm_items items;
  /* strides between lines of x, y; between groups; between elements of a run, of the parameters */
  int64_t  line_step[2], group_step[TENSORS], run_step[PARAMETERS_END];
  int64_t  step[2];                       /* bytes between a thread's words in x (and dy), in y */
  int32_t  count;                         /* items of the launch */
  int32_t  lines, share, parts;           /* lines of an item, of a block's share; blocks of an item */
  int32_t  lanes, rows;                   /* words of a line, one thread each; lines that a block's threads cover at once */
  int32_t  groups, run;                   /* groups of an item; elements of a group in a line */
  cuda_divisor by_run, by_lanes, by_rows, by_parts;
  int32_t  join_bits;                     /* 2^join_bits threads merge the statistics of a group */
  int32_t  folds;                         /* statistics per word: 1 or 2, for so many groups that it may meet; E: one per element */
  /* joins: lanes divides 32, so a warp first adds up its lines by shuffles; leaves: mean, rstd or running statistics are written */
  bool     joins, leaves;
  norm_activation act;
  bool     each;                          /* parameters are shared by items: dscale and dshift are sums over those, by element of a line */
  bool     spread;                        /* parameters vary along a run */
  float2  *sums;                          /* if `each`, of dy and dy h: [items, parts, elements of a line]; NULL: not wanted */

  __device__ __forceinline__ int64_t place(int item, int t) const { return items.place(item, t); }
  /* The parameter of element i of a line, of `item`. */
  __device__ __forceinline__ float parameter_at(int t, int item, int i, float none) const
  {
    const int g = cuda_quotient(i, by_run), j = i - g * run;
    return parameter(t, place(item, t) + g * group_step[t] + j * run_step[t], none);
  }
  /* The item's group g in tensor t. */
  __device__ __forceinline__ int64_t of_group(int t, int item, int g) const { return place(item, t) + g * group_step[t]; }
  /* The statistics of that group from its moments; one thread. */
  __device__ __forceinline__ norm_statistics statistics(int item, int g, const moments &all) const
  {
    return statistics_of(*this, dtype[X], all, place(item, X) + (int64_t)g * run, lines, line_step[X], run, 1);
  }
  __device__ __forceinline__ int joined() const { return joins ? lanes : 32; }
  /* Sources of partial statistics in a block: rows of threads or, after shuffles, warps. */
  __host__ __device__ int sources(int threads) const { return joins ? threads / 32 : rows; }
};

/* A thread's part of an item: one word of every a.rows-th line of its block's share, `count` of them, from line `line` on. */
struct mine {
  int      item, rank, row, lane, active, count;
  int64_t  line;

  __device__ __forceinline__ mine(const bands &a)
  {
    const int t = threadIdx.x;
    row = cuda_quotient(t, a.by_lanes), lane = t - row * a.lanes, active = a.rows * a.lanes;
    item = blockIdx.x, rank = 0;
#if __CUDA_ARCH__ >= 900
    if (a.parts > 1) rank = (int)cluster_rank(), item = cuda_quotient(item, a.by_parts);
#endif
    const int lines = min(a.share, a.lines - rank * a.share);
    count = row < a.rows && row < lines ? cuda_quotient(lines - row + a.rows - 1, a.by_rows) : 0;
    line = (int64_t)rank * a.share + row;
  }
  /* Byte offset of its first word in x or y. */
  template <int whole> __device__ __forceinline__ int64_t start(const bands &a, int t) const
  {
    return (a.place(item, t) + line * a.line_step[t]) * (16 / vector_per_16<whole>) + lane * 16;
  }
  /* Does the thread store partial statistics, and as which source? */
  __device__ __forceinline__ bool stores(const bands &a) const { return a.joins ? threadIdx.x % 32 < a.lanes : threadIdx.x < active; }
  __device__ __forceinline__ int source(const bands &a) const { return a.joins ? threadIdx.x / 32 : row; }
};

/* Stores the moments of a word over n lines; `first` is its first element's place in the line. With two groups to a word
 * (folds 2), merges the elements' moments into the two groups'. */
template <int N, int E>
__device__ __forceinline__ void store_partial(const bands &a, float2 *to, const float (&mean)[N], const float (&squares)[N], float n,
                                              int first)
{
  if (N == 1 || a.folds > 2) {
#pragma unroll
    for (int e = 0; e < N; e++) to[e] = make_float2(mean[e], squares[e]);
    return;
  }
  const int here = min((int)E, (int)(cuda_quotient(first, a.by_run) + 1) * a.run - first);         /* elements of group 0 */
  float m[2] = {}, s[2] = {};             /* means, as distances from an element's, so that equal ones have it exactly */
  const float about[2] = { finite_or_0(mean[0]), finite_or_0(mean[N - 1]) };
#pragma unroll
  for (int e = 0; e < N; e++) m[e < here ? 0 : 1] += mean[e] - about[e < here ? 0 : 1];
  m[0] = about[0] + m[0] / (float)here, m[1] = about[1] + m[1] / (float)max(1, E - here);
#pragma unroll
  for (int e = 0; e < N; e++) {
    const float d = a.centred ? mean[e] - m[e < here ? 0 : 1] : 0;
    s[e < here ? 0 : 1] += squares[e] + n * d * d;
  }
  to[0] = make_float2(m[0], s[0]), to[1] = make_float2(m[1], s[1]);
}

/* Turns a thread's sums into moments and stores them: partial [sources, lanes, folds], count [sources] of lines. */
template <int whole, int N>
__device__ __forceinline__ void store_moments(const bands &a, const mine &m, float2 *partial, float *count, const float (&from)[N],
                                             float (&s1)[N], float (&s2)[N])
{
  constexpr int E = vector_per_16<whole>;
  float n[1] = { (float)m.count };
  sum_lines(s1, a.joined()), sum_lines(s2, a.joined()), sum_lines(n, a.joined());
#pragma unroll
  for (int e = 0; e < N; e++) {
    const moments of = moments_about(from[e], s1[e], s2[e], n[0] * (E / N), a.centred);
    s1[e] = of.mean, s2[e] = of.squares;
  }
  if (!m.stores(a)) return;
  store_partial<N, E>(a, partial + (m.source(a) * a.lanes + m.lane) * a.folds, s1, s2, n[0], m.lane * E);
  if (m.lane == 0) count[m.source(a)] = n[0];
}

/* The moments of group g, merged from those of all sources by 2^join_bits neighbouring lanes, which all get the result.
 * partial: [sources, lanes, folds] of mean and squares; count: [sources], lines. */
template <int E> __device__ __forceinline__ moments gather(const bands &a, const float2 *partial, const float *count, int g)
{
  const bool each = a.folds > 2;          /* one entry per element, not per word */
  const int begin = g * a.run, end = begin + a.run, unit = each ? 1 : E, first = each ? begin : begin / E,
            width = (each ? end - 1 : (end - 1) / E) - first + 1;
  const int pitch = a.lanes * (each ? E : 1);
  const float inverse = __fdividef(1, (float)width);      /* the .5 below keeps quotients farther from an integer than its error */
  return lanes_join_all(1 << a.join_bits, a.sources(blockDim.x) * width, [&](int i) -> moments {
    const int source = (int)(((float)i + .5f) * inverse), u = first + i - source * width;
    const float2 q = partial[a.folds == 2 ? (source * pitch + u) * 2 + (u * unit < begin) : source * pitch + u];
    return { q.x, q.y, count[source] * (float)(min(end, u * unit + unit) - max(begin, u * unit)) };
  });
}

/* Shared memory behind the words. Parameters are kept by entry: of each group (stream, two items in turn), or of each element of a line. */
struct block_memory {
  float4 *given;                          /* [1 or 2, entries]; forward: scale, shift; gradient: mean, rstd, scale */
  float4 *received;                       /* [parts, groups]: moments, or sums of dy and dy h; of g and g h if `spread` */
  float2 *known;                          /* forward, of each group: mean, rstd; gradient, of each entry: means of g and g h */
  float2 *partial;                        /* [sources, lanes, folds]: mean, squares; gradient: [.., folds or E]: sums of dy and dy h */
  float  *count;                          /* [sources], of lines */
  int     entries, partial_each;

  __host__ __device__ block_memory(const bands &a, bool stream, bool gradient, int E)
    : entries(stream ? a.groups : a.lanes * E), partial_each(gradient && !stream ? E : a.folds) {}
  __device__ block_memory(const bands &a, void *behind, bool stream, bool gradient, int threads, int E)
    : block_memory(a, stream, gradient, E)
  {
    given = (float4 *)behind, received = given + (stream ? 2 : 1) * entries;
    known = (float2 *)(received + (stream ? 0 : a.parts * a.groups)), partial = known + (gradient ? entries : a.groups);
    count = (float *)(partial + a.sources(threads) * a.lanes * partial_each);
  }
  static int64_t bytes(const bands &a, bool stream, bool gradient, int threads, int E)
  {
    const block_memory b(a, stream, gradient, E);
    return 16 * (int64_t)(stream ? 2 * b.entries : b.entries + a.parts * a.groups) + 8 * (int64_t)(gradient ? b.entries : a.groups) +
           a.sources(threads) * (8 * (int64_t)a.lanes * b.partial_each + 4);
  }
};

/* ---- host ------------------------------------------------------------------------------------------------------------- */

struct bands_state : norm_plan {
  bands    a;
  int64_t  items;

  void bind(bands *to, const qn_launch *launch) const { to->sums = sums_in(launch); }
};

/* Reads the op, its tensors and their layout: lines consist of contiguous runs, one per group; the last outer dim numbers them. */
static qn_status bands_read(const qn_request *r, bands_state *s, qn_prepared *out)
{
  norm_problem &p = s->of;
  bands &a = s->a;
  const qn_status status = norm_open(r, 8, &p, &a, out);
  if (status) return status;
  const qn_nest &in = p.in, &outer = p.outer;
  const int64_t E = 16 / p.bytes;
  const int last = in.rank - 1, g = outer.rank - 1;
  int64_t run = 0;
  bool shared = false;                    /* some outer dims share their parameters */
  const char *rule = norm_runs(r, &p, &run);
  for (int t = SCALE; t < PARAMETERS_END && !rule; t++) {
    if (p.number[t] < 0) continue;
    if (in.stride[t][0]) rule = "parameters are alike for all lines";
    a.run_step[t] = last == 1 ? in.stride[t][1] : 0;
    a.spread |= a.run_step[t] != 0;
    for (int d = 0; d < g; d++) shared |= outer.stride[t][d] == 0;
  }
  a.each = a.spread || shared;
  for (int t = SCALE; t < PARAMETERS_END && p.backward && !rule; t++) {
    if (p.number[t] < 0) continue;
    bool as = !a.each || (outer.stride[t][g] == run && (run == 1 || a.run_step[t] == 1));
    for (int d = 0; d < g; d++) as &= a.each == (outer.stride[t][d] == 0);
    if (!as) rule = "a gradient's parameters have an element for each group, or for each of a line's";
  }
  if (!rule && (in.dim[0] * run * outer.dim[g] > INT32_MAX / 2 || p.groups > INT32_MAX / MOST_PARTS))
    rule = "fewer than 2^30 elements in such lines, and 2^27 groups";
  if (rule) return qn_refuse(out, rule, "x", "", "%s", "another layout");
  if (!p.backward) p.number[Y] = norm_activation_behind(r, p.number[Y], &a.act, out);
  for (int t = X; t <= Y; t++) a.line_step[t] = in.stride[t][0];
  for (int t = 0; t < TENSORS; t++) a.group_step[t] = outer.stride[t][g];
  a.lines = (int32_t)in.dim[0], a.run = (int32_t)run, a.by_run = cuda_divide_by(run);
  a.folds = run % E == 0 ? 1 : run >= E - 1 || 2 * run == E ? 2 : (int32_t)E;
  a.leaves = !p.backward && (p.number[MEAN] >= 0 || p.number[RSTD] >= 0 || p.number[NEW_MEAN] >= 0 || p.number[NEW_VAR] >= 0);
  return QN_OK;
}

/* The fewest groups whose runs are whole words of a line, and `least` bytes of it if the line has them; 0: none are whole words. */
static int64_t bands_groups(const bands_state *s, int64_t least)
{
  const int64_t all = s->of.outer.dim[s->of.outer.rank - 1], run = s->a.run, E = 16 / s->of.bytes;
  int64_t groups = 1;
  while (groups < all && (groups * run * (16 / E) < least || groups * run % E || all % groups)) groups++;
  return groups * run % E ? 0 : groups;
}

/* Makes items of `groups` groups each, on `parts` blocks of `threads` threads; false: a line has more words than threads, a block would
 * have no lines, or an SM no room for `resident` blocks. */
static bool bands_cut(bands_state *s, const qn_device *device, int64_t groups, int64_t parts, uint32_t threads, int64_t resident,
                      bool stream)
{
  bands &a = s->a;
  const int64_t words = groups * a.run * s->of.bytes / 16, share = qn_ceil_div(a.lines, parts);
  if (!groups || words > threads || parts > a.lines || (parts - 1) * share >= a.lines) return false;
  a.groups = (int32_t)groups, a.lanes = (int32_t)words, a.by_lanes = cuda_divide_by(words);
  a.parts = (int32_t)parts, a.share = (int32_t)share, a.by_parts = cuda_divide_by(parts);
  a.rows = (int32_t)(threads / words), a.by_rows = cuda_divide_by(a.rows), a.joins = 32 % words == 0;
  for (a.join_bits = 5; a.join_bits > 0 && groups << a.join_bits > threads;) a.join_bits--;
  norm_number(s->of.outer, groups, &a.items);
  s->items = s->of.groups / groups;
  s->threads = threads;
  const int64_t bytes = share * words * (s->of.backward ? 32 : 16) +
                        block_memory::bytes(a, stream, s->of.backward, (int)threads, (int)(16 / s->of.bytes));
  s->shared = (uint32_t)bytes;
  return bytes <= qn_min_i64((int64_t)device->shared_per_unit / resident - 1024, (int64_t)device->shared_per_block) - 16;
}
