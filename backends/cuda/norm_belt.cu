/* norm_belt.cu -- gradients of layer_norm and rms_norm of groups that lie side by side in each of many lines (group and instance norm,
 * channels last): each element is read once and written once.
 *
 *   with h = (x - mean) rstd, g = dy scale:  dx = rstd (g - mean g - h mean(g h)), dscale = sum dy h, dshift = sum dy      rms_norm: without mean g
 *
 * An item is a band, as in norm_bands: some neighbouring groups, in whole 16-byte words, of all lines of an image. It is a team's, whose blocks
 * (one to a multiprocessor) stay and have the same share of every item. Shared memory holds shares of a few items: while one is written the
 * next is measured, and the copy engine fetches others. What a block has measured it tells its team; a warp hears what the team told
 * (team.cuh), so nobody waits for anybody as long as the news take less than an item. */
#include "cuda_backend.h"
#include "engines.h"
#include "norm_groups.h"
#include "norm_nests.h"
#include "shared_memory.h"
#include "team.cuh"
#include "vector.cuh"

enum { X, DX, SCALE, DSCALE, DSHIFT, MEAN, RSTD, TENSORS };
enum { WORKERS = 256, WARPS = WORKERS / 32, THREADS = WORKERS + 64 };   /* WORKERS measure and write: a warp fetches, one hears */
enum { SLOTS = 4, TURNS = 2, PARTS = 8, LANES = 8, LINE = 8 * LANES };  /* at most; LINE: elements of one */

struct belts {
  void    *p[TENSORS];
  uint32_t dtype[TENSORS];
  int64_t  line_step, image_step;         /* of dx, in elements */
  int64_t  means_step[2][2];              /* of mean and rstd, from image to image, from group to group */
  int32_t  items, bands;                  /* bands: of an image */
  int32_t  lines, share;                  /* of an image, of one block's part of it */
  int32_t  lanes, groups, run;            /* of a band: words of a line; groups, elements of a group in a line: powers of 2 */
  int32_t  box, boxes, slots;             /* lines that are fetched at once, such boxes of a share; shares kept */
  cuda_team team;
  float    inverse;                       /* of a group's length */
  bool     centred;
  float2  *sums;                          /* of dy and dy h: [items, parts, elements of a band's line]; NULL: not wanted */
};

/* What passes between a block's warps; items take turns: who measures an item has written the last but one, so two suffice. */
struct alignas(128) news {
  float2   of_warp[TURNS][WARPS][LINE];   /* sums of dy and dy h */
  float2   heard[PARTS * LINE];           /* [parts, groups]: sums of g and g h */
  float2   known[TURNS][LINE];            /* of a group: means of g and g h */
  uint64_t full[SLOTS], empty[SLOTS], ready[TURNS];
  bool     last;
};

struct block {
  const belts &a;
  const team_member &team;
  news    &n;
  uint4   *words;                         /* [slots, x and dy, held] */
  int32_t  turns, held, mine;             /* words of a share as it is kept; of those the block's own */

  __device__ __forceinline__ int item(int i) const { return team.team + i * a.team.teams; }
  __device__ __forceinline__ int image(int i) const { return item(i) / a.bands; }
  __device__ __forceinline__ int band(int i) const { return item(i) % a.bands; }
  __device__ __forceinline__ uint32_t full(int i) const { return shared_address(n.full + i % a.slots); }
  __device__ __forceinline__ uint32_t empty(int i) const { return shared_address(n.empty + i % a.slots); }
  __device__ __forceinline__ uint32_t ready(int i) const { return shared_address(n.ready + i % TURNS); }
  __device__ __forceinline__ int64_t of_means(int t, int i, int g) const
  {
    return image(i) * a.means_step[t - MEAN][0] + (int64_t)(band(i) * a.groups + g) * a.means_step[t - MEAN][1];
  }
  __device__ __forceinline__ void wait_full(int i) const { barrier_wait(full(i), i / a.slots & 1); }
  __device__ __forceinline__ void wait_ready(int i) const { barrier_wait(ready(i), i / TURNS & 1); }
  __device__ __forceinline__ void leave_slot(int i) const
  {
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(empty(i));
  }
};

