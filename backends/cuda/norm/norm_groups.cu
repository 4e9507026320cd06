/* norm_groups.cu -- gradients of layer_norm and rms_norm with one parameter per channel (group and instance norm), f16, bf16
 * and f32, sm_80 and up: x and dy of a group are kept in shared memory between their two uses, so each element is read once
 * and written once.
 *
 *   with h = (x - mean) rstd, g = dy scale:  dx = rstd (g - mean g - h mean(g h))        rms_norm: without mean g
 *   dscale = sum dy h, dshift = sum dy:      for each channel of an item here, then added up over the items (add_items)
 *
 * A group's sums of g and g h are its channels' sums of dy and dy h, weighted by their scales. channels: a group is contiguous.
 * columns: channels last, an item is the groups of some neighbouring channels in all lines of an image. An item belongs to a
 * block, a cluster, or a team of co-resident blocks (team.cuh), which are persistent and take several.
 * Refused: groups beyond the device's shared memory, lines not in aligned vectors of 8 elements, other layouts. */
#include <type_traits>
#include "norm_groups.h"
#include "kit/sums.cuh"
#include "kit/team.cuh"
#include "kit/vector.cuh"

enum { V = CUDA_GROUPS_V, X = CUDA_GROUPS_X, DX = CUDA_GROUPS_DX, SCALE = CUDA_GROUPS_SCALE, MEAN = CUDA_GROUPS_MEAN,
       RSTD = CUDA_GROUPS_RSTD };
enum { CHANNELS = CUDA_GROUPS_CHANNELS, COLUMNS = CUDA_GROUPS_COLUMNS };

/* The offset of an item in tensor t. */
__device__ __forceinline__ int64_t place(const cuda_groups &a, int item, int t)
{
  int64_t at = 0;
#pragma unroll 1
  for (int d = 0; d < a.rank; d++) {
    const int q = cuda_quotient(item, a.by_dim[d]);
    at += (item - q * (int)a.dim[d]) * a.stride[t][d];
    item = q;
  }
  return at;
}

/* ---- a thread's vectors -------------------------------------------------------------------------------------------- */

/* Shared memory holds x's vectors in the item's order: all first words, then (f32) all second words; then dy's. Word-wise, so
 * that the lanes' 16-byte accesses are contiguous. */
template <int whole> struct packed {      /* a vector, raw */
  static constexpr int words = whole == QN_F32 ? 2 : 1;
  uint4 word[words];

  __device__ __forceinline__ void open(float (&v)[V]) const
  {
#pragma unroll
    for (int w = 0; w < words; w++) vector_open<whole>(v, w * vector_per_16<whole>, word[w]);
  }
};
__device__ __forceinline__ uint4 shared_word(uint32_t at)
{
  uint4 q;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w) : "r"(at) : "memory");
  return q;
}
/* A thread's vectors of the block's share, and its vectors in shared memory. */
template <int whole, int kind> struct mine {
  static constexpr int words = packed<whole>::words, size = whole == QN_F32 ? 4 : 2;
  static constexpr int together = 4 / words;                /* vectors loaded before they are used */
  const cuda_groups &a;
  uint32_t slot;                          /* shared address of its first vector */
  int32_t  first, by, count;              /* number of the first vector in the item; distance to the next; count */
  int64_t  start[2], step[2];             /* of x, dx, in bytes */

  __device__ mine(const cuda_groups &k, const uint4 *slots, int rank) : a(k)
  {
    const int end = min((rank + 1) * k.share, k.vectors);
    by = kind == COLUMNS ? k.active : (int)blockDim.x, first = rank * k.share + threadIdx.x;
    count = (int)threadIdx.x < by && first < end ? (uint32_t)(end - first + by - 1) / (uint32_t)by : 0;
    slot = shared_address(slots + threadIdx.x);
    const int line = kind == COLUMNS ? (uint32_t)first / (uint32_t)k.lanes : 0,
              lines = kind == COLUMNS ? (uint32_t)by / (uint32_t)k.lanes : 0;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      start[i] = size * (kind == COLUMNS ? line * k.line_step[i] + (first - line * k.lanes) * V : (int64_t)first * V);
      step[i] = size * (kind == COLUMNS ? lines * k.line_step[i] : (int64_t)by * V);
    }
  }
  /* The shared address of word w of the vector `at` vectors behind the thread's first. */
  __device__ __forceinline__ uint32_t place(int at, int w) const { return slot + (w * a.share + at) * 16; }
  /* Starts the copies of the item's vectors of x and dy, which have one layout; at: its byte offset. */
  __device__ __forceinline__ void fetch(int64_t at) const
  {
    at += start[0];
#pragma unroll 2
    for (int k = 0; k < count; k++, at += step[0])
#pragma unroll
      for (int w = 0; w < words; w++) {
        copy_async<16>(place(k * by, w), (const char *)a.p[X] + at + 16 * w, 16);
        copy_async<16>(place(k * by, words + w), (const char *)a.dy + at + 16 * w, 16);
      }
  }
  __device__ __forceinline__ packed<whole> get(int at) const
  {
    packed<whole> q;
#pragma unroll
    for (int w = 0; w < words; w++) q.word[w] = shared_word(place(at, w));
    return q;
  }
  __device__ __forceinline__ packed<whole> get_dy(int at) const { return get(words * a.share + at); }
  __device__ __forceinline__ void write(const float (&v)[V], char *y) const
  {
#pragma unroll
    for (int w = 0; w < words; w++) *((uint4 *)y + w) = vector_close<whole>(v, w * vector_per_16<whole>);
  }
  /* Calls f(k, n) for vectors k .. k + n - 1 of the thread; n is a constant, 1 for the last ones. */
  template <int n, class F> __device__ __forceinline__ void walk(F f) const
  {
    int k = 0;
#pragma unroll 1
    for (; k + n <= count; k += n) f(k, std::integral_constant<int, n>());
    if (n > 1)
#pragma unroll 1
      for (; k < count; k++) f(k, std::integral_constant<int, 1>());
  }
};

