/* context.c -- a context: a device, a stream, demands, an arena for workspace, and instances of its backends. */
#include "config.h"
#include "core.h"
#include <stdlib.h>
#include <string.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
static const char __libc_single_threaded;           /* this C library does not say: there may be threads */
#endif

/* ---- fork: contexts made before it fail in the child with a sentence ----------------------------------- */

static bool had_threads;

static void before_fork(void) { had_threads = !__libc_single_threaded; }

/* Only the forking thread exists in the child: locks that others held would never be released, and a team of OpenMP's, of this
 * library or of the program, would wait for workers that are gone. */
static void in_child(void)
{
  atomic_fetch_add(&qn__generation, 1);
  qn__workers_lost |= had_threads;
  qn__log_in_child();
  qn__objects_in_child();
  qn__registry_in_child();
  qn__devices_in_child();
  qn__caches_in_child();
  qn__tune_in_child();
  qn__profile_in_child();
  qn__check_in_child();
}

/* When the library is loaded, since the program may use OpenMP and fork before it makes a context. */
static __attribute__((constructor)) void watch_fork(void) { pthread_atfork(before_fork, NULL, in_child); }

/* ---- one thread at a time --------------------------------------------------------------------------------- */

#define ONE_AT_A_TIME "a context is used by one thread at a time; make one for each thread"

qn_status qn__in_use(void) { return qn__fail(QN_BAD_ARGUMENT, "ctx: another thread is in a call with it; " ONE_AT_A_TIME); }

qn_status qn__disturbed(qn_context *ctx, uintptr_t before)
{
  uintptr_t other = atomic_load(&ctx->user);
  if (other == QN__DISTURBED) atomic_store(&ctx->user, before);     /* it ended first and told us */
  else if (other) atomic_compare_exchange_strong(&ctx->user, &other, QN__DISTURBED);
  return qn__fail(QN_BAD_ARGUMENT, "ctx: another thread entered a call with it during this one, and either's results may be wrong; "
                  ONE_AT_A_TIME);
}

qn_status qn__use(qn_context *ctx, qn__using *u)
{
  qn_status status = qn__context_alive(ctx);
  if (status) return status;
  if (!qn__begin(ctx, &u->before)) return qn__in_use();
  u->ctx = ctx;
  return QN_OK;
}

qn_status qn__use_device(qn_context *ctx, qn__using *u)
{
  qn_status status = qn__use(ctx, u);
  if (!status) status = qn__enter(ctx->dev, &u->saved);
  u->entered = !status;
  return status;
}

void qn__use_end(qn__using *u)
{
  if (u->entered) qn__leave(u->ctx->dev, u->saved);
  if (u->ctx && !qn__end(u->ctx, u->before)) qn__disturbed(u->ctx, u->before);
}

/* ---- create, destroy ------------------------------------------------------------------------------------ */

qn_status qn_context_create(const char *const options[], qn_context **ctx_p)
{
  static atomic_ullong ids;
  qn__backend *provider;
  qn_context *ctx = NULL;
  uint64_t saved;
  qn_status status;
  if (!ctx_p) return qn__fail(QN_BAD_ARGUMENT, "ctx_p: is NULL");
  if (!(ctx = qn__object_new(QN_OBJECT_CONTEXT, sizeof *ctx))) return qn__fail(QN_NO_MEMORY, "no memory for a context");
  ctx->generation = atomic_load(&qn__generation);
  ctx->most_threads = qn__workers_lost ? 1 : INT32_MAX;
  ctx->id = atomic_fetch_add(&ids, 1) + 1;
  if ((status = qn__settings_read(&ctx->settings, options))) goto fail_settings;
  qn__backends_also(&ctx->settings);
  if ((status = qn__device_choose(&ctx->settings, &ctx->backend, &ctx->n_backends, &provider))) goto fail_backends;
  if ((status = qn__device_get(provider, &ctx->settings, &ctx->dev))) goto fail_device;
  if ((status = qn__cache_open(ctx->dev))) goto fail_device;
  if ((status = qn__policy_intern(ctx->dev, &ctx->settings, ctx->backend, ctx->n_backends, &ctx->policy))) goto fail_device;
  if ((status = qn__enter(ctx->dev, &saved))) goto fail_device;
  status = ctx->dev->ops->stream_create ? ctx->dev->ops->stream_create(&ctx->dev->desc, &ctx->own_stream) : QN_OK;
  qn__leave(ctx->dev, saved);
  if (status) goto fail_device;
  ctx->stream = ctx->own_stream;
  *ctx_p = ctx;
  return QN_OK;
fail_device:
  qn__free(ctx->backend);
fail_backends:
  qn__settings_free(&ctx->settings);
fail_settings:
  ctx->generation = 0;
  qn__object_free(QN_OBJECT_CONTEXT, ctx);
  return status;
}

