/* fuzz_line.c -- any bytes as problem lines: each gives a graph that reads back as printed, or an error with a
 * sentence; the printed line is canonical. So is the gradient of each of its outputs by its first input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <quern/graph.h>
#include <quern/tools.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int right, const char *what, const char *line)
{
  if (right) return;
  fprintf(stderr, "%s: %s\n", what, line);
  abort();
}

static void check_graph(const qn_graph *g)
{
  size_t bytes = qn_graph_print(g, NULL, 0) + 1;
  char *line = malloc(bytes), *again = malloc(bytes);
  if (!line || !again) abort();
  check(qn_graph_print(g, line, bytes) == bytes - 1, "printed twice, two lengths", line);
  qn_graph *h;
  check(!qn_graph_parse(line, &h), qn_last_error(), line);
  check(qn_graph_print(h, again, bytes) == bytes - 1 && !strcmp(line, again), "reads back as another", line);
  check(qn_graph_pointers(g) == qn_graph_pointers(h), "reads back with other pointers", line);
  qn_graph_destroy(h);
  free(line);
  free(again);
}

static void check_gradients(const qn_graph *g)
{
  const qn_graph_view *v = qn_graph_inspect(g);
  for (uint32_t i = v->n_ins; v->n_ins && i < v->n_pointers && i < v->n_ins + 4; i++) {
    const char *loss = v->name[v->pointer[i]], *wrt[] = { v->name[v->pointer[0]] };
    if (!*loss) loss = qn_op_role(qn_op_find(v->op[0].op), v->op[0].n_inputs)->name;
    if (!**wrt) wrt[0] = qn_op_role(qn_op_find(v->op[0].op), 0)->name;
    qn_graph *d;
    const qn_status status = qn_graph_gradient(g, loss, wrt, 1, &d);
    check(!status == (d != NULL) && status != QN_INTERNAL && (!status || *qn_last_error()), "a gradient", qn_last_error());
    if (d) check_graph(d);
    qn_graph_destroy(d);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char *text = malloc(size + 1);
  if (!text) return 0;
  memcpy(text, data, size);
  text[size] = '\0';
  qn_reader *reader;
  if (qn_reader_text(text, &reader)) abort();
  for (int before = 0;;) {
    qn_graph *g;
    const char *settings;
    int line;
    qn_status status = qn_reader_next(reader, &g, &settings, &line);
    check(line > before || (!status && !g), "the reader does not move on", text);
    before = line;
    if (status) check(!g && *qn_last_error(), "an error without a sentence", text);
    else if (!g) break;
    else {
      check_graph(g);
      check_gradients(g);
    }
    qn_graph_destroy(g);
  }
  qn_reader_close(reader);
  qn_graph *g;
  check(!qn_graph_parse(text, &g) == (g != NULL), "a status and a graph that disagree", text);
  qn_graph_destroy(g);
  free(text);
  return 0;
}
