/* matmul_wgmma.c -- matrix products on Hopper's Tensor Cores: which problems are taken, choice of tile, launch.
 *
 *   y = chain(alpha a b + beta c + bias)     any strides of y
 *
 *   wgmma          f16, bf16                 either dim of an operand contiguous
 *   wgmma_tf32     f32 rounded to tf32       the same
 *   wgmma_3xtf32   f32 split into two tf32   the right operand is split beforehand, into workspace
 *   wgmma_f8       e4m3, e5m2, sums promoted to f32 every 128 terms; wgmma_f8_raw: not promoted
 *   wgmma_f8_f16   e4m3, e5m2 converted to f16 (exact): f32 sums, at half the rate
 *   wgmma_i8       i8, u8 to i32
 *
 * Operands that TMA cannot read as they are, or with the wrong dim contiguous, are packed into workspace (pack.h). For small
 * outputs several CTAs of a cluster share the sum over k (_k2, _k4). For skinny outputs the operands are swapped (_t): a tile has
 * at least 64 rows, but as few as 16 columns. The kernel is in matmul_wgmma.cuh. */
#include "engines.h"
#include "matmul_problem.h"
#include "matmul_wgmma_room.h"
#include "matmul_wgmma_tiles.h"
#include "kit/map.h"
#include "kit/pack.h"

/* ---- variants --------------------------------------------------------------------------------- */

/* A kernel's tile, with the operands in order or swapped; step and fixed: measured times (matmul_wgmma_tiles.h). */
typedef struct variant { int16_t bm, bn, splits, swap; int32_t step, fixed; } variant;
#define EACH(bm, bn, splits, step, fixed, fixed_t) { bm, bn, splits, 0, step, fixed }, { bm, bn, splits, 1, step, fixed_t },
#define NAME(bm, bn, splits, ...) #bm "x" #bn "_k" #splits, #bm "x" #bn "_k" #splits "_t",
static const variant variants_16[] = { CUDA_GEMM_TILES_16(EACH) }, variants_tf32[] = { CUDA_GEMM_TILES_TF32(EACH) },
  variants_3xtf32[] = { CUDA_GEMM_TILES_3XTF32(EACH) }, variants_f8[] = { CUDA_GEMM_TILES_F8(EACH) },
  variants_f8_raw[] = { CUDA_GEMM_TILES_F8_RAW(EACH) }, variants_i8[] = { CUDA_GEMM_TILES_I8(EACH) };
static const char *const names_16[] = { CUDA_GEMM_TILES_16(NAME) NULL }, *const names_tf32[] = { CUDA_GEMM_TILES_TF32(NAME) NULL },
  *const names_3xtf32[] = { CUDA_GEMM_TILES_3XTF32(NAME) NULL }, *const names_f8[] = { CUDA_GEMM_TILES_F8(NAME) NULL },
  *const names_f8_raw[] = { CUDA_GEMM_TILES_F8_RAW(NAME) NULL }, *const names_i8[] = { CUDA_GEMM_TILES_I8(NAME) NULL };
#undef EACH
#undef NAME

/* ---- families: an engine's dtypes and arithmetic ---------------------------------------------------- */

typedef struct family {
  const char *engine;
  const variant *variants;
  const char *const *names;
  const char *takes;                      /* for the refusal message */
  qn_numerics numerics;
  uint32_t math;
} family;

enum { WGMMA_16, WGMMA_TF32, WGMMA_3XTF32, WGMMA_F8, WGMMA_F8_RAW, WGMMA_F8_F16, WGMMA_I8 };
static const family families[] = {
  [WGMMA_16]     = { "wgmma", variants_16, names_16, "both f16 or both bf16", { .accumulator = QN_ACC_F32_TC }, QN_MATH_STRICT },
  [WGMMA_TF32]   = { "wgmma_tf32", variants_tf32, names_tf32, "both f32", { .accumulator = QN_ACC_TF32 }, QN_MATH_TF32 },
  [WGMMA_3XTF32] = { "wgmma_3xtf32", variants_3xtf32, names_3xtf32, "both f32", { .accumulator = QN_ACC_3XTF32 }, QN_MATH_F32 },
  [WGMMA_F8]     = { "wgmma_f8", variants_f8, names_f8, "e4m3 or e5m2", { .accumulator = QN_ACC_F8_FAST, .promote = 128 }, QN_MATH_F32 },
  [WGMMA_F8_RAW] = { "wgmma_f8_raw", variants_f8_raw, names_f8_raw, "e4m3 or e5m2", { .accumulator = QN_ACC_F8_FAST }, QN_MATH_FAST },
  [WGMMA_F8_F16] = { "wgmma_f8_f16", variants_16, names_16, "e4m3 or e5m2", { .accumulator = QN_ACC_F32_TC }, QN_MATH_STRICT },
  [WGMMA_I8]     = { "wgmma_i8", variants_i8, names_i8, "i8 or u8", { .accumulator = QN_ACC_NATIVE }, QN_MATH_STRICT },
};

