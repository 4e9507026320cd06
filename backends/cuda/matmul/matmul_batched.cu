/* matmul_batched.cu -- many products of small matrices, each of them one run of memory: 16 bits, and f32 as 3xTF32.
 *
 *   y = chain(alpha a b + beta c + bias)     a [B, M, K] and b [B, K, N] in either order, y [B, M, N]; M, N at most 64
 *
 * The attention of windows is such: 49 tokens by 32, 1024 times. A CTA copies a matrix of each operand whole, in aligned 16-byte pieces,
 * whatever the length of its lines, multiplies, and stores a matrix of y whole from shared memory, in aligned words: such products are
 * limited by their instructions, which tiles would have twice as many of, and by bank conflicts. */
#include "engines.h"
#include "kit/divisor.h"
#include "kit/early.h"
#include "matmul_problem.h"
#include "matmul_words.cuh"

enum { MOST = 64, SHARED = 48 << 10 };                      /* rows and columns; bytes that no kernel needs to ask for */

/* batch: strides in elements; line: bytes of a line in shared memory: as in memory, or where that is whole pieces, one more */
struct side { const void *p; int64_t batch[2]; int32_t rows, line, aligned; cuda_divisor by_line; };     /* aligned: each line */
struct batched {
  side     a, b;
  void    *y;
  int64_t  y_batch[2];
  uint32_t y_dtype;
  cuda_divisor by_batch0;
  int32_t  k, at_b;                       /* at_b: where in shared memory b begins */
  cuda_divisor by_n;
  cuda_steps steps;
};

/* ---- an operand ------------------------------------------------------------------------------------ */

/* Starts copying a matrix of so many elements to shared memory, as misaligned there as it is in memory; where its lines are whole pieces
 * they are padded by one, for 8 lines are read at once. Returns where it begins. */
template <int esize, int THREADS> __device__ __forceinline__ uint32_t copy_matrix(uint32_t to, const side &s, int b0, int b1, int count)
{
  const char *from = (const char *)s.p + (b0 * s.batch[0] + b1 * s.batch[1]) * esize;
  const int shift = (int)((uintptr_t)from & 15), end = shift + count * esize;
#pragma unroll 4
  for (int i = threadIdx.x; i * 16 < end; i += THREADS) {
    uint32_t in_line;
    const int line = s.aligned ? cuda_quotient(i, s.by_line, &in_line) : 0;
    copy_async<16>(to + (i + line) * 16, from - shift + i * 16, min(end - i * 16, 16));
  }
  return to + shift;
}

/* This lane's words of an operand: of group i of eight of its warp's rows, 4 bytes of k from 4 q on (half 0), or 16 bytes further (half 1);
 * q = lane % 4. Of 16 bits the lower k is in the lower half. Lines eight (f32: four) apart are alike misaligned. */
template <int esize, bool rows_contiguous, bool is_a> struct elements {
  uint32_t at, line;                      /* address; bytes of a line: of rows, or rows contiguous of k */
  int turn, odd;                          /* of unaligned_word */
  bool aligned;                           /* each line, for ldmatrix */

  __device__ elements(uint32_t matrix, const side &s, int row0)
  {
    const int lane = threadIdx.x % 32, row = row0 + lane / 4, k0 = lane % 4 * (4 / esize);
    line = s.line, odd = (matrix | line) & 2, aligned = aligned_words<esize, rows_contiguous> && s.aligned;
    const uint32_t from = matrix + (rows_contiguous ? k0 * line + row * esize : row * line + k0 * esize);
    at = rows_contiguous ? from : from & ~3u, turn = (from & 2) * 8;
    if (aligned) at = matrix + aligned_place<esize, rows_contiguous, is_a>(line, row0, 0);
  }
  __device__ __forceinline__ uint32_t word(int i, int half) const
  {
    const uint32_t from = at + (rows_contiguous ? half * (16 / esize) * line + i * 8 * esize : i * 8 * line + half * 16);
    return unaligned_word<esize, rows_contiguous>(from, line, turn, odd);
  }
  /* Of N groups of 16 rows, in mma.sync's order. */
  template <int N> __device__ __forceinline__ void words(uint32_t (&w)[N][4]) const
  {
    if (aligned) {
#pragma unroll
      for (int i = 0; i < N; i++) load_matrices<rows_contiguous>(w[i], at + i * 16 * (rows_contiguous ? esize : line));
      return;
    }
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) w[i][j] = word(i * 2 + (is_a ? j % 2 : j / 2), is_a ? j / 2 : j % 2);
  }
  __device__ __forceinline__ void next() { at += rows_contiguous ? 32 / esize * line : 32; }
};

