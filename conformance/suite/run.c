/* run.c -- a case on every engine that takes it.
 *
 * For each fill the reference is computed once. Each engine (and each of its variants) is pinned in turn under each level of
 * `math` at which its answer differs, and executed twice, with different guards, poison and garbage in the workspace; if the
 * device captures, on the first fill, the second time recorded and replayed. Both results are judged; an engine that
 * claims to be deterministic must give the same bits, also with one thread. */
#include <stdlib.h>
#include <string.h>
#include "conform.h"

static const char *const levels[] = {"strict", "f32", "tf32", "fast"};

/* One engine's plan for one fill of one case. */
struct trial {
  const struct qc_item *item;
  struct qc_problem *p;
  struct qc_engine *e;                  /* NULL: the planner's own choice */
  const char *fill, *math;
  uint64_t seed;
  qn_plan *plan;
  qn_numerics numerics[QC_MAX_OPS];
  int n_parts;
  uint64_t traits;                      /* common to all parts */
  bool failed, judged, vacuous;
};

/* ---- failures ----------------------------------------------------------------------------- */

static char *repro_settings(const struct trial *t)
{
  char *out = qc_format("fill=%s seed=%llu", t->fill, (unsigned long long)t->seed), *next;
  for (const char *s = t->item->settings; *s; s += strcspn(s, " \t")) {
    s += strspn(s, " \t");
    if (!strncmp(s, "fill=", 5) || !strncmp(s, "seed=", 5))
      continue;
    next = qc_format("%s %.*s", out, (int)strcspn(s, " \t"), s);
    free(out);
    out = next;
  }
  return out;
}

/* Begins the YAML entry of a failure; the caller adds to it. */
static void fail(struct trial *t, const char *verdict, const char *text)
{
  t->failed = true;
  char *settings = repro_settings(t), *line = qc_one_line(t->item->line);
  qc_say_fail("- engine", "%s/%s", qc_w.backend, t->e ? t->e->name : "(planner's choice)");
  qc_say_fail("  verdict", "%s", verdict);
  if (*text)
    qc_say_fail("  why", "\"%s\"", text);
  qc_say_fail("  math", "%s", t->math);
  char runs[32] = "";
  if (qc_opt.runs > 2)
    snprintf(runs, sizeof runs, " --runs %d", qc_opt.runs);
  qc_say_fail("  repro", "quern-conform --backend %s%s%s%s --case '%s ; %s'", qc_opt.backend, t->e ? " --engine " : "",
              t->e ? t->e->name : "", runs, line, settings);
  free(settings);
  free(line);
}

static void fail_values(struct trial *t, const struct qc_value *v, const struct qc_verdict *d, const char *verdict, const char *which)
{
  fail(t, verdict, "");
  char index[128] = "", *at = index;
  int64_t i = d->worst, place[QN_MAX_RANK];
  for (int k = v->q.rank - 1; k >= 0; k--) {
    place[k] = i % v->q.dim[k];
    i /= v->q.dim[k];
  }
  for (int k = 0; k < v->q.rank; k++)
    at += snprintf(at, sizeof index - (size_t)(at - index), "%s%lld", k ? "," : "", (long long)place[k]);
  qc_say_fail("  output", "%s", v->name);
  qc_say_fail("  failed", "%lld of %lld%s", (long long)d->failed, (long long)d->total, which);
  qc_say_fail("  first", "%lld", (long long)d->first);
  qc_say_fail("  worst", "[%s]", index);
  qc_say_fail("  got", "%.9g", d->got);
  qc_say_fail("  want", "%.9g", d->want);
  qc_say_fail("  bound", "%.3g", d->bound);
  qc_say_fail("  ratio", "%.4g", d->ratio);
  const struct qc_node *n = &t->p->node[0];
  if (t->p->view->n_ops == 1 && n->s && n->n_terms > 0 && !v->once && n->s[d->worst] > 0)   /* below 1 a lost term would be detected */
    qc_say_fail("  resolution", "%.3g of one of %g terms", n->n_terms * d->bound / n->s[d->worst], n->n_terms);
}

