/* pool_window.h -- windows over one to three spatial dims, for the pooling engines: geometry, divisors, refusals.
 *
 * Tensors are seen as N, C, D, H, W; missing dims come first and have extent 1. */
#ifndef CPU_POOL_WINDOW_H
#define CPU_POOL_WINDOW_H
#include "kit/convert.h"
#include "cpu_ref.h"

enum { SN, SC, SD, SH, SW, AXES };
enum { POOL_BURST = 256 };                /* terms that are added in real */

typedef struct pool_tensor {
  int32_t  value;                         /* of the request; -1: absent */
  uint32_t dtype;
  int64_t  bytes, stride[AXES];
} pool_tensor;

typedef struct pooling {
  uint32_t op;
  bool     maximum, backward, adaptive, include_pad;
  bool     far;                           /* windows of more than POOL_BURST elements */
  int      fast;                          /* the axis along which vectors run */
  double   p;                             /* lp: the exponent */
  int64_t  n, c, in[3], out[3];           /* in: extents of x and dx, out: of y and dy */
  int64_t  size[3], step[3], dilation[3], before[3], after[3];
  pool_tensor x, y, indices;              /* backward: x means dx, y means dy */
  pool_tensor seen, made;                 /* backward without indices: the forward's x; for lp also its y */
  int32_t  threads;                       /* that the workspace is sized for */
  int64_t  scratch;                       /* bytes per thread */
} pooling;

/* Begin of the window at index p along axis d. Adaptive windows have no padding, and sizes that differ by at most two. */
static inline int64_t start_of(const pooling *v, int d, int64_t p)
{
  return v->adaptive ? p * v->in[d] / v->out[d] : p * v->step[d] - v->before[d];
}
static inline int64_t size_of(const pooling *v, int d, int64_t p)
{
  return v->adaptive ? qn_ceil_div((p + 1) * v->in[d], v->out[d]) - start_of(v, d, p) : v->size[d];
}

/* The windows p whose tap r is inside x: first to end - 1. */
static inline void places_of_tap(const pooling *v, int d, int64_t r, int64_t *first, int64_t *end)
{
  const int64_t offset = r * v->dilation[d] - v->before[d];
  *first = offset < 0 ? qn_ceil_div(-offset, v->step[d]) : 0;
  *end = offset < v->in[d] ? qn_min_i64(v->out[d], (v->in[d] - 1 - offset) / v->step[d] + 1) : 0;
}

static inline int64_t position(const pooling *v, int d, int64_t p, int64_t r) { return start_of(v, d, p) + r * v->dilation[d]; }
static inline bool inside(const pooling *v, int d, int64_t at) { return at >= 0 && at < v->in[d]; }

typedef struct span { int64_t first, end; } span;

/* Ceiling of a / b; b is mostly 1, and a division takes longer than a tap. */
static inline int64_t pool_ceil_div(int64_t a, int64_t b) { return b == 1 ? a : qn_ceil_div(a, b); }

/* The taps inside x of the window at index p along axis d. */
static inline span taps_inside(const pooling *v, int d, int64_t p)
{
  if (v->adaptive) return (span){ 0, size_of(v, d, p) };
  const int64_t start = start_of(v, d, p), dilation = v->dilation[d];
  const int64_t first = start < 0 ? pool_ceil_div(-start, dilation) : 0;
  const int64_t reached = start < v->in[d] ? pool_ceil_div(v->in[d] - start, dilation) : 0;
  return (span){ first, qn_min_i64(reached, v->size[d]) };
}

/* The number of taps that count in the divisor along axis d: inside x, or inside x and its declared padding. */
static inline int64_t taps_counted(const pooling *v, int d, int64_t p)
{
  const span inside = taps_inside(v, d, p);
  if (v->adaptive || !v->include_pad) return qn_max_i64(0, inside.end - inside.first);
  return qn_max_i64(0, qn_min_i64(pool_ceil_div(v->in[d] + v->after[d] - start_of(v, d, p), v->dilation[d]), v->size[d]));
}

