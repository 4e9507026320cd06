/* norm_kept.cu -- layer_norm and rms_norm (f16, bf16, f32; sm_80 and up) of groups kept in shared memory between measuring and
 * writing: each element is read once and written once, however long the group. Fuses an addition in front or behind and an activation.
 *
 *   y = act((x - mean) rstd scale + shift + second)        x may be a sum, a + b, which is also written if it has other users
 *
 * rows: a group is contiguous. columns: channels last, a group is some neighbouring channels of all lines of an image. An item (a
 * row; all groups of an image) belongs to one block, or to a team of co-resident blocks that exchange statistics through global
 * memory. Blocks are persistent and take item after item. A thread copies (cp.async) and reads its own vectors; as it writes an
 * element out, it starts the copy of the next item's into that slot, so that copies are always in flight.
 * Refused: groups beyond the device's shared memory, and other layouts. */
#include <quern/program.h>
#include "cuda_backend.h"
#include "kit/divisor.h"
#include "engines.h"
#include "kit/meet.cuh"
#include "norm_activation.cuh"
#include "norm_far.cuh"
#include "norm_moments.cuh"
#include "norm_nests.h"
#include "kit/shared_memory.h"
#include "kit/sm80.cuh"
#include "kit/vector.cuh"

enum { V = 8, THREADS = 256, WARPS = THREADS / 32, MAX_OUTER = 4, MAX_LANES = 256, TOGETHER = 2, ROW_LONG = 131072 };
/* Resident blocks of an SM, and the shared memory of each (H200). */
constexpr int resident_blocks(bool columns) { return columns ? 2 : 3; }
constexpr int most_shared(bool columns) { return columns ? 110 * 1024 : 74 * 1024; }
enum { X, Y, SCALE, SHIFT, MEAN, RSTD, TENSORS };

struct kept {
  void    *p[TENSORS];
  const void *second;                     /* the tensor added to x (before) or to y */
  void    *sum;                           /* where x + second is written; NULL: no other user */
  uint32_t dtype[TENSORS];                /* of x and the parameters */
  int32_t  rank;                          /* the outer dims, innermost first */
  uint32_t dim[MAX_OUTER];
  int64_t  stride[TENSORS][MAX_OUTER];
  int64_t  items, length;                 /* length: elements of a group */
  int32_t  vectors, share;                /* vectors of an item, of a block's share of it */
  int32_t  parts, teams;                  /* blocks of an item's team; teams */
  int32_t  width, active;                 /* rows: threads for one; active: threads that have vectors, a multiple of lanes */
  /* slots: vectors a thread holds; stages: items in flight; inputs: 1, or 2 with a second tensor; per_slot: 16-byte words */
  int32_t  slots, stages, inputs, per_slot;
  int32_t  lanes, groups, channels;       /* columns: vectors of a line; groups of an item; channels of a group. rows: 1 */
  int32_t  exchange;                      /* columns: floats for the exchange between threads (join_columns) */
  int64_t  line_step[2];                  /* columns: between lines of x, y */
  int64_t  group_step[2];                 /* columns: between groups of mean, rstd */
  uint32_t repeat;                        /* rows: consecutive elements that share a parameter: 1, or the size of a channel */
  cuda_divisor by_repeat;
  float    eps;
  norm_activation act;
  bool     centred, before;
  float4  *part;                          /* [teams, 2, parts, groups] */
  uint32_t *met;                          /* [teams] */

