/* t_core.c -- the dispatcher: what the planner offers to engines, what demands exclude, recording,
 * delegation; on fake_backend.c, whose engines compute nothing, and on cpu_ref. */
#include <quern/kit.h>
#include <quern/tools.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "fake.h"
#include "tap.h"

/* ---- partition ------------------------------------------------------------------------------------------------ */

static void partition(void)
{
  qn_context *ctx = context("tune=off", NULL);
  int n;
  size_t bytes = 0;
  plan(ctx, "in a f32/8x8\nin b f32/8x8\nin r f32/8x8\ny = matmul a=a b=b\nz = add a=y b=r\nout o = relu x=z\n", &n, NULL);
  tap_ok(n == 1 && line_has(last_plan, 0, "fake/three"), "matmul, add and relu are one part");
  plan(ctx, "in a f32/8x8\nin b f32/8x8\ny = matmul a=a b=b\nz = relu x=y\nw = tanh x=z\nout o = exp x=w\n", &n, &bytes);
  tap_ok(n == 2 && line_has(last_plan, 1, "fake/all"), "what the engine does not take whole is split: three ops, then one");
  tap_ok(bytes == 1024 + 256, "between the parts one tensor and the engine's scratch: %zu bytes", bytes);
  plan(ctx, "in m f32/64\nin g f32/64\nin p f32/64\nin lr f32\nam = mul a=m b=0.9\nag = mul a=g b=0.1\nout m2 over m = add a=am b=ag\n"
            "s = mul a=m2 b=lr\nout p2 over p = sub a=p b=s\n", &n, &bytes);
  tap_ok(n == 1 && bytes == 0, "a pointwise DAG with side producers and state in place is one part without workspace");
  plan(ctx, "in x f32/4x4\nin a f32/4x4\nt = relu x=x\ny = matmul a=t b=a\nout z = add a=y b=t\n", &n, NULL);
  tap_ok(n == 2 && line_has(last_plan, 0, "relu") && line_has(last_plan, 1, "matmul"),
         "an op whose result the anchor and its follower both read comes first");
  plan(ctx, "in a f32/4x4\ny = matmul a=a b=a\nt = relu x=y\nz = matmul a=t b=a\nout o = add a=z b=y\n", &n, NULL);
  tap_ok(n == 2, "a path that leaves a region does not re-enter it: %d parts", n);
  plan(ctx, "in a f32/4x4\nin b f32/4x4\nout s = add a=a b=b\nout y = matmul a=s b=b\n", &n, NULL);
  tap_ok(n == 1 && line_has(last_plan, 0, "f32/4x4") && line_has(last_plan, 0, "add") && line_has(last_plan, 0, "matmul"),
         "a sum that others want too joins the op that reads it, and prints with it");
  plan(ctx, "in a f32/4x4\nin b f32/4x4\ns = add a=a b=b\ny = matmul a=s b=b\nm = matmul a=s b=a\nout o = add a=y b=m\n", &n, NULL);
  tap_ok(n == 2, "unless a path would come back: it joins the other one that reads it: %d parts", n);
  plan(ctx, "in x f32/4x4\ny = relu x=x\nout s = reduce_sum x=y axis=1\n", &n, NULL);
  tap_ok(n == 1, "a closing reduction joins the pointwise ops before it");
  plan(ctx, "in x f32/0x4\nin z f32/4\ny = relu x=x\nout o = exp x=y\nout q = relu x=z\n", &n, NULL);
  tap_ok(n == 1, "ops with nothing to write have no part");
  qn_context_destroy(ctx);
}

/* A residual network of 1000 blocks: planning time must not be cubic. */
static void deep(void)
{
  enum { BLOCKS = 1000 };
  static char lines[BLOCKS * 64 + 64];
  char *at = lines + sprintf(lines, "in x0 f32/8x8\nin w f32/8x8\n");
  for (int i = 0; i < BLOCKS; i++)
    at += sprintf(at, "h%d = matmul a=x%d b=w\n%sx%d = add a=h%d b=x%d\n", i, i, i + 1 < BLOCKS ? "" : "out ", i + 1, i, i);
  qn_context *ctx = context("tune=off", NULL);
  int n;
  clock_t start = clock();
  plan(ctx, lines, &n, NULL);
  double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
  tap_ok(n == BLOCKS && seconds < 10, "a graph of %d blocks is planned in %.2f s", BLOCKS, seconds);
  qn_context_destroy(ctx);
}

