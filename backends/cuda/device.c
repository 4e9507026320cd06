/* device.c -- the device provider: CUDA devices, streams, memory, events, graph capture, and named device models.
 *
 * The runtime is linked statically and opens the driver on first use, so that this loads without a GPU and then counts no
 * devices. Core makes the device current (enter) around all calls except count and describe. */
#include "kit/shared_memory.h"
#include <ctype.h>
#include <pthread.h>

/* ---- errors ---------------------------------------------------------------------------------- */

qn_status cuda_check(cudaError_t error, const char *call)
{
  char sentence[256];
  if (error == cudaSuccess) return QN_OK;
  (void)cudaGetLastError();                                 /* clears the error for the caller's next call */
  snprintf(sentence, sizeof sentence, "cuda: %s: %s (%s)", call, cudaGetErrorString(error), cudaGetErrorName(error));
  return cuda_host->error(error == cudaErrorMemoryAllocation ? QN_NO_MEMORY : QN_DEVICE, sentence);
}

qn_status cuda_driver_get(const cuda_driver **driver)
{
  static cuda_driver table;
  static bool known;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  /* guards both */
  static const struct { const char *name; void **slot; } entry[] = {
    {"cuTensorMapEncodeTiled", (void **)&table.tensor_map_tiled},
    {"cuTensorMapEncodeIm2col", (void **)&table.tensor_map_im2col},
    {"cuTensorMapReplaceAddress", (void **)&table.tensor_map_address},
  };
  qn_status status = QN_OK;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < sizeof entry / sizeof *entry && !known && !status; i++) {
    enum cudaDriverEntryPointQueryResult found;
    status = cuda_check(cudaGetDriverEntryPointByVersion(entry[i].name, entry[i].slot, 12000, cudaEnableDefault, &found), entry[i].name);
    if (!status && found != cudaDriverEntryPointSuccess)
      status = cuda_host->error(QN_DEVICE, "cuda: the driver has no tensor maps; 530 or later has, and what else is wanted");
  }
  known = known || !status;
  pthread_mutex_unlock(&lock);
  if (status) return status;
  *driver = &table;
  return QN_OK;
}

/* ---- kernels -------------------------------------------------------------------------------------- */

qn_status cuda_allow_shared(const void *kernel)
{
  struct cudaFuncAttributes has;
  int device = 0, most = 0;
  qn_status s = cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  if (!s) s = cuda_check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  if (!s) s = cuda_check(cudaFuncGetAttributes(&has, kernel), "cudaFuncGetAttributes");
  if (!s)
    s = cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most - (int)has.sharedSizeBytes),
                   "cudaFuncSetAttribute");
  return s;
}

qn_status cuda_launch_clusters(const void *kernel, unsigned blocks, unsigned cluster, unsigned threads, size_t shared, void **arguments,
                               const qn_launch *launch, const char *name)
{
  cudaLaunchAttribute how = { .id = cudaLaunchAttributeClusterDimension, .val.clusterDim = { cluster, 1, 1 } };
  if (cluster == CUDA_TOGETHER) how = (cudaLaunchAttribute){ .id = cudaLaunchAttributeCooperative, .val.cooperative = 1 };
  const cudaLaunchConfig_t config = { .gridDim = { blocks, 1, 1 }, .blockDim = { threads, 1, 1 }, .dynamicSmemBytes = shared,
                                      .stream = (cudaStream_t)launch->stream, .attrs = &how, .numAttrs = cluster != 1 };
  return cuda_check(cudaLaunchKernelExC(&config, kernel, arguments), name);
}

/* ---- devices ------------------------------------------------------------------------------------- */

static qn_status device_count(int32_t *n)
{
  int count = 0;
  cudaError_t e = cudaGetDeviceCount(&count);
  *n = e == cudaSuccess ? count : 0;
  if (e == cudaSuccess || e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver) {
    (void)cudaGetLastError();
    return QN_OK;
  }
  return cuda_check(e, "cudaGetDeviceCount");
}

