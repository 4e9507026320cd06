/* side.c -- what is compared: a backend, or one engine of it, with options, from the notation
 *   backend[/engine[:variant]] [option=value]...
 * backend may be a list (cudnn,cuda), a path, or one of the bench's own modules: null, openblas. */
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bench.h"

enum { MAX_OPTIONS = 24 };

bool own_module(const char *name, char *path, size_t bytes)
{
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n > 0) {                          /* in the build tree: beside the program or under libtool's .libs */
    self[n] = '\0';
    const char *dir = dirname(self), *form[] = { "%s/quern_%s.so", "%s/.libs/quern_%s.so" };
    for (int i = 0; i < 2; i++) {
      snprintf(path, bytes, form[i], dir, name);
      if (!access(path, R_OK))
        return true;
    }
  }
#ifdef BENCH_MODULES
  snprintf(path, bytes, BENCH_MODULES "/quern_%s.so", name);
  if (!access(path, R_OK))
    return true;
#endif
  return false;
}

static int complain(const side *s, const char *sentence)
{
  fprintf(stderr, "quern-bench: %s: %s\n", s->spec, sentence);
  return 2;
}

/* Splits "backend/engine" off the first word; a path is all backend. */
static void split_engine(side *s, char *word)
{
  s->backend = word;
  if (word[0] == '/')
    return;
  char *slash = strchr(word, '/');
  if (slash) {
    *slash = '\0';
    s->engine = slash + 1;
    s->engine_backend = word;
  }
}

int side_open(side *s, const char *spec, const char *const extra[])
{
  const char *options[2 * MAX_OPTIONS + 1];
  char path[4200], backend[4300];
  int n = 0;
  memset(s, 0, sizeof *s);
  s->spec = *spec ? spec : "default";
  s->words = strdup(spec);
  if (!s->words)
    return complain(s, "no memory");
  for (int i = 0; extra && extra[i] && n < MAX_OPTIONS; i++)
    options[n++] = extra[i];
  char *save, *word = strtok_r(s->words, " ", &save);
  if (word && !strchr(word, '=')) {
    split_engine(s, word);
    word = strtok_r(NULL, " ", &save);
  }
  for (; word; word = strtok_r(NULL, " ", &save)) {
    if (s->engine && !strncmp(word, "engine=", 7))
      return complain(s, "an engine is named twice: behind the backend's name, and by engine=");
    if (!strchr(word, '='))
      return complain(s, "after the backend come option=value pairs, as in \"cuda math=tf32\"");
    if (n == 2 * MAX_OPTIONS - 1)
      return complain(s, "too many options");
    options[n++] = word;
  }
  if (s->backend) {
    bool own = (!strcmp(s->backend, "null") || !strcmp(s->backend, "openblas")) &&
               own_module(s->backend, path, sizeof path);
    snprintf(backend, sizeof backend, "backend=%s", own ? path : s->backend);
    options[n++] = backend;
  }
  options[n] = NULL;
  if (qn_context_create(options, &s->ctx))
    return complain(s, qn_last_error());
  return 0;
}

void side_close(side *s)
{
  qn_context_destroy(s->ctx);
  free(s->words);
  memset(s, 0, sizeof *s);
}

/* ---- pinning the engine for a case ---------------------------------------------------------- */

typedef struct search {
  const side *s;
  const qn_node *op;
  size_t name_bytes;                    /* of the engine's name without variant */
  bool found;
} search;

static void look_in(void *user, const qn_backend_info *b)
{
  search *q = user;
  if (!b->table || strcmp(b->name, q->s->engine_backend))
    return;
  const qn_engine *row;
  for (int i = 0; (row = qn_backend_engine(b->table, i)); i++)
    if (strlen(row->name) == q->name_bytes && !strncmp(row->name, q->s->engine, q->name_bytes) &&
        (row->op == q->op->op || row->op == (q->op->family | QN_ANCHOR_FAMILY)))
      q->found = true;
}

/* Is it an element of the list? A match at the end is not enough: softmax=X ends log_softmax=X. */
static bool has_pin(const char *list, const char *pin, size_t bytes)
{
  for (; *list; list += *list == ',') {
    size_t item = strcspn(list, ",");
    if (item == bytes && !strncmp(list, pin, bytes))
      return true;
    list += item;
  }
  return false;
}

qn_status side_pin(side *s, const qn_graph_view *g, char *why, size_t bytes)
{
  char pins[1024] = "";
  size_t used = 0;
  if (!s->engine)
    return QN_OK;
  for (uint32_t i = 0; i < g->n_ops; i++) {
    const char *op = qn_op_find(g->op[i].op)->name;
    char pin[256];
    int n = snprintf(pin, sizeof pin, "%s=%s/%s", op, s->engine_backend, s->engine);
    if (has_pin(pins, pin, (size_t)n))
      continue;
    search q = { s, &g->op[i], strcspn(s->engine, ":"), false };
    qn_each_backend(look_in, &q);
    if (q.found && used + (size_t)n + 2 < sizeof pins)
      used += (size_t)snprintf(pins + used, sizeof pins - used, "%s%s", used ? "," : "", pin);
  }
  if (!used) {
    snprintf(why, bytes, "%s has no engine %s for this", s->engine_backend, s->engine);
    return QN_UNSUPPORTED;
  }
  qn_status status = qn_context_set(s->ctx, "engine", pins);
  if (status)
    snprintf(why, bytes, "%s", qn_last_error());
  return status;
}
