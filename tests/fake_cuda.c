/* fake_cuda.c -- a stand-in for the CUDA runtime, and the driver functions reached through it, on a machine without either.
 *
 * Linked with the CUDA backend's own objects in place of cudart, it checks their requests against the limits of the devices below
 * and runs nothing: a launch, a tensor map or a copy that a device would refuse is refused here, with a sentence. Device memory is a
 * range of addresses that the host must not touch; every allocation is known to the byte.
 *
 *   devices     their limits                               memory      allocations: fake_cuda_memory.c
 *   kernels     their attributes, from the objects' code   launches    grid, block, shared memory, clusters, parameters
 *   maps        tensor maps: fake_cuda_maps.c              order       streams, events, captures: fake_cuda_order.c
 *
 * For a single thread. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include "cuda_code.h"
#include "fake_cuda.h"
#include "fake_cuda_order.h"

#define ARRAY(a) (sizeof(a) / sizeof *(a))

/* ---- devices: those that the backend has a model of, and one that it has not ------------------------------ */

typedef struct device {
  const char *name;
  int    major, minor, units;
  size_t memory, cache, shared_per_block, shared_per_unit;
  int    threads_per_unit, blocks_per_unit;
} device;

static const device devices[] = {
  { "NVIDIA H200",           9, 0, 132, 150754820096, 62914560, 232448, 233472, 2048, 32 },
  { "NVIDIA A100-SXM4-80GB", 8, 0, 108,  85899345920, 41943040, 166912, 167936, 2048, 32 },
  { "Tesla T4",              7, 5,  40,  16106127360,  4194304,  65536,  65536, 1024, 16 },
  { "NVIDIA L4",             8, 9,  58,  24152899584, 50331648, 101376, 102400, 1536, 24 },
  { "least of all",          7, 5,  16,   4294967296,  2097152,  49152,  65536, 1024, 16 },     /* the model "generic" */
};
enum { DEVICES = ARRAY(devices), WARP = 32, ORDINARY_SHARED = 48 * 1024 };

static int current;

static const device *here(void) { return &devices[current]; }
int fake_generation(void) { return here()->major; }

/* The system's reserved part of each block's shared memory. */
static size_t reserved(const device *d) { return d->major >= 8 ? 1024 : 0; }

/* ---- violations ----------------------------------------------------------------------------------------- */

static cudaError_t last;                /* the runtime's last error */
static char first_broken[512];
static bool any_broken;

cudaError_t broken(cudaError_t error, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  if (!any_broken) vsnprintf(first_broken, sizeof first_broken, format, args);
  va_end(args);
  any_broken = true;
  return last = error;
}

cudaError_t fake_last(cudaError_t error) { return last = error; }

static const char *ask_broken(void)
{
  bool was = any_broken;
  any_broken = false;
  last = cudaSuccess;
  return was ? first_broken : NULL;
}

/* ---- kernels: their compiled attributes ------------------------------------------------------------------- */

typedef struct kernel {
  const void *function;                 /* its stub in host code */
  const char *name;
  module     *module;
  const code *found[DEVICES];
  int         dynamic[DEVICES];         /* limit on dynamic shared memory, as set; -1: not set */
} kernel;

static kernel *kernels;
static size_t  n_kernels;
static bool    sorted;

/* NULL: none for the current device; the error is set. */
static const code *code_of(kernel *k)
{
  const char *unread = code_unread();
  if (!k->found[current]) k->found[current] = code_in(k->module, k->name, here()->major, here()->minor);
  if (!k->found[current]) broken(cudaErrorNoKernelImageForDevice, "%s: %s", k->name, *unread ? unread : "there is no code for this device");
  return k->found[current];
}

/* -- block size and blocks per SM as limited by registers: allocated to warps in units of 256, in four partitions -- */

static int warps_by_registers(int registers)
{
  const int each = (registers * WARP + 255) / 256 * 256;
  return each ? REGISTERS / 4 / each * 4 : 64;
}

static int most_threads(const kernel *k, const code *c)
{
  const int by_registers = warps_by_registers(registers_in(k->module, k->name, c)) * WARP, most = by_registers < 1024 ? by_registers : 1024;
  return c->threads && c->threads < most ? c->threads : most;
}