  __device__ __forceinline__ int64_t place(int64_t item, int t) const
  {
    uint32_t rest = (uint32_t)item;
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

/* ---- a thread's vectors -------------------------------------------------------------------------------------------- */

template <int whole, bool columns> struct mine {
  static constexpr int words = whole == QN_F32 ? 2 : 1;
  const kept &a;
  uint4   *slot;                          /* of the thread, in slot 0 */
  int32_t  count;                         /* vectors */
  int32_t  first, vector_step;            /* rows: offset of the first one in the row, and distance to the next */
  int64_t  start[2], step[2];             /* of x, y */

  __device__ mine(const kept &k, uint4 *slots, int rank) : a(k), slot(slots + threadIdx.x)
  {
    int t = threadIdx.x;
    int v = rank * k.share + (columns ? t : t % k.width), end = min((rank + 1) * k.share, k.vectors), by = columns ? k.active : k.width;
    int line = columns ? (uint32_t)v / (uint32_t)k.lanes : 0, lines = columns ? (uint32_t)by / (uint32_t)k.lanes : 0;
    count = t < k.active && v < end ? (uint32_t)(end - v + by - 1) / (uint32_t)by : 0;
    first = v * V, vector_step = by * V;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      start[i] = columns ? line * k.line_step[i] + (v - line * k.lanes) * V : first;
      step[i] = columns ? lines * k.line_step[i] : vector_step;
    }
  }
  __device__ __forceinline__ uint4 *word(int stage, int k, int input, int w) const
  {
    return slot + (((stage * a.slots + k) * a.inputs + input) * words + w) * THREADS;
  }
  /* Starts the copy of vector k of the item at offset x_at; second_at: of the second tensor. */
  __device__ __forceinline__ void fetch(int stage, int k, int64_t x_at, int64_t second_at) const
  {
#pragma unroll
    for (int w = 0; w < words; w++) {
      copy_async<16>(shared_address(word(stage, k, 0, w)), (const uint4 *)vector_place<whole>(a.p[X], x_at + start[0] + k * step[0]) + w,
                     16);
      if (a.inputs > 1) {
        int64_t at = a.before ? start[0] + k * step[0] : start[1] + k * step[1];
        copy_async<16>(shared_address(word(stage, k, 1, w)), (const uint4 *)vector_place<whole>(a.second, second_at + at) + w, 16);
      }
    }
  }
  __device__ __forceinline__ void open(float (&v)[V], int stage, int k, int input) const
  {
#pragma unroll
    for (int w = 0; w < words; w++) vector_open<whole>(v, w * vector_per_16<whole>, *word(stage, k, input, w));
  }
  /* Replaces vector k by the rounded sum, so that what is normalized is what is written. */
  __device__ __forceinline__ void add_second(int stage, int k, int64_t x_at) const
  {
    float v[V], u[V];
    open(v, stage, k, 0);
    open(u, stage, k, 1);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] += u[i];
#pragma unroll
    for (int w = 0; w < words; w++) {
      uint4 q = vector_close<whole>(v, w * vector_per_16<whole>);
      *word(stage, k, 0, w) = q;
      if (a.sum) *((uint4 *)vector_place<whole>(a.sum, x_at + start[0] + k * step[0]) + w) = q;
    }
  }
};

/* ---- statistics ---------------------------------------------------------------------------------------------------- */

/* Adds a vector to one sum, or each element to its channel's. */
__device__ __forceinline__ void gather(float (&sum)[1], const float (&v)[V])
{
  sum[0] += ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}
__device__ __forceinline__ void gather(float (&sum)[V], const float (&v)[V])
{
#pragma unroll
  for (int i = 0; i < V; i++) sum[i] += v[i];
}

/* Sums of a thread's vectors, in one (N = 1) or per channel; then sums of distances from the mean, which correct it (all that a
 * constant group has is the mean's own error), and of their squares. */
template <int N, int whole, bool columns> __device__ __forceinline__ void add_up(const mine<whole, columns> &m, int stage, float (&sum)[N])
{
#pragma unroll 4
  for (int k = 0; k < m.count; k++) {
    float v[V];
    m.open(v, stage, k, 0);
    gather(sum, v);
  }
}
template <int N, int whole, bool columns>
__device__ __forceinline__ void add_squares(const mine<whole, columns> &m, int stage, const float (&mean)[N], float (&beside)[N],
                                            float (&squares)[N])
{
#pragma unroll 4
  for (int k = 0; k < m.count; k++) {
    float v[V];
    m.open(v, stage, k, 0);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] -= mean[i % N];
    gather(beside, v);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] *= v[i];
    gather(squares, v);
  }
}

