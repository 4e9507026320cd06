/* worker.c -- one process for each backend, started by exec (an OpenMP runtime or a device does not survive fork). The parent
 * reads its pipe, turns it into TAP, and when a worker dies or sits too long gives that point its `not ok` and starts another
 * from where it stood. The pipe carries lines:
 *
 *   N 812            points to come             S 17 conv.q:3 conv_forward ...   point 17 begins
 *   L 3 matmul/gemm  engine 3's name            E 4 3   the point's fourth step runs engine 3
 *   T note           for the point's name       Y key: value   what went wrong        R 3   engine 3 was reached
 *   D 17 ok          point 17 is done           C 3   engine 3, which nothing reached, is tried elsewhere
 *   M 3              one of them would take it  X     all is done */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "conform.h"

/* ---- the worker's side -------------------------------------------------------------------- */

void qc_say_engine(int step, int index)
{
  printf("E %d %d\n", step, index);
  fflush(stdout);
}

void qc_say_note(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  printf("T ");
  vprintf(format, args);
  printf("\n");
  va_end(args);
}

void qc_say_fail(const char *key, const char *format, ...)
{
  char text[4096];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  for (char *s = text; *s; s++)
    if (*s == '\n')
      *s = ' ';
  printf("Y %s: %s\n", key, text);
}

static void find_backend(void *user, const qn_backend_info *info)
{
  const char *asked = user;
  if (info->table && (!strcmp(asked, info->name) || !strcmp(asked, info->path))) {
    qc_w.table = info->table;
    qc_w.backend = info->name;
  }
}

static bool engine_wanted(const char *name)
{
  if (!qc_opt.engine)
    return true;
  size_t n = strlen(qc_w.backend);
  const char *asked = qc_opt.engine, *tail = strchr(name, '/') + 1;
  if (!strncmp(asked, qc_w.backend, n) && asked[n] == '/')
    asked += n + 1;
  return !strcmp(asked, name) || !strcmp(asked, tail);
}

static void add_engine(const qn_engine *row, const char *variant)
{
  struct qc_engine e = {.row = row, .variant = variant};
  const qn_op_info *op = row->op & QN_ANCHOR_FAMILY ? NULL : qn_op_find(row->op);
  if (!(row->op & QN_ANCHOR_FAMILY) && !op)
    return;                             /* an op that this library does not know */
  snprintf(e.name, sizeof e.name, "%s/%s%s%s", op ? op->name : qn_family_name(row->op & ~QN_ANCHOR_FAMILY), row->name,
           variant ? ":" : "", variant ? variant : "");
  if (!engine_wanted(e.name))
    return;
  qc_w.engine = realloc(qc_w.engine, (size_t)(qc_w.n_engines + 1) * sizeof e);
  qc_w.engine[qc_w.n_engines++] = e;
}

static void list_engines(void)
{
  const qn_engine *row;
  for (int i = 0; (row = qn_backend_engine(qc_w.table, i)); i++) {
    add_engine(row, NULL);
    for (const char *const *v = row->variants; v && *v; v++)
      add_engine(row, *v);
  }
}

static int run_item(const struct qc_item *item)
{
  switch (item->kind) {
  case QC_REFUSED: return qc_check_refused(item);
  case QC_POINTER: return qc_check_pointer(item);
  case QC_PROBE:   return qc_check_probe(item);
  case QC_GRAD:    return qc_check_gradient(item);
  case QC_ADJOINT: return qc_check_adjoint(item);
  }
  return qc_run_case(item);
}

/* Cases that none of the engines in question could take by their kind are left out: of a backend that has no engine for them
 * and no duty to, or of --engine's choice. */
static void prune(struct qc_list *list)
{
  int kept = 0;
  if (!qc_opt.engine && qc_w.table->device)
    return;
  for (int i = 0; i < list->n; i++) {
    qn_graph *graph = NULL;
    bool wanted = list->item[i].kind != QC_CASE && !qc_opt.engine;
    if (list->item[i].kind == QC_CASE && !qn_graph_parse(list->item[i].line, &graph)) {
      const qn_graph_view *view = qn_graph_inspect(graph);
      for (uint32_t k = 0; k < view->n_ops; k++)
        for (int e = 0; e < qc_w.n_engines; e++)
          wanted |= qc_engine_fits(&qc_w.engine[e], view->op[k].op);
    }
    qn_graph_destroy(graph);
    if (wanted) {
      list->item[kept++] = list->item[i];
      continue;
    }
    free(list->item[i].line);
    free(list->item[i].settings);
    free(list->item[i].file);
    free(list->item[i].title);
  }
  list->n = kept;
}

