/* sampling_planes.cu -- grid_sample (linear) of packed 2-d planes (NCHW, f16, bf16, f32) and its gradient with respect to the
 * grid: a block has some points and some channels of an image, computes the taps once, then streams plane after plane through
 * shared memory, where scattered taps cost the same as neighbouring ones.
 *
 *   y      the sum over a point's taps of the product of both weights times x; taps of weight 0 do not count
 *   dgrid  the sum over channels and taps of dy x times the other dim's weight and this dim's slope: per tap over a group of
 *          GROUP channels, then combined into slopes; a second kernel adds the groups in order
 *
 * All four taps of a point that has any are read without checks: planes in shared memory have a margin around them.
 * Refused: nearest, reflection, 3-d, planes that do not fit twice, grids that are not packed f32. */
#include "kit/divisor.h"
#include "engines.h"
#include "sampling.cuh"
#include "kit/shared_memory.h"
#include "kit/sm80.cuh"
#include "kit/sums.cuh"

enum { THREADS = 1024, EACH = 8, BATCH = 2, GROUP = 16, STAGES = 3, JOIN_THREADS = 256 };

/* A dim: the position is scale (g + 1) + shift, clamped to low..high; n: extent. */
struct ruler { float scale, shift, low, high; int32_t n; };

struct problem {
  const float2 *grid;
  int64_t  grid_image;                    /* between images, in points */
  ruler    dim[2];                        /* line, column */
  int32_t  count, channels, group, share; /* points of an image; its channels; channels of a block; points of a block */
  cuda_divisor by_groups, by_shares, by_count, by_line;
  /* bytes: of a line, of a plane; of the block's dy or y beside a plane; margin before and after the planes */
  int32_t  line, plane, beside, around;
  int32_t  planes, stages;                /* planes of a stage; stages of the ring */
  bool     sorted;                        /* the block sorts its points by the bank of their first tap */
  bool     apart;                         /* dy's place beside one plane is large enough for the list of points */
  bool     vectors;                       /* dy, or y, is aligned 16-byte words */
  const void *x, *dy;                     /* dy: y in forward */
  void    *out;
  float2  *part;                          /* partial dgrid of each group of channels */
  int64_t  images, x_image, x_plane, y_image, y_plane, out_stride[4];  /* strides */
  uint32_t dtype, out_dtype;
};

struct block_share {
  int32_t image, group, channel, channels, point, points;

  __device__ __forceinline__ block_share(const problem &s)
  {
    uint32_t share, groups;
    image = (int32_t)cuda_quotient(cuda_quotient(blockIdx.x, s.by_shares, &share), s.by_groups, &groups);
    group = (int32_t)groups, channel = group * s.group, channels = min(s.group, s.channels - channel);
    point = (int32_t)share * s.share, points = min(s.share, s.count - point);
  }
};

