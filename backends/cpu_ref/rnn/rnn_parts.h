/* rnn_parts.h -- what the engines of recurrent networks share: threads that go in step, tiles of products by weights in panels, rows of
 * tensors as reals. Included once by each; compiled once per instruction set, for f32 and for f64. */
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

enum { LANES = CPU_VECTOR_BYTES / sizeof(real),
       MOST_GATES = 4, MOST_ROWS = 12,    /* vectors in a row of a panel; rows of a tile */
       GROUP = 72,                        /* rows that share a panel while a part of it is in the first-level cache: whole tiles */
       RUN_BYTES = 20480 };               /* of that part */

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

/* sums[i][j] = start[i][j] + the sum over k of a[i][k] panel[k][j], in vectors j < nv; steps in elements. May be in place. */
CPU_INLINE void tile(const int rows, const int nv, int64_t n_k, const real *a, int64_t a_step, const real *panel, const real *start,
                     int64_t start_step, real *sums, int64_t sums_step)
{
  v_real sum[MOST_ROWS][MOST_GATES];
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) sum[i][j] = v_load_real(start + i * start_step + j * LANES);
  const real *base[4] = { a, a + 3 * a_step, a + 6 * a_step, a + 9 * a_step };        /* of three rows each: few registers hold addresses */
  for (int64_t k = 0; k < n_k; k++, panel += nv * LANES) {
    v_real column[MOST_GATES];
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) column[j] = v_load_real(panel + j * LANES);
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
      const real x = base[i / 3][i % 3 * a_step];
#pragma GCC unroll 4
      for (int j = 0; j < nv; j++) sum[i][j] += x * column[j];
    }
#pragma GCC unroll 4
    for (int i = 0; i < (rows + 2) / 3; i++) base[i]++;
  }
#pragma GCC unroll 12
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) memcpy(sums + i * sums_step + j * LANES, &sum[i][j], sizeof sum[i][j]);
}

/* The same of one row, k even and odd apart, so that enough sums are under way. */
CPU_INLINE void tile_of_one(const int nv, int64_t n_k, const real *a, const real *panel, const real *start, real *sums)
{
  v_real sum[2][MOST_GATES];
#pragma GCC unroll 4
  for (int j = 0; j < nv; j++) sum[0][j] = v_load_real(start + j * LANES), sum[1][j] = (v_real){ 0 };
  int64_t k = 0;
  for (; k + 2 <= n_k; k += 2, panel += 2 * nv * LANES)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) {
      sum[0][j] += a[k] * v_load_real(panel + j * LANES);
      sum[1][j] += a[k + 1] * v_load_real(panel + (nv + j) * LANES);
    }
#pragma GCC unroll 4
  for (int j = 0; j < nv; j++) {
    if (k < n_k) sum[0][j] += a[k] * v_load_real(panel + j * LANES);
    sum[0][j] += sum[1][j];
    memcpy(sums + j * LANES, &sum[0][j], sizeof sum[0][j]);
  }
}

#if CPU_VECTOR_BYTES == 64
#define CPU_GEMM_ISA cpu_gemm_avx512
enum { ROWS_4 = 6, ROWS_3 = 8, ROWS_2 = 12, ROWS_1 = 12 };
#else
#if CPU_VECTOR_BYTES == 32
#define CPU_GEMM_ISA cpu_gemm_avx2
#else
#define CPU_GEMM_ISA cpu_gemm_baseline
#endif
enum { ROWS_4 = 3, ROWS_3 = 4, ROWS_2 = 6, ROWS_1 = 8 };
#endif
static inline int most_rows(int64_t vectors) { return vectors == 4 ? ROWS_4 : vectors == 3 ? ROWS_3 : vectors == 2 ? ROWS_2 : ROWS_1; }

/* Not inlined: in a larger function sums would be spilled for addresses. */
#define TILE(rows, nv) case rows: tile(rows, nv, n_k, a, a_step, panel, start, start_step, sums, sums_step); return
#define TILES(nv) static __attribute__((noinline, unused)) void tile_##nv(int rows, int64_t n_k, const real *a, int64_t a_step, \
  const real *panel, const real *start, int64_t start_step, real *sums, int64_t sums_step)
TILES(4)
{
  switch (rows) {
  TILE(2, 4); TILE(3, 4);
#if CPU_VECTOR_BYTES == 64
  TILE(4, 4); TILE(5, 4); TILE(6, 4);
#endif
  default: tile_of_one(4, n_k, a, panel, start, sums);
  }
}
TILES(3)
{
  switch (rows) {
  TILE(2, 3); TILE(3, 3); TILE(4, 3);
#if CPU_VECTOR_BYTES == 64
  TILE(5, 3); TILE(6, 3); TILE(7, 3); TILE(8, 3);
#endif
  default: tile_of_one(3, n_k, a, panel, start, sums);
  }
}
TILES(2)
{
  switch (rows) {
  TILE(2, 2); TILE(3, 2); TILE(4, 2); TILE(5, 2); TILE(6, 2);
#if CPU_VECTOR_BYTES == 64
  TILE(7, 2); TILE(8, 2); TILE(9, 2); TILE(10, 2); TILE(11, 2); TILE(12, 2);
#endif
  default: tile_of_one(2, n_k, a, panel, start, sums);
  }
}
TILES(1)
{
  switch (rows) {
  TILE(2, 1); TILE(3, 1); TILE(4, 1); TILE(5, 1); TILE(6, 1); TILE(7, 1); TILE(8, 1);
#if CPU_VECTOR_BYTES == 64
  TILE(9, 1); TILE(10, 1); TILE(11, 1); TILE(12, 1);
#endif
  default: tile_of_one(1, n_k, a, panel, start, sums);
  }
}