static void give_back(qn_context *ctx, void *p, uint64_t bytes)
{
  if (!p) return;
  if (ctx->allocator.free) ctx->allocator.free(ctx->allocator.user, p, bytes);
  else ctx->dev->ops->free(&ctx->dev->desc, p);
}

void qn__context_forget(qn_context *ctx)
{
  for (int i = 0; i < QN_RECENT; i++)
    for (int k = 0; k < 2; k++) {
      qn__plan_release(ctx->recent[i][k]);
      ctx->recent[i][k] = NULL;
    }
}

static void free_arena(qn_context *ctx)
{
  for (int i = 0; i < ctx->n_retired; i++) give_back(ctx, ctx->retired[i], ctx->retired_bytes[i]);
  give_back(ctx, ctx->workspace, ctx->workspace_bytes);
  give_back(ctx, ctx->counters, ctx->counters_bytes);
  qn__free(ctx->retired);
  qn__free(ctx->retired_bytes);
  ctx->workspace = ctx->counters = ctx->retired = NULL;
  ctx->retired_bytes = NULL;
  ctx->workspace_bytes = ctx->counters_bytes = 0;
  ctx->counters_unclean = false;
  ctx->n_retired = 0;
}

void qn_context_destroy(qn_context *ctx)
{
  uint64_t saved;
  uintptr_t nobody = 0;
  if (!ctx) return;
  qn_status status = qn__context_alive(ctx);
  if (!status && !atomic_compare_exchange_strong(&ctx->user, &nobody, (uintptr_t)pthread_self()))
    status = qn__fail(QN_BAD_ARGUMENT, "ctx: is not destroyed, for a call with it is under way");
  if (status == QN_BAD_ARGUMENT) {
    qn__log(QN_LOG_ERROR, "%s", qn_last_error());
    return;
  }
  if (!status) {                                                /* after fork the device belongs to the parent: leave it alone */
    qn_recording *r = NULL;
    if (ctx->recording && !qn_record_end(ctx, &r)) qn_recording_destroy(r);
    qn_context_synchronize(ctx);
    if (!qn__enter(ctx->dev, &saved)) {
      qn__context_close(ctx);                                   /* else leaving would open others */
      qn__leave(ctx->dev, saved);
    }
    qn_context_join(ctx, NULL);
    qn__context_forget(ctx);
    if (!qn__enter(ctx->dev, &saved)) {
      qn__profile_end(ctx);
      free_arena(ctx);
      if (ctx->own_stream && ctx->dev->ops->stream_destroy) ctx->dev->ops->stream_destroy(&ctx->dev->desc, ctx->own_stream);
      for (int l = 1; l < QN__LANES; l++)
        if (ctx->lane[l]) ctx->dev->ops->stream_destroy(&ctx->dev->desc, ctx->lane[l]);
      for (uint32_t i = 0; i < ctx->n_events; i++) ctx->dev->ops->event_destroy(&ctx->dev->desc, ctx->event[i]);
      qn__leave(ctx->dev, saved);
    }
  }
  qn__profile_end(ctx);
  qn__settings_free(&ctx->settings);
  qn__free(ctx->event);
  qn__free(ctx->staging);
  qn__free(ctx->scratch);
  qn__free(ctx->call);
  qn__free(ctx->backend);
  ctx->generation = 0;
  qn__object_free(QN_OBJECT_CONTEXT, ctx);
}

/* ---- options ----------------------------------------------------------------------------------------------- */

