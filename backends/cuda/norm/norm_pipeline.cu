/* norm_pipeline.cu -- layer_norm and rms_norm, their gradients, and batch_norm, f16, bf16 and f32, on sm_90, of groups that have a
 * run of elements in each of many lines (group and instance norm, channels last): each element is read once and written once.
 *
 * An item is a band, as in norm_bands: some neighbouring groups, in whole 16-byte words, of all lines of an image. It belongs
 * to a team of persistent blocks, one per SM, each with the same share of every item. Shared memory is a pipeline of the shares
 * of a few items, and warps are specialised: one loads by TMA, eight measure, one publishes the block's statistics to the team
 * (team.cuh), two receive the other blocks', eight write. They meet at mbarriers only, so the exchange is hidden while it takes
 * less time than the items in flight.
 * Refused: runs other than 1, 2, 4 .. 32 elements, lines not in aligned words, shares that do not fit, a batch_norm of more
 * bands than teams. */
#include "norm_pipeline.cuh"

/* ---- the warps that measure and that publish ------------------------------------------------------------------------------ */

/* The pair of the group of each element of a word; N: 1 if a word lies within a group, else one pair per element. */
template <int N, int E>
__device__ __forceinline__ void read_groups(const block &b, const float2 *of, float (&x)[N], float (&y)[N], int lane)
{
#pragma unroll
  for (int e = 0; e < N; e++) {
    const float2 v = of[(lane * E + e * (E / N)) / b.a.run];
    x[e] = v.x, y[e] = v.y;
  }
}
/* f(at) for each of a thread's words of a share, waiting for segment after segment. */
template <int unroll, class F> __device__ __forceinline__ void as_they_come(const block &b, const turn &now, F f)
{
  int at = threadIdx.x;
  for (int k = 0; k < b.a.segments; k++) {
    const int end = min(b.mine, (k + 1) * b.a.segment);
    barrier_wait(now.at(b.n.full, b.a.segments, k), now.phase);
#pragma unroll unroll
    for (; at < end; at += WORKERS) f(at);
  }
}

/* Words of a share that a thread has, and that a warp has. */
__device__ __forceinline__ int words_of(int thread, int mine) { return thread < mine ? (mine - thread + WORKERS - 1) / WORKERS : 0; }
__device__ __forceinline__ int words_of_warp(int warp, int mine)
{
  return mine / WORKERS * 32 + min(32, max(0, mine % WORKERS - warp * 32));
}

/* The publishing warp: adds up the measuring warps' sums of dy and dy h for each element of a line, stores them for dscale and
 * dshift (accumulated over the items, if steady), and publishes the sums over each group. */