/* The windows along axis d that may have a tap at x; tap_at gives the tap, or -1: none. */
static inline span windows_over(const pooling *v, int d, int64_t x)
{
  if (v->adaptive) return (span){ x * v->out[d] / v->in[d], qn_ceil_div((x + 1) * v->out[d], v->in[d]) };
  const int64_t high = x + v->before[d], low = qn_max_i64(0, high - (v->size[d] - 1) * v->dilation[d]), step = v->step[d];
  return (span){ pool_ceil_div(low, step), qn_min_i64(v->out[d], pool_ceil_div(high + 1, step)) };
}
static inline int64_t tap_at(const pooling *v, int d, int64_t p, int64_t x)
{
  const int64_t offset = x - start_of(v, d, p);
  return v->dilation[d] == 1 ? offset : offset % v->dilation[d] ? -1 : offset / v->dilation[d];
}

static inline char *tensor_at(const pool_tensor *t, const qn_launch *launch, int64_t n, int64_t c, int64_t d, int64_t h,
                              int64_t w)
{
  return (char *)launch->ptr[t->value] + (n * t->stride[SN] + c * t->stride[SC] + d * t->stride[SD] + h * t->stride[SH]
                                          + w * t->stride[SW]) * t->bytes;
}

static inline pool_tensor pool_tensor_of(const qn_request *request, int32_t value)
{
  pool_tensor t = { .value = value };
  if (value < 0) return t;
  const qn_value *v = &request->value[value];
  t.dtype = v->dtype;
  t.bytes = qn_kit_bytes(v->dtype);
  for (int32_t d = 0; d < v->rank; d++) t.stride[d < 2 ? d : d + AXES - v->rank] = v->stride[d];
  for (int32_t d = 0; d < v->rank; d++)   /* with extent 1 the stride is never used: make it a valid one */
    if (v->dim[d] == 1) t.stride[d < 2 ? d : d + AXES - v->rank] = d == v->rank - 1 || d == 1 ? 1 : 0;
  return t;
}

/* The kind of op and its roles: indices, x and y, or dx and dy; -1: none. */
typedef struct pool_op { bool maximum, backward, adaptive; int indices, x, y; } pool_op;

static inline pool_op pool_op_of(uint32_t op)
{
  switch (op) {
  case QN_OP_POOL_MAX:                       return (pool_op){ true, false, false, QN_ROLE_POOL_MAX_INDICES, -1, -1 };
  case QN_OP_POOL_MAX_BACKWARD:
    return (pool_op){ true, true, false, QN_ROLE_POOL_MAX_BACKWARD_INDICES, QN_ROLE_POOL_MAX_BACKWARD_X, -1 };
  case QN_OP_POOL_ADAPTIVE_MAX:              return (pool_op){ true, false, true, QN_ROLE_POOL_ADAPTIVE_MAX_INDICES, -1, -1 };
  case QN_OP_POOL_ADAPTIVE_MAX_BACKWARD:     return (pool_op){ true, true, true, QN_ROLE_POOL_ADAPTIVE_MAX_BACKWARD_INDICES, -1, -1 };
  case QN_OP_POOL_AVERAGE_BACKWARD:          return (pool_op){ false, true, false, -1, -1, -1 };
  case QN_OP_POOL_ADAPTIVE_AVERAGE:          return (pool_op){ false, false, true, -1, -1, -1 };
  case QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD: return (pool_op){ false, true, true, -1, -1, -1 };
  case QN_OP_POOL_LP_BACKWARD: return (pool_op){ false, true, false, -1, QN_ROLE_POOL_LP_BACKWARD_X, QN_ROLE_POOL_LP_BACKWARD_Y };
  default:                                   return (pool_op){ false, false, false, -1, -1, -1 };
  }
}

static inline pool_tensor pool_role(const qn_request *request, int role)
{
  return pool_tensor_of(request, role < 0 ? -1 : qn_role(&request->op[0], (uint32_t)role));
}

