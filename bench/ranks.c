/* ranks.c -- `--ranks N`: the collectives, over sizes, each rank in a process.
 *
 * A row is the time of one call, the slowest rank's, and the bandwidth that each rank's link to the others must have had:
 *   all_reduce 2 (P - 1) / P      reduce_scatter, all_gather, all_to_all (P - 1) / P      broadcast 1      times bytes / time
 * where bytes are those of the larger of x and y, as in nccl-tests. Calls follow one another on the stream; where the device captures,
 * the same calls recorded and replayed are a second column. With --direct NCCL's own calls are measured in turn with these, on the same
 * stream and memory, as many of them, recorded in the same way. With --overlap instead: how much of the time of gradients' all_reduces is
 * hidden behind the backward half of a network. */
#include <stdbool.h>
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

/* What is measured: a plan, or (plan NULL) NCCL called directly. */
typedef struct work { qn_plan *plan; uint32_t op; void *const *pointer; size_t bytes; qn_recording *recording; } work;

static qn_status once(const place *p, const work *w)
{
  return w->plan ? qn_plan_execute(p->ctx, w->plan, w->pointer)
                 : direct_call(w->op, w->pointer[0], w->pointer[1], w->bytes, qn_context_stream(p->ctx));
}

/* Seconds of one of n executions, or of one of n in a replay. */
static double run(const place *p, const work *w, int n)
{
  qn_status status = QN_OK;
  if (qn_group_exchange(p->group, NULL, 0, NULL)) return -1;
  const double since = now();
  if (w->recording) status = qn_recording_replay(p->ctx, w->recording);
  else
    for (int i = 0; i < n && !status; i++) status = once(p, w);
  if (!status) status = qn_context_synchronize(p->ctx);
  return status ? -1 : slowest(p, (now() - since) / n);
}

