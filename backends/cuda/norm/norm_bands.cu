/* norm_bands.cu -- layer_norm, rms_norm and batch_norm, and their gradients, f16, bf16 and f32, sm_80 and up, of groups that
 * have a run of elements in each of many lines: each element is read once and written once.
 *
 *   with h = (x - mean) rstd, g = dy scale:
 *   y = act(h scale + shift)
 *   dx = rstd (g - mean g - h mean(g h)), dscale = sum dy h, dshift = sum dy         rms_norm: mean and mean g are 0
 *
 * Group and instance norm, channels last: a line is a pixel. Batch norm, channels first: a line is an image, a run a channel's
 * plane. An item is a band: the runs of some neighbouring groups, in whole 16-byte words, in all lines of those groups. A block
 * or a cluster keeps it in shared memory between measuring and writing; blocks resident on one SM hide one another's latency. A
 * thread copies (cp.async) and later reads the same words, all at the same place of their lines, so that their groups and
 * parameters are found once.
 * Refused: bands that do not fit, other layouts. */
#include "norm_bands.cuh"
#include "norm_parameters.cuh"

enum { THREADS = 512 };

/* Exchange of each group's statistics between the blocks of a cluster: an mbarrier of each block counts the bytes. All threads
 * call, except tell. */
struct meeting {
  const bands &a;
  float4  *heard;                         /* [parts, groups] */
  uint32_t bar;

  /* Initialises the mbarrier; before the loads, which then hide the wait in ready(). */
  __device__ __forceinline__ void begin() const
  {
#if __CUDA_ARCH__ >= 900
    if (a.parts == 1) return;
    if (threadIdx.x == 0) {
      barrier_init(bar, 1);
      barrier_init_fence();
      barrier_expect(bar, a.parts * a.groups * (int)sizeof(float4));
    }
    __syncwarp();
    cluster_arrive_relaxed();
#endif
  }
  __device__ __forceinline__ void ready() const        /* all blocks' mbarriers are initialised */
  {
#if __CUDA_ARCH__ >= 900
    if (a.parts > 1) cluster_wait();
#endif
  }
  /* Sends the block's values of group g to all blocks; `width` neighbouring threads, a power of 2. */
  __device__ __forceinline__ void tell(int rank, int g, float x, float y, float z, int width) const
  {
    const int first = threadIdx.x & (width - 1);
    if (a.parts == 1 && first == 0) heard[g] = make_float4(x, y, z, 0);
#if __CUDA_ARCH__ >= 900
    for (int to = first; a.parts > 1 && to < a.parts; to += width)
      cluster_send(cluster_address(shared_address(heard + rank * a.groups + g), to), x, y, z, 0, cluster_address(bar, to));
#endif
  }
  __device__ __forceinline__ void wait() const
  {
    __syncwarp();
#if __CUDA_ARCH__ >= 900
    if (a.parts > 1) barrier_wait(bar, 0);
#endif
  }
};

/* Shared memory behind the words. */
struct board {
  float  *scale, *shift;                  /* of each element of a line */
  float2 *known;                          /* of each group: mean, rstd */
  float4 *heard;                          /* [parts, groups] */
  float2 *told;                           /* [tellers, lanes, folds]: mean, squares */
  float  *count;                          /* [tellers], of lines */

  static __host__ __device__ int64_t bytes(const bands &a, int threads, int E)
  {
    return 8 * ((int64_t)a.lanes * E + a.groups) + (a.parts > 1 ? 16 * a.parts * a.groups : 0) +
           a.tellers(threads) * ((int64_t)a.lanes * a.folds * 8 + 4);
  }
  __device__ board(const bands &a, uint4 *words, int E)
  {
    scale = (float *)(words + a.share * a.lanes), shift = scale + a.lanes * E;
    heard = (float4 *)(shift + a.lanes * E);
    known = (float2 *)(heard + (a.parts > 1 ? a.parts * a.groups : 0)), told = known + a.groups;
    count = (float *)(told + a.tellers(blockDim.x) * a.lanes * a.folds);
  }
};

