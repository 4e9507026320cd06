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
#include <quern/tools.h>
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

/* Backward halves and the all_reduces of their gradients, each alone and both in one plan. A line begins with where it applies: c where it
 * computes, r where it reduces, C and R where it does the one only. Capitals, # and + stand for numbers, T for a dtype. */
enum { COMPUTES = 1, REDUCES = 2 };

/* Of examples/cnn_digits. */
static const char convolutions[] =
  "cin x f32/Nx3x32x32\n" "cin a1 f32/NxAx32x32\n" "cin p1 f32/NxAx16x16\n" "cin a2 f32/NxBx16x16\n" "cin dp2 f32/NxBx8x8\n"
  "cin w2 f32/BxAx3x3\n" "rin g f32/BxG\n"
  "rout s3 = all_reduce x=g reduction=avg\n"
  "cda2 = pool_max_backward dy=dp2 x=a2 window=2\n"
  "cdz2 = relu_backward dy=da2 x=a2\n"
  "cdb2 = reduce_sum x=dz2 axis=0,2,3 y=f32/1xBx1x1\n"
  "cdw2 = conv_backward_filter x=p1 dy=dz2 pad=1 dw=f32/BxAx3x3\n"
  "Rin dw2 f32/BxAx3x3\n" "Rin db2 f32/1xBx1x1\n"
  "r[s2,t2] = all_reduce x=[dw2,db2] reduction=avg\n"
  "cdp1 = conv_backward_data dy=dz2 w=w2 pad=1 dx=f32/NxAx16x16\n"
  "cda1 = pool_max_backward dy=dp1 x=a1 window=2\n"
  "cdz1 = relu_backward dy=da1 x=a1\n"
  "cdb1 = reduce_sum x=dz1 axis=0,2,3 y=f32/1xAx1x1\n"
  "cdw1 = conv_backward_filter x=x dy=dz1 pad=1 dw=f32/Ax3x3x3\n"
  "Rin dw1 f32/Ax3x3x3\n" "Rin db1 f32/1xAx1x1\n"
  "r[s1,t1] = all_reduce x=[dw1,db1] reduction=avg\n"
  "rout s1\n" "rout t1\n" "rout s2\n" "rout t2\n" "Cout dw1\n" "Cout db1\n" "Cout dw2\n" "Cout db2\n";

/* A fully connected layer. */
static const char layer[] =
  "cin x# T/WxW/t\n" "cin w# T/WxW/t\n" "Rin d# T/WxW\n"
  "cd# = matmul a=x# b=g+\n" "Cout d#\n"
  "rs# = all_reduce x=d# reduction=avg\n" "rout s#\n"
  "cg# = matmul a=g+ b=w#\n";

static size_t expand(const char *from, int parts, const int number[128], const char *dtype, char *to, size_t bytes)
{
  size_t at = 0;
  for (const char *end; (end = strchr(from, '\n')); from = end + 1) {
    const bool wanted = *from == 'c' ? parts & COMPUTES : *from == 'r' ? parts & REDUCES : parts == (*from == 'C' ? COMPUTES : REDUCES);
    for (const char *c = from + 1; wanted && c <= end && at + 16 < bytes; c++) {
      if (*c == 'T') at += (size_t)snprintf(to + at, bytes - at, "%s", dtype);
      else if (number[(unsigned char)*c & 127]) at += (size_t)snprintf(to + at, bytes - at, "%d", number[(unsigned char)*c & 127] - 1);
      else to[at++] = *c;
    }
  }
  to[at] = 0;
  return at;
}

enum { TENSORS = 64 };
typedef struct memory { char name[8]; void *at; } memory;

/* That of a tensor that other plans may have, too; filled with small numbers. */
static void *memory_of(const place *p, memory *all, const char *name, size_t bytes)
{
  enum { BLOCK = 1 << 20 };
  static uint16_t random[BLOCK / 2];
  int i = 0;
  uint32_t state = 1;
  while (i < TENSORS && all[i].at && strcmp(all[i].name, name)) i++;
  if (i == TENSORS || all[i].at) return i == TENSORS ? NULL : all[i].at;
  for (int k = 0; k < BLOCK / 2; k++)     /* bf16, or halves of f32, of about 0.01 and either sign */
    random[k] = (uint16_t)(0x3c00 | ((state = state * 1664525 + 1013904223) >> 16 & 0x80ff));
  snprintf(all[i].name, sizeof all[i].name, "%s", name);
  if (qn_alloc(p->ctx, bytes, &all[i].at)) return NULL;
  for (size_t at = 0; at < bytes; at += BLOCK)
    if (qn_copy_to_device(p->ctx, (char *)all[i].at + at, random, bytes - at < BLOCK ? bytes - at : BLOCK)) return NULL;
  return all[i].at;
}

