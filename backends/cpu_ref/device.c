/* device.c -- the device kind "cpu": the machine's one CPU, its memory, its clock. It has no streams: every call blocks
 * until it is done, so ordering costs nothing and recordings are core's lists. */
#include "cpu_ref.h"
#include <fenv.h>
#include <float.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

/* ---- this CPU's description ---------------------------------------------------------------- */

typedef struct identity {
  uint64_t features;
  char     name[49];                      /* the CPU's name */
  int      family, model;                 /* as the vendor numbers them; 0: unknown */
} identity;

#if defined(__x86_64__) || defined(__i386__)
static identity identify(void)
{
  identity id = { 0, "x86 CPU", 0, 0 };
  unsigned a, b, c, d, brand[12];
  if (__get_cpuid(0x80000002, &brand[0], &brand[1], &brand[2], &brand[3])
      && __get_cpuid(0x80000003, &brand[4], &brand[5], &brand[6], &brand[7])
      && __get_cpuid(0x80000004, &brand[8], &brand[9], &brand[10], &brand[11])) {
    char text[49];
    memcpy(text, brand, 48);
    text[48] = '\0';
    const char *start = text + strspn(text, " ");
    size_t length = strlen(start);
    while (length > 0 && start[length - 1] == ' ') length--;
    if (length > 0) snprintf(id.name, sizeof id.name, "%.*s", (int)length, start);
  }
  if (!__get_cpuid(1, &a, &b, &c, &d)) return id;
  const unsigned base_family = a >> 8 & 15, base_model = a >> 4 & 15;
  id.family = (int)(base_family + (base_family == 15 ? a >> 20 & 255 : 0));
  id.model = (int)(base_model + (base_family == 15 || base_family == 6 ? (a >> 16 & 15) << 4 : 0));

  const unsigned needed = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C;
  if ((c & needed) != needed) return id;
  unsigned enabled, upper;                /* register states saved by the OS: XCR0 */
  __asm__ volatile ("xgetbv" : "=a"(enabled), "=d"(upper) : "c"(0));
  if ((enabled & 0x06) != 0x06 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return id;
  if (b & bit_AVX2) id.features |= QN_CPU_AVX2;
  const unsigned avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  if (id.features && (b & avx512) == avx512 && (enabled & 0xe6) == 0xe6) id.features |= QN_CPU_AVX512;
  return id;
}
#else
static identity identify(void)
{
  const identity id = { 0, "CPU", 0, 0 };
  return id;
}
#endif

static const struct level { const char *name; uint64_t features; } levels[] = {
  { "avx512", QN_CPU_AVX2 | QN_CPU_AVX512 },
  { "avx2", QN_CPU_AVX2 },
  { "generic", 0 },
};
enum { N_LEVELS = sizeof levels / sizeof *levels };
static const char *const models[] = { "generic", "avx2", "avx512", NULL };

static const struct level *level_of(uint64_t features)
{
  int i = 0;
  while ((levels[i].features & features) != levels[i].features) i++;      /* "generic" requires nothing */
  return &levels[i];
}

static int cores(void)
{
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  const long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (int)n : 1;
}

static bool line_of_cache(int index, const char *what, char *line, int bytes)
{
  char path[80];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, what);
  FILE *file = fopen(path, "re");
  const bool there = file && fgets(line, bytes, file);
  if (file) fclose(file);
  return there;
}

/* The size of all last-level caches together, as the kernel describes them; sysconf is ten times too large on some CPUs and has no
 * answer on others. */
static uint64_t last_level_cache(void)
{
  char size[32], list[512];
  for (int index = 4; index > 1; index--) {
    if (!line_of_cache(index, "size", size, sizeof size) || !line_of_cache(index, "shared_cpu_list", list, sizeof list)) continue;
    long sharing = 0;                     /* CPUs that share the cache: "0-7,64-71" */
    for (char *s = list; *s >= '0' && *s <= '9'; s += *s == ',') {
      const long first = strtol(s, &s, 10), last = *s == '-' ? strtol(s + 1, &s, 10) : first;
      sharing += last - first + 1;
    }
    const uint64_t bytes = strtoull(size, NULL, 10) << 10, online = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    if (bytes && sharing > 0) return bytes * ((online + (uint64_t)sharing - 1) / (uint64_t)sharing);
  }
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE) > 0 ? sysconf(_SC_LEVEL3_CACHE_SIZE) : sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? (uint64_t)bytes : 0;
}

static qn_status count(int32_t *n)
{
  *n = 1;
  return QN_OK;
}

/* What does not change while the process lives: the instruction that identifies a CPU is slow in a virtual machine. */
static qn_device machine;
static void look(void)
{
  const identity id = identify();
  snprintf(machine.kind, sizeof machine.kind, "cpu");
  snprintf(machine.name, sizeof machine.name, "%s", id.name);
  /* measurements of one CPU model must not be used on another */
  snprintf(machine.model, sizeof machine.model, "%s-%02x_%02x", level_of(id.features)->name, (unsigned)id.family, (unsigned)id.model);
  machine.features = id.features;
  machine.memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  machine.cache = last_level_cache();
}

static qn_status describe(int32_t ordinal, qn_device *out)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (ordinal != 0) return cpu_host->error(QN_BAD_ARGUMENT, "device: a machine has one cpu, number 0");
  pthread_once(&once, look);
  memcpy(out->kind, machine.kind, sizeof out->kind);
  memcpy(out->name, machine.name, sizeof out->name);
  memcpy(out->model, machine.model, sizeof out->model);
  out->ordinal = 0;
  out->units = cores();
