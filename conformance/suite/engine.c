/* engine.c -- the engines of the backend under test: the list, the ops of each, plans pinned to one. */
#include <stdlib.h>
#include <string.h>
#include "conform.h"

/* ---- the list ----------------------------------------------------------------------------- */

static bool engine_wanted(const char *name)
{
  if (!qc_opt.engine)
    return true;
  size_t n = strlen(qc_w.backend);
  const char *asked = qc_opt.engine, *tail = strchr(name, '/') + 1;
  if (!strncmp(asked, qc_w.backend, n) && asked[n] == '/')
    asked += n + 1;
  return !strcmp(asked, name) || !strcmp(asked, tail);
}

static void add_engine(const qn_engine *row, const char *variant, int number)
{
  struct qc_engine e = {.row = row, .variant = variant, .number = number};
  const qn_op_info *op = row->op & QN_ANCHOR_FAMILY ? NULL : qn_op_find(row->op);
  if (!(row->op & QN_ANCHOR_FAMILY) && !op)
    return;                             /* an op unknown to this library */
  snprintf(e.name, sizeof e.name, "%s/%s%s%s", op ? op->name : qn_family_name(row->op & ~QN_ANCHOR_FAMILY), row->name,
           variant ? ":" : "", variant ? variant : "");
  if (!engine_wanted(e.name))
    return;
  qc_w.engine = realloc(qc_w.engine, (size_t)(qc_w.n_engines + 1) * sizeof e);
  qc_w.engine[qc_w.n_engines++] = e;
}

void qc_engines_list(void)
{
  const qn_engine *row;
  for (int i = 0; (row = qn_backend_engine(qc_w.table, i)); i++) {
    add_engine(row, NULL, 0);
    for (const char *const *v = row->variants; v && *v; v++)
      add_engine(row, *v, (int)(v - row->variants) + 1);
  }
}

/* ---- pinning ------------------------------------------------------------------------------ */

bool qc_engine_fits(const struct qc_engine *e, uint32_t op)
{
  const qn_op_info *info = qn_op_find(op);
  return e->row->op == op || (info && e->row->op == (info->family | QN_ANCHOR_FAMILY));
}

static void add_pin(char *pins, size_t bytes, const struct qc_engine *e, uint32_t op)
{
  size_t n = strlen(pins);
  snprintf(pins + n, bytes - n, "%s%s=%s/%s%s%s", n ? "," : "", qn_op_find(op)->name, qc_w.backend, e->row->name,
           e->variant ? ":" : "", e->variant ? e->variant : "");
}

struct planning { const qn_graph *graph; qn_plan **plan; };
static qn_status make_plan(void *arg)
{
  struct planning *p = arg;
  return qn_plan_create(qc_w.ctx, p->graph, p->plan);
}

bool qc_plan_pinned(const struct qc_engine *e, const char *math, const qn_graph *graph, qn_plan **plan, qn_status *status)
{
  const qn_graph_view *view = qn_graph_inspect(graph);
  char pins[2048] = "";
  uint32_t seen[64], n_seen = 0;
  for (uint32_t k = 0; e && k < view->n_ops; k++) {
    bool known = !qc_engine_fits(e, view->op[k].op);
    for (uint32_t s = 0; s < n_seen; s++)
      known |= seen[s] == view->op[k].op;
    if (known || n_seen == 64)
      continue;
    seen[n_seen++] = view->op[k].op;
    add_pin(pins, sizeof pins - strlen(",any"), e, view->op[k].op);
  }
  if (e && view->n_ops > 1)
    strcat(pins, ",any");
  *status = qn_context_set(qc_w.ctx, "math", math);
  if (!*status)
    *status = qn_context_set(qc_w.ctx, "engine", pins);
  if (!*status)
    *status = qc_on_stack(make_plan, &(struct planning){graph, plan});
  if (*status)
    return false;
  if (view->n_ops == 1 || !e)
    return true;
  for (int i = 0; i < qn_plan_parts(*plan); i++) {
    const char *backend;
    const qn_prepared *part = qn_plan_part(*plan, i, &backend);
    if (!strcmp(part->engine->name, e->row->name) && part->engine->op == e->row->op && !strcmp(backend, qc_w.backend))
      return true;
  }
  qn_plan_destroy(*plan);
  *status = QN_UNSUPPORTED;
  return false;
}
