/* pool_window.h -- windows over one to three spatial dims, for the pooling engines: geometry, divisors, what they refuse.
 *
 * Everything is seen as N, C, D, H, W; dims that a tensor has not come first and have one place. */
#ifndef CPU_POOL_WINDOW_H
#define CPU_POOL_WINDOW_H
#include "convert.h"
#include "cpu_ref.h"

enum { SN, SC, SD, SH, SW, AXES };

typedef struct pool_tensor {
  int32_t  value;                         /* of the request; -1: absent */
  uint32_t dtype;
  int64_t  bytes, stride[AXES];
} pool_tensor;

typedef struct pooling {
  uint32_t op;
  bool     maximum, backward, include_pad;
  int      fast;                          /* the axis along which vectors run */
  double   p;                             /* lp: the exponent */
  int64_t  n, c, in[3], out[3];           /* in: extents of x and dx, out: of y and dy */
  int64_t  size[3], step[3], dilation[3], before[3], after[3];
  pool_tensor x, y, indices;              /* backward: x is dx, y is dy */
  pool_tensor seen, made;                 /* backward without indices: the forward's x; of lp also its y */
  int32_t  threads;                       /* for which there is workspace */
  int64_t  scratch;                       /* bytes for one thread */
} pooling;

/* Taps of a window at place p along axis d whose positions are in [0, end). */
static inline int64_t taps_before(const pooling *v, int d, int64_t p, int64_t end)
{
  const int64_t start = p * v->step[d] - v->before[d];
  const int64_t skipped = start < 0 ? qn_ceil_div(-start, v->dilation[d]) : 0;
  const int64_t reached = end > start ? qn_ceil_div(end - start, v->dilation[d]) : 0;
  return qn_max_i64(0, qn_min_i64(reached, v->size[d]) - skipped);
}

/* How many taps count in the divisor along axis d: those inside x, or those inside x and its declared padding. */
static inline int64_t taps_counted(const pooling *v, int d, int64_t p)
{
  if (!v->include_pad) return taps_before(v, d, p, v->in[d]);
  const int64_t start = p * v->step[d] - v->before[d];
  return qn_max_i64(0, qn_min_i64(qn_ceil_div(v->in[d] + v->after[d] - start, v->dilation[d]), v->size[d]));
}

/* Places p at which tap r lies inside x: first to end - 1. */
static inline void places_of_tap(const pooling *v, int d, int64_t r, int64_t *first, int64_t *end)
{
  const int64_t offset = r * v->dilation[d] - v->before[d];
  *first = offset < 0 ? qn_ceil_div(-offset, v->step[d]) : 0;
  *end = offset < v->in[d] ? qn_min_i64(v->out[d], (v->in[d] - 1 - offset) / v->step[d] + 1) : 0;
}

static inline int64_t position(const pooling *v, int d, int64_t p, int64_t r)
{
  return p * v->step[d] + r * v->dilation[d] - v->before[d];
}
static inline bool inside(const pooling *v, int d, int64_t at) { return at >= 0 && at < v->in[d]; }

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
  for (int32_t d = 0; d < v->rank; d++)   /* where there is one place the stride is never used: let it not matter */
    if (v->dim[d] == 1) t.stride[d < 2 ? d : d + AXES - v->rank] = d == v->rank - 1 || d == 1 ? 1 : 0;
  return t;
}

