/* quantize_runs.c -- quantization and dequantization of packed tensors, in vector code.
 *
 * Given scales are applied in runs: neighbours of one scale, or a row with a scale for each element. amax, and scales computed from it,
 * need contiguous blocks: each block is done by one thread, or if there are few, its spans by all threads. Elements are
 * widened to f32 in spans that stay in the first-level cache. */
#include "kit/convert.h"
#include "cpu_ref.h"

enum { SPAN = 2048 };
enum { X, Y, SCALE, ZERO, AMAX, WALKED }; /* X: the floats, Y: the 8-bit side, in either direction */

typedef struct problem {
  bool     back, dynamic, extremes;       /* extremes: amax is needed */
  int32_t  value[WALKED];
  uint32_t dtype[WALKED];
  int64_t  elements, block;               /* block: elements per contiguous block, if amax is needed */
  int32_t  levels;
  qn_block_level level[QN_MAX_RANK];
} problem;

typedef struct memory { char *p[WALKED]; } memory;

/* ---- rows --------------------------------------------------------------------------------------------------------- */

/* Rounds to nearest even by adding a number whose last place is 1, then takes the last byte; clamps first. */
CPU_INLINE uint8_t octet(float q, float zero, float low)
{
  q = q == q ? q : 0;
  q = q < low - zero ? low - zero : q;
  q = q > low + 255 - zero ? low + 255 - zero : q;
  return (uint8_t)(qn_bits_of_f32(q + 0x1.8p23f) + (uint32_t)(int32_t)zero);
}
enum { OCTETS = 0 };                      /* a kind beside QN_E4M3 and QN_E5M2: i8 or u8 */

/* A run with one scale: multiplies by the reciprocal if that is exact. */
CPU_INLINE void narrow(uint8_t *restrict y, const float *restrict x, uint32_t kind, float scale, bool power, float zero, float low,
                       int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float q = power ? x[i] * scale : x[i] / scale;
    y[i] = kind == QN_E4M3 ? e4m3_narrow(q) : kind == QN_E5M2 ? e5m2_narrow(q) : octet(q, zero, low);
  }
}
static void narrow_run(uint8_t *y, const float *x, uint32_t dtype, float scale, float zero, int64_t n)
{
  const float low = dtype == QN_U8 ? 0 : -128, reciprocal = 1 / scale;
  const bool power = !(qn_bits_of_f32(scale) & 0x7fffff) && qn_bits_of_f32(scale) << 1 && isfinite(reciprocal);
  if (dtype == QN_E4M3 && power) narrow(y, x, QN_E4M3, reciprocal, true, zero, low, n);
  else if (dtype == QN_E4M3) narrow(y, x, QN_E4M3, scale, false, zero, low, n);
  else if (dtype == QN_E5M2 && power) narrow(y, x, QN_E5M2, reciprocal, true, zero, low, n);
  else if (dtype == QN_E5M2) narrow(y, x, QN_E5M2, scale, false, zero, low, n);
  else if (power) narrow(y, x, OCTETS, reciprocal, true, zero, low, n);
  else narrow(y, x, OCTETS, scale, false, zero, low, n);
}

CPU_INLINE void narrow_each(uint8_t *restrict y, const float *restrict x, uint32_t kind, const float *restrict scale,
                            const float *restrict zero, float low, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float q = x[i] / scale[i];
    y[i] = kind == QN_E4M3 ? e4m3_narrow(q) : kind == QN_E5M2 ? e5m2_narrow(q) : octet(q, zero[i], low);
  }
}
static void narrow_run_each(uint8_t *y, const float *x, uint32_t dtype, const float *scale, const float *zero, int64_t n)
{
  if (dtype == QN_E4M3) narrow_each(y, x, QN_E4M3, scale, zero, 0, n);
  else if (dtype == QN_E5M2) narrow_each(y, x, QN_E5M2, scale, zero, 0, n);
  else narrow_each(y, x, OCTETS, scale, zero, dtype == QN_U8 ? 0 : -128, n);
}

static void widen(float *restrict y, const uint8_t *restrict x, uint32_t dtype, int64_t n)
{
  if (dtype == QN_I8) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = (int8_t)x[i];
  } else if (dtype == QN_U8) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = x[i];
  } else row_to_f32(y, x, dtype, n);
}

