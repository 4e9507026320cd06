/* infer_local.c -- normalization by neighbours: every tensor has the first one's dims. */
#include "problem.h"

qn_status qn__infer_local(const qn__problem *p)
{
  const qn_local_norm *a = p->attr;
  const qn_value *x = qn__arg(p, 0);
  int least = a->region == QN_LOCAL_WITHIN ? 3 : 2;
  if (x->rank < least || x->rank > 5)
    return qn__refuse(p, qn__role_name(p, 0), "rank is %d; must be %d to 5: batch, channels%s", (int)x->rank, least,
                      least == 3 ? " and 1 to 3 spatial dims" : " and spatial dims");
  qn_status status = QN_OK;
  for (uint32_t r = 1; r < p->op->n_roles && !status; r++) {
    status = qn__dtype_in(p, r, QN__BIT(x->dtype));
    if (!status) status = qn__settle(p, r, x->dtype, x->rank, x->dim);
  }
  if (!status && p->op->kind == QN_OP_LRN_BACKWARD && qn__arg(p, QN_ROLE_LRN_BACKWARD_DMEANS) && !qn__arg(p, QN_ROLE_LRN_BACKWARD_MEANS))
    return qn__refuse(p, "dmeans", "is wanted where no means are given");
  return status;
}