/* Rows: all threads of the row get its moments, or those of the block's share. */
template <int whole> __device__ __forceinline__ moments measure_row(const mine<whole, false> &m, int stage, float4 *of_warp)
{
  const kept &a = m.a;
  float sum[1] = {}, beside[1] = {}, squares[1] = {}, n = warp_sum((float)(m.count * V)), mean[1];
  add_up(m, stage, sum);
  sum[0] = warp_sum(sum[0]);
  mean[0] = a.centred && n > 0 ? sum[0] / n : 0;
  add_squares(m, stage, mean, beside, squares);
  moments warp = moments_about(mean[0], finite_or_0(warp_sum(beside[0])), warp_sum(squares[0]), n, a.centred);
  if (a.width == 32) return warp;
  int per_row = a.width / 32, first = threadIdx.x / a.width * per_row;
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = warp.pack();
  __syncthreads();
  return warp_join_all(per_row, [&](int w) { return moments::unpack(of_warp[first + w]); });
}

template <int whole> __device__ __forceinline__ void measure_columns(const mine<whole, true> &m, int stage, moments (&of)[V])
{
  float mean[V] = {}, beside[V] = {}, squares[V] = {}, n = (float)m.count;
  add_up(m, stage, mean);
#pragma unroll
  for (int i = 0; i < V; i++) mean[i] = m.a.centred && n > 0 ? mean[i] / n : 0;
  add_squares(m, stage, mean, beside, squares);
#pragma unroll
  for (int i = 0; i < V; i++) of[i] = moments_about(mean[i], finite_or_0(beside[i]), squares[i], n, m.a.centred);
}

/* Columns: tree reduction over the threads of a lane; then one thread for each group calls of(g, moments). */
template <class F> __device__ __forceinline__ void join_columns(const kept &a, moments (&m)[V], float *exchange, F of)
{
  int y = threadIdx.x / a.lanes, lane = threadIdx.x - y * a.lanes;
  for (int live = a.active / a.lanes, half; live > 1; live = half) {
    half = (live + 1) / 2;
    if (y >= half && y < live) {
      float *to = exchange + (y - half) * a.lanes + lane;
#pragma unroll
      for (int i = 0; i < V; i++) to[(2 * i) * THREADS / 2] = m[i].mean, to[(2 * i + 1) * THREADS / 2] = m[i].squares;
      to[2 * V * THREADS / 2] = m[0].count;
    }
    __syncthreads();
    if (y < live - half) {
      const float *from = exchange + y * a.lanes + lane;
#pragma unroll
      for (int i = 0; i < V; i++) m[i].join({ from[(2 * i) * THREADS / 2], from[(2 * i + 1) * THREADS / 2], from[2 * V * THREADS / 2] });
    }
    __syncthreads();
  }
  if (y == 0)
#pragma unroll
    for (int i = 0; i < V; i++) exchange[2 * (lane * V + i)] = m[i].mean, exchange[2 * (lane * V + i) + 1] = m[i].squares;
  if (threadIdx.x == 0) exchange[2 * a.lanes * V] = m[0].count;
  __syncthreads();
  float n = exchange[2 * a.lanes * V];
  for (int g = threadIdx.x; g < a.groups; g += THREADS) {
    const float *from = exchange + 2 * g * a.channels;
    moments all = { 0, 0, n * (float)a.channels };
    const float about = finite_or_0(from[0]);
    for (int c = 0; c < a.channels; c++) all.mean += from[2 * c] - about;
    all.mean = about + all.mean / (float)a.channels;
    for (int c = 0; c < a.channels; c++) all.squares += from[2 * c + 1] + n * (from[2 * c] - all.mean) * (from[2 * c] - all.mean);
    of(g, all);
  }
}

/* mean and rstd of group g of an item at offset x_at of x, by `width` lanes (far_measure). */
template <int whole, bool columns>
__device__ __forceinline__ float2 statistics(const kept &a, const moments &m, int64_t x_at, int g, int width)
{
  if (whole == QN_F16 || !far_out(m.squares)) return make_float2(m.mean, 1 / sqrtf(m.squares / (float)a.length + a.eps));
  const bool before = a.inputs > 1 && a.before;
  const far_group x = { before && a.sum ? a.sum : a.p[X], before && !a.sum ? a.second : nullptr, (uint32_t)whole,
                        columns ? a.length / a.channels : 1, a.line_step[0], columns ? a.channels : a.length };
  const far_statistics far = far_measure(x, x_at + (columns ? g * a.channels : 0), a.centred, a.eps, width);
  return make_float2(far.mean, far.rstd);
}

