/* norm_rows.cu -- layer_norm and rms_norm by rows, forward. Contiguous rows that the registers of a warp or block hold are loaded, reduced
 * and stored (rows); a second tensor may be added, to x (the sum is also written if it has other users) or to y. All others, of any
 * length, layout and dtypes, are read twice, the second time mostly from the caches (two_pass).
 *
 *   y = (x - mean) rstd scale + shift + second        rms_norm: mean is 0
 *
 * Beside memory bandwidth the limit is instructions per element, so nothing general is in the former: rows at one stride in whole 16-byte
 * words, up to 16384 elements (f32: 8192), parameters of one dtype shared by all rows and loaded while the row is reduced. */
#include <quern/program.h>
#include "program/chain.h"
#include "norm_layout.cuh"
#include "norm_moments.cuh"
#include "kit/eight.cuh"

/* Where the second tensor is added: none, to x, to y. WIDE: none, and parameters of f32 beside x of 16 bits. */
enum { ALONE, BEFORE, BEHIND, WIDE };
enum { K = 4, MOST = 512, V = 8 };        /* K: words a thread at most; MOST: threads for a row; V: elements of a thread, read twice */

/* ---- rows in registers ------------------------------------------------------------------------------------------------------ */

struct one_pass {
  void    *p[TENSORS], *second, *sum;     /* sum: NULL if it has no other user */
  int64_t  step[TENSORS], second_step;    /* from row to row: words of x, y, second; elements */
  int32_t  rows, words;                   /* words: of a row */
  float    eps, inverse;                  /* inverse: 1 / row length */
  bool     centred;
};

template <int threads> constexpr int block_of = threads < 128 ? 128 : threads;

/* Moments of a thread's n elements, relative to the mean of its first word. */
template <int dtype, bool centred, int threads, int K>
__device__ __forceinline__ moments measure(const uint4 (&x)[K], int mine, float n, float share)
{
  constexpr int E = vector_per_16<dtype>;
  float from[1] = {}, s1[1] = {}, s2[1] = {};
  if (centred) {
    float v[E];
    vector_open<dtype>(v, 0, x[0]);
#pragma unroll
    for (int e = 0; e < E; e++) from[0] += v[e];
    from[0] = finite_or_0(from[0] * (1.f / E));
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (k * threads >= mine) break;
    add_word<dtype, centred>(x[k], from, s1, s2);
  }
  return { centred ? from[0] + s1[0] * share : 0, centred ? s2[0] - s1[0] * s1[0] * share : s2[0], n };
}

template <int threads, int K, int dtype, int second>
__global__ void __launch_bounds__(block_of<threads>, 1024 / block_of<threads>) in_registers(const __grid_constant__ one_pass a)
{
  constexpr int E = vector_per_16<dtype>, warps = threads / 32, together = block_of<threads> / threads;
  constexpr bool two = second == BEFORE || second == BEHIND;
  constexpr bool early = second == ALONE && dtype != QN_F16;         /* load parameters early; otherwise registers do not suffice */
  __shared__ float4 of_warp[warps];
  /* the thread has words 0, threads, ... below `mine` */
  const int t = threadIdx.x % threads, row = blockIdx.x * together + threadIdx.x / threads, mine = a.words - t;
  if (row >= a.rows) return;              /* whole warps leave, and whole blocks where a row takes a block */
  const uint4 *from = (const uint4 *)a.p[X] + row * a.step[X] + t, *other = (const uint4 *)a.second + row * a.second_step + t;
  const uint4 *const scales = (const uint4 *)a.p[SCALE], *const shifts = (const uint4 *)a.p[SHIFT];
  uint4 x[K], u[K], scale[K], shift[K];
#pragma unroll
  for (int k = 0; k < K; k++) {
    x[k] = k * threads < mine ? from[k * threads] : make_uint4(0, 0, 0, 0);
    if (two && k * threads < mine) u[k] = other[k * threads];
  }
#pragma unroll
  for (int k = 0; k < K && early; k++) {
    if (k * threads < mine && scales) scale[k] = scales[t + k * threads];
    if (k * threads < mine && shifts) shift[k] = shifts[t + k * threads];
  }
  const int count = max(0, min((int)K, (mine + threads - 1) / threads));
  const float n = (float)(count * E), share = count ? 1 / n : 0;
  const float all = threads > 32 ? warp_sum(n) : (float)(a.words * E);
  if (second == BEFORE) {
    uint4 *sum = (uint4 *)a.sum + row * a.step[X] + t;
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (k * threads >= mine) break;
      float v[E], w[E];
      vector_open<dtype>(v, 0, x[k]);
      vector_open<dtype>(w, 0, u[k]);
#pragma unroll
      for (int e = 0; e < E; e++) v[e] += w[e];
      x[k] = vector_close<dtype>(v, 0);   /* rounded first: what is normalized is what is written */
      if (a.sum) sum[k * threads] = x[k];
    }
  }

  moments m;
  float unit = 1;                         /* of x; less than 1 where squares overflow otherwise */
