/* choose.c -- asks the engines about a request and binds the best one that accepts.
 *
 * Candidates are the pinned engines, if any, else all, each asked with the region of its row's pattern; an engine that violates a demand is
 * not one. Order of choice: the tune cache's entry; a measurement, if enabled (tuning); else by rank (rank.c). From
 * `deterministic=batch` on, times decide nothing, measured or estimated: they depend on the batch and on the device's size, and another
 * engine would give other bits. If no engine accepts, the error lists every engine's reason. */
#include "config.h"
#include "choose.h"
#include <quern/kit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef qn__candidate candidate;
typedef struct list { candidate *c; int n, cap; } list;

/* ---- demands ------------------------------------------------------------------------------------------- */

/* *fewer: with fewer threads it might do. */
static qn_status demanded(const qn_demands *d, qn_prepared *a, bool *fewer)
{
  static const char *const math[] = { "math strict", "math f32", "math tf32", "math fast" };
  static const uint64_t rung[] = { 0, QN_TRAIT_DETERMINISTIC, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT,
                                   QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE };
  static const char *const name[] = { "", "deterministic 1", "deterministic batch", "deterministic portable" };
  char needed[64];
  uint32_t least = a->traits & (QN_TRAIT_REDUCED | QN_TRAIT_FINITE_ONLY | QN_TRAIT_FLUSHES) ? QN_MATH_FAST : a->math;
  if (least > QN_MATH_FAST) least = QN_MATH_FAST;
  if (least > d->math) return qn_refuse(a, "the math in force does not allow it", "", math[least], "%s", math[d->math]);
  if (rung[d->determinism] & ~a->traits)
    return qn_refuse(a, "it does not promise the determinism in force", "", name[d->determinism], "%s", "");
  if (a->workspace <= d->workspace_limit) return QN_OK;
  *fewer = d->threads > 1;
  snprintf(needed, sizeof needed, "%llu bytes", (unsigned long long)a->workspace);
  return qn_refuse(a, "its workspace is over the limit", "", needed, "a limit of %llu bytes", (unsigned long long)d->workspace_limit);
}

/* ---- asking -------------------------------------------------------------------------------------------------- */

static uint32_t offered(const candidate *c) { return c->offered ? c->offered : c->offer->request.n_ops; }

/* Limit on an engine's answer: sums of this many bytes do not overflow. */
#define MOST_BYTES (UINT64_C(1) << 56)
static qn_status sound(qn_prepared *a, const qn_request *r)
{
  if (!a->n_ops) a->n_ops = 1;
  if (a->taken ? (a->taken & ~QN__ALL_OPS(r->n_ops)) != 0 : a->n_ops > r->n_ops)
    qn_refuse(a, "a defect of the engine: it took more than it was offered", "", "", "%u of %u ops taken", a->n_ops, r->n_ops);
  else if (a->taken && !qn__request_whole(r, a->taken))
    qn_refuse(a, "a defect of the engine: what it took lacks the anchor, or a path leaves it and comes back", "", "", "ops 0x%llx taken",
              (unsigned long long)a->taken);
  else if (a->workspace > MOST_BYTES || a->counters > MOST_BYTES)
    qn_refuse(a, "a defect of the engine: it wants more memory than there can be", "", "", "workspace of %llu bytes, counters of %llu",
              (unsigned long long)a->workspace, (unsigned long long)a->counters);
  else if (a->class_ > QN_CLASS_HOST || a->math > QN_MATH_FAST)
    qn_refuse(a, "a defect of the engine: its class or math is none", "", "", "class %u, math %u", (unsigned)a->class_, (unsigned)a->math);
  else {
    if (!a->taken) a->taken = QN__ALL_OPS(a->n_ops);
    a->n_ops = (uint32_t)__builtin_popcountll(a->taken);
    return QN_OK;
  }
  return QN_INTERNAL;
}

static qn_demands demands_of(const qn__planning *pc, const candidate *c)
{
  qn_demands d = pc->policy->demands;
  if (c->threads) d.threads = c->threads;
  return d;
}

