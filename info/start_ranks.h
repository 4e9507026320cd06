/* start_ranks.h -- for programs that start their own ranks: N processes of this program, which meet by a file. Linux. */
#ifndef QUERN_START_RANKS_H
#define QUERN_START_RANKS_H
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs argv n times, each with a rank in its environment, and waits for all: the largest exit status, 2 if a rank died, which ends the
 * others by the group. Each has its share of the processors, unless QUERN_THREADS says otherwise. Says what went wrong on stderr. */
static inline int start_ranks(const char *program, int n, char **argv)
{
  const char *tmp = getenv("TMPDIR");
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  char folder[256], place[300], number[32];
  int worst = 0, state;
  pid_t pid;
  snprintf(folder, sizeof folder, "%.200s/quern-ranks-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (!mkdtemp(folder)) {
    fprintf(stderr, "%s: %s: %s\n", program, folder, strerror(errno));
    return 2;
  }
  snprintf(place, sizeof place, "file://%s/meet", folder);
  fflush(stdout);
  for (int r = 0; r < n; r++) {
    if ((pid = fork()) < 0) {
      fprintf(stderr, "%s: no process for rank %d: %s\n", program, r, strerror(errno));
      worst = 2;
      break;                              /* the others give up at their deadline */
    }
    if (pid)
      continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("QUERN_GROUP", place, 1);
    snprintf(number, sizeof number, "%d", r);
    setenv("RANK", number, 1);
    setenv("LOCAL_RANK", number, 1);
    snprintf(number, sizeof number, "%d", n);
    setenv("WORLD_SIZE", number, 1);
    snprintf(number, sizeof number, "%ld", cores > n ? cores / n : 1);
    setenv("QUERN_THREADS", number, 0);
    execv("/proc/self/exe", argv);
    _exit(127);
  }
  while ((pid = wait(&state)) > 0) {
    int code = WIFEXITED(state) ? WEXITSTATUS(state) : 2;
    if (!WIFEXITED(state))
      fprintf(stderr, "%s: a rank was ended by signal %d\n", program, WTERMSIG(state));
    worst = code > worst ? code : worst;
  }
  unlink(place + strlen("file://"));
  rmdir(folder);
  return worst;
}

#endif
