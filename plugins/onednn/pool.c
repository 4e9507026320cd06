/* pool.c -- pooling by oneDNN, forward and backward, without indices.
 *
 * Its maximum loses NaN, and its average's sum overflows where the mean does not: finite data of moderate size only, math=fast. */
#include "onednn.h"

typedef struct geometry { dnnl_dims_t window, stride, dilation, before, after; bool overhang; } geometry;

/* x and y: spatial dims, larger and smaller. If ceil_mode lets a window extend beyond the end, oneDNN needs that declared as
 * padding. */
static geometry geometry_of(const qn_pool *pool, const int64_t *x, const int64_t *y, int spatial)
{
  geometry g;
  g.overhang = false;
  for (int i = 0; i < spatial; i++) {
    g.window[i] = pool->window[i] ? pool->window[i] : x[i];
    g.stride[i] = pool->stride[i] ? pool->stride[i] : g.window[i];
    g.dilation[i] = pool->dilation[i] - 1;
    g.before[i] = pool->pad_before[i];
    int64_t reach = (y[i] - 1) * g.stride[i] + (g.window[i] - 1) * pool->dilation[i] + 1;
    int64_t needed = reach - x[i] - g.before[i];
    g.after[i] = qn_max_i64(needed, pool->pad_after[i]);
    g.overhang |= needed > pool->pad_after[i];
  }
  return g;
}

/* oneDNN counts a window's taps in 32 bits, and iterates over those in the padding; an average's it adds to one f32 sum. */
static bool window_fits(qn_prepared *p, const geometry *g, int spatial, bool sums)
{
  double taps = 1;
  for (int i = 0; i < spatial; i++)
    taps *= (double)g->window[i];
  if (taps > INT32_MAX)
    qn_refuse(p, "oneDNN counts a window's taps in 32 bits", "", "fewer than 2^31", "%.0f", taps);
  else if (sums && taps > 4096)
    qn_refuse(p, "oneDNN's averages are f32 sums over the whole window", "window", "at most 4096 taps", "%.0f", taps);
  else
    return true;
  return false;
}

/* A maximum over padding alone is -Inf, but oneDNN's is the lowest finite number. So is one of a window that steps over all of x. */
static bool all_see_x(qn_prepared *p, const geometry *g, const int64_t *x, const int64_t *y, int spatial)
{
  bool see = true;
  for (int i = 0; i < spatial; i++) {
    const int64_t step = g->dilation[i] + 1, first = (g->window[i] - 1) * step - g->before[i],
        last = (y[i] - 1) * g->stride[i] - g->before[i];
    see &= first >= 0 && last < x[i] && (step <= x[i] || g->window[i] == 1);
  }
  if (see)
    return true;
  qn_refuse(p, "oneDNN's maximum over padding alone is no -Inf", "", "windows that all have an element of x", "%s", "others");
  return false;
}

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  const qn_pool *pool = op->attr;
  bool backward = op->op == QN_OP_POOL_AVERAGE_BACKWARD;
  const qn_value *in = &request->value[op->arg[0]], *out = &request->value[op->arg[1]];
  geometry g = backward ? geometry_of(pool, out->dim + 2, in->dim + 2, in->rank - 2)
                        : geometry_of(pool, in->dim + 2, out->dim + 2, in->rank - 2);
  dnnl_alg_kind_t how = op->op == QN_OP_POOL_MAX ? dnnl_pooling_max
                        : pool->include_pad ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
  dnnl_pooling_v2_desc_t d;
  dnnl_status_t status;
  if (!window_fits(p, &g, in->rank - 2, op->op == QN_OP_POOL_AVERAGE) ||
      (op->op == QN_OP_POOL_MAX && !all_see_x(p, &g, in->dim + 2, out->dim + 2, in->rank - 2)))
    return QN_UNSUPPORTED;
  onednn_state *s = onednn_begin(request, p);
  if (!s)
    return onednn_refused(p, QN_UNSUPPORTED);
  if (op->op == QN_OP_POOL_MAX && qn_role(op, QN_ROLE_POOL_MAX_INDICES) >= 0)
    return onednn_refused(p, qn_refuse(p, "oneDNN's indices are its own", "indices", "none", "%s", "indices wanted"));
  if (how == dnnl_pooling_avg_include_padding && g.overhang)
    return onednn_refused(p, qn_refuse(p, "oneDNN counts the overhang in the divisor", "", "include_pad=0", "%s", "ceil_mode=1"));
  if (!onednn_add(s, request, p, backward ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC, op->arg[0]) ||
      !onednn_add(s, request, p, backward ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST, op->arg[1]))
    return onednn_refused(p, QN_UNSUPPORTED);
  if (backward)
    status = dnnl_pooling_v2_backward_desc_init(&d, how, &s->tensor[1].given, &s->tensor[0].given, g.stride, g.window, g.dilation,
                                                g.before, g.after);
  else
    status = dnnl_pooling_v2_forward_desc_init(&d, dnnl_forward_inference, how, &s->tensor[0].given, &s->tensor[1].given, g.stride,
                                               g.window, g.dilation, g.before, g.after);
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such pooling", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, &d);
}

