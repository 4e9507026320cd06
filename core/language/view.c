/* view.c -- views: ops whose result is their input's memory under other dims and strides, and which need then not be computed.
 *
 * A view of a view is one of the first's memory. Not folded are outputs of the graph, values whose memory another tensor takes, and
 * steps backwards. */
#include "config.h"
#include "core.h"
#include <quern/kit.h>
#include <string.h>

/* Reads op as a view of `in`, which has strides: sets y's strides and its offset; false: it is none. */
static bool read_view(const qn_node *op, const qn_value *in, qn_value *y, int64_t *offset)
{
  *offset = 0;
  if (op->op == QN_OP_PERMUTE) {
    const qn_permutation *permutation = op->attr;
    for (int d = 0; d < y->rank; d++) y->stride[d] = in->stride[permutation->axis[d]];
    return true;
  }
  if (op->op != QN_OP_SLICE) return false;
  const qn_slicing *s = op->attr;
  for (int d = 0; d < y->rank; d++) {
    if (s->step[d] < 1) return false;
    y->stride[d] = in->stride[d] * s->step[d];
    *offset += in->stride[d] * s->start[d];
  }
  return true;
}

/* The alignment left at an offset. */
static uint32_t align_at(uint32_t align, int64_t offset, uint32_t dtype)
{
  const uint64_t bytes = (uint64_t)offset * qn_dtype_bytes(dtype);
  while (align > 1 && bytes % align) align /= 2;
  return align;
}

static bool is_lent(const qn_graph_view *g, int32_t value)
{
  for (uint32_t v = 0; v < g->n_values; v++)
    if (g->value[v].over == value) return true;
  return false;
}

static bool is_foldable(const qn_graph_view *g, int32_t x, int32_t y)
{
  return !(g->value[y].flags & (QN_VALUE_ESCAPE | QN_VALUE_HOST)) && !(g->value[x].flags & QN_VALUE_HOST) && g->value[y].over < 0 &&
         g->value[y].rank > 0 && qn_elements(&g->value[y]) > 0 && !is_lent(g, x) && !is_lent(g, y);
}

/* In the order of the ops, so that a view's own input is known. */
void qn__views_resolve(qn__views *v, const qn_graph_view *g)
{
  v->n = 0;
  for (uint32_t i = 0; i < g->n_values; i++) {
    v->of[i] = (int32_t)i;
    v->offset[i] = 0;
    v->as[i] = g->value[i];
  }
  for (uint32_t i = 0; i < g->n_ops; i++) {
    const qn_node *op = &g->op[i];
    if (!v->folded[i]) continue;
    const int32_t x = op->arg[0], y = op->arg[op->first[op->n_inputs]];
    int64_t offset = 0;
    if (!(v->folded[i] = read_view(op, &v->as[x], &v->as[y], &offset))) continue;
    v->of[y] = v->of[x];
    v->offset[y] = v->offset[x] + offset;
    v->as[y].align = align_at(g->value[v->of[x]].align, v->offset[y], v->as[y].dtype);
    v->as[y].producer = g->value[v->of[x]].producer;
    v->n++;
  }
}

qn__views *qn__views_find(const qn_graph_view *g)
{
  bool any = false;
  for (uint32_t i = 0; i < g->n_ops; i++) any = any || g->op[i].op == QN_OP_PERMUTE || g->op[i].op == QN_OP_SLICE;
  qn__views *v = any ? qn__alloc(sizeof *v + g->n_values * (sizeof *v->as + sizeof *v->offset + sizeof *v->of) + g->n_ops) : NULL;
  if (!v) return NULL;
  v->as = (qn_value *)(v + 1);
  v->offset = (int64_t *)(v->as + g->n_values);
  v->of = (int32_t *)(v->offset + g->n_values);
  v->folded = (uint8_t *)(v->of + g->n_values);
  for (uint32_t i = 0; i < g->n_ops; i++) {
    const qn_node *op = &g->op[i];
    v->folded[i] = (op->op == QN_OP_PERMUTE || op->op == QN_OP_SLICE) && is_foldable(g, op->arg[0], op->arg[op->first[op->n_inputs]]);
  }
  qn__views_resolve(v, g);
  if (v->n) return v;
  qn__views_free(v);
  return NULL;
}

void qn__views_free(qn__views *v) { qn__free(v); }
