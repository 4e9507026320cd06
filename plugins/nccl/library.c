/* library.c -- finds libnccl.so.2, the one of the process if there is one, and resolves what is used of it. */
#include <pthread.h>
#include <quern/library.h>
#include "nccl_abi.h"

nccl_calls nccl;

static qn_library library;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;

bool nccl_find(const char **why)
{
  static const char *const folders[] = { "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib",
                                         "/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/lib64", NULL };
  *why = library.why;
  return qn_library_find(&library, nccl_host, "NCCL", "libnccl.so.2", folders);
}

static void load(void)
{
  static const struct { const char *name; void *slot; } call[] = {
#define NCCL_ENTRY(result, name, arguments) { #name, &nccl.name },
    NCCL_CALLS(NCCL_ENTRY)
#undef NCCL_ENTRY
  };
  int number = 0;
  if (!qn_library_load(&library)) return;
  for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
    void *p = qn_library_symbol(&library, call[i].name);
    if (!p) return;
    memcpy(call[i].slot, &p, sizeof p);
  }
  if (nccl.ncclGetVersion(&number)) number = 0;
  loaded = number >= NCCL_OLDEST;
  snprintf(library.why, sizeof library.why, "%.400s is NCCL %d.%d.%d; 2.18 or later is needed", library.path, number / 10000,
           number / 100 % 100, number % 100);
}

bool nccl_load(const char **why)
{
  *why = library.why;
  pthread_once(&once, load);
  return loaded;
}
