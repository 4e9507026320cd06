/* choose.c -- asks the engines about a request and binds the best one that accepts.
 *
 * Candidates are the pinned engines, if any, else all; an engine that violates a demand is not one. Order of choice: the tune
 * cache's entry; a measurement, if enabled; else tuned before generic, the most ops taken, the backends in the order
 * asked for, the smallest estimate, table order. From `deterministic=batch` on, times decide nothing, measured or estimated: they
 * depend on the batch and on the device's size, and another engine would give other bits. If no engine accepts, the error
 * lists every engine's reason. */
#include "config.h"
#include "core.h"
#include <quern/kit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
  qn__backend *backend;
  qn_engine   *row;
  int          rank;                                /* position in the order of asking */
  const char  *variant;                             /* pinned; NULL: any */
  double       ns;                                  /* the estimate, if estimates may decide */
  uint32_t     offered;                             /* number of the request's ops offered; 0: all */
  int32_t      threads;                             /* that it was asked for; fewer than demanded if the workspace is limited */
  bool         demand;                              /* it was ruled out by a demand, not by itself */
  qn_status    status;
  qn_prepared  answer;
} candidate;

typedef struct list { candidate *c; int n, cap; } list;

/* ---- demands ------------------------------------------------------------------------------------------- */

static qn_status forbid(qn_refusal *r, const char *rule, const char *seen, const char *needed)
{
  memset(r, 0, sizeof *r);
  snprintf(r->rule, sizeof r->rule, "%s", rule);
  snprintf(r->seen, sizeof r->seen, "%s", seen);
  snprintf(r->needed, sizeof r->needed, "%s", needed);
  return QN_UNSUPPORTED;
}

/* *fewer: with fewer threads it might do. */
static qn_status demanded(const qn_demands *d, qn_prepared *a, bool *fewer)
{
  static const char *const math[] = { "math strict", "math f32", "math tf32", "math fast" };
  static const uint64_t rung[] = { 0, QN_TRAIT_DETERMINISTIC, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT,
                                   QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE };
  static const char *const name[] = { "", "deterministic 1", "deterministic batch", "deterministic portable" };
  char seen[64], needed[64];
  uint32_t least = a->traits & (QN_TRAIT_REDUCED | QN_TRAIT_FINITE_ONLY) ? QN_MATH_FAST : a->math;
  if (least > QN_MATH_FAST) least = QN_MATH_FAST;
  if (least > d->math) return forbid(&a->refusal, "the math in force does not allow it", math[d->math], math[least]);
  if (rung[d->determinism] & ~a->traits)
    return forbid(&a->refusal, "it does not promise the determinism in force", "", name[d->determinism]);
  if (a->workspace > d->workspace_limit) {
    snprintf(seen, sizeof seen, "a limit of %llu bytes", (unsigned long long)d->workspace_limit);
    snprintf(needed, sizeof needed, "%llu bytes", (unsigned long long)a->workspace);
    *fewer = d->threads > 1;
    return forbid(&a->refusal, "its workspace is over the limit", seen, needed);
  }
  return QN_OK;
}

/* ---- asking -------------------------------------------------------------------------------------------------- */

static qn_request offered(const qn_request *request, const candidate *c)
{
  qn_request r = *request;
  if (c->offered) r.n_ops = c->offered, r.n_values = qn__values_of(request, c->offered);
  return r;
}

/* Limit on an engine's answer: sums of this many bytes do not overflow. */
#define MOST_BYTES (UINT64_C(1) << 56)
static qn_status sound(qn_prepared *a, uint32_t offered)
{
  char seen[64];
  if (a->n_ops > offered) {
    snprintf(seen, sizeof seen, "%u of %u ops taken", a->n_ops, offered);
    forbid(&a->refusal, "a defect of the engine: it took more than it was offered", seen, "");
  } else if (a->workspace > MOST_BYTES || a->counters > MOST_BYTES) {
    snprintf(seen, sizeof seen, "workspace of %llu bytes, counters of %llu", (unsigned long long)a->workspace,
             (unsigned long long)a->counters);
    forbid(&a->refusal, "a defect of the engine: it wants more memory than there can be", seen, "");
  } else if (a->class_ > QN_CLASS_HOST || a->math > QN_MATH_FAST) {
    snprintf(seen, sizeof seen, "class %u, math %u", (unsigned)a->class_, (unsigned)a->math);
    forbid(&a->refusal, "a defect of the engine: its class or math is none", seen, "");
  } else return QN_OK;
  return QN_INTERNAL;
}

