/* trace.c -- QUERN_TRACE: when a plan is made, its first step is wrapped in one that, at its first run, appends the plan's lines
 * to the file: whole problems, separated by blank lines, for quern-bench to replay. Without the variable it costs nothing.
 * A captured execution is traced at capture. */
#include "config.h"
#include "core.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct trace {
  qn__wrapper wrapper;
  const qn_plan *plan;
  char       *path;
  atomic_bool written;
} trace;

/* All or nothing: a truncated line would be another problem. */
static bool append(int file, const char *text, size_t bytes)
{
  ssize_t written = write(file, text, bytes);
  if (written == (ssize_t)bytes) return true;
  if (written < 0) return false;
  off_t end = lseek(file, 0, SEEK_CUR);
  if (end < written || ftruncate(file, end - written)) return false;
  errno = ENOSPC;
  return false;
}

void qn__append(const char *who, const char *path, const char *text)
{
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0 || !append(file, text, strlen(text)))
    qn__log(QN_LOG_WARN, "%s: %s: %s", who, path, errno == ELOOP ? "is a symbolic link, which is not followed" : strerror(errno));
  if (file >= 0) close(file);
}

static void write_plan(const trace *t)
{
  char name[1];
  size_t length = qn_graph_print(t->plan->graph, name, 0);
  char *text = qn__alloc(length + 4);
  if (!text) {
    qn__log(QN_LOG_WARN, "trace: %s: no memory", t->path);
    return;
  }
  qn_graph_print(t->plan->graph, text, length + 1);
  strcpy(text + length, length && text[length - 1] == '\n' ? "\n" : "\n\n");
  qn__append("trace", t->path, text);
  qn__free(text);
}

static qn_status run(const qn_prepared *outer, const qn_launch *launch)
{
  trace *t = outer->state;
  if (!atomic_exchange(&t->written, true)) write_plan(t);
  return t->wrapper.run(t->wrapper.inner, launch);
}

static void free_trace(qn__wrapper *w)
{
  qn__free(((trace *)w)->path);
  qn__free(w);
}

void qn__trace_wrap(qn_context *ctx, qn_plan *p)
{
  const char *path = ctx->settings.text[QN_SET_TRACE];
  if (!path || !p->n_steps) return;
  trace *t = qn__alloc(sizeof *t);
  if (t) t->path = qn__strdup(path);
  if (!t || !t->path) {
    qn__log(QN_LOG_WARN, "trace: no memory; a plan goes untraced");
    qn__free(t);
    return;
  }
  t->plan = p;
  qn__step_wrap(p, &p->step[0], &t->wrapper, run, free_trace);
}
