/* reduction.c -- reductions by oneDNN, which keeps reduced dims as 1. Its maximum and minimum lose NaN, and its mean's sum overflows where
 * the mean does not: finite data of moderate size only, math=fast. */
#include "onednn.h"

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  static const int role[] = { DNNL_ARG_SRC, DNNL_ARG_DST };
  const qn_node *op = &request->op[0];
  dnnl_alg_kind_t how = op->op == QN_OP_REDUCE_MEAN ? dnnl_reduction_mean : op->op == QN_OP_REDUCE_PROD ? dnnl_reduction_mul
                        : op->op == QN_OP_REDUCE_MAX ? dnnl_reduction_max : op->op == QN_OP_REDUCE_MIN ? dnnl_reduction_min
                            : dnnl_reduction_sum;
  dnnl_reduction_desc_t d;
  if (qn_same_dims(&request->value[op->arg[0]], &request->value[op->arg[1]]))
    return qn_refuse(p, "nothing to reduce", "x", "dims above 1 to sum over", "%s", "");
  const int64_t terms = qn_elements(&request->value[op->arg[0]]) / qn_max_i64(1, qn_elements(&request->value[op->arg[1]]));
  if ((how == dnnl_reduction_mean || how == dnnl_reduction_sum) && terms > 4096)
    return qn_refuse(p, "oneDNN's sums run over all terms in f32", "x", "at most 4096 terms", "%lld", (long long)terms);
  onednn_state *s = onednn_begin_with(request, p, 2, role);
  if (!s)
    return QN_UNSUPPORTED;
  dnnl_status_t status = dnnl_reduction_desc_init(&d, how, &s->tensor[0].given, &s->tensor[1].given, 0, 0);
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such reduction", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, &d);
}

#define SHARED .class_ = QN_CLASS_TUNED, .prepare = prepare, .build = onednn_build, .run = onednn_run, .release = onednn_release
static const qn_engine rows[] = {
  { .name = "reduction", .op = QN_OP_REDUCE_SUM,  SHARED },
  { .name = "reduction", .op = QN_OP_REDUCE_MEAN, .traits = QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "reduction", .op = QN_OP_REDUCE_PROD, SHARED },
  { .name = "reduction", .op = QN_OP_REDUCE_MAX,  .traits = QN_TRAIT_FINITE_ONLY, SHARED },
  { .name = "reduction", .op = QN_OP_REDUCE_MIN,  .traits = QN_TRAIT_FINITE_ONLY, SHARED },
};
const qn_engine_list onednn_reduction = { rows, sizeof rows / sizeof rows[0] };
