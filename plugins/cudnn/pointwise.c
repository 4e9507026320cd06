/* pointwise.c -- activations and two of their gradients, and add, mul, min, max of two tensors, by cuDNN's kernels; all tensors
 * in one packed layout.
 *
 * The treatment of NaN and Inf is undocumented and differs by dtype, so these engines are for finite data only: math fast. Not offered:
 * elu, which has no precision near 0; f32 sigmoid, silu and its gradient, because sigmoid flushes subnormal results. */
#include "peer.h"

/* ---- one operand: x, y; or dy, x, dx -------------------------------------------------------------- */

static cudnnStatus_t activate(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnActivationForward(o->handle, c->activation, o->one, c->tensor[0], o->ptr[0], o->zero, c->tensor[0], o->ptr[1]);
}

/* relu's and silu's need no y: pass x, which has the sign of relu's y. */
static cudnnStatus_t activate_backward(const peer_call *c, const peer_operands *o)
{
  cudnnTensorDescriptor_t t = c->tensor[0];
  return peer.cudnnActivationBackward(o->handle, c->activation, o->one, t, o->ptr[1], t, o->ptr[0], t, o->ptr[1], o->zero, t, o->ptr[2]);
}

static void describe_activation(peer_call *c, const qn_pointwise *attr)
{
  bool silu = c->op == QN_OP_SILU || c->op == QN_OP_SILU_BACKWARD;
  cudnnActivationMode_t mode = c->op == QN_OP_SIGMOID ? CUDNN_ACTIVATION_SIGMOID : c->op == QN_OP_TANH ? CUDNN_ACTIVATION_TANH
                             : silu ? CUDNN_ACTIVATION_SWISH : CUDNN_ACTIVATION_RELU;
  if (!c->status) c->status = peer.cudnnCreateActivationDescriptor(&c->activation);
  if (!c->status) c->status = peer.cudnnSetActivationDescriptor(c->activation, mode, CUDNN_PROPAGATE_NAN, 0);
  if (!c->status && silu) c->status = peer.cudnnSetActivationDescriptorSwishBeta(c->activation, attr->beta);
}

/* ---- two operands: a, b, y ------------------------------------------------------------------------ */

static cudnnStatus_t combine(const peer_call *c, const peer_operands *o)
{
  cudnnTensorDescriptor_t t = c->tensor[0];
  return peer.cudnnOpTensor(o->handle, c->two, o->one, t, o->ptr[0], o->one, t, o->ptr[1], o->zero, t, o->ptr[2]);
}

static void describe_combination(peer_call *c)
{
  cudnnOpTensorOp_t how = c->op == QN_OP_ADD ? CUDNN_OP_TENSOR_ADD : c->op == QN_OP_MUL ? CUDNN_OP_TENSOR_MUL
                        : c->op == QN_OP_MIN ? CUDNN_OP_TENSOR_MIN : CUDNN_OP_TENSOR_MAX;
  if (!c->status) c->status = peer.cudnnCreateOpTensorDescriptor(&c->two);
  if (!c->status)
    c->status = peer.cudnnSetOpTensorDescriptor(c->two, how, peer_type(c->dtype == QN_F64 ? QN_F64 : QN_F32), CUDNN_PROPAGATE_NAN);
}

/* ---- prepare --------------------------------------------------------------------------------------- */

/* Common to all. NULL: refused. */
static peer_call *begin(const qn_request *r, qn_prepared *p, qn_status *status)
{
  peer_call *c = peer_call_begin(r, p, status);
  if (!c) return NULL;
  if (!peer_call_alike(c, r, p, PEER_DENSE)) {
    *status = peer_call_refused(p);
    return NULL;
  }
  peer_shape row = peer_packed((int64_t[]){ 1, 1, 1, qn_elements(&r->value[c->value[0]]) }, 4);
  peer_call_tensor(c, 0, c->dtype, &row);
  return c;
}

static qn_status prepare_activation(const qn_request *r, qn_prepared *p)
{
  qn_status s;
  peer_call *c = begin(r, p, &s);
  if (!c) return s;
  if (c->dtype == QN_F32 && (c->op == QN_OP_SIGMOID || c->op == QN_OP_SILU || c->op == QN_OP_SILU_BACKWARD)) {
    qn_refuse(p, "cuDNN's f32 kernel makes subnormal sigmoids 0", "x", "another dtype", "%s", "f32");
    return peer_call_refused(p);
  }
  describe_activation(c, r->op[0].attr);
  c->call = c->n == 2 ? activate : activate_backward;
  return peer_call_end(c, p);
}

static qn_status prepare_two(const qn_request *r, qn_prepared *p)
{
  qn_status s;
  peer_call *c = begin(r, p, &s);
  if (!c) return s;
  if (c->dtype == QN_BF16) {
    qn_refuse(p, "dtypes of cuDNN's kernel", "", "f64, f32 or f16", "%s", "bf16");
    return peer_call_refused(p);
  }
  if (r->value[c->value[2]].over == c->value[1]) {          /* the output may share the first operand's memory only; all four commute */
    int32_t b = c->value[1];
    c->value[1] = c->value[0];
    c->value[0] = b;
  }
  describe_combination(c);
  c->call = combine;
  return peer_call_end(c, p);
}

#define SHARED .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, .run = peer_call_run, .release = peer_call_release
static const qn_engine rows[] = {
  { .name = "activation", .op = QN_OP_RELU,          .prepare = prepare_activation, SHARED },
  { .name = "activation", .op = QN_OP_SIGMOID,       .prepare = prepare_activation, SHARED },
  { .name = "activation", .op = QN_OP_TANH,          .prepare = prepare_activation, SHARED },
  { .name = "activation", .op = QN_OP_SILU,          .prepare = prepare_activation, SHARED },
  { .name = "activation", .op = QN_OP_RELU_BACKWARD, .prepare = prepare_activation, SHARED },
  { .name = "activation", .op = QN_OP_SILU_BACKWARD, .prepare = prepare_activation, SHARED },
  { .name = "op_tensor",  .op = QN_OP_ADD,           .prepare = prepare_two,        SHARED },
  { .name = "op_tensor",  .op = QN_OP_MUL,           .prepare = prepare_two,        SHARED },
  { .name = "op_tensor",  .op = QN_OP_MIN,           .prepare = prepare_two,        SHARED },
  { .name = "op_tensor",  .op = QN_OP_MAX,           .prepare = prepare_two,        SHARED },
};
const qn_engine_list peer_pointwise = { rows, sizeof rows / sizeof rows[0] };
