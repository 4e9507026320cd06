/* norm_bands.cuh -- shared by norm_bands.cu and norm_stream.cu: bands, that is the runs of some neighbouring groups, in whole
 * 16-byte words, in all lines of those groups; a thread's part of one; and its moments. */
#pragma once
#include "cuda_backend.h"
#include "kit/divisor.h"
#include "norm_activation.cuh"
#include "norm_far.cuh"
#include "norm_moments.cuh"
#include "norm_nests.h"
#include "kit/sm90.cuh"
#include "kit/vector.cuh"

/* Y is dx for a gradient */
enum { X, Y, SCALE, SHIFT, DSCALE, DSHIFT, MEAN, RSTD, RUNNING_MEAN, RUNNING_VAR, NEW_MEAN, NEW_VAR, TENSORS };
enum { MAX_OUTER = 4, MOST_PARTS = 8 };

struct bands {
  void    *p[TENSORS];
  uint32_t dtype[TENSORS];
  int32_t  dims;
  cuda_divisor by_dim[MAX_OUTER];         /* the outer dims, which number the items, innermost first */
  int64_t  stride[TENSORS][MAX_OUTER];
  /* strides between lines of x, y; between groups; between elements of a run, of scale, shift, dscale, dshift */
  int64_t  line_step[2], group_step[TENSORS], run_step[4];
  int32_t  lines, share, parts;           /* lines of an item, of a block's share; blocks of an item */
  int32_t  lanes, rows;                   /* words of a line, one thread each; lines that a block's threads cover at once */
  int32_t  groups, run;                   /* groups of an item; elements of a group in a line */
  cuda_divisor by_run, by_lanes, by_rows, by_parts;
  int32_t  join_bits;                     /* 2^join_bits threads merge the statistics of a group */
  int32_t  folds;                         /* statistics per word: 1 or 2, for so many groups that it may meet; E: one per element */
  /* joins: lanes divides 32, so a warp first adds up its lines by shuffles; leaves: mean, rstd or running statistics are written */
  bool     joins, centred, leaves;
  float    eps, inverse, momentum, unbiased;      /* inverse: 1 / group length n; unbiased: 1 / (n - 1) */
  norm_activation act;
  const void *dy;                         /* laid out as x */
  bool     each;                          /* parameters are shared by items: dscale and dshift are sums over those, by element of a line */
  bool     spread;                        /* parameters vary along a run */
  float2  *sums;                          /* if `each`, of dy and dy h: [items, parts, elements of a line]; NULL: not wanted */

