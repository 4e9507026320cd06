/* t_launches.c -- checks the CUDA backend's launches for devices that are not present.
 *
 * The backend's own objects are linked with a stand-in for the CUDA runtime (fake_cuda.c) that has several kinds of devices and
 * checks every launch, tensor map and copy against that device's limits instead of performing it. Each case of quern-conform (its
 * default tier) is planned on each device for each engine and variant that takes it, at each level of math at which the answer
 * differs; built; and run with workspace and counters of exactly the sizes that the plan states. Left out: matmul/cublaslt, whose
 * launches are not the backend's. A device for which no kernel is compiled is not checked. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "conform.h"
#include "fake_cuda.h"
#include "tap.h"

struct qc_options qc_opt = { .backend = "cuda", .seed = 1, .tier = QC_DEFAULT, .random = 150 };

enum { SHOWN = 3 };                       /* failures shown per engine and device; the others are counted */
enum { ENGINES = 1024, LEVELS = 4 };

typedef struct tally { long plans, launches, failures; } tally;
static const fake_cuda *fake;
static tally tallies[ENGINES + 1];        /* per engine on the device; the last for the planner's choice */

static void quiet(void *user, int level, const char *message) { (void)user; (void)level; (void)message; }

/* ---- one plan ----------------------------------------------------------------------------------------- */

typedef struct memory { void *pointer[QC_MAX_POINTERS], *block[QC_MAX_POINTERS]; uint32_t n; } memory;

/* Memory that ends with the value's last element, aligned as promised and not more. */
static void *place(const qn_value *v, void **block)
{
  const size_t each = qn_dtype_bytes(v->dtype), align = v->align ? v->align : each;
  size_t bytes = each;
  for (int k = 0; k < v->rank; k++) bytes += (size_t)((v->dim[k] - 1) * v->stride[k]) * each;
  if (!qc_elements(v)) bytes = 1;
  if (qn_alloc(qc_w.ctx, align + bytes, block)) return NULL;
  return (char *)*block + align;
}

static bool make_memory(memory *m, const qn_graph_view *view)
{
  *m = (memory){ .n = view->n_pointers };
  if (m->n > QC_MAX_POINTERS) return false;
  for (uint32_t i = 0; i < m->n; i++) {
    const qn_value *v = &view->value[view->pointer[i]];
    for (uint32_t j = 0; j < i && v->over >= 0; j++)
      if (view->pointer[j] == v->over) m->pointer[i] = m->pointer[j];
    if (!m->pointer[i]) m->pointer[i] = place(v, &m->block[i]);
    if (!m->pointer[i]) return false;
  }
  return true;
}

static void free_memory(memory *m)
{
  for (uint32_t i = 0; i < m->n && i < QC_MAX_POINTERS; i++) qn_free(qc_w.ctx, m->block[i]);
}

/* NULL, or the violation. */
static const char *run(const qn_plan *plan, const qn_graph_view *view, memory *m)
{
  void *workspace = NULL, *counters = NULL;
  qn_status status = qn_alloc(qc_w.ctx, qc_workspace_used(plan, view), &workspace);
  if (!status) status = qn_alloc(qc_w.ctx, qn_plan_counters(plan), &counters);
  if (!status) status = qn_plan_execute_with(qc_w.ctx, plan, m->pointer, workspace, counters);
  qn_free(qc_w.ctx, workspace);
  qn_free(qc_w.ctx, counters);
  const char *said = fake->broken();
  return said ? said : status ? qn_last_error() : NULL;
}

/* ---- one case ----------------------------------------------------------------------------------------- */

static void fail(tally *t, const char *engine, const struct qc_item *item, const char *why)
{
  if (t->failures++ >= SHOWN) return;
  tap_ok(0, "%s on %s: %s", engine, qn_context_describe(qc_w.ctx)->model, why);
  tap_note("%s: %s", item->file, item->title);
}

/* Equal plans are run once. */
static bool is_new(const qn_plan *plan, char (*seen)[2048], int level)
{
  qn_plan_print(plan, seen[level], sizeof seen[level]);
  for (int i = 0; i < level; i++)
    if (!strcmp(seen[i], seen[level])) return false;
  return true;
}

static void try_engine(const struct qc_engine *e, tally *t, const struct qc_item *item, const qn_graph *graph, memory *m)
{
  static const char *const levels[LEVELS] = { "fast", "strict", "f32", "tf32" };
  char seen[LEVELS][2048] = { "" };
  const char *name = e ? e->name : "the planner's choice";
  for (int level = 0; level < LEVELS; level++) {
    qn_plan *plan;
    qn_status status;
    const long before = fake->launches();
    const bool taken = qc_plan_pinned(e, levels[level], graph, &plan, &status);
    const char *said = fake->broken();
    if (said || (!taken && status != QN_UNSUPPORTED)) fail(t, name, item, said ? said : qn_last_error());
    if (!taken && level == 0) return;                     /* what is refused under fast is refused at every level */
    if (!taken) continue;
    if (!said && is_new(plan, seen, level)) {
      t->plans++;
      said = run(plan, qn_graph_inspect(graph), m);
      t->launches += fake->launches() - before;
      if (said) fail(t, name, item, said);
    }
    qn_plan_destroy(plan);
  }
}

