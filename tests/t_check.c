/* t_check.c -- the checking device: what would break on a GPU is an error with a sentence, what would not computes. */
#include <quern/tools.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tap.h"

static char logged[4096];

static void keep(void *user, int level, const char *message)
{
  (void)user;
  if (level <= QN_LOG_WARN) snprintf(logged, sizeof logged, "%s", message);
}

static qn_context *checking(const char *option)
{
  const char *const options[] = { "backend=check", "tune=off", option, NULL };
  qn_context *ctx = NULL;
  if (qn_context_create(options, &ctx)) tap_note("%s", qn_last_error());
  return ctx;
}

enum { N = 6 };

/* A right program: by calls, a graph with an intermediate, a recording, a host scalar that changes after the call, timing. */
static void computes(qn_context *ctx)
{
  float x[N] = { -1, 2, -3, 4, -5, 6 }, y[N], two = 2;
  void *dx, *dy;
  tap_ok(!qn_alloc(ctx, sizeof x, &dx) && !qn_alloc(ctx, sizeof y, &dy), "memory: %s", qn_last_error());
  qn_tensor tx = qn_tensor_1d(dx, QN_F32, N), ty = qn_tensor_1d(dy, QN_F32, N), s = qn_scalar(&two, QN_F32);
  qn_status status = qn_copy_to_device(ctx, dx, x, sizeof x);
  if (!status) status = qn_mul(ctx, &tx, &s, &ty);
  two = 100;                                                    /* a host scalar is read during the call */
  if (!status) status = qn_copy_to_host(ctx, y, dy, sizeof y);
  tap_ok(!status && y[0] == -2 && y[5] == 12, "a call: %g %g, %s", y[0], y[5], qn_last_error());
  qn_graph *g = NULL;
  qn_plan *p = NULL;
  qn_recording *r = NULL;
  qn_timer *t = NULL;
  double ns = -1;
  void *ptr[] = { dx, dy };
  status = qn_graph_parse("in x f32/6\nh = softmax x=x\nout y = log_softmax x=h", &g);
  if (!status) status = qn_plan_create(ctx, g, &p);
  if (!status) status = qn_timer_create(ctx, &t);
  if (!status) status = qn_timer_start(t);
  if (!status) status = qn_plan_execute(ctx, p, ptr);
  if (!status) status = qn_timer_stop(t, &ns);
  qn_plan_destroy(p);
  if (!status) status = qn_copy_to_host(ctx, y, dy, sizeof y);
  tap_ok(!status && y[0] < 0 && y[5] < 0 && ns > 0, "a graph with an intermediate, timed: %g %g, %g ns, %s", y[0], y[5], ns, qn_last_error());
  qn_timer_destroy(t);
  status = qn_record_begin(ctx);
  if (!status) status = qn_relu(ctx, &tx, &ty);
  if (!status) status = qn_record_end(ctx, &r);
  if (!status) status = qn_recording_replay(ctx, r);
  if (!status) status = qn_copy_to_host(ctx, y, dy, sizeof y);
  tap_ok(status == QN_NOT_READY || (!status && y[0] == 0 && y[5] == 6), "a recording of a new call: %s", qn_last_error());
  qn_recording *none = NULL;
  if (status == QN_NOT_READY && !qn_record_end(ctx, &none)) qn_recording_destroy(none);
  status = qn_relu(ctx, &tx, &ty);
  if (!status) status = qn_record_begin(ctx);
  if (!status) status = qn_relu(ctx, &tx, &ty);
  if (!status) status = qn_record_end(ctx, &r);
  if (!status) status = qn_copy_to_device(ctx, dx, (float[N]){ 1, 1, 1, -1, -1, 7 }, sizeof x);
  if (!status) status = qn_recording_replay(ctx, r);
  if (!status) status = qn_copy_to_host(ctx, y, dy, sizeof y);
  tap_ok(!status && y[2] == 1 && y[3] == 0 && y[5] == 7, "a recording replayed: %g %g %g, %s", y[2], y[3], y[5], qn_last_error());
  qn_recording_destroy(r);
  qn_graph_destroy(g);
  qn_free(ctx, dx);
  qn_free(ctx, dy);
}

enum { MOST = 4, ROOM = 64 };