/* NULL: none for these dtypes. a: dtype of the kernel's left operand. */
static const cuda_gemm_kernel *kernels_of(int which, uint32_t a, uint32_t b)
{
  switch (which) {
  case WGMMA_16:     return a != b ? NULL : a == QN_BF16 ? cuda_gemm_bf16 : a == QN_F16 ? cuda_gemm_f16 : NULL;
  case WGMMA_TF32:   return a == QN_F32 && b == QN_F32 ? cuda_gemm_tf32 : NULL;
  case WGMMA_3XTF32: return a == QN_F32 && b == QN_F32 ? cuda_gemm_3xtf32 : NULL;
  case WGMMA_I8:
    if ((a != QN_I8 && a != QN_U8) || (b != QN_I8 && b != QN_U8)) return NULL;
    return cuda_gemm_i8[(a == QN_U8) * 2 + (b == QN_U8)];
  default:
    if ((a != QN_E4M3 && a != QN_E5M2) || (b != QN_E4M3 && b != QN_E5M2)) return NULL;
    if (which == WGMMA_F8_F16) return cuda_gemm_f16;
    return (which == WGMMA_F8 ? cuda_gemm_f8 : cuda_gemm_f8_raw)[(a == QN_E5M2) * 2 + (b == QN_E5M2)];
  }
}

/* ---- operands --------------------------------------------------------------------------------- */

/* An operand as given, and as TMA reads it: the same, or packed into workspace. */
typedef struct operand {
  cuda_matmul_side given, read;
  bool      rows_contiguous;              /* as read; otherwise k is */
  int64_t   k;                            /* elements of a row as read */
  bool      packed;
  cuda_pack pack;
  uint64_t  offset;
} operand;

typedef struct problem {
  int64_t  k, batch[2];
  int      which, esize, out_bytes;       /* bytes of an element as multiplied; of a sum before the chain */
  int      class_bits;                    /* rows of a in 2^class_bits classes (matmul_wgmma.cuh) */
  bool     odd;                           /* y's rows are in no units of 16 bytes: not stored by TMA */
  uint32_t out_dtype;
  operand  a, b;                          /* in the kernel's order */
} problem;

typedef struct state {
  cuda_gemm gemm;                         /* all but addresses */
  cuda_chain chain;
  cuda_gemm_kernel kernel;
  const cuda_driver *driver;
  int32_t  grid, cluster, box_a, box_b;   /* box_*: rows of a TMA box */
  uint64_t kept;                          /* offset in workspace of the sums of blocks of k */
  problem  problem;
} state;

/* Can TMA read it: one dim contiguous, every other stride and the address a multiple of 16 bytes. */
static bool side_fits(const cuda_matmul_side *s, int64_t k, int esize, bool turns, bool *rows_contiguous)
{
  int64_t unit = 16 / esize;
  bool by_k = (s->k_stride == 1 || k == 1) && (s->rows == 1 || s->row_stride % unit == 0);
  bool by_rows = (s->row_stride == 1 || s->rows == 1) && (k == 1 || s->k_stride % unit == 0) && turns;
  *rows_contiguous = !by_k;
  return (by_k || by_rows) && s->align >= 16 && s->batch_stride[0] % unit == 0 && s->batch_stride[1] % unit == 0;
}

static uint64_t packed_bytes(const operand *o)
{
  return o->packed ? (uint64_t)(o->pack.batch[0] * o->pack.batch[1] * o->given.rows * o->pack.pitch * o->pack.bytes + 255) / 256 * 256 : 0;
}

/* Packs 8- and 16-bit elements as wider words where contiguity and alignment allow it. */
static void widen(cuda_pack *p, uint32_t align)
{
  while (p->bytes < 4 && p->k_stride == 1 && align >= 2 * (uint32_t)p->bytes &&
         !((p->k | p->row_stride | p->batch_stride[0] | p->batch_stride[1]) & 1)) {
    p->bytes *= 2;
    p->k /= 2, p->pitch /= 2, p->row_stride /= 2, p->batch_stride[0] /= 2, p->batch_stride[1] /= 2;
  }
}

/* Decides how the operand is read. turns: rows may be contiguous; split: packed into high and low parts (3xTF32). */
static operand lay_out(const cuda_matmul_side *given, const problem *p, bool turns, bool split)
{
  operand laid = { .given = *given, .read = *given, .k = p->k }, *o = &laid;
  bool as_f16 = p->which == WGMMA_F8_F16;
  o->packed = !side_fits(given, p->k, p->esize, turns, &o->rows_contiguous) || split || as_f16;
  if (!o->packed) return laid;
  o->rows_contiguous = false;
  int64_t unit = split ? 128 / p->esize : 16 / p->esize, row = qn_ceil_div(p->k, unit) * unit;
  cuda_pack *k = &o->pack;
  *k = (cuda_pack){ .rows = o->given.rows, .k = p->k, .row_stride = o->given.row_stride, .k_stride = o->given.k_stride,
                    .pitch = split ? 2 * row : row, .bytes = p->esize, .f8 = as_f16 ? given->dtype : 0, .split = split };
  o->k = k->pitch;
  o->read = (cuda_matmul_side){ .rows = k->rows, .row_stride = k->pitch, .k_stride = 1 };
  int64_t all = k->rows * k->pitch;
  for (int i = 0; i < 2; i++) {                             /* a broadcast batch is packed once */
    k->batch_stride[i] = o->given.batch_stride[i];
    k->batch[i] = k->batch_stride[i] ? p->batch[i] : 1;
    o->read.batch_stride[i] = k->batch[i] > 1 ? all : 0;
    all *= k->batch[i];
  }
  if (!as_f16) widen(k, given->align);
  return laid;
}