/* one: a word lies within a group. */
template <int whole, bool one> __global__ void __launch_bounds__(THREADS, 2) norm_bands(const __grid_constant__ bands a)
{
  constexpr int E = vector_per_16<whole>, N = one ? 1 : E;
  extern __shared__ uint4 words[];
  __shared__ uint64_t all_heard;
  const board b(a, words, E);
  const meeting others = { a, b.heard, shared_address(&all_heard) };
  others.begin();
  const mine m(a);
  const int t = threadIdx.x, of_warp = t % 32, half = (m.count + 1) / 2;

  const char *x = (const char *)a.p[X] + m.start<whole>(a, X);
  const int64_t x_step = m.step<whole>(a, X), y_step = m.step<whole>(a, Y);
  auto fetch = [&](int k, int to) {
#pragma unroll 4
    for (; k < to; k++, x += x_step) copy_async<16>(shared_address(words + k * m.active + t), x, 16);
    copy_async_commit();
  };
  fetch(0, half);                         /* measured while the other half is in flight */
  fetch(half, m.count);
  const int64_t scales = a.place(m.item, SCALE), shifts = a.place(m.item, SHIFT);
  for (int i = t; i < a.lanes * E; i += blockDim.x)
    b.scale[i] = a.parameter(SCALE, scales, i, 1), b.shift[i] = a.parameter(SHIFT, shifts, i, 0);

  float from[N] = {}, s1[N] = {}, s2[N] = {};
  auto measure = [&](int k, int to) {
#pragma unroll 4
    for (; k < to; k++) add_word<whole, true>(words[k * m.active + t], from, s1, s2);
  };
  copy_async_wait<1>();
  if (a.centred) take_from<whole>(a, m, words, half, from);
  measure(0, half);
  copy_async_wait<0>();
  measure(half, m.count);
  tell_moments<whole>(a, m, b.told, b.count, from, s1, s2);
  __syncthreads();

  others.ready();
  const int width = 1 << a.join_bits, first = t >> a.join_bits, apart = blockDim.x >> a.join_bits;
  const int warp_first = of_warp >> a.join_bits;      /* warps stay converged: shuffles follow */
  for (int g = first; g - warp_first < a.groups && a.parts > 1; g += apart) {
    const moments ours = gather<E>(a, b.told, b.count, min(g, a.groups - 1));
    if (g < a.groups) others.tell(m.rank, g, ours.mean, ours.squares, ours.count, width);
  }
  char *const y = (char *)a.p[Y] + m.start<whole>(a, Y);
  others.wait();
  for (int g = first; g - warp_first < a.groups; g += apart) {
    const int here = min(g, a.groups - 1);
    const moments all = a.parts == 1 ? gather<E>(a, b.told, b.count, here)
                                     : lanes_join_all(width, a.parts, [&](int i) { return moments::unpack(b.heard[i * a.groups + here]); });
    if ((t & (width - 1)) || g >= a.groups) continue;
    const far_statistics of = a.statistics(m.item, g, all);
    b.known[g] = make_float2(of.mean, of.rstd);
    if (m.rank == 0) a.leave(m.item, g, of);
  }
  __syncthreads();
  if (!m.count) return;

  float v[E], mean[N], rstd[N], scale[E], shift[E];
#pragma unroll
  for (int e = 0; e < N; e++) {
    const float2 s = b.known[cuda_quotient(m.lane * E + e, a.by_run)];
    mean[e] = s.x, rstd[e] = s.y;
  }
  const float unit = far_unit(mean, rstd);
#pragma unroll
  for (int e = 0; e < E; e++) scale[e] = b.scale[m.lane * E + e], shift[e] = b.shift[m.lane * E + e];
  with_activation(a.act, [&](auto op) {
    char *to = y;
    const uint4 *from_word = words + t;
#pragma unroll 2
    for (int k = 0; k < m.count; k++, to += y_step, from_word += m.active) {
      vector_open<whole>(v, 0, *from_word);
#pragma unroll
      for (int e = 0; e < E; e++) v[e] = fmaf(far_normalized(v[e], unit, mean[e % N], rstd[e % N]), scale[e], shift[e]);
      activate<whole != QN_F32, decltype(op)::value>(a.act.beta, v);
      *(uint4 *)to = vector_close<whole>(v, 0);
    }
  });
}

