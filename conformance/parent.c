/* parent.c -- one worker per backend, started by exec (an OpenMP runtime or a device does not survive fork). The parent
 * reads its pipe and turns it into TAP; when a worker dies or hangs, the current point becomes `not ok`, and another worker continues
 * after it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "conform.h"

const char *const qc_tiers[] = {"quick", "default", "full", "long"};

struct child { pid_t pid; int fd; char buffer[65536]; size_t held; };

static void start(struct child *c, char **argv, const char *backend, int first, int skip)
{
  int pipe_fd[2], n = 0;
  while (argv[n])
    n++;
  char **args = qc_alloc((size_t)(n + 6) * sizeof *args);
  memcpy(args, argv, (size_t)n * sizeof *args);
  args[n++] = "--backend";
  args[n++] = (char *)(uintptr_t)backend;
  args[n++] = qc_format("--worker=%d:%d", first, skip);
  if (pipe(pipe_fd))
    qc_tap_bail(strerror(errno));
  fflush(NULL);
  c->pid = fork();
  if (c->pid == 0) {
    dup2(pipe_fd[1], STDOUT_FILENO);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    execv("/proc/self/exe", args);
    _exit(127);
  }
  if (c->pid < 0)
    qc_tap_bail(strerror(errno));
  close(pipe_fd[1]);
  c->fd = pipe_fd[0];
  c->held = 0;
  free(args[n - 1]);
  free(args);
}

/* The next line; NULL at the end. *late: nothing arrived for `seconds`. */
static char *next_line(struct child *c, double seconds, bool *late, char *line, size_t bytes)
{
  *late = false;
  for (;;) {
    char *end = memchr(c->buffer, '\n', c->held);
    if (end || c->held == sizeof c->buffer) {
      size_t n = end ? (size_t)(end - c->buffer) : c->held, used = n + (end != NULL);
      snprintf(line, bytes, "%.*s", (int)(n < bytes ? n : bytes - 1), c->buffer);
      memmove(c->buffer, c->buffer + used, c->held - used);
      c->held -= used;
      return line;
    }
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    int ready = poll(&p, 1, seconds > 0 ? (int)(seconds * 1000) : -1);
    if (ready == 0) {
      *late = true;
      return NULL;
    }
    ssize_t got = ready < 0 && errno == EINTR ? -1 : read(c->fd, c->buffer + c->held, sizeof c->buffer - c->held);
    if (got == 0)
      return NULL;
    if (got > 0)
      c->held += (size_t)got;
  }
}

static int reap(struct child *c)
{
  int status;
  close(c->fd);
  while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
    ;
  return status;
}

/* The parent's state for one backend. */
struct session {
  const char *backend;
  int points, n_engines;
  char **engine;
  int *reached;                         /* 1: by a case; 2: on a device model; -1: it died there */
  unsigned *claimed, *compared;         /* traits, by engine */
  int at, step, running;                /* the point, its steps so far, the engine now running */
  int closing;                          /* the engine being tried on device models; -1: not yet */
  char title[8192], note[4096], *yaml;
  bool open, failed, done;
};

static void add_yaml(struct session *s, const char *text)
{
  char *longer = qc_format("%s%s\n", s->yaml ? s->yaml : "", text);
  free(s->yaml);
  s->yaml = longer;
}

static void finish_point(struct session *s, const char *status)
{
  bool ok = !s->failed && strcmp(status, "fail");
  char *name = qc_format("%s%s%s", s->title, *s->note ? "  -- " : "", s->note);
  qc_tap_point(ok, name, ok && !strcmp(status, "skip") ? "SKIP no engine of this backend takes it" : NULL);
  if (!ok && s->yaml) {
    qc_tap_yaml(s->yaml);
    qc_failures_add(s->yaml);
  }
  qc_tap_progress(s->title);
  free(name);
  free(s->yaml);
  s->yaml = NULL;
  s->open = s->failed = false;
  *s->note = 0;
}

