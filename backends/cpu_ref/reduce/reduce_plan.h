/* reduce_plan.h -- shared by the two reducing engines: which dims are kept and which reduced, the division of work, partial results.
 *
 * Each output is accumulated from parts of about PART elements, in order, and each part the same way whichever thread does it; if
 * outputs are few, one output's parts are shared among threads and kept in workspace. So the number of threads changes nothing.
 *
 *   sum, mean, norm1     f32 lanes over a stretch, stretches added in double          norm2   likewise, of squares
 *   prod                 in double                                                    the others   compare keys, below
 *
 * f64 uses double throughout, except norm2 and prod, which could leave its range; a mean whose sum left it is made again, of x times 2^-64.
 * Integers are summed modulo 2^64. */
#ifndef CPU_REDUCE_PLAN_H
#define CPU_REDUCE_PLAN_H
#include "kit/convert.h"
#include "cpu_ref.h"

enum { PART = 65536 };

/* max, min, amax and arg... find the largest key (arg...: its first index): x, x negated (integers: ~x), or x without sign. */
typedef struct key { int32_t and, xor; } key;
typedef struct key64 { int64_t and, xor; } key64;
enum { IN_F32, IN_F64, IN_I64 };          /* the type that x is widened to */

typedef struct reduction {
  uint32_t op, x_dtype, y_dtype;
  int      in;
  int32_t  x, y;                          /* values of the request */
  int64_t  x_bytes, y_bytes;
  key      key;
  key64    key64;
  qn_nest  kept, gone;                    /* kept dims: tensors y, x; reduced dims: x, in the order of the index */
  int64_t  outputs, count;                /* count: elements per output */
  int64_t  part, parts;                   /* rows of `gone` per part, and number of parts */
  bool     shared;                        /* parts of one output go to several threads */
  double   by;                            /* what elements of f64 are multiplied by before they are added */
} reduction;

/* A partial result. Sums and products: `total`; others: `best`, the largest key, and its index. Integers: `whole` in both cases. */
typedef struct partial { double total, best; uint64_t whole; int64_t where; } partial;

static inline bool is_arg(uint32_t op) { return op == QN_OP_ARGMAX || op == QN_OP_ARGMIN; }
static inline bool is_extreme(uint32_t op)
{
  return is_arg(op) || op == QN_OP_REDUCE_MAX || op == QN_OP_REDUCE_MIN || op == QN_OP_REDUCE_AMAX;
}

static inline partial partial_begin(const reduction *r)
{
  return (partial){ .total = r->op == QN_OP_REDUCE_PROD, .best = -INFINITY, .whole = r->op == QN_OP_REDUCE_PROD, .where = -1 };
}

static inline void partial_fold(const reduction *r, partial *into, const partial *p)
{
  if (is_extreme(r->op) && r->in == IN_I64) {
    if (p->where >= 0 && (into->where < 0 || (int64_t)p->whole > (int64_t)into->whole)) *into = *p;
    return;
  }
  if (r->op == QN_OP_REDUCE_PROD) into->total *= p->total, into->whole *= p->whole;
  else into->total += p->total, into->whole += p->whole;
  if (p->where >= 0 && (into->where < 0 || p->best > into->best || (p->best != p->best && into->best == into->best))) {
    into->best = p->best;
    into->where = p->where;
  }
}

static inline void partial_store(const reduction *r, const partial *p, char *y)
{
  double value = p->total;
  if (is_arg(r->op)) {
    qn_store_i64(y, r->y_dtype, p->where);
    return;
  }
  if (r->in == IN_I64) {
    const int64_t whole = (int64_t)(is_extreme(r->op) ? p->whole ^ (uint64_t)r->key64.xor : p->whole);
    qn_store_i64(y, r->y_dtype, qn_wrap(r->y_dtype, whole));
    return;
  }
  if (is_extreme(r->op)) value = r->key.xor ? -p->best : p->best;
  else if (r->op == QN_OP_REDUCE_MEAN) value = value / (double)r->count / r->by;
  else if (r->op == QN_OP_REDUCE_NORM2) value = sqrt(value);
  qn_store_f64(y, r->y_dtype, value);
}

/* Whether a mean is to be made again, by `small`. */
static inline bool is_lost(const reduction *r, const partial *p)
{
  return r->op == QN_OP_REDUCE_MEAN && r->in == IN_F64 && r->by == 1 && !isfinite(p->total);
}
static inline reduction small(const reduction *r)
{
  reduction small = *r;
  small.by = 0x1p-64;
  return small;
}

/* Whether the reduced dims are in memory order, which `where` requires. */
static inline bool falls(const qn_value *x, uint64_t mask)
{
  int64_t last = INT64_MAX;
  for (int32_t d = 0; d < x->rank; d++) {
    if (!(mask >> d & 1) || x->dim[d] == 1) continue;
    if (x->stride[d] > last) return false;
    last = x->stride[d];
  }
  return true;
}