/* Asks once, for c->threads threads; true: fewer might do. */
static bool ask_once(const qn__planning *pc, const char *variant, candidate *c)
{
  const qn_demands demands = demands_of(pc, c);
  qn_request r = c->offer->request;
  qn_prepared *a = &c->answer;
  qn__planning inner = *pc;
  bool fewer = false;
  c->status = QN_OK;
  c->demand = false;
  memset(a, 0, sizeof *a);
  inner.threads = demands.threads;
  inner.delegate = qn__part_choose;
  r.n_ops = offered(c);
  if (c->offered) r.n_values = qn__values_of(&r, r.n_ops);
  r.core = &inner;
  r.demands = &demands;
  r.instance = NULL;
  if (pc->ctx) c->status = qn__context_instance(pc->ctx, c->backend, &r.instance);
  if (c->status) {
    qn_refuse(a, "its backend could not be opened", "", "", "%s", qn_last_error());
    return false;
  }
  r.variant = variant;
  a->struct_size = sizeof *a;
  a->engine = c->row;
  a->class_ = c->row->class_;
  a->traits = c->row->traits;
  c->status = c->row->prepare(&r, a);
  if (!c->status) {
    if (!(c->status = sound(a, &r))) c->demand = (c->status = demanded(&demands, a, &fewer)) != QN_OK;
    if (c->status && c->row->release) c->row->release(a);
  } else if (!*a->refusal.rule) {
    const char *said = c->status == QN_UNSUPPORTED ? "it gave no reason" : qn_last_error();
    qn_refuse(a, *said ? said : qn_status_text(c->status), "", "", "%s", "");
  } else c->demand = strstr(a->refusal.rule, "workspace") != NULL;              /* some engines read the limit themselves */
  return fewer;
}

/* An engine whose workspace is over the limit is asked again for half the threads, down to one. */
qn_status qn__ask(const qn__planning *pc, const char *variant, candidate *c)
{
  c->threads = pc->threads ? pc->threads : pc->policy->demands.threads;
  while (ask_once(pc, variant, c)) c->threads /= 2;
  return c->status;
}

static candidate *add(list *l)
{
  candidate *grown = qn__grown(l->c, l->n, &l->cap, sizeof *grown);
  if (!grown) return NULL;
  l->c = grown;
  return &l->c[l->n++];
}

/* The engines to ask: those that `only` names, the pinned ones, or all. */
typedef struct filter { const char *backend, *engine; size_t backend_len; uint32_t pin_op; bool generic_only; } filter;

static bool names(const filter *f, const qn__backend *b)
{
  return strlen(b->name) == f->backend_len && !strncmp(b->name, f->backend, f->backend_len);
}

static const qn__pin *pin_for(const qn__policy *t, const filter *f, const qn__backend *b, const qn_engine *row)
{
  for (int i = 0; i < t->settings.n_pins; i++) {
    const qn__pin *p = &t->settings.pin[i];
    if (p->op == f->pin_op && !strcmp(p->engine, row->name) && (!p->backend || !strcmp(p->backend, b->name))) return p;
  }
  return NULL;
}

static const qn__offer *offer_for(const qn__offers *offers, const qn_engine *row)
{
  for (int i = 1; i < offers->n; i++)
    if (offers->pattern[i] == row->pattern) return offers->offer[i];
  return offers->offer[0];
}

static qn_status ask_backend(const qn__planning *pc, const qn__offers *offers, const filter *f, qn__backend *b, list *l)
{
  const qn_op_info *op = qn_op_find(offers->offer[0]->request.op[0].op);
  int at = (int)(op - qn__ops);
  if (f->backend && !names(f, b)) return QN_OK;
  for (int i = b->first[at]; i < b->first[at + 1]; i++) {
    qn_engine *row = &b->engine[b->by_op[i]];
    const qn__pin *pin = NULL;
    if (f->engine && strcmp(f->engine, row->name)) continue;
    if (f->pin_op && !(pin = pin_for(pc->policy, f, b, row))) continue;
    candidate *c = add(l);
    if (!c) return qn__fail(QN_NO_MEMORY, "no memory to ask the engines");
    c->backend = b;
    c->row = row;
    c->offer = offer_for(offers, row);
    c->rank = l->n - 1;
    c->variant = pin ? pin->variant : NULL;
    if (f->generic_only && row->class_ != QN_CLASS_GENERIC)
      c->status = qn_refuse(&c->answer, "sums over nothing go to the generic engine", "", "", "%s", "a zero dim");
    else qn__ask(pc, c->variant, c);
  }
  return QN_OK;
}

