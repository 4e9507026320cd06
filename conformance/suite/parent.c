/* parent.c -- the workers of one backend at a time, --jobs of them side by side, started by exec (an OpenMP runtime or a device does
 * not survive fork). The parent hands each the next point, reads what it says (pipe.c) and prints the points as TAP in the order of the
 * list, whoever finished first. When a worker dies or hangs, its point becomes `not ok`, and another continues after it. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "conform.h"

const char *const qc_tiers[] = {"quick", "default", "full", "long"};

/* A worker, and the point that it is at. */
struct child {
  pid_t pid;                            /* 0: none is running */
  int fd;                               /* its standard input and output */
  char buffer[65536];
  size_t held;
  double heard;                         /* when it last gave a sign of life */
  int at;                               /* the item that it was given; -1: none */
  int step, running;                    /* the point's steps so far, the engine now running; -1: none */
  bool begun, failed;                   /* begun: it has said so */
  char title[8192], note[4096], *yaml;
};

/* What is known of a point that is done. */
struct point { bool done, ok, skipped; char *name, *yaml; };

/* The parent's state for one backend. Items are its points, then its engines, which are tried on device models if no case reached them. */
struct session {
  const char *backend;
  char **argv;
  int points, n_engines, printed;
  struct point *point;
  char **engine;
  int *reached;                         /* 1: by a case; 2: on a device model; -1: it died there */
  unsigned *claimed, *compared;         /* traits, by engine */
};

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- processes ------------------------------------------------------------------------------ */

static void start(struct child *c, const struct session *s, const char *what)
{
  int pair[2], n = 0;
  while (s->argv[n])
    n++;
  char **args = qc_alloc((size_t)(n + 4) * sizeof *args);
  memcpy(args, s->argv, (size_t)n * sizeof *args);
  args[n++] = "--backend";
  args[n++] = (char *)(uintptr_t)s->backend;
  args[n++] = qc_format("--worker=%s", what);
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
    qc_tap_bail(strerror(errno));
  fflush(NULL);
  c->pid = fork();
  if (c->pid == 0) {
    dup2(pair[1], STDIN_FILENO);
    dup2(pair[1], STDOUT_FILENO);
    if (qc_opt.jobs > 1)
      setenv("OMP_WAIT_POLICY", "passive", 0);             /* threads that spin at barriers would take the other workers' cores */
    execv("/proc/self/exe", args);
    _exit(127);
  }
  if (c->pid < 0)
    qc_tap_bail(strerror(errno));
  close(pair[1]);
  c->fd = pair[0];
  c->held = 0;
  c->at = -1;
  free(args[n - 1]);
  free(args);
}

static int reap(struct child *c)
{
  int status;
  close(c->fd);
  while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
    ;
  c->pid = 0;
  return status;
}

/* Reads what has arrived, or waits for it. False: there is no more. */
static bool receive(struct child *c)
{
  ssize_t got;
  do
    got = read(c->fd, c->buffer + c->held, sizeof c->buffer - c->held);
  while (got < 0 && errno == EINTR);
  if (got > 0)
    c->held += (size_t)got;
  c->heard = now();
  return got > 0;
}

/* The next whole line of it; false: none. */
static bool next_line(struct child *c, char *line, size_t bytes)
{
  char *end = memchr(c->buffer, '\n', c->held);
  if (!end && c->held < sizeof c->buffer)
    return false;
  size_t n = end ? (size_t)(end - c->buffer) : c->held, used = n + (end != NULL);
  snprintf(line, bytes, "%.*s", (int)(n < bytes ? n : bytes - 1), c->buffer);
  memmove(c->buffer, c->buffer + used, c->held - used);
  c->held -= used;
  return true;
}

/* Gives it an item, of whose engines the first `skip` have run. If it is dead, its end of file says so. */
static void give(struct child *c, const struct session *s, int item, int skip)
{
  char text[64];
  int n = snprintf(text, sizeof text, "%d %d\n", item, skip);
  if (!c->pid)
    start(c, s, "run");
  c->at = item;
  c->step = 0;
  c->running = -1;
  c->begun = false;
  c->heard = now();
  if (send(c->fd, text, (size_t)n, MSG_NOSIGNAL) != n && errno != EPIPE && errno != ECONNRESET)
    qc_tap_bail(strerror(errno));
}

/* ---- points --------------------------------------------------------------------------------- */