#pragma unroll 1
  for (;;) {
    m = a.centred ? measure<dtype, true, threads>(x, mine, n, share) : measure<dtype, false, threads>(x, mine, n, share);
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
  const float rstd = 1 / sqrtf(m.squares * a.inverse + a.eps * unit * unit);
  const auto parameter = [&](float (&w)[E], const uint4 *p, const uint4 &loaded, int k) {
    if constexpr (second == WIDE) vector_load_whole<QN_F32>(w, p, (t + k * threads) * E);
    else vector_open<dtype>(w, 0, early ? loaded : p[t + k * threads]);
  };
  uint4 *to = (uint4 *)a.p[Y] + row * a.step[Y] + t;
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (k * threads >= mine) break;
    float v[E], w[E];
    vector_open<dtype>(v, 0, x[k]);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = (v[e] - m.mean) * rstd;
    if (scales) {
      parameter(w, scales, scale[k], k);
#pragma unroll
      for (int e = 0; e < E; e++) v[e] *= w[e];
    }
    if (shifts) {
      parameter(w, shifts, shift[k], k);
#pragma unroll
      for (int e = 0; e < E; e++) v[e] += w[e];
    }
    if (second == BEHIND) {
      vector_open<dtype>(w, 0, u[k]);
#pragma unroll
      for (int e = 0; e < E; e++) v[e] += w[e];
    }
    to[k * threads] = vector_close<dtype>(v, 0);
  }
  if (t == 0 && a.p[MEAN]) ((float *)a.p[MEAN])[row * a.step[MEAN]] = m.mean / unit;
  if (t == 0 && a.p[RSTD]) ((float *)a.p[RSTD])[row * a.step[RSTD]] = rstd * unit;
}

/* ---- rows read twice --------------------------------------------------------------------------------------------------------- */

struct two_passes {
  void    *p[TENSORS];
  uint32_t dtype[TENSORS];
  norm_items outer, in;                   /* numbers rows; elements of a row */
  bool     run[PARAMETERS_END];           /* contiguous along a row */
  int32_t  rows, length;
  float    eps;
  bool     centred;

  __device__ __forceinline__ void put(int t, int row, float v) const { if (p[t]) ((float *)p[t])[outer.place(row, t)] = v; }
};

/* Elements j .. j + n - 1 of a row that begins at `base` in tensor t. */
static __device__ __noinline__ eight load_any(const two_passes &a, int t, int64_t base, int j, int n)
{
  eight w;
  if (a.run[t]) vector_load(w.v, a.p[t], dtype3(a.dtype[t]), base + j, 1, n);
  else
#pragma unroll
    for (int i = 0; i < V; i++) w.v[i] = i < n ? element_load<float>(a.p[t], base + a.in.place(j + i, t), dtype3(a.dtype[t])) : 0;
  return w;
}