qn_status qn_context_set(qn_context *ctx, const char *key, const char *value)
{
  qn__settings s;
  const qn__policy *policy;
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use(ctx, &use);
  if (status) return status;
  if (!key || !value) return qn__fail(QN_BAD_ARGUMENT, "%s: is NULL", key ? "value" : "key");
  int i = qn__setting_index(key);
  if (i < 0) return QN_BAD_ARGUMENT;
  if (i == QN_SET_BACKEND || i == QN_SET_DEVICE || i == QN_SET_DEVICE_MODEL || i == QN_SET_PLUGIN_PATH)
    return qn__fail(QN_BAD_ARGUMENT, "%s: is settled when a context is made; make another", key);
  if ((status = qn__settings_init(&s))) return status;
  for (int k = 0; k < QN_SET_COUNT && !status; k++)
    if (ctx->settings.origin[k] == QN_FROM_CONTEXT && k != i)
      status = qn__settings_set(&s, qn__setting_key(k), ctx->settings.text[k], QN_FROM_CONTEXT);
  if (!status) status = qn__settings_set(&s, key, value, QN_FROM_CONTEXT);
  s.ranks = ctx->settings.ranks;
  if (!status) status = qn__policy_intern(ctx->dev, &s, ctx->backend, ctx->n_backends, &policy);
  if (status) {
    qn__settings_free(&s);
    return status;
  }
  qn__settings_free(&ctx->settings);
  ctx->settings = s;
  if (i == QN_SET_LOG) qn__settings_log(&s);
  qn__settings_overruled(&s);
  if (policy != ctx->policy) qn__context_forget(ctx);
  ctx->policy = policy;
  return QN_OK;
}

const char *qn_context_get(const qn_context *ctx, const char *key)
{
  int i = qn__context_known(ctx) && key ? qn__setting_index(key) : -1;
  return i < 0 ? NULL : qn__setting_value(&ctx->settings, i);
}

/* ---- stream ------------------------------------------------------------------------------------------------- */

void *qn_context_stream(const qn_context *ctx) { return qn__context_known(ctx) ? ctx->stream : NULL; }

qn_status qn_context_set_stream(qn_context *ctx, void *native_stream)
{
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use_device(ctx, &use);
  if (status) return status;
  void *next = native_stream ? native_stream : ctx->own_stream;
  if (ctx->recording) return qn__fail(QN_NOT_READY, "ctx: is recording; end the recording before its stream is changed");
  if (next == ctx->stream) return QN_OK;
  if (!ctx->dev->ops->stream_wait) return qn__fail(QN_BAD_ARGUMENT, "native_stream: the device \"%s\" has no streams", ctx->dev->desc.kind);
  status = ctx->dev->ops->stream_wait(&ctx->dev->desc, next, ctx->stream);
  if (!status) ctx->stream = next;
  return status;
}

qn_status qn_context_synchronize(qn_context *ctx)
{
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use_device(ctx, &use);
  if (status || !ctx->dev->ops->stream_synchronize) return status;
  status = ctx->dev->ops->stream_synchronize(&ctx->dev->desc, ctx->stream);
  qn__collectives_waited(ctx);
  const qn_status group = qn__group_broken(ctx, false);
  return group ? group : status;
}

/* ---- arena -------------------------------------------------------------------------------------------------- */

qn_status qn_context_set_allocator(qn_context *ctx, const qn_allocator *allocator)
{
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use_device(ctx, &use);
  if (status) return status;
  if (allocator && (allocator->struct_size < sizeof *allocator || !allocator->alloc || !allocator->free))
    return qn__fail(QN_BAD_ARGUMENT, "allocator: struct_size must be sizeof(qn_allocator), and alloc and free be given");
  if (ctx->recorded) return qn__fail(QN_NOT_READY, "ctx: its recordings use its workspace; set the allocator before the first of them");
  if ((status = qn_context_synchronize(ctx))) return status;
  free_arena(ctx);
  ctx->allocator = allocator ? *allocator : (qn_allocator){0};
  qn__context_forget(ctx);                                      /* the next lookup of their plans grows the new arena */
  return QN_OK;
}

