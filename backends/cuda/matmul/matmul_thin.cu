/* matmul_thin.cu -- f32 products with m or n at most 16, on FP32 cores, without tiles that would be mostly empty.
 *
 *   y = chain(alpha a b + beta c + bias)     any strides
 *
 * The far operand is the one with few rows (at most 16), the near one the other.
 *
 *   long   near operand with k contiguous: a thread takes every 256th k of 4 rows; with few blocks k is split among several, and
 *          the last one to finish adds their parts in order
 *   wide   near operand with rows contiguous: the warps of a block share k, a lane takes two rows of 64; their sums are added in order */
#include "engines.h"
#include "kit/early.h"
#include "matmul_problem.h"
#include "program/steps.cuh"

enum { THREADS = 256, FEW = 16, ROWS = 4, LINES = 64, AHEAD = 8,            /* AHEAD: k that a lane of wide loads at once */
       LONGEST = 8192 };                       /* terms of a running sum */

struct side { const float *p; int64_t row, k, batch[2]; int32_t rows; };
struct thin {
  side     near, far;
  void    *y;
  float   *partial;                       /* [unit of ROWS rows][share][ROWS * FEW] */
  uint32_t *tickets;
  uint32_t y_dtype;
  int32_t  exchanged, k, shares, share;   /* exchanged: the near operand is b, its rows are y's columns */
  uint32_t groups, batch0;                /* groups: blocks' groups of near rows in a batch */
  int64_t  y_stride[4];                   /* row, column, batches */
  cuda_steps steps;
};

/* Stores n <= 8 elements of y: rows far0, far0 + 1, ... of the far operand by row `near` of the near one. */
__device__ __forceinline__ void put(const thin &t, float (&v)[8], int near, int far0, int b0, int b1, int n)
{
  int row = t.exchanged ? far0 : near, column = t.exchanged ? near : far0;
  steps_apply(t.steps, v, row, column, b0, b1, t.exchanged, n);
  store8(v, t.y, t.y_dtype, row * t.y_stride[0] + column * t.y_stride[1] + b0 * t.y_stride[2] + b1 * t.y_stride[3],
         t.y_stride[t.exchanged ? 0 : 1], n);
}

__device__ __forceinline__ const float *matrix(const side &s, int b0, int b1) { return s.p + b0 * s.batch[0] + b1 * s.batch[1]; }

__global__ void __launch_bounds__(THREADS) matmul_long(const __grid_constant__ thin t)
{
  __shared__ float warps[THREADS / 32][ROWS * FEW];
  __shared__ bool last;
  uint32_t unit = blockIdx.x / t.shares, part = blockIdx.x - unit * t.shares, batch = unit / t.groups,
           row0 = (unit - batch * t.groups) * ROWS;
  uint32_t b1 = batch / t.batch0, b0 = batch - b1 * t.batch0;
  const float *near = matrix(t.near, b0, b1), *far = matrix(t.far, b0, b1);
  int end = min(t.k, (int)(part + 1) * t.share), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float *row[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) row[r] = near + min((int)row0 + r, t.near.rows - 1) * t.near.row;
  float sum[ROWS][FEW] = {};
#pragma unroll 2
  for (int k = part * t.share + threadIdx.x; k < end; k += THREADS) {
    float a[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) a[r] = row[r][k * t.near.k];
#pragma unroll
    for (int n = 0; n < FEW; n++) {
      float b = n < t.far.rows ? far[n * t.far.row + k * t.far.k] : 0;
#pragma unroll
      for (int r = 0; r < ROWS; r++) sum[r][n] = fmaf(a[r], b, sum[r][n]);
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int n = 0; n < FEW; n++) {
      if (n >= t.far.rows) continue;
      float v = sum[r][n];
#pragma unroll
      for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
      if (lane == 0) warps[warp][r * FEW + n] = v;
    }
  __syncthreads();
  if (threadIdx.x < ROWS * FEW) {
    float v = warps[0][threadIdx.x];
#pragma unroll
    for (int w = 1; w < THREADS / 32; w++) v += warps[w][threadIdx.x];
    warps[0][threadIdx.x] = v;
    if (t.shares > 1) t.partial[(int64_t)blockIdx.x * (ROWS * FEW) + threadIdx.x] = v;
  }
  if (t.shares > 1) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      last = atomicInc(&t.tickets[unit], t.shares - 1) == (uint32_t)t.shares - 1;  /* wraps to 0 for the next launch */
      __threadfence();
    }
    __syncthreads();
    if (!last) return;
    if (threadIdx.x < ROWS * FEW) {
      const float *from = t.partial + (int64_t)unit * t.shares * (ROWS * FEW) + threadIdx.x;
      float v = 0;
      for (int s = 0; s < t.shares; s++) v += __ldcg(from + s * (ROWS * FEW));
      warps[0][threadIdx.x] = v;
    }
  }
  __syncthreads();
  int r = threadIdx.x / 2, far0 = threadIdx.x % 2 * 8;
  if (r >= ROWS || (int)row0 + r >= t.near.rows || far0 >= t.far.rows) return;
  float v[8];
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = warps[0][r * FEW + far0 + i];
  put(t, v, row0 + r, far0, b0, b1, min(8, t.far.rows - far0));
}