/* Thousands of producers in a chain before an anchor, with a small stack. */
static void *plan_chain(void *arg)
{
  enum { OPS = 3000 };
  static char lines[OPS * 32 + 64];
  char *at = lines + sprintf(lines, "in x f32/8x8\nin w f32/8x8\ny0 = abs x=x\n");
  for (int i = 1; i < OPS; i++) at += sprintf(at, "y%d = abs x=y%d\n", i, i - 1);
  sprintf(at, "out z = matmul a=y%d b=w\n", OPS - 1);
  qn_context *ctx = context("tune=off", NULL);
  plan(ctx, lines, arg, NULL);
  qn_context_destroy(ctx);
  return NULL;
}

static void long_chain(void)
{
  pthread_attr_t small;
  pthread_t thread;
  int n = 0;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 << 10);
  if (pthread_create(&thread, &small, plan_chain, &n)) return tap_skip("no thread of 256 KB", "a long chain before an anchor");
  pthread_join(thread, NULL);
  pthread_attr_destroy(&small);
  tap_ok(n > 1, "a long chain before an anchor needs no long stack: %d parts", n);
}

/* ---- demands ------------------------------------------------------------------------------------------------------ */

static char warned[4096];
static int  warnings;

static void count_warnings(void *user, int level, const char *message)
{
  (void)user;
  if (level == QN_LOG_WARN) snprintf(warned, sizeof warned, "%s", message), warnings++;
}

/* Of a context on cpu_ref with that limit: the plan's workspace, and the sum of what it writes; -1: no plan, with what it said. */
static double sum_within(const char *limit, const char *more, const char *line, size_t *bytes)
{
  const char *const cpu[] = { "backend=cpu_ref", "tune=off", "threads=4", limit, more, NULL };
  qn_context *ctx;
  qn_graph *g = NULL;
  qn_plan *p = NULL;
  double sum = -1;
  *last_plan = 0;
  if (qn_context_create(cpu, &ctx)) return -1;
  if (!qn_graph_parse(line, &g) && !qn_plan_create(ctx, g, &p)) {
    const qn_graph_view *v = qn_graph_inspect(g);
    void *ptr[8];
    for (uint32_t i = 0; i < v->n_pointers; i++) {
      const int64_t n = qn_elements(&v->value[v->pointer[i]]);
      float *at = ptr[i] = aligned_alloc(64, (size_t)(n * 4 + 63) / 64 * 64);
      for (int64_t k = 0; k < n; k++) at[k] = (float)(k % 13) - 6;
    }
    qn_plan_print(p, last_plan, sizeof last_plan);
    *bytes = qn_plan_workspace(p);
    if (!qn_plan_execute(ctx, p, ptr)) {
      sum = 0;
      for (int64_t k = 0; k < qn_elements(&v->value[v->pointer[v->n_pointers - 1]]); k++)
        sum += ((float *)ptr[v->n_pointers - 1])[k] * (double)(k % 7 + 1);
    }
    for (uint32_t i = 0; i < v->n_pointers; i++) free(ptr[i]);
  }
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
  return sum;
}

