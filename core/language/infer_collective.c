/* infer_collective.c -- collectives: the k-th output of a list is like the k-th input, but for dim 0 where shares are made or joined.
 * Whether `ranks`, `root` and `peer` fit the group is known once a context has joined it: its engines check that. */
#include <string.h>
#include "problem.h"

/* The dims of an output, from those of x. */
static qn_status dims_of(const qn__problem *p, const qn_value *x, int k, int64_t *dim)
{
  const int64_t ranks = ((const qn_collective *)p->attr)->ranks;
  const uint32_t op = p->op->kind;
  memcpy(dim, x->dim, sizeof x->dim);
  if (op != QN_OP_REDUCE_SCATTER && op != QN_OP_ALL_GATHER && op != QN_OP_ALL_TO_ALL) return QN_OK;
  if (x->rank < 1) return qn__refuse(p, "x", "tensor %d is a scalar; %s works along dim 0", k, p->op->name);
  if (op == QN_OP_ALL_GATHER) {
    const qn__wide joined = (qn__wide)x->dim[0] * ranks;
    if (joined > QN__MAX_ELEMENTS) return qn__refuse(p, "y", "dim 0 of tensor %d would be more than memory can hold", k);
    dim[0] = (int64_t)joined;
    return QN_OK;
  }
  if (x->dim[0] % ranks)
    return qn__refuse(p, "x", "dim 0 of tensor %d is %lld, no multiple of the %lld ranks that share it", k, (long long)x->dim[0],
                      (long long)ranks);
  if (op == QN_OP_REDUCE_SCATTER) dim[0] /= ranks;
  return QN_OK;
}

qn_status qn__infer_collective(const qn__problem *p)
{
  const qn_collective *a = p->attr;
  const int32_t *first = p->node->first, n = first[1] - first[0];
  const uint32_t y = p->op->n_inputs;
  const bool reduces = p->op->kind == QN_OP_ALL_REDUCE || p->op->kind == QN_OP_REDUCE_SCATTER;
  const bool scaled = reduces && first[2] > first[1];
  if (scaled && a->reduction != QN_JOIN_SUM && a->reduction != QN_JOIN_AVG)
    return qn__refuse(p, "scale", "is given; only sum and avg are scaled");
  if (first[y + 1] - first[y] != n)
    return qn__refuse(p, "y", "has %d tensors; must have as many as x, %d", (int)(first[y + 1] - first[y]), (int)n);
  for (int32_t k = 0; k < n; k++) {
    const qn_value *x = &p->value[p->node->arg[first[0] + k]];
    qn_value *v = &p->value[p->node->arg[first[y] + k]];
    int64_t dim[QN_MAX_RANK];
    const bool whole = QN__BIT(x->dtype) & QN__INTEGERS;
    if (reduces && whole && (scaled || a->reduction == QN_JOIN_AVG))
      return qn__refuse(p, "x", "tensor %d is of %s; %s wants floats", (int)k, qn_dtype_name(x->dtype), scaled ? "scale" : "avg");
    qn_status status = dims_of(p, x, (int)k, dim);
    if (status) return status;
    if (v->dtype && v->dtype != x->dtype)
      return qn__refuse(p, "y", "dtype of tensor %d is %s; must be x's, %s", (int)k, qn_dtype_name(v->dtype), qn_dtype_name(x->dtype));
    if ((status = qn__settle_value(p, y, v, x->dtype, x->rank, dim))) return status;
  }
  return QN_OK;
}