/* N: of far rows, at most. */
template <int N, int WAYS> __global__ void __launch_bounds__(32 * WAYS) matmul_wide(const __grid_constant__ thin t)
{
  __shared__ float sums[WAYS][N][LINES];
  const uint32_t batch = blockIdx.x / t.groups, row0 = (blockIdx.x - batch * t.groups) * LINES, b1 = batch / t.batch0, b0 = batch - b1 * t.batch0;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, last = t.near.rows - 1;
  const float *near = matrix(t.near, b0, b1), *far = matrix(t.far, b0, b1);
  const int begin = warp * t.share, end = min(t.k, begin + t.share);
  float sum[2][N] = {};                   /* rows beyond the last are the last, and not stored */
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();        /* earlier kernels of the stream may still write the operands */
#endif
  const float *const at[2] = { near + min((int)row0 + lane, last) * t.near.row, near + min((int)row0 + lane + 32, last) * t.near.row };
#pragma unroll 1
  for (int k0 = begin; k0 < end; k0 += AHEAD) {
    float x[2][AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
#pragma unroll
      for (int h = 0; h < 2; h++) x[h][i] = k0 + i < end ? at[h][(k0 + i) * t.near.k] : 0;
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
#pragma unroll
      for (int n = 0; n < N; n++) {
        const float y = k0 + i < end && n < t.far.rows ? far[n * t.far.row + (k0 + i) * t.far.k] : 0;
        sum[0][n] = fmaf(x[0][i], y, sum[0][n]), sum[1][n] = fmaf(x[1][i], y, sum[1][n]);
      }
  }
#pragma unroll
  for (int n = 0; n < N; n++) sums[warp][n][lane] = sum[0][n], sums[warp][n][lane + 32] = sum[1][n];
  __syncthreads();
  const int line = threadIdx.x % LINES, row = row0 + line;
#pragma unroll 1
  for (int n0 = threadIdx.x / LINES * 8; n0 < t.far.rows && row <= last; n0 += WAYS / 2 * 8) {
    float v[8] = {};
    for (int w = 0; w < WAYS; w++)
#pragma unroll
      for (int i = 0; i < 8; i++)
        if (n0 + i < N) v[i] += sums[w][n0 + i][line];
    put(t, v, row, n0, b0, b1, min(8, t.far.rows - n0));
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

static const char *const variants[] = { "long", "wide", NULL };

/* Kernels of wide: the fewer far rows, the more warps, whose sums must fit into shared memory. */
struct kernel { const void *function; int32_t rows, ways; };
#define KERNEL(rows, ways) { (const void *)matmul_wide<rows, ways>, rows, ways }
static const kernel kernels[] = { KERNEL(1, 32), KERNEL(4, 16), KERNEL(FEW, 8) };

struct state { thin t; cuda_chain chain; int32_t near, far, early; uint32_t blocks; const kernel *wide; };     /* wide: NULL: long */

static side side_of(const cuda_matmul_side *s)
{
  return side{ nullptr, s->row_stride, s->k_stride, { s->batch_stride[0], s->batch_stride[1] }, (int32_t)s->rows };
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_matmul m;
  qn_status status = cuda_matmul_read(r, out, &m);
  if (status) return status;
  if (m.a.dtype != QN_F32 || m.b.dtype != QN_F32)
    return qn_refuse(out, "dtypes", m.a.dtype != QN_F32 ? "a" : "b", "f32", "%s", qn_kit_name(m.a.dtype != QN_F32 ? m.a.dtype : m.b.dtype));
  if (m.a.align < 4 || m.b.align < 4) return qn_refuse(out, "elements at their own alignment", "a", "4 bytes", "%s", "less");
  if (m.m > FEW && m.n > FEW) return qn_refuse(out, "rows or columns of 16 or fewer", "y", "16", "%lld", (long long)qn_min_i64(m.m, m.n));
  int64_t batches = m.batch[0] * m.batch[1];
  if ((double)m.m * m.n * batches > 2e9 || (double)m.k * FEW > 2e9)
    return qn_refuse(out, "fewer than 2^31 elements", "y", "", "%s", "more");

  bool exchanged = m.n > FEW;
  const cuda_matmul_side *near = exchanged ? &m.b : &m.a, *far = exchanged ? &m.a : &m.b;
  bool wide = r->variant ? !strcmp(r->variant, "wide") : near->row_stride == 1 && near->k_stride != 1;
  cuda_chain chain;
  status = cuda_matmul_chain(r, out, &m, &chain);
  if (status) return status;

  state s = {};
  thin *t = &s.t;
  const qn_value *y = &r->value[chain.out];
  t->near = side_of(near), t->far = side_of(far);
  t->exchanged = exchanged;
  t->k = (int32_t)m.k;
  t->batch0 = (uint32_t)m.batch[0];
  t->y_dtype = y->dtype;
  for (int i = 0; i < 4; i++) t->y_stride[i] = cuda_stride(y, m.dims.dim_of[i]);
  t->steps = chain.steps;
  t->shares = 1, t->share = t->k;
  int64_t groups = qn_ceil_div(near->rows, wide ? LINES : ROWS), units = groups * batches, blocks = units;
  if (wide) {
    s.wide = kernels;
    while (s.wide->rows < far->rows) s.wide++;
    t->share = (int32_t)qn_round_up(qn_ceil_div(m.k, s.wide->ways), AHEAD);
    if (t->share > LONGEST)
      return qn_refuse(out, "a warp's sums of at most 8192 terms", "a", "", "k of %lld", (long long)m.k);
  } else {
    int64_t shares = qn_max_i64(1, qn_min_i64(qn_min_i64(r->device->units / units, 16), qn_ceil_div(m.k, 2 * THREADS)));
    shares = qn_max_i64(shares, qn_ceil_div(m.k, THREADS * LONGEST));
    int64_t share = qn_round_up(qn_ceil_div(m.k, shares), THREADS);
    shares = qn_ceil_div(m.k, share);
    if (units > 1024 || (uint64_t)(units * shares * ROWS * FEW) * 4 > r->demands->workspace_limit) shares = 1, share = m.k;
    if (share > THREADS * LONGEST)
      return qn_refuse(out, "a thread's sums of at most 8192 terms, else parts of them in workspace", "a", "", "k of %lld", (long long)m.k);
    t->shares = (int32_t)shares, t->share = (int32_t)share;
    blocks = units * shares;
    if (shares > 1) out->workspace = (uint64_t)(blocks * ROWS * FEW) * 4, out->counters = (uint64_t)units * 4;
  }
  if (blocks > INT32_MAX) return qn_refuse(out, "fewer than 2^31 blocks", "y", "", "%s", "more");
  t->groups = (uint32_t)groups;
  s.chain = chain, s.near = near->value, s.far = far->value, s.blocks = (uint32_t)blocks;
  out->n_ops = chain.n_ops;
  out->variant = variants[wide];
  double bytes = ((double)m.m * m.k + (double)m.n * m.k + (double)m.m * m.n) * batches * 4;
  /* on an H200. wide: loads of AHEAD k after each other by the blocks that find room together, or memory; several rounds of blocks are
   * bound by their starts and ends (2 x 64 by 64 x 262144: 128 us); long, measured: per block's sums, and per 512 of k */
  if (wide) {
    const double rounds = (double)qn_ceil_div(blocks, 64 / s.wide->ways * r->device->units);
    double each = (double)(t->share / AHEAD) * (s.wide->rows > 1 ? 400 * s.wide->rows : 600);
    if (rounds > 1 && each < 16000) each = 16000;
    out->estimate = 3000 + (bytes / 3900 > rounds * each ? bytes / 3900 : rounds * each);
  } else {
    out->estimate = (double)qn_ceil_div(blocks, r->device->units) * (6000 + (double)qn_ceil_div(t->share, 2 * THREADS) * 2400) +
                    (t->shares > 1 ? 1000 : 0) + bytes / 2500;
  }
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *out)
{
  state *s = (state *)out->state;
  return s->wide ? cuda_waits_itself(s->wide->function, &s->early) : QN_OK;
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  thin t = st->t;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  t.near.p = (const float *)launch->ptr[st->near];
  t.far.p = (const float *)launch->ptr[st->far];
  t.y = launch->ptr[st->chain.out];
  t.partial = (float *)launch->workspace;
  t.tickets = (uint32_t *)launch->counters;
  cuda_chain_bind(&t.steps, &st->chain, launch->ptr);
  if (st->wide) return cuda_launch_early(st->wide->function, st->early, st->blocks, 32u * (uint32_t)st->wide->ways, 0, &t, launch, "matmul_thin");
  matmul_long<<<st->blocks, THREADS, 0, stream>>>(t);
  return cuda_check(cudaGetLastError(), "matmul_thin");
}

static const qn_engine row[] = {
  { "thin", QN_OP_MATMUL, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, variants, nullptr, prepare, build, run, cuda_release },
};
CUDA_ENGINES(matmul_thin) = { row, sizeof row / sizeof *row };