/* ---- the kernel ------------------------------------------------------------------------------------- */

/* Warps of 16 QM rows by 32 columns: 2, two by two; 1, one above the other, and of eight warps four more beside them. */
template <class mma, int esize, bool rows_a, bool rows_b, int QM, int THREADS>
__global__ void __launch_bounds__(THREADS, THREADS > 128 ? 3 : esize == 4 ? 5 : 6) matmul_batched(const __grid_constant__ batched t)
{
  extern __shared__ __align__(16) unsigned char shared[];
  constexpr bool split = esize == 4;
  constexpr int k_of = 32 / esize;        /* k of an mma */
  uint32_t b0;
  const uint32_t b1 = cuda_quotient(blockIdx.x, t.by_batch0, &b0);
  const int m = t.a.rows, n = t.b.rows, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row0 = (QM == 2 ? warp / 2 : warp % 4) * 16 * QM, col0 = QM == 2 ? warp % 2 * 32 : warp / 4 * 32;
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();        /* earlier kernels of the stream may still write a and b */
#endif
  const uint32_t in_a = copy_matrix<esize, THREADS>(shared_address(shared), t.a, b0, b1, m * t.k);
  const uint32_t in_b = copy_matrix<esize, THREADS>(shared_address(shared) + t.at_b, t.b, b0, b1, n * t.k);
  copy_async_commit();
  elements<esize, rows_a, true> a(in_a, t.a, row0);
  elements<esize, rows_b, false> b(in_b, t.b, col0);
  float sum[QM][4][4] = {};
  copy_async_wait<0>();
  __syncthreads();

  if (row0 < m && col0 < n)
#pragma unroll 2
    for (int k = 0; k < t.k; k += k_of, a.next(), b.next()) {
      uint32_t x[QM][4], y[2][4];
      a.words(x), b.words(y);
      if (k + k_of > t.k) {               /* behind the last k lie other rows */
        uint32_t there[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
          const int left = t.k - k - lane % 4 * (4 / esize) - half * k_of / 2;
          there[half] = left <= 0 ? 0 : esize == 2 && left == 1 ? 0xffff : ~0u;
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
          for (int i = 0; i < QM; i++) x[i][j] &= there[j / 2];
#pragma unroll
          for (int i = 0; i < 2; i++) y[i][j] &= there[j % 2];
        }
      }
      multiply_words<mma, split, QM>(sum, x, y);
    }

  /* the sums, in the operands' place */
  constexpr int columns = QM == 2 || THREADS > 128 ? 64 : 32, pitch = columns + 8;        /* free of bank conflicts */
  float *const all = (float *)shared;
  bool again = false;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < QM; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      float(&s)[4] = sum[i][j];
#pragma unroll
      for (int e = 0; split && e < 4; e++) s[e] *= 0x1p-48f, again |= !isfinite(s[e]);
      float *to = all + (row0 + i * 16 + lane / 4) * pitch + col0 + j * 8 + lane % 4 * 2;
      *(float2 *)to = make_float2(s[0], s[1]), *(float2 *)(to + 8 * pitch) = make_float2(s[2], s[3]);
    }
  again = __syncthreads_or(again);

  if (again || t.steps.n) {
    for (int i = threadIdx.x; i < m * columns / 8; i += THREADS) {
      const int row = i / (columns / 8), column = i % (columns / 8) * 8, there = min(n - column, 8);
      float v[8], *from = all + row * pitch + column;
      if (there <= 0) continue;
      if (again) {                        /* what scaling or splitting may have spoilt: in plain f32, straight from the formula */
        const float *pa = (const float *)t.a.p + b0 * t.a.batch[0] + b1 * t.a.batch[1] + row * (rows_a ? 1 : t.k);
        const float *pb = (const float *)t.b.p + b0 * t.b.batch[0] + b1 * t.b.batch[1] + column * (rows_b ? 1 : t.k);
#pragma unroll 1
        for (int e = 0; e < there; e++, pb += rows_b ? 1 : t.k) {
          if (isfinite(from[e])) continue;
          float s = 0;
          for (int k = 0; k < t.k; k++) s += pa[k * (rows_a ? m : 1)] * pb[k * (rows_b ? n : 1)];
          from[e] = s;
        }
      }
#pragma unroll
      for (int e = 0; e < 8; e++) v[e] = from[e];
      steps_apply(t.steps, v, row, column, b0, b1, 0, there);
#pragma unroll
      for (int e = 0; e < 8; e++) from[e] = v[e];
    }
    __syncthreads();
  }

  const int64_t at = b0 * t.y_batch[0] + b1 * t.y_batch[1];
  const int count = m * n;
  uint32_t column;
  if (t.y_dtype == QN_F32) {
#pragma unroll 4
    for (int i = threadIdx.x; i < count; i += THREADS) {
      const int row = cuda_quotient(i, t.by_n, &column);
      ((float *)t.y)[at + i] = all[row * pitch + column];
    }
    return;
  }
  uint16_t *y = (uint16_t *)t.y + at;
  const int before = (uintptr_t)y >> 1 & 1;                 /* the first word may lack its first half */