/* Copies planes, each with its dy, to a ring of stages in shared memory; a stage is refilled as soon as the block is done with it. */
template <int BYTES, bool BESIDE> struct plane_stages {
  const problem &s;
  const char *x, *dy;
  int32_t left, beside, to, end;          /* planes left; bytes of dy; offsets of the next stage and of the ring's end */

  __device__ __forceinline__ plane_stages(const problem &s, const block_share &of)
    : s(s), x((const char *)s.x + (of.image * s.x_image + of.channel * s.x_plane) * BYTES),
      dy((const char *)s.dy + (of.image * s.y_image + of.channel * s.y_plane + of.point) * BYTES), left(of.channels),
      beside(of.points * BYTES), to(s.around), end(s.around + s.stages * s.planes * (s.plane + s.beside)) {}

  __device__ __forceinline__ void fill_planes(char *shared) const
  {
#pragma unroll 1
    for (int p = 0; p < min(s.planes, left); p++)
#pragma unroll 1
      for (int32_t i = threadIdx.x * 16; i < s.plane; i += THREADS * 16)
        copy_async<16>(shared_address(shared + to + p * (s.plane + s.beside) + i), x + p * s.x_plane * BYTES + i, 16);
  }
  __device__ __forceinline__ void fill_beside(char *shared)
  {
#pragma unroll 1
    for (int p = 0; BESIDE && p < min(s.planes, left); p++) {
      const char *from = dy + p * s.y_plane * BYTES;
      char *at = shared + to + p * (s.plane + s.beside) + s.plane;
      if (s.vectors) {
#pragma unroll 1
        for (int32_t i = threadIdx.x * 16; i < beside; i += THREADS * 16) copy_async<16>(shared_address(at + i), from + i, 16);
      } else {
#pragma unroll 1
        for (int32_t i = threadIdx.x * BYTES; i < beside; i += THREADS * BYTES) {
          if (BYTES == 4) *(uint32_t *)(at + i) = fetch_element<BYTES>(from + i);
          else *(uint16_t *)(at + i) = (uint16_t)fetch_element<BYTES>(from + i);
        }
      }
    }
    x += s.planes * s.x_plane * BYTES, dy += s.planes * s.y_plane * BYTES, left -= s.planes;
    to += s.planes * (s.plane + s.beside);
    if (to == end) to = s.around;
    copy_async_commit();
  }
  /* Fills all stages but the last, and of that as much as leaves room for the list of points, which it returns. */
  __device__ __forceinline__ char *begin(char *shared)
  {
#pragma unroll 1
    for (int i = 1; i < s.stages; i++) fill_planes(shared), fill_beside(shared);
    if (!s.apart) return shared + to;
    fill_planes(shared);
    return shared + to + s.plane;
  }
  /* Refills a stage that the block is done with, or (list) the place of the list. */
  __device__ __forceinline__ void close(char *shared, bool list)
  {
    __syncthreads();
    if (!list || !s.apart) fill_planes(shared);
    fill_beside(shared);
  }
  __device__ __forceinline__ void open() const
  {
    if (s.stages == STAGES) copy_async_wait<STAGES - 1>();
    else copy_async_wait<STAGES - 2>();
    __syncthreads();
  }
};

/* A dim of a point: tap `below` has weight[0], the next weight[1], if in[] says it is inside; slope: derivative of the position. */
struct line { int32_t below; bool in[2]; float weight[2], slope; };

__device__ __forceinline__ line line_of(const ruler &r, float g)
{
  line a;
  const float p = fmaf(g + 1, r.scale, r.shift), held = fminf(fmaxf(p, r.low), r.high), under = floorf(held), t = held - under;
  const bool there = held > -1 && held < (float)r.n;
  a.below = (int32_t)under;
  a.in[0] = there && a.below >= 0, a.in[1] = there && a.below + 1 < r.n;
  a.weight[0] = a.in[0] ? 1 - t : 0, a.weight[1] = a.in[1] ? t : 0;
  a.slope = p > r.low && p < r.high ? r.scale : 0;
  return a;
}

template <int BYTES> __device__ __forceinline__ float shared_element(const char *p, bool bf16)
{
  return BYTES == 4 ? *(const float *)p : float_of(*(const uint16_t *)p, bf16);
}

/* A point packed into a word: its number in the block's share (NUMBER_BITS) and the byte offset of its first tap from the stage's
 * begin; 0: none. */
enum { NUMBER_BITS = 13, LISTED = 1u << 31 };

__device__ __forceinline__ uint32_t listed(int32_t i, int32_t from) { return LISTED | (uint32_t)from << NUMBER_BITS | (uint32_t)i; }
__device__ __forceinline__ int32_t number_of(uint32_t word) { return (int32_t)(word & ((1 << NUMBER_BITS) - 1)); }
__device__ __forceinline__ int32_t begin_of(uint32_t word) { return (int32_t)(word << 1 >> (NUMBER_BITS + 1)); }

/* Sorts the points that have taps so that each warp's lie in as many different banks as possible: a point's column is its bank if
 * that bank has a free line, else a bank with fewer points. place: where each point went, or NOWHERE. Returns the lines of 32. */
enum { NOWHERE = -1 };

