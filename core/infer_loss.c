/* infer_loss.c -- losses: a row of logits and its label. */
#include <string.h>
#include "problem.h"

qn_status qn__infer_loss(const qn__problem *p)
{
  bool backward = p->op->kind == QN_OP_CROSS_ENTROPY_BACKWARD;
  qn_entropy *a = p->attr;
  const qn_value *x = qn__arg(p, backward ? QN_ROLE_CROSS_ENTROPY_BACKWARD_X : QN_ROLE_CROSS_ENTROPY_X);
  if (x->rank < 1) return qn__refuse(p, "x", "rank is 0; must be at least 1");
  qn_status status = qn__settle_axis(p, &a->axis, x->rank);
  if (status) return status;
  if (!(a->smoothing >= 0 && a->smoothing <= 1)) return qn__refuse(p, "smoothing", "is %g; must be 0 to 1", a->smoothing);
  if (backward && a->reduction == QN_REDUCTION_MEAN && !qn__arg(p, QN_ROLE_CROSS_ENTROPY_BACKWARD_COUNT))
    return qn__refuse(p, "count", "is missing; the gradient of a mean wants it");

  uint32_t exact = x->dtype == QN_F64 ? QN_F64 : QN_F32;
  int64_t row[QN_MAX_RANK], one[QN_MAX_RANK];
  for (int i = 0; i < QN_MAX_RANK; i++) {
    row[i] = i < x->rank && i != a->axis ? x->dim[i] : 1;
    one[i] = 1;
  }
  for (uint32_t r = 0; r < p->op->n_roles; r++) {
    const char *name = qn__role_name(p, r);
    bool whole = !strcmp(name, "loss") || !strcmp(name, "dy");
    const int64_t *dim = !strcmp(name, "x") || !strcmp(name, "dx") ? x->dim
                       : !strcmp(name, "count") || (whole && a->reduction != QN_REDUCTION_NONE) ? one : row;
    uint32_t set = !strcmp(name, "labels") ? QN__INTEGERS : dim == x->dim ? qn__kin(x->dtype) : QN__BIT(exact);
    if ((status = qn__dtype_in(p, r, set))) return status;
    if ((status = qn__settle(p, r, dim == x->dim ? x->dtype : exact, x->rank, dim))) return status;
  }
  return QN_OK;
}
