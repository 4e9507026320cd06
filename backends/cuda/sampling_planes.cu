/* sampling_planes.cu -- packed images at points anywhere, and the gradient by the points: a block has some channels of an image and takes them
 * two by two through shared memory, where a tap costs the same wherever it lies; what a point's taps are is worked out once for two.
 *
 *   y      the sum over a point's taps of the product of both weights times x; a tap of weight 0 does not count
 *   dgrid  the sum over channels and taps of dy x times the other dim's weight and this dim's slope: GROUP channels by a block, their sums in
 *          order by another kernel */
#include "divisor.h"
#include "engines.h"
#include "sampling_planes.cuh"

enum { THREADS = RING_THREADS, GROUP = 16, EACH = 8, JOIN_THREADS = 256 };

/* A dim: points lie at scale (g + 1) + shift, held between low and high; n: places. */
struct ruler { float scale, shift, low, high; int32_t n; };

struct problem {
  const float2 *grid;
  int64_t  grid_image;                    /* points, from one image to the next */
  ruler    dim[2];                        /* lines, columns */
  planes   of;
  int32_t  count, channels, group;        /* points of an image; channels of it, of a block */
  cuda_divisor by_groups, by_parts, by_count;
  const void *x, *dy;                     /* dy: y, forward */
  void    *out;
  float2  *part;                          /* of dgrid, of each block */
  int64_t  images, x_image, y_image, y_plane, out_image;    /* from one to the next */
  uint32_t dtype, out_dtype;
};

/* A dim of a point: place `below` weighs weight[0], the next weight[1], where they are in the image; slope: what both change by. */
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

/* Two planes' values at each tap that is used. */
template <int BYTES> struct taps {
  float v[2][4];

  __device__ __forceinline__ taps(const problem &s, const char *shared, int32_t line, int32_t column, const bool (&used)[4], const int32_t (&start)[2], bool bf16)
  {
    const uint32_t ring = (uint32_t)s.of.ring;
#pragma unroll
    for (int p = 0; p < 2; p++)
#pragma unroll
      for (int k = 0; k < 4; k += 2) {
        const uint32_t at = (uint32_t)(start[p] + (line + k / 2) * s.of.line);
        const char *from = shared + ((int32_t)min(at, at - ring) + column * BYTES);
#pragma unroll
        for (int j = 0; j < 2; j++) {
          v[p][k + j] = 0;
          if (used[k + j]) v[p][k + j] = BYTES == 4 ? ((const float *)from)[j] : float_of(((const uint16_t *)from)[j], bf16);
        }
      }
  }
};

struct block_channels {
  int32_t image, first, count;

  __device__ __forceinline__ block_channels(const problem &s)
  {
    uint32_t group;
    image = (int32_t)cuda_quotient(blockIdx.x, s.by_groups, &group);
    first = (int32_t)group * s.group, count = min(s.group, s.channels - first);
  }
};