static void take_line(struct session *s, char *line)
{
  int n, m, used = 0;
  switch (*line) {
  case 'N': s->points = atoi(line + 2); break;
  case 'L':
    s->engine = realloc(s->engine, (size_t)(s->n_engines + 1) * sizeof *s->engine);
    s->engine[s->n_engines++] = strdup(strchr(line + 2, ' ') + 1);
    break;
  case 'S':
    if (sscanf(line, "S %d %n", &n, &used) == 1) {
      if (!s->open)
        s->step = 0;
      s->at = n;
      s->open = true;
      s->running = -1;
      snprintf(s->title, sizeof s->title, "%s", line + used);
    }
    break;
  case 'E':
    if (sscanf(line, "E %d %d", &n, &m) == 2)
      s->step = n, s->running = m;
    break;
  case 'T': snprintf(s->note + strlen(s->note), sizeof s->note - strlen(s->note), "%s%s", *s->note ? "; " : "", line + 2); break;
  case 'Y': add_yaml(s, line + 2); break;
  case 'R': case 'M':
    n = atoi(line + 2);
    if (n >= 0 && n < s->n_engines && s->reached[n] <= 0)
      s->reached[n] = *line == 'R' ? 1 : 2;
    break;
  case 'P': {
    unsigned claimed, compared;
    if (sscanf(line, "P %d %u %u", &n, &claimed, &compared) == 3 && n >= 0 && n < s->n_engines)
      s->claimed[n] |= claimed, s->compared[n] |= compared;
    break;
  }
  case 'C': s->closing = atoi(line + 2); break;
  case 'D': finish_point(s, strrchr(line, ' ') + 1); break;
  case 'X': s->done = true; break;
  case 'B': if (!strncmp(line, "Bail out! ", 10)) qc_tap_bail(line + 10); break;
  }
}

/* A worker died or hung: its point fails; the next worker continues after the engine that caused it. */
static void mourn(struct session *s, const char *how)
{
  bool named = s->running >= 0 && s->running < s->n_engines;
  s->failed = true;
  char *text = qc_format("- engine: %s/%s", s->backend, named ? s->engine[s->running] : "(none)");
  add_yaml(s, text);
  free(text);
  text = qc_format("  verdict: %s", how);
  add_yaml(s, text);
  free(text);
  text = qc_format("  repro: quern-conform --backend %s%s%s --case '%s'", s->backend, named ? " --engine " : "",
                   named ? s->engine[s->running] : "", strchr(s->title, ' ') ? strchr(s->title, ' ') + 1 : s->title);
  add_yaml(s, text);
  free(text);
  if (named && s->reached[s->running] != 1)
    s->reached[s->running] = 1;
}

/* Lists a backend's points and engines. */
static void open_session(struct session *s, char **argv)
{
  struct child c = {0};
  char line[16384];
  bool late;
  start(&c, argv, s->backend, -1, 0);
  while (next_line(&c, 0, &late, line, sizeof line)) {
    if (*line == 'B') {
      fprintf(stderr, "quern-conform: %s\n", line + (strncmp(line, "Bail out! ", 10) ? 2 : 10));
      exit(2);
    }
    if (qc_opt.list && *line == 'S')
      printf("%s\n", strchr(line + 2, ' ') + 1);
    else
      take_line(s, line);
  }
  int status = reap(&c);
  if (status) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 2)   /* 2: it has printed the reason */
      fprintf(stderr, "quern-conform: the worker for %s could not list its cases (%s %d)\n", s->backend,
              WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    exit(2);
  }
  s->open = false;
  s->closing = -1;
  s->reached = qc_alloc((size_t)s->n_engines * sizeof *s->reached + 1);
  s->claimed = qc_alloc((size_t)s->n_engines * sizeof *s->claimed + 1);
  s->compared = qc_alloc((size_t)s->n_engines * sizeof *s->compared + 1);
}

