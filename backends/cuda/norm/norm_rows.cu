/* norm_rows.cu -- layer_norm and rms_norm, and their gradients, by contiguous rows, f16, bf16 and f32, that the registers of a warp, a
 * block or (gradients on sm_90) a cluster hold: each element is read once and written once.
 *
 *   y = (x - mean) rstd scale + shift + second       rms_norm: mean is 0
 *   with h = (x - mean) rstd, g = dy scale:  dx = rstd (g - mean g - h mean(g h))        rms_norm: without mean g
 *   dscale = sum dy h, dshift = sum dy:      per block in registers, then added up over the blocks (norm_parameters.cuh)
 *
 * Forward, a second tensor may be added, to x (the sum is also written if it has other users) or to y. Beside memory bandwidth the limit is
 * instructions per element, so nothing general is done for rows at one step in whole 16-byte words, with parameters of x's dtype or (WIDE)
 * of f32. Other rows (ODD) are loaded in smaller units, their parameters by element. Gradients have persistent blocks, one per SM, so that
 * a thread has the same columns of all its rows; of rows that are too long for that (TWICE) the elements are read again, from the caches.
 * Refused: rows that are longer, or not contiguous; tensors of several dtypes; parameters that vary from row to row. */
#include <quern/program.h>
#include "norm_follow.cuh"
#include "norm_layout.cuh"
#include "norm_moments.cuh"
#include "norm_parameters.cuh"
#include "norm_rows_backward.cuh"

/* Kinds of kernels: whole words with no second tensor, one added to x, one added to y; and those of the head. */
enum { ALONE, BEFORE, BEHIND, WIDE, ODD, TWICE };
enum { K = 4, MOST = 1024 };              /* forward: words of a thread, threads for a row, at most */

/* ---- words at any alignment --------------------------------------------------------------------------------------------------- */

/* Copies `bytes` bytes of a word, all of it if there are more, by pieces of `unit` bytes, of which they and the addresses are multiples. */
template <class T> __device__ __forceinline__ void copy_pieces(uint4 *to, const uint4 *from, int bytes)
{
#pragma unroll
  for (int i = 0; i < 16 / (int)sizeof(T); i++)
    if (i * (int)sizeof(T) < bytes) ((T *)to)[i] = ((const T *)from)[i];
}
__device__ __forceinline__ void odd_copy(uint4 *to, const uint4 *from, int unit, int bytes)
{
  if (unit == 16) copy_pieces<uint4>(to, from, bytes);
  else if (unit == 8) copy_pieces<uint2>(to, from, bytes);
  else if (unit == 4) copy_pieces<uint32_t>(to, from, bytes);
  else copy_pieces<uint16_t>(to, from, bytes);
}
__device__ __forceinline__ uint4 odd_load(const uint4 *from, int unit, int bytes)
{
  uint4 word = make_uint4(0, 0, 0, 0);
  odd_copy(&word, from, unit, bytes);
  return word;
}
/* n elements of a parameter, from element `at` on. */
template <int E> __device__ __forceinline__ void odd_parameter(float (&w)[E], const norm_args &a, int t, int at, int n)
{
  const eight q = eight_load(a.p[t], a.dtype[t], at, n);
#pragma unroll
  for (int e = 0; e < E; e++) w[e] = q.v[e];
}

/* How rows lie: at one step, in words of x, dy and y (elements of others); or, ODD, as numbered by up to 4 dims. */
struct rows : norm_args {
  int64_t  step[TENSORS];
  int32_t  rows, words, length;           /* words: of a row, 16 bytes each */
};
template <class A> struct odd : A {
  norm_items outer;
  int32_t  unit;
};

/* The row in tensor t: its offset (in elements); its first word. */
template <class A> __device__ __forceinline__ int64_t row_place(const A &a, int row, int t) { return row * a.step[t]; }
template <class A> __device__ __forceinline__ int64_t row_place(const odd<A> &a, int row, int t) { return a.outer.place(row, t); }
template <int dtype, class A> __device__ __forceinline__ uint4 *row_words(const A &a, int row, int t)
{
  return (uint4 *)a.p[t] + row_place(a, row, t);
}
template <int dtype, class A> __device__ __forceinline__ uint4 *row_words(const odd<A> &a, int row, int t)
{
  return (uint4 *)vector_place<dtype>(a.p[t], row_place(a, row, t));
}

