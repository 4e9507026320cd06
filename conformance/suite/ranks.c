/* ranks.c -- `--ranks N`: collectives, judged in N processes that this program starts, each a rank of one group.
 *
 * Every rank makes the inputs of all ranks, element by element from (seed, rank, tensor, index), and from them its own outputs: moved
 * bits as they are, reductions as sums in long double with the bound
 *   e = (P + 1) (u S + half the accumulator's least number) + half an ulp of y
 * S: the sum (or product) of magnitudes; u: the unit of the accumulator, or where the engine stores partial sums in it (numerics.store)
 * the dtype's; integer fills, maxima and minima exactly. Each engine that takes the case runs it in guarded
 * memory (execute.c) three times: plainly; again, where the device captures recorded and replayed, which must give the same bits if it is
 * deterministic; and with other data, which shows a buffer that is kept from the call before. A point is ok if it is on every rank. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"
#include "../../info/start_ranks.h"

enum { MOST_RANKS = 64 };

static qn_group *group;
static int rank, size;
static bool some_taken;                 /* by an engine: one is not asked where all is empty */
static char refused[600];                /* why an engine did not take a case */

/* ---- the reference -------------------------------------------------------------------------- */

/* The inputs of every rank, by pointer of the problem. */
struct inputs { void *raw[MOST_RANKS][QC_MAX_POINTERS]; };

/* Elements that share an address, in a broadcast dim, are equal. */
static void make_equal(const struct qc_value *v, char *raw)
{
  size_t bytes = qn_dtype_bytes(v->q.dtype);
  for (int64_t i = 0; i < v->n; i++) {
    int64_t rest = i, step = 1, first = 0;
    for (int d = v->q.rank - 1; d >= 0; d--) {
      first += v->q.stride[d] ? rest % v->q.dim[d] * step : 0;
      rest /= v->q.dim[d];
      step *= v->q.dim[d];
    }
    memcpy(raw + (size_t)i * bytes, raw + (size_t)first * bytes, bytes);
  }
}

static bool fill_all(const struct qc_problem *p, const char *how, uint64_t seed, struct inputs *in)
{
  for (int q = 0; q < size; q++)
    for (uint32_t i = 0; i < p->view->n_ins; i++) {
      struct qc_value *v = &p->value[p->view->pointer[i]], copy = *v;
      copy.raw = in->raw[q][i] = qc_alloc((size_t)v->n * qn_dtype_bytes(v->q.dtype) + 8);
      if (!qc_fill(&copy, v->q.rank ? how : "signed", qc_hash(seed, 99, (uint64_t)q), (int)i, 3))
        return false;
      make_equal(v, copy.raw);
    }
  return true;
}

static void free_inputs(struct inputs *in)
{
  for (int q = 0; q < size; q++)
    for (int i = 0; i < QC_MAX_POINTERS; i++)
      free(in->raw[q][i]);
}

static const qn_collective *attributes(const struct qc_problem *p) { return p->node[0].attr; }

static int pointer_of(const struct qc_problem *p, const struct qc_value *v)
{
  for (uint32_t i = 0; i < p->view->n_pointers; i++)
    if (&p->value[p->view->pointer[i]] == v)
      return (int)i;
  return -1;
}

static double scale_of(const struct qc_problem *p, const struct inputs *in, int q)
{
  const struct qc_value *scale = qc_role(&p->node[0], "scale");
  int at = scale ? pointer_of(p, scale) : -1;
  return at >= 0 ? qc_decode(scale->q.dtype, in->raw[q][at]) : scale ? scale->literal : 1;
}

/* Whose element, and which, output element i of a tensor that is moved is. n: elements of x and y. */
static int64_t moved_from(const struct qc_problem *p, int64_t i, int64_t x_n, int *from)
{
  const qn_collective *a = attributes(p);
  int64_t share = x_n / size;
  switch (p->node[0].op->kind) {
  case QN_OP_ALL_GATHER: *from = (int)(i / x_n); return i % x_n;
  case QN_OP_ALL_TO_ALL: *from = (int)(i / share); return rank * share + i % share;
  case QN_OP_BROADCAST:  *from = (int)a->root; return i;
  case QN_OP_RECV:       *from = (int)a->peer; return i;
  default:               *from = rank; return i;
  }
}

