/* t_collectives.c -- what collectives are to each other, and groups side by side.
 *
 * Gradients, as collective.h has them: for a collective A that is linear and the collective B that is its gradient, in double, on random
 * x and g that differ from rank to rank, the sums over all ranks of <A x, g> and of <x, B g> are one number. For a maximum and a product
 * the gradient is compared with differences of the loss, the sum over all ranks of <y, g>, as one rank's x changes.
 *
 * Graphs: qn_graph_gradient of a graph with a collective is a graph with another one; each rank's gradient is compared with such
 * differences, too.
 *
 * Groups: each thread a rank of two groups, of which it uses both in turn, while other threads use others. */
#include <math.h>
#include <stdbool.h>
#include <quern/graph.h>
#include "ranks.h"

enum { N = 24 };                          /* elements of a share, which MOST ranks can share */

/* One collective of a rank: y = A x, by n_x and n_y elements of f64; x is scaled by the rank's scale first, where it is not 1. */
static qn_status collect(place_in *p, uint32_t op, const qn_collective *a, double scale, double *x, int64_t n_x, double *y, int64_t n_y)
{
  const qn_tensor tx = qn_tensor_1d(x, QN_F64, n_x), ty = qn_tensor_1d(y, QN_F64, n_y), s = qn_scalar(&scale, QN_F64);
  const qn_tensor *by = scale != 1 ? &s : NULL;
  switch (op) {
  case QN_OP_ALL_REDUCE:     return qn_all_reduce(p->ctx, a, &tx, 1, by, &ty, 1);
  case QN_OP_REDUCE_SCATTER: return qn_reduce_scatter(p->ctx, a, &tx, 1, by, &ty, 1);
  case QN_OP_ALL_GATHER:     return qn_all_gather(p->ctx, a, &tx, 1, &ty, 1);
  case QN_OP_BROADCAST:      return qn_broadcast(p->ctx, a, &tx, 1, &ty, 1);
  case QN_OP_ALL_TO_ALL:     return qn_all_to_all(p->ctx, a, &tx, 1, &ty, 1);
  case QN_OP_SEND:           return qn_send(p->ctx, a, &tx, 1, &ty, 1);
  default:                   return qn_recv(p->ctx, a, &tx, 1, &ty, 1);
  }
}

static void keep(place_in *p, qn_status status)
{
  if (status && !p->mine->status) failed(p, status, now());
}

/* From -1 to 1, the same for the same numbers. */
static double number(int rank, int which, int64_t i)
{
  uint64_t h = ((uint64_t)rank + 1) * 0x9e3779b97f4a7c15u ^ ((uint64_t)which + 1) * 0xbf58476d1ce4e5b9u ^ (uint64_t)i * 0x94d049bb133111ebu;
  h = (h ^ h >> 31) * 0xd6e8feb86659fd93u;
  h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
  return (double)(int64_t)(h >> 11) / (double)(INT64_C(1) << 52) - 1;
}

static void fill(double *to, int rank, int which, int64_t n)
{
  for (int64_t i = 0; i < n; i++) to[i] = number(rank, which, i);
}

static double sum_over_ranks(place_in *p, double mine)
{
  double each[MOST] = { 0 }, sum = 0;
  keep(p, qn_group_exchange(p->group, &mine, sizeof mine, each));
  for (int r = 0; r < p->size; r++) sum += each[r];
  return sum;
}

static double dot(place_in *p, const double *a, const double *b, int64_t n)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum_over_ranks(p, sum);
}

static void wrong(place_in *p, const char *what, double one, double other)
{
  if (p->mine->ok && !p->mine->status) snprintf(p->mine->text, sizeof p->mine->text, "%s: %.17g, not %.17g", what, other, one);
  p->mine->ok = 0;
}

/* ---- gradients of linear collectives --------------------------------------------------------------- */

typedef struct pair {
  const char *what;
  uint32_t op, back;
  int64_t  reduction, back_reduction;
  int      n_x, n_y;                      /* in shares: 0: as many as ranks */
  bool     scaled;
} pair;

