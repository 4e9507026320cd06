/* region.c -- the region of an anchor: the ops around it that a row's pattern admits.
 *
 * It is the anchor, what follows it (pointwise ops with the pointwise producers of their other operands, and the pattern's kinds), ops
 * of the anchor's kind with the same input, closing reductions, then the anchor's own producers; never a region that a path leaves and
 * re-enters. One sweep along the order of ops (edges.c), up to the last op that reads what the region computes. */
#include "config.h"
#include "planner.h"
#include <stddef.h>
#include <string.h>

static bool reads(const qn_node *op, int32_t value)
{
  for (int32_t a = 0; a < inputs_of(op); a++)
    if (op->arg[a] == value) return true;
  return false;
}

/* ---- marks ---------------------------------------------------------------------------------------------- */

/* Marks op i and the rest of its part (a part counts as one op) as visited, as far as position `limit`. */
static int32_t visit(planner *p, int32_t i, int32_t *marks, int32_t mark, int32_t limit, int32_t depth)
{
  if (marks[i] == mark || p->pos[i] > limit) return depth;
  const int32_t group = p->group[i];
  int32_t first = p->pos[i], last = first;
  while (group >= 0 && first > 0 && p->group[p->op_at[first - 1]] == group) first--;
  while (group >= 0 && last + 1 < p->n_ops && p->group[p->op_at[last + 1]] == group) last++;
  for (int32_t at = first; at <= last; at++) {
    marks[p->op_at[at]] = mark;
    p->stack[depth++] = p->op_at[at];
  }
  return depth;
}

/* Marks everything reachable from op i up to that position; stops at ops already marked. */
static void mark_after(planner *p, int32_t i, int32_t *marks, int32_t mark, int32_t limit)
{
  int32_t depth = 0;
  p->stack[depth++] = i;
  while (depth) {
    const int32_t u = p->stack[--depth];
    const qn_node *op = &p->g->op[u];
    for (int32_t a = 0; a < args_of(op); a++) {
      const int32_t v = op->arg[a];
      if (a >= inputs_of(op))
        for (int32_t k = p->reader_first[v]; k < p->reader_first[v + 1]; k++) depth = visit(p, p->reader[k], marks, mark, limit, depth);
      else if (p->overwriter[v] >= 0 && p->overwriter[v] != u) depth = visit(p, p->overwriter[v], marks, mark, limit, depth);
    }
  }
}

/* ---- the pattern -------------------------------------------------------------------------------------------- */

static bool listed(const uint32_t *kind, uint32_t op)
{
  for (; kind && *kind; kind++)
    if (*kind == op) return true;
  return false;
}

static bool admits(const planner *p, const uint32_t *kinds, int32_t i)
{
  const qn_node *op = &p->g->op[i];
  return is_pointwise(p, i) || (listed(kinds, op->op) && !qn__over_nothing(op, p->g->value));
}

/* Does op i read in its role 0 the tensor that the anchor reads there, or (a pattern with views) both of them views of one tensor? */
static bool is_sibling(const planner *p, int32_t i)
{
  const qn_node *op = &p->g->op[i], *anchor = &p->g->op[p->list[0]];
  if (op->op != anchor->op || anchor->first[1] != 1 || op->first[1] != 1 || qn__over_nothing(op, p->g->value)) return false;
  return p->pattern->views ? origin(p, op->arg[0]) == origin(p, anchor->arg[0]) : op->arg[0] == anchor->arg[0];
}

/* Reads op i a value of the region through a folded view? */
static bool reads_through(const planner *p, int32_t i)
{
  const qn_node *op = &p->g->op[i];
  for (int32_t a = 0; p->views && a < inputs_of(op); a++) {
    const int32_t of = p->views->of[op->arg[a]];
    if (of != op->arg[a] && p->g->value[of].producer >= 0 && is_in(p, p->g->value[of].producer)) return true;
  }
  return false;
}