static bool fits(const struct qc_engine *e, const qn_graph_view *view)
{
  for (uint32_t k = 0; k < view->n_ops; k++)
    if (qc_engine_fits(e, view->op[k].op)) return strcmp(e->row->name, "cublaslt") != 0;
  return false;
}

static void try_case(const struct qc_item *item)
{
  qn_graph *graph;
  memory m;
  if (item->kind != QC_CASE || qn_graph_parse(item->line, &graph)) return;
  const qn_graph_view *view = qn_graph_inspect(graph);
  if (make_memory(&m, view)) {
    for (int i = 0; i < qc_w.n_engines; i++)
      if (fits(&qc_w.engine[i], view)) try_engine(&qc_w.engine[i], &tallies[i], item, graph, &m);
    if (view->n_ops > 1) try_engine(NULL, &tallies[ENGINES], item, graph, &m);
  } else tap_ok(0, "memory for %s", item->title);
  free_memory(&m);
  qn_graph_destroy(graph);
}

/* ---- one device ----------------------------------------------------------------------------------------- */

static void find_backend(void *user, const qn_backend_info *info)
{
  (void)user;
  if (info->table && !strcmp(info->name, qc_opt.backend)) qc_w.table = info->table;
}

static void say(const char *model, const char *engine, const tally *t)
{
  if (t->plans && !t->failures) tap_ok(1, "%s on %s: %ld plans, %ld launches within its limits", engine, model, t->plans, t->launches);
  else if (t->failures > SHOWN) tap_note("%s on %s: %ld failures in all", engine, model, t->failures);
}

static void try_device(int ordinal, struct qc_list *list)
{
  char device[32];
  const char *const options[] = { "backend=cuda", device, "tune=off", NULL };
  snprintf(device, sizeof device, "device=%d", ordinal);
  if (!tap_ok(!qn_context_create(options, &qc_w.ctx), "a context on device %d", ordinal)) {
    tap_note("%s", qn_last_error());
    return;
  }
  const char *model = qn_context_describe(qc_w.ctx)->model;
  const int code = fake->code(ordinal);
  if (code <= 0) tap_skip(code ? fake->unread() : "no kernel of this build is compiled for it", "launches on %s", model);
  const char *wrong = code > 0 ? fake->judge_itself(ordinal) : NULL;
  if (code > 0 && !tap_ok(!wrong, "the limits of %s are held to", model)) tap_note("%s", wrong);
  if (!list->n) {                         /* once; the backend is loaded by now */
    qn_each_backend(find_backend, NULL);
    qc_w.backend = qc_opt.backend;
    qc_engines_list();
    qc_cases_load(list);
  }
  memset(tallies, 0, sizeof tallies);
  for (int i = 0; i < list->n && code > 0; i++) try_case(&list->item[i]);
  for (int i = 0; i < qc_w.n_engines; i++) say(model, qc_w.engine[i].name, &tallies[i]);
  say(model, "the planner's choice", &tallies[ENGINES]);
  qn_context_destroy(qc_w.ctx);
}

int main(void)
{
  char folder[PATH_MAX] = "", *plugin = NULL;
  const char *source = getenv("srcdir"), *build = getenv("top_builddir"), *tier = getenv("TEST_TIER");
  struct qc_list list = { 0 };
  if (!realpath(build ? build : ".", folder)) return 1;
  strncat(folder, "/tests/launches/.libs", sizeof folder - strlen(folder) - 1);
  plugin = qc_format("%s/quern_cuda.so", folder);
  if (access(plugin, F_OK)) {
    free(plugin);
    tap_skip("the CUDA backend is not built", "launches on devices that are not here");
    return tap_done();
  }
  setenv("QUERN_PLUGIN_PATH", folder, 1);
  setenv("QUERN_CUBLASLT", "/none", 1);   /* otherwise engines that delegate might use it, and it opens a real device */
  qn_set_log(quiet, NULL);
  void *object = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  free(plugin);
  fake = object ? dlsym(object, FAKE_CUDA_TABLE) : NULL;
  if (!tap_ok(fake != NULL, "the CUDA backend loads with a stand-in for the runtime")) {
    tap_note("%s", dlerror());
    return tap_done();
  }
  qc_opt.cases = qc_format("%s/conformance/cases", source ? source : ".");
  if (tier && !strcmp(tier, "quick")) qc_opt.tier = QC_QUICK;
  if (tier && !strcmp(tier, "full")) qc_opt.tier = QC_FULL;
  for (int i = 0; i < fake->devices; i++) try_device(i, &list);
  return tap_done();
}
