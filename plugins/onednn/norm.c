/* norm.c -- layer norm and batch norm by oneDNN. It saves a variance where we save 1 / sqrt(variance + eps): onednn.c converts.
 * Not offered: running statistics, and parameters other than per normalized element (layer) or per channel (batch).
 *
 * The gradients are not offered: ours accept any rstd, even a negative one, which no variance gives. Squares of large values overflow, and
 * batch norm multiplies scale by rstd first, which loses digits of subnormals: moderate data only, math=fast. */
#include "onednn.h"

/* x and tensors of its dims as oneDNN sees them: [rows, columns] or [N, C, spatial]. Parameters and statistics form one row. */
typedef struct shape { int rank; int64_t dim[QN_MAX_RANK], stride[QN_MAX_RANK], parameters, statistics; bool batch; } shape;

static shape matrix(int64_t rows, int64_t columns, bool batch)
{
  return (shape){ .rank = 2, .dim = { rows, columns }, .stride = { columns, 1 }, .parameters = columns,
                  .statistics = batch ? columns : rows, .batch = batch };
}

/* False: refused. */
static bool shape_of(const qn_request *request, qn_prepared *p, const qn_value *x, shape *s)
{
  const qn_node *op = &request->op[0];
  uint64_t mask = ((const qn_norm *)op->attr)->mask, all = (1ull << x->rank) - 1;
  bool batch = op->op != QN_OP_LAYER_NORM, packed = qn_is_packed(x);
  int64_t outer = 1, inner = 1;
  int from = x->rank;
  while (from > 0 && mask >> (from - 1) & 1)
    from--;
  for (int d = 0; d < x->rank; d++)
    *((batch ? d < 1 : d < from) ? &outer : &inner) *= x->dim[d];
  if (batch && mask == (all & ~2ull)) {
    *s = (shape){ .rank = x->rank, .parameters = x->dim[1], .statistics = x->dim[1], .batch = true };
    memcpy(s->dim, x->dim, sizeof s->dim);
    memcpy(s->stride, x->stride, sizeof s->stride);
  } else if (batch && mask == 1 && packed) {
    *s = matrix(outer, inner, true);
  } else if (!batch && mask == (all & ~((1ull << from) - 1)) && packed) {       /* its kernels would write into gaps */
    *s = matrix(outer, inner, false);
  } else {
    qn_refuse(p, "oneDNN normalizes over the last dims, or over all but the channels", "x", "packed, axis up to the last dim", "%s",
              "others");
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

/* A row of n: a parameter, a statistic or a parameter's gradient. own: oneDNN needs it even if it is neither given nor wanted. */
static bool add_row(onednn_state *s, const qn_request *request, qn_prepared *p, int role, int32_t value, int64_t n, bool own)
{
  static const int64_t one = 1;
  if (value < 0 && own)
    onednn_add_own(s, role);
  if (value < 0)
    return true;
  const qn_value *v = &request->value[value];
  if (!qn_is_packed(v) || qn_elements(v) != n) {
    qn_refuse(p, "oneDNN's scales and shifts are of the normalized elements, of a batch of the channels", "scale", "one row of as many",
              "%s", "others");
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
  const qn_norm *norm = op->attr;
  int32_t x = qn_role_at(op, r.x), scale = qn_role_at(op, r.scale), shift = qn_role_at(op, r.shift), mean = qn_role_at(op, r.mean);
  int32_t var = qn_role_at(op, r.var), rstd = qn_role_at(op, r.rstd);
  bool saves = var < 0 && (mean >= 0 || rstd >= 0);
  unsigned flags = (scale >= 0 ? dnnl_use_scale : 0) | (shift >= 0 ? dnnl_use_shift : 0) | (var >= 0 ? dnnl_use_global_stats : 0);
  const qn_value *xv = &request->value[x];
  dnnl_prop_kind_t kind = saves ? dnnl_forward_training : dnnl_forward_inference;
  union { dnnl_layer_normalization_desc_t layer; dnnl_batch_normalization_desc_t batch; } d;
  shape view;
  if (qn_role_at(op, r.new_mean) >= 0 || qn_role_at(op, r.new_var) >= 0)
    return qn_refuse(p, "oneDNN keeps no running statistics", "new_mean", "none", "%s", "wanted");
  if (!shape_of(request, p, xv, &view))
    return QN_UNSUPPORTED;
  onednn_state *s = onednn_begin(request, p);
  if (!s)
    return onednn_refused(p, QN_UNSUPPORTED);
  bool added = add_like(s, request, p, DNNL_ARG_SRC, x, xv, &view) &&
      add_like(s, request, p, DNNL_ARG_DST, qn_role_at(op, r.y), xv, &view) &&
      add_row(s, request, p, DNNL_ARG_SCALE, scale, view.parameters, false) &&
      add_row(s, request, p, DNNL_ARG_SHIFT, shift, view.parameters, false) &&
      add_row(s, request, p, DNNL_ARG_MEAN, mean, view.statistics, saves) &&
      add_row(s, request, p, DNNL_ARG_VARIANCE, var >= 0 ? var : rstd, view.statistics, saves);
  if (!added)
    return onednn_refused(p, QN_UNSUPPORTED);
  s->tensor[s->n - 1].deviation = rstd >= 0;
  s->eps = (float)norm->eps;
  const dnnl_memory_desc_t *given = &s->tensor[0].given;
  dnnl_status_t status = view.batch ? dnnl_batch_normalization_forward_desc_init(&d.batch, kind, given, s->eps, flags)
                                    : dnnl_layer_normalization_forward_desc_init(&d.layer, kind, given, NULL, s->eps, flags);
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such norm", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, &d);
}

#define SHARED .class_ = QN_CLASS_TUNED, .prepare = prepare, .build = onednn_build, .run = onednn_run, .release = onednn_release
static const qn_engine rows[] = {
  { .name = "norm", .op = QN_OP_LAYER_NORM,           .traits = QN_TRAIT_FINITE_ONLY,    SHARED },
  { .name = "norm", .op = QN_OP_BATCH_NORM,           .traits = QN_TRAIT_FINITE_ONLY,    SHARED },
  { .name = "norm", .op = QN_OP_BATCH_NORM_INFERENCE, .traits = QN_TRAIT_FINITE_ONLY,    SHARED },
};
const qn_engine_list onednn_norm = { rows, sizeof rows / sizeof rows[0] };