/* An engine that no case reached is tried on the device models that its provider knows: one that would take a case there
 * exists. So does one that would take a case here, were what it rests on here (a library, a live device that is no model); of
 * its variants it may then be that no device has them all. */
struct elsewhere { const char *engine, *model; bool variant, yes; };
static void would_take(void *user, const qn_verdict *v)
{
  struct elsewhere *w = user;
  bool lacking = v->status == QN_NO_BACKEND;
  if (!strcmp(v->backend, qc_w.backend) && !strcmp(v->engine, w->engine))
    w->yes |= w->model ? v->status == QN_OK || (lacking && w->variant) : lacking;
}

static void try_elsewhere(struct elsewhere *w, const struct qc_engine *e, const struct qc_list *list)
{
  char *backend = qc_format("backend=%s", qc_w.backend);
  char *narrowed = qc_opt.model && !w->model ? qc_format("device_model=%s", qc_opt.model) : NULL;
  const char *const options[] = {backend, "math=fast", narrowed, NULL};
  for (int i = 0; i < list->n && !w->yes; i++) {
    qn_graph *graph;
    if (list->item[i].kind != QC_CASE || qn_graph_parse(list->item[i].line, &graph))
      continue;
    const qn_graph_view *view = qn_graph_inspect(graph);
    for (uint32_t k = 0; k < view->n_ops; k++) {
      if (qc_engine_fits(e, view->op[k].op)) {
        qn_explain(options, w->model, graph, would_take, w);
        break;
      }
    }
    qn_graph_destroy(graph);
  }
  free(backend);
  free(narrowed);
}

static bool reached_elsewhere(const struct qc_engine *e, const struct qc_list *list)
{
  struct elsewhere w = {e->row->name, NULL, e->variant, false};
  const char *const *model = qc_w.provider->device->models;
  for (; model && *model && !w.yes; model++) {
    w.model = *model;
    try_elsewhere(&w, e, list);
  }
  w.model = NULL;
  if (!w.yes)
    try_elsewhere(&w, e, list);
  return w.yes;
}

static void find_provider(void *user, const qn_backend_info *info)
{
  (void)user;
  if (info->table && info->table->device && !strcmp(info->device_kind, qc_w.table->device_kind))
    qc_w.provider = info->table;
}

/* The context under test. A backend without a device may delegate to its kind's provider, so that one is enabled too. */
/* A context on a backend or a list of them; otherwise says why there is none. */
static bool open_context(const char *first, const char *second)
{
  char *backend = second ? qc_format("backend=%s,%s", first, second) : qc_format("backend=%s", first);
  char *model = qc_opt.model ? qc_format("device_model=%s", qc_opt.model) : NULL;
  const char *const options[] = {backend, "tune=off", model, NULL};
  qn_status status = qn_context_create(options, &qc_w.ctx);
  if (status)
    printf("B %s\n", qn_last_error());
  free(backend);
  free(model);
  return !status;
}

/* For what claims to be portable: the first model of the provider's that is not the device's own. */
static void open_narrowed(void)
{
  const char *live = qn_context_describe(qc_w.ctx)->model;
  for (const char *const *model = qc_w.table->device->models; model && *model && !qc_w.narrowed && !qc_opt.model; model++) {
    char *backend = qc_format("backend=%s", qc_opt.backend), *option = qc_format("device_model=%s", *model);
    const char *const options[] = {backend, "tune=off", option, NULL};
    if (strncmp(*model, live, strlen(*model)) && qn_context_create(options, &qc_w.narrowed))
      qc_w.narrowed = NULL;
    free(backend);
    free(option);
  }
}

static bool open_backend(void)
{
  if (!open_context(qc_opt.backend, NULL))
    return false;
  qn_each_backend(find_backend, (void *)(uintptr_t)qc_opt.backend);
  if (!qc_w.table) {
    printf("B %s: loaded, and then not to be found\n", qc_opt.backend);
    return false;
  }
  qn_each_backend(find_provider, NULL);
  if (!qc_w.provider)
    printf("B no provider of its device kind is loaded\n");
  if (qc_w.table->device)
    open_narrowed();
  if (!qc_w.provider || qc_w.table->device)
    return qc_w.provider;
  qn_context_destroy(qc_w.ctx);
  return open_context(qc_opt.backend, qc_w.provider->name);
}

