/* backend.c -- the backend's one entry and its table. */
#include "cpu_ref.h"

const qn_host *cpu_host;

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
