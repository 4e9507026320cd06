/* t_trace.c -- what a context with a trace writes: plans, literals and keys that read back unchanged. */
#include <quern/tools.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "fake.h"
#include "tap.h"

/* Two contexts of one device, the second with a trace: it must also trace plans made by the first. */
static void of_other_contexts(void)
{
  char file[] = "/tmp/quern-t-trace-XXXXXX", option[64], text[256] = "";
  static float x[8], y[8];
  qn_tensor tx = qn_tensor_1d(x, QN_F32, 7), ty = qn_tensor_1d(y, QN_F32, 7);
  int fd = mkstemp(file);
  snprintf(option, sizeof option, "trace=%s", file);
  qn_context *ctx = context("tune=off", NULL), *traced = context("tune=off", option);
  tap_ok(!qn_relu(ctx, &tx, &ty) && !qn_relu(traced, &tx, &ty) && read(fd, text, sizeof text - 1) > 0 && strstr(text, "relu x=f32/7"),
         "a trace sees what another context has planned: %s", text);
  qn_context_destroy(ctx);
  qn_context_destroy(traced);
  close(fd);
  unlink(file);
}

/* Scalars of calls that are not f64, as literals: the traced line must read back as the same problem. */
static void numbers(void)
{
  char file[] = "/tmp/quern-t-trace-XXXXXX", option[64];
  const char *const cpu[] = { "backend=cpu_ref", "tune=off", option, NULL };
  float number = 1, x[4] = { 1, 2, 3, 4 }, y[4] = { 0 };
  uint8_t yes = 1;
  qn_tensor n = qn_scalar(&number, QN_F32), c = qn_scalar(&yes, QN_BOOL), tx = qn_tensor_1d(x, QN_F32, 4), ty = qn_tensor_1d(y, QN_F32, 4);
  qn_tensor one = qn_tensor_make(y, QN_F32, 0, NULL);
  qn_context *ctx;
  qn_reader *r = NULL;
  qn_graph *g = NULL;
  int fd = mkstemp(file);
  snprintf(option, sizeof option, "trace=%s", file);
  if (qn_context_create(cpu, &ctx)) return tap_skip(qn_last_error(), "numbers in a trace");
  tap_ok(!qn_exp(ctx, &n, &one) && y[0] > 2.7f && !qn_select(ctx, &c, &tx, &n, &ty) && y[3] == 4, "calls with numbers: %s",
         qn_last_error());
  qn_reader_open(file, &r);
  for (size_t i = 0; i < 2; i++) {
    int read = !qn_reader_next(r, &g, NULL, NULL) && g;
    const qn_graph_view *v = qn_graph_inspect(g);
    tap_ok(read && v->value[v->n_values - 1].dtype == QN_F32, "their lines are read: %s", read ? "" : qn_last_error());
    qn_plan *p = NULL;
    void *ptr[] = { x, y };
    y[1] = 7;
    if (i == 1) tap_ok(read && !qn_plan_create(ctx, g, &p) && !qn_plan_execute(ctx, p, ptr) && y[1] == 2, "and run");
    qn_plan_destroy(p);
    qn_graph_destroy(g);
  }
  qn_reader_close(r);
  qn_context_destroy(ctx);
  close(fd);
  unlink(file);
}

/* As an f64 the largest key would become 2^63, which is not a valid key. */
static void keys(void)
{
  char file[] = "/tmp/quern-t-trace-XXXXXX", option[64];
  const char *const cpu[] = { "backend=cpu_ref", "tune=off", option, NULL };
  const int64_t most = INT64_MAX;
  float y[4];
  qn_tensor seed = qn_scalar(&most, QN_I64), ty = qn_tensor_1d(y, QN_F32, 4);
  qn_context *ctx;
  qn_reader *r = NULL;
  qn_graph *g = NULL;
  int fd = mkstemp(file);
  snprintf(option, sizeof option, "trace=%s", file);
  if (qn_context_create(cpu, &ctx)) return tap_skip(qn_last_error(), "keys in a trace");
  tap_ok(!qn_rng_uniform(ctx, NULL, &seed, NULL, &ty), "the largest key is taken: %s", qn_last_error());
  qn_reader_open(file, &r);
  tap_ok(!qn_reader_next(r, &g, NULL, NULL) && g, "and its line read: %s", g ? "" : qn_last_error());
  qn_graph_destroy(g);
  qn_reader_close(r);
  qn_context_destroy(ctx);
  close(fd);
  unlink(file);
}

static char logged[8192];

