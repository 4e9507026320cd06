/* quantize_direct.c -- quantization and dequantization: first amax and scales of blocks, if wanted, then element by element.
 * The arithmetic is as the interface defines it: one quotient or product in f32 (f64), one rounding to y.
 *
 *   quantize     y = round(x / scale) + zero_point, saturated
 *   dynamic      the same, by scale = amax / largest, or the power of two of floor(log2 amax) - emax; with a zero point by scale =
 *                (high - low) / 255 of the range of x and 0, and zero_point = round(least - low / scale)
 *   dequantize   y = (x - zero_point) scale */
#include "direct.h"

typedef struct problem {
  cpu_tensor x, scale, zero, y, amax;
  int dynamic, wide;                      /* wide: computed in f64 */
  int64_t block[QN_MAX_RANK];             /* along each of x's dims; 0: the whole dim */
  int64_t blocks[QN_MAX_RANK], n_blocks;  /* number of blocks, along each dim and in all */
} problem;

static problem problem_of(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  problem v = { .x = cpu_tensor_of(p, launch, 0, 0), .dynamic = kept->op == QN_OP_QUANTIZE_DYNAMIC, .n_blocks = 1 };
  if (kept->op == QN_OP_QUANTIZE) {
    v.scale = cpu_tensor_of(p, launch, QN_ROLE_QUANTIZE_SCALE, 0), v.zero = cpu_tensor_of(p, launch, QN_ROLE_QUANTIZE_ZERO_POINT, 0);
    v.y = cpu_tensor_of(p, launch, QN_ROLE_QUANTIZE_Y, 0), v.amax = cpu_tensor_of(p, launch, QN_ROLE_QUANTIZE_AMAX, 0);
  } else if (kept->op == QN_OP_DEQUANTIZE) {
    v.scale = cpu_tensor_of(p, launch, QN_ROLE_DEQUANTIZE_SCALE, 0), v.zero = cpu_tensor_of(p, launch, QN_ROLE_DEQUANTIZE_ZERO_POINT, 0);
    v.y = cpu_tensor_of(p, launch, QN_ROLE_DEQUANTIZE_Y, 0);
  } else {
    v.y = cpu_tensor_of(p, launch, QN_ROLE_QUANTIZE_DYNAMIC_Y, 0), v.scale = cpu_tensor_of(p, launch, QN_ROLE_QUANTIZE_DYNAMIC_SCALE, 0);
    v.amax = cpu_tensor_of(p, launch, QN_ROLE_QUANTIZE_DYNAMIC_AMAX, 0);
    v.zero = cpu_tensor_of(p, launch, QN_ROLE_QUANTIZE_DYNAMIC_ZERO_POINT, 0);
  }
  v.wide = v.x.dtype == QN_F64 || v.y.dtype == QN_F64 || v.x.dtype == QN_I32;
  for (int32_t d = 0; d < v.x.rank; d++) {
    v.block[d] = ((const qn_blocks *)kept->attr)->block[d];
    v.blocks[d] = v.block[d] ? qn_ceil_div(v.x.dim[d], v.block[d]) : 1;
    v.n_blocks *= v.blocks[d];
  }
  return v;
}

/* Offset of a block's entry in t; one for all if t has rank 0. */
static int64_t block_offset(const cpu_tensor *t, const int64_t *block_index) { return cpu_offset(t->rank, block_index, t->stride); }

/* ---- blocks ------------------------------------------------------------------------------------ */

static double largest_of(uint32_t dtype) { return dtype == QN_E4M3 ? 448 : dtype == QN_E5M2 ? 57344 : 127; }
static int emax_of(uint32_t dtype) { return dtype == QN_E4M3 ? 8 : dtype == QN_E5M2 ? 15 : 6; }

static double scale_of(const problem *v, double amax)
{
  if (v->scale.dtype == QN_E8M0) return ldexp(amax, -emax_of(v->y.dtype));       /* storing as e8m0 rounds down to a power of two */
  const double scale = v->wide ? amax / largest_of(v->y.dtype) : (float)amax / (float)largest_of(v->y.dtype);
  return scale == 0 ? 1 : scale;
}

/* 255 steps from low to high; apart, where their distance is not representable. */
static double step_of(const problem *v, double low, double high)
{
  const float narrow = ((float)high - (float)low) / 255, apart = (float)high / 255 - (float)low / 255;
  const double wide = (high - low) / 255, wide_apart = high / 255 - low / 255;
  const double step = v->wide ? isinf(wide) ? wide_apart : wide : isinf(narrow) ? apart : narrow;
  return step == 0 ? 1 : step;
}

