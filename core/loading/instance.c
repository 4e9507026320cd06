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
  const qn_open with = { .struct_size = sizeof with, .host = &qn__host, .device = &ctx->dev->desc, .stream = ctx->stream,
                         .ranks = qn__context_ranks(ctx) };
  qn_status status = *mine ? QN_OK : b->table->open(&with, mine);
  if (!status) ctx->opened |= UINT64_C(1) << b->instance;
  *instance = *mine;
  return status;
}

void qn__context_close(qn_context *ctx)
{
  for (const qn__backend *b = qn__backends_here(); b; b = b->next) {
    void **mine = b->instance >= 0 ? &ctx->instance[b->instance] : NULL;
    if (mine && *mine && b->table->close) b->table->close(*mine);
    if (mine) *mine = NULL;
  }
  ctx->opened = 0;
}

qn_status qn__context_open(qn_context *ctx, uint64_t which)
{
  void *instance;
  qn_status status = QN_OK;
  for (const qn__backend *b = qn__backends_here(); b && !status; b = b->next)
    if (b->instance >= 0 && which >> b->instance & 1) status = qn__context_instance(ctx, b, &instance);
  return status;
}
