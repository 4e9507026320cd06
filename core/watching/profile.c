/* profile.c -- QUERN_PROFILE: at the end of each context, a table of the problems that it ran: calls, time, share, engine, and the
 * problem with the names that the program's graphs give. Each step of a plan is wrapped in a probe as the plan is made, as trace.c
 * wraps the first; without the variable it costs nothing.
 *
 * Times are the device's, between two events around a step. On a device with streams they are read when more than AHEAD are
 * outstanding, so that the host may run ahead. Steps that a capture records are counted when it replays, as one row a recording. */
#include "config.h"
#include "core.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AHEAD = 64, BUCKETS = 256 };

/* Of one step. Its text is made with the plan: none is made as it runs. */
typedef struct probe {
  qn__wrapper  wrapper;
  uint64_t     id;
  qn_text      engine, problem;
} probe;

typedef struct row { uint64_t id; char *engine, *problem; uint64_t calls; double ns; int next; } row;
typedef struct pair { void *start, *stop; int row; } pair;

struct qn__profile {
  pthread_mutex_t lock;                   /* for the table at the process's end, which may find the context in use */
  pid_t        pid;
  char        *path;
  char         what[160];                 /* the context, in words */
  row         *row;
  int          n, cap, bucket[BUCKETS];   /* bucket: 1 + the first row */
  pair         ahead[AHEAD];              /* a ring */
  unsigned     from, to;
  uint64_t     untimed;
  struct qn__profile *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct qn__profile *profiles;      /* of live contexts */

void qn__profile_in_child(void)
{
  pthread_mutex_init(&lock, NULL);
  profiles = NULL;                        /* the parent's contexts print theirs there */
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

static int by_time(const void *a, const void *b)
{
  const row *x = a, *y = b;
  return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : strcmp(x->problem, y->problem);
}

static int by_name(const void *a, const void *b)
{
  const row *x = a, *y = b;
  const int c = strcmp(x->problem, y->problem);
  return c ? c : strcmp(x->engine, y->engine);
}

/* Rows of the same problem and engine, from several plans, become one. */
static void merge(struct qn__profile *p)
{
  int n = 0;
  qsort(p->row, (size_t)p->n, sizeof *p->row, by_name);
  for (int i = 0; i < p->n; i++) {
    if (n && !by_name(&p->row[n - 1], &p->row[i])) {
      p->row[n - 1].calls += p->row[i].calls;
      p->row[n - 1].ns += p->row[i].ns;
      qn__free(p->row[i].engine);
      qn__free(p->row[i].problem);
    } else p->row[n++] = p->row[i];
  }
  p->n = n;
  qsort(p->row, (size_t)n, sizeof *p->row, by_time);
}

static void print(struct qn__profile *p)
{
  qn_text t = {0};
  double ns = 0;
  uint64_t calls = 0;
  int width = 6;
  if (!p->n) return;
  merge(p);
  for (int i = 0; i < p->n; i++) {
    ns += p->row[i].ns;
    calls += p->row[i].calls;
    if ((int)strlen(p->row[i].engine) > width) width = (int)strlen(p->row[i].engine);
  }
  qn__text_add(&t, "quern profile: process %ld, %s: %.3f ms in %llu call%s\n%8s %12s %12s %7s  %-*s  %s\n", (long)p->pid, p->what, ns / 1e6,
               (unsigned long long)calls, calls == 1 ? "" : "s", "calls", "ms", "us each", "share", width, "engine", "problem");
  for (int i = 0; i < p->n; i++) {
    const row *r = &p->row[i];
    qn__text_add(&t, "%8llu %12.3f %12.3f %6.1f%%  %-*s  %s\n", (unsigned long long)r->calls, r->ns / 1e6,
                 r->calls ? r->ns / 1e3 / (double)r->calls : 0, ns > 0 ? 100 * r->ns / ns : 0, width, r->engine, r->problem);
  }
  if (p->untimed) qn__text_add(&t, "%8llu more were not timed\n", (unsigned long long)p->untimed);
  qn__text_add(&t, "\n");
  if (t.failed) qn__log(QN_LOG_WARN, "profile: no memory for its table");
  else if (strcmp(p->path, "-")) qn__append("profile", p->path, t.s);
  else {
    fputs(t.s, stdout);
    fflush(stdout);
  }
  qn__free(t.s);
}

/* Contexts that the program never destroyed. Work in flight stays untimed: at its end a process touches no device. */
static void at_exit(void)
{
  if (pthread_mutex_trylock(&lock)) return;
  for (struct qn__profile *p = profiles; p; p = p->next) {
    if (pthread_mutex_trylock(&p->lock)) continue;
    p->untimed += p->to - p->from;
    print(p);
    p->n = 0;
    pthread_mutex_unlock(&p->lock);
  }
  pthread_mutex_unlock(&lock);
}

static void arrange_exit(void) { atexit(at_exit); }

/* ---- rows and times ------------------------------------------------------------------------------------------------ */

static struct qn__profile *profile_of(qn_context *ctx)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  struct qn__profile *p = ctx->profile;
  const char *path = ctx->settings.text[QN_SET_PROFILE];
  if (p || !path) return p;
  if (!(p = qn__alloc(sizeof *p)) || !(p->path = qn__strdup(path))) {
    qn__free(p);
    return NULL;
  }
  pthread_mutex_init(&p->lock, NULL);
  pthread_once(&once, arrange_exit);
  p->pid = getpid();
  snprintf(p->what, sizeof p->what, "context %llu on %s", (unsigned long long)ctx->id, qn_context_device(ctx));
  pthread_mutex_lock(&lock);
  p->next = profiles;
  profiles = p;
  pthread_mutex_unlock(&lock);
  return ctx->profile = p;
}

/* The row's index; -1: no memory. */
static int row_of(struct qn__profile *p, uint64_t id, const char *engine, const char *problem)
{
  int *head = &p->bucket[id % BUCKETS];
  for (int i = *head; i; i = p->row[i - 1].next)
    if (p->row[i - 1].id == id) return i - 1;
  row *grown = qn__grown(p->row, p->n, &p->cap, sizeof *grown);
  if (!grown) return -1;
  p->row = grown;
  row r = { .id = id, .engine = qn__strdup(engine), .problem = qn__strdup(problem), .next = *head };
  if (!r.engine || !r.problem) {
    qn__free(r.engine);
    qn__free(r.problem);
    return -1;
  }
  p->row[p->n] = r;
  return (*head = ++p->n) - 1;
}

/* Reads the oldest times until at most `left` are outstanding. */
static void settle(qn_context *ctx, struct qn__profile *p, unsigned left)
{
  for (; p->to - p->from > left; p->from++) {
    const pair *a = &p->ahead[p->from % AHEAD];
    double ns;
    if (ctx->dev->ops->event_elapsed(&ctx->dev->desc, a->start, a->stop, &ns)) p->untimed++;
    else {
      p->row[a->row].calls++;
      p->row[a->row].ns += ns;
    }
  }
}

/* Begins the timing of a call; NULL: it is not timed. */
static pair *begin(qn_context *ctx, struct qn__profile *p, uint64_t id, const char *engine, const char *problem, void *stream)
{
  const qn_device_ops *ops = ctx->dev->ops;
  const qn_device *dev = &ctx->dev->desc;
  settle(ctx, p, AHEAD - 1);
  pair *a = &p->ahead[p->to % AHEAD];
  if (!ops->event_elapsed || (a->row = row_of(p, id, engine, problem)) < 0 || (!a->start && ops->event_create(dev, &a->start)) ||
      (!a->stop && ops->event_create(dev, &a->stop)) || ops->event_record(dev, a->start, stream)) {
    p->untimed++;
    return NULL;
  }
  return a;
}

static void end(qn_context *ctx, struct qn__profile *p, pair *a, void *stream)
{
  if (!a) return;
  if (ctx->dev->ops->event_record(&ctx->dev->desc, a->stop, stream)) p->untimed++;
  else {
    p->to++;
    if (!stream) settle(ctx, p, 0);        /* a CPU's work is done */
  }
}

static qn_status run(const qn_prepared *outer, const qn_launch *launch)
{
  const probe *q = outer->state;
  qn_context *ctx = launch->core;
  struct qn__profile *p = qn__context_capturing(ctx) ? NULL : profile_of(ctx);
  if (!p) return q->wrapper.run(q->wrapper.inner, launch);
  pthread_mutex_lock(&p->lock);
  pair *a = begin(ctx, p, q->id, q->engine.s, q->problem.s, launch->stream);
  pthread_mutex_unlock(&p->lock);
  qn_status status = q->wrapper.run(q->wrapper.inner, launch);
  pthread_mutex_lock(&p->lock);
  end(ctx, p, a, launch->stream);
  pthread_mutex_unlock(&p->lock);
  return status;
}

qn_status qn__profile_replay(qn_context *ctx, uint64_t id, int plans, void *native)
{
  struct qn__profile *p = profile_of(ctx);
  char what[64];
  if (!p) return ctx->dev->ops->recording_launch(&ctx->dev->desc, native, ctx->stream);
  snprintf(what, sizeof what, "recording of %d executions", plans);
  pthread_mutex_lock(&p->lock);
  pair *a = begin(ctx, p, id, "(replay)", what, ctx->stream);
  pthread_mutex_unlock(&p->lock);
  qn_status status = ctx->dev->ops->recording_launch(&ctx->dev->desc, native, ctx->stream);
  pthread_mutex_lock(&p->lock);
  end(ctx, p, a, ctx->stream);
  pthread_mutex_unlock(&p->lock);
  return status;
}

uint64_t qn__profile_id(void)
{
  static atomic_ullong ids;
  return atomic_fetch_add(&ids, 1) + 1;
}

/* ---- with a plan, with a context -------------------------------------------------------------------------------------- */

static void free_probe(qn__wrapper *w)
{
  probe *q = (probe *)w;
  qn__free(q->engine.s);
  qn__free(q->problem.s);
  qn__free(q);
}

void qn__profile_wrap(qn_context *ctx, qn_plan *plan)
{
  for (uint32_t s = 0; s < plan->n_steps && ctx->settings.text[QN_SET_PROFILE]; s++) {
    qn__step *step = &plan->step[s];
    probe *q = qn__alloc(sizeof *q);
    if (q) qn__part_engine(&q->engine, step->part);
    if (q) qn__part_print(&q->problem, plan, step->part);
    if (!q || q->engine.failed || q->problem.failed || !q->engine.s || !q->problem.s) {
      qn__log(QN_LOG_WARN, "profile: no memory; a part of a plan goes untimed");
      if (q) free_probe(&q->wrapper);
      continue;
    }
    q->id = qn__profile_id();
    qn__step_wrap(plan, step, &q->wrapper, run, free_probe);
  }
}

void qn__profile_end(qn_context *ctx)
{
  struct qn__profile *p = ctx->profile;
  if (!p) return;
  pthread_mutex_lock(&lock);
  for (struct qn__profile **at = &profiles; *at; at = &(*at)->next)
    if (*at == p) {
      *at = p->next;
      break;
    }
  pthread_mutex_unlock(&lock);
  if (!qn__context_alive(ctx)) {
    settle(ctx, p, 0);
    print(p);
    for (int i = 0; i < AHEAD; i++) {
      if (p->ahead[i].start) ctx->dev->ops->event_destroy(&ctx->dev->desc, p->ahead[i].start);
      if (p->ahead[i].stop) ctx->dev->ops->event_destroy(&ctx->dev->desc, p->ahead[i].stop);
    }
  }
  for (int i = 0; i < p->n; i++) {
    qn__free(p->row[i].engine);
    qn__free(p->row[i].problem);
  }
  pthread_mutex_destroy(&p->lock);
  qn__free(p->row);
  qn__free(p->path);
  qn__free(p);
  ctx->profile = NULL;
}
