/* norm_split.cu -- normalization of few large groups, forward and backward: a group is cut into chunks, so that the whole device works on
 * it. split: groups with one parameter each (batch norm, and long rows without parameters of their own), in as many chunks as fill the
 * device. chunks: parameters vary within a group, and a group's chunks depend on its own size alone, so results are batch invariant.
 * inference (batch_norm_inference): the last launch alone.
 *
 *   1. measure   each chunk's mean and sum of squared distances from it; for a gradient sum dy and sum dy h
 *   2. combine   the chunks of a group in a fixed order (Chan, Golub, LeVeque); statistics, running ones, dscale and dshift
 *   3. apply     y = h scale + shift, or dx = rstd (dy scale - mean g - h mean(g h)), with h = (x - mean) rstd, g = dy scale; in
 *                reverse order, to hit what is still in L2. Pointwise ops behind y are fused (norm_follow.cuh). (rstd scale is not folded
 *                into one factor: subnormal scales would lose digits.)
 *
 * columns: channels last; a group is a channel, or (chunks) a run of neighbouring channels in all lines of an image, whose columns are
 * measured each and joined by combine. planes: a group is contiguous runs of elements (channels first).
 * Refused: outer dims that do not merge (chunks: more than images and groups), other strides; gradients of planes whose parameters vary. */
#include "norm_split.cuh"

/* ---- combine: a block has 2 neighbouring groups, 128 threads each ------------------------------------------------------------ */

enum { TOGETHER = 2, BY = THREADS / TOGETHER };

template <class S> __device__ __forceinline__ S of_group(const split &s, int64_t g)
{
  __shared__ float4 seen[WARPS * TOGETHER];
  const int lane = threadIdx.x % 32;
  S all = {};
#pragma unroll 4
  for (int i = threadIdx.x / TOGETHER; i < (int)s.chunks && g < s.groups; i += BY) all.join(S::unpack(s.part[i * s.groups + g]));
  warp_join(all, TOGETHER);
  if (lane < TOGETHER) seen[threadIdx.x / 32 * TOGETHER + lane] = all.pack();
  __syncthreads();
  all = S::unpack(lane < WARPS * TOGETHER ? seen[lane] : make_float4(0, 0, 0, 0));
  warp_join(all, TOGETHER);
  return all;                             /* valid in the first TOGETHER threads */
}

/* Writes the statistics of group g that are wanted; out of line, because its registers would spill. */
static __device__ __noinline__ void leave(const split &s, int64_t g, norm_statistics of)
{
  leave_statistics(s, of, [&](int t) { return s.place(t, g); });
}

__global__ static void __launch_bounds__(THREADS) combine(const __grid_constant__ split s)
{
  int64_t g = blockIdx.x * (int64_t)TOGETHER + threadIdx.x % TOGETHER;
  if (s.backward) {
    sums all = of_group<sums>(s, g);
    if (threadIdx.x >= TOGETHER || g >= s.groups) return;
    const float scale = s.scale_of(g), p = scale * all.dy * s.inverse, q = scale * all.dyh * s.inverse;
    s.store(DSCALE, g, all.dyh);
    s.store(DSHIFT, g, all.dy);
    s.keep(g, s.centred ? s.get(MEAN, g, 0) : 0, s.get(RSTD, g, 1), scale, s.centred ? p : 0, q);
  } else {
    const moments all = of_group<moments>(s, g);
    if (threadIdx.x >= 32) return;
    norm_statistics of;
    for (int i = 0; i < TOGETHER; i++) {  /* by the whole warp, which measures again what is far out */
      const int64_t h = min(blockIdx.x * (int64_t)TOGETHER + i, s.groups - 1);
      const moments one = { __shfl_sync(~0u, all.mean, i), __shfl_sync(~0u, all.squares, i), 0 };
      const norm_statistics it = statistics_of(s, s.dtype[X], one, s.place(X, h), s.lines, s.line_step[X], s.line, 32);
      if (threadIdx.x == i) of = it;
    }
    if (threadIdx.x >= TOGETHER || g >= s.groups) return;
    leave(s, g, of);
    s.keep(g, of.mean, of.rstd, s.scale_of(g), s.get(SHIFT, g, 0), 0);
  }
}

