/* check_other.c -- checks other than of results: wrong problems are refused with a sentence, so are pointers that break a
 * plan's promise, and accumulators are as wide as engines declare. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

int qc_check_refused(const struct qc_item *item)
{
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  qn_status status = qn_graph_parse(item->line, &graph);
  if (!status) {
    status = qn_plan_create(qc_w.ctx, graph, &plan);
    qn_plan_destroy(plan);
    qn_graph_destroy(graph);
  }
  if (status == QN_SYNTAX || status == QN_BAD_ARGUMENT) {
    if (strlen(qn_last_error()) > 10)
      return QC_OK;
    qc_say_fail("verdict", "refused without a sentence: '%s'", qn_last_error());
    return QC_FAIL;
  }
  qc_say_fail("verdict", "expected to be refused as bad; status %d%s%s", (int)status, status ? ": " : "",
              status ? qn_last_error() : "");
  return QC_FAIL;
}

int qc_check_pointer(const struct qc_item *item)
{
  (void)item;
  qn_graph *graph;
  qn_plan *plan;
  void *x = NULL, *y = NULL;
  int outcome = QC_FAIL;
  if (qn_context_set(qc_w.ctx, "engine", "") || qn_graph_parse("relu x=f32/64", &graph))
    return QC_FAIL;
  if (qn_plan_create(qc_w.ctx, graph, &plan)) {
    qn_graph_destroy(graph);
    return QC_SKIP;                     /* a backend of few ops */
  }
  if (!qn_alloc(qc_w.ctx, 1024, &x) && !qn_alloc(qc_w.ctx, 1024, &y)) {
    void *good[] = {x, y}, *off[] = {(char *)x + 4, y}, *none[] = {x, NULL};
    qn_status first = qn_plan_execute(qc_w.ctx, plan, good), second = qn_plan_execute(qc_w.ctx, plan, off);
    qn_status third = qn_plan_execute(qc_w.ctx, plan, none);
    qn_context_synchronize(qc_w.ctx);
    if (first || second != QN_BAD_ARGUMENT || third != QN_BAD_ARGUMENT)
      qc_say_fail("verdict", "good pointers: %d; 4 bytes off the promised 16: %d; NULL: %d", first, second, third);
    else
      outcome = QC_OK;
  }
  qn_free(qc_w.ctx, x);
  qn_free(qc_w.ctx, y);
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  return outcome;
}

/* ---- the accumulator's width -------------------------------------------------------------- */

/* Bits below a term of size 1 that the declaration promises to keep. */
static int promised(const qn_numerics *d, bool f64)
{
  switch (d->accumulator) {
  case QN_ACC_F16:     return 10;
  case QN_ACC_F8_FAST: return 12;
  case QN_ACC_DOUBLE:  return 50;
  case QN_ACC_NATIVE:  return f64 ? 52 : 23;
  }
  return 21;
}

/* Column t of b is 1, then 2^-t, then -1, far apart; a is ones. The result is 2^-t, or 0 if it was lost. */
static int observed_width(const struct qc_problem *p, const qn_plan *plan, char *why, size_t bytes)
{
  struct qc_value *a = p->node[0].in[0], *b = p->node[0].in[1];
  int64_t k = b->q.dim[0], columns = b->q.dim[1];
  void *raw[QC_MAX_POINTERS];
  size_t size = qn_dtype_bytes(b->q.dtype);
  for (int64_t i = 0; i < a->n; i++)
    qc_encode(a->q.dtype, 1, (char *)a->raw + (size_t)i * size);
  for (int64_t i = 0; i < b->n; i++) {
    int64_t row = i / columns, t = i % columns;
    double v = row == 0 ? 1 : row == k / 2 ? ldexp(1, -(int)t) : row == k - 1 ? -1 : 0;
    qc_encode(b->q.dtype, v, (char *)b->raw + (size_t)i * size);
  }
  qc_results_make(p, raw);
  const char *verdict = qc_execute(plan, p, QC_AT_END, false, 3, raw, why, bytes);
  int width = 0;
  const struct qc_value *y = p->node[0].out[0];
  while (!verdict && width < columns) {
    double kept = qc_decode(y->q.dtype, (char *)raw[2] + (size_t)width * qn_dtype_bytes(y->q.dtype));
    double sent = qc_round(b->q.dtype, ldexp(1, -width));
    if (kept != sent || sent == 0)
      break;
    width++;
  }
  qc_results_free(raw);
  return verdict ? -1 : width - 1;
}

static bool probe(struct qc_engine *e, const char *line, bool f64, int least_sent)
{
  static const char *const levels[] = {"strict", "f32", "tf32", "fast"};
  char why[512] = "";
  bool ok = true;
  struct qc_problem *p = qc_problem_make(line, why, sizeof why);
  if (!p) {
    qc_say_fail("why", "\"%s\"", why);
    return false;
  }
  for (int level = 0; level < 4 && ok; level++) {
    qn_plan *plan;
    qn_status status;
    if (!qc_plan_pinned(e, levels[level], p->graph, &plan, &status))
      continue;
    const qn_prepared *answer = qn_plan_part(plan, 0, NULL);
    int wanted = promised(&answer->numerics, f64), width = observed_width(p, plan, why, sizeof why);
    wanted = wanted < least_sent ? wanted : least_sent;
    if (width < wanted) {
      qc_say_fail("- engine", "%s/%s", qc_w.backend, e->name);
      qc_say_fail("  verdict", "keeps %d bits beside a term of size 1, declares %d%s%s", width, wanted, *why ? ": " : "", why);
      qc_say_fail("  problem", "%s", line);
      ok = false;
    } else if (qc_opt.verbose) {
      qc_say_note("%s %s keeps %d bits", e->name, levels[level], width);
    }
    e->reached = e->reached ? e->reached : 1;
    qn_plan_destroy(plan);
  }
  qc_problem_free(p);
  return ok;
}

int qc_check_probe(const struct qc_item *item)
{
  (void)item;
  static const struct { const char *line; bool f64; int sent; } probes[] = {
    {"matmul a=f32/16x64 b=f32/64x60", false, 59}, {"matmul a=f64/16x64 b=f64/64x60", true, 59},
    {"matmul a=bf16/16x64 b=bf16/64x60 y=f32/16x60", false, 59}, {"matmul a=f16/16x64 b=f16/64x24 y=f32/16x24", false, 23},
    {"matmul a=e5m2/16x64 b=e5m2/64x16 y=f32/16x16", false, 15},
  };
  bool ok = true;
  for (int i = 0; i < qc_w.n_engines; i++) {
    if (!qc_engine_fits(&qc_w.engine[i], QN_OP_MATMUL) || i < qc_w.skip_engines)
      continue;
    qc_say_engine(i + 1, i);
    for (size_t k = 0; k < sizeof probes / sizeof *probes; k++)
      ok &= probe(&qc_w.engine[i], probes[k].line, probes[k].f64, probes[k].sent);
  }
  return ok ? QC_OK : QC_FAIL;
}
