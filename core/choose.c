/* choose.c -- asks the engines for a request, and binds the best that says yes.
 *
 * Candidates are the pinned engines, if there are any. Order of choice: what the tune cache names; what is measured now, if
 * that is on; else tuned before generic, the longest answer, the backends in the order asked for, the smallest estimate, table
 * order. What breaks a demand is no candidate. When nobody takes it, everyone's reason is in the sentence. */
#include "config.h"
#include "core.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
  qn__backend *backend;
  qn_engine   *row;
  int          rank;                                /* place in the order of asking */
  const char  *variant;                             /* pinned; NULL: any */
  qn_status    status;
  qn_prepared  answer;
} candidate;

typedef struct list { candidate *c; int n, cap; } list;

/* ---- what demands forbid ------------------------------------------------------------------------------- */

static qn_status forbid(qn_refusal *r, const char *rule, const char *seen, const char *needed)
{
  memset(r, 0, sizeof *r);
  snprintf(r->rule, sizeof r->rule, "%s", rule);
  snprintf(r->seen, sizeof r->seen, "%s", seen);
  snprintf(r->needed, sizeof r->needed, "%s", needed);
  return QN_UNSUPPORTED;
}

static qn_status demanded(const qn_demands *d, qn_prepared *a)
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
    return forbid(&a->refusal, "its workspace is over the limit", seen, needed);
  }
  return QN_OK;
}

/* ---- asking -------------------------------------------------------------------------------------------------- */

