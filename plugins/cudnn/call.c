/* call.c -- engines by cuDNN's legacy API: reading the request, descriptors, and the run. */
#include "peer.h"

peer_call *peer_call_begin(const qn_request *r, qn_prepared *p, qn_status *status)
{
  const qn_node *op = &r->op[0];
  const qn_value *first = &r->value[op->arg[0]];
  int n = op->first[op->n_roles];
  *status = peer_live(r, p);
  if (*status) return NULL;
  *status = QN_UNSUPPORTED;
  for (int i = 0; i < n; i++) {
    const qn_value *v = &r->value[op->arg[i]];
    if (v->flags & QN_VALUE_HOST || !peer_is_float(v)) {
      qn_refuse(p, "float tensors are asked of cuDNN", "", "f64, f32, f16 or bf16", "%s",
                v->flags & QN_VALUE_HOST ? "a number" : qn_kit_name(v->dtype));
      return NULL;
    }
    if (!peer_countable(p, v, "")) return NULL;
  }
  *status = QN_NO_MEMORY;
  peer_call *c = p->state = r->host->alloc(sizeof *c);
  if (!c) return NULL;
  for (int i = 0; i < n && i < PEER_OPERANDS; i++) c->value[i] = op->arg[i];
  c->n = n;
  c->op = op->op;
  c->dtype = first->dtype;
  if (p->traits & QN_TRAIT_FINITE_ONLY) p->math = QN_MATH_FAST;
  return c;
}

bool peer_call_alike(const peer_call *c, const qn_request *r, qn_prepared *p, peer_layout layout)
{
  const qn_value *first = &r->value[c->value[0]];
  bool packed = true, last = true, dense = true;
  for (int i = 0; i < c->n; i++) {
    const qn_value *v = &r->value[c->value[i]];
    if (v->dtype != c->dtype) {
      qn_refuse(p, "one dtype for all", "", qn_kit_name(c->dtype), "%s", qn_kit_name(v->dtype));
      return false;
    }
    packed = packed && qn_is_packed(v);
    last = last && qn_is_channels_last(v);
    dense = dense && qn_is_dense(v) && qn_same_layout(v, first);
  }
  if (layout == PEER_PACKED && !packed)
    qn_refuse(p, "packed tensors alone are asked of cuDNN", "", "row-major without gaps", "%s", "other strides");
  else if (layout == PEER_CHANNELS && !packed && !last)
    qn_refuse(p, "layouts asked of cuDNN", "", "packed NCHW or NHWC", "%s", "other strides");
  else if (layout == PEER_DENSE && !dense) qn_refuse(p, "tensors that lie alike, without gaps", "", "one layout", "%s", "another");
  else return true;
  return false;
}

void peer_call_tensor(peer_call *c, int i, uint32_t dtype, const peer_shape *s)
{
  int dim[QN_MAX_RANK], stride[QN_MAX_RANK];
  for (int d = 0; d < s->rank; d++) {
    dim[d] = (int)s->dim[d];
    stride[d] = (int)s->stride[d];
  }
  if (!c->status) c->status = peer.cudnnCreateTensorDescriptor(&c->tensor[i]);
  if (!c->status) c->status = peer.cudnnSetTensorNdDescriptor(c->tensor[i], peer_type(dtype), s->rank, dim, stride);
}

void peer_call_spatial(peer_call *c, int i, const qn_value *v, bool channels_last)
{
  peer_shape s = peer_spatial(v, channels_last);
  peer_call_tensor(c, i, v->dtype, &s);
}

qn_status peer_call_refused(qn_prepared *p)
{
  peer_call_release(p);
  return QN_UNSUPPORTED;
}

qn_status peer_call_end(peer_call *c, qn_prepared *p)
{
  if (!c->status) return QN_OK;
  qn_refuse(p, "cuDNN knows no such call", "", "", "%s", peer.cudnnGetErrorString(c->status));
  return peer_call_refused(p);
}

qn_status peer_call_run(const qn_prepared *p, const qn_launch *launch)
{
  const peer_call *c = p->state;
  peer_operands o = { .handle = launch->instance, .one = peer_number(c->dtype, 1), .zero = peer_number(c->dtype, 0),
                      .workspace = launch->workspace, .bytes = p->workspace };
  for (int i = 0; i < c->n; i++) o.ptr[i] = c->value[i] >= 0 ? launch->ptr[c->value[i]] : NULL;
  cudnnStatus_t e = peer.cudnnSetStream(launch->instance, launch->stream);
  if (!e) e = c->call(c, &o);
  return e ? peer_failed(p->engine->name, e) : QN_OK;
}

void peer_call_release(qn_prepared *p)
{
  peer_call *c = p->state;
  if (!c) return;
  for (int i = 0; i < PEER_OPERANDS; i++)
    if (c->tensor[i]) peer.cudnnDestroyTensorDescriptor(c->tensor[i]);
  if (c->pool) peer.cudnnDestroyPoolingDescriptor(c->pool);
  if (c->reduce) peer.cudnnDestroyReduceTensorDescriptor(c->reduce);
  if (c->activation) peer.cudnnDestroyActivationDescriptor(c->activation);
  if (c->two) peer.cudnnDestroyOpTensorDescriptor(c->two);
  if (c->lrn) peer.cudnnDestroyLRNDescriptor(c->lrn);
  if (c->transformer) peer.cudnnDestroySpatialTransformerDescriptor(c->transformer);
  peer_host->free(c);
  p->state = NULL;
}
