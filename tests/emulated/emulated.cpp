/* emulated.cpp -- runs the kernels that translate.py turned into C++, on a machine without a GPU: a device of fibers, and the parts
 * of the CUDA runtime that the CUDA backend calls. A launch is run at once, block by block, unless it is recorded.
 *
 * A kernel's errors become the runtime's: the launch fails, and cudaGetErrorString gives the sentence. Detected are: a block that waits
 * for threads that never come; a lane not in its mask, or a mask with lanes that have exited; a misaligned access; an index
 * beyond an array's end; a write past the requested shared memory; an instruction that is not emulated. Another stray write
 * kills the process if the address is unmapped, or is for the suite to find.
 *
 *   EMULATED_UNITS   number of SMs, default 4; engines divide their work by it
 *   EMULATED_ARCH    compute capability, 75 to 90, default 80, with such a device's shared memory
 *   EMULATED_ORDER   order of a block's threads between barriers, and of a launch's blocks: forward (default), backward, alternate
 *                    (each in turn: one for all launches between copies to the device, as the suite makes before each execution), or
 *                    chance; a result that depends on it reveals a race
 *   EMULATED_SEED    for chance
 *
 * Blocks that wait for one another (a cooperative launch) run concurrently, each in a process of its own, with device memory
 * shared among the processes.
 *
 * Not emulated: clusters; engines that have nothing else are left out of build.mk. Nor does weak memory
 * ordering show: a missing fence does no harm here, nor a copy or a product that is not waited for. */
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <vector>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cuda.h>
#include "device.h"

/* ---- settings -------------------------------------------------------------------------------------------------- */

static long setting(const char *name, long otherwise)
{
  const char *value = getenv(name);
  return value ? atol(value) : otherwise;
}

typedef struct model { int arch; size_t shared_per_block, shared_per_unit; } model;

static const model &device_model()
{
  static const model models[] = { { 75, 65536, 65536 }, { 80, 166912, 167936 }, { 89, 101376, 102400 }, { INT_MAX, 232448, 233472 } };
  const long arch = setting("EMULATED_ARCH", 80);
  const model *m = models;
  while (m->arch < arch) m++;
  return *m;
}

/* ---- state of what runs ---------------------------------------------------------------------------------------- */

enum { MOST_THREADS = 1024, MOST_SHARED = 232448, CANARY = 256, STACK = 256 << 10 };

enum state { READY, AT_BLOCK, AT_NAMED, AT_WARP, DONE };

/* Where a fiber, or the scheduler, goes on: its stack pointer, below which are the registers that a call preserves. */
#ifdef __x86_64__
typedef void *place;
#else
typedef ucontext_t place;               /* makes system calls */
#endif

typedef struct fiber {
  place    at;
  bool     made;                        /* at: where to continue; else not created yet */
  state    is;
  uint3    index;
  int      lane, vote;
  unsigned mask;                        /* AT_WARP */
  int      id, threads, any;            /* AT_NAMED; any: the outcome of its vote */
  char     gives[16], given[16];        /* gives: to its warp while it waits; given: to be read once all have arrived */
  unsigned products;                    /* so far */
} fiber;

/* A warp's product of Tensor Cores: written lane by lane, multiplied by the first that goes on once all have come. */
typedef double four __attribute__((vector_size(32)));
typedef struct warp_product {
  double   a[16][32];                   /* row, k */
  four     b[32][2], sum[16][2];        /* k; row: of 8 columns */
  unsigned done;                        /* which of the warp's products sum is of */
} warp_product;

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
int emulated_lane;
alignas(1024) char emulated_shared[MOST_SHARED + CANARY];
emulated_bind **emulated_ask;
const char *emulated_kernel;

static std::recursive_mutex lock;       /* held by all that follows */
static fiber fibers[MOST_THREADS], *now;
static warp_product warp_products[MOST_THREADS / 32][2];  /* this one, and the one before, which others may still read */
static int threads, turns[MOST_THREADS], voted;
static int arrivals[32];                /* at each named barrier, without waiting */
static size_t shared_bytes;
static place scheduler;
static bool failed;                     /* the fiber that goes back to the scheduler has */
static const std::function<void()> *body;
static int64_t only_block = -1;         /* for a process that runs one block of a launch; -1: all */

