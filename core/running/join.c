/* join.c -- contexts that join a group, and wait for work in which other ranks take part. */
#include "config.h"
#include "ranks/group.h"
#include <stdio.h>
#include <time.h>

qn_status qn_context_join(qn_context *ctx, qn_group *group)
{
  const qn__policy *policy;
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use(ctx, &use);
  if (status || (group && (status = qn__group_alive(group)))) return status;
  if (group == ctx->group) return QN_OK;
  if (ctx->recording) return qn__fail(QN_NOT_READY, "ctx: is recording; end the recording before it joins another group");
  if (group && group->ctx) return qn__fail(QN_BAD_ARGUMENT, "group: a context has joined it; a context is one rank");
  qn_status waited = qn_context_synchronize(ctx);     /* leaving must be possible after a failure */
  if (group && waited) return waited;
  const int32_t was = ctx->settings.ranks;
  ctx->settings.ranks = group ? group->ranks.size : 0;
  if ((status = qn__policy_intern(ctx->dev, &ctx->settings, ctx->backend, ctx->n_backends, &policy))) {
    ctx->settings.ranks = was;
    return status;
  }
  if (policy != ctx->policy) qn__context_forget(ctx);
  ctx->policy = policy;
  uint64_t saved;
  const uint64_t were = ctx->recorded ? 0 : ctx->opened;        /* recordings use what the instances have */
  const bool entered = !qn__enter(ctx->dev, &saved);
  if (entered && were) qn__context_close(ctx);
  if (ctx->group) {
    qn__group_empty(ctx->group, waited != QN_OK);
    ctx->group->ctx = NULL;
  }
  ctx->group = group;
  ctx->joined++;
  if (entered && qn__context_open(ctx, were)) {
    qn__log(QN_LOG_WARN, "%s", qn_last_error());
    qn__context_forget(ctx);                          /* the next lookup of their plans opens what is missing, or says why not */
  }
  if (entered) qn__leave(ctx->dev, saved);
  if (group) {
    group->ctx = ctx;
    group->leave = qn_context_join;
  }
  return QN_OK;
}

/* Time that collectives have to end once they were aborted. */
enum { GRACE = 10000 };

qn_status qn__group_wait(qn_context *ctx)
{
  const qn_device_ops *ops = ctx->dev->ops;
  qn_group *g = ctx->group;
  const int64_t since = qn__now();
  qn_status status = QN_OK;
  int done = 0, used = 0;
  for (int i = 0; g && i < QN__SLOTS; i++) used |= g->slot[i].own != NULL;
  if (!used || g->ranks.size == 1 || !ops->stream_done) return QN_OK;
  for (int64_t looked = since, aborted = 0; !done;) {
    if (ops->stream_done(&ctx->dev->desc, ctx->stream, &done)) return status;   /* the synchronisation that follows tells */
    const int64_t now = qn__now();
    if (now - since > 1) nanosleep(&(struct timespec){ 0, 20000 }, NULL);
    if (done || now - looked < 50) continue;
    looked = now;
    if (aborted) {
      if (now - aborted > GRACE) return status;
      continue;
    }
    status = qn__meeting_watch(&g->meeting);
    if (!status && now - since > g->ranks.deadline) {
      char why[200];
      snprintf(why, sizeof why, "the group has failed: rank %d waited %.3g s, its deadline, for its device, where collectives wait for "
               "the other ranks", g->ranks.rank, (double)g->ranks.deadline / 1000);
      status = qn__meeting_fail(&g->meeting, why);
    }
    if (!status) continue;
    aborted = now;
    char kept[1024];
    snprintf(kept, sizeof kept, "%s", qn_last_error());
    qn__group_empty(g, 1);
    qn__fail(status, "%s", kept);
  }
  return status;
}
