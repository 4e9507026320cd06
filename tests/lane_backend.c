/* lane_backend.c -- the CUDA backend's device with engines that compute nothing but touch what an engine may: they read their inputs and
 * write outputs, workspace and counters, by copies and fills that fake_cuda_order.c checks. Each notes its op and stream. */
#include <stdio.h>
#include <stdlib.h>
#include "cuda_backend.h"
#include "fake_cuda_order.h"

const qn_host *cuda_host;

enum { SCRATCH = 1 << 16, COUNTERS = 64 };

static qn_status takes_one(const qn_request *r, qn_prepared *p)
{
  p->n_ops = 1;
  p->workspace = SCRATCH;
  p->counters = COUNTERS;
  p->word[0] = (uint64_t)(uintptr_t)r;
  return QN_OK;
}

/* The values are those of the request that was built, which lives as long as the plan. */
static qn_status built(const qn_request *r, qn_prepared *p)
{
  p->word[0] = (uint64_t)(uintptr_t)r;
  return QN_OK;
}

static qn_status touches(const qn_prepared *p, const qn_launch *l)
{
  const qn_request *r = (const qn_request *)(uintptr_t)p->word[0];
  char *scratch = l->workspace;
  qn_status s = cuda_check(cudaMemsetAsync(l->counters, 0, COUNTERS, l->stream), "counters");
  fake_note("%s %d, ", p->engine->name, (int)(intptr_t)l->stream);
  if (!l->instance) return cuda_host->error(QN_INTERNAL, "no instance was given");
  for (uint32_t v = 0; v < r->n_values && !s; v++) {
    const size_t bytes = (size_t)qn_extent_bytes(&r->value[v]);
    if (!l->ptr[v] || r->value[v].flags & QN_VALUE_HOST) continue;
    if (r->value[v].producer) s = cuda_check(cudaMemcpyAsync(scratch, l->ptr[v], bytes, cudaMemcpyDeviceToDevice, l->stream), "a read");
    else s = cuda_check(cudaMemsetAsync(l->ptr[v], 1, bytes, l->stream), "a write");
  }
  return s;
}

static qn_status fails(const qn_prepared *p, const qn_launch *l)
{
  (void)p, (void)l;
  return cuda_host->error(QN_DEVICE, "it failed");
}

#define ROW(engine, anchor, function) { .name = engine, .op = anchor, .traits = QN_TRAIT_DETERMINISTIC, .class_ = QN_CLASS_GENERIC, \
                                        .prepare = takes_one, .build = built, .run = function }
static const qn_engine row[] = {
  ROW("product", QN_OP_MATMUL, touches), ROW("reduce", QN_OP_ALL_REDUCE, touches), ROW("fail", QN_OP_REDUCE_MAX, fails),
  ROW("point", QN_FAMILY_POINTWISE | QN_ANCHOR_FAMILY, touches),
};
static const qn_engine_list list = { row, sizeof row / sizeof *row };
static const qn_engine_list *const lists[] = { &list, NULL };

/* Instances are counted, and one is told what it was opened with. LANES_OPEN_FAILS: it is not. */
static qn_status open_instance(const qn_open *with, void **instance)
{
  fake_note("open %d of %d, ", with->ranks ? with->ranks->rank : -1, with->ranks ? with->ranks->size : -1);
  *instance = getenv("LANES_OPEN_FAILS") ? NULL : with->host->alloc(1);
  return *instance ? QN_OK : with->host->error(QN_NO_MEMORY, "no memory for an instance");
}

static void close_instance(void *instance)
{
  fake_note("close, ");
  cuda_host->free(instance);
}

static const qn_backend backend = {
  .struct_size = sizeof backend, .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine), .version = "1", .device_kind = "cuda",
  .name = "lanes", .device = &cuda_device_ops, .engines = lists, .open = open_instance, .close = close_instance,
};

QN_EXPORT qn_status QN_BACKEND_ENTRY(lanes)(const qn_host *host, const qn_backend **out)
{
  cuda_host = host;
  *out = &backend;
  return QN_OK;
}