/* Columns of runs: a block joins the columns of one group, a warp the chunks of one column after another. */
template <bool backward> __global__ void __launch_bounds__(THREADS) combine_runs(const __grid_constant__ split s)
{
  typedef typename std::conditional<backward, sums, moments>::type S;
  __shared__ float4 of_warp[WARPS];
  const int run = (int)s.by_run.by, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int64_t first = (int64_t)blockIdx.x * run;
  S all = {};
  for (int64_t g = first + warp; g < first + run; g += WARPS) {
    S column = {};
#pragma unroll 4
    for (uint32_t i = lane; i < s.chunks; i += 32) column.join(S::unpack(s.part[i * s.groups + g]));
    if constexpr (backward) {
      warp_join(column, 1);
      if (lane) continue;
      if (s.sums) s.sums[g] = make_float2(column.dy, column.dyh);
      const float scale = s.scale_of(g);
      column = { column.dy * scale, column.dyh * scale };
    }
    all.join(column);
  }
  warp_join(all, 1);
  if (lane == 0) of_warp[warp] = all.pack();
  __syncthreads();
  all = S::unpack(of_warp[0]);
  for (int w = 1; w < WARPS; w++) all.join(S::unpack(of_warp[w]));
  if constexpr (backward) {
    const float mean = s.centred ? s.get(MEAN, first, 0) : 0, rstd = s.get(RSTD, first, 1);
    for (int64_t g = first + threadIdx.x; g < first + run; g += THREADS)
      s.keep(g, mean, rstd, s.scale_of(g), s.centred ? all.dy * s.inverse : 0, all.dyh * s.inverse);
  } else {
    const norm_statistics of = statistics_of(s, s.dtype[X], all, s.place(X, first), s.lines, s.line_step[X], run, 32);
    if (threadIdx.x == 0) leave(s, first, of);
    for (int64_t g = first + threadIdx.x; g < first + run; g += THREADS)
      s.keep(g, of.mean, of.rstd, s.scale_of(g), s.get(SHIFT, g, 0), 0);
  }
}

/* ---- apply -------------------------------------------------------------------------------------------------------------------------- */

/* A parameter of N neighbouring groups, of which n exist. */
template <int N> struct numbers { float v[N]; };

template <int N> static __device__ numbers<N> any_numbers(const void *p, uint32_t dtype, int64_t at, int64_t step, int n)
{
  numbers<N> f;
#pragma unroll
  for (int i = 0; i < N; i++) f.v[i] = i < n ? element_load<float>(p, at + i * step, dtype3(dtype)) : 0;
  return f;
}
/* Out of line, so that the usual path keeps its loads together. */
static __device__ __noinline__ numbers<V> odd_numbers(const void *p, uint32_t dtype, int64_t at, int64_t step, int n)
{
  return any_numbers<V>(p, dtype, at, step, n);
}
/* Of f32, contiguous, aligned, all or none existing. */
template <int N> __device__ __forceinline__ numbers<N> plain_numbers(const void *p, int64_t at, int n, float absent)
{
  numbers<N> f;
#pragma unroll
  for (int i = 0; i < N; i++) f.v[i] = absent;
  if constexpr (N > 1) if (p && n > 0) vector_load_whole<QN_F32>(f.v, p, at);
  return f;
}

/* The factors of N neighbouring groups. */
template <int N> struct factors {
  numbers<N> mean, rstd, scale, p, q;
  float      unit;                        /* of far_normalized */
  int64_t    scale_at, shift_at;          /* VARIED: the group's place in scale and shift */

  __device__ __forceinline__ numbers<N> read(const split &s, int t, int64_t g, int n, float absent)
  {
    if (s.p[t] && N == 1) return any_numbers<N>(s.p[t], s.dtype[t], g * s.step[t], 0, n);
    if constexpr (N > 1) if (s.p[t] && !s.plain) return odd_numbers(s.p[t], s.dtype[t], g * s.step[t], s.step[t], n);
    return plain_numbers<N>(s.p[t], g, n, absent);
  }
  template <int whole> __device__ __forceinline__ numbers<N> computed(const split &s, int k, int64_t g, int n)
  {
    if (whole && N > 1) return plain_numbers<N>(s.factor + k * s.groups, g, n, 0);
    return any_numbers<N>(s.factor + k * s.groups, QN_F32, g, 1, n);
  }
  template <int what, int whole> __device__ __forceinline__ void take(const split &s, int64_t g, int n)
  {
    if (what != GIVEN && (what != FOLLOWED || s.factor)) {
      mean = computed<whole>(s, F_MEAN, g, n), rstd = computed<whole>(s, F_RSTD, g, n), scale = computed<whole>(s, F_SCALE, g, n);
      p = computed<whole>(s, F_P, g, n);
      if constexpr (what == VARIED) scale_at = s.place(SCALE, g), shift_at = s.place(SHIFT, g);
      if constexpr (what == BACKWARD) q = computed<whole>(s, F_Q, g, n);
    } else {
      mean = read(s, MEAN, g, n, 0);
      rstd = read(s, VAR, g, n, 1);
      scale = read(s, SCALE, g, n, 1);
      p = read(s, SHIFT, g, n, 0);
#pragma unroll
      for (int i = 0; i < N; i++) rstd.v[i] = 1 / sqrtf(rstd.v[i] + s.eps);
    }
    if constexpr (what == FORWARD || has_steps<what>) unit = far_unit(mean.v, rstd.v);
  }
  template <int what> __device__ __forceinline__ float of(int element, float x, float dy) const
  {
    const int i = element % N;
    const bool far = what == FORWARD || has_steps<what>;
    const float h = far ? far_normalized(x, unit, mean.v[i], rstd.v[i]) : (x - mean.v[i]) * rstd.v[i];
    if (what == VARIED) return h;
    return what == BACKWARD ? rstd.v[i] * (dy * scale.v[i] - p.v[i] - h * q.v[i]) : h * scale.v[i] + p.v[i];
  }
};