#pragma unroll 4
  for (int i = threadIdx.x * 2 - before; i < count; i += THREADS * 2) {
    const float *from = all + cuda_quotient(max(i, 0), t.by_n, &column) * pitch + column;
    const float low = i < 0 ? 0 : from[0], high = i < 0 ? from[0] : column + 1 < n ? from[1] : from[1 + pitch - n];
    const uint32_t word = t.y_dtype == QN_BF16 ? pack_bf16(low, high) : pack_f16(low, high);
    if (i >= 0 && i + 1 < count) *(uint32_t *)(y + i) = word;
    else y[max(i, 0)] = (uint16_t)(i < 0 ? word >> 16 : word);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------------- */

#define HEIGHTS(mma, esize, rows_a, rows_b) \
  { (const void *)matmul_batched<mma, esize, rows_a, rows_b, 1, 128>, (const void *)matmul_batched<mma, esize, rows_a, rows_b, 2, 128>, \
    (const void *)matmul_batched<mma, esize, rows_a, rows_b, 1, 256> }
#define KERNELS(mma, esize) { { HEIGHTS(mma, esize, false, false), HEIGHTS(mma, esize, false, true) }, \
                              { HEIGHTS(mma, esize, true, false), HEIGHTS(mma, esize, true, true) } }
static const void *const kernels[3][2][2][3] = {            /* [dtype][a has rows contiguous][b has][to 32 columns, to 64, eight warps] */
  KERNELS(mma_bf16, 2), KERNELS(mma_f16, 2), KERNELS(mma_tf32, 4) };

struct state { batched t; cuda_chain chain; const void *function; int32_t a, b, early; uint32_t blocks, threads, shared; };

/* Is a matrix one run of memory, and with which dim contiguous? */
static bool runs(const cuda_matmul_side *s, int64_t k, bool *rows_contiguous)
{
  *rows_contiguous = !((k == 1 || s->k_stride == 1) && (s->rows == 1 || s->row_stride == k));
  return !*rows_contiguous || ((s->rows == 1 || s->row_stride == 1) && (k == 1 || s->k_stride == s->rows));
}

/* Bytes of shared memory that an operand's reader may touch: the warps read whole tiles and whole steps of k. */
static int64_t reach(const side *s, int64_t k, int size, bool rows_contiguous)
{
  return 48 + (rows_contiguous ? qn_round_up(k, 16) * s->line + MOST * size : MOST * s->line + 16 * size);
}

