/* cases.c -- the list of items: every problem of cases/NAME.q, and the variants derived from it by rule.
 *
 * Settings, after ';' on a problem's last line:
 *   fill=a,b        one run for each (fill.c); default: by family       ROLE.fill=a   for one input
 *   ROLE.is=1,2,3   the values of an input; or of an output, which makes it a golden case
 *   ROLE.within=E   how far from these an output may be, times max(1, |value|); default 0
 *   seed=N          default --seed                                      labels=LO..HI range of index inputs
 *   ROLE.offset=N   begins N elements beyond an aligned address         plain=1       derive nothing
 *   as=f16,bf16     also with these dtypes in place of f32 (without f32: of the first)  tier=full     not in shorter runs
 *   tier=long       only in the long tier, which repeats its problems with other seeds until each family has DRAWN elements
 *   kind=cuda       sized for that device kind: on others in the full tier only
 *
 * Derived from each single op, in rotation (in the full tier all of them): misaligned, pitched, another
 * dim order, gapped; and for pointwise ops in place. Each is a complete problem line, so its repro needs no rule. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

static int bad_cases;                   /* problems in the files that do not parse */

void qc_list_add(struct qc_list *list, int kind, const char *line, const char *settings, const char *file)
{
  char *one = qc_one_line(line);
  char *title = *settings ? qc_format("%s ; %s", one, settings) : qc_format("%s", one);
  free(one);
  if (qc_opt.filter) {
    char *text = qc_format("%s %s", file, title);
    bool glob = strpbrk(qc_opt.filter, "*?[");
    bool match = glob ? !fnmatch(qc_opt.filter, text, 0) || !fnmatch(qc_opt.filter, title, 0)
                      : strstr(text, qc_opt.filter) != NULL;
    free(text);
    if (!match) {
      free(title);
      return;
    }
  }
  if (list->n == list->cap) {
    int cap = list->cap ? 2 * list->cap : 256;
    struct qc_item *grown = qc_alloc((size_t)cap * sizeof *grown);
    if (list->n)
      memcpy(grown, list->item, (size_t)list->n * sizeof *grown);
    free(list->item);
    list->item = grown;
    list->cap = cap;
  }
  list->item[list->n++] = (struct qc_item){kind, strdup(line), strdup(settings), strdup(file), title};
}

/* settings without the given keys */
static char *without(const char *settings, const char *const *keys)
{
  char *out = qc_alloc(strlen(settings) + 1), *o = out;
  for (const char *s = settings; *s;) {
    s += strspn(s, " \t");
    size_t len = strcspn(s, " \t"), key = strcspn(s, "= \t");
    bool drop = len == 0;
    for (const char *const *k = keys; *k; k++)
      drop |= strlen(*k) == key && !strncmp(*k, s, key);
    if (!drop)
      o += sprintf(o, "%s%.*s", o == out ? "" : " ", (int)len, s);
    s += len;
  }
  return out;
}

/* New strides, same dims: outer to inner by `order`, innermost stride `inner`, rows `pitch` longer. */
static void restride(qn_value *v, const int *order, int64_t inner, int64_t pitch)
{
  int64_t s = inner;
  for (int k = v->rank - 1; k >= 0; k--) {
    v->stride[order[k]] = s;
    s *= v->dim[order[k]] > 0 ? v->dim[order[k]] : 1;
    if (k == v->rank - 1)
      s += pitch;
  }
}

/* The same for the values that an output should have; frees what it is given. */
static char *without_golden(char *settings, const qn_graph_view *view, int32_t value)
{
  char name[64];
  qc_value_name(view, (uint32_t)value, name, sizeof name);
  char *is = qc_format("%s.is", name), *within = qc_format("%s.within", name);
  const char *const keys[] = {is, within, NULL};
  char *rest = without(settings, keys);
  free(settings);
  free(is);
  free(within);
  return rest;
}

enum { MISALIGNED, PITCHED, REORDERED, GAPPED, N_LAYOUTS, IN_PLACE = N_LAYOUTS };

