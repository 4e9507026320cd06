/* infer_elementwise.c -- pointwise ops, softmax and reductions: broadcasting, which dtypes mix, axes. */
#include <string.h>
#include "problem.h"

/* ---- pointwise ---------------------------------------------------------------------------- */

uint32_t qn__kin(uint32_t dtype)
{
  uint32_t mixing = QN__BIT(QN_F16) | QN__BIT(QN_BF16) | QN__BIT(QN_F32);
  return mixing & QN__BIT(dtype) ? mixing : QN__BIT(dtype);
}

/* A tensor of fewer dims than the others gets leading ones; scalars stay scalars. */
static void lead_by_ones(qn_value *v, int rank)
{
  const int more = rank - v->rank;
  if (v->rank < 1 || more < 1) return;
  const qn__wide packed = (qn__wide)v->dim[0] * v->stride[0];
  const int64_t beyond = packed > QN__MAX_ELEMENTS ? 0 : (int64_t)packed;     /* of an empty tensor strides mean nothing */
  for (int i = rank - 1; i >= 0; i--) {
    v->dim[i] = i < more ? 1 : v->dim[i - more];
    v->stride[i] = i < more ? beyond : v->stride[i - more];
  }
  v->rank = rank;
}

/* Operands have y's rank, or fewer dims, which are then the last ones, each dim equal to y's or 1, or are scalars (rank 0). Dtypes of
 * tensors must mix; a scalar is converted.
 * y counts as a tensor too unless its dtype is independent: a comparison's bool, a cast's. */
qn_status qn__infer_pointwise(const qn__problem *p)
{
  uint32_t y_role = p->op->n_inputs;
  qn_value *y = qn__arg(p, y_role);
  int rank = y->rank > 0 ? y->rank : 0;
  int64_t dim[QN_MAX_RANK];
  for (int i = 0; i < QN_MAX_RANK; i++) dim[i] = 1;
  for (uint32_t r = 0; r < y_role && y->rank <= 0; r++)
    if (qn__arg(p, r)->rank > rank) rank = qn__arg(p, r)->rank;
  for (uint32_t r = 0; r < y_role; r++) {
    qn_value *v = qn__arg(p, r);
    if (v->rank == 0) continue;
    if (v->rank > rank)
      return qn__refuse(p, qn__role_name(p, r), "rank is %d; must be at most %s's, %d", (int)v->rank, qn__role_name(p, y_role), rank);
    lead_by_ones(v, rank);
    for (int i = 0; i < rank; i++) {
      if (v->dim[i] != dim[i] && v->dim[i] != 1 && dim[i] != 1)
        return qn__refuse(p, qn__role_name(p, r), "dims are %s; each must be 1 or that of the others, here dim %d is %lld",
                          qn__dims(v).s, i, (long long)dim[i]);
      if (dim[i] == 1) dim[i] = v->dim[i];
    }
  }
  if (y->rank >= 0) {                   /* given: inputs may all be broadcast to it */
    for (int i = 0; i < rank; i++)
      if (dim[i] == 1 && y->rank == rank) dim[i] = y->dim[i];
  }

  /* the computing dtype: from the tensors, or if all are scalars from those on the device */
  bool y_counts = p->op->role[y_role].class_ != 'b' && p->op->kind != QN_OP_CAST;
  uint32_t together = 0, first = 0;
  const char *first_name = NULL;
  for (uint32_t r = 0; r < y_role && p->op->kind != QN_OP_CAST; r++) {
    const qn_value *v = qn__arg(p, r);
    bool selector = p->op->role[r].class_ == 'b' && p->op->role[y_role].class_ != 'b';
    bool scalar = v->rank == 0 && (rank > 0 || v->flags & QN_VALUE_HOST);
    if (selector || scalar) continue;
    if (!together) {
      together = qn__kin(v->dtype);
      first = v->dtype;
      first_name = qn__role_name(p, r);
    } else if (!(together & QN__BIT(v->dtype)))
      return qn__refuse(p, qn__role_name(p, r), "dtype is %s, which does not stand with %s's %s; cast one of them",
                        qn_dtype_name(v->dtype), first_name, qn_dtype_name(first));
  }
  if (!together && y_counts && y->dtype) together = qn__kin(y->dtype);
  for (uint32_t r = 0; r < y_role && together; r++) {
    const qn_value *v = qn__arg(p, r);
    if (v->rank == 0 && strchr("ndv", p->op->role[r].class_) && !((QN__FLOATS | together) & QN__BIT(v->dtype)))
      return qn__refuse(p, qn__role_name(p, r), "is a scalar of dtype %s; beside these tensors it must be a float or of their dtype",
                        qn_dtype_name(v->dtype));
  }
  if (p->op->kind == QN_OP_CAST) {
    if (!y->dtype) return qn__refuse(p, "y", "must be given: its dtype is what cast is for");
  } else if (!y_counts) {
    if (!first) return qn__refuse(p, qn__role_name(p, 0), "is a scalar, as all inputs are; at least one must be a tensor");
    first = QN_BOOL;
  } else {
    if (!first) first = y->dtype ? y->dtype : qn__arg(p, y_role - 1)->dtype;
    else if (y->dtype && !(together & QN__BIT(y->dtype)))
      return qn__refuse(p, qn__role_name(p, y_role), "dtype is %s, which does not stand with %s's %s; cast one of them",
                        qn_dtype_name(y->dtype), first_name, qn_dtype_name(first));
  }
  return qn__settle(p, y_role, first, rank, dim);
}