/* ---- the gradient ----------------------------------------------------------------------------------------------------- */

/* Shared memory behind the words of x and of dy. */
struct gradient_board {
  float  *mean, *rstd, *scale, *less, *along;     /* of each element of a line; less, along: means of g and g h */
  float4 *heard;                          /* [parts, groups]: sums of dy and dy h; of g and g h if `spread` */
  float2 *told;                           /* [tellers, elements of a line]: sums of dy and dy h */

  static __host__ __device__ int64_t bytes(const bands &a, int threads, int E)
  {
    return (20 + 8 * (int64_t)a.tellers(threads)) * a.lanes * E + 16 * a.parts * a.groups;
  }
  __device__ gradient_board(const bands &a, uint4 *words, int E)
  {
    const int n = a.lanes * E;
    heard = (float4 *)(words + 2 * a.share * a.lanes), told = (float2 *)(heard + a.parts * a.groups);
    mean = (float *)(told + a.tellers(blockDim.x) * n), rstd = mean + n, scale = rstd + n, less = scale + n, along = less + n;
  }
};

/* one: a word lies within a group. */
template <int whole, bool one>
__global__ void __launch_bounds__(THREADS, one ? 2 : 1) norm_bands_gradient(const __grid_constant__ bands a)
{
  constexpr int E = vector_per_16<whole>, N = one ? 1 : E;
  extern __shared__ uint4 words[];
  __shared__ uint64_t all_heard;
  const gradient_board b(a, words, E);
  const meeting others = { a, b.heard, shared_address(&all_heard) };
  others.begin();
  const mine m(a);
  uint4 *dys = words + a.share * a.lanes;
  const int t = threadIdx.x, warp = t / 32, warps = blockDim.x / 32, of_warp = t % 32;
  const int line_elements = a.lanes * E, tellers = a.tellers(blockDim.x);
  const char *x = (const char *)a.p[X] + m.start<whole>(a, X), *dy = (const char *)a.p[DY] + m.start<whole>(a, X);
  const int64_t step = m.step<whole>(a, X), dx_step = m.step<whole>(a, Y);
#pragma unroll 4
  for (int k = 0; k < m.count; k++, x += step, dy += step) {
    copy_async<16>(shared_address(words + k * m.active + t), x, 16);
    copy_async<16>(shared_address(dys + k * m.active + t), dy, 16);
  }
  copy_async_commit();
  const int64_t scales = a.place(m.item, SCALE);
  for (int i = t; i < line_elements; i += blockDim.x) {
    const int g = cuda_quotient(i, a.by_run);
    const float scale = a.parameter(SCALE, scales, i, 1);
    b.mean[i] = a.centred ? a.get(MEAN, m.item, g) : 0, b.rstd[i] = a.get(RSTD, m.item, g);
    b.scale[i] = fabsf(scale) < INFINITY ? scale : NAN;     /* with an infinite scale g - mean g is NaN, so dx is */
  }
  __syncthreads();
  float v[E], d[E], mean[N], rstd[N], s1[E] = {}, s2[E] = {};
  if (m.count)
#pragma unroll
    for (int e = 0; e < N; e++) mean[e] = b.mean[m.lane * E + e], rstd[e] = b.rstd[m.lane * E + e];
  copy_async_wait<0>();
#pragma unroll 2
  for (int k = 0; k < m.count; k++) {
    vector_open<whole>(v, 0, words[k * m.active + t]);
    vector_open<whole>(d, 0, dys[k * m.active + t]);
#pragma unroll
    for (int e = 0; e < E; e++) s1[e] += d[e], s2[e] = fmaf(d[e], (v[e] - mean[e % N]) * rstd[e % N], s2[e]);
  }
  add_lines(a, s1, s2);
  if (m.tells(a))
#pragma unroll
    for (int e = 0; e < E; e++) b.told[m.teller(a) * line_elements + m.lane * E + e] = make_float2(s1[e], s2[e]);
  __syncthreads();

  others.ready();
  for (int g = warp; g < a.groups; g += warps) {
    float sum = 0, along = 0;
    for (int i = of_warp; i < tellers * a.run; i += 32) {
      const int teller = cuda_quotient(i, a.by_run), p = g * a.run + i - teller * a.run;
      const float2 q = b.told[teller * line_elements + p];
      const float w = a.spread ? b.scale[p] : 1;
      sum += w * q.x, along += w * q.y;
    }
    others.tell(m.rank, g, warp_sum(sum), warp_sum(along), 0, 32);
  }
  for (int p = t; a.sums && p < line_elements; p += blockDim.x) {
    float2 sum = make_float2(0, 0);
    for (int i = 0; i < tellers; i++) sum.x += b.told[i * line_elements + p].x, sum.y += b.told[i * line_elements + p].y;
    a.sums[((int64_t)m.item * a.parts + m.rank) * line_elements + p] = sum;
  }
  others.wait();
  for (int g = warp; g < a.groups; g += warps) {
    float sum = 0, along = 0;
    for (int i = 0; i < a.parts; i++) sum += b.heard[i * a.groups + g].x, along += b.heard[i * a.groups + g].y;
    if (!a.each && m.rank == 0 && of_warp == 0) {
      if (a.p[DSCALE]) element_store(a.p[DSCALE], a.place(m.item, DSCALE) + g * a.group_step[DSCALE], dtype3(a.dtype[DSCALE]), along);
      if (a.p[DSHIFT]) element_store(a.p[DSHIFT], a.place(m.item, DSHIFT) + g * a.group_step[DSHIFT], dtype3(a.dtype[DSHIFT]), sum);
    }
    const float w = a.spread ? 1 : b.scale[g * a.run];    /* applied last: a subnormal scale times inverse would lose its digits */
    sum = a.centred ? sum * a.inverse * w : 0, along = along * a.inverse * w;
    for (int i = g * a.run + of_warp; i < (g + 1) * a.run; i += 32) b.less[i] = sum, b.along[i] = along;
  }
  __syncthreads();

  float scale[E], less[N], along[N];
  if (m.count) {
#pragma unroll
    for (int e = 0; e < N; e++) less[e] = b.less[m.lane * E + e], along[e] = b.along[m.lane * E + e];
#pragma unroll
    for (int e = 0; e < E; e++) scale[e] = b.scale[m.lane * E + e];
  }
  char *dx = (char *)a.p[Y] + m.start<whole>(a, Y);
#pragma unroll 2
  for (int k = 0; k < m.count; k++, dx += dx_step) {
    vector_open<whole>(v, 0, words[k * m.active + t]);
    vector_open<whole>(d, 0, dys[k * m.active + t]);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = rstd[e % N] * (d[e] * scale[e] - less[e % N] - (v[e] - mean[e % N]) * rstd[e % N] * along[e % N]);
    *(uint4 *)dx = vector_close<whole>(v, 0);
  }
}

