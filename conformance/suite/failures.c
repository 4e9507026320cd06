/* failures.c -- what failed, listed again at the end of a report: the commands that repeat it, the smallest problem first. */
#include <stdlib.h>
#include <string.h>
#include "conform.h"

static struct failure { int64_t elements; char *command; } *failure;
static int n_failures;

/* Elements of all tensors of the problem that a command repeats. */
static int64_t elements_of(const char *command)
{
  static const char option[] = "--case '";
  const char *line = strstr(command, option), *settings;
  char *text = strdup(line ? line + strlen(option) : "");
  qn_reader *reader;
  qn_graph *graph = NULL;
  int64_t n = 0;
  int at;
  text[strlen(text) ? strlen(text) - 1 : 0] = 0;
  if (!qn_reader_text(text, &reader)) {
    if (!qn_reader_next(reader, &graph, &settings, &at) && graph) {
      const qn_graph_view *view = qn_graph_inspect(graph);
      for (uint32_t i = 0; i < view->n_values; i++)
        n += qc_elements(&view->value[i]);
      qn_graph_destroy(graph);
    }
    qn_reader_close(reader);
  }
  free(text);
  return n;
}

void qc_failures_add(const char *yaml)
{
  static const char key[] = "  repro: ";
  for (const char *s = yaml; (s = strstr(s, key)); s += strcspn(s, "\n")) {
    s += strlen(key);
    failure = realloc(failure, (size_t)(n_failures + 1) * sizeof *failure);
    char *command = qc_format("%.*s", (int)strcspn(s, "\n"), s);
    failure[n_failures++] = (struct failure){elements_of(command), command};
  }
}

static int by_size(const void *a, const void *b)
{
  const struct failure *x = a, *y = b;
  if (x->elements != y->elements)
    return x->elements < y->elements ? -1 : 1;
  return strcmp(x->command, y->command);
}

void qc_failures_report(void)
{
  enum { SHOWN = 40 };
  if (!n_failures)
    return;
  qsort(failure, (size_t)n_failures, sizeof *failure, by_size);
  qc_tap_comment("failed, the smallest problem first:");
  for (int i = 0; i < n_failures && i < SHOWN; i++)
    qc_tap_comment("  %s", failure[i].command);
  if (n_failures > SHOWN)
    qc_tap_comment("  and %d more", n_failures - SHOWN);
}