template <int what, int whole, bool columns>
constexpr int apply_batch = what == BACKWARD ? columns ? batch_of<whole> / 2 : batch_of<whole> : whole ? batch_of<whole> : 4;
constexpr int resident(bool columns, int what, int whole)
{
  return !whole ? 1 : what == FOLLOWED || what == VARIED ? 2 : columns ? RESIDENT : RESIDENT + 1;
}

/* apply's blocks take parts of measure's chunks, in reverse order: the last measured first. */
template <int what> __device__ __forceinline__ void apply_range(const split &s, uint32_t block, int64_t *from, int64_t *to)
{
  if (what == GIVEN) {
    *from = block * (uint32_t)s.share, *to = min(*from + s.share, s.pieces);
    return;
  }
  const uint32_t part = block / s.chunks, chunk = s.chunks - 1 - (block - part * s.chunks);
  *to = min((chunk + 1) * s.chunk, s.pieces) - part * s.share;
  *from = max(chunk * s.chunk, *to - s.share);
}

/* Columns: a thread has V groups of every apart-th line of the block's. The factors are read while the first loads are in flight. */
template <int what, int whole>
__global__ void __launch_bounds__(THREADS, resident(true, what, whole)) apply_columns(const __grid_constant__ split s)
{
  constexpr int B = apply_batch<what, whole, true>;
  const int lane = threadIdx.x & ((1 << s.lanes) - 1), row = threadIdx.x >> s.lanes, apart = THREADS >> s.lanes;
  const uint32_t block = blockIdx.x / s.side;
  int64_t from, to;
  apply_range<what>(s, block, &from, &to);
  const uint32_t sideways = blockIdx.x - block * s.side, image = what == GIVEN ? 0 : sideways / s.across;
  const int64_t g = ((int64_t)(sideways - image * s.across) << s.lanes | lane) * V;
  const int n = (int)min((int64_t)V, s.by_image.by - g), lines = (int)(to - from) - row;
  const auto start = [&](int t) { return image * s.image_step[t] + (from + row) * s.line_step[t] + g; };
  int64_t x = start(X), y = start(Y), dy = start(DY);
  const int64_t x_apart = apart * s.line_step[X], y_apart = apart * s.line_step[Y], dy_apart = apart * s.line_step[DY];
  int line = 0;
  const auto at = [&](int b) {
    return place{ x + b * x_apart, y + b * y_apart, dy + b * dy_apart, line + b * apart < lines ? n : 0 };
  };
  batch<what, whole, B> some;
  some.template load<true>(s, at);
  factors<V> f;
  f.template take<what, whole>(s, (int64_t)image * s.by_image.by + g, n);
#pragma unroll 1
  for (;;) {
    some.finish(s, at, f);
    line += B * apart, x += B * x_apart, y += B * y_apart, dy += B * dy_apart;
    if (line >= lines) break;
    some.template load<true>(s, at);
  }
}