/* Reads the request. `fast`: the axis that must have stride 1 in all tensors. */
static inline qn_status pooling_of(const qn_request *request, qn_prepared *prepared, int fast, pooling *v)
{
  static const qn_pool none = { .window = { 1, 1, 1 }, .stride = { 1, 1, 1 }, .dilation = { 1, 1, 1 } };
  const qn_node *node = &request->op[0];
  const pool_op op = pool_op_of(node->op);
  const qn_pool *pool = op.adaptive ? &none : node->attr;
  *v = (pooling){ .op = node->op, .maximum = op.maximum, .backward = op.backward, .adaptive = op.adaptive,
                  .include_pad = pool->include_pad != 0, .fast = fast, .p = pool->p };
  const int32_t x = qn_role(node, v->backward ? node->n_roles - 1 : 0);
  const int32_t y = qn_role(node, v->backward ? 0 : node->n_inputs);
  v->x = pool_tensor_of(request, x);
  v->y = pool_tensor_of(request, y);
  v->indices = pool_role(request, op.indices);
  v->seen = pool_role(request, v->indices.value < 0 ? op.x : -1);
  v->made = pool_role(request, op.y);

  const qn_value *big = &request->value[x], *small = &request->value[y];
  v->n = big->dim[0];
  v->c = big->dim[1];
  for (int d = 0; d < 3; d++) {
    const int from = d - (AXES - big->rank);               /* index in the attributes; in dims two more */
    const bool has = from >= 0;
    v->in[d] = has ? big->dim[2 + from] : 1;
    v->out[d] = has ? small->dim[2 + from] : 1;
    v->size[d] = !has ? 1 : pool->window[from] ? pool->window[from] : v->in[d];
    v->step[d] = !has ? 1 : pool->stride[from] ? pool->stride[from] : v->size[d];
    v->dilation[d] = has ? pool->dilation[from] : 1;
    v->before[d] = has ? pool->pad_before[from] : 0;
    v->after[d] = has ? pool->pad_after[from] : 0;
  }
  const bool counted = v->size[0] * v->size[1] * v->size[2] <= 255;      /* u8 indices can count its taps */
  for (int d = 0; d < 3 && !counted; d++)                 /* ignore taps that never reach x or its padding */
    v->size[d] = qn_min_i64(v->size[d], qn_ceil_div(v->before[d] + v->in[d] + v->after[d], v->dilation[d]));

  double most = 1;
  for (int d = 0; d < 3; d++) most *= v->adaptive ? (double)(v->in[d] / v->out[d]) + 2 : (double)v->size[d];
  v->far = most > POOL_BURST;
  const pool_tensor *all[5] = { &v->x, &v->y, &v->indices, &v->seen, &v->made };
  for (int i = 0; i < 5; i++) {
    if (all[i]->value < 0) continue;
    const qn_value *value = &request->value[all[i]->value];
    if ((i < 2 || qn_is_float(value->dtype)) && (value->dtype == QN_F64) != (CPU_REAL == QN_F64))
      return qn_refuse(prepared, "computes in " CPU_REAL_NAME, "x", CPU_REALS, "%s", qn_kit_name(value->dtype));
    if (all[i]->stride[fast] != 1)
      return qn_refuse(prepared, fast == SC ? "vectors run along the channels" : "vectors run along the last spatial dim", "",
                       "a stride of 1 there", "%lld", (long long)all[i]->stride[fast]);
  }
  if (!v->maximum && !qn_is_float(v->x.dtype) && most > UINT16_MAX)
    return qn_refuse(prepared, "sums of integers are exact in f32", "window", "at most 65535 taps", "%.0f", most);
  double places = 1;                      /* of a plane and all that windows reach beyond it */
  for (int d = 0; d < 3; d++)
    places *= (double)v->in[d] + (double)v->before[d] + (double)v->after[d] + (double)(v->size[d] - 1) * (double)v->dilation[d];
  if (v->maximum && places > INT32_MAX)
    return qn_refuse(prepared, "counts places in 32 bits", "x", "fewer than 2^31 places in a plane and its padding", "%.0f", places);
  return QN_OK;
}

static inline bool pool_whole(const pooling *v, int d)
{
  return v->out[d] == 1 && v->size[d] == v->in[d] && v->before[d] == 0 && v->dilation[d] == 1;
}

/* A window that spans a plane without gaps becomes one long row. */
static inline void pool_join_rows(pooling *v)
{
  for (int d = 1; d >= 0; d--) {
    const int axis = SD + d;
    if (!pool_whole(v, d) || !pool_whole(v, 2) || v->x.stride[axis] != v->in[2]) return;
    if (v->seen.value >= 0 && v->seen.stride[axis] != v->in[2]) return;
    v->in[2] *= v->in[d];
    v->size[2] = v->step[2] = v->in[2];
    v->in[d] = v->size[d] = v->step[d] = 1;
  }
}

static inline qn_status pooling_keep(const qn_request *request, qn_prepared *prepared, pooling *v, int64_t shared)
{
  v->threads = request->demands->threads;
  prepared->workspace = (uint64_t)(v->scratch * v->threads + shared);
  return cpu_keep(prepared, v, sizeof *v);
}

