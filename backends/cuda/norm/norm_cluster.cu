/* norm_cluster.cu -- layer_norm and rms_norm of long contiguous rows (f16, bf16, f32) on sm_90, a row kept in the shared memory of a
 * cluster: each element is read once and written once.
 *
 *   y = (x - mean) rstd scale + shift        rms_norm: mean is 0
 *
 * A row is split over 2 to 8 blocks of a cluster. Blocks are small, so that several share an SM and the loads of one overlap the
 * stores of another. A thread copies (cp.async) and later reads the same 16-byte words, so no block barrier is needed. Each warp
 * sends its moments to all blocks of the cluster, counted by an mbarrier. `full` drops the bounds checks, which would serialise the loads.
 * Refused: rows up to 16384 elements (registers hold those), longer than 8 blocks' share, other layouts. */
#include "cuda_backend.h"
#include "engines.h"
#include "norm_far.cuh"
#include "norm_moments.cuh"
#include "norm_nests.h"
#include "kit/shared_memory.h"
#include "kit/sm90.cuh"
#include "kit/vector.cuh"

enum { X, Y, SCALE, SHIFT, MEAN, RSTD, TENSORS };
/* K: 16-byte words a thread, SHARE: a block; REGISTERS_HOLD: elements */
enum { K = 8, THREADS = 256, WARPS = THREADS / 32, SHARE = K * THREADS, MOST_PARTS = 8, REGISTERS_HOLD = 16384 };

struct shares {
  const void *p[TENSORS];
  int64_t  step[TENSORS];                 /* from row to row: x and y in words, mean and rstd in elements */
  int32_t  words, share, parts;           /* words of a row, of a block; blocks of a row */
  float    eps, inverse;                  /* inverse: 1 / row length */
};

/* Normalizes and writes a thread's words, THREADS apart. */
template <int dtype, bool scales, bool shifts>
__device__ __forceinline__ void write_words(uint4 *y, const uint4 *word, const uint4 *scale, const uint4 *shift, int count, float mean,
                                            float rstd)
{
  constexpr int E = vector_per_16<dtype>;
  const float unit = far_unit(mean, rstd);
#pragma unroll 2
  for (int k = 0; k < count; k++) {
    float v[E], w[E], u[E];
    if (scales) vector_open<dtype>(w, 0, __ldg(scale + k * THREADS));
    if (shifts) vector_open<dtype>(u, 0, __ldg(shift + k * THREADS));
    vector_open<dtype>(v, 0, word[k * THREADS]);
#pragma unroll
    for (int e = 0; e < E; e++) {
      v[e] = far_normalized(v[e], unit, mean, rstd);
      if (scales) v[e] *= w[e];
      if (shifts) v[e] += u[e];
    }
    y[k * THREADS] = vector_close<dtype>(v, 0);
  }
}

/* full: every block has exactly SHARE words. */
template <int dtype, bool centred, bool full>
__global__ void __launch_bounds__(THREADS, full ? 6 : 5) norm_cluster(const __grid_constant__ shares a)
{
  constexpr int E = vector_per_16<dtype>;
  extern __shared__ uint4 words[];
  __shared__ float4 told[MOST_PARTS * WARPS];
  __shared__ uint64_t all_told[16];       /* one barrier, padded to 128 bytes to keep `words` aligned to the banks */
  const int rank = (int)cluster_rank(), share = full ? (int)SHARE : a.share, first = rank * share + threadIdx.x, lane = threadIdx.x % 32,
            warp = threadIdx.x / 32;
  const int left = min(share, a.words - rank * share) - (int)threadIdx.x, count = full ? (int)K : max(0, (left + THREADS - 1) / THREADS);
  const uint32_t row = blockIdx.x / (uint32_t)a.parts, bar = shared_address(all_told);
  const uint4 *x = (const uint4 *)a.p[X] + row * a.step[X] + first;
  uint4 *word = words + threadIdx.x;
#pragma unroll
  for (int k = 0; k < K; k++)
    if (k < count) copy_async<16>(shared_address(word + k * THREADS), x + k * THREADS, 16);
  copy_async_commit();
  if (threadIdx.x == 0) {
    barrier_init(bar, 1);
    barrier_init_fence();
    barrier_expect(bar, a.parts * WARPS * (int)sizeof(float4));
  }
  __syncwarp();
  cluster_arrive_relaxed();               /* relaxed: the other blocks only need to see the mbarrier, not the copies */

  float v[E], from = 0, s1 = 0, s2 = 0;   /* sums relative to the mean of the first word */
  copy_async_wait<0>();
  if (centred && count > 0) {
    vector_open<dtype>(v, 0, word[0]);
#pragma unroll
    for (int e = 0; e < E; e++) from += v[e];
    from = finite_or_0(from * (1.f / E));
  }
#pragma unroll 2
  for (int k = 0; k < count; k++) {
    vector_open<dtype>(v, 0, word[k * THREADS]);
#pragma unroll
    for (int e = 0; e < E; e++) {
      const float d = centred ? v[e] - from : v[e];
      if (centred) s1 += d;
      s2 = fmaf(d, d, s2);
    }
  }
  const float n = (float)(count * E);
  const moments ours = warp_join_lanes(moments_about(from, s1, s2, n, centred), full ? 32 * n : warp_sum(n));
  cluster_wait();
  if (lane < a.parts)
    cluster_send(cluster_address(shared_address(&told[rank * WARPS + warp]), lane), ours.mean, ours.squares, ours.count, 0,
                 cluster_address(bar, lane));
  barrier_wait(bar, 0);
  moments all = warp_join_all(a.parts * WARPS, [&](int i) { return moments::unpack(told[i]); });
  float rstd = 1 / sqrtf(all.squares * a.inverse + a.eps);
  if (dtype != QN_F16 && far_out(all.squares)) {
    const far_statistics far = far_measure({ a.p[X], nullptr, dtype, 1, 0, (int64_t)a.words * E }, row * a.step[X] * E, centred, a.eps, 32);
    all.mean = far.mean, rstd = far.rstd;
  }

  const uint4 *scale = (const uint4 *)a.p[SCALE] + first, *shift = (const uint4 *)a.p[SHIFT] + first;
  uint4 *y = (uint4 *)a.p[Y] + row * a.step[Y] + first;
  if (a.p[SCALE] && centred && a.p[SHIFT]) write_words<dtype, true, true>(y, word, scale, shift, count, all.mean, rstd);
  else if (a.p[SCALE]) write_words<dtype, true, false>(y, word, scale, shift, count, all.mean, rstd);
  else if (centred && a.p[SHIFT]) write_words<dtype, false, true>(y, word, scale, shift, count, all.mean, rstd);
  else write_words<dtype, false, false>(y, word, scale, shift, count, all.mean, rstd);
  if (threadIdx.x || rank) return;
  if (a.p[MEAN]) ((float *)a.p[MEAN])[row * a.step[MEAN]] = all.mean;
  if (a.p[RSTD]) ((float *)a.p[RSTD])[row * a.step[RSTD]] = rstd;
}