/* A tuned engine that takes all that anyone is offered cannot lose to a later backend's. */
static bool cannot_lose(const qn__offers *offers, const list *l)
{
  for (int i = 0; i < l->n; i++) {
    const candidate *c = &l->c[i];
    bool all = !c->status && c->answer.class_ == QN_CLASS_TUNED && c->answer.n_ops == c->offer->request.n_ops;
    for (int k = 0; k < offers->n && all; k++)
      for (uint32_t m = 0; m < offers->offer[k]->request.n_ops && all && offers->offer[k] != c->offer; m++)
        all = qn__place_in(c->offer, qn__graph_op(offers->offer[k], m)) >= 0;
    if (all) return true;
  }
  return false;
}

/* everyone: ask also the backends whose answers could not win. */
static qn_status ask_all(const qn__planning *pc, const qn__offers *offers, const filter *f, bool everyone, list *l)
{
  qn_status status = QN_OK;
  bool found = false;
  for (int i = 0; i < pc->policy->n_backends && !status && (everyone || !cannot_lose(offers, l)); i++) {
    qn__backend *b = pc->policy->backend[i];
    found = found || (f->backend && names(f, b));
    status = ask_backend(pc, offers, f, b, l);
  }
  if (!status && f->backend && !found) {                        /* a delegating engine may name a backend that is not enabled */
    char name[64];
    qn__backend *b;
    snprintf(name, sizeof name, "%.*s", (int)f->backend_len, f->backend);
    status = qn__backend_get(name, &b);
    if (!status && (b->table->open || strcmp(b->table->device_kind, pc->device->kind)))
      status = qn__fail(QN_UNSUPPORTED, "backend %s cannot be delegated to: it %s", name,
                        b->table->open ? "needs an instance, so it must be enabled" : "works on another device");
    if (!status) status = ask_backend(pc, offers, f, b, l);
  }
  return status;
}

/* ---- binding -------------------------------------------------------------------------------------------------- */

qn_status qn__bind(const qn__planning *pc, candidate *c, qn_part **out)
{
  qn_part *p = qn__alloc(sizeof *p);
  qn_status status = p ? qn__request_copy(p, c->offer, offered(c)) : qn__fail(QN_NO_MEMORY, "no memory for a part of the plan");
  if (status) {
    qn__free(p);
    return status;
  }
  for (uint32_t v = 0; v < p->request.n_values; v++) p->use[v] = qn__request_use(&p->request, c->answer.taken, v);
  p->demands = demands_of(pc, c);
  p->request.demands = &p->demands;
  p->prepared = c->answer;
  p->engine = c->row;
  p->backend = c->backend;
  p->request.instance = pc->ctx && c->backend->instance >= 0 ? pc->ctx->instance[c->backend->instance] : NULL;
  c->answer.engine = NULL;                                      /* its state belongs to the part now */
  if (pc->ctx && !pc->depth && !pc->draft && p->engine->build) status = p->engine->build(&p->request, &p->prepared);
  if (pc->uses && c->backend->instance >= 0) *pc->uses |= UINT64_C(1) << c->backend->instance;
  if (status) {
    qn__part_free(p);
    return status;
  }
  *out = p;
  return QN_OK;
}

static void print_refusal(qn_text *t, const candidate *c)
{
  const qn_refusal *r = &c->answer.refusal;
  qn__text_add(t, "%s/%s: %s%s%s", c->backend->name, c->row->name, r->tensor, *r->tensor ? ": " : "", r->rule);
  if (*r->seen) qn__text_add(t, "; it is %s", r->seen);
  if (*r->needed) qn__text_add(t, ", needs %s", r->needed);
  if (*r->nearest) qn__text_add(t, "; %s would do", r->nearest);
}

