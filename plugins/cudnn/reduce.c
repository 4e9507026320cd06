/* reduce.c -- reductions by cuDNN's kernel, any dims of a packed tensor.
 *
 * The largest of -Inf alone is the least finite number, so max and min vouch for finite data only: math fast. */
#include "peer.h"

typedef struct state {
  cudnnTensorDescriptor_t x, y;
  cudnnReduceTensorDescriptor_t reduce;
  int32_t x_value, y_value;
  uint32_t dtype;
} state;

static void release(qn_prepared *p)
{
  state *st = p->state;
  if (!st) return;
  if (st->x) peer.cudnnDestroyTensorDescriptor(st->x);
  if (st->y) peer.cudnnDestroyTensorDescriptor(st->y);
  if (st->reduce) peer.cudnnDestroyReduceTensorDescriptor(st->reduce);
  peer_host->free(st);
  p->state = NULL;
}

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

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_value *x = &r->value[op->arg[0]], *y = &r->value[op->arg[1]];
  cudnnHandle_t handle;
  size_t workspace = 0;
  qn_status live = peer_live(r, p);
  if (live) return live;
  if (!peer_is_float(x) || x->dtype == QN_BF16 || y->dtype != x->dtype)
    return qn_refuse(p, "one dtype for both, which cuDNN's kernel has", "x", "f64, f32 or f16", "%s", qn_kit_name(x->dtype));
  if (!qn_is_packed(x) || !qn_is_packed(y)) return qn_refuse(p, "packed tensors alone are asked of cuDNN", "x", "row-major without gaps", "%s", "other strides");
  if (y->rank != x->rank) return qn_refuse(p, "reduced dims stay as 1", "y", "x's rank", "%d", y->rank);
  if (qn_same_dims(x, y)) return qn_refuse(p, "nothing to reduce", "x", "dims above 1 to sum over", "%s", "");
  if (!peer_countable(p, x, "x")) return QN_UNSUPPORTED;
  state *st = p->state = r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->x_value = op->arg[0];
  st->y_value = op->arg[1];
  st->dtype = x->dtype;
  if (p->traits & QN_TRAIT_FINITE_ONLY) p->math = QN_MATH_FAST;
  qn_status s = peer_describe_begin(r->device, &handle);
  if (s) {
    release(p);
    return s;
  }
  peer_shape x_shape = peer_packed(x->dim, x->rank), y_shape = peer_packed(y->dim, y->rank);
  cudnnStatus_t e = peer_describe(&st->x, x->dtype, &x_shape);
  if (!e) e = peer_describe(&st->y, y->dtype, &y_shape);
  if (!e) e = peer.cudnnCreateReduceTensorDescriptor(&st->reduce);
  if (!e) e = peer.cudnnSetReduceTensorDescriptor(st->reduce, operator_of(op->op), peer_type(x->dtype == QN_F64 ? QN_F64 : QN_F32),
                                                  CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES);
  if (!e) e = peer.cudnnGetReductionWorkspaceSize(handle, st->reduce, st->x, st->y, &workspace);
  peer_describe_end();
  p->workspace = workspace;
  if (!e) return QN_OK;
  release(p);
  return qn_refuse(p, "cuDNN knows no such reduction", "", "", "%s", peer.cudnnGetErrorString(e));
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cudnnStatus_t e = peer.cudnnSetStream(launch->instance, launch->stream);
  if (!e) e = peer.cudnnReduceTensor(launch->instance, st->reduce, NULL, 0, launch->workspace, p->workspace, peer_number(st->dtype, 1),
                                     st->x, launch->ptr[st->x_value], peer_number(st->dtype, 0), st->y, launch->ptr[st->y_value]);
  return e ? peer_failed("cudnnReduceTensor", e) : QN_OK;
}

#define SHARED .class_ = QN_CLASS_TUNED, .prepare = prepare, .run = run, .release = release
static const qn_engine rows[] = {
  { .name = "reduce", .op = QN_OP_REDUCE_SUM,   .traits = QN_TRAIT_DETERMINISTIC, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_MEAN,  .traits = QN_TRAIT_DETERMINISTIC, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_PROD,  .traits = QN_TRAIT_DETERMINISTIC, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_MAX,   .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_MIN,   .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_NORM1, .traits = QN_TRAIT_DETERMINISTIC, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_NORM2, .traits = QN_TRAIT_DETERMINISTIC, SHARED },
  { .name = "reduce", .op = QN_OP_REDUCE_AMAX,  .traits = QN_TRAIT_DETERMINISTIC, SHARED },
};
const qn_engine_list peer_reduce = { rows, sizeof rows / sizeof rows[0] };