template <int whole> __device__ __forceinline__ void publish_sums(const block &b)
{
  const pipeline &a = b.a;
  const int elements = a.lanes * vector_per_16<whole>, lane = threadIdx.x % 32;
  float2 total[LINE / 32] = {};
  float scale[LINE / 32];
  for (turn now; now.i < b.turns; now.next(a.slots)) {
    if (now.i == 0 || !a.steady)
#pragma unroll
      for (int h = 0; h < LINE / 32; h++) {
        const int c = h * 32 + lane;
        scale[h] = a.p[SCALE] && c < elements
                     ? finite_or_nan(element_load<float>(a.p[SCALE], b.band(now.i) * elements + c, dtype3(a.dtype[SCALE])))
                     : 1;
      }
    barrier_wait(now.at(b.n.summed), now.phase);
#pragma unroll
    for (int h = 0; h < LINE / 32; h++) {
      if (h * 32 >= elements) break;
      const bool there = h * 32 + lane < elements;
      const int c = there ? h * 32 + lane : 0, g = c / a.run;
      float2 sum = make_float2(0, 0);
#pragma unroll
      for (int w = 0; w < WARPS; w++) {
        const float2 v = now.of_warp(b, w)[c];
        sum.x += v.x, sum.y += v.y;
      }
      total[h] = a.steady ? make_float2(total[h].x + sum.x, total[h].y + sum.y) : sum;
      if (there && a.sums && (!a.steady || now.i == b.turns - 1))
        a.sums[((int64_t)(a.steady ? b.team.team : b.item(now.i)) * a.team.parts + b.team.rank) * elements + c] = total[h];
      sum.x *= scale[h], sum.y *= scale[h];
      for (int o = 1; o < a.run; o *= 2) sum.x += __shfl_xor_sync(~0u, sum.x, o), sum.y += __shfl_xor_sync(~0u, sum.y, o);
      if (there && c == g * a.run) publish<true>(b, now, g, sum);
    }
  }
}
template <int whole, int N> __device__ __forceinline__ void publish_moments(const block &b)
{
  constexpr int E = vector_per_16<whole>;
  const pipeline &a = b.a;
  const int lane = threadIdx.x % 32, unit = E / N, width = a.run / unit, bits = 31 - __clz(width),
            join = a.groups < 32 ? 32 / a.groups : 1;
  const float per_word = (float)unit / (float)a.lanes;
  for (turn now; now.i < b.turns; now.next(a.slots)) {
    barrier_wait(now.at(b.n.summed), now.phase);
    for (int g = lane / join; g < a.groups; g += 32 / join) {
      const moments ours = lanes_join_all(join, WARPS * width, [&](int k) -> moments {
        const int warp = k >> bits;
        const float2 m = now.of_warp(b, warp)[g * width + k - (warp << bits)];
        return { m.x, m.y, (float)words_of_warp(warp, b.mine) * per_word };
      });
      if (lane % join == 0) publish<false>(b, now, g, make_float2(ours.mean, ours.squares));
    }
    __syncwarp();
  }
}

template <int whole, int N> __device__ __forceinline__ void measure_sums(const block &b)
{
  constexpr int E = vector_per_16<whole>, SPAN = E / N;
  const pipeline &a = b.a;
  const int t = threadIdx.x, lane = t % a.lanes;
  for (turn now; now.i < b.turns; now.next(a.slots)) {
    const uint4 *x = now.words(b), *dy = x + b.held;
    float v[E], d[E], mean[N], rstd[N], s1[E] = {}, s2[E] = {};
    barrier_wait(now.at(b.n.full, b.a.segments, 0), now.phase);
    read_groups<N, E>(b, b.n.given[now.slot], mean, rstd, lane);
    as_they_come<2>(b, now, [&](int at) {
      vector_open<whole>(v, 0, x[at]);
      vector_open<whole>(d, 0, dy[at]);
#pragma unroll
      for (int e = 0; e < E; e++) s1[e] += d[e], s2[e] = fmaf(d[e], (v[e] - mean[e / SPAN]) * rstd[e / SPAN], s2[e]);
    });
    sum_lines(s1, a.lanes), sum_lines(s2, a.lanes);
    if (t % 32 < a.lanes)
#pragma unroll
      for (int e = 0; e < E; e++) now.of_warp(b, t / 32)[lane * E + e] = make_float2(s1[e], s2[e]);
    __syncwarp();
    if (t % 32 == 0) barrier_arrive(now.at(b.n.summed));
  }
}

template <int whole, int N> __device__ __forceinline__ void measure_moments(const block &b)
{
  constexpr int E = vector_per_16<whole>;
  const pipeline &a = b.a;
  const int t = threadIdx.x, lane = t % a.lanes, of_source = words_of(t / 32 * 32, min(b.mine, a.segment));
  /* all: elements of the warp's lines that each entry of of_warp stands for */
  const float per_word = (float)(E / N) / (float)a.lanes, all = (float)words_of_warp(t / 32, b.mine) * per_word;
  for (turn now; now.i < b.turns; now.next(a.slots)) {
    const uint4 *x = now.words(b);
    float from[N] = {}, s1[N] = {}, s2[N] = {};
    barrier_wait(now.at(b.n.full, b.a.segments, 0), now.phase);
    if (a.centred)                        /* elements of a word or lines of the warp */
      take_from<whole>(from, true, lane, [&](int k) {
        return of_source && t % 32 < a.lanes ? x[t + min(k, of_source - 1) * WORKERS] : make_uint4(0, 0, 0, 0);
      });
    as_they_come<4>(b, now, [&](int at) { add_word<whole, true>(x[at], from, s1, s2); });
    sum_lines(s1, a.lanes), sum_lines(s2, a.lanes);
    if (t % 32 < a.lanes)
#pragma unroll
      for (int e = 0; e < N; e++) {
        const moments of = moments_about(from[e], s1[e], s2[e], all, a.centred);
        now.of_warp(b, t / 32)[lane * N + e] = make_float2(of.mean, of.squares);
      }
    __syncwarp();
    if (t % 32 == 0) barrier_arrive(now.at(b.n.summed));
  }
}