CPU_INLINE void widen_integers(float *restrict y, const uint8_t *restrict x, bool sign, float scale, float zero, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = ((sign ? (float)(int8_t)x[i] : (float)x[i]) - zero) * scale;
}
static void widen_run(float *restrict y, const uint8_t *restrict x, uint32_t dtype, float scale, float zero, int64_t n)
{
  if (dtype == QN_I8) widen_integers(y, x, true, scale, zero, n);
  else if (dtype == QN_U8) widen_integers(y, x, false, scale, zero, n);
  else {
    row_to_f32(y, x, dtype, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] *= scale;
  }
}
static void widen_run_each(float *restrict y, const uint8_t *restrict x, uint32_t dtype, const float *restrict scale,
                           const float *restrict zero, int64_t n)
{
  widen(y, x, dtype, n);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (y[i] - zero[i]) * scale[i];
}

/* The largest magnitude as bits, which order NaN above all. */
static int32_t largest(const float *restrict x, int32_t most, int64_t n)
{
#pragma omp simd reduction(max: most)
  for (int64_t i = 0; i < n; i++) {
    const int32_t a = (int32_t)(qn_bits_of_f32(x[i]) & 0x7fffffff);
    most = a > most ? a : most;
  }
  return most;
}

/* ---- runs: one scale, or one for each element; at: the run's first element, from: its scale --------------------------- */

static float scale_at(const problem *p, const memory *m, int64_t i)
{
  return (float)qn_load_f64(m->p[SCALE] + i * qn_kit_bytes(p->dtype[SCALE]), p->dtype[SCALE]);
}
static float zero_at(const problem *p, const memory *m, int64_t i)
{
  return m->p[ZERO] ? (float)qn_load_i64(m->p[ZERO] + i, p->dtype[ZERO]) : 0;
}
static void scales_at(const problem *p, const memory *m, int64_t from, float *scale, float *zero, int64_t n)
{
  const uint8_t *e8m0 = (const uint8_t *)m->p[SCALE] + from;
  if (p->dtype[SCALE] == QN_E8M0) for (int64_t i = 0; i < n; i++) scale[i] = qn_e8m0_to_f32(e8m0[i]);
  else row_to_f32(scale, m->p[SCALE] + from * qn_kit_bytes(p->dtype[SCALE]), p->dtype[SCALE], n);
  if (!m->p[ZERO]) memset(zero, 0, (size_t)n * sizeof *zero);
  else widen(zero, (const uint8_t *)m->p[ZERO] + from, p->dtype[ZERO], n);
}

/* x: the run's elements as f32. */
static void quantize_run(const problem *p, const memory *m, const float *x, int64_t at, int64_t from, int64_t n)
{
  narrow_run((uint8_t *)m->p[Y] + at, x, p->dtype[Y], scale_at(p, m, from), zero_at(p, m, from), n);
}
static void quantize_run_each(const problem *p, const memory *m, const float *x, int64_t at, int64_t from, int64_t n)
{
  float scale[SPAN], zero[SPAN];
  scales_at(p, m, from, scale, zero, n);
  narrow_run_each((uint8_t *)m->p[Y] + at, x, p->dtype[Y], scale, zero, n);
}

static void dequantize_run(const problem *p, const memory *m, float *x, int64_t at, int64_t from, int64_t n)
{
  widen_run(x, (const uint8_t *)m->p[Y] + at, p->dtype[Y], scale_at(p, m, from), zero_at(p, m, from), n);
}
static void dequantize_run_each(const problem *p, const memory *m, float *x, int64_t at, int64_t from, int64_t n)
{
  float scale[SPAN], zero[SPAN];
  scales_at(p, m, from, scale, zero, n);
  widen_run_each(x, (const uint8_t *)m->p[Y] + at, p->dtype[Y], scale, zero, n);
}

/* n elements as f32: in place, or converted into buffer. */
static const float *load(const problem *p, const memory *m, float *buffer, int64_t at, int64_t n)
{
  if (p->dtype[X] == QN_F32) return (const float *)(const void *)m->p[X] + at;
  row_to_f32(buffer, m->p[X] + at * qn_kit_bytes(p->dtype[X]), p->dtype[X], n);
  return buffer;
}