__device__ __forceinline__ int32_t sort_points(uint32_t (&word)[EACH], int32_t (&place)[EACH], uint32_t *list)
{
  __shared__ int32_t held[32], before[32], over;          /* points of a bank; free places in banks before it; points placed elsewhere */
  const int32_t lane = threadIdx.x % 32;
  if (threadIdx.x < 32) held[lane] = 0, over = 0;
  __syncthreads();
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    list[threadIdx.x + e * THREADS] = 0;
    /* neighbours often share a bank: one lane counts for all */
    const uint32_t bank = word[e] ? (uint32_t)begin_of(word[e]) / 4 % 32 : 32, alike = __match_any_sync(~0u, bank);
    const int32_t first = __ffs(alike) - 1;
    int32_t from = 0;
    if (lane == first && bank < 32) from = atomicAdd(&held[bank], __popc(alike));
    place[e] = __shfl_sync(~0u, from, first) + __popc(alike & ((1u << lane) - 1));
  }
  __syncthreads();
  const int32_t here = held[lane], lines = (warp_sum(here) + 31) / 32, left = max(lines - here, 0);
  int32_t upto = left;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    const int32_t other = __shfl_up_sync(~0u, upto, o);
    upto += lane >= o ? other : 0;
  }
  if (threadIdx.x < 32) before[lane] = upto - left;
  __syncthreads();
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    int32_t bank = begin_of(word[e]) / 4 % 32;
    if (word[e] && place[e] >= lines) {
      const int32_t k = atomicAdd(&over, 1);
      bank = 0;
#pragma unroll
      for (int o = 16; o; o >>= 1) bank += before[bank + o] <= k ? o : 0;
      place[e] = held[bank] + k - before[bank];
    }
    place[e] = word[e] ? place[e] * 32 + bank : NOWHERE;
    if (word[e]) list[place[e]] = word[e];
  }
  __syncthreads();
#pragma unroll
  for (int e = 0; e < EACH; e++) word[e] = list[threadIdx.x + e * THREADS];
  return lines;
}

/* Permutes a value from each point's original thread to its sorted place. */
__device__ __forceinline__ void send_points(float (&v)[EACH], const int32_t (&place)[EACH], float *list)
{
  __syncthreads();
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (place[e] != NOWHERE) list[place[e]] = v[e];
  __syncthreads();
#pragma unroll
  for (int e = 0; e < EACH; e++) v[e] = list[threadIdx.x + e * THREADS];
}

/* A block's points, EACH a thread. */
struct taken {
  uint32_t word[EACH], nowhere, nan;      /* bit masks over the thread's original points: no tap; NaN */
  int32_t  points;                        /* up to the last occupied place */

  /* Loads the coordinates. */
  __device__ __forceinline__ void look(const float2 *grid, const block_share &of, float (&at)[2][EACH])
  {
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const float2 g = __ldg(grid + min((int32_t)threadIdx.x + e * THREADS, of.points - 1));
      at[0][e] = g.x, at[1][e] = g.y;
    }
  }
  /* Computes words and sorts them; SENT: the coordinates are permuted too. */
  template <int BYTES, bool SENT>
  __device__ __forceinline__ void take(const problem &s, const block_share &of, float (&at)[2][EACH], void *list)
  {
    nowhere = nan = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int32_t i = (int32_t)threadIdx.x + e * THREADS;
      word[e] = 0;
      if (i >= of.points) continue;
      const line y = line_of(s.dim[0], at[1][e]), x = line_of(s.dim[1], at[0][e]);
      const bool number = at[0][e] == at[0][e] && at[1][e] == at[1][e];
      if (number && (y.in[0] || y.in[1]) && (x.in[0] || x.in[1])) word[e] = listed(i, s.around + y.below * s.line + x.below * BYTES);
      else nowhere |= 1u << e, nan |= number ? 0 : 1u << e;
    }
    points = of.points;
    if (!s.sorted) return;
    int32_t place[EACH];
    points = 32 * sort_points(word, place, (uint32_t *)list);
    if (SENT) send_points(at[0], place, (float *)list), send_points(at[1], place, (float *)list);
  }
  /* The result of a point without taps. */
  __device__ __forceinline__ float none(int e) const { return nan >> e & 1 ? NAN : 0; }
};

