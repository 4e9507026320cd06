/* record.c -- recordings: where the device captures, its own graph; else a list of executions. A recording keeps its plans
 * alive, for a captured graph too uses their state; and a context that has recorded keeps all its workspace until destroyed. */
#include "config.h"
#include "core.h"
#include <string.h>

/* An execution (if the device captures: only its plan), or (plan NULL) a copy from ptr[1] to ptr[0]. */
typedef struct entry { qn_plan *plan; void **ptr; void *scalars; size_t bytes; int kind; } entry;

struct qn_recording {
  qn__device *dev;
  uint64_t    owner;                      /* id of the context that made it, which may be gone; 0: the recording is destroyed */
  void       *native;                     /* the device's recording; NULL: use the list */
  uint64_t    profile;                    /* its row there */
  int32_t     ranks;                      /* as a plan's, of any of its plans */
  uint64_t    joined;                     /* the context's, then */
  entry      *list;
  int         n, cap;
  void       *workspace, *counters;
};

static void free_recording(qn_recording *r)
{
  r->owner = 0;
  qn__object_free(QN_OBJECT_RECORDING, r);
}

qn_status qn_record_begin(qn_context *ctx)
{
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use_device(ctx, &use);
  if (status) return status;
  if (ctx->recording) return qn__fail(QN_NOT_READY, "ctx: is recording already");
  qn_recording *r = qn__object_new(QN_OBJECT_RECORDING, sizeof *r);
  if (!r) return qn__fail(QN_NO_MEMORY, "no memory for a recording");
  r->dev = ctx->dev;
  r->owner = ctx->id;
  r->profile = qn__profile_id();
  r->ranks = -1;
  r->joined = ctx->joined;
  if (ctx->dev->ops->capture_begin && (status = ctx->dev->ops->capture_begin(&ctx->dev->desc, ctx->stream))) {
    free_recording(r);
    return status;
  }
  ctx->recording = r;
  ctx->recorded = true;
  return QN_OK;
}

/* Host scalars keep their present value: copies it into the entry. */
static qn_status keep_scalars(entry *e)
{
  const qn_graph_view *g = &e->plan->graph->view;
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->n_pointers; i++) n += (g->value[g->pointer[i]].flags & QN_VALUE_HOST) != 0;
  if (!n) return QN_OK;
  char *at = e->scalars = qn__alloc(n * 8);
  if (!at) return qn__fail(QN_NO_MEMORY, "no memory for a recording");
  for (uint32_t i = 0; i < g->n_pointers; i++) {
    const qn_value *v = &g->value[g->pointer[i]];
    if (!(v->flags & QN_VALUE_HOST)) continue;
    e->ptr[i] = memcpy(at, e->ptr[i], qn_dtype_bytes(v->dtype));
    at += 8;
  }
  return QN_OK;
}

/* Appends e to the list, with its own copy of n pointers. */
static qn_status add(qn_recording *r, entry e, void *const *ptr, size_t n)
{
  entry *grown = qn__grown(r->list, r->n, &r->cap, sizeof *grown);
  if (grown) r->list = grown;
  if (!grown || !(e.ptr = qn__alloc((n + 1) * sizeof *e.ptr))) return qn__fail(QN_NO_MEMORY, "no memory for a recording");
  memcpy(e.ptr, ptr, n * sizeof *e.ptr);
  qn_status status = e.plan && n ? keep_scalars(&e) : QN_OK;
  if (status) {
    qn__free(e.ptr);
    return status;
  }
  if (e.plan) atomic_fetch_add(&e.plan->refs, 1);
  r->list[r->n++] = e;
  return QN_OK;
}

qn_status qn__record_add(qn_context *ctx, const qn_plan *p, void *const *ptr)
{
  if (p->ranks >= 0) ctx->recording->ranks = p->ranks;
  return add(ctx->recording, (entry){ .plan = (qn_plan *)p }, ptr, ctx->dev->ops->capture_begin ? 0 : p->n_pointers);
}

qn_status qn__record_copy(qn_context *ctx, void *to, const void *from, size_t bytes, int kind)
{
  void *const ptr[] = { to, (void *)(uintptr_t)from };
  return add(ctx->recording, (entry){ .bytes = bytes, .kind = kind }, ptr, 2);
}

qn_status qn_record_end(qn_context *ctx, qn_recording **recording_p)
{
  uint64_t saved;
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use(ctx, &use);
  if (status) return status;
  if (!recording_p) return qn__fail(QN_BAD_ARGUMENT, "recording_p: is NULL");
  qn_recording *r = ctx->recording;
  if (!r) return qn__fail(QN_NOT_READY, "ctx: is not recording");
  ctx->recording = NULL;
  r->workspace = ctx->workspace;
  r->counters = ctx->counters;
  if (ctx->dev->ops->capture_begin && !(status = qn__enter(ctx->dev, &saved))) {       /* if that fails, it has ended all the same */
    status = ctx->dev->ops->capture_end(&ctx->dev->desc, ctx->stream, &r->native);
    qn__leave(ctx->dev, saved);
  }
  if (status) qn_recording_destroy(r);
  else *recording_p = r;
  return status;
}

qn_status qn_recording_replay(qn_context *ctx, qn_recording *recording)
{
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use_device(ctx, &use);
  if (status) return status;
  if (!recording) return qn__fail(QN_BAD_ARGUMENT, "recording: is NULL");
  if (!recording->owner) return qn__destroyed("recording");
  if (recording->owner != ctx->id) return qn__fail(QN_BAD_ARGUMENT, "recording: was made by another context, whose workspace it uses");
  if (ctx->recording) return qn__fail(QN_NOT_READY, "ctx: is recording; a recording cannot be part of another");
  if ((status = qn__ranks_suit(ctx, "recording", recording->ranks))) return status;
  if (ctx->dev->ops->capture_begin) {
    if (recording->ranks >= 0 && recording->joined != ctx->joined)
      return qn__fail(QN_BAD_ARGUMENT, "recording: holds what its collectives communicated by, which ended as ctx left the group; "
                      "record anew");
    if (recording->ranks >= 0) qn__collectives_begin(ctx);
    status = qn__profile_replay(ctx, recording->profile, recording->n, recording->native);
    if (recording->ranks >= 0) qn__collectives_end(ctx);
    return status;
  }
  for (int i = 0; i < recording->n && !status; i++) {
    const entry *e = &recording->list[i];
    status = e->plan ? qn__plan_run(ctx, e->plan, e->ptr, recording->workspace, recording->counters)
                     : ctx->dev->ops->copy(&ctx->dev->desc, e->ptr[0], e->ptr[1], e->bytes, e->kind, ctx->stream);
  }
  return status;
}

void qn_recording_destroy(qn_recording *recording)
{
  uint64_t saved;
  if (!recording) return;
  if (!recording->owner) {
    qn__log_destroyed("recording");
    return;
  }
  if (recording->native && !qn__enter(recording->dev, &saved)) {
    recording->dev->ops->recording_destroy(&recording->dev->desc, recording->native);
    qn__leave(recording->dev, saved);
  }
  for (int i = 0; i < recording->n; i++) {
    qn__free(recording->list[i].ptr);
    qn__free(recording->list[i].scalars);
    qn__plan_release(recording->list[i].plan);
  }
  qn__free(recording->list);
  free_recording(recording);
}