/* Device models that can be requested by name. prepare may rely on these figures, which are those of real devices. */
static const qn_device models[] = {
  { .kind = "cuda", .name = "NVIDIA H200 (model)", .model = "h200", .ordinal = -1, .units = 132, .arch_major = 9, .arch_minor = 0,
    .memory = 150754820096, .cache = 62914560, .shared_per_block = 232448, .shared_per_unit = 233472 },
  { .kind = "cuda", .name = "NVIDIA A100 (model)", .model = "a100", .ordinal = -1, .units = 108, .arch_major = 8, .arch_minor = 0,
    .memory = 85899345920, .cache = 41943040, .shared_per_block = 166912, .shared_per_unit = 167936 },
  { .kind = "cuda", .name = "NVIDIA T4 (model)", .model = "t4", .ordinal = -1, .units = 40, .arch_major = 7, .arch_minor = 5,
    .memory = 16106127360, .cache = 4194304, .shared_per_block = 65536, .shared_per_unit = 65536 },
  { .kind = "cuda", .name = "any CUDA device (model)", .model = "generic", .ordinal = -1, .units = 16, .arch_major = 7, .arch_minor = 5,
    .memory = 4294967296, .cache = 2097152, .shared_per_block = 49152, .shared_per_unit = 65536 },
};
static const char *const model_names[] = { "h200", "a100", "t4", "generic", NULL };

/* A live device (one with a handle or an ordinal) keeps its identity and memory, and is limited to what the model has. */
static qn_status describe_model(const char *model, qn_device *out)
{
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    const qn_device *m = &models[i];
    if (strcmp(m->model, model)) continue;
    qn_device live = *out;
    *out = *m;
    out->struct_size = sizeof *out;
    if (!live.struct_size || live.ordinal < 0 || !live.units) return QN_OK;
    memcpy(out->name, live.name, sizeof out->name);
    out->ordinal = live.ordinal;
    out->handle = live.handle;
    out->memory = live.memory;
    if (live.units < out->units) out->units = live.units;
    if (live.shared_per_block < out->shared_per_block) out->shared_per_block = live.shared_per_block;
    if (live.shared_per_unit < out->shared_per_unit) out->shared_per_unit = live.shared_per_unit;
    /* sm_90a code runs on 9.0 only */
    if (live.arch_major > 9 && out->arch_major == 9) out->arch_major = 8, out->arch_minor = 0;
    if (live.arch_major < out->arch_major || (live.arch_major == out->arch_major && live.arch_minor < out->arch_minor))
      out->arch_major = live.arch_major, out->arch_minor = live.arch_minor;
    return QN_OK;
  }
  return cuda_host->error(QN_BAD_ARGUMENT, "cuda: unknown device model; known: h200, a100, t4, generic");
}

/* Key under which tuning results are kept: for the devices above, matched by whole name, the model; for others the driver's name
 * in lower case and the number of multiprocessors. */
static void name_model(const char *name, int units, char *model, size_t bytes)
{
  static const struct { const char *name, *model; } known[] = {
    { "NVIDIA H200", "h200" }, { "NVIDIA A100-SXM4-80GB", "a100" }, { "Tesla T4", "t4" },
  };
  char own[24];
  size_t n = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (!strcmp(name, known[i].name)) {
      snprintf(model, bytes, "%s", known[i].model);
      return;
    }
  for (const char *c = strncmp(name, "NVIDIA ", 7) ? name : name + 7; *c && n < sizeof own - 1; c++)
    if (isalnum((unsigned char)*c)) own[n++] = (char)tolower((unsigned char)*c);
    else if (n && own[n - 1] != '-') own[n++] = '-';
  own[n] = 0;
  snprintf(model, bytes, "%s-%d", own, units);
}

static qn_status device_describe(int32_t ordinal, qn_device *out)
{
  struct cudaDeviceProp prop;
  qn_status s = cuda_check(cudaGetDeviceProperties(&prop, ordinal), "cudaGetDeviceProperties");
  if (s) return s;
  memset(out, 0, sizeof *out);
  out->struct_size = sizeof *out;
  snprintf(out->kind, sizeof out->kind, "cuda");
  snprintf(out->name, sizeof out->name, "%.63s", prop.name);
  name_model(prop.name, prop.multiProcessorCount, out->model, sizeof out->model);
  out->ordinal = ordinal;
  out->units = prop.multiProcessorCount;
  out->arch_major = prop.major;
  out->arch_minor = prop.minor;
  out->memory = prop.totalGlobalMem;
  out->cache = (uint64_t)prop.l2CacheSize;
  out->shared_per_block = prop.sharedMemPerBlockOptin;
  out->shared_per_unit = prop.sharedMemPerMultiprocessor;
  return QN_OK;
}

