/* plan.c -- a graph bound to engines: where its tensors are, workspace with overlapped lifetimes, execution. */
#include "config.h"
#include "core.h"
#include <quern/kit.h>
#include <stdlib.h>
#include <string.h>

/* ---- workspace: blocks share memory if every step that uses one is done before any that uses the other begins ---- */

typedef struct block {
  uint64_t bytes, offset;
  int32_t  last[QN__LANES], since[QN__LANES];       /* of each lane: its last step that uses it; the last that is done before any does */
  bool     used;
} block;

static void use_block(block *b, const qn_plan *p, uint32_t s)
{
  const qn__step *step = &p->step[s];
  for (int l = 0; l < QN__LANES; l++) {
    if (!b->used) b->last[l] = -1;
    if (!b->used || step->before[l] < b->since[l]) b->since[l] = step->before[l];
  }
  b->last[step->lane] = (int32_t)s;
  b->used = true;
}

static bool is_done(const block *a, const block *before, uint32_t lanes)
{
  uint32_t l = 0;
  while (l < lanes && a->last[l] <= before->since[l]) l++;
  return l == lanes;
}

static int larger(const void *a, const void *b)
{
  const block *x = *(block *const *)a, *y = *(block *const *)b;
  return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : (x < y ? -1 : x > y);
}

/* First fit, largest first: each at the lowest offset free of the blocks already placed. */
static uint64_t place_blocks(block **by_size, int n, uint32_t lanes)
{
  uint64_t total = 0;
  qsort(by_size, (size_t)n, sizeof *by_size, larger);
  for (int i = 0; i < n; i++) {
    block *b = by_size[i];
    b->offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (int k = 0; k < i; k++) {
        const block *o = by_size[k];
        if (o->offset >= b->offset + b->bytes || b->offset >= o->offset + o->bytes || is_done(o, b, lanes) || is_done(b, o, lanes))
          continue;
        b->offset = o->offset + o->bytes;
        moved = true;
      }
    }
    if (b->offset + b->bytes > total) total = b->offset + b->bytes;
  }
  return total;
}

/* Places all blocks that are neither the caller's nor literals: intermediates by their graph index (at[]), each step's scratch, each
 * lane's counters. */
static qn_status lay_out(qn_plan *p, const int32_t *pointer_of, uint64_t *at)
{
  uint32_t n_values = p->graph->view.n_values, n = n_values + p->n_steps;
  block *b = qn__alloc((n + 1) * sizeof *b), **order = qn__alloc((n + 1) * sizeof *order);
  uint64_t counters[QN__LANES] = { 0 };
  int used = 0;
  if (!b || !order) {
    qn__free(b);
    qn__free(order);
    return qn__fail(QN_NO_MEMORY, "no memory for a plan");
  }
  for (uint32_t s = 0; s < p->n_steps; s++) {
    const qn_part *part = p->step[s].part;
    for (uint32_t v = 0; v < part->request.n_values; v++) {
      int32_t g = qn__place_of(p, part, v);
      if (pointer_of[g] >= 0 || p->graph->view.value[g].flags & QN_VALUE_HOST || !qn__in_memory(part, v)) continue;
      use_block(&b[g], p, s);
      b[g].bytes = qn__round_up((uint64_t)qn_extent_bytes(&p->graph->view.value[g]));
    }
    b[n_values + s].bytes = qn__round_up(part->prepared.workspace);
    use_block(&b[n_values + s], p, s);
    if (part->prepared.counters > counters[p->step[s].lane]) counters[p->step[s].lane] = part->prepared.counters;
  }
  p->counters = 0;
  for (int l = 0; l < QN__LANES; l++) {
    const uint64_t begin = counters[l] ? qn__round_up(p->counters) : 0;
    if (counters[l]) p->counters = begin + counters[l];
    counters[l] = begin;
  }
  for (uint32_t i = 0; i < n; i++)
    if (b[i].used && b[i].bytes) order[used++] = &b[i];
  p->workspace = place_blocks(order, used, p->n_lanes);
  for (uint32_t i = 0; i < n_values; i++) at[i] = b[i].offset;
  for (uint32_t s = 0; s < p->n_steps; s++) {
    p->step[s].workspace = b[n_values + s].offset;
    p->step[s].counters = counters[p->step[s].lane];
  }
  qn__free(b);
  qn__free(order);
  return QN_OK;
}

