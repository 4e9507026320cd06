/* flops.c -- FLOPs and bytes of a problem, computed from its shapes alone. Bytes are the least that must move: each input
 * once, each output once, broadcast elements once, of a sliced or gathered input only what is read. */
#include <quern/kit.h>
#include "bench.h"

static double stored_bytes(const qn_value *v)
{
  double n = (double)qn_dtype_bytes(v->dtype);
  for (int i = 0; i < v->rank; i++)
    n *= v->stride[i] ? (double)v->dim[i] : 1;
  return n;
}

/* The bytes read of an input: all, unless only slices or rows of it are taken. */
static double read_bytes(const qn_graph_view *g, int32_t input)
{
  double sliced = 0, whole = stored_bytes(&g->value[input]);
  for (uint32_t i = 0; i < g->n_ops; i++) {
    const qn_node *op = &g->op[i];
    for (int32_t a = 0; a < op->first[op->n_inputs]; a++)
      if (op->arg[a] == input) {
        if (op->op != QN_OP_SLICE && !(op->op == QN_OP_GATHER && a == 0))
          return whole;
        sliced += stored_bytes(&g->value[op->arg[op->first[op->n_inputs]]]);
      }
  }
  return sliced < whole ? sliced : whole;
}

problem_cost cost_of(const qn_graph_view *g)
{
  problem_cost c = { 0, 0, 0 };
  for (uint32_t i = 0; i < g->n_ops; i++) {
    const qn_node *op = &g->op[i];
    c.flops += qn_flops(op, g->value);
    if (op->family == QN_FAMILY_CONTRACTION && !c.matrix_dtype)
      c.matrix_dtype = g->value[op->arg[0]].dtype;
  }
  for (uint32_t i = 0; i < g->n_pointers; i++)
    c.bytes += i < g->n_ins ? read_bytes(g, g->pointer[i]) : stored_bytes(&g->value[g->pointer[i]]);
  return c;
}