/* The plan of text, and its pointers. */
static bool make_work(const place *p, const char *text, memory *all, work *w, void **pointer)
{
  qn_graph *graph = NULL;
  bool ok = !qn_graph_parse(text, &graph) && !qn_plan_create(p->ctx, graph, &w->plan);
  const qn_graph_view *view = ok ? qn_graph_inspect(graph) : NULL;
  for (const char *s = text; ok && *s; s = strchr(s, '\n') + 1) {
    char name[8];
    if (sscanf(s, "in %7s", name) != 1 && sscanf(s, "out %7s", name) != 1) continue;
    const int i = qn_graph_index(graph, name);
    const qn_value *v = i < 0 || i >= TENSORS ? NULL : &view->value[view->pointer[i]];
    size_t bytes = v ? qn_dtype_bytes(v->dtype) : 0;
    for (int d = 0; v && d < v->rank; d++) bytes *= (size_t)v->dim[d];
    ok = bytes && (pointer[i] = memory_of(p, all, name, bytes));
  }
  w->pointer = pointer;
  qn_graph_destroy(graph);
  return ok;
}

static bool overlap_of(const place *p, const char *what, char text[3][8192])
{
  static const char *const how[] = { "live", "replayed" };
  const bool captures = strcmp(qn_context_describe(p->ctx)->kind, "cpu");
  memory all[TENSORS] = { { "", NULL } };
  work w[3] = { { NULL } };
  void *pointer[3][TENSORS];
  double t[3];
  bool ok = true;
  for (int k = 0; k < 3 && ok; k++) ok = make_work(p, text[k], all, &w[k], pointer[k]);
  const int many = ok ? calls(p, &w[2]) : -1;
  ok = many > 0;
  for (int i = 0; i < 1 + captures && ok; i++) {
    for (int k = 0; k < 3 && i && ok; k++) ok = record(p, &w[k], many);
    if ((ok = ok && middle(p, w, 3, many, t)) && !p->rank)
      printf("%s, %d ranks, %s: backward half %.3f ms, its all_reduces %.3f ms, together %.3f ms: %.0f%% hidden\n", what, p->size, how[i],
             1e3 * t[0], 1e3 * t[1], 1e3 * t[2], 100 * (t[0] + t[1] - t[2]) / t[1]);
  }
  for (int k = 0; k < 3; k++) qn_recording_destroy(w[k].recording), qn_plan_destroy(w[k].plan);
  for (int i = 0; i < TENSORS; i++) qn_free(p->ctx, all[i].at);
  return ok;
}

static int overlap(const place *p)
{
  static char text[3][8192];
  const bool cpu = !strcmp(qn_context_describe(p->ctx)->kind, "cpu");
  const char *dtype = cpu ? "f32" : "bf16";
  const int width = cpu ? 256 : 4096, layers = 8;
  int number[128] = { ['N'] = 1 + (cpu ? 8 : 1024), ['A'] = 1 + (cpu ? 16 : 256), ['B'] = 1 + (cpu ? 32 : 512), ['G'] = 1 + 640,
                      ['W'] = 1 + width };         /* + 1: 0 is none */
  char what[64];
  for (int k = 0; k < 3; k++) expand(convolutions, k + 1, number, dtype, text[k], sizeof text[k]);
  bool ok = overlap_of(p, "the convolutions of cnn_digits", text);
  for (int k = 0; k < 3; k++) {
    size_t at = 0;
    if (k != 1) at += (size_t)snprintf(text[k], sizeof text[k], "in g%d %s/%dx%d\n", layers, dtype, width, width);
    for (int i = layers - 1; i >= 0; i--) {
      number['#'] = 1 + i, number['+'] = 2 + i;
      at += expand(layer, k + 1, number, dtype, text[k] + at, sizeof text[k] - at);
    }
    if (k != 1) snprintf(text[k] + at, sizeof text[k] - at, "out g0\n");
  }
  snprintf(what, sizeof what, "%d layers of %d x %d, %s", layers, width, width, dtype);
  return ok && overlap_of(p, what, text) ? 0 : fail("overlap");
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