static const pair pairs[] = {
  { "all_reduce", QN_OP_ALL_REDUCE, QN_OP_ALL_REDUCE, QN_JOIN_SUM, QN_JOIN_SUM, 1, 1, false },
  { "all_reduce of the mean", QN_OP_ALL_REDUCE, QN_OP_ALL_REDUCE, QN_JOIN_AVG, QN_JOIN_AVG, 1, 1, false },
  { "all_reduce, scaled", QN_OP_ALL_REDUCE, QN_OP_ALL_REDUCE, QN_JOIN_SUM, QN_JOIN_SUM, 1, 1, true },
  { "all_reduce of the mean, scaled", QN_OP_ALL_REDUCE, QN_OP_ALL_REDUCE, QN_JOIN_AVG, QN_JOIN_AVG, 1, 1, true },
  { "reduce_scatter of the mean", QN_OP_REDUCE_SCATTER, QN_OP_ALL_GATHER, QN_JOIN_AVG, QN_JOIN_SUM, 0, 1, false },
  { "reduce_scatter", QN_OP_REDUCE_SCATTER, QN_OP_ALL_GATHER, QN_JOIN_SUM, QN_JOIN_SUM, 0, 1, false },
  { "reduce_scatter, scaled", QN_OP_REDUCE_SCATTER, QN_OP_ALL_GATHER, QN_JOIN_SUM, QN_JOIN_SUM, 0, 1, true },
  { "all_gather", QN_OP_ALL_GATHER, QN_OP_REDUCE_SCATTER, QN_JOIN_SUM, QN_JOIN_SUM, 1, 0, false },
  { "broadcast", QN_OP_BROADCAST, QN_OP_ALL_REDUCE, QN_JOIN_SUM, QN_JOIN_SUM, 1, 1, false },
  { "all_to_all", QN_OP_ALL_TO_ALL, QN_OP_ALL_TO_ALL, QN_JOIN_SUM, QN_JOIN_SUM, 0, 0, false },
};

static void linear(place_in *p, const pair *t)
{
  double x[N * MOST], y[N * MOST], g[N * MOST], dx[N * MOST];
  const int64_t n_x = N * (t->n_x ? t->n_x : p->size), n_y = N * (t->n_y ? t->n_y : p->size);
  const double scale = t->scaled ? 0.75 + p->rank : 1;
  const double back = t->op == QN_OP_REDUCE_SCATTER && t->reduction == QN_JOIN_AVG ? scale / p->size : scale;
  qn_collective a = QN_COLLECTIVE_INIT, b = QN_COLLECTIVE_INIT;
  a.ranks = b.ranks = p->size;
  a.root = t->op == QN_OP_BROADCAST ? p->size - 1 : 0;
  a.reduction = t->reduction;
  b.reduction = t->back_reduction;
  fill(x, p->rank, 0, n_x);
  fill(g, p->rank, 1, n_y);
  keep(p, collect(p, t->op, &a, scale, x, n_x, y, n_y));
  keep(p, collect(p, t->back, &b, 1, g, n_y, dx, n_x));
  for (int64_t i = 0; i < n_x; i++) dx[i] = t->op == QN_OP_BROADCAST && p->rank != a.root ? 0 : back * dx[i];
  const double forward = dot(p, y, g, n_y), backward = dot(p, x, dx, n_x);
  if (!(fabs(forward - backward) <= 1e-12 * p->size * N) || !(fabs(forward) > 1e-6)) wrong(p, t->what, forward, backward);
}

/* Each rank sends its x to the next one; y is what came. The first rank sends first. */
static void around(place_in *p, int64_t next, int64_t before, double *x, double *y)
{
  qn_collective to = QN_COLLECTIVE_INIT, from = QN_COLLECTIVE_INIT;
  to.peer = next;
  from.peer = before;
  if (!p->rank) keep(p, collect(p, QN_OP_SEND, &to, 1, x, N, x, N));
  keep(p, collect(p, QN_OP_RECV, &from, 1, y, N, y, N));
  if (p->rank) keep(p, collect(p, QN_OP_SEND, &to, 1, x, N, x, N));
}

static void messages(place_in *p)
{
  double x[N], y[N], g[N], dx[N];
  const int64_t next = (p->rank + 1) % p->size, before = (p->rank + p->size - 1) % p->size;
  fill(x, p->rank, 0, N);
  fill(g, p->rank, 1, N);
  around(p, next, before, x, y);
  around(p, before, next, g, dx);
  const double forward = dot(p, y, g, N), backward = dot(p, x, dx, N);
  if (!(fabs(forward - backward) <= 1e-12 * p->size * N) || !(fabs(forward) > 1e-6)) wrong(p, "send and recv", forward, backward);
}

/* ---- gradients of maxima and products, by differences ----------------------------------------------- */

static double loss(place_in *p, const qn_collective *a, double *x, double *y, const double *g)
{
  keep(p, collect(p, QN_OP_ALL_REDUCE, a, 1, x, N, y, N));
  return dot(p, y, g, N);
}

