/* t_fork.c -- after fork the child has only the forking thread: what the parent made fails there with a sentence, and a context of
 * the child's computes, with every CPU engine, although OpenMP's workers are gone. The parent is not affected. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <quern/kit.h>
#include <quern/tools.h>
#include "tap.h"

enum { MOST = 400, MOST_POINTERS = 24 };

/* Large enough for two threads; from every file of engines, with every way of sharing work among threads. */
static const char *const lines[] = {
  "matmul a=f32/160x160 b=f32/160x160", "matmul a=bf16/4x96x96 b=bf16/4x96x96", "matmul a=f64/128x128 b=f64/128x128/t",
  "conv_forward x=f32/2x16x28x28 w=f32/24x16x3x3 bias=f32/24 pad=1", "conv_forward x=f32/2x16x28x28/nhwc w=f32/24x16x1x1/nhwc",
  "conv_forward x=f32/2x32x28x28 w=f32/32x1x3x3 pad=1 groups=32", "conv_backward_data dy=f32/2x24x28x28 w=f32/24x16x3x3 dx=f32/2x16x28x28 pad=1",
  "conv_backward_filter x=f32/2x16x28x28 dy=f32/2x24x28x28 dw=f32/24x16x3x3 pad=1",
  "softmax x=f32/512x300", "softmax_backward dy=f32/512x300 y=f32/512x300", "softmax x=f32/4x64x600 axis=1",
  "layer_norm x=f32/256x512 scale=f32/1x512 shift=f32/1x512", "batch_norm x=f32/8x16x20x20 mean=? rstd=?",
  "batch_norm x=f32/8x16x20x20/nhwc mean=? rstd=?", "lrn x=f32/4x32x28x28",
  "batch_norm_inference x=f32/8x16x20x20/nhwc mean=f32/1x16x1x1 var=f32/1x16x1x1",
  "pool_max x=f32/4x16x28x28 window=3 stride=2 pad=1 indices=?", "pool_average x=f32/4x16x28x28/nhwc window=2",
  "pool_lp x=f32/4x16x28x28 window=2", "pool_max_backward dy=f32/4x16x14x14 indices=u8/4x16x14x14 dx=f32/4x16x28x28 window=2",
  "pool_adaptive_average x=f32/4x16x28x28 size=7,7",
  "reduce_sum x=f32/512x512 axis=1", "reduce_sum x=f32/512x512 axis=0", "reduce_max x=bf16/64x4096 axis=1",
  "add a=f32/512x512 b=f32/1x512", "gelu x=f16/512x512", "cast x=f32/512x512 y=bf16/512x512",
  "resample x=f32/2x16x28x28 size=56,56 mode=linear", "grid_sample x=f32/2x16x28x28 grid=f32/2x28x28x2",
  "affine_grid theta=f32/4x2x3 grid=f32/4x64x64x2", "quantize x=f32/256x512 scale=f32 y=i8/256x512",
  "quantize_dynamic x=f32/256x512 y=i8/256x512 scale=?",
  "cross_entropy x=f32/1024x100 labels=i64/1024x1", "ctc_loss x=f32/60x8x40 labels=i32/8x10 x_lengths=i32/8 label_lengths=i32/8",
  "permute x=f32/64x48x80 perm=2,0,1", "pad x=f32/64x48x80 pad=1,1,1", "cumsum x=f32/256x512 axis=1",
  "gather x=f32/1000x64 indices=i64/500 axis=0", "top_k x=f32/256x500 k=5", "argmax x=f32/512x512 axis=1",
  "rng_normal seed=4 y=f32/256x512", "dropout x=f32/256x512 seed=3 p=0.5",
  "adam params=[f32/512x256] grads=[f32/512x256] m=[f32/512x256] v=[f32/512x256] step=2 rate=0.1",
  "in a f32/160x160 | in b f32/160x160 | c = matmul a=a b=b | out y = relu x=c",
};
enum { LINES = sizeof lines / sizeof *lines };

typedef struct run { int line; char pin[160]; uint64_t sum; } run;
static run list[MOST];
static int n_runs, unread;

/* ---- one problem with one engine ------------------------------------------------------------------------- */

