/* norm_one_pass_backward.cu -- gradients of layer_norm and rms_norm, f16 and bf16, contiguous rows of 513 to 8192 elements held in a
 * block's registers: each element is read once and written once.
 *
 *   with h = (x - mean) rstd, g = dy scale:  dx = rstd (g - mean g - h mean(g h))        rms_norm: without mean g
 *   dscale = sum dy h, dshift = sum dy:      per block in registers, then added up over the blocks (norm_parts.cuh)
 *
 * Blocks are persistent, one per SM, so that a thread always has the same columns; the next row's loads are in flight meanwhile.
 * As in norm_one_pass nothing general is in here: rows at one stride in whole 16-byte words, one dtype. norm_rows takes everything else. */
#include "cuda_backend.h"
#include "engines.h"
#include "norm_nests.h"
#include "norm_parameters.cuh"
#include "norm_parts.cuh"
#include "kit/sm90.cuh"
#include "kit/vector.cuh"

enum { X, DX, DY, SCALE, DSCALE, DSHIFT, MEAN, RSTD, TENSORS };           /* up to DSHIFT: as long as a row */
/* K: words a thread; E: elements a word; LEAST, MOST: elements of a row */
enum { BLOCK = 512, K = 2, E = 8, LEAST = 513, MOST = BLOCK * K * E };

struct rows_back {
  const uint4 *x, *dy, *scale;
  uint4   *dx;
  const float *mean, *rstd;
  float   *part[2];                       /* partial sums of dscale and dshift; NULL: not wanted */
  int64_t  part_step;                     /* between blocks */
  int64_t  x_step, dx_step, dy_step;      /* from row to row, in words */
  int64_t  x_hop, dx_hop, dy_hop;         /* from one row to the next that the same threads take */
  int32_t  mean_step, rstd_step;          /* in elements */
  int32_t  rows, words;                   /* words: of a row */
  float    inverse;                       /* 1 / row length */
};

/* A thread's words of a row, raw. */
struct row_words {
  uint4 x[K], dy[K];
  float mean, rstd;
};

/* Writes the block's column sums, added over its row groups in order; stage: shared memory for all its words. */
template <int threads> __device__ __forceinline__ void write_part(float *to, const float (&sum)[K][E], float4 *stage, int words)
{
  constexpr int groups = BLOCK / threads;
  const int t = threadIdx.x % threads, group = threadIdx.x / threads;
  if (groups == 1) {
#pragma unroll
    for (int k = 0; k < K; k++)
      if (t + k * threads < words) vector_store_whole<QN_F32>(sum[k], to, (t + k * threads) * E);
    return;
  }
  __syncthreads();                        /* [groups, halves of a word, words] */
#pragma unroll
  for (int k = 0; k < K; k++)
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const float *v = &sum[k][half * 4];
      stage[((group * 2 + half) * K + k) * threads + t] = make_float4(v[0], v[1], v[2], v[3]);
    }
  __syncthreads();
  for (int j = threadIdx.x; j < 2 * words; j += BLOCK) {
    float4 all = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int q = 0; q < groups; q++) {
      const float4 v = stage[(q * 2 + j % 2) * K * threads + j / 2];
      all.x += v.x, all.y += v.y, all.z += v.z, all.w += v.w;
    }
    ((float4 *)to)[j] = all;
  }
}

