/* ranks.c -- `--ranks N`: the collectives, over sizes, each rank in a process.
 *
 * A row is the time of one call, the slowest rank's, and the bandwidth that each rank's link to the others must have had:
 *   all_reduce 2 (P - 1) / P      reduce_scatter, all_gather, all_to_all (P - 1) / P      broadcast 1      times bytes / time
 * where bytes are those of the larger of x and y, as in nccl-tests. Calls follow one another on the stream; where the device captures,
 * the same calls recorded and replayed are a second column. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench.h"

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct place { qn_context *ctx; qn_group *group; int rank, size; } place;

/* The slowest rank's time; -1: the group has failed. */
static double slowest(const place *p, double t)
{
  double *all = calloc((size_t)p->size, sizeof *all), most = -1;
  if (all && !qn_group_exchange(p->group, &t, sizeof t, all))
    for (int r = 0; r < p->size; r++) most = all[r] > most ? all[r] : most;
  free(all);
  return most;
}

/* Seconds of one of n executions, or of one of n in a replay. */
static double run(const place *p, const qn_plan *plan, void *const *pointer, qn_recording *recording, int n)
{
  qn_status status = QN_OK;
  if (qn_group_exchange(p->group, NULL, 0, NULL)) return -1;
  const double since = now();
  if (recording) status = qn_recording_replay(p->ctx, recording);
  else
    for (int i = 0; i < n && !status; i++) status = qn_plan_execute(p->ctx, plan, pointer);
  if (!status) status = qn_context_synchronize(p->ctx);
  return status ? -1 : slowest(p, (now() - since) / n);
}

static int ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Median of five. */
static double middle(const place *p, const qn_plan *plan, void *const *pointer, qn_recording *recording, int n)
{
  double t[5];
  for (int i = 0; i < 5; i++)
    if ((t[i] = run(p, plan, pointer, recording, n)) < 0) return -1;
  qsort(t, 5, sizeof *t, ascending);
  return t[2];
}

/* About 20 ms of calls, and how many. All ranks use the slowest one's time. */
static int calls(const place *p, const qn_plan *plan, void *const *pointer)
{
  double t = run(p, plan, pointer, NULL, 1);
  for (int i = 0; i < 3 && t >= 0; i++) t = run(p, plan, pointer, NULL, 2);
  return t < 0 ? -1 : t > 0.01 ? 2 : t < 2e-5 ? 1000 : (int)(0.02 / t);
}

static double replayed(const place *p, const qn_plan *plan, void *const *pointer, int n)
{
  qn_recording *recording = NULL;
  double t = -1;
  qn_status status = qn_record_begin(p->ctx), ended;
  if (status) return -1;
  for (int i = 0; i < n && !status; i++) status = qn_plan_execute(p->ctx, plan, pointer);
  ended = qn_record_end(p->ctx, &recording);
  if (!status && !ended && run(p, plan, pointer, recording, n) >= 0) t = middle(p, plan, pointer, recording, n);
  qn_recording_destroy(recording);
  return t;
}

static int fail(const char *line)
{
  fprintf(stderr, "quern-bench: %s: %s\n", line, qn_last_error());
  return 1;
}

static int measure_one(const place *p, const char *op, const char *text, double part, size_t bytes, void *x, void *y)
{
  char line[160];
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  const long long n = (long long)(bytes / 4);
  snprintf(line, sizeof line, text, !strcmp(op, "all_gather") ? n / p->size : n, p->size);
  void *const pointer[] = { x, y };
  if (qn_graph_parse(line, &graph) || qn_plan_create(p->ctx, graph, &plan)) {
    qn_graph_destroy(graph);
    return fail(line);
  }
  const int many = calls(p, plan, pointer);
  double live = many > 0 ? middle(p, plan, pointer, NULL, many) : -1;
  double again = live > 0 && strcmp(qn_context_describe(p->ctx)->kind, "cpu") ? replayed(p, plan, pointer, many) : -1;
  if (live > 0 && !p->rank) {
    char engine[64] = "";
    qn_plan_print(plan, engine, sizeof engine);
    engine[strcspn(engine, " ")] = 0;
    printf("%-15s %11zu %11.2f %9.3f", op, bytes, 1e6 * live, part * (double)bytes / live / 1e9);
    if (again > 0) printf(" %11.2f %9.3f", 1e6 * again, part * (double)bytes / again / 1e9);
    printf("   %s\n", engine);
    fflush(stdout);
  }
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  return live > 0 ? 0 : fail(line);
}

int bench_ranks(const char *backend, const char *filter, size_t up_to)
{
  /* the bandwidth's factor: once + parts (P - 1) / P */
  static const struct { const char *op, *line; double once, parts; } row[] = {
    { "all_reduce", "all_reduce x=f32/%lld", 0, 2 }, { "reduce_scatter", "reduce_scatter x=f32/%lld ranks=%d", 0, 1 },
    { "all_gather", "all_gather x=f32/%lld ranks=%d", 0, 1 }, { "all_to_all", "all_to_all x=f32/%lld ranks=%d", 0, 1 },
    { "broadcast", "broadcast x=f32/%lld", 1, 0 },
  };
  char asked[128], device[32];
  const char *options[] = { "tune=off", NULL, NULL, NULL };
  place p = { NULL, NULL, 0, 1 };
  void *x = NULL, *y = NULL;
  int status = 0, at = 1;
  if (qn_group_create(NULL, &p.group)) return fail("group");
  p.rank = qn_group_rank(p.group);
  p.size = qn_group_size(p.group);
  snprintf(asked, sizeof asked, "backend=%s", backend ? backend : "");
  snprintf(device, sizeof device, "device=%d", qn_group_local_rank(p.group));
  if (backend) options[at++] = asked;
  options[at] = device;
  if (qn_context_create(options, &p.ctx)) {     /* CPU contexts share their device */
    options[at] = NULL;
    if (qn_context_create(options, &p.ctx)) return fail("context");
  }
  if (qn_context_join(p.ctx, p.group) || qn_alloc(p.ctx, up_to, &x) || qn_alloc(p.ctx, up_to, &y)) return fail("context");
  char *zero = calloc(1, up_to);
  if (zero) qn_copy_to_device(p.ctx, x, zero, up_to);
  free(zero);
  if (!p.rank) {
    const int captures = strcmp(qn_context_describe(p.ctx)->kind, "cpu") != 0;
    printf("%d ranks, %s\n%-15s %11s %11s %9s%s   engine\n", p.size, qn_context_device(p.ctx), "op", "bytes", "us", "bus GB/s",
           captures ? " replayed us  bus GB/s" : "");
  }
  for (size_t i = 0; i < sizeof row / sizeof *row && !status; i++) {
    if (filter && !strstr(row[i].op, filter)) continue;
    const double part = row[i].once + row[i].parts * (p.size - 1) / p.size;
    for (size_t bytes = 1024; bytes <= up_to && !status; bytes *= 4) {
      const size_t unit = 4 * (size_t)p.size;
      status = measure_one(&p, row[i].op, row[i].line, part, bytes / unit * unit, x, y);
    }
  }
  qn_free(p.ctx, x), qn_free(p.ctx, y);
  qn_context_destroy(p.ctx);
  qn_group_destroy(p.group);
  return status;
}