/* A workspace for one thread is enough for the tuned engines; where none is left to take a large problem, the log says why. */
static void limits(void)
{
  static const char *const line[] = { "conv_forward x=f32/2x32x28x28 w=f32/64x32x3x3 pad=1", "conv_forward x=f32/2x64x28x28 w=f32/64x1x3x3 pad=1 groups=64",
    "conv_backward_filter x=f32/2x32x28x28 dy=f32/2x64x28x28 dw=f32/64x32x3x3 pad=1", "lrn x=f32/2x32x28x28",
    "resample x=f32/2x32x28x28 size=51,51 mode=cubic", "pool_lp x=f32/2x32x56x56 window=3" };
  char limit[64];
  qn_set_log(count_warnings, NULL);
  for (size_t i = 0; i < sizeof line / sizeof *line; i++) {
    size_t most = 0, one = 0, bytes = 0;
    double all = sum_within("workspace_limit=", NULL, line[i], &most), few = sum_within("threads=1", NULL, line[i], &one);
    if (one >= most) {
      tap_ok(all == few, "%s wants no more for more threads: %zu bytes", line[i], most);
      continue;
    }
    snprintf(limit, sizeof limit, "workspace_limit=%zu", (one + most) / 2);
    double less = sum_within(limit, NULL, line[i], &bytes);
    tap_ok(bytes <= (one + most) / 2 && strstr(last_plan, " tuned ") && less == all, "%s within fewer threads' workspace, %zu of %zu bytes: %g, %g",
           line[i], bytes, most, less, all);
    snprintf(limit, sizeof limit, "workspace_limit=%zu", one);
    less = sum_within(limit, NULL, line[i], &bytes);
    tap_ok(bytes <= one && strstr(last_plan, " tuned ") && less == all, "and within one thread's, %zu bytes", one);
  }
  tap_ok(warnings == 0, "none of which is worth a warning: %s", warned);
  size_t bytes;
  const char *conv = "conv_forward x=f32/1x16x24x24/nhwc w=f32/16x16x3x3/nhwc pad=1";
  double all = sum_within("workspace_limit=", NULL, conv, &bytes), none = sum_within("workspace_limit=0", NULL, conv, &bytes);
  tap_ok(none == all && warnings == 1 && strstr(warned, "generic engine cpu_ref/direct takes conv_forward x=f32/1x16x24x24/nhwc") &&
         strstr(warned, "1.33 million multiplications") && strstr(warned, "over the limit; it is a limit of 0 bytes, needs "),
         "a generic engine that takes a large problem is warned of, with what ruled out a tuned one: %d, %s", warnings, warned);
  sum_within("workspace_limit=0", NULL, conv, &bytes);
  tap_ok(warnings == 1, "once");
  sum_within("workspace_limit=0", NULL, "conv_forward x=f32/1x16x12x12/nhwc w=f32/16x16x3x3/nhwc pad=1", &bytes);
  tap_ok(warnings == 1, "not of a small one");
  sum_within("workspace_limit=", "engine=conv_forward=direct", conv, &bytes);
  tap_ok(warnings == 1, "nor where the engine was pinned");
  qn_set_log(NULL, NULL);
}

static void demands(void)
{
  int n;
  qn_context *ctx = context("deterministic=1", "tune=off");
  plan(ctx, "relu x=f32/8", &n, NULL);
  tap_ok(n == 1 && line_has(last_plan, 0, "fake/single"), "determinism leaves the engine that promises it");
  qn_context_destroy(ctx);
  ctx = context("deterministic=1", "tune=off");
  plan(ctx, "cumsum x=f32/100x8 axis=1", &n, NULL);
  tap_ok(n == 1 && line_has(last_plan, 0, "fake/eager"), "the smaller estimate is taken");
  qn_context_destroy(ctx);
  ctx = context("deterministic=batch", "tune=measure");
  plan(ctx, "cumsum x=f32/100x8 axis=1", &n, NULL);
  tap_ok(n == 1 && line_has(last_plan, 0, "fake/even"), "unless rows must have the bits that they have in any batch: no time counts");
  qn_context_destroy(ctx);
  ctx = context("workspace_limit=999", "tune=off");
  plan(ctx, "matmul a=f32/4x4 b=f32/4x4", &n, NULL);
  tap_ok(n == 1 && line_has(last_plan, 0, "fake/one"), "the workspace limit passes over an engine that needs more");
  qn_context_destroy(ctx);
  ctx = context("engine=matmul=three", "workspace_limit=999");
  plan(ctx, "matmul a=f32/4x4 b=f32/4x4", &n, NULL);
  tap_ok(n == 0 && strstr(qn_last_error(), "over the limit"), "a pinned engine that breaks a demand is an error: %s", qn_last_error());
  plan(ctx, "concat x=[f32/2,f32/3] axis=0", &n, NULL);
  tap_ok(n == 0 && strstr(qn_last_error(), "more memory than there can be"), "an answer that cannot be meant is refused: %s",
         qn_last_error());
  qn_context_destroy(ctx);
  ctx = context("engine=matmul=three,any", "workspace_limit=999");
  plan(ctx, "matmul a=f32/4x4 b=f32/4x4", &n, NULL);
  tap_ok(n == 1 && line_has(last_plan, 0, "fake/one"), "unless the pins end in any");
  qn_context_destroy(ctx);
  ctx = context(NULL, NULL);
  plan(ctx, "softmax x=f32/3x4", &n, NULL);
  tap_ok(n == 0 && strstr(qn_last_error(), "x: rows must come in pairs; it is 3, needs an even number"), "a refusal says why: %s",
         qn_last_error());
  plan(ctx, "reduce_sum x=f32/3x4", &n, NULL);
  tap_ok(n == 1 && line_has(last_plan, 0, "fake/plain"), "an engine that cannot be built gives way to the next");
  plan(ctx, "slice x=f32/9 length=3", &n, NULL);
  tap_ok(n == 1 && line_has(last_plan, 0, "fake/outer") && line_has(last_plan, 0, "workspace=1000"),
         "delegation: the part's scratch is the plan's");
  qn_context *bad = NULL;
  const char *const nonesuch[] = { "backend=nonesuch", NULL }, *const pin[] = { "engine=matmul=nonesuch", NULL };
  const char *const unknown[] = { "colour=blue", NULL };
  tap_ok(qn_context_create(nonesuch, &bad) == QN_NO_BACKEND && strstr(qn_last_error(), "known are"), "%s", qn_last_error());
  tap_ok(qn_context_create(pin, &bad) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "known are"), "%s", qn_last_error());
  tap_ok(qn_context_create(unknown, &bad) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "known are"), "%s", qn_last_error());
  tap_ok(qn_context_set(ctx, "math", "exact") == QN_BAD_ARGUMENT && !strcmp(qn_context_get(ctx, "math"), "f32"), "%s", qn_last_error());
  qn_context_destroy(ctx);
}

