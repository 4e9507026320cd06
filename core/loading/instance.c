/* instance.c -- what planning asks of a context: its device, whether a recording captures, the instances of its backends. */
#include "config.h"
#include "core.h"
#include <stdio.h>
#include <string.h>

bool qn__context_known(const qn_context *ctx) { return (ctx && ctx->generation) || !qn__context_alive(ctx); }

const char *qn_context_device(const qn_context *ctx)
{
  static _Thread_local char text[128];
  if (!qn__context_known(ctx)) return "?";
  const qn_device *d = &ctx->dev->desc;
  if (!strcmp(d->kind, "cpu")) return "cpu";
  snprintf(text, sizeof text, "%s:%d (%s)", d->kind, (int)d->ordinal, d->name);
  return text;
}

const qn_device *qn_context_describe(const qn_context *ctx) { return qn__context_known(ctx) ? &ctx->dev->desc : NULL; }

bool qn__context_capturing(qn_context *ctx)
{
  int yes = ctx->recording != NULL;
  uint64_t saved;
  if (yes || !ctx->dev->ops->capturing) return yes;
  if (qn__enter(ctx->dev, &saved)) return true;
  if (ctx->dev->ops->capturing(&ctx->dev->desc, ctx->stream, &yes)) yes = 1;
  qn__leave(ctx->dev, saved);
  return yes != 0;
}

qn_status qn__context_instance(qn_context *ctx, const qn__backend *b, void **instance)
{
  *instance = NULL;
  if (b->instance < 0) return QN_OK;
  void **mine = &ctx->instance[b->instance];
  qn_status status = *mine ? QN_OK : b->table->open(&qn__host, &ctx->dev->desc, ctx->stream, mine);
  if (!status) ctx->opened |= UINT64_C(1) << b->instance;
  *instance = *mine;
  return status;
}