static bool is_full(const planner *p)
{
  const int32_t most = p->pattern->most ? p->pattern->most : QN_USUAL_OPS;
  return p->n >= (most < QN_MAX_OPS ? most : QN_MAX_OPS);
}

static void take(planner *p, int32_t i)
{
  p->in[i] = p->mark;
  p->list[p->n++] = i;
}

/* ---- producers ------------------------------------------------------------------------------------------------ */

/* Whether only op `user` reads the outputs of op e; if not `alone`, other ops of the region may read them too. */
static bool only_used_here(const planner *p, int32_t e, int32_t user, bool alone)
{
  const qn_node *op = &p->g->op[e];
  for (int32_t a = inputs_of(op); a < args_of(op); a++)
    for (int32_t k = p->reader_first[op->arg[a]]; k < p->reader_first[op->arg[a] + 1]; k++)
      if (p->reader[k] != user && (alone || !is_in(p, p->reader[k]))) return false;
  return true;
}

/* Whether op `user`, or one of the region, reads a result of op e through a folded view. */
static bool is_viewed(const planner *p, int32_t e, int32_t user)
{
  const qn_node *op = &p->g->op[e];
  for (int32_t a = inputs_of(op); a < args_of(op) && p->views; a++)
    for (int32_t k = p->reader_first[op->arg[a]]; k < p->reader_first[op->arg[a] + 1]; k++) {
      const int32_t r = p->reader[k];
      for (int32_t i = 0; i < inputs_of(&p->g->op[r]) && (r == user || is_in(p, r)); i++)
        if (p->g->op[r].arg[i] != op->arg[a] && origin(p, p->g->op[r].arg[i]) == op->arg[a]) return true;
    }
  return false;
}

/* Whether an op outside the region that is marked seen must run before op i. */
static bool waits_for_seen(const planner *p, int32_t i)
{
  for (int32_t k = p->pred_first[i]; k < p->pred_first[i + 1]; k++)
    if (!is_in(p, p->pred[k]) && p->seen[p->pred[k]] == p->visit) return true;
  return false;
}

/* Op e has readers elsewhere: with it in the region, would a path leave the region, or the ops that pull e in, and come back? */
static bool comes_back(planner *p, int32_t e, int32_t depth)
{
  int32_t last = p->pos[p->path[0]];
  for (int32_t i = 0; i < p->n; i++) last = p->pos[p->list[i]] > last ? p->pos[p->list[i]] : last;
  p->visit = ++p->marks;
  mark_after(p, e, p->seen, p->visit, last);
  for (int32_t i = 0; i <= depth; i++) p->seen[p->path[i]] = 0;
  for (int32_t i = 0; i < p->n; i++)
    if (waits_for_seen(p, p->list[i])) return true;
  for (int32_t i = 0; i <= depth; i++)
    if (waits_for_seen(p, p->path[i])) return true;
  return false;
}

/* Whether an op (here: of the region) overwrites an input of op e. It must then run after e even if it reads nothing from e. */
static bool is_overwritten(const planner *p, int32_t e, bool here)
{
  for (int32_t a = 0; a < inputs_of(&p->g->op[e]); a++) {
    int32_t overwriter = p->overwriter[p->g->op[e].arg[a]];
    if (overwriter >= 0 && overwriter != e && (is_in(p, overwriter) || !here)) return true;
  }
  return false;
}

/* Whether the region may compute op e itself: e must not depend on an op that is still to become an anchor. A producer of the anchor may
 * have other readers too; one of a follower may not (alone), since readers in the region may precede it in the list. */
