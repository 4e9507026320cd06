/* worker.c -- the process that runs the items of one backend and reports on its pipe (pipe.c). */
#include <stdlib.h>
#include <string.h>
#include "conform.h"

struct qc_worker qc_w;

static void find_backend(void *user, const qn_backend_info *info)
{
  const char *asked = user;
  if (info->table && (!strcmp(asked, info->name) || !strcmp(asked, info->path))) {
    qc_w.table = info->table;
    qc_w.backend = info->name;
  }
}

static int run_item(const struct qc_item *item)
{
  switch (item->kind) {
  case QC_REFUSED: return qc_check_refused(item);
  case QC_POINTER: return qc_check_pointer(item);
  case QC_PROBE:   return qc_check_probe(item);
  case QC_GRAD:    return qc_check_gradient(item);
  case QC_ADJOINT: return qc_check_adjoint(item);
  }
  return qc_run_case(item);
}

/* Leaves out cases that none of the selected engines takes by op kind: of a backend that has no engine for them and need not, or
 * because of --engine. */
static void prune(struct qc_list *list)
{
  int kept = 0;
  if (!qc_opt.engine && qc_w.table->device)
    return;
  for (int i = 0; i < list->n; i++) {
    qn_graph *graph = NULL;
    bool wanted = list->item[i].kind != QC_CASE && !qc_opt.engine;
    if (list->item[i].kind == QC_CASE && !qn_graph_parse(list->item[i].line, &graph)) {
      const qn_graph_view *view = qn_graph_inspect(graph);
      for (uint32_t k = 0; k < view->n_ops; k++)
        for (int e = 0; e < qc_w.n_engines; e++)
          wanted |= qc_engine_fits(&qc_w.engine[e], view->op[k].op);
    }
    qn_graph_destroy(graph);
    if (wanted) {
      list->item[kept++] = list->item[i];
      continue;
    }
    free(list->item[i].line);
    free(list->item[i].settings);
    free(list->item[i].file);
    free(list->item[i].title);
  }
  list->n = kept;
}

/* An engine that no case reached is tried on the device models that its provider knows: it passes if some model would take a
 * case. It also passes if a case would be taken here but for something missing (a library, a live device); then some of its
 * variants may exist on no device. */
struct elsewhere { const char *engine, *model; bool variant, yes; };
static void would_take(void *user, const qn_verdict *v)
{
  struct elsewhere *w = user;
  bool lacking = v->status == QN_NO_BACKEND;
  if (!strcmp(v->backend, qc_w.backend) && !strcmp(v->engine, w->engine))
    w->yes |= w->model ? v->status == QN_OK || (lacking && w->variant) : lacking;
}

static void try_elsewhere(struct elsewhere *w, const struct qc_engine *e, const struct qc_list *list)
{
  char *backend = qc_format("backend=%s", qc_w.backend);
  char *narrowed = qc_opt.model && !w->model ? qc_format("device_model=%s", qc_opt.model) : NULL;
  const char *const options[] = {backend, "math=fast", narrowed, NULL};
  for (int i = 0; i < list->n && !w->yes; i++) {
    qn_graph *graph;
    if (list->item[i].kind != QC_CASE || qn_graph_parse(list->item[i].line, &graph))
      continue;
    const qn_graph_view *view = qn_graph_inspect(graph);
    for (uint32_t k = 0; k < view->n_ops; k++) {
      if (qc_engine_fits(e, view->op[k].op)) {
        qn_explain(options, w->model, graph, would_take, w);
        break;
      }
    }
    qn_graph_destroy(graph);
  }
  free(backend);
  free(narrowed);
}

static bool reached_elsewhere(const struct qc_engine *e, const struct qc_list *list)
{
  struct elsewhere w = {e->row->name, NULL, e->variant, false};
  const char *const *model = qc_w.provider->device->models;
  for (; model && *model && !w.yes; model++) {
    w.model = *model;
    try_elsewhere(&w, e, list);
  }
  w.model = NULL;
  if (!w.yes)
    try_elsewhere(&w, e, list);
  return w.yes;
}

static void find_provider(void *user, const qn_backend_info *info)
{
  (void)user;
  if (info->table && info->table->device && !strcmp(info->device_kind, qc_w.table->device_kind))
    qc_w.provider = info->table;
}

/* Opens a context on a backend or a list of them; else reports why not. */
static bool open_context(const char *first, const char *second)
{
  char *backend = second ? qc_format("backend=%s,%s", first, second) : qc_format("backend=%s", first);
  char *model = qc_opt.model ? qc_format("device_model=%s", qc_opt.model) : NULL, device[32];
  const char *options[] = {backend, "tune=off", model, NULL, NULL};
  snprintf(device, sizeof device, "device=%d", qc_opt.device);
  if (qc_opt.device > 0)                /* of a rank; on a CPU they share it */
    options[model ? 3 : 2] = device;
  qn_status status = qn_context_create(options, &qc_w.ctx);
  if (status && qc_opt.device > 0) {
    options[model ? 3 : 2] = NULL;
    status = qn_context_create(options, &qc_w.ctx);
  }
  if (status)
    printf("B %s\n", qn_last_error());
  free(backend);
  free(model);
  return !status;
}

