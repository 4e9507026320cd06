/* gemm_core.c -- the blocked product of gemm_core.h: tiles shared among threads, runs of k within a tile. */
#include <config.h>
#include <quern/kit.h>
#include "gemm_core.h"
#ifdef _OPENMP
#include <omp.h>
#endif

/* ---- blocking ------------------------------------------------------------------------------ */

#define LINE 64
#define KC_F32 320                        /* nr columns of a run take 20 of the 32 KB of a first-level cache */
#define TILE_ROWS 264                     /* a run of a tile's A and of its B and its sums share a second-level cache, in which the */
#define TILE_COLUMNS 288                  /*   block that the inner loop rereads should stay; multiples of every mr and nr */
#define TILE_LONG 516                     /* for a side when laying out the other block is expensive */
#define TILE_SHORT 112                    /* rows then, if columns are that long, */
#define SMALL_SUMS 16384                  /*   and limit on a tile's sums if k is a single run: they are reread at once */
#define TILE_LEAST 96                     /* a shorter tile takes longer to lay out than to compute */
#define PARTS 12                          /* of all tiles together, if k is long and tiles are few */
#define PART_RUNS 2                       /* minimum of a part, in runs: its sums are written and read once more */
#define MOST_RUNS 4096                    /* maximum: a sum is one of runs, whose roundings add up */
#define TILES_EACH 6                      /* so that threads end together, if there is enough work */
#define TILE_WORK (1 << 20)               /* products that justify a tile of their own */
#define THREADS_EACH 8                    /* products that justify one more thread */

size_t cpu_gemm_row_bytes(uint32_t type)
{
  return type == CPU_GEMM_F64 ? 8 : type == CPU_GEMM_F32 ? 4 : 2;
}

static size_t sum_bytes(uint32_t type)
{
  return type == CPU_GEMM_F64 ? 8 : 4;
}

uint32_t cpu_gemm_type(uint32_t dtype)
{
  switch (dtype) {
  case QN_F64: return CPU_GEMM_F64;
  case QN_I8: case QN_U8: return CPU_GEMM_I16;
  default: return CPU_GEMM_F32;
  }
}

/* An odd number of cache lines: such rows are spread over all sets of a cache. */
int64_t cpu_gemm_ld(int64_t n, size_t element)
{
  const int64_t lines = qn_ceil_div(n * (int64_t)element, LINE) | 1;
  return lines * LINE / (int64_t)element;
}

/* Length of equal parts of n, at most `most`, a multiple of `step`. */
static int64_t even_part(int64_t n, int64_t most, int64_t step)
{
  const int64_t parts = qn_ceil_div(n, qn_max_i64(most / step, 1) * step);
  return qn_round_up(qn_ceil_div(n, parts), step);
}

/* Whether a tile is finished in strips of rows, each written while the next is computed. If k is a single run all strips reuse
 * the first one's buffer, which stays in cache. */
static bool in_strips(const cpu_gemm *g)
{
  return g->keep_rows && g->split == 1 && g->k > 0;
}

static int64_t n_tiles(const cpu_gemm *g)
{
  return g->batch * qn_ceil_div(g->m, g->mc) * qn_ceil_div(g->n, g->nc);
}

/* Per thread: a block of A, a block of B (i16: also before pairing), the sums. */
typedef struct area {
  size_t a, b, pairs, sums, total;
} area;

static area area_of(const cpu_gemm *g)
{
  const size_t element = cpu_gemm_row_bytes(g->type);
  const int64_t mc = qn_round_up(g->mc, g->isa->type[g->type].mr);
  const int64_t sum_rows = in_strips(g) && g->k <= g->kc ? g->isa->type[g->type].mr : mc;
  area at;
  at.a = 0;
  at.b = at.a + (size_t)qn_round_up(mc * cpu_gemm_ld(g->kc, element) * (int64_t)element, LINE);
  at.pairs = at.b + (g->b_ready ? 0 : (size_t)qn_round_up(g->kc * cpu_gemm_ld(g->nc, element) * (int64_t)element, LINE));
  at.sums = at.pairs + (g->type == CPU_GEMM_I16 ? (size_t)(g->kc / 2 * cpu_gemm_ld(g->nc, 4) * 4) : 0);
  at.total = at.sums + (size_t)qn_round_up(sum_rows * cpu_gemm_ld(g->nc, sum_bytes(g->type)) * (int64_t)sum_bytes(g->type), LINE);
  return at;
}

static size_t partial_bytes(const cpu_gemm *g)
{
  return (size_t)(g->mc * cpu_gemm_ld(g->nc, sum_bytes(g->type))) * sum_bytes(g->type);
}