/* Writes y of a stage's planes from shared memory. */
template <int BYTES> __device__ __forceinline__ void put_planes(const problem &s, const char *from, char *to, int32_t planes, int32_t bytes)
{
#pragma unroll 1
  for (int p = 0; p < planes; p++, from += s.plane + s.beside, to += s.y_plane * BYTES)
    if (s.vectors) {
#pragma unroll 1
      for (int32_t i = threadIdx.x * 16; i < bytes; i += THREADS * 16) __stcs((uint4 *)(to + i), *(const uint4 *)(from + i));
    } else {
#pragma unroll 1
      for (int32_t i = threadIdx.x * BYTES; i < bytes; i += THREADS * BYTES) {
        if (BYTES == 4) *(uint32_t *)(to + i) = *(const uint32_t *)(from + i);
        else *(uint16_t *)(to + i) = *(const uint16_t *)(from + i);
      }
    }
}

template <int BYTES> __global__ static void __launch_bounds__(THREADS, 1) sample_planes(const __grid_constant__ problem s)
{
  extern __shared__ __align__(16) char shared[];
  const block_share of(s);
  const bool bf16 = s.dtype == QN_BF16;
  const float2 *grid = s.grid + of.image * s.grid_image + of.point;
  taken of_thread;
  float where[2][EACH];
  of_thread.look(grid, of, where);     /* before the planes, whose copies take long */
  plane_stages<BYTES, false> stages(s, of);
  of_thread.take<BYTES, true>(s, of, where, stages.begin(shared));
  __syncthreads();                        /* the list has been read */
#pragma unroll 1
  for (int p = 0; p < s.stages * s.planes; p++)
#pragma unroll
    for (int e = 0; e < EACH; e++)
      if (of_thread.nowhere >> e & 1)
        put_element<BYTES>(shared + s.around + s.plane + p * (s.plane + s.beside) + ((int32_t)threadIdx.x + e * THREADS) * BYTES,
                           of_thread.none(e), bf16);
  float weight[EACH][4];                  /* of lines, of columns */
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    const line y = line_of(s.dim[0], where[1][e]), x = line_of(s.dim[1], where[0][e]);
#pragma unroll
    for (int k = 0; k < 2; k++) weight[e][k] = y.weight[k], weight[e][2 + k] = x.weight[k];
  }
  char *to = (char *)s.out + (of.image * s.y_image + of.channel * s.y_plane + of.point) * BYTES;
  int32_t at = 0, made = 0;               /* offsets of the current stage, and of the one made before */
#pragma unroll 1
  for (int32_t c = 0; c < of.channels;) {
    stages.close(shared, c == 0);
    if (c) put_planes<BYTES>(s, shared + made + s.around + s.plane, to, s.planes, stages.beside), to += s.planes * s.y_plane * BYTES;
    stages.open();
    const int32_t last = min(c + s.planes, of.channels), next = at + s.planes * (s.plane + s.beside);
    made = at;
#pragma unroll 1
    for (; c < last; c++, at += s.plane + s.beside) {
      char *y = shared + (at + s.around + s.plane);
#pragma unroll
      for (int f = 0; f < EACH; f += BATCH) {
        if (f * THREADS >= of_thread.points) break;
#pragma unroll
        for (int e = f; e < f + BATCH; e++) {
          const char *upper = shared + (at + begin_of(of_thread.word[e])), *lower = upper + s.line;
          float sum = 0;
#pragma unroll
          for (int k = 0; k < 4; k++) {
            const float w = weight[e][k >> 1] * weight[e][2 + (k & 1)];
            float v = 0;
            if (w != 0) v = shared_element<BYTES>((k < 2 ? upper : lower) + k % 2 * BYTES, bf16);
            sum = fmaf(w, v, sum);
          }
          if (of_thread.word[e]) put_element<BYTES>(y + number_of(of_thread.word[e]) * BYTES, sum, bf16);
        }
      }
    }
    at = next + s.around == stages.end ? 0 : next;
  }
  __syncthreads();
  put_planes<BYTES>(s, shared + made + s.around + s.plane, to, (of.channels - 1) % s.planes + 1, stages.beside);
}

