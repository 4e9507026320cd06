/* direct.h -- shared by the direct engines only: the oracle's index arithmetic and sums are independent of the fast engines'.
 *
 * A direct engine takes one op with any strides, alignment, dtypes and sizes, without workspace (except ctc_direct.c). Each output
 * element is computed by one thread in the formula's order, so the number of threads changes nothing. Sums are compensated, other
 * functions computed in long double, and the result is rounded once to the output. */
#ifndef CPU_DIRECT_H
#define CPU_DIRECT_H
#include "cpu_ref.h"

/* ---- an op, kept from prepare to run ---------------------------------------------------------- */

typedef struct cpu_kept {
  uint32_t    op;
  int32_t     n_roles;
  int32_t     first[QN_MAX_ROLES + 1];
  const void *attr;
  const int32_t  *number;                 /* each argument's value index in the request */
  const qn_value *value;                  /* of each argument */
} cpu_kept;

qn_status cpu_direct_prepare(const qn_request *request, qn_prepared *p);

#define CPU_DIRECT_ROW(anchor, function)                                                        \
  { .name = "direct", .op = anchor, .class_ = QN_CLASS_GENERIC,                                 \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,            \
    .prepare = cpu_direct_prepare, .run = function, .release = cpu_release }

/* ---- tensors ---------------------------------------------------------------------------------- */

typedef struct cpu_tensor {
  unsigned char *p;                       /* NULL: optional and absent */
  uint32_t dtype;
  int32_t  rank;
  int64_t  bytes;                         /* of one element */
  int64_t  elements;
  const int64_t *dim, *stride;
} cpu_tensor;

static inline int32_t cpu_count(const qn_prepared *p, uint32_t role)
{
  const cpu_kept *kept = p->state;
  return kept->first[role + 1] - kept->first[role];
}

/* The i-th tensor of a role. */
static inline cpu_tensor cpu_tensor_of(const qn_prepared *p, const qn_launch *launch, uint32_t role, int32_t i)
{
  const cpu_kept *kept = p->state;
  cpu_tensor t = { 0 };
  if (i >= cpu_count(p, role)) return t;
  const int32_t at = kept->first[role] + i;
  const qn_value *v = &kept->value[at];
  t.p = launch->ptr[kept->number[at]];
  t.dtype = v->dtype;
  t.rank = v->rank;
  t.bytes = qn_kit_bytes(v->dtype);
  t.dim = v->dim;
  t.stride = v->stride;
  t.elements = 1;
  for (int32_t d = 0; d < v->rank; d++) t.elements *= v->dim[d];
  return t;
}

static inline unsigned char *cpu_at(const cpu_tensor *t, int64_t offset) { return t->p + offset * t->bytes; }
static inline double cpu_get(const cpu_tensor *t, int64_t offset) { return qn_load_f64(cpu_at(t, offset), t->dtype); }
static inline void cpu_put(const cpu_tensor *t, int64_t offset, double x) { qn_store_f64(cpu_at(t, offset), t->dtype, x); }

/* The indices of the i-th element in row-major order, and the offset of an index. */
static inline void cpu_place(int64_t i, int32_t rank, const int64_t *dim, int64_t *index)
{
  for (int32_t d = rank - 1; d >= 0; d--) {
    const int64_t outer = i < dim[d] ? 0 : dim[d] == 1 ? i : i / dim[d];     /* divisions take long */
    index[d] = i - outer * dim[d];
    i = outer;
  }
}
/* The next one's; after the last the first's. */
static inline void cpu_next(int32_t rank, const int64_t *dim, int64_t *index)
{
  for (int32_t d = rank - 1; d >= 0 && ++index[d] == dim[d]; d--) index[d] = 0;
}
static inline int64_t cpu_offset(int32_t rank, const int64_t *index, const int64_t *stride)
{
  int64_t offset = 0;
  for (int32_t d = 0; d < rank; d++) offset += index[d] * stride[d];
  return offset;
}

