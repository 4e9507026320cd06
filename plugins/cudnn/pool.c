/* pool.c -- pooling by cuDNN's kernels, forward and backward, 1 to 3 spatial dims, packed NCHW or NHWC, without indices.
 *
 * The maximum of -Inf alone comes out as the lowest finite number, and the sum of an average may overflow where the mean does not: both
 * are for finite data of moderate size only, math fast. Max pooling's gradient needs the forward's y, recomputed in the workspace. */
#include "peer.h"

/* x and y: the larger and the smaller side. False: refused. */
static bool fits(qn_prepared *p, const qn_pool *pool, const qn_value *x, const qn_value *y)
{
  for (int i = 0; i < x->rank - 2; i++) {
    int64_t w = pool->window[i] ? pool->window[i] : x->dim[2 + i], s = pool->stride[i] ? pool->stride[i] : w;
    if (pool->dilation[i] != 1 && w > 1)
      qn_refuse(p, "cuDNN's windows have no gaps", "", "dilation 1", "%lld", (long long)pool->dilation[i]);
    else if (pool->pad_before[i] != pool->pad_after[i] || pool->pad_before[i] >= w)
      qn_refuse(p, "cuDNN pads alike on both sides, less than a window", "", "equal padding", "%lld:%lld", (long long)pool->pad_before[i],
                (long long)pool->pad_after[i]);
    else if (y->dim[2 + i] != (x->dim[2 + i] + 2 * pool->pad_before[i] - w) / s + 1)
      qn_refuse(p, "cuDNN starts no window that hangs over the end", "", "ceil_mode 0", "%s", "ceil_mode 1");
    else if (w > INT32_MAX || s > INT32_MAX)
      qn_refuse(p, "cuDNN counts in 32 bits", "", "smaller windows and strides", "%lld", (long long)s);
    else continue;
    return false;
  }
  return true;
}

static void describe_windows(peer_call *c, const qn_pool *pool, const qn_value *x, cudnnPoolingMode_t mode)
{
  int spatial = x->rank - 2, n = spatial < 2 ? 2 : spatial, window[3] = { 1, 1, 1 }, stride[3] = { 1, 1, 1 }, before[3] = { 0 };
  for (int i = 0; i < spatial; i++) {
    int to = i + n - spatial;
    window[to] = (int)(pool->window[i] ? pool->window[i] : x->dim[2 + i]);
    stride[to] = pool->stride[i] ? (int)pool->stride[i] : window[to];
    before[to] = (int)pool->pad_before[i];
  }
  if (!c->status) c->status = peer.cudnnCreatePoolingDescriptor(&c->pool);
  if (!c->status) c->status = peer.cudnnSetPoolingNdDescriptor(c->pool, mode, CUDNN_PROPAGATE_NAN, n, window, before, stride);
}

enum { SMALL, LARGE };                    /* the descriptors of y (dy) and of x (dx) */

static cudnnStatus_t forward(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnPoolingForward(o->handle, c->pool, o->one, c->tensor[LARGE], o->ptr[0], o->zero, c->tensor[SMALL], o->ptr[1]);
}

/* dy, x, dx. */
static cudnnStatus_t backward_max(const peer_call *c, const peer_operands *o)
{
  cudnnTensorDescriptor_t x = c->tensor[LARGE], y = c->tensor[SMALL];
  cudnnStatus_t e = peer.cudnnPoolingForward(o->handle, c->pool, o->one, x, o->ptr[1], o->zero, y, o->workspace);
  return e ? e : peer.cudnnPoolingBackward(o->handle, c->pool, o->one, y, o->workspace, y, o->ptr[0], x, o->ptr[1], o->zero, x, o->ptr[2]);
}

/* dy, dx; x and y are not used, but must be passed. */
static cudnnStatus_t backward_average(const peer_call *c, const peer_operands *o)
{
  cudnnTensorDescriptor_t x = c->tensor[LARGE], y = c->tensor[SMALL];
  return peer.cudnnPoolingBackward(o->handle, c->pool, o->one, y, o->ptr[0], y, o->ptr[0], x, o->ptr[1], o->zero, x, o->ptr[1]);
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_pool *pool = op->attr;
  bool largest = op->op == QN_OP_POOL_MAX || op->op == QN_OP_POOL_MAX_BACKWARD, backward = op->op == QN_OP_POOL_MAX_BACKWARD ||
      op->op == QN_OP_POOL_AVERAGE_BACKWARD;
  int indices = op->op == QN_OP_POOL_MAX ? qn_role(op, QN_ROLE_POOL_MAX_INDICES) : op->op == QN_OP_POOL_MAX_BACKWARD
      ? qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_INDICES) : -1;
  qn_status s;
  if (indices >= 0) return qn_refuse(p, "cuDNN's pooling knows no indices of ours", "indices", "none", "%s", "indices");
  peer_call *c = peer_call_begin(r, p, &s);
  if (!c) return s;
  const qn_value *in = &r->value[c->value[0]], *out = &r->value[c->value[c->n - 1]], *x = backward ? out : in, *y = backward ? in : out;
  if (!peer_call_alike(c, r, p, PEER_CHANNELS) || !fits(p, pool, x, y)) return peer_call_refused(p);
  bool last = !qn_is_packed(x) || !qn_is_packed(y);
  peer_call_spatial(c, LARGE, x, last);
  peer_call_spatial(c, SMALL, y, last);
  describe_windows(c, pool, x, largest ? CUDNN_POOLING_MAX_DETERMINISTIC
                               : pool->include_pad ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING
                                   : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING);
  c->call = !backward ? forward : largest ? backward_max : backward_average;
  if (backward && largest) p->workspace = (uint64_t)(qn_elements(y) * qn_kit_bytes(y->dtype));
  return peer_call_end(c, p);
}

#define SHARED .class_ = QN_CLASS_TUNED, .prepare = prepare, .run = peer_call_run, .release = peer_call_release
static const qn_engine rows[] = {
  { .name = "pooling", .op = QN_OP_POOL_MAX,              .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "pooling", .op = QN_OP_POOL_MAX_BACKWARD,     .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "pooling", .op = QN_OP_POOL_AVERAGE,          .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "pooling", .op = QN_OP_POOL_AVERAGE_BACKWARD, .traits = QN_TRAIT_DETERMINISTIC,                        SHARED },
};
const qn_engine_list peer_pool = { rows, sizeof rows / sizeof rows[0] };
