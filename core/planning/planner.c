/* planner.c -- splits a graph into parts that engines take.
 *
 * Around each anchor it forms the largest region: the anchor, the pointwise ops that follow it (with the pointwise
 * producers of their other operands), one closing reduction, then the anchor's own pointwise producers; never a region that a path
 * leaves and re-enters. The chosen engine takes a prefix of that list, and the rest is planned in turn. Pointwise ops
 * become anchors only when no other region can absorb them, reductions last of all.
 *
 * A tensor that takes another's memory (`out p2 over p`) adds an edge from every reader of p to the producer of p2, so that p is read
 * before it is overwritten. */
#include "config.h"
#include "core.h"
#include <stdlib.h>
#include <string.h>

enum { UNPLANNED = -1, NOTHING_TO_DO = -2 };
/* limit on ops offered to an engine, far above what any takes; without it planning long graphs is quadratic */
enum { MOST_OFFERED = 1024 };

typedef struct planner {
  const qn__asker *who;
  const qn_graph_view *g;
  int32_t n_ops;
  int32_t *reader, *reader_first;         /* of each value: the ops that read it */
  int32_t *taker;                         /* of each value: the op whose output takes its memory, or -1 */
  int32_t *pred, *pred_first;             /* of each op: what must run before it; always earlier in the program */
  int32_t *group;                         /* of each op: its part, UNPLANNED or NOTHING_TO_DO */
  uint8_t *in, *after, *seen;             /* of each op: in the region; reachable from the region; visited */
  int32_t *stack;
  int32_t *path, *at;                     /* for pull: the path from the user to a producer, and each op's next predecessor to visit */
  int32_t *list, n, n_follow;             /* the region, in the order offered; number of ops, of anchor and followers */
  int32_t *local;                         /* of each value: its index in the request, or -1 */
  int32_t *value_of, n_values, n_args;    /* of the request's values: their indices in the graph */
  uint8_t also[QN__KINDS];                /* of each op kind: a row for this anchor admits it */
  qn_part **part; int n_parts;
  void *memory;
} planner;

static int32_t inputs_of(const qn_node *op) { return op->first[op->n_inputs]; }
static int32_t args_of(const qn_node *op) { return op->first[op->n_roles]; }

static bool reads(const qn_node *op, int32_t value)
{
  for (int32_t a = 0; a < inputs_of(op); a++)
    if (op->arg[a] == value) return true;
  return false;
}

/* ---- edges --------------------------------------------------------------------------------------------- */

static void list_readers(planner *p)
{
  int32_t *at = p->reader_first + 1;      /* counts, then the next free position, then the start of the next value's */
  for (int32_t i = 0; i < p->n_ops; i++)
    for (int32_t a = 0; a < inputs_of(&p->g->op[i]); a++) at[p->g->op[i].arg[a]]++;
  for (int32_t v = 0, sum = 0; v < (int32_t)p->g->n_values; v++) {
    int32_t n = at[v];
    at[v] = sum;
    sum += n;
  }
  for (int32_t i = 0; i < p->n_ops; i++)
    for (int32_t a = 0; a < inputs_of(&p->g->op[i]); a++) p->reader[at[p->g->op[i].arg[a]]++] = i;
}

/* Lists the predecessors of each op; with pred NULL only counts them. */
static int32_t list_edges(planner *p)
{
  int32_t n = 0;
  for (int32_t i = 0; i < p->n_ops; i++) {
    const qn_node *op = &p->g->op[i];
    p->pred_first[i] = n;
    for (int32_t a = 0; a < args_of(op); a++) {
      const qn_value *v = &p->g->value[op->arg[a]];
      if (a < inputs_of(op)) {
        if (v->producer < 0) continue;
        if (p->pred) p->pred[n] = v->producer;
        n++;
      } else if (v->over >= 0) {
        p->taker[v->over] = i;
        for (int32_t k = p->reader_first[v->over]; k < p->reader_first[v->over + 1]; k++) {
          if (p->reader[k] == i) continue;
          if (p->pred) p->pred[n] = p->reader[k];
          n++;
        }
      }
    }
  }
  p->pred_first[p->n_ops] = n;
  return n;
}

