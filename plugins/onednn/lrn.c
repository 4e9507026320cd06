/* lrn.c -- local response normalization by oneDNN, across channels and within, forward and backward. Even window sizes are placed
 * differently there; the gradient first runs the forward, for the workspace that it fills. Inf spreads as NaN, and powers
 * of large values overflow: math=fast. */
#include "onednn.h"

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  const qn_local_norm *norm = op->attr;
  const bool backward = op->op == QN_OP_LRN_BACKWARD;
  const dnnl_alg_kind_t how = norm->region == QN_LOCAL_ACROSS ? dnnl_lrn_across_channels : dnnl_lrn_within_channel;
  const float alpha = (float)norm->alpha, beta = (float)norm->beta, k = (float)norm->k;
  dnnl_lrn_desc_t forward, d;
  if (qn_role(op, QN_ROLE_LRN_MEANS + backward) >= 0)
    return qn_refuse(p, "oneDNN knows no means", "means", "none", "%s", "some");
  if (norm->size % 2 == 0)
    return qn_refuse(p, "oneDNN's windows reach as far before as ahead", "", "an odd size", "%lld", (long long)norm->size);
  onednn_state *s = onednn_begin(request, p);
  if (!s)
    return onednn_refused(p, QN_UNSUPPORTED);
  if (!onednn_add(s, request, p, DNNL_ARG_SRC, op->arg[backward ? 1 : 0]) ||
      !onednn_add(s, request, p, backward ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST, qn_role(op, QN_ROLE_LRN_Y + backward)) ||
      (backward && !onednn_add(s, request, p, DNNL_ARG_DIFF_DST, op->arg[0])))
    return onednn_refused(p, QN_UNSUPPORTED);
  for (int i = 1; i < s->n; i++)
    if (!dnnl_memory_desc_equal(&s->tensor[i].given, &s->tensor[0].given))
      return onednn_refused(p, qn_refuse(p, "oneDNN wants one layout for x and all of its shape", "y", "x's strides", "%s", "others"));
  const dnnl_memory_desc_t *x = &s->tensor[0].given;
  dnnl_status_t status = dnnl_lrn_forward_desc_init(&forward, backward ? dnnl_forward_training : dnnl_forward_inference, how, x, norm->size,
                                                    alpha, beta, k);
  if (status == dnnl_success && backward) {
    onednn_add_own(s, DNNL_ARG_DST);
    onednn_add_own(s, DNNL_ARG_WORKSPACE);
    status = dnnl_lrn_backward_desc_init(&d, how, x, x, norm->size, alpha, beta, k);
    if (status == dnnl_success && !onednn_first(s, request, &forward))
      status = dnnl_unimplemented;
  }
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such normalization", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, backward ? &d : &forward);
}

#define SHARED .class_ = QN_CLASS_TUNED, .prepare = prepare, .build = onednn_build, .run = onednn_run, .release = onednn_release
static const qn_engine rows[] = {
  { .name = "lrn", .op = QN_OP_LRN,          .traits = QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "lrn", .op = QN_OP_LRN_BACKWARD, .traits = QN_TRAIT_FINITE_ONLY, SHARED },
};
const qn_engine_list onednn_lrn = { rows, sizeof rows / sizeof rows[0] };
