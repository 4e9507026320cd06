/* t_dlclose.c -- a program that opens libquern, computes and closes it, again and again: OpenMP's workers must not find their
 * code gone, and a round must leave nothing behind. The program itself links neither libquern nor OpenMP. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <quern/quern.h>
#include "tap.h"

enum { ROUNDS = 1000, WARM = 100, N = 64, MOST_MORE = 4 << 20 };

static const char *const options[][3] = { { "backend=cpu_ref", "threads=2", NULL }, { "backend=cpu_ref", "threads=1", NULL } };
static float a[N * N], y[N * N];

static void *symbol(void *library, const char *name)
{
  void *at = dlsym(library, name);
  if (!at) tap_note("%s", dlerror());
  return at;
}

/* A product and a softmax. */
static int one_round(int round)
{
  void *library = dlopen(QN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) return tap_note("%s", dlerror()), 0;
  qn_status (*create)(const char *const *, qn_context **), (*run)(qn_context *, const qn_op *);
  void (*destroy)(qn_context *);
  qn_tensor (*tensor)(void *, uint32_t, int64_t, int64_t);
  *(void **)&create = symbol(library, "qn_context_create");
  *(void **)&run = symbol(library, "qn_run");
  *(void **)&destroy = symbol(library, "qn_context_destroy");
  *(void **)&tensor = symbol(library, "qn_tensor_2d");
  qn_context *ctx = NULL;
  int good = create && run && destroy && tensor && !create(options[round % 2], &ctx);
  if (good) {
    const qn_tensor ta = tensor(a, QN_F32, N, N), ty = tensor(y, QN_F32, N, N);
    const qn_arg product[] = { { &ta, 1 }, { &ta, 1 }, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, { &ty, 1 } };
    const qn_arg rows[] = { { &ta, 1 }, { &ty, 1 } };
    good = !run(ctx, &(qn_op){ .kind = QN_OP_MATMUL, .n_args = 7, .arg = product }) && y[0] == a[0] * a[0] + N - 1 &&
           !run(ctx, &(qn_op){ .kind = QN_OP_SOFTMAX, .n_args = 2, .arg = rows });
    destroy(ctx);
  }
  return dlclose(library) == 0 && good;
}

static long resident(void)
{
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

int main(void)
{
  int good = 0;
  long before = 0;
  for (int i = 0; i < N * N; i++) a[i] = i ? 1 : 3;
  for (int round = 0; round < ROUNDS; round++) {
    if (round == WARM) before = resident();
    good += one_round(round);
  }
  tap_ok(good == ROUNDS, "%d of %d times opened, right and closed", good, ROUNDS);
#ifndef __SANITIZE_ADDRESS__                      /* which keeps freed memory, and looks for leaks itself */
  const long more = resident() - before;
  tap_ok(before > 0 && more < MOST_MORE, "the last %d rounds take no memory", ROUNDS - WARM) || (tap_note("%ld bytes", more), 0);
#endif
  return tap_done();
}
