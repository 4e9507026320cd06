/* conv.c -- the three convolutions by oneDNN's direct algorithm, in layouts of its choice.
 *
 * Beats im2col where its blocked layouts are worth the reorders. */
#include "onednn.h"

/* w [K, C/groups, taps] as oneDNN's grouped filter: [groups, K/groups, C/groups, taps]. */
static void split_groups(onednn_tensor *w, const qn_value *v, int64_t groups)
{
  dnnl_dims_t dim = { groups, v->dim[0] / groups }, stride = { v->dim[0] / groups * v->stride[0], v->stride[0] };
  if (groups == 1)
    return;
  for (int32_t i = 1; i < v->rank; i++) {
    dim[i + 1] = v->dim[i];
    stride[i + 1] = v->stride[i];
  }
  dnnl_memory_desc_init_by_strides(&w->given, v->rank + 1, dim, dnnl_f32, stride);
}

typedef struct geometry { dnnl_dims_t stride, dilation, before, after; } geometry;

static geometry geometry_of(const qn_conv *conv, int spatial)
{
  geometry g;
  for (int i = 0; i < spatial; i++) {
    g.stride[i] = conv->stride[i];
    g.dilation[i] = conv->dilation[i] - 1;        /* oneDNN counts the gaps between taps */
    g.before[i] = conv->pad_before[i];
    g.after[i] = conv->pad_after[i];
  }
  return g;
}

static bool has_broadcast(const qn_value *v)
{
  for (int32_t i = 0; i < v->rank; i++)
    if (v->stride[i] == 0 && v->dim[i] > 1)
      return true;
  return false;
}

/* ---- prepare ----------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *request, qn_prepared *p, const int role[3], int32_t filter, int32_t bias)
{
  const qn_node *op = &request->op[0];
  const qn_conv *conv = op->attr;
  int32_t value[3], output = op->arg[op->first[op->n_inputs]];
  int spatial = request->value[output].rank - 2;
  onednn_state *s = onednn_begin(request, p);
  dnnl_convolution_desc_t c;
  dnnl_memory_desc_t any[3];
  dnnl_status_t status;
  if (!s)
    return onednn_refused(p, QN_UNSUPPORTED);
  value[0] = op->arg[op->first[0]];
  value[1] = op->arg[op->first[1]];
  value[2] = output;
  for (int i = 0; i < 3; i++) {
    if (has_broadcast(&request->value[value[i]]))
      return onednn_refused(p, qn_refuse(p, "no broadcast", "", "strides above 0", "%s", "a stride of 0"));
    if (!onednn_add(s, request, p, role[i], value[i]))
      return onednn_refused(p, QN_UNSUPPORTED);
    if (value[i] == filter)
      split_groups(&s->tensor[i], &request->value[filter], conv->groups);
    any[i] = onednn_any(&s->tensor[i].given);
  }
  geometry g = geometry_of(conv, spatial);
  if (op->op == QN_OP_CONV_FORWARD) {
    if (bias >= 0 && !onednn_add(s, request, p, DNNL_ARG_BIAS, bias))
      return onednn_refused(p, QN_UNSUPPORTED);
    status = dnnl_dilated_convolution_forward_desc_init(&c, dnnl_forward_inference, dnnl_convolution_direct, &any[0], &any[1],
                                                        bias >= 0 ? &s->tensor[3].given : NULL, &any[2], g.stride, g.dilation,
                                                        g.before, g.after);
  } else if (op->op == QN_OP_CONV_BACKWARD_DATA) {
    status = dnnl_dilated_convolution_backward_data_desc_init(&c, dnnl_convolution_direct, &any[2], &any[1], &any[0], g.stride,
                                                              g.dilation, g.before, g.after);
  } else {
    status = dnnl_dilated_convolution_backward_weights_desc_init(&c, dnnl_convolution_direct, &any[0], &any[2], NULL, &any[1],
                                                                 g.stride, g.dilation, g.before, g.after);
  }
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such convolution", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, &c);
}

static qn_status prepare_forward(const qn_request *request, qn_prepared *p)
{
  static const int role[] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST };
  const qn_node *op = &request->op[0];
  return prepare(request, p, role, qn_role(op, QN_ROLE_CONV_FORWARD_W), qn_role(op, QN_ROLE_CONV_FORWARD_BIAS));
}

static qn_status prepare_data(const qn_request *request, qn_prepared *p)
{
  static const int role[] = { DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC };
  return prepare(request, p, role, qn_role(&request->op[0], QN_ROLE_CONV_BACKWARD_DATA_W), -1);
}

static qn_status prepare_filter(const qn_request *request, qn_prepared *p)
{
  static const int role[] = { DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS };
  return prepare(request, p, role, qn_role(&request->op[0], QN_ROLE_CONV_BACKWARD_FILTER_DW), -1);
}

/* ---- rows -------------------------------------------------------------------------------------- */

#define SHARED .class_ = QN_CLASS_TUNED, .build = onednn_build, .run = onednn_run, .release = onednn_release
static const qn_engine rows[] = {
  { .name = "direct_conv", .op = QN_OP_CONV_FORWARD,         .prepare = prepare_forward, SHARED },
  { .name = "direct_conv", .op = QN_OP_CONV_BACKWARD_DATA,   .prepare = prepare_data,    SHARED },
  { .name = "direct_conv", .op = QN_OP_CONV_BACKWARD_FILTER, .prepare = prepare_filter,  SHARED },
};
const qn_engine_list onednn_conv = { rows, sizeof rows / sizeof rows[0] };
