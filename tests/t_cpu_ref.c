/* t_cpu_ref -- the CPU backend within a host program: results independent of the thread count, calls from inside a parallel
 * region, OpenMP settings unchanged, memory and its alignment, device models. */
#include <quern/kit.h>
#include <quern/tools.h>
#include <fenv.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tap.h"
#ifdef _OPENMP
#include <omp.h>
#endif

/* AddressSanitizer's allocator must return NULL, as malloc does, when memory is out. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

enum { C = 24, H = 20, K = 16, OUT = K * H * H, ALL = 2 * OUT + H * H };

/* A convolution, softmax over its channels and a sum, with these options; any difference shows in y's bits. */
static qn_status compute(const char *const options[], float *y)
{
  static float x[C * H * H], w[K * C * 9];
  qn_context *ctx = NULL;
  qn_conv conv = QN_CONV_INIT;
  qn_axis axis = QN_AXIS_INIT;
  qn_axes axes = QN_AXES_INIT;
  for (int i = 0; i < C * H * H; i++) x[i] = (float)sin(i);
  for (int i = 0; i < K * C * 9; i++) w[i] = (float)cos(i);
  conv.pad_before[0] = conv.pad_before[1] = conv.pad_after[0] = conv.pad_after[1] = 1;
  axis.axis = 1;
  axes.mask = 2;
  const qn_tensor tx = qn_tensor_nchw(x, QN_F32, 1, C, H, H), tw = qn_tensor_nchw(w, QN_F32, K, C, 3, 3);
  const qn_tensor ty = qn_tensor_nchw(y, QN_F32, 1, K, H, H), tp = qn_tensor_nchw(y + OUT, QN_F32, 1, K, H, H);
  const qn_tensor ts = qn_tensor_nchw(y + 2 * OUT, QN_F32, 1, 1, H, H);
  qn_status status = qn_context_create(options, &ctx);
  if (!status) status = qn_conv_forward(ctx, &conv, &tx, &tw, NULL, &ty);
  if (!status) status = qn_reduce_sum(ctx, &axes, &ty, &ts);
  if (!status) status = qn_softmax(ctx, &axis, &ty, &tp);
  if (!status) status = qn_context_synchronize(ctx);
  qn_context_destroy(ctx);
  return status;
}

static void test_threads(const char *name, const char *engine)
{
  static float y[4][ALL];
  static const char *const threads[] = { "threads=1", "threads=2", "threads=3", "threads=7" };
  int good = 1;
  for (int i = 0; i < 4 && good; i++) {
    const char *const options[] = { "backend=cpu_ref", threads[i], engine, NULL };
    if (compute(options, y[i])) {
      tap_note("%s", qn_last_error());
      good = 0;
    }
  }
  for (int i = 1; i < 4; i++) good &= !memcmp(y[0], y[i], sizeof y[0]);
  tap_ok(good, "%s: the same bits with 1, 2, 3 and 7 threads", name);
}

static void test_inside_parallel(void)
{
#ifdef _OPENMP
  static float expected[ALL], y[4][ALL];
  static const char *const options[] = { "backend=cpu_ref", "threads=2", NULL };
  const int most = omp_get_max_threads(), levels = omp_get_max_active_levels(), dynamic = omp_get_dynamic();
  omp_sched_t kind, kind_after;
  int chunk, chunk_after, failures = compute(options, expected) != QN_OK;
  omp_get_schedule(&kind, &chunk);
#pragma omp parallel num_threads(4) reduction(+ : failures)
  {
    float *mine = y[omp_get_thread_num()];
    failures += compute(options, mine) != QN_OK || memcmp(mine, expected, sizeof expected);
  }
  tap_ok(!failures, "four contexts inside a parallel region");
  omp_get_schedule(&kind_after, &chunk_after);
  tap_ok(most == omp_get_max_threads() && levels == omp_get_max_active_levels() && dynamic == omp_get_dynamic()
         && kind == kind_after && chunk == chunk_after && fegetround() == FE_TONEAREST,
             "OpenMP's settings and the rounding mode are as they were");
#else
  tap_skip("built without OpenMP", "four contexts inside a parallel region");
#endif
}

static char warned[256];
static void keep_warning(void *user, int level, const char *message)
{
  (void)user;
  if (level == QN_LOG_WARN) snprintf(warned, sizeof warned, "%s", message);
}

