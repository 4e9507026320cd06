/* guard.c -- a thread beside each context of a device with streams that has joined a group.
 *
 * A collective that waits on the device for a rank that has died, or is late, holds up the context's thread in whatever call comes next: a
 * wait, a copy, memory given back, or any launch once enough is enqueued. The guard sees a call that takes long, watches the group
 * meanwhile, and when that has failed or its deadline has passed has the engines abort what is under way, so that the call returns.
 *
 * It also ends what engines keep for a group that the context leaves, since that may wait for recordings that use it: those that are
 * destroyed later are waited for by the guard alone. */
#include "config.h"
#include "ranks/group.h"
#include <quern/collective.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOOK = 50, PATIENCE = 5000 };     /* milliseconds between looks; that leaving a group waits for the guard */

struct qn__guard {
  pthread_mutex_t lock;
  pthread_cond_t  changed;
  pthread_t       thread;
  qn_context     *ctx;
  qn_group       *group;
  qn__device     *dev;
  enum { WATCHES, LEAVES, HAS_LEFT } state;
  bool            failed, alone;          /* the group has failed; nobody waits for the guard any more */
  qn__slot        slot[QN__SLOTS];        /* to end */
};

static void free_guard(qn__guard *guard)
{
  pthread_cond_destroy(&guard->changed);
  pthread_mutex_destroy(&guard->lock);
  qn__free(guard);
}

static void wait_for(qn__guard *guard, int64_t ms)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  t.tv_sec += ms / 1000;
  t.tv_nsec += ms % 1000 * 1000000;
  if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
  pthread_cond_timedwait(&guard->changed, &guard->lock, &t);
}

/* Whether the deadline has passed for a call that began at *since. It counts for a plan or a recording with collectives, wherever that is held
 * up, and for what waits for a device that collectives were enqueued on; else the call has other reasons to take long. */
static bool is_late(const qn__guard *guard, int64_t *since, int64_t now)
{
  const qn_context *ctx = guard->ctx;
  const qn_group *g = guard->group;
  int done = 0;
  if (now - *since <= g->ranks.deadline) return false;
  if (atomic_load(&g->inside)) return true;
  if (atomic_load(&g->enqueued) && !ctx->dev->ops->stream_done(&ctx->dev->desc, ctx->stream, &done) && !done) return true;
  *since = now;
  return false;
}

/* A call has taken long. */
static qn_status look(const qn__guard *guard, int64_t *since, int64_t now)
{
  qn_group *g = guard->group;
  if (pthread_mutex_trylock(&g->meeting.lock)) {      /* the context's thread is in an exchange, which has its own deadline */
    *since = now;
    return QN_OK;
  }
  pthread_mutex_unlock(&g->meeting.lock);
  const qn_status status = qn__meeting_watch(&g->meeting);
  if (status || !is_late(guard, since, now)) return status;
  char why[200];
  snprintf(why, sizeof why, "the group has failed: rank %d waited %.3g s, its deadline, for its device, where collectives wait for the "
           "other ranks", g->ranks.rank, (double)g->ranks.deadline / 1000);
  return qn__meeting_fail(&g->meeting, why);
}

/* Without the lock: an engine may have to wait for recordings that use what it ends. An engine that stores its pointer later watches the
 * group afterwards. */
static void break_off(qn__guard *guard, qn_group *g)
{
  struct { void (*leave)(void *own, int failed); void *own; } to[QN__SLOTS];
  int n = 0;
  atomic_store(&g->broken, QN__BROKEN);
  for (int i = 0; i < QN__SLOTS; i++)
    if ((to[n].own = __atomic_load_n(&g->slot[i].own, __ATOMIC_ACQUIRE))) to[n++].leave = g->slot[i].leave;
  pthread_mutex_unlock(&guard->lock);
  for (int i = 0; i < n; i++) to[i].leave(to[i].own, QN_COLLECTIVE_BREAK);
  pthread_mutex_lock(&guard->lock);
}

/* Calls with the context, or of any thread that gives memory back: since when the latest has been under way; 0: none is. */
typedef struct seen { uint64_t count; int64_t since; } seen;
static bool takes_long(seen *s, uint64_t count, bool any, int64_t now)
{
  if (count == s->count && any) return now - s->since >= LOOK;
  *s = (seen){ count, now };
  return false;
}

