/* planner.c -- splits a graph into parts that engines take.
 *
 * Around each anchor, and for each pattern that a row for it has, it forms the largest region (region.c); the rows are asked, each with
 * its own, the best takes what it says (choose.c), and the rest is planned in turn. Pointwise ops become anchors only when no other
 * region can absorb them, reductions last of all. An op that some row would take in before its anchor waits for that anchor's choice,
 * and is planned by itself if that leaves it out: a row that declines changes nothing.
 *
 * Views (view.c) are folded first, but those for which some reader's engine would be another and no better one. */
#include "config.h"
#include "planner.h"
#include <string.h>

static const qn_pattern plain = { .struct_size = sizeof plain, .closing = 1 };

/* ---- one anchor ------------------------------------------------------------------------------------------ */

/* The patterns of all rows for that op, the plain one first. */
static int patterns_of(const planner *p, uint32_t kind, const qn_pattern *pattern[QN__PATTERNS])
{
  const int at = (int)(qn_op_find(kind) - qn__ops);
  int n = 1, k;
  pattern[0] = NULL;
  for (int b = 0; b < p->pc->policy->n_backends; b++) {
    const qn__backend *backend = p->pc->policy->backend[b];
    for (int i = backend->first[at]; i < backend->first[at + 1]; i++) {
      const qn_pattern *of = backend->engine[backend->by_op[i]].pattern;
      for (k = 0; k < n && pattern[k] != of; k++) {}
      if (k == n && n < QN__PATTERNS) pattern[n++] = of;
    }
  }
  return n;
}

static bool same_list(const planner *p, const qn__offer *o)
{
  return o->request.n_ops == (uint32_t)p->n && !memcmp(o->op_of, p->list, (size_t)p->n * sizeof *p->list);
}

static void free_offers(qn__offers *o)
{
  for (int i = 0; i < o->n; i++) {
    int k = 0;
    while (k < i && o->offer[k] != o->offer[i]) k++;
    if (k == i) qn__free(o->offer[i]);
  }
}

static qn_status make_offers(planner *p, int32_t anchor, qn__offers *o)
{
  const int n = patterns_of(p, p->g->op[anchor].op, o->pattern);
  for (o->n = 0; o->n < n; o->n++) {
    int k = 0;
    qn__region_form(p, anchor, o->pattern[o->n] ? o->pattern[o->n] : &plain);
    while (k < o->n && !same_list(p, o->offer[k])) k++;
    o->offer[o->n] = k < o->n ? o->offer[k] : qn__region_offer(p);
    if (!o->offer[o->n]) return qn__fail(QN_NO_MEMORY, "no memory to plan");
  }
  return QN_OK;
}

/* Plans the region of an anchor. needs: -1, or an op without which the anchor is left as it is; *taken: whether it was planned. */
static qn_status plan_anchor(planner *p, int32_t anchor, int32_t needs, bool *taken)
{
  qn__offers o = {0};
  qn_part *part = NULL;
  qn__planning pc = *p->pc;
  qn_status status = make_offers(p, anchor, &o);
  for (int i = 0; i < o.n; i++) o.offer[i]->request.core = &pc;
  if (!status) status = qn__part_choose(&pc, &o, NULL, needs, p->n_parts, &part);
  *taken = part != NULL;
  if (part) {
    part->request.core = NULL;
    for (uint32_t i = 0; i < part->request.n_ops; i++)
      if (qn__takes(part, i)) p->group[part->op_of[i]] = p->n_parts;
    p->part[p->n_parts++] = part;
    qn__edges_join(p, part);
  }
  free_offers(&o);
  return status;
}

/* ---- what precedes an anchor --------------------------------------------------------------------------------- */

/* Which kinds does some row admit before its anchor? */
static void list_wanted(planner *p)
{
  for (int b = 0; b < p->pc->policy->n_backends; b++)
    for (int i = 0; i < p->pc->policy->backend[b]->n_engines; i++) {
      const qn_pattern *of = p->pc->policy->backend[b]->engine[i].pattern;
      for (const uint32_t *kind = of ? of->before : NULL; kind && *kind; kind++)
        if (*kind < QN__KINDS) p->wanted[*kind] = 1;
    }
}

