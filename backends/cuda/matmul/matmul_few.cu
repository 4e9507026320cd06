/* matmul_few.cu -- products with m or n at most 32, in 16 bits and f32 (as 3xTF32): from memory into the Tensor Cores' registers, without
 * a tile.
 *
 *   y = chain(alpha a b + beta c + bias)     any strides, any alignment
 *
 * The far operand is the one with few rows, the near one the other. A block takes 16 near rows; its warps share k, and their sums are
 * added in order. Since the order of the terms is free, a lane takes eight neighbouring k of a row, in the widest loads that both
 * operands' alignment allows, one by one where k is not contiguous: what it loads is its part of two fragments of mma.sync. The rows of
 * squeeze-and-excitation blocks and of classifiers are such: too few to fill tiles, most of whose time would be the start and the end. */
#include "engines.h"
#include "kit/sm80.cuh"
#include "kit/early.h"
#include "matmul_problem.h"
#include "matmul_mma.cuh"

enum { ROWS = 16, EIGHT = 8, CHUNK = 32, WAYS = 8, MOST = 32,             /* k of a chunk: eight of each of four lanes */
       LONGEST = 32768, LONGEST_F32 = 8192 };     /* terms of a warp's running sum: Tensor Cores truncate */

struct side { const void *p; int64_t row, k, batch[2]; int32_t rows; };      /* strides in elements */
struct few {
  side     near, far;
  void    *y;
  uint32_t y_dtype;
  int32_t  exchanged, k, share;           /* exchanged: the near operand is b, its rows are y's columns; share: k of a warp */
  uint32_t groups, batch0;                /* groups of near rows in a batch */
  int64_t  y_stride[4];                   /* row, column, batches */
  cuda_steps steps;
};

/* Eight k of a row from k on, those beyond the end 0, in loads of `unit` bytes; those of an element: with any stride. */
template <int esize, int unit> __device__ __forceinline__ void load_row(uint32_t (&v)[2 * esize], const char *row, int64_t stride, int k, int end)
{
  constexpr int of = unit / esize;        /* elements of a load */
  const char *p = row + k * (of > 1 ? 1 : stride) * esize;
  if constexpr (of > 1) {
#pragma unroll
    for (int i = 0; i < EIGHT / of; i++) {
      const bool there = k + i * of < end;
      if constexpr (unit == 16) {
        const uint4 q = there ? *(const uint4 *)(p + 16 * i) : make_uint4(0, 0, 0, 0);
        v[4 * i] = q.x, v[4 * i + 1] = q.y, v[4 * i + 2] = q.z, v[4 * i + 3] = q.w;
      } else if constexpr (unit == 8) {
        const uint2 q = there ? *(const uint2 *)(p + 8 * i) : make_uint2(0, 0);
        v[2 * i] = q.x, v[2 * i + 1] = q.y;
      } else {
        v[i] = there ? *(const uint32_t *)(p + 4 * i) : 0;
      }
    }
  } else if constexpr (esize == 4) {
#pragma unroll
    for (int i = 0; i < EIGHT; i++) v[i] = k + i < end ? *(const uint32_t *)(p + i * stride * 4) : 0;
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t low = k + 2 * i < end ? *(const uint16_t *)(p + 4 * i * stride) : 0;
      v[i] = low | (uint32_t)(k + 2 * i + 1 < end ? *(const uint16_t *)(p + (4 * i + 2) * stride) : 0) << 16;
    }
  }
}