/* ---- the kernel ------------------------------------------------------------------------------------------------------ */

/* V elements of a parameter (x's dtype or f32) for element j of a row on. Channels have at least V elements, so a vector spans at
 * most two. */
template <int whole> __device__ __forceinline__ void parameter(float (&w)[V], const kept &a, int t, int64_t at, int j)
{
  uint32_t dtype = a.dtype[t] == QN_F32 ? QN_F32 : whole;
  if (a.repeat == 1) {
    if (whole == QN_F32 || dtype == QN_F32) vector_load_whole<QN_F32>(w, a.p[t], j);
    else vector_load_whole<whole>(w, a.p[t], j);
    return;
  }
  const uint32_t c = cuda_quotient((uint32_t)j, a.by_repeat), left = (c + 1) * a.repeat - (uint32_t)j;
  const float here = element_load<float>(a.p[t], at + c, dtype);
#pragma unroll
  for (int i = 0; i < V; i++) w[i] = here;
  if (left >= V) return;
  const float next = element_load<float>(a.p[t], at + c + 1, dtype);
#pragma unroll
  for (uint32_t i = 1; i < V; i++) w[i] = i < left ? here : next;
}

template <int whole, bool columns>
__global__ void __launch_bounds__(THREADS, resident_blocks(columns)) norm_kept(const __grid_constant__ kept a)
{
  constexpr int N = columns ? V : 1;
  extern __shared__ uint4 slots[];
  __shared__ float4 of_warp[2][WARPS];
  float *exchange = (float *)(slots + (int64_t)a.stages * a.slots * a.per_slot * THREADS), *statistic = exchange + a.exchange;
  int team = (int)(blockIdx.x / (uint32_t)a.parts), rank = (int)(blockIdx.x - team * (uint32_t)a.parts);
  int together = columns ? 1 : THREADS / a.width, sub = columns ? 0 : threadIdx.x / a.width,
      p = columns ? threadIdx.x : threadIdx.x % a.width;
  mine<whole, columns> m(a, slots, rank);
  int vectors = m.count;
  float scale[N == V ? V : 1], shift[N == V ? V : 1];

  int64_t item = (int64_t)team * together + sub, item_step = (int64_t)a.teams * together;
  for (int s = 0; s < a.stages; s++) {
    int64_t at = item + s * item_step;
    if (at < a.items) {
      int64_t x_at = a.place(at, X), second_at = a.before ? x_at : a.place(at, Y);
      for (int k = 0; k < vectors; k++) m.fetch(s, k, x_at, second_at);
    }
    copy_async_commit();
  }
  if constexpr (columns) {
#pragma unroll
    for (int i = 0; i < V; i++) {
      int64_t c = threadIdx.x % a.lanes * V + i;
      scale[i] = a.p[SCALE] ? element_load<float>(a.p[SCALE], c, dtype3(a.dtype[SCALE])) : 1;
      shift[i] = a.p[SHIFT] ? element_load<float>(a.p[SHIFT], c, dtype3(a.dtype[SHIFT])) : 0;
    }
  }

  uint32_t turn = 0;
  int stage = 0;
  for (int64_t base = (int64_t)team * together; base < a.items; base += item_step, item += item_step, turn++) {
    if (a.stages == 2) copy_async_wait<1>();
    else copy_async_wait<0>();
    bool there = item < a.items;
    int64_t x_at = there ? a.place(item, X) : 0, y_at = there ? a.place(item, Y) : 0;
    m.count = there ? vectors : 0;
    if (a.before) {
#pragma unroll 2
      for (int k = 0; k < m.count; k++) m.add_second(stage, k, x_at);
    }
    float4 *part = a.part + ((int64_t)team * 2 + (turn & 1)) * a.parts * a.groups;
    float mean[N], rstd[N];

    if constexpr (columns) {
      moments of[V];
      measure_columns(m, stage, of);
      join_columns(a, of, exchange, [&](int g, const moments &all) {
        if (a.parts > 1) part[rank * a.groups + g] = all.pack();
        else *(float2 *)(statistic + 2 * g) = statistics<whole, true>(a, all, x_at, g, 1);
      });
      if (a.parts > 1) {
        blocks_meet(a.met + team, a.parts, turn + 1);
        for (int g = threadIdx.x / 32; g < a.groups; g += WARPS) {
          moments all = warp_join_all(a.parts, [&](int b) { return moments::unpack(__ldcg(&part[b * a.groups + g])); });
          const float2 of = statistics<whole, true>(a, all, x_at, g, 32);
          if (threadIdx.x % 32 == 0) *(float2 *)(statistic + 2 * g) = of;
        }
      }
      __syncthreads();
      if (rank == 0)
        for (int g = threadIdx.x; g < a.groups; g += THREADS) {
          if (a.p[MEAN]) ((float *)a.p[MEAN])[a.place(item, MEAN) + g * a.group_step[0]] = statistic[2 * g];
          if (a.p[RSTD]) ((float *)a.p[RSTD])[a.place(item, RSTD) + g * a.group_step[1]] = statistic[2 * g + 1];
        }
#pragma unroll
      for (int i = 0; i < V; i++) {
        int g = (threadIdx.x % a.lanes * V + i) / a.channels;
        mean[i] = statistic[2 * g], rstd[i] = statistic[2 * g + 1];
      }
    } else {
      moments all = measure_row(m, stage, of_warp[turn & 1]);
      if (a.parts > 1) {
        if (threadIdx.x == 0) part[rank] = all.pack();
        blocks_meet(a.met + team, a.parts, turn + 1);
        all = warp_join_all(a.parts, [&](int b) { return moments::unpack(__ldcg(&part[b])); });
      }
      const float2 of = statistics<whole, false>(a, all, x_at, 0, 32);
      mean[0] = of.x, rstd[0] = of.y;
      if (rank == 0 && p == 0 && there) {
        if (a.p[MEAN]) ((float *)a.p[MEAN])[a.place(item, MEAN)] = mean[0];
        if (a.p[RSTD]) ((float *)a.p[RSTD])[a.place(item, RSTD)] = rstd[0];
      }
    }

    const float unit = far_unit(mean, rstd);
    int64_t after = item + a.stages * item_step, next_x = 0, next_second = 0, scale_at = 0, shift_at = 0;
    if (after < a.items) next_x = a.place(after, X), next_second = a.before ? next_x : a.place(after, Y);
    if (!columns && a.repeat > 1 && there) scale_at = a.place(item, SCALE), shift_at = a.place(item, SHIFT);
    for (int k = 0; k < m.count; k += TOGETHER) {
      float v[TOGETHER][V], w[V];
#pragma unroll
      for (int u = 0; u < TOGETHER; u++)
        if (k + u < m.count) m.open(v[u], stage, k + u, 0);
#pragma unroll
      for (int u = 0; u < TOGETHER; u++) {
        if (k + u >= m.count) break;
#pragma unroll
        for (int i = 0; i < V; i++) v[u][i] = far_normalized(v[u][i], unit, mean[i % N], rstd[i % N]);
        if constexpr (columns) {
#pragma unroll
          for (int i = 0; i < V; i++) v[u][i] = v[u][i] * scale[i] + shift[i];
        } else {
          int j = m.first + (k + u) * m.vector_step;
          if (a.p[SCALE]) {
            parameter<whole>(w, a, SCALE, scale_at, j);
#pragma unroll
            for (int i = 0; i < V; i++) v[u][i] *= w[i];
          }
          if (a.p[SHIFT]) {
            parameter<whole>(w, a, SHIFT, shift_at, j);
#pragma unroll
            for (int i = 0; i < V; i++) v[u][i] += w[i];
          }
        }
        if (a.inputs > 1 && !a.before) {
          m.open(w, stage, k + u, 1);
#pragma unroll
          for (int i = 0; i < V; i++) v[u][i] += w[i];
        }
      }
#pragma unroll
      for (int u = 0; u < TOGETHER; u++) {
        if (k + u >= m.count) break;
        int64_t at = y_at + m.start[1] + (k + u) * m.step[1];
        if (after < a.items) m.fetch(stage, k + u, next_x, next_second);
        activate<whole != QN_F32>(a.act, v[u]);
        vector_store_whole<whole>(v[u], a.p[Y], at);
      }
    }
    copy_async_commit();
    if (++stage == a.stages) stage = 0;
  }
  copy_async_wait<0>();
  if (a.parts > 1) blocks_leave(a.met + team, a.parts, turn);
}