static void log_plan(const qn_plan *p);

/* ---- making ---------------------------------------------------------------------------------------------------- */

static qn_status place_values(qn_plan *p, qn__step *step, const int32_t *pointer_of, const uint64_t *at)
{
  const qn_part *part = step->part;
  step->place = qn__alloc((part->request.n_values + 1) * sizeof *step->place);
  if (!step->place) return qn__fail(QN_NO_MEMORY, "no memory for a plan");
  step->direct = part->request.n_values == p->n_pointers;
  for (uint32_t v = 0; v < part->request.n_values; v++) {
    int32_t g = qn__place_of(p, part, v);
    const uint64_t offset = g == part->value_of[v] ? 0
                          : (uint64_t)p->views->offset[part->value_of[v]] * qn_dtype_bytes(p->graph->view.value[g].dtype);
    qn__place *place = &step->place[v];
    if (part->use[v] == QN_USE_NONE) *place = (qn__place){ QN_PLACE_NONE, 0, 0 };
    else if (pointer_of[g] >= 0) *place = (qn__place){ QN_PLACE_POINTER, pointer_of[g], offset };
    else if (p->graph->view.value[g].flags & QN_VALUE_HOST) *place = (qn__place){ QN_PLACE_LITERAL, g, 0 };
    else if (qn__in_memory(part, v)) *place = (qn__place){ QN_PLACE_WORKSPACE, 0, at[g] + offset };
    step->direct = step->direct && place->kind == QN_PLACE_POINTER && place->index == (int32_t)v && !place->offset;
  }
  if (!step->direct && part->request.n_values > QN__MANY && part->request.n_values * sizeof(void *) > p->scratch)
    p->scratch = part->request.n_values * sizeof(void *);
  return QN_OK;
}

static qn_status fill_plan(qn_plan *p)
{
  const qn_graph_view *g = &p->graph->view;
  int32_t *pointer_of = qn__alloc((g->n_values + 1) * sizeof *pointer_of);
  uint64_t *at = qn__alloc((g->n_values + 1) * sizeof *at);
  p->bounds = qn__alloc((g->n_pointers + 1) * sizeof *p->bounds);
  p->literal = qn__alloc((g->n_values + 1) * sizeof *p->literal);
  qn_status status = pointer_of && at && p->bounds && p->literal ? QN_OK : qn__fail(QN_NO_MEMORY, "no memory for a plan");
  if (status) goto done;
  memset(pointer_of, 0xff, g->n_values * sizeof *pointer_of);
  p->n_pointers = g->n_pointers;
  p->n_ins = g->n_ins;
  for (uint32_t i = 0; i < g->n_pointers; i++) pointer_of[g->pointer[i]] = (int32_t)i;
  for (uint32_t i = 0; i < g->n_pointers; i++) {
    const qn_value *v = &g->value[g->pointer[i]];
    qn__bounds *b = &p->bounds[i];
    b->mask = v->align ? v->align - 1 : 0;
    p->mask |= b->mask;
    b->mate = i;
    if (!(v->flags & QN_VALUE_HOST)) b->bytes = (uint64_t)qn_extent_bytes(v);
    b->null = b->bytes || v->flags & QN_VALUE_HOST ? UINT64_C(1) << 63 : 0;
    if (v->over >= 0 && b->bytes) {
      p->mates = true;
      b->mate = (uint32_t)pointer_of[v->over];
      p->bounds[b->mate].bytes = 0;
    }
  }
  for (uint32_t i = 0; i < g->n_values; i++)
    if (g->value[i].flags & QN_VALUE_HOST) qn_store_f64(&p->literal[i], g->value[i].dtype, g->literal[i]);
  if (p->n_pointers > QN__MANY) p->scratch = p->n_pointers * sizeof(qn__range);
  for (uint32_t s = 0; s < p->n_steps; s++) {
    uint64_t staging = qn__fallback_staging(p->step[s].part);
    if (staging > p->staging) p->staging = staging;
  }
  if (!(status = qn__lanes_assign(p))) status = lay_out(p, pointer_of, at);
  if (!status && p->n_lanes > 1 && p->workspace > p->policy->demands.workspace_limit) {  /* they need more */
    qn__lanes_one(p);
    status = lay_out(p, pointer_of, at);
  }
  for (uint32_t s = 0; s < p->n_steps && !status; s++) status = place_values(p, &p->step[s], pointer_of, at);
done:
  qn__free(pointer_of);
  qn__free(at);
  return status;
}

