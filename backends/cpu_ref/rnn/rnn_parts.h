/* rnn_parts.h -- what the engines of recurrent networks share: threads that go in step, tiles of products by weights in panels, rows of
 * tensors as f32. Included once by each; compiled once per instruction set. */
#ifndef CPU_RNN_PARTS_H
#define CPU_RNN_PARTS_H
#include <sched.h>
#include "kit/convert.h"
#include "cpu_ref.h"
#include "gemm/gemm_core.h"
#include "kit/pointwise_math.h"
#ifdef _OPENMP
#include <omp.h>
#endif

enum { MOST_GATES = 4, MOST_ROWS = 12 };  /* vectors in a row of a panel; rows of a tile */

/* ---- threads in step --------------------------------------------------------------------------- */

typedef struct barrier { int count, phase; } barrier;

/* Waits for all n threads. They run at once as a rule, and steps are short: so it spins, and yields if one is held up. */
static inline void meet(barrier *b, int n)
{
  const int phase = __atomic_load_n(&b->phase, __ATOMIC_RELAXED);
  if (n == 1) return;
  if (__atomic_add_fetch(&b->count, 1, __ATOMIC_ACQ_REL) == n) {
    __atomic_store_n(&b->count, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&b->phase, phase + 1, __ATOMIC_RELEASE);
    return;
  }
  for (int tries = 0; __atomic_load_n(&b->phase, __ATOMIC_ACQUIRE) == phase; tries++)
    if (tries > 4000) sched_yield();
}

/* ---- sums of products ------------------------------------------------------------------------------ */

/* sums[i][j] = start[i][j] + the sum over k of a[i][k] panel[k][j], in vectors j < nv; steps in floats */
CPU_INLINE void tile(const int rows, const int nv, int64_t n_k, const float *a, int64_t a_step, const float *panel, const float *start,
                     int64_t start_step, float *sums)
{
  v_f32 sum[MOST_ROWS][MOST_GATES];
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) sum[i][j] = v_load(start + i * start_step + j * CPU_LANES);
  const float *base[4] = { a, a + 3 * a_step, a + 6 * a_step, a + 9 * a_step };       /* of three rows each: few registers hold addresses */
  for (int64_t k = 0; k < n_k; k++, panel += nv * CPU_LANES) {
    v_f32 column[MOST_GATES];
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) column[j] = v_load(panel + j * CPU_LANES);
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
      const float x = base[i / 3][i % 3 * a_step];
#pragma GCC unroll 4
      for (int j = 0; j < nv; j++) sum[i][j] += x * column[j];
    }
#pragma GCC unroll 4
    for (int i = 0; i < (rows + 2) / 3; i++) base[i]++;
  }
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) memcpy(sums + (i * nv + j) * CPU_LANES, &sum[i][j], sizeof sum[i][j]);
}

/* The same of one row, k even and odd apart, so that enough sums are under way. */
CPU_INLINE void tile_of_one(const int nv, int64_t n_k, const float *a, const float *panel, const float *start, float *sums)
{
  v_f32 sum[2][MOST_GATES];
#pragma GCC unroll 4
  for (int j = 0; j < nv; j++) sum[0][j] = v_load(start + j * CPU_LANES), sum[1][j] = v_all(0);
  int64_t k = 0;
  for (; k + 2 <= n_k; k += 2, panel += 2 * nv * CPU_LANES)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) {
      sum[0][j] += a[k] * v_load(panel + j * CPU_LANES);
      sum[1][j] += a[k + 1] * v_load(panel + (nv + j) * CPU_LANES);
    }
#pragma GCC unroll 4
  for (int j = 0; j < nv; j++) {
    if (k < n_k) sum[0][j] += a[k] * v_load(panel + j * CPU_LANES);
    sum[0][j] += sum[1][j];
    memcpy(sums + j * CPU_LANES, &sum[0][j], sizeof sum[0][j]);
  }
}

#if CPU_VECTOR_BYTES == 64
#define CPU_GEMM_ISA cpu_gemm_avx512
enum { ROWS_4 = 6, ROWS_3 = 8, ROWS_1 = 12 };
#else
#if CPU_VECTOR_BYTES == 32
#define CPU_GEMM_ISA cpu_gemm_avx2
#else
#define CPU_GEMM_ISA cpu_gemm_baseline
#endif
enum { ROWS_4 = 3, ROWS_3 = 4, ROWS_1 = 8 };
#endif
static inline int most_rows(int64_t gates) { return gates == 4 ? ROWS_4 : gates == 3 ? ROWS_3 : ROWS_1; }