static bool pullable(planner *p, int32_t e, int32_t user, bool alone, int32_t depth)
{
  const uint32_t *kinds = alone ? NULL : p->pattern->before;
  if (is_in(p, e) || p->group[e] != UNPLANNED || !admits(p, kinds, e) || is_after(p, e)) return false;
  if (!p->pattern->views && is_viewed(p, e, user)) return false;
  const bool elsewhere = !only_used_here(p, e, user, alone);
  if (alone && (elsewhere || is_overwritten(p, e, true))) return false;        /* it would come after an op that depends on it */
  if ((elsewhere || is_overwritten(p, e, false)) && comes_back(p, e, depth)) return false;
  for (int32_t k = p->pred_first[e]; k < p->pred_first[e + 1]; k++)
    if (p->group[p->pred[k]] == UNPLANNED && !admits(p, kinds, p->pred[k])) return false;
  return true;
}

/* The number of op `user`'s operands that op e produces. */
static int32_t feeds(const planner *p, int32_t e, int32_t user)
{
  int32_t n = 0;
  for (int32_t k = p->pred_first[user]; k < p->pred_first[user + 1]; k++) n += p->pred[k] == e;
  return n;
}

static bool feeds_follower(const planner *p, int32_t e)
{
  for (int32_t i = 1; i < p->n_follow; i++)
    if (feeds(p, e, p->list[i]) && !is_sibling(p, p->list[i])) return true;
  return false;
}

/* Adds producers to the list so that every prefix remains a region. before: a follower's producers, each placed before its user;
 * the anchor must not need them. Else: the anchor's producers, after everything, nearest first; no follower may need them. The
 * producer of a value that the anchor reads in two roles is left out: an engine fuses a producer into the reading of one role. */
static void pull(planner *p, int32_t user, bool before)
{
  int32_t depth = 0;
  p->path[0] = user;
  p->at[0] = p->pred_first[user];
  while (depth >= 0 && !is_full(p)) {
    const int32_t u = p->path[depth];
    if (p->at[depth] == p->pred_first[u + 1]) {
      if (before && depth) {
        take(p, u);
        mark_after(p, u, p->after, p->mark, p->pos[user]);
      }
      depth--;
      continue;
    }
    const int32_t e = p->pred[p->at[depth]++];
    if (!pullable(p, e, u, before, depth) || (before ? feeds(p, e, p->list[0]) : feeds_follower(p, e) || (u == user && feeds(p, e, u) > 1)))
      continue;
    if (!before) {
      take(p, e);
      mark_after(p, e, p->after, p->mark, p->pos[user]);
    }
    p->path[++depth] = e;
    p->at[depth] = p->pred_first[e];
  }
}

/* ---- the sweep ---------------------------------------------------------------------------------------------- */

/* Whether op i reads `value` elementwise, so that an op fused with it may overwrite it. */
static bool elementwise(const planner *p, int32_t i, int32_t value, const qn_value *out)
{
  const qn_node *op = &p->g->op[i];
  const qn_value *v = &p->g->value[value];
  const qn_op_info *info = qn_op_find(op->op);
  if (op->family == QN_FAMILY_POINTWISE) return v->rank == out->rank && !memcmp(v->dim, out->dim, sizeof v->dim);
  for (uint32_t r = 0; r < op->n_inputs; r++)
    for (int32_t a = op->first[r]; a < op->first[r + 1]; a++)
      if (op->arg[a] == value && info->role[r].paired < 0) return false;
  return true;
}

/* Cuts the list before an op that would overwrite what another op of the list still reads. */
static void cut_hazards(planner *p)
{
  for (int32_t w = 0; w < p->n; w++) {
    const qn_node *op = &p->g->op[p->list[w]];
    for (int32_t a = inputs_of(op); a < args_of(op); a++) {
      const qn_value *out = &p->g->value[op->arg[a]];
      for (int32_t r = 0; out->over >= 0 && r < p->n; r++)
        if (r != w && reads(&p->g->op[p->list[r]], out->over) && (r > w || !elementwise(p, p->list[r], out->over, out)))
          p->n = r > w ? r : w;
    }
  }
}

