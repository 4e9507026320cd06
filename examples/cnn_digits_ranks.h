/* cnn_digits_ranks.h -- starts the processes of --ranks; torchrun, mpirun and srun start theirs. Does not use Quern but for the names of
 * the environment by which it finds the others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Becomes one of n ranks, which this process starts and waits for: does not return in it. Contexts are made afterwards, for those made
 * before fork do not work in the child. */
static void start_ranks(int n)
{
  char number[32], folder[] = "/tmp/quern-digits-XXXXXX", place[64];
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int worst = 0, state;
  if (!mkdtemp(folder)) {
    perror("cnn_digits: a folder for the ranks to meet");
    exit(1);
  }
  snprintf(place, sizeof place, "file://%s/meet", folder);
  snprintf(number, sizeof number, "%ld", cores > n ? cores / n : 1);
  setenv("QUERN_GROUP", place, 1);
  setenv("QUERN_THREADS", number, 0);
  snprintf(number, sizeof number, "%d", n);
  setenv("WORLD_SIZE", number, 1);
  for (int r = 0; r < n; r++) {
    if (fork())
      continue;
    snprintf(number, sizeof number, "%d", r);
    setenv("RANK", number, 1);
    setenv("LOCAL_RANK", number, 1);
    return;
  }
  while (wait(&state) > 0) {            /* a rank that dies ends the others, by the group */
    int status = WIFEXITED(state) ? WEXITSTATUS(state) : 1;
    worst = status > worst ? status : worst;
  }
  unlink(place + strlen("file://"));
  rmdir(folder);
  exit(worst);
}
