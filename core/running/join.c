/* join.c -- contexts that join a group. */
#include "config.h"
#include "ranks/group.h"

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
  if (group && (waited || (status = qn__guard_start(ctx, group)))) return waited ? waited : status;
  const int32_t was = ctx->settings.ranks;
  ctx->settings.ranks = group ? group->ranks.size : 0;
  if ((status = qn__policy_intern(ctx->dev, &ctx->settings, ctx->backend, ctx->n_backends, &policy))) {
    if (group) {
      ctx->settings.ranks = was;
      qn__guard_end(group, false);
      return status;
    }
    policy = ctx->policy;                             /* leaving must be possible; plans with collectives are refused by their size */
  }
  if (policy != ctx->policy) qn__context_forget(ctx);
  ctx->policy = policy;
  uint64_t saved;
  const uint64_t were = ctx->recorded ? 0 : ctx->opened;        /* recordings use what the instances have */
  const bool entered = !qn__enter(ctx->dev, &saved);
  if (entered && were) qn__context_close(ctx);
  if (ctx->group) {
    qn__guard_end(ctx->group, waited != QN_OK);
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