static void reduce_whole(const struct qc_problem *p, const struct inputs *in, int at, int64_t begin, struct qc_value *y)
{
  const int64_t how = attributes(p)->reduction;
  size_t bytes = qn_dtype_bytes(y->q.dtype);
  for (int64_t i = 0; i < y->n; i++) {
    int64_t acc = 0;
    for (int q = 0; q < size; q++) {
      int64_t b = 0;
      memcpy(&b, (char *)in->raw[q][at] + (size_t)(begin + i) * bytes, bytes);
      if (y->q.dtype != QN_U8 && bytes < 8)
        b = (int64_t)((uint64_t)b << (64 - 8 * bytes)) >> (64 - 8 * bytes);
      if (!q)
        acc = b;
      else if (how == QN_JOIN_MAX || how == QN_JOIN_MIN)
        acc = (how == QN_JOIN_MAX) == (b > acc) ? b : acc;
      else
        acc = how == QN_JOIN_PROD ? (int64_t)((uint64_t)acc * (uint64_t)b) : (int64_t)((uint64_t)acc + (uint64_t)b);
    }
    memcpy((char *)y->twin + (size_t)i * bytes, &acc, bytes);
  }
}

/* exact: the fill's sums are. */
static void reduce_floats(const struct qc_problem *p, const struct inputs *in, int at, int64_t begin, struct qc_value *y, bool exact,
                          uint32_t partial)
{
  const int64_t how = attributes(p)->reduction;
  const bool picks = how == QN_JOIN_MAX || how == QN_JOIN_MIN;
  const double unit = qc_unit(partial);
  double scale[MOST_RANKS];
  size_t bytes = qn_dtype_bytes(y->q.dtype);
  for (int q = 0; q < size; q++)
    scale[q] = scale_of(p, in, q);
  y->once = exact || picks;
  for (int64_t i = 0; i < y->n; i++) {
    long double acc = 0, s = 0;
    for (int q = 0; q < size; q++) {
      long double b = (long double)scale[q] * qc_decode(y->q.dtype, (char *)in->raw[q][at] + (size_t)(begin + i) * bytes);
      if (!q)
        acc = b, s = fabsl(b);
      else if (picks)
        acc = isnan(acc) || isnan(b) ? (long double)NAN : (how == QN_JOIN_MAX) == (b > acc) ? b : acc;
      else if (how == QN_JOIN_PROD)
        acc *= b, s *= fabsl(b);
      else
        acc += b, s += fabsl(b);
    }
    y->y[i] = (double)(how == QN_JOIN_AVG ? acc / size : acc);
    double sum = (double)(how == QN_JOIN_AVG ? s / size : s), e = (size + 1) * (unit * sum + qc_half_ulp(partial, 0));
    y->e[i] = y->once ? 0 : isfinite(e) ? qc_half_ulp(y->q.dtype, y->y[i]) + (1 + unit) * e : QC_ANY;
    if (!isfinite(y->y[i]))
      y->e[i] = 0;
  }
}

/* What this rank's outputs must be. */
static void refer(struct qc_problem *p, const struct inputs *in, const char *how, const qn_numerics *numerics)
{
  const struct qc_node *n = &p->node[0];
  const qn_collective *a = attributes(p);
  const bool reduces = n->op->kind == QN_OP_ALL_REDUCE || n->op->kind == QN_OP_REDUCE_SCATTER;
  for (int o = 0; o < n->n_out; o++) {
    struct qc_value *y = n->out[o];
    const struct qc_value *x = n->in[o];
    const int at = pointer_of(p, x);
    const int64_t begin = n->op->kind == QN_OP_REDUCE_SCATTER ? rank * y->n : 0;
    size_t bytes = qn_dtype_bytes(y->q.dtype);
    y->bitwise = !reduces;
    if (!reduces)
      for (int64_t i = 0; i < y->n; i++) {
        int from;
        int64_t k = moved_from(p, i, x->n, &from);
        memcpy((char *)y->raw + (size_t)i * bytes, (char *)in->raw[from][at] + (size_t)k * bytes, bytes);
      }
    else if (!qc_is_float(y->q.dtype))
      reduce_whole(p, in, at, begin, y);
    else
      reduce_floats(p, in, at, begin, y, !strncmp(how, "int", 3) && a->reduction != QN_JOIN_AVG && !qc_role(n, "scale"),
                    numerics->store ? y->q.dtype : y->q.dtype == QN_F64 ? QN_F64 : QN_F32);
  }
}