static cudaError_t last;
static char sentence[512];

/* Leaves this fiber, or the scheduler, to go on from here later, and goes on with another. */
#ifdef __x86_64__
asm(R"(
  .text
emulated_switch:
  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
  ret
)");
extern "C" __attribute__((visibility("hidden"))) void emulated_switch(place *from, place to);
static void go_to(place *from, const place *to) { emulated_switch(from, *to); }
#else
static void go_to(place *from, const place *to) { swapcontext(from, to); }
#endif

static void wait_as(state is)
{
  now->is = is;
  go_to(&now->at, &scheduler);
}

static void launch_fails(const char *format, va_list args)
{
  int n = vsnprintf(sentence, sizeof sentence / 2, format, args);
  n = std::min<int>(n, sizeof sentence / 2 - 1);
  snprintf(sentence + n, sizeof sentence - (size_t)n, "; block %u %u %u of %s", blockIdx.x, blockIdx.y, blockIdx.z, emulated_kernel);
  last = cudaErrorLaunchFailure;
}

static bool block_fails(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool block_fails(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  launch_fails(format, args);
  va_end(args);
  return false;
}

void emulated_error(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  launch_fails(format, args);
  va_end(args);
  failed = true;
  go_to(&now->at, &scheduler);
  __builtin_unreachable();
}

void *emulated_at_shared(uint32_t at, int bytes)
{
  char *p = emulated_shared + (int32_t)at;
  if (at % (unsigned)bytes) emulated_error("an access of %d bytes at shared address %u, which is not aligned to them", bytes, at);
  if (at < sizeof emulated_shared && at + (unsigned)bytes > shared_bytes)
    emulated_error("an access of %d bytes at shared address %u, of %zu that there are", bytes, at, shared_bytes);
  return p;
}

/* Called by the compiler's checks (-fsanitize=alignment,bounds); only what is read here of their reports. */
struct found_place { const char *file; unsigned line, column; };
extern "C" [[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(found_place *place, unsigned long p)
{
  emulated_error("%s:%u: an access to %#lx, which is not aligned to its type", place->file, place->line, p);
}
extern "C" [[noreturn]] void __ubsan_handle_out_of_bounds_abort(found_place *place, unsigned long index)
{
  emulated_error("%s:%u: index %ld is beyond the array", place->file, place->line, (long)index);
}

/* ---- fibers ---------------------------------------------------------------------------------------------------- */

static void live()
{
  for (;;) {
    (*body)();
    wait_as(DONE);
  }
}

#ifdef __x86_64__
static void begin(place *at, char *stack)
{
  void **top = (void **)(stack + STACK);
  *--top = NULL;                          /* live returns nowhere; this aligns its stack */
  *--top = (void *)live;
  *at = top - 6;
}
#else
static void begin(place *at, char *stack)
{
  getcontext(at);
  at->uc_stack.ss_sp = stack, at->uc_stack.ss_size = STACK;
  makecontext(at, live, 0);
}
#endif

static void make(fiber *f)
{
  static char *stacks;
  const int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (!stacks) stacks = (char *)mmap(NULL, (size_t)MOST_THREADS * STACK, PROT_READ | PROT_WRITE, kind, -1, 0);
  if (stacks == MAP_FAILED) abort();
  begin(&f->at, stacks + (f - fibers) * STACK);
  f->made = true;
}

/* Runs a fiber until it waits or ends; false: until it failed. */
static bool go_on(fiber *f)
{
  if (!f->made) make(f);
  now = f;
  threadIdx = f->index;
  emulated_lane = f->lane;
  failed = false;
  go_to(&scheduler, &f->at);
  return !failed;
}

int emulated_block_barrier(int vote)
{
  now->vote = vote != 0;
  wait_as(AT_BLOCK);
  return voted;
}

int emulated_named_barrier(int id, int of, int vote)
{
  now->id = id, now->threads = of, now->vote = vote;
  wait_as(AT_NAMED);
  return now->any;
}

void emulated_named_arrival(int id, int) { arrivals[id]++; }

void emulated_give(unsigned mask, const void *word, size_t bytes)
{
  if (!(mask >> now->lane & 1)) emulated_error("lane %d takes part in what is for the lanes of mask %#x", now->lane, mask);
  now->mask = mask;
  memcpy(now->gives, word, bytes);
  wait_as(AT_WARP);
}

const void *emulated_given(int lane)
{
  static const unsigned char none[16] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 };
  const fiber *of = now - now->lane + lane;
  return lane < 0 || lane >= warpSize || of >= fibers + threads || !(now->mask >> lane & 1) ? (const void *)none : of->given;
}

/* Lane 4g + q has words q and q + 4 of rows g and g + 8 of a, and of column g of b. */
static void put_fragment(warp_product *p, int lane, int each, const emulated_fragment &own)
{
  for (int i = 0; i < 2; i++)
    for (int e = 0; e < each; e++) {
      const int k = (4 * i + lane % 4) * each + e;
      for (int h = 0; h < 2; h++) p->a[lane / 4 + 8 * h][k] = own.a[(2 * i + h) * each + e];
      p->b[k][lane / 16][lane / 4 % 4] = own.b[i * each + e];
    }
}

#ifdef __x86_64__
__attribute__((target_clones("avx2", "default")))
#endif
static void multiply(warp_product *p, int k_end)
{
  for (int row = 0; row < 16; row++) {
    four left = {}, right = {};
    for (int k = 0; k < k_end; k++) left += p->a[row][k] * p->b[k][0], right += p->a[row][k] * p->b[k][1];
    p->sum[row][0] = left, p->sum[row][1] = right;
  }
}

void emulated_product(const emulated_fragment &own, int each, double sum[4])
{
  const int first = (int)(now - fibers) - now->lane, lanes = std::min<int>(warpSize, threads - first);
  warp_product *p = &warp_products[first / warpSize][now->products++ % 2];
  put_fragment(p, now->lane, each, own);
  emulated_give(~0u, "", 1);
  if (p->done != now->products) {
    emulated_fragment none;               /* of lanes that are not there */
    std::fill(none.a, none.a + 16, NAN), std::fill(none.b, none.b + 8, NAN);
    for (int lane = lanes; lane < warpSize; lane++) put_fragment(p, lane, each, none);
    multiply(p, 8 * each);
    p->done = now->products;
  }
  for (int h = 0; h < 2; h++)
    for (int c = 0; c < 2; c++) sum[2 * h + c] += p->sum[now->lane / 4 + 8 * h][now->lane % 4 / 2][now->lane % 2 * 2 + c];
}

void emulated_let_others()
{
  if (only_block >= 0) sched_yield();
  wait_as(READY);
}

/* ---- barriers: tested when no thread can run, so all released threads read what was given before it changes ------------------ */

static bool let_go_of_warp(fiber *warp)
{
  bool any = false;
  const int lanes = std::min<int>(warpSize, (int)(fibers + threads - warp));
  for (fiber *f = warp; f < warp + lanes; f++) {
    if (f->is != AT_WARP) continue;
    unsigned there = lanes == warpSize ? 0 : ~0u << lanes;    /* in a shorter last warp any mask will do */
    const unsigned mask = f->mask;
    for (int l = 0; l < lanes; l++) {
      if (warp[l].is == AT_WARP && warp[l].mask == mask) there |= 1u << l;
      if (warp[l].is == DONE && mask >> l & 1) return block_fails("lanes of mask %#x wait for lane %d, which has left", mask, l);
    }
    if (~there & mask) continue;
    any = true;
    for (int l = 0; l < lanes; l++)
      if (mask >> l & 1) {
        memcpy(warp[l].given, warp[l].gives, sizeof warp[l].given);
        warp[l].is = READY;
      }
  }
  return any;
}

static bool let_go_of_named()
{
  bool any = false;
  for (int i = 0; i < threads; i++) {
    const int id = fibers[i].id;
    int there = arrivals[id], vote = 0;
    if (fibers[i].is != AT_NAMED) continue;
    for (int k = 0; k < threads; k++)
      if (fibers[k].is == AT_NAMED && fibers[k].id == id) there++, vote |= fibers[k].vote;
    if (there != fibers[i].threads) continue;
    any = true, arrivals[id] = 0;
    for (int k = 0; k < threads; k++)
      if (fibers[k].is == AT_NAMED && fibers[k].id == id) fibers[k].is = READY, fibers[k].any = vote;
  }
  return any;
}

/* Threads that have exited are not waited for. */
static bool let_go_of_block()
{
  voted = 0;
  for (int i = 0; i < threads; i++) {
    if (fibers[i].is != AT_BLOCK && fibers[i].is != DONE) return false;
    voted += fibers[i].is == AT_BLOCK && fibers[i].vote;
  }
  for (int i = 0; i < threads; i++)
    if (fibers[i].is == AT_BLOCK) fibers[i].is = READY;
  return true;
}

static bool deadlock()
{
  int of[DONE + 1] = { 0 };
  for (int i = 0; i < threads; i++) of[fibers[i].is]++;
  return block_fails("threads wait in vain: %d at the block's barrier, %d at a named one, %d for their warp; %d have left",
                     of[AT_BLOCK], of[AT_NAMED], of[AT_WARP], of[DONE]);
}

/* ---- blocks and launches --------------------------------------------------------------------------------------- */

enum order { FORWARD, BACKWARD, CHANCE };

static bool copied, backward;           /* copied: to the device, since the last launch; backward: in whose turn it is */

static order run_order()
{
  const char *s = getenv("EMULATED_ORDER");
  if (s && !strcmp(s, "alternate") && std::exchange(copied, false)) backward = !backward;
  return s && !strcmp(s, "backward") ? BACKWARD : s && !strcmp(s, "chance") ? CHANCE : backward ? BACKWARD : FORWARD;
}

static uint64_t chance(uint64_t n)      /* below n */
{
  static uint64_t state = (uint64_t)setting("EMULATED_SEED", 1);
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (state >> 32) % n;
}

static void put_in_order(order o)
{
  for (int i = 0; i < threads; i++) turns[i] = o == BACKWARD ? threads - 1 - i : i;
  for (int i = threads - 1; i > 0 && o == CHANCE; i--) std::swap(turns[i], turns[chance((uint64_t)i + 1)]);
}

/* Returns whether it completed. */
static bool run_block()
{
  int living = threads;
  memset(arrivals, 0, sizeof arrivals);
  for (int w = 0; w * warpSize < threads; w++) warp_products[w][0].done = warp_products[w][1].done = 0;
  for (int i = 0; i < threads; i++) {
    fiber *f = &fibers[i];
    f->is = READY, f->products = 0;
    f->index = make_uint3((unsigned)i % blockDim.x, (unsigned)i / blockDim.x % blockDim.y, (unsigned)i / (blockDim.x * blockDim.y));
    f->lane = i % warpSize;
  }
  while (living) {
    bool any = false;
    for (int i = 0; i < threads; i++) {
      fiber *f = &fibers[turns[i]];
      if (f->is != READY) continue;
      any = true;
      if (!go_on(f)) return false;
      living -= f->is == DONE;
    }
    for (int w = 0; w < threads; w += warpSize) any |= let_go_of_warp(fibers + w);
    if (last) return false;
    any |= let_go_of_named();
    if (!any && living && !let_go_of_block()) return deadlock();
  }
  for (int i = 0; i < CANARY; i++)
    if (emulated_shared[shared_bytes + (size_t)i] != (char)0xab)
      return block_fails("byte %zu of shared memory was written, of %zu that there are", shared_bytes + (size_t)i, shared_bytes);
  return true;
}

static void run_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &thread)
{
  const uint64_t count = (uint64_t)block.x * block.y * block.z, blocks = (uint64_t)grid.x * grid.y * grid.z;
  if (!count || count > MOST_THREADS || block.z > 64 || !blocks || grid.x > INT_MAX || grid.y > 65535 || grid.z > 65535
      || shared > device_model().shared_per_block) {
    snprintf(sentence, sizeof sentence, "a launch of %u x %u x %u blocks of %u x %u x %u threads with %zu bytes of shared memory",
             grid.x, grid.y, grid.z, block.x, block.y, block.z, shared);
    last = cudaErrorInvalidConfiguration;
    return;
  }
  const order o = run_order();
  threads = (int)count, shared_bytes = shared, body = &thread, gridDim = grid, blockDim = block;
  const bool down = o == BACKWARD || (o == CHANCE && chance(2));
  const uint64_t first = o == CHANCE ? chance(blocks) : 0;
  for (uint64_t i = 0; i < blocks; i++) {
    const uint64_t b = down ? blocks - 1 - (first + i) % blocks : (first + i) % blocks;
    if (only_block >= 0 && b != (uint64_t)only_block) continue;
    blockIdx = make_uint3((unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y));
    memset(emulated_shared, 0xff, shared);
    memset(emulated_shared + shared, 0xab, CANARY);
    put_in_order(o);
    if (run_block()) continue;
    for (fiber &f : fibers) f.made = false;                   /* abandoned within a kernel */
    return;
  }
}

/* The same with concurrent blocks. A block that fails reports on stderr. */
static void run_together(dim3 grid, dim3 block, size_t shared, const std::function<void()> &thread)
{
  const int64_t blocks = (int64_t)grid.x * grid.y * grid.z;
  std::vector<pid_t> processes;
  run_order();                          /* whose turn it is, for all of them */
  for (int64_t b = 0; b < blocks; b++) {
    const pid_t process = fork();
    if (!process) {
      only_block = b;
      run_launch(grid, block, shared, thread);
      if (last) fprintf(stderr, "# %s\n", sentence);
      _exit(last != cudaSuccess);
    }
    processes.push_back(process);
  }
  for (pid_t process : processes) {
    int status;
    if (process > 0 && waitpid(process, &status, 0) == process && !status) continue;
    snprintf(sentence, sizeof sentence, "one of %lld blocks that run side by side", (long long)blocks);
    last = cudaErrorLaunchFailure;
  }
}

/* ---- streams: work is done at once, or recorded ---------------------------------------------------------------- */

typedef std::vector<std::function<void()>> recording;
static recording *recorded;
static std::set<const void *> recorded_on;  /* the stream, those that wait for what it recorded, and the events in between */

static void enqueue(cudaStream_t stream, std::function<void()> f)
{
  std::lock_guard<std::recursive_mutex> held(lock);
  if (recorded && recorded_on.count(stream)) recorded->push_back(f);
  else f();
}

static void enqueue_together(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, std::function<void()> thread)
{
  enqueue(stream, [=] { run_together(grid, block, shared, thread); });
}
void emulated_enqueue(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, std::function<void()> thread)
{
  enqueue(stream, [=] { run_launch(grid, block, shared, thread); });
}

static cudaError_t taken()              /* returns the pending error and clears it */
{
  std::lock_guard<std::recursive_mutex> held(lock);
  return std::exchange(last, cudaSuccess);
}

/* ---- the runtime functions that the backend calls -------------------------------------------------------------- */

#define API extern "C" cudaError_t

/* The largest parameter block: a kernel that is asked looks for its parameters in here. */
typedef struct parameters { char bytes[32764]; } parameters;

static std::function<void()> bound(const void *kernel, void **args)
{
  static const parameters none = {};
  emulated_bind *bind = NULL;
  emulated_ask = &bind;
  ((void (*)(parameters))kernel)(none);
  emulated_ask = NULL;
  return bind(kernel, args);
}

API cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream)
{
  std::lock_guard<std::recursive_mutex> held(lock);
  emulated_enqueue(grid, block, shared, stream, bound(kernel, args));
  return taken();
}

API cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel, void **args)
{
  for (unsigned i = 0; i < config->numAttrs; i++) {
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
      const auto &c = config->attrs[i].val.clusterDim;
      if (c.x * c.y * c.z == 1) continue;
      snprintf(sentence, sizeof sentence, "clusters are not emulated");
      return cudaErrorNotSupported;
    }
    if (config->attrs[i].id != cudaLaunchAttributeCooperative) continue;
    std::lock_guard<std::recursive_mutex> held(lock);
    enqueue_together(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream, bound(kernel, args));
    return taken();
  }
  return cudaLaunchKernel(kernel, config->gridDim, config->blockDim, args, config->dynamicSmemBytes, config->stream);
}

extern "C" const char *cudaGetErrorString(cudaError_t) { return sentence; }
extern "C" const char *cudaGetErrorName(cudaError_t e)
{
  return e == cudaErrorLaunchFailure ? "the kernel" : e == cudaErrorInvalidConfiguration ? "the launch" : "the emulation";
}
API cudaGetLastError() { return taken(); }

API cudaGetDeviceCount(int *n) { return *n = 1, cudaSuccess; }
API cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
API cudaSetDevice(int) { return cudaSuccess; }
API cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
  const long arch = setting("EMULATED_ARCH", 80);
  memset(p, 0, sizeof *p);
  strcpy(p->name, "emulated");
  p->major = (int)arch / 10, p->minor = (int)arch % 10;
  p->multiProcessorCount = (int)setting("EMULATED_UNITS", 4);
  p->totalGlobalMem = 1ull << 33;
  p->l2CacheSize = 4 << 20;
  p->sharedMemPerBlockOptin = device_model().shared_per_block;
  p->sharedMemPerMultiprocessor = device_model().shared_per_unit;
  return cudaSuccess;
}
API cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
  snprintf(sentence, sizeof sentence, "attribute %d is not emulated", (int)attribute);
  if (attribute == cudaDevAttrMultiProcessorCount) *value = (int)setting("EMULATED_UNITS", 4);
  else if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin) *value = (int)device_model().shared_per_block;
  else return cudaErrorNotSupported;
  return cudaSuccess;
}
API cudaFuncGetAttributes(cudaFuncAttributes *a, const void *) { return memset(a, 0, sizeof *a), cudaSuccess; }
API cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }

/* Preceded by a page that stores its size. */
API cudaMalloc(void **p, size_t n)
{
  enum { PAGE = 4096 };
  size_t *head = (size_t *)mmap(NULL, n + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (head == MAP_FAILED) return cudaErrorMemoryAllocation;
  *head = n + PAGE;
  *p = (char *)head + PAGE;
  return cudaSuccess;
}
API cudaFree(void *p)
{
  if (!p) return cudaSuccess;
  char *head = (char *)p - 4096;
  munmap(head, *(size_t *)head);
  return cudaSuccess;
}
API cudaHostAlloc(void **p, size_t n, unsigned) { return cudaMalloc(p, n); }
API cudaFreeHost(void *p) { return cudaFree(p); }
API cudaMemcpyAsync(void *to, const void *from, size_t n, cudaMemcpyKind kind, cudaStream_t stream)
{
  return enqueue(stream, [=] { memcpy(to, from, n), copied |= kind == cudaMemcpyHostToDevice; }), cudaSuccess;
}
API cudaMemsetAsync(void *to, int byte, size_t n, cudaStream_t stream)
{
  return enqueue(stream, [=] { memset(to, byte, n); }), cudaSuccess;
}
API cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t f, void *with) { return enqueue(stream, [=] { f(with); }), cudaSuccess; }

API cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) { return *s = (cudaStream_t)malloc(1), cudaSuccess; }
API cudaStreamDestroy(cudaStream_t s) { return free(s), cudaSuccess; }
API cudaStreamSynchronize(cudaStream_t) { return taken(); }
API cudaStreamQuery(cudaStream_t) { return taken(); }
/* Streams run in call order, which satisfies events; a recording spreads along them. */
static void spreads(const void *from, const void *to)
{
  if (recorded && recorded_on.count(from)) recorded_on.insert(to);
}
API cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) { return spreads(e, s), cudaSuccess; }
API cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) { return *e = (cudaEvent_t)malloc(1), cudaSuccess; }
API cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }
API cudaEventDestroy(cudaEvent_t e) { return free(e), cudaSuccess; }
API cudaEventRecord(cudaEvent_t e, cudaStream_t s) { return spreads(s, e), cudaSuccess; }
API cudaEventSynchronize(cudaEvent_t) { return taken(); }
API cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) { return *ms = 1, cudaSuccess; }

API cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
  return recorded = new recording, recorded_on = { stream }, cudaSuccess;
}
API cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph)
{
  return *graph = (cudaGraph_t)std::exchange(recorded, nullptr), cudaSuccess;
}
API cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *s)
{
  return *s = recorded && recorded_on.count(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone, cudaSuccess;
}
API cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
  return *exec = (cudaGraphExec_t)graph, cudaSuccess;
}
API cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }       /* its content moved to the exec */
API cudaGraphExecDestroy(cudaGraphExec_t exec) { return delete (recording *)exec, cudaSuccess; }
API cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
  for (const auto &f : *(recording *)exec) enqueue(stream, f);
  return taken();
}

