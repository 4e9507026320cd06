/* norm_rows_backward.cu -- gradients of layer_norm and rms_norm by contiguous rows, f16, bf16, f32, which the registers of a warp, a block
 * or (sm_90) a cluster hold: each element is read once and written once.
 *
 *   with h = (x - mean) rstd, g = dy scale:  dx = rstd (g - mean g - h mean(g h))        rms_norm: without mean g
 *   dscale = sum dy h, dshift = sum dy:      per block in registers, then added up over the blocks (norm_parameters.cuh)
 *
 * While a row is reduced the next one's loads are in flight. x and dy of one dtype, scale of that too or (WIDE) of f32 beside 16 bits.
 * Refused: rows not in whole aligned words, or longer than 8 blocks hold; parameters that vary from row to row. */
#include "norm_rows_backward.cuh"

/* A thread's words of a row, raw. */
template <int K> struct row_words {
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

/* A block handles 512 / threads rows at a time. */
template <int threads, int dtype, bool centred, bool cluster, bool wide>
__global__ void __launch_bounds__(BLOCK, 1) by_words(const __grid_constant__ rows_back a)
{
  constexpr int E = vector_per_16<dtype>, K = EACH / E, groups = BLOCK / threads;
  constexpr bool early = dtype != QN_F32;                   /* load the next row before this one is reduced */
  constexpr bool stays = early && !wide;                    /* scale is loaded before all rows, and stays in registers */
  __shared__ float4 stage[groups > 1 ? BLOCK * K * E / 4 : 1];
  const int t = threadIdx.x % threads, group = threadIdx.x / threads;
  int rank;
  const int job = row_enter<cluster>(a.parts, &rank), first = rank * threads * K, mine = a.words - first - t, step = a.jobs * groups;
  int row = job * groups + group, ahead = row, turn = 0;
  const uint4 *x = (const uint4 *)a.p[X] + row * a.step[X] + first + t, *dy = (const uint4 *)a.p[DY] + row * a.step[DY] + first + t;
  uint4 *dx = (uint4 *)a.p[Y] + row * a.step[Y] + first + t, scale[K];
  float dscale[K][E] = {}, dshift[K][E] = {};
  row_words<K> next;
  const auto load_next = [&] {
    if (ahead < a.rows) {
#pragma unroll
      for (int k = 0; k < K; k++)
        if (k * threads < mine) next.x[k] = x[k * threads], next.dy[k] = dy[k * threads];
      next.mean = centred ? ((const float *)a.p[MEAN])[ahead * a.step[MEAN]] : 0;
      next.rstd = ((const float *)a.p[RSTD])[ahead * a.step[RSTD]];
      x += a.hop[X], dy += a.hop[DY];
    }
    ahead += step;
  };
  load_next();
  const int count = mine > 0 ? (mine + threads - 1) / threads : 0;
  if (stays) parameter_words<dtype>(scale, a.p[SCALE], 1, first + t, threads, count);
#pragma unroll 1
  for (bool begun = false; row < a.rows; row += step, dx += a.hop[Y], turn ^= 1, begun = true) {
    const row_words<K> now = next;
    if (early) load_next();
    float h[K][E], g[K][E], sum = 0, along = 0;
    if (stays) parameter_stay(scale);
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (k * threads >= mine) break;
      float w[E];
      vector_open<dtype>(h[k], 0, now.x[k]);
      vector_open<dtype>(g[k], 0, now.dy[k]);
      if (wide) {
        vector_load_whole<QN_F32>(w, a.p[SCALE], (int64_t)(first + t + k * threads) * E);
      } else {
        if (!stays) parameter_word<dtype>(scale[k], a.p[SCALE], 1, first + t + k * threads);
        vector_open<dtype>(w, 0, scale[k]);
      }
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
    const float2 s = row_sums<threads, cluster, centred>(sum, along, a.parts, rank, begun, turn);
    const float c0 = -now.rstd * (s.x * a.inverse), c1 = -now.rstd * (s.y * a.inverse);
#pragma unroll
    for (int k = 0; k < K; k++) {
      if (k * threads >= mine) break;
#pragma unroll
      for (int e = 0; e < E; e++) g[k][e] = fmaf(g[k][e], now.rstd, centred ? fmaf(h[k][e], c1, c0) : h[k][e] * c1);
      dx[k * threads] = vector_close<dtype>(g[k], 0);
    }
    if (!early) load_next();
  }
#if __CUDA_ARCH__ >= 900
  grid_dependents_launch();
#endif
  if (a.part[0]) write_part<threads>(a.part[0] + job * a.part_step, dscale, stage, first, a.words);
  if (centred && a.part[1]) write_part<threads>(a.part[1] + job * a.part_step, dshift, stage, first, a.words);
}

/* ---- prepare ----------------------------------------------------------------------------------------------------------------- */

#define OF(threads, dtype, centred, cluster, wide) (const void *)by_words<threads, dtype, centred, cluster, wide>
#define KERNELS(dtype, centred, wide) \
  { OF(32, dtype, centred, false, wide),  OF(64, dtype, centred, false, wide),  OF(128, dtype, centred, false, wide), \
    OF(256, dtype, centred, false, wide), OF(512, dtype, centred, false, wide), OF(512, dtype, centred, true, wide) }
#define DTYPE(dtype, wide) { KERNELS(dtype, false, wide), KERNELS(dtype, true, wide) }
static const void *const kernels[5][2][6] = { DTYPE(QN_F32, false), DTYPE(QN_BF16, false), DTYPE(QN_F16, false), DTYPE(QN_BF16, true),
                                              DTYPE(QN_F16, true) };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  norm_problem p;
  rows_back_state s = {};
  bool wide;
  int size;
  qn_status status = norm_open(r, 0, &p, out);
  if (status) return status;
  if (!norm_word_rows(r, &p, s.a.step, &wide))
    return qn_refuse(out, "contiguous rows of one dtype, in 16-byte words, at one step; a scale alike for all", "x", "", "%s",
                     "another layout");
  status = rows_back_divide(r, p, BLOCK * EACH, 32, 2, &s, &size, out);
  if (status) return status;
  s.kernel = kernels[norm_of_dtype(p.dtype[X], 0, 1, 2) + (wide ? 2 : 0)][p.centred][size];
  out->estimate = 5000 + p.moved / 4000;
  return cuda_keep(out, &s, sizeof s);
}

/* The sums depend on how many blocks the device holds, so they are not portable. */
#define ROW(op) { "rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
                  nullptr, nullptr, prepare, nullptr, rows_back_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM_BACKWARD), ROW(QN_OP_RMS_NORM_BACKWARD) };
CUDA_ENGINES(norm_rows_backward) = { row, sizeof row / sizeof *row };
