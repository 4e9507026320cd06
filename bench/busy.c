/* busy.c -- a machine that is shared: threads that sleep while they wait, and how much of the processors others used meanwhile.
 *
 * OpenMP's waiting threads spin by default; where there are more runnable threads than processors each spinning one takes the time of
 * one that works, and an engine's time grows 8 to 20 times. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "bench.h"

void threads_sleep(char **argv)
{
  if (getenv("OMP_WAIT_POLICY") || setenv("OMP_WAIT_POLICY", "passive", 1))
    return;
  execv("/proc/self/exe", argv);        /* OpenMP reads it as it is loaded; if that fails, threads spin */
}

/* Time in seconds that the processors which this program may use have worked, for anyone; -1: unknown. */
static double worked(int *processors)
{
  char line[512];
  double ticks = 0;
  cpu_set_t mine;
  FILE *f = sched_getaffinity(0, sizeof mine, &mine) ? NULL : fopen("/proc/stat", "r");
  *processors = 0;
  while (f && fgets(line, sizeof line, f)) {
    unsigned cpu;
    unsigned long long user, nice, system, idle, wait, irq = 0, soft = 0, stolen = 0;
    if (sscanf(line, "cpu%u %llu %llu %llu %llu %llu %llu %llu %llu", &cpu, &user, &nice, &system, &idle, &wait, &irq, &soft, &stolen) < 6)
      continue;
    if (cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &mine))
      continue;
    ticks += (double)(user + nice + system + irq + soft + stolen);
    ++*processors;
  }
  if (f)
    fclose(f);
  return *processors ? ticks / (double)sysconf(_SC_CLK_TCK) : -1;
}

static double own(int who)
{
  struct rusage u;
  getrusage(who, &u);
  return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double wall(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void busy_begin(busy *b)
{
  b->worked = worked(&b->processors);
  b->own = own(RUSAGE_SELF) + own(RUSAGE_CHILDREN);
  b->wall = wall();
}

double busy_others(const busy *b)
{
  int processors;
  double all = worked(&processors) - b->worked, mine = own(RUSAGE_SELF) + own(RUSAGE_CHILDREN) - b->own, time = wall() - b->wall;
  return b->worked < 0 || all < mine || time < 0.2 ? 0 : (all - mine) / time;       /* the kernel counts in ticks */
}