/* A text that distinguishes the engine's answers. */
static void answer_key(const qn_plan *plan, char *key, size_t bytes)
{
  size_t n = 0;
  for (int i = 0; i < qn_plan_parts(plan) && n < bytes; i++) {
    const qn_prepared *a = qn_plan_part(plan, i, NULL);
    const qn_numerics *d = &a->numerics;
    n += (size_t)snprintf(key + n, bytes - n, "%s:%s/%u %llu %u %u %d %d %d %u %llx;", a->engine->name,
                          a->variant ? a->variant : "", a->n_ops, (unsigned long long)a->workspace, d->accumulator, d->method,
                          d->tile, d->filter, d->promote, d->store, (unsigned long long)a->traits);
  }
}

/* The declared numerics must be allowed at the level of math that the engine asks for. */
static void check_declarations(struct trial *t)
{
  t->n_parts = qn_plan_parts(t->plan);
  const uint64_t any = QN_TRAIT_FINITE_ONLY | QN_TRAIT_FLUSHES;         /* these: if any part has them; no parts, no claim */
  t->traits = t->n_parts ? ~any : 0;
  for (int i = 0; i < t->n_parts; i++) {
    const qn_prepared *a = qn_plan_part(t->plan, i, NULL);
    const qn_numerics *d = &a->numerics;
    /* products of 8-bit floats may be summed in tensor-core precision if promoted in time (DESIGN: every 128 terms) */
    bool promoted = d->accumulator == QN_ACC_F8_FAST && d->promote > 0 && d->promote <= 128;
    bool reduced = d->accumulator == QN_ACC_F16 || (d->accumulator == QN_ACC_F8_FAST && !promoted);
    uint32_t least = QN_MATH_STRICT;
    if (promoted || d->method != QN_METHOD_DIRECT || d->accumulator == QN_ACC_3XTF32 || d->accumulator == QN_ACC_BF16X3)
      least = QN_MATH_F32;
    if (d->accumulator == QN_ACC_TF32)
      least = QN_MATH_TF32;
    if (reduced || a->traits & any)
      least = QN_MATH_FAST;
    if (a->math < least)
      fail(t, "declaration", "its numerics are not within the level of math that it asks for");
    if (reduced && !(a->traits & QN_TRAIT_REDUCED))
      fail(t, "declaration", "it sums in less than f32 without the trait that says so");
    t->numerics[i] = *d;
    t->traits = (t->traits & (a->traits | any)) | (a->traits & any);
  }
}

/* ---- execution ---------------------------------------------------------------------------- */

static bool execute(struct trial *t, int place, bool recorded, uint64_t seed, void **raw)
{
  char why[512];
  const char *verdict = qc_execute(t->plan, t->p, place, recorded, seed, raw, why, sizeof why);
  if (verdict)
    fail(t, verdict, why);
  return !verdict;
}

/* Is the sign of a zero of v defined: is v made from inputs only by ops that move, drop or flip signs? */
static bool zero_has_sign(const struct qc_problem *p, const struct qc_value *v)
{
  static const uint32_t ops[] = {QN_OP_NEG, QN_OP_ABS, QN_OP_SELECT, QN_OP_CAST, QN_OP_QUANTIZE, QN_OP_QUANTIZE_DYNAMIC};
  const struct qc_node *maker = NULL;
  for (uint32_t k = 0; k < p->view->n_ops; k++)
    for (int o = 0; o < p->node[k].n_out; o++)
      if (p->node[k].out[o] == v)
        maker = &p->node[k];
  bool has = false;
  for (size_t i = 0; maker && i < sizeof ops / sizeof *ops; i++)
    has |= maker->op->kind == ops[i];
  for (int i = 0; has && i < maker->n_in; i++)
    has = maker->in[i]->is_input || zero_has_sign(p, maker->in[i]);
  return has;
}

/* Where the arithmetic is that of the dtypes. */
static void judge_stated(struct trial *t, const struct qc_value *v, const void *raw, const char *which)
{
  struct qc_verdict d;
  qc_compare_stated(v, raw, &d);
  if (d.failed)
    fail_values(t, v, &d, "not the values that the case states", which);
}