/* ---- which tile --------------------------------------------------------------------------------- */

/* Nanoseconds of packing: the launch, and the bytes read and written; 16 bits in words, or one by one. */
static double packing(const operand *o)
{
  const double each = o->pack.split || o->pack.f8 ? 1.5 : o->given.dtype == QN_F32 ? 2 : o->pack.bytes > 2 ? 3 : 4;
  return o->packed ? (o->pack.split ? 2500 : 1500) + (double)packed_bytes(o) * each / 3500 : 0;
}

/* Nanoseconds for the rows of one k step to arrive. A row that straddles two cache lines costs TMA twice the time: none do where
 * the pitch is a multiple of whole lines, seven of eight where it is an odd multiple of 16 bytes. */
static double arrival(const problem *p, const operand *o, int rows)
{
  int64_t pitch = (o->rows_contiguous ? o->read.k_stride : o->read.row_stride) * p->esize;
  return 1.08 * rows * (o->packed ? 1 : 2 - (double)(pitch & -pitch & 127 ? pitch & -pitch & 127 : 128) / 128);
}

/* Number of row classes of a, as bits: 0 where they do not pay (one class, or tiles that would be mostly empty), or where y is
 * not stored by TMA, which needs contiguous columns of y. */
static int class_bits(const problem *p, const variant *v, const operand *a, const qn_value *y, int column)
{
  int64_t pitch = a->read.row_stride * p->esize, rows = a->given.rows;
  int bits = 0;
  if (p->esize != 2 || v->splits > 1 || v->bm < 128 || p->batch[0] * p->batch[1] > 1 || a->rows_contiguous || a->packed ||
      cuda_stride(y, column) != 1)
    return 0;
  while ((pitch << bits) % 128) bits++;
  return rows % (1 << bits) || (rows >> bits) * 8 < qn_ceil_div(rows >> bits, v->bm) * v->bm * 7 ? 0 : bits;
}

/* Launch in clusters of two: neighbouring CTAs then request the same cache lines at about the same time, either of b (their tiles
 * are in one column) or, with row classes, of a (the rows that share lines). Other tiles do not gain. */
static bool in_pairs(const problem *p, const variant *v)
{
  return p->esize == 2 && v->splits == 1 && (p->class_bits ? v->bm == 128 && v->bn == 64 : v->bm == 64 && v->bn == 128);
}

static int64_t tiles_down(const problem *p, const variant *v, const operand *a)
{
  return qn_ceil_div(a->given.rows >> p->class_bits, v->bm) << p->class_bits;
}

/* A k step's time where tf32 operands are turned on their way: the left one in registers, the right one in shared memory. */
static double turned(const problem *p, double step, const operand *a, const operand *b)
{
  if (p->which != WGMMA_TF32 || !(a->rows_contiguous || b->rows_contiguous)) return step;
  return step * (a->rows_contiguous && b->rows_contiguous ? 1.6 : b->rows_contiguous ? 1.3 : 1.15) + 75;
}

/* Nanoseconds in total: waves of tiles as measured, or the memory traffic if that takes longer. */
static double cost(const problem *p, const variant *v, const operand *a, const operand *b, int units_of_device)
{
  int64_t tiles = tiles_down(p, v, a) * qn_ceil_div(b->given.rows, v->bn) * p->batch[0] * p->batch[1], k = p->k + (p->class_bits ? 64 : 0);
  double share = (double)qn_ceil_div(qn_ceil_div(k * p->esize, 128), v->splits),
         rounds = (double)qn_ceil_div(tiles * v->splits, units_of_device);
  double arriving = (p->class_bits ? 1.08 * v->bm : arrival(p, a, v->bm)) + arrival(p, b, v->bn),
         step = p->esize == 2 && arriving > v->step ? arriving : turned(p, v->step, a, b);
  double between = v->fixed > 1600 ? v->fixed - 1500 : 100;            /* between two waves; the launch and the first stage are paid once */
  double storing = p->odd ? (20 + 2000. / v->bn) * (double)qn_min_i64(v->bn, b->given.rows) : 0;       /* of a tile, element by element */
  double work = v->fixed + rounds * (share * step + storing) + (rounds - 1) * between;
  double elements = ((double)a->given.rows + (double)b->given.rows) * (double)p->k * p->esize +
                    (double)a->given.rows * (double)b->given.rows * p->out_bytes;
  double memory = 1500 + elements * (double)(p->batch[0] * p->batch[1]) / 4400;
  return (work > memory ? work + 0.15 * memory : memory + (in_pairs(p, v) ? 0.11 : 0.15) * work) + packing(a) + packing(b);
}