/* Adds the products of a lane's part of a chunk. 16 bits: of its eight k two are a word, four words two products; f32: a word each. */
template <class mma, int esize, int eights>
__device__ __forceinline__ void multiply(float (&sum)[eights][4], const uint32_t (&a)[2][2 * esize], const uint32_t (&b)[eights][2 * esize])
{
#pragma unroll
  for (int at = 0; at < 2 * esize; at += 4) {
    uint32_t x[2][4], x_small[2][4];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      x[i][0] = a[0][at + 2 * i], x[i][1] = a[1][at + 2 * i], x[i][2] = a[0][at + 2 * i + 1], x[i][3] = a[1][at + 2 * i + 1];
      if (esize == 4) round_tf32<true>(x[i], x_small[i]);
    }
#pragma unroll
    for (int e = 0; e < eights; e++) {
      uint32_t y[4] = { b[e][at], b[e][at + 1], b[e][at + 2], b[e][at + 3] }, y_small[4];
      if (esize == 4) {
        round_tf32<true>(y, y_small);
#pragma unroll
        for (int i = 0; i < 2; i++) {
          mma::product(sum[e], x_small[i], y[2 * i], y[2 * i + 1]);
          mma::product(sum[e], x[i], y_small[2 * i], y_small[2 * i + 1]);
        }
      }
#pragma unroll
      for (int i = 0; i < 2; i++) mma::product(sum[e], x[i], y[2 * i], y[2 * i + 1]);
    }
  }
}

__device__ __forceinline__ const char *matrix_of(const side &s, int b0, int b1, int esize)
{
  return (const char *)s.p + (b0 * s.batch[0] + b1 * s.batch[1]) * esize;
}