static int resident_blocks(const kernel *k, const code *c, int threads, size_t dynamic)
{
  const device *d = here();
  const int warps = (threads + WARP - 1) / WARP, of_registers = (warps + 3) / 4 * 4;
  const size_t shared = ((size_t)c->local + dynamic + reserved(d) + 127) / 128 * 128;
  int most = d->blocks_per_unit;
  if (d->threads_per_unit / (warps * WARP) < most) most = d->threads_per_unit / (warps * WARP);
  if (warps_by_registers(registers_in(k->module, k->name, c)) / of_registers < most)
    most = warps_by_registers(registers_in(k->module, k->name, c)) / of_registers;
  if (shared && d->shared_per_unit / shared < (size_t)most) most = (int)(d->shared_per_unit / shared);
  return most;
}

/* -- registration, called by nvcc's code before main -- */

typedef struct fat_wrapper { int magic, version; const void *data; void *other; } fat_wrapper;

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterFunction(void **handle, const char *function, char *stub, const char *name, int limit, void *tid, void *bid, dim3 *block,
                            dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *variable, char *address, const char *name, int external, size_t bytes, int constant,
                       int global);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream);

void **__cudaRegisterFatBinary(void *wrapper) { return (void **)module_of(((const fat_wrapper *)wrapper)->data); }
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
char __cudaInitModule(void **handle) { return (void)handle, 1; }

void __cudaRegisterFunction(void **handle, const char *function, char *stub, const char *name, int limit, void *tid, void *bid, dim3 *block,
                            dim3 *grid, int *warp)
{
  (void)stub, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
  kernels = grown(kernels, n_kernels, sizeof *kernels);
  kernels[n_kernels] = (kernel){ .function = function, .name = name, .module = (module *)handle };
  for (int i = 0; i < DEVICES; i++) kernels[n_kernels].dynamic[i] = -1;
  n_kernels++;
}

void __cudaRegisterVar(void **handle, char *variable, char *address, const char *name, int external, size_t bytes, int constant, int global)
{
  (void)handle, (void)variable, (void)address, (void)name, (void)external, (void)bytes, (void)constant, (void)global;
}

static int by_function(const void *a, const void *b)
{
  const uintptr_t x = (uintptr_t)((const kernel *)a)->function, y = (uintptr_t)((const kernel *)b)->function;
  return (x > y) - (x < y);
}

static kernel *kernel_of(const void *function)
{
  const kernel key = { .function = function };
  if (!sorted) qsort(kernels, n_kernels, sizeof *kernels, by_function);
  sorted = true;
  kernel *k = bsearch(&key, kernels, n_kernels, sizeof *kernels, by_function);
  if (!k) broken(cudaErrorInvalidDeviceFunction, "a function that is no kernel is launched, or asked about");
  return k;
}

static int count_code(int ordinal)
{
  int n = 0;
  for (size_t i = 0; i < n_kernels; i++)
    n += code_in(kernels[i].module, kernels[i].name, devices[ordinal].major, devices[ordinal].minor) != NULL;
  return *code_unread() ? -1 : n;
}

/* -- the runtime functions that the backend calls on kernels -- */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *function)
{
  kernel *k = kernel_of(function);
  const code *c = k ? code_of(k) : NULL;
  if (!c) return last;
  memset(out, 0, sizeof *out);
  out->sharedSizeBytes = (size_t)c->local;
  out->numRegs = registers_in(k->module, k->name, c);
  out->maxThreadsPerBlock = most_threads(k, c);
  out->maxDynamicSharedSizeBytes = k->dynamic[current] < 0 ? ORDINARY_SHARED - c->local : k->dynamic[current];
  out->ptxVersion = arch_in(k->module, here()->major, here()->minor);
  out->binaryVersion = 10 * here()->major + here()->minor;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
  kernel *k = kernel_of(function);
  const code *c = k ? code_of(k) : NULL;
  if (!c) return last;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
    return broken(cudaErrorInvalidValue, "%s: attribute %d is set, which this stand-in does not know", k->name, (int)attribute);
  if (value < 0 || (size_t)(c->local + value) > here()->shared_per_block)
    return broken(cudaErrorInvalidValue,
                  "%s: cudaFuncSetAttribute: %d bytes of dynamic shared memory beside %d of its own; a block has at most %zu", k->name,
                  value, c->local, here()->shared_per_block);
  k->dynamic[current] = value;
  return cudaSuccess;
}