/* The retired block is kept: work in flight and recordings may use it. */
static qn_status grow(qn_context *ctx, void **block, uint64_t *have, uint64_t need)
{
  void *p = NULL;
  qn_status status = QN_OK;
  if (*block) {
    size_t n = (size_t)ctx->n_retired;
    void **blocks = qn__realloc(ctx->retired, n * sizeof *blocks, (n + 1) * sizeof *blocks);
    if (blocks) ctx->retired = blocks;
    uint64_t *bytes = qn__realloc(ctx->retired_bytes, n * sizeof *bytes, (n + 1) * sizeof *bytes);
    if (bytes) ctx->retired_bytes = bytes;
    if (!blocks || !bytes) return qn__fail(QN_NO_MEMORY, "no memory to grow the workspace");
  }
  if (ctx->allocator.alloc) {
    if (!(p = ctx->allocator.alloc(ctx->allocator.user, need)))
      return qn__fail(QN_NO_MEMORY, "the caller's allocator gave no workspace of %llu bytes", (unsigned long long)need);
    if ((uintptr_t)p & 255) {
      if (ctx->allocator.free) ctx->allocator.free(ctx->allocator.user, p, need);
      return qn__fail(QN_BAD_ARGUMENT, "the caller's allocator gave %p; a workspace is aligned to 256 bytes", p);
    }
  } else if ((status = ctx->dev->ops->alloc(&ctx->dev->desc, need, &p))) return status;
  if (*block) {
    ctx->retired[ctx->n_retired] = *block;
    ctx->retired_bytes[ctx->n_retired++] = *have;
  }
  *block = p;
  *have = need;
  return QN_OK;
}

qn_status qn__context_room(void **block, uint64_t *have, uint64_t need)
{
  if (need <= *have) return QN_OK;
  void *p = qn__alloc(need);
  if (!p) return qn__fail(QN_NO_MEMORY, "no host memory of %llu bytes for a context", (unsigned long long)need);
  qn__free(*block);
  *block = p;
  *have = need;
  return QN_OK;
}

/* Work in flight may use the old block, so wait; no recording does, since the fallback's host copies cannot be captured. */
static qn_status grow_staging(qn_context *ctx, uint64_t need)
{
  qn_status status = ctx->dev->ops->stream_synchronize ? ctx->dev->ops->stream_synchronize(&ctx->dev->desc, ctx->stream) : QN_OK;
  if (status) return status;
  return qn__context_room(&ctx->staging, &ctx->staging_bytes, need);
}

/* Streams and events for p's lanes. */
static qn_status make_lanes(qn_context *ctx, const qn_plan *p)
{
  const qn_device *dev = &ctx->dev->desc;
  qn_status status = QN_OK;
  if (!ctx->n_lanes) ctx->n_lanes = 1;
  while (ctx->n_lanes < p->n_lanes && !(status = ctx->dev->ops->stream_create(dev, &ctx->lane[ctx->n_lanes]))) ctx->n_lanes++;
  void **event = status || p->n_events <= ctx->n_events ? ctx->event
               : qn__realloc(ctx->event, ctx->n_events * sizeof *event, p->n_events * sizeof *event);
  if (!event) return status ? status : qn__fail(QN_NO_MEMORY, "no memory for a context's events");
  ctx->event = event;
  for (; ctx->n_events < p->n_events && !status; ctx->n_events += !status)
    status = ctx->dev->ops->event_create_untimed(dev, &event[ctx->n_events]);
  return status;
}

