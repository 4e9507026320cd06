/* t_alloc.c -- every allocation that core makes fails once.
 *
 * Each scenario runs in a child process with its first allocation failing, then in another with its second, until one
 * completes without a failure. A failure must be reported as QN_NO_MEMORY with a sentence or do no harm, nothing may crash, and
 * everything created must be destroyed: under AddressSanitizer a leak fails the child. Then, with memory available again, the same
 * process must succeed. Linked to core itself, for qn__fail_alloc_at. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <quern/graph.h>
#include <quern/tools.h>
#include "core.h"
#include "tap.h"

static const char *const options[] = { "backend=cpu_ref", "threads=1", NULL };
static const char program[] = "in x f32/2x3x8x8\nin w f32/4x3x3x3\nin b f32/1x4x1x1\ny0 = conv_forward x=x w=w pad=1\n"
                              "y1 = add a=y0 b=b\ny2 = relu x=y1\nout y = pool_max x=y2 window=2\n";

/* ---- scenarios: each returns the first failure, after destroying all that it made -------------------- */

static void row_of_setting(void *user, const qn_setting_info *info) { (void)info; ++*(int *)user; }
static void row_of_backend(void *user, const qn_backend_info *info) { (void)info; ++*(int *)user; }
static void row_of_device(void *user, const qn_backend_info *info, const qn_device *d) { (void)info; (void)d; ++*(int *)user; }
static void row_of_verdict(void *user, const qn_verdict *v) { (void)v; ++*(int *)user; }

static qn_status contexts(void)
{
  static const char *const many[] = { "backend=cpu_ref", "engine=matmul=direct,conv_forward=cpu_ref/direct,any", "math=strict",
                                      "workspace_limit=64M", "threads=2", "tune=off", NULL };
  qn_context *ctx = NULL;
  int n = 0;
  qn_status status = qn_context_create(many, &ctx);
  if (!status) status = qn_context_set(ctx, "engine", "relu=direct,any");
  if (!status) status = qn_context_set(ctx, "deterministic", "batch");
  if (!status) status = qn_each_setting(ctx, row_of_setting, &n);
  if (!status) status = qn_each_backend(row_of_backend, &n);
  if (!status) status = qn_each_device(row_of_device, &n);
  qn_context_destroy(ctx);
  return status;
}

static qn_status graphs(void)
{
  qn_graph *graph = NULL, *copy = NULL;
  char text[1024];
  qn_status status = qn_graph_parse(program, &graph);
  if (!status) qn_graph_print(graph, text, sizeof text);
  if (!status) status = qn_graph_make(qn_graph_inspect(graph), &copy);
  if (!status) qn_graph_print(copy, text, sizeof text);
  qn_graph_destroy(copy);
  qn_graph_destroy(graph);
  return status;
}

static qn_status gradients(void)
{
  static const char *const wrt[] = { "w", "b", "c" };
  qn_graph *graph = NULL, *gradient = NULL;
  qn_status status = qn_graph_parse("in x f32/2x3x8x8\nin w f32/4x3x3x3\nin b f32/4\nin c f32/2x4x3x1\ny0 = conv_forward x=x w=w bias=b\n"
                                    "y1 = pool_max x=y0 window=2\ny2 = concat x=[y1,c] axis=3\ny3 = slice x=y2 step=1,1,2,1\n"
                                    "y4 = reduce_prod x=y3\n[y5] = all_reduce x=[y4]\nout y = mul a=y5 b=y5\n", &graph);
  if (!status) status = qn_graph_gradient(graph, "y", wrt, 3, &gradient);
  qn_graph_destroy(gradient);
  qn_graph_destroy(graph);
  return status;
}

static qn_status readers(void)
{
  static const char text[] = "# two\nmatmul a=f32/4x5 b=f32/5x6 ; seed=7\n\nin a f32/3\nout y = exp x=a\n\nrelu x=f32/9\n";
  qn_reader *reader = NULL;
  qn_graph *graph = NULL;
  const char *settings;
  int line;
  qn_status status = qn_reader_text(text, &reader);
  while (!status && !(status = qn_reader_next(reader, &graph, &settings, &line)) && graph) {
    qn_graph_destroy(graph);
    graph = NULL;
  }
  qn_reader_close(reader);
  return status;
}