uint64_t cpu_gemm_plan(cpu_gemm *g, int threads)
{
  const int mr = g->isa->type[g->type].mr, nr = g->isa->type[g->type].nr;
  const double work = (double)g->batch * (double)g->m * (double)g->n * (double)g->k / TILE_WORK;
  const int64_t room = g->type == CPU_GEMM_F64 ? 2 : 1;
  int64_t rows = (g->keep_rows ? TILE_LONG : g->keep_columns ? TILE_SHORT : TILE_ROWS) / room;
  g->kc = g->k ? even_part(g->k, g->type == CPU_GEMM_I16 ? 2 * KC_F32 : KC_F32 / room, 2) : 2;
  g->nc = even_part(g->n, (g->keep_columns ? TILE_LONG : TILE_COLUMNS) / room, nr);
  if (g->b_ready && g->k <= g->kc) rows = qn_max_i64(4 * mr, qn_min_i64(rows, SMALL_SUMS / g->nc));
  g->mc = even_part(g->m, rows, mr);

  /* kc and split fix the order of summation, so they depend on the problem only; mc and nc just divide the work */
  const int64_t runs = qn_max_i64(1, qn_ceil_div(g->k, g->kc));
  const int64_t parts = g->one_order ? 1 : qn_min_i64((int64_t)(work < PARTS ? work : PARTS) / n_tiles(g), runs / PART_RUNS);
  const int64_t least = g->type == CPU_GEMM_I16 ? 1 : qn_ceil_div(runs, MOST_RUNS);
  g->split = qn_ceil_div(runs, qn_ceil_div(runs, qn_max_i64(least, parts)));

  const int64_t most = threads > 1 ? (int64_t)threads * TILES_EACH : 1, wanted = work < (double)most ? (int64_t)work : most;
  for (;;) {                              /* halve the longer side, or the one that may be cut */
    const bool rows_can = g->mc > (g->keep_columns ? 4 * mr : TILE_LEAST);
    const bool columns_can = g->nc > (g->keep_rows ? 2 * nr : TILE_LEAST);
    if (n_tiles(g) * g->split >= wanted || (!rows_can && !columns_can)) break;
    const bool prefer_rows = g->keep_columns || (!g->keep_rows && g->mc >= g->nc);
    if (rows_can && (prefer_rows || !columns_can)) g->mc = even_part(g->m, g->mc / 2, mr);
    else g->nc = even_part(g->n, g->nc / 2, nr);
  }
  const int64_t useful = work * THREADS_EACH < threads ? (int64_t)(work * THREADS_EACH) + 1 : threads;
  g->threads = (int)qn_min_i64(useful, n_tiles(g) * g->split);
  return (uint64_t)g->threads * area_of(g).total + (g->split > 1 ? (uint64_t)(n_tiles(g) * g->split) * partial_bytes(g) : 0);
}

double cpu_gemm_ns(const cpu_gemm *g)
{
  const int mr = g->isa->type[g->type].mr, nr = g->isa->type[g->type].nr;
  const int64_t left = g->m % mr, rows = g->m - left + (left ? qn_max_i64(left, 4) : 0);       /* fewer sums wait for one another */
  return CPU_VECTOR_NS * 2 * (double)g->batch * (double)rows * (double)qn_ceil_div(g->n, nr) * (double)g->k;
}

/* ---- a tile -------------------------------------------------------------------------------- */

typedef struct tile {
  int64_t batch, i0, mc, j0, nc;
} tile;

static tile tile_at(const cpu_gemm *g, int64_t index)
{
  const int64_t down = qn_ceil_div(g->m, g->mc), across = qn_ceil_div(g->n, g->nc);
  tile t;
  t.i0 = index % down * g->mc;
  t.j0 = index / down % across * g->nc;
  t.batch = index / down / across;
  t.mc = qn_min_i64(g->mc, g->m - t.i0);
  t.nc = qn_min_i64(g->nc, g->n - t.j0);
  return t;
}

/* Pairs rows 2k and 2k+1, side by side in an i32; an odd last row is paired with zeros. */
static const void *pair_rows(const int16_t *b, int64_t step, int64_t kc, int64_t nc, int32_t *pairs, int64_t ld)
{
  for (int64_t k = 0; k < kc; k += 2) {
    const int16_t *even = b + k * step, *odd = even + step;
    int16_t *to = (int16_t *)(pairs + k / 2 * ld);
    if (k + 1 < kc) for (int64_t j = 0; j < nc; j++) { to[2 * j] = even[j]; to[2 * j + 1] = odd[j]; }
    else            for (int64_t j = 0; j < nc; j++) { to[2 * j] = even[j]; to[2 * j + 1] = 0; }
  }
  return pairs;
}