static qn_status ask(const qn__asker *who, const qn_request *request, const char *variant, candidate *c)
{
  qn_request r = *request;
  qn_prepared *a = &c->answer;
  c->status = QN_OK;
  r.instance = NULL;
  if (who->ctx) c->status = qn__context_instance(who->ctx, c->backend, &r.instance);
  if (c->status) return forbid(&a->refusal, "its backend could not be opened", qn_last_error(), "");
  r.variant = variant;
  a->struct_size = sizeof *a;
  a->engine = c->row;
  a->class_ = c->row->class_;
  a->traits = c->row->traits;
  c->status = c->row->prepare(&r, a);
  if (!c->status) {
    if (!a->n_ops) a->n_ops = 1;
    if (a->n_ops > request->n_ops) {
      char seen[64];
      snprintf(seen, sizeof seen, "%u of %u ops taken", a->n_ops, request->n_ops);
      forbid(&a->refusal, "a defect of the engine: it took more than it was offered", seen, "");
      c->status = QN_INTERNAL;
    } else c->status = demanded(&who->terms->demands, a);
    if (c->status && c->row->release) c->row->release(a);
  } else if (!*a->refusal.rule) {
    const char *said = c->status == QN_UNSUPPORTED ? "it gave no reason" : qn_last_error();
    forbid(&a->refusal, *said ? said : qn_status_text(c->status), "", "");
  }
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

/* Which engines a pass may ask: those that `only` names, those that are pinned, or all. */
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

/* A tuned engine that takes everything cannot lose to a later backend's. */
static bool cannot_lose(const qn_request *request, const list *l)
{
  for (int i = 0; i < l->n; i++)
    if (!l->c[i].status && l->c[i].answer.class_ == QN_CLASS_TUNED && l->c[i].answer.n_ops == request->n_ops) return true;
  return false;
}

/* everyone: also those backends that cannot win by what they answer alone. */
static qn_status ask_all(const qn__asker *who, const qn_request *request, const filter *f, bool everyone, list *l)
{
  qn_status status = QN_OK;
  bool found = false;
  for (int i = 0; i < who->terms->n_backends && !status && (everyone || !cannot_lose(request, l)); i++) {
    qn__backend *b = who->terms->backend[i];
    found = found || (f->backend && strlen(b->name) == f->backend_len && !strncmp(b->name, f->backend, f->backend_len));
    status = ask_backend(who, request, f, b, l);
  }
  if (!status && f->backend && !found) {                        /* a delegation may name a backend that is not enabled */
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
  double ea = a->answer.estimate > 0 ? a->answer.estimate : 1e300, eb = b->answer.estimate > 0 ? b->answer.estimate : 1e300;
  if (a->answer.class_ != b->answer.class_) return a->answer.class_ < b->answer.class_ ? -1 : 1;
  if (a->answer.n_ops != b->answer.n_ops) return a->answer.n_ops > b->answer.n_ops ? -1 : 1;
  if (a->backend != b->backend) return a->rank < b->rank ? -1 : 1;
  if (ea != eb) return ea < eb ? -1 : 1;
  return a->rank < b->rank ? -1 : 1;
}

/* One block for the copy of a request: nodes, values, roles and attributes. */
static qn_status copy_request(qn_part *p, const qn_request *r)
{
  size_t bytes = r->n_ops * sizeof(qn_node) + r->n_values * sizeof(qn_value);
  for (uint32_t i = 0; i < r->n_ops; i++) {
    const qn_op_info *op = qn_op_find(r->op[i].op);
    bytes += (size_t)op->attr_bytes + 8;
    bytes += sizeof(int32_t) * ((size_t)r->op[i].n_roles + 1 + (size_t)r->op[i].first[r->op[i].n_roles]);
  }
  char *at = p->memory = qn__alloc(bytes + 8 * r->n_ops + 16);
  if (!at) return qn__fail(QN_NO_MEMORY, "no memory for a part of the plan");
  qn_node *node = (qn_node *)at;
  at += r->n_ops * sizeof *node;
  memcpy(node, r->op, r->n_ops * sizeof *node);
  p->request = *r;
  p->request.op = node;
  p->request.value = memcpy(at, r->value, r->n_values * sizeof(qn_value));
  at += r->n_values * sizeof(qn_value);
  for (uint32_t i = 0; i < r->n_ops; i++) {
    size_t attr = qn_op_find(node[i].op)->attr_bytes;
    if (attr) node[i].attr = memcpy(at, node[i].attr, attr);
    at += (attr + 7) / 8 * 8;
  }
  for (uint32_t i = 0; i < r->n_ops; i++) {
    size_t n = node[i].n_roles + 1, args = (size_t)node[i].first[node[i].n_roles];
    node[i].first = memcpy(at, node[i].first, n * sizeof(int32_t));
    at += n * sizeof(int32_t);
    node[i].arg = memcpy(at, node[i].arg, args * sizeof(int32_t));
    at += args * sizeof(int32_t);
  }
  return QN_OK;
}

uint32_t qn__values_of(const qn_request *r, uint32_t n_ops)
{
  int32_t most = -1;
  for (uint32_t i = 0; i < n_ops; i++)
    for (int32_t a = 0; a < r->op[i].first[r->op[i].n_roles]; a++)
      if (r->op[i].arg[a] > most) most = r->op[i].arg[a];
  return (uint32_t)(most + 1);
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
  qn_status status = p ? copy_request(p, request) : qn__fail(QN_NO_MEMORY, "no memory for a part of the plan");
  if (status) {
    qn__free(p);
    return status;
  }
  p->prepared = c->answer;
  p->engine = c->row;
  p->backend = c->backend;
  p->request.instance = who->ctx && c->backend->instance >= 0 ? who->ctx->instance[c->backend->instance] : NULL;
  c->answer.engine = NULL;                                      /* its state is the part's now */
  if (who->ctx && !who->depth && p->engine->build) status = p->engine->build(&p->request, &p->prepared);
  if (who->uses && c->backend->instance >= 0) *who->uses |= UINT64_C(1) << c->backend->instance;
  if (status) {
    qn__part_free(p);
    return status;
  }
  *out = p;
  return QN_OK;
}

/* The first op that is not listed yet and reads nothing that one of those makes: an anchor's producers stand behind it. */
static uint32_t next_in_order(const qn_request *r, const uint8_t *listed)
{
  for (uint32_t i = 0; i < r->n_ops; i++) {
    bool ready = !listed[i];
    for (int32_t a = 0; a < r->op[i].first[r->op[i].n_inputs] && ready; a++) {
      int32_t maker = r->value[r->op[i].arg[a]].producer;
      ready = maker < 0 || maker >= (int32_t)r->n_ops || listed[maker];
    }
    if (ready) return i;
  }
  return 0;
}

/* The first n_ops of a request as a graph of its own, its values numbered anew. A host scalar of which only is known that
 * it is neither 0 nor 1 stands as 2. */
static qn_status graph_of(const qn_request *r, const double *known, qn_graph **out)
{
  int32_t args = 0, n = 0, taken = (int32_t)r->n_ops;
  for (uint32_t i = 0; i < r->n_ops; i++) args += r->op[i].first[r->op[i].n_roles];
  size_t bytes = r->n_values * (sizeof(qn_value) + sizeof(double)) + r->n_ops * sizeof(qn_node) +
                 (2 * r->n_values + (size_t)args) * sizeof(int32_t) + r->n_ops;
  char *block = qn__alloc(bytes);
  if (!block) return qn__fail(QN_NO_MEMORY, "no memory to print a problem");
  qn_value *value = (qn_value *)block;
  double *literal = (double *)(value + r->n_values);
  qn_node *node = (qn_node *)(literal + r->n_values);
  int32_t *pointer = (int32_t *)(node + r->n_ops), *number = pointer + r->n_values, *arg = number + r->n_values;
  uint8_t *listed = (uint8_t *)(arg + args);
  qn_graph_view view = { .struct_size = sizeof view, .n_ops = r->n_ops, .op = node, .value = value, .literal = literal,
                         .pointer = pointer };
  memset(number, 0xff, r->n_values * sizeof *number);
  for (uint32_t i = 0; i < r->n_ops; i++) {
    uint32_t k = next_in_order(r, listed);
    listed[k] = 1;
    node[i] = r->op[k];
    node[i].arg = arg;
    for (int32_t a = 0; a < r->op[k].first[r->op[k].n_roles]; a++) {
      int32_t v = r->op[k].arg[a];
      if (number[v] < 0) {
        literal[n] = known ? known[v] : r->value[v].scalar == QN_SCALAR_ZERO ? 0 : r->value[v].scalar == QN_SCALAR_ONE ? 1 : 2;
        value[n] = r->value[v];
        number[v] = n++;
      }
      *arg++ = number[v];
    }
  }
  view.n_values = (uint32_t)n;
  for (int32_t v = 0; v < n; v++) {
    value[v].over = value[v].over >= 0 ? number[value[v].over] : -1;
    if (value[v].flags & QN_VALUE_HOST) {
      value[v].dtype = QN_F64;
      value[v].align = 8;
    } else if (value[v].producer < 0 || value[v].producer >= taken) pointer[view.n_ins++] = v;
  }
  view.n_pointers = view.n_ins;
  for (int32_t v = 0; v < n; v++)
    if (value[v].producer >= 0 && value[v].producer < taken &&
        (value[v].flags & QN_VALUE_ESCAPE || value[v].last_user < 0 || value[v].last_user >= taken))
      pointer[view.n_pointers++] = v;
  qn_status status = qn_graph_make(&view, out);
  qn__free(block);
  return status;
}

void qn__request_print(qn_text *t, const qn_request *r, const double *literal)
{
  qn_graph *g;
  if (graph_of(r, literal, &g)) {
    qn__text_add(t, "%s and what follows", qn_op_find(r->op[0].op)->name);
    return;
  }
  size_t length = qn_graph_print(g, NULL, 0);
  char *text = qn__alloc(length + 1);
  if (text) qn_graph_print(g, text, length + 1);
  else t->failed = true;
  for (char *line = text, *rest = text; text && (line = strsep(&rest, "\n"));)
    if (*line) qn__text_add(t, "%s%s", line == text ? "" : " | ", line);
  qn__free(text);
  qn_graph_destroy(g);
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
  qn__request_print(&problem, request, who->literal);
  for (int i = 0; i < l->n; i++) {
    qn__text_add(&t, i ? "; " : "");
    print_refusal(&t, &l->c[i]);
    if (l->c[i].status == QN_NO_MEMORY) status = QN_NO_MEMORY;  /* it might have said yes */
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
  qn__request_print(&problem, request, who->literal);
  for (int i = 0; i < l->n && who->verdict; i++) {
    const candidate *c = &l->c[i];
    qn_verdict v = { c->backend->name, c->row->name, part_no, c == chosen, c->status, &c->answer, problem.s ? problem.s : "" };
    who->verdict(who->user, &v);
  }
  qn__free(problem.s);
}

static bool over_nothing(const qn_request *r)
{
  for (int32_t a = 0; a < r->op[0].first[r->op[0].n_inputs]; a++) {
    const qn_value *v = &r->value[r->op[0].arg[a]];
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

/* ---- what was measured ------------------------------------------------------------------------------------------ */

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

/* Puts the remembered engine first. A name that is no longer here, or of another version, is ignored. */
static bool take_remembered(const qn__asker *who, const qn_request *request, const qn__choice *remembered, candidate **order, int n)
{
  qn__choice choice = *remembered;
  char *slash = strchr(choice.name, '/'), *colon = slash ? strchr(slash, ':') : NULL;
  if (!slash) return false;
  *slash = 0;
  if (colon) *colon = 0;
  for (int i = 0; i < n; i++) {
    candidate *c = order[i];
    if (strcmp(c->backend->name, choice.name) || strcmp(c->row->name, slash + 1) || strcmp(c->backend->table->version, choice.version)) continue;
    const char *variant = colon ? variant_of(c, colon + 1) : NULL;
    if (colon && !variant) return false;
    if (variant) {
      candidate other = { c->backend, c->row, c->rank, c->variant, QN_OK, {0} };
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
  return who->ctx && !who->depth && !who->verdict && who->ctx->dev->ops->event_elapsed && !qn__context_capturing(who->ctx);
}

/* Builds every candidate that takes as many ops as the first, with each of its variants, and keeps the fastest. */
static qn_status measured(const qn__asker *who, const qn_request *request, bool pinned, candidate **order, int n, qn_part **out)
{
  int most = 0, n_parts = 0, best = -1;
  for (int i = 0; i < n; i++) {
    const char *const *v = order[i]->row->variants;
    for (most++; v && *v; v++) most++;
  }
  qn_part **part = qn__alloc((size_t)most * sizeof *part);
  if (!part) return qn__fail(QN_NO_MEMORY, "no memory to measure");
  uint32_t taken = order[0]->answer.n_ops;
  for (int i = 0; i < n; i++) {
    const char *const pin[] = { order[i]->variant, NULL }, *const *v = *pin ? pin : order[i]->row->variants;
    if (order[i]->answer.n_ops != taken) continue;
    for (int k = 0; v ? v[k] != NULL : k < 1; k++) {
      candidate c = { order[i]->backend, order[i]->row, order[i]->rank, *pin, QN_OK, {0} };
      if (ask(who, request, v ? v[k] : NULL, &c)) continue;
      if (c.answer.n_ops != taken) withdraw(&c);
      else if (!bind(who, request, &c, &part[n_parts])) n_parts++;
    }
  }
  qn_status status = n_parts > 1 ? qn__tune_measure(who, part, n_parts, pinned, &best) : n_parts ? QN_OK : QN_UNSUPPORTED;
  if (n_parts == 1) best = 0;
  for (int i = 0; i < n_parts; i++)
    if (i == best) *out = part[i];
    else qn__part_free(part[i]);
  qn__free(part);
  return status;
}

qn_status qn__part_choose(const qn__asker *who, const qn_request *request, const char *only, int part_no, qn_part **out)
{
  list l = {0};
  candidate **order = NULL;
  const candidate *chosen = NULL;
  const char *slash = only ? strchr(only, '/') : NULL;
  filter f = { slash ? only : NULL, slash ? slash + 1 : only, slash ? (size_t)(slash - only) : 0,
               only ? 0 : pinned_op(who->terms, &request->op[0]), over_nothing(request) };
  const uint32_t tune = only ? QN_TUNE_OFF : who->terms->settings.tune;
  qn__choice choice;
  bool pinned = f.pin_op != 0, known = tune != QN_TUNE_OFF && qn__tune_lookup(who, request, pinned, &choice);
  bool everyone = only || pinned || known || tune == QN_TUNE_MEASURE || who->verdict;
  int willing = 0;
  qn_status status = ask_all(who, request, &f, everyone, &l);
  for (int i = 0; i < l.n; i++) willing += !l.c[i].status;
  if (!status && pinned && !willing && who->terms->settings.any_engine) {
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
  for (int i = 0; i < l.n; i++)
    if (!l.c[i].status) order[willing++] = &l.c[i];
  qsort(order, (size_t)willing, sizeof *order, better);
  if (known) known = take_remembered(who, request, &choice, order, willing);
  if (!known && tune == QN_TUNE_MEASURE && can_measure(who) && !measured(who, request, pinned, order, willing, out))
    goto done;
  for (int i = 0; i < willing && !chosen; i++) {
    qn_prepared answer = order[i]->answer;
    status = bind(who, request, order[i], out);
    if (!status) {
      chosen = order[i];
      order[i]->answer = answer;                                /* for tell; the state stays the part's */
    } else if (i + 1 < willing)
      qn__log(QN_LOG_WARN, "%s/%s said yes and could not be built (%s); the next is asked", order[i]->backend->name,
              order[i]->row->name, qn_last_error());
  }
  tell(who, request, &l, part_no, chosen);
done:
  for (int i = 0; i < l.n; i++)
    if (!l.c[i].status && &l.c[i] != chosen && l.c[i].answer.engine && l.c[i].row->release) l.c[i].row->release(&l.c[i].answer);
  qn__free(order);
  qn__free(l.c);
  return status;
}