/* Marks op i and the rest of its part (a part counts as one op); newly marked ops are pushed onto the stack. */
static int32_t visit(planner *p, int32_t i, uint8_t *mark, int32_t depth)
{
  const qn_part *part = p->group[i] >= 0 ? p->part[p->group[i]] : NULL;
  if (mark[i]) return depth;
  for (uint32_t k = 0; k < (part ? part->prepared.n_ops : 1); k++) {
    int32_t m = part ? part->op_of[k] : i;
    mark[m] = 1;
    p->stack[depth++] = m;
  }
  return depth;
}

/* Marks everything reachable from op i; stops at ops already marked. */
static void mark_after(planner *p, int32_t i, uint8_t *mark)
{
  int32_t depth = 0;
  p->stack[depth++] = i;
  while (depth) {
    const int32_t u = p->stack[--depth];
    const qn_node *op = &p->g->op[u];
    for (int32_t a = 0; a < args_of(op); a++) {
      int32_t v = op->arg[a];
      if (a >= inputs_of(op))
        for (int32_t k = p->reader_first[v]; k < p->reader_first[v + 1]; k++) depth = visit(p, p->reader[k], mark, depth);
      else if (p->taker[v] >= 0 && p->taker[v] != u) depth = visit(p, p->taker[v], mark, depth);
    }
  }
}

/* ---- the region ------------------------------------------------------------------------------------------ */

static bool pointwise(const planner *p, int32_t i) { return p->g->op[i].family == QN_FAMILY_POINTWISE; }

static bool joins(const planner *p, int32_t i)
{
  if (p->group[i] != UNPLANNED || p->in[i]) return false;
  return pointwise(p, i) || (p->also[p->g->op[i].op] && !qn__over_nothing(&p->g->op[i], p->g->value));
}

static void take(planner *p, int32_t i)
{
  p->in[i] = 1;
  p->list[p->n++] = i;
  mark_after(p, i, p->after);
}

/* Whether only op `user` reads the outputs of op e; if not `alone`, other ops of the region may read them too. */
static bool only_used_here(const planner *p, int32_t e, int32_t user, bool alone)
{
  const qn_node *op = &p->g->op[e];
  for (int32_t a = inputs_of(op); a < args_of(op); a++)
    for (int32_t k = p->reader_first[op->arg[a]]; k < p->reader_first[op->arg[a] + 1]; k++)
      if (p->reader[k] != user && (alone || !p->in[p->reader[k]])) return false;
  return true;
}

/* Whether an op outside the region that is marked seen must run before op i. */
static bool waits_for_seen(const planner *p, int32_t i)
{
  for (int32_t k = p->pred_first[i]; k < p->pred_first[i + 1]; k++)
    if (!p->in[p->pred[k]] && p->seen[p->pred[k]]) return true;
  return false;
}

/* Op e has readers elsewhere: with it in the region, would a path leave the region, or the ops that pull e in, and come back? */
static bool comes_back(planner *p, int32_t e, int32_t depth)
{
  memset(p->seen, 0, (size_t)p->n_ops);
  mark_after(p, e, p->seen);
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
    int32_t taker = p->taker[p->g->op[e].arg[a]];
    if (taker >= 0 && taker != e && (p->in[taker] || !here)) return true;
  }
  return false;
}

/* Whether the region may compute pointwise op e itself: e must not depend on an op that is still to become an anchor. A producer of
 * the anchor may have other readers too; one of a follower may not (alone), since readers in the region may precede it in the list. */