/* Waits for all that the team's blocks publish of an item, copied to shared memory: [parts, each]. The whole block. */
__device__ __forceinline__ const float2 *hear_all(const team_member &of, int turn, float2 *heard)
{
  for (int i = threadIdx.x; i < of.t.parts * of.t.each; i += (int)blockDim.x) heard[i] = of.hear(turn, i);
  __syncthreads();
  return heard;
}

/* Most threads of a block; registers allow two such blocks on an SM. */
template <int kind> constexpr int threads_of = kind == COLUMNS ? CUDA_GROUPS_COLUMNS_THREADS : CUDA_GROUPS_THREADS;

/* A channel's scale, 1 if not given. With an infinite one g - mean g is NaN, so dx is. */
template <int whole> __device__ __forceinline__ float scale_at(const cuda_groups &a, int64_t at)
{
  const float scale = a.p[SCALE] ? element_load<float>(a.p[SCALE], at, a.dtype[SCALE] == QN_F32 ? QN_F32 : whole) : 1;
  return fabsf(scale) < INFINITY ? scale : NAN;
}
__device__ __forceinline__ float mean_at(const cuda_groups &a, int64_t at) { return a.centred ? ((const float *)a.p[MEAN])[at] : 0; }
__device__ __forceinline__ float rstd_at(const cuda_groups &a, int64_t at) { return ((const float *)a.p[RSTD])[at]; }

/* Adds dy and dy h of an element. */
__device__ __forceinline__ void add(float2 *sum, float x, float dy, float mean, float rstd)
{
  sum->x += dy;
  sum->y += dy * ((x - mean) * rstd);
}

/* The means of g and g h over a group. */
__device__ __forceinline__ float2 means_of(const cuda_groups &a, float2 sum)
{
  float share = 1 / (float)a.length;
  return make_float2(a.centred ? sum.x * share : 0, sum.y * share);
}

/* Group i's sums over all parts, in order. */
__device__ __forceinline__ float2 sum_of_parts(const cuda_groups &a, const float2 *of, int i)
{
  float2 sum = make_float2(0, 0);
  for (int b = 0; b < a.team.parts; b++) sum.x += of[b * a.team.each + i].x, sum.y += of[b * a.team.each + i].y;
  return sum;
}

/* ---- channels first: a group is contiguous ------------------------------------------------------------------------------ */