/* Reads the request. `fast`: the axis whose stride must be 1 in all tensors. */
static inline qn_status pooling_of(const qn_request *request, qn_prepared *prepared, int fast, pooling *v)
{
  const qn_node *node = &request->op[0];
  const qn_pool *pool = node->attr;
  *v = (pooling){ .op = node->op, .include_pad = pool->include_pad != 0, .fast = fast, .p = pool->p };
  v->maximum = node->op == QN_OP_POOL_MAX || node->op == QN_OP_POOL_MAX_BACKWARD;
  const bool lp_backward = node->op == QN_OP_POOL_LP_BACKWARD;
  v->backward = node->op == QN_OP_POOL_MAX_BACKWARD || node->op == QN_OP_POOL_AVERAGE_BACKWARD || lp_backward;
  const uint32_t last = node->n_roles - 1;
  const int32_t x = qn_role(node, v->backward ? last : 0);
  const int32_t y = qn_role(node, v->backward ? 0 : node->n_inputs);
  v->x = pool_tensor_of(request, x);
  v->y = pool_tensor_of(request, y);
  v->indices = pool_tensor_of(request, v->maximum ? qn_role(node, v->backward ? QN_ROLE_POOL_MAX_BACKWARD_INDICES
                                                                              : QN_ROLE_POOL_MAX_INDICES) : -1);
  v->seen = pool_tensor_of(request, lp_backward ? qn_role(node, QN_ROLE_POOL_LP_BACKWARD_X)
                                    : v->maximum && v->backward && v->indices.value < 0
                                      ? qn_role(node, QN_ROLE_POOL_MAX_BACKWARD_X) : -1);
  v->made = pool_tensor_of(request, lp_backward ? qn_role(node, QN_ROLE_POOL_LP_BACKWARD_Y) : -1);

  const qn_value *big = &request->value[x], *small = &request->value[y];
  v->n = big->dim[0];
  v->c = big->dim[1];
  for (int d = 0; d < 3; d++) {
    const int from = d - (AXES - big->rank);               /* in the attributes and, two further on, in dims */
    const bool has = from >= 0;
    v->in[d] = has ? big->dim[2 + from] : 1;
    v->out[d] = has ? small->dim[2 + from] : 1;
    v->size[d] = !has ? 1 : pool->window[from] ? pool->window[from] : v->in[d];
    v->step[d] = !has ? 1 : pool->stride[from] ? pool->stride[from] : v->size[d];
    v->dilation[d] = has ? pool->dilation[from] : 1;
    v->before[d] = has ? pool->pad_before[from] : 0;
    v->after[d] = has ? pool->pad_after[from] : 0;
  }

  const pool_tensor *all[5] = { &v->x, &v->y, &v->indices, &v->seen, &v->made };
  for (int i = 0; i < 5; i++) {
    if (all[i]->value < 0) continue;
    const qn_value *value = &request->value[all[i]->value];
    if (value->dtype == QN_F64) return qn_refuse(prepared, "computes in f32", "x", "f32, f16, bf16", "f64");
    if (all[i]->stride[fast] != 1)
      return qn_refuse(prepared, fast == SC ? "vectors run along the channels" : "vectors run along the last spatial dim", "",
                       "a stride of 1 there", "%lld", (long long)all[i]->stride[fast]);
  }
  double places = 1;                      /* of a plane with all that windows reach beyond it */
  for (int d = 0; d < 3; d++)
    places *= (double)v->in[d] + (double)v->before[d] + (double)v->after[d] + (double)(v->size[d] - 1) * (double)v->dilation[d];
  if (v->maximum && places > INT32_MAX)
    return qn_refuse(prepared, "counts places in 32 bits", "x", "fewer than 2^31 places in a plane and its padding", "%.0f", places);
  return QN_OK;
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

/* A maximum's number: of the tap in its window (u8) or of the place in x's plane, as `base` of its rows and what stands in
 * the last dim. */
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

#define POOL_ROW(name_, run_, anchor)                                                                            \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,                      \
    .prepare = prepare, .run = run_, .release = cpu_release }
#define POOL_ROWS(name, run)                                                                                     \
  POOL_ROW(name, run, QN_OP_POOL_MAX), POOL_ROW(name, run, QN_OP_POOL_MAX_BACKWARD),                              \
  POOL_ROW(name, run, QN_OP_POOL_AVERAGE), POOL_ROW(name, run, QN_OP_POOL_AVERAGE_BACKWARD),
#endif