static bool vary(struct qc_draft *d, int how, int turn)
{
  int touched = 0;
  for (uint32_t i = 0; i < d->view.n_values; i++) {
    qn_value *v = &d->value[i];
    if (v->rank == 0 || v->flags & QN_VALUE_HOST || v->over >= 0)
      continue;
    bool broadcast = false;
    for (int k = 0; k < v->rank; k++)
      broadcast |= v->stride[k] == 0 && v->dim[k] > 1;
    if (broadcast)
      continue;
    int order[QN_MAX_RANK];
    for (int k = 0; k < v->rank; k++)
      order[k] = k;
    switch (how) {
    case MISALIGNED:
      v->align = (uint32_t)qn_dtype_bytes(v->dtype);
      break;
    case PITCHED:
      restride(v, order, v->rank == 1 ? 2 : 1, v->rank == 1 ? 0 : 3);
      break;
    case REORDERED:                       /* dim 1 innermost, as in nhwc; all tensors or every other */
      if (v->rank < 2 || (turn & 1 && touched++ & 1))
        continue;
      if (v->rank == 2) {
        order[0] = 1, order[1] = 0;
      } else {
        for (int k = 1; k < v->rank - 1; k++)
          order[k] = k + 1;
        order[v->rank - 1] = 1;
      }
      restride(v, order, 1, 0);
      break;
    case GAPPED:
      restride(v, order, 3, 1);
      break;
    }
    touched++;
  }
  return touched > 0;
}

/* The output takes the memory of the first input that may lend it. */
static bool in_place(struct qc_draft *d, int turn)
{
  const qn_node *n = &d->view.op[0];
  qn_value *y = &d->value[n->arg[n->first[n->n_inputs]]];
  if (y->over >= 0)
    return false;
  for (uint32_t i = 0; i < n->n_inputs; i++) {
    uint32_t r = (i + (uint32_t)turn) % n->n_inputs;
    if (n->first[r + 1] != n->first[r] + 1)
      continue;
    qn_value *x = &d->value[n->arg[n->first[r]]];
    if (x->dtype != y->dtype || x->rank != y->rank || x->rank == 0 || memcmp(x->dim, y->dim, sizeof x->dim))
      continue;
    bool packed = true;
    for (int k = 0; k < x->rank; k++)
      packed &= x->stride[k] != 0 || x->dim[k] == 1;
    if (!packed)
      continue;
    memcpy(y->stride, x->stride, sizeof y->stride);
    y->align = x->align;
    y->over = n->arg[n->first[r]];
    return true;
  }
  return false;
}

static const char *first_fill(uint32_t family)
{
  return family == QN_FAMILY_POINTWISE || family == QN_FAMILY_SOFTMAX ? "signed:4" : "int";
}

static void derive(struct qc_list *list, const qn_graph *graph, const char *settings, const char *file, int turn)
{
  const qn_graph_view *view = qn_graph_inspect(graph);
  char unused[8];
  if (view->n_ops != 1 || qc_opt.tier == QC_QUICK || qc_setting(settings, "plain", unused, sizeof unused))
    return;
  const char *const keys[] = {"fill", NULL};
  char *rest = without(settings, keys);
  for (uint32_t i = view->n_ins; i < view->n_pointers; i++)     /* stated for this fill alone */
    rest = without_golden(rest, view, view->pointer[i]);
  char *own = qc_format("%s%sfill=%s", rest, *rest ? " " : "", first_fill(view->op[0].family));
  for (int how = 0; how < N_LAYOUTS; how++) {
    if (qc_opt.tier == QC_DEFAULT && how != turn % N_LAYOUTS)
      continue;
    struct qc_draft *d = qc_draft_of(graph);
    char *text = vary(d, how, turn / N_LAYOUTS) ? qc_draft_text(d) : NULL;
    if (text)
      qc_list_add(list, QC_CASE, text, own, file);
    free(text);
    qc_draft_free(d);
  }
  if (view->op[0].family == QN_FAMILY_POINTWISE && (turn % 2 == 0 || qc_opt.tier == QC_FULL)) {
    struct qc_draft *d = qc_draft_of(graph);
    char *text = in_place(d, turn / 2) ? qc_draft_text(d) : NULL;
    if (text)
      qc_list_add(list, QC_CASE, text, own, file);
    free(text);
    qc_draft_free(d);
  }
  free(own);
  free(rest);
}