static void watch(qn__guard *guard)
{
  qn_context *ctx = guard->ctx;
  qn_group *g = guard->group;
  seen calls = { 0, 0 }, frees = { 0, 0 };
  while (guard->state == WATCHES) {
    wait_for(guard, LOOK);
    if (guard->state != WATCHES || atomic_load(&g->broken)) continue;
    const int64_t now = qn__now();
    const bool call = takes_long(&calls, atomic_load(&ctx->calls), atomic_load(&ctx->user), now);
    const bool frees_long = takes_long(&frees, atomic_load(&ctx->frees), atomic_load(&ctx->freeing) > 0, now);
    if ((call && look(guard, &calls.since, now)) || (frees_long && look(guard, &frees.since, now))) break_off(guard, g);
  }
}

static void *guard_main(void *arg)
{
  qn__guard *guard = arg;
  const qn__device *dev = guard->dev;
  uint64_t saved;
  const bool entered = !qn__enter(dev, &saved);       /* now, since the driver may be held up later */
  pthread_mutex_lock(&guard->lock);
  watch(guard);
  pthread_mutex_unlock(&guard->lock);
  qn__slots_end(guard->slot, guard->failed);
  if (entered) qn__leave(dev, saved);
  pthread_mutex_lock(&guard->lock);
  guard->state = HAS_LEFT;
  const bool alone = guard->alone;
  pthread_cond_signal(&guard->changed);
  pthread_mutex_unlock(&guard->lock);
  if (alone) free_guard(guard);
  return NULL;
}

qn_status qn__guard_start(qn_context *ctx, qn_group *g)
{
  pthread_condattr_t attr;
  sigset_t all, before;
  if (g->ranks.size == 1 || !ctx->dev->ops->stream_done) return QN_OK;
  qn__guard *guard = qn__alloc(sizeof *guard);
  if (!guard) return qn__fail(QN_NO_MEMORY, "no memory for a group");
  guard->ctx = ctx;
  guard->group = g;
  guard->dev = ctx->dev;
  pthread_mutex_init(&guard->lock, NULL);
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&guard->changed, &attr);
  pthread_condattr_destroy(&attr);
  sigfillset(&all);                       /* signals are the program's threads' */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&guard->thread, NULL, guard_main, guard);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error) {
    free_guard(guard);
    return qn__fail(QN_SYSTEM, "no thread to watch a group: %s", strerror(error));
  }
  g->guard = guard;
  return QN_OK;
}

void qn__guard_end(qn_group *g, bool failed)
{
  qn__guard *guard = g->guard;
  if (!guard) {
    qn__slots_end(g->slot, failed || g->meeting.failed);
    return;
  }
  g->guard = NULL;
  pthread_mutex_lock(&guard->lock);
  failed |= g->meeting.failed;
  const int64_t until = qn__now() + (failed ? PATIENCE / 5 : PATIENCE);
  const pthread_t thread = guard->thread;
  memcpy(guard->slot, g->slot, sizeof guard->slot);
  memset(g->slot, 0, sizeof g->slot);
  guard->failed = failed;
  guard->state = LEAVES;
  pthread_cond_signal(&guard->changed);
  while (guard->state != HAS_LEFT && qn__now() < until) wait_for(guard, LOOK);
  const bool over = guard->state == HAS_LEFT;
  guard->alone = !over;
  pthread_mutex_unlock(&guard->lock);
  if (over) {
    pthread_join(thread, NULL);
    free_guard(guard);
  } else {
    pthread_detach(thread);           /* guard may be gone */
    qn__log(QN_LOG_WARN, "a group that was left keeps what its collectives communicated by until the recordings that hold it are destroyed");
  }
}

void qn__collectives_begin(const qn_context *ctx)
{
  if (!ctx->group) return;
  atomic_store(&ctx->group->enqueued, true);
  atomic_store(&ctx->group->inside, true);
}

void qn__collectives_end(const qn_context *ctx)
{
  if (ctx->group) atomic_store(&ctx->group->inside, false);
}

void qn__collectives_waited(const qn_context *ctx)
{
  if (ctx->group) atomic_store(&ctx->group->enqueued, false);
}

qn_status qn__group_broken(const qn_context *ctx, bool again)
{
  qn_group *g = ctx->group;
  const int state = g ? atomic_load(&g->broken) : QN__WHOLE;
  if (state == QN__WHOLE || (state == QN__TOLD && !again)) return QN_OK;
  atomic_store(&g->broken, QN__TOLD);
  return qn__meeting_watch(&g->meeting);
}