/* In a child, since the warning comes once per process. */
static void test_mode(const char *mode, const char *word)
{
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    static const char *const options[] = { "backend=cpu_ref", NULL };
    qn_context *ctx;
    qn_set_log(keep_warning, NULL);
    if (*mode == 'u') fesetround(FE_UPWARD);
#ifdef __SSE__
    if (*mode == 'f') __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
    _exit(qn_context_create(options, &ctx) || !strstr(warned, word) || (!*word && *warned));
  }
  int status = -1;
  waitpid(child, &status, 0);
  tap_ok(status == 0, "a thread that %s is %s",
         *mode == 'u' ? "rounds upwards" : *mode == 'f' ? "flushes subnormals" : "computes as C begins", *word ? "warned" : "not warned");
}

static void test_memory(void)
{
  static const char *const options[] = { "backend=cpu_ref", NULL };
  qn_context *ctx;
  void *p = NULL, *none = &ctx;
  char text[5] = "quern", back[5] = { 0 };
  if (!tap_ok(!qn_context_create(options, &ctx), "a context")) return tap_note("%s", qn_last_error());
  tap_ok(!qn_alloc(ctx, 5, &p) && (uintptr_t)p % 256 == 0, "memory is aligned to 256 bytes");
  tap_ok(!qn_copy_to_device(ctx, p, text, 5) && !qn_copy_to_host(ctx, back, p, 5) && !memcmp(text, back, 5), "copied there and back");
  qn_free(ctx, p);
  tap_ok(!qn_alloc(ctx, 0, &none) && !none, "no bytes, no address");
  tap_ok(qn_alloc(ctx, (size_t)1 << 62, &p) == QN_NO_MEMORY && *qn_last_error(), "more than there is: a status and a sentence");
  const qn_device *device = qn_context_describe(ctx);
  tap_ok(!strcmp(device->kind, "cpu") && device->ordinal == 0 && device->threads >= 1 && device->units >= 1 && device->memory > 0
         && device->name[0] && device->model[0], "the device: %s, %s", device->name, device->model);
  qn_timer *timer;
  double ns = -1;
  tap_ok(!qn_timer_create(ctx, &timer) && !qn_timer_start(timer) && !qn_timer_stop(timer, &ns) && ns >= 0 && ns < 1e9, "a timer");
  qn_timer_destroy(timer);
  qn_context_destroy(ctx);
}

static void count_verdict(void *user, const qn_verdict *v)
{
  (void)v;
  ++*(int *)user;
}

static void test_models(void)
{
  static const char *const options[] = { "backend=cpu_ref", NULL }, *const models[] = { "generic", "avx2", "avx512" };
  qn_graph *graph = NULL;
  int parsed = !qn_graph_parse("relu x=f32/1000", &graph);
  for (int i = 0; i < 3; i++) {
    int verdicts = 0;
    tap_ok(parsed && !qn_explain(options, models[i], graph, count_verdict, &verdicts) && verdicts > 0, "explained for the model %s",
           models[i]);
  }
  int verdicts = 0;
  tap_ok(parsed && qn_explain(options, "z80", graph, count_verdict, &verdicts) < 0 && *qn_last_error(), "a model nobody knows is refused");
  qn_graph_destroy(graph);
}

static void test_narrowed(void)
{
  static const char *const narrow[] = { "backend=cpu_ref", "device_model=generic", NULL },
      *const unknown[] = { "backend=cpu_ref", "device_model=z80", NULL };
  qn_context *ctx = NULL, *none = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  char text[512] = "";
  tap_ok(!qn_context_create(narrow, &ctx) && qn_context_describe(ctx)->features == 0 &&
         !strncmp(qn_context_describe(ctx)->model, "generic@", 8),
         "a live cpu narrowed to the model generic has no more than that, and a name of its own");
  if (!qn_graph_parse("matmul a=f32/64x64 b=f32/64x64", &graph) && !qn_plan_create(ctx, graph, &plan))
    qn_plan_print(plan, text, sizeof text);
  tap_ok(*text && !strstr(text, "avx"), "its plans are of engines for that: %s", text);
  tap_ok(qn_context_set(ctx, "device_model", "avx2") < 0, "a context keeps its model");
  tap_ok(qn_context_create(unknown, &none) < 0 && strstr(qn_last_error(), "generic"),
         "an unknown model is refused with those that are known: %s", qn_last_error());
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  qn_context_destroy(ctx);
}

int main(void)
{
  test_mode("", "");
  test_mode("up", "nearest");
#ifdef __SSE__
  test_mode("flush", "subnormal");
#endif
  test_threads("preferred engines", NULL);
  test_threads("the oracle", "engine=conv_forward=direct,softmax=direct,reduce_sum=direct");
  test_inside_parallel();
  test_memory();
  test_models();
  test_narrowed();
  return tap_done();
}