/* Binds the plan to parts; step NULL: there was no memory, and the caller keeps them. */
static qn_status set_steps(qn_plan *p, qn_part *const *part, int n)
{
  if (!(p->step = qn__alloc((size_t)(n + 1) * sizeof *p->step))) return qn__fail(QN_NO_MEMORY, "no memory for a plan");
  p->n_steps = (uint32_t)n;
  p->ranks = -1;
  for (int i = 0; i < n; i++)
    if (part[i]->request.op[0].family == QN_FAMILY_COLLECTIVE) p->ranks = p->policy->demands.ranks;
  for (int i = 0; i < n; i++)
    p->step[i] = (qn__step){ .run = part[i]->engine->run, .prepared = &part[i]->prepared, .part = part[i],
                             .instance = part[i]->backend->instance };
  return fill_plan(p);
}

static void free_steps(qn_plan *p)
{
  for (uint32_t s = 0; s < p->n_steps; s++) qn__free(p->step[s].place);
  qn__free(p->step);
  qn__free(p->bounds);
  qn__free(p->literal);
}

static qn_plan *new_plan(void)
{
  qn_plan *p = qn__object_new(QN_OBJECT_PLAN, sizeof *p);
  if (p) atomic_init(&p->refs, 1);
  else qn__fail(QN_NO_MEMORY, "no memory for a plan");
  return p;
}

void qn__plan_log(const qn__planning *pc, const qn_device_ops *ops, const qn_graph *g, qn_part *const *part, int n, qn__views *views)
{
  qn__device dev = { .ops = ops, .desc = *pc->device };
  qn_plan p = { .dev = &dev, .policy = pc->policy, .graph = (qn_graph *)(uintptr_t)g, .views = views };
  if (!qn__logs(QN_LOG_PLAN)) return;
  if (!set_steps(&p, part, n)) log_plan(&p);
  free_steps(&p);
}

void qn__plan_release(qn_plan *p)
{
  if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
  for (uint32_t s = 0; s < p->n_steps; s++) {
    for (qn__wrapper *w = p->step[s].wrapper, *below; w; w = below) {
      below = w->below;
      w->free(w);
    }
    qn__part_free(p->step[s].part);
  }
  free_steps(p);
  qn_graph_destroy(p->graph);
  qn__views_free(p->views);
  qn__free(p->why);
  qn__free(p->key);
  p->dev = NULL;
  qn__object_free(QN_OBJECT_PLAN, p);
}

qn_status qn__plan_failed(qn_status status, qn_plan **out)
{
  qn_plan *p = new_plan();
  if (!p) return QN_NO_MEMORY;
  p->status = status;
  if (!(p->why = qn__strdup(qn_last_error()))) {
    qn__object_free(QN_OBJECT_PLAN, p);
    return qn__fail(QN_NO_MEMORY, "no memory for a plan");
  }
  *out = p;
  return QN_OK;
}

qn_status qn__plan_make(qn_context *ctx, const qn__tuner *tuner, qn_graph *g, qn_plan **out)
{
  qn_plan *p = new_plan();
  qn_part **part = NULL;
  uint64_t saved, uses = 0;
  int n = 0;
  qn_status status;
  if (!p) {
    qn_graph_destroy(g);
    return QN_NO_MEMORY;
  }
  p->dev = ctx->dev;
  p->policy = ctx->policy;
  p->made_for = ctx->policy->demands.threads;
  p->graph = g;
  qn__planning pc = { .device = &ctx->dev->desc, .policy = ctx->policy, .ctx = ctx, .uses = &uses, .tuner = tuner };
  if (qn__context_capturing(ctx)) {
    status = qn__fail(QN_NOT_READY, "a new problem cannot be planned while a recording captures; run the step once first");
    goto fail;
  }
  if ((status = qn__enter(ctx->dev, &saved))) goto fail;
  tuner->layouts(&pc, g);
  status = qn__partition(&pc, g, &part, &n, &p->views);
  qn__leave(ctx->dev, saved);
  if (status) goto fail;
  p->instances = uses;
  if ((status = set_steps(p, part, n))) {
    for (int i = 0; i < n && !p->step; i++) qn__part_free(part[i]);
    goto fail;
  }
  if (p->workspace > ctx->policy->demands.workspace_limit) {
    status = qn__fail(QN_UNSUPPORTED, "the graph needs %llu bytes of workspace for its intermediates, over the limit of %llu",
                      (unsigned long long)p->workspace, (unsigned long long)ctx->policy->demands.workspace_limit);
    goto fail;
  }
  log_plan(p);
  if (n == 1 && p->step[0].direct && p->step[0].instance < 0 && !ctx->dev->ops->enter && !p->mates && p->n_pointers <= QN__MANY &&
      p->ranks < 0) {                                           /* else the launch says the group */
    p->run = p->step[0].run;                                    /* its scratch is at offset 0 */
    p->prepared = p->step[0].prepared;
    p->threads = part[0]->demands.threads;
  }
  qn__free(part);
  *out = p;
  return QN_OK;
fail:
  qn__free(part);
  qn__plan_release(p);
  return status;
}

