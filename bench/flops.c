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

/* A cache written in place: what is written is x's elements. */
static bool in_place(const qn_graph_view *g, const qn_node *op)
{
  return op->op == QN_OP_CACHE_WRITE && g->value[op->arg[op->first[QN_ROLE_CACHE_WRITE_NEW_CACHE]]].over >= 0;
}

static double written_bytes(const qn_graph_view *g, int32_t output)
{
  const qn_value *v = &g->value[output];
  const qn_node *op = v->producer >= 0 ? &g->op[v->producer] : NULL;
  if (!op || !in_place(g, op))
    return stored_bytes(v);
  return (double)qn_elements(&g->value[op->arg[op->first[QN_ROLE_CACHE_WRITE_X]]]) * (double)qn_dtype_bytes(v->dtype);
}

/* The bytes read of an input: all, unless only slices or rows of it are taken. */
static double read_bytes(const qn_graph_view *g, int32_t input)
{
  double sliced = 0, whole = stored_bytes(&g->value[input]);
  for (uint32_t i = 0; i < g->n_ops; i++) {
    const qn_node *op = &g->op[i];
    for (int32_t a = 0; a < op->first[op->n_inputs]; a++)
      if (op->arg[a] == input) {
        if (a == 0 && in_place(g, op))
          continue;
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
    const bool products = op->family == QN_FAMILY_CONTRACTION || op->op == QN_OP_ATTENTION_FORWARD || op->op == QN_OP_ATTENTION_BACKWARD;
    if (products && !c.matrix_dtype)
      c.matrix_dtype = g->value[op->arg[0]].dtype;
  }
  for (uint32_t i = 0; i < g->n_pointers; i++)
    c.bytes += i < g->n_ins ? read_bytes(g, g->pointer[i]) : written_bytes(g, g->pointer[i]);
  return c;
}
