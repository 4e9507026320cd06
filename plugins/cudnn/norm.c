/* norm.c -- layer, RMS and instance norm and their gradients by cuDNN graphs: over the last dims of packed rows, or over the spatial dims
 * of NCHW or NHWC. (Batch norm uses the legacy API: batch_norm.c.)
 *
 * cuDNN always scales and shifts (RMS: scales), saves both statistics or none, and computes all gradients. Subnormals become 0, and Inf
 * may become NaN: finite data only, math fast. */
#include "peer.h"

enum { TAKES_16_BYTES = 91900 };          /* 9.14 fails; versions between were not tried */

/* Mode and shapes of x, its parameters and its statistics for cuDNN. */
typedef struct view { cudnnBackendNormMode_t mode; peer_shape x, parameter, statistic; } view;

/* False: refused. */
static bool view_of(const qn_request *r, qn_prepared *p, const qn_value *x, bool rms, view *v)
{
  const uint64_t mask = ((const qn_norm *)r->op[0].attr)->mask, all = (UINT64_C(1) << x->rank) - 1;
  int64_t rows = 1, columns = 1;
  int from = x->rank;
  while (from > 0 && mask >> (from - 1) & 1) from--;
  if (mask != (all & ~((UINT64_C(1) << from) - 1))) {
    qn_refuse(p, "cuDNN normalizes over the last dims", "x", "axis up to the last dim", "%s", "others");
    return false;
  }
  if (!rms && from == 2 && x->rank >= 3 && x->rank <= 5 && (qn_is_packed(x) || qn_is_channels_last(x))) {
    v->mode = CUDNN_INSTANCE_NORM;
    v->x = peer_spatial(x, !qn_is_packed(x));
    v->statistic = v->parameter = peer_packed(x->dim, 2);
    v->parameter.dim[0] = 1;
    return true;
  }
  if (!qn_is_packed(x)) {
    qn_refuse(p, "layouts asked of cuDNN", "x", "packed rows, or NHWC over its spatial dims", "%s", "other strides");
    return false;
  }
  for (int d = 0; d < x->rank; d++) *(d < from ? &rows : &columns) *= x->dim[d];
  v->mode = rms ? CUDNN_RMS_NORM : CUDNN_LAYER_NORM;
  v->x = (peer_shape){ 4, { rows, columns, 1, 1 }, { columns, 1, columns, columns } };
  v->parameter = (peer_shape){ 4, { 1, columns, 1, 1 }, { columns, 1, columns, columns } };
  v->statistic = (peer_shape){ 4, { rows, 1, 1, 1 }, { 1, 1, 1, 1 } };
  return true;
}

static int64_t elements(const peer_shape *s)
{
  int64_t n = 1;
  for (int d = 0; d < s->rank; d++) n *= s->dim[d];
  return n;
}

/* The operand in role `at`, as cuDNN's attribute `name`; required. */
typedef struct operand { int8_t at; cudnnBackendAttributeName_t name; char of; } operand;      /* of: 'x', 'p'arameter, 's'tatistic */

static bool fits(const qn_request *r, qn_prepared *p, const qn_value *x, const view *v, const operand *o)
{
  const int32_t at = qn_role_at(&r->op[0], o->at);
  const qn_value *t = at >= 0 ? &r->value[at] : NULL;
  const peer_shape *s = o->of == 'p' ? &v->parameter : &v->statistic;
  if (!t) qn_refuse(p, "cuDNN scales and shifts, keeps both statistics or none, and gives all gradients", "", "all of them", "%s", "fewer");
  else if (t->dtype == QN_F64 || !peer_is_float(t))
    qn_refuse(p, "dtypes asked of cuDNN", "", "f32, f16, bf16", "%s", qn_kit_name(t->dtype));
  else if (t->align < 16) qn_refuse(p, "cuDNN's kernels read 16 bytes at once, aligned or not", "", "16-byte alignment", "%u", t->align);
  else if (o->of == 'x' ? !qn_same_layout(t, x) : !qn_is_packed(t) || qn_elements(t) != elements(s))
    qn_refuse(p, "parameters of the normalized elements, x's layout for its like", "", "one for each, packed", "%s", "others");
  else if (o->of == 'p' && t->dtype != r->value[qn_role_at(&r->op[0], qn_norm_roles_of(r->op[0].op).scale)].dtype)
    qn_refuse(p, "cuDNN's engines read all parameters as one dtype", "", "scale's", "%s", qn_kit_name(t->dtype));
  else if (o->of == 'p' && v->mode == CUDNN_INSTANCE_NORM && t->dim[1] != x->dim[1])
    qn_refuse(p, "instance norm scales by channels", "", "one for each channel", "%s", "others");
  else return peer_countable(p, t, "");
  return false;
}

