/* norm_stream.cu -- batch_norm and its gradient, channels first, f16, bf16 and f32, sm_80 and up, where a few channels' planes
 * of all images fit into the shared memory of an SM: each element is read once and written once.
 *
 *   with h = (x - mean) rstd, g = dy scale:
 *   y = act(h scale + shift)
 *   dx = rstd (g - mean g - h mean(g h)), dscale = sum dy h, dshift = sum dy
 *
 * Blocks are persistent and take one band after another (norm_bands.cuh): a few channels of all images. A thread copies
 * (cp.async) and reads its own 16-byte words; when it reads a word for the last time, it starts the copy of the next band's
 * word into the same slot. So the next band is loaded while this one is written, and no barrier guards the buffer.
 * Refused: bands that do not fit (norm_bands has clusters for them), small planes, parameters that vary along a plane. */
#include "norm_bands.cuh"

enum { MOST_THREADS = 512, CHUNKS = 4 };  /* CHUNKS: commit groups of a thread's copies */

/* Waits for chunk c of a thread's words, and all before it. Later chunks, all committed by then, may be in flight. */
__device__ __forceinline__ void wait_for_chunk(int c)
{
  if (c == 0) copy_async_wait<CHUNKS - 1>();
  else if (c == 1) copy_async_wait<CHUNKS - 2>();
  else if (c == 2) copy_async_wait<CHUNKS - 3>();
  else copy_async_wait<0>();
}
/* f(k) for each word k of chunk c. */
template <int unroll, class F> __device__ __forceinline__ void over_chunk(const mine &m, int c, F f)
{
  const int size = (m.count + CHUNKS - 1) / CHUNKS, end = min((c + 1) * size, m.count);
#pragma unroll unroll
  for (int k = c * size; k < end; k++) f(k);
}

/* Further kernel arguments. step: bytes between a thread's words in x (and dy), in y; items: number of bands. */
struct course { int64_t step[2]; int32_t items; };

/* Shared memory behind the words. */
struct board {
  float4 *known;                          /* of each group; forward: mean, rstd, scale, shift; gradient: scale, means of g and g h */
  float2 *given;                          /* of each group; forward: scale, shift; gradient, two buffers: mean, rstd */
  float  *scale;                          /* gradient, two buffers */
  float2 *told;                           /* [tellers, lanes, folds]: mean, squares; or sums of dy and dy h */
  float  *count;                          /* [tellers], of lines */

  static __host__ __device__ int64_t bytes(const bands &a, int threads)
  {
    return 40 * (int64_t)a.groups + a.tellers(threads) * ((int64_t)a.lanes * a.folds * 8 + 4);
  }
  __device__ board(const bands &a, uint4 *behind)
  {
    known = (float4 *)behind, given = (float2 *)(known + a.groups), told = given + 2 * a.groups;
    count = (float *)(told + a.tellers(blockDim.x) * a.lanes * a.folds), scale = count + a.tellers(blockDim.x);
  }
};

/* The group of a word's first element; elements from number `here` on are of the next group. */
template <int E> __device__ __forceinline__ int first_group(const bands &a, int lane, int *here)
{
  const int g = (int)cuda_quotient(lane * E, a.by_run);
  *here = (g + 1) * a.run - lane * E;
  return g;
}

/* ---- forward ---------------------------------------------------------------------------------------------------------- */

