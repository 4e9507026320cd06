/* t_cpu_ref -- the CPU backend within a host program: results independent of the thread count, calls from inside a parallel
 * region, OpenMP settings unchanged, memory and its alignment, device models; constants, long sums and large values, on every engine. */
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

/* Float inputs all of `value` (scalars 1), indices 0: each element of the first output is `expected`, relative to max(it, 1). */
typedef struct uniform { const char *line; double value, expected, within; } uniform;
static const uniform uniforms[] = {
  { "batch_norm x=f32/8x4x32x32/nhwc", 100.3, 0, 0 }, { "batch_norm x=f32/8x4x32x32/nhwc", 1.7, 0, 0 },
  { "batch_norm x=f32/8x4x32x32", 100.3, 0, 0 }, { "batch_norm x=f64/900x3", 3000.7, 0, 0 }, { "batch_norm x=f32/500x5", 3e38, 0, 0 },
  { "layer_norm x=f32/2x10000", 3000.7, 0, 0 }, { "layer_norm x=f32/3x100", 123457, 0, 0 }, { "layer_norm x=f64/2x10000", 3000.7, 0, 0 },
  { "layer_norm x=bf16/3x100", 3e38, 0, 0 }, { "layer_norm x=f16/3x100", 65504, 0, 0 },
  { "layer_norm x=f32/2x32x2x300/19200:2:1:64 axis=2,3", 100.3, 0, 0 }, { "layer_norm x=f32/2x4x8x300 axis=2,3", 100.3, 0, 0 },
  { "rms_norm x=f32/2x1000", 3e38, 1, 1e-6 }, { "rms_norm x=f32/1000x3 axis=0 eps=0", 1e-30, 1, 1e-6 },
  { "pool_average x=f32/1x2x512x512/nhwc", 0.1, 0.1, 1e-6 }, { "pool_average x=f32/1x2x512x512", 0.1, 0.1, 1e-6 },
  { "pool_average x=f32/1x1x20000x3 window=9000,2 stride=9000,1", 0.1, 0.1, 1e-6 },
  { "pool_average x=f32/1x1x20000 window=9000 stride=500 dilation=2", 0.1, 0.1, 1e-6 },
  { "pool_adaptive_average x=f32/1x2x512x512/nhwc y=f32/1x2x1x1", 0.1, 0.1, 1e-6 },
  { "pool_adaptive_average x=f32/1x2x512x512 y=f32/1x2x1x1", 0.1, 0.1, 1e-6 },
  { "pool_lp x=f32/1x2x256x512/nhwc p=1", 0.1, 13107.2, 1e-6 },
  { "pool_lp x=f32/1x2x16500x3 window=16384,1 stride=1 p=1", 0.1, 1638.4, 1e-6 },
  { "pool_average x=f32/1x3x16x16 window=2", 3e38, 3e38, 1e-6 },
  { "pool_average x=f32/1x3x16x16/nhwc window=3 pad=1 include_pad=0", 3e38, 3e38, 1e-6 },
  { "pool_average x=bf16/1x3x16x16", 3e38, 3e38, 4e-3 }, { "pool_average x=f64/1x3x16x16/nhwc", 1e306, 1e306, 1e-12 },
  { "pool_adaptive_average x=f32/1x3x16x16 y=f32/1x3x5x5", 3e38, 3e38, 1e-6 },
  { "pool_adaptive_average x=f32/1x3x16x16/nhwc y=f32/1x3x5x5/nhwc", 3e38, 3e38, 1e-6 },
  { "reduce_mean x=f32/2x300000 axis=1", 0.1, 0.1, 1e-6 }, { "reduce_mean x=f32/300000x2 axis=0", 0.1, 0.1, 1e-6 },
  { "reduce_mean x=f32/3x1000 axis=1", 3e38, 3e38, 1e-6 }, { "reduce_mean x=f32/1000x3 axis=0", 3e38, 3e38, 1e-6 },
  { "scatter_add dy=f32/16781312 indices=i32/16781312 dx=f32/1", 1, 16781312, 0 },
  { "scatter_add dy=bf16/70000x3 indices=i32/70000 dx=bf16/1x3", 1, 70144, 0 },
  { "matmul a=f32/1x300000 b=f32/300000x1", 0.1, 3000, 1e-5 },
};

enum { MOST_ENGINES = 32 };
typedef struct names { int n; char name[MOST_ENGINES][64]; } names;
static void keep_engine(void *user, const qn_verdict *v)
{
  names *all = user;
  if (v->part == 0 && v->status == QN_OK && !strcmp(v->backend, "cpu_ref") && all->n < MOST_ENGINES)
    snprintf(all->name[all->n++], sizeof *all->name, "%s", v->engine);
}

/* NaN if it did not run; else the worst element's distance over what is allowed, at most 1 if all is well. */
static double farthest(const uniform *u, const char *engine)
{
  char pin[128];
  const char *const options[] = { "backend=cpu_ref", "threads=2", pin, NULL };
  snprintf(pin, sizeof pin, "engine=%.*s=%s", (int)strcspn(u->line, " "), u->line, engine);
  qn_context *ctx = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  double worst = NAN;
  void *at[8] = { NULL };
  if (qn_context_create(options, &ctx) || qn_graph_parse(u->line, &graph) || qn_plan_create(ctx, graph, &plan)) {
    tap_note("%s", qn_last_error());
    goto done;
  }
  const qn_graph_view *view = qn_graph_inspect(graph);
  for (uint32_t k = 0; k < view->n_pointers; k++) {
    const qn_value *v = &view->value[view->pointer[k]];
    const int64_t bytes = qn_kit_bytes(v->dtype);
    int64_t n = 1;                        /* with gaps */
    for (int32_t d = 0; d < v->rank; d++) n += (v->dim[d] - 1) * v->stride[d];
    if (!(at[k] = calloc((size_t)n, (size_t)bytes))) goto done;
    for (int64_t i = 0; qn_is_float(v->dtype) && i < n; i++) qn_store_f64((char *)at[k] + i * bytes, v->dtype, u->value);
  }
  if (qn_plan_execute(ctx, plan, at)) goto done;
  const qn_value *y = &view->value[view->pointer[view->n_ins]];
  worst = 0;
  for (int64_t i = 0; i < qn_elements(y); i++) {           /* y is packed */
    const double got = qn_load_f64((char *)at[view->n_ins] + i * qn_kit_bytes(y->dtype), y->dtype);
    const double off = fabs(got - u->expected), most = u->within * fmax(fabs(u->expected), 1);
    if (!(off <= most)) worst = fmax(worst, isfinite(off) ? off / fmax(most, 1e-9) + 1 : INFINITY);
  }
done:
  for (int k = 0; k < 8; k++) free(at[k]);
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  qn_context_destroy(ctx);
  return worst;
}

static void test_uniform(const uniform *u)
{
  static const char *const options[] = { "backend=cpu_ref", NULL };
  names all = { 0 };
  qn_graph *graph = NULL;
  if (!qn_graph_parse(u->line, &graph)) qn_explain(options, NULL, graph, keep_engine, &all);
  qn_graph_destroy(graph);
  int good = all.n > 1;
  for (int i = 0; i < all.n; i++) {
    const double worst = farthest(u, all.name[i]);
    if (!(worst <= 1)) tap_note("%s: %g times what is allowed", all.name[i], worst);
    good &= worst <= 1;
  }
  tap_ok(good, "%s of %g gives %g, on %d engines", u->line, u->value, u->expected, all.n);
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
  for (size_t i = 0; i < sizeof uniforms / sizeof *uniforms; i++) test_uniform(&uniforms[i]);
  return tap_done();
}
