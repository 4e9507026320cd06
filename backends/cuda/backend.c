/* backend.c -- the CUDA backend's entry point: one table with the device provider and all engines. */
#include "cuda_backend.h"
#include "engines.h"

const qn_host *cuda_host;

/* Allocated by hand because CUtensorMap needs more than malloc's alignment. The word before the state holds the malloc pointer. */
void *cuda_state(qn_prepared *p, size_t bytes)
{
  const size_t align = _Alignof(CUtensorMap);
  void **block = cuda_host->alloc(bytes + align + sizeof *block);
  if (!block) {
    cuda_host->error(QN_NO_MEMORY, "no memory for an engine's state");
    return p->state = NULL;
  }
  void **state = (void **)(((uintptr_t)(block + 1) + align - 1) / align * align);
  state[-1] = block;
  return p->state = state;
}

qn_status cuda_keep(qn_prepared *p, const void *state, size_t bytes)
{
  if (!cuda_state(p, bytes)) return QN_NO_MEMORY;
  memcpy(p->state, state, bytes);
  return QN_OK;
}

void cuda_release(qn_prepared *p)
{
  if (p->state) cuda_host->free(((void **)p->state)[-1]);
  p->state = NULL;
}

static const char *const variables[] = {
  "QUERN_CUBLASLT",
  "path of the cuBLASLt to open; unset: the one in the process, then of LD_LIBRARY_PATH, of the CUDA built with, of the system", NULL
};

static const qn_backend cuda_backend = {
  .struct_size = sizeof(qn_backend),
  .abi_minor = QN_ABI_MINOR,
  .engine_size = sizeof(qn_engine),
  .name = "cuda",
  .version = QN_VERSION,
  .device_kind = "cuda",
  .device = &cuda_device_ops,
  .engines = cuda_engines,
  .variables = variables,
};

QN_EXPORT qn_status QN_BACKEND_ENTRY(cuda)(const qn_host *host, const qn_backend **out)
{
  if (host->struct_size < sizeof(qn_host) || host->abi_major != QN_ABI_MAJOR || host->abi_minor < 4) return QN_NO_BACKEND;
  cuda_host = host;
  *out = &cuda_backend;
  return QN_OK;
}