/* one: a word lies within a group. */
template <int whole, bool one>
__global__ void __launch_bounds__(MOST_THREADS, one ? 2 : 1)
norm_stream(const __grid_constant__ bands a, const __grid_constant__ course s)
{
  constexpr int E = vector_per_16<whole>, N = one ? 1 : E;
  extern __shared__ uint4 words[];
  const board b(a, words + a.lines * a.lanes);
  mine m(a);
  const int t = threadIdx.x, of_warp = t % 32;
  int here;
  const int group = first_group<E>(a, m.lane, &here);

  const char *x = (const char *)a.p[X] + m.start<whole>(a, X);
  const auto fetch = [&](int k) {
    copy_async<16>(shared_address(words + k * m.active + t), x, 16);
    x += s.step[X];
  };
#pragma unroll 1
  for (int c = 0; c < CHUNKS; c++) {
    over_chunk<4>(m, c, fetch);
    copy_async_commit();
  }
  for (int next; m.item < s.items; m.item = next) {
    next = m.item + (int)gridDim.x;
    float2 given = make_float2(1, 0);
    if (t < a.groups)
      given = make_float2(a.parameter(SCALE, a.place(m.item, SCALE), t * a.run, 1),
                          a.parameter(SHIFT, a.place(m.item, SHIFT), t * a.run, 0));

    float from[N] = {}, s1[N] = {}, s2[N] = {};
#pragma unroll 1
    for (int c = 0; c < CHUNKS; c++) {
      wait_for_chunk(c);
      if (c == 0 && a.centred) take_from<whole>(a, m, words, (m.count + CHUNKS - 1) / CHUNKS, from);
      over_chunk<4>(m, c, [&](int k) { add_word<whole, true>(words[k * m.active + t], from, s1, s2); });
    }
    tell_moments<whole>(a, m, b.told, b.count, from, s1, s2);
    if (t < a.groups) b.given[t] = given;
    __syncthreads();

    const int width = 1 << a.join_bits, apart = blockDim.x >> a.join_bits;
    for (int g = t >> a.join_bits; g - (of_warp >> a.join_bits) < a.groups; g += apart) {      /* warps stay converged: shuffles follow */
      const moments all = gather<E>(a, b.told, b.count, min(g, a.groups - 1));
      if ((t & (width - 1)) || g >= a.groups) continue;
      const far_statistics of = a.statistics(m.item, g, all);
      b.known[g] = make_float4(of.mean, of.rstd, b.given[g].x, b.given[g].y);
      a.leave(m.item, g, of);
    }
    __syncthreads();

    float v[E], mean[N], rstd[N], scale[N], shift[N];
    if (m.count)
#pragma unroll
      for (int e = 0; e < N; e++) {
        const float4 of = b.known[group + (e >= here)];
        mean[e] = of.x, rstd[e] = of.y, scale[e] = of.z, shift[e] = of.w;
      }
    const float unit = far_unit(mean, rstd);
    char *y = (char *)a.p[Y] + m.start<whole>(a, Y);
    m.item = next;
    const bool more = next < s.items;
    x = (const char *)a.p[X] + (more ? m.start<whole>(a, X) : 0);
    with_activation(a.act, [&](auto op) {
#pragma unroll 1
      for (int c = 0; c < CHUNKS; c++) {
        over_chunk<2>(m, c, [&](int k) {
          vector_open<whole>(v, 0, words[k * m.active + t]);
          if (more) fetch(k);
#pragma unroll
          for (int e = 0; e < E; e++) v[e] = fmaf(far_normalized(v[e], unit, mean[e % N], rstd[e % N]), scale[e % N], shift[e % N]);
          activate<whole != QN_F32, decltype(op)::value>(a.act.beta, v);
          *(uint4 *)y = vector_close<whole>(v, 0);
          y += s.step[Y];
        });
        copy_async_commit();
      }
    });
  }
}

/* ---- the gradient ----------------------------------------------------------------------------------------------------- */