/* ---- the warps that write ------------------------------------------------------------------------------------------------- */

/* Writes f(words) for each of a thread's words to y, y + step, ... (in bytes), with the loads of at_once of them in flight. A
 * segment is released as soon as it is written. */
template <int at_once, int tensors, class F>
__device__ __forceinline__ void write_words(const block &b, const turn &now, char *y, int64_t step, F f)
{
  const uint4 *const words = now.words(b);
  int at = threadIdx.x - WORKERS;
  for (int k = 0; k < b.a.segments; k++) {
    const int end = min(b.mine, (k + 1) * b.a.segment);
    barrier_wait(now.at(b.n.full, b.a.segments, k), now.phase);
    for (; at < end; at += at_once * WORKERS, y += at_once * step) {
      uint4 q[at_once][tensors];
#pragma unroll
      for (int j = 0; j < at_once; j++)
#pragma unroll
        for (int i = 0; i < tensors; i++)
          if (at + j * WORKERS < end) q[j][i] = words[i * b.held + at + j * WORKERS];
#pragma unroll
      for (int j = 0; j < at_once; j++)
        if (at + j * WORKERS < end) *(uint4 *)(y + j * step) = f(q[j]);
    }
    const int beyond = at < end ? 0 : (at - end) / WORKERS;      /* steps past the segment's end: words of the next one */
    at -= beyond * WORKERS, y -= beyond * step;
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(now.at(b.n.empty, b.a.segments, k));
  }
}

/* Loads a parameter's elements for a thread's word of the item; only once if all items are of one band. */
template <int t, int E>
__device__ __forceinline__ void parameters(const block &b, const turn &now, float (&v)[E], float none, int lane)
{
  const pipeline &a = b.a;
  if (now.i && a.steady) return;
  if (a.p[t]) vector_load(v, a.p[t], dtype3(a.dtype[t]), (b.band(now.i) * a.lanes + lane) * E, 1, E);
  else
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = none;
}

template <int whole, int N, bool gradient> __device__ __forceinline__ void write(const block &b)
{
  constexpr int E = vector_per_16<whole>, SPAN = E / N, tensors = gradient ? 2 : 1;
  const pipeline &a = b.a;
  const int t = threadIdx.x - WORKERS, lane = t % a.lanes;
  const int64_t step = WORKERS / a.lanes * a.line_step * (16 / E);
  with_activation(gradient ? norm_activation{} : a.act, [&](auto op) {
    float scale[E], shift[E];
#pragma unroll 1
    for (turn now; now.i < b.turns; now.next(a.slots)) {
      float v[E], d[E], mean[N], rstd[N], less[N], along[N], unit = 1;
      parameters<SCALE>(b, now, scale, 1, lane);
      if constexpr (gradient) {
#pragma unroll
        for (int e = 0; e < E; e++) scale[e] = finite_or_nan(scale[e]);
        barrier_wait(now.at(b.n.full, b.a.segments, 0), now.phase);
        read_groups<N, E>(b, b.n.given[now.slot], mean, rstd, lane);
        barrier_wait(now.at(b.n.ready), now.phase);
        read_groups<N, E>(b, b.n.known[now.slot], less, along, lane);
      } else {
        parameters<SHIFT>(b, now, shift, 0, lane);
        barrier_wait(now.at(b.n.ready), now.phase);
        read_groups<N, E>(b, b.n.known[now.slot], mean, rstd, lane);
        unit = far_unit(mean, rstd);
      }
      const int64_t line = b.image(now.i) * a.image_step + (b.team.rank * a.share + t / a.lanes) * a.line_step;
      char *const y = (char *)a.p[Y] + (line + (b.band(now.i) * a.lanes + lane) * E) * (16 / E);   /* the thread's first word */
      write_words<gradient && N != 1 ? 2 : 4, tensors>(b, now, y, step, [&](const uint4 (&q)[tensors]) {
        vector_open<whole>(v, 0, q[0]);
        if (gradient) vector_open<whole>(d, 0, q[tensors - 1]);
#pragma unroll
        for (int e = 0; e < E; e++) {
          const int g = e / SPAN;
          v[e] = gradient ? rstd[g] * (d[e] * scale[e] - less[g] - (v[e] - mean[g]) * rstd[g] * along[g])
                          : fmaf(far_normalized(v[e], unit, mean[g], rstd[g]), scale[e], shift[e]);
        }
        activate<whole != QN_F32, decltype(op)::value>(a.act.beta, v);
        return vector_close<whole>(v, 0);
      });
    }
  });
}

