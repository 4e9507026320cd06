/* layouts.c -- where the tensors that only a graph sees should lie: as the graph has them, planes of a channel, or channels last.
 *
 * A convolution by Tensor Cores reads packed channels last; given planes, its engine copies them there and back. Between two of them
 * both copies are for nothing, as are those around what computes in either layout: a norm, an activation, pooling. So of a graph with
 * convolutions, those intermediates that convolutions meet, and through such ops each other, are tried channels last: both graphs are
 * planned as drafts, and the lesser time by the engines' estimates decides. All of them or none; a choice op by op would be a search.
 *
 * Engines that state no time count the same in both drafts if they are the same; if they are not, nothing is known of either.
 *
 * Left as they are: what the caller sees, views, what takes another tensor's memory, and everything where times decide nothing
 * (deterministic=batch on). */
#include "config.h"
#include "core.h"
#include <quern/kit.h>
#include <string.h>

static const double WORTH = 0.95;         /* of the time as given: estimates are no closer */

static bool is_conv(uint32_t op)
{
  return op == QN_OP_CONV_FORWARD || op == QN_OP_CONV_BACKWARD_DATA || op == QN_OP_CONV_BACKWARD_FILTER;
}

/* Does this role of a convolution have channels that a layout may put last? Filters and bias are the caller's as a rule. */
static bool is_image(const qn_node *op, uint32_t role)
{
  return op->op == QN_OP_CONV_BACKWARD_FILTER ? role < op->n_inputs : role == 0 || role >= op->n_inputs;
}

/* Can its engines compute in either layout, and has its result the channels of what it reads? */
static bool is_neutral(const qn_node *op)
{
  switch (op->family) {
  case QN_FAMILY_POINTWISE: case QN_FAMILY_POOLING: case QN_FAMILY_NORMALIZATION: case QN_FAMILY_LOCAL: case QN_FAMILY_RESAMPLING:
    return true;
  case QN_FAMILY_TRANSFORM: return op->op != QN_OP_PERMUTE;
  default: return false;
  }
}

static bool is_movable(const qn_graph_view *g, int32_t at)
{
  const qn_value *v = &g->value[at];
  if (v->producer < 0 || v->flags & (QN_VALUE_ESCAPE | QN_VALUE_HOST) || v->over >= 0 || v->rank < 3 || v->dim[1] < 2 || !qn_is_packed(v) ||
      qn_is_channels_last(v))
    return false;
  for (uint32_t i = 0; i < g->n_values; i++)
    if (g->value[i].over == at) return false;
  return true;
}

/* Marks what convolutions meet, and what that meets through neutral ops; how many of it are movable. */
static int mark(const qn_graph_view *g, uint8_t *met, uint8_t *movable)
{
  int n = 0;
  for (uint32_t i = 0; i < g->n_ops; i++)
    for (uint32_t r = 0; r < g->op[i].n_roles && is_conv(g->op[i].op); r++)
      for (int32_t a = g->op[i].first[r]; a < g->op[i].first[r + 1] && is_image(&g->op[i], r); a++) met[g->op[i].arg[a]] = 1;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = 0; i < g->n_ops; i++) {
      const qn_node *op = &g->op[i];
      const int32_t n_args = op->first[op->n_roles];
      bool any = false;
      for (int32_t a = 0; a < n_args && is_neutral(op); a++) any = any || met[op->arg[a]];
      for (int32_t a = 0; a < n_args && any; a++) {
        if (met[op->arg[a]] || g->value[op->arg[a]].rank < 3) continue;
        met[op->arg[a]] = 1;
        more = true;
      }
    }
  }
  for (uint32_t v = 0; v < g->n_values; v++)
    if (met[v] && is_movable(g, (int32_t)v)) movable[v] = 1, n++;
  return n;
}

static void put_channels_last(qn_value *v)
{
  int64_t stride = v->dim[1];
  v->stride[1] = 1;
  for (int d = v->rank - 1; d >= 2; d--) v->stride[d] = stride, stride *= v->dim[d];
  v->stride[0] = stride;
}

/* Of a draft: the sum of the parts' estimates in ns, and which engines meet movable tensors without stating one. */
typedef struct sum { double ns; uint64_t silent; bool planned; } sum;

static sum sum_of(const qn__planning *pc, const qn_graph *g, const uint8_t *movable)
{
  qn_part **part = NULL;
  qn__views *views = NULL;
  int n = 0;
  sum s = { 0 };
  if (qn__partition(pc, g, &part, &n, &views)) return s;
  s.planned = true;
  for (int i = 0; i < n; i++) {
    bool meets = false;
    for (uint32_t v = 0; v < part[i]->request.n_values; v++) meets = meets || movable[part[i]->value_of[v]];
    if (part[i]->prepared.estimate > 0) s.ns += part[i]->prepared.estimate;
    else if (meets) s.silent += (uint64_t)(uintptr_t)part[i]->engine;
    qn__part_free(part[i]);
  }
  qn__free(part);
  qn__views_free(views);
  return s;
}

void qn__layouts_choose(const qn__planning *given, qn_graph *g)
{
  const uint32_t n = g->view.n_values;
  qn_value *value = (qn_value *)(uintptr_t)g->view.value;
  qn__planning pc = *given;
  uint64_t uses = 0;
  bool any = false;
  for (uint32_t i = 0; i < g->view.n_ops && g->view.n_ops > 1; i++) any = any || is_conv(g->view.op[i].op);
  if (!any || pc.policy->demands.determinism >= QN_DET_BATCH) return;
  qn_value *before = qn__alloc(n * (sizeof *before + 2));
  if (!before) return;                    /* the graph will do as it is */
  uint8_t *met = (uint8_t *)(before + n), *movable = met + n;
  memcpy(before, value, n * sizeof *before);
  const int moved = mark(&g->view, met, movable);
  pc.draft = true;
  pc.timed = false;
  pc.verdict = NULL;
  pc.uses = &uses;
  const sum as_given = moved ? sum_of(&pc, g, movable) : (sum){ 0 };
  if (as_given.planned && as_given.ns > 0) {
    for (uint32_t v = 0; v < n; v++)
      if (movable[v]) put_channels_last(&value[v]);
    const sum last = sum_of(&pc, g, movable);
    if (last.planned && last.silent == as_given.silent && last.ns < WORTH * as_given.ns)
      qn__log(QN_LOG_PLAN, "%d intermediates are kept channels last: about %.4g us, not %.4g", moved, last.ns / 1e3, as_given.ns / 1e3);
    else memcpy(value, before, n * sizeof *before);
  }
  qn__free(before);
}