/* acc = the sum over k in [k0, k1), or finished strip by strip. */
static void sum_tile(const cpu_gemm *g, const tile *t, int64_t k0, int64_t k1, char *area_bytes, const area *at,
                     char *acc, int64_t ld)
{
  const int mr = g->isa->type[g->type].mr, nr = g->isa->type[g->type].nr;
  cpu_gemm_micro *const micro = g->isa->type[g->type].micro;
  const size_t element = sum_bytes(g->type);               /* for i16 a pair */
  const void *row[CPU_GEMM_MC_MAX];
  /* the inner loop runs over the smaller block, which stays in the second-level cache */
  const bool finishes = in_strips(g), columns_inside = t->nc < t->mc || finishes;
  const int64_t outer = columns_inside ? t->mc : t->nc, inner = columns_inside ? t->nc : t->mc;
  const int64_t outer_step = columns_inside ? mr : nr, inner_step = columns_inside ? nr : mr;
  const int64_t down = finishes && g->k <= g->kc ? 0 : ld;
  if (k0 >= k1) memset(acc, 0, (size_t)(t->mc * ld) * element);
  for (int64_t k = k0; k < k1; k += g->kc) {
    const bool last = k + g->kc >= k1;
    int64_t kc = qn_min_i64(g->kc, k1 - k), a_step, b_step;
    const char *b = g->b(g, t->batch, k, kc, t->j0, t->nc, area_bytes + at->b, &b_step);
    g->a(g, t->batch, t->i0, t->mc, k, kc, area_bytes + at->a, row, &a_step);
    if (g->type == CPU_GEMM_I16) {
      const int64_t pair_ld = cpu_gemm_ld(g->nc, 4);
      b = pair_rows((const int16_t *)b, b_step, kc, qn_round_up(t->nc, nr), (int32_t *)(area_bytes + at->pairs), pair_ld);
      b_step = pair_ld;
      kc = (kc + 1) / 2;
    }
    for (int64_t o = 0; o < outer; o += outer_step) {
      for (int64_t in = 0; in < inner; in += inner_step) {
        const int64_t i = columns_inside ? o : in, j = columns_inside ? in : o;
        micro((int)qn_min_i64(mr, t->mc - i), kc, row + i, a_step, b + (size_t)j * element, b_step,
              acc + (size_t)(i * down + j) * element, ld, k > k0);
      }
      if (finishes && last)
        g->finish(g, t->batch, t->i0 + o, qn_min_i64(mr, t->mc - o), t->j0, t->nc, acc + (size_t)(o * down) * element, ld);
    }
  }
}

/* acc += part */
static void add_part(uint32_t type, char *acc, const char *part, int64_t n)
{
  if (type == CPU_GEMM_F32) for (int64_t i = 0; i < n; i++) ((float *)acc)[i] += ((const float *)part)[i];
  else if (type == CPU_GEMM_F64) for (int64_t i = 0; i < n; i++) ((double *)acc)[i] += ((const double *)part)[i];
  else for (int64_t i = 0; i < n; i++) ((uint32_t *)acc)[i] += ((const uint32_t *)part)[i];
}

/* ---- run ----------------------------------------------------------------------------------- */

void cpu_gemm_run(const cpu_gemm *g, int threads, void *workspace)
{
  const area at = area_of(g);
  const int64_t tiles = n_tiles(g), ld = cpu_gemm_ld(g->nc, sum_bytes(g->type));
  const size_t part_bytes = partial_bytes(g);
  char *const areas = workspace, *const parts = areas + (size_t)g->threads * at.total;
  /* if k is split, each part is a whole number of runs */
  const int64_t part_k = qn_round_up(qn_ceil_div(qn_max_i64(g->k, 1), g->split), g->kc);
#pragma omp parallel num_threads(threads < g->threads ? threads : g->threads) if (g->threads > 1)
  {
#ifdef _OPENMP
    char *const mine = areas + (size_t)omp_get_thread_num() * at.total;
#else
    char *const mine = areas;
#endif
#pragma omp for schedule(dynamic)
    for (int64_t item = 0; item < tiles * g->split; item++) {
      const tile t = tile_at(g, item / g->split);
      const int64_t k0 = item % g->split * part_k;
      char *const acc = g->split > 1 ? parts + (size_t)item * part_bytes : mine + at.sums;
      sum_tile(g, &t, k0, qn_min_i64(k0 + part_k, g->k), mine, &at, acc, ld);
      if (g->split == 1 && !in_strips(g)) g->finish(g, t.batch, t.i0, t.mc, t.j0, t.nc, acc, ld);
    }
    if (g->split > 1) {
#pragma omp for schedule(dynamic)
      for (int64_t index = 0; index < tiles; index++) {
        const tile t = tile_at(g, index);
        char *const acc = parts + (size_t)(index * g->split) * part_bytes;
        for (int64_t s = 1; s < g->split; s++) add_part(g->type, acc, acc + (size_t)s * part_bytes, t.mc * ld);
        g->finish(g, t.batch, t.i0, t.mc, t.j0, t.nc, acc, ld);
      }
    }
  }
}