static bool pullable(planner *p, int32_t e, int32_t user, bool alone, int32_t depth)
{
  if (p->in[e] || p->group[e] != UNPLANNED || !pointwise(p, e) || p->after[e]) return false;
  const bool elsewhere = !only_used_here(p, e, user, alone);
  if (alone && (elsewhere || is_overwritten(p, e, true))) return false;        /* it would come after an op that depends on it */
  if ((elsewhere || is_overwritten(p, e, false)) && comes_back(p, e, depth)) return false;
  for (int32_t k = p->pred_first[e]; k < p->pred_first[e + 1]; k++)
    if (p->group[p->pred[k]] == UNPLANNED && !pointwise(p, p->pred[k])) return false;
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
    if (feeds(p, e, p->list[i])) return true;
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
  while (depth >= 0) {
    const int32_t u = p->path[depth];
    if (p->at[depth] == p->pred_first[u + 1]) {
      if (before && depth) take(p, u);
      depth--;
      continue;
    }
    const int32_t e = p->pred[p->at[depth]++];
    if (!pullable(p, e, u, before, depth) || (before ? feeds(p, e, p->list[0]) : feeds_follower(p, e) || (u == user && feeds(p, e, u) > 1)))
      continue;
    if (!before) take(p, e);
    p->path[++depth] = e;
    p->at[depth] = p->pred_first[e];
  }
}

static bool follows(const planner *p, int32_t i)
{
  bool reads_region = false;
  for (int32_t k = p->pred_first[i]; k < p->pred_first[i + 1]; k++) {
    if (p->in[p->pred[k]]) reads_region = true;
    else if (p->after[p->pred[k]]) return false;
  }
  return reads_region;
}

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

static void gather_also(planner *p, int32_t anchor)
{
  const qn_op_info *info = qn_op_find(p->g->op[anchor].op);
  memset(p->also, 0, sizeof p->also);
  for (int b = 0; b < p->who->terms->n_backends; b++) {
    const qn__backend *backend = p->who->terms->backend[b];
    for (int i = 0; i < backend->n_engines; i++) {
      const qn_engine *row = &backend->engine[i];
      for (const uint32_t *kind = row->also; kind && *kind && qn__anchors(row, info); kind++)
        if (*kind < QN__KINDS) p->also[*kind] = 1;
    }
  }
}

static void form_region(planner *p, int32_t anchor)
{
  memset(p->in, 0, (size_t)p->n_ops);
  memset(p->after, 0, (size_t)p->n_ops);
  p->n = 0;
  gather_also(p, anchor);
  take(p, anchor);
  for (int32_t i = 0; i < p->n_ops; i++)
    if (joins(p, i) && follows(p, i)) {
      pull(p, i, true);
      take(p, i);
    }
  if (pointwise(p, anchor)) {             /* in program order, so that nothing precedes what it needs */
    p->n = 0;
    for (int32_t i = 0; i < p->n_ops; i++)
      if (p->in[i]) p->list[p->n++] = i;
  }
  int32_t before_producers = p->n;
  for (int32_t i = 0; i < p->n_ops && p->n == before_producers; i++)
    if (p->g->op[i].family == QN_FAMILY_REDUCTION && i != anchor && p->group[i] == UNPLANNED && follows(p, i)) take(p, i);
  p->n_follow = p->n;
  if (!pointwise(p, anchor)) pull(p, anchor, false);
  cut_hazards(p);
  if (p->n > MOST_OFFERED) p->n = MOST_OFFERED;
}

/* ---- the request --------------------------------------------------------------------------------------------- */

static void number_values(planner *p)
{
  memset(p->local, 0xff, p->g->n_values * sizeof *p->local);
  p->n_values = p->n_args = 0;
  for (int32_t i = 0; i < p->n; i++) {
    const qn_node *op = &p->g->op[p->list[i]];
    p->n_args += args_of(op);
    for (int32_t a = 0; a < args_of(op); a++)
      if (p->local[op->arg[a]] < 0) {
        p->value_of[p->n_values] = op->arg[a];
        p->local[op->arg[a]] = p->n_values++;
      }
  }
}

static bool escapes(const planner *p, int32_t value)
{
  if (p->g->value[value].flags & QN_VALUE_ESCAPE) return true;  /* an output of the graph */
  if (p->reader_first[value] == p->reader_first[value + 1]) return true;      /* no reader: its op writes it all the same */
  for (int32_t k = p->reader_first[value]; k < p->reader_first[value + 1]; k++)
    if (!p->in[p->reader[k]]) return true;
  return false;
}