/* A channel is summed by `pieces` units of a.unit lanes, which read vectors that other threads copied. */
template <int whole> struct channel_gradient {
  const mine<whole, CHANNELS> &m;
  const team_member &team;
  float2  *sum, *heard;                   /* [channels, pieces] of dy and dy h; [parts] of g and g h */
  float   *scales, *scale;                /* [2, channels]; this item's half */
  float    mean, rstd;
  float2   means;

  __device__ channel_gradient(const mine<whole, CHANNELS> &mine, const team_member &team, void *beyond) : m(mine), team(team)
  {
    sum = (float2 *)beyond, heard = sum + m.a.channels * m.a.pieces, scales = (float *)(heard + m.a.team.parts);
  }
  __device__ __forceinline__ void begin(int turn, int item)
  {
    const cuda_groups &a = m.a;
    const int64_t at = place(a, item, SCALE);
    mean = mean_at(a, place(a, item, MEAN)), rstd = rstd_at(a, place(a, item, RSTD));
    scale = scales + turn % 2 * a.channels;                 /* double-buffered: other threads may still read the last item's */
    for (int c = threadIdx.x; c < a.channels; c += (int)blockDim.x) scale[c] = scale_at<whole>(a, at + c);
  }
  /* A lane's part of the sums over one piece of channel c, within the block's share. */
  __device__ __forceinline__ float2 sum_channel(int c, int piece, int lane) const
  {
    const cuda_groups &a = m.a;
    const int from = team.rank * a.share, to = min(from + a.share, a.vectors), first = c * a.repeat, end = first + a.repeat,
              stop = min(to, (end + V - 1) / V);
    float2 s = make_float2(0, 0);
#pragma unroll 2
    for (int v = max(first / V, from) + piece * a.unit + lane; v < stop; v += a.pieces * a.unit) {
      float x[V], dy[V];
      const int at = v - from - (int)threadIdx.x;           /* relative to the thread's own first vector */
      m.get(at).open(x);
      m.get_dy(at).open(dy);
      if (v * V >= first && v * V + V <= end) {
#pragma unroll
        for (int e = 0; e < V; e++) add(&s, x[e], dy[e], mean, rstd);
      } else {                            /* the vector overlaps a neighbouring channel */
#pragma unroll
        for (int e = 0; e < V; e++)
          if (v * V + e >= first && v * V + e < end) add(&s, x[e], dy[e], mean, rstd);
      }
    }
    return s;
  }
  __device__ __forceinline__ void measure(int turn, int item)
  {
    const cuda_groups &a = m.a;
    const int unit = (uint32_t)threadIdx.x / (uint32_t)a.unit, lane = threadIdx.x - unit * a.unit,
              units = (uint32_t)blockDim.x / (uint32_t)a.unit;
    __syncthreads();                      /* all threads' copies have landed */
#pragma unroll 1
    for (int i = 0; i < a.channels * a.pieces; i += units) {
      const int c = (uint32_t)(i + unit) / (uint32_t)a.pieces;
      float2 s = c < a.channels ? sum_channel(c, i + unit - c * a.pieces, lane) : make_float2(0, 0);
#pragma unroll 1
      for (int o = a.unit / 2; o; o /= 2) s.x += __shfl_xor_sync(~0u, s.x, o), s.y += __shfl_xor_sync(~0u, s.y, o);
      if (lane == 0 && c < a.channels) sum[i + unit] = s;
    }
    __syncthreads();
    float g = 0, gh = 0;
    for (int i = threadIdx.x % 32; i < a.channels * a.pieces; i += 32) {
      const float w = scale[(uint32_t)i / (uint32_t)a.pieces];
      g += sum[i].x * w, gh += sum[i].y * w;
    }
    float2 all = make_float2(warp_sum(g), warp_sum(gh));
    if (a.team.parts > 1) {
      if (threadIdx.x == 0) team.tell(turn, 0, all);
      all = sum_of_parts(a, hear_all(team, turn, heard), 0);
    }
    means = means_of(a, all);
    for (int c = threadIdx.x; a.sums && c < a.channels; c += (int)blockDim.x) {
      float2 channel = make_float2(0, 0);
      for (int i = c * a.pieces; i < (c + 1) * a.pieces; i++) channel.x += sum[i].x, channel.y += sum[i].y;
      a.sums[((int64_t)item * a.team.parts + team.rank) * a.channels + c] = channel;
    }
  }
  __device__ __forceinline__ void apply(float (&x)[V], const float (&dy)[V], int k) const
  {
    const int j = (m.first + k * m.by) * V, c = cuda_quotient(j, m.a.by_repeat), left = (c + 1) * m.a.repeat - j;
    const float here = scale[c], next = left < V ? scale[c + 1] : here;
#pragma unroll
    for (int e = 0; e < V; e++) x[e] = rstd * (dy[e] * (e < left ? here : next) - means.x - (x[e] - mean) * rstd * means.y);
  }
};

/* ---- channels last: a thread has 8 channels of every (active / lanes)-th line --------------------------------------------- */