/* Would a row take op i in before the anchor? */
static qn_status wants(planner *p, int32_t anchor, int32_t i, bool *yes)
{
  const qn_pattern *pattern[QN__PATTERNS];
  const int n = patterns_of(p, p->g->op[anchor].op, pattern);
  *yes = false;
  for (int k = 1; k < n && !*yes; k++) {
    const uint32_t *kind = pattern[k]->before;
    while (kind && *kind && *kind != p->g->op[i].op) kind++;
    if (!kind || !*kind) continue;
    qn__region_form(p, anchor, pattern[k]);
    int32_t at = 1;
    while (at < p->n && p->list[at] != i) at++;
    if (at == p->n) continue;
    qn__planning pc = *p->pc;
    qn__offer *o = qn__region_offer(p);
    if (!o) return qn__fail(QN_NO_MEMORY, "no memory to plan");
    o->request.core = &pc;
    *yes = qn__anyone_takes(&pc, o, pattern[k], i);
    qn__free(o);
  }
  return QN_OK;
}

/* Plans the anchor that op i precedes, if an engine takes both. Looked for behind i and pointwise ops. */
static qn_status plan_with_anchor(planner *p, int32_t i)
{
  enum { FAR = 32 };
  int32_t next[FAR], n = 1;
  next[0] = i;
  for (int32_t k = 0; k < n; k++) {
    const qn_node *op = &p->g->op[next[k]];
    for (int32_t a = inputs_of(op); a < args_of(op); a++)
      for (int32_t r = p->reader_first[op->arg[a]]; r < p->reader_first[op->arg[a] + 1]; r++) {
        const int32_t reader = p->reader[r];
        bool taken = false;
        if (p->group[reader] != UNPLANNED) continue;
        if (is_pointwise(p, reader) && n < FAR) next[n++] = reader;
        if (is_pointwise(p, reader)) continue;
        qn_status status = wants(p, reader, i, &taken);
        if (!status && taken) status = plan_anchor(p, reader, i, &taken);
        if (status || taken) return status;
      }
  }
  return QN_OK;
}

/* ---- the order of parts ------------------------------------------------------------------------------------------ */

/* Of the parts that are ready always the one whose anchor comes first in the graph. */
static qn_status order_parts(planner *p)
{
  const int32_t n = p->n_parts, edges = p->pred_first[p->n_ops];
  qn_part **sorted = qn__alloc((size_t)(n + 1) * sizeof *sorted);
  /* waits: of each part, edges into it from parts not yet sorted; part_at: by its anchor, once it is ready, its number + 1 */
  int32_t *waits = qn__alloc((size_t)(2 * n + 2 + edges + p->n_ops) * sizeof *waits);
  int32_t *next_first = waits + n, *next = next_first + n + 2, *part_at = next + edges;
  if (!sorted || !waits) {
    qn__free(sorted);
    qn__free(waits);
    return qn__fail(QN_NO_MEMORY, "no memory to plan");
  }
  for (int fill = 0; fill < 2; fill++) {
    for (int32_t i = 0; i < p->n_ops; i++)
      for (int32_t e = p->pred_first[i]; e < p->pred_first[i + 1]; e++) {
        const int32_t to = p->group[i], from = p->group[p->pred[e]];
        if (to < 0 || from < 0 || to == from) continue;
        if (fill) next[next_first[from + 1]++] = to;
        else next_first[from + 2]++, waits[to]++;
      }
    for (int32_t k = 2; k < n + 2 && !fill; k++) next_first[k] += next_first[k - 1];
  }
  for (int32_t k = 0; k < n; k++)
    if (!waits[k]) part_at[p->part[k]->op_of[0]] = k + 1;
  int32_t done = 0;
  for (int32_t at = 0; at < p->n_ops; at++) {
    const int32_t k = part_at[at] - 1;
    if (k < 0) continue;
    part_at[at] = 0;
    sorted[done++] = p->part[k];
    for (int32_t e = next_first[k]; e < next_first[k + 1]; e++) {
      const int32_t to = next[e], anchor = p->part[to]->op_of[0];
      if (--waits[to]) continue;
      part_at[anchor] = to + 1;
      if (anchor <= at) at = anchor - 1;
    }
  }
  memcpy(p->part, sorted, (size_t)n * sizeof *sorted);
  qn__free(sorted);
  qn__free(waits);
  return done == n ? QN_OK : qn__fail(QN_INTERNAL, "the planner made parts that wait for each other");
}

/* ---- the whole graph ------------------------------------------------------------------------------------------------- */

/* Reductions last, so that each may close the region of an earlier op. */
static int turn_of(const planner *p, int32_t i)
{
  return is_pointwise(p, i) ? 1 : p->g->op[i].family == QN_FAMILY_REDUCTION ? 2 : 0;
}

static void free_planner(planner *p)
{
  for (int i = 0; i < p->n_parts; i++) qn__part_free(p->part[i]);
  qn__free(p->part);
  qn__free(p->pred);
  qn__free(p->memory);
}

