/* t_example -- plugins/example as its reader would try it: found by name, run, refusing with its own sentences, and together
 * with another backend that takes what it does not. */
#include <dlfcn.h>
#include <quern/tools.h>
#include <math.h>
#include <string.h>
#include "tap.h"

static const char *const alone[] = { "backend=example", NULL };
static const char *const before_cpu[] = { "backend=example,cpu_ref", NULL };

typedef struct wanted { const char *engine; qn_verdict found; char rule[128], seen[64], needed[64]; } wanted;

static void look(void *user, const qn_verdict *v)
{
  wanted *w = user;
  if (strcmp(v->backend, "example") || strcmp(v->engine, w->engine)) return;
  w->found = *v;
  memcpy(w->rule, v->answer->refusal.rule, sizeof w->rule);
  memcpy(w->seen, v->answer->refusal.seen, sizeof w->seen);
  memcpy(w->needed, v->answer->refusal.needed, sizeof w->needed);
}

/* The engine's verdict on one problem line. */
static wanted ask(const char *line)
{
  qn_graph *graph;
  wanted w = { .engine = "packed", .found.status = QN_INTERNAL };
  if (!qn_graph_parse(line, &graph)) {
    qn_explain(before_cpu, NULL, graph, look, &w);
    qn_graph_destroy(graph);
  }
  return w;
}

static void test_refusals(void)
{
  wanted w = ask("relu x=f32/7x5");
  tap_ok(w.found.status == QN_OK && w.found.chosen, "packed f32: taken and chosen");
  w = ask("relu x=f16/7x5");
  tap_ok(w.found.status == QN_UNSUPPORTED && !strcmp(w.rule, "the kernel reads f32") && !strcmp(w.seen, "f16") && !strcmp(w.needed, "f32"),
         "f16: refused, seen and needed said");
  w = ask("relu x=f32/7x5/9:1");
  tap_ok(w.found.status == QN_UNSUPPORTED && !strcmp(w.rule, "the kernel walks one packed row"), "strided: refused");
}

static void test_run(void)
{
  const float x[] = { -1, 0, 2, NAN, -INFINITY };
  float y[5];
  int32_t i[] = { -3, 4 }, sign[2];
  qn_context *ctx;
  if (!tap_ok(!qn_context_create(alone, &ctx), "a context of the example alone, on the CPU that cpu_ref provides")) {
    tap_note("%s", qn_last_error());
    return;
  }
  const qn_tensor tx = qn_tensor_1d((void *)x, QN_F32, 5), ty = qn_tensor_1d(y, QN_F32, 5);
  const qn_tensor ti = qn_tensor_1d(i, QN_I32, 2), ts = qn_tensor_1d(sign, QN_I32, 2);
  tap_ok(!qn_relu(ctx, &tx, &ty) && !qn_context_synchronize(ctx) && y[0] == 0 && y[1] == 0 && y[2] == 2 && isnan(y[3]) && y[4] == 0,
         "relu");
  tap_ok(qn_sign(ctx, &ti, &ts) == QN_UNSUPPORTED && *qn_last_error(), "what it has no engine for is refused: %s", qn_last_error());
  qn_context_destroy(ctx);
  if (!tap_ok(!qn_context_create(before_cpu, &ctx), "a context of the example before cpu_ref")) return;
  tap_ok(!qn_sign(ctx, &ti, &ts) && !qn_context_synchronize(ctx) && sign[0] == -1 && sign[1] == 1, "which takes the rest");
  qn_context_destroy(ctx);
}

/* The plugins of this tree refuse a libquern of minor 3, which has other numbers of roles and opens instances in another form. Of backends
 * that this configuration did not build there is nothing to ask. */
static void ask_entry(void *user, const qn_backend_info *b)
{
  static const char *const ours[] = { "example", "onednn", "mpi", "nccl", "cudnn", "cuda" };
  const qn_host older = { .struct_size = sizeof older, .abi_major = QN_ABI_MAJOR, .abi_minor = 3 };
  const qn_backend *table = NULL;
  size_t i = 0;
  while (i < sizeof ours / sizeof *ours && strcmp(b->name, ours[i])) i++;
  if (i == sizeof ours / sizeof *ours || !b->table) return;
  void *so = dlopen(b->path, RTLD_NOW | RTLD_LOCAL);
  qn_entry_fn *entry = so ? (qn_entry_fn *)dlsym(so, "quern_plugin_entry_v1") : NULL;
  tap_ok(entry && entry(&older, &table) == QN_NO_BACKEND && !table, "%s: a libquern of minor 3 is refused", b->name);
  *(int *)user += entry != NULL;
}

static void test_older(void)
{
  int asked = 0;
  const qn_status status = qn_each_backend(ask_entry, &asked);
  tap_ok(!status && asked > 0, "the entries of %d plugins were asked", asked);
}

int main(void)
{
  test_refusals();
  test_older();
  test_run();
  return tap_done();
}