/* ---- launches ------------------------------------------------------------------------------------------- */

static long launches;

static cudaError_t check_shape(const kernel *k, const code *c, dim3 grid, dim3 block)
{
  const cudaError_t e = cudaErrorInvalidConfiguration;
  const uint64_t threads = (uint64_t)block.x * block.y * block.z;
  if (!grid.x || !grid.y || !grid.z || grid.x > 2147483647u || grid.y > 65535 || grid.z > 65535)
    return broken(e, "%s: a grid of %u x %u x %u; 2147483647 x 65535 x 65535 is the most, 1 the least", k->name, grid.x, grid.y, grid.z);
  if (!threads || block.x > 1024 || block.y > 1024 || block.z > 64 || threads > 1024)
    return broken(e, "%s: a block of %u x %u x %u; 1024 x 1024 x 64, and 1024 in all, is the most", k->name, block.x, block.y, block.z);
  if (c->exactly && threads != (uint64_t)c->exactly)
    return broken(e, "%s: %llu threads; it is compiled for blocks of %d", k->name, (unsigned long long)threads, c->exactly);
  if (threads > (uint64_t)most_threads(k, c))
    return broken(cudaErrorLaunchOutOfResources, "%s: %llu threads; with its %d registers and launch bounds of %d it may have %d", k->name,
                  (unsigned long long)threads, registers_in(k->module, k->name, c), c->threads, most_threads(k, c));
  return cudaSuccess;
}

static cudaError_t check_shared(const kernel *k, const code *c, size_t dynamic)
{
  const int set = k->dynamic[current];
  if (set < 0 && dynamic + (size_t)c->local > ORDINARY_SHARED)
    return broken(cudaErrorInvalidValue,
                  "%s: %zu bytes of dynamic shared memory beside %d of its own; without cudaFuncSetAttribute %d is the most", k->name,
                  dynamic, c->local, ORDINARY_SHARED);
  if (set >= 0 && dynamic > (size_t)set && dynamic + (size_t)c->local > ORDINARY_SHARED)
    return broken(cudaErrorInvalidValue, "%s: %zu bytes of dynamic shared memory; cudaFuncSetAttribute said %d", k->name, dynamic, set);
  if (dynamic + (size_t)c->local > here()->shared_per_block)
    return broken(cudaErrorInvalidValue, "%s: %zu bytes of dynamic shared memory beside %d of its own; a block has at most %zu", k->name,
                  dynamic, c->local, here()->shared_per_block);
  return cudaSuccess;
}

/* A parameter word that looks like a device address must be inside an allocation, or be its end. */
static cudaError_t check_arguments(const kernel *k, const code *c, void **args)
{
  for (int i = 0; i < c->parameters; i++)
    for (int at = 0; at + 8 <= c->parameter[i].size; at += 8) {
      uint64_t value;
      memcpy(&value, (const char *)args[i] + at, sizeof value);
      if (fake_in_memory(value) && !fake_allocated(value, 0))
        return broken(cudaErrorIllegalAddress, "%s: parameter %d has at byte %d an address %s", k->name, i, at, fake_beside(value));
    }
  return cudaSuccess;
}

static cudaError_t check_together(const kernel *k, const code *c, dim3 grid, dim3 block, size_t dynamic)
{
  const uint64_t all = (uint64_t)grid.x * grid.y * grid.z;
  const int each = resident_blocks(k, c, (int)(block.x * block.y * block.z), dynamic);
  if (all <= (uint64_t)each * (uint64_t)here()->units) return cudaSuccess;
  return broken(cudaErrorCooperativeLaunchTooLarge,
                "%s: a cooperative launch of %llu blocks; %d are resident on each of %d multiprocessors", k->name, (unsigned long long)all,
                each, here()->units);
}

