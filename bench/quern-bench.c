/* quern-bench.c -- speed of one backend or engine, or of two alternately, on problem lines. Options, and the loop over cases. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "bench.h"
#include "../info/output.h"
#include "../info/start_ranks.h"

static const char doc[] =
  "Measure a backend or an engine, or two of them in turn, on problem lines.\v"
  "SIDE is backend[/engine[:variant]] [option=value]..., for instance \"cpu_ref\", \"cuda/wgmma:128x256_c2\" or "
  "\"cuda engine=matmul=wgmma,any math=tf32\"; the backends null and openblas are the bench's own. Each execution finds its "
  "inputs in memory, not in the last-level cache, unless 24 sets of them fit into that. A row gives the median time, the share of what the device can do at "
  "best (a large copy or a large matmul, measured first, whichever binds), and the speed of the first side over the second; spread is the "
  "distance between the samples' quartiles, of the median. Waiting OpenMP threads sleep (OMP_WAIT_POLICY=passive) "
  "unless the variable is set; the last line says if others used the processors.\n\n"
  "Exit status: 0 all was measured (what --vs refuses is no failure); 1 something failed; 2 the options or a file are wrong, or "
  "standard output cannot be written.";

enum { KEY_VS = 1000, KEY_CASE, KEY_CSV, KEY_PLOT, KEY_OVERHEAD, KEY_THREADS, KEY_TIME, KEY_MATH, KEY_REPLAY, KEY_LAUNCHES,
       KEY_FIRST, KEY_FILTER, KEY_MODEL, KEY_TUNE, KEY_CLIFFS, KEY_SEED, KEY_SELECTED, KEY_RANKS, KEY_DIRECT, KEY_OVERLAP, KEY_UP_TO };

static const struct argp_option option_table[] = {
  { "backend",      'b',          "SIDE", 0, "what to measure (default: what QUERN_BACKEND says)", 0 },
  { "vs",           KEY_VS,       "SIDE", 0, "what to compare it with", 0 },
  { "workload",     'w',          "FILE", 0, "problem lines; may be repeated; - is standard input", 0 },
  { "case",         KEY_CASE,     "LINE", 0, "one problem line; may be repeated", 0 },
  { "replay",       KEY_REPLAY,   "FILE", 0,
    "a trace (QUERN_TRACE): equal problems are measured once, and weighed by how many plans of them were run", 0 },
  { "filter",       KEY_FILTER,   "TEXT", 0, "only problems whose name or line contains TEXT", 0 },
  { "csv",          KEY_CSV,      "FILE", 0, "write a row for each problem", 0 },
  { "plot",         KEY_PLOT,     "FILE", 0, "draw the speeds (with --vs) or shares as .svg or .png, by gnuplot", 0 },
  { "threads",      KEY_THREADS,  "N",    0, "threads of both sides' contexts, on a CPU", 0 },
  { "math",         KEY_MATH,     "MATH", 0, "strict, f32, tf32 or fast, of both sides", 0 },
  { "device-model", KEY_MODEL,    "M",    0, "both sides on the device narrowed to that model, such as a100", 0 },
  { "time",         KEY_TIME,     "S",    0, "seconds for one problem, both sides together (default 0.5)", 0 },
  { "tune",         KEY_TUNE,     "FILE", 0,
    "first measure every willing engine and variant of --backend, and remember the fastest in FILE", 0 },
  { "cliffs",       KEY_CLIFFS,   "N",    0,
    "measure N random ordinary problems, and list those furthest from what the device can do, with the refusals of other engines", 0 },
  { "selected",     KEY_SELECTED, NULL,   0,
    "measure nothing: count which engines are selected on the device, or on the one of --device-model, and who would be next", 0 },
  { "seed",         KEY_SEED,     "N",    0, "of --cliffs (default 1)", 0 },
  { "ranks",        KEY_RANKS,    "N",    0,
    "measure collectives instead, in N processes that are a group (0: in the group that a launcher's variables say)", 0 },
  { "direct",       KEY_DIRECT,   NULL,   0, "with --ranks, of the backend nccl: beside NCCL called directly", 0 },
  { "overlap",      KEY_OVERLAP,  NULL,   0, "with --ranks: instead, the share of all_reduces that a backward half hides", 0 },
  { "up-to",        KEY_UP_TO,    "BYTES", 0, "the largest message of --ranks (default 67108864)", 0 },
  { "launches",     KEY_LAUNCHES, NULL,   0, "execute one by one, launch cost included, not as a recording", 0 },
  { "overhead",     KEY_OVERHEAD, NULL,   0, "measure the cost of dispatch, with an engine that does nothing", 0 },
  { "first-result", KEY_FIRST,    "B",    OPTION_HIDDEN, "compute one small convolution and exit", 0 },
  { 0 }
};

typedef struct settings {
  const char *side[2];
  case_list   cases;
  const char *csv, *plot, *filter, *first, *tune;
  char        threads[32], math[32], model[48];
  measure_options measure;
  bool        overhead, selected, direct, overlaps;
  long        cliffs, seed, ranks, up_to;         /* ranks: -1: no collectives */
  int         bad;                      /* exit status after a bad file or line; else 0 */
} settings;