static int ascending(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Medians of five of each, in turn; false: the group has failed. */
static bool middle(const place *p, const work w[], int n_work, int n, double t[])
{
  enum { ROUNDS = 5, MOST = 3 };
  double all[MOST][ROUNDS];
  for (int i = 0; i < ROUNDS; i++)
    for (int k = 0; k < n_work; k++)
      if ((all[k][i] = run(p, &w[k], n)) < 0) return false;
  for (int k = 0; k < n_work; k++) {
    qsort(all[k], ROUNDS, sizeof all[k][0], ascending);
    t[k] = all[k][ROUNDS / 2];
  }
  return true;
}

/* About 20 ms of calls, and how many. All ranks use the slowest one's time. */
static int calls(const place *p, const work *w)
{
  double t = run(p, w, 1);
  for (int i = 0; i < 3 && t >= 0; i++) t = run(p, w, 2);
  return t < 0 ? -1 : t > 0.01 ? 2 : t < 2e-5 ? 1000 : (int)(0.02 / t);
}

static bool record(const place *p, work *w, int n)
{
  qn_status status = qn_record_begin(p->ctx);
  if (status) return false;
  for (int i = 0; i < n && !status; i++) status = once(p, w);
  const qn_status ended = qn_record_end(p->ctx, &w->recording);
  return !status && !ended && run(p, w, n) >= 0;
}

static int fail(const char *line)
{
  fprintf(stderr, "quern-bench: %s: %s\n", line, qn_last_error());
  return 1;
}

static void print_row(const char *op, size_t bytes, double part, const double *live, const double *again, int sides, const char *engine)
{
  printf("%-15s %11zu", op, bytes);
  for (const double *t = live; t; t = t == live ? again : NULL) {
    if (t[0] <= 0) continue;
    printf(" %11.2f %9.3f", 1e6 * t[0], part * (double)bytes / t[0] / 1e9);
    if (sides > 1) printf(" %9.2f %6.3f", 1e6 * t[1], t[0] / t[1]);
  }
  printf("   %s\n", engine);
  fflush(stdout);
}

typedef struct kind { const char *op, *line; uint32_t op_kind; double once, parts; } kind;

static int measure_one(const place *p, const kind *r, size_t bytes, int sides, void *x, void *y)
{
  char line[160];
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  const long long n = (long long)(bytes / 4);
  snprintf(line, sizeof line, r->line, r->op_kind == QN_OP_ALL_GATHER ? n / p->size : n, p->size);
  if (qn_graph_parse(line, &graph) || qn_plan_create(p->ctx, graph, &plan)) {
    qn_graph_destroy(graph);
    return fail(line);
  }
  void *const pointer[] = { x, y };
  work w[2] = { { plan, r->op_kind, pointer, bytes, NULL }, { NULL, r->op_kind, pointer, bytes, NULL } };
  double live[2], again[2] = { 0, 0 };
  int many = calls(p, &w[0]);
  bool ok = many > 0;
  if (sides > 1 && ok) ok = (many = calls(p, &w[1])) > 0;       /* NCCL's own count, for both */
  ok = ok && middle(p, w, sides, many, live);
  if (ok && strcmp(qn_context_describe(p->ctx)->kind, "cpu")) {
    for (int k = 0; k < sides; k++) ok = ok && record(p, &w[k], many);
    ok = ok && middle(p, w, sides, many, again);
  }
  if (ok && !p->rank) {
    char engine[64] = "";
    qn_plan_print(plan, engine, sizeof engine);
    engine[strcspn(engine, " ")] = 0;
    print_row(r->op, bytes, r->once + r->parts * (p->size - 1) / p->size, live, again, sides, engine);
  }
  for (int k = 0; k < 2; k++) qn_recording_destroy(w[k].recording);
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  return ok ? 0 : fail(line);
}

/* Opens what the backend communicates by, and then NCCL beside it. */
static int open_direct(const place *p, void *x)
{
  const qn_tensor t = qn_tensor_1d(x, QN_F32, 1);
  return qn_all_reduce(p->ctx, NULL, &t, 1, NULL, &t, 1) ? fail("all_reduce") : direct_open(p->group);
}

/* ---- overlap --------------------------------------------------------------------------------------- */

/* The backward half of fully connected layers, WIDTH each way, and all_reduces of their gradients: alone, apart and together. */
enum { LAYERS = 8, POINTERS = 3 * LAYERS + 2 };
enum { COMPUTES = 1, REDUCES = 2 };

typedef struct network { int width; const char *dtype; size_t bytes; void *g, *dx, *x, *w, *dw[LAYERS], *sum[LAYERS]; } network;

/* The work's plan; pointer has room for POINTERS. */
static qn_status half(const place *p, const network *n, int parts, work *w, void **pointer)
{
  char text[8192], name[16];
  size_t at = 0;
  qn_graph *graph = NULL;
#define ADD(...) at += (size_t)snprintf(text + at, sizeof text - at, __VA_ARGS__)
  if (parts & COMPUTES) ADD("in g%d %s/%dx%d\n", LAYERS, n->dtype, n->width, n->width);
  for (int i = LAYERS - 1; i >= 0; i--) {
    if (parts & COMPUTES) ADD("in x%d %s/%dx%d/t\nin w%d %s/%dx%d/t\n", i, n->dtype, n->width, n->width, i, n->dtype, n->width, n->width);
    else ADD("in d%d %s/%dx%d\n", i, n->dtype, n->width, n->width);
    if (parts & COMPUTES) ADD("%sd%d = matmul a=x%d b=g%d\n", parts & REDUCES ? "" : "out ", i, i, i + 1);
    if (parts & REDUCES) ADD("out s%d = all_reduce x=d%d reduction=avg\n", i, i);
    if (parts & COMPUTES) ADD("%sg%d = matmul a=g%d b=w%d\n", i ? "" : "out ", i, i + 1, i);
  }
#undef ADD
  qn_status status = qn_graph_parse(text, &graph);
  if (!status) status = qn_plan_create(p->ctx, graph, &w->plan);
  for (int i = 0; i <= LAYERS && !status; i++) {
    const struct { char letter; void *to; } named[] = { { 'g', i ? n->g : n->dx }, { 'x', n->x }, { 'w', n->w },
                                                        { 'd', n->dw[i % LAYERS] }, { 's', n->sum[i % LAYERS] } };
    for (size_t k = 0; k < sizeof named / sizeof *named; k++) {
      snprintf(name, sizeof name, "%c%d", named[k].letter, i);
      const int index = qn_graph_index(graph, name);
      if (index >= 0) pointer[index] = named[k].to;
    }
  }
  w->pointer = pointer;
  qn_graph_destroy(graph);
  return status;
}

static qn_status fill(const place *p, const network *n)
{
  uint16_t *host = malloc(n->bytes);
  uint32_t random = 1;
  if (!host) return QN_NO_MEMORY;
  for (size_t i = 0; i < n->bytes / 2; i++) {
    random = random * 1664525 + 1013904223;
    host[i] = (uint16_t)(0x3c00 | (random >> 16 & 0x80ff));       /* bf16, or halves of f32, of about 0.01 and either sign */
  }
  void *const to[] = { n->g, n->x, n->w };
  qn_status status = QN_OK;
  for (int i = 0; i < 3 && !status; i++) status = qn_copy_to_device(p->ctx, to[i], host, n->bytes);
  free(host);
  return status;
}

static int overlap(const place *p)
{
  const bool cpu = !strcmp(qn_context_describe(p->ctx)->kind, "cpu");
  network n = { .width = cpu ? 256 : 4096, .dtype = cpu ? "f32" : "bf16" };
  work w[3] = { { NULL } };
  void *pointer[3][POINTERS], **const memory[] = { &n.g, &n.dx, &n.x, &n.w };
  static const char *const how[] = { "live", "replayed" };
  double t[3];
  qn_status status = QN_OK;
  n.bytes = (size_t)n.width * (size_t)n.width * (cpu ? 4 : 2);
  for (int i = 0; i < 4 && !status; i++) status = qn_alloc(p->ctx, n.bytes, memory[i]);
  for (int i = 0; i < LAYERS && !status; i++)
    if (!(status = qn_alloc(p->ctx, n.bytes, &n.dw[i]))) status = qn_alloc(p->ctx, n.bytes, &n.sum[i]);
  if (!status) status = fill(p, &n);
  for (int k = 0; k < 3 && !status; k++) status = half(p, &n, k == 2 ? COMPUTES | REDUCES : k + 1, &w[k], pointer[k]);
  const int many = status ? -1 : calls(p, &w[2]);
  bool ok = many > 0;
  for (int i = 0; i < (cpu ? 1 : 2) && ok; i++) {
    for (int k = 0; k < 3 && i && ok; k++) ok = record(p, &w[k], many);
    if ((ok = ok && middle(p, w, 3, many, t)) && !p->rank)
      printf("overlap, %d layers of %d x %d %s, %d ranks, %s: backward %.3f ms, its all_reduces %.3f ms, together %.3f ms: %.1f%% hidden\n",
             (int)LAYERS, n.width, n.width, n.dtype, p->size, how[i], 1e3 * t[0], 1e3 * t[1], 1e3 * t[2], 100 * (t[0] + t[1] - t[2]) / t[1]);
  }
  for (int k = 0; k < 3; k++) qn_recording_destroy(w[k].recording), qn_plan_destroy(w[k].plan);
  for (int i = 0; i < 4; i++) qn_free(p->ctx, *memory[i]);
  for (int i = 0; i < LAYERS; i++) qn_free(p->ctx, n.dw[i]), qn_free(p->ctx, n.sum[i]);
  return ok ? 0 : fail("overlap");
}

int bench_ranks(const char *backend, const char *filter, size_t up_to, bool direct, bool overlaps)
{
  /* the bandwidth's factor: once + parts (P - 1) / P */
  static const kind rows[] = {
    { "all_reduce", "all_reduce x=f32/%lld", QN_OP_ALL_REDUCE, 0, 2 },
    { "reduce_scatter", "reduce_scatter x=f32/%lld ranks=%d", QN_OP_REDUCE_SCATTER, 0, 1 },
    { "all_gather", "all_gather x=f32/%lld ranks=%d", QN_OP_ALL_GATHER, 0, 1 },
    { "all_to_all", "all_to_all x=f32/%lld ranks=%d", QN_OP_ALL_TO_ALL, 0, 1 },
    { "broadcast", "broadcast x=f32/%lld", QN_OP_BROADCAST, 1, 0 },
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
  if (overlaps) {
    status = overlap(&p);
    up_to = 0;
  } else if (direct) status = open_direct(&p, x);
  if (!p.rank && !overlaps) {
    const bool captures = strcmp(qn_context_describe(p.ctx)->kind, "cpu") != 0;
    const char *beside = direct ? "   NCCL us  ratio" : "";
    printf("%d ranks, %s\n%-15s %11s %11s %9s%s%s%s   engine\n", p.size, qn_context_device(p.ctx), "op", "bytes", "us", "bus GB/s", beside,
           captures ? " replayed us  bus GB/s" : "", captures ? beside : "");
  }
  for (size_t i = 0; i < sizeof rows / sizeof *rows && !status; i++) {
    if (filter && !strstr(rows[i].op, filter)) continue;
    for (size_t bytes = 1024; bytes <= up_to && !status; bytes *= 4) {
      const size_t unit = 4 * (size_t)p.size;
      status = measure_one(&p, &rows[i], bytes / unit * unit, direct ? 2 : 1, x, y);
    }
  }
  direct_close();
  qn_free(p.ctx, x), qn_free(p.ctx, y);
  qn_context_destroy(p.ctx);
  qn_group_destroy(p.group);
  return status;
}
