/* domain.c -- what the inputs of a problem must hold for its ops to do typical work, by the schema's declarations. The
 * tuner and the bench generate their data from it. */
#include "config.h"
#include "core.h"
#include <string.h>

static const int64_t *attribute(const qn_node *op, const qn_op_info *info, const char *name)
{
  for (uint32_t k = 0; k < info->n_attrs; k++)
    if (!strcmp(info->attr[k].name, name)) return (const int64_t *)((const char *)op->attr + info->attr[k].offset);
  return NULL;
}

/* The number of spatial positions of v; for u8 indices, of taps in a window. */
static int64_t places(const qn_node *op, const qn_op_info *info, const qn_value *v, uint32_t dtype)
{
  const int64_t *window = dtype == QN_U8 ? attribute(op, info, "window") : NULL;
  int64_t n = 1;
  for (int d = 0; d < v->rank - 2; d++) n *= window && window[d] ? window[d] : v->dim[2 + d];
  return n;
}

static int64_t extent(const qn_graph_view *g, const qn_node *op, const qn_op_info *info, const qn_role_info *role, uint32_t dtype)
{
  const qn_value *v = &g->value[op->arg[op->first[role->of]]];
  if (role->dim == QN_HOLDS_PLANE) return places(op, info, v, dtype);
  return v->dim[role->dim == QN_HOLDS_AXIS ? *attribute(op, info, "axis") : role->dim];
}

void qn_input_domain(const qn_graph_view *g, int32_t value, qn_domain *domain)
{
  const uint32_t dtype = g->value[value].dtype;
  *domain = (qn_domain){ .range = dtype == QN_BOOL ? 2 : 128 };
  for (uint32_t i = 0; i < g->n_ops; i++) {
    const qn_node *op = &g->op[i];
    const qn_op_info *info = qn_op_find(op->op);
    for (uint32_t r = 0; r < op->n_inputs; r++)
      for (int32_t a = op->first[r]; a < op->first[r + 1]; a++) {
        const qn_role_info *role = &info->role[r];
        if (op->arg[a] != value) continue;
        switch (role->holds) {
        case QN_HOLDS_POSITIVE: domain->floats = QN_FLOATS_POSITIVE; break;
        case QN_HOLDS_ZERO:     domain->floats = QN_FLOATS_ZERO; break;
        case QN_HOLDS_SMALL:    domain->floats = QN_FLOATS_SMALL; break;
        case QN_HOLDS_PLACE:
          domain->from = role->from;
          domain->range = extent(g, op, info, role, dtype) - role->from;
          break;
        case QN_HOLDS_COUNT:
          domain->from = extent(g, op, info, role, dtype);
          domain->range = 1;
          break;
        case QN_HOLDS_RISING:
          domain->range = extent(g, op, info, role, dtype) + 1;
          domain->rising = 1;
          break;
        case QN_HOLDS_LARGE:
          domain->from = INT32_MAX;
          domain->range = 1;
        }
        if (domain->range < 1) domain->range = 1;
      }
  }
}