static void fill(char *p, const qn_value *v, int64_t bytes, const qn_domain *d)
{
  const int64_t each = (int64_t)qn_dtype_bytes(v->dtype);
  const bool whole = v->dtype >= QN_I8 && v->dtype <= QN_BOOL;
  for (int64_t i = 0; i < bytes / each; i++) {
    double x = whole ? (double)(d->from + (d->range > 0 ? i % d->range : 0)) : (double)(i * 7 % 13 - 6) / 8;
    if (!whole && d->floats == QN_FLOATS_SMALL) x /= 32;
    else if (!whole && d->floats != QN_FLOATS_ANY) x = d->floats == QN_FLOATS_ZERO ? 0 : x < 0 ? 0.5 - x : 0.5 + x;
    qn_store_f64(p + i * each, v->dtype, x);
  }
}

/* Plans and runs it; *sum: of the outputs' bits. */
static qn_status compute(const char *line, const char *pin, const char *threads, uint64_t *sum)
{
  const char *const options[] = { "tune=off", threads, pin && *pin ? pin : "backend=cpu_ref", "backend=cpu_ref", NULL };
  qn_context *ctx = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  void *pointer[MOST_POINTERS] = { 0 };
  qn_status status = qn_context_create(options, &ctx);
  if (!status) status = qn_graph_parse(line, &graph);
  const qn_graph_view *g = status ? NULL : qn_graph_inspect(graph);
  if (!status) status = qn_plan_create(ctx, graph, &plan);
  int64_t bytes[MOST_POINTERS] = { 0 };
  for (uint32_t i = 0; g && i < g->n_pointers; i++) {
    const qn_value *v = &g->value[g->pointer[i]];
    qn_domain domain;
    bytes[i] = qn_extent_bytes(v);
    pointer[i] = aligned_alloc(64, (size_t)(bytes[i] + 63) / 64 * 64);
    qn_input_domain(g, g->pointer[i], &domain);
    fill(pointer[i], v, bytes[i], &domain);
    if (v->over >= 0)
      for (uint32_t k = 0; k < i; k++)
        if (g->pointer[k] == v->over) {
          free(pointer[i]);
          pointer[i] = pointer[k];
        }
  }
  if (!status) status = qn_plan_execute(ctx, plan, pointer);
  *sum = 0;
  for (uint32_t i = g ? g->n_ins : 0; g && !status && i < g->n_pointers; i++)
    for (int64_t b = 0; b < bytes[i]; b++) *sum = *sum * 31 + ((unsigned char *)pointer[i])[b];
  for (uint32_t i = 0; g && i < g->n_pointers; i++)
    if (g->value[g->pointer[i]].over < 0) free(pointer[i]);
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  qn_context_destroy(ctx);
  return status;
}

static void row(void *user, const qn_verdict *v)
{
  const int line = *(const int *)user;
  if (v->status || v->part || n_runs == MOST) return;
  run *r = &list[n_runs++];
  r->line = line;
  if (strncmp(lines[line], "in ", 3))
    snprintf(r->pin, sizeof r->pin, "engine=%.*s=%s/%s", (int)strcspn(lines[line], " "), lines[line], v->backend, v->engine);
}

/* Every engine that takes a line; of a graph the one chosen. */
static void collect(void)
{
  static const char *const options[] = { "backend=cpu_ref", "tune=off", NULL };
  for (int i = 0; i < LINES; i++) {
    qn_graph *graph = NULL;
    if (qn_graph_parse(lines[i], &graph) || qn_explain(options, NULL, graph, row, &i)) {
      tap_note("%s: %s", lines[i], qn_last_error());
      unread++;
    }
    qn_graph_destroy(graph);
  }
}

static int run_all(bool again)
{
  int wrong = 0;
  for (int i = 0; i < n_runs; i++) {
    uint64_t sum;
    qn_status status = compute(lines[list[i].line], list[i].pin, "threads=2", &sum);
    if (status || (again && sum != list[i].sum)) {
      fprintf(stderr, "# %s, %s: %s\n", lines[list[i].line], list[i].pin, status ? qn_last_error() : "other bits");
      wrong++;
    }
    if (!again) list[i].sum = sum;
  }
  return wrong;
}

/* ---- the children ------------------------------------------------------------------------------------------ */

static int warnings;
static void count_warning(void *user, int level, const char *message)
{
  (void)user, (void)level;
  warnings += strstr(message, "forked") != NULL;
}