/* n contiguous elements of x, widened: in place, or into buffer. */
static inline const void *widen(const reduction *r, const void *x, int64_t n, void *buffer)
{
  if (r->x_dtype == QN_F32 || r->x_dtype == QN_F64 || r->x_dtype == QN_I64) return x;
  if (r->in == IN_F32) row_to_f32(buffer, x, r->x_dtype, n);
  else row_to_i64(buffer, x, r->x_dtype, n);
  return buffer;
}

CPU_INLINE float f_key(float x, key k)
{
  return qn_f32_of_bits((qn_bits_of_f32(x) & (uint32_t)k.and) ^ (uint32_t)k.xor);
}
CPU_INLINE double d_key(double x, key64 k)
{
  return qn_f64_of_bits((qn_bits_of_f64(x) & (uint64_t)k.and) ^ (uint64_t)k.xor);
}

/* Splits x's dims. Refuses what neither engine can do. */
static inline qn_status reduction_of(const qn_request *request, qn_prepared *prepared, reduction *r)
{
  const qn_node *node = &request->op[0];
  const uint64_t named = ((const qn_axes *)node->attr)->mask, mask = named ? named : UINT64_MAX;
  const qn_value *x = &request->value[node->arg[0]], *y = &request->value[node->arg[1]];
  if (x->dtype == QN_F64 && (node->op == QN_OP_REDUCE_PROD || node->op == QN_OP_REDUCE_NORM2))
    return qn_refuse(prepared, "products need a wider range than x's", "x", "f32, f16, bf16, integers", "%s", "f64");
  if (((const qn_axes *)node->attr)->last)
    return qn_refuse(prepared, "finds the first of equals", "last", "0", "%s", "1");
  if (is_arg(node->op) && !falls(x, mask))
    return qn_refuse(prepared, "counts the reduced dims in the order of memory", "x", "falling strides", "%s", "");

  *r = (reduction){ .op = node->op, .x = node->arg[0], .y = node->arg[1], .x_dtype = x->dtype, .y_dtype = y->dtype,
                    .in = x->dtype == QN_F64 ? IN_F64 : qn_is_float(x->dtype) ? IN_F32 : IN_I64,
                    .x_bytes = qn_kit_bytes(x->dtype), .y_bytes = qn_kit_bytes(y->dtype), .by = 1 };
  r->key = (key){ -1, 0 }, r->key64 = (key64){ -1, 0 };
  if (r->op == QN_OP_REDUCE_AMAX || r->op == QN_OP_REDUCE_NORM1) r->key.and = INT32_MAX, r->key64.and = INT64_MAX;
  if (r->op == QN_OP_REDUCE_MIN || r->op == QN_OP_ARGMIN) r->key.xor = INT32_MIN, r->key64.xor = r->in == IN_I64 ? -1 : INT64_MIN;
  qn_value gone = *x, kept = *x, to = *y;
  for (int32_t d = 0; d < x->rank; d++) {
    if (mask >> d & 1) kept.dim[d] = to.dim[d] = 1;
    else gone.dim[d] = 1;
  }
  qn_nest_begin(&r->kept, &kept);         /* by x's strides: reading dominates */
  qn_nest_add(&r->kept, &to);
  qn_nest_begin(&r->gone, &gone);
  qn_nest_simplify(&r->kept);
  qn_nest_simplify(&r->gone);
  r->outputs = qn_elements(&kept);
  r->count = qn_elements(&gone);
  return QN_OK;
}

/* Keeps r; asks for workspace for parts if outputs (`tasks`) are too few for the threads. */
static inline qn_status reduction_keep(const qn_request *request, qn_prepared *prepared, reduction *r, int64_t tasks,
                                       int64_t partials)
{
  const uint64_t room = (uint64_t)(partials * r->parts) * sizeof(partial);
  r->shared = r->parts > 1 && tasks < 32 && room <= request->demands->workspace_limit;
  prepared->workspace = r->shared ? room : 0;
  return cpu_keep(prepared, r, sizeof *r);
}

#define REDUCTION_ROW(name_, run_, anchor)                                                                       \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,                      \
    .prepare = prepare, .run = run_, .release = cpu_release }
#define REDUCTION_ROWS(name, run)                                                                                \
  REDUCTION_ROW(name, run, QN_OP_REDUCE_SUM), REDUCTION_ROW(name, run, QN_OP_REDUCE_MEAN),                        \
  REDUCTION_ROW(name, run, QN_OP_REDUCE_PROD), REDUCTION_ROW(name, run, QN_OP_REDUCE_MAX),                        \
  REDUCTION_ROW(name, run, QN_OP_REDUCE_MIN), REDUCTION_ROW(name, run, QN_OP_REDUCE_NORM1),                       \
  REDUCTION_ROW(name, run, QN_OP_REDUCE_NORM2), REDUCTION_ROW(name, run, QN_OP_REDUCE_AMAX),                      \
  REDUCTION_ROW(name, run, QN_OP_ARGMAX), REDUCTION_ROW(name, run, QN_OP_ARGMIN),
#endif
