/* batch_norm.c -- batch norm by cuDNN's legacy API, as frameworks use it: training, its gradient, and with given statistics; per channel
 * or per activation, packed NCHW or NHWC.
 *
 * Training squares what may be large and multiplies by squares of rstd, the variant `persistent` sums in scaled integers, and f64's gradient
 * gives Inf where the formula gives NaN: finite data of moderate size only, math fast. */
#include "peer.h"

/* Indices of the operands; those that an op lacks are NULL. */
enum { X, DY, SCALE, SHIFT, MEAN, RSTD, VAR, NEW_MEAN, NEW_VAR, Y, PARTS, DX = Y, DSCALE = NEW_MEAN, DSHIFT = NEW_VAR };
enum { LARGE, SMALL };                    /* the descriptors: of x and tensors like it, of all others */

static const char *const variants[] = { "spatial", "persistent", NULL };

static cudnnBatchNormMode_t mode_of(const peer_call *c) { return (cudnnBatchNormMode_t)c->mode; }

static cudnnStatus_t infer(const peer_call *c, const peer_operands *o)
{
  void *const *ptr = o->ptr;
  return peer.cudnnBatchNormalizationForwardInference(o->handle, mode_of(c), o->one, o->zero, c->tensor[LARGE], ptr[X], c->tensor[LARGE],
                                                      ptr[Y], c->tensor[SMALL], ptr[SCALE], ptr[SHIFT], ptr[MEAN], ptr[VAR], c->number[0]);
}

static cudnnStatus_t train(const peer_call *c, const peer_operands *o)
{
  void *const *ptr = o->ptr;
  char *reserve = (char *)o->workspace + c->reserve_at;
  return peer.cudnnBatchNormalizationForwardTrainingEx(o->handle, mode_of(c), CUDNN_BATCHNORM_OPS_BN, o->one, o->zero, c->tensor[LARGE],
                                                       ptr[X], NULL, NULL, c->tensor[LARGE], ptr[Y], c->tensor[SMALL], ptr[SCALE],
                                                       ptr[SHIFT], c->number[1], ptr[NEW_MEAN], ptr[NEW_VAR], c->number[0], ptr[MEAN],
                                                       ptr[RSTD], NULL, o->workspace, c->reserve_at, reserve, o->bytes - c->reserve_at);
}

static cudnnStatus_t differentiate(const peer_call *c, const peer_operands *o)
{
  void *const *ptr = o->ptr;
  return peer.cudnnBatchNormalizationBackwardEx(o->handle, mode_of(c), CUDNN_BATCHNORM_OPS_BN, o->one, o->zero, o->one, o->zero,
                                                c->tensor[LARGE], ptr[X], NULL, NULL, c->tensor[LARGE], ptr[DY], NULL, NULL,
                                                c->tensor[LARGE], ptr[DX], c->tensor[SMALL], ptr[SCALE], NULL, ptr[DSCALE], ptr[DSHIFT],
                                                c->number[0], ptr[MEAN], ptr[RSTD], NULL, o->workspace, o->bytes, NULL, 0);
}

/* ---- prepare -------------------------------------------------------------------------------------------- */

static void place(peer_call *c, const qn_node *op)
{
  const qn_norm_roles r = qn_norm_roles_of(op->op);
  bool backward = op->op == QN_OP_BATCH_NORM_BACKWARD;
  const int8_t role[PARTS] = { [X] = r.x, [DY] = r.dy, [SCALE] = r.scale, [SHIFT] = r.shift, [MEAN] = r.mean, [RSTD] = r.rstd,
                               [VAR] = r.var, [NEW_MEAN] = backward ? r.dscale : r.new_mean, [NEW_VAR] = backward ? r.dshift : r.new_var,
                               [Y] = backward ? r.dx : r.y };
  for (int i = 0; i < PARTS; i++) c->value[i] = qn_role_at(op, role[i]);
  c->n = PARTS;
}

/* Checks layouts, dtypes, dims; false: refused. */
static bool fits(const peer_call *c, const qn_request *r, qn_prepared *p, uint64_t mask)
{
  const qn_value *x = &r->value[c->value[X]];
  uint64_t all = (1ull << x->rank) - 1;
  if (x->rank < 2 || x->rank > 5 || (mask != 1 && mask != (all & ~2ull)))
    qn_refuse(p, "cuDNN normalizes by channels or by activation", "", "all dims but 1, or the first", "%s", "others");
  for (int i = 0; i < PARTS && !p->refusal.rule[0]; i++) {
    if (c->value[i] < 0) continue;
    const qn_value *v = &r->value[c->value[i]];
    bool large = i == X || i == DY || i == Y;
    uint32_t dtype = large || x->dtype == QN_F64 ? x->dtype : QN_F32;
    if (v->dtype != dtype)
      qn_refuse(p, "one dtype for x and y, f32 (f64) for all else", "", qn_kit_name(dtype), "%s", qn_kit_name(v->dtype));
    else if (v->align < 16) qn_refuse(p, "cuDNN's kernels read 16 bytes at once, aligned or not", "", "16-byte alignment", "%u", v->align);
    else if (large && !qn_same_layout(v, x)) qn_refuse(p, "one layout for x and y", "", "x's", "%s", "another");
    else if (!qn_is_packed(v) && !(large && mask != 1 && qn_is_channels_last(v)))
      qn_refuse(p, "layouts asked of cuDNN", "", "packed NCHW or NHWC", "%s", "other strides");
    for (int d = 0; !large && !p->refusal.rule[0] && d < x->rank; d++)
      if (v->dim[d] != (mask >> d & 1 ? 1 : x->dim[d]))
        qn_refuse(p, "cuDNN's scales and shifts are as its statistics", "", "dims as mean's", "%s", "others");
  }
  return !p->refusal.rule[0];
}