template <int whole, int N, bool gradient> __global__ void __launch_bounds__(THREADS, 1)
norm_pipeline(const __grid_constant__ pipeline a, const __grid_constant__ CUtensorMap xs, const __grid_constant__ CUtensorMap dys)
{
  extern __shared__ __align__(128) uint4 words[];
  __shared__ mailbox n;
  const team_member team(a.team, nullptr);
  const int warp = threadIdx.x / 32;
  const int held = a.box * a.boxes * a.lanes;
  const int tensors = gradient ? 2 : 1, published = a.lanes * (gradient ? vector_per_16<whole> : N);
  const int turns = (a.items - team.team + a.team.teams - 1) / a.team.teams,
            mine = min(a.share, a.lines - team.rank * a.share) * a.lanes;
  const block b = { a, team, n, words, (float2 *)(words + a.slots * tensors * held), published, turns, held, mine, tensors };
  if (gradient)                           /* rms_norm: the mean stays 0 */
    for (int i = threadIdx.x; i < SLOTS * LINE; i += THREADS) n.given[0][i] = make_float2(0, 0);
  if (threadIdx.x == 0) {
    for (int i = 0; i < a.slots; i++) {
      for (int k = 0; k < a.segments; k++) {
        barrier_init(shared_address(n.full + i * a.segments + k), gradient && k == 0 ? 33 : 1);
        barrier_init(shared_address(n.empty + i * a.segments + k), WARPS);
      }
      barrier_init(shared_address(n.summed + i), WARPS);
      barrier_init(shared_address(n.published + i), a.groups);
      barrier_init(shared_address(n.ready + i), a.team.parts > 1 ? 32 : a.groups);
    }
    barrier_init_fence();
  }
  __syncthreads();
  if (warp < WARPS) {
    if (gradient) measure_sums<whole, N>(b);
    else measure_moments<whole, N>(b);
  } else if (warp < 2 * WARPS) write<whole, N, gradient>(b);
  else if (warp == 2 * WARPS) fetch<whole, gradient>(b, &xs, &dys);
  else if (warp == 2 * WARPS + 1) {
    if (gradient) publish_sums<whole>(b);
    else publish_moments<whole, N>(b);
  } else receive<gradient>(b, warp - 2 * WARPS - 2);
}

/* ---- prepare -------------------------------------------------------------------------------------------------------------- */

struct state : norm_plan {
  pipeline    a;
  CUtensorMap x_map, dy_map;              /* aligned to 64 bytes, as the state is */
  const cuda_driver *driver;
  int64_t  images, channels;
};