static void describe(peer_graph *g, const qn_request *r, const view *v, cudnnBackendDescriptor_t op, const operand *o)
{
  const int32_t at = qn_role_at(&r->op[0], o->at);
  peer_set_part(g, op, o->name,
                peer_tensor(g, r, at, r->value[at].dtype, o->of == 'x' ? &v->x : o->of == 'p' ? &v->parameter : &v->statistic));
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_norm *norm = op->attr;
  const qn_norm_roles at = qn_norm_roles_of(op->op);
  const bool backward = at.dy >= 0, rms = op->op == QN_OP_RMS_NORM || op->op == QN_OP_RMS_NORM_BACKWARD;
  const bool keeps = backward || qn_role_at(op, at.rstd) >= 0 || qn_role_at(op, at.mean) >= 0;
  const operand forward_operands[] = {
    { at.x, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, 'x' }, { at.y, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, 'x' },
    { at.scale, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, 'p' }, { rms ? -1 : at.shift, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, 'p' },
    { at.mean, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, 's' }, { at.rstd, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, 's' } };
  const operand backward_operands[] = {
    { at.dy, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, 'x' }, { at.x, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, 'x' },
    { at.dx, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, 'x' }, { at.scale, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, 'p' },
    { at.dscale, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, 'p' }, { at.dshift, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, 'p' },
    { at.mean, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, 's' }, { at.rstd, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, 's' } };
  const operand *operands = backward ? backward_operands : forward_operands;
  const int n = backward ? sizeof backward_operands / sizeof *operands : sizeof forward_operands / sizeof *operands;
  const qn_value *x = &r->value[qn_role_at(op, at.x)];
  view v;
  qn_status s;
  if (!view_of(r, p, x, rms, &v)) return QN_UNSUPPORTED;
  if (!backward && !rms && peer.cudnnGetVersion() < TAKES_16_BYTES)
    return qn_refuse(p, "this cuDNN's layer norm fails on tensors aligned to 16 bytes, as it was told they are", "", "cuDNN 9.19", "%zu",
                     peer.cudnnGetVersion());
  for (int i = 0; i < n; i++)
    if (!(rms && operands[i].at < 0) && !(operands[i].of == 's' && !keeps) && !fits(r, p, x, &v, &operands[i])) return QN_UNSUPPORTED;
  peer_graph *g = peer_graph_begin(r, p, &s);
  if (!g) return s;
  cudnnBackendDescriptor_t d = peer_make(g, backward ? CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR
                                         : CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  peer_set(g, d, backward ? CUDNN_ATTR_OPERATION_NORM_BWD_MODE : CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &v.mode);
  if (!backward) {
    cudnnBackendNormFwdPhase_t phase = keeps ? CUDNN_NORM_FWD_TRAINING : CUDNN_NORM_FWD_INFERENCE;
    peer_set(g, d, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase);
    peer_set_part(g, d, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, peer_given(g, (float)norm->eps));
  }
  for (int i = 0; i < n; i++)
    if (operands[i].at >= 0 && !(operands[i].of == 's' && !keeps)) describe(g, r, &v, d, &operands[i]);
  peer_add(g, d);
  s = peer_graph_choose(g, r, p, &(peer_terms){ .dtype = x->dtype, .out_dtype = r->value[qn_role_at(op, backward ? at.dx : at.y)].dtype });
  p->numerics.accumulator = QN_ACC_NATIVE;                      /* no product, hence no Tensor Core */
  return s;
}

#define SHARED .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_FINITE_ONLY, .variants = peer_variants, .prepare = prepare, .run = peer_graph_run, .release = peer_graph_release
static const qn_engine rows[] = {
  { .name = "graph", .op = QN_OP_LAYER_NORM,          SHARED },
  { .name = "graph", .op = QN_OP_LAYER_NORM_BACKWARD, SHARED },
  { .name = "graph", .op = QN_OP_RMS_NORM,            SHARED },
  { .name = "graph", .op = QN_OP_RMS_NORM_BACKWARD,   SHARED },
};
const qn_engine_list peer_norm = { rows, sizeof rows / sizeof rows[0] };
