/* cases.c -- problems from .q files, traces and the command line. */
#include <stdlib.h>
#include <string.h>
#include "bench.h"

/* The value of `key=` among settings, in a static buffer; NULL if absent. */
static const char *setting(const char *settings, const char *key)
{
  static char value[256];
  size_t n = strlen(key);
  for (const char *s = settings; s && *s; s += strcspn(s, " \t")) {
    s += strspn(s, " \t");
    if (!strncmp(s, key, n) && s[n] == '=') {
      size_t bytes = strcspn(s + n + 1, " \t");
      snprintf(value, sizeof value, "%.*s", (int)bytes, s + n + 1);
      return value;
    }
  }
  return NULL;
}

static char *one_line(const qn_graph *graph)
{
  size_t n = qn_graph_print(graph, NULL, 0);
  char *raw = malloc(n + 1), *line = malloc(3 * n + 1);
  if (!raw || !line) {
    free(raw), free(line);
    return NULL;
  }
  qn_graph_print(graph, raw, n + 1);
  while (n && raw[n - 1] == '\n')
    raw[--n] = '\0';
  char *to = line;
  for (const char *from = raw; *from; from++) {
    if (*from == '\n')
      to = stpcpy(to, " | ");
    else
      *to++ = *from;
  }
  *to = '\0';
  free(raw);
  return line;
}

static bool append(case_list *list, qn_graph *graph, const char *settings, const char *file, int line, bool merge)
{
  char *text = one_line(graph);
  if (!text)
    return false;
  for (int i = 0; merge && i < list->n; i++)
    if (!strcmp(list->at[i].text, text)) {
      list->at[i].count++;
      free(text);
      qn_graph_destroy(graph);
      return true;
    }
  if (list->n == list->cap) {
    int cap = list->cap ? 2 * list->cap : 64;
    bench_case *at = realloc(list->at, (size_t)cap * sizeof *at);
    if (!at) {
      free(text);
      return false;
    }
    list->at = at;
    list->cap = cap;
  }
  const char *name = setting(settings, "name");
  bench_case c = { graph, text, strdup(name ? name : text), file, line, 1 };
  if (!c.name) {
    free(text);
    return false;
  }
  list->at[list->n++] = c;
  return true;
}

static int read_all(case_list *list, qn_reader *reader, const char *file, bool merge)
{
  int bad = 0;
  for (;;) {
    qn_graph *graph;
    const char *settings;
    int line = 0;
    if (qn_reader_next(reader, &graph, &settings, &line)) {
      fprintf(stderr, "quern-bench: %s:%d: %s\n", file, line, qn_last_error());
      bad = 2;
      if (line == 0)
        break;
      continue;
    }
    if (!graph)
      break;
    if (!append(list, graph, settings, file, line, merge)) {
      fprintf(stderr, "quern-bench: no memory\n");
      qn_graph_destroy(graph);
      bad = 2;
      break;
    }
  }
  qn_reader_close(reader);
  return bad;
}

int cases_from_file(case_list *list, const char *path, bool merge)
{
  qn_reader *reader;
  if (qn_reader_open(path, &reader)) {
    fprintf(stderr, "quern-bench: %s\n", qn_last_error());
    return 2;
  }
  return read_all(list, reader, path, merge);
}

int cases_from_text(case_list *list, const char *text)
{
  qn_reader *reader;
  if (qn_reader_text(text, &reader)) {
    fprintf(stderr, "quern-bench: %s\n", qn_last_error());
    return 2;
  }
  return read_all(list, reader, "--case", false);
}

bool case_wanted(const bench_case *c, const char *filter)
{
  return !filter || strstr(c->name, filter) || strstr(c->text, filter);
}

void cases_free(case_list *list)
{
  for (int i = 0; i < list->n; i++) {
    qn_graph_destroy(list->at[i].graph);
    free(list->at[i].text);
    free(list->at[i].name);
  }
  free(list->at);
  memset(list, 0, sizeof *list);
}