static qn_demands demands_of(const qn__asker *who, const candidate *c)
{
  qn_demands d = who->terms->demands;
  if (c->threads) d.threads = c->threads;
  return d;
}

/* Asks once, for c->threads threads; true: fewer might do. */
static bool ask_once(const qn__asker *who, const qn_request *request, const char *variant, candidate *c)
{
  const qn_demands demands = demands_of(who, c);
  qn_request r = offered(request, c);
  qn_prepared *a = &c->answer;
  qn__asker inner = *who;
  bool fewer = false;
  c->status = QN_OK;
  c->demand = false;
  memset(a, 0, sizeof *a);
  inner.threads = demands.threads;
  r.core = &inner;
  r.demands = &demands;
  r.instance = NULL;
  if (who->ctx) c->status = qn__context_instance(who->ctx, c->backend, &r.instance);
  if (c->status) {
    forbid(&a->refusal, "its backend could not be opened", qn_last_error(), "");
    return false;
  }
  r.variant = variant;
  a->struct_size = sizeof *a;
  a->engine = c->row;
  a->class_ = c->row->class_;
  a->traits = c->row->traits;
  c->status = c->row->prepare(&r, a);
  if (!c->status) {
    if (!a->n_ops) a->n_ops = 1;
    if (!(c->status = sound(a, r.n_ops))) c->demand = (c->status = demanded(&demands, a, &fewer)) != QN_OK;
    if (c->status && c->row->release) c->row->release(a);
  } else if (!*a->refusal.rule) {
    const char *said = c->status == QN_UNSUPPORTED ? "it gave no reason" : qn_last_error();
    forbid(&a->refusal, *said ? said : qn_status_text(c->status), "", "");
  } else c->demand = strstr(a->refusal.rule, "workspace") != NULL;              /* some engines read the limit themselves */
  return fewer;
}

/* An engine whose workspace is over the limit is asked again for half the threads, down to one. */
static qn_status ask(const qn__asker *who, const qn_request *request, const char *variant, candidate *c)
{
  c->threads = who->threads ? who->threads : who->terms->demands.threads;
  while (ask_once(who, request, variant, c)) c->threads /= 2;
  return c->status;
}

static candidate *add(list *l)
{
  if (l->n == l->cap) {
    int cap = l->cap ? 2 * l->cap : 8;
    candidate *grown = qn__realloc(l->c, (size_t)l->n * sizeof *grown, (size_t)cap * sizeof *grown);
    if (!grown) return NULL;
    l->c = grown;
    l->cap = cap;
  }
  memset(&l->c[l->n], 0, sizeof l->c[l->n]);
  return &l->c[l->n++];
}

/* The engines to ask: those that `only` names, the pinned ones, or all. */
typedef struct filter { const char *backend, *engine; size_t backend_len; uint32_t pin_op; bool generic_only; } filter;

static const qn__pin *pin_for(const qn__terms *t, const filter *f, const qn__backend *b, const qn_engine *row)
{
  for (int i = 0; i < t->settings.n_pins; i++) {
    const qn__pin *p = &t->settings.pin[i];
    if (p->op == f->pin_op && !strcmp(p->engine, row->name) && (!p->backend || !strcmp(p->backend, b->name))) return p;
  }
  return NULL;
}

static qn_status ask_backend(const qn__asker *who, const qn_request *request, const filter *f, qn__backend *b, list *l)
{
  const qn_op_info *op = qn_op_find(request->op[0].op);
  int at = (int)(op - qn__ops);
  if (f->backend && (strlen(b->name) != f->backend_len || strncmp(b->name, f->backend, f->backend_len))) return QN_OK;
  for (int i = b->first[at]; i < b->first[at + 1]; i++) {
    qn_engine *row = &b->engine[b->by_op[i]];
    const qn__pin *pin = NULL;
    if (f->engine && strcmp(f->engine, row->name)) continue;
    if (f->pin_op && !(pin = pin_for(who->terms, f, b, row))) continue;
    candidate *c = add(l);
    if (!c) return qn__fail(QN_NO_MEMORY, "no memory to ask the engines");
    c->backend = b;
    c->row = row;
    c->rank = l->n - 1;
    c->variant = pin ? pin->variant : NULL;
    if (f->generic_only && row->class_ != QN_CLASS_GENERIC)
      c->status = forbid(&c->answer.refusal, "sums over nothing go to the generic engine", "a zero dim", "");
    else ask(who, request, c->variant, c);
  }
  return QN_OK;
}