/* ---- one case --------------------------------------------------------------------------------- */

/* The first thing that was wrong, on this rank or on another. */
struct report { bool failed; char text[640]; };

static void wrong(struct report *r, const char *verdict, const char *why)
{
  if (r->failed)
    return;
  r->failed = true;
  snprintf(r->text, sizeof r->text, "rank %d: %s: %s", rank, verdict, why);
}

static void judge(const struct qc_problem *p, void *const *raw, const char *which, struct report *r)
{
  for (uint32_t i = p->view->n_ins; i < p->view->n_pointers; i++) {
    const struct qc_value *v = &p->value[p->view->pointer[i]];
    struct qc_verdict d;
    char why[300];
    qc_compare(v, raw[i], false, &d);
    if (!d.failed)
      continue;
    snprintf(why, sizeof why, "%s: %lld of %lld elements%s, the first %lld; at %lld it is %.9g, should be %.9g within %.3g", v->name,
             (long long)d.failed, (long long)d.total, which, (long long)d.first, (long long)d.worst, d.got, d.want, d.bound);
    wrong(r, "values", why);
  }
}

static void set_inputs(struct qc_problem *p, const struct inputs *in)
{
  for (uint32_t i = 0; i < p->view->n_ins; i++) {
    struct qc_value *v = &p->value[p->view->pointer[i]];
    memcpy(v->raw, in->raw[rank][i], (size_t)v->n * qn_dtype_bytes(v->q.dtype));
  }
}

static void run_once(const qn_plan *plan, struct qc_problem *p, const char *fill, uint64_t seed, int round, void **raw, struct report *r)
{
  static struct inputs in;
  const qn_numerics none = {0}, *numerics = qn_plan_parts(plan) ? &qn_plan_part(plan, 0, NULL)->numerics : &none;
  char why[400];
  memset(&in, 0, sizeof in);
  if (!fill_all(p, fill, seed, &in))
    wrong(r, "fill", fill);
  set_inputs(p, &in);
  refer(p, &in, fill, numerics);
  const char *verdict = qc_execute(plan, p, round == 1 ? QC_AT_START : QC_AT_END, round == 1 && !qc_w.cpu, seed + 11 + (uint64_t)round,
                                   raw, why, sizeof why);
  if (verdict)
    wrong(r, verdict, why);
  else
    judge(p, raw, round == 1 ? " of the second run" : round ? " of the run on other data" : "", r);
  free_inputs(&in);
}

static void run_plan(const qn_plan *plan, struct qc_problem *p, const char *fill, uint64_t seed, struct report *r)
{
  void *one[QC_MAX_POINTERS], *two[QC_MAX_POINTERS];
  bool deterministic = true;
  qc_results_make(p, one);
  qc_results_make(p, two);
  run_once(plan, p, fill, seed, 0, one, r);
  run_once(plan, p, fill, seed, 1, two, r);
  for (int i = 0; i < qn_plan_parts(plan); i++)
    deterministic &= (qn_plan_part(plan, i, NULL)->traits & QN_TRAIT_DETERMINISTIC) != 0;
  for (uint32_t i = p->view->n_ins; i < p->view->n_pointers && deterministic; i++) {
    const struct qc_value *v = &p->value[p->view->pointer[i]];
    if (memcmp(one[i], two[i], (size_t)v->n * qn_dtype_bytes(v->q.dtype)))
      wrong(r, "not deterministic", v->name);
  }
  run_once(plan, p, fill, seed + 1, 2, one, r);
  qc_results_free(one);
  qc_results_free(two);
}

/* This rank's side of the line: the peer of a send receives. *idle: it has none, and only asks the engine. */
static char *my_side(const char *line, const qn_node *op, bool *idle)
{
  const qn_collective *a = op->attr;
  *idle = op->op == QN_OP_SEND && rank != 0 && rank != a->peer;
  if (op->op != QN_OP_SEND || *idle)
    return strdup(line);
  const char *peer = strstr(line, " peer=");
  size_t digits = strspn(peer + 6, "0123456789");
  return rank ? qc_format("recv%.*s peer=0%s", (int)(peer - line - 4), line + 4, peer + 6 + digits) : strdup(line);
}

