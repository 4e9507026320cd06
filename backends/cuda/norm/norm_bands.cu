/* norm_bands.cu -- layer_norm, rms_norm and batch_norm, and their gradients, f16, bf16 and f32, sm_80 and up, of groups that
 * have a run of elements in each of many lines: each element is read once and written once.
 *
 * Group and instance norm, channels last: a line is a pixel. Batch norm, channels first: a line is an image, a run a channel's
 * plane. An item is a band: the runs of some neighbouring groups, in whole 16-byte words, in all lines of those groups, kept in shared
 * memory between measuring and writing. A thread copies (cp.async) and later reads the same words, all at the same place of their lines,
 * so that their groups and parameters are found once.
 * bands: a block or a cluster has one item; blocks resident on one SM hide one another's latency. stream: blocks are persistent and take
 * one item after another; when a thread reads a word for the last time, it starts the copy of the next item's word into the same slot, so
 * that one band is loaded while the last is written, and no barrier guards the buffer.
 * Refused: bands that do not fit, other layouts; stream: groups below a word, parameters that vary along a run. */
#include "norm_bands.cuh"

enum { THREADS = 512 };
template <bool stream> constexpr int chunks_of = stream ? 4 : 2;         /* commit groups of a thread's copies */

/* Exchange of each group's statistics between the blocks of a cluster: an mbarrier of each block counts the bytes. All threads
 * call, except publish. */