/* ---- forward ------------------------------------------------------------------------------------------------------------------ */

struct rows_forward : rows {
  const void *second;
  void    *sum;                           /* NULL if it has no other user */
  int64_t  second_step;                   /* in words */
};
template <int kind> using forward_of = typename std::conditional<kind == ODD, odd<rows_forward>, rows_forward>::type;
template <int threads> constexpr int block_of = threads < 128 ? 128 : threads;

/* Moments of a thread's n elements, relative to the mean of its first word. left: elements of the row from the thread's first one on, if
 * it may end within a word. */
template <int dtype, bool centred, bool odd_rows, int threads, int K>
__device__ __forceinline__ moments measure(const uint4 (&x)[K], int mine, float n, float share, int left)
{
  constexpr int E = vector_per_16<dtype>;
  float from[1] = {}, s1[1] = {}, s2[1] = {}, v[E];
  if (centred) {
    vector_open<dtype>(v, 0, x[0]);
#pragma unroll
    for (int e = 0; e < E; e++) from[0] += v[e];
    from[0] = finite_or_0(odd_rows ? from[0] / (float)min(E, left) : from[0] * (1.f / E));
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (k * threads >= mine) break;
    if constexpr (!odd_rows) {
      add_word<dtype, centred>(x[k], from, s1, s2);
    } else {
      vector_open<dtype>(v, 0, x[k]);
#pragma unroll
      for (int e = 0; e < E; e++) {
        const float d = e < left - k * threads * E ? v[e] - from[0] : 0;
        s1[0] += d;
        s2[0] = fmaf(d, d, s2[0]);
      }
    }
  }
  return { centred ? from[0] + s1[0] * share : 0, centred ? s2[0] - s1[0] * s1[0] * share : s2[0], n };
}

template <int threads, int K, int dtype, int kind>
__global__ void __launch_bounds__(block_of<threads>, 1024 / block_of<threads>) in_registers(const __grid_constant__ forward_of<kind> a)
{
  constexpr int E = vector_per_16<dtype>, warps = threads / 32, together = block_of<threads> / threads;
  constexpr bool two = kind == BEFORE || kind == BEHIND;
  constexpr bool early = kind == ALONE && dtype != QN_F16;           /* load parameters early; otherwise registers do not suffice */
  __shared__ float4 of_warp[warps];
  /* the thread has words 0, threads, ... below `mine`; `left` elements from its first on */
  const int t = threadIdx.x % threads, row = blockIdx.x * together + threadIdx.x / threads, mine = a.words - t;
  const int left = kind == ODD ? a.length - t * E : mine * E;
  if (row >= a.rows) return;              /* whole warps leave, and whole blocks where a row takes a block */
  const uint4 *const other = (const uint4 *)a.second + row * a.second_step + t;
  const uint4 *const scales = (const uint4 *)a.p[SCALE], *const shifts = (const uint4 *)a.p[SHIFT];
  const auto bytes = [&](int k) { return (left - k * threads * E) * (16 / E); };            /* of word k, or more */
  uint4 x[K], u[K], scale[K], shift[K], *const sum = (uint4 *)a.sum + row * a.step[X] + t;
  const auto load = [&](const uint4 *from) {
#pragma unroll
    for (int k = 0; k < K; k++) {
      x[k] = make_uint4(0, 0, 0, 0);
      if constexpr (kind == ODD) x[k] = odd_load(from + k * threads, a.unit, bytes(k));
      else if (k * threads < mine) x[k] = from[k * threads];
      if (two && k * threads < mine) u[k] = other[k * threads];
    }
  };
  const auto add = [&] {                  /* rounded first: what is normalized is what is written */
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (k * threads >= mine) break;
      float v[E], w[E];
      vector_open<dtype>(v, 0, x[k]);
      vector_open<dtype>(w, 0, u[k]);
#pragma unroll
      for (int e = 0; e < E; e++) v[e] += w[e];
      x[k] = vector_close<dtype>(v, 0);
      if (a.sum) sum[k * threads] = x[k];
    }
  };
  load(row_words<dtype>(a, row, X) + t);