static void fill_request(const planner *p, qn_node *node, qn_value *value, int32_t *arg)
{
  for (int32_t v = 0; v < p->n_values; v++) {
    value[v] = p->g->value[p->value_of[v]];
    value[v].flags &= ~(uint32_t)QN_VALUE_ESCAPE;
    value[v].over = value[v].over >= 0 ? p->local[value[v].over] : -1;
    value[v].producer = value[v].last_user = -1;
  }
  for (int32_t i = 0; i < p->n; i++) {
    const qn_node *op = &p->g->op[p->list[i]];
    node[i] = *op;
    node[i].arg = arg;
    for (int32_t a = 0; a < args_of(op); a++, arg++) {
      *arg = p->local[op->arg[a]];
      if (a < inputs_of(op)) value[*arg].last_user = i;
      else {
        value[*arg].producer = i;
        if (escapes(p, op->arg[a])) value[*arg].flags |= QN_VALUE_ESCAPE;
      }
    }
  }
}

static qn_status plan_region(planner *p)
{
  memset(p->in, 0, (size_t)p->n_ops);                           /* the list may have been cut */
  for (int32_t i = 0; i < p->n; i++) p->in[p->list[i]] = 1;
  number_values(p);
  size_t n_ops = (size_t)p->n, n_values = (size_t)p->n_values;
  int32_t *value_of = qn__alloc(n_values * sizeof *value_of), *op_of = qn__alloc(n_ops * sizeof *op_of);
  double *literal = qn__alloc(n_values * sizeof *literal);
  char *block = qn__alloc(n_ops * sizeof(qn_node) + n_values * sizeof(qn_value) + (size_t)p->n_args * sizeof(int32_t));
  qn__asker who = *p->who;
  qn_part *part = NULL;
  qn_status status = value_of && op_of && literal && block ? QN_OK : qn__fail(QN_NO_MEMORY, "no memory to plan");
  if (status) goto done;
  qn_node *node = (qn_node *)block;
  qn_value *value = (qn_value *)(node + n_ops);
  fill_request(p, node, value, (int32_t *)(value + n_values));
  for (size_t v = 0; v < n_values; v++) literal[v] = p->g->literal[p->value_of[v]];
  who.literal = literal;
  qn_request request = { .struct_size = sizeof request, .host = &qn__host, .device = p->who->device,
    .demands = &p->who->terms->demands, .op = node, .n_ops = (uint32_t)n_ops, .n_values = (uint32_t)n_values, .value = value,
    .core = &who };
  if ((status = qn__part_choose(&who, &request, NULL, p->n_parts, &part))) goto done;
  part->request.core = NULL;
  part->n_used = qn__values_of(&part->request, part->prepared.n_ops);
  memcpy(op_of, p->list, n_ops * sizeof *op_of);
  memcpy(value_of, p->value_of, n_values * sizeof *value_of);
  for (uint32_t i = 0; i < part->prepared.n_ops; i++) p->group[p->list[i]] = p->n_parts;
  part->op_of = op_of;
  part->value_of = value_of;
  part->literal = literal;
  p->part[p->n_parts++] = part;
  op_of = value_of = NULL;
  literal = NULL;
done:
  qn__free(block);
  qn__free(op_of);
  qn__free(value_of);
  qn__free(literal);
  return status;
}

/* ---- the order of parts ------------------------------------------------------------------------------------------ */

static bool part_ready(const planner *p, int part, const uint8_t *done)
{
  for (uint32_t k = 0; k < p->part[part]->prepared.n_ops; k++) {
    int32_t i = p->part[part]->op_of[k];
    for (int32_t e = p->pred_first[i]; e < p->pred_first[i + 1]; e++) {
      int32_t g = p->group[p->pred[e]];
      if (g >= 0 && g != part && !done[g]) return false;
    }
  }
  return true;
}

