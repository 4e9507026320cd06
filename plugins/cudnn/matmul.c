/* matmul.c -- matrix products by cuDNN's engines: row-major or transposed operands, one batch dim, with bias.
 *
 * f32 is rounded to tf32 whether the engine notes it or not, which may turn Inf into NaN: math fast.
 * Not offered: alpha, beta and c, 8-bit operands, leading dims that do not merge into one. */
#include "peer.h"

/* v as [B, rows, columns] with its own strides, leading dims merged; a batch of one gets stride 0, because some engines advance by it
 * if the other operands have more. False: the dims do not merge. */
static bool as_batch(const qn_value *v, peer_shape *s)
{
  int64_t batch = 1, stride = 0;
  for (int d = v->rank - 3; d >= 0; d--) {
    if (v->dim[d] == 1) continue;
    if (batch > 1 && v->stride[d] != stride * batch) return false;
    if (batch == 1) stride = v->stride[d];
    batch *= v->dim[d];
  }
  int64_t rows = v->dim[v->rank - 2], columns = v->dim[v->rank - 1], down = v->stride[v->rank - 2], along = v->stride[v->rank - 1];
  if (rows == 1 && along == 1) down = columns;              /* a dim of 1 may have any stride */
  if (columns == 1 && down == 1) along = rows;
  *s = (peer_shape){ .rank = 3, .dim = { batch, rows, columns }, .stride = { stride, down, along } };
  return true;
}

/* The operand's shape; false: refused. */
static bool fits(qn_prepared *p, const qn_value *v, const char *role, peer_shape *s)
{
  if (!peer_is_float(v)) qn_refuse(p, "dtypes asked of cuDNN", role, "f64, f32, f16 or bf16", "%s", qn_kit_name(v->dtype));
  else if (!as_batch(v, s)) qn_refuse(p, "leading dims that merge into one", role, "one run of strides", "%s", "several");
  else if (!((s->stride[2] == 1 && s->stride[1] >= s->dim[2]) || (s->stride[1] == 1 && s->stride[2] >= s->dim[1])))
    qn_refuse(p, "layouts asked of cuDNN", role, "rows or columns contiguous", "%s", "other strides");
  else if (v->align < 16)
    qn_refuse(p, "some of cuDNN's engines read 16 bytes at once, aligned or not", role, "16-byte alignment", "%u", v->align);
  else return peer_countable(p, v, role);
  return false;
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  int32_t a = qn_role(op, QN_ROLE_MATMUL_A), b = qn_role(op, QN_ROLE_MATMUL_B), y = qn_role(op, QN_ROLE_MATMUL_Y),
      bias = qn_role(op, QN_ROLE_MATMUL_BIAS);
  const qn_value *av = &r->value[a], *bv = &r->value[b], *yv = &r->value[y];
  peer_shape sa, sb, sy;
  qn_status s;
  if (qn_role(op, QN_ROLE_MATMUL_C) >= 0 || qn_role(op, QN_ROLE_MATMUL_ALPHA) >= 0)
    return qn_refuse(p, "a product alone, with a bias", "c", "no c, alpha or beta", "%s", "one of them");
  if (!fits(p, av, "a", &sa) || !fits(p, bv, "b", &sb) || !fits(p, yv, "y", &sy)) return QN_UNSUPPORTED;
  if (av->dtype != bv->dtype) return qn_refuse(p, "operands of one dtype", "b", qn_kit_name(av->dtype), "%s", qn_kit_name(bv->dtype));
  if ((sa.dim[0] != sy.dim[0] && sa.dim[0] != 1) || (sb.dim[0] != sy.dim[0] && sb.dim[0] != 1))
    return qn_refuse(p, "an operand is broadcast over all leading dims or none", "a", "all or none", "%s", "some");
  if (bias >= 0 && (!peer_is_float(&r->value[bias]) || !qn_is_packed(&r->value[bias])))
    return qn_refuse(p, "a bias is packed, of a float dtype", "bias", "", "%s", qn_kit_name(r->value[bias].dtype));
  peer_graph *g = peer_graph_begin(r, p, &s);
  if (!g) return s;
  uint32_t compute = av->dtype == QN_F64 ? QN_F64 : QN_F32;
  cudnnDataType_t type = peer_type(compute);
  cudnnBackendDescriptor_t ta = peer_tensor(g, r, a, av->dtype, &sa), tb = peer_tensor(g, r, b, bv->dtype, &sb),
      ty = peer_tensor(g, r, y, yv->dtype, &sy);
  cudnnBackendDescriptor_t sum = bias >= 0 ? peer_tensor(g, r, -1, compute, &sy) : ty;
  cudnnBackendDescriptor_t product = peer_make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  peer_set(g, product, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  peer_finalize(g, product);
  cudnnBackendDescriptor_t matmul = peer_make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  peer_set_part(g, matmul, CUDNN_ATTR_OPERATION_MATMUL_ADESC, ta);
  peer_set_part(g, matmul, CUDNN_ATTR_OPERATION_MATMUL_BDESC, tb);
  peer_set_part(g, matmul, CUDNN_ATTR_OPERATION_MATMUL_CDESC, sum);
  peer_set_part(g, matmul, CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
  peer_add(g, matmul);
  if (bias >= 0) {
    int64_t n = r->value[bias].dim[0];
    peer_shape column = { .rank = 3, .dim = { 1, 1, n }, .stride = { n, n, 1 } };
    peer_add_bias(g, compute, sum, peer_tensor(g, r, bias, r->value[bias].dtype, &column), ty);
  }
  peer_terms terms = { .dtype = av->dtype, .out_dtype = yv->dtype, .no_tf32 = bias >= 0, .tf32 = true };
  return peer_graph_choose(g, r, p, &terms);
}

static const qn_engine rows[] = {
  { .name = "graph", .op = QN_OP_MATMUL, .class_ = QN_CLASS_TUNED, .variants = peer_variants, .prepare = prepare, .run = peer_graph_run,
    .release = peer_graph_release },
};
const qn_engine_list peer_matmul = { rows, sizeof rows / sizeof rows[0] };