#pragma unroll
  for (int k = 0; k < K && early; k++) {
    if (k * threads < mine && scales) scale[k] = scales[t + k * threads];
    if (k * threads < mine && shifts) shift[k] = shifts[t + k * threads];
  }
  const int count = max(0, min((int)K, (mine + threads - 1) / threads));
  const float n = (float)(kind == ODD ? max(0, min(count * E, left - (count - 1) * (threads - 1) * E)) : count * E);
  const float share = count ? 1 / n : 0, all = threads > 32 || kind == ODD ? warp_sum(n) : (float)(a.words * E);
  if (kind == BEFORE) add();

  moments m;
  float unit = 1;                         /* of x; less than 1 where squares overflow otherwise */
#pragma unroll 1
  for (;;) {
    m = a.centred ? measure<dtype, true, kind == ODD, threads>(x, mine, n, share, left)
                  : measure<dtype, false, kind == ODD, threads>(x, mine, n, share, left);
    m = warp_join_lanes(m, all);
    if (threads > 32) {
      if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = m.pack();
      __syncthreads();
      const float about = finite_or_0(of_warp[0].x);
      float s1 = 0, s2 = 0;
#pragma unroll
      for (int w = 0; w < warps; w++) {
        const moments b = moments::unpack(of_warp[w]);
        const float d = b.mean - about, s = b.count * d;
        s1 += s;
        s2 += b.squares + s * d;
      }
      m.mean = about + s1 * a.inverse, m.squares = s2 - s1 * s1 * a.inverse;
    }
    if (dtype == QN_F16 || unit < 1 || !far_out(m.squares)) break;
    unit = FAR_UNIT;
#pragma unroll
    for (int k = 0; k < K; k++) {
      float v[E];
      vector_open<dtype>(v, 0, x[k]);
#pragma unroll
      for (int e = 0; e < E; e++) v[e] *= FAR_UNIT;
      x[k] = vector_close<dtype>(v, 0);
    }
    if (threads > 32) __syncthreads();    /* of_warp has been read */
  }
  /* What is left is written twice: what the rare form needs would keep registers from the usual one. */
  const auto finish = [&](auto far, float scaled, float mean, float rstd) {
    constexpr bool again = decltype(far)::value;    /* parameters were loaded too long ago to be kept */
    const auto parameter = [&](float (&w)[E], int p, const uint4 &loaded, int k) {
      if constexpr (kind == WIDE) vector_load_whole<QN_F32>(w, a.p[p], (t + k * threads) * E);
      else if constexpr (kind == ODD) odd_parameter(w, a, p, (t + k * threads) * E, min(E, left - k * threads * E));
      else vector_open<dtype>(w, 0, early && !again ? loaded : ((const uint4 *)a.p[p])[t + k * threads]);
    };
    uint4 *to = row_words<dtype>(a, row, Y) + t;
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (k * threads >= mine) break;
      float v[E], w[E];
      vector_open<dtype>(v, 0, x[k]);
#pragma unroll
      for (int e = 0; e < E; e++) v[e] = again ? far_normalized(v[e], scaled, mean, rstd) : (v[e] - mean) * rstd;
      if (scales) {
        parameter(w, SCALE, scale[k], k);
#pragma unroll
        for (int e = 0; e < E; e++) v[e] *= w[e];
      }
      if (shifts) {
        parameter(w, SHIFT, shift[k], k);
#pragma unroll
        for (int e = 0; e < E; e++) v[e] += w[e];
      }
      if (kind == BEHIND) {
        vector_open<dtype>(w, 0, u[k]);
#pragma unroll
        for (int e = 0; e < E; e++) v[e] += w[e];
      }
      const uint4 word = vector_close<dtype>(v, 0);
      if constexpr (kind == ODD) odd_copy(to + k * threads, &word, a.unit, bytes(k));
      else to[k * threads] = word;
    }
  };
  float mean = m.mean, rstd = 1 / sqrtf(m.squares * a.inverse + a.eps * unit * unit);
  if (dtype != QN_F16 && unit < 1) {      /* x as it is: in the unit of squares its small elements have lost their digits */
    mean *= 1 / FAR_UNIT, rstd *= FAR_UNIT;
    if (t == 0) a.put(MEAN, row_place(a, row, MEAN), mean), a.put(RSTD, row_place(a, row, RSTD), rstd);
    load(kind == BEFORE && a.sum ? sum : row_words<dtype>(a, row, X) + t);
    if (kind == BEFORE && !a.sum) add();
    const float half = far_unit(mean, rstd);
    finish(std::true_type(), half, mean, rstd);
    return;
  }
  finish(std::false_type(), 1, mean, rstd);
  if (t == 0) a.put(MEAN, row_place(a, row, MEAN), mean), a.put(RSTD, row_place(a, row, RSTD), rstd);
}

