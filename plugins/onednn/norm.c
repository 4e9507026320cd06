/* norm.c -- batch norm by given statistics, by oneDNN.
 * Not offered: norms that make their own statistics, whose sums are about 0, so that a constant group is not 0 within the rounding of its
 * mean (100.3 in 8x4x32x32: 0.70 channels last); parameters other than per channel.
 *
 * Squares of large values overflow, and it multiplies scale by rstd first, which loses digits of subnormals: moderate data only,
 * math=fast. */
#include "onednn.h"

/* x and tensors of its dims as oneDNN sees them: [rows, columns] or [N, C, spatial]. Parameters and statistics form one row. */
typedef struct shape { int rank; int64_t dim[QN_MAX_RANK], stride[QN_MAX_RANK], parameters; } shape;

/* False: refused. */
static bool shape_of(const qn_request *request, qn_prepared *p, const qn_value *x, shape *s)
{
  uint64_t mask = ((const qn_norm *)request->op[0].attr)->mask, all = (1ull << x->rank) - 1;
  int64_t inner = 1;
  for (int d = 1; d < x->rank; d++)
    inner *= x->dim[d];
  if (mask == (all & ~2ull)) {
    *s = (shape){ .rank = x->rank, .parameters = x->dim[1] };
    memcpy(s->dim, x->dim, sizeof s->dim);
    memcpy(s->stride, x->stride, sizeof s->stride);
  } else if (mask == 1 && qn_is_packed(x)) {
    *s = (shape){ .rank = 2, .dim = { x->dim[0], inner }, .stride = { inner, 1 }, .parameters = inner };
  } else {
    qn_refuse(p, "oneDNN normalizes over all but the channels", "x", "every axis but 1, or packed, axis 0", "%s", "others");
    return false;
  }
  return true;
}

/* A tensor of x's dims. */
static bool add_like(onednn_state *s, const qn_request *request, qn_prepared *p, int role, int32_t value, const qn_value *x,
                     const shape *view)
{
  if (!qn_same_layout(&request->value[value], x)) {
    qn_refuse(p, "oneDNN wants one layout for x and all of its shape", "y", "x's strides", "%s", "others");
    return false;
  }
  if (!onednn_add(s, request, p, role, value))
    return false;
  onednn_view(s, view->rank, view->dim, view->stride);
  return true;
}

/* A row of n: a parameter or a statistic. */
static bool add_row(onednn_state *s, const qn_request *request, qn_prepared *p, int role, int32_t value, int64_t n)
{
  static const int64_t one = 1;
  if (value < 0)
    return true;
  const qn_value *v = &request->value[value];
  if (!qn_is_packed(v) || qn_elements(v) != n) {
    qn_refuse(p, "oneDNN's scales and shifts are of the channels", "scale", "one row of as many", "%s", "others");
    return false;
  }
  if (!onednn_add(s, request, p, role, value))
    return false;
  onednn_view(s, 1, &n, &one);
  return true;
}

/* ---- prepare ------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  const qn_norm_roles r = qn_norm_roles_of(op->op);
  int32_t x = qn_role_at(op, r.x), scale = qn_role_at(op, r.scale), shift = qn_role_at(op, r.shift);
  unsigned flags = (scale >= 0 ? dnnl_use_scale : 0) | (shift >= 0 ? dnnl_use_shift : 0) | dnnl_use_global_stats;
  const qn_value *xv = &request->value[x];
  dnnl_batch_normalization_desc_t d;
  shape view;
  if (!shape_of(request, p, xv, &view))
    return QN_UNSUPPORTED;
  onednn_state *s = onednn_begin(request, p);
  if (!s)
    return onednn_refused(p, QN_UNSUPPORTED);
  bool added = add_like(s, request, p, DNNL_ARG_SRC, x, xv, &view) &&
      add_like(s, request, p, DNNL_ARG_DST, qn_role_at(op, r.y), xv, &view) &&
      add_row(s, request, p, DNNL_ARG_SCALE, scale, view.parameters) &&
      add_row(s, request, p, DNNL_ARG_SHIFT, shift, view.parameters) &&
      add_row(s, request, p, DNNL_ARG_MEAN, qn_role_at(op, r.mean), view.parameters) &&
      add_row(s, request, p, DNNL_ARG_VARIANCE, qn_role_at(op, r.var), view.parameters);
  if (!added)
    return onednn_refused(p, QN_UNSUPPORTED);
  dnnl_status_t status = dnnl_batch_normalization_forward_desc_init(&d, dnnl_forward_inference, &s->tensor[0].given,
                                                                    (float)((const qn_norm *)op->attr)->eps, flags);
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such norm", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, &d);
}

#define SHARED .class_ = QN_CLASS_TUNED, .prepare = prepare, .build = onednn_build, .run = onednn_run, .release = onednn_release
static const qn_engine rows[] = {
  { .name = "norm", .op = QN_OP_BATCH_NORM_INFERENCE, .traits = QN_TRAIT_FINITE_ONLY,    SHARED },
};
const qn_engine_list onednn_norm = { rows, sizeof rows / sizeof rows[0] };