/* ---- prepare -------------------------------------------------------------------------------------------------------------- */

struct state {
  kept      k;
  cuda_chain chain;
  int32_t   number[TENSORS], second, sum; /* value numbers of the request; -1: absent */
  const void *kernel;
  uint32_t  shared, blocks;
};

static int32_t fewest_threads(int64_t vectors)        /* for a row: 4 vectors each, if that covers it */
{
  int32_t width = 32;
  while (width < THREADS && vectors > 4 * width) width *= 2;
  return width;
}

/* Reads the layout: rows or columns, and how the parameters lie; returns the rule that it breaks, or NULL. */
static const char *read_layout(const qn_request *r, state *s)
{
  kept &k = s->k;
  const qn_value *x = &r->value[s->number[X]];
  cuda_norm_nests nests = cuda_norm_nests_of(r, s->number, SHIFT + 1, TENSORS);
  qn_nest &walked = nests.walked, &outer = nests.outer;
  k.items = nests.groups, k.length = nests.length;
  if (walked.rank < 1 || walked.rank > 2) return "groups are contiguous, or some neighbouring channels of all lines";
  int last = walked.rank - 1;
  int64_t inner = walked.dim[last];
  bool rows = true;
  for (int t = X; t <= Y; t++) rows &= walked.stride[t][last] == 1 && (last == 0 || walked.stride[t][0] == inner);
  if (rows) {
    k.lanes = k.groups = k.channels = 1;
    k.repeat = 0;
    for (int t = SCALE; t <= SHIFT; t++) {
      if (s->number[t] < 0) continue;
      int64_t from = walked.stride[t][0], to = walked.stride[t][last];
      int64_t repeat = last == 0 && from == 1 ? 1 : last == 0 && from == 0 ? k.length : last == 1 && from == 1 && to == 0 ? inner : 0;
      bool varies = false;
      for (int d = 0; d < outer.rank; d++) varies |= outer.stride[t][d] != 0;
      if (repeat == 0 || (k.repeat && k.repeat != repeat) || (repeat == 1 && varies) || (repeat > 1 && repeat < V))
        return "parameters lie like one group, or have an element for each of its channels, of 8 or more";
      k.repeat = (uint32_t)repeat;
    }
    if (k.repeat == 0) k.repeat = 1;
    if (k.length % V || k.length > INT32_MAX / 2) return "a group is whole vectors, of fewer than 2^30 elements";
    k.vectors = (int32_t)(k.length / V);
  } else {
    int g = outer.rank - 1;
    int64_t channels = last == 1 ? inner : 1, lines = walked.dim[0];
    if (g < 0 || outer.stride[X][g] != channels || outer.stride[Y][g] != channels ||
        (last == 1 && (walked.stride[X][1] != 1 || walked.stride[Y][1] != 1)))
      return "groups are contiguous, or some neighbouring channels of all lines";
    int64_t line = channels * outer.dim[g];
    if (line % V || line > MAX_LANES * V || walked.stride[X][0] < line) return "lines of whole vectors, up to 2048 channels";
    for (int t = SCALE; t <= SHIFT; t++) {
      if (s->number[t] < 0) continue;
      bool ok = walked.stride[t][0] == 0 && (last == 0 || walked.stride[t][1] == 1) && outer.stride[t][g] == channels;
      for (int d = 0; d < g; d++) ok &= outer.stride[t][d] == 0;
      if (!ok) return "parameters have an element for each channel";
    }
    k.lanes = (int32_t)(line / V), k.groups = (int32_t)outer.dim[g], k.channels = (int32_t)channels;
    if (lines * line > INT32_MAX / 2) return "an image has fewer than 2^30 elements";
    k.vectors = (int32_t)(lines * k.lanes);
    k.items /= k.groups;
    for (int t = X; t <= Y; t++) k.line_step[t] = walked.stride[t][0];
    k.group_step[0] = outer.stride[MEAN][g], k.group_step[1] = outer.stride[RSTD][g];
    outer.rank--;
  }
  if (outer.rank > MAX_OUTER || k.items > INT32_MAX) return "at most 4 other dims that do not merge, fewer than 2^31 groups";
  k.rank = outer.rank;
  for (int d = 0; d < outer.rank; d++) {
    k.dim[d] = (uint32_t)outer.dim[outer.rank - 1 - d];
    for (int t = 0; t < TENSORS; t++) k.stride[t][d] = outer.stride[t][outer.rank - 1 - d];
  }
  for (int t = SCALE; t <= SHIFT; t++)
    if (s->number[t] >= 0 && ((k.dtype[t] != k.dtype[X] && k.dtype[t] != QN_F32) || r->value[s->number[t]].align < 16))
      return "parameters of x's dtype or f32, aligned to 16 bytes";
  for (int t = X; t <= Y; t++) {
    bool whole = r->value[s->number[t]].align >= 16 && k.line_step[t] % V == 0 && r->value[s->number[t]].dtype == x->dtype;
    for (int d = 0; d < outer.rank; d++) whole &= k.stride[t][d] % V == 0;
    if (!whole) return "x and y of one dtype, in whole vectors aligned to 16 bytes";
  }
  return nullptr;
}