struct forward_state : norm_plan {
  odd<rows_forward> a;
  int32_t  second, sum;                   /* value numbers of the request; -1: absent */
};

/* Fuses an addition behind y, or in front of x; returns which. */
static int read_second(const qn_request *r, forward_state *s, qn_prepared *out)
{
  int32_t *const number = s->of.number;
  norm_follower behind;
  norm_tail tail = {};
  qn_request two = *r;
  if (two.n_ops > 2) two.n_ops = 2;
  const bool more = norm_follower_read(&behind, &two, number[Y], true, &tail, out);
  s->second = behind.second;
  if (more && s->second >= 0 && !tail.relu && behind.chain.steps.n == 0) {
    number[Y] = behind.chain.out;
    return BEHIND;
  }
  s->second = -1, out->n_ops = 1;
  qn_program before;
  int32_t term[2];
  if (r->n_ops < 2 || qn_program_read_before(&before, r, 1, 1, number[X]) || !qn_program_is_sum(&before, r, term)) return ALONE;
  if (r->value[term[0]].align < 16 || r->value[term[1]].align < 16) return ALONE;
  if (before.step[0].write) s->sum = number[X];
  number[X] = term[0], s->second = term[1];
  out->n_ops = 2;
  return BEFORE;
}

#define KERNELS(dtype, kind) \
  { (const void *)in_registers<32, 1, dtype, kind>,  (const void *)in_registers<32, K, dtype, kind>, \
    (const void *)in_registers<128, K, dtype, kind>, (const void *)in_registers<256, K, dtype, kind>, \
    (const void *)in_registers<512, K, dtype, kind>, (const void *)in_registers<1024, K, dtype, kind> }
#define KINDS(dtype) { KERNELS(dtype, ALONE), KERNELS(dtype, BEFORE), KERNELS(dtype, BEHIND), KERNELS(dtype, WIDE), KERNELS(dtype, ODD) }
static const void *const forward_kernels[3][5][6] = { KINDS(QN_F32), KINDS(QN_BF16), KINDS(QN_F16) };

/* What both directions read; *kind: ALONE, WIDE or ODD. */
template <class A> static qn_status read_rows(const qn_request *r, norm_plan *s, odd<A> *a, int *kind, qn_prepared *out)
{
  norm_problem &p = s->of;
  bool wide;
  const qn_status status = norm_open(r, 0, &p, a, out);
  if (status) return status;
  *kind = !norm_word_rows(r, &p, a->step, &wide) ? ODD : wide ? WIDE : ALONE;
  a->unit = norm_row_unit(r, &p);
  for (int t = X; t <= DY; t++)
    if (p.number[t] >= 0 && p.dtype[t] != p.dtype[X])
      return qn_refuse(out, "x, y and dy of one dtype", norm_names[t], qn_kit_name(p.dtype[X]), "%s", qn_kit_name(p.dtype[t]));
  if (!norm_rows(&p)) return qn_refuse(out, "contiguous rows, and parameters alike for all of them", "x", "", "%s", "another layout");
  if (!norm_number(p.outer, 1, &a->outer))
    return qn_refuse(out, "rows numbered by up to 4 dims that do not merge", "x", "4", "%d", p.outer.rank);
  if (p.groups > INT32_MAX || p.length > INT32_MAX / 16)
    return qn_refuse(out, "fewer than 2^31 rows, of fewer than 2^27 elements", "x", "", "%lld of %lld", (long long)p.groups,
                     (long long)p.length);
  a->rows = (int32_t)p.groups, a->length = (int32_t)p.length, a->words = (int32_t)qn_ceil_div(p.length * p.bytes, 16);
  s->cluster = 1;
  return QN_OK;
}