static qn_status refused(const qn__offer *offer, const list *l, const char *only)
{
  qn_text t = {0}, problem = {0};
  qn_status status = QN_UNSUPPORTED;
  qn__request_print(&problem, &offer->request, ~UINT64_C(0), offer->literal, NULL);
  for (int i = 0; i < l->n; i++) {
    qn__text_add(&t, i ? "; " : "");
    print_refusal(&t, &l->c[i]);
    if (l->c[i].status == QN_NO_MEMORY) status = QN_NO_MEMORY;  /* it might have accepted */
  }
  status = l->n ? qn__fail(status, "no engine takes %s: %s", problem.s ? problem.s : "this", t.s ? t.s : "")
         : qn__fail(status, "no engine%s%s of the enabled backends is for %s", only ? " " : "", only ? only : "",
                              problem.s ? problem.s : "this");
  qn__free(t.s);
  qn__free(problem.s);
  return status;
}

static void report(const qn__planning *pc, const list *l, int part_no, const candidate *chosen)
{
  const qn__offer *printed = NULL;
  qn_text problem = {0};
  for (int i = 0; i < l->n && pc->verdict; i++) {
    const candidate *c = &l->c[i];
    if (c->offer != printed) {
      qn__free(problem.s);
      problem = (qn_text){0};
      qn__request_print(&problem, &c->offer->request, ~UINT64_C(0), c->offer->literal, NULL);
      printed = c->offer;
    }
    qn_verdict v = { sizeof v, c->backend->name, c->row->name, part_no, c == chosen, c->status, &c->answer, problem.s ? problem.s : "" };
    pc->verdict(pc->user, &v);
  }
  qn__free(problem.s);
}

/* ---- nobody is slow unknowingly --------------------------------------------------------------------------------- */

double qn__multiplications(const qn_request *r, uint64_t which)
{
  double n = 0;
  for (uint32_t i = 0; i < r->n_ops; i++) {
    if (!(which >> i & 1)) continue;
    const double flops = qn_flops(&r->op[i], r->value);
    n += flops > 0 ? flops / 2 : (double)qn_elements(&r->value[r->op[i].arg[r->op[i].first[r->op[i].n_inputs]]]);
  }
  return n;
}

/* True once for each sentence (of the last thousand or so). */
static bool is_news(const char *sentence)
{
  static atomic_ullong said[1024];
  uint64_t hash = UINT64_C(14695981039346656037);   /* FNV-1a */
  for (; *sentence; sentence++) hash = (hash ^ (unsigned char)*sentence) * UINT64_C(1099511628211);
  return atomic_exchange(&said[hash % 1024], hash) != hash;
}

/* The refusal that the caller could lift most easily: a demand's, else one that names a problem near by, else the first. */
static const candidate *nearest_refusal(const list *l)
{
  const candidate *best = NULL;
  for (int i = 0; i < l->n; i++) {
    const candidate *c = &l->c[i];
    if (!c->status || c->row->class_ != QN_CLASS_TUNED) continue;
    if (!best || (c->demand && !best->demand) || (!best->demand && *c->answer.refusal.nearest && !*best->answer.refusal.nearest)) best = c;
  }
  return best;
}

static void warn_of_generic(const list *l, const candidate *chosen)
{
  const candidate *c = nearest_refusal(l);
  const qn_request *r = &chosen->offer->request;
  qn_text t = {0}, problem = {0};
  for (int i = 0; i < l->n; i++)
    if (!l->c[i].status && l->c[i].row->class_ == QN_CLASS_TUNED) return;
  const double n = qn__multiplications(r, chosen->answer.taken);
  if (!(n > QN__LARGE) || !qn__logs(QN_LOG_WARN)) return;
  qn__request_print(&problem, r, chosen->answer.taken, chosen->offer->literal, NULL);
  qn__text_add(&t, "slow: the generic engine %s/%s takes %s (%.3g million multiplications); ", chosen->backend->name, chosen->row->name,
               problem.s ? problem.s : "a problem", n / 1e6);
  if (c) print_refusal(&t, c);
  else qn__text_add(&t, "no tuned engine of the enabled backends is for it");
  if (!t.failed && is_news(t.s)) qn__log(QN_LOG_WARN, "%s", t.s);
  qn__free(t.s);
  qn__free(problem.s);
}