static bool is_for_us(const qn_node *op)
{
  const qn_collective *a = op->attr;
  switch (op->op) {
  case QN_OP_REDUCE_SCATTER: case QN_OP_ALL_GATHER: case QN_OP_ALL_TO_ALL: return a->ranks == size;
  case QN_OP_BROADCAST: return a->root < size;
  case QN_OP_SEND:      return a->peer < size;
  default:              return op->op == QN_OP_ALL_REDUCE;
  }
}

static const char *fills_of(const struct qc_problem *p)
{
  const uint32_t op = p->node[0].op->kind;
  if (op != QN_OP_ALL_REDUCE && op != QN_OP_REDUCE_SCATTER)
    return "bits";
  return qc_is_float(p->node[0].in[0]->q.dtype) ? "int,signed,special" : "int,bits";
}

static const struct qc_engine *twin_of(const struct qc_engine *e, uint32_t op)
{
  for (int i = 0; i < qc_w.n_engines; i++)
    if (qc_engine_fits(&qc_w.engine[i], op) && !strcmp(qc_w.engine[i].row->name, e->row->name))
      return &qc_w.engine[i];
  return NULL;
}

/* -1: the engine does not take it. */
static int run_engine(const struct qc_engine *e, const char *line, const char *settings, bool idle, struct report *r)
{
  char why[512], fills[256];
  struct qc_problem *p = qc_problem_make(line, why, sizeof why);
  qn_status status;
  qn_plan *plan;
  if (!p) {
    wrong(r, "problem", why);
    return 0;
  }
  e = twin_of(e, p->node[0].op->kind);
  bool finite = false;                  /* it vouches for no other data */
  if (!e || (!qc_plan_pinned(e, "f32", p->graph, &plan, &status) &&
             !(finite = qc_plan_pinned(e, "fast", p->graph, &plan, &status)))) {
    if (e && status != QN_UNSUPPORTED)
      wrong(r, "planning failed", qn_last_error());
    else
      snprintf(refused, sizeof refused, "%s", qn_last_error());
    qc_problem_free(p);
    return r->failed ? 0 : -1;
  }
  some_taken |= qn_plan_parts(plan) > 0;
  if (!qc_setting(settings, "fill", fills, sizeof fills))
    snprintf(fills, sizeof fills, "%s", fills_of(p));
  for (char *fill = fills, *next; fill && *fill && !idle; fill = next) {
    next = strchr(fill, ',');
    if (next)
      *next++ = 0;
    if (!finite || !qc_fill_is_special(fill))
      run_plan(plan, p, fill, qc_opt.seed, r);
  }
  qn_plan_destroy(plan);
  qc_problem_free(p);
  return 1;
}

/* ---- a rank -------------------------------------------------------------------------------------- */

static bool meet(void)
{
  char deadline[64];
  snprintf(deadline, sizeof deadline, "deadline=%g", qc_opt.time_limit > 0 ? qc_opt.time_limit : 3600);
  const char *const options[] = {deadline, NULL};
  if (qn_group_create(options, &group) || (qc_w.ctx && qn_context_join(qc_w.ctx, group))) {
    fprintf(stderr, "quern-conform: %s\n", qn_last_error());
    return false;
  }
  return true;
}

static struct report *agree(const struct report *mine)
{
  static struct report all[MOST_RANKS];
  if (qn_group_exchange(group, mine, sizeof *mine, all)) {
    memset(all, 0, sizeof all);
    all[0] = *mine;
    wrong(&all[0], "the group", qn_last_error());
  }
  for (int q = 0; q < size; q++)
    if (all[q].failed)
      return &all[q];
  return NULL;
}