/* ---- the warps that fetch and hear -------------------------------------------------------------------------------------- */

template <int whole> __device__ __forceinline__ void fetch(const block &b, const CUtensorMap *xs, const CUtensorMap *dys)
{
  const belts &a = b.a;
  for (int i = 0; i < b.turns && threadIdx.x % 32 == 0; i++) {
    const int image = b.image(i), channel = b.band(i) * a.lanes * vector_per_16<whole>, slot = i % a.slots;
    uint4 *const x = b.words + slot * 2 * b.held;
    barrier_wait(b.empty(i), (i / a.slots & 1) ^ 1);
    barrier_expect(b.full(i), b.held * 32);
    for (int k = 0; k < a.boxes; k++) {
      const int line = b.team.rank * a.share + k * a.box, at = k * a.box * a.lanes;
      tma_load(shared_address(x + at), xs, channel, line, image, 0, b.full(i));
      tma_load(shared_address(x + b.held + at), dys, channel, line, image, 0, b.full(i));
    }
  }
  __syncwarp();
}

/* Of group g, from what all parts told of it, n.heard. One thread. */
__device__ __forceinline__ void conclude(const block &b, int i, int g)
{
  const belts &a = b.a;
  float2 sum = make_float2(0, 0);
  for (int p = 0; p < a.team.parts; p++) sum.x += b.n.heard[p * a.groups + g].x, sum.y += b.n.heard[p * a.groups + g].y;
  b.n.known[i % TURNS][g] = make_float2(a.centred ? sum.x * a.inverse : 0, sum.y * a.inverse);
}

/* One thread has measured group g. Who has no team needs no hearer. */
__device__ __forceinline__ void tell(const block &b, int i, int g, float2 v)
{
  if (b.a.team.parts > 1) {
    b.team.tell(i, g, v);
    return;
  }
  b.n.heard[g] = v;
  conclude(b, i, g);
  barrier_arrive(b.ready(i));
}

__device__ __forceinline__ void hear(const block &b)
{
  const belts &a = b.a;
  const int lane = threadIdx.x % 32;
  for (int i = 0; i < b.turns && a.team.parts > 1; i++) {
    for (int k = lane; k < a.team.parts * a.groups; k += 32) b.n.heard[k] = b.team.hear(i, k);
    __syncwarp();
    for (int g = lane; g < a.groups; g += 32) conclude(b, i, g);
    barrier_arrive(b.ready(i));
    __syncwarp();
  }
}

/* ---- those who measure and write ---------------------------------------------------------------------------------------- */

/* Sums over a warp's lines: of the lanes that have the same words. */
template <int N> __device__ __forceinline__ void sum_lines(float (&s)[N], int lanes)
{
  for (int o = lanes; o < 32; o *= 2)
#pragma unroll
    for (int e = 0; e < N; e++) s[e] += __shfl_xor_sync(~0u, s[e], o);
}

/* Of an infinite scale the differences in dx are NaN. */
__device__ __forceinline__ float finite_or_nan(float x) { return fabsf(x) < INFINITY ? x : NAN; }

/* The warps' sums over an item's lines, dy and dy h of each element of a line: told of groups, kept for dscale and dshift. */
template <int whole> __device__ __forceinline__ void tell_sums(const block &b, int i)
{
  const belts &a = b.a;
  const int elements = a.lanes * vector_per_16<whole>;
  if (threadIdx.x >= (elements + 31) / 32 * 32) return;
  const bool there = (int)threadIdx.x < elements;
  const int c = there ? threadIdx.x : 0, g = c / a.run;
  float2 sum = make_float2(0, 0);
#pragma unroll
  for (int w = 0; w < WARPS; w++) sum.x += b.n.of_warp[i % TURNS][w][c].x, sum.y += b.n.of_warp[i % TURNS][w][c].y;
  if (there && a.sums) a.sums[((int64_t)b.item(i) * a.team.parts + b.team.rank) * elements + c] = sum;
  const float w = a.p[SCALE] ? finite_or_nan(element_load<float>(a.p[SCALE], b.band(i) * elements + c, dtype3(a.dtype[SCALE]))) : 1;
  sum.x *= w, sum.y *= w;
  for (int o = 1; o < a.run; o *= 2) sum.x += __shfl_xor_sync(~0u, sum.x, o), sum.y += __shfl_xor_sync(~0u, sum.y, o);
  if (there && c == g * a.run) tell(b, i, g, sum);
}