/* Executes the lines' plan on a context with that option; in: one number for each place of each input. True: it has lanes. */
static int with_lanes(const char *option, const char *lines, float out[MOST][ROOM])
{
  float number[ROOM];
  char text[8192];
  qn_context *ctx = checking(option);
  qn_graph *g = NULL;
  qn_plan *p = NULL;
  void *ptr[MOST];
  qn_status status = qn_graph_parse(lines, &g);
  if (!status) status = qn_plan_create(ctx, g, &p);
  const qn_graph_view *view = qn_graph_inspect(g);
  const int n = view ? (int)view->n_pointers : 0, n_ins = view ? (int)view->n_ins : 0;
  for (int i = 0; i < n && !status; i++) {
    for (int k = 0; k < ROOM; k++) number[k] = (float)((k + i) * 7 % 13 - 6) / 16;
    status = qn_alloc(ctx, sizeof number, &ptr[i]);
    if (!status) status = qn_copy_to_device(ctx, ptr[i], number, sizeof number);
  }
  for (int i = 0; i < 3 && !status; i++) status = qn_plan_execute(ctx, p, ptr);
  for (int i = n_ins; i < n && !status; i++) status = qn_copy_to_host(ctx, out[i], ptr[i], sizeof number);
  if (status) tap_note("%s", qn_last_error());
  qn_plan_print(p, text, sizeof text);
  for (int i = 0; i < n && !status; i++) qn_free(ctx, ptr[i]);
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
  return !status && strstr(text, " lane=1 after=");
}

/* Independent parts on two streams: what one of them reads or reuses must have been waited for, and the values are the same. */
static void lanes(void)
{
  float out[2][MOST][ROOM];
  char arms[1024];
  int at = sprintf(arms, "in a f32/8x8\nin b f32/8x8\nh = relu x=a\n");      /* offered to both arms, taken by none */
  for (int arm = 'x'; arm <= 'y'; arm++)
    for (int i = 0; i < 6; i++)
      at += i ? sprintf(arms + at, "%c%d = matmul a=%c%d b=b\n", arm, i, arm, i - 1) : sprintf(arms + at, "%c0 = matmul a=h b=a\n", arm);
  sprintf(arms + at, "out z = matmul a=x5 b=y5\n");
  memset(out, 0, sizeof out);
  const int in_order = !with_lanes("lanes=1", arms, out[0]);
  tap_ok(with_lanes(NULL, arms, out[1]) && in_order && out[0][2][0] != 0 && !memcmp(out[0], out[1], sizeof out[0]),
         "a plan with lanes computes what it computes in order: %g", out[0][2][0]);
}

/* A step is refused after an event was recorded and before another lane has waited for it: the next execution waits for the event's new
 * recording. */
static void after_a_failure(void)
{
  static float host[64];
  qn_context *ctx = checking("lanes=2");
  qn_graph *g = NULL;
  qn_plan *p = NULL;
  void *ptr[4], *good;
  char lines[1024], text[4096];
  int at = sprintf(lines, "in a f32/8x8\nin b f32/8x8\nin c f32/8x8\nh = matmul a=a b=b\n");
  for (int arm = 'x'; arm <= 'y'; arm++)
    for (int i = 0; i < 6; i++)
      at += i ? sprintf(lines + at, "%c%d = matmul a=%c%d b=%c\n", arm, i, arm, i - 1, arm == 'x' ? 'c' : 'b')
              : sprintf(lines + at, "%c0 = matmul a=h b=%c\n", arm, arm == 'x' ? 'c' : 'b');
  sprintf(lines + at, "out z = matmul a=x5 b=y5\n");
  qn_status status = qn_graph_parse(lines, &g);
  if (!status) status = qn_plan_create(ctx, g, &p);
  for (int i = 0; i < 4 && !status; i++) status = qn_alloc(ctx, sizeof host, &ptr[i]);
  for (int i = 0; i < 3 && !status; i++) status = qn_copy_to_device(ctx, ptr[i], host, sizeof host);
  qn_plan_print(p, text, sizeof text);
  good = ptr[2];
  for (int round = 0; round < 3 && !status; round++) {
    ptr[2] = host;
    const qn_status refused = qn_plan_execute(ctx, p, ptr);
    ptr[2] = good;
    status = refused == QN_BAD_ARGUMENT ? qn_plan_execute(ctx, p, ptr) : QN_INTERNAL;
  }
  if (!status) status = qn_context_synchronize(ctx);
  if (!tap_ok(!status && strstr(text, " lane=1 after="), "after a failure in one lane the next execution is ordered: %s", qn_last_error()))
    tap_note("%s", text);
  for (int i = 0; i < 4; i++) qn_free(ctx, ptr[i]);
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
}

