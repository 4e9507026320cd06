/* norm_rows.cu -- layer_norm and rms_norm by rows, forward. Contiguous rows that the registers of a warp or block hold are loaded, reduced
 * and stored; a second tensor may be added, to x (the sum is also written if it has other users) or to y.
 *
 *   y = (x - mean) rstd scale + shift + second        rms_norm: mean is 0
 *
 * Beside memory bandwidth the limit is instructions per element, so nothing general is here: rows at one stride in whole 16-byte
 * words, up to 32768 elements (f32: 16384), parameters of one dtype shared by all rows and loaded while the row is reduced. */
#include <quern/program.h>
#include "program/chain.h"
#include "norm_layout.cuh"
#include "norm_moments.cuh"

/* Where the second tensor is added: none, to x, to y. WIDE: none, and parameters of f32 beside x of 16 bits. */
enum { ALONE, BEFORE, BEHIND, WIDE };
enum { K = 4, MOST = 1024 };              /* words of a thread, threads for a row, at most */

/* ---- rows in registers ------------------------------------------------------------------------------------------------------ */

struct rows_forward {
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
__global__ void __launch_bounds__(block_of<threads>, 1024 / block_of<threads>) in_registers(const __grid_constant__ rows_forward a)
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

/* ---- prepare, run ---------------------------------------------------------------------------------------------------------- */

struct state {
  rows_forward a;
  int32_t  number[TENSORS], second, sum;  /* value numbers of the request; -1: absent */
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
    (const void *)in_registers<512, K, dtype, second>, (const void *)in_registers<1024, K, dtype, second> }
#define SECONDS(dtype) { KERNELS(dtype, ALONE), KERNELS(dtype, BEFORE), KERNELS(dtype, BEHIND), KERNELS(dtype, WIDE) }
static const void *const kernels[3][4][6] = { SECONDS(QN_F32), SECONDS(QN_BF16), SECONDS(QN_F16) };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  norm_problem p;
  state s = {};
  rows_forward &a = s.a;
  const qn_status status = norm_open(r, 0, &p, out);
  if (status) return status;
  bool wide;
  if (!norm_word_rows(r, &p, a.step, &wide) || p.groups > INT32_MAX)
    return qn_refuse(out, "contiguous rows of one dtype, in 16-byte words, at one step; parameters of one dtype, alike for all", "x", "",
                     "%s", "another layout");
  if (p.length * p.bytes > MOST * K * 16)
    return qn_refuse(out, "rows that a block's registers hold", "x", "at most 32768 elements (f32: 16384)", "%lld", (long long)p.length);
  memcpy(s.number, p.number, sizeof s.number);
  s.second = s.sum = -1;
  const int where = wide ? WIDE : read_second(r, &s, out);
  a.second_step = a.step[where == BEFORE ? X : Y];
  a.rows = (int32_t)p.groups, a.words = (int32_t)(p.length * p.bytes / 16);
  a.eps = p.eps, a.inverse = 1 / (float)p.length, a.centred = p.centred;
  static const int threads[6] = { 32, 32, 128, 256, 512, 1024 };
  int size = a.words > 32;
  while (size && a.words > threads[size] * K) size++;
  s.kernel = kernels[norm_of_dtype(p.dtype[X], 0, 1, 2)][where][size];
  s.threads = (unsigned)(threads[size] < 128 ? 128 : threads[size]);
  s.blocks = (unsigned)qn_ceil_div(p.groups, s.threads / threads[size]);
  /* A block of 1024 threads is alone on its SM: nothing is loaded while it reduces. */
  out->estimate = 2000 + p.moved * (where == BEFORE || where == BEHIND ? 1.5 : 1) / (threads[size] < 1024 ? 4200 : 2800);
  return cuda_keep(out, &s, sizeof s);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  rows_forward a = s->a;
  norm_pointers(a.p, s->number, launch);
  if (s->second >= 0) a.second = launch->ptr[s->second];
  if (s->sum >= 0) a.sum = launch->ptr[s->sum];
  void *arguments[] = { &a };
  return cuda_check(cudaLaunchKernel(s->kernel, dim3(s->blocks), dim3(s->threads), arguments, 0, (cudaStream_t)launch->stream),
                    "norm_rows");
}

#define ROW(op) { "rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
                  nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM), ROW(QN_OP_RMS_NORM) };
CUDA_ENGINES(norm_rows) = { row, sizeof row / sizeof *row };
