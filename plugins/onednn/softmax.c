/* softmax.c -- the gradients of softmax and log_softmax by oneDNN.
 *
 * The forward ops are not offered, as they meet no bound of ours: oneDNN's exponential flushes subnormal results, its
 * logarithm is up to 2e-6 off near 1. Its exponential mistreats NaN, so these two are for finite data only: math=fast. */
#include "onednn.h"

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  static const int role[] = { DNNL_ARG_DST, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC };
  const qn_node *op = &request->op[0];
  const qn_axis *axis = op->attr;
  dnnl_alg_kind_t how = op->op == QN_OP_LOG_SOFTMAX_BACKWARD ? dnnl_softmax_log : dnnl_softmax_accurate;
  dnnl_softmax_v2_desc_t d;
  onednn_state *s = onednn_begin_with(request, p, 3, role);
  if (!s)
    return QN_UNSUPPORTED;
  int dim = (int)(axis->axis < 0 ? axis->axis + request->value[op->arg[0]].rank : axis->axis);
  dnnl_status_t status = dnnl_softmax_v2_backward_desc_init(&d, how, &s->tensor[2].given, &s->tensor[1].given,
                                                            &s->tensor[0].given, dim);
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such softmax", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, &d);
}

#define SHARED .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_FINITE_ONLY, .prepare = prepare, .build = onednn_build, \
               .run = onednn_run, .release = onednn_release
static const qn_engine rows[] = {
  { .name = "softmax", .op = QN_OP_SOFTMAX_BACKWARD,     SHARED },
  { .name = "softmax", .op = QN_OP_LOG_SOFTMAX_BACKWARD, SHARED },
};
const qn_engine_list onednn_softmax = { rows, sizeof rows / sizeof rows[0] };