template <int BYTES> __global__ static void __launch_bounds__(THREADS, 1) slope_planes(const __grid_constant__ problem s)
{
  extern __shared__ __align__(16) char shared[];
  const block_share of(s);
  const bool bf16 = s.dtype == QN_BF16;
  const float2 *grid = s.grid + of.image * s.grid_image + of.point;
  float2 *part = s.part + ((int64_t)of.image * s.by_groups.by + of.group) * s.count + of.point;
  taken of_thread;
  float where[2][EACH];
  of_thread.look(grid, of, where);
  plane_stages<BYTES, true> stages(s, of);
  of_thread.take<BYTES, false>(s, of, where, stages.begin(shared));
  float by[EACH][4] = {};
  int32_t at = 0;                         /* offset of the current stage */
#pragma unroll 1
  for (int32_t c = 0; c < of.channels;) {
    stages.close(shared, c == 0);
    stages.open();
    const int32_t last = min(c + s.planes, of.channels), next = at + s.planes * (s.plane + s.beside);
#pragma unroll 1
    for (; c < last; c++, at += s.plane + s.beside) {
      const char *dy = shared + (at + s.around + s.plane);
#pragma unroll
      for (int f = 0; f < EACH; f += BATCH) {
        if (f * THREADS >= of_thread.points) break;
#pragma unroll
        for (int e = f; e < f + BATCH; e++) {
          const char *upper = shared + (at + begin_of(of_thread.word[e])), *lower = upper + s.line;
          const float g = shared_element<BYTES>(dy + number_of(of_thread.word[e]) * BYTES, bf16);
#pragma unroll
          for (int k = 0; k < 4; k++) by[e][k] = fmaf(g, shared_element<BYTES>((k < 2 ? upper : lower) + k % 2 * BYTES, bf16), by[e][k]);
        }
      }
    }
    at = next + s.around == stages.end ? 0 : next;
  }
  /* permute each tap's sum back to the point's original thread */
  float *sums = (float *)(shared + s.around);
#pragma unroll
  for (int k = 0; k < 4 && s.sorted; k++) {
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++)
      if (of_thread.word[e]) sums[number_of(of_thread.word[e])] = by[e][k];
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++) by[e][k] = sums[threadIdx.x + e * THREADS];
  }
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    const int32_t i = (int32_t)threadIdx.x + e * THREADS;
    if (i >= of.points) break;
    const float2 g = __ldg(grid + i);
    const line y = line_of(s.dim[0], g.y), x = line_of(s.dim[1], g.x);
    const bool nowhere = of_thread.nowhere >> e & 1;
    float2 sum = make_float2(nowhere ? of_thread.none(e) : 0, nowhere ? of_thread.none(e) : 0);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const int v = k >> 1, h = k & 1;
      const float across = x.in[h] ? (h ? x.slope : -x.slope) * y.weight[v] : 0,
                  down = y.in[v] ? (v ? y.slope : -y.slope) * x.weight[h] : 0;
      if (!nowhere && across != 0) sum.x = fmaf(across, by[e][k], sum.x);
      if (!nowhere && down != 0) sum.y = fmaf(down, by[e][k], sum.y);
    }
    part[i] = sum;
  }
}


__global__ static void __launch_bounds__(JOIN_THREADS) join_slopes(const __grid_constant__ problem s)
{
  uint32_t i, column;
  const int32_t groups = (int32_t)s.by_groups.by, n = (int32_t)cuda_quotient(blockIdx.x * JOIN_THREADS + threadIdx.x, s.by_count, &i);
  if (n >= s.images) return;
  const float2 *part = s.part + (int64_t)n * groups * s.count + i;
  float2 sum = make_float2(0, 0);
#pragma unroll 8
  for (int32_t g = 0; g < groups; g++) {
    const float2 v = part[(int64_t)g * s.count];
    sum.x += v.x, sum.y += v.y;
  }
  const uint32_t line = cuda_quotient(i, s.by_line, &column);
  const int64_t to = n * s.out_stride[0] + line * s.out_stride[1] + column * s.out_stride[2];
  element_store(s.out, to, s.out_dtype, sum.x);
  element_store(s.out, to + s.out_stride[3], s.out_dtype, sum.y);
}

