/* softmax.c -- softmax and log_softmax by cuDNN's kernels, forward and backward, on packed tensors of one dtype.
 *
 * A row of -Inf gives 0 instead of NaN, and for f16 and bf16 the exponentials are kept in that dtype: math fast. */
#include "peer.h"

static cudnnSoftmaxAlgorithm_t algorithm_of(const peer_call *c)
{
  return c->op == QN_OP_LOG_SOFTMAX || c->op == QN_OP_LOG_SOFTMAX_BACKWARD ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;
}

/* x, y: the same layout. */
static cudnnStatus_t forward(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnSoftmaxForward(o->handle, algorithm_of(c), CUDNN_SOFTMAX_MODE_CHANNEL, o->one, c->tensor[0], o->ptr[0], o->zero,
                                  c->tensor[0], o->ptr[1]);
}

/* y, dy, dx. */
static cudnnStatus_t backward(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnSoftmaxBackward(o->handle, algorithm_of(c), CUDNN_SOFTMAX_MODE_CHANNEL, o->one, c->tensor[0], o->ptr[0], c->tensor[0],
                                   o->ptr[1], o->zero, c->tensor[0], o->ptr[2]);
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_axis *axis = r->op[0].attr;
  int64_t outer = 1, inner = 1;
  qn_status s;
  peer_call *c = peer_call_begin(r, p, &s);
  if (!c) return s;
  if (!peer_call_alike(c, r, p, PEER_PACKED)) return peer_call_refused(p);
  const qn_value *x = &r->value[c->value[0]];
  int along = (int)(axis->axis < 0 ? axis->axis + x->rank : axis->axis);
  for (int d = 0; d < x->rank; d++) {
    if (d < along) outer *= x->dim[d];
    if (d > along) inner *= x->dim[d];
  }
  if (x->dtype == QN_F16 || x->dtype == QN_BF16) {
    p->numerics.store = x->dtype;
    p->traits |= QN_TRAIT_REDUCED;
  }
  peer_shape shape = peer_packed((int64_t[]){ outer, x->dim[along], inner }, 3);
  peer_call_tensor(c, 0, x->dtype, &shape);
  c->call = c->n == 2 ? forward : backward;
  return peer_call_end(c, p);
}

#define SHARED .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, .prepare = prepare, .run = peer_call_run, .release = peer_call_release
static const qn_engine rows[] = {
  { .name = "softmax", .op = QN_OP_SOFTMAX,              SHARED },
  { .name = "softmax", .op = QN_OP_LOG_SOFTMAX,          SHARED },
  { .name = "softmax", .op = QN_OP_SOFTMAX_BACKWARD,     SHARED },
  { .name = "softmax", .op = QN_OP_LOG_SOFTMAX_BACKWARD, SHARED },
};
const qn_engine_list peer_softmax = { rows, sizeof rows / sizeof rows[0] };
