/* infer_training.c -- training steps: lists of one length whose tensors agree, and scalars. */
#include <string.h>
#include "problem.h"

/* velocity must be given if momentum is not 0, and only then. */
static qn_status check_velocity(const qn__problem *p)
{
  const bool sgd = p->op->kind == QN_OP_SGD, velocity = qn__arg(p, sgd ? QN_ROLE_SGD_VELOCITY : QN_ROLE_RMSPROP_VELOCITY);
  const bool momentum = (sgd ? ((const qn_sgd_rule *)p->attr)->momentum : ((const qn_rmsprop_rule *)p->attr)->momentum) != 0;
  if (momentum != velocity) return qn__refuse(p, "velocity", momentum ? "is missing; momentum wants it" : "is given, but momentum is 0");
  if (velocity != (qn__arg(p, sgd ? QN_ROLE_SGD_NEW_VELOCITY : QN_ROLE_RMSPROP_NEW_VELOCITY) != NULL))
    return qn__refuse(p, "new_velocity", "and velocity must be given both or neither");
  return QN_OK;
}

/* Checks a list against the first one: same length, same dims, dtypes allowed by the role. */
static qn_status check_list(const qn__problem *p, uint32_t r, uint32_t first)
{
  const int32_t *begin = p->node->first;
  int32_t n = begin[first + 1] - begin[first];
  if (begin[r + 1] - begin[r] != n)
    return qn__refuse(p, qn__role_name(p, r), "has %d tensors; must have as many as %s, %d", (int)(begin[r + 1] - begin[r]),
                      qn__role_name(p, first), (int)n);
  for (int32_t k = 0; k < n; k++) {
    const qn_value *like = &p->value[p->node->arg[begin[first] + k]];
    qn_value *v = &p->value[p->node->arg[begin[r] + k]];
    bool state = p->op->role[r].class_ == 'w', same = strncmp(qn__role_name(p, r), "new_", 4) == 0 && !state;
    uint32_t exact = like->dtype == QN_F64 ? QN_F64 : QN_F32;
    uint32_t set = state ? QN__BIT(exact) : same ? QN__BIT(like->dtype) : qn__kin(like->dtype);
    if (v->dtype && !(set & QN__BIT(v->dtype)))
      return qn__refuse(p, qn__role_name(p, r), "dtype of tensor %d is %s, which does not stand with %s's %s", (int)k,
                        qn_dtype_name(v->dtype), qn__role_name(p, first), qn_dtype_name(like->dtype));
    qn_status status = qn__settle_value(p, r, v, state ? exact : like->dtype, like->rank, like->dim);
    if (status) return status;
  }
  return QN_OK;
}

qn_status qn__infer_training(const qn__problem *p)
{
  qn_status status = p->op->kind == QN_OP_SGD || p->op->kind == QN_OP_RMSPROP ? check_velocity(p) : QN_OK;
  if (status) return status;
  uint32_t first = 0, exact = QN_F32;
  qn__list_length(p->op, p->node->first, &first);
  bool lists = p->op->kind != QN_OP_AMP_UPDATE;
  for (int32_t k = p->node->first[first]; k < p->node->first[first + 1]; k++)
    if (p->value[p->node->arg[k]].dtype == QN_F64) exact = QN_F64;
  for (int32_t k = p->node->first[first]; k < p->node->first[first + 1] && lists; k++)
    if ((p->value[p->node->arg[k]].dtype == QN_F64) != (exact == QN_F64))
      return qn__refuse(p, qn__role_name(p, first), "has tensors of f64 beside others; all or none must be");
  for (uint32_t r = 0; r < p->op->n_roles; r++) {
    const qn_value *v = qn__arg(p, r);
    if (!v) continue;
    if (p->op->role[r].flags & QN_ROLE_LIST) {
      if (r != first && (status = check_list(p, r, first))) return status;
    } else if (r >= p->op->n_inputs || p->op->role[r].class_ == 'w') {          /* scalars: outputs, or state kept from step to step */
      uint32_t dtype = p->op->role[r].class_ == 'k' ? QN_I64 : exact;
      if (r >= p->op->n_inputs && lists && (status = qn__dtype_in(p, r, QN__BIT(dtype)))) return status;
      if (p->op->kind == QN_OP_AMP_UPDATE && dtype != QN_I64) dtype = qn__arg(p, QN_ROLE_AMP_UPDATE_SCALE)->dtype;
      if ((status = qn__settle(p, r, dtype, 0, NULL))) return status;
    }
  }
  return QN_OK;
}