/* ---- host ---------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct planes_state { problem s; bool forward; int32_t x, dy, grid, out; uint32_t blocks, shared; kernel kernel; };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  planes_state st = {};
  const qn_node *op = &r->op[0];
  const qn_sampling *attr = (const qn_sampling *)op->attr;
  const bool forward = st.forward = op->op == QN_OP_GRID_SAMPLE;
  st.x = op->arg[forward ? 0 : 1], st.grid = op->arg[forward ? 1 : 2], st.dy = op->arg[forward ? 2 : 0], st.out = op->arg[forward ? 2 : 3];
  const qn_value *x = &r->value[st.x], *y = &r->value[st.dy], *grid = &r->value[st.grid], *to = &r->value[st.out];
  if (x->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "x", "f32, f16 or bf16", "%s", "f64");
  if (attr->mode != QN_RESAMPLE_LINEAR || attr->padding == QN_SAMPLE_REFLECTION)
    return qn_refuse(out, "linear, not reflected", "mode", "linear", "%s", "another");
  if (x->rank != 4) return qn_refuse(out, "images have two dims", "x", "rank 4", "rank %d", x->rank);
  if (y->dtype != x->dtype) return qn_refuse(out, "one dtype", "y", qn_kit_name(x->dtype), "%s", qn_kit_name(y->dtype));
  const int64_t bytes = qn_kit_bytes(x->dtype), each = 16 / bytes, size = x->dim[2] * x->dim[3], c = x->dim[1],
                count = y->dim[2] * y->dim[3], units = r->device->units;
  if (x->align < 16 || (x->stride[3] != 1 && x->dim[3] > 1) || (x->stride[2] != x->dim[3] && x->dim[2] > 1) || size % each ||
      x->stride[0] % each || x->stride[1] % each)
    return qn_refuse(out, "planes are packed words of 16 bytes", "x", "nchw", "%s", "other strides");
  if (y->stride[3] != 1 || y->stride[2] != y->dim[3]) return qn_refuse(out, "planes are packed", "y", "nchw", "%s", "other strides");
  if (grid->dtype != QN_F32 || grid->align < 8 || grid->stride[3] != 1 || grid->stride[2] != 2 || grid->stride[1] != 2 * grid->dim[2] ||
      grid->stride[0] % 2)
    return qn_refuse(out, "points are packed, words of two f32", "grid", "row-major without gaps", "%s", "other strides");
  if (size > 1 << 20) return qn_refuse(out, "two planes in shared memory", "x", "smaller planes", "%lld bytes", (long long)(size * bytes));
  problem *s = &st.s;
  s->line = (int32_t)(x->dim[3] * bytes), s->plane = (int32_t)(size * bytes), s->around = (int32_t)qn_round_up(s->line + bytes, 16);
  int64_t room = 0;                       /* planes that fit; larger ones leave room for fewer points */
  for (s->share = 2 * EACH * THREADS; room < 2 && s->share > BATCH * THREADS;) {
    s->share /= 2;
    s->beside = (int32_t)(qn_min_i64(qn_round_up(count, BATCH * THREADS), s->share) * bytes);
    room = ((int64_t)r->device->shared_per_block - 1024 - 2 * s->around) / (s->plane + s->beside);
  }
  if (room < 2) return qn_refuse(out, "two planes in shared memory", "x", "smaller planes", "%d bytes", s->plane);
  const int64_t shares = qn_ceil_div(count, s->share);
  if ((double)c * (double)x->dim[0] * (double)shares > 1e9 || (double)count * (double)x->dim[0] > 1e9)
    return qn_refuse(out, "positions fit 32 bits", "x", "fewer", "%lld", (long long)count);
  for (int d = 0; d < 2; d++) {
    const float n = (float)x->dim[2 + d], last = n - 1;
    const bool border = attr->padding == QN_SAMPLE_BORDER;
    s->dim[d] = { (attr->align_corners ? last : n) / 2, attr->align_corners ? 0.f : -0.5f, border ? 0 : -INFINITY, border ? last : INFINITY,
                  (int32_t)x->dim[2 + d] };
  }
  s->grid_image = grid->stride[0] / 2;
  s->count = (int32_t)count, s->channels = (int32_t)c, s->images = x->dim[0];
  /* just enough blocks to fill the device; backward always the same groups, so that sums do not depend on the device */
  s->group = forward ? (int32_t)qn_ceil_div(c, qn_max_i64(1, units / (x->dim[0] * shares))) : (int32_t)qn_min_i64(c, GROUP);
  const int64_t groups = qn_ceil_div(c, s->group);
  s->by_groups = cuda_divide_by(groups), s->by_shares = cuda_divide_by(shares), s->by_count = cuda_divide_by(count),
  s->by_line = cuda_divide_by(grid->dim[2]);
  st.blocks = (uint32_t)(groups * x->dim[0] * shares);
  s->stages = room < STAGES ? 2 : STAGES, s->planes = (int32_t)qn_min_i64(room / s->stages, qn_ceil_div(s->group, s->stages));
  st.shared = (uint32_t)(2 * s->around + s->stages * s->planes * (s->plane + s->beside));
  s->apart = s->beside >= EACH * THREADS * (int)sizeof(uint32_t),
  s->sorted = s->planes * (s->plane + s->beside) >= EACH * THREADS * (int)sizeof(uint32_t);
  s->vectors = y->align >= 16 && count % each == 0 && y->stride[0] % each == 0 && y->stride[1] % each == 0;
  s->dtype = x->dtype, s->out_dtype = to->dtype;
  s->x_image = x->stride[0], s->x_plane = x->stride[1], s->y_image = y->stride[0], s->y_plane = y->stride[1];
  for (int d = 0; d < 4; d++) s->out_stride[d] = to->stride[d];
  if (!forward) out->workspace = (uint64_t)(groups * x->dim[0]) * (uint64_t)count * sizeof(float2);
  if (x->dtype == QN_F32) st.kernel = forward ? (kernel)sample_planes<4> : (kernel)slope_planes<4>;
  else st.kernel = forward ? (kernel)sample_planes<2> : (kernel)slope_planes<2>;
  /* Claims to be best where it fills the device and planes have many points: it takes up to a third longer than `points` where
   * neighbouring points are close together, and less than half the time where they are not. */
  if ((int64_t)st.blocks * 4 >= units * 3 && count * 2 >= size)
    out->estimate = 1e4 + (double)c * (double)x->dim[0] * (double)count * 8 / 3000;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status build(const qn_request *, qn_prepared *prepared)
{
  const planes_state *st = (const planes_state *)prepared->state;
  return st->shared > 48 << 10 ? cuda_allow_shared(st->kernel) : QN_OK;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const planes_state *st = (const planes_state *)p->state;
  problem s = st->s;
  s.grid = (const float2 *)launch->ptr[st->grid], s.x = launch->ptr[st->x], s.dy = launch->ptr[st->dy], s.out = launch->ptr[st->out],
  s.part = (float2 *)launch->workspace;
  void *arguments[] = { &s };
  cudaStream_t stream = (cudaStream_t)launch->stream;
  qn_status status = cuda_check(cudaLaunchKernel(st->kernel, dim3(st->blocks), dim3(THREADS), arguments, st->shared, stream),
                                "sampling_planes");
  if (status || st->forward) return status;
  join_slopes<<<direct_blocks(s.images * s.count, JOIN_THREADS), JOIN_THREADS, 0, stream>>>(s);
  return direct_launched("sampling_planes");
}

#define ROW(op) { "planes", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, nullptr, nullptr, \
                  prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_GRID_SAMPLE), ROW(QN_OP_GRID_SAMPLE_BACKWARD_GRID) };
CUDA_ENGINES(sampling_planes) = { row, sizeof row / sizeof *row };