/* After a failure the ranks meet again, for a group that has failed stays so. */
static bool run_item(const char *file, const qn_graph *graph, const char *settings)
{
  char *line = qc_print(graph);
  const qn_node *op = &qn_graph_inspect(graph)->op[0];
  bool taken = false;
  for (int i = 0; i < qc_w.n_engines; i++) {
    const struct qc_engine *e = &qc_w.engine[i];
    struct report mine = {0};
    if (!qc_engine_fits(e, op->op))
      continue;
    bool idle;
    char *side = my_side(line, op, &idle);
    int took = run_engine(e, side, settings, idle, &mine);
    free(side);
    if (took < 0)
      continue;
    taken = true;
    const struct report *bad = agree(&mine);
    char *name = qc_format("%s %s, %s/%s, %d ranks", file, line, qc_w.backend, e->row->name, size);
    if (!rank) {
      qc_tap_point(!bad, name, NULL);
      if (bad)
        qc_tap_yaml(qc_format("- engine: %s/%s\n  verdict: \"%s\"\n", qc_w.backend, e->name, bad->text));
    }
    free(name);
    if (qn_group_status(group)) {
      qn_group_destroy(group);
      group = NULL;
      if (!meet())
        return false;
    }
  }
  if (!taken && !rank && qc_w.table->device) {
    char *name = qc_format("%s %s: no engine takes it", file, line);
    qc_tap_point(false, name, NULL);
    free(name);
  }
  free(line);
  return true;
}

static int run_items(qn_reader *reader)
{
  for (;;) {
    qn_graph *graph;
    const char *settings;
    int line;
    char *title, file[64];
    if (qn_reader_next(reader, &graph, &settings, &line)) {
      fprintf(stderr, "quern-conform: line %d: %s\n", line, qn_last_error());
      return 2;
    }
    if (!graph)
      return 0;
    title = qc_print(graph);
    bool wanted = qn_graph_inspect(graph)->n_ops == 1 && is_for_us(&qn_graph_inspect(graph)->op[0]) &&
                  (!qc_opt.filter || strstr(title, qc_opt.filter));
    snprintf(file, sizeof file, "collective.q:%d", line);
    if (wanted && !run_item(qc_opt.line ? "case" : file, graph, settings ? settings : ""))
      return 2;
    free(title);
    qn_graph_destroy(graph);
  }
}

int qc_ranks_worker(void)
{
  qn_reader *reader;
  char *path = qc_format("%s/ranks/collective.q", qc_opt.cases);
  if (qc_opt.line ? qn_reader_text(qc_opt.line, &reader) : qn_reader_open(path, &reader)) {
    fprintf(stderr, "quern-conform: %s\n", qn_last_error());
    return 2;
  }
  if (!meet())
    return 2;
  rank = qn_group_rank(group);
  size = qn_group_size(group);
  qc_opt.device = qn_group_local_rank(group);
  if (size > MOST_RANKS || !qc_open_backend() || qn_context_join(qc_w.ctx, group)) {
    fprintf(stderr, "quern-conform: %s\n", size > MOST_RANKS ? "more than 64 ranks" : qn_last_error());
    return 2;
  }
  qc_w.cpu = !strcmp(qc_w.table->device_kind, "cpu");
  qc_engines_list();
  if (!rank)
    qc_tap_begin(-1);
  int status = run_items(reader);
  if (!status && !some_taken) {
    fprintf(stderr, "quern-conform: %s takes no case of %d ranks: %s\n", qc_w.backend, size, refused);
    status = 2;
  }
  if (!rank)
    qc_tap_end();
  qn_reader_close(reader);
  qn_group_destroy(group);
  qn_context_destroy(qc_w.ctx);
  free(path);
  return status ? status : !rank && qc_tap_failed();
}

/* ---- the program that starts them ------------------------------------------------------------------- */

/* One backend; 0, 1 or 2 as the program's exit status. */
static int run_backend(const char *backend, char **argv)
{
  int n = 0;
  while (argv[n])
    n++;
  char **more = qc_alloc((size_t)(n + 4) * sizeof *more);
  memcpy(more, argv, (size_t)n * sizeof *more);
  more[n++] = "--worker=rank";
  more[n++] = "--backend";
  more[n++] = strdup(backend);
  int status = start_ranks("quern-conform", qc_opt.ranks, more);
  free(more[n - 1]);
  free(more);
  if (status == 2)
    printf("Bail out! a rank could not run, or died\n");
  return status > 2 ? 2 : status;
}

int qc_ranks_main(char **backends, int n, char **argv)
{
  int worst = 0;
  for (int i = 0; i < n; i++) {
    int status = run_backend(backends[i], argv);
    worst = status > worst ? status : worst;
  }
  return worst;
}
