/* gradient.c -- a graph with its backward half, a statement a line. */
#include <stdlib.h>
#include <string.h>
#include <quern/graph.h>
#include "info.h"

enum { MOST_NAMES = 256 };

static bool is_float(const qn_value *v) { return v->dtype >= QN_F64 && v->dtype <= QN_BF16; }

/* The output called loss, else the first of one element; of a graph of one op its first output. NULL: there is none. */
static const char *loss_of(const qn_graph *graph)
{
  const qn_graph_view *v = qn_graph_inspect(graph);
  if (qn_graph_index(graph, "loss") >= 0) return "loss";
  for (uint32_t i = v->n_ins; i < v->n_pointers; i++) {
    const qn_value *out = &v->value[v->pointer[i]];
    bool one = is_float(out);
    for (int d = 0; d < out->rank; d++) one = one && out->dim[d] == 1;
    if (one && v->name[v->pointer[i]][0]) return v->name[v->pointer[i]];
  }
  const qn_op_info *op = qn_op_find(v->op[0].op);
  return v->n_ops == 1 ? qn_op_role(op, op->n_inputs)->name : NULL;
}

static int print_gradient(const qn_graph *graph, const char *loss, const char *const wrt[], int n)
{
  qn_graph *both;
  qn_status status = qn_graph_gradient(graph, loss, wrt, n, &both);
  if (status) return info_fail(status);
  const size_t bytes = qn_graph_print(both, NULL, 0) + 1;
  char *text = malloc(bytes);
  if (text) qn_graph_print(both, text, bytes);
  qn_graph_destroy(both);
  for (char *p = text, *bar; p; p = bar ? bar + 3 : NULL) {
    if ((bar = strstr(p, " | "))) *bar = '\0';
    puts(p);
  }
  free(text);
  return text ? 0 : 1;
}

int info_gradient(const char *line, const char *by)
{
  qn_graph *graph;
  const char *wrt[MOST_NAMES];
  char *names = strdup(by ? by : "");
  int n = 0, exit_status = 2;
  qn_status status = names ? qn_graph_parse(line, &graph) : QN_NO_MEMORY;
  if (status) {
    free(names);
    return info_fail(status);
  }
  const qn_graph_view *v = qn_graph_inspect(graph);
  for (char *p = strtok(names, ","); p && n < MOST_NAMES; p = strtok(NULL, ",")) wrt[n++] = p;
  for (uint32_t i = 0; !by && i < v->n_ins && n < MOST_NAMES; i++)
    if (is_float(&v->value[v->pointer[i]]) && v->name[v->pointer[i]][0]) wrt[n++] = v->name[v->pointer[i]];
  const char *loss = loss_of(graph);
  if (!loss) fprintf(stderr, "quern-info: the graph has no output called loss, and none of one element\n");
  else if (!n) fprintf(stderr, "quern-info: --gradient of what has no named inputs wants --by NAMES\n");
  else exit_status = print_gradient(graph, loss, wrt, n);
  qn_graph_destroy(graph);
  free(names);
  return exit_status;
}