  /* The offset of an item in tensor t. */
  __device__ __forceinline__ int64_t place(int item, int t) const
  {
    int64_t at = 0;
#pragma unroll
    for (int d = 0; d < MAX_OUTER; d++) {
      if (d == dims) break;
      const int q = cuda_quotient(item, by_dim[d]);
      at += (item - q * (int)by_dim[d].by) * stride[t][d];
      item = q;
    }
    return at;
  }
  /* The parameter of element i of a line; base: place(item, t). */
  __device__ __forceinline__ float parameter(int t, int64_t base, int i, float none) const
  {
    const int g = cuda_quotient(i, by_run), j = i - g * run;
    return p[t] ? element_load<float>(p[t], base + g * group_step[t] + j * run_step[t - SCALE], dtype3(dtype[t])) : none;
  }
  /* f32 statistics of the item's group g. */
  __device__ __forceinline__ void put(int t, int item, int g, float v) const
  {
    if (p[t]) ((float *)p[t])[place(item, t) + g * group_step[t]] = v;
  }
  __device__ __forceinline__ float get(int t, int item, int g) const
  {
    return p[t] ? ((const float *)p[t])[place(item, t) + g * group_step[t]] : 0;
  }
  /* Writes the statistics that a forward pass outputs. */
  __device__ __forceinline__ void leave(int item, int g, const far_statistics &of) const
  {
    if (!leaves) return;
    put(MEAN, item, g, of.mean);
    put(RSTD, item, g, of.rstd);
    put(NEW_MEAN, item, g, (1 - momentum) * get(RUNNING_MEAN, item, g) + momentum * of.mean);
    put(NEW_VAR, item, g, (1 - momentum) * get(RUNNING_VAR, item, g) + momentum * of.unbiased);
  }
  /* The statistics of the item's group g from its moments; one thread. */
  __device__ __forceinline__ far_statistics statistics(int item, int g, const moments &all) const
  {
    if (far_out(all.squares) && dtype[X] != QN_F16)
      return far_measure({ p[X], nullptr, dtype[X], lines, line_step[X], run }, place(item, X) + (int64_t)g * run, centred, eps, 1);
    return { all.mean, 1 / sqrtf(all.squares * inverse + eps), all.squares * unbiased };
  }
  /* Sources of partial statistics in a block: rows of threads or, after shuffles, warps. */
  __host__ __device__ int tellers(int threads) const { return joins ? threads / 32 : rows; }
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
  /* Byte offset of its first word in x or y, and distance to the next. */
  template <int whole> __device__ __forceinline__ int64_t start(const bands &a, int t) const
  {
    return (a.place(item, t) + line * a.line_step[t]) * (16 / vector_per_16<whole>) + lane * 16;
  }
  template <int whole> __device__ __forceinline__ int64_t step(const bands &a, int t) const
  {
    return a.rows * a.line_step[t] * (16 / vector_per_16<whole>);
  }
  /* Does the thread store partial statistics, and as which source? */
  __device__ __forceinline__ bool tells(const bands &a) const { return a.joins ? threadIdx.x % 32 < a.lanes : threadIdx.x < active; }
  __device__ __forceinline__ int teller(const bands &a) const { return a.joins ? threadIdx.x / 32 : row; }
};

/* Stores the moments of a word over n lines; `first` is its first element's place in the line. With two groups to a word
 * (folds 2), merges the elements' moments into the two groups'. */
template <int N, int E>
__device__ __forceinline__ void tell(const bands &a, float2 *to, const float (&mean)[N], const float (&squares)[N], float n, int first)
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

/* The reference from which a thread takes distances: the median of three, elements of its first word (N = 1) or of its first
 * lines, n of which are loaded. If a warp's lines are added up by shuffles, their threads share one. */
template <int whole, int N>
__device__ __forceinline__ void take_from(const bands &a, const mine &m, const uint4 *words, int n, float (&from)[N])
{
  constexpr int E = vector_per_16<whole>;
  float near[3][E];
#pragma unroll
  for (int k = 0; k < (N == 1 ? 1 : 3); k++) {
    uint4 q = m.count ? words[min(k, n - 1) * m.active + threadIdx.x] : make_uint4(0, 0, 0, 0);
    if (a.joins)
      q = make_uint4(__shfl_sync(~0u, q.x, m.lane), __shfl_sync(~0u, q.y, m.lane), __shfl_sync(~0u, q.z, m.lane),
                     __shfl_sync(~0u, q.w, m.lane));
    vector_open<whole>(near[k], 0, q);
  }
#pragma unroll
  for (int e = 0; e < N; e++)
    from[e] = finite_or_0(N == 1 ? middle(near[0][0], near[0][1], near[0][2]) : middle(near[0][e], near[1][e], near[2][e]));
}

/* Adds a word's elements to the sums of distances and of their squares. */
template <int whole, int N>
__device__ __forceinline__ void add_word(const uint4 &word, const float (&from)[N], float (&s1)[N], float (&s2)[N])
{
  constexpr int E = vector_per_16<whole>;
  float v[E];
  vector_open<whole>(v, 0, word);
#pragma unroll
  for (int e = 0; e < E; e++) {
    const float d = v[e] - from[e % N];
    s1[e % N] += d;
    s2[e % N] = fmaf(d, d, s2[e % N]);
  }
}

