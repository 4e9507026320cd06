/* t_threads.c -- 64 threads, each with its own context, that share a plan, a graph and the plan cache.
 *
 * Every thread runs the shared plan, the same problems as its neighbours (which the cache must plan once), and problems
 * of its own; in between it makes and destroys contexts and causes errors. Operands are small integers, so every result
 * is exact. Meant for ThreadSanitizer (.ci/run threads), but useful without. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <quern/quern.h>
#include "tap.h"

enum { THREADS = 64, ROUNDS = 6, M = 7, K = 5, N = 9 };

static const char *const options[] = { "backend=cpu_ref", "threads=1", NULL };
static qn_graph *graph;
static qn_plan *plan;
static pthread_barrier_t together;
static atomic_int wrong_status, wrong_result, wrong_error;

static void fill(float *p, int n, unsigned seed)
{
  for (int i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    p[i] = (float)((int)(seed >> 28) - 8);
  }
}

static void expect(qn_status status)
{
  if (status && !atomic_fetch_add(&wrong_status, 1)) tap_note("status %d: %s", status, qn_last_error());
}

/* relu(a b), as the graph has it. */
static void product(const float *a, const float *b, float *y, int m, int k, int n, int relu)
{
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      float s = 0;
      for (int l = 0; l < k; l++) s += a[i * k + l] * b[l * n + j];
      y[i * n + j] = relu && s < 0 ? 0 : s;
    }
}

static void run_plan(qn_context *ctx, unsigned seed)
{
  float a[M * K], b[K * N], y[M * N], should[M * N];
  void *const pointers[] = { a, b, y };
  fill(a, M * K, seed);
  fill(b, K * N, seed + 1);
  product(a, b, should, M, K, N, 1);
  expect(qn_plan_execute(ctx, plan, pointers));
  expect(qn_context_synchronize(ctx));
  if (memcmp(y, should, sizeof y)) atomic_fetch_add(&wrong_result, 1);
}

static void run_call(qn_context *ctx, int m, int k, int n, unsigned seed)
{
  float a[16 * 16], b[16 * 16], y[16 * 16], should[16 * 16];
  qn_tensor ta = qn_tensor_2d(a, QN_F32, m, k), tb = qn_tensor_2d(b, QN_F32, k, n), ty = qn_tensor_2d(y, QN_F32, m, n);
  fill(a, m * k, seed);
  fill(b, k * n, seed + 1);
  product(a, b, should, m, k, n, 0);
  expect(qn_matmul(ctx, &ta, &tb, NULL, NULL, NULL, NULL, &ty));
  expect(qn_context_synchronize(ctx));
  if (memcmp(y, should, (size_t)(m * n) * sizeof *y)) atomic_fetch_add(&wrong_result, 1);
}

/* An error in one thread sets that thread's sentence only. */
static void run_mistake(qn_context *ctx, int id)
{
  float x[4] = { 0 };
  char sentence[512];
  qn_tensor tx = qn_tensor_1d(x, QN_F32, 4), ty = qn_tensor_1d(x, QN_F32, 4 + id);
  if (qn_relu(ctx, &tx, &ty) != QN_BAD_ARGUMENT) atomic_fetch_add(&wrong_error, 1);
  snprintf(sentence, sizeof sentence, "%s", qn_last_error());
  pthread_barrier_wait(&together);
  if (!*sentence || strcmp(sentence, qn_last_error())) atomic_fetch_add(&wrong_error, 1);
}

static void *work(void *arg)
{
  int id = (int)(size_t)arg;
  qn_context *ctx = NULL;
  pthread_barrier_wait(&together);
  expect(qn_context_create(options, &ctx));
  if (!ctx) {                                     /* the others wait once more */
    pthread_barrier_wait(&together);
    return NULL;
  }
  expect(qn_context_reserve(ctx, plan));
  for (int round = 0; round < ROUNDS; round++) {
    unsigned seed = (unsigned)(id * 1000 + round);
    run_plan(ctx, seed);
    run_call(ctx, 3 + round, 4, 5, seed);                           /* the same in all threads, at the same time */
    run_call(ctx, 1 + id % 16, 1 + round, 1 + id / 16, seed);       /* its own */
    if (round == ROUNDS / 2) {
      qn_context *second = NULL;
      expect(qn_context_create(options, &second));
      if (second) run_call(second, 2, 2, 2, seed);
      qn_context_destroy(second);
      run_mistake(ctx, 1 + id);
    }
  }
  qn_context_destroy(ctx);
  return NULL;
}

int main(void)
{
  static const char lines[] = "in a f32/7x5\nin b f32/5x9\nc = matmul a=a b=b\nout y = relu x=c\n";
  pthread_t thread[THREADS];
  qn_context *ctx = NULL;
  if (!tap_ok(!qn_context_create(options, &ctx) && !qn_graph_parse(lines, &graph) && !qn_plan_create(ctx, graph, &plan),
              "a plan to share")) {
    tap_note("%s", qn_last_error());
    return tap_done();
  }
  pthread_barrier_init(&together, NULL, THREADS);
  int started = 0;
  while (started < THREADS && !pthread_create(&thread[started], NULL, work, (void *)(size_t)started)) started++;
  if (started < THREADS) {
    printf("Bail out! only %d threads could be started\n", started);
    return 1;
  }
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  tap_ok(!wrong_status, "%d threads: every call succeeds", THREADS);
  tap_ok(!wrong_result, "every result is right") || (tap_note("%d are not", wrong_result), 0);
  tap_ok(!wrong_error, "a thread's mistake is its own") || (tap_note("%d are not", wrong_error), 0);

  /* The context may be destroyed before the plan, and the graph before both. */
  qn_graph_destroy(graph);
  qn_context_destroy(ctx);
  ctx = NULL;
  tap_ok(!qn_context_create(options, &ctx) && !qn_context_reserve(ctx, plan), "the plan outlives the context that made it");
  if (ctx) run_plan(ctx, 42);
  tap_ok(!wrong_result && !wrong_status, "and still computes what it should");
  qn_plan_destroy(plan);
  qn_context_destroy(ctx);
  pthread_barrier_destroy(&together);
  return tap_done();
}
