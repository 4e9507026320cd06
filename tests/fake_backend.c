/* fake_backend.c -- a device that is host memory, and engines that compute nothing, for t_core and others: shows what the
 * planner offers, what demands exclude, what is measured and remembered, without any arithmetic. */
#include <quern/kit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const qn_host *host;

/* ---- engines ------------------------------------------------------------------------------------------- */

static qn_status takes_one(const qn_request *r, qn_prepared *p)
{
  (void)r;
  p->n_ops = 1;
  return QN_OK;
}

static qn_status takes_all(const qn_request *r, qn_prepared *p)
{
  p->n_ops = r->n_ops;
  return QN_OK;
}

/* matmul with at most two followers, and scratch. */
static qn_status takes_three(const qn_request *r, qn_prepared *p)
{
  p->n_ops = r->n_ops < 3 ? r->n_ops : 3;
  p->workspace = 1000;
  p->counters = 64;
  return QN_OK;
}

/* Memory sizes whose sum would overflow. */
static qn_status takes_the_sea(const qn_request *r, qn_prepared *p)
{
  (void)r;
  p->workspace = (uint64_t)-10;
  return QN_OK;
}

/* Logs what a device with streams does. */
static void tell(const char *what, void *stream, void *other)
{
  char line[64];
  snprintf(line, sizeof line, "%s %d %d", what, (int)(intptr_t)stream, (int)(intptr_t)other);
  host->log(QN_LOG_WARN, line);
}

static qn_status runs_nothing(const qn_prepared *p, const qn_launch *l)
{
  if (l->stream) tell(p->engine->name, l->stream, NULL);
  return QN_OK;
}

/* Records the instance and counters that it was given. */
static qn_status runs_marking(const qn_prepared *p, const qn_launch *l)
{
  if (l->stream) return runs_nothing(p, l);
  if (!l->instance) return host->error(QN_INTERNAL, "no instance was given");
  if (*(const uint64_t *)l->counters) return host->error(QN_INTERNAL, "the counters are not zero");
  ++*(int *)l->instance;
  return QN_OK;
}

static qn_status fails(const qn_prepared *p, const qn_launch *l)
{
  (void)p;
  (void)l;
  return host->error(QN_DEVICE, "it failed");
}

static void tells_release(qn_prepared *p)
{
#ifdef FAKE_STREAMS
  tell("release", NULL, NULL);
#endif
  (void)p;
}

static qn_status refuses(const qn_request *r, qn_prepared *p)
{
  (void)r;
  return qn_refuse(p, "rows must come in pairs", "x", "an even number", "%d", 3);
}

/* The device's clock: only simulated work advances it, so measurements are the same on any machine. */
static int64_t now;

static const char *const speeds[] = { "slow", "fast", NULL };

static qn_status takes_variant(const qn_request *r, qn_prepared *p)
{
  p->n_ops = 1;
  p->variant = r->variant ? r->variant : speeds[0];
  p->word[0] = !strcmp(p->variant, "fast");
  return QN_OK;
}

/* Has variants, but none for this problem. */
static qn_status takes_without_variant(const qn_request *r, qn_prepared *p)
{
  if (r->variant) return qn_refuse(p, "variants are for other dtypes", "x", "", "%s", r->variant);
  p->n_ops = 1;
  p->word[0] = 1000000;
  return QN_OK;
}

/* The fast variant is now and then disturbed by other work. */
static qn_status takes_time(const qn_prepared *p, const qn_launch *l)
{
  static int executions;
  (void)l;
  now += !p->word[0] ? 5000000 : ++executions % 3 ? 20000 : 30000000;
  return QN_OK;
}

/* Takes all ops offered: fast, unless an activation is among them. */
static qn_status takes_whole(const qn_request *r, qn_prepared *p)
{
  p->n_ops = r->n_ops;
  p->word[0] = r->n_ops > 1 && r->op[1].op == QN_OP_TANH ? 9000000 : 2000000;
  return QN_OK;
}
static qn_status takes_half(const qn_request *r, qn_prepared *p)
{
  (void)r;
  p->n_ops = 1;
  p->word[0] = 3000000;
  return QN_OK;
}
static qn_status takes_its_time(const qn_prepared *p, const qn_launch *l)
{
  (void)l;
  now += (int64_t)p->word[0];
  return QN_OK;
}