template <int threads>
__global__ void __launch_bounds__(threads < 256 ? 256 : threads) read_twice(const __grid_constant__ two_passes a)
{
  constexpr int together = threads < 256 ? 256 / threads : 1;
  __shared__ float4 of_warp[threads / 32];
  const int t = threadIdx.x % threads, row = blockIdx.x * together + threadIdx.x / threads;
  if (row >= a.rows) return;              /* whole warps leave, and whole blocks where a row takes a block */
  const int64_t x = a.outer.place(row, X), y = a.outer.place(row, Y), scale = a.outer.place(row, SCALE), shift = a.outer.place(row, SHIFT);
  moments m;
  float unit = 1;                         /* of x; less than 1 where squares overflow otherwise */
#pragma unroll 1
  for (;;) {
    m = {};
#pragma unroll 1
    for (int64_t j = t * V; j < a.length; j += threads * V) {
      const int n = (int)min((int64_t)V, a.length - j);
      eight v = load_any(a, X, x, (int)j, n);
#pragma unroll
      for (int i = 0; i < V; i++) v.v[i] *= unit;
      m.add(v.v, n, a.centred);
    }
    m = warp_join_lanes(m, warp_sum(m.count));
    if (threads > 32) {
      if (unit < 1) __syncthreads();      /* of_warp has been read */
      if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = m.pack();
      __syncthreads();
      m = warp_join_all(threads / 32, [&](int w) { return moments::unpack(of_warp[w]); });
    }
    if (a.dtype[X] == QN_F16 || unit < 1 || !far_out(m.squares)) break;
    unit = FAR_UNIT;
  }
  const float rstd = 1 / sqrtf(m.squares / (float)a.length + a.eps * unit * unit);
  if (t == 0) a.put(MEAN, row, m.mean / unit), a.put(RSTD, row, rstd * unit);
#pragma unroll 1
  for (int64_t at = t * V; at < a.length; at += threads * V) {
    const int j = (int)at, n = (int)min((int64_t)V, a.length - at);
    eight v = load_any(a, X, x, j, n);
#pragma unroll
    for (int i = 0; i < V; i++) v.v[i] = (v.v[i] * unit - m.mean) * rstd;
    if (a.p[SCALE]) {
      const eight w = load_any(a, SCALE, scale, j, n);
#pragma unroll
      for (int i = 0; i < V; i++) v.v[i] *= w.v[i];
    }
    if (a.p[SHIFT]) {
      const eight w = load_any(a, SHIFT, shift, j, n);
#pragma unroll
      for (int i = 0; i < V; i++) v.v[i] += w.v[i];
    }
    if (a.run[Y]) eight_store(v, a.p[Y], a.dtype[Y], y + j, n);
    else
#pragma unroll
      for (int i = 0; i < V; i++)
        if (i < n) element_store(a.p[Y], y + a.in.place(j + i, Y), dtype3(a.dtype[Y]), v.v[i]);
  }
}

/* ---- prepare, run ---------------------------------------------------------------------------------------------------------- */

struct state {
  one_pass a;
  two_passes b;
  int32_t  number[TENSORS], second, sum;  /* value numbers of the request; -1: absent */
  bool     twice;
  const void *kernel;
  unsigned blocks, threads;
};

/* Fuses an addition behind y, or in front of x; returns which. */
static int read_second(const qn_request *r, state *s, qn_prepared *out)
{
  const qn_value *x = &r->value[s->number[X]];
  cuda_out_dims dims = { { -1, -1, -1, -1 }, CUDA_ALIKE };
  cuda_chain chain;
  bool relu;
  qn_request two = *r;
  if (two.n_ops > 2) two.n_ops = 2;
  cuda_chain_begin(&chain, s->number[Y]);
  cuda_chain_follow(&chain, &two, &dims);
  s->second = cuda_chain_second(&chain, r, x->dtype, &relu);
  out->n_ops = 1;
  const qn_value *to = &r->value[chain.out];
  if (s->second >= 0 && !relu && chain.steps.n == 0 && to->dtype == x->dtype && to->align >= 16) {
    s->number[Y] = chain.out;
    out->n_ops = chain.n_ops;
    return BEHIND;
  }
  s->second = -1;
  qn_program before;
  int32_t term[2];
  if (r->n_ops < 2 || qn_program_read_before(&before, r, 1, 1, s->number[X]) || !qn_program_is_sum(&before, r, term)) return ALONE;
  if (r->value[term[0]].align < 16 || r->value[term[1]].align < 16) return ALONE;
  if (before.step[0].write) s->sum = s->number[X];
  s->number[X] = term[0], s->second = term[1];
  out->n_ops = 2;
  return BEFORE;
}

#define KERNELS(dtype, second) \
  { (const void *)in_registers<32, 1, dtype, second>,  (const void *)in_registers<32, K, dtype, second>, \
    (const void *)in_registers<128, K, dtype, second>, (const void *)in_registers<256, K, dtype, second>, \
    (const void *)in_registers<512, K, dtype, second> }