/* The kernel of a variant for operands that are read so. */
static const cuda_gemm_kernel *kernel_of(const problem *p, int variant, const operand *a, const operand *b)
{
  const bool turned = p->which == WGMMA_TF32 && (a->rows_contiguous || b->rows_contiguous);
  return (turned ? cuda_gemm_tf32_turned : kernels_of(p->which, a->given.dtype, b->given.dtype)) + variant / 2;
}

/* Is the sum over k so long that it is made in blocks? */
static bool in_blocks(const problem *p, const variant *v)
{
  return qn_ceil_div(qn_ceil_div(p->k * p->esize, 128), v->splits) > cuda_gemm_block(p->esize);
}
static uint64_t kept_bytes(const problem *p, const variant *v, int units_of_device)
{
  return in_blocks(p, v) ? (uint64_t)units_of_device * (uint64_t)(v->bm * v->bn * 4) : 0;
}

/* Has the tile columns in no whole chunks of 128 bytes of 16-bit elements? y of these is stored in narrower boxes (matmul_wgmma_store.cuh). */
static bool in_boxes(int bn) { return bn > 64 && bn % 64; }

/* A split tile needs a cluster of its own, and at least one k step for each CTA in it. */
static bool variant_fits(const problem *p, const variant *v, const cuda_gemm_kernel *kernel, const operand *a, const operand *b,
                         int units_of_device)
{
  int64_t steps = qn_ceil_div(p->k * p->esize, 128);
  int splits = v->splits;
  if (in_blocks(p, v) && !kernel->in_blocks) return false;
  if (in_boxes(v->bn) && b->rows_contiguous) return false;
  if (splits == 1) return true;
  int64_t tiles = qn_ceil_div(a->given.rows, v->bm) * qn_ceil_div(b->given.rows, v->bn) * p->batch[0] * p->batch[1];
  int64_t share = qn_ceil_div(steps, splits), room = units_of_device / splits - (splits > 2 ? units_of_device / 44 : 0);
  return share * (splits - 1) < steps && tiles <= room;
}

/* ---- prepare -------------------------------------------------------------------------------------- */

/* Lines of k of the TMA box where rows are contiguous: no more than there are, in eights, as the swizzling goes. */
static int box_lines(const problem *p) { return (int)qn_min_i64(128 / p->esize, qn_round_up(p->k, 8)); }

/* Are there fewer, so that what they leave of the stages is to be zeros? */
static bool lines_cleared(const problem *p)
{
  return box_lines(p) * p->esize < 128 && (p->a.rows_contiguous || p->b.rows_contiguous);
}

/* Bytes that one step fetches of a row. */
static int line_bytes(const problem *p, const operand *o) { return o->rows_contiguous ? box_lines(p) * p->esize : 128; }

/* Rows of the TMA box for one step: no more than the operand has. f32 keeps the whole tile, so that rows beyond the operand are
 * zeros: its sums are tested for being finite (gemm_not_finite). */
static int32_t box_rows(const problem *p, const operand *o, int64_t rows, int32_t of_tile)
{
  return o->rows_contiguous || p->esize == 4 ? of_tile : (int32_t)qn_min_i64(rows, of_tile);
}

static qn_status read_problem(const qn_request *r, problem *p, cuda_matmul *m, qn_prepared *out)
{
  const qn_value *a = cuda_value(r, QN_ROLE_MATMUL_A), *b = cuda_value(r, QN_ROLE_MATMUL_B), *y = cuda_value(r, QN_ROLE_MATMUL_Y);
  if (r->device->arch_major != 9 || r->device->arch_minor != 0)
    return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  int which = 0;
  while (strcmp(families[which].engine, out->engine->name)) which++;
  if (!kernels_of(which, a->dtype, b->dtype))
    return qn_refuse(out, "dtypes", "a", families[which].takes, "%s, %s", qn_kit_name(a->dtype), qn_kit_name(b->dtype));
  qn_status status = cuda_matmul_read(r, out, m);
  if (status) return status;
  if (m->m > INT32_MAX / 2 || m->n > INT32_MAX / 2 || m->k > INT32_MAX / 2)
    return qn_refuse(out, "dims beyond 2^30", "y", "less than 2^30", "more");
  if (m->batch[0] * m->batch[1] > 65535)
    return qn_refuse(out, "batches beyond 65535", "y", "at most 65535", "%lld", (long long)(m->batch[0] * m->batch[1]));
  *p = (problem){ .k = m->k,
                  .batch = { m->batch[0], m->batch[1] },
                  .which = which,
                  .esize = which == WGMMA_F8_F16 ? 2 : (int)qn_kit_bytes(a->dtype),
                  .out_bytes = (int)qn_kit_bytes(y->dtype) };
  const int64_t pitch = cuda_stride(y, y->rank - 2) * p->out_bytes;
  p->odd = y->dtype != QN_I32 && cuda_stride(y, y->rank - 1) == 1 && (pitch | m->n * p->out_bytes) % 16;
  return QN_OK;
}