/* A block handles 512 / threads rows at a time. */
template <int threads, int dtype, bool centred>
__global__ void __launch_bounds__(BLOCK, 1) norm_one_pass_backward(const __grid_constant__ rows_back a)
{
  constexpr int groups = BLOCK / threads, warps = threads / 32;
  __shared__ float2 of_warp[2][BLOCK / 32];
  __shared__ float4 stage[groups > 1 ? BLOCK * K * 2 : 1];
  const int t = threadIdx.x % threads, group = threadIdx.x / threads, step = gridDim.x * groups;
  int row = blockIdx.x * groups + group, ahead = row, turn = 0;
  const uint4 *x = a.x + row * a.x_step + t, *dy = a.dy + row * a.dy_step + t;
  uint4 *dx = a.dx + row * a.dx_step + t, scale[K];
  float dscale[K][E] = {}, dshift[K][E] = {};
  row_words next;
  const auto load_next = [&] {
    if (ahead < a.rows) {
#pragma unroll
      for (int k = 0; k < K; k++)
        if (t + k * threads < a.words) next.x[k] = x[k * threads], next.dy[k] = dy[k * threads];
      next.mean = centred ? a.mean[(int64_t)ahead * a.mean_step] : 0, next.rstd = a.rstd[(int64_t)ahead * a.rstd_step];
      x += a.x_hop, dy += a.dy_hop;
    }
    ahead += step;
  };
  load_next();
  parameter_words<dtype>(scale, a.scale, 1, t, threads, a.words - t);
#pragma unroll 1
  for (; row < a.rows; row += step, dx += a.dx_hop, turn ^= 1) {
    const row_words now = next;
    load_next();
    float h[K][E], g[K][E], sum = 0, along = 0;
    parameter_stay(scale);
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (t + k * threads >= a.words) break;
      float w[E];
      vector_open<dtype>(h[k], 0, now.x[k]);
      vector_open<dtype>(g[k], 0, now.dy[k]);
      vector_open<dtype>(w, 0, scale[k]);
#pragma unroll
      for (int e = 0; e < E; e++) {
        h[k][e] = (h[k][e] - (centred ? now.mean : 0)) * now.rstd;
        dscale[k][e] = fmaf(g[k][e], h[k][e], dscale[k][e]);
        if (centred) dshift[k][e] += g[k][e];
        g[k][e] *= w[e];
        if (centred) sum += g[k][e];
        along = fmaf(g[k][e], h[k][e], along);
      }
    }
    if (centred) sum = warp_sum(sum);
    along = warp_sum(along);
    if (threadIdx.x % 32 == 0) of_warp[turn][threadIdx.x / 32] = make_float2(sum, along);
    group_sync(groups > 1 ? 1 + group : 0, threads);
    sum = along = 0;
#pragma unroll 4
    for (int w = 0; w < warps; w++) {
      const float2 s = of_warp[turn][group * warps + w];
      sum += s.x, along += s.y;
    }
    const float c0 = -now.rstd * (sum * a.inverse), c1 = -now.rstd * (along * a.inverse);
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (t + k * threads >= a.words) break;
#pragma unroll
      for (int e = 0; e < E; e++) g[k][e] = fmaf(g[k][e], now.rstd, centred ? fmaf(h[k][e], c1, c0) : h[k][e] * c1);
      dx[k * threads] = vector_close<dtype>(g[k], 0);
    }
  }
#if __CUDA_ARCH__ >= 900
  grid_dependents_launch();
#endif
  if (a.part[0]) write_part<threads>(a.part[0] + blockIdx.x * a.part_step, dscale, stage, a.words);
  if (centred && a.part[1]) write_part<threads>(a.part[1] + blockIdx.x * a.part_step, dshift, stage, a.words);
}

/* ---- prepare, run ---------------------------------------------------------------------------------------------------------- */

struct state {
  rows_back a;
  column_parts parts;
  int32_t number[TENSORS], gradient[2];   /* value numbers of the request, -1: absent; gradient: dscale, dshift */
  const void *kernel;
};

#define KERNELS(dtype, centred) \
  { (const void *)norm_one_pass_backward<64, dtype, centred>, (const void *)norm_one_pass_backward<128, dtype, centred>, \
    (const void *)norm_one_pass_backward<256, dtype, centred>, (const void *)norm_one_pass_backward<512, dtype, centred> }
