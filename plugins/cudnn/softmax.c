/* softmax.c -- softmax and log_softmax by cuDNN's kernels, forward and backward, on packed tensors of one dtype.
 *
 * A row of -Inf gives 0 where the formula has NaN, and of f16 and bf16 the exponentials are kept in that dtype: math fast. */
#include "peer.h"

typedef struct state {
  cudnnTensorDescriptor_t tensor;         /* all tensors lie alike: [outer, n, inner, 1], along the second dim */
  cudnnSoftmaxAlgorithm_t algorithm;
  int32_t value[3], n_values;             /* x, y; or y, dy, dx */
  uint32_t dtype;
} state;

static void release(qn_prepared *p)
{
  state *st = p->state;
  if (st && st->tensor) peer.cudnnDestroyTensorDescriptor(st->tensor);
  peer_host->free(st);
  p->state = NULL;
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_axis *axis = op->attr;
  const qn_value *x = &r->value[op->arg[0]];
  int along = (int)(axis->axis < 0 ? axis->axis + x->rank : axis->axis);
  int64_t outer = 1, inner = 1;
  qn_status live = peer_live(r, p);
  if (live) return live;
  int n_values = op->first[op->n_roles];
  for (int i = 0; i < n_values; i++) {
    const qn_value *v = &r->value[op->arg[i]];
    if (!peer_is_float(v) || v->dtype != x->dtype) return qn_refuse(p, "one dtype for all", "", "f64, f32, f16 or bf16", "%s", qn_kit_name(v->dtype));
    if (!qn_is_packed(v)) return qn_refuse(p, "packed tensors alone are asked of cuDNN", "", "row-major without gaps", "%s", "other strides");
  }
  for (int d = 0; d < x->rank; d++) {
    if (d < along) outer *= x->dim[d];
    if (d > along) inner *= x->dim[d];
  }
  if (!peer_countable(p, x, "x")) return QN_UNSUPPORTED;
  p->math = QN_MATH_FAST;
  if (x->dtype == QN_F16 || x->dtype == QN_BF16) {
    p->numerics.store = x->dtype;
    p->traits |= QN_TRAIT_REDUCED;
  }
  state *st = p->state = r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  for (int i = 0; i < n_values; i++) st->value[i] = op->arg[i];
  st->n_values = n_values;
  st->dtype = x->dtype;
  st->algorithm = op->op == QN_OP_LOG_SOFTMAX || op->op == QN_OP_LOG_SOFTMAX_BACKWARD ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE;
  peer_shape shape = peer_packed((int64_t[]){ outer, x->dim[along], inner }, 3);
  cudnnStatus_t e = peer_describe(&st->tensor, x->dtype, &shape);
  if (!e) return QN_OK;
  release(p);
  return qn_refuse(p, "cuDNN knows no such tensor", "x", "", "%s", peer.cudnnGetErrorString(e));
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  const void *alpha = peer_number(st->dtype, 1), *beta = peer_number(st->dtype, 0);
  void *const *ptr = launch->ptr;
  cudnnStatus_t e = peer.cudnnSetStream(launch->instance, launch->stream);
  if (!e && st->n_values == 2)
    e = peer.cudnnSoftmaxForward(launch->instance, st->algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, alpha, st->tensor, ptr[st->value[0]], beta,
                                 st->tensor, ptr[st->value[1]]);
  else if (!e)
    e = peer.cudnnSoftmaxBackward(launch->instance, st->algorithm, CUDNN_SOFTMAX_MODE_CHANNEL, alpha, st->tensor, ptr[st->value[0]], st->tensor,
                                  ptr[st->value[1]], beta, st->tensor, ptr[st->value[2]]);
  return e ? peer_failed("cudnnSoftmax", e) : QN_OK;
}

#define SHARED .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, .prepare = prepare, .run = run, .release = release
static const qn_engine rows[] = {
  { .name = "softmax", .op = QN_OP_SOFTMAX,              SHARED },
  { .name = "softmax", .op = QN_OP_LOG_SOFTMAX,          SHARED },
  { .name = "softmax", .op = QN_OP_SOFTMAX_BACKWARD,     SHARED },
  { .name = "softmax", .op = QN_OP_LOG_SOFTMAX_BACKWARD, SHARED },
};
const qn_engine_list peer_softmax = { rows, sizeof rows / sizeof rows[0] };