static inline int pool_threads(const pooling *v, const qn_launch *launch, int64_t tasks)
{
  const int64_t work = v->n * v->c * (v->in[0] * v->in[1] * v->in[2] + v->out[0] * v->out[1] * v->out[2]);
  return (int)qn_max_i64(1, qn_min_i64(qn_min_i64(cpu_threads(launch, work), v->threads), tasks));
}

/* n contiguous elements as real: in place, or converted into buffer. */
static inline const real *pool_wide(const pool_tensor *t, const char *at, int64_t n, real *buffer)
{
  if (t->dtype == CPU_REAL) return (const real *)(const void *)at;
  row_to_real(buffer, at, t->dtype, n);
  return buffer;
}

/* ---- sums ------------------------------------------------------------------------------------
 *
 * In real for up to POOL_BURST terms (or as many per lane), and these in double. An average that is not finite is made once more,
 * of x times POOL_SMALL, since the sum of a window may leave the range that its mean is in. */
static const real POOL_SMALL = (real)0x1p-40;

CPU_INLINE real pool_lanes_sum(const real *x, int64_t n)
{
  enum { LANES = CPU_VECTOR_BYTES / sizeof(real) };
  v_real sums = { 0 }, others = sums;
  real sum = 0;
  int64_t i = 0;
  for (; i + 2 * LANES <= n; i += 2 * LANES) {
    sums += v_load_real(x + i);
    others += v_load_real(x + i + LANES);
  }
  for (; i + LANES <= n; i += LANES) sums += v_load_real(x + i);
  sums += others;
  for (; i < n; i++) sum += x[i];
  for (int k = 0; k < LANES; k++) sum += sums[k];
  return sum;
}

static inline double pool_run_sum(const real *x, int64_t n)
{
  enum { MOST = 4096 };
  double sum = 0;
  for (; n > MOST; x += MOST, n -= MOST) sum += (double)pool_lanes_sum(x, MOST);
  return sum + (double)pool_lanes_sum(x, n);
}

/* A row of long sums: called after each term, and at the end. */
static inline bool pool_flush(double *total, real *sum, int64_t terms, int64_t n)
{
  if (terms % POOL_BURST) return false;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    total[i] = (terms == POOL_BURST ? 0 : total[i]) + (double)sum[i];
    sum[i] = 0;
  }
  return true;
}
static inline void pool_join(const double *total, real *sum, int64_t terms, int64_t n)
{
  if (terms < POOL_BURST) return;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) sum[i] = (real)(total[i] + (double)sum[i]);
}

static inline const real *pool_small(const real *x, int64_t n, real *buffer)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) buffer[i] = x[i] * POOL_SMALL;
  return buffer;
}

static inline bool pool_odd_run(const void *y, uint32_t dtype, int64_t n)
{
  if (!qn_is_float(dtype)) return false;
  const uint16_t *narrow = y, most = dtype == QN_F16 ? 0x7c00 : 0x7f80;
  const uint32_t *f32 = y;
  const uint64_t *f64 = y;
  int found = 0;
  if (dtype == QN_F32)
#pragma omp simd reduction(|: found)
    for (int64_t i = 0; i < n; i++) found |= (f32[i] & 0x7f800000u) == 0x7f800000u;
  else if (dtype == QN_F64)
#pragma omp simd reduction(|: found)
    for (int64_t i = 0; i < n; i++) found |= (f64[i] & 0x7ff0000000000000u) == 0x7ff0000000000000u;
  else
#pragma omp simd reduction(|: found)
    for (int64_t i = 0; i < n; i++) found |= (narrow[i] & most) == most;
  return found;
}

/* Is any of these averages infinite or NaN? Runs of n, `step` elements apart. */
static inline bool pool_is_odd(const pool_tensor *y, const char *at, int64_t runs, int64_t step, int64_t n)
{
  if (step == n) n *= runs, runs = 1;
  bool found = false;
  for (int64_t r = 0; r < runs; r++) found |= pool_odd_run(at + r * step * y->bytes, y->dtype, n);
  return found;
}

/* made: averages of x times POOL_SMALL, which replace those of n stored ones that are odd. */
static inline void pool_mend(const pool_tensor *y, char *at, real *made, int64_t n, real *buffer)
{
  const real *stored = pool_wide(y, at, n, buffer);
  for (int64_t i = 0; i < n; i++) made[i] = isfinite(stored[i]) ? stored[i] : made[i] / POOL_SMALL;
}