/* The element of x, of n in dim d, at the padded tensor's position `at`; -1: none, the constant. */
static inline int64_t cpu_pad_source(const qn_padding *padding, int32_t d, int64_t at, int64_t n)
{
  const int64_t from = at - padding->pad_before[d];
  if (padding->mode == QN_PAD_REFLECT) return from < 0 ? -from : from >= n ? 2 * (n - 1) - from : from;
  if (padding->mode == QN_PAD_REPLICATE) return from < 0 ? 0 : from >= n ? n - 1 : from;
  if (padding->mode == QN_PAD_WRAP) return from < 0 ? n - 1 - (-from - 1) % n : from % n;
  return from < 0 || from >= n ? -1 : from;
}

/* A tensor as N, C and three spatial dims: missing ones come first, with extent 1. Filters likewise. */
typedef struct cpu_grid {
  cpu_tensor t;
  int64_t dim[5], stride[5];
} cpu_grid;

static inline cpu_grid cpu_grid_of(cpu_tensor t)
{
  cpu_grid g = { t, { 1, 1, 1, 1, 1 }, { 0, 0, 0, 0, 0 } };
  for (int32_t d = 0; d < t.rank; d++) {
    const int32_t to = d < 2 ? d : d + 5 - t.rank;
    g.dim[to] = t.dim[d];
    g.stride[to] = t.stride[d];
  }
  return g;
}

static inline int64_t cpu_grid_offset(const cpu_grid *g, int64_t n, int64_t c, const int64_t spatial[3])
{
  return n * g->stride[0] + c * g->stride[1]
       + spatial[0] * g->stride[2] + spatial[1] * g->stride[3] + spatial[2] * g->stride[4];
}

/* Windows over three spatial dims; attribute entries are shifted as cpu_grid shifts dims. */
typedef struct cpu_windows {
  int64_t size[3], step[3], dilation[3], before[3];
  int64_t inputs[3], outputs[3];          /* extents of x and of y */
} cpu_windows;

/* Position in x of tap r of window p; 0: outside. */
static inline int cpu_tap(const cpu_windows *w, const int64_t p[3], const int64_t r[3], int64_t x[3])
{
  int inside = 1;
  for (int d = 0; d < 3; d++) {
    x[d] = p[d] * w->step[d] + r[d] * w->dilation[d] - w->before[d];
    inside &= x[d] >= 0 && x[d] < w->inputs[d];
  }
  return inside;
}

/* The window whose tap r is at x; 0: none. */
static inline int cpu_window(const cpu_windows *w, const int64_t x[3], const int64_t r[3], int64_t p[3])
{
  for (int d = 0; d < 3; d++) {
    const int64_t start = x[d] + w->before[d] - r[d] * w->dilation[d];
    if (start < 0) return 0;
    p[d] = w->step[d] == 1 ? start : start / w->step[d];
    if (p[d] * w->step[d] != start || p[d] >= w->outputs[d]) return 0;
  }
  return 1;
}

/* ---- sums ------------------------------------------------------------------------------------- */

/* A compensated sum: high + low has twice a double's digits (Ogita, Rump, Oishi: Accurate sum and dot product). A sum of
 * integers is exact, and wraps when stored. */
typedef struct cpu_sum {
  double   high, low;
  long double wide;                       /* the sum so far, once high has left double's range */
  uint64_t integer;
} cpu_sum;

/* Once high is Inf or NaN the compensation is NaN and must be ignored. */
static inline double cpu_sum_low(const cpu_sum *s) { return isfinite(s->high) ? s->low : 0; }
static inline long double cpu_sum_total(const cpu_sum *s) { return isfinite(s->high) ? (long double)s->high + s->low : s->wide; }
static inline double cpu_sum_value(const cpu_sum *s) { return isfinite(s->high) ? s->high + s->low : (double)s->wide; }

static inline void cpu_sum_add(cpu_sum *s, double x)
{
  const double sum = s->high + x, part = sum - s->high;
  if (!isfinite(sum)) s->wide = cpu_sum_total(s) + x;
  s->low += (s->high - (sum - part)) + (x - part);
  s->high = sum;
}

static inline void cpu_sum_add_product(cpu_sum *s, double a, double b)
{
  const double product = a * b;
  cpu_sum_add(s, product);
  /* for factors of at most 26 digits (all but f64) the product is exact */
  if ((qn_bits_of_f64(a) | qn_bits_of_f64(b)) & 0x7ffffff) s->low += fma(a, b, -product);
}

