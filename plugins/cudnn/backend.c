/* backend.c -- cuDNN as a Quern backend, for use and for comparison with our CUDA engines. It uses the device of the backend
 * cuda. An instance, one per context, is a cuDNN handle; host memory that cuDNN allocates during a call is its own affair. */
#include "peer.h"

const qn_host *peer_host;

static qn_status open_handle(const qn_open *with, void **instance)
{
  cudnnHandle_t handle;
  (void)with;
  qn_status s = peer_load();
  if (s) return s;
  cudnnStatus_t e = peer.cudnnCreate(&handle);
  if (e) return peer_failed("cudnnCreate", e);
  *instance = handle;
  return QN_OK;
}

static void close_handle(void *instance) { peer.cudnnDestroy(instance); }

static const qn_engine_list *const lists[] = { &peer_conv, &peer_matmul, &peer_norm, &peer_batch_norm, &peer_softmax, &peer_pool,
                                               &peer_reduce, &peer_pointwise, &peer_lrn, &peer_sampling,
                                               &peer_rnn, &peer_attention, NULL };

static const char *const variables[] = {
  "QUERN_CUDNN", "path of the cuDNN to open; unset: the one in the process, then of LD_LIBRARY_PATH, of those built with, of the system",
  NULL };

static qn_backend backend = {
  .struct_size = sizeof backend, .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine),
  .name = "cudnn", .device_kind = "cuda", .engines = lists, .open = open_handle, .close = close_handle,
  .variables = variables,
};

QN_EXPORT qn_status QN_BACKEND_ENTRY(cudnn)(const qn_host *host, const qn_backend **out);
QN_EXPORT qn_status QN_BACKEND_ENTRY(cudnn)(const qn_host *host, const qn_backend **out)
{
  static char version[32];
  const char *why;
  if (host->struct_size < sizeof(qn_host) || host->abi_major != QN_ABI_MAJOR || host->abi_minor < 4) return QN_NO_BACKEND;
  peer_host = host;
  *out = &backend;
  if (!peer_find(version, &why)) return host->error(QN_NO_BACKEND, why);
  backend.version = version;
  return QN_OK;
}