static qn_status plans(void)
{
  static float x[2 * 3 * 8 * 8], w[4 * 3 * 3 * 3], b[4], y[2 * 4 * 4 * 4];
  void *const pointers[] = { x, w, b, y };
  qn_context *ctx = NULL, *other = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  char text[2048];
  qn_status status = qn_context_create(options, &ctx);
  if (!status) status = qn_context_create(options, &other);
  if (!status) status = qn_graph_parse(program, &graph);
  if (!status) status = qn_plan_create(ctx, graph, &plan);
  if (!status) status = qn_plan_execute(ctx, plan, pointers);
  if (!status) status = qn_context_reserve(other, plan);
  if (!status) status = qn_plan_execute(other, plan, pointers);
  if (!status) {
    qn_plan_print(plan, text, sizeof text);
    for (int i = 0; i < qn_plan_parts(plan); i++) qn_part_line(plan, i, text, sizeof text);
  }
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  qn_context_destroy(other);
  qn_context_destroy(ctx);
  return status;
}

/* Two arms of products, on two streams of the checking device. */
static qn_status lanes(void)
{
  static const char *const checking[] = { "backend=check", "threads=1", "tune=off", NULL };
  char lines[1024], text[8192] = "";
  int at = sprintf(lines, "in a f32/8x8\nin b f32/8x8\nh = matmul a=a b=b\n");
  void *ptr[3] = { NULL };
  qn_context *ctx = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  for (int arm = 'x'; arm <= 'y'; arm++)
    for (int i = 0; i < 6; i++)
      at += i ? sprintf(lines + at, "%c%d = matmul a=%c%d b=b\n", arm, i, arm, i - 1) : sprintf(lines + at, "%c0 = matmul a=h b=a\n", arm);
  sprintf(lines + at, "out z = matmul a=x5 b=y5\n");
  qn_status status = qn_context_create(checking, &ctx);
  for (int i = 0; i < 3 && !status; i++) status = qn_alloc(ctx, 256, &ptr[i]);
  if (!status) status = qn_graph_parse(lines, &graph);
  if (!status) status = qn_plan_create(ctx, graph, &plan);
  if (!status) status = qn_plan_execute(ctx, plan, ptr);
  if (!status) status = qn_context_synchronize(ctx);
  if (!status && qn_plan_print(plan, text, sizeof text) && *text && !strstr(text, "lane=1")) status = QN_INTERNAL;
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  for (int i = 0; i < 3 && ctx; i++)
    if (ptr[i]) qn_free(ctx, ptr[i]);
  qn_context_destroy(ctx);
  return status;
}

static qn_status calls(void)
{
  static float a[12 * 12], b[12 * 12], y[12 * 24];
  qn_tensor ta = qn_tensor_2d(a, QN_F32, 12, 12), tb = qn_tensor_2d(b, QN_F32, 12, 12), ty = qn_tensor_2d(y, QN_F32, 12, 12);
  qn_tensor both[2] = { ta, tb }, twice = qn_tensor_2d(y, QN_F32, 12, 24);
  qn_axis axis = QN_AXIS_INIT;
  qn_context *ctx = NULL;
  qn_status status = qn_context_create(options, &ctx);
  for (int pass = 0; pass < 2; pass++) {          /* planned, then found in the cache */
    if (!status) status = qn_matmul(ctx, &ta, &tb, NULL, NULL, NULL, NULL, &ty);
    if (!status) status = qn_softmax(ctx, NULL, &ta, &ty);
    if (!status) status = qn_concat(ctx, &axis, both, 2, &twice);
  }
  if (!status && qn_relu(ctx, &ta, &twice) == QN_OK) status = QN_INTERNAL;      /* a refusal needs memory too */
  qn_context_destroy(ctx);
  return status;
}

static qn_status recordings(void)
{
  static float a[32], y[32];
  qn_tensor ta = qn_tensor_1d(a, QN_F32, 32), ty = qn_tensor_1d(y, QN_F32, 32);
  qn_context *ctx = NULL;
  qn_recording *recording = NULL;
  qn_status status = qn_context_create(options, &ctx);
  if (!status) status = qn_exp(ctx, &ta, &ty);
  if (!status) status = qn_tanh(ctx, &ty, &ty);
  if (!status) status = qn_record_begin(ctx);
  if (!status) {
    status = qn_exp(ctx, &ta, &ty);
    if (!status) status = qn_tanh(ctx, &ty, &ty);
    qn_status ended = qn_record_end(ctx, &recording);
    if (!status) status = ended;
  }
  if (!status) status = qn_recording_replay(ctx, recording);
  qn_recording_destroy(recording);
  qn_context_destroy(ctx);
  return status;
}