static void foreign(qn_context *ctx)
{
  static float x[N], y[N];
  void *d;
  qn_alloc(ctx, sizeof x, &d);
  qn_tensor tx = qn_tensor_1d(x, QN_F32, N), td = qn_tensor_1d(d, QN_F32, N), long_ = qn_tensor_1d(d, QN_F32, 100 * N);
  qn_tensor ty = qn_tensor_1d(y, QN_F32, N), inside = qn_tensor_1d((float *)d + 4, QN_F32, 2), tz = qn_tensor_1d(d, QN_F32, 2);
  tap_ok(qn_relu(ctx, &tx, &td) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "relu: x: ") && strstr(qn_last_error(), "must come from qn_alloc"),
         "the host's memory as an input: %s", qn_last_error());
  tap_ok(qn_relu(ctx, &td, &ty) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "relu: y: "), "as an output: %s", qn_last_error());
  tap_ok(qn_relu(ctx, &long_, &long_) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "leave their block"), "past a block's end: %s", qn_last_error());
  tap_ok(!qn_relu(ctx, &inside, &tz) && !qn_context_synchronize(ctx), "inside a block: %s", qn_last_error());
  tap_ok(qn_copy_to_device(ctx, x, y, sizeof x) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "must come from qn_alloc"), "a copy to it: %s",
         qn_last_error());
  tap_ok(qn_copy_to_host(ctx, d, d, sizeof x) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "should be the host's"), "a copy of the wrong kind: %s",
         qn_last_error());
  qn_free(ctx, x);
  tap_ok(strstr(logged, "no memory from qn_alloc") != NULL, "qn_free of it: %s", logged);
  qn_free(ctx, d);
}

static void waiting(qn_context *ctx)
{
  static float x[N] = { 1, 2, 3 }, y[N];
  qn_context *other = checking(NULL);
  void *dx, *dy, *dz;
  qn_alloc(ctx, sizeof x, &dx);
  qn_alloc(ctx, sizeof x, &dy);
  qn_alloc(ctx, sizeof x, &dz);
  qn_tensor tx = qn_tensor_1d(dx, QN_F32, N), ty = qn_tensor_1d(dy, QN_F32, N), tz = qn_tensor_1d(dz, QN_F32, N);
  qn_copy_to_device(ctx, dx, x, sizeof x);
  tap_ok(!qn_relu(ctx, &tx, &ty) && !qn_copy_to_host_async(ctx, y, dy, sizeof y) && y[0] != y[0], "nothing is done before someone waits");
  tap_ok(!qn_context_synchronize(ctx) && y[0] == 1 && y[2] == 3, "then it is: %g, %s", y[0], qn_last_error());
  qn_relu(ctx, &tx, &ty);
  tap_ok(qn_relu(other, &ty, &tz) == QN_NOT_READY && strstr(qn_last_error(), "nobody has waited for"), "another context's result: %s",
         qn_last_error());
  tap_ok(!qn_relu(other, &tx, &tz) && !qn_context_synchronize(other), "what both read: %s", qn_last_error());
  tap_ok(!qn_context_synchronize(ctx) && !qn_relu(other, &ty, &tz) && !qn_context_synchronize(other), "a result waited for: %s", qn_last_error());
  qn_copy_to_device_async(ctx, dx, x, sizeof x);
  x[1] = 7;
  tap_ok(qn_context_synchronize(ctx) == QN_DEVICE && strstr(qn_last_error(), "changed before an asynchronous copy to the device"),
         "a source that changed too early: %s", qn_last_error());
  qn_copy_to_host_async(ctx, y, dy, sizeof y);
  y[1] = 7;
  tap_ok(qn_context_synchronize(ctx) == QN_DEVICE && strstr(qn_last_error(), "asynchronous copy to it"), "a target: %s", qn_last_error());
  tap_ok(!qn_context_synchronize(ctx), "an error is told once");
  qn_context_destroy(other);
  qn_free(ctx, dx);
  qn_free(ctx, dy);
  qn_free(ctx, dz);
}

/* The host's own load ends the program, with a sentence. */
static void touches(void)
{
  int pipe_of[2], status = 0;
  char text[1024] = "";
  if (pipe(pipe_of)) return;
  const pid_t child = fork();
  if (!child) {
    void *d = NULL;
    dup2(pipe_of[1], 2);
    qn_alloc(checking(NULL), 64, &d);
    *(volatile float *)d = 1;
    _exit(0);
  }
  close(pipe_of[1]);
  size_t n = 0;                           /* the sentence may come after a warning: read all that is said */
  for (ssize_t more; n < sizeof text - 1 && (more = read(pipe_of[0], text + n, sizeof text - 1 - n)) > 0;) n += (size_t)more;
  waitpid(child, &status, 0);
  close(pipe_of[0]);
  tap_ok(strstr(text, "the host touched the device's memory") && !(WIFEXITED(status) && !WEXITSTATUS(status)), "a store by the host: %s", text);
}

int main(void)
{
  touches();                              /* before this process has threads */
  qn_set_log(keep, NULL);
  qn_context *ctx = checking(NULL);
  if (!ctx) return tap_skip(qn_last_error(), "the checking device"), tap_done();
  computes(ctx);
  lanes();
  after_a_failure();
  foreign(ctx);
  waiting(ctx);
  qn_context_destroy(ctx);
  return tap_done();
}
