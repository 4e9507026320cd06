/* pointwise_whole.c -- the pointwise functions in f64, i32 (also for i8, u8 and bool) and i64, a row at a time.
 *
 * In f64 only what is a machine instruction: functions that need libm are left to the direct engine, which is as fast.
 * Integers wrap: by unsigned arithmetic, and if narrower than the computing type by truncation. */
#include "kit/pointwise_tile.h"
#include "kit/simd.h"

typedef struct rows { void *y; const void *a, *b; const int32_t *c; int64_t n; } rows;

/* ---- f64 ------------------------------------------------------------------------------------------ */

CPU_INLINE double d_add(double x, double y) { return x + y; }
CPU_INLINE double d_sub(double x, double y) { return x - y; }
CPU_INLINE double d_mul(double x, double y) { return x * y; }
CPU_INLINE double d_div(double x, double y) { return x / y; }
CPU_INLINE double d_min(double x, double y) { const double m = y < x ? y : x; return y != y ? y : m; }
CPU_INLINE double d_max(double x, double y) { const double m = y > x ? y : x; return y != y ? y : m; }
CPU_INLINE double d_neg(double x, double y)        { (void)y; return -x; }
CPU_INLINE double d_abs(double x, double y)        { (void)y; return fabs(x); }
CPU_INLINE double d_sign(double x, double y)       { (void)y; const double m = x > 0 ? 1 : x; return x < 0 ? -1 : m; }
CPU_INLINE double d_sqrt(double x, double y)       { (void)y; return __builtin_sqrt(x); }
CPU_INLINE double d_reciprocal(double x, double y) { (void)y; return 1 / x; }
CPU_INLINE double d_floor(double x, double y)      { (void)y; return __builtin_floor(x); }
CPU_INLINE double d_ceil(double x, double y)       { (void)y; return __builtin_ceil(x); }
CPU_INLINE double d_round(double x, double y)      { (void)y; return __builtin_rint(x); }
CPU_INLINE double d_trunc(double x, double y)      { (void)y; return __builtin_trunc(x); }
CPU_INLINE double d_relu(double x, double y)       { (void)y; return x < 0 ? 0 : x; }
CPU_INLINE double d_relu_backward(double dy, double x) { return x > 0 ? dy : 0; }

CPU_INLINE int32_t d_eq(double x, double y) { return x == y; }
CPU_INLINE int32_t d_ne(double x, double y) { return x != y; }
CPU_INLINE int32_t d_lt(double x, double y) { return x < y; }
CPU_INLINE int32_t d_le(double x, double y) { return x <= y; }
CPU_INLINE int32_t d_gt(double x, double y) { return x > y; }
CPU_INLINE int32_t d_ge(double x, double y) { return x >= y; }

/* ---- i64, and i32, whose operands and results i64 holds ---------------------------------------------- */

CPU_INLINE int64_t l_add(int64_t x, int64_t y) { return (int64_t)((uint64_t)x + (uint64_t)y); }
CPU_INLINE int64_t l_sub(int64_t x, int64_t y) { return (int64_t)((uint64_t)x - (uint64_t)y); }
CPU_INLINE int64_t l_mul(int64_t x, int64_t y) { return (int64_t)((uint64_t)x * (uint64_t)y); }
CPU_INLINE int64_t l_min(int64_t x, int64_t y) { return y < x ? y : x; }
CPU_INLINE int64_t l_max(int64_t x, int64_t y) { return y > x ? y : x; }
CPU_INLINE int64_t l_neg(int64_t x, int64_t y) { (void)y; return (int64_t)(0 - (uint64_t)x); }
CPU_INLINE int64_t l_abs(int64_t x, int64_t y) { return x < 0 ? l_neg(x, y) : x; }
CPU_INLINE int64_t l_sign(int64_t x, int64_t y) { (void)y; return (x > 0) - (x < 0); }