/* One pass, with those views folded. */
static qn_status partition(const qn__planning *pc, const qn_graph_view *g, const qn__views *views, qn_part ***parts, int *n_parts)
{
  planner p = { .pc = pc, .g = g, .views = views, .n_ops = (int32_t)g->n_ops };
  qn_status status = qn__edges_set_up(&p);
  bool taken;
  if (!status) list_wanted(&p);
  for (int turn = 0; turn < 3 && !status; turn++)
    for (int32_t i = 0; i < p.n_ops && !status; i++) {
      if (p.group[i] != UNPLANNED || turn_of(&p, i) != turn) continue;
      if (p.wanted[g->op[i].op]) status = plan_with_anchor(&p, i);
      if (!status && p.group[i] == UNPLANNED) status = plan_anchor(&p, i, -1, &taken);
    }
  if (!status) status = order_parts(&p);
  if (!status) {
    *parts = p.part;
    *n_parts = p.n_parts;
    p.part = NULL;
    p.n_parts = 0;
  }
  free_planner(&p);
  return status;
}

/* ---- views --------------------------------------------------------------------------------------------------------- */

/* Who would get op i alone? NULL: nobody. The plan has no part in it. */
static qn_part *alone(planner *p, int32_t i)
{
  qn__planning pc = *p->pc;
  qn_part *part = NULL;
  p->list[0] = i;
  p->n = 1;
  qn__offer *o = qn__region_offer(p);
  if (!o) return NULL;
  o->request.core = &pc;
  if (qn__part_choose(&pc, &(qn__offers){ .n = 1, .offer = { o } }, NULL, -1, 0, &part)) part = NULL;
  qn__free(o);
  return part;
}

/* Is an op that reads a folded view no worse off with engine b than with a, where the view is computed? */
static bool as_good(const qn_part *a, const qn_part *b)
{
  if (!a || !b || a->engine == b->engine) return a || !b;
  if (a->prepared.class_ != b->prepared.class_) return a->prepared.class_ != QN_CLASS_TUNED;
  return b->prepared.estimate > 0 && b->prepared.estimate <= a->prepared.estimate;
}

/* Unfolds the views that some reader is worse off with; how many. */
static int unfold(planner *apart, planner *folded, qn__views *views)
{
  const qn_graph_view *g = apart->g;
  int n = 0;
  for (uint32_t i = 0; i < g->n_ops; i++) {
    bool reads_view = false;
    for (int32_t a = 0; a < inputs_of(&g->op[i]) && !views->folded[i]; a++)
      reads_view = reads_view || views->of[g->op[i].arg[a]] != g->op[i].arg[a];
    if (!reads_view || apart->group[i] == NOTHING_TO_DO) continue;
    qn_part *before = alone(apart, (int32_t)i), *after = alone(folded, (int32_t)i);
    for (int32_t a = 0; a < inputs_of(&g->op[i]) && !as_good(before, after); a++) {
      const int32_t v = g->op[i].arg[a];
      if (views->of[v] == v) continue;
      views->folded[g->value[v].producer] = 0;
      n++;
    }
    qn__part_free(before);
    qn__part_free(after);
  }
  return n;
}

/* The views to fold: those that leave each of their readers, taken alone, as good an engine. NULL: none. */
static qn__views *choose_views(const qn__planning *given, const qn_graph_view *g)
{
  qn__views *views = qn__views_find(g);
  qn__planning pc = *given;
  uint64_t uses = 0;
  if (!views) return NULL;
  pc.draft = true;
  pc.verdict = NULL;
  pc.uses = &uses;
  planner apart = { .pc = &pc, .g = g, .n_ops = (int32_t)g->n_ops };
  bool known = !qn__edges_set_up(&apart);
  for (int changed = 1; known && changed;) {
    planner folded = { .pc = &pc, .g = g, .views = views, .n_ops = (int32_t)g->n_ops };
    known = !qn__edges_set_up(&folded);
    changed = known ? unfold(&apart, &folded, views) : 0;
    if (changed) qn__views_resolve(views, g);
    free_planner(&folded);
  }
  free_planner(&apart);
  if (known && views->n) return views;
  qn__views_free(views);
  return NULL;
}

qn_status qn__partition(const qn__planning *pc, const qn_graph *g, qn_part ***parts, int *n_parts, qn__views **views)
{
  *views = g->view.n_ops > 1 ? choose_views(pc, &g->view) : NULL;
  qn_status status = partition(pc, &g->view, *views, parts, n_parts);
  if (status) {
    qn__views_free(*views);
    *views = NULL;
  }
  return status;
}