int qc_worker_main(int first, int skip_engines)
{
  struct qc_list list = {0};
  if (!open_backend())
    return 0;
  qc_w.cpu = !strcmp(qc_w.table->device_kind, "cpu");
  list_engines();
  if (qc_opt.engine && !qc_w.n_engines) {
    printf("B backend %s has no engine '%s'\n", qc_w.backend, qc_opt.engine);
    return 0;
  }
  qc_cases_load(&list);
  prune(&list);
  if (first < 0) {
    printf("N %d\n", list.n);
    for (int i = 0; i < qc_w.n_engines; i++)
      printf("L %d %s\n", i, qc_w.engine[i].name);
    for (int i = 0; i < list.n && qc_opt.list; i++)
      printf("S %d %s %s\n", i, list.item[i].file, list.item[i].title);
    return 0;
  }
  for (int i = first; i < list.n; i++) {
    static const char *const words[] = {"ok", "fail", "skip"};
    qc_w.skip_engines = i == first ? skip_engines : 0;
    printf("S %d %s %s\n", i, list.item[i].file, list.item[i].title);
    fflush(stdout);
    int status = run_item(&list.item[i]);
    for (int k = 0; k < qc_w.n_engines; k++) {
      if (qc_w.engine[k].reached == 1) {
        qc_w.engine[k].reached = 2;
        printf("R %d\n", k);
      }
    }
    printf("D %d %s\n", i, words[status]);
    fflush(stdout);
  }
  for (int k = first == list.n ? skip_engines : 0; k < qc_w.n_engines && !qc_opt.line; k++) {
    if (qc_w.engine[k].reached)
      continue;
    printf("C %d\n", k);
    fflush(stdout);
    if (reached_elsewhere(&qc_w.engine[k], &list))
      printf("M %d\n", k);
  }
  printf("X\n");
  fflush(stdout);
  qn_context_destroy(qc_w.narrowed);
  qn_context_destroy(qc_w.ctx);
  return 0;
}

/* ---- the parent's side -------------------------------------------------------------------- */

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

/* The next line; NULL at the end. *late: nothing came for `seconds`. */
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

/* One backend as the parent sees it. */
struct session {
  const char *backend;
  int points, n_engines;
  char **engine;
  int *reached;                         /* 1: by a case; 2: on a device model; -1: it died there */
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
  if (!ok && s->yaml)
    qc_tap_yaml(s->yaml);
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
  case 'C': s->closing = atoi(line + 2); break;
  case 'D': finish_point(s, strrchr(line, ' ') + 1); break;
  case 'X': s->done = true; break;
  case 'B': if (!strncmp(line, "Bail out! ", 10)) qc_tap_bail(line + 10); break;
  }
}

/* A worker died or sat too long: its point has failed; the next worker goes on behind the engine that did it. */
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
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 2)   /* 2: it has said why */
      fprintf(stderr, "quern-conform: the worker for %s could not list its cases (%s %d)\n", s->backend,
              WIFSIGNALED(status) ? "signal" : "status", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    exit(2);
  }
  s->open = false;
  s->closing = -1;
  s->reached = qc_alloc((size_t)s->n_engines * sizeof *s->reached + 1);
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
    if (s->running >= 0) {              /* the point goes on behind that engine */
      first = s->at;
      skip = s->step;
    } else {
      finish_point(s, "fail");
      first = s->at + 1;
      skip = 0;
    }
  }
}

static void report_engines(struct session *s)
{
  for (int i = 0; i < s->n_engines; i++) {
    char *name = qc_format("%s/%s is reached by a case", s->backend, s->engine[i]);
    qc_tap_point(s->reached[i] > 0, name, s->reached[i] == 2 ? "SKIP only on other devices of its kind" : NULL);
    if (s->reached[i] < 0)
      qc_tap_yaml("verdict: the process died when it was asked about another device model");
    free(name);
  }
}

int qc_parent_main(char **backends, int n, char **argv)
{
  struct session *s = qc_alloc((size_t)n * sizeof *s);
  int points = 0;
  bool coverage = !qc_opt.line && !qc_opt.filter && qc_opt.tier != QC_QUICK && !qc_opt.kills;
  for (int i = 0; i < n; i++) {
    s[i].backend = backends[i];
    open_session(&s[i], argv);
    points += s[i].points + (coverage ? s[i].n_engines : 0);
  }
  if (qc_opt.list)
    return 0;
  if (!points) {
    fprintf(stderr, "quern-conform: no item matches\n");
    return 2;
  }
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  qc_tap_plan(points);
  qc_tap_comment("quern %s, seed %llu, tier %s", qn_version(), (unsigned long long)qc_opt.seed,
                 qc_opt.tier == QC_QUICK ? "quick (not a conformance run)" : qc_opt.tier == QC_FULL ? "full" : "default");
  for (int i = 0; i < n; i++) {
    qc_tap_comment("backend %s: %d engines", s[i].backend, s[i].n_engines);
    run_session(&s[i], argv);
    if (coverage)
      report_engines(&s[i]);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  int failed = qc_tap_failed();
  qc_tap_comment("%d points, %d failed, %.1f s", points, failed,
                 (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9);
  return failed != 0;
}