/* Reads the layout; returns the rule that it breaks, or NULL. */
static const char *read_layout(const qn_request *r, state *s)
{
  pipeline &a = s->a;
  const norm_problem &p = s->of;
  const qn_nest &in = p.in, &outer = p.outer;
  const int last = in.rank - 1, g = outer.rank - 1;
  int64_t run;
  const char *rule = norm_runs(r, &p, &run);
  if (rule) return rule;
  if (g > 1) return "images of lines at one step, of which each group has a run";
  if ((run & (run - 1)) || run > 32) return "runs of 1, 2, 4, 8, 16 or 32 elements";
  if (g > 0 && (outer.stride[X][0] <= 0 || outer.stride[Y][0] <= 0)) return "images at a step from one another";
  for (int t = SCALE; t < PARAMETERS_END; t++)
    if (p.number[t] >= 0 &&
        (in.stride[t][0] || (last == 1 && in.stride[t][1] != 1) || outer.stride[t][g] != run || (g > 0 && outer.stride[t][0])))
      return "parameters have an element for each of a line's";
  if (in.dim[0] * in.stride[Y][0] > INT32_MAX / 2 || p.groups > INT32_MAX / 1024)
    return "fewer than 2^30 elements in an image, and 2^21 groups";
  a.lines = (int32_t)in.dim[0], a.run = (int32_t)run;
  a.line_step = in.stride[Y][0], a.image_step = g > 0 ? outer.stride[Y][0] : 0;
  a.x_step[0] = in.stride[X][0], a.x_step[1] = g > 0 ? outer.stride[X][0] : 0;
  s->images = g > 0 ? outer.dim[0] : 1, s->channels = run * outer.dim[g];
  for (int t = MEAN; t < TENSORS; t++)
    a.means_step[t - MEAN][0] = g > 0 ? outer.stride[t][0] : 0, a.means_step[t - MEAN][1] = outer.stride[t][g];
  return nullptr;
}

/* Divides an item with lines of `lanes` words among `parts` blocks; false: not possible, or fewer than `least` shares fit. */
static bool share_out(state *s, const qn_device *device, int64_t E, int lanes, int parts, int least)
{
  pipeline &a = s->a;
  if (s->channels % (lanes * E) || lanes * E % a.run || parts > device->units) return false;
  a.lanes = lanes, a.groups = (int32_t)(lanes * E) / a.run;
  a.share = (int32_t)qn_ceil_div(a.lines, parts);
  if ((parts - 1) * a.share >= a.lines) return false;  /* a block would have no lines */
  a.boxes = (int32_t)qn_max_i64(qn_ceil_div(a.share, 256), a.share < 64 ? 1 : 2);
  a.box = (int32_t)qn_round_up(qn_ceil_div(a.share, a.boxes), LANES / lanes);   /* a multiple of 128 bytes */
  /* words, and of_warps */
  const int64_t slot = (int64_t)a.box * a.boxes * lanes * (s->of.backward ? 32 : 16) +
                       WARPS * lanes * 8 * (!s->of.backward && a.run >= E ? 1 : E);
  a.slots = (int32_t)qn_min_i64(SLOTS, ((int64_t)device->shared_per_block - (int64_t)sizeof(mailbox)) / slot);
  if (a.slots < least) return false;
  const int32_t together = (int32_t)qn_ceil_div(a.boxes, SEGMENTS / a.slots);
  a.segments = (int32_t)qn_ceil_div(a.boxes, together), a.segment = together * a.box * lanes;
  s->shared = (uint32_t)(a.slots * slot);
  a.bands = (int32_t)(s->channels / (lanes * E)), a.items = (int32_t)(s->images * a.bands);
  a.team.parts = parts, a.team.teams = (int32_t)qn_min_i64(a.items, device->units / parts);
  const int whole = a.team.teams / a.bands * a.bands;
  a.steady = whole * 16 >= a.team.teams * 15;
  if (a.steady) a.team.teams = whole;
  a.team.each = a.groups, a.team.turns = 2 * a.slots;
  a.team.totals = parts * a.groups > 512;         /* too many pairs for each block to read them all */
  a.received = (int32_t)(a.team.totals ? qn_max_i64(1, a.groups / parts) : a.groups);
  return true;
}

/* Every block of a team reads the statistics of all parts, so lines of 64 bytes on 16 blocks are faster than lines of 128 bytes
 * on 32; narrower lines are slower to load. */
struct form { int narrowest, parts; };    /* least words of a line; most blocks of a team */
static const form forms[] = { { 4, 16 }, { 2, MOST_PARTS } };

