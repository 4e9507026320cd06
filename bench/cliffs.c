/* cliffs.c -- how far ordinary problems are from what the device allows: draws them (ordinary.c), and lists the worst with the
 * refusals of the engines that did not take them. Needs no incumbent to compare with. */
#include <stdlib.h>
#include <string.h>
#include "bench.h"

enum { DRAWS = 200, SHOWN = 60, REFUSALS = 3 };
#define LAUNCH_NS 2000                    /* of a kernel, which the least time includes: a problem that is only a launch is no cliff */
#define SLOW_NS   20e3                    /* problems above this are listed, and counted */
#define FAR       12

/* Small enough to be run thousands of times. */
static bool moderate(const qn_graph_view *g, bool gpu)
{
  problem_cost cost = cost_of(g);
  return cost.bytes <= (gpu ? 1e9 : 6.4e7) && cost.flops <= (gpu ? 1e12 : 2e9);
}

int cliffs_draw(case_list *list, const side *s, int n, uint64_t seed)
{
  const bool gpu = strcmp(qn_context_describe(s->ctx)->kind, "cpu") != 0;
  uint64_t state = seed;
  char line[1024];
  for (int i = 0; i < n; i++)
    for (int draw = 0; draw < DRAWS; draw++) {            /* until a line breaks no rule of its op */
      qn_graph *graph;
      ordinary_line(i % ordinary_count(), &state, line, sizeof line);
      if (qn_graph_parse(line, &graph))
        continue;
      const bool fits = moderate(qn_graph_inspect(graph), gpu);
      qn_graph_destroy(graph);
      if (!fits)
        continue;
      if (cases_from_text(list, line))
        return 1;
      break;
    }
  return 0;
}

static bool slow(const row *r) { return !r->r[0].status && r->r[0].ns > SLOW_NS; }

static double distance(const row *r) { return r->r[0].status || r->floor_ns <= 0 ? 0 : r->r[0].ns / (r->floor_ns + LAUNCH_NS); }

static int furthest_first(const void *a, const void *b)
{
  double x = slow(a) ? distance(a) : 0, y = slow(b) ? distance(b) : 0;
  return (x < y) - (x > y);
}

typedef struct refusals { int n; } refusals;

static void print_refusal(void *user, const qn_verdict *v)
{
  refusals *r = user;
  if (v->status != QN_UNSUPPORTED || !v->answer || r->n++ >= REFUSALS)
    return;
  const qn_refusal *why = &v->answer->refusal;
  printf("        %s/%s wants %s%s%s%s%s\n", v->backend, v->engine, why->rule, why->tensor[0] ? ": " : "", why->tensor,
         why->seen[0] ? " is " : "", why->seen);
}

void cliffs_report(row *rows, int n_rows, const side *s)
{
  int generic = 0, far = 0;
  char backend[512];
  const char *const options[] = { s->backend ? backend : NULL, NULL };
  snprintf(backend, sizeof backend, "backend=%s", s->backend ? s->backend : "");
  qsort(rows, (size_t)n_rows, sizeof *rows, furthest_first);
  printf("\nfurthest from the ceiling, of those above 20 us (time over the least that a copy's or a matmul's rate and a launch allow)\n");
  for (int i = 0; i < n_rows; i++) {
    const row *r = &rows[i];
    generic += slow(r) && r->r[0].class_ != QN_CLASS_TUNED;
    far += slow(r) && distance(r) > FAR;
    if (i >= SHOWN || !slow(r))
      continue;
    refusals shown = { 0 };
    printf("%8.1fx %10.2f us  %s  %s\n", distance(r), r->r[0].ns / 1e3, r->r[0].engine, r->c->text);
    if (r->r[0].class_ != QN_CLASS_TUNED)
      qn_explain(options, NULL, r->c->graph, print_refusal, &shown);
  }
  printf("%d problems on %s; of those above 20 us %d are further than 12 times from the ceiling, %d by a generic engine\n", n_rows,
         s->spec, far, generic);
}