static cudaError_t check_cluster(const kernel *k, const code *c, dim3 grid, dim3 block, size_t dynamic, unsigned x, unsigned y, unsigned z)
{
  const cudaError_t e = cudaErrorInvalidClusterSize;
  if (here()->major < 9) return broken(e, "%s: a cluster, which devices before 9.0 have not", k->name);
  if (!x || !y || !z || x * y * z > 8) return broken(e, "%s: a cluster of %u x %u x %u blocks; 8 is the most", k->name, x, y, z);
  if (grid.x % x || grid.y % y || grid.z % z)
    return broken(e, "%s: a grid of %u x %u x %u is no whole number of clusters of %u x %u x %u", k->name, grid.x, grid.y, grid.z, x, y, z);
  if (!resident_blocks(k, c, (int)(block.x * block.y * block.z), dynamic))
    return broken(e, "%s: a cluster of blocks none of which fits", k->name);
  return cudaSuccess;
}

static cudaError_t launch(kernel *k, const cudaLaunchConfig_t *with, void **args)
{
  const code *c = k ? code_of(k) : NULL;
  if (!c) return last;
  launches++;
  fake_enqueue(with->stream);
  cudaError_t e = check_shape(k, c, with->gridDim, with->blockDim);
  if (!e) e = check_shared(k, c, with->dynamicSmemBytes);
  if (!e) e = check_arguments(k, c, args);
  if (!e && !with->stream) e = broken(cudaErrorInvalidResourceHandle, "%s: it is not launched on the stream", k->name);
  for (unsigned i = 0; i < with->numAttrs && !e; i++) {
    const cudaLaunchAttribute *a = &with->attrs[i];
    if (a->id == cudaLaunchAttributeClusterDimension)
      e = check_cluster(k, c, with->gridDim, with->blockDim, with->dynamicSmemBytes, a->val.clusterDim.x, a->val.clusterDim.y,
                        a->val.clusterDim.z);
    else if (a->id == cudaLaunchAttributeCooperative)
      e = a->val.cooperative ? check_together(k, c, with->gridDim, with->blockDim, with->dynamicSmemBytes) : cudaSuccess;
    else if (a->id != cudaLaunchAttributeProgrammaticStreamSerialization)
      e = broken(cudaErrorInvalidValue, "%s: launch attribute %d, which this stand-in does not know", k->name, (int)a->id);
    else if (a->val.programmaticStreamSerializationAllowed && here()->major < 9)
      e = broken(cudaErrorNotSupported, "%s: programmatic serialisation, which devices before 9.0 have not", k->name);
  }
  return e;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *with, const void *function, void **args)
{
  return launch(kernel_of(function), with, args);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
  const cudaLaunchConfig_t with = { .gridDim = grid, .blockDim = block, .dynamicSmemBytes = shared, .stream = stream };
  return launch(kernel_of(function), &with, args);
}

/* -- what f<<<grid, block, shared, stream>>>(...) compiles to -- */

static cudaLaunchConfig_t pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream)
{
  pushed = (cudaLaunchConfig_t){ .gridDim = grid, .blockDim = block, .dynamicSmemBytes = shared, .stream = stream };
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
  *grid = pushed.gridDim;
  *block = pushed.blockDim;
  *shared = pushed.dynamicSmemBytes;
  *(cudaStream_t *)stream = pushed.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *function)
{
  *handle = (cudaKernel_t)(uintptr_t)function;
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t handle, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
  return cudaLaunchKernel(handle, grid, block, args, shared, stream);
}

/* ---- the rest -------------------------------------------------------------------------------------------- */

static CUresult context_get(CUcontext *context)
{
  *context = (CUcontext)(uintptr_t)&devices[current];
  return CUDA_SUCCESS;
}

