/* stack.c -- with --stack the library plans and executes on a stack of that many bytes, which ends at a protected page: an engine that
 * needs more crashes, and its point fails. Only the stack is another, not the thread, some of whose stack holds thread-local data. */
#include "config.h"
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "conform.h"

#ifdef HAVE_MAKECONTEXT
#include <ucontext.h>

static ucontext_t outside, inside;
static struct { qn_status (*fn)(void *); void *arg; qn_status status; } job;

static void work(void) { job.status = job.fn(job.arg); }

static char *stack_of(size_t bytes)
{
  const size_t guard = (size_t)sysconf(_SC_PAGESIZE);
  static char *memory;
  if (!memory) {
    memory = mmap(NULL, guard + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE))
      qc_tap_bail(qc_format("no stack of %zu bytes: %s", bytes, strerror(errno)));
  }
  return memory + guard;
}

qn_status qc_on_stack(qn_status (*fn)(void *), void *arg)
{
  if (!qc_opt.stack)
    return fn(arg);
  job.fn = fn;
  job.arg = arg;
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack_of((size_t)qc_opt.stack);
  inside.uc_stack.ss_size = (size_t)qc_opt.stack;
  inside.uc_link = &outside;
  makecontext(&inside, work, 0);
  swapcontext(&outside, &inside);
  return job.status;
}

#else
qn_status qc_on_stack(qn_status (*fn)(void *), void *arg)
{
  if (qc_opt.stack)
    qc_tap_bail("--stack: this C library has no makecontext");
  return fn(arg);
}
#endif