static void differences(place_in *p, int64_t reduction, const char *what)
{
  double x[N], y[N], g[N], sum[N], dx[N], changed[N], unused[N];
  const double h = 1e-6;
  qn_collective a = QN_COLLECTIVE_INIT;
  a.reduction = reduction;
  fill(x, p->rank, 2, N);
  fill(g, p->rank, 3, N);
  keep(p, collect(p, QN_OP_ALL_REDUCE, &a, 1, x, N, y, N));
  keep(p, collect(p, QN_OP_ALL_REDUCE, NULL, 1, g, N, sum, N));
  for (int i = 0; i < N; i++) dx[i] = reduction == QN_JOIN_PROD ? sum[i] * y[i] / x[i] : x[i] == y[i] ? sum[i] : 0;
  for (int r = 0; r < p->size; r++)
    for (int i = 0; i < 4; i++) {
      double at[2];
      for (int k = 0; k < 2; k++) {
        memcpy(changed, x, sizeof x);
        if (r == p->rank) changed[i] += k ? h : -h;
        at[k] = loss(p, &a, changed, unused, g);
      }
      const double slope = (at[1] - at[0]) / (2 * h);
      if (r == p->rank && !(fabs(slope - dx[i]) <= 1e-7)) wrong(p, what, slope, dx[i]);
    }
}

static void gradients(place_in *p)
{
  p->mine->ok = 1;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) linear(p, &pairs[i]);
  messages(p);
  differences(p, QN_JOIN_MAX, "all_reduce of the maximum");
  differences(p, QN_JOIN_MIN, "all_reduce of the minimum");
  differences(p, QN_JOIN_PROD, "all_reduce of the product");
}

/* ---- gradients of graphs --------------------------------------------------------------------------- */

/* What a graph does with z on the way to y; %d: the number of ranks. */
static const struct { const char *what, *line; int scaled; } graphs[] = {
  { "all_reduce", "y = all_reduce x=[z] scale=s", 1 },
  { "all_reduce of a list, of the mean", "[y,u] = all_reduce x=[z,x] scale=s reduction=avg | out u", 1 },
  { "all_reduce of the maximum", "y = all_reduce x=[z] reduction=max", 0 },
  { "all_reduce of the minimum", "y = all_reduce x=[z] reduction=min", 0 },
  { "all_reduce of the product", "y = all_reduce x=[z] reduction=prod", 0 },
  { "reduce_scatter", "y = reduce_scatter x=[z] scale=3 ranks=%d", 0 },
  { "reduce_scatter of the mean", "y = reduce_scatter x=[z] ranks=%d reduction=avg", 0 },
  { "all_gather", "y = all_gather x=[z] ranks=%d", 0 },
  { "all_to_all", "y = all_to_all x=[z] ranks=%d", 0 },
};

/* The sum over ranks of k y^2, of which each rank has its own x, s and k. */
static double graph_loss(place_in *p, const qn_plan *plan, void *const *pointers, const double *mine)
{
  keep(p, qn_plan_execute(p->ctx, plan, pointers));
  keep(p, qn_context_synchronize(p->ctx));
  return sum_over_ranks(p, *mine);
}