static CUresult context_get(CUcontext *context) { return *context = (CUcontext)&last, CUDA_SUCCESS; }
static CUresult context_set(CUcontext) { return CUDA_SUCCESS; }
/* What both kinds of maps hold; false: it is nothing that a driver takes. */
static bool map_tensor(CUtensorMap *map, CUtensorMapDataType type, int rank, void *base, const cuuint64_t *extent, const cuuint64_t *stride,
                       CUtensorMapSwizzle swizzle)
{
  emulated_map *m = (emulated_map *)map;
  *m = emulated_map();
  m->base = (const char *)base;
  m->size = 2;
  if (type == CU_TENSOR_MAP_DATA_TYPE_UINT8) m->size = 1;
  for (auto four : { CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, CU_TENSOR_MAP_DATA_TYPE_INT32 })
    if (type == four) m->size = 4;
  m->span = swizzle == CU_TENSOR_MAP_SWIZZLE_128B ? 128 : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64
            : swizzle == CU_TENSOR_MAP_SWIZZLE_32B ? 32 : 0;
  for (int i = 0; i < rank; i++) {
    m->extent[i] = (int64_t)extent[i];
    if (i) m->stride[i - 1] = (int64_t)stride[i - 1];
    if (!extent[i] || (i && stride[i - 1] % 16)) return false;
  }
  return true;
}
static CUresult check_row(const emulated_map *m)
{
  const int row = m->box[0] * m->size;
  return row % 16 || (m->span && row > m->span) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
static CUresult map_tiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base, const cuuint64_t *extent,
                          const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave,
                          CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill)
{
  emulated_map *m = (emulated_map *)map;
  if (rank != 4) return CUDA_ERROR_NOT_SUPPORTED;
  if (!map_tensor(map, type, 4, base, extent, stride, swizzle)) return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < 4; i++) {
    m->box[i] = (int32_t)box[i];
    if (!box[i] || box[i] > 256 || step[i] != 1) return CUDA_ERROR_INVALID_VALUE;
  }
  return check_row(m);
}
static CUresult map_im2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base, const cuuint64_t *extent,
                           const cuuint64_t *stride, const int *lower, const int *upper, cuuint32_t channels, cuuint32_t pixels,
                           const cuuint32_t *step, CUtensorMapInterleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                           CUtensorMapFloatOOBfill)
{
  emulated_map *m = (emulated_map *)map;
  const int most = rank == 4 ? 127 : 15;
  if (rank != 4 && rank != 5) return CUDA_ERROR_NOT_SUPPORTED;
  if (!map_tensor(map, type, (int)rank, base, extent, stride, swizzle)) return CUDA_ERROR_INVALID_VALUE;
  if (!channels || channels > 256 || !pixels || pixels > 1024) return CUDA_ERROR_INVALID_VALUE;
  m->spatial = (uint8_t)(rank - 2);
  m->box[0] = (int32_t)channels, m->box[1] = (int32_t)pixels;
  for (int d = 0; d < m->spatial; d++) {
    const int64_t last = (int64_t)extent[1 + d] - 1 + upper[d];
    if (!step[1 + d] || step[1 + d] > 8) return CUDA_ERROR_INVALID_VALUE;
    for (int bound : { lower[d], upper[d] })
      if (bound < -most - 1 || bound > most) return CUDA_ERROR_INVALID_VALUE;
    if (last < lower[d]) return CUDA_ERROR_INVALID_VALUE;
    m->lower[d] = (int16_t)lower[d], m->last[d] = (int32_t)last, m->pace[d] = (uint8_t)step[1 + d];
  }
  return check_row(m);
}
static CUresult map_address(CUtensorMap *map, void *base)
{
  ((emulated_map *)map)->base = (const char *)base;
  return (uintptr_t)base % 16 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
API cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned, unsigned long long, cudaDriverEntryPointQueryResult *found)
{
  static const struct { const char *name; void *entry; } known[] = {
    { "cuCtxGetCurrent", (void *)context_get }, { "cuCtxSetCurrent", (void *)context_set },
    { "cuTensorMapEncodeTiled", (void *)map_tiled }, { "cuTensorMapEncodeIm2col", (void *)map_im2col },
    { "cuTensorMapReplaceAddress", (void *)map_address },
  };
  *entry = NULL;
  for (const auto &k : known)
    if (!strcmp(name, k.name)) *entry = k.entry;
  *found = *entry ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