/* ---- prepare, build, run --------------------------------------------------------------------------------------------------- */

struct state { shares a; int32_t number[TENSORS]; const void *kernel; unsigned blocks; };

template <int dtype> static const void *kernel_of(bool centred, bool full)
{
  if (centred) return full ? (const void *)norm_cluster<dtype, true, true> : (const void *)norm_cluster<dtype, true, false>;
  return full ? (const void *)norm_cluster<dtype, false, true> : (const void *)norm_cluster<dtype, false, false>;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_norm_roles roles = qn_norm_roles_of(r->op[0].op);
  const int8_t role[TENSORS] = { roles.x, roles.y, roles.scale, roles.shift, roles.mean, roles.rstd };
  state s = {};
  shares &a = s.a;
  if (!cuda_has_clusters(r->device))
    return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  for (int t = 0; t < TENSORS; t++) s.number[t] = qn_role_at(&r->op[0], role[t]);
  const qn_value *x = &r->value[s.number[X]];
  if (x->dtype != QN_F32 && x->dtype != QN_BF16 && x->dtype != QN_F16)
    return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", qn_kit_name(x->dtype));
  const cuda_norm_nests nests = cuda_norm_nests_of(r, s.number, SHIFT + 1, TENSORS);
  const qn_nest *outer = &nests.outer;
  const int64_t per_word = x->dtype == QN_F32 ? 4 : 8, words = nests.length / per_word;
  if (nests.length <= REGISTERS_HOLD || nests.length % per_word || words > SHARE * MOST_PARTS)
    return qn_refuse(out, "rows of whole 16-byte words, longer than registers hold, no longer than a cluster's blocks keep", "x",
                     "16384 to 131072 elements (f32: 65536)", "%lld", (long long)nests.length);
  if (outer->rank > 1 || nests.groups > INT32_MAX / MOST_PARTS)
    return qn_refuse(out, "rows at one step from one another, fewer than 2^28", "x", "other dims that merge", "%d dims", outer->rank);
  const qn_status status = cuda_norm_word_rows(r, s.number, &nests, a.step, out);
  if (status) return status;
  for (a.parts = 2; words > SHARE * a.parts; a.parts *= 2) {}
  a.words = (int32_t)words;
  a.share = (int32_t)qn_round_up(qn_ceil_div(words, a.parts), 8);           /* multiples of a 128-byte cache line */
  a.eps = (float)((const qn_norm *)r->op[0].attr)->eps;
  a.inverse = 1 / (float)nests.length;
  const bool centred = r->op[0].op == QN_OP_LAYER_NORM, full = words == SHARE * a.parts;
  s.kernel = x->dtype == QN_F32  ? kernel_of<QN_F32>(centred, full)
           : x->dtype == QN_BF16 ? kernel_of<QN_BF16>(centred, full)
                                 : kernel_of<QN_F16>(centred, full);
  s.blocks = (unsigned)(nests.groups * a.parts);
  const bool shifted = s.number[SHIFT] >= 0;
  out->estimate = 3000 + (double)nests.groups * (double)words * 32 / (full ? shifted ? 3870 : 3990 : shifted ? 3270 : 3600);
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *p) { return cuda_allow_shared(((const state *)p->state)->kernel); }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  shares a = s->a;
  for (int t = 0; t < TENSORS; t++) a.p[t] = s->number[t] < 0 ? nullptr : launch->ptr[s->number[t]];
  void *arguments[] = { &a };
  return cuda_launch_clusters(s->kernel, s->blocks, (unsigned)a.parts, THREADS, (size_t)a.share * 16, arguments, launch, "norm_cluster");
}

#define ROW(op) { "cluster", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
                  nullptr, nullptr, prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM), ROW(QN_OP_RMS_NORM) };
CUDA_ENGINES(norm_cluster) = { row, sizeof row / sizeof *row };