/* Its time depends on the contents of its scalars and indices: short if they are typical. */
static qn_status takes_by_data(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = r->op;
  p->n_ops = 1;
  p->word[0] = op->op == QN_OP_GATHER;
  p->word[1] = (uint64_t)op->arg[op->first[p->word[0] ? QN_ROLE_GATHER_INDICES : QN_ROLE_SGD_RATE]];
  p->word[2] = (uint64_t)(p->word[0] ? r->value[p->word[1]].dim[0] : op->arg[op->first[QN_ROLE_SGD_SCALE]]);
  p->word[3] = (uint64_t)r->value[op->arg[op->first[0]]].dim[0];
  return QN_OK;
}
static qn_status takes_time_by_data(const qn_prepared *p, const qn_launch *l)
{
  bool usual = false;
  if (p->word[0]) {
    const int32_t *index = l->ptr[p->word[1]];
    for (uint64_t i = 0; i < p->word[2]; i++) usual = usual || index[i] > 1;
    for (uint64_t i = 0; i < p->word[2]; i++) usual = usual && index[i] >= 0 && index[i] < (int64_t)p->word[3];
  } else usual = *(const double *)l->ptr[p->word[1]] == 0.5 && *(const double *)l->ptr[p->word[2]] == 1;
  now += usual ? 1000000 : 9000000;
  return QN_OK;
}

/* Gives an estimate that is better the larger the batch. */
static qn_status takes_gladly(const qn_request *r, qn_prepared *p)
{
  p->n_ops = 1;
  p->estimate = 1e6 / (double)r->value[r->op[0].arg[0]].dim[0];
  return QN_OK;
}

static qn_status takes_unbuildable(const qn_request *r, qn_prepared *p) { return takes_one(r, p); }
static qn_status cannot_build(const qn_request *r, qn_prepared *p)
{
  (void)r;
  (void)p;
  return host->error(QN_DEVICE, "it cannot be built");
}

/* Delegates all its work to another engine, and adds that one's scratch to its own. */
static qn_status delegates(const qn_request *r, qn_prepared *p)
{
  qn_part *part;
  qn_status status = host->part_prepare(r, r, "fake/part", &part);
  if (status) return status;
  p->state = part;
  p->n_ops = 1;
  p->workspace = host->part_answer(part)->workspace;
  return QN_OK;
}
static qn_status builds_part(const qn_request *r, qn_prepared *p)
{
  (void)r;
  return host->part_build(p->state);
}
static qn_status runs_part(const qn_prepared *p, const qn_launch *l)
{
  return host->part_run(p->state, l, l->ptr, l->workspace, l->counters);
}
static void releases_part(qn_prepared *p) { host->part_release(p->state); }

#define D QN_TRAIT_DETERMINISTIC
static const qn_engine row[] = {
  { .name = "three", .op = QN_OP_MATMUL, .traits = D, .prepare = takes_three, .run = runs_marking, .release = tells_release },
  { .name = "one", .op = QN_OP_MATMUL, .class_ = QN_CLASS_GENERIC, .traits = D, .prepare = takes_one, .run = runs_nothing },
  { .name = "all", .op = QN_FAMILY_POINTWISE | QN_ANCHOR_FAMILY, .prepare = takes_all, .run = runs_nothing },
  { .name = "single", .op = QN_FAMILY_POINTWISE | QN_ANCHOR_FAMILY, .class_ = QN_CLASS_GENERIC, .traits = D, .prepare = takes_one,
    .run = runs_nothing },
  { .name = "sea", .op = QN_OP_CONCAT, .prepare = takes_the_sea, .run = runs_nothing },
  { .name = "odd", .op = QN_OP_SOFTMAX, .prepare = refuses, .run = runs_nothing },
  { .name = "unbuildable", .op = QN_OP_REDUCE_SUM, .prepare = takes_unbuildable, .build = cannot_build, .run = runs_nothing },
  { .name = "plain", .op = QN_OP_REDUCE_SUM, .class_ = QN_CLASS_GENERIC, .traits = D, .prepare = takes_one, .run = runs_nothing },
  { .name = "failing", .op = QN_OP_REDUCE_MAX, .class_ = QN_CLASS_GENERIC, .traits = D, .prepare = takes_one, .run = fails },
  { .name = "timed", .op = QN_OP_COPY, .variants = speeds, .prepare = takes_variant, .run = takes_time },
  { .name = "half", .op = QN_OP_PAD, .prepare = takes_half, .run = takes_its_time },
  { .name = "alone", .op = QN_OP_PAD, .variants = speeds, .prepare = takes_without_variant, .run = takes_its_time },
  { .name = "whole", .op = QN_OP_LOG_SOFTMAX, .prepare = takes_whole, .run = takes_its_time },
  { .name = "half", .op = QN_OP_LOG_SOFTMAX, .prepare = takes_half, .run = takes_its_time },
  { .name = "by_data", .op = QN_OP_SGD, .prepare = takes_by_data, .run = takes_time_by_data },
  { .name = "half", .op = QN_OP_SGD, .prepare = takes_half, .run = takes_its_time },
  { .name = "by_data", .op = QN_OP_GATHER, .prepare = takes_by_data, .run = takes_time_by_data },
  { .name = "half", .op = QN_OP_GATHER, .prepare = takes_half, .run = takes_its_time },
  { .name = "even", .op = QN_OP_CUMSUM, .traits = D | QN_TRAIT_BATCH_INVARIANT, .prepare = takes_one, .run = runs_nothing },
  { .name = "eager", .op = QN_OP_CUMSUM, .traits = D | QN_TRAIT_BATCH_INVARIANT, .prepare = takes_gladly, .run = runs_nothing },
  { .name = "outer", .op = QN_OP_SLICE, .prepare = delegates, .build = builds_part, .run = runs_part, .release = releases_part },
  { .name = "part", .op = QN_OP_SLICE, .class_ = QN_CLASS_GENERIC, .prepare = takes_three, .run = runs_nothing },
};
static const qn_engine_list list = { row, sizeof row / sizeof row[0] };
static const qn_engine_list *const lists[] = { &list, NULL };

