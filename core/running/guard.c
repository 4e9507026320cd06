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
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LOOK = 50, PATIENCE = 10000 };     /* milliseconds between looks; that leaving a group waits for the guard */

struct qn__guard {
  pthread_mutex_t lock;
  pthread_cond_t  changed;
  pthread_t       thread;
  qn_context     *ctx;
  qn_group       *group;
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

/* The context's thread has been in one call for so long. */
static qn_status look(const qn__guard *guard, int64_t *since, int64_t now)
{
  const qn_context *ctx = guard->ctx;
  qn_group *g = guard->group;
  int done = 0;
  if (pthread_mutex_trylock(&g->meeting.lock)) {      /* it is in the group's code, and watches itself */
    *since = now;
    return QN_OK;
  }
  pthread_mutex_unlock(&g->meeting.lock);
  qn_status status = qn__meeting_watch(&g->meeting);
  if (status || now - *since <= g->ranks.deadline) return status;
  if (!ctx->dev->ops->stream_done(&ctx->dev->desc, ctx->stream, &done) && done) {       /* it does not wait for the device */
    *since = now;
    return QN_OK;
  }
  char why[200];
  snprintf(why, sizeof why, "the group has failed: rank %d waited %.3g s, its deadline, for its device, where collectives wait for the "
           "other ranks", g->ranks.rank, (double)g->ranks.deadline / 1000);
  return qn__meeting_fail(&g->meeting, why);
}

/* Without the lock: an engine may have to wait for recordings that use what it ends. */
static void break_off(qn__guard *guard, qn_group *g)
{
  qn__slot slot[QN__SLOTS];
  memcpy(slot, g->slot, sizeof slot);
  atomic_store(&g->broken, QN__BROKEN);
  pthread_mutex_unlock(&guard->lock);
  for (int i = 0; i < QN__SLOTS; i++)
    if (slot[i].own) slot[i].leave(slot[i].own, QN__BREAK);
  pthread_mutex_lock(&guard->lock);
}

static void watch(qn__guard *guard)
{
  qn_context *ctx = guard->ctx;
  qn_group *g = guard->group;
  uint64_t seen = 0;
  int64_t since = 0;
  while (guard->state == WATCHES) {
    wait_for(guard, LOOK);
    if (guard->state != WATCHES || atomic_load(&g->broken)) continue;
    const int64_t now = qn__now();
    const uint64_t calls = atomic_load(&ctx->calls);
    if (calls != seen || !(atomic_load(&ctx->user) | (uintptr_t)atomic_load(&ctx->frees))) {
      seen = calls;
      since = now;
    } else if (now - since >= LOOK && look(guard, &since, now)) break_off(guard, g);
  }
}

static void *guard_main(void *arg)
{
  qn__guard *guard = arg;
  const qn__device *dev = guard->ctx->dev;
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
  const int64_t most = failed ? PATIENCE / 10 : PATIENCE, until = qn__now() + (g->ranks.deadline < most ? g->ranks.deadline : most);
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
    pthread_join(guard->thread, NULL);
    free_guard(guard);
  } else {
    pthread_detach(guard->thread);
    qn__log(QN_LOG_WARN, "a group that was left keeps what its collectives communicated by until the recordings that hold it are destroyed");
  }
}

qn_status qn__group_broken(const qn_context *ctx, bool again)
{
  qn_group *g = ctx->group;
  const int state = g ? atomic_load(&g->broken) : QN__WHOLE;
  if (state == QN__WHOLE || (state == QN__TOLD && !again)) return QN_OK;
  atomic_store(&g->broken, QN__TOLD);
  return qn__meeting_watch(&g->meeting);
}