typedef struct choice { int variant, class_bits; double ns; uint64_t packed, workspace; } choice;   /* packed: bytes of operands */

/* Chooses the variant that was asked for, or the cheapest, and fills in p's operands. */
static qn_status choose(const qn_request *r, const cuda_matmul *m, problem *p, choice *best, qn_prepared *out)
{
  const family *f = &families[p->which];
  const qn_value *y = cuda_value(r, QN_ROLE_MATMUL_Y);
  uint64_t wanted = 0;
  *best = (choice){ .variant = -1 };
  for (int i = 0; f->names[i]; i++) {
    const variant *v = &f->variants[i];
    if (r->variant && strcmp(r->variant, f->names[i])) continue;
    const cuda_matmul_side *on_left = v->swap ? &m->b : &m->a, *on_right = v->swap ? &m->a : &m->b;
    const bool turns = p->esize == 2 || p->which == WGMMA_3XTF32 || (p->which == WGMMA_TF32 && cuda_gemm_tf32_turned[i / 2].function);
    operand left = lay_out(on_left, p, turns, false), right = lay_out(on_right, p, turns, p->which == WGMMA_3XTF32);
    if (!variant_fits(p, v, kernel_of(p, i, &left, &right), &left, &right, r->device->units)) continue;
    right.offset = packed_bytes(&left);
    const uint64_t packed = right.offset + packed_bytes(&right), bytes = packed + kept_bytes(p, v, r->device->units);
    if (bytes > r->demands->workspace_limit) {
      wanted = bytes;
      continue;
    }
    for (int bits = class_bits(p, v, &left, y, m->dims.dim_of[!v->swap]);; bits = 0) {
      problem by = *p;
      by.class_bits = bits;
      const double ns = cost(&by, v, &left, &right, r->device->units);
      if (best->variant < 0 || ns < best->ns) *best = (choice){ i, bits, ns, packed, bytes }, p->a = left, p->b = right;
      if (!bits) break;
    }
  }
  if (best->variant >= 0) return QN_OK;
  if (!wanted)
    return qn_refuse(out, "a variant that this problem can be split into", "", "fewer shares, or more k", "%s",
                     r->variant ? r->variant : "");
  return qn_refuse(out, "operands that cannot be fetched in units of 16 bytes are packed into workspace", "", "a limit above it",
                   "%llu bytes", (unsigned long long)wanted);
}

/* Is y the operand's memory? */
static bool is_over(const qn_value *to, const cuda_chain *chain, int operand) { return operand >= 0 && to->over == chain->value[operand]; }

/* Can TMA read the added matrix? (It comes through stages, as do vectors of columns, that are not to be clear.) */
static bool added_fits(const problem *p, const cuda_gemm *g, const cuda_chain *chain, const qn_request *r, const qn_value *to)
{
  const int64_t dim[4] = { g->m, g->n, g->batch0, g->batch1 }, *stride = g->steps.operand[g->plain.added].stride;
  const qn_value *v = &r->value[chain->value[g->plain.added]];
  bool fits = v->dtype == to->dtype && to->dtype != QN_I32 && v->align >= 16;
  for (int i = 0; i < 4; i++)
    if (i != 1 && dim[i] > 1) fits = fits && stride[i] && stride[i] * qn_kit_bytes(v->dtype) % 16 == 0;
  return fits && (p->esize < 4 || !is_over(to, chain, g->plain.added));
}

/* Is the bias the same in all batches? */
static bool one_vector(const cuda_operand *bias) { return !bias->stride[2] && !bias->stride[3]; }

/* Are tiles stored by TMA? It needs contiguous columns, and all else in units of 16 bytes, because it clips in those. */
static bool stored_by_map(const problem *p, const cuda_gemm *g, const cuda_chain *chain, const qn_request *r, const qn_value *to,
                          const cuda_gemm_kernel *kernel)
{
  const int bytes = (int)qn_kit_bytes(to->dtype), columns_of_share = kernel->bn / kernel->splits;
  bool fits = (g->out_stride[1] == 1 || g->n == 1) && to->align >= 16 &&
              (bytes == 4 ? columns_of_share % 32 == 0 : columns_of_share >= 64) &&
              (int64_t)g->n * bytes % 16 == 0;
  for (int i = 0; i < 4; i++)
    if (i != 1) fits = fits && g->out_stride[i] * bytes % 16 == 0;
  /* not with a vector that is y's own buffer: a tile moved back, or a sum recomputed, would read it after y is stored */
  fits = fits && !is_over(to, chain, g->plain.bias) && (g->plain.added < 0 || added_fits(p, g, chain, r, to));
  for (int i = 0; i < 2 && g->plain.factor >= 0; i++) fits = fits && !is_over(to, chain, g->plain.factor + i);
  if (g->plain.added >= 0 || g->staged) fits = fits && !lines_cleared(p);
  if (g->plain.added >= 0 && g->staged) fits = fits && cuda_gemm_room(kernel, p->which == WGMMA_3XTF32 ? 2 : 1, bytes == 4 ? 32 : 64);
  if (to->dtype == QN_I32)                /* integers have a bias of columns alone */
    fits = fits && !g->plain.by_row && g->plain.factor < 0 &&
           (g->plain.bias < 0 || (g->n % 8 == 0 && one_vector(&g->steps.operand[g->plain.bias])));
  return fits && (!g->staged || cuda_plain_vectors(chain, &g->plain, r, g->n));
}