/* ---- running ------------------------------------------------------------------------------------------------------- */

/* base NULL: there is no such memory, and nobody uses it. */
static void *beyond(void *base, uint64_t offset) { return base ? (char *)base + offset : NULL; }

static void *place_pointer(const qn_plan *p, const qn__place *place, void *const *ptr, void *workspace)
{
  switch (place->kind) {
  case QN_PLACE_POINTER: return beyond(ptr[place->index], place->offset);
  case QN_PLACE_WORKSPACE: return beyond(workspace, place->offset);
  case QN_PLACE_LITERAL: return (void *)&p->literal[place->index];
  default: return NULL;
  }
}

static qn_status run_step(const qn_plan *p, const qn__step *step, qn_launch *launch, void *const *ptr, void *workspace, void *scratch)
{
  uint32_t n = step->part->request.n_values;
  void *few[QN__MANY], **all = n > QN__MANY ? scratch : few;
  for (uint32_t v = 0; v < n; v++) all[v] = place_pointer(p, &step->place[v], ptr, workspace);
  launch->ptr = all;
  return step->run(step->prepared, launch);
}

qn_status qn__plan_run(qn_context *ctx, const qn_plan *p, void *const *ptr, void *workspace, void *counters)
{
  qn_launch launch = { .struct_size = sizeof launch, .stream = ctx->stream, .ptr = ptr, .workspace = workspace,
    .counters = counters, .device = &ctx->dev->desc, .core = ctx, .ranks = qn__context_ranks(ctx) };
  uint64_t saved = 0;
  qn_status status = QN_OK;
  const qn_device_ops *ops = ctx->dev->ops;
  const bool lanes = p->n_lanes > 1 && p->n_lanes <= ctx->n_lanes && p->n_events <= ctx->n_events;  /* else in order, as the steps come */
  uint32_t s = 0;
  if (ops->enter && (status = ops->enter(&ctx->dev->desc, &saved))) return status;
  if (lanes) status = qn__lanes_begin(ctx, p);
  for (; s < p->n_steps && !status; s++) {
    const qn__step *step = &p->step[s];
    if (lanes) {
      launch.stream = qn__lane_stream(ctx, step);
      if ((status = qn__lanes_wait(ctx, p, step))) continue;
    }
    launch.counters = beyond(counters, step->counters);
    launch.instance = step->instance >= 0 ? ctx->instance[step->instance] : NULL;
    launch.workspace = beyond(workspace, step->workspace);
    launch.threads = step->part->demands.threads;
    if (step->direct) {
      launch.ptr = ptr;
      status = step->run(step->prepared, &launch);
    } else status = run_step(p, step, &launch, ptr, workspace, ctx->scratch);
    if (lanes && step->event && !status) status = ops->event_record(&ctx->dev->desc, ctx->event[step->event], launch.stream);
  }
  if (lanes) status = qn__lanes_end(ctx, p, s, status);         /* after a failure too: a capture must end on one stream */
  if (ops->enter) ops->leave(&ctx->dev->desc, saved);
  return status;
}

/* ---- inspection ------------------------------------------------------------------------------------------------------- */

void qn_plan_destroy(qn_plan *plan)
{
  if (plan && !plan->dev) qn__log_destroyed("plan");
  else if (plan) {
    plan->dev = NULL;                                           /* recordings may keep it */
    qn__plan_release(plan);
  }
}

static bool is_there(const qn_plan *plan) { return plan && (plan->dev || !qn__destroyed("plan")); }

