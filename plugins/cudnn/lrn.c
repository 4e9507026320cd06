/* lrn.c -- local response normalization, across channels or within them, by cuDNN's legacy API: packed NCHW in f64, f32 and f16.
 *
 * The gradient across channels needs the forward's y, which is recomputed in the workspace. Not offered: NHWC, whose gradient subtracts
 * elements that leave the window from a running sum; means, since (x - m)^2 is expanded, which cancels. Non-finite and subnormal values
 * are not preserved: math fast; f16 within accumulates in f16. */
#include "peer.h"

enum { X, DY, Y, PARTS, DX = Y };

static cudnnStatus_t across(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnLRNCrossChannelForward(o->handle, c->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, o->one, c->tensor[0], o->ptr[X], o->zero,
                                          c->tensor[0], o->ptr[Y]);
}

static cudnnStatus_t across_backward(const peer_call *c, const peer_operands *o)
{
  cudnnTensorDescriptor_t t = c->tensor[0];
  cudnnStatus_t e = peer.cudnnLRNCrossChannelForward(o->handle, c->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, o->one, t, o->ptr[X], o->zero, t,
                                                     o->workspace);
  return e ? e : peer.cudnnLRNCrossChannelBackward(o->handle, c->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, o->one, t, o->workspace, t, o->ptr[DY],
                                                   t, o->ptr[X], o->zero, t, o->ptr[DX]);
}

static cudnnStatus_t within(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnDivisiveNormalizationForward(o->handle, c->lrn, CUDNN_DIVNORM_PRECOMPUTED_MEANS, o->one, c->tensor[0], o->ptr[X], NULL,
                                                o->workspace, (char *)o->workspace + o->bytes / 2, o->zero, c->tensor[0], o->ptr[Y]);
}

static cudnnStatus_t within_backward(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnDivisiveNormalizationBackward(o->handle, c->lrn, CUDNN_DIVNORM_PRECOMPUTED_MEANS, o->one, c->tensor[0], o->ptr[X], NULL,
                                                 o->ptr[DY], o->workspace, (char *)o->workspace + o->bytes / 2, o->zero, c->tensor[0],
                                                 o->ptr[DX], NULL);
}

/* ---- prepare -------------------------------------------------------------------------------------------- */

static void place(peer_call *c, const qn_node *op, bool backward)
{
  static const int8_t forward_role[PARTS] = { QN_ROLE_LRN_X, -1, QN_ROLE_LRN_Y };
  static const int8_t backward_role[PARTS] = { QN_ROLE_LRN_BACKWARD_X, QN_ROLE_LRN_BACKWARD_DY, QN_ROLE_LRN_BACKWARD_DX };
  for (int i = 0; i < PARTS; i++) c->value[i] = qn_role_at(op, (backward ? backward_role : forward_role)[i]);
  c->n = PARTS;
}

/* False: refused. */
static bool fits(const qn_local_norm *norm, const qn_value *x, bool means, bool backward, qn_prepared *p)
{
  const char *of = norm->region == QN_LOCAL_WITHIN ? "cuDNN's divisive normalization has two or three spatial dims"
      : "cuDNN's has up to three spatial dims";
  if (x->rank > 5 || (norm->region == QN_LOCAL_WITHIN && x->rank < 4)) qn_refuse(p, of, "x", "another rank", "rank %d", x->rank);
  else if (x->dtype == QN_BF16) qn_refuse(p, "cuDNN's has no bf16", "x", "f64, f32, f16", "%s", "bf16");
  else if (means) qn_refuse(p, "cuDNN takes means within channels and expands the square, which cancels", "means", "none", "%s", "means");
  else if (norm->size < CUDNN_LRN_MIN_N || norm->size > CUDNN_LRN_MAX_N)
    qn_refuse(p, "cuDNN's windows", "", "1 to 16 places", "%lld", (long long)norm->size);
  else if (backward && norm->region == QN_LOCAL_WITHIN && norm->size % 2 == 0)
    qn_refuse(p, "cuDNN's divisive gradient sums over the forward's window, where an even one's is its mirror image", "", "an odd size",
              "%lld", (long long)norm->size);
  else if (norm->k < CUDNN_LRN_MIN_K) qn_refuse(p, "cuDNN's least k", "", "1e-5", "%g", norm->k);
  else if (norm->beta < CUDNN_LRN_MIN_BETA) qn_refuse(p, "cuDNN's least beta", "", "0.01", "%g", norm->beta);
  return !p->refusal.rule[0];
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_local_norm *norm = op->attr;
  bool backward = op->op == QN_OP_LRN_BACKWARD, inside = norm->region == QN_LOCAL_WITHIN;
  qn_status s;
  peer_call *c = peer_call_begin(r, p, &s);
  if (!c) return s;
  if (!peer_call_alike(c, r, p, PEER_PACKED)) return peer_call_refused(p);
  place(c, op, backward);
  const qn_value *x = &r->value[c->value[X]];
  if (!fits(norm, x, qn_role(op, backward ? QN_ROLE_LRN_BACKWARD_MEANS : QN_ROLE_LRN_MEANS) >= 0, backward, p)) return peer_call_refused(p);
  peer_call_spatial(c, 0, x, false);
  if (!c->status) c->status = peer.cudnnCreateLRNDescriptor(&c->lrn);
  if (!c->status) c->status = peer.cudnnSetLRNDescriptor(c->lrn, (unsigned)norm->size, norm->alpha, norm->beta, norm->k);
  c->call = inside ? backward ? within_backward : within : backward ? across_backward : across;
  const uint64_t bytes = ((uint64_t)(qn_elements(x) * qn_kit_bytes(x->dtype)) + 255) & ~UINT64_C(255);
  p->workspace = inside ? 2 * bytes : backward ? bytes : 0;
  if (inside && qn_kit_bytes(x->dtype) == 2) {
    p->numerics.store = x->dtype;
    p->traits |= QN_TRAIT_REDUCED;
  }
  return peer_call_end(c, p);
}

#define SHARED .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY, .prepare = prepare, .run = peer_call_run, .release = peer_call_release
static const qn_engine rows[] = {
  { .name = "lrn", .op = QN_OP_LRN,          SHARED },
  { .name = "lrn", .op = QN_OP_LRN_BACKWARD, SHARED },
};
const qn_engine_list peer_lrn = { rows, sizeof rows / sizeof rows[0] };