static qn_status prepare_forward(const qn_request *r, qn_prepared *out)
{
  forward_state s = {};
  const norm_problem &p = s.of;
  int kind;
  const qn_status status = read_rows(r, &s, &s.a, &kind, out);
  if (status) return status;
  if (s.a.words > MOST * K)
    return qn_refuse(out, "rows that a block's registers hold", "x", "at most 32768 elements (f32: 16384)", "%lld", (long long)p.length);
  s.second = s.sum = -1;
  if (kind == ALONE) kind = read_second(r, &s, out);
  s.a.second_step = s.a.step[kind == BEFORE ? X : Y];
  static const int threads[6] = { 32, 32, 128, 256, 512, 1024 };
  int size = s.a.words > 32;
  while (size && s.a.words > threads[size] * K) size++;
  s.kernel = forward_kernels[norm_of_dtype(p.dtype[X], 0, 1, 2)][kind][size];
  s.threads = (uint32_t)(threads[size] < 128 ? 128 : threads[size]);
  s.blocks = (uint32_t)qn_ceil_div(p.groups, s.threads / (uint32_t)threads[size]);
  /* A block of 1024 threads is alone on its SM: nothing is loaded while it reduces. */
  const double rate = (threads[size] < 1024 ? 4200 : 2800) / (kind != ODD ? 1 : s.a.unit >= 8 ? 2 : s.a.unit == 4 ? 3 : 5);
  out->estimate = 2000 + p.moved * (kind == BEFORE || kind == BEHIND ? 1.5 : 1) / rate;
  return cuda_keep(out, &s, sizeof s);
}

static qn_status run_forward(const qn_prepared *p, const qn_launch *launch)
{
  const forward_state *s = (const forward_state *)p->state;
  odd<rows_forward> a = s->a;
  s->point(&a, launch);
  if (s->second >= 0) a.second = launch->ptr[s->second];
  if (s->sum >= 0) a.sum = launch->ptr[s->sum];
  void *arguments[] = { &a };
  return s->launch_with(arguments, a, launch, "norm_rows");
}

/* ---- the gradient ------------------------------------------------------------------------------------------------------------- */

struct rows_back : rows, row_division {
  int64_t  hop[DY + 1];                   /* words, to the next row of the same threads */
};
template <int kind> using back_of = typename std::conditional<kind >= ODD, odd<rows_back>, rows_back>::type;

/* Words of a row that a thread holds, raw. */
template <int K> struct held_row {
  uint4 x[K], dy[K];
  float mean, rstd;
};

/* Writes the block's column sums from word `first` on, added over its row groups in order; stage: shared memory for all its words. */
template <int threads, int K, int E>
__device__ __forceinline__ void write_part(float *to, const float (&sum)[K][E], float4 *stage, int first, int words)
{
  constexpr int groups = BLOCK / threads, Q = E / 4;
  const int t = threadIdx.x % threads, group = threadIdx.x / threads;
  if (groups == 1) {
#pragma unroll
    for (int k = 0; k < K; k++)
      if (first + t + k * threads < words) vector_store_whole<QN_F32>(sum[k], to, (int64_t)(first + t + k * threads) * E);
    return;
  }
  __syncthreads();                        /* [groups, quarters of a word, words] */
#pragma unroll
  for (int k = 0; k < K; k++)
#pragma unroll
    for (int q = 0; q < Q; q++) {
      const float *v = &sum[k][q * 4];
      stage[((group * Q + q) * K + k) * threads + t] = make_float4(v[0], v[1], v[2], v[3]);
    }
  __syncthreads();
  for (int j = threadIdx.x; j < Q * words; j += BLOCK) {
    float4 all = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int g = 0; g < groups; g++) {
      const float4 v = stage[(g * Q + j % Q) * K * threads + j / Q];
      all.x += v.x, all.y += v.y, all.z += v.z, all.w += v.w;
    }
    ((float4 *)to)[j] = all;
  }
}