static void run_session(struct session *s, char **argv)
{
  int first = 0, skip = 0;
  while (!s->done) {
    struct child c = {0};
    char line[16384], how[128] = "";
    bool late = false;
    start(&c, argv, s->backend, first, skip);
    while (next_line(&c, qc_opt.time_limit, &late, line, sizeof line))
      take_line(s, line);
    if (late)
      kill(c.pid, SIGKILL);
    int status = reap(&c);
    if (s->done)
      break;
    if (late)
      snprintf(how, sizeof how, "no sign of life for %g s", qc_opt.time_limit);
    else if (WIFSIGNALED(status))
      snprintf(how, sizeof how, "died by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
      snprintf(how, sizeof how, "exited with status %d", WEXITSTATUS(status));
    if (!s->open && s->closing < 0)
      qc_tap_bail(how);
    if (!s->open) {
      if (s->reached[s->closing] == 0)
        s->reached[s->closing] = -1;
      first = s->points;
      skip = s->closing + 1;
      continue;
    }
    mourn(s, how);
    if (s->running >= 0) {              /* continue the point after that engine */
      first = s->at;
      skip = s->step;
    } else {
      finish_point(s, "fail");
      first = s->at + 1;
      skip = 0;
    }
  }
}

/* Per engine: did a case run on it, and were its rows compared if it claims that they are independent? */
static void report_engines(struct session *s)
{
  int portable = 0, compared = 0;
  for (int i = 0; i < s->n_engines; i++) {
    bool unseen = s->claimed[i] & ~s->compared[i] & QN_TRAIT_BATCH_INVARIANT;
    char *name = qc_format("%s/%s is reached by a case", s->backend, s->engine[i]);
    qc_tap_point(s->reached[i] > 0 && !unseen, name, s->reached[i] == 2 ? "SKIP only on other devices of its kind" : NULL);
    if (s->reached[i] < 0)
      qc_tap_yaml("verdict: the process died when it was asked about another device model");
    else if (unseen)
      qc_tap_yaml("verdict: it claims to be batch_invariant, and no case compared a row alone with what it is among others");
    free(name);
    portable += (s->claimed[i] & QN_TRAIT_PORTABLE) != 0;
    compared += (s->compared[i] & QN_TRAIT_PORTABLE) != 0;
  }
  if (portable > compared)
    qc_tap_comment("engines that claim to be portable: %d, of which compared: %d; for others no second model of device is at hand",
                   portable, compared);
}

int qc_parent_main(char **backends, int n, char **argv)
{
  struct session *s = qc_alloc((size_t)n * sizeof *s);
  int points = 0;
  bool coverage = !qc_opt.line && !qc_opt.filter && qc_opt.tier != QC_QUICK && qc_opt.tier != QC_LONG && !qc_opt.kills;
  for (int i = 0; i < n; i++) {
    s[i].backend = backends[i];
    open_session(&s[i], argv);
    points += s[i].points + (coverage ? s[i].n_engines : 0);
  }
  if (qc_opt.list)
    return 0;
  if (!points) {
    fprintf(stderr, "quern-conform: no case is left to run%s%s%s%s%s\n", qc_opt.filter ? ": --filter leaves those that hold " : "",
            qc_opt.filter ? qc_opt.filter : "",
            qc_opt.engine ? qc_opt.filter ? ", --engine those of an op that " : ": --engine leaves those of an op that " : "",
            qc_opt.engine ? qc_opt.engine : "", qc_opt.engine ? " is for" : "");
    return 2;
  }
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  qc_tap_begin(points);
  qc_tap_comment("quern %s, seed %llu, tier %s%s", qn_version(), (unsigned long long)qc_opt.seed, qc_tiers[qc_opt.tier],
                 qc_opt.tier == QC_QUICK || qc_opt.tier == QC_LONG ? " (not a conformance run)" : "");
  for (int i = 0; i < n; i++) {
    qc_tap_comment("backend %s: %d engine%s", s[i].backend, s[i].n_engines, s[i].n_engines == 1 ? "" : "s");
    run_session(&s[i], argv);
    if (coverage)
      report_engines(&s[i]);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  int failed = qc_tap_failed();
  qc_failures_report();
  qc_tap_end();
  qc_tap_comment("%d point%s, %d failed, %.1f s", points, points == 1 ? "" : "s", failed,
                 (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9);
  return failed != 0;
}