template <int BYTES> __global__ static void __launch_bounds__(THREADS, 1) sample_planes(const __grid_constant__ problem s)
{
  extern __shared__ __align__(16) char shared[];
  const block_channels of(s);
  const bool bf16 = s.dtype == QN_BF16;
  plane_ring ring(s.of, (const char *)s.x + (of.image * s.x_image) * BYTES + of.first * s.of.down, shared, of.count);
  const float2 *grid = s.grid + of.image * s.grid_image;
  asm volatile("" : "+l"(grid));         /* a register, not worked out anew for each point */
  char *to = (char *)s.out + (of.image * s.y_image + of.first * s.y_plane) * BYTES;
  int32_t start[2] = { 0, ring.wrapped(s.of.plane) };
#pragma unroll 1
  for (int32_t c = 0; c < of.count; c += 2, to += 2 * s.y_plane * BYTES) {
    ring.open();
    const bool two = c + 1 < of.count;
    char *second = to + s.y_plane * BYTES;
    float2 next = make_float2(0, 0);
    if ((int32_t)threadIdx.x < s.count) next = __ldg(grid + threadIdx.x);
#pragma unroll 2
    for (int32_t i = threadIdx.x; i < s.count; i += THREADS) {
      const float2 g = next;
      if (i + THREADS < s.count) next = __ldg(grid + i + THREADS);
      const line y = line_of(s.dim[0], g.y), x = line_of(s.dim[1], g.x);
      const float none = g.x != g.x || g.y != g.y ? NAN : 0;
      float w[4], sum[2] = { none, none };
      bool used[4];
#pragma unroll
      for (int k = 0; k < 4; k++) w[k] = y.weight[k >> 1] * x.weight[k & 1], used[k] = w[k] != 0;
      const taps<BYTES> t(s, shared, y.below, x.below, used, start, bf16);
#pragma unroll
      for (int k = 0; k < 4; k++)
#pragma unroll
        for (int p = 0; p < 2; p++) sum[p] = fmaf(w[k], t.v[p][k], sum[p]);
      put_element<BYTES>(to + i * BYTES, sum[0], bf16);
      if (two) put_element<BYTES>(second + i * BYTES, sum[1], bf16);
    }
    ring.close();
    start[0] = ring.wrapped(start[1] + s.of.plane), start[1] = ring.wrapped(start[0] + s.of.plane);
  }
}

/* A point's two sums of two planes' products with dy. */
template <int BYTES> __device__ __forceinline__ void add_slopes(float (&sum)[2], const problem &s, const char *shared, float2 at, const int32_t (&start)[2], const float (&g)[2], bool two, bool bf16)
{
  const line y = line_of(s.dim[0], at.y), x = line_of(s.dim[1], at.x);
  if (at.x != at.x || at.y != at.y) sum[0] = sum[1] = NAN;
  float w[2][4];
  bool used[4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const int i = k >> 1, j = k & 1;
    w[0][k] = x.in[j] ? (j ? x.slope : -x.slope) * y.weight[i] : 0;
    w[1][k] = y.in[i] ? (i ? y.slope : -y.slope) * x.weight[j] : 0;
    used[k] = w[0][k] != 0 || w[1][k] != 0;
  }
  const taps<BYTES> t(s, shared, y.below, x.below, used, start, bf16);
#pragma unroll
  for (int k = 0; k < 4; k++) {
    float by = g[0] * t.v[0][k];
    if (two) by = fmaf(g[1], t.v[1][k], by);
#pragma unroll
    for (int d = 0; d < 2; d++)
      if (w[d][k] != 0) sum[d] = fmaf(w[d][k], by, sum[d]);
  }
}

template <int BYTES> __global__ static void __launch_bounds__(THREADS, 1) slope_planes(const __grid_constant__ problem s)
{
  extern __shared__ __align__(16) char shared[];
  uint32_t group, share;
  const int32_t unit = (int32_t)cuda_quotient(blockIdx.x, s.by_parts, &share), image = (int32_t)cuda_quotient((uint32_t)unit, s.by_groups, &group);
  const int32_t first = (int32_t)group * s.group, channels = min(s.group, s.channels - first), here = (int32_t)(share * EACH * THREADS + threadIdx.x);
  const bool bf16 = s.dtype == QN_BF16;
  plane_ring ring(s.of, (const char *)s.x + (image * s.x_image) * BYTES + first * s.of.down, shared, channels);
  const float2 *grid = s.grid + image * s.grid_image;
  asm volatile("" : "+l"(grid));
  const char *from = (const char *)s.dy + (image * s.y_image + first * s.y_plane) * BYTES;
  int32_t start[2] = { 0, ring.wrapped(s.of.plane) };
  float sum[EACH][2] = {};
#pragma unroll 1
  for (int32_t c = 0; c < channels; c += 2, from += 2 * s.y_plane * BYTES) {
    ring.open();
    const bool two = c + 1 < channels;
    const char *second = two ? from + s.y_plane * BYTES : from;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const int32_t i = here + e * THREADS;
      if (i >= s.count) break;
      const float g[2] = { element_of<BYTES>(fetch_element<BYTES>(from + i * BYTES), bf16), element_of<BYTES>(fetch_element<BYTES>(second + i * BYTES), bf16) };
      add_slopes<BYTES>(sum[e], s, shared, __ldg(grid + i), start, g, two, bf16);
    }
    ring.close();
    start[0] = ring.wrapped(start[1] + s.of.plane), start[1] = ring.wrapped(start[0] + s.of.plane);
  }
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (here + e * THREADS < s.count) s.part[(int64_t)unit * s.count + here + e * THREADS] = make_float2(sum[e][0], sum[e][1]);
}