/* ---- softmax ------------------------------------------------------------------------------ */

/* All tensors of the same dims; f64 does not mix, the other floats do. */
qn_status qn__infer_softmax(const qn__problem *p)
{
  const qn_value *x = qn__arg(p, 0);
  qn_axis *axis = p->attr;
  if (x->rank < 1) return qn__refuse(p, qn__role_name(p, 0), "rank is 0; must be at least 1");
  qn_status status = qn__settle_axis(p, &axis->axis, x->rank);
  if (status) return status;
  for (uint32_t r = 1; r < p->op->n_roles; r++) {
    if ((status = qn__dtype_in(p, r, qn__kin(x->dtype)))) return status;
    if (r < p->op->n_inputs && (status = qn__same_dims(p, r, 0))) return status;
  }
  return qn__settle(p, p->op->n_inputs, x->dtype, x->rank, x->dim);
}

/* ---- reductions --------------------------------------------------------------------------- */

qn_status qn__infer_reduction(const qn__problem *p)
{
  const qn_value *x = qn__arg(p, 0);
  qn_axes *axes = p->attr;
  uint64_t all = ((uint64_t)1 << x->rank) - 1;
  if (axes->mask & ~all)
    return qn__refuse(p, "axis", "names dim %d; x's rank is %d", 63 - __builtin_clzll(axes->mask & ~all), (int)x->rank);
  if (!axes->mask) axes->mask = all;
  int64_t dim[QN_MAX_RANK];
  double reduced = 1;
  for (int i = 0; i < x->rank; i++) {
    dim[i] = axes->mask >> i & 1 ? 1 : x->dim[i];
    if (axes->mask >> i & 1) reduced *= (double)x->dim[i];
  }
  qn_status status;
  uint32_t dtype = x->dtype;
  if (p->op->role[1].class_ == 'i') {   /* argmax, argmin: an index into the reduced dims */
    bool wide = reduced > 0x7fffffff;
    dtype = wide ? QN_I64 : QN_I32;
    if (wide && qn__arg(p, 1)->dtype == QN_I32)
      return qn__refuse(p, "y", "dtype is i32; %.0f elements are counted: use i64", reduced);
  } else {
    bool sums = p->op->kind == QN_OP_REDUCE_SUM || p->op->kind == QN_OP_REDUCE_PROD;
    uint32_t set = QN__BIT(x->dtype) & QN__FLOATS ? QN__FLOATS
                 : QN__BIT(x->dtype) | (sums ? QN__BIT(QN_I32) | QN__BIT(QN_I64) : 0);
    if ((status = qn__dtype_in(p, 1, set))) return status;
  }
  return qn__settle(p, 1, dtype, x->rank, dim);
}