/* Fuses an addition and an activation behind y, or an addition in front of x. */
static void read_chain(const qn_request *r, state *s, qn_prepared *out)
{
  kept &k = s->k;
  const qn_value *x = &r->value[s->number[X]];
  cuda_out_dims dims = { { -1, -1, -1, -1 }, CUDA_ALIKE };
  for (qn_request some = *r; ; some.n_ops = s->chain.n_ops - 1) {
    bool relu;
    cuda_chain_begin(&s->chain, s->number[Y]);
    cuda_chain_follow(&s->chain, &some, &dims);
    s->second = cuda_chain_second(&s->chain, r, x->dtype, &relu);
    const qn_value *to = &r->value[s->chain.out];
    if (norm_activation_is(&k.act, &s->chain.steps, relu) && (s->chain.n_ops == 1 || (to->dtype == x->dtype && to->align >= 16))) break;
  }
  s->number[Y] = s->chain.out;
  s->sum = -1;
  out->n_ops = s->chain.n_ops;
  if (s->second >= 0 || out->n_ops == r->n_ops) return;
  qn_program before;
  int32_t term[2];
  if (qn_program_read_before(&before, r, out->n_ops, 1, s->number[X]) || !qn_program_is_sum(&before, r, term)) return;
  if (r->value[term[0]].align < 16 || r->value[term[1]].align < 16) return;
  k.before = true;
  if (before.step[0].write) s->sum = s->number[X];
  s->number[X] = term[0], s->second = term[1];
  out->n_ops++;
}