static void worse(settings *s, int status)
{
  if (status > s->bad)
    s->bad = status;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  settings *s = state->input;
  char *end;
  switch (key) {
  case 'b':          s->side[0] = text; break;
  case KEY_VS:       s->side[1] = text; break;
  case 'w':          worse(s, cases_from_file(&s->cases, text, false)); break;
  case KEY_CASE:     worse(s, cases_from_text(&s->cases, text)); break;
  case KEY_REPLAY:   worse(s, cases_from_file(&s->cases, text, true)); break;
  case KEY_FILTER:   s->filter = text; break;
  case KEY_CSV:      s->csv = text; break;
  case KEY_PLOT:     s->plot = text; break;
  case KEY_THREADS:  snprintf(s->threads, sizeof s->threads, "threads=%s", text); break;
  case KEY_MATH:     snprintf(s->math, sizeof s->math, "math=%s", text); break;
  case KEY_TUNE:     s->tune = text; break;
  case KEY_MODEL:    snprintf(s->model, sizeof s->model, "device_model=%s", text); break;
  case KEY_LAUNCHES: s->measure.launches = true; break;
  case KEY_OVERHEAD: s->overhead = true; break;
  case KEY_SELECTED: s->selected = true; break;
  case KEY_DIRECT:   s->direct = true; break;
  case KEY_OVERLAP:  s->overlaps = true; break;
  case KEY_FIRST:    s->first = text; break;
  case KEY_RANKS:
  case KEY_UP_TO:
    *(key == KEY_RANKS ? &s->ranks : &s->up_to) = strtol(text, &end, 10);
    if (*end || end == text || s->ranks > 256 || (key == KEY_RANKS ? s->ranks < 0 : s->up_to < 1024))
      argp_error(state, "%s wants a number, not %s", key == KEY_RANKS ? "--ranks" : "--up-to", text);
    break;
  case KEY_CLIFFS:
  case KEY_SEED:
    *(key == KEY_SEED ? &s->seed : &s->cliffs) = strtol(text, &end, 10);
    if (*end || end == text || (key == KEY_CLIFFS && (s->cliffs < 1 || s->cliffs > 1000000)))
      argp_error(state, "%s wants a number, not %s", key == KEY_SEED ? "--seed" : "--cliffs", text);
    break;
  case KEY_TIME:
    s->measure.seconds = strtod(text, &end);
    if (*end || !(s->measure.seconds > 0 && s->measure.seconds <= 1e6))
      argp_error(state, "--time wants a number of seconds above 0, at most 1000000, not %s", text);
    break;
  case ARGP_KEY_ARG:
    argp_error(state, "%s: problems come by --case LINE or --workload FILE", text);
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static void print_version(FILE *f, struct argp_state *state)
{
  (void)state;
  fprintf(f, "quern-bench (Quern) %s\n", qn_version());
}

/* The op that a row is counted under: the first contraction, else the first that is not pointwise, else the last. */
static const qn_node *anchor(const qn_graph_view *g)
{
  const qn_node *best = &g->op[g->n_ops - 1];
  for (uint32_t i = g->n_ops; i-- > 0;)
    if (g->op[i].family != QN_FAMILY_POINTWISE && best->family != QN_FAMILY_CONTRACTION)
      best = &g->op[i];
  for (uint32_t i = g->n_ops; i-- > 0;)
    if (g->op[i].family == QN_FAMILY_CONTRACTION)
      best = &g->op[i];
  return best;
}

static void progress(const settings *s, int i, const bench_case *c)
{
  if (!isatty(2) || isatty(1))          /* rows printed to the terminal show progress */
    return;
  if (c)
    fprintf(stderr, "\r\033[K[%d/%d] %.60s", i + 1, s->cases.n, c->name);
  else
    fprintf(stderr, "\r\033[K");
}

static bool any_wanted(const settings *s)
{
  for (int i = 0; i < s->cases.n; i++)
    if (case_wanted(&s->cases.at[i], s->filter))
      return true;
  return false;
}

/* Can the tune cache be written there, as far as can be checked in advance? Missing folders are created; non-folders are left alone. */
static bool tunable(const char *path)
{
  static const char begins[] = "quern-tune ";
  char word[sizeof begins] = "";
  struct stat st;
  if (stat(path, &st))
    return true;
  if (!writable("--tune", path))
    return false;
  FILE *f = S_ISREG(st.st_mode) ? fopen(path, "r") : NULL;
  bool good = f && (!fgets(word, sizeof word, f) || !strcmp(word, begins));
  if (f)
    fclose(f);
  if (!good)
    fprintf(stderr, "quern-bench: --tune: %s: is no tune cache\n", path);
  return good;
}

static int run_cases(settings *s, side *const sides[], int n, const char *const extra[])
{
  row *rows = calloc((size_t)s->cases.n, sizeof *rows);
  ceiling limits = { 0 };
  int n_rows = 0, rc = 0;
  busy machine;
  busy_begin(&machine);
  if (!rows) {
    fprintf(stderr, "quern-bench: no memory\n");
    return 1;
  }
  printf("device: %s\n", qn_context_device(sides[0]->ctx));
  for (int i = 0; i < s->cases.n; i++) {
    if (!case_wanted(&s->cases.at[i], s->filter))
      continue;
    problem_cost cost = cost_of(qn_graph_inspect(s->cases.at[i].graph));
    ceiling_for(&limits, sides[0], &cost, extra);
  }
  report_head((const side *const *)sides, n);
  for (int i = 0; i < s->cases.n; i++) {
    const bench_case *c = &s->cases.at[i];
    if (!case_wanted(c, s->filter))
      continue;
    const qn_graph_view *g = qn_graph_inspect(c->graph);
    const qn_node *op = anchor(g);
    row *r = &rows[n_rows++];
    progress(s, i, c);
    *r = (row){ .c = c, .op = qn_op_find(op->op)->name, .family = qn_family_name(op->family), .cost = cost_of(g), .n = n };
    r->floor_ns = ceiling_ns(&limits, &r->cost, &r->binds);
    measure(sides, n, c, &s->measure, r->r, &r->ratio, &r->sets);
    progress(s, i, NULL);
    report_row(r);
    if (r->r[0].status || (n == 2 && r->r[1].status && r->r[1].status != QN_UNSUPPORTED))
      rc = 1;
  }
  report_groups(rows, n_rows, (const side *const *)sides, n);
  if (s->cliffs)
    cliffs_report(rows, n_rows, sides[0]);
  const bool hosted = s->measure.launches || !strcmp(qn_context_describe(sides[0]->ctx)->kind, "cpu");     /* a GPU has its own clock */
  if (hosted && busy_others(&machine) > 0.1)
    printf("\nthe machine is busy: others used %.1f of its %d processors meanwhile; trust ratios of one row, and only where spreads are small\n",
           busy_others(&machine), machine.processors);
  if (s->csv && !report_csv(s->csv, rows, n_rows, (const side *const *)sides, n))
    rc = 1;
  if (s->plot && n_rows && !plot(s->plot, rows, n_rows, (const side *const *)sides, n))
    rc = 1;
  free(rows);
  return rc;
}

int main(int argc, char **argv)
{
  settings s = { .measure = { 0, false }, .seed = 1, .ranks = -1, .up_to = 64 << 20 };
  const char *extra[4] = { NULL };
  side opened[2], *sides[2] = { &opened[0], &opened[1] };
  int n = 0, n_extra = 0;

  threads_sleep(argv);
  output_guard();
  argp_program_version_hook = print_version;
  argp_err_exit_status = 2;
  argp_parse(&(struct argp){ option_table, parse_option, NULL, doc, NULL, NULL, NULL }, argc, argv, 0, NULL, &s);
  if (s.first)
    return first_result(*s.first ? s.first : NULL);
  if (s.overhead)
    return overhead(s.side[0]);
  if (s.ranks == 0)
    return bench_ranks(s.side[0], s.filter, (size_t)s.up_to, s.direct, s.overlaps);
  if (s.ranks > 0) {
    char **more = calloc((size_t)argc + 2, sizeof *more);       /* the last option counts */
    if (!more)
      return 1;
    memcpy(more, argv, (size_t)argc * sizeof *more);
    more[argc] = "--ranks=0";
    return start_ranks("quern-bench", (int)s.ranks, more);
  }
  if (!s.measure.seconds)
    s.measure.seconds = s.cliffs ? 0.02 : 0.5;
  if (!s.bad && !s.cases.n && !s.cliffs) {
    fprintf(stderr, "quern-bench: nothing to measure: give --workload FILE, --case LINE or --cliffs N (or --overhead)\n");
    s.bad = 2;
  }
  if (!s.bad && !s.cliffs && !any_wanted(&s)) {
    fprintf(stderr, "quern-bench: nothing to measure: no name or line of %d problems contains \"%s\"\n", s.cases.n, s.filter);
    s.bad = 2;
  }
  if (!s.bad && ((s.csv && !writable("--csv", s.csv)) || (s.plot && !plottable(s.plot)) || (s.tune && !tunable(s.tune))))
    s.bad = 2;                          /* fail now, not after an hour of measuring */
  if (s.bad) {
    cases_free(&s.cases);
    return s.bad;
  }
  if (s.threads[0])
    extra[n_extra++] = s.threads;
  if (s.math[0])
    extra[n_extra++] = s.math;
  if (s.selected) {
    int rc = selected_report(&s.cases, s.filter, s.side[0] ? s.side[0] : "", s.model[0] ? strchr(s.model, '=') + 1 : NULL, extra);
    cases_free(&s.cases);
    return rc;
  }
  if (s.model[0])
    extra[n_extra++] = s.model;

  int rc = side_open(&opened[n++], s.side[0] ? s.side[0] : "", extra);
  if (!rc && s.cliffs)
    rc = cliffs_draw(&s.cases, &opened[0], (int)s.cliffs, (uint64_t)s.seed);
  if (!rc && s.tune && (qn_context_set(opened[0].ctx, "tune", "measure") || qn_context_set(opened[0].ctx, "tune_cache", s.tune))) {
    fprintf(stderr, "quern-bench: --tune: %s\n", qn_last_error());
    rc = 2;
  }
  if (!rc && s.side[1])
    rc = side_open(&opened[n++], s.side[1], extra);
  if (!rc)
    rc = run_cases(&s, sides, n, extra);
  if (!rc && s.tune && access(s.tune, R_OK)) {
    fprintf(stderr, "quern-bench: --tune: nothing was remembered in %s\n", s.tune);
    rc = 1;
  }
  while (n-- > 0)
    side_close(&opened[n]);
  cases_free(&s.cases);
  return rc;
}
