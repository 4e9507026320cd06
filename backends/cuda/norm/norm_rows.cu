/* norm_rows.cu -- layer_norm and rms_norm, and their gradients, by contiguous rows, f16, bf16 and f32, that the registers of a warp, a
 * block or (gradients on sm_90) a cluster hold: each element is read once and written once.
 *
 * Forward, a second tensor may be added, to x (the sum is also written if it has other users) or to y. Beside memory bandwidth the limit is
 * instructions per element, so nothing general is done for rows at one step in whole 16-byte words, with parameters of x's dtype or (WIDE)
 * of f32. Other rows (ODD) are loaded in smaller units, their parameters by element. Gradients have persistent blocks, one per SM, so that
 * a thread has the same columns of all its rows, whose dscale and dshift it sums in registers; then they are added up over the blocks
 * (norm_sums.cuh). Of rows that are too long for that (TWICE) the elements are read again, from the caches.
 * Refused: rows that are longer, or not contiguous; parameters that vary from row to row; forward, tensors of several dtypes. */
#include <quern/program.h>
#include "norm_follow.cuh"
#include "norm_sums.cuh"

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
/* Of tensors of several dtypes: n elements from the row's element `at` on, as floats; out of line, where registers are short. */
static __device__ __noinline__ uint4 any_load(const uint4 *row, uint32_t dtype, int at, int n)
{
  float v[4];
  vector_load(v, row, dtype3(dtype), at, 1, n);
  return vector_close<QN_F32>(v, 0);
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

  /* The row in tensor t: its offset; its first word. dtype: 0 if not known */
  __device__ __forceinline__ int64_t place(int row, int t) const { return row * step[t]; }
  template <int> __device__ __forceinline__ uint4 *begin(int row, int t) const { return (uint4 *)p[t] + row * step[t]; }
};
template <class A> struct odd : A {
  norm_items outer;
  int32_t  unit;

  __device__ __forceinline__ int64_t place(int row, int t) const { return outer.place(row, t); }
  template <int of> __device__ __forceinline__ uint4 *begin(int row, int t) const
  {
    return (uint4 *)((char *)this->p[t] + place(row, t) * ((of ? of : this->dtype[t]) == QN_F32 ? 4 : 2));
  }
};

/* ---- forward ------------------------------------------------------------------------------------------------------------------ */

struct rows_forward : rows {
  const void *second;
  void    *sum;                           /* NULL if it has no other user */
  int64_t  second_step;                   /* in words */
};
template <int kind> using forward_of = typename std::conditional<kind == ODD, odd<rows_forward>, rows_forward>::type;
template <int threads> constexpr int block_of = threads < 128 ? 128 : threads;

/* Moments of a thread's n elements (far: in units of FAR_UNIT), relative to the mean of its first word. left: elements of the row from the
 * thread's first one on, if it may end within a word. */
