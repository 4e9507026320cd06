/* infer_random.c -- random numbers and dropout: probabilities, keys, and masks of one bit for each element. */
#include <math.h>
#include "problem.h"

/* The family's rules have three kinds of attributes; each op has one. */
static qn_status check_attributes(const qn__problem *p)
{
  const qn_uniform *uniform = p->attr;
  const qn_gauss *gauss = p->attr;
  const qn_chance *chance = p->attr;
  switch (p->op->kind) {
  case QN_OP_RNG_UNIFORM:
    if (!isfinite(uniform->min)) return qn__refuse(p, "min", "is %g; must be finite", uniform->min);
    if (!isfinite(uniform->max - uniform->min) || uniform->max < uniform->min)
      return qn__refuse(p, "max", "is %g; must be at least min, and finitely far from it", uniform->max);
    return QN_OK;
  case QN_OP_RNG_NORMAL:
    if (!isfinite(gauss->mean)) return qn__refuse(p, "mean", "is %g; must be finite", gauss->mean);
    if (!(gauss->deviation >= 0) || isinf(gauss->deviation))
      return qn__refuse(p, "deviation", "is %g; must be finite and at least 0", gauss->deviation);
    return QN_OK;
  default:
    if (!(chance->p >= 0 && chance->p <= 1)) return qn__refuse(p, "p", "is %g; must be 0 to 1", chance->p);
    return QN_OK;
  }
}

/* One bit for each element of like, in octets. */
static qn_status settle_mask(const qn__problem *p, uint32_t role, const qn_value *like)
{
  int64_t elements = 1;
  for (int i = 0; i < like->rank; i++) elements *= like->dim[i];
  elements = elements / 8 + (elements % 8 > 0);
  return qn__settle(p, role, QN_U8, 1, &elements);
}

qn_status qn__infer_random(const qn__problem *p)
{
  qn_status status = check_attributes(p);
  if (status) return status;
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
  default:
    if (!y->dtype || y->rank < 0) return qn__refuse(p, "y", "must be given: nothing else says its dtype and dims");
    return QN_OK;
  }
}