/* Processes n elements from `at` on as runs of at most SPAN. */
static void spread(const problem *p, const memory *m, int64_t at, int64_t n)
{
  const int64_t row = p->levels ? p->level[0].dim : p->elements, block = p->levels ? p->level[0].block : p->elements;
  const bool each = block == 1;
  float buffer[SPAN];
  const float *x = p->back ? NULL : load(p, m, buffer, at, n);
  float *to = p->dtype[X] == QN_F32 ? (float *)(void *)m->p[X] + at : buffer;
  for (int64_t done = 0; done < n; ) {    /* a row of the innermost level, or its rest */
    int64_t in_row = (at + done) % row, outer = (at + done) / row, from = 0;
    for (int32_t l = 1; l < p->levels; l++) {
      from += outer % p->level[l].dim / p->level[l].block * p->level[l].stride;
      outer /= p->level[l].dim;
    }
    const int64_t end = qn_min_i64(n, done + row - in_row);
    while (done < end) {
      const int64_t run = each ? end - done : qn_min_i64(end - done, block - in_row % block);
      const int64_t scale = from + (p->levels ? (each ? in_row : in_row / block * p->level[0].stride) : 0);
      if (p->back && each) dequantize_run_each(p, m, to + done, at + done, scale, run);
      else if (p->back) dequantize_run(p, m, to + done, at + done, scale, run);
      else if (each) quantize_run_each(p, m, x + done, at + done, scale, run);
      else quantize_run(p, m, x + done, at + done, scale, run);
      done += run;
      in_row += run;
    }
  }
  if (p->back && to == buffer) row_from_f32(m->p[X] + at * qn_kit_bytes(p->dtype[X]), buffer, p->dtype[X], n);
}

/* ---- blocks of neighbours ------------------------------------------------------------------------------------------ */

static int32_t span_extreme(const problem *p, const memory *m, int32_t most, int64_t at, int64_t n)
{
  float buffer[SPAN];
  return largest(load(p, m, buffer, at, n), most, n);
}

/* From a block's largest magnitude: stores amax and its scale; returns the scale, computed or given. */
static float finish_block(const problem *p, const memory *m, int64_t b, int32_t most)
{
  const float amax = qn_f32_of_bits((uint32_t)most), top = p->dtype[Y] == QN_E4M3 ? 448 : p->dtype[Y] == QN_E5M2 ? 57344 : 127;
  const int32_t emax = p->dtype[Y] == QN_E4M3 ? 8 : p->dtype[Y] == QN_E5M2 ? 15 : 6, exponent = most >> 23;
  if (m->p[AMAX]) ((float *)(void *)m->p[AMAX])[b] = amax;
  if (!p->dynamic) return scale_at(p, m, b);
  if (p->dtype[SCALE] == QN_E8M0) {
    const uint8_t power = (uint8_t)(exponent == 255 ? 255 : exponent < emax ? 0 : exponent - emax);
    ((uint8_t *)m->p[SCALE])[b] = power;
    return qn_e8m0_to_f32(power);
  }
  const float scale = amax / top == 0 ? 1 : amax / top;
  ((float *)(void *)m->p[SCALE])[b] = scale;
  return scale;
}

static void long_block(const problem *p, const memory *m, int64_t b)
{
  const int64_t first = b * p->block;
  float buffer[SPAN];
  int32_t most = 0;
  for (int64_t i = 0; i < p->block; i += SPAN) most = span_extreme(p, m, most, first + i, qn_min_i64(SPAN, p->block - i));
  finish_block(p, m, b, most);
  for (int64_t i = 0; i < p->block; i += SPAN) {
    const int64_t n = qn_min_i64(SPAN, p->block - i);
    quantize_run(p, m, load(p, m, buffer, first + i, n), first + i, b, n);
  }
}

static void short_blocks(const problem *p, const memory *m, int64_t b, int64_t n)
{
  float buffer[SPAN];
  const float *x = load(p, m, buffer, b * p->block, n * p->block);
  for (int64_t end = b + n; b < end; b++, x += p->block) {
    const float scale = finish_block(p, m, b, largest(x, 0, p->block));
    narrow_run((uint8_t *)m->p[Y] + b * p->block, x, p->dtype[Y], scale, zero_at(p, m, b), p->block);
  }
}

static void few_blocks(const problem *p, const memory *m, int threads)
{
  for (int64_t b = 0; b < p->elements / p->block; b++) {
    const int64_t first = b * p->block, spans = qn_ceil_div(p->block, SPAN);
    int32_t most = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max: most) if (threads > 1)
    for (int64_t s = 0; s < spans; s++) most = span_extreme(p, m, most, first + s * SPAN, qn_min_i64(SPAN, p->block - s * SPAN));
    finish_block(p, m, b, most);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t s = 0; s < spans; s++) {
      const int64_t n = qn_min_i64(SPAN, p->block - s * SPAN);
      float buffer[SPAN];
      quantize_run(p, m, load(p, m, buffer, first + s * SPAN, n), first + s * SPAN, b, n);
    }
  }
}

