/* fallback.c -- QUERN_FALLBACK=host: runs an op that no engine of the device takes on the CPU.
 *
 * The part copies its tensors into host memory of the context, calls a CPU engine from the stream (host_call), and
 * copies the outputs back, all in stream order. The op is logged, and its plan reports class host. */
#include "config.h"
#include "core.h"
#include <quern/kit.h>
#include <string.h>

typedef struct fallback {
  qn_part         *inner;
  const qn_device *cpu;
  const qn_device_ops *ops;
  int32_t          threads;
  uint64_t         staging;
} fallback;

/* ---- run: the layout of the context's staging memory --------------------------------------------------- */

/* At its start, for host_call: */
typedef struct call { const fallback *f; qn_launch launch; } call;

static void compute(void *arg)
{
  call *c = arg;
  if (c->f->inner->engine->run(&c->f->inner->prepared, &c->launch))
    qn__log(QN_LOG_ERROR, "fallback: %s/%s failed on the CPU: %s", c->f->inner->backend->name, c->f->inner->engine->name, qn_last_error());
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const fallback *f = p->state;
  const qn_request *r = &f->inner->request;
  const qn_context *ctx = launch->core;
  char *at = (char *)(((uintptr_t)ctx->staging + 255) & ~(uintptr_t)255);
  call *c = (call *)at;
  void **ptr = (void **)(c + 1);
  qn_status status = f->ops->stream_synchronize ? f->ops->stream_synchronize(launch->device, launch->stream) : QN_OK;
  if (status) return status;              /* work enqueued earlier may still use that memory */
  at += qn__round_up(sizeof *c + r->n_values * sizeof *ptr);
  *c = (call){ f, { .struct_size = sizeof c->launch, .ptr = ptr, .device = f->cpu, .threads = f->threads } };
  c->launch.workspace = at;
  at += qn__round_up(f->inner->prepared.workspace);
  /* Outputs are copied in too: elements in the gaps of their strides must come back unchanged. */
  for (uint32_t v = 0; v < r->n_values && !status; v++) {
    uint64_t bytes = (uint64_t)qn_extent_bytes(&r->value[v]);
    ptr[v] = at;
    if (r->value[v].flags & QN_VALUE_HOST) memcpy(at, launch->ptr[v], bytes);
    else status = f->ops->copy(launch->device, at, launch->ptr[v], bytes, QN_COPY_TO_HOST, launch->stream);
    at += qn__round_up(bytes);
  }
  if (!status) status = f->ops->host_call(launch->device, launch->stream, compute, c);
  for (uint32_t v = 0; v < r->n_values && !status; v++)
    if (r->value[v].producer >= 0) {
      uint64_t bytes = (uint64_t)qn_extent_bytes(&r->value[v]);
      status = f->ops->copy(launch->device, launch->ptr[v], ptr[v], bytes, QN_COPY_TO_DEVICE, launch->stream);
    }
  return status;
}

static void release(qn_prepared *p)
{
  fallback *f = p->state;
  qn__part_free(f->inner);
  qn__free(f);
}

static qn_status refuse(const qn_request *r, qn_prepared *p)
{
  (void)r;
  (void)p;
  return QN_UNSUPPORTED;                  /* core creates such parts itself */
}

static qn_engine row = { .name = "host", .class_ = QN_CLASS_HOST, .prepare = refuse, .run = run, .release = release };

uint64_t qn__fallback_staging(const qn_part *part)
{
  return part->engine == &row ? ((const fallback *)part->prepared.state)->staging : 0;
}

/* ---- prepare -------------------------------------------------------------------------------------------- */

/* The CPU's own engines, under the demands of the policy. */
static qn_status cpu_policy(const qn__policy *from, qn__device **dev, const qn__policy **policy)
{
  qn__settings s;
  qn__backend *b = qn__backends();
  while (b && (!b->table || b->status || strcmp(b->table->device_kind, "cpu") || !b->device)) b = b->next;
  if (!b) return qn__fail(QN_NO_BACKEND, "fallback: no backend here provides the CPU");
  qn_status status = qn__device_get(b, NULL, dev);
  if (status || (status = qn__settings_init(&s))) return status;
  s.determinism = from->demands.determinism;
  s.math = from->demands.math;
  qn__free(s.text[QN_SET_ENGINE]);                              /* pins are meant for the device */
  s.text[QN_SET_ENGINE] = NULL;
  status = qn__policy_intern(*dev, &s, &b, 1, policy);
  qn__settings_free(&s);
  return status;
}

qn_status qn__fallback_part(const qn__planning *pc, const qn__offer *offer, qn_part **out)
{
  const qn_device_ops *ops = pc->ctx->dev->ops;
  qn__device *cpu;
  const qn__policy *policy;
  qn__offer first = *offer;
  qn_request *one = &first.request;
  if (!ops->host_call) return qn__fail(QN_UNSUPPORTED, "fallback: the device \"%s\" cannot call the host", pc->device->kind);
  qn_status status = cpu_policy(pc->policy, &cpu, &policy);
  if (status) return status;
  qn_part *p = qn__alloc(sizeof *p);
  fallback *f = qn__alloc(sizeof *f);
  qn__planning inner = { .device = &cpu->desc, .policy = policy, .depth = pc->depth + 1, .tuner = pc->tuner };
  if (!p || !f) status = qn__fail(QN_NO_MEMORY, "no memory for a part of the plan");
  one->n_ops = 1;
  one->n_values = qn__values_of(one, 1);
  one->device = &cpu->desc;
  one->demands = &policy->demands;
  one->instance = NULL;
  one->core = &inner;
  if (!status) status = qn__part_choose(&inner, &(qn__offers){ .n = 1, .offer = { &first } }, NULL, -1, 0, &f->inner);
  if (!status && f->inner->engine->build) status = f->inner->engine->build(&f->inner->request, &f->inner->prepared);
  if (status) {
    if (f) qn__part_free(f->inner);
    qn__free(f);
    qn__free(p);
    return status;
  }
  f->cpu = &cpu->desc;
  f->ops = ops;
  f->threads = f->inner->demands.threads;
  f->staging = 256 + qn__round_up(sizeof(call) + one->n_values * sizeof(void *)) + qn__round_up(f->inner->prepared.workspace);
  for (uint32_t v = 0; v < one->n_values; v++) f->staging += qn__round_up((uint64_t)qn_extent_bytes(&one->value[v]));
  *p = *f->inner;
  p->memory = NULL;                       /* shares its arrays; memory stays the inner part's */
  p->prepared.engine = p->engine = &row;
  p->prepared.class_ = QN_CLASS_HOST;
  p->prepared.n_ops = 1;
  p->prepared.taken = 1;
  p->prepared.workspace = p->prepared.counters = 0;
  p->prepared.state = f;
  qn_text problem = {0};
  qn__request_print(&problem, one, 1, first.literal, NULL);
  qn__log(QN_LOG_WARN, "fallback: no engine of %s takes %s; it runs on the CPU, with copies", pc->device->kind,
          problem.s ? problem.s : "an op");
  qn__free(problem.s);
  *out = p;
  return QN_OK;
}