static void cover_range(const problem *v, const int64_t *block, double low, double high)
{
  const double scale = step_of(v, low, high), least = v->y.dtype == QN_I8 ? -128 : 0;
  cpu_put(&v->scale, block_offset(&v->scale, block), scale);
  cpu_put(&v->zero, block_offset(&v->zero, block), v->wide ? least - low / scale : (float)least - (float)low / (float)scale);
}

static void one_block(const problem *v, int64_t b)
{
  int64_t block[QN_MAX_RANK], extent[QN_MAX_RANK], index[QN_MAX_RANK], n = 1;
  double amax = 0, low = 0, high = 0;
  cpu_place(b, v->x.rank, v->blocks, block);
  for (int32_t d = 0; d < v->x.rank; d++) {
    extent[d] = v->block[d] ? qn_min_i64(v->block[d], v->x.dim[d] - block[d] * v->block[d]) : v->x.dim[d];
    n *= extent[d];
  }
  for (int64_t i = 0; i < n; i++) {
    cpu_place(i, v->x.rank, extent, index);
    for (int32_t d = 0; d < v->x.rank; d++) index[d] += block[d] * v->block[d];
    const double x = cpu_get(&v->x, cpu_offset(v->x.rank, index, v->x.stride)), a = fabs(x);
    low = x < low || isnan(x) ? x : low;
    high = x > high || isnan(x) ? x : high;
    if (a > amax || isnan(a)) amax = a;
    if (isnan(amax)) break;
  }
  if (v->amax.p) cpu_put(&v->amax, block_offset(&v->amax, block), amax);
  if (v->dynamic && v->zero.p) cover_range(v, block, low, high);
  else if (v->dynamic) cpu_put(&v->scale, block_offset(&v->scale, block), scale_of(v, amax));
}

/* ---- elements ---------------------------------------------------------------------------------- */

static void quantize_one(const problem *v, double x, double scale, double zero, int64_t to)
{
  double q = v->wide ? x / scale : (float)x / (float)scale;
  if (v->y.dtype == QN_I8 || v->y.dtype == QN_U8) q = (isnan(q) ? 0 : rint(q)) + zero;
  cpu_put(&v->y, to, q);
}

static void dequantize_one(const problem *v, double x, double scale, double zero, int64_t to)
{
  cpu_put(&v->y, to, v->wide ? (x - zero) * scale : (float)(x - zero) * (float)scale);
}

static void one_element(const problem *v, int64_t i, int back)
{
  int64_t index[QN_MAX_RANK], block[QN_MAX_RANK];
  cpu_place(i, v->x.rank, v->x.dim, index);
  for (int32_t d = 0; d < v->x.rank; d++) block[d] = v->block[d] ? index[d] / v->block[d] : 0;
  const double x = cpu_get(&v->x, cpu_offset(v->x.rank, index, v->x.stride)), scale = cpu_get(&v->scale, block_offset(&v->scale, block));
  const double zero = v->zero.p ? cpu_get(&v->zero, block_offset(&v->zero, block)) : 0;
  (back ? dequantize_one : quantize_one)(v, x, scale, zero, cpu_offset(v->y.rank, index, v->y.stride));
}

static qn_status quantize(const qn_prepared *p, const qn_launch *launch)
{
  const problem v = problem_of(p, launch);
  if (v.dynamic || v.amax.p) {
#pragma omp parallel for num_threads(cpu_team(launch, v.n_blocks, v.x.elements / qn_max_i64(v.n_blocks, 1)))
    for (int64_t b = 0; b < v.n_blocks; b++) one_block(&v, b);
  }
#pragma omp parallel for num_threads(cpu_team(launch, v.x.elements, 8))
  for (int64_t i = 0; i < v.x.elements; i++) one_element(&v, i, 0);
  return QN_OK;
}

static qn_status dequantize(const qn_prepared *p, const qn_launch *launch)
{
  const problem v = problem_of(p, launch);
#pragma omp parallel for num_threads(cpu_team(launch, v.x.elements, 8))
  for (int64_t i = 0; i < v.x.elements; i++) one_element(&v, i, 1);
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_QUANTIZE, quantize),
  CPU_DIRECT_ROW(QN_OP_DEQUANTIZE, dequantize),
  CPU_DIRECT_ROW(QN_OP_QUANTIZE_DYNAMIC, quantize),
};
const qn_engine_list cpu_quantize_direct = { row, sizeof row / sizeof *row };
