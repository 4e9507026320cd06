/* norm_one_pass.cu -- layer_norm and rms_norm of contiguous rows of 512 to 16384 elements (f32: 8192) held in the registers of a warp or
 * block: load, reduce, store. f16, bf16, f32. A second tensor may be added, to x (the sum is also written if it has other users) or y.
 *
 *   y = (x - mean) rstd scale + shift + second        rms_norm: mean is 0
 *
 * Beside memory bandwidth the limit is instructions per element, so nothing general is in here: rows at one stride in whole
 * 16-byte words, parameters of x's dtype shared by all rows and loaded while the row is reduced. norm_rows takes everything else. */
#include <quern/program.h>
#include "program/chain.h"
#include "cuda_backend.h"
#include "engines.h"
#include "norm_far.cuh"
#include "norm_moments.cuh"
#include "norm_nests.h"
#include "kit/vector.cuh"

enum { X, Y, SCALE, SHIFT, MEAN, RSTD, TENSORS };
enum { ALONE, BEFORE, BEHIND };           /* where the second tensor is added: none, to x, to y */
enum { K = 4, LEAST = 512, MOST = 512 };  /* K: words a thread at most; LEAST: elements of a row; MOST: threads for a row */

struct one_pass {
  const uint4 *x, *second, *scale, *shift;
  uint4   *y, *sum;                       /* sum: NULL if it has no other user */
  float   *mean, *rstd;
  int64_t  step[3], mean_step, rstd_step; /* from row to row: words of x, y, second; elements */
  int32_t  rows, words;                   /* words: of a row */
  float    eps, inverse;                  /* inverse: 1 / row length */
  bool     centred;
};

template <int threads> constexpr int block_of = threads < 128 ? 128 : threads;

/* Moments of a thread's n elements, relative to the mean of its first word. */
template <int dtype, bool centred, int threads>
__device__ __forceinline__ moments measure(const uint4 (&x)[K], int mine, float n, float share)
{
  constexpr int E = vector_per_16<dtype>;
  float v[E], from = 0, s1 = 0, s2 = 0;
  if (centred) {
    vector_open<dtype>(v, 0, x[0]);
#pragma unroll
    for (int e = 0; e < E; e++) from += v[e];
    from = finite_or_0(from * (1.f / E));
  }
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (k * threads >= mine) break;
    vector_open<dtype>(v, 0, x[k]);
#pragma unroll
    for (int e = 0; e < E; e++) {
      const float d = centred ? v[e] - from : v[e];
      if (centred) s1 += d;
      s2 = fmaf(d, d, s2);
    }
  }
  return { centred ? from + s1 * share : 0, centred ? s2 - s1 * s1 * share : s2, n };
}

