/* softmax.c -- softmax and log_softmax, forward and backward, by oneDNN's.
 *
 * Its exponential loses NaN, and a row all -Inf is no NaN to it, so it vouches for finite data only: math=fast. */
#include "onednn.h"

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  const qn_axis *axis = op->attr;
  bool log = op->op == QN_OP_LOG_SOFTMAX || op->op == QN_OP_LOG_SOFTMAX_BACKWARD;
  bool backward = op->op == QN_OP_SOFTMAX_BACKWARD || op->op == QN_OP_LOG_SOFTMAX_BACKWARD;
  static const int role[2][3] = { { DNNL_ARG_SRC, DNNL_ARG_DST }, { DNNL_ARG_DST, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC } };
  dnnl_alg_kind_t how = log ? dnnl_softmax_log : dnnl_softmax_accurate;
  dnnl_softmax_v2_desc_t d;
  dnnl_status_t status;
  onednn_state *s = onednn_begin(request, p);
  if (!s)
    return onednn_refused(p, QN_UNSUPPORTED);
  for (int32_t i = 0; i < op->first[op->n_roles]; i++)
    if (!onednn_add(s, request, p, role[backward][i], op->arg[i]))
      return onednn_refused(p, QN_UNSUPPORTED);
  int dim = (int)(axis->axis < 0 ? axis->axis + request->value[op->arg[0]].rank : axis->axis);
  if (backward)
    status = dnnl_softmax_v2_backward_desc_init(&d, how, &s->tensor[2].given, &s->tensor[1].given, &s->tensor[0].given, dim);
  else
    status = dnnl_softmax_v2_forward_desc_init(&d, dnnl_forward_inference, how, &s->tensor[0].given, &s->tensor[1].given, dim);
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such softmax", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, &d);
}

#define SHARED .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_FINITE_ONLY, .prepare = prepare, .build = onednn_build, \
               .run = onednn_run, .release = onednn_release
static const qn_engine rows[] = {
  { .name = "softmax", .op = QN_OP_SOFTMAX,              SHARED },
  { .name = "softmax", .op = QN_OP_SOFTMAX_BACKWARD,     SHARED },
  { .name = "softmax", .op = QN_OP_LOG_SOFTMAX,          SHARED },
  { .name = "softmax", .op = QN_OP_LOG_SOFTMAX_BACKWARD, SHARED },
};
const qn_engine_list onednn_softmax = { rows, sizeof rows / sizeof rows[0] };