/* Workspace, followed by the reserve that one direction would keep for the other, unused here. */
static void ask_sizes(peer_call *c, const qn_request *r, qn_prepared *p)
{
  cudnnTensorDescriptor_t x = c->tensor[LARGE];
  cudnnHandle_t handle;
  size_t bytes = 0, reserve = 0;
  if (c->status || peer_describe_begin(r->device, &handle)) return;
  if (c->call == train)
    c->status = peer.cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(handle, mode_of(c), CUDNN_BATCHNORM_OPS_BN, x, NULL, x,
                                                                              c->tensor[SMALL], NULL, &bytes);
  if (c->call == differentiate)
    c->status = peer.cudnnGetBatchNormalizationBackwardExWorkspaceSize(handle, mode_of(c), CUDNN_BATCHNORM_OPS_BN, x, NULL, x, NULL, x,
                                                                       c->tensor[SMALL], NULL, &bytes);
  if (!c->status && c->call != infer)
    c->status = peer.cudnnGetBatchNormalizationTrainingExReserveSpaceSize(handle, mode_of(c), CUDNN_BATCHNORM_OPS_BN, NULL, x, &reserve);
  peer_describe_end();
  if (!c->status && reserve && c->call == differentiate) c->status = CUDNN_STATUS_NOT_SUPPORTED;
  c->reserve_at = (size_t)qn_round_up((int64_t)bytes, 256);
  p->workspace = c->call == train ? c->reserve_at + reserve : bytes;
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_norm *norm = op->attr;
  qn_status s;
  peer_call *c = peer_call_begin(r, p, &s);
  if (!c) return s;
  place(c, op);
  const qn_value *x = &r->value[c->value[X]];
  const int32_t *v = c->value;
  bool forward = op->op == QN_OP_BATCH_NORM, backward = op->op == QN_OP_BATCH_NORM_BACKWARD, last = !qn_is_packed(x);
  int32_t running[2] = { forward ? qn_role(op, QN_ROLE_BATCH_NORM_RUNNING_MEAN) : -1,
                         forward ? qn_role(op, QN_ROLE_BATCH_NORM_RUNNING_VAR) : -1 };
  bool kept = forward && (v[NEW_MEAN] >= 0 || v[NEW_VAR] >= 0);
  p->variant = r->variant ? r->variant : variants[0];
  bool persistent = p->variant == variants[1] || !strcmp(p->variant, variants[1]);
  if (v[SCALE] < 0 || (v[SHIFT] < 0 && !backward) || (backward && (v[DSCALE] < 0 || v[DSHIFT] < 0)))
    qn_refuse(p, "cuDNN's batch norm scales and shifts, and gives all gradients", "", "scale, shift, dscale, dshift", "%s", "fewer");
  else if (forward && (v[MEAN] >= 0) != (v[RSTD] >= 0))
    qn_refuse(p, "cuDNN keeps both statistics or none", "mean", "both or none", "%s", "one");
  else if (kept && (v[NEW_MEAN] < 0 || v[NEW_VAR] < 0 || r->value[v[NEW_MEAN]].over != running[0] ||
                    r->value[v[NEW_VAR]].over != running[1]))
    qn_refuse(p, "cuDNN changes running statistics in place", "new_mean", "new_mean=running_mean new_var=running_var", "%s", "elsewhere");
  else if (persistent && (norm->mask == 1 || op->op == QN_OP_BATCH_NORM_INFERENCE))
    qn_refuse(p, "persistent is of training by channels", "", "another variant", "%s", p->variant);
  else if (fits(c, r, p, norm->mask)) {
    bool by_activation = norm->mask == 1;
    c->mode = by_activation ? CUDNN_BATCHNORM_PER_ACTIVATION : persistent ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT : CUDNN_BATCHNORM_SPATIAL;
    c->number[0] = norm->eps;
    c->number[1] = norm->momentum;
    c->call = forward ? train : backward ? differentiate : infer;
    if (op->op != QN_OP_BATCH_NORM_INFERENCE) {
      p->traits |= QN_TRAIT_FINITE_ONLY;
      p->math = QN_MATH_FAST;
    }
    peer_call_spatial(c, LARGE, x, last);
    peer_call_spatial(c, SMALL, &r->value[v[SCALE]], last);
    ask_sizes(c, r, p);
    return peer_call_end(c, p);
  }
  return peer_call_refused(p);
}

#define SHARED .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .variants = variants, .prepare = prepare, .run = peer_call_run, .release = peer_call_release
static const qn_engine rows[] = {
  { .name = "batch_norm", .op = QN_OP_BATCH_NORM,           SHARED },
  { .name = "batch_norm", .op = QN_OP_BATCH_NORM_BACKWARD,  SHARED },
  { .name = "batch_norm", .op = QN_OP_BATCH_NORM_INFERENCE, SHARED },
};
const qn_engine_list peer_batch_norm = { rows, sizeof rows / sizeof rows[0] };
