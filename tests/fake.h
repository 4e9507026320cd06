/* fake.h -- contexts on the backend of fake_backend.c, and what is planned there. */
#ifndef QUERN_TESTS_FAKE_H
#define QUERN_TESTS_FAKE_H
#include <stdio.h>
#include <string.h>
#include <quern/tools.h>
#include "tap.h"

static char plugin[4096], last_plan[8192];

static inline qn_context *context(const char *a, const char *b)
{
  qn_context *ctx = NULL;
  char backend[4200];
  snprintf(backend, sizeof backend, "backend=%s", plugin);
  const char *const options[] = { backend, a, b, NULL };
  if (qn_context_create(options, &ctx)) tap_note("%s", qn_last_error());
  return ctx;
}

/* The engines of a graph's plan, and how many parts; "" if it cannot be planned. */
static inline const char *plan(qn_context *ctx, const char *lines, int *parts, size_t *workspace)
{
  qn_graph *g;
  qn_plan *p;
  last_plan[0] = 0;
  *parts = 0;
  if (qn_graph_parse(lines, &g)) {
    tap_note("%s", qn_last_error());
    return last_plan;
  }
  if (!qn_plan_create(ctx, g, &p)) {
    qn_plan_print(p, last_plan, sizeof last_plan);
    *parts = qn_plan_parts(p);
    if (workspace) *workspace = qn_plan_workspace(p);
    qn_plan_destroy(p);
  }
  qn_graph_destroy(g);
  return last_plan;
}

static inline int line_has(const char *text, int line, const char *word)
{
  for (; line > 0 && text; line--) text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
  const char *end = text ? strchr(text, '\n') : NULL, *at = text ? strstr(text, word) : NULL;
  return at && end && at < end;
}

#endif
