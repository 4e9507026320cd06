/* infer_contraction.c -- matmul and the three convolutions: which dtypes multiply, and the output's dims. */
#include <string.h>
#include "problem.h"

/* The dtypes that may hold the sum of products l r, and the default for an inferred output. */
typedef struct product { uint32_t accepted, dtype; } product;

static qn_status product_of(const qn__problem *p, uint32_t l_role, uint32_t r_role, product *out)
{
  const uint32_t f8 = QN__F8S, i8 = QN__BIT(QN_I8) | QN__BIT(QN_U8), f16 = QN__BIT(QN_F16) | QN__BIT(QN_BF16);
  uint32_t l = QN__BIT(qn__arg(p, l_role)->dtype), r = QN__BIT(qn__arg(p, r_role)->dtype);
  if (l & f8 && r & f8) *out = (product){ QN__BIT(QN_F32) | f16, QN_F32 };
  else if (l & i8 && r & i8) *out = (product){ QN__BIT(QN_I32), QN_I32 };
  else if (l == r && l & QN__FLOATS)
    *out = (product){ l | (l & f16 ? QN__BIT(QN_F32) : 0), qn__arg(p, l_role)->dtype };
  else
    return qn__refuse(p, qn__role_name(p, r_role), "dtype is %s beside %s's %s; accepted: two alike of f64 f32 f16 bf16, two of "
                      "e4m3 e5m2, or two of i8 u8", qn_dtype_name(qn__arg(p, r_role)->dtype), qn__role_name(p, l_role),
                      qn_dtype_name(qn__arg(p, l_role)->dtype));
  return QN_OK;
}

/* bias: rank 1, one entry per channel of y, in y's dtype or f32 (with integers i32). y's dtype must be known. */
static qn_status check_bias(const qn__problem *p, uint32_t bias_role, uint32_t y_role, int64_t channels)
{
  const qn_value *bias = qn__arg(p, bias_role);
  if (!bias) return QN_OK;
  uint32_t dtype = qn__arg(p, y_role)->dtype;
  qn_status status = qn__dtype_in(p, bias_role, dtype == QN_I32 ? QN__BIT(QN_I32) : QN__BIT(dtype) | QN__BIT(QN_F32));
  if (status) return status;
  return qn__settle(p, bias_role, bias->dtype, 1, &channels);
}

/* ---- matmul: a [..., M, K]  b [..., K, N]  c, y [..., M, N]  bias [N] --------------------------- */

qn_status qn__infer_matmul(const qn__problem *p)
{
  enum { A = QN_ROLE_MATMUL_A, B = QN_ROLE_MATMUL_B, C = QN_ROLE_MATMUL_C, BIAS = QN_ROLE_MATMUL_BIAS,
         ALPHA = QN_ROLE_MATMUL_ALPHA, BETA = QN_ROLE_MATMUL_BETA, Y = QN_ROLE_MATMUL_Y };
  const qn_value *a = qn__arg(p, A), *b = qn__arg(p, B), *c = qn__arg(p, C);
  int rank = a->rank;
  if (rank < 2) return qn__refuse(p, "a", "rank is %d; must be at least 2", rank);
  if (b->rank != rank) return qn__refuse(p, "b", "rank is %d; must be a's, %d", (int)b->rank, rank);
  int64_t dim[QN_MAX_RANK];
  for (int i = 0; i < rank - 2; i++) {
    if (a->dim[i] != b->dim[i] && a->dim[i] != 1 && b->dim[i] != 1)
      return qn__refuse(p, "b", "dim %d is %lld; must be a's, %lld, or 1", i, (long long)b->dim[i], (long long)a->dim[i]);
    dim[i] = a->dim[i] == 1 ? b->dim[i] : a->dim[i];
  }
  if (b->dim[rank - 2] != a->dim[rank - 1])
    return qn__refuse(p, "b", "dims are %s, so K is %lld; must be %lld, as in a's %s", qn__dims(b).s,
                      (long long)b->dim[rank - 2], (long long)a->dim[rank - 1], qn__dims(a).s);
  dim[rank - 2] = a->dim[rank - 2];
  dim[rank - 1] = b->dim[rank - 1];

  product product;
  qn_status status = product_of(p, A, B, &product);
  if (status) return status;
  if (product.dtype == QN_I32)
    for (uint32_t r = ALPHA; r <= BETA; r++)
      if (qn__arg(p, r)) return qn__refuse(p, qn__role_name(p, r), "is given; integer products are not scaled");
  if (!c && qn__arg(p, BETA)) return qn__refuse(p, "beta", "is given without c, which it scales");
  if ((status = qn__dtype_in(p, C, product.accepted)) || (status = qn__dtype_in(p, Y, product.accepted))) return status;
  if ((status = qn__settle(p, Y, c ? c->dtype : product.dtype, rank, dim))) return status;
  const qn_value *y = qn__arg(p, Y);
  if (c && c->dtype != y->dtype)
    return qn__refuse(p, "c", "dtype is %s; must be y's, %s", qn_dtype_name(c->dtype), qn_dtype_name(y->dtype));
  if ((status = qn__same_dims(p, C, Y))) return status;
  return check_bias(p, BIAS, Y, dim[rank - 1]);
}

/* ---- convolutions: x [N, C, X...]  w [K, C/groups, R...]  y [N, K, P...] ------------------------ */

static int64_t outputs(const qn_conv *g, int i, int64_t extent, int64_t taps)
{
  int64_t room = extent + g->pad_before[i] + g->pad_after[i] - qn__covered(taps, g->dilation[i]);
  return room < 0 ? 0 : room / g->stride[i] + 1;
}