static void graph_gradient(place_in *p, size_t which)
{
  _Alignas(16) double x[N], dx[N], u[N], s[2], ds[2], k[2], loss[2];      /* as plans are promised */
  const double h = 1e-6;
  char line[160], lines[400];
  const char *const wrt[] = { "x", "s" };
  const bool scaled = graphs[which].scaled;
  qn_graph *g = NULL, *d = NULL;
  qn_plan *forward = NULL, *both = NULL;
  snprintf(line, sizeof line, graphs[which].line, p->size);
  snprintf(lines, sizeof lines, "in x f64/%d |%s in k f64 | z = sin x=x | %s | a = mul a=y b=k | b = mul a=a b=y | "
           "out loss = reduce_sum x=b", N, scaled ? " in s f64 |" : "", line);
  fill(x, p->rank, 4, N);
  s[0] = 0.5 + p->rank;
  k[0] = 1 + number(p->rank, 5, 0);
  const bool list = strstr(line, "out u");
  void *pointers[8];                      /* the ins, then out u where there is one, loss, and of both halves dx and ds */
  int n = 0;
  pointers[n++] = x;
  if (scaled) pointers[n++] = s;
  pointers[n++] = k;
  if (list) pointers[n++] = u;
  pointers[n++] = loss;
  pointers[n++] = dx;
  if (scaled) pointers[n++] = ds;
  qn_status status = qn_graph_parse(lines, &g);
  if (!status) status = qn_graph_gradient(g, "loss", wrt, scaled ? 2 : 1, &d);
  if (!status) status = qn_plan_create(p->ctx, g, &forward);
  if (!status) status = qn_plan_create(p->ctx, d, &both);
  keep(p, status);
  if (!status) graph_loss(p, both, pointers, loss);
  for (int r = 0; r < p->size && !status; r++)
    for (int i = 0; i < 3 + scaled; i++) {
      double at[2], *const moved = i < 3 ? &x[i * 7] : s, was = *moved;
      for (int up = 0; up < 2; up++) {
        if (r == p->rank) *moved = was + (up ? h : -h);
        at[up] = graph_loss(p, forward, pointers, loss);
      }
      *moved = was;
      const double slope = (at[1] - at[0]) / (2 * h);
      const double found = i < 3 ? dx[i * 7] : ds[0];
      if (r == p->rank && !(fabs(slope - found) <= 1e-6 * (1 + fabs(slope)))) wrong(p, graphs[which].what, slope, found);
    }
  qn_plan_destroy(forward);
  qn_plan_destroy(both);
  qn_graph_destroy(g);
  qn_graph_destroy(d);
}

static void graph_gradients(place_in *p)
{
  p->mine->ok = 1;
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) graph_gradient(p, i);
}

/* ---- groups side by side ------------------------------------------------------------------------------ */

static qn_status add_up(qn_context *ctx, float *x, int64_t n, float mine)
{
  const qn_tensor t = qn_tensor_1d(x, QN_F32, n);
  for (int64_t i = 0; i < n; i++) x[i] = mine + (float)i;
  return qn_all_reduce(ctx, NULL, &t, 1, NULL, &t, 1);
}

/* Ranks of all, and of even and odd ones in reverse order: each rank has a context in both, and uses them in turn, a different number of
 * times in each part. */
static void two_groups(place_in *p)
{
  const char *const options[] = { backend, "threads=1", NULL };
  const int64_t lengths[] = { 1, 700, 70000 };
  float *x = malloc(70000 * sizeof *x);
  qn_context *ctx = NULL;
  qn_group *part_of = NULL;
  int members = 0, sum = 0;
  qn_status status = x ? qn_group_split(p->group, p->rank % 2, -p->rank, &part_of) : QN_NO_MEMORY;
  if (!status) status = qn_context_create(options, &ctx);
  if (!status) status = qn_context_join(ctx, part_of);
  for (int r = p->rank % 2; r < p->size; r += 2) members++, sum += r;
  p->mine->ok = !status && qn_group_size(part_of) == members;
  for (int round = 0; round < 24 && !status; round++) {
    const int64_t n = lengths[round % 3];
    status = add_up(p->ctx, x, n, (float)(p->rank + round));
    p->mine->ok &= x[n - 1] == (float)(p->size * (round + n - 1) + p->size * (p->size - 1) / 2);
    for (int i = 0; i <= p->rank % 2 && !status; i++) {
      status = add_up(ctx, x, n, (float)(p->rank + i));
      p->mine->ok &= x[n - 1] == (float)(members * (i + n - 1) + sum);
    }
    p->mine->calls++;
  }
  keep(p, status);
  qn_context_destroy(ctx);
  qn_group_destroy(part_of);
  free(x);
}

static const launched tests[] = {
  { "gradients", gradients, NULL, NULL, 20 },
  { "graph_gradients", graph_gradients, NULL, NULL, 20 },
  { "two_groups", two_groups, NULL, NULL, 20 },
};

int main(int argc, char **argv)
{
  if (argc > 1) return launched_rank("t_collectives", argv[1], tests, tests + sizeof tests / sizeof *tests);
  if (!ranks_begin()) return 2;
  for (int n = 2; n <= 4; n++) {
    char name[64];
    snprintf(name, sizeof name, "gradients, %d ranks", n);
    works(name, n, gradients);
    snprintf(name, sizeof name, "gradients of graphs, %d ranks", n);
    works(name, n, graph_gradients);
  }
  works("two groups of four processes", 4, two_groups);
  works_in_threads("two groups of four threads of a process", 1, 4, two_groups);
  works_in_threads("two groups of two threads each of two processes", 2, 2, two_groups);
  tap_ok(!rmdir(folder), "nothing is left behind");
  return tap_done();
}