template <int whole, bool one>
__global__ void __launch_bounds__(MOST_THREADS, 1)
norm_stream_gradient(const __grid_constant__ bands a, const __grid_constant__ course s)
{
  constexpr int E = vector_per_16<whole>, N = one ? 1 : E;
  extern __shared__ uint4 words[];
  uint4 *const dys = words + a.lines * a.lanes;
  const board b(a, dys + a.lines * a.lanes);
  mine m(a);
  const int t = threadIdx.x, of_warp = t % 32;
  int here;
  const int group = first_group<E>(a, m.lane, &here);

  const char *x = (const char *)a.p[X] + m.start<whole>(a, X), *dy = (const char *)a.p[DY] + m.start<whole>(a, X);
  const auto fetch = [&](int k) {
    copy_async<16>(shared_address(words + k * m.active + t), x, 16);
    copy_async<16>(shared_address(dys + k * m.active + t), dy, 16);
    x += s.step[X], dy += s.step[X];
  };
  struct statistics { float mean, rstd, scale; } ahead;
  const auto look_up = [&](int item) {    /* loads the statistics of group t into registers */
    const float scale = a.parameter(SCALE, a.place(item, SCALE), t * a.run, 1);
    ahead.mean = a.centred ? a.get(MEAN, item, t) : 0, ahead.rstd = a.get(RSTD, item, t);
    ahead.scale = fabsf(scale) < INFINITY ? scale : NAN;        /* with an infinite scale g - mean g is NaN, so dx is */
  };
  const auto keep = [&](int turn) {
    b.given[turn * a.groups + t] = make_float2(ahead.mean, ahead.rstd), b.scale[turn * a.groups + t] = ahead.scale;
  };
#pragma unroll 1
  for (int c = 0; c < CHUNKS; c++) {
    over_chunk<4>(m, c, fetch);
    copy_async_commit();
  }
  if (t < a.groups) look_up(m.item), keep(0);
  __syncthreads();
  for (int turn = 0, next; m.item < s.items; m.item = next, turn ^= 1) {
    next = m.item + (int)gridDim.x;
    if (t < a.groups && next < s.items) look_up(next);
    const float2 *given = b.given + turn * a.groups;

    float v[E], d[E], mean[N], rstd[N], s1[E] = {}, s2[E] = {};
    if (m.count)
#pragma unroll
      for (int e = 0; e < N; e++) mean[e] = given[group + (e >= here)].x, rstd[e] = given[group + (e >= here)].y;
#pragma unroll 1
    for (int c = 0; c < CHUNKS; c++) {
      wait_for_chunk(c);
      over_chunk<2>(m, c, [&](int k) {
        vector_open<whole>(v, 0, words[k * m.active + t]);
        vector_open<whole>(d, 0, dys[k * m.active + t]);
#pragma unroll
        for (int e = 0; e < E; e++) s1[e] += d[e], s2[e] = fmaf(d[e], (v[e] - mean[e % N]) * rstd[e % N], s2[e]);
      });
    }
    add_lines(a, s1, s2);
    if (m.tells(a)) {
      float2 *const to = b.told + (m.teller(a) * a.lanes + m.lane) * a.folds;
      float2 sum[2] = {};
#pragma unroll
      for (int e = 0; e < E; e++) {
        const int f = !one && e >= here;
        sum[f].x += s1[e], sum[f].y += s2[e];
      }
      to[0] = sum[0];
      if (a.folds > 1) to[1] = sum[1];
    }
    __syncthreads();

    const int width = 1 << a.join_bits, apart = blockDim.x >> a.join_bits;
    for (int g = t >> a.join_bits; g - (of_warp >> a.join_bits) < a.groups; g += apart) {      /* warps stay converged: shuffles follow */
      const int begin = min(g, a.groups - 1) * a.run, first = begin / E, span = (begin + a.run - 1) / E - first + 1,
                all = a.tellers(blockDim.x) * span;
      float sum = 0, along = 0;
      for (int i = t & (width - 1); i < all; i += width) {
        const int teller = i / span, u = first + i - teller * span, of = teller * a.lanes + u;
        const float2 q = b.told[a.folds == 2 ? of * 2 + (u * E < begin) : of];
        sum += q.x, along += q.y;
      }
      sum = lanes_sum(sum, width), along = lanes_sum(along, width);
      if ((t & (width - 1)) || g >= a.groups) continue;
      if (a.p[DSCALE]) element_store(a.p[DSCALE], a.place(m.item, DSCALE) + g * a.group_step[DSCALE], dtype3(a.dtype[DSCALE]), along);
      if (a.p[DSHIFT]) element_store(a.p[DSHIFT], a.place(m.item, DSHIFT) + g * a.group_step[DSHIFT], dtype3(a.dtype[DSHIFT]), sum);
      const float scale = b.scale[turn * a.groups + g];         /* applied last: a subnormal scale times inverse would lose its digits */
      b.known[g] = make_float4(scale, a.centred ? sum * a.inverse * scale : 0, along * a.inverse * scale, 0);
    }
    if (t < a.groups && next < s.items) keep(turn ^ 1);
    __syncthreads();

    float scale[N], less[N], along[N];
    if (m.count)
#pragma unroll
      for (int e = 0; e < N; e++) {
        const float4 of = b.known[group + (e >= here)];
        scale[e] = of.x, less[e] = of.y, along[e] = of.z;
      }
    char *dx = (char *)a.p[Y] + m.start<whole>(a, Y);
    m.item = next;
    const bool more = next < s.items;
    const int64_t start = more ? m.start<whole>(a, X) : 0;
    x = (const char *)a.p[X] + start, dy = (const char *)a.p[DY] + start;
#pragma unroll 1
    for (int c = 0; c < CHUNKS; c++) {
      over_chunk<2>(m, c, [&](int k) {
        vector_open<whole>(v, 0, words[k * m.active + t]);
        vector_open<whole>(d, 0, dys[k * m.active + t]);
        if (more) fetch(k);
#pragma unroll
        for (int e = 0; e < E; e++)
          v[e] = rstd[e % N] * (d[e] * scale[e % N] - less[e % N] - (v[e] - mean[e % N]) * rstd[e % N] * along[e % N]);
        *(uint4 *)dx = vector_close<whole>(v, 0);
        dx += s.step[Y];
      });
      copy_async_commit();
    }
  }
}