static CUresult context_set(CUcontext context)
{
  current = (int)((const device *)(uintptr_t)context - devices);
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *found)
{
  static const struct { const char *name; void *entry; } known[] = {
    { "cuCtxGetCurrent", (void *)context_get }, { "cuCtxSetCurrent", (void *)context_set },
        { "cuTensorMapEncodeTiled", (void *)fake_encode_tiled },
    { "cuTensorMapEncodeIm2col", (void *)fake_encode_im2col }, { "cuTensorMapReplaceAddress", (void *)fake_replace_address },
  };
  (void)version, (void)flags;
  *entry = NULL;
  for (size_t i = 0; i < ARRAY(known); i++)
    if (!strcmp(known[i].name, name)) *entry = known[i].entry;
  *found = *entry ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n)
{
  *n = DEVICES;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *ordinal)
{
  *ordinal = current;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int ordinal)
{
  current = ordinal;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int ordinal)
{
  const device *d = &devices[ordinal];
  memset(out, 0, sizeof *out);
  snprintf(out->name, sizeof out->name, "%s", d->name);
  out->major = d->major;
  out->minor = d->minor;
  out->multiProcessorCount = d->units;
  out->totalGlobalMem = d->memory;
  out->l2CacheSize = (int)d->cache;
  out->sharedMemPerBlock = ORDINARY_SHARED;
  out->sharedMemPerBlockOptin = d->shared_per_block;
  out->sharedMemPerMultiprocessor = d->shared_per_unit;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int ordinal)
{
  const device *d = &devices[ordinal];
  switch ((int)attribute) {
  case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)d->shared_per_block; return cudaSuccess;
  case cudaDevAttrMultiProcessorCount: *value = d->units; return cudaSuccess;
  default: return broken(cudaErrorInvalidValue, "cudaDeviceGetAttribute %d, which this stand-in does not know", (int)attribute);
  }
}

cudaError_t cudaGetLastError(void)
{
  const cudaError_t e = last;
  last = cudaSuccess;
  return e;
}

const char *cudaGetErrorName(cudaError_t error) { return error ? "a limit is not kept" : "none"; }
const char *cudaGetErrorString(cudaError_t error) { return error ? first_broken : "no error"; }

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg)
{
  (void)stream;
  fn(arg);
  return cudaSuccess;
}

/* ---- self-test: what it must accept and refuse --------------------------------------------------------------- */

static char *cell;                      /* 256 bytes of device memory */

static void try_launch(kernel *k, dim3 grid, dim3 block, size_t shared, const cudaLaunchAttribute *how, bool streamed, const void *word)
{
  static const uint64_t zeros[4096];    /* larger than any parameter */
  const code *c = code_of(k);
  uint64_t first[4096] = { (uint64_t)(uintptr_t)word };
  const cudaLaunchConfig_t with = { .gridDim = grid, .blockDim = block, .dynamicSmemBytes = shared,
                                    .stream = streamed ? (cudaStream_t)&cell : NULL, .attrs = (cudaLaunchAttribute *)(uintptr_t)how,
                                    .numAttrs = how != NULL };
  void *args[MOST_PARAMETERS];
  for (int i = 0; i < MOST_PARAMETERS; i++) args[i] = (void *)(uintptr_t)zeros;
  if (c && c->parameters && c->parameter[0].size >= 8) args[0] = first;
  (void)launch(k, &with, args);
}

