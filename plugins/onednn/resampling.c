/* resampling.c -- nearest resampling by oneDNN, whose grid is half_pixel, forward and backward.
 *
 * Its linear mode meets no bound of ours: weights come from f32 coordinates that have lost digits, and taps of weight 0 are read. */
#include "onednn.h"

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  const qn_resampling *resampling = op->attr;
  bool backward = op->op == QN_OP_RESAMPLE_BACKWARD;
  const int role[] = { backward ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC, backward ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST };
  dnnl_alg_kind_t how = dnnl_resampling_nearest;
  dnnl_resampling_desc_t d;
  if (resampling->mode != QN_RESAMPLE_NEAREST)
    return qn_refuse(p, "oneDNN has no cubic, and its linear weights lose digits", "", "mode=nearest", "%s", "another");
  if (resampling->grid != QN_GRID_HALF_PIXEL)
    return qn_refuse(p, "oneDNN's grid is half_pixel's", "", "grid=half_pixel", "%s", "another");
  if (resampling->rounding != QN_ROUNDING_AUTO && resampling->rounding != QN_ROUNDING_PREFER_CEIL)
    return qn_refuse(p, "oneDNN rounds halves up", "", "rounding=prefer_ceil", "%s", "another");
  if (resampling->up[0] || resampling->up[1] || resampling->up[2])
    return qn_refuse(p, "oneDNN divides the extents", "up", "no scale factor that is not their ratio", "%s", "one");
  const qn_value *from = &request->value[op->arg[0]], *to = &request->value[op->arg[1]];
  double terms = 1;                       /* of dy for one element of dx */
  for (int32_t i = 2; i < from->rank; i++)
    terms *= (double)qn_ceil_div(from->dim[i], qn_max_i64(1, to->dim[i]));
  if (backward && terms > 4096)
    return qn_refuse(p, "oneDNN's sums run over all terms in f32", "dy", "at most 4096 elements for one of dx", "%.0f", terms);
  onednn_state *s = onednn_begin_with(request, p, 2, role);
  if (!s)
    return QN_UNSUPPORTED;
  const dnnl_memory_desc_t *first = &s->tensor[0].given, *second = &s->tensor[1].given;
  dnnl_status_t status = backward ? dnnl_resampling_backward_desc_init(&d, how, NULL, second, first)
                                  : dnnl_resampling_forward_desc_init(&d, dnnl_forward_inference, how, NULL, first, second);
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such resampling", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, &d);
}

#define SHARED .class_ = QN_CLASS_TUNED, .prepare = prepare, .build = onednn_build, .run = onednn_run, .release = onednn_release
static const qn_engine rows[] = {
  { .name = "resampling", .op = QN_OP_RESAMPLE,          SHARED },
  { .name = "resampling", .op = QN_OP_RESAMPLE_BACKWARD, SHARED },
};
const qn_engine_list onednn_resampling = { rows, sizeof rows / sizeof rows[0] };