static void judge(struct trial *t, void *const *raw, const char *which)
{
  const qn_graph_view *view = t->p->view;
  t->judged = true;
  for (uint32_t i = view->n_ins; i < view->n_pointers && !t->failed; i++) {
    struct qc_value *v = &t->p->value[view->pointer[i]];
    struct qc_verdict d;
    qc_round_reference(v);
    qc_compare(v, raw[i], zero_has_sign(t->p, v), &d);
    t->vacuous |= d.vacuous || (d.undecided && !strstr(t->item->settings, ".is="));     /* with stated values it is intended */
    if (d.failed)
      fail_values(t, v, &d, v->once ? "exact" : "bound", which);
    else if (v->stated && (!strcmp(t->math, levels[0]) || !strcmp(t->math, levels[1])))
      judge_stated(t, v, raw[i], which);
    else if (qc_opt.verbose && v->y)
      qc_say_note("%s %s %s %s ratio %.3g", t->e ? t->e->name : "planner", t->fill, v->name, v->once ? "exact" : "bound",
                  d.ratio);
  }
}

static void compare_bits(struct trial *t, void *const *a, void *const *b, const char *verdict)
{
  const qn_graph_view *view = t->p->view;
  for (uint32_t i = view->n_ins; i < view->n_pointers && !t->failed; i++) {
    const struct qc_value *v = &t->p->value[view->pointer[i]];
    size_t size = qn_dtype_bytes(v->q.dtype);
    for (int64_t k = 0; k < v->n; k++) {
      const char *x = (const char *)a[i] + (size_t)k * size, *y = (const char *)b[i] + (size_t)k * size;
      if (!memcmp(x, y, size))
        continue;
      char *text = qc_format("%s element %lld: %.9g and then %.9g", v->name, (long long)k, qc_decode(v->q.dtype, x),
                             qc_decode(v->q.dtype, y));
      fail(t, verdict, text);
      free(text);
      break;
    }
  }
}

/* Records that a claimed trait could be compared, and whether it was. */
static void noted(struct trial *t, uint32_t trait, bool compared)
{
  if (t->e)
    t->e->claimed |= trait;
  if (t->e && compared)
    t->e->compared |= trait;
}

/* The same bits from a plan for one thread; for three if there is only one. */
static void check_threads(struct trial *t, void *const *first)
{
  const char *was = qn_context_get(qc_w.ctx, "threads");
  char threads[32];
  snprintf(threads, sizeof threads, "%s", was);
  const char *other = strcmp(threads, "1") ? "1" : "3";
  if (qn_context_set(qc_w.ctx, "threads", other))
    return;
  qn_plan *kept = t->plan;
  qn_status status;
  void *raw[QC_MAX_POINTERS];
  qc_results_make(t->p, raw);
  if (!qc_plan_pinned(t->e, t->math, t->p->graph, &t->plan, &status)) {
    fail(t, "threads", "it refuses another number of threads than it took");
  } else {
    if (execute(t, QC_AT_END, false, t->seed + 31, raw))
      compare_bits(t, first, raw, "another number of threads gives other bits");
    qn_plan_destroy(t->plan);
  }
  t->plan = kept;
  qc_results_free(raw);
  if (qn_context_set(qc_w.ctx, "threads", threads))
    fail(t, "threads cannot be set back", qn_last_error());
}

/* The same bits with the device narrowed to another model, if the engine takes the problem there. */
static void check_narrowed(struct trial *t, void *const *first)
{
  qn_context *kept_ctx = qc_w.ctx;
  qn_plan *kept = t->plan;
  qn_status status;
  void *raw[QC_MAX_POINTERS];
  noted(t, QN_TRAIT_PORTABLE, false);
  if (!qc_w.narrowed)
    return;
  qc_w.ctx = qc_w.narrowed;
  qc_results_make(t->p, raw);
  if (qc_plan_pinned(t->e, t->math, t->p->graph, &t->plan, &status)) {
    noted(t, QN_TRAIT_PORTABLE, true);
    if (execute(t, QC_AT_END, false, t->seed + 41, raw))
      compare_bits(t, first, raw, "not portable: on another model of device it gives other bits");
    qn_plan_destroy(t->plan);
  } else if (status != QN_UNSUPPORTED) {
    fail(t, "planning for another model of device failed", qn_last_error());
  }
  t->plan = kept;
  qc_results_free(raw);
  qc_w.ctx = kept_ctx;
}