/* ---- the device: host memory, in-order streams ------------------------------------------------------------- */

static qn_status count(int32_t *n)
{
  *n = 1;
  return QN_OK;
}

static qn_status describe(int32_t ordinal, qn_device *d)
{
  d->ordinal = ordinal;
  strcpy(d->kind, "fake");
  strcpy(d->name, "a device for tests");
  strcpy(d->model, "fake");
  d->threads = 1;
  return QN_OK;
}

static const char *const models[] = { "fake", "other", NULL };
static qn_status describe_model(const char *model, qn_device *d)
{
  if (strcmp(model, "fake") && strcmp(model, "other")) return QN_BAD_ARGUMENT;
  describe(-1, d);
  strcpy(d->model, model);
  return QN_OK;
}

static qn_status alloc(const qn_device *d, size_t bytes, void **p)
{
  (void)d;
  *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *p ? QN_OK : host->error(QN_NO_MEMORY, "no memory");
}
static void release(const qn_device *d, void *p)
{
  (void)d;
  free(p);
}
/* With streams, enqueued work is done as late as possible: when somebody waits. */
typedef struct work { void (*fn)(void *); void *to; const void *from; size_t bytes; } work;   /* fn(to), or a copy */
static void do_work(const work *w)
{
  if (w->fn) w->fn(w->to);
  else memcpy(w->to, w->from, w->bytes);
}

#ifdef FAKE_STREAMS
static work queue[64];
static int n_queued;
static bool captures;
static void enqueue(work w)
{
  if (!captures) queue[n_queued++] = w;
}
#else
static void enqueue(work w) { do_work(&w); }
#endif

static qn_status copy(const qn_device *d, void *to, const void *from, size_t bytes, int kind, void *stream)
{
  (void)d;
  if (stream) tell(kind == QN_COPY_TO_DEVICE ? "copy to" : "copy from", stream, NULL);
  enqueue((work){ NULL, to, from, bytes });
  return QN_OK;
}
static qn_status fill(const qn_device *d, void *p, int byte, size_t bytes, void *stream)
{
  (void)d;
  (void)stream;
  memset(p, byte, bytes);
  return QN_OK;
}
/* number: of those without times, from 1; 0: the others */
typedef struct event { int64_t at; int number; } event;
static qn_status event_create(const qn_device *d, void **e)
{
  (void)d;
  *e = calloc(1, sizeof(event));
  return *e ? QN_OK : QN_NO_MEMORY;
}
static void event_destroy(const qn_device *d, void *e)
{
  (void)d;
  free(e);
}
static qn_status event_record(const qn_device *d, void *e, void *stream)
{
  event *to = e;
  (void)d;
  to->at = now;
  if (to->number) tell("record", stream, (void *)(intptr_t)to->number);
  return QN_OK;
}
static qn_status event_elapsed(const qn_device *d, void *start, void *stop, double *ns)
{
  (void)d;
  *ns = (double)(((event *)stop)->at - ((event *)start)->at);
  return QN_OK;
}
static qn_status host_call(const qn_device *d, void *stream, void (*fn)(void *), void *arg)
{
  (void)d;
  (void)stream;
  enqueue((work){ fn, arg, NULL, 0 });
  return QN_OK;
}