static side side_of(const cuda_matmul_side *m, int64_t k, int size, bool rows_contiguous)
{
  side s = { nullptr, { m->batch_stride[0], m->batch_stride[1] }, (int32_t)m->rows, (int32_t)(rows_contiguous ? m->rows : k) * size, 0, {} };
  const bool padded = s.line > 16 && m->align >= 16 && (s.line | m->batch_stride[0] * size | m->batch_stride[1] * size) % 16 == 0;
  s.by_line = cuda_divide_by(padded ? s.line / 16 : 1);
  s.aligned = padded;
  if (padded) s.line += 16;
  return s;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_matmul m;
  qn_status status = cuda_matmul_read_floats(r, out, &m);
  if (status) return status;
  const bool f32 = m.a.dtype == QN_F32;
  const int size = f32 ? 4 : 2;
  if (m.m > MOST || m.n > MOST) return qn_refuse(out, "at most 64 rows and columns", "y", "64", "%lld", (long long)qn_max_i64(m.m, m.n));
  if (m.k > SHARED) return qn_refuse(out, "matrices that fit into 48 KB of shared memory", "a", "a smaller k", "%lld", (long long)m.k);
  bool rows_a, rows_b;
  if (!runs(&m.a, m.k, &rows_a) || !runs(&m.b, m.k, &rows_b))
    return qn_refuse(out, "matrices that are one run of memory", rows_a ? "a" : "b", "no gaps between lines", "%s", "gaps");

  state s = {};
  status = cuda_matmul_chain(r, out, &m, &s.chain);
  if (status) return status;
  batched *t = &s.t;
  const qn_value *y = &r->value[s.chain.out];
  const int64_t row = cuda_stride(y, m.dims.dim_of[0]), column = cuda_stride(y, m.dims.dim_of[1]), batches = m.batch[0] * m.batch[1];
  if ((m.n > 1 && column != 1) || (m.m > 1 && row != m.n) || batches > INT32_MAX)
    return qn_refuse(out, "matrices that are one run of memory, fewer than 2^31 of them", "y", "", "%s", "others");
  t->a = side_of(&m.a, m.k, size, rows_a), t->b = side_of(&m.b, m.k, size, rows_b);
  const int64_t at_b = qn_round_up((rows_a ? m.k : m.m) * t->a.line + 16, 16);
  for (int i = 0; i < 2; i++) t->y_batch[i] = cuda_stride(y, m.dims.dim_of[2 + i]);
  t->y_dtype = y->dtype, t->by_batch0 = cuda_divide_by(m.batch[0]);
  t->k = (int32_t)m.k, t->at_b = (int32_t)at_b, t->by_n = cuda_divide_by(m.n);
  t->steps = s.chain.steps;
  /* few matrices take as long as one of them does: more threads share it */
  const bool few = batches <= 2 * r->device->units, wide = m.n > 32;
  s.function = kernels[f32 ? 2 : m.a.dtype == QN_F16][rows_a][rows_b][few ? 2 : wide];
  s.a = m.a.value, s.b = m.b.value, s.blocks = (uint32_t)batches, s.threads = few ? 256 : 128;
  s.shared = (uint32_t)qn_max_i64(qn_max_i64(reach(&t->a, m.k, size, rows_a), at_b + reach(&t->b, m.k, size, rows_b)),
                                  MOST * 4 * (few || wide ? 72 : 40) + 16);
  if (s.shared > SHARED) return qn_refuse(out, "matrices that fit into 48 KB of shared memory", "a", "a smaller k", "%u bytes", s.shared);
  out->n_ops = s.chain.n_ops;
  if (f32) out->math = QN_MATH_F32;
  out->numerics.accumulator = f32 ? QN_ACC_3XTF32 : QN_ACC_F32_TC;
  /* fitted on an H200 to 96 to 1536 matrices: the launch; then per matrix of a multiprocessor, and per element of it */
  const double elements = (double)m.m * m.n + (double)(m.m + m.n) * m.k;
  out->estimate = (f32 ? 3000 : 2600) + (double)batches / r->device->units * (200 + (f32 ? 0.17 : 0.1) * elements);
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
  batched t = s->t;
  t.a.p = launch->ptr[s->a];
  t.b.p = launch->ptr[s->b];
  t.y = launch->ptr[s->chain.out];
  cuda_chain_bind(&t.steps, &s->chain, launch->ptr);
  return cuda_launch_early(s->function, s->early, s->blocks, s->threads, s->shared, &t, launch, "matmul_batched");
}

static const qn_engine row[] = {
  { "batched", QN_OP_MATMUL, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, nullptr, nullptr,
    prepare, build, run, cuda_release },
};
CUDA_ENGINES(matmul_batched) = { row, sizeof row / sizeof *row };