template <int N> struct group_means { float mean[N], rstd[N]; };

/* N: groups of a word, 1 or one for each element. */
template <int whole, int N> __device__ __forceinline__ void work(const block &b)
{
  constexpr int E = vector_per_16<whole>, SPAN = E / N, bytes = 16 / E;
  const belts &a = b.a;
  const int t = threadIdx.x, lane = t % a.lanes;
  const auto learn = [&](group_means<N> &m, int i) {
#pragma unroll
    for (int e = 0; e < N; e++) {
      const int g = (lane * E + e * SPAN) / a.run;
      m.mean[e] = i < b.turns && a.centred ? ((const float *)a.p[MEAN])[b.of_means(MEAN, i, g)] : 0;
      m.rstd[e] = i < b.turns ? ((const float *)a.p[RSTD])[b.of_means(RSTD, i, g)] : 0;
    }
  };
  const auto measure = [&](int i, const group_means<N> &m) {
    const uint4 *x = b.words + i % a.slots * 2 * b.held, *dy = x + b.held;
    float v[E], d[E], s1[E] = {}, s2[E] = {};
    b.wait_full(i);
#pragma unroll 2
    for (int at = t; at < b.mine; at += WORKERS) {
      vector_open<whole>(v, 0, x[at]);
      vector_open<whole>(d, 0, dy[at]);
#pragma unroll
      for (int e = 0; e < E; e++) s1[e] += d[e], s2[e] = fmaf(d[e], (v[e] - m.mean[e / SPAN]) * m.rstd[e / SPAN], s2[e]);
    }
    sum_lines(s1, a.lanes), sum_lines(s2, a.lanes);
    if (t % 32 < a.lanes)
#pragma unroll
      for (int e = 0; e < E; e++) b.n.of_warp[i % TURNS][t / 32][lane * E + e] = make_float2(s1[e], s2[e]);
    group_sync(1, WORKERS);
    tell_sums<whole>(b, i);
  };
  group_means<N> now, next, then;         /* of the item that is written, of those behind it: they come while others are measured */
  learn(now, 0), learn(next, 1);
  const int64_t step = WORKERS / a.lanes * a.line_step * bytes;
  if (b.turns > 0) measure(0, now);
#pragma unroll 1
  for (int i = 0; i < b.turns; i++) {
    learn(then, i + 2);
    if (i + 1 < b.turns) measure(i + 1, next);
    const uint4 *x = b.words + i % a.slots * 2 * b.held, *dy = x + b.held;
    char *dx = (char *)a.p[DX] + (b.image(i) * a.image_step + (b.team.rank * a.share + t / a.lanes) * a.line_step + (b.band(i) * a.lanes + lane) * E) * bytes;
    float v[E], d[E], scale[E], less[N], along[N];
    if (a.p[SCALE]) vector_load(scale, a.p[SCALE], dtype3(a.dtype[SCALE]), (b.band(i) * a.lanes + lane) * E, 1, E);
#pragma unroll
    for (int e = 0; e < E; e++) scale[e] = a.p[SCALE] ? finite_or_nan(scale[e]) : 1;
    b.wait_ready(i);
#pragma unroll
    for (int e = 0; e < N; e++) {
      const float2 s = b.n.known[i % TURNS][(lane * E + e * SPAN) / a.run];
      less[e] = s.x, along[e] = s.y;
    }
#pragma unroll 2
    for (int at = t; at < b.mine; at += WORKERS, dx += step) {
      vector_open<whole>(v, 0, x[at]);
      vector_open<whole>(d, 0, dy[at]);
#pragma unroll
      for (int e = 0; e < E; e++) {
        const float h = (v[e] - now.mean[e / SPAN]) * now.rstd[e / SPAN];
        v[e] = now.rstd[e / SPAN] * (d[e] * scale[e] - less[e / SPAN] - h * along[e / SPAN]);
      }
      *(uint4 *)dx = vector_close<whole>(v, 0);
    }
    b.leave_slot(i);
    now = next, next = then;
  }
}