/* Infers or checks the dims of the op's output, one of the three tensors. Several spatial extents of dx and dw may lead to
 * dy's: those given are tested, otherwise the smallest that give dy's are taken. */
qn_status qn__infer_conv(const qn__problem *p)
{
  uint32_t x_role = 0, w_role = 1, y_role = QN_ROLE_CONV_FORWARD_Y, out_role = y_role;
  if (p->op->kind == QN_OP_CONV_BACKWARD_DATA) y_role = 0, out_role = x_role = QN_ROLE_CONV_BACKWARD_DATA_DX;
  if (p->op->kind == QN_OP_CONV_BACKWARD_FILTER) y_role = 1, out_role = w_role = QN_ROLE_CONV_BACKWARD_FILTER_DW;
  const qn_value *x = qn__arg(p, x_role), *w = qn__arg(p, w_role), *y = qn__arg(p, y_role), *out = qn__arg(p, out_role);
  const qn_conv *g = p->attr;
  const char *x_name = qn__role_name(p, x_role), *w_name = qn__role_name(p, w_role), *y_name = qn__role_name(p, y_role);
  const char *out_name = qn__role_name(p, out_role);
  int rank = qn__arg(p, 0)->rank;
  if (rank < 3 || rank > 5)
    return qn__refuse(p, qn__role_name(p, 0), "rank is %d; must be 3 to 5: two dims and 1 to 3 spatial ones", rank);
  if (qn__arg(p, 1)->rank != rank)
    return qn__refuse(p, qn__role_name(p, 1), "rank is %d; must be %s's, %d", (int)qn__arg(p, 1)->rank, qn__role_name(p, 0), rank);
  if (out->rank >= 0 && out->rank != rank)
    return qn__refuse(p, out_name, "rank is %d; must be %s's, %d", (int)out->rank, qn__role_name(p, 0), rank);

  /* channels and batch */
  if (w != out) {
    if (w->dim[0] % g->groups)
      return qn__refuse(p, "groups", "is %lld; must divide %s's dim 0, %lld", (long long)g->groups, w_name, (long long)w->dim[0]);
    if (x != out && (w->dim[1] > QN__MAX_ELEMENTS / g->groups || w->dim[1] * g->groups != x->dim[1]))
      return qn__refuse(p, w_name, "dim 1 is %lld; times %lld groups it must be %s's dim 1, %lld", (long long)w->dim[1],
                        (long long)g->groups, x_name, (long long)x->dim[1]);
    if (w->dim[1] > QN__MAX_ELEMENTS / g->groups)
      return qn__refuse(p, "groups", "is %lld, which makes more channels than any tensor holds", (long long)g->groups);
    if (y != out && y->dim[1] != w->dim[0])
      return qn__refuse(p, y_name, "dim 1 is %lld; must be %s's dim 0, %lld", (long long)y->dim[1], w_name, (long long)w->dim[0]);
  } else {
    if (x->dim[1] % g->groups || y->dim[1] % g->groups)
      return qn__refuse(p, "groups", "is %lld; must divide the channels, %lld of %s and %lld of %s", (long long)g->groups,
                        (long long)x->dim[1], x_name, (long long)y->dim[1], y_name);
    if (y->dim[0] != x->dim[0])
      return qn__refuse(p, y_name, "dim 0 is %lld; must be %s's, %lld", (long long)y->dim[0], x_name, (long long)x->dim[0]);
  }
  int64_t dim[QN_MAX_RANK];
  dim[0] = out == x ? y->dim[0] : out == y ? x->dim[0] : y->dim[1];
  dim[1] = out == x ? w->dim[1] * g->groups : out == y ? w->dim[0] : x->dim[1] / g->groups;

  /* spatial dims */
  for (int i = 2; i < rank; i++) {
    int s = i - 2;
    if ((w != out || out->rank > 0) && w->dim[i] < 1) return qn__refuse(p, w_name, "dim %d is 0; a filter has taps", i);
    if (out == y) {
      dim[i] = outputs(g, s, x->dim[i], w->dim[i]);
      continue;
    }
    if (out->rank < 0) {
      int64_t step;
      if (__builtin_mul_overflow(y->dim[i] - 1, g->stride[s], &step) || step > QN__MAX_ELEMENTS)
        return qn__refuse(p, out_name, "would be more than memory can hold");
      if (out == x) dim[i] = step + qn__covered(w->dim[i], g->dilation[s]) - g->pad_before[s] - g->pad_after[s];
      else {
        int64_t room = x->dim[i] + g->pad_before[s] + g->pad_after[s] - 1 - step - g->stride[s];   /* the taps may reach beyond the input */
        dim[i] = room < 0 ? 1 : room / g->dilation[s] + 2;
      }
      if (dim[i] < 0) dim[i] = 0;
    } else
      dim[i] = out->dim[i];
    int64_t given = out == x ? outputs(g, s, dim[i], w->dim[i]) : outputs(g, s, x->dim[i], dim[i]);
    if (given == y->dim[i]) continue;
    if (out->rank < 0)
      return qn__refuse(p, y_name, "dim %d is %lld, which no %s gives with this stride and padding", i, (long long)y->dim[i], out_name);
    return qn__refuse(p, out_name, "dim %d is %lld, which gives %lld places; %s has %lld", i, (long long)out->dim[i],
                      (long long)given, y_name, (long long)y->dim[i]);
  }

  product product;
  qn_status status;
  if ((status = product_of(p, 0, 1, &product)) || (status = qn__dtype_in(p, out_role, product.accepted))) return status;
  if ((status = qn__settle(p, out_role, product.dtype, rank, dim))) return status;
  return p->op->kind == QN_OP_CONV_FORWARD ? check_bias(p, QN_ROLE_CONV_FORWARD_BIAS, y_role, dim[1]) : QN_OK;
}