/* n elements, `step` bytes apart, or one behind the other, as doubles (direct.c). */
void cpu_load_run(double *to, int64_t n, const unsigned char *from, int64_t step, uint32_t dtype);
void cpu_widen(double *to, int64_t n, const void *from, uint32_t dtype);

/* s += the sum of x[i] y[i]: four sums side by side, then added up in order (direct.c). */
void cpu_sum_run(cpu_sum *s, int64_t n, const double *x, const double *y);

/* s += the sum of n products of elements of a and b, from these offsets in these steps, in the arithmetic of the dtypes. */
enum { CPU_RUN = 64 };                      /* products that reach the sum together */
static inline void cpu_sum_products(cpu_sum *s, int64_t n, const cpu_tensor *a, int64_t a_at, int64_t a_step,
                                    const cpu_tensor *b, int64_t b_at, int64_t b_step)
{
  if (qn_is_integer(a->dtype)) {
    for (int64_t i = 0; i < n; i++)
      s->integer += (uint64_t)(qn_load_i64(cpu_at(a, a_at + i * a_step), a->dtype)
                               * qn_load_i64(cpu_at(b, b_at + i * b_step), b->dtype));
    return;
  }
  for (int64_t i = 0; i < n; i += CPU_RUN) {
    double x[CPU_RUN], y[CPU_RUN];
    const int64_t few = qn_min_i64(n - i, CPU_RUN);
    cpu_load_run(x, few, cpu_at(a, a_at + i * a_step), a_step * a->bytes, a->dtype);
    cpu_load_run(y, few, cpu_at(b, b_at + i * b_step), b_step * b->bytes, b->dtype);
    cpu_sum_run(s, few, x, y);
  }
}

/* Sums of columns side by side, each as cpu_sum: of rows, each times a weight. */
enum { CPU_COLUMNS = 128 };
typedef struct cpu_columns { double high[CPU_COLUMNS], low[CPU_COLUMNS]; long double wide[CPU_COLUMNS]; } cpu_columns;

/* Adds weight x[c] to the first n columns (direct.c). */
void cpu_columns_add(cpu_columns *s, int64_t n, double weight, const double *x);

static inline cpu_sum cpu_column(const cpu_columns *s, int64_t c) { return (cpu_sum){ s->high[c], s->low[c], s->wide[c], 0 }; }

static inline void cpu_sum_store(const cpu_sum *s, const cpu_tensor *y, int64_t offset)
{
  if (qn_is_integer(y->dtype)) qn_store_i64(cpu_at(y, offset), y->dtype, qn_wrap(y->dtype, (int64_t)s->integer));
  else cpu_put(y, offset, cpu_sum_value(s));
}

/* ---- random numbers ---------------------------------------------------------------------------- */

/* Philox 4x32-10: encrypts the counter, 4 words of 32 bits, by the key. */
static inline void cpu_philox(uint64_t c[4], uint64_t seed)
{
  const uint64_t low = UINT64_C(0xffffffff);
  uint64_t key[2] = { seed & low, seed >> 32 };
  for (int round = 0; round < 10; round++) {
    const uint64_t first = c[0] * 0xD2511F53, third = c[2] * 0xCD9E8D57;
    const uint64_t next[4] = { third >> 32 ^ c[1] ^ key[0], third & low, first >> 32 ^ c[3] ^ key[1], first & low };
    memcpy(c, next, sizeof next);
    key[0] = (key[0] + 0x9E3779B9) & low;
    key[1] = (key[1] + 0xBB67AE85) & low;
  }
}

/* ---- threads ---------------------------------------------------------------------------------- */

/* Threads worth waking for this many outputs of about so many steps each: waking a team costs some microseconds. */
static inline int cpu_team(const qn_launch *launch, int64_t outputs, int64_t steps)
{
  const int64_t useful = (outputs < INT64_MAX / (steps + 1) ? outputs * (steps + 1) : INT64_MAX) / 4096;
  return (int)qn_max_i64(1, qn_min_i64(launch->threads, useful));
}

#endif
