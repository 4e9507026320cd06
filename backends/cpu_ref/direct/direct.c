/* direct.c -- what the direct engines share: prepare, which takes the first op, whatever it is, and keeps a copy of its description;
 * sums of products. What is computed for several elements at once gives the same bits whatever the processor's vectors are. */
#include <config.h>
#include "direct.h"

qn_status cpu_direct_prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  const int32_t n = op->first[op->n_roles];
  const size_t attr_bytes = op->attr ? (size_t)*(const uint64_t *)op->attr : 0;   /* attribute structs begin with their size */
  const size_t value_bytes = (size_t)n * sizeof(qn_value), number_bytes = ((size_t)n * sizeof(int32_t) + 7) / 8 * 8;
  unsigned char *memory = cpu_state(p, sizeof(cpu_kept) + value_bytes + number_bytes + attr_bytes);
  if (!memory) return QN_NO_MEMORY;

  cpu_kept *kept = (cpu_kept *)memory;
  qn_value *value = (qn_value *)(memory + sizeof(cpu_kept));
  int32_t *number = (int32_t *)(memory + sizeof(cpu_kept) + value_bytes);
  kept->op = op->op;
  kept->n_roles = (int32_t)op->n_roles;
  kept->value = value;
  kept->number = number;
  memcpy(kept->first, op->first, (op->n_roles + 1) * sizeof *op->first);
  for (int32_t i = 0; i < n; i++) {
    value[i] = request->value[op->arg[i]];
    number[i] = op->arg[i];
  }
  if (attr_bytes) kept->attr = memcpy(memory + sizeof(cpu_kept) + value_bytes + number_bytes, op->attr, attr_bytes);

  p->numerics.accumulator = QN_ACC_DOUBLE;
  return QN_OK;
}

/* ---- elements as doubles ----------------------------------------------------------------------------------- */

enum { LANES = 4 };
typedef double   lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef uint64_t bits __attribute__((vector_size(LANES * sizeof(double))));
typedef float    floats __attribute__((vector_size(LANES * sizeof(float))));
typedef uint32_t words __attribute__((vector_size(LANES * sizeof(uint32_t))));
typedef int32_t  ints __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef uint16_t halves __attribute__((vector_size(LANES * sizeof(uint16_t))));

/* Loops on `lanes`, compiled also for processors whose vectors hold all four. */
#define LOOPS static inline __attribute__((always_inline)) void
#ifdef QN_AVX2
#define WIDE __attribute__((target("avx2"))) static void
#define IF_WIDE(call) if (__builtin_cpu_supports("avx2")) { call; return; }
#endif

/* As qn_f16_to_f32. */
static inline __attribute__((always_inline)) void floats_of_f16(floats *to, const halves *from)
{
  const words h = __builtin_convertvector(*from, words), sign = (h & 0x8000) << 16, magnitude = h & 0x7fff;
  const words special = (words)(magnitude >= 0x7c00) & (112u << 23), tiny = (words)(magnitude < 0x0400);
  const floats least = __builtin_convertvector((ints)magnitude, floats) * 5.9604644775390625e-8f;
  const words normal = (magnitude << 13) + (112u << 23) + special;
  *to = (floats)(sign | (tiny & (words)least) | (~tiny & normal));
}

LOOPS widen(double *to, int64_t n, const unsigned char *from, uint32_t dtype)
{
  const int64_t side = n / LANES * LANES;
  for (int64_t i = 0; i < side; i += LANES) {
    floats f;
    halves h;
    if (dtype == QN_F32) memcpy(&f, from + 4 * i, sizeof f);
    else memcpy(&h, from + 2 * i, sizeof h);
    if (dtype == QN_F16) floats_of_f16(&f, &h);
    if (dtype == QN_BF16) f = (floats)(__builtin_convertvector(h, words) << 16);
    const lanes d = __builtin_convertvector(f, lanes);
    memcpy(to + i, &d, sizeof d);
  }
  for (int64_t i = side; i < n; i++) to[i] = qn_load_f64(from + i * qn_kit_bytes(dtype), dtype);
}

LOOPS widen_each(double *to, int64_t n, const unsigned char *from, uint32_t dtype)
{
  switch (dtype) {
  case QN_F64:  memcpy(to, from, (size_t)n * sizeof *to); break;
  case QN_F32:  widen(to, n, from, QN_F32); break;
  case QN_F16:  widen(to, n, from, QN_F16); break;
  case QN_BF16: widen(to, n, from, QN_BF16); break;
  default:      for (int64_t i = 0, bytes = qn_kit_bytes(dtype); i < n; i++) to[i] = qn_load_f64(from + i * bytes, dtype);
  }
}

#ifdef QN_AVX2
WIDE widen_wide(double *to, int64_t n, const unsigned char *from, uint32_t dtype) { widen_each(to, n, from, dtype); }
#endif
void cpu_widen(double *to, int64_t n, const void *from, uint32_t dtype)
{
#ifdef QN_AVX2
  IF_WIDE(widen_wide(to, n, from, dtype))
#endif
  widen_each(to, n, from, dtype);
}