/* The position of the last op that reads what op i computes; for an anchor with siblings also of those. */
static int32_t horizon(const planner *p, int32_t i)
{
  const qn_node *op = &p->g->op[i];
  int32_t last = p->pos[i];
  for (int32_t a = inputs_of(op); a < args_of(op); a++)
    for (int32_t k = p->reader_first[op->arg[a]]; k < p->reader_first[op->arg[a] + 1]; k++)
      if (p->pos[p->reader[k]] > last) last = p->pos[p->reader[k]];
  if (i == p->list[0] && p->pattern->siblings && op->first[1] == 1)
    for (int32_t v = origin(p, op->arg[0]), k = p->reader_first[v]; k < p->reader_first[v + 1]; k++)
      if (is_sibling(p, p->reader[k]) && p->pos[p->reader[k]] > last) last = p->pos[p->reader[k]];
  return last;
}

/* Of op i: reads: a value of the region; blocked: it waits for an op outside that waits for the region. */
static void look_before(const planner *p, int32_t i, bool *reads_region, bool *blocked)
{
  for (int32_t k = p->pred_first[i]; k < p->pred_first[i + 1]; k++) {
    if (is_in(p, p->pred[k])) *reads_region = true;
    else if (is_after(p, p->pred[k])) *blocked = true;
  }
}

void qn__region_form(planner *p, int32_t anchor, const qn_pattern *pattern)
{
  int32_t closing[UINT8_MAX], n_closing = 0, siblings = pattern->siblings;
  p->mark = ++p->marks;
  p->pattern = pattern;
  p->n = 0;
  take(p, anchor);
  int32_t last = horizon(p, anchor), begin = p->pos[anchor] + 1;
  for (int32_t end; begin <= last && !is_full(p); begin = end) {
    const int32_t i = p->op_at[begin], group = p->group[i];
    bool reads_region = false, blocked = false;
    for (end = begin + 1; group >= 0 && end < p->n_ops && p->group[p->op_at[end]] == group; end++) {}
    if (is_in(p, i)) continue;
    for (int32_t at = begin; at < end; at++) look_before(p, p->op_at[at], &reads_region, &blocked);
    if (reads_region && !pattern->views && reads_through(p, i)) blocked = true;
    if (group == UNPLANNED && !blocked && !is_after(p, i)) {
      const bool joins = reads_region ? admits(p, pattern->after, i) : siblings > 0 && is_sibling(p, i);
      if (joins) {
        const int32_t had = p->n;
        if (reads_region) pull(p, i, true);
        else siblings--;
        if (is_full(p)) {                 /* its producers without it would be of no use */
          while (p->n > had) p->in[p->list[--p->n]] = 0;
          break;
        }
        take(p, i);
        for (int32_t k = had; k < p->n; k++) {
          const int32_t reach = horizon(p, p->list[k]);
          if (reach > last) last = reach;
        }
        continue;
      }
      if (reads_region && p->g->op[i].family == QN_FAMILY_REDUCTION && n_closing < pattern->closing) closing[n_closing++] = i;
    }
    for (int32_t at = begin; at < end && (reads_region || blocked); at++) p->after[p->op_at[at]] = p->mark;
  }
  if (is_pointwise(p, anchor)) {          /* in program order, so that nothing precedes what it needs */
    for (int32_t k = 1; k < p->n; k++)
      for (int32_t m = k; m > 0 && p->list[m] < p->list[m - 1]; m--) {
        const int32_t other = p->list[m];
        p->list[m] = p->list[m - 1];
        p->list[m - 1] = other;
      }
  }
  for (int32_t k = 0; k < n_closing && !is_full(p); k++) take(p, closing[k]);
  p->n_follow = p->n;
  if (!is_pointwise(p, anchor)) pull(p, anchor, false);
  cut_hazards(p);
}

/* ---- the request --------------------------------------------------------------------------------------------- */