/* ---- contexts, recordings --------------------------------------------------------------------------------------------- */

static int allocations;
static void *counted(void *user, size_t bytes)
{
  (void)user;
  allocations++;
  return aligned_alloc(256, (bytes + 255) / 256 * 256);
}
static void returned(void *user, void *p, size_t bytes)
{
  (void)user;
  (void)bytes;
  allocations--;
  free(p);
}

static void *askew(void *user, size_t bytes)
{
  (void)user;
  allocations++;
  return (char *)malloc(bytes + 512) + 1;
}
static void returned_askew(void *user, void *p, size_t bytes)
{
  (void)user;
  (void)bytes;
  allocations--;
  free((char *)p - 1);
}

/* The caller's allocator is checked; after a change, existing plans allocate from the new one. */
static void allocators(void)
{
  qn_context *ctx = context("tune=off", NULL);
  qn_allocator mine = { sizeof mine, askew, returned_askew, NULL }, right = { sizeof right, counted, returned, NULL };
  qn_graph *g;
  qn_plan *p;
  float *buffer = aligned_alloc(64, 4096);
  void *ptr[] = { buffer, buffer + 64, buffer + 128 };
  qn_graph_parse("matmul a=f32/4x4 b=f32/4x4", &g);
  qn_context_set_allocator(ctx, &mine);
  tap_ok(qn_plan_create(ctx, g, &p) == QN_BAD_ARGUMENT && !allocations, "workspace that is not aligned is given back: %s", qn_last_error());
  qn_context_set_allocator(ctx, NULL);
  tap_ok(!qn_plan_create(ctx, g, &p) && !qn_plan_execute(ctx, p, ptr) && !qn_context_set_allocator(ctx, &right) &&
         qn_plan_execute(ctx, p, ptr) == QN_NOT_READY && strstr(qn_last_error(), "allocator"),
         "a new allocator has nothing yet for an old plan: %s", qn_last_error());
  tap_ok(!qn_context_reserve(ctx, p) && !qn_plan_execute(ctx, p, ptr), "until it is asked to reserve");
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
  free(buffer);
}

static void arena(void)
{
  qn_context *ctx = context("tune=off", NULL), *other = context("tune=off", NULL);
  qn_allocator mine = { sizeof mine, counted, returned, NULL };
  qn_graph *g;
  qn_plan *p;
  float *buffer = aligned_alloc(64, 4096);
  void *ptr[] = { buffer, buffer + 64, buffer + 128 }, *same[] = { buffer, buffer + 64, buffer + 64 };
  void *odd[] = { buffer, buffer + 65, buffer + 128 };
  qn_graph_parse("matmul a=f32/4x4 b=f32/4x4", &g);
  qn_context_set_allocator(ctx, &mine);
  tap_ok(!qn_plan_create(ctx, g, &p) && allocations == 2, "workspace and counters come from the caller's allocator");
  tap_ok(!qn_plan_execute(ctx, p, ptr), "a plan runs: %s", qn_last_error());
  tap_ok(qn_plan_execute(other, p, ptr) == QN_NOT_READY, "another context must reserve first: %s", qn_last_error());
  tap_ok(!qn_context_reserve(other, p) && !qn_plan_execute(other, p, ptr), "and then runs it");
  tap_ok(qn_plan_execute(ctx, p, same) == QN_BAD_ARGUMENT, "an output over an input: %s", qn_last_error());
  tap_ok(qn_plan_execute(ctx, p, odd) == QN_BAD_ARGUMENT, "an address that breaks the promise: %s", qn_last_error());
  ptr[1] = NULL;
  tap_ok(qn_plan_execute(ctx, p, ptr) == QN_BAD_ARGUMENT, "a NULL: %s", qn_last_error());
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
  qn_context_destroy(other);
  tap_ok(allocations == 0, "all of it is given back");
  free(buffer);
}

