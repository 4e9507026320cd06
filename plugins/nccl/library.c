/* library.c -- finds libnccl.so.2, the one of the process if there is one, and resolves what is used of it. */
#include <quern/library.h>
#include "nccl_abi.h"

nccl_calls nccl;

static qn_library library;

bool nccl_find(char version[32], const char **why)
{
  static const char *const folders[] = { "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib",
                                         "/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/lib64", NULL };
  static const struct { const char *name; void *slot; } call[] = {
#define NCCL_ENTRY(result, name, arguments) { #name, &nccl.name },
    NCCL_CALLS(NCCL_ENTRY)
#undef NCCL_ENTRY
  };
  int number = 0;
  *why = library.why;
  if (!qn_library_find(&library, nccl_host, "NCCL", "libnccl.so.2", folders) || !qn_library_load(&library)) return false;
  for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
    void *p = qn_library_symbol(&library, call[i].name);
    if (!p) return false;
    memcpy(call[i].slot, &p, sizeof p);
  }
  if (nccl.ncclGetVersion(&number)) number = 0;
  snprintf(version, 32, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
  if (number >= NCCL_OLDEST) return true;
  snprintf(library.why, sizeof library.why, "%.400s is NCCL %s; 2.14 or later is needed", library.path, version);
  return false;
}