/* Numbers the values of the region as its ops use them, so that the first ops use the first values; value_of NULL: counts them. */
static int32_t number_values(planner *p, int32_t *value_of)
{
  int32_t n = 0;
  p->mark = ++p->marks;
  for (int32_t i = 0; i < p->n; i++) {
    const qn_node *op = &p->g->op[p->list[i]];
    p->in[p->list[i]] = p->mark;
    for (int32_t a = 0; a < args_of(op); a++) {
      if (p->local_of[op->arg[a]] == p->mark) continue;
      p->local_of[op->arg[a]] = p->mark;
      p->local[op->arg[a]] = n;
      if (value_of) value_of[n] = op->arg[a];
      n++;
    }
  }
  return n;
}

static bool escapes(const planner *p, int32_t value)
{
  if (p->g->value[value].flags & QN_VALUE_ESCAPE) return true;  /* an output of the graph */
  if (p->reader_first[value] == p->reader_first[value + 1]) return true;      /* no reader: its op writes it all the same */
  for (int32_t k = p->reader_first[value]; k < p->reader_first[value + 1]; k++)
    if (!is_in(p, p->reader[k])) return true;
  return false;
}

static void fill(planner *p, qn__offer *o, qn_node *node, qn_value *value, qn_view *view, int32_t *arg)
{
  for (uint32_t v = 0; v < o->request.n_values; v++) {
    const int32_t of = o->value_of[v];
    value[v] = p->views ? p->views->as[of] : p->g->value[of];
    value[v].flags &= ~(uint32_t)QN_VALUE_ESCAPE;
    value[v].over = value[v].over >= 0 && p->local_of[value[v].over] == p->mark ? p->local[value[v].over] : -1;
    value[v].producer = value[v].last_user = -1;
    o->literal[v] = p->g->literal[of];
  }
  for (int32_t i = 0; i < p->n; i++) {
    const qn_node *op = &p->g->op[p->list[i]];
    node[i] = *op;
    node[i].arg = arg;
    o->op_of[i] = p->list[i];
    for (int32_t a = 0; a < args_of(op); a++, arg++) {
      *arg = p->local[op->arg[a]];
      if (a < inputs_of(op)) value[*arg].last_user = i;
      else {
        value[*arg].producer = i;
        if (escapes(p, op->arg[a])) value[*arg].flags |= QN_VALUE_ESCAPE;
      }
    }
  }
  for (uint32_t v = 0; v < o->request.n_values; v++) {
    const int32_t of = origin(p, o->value_of[v]), local = p->local[of];
    if (of == o->value_of[v] || p->local_of[of] != p->mark || value[local].producer < 0) continue;
    value[v].flags |= QN_VALUE_VIEW;
    value[v].producer = value[local].producer;
    if (value[v].last_user > value[local].last_user) value[local].last_user = value[v].last_user;
    view[v] = (qn_view){ .offset = p->views->offset[o->value_of[v]], .of = local };
    o->request.view = view;
  }
}

qn__offer *qn__region_offer(planner *p)
{
  size_t args = 0;
  const size_t n = (size_t)p->n, values = (size_t)number_values(p, NULL);
  for (int32_t i = 0; i < p->n; i++) args += (size_t)args_of(&p->g->op[p->list[i]]);
  qn__offer *o = qn__alloc(sizeof *o + n * sizeof(qn_node) + values * (sizeof(qn_value) + sizeof(qn_view) + sizeof(double)) +
                           (values + n + args) * sizeof(int32_t));
  if (!o) return NULL;
  qn_node *node = (qn_node *)(o + 1);
  qn_value *value = (qn_value *)(node + n);
  qn_view *view = (qn_view *)(value + values);
  o->literal = (double *)(view + values);
  o->value_of = (int32_t *)(o->literal + values);
  o->op_of = o->value_of + values;
  number_values(p, o->value_of);
  o->request = (qn_request){ .struct_size = sizeof o->request, .host = &qn__host, .device = p->pc->device,
    .demands = &p->pc->policy->demands, .op = node, .n_ops = (uint32_t)n, .n_values = (uint32_t)values, .value = value };
  fill(p, o, node, value, view, o->op_of + n);
  return o;
}