/* ---- the instruction set's copy --------------------------------------------------------------- */

static const struct copy {
  const cpu_gemm_isa *isa;
  uint64_t feature;
} copies[] = {                            /* widest first */
#ifdef QN_AVX512
  {&cpu_gemm_avx512, QN_CPU_AVX512},
#endif
#ifdef QN_AVX2
  {&cpu_gemm_avx2, QN_CPU_AVX2},
#endif
  {&cpu_gemm_baseline, 0},
};

const char *const cpu_gemm_variants[] = {
#ifdef QN_AVX512
  "avx512",
#endif
#ifdef QN_AVX2
  "avx2",
#endif
  "baseline", NULL
};

const cpu_gemm_isa *cpu_gemm_isa_of(const qn_device *device)
{
  const struct copy *copy = copies;
  while ((device->features & copy->feature) != copy->feature) copy++;
  return copy->isa;
}

qn_status cpu_gemm_choose(const qn_request *request, qn_prepared *p, const cpu_gemm_isa **isa)
{
  const qn_value *first = &request->value[request->op[0].arg[0]];
  const bool exact = cpu_gemm_type(first->dtype) == CPU_GEMM_I16, any = exact || request->demands->determinism < QN_DET_PORTABLE;
  for (int i = 0; cpu_gemm_variants[i]; i++) {
    const bool runs = (request->device->features & copies[i].feature) == copies[i].feature, portable = exact || !copies[i].feature;
    if (request->variant ? strcmp(request->variant, cpu_gemm_variants[i]) != 0 : !runs || !(any || portable)) continue;
    if (!runs) break;
    *isa = copies[i].isa;
    p->variant = cpu_gemm_variants[i];
    if (cpu_gemm_one_order(request)) p->traits |= QN_TRAIT_BATCH_INVARIANT | (portable ? QN_TRAIT_PORTABLE : 0);
    return QN_OK;
  }
  return qn_refuse(p, "the device lacks this variant's instruction set", "", request->variant, "%s", request->device->name);
}

/* ---- laying out ------------------------------------------------------------------------------ */

#define BLOCK 32

/* Columns of src become rows of dst, through a square of widened columns (f32: directly). */
static void lay_block(const cpu_gemm_isa *isa, uint32_t dtype, const char *src, int64_t stride, int64_t rows, int64_t n,
                      char *dst, int64_t ld)
{
  const size_t element = cpu_gemm_row_bytes(cpu_gemm_type(dtype));
  union { float f32[BLOCK][BLOCK]; double f64[BLOCK][BLOCK]; int16_t i16[BLOCK][BLOCK]; } column;
  if (dtype == QN_F32) {
    isa->turn((const float *)src, stride, n, rows, (float *)dst, ld);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    isa->widen[dtype](src + i * stride * qn_kit_bytes(dtype), 1, rows, (char *)&column + (size_t)(i * BLOCK) * element);
  if (element == 4) isa->turn(column.f32[0], BLOCK, n, rows, (float *)dst, ld);
  else if (element == 8)
    for (int64_t r = 0; r < rows; r++) for (int64_t i = 0; i < n; i++) ((double *)dst)[r * ld + i] = column.f64[i][r];
  else
    for (int64_t r = 0; r < rows; r++) for (int64_t i = 0; i < n; i++) ((int16_t *)dst)[r * ld + i] = column.i16[i][r];
}

void cpu_gemm_lay(const cpu_gemm_isa *isa, uint32_t dtype, const void *src, int64_t row_stride, int64_t stride,
                  int64_t rows, int64_t n, void *dst, int64_t ld)
{
  const int64_t from = qn_kit_bytes(dtype), to = (int64_t)cpu_gemm_row_bytes(cpu_gemm_type(dtype));
  if (row_stride != 1 || stride == 1) {
    for (int64_t r = 0; r < rows; r++)
      isa->widen[dtype]((const char *)src + r * row_stride * from, stride, n, (char *)dst + r * ld * to);
    return;
  }
  for (int64_t r = 0; r < rows; r += BLOCK)
    for (int64_t i = 0; i < n; i += BLOCK)
      lay_block(isa, dtype, (const char *)src + (r + i * stride) * from, stride, qn_min_i64(BLOCK, rows - r),
                qn_min_i64(BLOCK, n - i), (char *)dst + (r * ld + i) * to, ld);
}