/* The driver's current context is per thread and may be none; leave restores what enter replaced. (The runtime's current device
 * reads 0 where there is no context, and restoring that would create one.) */
static CUresult (*context_get)(CUcontext *), (*context_set)(CUcontext);  /* written by the first open; core opens one device at a time */

static qn_status context_calls(void)
{
  enum cudaDriverEntryPointQueryResult found;
  void *get = NULL, *set = NULL;
  if (context_get && context_set) return QN_OK;
  qn_status s = cuda_check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &get, 12000, cudaEnableDefault, &found), "cuCtxGetCurrent");
  if (!s) s = cuda_check(cudaGetDriverEntryPointByVersion("cuCtxSetCurrent", &set, 12000, cudaEnableDefault, &found), "cuCtxSetCurrent");
  if (!s && (!get || !set)) return cuda_host->error(QN_DEVICE, "cuda: the driver has no cuCtxGetCurrent or cuCtxSetCurrent");
  *(void **)&context_get = get;
  *(void **)&context_set = set;
  return s;
}

/* handle: the device's primary context, which the runtime uses. */
static qn_status device_open(qn_device *device)
{
  CUcontext before = NULL, primary = NULL;
  qn_status s = context_calls();
  if (s) return s;
  context_get(&before);
  s = cuda_check(cudaSetDevice(device->ordinal), "cudaSetDevice");
  if (!s) s = cuda_check(cudaFree(NULL), "the device's context");       /* runtimes before 12 create the context only here */
  context_get(&primary);
  context_set(before);
  device->handle = primary;
  return s;
}

static qn_status device_enter(const qn_device *device, uint64_t *saved)
{
  CUcontext now = NULL;
  context_get(&now);
  *saved = (uint64_t)(uintptr_t)now;
  if (now == device->handle || context_set(device->handle) == CUDA_SUCCESS) return QN_OK;
  return cuda_host->error(QN_DEVICE, "cuda: cuCtxSetCurrent: the device's context is gone");
}

static void device_leave(const qn_device *device, uint64_t saved)
{
  CUcontext before = (CUcontext)(uintptr_t)saved;
  if (before != device->handle) (void)context_set(before);
}

/* ---- streams ------------------------------------------------------------------------------------- */

static qn_status stream_create(const qn_device *device, void **stream)
{
  (void)device;
  return cuda_check(cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking), "cudaStreamCreate");
}

static void stream_destroy(const qn_device *device, void *stream)
{
  (void)device;
  (void)cudaStreamDestroy(stream);
}