template <int whole, int N> __global__ void __launch_bounds__(THREADS, 1)
norm_belt(const __grid_constant__ belts a, const __grid_constant__ CUtensorMap xs, const __grid_constant__ CUtensorMap dys)
{
  extern __shared__ __align__(128) uint4 words[];
  __shared__ news n;
  const team_member team(a.team, nullptr);
  const int warp = threadIdx.x / 32;
  const block b = { a, team, n, words, (a.items - team.team + a.team.teams - 1) / a.team.teams, a.box * a.boxes * a.lanes,
                    min(a.share, a.lines - team.rank * a.share) * a.lanes };
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.slots; i++) barrier_init(b.full(i), 1), barrier_init(b.empty(i), WARPS);
    for (int i = 0; i < TURNS; i++) barrier_init(b.ready(i), a.team.parts > 1 ? 32 : a.groups);
    barrier_init_fence();
  }
  __syncthreads();
  if (warp == WARPS) fetch<whole>(b, &xs, &dys);
  else if (warp > WARPS) hear(b);
  else work<whole, N>(b);
  team.leave(&n.last);
}

/* ---- what it takes ---------------------------------------------------------------------------------------------------- */

struct state {
  belts    a;
  CUtensorMap x_map, dy_map;              /* aligned to 64 bytes, as all of the state */
  const cuda_driver *driver;
  int64_t  x_line_step, x_image_step, images, channels;
  int32_t  number[TENSORS], dy;           /* values of the request; -1: absent */
  const void *kernel;
  uint32_t shared;
};

static const char *read_layout(const qn_request *r, state *s)
{
  belts &a = s->a;
  const qn_value *x = &r->value[s->number[X]], *dx = &r->value[s->number[DX]], *dy = &r->value[s->dy];
  const int64_t E = 16 / qn_kit_bytes(x->dtype);
  const cuda_norm_nests nests = cuda_norm_nests_of(r, s->number, DSHIFT + 1, TENSORS);
  const qn_nest &walked = nests.walked, &outer = nests.outer;
  const int last = walked.rank - 1, g = outer.rank - 1;
  if (last < 0 || last > 1 || g < 0 || g > 1) return "images of lines at one step, of which each group has a run";
  const int64_t run = last == 1 ? walked.dim[1] : 1, line = run * outer.dim[g];
  if ((run & (run - 1)) || run > 32) return "runs of 1, 2, 4, 8, 16 or 32 elements";
  for (int t = X; t <= DX; t++) {
    bool ok = outer.stride[t][g] == run && walked.stride[t][0] >= line && walked.stride[t][0] % E == 0 && (last == 0 || walked.stride[t][1] == 1);
    if (g > 0) ok &= outer.stride[t][0] > 0 && outer.stride[t][0] % E == 0;
    if (!ok) return "a line has a run of each of its groups, side by side, in whole words";
  }
  for (int t = SCALE; t <= DSHIFT; t++) {
    if (s->number[t] < 0) continue;
    if (walked.stride[t][0] || (last == 1 && walked.stride[t][1] != 1) || outer.stride[t][g] != run || (g > 0 && outer.stride[t][0]))
      return "parameters have an element for each of a line's";
    if (a.dtype[t] != QN_F32 && a.dtype[t] != QN_F16 && a.dtype[t] != QN_BF16) return "parameters of f16, bf16 or f32";
  }
  if (dx->dtype != x->dtype || dy->dtype != x->dtype || !qn_same_layout(dy, x) || x->align < 16 || dx->align < 16 || dy->align < 16)
    return "x, dy and dx of one dtype, aligned to 16 bytes; dy lies as x does";
  if (walked.dim[0] * walked.stride[DX][0] > INT32_MAX / 2 || nests.groups > INT32_MAX / PARTS) return "fewer than 2^30 elements in an image, and 2^28 groups";
  a.lines = (int32_t)walked.dim[0], a.run = (int32_t)run;
  a.line_step = walked.stride[DX][0], a.image_step = g > 0 ? outer.stride[DX][0] : 0;
  s->x_line_step = walked.stride[X][0], s->x_image_step = g > 0 ? outer.stride[X][0] : 0;
  s->images = g > 0 ? outer.dim[0] : 1, s->channels = line;
  for (int t = MEAN; t <= RSTD; t++) a.means_step[t - MEAN][0] = g > 0 ? outer.stride[t][0] : 0, a.means_step[t - MEAN][1] = outer.stride[t][g];
  a.inverse = 1 / (float)nests.length;
  return nullptr;
}