static bool choose(state *s, const qn_device *device, int64_t E, bool batch)
{
  if (share_out(s, device, E, LANES, 1, 2) && !batch) return true;    /* one block exchanges nothing: 2 slots suffice */
  for (const form &f : forms)
    for (int least = 4; least >= (batch ? 1 : 2); least /= 2)
      for (int lanes = LANES; lanes >= f.narrowest; lanes /= 2)
        for (int parts = 1; parts <= f.parts; parts *= 2)
          if (share_out(s, device, E, lanes, parts, least) && (!batch || s->a.items <= s->a.team.teams)) return true;
  return false;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state s = {};
  pipeline &a = s.a;
  norm_problem &p = s.of;
  const qn_status status = norm_open(r, 9, &p, &a, out);
  if (status) return status;
  const char *rule = read_layout(r, &s);
  if (rule) return qn_refuse(out, rule, "x", "", "%s", "another layout");
  const int64_t E = 16 / p.bytes;
  if (!choose(&s, r->device, E, p.batch))
    return qn_refuse(out, "lines in whole bands, shares of which fit into a block's shared memory", "x", "", "%d lines", a.lines);
  if (!p.backward) p.number[Y] = norm_activation_behind(r, p.number[Y], &a.act, out);
  s.sum_items(a.steady ? a.team.teams / a.bands : s.images, a.bands, a.team.parts, a.groups * a.run, out);
  out->counters = (uint64_t)cuda_team_counters(&a.team);
  s.blocks = (uint32_t)(a.team.teams * a.team.parts), s.cluster = a.team.parts > 1 ? CUDA_TOGETHER : 1, s.threads = THREADS;
  s.kernel = cuda_by_dtype(p.dtype[X], [&](auto d) {
    return cuda_pick<1, vector_per_16<d()>>(a.run >= E ? 1 : E, [&](auto n) {
      return p.backward ? (const void *)norm_pipeline<d(), n(), true> : (const void *)norm_pipeline<d(), n(), false>;
    });
  });
  /* bytes of a block per item, its rate in bytes per ns, ns per item */
  const double share = (double)a.lines * a.lanes * (p.backward ? 48 : 32) / a.team.parts, rate = 3500 / (double)r->device->units,
               turn = 250;
  out->estimate = 4000 + (double)qn_ceil_div(a.items, a.team.teams) * (share / rate + turn);
  return cuda_keep(out, &s, sizeof s);
}

/* ---- build, run ------------------------------------------------------------------------------------------------------- */

static qn_status build(const qn_request *, qn_prepared *p)
{
  state *s = (state *)p->state;
  const pipeline &a = s->a;
  const bool words = a.dtype[X] == QN_F32;
  const int64_t extent[4] = { s->channels, a.lines, s->images, 1 }, step[3] = { a.x_step[0], a.x_step[1], 0 };
  const cuuint32_t box[4] = { (cuuint32_t)a.lanes * (words ? 4 : 8), (cuuint32_t)a.box, 1, 1 };
  qn_status status = cuda_driver_get(&s->driver);
  if (!status)
    status = cuda_map_tiled(s->driver, &s->x_map, words ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16, words ? 4 : 2,
                            extent, step, box, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                            "cuda: norm_pipeline: the driver refused a tensor map");
  s->dy_map = s->x_map;
  return status ? status : cuda_allow_shared(s->kernel);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  pipeline a = s->a;
  CUtensorMap x = s->x_map, dy = s->dy_map;
  s->point(&a, launch);
  s->driver->tensor_map_address(&x, a.p[X]);
  if (a.p[DY]) s->driver->tensor_map_address(&dy, a.p[DY]);
  a.team.published = launch->counters;
  a.sums = s->sums_in(launch);
  void *arguments[] = { &a, &x, &dy };
  return s->launch_with(arguments, a, launch, p->engine->name);
}

static const qn_engine row[] = { NORM_ROWS(state, "pipeline", QN_TRAIT_BATCH_INVARIANT, prepare, run, build),
                                 NORM_BACKWARD_ROWS(state, "pipeline", QN_TRAIT_BATCH_INVARIANT, prepare, run, build),
                                 norm_row<state>("pipeline", QN_OP_BATCH_NORM, 0, prepare, run, build) };
CUDA_ENGINES(norm_pipeline) = { row, sizeof row / sizeof *row };