/* For a product planned for some number of threads. */
static size_t workspace(const char *threads)
{
  const char *const options[] = { "backend=cpu_ref", "tune=off", "engine=matmul=blocked", threads, NULL };
  qn_context *ctx = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  size_t bytes = 0;
  if (!qn_context_create(options, &ctx) && !qn_graph_parse("matmul a=f32/512x512 b=f32/512x512", &graph) &&
      !qn_plan_create(ctx, graph, &plan))
    bytes = qn_plan_workspace(plan);
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  qn_context_destroy(ctx);
  return bytes;
}

/* Exit statuses of the children. */
enum { GOOD, RAN, SILENT, PLANNED, EXECUTED, NO_CONTEXT, WRONG, NOT_ONE_WARNING, OTHER_THREADS };

enum { N = 64 };
static float a[N * N], y[N * N];

static qn_status product(qn_context *ctx)
{
  qn_tensor ta = qn_tensor_2d(a, QN_F32, N, N), ty = qn_tensor_2d(y, QN_F32, N, N);
  qn_status status = qn_matmul(ctx, &ta, &ta, NULL, NULL, NULL, NULL, &ty);
  return status ? status : qn_context_synchronize(ctx);
}

static int child_of_threads(qn_context *ctx, qn_graph *graph, qn_plan *plan)
{
  void *const pointers[] = { a, a, y };
  const char *const options[] = { "backend=cpu_ref", "threads=2", NULL };
  qn_plan *other = NULL;
  qn_context *own = NULL;
  alarm(120);                                     /* a hang is a failure */
  qn_set_log(count_warning, NULL);
  if (!product(ctx) || !qn_plan_execute(ctx, plan, pointers)) return RAN;
  if (!*qn_last_error()) return SILENT;
  if (!qn_plan_create(ctx, graph, &other)) return PLANNED;
  qn_context_destroy(ctx);                        /* must return */
  if (qn_context_create(options, &own)) return NO_CONTEXT;
  if (!qn_plan_execute(own, plan, pointers) || !qn_context_reserve(own, plan)) return EXECUTED;
  qn_context_destroy(own);
  if (run_all(true)) return WRONG;
#ifdef _OPENMP
  if (warnings != 1) return NOT_ONE_WARNING;
  if (workspace("threads=2") != workspace("threads=1")) return OTHER_THREADS;
#endif
  return GOOD;
}

/* Of a process that has no threads yet: the child may have them. */
static int child_of_one(void)
{
  alarm(60);
  qn_set_log(count_warning, NULL);
  if (workspace("threads=2") == workspace("threads=1")) return OTHER_THREADS;
  uint64_t sum;
  return compute(lines[0], NULL, "threads=2", &sum) ? WRONG : warnings ? NOT_ONE_WARNING : GOOD;
}

static void expect_good(pid_t pid, const char *what)
{
  int status = 0;
  tap_ok(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == GOOD, "%s", what) ||
    (tap_note(WIFEXITED(status) ? "exit status %d" : "signal %d", WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)), 0);
}

int main(void)
{
  static const char *const options[] = { "backend=cpu_ref", "threads=2", NULL };
  qn_context *ctx = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  for (int i = 0; i < N * N; i++) a[i] = (float)(i % 7 - 3);
  pid_t pid = fork();
  if (!pid) _exit(child_of_one());
  expect_good(pid, "forked before there are threads: the child computes on as many as it likes");

  collect();
  tap_ok(!unread && n_runs > LINES && n_runs < MOST && !run_all(false), "before the fork: %d problems, %d runs", LINES, n_runs);
  if (!tap_ok(!qn_context_create(options, &ctx) && !product(ctx) && !qn_graph_parse("matmul a=f32/64x64 b=f32/64x64", &graph) &&
              !qn_plan_create(ctx, graph, &plan), "a context and a plan"))
    tap_note("%s", qn_last_error());
  float before = y[5];
  fflush(stdout);
  pid = fork();
  if (!pid) _exit(child_of_threads(ctx, graph, plan));
  expect_good(pid, "in the child the parent's context and plan fail with a sentence, its own compute with every engine, told once");
  y[5] = 0;
  tap_ok(!product(ctx) && y[5] == before, "the parent goes on");
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  qn_context_destroy(ctx);
  return tap_done();
}