/* ---- prepare, build, run ---------------------------------------------------------------------------------------------------- */

/* least: bytes of a line; resident: blocks on an SM; parts: most blocks of an item. In order of preference: small blocks
 * hide one another's latency best, where lines are wide enough and no cluster is needed; clusters of more than 8 blocks
 * are rarely scheduled. */
struct form { int64_t least; uint32_t threads; int64_t resident, parts; };
static const form forward_forms[] = {
  { 128, 128, 8, 1 }, { 128, 256, 4, 1 }, { 128, 512, 2, 1 }, { 128, 256, 4, 8 },
  { 128, 512, 2, 8 }, { 64, 512, 2, 8 },  { 32, 512, 2, 8 },  { 128, 512, 1, 1 },
};
static const form gradient_forms[] = {
  { 128, 128, 8, 1 }, { 128, 256, 4, 1 }, { 64, 128, 4, 8 }, { 64, 256, 4, 8 }, { 32, 256, 2, 1 },
};

template <size_t n> static const form *choose(bands_state *s, const qn_device *device, const form (&forms)[n])
{
  for (const form &f : forms)
    for (int64_t parts = 1; parts <= (cuda_has_clusters(device) ? f.parts : 1); parts += parts < 4 ? 1 : 2)
      if (bands_cut(s, device, bands_groups(s, f.least), parts, f.threads, f.resident, [&](const bands &a) {
            const int E = (int)(16 / s->of.bytes), threads = (int)f.threads;
            return s->of.backward ? gradient_board::bytes(a, threads, E) : board::bytes(a, threads, E);
          }))
        return &f;
  return nullptr;
}