CPU_RUNS(cpu_quantize_runs_run);
qn_status CPU_NAME(cpu_quantize_runs_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  const int threads = cpu_threads(launch, p->elements);
  memory m;
  for (int t = 0; t < WALKED; t++) m.p[t] = p->value[t] < 0 ? NULL : launch->ptr[p->value[t]];
  const int64_t blocks = p->elements / p->block, together = qn_max_i64(1, SPAN / p->block);
  if (p->extremes && blocks < 4 * threads && p->block > SPAN) few_blocks(p, &m, threads);
  else if (p->extremes) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t b = 0; b < blocks; b += together) {
      if (p->block > SPAN) long_block(p, &m, b);
      else short_blocks(p, &m, b, qn_min_i64(together, blocks - b));
    }
  } else {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t at = 0; at < p->elements; at += SPAN) spread(p, &m, at, qn_min_i64(SPAN, p->elements - at));
  }
  return QN_OK;
}

/* ---- prepare ------------------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  static const char *const names[] = { "x", "y", "scale", "zero_point", "amax" };
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  problem p = { .back = op->op == QN_OP_DEQUANTIZE, .dynamic = op->op == QN_OP_QUANTIZE_DYNAMIC };
  p.value[p.back ? Y : X] = qn_role(op, 0);
  p.value[p.back ? X : Y] = qn_role(op, p.back ? QN_ROLE_DEQUANTIZE_Y : p.dynamic ? QN_ROLE_QUANTIZE_DYNAMIC_Y : QN_ROLE_QUANTIZE_Y);
  p.value[SCALE] = qn_role(op, p.dynamic ? QN_ROLE_QUANTIZE_DYNAMIC_SCALE : QN_ROLE_QUANTIZE_SCALE);
  p.value[ZERO] = p.dynamic ? -1 : qn_role(op, QN_ROLE_QUANTIZE_ZERO_POINT);
  p.value[AMAX] = p.back ? -1 : qn_role(op, p.dynamic ? QN_ROLE_QUANTIZE_DYNAMIC_AMAX : QN_ROLE_QUANTIZE_AMAX);
  for (int t = 0; t < WALKED; t++) {
    const qn_value *v = p.value[t] < 0 ? NULL : &request->value[p.value[t]];
    const char *name = p.back && t <= Y ? names[Y - t] : names[t];
    if (!v) continue;
    p.dtype[t] = v->dtype;
    if (v->dtype == QN_F64 || v->dtype == QN_I32)
      return qn_refuse(prepared, "computes in f32", name, "f32, f16, bf16", "%s", qn_kit_name(v->dtype));
    if (!qn_is_packed(v))
      return qn_refuse(prepared, "elements are counted in memory order", name, "packed, the last dim fastest", "%s", "other strides");
  }
  if (p.dynamic && qn_role(op, QN_ROLE_QUANTIZE_DYNAMIC_ZERO_POINT) >= 0)
    return qn_refuse(prepared, "scales by magnitudes", "zero_point", "absent", "%s", "given");
  const qn_value *x = &request->value[p.value[X]];
  p.elements = p.block = qn_elements(x);
  p.extremes = p.dynamic || p.value[AMAX] >= 0;
  p.levels = qn_block_levels(x, &request->value[p.value[SCALE]], ((const qn_blocks *)op->attr)->block, p.level);
  const qn_block_level *l = p.level;
  if (!p.elements) return qn_refuse(prepared, "has nothing to walk over", "x", "elements", "none");
  if (p.levels && l[0].block == 1 && !p.extremes && l[0].stride != 1)
    return qn_refuse(prepared, "scales of neighbours must be neighbours", "scale", "stride 1", "%lld", (long long)l[0].stride);
  if (p.levels && p.extremes) {
    if (p.levels > 1 || l[0].dim % l[0].block || l[0].stride != 1)
      return qn_refuse(prepared, "the elements of a block must be neighbours", "block", "blocks of whole rows, or of equal parts of rows",
                       "%s", "others");
    p.block = l[0].block;
  }
  return cpu_keep(prepared, &p, sizeof p);
}

#define ROW(name_, run_, anchor)                                                                                 \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
    .prepare = prepare, .run = run_, .release = cpu_release }
#define ROWS(name, run) ROW(name, run, QN_OP_QUANTIZE), ROW(name, run, QN_OP_DEQUANTIZE), ROW(name, run, QN_OP_QUANTIZE_DYNAMIC),
static const qn_engine row[] = { CPU_COPIES(ROWS, "runs", cpu_quantize_runs_run) };
const qn_engine_list cpu_quantize_runs = { row, sizeof row / sizeof *row };
#endif