/* Is the value in a role that takes no dtype narrower than f32? */
static bool is_wide(const qn_graph_view *g, uint32_t value)
{
  for (uint32_t k = 0; k < g->n_ops; k++)
    for (uint32_t r = 0; r < g->op[k].n_roles; r++)
      for (int32_t a = g->op[k].first[r]; a < g->op[k].first[r + 1]; a++)
        if ((uint32_t)g->op[k].arg[a] == value) {
          char class_ = qn_op_find(g->op[k].op)->role[r].class_;
          if (class_ == 'w' || (class_ == 'z' && r >= g->op[k].n_inputs))
            return true;
        }
  return false;
}

/* The dtype that `as` replaces: f32, or if there is none the first tensor's. */
static uint32_t replaced(const qn_graph_view *g)
{
  for (uint32_t i = 0; i < g->n_values; i++)
    if (g->value[i].dtype == QN_F32 && !(g->value[i].flags & QN_VALUE_HOST))
      return QN_F32;
  return g->value[0].dtype;
}

/* The graph with another dtype in its place; the caller destroys it. NULL: the op does not take that. */
static qn_graph *with_dtype(const qn_graph *graph, uint32_t dtype)
{
  struct qc_draft *d = qc_draft_of(graph);
  const uint32_t from = replaced(&d->view);
  for (uint32_t i = 0; i < d->view.n_values; i++) {
    if (d->value[i].dtype == from && !(d->value[i].flags & QN_VALUE_HOST) && (dtype == QN_F64 || !is_wide(&d->view, i))) {
      d->value[i].dtype = dtype;
      if (d->value[i].align < 16 && d->value[i].align < qn_dtype_bytes(dtype))
        d->value[i].align = (uint32_t)qn_dtype_bytes(dtype);
    }
  }
  qn_graph *made = NULL;
  if (qn_graph_make(&d->view, &made))
    made = NULL;
  qc_draft_free(d);
  return made;
}

/* ROLE.offset=N: reduces the promised alignment to what that offset allows. Returns the graph, or a new one in its place. */
static qn_graph *with_offsets(qn_graph *graph, const char *settings)
{
  if (!settings || !strstr(settings, ".offset="))
    return graph;
  char name[64], key[80], text[32];
  struct qc_draft *d = qc_draft_of(graph);
  for (uint32_t i = 0; i < d->view.n_values; i++) {
    qc_value_name(&d->view, i, name, sizeof name);
    snprintf(key, sizeof key, "%s.offset", name);
    if (!qc_setting(settings, key, text, sizeof text))
      continue;
    uint64_t bytes = strtoull(text, NULL, 10) * qn_dtype_bytes(d->value[i].dtype) | 16;
    d->value[i].align = (uint32_t)(bytes & -bytes);
  }
  qn_graph *made;
  if (!qn_graph_make(&d->view, &made)) {
    qn_graph_destroy(graph);
    graph = made;
  }
  qc_draft_free(d);
  return graph;
}

/* Adds the oracle's own checks on a problem's geometry. */
static void add_oracle_check(struct qc_list *list, const qn_graph *graph, const char *file)
{
  const qn_graph_view *view = qn_graph_inspect(graph);
  const qn_op_info *op = qn_op_find(view->op[0].op);
  if (view->n_ops != 1 || strcmp(qc_opt.backend, "cpu_ref") || qc_opt.engine || !qc_is_float(view->value[0].dtype))
    return;
  int kind = op->forward ? QC_GRAD : QC_CASE;
  if (op->kind == QN_OP_CONV_FORWARD || op->kind == QN_OP_POOL_MAX || op->kind == QN_OP_POOL_AVERAGE)
    kind = QC_ADJOINT;
  if (op->kind == QN_OP_MATMUL && view->value[0].dtype == QN_F32) {
    bool broadcast = view->value[0].rank != view->value[1].rank;
    for (int k = 0; k + 2 < view->value[0].rank; k++)
      broadcast |= view->value[0].dim[k] != view->value[1].dim[k];
    kind = broadcast ? QC_CASE : QC_ADJOINT;
  }
  for (uint32_t i = 0; i < view->n_values; i++)
    if (qn_dtype_bytes(view->value[i].dtype) == 1 && view->value[i].dtype != QN_U8 && view->value[i].dtype != QN_BOOL)
      return;                           /* integers and 8-bit floats have separate rules */
  for (uint32_t i = 0; i < view->n_values; i++)
    if (qc_elements(&view->value[i]) > 2500)
      return;                           /* smaller ones have the same geometry */
  if (kind == QC_CASE)
    return;
  char *text = qc_print(graph), *label = qc_format("%s %s", kind == QC_GRAD ? "gradient" : "adjoint", file);
  qc_list_add(list, kind, text, "", label);
  free(text);
  free(label);
}

