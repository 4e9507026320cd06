/* backend.c -- the CUDA backend's entry: one table, for the device and its engines. */
#include "cuda_backend.h"
#include "engines.h"

const qn_host *cuda_host;

static const char *const variables[] = {
  "QUERN_CUBLASLT", "path of the cuBLASLt to open; unset: the one in the process, then of LD_LIBRARY_PATH, of the CUDA built with, of the system",
  NULL };

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
  if (host->struct_size < sizeof(qn_host) || host->abi_major != QN_ABI_MAJOR) return QN_NO_BACKEND;
  cuda_host = host;
  *out = &cuda_backend;
  return QN_OK;
}
