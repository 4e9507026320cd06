/* pool_by_reduction.c -- pooling whose one window is the whole plane, as the reduction that it is: global average pooling is a mean over
 * the spatial dims, global max pooling a maximum, its indices where the first maximum is, and lp pooling with p = 1 or 2 a norm.
 *
 *   y[n, c] = mean, max or norm of x[n, c, all], indices[n, c] = argmax     [N, C, X] to [N, C, 1, ...], by the best engine for each
 *
 * Engines that give an output to a thread, or to eight, have few of them then: of 8 images of 96 channels last, at 112 x 112 each thread
 * would read 1568 elements one after another, 277 us on an H200 for what takes 6 to read.
 * Refused: other windows, other powers, indices u8 (windows of few taps). */
#include "cuda_backend.h"
#include "engines.h"
#include "kit/part.h"

typedef struct state {
  qn_part *part[2];                       /* for y; for the indices, NULL: there are none */
  qn_axes axes;
  int32_t x, out[2];
} state;

static void release(qn_prepared *p)
{
  state *st = p->state;
  if (st) cuda_parts_release(st->part, 2);
  cuda_release(p);
}

/* The reduction that gives y; 0: none. */
static uint32_t reduction_of(const qn_node *op)
{
  switch (op->op) {
  case QN_OP_POOL_AVERAGE: case QN_OP_POOL_ADAPTIVE_AVERAGE: return QN_OP_REDUCE_MEAN;
  case QN_OP_POOL_MAX: case QN_OP_POOL_ADAPTIVE_MAX: return QN_OP_REDUCE_MAX;
  default: break;
  }
  const double p = ((const qn_pool *)op->attr)->p;
  return p == 1 ? QN_OP_REDUCE_NORM1 : p == 2 ? QN_OP_REDUCE_NORM2 : 0;
}

/* A part that reduces x to value number `to`, by a tuned engine; joins its answer to ours. */
static bool delegate(const qn_request *r, uint32_t op, int32_t to, state *st, qn_part **part, qn_prepared *out)
{
  static const int32_t first[] = { 0, 1, 2 }, arg[] = { 0, 1 };
  qn_node node = r->op[0];
  node.op = op, node.family = QN_FAMILY_REDUCTION, node.attr = &st->axes;
  node.n_roles = 2, node.n_inputs = 1, node.first = first, node.arg = arg;
  qn_value value[] = { r->value[st->x], r->value[to] };
  const qn_prepared *answer = cuda_part_prepare(r, &node, value, part) ? NULL : r->host->part_answer(*part);
  if (!answer || answer->class_ != QN_CLASS_TUNED) return false;
  if (answer->workspace > out->workspace) out->workspace = answer->workspace;
  if (answer->counters > out->counters) out->counters = answer->counters;
  if (op != QN_OP_ARGMAX) out->math = answer->math, out->numerics = answer->numerics;
  out->traits &= answer->traits;
  out->estimate += 7000 + (double)qn_elements(value) * qn_kit_bytes(value->dtype) / 3000;
  return true;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const bool adaptive = op->op == QN_OP_POOL_ADAPTIVE_AVERAGE || op->op == QN_OP_POOL_ADAPTIVE_MAX;
  const int32_t *to = op->arg + op->first[op->n_inputs];    /* outputs: y, and indices if there are any */
  const int32_t at_x = op->arg[op->first[0]], indices = op->arg + op->first[op->n_roles] - to > 1 ? to[1] : -1;     /* x is the one input */
  const qn_value *x = &r->value[at_x], *y = &r->value[to[0]];
  const uint32_t reduction = reduction_of(op);
  if (!reduction) return qn_refuse(out, "powers that are reductions", "p", "1 or 2", "%g", ((const qn_pool *)op->attr)->p);
  if (indices >= 0 && r->value[indices].dtype == QN_U8) return qn_refuse(out, "places in the plane", "indices", "i32 or i64", "%s", "u8");
  if (y->dtype != x->dtype) return qn_refuse(out, "y of x's dtype", "y", qn_kit_name(x->dtype), "%s", qn_kit_name(y->dtype));
  for (int d = 2; d < x->rank; d++) {
    if (y->dim[d] != 1) return qn_refuse(out, "one window", "y", "1 in each spatial dim", "%lld", (long long)y->dim[d]);
    if (adaptive) continue;
    const qn_pool *pool = op->attr;
    const int64_t window = pool->window[d - 2];
    if ((window && window != x->dim[d]) || pool->dilation[d - 2] != 1 || pool->pad_before[d - 2] || pool->pad_after[d - 2])
      return qn_refuse(out, "the whole plane as window, without padding or dilation", "x", "window 0", "%lld", (long long)window);
  }
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->x = at_x, st->out[0] = to[0], st->out[1] = indices;
  st->axes = (qn_axes)QN_AXES_INIT;
  st->axes.mask = (((uint64_t)1 << x->rank) - 1) & ~(uint64_t)3;
  if (delegate(r, reduction, to[0], st, &st->part[0], out) &&
      (indices < 0 || delegate(r, QN_OP_ARGMAX, indices, st, &st->part[1], out)))
    return QN_OK;
  release(out);
  return qn_refuse(out, "tuned engines for the reductions", "x", "what they take", "%s", "another");
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  return cuda_parts_build(((state *)out->state)->part, 2);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = prepared->state;
  qn_status s = QN_OK;
  for (int i = 0; i < 2 && !s && st->part[i]; i++) {
    void *ptr[] = { launch->ptr[st->x], launch->ptr[st->out[i]] };
    s = cuda_host->part_run(st->part[i], launch, ptr, launch->workspace, launch->counters);
  }
  return s;
}

#define ROW(of)                                                                                                      \
  { .name = "by_reduction", .op = of, .class_ = QN_CLASS_TUNED,                                                       \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, .prepare = prepare, .build = build, \
    .run = run, .release = release }
static const qn_engine rows[] = { ROW(QN_OP_POOL_AVERAGE), ROW(QN_OP_POOL_ADAPTIVE_AVERAGE), ROW(QN_OP_POOL_MAX),
                                  ROW(QN_OP_POOL_ADAPTIVE_MAX), ROW(QN_OP_POOL_LP) };
CUDA_ENGINES(pool_by_reduction) = { rows, sizeof rows / sizeof *rows };
