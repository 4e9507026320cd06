/* search.c -- the choice by measurement, among the engines that accept and among the sets of ops that they take. */
#include "config.h"
#include "tuning/tuning.h"
#include <string.h>

typedef qn__candidate candidate;

static bool can_measure(const qn__planning *pc)
{
  return pc->ctx && !pc->depth && !pc->verdict && !pc->draft && pc->ctx->dev->ops->event_elapsed && !qn__checks(pc->ctx->dev) &&
         !qn__context_capturing(pc->ctx);
}

/* Prepares and builds an engine with that variant, offered its first n_ops ops (0: all); it competes if it takes the wanted ones. True:
 * it takes some. */
static bool compete(const qn__planning *pc, const candidate *of, const char *variant, uint32_t n_ops, const candidate *wanted,
                    qn_part **part, int *n_parts)
{
  candidate c = { .backend = of->backend, .row = of->row, .offer = of->offer, .rank = of->rank, .variant = of->variant, .offered = n_ops };
  if (qn__ask(pc, variant, &c)) return false;
  if (qn__same_set(&c, wanted) && !qn__bind(pc, &c, &part[*n_parts])) ++*n_parts;
  else qn__withdraw(&c);
  return true;
}

/* How many of its ops to offer a candidate that is to take the wanted ones: those, if they are its first; else all (0), if they are what
 * it takes of all; -1: it cannot. */
static int ops_to_offer(const candidate *c, const candidate *wanted, bool whole)
{
  const uint32_t n = wanted->answer.n_ops;
  if (!whole && qn__ops_within(c->offer, wanted) == QN__ALL_OPS(n)) return (int)n;
  return whole || qn__same_set(c, wanted) ? 0 : -1;
}

/* Builds the candidates that take the wanted ops, each with all its variants (if none fits, with its own choice), and keeps the fastest.
 * whole: each is offered all its ops, else no more than are wanted. A single one is measured only if its time is needed. */
static qn_part *fastest(const qn__planning *pc, const candidate *wanted, bool whole, bool timed, candidate *const *order, int n)
{
  int most = 0, n_parts = 0, best = 0;
  for (int i = 0; i < n; i++) {
    const char *const *v = order[i]->row->variants;
    for (most++; v && *v; v++) most++;
  }
  qn_part **part = qn__alloc((size_t)most * sizeof *part), *kept = NULL;
  if (!part) return NULL;
  for (int i = 0; i < n; i++) {
    const char *const *v = order[i]->variant ? NULL : order[i]->row->variants;
    const int offered = ops_to_offer(order[i], wanted, whole);
    if (order[i]->answer.class_ == QN_CLASS_GENERIC && order[0]->answer.class_ == QN_CLASS_TUNED &&
        qn__multiplications(&order[i]->offer->request, ~UINT64_C(0)) > QN__LARGE)
      continue;                                                 /* it would take longer than all the others, to lose */
    if (offered < 0) continue;
    bool takes = false;
    for (; v && *v; v++) takes = compete(pc, order[i], *v, (uint32_t)offered, wanted, part, &n_parts) || takes;
    if (!takes) compete(pc, order[i], order[i]->variant, (uint32_t)offered, wanted, part, &n_parts);
  }
  if (n_parts && (n_parts == 1 && !timed ? QN_OK : qn__tune_measure(pc, part, n_parts, &best)) == QN_OK) kept = part[best];
  for (int i = 0; i < n_parts; i++)
    if (part[i] != kept) qn__part_free(part[i]);
  qn__free(part);
  return kept;
}

/* Was the part offered fewer ops than its engine's pattern admits? */
static bool is_cut(const qn_part *part, candidate *const *order, int n)
{
  for (int i = 0; i < n; i++)
    if (order[i]->row == part->engine) return part->request.n_ops < order[i]->offer->request.n_ops;
  return false;
}

/* The fastest of those that take the best set of ops, or one that takes another set if its time plus that of what it leaves is less. Tried
 * are the anchor alone and the sets that some engine takes. A chain of pointwise ops is one pass over memory in any case: no other
 * split is tried. */
static qn_status measured(const qn__planning *pc, const qn__offers *offers, bool pinned, candidate **order, int n, qn_part **out)
{
  uint64_t all = 0;
  if (!can_measure(pc)) return QN_UNSUPPORTED;
  const candidate alone = { .offer = order[0]->offer, .answer = { .n_ops = 1, .taken = 1 } };
  const qn__offer *widest = qn__widest(order, n, &all);
  const bool splits = widest && (all & (all - 1)) && widest->request.op[0].family != QN_FAMILY_POINTWISE;
  qn_part *best = fastest(pc, order[0], true, splits || pc->timed, order, n);
  if (!best) return QN_UNSUPPORTED;
  const uint64_t left = splits ? all & ~qn__ops_within(widest, order[0]) : 0;
  double rest = left ? qn__time_of(pc, widest, left, true) : 0, least = left && !rest ? 0 : best->ns + rest;
  for (int i = 0; i <= n && splits && least > 0; i++) {
    const candidate *wanted = i ? order[i - 1] : &alone;
    bool tried = qn__same_set(wanted, order[0]) || (i && qn__same_set(wanted, &alone));
    for (int k = 0; k < i - 1; k++) tried = tried || qn__same_set(wanted, order[k]);
    qn_part *part = tried ? NULL : fastest(pc, wanted, false, true, order, n);
    if (!part) continue;
    const uint64_t others = all & ~qn__ops_within(widest, wanted);
    rest = others ? qn__time_of(pc, widest, others, true) : 0;
    if ((rest > 0 || !others) && (part->ns + rest) * QN__NEAR_TIE < least) {
      qn_part *slower = best;
      least = part->ns + rest;
      best = part;
      part = slower;
    }
    qn__part_free(part);
  }
  if (best->ns > 0) qn__tune_remember(pc, offers, best, is_cut(best, order, n), pinned);
  *out = best;
  return QN_OK;
}

const qn__tuner qn__tuning = { qn__tune_lookup, measured, qn__layouts_choose };