/* sums [rows][vector][lane] = start + rows of a times a panel; start_step 0: the same for all rows. May be in place. Of a panel larger than
 * the first-level cache all rows meet one run of k after another. */
static inline void panel_product(int64_t vectors, int64_t rows, int64_t n_k, const real *a, int64_t a_step, const real *panel,
                                 const real *start, int64_t start_step, real *sums, int64_t sums_step)
{
  const int64_t most = most_rows(vectors), row_bytes = vectors * CPU_VECTOR_BYTES, runs = qn_ceil_div(n_k * row_bytes, RUN_BYTES);
  const int64_t run = rows <= most || runs <= 1 ? qn_max_i64(n_k, 1) : qn_round_up(qn_ceil_div(n_k, runs), 2);
  int64_t k = 0;
  do {
    const int64_t n = qn_min_i64(run, n_k - k);
    for (int64_t i = 0; i < rows; i += most) {
      const int m = (int)qn_min_i64(most, rows - i);
      const real *x = a + i * a_step + k, *from = start + i * start_step;
      real *to = sums + i * sums_step;
      if (vectors == 4) tile_4(m, n, x, a_step, panel, from, start_step, to, sums_step);
      else if (vectors == 3) tile_3(m, n, x, a_step, panel, from, start_step, to, sums_step);
      else if (vectors == 2) tile_2(m, n, x, a_step, panel, from, start_step, to, sums_step);
      else tile_1(m, n, x, a_step, panel, from, start_step, to, sums_step);
    }
    k += n, panel += n * vectors * LANES, start = sums, start_step = sums_step;
  } while (k < n_k);
}

/* dst[c dst_step + r] = src[r src_step + c] */
static inline void turn(const real *src, int64_t src_step, int64_t rows, int64_t columns, real *dst, int64_t dst_step)
{
#ifdef CPU_REAL_F64
  for (int64_t c = 0; c < columns; c++)
    for (int64_t r = 0; r < rows; r++) dst[c * dst_step + r] = src[r * src_step + c];
#else
  CPU_GEMM_ISA.turn(src, src_step, rows, columns, dst, dst_step);
#endif
}

/* ---- tensors ----------------------------------------------------------------------------------- */

typedef struct operand { int32_t value; uint32_t dtype; int64_t stride[4]; } operand;     /* value -1: absent */

static inline operand operand_of(const qn_request *request, int32_t value)
{
  operand o = { .value = value };
  if (value < 0) return o;
  o.dtype = request->value[value].dtype;
  memcpy(o.stride, request->value[value].stride, sizeof o.stride);
  return o;
}

static inline const char *data(const qn_launch *launch, const operand *o, int64_t offset)
{
  return (const char *)launch->ptr[o->value] + offset * qn_kit_bytes(o->dtype);
}

/* Offset of an index; beyond the rank strides are 0. */
static inline int64_t place_of(const operand *o, int64_t i, int64_t j, int64_t k, int64_t l)
{
  return i * o->stride[0] + j * o->stride[1] + k * o->stride[2] + l * o->stride[3];
}

/* n elements from `offset` on, `step` apart, as reals and back. */
static inline void read_row(const qn_launch *launch, const operand *o, int64_t offset, int64_t step, int64_t n, real *to)
{
  char packed[64 * sizeof(real)];
  if (step == 1) {
    row_to_real(to, data(launch, o, offset), o->dtype, n);
    return;
  }
  for (int64_t i = 0; i < n; i += 64) {
    const int64_t m = qn_min_i64(64, n - i);
    gather_row(packed, data(launch, o, offset + i * step), qn_kit_bytes(o->dtype), step, m);
    row_to_real(to + i, packed, o->dtype, m);
  }
}
static inline void write_row(const qn_launch *launch, const operand *o, int64_t offset, int64_t step, int64_t n, const real *from)
{
  char packed[64 * sizeof(real)], *to = (char *)(uintptr_t)data(launch, o, offset);
  if (step == 1) {
    row_from_real(to, from, o->dtype, n);
    return;
  }
  for (int64_t i = 0; i < n; i += 64) {
    const int64_t m = qn_min_i64(64, n - i);
    row_from_real(packed, from + i, o->dtype, m);
    scatter_row(to + i * step * qn_kit_bytes(o->dtype), packed, qn_kit_bytes(o->dtype), step, m);
  }
}

/* The steps of sequence b: its length, if lengths are given, between 0 and all of them. */
static inline int64_t length_of(const qn_launch *launch, const operand *lengths, int64_t b, int64_t steps)
{
  if (lengths->value < 0) return steps;
  return qn_max_i64(0, qn_min_i64(qn_load_i64(data(launch, lengths, b * lengths->stride[0]), lengths->dtype), steps));
}

/* The seed or the offset of dropout's random numbers; 0: absent. */
static inline uint64_t key_of(const qn_launch *launch, const operand *o)
{
  return o->value < 0 ? 0 : (uint64_t)qn_load_i64(data(launch, o, 0), o->dtype);
}

/* n elements of what dropout leaves of a tensor, or of its gradient: from its element `at` on. */
static inline void drop_row(uint64_t seed, uint64_t offset, double dropout, int64_t at, int64_t n, real *x)
{
  const uint64_t dropped = qn_chance_words(dropout);
  const real scale = (real)(1 / (1 - dropout));
  uint32_t word[4];
  for (int64_t i = 0; i < n; i++) {
    if (i == 0 || (at + i) % 4 == 0) qn_random_words(word, seed, offset, (uint64_t)(at + i) / 4);
    x[i] = word[(at + i) % 4] < dropped ? 0 : x[i] * scale;
  }
}

/* A buffer of the workspace. */
static inline real *take(real **next, int64_t n)
{
  real *p = *next;
  *next += qn_round_up(n, 16);
  return p;
}
#endif