/* A plan used by a context with other backends, in which its own has another index or none. */
static void instances(void)
{
  static float buffer[3][64] __attribute__((aligned(64)));
  void *ptr[] = { buffer[0], buffer[1], buffer[2] };
  qn_context *ctx = context("tune=off", NULL), *other;
  qn_graph *g;
  qn_plan *p = NULL;
  snprintf(plugin, sizeof plugin, QN_FAKE_PLUGINS "quern_rider.so," QN_FAKE_PLUGINS "quern_fake.so");
  other = context("tune=off", NULL);
  snprintf(plugin, sizeof plugin, QN_FAKE_PLUGINS "quern_fake.so");
  qn_graph_parse("matmul a=f32/4x4 b=f32/4x4", &g);
  tap_ok(!qn_plan_create(ctx, g, &p) && !qn_context_reserve(other, p) && !qn_plan_execute(other, p, ptr), "a plan among other backends");
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
  qn_context_destroy(other);
}

static void recording(void)
{
  qn_context *ctx;
  const char *const cpu[] = { "backend=cpu_ref", NULL };
  float x[4] = { -1, 2, -3, 4 }, y[4], half = 0.5f;
  qn_tensor tx = qn_tensor_1d(x, QN_F32, 4), ty = qn_tensor_1d(y, QN_F32, 4), s = qn_scalar(&half, QN_F32);
  qn_recording *r = NULL;
  if (qn_context_create(cpu, &ctx)) return tap_skip(qn_last_error(), "recordings on cpu_ref");
  tap_ok(!qn_record_begin(ctx) && qn_relu(ctx, &tx, &ty) == QN_NOT_READY, "a new problem under capture: %s", qn_last_error());
  qn_record_end(ctx, &r);
  qn_recording_destroy(r);
  qn_mul(ctx, &tx, &s, &ty);
  qn_record_begin(ctx);
  y[0] = 7;
  tap_ok(!qn_mul(ctx, &tx, &s, &ty) && y[0] == 7, "under capture nothing runs");
  tap_ok(!qn_record_end(ctx, &r), "the recording ends");
  half = 100;
  x[0] = 10;
  tap_ok(!qn_recording_replay(ctx, r) && y[0] == 5 && y[3] == 2, "a replay reads tensors anew and keeps the host scalar's value");
  tap_ok(!qn_mul(ctx, &tx, &s, &ty) && y[0] == 1000, "a call does not");
  qn_allocator mine = { sizeof mine, counted, returned, NULL };
  tap_ok(qn_context_set_allocator(ctx, &mine) == QN_NOT_READY, "the arena stays that it runs in: %s", qn_last_error());
  qn_recording_destroy(r);
  qn_context_destroy(ctx);
}

/* ---- asynchronous copies -------------------------------------------------------------------------------------------- */

