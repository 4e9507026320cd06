/* ranks.h -- for tests of groups: ranks as processes and as threads of one; what each saw goes through shared memory.
 *
 * Ranks are forked before any context exists. `PROGRAM NAME` is one rank, of those that a launcher started, at one of the program's tests:
 * so plugins/mpi/mpi.tap runs them over MPI. GROUP_BACKEND: its backends; GROUP_KILL=RANK:SECONDS: that rank ends so after it has met the
 * others; GROUP_PATIENCE=N: the test's time, deadline and all, goes N times slower. Exit status: 0: as it should. */
#ifndef QUERN_TESTS_RANKS_H
#define QUERN_TESTS_RANKS_H
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <quern/quern.h>
#include "tap.h"

enum { MOST = 8 };
typedef struct seen { int ok, calls; qn_status status; double seconds; char text[1100]; } seen;
static seen *all;
static char folder[64], place[128];
static double deadline = 20;
static const char *backend = "backend=cpu_ref";

static inline double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void pause_for(double seconds)
{
  const struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
  nanosleep(&t, NULL);
}

/* ---- ranks -------------------------------------------------------------------------------------- */

typedef struct place_in { int rank, size; qn_context *ctx; qn_group *group; seen *mine; } place_in;

static inline qn_status join(place_in *p, int rank, int size)
{
  char r[32], s[32], d[32];
  snprintf(r, sizeof r, "rank=%d", rank);
  snprintf(s, sizeof s, "size=%d", size);
  snprintf(d, sizeof d, "deadline=%g", deadline);
  const char *const options[] = { place, r, s, d, NULL }, *const context[] = { backend, "threads=1", NULL };
  *p = (place_in){ rank, size, NULL, NULL, &all[rank] };
  qn_status status = qn_context_create(context, &p->ctx);
  if (!status) status = qn_group_create(options, &p->group);
  return status ? status : qn_context_join(p->ctx, p->group);
}

static inline void part(place_in *p)
{
  qn_context_destroy(p->ctx);
  qn_group_destroy(p->group);
}

static inline void failed(place_in *p, qn_status status, double since)
{
  p->mine->status = status;
  p->mine->seconds = now() - since;
  snprintf(p->mine->text, sizeof p->mine->text, "%s", qn_last_error());
}

static inline void rank_main(int rank, int size, void (*fn)(place_in *))
{
  place_in p;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const qn_status status = join(&p, rank, size);
  if (status) failed(&p, status, now());
  else fn(&p);
  part(&p);
  _exit(0);
}

static inline void end_rank(pid_t pid)
{
  if (pid > 0) kill(pid, SIGKILL);
}

/* Runs fn on n ranks. victim: killed after `after` seconds by this process; -1: none. True: all began, and all others ended in time. */
static inline int run_ranks(int n, void (*fn)(place_in *), int victim, double after)
{
  pid_t pid[MOST];
  const double limit = now() + 2 * deadline + 20;
  int left = 0, begun, state;
  memset(all, 0, MOST * sizeof *all);
  fflush(stdout);
  for (int r = 0; r < n; r++) {           /* pid: 0: there is no such process, so that none is ever sent a signal for it */
    if (!(pid[r] = fork())) rank_main(r, n, fn);
    if (pid[r] < 0) pid[r] = 0;
    left += pid[r] > 0;
  }
  begun = left;
  if (victim >= 0) {
    pause_for(after);
    end_rank(pid[victim]);
  }
  while (left && now() < limit) {
    const pid_t done = waitpid(-1, &state, WNOHANG);
    if (done <= 0) pause_for(0.002);
    for (int r = 0; r < n && done > 0; r++)
      if (pid[r] == done) pid[r] = 0, left--;
  }
  for (int r = 0; r < n; r++) end_rank(pid[r]);
  while (waitpid(-1, &state, 0) > 0) {}
  unlink(place + strlen("at=file://"));
  return !left && begun == n;
}

static inline void note_all(int n)
{
  for (int r = 0; r < n; r++)
    tap_note("rank %d: ok %d, %d calls, status %d after %.2f s: %s", r, all[r].ok, all[r].calls, (int)all[r].status, all[r].seconds,
             all[r].text);
}

static inline int all_ok(int n)
{
  int ok = 1;
  for (int r = 0; r < n; r++) ok = ok && all[r].ok && !all[r].status;
  return ok;
}

/* All but one rank failed within the deadline and a little, each with these words. */
static inline int all_failed(int n, int except, const char *one, const char *two)
{
  int ok = 1;
  for (int r = 0; r < n; r++)
    if (r != except)
      ok = ok && all[r].status == QN_DEVICE && all[r].seconds < deadline * 1.2 + 3 && strstr(all[r].text, one) && strstr(all[r].text, two);
  return ok;
}

static inline void test(const char *name, int ended, int ok, int n)
{
  if (!tap_ok(ended && ok, "%s", name)) {
    if (!ended) tap_note("a rank did not begin, or did not end");
    note_all(n);
  }
}

static inline void works(const char *name, int n, void (*fn)(place_in *))
{
  const int ended = run_ranks(n, fn, -1, 0);
  test(name, ended, all_ok(n), n);
}

static inline void fails(const char *name, int n, void (*fn)(place_in *), int except, const char *one, const char *two)
{
  const int ended = run_ranks(n, fn, -1, 0);
  test(name, ended, all_failed(n, except, one, two), n);
}