static const void *kernel_of(uint32_t dtype, bool columns)
{
  if (dtype == QN_F32) return columns ? (const void *)norm_kept<QN_F32, true> : (const void *)norm_kept<QN_F32, false>;
  if (dtype == QN_BF16) return columns ? (const void *)norm_kept<QN_BF16, true> : (const void *)norm_kept<QN_BF16, false>;
  return columns ? (const void *)norm_kept<QN_F16, true> : (const void *)norm_kept<QN_F16, false>;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_norm_roles roles = qn_norm_roles_of(r->op[0].op);
  const int8_t role[TENSORS] = { roles.x, roles.y, roles.scale, roles.shift, roles.mean, roles.rstd };
  state s = {};
  kept &k = s.k;
  if (r->device->arch_major < 8)
    return qn_refuse(out, "made for compute capability 8.0 and up", "", "8.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  for (int t = 0; t < TENSORS; t++) {
    s.number[t] = qn_role_at(&r->op[0], role[t]);
    if (s.number[t] >= 0) k.dtype[t] = r->value[s.number[t]].dtype;
  }
  if (k.dtype[X] != QN_F32 && k.dtype[X] != QN_BF16 && k.dtype[X] != QN_F16)
    return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", qn_kit_name(k.dtype[X]));
  const char *rule = read_layout(r, &s);
  if (rule) return qn_refuse(out, rule, "x", "", "%s", "another layout");
  /* A row that fits registers is faster in norm_one_pass unless a second tensor is read too; then this engine runs only on request. */
  bool columns = k.groups > 1 || k.line_step[X] > 0, better = columns || k.repeat > 1 || k.length > ROW_LONG;
  const int32_t y = s.number[Y];
  read_chain(r, &s, out);
  if (!better && s.second < 0) {
    qn_request alone = *r;
    alone.n_ops = 1;
    s.number[Y] = y;
    read_chain(&alone, &s, out);
  }
  k.eps = (float)((const qn_norm *)r->op[0].attr)->eps;
  k.centred = r->op[0].op == QN_OP_LAYER_NORM;

  /* blocks an item, vectors a thread */
  k.inputs = s.second >= 0 ? 2 : 1;
  k.per_slot = k.inputs * (k.dtype[X] == QN_F32 ? 2 : 1);
  /* the halving needs sums of half the threads; then two floats a channel and a count */
  k.exchange = max((2 * V + 1) * THREADS / 2, 2 * V * k.lanes + 2);
  /* minus of_warp */
  const int64_t room = qn_min_i64(most_shared(columns), (int64_t)r->device->shared_per_block - 2 * WARPS * (int64_t)sizeof(float4));
  int64_t extra = columns ? ((int64_t)k.exchange + 2 * k.groups) * (int64_t)sizeof(float) : 0,
          most = (room - extra) / (THREADS * 16 * k.per_slot);
  k.width = columns ? THREADS : fewest_threads(k.vectors);
  k.active = THREADS / k.lanes * k.lanes;
  int64_t lines = k.vectors / k.lanes, at_once = columns ? k.active / k.lanes : k.width;
  k.parts = (int32_t)qn_ceil_div(lines, most * at_once);
  k.share = (int32_t)qn_ceil_div(lines, k.parts) * k.lanes;
  k.slots = (int32_t)qn_ceil_div(k.share, at_once * k.lanes);
  k.stages = 2 * k.slots <= most ? 2 : 1;
  s.shared = (uint32_t)(k.stages * k.slots * k.per_slot * THREADS * 16 + extra);
  int64_t resident = (int64_t)r->device->units *
                     qn_min_i64(resident_blocks(columns), (int64_t)r->device->shared_per_unit / (s.shared + 1536));
  if (s.shared > room || resident < k.parts)
    return qn_refuse(out, "a group must fit into the shared memory of the device", "x", "", "%lld elements", (long long)k.length);
  k.teams = (int32_t)qn_min_i64(qn_ceil_div(k.items, columns ? 1 : THREADS / k.width), resident / k.parts);
  k.by_repeat = cuda_divide_by(qn_max_i64(1, k.repeat));
  s.blocks = (uint32_t)(k.teams * k.parts);
  s.kernel = kernel_of(k.dtype[X], columns);
  if (k.parts > 1) {
    out->workspace = (uint64_t)k.teams * 2 * (uint64_t)k.parts * (uint64_t)k.groups * sizeof(float4);
    out->counters = (uint64_t)k.teams * sizeof(uint32_t);
  }

  if (better) out->estimate = 3000 + (double)(k.items * k.vectors * V * 2 * qn_kit_bytes(k.dtype[X])) / 2000;
  return cuda_keep(out, &s, sizeof s);
}

/* ---- build, run ------------------------------------------------------------------------------------------------------------ */

static qn_status build(const qn_request *, qn_prepared *p)
{
  return cuda_allow_shared(((const state *)p->state)->kernel);
}

static void *pointer(const qn_launch *launch, int32_t number) { return number < 0 ? nullptr : launch->ptr[number]; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  kept k = s->k;
  for (int t = 0; t < TENSORS; t++) k.p[t] = pointer(launch, s->number[t]);
  k.second = pointer(launch, s->second);
  k.sum = pointer(launch, s->sum);
  k.part = (float4 *)launch->workspace;
  k.met = (uint32_t *)launch->counters;
  void *arguments[] = { &k };
  return cuda_launch_clusters(s->kernel, s->blocks, k.parts > 1 ? CUDA_TOGETHER : 1, THREADS, s->shared, arguments, launch, "norm_kept");
}

#define ROW(op) { "kept", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
                  nullptr, nullptr, prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM), ROW(QN_OP_RMS_NORM) };
CUDA_ENGINES(norm_kept) = { row, sizeof row / sizeof *row };