/* So many shares of an item by so many blocks, of lines of so many words. */
static bool share_out(state *s, const qn_device *device, int64_t E, int lanes, int slots, int parts)
{
  belts &a = s->a;
  if (s->channels % (lanes * E) || lanes * E % a.run || parts > device->units) return false;
  a.lanes = lanes, a.groups = (int32_t)(lanes * E) / a.run, a.slots = slots;
  a.share = (int32_t)qn_ceil_div(a.lines, parts);
  if ((parts - 1) * a.share >= a.lines) return false;     /* none is without lines */
  a.boxes = (int32_t)qn_ceil_div(a.share, 256), a.box = (int32_t)qn_round_up(qn_ceil_div(a.share, a.boxes), LANES / lanes);   /* of whole 128 bytes */
  const int64_t shared = (int64_t)slots * a.box * a.boxes * lanes * 32;
  if (shared > (int64_t)device->shared_per_block - (int64_t)sizeof(news)) return false;
  s->shared = (uint32_t)shared;
  a.bands = (int32_t)(s->channels / (lanes * E)), a.items = (int32_t)(s->images * a.bands);
  a.team.parts = parts, a.team.teams = (int32_t)qn_min_i64(a.items, device->units / parts);
  a.team.each = a.groups, a.team.turns = 2 * TURNS;
  return true;
}

/* The widest lines come first, then many shares, then few blocks. */
static bool choose(state *s, const qn_device *device, int64_t E)
{
  for (int lanes = LANES; lanes >= 2; lanes /= 2)
    for (int slots = SLOTS; slots >= 2; slots /= 2)
      for (int parts = 1; parts <= PARTS; parts *= 2)
        if (share_out(s, device, E, lanes, slots, parts)) return true;
  return false;
}

template <int whole> static const void *kernel_of(int run)
{
  constexpr int E = vector_per_16<whole>;
  return run >= E ? (const void *)norm_belt<whole, 1> : (const void *)norm_belt<whole, E>;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_norm_roles roles = qn_norm_roles_of(r->op[0].op);
  const int8_t role[TENSORS] = { roles.x, roles.dx, roles.scale, roles.dscale, roles.dshift, roles.mean, roles.rstd };
  if (!cuda_has_clusters(r->device)) return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  state s = {};
  belts &a = s.a;
  for (int t = 0; t < TENSORS; t++) {
    s.number[t] = qn_role_at(&r->op[0], role[t]);
    if (s.number[t] >= 0) a.dtype[t] = r->value[s.number[t]].dtype;
  }
  const uint32_t dtype = a.dtype[X];
  if (dtype != QN_F32 && dtype != QN_BF16 && dtype != QN_F16) return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", qn_kit_name(dtype));
  s.dy = qn_role_at(&r->op[0], roles.dy);
  const char *rule = read_layout(r, &s);
  if (rule) return qn_refuse(out, rule, "x", "", "%s", "another layout");
  const int64_t E = 16 / qn_kit_bytes(dtype);
  if (!choose(&s, r->device, E)) return qn_refuse(out, "lines in whole bands, two shares of which fit into a block's shared memory", "x", "", "%d lines", a.lines);
  if (s.number[DSCALE] >= 0 || s.number[DSHIFT] >= 0) out->workspace = (uint64_t)a.items * a.team.parts * a.lanes * E * sizeof(float2);
  out->counters = (uint64_t)cuda_team_counters(&a.team);
  a.centred = r->op[0].op == QN_OP_LAYER_NORM_BACKWARD;
  s.kernel = dtype == QN_F32 ? kernel_of<QN_F32>(a.run) : dtype == QN_BF16 ? kernel_of<QN_BF16>(a.run) : kernel_of<QN_F16>(a.run);
  /* Items that a block holds alone are faster in norm_bands, whose blocks are small. */
  const double item = (double)a.lines * a.lanes * 48, rate = a.team.parts > 1 ? 3500 : 2500;
  out->estimate = 8000 + (double)qn_ceil_div(a.items, a.team.teams) * item / a.team.parts * r->device->units / rate;
  return cuda_keep(out, &s, sizeof s);
}