static qn_status explanations(void)
{
  qn_graph *graph = NULL;
  int n = 0;
  qn_status status = qn_graph_parse(program, &graph);
  if (!status) status = qn_explain(options, NULL, graph, row_of_verdict, &n);
  if (!status) status = qn_explain(options, "generic", graph, row_of_verdict, &n);
  qn_graph_destroy(graph);
  return status;
}

static qn_status timers(void)
{
  qn_context *ctx = NULL;
  qn_timer *timer = NULL;
  double ns;
  void *p = NULL;
  qn_status status = qn_context_create(options, &ctx);
  if (!status) status = qn_timer_create(ctx, &timer);
  if (!status) status = qn_timer_start(timer);
  if (!status) status = qn_alloc(ctx, 1000, &p);
  if (!status) status = qn_timer_stop(timer, &ns);
  if (p) qn_free(ctx, p);
  qn_timer_destroy(timer);
  qn_context_destroy(ctx);
  return status;
}

static qn_status traces(void)
{
  static float a[6];
  char option[64];
  const char *const traced[] = { "backend=cpu_ref", option, NULL };
  qn_tensor ta = qn_tensor_2d(a, QN_F32, 2, 3);
  qn_context *ctx = NULL;
  snprintf(option, sizeof option, "trace=/tmp/quern-alloc-%d.q", (int)getppid());
  qn_status status = qn_context_create(traced, &ctx);
  if (!status) status = qn_sqrt(ctx, &ta, &ta);
  qn_context_destroy(ctx);
  return status;
}

static qn_status profiles(void)
{
  static float a[6];
  const char *const profiled[] = { "backend=cpu_ref", "profile=/dev/null", "log=plan", NULL };
  qn_tensor ta = qn_tensor_2d(a, QN_F32, 2, 3);
  qn_context *ctx = NULL;
  qn_status status = qn_context_create(profiled, &ctx);
  for (int i = 0; i < 2 && !status; i++) status = qn_sqrt(ctx, &ta, &ta);
  qn_context_destroy(ctx);
  return status;
}

static qn_status checks(void)
{
  static const char *const checking[] = { "backend=check", "threads=1", NULL };
  float a[6] = { 1, 4, 9 };
  void *p = NULL;
  qn_context *ctx = NULL;
  qn_status status = qn_context_create(checking, &ctx);
  if (!status) status = qn_alloc(ctx, sizeof a, &p);
  qn_tensor ta = qn_tensor_2d(p, QN_F32, 2, 3);
  if (!status) status = qn_copy_to_device(ctx, p, a, sizeof a);
  if (!status) status = qn_sqrt(ctx, &ta, &ta);
  if (!status) status = qn_copy_to_host(ctx, a, p, sizeof a);
  if (!status && a[2] != 3) status = QN_INTERNAL;
  if (p) qn_free(ctx, p);
  qn_context_destroy(ctx);
  return status;
}

/* An engine that could not be measured for lack of memory is dropped and leaks nothing. */
static qn_status measurements(void)
{
  static float a[6];
  char option[64];
  const char *const measured[] = { "backend=cpu_ref", "threads=1", "tune=measure", option, NULL };
  qn_tensor ta = qn_tensor_2d(a, QN_F32, 2, 3);
  qn_context *ctx = NULL;
  snprintf(option, sizeof option, "tune_cache=/tmp/quern-alloc-%d/tune", (int)getppid());
  qn_status status = qn_context_create(measured, &ctx);
  if (!status) status = qn_sqrt(ctx, &ta, &ta);
  qn_context_destroy(ctx);
  unlink(strchr(option, '/'));                    /* the next one measures too */
  return status;
}

/* also: what else than QN_NO_MEMORY a scenario may return: a plan that could not be cached is not found under capture.
 * cold: starts with nothing loaded. Then a lack of memory while backends are searched may lose a backend for good, so the second
 * run may fail. */