static void copies(void)
{
  qn_context *ctx;
  const char *const cpu[] = { "backend=cpu_ref", NULL };
  float *in = NULL, *out = NULL, x[4], y[4];
  void *none = &ctx;
  qn_tensor tx = qn_tensor_1d(x, QN_F32, 4), ty = qn_tensor_1d(y, QN_F32, 4);
  qn_recording *r = NULL;
  if (qn_context_create(cpu, &ctx)) return tap_skip(qn_last_error(), "copies on cpu_ref");
  tap_ok(!qn_alloc_host(ctx, sizeof x, (void **)&in) && !qn_alloc_host(ctx, sizeof y, (void **)&out) && (uintptr_t)in % 256 == 0 &&
         !qn_alloc_host(ctx, 0, &none) && !none, "host memory is aligned, and none is no memory");
  for (int i = 0; i < 4; i++) in[i] = (float)(i - 2);
  tap_ok(!qn_copy_to_device_async(ctx, x, in, sizeof x) && !qn_relu(ctx, &tx, &ty) && !qn_copy_to_host_async(ctx, out, y, sizeof y) &&
         !qn_context_synchronize(ctx) && out[0] == 0 && out[3] == 1, "there, through an op and back");
  qn_record_begin(ctx);
  out[3] = 7;
  tap_ok(qn_copy_to_host(ctx, out, y, sizeof y) == QN_NOT_READY, "a copy that is waited for is no part of a recording: %s",
         qn_last_error());
  tap_ok(!qn_copy_to_device_async(ctx, x, in, sizeof x) && !qn_relu(ctx, &tx, &ty) && !qn_copy_to_host_async(ctx, out, y, sizeof y) &&
         out[3] == 7 && !qn_record_end(ctx, &r), "others are, and do nothing yet");
  in[3] = 42;
  tap_ok(!qn_recording_replay(ctx, r) && out[3] == 42, "but copy anew in each replay");
  tap_ok(qn_copy_to_device_async(ctx, x, NULL, 4) == QN_BAD_ARGUMENT && !qn_copy_to_host_async(ctx, NULL, x, 0), "%s", qn_last_error());
  qn_recording_destroy(r);
  qn_free_host(ctx, in);
  qn_free_host(ctx, out);
  qn_context_destroy(ctx);
  ctx = context("tune=off", NULL);                              /* its provider is of a minor version without host memory */
  tap_ok(!qn_alloc_host(ctx, 100, &none) && none && (uintptr_t)none % 256 == 0, "where the provider has none the host's own serves");
  qn_free_host(ctx, none);
  qn_context_destroy(ctx);
}

static void fallback(void)
{
  float x[8], y[8];
  qn_tensor tx = qn_tensor_2d(x, QN_F32, 2, 4), ty = qn_tensor_2d(y, QN_F32, 2, 4);
  qn_context *ctx = context("fallback=host", "log=error");
  qn_axis axis = QN_AXIS_INIT;
  for (int i = 0; i < 8; i++) x[i] = 0;
  qn_status status = qn_softmax(ctx, &axis, &tx, &ty);
  tap_ok(!status && y[0] == 0.25f && y[7] == 0.25f, "an op that the device lacks runs on the CPU: %s", status ? qn_last_error() : "");
  qn_context_set(ctx, "fallback", "none");
  tap_ok(qn_softmax(ctx, &axis, &tx, &ty) == QN_UNSUPPORTED, "and is refused without the fallback");
  qn_context_set(ctx, "log", "warn");
  qn_context_destroy(ctx);
}

/* The ops after this one do not concern the fallback; and its memory must be the executing context's. */
static void fallback_in_graph(void)
{
  static float buffer[2][64] __attribute__((aligned(64)));
  void *ptr[2] = { buffer[0], buffer[1] };
  qn_context *ctx = context("fallback=host", "log=error"), *other = context("fallback=host", "log=error");
  qn_graph *g;
  qn_plan *p = NULL;
  qn_graph_parse("in x f32/2x4\ny = softmax x=x\nz = relu x=y\nout w = exp x=z\n", &g);
  tap_ok(!qn_plan_create(ctx, g, &p) && qn_plan_parts(p) == 2 && !qn_plan_execute(ctx, p, ptr), "an op runs on the CPU in a graph");
  void *workspace = aligned_alloc(256, 4096), *counters = aligned_alloc(256, 4096);
  tap_ok(qn_plan_execute_with(other, p, ptr, workspace, counters) == QN_NOT_READY, "a context of another's plan reserves first: %s",
         qn_last_error());
  free(workspace);
  free(counters);
  qn_context_set(ctx, "log", "warn");
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
  qn_context_destroy(other);
}

/* A product over c: c is not copied, so the pointers must be as the graph declared. */
static void over_promise(void)
{
  static float buffer[4][64] __attribute__((aligned(64)));
  void *same[] = { buffer[0], buffer[1], buffer[2], buffer[2] }, *apart[] = { buffer[0], buffer[1], buffer[2], buffer[3] };
  const char *const cpu[] = { "backend=cpu_ref", NULL };
  qn_context *ctx;
  qn_graph *g;
  qn_plan *p = NULL;
  if (qn_context_create(cpu, &ctx)) return tap_skip(qn_last_error(), "a product over c");
  qn_graph_parse("in a f32/8x8\nin b f32/8x8\nin c f32/8x8\nout y over c = matmul a=a b=b c=c beta=1\n", &g);
  tap_ok(!qn_plan_create(ctx, g, &p) && !qn_plan_execute(ctx, p, same), "an output over an input");
  tap_ok(qn_plan_execute(ctx, p, apart) == QN_BAD_ARGUMENT, "that lies elsewhere: %s", qn_last_error());
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_tensor x = qn_tensor_1d(buffer[0], QN_F32, 64), y = qn_tensor_1d(buffer[1], QN_F32, 64);
  tap_ok(!qn_relu(ctx, &x, &y), "a call");
  x.dtype |= 0x100;
  tap_ok(qn_relu(ctx, &x, &y) == QN_BAD_ARGUMENT, "and one of a dtype that is none: %s", qn_last_error());
  qn_context_destroy(ctx);
}