#define SECONDS(dtype) { KERNELS(dtype, ALONE), KERNELS(dtype, BEFORE), KERNELS(dtype, BEHIND), KERNELS(dtype, WIDE) }
static const void *const kernels[3][4][5] = { SECONDS(QN_F32), SECONDS(QN_BF16), SECONDS(QN_F16) };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  norm_problem p;
  state s = {};
  one_pass &a = s.a;
  const qn_status status = norm_open(r, 0, &p, out);
  if (status) return status;
  bool wide;
  if (!norm_word_rows(r, &p, a.step, &wide) || p.groups > INT32_MAX)
    return qn_refuse(out, "contiguous rows of one dtype, in 16-byte words, at one step; parameters of one dtype, alike for all", "x", "",
                     "%s", "another layout");
  if (p.length * p.bytes > MOST * K * 16)
    return qn_refuse(out, "rows that a block's registers hold", "x", "at most 16384 elements (f32: 8192)", "%lld", (long long)p.length);
  memcpy(s.number, p.number, sizeof s.number);
  s.second = s.sum = -1;
  const int where = wide ? WIDE : read_second(r, &s, out);
  a.second_step = a.step[where == BEFORE ? X : Y];
  a.rows = (int32_t)p.groups, a.words = (int32_t)(p.length * p.bytes / 16);
  a.eps = p.eps, a.inverse = 1 / (float)p.length, a.centred = p.centred;
  static const int threads[5] = { 32, 32, 128, 256, 512 };
  int size = a.words > 32;
  while (size && a.words > threads[size] * K) size++;
  s.kernel = kernels[norm_of_dtype(p.dtype[X], 0, 1, 2)][where][size];
  s.threads = (unsigned)(threads[size] < 128 ? 128 : threads[size]);
  s.blocks = (unsigned)qn_ceil_div(p.groups, s.threads / threads[size]);
  out->estimate = 2000 + p.moved * (where == BEFORE || where == BEHIND ? 1.5 : 1) / 4200;
  return cuda_keep(out, &s, sizeof s);
}

/* A row's threads depend on its length alone, so its result does not depend on its neighbours. */
static qn_status prepare_any(const qn_request *r, qn_prepared *out)
{
  norm_problem p;
  state s = {};
  two_passes &b = s.b;
  const qn_status status = norm_open(r, 0, &p, out);
  if (status) return status;
  if (p.length > INT32_MAX || p.groups > INT32_MAX || !norm_number(p.in, 1, &b.in) || !norm_number(p.outer, 1, &b.outer))
    return qn_refuse(out, "fewer than 2^31 rows and elements of one, up to 4 dims of each that do not merge", "x", "", "%d other dims",
                     p.outer.rank);
  memcpy(s.number, p.number, sizeof s.number);
  s.second = s.sum = -1;
  memcpy(b.dtype, p.dtype, sizeof b.dtype);
  bool runs = true;
  for (int t = 0; t < PARAMETERS_END; t++) {
    b.run[t] = true;
    int64_t step = 1;
    for (int d = p.in.rank - 1; d >= 0; step *= p.in.dim[d--]) b.run[t] &= p.in.stride[t][d] == step;
    runs &= b.run[t] || t > Y;
  }
  b.rows = (int32_t)p.groups, b.length = (int32_t)p.length, b.eps = p.eps, b.centred = p.centred;
  const int threads = p.length <= 2048 ? 32 : p.length <= 65536 ? 256 : 1024;
  s.twice = true;
  s.kernel = threads == 32 ? (const void *)read_twice<32> : threads == 256 ? (const void *)read_twice<256> : (const void *)read_twice<1024>;
  s.threads = threads == 32 ? 256 : (unsigned)threads;
  s.blocks = (unsigned)qn_ceil_div(p.groups, s.threads / (unsigned)threads);
  out->estimate = 6000 + p.moved * 1.5 / (runs ? 1000 : 100);
  return cuda_keep(out, &s, sizeof s);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  one_pass a = s->a;
  two_passes b = s->b;
  norm_pointers(a.p, s->number, launch);
  norm_pointers(b.p, s->number, launch);
  if (s->second >= 0) a.second = launch->ptr[s->second];
  if (s->sum >= 0) a.sum = launch->ptr[s->sum];
  void *arguments[] = { s->twice ? (void *)&b : (void *)&a };
  return cuda_check(cudaLaunchKernel(s->kernel, dim3(s->blocks), dim3(s->threads), arguments, 0, (cudaStream_t)launch->stream),
                    "norm_rows");
}

#define ROW(name, op, prepare) { name, op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
                                 nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW("rows", QN_OP_LAYER_NORM, prepare),         ROW("rows", QN_OP_RMS_NORM, prepare),
  ROW("two_pass", QN_OP_LAYER_NORM, prepare_any), ROW("two_pass", QN_OP_RMS_NORM, prepare_any),
};
CUDA_ENGINES(norm_rows) = { row, sizeof row / sizeof *row };