static inline bool pool_plane_is_odd(const pooling *v, const qn_launch *launch, int64_t n, int64_t c)
{
  bool found = false;
  for (int64_t d = 0; d < v->out[0]; d++)
    found |= pool_is_odd(&v->y, tensor_at(&v->y, launch, n, c, d, 0, 0), v->out[1], v->y.stride[SH], v->out[2]);
  return found;
}

/* The plane in which gradients are summed: dx itself if of real's dtype (for maxima, addressed by position, also without gaps), else
 * `held` in workspace. */
typedef struct pool_plane { real *p; int64_t stride_d, stride_h; } pool_plane;

static inline bool pool_needs_plane(const pooling *v)
{
  const bool dense = (v->in[1] == 1 || v->x.stride[SH] == v->in[2]) &&
                     (v->in[0] == 1 || v->x.stride[SD] == v->in[1] * v->in[2]);
  return v->backward && (v->x.dtype != CPU_REAL || (v->maximum && !dense));
}

static inline real *pool_plane_row(const pool_plane *g, int64_t d, int64_t h) { return g->p + d * g->stride_d + h * g->stride_h; }

static inline pool_plane pool_plane_begin(const pooling *v, const qn_launch *launch, int64_t n, int64_t c, real *held)
{
  pool_plane g = { held, v->in[1] * v->in[2], v->in[2] };
  if (!pool_needs_plane(v)) g = (pool_plane){ (real *)(void *)tensor_at(&v->x, launch, n, c, 0, 0, 0), v->x.stride[SD], v->x.stride[SH] };
  const int64_t rows = g.stride_h == v->in[2] ? v->in[1] : 1;       /* rows without gaps are joined */
  for (int64_t d = 0; d < v->in[0]; d++)
    for (int64_t h = 0; h < v->in[1]; h += rows) memset(pool_plane_row(&g, d, h), 0, (size_t)(rows * v->in[2]) * sizeof *g.p);
  return g;
}

static inline void pool_plane_end(const pooling *v, const qn_launch *launch, int64_t n, int64_t c, const pool_plane *g)
{
  for (int64_t d = 0; pool_needs_plane(v) && d < v->in[0]; d++)
    for (int64_t h = 0; h < v->in[1]; h++)
      row_from_real(tensor_at(&v->x, launch, n, c, d, h, 0), pool_plane_row(g, d, h), v->x.dtype, v->in[2]);
}

/* A maximum's number is its tap's in the window (u8) or its position in x's plane: `base`, which depends on the row, plus the index
 * in the last dim. */
static inline int64_t number_base(const pooling *v, uint32_t dtype, int64_t rd, int64_t rh, int64_t d, int64_t h)
{
  return dtype == QN_U8 ? (rd * v->size[1] + rh) * v->size[2] : (d * v->in[1] + h) * v->in[2];
}

static inline void put_indices(void *to, uint32_t dtype, const int32_t *number, int64_t n)
{
  switch (dtype) {
  case QN_U8:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) ((uint8_t *)to)[i] = (uint8_t)number[i];             /* -1 is 255 */
    break;
  case QN_I32: memcpy(to, number, (size_t)n * 4); break;
  default:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) ((int64_t *)to)[i] = number[i];
    break;
  }
}

/* ---- combining rows ------------------------------------------------------------------------ */

static inline void pool_row_sum(real *y, const real *x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

/* Keeps NaN. */
static inline void pool_row_max(real *y, const real *x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = ((x[i] > y[i]) | (x[i] != x[i])) ? x[i] : y[i];
}

/* ---- table rows ----------------------------------------------------------------------------- */

#define POOL_ROW(name_, run_, anchor)                                                                            \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,                      \
    .prepare = prepare, .run = run_, .release = cpu_release }
#define POOL_ROWS(name, run)                                                                                     \
  POOL_ROW(name, run, QN_OP_POOL_MAX), POOL_ROW(name, run, QN_OP_POOL_MAX_BACKWARD),                              \
  POOL_ROW(name, run, QN_OP_POOL_AVERAGE), POOL_ROW(name, run, QN_OP_POOL_AVERAGE_BACKWARD),
#define POOL_ADAPTIVE_ROWS(name, run)                                                                            \
  POOL_ROW(name, run, QN_OP_POOL_ADAPTIVE_MAX), POOL_ROW(name, run, QN_OP_POOL_ADAPTIVE_MAX_BACKWARD),            \
  POOL_ROW(name, run, QN_OP_POOL_ADAPTIVE_AVERAGE), POOL_ROW(name, run, QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD),

#endif