template <int dtype, bool centred, bool odd_rows, bool far, int threads, int K>
__device__ __forceinline__ moments measure(const uint4 (&x)[K], int mine, float n, int left)
{
  constexpr int E = vector_per_16<dtype>;
  float from = 0, s1 = 0, s2 = 0, v[E];
  const auto open = [&](int k) {
    vector_open<dtype>(v, 0, x[k]);
#pragma unroll
    for (int e = 0; e < E && far; e++) v[e] *= FAR_UNIT;
  };
  if (centred) {
    open(0);
#pragma unroll
    for (int e = 0; e < E; e++) from += v[e];
    from = finite_or_0(odd_rows ? from / (float)min(E, left) : from * (1.f / E));
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (k * threads >= mine) break;
    open(k);
#pragma unroll
    for (int e = 0; e < E; e++) {
      const float d = odd_rows && e >= left - k * threads * E ? 0 : centred ? v[e] - from : v[e];
      if (centred) s1 += d;
      s2 = fmaf(d, d, s2);
    }
  }
  return moments_about(from, s1, s2, n, centred);
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
  uint4 x[K], u[K], scale[K], shift[K];
  const uint4 *const from = a.template begin<dtype>(row, X) + t;
#pragma unroll
  for (int k = 0; k < K; k++) {
    x[k] = make_uint4(0, 0, 0, 0);
    if constexpr (kind == ODD) x[k] = odd_load(from + k * threads, a.unit, bytes(k));
    else if (k * threads < mine) x[k] = from[k * threads];
    if (two && k * threads < mine) u[k] = other[k * threads];
  }
#pragma unroll
  for (int k = 0; k < K && early; k++) {
    if (k * threads < mine && scales) scale[k] = scales[t + k * threads];
    if (k * threads < mine && shifts) shift[k] = shifts[t + k * threads];
  }
  const int count = max(0, min((int)K, (mine + threads - 1) / threads));
  const float n = (float)(kind == ODD ? max(0, min(count * E, left - (count - 1) * (threads - 1) * E)) : count * E);
  const float all = threads > 32 || kind == ODD ? warp_sum(n) : (float)(a.words * E);
  if (kind == BEFORE) {                   /* rounded first: what is normalized is what is written */
    uint4 *const sum = (uint4 *)a.sum + row * a.step[X] + t;
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
  }

  moments m;
  float unit = 1;                         /* of what is measured; less than 1 where squares overflow otherwise */
  const auto measured = [&](auto far) {
    return a.centred ? measure<dtype, true, kind == ODD, decltype(far)::value, threads>(x, mine, n, left)
                     : measure<dtype, false, kind == ODD, decltype(far)::value, threads>(x, mine, n, left);
  };
#pragma unroll 1
  for (;;) {
    m = dtype != QN_F16 && unit < 1 ? measured(std::true_type()) : measured(std::false_type());
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
    parameter_stay(x);
    if (threads > 32) __syncthreads();    /* of_warp has been read */
  }
  /* x is as it was: in the unit of squares its small elements would have lost their digits */
  float mean[1] = { m.mean * (unit < 1 ? 1 / FAR_UNIT : 1) }, rstd[1] = { 1 / sqrtf(m.squares * a.inverse + a.eps * unit * unit) * unit };
  if (t == 0) a.put(MEAN, a.place(row, MEAN), mean[0]), a.put(RSTD, a.place(row, RSTD), rstd[0]);
  unit = dtype != QN_F16 ? far_unit(mean, rstd) : 1;
  const auto parameter = [&](float (&w)[E], int p, const uint4 &loaded, int k) {
    if constexpr (kind == WIDE) vector_load_whole<QN_F32>(w, a.p[p], (t + k * threads) * E);
    else if constexpr (kind == ODD) odd_parameter(w, a, p, (t + k * threads) * E, min(E, left - k * threads * E));
    else vector_open<dtype>(w, 0, early ? loaded : ((const uint4 *)a.p[p])[t + k * threads]);
  };
  uint4 *const to = a.template begin<dtype>(row, Y) + t;
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (k * threads >= mine) break;
    float v[E], w[E];
    vector_open<dtype>(v, 0, x[k]);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = dtype != QN_F16 ? far_normalized(v[e], unit, mean[0], rstd[0]) : (v[e] - mean[0]) * rstd[0];
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
}

struct forward_state : norm_plan {
  odd<rows_forward> a;
  int32_t  second, sum;                   /* value numbers of the request; -1: absent */