/* ---- build, run ------------------------------------------------------------------------------------------------------- */

static qn_status build(const qn_request *, qn_prepared *p)
{
  state *s = (state *)p->state;
  const belts &a = s->a;
  const bool words = a.dtype[X] == QN_F32;
  const cuuint64_t size = words ? 4 : 2, extent[4] = { (cuuint64_t)s->channels, (cuuint64_t)a.lines, (cuuint64_t)s->images, 1 };
  const cuuint64_t lines = (cuuint64_t)s->x_line_step * size, images = s->images > 1 ? (cuuint64_t)s->x_image_step * size : lines * (cuuint64_t)a.lines;
  const cuuint64_t pitch[3] = { lines, images, images };
  const cuuint32_t box[4] = { (cuuint32_t)a.lanes * 16 / (cuuint32_t)size, (cuuint32_t)a.box, 1, 1 }, one[4] = { 1, 1, 1, 1 };
  qn_status status = cuda_driver_get(&s->driver);
  if (status) return status;
  /* some address that is aligned; run puts in the true ones */
  if (s->driver->tensor_map_tiled(&s->x_map, words ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 4, (void *)0x10000, extent, pitch, box, one,
                                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    return cuda_host->error(QN_INTERNAL, "cuda: norm_belt: the driver refused a tensor map");
  s->dy_map = s->x_map;
  return cuda_allow_shared(s->kernel);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  belts a = s->a;
  CUtensorMap x = s->x_map, dy = s->dy_map;
  for (int t = 0; t < TENSORS; t++) a.p[t] = s->number[t] < 0 ? nullptr : launch->ptr[s->number[t]];
  s->driver->tensor_map_address(&x, a.p[X]);
  s->driver->tensor_map_address(&dy, launch->ptr[s->dy]);
  a.team.told = launch->counters;
  a.sums = a.p[DSCALE] || a.p[DSHIFT] ? (float2 *)launch->workspace : nullptr;
  void *arguments[] = { &a, &x, &dy };
  const unsigned cluster = a.team.parts > 1 ? CUDA_TOGETHER : 1;
  const qn_status status = cuda_launch_clusters(s->kernel, (unsigned)(a.team.teams * a.team.parts), cluster, THREADS, s->shared, arguments, launch, "norm_belt");
  if (status || !a.sums) return status;
  const cuda_groups_sums sums = { a.sums, a.p[DSCALE], a.p[DSHIFT], { a.dtype[DSCALE], a.dtype[DSHIFT] },
                                  s->images, a.bands, a.team.parts, a.groups * a.run };
  cuda_norm_groups_add(&sums, launch->stream);
  return cuda_check(cudaGetLastError(), "norm_belt");
}

#define ROW(op) { "belt", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, nullptr, nullptr, prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM_BACKWARD), ROW(QN_OP_RMS_NORM_BACKWARD) };
const qn_engine_list cuda_norm_belt_list = { row, sizeof row / sizeof *row };