static void try_map(cuuint64_t stride, cuuint32_t box, uint64_t address)
{
  CUtensorMap map;
  const cuuint64_t dim[2] = { 64, 2 };
  const cuuint32_t boxes[2] = { 64, box }, steps[2] = { 1, 1 };
  if (!fake_encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 2, (void *)0x10000, dim, &stride, boxes, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                    CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    (void)fake_replace_address(&map, (void *)(uintptr_t)address);
}

static void judge(const char **wrong, bool keeps, const char *what)
{
  if (keeps != !ask_broken() && !*wrong) *wrong = what;
}

/* Tests the stand-in itself on a device: NULL, or what it misjudged. */
static const char *judge_itself(int ordinal)
{
  const cudaLaunchAttribute odd = { .id = cudaLaunchAttributeClusterDimension, .val.clusterDim = { 2, 1, 1 } };
  const cudaLaunchAttribute together = { .id = cudaLaunchAttributeCooperative, .val.cooperative = 1 };
  const dim3 one = { 1, 1, 1 }, warp = { 32, 1, 1 };
  const int before = current;
  const char *wrong = NULL;
  kernel *k = NULL;
  current = ordinal;
  for (size_t i = 0; i < n_kernels && !k; i++) {        /* a kernel whose first parameter may be a pointer */
    const code *c = code_in(kernels[i].module, kernels[i].name, here()->major, here()->minor);
    if (c && c->parameters && c->parameter[0].size >= 8 && !c->exactly && most_threads(&kernels[i], c) >= 32) k = &kernels[i];
  }
  if (!k || cudaMalloc((void **)&cell, 256)) wrong = "no kernel to try";
  ask_broken();
  if (!wrong) {
    try_launch(k, one, warp, 0, NULL, true, cell);
    judge(&wrong, true, "a plain launch");
    try_launch(k, one, warp, 0, NULL, true, cell + 256);
    judge(&wrong, true, "a pointer to the end");
    try_launch(k, one, warp, 0, NULL, true, cell + 257);
    judge(&wrong, false, "a pointer beyond the end");
    try_launch(k, one, warp, 0, NULL, false, cell);
    judge(&wrong, false, "no stream");
    try_launch(k, (dim3){ 0, 1, 1 }, warp, 0, NULL, true, cell);
    judge(&wrong, false, "an empty grid");
    try_launch(k, (dim3){ 1, 65536, 1 }, warp, 0, NULL, true, cell);
    judge(&wrong, false, "a grid of 65536 along y");
    try_launch(k, one, (dim3){ 32, 33, 1 }, 0, NULL, true, cell);
    judge(&wrong, false, "a block of 1056 threads");
    try_launch(k, one, (dim3){ (unsigned)most_threads(k, code_of(k)) + 1, 1, 1 }, 0, NULL, true, cell);
    judge(&wrong, false, "a thread more than its launch bounds");
    try_launch(k, one, (dim3){ 1, 1, 65 }, 0, NULL, true, cell);
    judge(&wrong, false, "a block of 65 along z");
    try_launch(k, one, warp, ORDINARY_SHARED + 1, NULL, true, cell);
    judge(&wrong, false, "more shared memory than was asked for");
    try_launch(k, one, warp, 0, &odd, true, cell);
    judge(&wrong, false, "half a cluster");
    try_launch(k, (dim3){ 2, 1, 1 }, warp, 0, &odd, true, cell);
    judge(&wrong, here()->major >= 9, "a cluster");
    try_launch(k, one, warp, 0, &together, true, cell);
    judge(&wrong, true, "a cooperative launch");
    try_launch(k, (dim3){ 1000000, 1, 1 }, warp, 0, &together, true, cell);
    judge(&wrong, false, "a cooperative launch of a million blocks");
    cudaFuncSetAttribute(k->function, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20);
    judge(&wrong, false, "more shared memory than there is");
    cudaMemsetAsync(cell, 0, 256, NULL);
    judge(&wrong, true, "a fill to the end");
    cudaMemsetAsync(cell + 1, 0, 256, NULL);
    judge(&wrong, false, "a fill beyond the end");
    try_map(192, 2, (uint64_t)(uintptr_t)cell);
    judge(&wrong, here()->major >= 9, "a tensor map");
    try_map(208, 2, (uint64_t)(uintptr_t)cell);
    judge(&wrong, false, "a tensor map beyond the end");
    try_map(100, 2, (uint64_t)(uintptr_t)cell);
    judge(&wrong, false, "a tensor map's stride of 100");
    try_map(64, 257, (uint64_t)(uintptr_t)cell);
    judge(&wrong, false, "a tensor map's box of 257");
    try_map(64, 2, (uint64_t)(uintptr_t)cell + 8);
    judge(&wrong, false, "a tensor map's address");
  }
  (void)cudaFree(cell);
  current = before;
  return wrong;
}

/* ---- the table for the test -------------------------------------------------------------------------------- */

static long ask_launches(void) { return launches; }

extern const fake_cuda fake_cuda_table;
__attribute__((visibility("default"))) const fake_cuda fake_cuda_table = {
  DEVICES, judge_itself, ask_broken, ask_launches, count_code, code_unread, fake_judge_order, fake_noted
};
