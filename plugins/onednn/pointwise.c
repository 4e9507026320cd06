/* pointwise.c -- functions of one tensor, their gradients, and functions of two, by oneDNN's eltwise and binary.
 *
 * Some gradients choose the wrong branch at NaN: finite data only, math=fast. Not offered: relu, clip, max and min, which lose NaN; exp,
 * sigmoid and silu, which flush small results to 0; log, elu and mish, which lose digits near 0; the gradient of gelu_tanh, which is NaN
 * where |x| > 2e13. */
#include "onednn.h"

/* oneDNN's function for an op, and its parameters. */
typedef struct function { dnnl_alg_kind_t how; float alpha, beta; } function;

static function function_of(uint32_t op, const qn_pointwise *a)
{
  switch (op) {
  case QN_OP_RELU_BACKWARD:                              return (function){ dnnl_eltwise_relu, 0, 0 };
  case QN_OP_LEAKY_RELU: case QN_OP_LEAKY_RELU_BACKWARD: return (function){ dnnl_eltwise_relu, (float)a->alpha, 0 };
  case QN_OP_GELU: case QN_OP_GELU_BACKWARD:             return (function){ dnnl_eltwise_gelu_erf, 0, 0 };
  case QN_OP_GELU_TANH:                                  return (function){ dnnl_eltwise_gelu_tanh, 0, 0 };
  case QN_OP_TANH: case QN_OP_TANH_BACKWARD:             return (function){ dnnl_eltwise_tanh, 0, 0 };
  case QN_OP_HARDSWISH: case QN_OP_HARDSWISH_BACKWARD:   return (function){ dnnl_eltwise_hardswish, 0, 0 };
  case QN_OP_CLIP_BACKWARD:                              return (function){ dnnl_eltwise_clip_v2, (float)a->alpha, (float)a->beta };
  case QN_OP_ABS:                                        return (function){ dnnl_eltwise_abs, 0, 0 };
  case QN_OP_SQRT:                                       return (function){ dnnl_eltwise_sqrt, 0, 0 };
  case QN_OP_ROUND:                                      return (function){ dnnl_eltwise_round, 0, 0 };
  case QN_OP_ADD:                                        return (function){ dnnl_binary_add, 0, 0 };
  case QN_OP_SUB:                                        return (function){ dnnl_binary_sub, 0, 0 };
  case QN_OP_MUL:                                        return (function){ dnnl_binary_mul, 0, 0 };
  default:                                               return (function){ dnnl_binary_div, 0, 0 };
  }
}

/* y of x, or dx of dy and x: all in the same layout. */
static qn_status prepare_one(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  const function f = function_of(op->op, op->attr);
  const bool backward = op->n_inputs == 2;
  const int role[] = { backward ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC, backward ? DNNL_ARG_SRC : DNNL_ARG_DST, DNNL_ARG_DIFF_SRC };
  dnnl_eltwise_desc_t d;
  onednn_state *s = onednn_begin_with(request, p, backward ? 3 : 2, role);
  if (!s)
    return QN_UNSUPPORTED;
  for (int i = 0; i < s->n; i++)
    if (!qn_is_dense(&request->value[op->arg[i]]) || !qn_same_layout(&request->value[op->arg[i]], &request->value[op->arg[0]]))
      return onednn_refused(p, qn_refuse(p, "tensors that lie alike, without gaps", "", "one layout", "%s", "another"));
  const dnnl_memory_desc_t *x = &s->tensor[0].given;
  dnnl_status_t status = backward ? dnnl_eltwise_backward_desc_init(&d, f.how, x, x, f.alpha, f.beta)
                                  : dnnl_eltwise_forward_desc_init(&d, dnnl_forward_inference, f.how, x, f.alpha, f.beta);
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such function", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, &d);
}

static qn_status prepare_two(const qn_request *request, qn_prepared *p)
{
  static const int role[] = { DNNL_ARG_SRC_0, DNNL_ARG_SRC_1, DNNL_ARG_DST };
  const qn_node *op = &request->op[0];
  dnnl_binary_desc_t d;
  onednn_state *s = onednn_begin_with(request, p, 3, role);
  if (!s)
    return QN_UNSUPPORTED;
  dnnl_status_t status = dnnl_binary_desc_init(&d, function_of(op->op, NULL).how, &s->tensor[0].given, &s->tensor[1].given,
                                               &s->tensor[2].given);
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such function", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, &d);
}

#define ROW(op_, name_, prepare_, traits_) { .name = name_, .op = QN_OP_##op_, .class_ = QN_CLASS_TUNED, .traits = traits_, \
  .prepare = prepare_, .build = onednn_build, .run = onednn_run, .release = onednn_release }
static const qn_engine rows[] = {
  ROW(LEAKY_RELU, "eltwise", prepare_one, 0), ROW(GELU, "eltwise", prepare_one, 0), ROW(GELU_TANH, "eltwise", prepare_one, 0),
  ROW(TANH, "eltwise", prepare_one, 0), ROW(HARDSWISH, "eltwise", prepare_one, 0), ROW(ABS, "eltwise", prepare_one, 0),
  ROW(SQRT, "eltwise", prepare_one, 0), ROW(ROUND, "eltwise", prepare_one, 0),
  ROW(RELU_BACKWARD, "eltwise", prepare_one, QN_TRAIT_FINITE_ONLY), ROW(GELU_BACKWARD, "eltwise", prepare_one, 0),
  ROW(TANH_BACKWARD, "eltwise", prepare_one, 0),
  ROW(LEAKY_RELU_BACKWARD, "eltwise", prepare_one, QN_TRAIT_FINITE_ONLY), ROW(CLIP_BACKWARD, "eltwise", prepare_one, QN_TRAIT_FINITE_ONLY),
  ROW(HARDSWISH_BACKWARD, "eltwise", prepare_one, QN_TRAIT_FINITE_ONLY),
  ROW(ADD, "binary", prepare_two, 0), ROW(SUB, "binary", prepare_two, 0), ROW(MUL, "binary", prepare_two, 0),
  ROW(DIV, "binary", prepare_two, 0),
};
const qn_engine_list onednn_pointwise = { rows, sizeof rows / sizeof rows[0] };