/* The same bits for the last row alone. */
static void check_rows(struct trial *t, void *const *first)
{
  char why[256];
  enum qc_rows rows = t->p->special ? QC_ROWS_UNSEEN : qc_check_batch(t->e, t->math, t->p, first, why, sizeof why);
  noted(t, QN_TRAIT_BATCH_INVARIANT, rows != QC_ROWS_UNSEEN);
  if (rows == QC_ROWS_DIFFER)
    fail(t, "not batch invariant", why);
}

static void run_plan(struct trial *t, bool first_fill)
{
  void *one[QC_MAX_POINTERS], *two[QC_MAX_POINTERS];
  check_declarations(t);
  if (t->failed || !qc_is_vouched_for(t->p, t->traits))
    return;
  qc_bound(t->p, t->numerics, t->n_parts);
  qc_results_make(t->p, one);
  qc_results_make(t->p, two);
  if (execute(t, QC_AT_END, false, t->seed + 11, one))
    judge(t, one, "");
  bool recorded = first_fill && !qc_w.cpu;
  if (!t->failed && execute(t, QC_AT_START, recorded, t->seed + 23, two)) {
    if (t->traits & QN_TRAIT_DETERMINISTIC)
      compare_bits(t, one, two, recorded ? "its replay gives other bits, or not all of its output is written"
                   : "not deterministic, or not all of its output written");
    else
      judge(t, two, recorded ? ", in the replay" : ", in the second run");
  }
  for (int run = 2; run < qc_opt.runs && !t->failed && t->traits & QN_TRAIT_DETERMINISTIC; run++)
    if (execute(t, run & 1 ? QC_AT_START : QC_AT_END, false, t->seed + 23 + (uint64_t)run, two))
      compare_bits(t, one, two, "not deterministic");
  if (!t->failed && first_fill && qc_w.cpu && t->traits & QN_TRAIT_DETERMINISTIC)
    check_threads(t, one);
  if (!t->failed && first_fill && t->e && t->traits & QN_TRAIT_PORTABLE)
    check_narrowed(t, one);
  if (!t->failed && t->traits & QN_TRAIT_BATCH_INVARIANT && qc_has_rows(t->p))
    check_rows(t, one);
  qc_results_free(one);
  qc_results_free(two);
}

/* ---- a case ------------------------------------------------------------------------------- */

/* The fills that ops.def names for the op, and whether that list is all that it admits. */
static void default_fills(const struct qc_problem *p, char *fills, size_t bytes, bool *closed)
{
  const struct qc_node *n = &p->node[0];
  bool floats = false;
  for (int i = 0; i < n->n_in; i++)
    floats |= qc_is_float(n->in[i]->q.dtype);
  const char *s = p->view->n_ops > 1 ? "int,signed,pos*" : qc_fills(n->op), *whole = strchr(s, '/');
  size_t length = whole ? (size_t)(whole - s) : strlen(s), at = 0;
  *closed = length && s[length - 1] == '!';
  length -= *closed;
  if (p->view->n_ops == 1 && !floats) {
    s = whole ? whole + 1 : "int,bits";
    length = strlen(s);
  }
  for (size_t i = 0, k; i < length; i = k + 1) {
    for (k = i; k < length && s[k] != ','; k++) {}
    const bool later = s[k - 1] == '*';
    if (!later || qc_opt.tier != QC_QUICK)
      at += (size_t)snprintf(fills + at, bytes - at, "%s%.*s", at ? "," : "", (int)(k - i - later), s + i);
  }
}

static uint64_t line_hash(const char *line)
{
  uint64_t h = 0;
  for (const char *s = line; *s; s++)
    h = qc_hash(h, 31, (uint64_t)*s);
  return h;
}

/* What few inputs hold and every engine must bear: the largest numbers, squares at the edge of f32, subnormals, no variation at all.
 * One for every other case or so, by its line, so that each family meets all of them. NULL: none for this case. */