CPU_INLINE int32_t i_add(int32_t x, int32_t y) { return (int32_t)((uint32_t)x + (uint32_t)y); }
CPU_INLINE int32_t i_sub(int32_t x, int32_t y) { return (int32_t)((uint32_t)x - (uint32_t)y); }
CPU_INLINE int32_t i_mul(int32_t x, int32_t y) { return (int32_t)((uint32_t)x * (uint32_t)y); }
CPU_INLINE int32_t i_min(int32_t x, int32_t y) { return y < x ? y : x; }
CPU_INLINE int32_t i_max(int32_t x, int32_t y) { return y > x ? y : x; }
CPU_INLINE int32_t i_neg(int32_t x, int32_t y) { (void)y; return (int32_t)(0 - (uint32_t)x); }
CPU_INLINE int32_t i_abs(int32_t x, int32_t y) { return x < 0 ? i_neg(x, y) : x; }
CPU_INLINE int32_t i_sign(int32_t x, int32_t y) { (void)y; return (x > 0) - (x < 0); }
CPU_INLINE int32_t i_and(int32_t x, int32_t y) { return x & y; }          /* bool is 0 or 1 here */
CPU_INLINE int32_t i_or(int32_t x, int32_t y)  { return x | y; }
CPU_INLINE int32_t i_not(int32_t x, int32_t y) { (void)y; return x ^ 1; }

CPU_INLINE int32_t i_eq(int32_t x, int32_t y) { return x == y; }
CPU_INLINE int32_t i_ne(int32_t x, int32_t y) { return x != y; }
CPU_INLINE int32_t i_lt(int32_t x, int32_t y) { return x < y; }
CPU_INLINE int32_t i_le(int32_t x, int32_t y) { return x <= y; }
CPU_INLINE int32_t i_gt(int32_t x, int32_t y) { return x > y; }
CPU_INLINE int32_t i_ge(int32_t x, int32_t y) { return x >= y; }
CPU_INLINE int32_t l_eq(int64_t x, int64_t y) { return x == y; }
CPU_INLINE int32_t l_ne(int64_t x, int64_t y) { return x != y; }
CPU_INLINE int32_t l_lt(int64_t x, int64_t y) { return x < y; }
CPU_INLINE int32_t l_le(int64_t x, int64_t y) { return x <= y; }
CPU_INLINE int32_t l_gt(int64_t x, int64_t y) { return x > y; }
CPU_INLINE int32_t l_ge(int64_t x, int64_t y) { return x >= y; }

/* ---- loops: of one operand, b is a --------------------------------------------------------------------- */

CPU_INLINE bool loop_f64(rows r, double (*f)(double, double))
{
  double *y = r.y;
  const double *a = r.a, *b = r.b;
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) y[i] = f(a[i], b[i]);
  return true;
}

CPU_INLINE bool loop_i32(rows r, int32_t (*f)(int32_t, int32_t))
{
  int32_t *y = r.y;
  const int32_t *a = r.a, *b = r.b;
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) y[i] = f(a[i], b[i]);
  return true;
}

CPU_INLINE bool loop_i64(rows r, int64_t (*f)(int64_t, int64_t))
{
  int64_t *y = r.y;
  const int64_t *a = r.a, *b = r.b;
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) y[i] = f(a[i], b[i]);
  return true;
}

CPU_INLINE bool compare_f64(rows r, int32_t (*f)(double, double))
{
  int32_t *y = r.y;
  const double *a = r.a, *b = r.b;
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) y[i] = f(a[i], b[i]);
  return true;
}

CPU_INLINE bool compare_i64(rows r, int32_t (*f)(int64_t, int64_t))
{
  int32_t *y = r.y;
  const int64_t *a = r.a, *b = r.b;
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) y[i] = f(a[i], b[i]);
  return true;
}

/* By bits, of any type. */
static bool choose_4(rows r)
{
  int32_t *y = r.y;
  const int32_t *a = r.a, *b = r.b;
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) y[i] = r.c[i] ? a[i] : b[i];
  return true;
}

static bool choose_8(rows r)
{
  int64_t *y = r.y;
  const int64_t *a = r.a, *b = r.b;
#pragma omp simd
  for (int64_t i = 0; i < r.n; i++) y[i] = r.c[i] ? a[i] : b[i];
  return true;
}

