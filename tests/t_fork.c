/* t_fork.c -- after fork the child has only the forking thread: a context of the parent's fails there with a sentence,
 * and the parent is not affected. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <quern/quern.h>
#include "tap.h"

enum { N = 64 };
static const char *const options[] = { "backend=cpu_ref", NULL };
static float a[N * N], y[N * N];

static qn_status compute(qn_context *ctx)
{
  qn_tensor ta = qn_tensor_2d(a, QN_F32, N, N), ty = qn_tensor_2d(y, QN_F32, N, N);
  qn_status status = qn_matmul(ctx, &ta, &ta, NULL, NULL, NULL, NULL, &ty);
  return status ? status : qn_context_synchronize(ctx);
}

/* Exit statuses of the child. */
enum { GOOD, RAN, SILENT, PLANNED };

static int child(qn_context *ctx, qn_graph *graph, qn_plan *plan)
{
  void *const pointers[] = { a, a, y };
  qn_plan *other = NULL;
  alarm(20);                                      /* a hang is a failure */
  if (!compute(ctx) || !qn_plan_execute(ctx, plan, pointers)) return RAN;
  if (!*qn_last_error()) return SILENT;
  if (!qn_plan_create(ctx, graph, &other)) return PLANNED;
  qn_context_destroy(ctx);                        /* must return */
  return GOOD;
}

int main(void)
{
  qn_context *ctx = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  int status = 0;
  for (int i = 0; i < N * N; i++) a[i] = (float)(i % 7 - 3);
  if (!tap_ok(!qn_context_create(options, &ctx) && !compute(ctx) &&
              !qn_graph_parse("matmul a=f32/64x64 b=f32/64x64", &graph) && !qn_plan_create(ctx, graph, &plan), "before"))
    tap_note("%s", qn_last_error());
  float before = y[5];
  fflush(stdout);
  pid_t pid = fork();
  if (!pid) _exit(child(ctx, graph, plan));
  tap_ok(pid > 0 && waitpid(pid, &status, 0) == pid, "forked");
  tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == GOOD, "in the child the parent's context fails with a sentence") ||
    (tap_note(WIFEXITED(status) ? "exit status %d" : "signal %d", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)), 0);
  y[5] = 0;
  tap_ok(!compute(ctx) && y[5] == before, "the parent goes on");
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  qn_context_destroy(ctx);
  return tap_done();
}