/* Outputs that nothing reads are written too: an engine of one op does not check for a NULL output. */
static void unread(void)
{
  static const char *const graph[] = {
    "in x f32/1x2x4x4 | y0 = pool_max x=x indices=i window=2 | out y = relu x=y0",
    "in x f32/1x2x4x4 | d = cumsum x=x | e = softmax x=x | f = layer_norm x=x mean=m rstd=r | g = copy x=f | out y = relu x=x",
  };
  static float x[32] = { 1, -2 }, y[32];
  void *ptr[] = { x, y };
  const char *const cpu[] = { "backend=cpu_ref", NULL };
  qn_context *ctx;
  if (qn_context_create(cpu, &ctx)) return tap_skip(qn_last_error(), "outputs that nobody reads");
  for (size_t i = 0; i < sizeof graph / sizeof *graph; i++) {
    qn_graph *g = NULL;
    qn_plan *p = NULL;
    y[0] = 7;
    tap_ok(!qn_graph_parse(graph[i], &g) && !qn_plan_create(ctx, g, &p) && !qn_plan_execute(ctx, p, ptr) && y[0] == 1, "%s", graph[i]);
    qn_plan_destroy(p);
    qn_graph_destroy(g);
  }
  qn_context_destroy(ctx);
}

/* A reader stays before the op that overwrites its input, even if only a third op connects them: program order must remain possible. */
static void written_over(void)
{
  static const char *const graph[] = {
    "in a f32/4x4 | in b f32/4x4 | out s = mul a=a b=a | out t over a = mul a=b b=a | y = matmul a=b b=t | out z = add a=s b=y",
    "in a f32/4x4 | in b f32/4x4 | in c f32/4x4 | s = add a=c b=c | m = softmax x=a | out t over c = softmax x=m | "
    "out u = matmul a=m b=b c=t | e = softmax x=a | out z over b = add a=s b=e",
    "in a f32/4x4 | in b f32/4x4 | s = neg x=b | t = mul a=s b=a | out u over a = tanh x=b | v = layer_norm x=b | out w = tanh x=t | "
    "e = add a=v b=u | out z = add a=e b=w",
    "in a f32/4x4 | in b f32/4x4 | s = mul a=a b=b | t = add a=a b=a | out u over b = relu x=t | v = layer_norm x=u | out w = add a=s b=v",
  };
  const char *const cpu[] = { "backend=cpu_ref", "tune=off", NULL };
  qn_context *ctx;
  if (qn_context_create(cpu, &ctx)) return tap_skip(qn_last_error(), "what is written over");
  for (size_t i = 0; i < sizeof graph / sizeof *graph; i++) {
    qn_graph *g = NULL;
    qn_plan *p = NULL;
    int planned = !qn_graph_parse(graph[i], &g) && !qn_plan_create(ctx, g, &p);
    tap_ok(planned, "%s: %s", graph[i], planned ? "planned" : qn_last_error());
    qn_plan_destroy(p);
    qn_graph_destroy(g);
  }
  qn_context_destroy(ctx);
}

static pthread_barrier_t planning, forked;

static void wait_for_fork(void *user, int level, const char *message)
{
  (void)user;
  (void)level;
  if (!strstr(message, "could not be built")) return;
  pthread_barrier_wait(&planning);
  pthread_barrier_wait(&forked);
}

static void *sum(void *made)
{
  static float x[64], y[1];
  qn_axes all = QN_AXES_INIT;
  qn_tensor tx = qn_tensor_1d(x, QN_F32, 64), ty = qn_tensor_1d(y, QN_F32, 1);
  qn_context *ctx = context("tune=off", NULL);
  *(qn_status *)made = qn_reduce_sum(ctx, &all, &tx, &ty);
  qn_context_destroy(ctx);
  return NULL;
}

