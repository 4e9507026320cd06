/* infer_transform.c -- the same values at other places: copy, permute, slice, pad, concat. */
#include "problem.h"

static qn_status permute(const qn__problem *p, const qn_value *x, int64_t *dim)
{
  const qn_permutation *permutation = p->attr;
  uint32_t seen = 0;
  for (int i = 0; i < x->rank; i++) {
    int64_t from = permutation->axis[i];
    if (from < 0 || from >= x->rank)
      return qn__refuse(p, "perm", "entry %d is %lld; must be 0 to %d", i, (long long)from, (int)x->rank - 1);
    if (seen >> from & 1) return qn__refuse(p, "perm", "names dim %lld twice", (long long)from);
    seen |= 1u << from;
    dim[i] = x->dim[from];
  }
  return QN_OK;
}

static qn_status slice(const qn__problem *p, const qn_value *x, int64_t *dim)
{
  qn_slicing *s = p->attr;
  qn_status status;
  if ((status = qn__attr_bounds(p, "start", s->start, x->rank, 0))) return status;
  if ((status = qn__attr_bounds(p, "length", s->length, x->rank, 0))) return status;
  if ((status = qn__attr_bounds(p, "step", s->step, x->rank, 1))) return status;
  for (int i = 0; i < x->rank; i++) {
    if (s->start[i] > x->dim[i])
      return qn__refuse(p, "start", "entry %d is %lld; x's dim is %lld", i, (long long)s->start[i], (long long)x->dim[i]);
    int64_t left = x->dim[i] - s->start[i], fits = left ? (left - 1) / s->step[i] + 1 : 0;
    if (s->length[i] == 0) s->length[i] = fits;
    if (s->length[i] > fits)
      return qn__refuse(p, "length", "entry %d is %lld; from %lld in steps of %lld x's dim of %lld has %lld", i,
                        (long long)s->length[i], (long long)s->start[i], (long long)s->step[i], (long long)x->dim[i], (long long)fits);
    dim[i] = s->length[i];
  }
  for (int i = x->rank; i < QN_MAX_RANK; i++) s->length[i] = 1;
  return QN_OK;
}

static qn_status pad(const qn__problem *p, const qn_value *x, int64_t *dim)
{
  const qn_padding *a = p->attr;
  qn_status status;
  if ((status = qn__attr_bounds(p, "pad", a->pad_before, x->rank, 0))) return status;
  if ((status = qn__attr_bounds(p, "pad", a->pad_after, x->rank, 0))) return status;
  for (int i = 0; i < x->rank; i++) dim[i] = a->pad_before[i] + x->dim[i] + a->pad_after[i];
  return QN_OK;
}

static qn_status concat(const qn__problem *p, const qn_value *x, int64_t *dim)
{
  qn_axis *a = p->attr;
  if (x->rank < 1) return qn__refuse(p, "x[0]", "rank is 0; must be at least 1");
  if (a->axis < -1 || a->axis >= x->rank)
    return qn__refuse(p, "axis", "is %lld; must be -1 (the last) or 0 to %d", (long long)a->axis, (int)x->rank - 1);
  if (a->axis == -1) a->axis = x->rank - 1;
  int axis = (int)a->axis;
  for (int32_t k = p->node->first[0] + 1; k < p->node->first[1]; k++) {
    const qn_value *v = &p->value[p->node->arg[k]];
    int n = (int)(k - p->node->first[0]);
    if (v->dtype != x->dtype)
      return qn__refuse(p, "x", "dtype of [%d] is %s; must be [0]'s, %s", n, qn_dtype_name(v->dtype), qn_dtype_name(x->dtype));
    bool alike = v->rank == x->rank;
    for (int i = 0; alike && i < x->rank; i++) alike = i == axis || v->dim[i] == x->dim[i];
    if (!alike)
      return qn__refuse(p, "x", "dims of [%d] are %s; must be as [0]'s, %s, but for dim %d", n, qn__dims(v).s, qn__dims(x).s, axis);
    dim[axis] += v->dim[axis];          /* each below 2^58, and there are fewer than 2^31: */
    if (dim[axis] > QN__MAX_ELEMENTS) return qn__refuse(p, "x", "together are more than memory can hold");
  }
  return QN_OK;
}

qn_status qn__infer_transform(const qn__problem *p)
{
  const qn_value *x = qn__arg(p, 0);
  int64_t dim[QN_MAX_RANK];
  for (int i = 0; i < QN_MAX_RANK; i++) dim[i] = x->dim[i];
  qn_status status = QN_OK;
  switch (p->op->kind) {
  case QN_OP_PERMUTE: status = permute(p, x, dim); break;
  case QN_OP_SLICE:   status = slice(p, x, dim); break;
  case QN_OP_PAD:     status = pad(p, x, dim); break;
  case QN_OP_CONCAT:  status = concat(p, x, dim); break;
  default: break;                       /* copy */
  }
  if (status) return status;
  if ((status = qn__dtype_in(p, 1, QN__BIT(x->dtype)))) return status;
  return qn__settle(p, 1, x->dtype, x->rank, dim);
}
