/* pointwise.c -- activations, and sums, products and extremes of two tensors, by cuDNN's kernels; tensors of one packed layout.
 *
 * What NaN and Inf become in these is nowhere said and differs by dtype, so they vouch for finite data only: math fast. Its elu
 * has no digits near 0, its sigmoid and silu make subnormal f32 results 0: those are not here. */
#include "peer.h"

typedef struct state {
  cudnnTensorDescriptor_t     tensor;     /* all tensors lie alike: one row */
  cudnnActivationDescriptor_t activation; /* of one operand */
  cudnnOpTensorDescriptor_t   two;        /* of two */
  int32_t a, b, y;                        /* values; b -1: none */
  uint32_t dtype;
} state;

static void release(qn_prepared *p)
{
  state *st = p->state;
  if (!st) return;
  if (st->tensor) peer.cudnnDestroyTensorDescriptor(st->tensor);
  if (st->activation) peer.cudnnDestroyActivationDescriptor(st->activation);
  if (st->two) peer.cudnnDestroyOpTensorDescriptor(st->two);
  peer_host->free(st);
  p->state = NULL;
}

static cudnnStatus_t describe_function(state *st, const qn_node *op, cudnnDataType_t compute)
{
  const qn_pointwise *attr = op->attr;
  cudnnActivationMode_t mode = op->op == QN_OP_RELU ? CUDNN_ACTIVATION_RELU : op->op == QN_OP_SIGMOID ? CUDNN_ACTIVATION_SIGMOID
                             : op->op == QN_OP_TANH ? CUDNN_ACTIVATION_TANH : CUDNN_ACTIVATION_SWISH;
  cudnnOpTensorOp_t two = op->op == QN_OP_ADD ? CUDNN_OP_TENSOR_ADD : op->op == QN_OP_MUL ? CUDNN_OP_TENSOR_MUL
                        : op->op == QN_OP_MIN ? CUDNN_OP_TENSOR_MIN : CUDNN_OP_TENSOR_MAX;
  cudnnStatus_t e;
  if (st->b >= 0) {
    e = peer.cudnnCreateOpTensorDescriptor(&st->two);
    return e ? e : peer.cudnnSetOpTensorDescriptor(st->two, two, compute, CUDNN_PROPAGATE_NAN);
  }
  e = peer.cudnnCreateActivationDescriptor(&st->activation);
  if (!e) e = peer.cudnnSetActivationDescriptor(st->activation, mode, CUDNN_PROPAGATE_NAN, 0);
  if (!e && mode == CUDNN_ACTIVATION_SWISH) e = peer.cudnnSetActivationDescriptorSwishBeta(st->activation, attr->beta);
  return e;
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_value *a = &r->value[op->arg[0]];
  int n_values = op->first[op->n_roles];
  qn_status live = peer_live(r, p);
  if (live) return live;
  for (int i = 0; i < n_values; i++) {
    const qn_value *v = &r->value[op->arg[i]];
    if (v->flags & QN_VALUE_HOST || !peer_is_float(v) || v->dtype != a->dtype || (n_values == 3 && v->dtype == QN_BF16))
      return qn_refuse(p, "tensors of one dtype", "", "f64, f32, f16 or, of one operand, bf16", "%s", qn_kit_name(v->dtype));
    if (!qn_is_dense(v) || !qn_same_layout(v, a)) return qn_refuse(p, "tensors that lie alike, without gaps", "", "one layout", "%s", "another");
  }
  int64_t n = qn_elements(a);
  if (!peer_countable(p, a, "")) return QN_UNSUPPORTED;
  if (a->dtype == QN_F32 && (op->op == QN_OP_SIGMOID || op->op == QN_OP_SILU))
    return qn_refuse(p, "cuDNN's f32 kernel makes subnormal results 0", "x", "another dtype", "%s", "f32");
  state *st = p->state = r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->a = op->arg[0];
  st->b = n_values == 3 ? op->arg[1] : -1;
  st->y = op->arg[n_values - 1];
  if (st->b >= 0 && r->value[st->y].over == st->b) {        /* the output may lie over the first operand alone; all four commute */
    st->b = st->a;
    st->a = op->arg[1];
  }
  st->dtype = a->dtype;
  p->math = QN_MATH_FAST;
  peer_shape row = peer_packed((int64_t[]){ 1, 1, 1, n }, 4);
  cudnnStatus_t e = peer_describe(&st->tensor, a->dtype, &row);
  if (!e) e = describe_function(st, op, peer_type(st->dtype == QN_F64 ? QN_F64 : QN_F32));
  if (!e) return QN_OK;
  release(p);
  return qn_refuse(p, "cuDNN knows no such function", "", "", "%s", peer.cudnnGetErrorString(e));
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  const void *alpha = peer_number(st->dtype, 1), *beta = peer_number(st->dtype, 0);
  void *const *ptr = launch->ptr;
  cudnnStatus_t e = peer.cudnnSetStream(launch->instance, launch->stream);
  if (!e && st->b < 0)
    e = peer.cudnnActivationForward(launch->instance, st->activation, alpha, st->tensor, ptr[st->a], beta, st->tensor, ptr[st->y]);
  else if (!e)
    e = peer.cudnnOpTensor(launch->instance, st->two, alpha, st->tensor, ptr[st->a], alpha, st->tensor, ptr[st->b], beta, st->tensor, ptr[st->y]);
  return e ? peer_failed(st->b < 0 ? "cudnnActivationForward" : "cudnnOpTensor", e) : QN_OK;
}

#define SHARED .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, .prepare = prepare, .run = run, .release = release
static const qn_engine rows[] = {
  { .name = "activation", .op = QN_OP_RELU,    SHARED },
  { .name = "activation", .op = QN_OP_SIGMOID, SHARED },
  { .name = "activation", .op = QN_OP_TANH,    SHARED },
  { .name = "activation", .op = QN_OP_SILU,    SHARED },
  { .name = "op_tensor",  .op = QN_OP_ADD,     SHARED },
  { .name = "op_tensor",  .op = QN_OP_MUL,     SHARED },
  { .name = "op_tensor",  .op = QN_OP_MIN,     SHARED },
  { .name = "op_tensor",  .op = QN_OP_MAX,     SHARED },
};
const qn_engine_list peer_pointwise = { rows, sizeof rows / sizeof rows[0] };