/* GROUP_SEED: of the moments, which are in the first fifth of a second, and of the victims. */
static inline void random_kills(int kills, void (*fn)(place_in *))
{
  const char *seed = getenv("GROUP_SEED");
  int hung = 0, wrong = 0;
  srand(seed ? (unsigned)atoi(seed) : 11);
  for (int k = 0; k < kills && !hung; k++) {
    const int victim = rand() % 3;
    const double after = 0.02 + (double)(rand() % 200) / 1000;
    hung += !run_ranks(3, fn, victim, after);
    if (!all_failed(3, victim, "rank ", "")) {
      if (!wrong++) note_all(3);
    }
  }
  tap_ok(!hung && !wrong, "%d ranks killed at random moments: no rank hangs, each says why it failed", kills);
}

static inline qn_status sum(place_in *p, float *x, int64_t n)
{
  const qn_tensor t = qn_tensor_1d(x, QN_F32, n);
  return qn_all_reduce(p->ctx, NULL, &t, 1, NULL, &t, 1);
}

typedef struct thread_in { int rank, size; void (*fn)(place_in *); } thread_in;

static inline void *thread_main(void *arg)
{
  const thread_in *t = arg;
  place_in p;
  const qn_status status = join(&p, t->rank, t->size);
  if (status) failed(&p, status, now());
  else t->fn(&p);
  part(&p);
  return NULL;
}

/* Ranks that are `each` threads of some processes. */
static inline void works_in_threads(const char *name, int processes, int each, void (*fn)(place_in *))
{
  int right = 1, state;
  memset(all, 0, MOST * sizeof *all);
  fflush(stdout);
  for (int k = 0; k < processes; k++) {
    if (fork()) continue;                 /* this process stays without contexts */
    pthread_t thread[MOST];
    thread_in in[MOST];
    for (int t = 0; t < each; t++) {
      in[t] = (thread_in){ k * each + t, processes * each, fn };
      pthread_create(&thread[t], NULL, thread_main, &in[t]);
    }
    for (int t = 0; t < each; t++) pthread_join(thread[t], NULL);
    _exit(0);
  }
  while (wait(&state) > 0) right &= state == 0;
  test(name, right, all_ok(processes * each), processes * each);
}

/* Before any test; true: it can begin. */
static inline int ranks_begin(void)
{
  all = mmap(NULL, MOST * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  snprintf(folder, sizeof folder, "%.40s/quern-group-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  if (all == MAP_FAILED || !mkdtemp(folder)) return 0;
  snprintf(place, sizeof place, "at=file://%s/meet", folder);
  return 1;
}

/* ---- a rank of a launcher's ------------------------------------------------------------------------------- */

/* one, two: words of the failure that must come; NULL: none must. */
typedef struct launched { const char *name; void (*fn)(place_in *); const char *one, *two; double deadline; } launched;

static inline void *kill_later(void *seconds)
{
  pause_for(*(double *)seconds);
  kill(getpid(), SIGKILL);
  return NULL;
}

static inline qn_status warm_up(qn_group *g)
{
  place_in p = { 0, 0, NULL, NULL, NULL };
  float x = 1;
  qn_status status = qn_context_create((const char *const[]){ backend, "threads=1", NULL }, &p.ctx);
  if (!status) status = qn_context_join(p.ctx, g);
  if (!status) status = sum(&p, &x, 1);
  if (!status) status = qn_context_join(p.ctx, NULL);
  qn_context_destroy(p.ctx);
  return status;
}

static inline int launched_rank(const char *program, const char *name, const launched *t, const launched *end)
{
  static double after;
  int victim = -1;
  char by[128];
  pthread_t killer;
  place_in p;
  const double patience = getenv("GROUP_PATIENCE") ? atof(getenv("GROUP_PATIENCE")) : 1;
  while (t < end && strcmp(t->name, name)) t++;
  if (t == end || !ranks_begin()) return 2;
  rmdir(folder);
  snprintf(place, sizeof place, "at=env");
  deadline = t->deadline * patience;
  snprintf(by, sizeof by, "backend=%s", getenv("GROUP_BACKEND") ? getenv("GROUP_BACKEND") : "cpu_ref");
  backend = by;
  qn_group *g = NULL;                     /* in which MPI starts, which takes longer than the tests wait */
  if (qn_group_create((const char *const[]){ "deadline=100", NULL }, &g) || warm_up(g)) {
    fprintf(stderr, "%s: %s\n", program, qn_last_error());
    return 1;
  }
  const int rank = qn_group_rank(g), size = qn_group_size(g);
  if (size > MOST) {
    fprintf(stderr, "%s: at most %d ranks, not %d\n", program, (int)MOST, size);
    qn_group_destroy(g);
    return 2;
  }
  const qn_status status = join(&p, rank, size);
  if (getenv("GROUP_KILL") && sscanf(getenv("GROUP_KILL"), "%d:%lf", &victim, &after) == 2 && victim == rank)
    pthread_create(&killer, NULL, kill_later, &after);
  if (status) failed(&p, status, now());
  else t->fn(&p);
  part(&p);
  const seen *s = &all[rank];
  const double most = (t->deadline * 1.2 + 3) * patience;
  const int ok = t->one ? s->status == QN_DEVICE && s->seconds < most && strstr(s->text, t->one) && strstr(s->text, t->two)
                        : s->ok && !s->status;
  printf("%s rank %d of %d: %s%s, status %d after %.2f s%s%s\n", ok ? "right:" : "wrong:", rank, size, t->name, s->ok ? ", ok" : "",
         (int)s->status, s->seconds, *s->text ? ": " : "", s->text);
  fflush(stdout);
  qn_group_exchange(g, NULL, 0, NULL);    /* what one has to say is said before another is gone, and mpirun ends all */
  qn_group_destroy(g);
  return !ok;
}

#endif