#ifdef FAKE_STREAMS
/* ---- the same with numbered streams, and recordings without content ---------------------------------------------- */

static qn_status stream_create(const qn_device *d, void **stream)
{
  static intptr_t streams;
  (void)d;
  *stream = (void *)++streams;
  return QN_OK;
}
static void stream_destroy(const qn_device *d, void *stream)
{
  (void)d;
  (void)stream;
}
static qn_status stream_synchronize(const qn_device *d, void *stream)
{
  (void)d;
  tell("synchronize", stream, NULL);
  for (int i = 0; i < n_queued; i++) do_work(&queue[i]);
  n_queued = 0;
  return QN_OK;
}
static qn_status stream_wait(const qn_device *d, void *stream, void *other)
{
  (void)d;
  tell("wait", stream, other);
  return QN_OK;
}
static qn_status event_create_untimed(const qn_device *d, void **e)
{
  static int events;
  qn_status status = event_create(d, e);
  if (!status) ((event *)*e)->number = ++events;
  return status;
}
static qn_status event_wait(const qn_device *d, void *stream, void *e)
{
  (void)d;
  tell("await", stream, (void *)(intptr_t)((event *)e)->number);
  return QN_OK;
}
static qn_status capture_begin(const qn_device *d, void *stream)
{
  (void)d;
  tell("begin", stream, NULL);
  captures = true;
  return QN_OK;
}
static qn_status capture_end(const qn_device *d, void *stream, void **recording)
{
  (void)d;
  tell("end", stream, NULL);
  captures = false;
  *recording = &captures;
  return QN_OK;
}
static qn_status recording_launch(const qn_device *d, void *recording, void *stream)
{
  (void)d;
  (void)recording;
  (void)stream;
  return QN_OK;
}
static void recording_destroy(const qn_device *d, void *recording)
{
  (void)d;
  (void)recording;
  tell("recording gone", NULL, NULL);
}
static qn_status capturing(const qn_device *d, void *stream, int *yes)
{
  (void)d;
  (void)stream;
  *yes = 0;
  return QN_OK;
}
static qn_status alloc_host(const qn_device *d, size_t bytes, void **p)
{
  tell("host memory", NULL, NULL);
  return alloc(d, bytes, p);
}
static void free_host(const qn_device *d, void *p)
{
  tell("host memory back", NULL, NULL);
  release(d, p);
}
#endif

static const qn_device_ops device = {
#ifdef FAKE_STREAMS
  .struct_size = sizeof device,
#else
  .struct_size = offsetof(qn_device_ops, alloc_host),           /* as of minor 1 */
#endif
  .count = count, .describe = describe, .models = models, .describe_model = describe_model,
  .alloc = alloc, .free = release, .copy = copy, .fill = fill, .event_create = event_create, .event_destroy = event_destroy,
  .event_record = event_record, .event_elapsed = event_elapsed, .host_call = host_call,
#ifdef FAKE_STREAMS
  .stream_create = stream_create, .stream_destroy = stream_destroy, .stream_synchronize = stream_synchronize,
  .stream_wait = stream_wait, .capture_begin = capture_begin, .capture_end = capture_end, .recording_launch = recording_launch,
  .recording_destroy = recording_destroy, .capturing = capturing, .alloc_host = alloc_host, .free_host = free_host,
  .event_create_untimed = event_create_untimed, .event_wait = event_wait,
#endif
};

/* ---- the table ---------------------------------------------------------------------------------------------- */

#ifndef FAKE_STREAMS
static qn_status open_instance(const qn_open *with, void **instance)
{
  *instance = with->host->alloc(sizeof(int));
  return *instance ? QN_OK : with->host->error(QN_NO_MEMORY, "no memory for an instance");
}
static void close_instance(void *instance) { host->free(instance); }
#endif

/* A rider has no engine and no device: it goes with a backend that has. */
#ifdef FAKE_RIDER
enum { RIDES = 1 };
#else
enum { RIDES = 0 };
#endif
static const qn_backend backend = {
  .struct_size = sizeof backend, .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine), .version = "1", .device_kind = "fake",
  .name = RIDES ? "rider" : "fake", .device = RIDES ? NULL : &device, .engines = lists + RIDES,
#ifndef FAKE_STREAMS
  .open = RIDES ? NULL : open_instance, .close = RIDES ? NULL : close_instance,
#endif
};

QN_EXPORT qn_status QN_BACKEND_ENTRY(fake)(const qn_host *h, const qn_backend **out)
{
  host = h;
  *out = &backend;
  return QN_OK;
}