/* A problem of a file: itself, then with other dtypes, each with its derived variants. */
static void expand(struct qc_list *list, const qn_graph *graph, const char *settings, const char *file, int *turn)
{
  static const char *const own_keys[] = {"as", "tier", "kind", NULL};
  char as[128] = "", *base = without(settings, own_keys), *text = qc_print(graph);
  qc_list_add(list, QC_CASE, text, base, file);
  derive(list, graph, base, file, (*turn)++);
  free(text);
  add_oracle_check(list, graph, file);
  qc_setting(settings, "as", as, sizeof as);
  for (char *s = as; *s && qc_opt.tier != QC_QUICK;) {
    size_t len = strcspn(s, ",");
    qn_graph *other = with_dtype(graph, qc_dtype_named(s, len));
    if (!other) {
      fprintf(stderr, "%s: as=%.*s: %s\n", file, (int)len, s, qn_last_error());
      bad_cases++;
      break;
    }
    text = qc_print(other);
    qc_list_add(list, QC_CASE, text, base, file);
    derive(list, other, base, file, (*turn)++);
    free(text);
    qn_graph_destroy(other);
    s += len + (s[len] == ',');
  }
  free(base);
}

static int64_t elements(const qn_graph *graph)
{
  const qn_graph_view *view = qn_graph_inspect(graph);
  int64_t n = 0;
  for (uint32_t i = 0; i < view->n_values; i++)
    n += qc_elements(&view->value[i]);
  return n;
}

/* ---- the long tier ------------------------------------------------------------------------- */

#define DRAWN 1e8
static struct lengthy { char *text, *settings, *file; uint32_t family; double elements; } *lengthy;
static int n_lengthy;

static void keep_lengthy(const qn_graph *graph, const char *settings, const char *file)
{
  static const char *const own_keys[] = {"tier", NULL};
  const qn_graph_view *view = qn_graph_inspect(graph);
  lengthy = realloc(lengthy, (size_t)(n_lengthy + 1) * sizeof *lengthy);
  lengthy[n_lengthy++] = (struct lengthy){qc_print(graph), without(settings, own_keys), strdup(file), qn_op_find(view->op[0].op)->family,
                                          (double)elements(graph)};
}

static void draw_lengthy(struct qc_list *list)
{
  for (int i = 0; i < n_lengthy; i++) {
    double once = 0;
    for (int k = 0; k < n_lengthy; k++)
      once += lengthy[k].family == lengthy[i].family ? lengthy[k].elements : 0;
    for (uint64_t round = 0; (double)round * once < DRAWN; round++) {
      char *settings = qc_format("%s seed=%llu", lengthy[i].settings, (unsigned long long)(qc_opt.seed + round));
      qc_list_add(list, QC_CASE, lengthy[i].text, settings, lengthy[i].file);
      free(settings);
    }
  }
}

