/* conv.c -- the three convolutions by cuDNN's engines, 1 to 3 spatial dims, packed NCHW or NHWC, forward with bias.
 *
 * Behaviour that its engines' notes do not declare, and which is therefore left to math fast: f32 filter gradients by transforms, to as
 * few as 4 digits; f16 and bf16 in NCHW with 16-bit partial sums and Inf lost; groups computed as one product with zeros between
 * them, so that Inf and NaN spread to other groups (most engines, any dtype, with or without Tensor Cores); 16 bits forward with
 * channels that do not fill a vector, where -Inf became 0 (cuDNN 9.19). */
#include "peer.h"

static cudnnBackendDescriptor_t tensor(peer_graph *g, const qn_request *r, int32_t value, bool channels_last)
{
  peer_shape s = peer_spatial(&r->value[value], channels_last);
  return peer_tensor(g, r, value, r->value[value].dtype, &s);
}

static cudnnBackendDescriptor_t geometry_of(peer_graph *g, const qn_conv *conv, int spatial, cudnnDataType_t compute)
{
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  int64_t n = spatial < 2 ? 2 : spatial, dilation[3] = { 1, 1, 1 }, stride[3] = { 1, 1, 1 }, before[3] = { 0 }, after[3] = { 0 };
  for (int i = 0; i < spatial; i++) {
    int to = i + (int)n - spatial;
    dilation[to] = conv->dilation[i];
    stride[to] = conv->stride[i];
    before[to] = conv->pad_before[i];
    after[to] = conv->pad_after[i];
  }
  cudnnBackendDescriptor_t d = peer_make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  peer_set(g, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n);
  peer_set(g, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  peer_set(g, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  peer_set(g, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, n, dilation);
  peer_set(g, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, n, stride);
  peer_set(g, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, n, before);
  peer_set(g, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, n, after);
  peer_finalize(g, d);
  return d;
}

/* ---- prepare -------------------------------------------------------------------------------------- */

/* Descriptor and attributes of a direction, in the order x (dx), w (dw), y (dy). */
typedef struct direction {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
} direction;
static const direction forward = {
  CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA };
static const direction data = {
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA };
static const direction filter = {
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA };

static bool fits(qn_prepared *p, const qn_request *r, int32_t value, const char *role)
{
  const qn_value *v = &r->value[value];
  if (!peer_is_float(v)) qn_refuse(p, "dtypes asked of cuDNN", role, "f64, f32, f16 or bf16", "%s", qn_kit_name(v->dtype));
  else if (!qn_is_packed(v) && !qn_is_channels_last(v))
    qn_refuse(p, "layouts asked of cuDNN", role, "packed NCHW or NHWC", "%s", "other strides");
  else if (v->align < 16)
    qn_refuse(p, "some of cuDNN's engines read 16 bytes at once, aligned or not", role, "16-byte alignment", "%u", v->align);
  else return peer_countable(p, v, role);
  return false;
}

/* b [K] as a tensor of y's rank. */
static cudnnBackendDescriptor_t bias_tensor(peer_graph *g, const qn_request *r, int32_t bias, int rank, bool channels_last)
{
  qn_value v = { .rank = rank, .dim = { 1, r->value[bias].dim[0], 1, 1, 1 } };
  peer_shape s = peer_spatial(&v, channels_last);
  return peer_tensor(g, r, bias, r->value[bias].dtype, &s);
}

/* For groups in 16 bits, and filter gradients with channels that do not fill a vector: 16-bit sums of products, and transforms, neither
 * noted (cuDNN 9.14; engine 61: 9.19). For other filter gradients in 16 bits: 16-bit partial sums (9.19). */
static const int64_t broken_data[] = { 25, -1 }, broken_filter[] = { 17, 47, 61, -1 }, reduced_filter[] = { 47, -1 };

/* x, w, y: the values in these roles, gradients or not. */
static qn_status prepare(const qn_request *r, qn_prepared *p, const direction *way, int32_t x, int32_t w, int32_t y, int32_t bias)
{
  const qn_conv *conv = r->op[0].attr;
  const qn_value *xv = &r->value[x], *wv = &r->value[w], *yv = &r->value[y];
  int spatial = xv->rank - 2;
  qn_status s;
  if (!fits(p, r, x, "x") || !fits(p, r, w, "w") || !fits(p, r, y, "y")) return QN_UNSUPPORTED;
  if (bias >= 0 && (!peer_is_float(&r->value[bias]) || !qn_is_packed(&r->value[bias])))
    return qn_refuse(p, "a bias is packed, of a float dtype", "bias", "", "%s", qn_kit_name(r->value[bias].dtype));
  for (int i = 0; i < spatial; i++)
    if (conv->pad_before[i] != conv->pad_after[i])
      return qn_refuse(p, "cuDNN pads alike on both sides", "", "equal padding", "%lld:%lld", (long long)conv->pad_before[i],
                       (long long)conv->pad_after[i]);
  peer_graph *g = peer_graph_begin(r, p, &s);
  if (!g) return s;
  bool last = qn_is_channels_last(xv) && qn_is_channels_last(wv) && qn_is_channels_last(yv);
  bool x_last = last || !qn_is_packed(xv), w_last = last || !qn_is_packed(wv), y_last = last || !qn_is_packed(yv);
  uint32_t compute = xv->dtype == QN_F64 ? QN_F64 : QN_F32;
  cudnnBackendAttributeType_t scale = compute == QN_F64 ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  cudnnBackendDescriptor_t tx = tensor(g, r, x, x_last), tw = tensor(g, r, w, w_last), ty = tensor(g, r, y, y_last), sum = ty;
  if (bias >= 0) {
    peer_shape s_y = peer_spatial(yv, y_last);
    sum = peer_tensor(g, r, -1, compute, &s_y);
  }
  cudnnBackendDescriptor_t geometry = geometry_of(g, conv, spatial, peer_type(compute));
  cudnnBackendDescriptor_t op = peer_make(g, way->operation);
  peer_set_part(g, op, way->x, tx);
  peer_set_part(g, op, way->w, tw);
  peer_set_part(g, op, way->y, sum);
  peer_set_part(g, op, way->conv, geometry);
  peer_set(g, op, way->alpha, scale, 1, peer_number(compute, 1));
  peer_set(g, op, way->beta, scale, 1, peer_number(compute, 0));
  peer_add(g, op);
  if (bias >= 0) peer_add_bias(g, compute, sum, bias_tensor(g, r, bias, yv->rank, y_last), ty);

  bool square3 = wv->rank == 4 && wv->dim[2] == 3 && wv->dim[3] == 3 && way != &filter;
  bool half = qn_kit_bytes(xv->dtype) == 2, grouped = half && conv->groups > 1, odd = half && xv->dim[1] % 8 != 0;
  /* with a bias, tf32 also rounds the bias, and wrongly: 1 becomes 1 + 2^-10 */
  peer_terms terms = { .dtype = xv->dtype, .out_dtype = (way == &data ? xv : way == &filter ? wv : yv)->dtype,
                       .no_tf32 = bias >= 0, .winograd_filter = square3 ? 3 : 0,
                       .broken = way == &filter && (grouped || odd) ? broken_filter : way == &data && grouped ? broken_data : NULL,
                       .reduced = way == &filter && half ? reduced_filter : NULL,
                       .transforms = way == &filter, .reduces = half && !last, .loses = conv->groups > 1 || (way == &forward && odd) };
  return peer_graph_choose(g, r, p, &terms);
}

static qn_status prepare_forward(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  return prepare(r, p, &forward, qn_role(op, QN_ROLE_CONV_FORWARD_X), qn_role(op, QN_ROLE_CONV_FORWARD_W),
                 qn_role(op, QN_ROLE_CONV_FORWARD_Y), qn_role(op, QN_ROLE_CONV_FORWARD_BIAS));
}

static qn_status prepare_data(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  return prepare(r, p, &data, qn_role(op, QN_ROLE_CONV_BACKWARD_DATA_DX), qn_role(op, QN_ROLE_CONV_BACKWARD_DATA_W),
                 qn_role(op, QN_ROLE_CONV_BACKWARD_DATA_DY), -1);
}

static qn_status prepare_filter(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  return prepare(r, p, &filter, qn_role(op, QN_ROLE_CONV_BACKWARD_FILTER_X), qn_role(op, QN_ROLE_CONV_BACKWARD_FILTER_DW),
                 qn_role(op, QN_ROLE_CONV_BACKWARD_FILTER_DY), -1);
}

/* ---- rows ------------------------------------------------------------------------------------------ */

#define SHARED .class_ = QN_CLASS_TUNED, .variants = peer_variants, .run = peer_graph_run, .release = peer_graph_release
static const qn_engine rows[] = {
  { .name = "graph", .op = QN_OP_CONV_FORWARD,         .prepare = prepare_forward, SHARED },
  { .name = "graph", .op = QN_OP_CONV_BACKWARD_DATA,   .prepare = prepare_data,    SHARED },
  { .name = "graph", .op = QN_OP_CONV_BACKWARD_FILTER, .prepare = prepare_filter,  SHARED },
};
const qn_engine_list peer_conv = { rows, sizeof rows / sizeof rows[0] };
