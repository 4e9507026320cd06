/* execute.c -- one execution of a plan in guarded memory: inputs in place, poison everywhere else, a workspace of exactly the
 * size that the plan states, filled with garbage, and counters that must be zero again. Or the same recorded while the inputs too hold
 * garbage, and replayed once they are set: this exposes engines that look at data while enqueuing. */
#include <stdlib.h>
#include <string.h>
#include "conform.h"

void qc_results_make(const struct qc_problem *p, void **raw)
{
  memset(raw, 0, QC_MAX_POINTERS * sizeof *raw);
  for (uint32_t i = p->view->n_ins; i < p->view->n_pointers; i++) {
    const struct qc_value *v = &p->value[p->view->pointer[i]];
    raw[i] = qc_alloc((size_t)v->n * qn_dtype_bytes(v->q.dtype) + 8);
  }
}

void qc_results_free(void **raw)
{
  for (int i = 0; i < QC_MAX_POINTERS; i++)
    free(raw[i]);
}

struct memory {
  struct qc_buffer *buffer[QC_MAX_POINTERS], *workspace, *counters;
  void *pointer[QC_MAX_POINTERS];
  bool  shared[QC_MAX_POINTERS];        /* an input that lends its memory, or the output that takes it */
};

/* A result that nobody asks for and no op reads has its memory in the plan's workspace, behind the engine's. */
static bool has_unread(const qn_graph_view *view)
{
  for (uint32_t i = 0; i < view->n_values; i++)
    if (view->value[i].producer >= 0 && view->value[i].last_user < 0 && !(view->value[i].flags & QN_VALUE_ESCAPE)) return true;
  return false;
}

size_t qc_workspace_used(const qn_plan *plan, const qn_graph_view *view)
{
  const size_t bytes = qn_plan_workspace(plan);
  const qn_prepared *part = qn_plan_parts(plan) == 1 ? qn_plan_part(plan, 0, NULL) : NULL;
  return part && part->n_ops == view->n_ops && part->workspace < bytes && !has_unread(view) ? part->workspace : bytes;
}

static void make_memory(struct memory *m, const qn_plan *plan, const struct qc_problem *p, int place, uint64_t seed)
{
  const qn_graph_view *view = p->view;
  memset(m, 0, sizeof *m);
  for (uint32_t i = 0; i < view->n_pointers; i++) {
    struct qc_value *v = &p->value[view->pointer[i]];
    for (uint32_t j = 0; j < i && v->is_output && v->q.over >= 0; j++)
      if (view->pointer[j] == v->q.over)
        m->buffer[i] = m->buffer[j], m->shared[i] = m->shared[j] = true;
    if (!m->buffer[i])
      m->buffer[i] = qc_buffer_make(qc_w.ctx, &v->q, place, seed + i);
    m->pointer[i] = qc_buffer_pointer(m->buffer[i]);
  }
  const size_t bytes = qn_plan_workspace(plan), used = qc_workspace_used(plan, view), counters = qn_plan_counters(plan);
  m->workspace = qc_buffer_bytes(qc_w.ctx, bytes, used, place, seed + 1000);
  m->counters = qc_buffer_bytes(qc_w.ctx, counters, counters, place, seed + 1001);
  qc_buffer_zero(m->counters);
}

static void write_inputs(struct memory *m, const struct qc_problem *p)
{
  for (uint32_t i = 0; i < p->view->n_pointers; i++) {
    const struct qc_value *v = &p->value[p->view->pointer[i]];
    if (v->is_input)
      qc_buffer_write(m->buffer[i], v->raw);
  }
}

static void free_memory(struct memory *m, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++) {
    bool first = true;
    for (uint32_t j = 0; j < i; j++)
      first &= m->buffer[j] != m->buffer[i];
    if (first)
      qc_buffer_free(m->buffer[i]);
  }
  qc_buffer_free(m->workspace);
  qc_buffer_free(m->counters);
}

static const char *check_memory(struct memory *m, const struct qc_problem *p, void **raw, char *why, size_t bytes)
{
  char text[256];
  for (uint32_t i = 0; i < p->view->n_pointers; i++) {
    const struct qc_value *v = &p->value[p->view->pointer[i]];
    if (v->is_input && m->shared[i])
      continue;                         /* checked with its output */
    if (!qc_buffer_check(m->buffer[i], raw[i], v->is_output, text, sizeof text)) {
      snprintf(why, bytes, "%s: %s", v->name, text);
      return v->is_input ? "input or guard changed" : "guard changed";
    }
  }
  if (!qc_buffer_check(m->workspace, NULL, true, why, bytes))
    return "workspace overrun";
  if (!qc_buffer_check(m->counters, NULL, false, why, bytes))
    return "counters not left zero";
  return NULL;
}

struct execution { const qn_plan *plan; struct memory *m; };
static qn_status execute(void *arg)
{
  struct execution *e = arg;
  return qn_plan_execute_with(qc_w.ctx, e->plan, e->m->pointer, qc_buffer_pointer(e->m->workspace), qc_buffer_pointer(e->m->counters));
}

static qn_status enqueue(const qn_plan *plan, struct memory *m) { return qc_on_stack(execute, &(struct execution){plan, m}); }

static qn_status replay_it(void *recording) { return qn_recording_replay(qc_w.ctx, recording); }

static qn_status run(const qn_plan *plan, const struct qc_problem *p, struct memory *m)
{
  write_inputs(m, p);
  qn_status status = enqueue(plan, m);
  return status ? status : qn_context_synchronize(qc_w.ctx);
}

static qn_status replay(const qn_plan *plan, const struct qc_problem *p, struct memory *m)
{
  qn_recording *recording = NULL;
  qn_status status = qn_record_begin(qc_w.ctx), ended;
  if (status)
    return status;
  status = enqueue(plan, m);
  ended = qn_record_end(qc_w.ctx, &recording);
  if (!status && !(status = ended)) {
    write_inputs(m, p);
    status = qc_on_stack(replay_it, recording);
    if (!status)
      status = qn_context_synchronize(qc_w.ctx);
  }
  qn_recording_destroy(recording);
  return status;
}

/* MMX registers are aliased to those of long double: used without emms, later long double sums are NaN. */
static bool left_mmx(void)
{
#ifdef __x86_64__
  struct { uint16_t control, unused, status, unused2, tags, unused3; uint32_t rest[4]; } x87;
  __asm__ volatile("fnstenv %0\n\temms" : "=m"(x87) : : "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)");
  return x87.tags != 0xffff;
#else
  return false;
#endif
}

const char *qc_execute(const qn_plan *plan, const struct qc_problem *p, int place, bool recorded, uint64_t seed, void **raw,
                       char *why, size_t bytes)
{
  struct memory m;
  const char *verdict = NULL;
  make_memory(&m, plan, p, place, seed);
  if (recorded ? replay(plan, p, &m) : run(plan, p, &m)) {
    verdict = recorded ? "accepted, then not recorded and replayed" : "accepted, then failed";
    snprintf(why, bytes, "%s", qn_last_error());
  } else {
    verdict = check_memory(&m, p, raw, why, bytes);
  }
  if (left_mmx() && !verdict) {
    verdict = "the processor's state changed";
    snprintf(why, bytes, "MMX registers are left in use: what computes in long double next goes wrong");
  }
  free_memory(&m, p->view->n_pointers);
  return verdict;
}
