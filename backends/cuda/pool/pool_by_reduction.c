/* pool_by_reduction.c -- pooling whose one window is the whole plane, as the reduction that it is: global average pooling is a mean over the
 * spatial dims, global max pooling without indices a maximum.
 *
 *   y[n, c] = mean or max of x[n, c, all]     [N, C, X] to [N, C, 1, ...], by the best engine for the reduction
 *
 * Engines that give an output to a thread, or to eight, have few of them then: of 8 images of 96 channels last, at 112 x 112 each thread
 * would read 1568 elements one after another, 277 us on an H200 for what takes 6 to read. */
#include "cuda_backend.h"
#include "engines.h"
#include "kit/part.h"

typedef struct state { qn_part *part; qn_axes axes; int32_t x, y; } state;

static void release(qn_prepared *p)
{
  state *st = p->state;
  if (st && st->part) cuda_host->part_release(st->part);
  cuda_release(p);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const bool average = op->op == QN_OP_POOL_AVERAGE || op->op == QN_OP_POOL_ADAPTIVE_AVERAGE;
  const int32_t at_x = op->arg[op->first[0]], at_y = op->arg[op->first[op->n_inputs]];    /* x is the one input, y the first output */
  const qn_value *x = &r->value[at_x], *y = &r->value[at_y];
  if (op->first[op->n_roles] > 2) return qn_refuse(out, "maxima without indices", "indices", "absent", "%s", "given");
  if (y->dtype != x->dtype) return qn_refuse(out, "y of x's dtype", "y", qn_kit_name(x->dtype), "%s", qn_kit_name(y->dtype));
  for (int d = 2; d < x->rank; d++) {
    if (y->dim[d] != 1) return qn_refuse(out, "one window", "y", "1 in each spatial dim", "%lld", (long long)y->dim[d]);
    if (op->op != QN_OP_POOL_AVERAGE && op->op != QN_OP_POOL_MAX) continue;
    const qn_pool *pool = op->attr;
    const int64_t window = pool->window[d - 2];
    if ((window && window != x->dim[d]) || pool->dilation[d - 2] != 1 || pool->pad_before[d - 2] || pool->pad_after[d - 2])
      return qn_refuse(out, "the whole plane as window, without padding or dilation", "x", "window 0", "%lld", (long long)window);
  }
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->x = at_x, st->y = at_y;
  static const int32_t first[] = { 0, 1, 2 }, arg[] = { 0, 1 };
  st->axes = (qn_axes)QN_AXES_INIT;
  st->axes.mask = (((uint64_t)1 << x->rank) - 1) & ~(uint64_t)3;
  qn_node node = *op;
  node.op = average ? QN_OP_REDUCE_MEAN : QN_OP_REDUCE_MAX, node.family = QN_FAMILY_REDUCTION, node.attr = &st->axes;
  node.n_roles = 2, node.n_inputs = 1, node.first = first, node.arg = arg;
  qn_value value[] = { *x, *y };
  const qn_prepared *answer = cuda_part_prepare(r, &node, value, &st->part) ? NULL : r->host->part_answer(st->part);
  if (!answer || answer->class_ != QN_CLASS_TUNED) {
    release(out);
    return qn_refuse(out, "a tuned engine for the reduction", "x", "what they take", "%s", "another");
  }
  out->workspace = answer->workspace, out->counters = answer->counters;
  out->math = answer->math, out->numerics = answer->numerics;
  out->traits &= answer->traits;
  out->estimate = 7000 + (double)qn_elements(x) * qn_kit_bytes(x->dtype) / 3000;
  return QN_OK;
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  const state *st = out->state;
  (void)r;
  return cuda_host->part_build(st->part);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = prepared->state;
  void *ptr[] = { launch->ptr[st->x], launch->ptr[st->y] };
  return cuda_host->part_run(st->part, launch, ptr, launch->workspace, launch->counters);
}

#define ROW(of)                                                                                                      \
  { .name = "by_reduction", .op = of, .class_ = QN_CLASS_TUNED,                                                       \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, .prepare = prepare, .build = build, \
    .run = run, .release = release }
static const qn_engine rows[] = { ROW(QN_OP_POOL_AVERAGE), ROW(QN_OP_POOL_ADAPTIVE_AVERAGE), ROW(QN_OP_POOL_MAX),
                                  ROW(QN_OP_POOL_ADAPTIVE_MAX) };
CUDA_ENGINES(pool_by_reduction) = { rows, sizeof rows / sizeof *rows };
