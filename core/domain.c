/* domain.c -- what the inputs of a problem may hold for its ops to have their usual work: indices that name places, lengths that
 * count, radicands that are positive. The tuner and the bench make up their data by it. */
#include "config.h"
#include "core.h"
#include <string.h>

static const qn_value *value_of(const qn_graph_view *g, const qn_node *op, uint32_t role) { return &g->value[op->arg[op->first[role]]]; }

/* The spatial places of dx that an index of max pooling names, or (u8) the taps of its window. */
static int64_t places_of(const qn_graph_view *g, const qn_node *op, uint32_t dtype)
{
  const qn_pool *pool = op->op == QN_OP_POOL_MAX_BACKWARD && dtype == QN_U8 ? op->attr : NULL;
  const qn_value *dx = value_of(g, op, op->n_inputs);
  int64_t n = 1;
  for (int d = 0; d < dx->rank - 2; d++) n *= pool && pool->window[d] ? pool->window[d] : dx->dim[2 + d];
  return n;
}

/* Of an index input. Of ctc all frames and labels count, and no label is class 0. */
static void indices(const qn_graph_view *g, const qn_node *op, uint32_t role, uint32_t dtype, qn_domain *d)
{
  const uint32_t dy = op->op == QN_OP_CTC_LOSS_BACKWARD || op->op == QN_OP_CROSS_ENTROPY_BACKWARD;    /* comes before the forward's roles */
  switch (op->op) {
  case QN_OP_GATHER:      d->range = value_of(g, op, 0)->dim[((const qn_axis *)op->attr)->axis]; break;
  case QN_OP_SCATTER_ADD: d->range = value_of(g, op, op->n_inputs)->dim[((const qn_axis *)op->attr)->axis]; break;
  case QN_OP_ONE_HOT:     d->range = ((const qn_one_hot_encoding *)op->attr)->depth; break;
  case QN_OP_POOL_MAX_BACKWARD: case QN_OP_POOL_ADAPTIVE_MAX_BACKWARD:
    d->range = places_of(g, op, dtype);
    break;
  case QN_OP_CROSS_ENTROPY: case QN_OP_CROSS_ENTROPY_BACKWARD:
    d->range = value_of(g, op, QN_ROLE_CROSS_ENTROPY_X + dy)->dim[((const qn_entropy *)op->attr)->axis];
    break;
  case QN_OP_CTC_LOSS: case QN_OP_CTC_LOSS_BACKWARD:
    d->from = d->range = 1;
    if (role == QN_ROLE_CTC_LOSS_LABELS + dy) d->range = value_of(g, op, QN_ROLE_CTC_LOSS_X + dy)->dim[2] - 1;
    else if (role == QN_ROLE_CTC_LOSS_X_LENGTHS + dy) d->from = value_of(g, op, QN_ROLE_CTC_LOSS_X + dy)->dim[0];
    else d->from = value_of(g, op, QN_ROLE_CTC_LOSS_LABELS + dy)->dim[1];
    break;
  default: break;
  }
  if (d->range < 1) d->range = 1;
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
        if (op->arg[a] != value) continue;
        if (op->op == QN_OP_LOG || op->op == QN_OP_SQRT || op->op == QN_OP_RSQRT || op->op == QN_OP_POW || info->role[r].class_ == 'z')
          domain->floats = QN_FLOATS_POSITIVE;
        if (!strcmp(info->role[r].name, "found")) domain->floats = QN_FLOATS_ZERO;           /* else training does nothing */
        if (info->role[r].class_ == 'i' || info->role[r].class_ == 't') indices(g, op, r, dtype, domain);
      }
  }
}