/* A child forked while another thread plans must not wait for that thread. */
static void fork_while_planning(void)
{
  pthread_t thread;
  qn_status made = QN_INTERNAL;
  int status = 0;
  pthread_barrier_init(&planning, NULL, 2);
  pthread_barrier_init(&forked, NULL, 2);
  qn_set_log(wait_for_fork, NULL);
  pthread_create(&thread, NULL, sum, &made);
  pthread_barrier_wait(&planning);
  pid_t child = fork();
  if (!child) {
    alarm(20);                          /* a hang is a failure */
    qn_set_log(NULL, NULL);
    sum(&made);
    _exit(made != QN_OK);
  }
  pthread_barrier_wait(&forked);
  pthread_join(thread, NULL);
  qn_set_log(NULL, NULL);
  tap_ok(child > 0 && waitpid(child, &status, 0) == child && status == 0 && made == QN_OK,
         "a child makes what was planned as it was forked");
}

/* 600 scalings of tensors, some over others' memory, some not; also recorded, as the plan is kept. */
static void long_lists(void)
{
  enum { N = 600 };
  static float memory[2][N][16] __attribute__((aligned(64)));
  static qn_tensor params[N], grads[N], wrong[N];
  const char *const cpu[] = { "backend=cpu_ref", NULL };
  int64_t steps[4] = { 0 };
  float rate = 0.5f;
  qn_context *ctx;
  qn_recording *r = NULL;
  if (qn_context_create(cpu, &ctx)) return tap_skip(qn_last_error(), "long lists");
  for (int i = 0; i < N; i++) {
    params[i] = wrong[i] = qn_tensor_1d(memory[0][i], QN_F32, 16);
    grads[i] = qn_tensor_1d(memory[1][i], QN_F32, 16);
    memory[1][i][0] = 1;
  }
  qn_tensor step = qn_tensor_make(&steps[0], QN_I64, 0, NULL), next = qn_tensor_make(&steps[2], QN_I64, 0, NULL),
      scale = qn_scalar(&rate, QN_F32);
  const qn_arg arg[] = { { params, N }, { grads, N }, { 0 }, { &step, 1 }, { &scale, 1 }, { 0 }, { 0 }, { &next, 1 }, { params, N }, { 0 },
                         { 0 } };
  qn_op op = { QN_OP_SGD, qn_op_find(QN_OP_SGD)->n_roles, NULL, arg };
  tap_ok(!qn_run(ctx, &op) && memory[0][0][0] == -0.5f && memory[0][N - 1][0] == -0.5f, "a step over a list of %d", N);
  tap_ok(!qn_record_begin(ctx) && !qn_run(ctx, &op) && !qn_record_end(ctx, &r), "is recorded");
  tap_ok(!qn_recording_replay(ctx, r) && memory[0][N - 1][0] == -1, "and replayed");
  qn_arg bad[sizeof arg / sizeof *arg];
  memcpy(bad, arg, sizeof arg);
  bad[8].t = wrong;
  wrong[N - 1].data = memory[0][N - 2];
  op.arg = bad;
  tap_ok(qn_run(ctx, &op) == QN_BAD_ARGUMENT, "two outputs in one place: %s", qn_last_error());
  wrong[N - 1].data = memory[1][7];
  tap_ok(qn_run(ctx, &op) == QN_BAD_ARGUMENT, "an output over another list: %s", qn_last_error());
  qn_recording_destroy(r);
  qn_context_destroy(ctx);
}

/* Many shapes once, far more than the cache holds, then the first again. */
static void many_plans(void)
{
  static float x[6000], y[6000];
  qn_context *ctx = context("tune=off", NULL);
  int bad = 0;
  for (int64_t n = 1; n <= 6000; n++) {
    qn_tensor tx = qn_tensor_1d(x, QN_F32, n), ty = qn_tensor_1d(y, QN_F32, n);
    bad += qn_relu(ctx, &tx, &ty) != QN_OK;
  }
  for (int64_t n = 1; n <= 100; n++) {
    qn_tensor tx = qn_tensor_1d(x, QN_F32, n), ty = qn_tensor_1d(y, QN_F32, n);
    bad += qn_relu(ctx, &tx, &ty) != QN_OK;
  }
  tap_ok(!bad, "more shapes than the cache of plans holds");
  qn_context_destroy(ctx);
}

int main(void)
{
  snprintf(plugin, sizeof plugin, QN_FAKE_PLUGINS "quern_fake.so");
  partition();
  deep();
  long_chain();
  demands();
  limits();
  arena();
  allocators();
  instances();
  recording();
  copies();
  fallback();
  fallback_in_graph();
  over_promise();
  unread();
  written_over();
  fork_while_planning();
  long_lists();
  many_plans();
  return tap_done();
}