#ifdef _OPENMP
  out->threads = omp_get_max_threads();
#else
  out->threads = 1;
#endif
  out->features = machine.features;
  out->memory = machine.memory;
  out->cache = machine.cache;
  return QN_OK;
}

/* A live description is kept, less features; an empty one becomes a generic machine of eight cores. */
static qn_status describe_model(const char *model, qn_device *out)
{
  int i = 0;
  while (i < N_LEVELS && strcmp(levels[i].name, model)) i++;
  if (i == N_LEVELS)
    return cpu_host->error(QN_BAD_ARGUMENT, "device model: not one of the cpu's, which are generic, avx2 and avx512");
  if (out->kind[0]) {
    if (levels[i].features & ~out->features)
      return cpu_host->error(QN_BAD_ARGUMENT, "device model: this cpu lacks instructions of that model");
  } else {
    snprintf(out->kind, sizeof out->kind, "cpu");
    snprintf(out->name, sizeof out->name, "a cpu with %s instructions", i == N_LEVELS - 1 ? "baseline" : levels[i].name);
    out->ordinal = -1;
    out->units = out->threads = 8;
    out->memory = (uint64_t)16 << 30;
    out->cache = (uint64_t)32 << 20;
  }
  snprintf(out->model, sizeof out->model, "%s", levels[i].name);
  out->features = levels[i].features;
  return QN_OK;
}

/* All error bounds assume C's default floating-point mode, which engines and their threads take from the caller. A program linked
 * with -ffast-math has another. */
static qn_status device_open(qn_device *device)
{
  volatile float least = FLT_MIN;
  (void)device;
  least = least / 2;
  if (least == 0)
    cpu_host->log(QN_LOG_WARN,
                  "this thread takes subnormal numbers for 0 (FTZ or DAZ; -ffast-math sets them): results on the CPU keep no bound");
  if (fegetround() != FE_TONEAREST)
    cpu_host->log(QN_LOG_WARN, "this thread does not round to nearest: results on the CPU keep no bound");
  return QN_OK;
}

/* ---- memory, in the order of the caller's own loads and stores -------------------------------- */

static qn_status device_alloc(const qn_device *device, size_t bytes, void **p)
{
  (void)device;
  if (posix_memalign(p, 256, bytes) == 0) return QN_OK;
  *p = NULL;
  return cpu_host->error(QN_NO_MEMORY, "the host's memory ran out");
}

static void device_free(const qn_device *device, void *p)
{
  (void)device;
  free(p);
}

static qn_status copy(const qn_device *device, void *dst, const void *src, size_t bytes, int kind, void *stream)
{
  (void)device, (void)kind, (void)stream;
  if (bytes) memmove(dst, src, bytes);
  return QN_OK;
}

static qn_status fill(const qn_device *device, void *dst, int byte, size_t bytes, void *stream)
{
  (void)device, (void)stream;
  if (bytes) memset(dst, byte, bytes);
  return QN_OK;
}

/* ---- streams: there are none ------------------------------------------------------------------ */

static qn_status stream_create(const qn_device *device, void **stream)
{
  (void)device;
  *stream = NULL;
  return QN_OK;
}

static void stream_destroy(const qn_device *device, void *stream)
{
  (void)device, (void)stream;
}

static qn_status stream_synchronize(const qn_device *device, void *stream)
{
  (void)device, (void)stream;
  return QN_OK;
}

static qn_status stream_wait(const qn_device *device, void *stream, void *other)
{
  (void)device, (void)stream, (void)other;
  return QN_OK;
}

static qn_status host_call(const qn_device *device, void *stream, void (*fn)(void *), void *arg)
{
  (void)device, (void)stream;
  fn(arg);
  return QN_OK;
}

/* ---- events: readings of the monotonic clock --------------------------------------------------- */

static qn_status event_create(const qn_device *device, void **event)
{
  (void)device;
  *event = cpu_host->alloc(sizeof(struct timespec));
  return *event ? QN_OK : cpu_host->error(QN_NO_MEMORY, "the host's memory ran out");
}

static void event_destroy(const qn_device *device, void *event)
{
  (void)device;
  cpu_host->free(event);
}

static qn_status event_record(const qn_device *device, void *event, void *stream)
{
  (void)device, (void)stream;
  clock_gettime(CLOCK_MONOTONIC, event);
  return QN_OK;
}

static qn_status event_elapsed(const qn_device *device, void *start, void *stop, double *ns)
{
  const struct timespec *from = start, *to = stop;
  (void)device;
  *ns = (double)(to->tv_sec - from->tv_sec) * 1e9 + (double)(to->tv_nsec - from->tv_nsec);
  return QN_OK;
}

const qn_device_ops cpu_device = {
  .struct_size        = sizeof(qn_device_ops),
  .count              = count,
  .describe           = describe,
  .models             = models,
  .describe_model     = describe_model,
  .open               = device_open,
  .stream_create      = stream_create,
  .stream_destroy     = stream_destroy,
  .stream_synchronize = stream_synchronize,
  .stream_wait        = stream_wait,
  .alloc              = device_alloc,
  .free               = device_free,
  .copy               = copy,
  .fill               = fill,
  .event_create       = event_create,
  .event_destroy      = event_destroy,
  .event_record       = event_record,
  .event_elapsed      = event_elapsed,
  .host_call          = host_call,
};