/* A block handles 512 / threads rows at a time. While a row is reduced the next one's loads are in flight, unless it is read twice. */
template <int threads, int dtype, bool centred, bool cluster, int kind>
__global__ void __launch_bounds__(BLOCK, 1) gradient(const __grid_constant__ back_of<kind> a)
{
  constexpr bool odd_rows = kind >= ODD, twice = kind == TWICE, early = dtype != QN_F32 && !twice;   /* early: before this one is reduced */
  constexpr bool stays = early && kind == ALONE;            /* scale is loaded before all rows, and stays in registers */
  constexpr int E = vector_per_16<dtype>, K = (twice ? 2 : 1) * EACH / E, HELD = twice ? 1 : K, groups = BLOCK / threads;
  __shared__ float4 stage[groups > 1 ? BLOCK * EACH / 4 : 1];
  const int t = threadIdx.x % threads, group = threadIdx.x / threads;
  int rank;
  const int job = row_enter<cluster>(a.parts, &rank), first = rank * threads * K, mine = a.words - first - t, step = a.jobs * groups;
  int row = job * groups + group, coming = row, turn = 0;
  const uint4 *x = row_words<dtype>(a, row, X) + first + t, *dy = row_words<dtype>(a, row, DY) + first + t;
  uint4 *dx = row_words<dtype>(a, row, Y) + first + t, scale[K];
  float dscale[K][E] = {}, dshift[K][E] = {};
  held_row<HELD> next;
  const auto bytes = [&](int k) { return (a.length - (first + t + k * threads) * E) * (16 / E); };           /* of word k, or more */
  const auto load = [&](held_row<HELD> &to, int k) {        /* word k */
    uint4 &to_x = to.x[k % HELD], &to_dy = to.dy[k % HELD];
    if constexpr (odd_rows) to_x = odd_load(x + k * threads, a.unit, bytes(k)), to_dy = odd_load(dy + k * threads, a.unit, bytes(k));
    else if (k * threads < mine) to_x = x[k * threads], to_dy = dy[k * threads];
  };
  const auto begin = [&](int row) {       /* loads what is held of a row, and steps to the next one where that is known */
    if constexpr (odd_rows) x = row_words<dtype>(a, row, X) + first + t, dy = row_words<dtype>(a, row, DY) + first + t;
#pragma unroll
    for (int k = 0; k < HELD && !twice; k++) load(next, k);
    next.mean = centred ? a.statistic(MEAN, row_place(a, row, MEAN)) : 0;
    next.rstd = a.statistic(RSTD, row_place(a, row, RSTD));
    if (!odd_rows) x += a.hop[X], dy += a.hop[DY];
  };
  const auto load_next = [&] {
    if (coming < a.rows) begin(coming);
    coming += step;
  };
  if (!twice) load_next();
  if (stays) parameter_words<dtype>(scale, a.p[SCALE], 1, first + t, threads, mine > 0 ? (mine + threads - 1) / threads : 0);
#pragma unroll 1
  for (bool begun = false; row < a.rows; row += step, dx += a.hop[Y], turn ^= 1, begun = true) {
    if (twice) begin(row);
    if constexpr (odd_rows) dx = row_words<dtype>(a, row, Y) + first + t;
    held_row<HELD> now = next;
    if (early) load_next();
    float h[HELD][E], g[HELD][E], sum = 0, along = 0;
    if (stays) parameter_stay(scale);
    /* h, dy and scale of the elements of word k */
    const auto open = [&](int k, float (&h)[E], float (&g)[E], float (&w)[E]) {
      if (twice) load(now, k);
      vector_open<dtype>(h, 0, now.x[k % HELD]);
      vector_open<dtype>(g, 0, now.dy[k % HELD]);
      if constexpr (odd_rows) {
#pragma unroll
        for (int e = 0; e < E; e++) w[e] = 1;
        if (a.p[SCALE]) odd_parameter(w, a, SCALE, (first + t + k * threads) * E, min(E, bytes(k) / (16 / E)));
      } else if constexpr (kind == WIDE) {
        vector_load_whole<QN_F32>(w, a.p[SCALE], (int64_t)(first + t + k * threads) * E);
      } else {
        if (!stays) parameter_word<dtype>(scale[k], a.p[SCALE], 1, first + t + k * threads);
        vector_open<dtype>(w, 0, scale[k]);
      }
#pragma unroll
      for (int e = 0; e < E; e++) {
        h[e] = (h[e] - (centred ? now.mean : 0)) * now.rstd;
        if (odd_rows && e * (16 / E) >= bytes(k)) h[e] = 0;           /* beyond the row: -mean rstd may be infinite, and dy is 0 there */
      }
    };
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (k * threads >= mine) break;
      float w[E], (&hk)[E] = h[k % HELD], (&gk)[E] = g[k % HELD];
      open(k, hk, gk, w);
#pragma unroll
      for (int e = 0; e < E; e++) {
        dscale[k][e] = fmaf(gk[e], hk[e], dscale[k][e]);
        if (centred) dshift[k][e] += gk[e];
        gk[e] *= w[e];
        if (centred) sum += gk[e];
        along = fmaf(gk[e], hk[e], along);
      }
    }
    const float2 s = row_sums<threads, cluster, centred>(sum, along, a.parts, rank, begun, turn);
    const float c0 = -now.rstd * (s.x * a.inverse), c1 = -now.rstd * (s.y * a.inverse);
#pragma unroll(twice ? 1 : K)
    for (int k = 0; k < K; k++) {
      if (k * threads >= mine) break;
      float w[E], (&hk)[E] = h[k % HELD], (&gk)[E] = g[k % HELD];
      if (twice) {
        open(k, hk, gk, w);
#pragma unroll
        for (int e = 0; e < E; e++) gk[e] *= w[e];
      }
#pragma unroll
      for (int e = 0; e < E; e++) gk[e] = fmaf(gk[e], now.rstd, centred ? fmaf(hk[e], c1, c0) : hk[e] * c1);
      const uint4 word = vector_close<dtype>(gk, 0);
      if constexpr (odd_rows) odd_copy(dx + k * threads, &word, a.unit, bytes(k));
      else dx[k * threads] = word;
    }
    if (!early && !twice) load_next();
  }