template <int threads, int dtype, int second>
__global__ void __launch_bounds__(block_of<threads>, 1024 / block_of<threads>) norm_one_pass(const __grid_constant__ one_pass a)
{
  constexpr int E = vector_per_16<dtype>, warps = threads / 32, together = block_of<threads> / threads;
  constexpr bool early = second == ALONE && dtype != QN_F16;         /* load parameters early; otherwise registers do not suffice */
  __shared__ float4 of_warp[warps];
  /* the thread has words 0, threads, ... below `mine` */
  const int t = threadIdx.x % threads, row = blockIdx.x * together + threadIdx.x / threads, mine = a.words - t;
  if (row >= a.rows) return;              /* whole warps leave, and whole blocks where a row takes a block */
  const uint4 *from = a.x + row * a.step[0] + t, *other = a.second + row * a.step[2] + t;
  uint4 x[K], u[K], scale[K], shift[K];
#pragma unroll
  for (int k = 0; k < K; k++) {
    x[k] = k * threads < mine ? from[k * threads] : make_uint4(0, 0, 0, 0);
    if (second && k * threads < mine) u[k] = other[k * threads];
  }
#pragma unroll
  for (int k = 0; k < K && early; k++) {
    if (k * threads < mine && a.scale) scale[k] = a.scale[t + k * threads];
    if (k * threads < mine && a.shift) shift[k] = a.shift[t + k * threads];
  }
  const int count = max(0, min((int)K, (mine + threads - 1) / threads));
  const float n = (float)(count * E), share = count ? 1 / n : 0;
  float all = (float)(a.words * E), all_share = a.inverse;
  if (threads > 32) {
    all = warp_sum(n);
    all_share = all > 0 ? 1 / all : 0;
  }
  if (second == BEFORE) {
    uint4 *sum = a.sum + row * a.step[0] + t;
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
    {
      const float about = finite_or_0(__shfl_sync(~0u, m.mean, 0)), d = m.mean - about, s = n * d;
      const float s1 = warp_sum(s), s2 = warp_sum(m.squares + s * d);
      m = { about + s1 * all_share, s2 - s1 * s1 * all_share, all };
    }
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
  uint4 *to = a.y + row * a.step[1] + t;
#pragma unroll
  for (int k = 0; k < K; k++) {
    if (k * threads >= mine) break;
    float v[E], w[E];
    vector_open<dtype>(v, 0, x[k]);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = (v[e] - m.mean) * rstd;
    if (a.scale) {
      vector_open<dtype>(w, 0, early ? scale[k] : a.scale[t + k * threads]);
#pragma unroll
      for (int e = 0; e < E; e++) v[e] *= w[e];
    }
    if (a.shift) {
      vector_open<dtype>(w, 0, early ? shift[k] : a.shift[t + k * threads]);
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
  if (t == 0 && a.mean) a.mean[row * a.mean_step] = m.mean / unit;
  if (t == 0 && a.rstd) a.rstd[row * a.rstd_step] = rstd * unit;
}

/* ---- prepare, run ---------------------------------------------------------------------------------------------------------- */

struct state {
  one_pass    a;
  int32_t number[TENSORS], second, sum;   /* value numbers of the request; -1: absent */
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
  s->sum = -1;
  s->second = cuda_chain_second(&chain, r, x->dtype, &relu);
  out->n_ops = 1;
  if (s->second >= 0 && !relu && chain.steps.n == 0 && r->value[chain.out].dtype == x->dtype) {
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

typedef const void *kernel;
#define KERNELS(dtype, second) \
  { (kernel)norm_one_pass<32, dtype, second>, (kernel)norm_one_pass<128, dtype, second>, \
    (kernel)norm_one_pass<256, dtype, second>, (kernel)norm_one_pass<512, dtype, second> }
#define SECONDS(dtype) { KERNELS(dtype, ALONE), KERNELS(dtype, BEFORE), KERNELS(dtype, BEHIND) }
static const kernel kernels[3][3][4] = { SECONDS(QN_F32), SECONDS(QN_BF16), SECONDS(QN_F16) };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_norm_roles roles = qn_norm_roles_of(r->op[0].op);
  const int8_t role[TENSORS] = { roles.x, roles.y, roles.scale, roles.shift, roles.mean, roles.rstd };
  state s = {};
  one_pass &a = s.a;
  for (int t = 0; t < TENSORS; t++) s.number[t] = qn_role_at(&r->op[0], role[t]);
  const qn_value *x = &r->value[s.number[X]];
  if (x->dtype != QN_F32 && x->dtype != QN_BF16 && x->dtype != QN_F16)
    return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", qn_kit_name(x->dtype));
  const cuda_norm_nests nests = cuda_norm_nests_of(r, s.number, SHIFT + 1, TENSORS);
  const qn_nest *walked = &nests.walked, *outer = &nests.outer;
  const int64_t per_word = x->dtype == QN_F32 ? 4 : 8;
  if (nests.length < LEAST || nests.length % per_word || nests.length > MOST * K * per_word)
    return qn_refuse(out, "rows of whole 16-byte words that the registers of a block hold", "x", "512 to 16384 elements (f32: 8192)",
                     "%lld", (long long)nests.length);
  if (outer->rank > 1 || nests.groups > INT32_MAX)
    return qn_refuse(out, "rows at one step from one another, fewer than 2^31", "x", "other dims that merge", "%d dims", outer->rank);
  bool run = walked->rank == 1, whole = true;
  for (int t = X; t <= SHIFT && run; t++) run = s.number[t] < 0 || walked->stride[t][0] == 1;
  if (!run)
    return qn_refuse(out, "the dims normalized over must lie side by side, alike in all tensors", "x", "one run of stride 1", "%s",
                     "others");
  const int where = read_second(r, &s, out);
  for (int t = X; t <= SHIFT; t++) {
    const qn_value *v = s.number[t] < 0 ? nullptr : &r->value[s.number[t]];
    whole &= !v || (v->dtype == x->dtype && v->align >= 16 && (outer->rank == 0 || outer->stride[t][0] % per_word == 0));
    if (t >= SCALE) whole &= !v || outer->rank == 0 || outer->stride[t][0] == 0;
  }
  if (!whole) return qn_refuse(out, "tensors of one dtype, in 16-byte words; parameters alike for all rows", "x", "", "%s", "others");
  if (outer->rank) {
    a.step[0] = outer->stride[X][0] / per_word, a.step[1] = outer->stride[Y][0] / per_word,
    a.step[2] = where == BEFORE ? a.step[0] : a.step[1];
    a.mean_step = outer->stride[MEAN][0], a.rstd_step = outer->stride[RSTD][0];
  }
  a.rows = (int32_t)nests.groups, a.words = (int32_t)(nests.length / per_word);
  a.eps = (float)((const qn_norm *)r->op[0].attr)->eps;
  a.inverse = 1 / (float)nests.length;
  a.centred = r->op[0].op == QN_OP_LAYER_NORM;
  const int threads[4] = { 32, 128, 256, 512 };
  int size = 0;
  while (a.words > threads[size] * K) size++;
  s.kernel = kernels[x->dtype == QN_F32 ? 0 : x->dtype == QN_BF16 ? 1 : 2][where][size];
  s.threads = (unsigned)(threads[size] < 128 ? 128 : threads[size]);
  s.blocks = (unsigned)qn_ceil_div(nests.groups, s.threads / threads[size]);
  return cuda_keep(out, &s, sizeof s);
}

static void *pointer(const qn_launch *launch, int32_t number) { return number < 0 ? nullptr : launch->ptr[number]; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  one_pass a = s->a;
  a.x = (const uint4 *)pointer(launch, s->number[X]), a.y = (uint4 *)pointer(launch, s->number[Y]);
  a.second = (const uint4 *)pointer(launch, s->second), a.sum = (uint4 *)pointer(launch, s->sum);
  a.scale = (const uint4 *)pointer(launch, s->number[SCALE]), a.shift = (const uint4 *)pointer(launch, s->number[SHIFT]);
  a.mean = (float *)pointer(launch, s->number[MEAN]), a.rstd = (float *)pointer(launch, s->number[RSTD]);
  void *arguments[] = { &a };
  return cuda_check(cudaLaunchKernel(s->kernel, dim3(s->blocks), dim3(s->threads), arguments, 0, (cudaStream_t)launch->stream),
                    "norm_one_pass");
}

#define ROW(op) { "one_pass", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
                  nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM), ROW(QN_OP_RMS_NORM) };
CUDA_ENGINES(norm_one_pass) = { row, sizeof row / sizeof *row };