/* ---- casts and wrapping ------------------------------------------------------------------------------------------- */

/* Converts elements from another computing type, as cast to dtype does. Rare enough to go one by one. */
static bool cast(rows r, const cpu_instruction *code)
{
  for (int64_t i = 0; i < r.n; i++) {
    double d = 0;
    int64_t l = 0;
    if (code->type == CPU_F64) d = ((const double *)r.a)[i];
    else l = code->type == CPU_I32 ? ((const int32_t *)r.a)[i] : ((const int64_t *)r.a)[i];
    const double x = code->type == CPU_F64 ? d : qn_f64_sticky_from_i64(l);

    if (code->out_type == CPU_F32) {
      float f = code->type == CPU_F64 ? (float)d : (float)l;
      if (code->dtype != QN_F32) {
        unsigned char narrow[8];
        qn_store_f64(narrow, code->dtype, x);
        f = (float)qn_load_f64(narrow, code->dtype);
      }
      ((float *)r.y)[i] = f;
    } else if (code->out_type == CPU_F64) {
      ((double *)r.y)[i] = code->type == CPU_F64 ? d : (double)l;
    } else {
      int64_t v = code->type == CPU_F64 ? qn_i64_from_f64(d) : l;
      if (code->dtype == QN_BOOL) v = code->type == CPU_F64 ? d != 0 : l != 0;
      v = qn_min_i64(qn_max_i64(v, qn_least(code->dtype)), qn_largest(code->dtype));
      if (code->out_type == CPU_I64) ((int64_t *)r.y)[i] = v;
      else ((int32_t *)r.y)[i] = (int32_t)v;
    }
  }
  return true;
}

static void wrap(int32_t *y, uint32_t dtype, int64_t n)
{
  if (dtype == QN_I8)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = ((y[i] & 0xff) ^ 0x80) - 0x80;
  if (dtype == QN_U8)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] &= 0xff;
}

/* ---- functions.def: integers, one at a time ---------------------------------------------------------------------- */

static int64_t listed(uint32_t op, int64_t a, int64_t b)
{
  switch (op) {
#define QN_INTEGER(OP, expression) case QN_OP_##OP: return expression;
#include <quern/functions.def>
  default: return 0;
  }
}

static bool each(rows r, const cpu_instruction *code)
{
  if (!cpu_is_listed_integer(code->op)) return false;
  if (code->type == CPU_I32)
    for (int64_t i = 0; i < r.n; i++)
      ((int32_t *)r.y)[i] = (int32_t)listed(code->op, ((const int32_t *)r.a)[i], ((const int32_t *)r.b)[i]);
  else
    for (int64_t i = 0; i < r.n; i++)
      ((int64_t *)r.y)[i] = listed(code->op, ((const int64_t *)r.a)[i], ((const int64_t *)r.b)[i]);
  return true;
}

/* ---- the tables: a line for each op -------------------------------------------------------------------------- */

static bool eval_f64(rows w, const cpu_instruction *code)
{
  switch (code->op) {
  case QN_OP_ADD:           return loop_f64(w, d_add);
  case QN_OP_SUB:           return loop_f64(w, d_sub);
  case QN_OP_MUL:           return loop_f64(w, d_mul);
  case QN_OP_DIV:           return loop_f64(w, d_div);
  case QN_OP_MIN:           return loop_f64(w, d_min);
  case QN_OP_MAX:           return loop_f64(w, d_max);
  case QN_OP_EQ:            return compare_f64(w, d_eq);
  case QN_OP_NE:            return compare_f64(w, d_ne);
  case QN_OP_LT:            return compare_f64(w, d_lt);
  case QN_OP_LE:            return compare_f64(w, d_le);
  case QN_OP_GT:            return compare_f64(w, d_gt);
  case QN_OP_GE:            return compare_f64(w, d_ge);
  case QN_OP_SELECT:        return choose_8(w);
  case QN_OP_CAST:          return cast(w, code);
  case QN_OP_NEG:           return loop_f64(w, d_neg);
  case QN_OP_ABS:           return loop_f64(w, d_abs);
  case QN_OP_SIGN:          return loop_f64(w, d_sign);
  case QN_OP_SQRT:          return loop_f64(w, d_sqrt);
  case QN_OP_RECIPROCAL:    return loop_f64(w, d_reciprocal);
  case QN_OP_FLOOR:         return loop_f64(w, d_floor);
  case QN_OP_CEIL:          return loop_f64(w, d_ceil);
  case QN_OP_ROUND:         return loop_f64(w, d_round);
  case QN_OP_TRUNC:         return loop_f64(w, d_trunc);
  case QN_OP_RELU:          return loop_f64(w, d_relu);
  case QN_OP_RELU_BACKWARD: return loop_f64(w, d_relu_backward);
  default:                  return false;
  }
}