/* To check portability: narrows to the provider's first model other than the device's own. */
static void open_narrowed(void)
{
  const char *live = qn_context_describe(qc_w.ctx)->model;
  for (const char *const *model = qc_w.table->device->models; model && *model && !qc_w.narrowed && !qc_opt.model; model++) {
    char *backend = qc_format("backend=%s", qc_opt.backend), *option = qc_format("device_model=%s", *model);
    const char *const options[] = {backend, "tune=off", option, NULL};
    if (strncmp(*model, live, strlen(*model)) && qn_context_create(options, &qc_w.narrowed))
      qc_w.narrowed = NULL;
    free(backend);
    free(option);
  }
}

/* Opens the context under test. A backend without a device may delegate to its kind's provider, so that one is enabled too. */
bool qc_open_backend(void)
{
  if (!open_context(qc_opt.backend, NULL))
    return false;
  qn_each_backend(find_backend, (void *)(uintptr_t)qc_opt.backend);
  if (!qc_w.table) {
    printf("B %s: loaded, and then not to be found\n", qc_opt.backend);
    return false;
  }
  qn_each_backend(find_provider, NULL);
  if (!qc_w.provider)
    printf("B no provider of its device kind is loaded\n");
  if (qc_w.table->device && !qc_opt.ranks)
    open_narrowed();
  if (!qc_w.provider || qc_w.table->device)
    return qc_w.provider;
  qn_context_destroy(qc_w.ctx);
  return open_context(qc_opt.backend, qc_w.provider->name);
}

static void pass_over(void *user, int level, const char *message)
{
  (void)user, (void)level, (void)message;
}

static void run_point(const struct qc_list *list, int i, int skip_engines)
{
  static const char *const words[] = {"ok", "fail", "skip"};
  static struct said { uint32_t claimed, compared; } *said;
  if (!said)
    said = qc_alloc((size_t)(qc_w.n_engines + 1) * sizeof *said);
  qc_w.skip_engines = skip_engines;
  printf("S %d %s %s\n", i, list->item[i].file, list->item[i].title);
  fflush(stdout);
  int status = run_item(&list->item[i]);
  for (int k = 0; k < qc_w.n_engines; k++) {
    if (qc_w.engine[k].reached == 1) {
      qc_w.engine[k].reached = 2;
      printf("R %d\n", k);
    }
    if (qc_w.engine[k].claimed != said[k].claimed || qc_w.engine[k].compared != said[k].compared) {
      said[k] = (struct said){qc_w.engine[k].claimed, qc_w.engine[k].compared};
      printf("P %d %u %u\n", k, said[k].claimed, said[k].compared);
    }
  }
  printf("D %d %s\n", i, words[status]);
}

static void try_engine(const struct qc_list *list, int k)
{
  printf("C %d\n", k);
  fflush(stdout);
  if (reached_elsewhere(&qc_w.engine[k], list))
    printf("M %d\n", k);
  printf("X\n");
}

int qc_worker_main(bool list_only)
{
  static struct qc_list list;             /* lives as long as the process */
  char order[64];
  if (!list_only)                         /* the worker that lists has logged what there is to say of the settings */
    qn_set_log(pass_over, NULL);
  if (!qc_open_backend())
    return 0;
  qn_set_log(NULL, NULL);
  qc_w.cpu = !strcmp(qc_w.table->device_kind, "cpu");
  qc_engines_list();
  if (qc_opt.engine && !qc_w.n_engines) {
    printf("B backend %s has no engine '%s'; quern-info lists them, those of a family under its name, as pointwise/direct\n", qc_w.backend,
           qc_opt.engine);
    return 0;
  }
  qc_cases_load(&list);
  prune(&list);
  if (list_only) {
    printf("N %d\n", list.n);
    for (int i = 0; i < qc_w.n_engines; i++)
      printf("L %d %s\n", i, qc_w.engine[i].name);
    for (int i = 0; i < list.n && qc_opt.list; i++)
      printf("S %d %s %s\n", i, list.item[i].file, list.item[i].title);
    return 0;
  }
  while (fgets(order, sizeof order, stdin)) {
    int item, skip_engines;
    if (sscanf(order, "%d %d", &item, &skip_engines) != 2 || item < 0 || item >= list.n + qc_w.n_engines)
      qc_tap_bail("a worker was given no item");
    if (item < list.n)
      run_point(&list, item, skip_engines);
    else
      try_engine(&list, item - list.n);
    fflush(stdout);
  }
  qn_context_destroy(qc_w.narrowed);
  qn_context_destroy(qc_w.ctx);
  return 0;
}
