/* host.c -- qn_host, what backends may call: log, errors, memory, options, and delegation of a part of the work. */
#include "config.h"
#include "core.h"
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void host_log(int level, const char *message) { qn__log(level, "%s", message ? message : ""); }

static qn_status host_error(qn_status status, const char *sentence) { return qn__fail(status, "%s", sentence ? sentence : ""); }

/* The environment's QUERN_KEY, for a backend's own switches. */
static const char *host_option(const char *key)
{
  char name[64] = "QUERN_";
  size_t n = 6;
  for (; *key && n + 1 < sizeof name; key++) name[n++] = (char)toupper((unsigned char)*key);
  if (*key) return NULL;
  return qn__screened(name);
}

static qn_status host_part_prepare(const qn_request *parent, const qn_request *part, const char *engine, qn_part **out)
{
  const qn__planning *pc = parent->core;
  if (!pc) return qn__fail(QN_INTERNAL, "part_prepare: parent is not what prepare was called with");
  if (pc->depth >= 8) return qn__fail(QN_INTERNAL, "engines delegate to each other without end");
  qn__planning inner = *pc;
  inner.depth++;
  inner.verdict = NULL;
  if (part->n_ops > QN_MAX_OPS)
    return qn__fail(QN_INTERNAL, "part_prepare: a part of %u ops; there are at most %d", part->n_ops, QN_MAX_OPS);
  qn__offer o = {0};
  const bool has_view = part->struct_size >= offsetof(qn_request, view) + sizeof part->view;
  memcpy(&o.request, part, has_view ? sizeof *part : offsetof(qn_request, view));
  o.request.struct_size = sizeof o.request;
  o.request.host = &qn__host;
  o.request.device = pc->device;
  o.request.demands = &pc->policy->demands;
  o.request.core = &inner;
  qn_status status = pc->delegate(&inner, &(qn__offers){ .n = 1, .offer = { &o } }, engine, -1, 0, out);
  if (!status) {
    (*out)->request.core = NULL;
    /* Estimates chose the engine, and depend on the batch and the device: for another batch it may be another. */
    if (!engine && pc->policy->demands.determinism < QN_DET_BATCH)
      (*out)->prepared.traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);
  }
  return status;
}

static const qn_prepared *host_part_answer(const qn_part *part) { return &part->prepared; }

static qn_status host_part_build(qn_part *part)
{
  return part->engine->build ? part->engine->build(&part->request, &part->prepared) : QN_OK;
}

static qn_status host_part_run(const qn_part *part, const qn_launch *launch, void *const *ptr, void *workspace, void *counters)
{
  qn_launch inner = *launch;
  inner.struct_size = sizeof inner;
  const struct qn_context *ctx = launch->core;
  inner.threads = part->demands.threads;
  inner.instance = part->backend->instance >= 0 && ctx ? ctx->instance[part->backend->instance] : NULL;
  inner.ptr = ptr;
  inner.workspace = workspace;
  inner.counters = counters;
  return part->engine->run(&part->prepared, &inner);
}

void qn__part_free(qn_part *p)
{
  if (!p) return;
  if (p->prepared.engine && p->engine->release) p->engine->release(&p->prepared);
  qn__free(p->memory);
  qn__free(p);
}

const qn_host qn__host = {
  .struct_size = sizeof(qn_host), .abi_major = QN_ABI_MAJOR, .abi_minor = QN_ABI_MINOR,
  .log = host_log, .error = host_error, .option = host_option, .alloc = qn__alloc, .free = qn__free,
  .part_prepare = host_part_prepare, .part_answer = host_part_answer, .part_build = host_part_build,
  .part_run = host_part_run, .part_release = qn__part_free,
  .ranks_exchange = qn__ranks_exchange, .ranks_watch = qn__ranks_watch, .ranks_fail = qn__ranks_fail, .ranks_slot = qn__ranks_slot,
};