/* Adds up a warp's lines by shuffles, if lanes divides 32. */
template <int N> __device__ __forceinline__ void add_lines(const bands &a, float (&s1)[N], float (&s2)[N])
{
  for (int o = a.joins ? a.lanes : 32; o < 32; o *= 2)
#pragma unroll
    for (int e = 0; e < N; e++) s1[e] += __shfl_xor_sync(~0u, s1[e], o), s2[e] += __shfl_xor_sync(~0u, s2[e], o);
}

/* Turns a thread's sums into moments and stores them: told [tellers, lanes, folds], count [tellers] of lines. */
template <int whole, int N>
__device__ __forceinline__ void tell_moments(const bands &a, const mine &m, float2 *told, float *count, const float (&from)[N],
                                             float (&s1)[N], float (&s2)[N])
{
  constexpr int E = vector_per_16<whole>;
  float n = (float)m.count;
  add_lines(a, s1, s2);
  for (int o = a.joins ? a.lanes : 32; o < 32; o *= 2) n += __shfl_xor_sync(~0u, n, o);
#pragma unroll
  for (int e = 0; e < N; e++) {
    const moments of = moments_about(from[e], s1[e], s2[e], n * (E / N), a.centred);
    s1[e] = of.mean, s2[e] = of.squares;
  }
  if (!m.tells(a)) return;
  tell<N, E>(a, told + (m.teller(a) * a.lanes + m.lane) * a.folds, s1, s2, n, m.lane * E);
  if (m.lane == 0) count[m.teller(a)] = n;
}

/* The moments of group g, merged from those of all tellers by 2^join_bits neighbouring lanes, which all get the result.
 * told: [tellers, lanes, folds] of mean and squares; count: [tellers], lines. */
template <int E> __device__ __forceinline__ moments gather(const bands &a, const float2 *told, const float *count, int g)
{
  const bool each = a.folds > 2;          /* one entry per element, not per word */
  const int begin = g * a.run, end = begin + a.run, unit = each ? 1 : E, first = each ? begin : begin / E,
            width = (each ? end - 1 : (end - 1) / E) - first + 1;
  const int pitch = a.lanes * (each ? E : 1);
  const float inverse = __fdividef(1, (float)width);      /* the .5 below keeps quotients farther from an integer than its error */
  return lanes_join_all(1 << a.join_bits, a.tellers(blockDim.x) * width, [&](int i) -> moments {
    const int teller = (int)(((float)i + .5f) * inverse), u = first + i - teller * width;
    const float2 q = told[a.folds == 2 ? (teller * pitch + u) * 2 + (u * unit < begin) : teller * pitch + u];
    return { q.x, q.y, count[teller] * (float)(min(end, u * unit + unit) - max(begin, u * unit)) };
  });
}

/* ---- host ------------------------------------------------------------------------------------------------------------- */

struct bands_state {
  bands    a;
  int32_t  number[TENSORS], dy;           /* value numbers of the request; -1: absent */
  int64_t  items, elements;               /* elements: of x */
  const void *kernel;
  uint32_t threads, shared;
};

/* Reads the op, its tensors and their layout; s: zeroed. outer: its last dim numbers the groups within a line. */
qn_status cuda_bands_read(const qn_request *r, bands_state *s, qn_nest *outer, qn_prepared *out);
/* The fewest groups whose runs are whole words of a line, and `least` bytes of it if the line has them; 0: none are whole words. */
int64_t cuda_bands_groups(const bands_state *s, const qn_nest *outer, int64_t E, int64_t least);
/* Makes items of `groups` groups each, on `parts` blocks of `threads` threads; false: a line has more words than threads, or a block
 * would have no lines. */
bool cuda_bands_cut(bands_state *s, const qn_nest *outer, int64_t E, int64_t groups, int64_t parts, uint32_t threads);
/* The tensors of a launch. */
bands cuda_bands_of(const bands_state *s, const qn_launch *launch);