/* Advances the rotation past a skipped case, so that later cases derive the same on all device kinds. */
static void pass_over(const char *settings, int *turn)
{
  char as[128];
  ++*turn;
  for (const char *s = qc_setting(settings, "as", as, sizeof as) ? as : ""; *s; s += *s == ',') {
    s += strcspn(s, ",");
    ++*turn;
  }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
  return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_case_file(const struct dirent *e)
{
  size_t n = strlen(e->d_name);
  return n > 2 && !strcmp(e->d_name + n - 2, ".q");
}

/* cases/refused.txt: one line each, all of which must be errors. */
static void load_refused(struct qc_list *list, const char *path)
{
  FILE *f = fopen(path, "r");
  char *line = NULL;
  size_t cap = 0;
  if (!f)
    qc_tap_comment("no refusals are checked: %s: %s", path, strerror(errno));
  for (int number = 1; f && getline(&line, &cap, f) > 0; number++) {
    line[strcspn(line, "\n")] = 0;
    if (*line && *line != '#') {
      char file[64];
      snprintf(file, sizeof file, "refused.txt:%d", number);
      qc_list_add(list, QC_REFUSED, line, "", file);
    }
  }
  free(line);
  if (f)
    fclose(f);
}

enum { LARGE = 250000 };                /* total elements of a problem */

/* The quick tier takes every third problem of a file, unless it is large. */
static void load_file(struct qc_list *list, const char *path, const char *name, int *turn)
{
  qn_reader *reader;
  if (qn_reader_open(path, &reader)) {
    qc_tap_bail(qc_format("%s: %s", path, qn_last_error()));
    exit(2);
  }
  for (int index = 0;; index++) {
    qn_graph *graph;
    const char *settings;
    int line;
    char why[256], tier[16] = "", kind[16] = "", file[96];
    qn_status status = qn_reader_next(reader, &graph, &settings, &line);
    if (!status && !graph)
      break;
    if (status || !qc_settings_check(settings, graph, why, sizeof why)) {
      fprintf(stderr, "%s:%d: %s\n", path, line, status ? qn_last_error() : why);
      bad_cases++;
      if (!status)
        qn_graph_destroy(graph);
      continue;
    }
    graph = with_offsets(graph, settings);
    snprintf(file, sizeof file, "%s:%d", name, line);
    qc_setting(settings, "tier", tier, sizeof tier);
    bool full = !strcmp(tier, "full"), lasting = !strcmp(tier, "long");
    bool quick = !strcmp(tier, "quick") || (strcmp(tier, "default") && index % 3 == 0 && elements(graph) < LARGE);
    bool elsewhere = qc_setting(settings, "kind", kind, sizeof kind) && strcmp(kind, qc_w.table->device_kind);
    if (lasting && qc_opt.tier == QC_LONG)
      keep_lengthy(graph, settings, file);
    else if (!lasting && qc_opt.tier != QC_LONG && ((!full && !elsewhere) || qc_opt.tier == QC_FULL) && (qc_opt.tier != QC_QUICK || quick))
      expand(list, graph, settings ? settings : "", file, turn);
    else if (elsewhere)
      pass_over(settings, turn);
    qn_graph_destroy(graph);
  }
  qn_reader_close(reader);
}

static void load_line(struct qc_list *list, const char *text)
{
  qn_reader *reader;
  qn_graph *graph;
  const char *settings;
  int line;
  char why[256];
  if (qn_reader_text(text, &reader) || qn_reader_next(reader, &graph, &settings, &line)) {
    fprintf(stderr, "quern-conform: --case: %s\n", qn_last_error());
    exit(2);
  }
  if (!graph || !qc_settings_check(settings, graph, why, sizeof why)) {
    fprintf(stderr, "quern-conform: --case: %s\n", graph ? why : "no problem in it");
    exit(2);
  }
  graph = with_offsets(graph, settings);
  char *lines = qc_print(graph);
  qc_list_add(list, QC_CASE, lines, settings ? settings : "", "case");
  free(lines);
  qn_graph_destroy(graph);
  qn_reader_close(reader);
}

void qc_cases_load(struct qc_list *list)
{
  if (qc_opt.line) {
    load_line(list, qc_opt.line);
    return;
  }
  struct dirent **entry;
  int n = scandir(qc_opt.cases, &entry, is_case_file, by_name), turn = 0;
  if (n <= 0) {
    fprintf(stderr, "quern-conform: no cases (*.q) in '%s': give their folder by --cases\n", qc_opt.cases);
    exit(2);
  }
  for (int i = 0; i < n; i++) {
    char *path = qc_format("%s/%s", qc_opt.cases, entry[i]->d_name);
    load_file(list, path, entry[i]->d_name, &turn);
    free(path);
    free(entry[i]);
  }
  free(entry);
  if (bad_cases)
    qc_tap_bail(qc_format(bad_cases == 1 ? "%d case is no problem" : "%d cases are no problems", bad_cases));
  if (qc_opt.tier == QC_LONG) {
    draw_lengthy(list);
    return;
  }
  char *path = qc_format("%s/refused.txt", qc_opt.cases);
  load_refused(list, path);
  free(path);
  qc_list_add(list, QC_POINTER, "misaligned pointers are refused", "", "check");
  qc_list_add(list, QC_PROBE, "accumulators are what engines declare", "", "check");
  if (qc_opt.random)
    qc_random_cases(list, qc_opt.random, qc_opt.seed);
}