static const void *const kernels[2][2][4] = { { KERNELS(QN_BF16, false), KERNELS(QN_BF16, true) },
                                              { KERNELS(QN_F16, false), KERNELS(QN_F16, true) } };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_norm_roles roles = qn_norm_roles_of(r->op[0].op);
  const int8_t role[TENSORS] = { roles.x, roles.dx, roles.dy, roles.scale, roles.dscale, roles.dshift, roles.mean, roles.rstd };
  state s = {};
  rows_back &a = s.a;
  for (int t = 0; t < TENSORS; t++) s.number[t] = qn_role_at(&r->op[0], role[t]);
  const qn_value *x = &r->value[s.number[X]];
  if (x->dtype != QN_BF16 && x->dtype != QN_F16) return qn_refuse(out, "dtypes", "x", "f16 or bf16", "%s", qn_kit_name(x->dtype));
  const cuda_norm_nests nests = cuda_norm_nests_of(r, s.number, DSHIFT + 1, TENSORS);
  const qn_nest *walked = &nests.walked, *outer = &nests.outer;
  if (nests.length < LEAST || nests.length % E || nests.length > MOST)
    return qn_refuse(out, "rows of whole 16-byte words that the registers of a block hold", "x", "513 to 8192 elements", "%lld",
                     (long long)nests.length);
  if (outer->rank > 1 || nests.groups > INT32_MAX / 2)
    return qn_refuse(out, "rows at one step from one another, fewer than 2^30", "x", "other dims that merge", "%d dims", outer->rank);
  int64_t step[TENSORS] = {};
  bool whole = walked->rank == 1;
  for (int t = 0; t < TENSORS && whole; t++) {
    const qn_value *v = s.number[t] < 0 ? nullptr : &r->value[s.number[t]];
    if (!v) continue;
    if (outer->rank) step[t] = outer->stride[t][0];
    if (t >= MEAN && step[t] != (int32_t)step[t])
      return qn_refuse(out, "rows' statistics fewer than 2^31 elements apart", t == MEAN ? "mean" : "rstd", "", "%lld", (long long)step[t]);
    if (t <= DSHIFT) whole = walked->stride[t][0] == 1 && (t <= DY || step[t] == 0);
    if (t <= SCALE) whole &= v->dtype == x->dtype && v->align >= 16 && step[t] % E == 0;
  }
  if (!whole)
    return qn_refuse(out,
                     "tensors of one dtype, in 16-byte words, contiguous where they are normalized over; parameters alike for all rows",
                     "x", "", "%s", "others");
  a.x_step = step[X] / E, a.dx_step = step[DX] / E, a.dy_step = step[DY] / E, a.mean_step = (int32_t)step[MEAN],
  a.rstd_step = (int32_t)step[RSTD];
  a.rows = (int32_t)nests.groups, a.words = (int32_t)(nests.length / E);
  a.inverse = 1 / (float)nests.length;
  int size = 0, threads = 64;
  for (; a.words > threads * K; threads *= 2) size++;
  s.kernel = kernels[x->dtype == QN_F16][r->op[0].op == QN_OP_LAYER_NORM_BACKWARD][size];
  s.gradient[0] = s.number[DSCALE], s.gradient[1] = s.number[DSHIFT];
  s.parts = column_parts_of(r, s.gradient, (int32_t)qn_min_i64(qn_ceil_div(nests.groups, BLOCK / threads), r->device->units), nests.length);
  const int64_t taken = (int64_t)s.parts.jobs * (BLOCK / threads);          /* rows the grid takes at a time */
  a.x_hop = taken * a.x_step, a.dx_hop = taken * a.dx_step, a.dy_hop = taken * a.dy_step;
  out->workspace = column_parts_bytes(&s.parts);
  return cuda_keep(out, &s, sizeof s);
}

static void *pointer(const qn_launch *launch, int32_t number) { return number < 0 ? nullptr : launch->ptr[number]; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  rows_back a = s->a;
  column_parts parts = s->parts;
  a.x = (const uint4 *)pointer(launch, s->number[X]), a.dy = (const uint4 *)pointer(launch, s->number[DY]),
  a.dx = (uint4 *)pointer(launch, s->number[DX]);
  a.scale = (const uint4 *)pointer(launch, s->number[SCALE]);
  a.mean = (const float *)pointer(launch, s->number[MEAN]), a.rstd = (const float *)pointer(launch, s->number[RSTD]);
  a.part_step = column_parts_place(&parts, s->gradient, launch, a.part);
  void *arguments[] = { &a };
  const qn_status status = cuda_check(cudaLaunchKernel(s->kernel, dim3((unsigned)parts.jobs), dim3(BLOCK), arguments, 0,
                                                       (cudaStream_t)launch->stream),
                                      "norm_one_pass_backward");
  return status ? status : column_parts_add(parts, (cudaStream_t)launch->stream);
}

/* The sums depend on how many blocks the device holds, so they are not portable. */
#define ROW(op) { "one_pass", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
                  nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM_BACKWARD), ROW(QN_OP_RMS_NORM_BACKWARD) };
CUDA_ENGINES(norm_one_pass_backward) = { row, sizeof row / sizeof *row };
