/* selected.c -- which engines a workload selects, on the live device or on a model of one that need not be here: how often each takes a
 * problem, how often it is chosen, and what would run in its place. Nothing is executed: an engine that no row selects has not shown
 * what it is for. */
#include <stdlib.h>
#include <string.h>
#include "bench.h"

enum { NAME = 96, COMMON = 4 };

typedef struct rival { char name[NAME]; int rows; } rival;
typedef struct entry {
  char   op[64], name[NAME];              /* op: of its table row; name: backend/engine */
  int    takes, chosen, alone, n_rivals, n_ratios, cap;
  rival  rivals[COMMON];
  double *ratio;                          /* estimate of the next best over its own, where both have one */
} entry;
typedef struct tally { entry *at; int n, cap; bool failed; } tally;

/* Of one part: the chosen engine and the best of the others that take as many ops. */
typedef struct part { int number, chosen, next; double estimate, next_estimate; char next_name[NAME]; } part;
typedef struct reading { tally *t; part now; } reading;

static int entry_of(tally *t, const qn_verdict *v)
{
  const uint32_t anchor = v->answer->engine->op;
  const qn_op_info *info = qn_op_find(anchor);            /* NULL: the engine serves a family */
  const char *op = info ? info->name : qn_family_name(anchor & ~QN_ANCHOR_FAMILY);
  char name[NAME];
  snprintf(name, sizeof name, "%s/%s", v->backend, v->engine);
  for (int i = 0; i < t->n; i++)
    if (!strcmp(t->at[i].name, name) && !strcmp(t->at[i].op, op))
      return i;
  if (t->n == t->cap) {
    int cap = t->cap ? 2 * t->cap : 64;
    entry *at = realloc(t->at, (size_t)cap * sizeof *at);
    if (!at)
      return -1;
    t->at = at;
    t->cap = cap;
  }
  entry *e = &t->at[t->n];
  *e = (entry){ 0 };
  snprintf(e->op, sizeof e->op, "%s", op);
  memcpy(e->name, name, sizeof name);
  return t->n++;
}

static void end_part(reading *r)
{
  part *p = &r->now;
  if (p->chosen >= 0) {
    entry *e = &r->t->at[p->chosen];
    int i = 0;
    e->chosen++;
    e->alone += p->next < 0;
    while (p->next >= 0 && i < e->n_rivals && strcmp(e->rivals[i].name, p->next_name))
      i++;
    if (p->next >= 0 && i < COMMON) {
      if (i == e->n_rivals)
        memcpy(e->rivals[e->n_rivals++].name, p->next_name, NAME);
      e->rivals[i].rows++;
    }
    if (p->next >= 0 && p->estimate > 0 && p->next_estimate > 0) {
      if (e->n_ratios == e->cap) {
        int cap = e->cap ? 2 * e->cap : 16;
        double *ratio = realloc(e->ratio, (size_t)cap * sizeof *ratio);
        if (!ratio) {
          r->t->failed = true;
          return;
        }
        e->ratio = ratio;
        e->cap = cap;
      }
      e->ratio[e->n_ratios++] = p->next_estimate / p->estimate;
    }
  }
  *p = (part){ .number = -1, .chosen = -1, .next = -1 };
}

/* Where estimates are absent, the order of the verdicts decides who is next. */
static void read_verdict(void *user, const qn_verdict *v)
{
  reading *r = user;
  if (v->part != r->now.number)
    end_part(r), r->now.number = v->part;
  const int i = v->answer && v->answer->engine ? entry_of(r->t, v) : -1;
  if (i < 0) {
    r->t->failed = true;
    return;
  }
  if (v->status)
    return;
  entry *e = &r->t->at[i];
  const double estimate = v->answer->estimate;
  e->takes++;
  if (v->chosen)
    r->now.chosen = i, r->now.estimate = estimate;
  else if (r->now.next < 0 || (estimate > 0 && (r->now.next_estimate <= 0 || estimate < r->now.next_estimate))) {
    r->now.next = i, r->now.next_estimate = estimate;
    memcpy(r->now.next_name, e->name, NAME);
  }
}

static int most_chosen_first(const void *a, const void *b)
{
  const entry *x = a, *y = b;
  const int by_op = strcmp(x->op, y->op);
  return by_op ? by_op : (x->chosen < y->chosen) - (x->chosen > y->chosen);
}

static void print_entry(entry *e)
{
  printf("%-24s %-32s %6d %6d", e->op, e->name, e->takes, e->chosen);
  if (e->n_ratios) {
    const double middle = median(e->ratio, e->n_ratios);
    printf(" %7.2fx %7.2fx", e->ratio[0], middle);
  } else printf(" %8s %8s", "-", "-");
  for (int i = 0; i < e->n_rivals; i++)
    printf("%s%s (%d)", i ? ", " : "  ", e->rivals[i].name, e->rivals[i].rows);
  if (e->alone)
    printf("%snobody else (%d)", e->n_rivals ? ", " : "  ", e->alone);
  printf("\n");
}

int selected_report(const case_list *list, const char *filter, const char *backend, const char *model, const char *const extra[])
{
  tally t = { 0 };
  char chosen[512];
  const char *options[8] = { NULL };
  int n = 0, rows = 0, refused = 0;
  snprintf(chosen, sizeof chosen, "backend=%s", backend);
  if (*backend)
    options[n++] = chosen;
  for (int i = 0; extra[i] && n < 7; i++)
    options[n++] = extra[i];
  for (int i = 0; i < list->n; i++) {
    if (!case_wanted(&list->at[i], filter))
      continue;
    reading r = { .t = &t, .now = { .number = -1, .chosen = -1, .next = -1 } };
    const qn_status status = qn_explain(options, model, list->at[i].graph, read_verdict, &r);
    end_part(&r);
    rows++;
    if (status == QN_UNSUPPORTED)
      refused++;
    else if (status) {
      fprintf(stderr, "quern-bench: --selected: %s\n", qn_last_error());
      t.failed = true;
      break;
    }
  }
  if (!t.failed) {
    qsort(t.at, (size_t)t.n, sizeof *t.at, most_chosen_first);
    printf("%-24s %-32s %6s %6s %8s %8s  next best (parts)\n", "op", "engine", "takes", "chosen", "least", "median");
    for (int i = 0; i < t.n; i++)
      print_entry(&t.at[i]);
    printf("%d problems%s%s; least, median: the next best engine's estimate over the chosen one's\n", rows, model ? " on " : "",
           model ? model : "");
    if (refused)
      printf("%d of them nobody takes\n", refused);
  }
  for (int i = 0; i < t.n; i++)
    free(t.at[i].ratio);
  free(t.at);
  return t.failed ? 2 : 0;
}
