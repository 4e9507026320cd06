/* overhead.c -- the cost of a call above the engine itself, with an engine that does nothing (null_backend.c).
 *
 * A raw call is the engine's run through its pointer, with a prepared launch. Every figure is the median over
 * batches of calls; rows that are compared alternate. A new shape is timed call by call. */
#include <pthread.h>
#include <stdatomic.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include "bench.h"

enum { BATCH = 2000, BATCHES = 401, OTHERS = 1000, NEW_SHAPES = 2000, PROCESSES = 7 };

extern char **environ;

static double now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int complain(const char *what)
{
  fprintf(stderr, "quern-bench: --overhead: %s: %s\n", what, qn_last_error());
  return 1;
}

/* ---- the measured call ------------------------------------------------------------------------ */

/* A convolution of three 4-D tensors, whose data is never read. */
typedef struct convolution {
  qn_conv   conv;
  qn_tensor x, w, y;
} convolution;

enum { EACH = 1 << 28 };                /* more than any tensor here spans */
static char *addresses;                 /* reserved, never touched */

static convolution convolution_of(int64_t n, int64_t size)
{
  convolution c;
  c.conv = (qn_conv)QN_CONV_INIT;
  c.x = qn_tensor_nchw(addresses, QN_F32, n, 16, size, size);
  c.w = qn_tensor_nchw(addresses + EACH, QN_F32, 32, 16, 3, 3);
  c.y = qn_tensor_nchw(addresses + 2 * (size_t)EACH, QN_F32, n, 32, size - 2, size - 2);
  return c;
}

static qn_status call(qn_context *ctx, const convolution *c)
{
  return qn_conv_forward(ctx, &c->conv, &c->x, &c->w, NULL, &c->y);
}

typedef struct bench {
  qn_context *ctx;
  qn_plan    *plan;
  convolution same;
  const qn_prepared *prepared;
  qn_launch   launch;
  void       *pointers[3];
} bench;

static double time_raw(bench *b)
{
  qn_status (*volatile run)(const qn_prepared *, const qn_launch *) = b->prepared->engine->run;
  double start = now_ns();
  for (int i = 0; i < BATCH; i++)
    run(b->prepared, &b->launch);
  return (now_ns() - start) / BATCH;
}

static double time_execute(bench *b)
{
  double start = now_ns();
  for (int i = 0; i < BATCH; i++)
    qn_plan_execute(b->ctx, b->plan, b->pointers);
  return (now_ns() - start) / BATCH;
}

static double time_call(bench *b)
{
  double start = now_ns();
  for (int i = 0; i < BATCH; i++)
    call(b->ctx, &b->same);
  return (now_ns() - start) / BATCH;
}

/* The same call among 99 others of other shapes. */
static double time_hundred(bench *b)
{
  static convolution shape[100];
  if (!shape[0].conv.struct_size)
    for (int i = 0; i < 100; i++)
      shape[i] = convolution_of(i + 1, 14);
  double start = now_ns();
  for (int i = 0; i < BATCH; i++)
    call(b->ctx, &shape[i % 100]);
  return (now_ns() - start) / BATCH;
}

/* ---- a second caller --------------------------------------------------------------------------- */

typedef struct caller {
  qn_context *ctx;
  atomic_bool stop;
} caller;