/* Are y's rows all in units of 16 bytes, of which its columns are the elements? */
static bool in_vectors(const cuda_gemm *g, const qn_value *to)
{
  const int64_t unit = 16 / qn_kit_bytes(to->dtype);
  return to->align >= 16 && (g->out_stride[0] | g->out_stride[2] | g->out_stride[3]) % unit == 0;
}

static void describe_sums(const problem *p, const variant *v, const qn_request *r, const cuda_matmul *m, state *st)
{
  const qn_value *to = &r->value[st->chain.out];
  cuda_gemm *g = &st->gemm;
  const int64_t steps = qn_ceil_div(p->k * p->esize, 128);
  for (int i = 0; i < 4; i++) g->out_stride[i] = cuda_stride(to, m->dims.dim_of[i]);
  g->out_dtype = to->dtype;
  g->m = (int32_t)p->a.given.rows;
  g->n = (int32_t)p->b.given.rows;
  g->k_steps = (int32_t)steps;
  g->split_steps = (int32_t)qn_ceil_div(steps, v->splits);
  g->layout = p->a.rows_contiguous | p->b.rows_contiguous << 1;
  g->tiles_n = (int32_t)qn_ceil_div(g->n, st->kernel.bn);
  g->batch0 = (int32_t)p->batch[0];
  g->batch1 = (int32_t)p->batch[1];
  g->steps = st->chain.steps;
  g->along = g->out_stride[0] == 1 && g->out_stride[1] != 1 && g->n > 1 ? 1 : g->out_stride[1] == 1 && !in_vectors(g, to) ? 2 : 0;
  const bool plain = cuda_chain_plain(&st->chain, &g->plain);
  g->staged = !g->plain.by_row && (g->plain.bias >= 0 || g->plain.factor >= 0) && to->dtype != QN_I32;
  g->store_map = plain && stored_by_map(p, g, &st->chain, r, to, &st->kernel);
  /* f32 recomputes sums that are not finite, and then needs the steps */
  g->scaled = plain && g->plain.any && !g->store_map && g->plain.added < 0 && to->dtype != QN_I32 && p->esize < 4 && !lines_cleared(p) &&
              !is_over(to, &st->chain, g->plain.bias) && (!g->staged || cuda_plain_vectors(&st->chain, &g->plain, r, g->n));
  g->staged = g->staged && (g->store_map || g->scaled);
  if (g->scaled) g->steps.n = 0;
}

/* Order of tiles, and what a step fetches of the operands; p->class_bits is final. over_added: y is the added matrix's own buffer, so
 * that no two CTAs may store the same sums. */