__global__ static void __launch_bounds__(JOIN_THREADS) join_slopes(const __grid_constant__ problem s)
{
  uint32_t i;
  const int32_t groups = (int32_t)s.by_groups.by, n = (int32_t)cuda_quotient(blockIdx.x * JOIN_THREADS + threadIdx.x, s.by_count, &i);
  if (n >= s.images) return;
  const float2 *part = s.part + (int64_t)n * groups * s.count + i;
  float2 sum = make_float2(0, 0);
#pragma unroll 8
  for (int32_t g = 0; g < groups; g++) {
    const float2 v = part[(int64_t)g * s.count];
    sum.x += v.x, sum.y += v.y;
  }
  element_store(s.out, n * s.out_image + 2 * (int64_t)i, s.out_dtype, sum.x);
  element_store(s.out, n * s.out_image + 2 * (int64_t)i + 1, s.out_dtype, sum.y);
}

/* ---- host ---------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct planes_state { problem s; bool forward; int32_t x, dy, grid, out; uint32_t blocks; kernel kernel; };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  planes_state st = {};
  const qn_node *op = &r->op[0];
  const qn_sampling *attr = (const qn_sampling *)op->attr;
  const bool forward = st.forward = op->op == QN_OP_GRID_SAMPLE;
  st.x = op->arg[forward ? 0 : 1], st.grid = op->arg[forward ? 1 : 2], st.dy = op->arg[forward ? 2 : 0], st.out = op->arg[forward ? 2 : 3];
  const qn_value *x = &r->value[st.x], *y = &r->value[st.dy], *grid = &r->value[st.grid], *to = &r->value[st.out];
  if (x->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  if (x->rank != 4) return qn_refuse(out, "images have two dims", "x", "rank 4", "rank %d", x->rank);
  if (y->dtype != x->dtype) return qn_refuse(out, "one dtype", "y", qn_kit_name(x->dtype), "%s", qn_kit_name(y->dtype));
  if (attr->mode != QN_RESAMPLE_LINEAR || attr->padding == QN_SAMPLE_REFLECTION) return qn_refuse(out, "linear, not reflected", "mode", "linear", "%s", "another");
  if (grid->dtype != QN_F32 || grid->align < 8 || !points_are_packed(grid) || grid->stride[0] % 2) return qn_refuse(out, "points are packed, words of two f32", "grid", "row-major without gaps", "%s", "others");
  if (!planes_are_whole(x)) return qn_refuse(out, "planes are packed words of 16 bytes", "x", "nchw", "%s", "others");
  if (y->stride[3] != 1 || y->stride[2] != y->dim[3]) return qn_refuse(out, "planes are packed", "y", "nchw", "%s", "others");
  if (!forward && !points_are_packed(to)) return qn_refuse(out, "points are packed", "dgrid", "row-major without gaps", "%s", "strides");
  const int64_t c = x->dim[1], count = y->dim[2] * y->dim[3], units = r->device->units;
  if ((double)c * (double)x->dim[0] * (double)qn_ceil_div(count, EACH * THREADS) > 1e9 || (double)count * (double)x->dim[0] > 1e9 || x->dim[2] * x->dim[3] > 1 << 20) return qn_refuse(out, "places are counted in 31 bits", "x", "fewer", "%lld", (long long)count);
  problem *s = &st.s;
  for (int d = 0; d < 2; d++) {
    const float n = (float)x->dim[2 + d], last = n - 1;
    const bool border = attr->padding == QN_SAMPLE_BORDER;
    s->dim[d] = { (attr->align_corners ? last : n) / 2, attr->align_corners ? 0.f : -0.5f, border ? 0 : -INFINITY, border ? last : INFINITY, (int32_t)x->dim[2 + d] };
  }
  s->grid_image = grid->stride[0] / 2;
  s->count = (int32_t)count, s->channels = (int32_t)c, s->images = x->dim[0];
  /* as few blocks as fill a device, each of an even number of channels; of gradients always the same, for the sums' sake */
  s->group = forward ? (int32_t)qn_round_up(qn_max_i64(1, c * x->dim[0] / units), 2) : GROUP;
  if (s->group > c) s->group = (int32_t)c;
  const int64_t parts = qn_ceil_div(c, s->group);
  s->by_groups = cuda_divide_by(parts);
  const int64_t shares = !forward ? qn_ceil_div(count, EACH * THREADS) : 1;
  s->by_parts = cuda_divide_by(shares), s->by_count = cuda_divide_by(count);
  st.blocks = (uint32_t)(parts * x->dim[0] * shares);
  s->of = planes_of(x, s->group, r->device->shared_per_block);
  if (!s->of.ring) return qn_refuse(out, "two planes in shared memory", "x", "smaller planes", "%lld bytes", (long long)(2 * qn_kit_bytes(x->dtype) * x->dim[2] * x->dim[3]));
  s->dtype = x->dtype, s->out_dtype = to->dtype;
  s->x_image = x->stride[0], s->y_image = y->stride[0], s->y_plane = y->stride[1], s->out_image = to->stride[0];
  if (!forward) out->workspace = (uint64_t)(parts * x->dim[0]) * (uint64_t)count * sizeof(float2);
  if (x->dtype == QN_F32) st.kernel = forward ? (kernel)sample_planes<4> : (kernel)slope_planes<4>;
  else st.kernel = forward ? (kernel)sample_planes<2> : (kernel)slope_planes<2>;
  /* Where it fills the device and points are many for a plane it goes before engines without an estimate: it takes up to twice as long as points
   * do where neighbours' points are close together, and less than half as long where they are not. */
  if ((int64_t)st.blocks * 4 >= units * 3 && count * 2 >= x->dim[2] * x->dim[3]) out->estimate = 1e4 + (double)c * (double)x->dim[0] * (double)count * 8 / 3000;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status build(const qn_request *, qn_prepared *prepared)
{
  const planes_state *st = (const planes_state *)prepared->state;
  return st->s.of.ring > 48 << 10 ? cuda_allow_shared(st->kernel) : QN_OK;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const planes_state *st = (const planes_state *)p->state;
  problem s = st->s;
  s.grid = (const float2 *)launch->ptr[st->grid], s.x = launch->ptr[st->x], s.dy = launch->ptr[st->dy], s.out = launch->ptr[st->out], s.part = (float2 *)launch->workspace;
  void *arguments[] = { &s };
  cudaStream_t stream = (cudaStream_t)launch->stream;
  qn_status status = cuda_check(cudaLaunchKernel(st->kernel, dim3(st->blocks), dim3(THREADS), arguments, (size_t)s.of.ring, stream), "sampling_planes");
  if (status || st->forward) return status;
  join_slopes<<<direct_blocks(s.images * s.count, JOIN_THREADS), JOIN_THREADS, 0, stream>>>(s);
  return direct_launched("sampling_planes");
}

#define ROW(op) { "planes", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, nullptr, nullptr, \
                  prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_GRID_SAMPLE), ROW(QN_OP_GRID_SAMPLE_BACKWARD_GRID) };
const qn_engine_list cuda_sampling_planes_list = { row, sizeof row / sizeof *row };