/* Eights: of far rows. Grid: groups of near rows, of all batches. */
template <class mma, int esize, int unit, int eights> __global__ void __launch_bounds__(32 * WAYS) matmul_few(const __grid_constant__ few t)
{
  __shared__ float sums[WAYS][ROWS][EIGHT * eights];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, ways = blockDim.x / 32, q = lane % 4, r = lane / 4;
  const uint32_t batch = blockIdx.x / t.groups, row0 = (blockIdx.x - batch * t.groups) * ROWS;
  const uint32_t b1 = batch / t.batch0, b0 = batch - b1 * t.batch0;
  const auto row_of = [&](const side &s, int row) {         /* rows beyond the operand give sums that are not stored */
    return matrix_of(s, b0, b1, esize) + min(row, s.rows - 1) * s.row * esize;
  };
  const char *const near[2] = { row_of(t.near, row0 + r), row_of(t.near, row0 + r + 8) }, *far[eights];
#pragma unroll
  for (int i = 0; i < eights; i++) far[i] = row_of(t.far, i * EIGHT + r);
  const int begin = warp * t.share, end = min(t.k, begin + t.share);
  float sum[eights][4] = {};
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();        /* earlier kernels of the stream may still write the operands */
#endif
#pragma unroll(eights > 2 ? 2 : 4)
  for (int k = begin; k < end; k += CHUNK) {
    uint32_t a[2][2 * esize], b[eights][2 * esize];
#pragma unroll
    for (int i = 0; i < 2; i++) load_row<esize, unit>(a[i], near[i], t.near.k, k + q * EIGHT, end);
#pragma unroll
    for (int i = 0; i < eights; i++) load_row<esize, unit>(b[i], far[i], t.far.k, k + q * EIGHT, end);
    multiply<mma, esize, eights>(sum, a, b);
  }
  /* the sums of all warps, then of each near row eight far ones at a time */
#pragma unroll
  for (int i = 0; i < eights; i++)
#pragma unroll
    for (int e = 0; e < 4; e++) sums[warp][r + e / 2 * 8][i * EIGHT + q * 2 + e % 2] = sum[i][e];
  __syncthreads();
  for (int i = threadIdx.x; i < ROWS * eights; i += blockDim.x) {
    const int near_row = i % ROWS, far0 = i / ROWS * EIGHT, n = min((int)EIGHT, t.far.rows - far0), row1 = row0 + near_row;
    if (row1 >= t.near.rows || n <= 0) continue;
    float v[8] = {};
    for (int w = 0; w < ways; w++)
#pragma unroll
      for (int e = 0; e < 8; e++) v[e] += sums[w][near_row][far0 + e];
    if constexpr (esize == 4) {           /* what scaling or splitting has spoilt: in plain f32, straight from the formula */
      float *const mine = &sums[0][near_row][far0];
      bool again = false;
#pragma unroll
      for (int e = 0; e < 8; e++) mine[e] = v[e] *= 0x1p-48f, again |= e < n && !isfinite(v[e]);
      const float *x = (const float *)matrix_of(t.near, b0, b1, 4) + row1 * t.near.row,
                  *z = (const float *)matrix_of(t.far, b0, b1, 4) + far0 * t.far.row;
#pragma unroll 1
      for (int e = 0; again && e < n; e++, z += t.far.row) {
        if (isfinite(mine[e])) continue;
        float s = 0;
        for (int k = 0; k < t.k; k++) s += x[k * t.near.k] * z[k * t.far.k];
        mine[e] = s;
      }
#pragma unroll
      for (int e = 0; e < 8; e++) v[e] = mine[e];
    }
    const int row = t.exchanged ? far0 : row1, column = t.exchanged ? row1 : far0;
    steps_apply(t.steps, v, row, column, b0, b1, t.exchanged, n);
    store8(v, t.y, t.y_dtype, row * t.y_stride[0] + column * t.y_stride[1] + b0 * t.y_stride[2] + b1 * t.y_stride[3],
           t.y_stride[t.exchanged ? 0 : 1], n);
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------------- */

#define EIGHTS(mma, esize, unit) { (const void *)matmul_few<mma, esize, unit, 1>, (const void *)matmul_few<mma, esize, unit, 2>, \
                                   (const void *)matmul_few<mma, esize, unit, 4> }
#define UNITS(mma) { EIGHTS(mma, 2, 2), EIGHTS(mma, 2, 4), EIGHTS(mma, 2, 8), EIGHTS(mma, 2, 16) }
static const void *const kernels[3][4][3] = {               /* [dtype][log 2 of the unit, less 1][of far rows] */
  UNITS(mma_bf16), UNITS(mma_f16), { {}, EIGHTS(mma_tf32, 4, 4), EIGHTS(mma_tf32, 4, 8), EIGHTS(mma_tf32, 4, 16) } };

struct state { few t; cuda_chain chain; const void *function; int32_t near, far, early; uint32_t blocks, threads; };

static side side_of(const cuda_matmul_side *s)
{
  return side{ nullptr, s->row_stride, s->k_stride, { s->batch_stride[0], s->batch_stride[1] }, (int32_t)s->rows };
}

/* Log 2 of the bytes of the widest loads that a row's k are whole units of; least: an element. */
static int unit_of(const cuda_matmul_side *s, int64_t k, int least)
{
  int unit = s->k_stride == 1 || k == 1 ? 4 : least;
  while (unit > least && (s->align % (1u << unit) || ((k | s->row_stride | s->batch_stride[0] | s->batch_stride[1]) << least) % (1 << unit))) unit--;
  return unit;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_matmul m;
  qn_status status = cuda_matmul_read_floats(r, out, &m);
  if (status) return status;
  const bool f32 = m.a.dtype == QN_F32;
  const int64_t least = qn_min_i64(m.m, m.n), batches = m.batch[0] * m.batch[1];
  if (least > MOST) return qn_refuse(out, "rows or columns of 32 or fewer", "y", "32", "%lld", (long long)least);
  const int least_unit = f32 ? 2 : 1;
  if (m.k > (f32 ? LONGEST_F32 : LONGEST) * WAYS)
    return qn_refuse(out, "a running sum of each warp", "a", f32 ? "k of at most 65536" : "k of at most 262144", "%lld", (long long)m.k);
  const bool exchanged = m.n > m.m;
  const cuda_matmul_side *near = exchanged ? &m.b : &m.a, *far = exchanged ? &m.a : &m.b;
  const int64_t groups = qn_ceil_div(near->rows, ROWS), blocks = groups * batches;
  if (blocks > INT32_MAX) return qn_refuse(out, "fewer than 2^31 blocks", "y", "", "%s", "more");

  state s = {};
  status = cuda_matmul_chain(r, out, &m, &s.chain);
  if (status) return status;
  few *t = &s.t;
  const qn_value *y = &r->value[s.chain.out];
  const int unit = (int)qn_min_i64(unit_of(near, m.k, least_unit), unit_of(far, m.k, least_unit)), eights = far->rows <= 8 ? 0 : far->rows <= 16 ? 1 : 2;
  /* a warp's k are in whole loads of many chunks, of short sums in one; loads one by one are slow, and shared by all warps */
  const bool strided = m.k > 1 && (m.a.k_stride != 1 || m.b.k_stride != 1);
  int64_t ways = qn_min_i64(WAYS, qn_ceil_div(m.k, strided ? CHUNK : 2 * CHUNK));
  const int64_t share = qn_round_up(qn_ceil_div(m.k, ways), CHUNK);
  ways = qn_ceil_div(m.k, share);
  t->near = side_of(near), t->far = side_of(far);
  t->exchanged = exchanged, t->k = (int32_t)m.k, t->share = (int32_t)share;
  t->groups = (uint32_t)groups, t->batch0 = (uint32_t)m.batch[0];
  t->y_dtype = y->dtype;
  for (int i = 0; i < 4; i++) t->y_stride[i] = cuda_stride(y, m.dims.dim_of[i]);
  t->steps = s.chain.steps;
  s.function = kernels[f32 ? 2 : m.a.dtype == QN_F16][unit - 1][eights];
  s.near = near->value, s.far = far->value, s.blocks = (uint32_t)blocks, s.threads = (uint32_t)ways * 32;
  out->n_ops = s.chain.n_ops;
  if (f32) out->math = QN_MATH_F32;
  out->numerics.accumulator = f32 ? QN_ACC_3XTF32 : QN_ACC_F32_TC;
  /* on an H200: the launch; loads of several chunks at a time, of four eights of far rows many; the rate at which 2.4 MB came, and that of more */
  const double bytes = ((double)m.m * m.k + (double)m.n * m.k + (double)m.m * m.n) * batches * (f32 ? 4 : 2), first = strided || batches > 1 || bytes < 4e6 ? bytes : 4e6;
  const int64_t resident = qn_min_i64(8, 21 / ways);        /* by the registers of a warp that loads one by one, some 96 a thread */
  const double waves = (double)qn_ceil_div(blocks, resident * (int64_t)r->device->units);
  const double passes = (double)qn_ceil_div(share, CHUNK * (strided ? 1 : eights > 1 ? 2 : 4)) * waves;
  const double loads = passes * (f32 ? 800 : 600) * (unit < 3 ? 1.5 : 1) * (eights > 1 ? 2.5 : 1), rest = (bytes - first) / 3900;
  const bool scattered = m.k > 1 && m.a.k_stride != 1 && m.b.k_stride != 1;  /* both: measured at 0.3 TB/s */
  out->estimate = 1500 + first / ((scattered ? 2.3 : f32 ? 12.0 : 8.0) * r->device->units) + (loads > rest ? loads + 0.2 * rest : rest + 0.2 * loads);
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *out)
{
  state *s = (state *)out->state;
  return cuda_waits_itself(s->function, &s->early);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *s = (const state *)prepared->state;
  few t = s->t;
  t.near.p = launch->ptr[s->near];
  t.far.p = launch->ptr[s->far];
  t.y = launch->ptr[s->chain.out];
  cuda_chain_bind(&t.steps, &s->chain, launch->ptr);
  return cuda_launch_early(s->function, s->early, s->blocks, s->threads, 0, &t, launch, "matmul_few");
}

static const qn_engine row[] = {
  { "few", QN_OP_MATMUL, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, nullptr, nullptr,
    prepare, build, run, cuda_release },
};
CUDA_ENGINES(matmul_few) = { row, sizeof row / sizeof *row };