/* Planes: a block has vectors of one group. */
template <int what, int whole>
__global__ void __launch_bounds__(THREADS, resident(false, what, whole)) apply_planes(const __grid_constant__ split s)
{
  constexpr int B = apply_batch<what, whole, false>;
  const uint32_t block = blockIdx.x / s.side, g = blockIdx.x - block * s.side, vectors = (uint32_t)s.vectors();
  int64_t begin, to;
  apply_range<what>(s, block, &begin, &to);
  uint32_t from = (uint32_t)begin;
  const place group = group_of<what>(s, g);
  const auto at = [&](int b) {
    const uint32_t j = from + threadIdx.x + b * THREADS;
    place w = place_of<whole>(s, group, j, vectors);
    if (j >= to) w.n = 0;
    return w;
  };
  batch<what, whole, B> some;
  some.template load<true>(s, at);
  factors<1> f;
  f.template take<what, whole>(s, g, 1);
#pragma unroll 1
  for (;;) {
    some.finish(s, at, f);
    from += B * THREADS;
    if (from >= to) break;
    some.template load<true>(s, at);
  }
}

/* ---- prepare, run ------------------------------------------------------------------------------------------------------------------- */

typedef void (*split_kernel)(split);
struct state : norm_plan { split s; norm_follower after; split_kernel measure, combine, apply; unsigned applied, combined; };

/* whole: the dtype of whole packets; 0: others, which have no tails. */
template <int whole> static void choose_kernels(state *st, int kind)
{
  const split &s = st->s;
  st->measure = s.columns ? s.backward ? measure_columns<true, whole> : measure_columns<false, whole>
                          : s.backward ? measure_planes<true, whole> : measure_planes<false, whole>;
  st->apply = cuda_pick<VARIED, GIVEN, BACKWARD, whole ? FOLLOWED : FORWARD, FORWARD>(kind, [&](auto what) -> split_kernel {
    if constexpr (what() != VARIED) if (s.columns) return apply_columns<what(), whole>;
    return apply_planes<what(), whole>;
  });
}

static const char *const variants[] = { "1", "2", "4", nullptr };      /* inference: batches a thread */

/* split, inference: the dims not normalized over lie as one; parameters have an element for each group. */
static const char *read_groups(const norm_problem &p, bool given, split *s)
{
  const qn_nest &in = p.in, &outer = p.outer;
  bool varies = false;
  for (int t = SCALE; t < TENSORS; t++)
    for (int d = 0; d < in.rank && t < PARAMETERS_END; d++) varies |= in.stride[t][d] != 0;
  for (int t = DSCALE; t < TENSORS && !given; t++)          /* what is written has an element for each group */
    for (int d = 0; d < outer.rank; d++) varies |= p.number[t] >= 0 && outer.stride[t][d] == 0;
  if (varies) return "a parameter has one element for each group";
  if (outer.rank > 1) return "the dims not normalized over must lie as one, in all tensors";
  s->columns = outer.rank == 1 && in.rank <= 1;
  bool planes = in.rank == 1 || in.rank == 2;
  for (int t = X; t <= DY; t++) {
    if (p.number[t] < 0) continue;
    s->columns &= outer.rank == 1 && outer.stride[t][0] == 1;
    planes &= in.rank > 0 && in.stride[t][in.rank - 1] == 1;
  }
  return s->columns || planes ? nullptr : "groups must lie side by side, or in contiguous runs";
}

/* chunks: the last outer dim numbers groups, one before it images. */
static const char *read_images(const norm_problem &p, split *s)
{
  const qn_nest &in = p.in, &outer = p.outer;
  const int last = in.rank - 1, g = outer.rank - 1;
  if (last < 0 || last > 1 || g > 1) return "groups of one or two dims that do not merge, numbered by one or two";
  const int64_t run = last == 1 ? in.dim[1] : 1;
  bool planes = true;
  s->columns = g >= 0;
  for (int t = X; t <= DY; t++) {
    if (p.number[t] < 0) continue;
    s->columns &= g >= 0 && outer.stride[t][g] == run && (last == 0 || in.stride[t][1] == 1) && (in.dim[0] == 1 || in.stride[t][0] != 1);
    planes &= in.stride[t][last] == 1;
  }
  if (!s->columns && (!planes || p.backward)) return "a group is a run in each of an image's lines, or (forward) contiguous runs";
  for (int t = SCALE; t < PARAMETERS_END; t++) {
    if (p.number[t] < 0) continue;
    if (s->columns && in.stride[t][0] != 0) return "columns: parameters do not vary from line to line";
    if (!s->columns && in.stride[t][last] != 0 && in.stride[t][last] != 1) return "planes: parameters are contiguous, or alike along a run";
    if (t >= DSCALE && ((last == 1 && in.stride[t][1] != 1) || outer.stride[t][g] != run || (g > 0 && outer.stride[t][0] != 0)))
      return "dscale and dshift have an element for each column, for all images";
  }
  return nullptr;
}