void cpu_load_run(double *to, int64_t n, const unsigned char *from, int64_t step, uint32_t dtype)
{
  enum { FEW = 64 };
  unsigned char raw[FEW * 8];
  const int64_t bytes = qn_kit_bytes(dtype);
  if (step == bytes) {
    cpu_widen(to, n, from, dtype);
    return;
  }
  for (int64_t few; n > 0; n -= few, to += few, from += few * step) {
    few = qn_min_i64(n, FEW);
    switch (bytes) {
    case 8:  for (int64_t i = 0; i < few; i++) memcpy(raw + 8 * i, from + i * step, 8); break;
    case 4:  for (int64_t i = 0; i < few; i++) memcpy(raw + 4 * i, from + i * step, 4); break;
    case 2:  for (int64_t i = 0; i < few; i++) memcpy(raw + 2 * i, from + i * step, 2); break;
    default: for (int64_t i = 0; i < few; i++) raw[i] = from[i * step];
    }
    cpu_widen(to, few, raw, dtype);
  }
}

/* ---- sums of products ------------------------------------------------------------------------------------ */

/* x = high + low, of 26 digits each (Dekker). Not for |x| beyond 2^996. */
static inline __attribute__((always_inline)) void split(const lanes *x, lanes *high, lanes *low)
{
  const lanes c = 134217729.0 * *x;
  *high = c - (c - *x);
  *low = *x - *high;
}

LOOPS sum_run(cpu_sum *s, int64_t n, const double *x, const double *y)
{
  const int64_t side = n / LANES * LANES;
  lanes high = { 0 }, low = { 0 };
  bits digits = { 0 };
  for (int64_t i = 0; i < side; i += LANES) {
    lanes a, b;
    memcpy(&a, x + i, sizeof a);
    memcpy(&b, y + i, sizeof b);
    const lanes product = a * b, sum = high + product, part = sum - high;
    low += (high - (sum - part)) + (product - part);
    high = sum;
    digits |= (bits)a | (bits)b;
  }
  uint64_t all = 0;
  for (int i = 0; i < LANES; i++) all |= digits[i];
  for (int64_t i = 0; i < side && all & 0x7ffffff; i += LANES) {        /* of more than 26 digits: what the products lost */
    lanes a, b, a_high, a_low, b_high, b_low;
    memcpy(&a, x + i, sizeof a);
    memcpy(&b, y + i, sizeof b);
    split(&a, &a_high, &a_low);
    split(&b, &b_high, &b_low);
    low += ((a_high * b_high - a * b) + a_high * b_low + a_low * b_high) + a_low * b_low;
  }
  int finite = 1;
  for (int i = 0; i < LANES; i++) finite &= isfinite(high[i]) && isfinite(low[i]);
  for (int i = 0; i < LANES && finite; i++) {
    cpu_sum_add(s, high[i]);
    s->low += low[i];
  }
  for (int64_t i = finite ? side : 0; i < n; i++) cpu_sum_add_product(s, x[i], y[i]);
}

#ifdef QN_AVX2
WIDE sum_run_wide(cpu_sum *s, int64_t n, const double *x, const double *y) { sum_run(s, n, x, y); }
#endif
void cpu_sum_run(cpu_sum *s, int64_t n, const double *x, const double *y)
{
#ifdef QN_AVX2
  IF_WIDE(sum_run_wide(s, n, x, y))
#endif
  sum_run(s, n, x, y);
}

/* ---- sums of columns ----------------------------------------------------------------------------------------- */

static void column_add(cpu_columns *s, int64_t c, double weight, double x)
{
  cpu_sum sum = cpu_column(s, c);
  cpu_sum_add_product(&sum, weight, x);
  s->high[c] = sum.high;
  s->low[c] = sum.low;
  s->wide[c] = sum.wide;
}

LOOPS columns_add(cpu_columns *s, int64_t n, double weight, const double *x)
{
  const int64_t side = n / LANES * LANES;
  const double most = 134217729.0 * weight, upper = most - (most - weight), lower = weight - upper;
  bits digits = { 0 };
  lanes none = { 0 };                   /* NaN if a sum is not finite */
  for (int64_t c = 0; c < side; c += LANES) {
    lanes a, high;
    memcpy(&a, x + c, sizeof a);
    memcpy(&high, s->high + c, sizeof high);
    const lanes sum = high + weight * a;
    digits |= (bits)a;
    none += sum - sum;
  }
  uint64_t all = 0;
  double plain = 0;
  for (int i = 0; i < LANES; i++) all |= digits[i], plain += none[i];
  /* columns of at most 26 digits: their products with either half of the weight are exact, which tells what the whole loses */
  const int together = !(all & 0x7ffffff) && fabs(weight) < 0x1p900 && plain == 0;
  for (int64_t c = 0; c < side && together; c += LANES) {
    lanes a, high, low;
    memcpy(&a, x + c, sizeof a);
    memcpy(&high, s->high + c, sizeof high);
    memcpy(&low, s->low + c, sizeof low);
    const lanes product = weight * a, sum = high + product, part = sum - high;
    low += (high - (sum - part)) + (product - part);
    low += (upper * a - product) + lower * a;
    memcpy(s->high + c, &sum, sizeof sum);
    memcpy(s->low + c, &low, sizeof low);
  }
  for (int64_t c = together ? side : 0; c < n; c++) column_add(s, c, weight, x[c]);
}

#ifdef QN_AVX2
WIDE columns_add_wide(cpu_columns *s, int64_t n, double weight, const double *x) { columns_add(s, n, weight, x); }
#endif
void cpu_columns_add(cpu_columns *s, int64_t n, double weight, const double *x)
{
#ifdef QN_AVX2
  IF_WIDE(columns_add_wide(s, n, weight, x))
#endif
  columns_add(s, n, weight, x);
}