template <int whole> static const void *kernel_of(bool backward, bool one)
{
  if (backward) return one ? (const void *)norm_bands_gradient<whole, true> : (const void *)norm_bands_gradient<whole, false>;
  return one ? (const void *)norm_bands<whole, true> : (const void *)norm_bands<whole, false>;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  bands_state s = {};
  bands &a = s.a;
  const norm_problem &p = s.of;
  const qn_status status = bands_read(r, &s, out);
  if (status) return status;
  const form *f = p.backward ? choose(&s, r->device, gradient_forms) : choose(&s, r->device, forward_forms);
  if (!f) return qn_refuse(out, "a band must fit into the shared memory of a block or of a cluster's", "x", "", "%d lines", a.lines);
  if (a.each && (p.number[DSCALE] >= 0 || p.number[DSHIFT] >= 0))
    out->workspace = (uint64_t)s.items * a.parts * a.lanes * (16 / p.bytes) * sizeof(float2);
  s.kernel = norm_of_dtype(p.dtype[X], kernel_of<QN_F32>, kernel_of<QN_BF16>, kernel_of<QN_F16>)(p.backward, a.folds == 1);
  /* Of planes in whole words clusters, and (unless x is beyond the L2 cache) single blocks of an SM, do not keep memory busy. */
  const bool poor = p.batch && a.run % (16 / p.bytes) == 0 &&
                    (a.parts > 1 || (f->resident == 1 && (uint64_t)(p.groups * p.length * p.bytes) <= r->device->cache));
  out->estimate = 3000 + p.moved / (poor ? 1500 : 3000);
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *p) { return cuda_allow_shared(((const bands_state *)p->state)->kernel); }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const bands_state *s = (const bands_state *)p->state;
  bands a = s->a;
  norm_pointers(a.p, s->of.number, launch);
  if (a.each && (a.p[DSCALE] || a.p[DSHIFT])) a.sums = (float2 *)launch->workspace;
  void *arguments[] = { &a };
  const qn_status status = cuda_launch_clusters(s->kernel, (unsigned)(s->items * a.parts), (unsigned)a.parts, s->threads, s->shared,
                                                arguments, launch, "norm_bands");
  if (status || !a.sums) return status;
  const int64_t sides = a.items.by[0].by; /* bands of a line */
  return item_sums_add({ a.sums, a.p[DSCALE], a.p[DSHIFT], { a.dtype[DSCALE], a.dtype[DSHIFT] }, s->items / sides, sides, a.parts,
                         a.groups * a.run }, launch);
}

#define ROW(op, traits) { "bands", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | traits, nullptr, nullptr, \
                          prepare, build, run, cuda_release }
static const qn_engine row[] = {
  ROW(QN_OP_LAYER_NORM, QN_TRAIT_BATCH_INVARIANT),
  ROW(QN_OP_LAYER_NORM_BACKWARD, QN_TRAIT_BATCH_INVARIANT),
  ROW(QN_OP_RMS_NORM, QN_TRAIT_BATCH_INVARIANT),
  ROW(QN_OP_RMS_NORM_BACKWARD, QN_TRAIT_BATCH_INVARIANT),
  ROW(QN_OP_BATCH_NORM, 0),
  ROW(QN_OP_BATCH_NORM_BACKWARD, 0),
};
CUDA_ENGINES(norm_bands) = { row, sizeof row / sizeof *row };
