/* buffers.h -- memory for the pointers of a graph, filled by a few words for each input; for tests that run graphs. */
#ifndef QUERN_TESTS_BUFFERS_H
#define QUERN_TESTS_BUFFERS_H
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <quern/graph.h>
#include <quern/kit.h>
#include <quern/tools.h>

enum { MOST = 48, TEXT = 1 << 16 };       /* pointers of a graph; characters of its lines */
static qn_context *ctx;                   /* the test's */

typedef struct buffers {
  int   n, ins;
  void *p[MOST];
  const qn_value *value[MOST];
  const char *name[MOST];
} buffers;

static inline double chance(uint64_t *state)
{
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 40) / (double)(1 << 24);
}

static inline void store(const buffers *b, int i, int64_t at, double x)
{
  const uint32_t dtype = b->value[i]->dtype;
  qn_store_f64((char *)b->p[i] + at * (int64_t)qn_dtype_bytes(dtype), dtype, x);
}

static inline void fill(const buffers *b, int i, const char *values, uint64_t *state)
{
  const qn_value *v = b->value[i];
  const bool real = v->dtype <= QN_BF16;
  const int64_t n = (int64_t)(qn_extent_bytes(v) / qn_dtype_bytes(v->dtype));
  const size_t length = strlen(b->name[i]);
  const char *how = "";
  for (const char *p = values + strspn(values, " "); *p; p += strcspn(p, " "), p += strspn(p, " "))
    if (!strncmp(p, b->name[i], length) && (p[length] == ':' || p[length] == '=')) how = p + length;
  const char *range = *how == ':' ? strstr(how, "..") : NULL;
  char first[24] = "";
  if (range) snprintf(first, sizeof first, "%.*s", (int)(range - how - 1), how + 1);
  const double least = strtod(first, NULL), most = range ? strtod(range + 2, NULL) : 0;
  for (int64_t at = 0; at < n; at++) {
    double x = chance(state);
    if (*how == '=' || *how == ',') {
      char *end;
      x = strtod(++how, &end);
      how = end;
    } else if (real && !strncmp(how, ":positive", 9)) x = 0.4 + x;
    else if (range) x = real ? least + x * (most - least) : floor(least + x * (most - least + 1));
    else if (real) x = (x < 0.5 ? -1 : 1) * (0.2 + 0.8 * chance(state));
    else x = x < 0.5;
    store(b, i, at, x);
  }
}

/* What `values` says of inputs: NAME:positive, NAME:LEAST..MOST or NAME=number,number,...; else floats of magnitude 0.2 to 1 and either
 * sign, no two alike, and integers 0 and 1.
 *
 * Memory for each pointer of the graph; those that `from` has under the same name hold what they hold there. */
static inline bool prepare(buffers *b, const qn_graph *g, const buffers *from, const char *values)
{
  const qn_graph_view *v = qn_graph_inspect(g);
  uint64_t state = 12345;
  *b = (buffers){ .n = (int)v->n_pointers, .ins = (int)v->n_ins };
  if (b->n > MOST) return false;
  for (int i = 0; i < b->n; i++) {
    b->value[i] = &v->value[v->pointer[i]];
    b->name[i] = v->name[v->pointer[i]];
    const size_t bytes = (size_t)qn_extent_bytes(b->value[i]);
    if (posix_memalign(&b->p[i], 64, bytes + 64)) return false;
    memset(b->p[i], 0, bytes + 64);
    if (i < b->ins) fill(b, i, values, &state);
    for (int k = 0; from && i < b->ins && k < from->ins; k++)
      if (!strcmp(from->name[k], b->name[i])) memcpy(b->p[i], from->p[k], bytes);
  }
  return true;
}

static inline void release(buffers *b)
{
  for (int i = 0; i < b->n; i++) free(b->p[i]);
}

static inline int named(const buffers *b, const char *name)
{
  for (int i = 0; i < b->n; i++)
    if (!strcmp(b->name[i], name)) return i;
  return -1;
}

/* Its element, in memory. */
static inline double held(const buffers *b, const char *name, int64_t at)
{
  const int i = named(b, name);
  if (i < 0) return NAN;
  return qn_load_f64((char *)b->p[i] + at * (int64_t)qn_dtype_bytes(b->value[i]->dtype), b->value[i]->dtype);
}

static inline bool execute(const qn_graph *g, const buffers *b)
{
  qn_plan *plan = NULL;
  bool ok = !qn_plan_create(ctx, g, &plan) && !qn_plan_execute(ctx, plan, b->p) && !qn_context_synchronize(ctx);
  qn_plan_destroy(plan);
  return ok;
}

static inline int split(char *words, const char **word)
{
  int n = 0;
  for (char *p = strtok(words, " "); p && n < MOST; p = strtok(NULL, " ")) word[n++] = p;
  return n;
}

static inline qn_status differentiate(const qn_graph *g, const char *loss, const char *wrt, qn_graph **d)
{
  char words[200];
  const char *word[MOST];
  snprintf(words, sizeof words, "%s", wrt);
  const int n = split(words, word);
  return qn_graph_gradient(g, loss, word, n, d);
}

#endif