static void add_yaml(struct child *c, const char *text)
{
  char *longer = qc_format("%s%s\n", c->yaml ? c->yaml : "", text);
  free(c->yaml);
  c->yaml = longer;
}

/* Prints the points that are done and have none before them that is not. */
static void print_points(struct session *s)
{
  for (struct point *p; s->printed < s->points && (p = &s->point[s->printed])->done; s->printed++) {
    qc_tap_point(p->ok, p->name, p->skipped ? "SKIP no engine of this backend takes it" : NULL);
    if (!p->ok && p->yaml) {
      qc_tap_yaml(p->yaml);
      qc_failures_add(p->yaml);
    }
    qc_tap_progress(p->name);
    free(p->name);
    free(p->yaml);
  }
}

static void finish_point(struct session *s, struct child *c, const char *status)
{
  bool ok = !c->failed && strcmp(status, "fail");
  s->point[c->at] = (struct point){true, ok, ok && !strcmp(status, "skip"), qc_format("%s%s%s", c->title, *c->note ? "  -- " : "", c->note),
                                   c->yaml};
  c->yaml = NULL;
  c->failed = false;
  *c->note = 0;
  c->at = -1;
  print_points(s);
}

static void take_line(struct session *s, struct child *c, char *line)
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
      c->begun = true;
      snprintf(c->title, sizeof c->title, "%s", line + used);
    }
    break;
  case 'E':
    if (sscanf(line, "E %d %d", &n, &m) == 2)
      c->step = n, c->running = m;
    break;
  case 'T': snprintf(c->note + strlen(c->note), sizeof c->note - strlen(c->note), "%s%s", *c->note ? "; " : "", line + 2); break;
  case 'Y': add_yaml(c, line + 2); break;
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
  case 'C': c->begun = true; break;
  case 'X': c->at = -1; break;
  case 'D':
    if (c->at >= 0 && c->at < s->points)
      finish_point(s, c, strrchr(line, ' ') + 1);
    break;
  case 'B': if (!strncmp(line, "Bail out! ", 10)) qc_tap_bail(line + 10); break;
  }
}

/* A worker died or hung: its point fails; the next worker continues after the engine that caused it. */
static void mourn(struct session *s, struct child *c, const char *how)
{
  bool named = c->running >= 0 && c->running < s->n_engines;
  c->failed = true;
  char *text = qc_format("- engine: %s/%s", s->backend, named ? s->engine[c->running] : "(none)");
  add_yaml(c, text);
  free(text);
  text = qc_format("  verdict: %s", how);
  add_yaml(c, text);
  free(text);
  text = qc_format("  repro: quern-conform --backend %s%s%s --case '%s'", s->backend, named ? " --engine " : "",
                   named ? s->engine[c->running] : "", strchr(c->title, ' ') ? strchr(c->title, ' ') + 1 : c->title);
  add_yaml(c, text);
  free(text);
  if (named && s->reached[c->running] != 1)
    s->reached[c->running] = 1;
}

