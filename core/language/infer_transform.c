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
  for (int i = 0; i < x->rank; i++) {
    if (s->start[i] > x->dim[i])
      return qn__refuse(p, "start", "entry %d is %lld; x's dim is %lld", i, (long long)s->start[i], (long long)x->dim[i]);
    if (s->step[i] == 0) return qn__refuse(p, "step", "entry %d is 0; must be at least 1, or negative to go backwards", i);
    if (s->step[i] < 0 && s->start[i] == x->dim[i] && x->dim[i])
      return qn__refuse(p, "start", "entry %d is %lld; a step backwards starts below x's dim of %lld", i, (long long)s->start[i],
                        (long long)x->dim[i]);
    int64_t left = s->step[i] > 0 ? x->dim[i] - s->start[i] : x->dim[i] ? s->start[i] + 1 : 0;    /* places from start on */
    int64_t fits = left ? (left - 1) / (s->step[i] > 0 ? s->step[i] : -s->step[i]) + 1 : 0;
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
  for (int i = 0; i < x->rank; i++) {
    dim[i] = a->pad_before[i] + x->dim[i] + a->pad_after[i];
    if (dim[i] < 0)
      return qn__refuse(p, "pad", "entry %d is %lld:%lld; x's dim of %lld has no more to cut off", i, (long long)a->pad_before[i],
                        (long long)a->pad_after[i], (long long)x->dim[i]);
  }
  return qn__check_padding(p, x->rank, x->dim);
}

qn_status qn__check_padding(const qn__problem *p, int rank, const int64_t *x_dim)
{
  const qn_padding *a = p->attr;
  for (int i = 0; i < rank && a->mode != QN_PAD_CONSTANT; i++) {
    int64_t most = a->pad_before[i] > a->pad_after[i] ? a->pad_before[i] : a->pad_after[i];
    if (most <= 0) continue;
    if (a->mode == QN_PAD_REFLECT && most >= x_dim[i])
      return qn__refuse(p, "pad", "entry %d is %lld; a reflection of x's dim of %lld reaches %lld at most", i, (long long)most,
                        (long long)x_dim[i], (long long)(x_dim[i] > 0 ? x_dim[i] - 1 : 0));
    if (x_dim[i] == 0)
      return qn__refuse(p, "pad", "entry %d is %lld; x's dim is 0, which has nothing to repeat", i, (long long)most);
  }
  return QN_OK;
}

qn_status qn__gathered_dims(const qn__problem *p, const qn_value *x, const qn_value *indices, int axis, int *rank, int64_t *dim)
{
  *rank = x->rank - 1 + indices->rank;
  if (*rank > QN_MAX_RANK)
    return qn__refuse(p, "indices", "rank is %d; with the other %d dims of %s that is more than %d", (int)indices->rank, (int)x->rank - 1,
                      p->op->kind == QN_OP_GATHER ? "x" : "dx", QN_MAX_RANK);
  for (int i = 0; i < *rank; i++)
    dim[i] = i < axis ? x->dim[i] : i < axis + indices->rank ? indices->dim[i - axis] : x->dim[i - indices->rank + 1];
  return QN_OK;
}

static qn_status gather(const qn__problem *p, const qn_value *x, int *rank, int64_t *dim)
{
  qn_axis *a = p->attr;
  if (x->rank < 1) return qn__refuse(p, "x", "rank is 0; must be at least 1");
  qn_status status = qn__settle_axis(p, &a->axis, x->rank);
  if (status) return status;
  return qn__gathered_dims(p, x, qn__arg(p, QN_ROLE_GATHER_INDICES), (int)a->axis, rank, dim);
}

/* y has the dims of indices, which reach no further than x's but along the axis. */
static qn_status gather_elements(const qn__problem *p, const qn_value *x, int64_t *dim)
{
  qn_axis *a = p->attr;
  const qn_value *indices = qn__arg(p, QN_ROLE_GATHER_ELEMENTS_INDICES);
  if (x->rank < 1) return qn__refuse(p, "x", "rank is 0; must be at least 1");
  qn_status status = qn__settle_axis(p, &a->axis, x->rank);
  if (status || (status = qn__within_dims(p, QN_ROLE_GATHER_ELEMENTS_INDICES, x, (int)a->axis))) return status;
  for (int i = 0; i < x->rank; i++) dim[i] = indices->dim[i];
  return QN_OK;
}

qn_status qn__within_dims(const qn__problem *p, uint32_t role, const qn_value *x, int axis)
{
  const qn_value *v = qn__arg(p, role);
  bool fits = v->rank == x->rank;
  for (int i = 0; fits && i < x->rank; i++) fits = i == axis || v->dim[i] <= x->dim[i];
  return fits ? QN_OK : qn__refuse(p, qn__role_name(p, role), "dims are %s; must be as many as x's, %s, and but for dim %d no larger",
                                   qn__dims(v).s, qn__dims(x).s, axis);
}

static qn_status concat(const qn__problem *p, const qn_value *x, int64_t *dim)
{
  qn_axis *a = p->attr;
  if (x->rank < 1) return qn__refuse(p, "x[0]", "rank is 0; must be at least 1");
  qn_status status = qn__settle_axis(p, &a->axis, x->rank);
  if (status) return status;
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
  uint32_t y = p->op->n_inputs;
  int rank = x->rank;
  int64_t dim[QN_MAX_RANK];
  for (int i = 0; i < QN_MAX_RANK; i++) dim[i] = x->dim[i];
  qn_status status = QN_OK;
  switch (p->op->kind) {
  case QN_OP_PERMUTE: status = permute(p, x, dim); break;
  case QN_OP_SLICE:   status = slice(p, x, dim); break;
  case QN_OP_PAD:     status = pad(p, x, dim); break;
  case QN_OP_CONCAT:  status = concat(p, x, dim); break;
  case QN_OP_GATHER:  status = gather(p, x, &rank, dim); break;
  case QN_OP_GATHER_ELEMENTS: status = gather_elements(p, x, dim); break;
  default: break;                       /* copy */
  }
  if (status) return status;
  if ((status = qn__dtype_in(p, y, QN__BIT(x->dtype)))) return status;
  return qn__settle(p, y, x->dtype, rank, dim);
}
