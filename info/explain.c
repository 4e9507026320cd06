/* explain.c -- every engine's verdict on a problem, as a table: which accept, which is chosen, and by which rule others refuse. */
#include <stdlib.h>
#include <string.h>
#include "info.h"

enum { COLUMNS = 7 };

/* Verdicts are valid only during the callback, so their strings are copied. */
typedef struct entry {
  int   part, chosen;
  char *problem;
  char *cell[COLUMNS];
} entry;

typedef struct table {
  entry *at;
  int    n, cap;
  bool   failed;
} table;

static const char *const heading[COLUMNS] = { "engine", "verdict", "rule", "tensor", "seen", "needed", "nearest" };
static const char *const math_name[] = { "strict", "f32", "tf32", "fast" };
static const char *const class_name[] = { "tuned", "generic", "host" };

static char *amount(char *text, size_t bytes, double n)
{
  static const char unit[] = "BKMGT";
  int u = 0;
  while (n >= 1024 && u < 4)
    n /= 1024, u++;
  snprintf(text, bytes, "%.3g%c", n, unit[u]);
  return text;
}

static char *engine_name(const qn_verdict *v)
{
  char text[256];
  const char *variant = v->status ? NULL : v->answer->variant;
  snprintf(text, sizeof text, "%s/%s%s%s", v->backend, v->engine, variant ? ":" : "", variant ? variant : "");
  return strdup(text);
}

static char *what_it_takes(const qn_verdict *v)
{
  char text[320], size[32];
  const qn_prepared *a = v->answer;
  uint32_t ops = a->n_ops ? a->n_ops : 1;
  int n = snprintf(text, sizeof text, "takes %u op%s, ", ops, ops == 1 ? "" : "s");
  if (a->taken & (a->taken + 1)) {                  /* not the first ones */
    n += snprintf(text + n, sizeof text - (size_t)n, "those");
    for (int i = 0; i < 64 && n < 200; i++)
      if (a->taken >> i & 1) n += snprintf(text + n, sizeof text - (size_t)n, " %d", i);
    n += snprintf(text + n, sizeof text - (size_t)n, ", ");
  }
  n += snprintf(text + n, sizeof text - (size_t)n, "%s, math %s",
                   a->class_ <= QN_CLASS_HOST ? class_name[a->class_] : "?", a->math <= QN_MATH_FAST ? math_name[a->math] : "?");
  if (a->workspace)
    n += snprintf(text + n, sizeof text - (size_t)n, ", workspace %s", amount(size, sizeof size, (double)a->workspace));
  if (a->estimate > 0)
    snprintf(text + n, sizeof text - (size_t)n, ", about %.3g us", a->estimate / 1e3);
  return strdup(text);
}

static void add(void *user, const qn_verdict *v)
{
  table *t = user;
  if (t->n == t->cap) {
    int cap = t->cap ? 2 * t->cap : 32;
    entry *at = realloc(t->at, (size_t)cap * sizeof *at);
    if (!at) {
      t->failed = true;
      return;
    }
    t->at = at;
    t->cap = cap;
  }
  const qn_refusal none = { .rule = "" }, *why = v->status && v->answer ? &v->answer->refusal : &none;
  entry e = { v->part, v->chosen, strdup(v->problem), { 0 } };
  e.cell[0] = engine_name(v);
  e.cell[1] = v->status == QN_OK ? what_it_takes(v) : strdup("refuses");
  e.cell[2] = strdup(v->status && !why->rule[0] ? qn_status_text(v->status) : why->rule);
  e.cell[3] = strdup(why->tensor);
  e.cell[4] = strdup(why->seen);
  e.cell[5] = strdup(why->needed);
  e.cell[6] = strdup(why->nearest);
  for (int c = 0; c < COLUMNS; c++)
    t->failed |= !e.cell[c];
  t->failed |= !e.problem;
  t->at[t->n++] = e;
}

static void print_cells(const char *mark, char *const cell[], const int width[], int last)
{
  printf("%s ", mark);
  for (int c = 0; c <= last; c++)
    printf("%-*s%s", c == last ? 0 : width[c], cell[c], c == last ? "\n" : "  ");
}

/* One part's rows; true if an engine was chosen. */
static bool print_part(const table *t, int first, int end)
{
  int width[COLUMNS], last = 1;
  bool chosen = false;
  const char *widest = t->at[first].problem;        /* rows with other patterns are asked about other regions */
  for (int i = first + 1; i < end; i++)
    if (strlen(t->at[i].problem) > strlen(widest)) widest = t->at[i].problem;
  for (int c = 0; c < COLUMNS; c++) {
    width[c] = (int)strlen(heading[c]);
    for (int i = first; i < end; i++) {
      int n = (int)strlen(t->at[i].cell[c]);
      width[c] = n > width[c] ? n : width[c];
      last = n && c > last ? c : last;
    }
  }
  printf("part %d: ", t->at[first].part);
  for (const char *p = widest; *p; p++)
    fputs(*p == '\n' ? (p[1] ? "\n        " : "") : (char[]){ *p, 0 }, stdout);
  putchar('\n');
  print_cells(" ", (char *const *)heading, width, last);
  for (int i = first; i < end; i++) {
    print_cells(t->at[i].chosen ? "*" : " ", t->at[i].cell, width, last);
    chosen |= t->at[i].chosen != 0;
  }
  if (!chosen)
    printf("nobody takes it\n");
  return chosen;
}

static void table_free(table *t)
{
  for (int i = 0; i < t->n; i++) {
    free(t->at[i].problem);
    for (int c = 0; c < COLUMNS; c++)
      free(t->at[i].cell[c]);
  }
  free(t->at);
}

static int explain_graph(const char *const options[], const char *model, const qn_graph *graph)
{
  table t = { 0 };
  bool all = true;
  qn_status status = qn_explain(options, model, graph, add, &t);
  if (t.failed) {
    fprintf(stderr, "quern-info: no memory\n");
    table_free(&t);
    return 1;
  }
  for (int i = 0, end; i < t.n; i = end) {
    for (end = i; end < t.n && t.at[end].part == t.at[i].part; end++)
      ;
    all &= print_part(&t, i, end);
  }
  table_free(&t);
  if (status && !(status == QN_UNSUPPORTED && !all))
    return info_fail(status);
  return all ? 0 : 1;
}

/* All problems of standard input, with a blank line between their tables; returns the worst of their exit statuses. */
static int explain_input(const char *const options[], const char *model)
{
  qn_reader *reader;
  int worst = 0, n = 0, line = 1;
  qn_status status = qn_reader_open("-", &reader);
  if (status)
    return info_fail(status);
  for (;; n++) {
    qn_graph *graph;
    const char *settings;
    status = qn_reader_next(reader, &graph, &settings, &line);
    if (!status && !graph)
      break;
    if (n)
      putchar('\n');
    fflush(stdout);
    int rc = status ? info_fail(status) : explain_graph(options, model, graph);
    qn_graph_destroy(graph);
    worst = rc > worst ? rc : worst;
    if (!status && rc == 2)             /* a problem with the options, common to all */
      break;
  }
  qn_reader_close(reader);
  if (n || worst)
    return worst;
  fprintf(stderr, "quern-info: standard input holds no problem\n");
  return 2;
}

/* line: a problem, or "-". */
int info_explain(const char *const options[], const char *model, const char *line)
{
  qn_graph *graph;
  if (!strcmp(line, "-"))
    return explain_input(options, model);
  qn_status status = qn_graph_parse(line, &graph);
  if (status)
    return info_fail(status);
  int rc = explain_graph(options, model, graph);
  qn_graph_destroy(graph);
  return rc;
}