static void describe_tiles(const problem *p, const variant *v, bool over_added, state *st)
{
  cuda_gemm *g = &st->gemm;
  const int64_t rows = p->a.given.rows >> p->class_bits;
  const bool back = g->store_map && v->splits == 1 && p->esize < 4 && !over_added;
  if (p->class_bits) {
    g->class_bits = p->class_bits;
    g->class_shift = (int32_t)(p->a.read.row_stride % 64);
    g->k_spare = (int32_t)(g->k_steps * 64 - p->k);
  }
  g->tiles_m = (int32_t)tiles_down(p, v, &p->a);
  st->cluster = in_pairs(p, v) ? 2 : v->splits;
  g->group = st->cluster > 1 && p->class_bits ? 1 : 12;
  cuda_gemm_walk(g);
  g->last_m = back && !p->a.rows_contiguous && rows > st->kernel.bm ? (int32_t)rows - st->kernel.bm : INT32_MAX;
  g->last_n = back && !p->b.rows_contiguous && g->n > st->kernel.bn ? g->n - st->kernel.bn : INT32_MAX;
  st->box_a = box_rows(p, &p->a, rows, st->kernel.bm), st->box_b = box_rows(p, &p->b, g->n, st->kernel.bn);
  g->stage_bytes = st->box_a * line_bytes(p, &p->a) + st->box_b * line_bytes(p, &p->b) * (p->which == WGMMA_3XTF32 ? 2 : 1);
  g->low = (int32_t)(p->b.k / 2);
  if (p->esize == 4)
    g->again = (cuda_gemm_again){
      .a_stride = { p->a.given.row_stride, p->a.given.k_stride, p->a.given.batch_stride[0], p->a.given.batch_stride[1] },
      .b_stride = { p->b.given.row_stride, p->b.given.k_stride, p->b.given.batch_stride[0], p->b.given.batch_stride[1] },
      .k = (int32_t)p->k
    };
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  problem p = { 0 };
  cuda_matmul m;
  choice best;
  state st = { 0 };
  qn_status status = read_problem(r, &p, &m, out);
  if (status || (status = choose(r, &m, &p, &best, out))) return status;
  const family *f = &families[p.which];
  const variant *v = &f->variants[best.variant];
  if (v->swap) m.dims.dim_of[0] = m.dims.dim_of[1], m.dims.dim_of[1]--;
  if ((status = cuda_matmul_chain(r, out, &m, &st.chain))) return status;
  const qn_value *to = &r->value[st.chain.out];
  p.out_dtype = to->dtype;
  st.kernel = *kernel_of(&p, best.variant, &p.a, &p.b);
  if (in_blocks(&p, v)) st.kernel.function = st.kernel.in_blocks;
  describe_sums(&p, v, r, &m, &st);
  if (st.gemm.store_map) p.class_bits = best.class_bits;
  describe_tiles(&p, v, st.gemm.store_map && is_over(to, &st.chain, st.gemm.plain.added), &st);
  const int64_t tiles = (int64_t)st.gemm.tiles_m * st.gemm.tiles_n * st.gemm.batch0 * st.gemm.batch1,
                most = r->device->units / st.kernel.splits;
  if (tiles > INT32_MAX) return qn_refuse(out, "fewer than 2^31 tiles", "y", "fewer rows, columns or batches", "%lld", (long long)tiles);
  st.grid = (int32_t)(qn_ceil_div((tiles < most ? tiles : most) * v->splits, st.cluster) * st.cluster);
  if (lines_cleared(&p))
    st.gemm.clear = (int32_t)qn_ceil_div(tiles, st.grid / v->splits);
  st.problem = p;

  out->n_ops = st.chain.n_ops;
  out->variant = f->names[best.variant];
  st.kept = best.packed;
  out->workspace = best.workspace;
  /* where tf32 is allowed, three products never beat the one of the same tile */
  out->estimate = best.ns * (p.which == WGMMA_3XTF32 && r->demands->math >= QN_MATH_TF32 ? 1.3 : 1);
  out->math = f->math;
  out->numerics = f->numerics;
  return cuda_keep(out, &st, sizeof st);
}

/* ---- build ------------------------------------------------------------------------------------------ */

/* dim, stride (of dims 1 to 3) and box are in elements. */
static qn_status encode(const cuda_driver *driver, CUtensorMap *map, CUtensorMapDataType type, int esize, const int64_t dim[4],
                        const int64_t stride[3], const cuuint32_t box[4], int span)
{
  CUtensorMapSwizzle swizzle = span == 128 ? CU_TENSOR_MAP_SWIZZLE_128B
                             : span == 64  ? CU_TENSOR_MAP_SWIZZLE_64B
                                           : CU_TENSOR_MAP_SWIZZLE_32B;
  return cuda_map_tiled(driver, map, type, esize, dim, stride, box, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                        "cuda: matmul_wgmma: the driver refused a tensor map");
}

/* `lines` lines of `inner` elements, `stride` apart, in boxes of box_bytes x box_lines. With row classes a box holds every
 * 2^class_bits-th line, and there are no batches. */
static qn_status encode_lines(const cuda_driver *driver, CUtensorMap *map, CUtensorMapDataType type, int esize, int64_t inner,
                              int64_t lines, int64_t stride, const problem *p, const int64_t batch_stride[2], int class_bits, int box_bytes,
                              int box_lines)
{
  cuuint32_t across = (cuuint32_t)(box_bytes / esize), down = (cuuint32_t)box_lines;
  if (class_bits)
    return encode(driver, map, type, esize, (int64_t[]){ inner, 1 << class_bits, lines >> class_bits, 1 },
                  (int64_t[]){ stride, stride << class_bits, 0 }, (cuuint32_t[]){ across, 1, down, 1 }, box_bytes);
  return encode(driver, map, type, esize, (int64_t[]){ inner, lines, p->batch[0], p->batch[1] },
                (int64_t[]){ stride, batch_stride[0], batch_stride[1] }, (cuuint32_t[]){ across, down, 1, 1 }, box_bytes);
}