/* Chunks of a group; batches of work of one chunk. */
static void cut(split *s, const qn_device *device, bool own, bool tailed, int64_t apart)
{
  const int64_t batch = 4 * apart, blocks = (int64_t)device->units * (s->columns ? RESIDENT : 2 * (RESIDENT + 1));
  const int64_t side = own ? s->columns ? s->across : 1 : s->side;
  int64_t least = own ? (s->columns ? 2 : 1) * batch : 4 * batch;
  /* Columns that would occupy few SMs so, as of three channels: a chunk for each SM, down to one line a thread. */
  if (s->columns && !own) least = qn_min_i64(least, qn_round_up(qn_ceil_div(s->pieces * side, (int64_t)device->units), apart));
  /* Chunks for one wave of blocks, or (planes, whose partial results are small) two; at least a few batches a thread. */
  s->chunk = qn_ceil_div(s->pieces, qn_min_i64(qn_ceil_div(s->pieces, least), qn_min_i64(MAX_CHUNKS, qn_max_i64(1, blocks / side))));
  if (s->columns) s->chunk = qn_round_up(s->chunk, least < batch ? apart : batch);
  s->chunks = (uint32_t)qn_ceil_div(s->pieces, s->chunk);
  /* apply: blocks of one batch are fastest, unless their prologue is long */
  s->share = qn_min_i64(s->chunk, !tailed ? qn_round_up(qn_ceil_div(s->chunk, 32), batch)
                                          : qn_max_i64(4 * batch, qn_ceil_div(s->chunk, 16)));
}

