/* rank.c -- the order of candidates without a measurement: tuned before generic; of the sets of ops taken that with the least time, if all
 * have an estimate (its best engine's, plus that of what it leaves of the others'), else the one that saves the most bytes, then the
 * largest; of the engines that take one set the backends' in the order asked for, the smallest estimate, table order. */
#include "config.h"
#include "choose.h"
#include <stdlib.h>

typedef qn__candidate candidate;
enum { SETS = 32 };                                 /* different sets of ops that engines take of one problem */

/* ---- sets of ops ------------------------------------------------------------------------------------------------ */

int32_t qn__graph_op(const qn__offer *o, uint32_t op) { return o->op_of ? o->op_of[op] : (int32_t)op; }

/* Which of the offer's ops is that op of the graph? -1: none. */
int qn__place_in(const qn__offer *o, int32_t op)
{
  for (uint32_t k = 0; k < o->request.n_ops; k++)
    if (qn__graph_op(o, k) == op) return (int)k;
  return -1;
}

bool qn__same_set(const candidate *a, const candidate *b)
{
  if (a->offer == b->offer) return a->answer.taken == b->answer.taken;
  return a->answer.n_ops == b->answer.n_ops && (uint32_t)__builtin_popcountll(qn__ops_within(a->offer, b)) == a->answer.n_ops &&
         qn__ops_within(a->offer, b) == a->answer.taken;
}

uint64_t qn__ops_within(const qn__offer *offer, const candidate *c)
{
  uint64_t set = 0;
  if (c->offer == offer) return c->answer.taken;
  for (uint32_t k = 0; k < c->offer->request.n_ops; k++) {
    const int at = c->answer.taken >> k & 1 ? qn__place_in(offer, qn__graph_op(c->offer, k)) : -1;
    if (at >= 0) set |= UINT64_C(1) << at;
  }
  return set;
}

const qn__offer *qn__widest(candidate *const *c, int n, uint64_t *all)
{
  for (int i = 0; i < n; i++) {
    bool holds = true;
    *all = 0;
    for (int k = 0; k < n && holds; k++) {
      const uint64_t set = qn__ops_within(c[i]->offer, c[k]);
      holds = (uint32_t)__builtin_popcountll(set) == c[k]->answer.n_ops;
      *all |= set;
    }
    if (holds) return c[i]->offer;
  }
  return NULL;
}

/* ---- what is left ----------------------------------------------------------------------------------------------- */

double qn__time_of(const qn__planning *pc, const qn__offer *offer, uint64_t which, bool measured)
{
  qn__planning alone = *pc;
  qn_graph *g;
  qn_part **part;
  qn__views *views;
  int n;
  double ns = 0;
  uint64_t uses = 0;
  alone.timed = measured;
  alone.draft = !measured;
  alone.verdict = NULL;
  alone.uses = &uses;
  if (qn__request_graph(&offer->request, which, offer->literal, NULL, &g)) return 0;
  if (!qn__partition(&alone, g, &part, &n, &views)) {
    bool known = true;
    for (int i = 0; i < n; i++) {
      const double one = measured ? part[i]->ns : part[i]->prepared.estimate;
      known = known && one > 0;
      ns += one;
      qn__part_free(part[i]);
    }
    qn__free(part);
    qn__views_free(views);
    if (!known) ns = 0;
  }
  qn_graph_destroy(g);
  return ns;
}

/* ---- the order ---------------------------------------------------------------------------------------------------- */

static int better(const void *pa, const void *pb)
{
  const candidate *a = *(candidate *const *)pa, *b = *(candidate *const *)pb;
  if (a->answer.class_ != b->answer.class_) return a->answer.class_ < b->answer.class_ ? -1 : 1;
  if (a->set != b->set) return a->set < b->set ? -1 : 1;
  if (a->backend != b->backend) return a->rank < b->rank ? -1 : 1;
  if (a->ns != b->ns) return a->ns < b->ns ? -1 : 1;
  return a->rank < b->rank ? -1 : 1;
}

/* A set of ops that some candidates take: its best engine, and what decides between sets. */
typedef struct set { const candidate *best; double ns, saves; } set;

static bool set_before(const set *a, const set *b)
{
  if (a->ns != b->ns) return a->ns < b->ns;
  if (a->saves != b->saves) return a->saves > b->saves;
  if (a->best->answer.n_ops != b->best->answer.n_ops) return a->best->answer.n_ops > b->best->answer.n_ops;
  return a->best->rank < b->best->rank;
}

/* Sorts candidates of one class, best first. */
static void rank(const qn__planning *pc, candidate **order, int n)
{
  set sets[SETS];
  int n_sets = 0, k;
  bool timed = true;
  uint64_t all;
  qsort(order, (size_t)n, sizeof *order, better);               /* so that each set's first is its best */
  for (int i = 0; i < n; i++) {
    for (k = 0; k < n_sets && !qn__same_set(sets[k].best, order[i]); k++) {}
    if (k == SETS) return;                                  /* so many kinds of answers: unranked */
    if (k == n_sets) sets[n_sets++] = (set){ .best = order[i] };
    order[i]->set = k;
  }
  if (n_sets == 1) return;
  for (k = 0; k < n_sets; k++) timed = timed && sets[k].best->ns < QN__UNKNOWN;
  const qn__offer *widest = timed ? qn__widest(order, n, &all) : NULL;
  timed = timed && widest;
  for (k = 0; k < n_sets && timed; k++) {
    const uint64_t left = all & ~qn__ops_within(widest, sets[k].best);
    const double rest = left ? qn__time_of(pc, widest, left, false) : 0;
    timed = !left || rest > 0;
    sets[k].ns = sets[k].best->ns + rest;
  }
  for (k = 0; k < n_sets; k++) {
    if (!timed) sets[k].ns = 0;
    sets[k].saves = qn__request_saves(&sets[k].best->offer->request, sets[k].best->answer.taken);
  }
  for (int i = 0; i < n; i++) {
    const int own = order[i]->set;
    order[i]->set = 0;
    for (k = 0; k < n_sets; k++) order[i]->set += set_before(&sets[k], &sets[own]);
  }
  qsort(order, (size_t)n, sizeof *order, better);
}

/* Each class by itself: the first of a class decide how the others' times compare. */
void qn__rank(const qn__planning *pc, candidate **order, int n)
{
  qsort(order, (size_t)n, sizeof *order, better);
  for (int i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && order[end]->answer.class_ == order[i]->answer.class_; end++) {}
    rank(pc, order + i, end - i);
  }
}
