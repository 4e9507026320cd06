/* infer_normalization.c -- normalization: the dims normalized over, and the dims of statistics and parameters. */
#include <string.h>
#include "problem.h"

/* A parameter may be broadcast along any of x's dims. */
static qn_status check_parameter(const qn__problem *p, uint32_t role, const qn_value *x)
{
  const qn_value *v = qn__arg(p, role);
  bool fits = v->rank == x->rank;
  for (int i = 0; fits && i < x->rank; i++) fits = v->dim[i] == x->dim[i] || v->dim[i] == 1;
  if (fits) return QN_OK;
  return qn__refuse(p, qn__role_name(p, role), "dims are %s; each must be 1 or x's, %s", qn__dims(v).s, qn__dims(x).s);
}

static qn_status complete_attributes(const qn__problem *p, const qn_value *x)
{
  qn_norm *norm = p->attr;
  bool batch = p->op->kind == QN_OP_BATCH_NORM || p->op->kind == QN_OP_BATCH_NORM_BACKWARD || p->op->kind == QN_OP_BATCH_NORM_INFERENCE;
  if (x->rank < (batch ? 2 : 1))
    return qn__refuse(p, "x", "rank is %d; must be at least %d", (int)x->rank, batch ? 2 : 1);
  uint64_t all = ((uint64_t)1 << x->rank) - 1;
  if (norm->mask & ~all)
    return qn__refuse(p, "axis", "names dim %d; x's rank is %d", 63 - __builtin_clzll(norm->mask & ~all), (int)x->rank);
  if (!norm->mask) norm->mask = batch ? all & ~(uint64_t)2 : (uint64_t)1 << (x->rank - 1);
  return QN_OK;
}

/* Dims of a parameter's gradient when neither the line nor the parameter gives them: the usual ones of that parameter. */
static void usual_parameter(const qn__problem *p, const qn_value *x, int64_t *dim)
{
  uint64_t mask = ((const qn_norm *)p->attr)->mask;
  bool batch = p->op->kind == QN_OP_BATCH_NORM_BACKWARD;
  for (int i = 0; i < x->rank; i++) dim[i] = (mask >> i & 1) != batch ? x->dim[i] : 1;
}

qn_status qn__infer_normalization(const qn__problem *p)
{
  enum { PARAMETER, STATISTIC, GRADIENT, ALIKE };
  const qn_value *x = NULL, *scale = NULL;
  for (uint32_t r = 0; r < p->op->n_inputs; r++) {
    if (!strcmp(qn__role_name(p, r), "x")) x = qn__arg(p, r);
    if (!strcmp(qn__role_name(p, r), "scale")) scale = qn__arg(p, r);
  }
  qn_status status = complete_attributes(p, x);
  if (status) return status;
  uint32_t kin = qn__kin(x->dtype), exact = x->dtype == QN_F64 ? QN_F64 : QN_F32;
  uint64_t mask = ((const qn_norm *)p->attr)->mask;
  int64_t statistic[QN_MAX_RANK], parameter[QN_MAX_RANK];
  for (int i = 0; i < x->rank; i++) statistic[i] = mask >> i & 1 ? 1 : x->dim[i];
  usual_parameter(p, x, parameter);
  if (scale) memcpy(parameter, scale->dim, sizeof parameter);

  for (uint32_t r = 0; r < p->op->n_roles; r++) {
    const char *name = qn__role_name(p, r);
    const qn_value *v = qn__arg(p, r);
    if (!v || v == x) continue;
    int kind = !strcmp(name, "y") || !strcmp(name, "dy") || !strcmp(name, "dx") ? ALIKE
             : !strcmp(name, "scale") || !strcmp(name, "shift") ? PARAMETER
             : !strcmp(name, "dscale") || !strcmp(name, "dshift") ? GRADIENT : STATISTIC;
    if ((status = qn__dtype_in(p, r, kind == STATISTIC ? QN__BIT(exact) : kin))) return status;
    switch (kind) {
    case PARAMETER: status = check_parameter(p, r, x); break;
    case STATISTIC: status = qn__settle(p, r, exact, x->rank, statistic); break;
    case ALIKE:     status = qn__settle(p, r, x->dtype, x->rank, x->dim); break;
    case GRADIENT:
      if (v->rank >= 0 && !(scale && !strcmp(name, "dscale"))) status = check_parameter(p, r, x);
      else status = qn__settle(p, r, scale ? scale->dtype : exact, x->rank, parameter);
    }
    if (status) return status;
  }
  if (p->op->kind == QN_OP_BATCH_NORM)
    for (uint32_t r = 0; r < 2; r++)
      if (!qn__arg(p, QN_ROLE_BATCH_NORM_RUNNING_MEAN + r) != !qn__arg(p, QN_ROLE_BATCH_NORM_NEW_MEAN + r))
        return qn__refuse(p, qn__role_name(p, QN_ROLE_BATCH_NORM_NEW_MEAN + r), "and %s must be given both or neither",
                          qn__role_name(p, QN_ROLE_BATCH_NORM_RUNNING_MEAN + r));
  return QN_OK;
}