static void *keep_calling(void *argument)
{
  caller *other = argument;
  const convolution same = convolution_of(8, 14);
  while (!atomic_load_explicit(&other->stop, memory_order_relaxed))
    for (int i = 0; i < 100; i++)
      call(other->ctx, &same);
  return NULL;
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static double raw_ns;

static void print_row(const char *what, double ns, double bar_ns)
{
  printf("%-62s %9.1f ns", what, ns);
  if (bar_ns > 0)
    printf("  %+9.1f above raw; at most %.0f: %s", ns - raw_ns, bar_ns, ns - raw_ns <= bar_ns ? "kept" : "OVER");
  putchar('\n');
  fflush(stdout);
}

/* Medians of several ways to call, taking turns. */
static void in_turn(bench *b, double (*const way[])(bench *), int n, double result[])
{
  static double sample[4][BATCHES];
  for (int i = 0; i < BATCHES; i++)
    for (int k = 0; k < n; k++)
      sample[k][i] = way[k](b);
  for (int k = 0; k < n; k++)
    result[k] = median(sample[k], BATCHES);
}

static int new_shapes(bench *b)
{
  static double sample[NEW_SHAPES];
  for (int i = 0; i < NEW_SHAPES; i++) {
    convolution c = convolution_of(i + 1, 20);
    double start = now_ns();
    if (call(b->ctx, &c))
      return complain("a new shape");
    sample[i] = now_ns() - start;
  }
  print_row("a call with a new shape", median(sample, NEW_SHAPES), 20000);
  return 0;
}

static int calls(bench *b)
{
  double (*const before[])(bench *) = { time_raw, time_execute, time_call };
  double (*const after[])(bench *) = { time_raw, time_call, time_hundred };
  double ns[3];
  in_turn(b, before, 3, ns);
  raw_ns = ns[0];
  print_row("raw call through the engine's pointer", ns[0], 0);
  print_row("qn_plan_execute", ns[1], 10);
  print_row("qn_conv_forward, cached", ns[2], 100);
  for (int i = 0; i < OTHERS; i++) {
    convolution c = convolution_of(i + 1, 14);
    if (call(b->ctx, &c))
      return complain("filling the plan cache");
  }
  in_turn(b, after, 3, ns);
  raw_ns = ns[0];
  print_row("qn_conv_forward, cached, with 1000 other plans", ns[1], 100);
  print_row("qn_conv_forward, cached, 100 shapes in turn", ns[2], 100);

  const char *backend = qn_context_get(b->ctx, "backend");
  char option[4300];
  snprintf(option, sizeof option, "backend=%s", backend ? backend : "");
  caller other = { NULL, false };
  pthread_t thread;
  if (qn_context_create((const char *[]){ option, NULL }, &other.ctx))
    return complain("a second context");
  if (pthread_create(&thread, NULL, keep_calling, &other)) {
    qn_context_destroy(other.ctx);
    return complain("a second thread");
  }
  in_turn(b, after, 2, ns);
  atomic_store(&other.stop, true);
  pthread_join(thread, NULL);
  qn_context_destroy(other.ctx);
  raw_ns = ns[0];
  print_row("qn_conv_forward, cached, 1000 plans, a second thread calling", ns[1], 100);
  return new_shapes(b);
}

/* ---- from process start to the first result ------------------------------------------------------ */

int first_result(const char *backend)
{
  char option[4300];
  snprintf(option, sizeof option, "backend=%s", backend ? backend : "");
  qn_context *ctx;
  if (qn_context_create(backend ? (const char *[]){ option, NULL } : NULL, &ctx))
    return complain("first result");
  void *memory = NULL;
  size_t x_bytes = 8 * 16 * 14 * 14 * 4, w_bytes = 32 * 16 * 9 * 4, y_bytes = 8 * 32 * 12 * 12 * 4;
  qn_status status = qn_alloc(ctx, x_bytes + w_bytes + y_bytes, &memory);
  if (!status) {
    convolution c = convolution_of(8, 14);
    c.x.data = memory;
    c.w.data = (char *)memory + x_bytes;
    c.y.data = (char *)memory + x_bytes + w_bytes;
    status = call(ctx, &c);
  }
  if (!status)
    status = qn_context_synchronize(ctx);
  qn_free(ctx, memory);
  qn_context_destroy(ctx);
  return status ? complain("first result") : 0;
}

static int processes(const char *backend)
{
  double sample[PROCESSES];
  char option[4300];
  snprintf(option, sizeof option, "--first-result=%s", backend ? backend : "");
  char *arguments[] = { "quern-bench", option, NULL };
  for (int i = 0; i < PROCESSES; i++) {
    pid_t pid;
    int status;
    double start = now_ns();
    if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ) || waitpid(pid, &status, 0) < 0 || status) {
      fprintf(stderr, "quern-bench: --overhead: the process for the first result failed\n");
      return 1;
    }
    sample[i] = now_ns() - start;
  }
  printf("%-62s %9.2f ms  (backend %s)\n", "process start to first result", median(sample, PROCESSES) / 1e6,
         backend ? backend : "by default");
  return 0;
}

int overhead(const char *backend)
{
  char path[4200], option[4300];
  if (!own_module("null", path, sizeof path)) {
    fprintf(stderr, "quern-bench: --overhead wants quern_null.so, which stands neither beside the program nor where "
            "it was installed\n");
    return 1;
  }
  snprintf(option, sizeof option, "backend=%s", path);
  addresses = mmap(NULL, 3 * (size_t)EACH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED) {
    perror("quern-bench: --overhead: addresses");
    return 1;
  }
  bench b = { .same = convolution_of(8, 14), .launch = { .struct_size = sizeof(qn_launch), .threads = 1 } };
  qn_graph *graph = NULL;
  int rc = 1;
  if (qn_context_create((const char *[]){ option, NULL }, &b.ctx))
    return complain("the null engine");
  if (qn_graph_parse("conv_forward x=f32/8x16x14x14 w=f32/32x16x3x3", &graph) || qn_plan_create(b.ctx, graph, &b.plan)) {
    complain("the plan");
    goto done;
  }
  b.prepared = qn_plan_part(b.plan, 0, NULL);
  b.pointers[0] = b.same.x.data;
  b.pointers[1] = b.same.w.data;
  b.pointers[2] = b.same.y.data;
  b.launch.ptr = b.pointers;
  b.launch.device = qn_context_describe(b.ctx);
  if (call(b.ctx, &b.same) || qn_plan_execute(b.ctx, b.plan, b.pointers)) {
    complain("the first call");
    goto done;
  }
  rc = calls(&b);
  if (!rc)
    rc = processes(backend);
done:
  qn_plan_destroy(b.plan);
  qn_graph_destroy(graph);
  qn_context_destroy(b.ctx);
  return rc;
}