/* A tuned engine that takes all ops cannot lose to a later backend's. */
static bool cannot_lose(const qn_request *request, const list *l)
{
  for (int i = 0; i < l->n; i++)
    if (!l->c[i].status && l->c[i].answer.class_ == QN_CLASS_TUNED && l->c[i].answer.n_ops == request->n_ops) return true;
  return false;
}

/* everyone: ask also the backends whose answers could not win. */
static qn_status ask_all(const qn__asker *who, const qn_request *request, const filter *f, bool everyone, list *l)
{
  qn_status status = QN_OK;
  bool found = false;
  for (int i = 0; i < who->terms->n_backends && !status && (everyone || !cannot_lose(request, l)); i++) {
    qn__backend *b = who->terms->backend[i];
    found = found || (f->backend && strlen(b->name) == f->backend_len && !strncmp(b->name, f->backend, f->backend_len));
    status = ask_backend(who, request, f, b, l);
  }
  if (!status && f->backend && !found) {                        /* a delegating engine may name a backend that is not enabled */
    char name[64];
    qn__backend *b;
    snprintf(name, sizeof name, "%.*s", (int)f->backend_len, f->backend);
    status = qn__backend_get(name, &b);
    if (!status && (b->table->open || strcmp(b->table->device_kind, who->device->kind)))
      status = qn__fail(QN_UNSUPPORTED, "backend %s cannot be delegated to: it %s", name,
                        b->table->open ? "needs an instance, so it must be enabled" : "works on another device");
    if (!status) status = ask_backend(who, request, f, b, l);
  }
  return status;
}

/* ---- the choice ------------------------------------------------------------------------------------------------ */

static int better(const void *pa, const void *pb)
{
  const candidate *a = *(candidate *const *)pa, *b = *(candidate *const *)pb;
  if (a->answer.class_ != b->answer.class_) return a->answer.class_ < b->answer.class_ ? -1 : 1;
  if (a->answer.n_ops != b->answer.n_ops) return a->answer.n_ops > b->answer.n_ops ? -1 : 1;
  if (a->backend != b->backend) return a->rank < b->rank ? -1 : 1;
  if (a->ns != b->ns) return a->ns < b->ns ? -1 : 1;
  return a->rank < b->rank ? -1 : 1;
}

void qn__part_free(qn_part *p)
{
  if (!p) return;
  if (p->prepared.engine && p->engine->release) p->engine->release(&p->prepared);
  qn__free(p->op_of);
  qn__free(p->literal);
  qn__free(p->value_of);
  qn__free(p->memory);
  qn__free(p);
}