/* Runs the forward first, for indices in oneDNN's own format. */
static qn_status prepare_backward_max(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  int32_t dy = qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_DY), x = qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_X),
      dx = qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_DX);
  dnnl_pooling_v2_desc_t forward, backward;
  if (x < 0 || qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_INDICES) >= 0)
    return qn_refuse(p, "oneDNN's indices are its own", "indices", "x alone", "%s", "indices");
  const qn_value *xv = &request->value[x], *yv = &request->value[dy];
  geometry g = geometry_of(op->attr, xv->dim + 2, yv->dim + 2, xv->rank - 2);
  if (!window_fits(p, &g, xv->rank - 2, false) || !all_see_x(p, &g, xv->dim + 2, yv->dim + 2, xv->rank - 2))
    return QN_UNSUPPORTED;
  onednn_state *s = onednn_begin(request, p);
  if (!s)
    return onednn_refused(p, QN_UNSUPPORTED);
  if (!onednn_add(s, request, p, DNNL_ARG_SRC, x) || !onednn_add(s, request, p, DNNL_ARG_DIFF_DST, dy) ||
      !onednn_add(s, request, p, DNNL_ARG_DIFF_SRC, dx))
    return onednn_refused(p, QN_UNSUPPORTED);
  onednn_add_own(s, DNNL_ARG_DST);
  onednn_add_own(s, DNNL_ARG_WORKSPACE);
  const dnnl_memory_desc_t *src = &s->tensor[0].given, *dst = &s->tensor[1].given;
  if (dnnl_pooling_v2_forward_desc_init(&forward, dnnl_forward_training, dnnl_pooling_max, src, dst, g.stride, g.window, g.dilation,
                                        g.before, g.after) != dnnl_success ||
      dnnl_pooling_v2_backward_desc_init(&backward, dnnl_pooling_max, &s->tensor[2].given, dst, g.stride, g.window, g.dilation, g.before,
                                         g.after) != dnnl_success || !onednn_first(s, request, &forward))
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such pooling", "", "", "%s", ""));
  return onednn_finish(s, request, p, &backward);
}

#define SHARED .class_ = QN_CLASS_TUNED, .build = onednn_build, .run = onednn_run, .release = onednn_release
static const qn_engine rows[] = {
  { .name = "pooling", .op = QN_OP_POOL_MAX,              .prepare = prepare,              .traits = QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "pooling", .op = QN_OP_POOL_MAX_BACKWARD,     .prepare = prepare_backward_max, .traits = QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "pooling", .op = QN_OP_POOL_AVERAGE,          .prepare = prepare,              .traits = QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "pooling", .op = QN_OP_POOL_AVERAGE_BACKWARD, .prepare = prepare,                                              SHARED },
};
const qn_engine_list onednn_pool = { rows, sizeof rows / sizeof rows[0] };
