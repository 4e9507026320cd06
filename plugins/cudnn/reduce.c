/* reduce.c -- reductions by cuDNN's kernel, any dims of a packed tensor.
 *
 * The maximum of -Inf alone comes out as the lowest finite number, so max and min are for finite data only: math fast. So are mean and
 * norm2, whose sums overflow where their results do not. */
#include "peer.h"

static cudnnReduceTensorOp_t operator_of(uint32_t op)
{
  switch (op) {
  case QN_OP_REDUCE_MEAN:  return CUDNN_REDUCE_TENSOR_AVG;
  case QN_OP_REDUCE_PROD:  return CUDNN_REDUCE_TENSOR_MUL;
  case QN_OP_REDUCE_MAX:   return CUDNN_REDUCE_TENSOR_MAX;
  case QN_OP_REDUCE_MIN:   return CUDNN_REDUCE_TENSOR_MIN;
  case QN_OP_REDUCE_NORM1: return CUDNN_REDUCE_TENSOR_NORM1;
  case QN_OP_REDUCE_NORM2: return CUDNN_REDUCE_TENSOR_NORM2;
  case QN_OP_REDUCE_AMAX:  return CUDNN_REDUCE_TENSOR_AMAX;
  default:                 return CUDNN_REDUCE_TENSOR_ADD;
  }
}

static cudnnStatus_t reduce(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnReduceTensor(o->handle, c->reduce, NULL, 0, o->workspace, o->bytes, o->one, c->tensor[0], o->ptr[0], o->zero,
                                c->tensor[1], o->ptr[1]);
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_value *x = &r->value[op->arg[0]], *y = &r->value[op->arg[1]];
  cudnnHandle_t handle;
  size_t workspace = 0;
  qn_status s;
  if (x->dtype == QN_BF16) return qn_refuse(p, "dtypes of cuDNN's kernel", "x", "f64, f32 or f16", "%s", "bf16");
  if (y->rank != x->rank) return qn_refuse(p, "reduced dims stay as 1", "y", "x's rank", "%d", y->rank);
  if (qn_same_dims(x, y)) return qn_refuse(p, "nothing to reduce", "x", "dims above 1 to sum over", "%s", "");
  peer_call *c = peer_call_begin(r, p, &s);
  if (!c) return s;
  if (!peer_call_alike(c, r, p, PEER_PACKED)) return peer_call_refused(p);
  if ((s = peer_describe_begin(r->device, &handle))) {
    peer_call_release(p);
    return s;
  }
  peer_shape x_shape = peer_packed(x->dim, x->rank), y_shape = peer_packed(y->dim, y->rank);
  peer_call_tensor(c, 0, x->dtype, &x_shape);
  peer_call_tensor(c, 1, y->dtype, &y_shape);
  if (!c->status) c->status = peer.cudnnCreateReduceTensorDescriptor(&c->reduce);
  if (!c->status)
    c->status = peer.cudnnSetReduceTensorDescriptor(c->reduce, operator_of(op->op), peer_type(x->dtype == QN_F64 ? QN_F64 : QN_F32),
                                                    CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES);
  if (!c->status) c->status = peer.cudnnGetReductionWorkspaceSize(handle, c->reduce, c->tensor[0], c->tensor[1], &workspace);
  peer_describe_end();
  p->workspace = workspace;
  c->call = reduce;
  return peer_call_end(c, p);
}

#define SHARED .class_ = QN_CLASS_TUNED, .prepare = prepare, .run = peer_call_run, .release = peer_call_release
static const qn_engine rows[] = {
  { .name = "reduce", .op = QN_OP_REDUCE_SUM,   .traits = QN_TRAIT_DETERMINISTIC, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_MEAN,  .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_PROD,  .traits = QN_TRAIT_DETERMINISTIC, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_MAX,   .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_MIN,   .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_NORM1, .traits = QN_TRAIT_DETERMINISTIC, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_NORM2, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_AMAX,  .traits = QN_TRAIT_DETERMINISTIC, SHARED },
};
const qn_engine_list peer_reduce = { rows, sizeof rows / sizeof rows[0] };