template <int whole> struct column_gradient {
  static constexpr int THREADS = threads_of<COLUMNS>;
  const mine<whole, COLUMNS> &m;
  const team_member &team;
  float   *exchange;
  float2  *given, *found, *heard;         /* [groups]: mean and rstd; means of g and g h; [parts, groups] */
  float    mean[V], rstd[V], scale[V], less[V], along[V];   /* less, along: means of g and g h */

  __device__ column_gradient(const mine<whole, COLUMNS> &mine, const team_member &team, void *beyond)
    : m(mine), team(team), exchange((float *)beyond)
  {
    given = (float2 *)(exchange + cuda_groups_exchange(m.a.lanes)), found = given + m.a.groups, heard = found + m.a.groups;
  }
  __device__ __forceinline__ int group(int i) const { return (uint32_t)(threadIdx.x % m.a.lanes * V + i) / (uint32_t)m.a.channels; }
  __device__ __forceinline__ void begin(int, int item)
  {
    const cuda_groups &a = m.a;
    const int64_t means = place(a, item, MEAN), rstds = place(a, item, RSTD);
    for (int g = threadIdx.x; g < a.groups; g += THREADS)
      given[g] = make_float2(mean_at(a, means + g * a.group_step[0]), rstd_at(a, rstds + g * a.group_step[1]));
    __syncthreads();
#pragma unroll
    for (int i = 0; i < V; i++) mean[i] = given[group(i)].x, rstd[i] = given[group(i)].y;
  }
  __device__ __forceinline__ void measure(int turn, int item)
  {
    const cuda_groups &a = m.a;
    const int y = (uint32_t)threadIdx.x / (uint32_t)a.lanes, lane = threadIdx.x - y * a.lanes;
    const int64_t scales = place(a, item, SCALE);
    float2 sum[V] = {};
    m.template walk<mine<whole, COLUMNS>::together / 2>([&](int k, auto some) {
      constexpr int n = decltype(some)::value;
      packed<whole> q[n], p[n];
#pragma unroll
      for (int b = 0; b < n; b++) q[b] = m.get((k + b) * m.by), p[b] = m.get_dy((k + b) * m.by);
#pragma unroll
      for (int b = 0; b < n; b++) {
        float x[V], dy[V];
        q[b].open(x);
        p[b].open(dy);
#pragma unroll
        for (int i = 0; i < V; i++) add(&sum[i], x[i], dy[i], mean[i], rstd[i]);
      }
    });
    for (int live = a.active / a.lanes, half; live > 1; live = half) {        /* tree reduction over the threads of a lane */
      half = (live + 1) / 2;
      float *there = exchange + (y < half ? y : y - half) * a.lanes + lane;
      if (y >= half && y < live)
#pragma unroll
        for (int i = 0; i < V; i++) there[(2 * i) * THREADS / 2] = sum[i].x, there[(2 * i + 1) * THREADS / 2] = sum[i].y;
      __syncthreads();
      if (y < live - half)
#pragma unroll
        for (int i = 0; i < V; i++) sum[i].x += there[(2 * i) * THREADS / 2], sum[i].y += there[(2 * i + 1) * THREADS / 2];
      __syncthreads();
    }
    float2 *of = (float2 *)exchange;
    if (y == 0)
#pragma unroll
      for (int i = 0; i < V; i++) of[lane * V + i] = sum[i];
    __syncthreads();
    for (int g = threadIdx.x; g < a.groups; g += THREADS) {
      float2 all = make_float2(0, 0);
      for (int c = g * a.channels; c < (g + 1) * a.channels; c++) {
        const float w = scale_at<whole>(a, scales + c);
        all.x += of[c].x * w, all.y += of[c].y * w;
      }
      if (a.team.parts > 1) team.tell(turn, g, all);
      else found[g] = means_of(a, all);
    }
    for (int c = threadIdx.x; a.sums && c < a.lanes * V; c += THREADS)
      a.sums[((int64_t)item * a.team.parts + team.rank) * a.lanes * V + c] = of[c];
    if (a.team.parts > 1) {
      const float2 *told = hear_all(team, turn, heard);
      for (int g = threadIdx.x; g < a.groups; g += THREADS) found[g] = means_of(a, sum_of_parts(a, told, g));
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < V; i++)
      scale[i] = scale_at<whole>(a, scales + lane * V + i), less[i] = found[group(i)].x, along[i] = found[group(i)].y;
  }
  __device__ __forceinline__ void apply(float (&x)[V], const float (&dy)[V], int) const
  {
#pragma unroll
    for (int e = 0; e < V; e++) x[e] = rstd[e] * (dy[e] * scale[e] - less[e] - (x[e] - mean[e]) * rstd[e] * along[e]);
  }
};

/* ---- the kernels ------------------------------------------------------------------------------------------------------------ */