static const char *rare_fill(const struct qc_item *item, const struct qc_problem *p, bool closed)
{
  static const char *const fills[] = {"large", "large:30", "large:19", "tiny", "const:100.3"};
  enum { FILLS = sizeof fills / sizeof *fills, TURNS = 2 * FILLS };
  const struct qc_node *n = &p->node[0];
  bool floats = false, wide = false;
  for (int i = 0; i < n->n_in; i++) {
    floats |= qc_is_float(n->in[i]->q.dtype) && n->in[i]->q.rank > 0;
    wide |= n->in[i]->q.dtype == QN_F64;
  }
  if (p->view->n_ops > 1 || qc_opt.tier == QC_QUICK || !floats || closed)
    return NULL;                        /* closed: it has all bits, or takes only some values */
  const uint64_t h = line_hash(item->line) % TURNS;
  if (h == 0 && wide && n->op->family != QN_FAMILY_POINTWISE)
    return "large:75";                  /* the reference has no wider range: products of four must be finite */
  return h < FILLS ? fills[h] : NULL;
}

/* What an engine answered for the case: plans do not depend on the fill, so that each is made once. One for each level of math. */
struct answer {
  bool asked, took;
  char *key;                            /* of an answer */
  qn_plan *plan;                        /* NULL: refused, or the answer of an earlier level */
};
enum { LEVELS = sizeof levels / sizeof *levels };

static void ask(struct trial *t, struct answer *answer, int level)
{
  char key[1024];
  qn_status status;
  struct answer *a = &answer[level];
  a->asked = true;
  if (!qc_plan_pinned(t->e, t->math, t->p->graph, &a->plan, &status)) {
    a->plan = NULL;
    if (status != QN_UNSUPPORTED)
      fail(t, "planning failed", qn_last_error());
    else if (t->e && t->e->row->class_ == QN_CLASS_GENERIC && t->p->view->n_ops == 1)
      fail(t, "a generic engine may not refuse", qn_last_error());
    return;
  }
  a->took = true;
  if (t->e && qn_plan_parts(a->plan) > 0)         /* problems settled by core reach no engine */
    t->e->reached = 1;
  *key = 0;
  answer_key(a->plan, key, sizeof key);
  a->key = qc_format("%s", key);
  for (int k = 0; k < level && a->plan; k++)
    if (answer[k].key && !strcmp(answer[k].key, key)) {
      qn_plan_destroy(a->plan);
      a->plan = NULL;
    }
}

/* One engine on one fill. Returns whether it took the case. */
static bool run_engine(struct trial *t, struct answer *answer, bool first_fill)
{
  bool took = false;
  for (int level = 0; level < LEVELS && !t->failed; level++) {
    t->math = levels[level];
    if (!answer[level].asked)
      ask(t, answer, level);
    took |= answer[level].took;
    if ((t->plan = answer[level].plan))
      run_plan(t, first_fill);
  }
  return took;
}

static void forget(struct answer *answer, int n)
{
  for (int i = 0; i < n; i++) {
    qn_plan_destroy(answer[i].plan);
    free(answer[i].key);
  }
  free(answer);
}

static bool fits_some_op(const struct qc_engine *e, const struct qc_problem *p)
{
  for (uint32_t k = 0; k < p->view->n_ops; k++)
    if (qc_engine_fits(e, p->view->op[k].op))
      return true;
  return false;
}

/* Is e to be judged on this case? turn: decides between variants, see --variants. */
static bool in_turn(const struct qc_engine *e, const struct qc_problem *p, uint64_t turn)
{
  const bool met = qc_opt.variants < 2 || !e->number || (turn + (uint64_t)e->number) % (uint64_t)qc_opt.variants == 0;
  return fits_some_op(e, p) && met && !(qc_opt.kills && e->kills >= qc_opt.kills);
}

/* All outputs empty: no engine is asked, so any answer of the planner will do. */
static bool settled_by_core(const struct qc_problem *p)
{
  for (uint32_t i = p->view->n_ins; i < p->view->n_pointers; i++)
    if (p->value[p->view->pointer[i]].n)
      return false;
  return true;
}

/* Collectives of a device may be engines of another backend, as plugins/nccl has them for cuda; those are judged there. */
static bool left_to_others(const struct qc_problem *p)
{
  bool fits = p->view->op[0].family != QN_FAMILY_COLLECTIVE;
  for (int i = 0; i < qc_w.n_engines && !fits; i++)
    fits = fits_some_op(&qc_w.engine[i], p);
  return !fits;
}