qn_status qn__context_ready(qn_context *ctx, const qn_plan *p)
{
  uint64_t saved, missing = p->instances & ~ctx->opened;
  bool grows = p->workspace > ctx->workspace_bytes || p->counters > ctx->counters_bytes || p->staging > ctx->staging_bytes ||
               p->scratch > ctx->scratch_bytes;
  qn_status status;
  bool lanes = p->n_lanes > 1 && (p->n_lanes > ctx->n_lanes || p->n_events > ctx->n_events), unclean = p->counters && ctx->counters_unclean;
  if (!missing && !grows && !lanes && !unclean) return QN_OK;
  if (qn__context_capturing(ctx))
    return qn__fail(QN_NOT_READY, "the plan needs workspace (%llu bytes in all), streams or instances that ctx has not, and a recording "
                    "captures; run the step once first", (unsigned long long)p->workspace);
  if ((status = qn__enter(ctx->dev, &saved))) return status;
  status = qn__context_open(ctx, missing);
  if (!status && p->workspace > ctx->workspace_bytes) status = grow(ctx, &ctx->workspace, &ctx->workspace_bytes, p->workspace);
  if (!status && p->counters > ctx->counters_bytes) {
    status = grow(ctx, &ctx->counters, &ctx->counters_bytes, p->counters);
    unclean = ctx->counters_unclean |= !status;
  }
  if (!status && unclean) {
    status = ctx->dev->ops->fill(&ctx->dev->desc, ctx->counters, 0, ctx->counters_bytes, ctx->stream);
    ctx->counters_unclean = status;
  }
  if (!status && p->staging > ctx->staging_bytes) status = grow_staging(ctx, p->staging);
  if (!status) status = qn__context_room(&ctx->scratch, &ctx->scratch_bytes, p->scratch);
  if (!status && lanes) status = make_lanes(ctx, p);
  qn__leave(ctx->dev, saved);
  return status;
}

qn_status qn_context_reserve(qn_context *ctx, const qn_plan *plan)
{
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use(ctx, &use);
  if (status || (status = qn__plan_suits(ctx, plan))) return status;
  return qn__context_ready(ctx, plan);
}

/* ---- timing ----------------------------------------------------------------------------------------------------------- */

/* dev: the timer may outlive ctx; NULL: destroyed */
struct qn_timer { qn_context *ctx; qn__device *dev; void *start, *stop; };

qn_status qn_timer_create(qn_context *ctx, qn_timer **timer_p)
{
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use_device(ctx, &use);
  if (status) return status;
  if (!timer_p) return qn__fail(QN_BAD_ARGUMENT, "timer_p: is NULL");
  qn_timer *t = qn__object_new(QN_OBJECT_TIMER, sizeof *t);
  if (!t) return qn__fail(QN_NO_MEMORY, "no memory for a timer");
  t->ctx = ctx;
  t->dev = ctx->dev;
  if (!(status = t->dev->ops->event_create(&t->dev->desc, &t->start)) &&
      !(status = t->dev->ops->event_create(&t->dev->desc, &t->stop))) {
    *timer_p = t;
    return QN_OK;
  }
  if (t->start) t->dev->ops->event_destroy(&t->dev->desc, t->start);
  t->dev = NULL;
  qn__object_free(QN_OBJECT_TIMER, t);
  return status;
}

qn_status qn_timer_start(qn_timer *timer)
{
  if (!timer) return qn__fail(QN_BAD_ARGUMENT, "timer: is NULL");
  if (!timer->dev) return qn__destroyed("timer");
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use_device(timer->ctx, &use);
  return status ? status : timer->dev->ops->event_record(&timer->dev->desc, timer->start, timer->ctx->stream);
}

qn_status qn_timer_stop(qn_timer *timer, double *ns)
{
  if (!timer || !ns) return qn__fail(QN_BAD_ARGUMENT, "%s: is NULL", timer ? "ns" : "timer");
  if (!timer->dev) return qn__destroyed("timer");
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use_device(timer->ctx, &use);
  if (status || (status = timer->dev->ops->event_record(&timer->dev->desc, timer->stop, timer->ctx->stream))) return status;
  return timer->dev->ops->event_elapsed(&timer->dev->desc, timer->start, timer->stop, ns);
}

void qn_timer_destroy(qn_timer *timer)
{
  uint64_t saved;
  if (!timer) return;
  if (!timer->dev) {
    qn__log_destroyed("timer");
    return;
  }
  if (!qn__enter(timer->dev, &saved)) {
    timer->dev->ops->event_destroy(&timer->dev->desc, timer->start);
    timer->dev->ops->event_destroy(&timer->dev->desc, timer->stop);
    qn__leave(timer->dev, saved);
  }
  timer->dev = NULL;
  qn__object_free(QN_OBJECT_TIMER, timer);
}
