/* pool.c -- pooling forward by cuDNN's kernels, 1 to 3 spatial dims, packed NCHW or NHWC, without indices.
 *
 * The largest of -Inf alone is the least finite number, so the maximum vouches for finite data only: math fast. */
#include "peer.h"

typedef struct state {
  cudnnTensorDescriptor_t  x, y;
  cudnnPoolingDescriptor_t pool;
  int32_t x_value, y_value;
  uint32_t dtype;
} state;

static void release(qn_prepared *p)
{
  state *st = p->state;
  if (!st) return;
  if (st->x) peer.cudnnDestroyTensorDescriptor(st->x);
  if (st->y) peer.cudnnDestroyTensorDescriptor(st->y);
  if (st->pool) peer.cudnnDestroyPoolingDescriptor(st->pool);
  peer_host->free(st);
  p->state = NULL;
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_pool *pool = op->attr;
  const qn_value *x = &r->value[op->arg[0]], *y = &r->value[op->arg[1]];
  int spatial = x->rank - 2, n = spatial < 2 ? 2 : spatial, window[3] = { 1, 1, 1 }, stride[3] = { 1, 1, 1 }, before[3] = { 0 };
  qn_status live = peer_live(r, p);
  if (live) return live;
  if (op->op == QN_OP_POOL_MAX && qn_role(op, QN_ROLE_POOL_MAX_INDICES) >= 0)
    return qn_refuse(p, "cuDNN's pooling gives no indices of ours", "indices", "none", "%s", "indices wanted");
  if (!peer_is_float(x) || y->dtype != x->dtype) return qn_refuse(p, "one dtype for all", "x", "f64, f32, f16 or bf16", "%s", qn_kit_name(x->dtype));
  bool last = qn_is_channels_last(x) && qn_is_channels_last(y);
  if (!last && (!qn_is_packed(x) || !qn_is_packed(y))) return qn_refuse(p, "layouts asked of cuDNN", "x", "packed NCHW or NHWC", "%s", "other strides");
  if (!peer_countable(p, x, "x")) return QN_UNSUPPORTED;
  for (int i = 0; i < spatial; i++) {
    int to = i + n - spatial;
    int64_t w = pool->window[i] ? pool->window[i] : x->dim[2 + i], s = pool->stride[i] ? pool->stride[i] : w;
    if (pool->dilation[i] != 1 && w > 1) return qn_refuse(p, "cuDNN's windows have no gaps", "", "dilation 1", "%lld", (long long)pool->dilation[i]);
    if (pool->pad_before[i] != pool->pad_after[i] || pool->pad_before[i] >= w)
      return qn_refuse(p, "cuDNN pads alike on both sides, less than a window", "", "equal padding", "%lld:%lld", (long long)pool->pad_before[i],
                       (long long)pool->pad_after[i]);
    if (y->dim[2 + i] != (x->dim[2 + i] + 2 * pool->pad_before[i] - w) / s + 1)
      return qn_refuse(p, "cuDNN starts no window that hangs over the end", "", "ceil_mode 0", "%s", "ceil_mode 1");
    if (w > INT32_MAX || s > INT32_MAX) return qn_refuse(p, "cuDNN counts in 32 bits", "", "smaller windows and strides", "%lld", (long long)s);
    window[to] = (int)w;
    stride[to] = (int)s;
    before[to] = (int)pool->pad_before[i];
  }
  cudnnPoolingMode_t mode = op->op == QN_OP_POOL_MAX ? CUDNN_POOLING_MAX_DETERMINISTIC
                          : pool->include_pad ? CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
  state *st = p->state = r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->x_value = op->arg[0];
  st->y_value = op->arg[1];
  st->dtype = x->dtype;
  if (p->traits & QN_TRAIT_FINITE_ONLY) p->math = QN_MATH_FAST;
  peer_shape x_shape = peer_spatial(x, last), y_shape = peer_spatial(y, last);
  cudnnStatus_t e = peer_describe(&st->x, x->dtype, &x_shape);
  if (!e) e = peer_describe(&st->y, y->dtype, &y_shape);
  if (!e) e = peer.cudnnCreatePoolingDescriptor(&st->pool);
  if (!e) e = peer.cudnnSetPoolingNdDescriptor(st->pool, mode, CUDNN_PROPAGATE_NAN, n, window, before, stride);
  if (!e) return QN_OK;
  release(p);
  return qn_refuse(p, "cuDNN knows no such pooling", "", "", "%s", peer.cudnnGetErrorString(e));
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cudnnStatus_t e = peer.cudnnSetStream(launch->instance, launch->stream);
  if (!e) e = peer.cudnnPoolingForward(launch->instance, st->pool, peer_number(st->dtype, 1), st->x, launch->ptr[st->x_value],
                                       peer_number(st->dtype, 0), st->y, launch->ptr[st->y_value]);
  return e ? peer_failed("cudnnPoolingForward", e) : QN_OK;
}

#define SHARED .class_ = QN_CLASS_TUNED, .prepare = prepare, .run = run, .release = release
static const qn_engine rows[] = {
  { .name = "pooling", .op = QN_OP_POOL_MAX,     .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "pooling", .op = QN_OP_POOL_AVERAGE, .traits = QN_TRAIT_DETERMINISTIC,                        SHARED },
};
const qn_engine_list peer_pool = { rows, sizeof rows / sizeof rows[0] };