bool qn__over_nothing(const qn_node *op, const qn_value *value)
{
  for (int32_t a = 0; a < op->first[op->n_inputs]; a++) {
    const qn_value *v = &value[op->arg[a]];
    for (int d = 0; d < v->rank; d++)
      if (!v->dim[d]) return true;
  }
  return false;
}

static uint32_t pinned_op(const qn__policy *t, const qn_node *anchor)
{
  uint32_t family = anchor->family | QN_ANCHOR_FAMILY, found = 0;
  for (int i = 0; i < t->settings.n_pins; i++) {
    if (t->settings.pin[i].op == anchor->op) return anchor->op;
    if (t->settings.pin[i].op == family) found = family;
  }
  return found;
}

/* ---- what was measured ------------------------------------------------------------------------------------------- */

static const char *variant_of(const candidate *c, const char *name)
{
  for (int v = 0; c->row->variants && c->row->variants[v]; v++)
    if (!strcmp(c->row->variants[v], name)) return c->row->variants[v];
  return NULL;
}

void qn__withdraw(candidate *c)
{
  if (!c->status && c->answer.engine && c->row->release) c->row->release(&c->answer);
  memset(&c->answer, 0, sizeof c->answer);
  c->status = QN_UNSUPPORTED;
}

/* Puts the remembered engine first, offered as many ops as then. Ignores an engine that is gone or of another version. */
static bool take_remembered(const qn__planning *pc, const qn__choice *remembered, candidate **order, int n)
{
  qn__choice choice = *remembered;
  char *slash = strchr(choice.name, '/'), *colon = slash ? strchr(slash, ':') : NULL, *bar = slash ? strchr(slash, '|') : NULL;
  if (!slash) return false;
  const long ops = bar ? strtol(bar + 1, NULL, 10) : 0;
  *slash = 0;
  if (colon) *colon = 0;
  if (bar) *bar = 0;
  for (int i = 0; i < n; i++) {
    candidate *c = order[i];
    if (strcmp(c->backend->name, choice.name) || strcmp(c->row->name, slash + 1) || strcmp(c->backend->table->version, choice.version))
      continue;
    const char *variant = colon ? variant_of(c, colon + 1) : NULL;
    if ((colon && !variant) || ops < 0 || ops > (long)c->offer->request.n_ops) return false;
    if (variant || ops) {
      candidate other = { .backend = c->backend, .row = c->row, .offer = c->offer, .rank = c->rank, .variant = c->variant,
                          .offered = (uint32_t)ops };
      if (qn__ask(pc, variant, &other)) return false;
      qn__withdraw(c);
      *c = other;
    }
    memmove(&order[1], &order[0], (size_t)i * sizeof *order);
    order[0] = c;
    return true;
  }
  return false;
}

/* Does it take that op of the graph? */
static bool holds(const candidate *c, int32_t op)
{
  const int at = qn__place_in(c->offer, op);
  return at >= 0 && c->answer.taken >> at & 1;
}

static bool part_holds(const qn_part *p, int32_t op)
{
  for (uint32_t k = 0; k < p->request.n_ops; k++)
    if (qn__takes(p, k) && p->op_of[k] == op) return true;
  return false;
}

bool qn__anyone_takes(const qn__planning *pc, const qn__offer *offer, const qn_pattern *pattern, int32_t op)
{
  const int at = (int)(qn_op_find(offer->request.op[0].op) - qn__ops);
  bool takes = false;
  for (int k = 0; k < pc->policy->n_backends && !takes; k++) {
    qn__backend *b = pc->policy->backend[k];
    for (int i = b->first[at]; i < b->first[at + 1] && !takes; i++) {
      candidate c = { .backend = b, .row = &b->engine[b->by_op[i]], .offer = offer };
      if (c.row->pattern != pattern || qn__ask(pc, NULL, &c)) continue;
      takes = holds(&c, op);
      qn__withdraw(&c);
    }
  }
  return takes;
}

static int count_willing(const list *l)
{
  int n = 0;
  for (int i = 0; i < l->n; i++) n += !l->c[i].status;
  return n;
}