#if __CUDA_ARCH__ >= 900
  grid_dependents_launch();
#endif
  if (a.part[0]) write_part<threads>(a.part[0] + job * a.part_step, dscale, stage, first, a.words);
  if (centred && a.part[1]) write_part<threads>(a.part[1] + job * a.part_step, dshift, stage, first, a.words);
}

struct gradient_state : row_plan {
  odd<rows_back> a;
};

#define OF(threads, dtype, centred, cluster, kind) (const void *)gradient<threads, dtype, centred, cluster, kind>
#define GRADIENTS(dtype, centred, kind) \
  { OF(32, dtype, centred, false, kind),  OF(64, dtype, centred, false, kind),  OF(128, dtype, centred, false, kind), \
    OF(256, dtype, centred, false, kind), OF(512, dtype, centred, false, kind), OF(512, dtype, centred, true, kind) }
#define DTYPE(dtype, kind) { GRADIENTS(dtype, false, kind), GRADIENTS(dtype, true, kind) }
#define ODD_GRADIENTS(dtype, centred) \
  { OF(32, dtype, centred, false, ODD),    OF(128, dtype, centred, false, ODD), OF(512, dtype, centred, false, ODD), \
    OF(512, dtype, centred, false, TWICE), OF(512, dtype, centred, true, TWICE) }