static qn_status order_parts(planner *p)
{
  qn_part **sorted = qn__alloc((size_t)(p->n_parts + 1) * sizeof *sorted);
  uint8_t *done = qn__alloc((size_t)p->n_parts + 1);
  qn_status status = sorted && done ? QN_OK : qn__fail(QN_NO_MEMORY, "no memory to plan");
  for (int n = 0; n < p->n_parts && !status; n++) {
    int best = -1;
    for (int i = 0; i < p->n_parts; i++)
      if (!done[i] && (best < 0 || p->part[i]->op_of[0] < p->part[best]->op_of[0]) && part_ready(p, i, done)) best = i;
    if (best < 0)
      status = qn__fail(QN_BAD_ARGUMENT, "the graph writes over a tensor (`over`) that an op depending on the result still reads");
    else {
      done[best] = 1;
      sorted[n] = p->part[best];
    }
  }
  if (!status) memcpy(p->part, sorted, (size_t)p->n_parts * sizeof *sorted);
  qn__free(sorted);
  qn__free(done);
  return status;
}

/* ---- the whole graph ------------------------------------------------------------------------------------------------- */

static bool nothing_to_write(const planner *p, int32_t i)
{
  const qn_node *op = &p->g->op[i];
  for (int32_t a = inputs_of(op); a < args_of(op); a++) {
    const qn_value *v = &p->g->value[op->arg[a]];
    bool empty = false;
    for (int d = 0; d < v->rank; d++) empty = empty || !v->dim[d];
    if (!empty) return false;
  }
  return true;
}

static qn_status set_up(planner *p)
{
  size_t n = (size_t)p->n_ops, values = p->g->n_values, args = 0;
  for (size_t i = 0; i < n; i++) args += (size_t)inputs_of(&p->g->op[i]);
  int32_t *at = p->memory = qn__alloc((args + 4 * values + 1 + 6 * n + 2) * sizeof *at + 3 * n);
  p->part = qn__alloc((n + 1) * sizeof *p->part);
  if (!at || !p->part) return qn__fail(QN_NO_MEMORY, "no memory to plan");
  p->reader = at;
  p->reader_first = p->reader + args;
  p->taker = p->reader_first + values + 1;
  p->local = p->taker + values;
  p->value_of = p->local + values;
  p->pred_first = p->value_of + values;
  p->group = p->pred_first + n + 1;
  p->stack = p->group + n;
  p->list = p->stack + n + 1;
  p->path = p->list + n;
  p->at = p->path + n;
  p->in = (uint8_t *)(p->at + n);
  p->after = p->in + n;
  p->seen = p->after + n;
  memset(p->taker, 0xff, values * sizeof *p->taker);
  list_readers(p);
  if (!(p->pred = qn__alloc((size_t)(list_edges(p) + 1) * sizeof *p->pred))) return qn__fail(QN_NO_MEMORY, "no memory to plan");
  list_edges(p);
  for (int32_t i = 0; i < p->n_ops; i++) p->group[i] = nothing_to_write(p, i) ? NOTHING_TO_DO : UNPLANNED;
  return QN_OK;
}

/* Reductions last, so that each may close the region of an earlier op. */
static int turn_of(const planner *p, int32_t i)
{
  return pointwise(p, i) ? 1 : p->g->op[i].family == QN_FAMILY_REDUCTION ? 2 : 0;
}

qn_status qn__partition(const qn__asker *who, const qn_graph *g, qn_part ***parts, int *n_parts)
{
  planner p = { .who = who, .g = &g->view, .n_ops = (int32_t)g->view.n_ops };
  qn_status status = set_up(&p);
  for (int turn = 0; turn < 3 && !status; turn++)
    for (int32_t i = 0; i < p.n_ops && !status; i++)
      while (!status && p.group[i] == UNPLANNED && turn_of(&p, i) == turn) {
        form_region(&p, i);
        status = plan_region(&p);
      }
  if (!status) status = order_parts(&p);
  if (status) {
    for (int i = 0; i < p.n_parts; i++) qn__part_free(p.part[i]);
    qn__free(p.part);
  } else {
    *parts = p.part;
    *n_parts = p.n_parts;
  }
  qn__free(p.pred);
  qn__free(p.memory);
  return status;
}
