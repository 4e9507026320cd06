/* edges.c -- the order that a graph's edges leave to its ops, kept as parts are taken out of it.
 *
 * An op runs after the producers of what it reads. A tensor that takes another's memory (`out p2 over p`) adds an edge from every reader
 * of p to the producer of p2, so that p is read before it is overwritten. A part counts as one op: its ops stand side by side in the order,
 * so that whatever leads from a part to another op leads forward. */
#include "config.h"
#include "planner.h"
#include <string.h>

static void list_readers(planner *p)
{
  int32_t *at = p->reader_first + 1;      /* counts, then the next free position, then the start of the next value's */
  for (int32_t i = 0; i < p->n_ops; i++)
    for (int32_t a = 0; a < inputs_of(&p->g->op[i]) && p->group[i] != NOTHING_TO_DO; a++) at[origin(p, p->g->op[i].arg[a])]++;
  for (int32_t v = 0, sum = 0; v < (int32_t)p->g->n_values; v++) {
    int32_t n = at[v];
    at[v] = sum;
    sum += n;
  }
  for (int32_t i = 0; i < p->n_ops; i++)
    for (int32_t a = 0; a < inputs_of(&p->g->op[i]) && p->group[i] != NOTHING_TO_DO; a++)
      p->reader[at[origin(p, p->g->op[i].arg[a])]++] = i;
}

/* Lists the predecessors of each op; with pred NULL only counts them. */
static int32_t list_edges(planner *p)
{
  int32_t n = 0;
  for (int32_t i = 0; i < p->n_ops; i++) {
    const qn_node *op = &p->g->op[i];
    p->pred_first[i] = n;
    for (int32_t a = 0; a < args_of(op) && p->group[i] != NOTHING_TO_DO; a++) {
      const qn_value *v = &p->g->value[origin(p, op->arg[a])];
      if (a < inputs_of(op)) {
        if (v->producer < 0) continue;
        if (p->pred) p->pred[n] = v->producer;
        n++;
      } else if (v->over >= 0) {
        p->overwriter[v->over] = i;
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

/* Depth first, so that the order is the program's wherever that is one. */
static qn_status order_ops(planner *p)
{
  int32_t n = 0;
  memset(p->pos, 0xff, (size_t)p->n_ops * sizeof *p->pos);
  for (int32_t i = 0; i < p->n_ops; i++) {
    int32_t depth = 0;
    if (p->pos[i] >= 0) continue;
    p->path[0] = i;
    p->at[0] = p->pred_first[i];
    p->seen[i] = -1;                      /* on the path */
    while (depth >= 0) {
      const int32_t u = p->path[depth];
      if (p->at[depth] == p->pred_first[u + 1]) {
        p->op_at[n] = u;
        p->pos[u] = n++;
        p->seen[u] = 0;
        depth--;
        continue;
      }
      const int32_t e = p->pred[p->at[depth]++];
      if (p->seen[e] == -1)
        return qn__fail(QN_BAD_ARGUMENT, "the graph writes over a tensor (`over`) that an op depending on the result still reads");
      if (p->pos[e] >= 0) continue;
      p->path[++depth] = e;
      p->at[depth] = p->pred_first[e];
      p->seen[e] = -1;
    }
  }
  return QN_OK;
}

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

qn_status qn__edges_set_up(planner *p)
{
  size_t n = (size_t)p->n_ops, values = p->g->n_values, args = 0;
  for (size_t i = 0; i < n; i++) args += (size_t)inputs_of(&p->g->op[i]);
  int32_t *at = p->memory = qn__alloc((args + 4 * values + 1 + 10 * n + 2) * sizeof *at);
  p->part = qn__alloc((n + 1) * sizeof *p->part);
  if (!at || !p->part) return qn__fail(QN_NO_MEMORY, "no memory to plan");
  int32_t **const of_values[] = { &p->overwriter, &p->local, &p->local_of };
  int32_t **const of_ops[] = { &p->group, &p->pos, &p->op_at, &p->in, &p->after, &p->seen, &p->stack, &p->path, &p->at };
  p->reader = at, at += args;
  p->reader_first = at, at += values + 1;
  p->pred_first = at, at += n + 1;
  for (size_t k = 0; k < sizeof of_values / sizeof *of_values; k++, at += values) *of_values[k] = at;
  for (size_t k = 0; k < sizeof of_ops / sizeof *of_ops; k++, at += n) *of_ops[k] = at;
  memset(p->overwriter, 0xff, values * sizeof *p->overwriter);
  for (int32_t i = 0; i < p->n_ops; i++)
    p->group[i] = nothing_to_write(p, i) || (p->views && p->views->folded[i]) ? NOTHING_TO_DO : UNPLANNED;
  list_readers(p);
  if (!(p->pred = qn__alloc((size_t)(list_edges(p) + 1) * sizeof *p->pred))) return qn__fail(QN_NO_MEMORY, "no memory to plan");
  list_edges(p);
  return order_ops(p);
}

/* Of the ops between a part's first and last, those that it waits for go before it, the others after it. */
void qn__edges_join(planner *p, const qn_part *part)
{
  const int32_t mark = p->mark = ++p->marks;
  int32_t first = p->n_ops, last = -1, n = 0;
  for (uint32_t k = 0; k < part->request.n_ops; k++) {
    if (!qn__takes(part, k)) continue;
    const int32_t i = part->op_of[k];
    p->in[i] = mark;
    if (p->pos[i] < first) first = p->pos[i];
    if (p->pos[i] > last) last = p->pos[i];
  }
  for (int32_t at = last; at >= first; at--) {
    const int32_t i = p->op_at[at], group = p->group[i];
    int32_t begin = at;                   /* a part's ops all wait if one does */
    while (group >= 0 && begin > first && p->group[p->op_at[begin - 1]] == group) begin--;
    bool before = false;
    for (int32_t k = begin; k <= at; k++) before = before || is_in(p, p->op_at[k]) || p->seen[p->op_at[k]] == mark;
    for (int32_t k = begin; k <= at && before; k++) {
      const int32_t m = p->op_at[k];
      p->seen[m] = mark;
      for (int32_t e = p->pred_first[m]; e < p->pred_first[m + 1]; e++) p->seen[p->pred[e]] = mark;
    }
    at = begin;
  }
  for (int turn = 0; turn < 3; turn++)
    for (int32_t at = first; at <= last; at++) {
      const int32_t i = p->op_at[at];
      if (turn == (is_in(p, i) ? 1 : p->seen[i] == mark ? 0 : 2)) p->stack[n++] = i;
    }
  for (int32_t k = 0; k < n; k++) {
    p->op_at[first + k] = p->stack[k];
    p->pos[p->stack[k]] = first + k;
  }
}
