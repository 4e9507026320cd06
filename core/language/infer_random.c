/* infer_random.c -- random numbers and dropout: probabilities, keys, and masks of one bit per element. */
#include <math.h>
#include "problem.h"

/* One bit per element of like, in bytes. */
static qn_status settle_mask(const qn__problem *p, uint32_t role, const qn_value *like)
{
  int64_t elements = 1;
  for (int i = 0; i < like->rank; i++) elements *= like->dim[i];
  elements = elements / 8 + (elements % 8 > 0);
  return qn__settle(p, role, QN_U8, 1, &elements);
}

qn_status qn__infer_random(const qn__problem *p)
{
  qn_status status;
  const qn_value *x = qn__arg(p, 0), *y = qn__arg(p, p->op->n_inputs);
  switch (p->op->kind) {
  case QN_OP_DROPOUT:
    if ((status = qn__dtype_in(p, QN_ROLE_DROPOUT_Y, qn__kin(x->dtype)))) return status;
    if ((status = qn__settle(p, QN_ROLE_DROPOUT_Y, x->dtype, x->rank, x->dim))) return status;
    return settle_mask(p, QN_ROLE_DROPOUT_MASK, x);
  case QN_OP_DROPOUT_BACKWARD:
    if (!qn__arg(p, QN_ROLE_DROPOUT_BACKWARD_MASK) == !qn__arg(p, QN_ROLE_DROPOUT_BACKWARD_SEED))
      return qn__refuse(p, "mask", "or seed must be given, and one of them only");
    if (qn__arg(p, QN_ROLE_DROPOUT_BACKWARD_OFFSET) && !qn__arg(p, QN_ROLE_DROPOUT_BACKWARD_SEED))
      return qn__refuse(p, "offset", "wants a seed beside it");
    if ((status = qn__dtype_in(p, QN_ROLE_DROPOUT_BACKWARD_DX, qn__kin(x->dtype)))) return status;
    if ((status = settle_mask(p, QN_ROLE_DROPOUT_BACKWARD_MASK, x))) return status;
    return qn__settle(p, QN_ROLE_DROPOUT_BACKWARD_DX, x->dtype, x->rank, x->dim);
  case QN_OP_RNG_UNIFORM: {
    const qn_uniform *a = p->attr;
    if (!isfinite(a->max - a->min) || a->max < a->min)
      return qn__refuse(p, "max", "is %g; must be at least min, and finitely far from it", a->max);
  } /* fall through */
  default:
    if (!y->dtype || y->rank < 0) return qn__refuse(p, "y", "must be given: nothing else says its dtype and dims");
    return QN_OK;
  }
}