struct cluster_exchange {
  const bands &a;
  float4  *received;                      /* [parts, groups] */
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
  __device__ __forceinline__ void publish(int rank, int g, float x, float y, float z, int width) const
  {
    const int first = threadIdx.x & (width - 1);
    if (a.parts == 1 && first == 0) received[g] = make_float4(x, y, z, 0);
#if __CUDA_ARCH__ >= 900
    for (int to = first; a.parts > 1 && to < a.parts; to += width)
      cluster_send(cluster_address(shared_address(received + rank * a.groups + g), to), x, y, z, 0, cluster_address(bar, to));
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

/* Waits for chunk c of a thread's words, and all before it. Later chunks, all committed by then, may be in flight. */
template <bool stream> __device__ __forceinline__ void wait_for_chunk(int c)
{
  if (stream && c == 0) copy_async_wait<3>();
  else if (stream && c == 1) copy_async_wait<2>();
  else if (c == chunks_of<stream> - 2) copy_async_wait<1>();
  else copy_async_wait<0>();
}
/* f(k) for each word k of chunk c. */
template <bool stream, int unroll, class F> __device__ __forceinline__ void over_chunk(const mine &m, int c, F f)
{
  const int size = (m.count + chunks_of<stream> - 1) / chunks_of<stream>, end = min((c + 1) * size, m.count);
#pragma unroll unroll
  for (int k = c * size; k < end; k++) f(k);
}

/* ---- forward ---------------------------------------------------------------------------------------------------------- */

/* one: a word lies within a group. */
template <int whole, bool one, bool stream>
__global__ void __launch_bounds__(THREADS, one || !stream ? 2 : 1) norm_bands(const __grid_constant__ bands a)
{
  constexpr int E = vector_per_16<whole>, N = one ? 1 : E, P = stream ? N : E, CHUNKS = chunks_of<stream>;
  extern __shared__ uint4 words[];
  __shared__ uint64_t all_received;
  const block_memory b(a, words + a.share * a.lanes, stream, false, blockDim.x, E);
  const cluster_exchange others = { a, b.received, shared_address(&all_received) };
  if constexpr (!stream) others.begin();
  mine m(a);
  const int t = threadIdx.x, of_warp = t % 32;
  const char *x = (const char *)a.p[X] + m.start<whole>(a, X);
  const auto fetch = [&](int k) {
    copy_async<16>(shared_address(words + k * m.active + t), x, 16);
    x += a.step[X];
  };
#pragma unroll 1
  for (int c = 0; c < CHUNKS; c++) {      /* measured while the next are in flight */
    over_chunk<stream, 4>(m, c, fetch);
    copy_async_commit();
  }
  const auto parameters = [&](int i) {
    const int at = stream ? i * a.run : i;
    return make_float4(a.parameter_at(SCALE, m.item, at, 1), a.parameter_at(SHIFT, m.item, at, 0), 0, 0);
  };
  if constexpr (!stream) for (int i = t; i < b.entries; i += blockDim.x) b.given[i] = parameters(i);
#pragma unroll 1
  for (int turn = 0, next; m.item < a.count; m.item = next, turn ^= 1) {
    next = m.item + (int)gridDim.x;
    float4 *const given = b.given + (stream ? turn * b.entries : 0);
    float4 mine_given = make_float4(1, 0, 0, 0);
    if (stream && t < b.entries) mine_given = parameters(t);

    float from[N] = {}, s1[N] = {}, s2[N] = {};
#pragma unroll 1
    for (int c = 0; c < CHUNKS; c++) {
      wait_for_chunk<stream>(c);
      const int there = (m.count + CHUNKS - 1) / CHUNKS;
      if (c == 0 && a.centred)
        take_from<whole>(from, a.joins, m.lane,
                         [&](int k) { return m.count ? words[min(k, there - 1) * m.active + t] : make_uint4(0, 0, 0, 0); });
      over_chunk<stream, 4>(m, c, [&](int k) { add_word<whole, true>(words[k * m.active + t], from, s1, s2); });
    }
    store_moments<whole>(a, m, b.partial, b.count, from, s1, s2);
    if (stream && t < b.entries) given[t] = mine_given;
    __syncthreads();

    const int width = 1 << a.join_bits, first = t >> a.join_bits, apart = blockDim.x >> a.join_bits;
    const int warp_first = of_warp >> a.join_bits;    /* warps stay converged: shuffles follow */
    char *y = (char *)a.p[Y] + m.start<whole>(a, Y);
    if constexpr (!stream) {
      others.ready();
      for (int g = first; g - warp_first < a.groups && a.parts > 1; g += apart) {
        const moments ours = gather<E>(a, b.partial, b.count, min(g, a.groups - 1));
        if (g < a.groups) others.publish(m.rank, g, ours.mean, ours.squares, ours.count, width);
      }
      others.wait();
    }
    for (int g = first; g - warp_first < a.groups; g += apart) {
      const int here = min(g, a.groups - 1);
      const moments all = stream || a.parts == 1
                            ? gather<E>(a, b.partial, b.count, here)
                            : lanes_join_all(width, a.parts, [&](int i) { return moments::unpack(b.received[i * a.groups + here]); });
      if ((t & (width - 1)) || g >= a.groups) continue;
      const norm_statistics of = a.statistics(m.item, g, all);
      b.known[g] = make_float2(of.mean, of.rstd);
      if (m.rank == 0 && a.leaves) leave_statistics(a, of, [&](int t) { return a.of_group(t, m.item, g); });
    }
    __syncthreads();

    float v[E], mean[N], rstd[N], scale[P], shift[P];
    if (m.count) {
#pragma unroll
      for (int e = 0; e < N; e++) {
        const float2 s = b.known[cuda_quotient(m.lane * E + e, a.by_run)];
        mean[e] = s.x, rstd[e] = s.y;
      }
#pragma unroll
      for (int e = 0; e < P; e++) {
        const float4 w = given[stream ? cuda_quotient(m.lane * E + e, a.by_run) : m.lane * E + e];
        scale[e] = w.x, shift[e] = w.y;
      }
    }
    const float unit = far_unit(mean, rstd);
    bool more = false;
    if constexpr (stream) {
      m.item = next;
      more = next < a.count;
      x = (const char *)a.p[X] + (more ? m.start<whole>(a, X) : 0);
    }
    with_activation(a.act, [&](auto op) {
#pragma unroll 1
      for (int c = 0; c < CHUNKS; c++) {
        over_chunk<stream, 2>(m, c, [&](int k) {
          vector_open<whole>(v, 0, words[k * m.active + t]);
          if (stream && more) fetch(k);
#pragma unroll
          for (int e = 0; e < E; e++) v[e] = fmaf(far_normalized(v[e], unit, mean[e % N], rstd[e % N]), scale[e % P], shift[e % P]);
          activate<whole != QN_F32, decltype(op)::value>(a.act.beta, v);
          *(uint4 *)y = vector_close<whole>(v, 0);
          y += a.step[Y];
        });
        if constexpr (stream) copy_async_commit();
      }
    });
    if constexpr (!stream) break;
  }
}

/* ---- the gradient ----------------------------------------------------------------------------------------------------- */

template <int whole, bool one, bool stream>
__global__ void __launch_bounds__(THREADS, one && !stream ? 2 : 1) norm_bands_gradient(const __grid_constant__ bands a)
{
  constexpr int E = vector_per_16<whole>, N = one ? 1 : E, P = stream ? N : E, CHUNKS = chunks_of<stream>;
  extern __shared__ uint4 words[];
  __shared__ uint64_t all_received;
  uint4 *const dys = words + a.share * a.lanes;
  const block_memory b(a, dys + a.share * a.lanes, stream, true, blockDim.x, E);
  const cluster_exchange others = { a, b.received, shared_address(&all_received) };
  if constexpr (!stream) others.begin();
  mine m(a);
  const int t = threadIdx.x, of_warp = t % 32, sources = a.sources(blockDim.x), line_elements = a.lanes * E;
  /* the entry of element e of the thread's word */
  const auto entry = [&](int e) { return stream ? (int)cuda_quotient(m.lane * E + e, a.by_run) : m.lane * E + e; };

  const char *x = (const char *)a.p[X] + m.start<whole>(a, X), *dy = (const char *)a.p[DY] + m.start<whole>(a, X);
  const auto fetch = [&](int k) {
    copy_async<16>(shared_address(words + k * m.active + t), x, 16);
    copy_async<16>(shared_address(dys + k * m.active + t), dy, 16);
    x += a.step[X], dy += a.step[X];
  };
  const auto look_up = [&](int item, int i) {
    const int g = stream ? i : (int)cuda_quotient(i, a.by_run);
    const float mean = a.centred ? a.statistic(MEAN, a.of_group(MEAN, item, g)) : 0, rstd = a.statistic(RSTD, a.of_group(RSTD, item, g));
    return make_float4(mean, rstd, finite_or_nan(a.parameter_at(SCALE, item, stream ? i * a.run : i, 1)), 0);
  };
#pragma unroll 1
  for (int c = 0; c < CHUNKS; c++) {
    over_chunk<stream, 4>(m, c, fetch);
    copy_async_commit();
  }
  for (int i = t; i < b.entries; i += blockDim.x) b.given[i] = look_up(m.item, i);
  __syncthreads();
#pragma unroll 1
  for (int turn = 0, next; m.item < a.count; m.item = next, turn ^= 1) {
    next = m.item + (int)gridDim.x;
    const float4 *const given = b.given + (stream ? turn * b.entries : 0);
    const bool more = stream && next < a.count;
    float4 ahead;
    if (more && t < b.entries) ahead = look_up(next, t);

    float v[E], d[E], mean[N], rstd[N], s1[E] = {}, s2[E] = {};
    if (m.count)
#pragma unroll
      for (int e = 0; e < N; e++) mean[e] = given[entry(e)].x, rstd[e] = given[entry(e)].y;
#pragma unroll 1
    for (int c = 0; c < CHUNKS; c++) {
      wait_for_chunk<stream>(c);
      over_chunk<stream, 2>(m, c, [&](int k) {
        vector_open<whole>(v, 0, words[k * m.active + t]);
        vector_open<whole>(d, 0, dys[k * m.active + t]);
#pragma unroll
        for (int e = 0; e < E; e++) s1[e] += d[e], s2[e] = fmaf(d[e], (v[e] - mean[e % N]) * rstd[e % N], s2[e]);
      });
    }
    sum_lines(s1, a.joined()), sum_lines(s2, a.joined());
    if (m.stores(a)) {
      float2 *const to = b.partial + (m.source(a) * a.lanes + m.lane) * b.partial_each;
      if constexpr (!stream) {
#pragma unroll
        for (int e = 0; e < E; e++) to[e] = make_float2(s1[e], s2[e]);
      } else {
        const int here = (int)(cuda_quotient(m.lane * E, a.by_run) + 1) * a.run - m.lane * E;         /* elements of the first group */
        float2 sum[2] = {};
#pragma unroll
        for (int e = 0; e < E; e++) {
          const int f = !one && e >= here;
          sum[f].x += s1[e], sum[f].y += s2[e];
        }
        to[0] = sum[0];
        if (a.folds > 1) to[1] = sum[1];
      }
    }
    __syncthreads();

    const int width = 1 << a.join_bits, lane = t & (width - 1), first = t >> a.join_bits, apart = blockDim.x >> a.join_bits;
    const int warp_first = of_warp >> a.join_bits;    /* warps stay converged: shuffles follow */
    const auto finish = [&](int g, float sum, float along) {
      if (!a.each && m.rank == 0 && lane == 0) {
        if (a.p[DSCALE]) element_store(a.p[DSCALE], a.of_group(DSCALE, m.item, g), dtype3(a.dtype[DSCALE]), along);
        if (a.p[DSHIFT]) element_store(a.p[DSHIFT], a.of_group(DSHIFT, m.item, g), dtype3(a.dtype[DSHIFT]), sum);
      }
      /* applied last: a subnormal scale times inverse would lose its digits */
      const float w = a.spread ? 1 : given[stream ? g : g * a.run].z;
      const float2 of = make_float2(a.centred ? sum * a.inverse * w : 0, along * a.inverse * w);
      const int each = stream ? 1 : a.run;
      for (int i = lane; i < each; i += width) b.known[g * each + i] = of;
    };
    if constexpr (!stream) others.ready();
    for (int g = first; g - warp_first < a.groups; g += apart) {
      const int begin = min(g, a.groups - 1) * a.run;
      float sum = 0, along = 0;
      if constexpr (stream) {
        const int from = begin / E, span = (begin + a.run - 1) / E - from + 1;
        for (int i = lane; i < sources * span; i += width) {
          const int source = i / span, u = from + i - source * span, of = source * a.lanes + u;
          const float2 q = b.partial[a.folds == 2 ? of * 2 + (u * E < begin) : of];
          sum += q.x, along += q.y;
        }
      } else {
        for (int i = lane; i < sources * a.run; i += width) {
          const int source = cuda_quotient(i, a.by_run), p = begin + i - source * a.run;
          const float2 q = b.partial[source * line_elements + p];
          const float w = a.spread ? given[p].z : 1;
          sum += w * q.x, along += w * q.y;
        }
      }
      sum = lanes_sum(sum, width), along = lanes_sum(along, width);
      if (g >= a.groups) continue;
      if constexpr (!stream) others.publish(m.rank, g, sum, along, 0, width);
      else finish(g, sum, along);
    }
    if constexpr (!stream) {
      for (int p = t; a.sums && p < line_elements; p += blockDim.x) {
        float2 sum = make_float2(0, 0);
        for (int i = 0; i < sources; i++) sum.x += b.partial[i * line_elements + p].x, sum.y += b.partial[i * line_elements + p].y;
        a.sums[((int64_t)m.item * a.parts + m.rank) * line_elements + p] = sum;
      }
      others.wait();
      for (int g = first; g < a.groups; g += apart) {
        float sum = 0, along = 0;
        for (int i = 0; i < a.parts; i++) sum += b.received[i * a.groups + g].x, along += b.received[i * a.groups + g].y;
        finish(g, sum, along);
      }
    }
    if (more && t < b.entries) b.given[(turn ^ 1) * b.entries + t] = ahead;
    __syncthreads();

    float scale[P], less[N], along[N];
    if (m.count) {
#pragma unroll
      for (int e = 0; e < N; e++) less[e] = b.known[entry(e)].x, along[e] = b.known[entry(e)].y;
#pragma unroll
      for (int e = 0; e < P; e++) scale[e] = given[entry(e)].z;
    }
    char *dx = (char *)a.p[Y] + m.start<whole>(a, Y);
    if constexpr (stream) {
      m.item = next;
      const int64_t start = more ? m.start<whole>(a, X) : 0;
      x = (const char *)a.p[X] + start, dy = (const char *)a.p[DY] + start;
    }
#pragma unroll 1
    for (int c = 0; c < CHUNKS; c++) {
      over_chunk<stream, 2>(m, c, [&](int k) {
        vector_open<whole>(v, 0, words[k * m.active + t]);
        vector_open<whole>(d, 0, dys[k * m.active + t]);
        if (stream && more) fetch(k);
#pragma unroll
        for (int e = 0; e < E; e++)
          v[e] = rstd[e % N] * (d[e] * scale[e % P] - less[e % N] - (v[e] - mean[e % N]) * rstd[e % N] * along[e % N]);
        *(uint4 *)dx = vector_close<whole>(v, 0);
        dx += a.step[Y];
      });
      if constexpr (stream) copy_async_commit();
    }
    if constexpr (!stream) break;
  }
}

/* ---- prepare, rows ---------------------------------------------------------------------------------------------------------- */

/* least, wide: the fewest bytes of a line, tried from `wide` down; resident: blocks on an SM; parts: most blocks of an item. In order of
 * preference. bands: small blocks hide one another's latency best, where lines are wide enough and no cluster is needed; clusters of more
 * than 8 blocks are rarely scheduled. stream: the first two need a word within a group. */
struct form { int64_t wide, least; uint32_t threads; int64_t resident, parts; };
static const form bands_forward[] = {
  { 128, 128, 128, 8, 1 }, { 128, 128, 256, 4, 1 }, { 128, 128, 512, 2, 1 }, { 128, 128, 256, 4, 8 },
  { 128, 128, 512, 2, 8 }, { 64, 64, 512, 2, 8 },   { 32, 32, 512, 2, 8 },   { 128, 128, 512, 1, 1 },
};
static const form bands_gradient[] = {
  { 128, 128, 128, 8, 1 }, { 128, 128, 256, 4, 1 }, { 64, 64, 128, 4, 8 }, { 64, 64, 256, 4, 8 }, { 32, 32, 256, 2, 1 },
};
static const form stream_any[] = { { 512, 128, 256, 4, 1 }, { 512, 128, 512, 2, 1 }, { 512, 128, 256, 2, 1 }, { 512, 128, 512, 1, 1 } };

template <size_t n> static const form *choose(bands_state *s, const qn_device *device, bool stream, const form (&forms)[n])
{
  for (const form *f = forms + (stream && (s->of.backward || s->a.folds > 1) ? 2 : 0); f < forms + n; f++)
    for (int64_t least = f->wide; least >= f->least; least /= 2)
      for (int64_t parts = 1; parts <= (cuda_has_clusters(device) ? f->parts : 1); parts += parts < 4 ? 1 : 2) {
        const int64_t groups = bands_groups(s, least);
        if ((!stream || groups <= f->threads) && bands_cut(s, device, groups, parts, f->threads, f->resident, stream)) return f;
      }
  return nullptr;
}

template <bool stream> static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  bands_state s = {};
  bands &a = s.a;
  const norm_problem &p = s.of;
  const qn_status status = bands_read(r, &s, out);
  if (status) return status;
  if (stream && (a.folds > 2 || a.spread || (p.backward && a.each)))
    return qn_refuse(out, "planes of a word or more, each with its own parameters, one of each", "x", "", "%s", "others");
  const form *f = stream       ? choose(&s, r->device, true, stream_any)
                  : p.backward ? choose(&s, r->device, false, bands_gradient)
                               : choose(&s, r->device, false, bands_forward);
  if (!f) return qn_refuse(out, "a band must fit into the shared memory of a block, or of a cluster's", "x", "", "%d lines", a.lines);
  const int64_t sides = a.items.by[0].by; /* bands of a line */
  if (a.each) s.sum_items(s.items / sides, sides, a.parts, a.groups * a.run, out);
  s.kernel = cuda_by_dtype(p.dtype[X], [&](auto d) {
    return cuda_pick<false, true>(a.folds == 1, [&](auto one) {
      return p.backward ? (const void *)norm_bands_gradient<d(), one(), stream> : (const void *)norm_bands<d(), one(), stream>;
    });
  });
  a.count = (int32_t)s.items;
  for (int t = X; t <= Y; t++) a.step[t] = a.rows * a.line_step[t] * p.bytes;
  const int64_t places = r->device->units * f->resident;
  s.blocks = (uint32_t)(stream ? qn_min_i64(s.items, places) : s.items * a.parts), s.cluster = (uint32_t)a.parts;
  if (stream) {
    const double band = (double)a.lines * a.lanes * (p.backward ? 48 : 32);
    out->estimate = 3500 + (double)qn_ceil_div(s.items, places) * (double)places * band / 3700;
    return cuda_keep(out, &s, sizeof s);
  }
  /* Of planes in whole words clusters, and (unless x is beyond the L2 cache) single blocks of an SM, do not keep memory busy. */
  const bool poor = p.batch && a.run % (16 / p.bytes) == 0 &&
                    (a.parts > 1 || (f->resident == 1 && (uint64_t)(p.groups * p.length * p.bytes) <= r->device->cache));
  out->estimate = 3000 + p.moved / (poor ? 1500 : 3000);
  return cuda_keep(out, &s, sizeof s);
}

static const qn_engine row[] = {
  norm_row<bands_state>("stream", QN_OP_BATCH_NORM, 0, prepare<true>),
  norm_row<bands_state>("stream", QN_OP_BATCH_NORM_BACKWARD, 0, prepare<true>),
  NORM_ROWS(bands_state, "bands", QN_TRAIT_BATCH_INVARIANT, prepare<false>),
  NORM_BACKWARD_ROWS(bands_state, "bands", QN_TRAIT_BATCH_INVARIANT, prepare<false>),
  norm_row<bands_state>("bands", QN_OP_BATCH_NORM, 0, prepare<false>),
  norm_row<bands_state>("bands", QN_OP_BATCH_NORM_BACKWARD, 0, prepare<false>),
};
CUDA_ENGINES(norm_bands) = { row, sizeof row / sizeof *row };