  void bind(rows_forward *to, const qn_launch *launch) const
  {
    if (second >= 0) to->second = launch->ptr[second];
    if (sum >= 0) to->sum = launch->ptr[sum];
  }
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
template <int dtype> static const void *const forward_kernels[5][6] = {
  KERNELS(dtype, ALONE), KERNELS(dtype, BEFORE), KERNELS(dtype, BEHIND), KERNELS(dtype, WIDE), KERNELS(dtype, ODD)
};

/* What both directions read; *kind: ALONE, WIDE or ODD. */
template <class A> static qn_status read_rows(const qn_request *r, norm_plan *s, odd<A> *a, int *kind, qn_prepared *out)
{
  norm_problem &p = s->of;
  bool wide;
  const qn_status status = norm_open(r, 0, &p, a, out);
  if (status) return status;
  *kind = !norm_word_rows(r, &p, a->step, &wide) ? ODD : wide ? WIDE : ALONE;
  a->unit = norm_row_unit(r, &p);
  if (!norm_rows(&p)) return qn_refuse(out, "contiguous rows, and parameters alike for all of them", "x", "", "%s", "another layout");
  if (!norm_number(p.outer, 1, &a->outer))
    return qn_refuse(out, "rows numbered by up to 4 dims that do not merge", "x", "4", "%d", p.outer.rank);
  if (p.groups > INT32_MAX || p.length > INT32_MAX / 16)
    return qn_refuse(out, "fewer than 2^31 rows, of fewer than 2^27 elements", "x", "", "%lld of %lld", (long long)p.groups,
                     (long long)p.length);
  a->rows = (int32_t)p.groups, a->length = (int32_t)p.length, a->words = (int32_t)qn_ceil_div(p.length, a->unit ? 16 / p.bytes : 4);
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
  if (!s.a.unit) return qn_refuse(out, "x and y of one dtype", "y", qn_kit_name(p.dtype[X]), "%s", qn_kit_name(p.dtype[Y]));
  if (s.a.words > MOST * K)
    return qn_refuse(out, "rows that a block's registers hold", "x", "at most 32768 elements (f32: 16384)", "%lld", (long long)p.length);
  s.second = s.sum = -1;
  if (kind == ALONE) kind = read_second(r, &s, out);
  s.a.second_step = s.a.step[kind == BEFORE ? X : Y];
  static const int threads[6] = { 32, 32, 128, 256, 512, 1024 };
  int size = s.a.words > 32;
  while (size && s.a.words > threads[size] * K) size++;
  s.kernel = cuda_by_dtype(p.dtype[X], [&](auto d) { return forward_kernels<d()>[kind][size]; });
  s.threads = (uint32_t)(threads[size] < 128 ? 128 : threads[size]);
  s.blocks = (uint32_t)qn_ceil_div(p.groups, s.threads / (uint32_t)threads[size]);
  /* A block of 1024 threads is alone on its SM: nothing is loaded while it reduces. */
  const double rate = (threads[size] < 1024 ? 4200 : 2800) / (kind != ODD ? 1 : s.a.unit >= 8 ? 2 : s.a.unit == 4 ? 3 : 5);
  out->estimate = 2000 + p.moved * (kind == BEFORE || kind == BEHIND ? 1.5 : 1) / rate;
  return cuda_keep(out, &s, sizeof s);
}

/* ---- the gradient ------------------------------------------------------------------------------------------------------------- */

enum { BLOCK = 512, EACH = 16, MAX_PARTS = 8 };           /* threads of a block; elements of a thread, read once; blocks of a row */

struct rows_back : rows {
  float   *part[2];                       /* partial sums of dscale and dshift; NULL: not wanted */
  int64_t  part_step;                     /* between blocks (or clusters) */
  int32_t  parts, jobs;                   /* blocks for a row; blocks, or clusters, that share the rows */
  int64_t  hop[DY + 1];                   /* words, to the next row of the same threads */
};
template <int kind> using back_of = typename std::conditional<kind >= ODD, odd<rows_back>, rows_back>::type;

/* Words of a row that a thread holds, raw. */
template <int K> struct held_row { uint4 x[K], dy[K]; float mean, rstd; };

/* A row's sums (of along alone, unless both) over its warps, in all its blocks. turn: 0 and 1 alternate. A row within a block uses a named
 * barrier. begun: the cluster has already synchronised since the block's arrival. */
template <int threads, bool cluster, bool both>
__device__ __forceinline__ float2 row_sums(float sum, float along, int parts, int rank, bool begun, int turn)
{
  constexpr int warps = threads / 32, groups = BLOCK / threads;
  __shared__ float2 of_warp[2][BLOCK / 32];
  if (both) sum = warp_sum(sum);
  along = warp_sum(along);
  if (threads == 32) return make_float2(sum, along);
  const int group = threadIdx.x / threads, warp = threadIdx.x % threads / 32;
#if __CUDA_ARCH__ >= 900
  if (cluster) {
    __shared__ float4 of_cluster[2][warps * MAX_PARTS];
    const int to = threadIdx.x % 32;
    if (!begun) cluster_wait();
    if (to < parts) cluster_store(cluster_address(shared_address(&of_cluster[turn][rank * warps + warp]), to), sum, along, 0, 0);
    cluster_sync();
    sum = along = 0;
    for (int i = to; i < warps * parts; i += 32) sum += of_cluster[turn][i].x, along += of_cluster[turn][i].y;
    return make_float2(warp_sum(sum), warp_sum(along));
  }
#endif
  if (threadIdx.x % 32 == 0) of_warp[turn][group * warps + warp] = make_float2(sum, along);
  group_sync(groups > 1 ? 1 + group : 0, threads);
  sum = along = 0;
#pragma unroll 4
  for (int w = 0; w < warps; w++) {
    const float2 s = of_warp[turn][group * warps + w];
    sum += s.x, along += s.y;
  }
  return make_float2(sum, along);
}

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
  constexpr bool odd_rows = kind >= ODD, twice = kind == TWICE, early = dtype && dtype != QN_F32 && !twice;   /* before this is reduced */
  constexpr bool stays = early && kind == ALONE;            /* scale is loaded before all rows, and stays in registers */
  constexpr int held = dtype ? dtype : QN_F32;              /* 0: tensors of several dtypes, whose elements are held as floats */
  constexpr int E = vector_per_16<held>, K = (twice ? 2 : 1) * EACH / E, HELD = twice ? 1 : K, groups = BLOCK / threads;
  __shared__ float4 stage[groups > 1 ? BLOCK * EACH / 4 : 1];
  const int t = threadIdx.x % threads, group = threadIdx.x / threads;
  int rank = 0, job = blockIdx.x;
#if __CUDA_ARCH__ >= 900
  if (cluster) rank = (int)cluster_rank(), cluster_arrive(), job = blockIdx.x / (uint32_t)a.parts;
#endif
  const int first = rank * threads * K, mine = a.words - first - t, step = a.jobs * groups;
  int row = job * groups + group, coming = row, turn = 0;
  const auto begins = [&](int row, int of) { return a.template begin<dtype>(row, of) + (dtype ? first + t : 0); };
  const uint4 *x = begins(row, X), *dy = begins(row, DY);
  uint4 *dx = begins(row, Y), scale[K];
  float dscale[K][E] = {}, dshift[K][E] = {};
  held_row<HELD> next;
  const auto at = [&](int k) { return (first + t + k * threads) * E; };           /* the first element of word k */
  const auto left = [&](int k) { return a.length - at(k); };                      /* its elements, or more */
  const auto odd_word = [&](const uint4 *from, int k, int of) {
    if constexpr (odd_rows && dtype) return odd_load(from + k * threads, a.unit, left(k) * (16 / E));
    if constexpr (twice) return any_load(from, a.dtype[of], at(k), min(E, left(k)));
    float v[E];
    vector_load(v, from, dtype3(a.dtype[of]), at(k), 1, min(E, left(k)));
    return vector_close<held>(v, 0);
  };
  const auto load = [&](held_row<HELD> &to, int k) {        /* word k */
    uint4 &to_x = to.x[k % HELD], &to_dy = to.dy[k % HELD];
    if constexpr (odd_rows) to_x = odd_word(x, k, X), to_dy = odd_word(dy, k, DY);
    else if (k * threads < mine) to_x = x[k * threads], to_dy = dy[k * threads];
  };
  const auto begin = [&](int row) {       /* loads what is held of a row, and steps to the next one where that is known */
    if constexpr (odd_rows) x = begins(row, X), dy = begins(row, DY);
#pragma unroll
    for (int k = 0; k < HELD && !twice; k++) load(next, k);
    next.mean = centred ? a.statistic(MEAN, a.place(row, MEAN)) : 0;
    next.rstd = a.statistic(RSTD, a.place(row, RSTD));
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
    if constexpr (odd_rows) dx = begins(row, Y);
    held_row<HELD> now = next;
    if (early) load_next();
    float h[HELD][E], g[HELD][E], sum = 0, along = 0;
    if (stays) parameter_stay(scale);
    /* h, dy and scale of the elements of word k */
    const auto open = [&](int k, float (&h)[E], float (&g)[E], float (&w)[E]) {
      if (twice) load(now, k);
      vector_open<held>(h, 0, now.x[k % HELD]);
      vector_open<held>(g, 0, now.dy[k % HELD]);
      if constexpr (odd_rows) {
#pragma unroll
        for (int e = 0; e < E; e++) w[e] = 1;
        if (a.p[SCALE]) odd_parameter(w, a, SCALE, at(k), min(E, left(k)));
      } else if constexpr (kind == WIDE) {
        vector_load_whole<QN_F32>(w, a.p[SCALE], (int64_t)(first + t + k * threads) * E);
      } else {
        if (!stays) parameter_word<dtype>(scale[k], a.p[SCALE], 1, first + t + k * threads);
        vector_open<dtype>(w, 0, scale[k]);
      }
#pragma unroll
      for (int e = 0; e < E; e++) {
        h[e] = (h[e] - (centred ? now.mean : 0)) * now.rstd;
        if (odd_rows && e >= left(k)) h[e] = 0;           /* beyond the row: -mean rstd may be infinite, and dy is 0 there */
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
      const uint4 word = vector_close<held>(gk, 0);
      if constexpr (!dtype) vector_store(gk, dx, dtype3(a.dtype[Y]), at(k), 1, min(E, left(k)));
      else if constexpr (odd_rows) odd_copy(dx + k * threads, &word, a.unit, left(k) * (16 / E));
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

struct gradient_state : norm_plan {
  odd<rows_back> a;

  void bind(rows_back *to, const qn_launch *launch) const
  {
    for (int i = 0, n = 0; i < 2; i++)
      if (to->p[DSCALE + i]) to->part[i] = (float *)launch->workspace + n++ * columns.pitch;
  }
};

/* The kernel that has the k-th number of threads to a row; ODD has every other one, TWICE the last. */
template <int kind, int k> constexpr int threads_of = kind == TWICE ? BLOCK : kind != ODD ? 32 << k : k < 2 ? 32 << 2 * k : BLOCK;
template <int dtype, int kind> static const void *gradient_of(int threads, bool centred, bool cluster)
{
  return cuda_pick<false, true>(centred, [&](auto c) {
    if constexpr (kind != ODD) if (cluster) return (const void *)gradient<BLOCK, dtype, c(), true, kind>;
    return cuda_pick<threads_of<kind, 0>, threads_of<kind, 1>, threads_of<kind, 2>, threads_of<kind, 3>, BLOCK>(threads, [](auto n) {
      return (const void *)gradient<n(), dtype, decltype(c)::value, false, kind>;
    });
  });
}

static qn_status prepare_gradient(const qn_request *r, qn_prepared *out)
{
  gradient_state s = {};
  odd<rows_back> &a = s.a;
  const norm_problem &p = s.of;
  const bool clusters = cuda_has_clusters(r->device);
  int kind;
  const qn_status status = read_rows(r, &s, &a, &kind, out);
  if (status) return status;
  if (!norm_lone_rows(r, &p)) kind = ODD;
  if (p.length > BLOCK * EACH * (clusters && kind != ODD ? MAX_PARTS : 1)) kind = TWICE;
  const int64_t share = BLOCK * EACH * (kind == TWICE ? 2 : 1);         /* elements of a block, at most */
  for (a.parts = 1; a.parts < MAX_PARTS && p.length > share * a.parts;) a.parts *= 2;
  if (p.length > share * a.parts || (a.parts > 1 && !clusters))
    return qn_refuse(out, "a row must fit into the registers of a block, on Hopper of a cluster", "x", "", "%lld", (long long)p.length);
  if (p.groups > INT32_MAX / MAX_PARTS) return qn_refuse(out, "fewer than 2^28 rows", "x", "", "%lld", (long long)p.groups);
  int threads = kind == TWICE ? BLOCK : 32;        /* the fewest to a row of those that there are kernels for */
  while (threads < BLOCK && p.length > threads * EACH) threads *= kind == ODD ? 4 : 2;
  const auto choose = [&](auto d, auto k) { return gradient_of<d(), k()>(threads, p.centred, a.parts > 1); };
  if (!a.unit) s.kernel = cuda_pick<ODD, TWICE>(kind, [&](auto k) { return choose(std::integral_constant<int, 0>(), k); });
  else s.kernel = cuda_by_dtype(p.dtype[X], [&](auto d) {
    return cuda_pick<ALONE, d() == QN_F32 ? ALONE : WIDE, ODD, TWICE>(kind, [&](auto k) { return choose(d, k); });
  });
  a.jobs = (int32_t)qn_min_i64(qn_ceil_div(p.groups, BLOCK / threads), qn_max_i64(1, r->device->units / a.parts));
  s.blocks = (uint32_t)(a.jobs * a.parts), s.cluster = (uint32_t)a.parts, s.threads = BLOCK;
  for (int t = X; t <= DY; t++) a.hop[t] = (int64_t)a.jobs * (BLOCK / threads) * a.step[t];
  column_parts &sums = s.columns;
  for (int t = DSCALE; t <= DSHIFT; t++)
    if (p.number[t] >= 0) sums.dtype[sums.n++] = p.dtype[t];
  sums.jobs = a.jobs, sums.length = p.length, sums.pitch = a.words * (a.unit ? 16 / p.bytes : 4), sums.early = r->device->arch_major >= 9;
  a.part_step = sums.n * sums.pitch, out->workspace = (uint64_t)(a.jobs * a.part_step) * sizeof(float);
  out->estimate = 5000 + p.moved / (kind < ODD ? 4000 : kind == TWICE || a.unit < 8 ? 600 : 2000);
  return cuda_keep(out, &s, sizeof s);
}

/* The gradients' sums depend on how many blocks the device holds, so they are not portable. */
static const qn_engine row[] = { NORM_ROWS(forward_state, "rows", QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, prepare_forward),
                                 NORM_BACKWARD_ROWS(gradient_state, "rows", QN_TRAIT_BATCH_INVARIANT, prepare_gradient) };
CUDA_ENGINES(norm_rows) = { row, sizeof row / sizeof *row };
