/* t_stack.c -- the calls around the engines on a stack of 48 KiB that ends at a protected page: contexts and the backends' loading,
 * problem lines, planning, measuring, typed calls, errors, recordings, inspection. (The engines: quern-conform --stack.) */
#include "config.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <quern/tools.h>
#include "tap.h"

enum { STACK = 48 << 10, N = 96 };
static float a[N * N], b[N * N], y[N * N];
static char text[65536];

static void verdict(void *user, const qn_verdict *v) { *(int *)user += v->chosen; }
static void setting(void *user, const qn_setting_info *info) { (void)info; ++*(int *)user; }

static const char lines[] = "in a f32/96x96 | in b f32/96x96 | c = matmul a=a b=b | d = softmax x=c | out y = relu x=d";
static const char *const plain[] = { "tune=off", "log=debug", "threads=1", NULL };
static const char *measured[] = { "backend=cpu_ref", "tune=measure", NULL, "threads=1", NULL };

static int wrong, done;
static void expect(const char *what, int good)
{
  done++;
  if (good) return;
  wrong++;
  tap_note("%s: %s", what, qn_last_error());
}

static void calls(const char *const options[])
{
  qn_context *ctx = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  qn_recording *recording = NULL;
  void *const pointers[] = { a, b, y };
  qn_tensor ta = qn_tensor_2d(a, QN_F32, N, N), tb = qn_tensor_2d(b, QN_F32, N, N), ty = qn_tensor_2d(y, QN_F32, N, N);
  static qn_tensor parts[64];                       /* not on the stack that is tried */
  qn_tensor all = qn_tensor_2d(y, QN_F32, N, 64);
  qn_axis axis = QN_AXIS_INIT;
  axis.axis = 1;
  int n = 0;
  for (int i = 0; i < 64; i++) parts[i] = qn_tensor_2d(a + N * i, QN_F32, N, 1);
  expect("a context", !qn_context_create(options, &ctx));
  if (!ctx) return;
  expect("lines", !qn_graph_parse(lines, &graph) && qn_graph_print(graph, text, sizeof text) > 0);
  expect("a plan", !qn_plan_create(ctx, graph, &plan) && qn_plan_print(plan, text, sizeof text) > 0);
  expect("its execution", !qn_plan_execute(ctx, plan, pointers));
  for (int i = 0; i < 2; i++) {
    expect("matmul", !qn_matmul(ctx, &ta, &tb, NULL, NULL, NULL, NULL, &ty));
    expect("softmax", !qn_softmax(ctx, NULL, &ta, &ty));
    expect("gelu", !qn_gelu(ctx, &ta, &ty));
    expect("concat", !qn_concat(ctx, &axis, parts, 64, &all));
  }
  expect("a refusal", qn_matmul(ctx, &ta, &tb, NULL, NULL, NULL, NULL, &all) == QN_BAD_ARGUMENT);
  expect("another", qn_context_set(ctx, "engine", "matmul=none") == QN_BAD_ARGUMENT);
  expect("a recording", !qn_record_begin(ctx) && !qn_plan_execute(ctx, plan, pointers) && !qn_record_end(ctx, &recording) &&
         !qn_recording_replay(ctx, recording));
  expect("settings", !qn_each_setting(ctx, setting, &n) && n > 0);
  n = 0;
  expect("verdicts", !qn_explain(options, NULL, graph, verdict, &n) && n > 0);
  qn_recording_destroy(recording);
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  qn_context_destroy(ctx);
}

static void work(void)
{
  calls(plain);
  calls(measured);
}

static void quiet(void *user, int level, const char *message) { (void)user; (void)level; (void)message; }

#ifdef HAVE_MAKECONTEXT
#include <ucontext.h>
int main(void)
{
  static ucontext_t outside, inside;
  const char *build = getenv("top_builddir");
  char folder[] = "/tmp/quern-stack-XXXXXX", option[64];
  const size_t guard = (size_t)sysconf(_SC_PAGESIZE);
  char *stack = mmap(NULL, guard + STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED || mprotect(stack, guard, PROT_NONE) || !mkdtemp(folder)) {
    printf("Bail out! no memory, or no folder\n");
    return 1;
  }
  /* One plugin is loaded, or two if cpu_ref is one, and not those that load other libraries (cuDNN, CUDA's): what these take is theirs. */
  build = realpath(build ? build : ".", NULL);
  snprintf(text, sizeof text, "%s/plugins/example/.libs:%s/backends/cpu_ref/.libs", build, build);
  setenv("QUERN_PLUGIN_PATH", text, 1);
  snprintf(option, sizeof option, "tune_cache=%s/tune", folder);
  measured[2] = option;
  for (int i = 0; i < N * N; i++) a[i] = b[i] = (float)(i % 7 - 3) / 8;
  qn_set_log(quiet, NULL);
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack + guard;
  inside.uc_stack.ss_size = STACK;
  inside.uc_link = &outside;
  makecontext(&inside, work, 0);
  swapcontext(&outside, &inside);
  tap_ok(!wrong && done > 20, "%d calls within 48 KiB", done);
  unlink(strchr(option, '/'));
  snprintf(text, sizeof text, "%s/tune.lock", folder);
  unlink(text);
  rmdir(folder);
  return tap_done();
}
#else
int main(void)
{
  puts("1..0 # SKIP the C library has no makecontext");
  return 0;
}
#endif
