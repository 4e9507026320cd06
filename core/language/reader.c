/* reader.c -- splits texts and files into problems: a line by itself, or the lines of a graph up to a
 * blank line. */
#include <errno.h>
#include <stdio.h>
#include "notation.h"

/* A text and the position reached. */
struct qn_reader {
  const char *p, *end;
  int         line;
  qn_text     settings;
  char       *owned;
};

static const char *line_end(const char *p, const char *end)
{
  const char *newline = memchr(p, '\n', (size_t)(end - p));
  return newline ? newline : end;
}

/* The first byte of the line that is neither space nor comment; the line's end if there is none. */
static const char *line_content(const char *p, const char *end)
{
  while (p < end && qn__is_space(*p)) p++;
  return p < end && *p == '#' ? end : p;
}

/* Advances to the next line with content; false at the end of the text. */
static bool find_problem(qn_reader *r)
{
  while (r->p < r->end) {
    const char *end = line_end(r->p, r->end);
    if (line_content(r->p, end) < end) return true;
    if (end == r->end) break;
    r->p = end + 1;
    r->line++;
  }
  return false;
}

/* Is this the start of a graph, rather than an op line? */
static bool begins_graph(const char *p, const char *end)
{
  qn__parser s = { .p = p, .end = end };
  qn__skip_space(&s);
  qn__span word = qn__read_word(&s);
  const char *after = s.p;
  qn__skip_space(&s);
  return ((qn__same(word, "in") || qn__same(word, "out")) && after < s.p) || (s.p < end && *s.p == '=');
}

/* The end of a problem: of its line, or for a graph not joined by "|" of the last line before a blank one. */
static const char *problem_end(const char *p, const char *end, bool graph)
{
  const char *stop = line_end(p, end);
  for (const char *c = p; c < stop && *c != '#' && *c != ';'; c++)
    if (*c == '|') return stop;
  while (graph && stop < end) {
    const char *next = stop + 1, *next_end = line_end(next, end);
    while (next < next_end && qn__is_space(*next)) next++;
    if (next == next_end) break;
    stop = next_end;
  }
  return stop;
}

qn_status qn_reader_next(qn_reader *r, qn_graph **graph_p, const char **settings_p, int *line_p)
{
  if (!r || !graph_p) return qn__fail(QN_BAD_ARGUMENT, "%s: is NULL", r ? "graph_p" : "reader");
  *graph_p = NULL;
  r->settings.len = 0;
  r->settings.failed = false;
  if (settings_p) *settings_p = "";
  bool found = find_problem(r);
  if (line_p) *line_p = r->line;
  if (!found) return QN_OK;
  bool graph = begins_graph(r->p, line_end(r->p, r->end));
  const char *stop = problem_end(r->p, r->end, graph);
  qn__parser s = { .p = r->p, .end = stop, .line_start = r->p, .line = r->line, .graph = graph };
  qn_status status = qn__read_problem(&s, &r->settings, graph_p);
  for (const char *c = r->p; c < stop; c++) r->line += *c == '\n';
  r->p = stop;
  if (!status && r->settings.failed) {
    qn_graph_destroy(*graph_p);
    *graph_p = NULL;
    status = qn__fail(QN_NO_MEMORY, "no memory for a problem's settings");
  }
  if (settings_p && r->settings.len) *settings_p = r->settings.s;
  return status;
}

qn_status qn_graph_parse(const char *lines, qn_graph **graph_p)
{
  if (!lines || !graph_p) return qn__fail(QN_BAD_ARGUMENT, "%s: is NULL", lines ? "graph_p" : "lines");
  qn_reader r = { .p = lines, .end = lines + strlen(lines), .line = 1 };
  qn_status status = qn_reader_next(&r, graph_p, NULL, NULL);
  if (!status && !*graph_p) status = qn__fail(QN_SYNTAX, "line %d, column 1: there is no problem here", r.line);
  else if (!status && find_problem(&r)) {
    qn_graph_destroy(*graph_p);
    *graph_p = NULL;
    status = qn__fail(QN_SYNTAX, "line %d, column 1: a second problem begins; one is expected", r.line);
  }
  qn__free(r.settings.s);
  return status;
}

/* ---- files -------------------------------------------------------------------------------- */

static qn_status new_reader(char *owned, size_t length, qn_reader **reader_p)
{
  qn_reader *r = owned ? qn__alloc(sizeof *r) : NULL;
  if (!r) {
    qn__free(owned);
    return qn__fail(QN_NO_MEMORY, "no memory for a reader of problems");
  }
  *r = (qn_reader){ .p = owned, .end = owned + length, .line = 1, .owned = owned };
  *reader_p = r;
  return QN_OK;
}

qn_status qn_reader_text(const char *text, qn_reader **reader_p)
{
  if (!text || !reader_p) return qn__fail(QN_BAD_ARGUMENT, "%s: is NULL", text ? "reader_p" : "text");
  *reader_p = NULL;
  return new_reader(qn__strdup(text), strlen(text), reader_p);
}

qn_status qn_reader_open(const char *path, qn_reader **reader_p)
{
  if (!path || !reader_p) return qn__fail(QN_BAD_ARGUMENT, "%s: is NULL", path ? "reader_p" : "path");
  *reader_p = NULL;
  bool standard = !strcmp(path, "-");
  FILE *file = standard ? stdin : fopen(path, "rb");
  if (!file) return qn__fail(QN_SYSTEM, "%s: %s", path, strerror(errno));
  char *text = NULL;
  size_t length = 0, room = 0, got = 1;
  bool memory = true;
  while (got && memory) {
    if (length == room) {
      char *grown = qn__realloc(text, room, 2 * room + 65536);
      memory = grown;
      if (!grown) break;
      text = grown;
      room = 2 * room + 65536;
    }
    got = fread(text + length, 1, room - length, file);
    length += got;
  }
  bool failed = ferror(file);
  int error = errno;
  if (!standard) fclose(file);
  if (failed || !memory) {
    qn__free(text);
    if (failed) return qn__fail(QN_SYSTEM, "%s: %s", path, strerror(error));
    return qn__fail(QN_NO_MEMORY, "no memory for %s", path);
  }
  return new_reader(text, length, reader_p);
}

void qn_reader_close(qn_reader *r)
{
  if (!r) return;
  qn__free(r->settings.s);
  qn__free(r->owned);
  qn__free(r);
}