static void bury(struct session *s, struct child *c, bool late)
{
  char how[128];
  if (late)
    kill(c->pid, SIGKILL);
  int status = reap(c);
  if (late)
    snprintf(how, sizeof how, "no sign of life for %g s", qc_opt.time_limit);
  else if (WIFSIGNALED(status))
    snprintf(how, sizeof how, "died by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(how, sizeof how, "exited with status %d", WEXITSTATUS(status));
  if (c->at < 0 || !c->begun)           /* not by an engine's fault */
    qc_tap_bail(how);
  if (c->at >= s->points) {
    if (s->reached[c->at - s->points] == 0)
      s->reached[c->at - s->points] = -1;
    c->at = -1;
    return;
  }
  mourn(s, c, how);
  if (c->running >= 0)                  /* continue the point after that engine */
    give(c, s, c->at, c->step);
  else
    finish_point(s, c, "fail");
}

/* ---- a backend ------------------------------------------------------------------------------ */

/* Lists its points and engines. */
static void open_session(struct session *s)
{
  struct child c = {0};
  char line[16384];
  start(&c, s, "list");
  while (receive(&c)) {
    while (next_line(&c, line, sizeof line)) {
      if (*line == 'B') {
        fprintf(stderr, "quern-conform: %s\n", line + (strncmp(line, "Bail out! ", 10) ? 2 : 10));
        exit(2);
      }
      if (qc_opt.list && *line == 'S')
        printf("%s\n", strchr(line + 2, ' ') + 1);
      else
        take_line(s, &c, line);
    }
  }
  int status = reap(&c);
  if (status) {
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 2)   /* 2: it has printed the reason */
      fprintf(stderr, "quern-conform: the worker for %s could not list its cases (%s %d)\n", s->backend,
              WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    exit(2);
  }
  s->point = qc_alloc((size_t)s->points * sizeof *s->point + 1);
  s->reached = qc_alloc((size_t)s->n_engines * sizeof *s->reached + 1);
  s->claimed = qc_alloc((size_t)s->n_engines * sizeof *s->claimed + 1);
  s->compared = qc_alloc((size_t)s->n_engines * sizeof *s->compared + 1);
}

/* When a worker is late. One that has not begun is still being started, which on a busy machine takes longer than a short limit. */
static double late_at(const struct child *c)
{
  enum { TO_START = 30 };
  return c->heard + (c->begun || qc_opt.time_limit > TO_START ? qc_opt.time_limit : TO_START);
}

/* Reads from the workers that have something to say, and buries those that say nothing for too long. */
static void attend(struct session *s, struct child *child)
{
  struct pollfd *p = qc_alloc((size_t)qc_opt.jobs * sizeof *p);
  double last = 0;                      /* when the first of them is late */
  for (int i = 0; i < qc_opt.jobs; i++) {
    bool busy = child[i].pid && child[i].at >= 0;
    p[i] = (struct pollfd){busy ? child[i].fd : -1, POLLIN, 0};
    if (busy && (!last || late_at(&child[i]) < last))
      last = late_at(&child[i]);
  }
  double left = (last - now()) * 1000 + 1;
  poll(p, (nfds_t)qc_opt.jobs, qc_opt.time_limit <= 0 ? -1 : left < 0 ? 0 : left > 1e6 ? 1000000 : (int)left);
  for (int i = 0; i < qc_opt.jobs; i++) {
    char line[16384];
    struct child *c = &child[i];
    if (p[i].fd < 0)
      continue;
    bool more = !p[i].revents || receive(c);
    while (next_line(c, line, sizeof line))
      take_line(s, c, line);
    bool late = more && qc_opt.time_limit > 0 && c->at >= 0 && now() > late_at(c);
    if (!more || late)
      bury(s, c, late);
  }
  free(p);
}

/* Shares items first to end - 1 out among the workers, and waits until all are done. */
static void share_out(struct session *s, struct child *child, int first, int end)
{
  for (int next = first;;) {
    bool busy = false;
    for (int i = 0; i < qc_opt.jobs; i++) {
      while (next < end && next >= s->points && s->reached[next - s->points])
        next++;
      if (child[i].at < 0 && next < end)
        give(&child[i], s, next++, 0);
      busy |= child[i].at >= 0;
    }
    if (!busy)
      return;
    attend(s, child);
  }
}

static void run_session(struct session *s)
{
  struct child *child = qc_alloc((size_t)qc_opt.jobs * sizeof *child);
  for (int i = 0; i < qc_opt.jobs; i++)
    child[i].at = -1;
  share_out(s, child, 0, s->points);
  if (!qc_opt.line && qc_opt.tier != QC_LONG)
    share_out(s, child, s->points, s->points + s->n_engines);
  for (int i = 0; i < qc_opt.jobs; i++) {
    if (!child[i].pid)
      continue;
    shutdown(child[i].fd, SHUT_WR);
    while (receive(&child[i]))
      child[i].held = 0;
    reap(&child[i]);
  }
  free(child);
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
    s[i].argv = argv;
    open_session(&s[i]);
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
  double begin = now();
  qc_tap_begin(points);
  qc_tap_comment("quern %s, seed %llu, tier %s%s", qn_version(), (unsigned long long)qc_opt.seed, qc_tiers[qc_opt.tier],
                 qc_opt.tier == QC_QUICK || qc_opt.tier == QC_LONG ? " (not a conformance run)" : "");
  for (int i = 0; i < n; i++) {
    qc_tap_comment("backend %s: %d engine%s", s[i].backend, s[i].n_engines, s[i].n_engines == 1 ? "" : "s");
    run_session(&s[i]);
    if (coverage)
      report_engines(&s[i]);
  }
  int failed = qc_tap_failed();
  qc_failures_report();
  qc_tap_end();
  qc_tap_comment("%d point%s, %d failed, %.1f s", points, points == 1 ? "" : "s", failed, now() - begin);
  return failed != 0;
}
