/* golden.h -- problems with hand-computed results: rows of a table, and code to run and compare them. */
#ifndef QUERN_TESTS_GOLDEN_H
#define QUERN_TESTS_GOLDEN_H
#include <quern/kit.h>
#include <quern/tools.h>
#include <stdlib.h>
#include "tap.h"

/* in and out: the elements of each tensor in the order of roles, row-major, tensors separated by "|". */
typedef struct golden { const char *rule, *line, *in, *out; } golden;

enum { MAX_TENSORS = 16, MAX_BYTES = 4096 };

static unsigned char memory[MAX_TENSORS][MAX_BYTES] __attribute__((aligned(64)));

/* The address of v's i-th element, row-major. */
static unsigned char *element(unsigned char *base, const qn_value *v, int64_t i)
{
  int64_t offset = 0;
  for (int32_t d = v->rank - 1; d >= 0; d--) {
    offset += i % v->dim[d] * v->stride[d];
    i /= v->dim[d];
  }
  return base + offset * qn_kit_bytes(v->dtype);
}

/* Reads one number into `to`; NULL: none left before the next "|". */
static const char *scan(const char *text, uint32_t dtype, void *to)
{
  char *end;
  if (qn_is_integer(dtype)) qn_store_i64(to, dtype, strtoll(text, &end, 10));
  else qn_store_f64(to, dtype, strtod(text, &end));
  return end == text ? NULL : end;
}

static const char *next_tensor(const char *text)
{
  const char *bar = strchr(text, '|');
  return bar ? bar + 1 : "";
}

static double tolerance;                  /* for the table: relative; 0 if results are exact */

static int same(const void *got, const void *expected, uint32_t dtype)
{
  if (!qn_is_float(dtype)) return qn_load_i64(got, dtype) == qn_load_i64(expected, dtype);
  const double a = qn_load_f64(got, dtype), b = qn_load_f64(expected, dtype);
  return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance * fabs(b);
}

/* Checks the outputs, or describes in `why` the difference. */
static int check_outputs(const qn_graph_view *view, const char *out, char *why, size_t bytes)
{
  for (uint32_t k = view->n_ins; k < view->n_pointers; k++, out = next_tensor(out)) {
    const qn_value *v = &view->value[view->pointer[k]];
    const char *text = out;
    for (int64_t i = 0; i < qn_elements(v); i++) {
      unsigned char expected[8];
      text = scan(text, v->dtype, expected);
      if (!text) { snprintf(why, bytes, "the table has too few numbers for output %u", k - view->n_ins); return 0; }
      const unsigned char *got = element(memory[k], v, i);
      if (same(got, expected, v->dtype)) continue;
      snprintf(why, bytes, "output %u element %lld is %.17g, expected %.17g", k - view->n_ins, (long long)i,
               qn_load_f64(got, v->dtype), qn_load_f64(expected, v->dtype));
      return 0;
    }
    if (strspn(text, " ") != strcspn(text, "|")) { snprintf(why, bytes, "the table has too many numbers"); return 0; }
  }
  return 1;
}

/* Runs the row with these options; 0 and a sentence on failure. */
static int run_row(const golden *row, const char *const options[], char *why, size_t bytes)
{
  qn_context *ctx = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  int good = 0;
  snprintf(why, bytes, "%s", "");
  if (qn_context_create(options, &ctx) || qn_graph_parse(row->line, &graph) || qn_plan_create(ctx, graph, &plan)) {
    snprintf(why, bytes, "%s", qn_last_error());
    goto done;
  }
  const qn_graph_view *view = qn_graph_inspect(graph);
  void *pointers[MAX_TENSORS];
  const char *in = row->in;
  memset(memory, 0xa5, sizeof memory);                    /* so that unwritten elements show */
  for (uint32_t k = 0; k < view->n_pointers; k++) {
    const qn_value *v = &view->value[view->pointer[k]];
    pointers[k] = memory[k];
    if (k >= view->n_ins) {
      for (uint32_t j = 0; j < view->n_ins; j++)          /* in place: the input's memory */
        if (v->over == view->pointer[j]) pointers[k] = memory[j];
      continue;
    }
    for (int64_t i = 0; i < qn_elements(v); i++) {
      in = scan(in, v->dtype, element(memory[k], v, i));
      if (!in) { snprintf(why, bytes, "the table has too few numbers for input %u", k); goto done; }
    }
    in = next_tensor(in);
  }
  if (qn_plan_execute(ctx, plan, pointers) || qn_context_synchronize(ctx)) {
    snprintf(why, bytes, "%s", qn_last_error());
    goto done;
  }
  for (uint32_t k = view->n_ins; k < view->n_pointers; k++)
    if (pointers[k] != memory[k]) memcpy(memory[k], pointers[k], MAX_BYTES);
  good = check_outputs(view, row->out, why, bytes);
done:
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  qn_context_destroy(ctx);
  return good;
}

static void run_table(const char *name, const golden *row, size_t n, double within)
{
  tolerance = within;
  for (size_t i = 0; i < n; i++) {
    char pin[128], why[512];
    const char *const preferred[] = { "backend=cpu_ref", NULL }, *const oracle[] = { "backend=cpu_ref", pin, NULL };
    snprintf(pin, sizeof pin, "engine=%.*s=direct", (int)strcspn(row[i].line, " "), row[i].line);
    if (within == 0 && !tap_ok(run_row(&row[i], preferred, why, sizeof why), "%s: %s", name, row[i].rule))
      tap_note("%s: %s", row[i].line, why);
    if (!tap_ok(run_row(&row[i], oracle, why, sizeof why), "%s: %s (oracle)", name, row[i].rule)) tap_note("%s: %s", row[i].line, why);
  }
}
#define RUN(table, within) run_table(#table, table, sizeof table / sizeof *table, within)

#endif