size_t qn_plan_workspace(const qn_plan *plan) { return is_there(plan) ? plan->workspace : 0; }
size_t qn_plan_counters(const qn_plan *plan) { return is_there(plan) ? plan->counters : 0; }
int qn_plan_parts(const qn_plan *plan) { return is_there(plan) ? (int)plan->n_steps : 0; }

const qn_prepared *qn_plan_part(const qn_plan *plan, int i, const char **backend_p)
{
  if (!is_there(plan) || i < 0 || i >= (int)plan->n_steps) return NULL;
  if (backend_p) *backend_p = plan->step[i].part->backend->name;
  return &plan->step[i].part->prepared;
}

/* As problem lines, with the names that the graph's author gave. */
void qn__part_print(qn_text *t, const qn_plan *p, const qn_part *part)
{
  const char **name = qn__alloc(part->request.n_values * sizeof *name);
  for (uint32_t v = 0; name && v < part->request.n_values; v++) name[v] = p->graph->view.name[part->value_of[v]];
  qn__request_print(t, &part->request, part->prepared.taken, part->literal, name);
  qn__free(name);
}

void qn__part_engine(qn_text *t, const qn_part *part)
{
  const char *variant = part->prepared.variant;
  qn__text_add(t, "%s/%s%s%s", part->backend->name, part->engine->name, variant ? ":" : "", variant ? variant : "");
}

size_t qn_part_line(const qn_plan *plan, int i, char *text, size_t bytes)
{
  qn_text t = {0};
  if (is_there(plan) && i >= 0 && i < (int)plan->n_steps) qn__part_print(&t, plan, plan->step[i].part);
  return qn__text_out(&t, text, bytes);
}

static const char *const class_name[] = { "tuned", "generic", "host" };
static const char *const accumulator_name[] = { "native", "f32_tc", "tf32", "f16", "f8_fast", "3xtf32", "bf16x3", "double" };
static const char *const trait_name[] = { "deterministic", "batch_invariant", "portable", "tensor_cores", "reduced", "finite_only",
                                          "flushes" };

static void print_step(qn_text *t, const qn_plan *plan, uint32_t s)
{
  const qn__step *step = &plan->step[s];
  const qn_part *part = step->part;
  const qn_prepared *a = &part->prepared;
  const char *sep = "";
  qn__part_engine(t, part);
  qn__text_add(t, " %s accumulator=%s", class_name[a->class_ < 3 ? a->class_ : 0],
               accumulator_name[a->numerics.accumulator < 8 ? a->numerics.accumulator : 0]);
  if (a->numerics.method == QN_METHOD_WINOGRAD) qn__text_add(t, " winograd=%d,%d", a->numerics.tile, a->numerics.filter);
  if (a->numerics.method == QN_METHOD_FFT) qn__text_add(t, " fft");
  qn__text_add(t, " traits=");
  for (int i = 0; i < (int)(sizeof trait_name / sizeof *trait_name); i++)
    if (a->traits >> i & 1) {
      qn__text_add(t, "%s%s", sep, trait_name[i]);
      sep = ",";
    }
  qn__text_add(t, " workspace=%llu", (unsigned long long)a->workspace);
  if (plan->n_lanes > 1) qn__text_add(t, " lane=%d", (int)step->lane);
  for (uint32_t i = 0; i < step->n_waits; i++)
    if (step->wait[i] != QN__START) qn__text_add(t, "%s%d", i ? "," : " after=", (int)step->wait[i]);
  qn__text_add(t, " : ");
  qn__part_print(t, plan, part);
}

size_t qn_plan_print(const qn_plan *plan, char *text, size_t bytes)
{
  qn_text t = {0};
  for (uint32_t s = 0; is_there(plan) && s < plan->n_steps; s++) {
    print_step(&t, plan, s);
    qn__text_add(&t, "\n");
  }
  return qn__text_out(&t, text, bytes);
}

static void log_plan(const qn_plan *p)
{
  if (!qn__logs(QN_LOG_PLAN)) return;
  qn__log(QN_LOG_PLAN, "of %u part%s, %llu bytes of workspace:", p->n_steps, p->n_steps == 1 ? "" : "s", (unsigned long long)p->workspace);
  for (uint32_t s = 0; s < p->n_steps; s++) {
    qn_text t = {0};
    print_step(&t, p, s);
    qn__log(QN_LOG_PLAN, "  %s", t.s ? t.s : "");
    qn__free(t.s);
  }
}