static const struct scenario { const char *name; qn_status (*run)(void); bool cold; qn_status also; } scenarios[] = {
  { "backends, contexts, settings", contexts, true, QN_NO_BACKEND },
  { "contexts, settings", contexts, false, QN_NO_MEMORY }, { "graphs", graphs, false, QN_NO_MEMORY }, { "gradients", gradients, false, QN_NO_MEMORY },
  { "a reader", readers, false, QN_NO_MEMORY }, { "plans", plans, false, QN_NO_MEMORY },
  { "calls", calls, false, QN_NO_MEMORY }, { "a recording", recordings, false, QN_NOT_READY },
  { "explanations", explanations, false, QN_NO_MEMORY }, { "a timer and memory", timers, false, QN_NO_MEMORY },
  { "a trace", traces, false, QN_NO_MEMORY },
  { "a profile", profiles, false, QN_NO_MEMORY }, { "the checking device", checks, false, QN_NO_MEMORY },
  { "measurements", measurements, false, QN_NO_MEMORY }, { "a plan with lanes", lanes, false, QN_NO_MEMORY },
};

/* ---- children ---------------------------------------------------------------------------------------- */

enum { CAME_BACK = 40, RAN_THROUGH, SILENT, WRONG_STATUS, NOT_USABLE, NOT_WARM };

static void quiet(void *user, int level, const char *message) { (void)user; (void)level; (void)message; }

static int child(const struct scenario *s, long n)
{
  if (!s->cold) {                                 /* load the registry and the runtime, but plan nothing */
    qn_context *ctx = NULL;
    if (qn_context_create(options, &ctx)) return NOT_WARM;
    qn_context_destroy(ctx);
  }
  atomic_store(&qn__fail_alloc_at, n);
  qn_status status = s->run();
  bool failed = atomic_exchange(&qn__fail_alloc_at, 0) <= 0;
  if (!failed) return status ? WRONG_STATUS : RAN_THROUGH;
  if (status && !*qn_last_error()) return SILENT;
  if (status && status != QN_NO_MEMORY && status != s->also) {
    fprintf(stderr, "# %s, allocation %ld: status %d, \"%s\"\n", s->name, n, status, qn_last_error());
    return WRONG_STATUS;
  }
  if (!s->cold && (status = s->run())) {
    fprintf(stderr, "# %s, after allocation %ld had failed: status %d, \"%s\"\n", s->name, n, status, qn_last_error());
    return NOT_USABLE;
  }
  return CAME_BACK;
}

static int in_child(const struct scenario *s, long n)
{
  int status = 0;
  fflush(stdout);
  pid_t pid = fork();
  if (!pid) {
    alarm(60);
    qn_set_log(quiet, NULL);
    exit(child(s, n));                            /* exit: AddressSanitizer checks for leaks there */
  }
  return pid < 0 || waitpid(pid, &status, 0) != pid ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static const char *meaning(int code)
{
  return code == SILENT ? "a failure without a sentence" : code == WRONG_STATUS ? "another status than QN_NO_MEMORY"
       : code == NOT_USABLE ? "no success with memory back" : code == NOT_WARM ? "no context to begin with"
       : code < 0 ? "a signal" : "a leak, or another finding of a sanitizer";
}

int main(void)
{
  char trace[64], tune[64];
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
    const struct scenario *s = &scenarios[i];
    long n = 0, bad = 0;
    int code;
    do {
      code = in_child(s, ++n);
      if (code != CAME_BACK && code != RAN_THROUGH && ++bad <= 5)
        tap_note("%s: allocation %ld fails: %s (%d)", s->name, n, meaning(code), code);
    } while (code != RAN_THROUGH && n < 5000 && bad < 100);
    tap_ok(!bad && code == RAN_THROUGH && n > 1, "%s: each of %ld allocations fails once", s->name, n - 1);
  }
  snprintf(trace, sizeof trace, "/tmp/quern-alloc-%d.q", (int)getpid());
  unlink(trace);
  snprintf(tune, sizeof tune, "/tmp/quern-alloc-%d/tune.lock", (int)getpid());
  unlink(tune);
  *strrchr(tune, '/') = 0;
  rmdir(tune);
  return tap_done();
}
