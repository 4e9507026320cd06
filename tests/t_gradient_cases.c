/* t_gradient_cases.c -- every problem of the conformance cases as a loss: qn_graph_gradient gives a graph that reads back, and that the
 * CPU's engines take, or says which op's gradient is not known. */
#include <glob.h>
#include "buffers.h"
#include "tap.h"

enum { MOST_INPUTS = 400, LARGEST = 20000 };      /* elements of what is also planned */
typedef struct counts { int tried, given, planned, unknown, wrong; } counts;

static bool is_float(const qn_value *v) { return v->dtype >= QN_F64 && v->dtype <= QN_BF16; }

/* The problem with the sum of squares of its first float output as loss. False: it has none. */
static bool with_loss(const qn_graph *g, char *text, size_t bytes)
{
  qn_graph_view view = *qn_graph_inspect(g);
  qn_graph *graph = NULL;
  const char **name = calloc(view.n_values, sizeof *name);
  char *names = malloc(view.n_values * 16u), dims[200] = "";
  int32_t out = -1;
  for (uint32_t i = 0; i < view.n_values; i++) {
    snprintf(names + 16 * i, 16, "n%u", i);
    name[i] = names + 16 * i;
  }
  view.name = name;
  for (uint32_t i = view.n_ins; i < view.n_pointers && out < 0; i++)
    if (is_float(&view.value[view.pointer[i]]) && view.value[view.pointer[i]].rank) out = view.pointer[i];
  bool ok = out >= 0 && !qn_graph_make(&view, &graph);
  if (ok) {
    size_t at = 0;
    for (int k = 0; k < view.value[out].rank; k++)
      at += (size_t)snprintf(dims + at, sizeof dims - at, "%c%lld", k ? 'x' : '/', (long long)view.value[out].dim[k]);
    at = qn_graph_print(graph, text, bytes);
    snprintf(text + at, bytes - at, " | q = cast x=n%d y=f64%s | p = mul a=q b=q | out loss = reduce_sum x=p", (int)out, dims);
  }
  qn_graph_destroy(graph);
  free(name);
  free(names);
  return ok;
}

/* Does a plan of the CPU's engines have the whole graph? */
static bool is_planned(const qn_graph *g)
{
  qn_plan *plan = NULL;
  const bool ok = !qn_plan_create(ctx, g, &plan);
  qn_plan_destroy(plan);
  return ok;
}

static void check(const char *lines, counts *n)
{
  static char text[TEXT], again[TEXT];
  const char *wrt[MOST_INPUTS];
  qn_graph *g = NULL, *d = NULL, *read = NULL;
  int inputs = 0;
  double elements = 0;
  if (qn_graph_parse(lines, &g)) {
    tap_note("%s: %.200s", qn_last_error(), lines);
    n->wrong++;
    return;
  }
  const qn_graph_view *v = qn_graph_inspect(g);
  for (uint32_t i = 0; i < v->n_values; i++) elements += (double)qn_elements(&v->value[i]);
  for (uint32_t i = 0; i < v->n_ins && inputs < MOST_INPUTS; i++)
    if (is_float(&v->value[v->pointer[i]])) wrt[inputs++] = v->name[v->pointer[i]];
  for (int i = -1; i < inputs && inputs; i++) {         /* by all, and by each alone */
    const qn_status status = qn_graph_gradient(g, "loss", i < 0 ? wrt : &wrt[i], i < 0 ? inputs : 1, &d);
    const char *said = qn_last_error();
    n->tried++;
    if (!status) {
      const bool same = qn_graph_print(d, text, sizeof text) < sizeof text && !qn_graph_parse(text, &read)
                     && qn_graph_print(read, again, sizeof again) < sizeof again && !strcmp(text, again);
      const bool taken = elements > LARGEST || is_planned(d);
      n->given++;
      n->planned += elements <= LARGEST && taken;
      if (!same || !taken) tap_note("%s: %s: %.300s", same ? "reads back" : "reads back otherwise", qn_last_error(), text);
      n->wrong += !same || !taken;
    } else if (status == QN_UNSUPPORTED && (strstr(said, "is not known") || strstr(said, "a gradient has"))) n->unknown++;
    else if (!strstr(said, "does not depend on it") && !strstr(said, "which a later op reads")) {
      tap_note("%s: %.300s", said, lines);
      n->wrong++;
    }
    qn_graph_destroy(d);
    qn_graph_destroy(read);
    d = read = NULL;
  }
  qn_graph_destroy(g);
}

static void check_file(const char *path)
{
  static char lines[TEXT];
  const char *settings;
  qn_reader *reader;
  qn_graph *g;
  int line;
  counts n = { 0 };
  const bool ok = !qn_reader_open(path, &reader);
  while (ok && !qn_reader_next(reader, &g, &settings, &line) && g) {
    if (with_loss(g, lines, sizeof lines)) check(lines, &n);
    qn_graph_destroy(g);
  }
  if (ok) qn_reader_close(reader);
  tap_ok(ok && !n.wrong, "%s: of %d gradients %d are given, %d of them planned; %d are not known", strrchr(path, '/') + 1, n.tried, n.given,
         n.planned, n.unknown);
}

int main(void)
{
  static const char *const options[] = { "backend=cpu_ref", "threads=1", NULL };
  const char *srcdir = getenv("srcdir");
  char pattern[4096];
  glob_t found;
  if (qn_context_create(options, &ctx)) {
    printf("Bail out! %s\n", qn_last_error());
    return 1;
  }
  snprintf(pattern, sizeof pattern, "%s/conformance/cases/*.q", srcdir ? srcdir : ".");
  if (tap_ok(!glob(pattern, 0, NULL, &found) && found.gl_pathc > 20, "%s are there", pattern)) {
    for (size_t i = 0; i < found.gl_pathc; i++) check_file(found.gl_pathv[i]);
    globfree(&found);
  }
  qn_context_destroy(ctx);
  return tap_done();
}
