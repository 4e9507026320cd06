/* attention.c -- attention and its gradient by cuDNN's fused engines, which know it as a graph of products, pointwise operations and
 * reductions: bf16, forward f16 too, any group size, causal masks and windows of both alignments; forward also softcap.
 *
 *   forward   s = mask(softcap(scale q k'))   m = max s   e = exp(s - m)   l = sum e   lse = m + ln l   y = (e / l) v
 *   gradient  D = sum dy y   P = exp(mask(scale q k' - lse))   dv = P' dy   dS = scale P (dy v' - D)   dk = dS' q   dq = dS k
 *
 * Weights are rounded to the operands' dtype before the second product. A NaN or Inf under a mask comes out as NaN, and results below
 * f32's least normal number are 0: math fast. dq is summed in any order, noted or not.
 *
 * Of cuDNN 9.19. Without lse it finds no engine, or one that fails, so then lse goes to the workspace. Lengths and pages are refused: it
 * trusts them, reads and writes beyond what is there, and gives NaN for a sequence without keys. */
#include <math.h>
#include "peer.h"

typedef cudnnBackendDescriptor_t part;

/* ---- operations ------------------------------------------------------------------------------------------ */

static part pointwise(peer_graph *g, cudnnPointwiseMode_t mode, cudnnDataType_t compute, int64_t axis, part x, part b, part t, part y)
{
  part how = peer_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  peer_set(g, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  peer_set(g, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  if (axis >= 0) peer_set(g, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
  peer_finalize(g, how);
  part op = peer_make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b) peer_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  if (t) peer_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  peer_add(g, op);
  return y;
}

static part f32(peer_graph *g, cudnnPointwiseMode_t mode, part x, part b, part y)
{
  return pointwise(g, mode, CUDNN_DATA_FLOAT, -1, x, b, NULL, y);
}

static part reduce(peer_graph *g, cudnnReduceTensorOp_t which, part x, part y)
{
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  part how = peer_make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  peer_set(g, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &which);
  peer_set(g, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  peer_finalize(g, how);
  part op = peer_make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
  peer_add(g, op);
  return y;
}

static part multiply(peer_graph *g, part a, part b, part y)
{
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  part how = peer_make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  peer_set(g, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  peer_finalize(g, how);
  part op = peer_make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
  peer_add(g, op);
  return y;
}

static part reshape(peer_graph *g, part x, part y)
{
  part op = peer_make(g, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
  peer_add(g, op);
  return y;
}

/* ---- the problem ----------------------------------------------------------------------------------------- */

enum { Q, K, V, Y, DY, DQ, DK, DV, LSE, OPERANDS };
#define F(name) QN_ROLE_ATTENTION_FORWARD_##name
#define B(name) QN_ROLE_ATTENTION_BACKWARD_##name
static const int8_t role_of[2][OPERANDS] = {
  { F(Q), F(K), F(V), F(Y), -1, -1, -1, -1, F(LSE) },
  { B(Q), B(K), B(V), B(Y), B(DY), B(DQ), B(DK), B(DV), B(LSE) },
};
static const int8_t refused[2][16] = {
  { F(BIAS), F(MASK), F(BLOCKS), F(SLOPES), F(SINK), F(Q_STARTS), F(KV_STARTS), F(Q_SCALE), F(K_SCALE), F(V_SCALE), F(Y_SCALE), F(MAX),
    F(AMAX), -1 },
  { B(DLSE), B(BIAS), B(MASK), B(BLOCKS), B(SLOPES), B(SINK), B(Q_STARTS), B(KV_STARTS), B(DBIAS), B(DSINK), -1 },
};
static const int8_t trusted[2][3] = { { F(Q_LENGTHS), F(KV_LENGTHS), F(PAGES) }, { B(Q_LENGTHS), B(KV_LENGTHS), -1 } };
#undef F
#undef B

typedef struct problem {
  peer_graph *g;
  const qn_request *r;
  const qn_attention *a;
  int32_t    value[OPERANDS];             /* -1: absent */
  uint32_t   dtype;
  int64_t    batch, heads, groups, queries, keys, size, value_size;     /* groups: heads of keys */
  peer_shape scores, row;                 /* [B, H, Sq, Skv], [B, H, Sq, 1] */
} problem;

static peer_shape shape(int64_t b, int64_t h, int64_t m, int64_t n)
{
  return (peer_shape){ 4, { b, h, m, n }, { h * m * n, m * n, n, 1 } };
}

/* Rows as columns. */
static peer_shape turned(peer_shape s)
{
  const int64_t d = s.dim[2], stride = s.stride[2];
  s.dim[2] = s.dim[3], s.stride[2] = s.stride[3];
  s.dim[3] = d, s.stride[3] = stride;
  return s;
}

static peer_shape shape_of(const problem *p, int which)
{
  const qn_value *v = &p->r->value[p->value[which]];
  peer_shape s = { 4, { 0 }, { 0 } };
  for (int d = 0; d < 4; d++) s.dim[d] = v->dim[d], s.stride[d] = v->stride[d];
  if (which == V) s.dim[3] = p->value_size;                 /* values may be the first elements of keys */
  for (int d = 3; d >= 0; d--)                              /* a dim of 1 may have any stride */
    if (s.dim[d] == 1) s.stride[d] = d == 3 ? 1 : s.stride[d + 1] * s.dim[d + 1];
  return s;
}

static part tensor(problem *p, int which, bool turn)
{
  const peer_shape s = shape_of(p, which), t = turned(s);
  return peer_tensor(p->g, p->r, p->value[which], p->dtype, turn ? &t : &s);
}
static part between(problem *p, const peer_shape *s) { return peer_between(p->g, CUDNN_DATA_FLOAT, s); }

/* False: refused. */
static bool fits(problem *p, qn_prepared *out)
{
  const qn_node *op = &p->r->op[0];
  const qn_attention *a = p->a = op->attr;
  const int gradient = op->op == QN_OP_ATTENTION_BACKWARD;
  for (int i = 0; i < OPERANDS; i++) p->value[i] = qn_role_at(op, role_of[gradient][i]);
  for (int i = 0; i < 3; i++)
    if (qn_role_at(op, trusted[gradient][i]) >= 0)
      qn_refuse(out, "cuDNN trusts lengths and pages, and writes past y's end by a length beyond its extent", "", "none", "%s", "some");
  for (int i = 0; refused[gradient][i] >= 0; i++)
    if (qn_role_at(op, refused[gradient][i]) >= 0)
      qn_refuse(out, "what is asked of cuDNN's attention", "", "q, k, v, y, lse and gradients", "%s", "more operands");
  if (out->refusal.rule[0]) return false;
  const qn_value *q = &p->r->value[p->value[Q]], *k = &p->r->value[p->value[K]];
  p->dtype = q->dtype;
  p->batch = q->dim[0], p->heads = q->dim[1], p->queries = q->dim[2], p->size = q->dim[3];
  p->groups = k->dim[1], p->keys = k->dim[2];
  p->value_size = p->value[V] >= 0 ? p->r->value[p->value[V]].dim[3] : a->value_size;
  if (p->value[V] < 0 && gradient) qn_refuse(out, "keys whose gradient holds that of values", "v", "v", "%s", "values in keys");
  else if (p->value[V] < 0) p->value[V] = p->value[K];
  if (q->dtype != QN_F16 && q->dtype != QN_BF16)
    qn_refuse(out, "dtypes of cuDNN's attention", "q", "f16 or bf16", "%s", qn_kit_name(q->dtype));
  else if (a->dropout > 0) qn_refuse(out, "cuDNN drops weights by random numbers of its own", "", "dropout 0", "%g", a->dropout);
  else if (q->dtype == QN_F16 && gradient)
    qn_refuse(out, "cuDNN's gradient overflows f16 on the way, and gives NaN for Inf", "q", "bf16", "%s", "f16");
  else if (a->softcap > 0 && gradient) qn_refuse(out, "softcap is asked of cuDNN forward", "", "0", "%g", a->softcap);
  else if (!p->batch || !p->heads || !p->queries || !p->keys || !p->size || !p->value_size)
    qn_refuse(out, "cuDNN wants queries and keys", "q", "no dim of 0", "%s", "one");
  else if (p->size % 8 || p->value_size % 8) qn_refuse(out, "sizes of heads", "q", "multiples of 8", "%lld", (long long)p->size);
  else if (a->align == QN_ALIGN_BOTTOM_RIGHT && (a->left >= 0 || a->right >= 0) && p->queries > p->keys)
    qn_refuse(out, "cuDNN's diagonal to the bottom right wants as many keys as queries", "q", "Sq <= Skv", "%lld", (long long)p->queries);
  for (int i = 0; i < OPERANDS && !out->refusal.rule[0]; i++) {
    if (p->value[i] < 0) continue;
    const qn_value *v = &p->r->value[p->value[i]];
    if (!peer_countable(out, v, "")) continue;
    if (i == LSE) {
      if (!qn_is_packed(v)) qn_refuse(out, "lse is packed", "lse", "no gaps", "%s", "other strides");
      continue;
    }
    if (v->dtype != p->dtype) qn_refuse(out, "one dtype for all", "", qn_kit_name(p->dtype), "%s", qn_kit_name(v->dtype));
    else if (v->stride[3] != 1 && v->dim[3] > 1) qn_refuse(out, "elements of a head lie side by side", "", "stride 1", "%s", "another");
    else if (v->align < 16) qn_refuse(out, "cuDNN's kernels read 16 bytes at once", "", "16-byte alignment", "%u", v->align);
    for (int d = 0; d < 3 && !out->refusal.rule[0]; d++)
      if (v->dim[d] > 1 && (v->stride[d] % 8 || v->stride[d] <= 0))
        qn_refuse(out, "cuDNN's kernels read 16 bytes at once", "", "strides that are multiples of 8", "%lld", (long long)v->stride[d]);
  }
  return !out->refusal.rule[0];
}

static void begin(problem *p)
{
  p->scores = shape(p->batch, p->heads, p->queries, p->keys);
  p->row = (peer_shape){ 4, { p->batch, p->heads, p->queries, 1 }, { p->heads * p->queries, p->queries, 1, 1 } };
}

/* ---- masks: scores that are not seen become -Inf ------------------------------------------------------------ */

/* The number of each query (axis 2) or key (axis 3). */
static part number(problem *p, int64_t axis, cudnnDataType_t compute, part scores)
{
  return pointwise(p->g, CUDNN_POINTWISE_GEN_INDEX, compute, axis, scores, NULL, NULL, peer_between(p->g, CUDNN_DATA_INT32, &p->scores));
}

static part compare(problem *p, cudnnPointwiseMode_t mode, part x, part b)
{
  return pointwise(p->g, mode, CUDNN_DATA_BOOLEAN, -1, x, b, NULL, peer_between(p->g, CUDNN_DATA_BOOLEAN, &p->scores));
}

static part select(problem *p, part scores, part seen)
{
  return pointwise(p->g, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1, scores, peer_given(p->g, -INFINITY), seen,
                   between(p, &p->scores));
}

static part moved(problem *p, part index, cudnnPointwiseMode_t mode, part by, cudnnDataType_t type)
{
  return pointwise(p->g, mode, type, 3, index, by, NULL, peer_between(p->g, type, &p->scores));
}

/* Query + shift + right >= key, key + left + 1 - shift > query; shift: of the diagonal to the bottom right, keys - queries. */
static part masked(problem *p, part scores)
{
  /* where it makes no difference to the top left, for which the gradient has kernels that skip what is hidden */
  const bool shifted = p->a->align == QN_ALIGN_BOTTOM_RIGHT && p->queries != p->keys;
  const int64_t most = p->queries + p->keys, right = p->a->right < most ? p->a->right : most, left = p->a->left < most ? p->a->left : most;
  if (right >= 0) {
    part query = number(p, 2, CUDNN_DATA_FLOAT, scores), key = number(p, 3, CUDNN_DATA_FLOAT, scores);
    if (shifted) {
      query = moved(p, query, CUDNN_POINTWISE_ADD, peer_given_int(p->g, (int32_t)p->keys), CUDNN_DATA_INT32);
      query = moved(p, query, CUDNN_POINTWISE_SUB, peer_given_int(p->g, (int32_t)p->queries), CUDNN_DATA_INT32);
    }
    if (right) query = moved(p, query, CUDNN_POINTWISE_ADD, peer_given_int(p->g, (int32_t)right), CUDNN_DATA_INT32);
    scores = select(p, scores, compare(p, CUDNN_POINTWISE_CMP_GE, query, key));
  }
  if (left >= 0) {
    part query = number(p, 2, CUDNN_DATA_FLOAT, scores), key = number(p, 3, CUDNN_DATA_FLOAT, scores);
    const int64_t bound = left + 1 - (shifted ? p->keys - p->queries : 0);
    key = moved(p, key, CUDNN_POINTWISE_ADD, peer_given(p->g, (float)bound), CUDNN_DATA_FLOAT);
    scores = select(p, scores, compare(p, CUDNN_POINTWISE_CMP_GT, key, query));
  }
  return scores;
}

/* ---- both directions -------------------------------------------------------------------------------------- */

static part scaled_product(problem *p, part q, part k_turned, part scale)
{
  part product = multiply(p->g, q, k_turned, between(p, &p->scores));
  part scores = f32(p->g, CUDNN_POINTWISE_MUL, product, scale, between(p, &p->scores));
  if (p->a->softcap > 0) {
    part cap = peer_given(p->g, (float)p->a->softcap);
    scores = f32(p->g, CUDNN_POINTWISE_DIV, scores, cap, between(p, &p->scores));
    scores = f32(p->g, CUDNN_POINTWISE_TANH_FWD, scores, NULL, between(p, &p->scores));
    scores = f32(p->g, CUDNN_POINTWISE_MUL, scores, cap, between(p, &p->scores));
  }
  return scores;
}

static void forward(problem *p, part scale)
{
  peer_graph *g = p->g;
  part q = tensor(p, Q, false), k = tensor(p, K, true), v = tensor(p, V, false), y = tensor(p, Y, false);
  part scores = masked(p, scaled_product(p, q, k, scale));
  part most = reduce(g, CUDNN_REDUCE_TENSOR_MAX, scores, between(p, &p->row));
  part e = f32(g, CUDNN_POINTWISE_EXP, f32(g, CUDNN_POINTWISE_SUB, scores, most, between(p, &p->scores)), NULL, between(p, &p->scores));
  part sum = reduce(g, CUDNN_REDUCE_TENSOR_ADD, e, between(p, &p->row));
  part log = f32(g, CUDNN_POINTWISE_LOG, sum, NULL, between(p, &p->row));
  part lse = p->value[LSE] < 0 ? peer_scratch(g, &p->row) : peer_tensor(g, p->r, p->value[LSE], QN_F32, &p->row);
  f32(g, CUDNN_POINTWISE_ADD, most, log, lse);
  part weights = f32(g, CUDNN_POINTWISE_DIV, e, sum, peer_between(g, peer_type(p->dtype), &p->scores));
  multiply(g, weights, v, y);
}

/* to [B, groups, Skv, n] = x' y, the heads of a group added up. */
static void gradient_of_keys(problem *p, part x, part y, part to, int64_t n)
{
  peer_graph *g = p->g;
  const peer_shape all = shape(p->batch, p->heads, p->keys, n);
  peer_shape columns = { 4, { p->batch, p->heads, p->keys, p->queries },
                         { p->heads * p->queries * p->keys, p->queries * p->keys, 1, p->keys } };
  part turned = reshape(g, x, peer_between(g, peer_type(p->dtype), &columns));
  if (p->heads == p->groups) multiply(g, turned, y, to);
  else {
    part each = multiply(g, turned, y, peer_between(g, peer_type(p->dtype), &all));
    reduce(g, CUDNN_REDUCE_TENSOR_ADD, each, to);
  }
}

static void backward(problem *p, part scale)
{
  peer_graph *g = p->g;
  const peer_shape rows = shape(p->batch, p->heads, p->queries, p->value_size), sums = shape(p->batch, p->heads, p->queries, p->size);
  const peer_shape keys = shape_of(p, K);
  part q = tensor(p, Q, false), k = tensor(p, K, true), v = tensor(p, V, true), y = tensor(p, Y, false), dy = tensor(p, DY, false);
  part lse = peer_tensor(g, p->r, p->value[LSE], QN_F32, &p->row);
  part product = f32(g, CUDNN_POINTWISE_MUL, dy, y, between(p, &rows));
  part d = reduce(g, CUDNN_REDUCE_TENSOR_ADD, product, between(p, &p->row));
  d = f32(g, CUDNN_POINTWISE_MUL, d, peer_given(g, 1), peer_scratch(g, &p->row));
  part scores = f32(g, CUDNN_POINTWISE_SUB, scaled_product(p, q, k, scale), lse, between(p, &p->scores));
  part weights = f32(g, CUDNN_POINTWISE_EXP, masked(p, scores), NULL, between(p, &p->scores));
  gradient_of_keys(p, weights, dy, tensor(p, DV, false), p->value_size);
  part slopes = multiply(g, dy, v, between(p, &p->scores));
  slopes = f32(g, CUDNN_POINTWISE_SUB, slopes, d, between(p, &p->scores));
  slopes = f32(g, CUDNN_POINTWISE_MUL, slopes, weights, between(p, &p->scores));
  slopes = f32(g, CUDNN_POINTWISE_MUL, slopes, scale, between(p, &p->scores));
  gradient_of_keys(p, slopes, q, tensor(p, DK, false), p->size);
  part k_again = reshape(g, k, peer_between(g, peer_type(p->dtype), &keys));
  part sum = multiply(g, slopes, k_again, peer_scratch(g, &sums));
  f32(g, CUDNN_POINTWISE_IDENTITY, sum, NULL, tensor(p, DQ, false));
}

/* Queries that see no key get NaN (cuDNN 9.19). */
static const int64_t nan_for_none[] = { 2, -1 };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const bool gradient = r->op[0].op == QN_OP_ATTENTION_BACKWARD;
  problem p = { .r = r };
  qn_status s;
  if (!fits(&p, out)) return QN_UNSUPPORTED;
  p.g = peer_graph_begin(r, out, &s);
  if (!p.g) return s;
  const double scale = p.a->scale > 0 ? p.a->scale : 1 / sqrt((double)p.size);
  begin(&p);
  (gradient ? backward : forward)(&p, peer_given(p.g, (float)scale));
  const bool unseeing = p.a->left >= 0 && p.queries - p.a->left > p.keys;
  s = peer_graph_choose(p.g, r, out, &(peer_terms){ .dtype = p.dtype, .out_dtype = p.dtype, .loses = true, .any_order = gradient,
                                                    .broken = unseeing && !gradient ? nan_for_none : NULL });
  out->numerics.store = p.dtype;                            /* weights, for the second product */
  out->traits |= QN_TRAIT_FLUSHES;
  return s;
}

#define SHARED .class_ = QN_CLASS_TUNED, .variants = peer_variants, .prepare = prepare, .run = peer_graph_run, .release = peer_graph_release
static const qn_engine rows[] = {
  { .name = "graph", .op = QN_OP_ATTENTION_FORWARD,  SHARED },
  { .name = "graph", .op = QN_OP_ATTENTION_BACKWARD, SHARED },
};
const qn_engine_list peer_attention = { rows, sizeof rows / sizeof rows[0] };
