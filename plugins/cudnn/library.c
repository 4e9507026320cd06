/* library.c -- loads cuDNN with its sublibraries and resolves its functions. libcudnn itself is a shim that opens its sublibraries
 * by bare name, possibly from another installation; so they are loaded first, from its own folder. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <quern/library.h>
#include "peer.h"

#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x

peer_calls peer;

enum { MAX_DEVICES = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    /* guards loading and the handles */
static qn_library library;
static bool loaded;
static cudnnHandle_t handles[MAX_DEVICES];

bool peer_find(char version[32], const char **why)
{
  static const char *const folders[] = { CUDNN_LIBDIR, "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/cuda/lib64",
                                         "/usr/local/cuda/lib", "/usr/lib64", NULL };
  static const struct { const char *name; void *slot; } call[] = {
#define X(name) { #name, &peer.name },
    CUDNN_CALLS(X)
#undef X
  };
  *why = library.why;
  if (!qn_library_find(&library, peer_host, "CUDNN", "libcudnn.so." TEXT(CUDNN_MAJOR), folders) || !qn_library_load(&library)) return false;
  for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
    void *p = qn_library_symbol(&library, call[i].name);
    if (!p) return false;
    memcpy(call[i].slot, &p, sizeof p);
  }
  unsigned v = (unsigned)peer.cudnnGetVersion();
  snprintf(version, 32, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
  if (v / 10000 == CUDNN_MAJOR) return true;
  snprintf(library.why, sizeof library.why, "%s is cuDNN %s; this plugin was built for %d", library.path, version, CUDNN_MAJOR);
  return false;
}

static qn_status load_parts(void)
{
  static const char *const part[] = { "graph", "ops", "cnn", "adv", "engines_precompiled", "engines_runtime_compiled", "heuristic" };
  static const struct { const char *name; cudnnStatus_t (**check)(void); } check[] = {
    { "cudnnGraphVersionCheck", &peer.cudnnGraphVersionCheck }, { "cudnnOpsVersionCheck", &peer.cudnnOpsVersionCheck },
    { "cudnnCnnVersionCheck", &peer.cudnnCnnVersionCheck }, { "cudnnAdvVersionCheck", &peer.cudnnAdvVersionCheck } };
  for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
    char path[sizeof library.path];
    qn_library one = { 0 };
    int folder = (int)(strrchr(library.path, '/') - library.path);
    int n = snprintf(path, sizeof path, "%.*s/libcudnn_%s.so." TEXT(CUDNN_MAJOR), folder, library.path, part[i]);
    if (n >= (int)sizeof path || !qn_library_at(&one, path) || !qn_library_load(&one)) return peer_host->error(QN_NO_BACKEND, one.why);
  }
  for (size_t i = 0; i < sizeof check / sizeof *check; i++) {
    cudnnStatus_t e = (*check[i].check)();
    if (e) return peer_failed(check[i].name, e);
  }
  return QN_OK;
}

qn_status peer_load(void)
{
  qn_status s = QN_OK;
  pthread_mutex_lock(&lock);
  if (!loaded && !(s = load_parts())) loaded = true;
  pthread_mutex_unlock(&lock);
  return s;
}

qn_status peer_failed(const char *call, cudnnStatus_t status)
{
  char sentence[512], detail[300] = "";
  peer.cudnnGetLastErrorString(detail, sizeof detail);
  snprintf(sentence, sizeof sentence, "cudnn: %s: %s%s%s", call, peer.cudnnGetErrorString(status), *detail ? ": " : "", detail);
  return peer_host->error(status == CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH ? QN_NO_BACKEND : QN_DEVICE, sentence);
}

qn_status peer_describe_begin(const qn_device *device, cudnnHandle_t *handle)
{
  pthread_mutex_lock(&lock);
  cudnnStatus_t e = handles[device->ordinal] ? CUDNN_STATUS_SUCCESS : peer.cudnnCreate(&handles[device->ordinal]);
  *handle = handles[device->ordinal];
  if (!e) return QN_OK;
  pthread_mutex_unlock(&lock);
  return peer_failed("cudnnCreate", e);
}

void peer_describe_end(void) { pthread_mutex_unlock(&lock); }

qn_status peer_live(const qn_request *r, qn_prepared *p)
{
  const qn_device *device = r->device;
  int units = 0;
  if (device->ordinal >= 0 && device->ordinal < MAX_DEVICES && r->instance &&
      cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device->ordinal) == cudaSuccess && units == device->units)
    return QN_OK;
  qn_refuse(p, "cuDNN's heuristics ask a live device", "", "a device, as it is", "%s", device->model);
  return QN_NO_BACKEND;
}