static bool eval_i32(rows w, const cpu_instruction *code)
{
  switch (code->op) {
  case QN_OP_ADD:         return loop_i32(w, i_add);
  case QN_OP_SUB:         return loop_i32(w, i_sub);
  case QN_OP_MUL:         return loop_i32(w, i_mul);
  case QN_OP_MIN:         return loop_i32(w, i_min);
  case QN_OP_MAX:         return loop_i32(w, i_max);
  case QN_OP_EQ:          return loop_i32(w, i_eq);
  case QN_OP_NE:          return loop_i32(w, i_ne);
  case QN_OP_LT:          return loop_i32(w, i_lt);
  case QN_OP_LE:          return loop_i32(w, i_le);
  case QN_OP_GT:          return loop_i32(w, i_gt);
  case QN_OP_GE:          return loop_i32(w, i_ge);
  case QN_OP_LOGICAL_AND: return loop_i32(w, i_and);
  case QN_OP_LOGICAL_OR:  return loop_i32(w, i_or);
  case QN_OP_LOGICAL_NOT: return loop_i32(w, i_not);
  case QN_OP_SELECT:      return choose_4(w);
  case QN_OP_CAST:        return cast(w, code);
  case QN_OP_NEG:         return loop_i32(w, i_neg);
  case QN_OP_ABS:         return loop_i32(w, i_abs);
  case QN_OP_SIGN:        return loop_i32(w, i_sign);
  default:                return each(w, code);
  }
}

static bool eval_i64(rows w, const cpu_instruction *code)
{
  switch (code->op) {
  case QN_OP_ADD:    return loop_i64(w, l_add);
  case QN_OP_SUB:    return loop_i64(w, l_sub);
  case QN_OP_MUL:    return loop_i64(w, l_mul);
  case QN_OP_MIN:    return loop_i64(w, l_min);
  case QN_OP_MAX:    return loop_i64(w, l_max);
  case QN_OP_EQ:     return compare_i64(w, l_eq);
  case QN_OP_NE:     return compare_i64(w, l_ne);
  case QN_OP_LT:     return compare_i64(w, l_lt);
  case QN_OP_LE:     return compare_i64(w, l_le);
  case QN_OP_GT:     return compare_i64(w, l_gt);
  case QN_OP_GE:     return compare_i64(w, l_ge);
  case QN_OP_SELECT: return choose_8(w);
  case QN_OP_CAST:   return cast(w, code);
  case QN_OP_NEG:    return loop_i64(w, l_neg);
  case QN_OP_ABS:    return loop_i64(w, l_abs);
  case QN_OP_SIGN:   return loop_i64(w, l_sign);
  default:           return each(w, code);
  }
}

bool CPU_NAME(cpu_eval_plain)(const cpu_instruction *code, void *const *r, void *y, int64_t n)
{
  rows w = { .y = y, .n = n };
  if (n) {
    const int first = code->op == QN_OP_SELECT;
    if (first) w.c = r[code->in[0]];
    w.a = r[code->in[first]];
    w.b = code->in[first + 1] >= 0 ? r[code->in[first + 1]] : w.a;
  }
  if (code->type == CPU_F64) return eval_f64(w, code);
  if (code->type == CPU_I64) return eval_i64(w, code);
  if (!eval_i32(w, code)) return false;
  if (code->op != QN_OP_CAST) wrap(w.y, code->dtype, n);
  return true;
}