int qc_run_case(const struct qc_item *item)
{
  char why[512], fills[256], text[32];
  struct qc_problem *p = qc_problem_make(item->line, why, sizeof why);
  if (!p) {
    qc_say_fail("why", "\"%s\"", why);
    return QC_FAIL;
  }
  if (left_to_others(p)) {
    qc_problem_free(p);
    qc_say_note("the backend has no engine for collectives");
    return QC_SKIP;
  }
  if (!qc_setting(item->settings, "fill", fills, sizeof fills)) {
    bool closed;
    default_fills(p, fills, sizeof fills, &closed);
    const char *rare = rare_fill(item, p, closed);
    snprintf(fills + strlen(fills), sizeof fills - strlen(fills), "%s%s", rare ? "," : "", rare ? rare : "");
  }
  uint64_t seed = qc_setting(item->settings, "seed", text, sizeof text) ? strtoull(text, NULL, 10) : qc_opt.seed;
  const bool rungs = p->view->n_ops == 1 && !settled_by_core(p);       /* for a single op the planner's choice is run only for this check */
  const bool planner_too = qc_w.table->device && !qc_opt.engine && !(rungs && qc_opt.kills);
  const uint64_t turn = line_hash(item->line) + seed;
  int step = 0;
  struct trust { int runs, excluding; } *trust = qc_alloc((size_t)(qc_w.n_engines + 1) * sizeof *trust);
  struct answer *answer = qc_alloc((size_t)(qc_w.n_engines + 1) * LEVELS * sizeof *answer);
  bool took = false, judged = false, failed = false;
  for (char *fill = fills, *next; fill && *fill; fill = next) {
    next = strchr(fill, ',');
    if (next)
      *next++ = 0;
    bool any = planner_too;
    for (int i = 0; i < qc_w.n_engines && !any; i++)
      any = in_turn(&qc_w.engine[i], p, turn);
    if (!any && qc_opt.kills)             /* all are retired: nothing needs the reference */
      break;
    if (!qc_problem_fill(p, item->settings, fill, seed, why, sizeof why)) {
      qc_say_fail("why", "\"%s\"", why);
      failed = true;
      break;
    }
    for (int i = 0; i <= qc_w.n_engines; i++) {
      struct qc_engine *e = i < qc_w.n_engines ? &qc_w.engine[i] : NULL;
      if (e ? !in_turn(e, p, turn) : !planner_too || (rungs && fill != fills))
        continue;
      if (step++ < qc_w.skip_engines)
        continue;
      struct trial t = {.item = item, .p = p, .e = e, .fill = fill, .seed = seed, .math = QC_RUNGS_MATH};
      qc_say_engine(step, i);
      if (!e && rungs) {
        if (!p->special && !qc_check_rungs(p, why, sizeof why))
          fail(&t, "what `deterministic` demands is not kept", why);
        failed |= t.failed;
        continue;
      }
      if (!run_engine(&t, answer + i * LEVELS, fill == fills))
        continue;
      took = true;
      judged |= t.judged;
      trust[i].runs += t.judged;
      trust[i].excluding += t.judged && !t.vacuous;
      failed |= t.failed;
      if (t.failed && e && e->failed_in != item) {
        e->failed_in = item;
        e->kills++;
      }
    }
  }
  forget(answer, (qc_w.n_engines + 1) * LEVELS);
  qc_problem_free(p);
  for (int i = 0; i <= qc_w.n_engines && !failed; i++) {
    if (!trust[i].runs || trust[i].excluding)
      continue;
    qc_say_fail("- engine", "%s/%s", qc_w.backend, i < qc_w.n_engines ? qc_w.engine[i].name : "(planner's choice)");
    qc_say_fail("  verdict", "mistrusted: no fill has a bound that excludes anything");
    failed = true;
  }
  free(trust);
  if (!failed && !took && qc_w.skip_engines == 0) {
    if (qc_opt.engine || qc_opt.kills || !qc_w.table->device) {
      qc_say_note("no engine of the backend takes it");
      return QC_SKIP;
    }
    qc_say_fail("verdict", "no engine takes a valid problem");
    failed = true;
  }
  if (!failed && took && !judged && qc_w.skip_engines == 0) {
    qc_say_note("only engines for finite data take it, which it does not hold");
    return QC_SKIP;
  }
  return failed ? QC_FAIL : QC_OK;
}