template <bool own> static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state st = {};
  norm_problem &p = st.of;
  split &s = st.s;
  const bool given = r->op[0].op == QN_OP_BATCH_NORM_INFERENCE;
  const qn_status status = norm_open(r, 0, &p, &s, out);
  if (status) return status;
  const qn_nest &in = p.in, &outer = p.outer;
  const char *rule = own ? read_images(p, &s) : read_groups(p, given, &s);
  if (rule) return qn_refuse(out, rule, "x", "", "%s", "another layout");
  const bool columns = s.columns, runs = own && columns, lined = columns || in.rank == 2;
  const int last = in.rank - 1, g = outer.rank - 1;
  const int64_t run = runs && last == 1 ? in.dim[1] : 1, images = own && g > 0 ? outer.dim[0] : 1, line = p.groups / images * run;
  if (line * images > INT32_MAX || p.length > INT32_MAX)
    return qn_refuse(out, "fewer than 2^31 groups, and elements of one", "x", "", "%lld", (long long)p.groups);
  s.groups = line * images;
  s.by_image = cuda_divide_by(line), s.by_run = cuda_divide_by(run);
  s.lines = columns ? p.length / run : in.rank == 2 ? in.dim[0] : 1;
  s.line = columns ? 1 : in.dim[last];
  s.plain = s.groups % V == 0;
  for (int t = 0; t < TENSORS; t++) {
    s.step[t] = g >= 0 ? outer.stride[t][g] : 0;
    s.image_step[t] = own && g > 0 ? outer.stride[t][0] : 0;
    if (t < PARAMETERS_END) {
      s.line_step[t] = lined && in.rank ? in.stride[t][0] : 0;
      s.run_step[t] = own && (last == 1 || !columns) ? in.stride[t][last] : 0;
    }
    if (t > DY && p.number[t] >= 0) s.plain &= s.dtype[t] == QN_F32 && s.step[t] == 1 && r->value[p.number[t]].align >= 16;
  }
  s.backward = p.backward;
  for (s.lanes = 5; s.lanes > 0 && (V << s.lanes) / 2 >= line;) s.lanes--;
  s.pieces = columns ? s.lines : s.lines * s.vectors();
  const int64_t across = columns ? qn_ceil_div(line, V << s.lanes) : line, side = across * images,
                apart = columns ? THREADS >> s.lanes : THREADS;
  const bool whole = (columns ? line : s.line) % V == 0 && norm_whole(r, &p, V, columns, lined);
  qn_request some = *r;
  if (s.backward) some.n_ops = 1;
  const bool tailed = norm_follower_read(&st.after, &some, p.number[Y], whole, &s.tail, out);
  p.number[Y] = st.after.chain.out;
  const int kind = own && !columns ? VARIED : given && !tailed ? GIVEN : p.backward ? BACKWARD : tailed ? FOLLOWED : FORWARD;
  if (!whole) choose_kernels<0>(&st, kind);
  else cuda_by_dtype(p.dtype[X], [&](auto d) { choose_kernels<d()>(&st, kind); });
  st.combine = !runs ? combine : s.backward ? combine_runs<true> : combine_runs<false>;
  st.combined = (unsigned)(runs ? p.groups : qn_ceil_div(s.groups, TOGETHER));
  s.side = (uint32_t)side, s.across = (uint32_t)across, s.chunks = 1, s.chunk = s.pieces;
  if (given) {
    /* computing the factors of columns costs as many instructions as two batches: up to four batches a thread if enough blocks remain */
    s.share = (whole && p.dtype[X] == QN_F32 ? 2 : 4) * apart;
    int v = 0;                            /* 1 << v batches */
    if (r->variant) while (strcmp(r->variant, variants[v])) v++;
    else while (columns && v < 2 && (s.pieces / s.share >> v) * side > 16 * (int64_t)r->device->units) v++;
    s.share <<= v;
    out->variant = variants[v];
  } else {
    cut(&s, r->device, own, tailed, apart);
    if (own && !columns && s.chunks == 1) return qn_refuse(out, "planes of several chunks", "x", "", "%lld elements", (long long)p.length);
    out->workspace = (uint64_t)s.groups * (s.chunks * sizeof(float4) + sizeof(float2) + FACTORS * sizeof(float));
  }
  const int64_t parts = s.chunks * qn_ceil_div(s.chunk, s.share);
  if (parts > INT32_MAX / side) return qn_refuse(out, "fewer than 2^31 blocks", "x", "", "%lld", (long long)s.groups);
  st.applied = (unsigned)(side * parts);
  /* x (and dy) are read twice, the second time from L2 as far as they fit; a block of little work takes 1.5 us nevertheless. (inference
   * has no rival, and none: before a convolution that folds it in, a sum of estimates would decide.) */
  const double again = p.moved / (p.backward ? 1.5 : 2), hit = (double)r->device->cache * 0.5,
               bytes = p.moved + (again > hit ? again - hit * 0.5 : again * 0.5),
               blocks = ((double)side * s.chunks + st.applied) / (double)(r->device->units * 2 * (RESIDENT + 1));
  if (!given) out->estimate = 9000 + fmax(bytes / (whole ? 3800 : 1000), blocks * 1500);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = (const state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  split s = st->s;
  st->point(&s, launch);
  norm_follower_bind(&st->after, &s.tail, launch);
  if (!s.p[VAR]) {
    s.part = (float4 *)launch->workspace;
    s.sums = (float2 *)(s.part + (int64_t)s.chunks * s.groups);
    s.factor = (float *)(s.sums + s.groups);
    if (st->combine == combine || (!s.p[DSCALE] && !s.p[DSHIFT])) s.sums = nullptr;
    st->measure<<<dim3(s.side, s.chunks), THREADS, 0, stream>>>(s);
    st->combine<<<st->combined, THREADS, 0, stream>>>(s);
  }
  st->apply<<<st->applied, THREADS, 0, stream>>>(s);
  const qn_status status = cuda_check(cudaGetLastError(), "norm_split");
  if (status || !s.sums) return status;
  return item_sums_add({ s.sums, s.p[DSCALE], s.p[DSHIFT], { s.dtype[DSCALE], s.dtype[DSHIFT] }, s.groups / s.by_image.by, 1, 1,
                         (int32_t)s.by_image.by }, launch);
}

/* split's chunks depend on the number of groups, so its results are not batch invariant. */
static const qn_engine row[] = {
  norm_row<state>("split", QN_OP_BATCH_NORM, 0, prepare<false>, run),
  norm_row<state>("split", QN_OP_BATCH_NORM_BACKWARD, 0, prepare<false>, run),
  NORM_ROWS(state, "split", 0, prepare<false>, run),
  NORM_BACKWARD_ROWS(state, "split", 0, prepare<false>, run),
  NORM_ROWS(state, "chunks", QN_TRAIT_BATCH_INVARIANT, prepare<true>, run),
  NORM_BACKWARD_ROWS(state, "chunks", QN_TRAIT_BATCH_INVARIANT, prepare<true>, run),
  { "inference", QN_OP_BATCH_NORM_INFERENCE, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC,
    variants, nullptr, prepare<false>, nullptr, run, cuda_release },
};
CUDA_ENGINES(norm_split) = { row, sizeof row / sizeof *row };