#define ODD_DTYPE(dtype) { ODD_GRADIENTS(dtype, false), ODD_GRADIENTS(dtype, true) }
static const void *const gradients[5][2][6] = { DTYPE(QN_F32, ALONE), DTYPE(QN_BF16, ALONE), DTYPE(QN_F16, ALONE), DTYPE(QN_BF16, WIDE),
                                                DTYPE(QN_F16, WIDE) };
static const void *const odd_gradients[3][2][5] = { ODD_DTYPE(QN_F32), ODD_DTYPE(QN_BF16), ODD_DTYPE(QN_F16) };

/* Were a dim of 1 longer, would the rows still lie at one step, in whole words? So a row has the same kind alone as among others. */
static bool lone_rows_whole(const qn_request *r, const norm_problem *p)
{
  const uint64_t mask = ((const qn_norm *)r->op[0].attr)->mask;
  for (int t = X; t < TENSORS; t++) {
    if (p->number[t] < 0 || (t > DY && t < MEAN)) continue;
    const qn_value *v = &r->value[p->number[t]];
    for (int d = v->rank - 1, inner = -1; d >= 0; d--) {
      if (mask >> d & 1) continue;
      if (v->dim[d] == 1) {
        if (t <= DY && v->stride[d] * p->bytes % 16) return false;
        if (inner >= 0 && v->stride[d] != v->stride[inner] * v->dim[inner] && v->stride[d] != v->stride[inner]) return false;
      }
      inner = d;
    }
  }
  return true;
}

static qn_status prepare_gradient(const qn_request *r, qn_prepared *out)
{
  gradient_state s = {};
  rows_back &a = s.a;
  const norm_problem &p = s.of;
  const bool clusters = cuda_has_clusters(r->device);
  int kind;
  qn_status status = read_rows(r, &s, &s.a, &kind, out);
  if (status) return status;
  if (!lone_rows_whole(r, &p)) kind = ODD;
  if (p.length > BLOCK * EACH * (clusters && kind != ODD ? MAX_PARTS : 1)) kind = TWICE;
  status = row_divide(r, p, BLOCK * EACH * (kind == TWICE ? 2 : 1), &a, out);
  if (status) return status;
  /* the fewest threads to a row of those that there are kernels for */
  int threads = kind == TWICE ? BLOCK : 32, size = kind == TWICE ? 3 : 0;
  for (; threads < BLOCK && p.length > threads * EACH; threads *= kind == ODD ? 4 : 2) size++;
  size += a.parts > 1;
  const int dtype = norm_of_dtype(p.dtype[X], 0, 1, 2);
  s.kernel = kind >= ODD ? odd_gradients[dtype][p.centred][size] : gradients[dtype + (kind == WIDE ? 2 : 0)][p.centred][size];
  s.share_rows(r, threads, a.words * (16 / p.bytes), &a, out);
  for (int t = X; t <= DY; t++) a.hop[t] = (int64_t)a.jobs * (BLOCK / threads) * a.step[t];
  out->estimate = 5000 + p.moved / (kind < ODD ? 4000 : kind == TWICE || s.a.unit < 8 ? 600 : 2000);
  return cuda_keep(out, &s, sizeof s);
}

static qn_status run_gradient(const qn_prepared *p, const qn_launch *launch)
{
  const gradient_state *s = (const gradient_state *)p->state;
  return s->run(s->a, launch, "norm_rows");
}

/* The gradients' sums depend on how many blocks the device holds, so they are not portable. */
#define ROW(op, traits, prepare, run) { "rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | traits, \
                                        nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW(QN_OP_LAYER_NORM, QN_TRAIT_PORTABLE, prepare_forward, run_forward),
  ROW(QN_OP_RMS_NORM, QN_TRAIT_PORTABLE, prepare_forward, run_forward),
  ROW(QN_OP_LAYER_NORM_BACKWARD, 0, prepare_gradient, run_gradient),
  ROW(QN_OP_RMS_NORM_BACKWARD, 0, prepare_gradient, run_gradient),
};
CUDA_ENGINES(norm_rows) = { row, sizeof row / sizeof *row };
