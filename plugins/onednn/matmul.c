/* matmul.c -- y = a b + bias by oneDNN's matmul, with the tensors in place. */
#include "onednn.h"

/* bias [N] raised to y's rank. */
static void raise_bias(onednn_tensor *bias, const qn_value *v, int rank)
{
  dnnl_dims_t dim, stride;
  for (int i = 0; i < rank; i++) {
    dim[i] = i == rank - 1 ? v->dim[0] : 1;
    stride[i] = i == rank - 1 ? v->stride[0] : v->dim[0];
  }
  dnnl_memory_desc_init_by_strides(&bias->given, rank, dim, dnnl_f32, stride);
}

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  int32_t a = qn_role(op, QN_ROLE_MATMUL_A), b = qn_role(op, QN_ROLE_MATMUL_B), y = qn_role(op, QN_ROLE_MATMUL_Y);
  int32_t bias = qn_role(op, QN_ROLE_MATMUL_BIAS);
  onednn_state *s = onednn_begin(request, p);
  dnnl_matmul_desc_t m;
  if (!s)
    return onednn_refused(p, QN_UNSUPPORTED);
  if (qn_role(op, QN_ROLE_MATMUL_C) >= 0 || qn_role(op, QN_ROLE_MATMUL_ALPHA) >= 0)
    return onednn_refused(p, qn_refuse(p, "only y = a b + bias is asked of oneDNN", "c", "no c, alpha or beta", "%s", ""));
  const qn_value *left = &request->value[a];
  const int64_t rows = left->dim[left->rank - 2], terms = left->dim[left->rank - 1];
  if (rows == 1 && terms > 65536)         /* seen on an AMD EPYC: the error of adding them one after another */
    return onednn_refused(p, qn_refuse(p, "oneDNN may add a single row's products one after another", "a", "at most 65536 columns", "%lld",
                                       (long long)terms));
  if (!onednn_add(s, request, p, DNNL_ARG_SRC, a) || !onednn_add(s, request, p, DNNL_ARG_WEIGHTS, b) ||
      !onednn_add(s, request, p, DNNL_ARG_DST, y) || (bias >= 0 && !onednn_add(s, request, p, DNNL_ARG_BIAS, bias)))
    return onednn_refused(p, QN_UNSUPPORTED);
  if (bias >= 0)
    raise_bias(&s->tensor[3], &request->value[bias], request->value[y].rank);
  dnnl_status_t status = dnnl_matmul_desc_init(&m, &s->tensor[0].given, &s->tensor[1].given,
                                               bias >= 0 ? &s->tensor[3].given : NULL, &s->tensor[2].given);
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN knows no such product", "", "", "its status %d", (int)status));
  return onednn_finish(s, request, p, &m);
}

static const qn_engine rows[] = {
  { .name = "matmul", .op = QN_OP_MATMUL, .class_ = QN_CLASS_TUNED, .prepare = prepare, .build = onednn_build,
    .run = onednn_run, .release = onednn_release },
};
const qn_engine_list onednn_matmul = { rows, sizeof rows / sizeof rows[0] };
