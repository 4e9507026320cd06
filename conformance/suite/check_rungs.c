/* check_rungs.c -- what the setting `deterministic` promises of the planner's choice: under `batch` a row alone has the bits
 * that it has among others, under `portable` the device gives the bits of another model. Engines that each keep the promise break
 * it together if the batch, or the device, decides between them. A row's own layout may decide: whether rows interleave or not changes
 * with their number. */
#include <stdio.h>
#include <string.h>
#include "conform.h"

static bool demand(qn_context *ctx, const char *rung, char *why, size_t bytes)
{
  bool set = !qn_context_set(ctx, "deterministic", rung);
  if (!set)
    snprintf(why, bytes, "%s", qn_last_error());
  return set;
}

/* Runs the planner's choice for p on ctx. */
static bool run_on(qn_context *ctx, const struct qc_problem *p, void **raw, char *why, size_t bytes)
{
  qn_context *kept = qc_w.ctx;
  qn_plan *plan;
  qn_status status;
  qc_w.ctx = ctx;
  bool ok = qc_plan_pinned(NULL, QC_RUNGS_MATH, p->graph, &plan, &status);
  if (!ok) {
    snprintf(why, bytes, "%s", qn_last_error());
  } else {
    ok = !qc_execute(plan, p, QC_AT_END, false, 51, raw, why, bytes);
    qn_plan_destroy(plan);
  }
  qc_w.ctx = kept;
  return ok;
}

static bool same(const struct qc_problem *p, void *const *a, void *const *b, char *why, size_t bytes)
{
  for (uint32_t i = p->view->n_ins; i < p->view->n_pointers; i++) {
    const struct qc_value *v = &p->value[p->view->pointer[i]];
    if (!memcmp(a[i], b[i], (size_t)v->n * qn_dtype_bytes(v->q.dtype)))
      continue;
    snprintf(why, bytes, "%s: on another model of device it has other bits", v->name);
    return false;
  }
  return true;
}

static bool check_row(const struct qc_problem *p, char *why, size_t bytes)
{
  void *raw[QC_MAX_POINTERS];
  qc_results_make(p, raw);
  bool ok = demand(qc_w.ctx, "batch", why, bytes) && run_on(qc_w.ctx, p, raw, why, bytes) &&
            qc_check_batch(NULL, QC_RUNGS_MATH, p, raw, why, bytes) != QC_ROWS_DIFFER;
  qc_results_free(raw);
  return ok;
}

static bool check_model(const struct qc_problem *p, char *why, size_t bytes)
{
  void *here[QC_MAX_POINTERS], *there[QC_MAX_POINTERS];
  qc_results_make(p, here);
  qc_results_make(p, there);
  bool ok = demand(qc_w.ctx, "portable", why, bytes) && demand(qc_w.narrowed, "portable", why, bytes) &&
            run_on(qc_w.ctx, p, here, why, bytes) && run_on(qc_w.narrowed, p, there, why, bytes) && same(p, here, there, why, bytes);
  qc_results_free(here);
  qc_results_free(there);
  return ok;
}

bool qc_check_rungs(const struct qc_problem *p, char *why, size_t bytes)
{
  char was[32];
  snprintf(was, sizeof was, "%s", qn_context_get(qc_w.ctx, "deterministic"));
  bool ok = (!qc_rows_apart(p) || check_row(p, why, bytes)) && (!qc_w.narrowed || check_model(p, why, bytes));
  ok &= demand(qc_w.ctx, was, why, bytes);
  return (!qc_w.narrowed || demand(qc_w.narrowed, was, why, bytes)) && ok;
}
