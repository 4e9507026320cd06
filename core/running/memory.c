/* memory.c -- memory of a context's device, host memory for it, and copies between them. */
#include "config.h"
#include "core.h"
#include <stdlib.h>

/* ---- allocation ------------------------------------------------------------------------------------------------------ */

typedef qn_status alloc_fn(const qn_device *, size_t, void **);
typedef void free_fn(const qn_device *, void *);

static qn_status allocate(qn_context *ctx, alloc_fn *alloc, size_t bytes, void **p)
{
  *p = NULL;
  return bytes ? alloc(&ctx->dev->desc, bytes, p) : QN_OK;
}

/* It may wait for the device. */
static void release(qn_context *ctx, free_fn *give_back, void *p)
{
  uint64_t saved;
  if (!p || qn__context_alive(ctx) || qn__enter(ctx->dev, &saved)) return;
  atomic_fetch_add(&ctx->frees, 1);
  atomic_fetch_add(&ctx->freeing, 1);
  give_back(&ctx->dev->desc, p);
  atomic_fetch_sub(&ctx->freeing, 1);
  qn__leave(ctx->dev, saved);
}

qn_status qn_alloc(qn_context *ctx, size_t bytes, void **p)
{
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use_device(ctx, &use);
  if (status) return status;
  return p ? allocate(ctx, ctx->dev->ops->alloc, bytes, p) : qn__fail(QN_BAD_ARGUMENT, "p: is NULL");
}

void qn_free(qn_context *ctx, void *p)
{
  if (p && ctx) release(ctx, ctx->dev->ops->free, p);
}

/* If the provider has no pinned memory, ordinary host memory serves. */
static qn_status plain_alloc(const qn_device *device, size_t bytes, void **p)
{
  (void)device;
  if (posix_memalign(p, 256, bytes) == 0) return QN_OK;
  *p = NULL;
  return qn__fail(QN_NO_MEMORY, "no host memory of %zu bytes", bytes);
}

static void plain_free(const qn_device *device, void *p)
{
  (void)device;
  free(p);
}

qn_status qn_alloc_host(qn_context *ctx, size_t bytes, void **p)
{
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use_device(ctx, &use);
  if (status) return status;
  if (!p) return qn__fail(QN_BAD_ARGUMENT, "p: is NULL");
  return allocate(ctx, ctx->dev->ops->alloc_host ? ctx->dev->ops->alloc_host : plain_alloc, bytes, p);
}

void qn_free_host(qn_context *ctx, void *p)
{
  if (p && ctx) release(ctx, ctx->dev->ops->free_host ? ctx->dev->ops->free_host : plain_free, p);
}

/* ---- copies ---------------------------------------------------------------------------------------------------------- */

/* Enqueues a copy; on a device without streams the call itself copies. */
static qn_status enqueue(qn_context *ctx, void *to, const void *from, size_t bytes, int kind, bool waits)
{
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use_device(ctx, &use);
  if (status) return status;
  const qn_device_ops *ops = ctx->dev->ops;
  if (bytes && (!to || !from)) return qn__fail(QN_BAD_ARGUMENT, "a pointer to copy %s is NULL", to ? "from" : "to");
  if (ctx->recording && waits)
    return qn__fail(QN_NOT_READY, "ctx: is recording; a copy that is waited for cannot be part of a recording, an _async one can");
  if (!bytes) return QN_OK;
  if (ctx->recording && !ops->capture_begin) return qn__record_copy(ctx, to, from, bytes, kind);
  status = ops->copy(&ctx->dev->desc, to, from, bytes, kind, ctx->stream);
  if (!status && waits && ops->stream_synchronize) status = ops->stream_synchronize(&ctx->dev->desc, ctx->stream);
  if (!waits) return status;
  qn__collectives_waited(ctx);
  const qn_status group = qn__group_broken(ctx, false);
  return group ? group : status;
}

qn_status qn_copy_to_device(qn_context *ctx, void *device, const void *host, size_t bytes)
{
  return enqueue(ctx, device, host, bytes, QN_COPY_TO_DEVICE, true);
}

qn_status qn_copy_to_host(qn_context *ctx, void *host, const void *device, size_t bytes)
{
  return enqueue(ctx, host, device, bytes, QN_COPY_TO_HOST, true);
}

qn_status qn_copy_to_device_async(qn_context *ctx, void *device, const void *host, size_t bytes)
{
  return enqueue(ctx, device, host, bytes, QN_COPY_TO_DEVICE, false);
}

qn_status qn_copy_to_host_async(qn_context *ctx, void *host, const void *device, size_t bytes)
{
  return enqueue(ctx, host, device, bytes, QN_COPY_TO_HOST, false);
}