/* Not inlined: in a larger function sums would be spilled for addresses. */
#define TILE(rows, nv) case rows: tile(rows, nv, n_k, a, a_step, panel, start, start_step, sums); return
static __attribute__((noinline, unused)) void tile_4(int rows, int64_t n_k, const float *a, int64_t a_step, const float *panel,
                                                     const float *start, int64_t start_step, float *sums)
{
  switch (rows) {
  TILE(2, 4); TILE(3, 4);
#if CPU_VECTOR_BYTES == 64
  TILE(4, 4); TILE(5, 4); TILE(6, 4);
#endif
  default: tile_of_one(4, n_k, a, panel, start, sums);
  }
}
static __attribute__((noinline, unused)) void tile_3(int rows, int64_t n_k, const float *a, int64_t a_step, const float *panel,
                                                     const float *start, int64_t start_step, float *sums)
{
  switch (rows) {
  TILE(2, 3); TILE(3, 3); TILE(4, 3);
#if CPU_VECTOR_BYTES == 64
  TILE(5, 3); TILE(6, 3); TILE(7, 3); TILE(8, 3);
#endif
  default: tile_of_one(3, n_k, a, panel, start, sums);
  }
}
static __attribute__((noinline, unused)) void tile_1(int rows, int64_t n_k, const float *a, int64_t a_step, const float *panel,
                                                     const float *start, int64_t start_step, float *sums)
{
  switch (rows) {
  TILE(2, 1); TILE(3, 1); TILE(4, 1); TILE(5, 1); TILE(6, 1); TILE(7, 1); TILE(8, 1);
#if CPU_VECTOR_BYTES == 64
  TILE(9, 1); TILE(10, 1); TILE(11, 1); TILE(12, 1);
#endif
  default: tile_of_one(1, n_k, a, panel, start, sums);
  }
}

/* sums [rows][vector][lane] = start + rows of a times a panel; start_step 0: the same for all rows */
static inline void panel_product(int64_t vectors, int64_t rows, int64_t n_k, const float *a, int64_t a_step, const float *panel,
                                 const float *start, int64_t start_step, float *sums)
{
  const int64_t step = vectors * CPU_LANES, most = most_rows(vectors);
  for (int64_t i = 0; i < rows; i += most) {
    const int n = (int)qn_min_i64(most, rows - i);
    const float *from = start + i * start_step;
    if (vectors == 4) tile_4(n, n_k, a + i * a_step, a_step, panel, from, start_step, sums + i * step);
    else if (vectors == 3) tile_3(n, n_k, a + i * a_step, a_step, panel, from, start_step, sums + i * step);
    else tile_1(n, n_k, a + i * a_step, a_step, panel, from, start_step, sums + i * step);
  }
}

/* ---- tensors ----------------------------------------------------------------------------------- */

typedef struct operand { int32_t value; uint32_t dtype; int64_t stride[4]; } operand;     /* value -1: absent */

static inline const char *data(const qn_launch *launch, const operand *o, int64_t offset)
{
  return (const char *)launch->ptr[o->value] + offset * qn_kit_bytes(o->dtype);
}

/* Offset of an index; beyond the rank strides are 0. */
static inline int64_t place_of(const operand *o, int64_t i, int64_t j, int64_t k, int64_t l)
{
  return i * o->stride[0] + j * o->stride[1] + k * o->stride[2] + l * o->stride[3];
}

/* n elements from `offset` on, `step` apart, as f32 and back. */
static inline void read_row(const qn_launch *launch, const operand *o, int64_t offset, int64_t step, int64_t n, float *to)
{
  char packed[64 * 4];
  if (step == 1) {
    row_to_f32(to, data(launch, o, offset), o->dtype, n);
    return;
  }
  for (int64_t i = 0; i < n; i += 64) {
    const int64_t m = qn_min_i64(64, n - i);
    gather_row(packed, data(launch, o, offset + i * step), qn_kit_bytes(o->dtype), step, m);
    row_to_f32(to + i, packed, o->dtype, m);
  }
}
static inline void write_row(const qn_launch *launch, const operand *o, int64_t offset, int64_t step, int64_t n, const float *from)
{
  char packed[64 * 4], *to = (char *)(uintptr_t)data(launch, o, offset);
  if (step == 1) {
    row_from_f32(to, from, o->dtype, n);
    return;
  }
  for (int64_t i = 0; i < n; i += 64) {
    const int64_t m = qn_min_i64(64, n - i);
    row_from_f32(packed, from + i, o->dtype, m);
    scatter_row(to + i * step * qn_kit_bytes(o->dtype), packed, qn_kit_bytes(o->dtype), step, m);
  }
}
#endif