static qn_status bind(const qn__asker *who, const qn_request *request, candidate *c, qn_part **out)
{
  qn_part *p = qn__alloc(sizeof *p);
  const qn_request r = offered(request, c);
  qn_status status = p ? qn__request_copy(p, &r) : qn__fail(QN_NO_MEMORY, "no memory for a part of the plan");
  if (status) {
    qn__free(p);
    return status;
  }
  p->demands = demands_of(who, c);
  p->request.demands = &p->demands;
  p->prepared = c->answer;
  p->engine = c->row;
  p->backend = c->backend;
  p->request.instance = who->ctx && c->backend->instance >= 0 ? who->ctx->instance[c->backend->instance] : NULL;
  c->answer.engine = NULL;                                      /* its state belongs to the part now */
  if (who->ctx && !who->depth && p->engine->build) status = p->engine->build(&p->request, &p->prepared);
  if (who->uses && c->backend->instance >= 0) *who->uses |= UINT64_C(1) << c->backend->instance;
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

static qn_status refused(const qn__asker *who, const qn_request *request, const list *l, const char *only)
{
  qn_text t = {0}, problem = {0};
  qn_status status = QN_UNSUPPORTED;
  qn__request_print(&problem, request, who->literal, NULL);
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

static void tell(const qn__asker *who, const qn_request *request, const list *l, int part_no, const candidate *chosen)
{
  qn_text problem = {0};
  if (!who->verdict) return;
  qn__request_print(&problem, request, who->literal, NULL);
  for (int i = 0; i < l->n; i++) {
    const candidate *c = &l->c[i];
    qn_verdict v = { sizeof v, c->backend->name, c->row->name, part_no, c == chosen, c->status, &c->answer, problem.s ? problem.s : "" };
    who->verdict(who->user, &v);
  }
  qn__free(problem.s);
}

/* ---- nobody is slow unknowingly --------------------------------------------------------------------------------- */

#define LARGE 1e6                                   /* multiplications; where there are none, elements written */

static double multiplications(const qn_request *r)
{
  double n = 0;
  for (uint32_t i = 0; i < r->n_ops; i++) {
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

static void warn_of_generic(const qn__asker *who, const qn_request *request, const list *l, const candidate *chosen)
{
  const candidate *c = nearest_refusal(l);
  qn_request r = *request;
  qn_text t = {0}, problem = {0};
  for (int i = 0; i < l->n; i++)
    if (!l->c[i].status && l->c[i].row->class_ == QN_CLASS_TUNED) return;
  r.n_ops = chosen->answer.n_ops;
  r.n_values = qn__values_of(request, r.n_ops);
  const double n = multiplications(&r);
  if (!(n > LARGE) || !qn__logs(QN_LOG_WARN)) return;
  qn__request_print(&problem, &r, who->literal, NULL);
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

static uint32_t pinned_op(const qn__terms *t, const qn_node *anchor)
{
  uint32_t family = anchor->family | QN_ANCHOR_FAMILY, found = 0;
  for (int i = 0; i < t->settings.n_pins; i++) {
    if (t->settings.pin[i].op == anchor->op) return anchor->op;
    if (t->settings.pin[i].op == family) found = family;
  }
  return found;
}

/* ---- measurements ----------------------------------------------------------------------------------------------- */

static const char *variant_of(const candidate *c, const char *name)
{
  for (int v = 0; c->row->variants && c->row->variants[v]; v++)
    if (!strcmp(c->row->variants[v], name)) return c->row->variants[v];
  return NULL;
}

static void withdraw(candidate *c)
{
  if (!c->status && c->answer.engine && c->row->release) c->row->release(&c->answer);
  memset(&c->answer, 0, sizeof c->answer);
  c->status = QN_UNSUPPORTED;
}

/* Puts the remembered engine first, offered as many ops as then. Ignores an engine that is gone or of another version. */
static bool take_remembered(const qn__asker *who, const qn_request *request, const qn__choice *remembered, candidate **order, int n)
{
  qn__choice choice = *remembered;
  char *slash = strchr(choice.name, '/'), *colon = slash ? strchr(slash, ':') : NULL, *bar = slash ? strchr(slash, '|') : NULL;
  if (!slash) return false;
  const long ops = bar ? strtol(bar + 1, NULL, 10) : 0;
  if (ops < 0 || ops > (long)request->n_ops) return false;
  *slash = 0;
  if (colon) *colon = 0;
  if (bar) *bar = 0;
  for (int i = 0; i < n; i++) {
    candidate *c = order[i];
    if (strcmp(c->backend->name, choice.name) || strcmp(c->row->name, slash + 1) || strcmp(c->backend->table->version, choice.version))
      continue;
    const char *variant = colon ? variant_of(c, colon + 1) : NULL;
    if (colon && !variant) return false;
    if (variant || ops) {
      candidate other = { .backend = c->backend, .row = c->row, .rank = c->rank, .variant = c->variant, .offered = (uint32_t)ops };
      if (ask(who, request, variant, &other)) return false;
      withdraw(c);
      *c = other;
    }
    memmove(&order[1], &order[0], (size_t)i * sizeof *order);
    order[0] = c;
    return true;
  }
  return false;
}

static bool can_measure(const qn__asker *who)
{
  return who->ctx && !who->depth && !who->verdict && who->ctx->dev->ops->event_elapsed && !qn__checks(who->ctx->dev) && !qn__context_capturing(who->ctx);
}

/* Prepares and builds an engine with that variant; it competes if it takes `wanted` ops. True: it takes at least one. */
static bool compete(const qn__asker *who, const qn_request *request, const candidate *of, const char *variant, uint32_t n_ops,
                    uint32_t wanted, qn_part **part, int *n_parts)
{
  candidate c = { .backend = of->backend, .row = of->row, .rank = of->rank, .variant = of->variant, .offered = n_ops };
  if (ask(who, request, variant, &c)) return false;
  if (c.answer.n_ops == wanted && !bind(who, request, &c, &part[*n_parts])) ++*n_parts;
  else withdraw(&c);
  return true;
}

/* Offers every candidate the first n_ops of the request, builds those that take them all, each with all its variants (if none fits,
 * with its own choice), and keeps the fastest. A single one is measured only if its time is needed. */
static qn_part *fastest(const qn__asker *who, const qn_request *request, uint32_t n_ops, bool timed, candidate **order, int n)
{
  const uint32_t wanted = n_ops ? n_ops : order[0]->answer.n_ops;
  int most = 0, n_parts = 0, best = 0;
  for (int i = 0; i < n; i++) {
    const char *const *v = order[i]->row->variants;
    for (most++; v && *v; v++) most++;
  }
  qn_part **part = qn__alloc((size_t)most * sizeof *part), *kept = NULL;
  if (!part) return NULL;
  for (int i = 0; i < n; i++) {
    const char *const *v = order[i]->variant ? NULL : order[i]->row->variants;
    if (order[i]->answer.class_ == QN_CLASS_GENERIC && order[0]->answer.class_ == QN_CLASS_TUNED && multiplications(request) > LARGE)
      continue;                                                 /* it would take longer than all the others, to lose */
    bool takes = false;
    for (; v && *v; v++) takes = compete(who, request, order[i], *v, n_ops, wanted, part, &n_parts) || takes;
    if (!takes) compete(who, request, order[i], order[i]->variant, n_ops, wanted, part, &n_parts);
  }
  if (n_parts && (n_parts == 1 && !timed ? QN_OK : qn__tune_measure(who, part, n_parts, &best)) == QN_OK) kept = part[best];
  for (int i = 0; i < n_parts; i++)
    if (part[i] != kept) qn__part_free(part[i]);
  qn__free(part);
  return kept;
}

/* The time of the ops from index `from` on, planned as a graph of their own, each part by its fastest engine; 0: unknown. */
static double time_of_rest(const qn__asker *who, const qn_request *request, uint32_t from)
{
  qn__asker alone = *who;
  qn_graph *g;
  qn_part **part;
  int n;
  double ns = 0;
  uint64_t uses = 0;
  alone.timed = true;
  alone.uses = &uses;
  if (qn__request_graph(request, from, who->literal, NULL, &g)) return 0;
  if (!qn__partition(&alone, g, &part, &n)) {
    bool known = true;
    for (int i = 0; i < n; i++) {
      known = known && part[i]->ns > 0;
      ns += part[i]->ns;
      qn__part_free(part[i]);
    }
    qn__free(part);
    if (!known) ns = 0;
  }
  qn_graph_destroy(g);
  return ns;
}

/* The fastest of those that take the most ops, or one that takes fewer if its time plus that of the rest is less. The shorter
 * prefixes tried are the anchor alone and those at which some engine stops. A chain of pointwise ops is one pass over memory in any
 * case: no other split is tried. */
static qn_status measured(const qn__asker *who, const qn_request *request, bool pinned, candidate **order, int n, qn_part **out)
{
  const uint32_t most = order[0]->answer.n_ops;
  const bool splits = most > 1 && request->op[0].family != QN_FAMILY_POINTWISE;
  qn_request taken = *request;
  qn_part *best = fastest(who, request, 0, splits || who->timed, order, n);
  double least = best ? best->ns : 0;
  taken.n_ops = most;
  for (uint32_t k = 1; k < most && splits && best; k++) {
    bool tried = k == 1;
    for (int i = 0; i < n; i++) tried = tried || order[i]->answer.n_ops == k;
    qn_part *part = tried ? fastest(who, request, k, true, order, n) : NULL;
    double rest = part ? time_of_rest(who, &taken, k) : 0;
    if (rest > 0 && (part->ns + rest) * QN__NEAR_TIE < least) {
      qn_part *slower = best;
      least = part->ns + rest;
      best = part;
      part = slower;
    }
    qn__part_free(part);
  }
  if (!best) return QN_UNSUPPORTED;
  if (best->ns > 0) qn__tune_remember(who, request, best, pinned);
  *out = best;
  return QN_OK;
}

qn_status qn__part_choose(const qn__asker *who, const qn_request *request, const char *only, int part_no, qn_part **out)
{
  list l = {0};
  candidate **order = NULL;
  const candidate *chosen = NULL;
  const char *slash = only ? strchr(only, '/') : NULL;
  filter f = { slash ? only : NULL, slash ? slash + 1 : only, slash ? (size_t)(slash - only) : 0,
               only ? 0 : pinned_op(who->terms, &request->op[0]), qn__over_nothing(&request->op[0], request->value) };
  const bool by_time = who->terms->demands.determinism < QN_DET_BATCH;
  const uint32_t tune = only || !by_time ? QN_TUNE_OFF : who->terms->settings.tune;
  qn__choice choice;
  bool pinned = f.pin_op != 0, known = tune != QN_TUNE_OFF && qn__tune_lookup(who, request, pinned, &choice);
  bool everyone = only || pinned || known || tune == QN_TUNE_MEASURE || who->verdict;
  int willing = 0;
  qn_status status = ask_all(who, request, &f, everyone, &l);
  for (int i = 0; i < l.n; i++) willing += !l.c[i].status;
  /* a pinned engine that delegates a problem of its own op is not asked for what it cannot do: its part is anyone's */
  if (!status && pinned && !willing && (who->terms->settings.any_engine || who->depth)) {
    f.pin_op = 0;
    pinned = false;
    known = tune != QN_TUNE_OFF && qn__tune_lookup(who, request, pinned, &choice);
    status = ask_all(who, request, &f, everyone, &l);
    willing = 0;
    for (int i = 0; i < l.n; i++) willing += !l.c[i].status;
  }
  if (status) goto done;
  if (!willing) {
    tell(who, request, &l, part_no, NULL);
    status = who->terms->settings.fallback && who->ctx && !who->depth && !who->verdict && strcmp(who->device->kind, "cpu")
           ? qn__fallback_part(who, request, out) : refused(who, request, &l, only);
    goto done;
  }
  if (!(order = qn__alloc((size_t)willing * sizeof *order))) {
    status = qn__fail(QN_NO_MEMORY, "no memory to rank the engines");
    goto done;
  }
  willing = 0;
  for (int i = 0; i < l.n; i++) {
    candidate *c = &l.c[i];
    c->ns = by_time && c->answer.estimate > 0 ? c->answer.estimate : 1e300;
    if (!c->status) order[willing++] = c;
  }
  qsort(order, (size_t)willing, sizeof *order, better);
  if (known) known = take_remembered(who, request, &choice, order, willing);
  if (!known && tune == QN_TUNE_MEASURE && can_measure(who) && !measured(who, request, pinned, order, willing, out))
    goto done;
  for (int i = 0; i < willing && !chosen; i++) {
    qn_prepared answer = order[i]->answer;
    status = bind(who, request, order[i], out);
    if (!status) {
      (*out)->ns = known && i == 0 ? choice.ns : 0;
      chosen = order[i];
      order[i]->answer = answer;                                /* for tell; the part keeps the state */
    } else if (i + 1 < willing)
      qn__log(QN_LOG_WARN, "%s/%s said yes and could not be built (%s); the next is asked", order[i]->backend->name,
              order[i]->row->name, qn_last_error());
  }
  if (chosen && chosen->answer.class_ == QN_CLASS_GENERIC && !only && !pinned && !f.generic_only && !who->verdict)
    warn_of_generic(who, request, &l, chosen);
  tell(who, request, &l, part_no, chosen);
done:
  for (int i = 0; i < l.n; i++)
    if (!l.c[i].status && &l.c[i] != chosen && l.c[i].answer.engine && l.c[i].row->release) l.c[i].row->release(&l.c[i].answer);
  qn__free(order);
  qn__free(l.c);
  return status;
}