/* An operand in boxes of 128 bytes by `rows`; where rows are contiguous, of `span` bytes of rows by the k of a stage. */
static qn_status encode_operand(const cuda_driver *driver, CUtensorMap *map, const problem *p, const operand *o, int rows, int class_bits)
{
  CUtensorMapDataType type = p->esize == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : p->esize == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16 :
                             p->which == WGMMA_TF32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const cuda_matmul_side *s = &o->read;
  if (!o->rows_contiguous)
    return encode_lines(driver, map, type, p->esize, o->k, s->rows, s->row_stride, p, s->batch_stride, class_bits, 128, rows);
  int span = rows * p->esize < 128 ? rows * p->esize : 128;
  return encode_lines(driver, map, type, p->esize, s->rows, o->k, s->k_stride, p, s->batch_stride, 0, span, box_lines(p));
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  const problem *p = &st->problem;
  cuda_gemm *g = &st->gemm;
  (void)r;
  qn_status s = cuda_driver_get(&st->driver);
  if (!s) s = encode_operand(st->driver, &g->a, p, &p->a, st->box_a, p->class_bits);
  if (!s) s = encode_operand(st->driver, &g->b, p, &p->b, st->box_b, 0);
  const int bytes = (int)qn_kit_bytes(p->out_dtype), box = bytes == 2 && in_boxes(st->kernel.bn) ? 32 : 128;
  const CUtensorMapDataType type = bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_UINT16;
  if (!s && g->store_map)
    s = encode_lines(st->driver, &g->y, type, bytes, g->n, g->m, g->out_stride[0], p, g->out_stride + 2, p->class_bits, box, 64);
  if (!s && g->store_map && g->plain.added >= 0) {
    const int64_t *stride = g->steps.operand[g->plain.added].stride;
    s = encode_lines(st->driver, &g->added, type, bytes, g->n, g->m, stride[0], p, stride + 2, p->class_bits, box, 64);
  }
  if (s) return s;
  return cuda_check(cudaFuncSetAttribute(st->kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, st->kernel.shared),
                    "cudaFuncSetAttribute");
}

/* ---- run ---------------------------------------------------------------------------------------------- */

qn_status cuda_gemm_launch(const void *g, const cuda_gemm_kernel *kernel, int grid, int cluster, void *stream, const char *name)
{
  cudaLaunchAttribute attributes[] = {
    { .id = cudaLaunchAttributeProgrammaticStreamSerialization, .val = { .programmaticStreamSerializationAllowed = 1 } },
    { .id = cudaLaunchAttributeClusterDimension, .val = { .clusterDim = { (unsigned)cluster, 1, 1 } } },
  };
  cudaLaunchConfig_t config = { .gridDim = { (unsigned)grid, 1, 1 }, .blockDim = { (unsigned)kernel->threads, 1, 1 },
                                .dynamicSmemBytes = (size_t)kernel->shared, .stream = stream,
                                .attrs = attributes, .numAttrs = cluster > 1 ? 2 : 1 };
  void *args[] = { (void *)g };
  return cuda_check(cudaLaunchKernelExC(&config, kernel->function, args), name);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cuda_gemm g = st->gemm;
  const operand *o[2] = { &st->problem.a, &st->problem.b };
  void *y = launch->ptr[st->chain.out], *at[2], *to[2];
  const void *from[2];
  cuda_pack pack[2];
  int n = 0;
  for (int i = 0; i < 2; i++) {
    at[i] = o[i]->packed ? (char *)launch->workspace + o[i]->offset : launch->ptr[o[i]->given.value];
    if (o[i]->packed) pack[n] = o[i]->pack, to[n] = at[i], from[n++] = launch->ptr[o[i]->given.value];
  }
  if (n) {
    qn_status s = cuda_pack_launch(n, pack, to, from, launch->stream);
    if (s) return s;
  }
  st->driver->tensor_map_address(&g.a, at[0]);
  st->driver->tensor_map_address(&g.b, at[1]);
  if (g.store_map) st->driver->tensor_map_address(&g.y, y);
  if (g.store_map && g.plain.added >= 0) st->driver->tensor_map_address(&g.added, launch->ptr[st->chain.value[g.plain.added]]);
  g.out = y;
  if (g.again.k) {
    g.again.a = launch->ptr[st->problem.a.given.value];
    g.again.b = launch->ptr[st->problem.b.given.value];
  }
  g.kept = (float *)((char *)launch->workspace + st->kept);
  cuda_chain_bind(&g.steps, &st->chain, launch->ptr);
  return cuda_gemm_launch(&g, &st->kernel, st->grid, st->cluster, launch->stream, "cuda: matmul_wgmma: the driver refused a tensor map");
}

#define ROW(name_, names, more) \
  { .name = name_, .op = QN_OP_MATMUL, .class_ = QN_CLASS_TUNED, \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES | (more), \
    .variants = names, .prepare = prepare, .build = build, .run = run, .release = cuda_release }
static const qn_engine rows[] = {
  ROW("wgmma", names_16, 0),
  ROW("wgmma_tf32", names_tf32, 0),
  ROW("wgmma_3xtf32", names_3xtf32, 0),
  ROW("wgmma_f8", names_f8, 0),
  ROW("wgmma_f8_raw", names_f8_raw, QN_TRAIT_REDUCED),
  ROW("wgmma_f8_f16", names_16, 0),
  ROW("wgmma_i8", names_i8, 0),
};
CUDA_ENGINES(matmul_wgmma) = { rows, sizeof rows / sizeof *rows };