/* ---- prepare ---------------------------------------------------------------------------------------------------------- */

/* Threads of a block and such blocks on an SM, as registers allow: the first two need a word within a group, forward. */
struct form { uint32_t threads; int64_t resident; };
static const form forms[] = { { 256, 4 }, { 512, 2 }, { 256, 2 }, { 512, 1 } };

template <int whole> static const void *kernel_of(bool backward, bool one)
{
  if (backward) return one ? (const void *)norm_stream_gradient<whole, true> : (const void *)norm_stream_gradient<whole, false>;
  return one ? (const void *)norm_stream<whole, true> : (const void *)norm_stream<whole, false>;
}

struct state { bands_state s; course of; uint32_t blocks; };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state all = {};
  bands_state &s = all.s;
  bands &a = s.a;
  const norm_problem &p = s.of;
  const qn_status status = bands_read(r, &s, out);
  if (status) return status;
  if (a.folds > 2 || a.spread || (p.backward && a.each))
    return qn_refuse(out, "planes of a word or more, each with its own parameters, one of each", "x", "", "%s", "others");
  const form *found = nullptr;            /* bands of the fewest channels that give a line whole words and, if possible, `least` bytes */
  for (size_t f = !p.backward && a.folds == 1 ? 0 : 2; f < sizeof forms / sizeof *forms && !found; f++)
    for (int64_t least = 512; least >= 128 && !found; least /= 2) {
      const int64_t groups = bands_groups(&s, least);
      if (groups <= forms[f].threads && bands_cut(&s, r->device, groups, 1, forms[f].threads, forms[f].resident,
                                                  [&](const bands &of) { return board::bytes(of, (int)forms[f].threads); }))
        found = &forms[f];
    }
  if (!found)
    return qn_refuse(out, "some planes of all images must fit into the shared memory of a block", "x", "", "%d images of %d elements",
                     a.lines, a.run);
  const int64_t places = r->device->units * found->resident, bytes = (int64_t)a.lines * a.lanes * (p.backward ? 48 : 32);
  all.blocks = (uint32_t)qn_min_i64(s.items, places);
  all.of.items = (int32_t)s.items;
  for (int t = X; t <= Y; t++) all.of.step[t] = a.rows * a.line_step[t] * p.bytes;
  s.kernel = norm_of_dtype(p.dtype[X], kernel_of<QN_F32>, kernel_of<QN_BF16>, kernel_of<QN_F16>)(p.backward, a.folds == 1);
  out->estimate = 3500 + (double)qn_ceil_div(s.items, places) * (double)(found->resident * bytes * r->device->units) / 3700;
  return cuda_keep(out, &all, sizeof all);
}

/* ---- build, run ------------------------------------------------------------------------------------------------------- */

static qn_status build(const qn_request *, qn_prepared *p) { return cuda_allow_shared(((const state *)p->state)->s.kernel); }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  bands a = s->s.a;
  course of = s->of;
  norm_pointers(a.p, s->s.of.number, launch);
  void *arguments[] = { &a, &of };
  return cuda_launch_clusters(s->s.kernel, s->blocks, 1, s->s.threads, s->s.shared, arguments, launch, "norm_stream");
}

#define ROW(op) { "stream", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_BATCH_NORM), ROW(QN_OP_BATCH_NORM_BACKWARD) };
CUDA_ENGINES(norm_stream) = { row, sizeof row / sizeof *row };