qn_status qn__part_choose(const qn__planning *pc, const qn__offers *offers, const char *only, int32_t needs, int part_no, qn_part **out)
{
  list l = {0};
  candidate **order = NULL;
  const candidate *chosen = NULL;
  const qn__offer *plain = offers->offer[0];
  const char *slash = only ? strchr(only, '/') : NULL;
  const bool collective = plain->request.op[0].family == QN_FAMILY_COLLECTIVE;        /* all ranks must choose alike: times decide nothing */
  filter f = { slash ? only : NULL, slash ? slash + 1 : only, slash ? (size_t)(slash - only) : 0,
               only ? 0 : pinned_op(pc->policy, &plain->request.op[0]),
               !collective && qn__over_nothing(&plain->request.op[0], plain->request.value) };
  const bool by_time = pc->policy->demands.determinism < QN_DET_BATCH;
  const uint32_t tune = only || !by_time || collective ? QN_TUNE_OFF : pc->policy->settings.tune;
  qn__choice choice;
  bool pinned = f.pin_op != 0, known = tune != QN_TUNE_OFF && pc->tuner->lookup(pc, offers, pinned, &choice);
  bool everyone = only || pinned || known || tune == QN_TUNE_MEASURE || pc->verdict;
  *out = NULL;
  qn_status status = ask_all(pc, offers, &f, everyone, &l);
  int willing = count_willing(&l);
  /* a pinned engine that delegates a problem of its own op is not asked for what it cannot do: its part is anyone's */
  if (!status && pinned && !willing && (pc->policy->settings.any_engine || pc->depth)) {
    f.pin_op = 0;
    pinned = false;
    known = tune != QN_TUNE_OFF && pc->tuner->lookup(pc, offers, pinned, &choice);
    status = ask_all(pc, offers, &f, everyone, &l);
    willing = count_willing(&l);
  }
  if (status) goto done;
  if (!willing && needs >= 0) goto done;
  if (!willing) {
    report(pc, &l, part_no, NULL);
    const bool runs = pc->ctx && !pc->depth && !pc->draft && !pc->verdict;
    status = runs && pc->policy->settings.fallback && strcmp(pc->device->kind, "cpu")
           ? qn__fallback_part(pc, plain, out) : refused(plain, &l, only);
    goto done;
  }
  if (!(order = qn__alloc((size_t)willing * sizeof *order))) {
    status = qn__fail(QN_NO_MEMORY, "no memory to rank the engines");
    goto done;
  }
  willing = 0;
  for (int i = 0; i < l.n; i++) {
    candidate *c = &l.c[i];
    c->ns = by_time && c->answer.estimate > 0 ? c->answer.estimate : QN__UNKNOWN;
    if (!c->status) order[willing++] = c;
  }
  qn__rank(pc, order, willing);
  if (known) known = take_remembered(pc, &choice, order, willing);
  if (needs >= 0 && !holds(order[0], needs)) goto done;
  if (!known && tune == QN_TUNE_MEASURE && !pc->tuner->measured(pc, offers, pinned, order, willing, out)) {
    if (needs >= 0 && !part_holds(*out, needs)) {
      qn__part_free(*out);
      *out = NULL;
    }
    goto done;
  }
  for (int i = 0; i < willing && !chosen && (needs < 0 || holds(order[i], needs)); i++) {
    qn_prepared answer = order[i]->answer;
    status = qn__bind(pc, order[i], out);
    if (!status) {
      (*out)->ns = known && i == 0 ? choice.ns : 0;
      chosen = order[i];
      order[i]->answer = answer;                                /* for report; the part keeps the state */
    } else if (i + 1 < willing)
      qn__log(QN_LOG_WARN, "%s/%s said yes and could not be built (%s); the next is asked", order[i]->backend->name,
              order[i]->row->name, qn_last_error());
  }
  if (!chosen && needs >= 0) status = QN_OK;
  if (chosen && chosen->answer.class_ == QN_CLASS_GENERIC && !only && !pinned && !f.generic_only && !pc->verdict && !pc->draft)
    warn_of_generic(&l, chosen);
  if (chosen || needs < 0) report(pc, &l, part_no, chosen);
done:
  for (int i = 0; i < l.n; i++)
    if (&l.c[i] != chosen) qn__withdraw(&l.c[i]);
  qn__free(order);
  qn__free(l.c);
  return status;
}
