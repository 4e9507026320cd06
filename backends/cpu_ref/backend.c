/* backend.c -- the backend's entry function and its table. */
#include "cpu_ref.h"

const qn_host *cpu_host;

void *cpu_state(qn_prepared *p, size_t bytes)
{
  p->state = cpu_host->alloc(bytes);
  if (!p->state) cpu_host->error(QN_NO_MEMORY, "no memory for an engine's state");
  return p->state;
}

qn_status cpu_keep(qn_prepared *p, const void *state, size_t bytes)
{
  if (!cpu_state(p, bytes)) return QN_NO_MEMORY;
  memcpy(p->state, state, bytes);
  return QN_OK;
}

void cpu_release(qn_prepared *p)
{
  cpu_host->free(p->state);
  p->state = NULL;
}

static const qn_backend backend = {
  .struct_size = sizeof(qn_backend),
  .abi_minor   = QN_ABI_MINOR,
  .engine_size = sizeof(qn_engine),
  .name        = "cpu_ref",
  .version     = QN_VERSION,
  .device_kind = "cpu",
  .device      = &cpu_device,
  .engines     = cpu_engines,
};

qn_entry_fn QN_BACKEND_ENTRY(cpu_ref);

QN_EXPORT qn_status QN_BACKEND_ENTRY(cpu_ref)(const qn_host *host, const qn_backend **out)
{
  if (host->struct_size < sizeof(qn_host) || host->abi_major != QN_ABI_MAJOR) return QN_NO_BACKEND;
  cpu_host = host;
  *out = &backend;
  return QN_OK;
}