static qn_status stream_synchronize(const qn_device *device, void *stream)
{
  (void)device;
  return cuda_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

static qn_status stream_done(const qn_device *device, void *stream, int *yes)
{
  (void)device;
  const cudaError_t e = cudaStreamQuery(stream);
  *yes = e != cudaErrorNotReady;
  return *yes ? cuda_check(e, "cudaStreamQuery") : QN_OK;
}

/* ---- memory -------------------------------------------------------------------------------------- */

static qn_status device_alloc(const qn_device *device, size_t bytes, void **p)
{
  char sentence[160];
  (void)device;
  *p = NULL;
  cudaError_t e = cudaMalloc(p, bytes);                     /* 256-byte aligned, as the contract requires */
  if (e != cudaErrorMemoryAllocation) return cuda_check(e, "cudaMalloc");
  (void)cudaGetLastError();
  snprintf(sentence, sizeof sentence, "cuda: %zu bytes of device memory were asked for and are not to be had", bytes);
  return cuda_host->error(QN_NO_MEMORY, sentence);
}

static void device_free(const qn_device *device, void *p)
{
  (void)device;
  (void)cudaFree(p);
}

/* Pinned for every device: contexts of other devices may copy from it too. */
static qn_status host_alloc(const qn_device *device, size_t bytes, void **p)
{
  (void)device;
  *p = NULL;
  return cuda_check(cudaHostAlloc(p, bytes, cudaHostAllocPortable), "cudaHostAlloc");
}

static void host_free(const qn_device *device, void *p)
{
  (void)device;
  (void)cudaFreeHost(p);
}

static qn_status device_copy(const qn_device *device, void *dst, const void *src, size_t bytes, int kind, void *stream)
{
  static const enum cudaMemcpyKind kinds[] = { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
  (void)device;
  return cuda_check(cudaMemcpyAsync(dst, src, bytes, kinds[kind], stream), "cudaMemcpyAsync");
}

static qn_status device_fill(const qn_device *device, void *dst, int byte, size_t bytes, void *stream)
{
  (void)device;
  return cuda_check(cudaMemsetAsync(dst, byte, bytes, stream), "cudaMemsetAsync");
}

/* ---- events -------------------------------------------------------------------------------------- */

static qn_status event_create(const qn_device *device, void **event)
{
  (void)device;
  return cuda_check(cudaEventCreate((cudaEvent_t *)event), "cudaEventCreate");
}

static void event_destroy(const qn_device *device, void *event)
{
  (void)device;
  (void)cudaEventDestroy(event);
}

static qn_status event_record(const qn_device *device, void *event, void *stream)
{
  (void)device;
  return cuda_check(cudaEventRecord(event, stream), "cudaEventRecord");
}

static qn_status event_create_untimed(const qn_device *device, void **event)
{
  (void)device;
  return cuda_check(cudaEventCreateWithFlags((cudaEvent_t *)event, cudaEventDisableTiming), "cudaEventCreate");
}

static qn_status event_wait(const qn_device *device, void *stream, void *event)
{
  (void)device;
  return cuda_check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

static qn_status event_elapsed(const qn_device *device, void *start, void *stop, double *ns)
{
  float ms = 0;
  (void)device;
  qn_status s = cuda_check(cudaEventSynchronize(stop), "cudaEventSynchronize");
  if (!s) s = cuda_check(cudaEventElapsedTime(&ms, start, stop), "cudaEventElapsedTime");
  *ns = (double)ms * 1e6;
  return s;
}

static qn_status stream_wait(const qn_device *device, void *stream, void *other)
{
  void *event;
  qn_status s = event_create_untimed(device, &event);
  if (s) return s;
  s = event_record(device, event, other);
  if (!s) s = event_wait(device, stream, event);
  (void)cudaEventDestroy(event);                            /* freed after it has completed */
  return s;
}

/* ---- recordings ---------------------------------------------------------------------------------- */

static qn_status capture_begin(const qn_device *device, void *stream)
{
  (void)device;
  return cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
}

static qn_status capture_end(const qn_device *device, void *stream, void **recording)
{
  cudaGraph_t graph = NULL;
  (void)device;
  qn_status s = cuda_check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  if (!s) s = cuda_check(cudaGraphInstantiate((cudaGraphExec_t *)recording, graph, 0), "cudaGraphInstantiate");
  if (graph) (void)cudaGraphDestroy(graph);
  return s;
}

static qn_status recording_launch(const qn_device *device, void *recording, void *stream)
{
  (void)device;
  return cuda_check(cudaGraphLaunch(recording, stream), "cudaGraphLaunch");
}

static void recording_destroy(const qn_device *device, void *recording)
{
  (void)device;
  (void)cudaGraphExecDestroy(recording);
}

static qn_status capturing(const qn_device *device, void *stream, int *yes)
{
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  (void)device;
  qn_status s = cuda_check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  *yes = status != cudaStreamCaptureStatusNone;
  return s;
}

static qn_status host_call(const qn_device *device, void *stream, void (*fn)(void *), void *arg)
{
  (void)device;
  return cuda_check(cudaLaunchHostFunc(stream, fn, arg), "cudaLaunchHostFunc");
}

const qn_device_ops cuda_device_ops = {
  .struct_size = sizeof(qn_device_ops),
  .count = device_count,
  .describe = device_describe,
  .models = model_names,
  .describe_model = describe_model,
  .open = device_open,
  .enter = device_enter,
  .leave = device_leave,
  .stream_create = stream_create,
  .stream_destroy = stream_destroy,
  .stream_synchronize = stream_synchronize,
  .stream_wait = stream_wait,
  .stream_done = stream_done,
  .alloc = device_alloc,
  .free = device_free,
  .copy = device_copy,
  .fill = device_fill,
  .event_create = event_create,
  .event_destroy = event_destroy,
  .event_record = event_record,
  .event_elapsed = event_elapsed,
  .event_create_untimed = event_create_untimed,
  .event_wait = event_wait,
  .capture_begin = capture_begin,
  .capture_end = capture_end,
  .recording_launch = recording_launch,
  .recording_destroy = recording_destroy,
  .capturing = capturing,
  .host_call = host_call,
  .alloc_host = host_alloc,
  .free_host = host_free,
};