static void keep(void *user, int level, const char *message)
{
  (void)user;
  size_t n = strlen(logged);
  if (level == QN_LOG_PLAN) snprintf(logged + n, sizeof logged - n, "%s\n", message);
}

/* The table of a context: what a graph calls its tensors, each problem once, calls counted. */
static void profiled(void)
{
  char file[] = "/tmp/quern-t-profile-XXXXXX", option[64], text[4096] = "";
  const char *const cpu[] = { "backend=cpu_ref", "tune=off", "log=plan", option, NULL };
  static float x[64], y[64];
  void *ptr[] = { x, y };
  qn_tensor tx = qn_tensor_1d(x, QN_F32, 7), ty = qn_tensor_1d(y, QN_F32, 7);
  qn_context *ctx;
  qn_graph *g = NULL;
  qn_plan *p = NULL, *same = NULL;
  qn_recording *r = NULL;
  int fd = mkstemp(file);
  snprintf(option, sizeof option, "profile=%s", file);
  qn_set_log(keep, NULL);
  if (qn_context_create(cpu, &ctx)) return tap_skip(qn_last_error(), "a profile");
  qn_status status = qn_graph_parse("in image f32/8x8\nhidden = softmax x=image\nout label = log_softmax x=hidden", &g);
  if (!status) status = qn_plan_create(ctx, g, &p);
  if (!status) status = qn_plan_create(ctx, g, &same);
  if (!status) status = qn_plan_execute(ctx, p, ptr);
  for (int i = 0; i < 3 && !status; i++) status = qn_relu(ctx, &tx, &ty);
  if (!status) status = qn_record_begin(ctx);
  if (!status) status = qn_plan_execute(ctx, p, ptr);
  if (!status) status = qn_record_end(ctx, &r);
  for (int i = 0; i < 2 && !status; i++) status = qn_recording_replay(ctx, r);
  if (!status) status = qn_plan_execute(ctx, same, ptr);
  tap_ok(!status, "a profiled context runs: %s", qn_last_error());
  tap_ok(strstr(logged, "in image f32/8x8 | out hidden = softmax x=image") && strstr(logged, "relu x=f32/7"), "log=plan: %s", logged);
  qn_recording_destroy(r);
  qn_plan_destroy(p);
  qn_plan_destroy(same);
  qn_graph_destroy(g);
  tap_ok(read(fd, text, sizeof text - 1) == 0, "nothing is written before the context's end");
  qn_context_destroy(ctx);
  ssize_t n = read(fd, text, sizeof text - 1);
  const char *relu = n > 0 ? strstr(text, " relu x=f32/7\n") : NULL, *hidden = n > 0 ? strstr(text, "out hidden = softmax x=image\n") : NULL;
  tap_ok(relu && hidden && strstr(text, "in 11 calls") && strstr(text, "\n       4 ") && strstr(text, "\n       3 ") &&
         strstr(text, "out label = log_softmax x=hidden\n"), "the table of a context: %s", text);
  tap_ok(hidden && !strstr(hidden + 1, "out hidden"), "has a row for each problem, whatever plans it stood in");
  qn_set_log(NULL, NULL);
  close(fd);
  unlink(file);
}

/* A disk that becomes full within a line: no partial line may remain. */
static void on_a_full_disk(void)
{
  char file[] = "/tmp/quern-t-trace-XXXXXX", option[64], text[256] = "";
  static float x[8], y[8];
  qn_tensor tx = qn_tensor_1d(x, QN_F32, 7), ty = qn_tensor_1d(y, QN_F32, 7);
  struct rlimit limit, little;
  int fd = mkstemp(file);
  snprintf(option, sizeof option, "trace=%s", file);
  qn_context *ctx = context("tune=off", option);
  getrlimit(RLIMIT_FSIZE, &limit);
  little = limit;
  little.rlim_cur = 10;
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &little);
  qn_status status = qn_relu(ctx, &tx, &ty);
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, SIG_DFL);
  tap_ok(!status && !qn_abs(ctx, &tx, &ty) && read(fd, text, sizeof text - 1) > 0 && !strncmp(text, "abs x=f32/7\n", 12),
         "of a line that found no room nothing is left: %s", text);
  qn_context_destroy(ctx);
  close(fd);
  unlink(file);
}

int main(void)
{
  snprintf(plugin, sizeof plugin, QN_FAKE_PLUGINS "quern_fake.so");
  of_other_contexts();
  numbers();
  keys();
  profiled();
  on_a_full_disk();
  return tap_done();
}