template <int whole, int kind> struct gradient_of { typedef channel_gradient<whole> type; };
template <int whole> struct gradient_of<whole, COLUMNS> { typedef column_gradient<whole> type; };

template <int whole, int kind> __global__ void __launch_bounds__(threads_of<kind>, 2) norm_groups(const __grid_constant__ cuda_groups a)
{
  typedef mine<whole, kind> M;
  extern __shared__ uint4 shared[];
  const team_member team(a.team, (ulonglong2 *)shared);
  uint4 *slots = shared + cuda_team_shared(&a.team) / 16;
  const M m(a, slots, team.rank);
  typename gradient_of<whole, kind>::type gradient(m, team, slots + (int64_t)2 * M::words * a.share);

  for (int item = team.team, turn = 0; item < (int)a.items; item += a.team.teams, turn++) {
    const int64_t x_at = place(a, item, X) * M::size;
    m.fetch(x_at);
    copy_async_commit();
    if (turn == 0) team.begin();
    gradient.begin(turn, item);
    copy_async_wait<0>();
    gradient.measure(turn, item);
    char *dx = (char *)a.p[DX] + place(a, item, DX) * M::size + m.start[1];
    m.template walk<M::together / 2>([&](int k, auto some) {
      constexpr int n = decltype(some)::value;
      packed<whole> q[n], p[n];
#pragma unroll
      for (int b = 0; b < n; b++) q[b] = m.get((k + b) * m.by), p[b] = m.get_dy((k + b) * m.by);
#pragma unroll
      for (int b = 0; b < n; b++, dx += m.step[1]) {
        float x[V], dy[V];
        q[b].open(x);
        p[b].open(dy);
        gradient.apply(x, dy, k + b);
        m.write(x, dx);
      }
    });
  }
  team.leave();
}

/* dscale and dshift: adds up the items' sums. A block has ADDED channels; the threads of a channel each add every 128th entry,
 * then the block's warps are combined. A fixed order, so deterministic. */
enum { ADDED = 8, ADDERS = 1024 };        /* channels and threads of a block */
__global__ static void __launch_bounds__(ADDERS) add_items(const __grid_constant__ cuda_groups_sums a)
{
  __shared__ float2 of_warp[ADDERS / 32][ADDED];
  const int64_t channels = a.sides * a.channels, first = blockIdx.x * (int64_t)ADDED,
                j = min(first + threadIdx.x % ADDED, channels - 1), side = j / a.channels;
  const uint32_t n = (uint32_t)a.copies * (uint32_t)a.parts;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float2 sum = make_float2(0, 0);
#pragma unroll 8
  for (uint32_t i = threadIdx.x / ADDED; i < n; i += ADDERS / ADDED) {
    const uint32_t copy = i / (uint32_t)a.parts;
    const float2 v = a.sums[((copy * a.sides + side) * a.parts + (i - copy * (uint32_t)a.parts)) * a.channels + (j - side * a.channels)];
    sum.x += v.x, sum.y += v.y;
  }
#pragma unroll
  for (int o = ADDED; o < 32; o *= 2) sum.x += __shfl_xor_sync(~0u, sum.x, o), sum.y += __shfl_xor_sync(~0u, sum.y, o);
  if (lane < ADDED) of_warp[warp][lane] = sum;
  __syncthreads();
  if (warp >= ADDED || first + warp >= channels) return;
  sum = of_warp[lane][warp];
  sum = make_float2(warp_sum(sum.x), warp_sum(sum.y));
  if (lane) return;
  if (a.dscale) element_store(a.dscale, first + warp, dtype3(a.dtype[0]), sum.y);
  if (a.dshift) element_store(a.dshift, first + warp, dtype3(a.dtype[1]), sum.x);
}

template <int whole> static const void *of_kind(int kind)
{
  return kind == CHANNELS ? (const void *)norm_groups<whole, CHANNELS> : (const void *)norm_groups<whole, COLUMNS>;
}
const void *cuda_norm_groups_kernel(uint32_t dtype, int kind)
{
  return dtype == QN_F32 ? of_kind<QN_F32>(kind) : dtype == QN_BF16 ? of_kind<QN_BF16>(kind) : of_kind<QN_F16>(kind);
}

bool cuda_norm_groups_clusters(const qn_device *device) { return cuda_has_clusters(device); }

void cuda_norm_groups_add(const cuda_groups_sums *a, void *stream)
{
  add_items<<<(unsigned)((a->sides * a->channels + ADDED - 1) / ADDED), ADDERS, 0, (cudaStream_t)stream>>>(*a);
}
