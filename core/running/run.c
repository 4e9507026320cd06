/* run.c -- calls: qn_run, which every typed call of ops.h ends in, and the execution of plans.
 *
 * The fast path encodes the problem from the arguments as words, finds the plan in the context's own table, checks the
 * pointers and runs: no allocation, lock, environment or clock. */
#include "config.h"
#include "language/problem.h"
#include <quern/kit.h>
#include <stdlib.h>
#include <string.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- pointers ----------------------------------------------------------------------------------------------- */

static qn_status bad_pointer(const qn_plan *p, void *const *ptr, uint32_t i)
{
  const qn_graph_view *g = &p->graph->view;
  const uint32_t mate = p->bounds[i].mate;
  qn__value_text own, others;
  const char *name = qn__value_name(g, g->pointer[i], own);
  if (ptr[i] != ptr[mate])
    return qn__fail(QN_BAD_ARGUMENT, "%s (pointer %u): is not where %s (pointer %u) is; the graph has one over the other", name, i,
                    qn__value_name(g, g->pointer[mate], others), mate);
  if (!ptr[i]) return qn__fail(QN_BAD_ARGUMENT, "%s (pointer %u): is NULL", name, i);
  return qn__fail(QN_BAD_ARGUMENT, "%s (pointer %u): its address is not a multiple of %u, which the plan was promised", name, i,
                  (unsigned)p->bounds[i].mask + 1);
}

/* For a single op several inputs may have the output's address: mul a=x b=x y=x. */
static bool lends_too(const qn_graph_view *g, int32_t out, int32_t in)
{
  const qn_node *node = &g->op[0];
  if (g->n_ops != 1 || !qn__same_place(&g->value[in], &g->value[out]) || g->value[in].flags & QN_VALUE_HOST) return false;
  const qn_op_info *op = qn__op(node->op);
  for (uint32_t r = 0; r < op->n_inputs; r++)
    for (uint32_t w = op->n_inputs; w < op->n_roles; w++)
      for (int32_t k = 0; k < node->first[r + 1] - node->first[r] && k < node->first[w + 1] - node->first[w]; k++)
        if (qn__may_lend(op, r, w) && node->arg[node->first[r] + k] == in && node->arg[node->first[w] + k] == out) return true;
  return false;
}

static qn_status check_overlap(const qn_plan *p, void *const *ptr, uint32_t out, uint32_t other)
{
  const qn_graph_view *g = &p->graph->view;
  if (p->bounds[out].mate != out && ptr[out] == ptr[other] && lends_too(g, g->pointer[out], g->pointer[other])) return QN_OK;
  if (!qn__views_meet(&g->value[g->pointer[out]], (uintptr_t)ptr[out], &g->value[g->pointer[other]], (uintptr_t)ptr[other])) return QN_OK;
  qn__value_text own, others;
  return qn__fail(QN_BAD_ARGUMENT, "%s (pointer %u): its memory overlaps that of %s (pointer %u); only a paired or elementwise input "
                  "of the same dtype and strides may share an output's memory, whole, and in a plan where its graph says so (y=x)",
                  qn__value_name(g, g->pointer[out], own), out, qn__value_name(g, g->pointer[other], others), other);
}

/* The full check, when the quick one found something: an error, or all is well (an output over its input). */
static qn_status check_pointers(const qn_plan *p, void *const *ptr)
{
  const qn__bounds *b = p->bounds;
  for (uint32_t i = 0; i < p->n_pointers; i++)
    if (((uintptr_t)ptr[i] & b[i].mask) || (!ptr[i] && b[i].null) || ptr[i] != ptr[b[i].mate]) return bad_pointer(p, ptr, i);
  for (uint32_t o = p->n_ins; o < p->n_pointers; o++) {
    uintptr_t begin = (uintptr_t)ptr[o], end = begin + b[o].bytes;
    for (uint32_t i = 0; i < o; i++) {
      if ((uintptr_t)ptr[i] + b[i].bytes <= begin || (uintptr_t)ptr[i] >= end) continue;
      qn_status status = check_overlap(p, ptr, o, i);
      if (status) return status;
    }
  }
  return QN_OK;
}

/* The quick check for many pointers, where comparing all pairs would take long: sorts in the context's scratch. */
static bool many_suspicious(const qn_context *ctx, const qn_plan *p, void *const *ptr)
{
  qn__range *r = ctx->scratch;
  size_t n = 0;
  for (uint32_t i = 0; i < p->n_pointers; i++) {
    const qn__bounds *b = &p->bounds[i];
    const uintptr_t at = (uintptr_t)ptr[i];
    if (at & b->mask || (!at && b->null) || ptr[i] != ptr[b->mate]) return true;
    if (b->bytes) r[n++] = (qn__range){ at, (at + b->bytes) << 1 | (i >= p->n_ins) };
  }
  return qn__ranges_meet(r, n);
}

/* The quick check without branches or calls, for the usual case: few pointers, none with a mate. */
static inline uint64_t suspicious_pointers(const qn_plan *p, void *const *ptr)
{
  const qn__bounds *b = p->bounds;
  const uint32_t n = p->n_pointers;
  uint64_t all = 0, less_one = 0, off = 0;                      /* top bit of less_one set: a pointer is NULL */
  for (uint32_t o = 0; o < n; o++) {
    uintptr_t begin = (uintptr_t)ptr[o], end = begin + b[o].bytes;
    all |= begin;
    less_one |= begin - 1;
    if (o < p->n_ins) continue;
    for (uint32_t i = 0; i < o; i++) off |= ((uintptr_t)ptr[i] + b[i].bytes > begin) & ((uintptr_t)ptr[i] < end);
  }
  return off | (all & p->mask) | less_one >> 63;
}

/* ---- execution ------------------------------------------------------------------------------------------------- */

/* Engines of collectives have the group's size in their state and workspace. */
qn_status qn__ranks_suit(const qn_context *ctx, const char *what, int32_t ranks)
{
  if (ranks < 0) return QN_OK;
  if (ranks == ctx->settings.ranks) return qn__group_broken(ctx, true);
  return qn__fail(QN_BAD_ARGUMENT, "%s: has collectives, and was made in a group of %d ranks; ctx is in one of %d (0: in none)", what,
                  (int)ranks, (int)ctx->settings.ranks);
}

qn_status qn__plan_suits(const qn_context *ctx, const qn_plan *plan)
{
  if (!plan) return qn__fail(QN_BAD_ARGUMENT, "plan: is NULL");
  if (!plan->dev) return qn__destroyed("plan");
  if (plan->dev != ctx->dev) return qn__fail(QN_BAD_ARGUMENT, "plan: was made for another device than ctx's, %s", qn_context_device(ctx));
  if (plan->made_for > ctx->most_threads)
    return qn__fail(QN_DEVICE, "plan: was made before fork, for %d threads, which the child has not; make it in the child",
                    (int)plan->made_for);
  return qn__ranks_suit(ctx, "plan", plan->ranks);
}

static qn_status not_ready(const qn_context *ctx, const qn_plan *plan)
{
  qn_status status = qn__plan_suits(ctx, plan);
  return status ? status : qn__fail(QN_NOT_READY, "plan: needs workspace or instances that ctx has not, for another context made it, or "
                                    "ctx's allocator was changed; call qn_context_reserve(ctx, plan) once first");
}

static __attribute__((noinline)) qn_status execute_checked(qn_context *ctx, const qn_plan *p, void *const *ptr, void *workspace,
                                                           void *counters)
{
  if (p->scratch > ctx->scratch_bytes) return not_ready(ctx, p);
  qn_status status = qn__ranks_suit(ctx, "plan", p->ranks);
  if (status) return status;
  status = p->n_pointers > QN__MANY && !many_suspicious(ctx, p, ptr) ? QN_OK : check_pointers(p, ptr);
  if (status) return status;
  if (ctx->recording && ((status = qn__record_add(ctx, p, ptr)) || !ctx->dev->ops->capture_begin)) return status;
  if (p->ranks >= 0) qn__collectives_begin(ctx);
  status = qn__plan_run(ctx, p, ptr, workspace, counters);
  if (p->ranks >= 0) qn__collectives_end(ctx);
  return status;
}

static inline qn_status execute(qn_context *ctx, const qn_plan *p, void *const *ptr, void *workspace, void *counters)
{
  if (UNLIKELY(!p->run) || UNLIKELY((ctx->recording != NULL) | (suspicious_pointers(p, ptr) != 0)))
    return execute_checked(ctx, p, ptr, workspace, counters);
  qn_launch launch;
  launch.struct_size = sizeof launch;
  launch.stream = ctx->stream;
  launch.instance = NULL;
  launch.ptr = ptr;
  launch.workspace = workspace;
  launch.counters = counters;
  launch.device = &ctx->dev->desc;
  launch.threads = p->threads;
  launch.reserved = 0;
  launch.core = ctx;
  return p->run(p->prepared, &launch);
}

/* Ready except for workspace and counters, which the caller may supply. */
static inline bool is_at_home(const qn_context *ctx, const qn_plan *p)
{
  return !(p->instances & ~ctx->opened) && p->staging <= ctx->staging_bytes && p->made_for <= ctx->most_threads;
}

static inline bool is_ready(const qn_context *ctx, const qn_plan *p)
{
  return is_at_home(ctx, p) && p->workspace <= ctx->workspace_bytes && p->counters <= ctx->counters_bytes &&
      !(p->counters && ctx->counters_unclean);
}

static qn_status check_call(const qn_context *ctx, const qn_plan *plan, void *const pointers[])
{
  qn_status status = qn__context_alive(ctx);
  if (status || (status = qn__plan_suits(ctx, plan))) return status;
  return pointers || !plan->n_pointers ? QN_OK : qn__fail(QN_BAD_ARGUMENT, "pointers: is NULL");
}

qn_status qn_plan_execute(qn_context *ctx, const qn_plan *plan, void *const pointers[])
{
  uintptr_t before;
  if (UNLIKELY(!ctx || !plan || !pointers || !qn__is_alive(ctx) || plan->dev != ctx->dev)) {
    qn_status status = check_call(ctx, plan, pointers);
    if (status) return status;
  }
  if (!qn__begin(ctx, &before)) return qn__in_use();
  qn_status status = UNLIKELY(!is_ready(ctx, plan)) ? not_ready(ctx, plan)
                                                    : execute(ctx, plan, pointers, ctx->workspace, ctx->counters);
  return qn__end(ctx, before) ? status : qn__disturbed(ctx, before);
}

qn_status qn_plan_execute_with(qn_context *ctx, const qn_plan *plan, void *const pointers[], void *workspace, void *counters)
{
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use(ctx, &use);
  if (status || (status = check_call(ctx, plan, pointers))) return status;
  if ((!workspace && plan->workspace) || (uintptr_t)workspace & 255)
    return qn__fail(QN_BAD_ARGUMENT, "workspace: %llu bytes, 256-byte aligned, are needed", (unsigned long long)plan->workspace);
  if ((!counters && plan->counters) || (uintptr_t)counters & 15)
    return qn__fail(QN_BAD_ARGUMENT, "counters: %llu bytes, 16-byte aligned and zero, are needed", (unsigned long long)plan->counters);
  if (!is_at_home(ctx, plan)) return not_ready(ctx, plan);
  if (ctx->recording && !ctx->dev->ops->capture_begin)
    return qn__fail(QN_UNSUPPORTED, "a recording of a CPU context cannot take a workspace of its own; its replays use the context's");
  return execute(ctx, plan, pointers, workspace, counters);
}

/* A plan, and around its steps what the context asks for; takes g even on failure. */
static qn_status make_plan(qn_context *ctx, qn_graph *g, qn_plan **out)
{
  qn_plan *p;
  qn_status status = qn__plan_make(ctx, &qn__tuning, g, &p);
  if (status) return status;
  if ((status = qn__check_wrap(ctx, p, qn__plan_release))) {
    qn__plan_release(p);
    return status;
  }
  qn__trace_wrap(ctx, p);
  qn__profile_wrap(ctx, p);
  *out = p;
  return QN_OK;
}

qn_status qn_plan_create(qn_context *ctx, const qn_graph *graph, qn_plan **plan_p)
{
  qn_graph *copy;
  qn_plan *p;
  qn__using use QN__UNTIL_RETURN = { 0 };
  qn_status status = qn__use(ctx, &use);
  if (status || (status = qn__graph_alive(graph))) return status;
  if (!plan_p) return qn__fail(QN_BAD_ARGUMENT, "plan_p: is NULL");
  if ((status = qn_graph_make(&graph->view, &copy))) return status;
  copy->single = graph->single;
  if ((status = make_plan(ctx, copy, &p))) return status;
  if ((status = qn__context_ready(ctx, p))) {
    qn__plan_release(p);
    return status;
  }
  *plan_p = p;
  return QN_OK;
}

/* ---- encoding the problem of a call -------------------------------------------------------------------------------- */

enum { WORDS_ON_STACK = 1024, POINTERS_ON_STACK = 128 };

typedef struct words { uint64_t *w; uint32_t n, most; void **ptr; uint32_t n_ptr, most_ptr; } words;

static uint32_t scalar_class(const qn_tensor *t)
{
  if (!qn_dtype_bytes(t->dtype)) return QN_SCALAR_OTHER;
  double x = qn_load_f64(t->data, t->dtype);
  return x == 0 ? QN_SCALAR_ZERO : x == 1 ? QN_SCALAR_ONE : QN_SCALAR_OTHER;
}

/* False: does not fit the words, an invalid rank or dtype, or a host scalar without data. */
static inline bool add_tensor(words *k, const qn_tensor *t)
{
  uint32_t rank = (uint32_t)t->rank;
  if (UNLIKELY(rank > QN_MAX_RANK || t->dtype >= QN_DTYPE_COUNT || k->n + 1 + 2 * QN_MAX_RANK > k->most || k->n_ptr == k->most_ptr))
    return false;
  if (UNLIKELY(t->flags & QN_HOST && !t->data)) return false;
  uint64_t *w = k->w + k->n;
  uint64_t what = UNLIKELY(t->flags & QN_HOST) ? 32 + scalar_class(t) : qn__alignment(t->data);
  uint64_t reserved = (t->reserved[0] | t->reserved[1] | t->reserved[2]) != 0;
  *w++ = t->dtype | (uint64_t)rank << 8 | what << 16 | reserved << 24 | (uint64_t)t->flags << 32;
  for (uint32_t d = 0; d < rank; d++) {
    w[d] = (uint64_t)t->dim[d];
    w[rank + d] = (uint64_t)t->stride[d];
  }
  k->n += 1 + 2 * rank;
  k->ptr[k->n_ptr++] = t->data;
  return true;
}

static inline bool add_attributes(words *k, const qn_op_info *info, const void *attr)
{
  uint32_t n = info->attr_bytes / 8;
  const uint64_t *w = attr ? attr : info->attr_default;
  if (UNLIKELY(k->n + n > k->most || w[0] != info->attr_bytes)) return false;   /* another struct_size: take the slow path */
  memcpy(k->w + k->n, w + 1, (n - 1) * sizeof *w);
  k->n += n - 1;
  return true;
}

/* Encodes which outputs have the address of a paired input. first[r]: index of role r's first pointer. */
static inline bool add_aliases(words *k, const qn_op_info *info, const uint32_t *first)
{
  uint64_t pairs = 0;
  for (uint32_t r = 0; r < info->n_inputs; r++) {
    const int32_t w = info->role[r].paired;
    if (w < 0) continue;
    for (uint32_t i = first[r], o = first[w]; i < first[r + 1] && o < first[w + 1]; i++, o++)
      if (UNLIKELY(k->ptr[o] == k->ptr[i] && k->ptr[o])) pairs = pairs * 0x9E3779B97F4A7C15u + ((uint64_t)o << 32 | i) + 1;
  }
  if (k->n == k->most) return false;
  k->w[k->n++] = pairs;
  return true;
}

static inline bool read_problem(words *k, const qn_op_info *info, const qn_op *op, uint64_t terms)
{
  uint32_t first[QN_MAX_ROLES + 1];
  k->w[0] = op->kind | terms << 32;
  k->n = 1;
  if (info->attr_bytes ? !add_attributes(k, info, op->attr) : op->attr != NULL) return false;
  for (uint32_t r = 0; r < info->n_roles; r++) {
    const qn_arg *a = &op->arg[r];
    if (UNLIKELY(k->n == k->most || a->n < 0 || (a->n && !a->t))) return false;
    k->w[k->n++] = (uint64_t)a->n;
    first[r] = k->n_ptr;
    for (int64_t i = 0; i < a->n; i++)
      if (!add_tensor(k, &a->t[i])) return false;
  }
  first[info->n_roles] = k->n_ptr;
  return add_aliases(k, info, first);
}

/* Sums of products with odd constants, so that the multiplications overlap, folded once at the end. A collision costs one
 * more comparison. */
static inline uint64_t hash_words(const uint64_t *w, uint32_t n)
{
  uint64_t h = n;
  uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    h = h << 23 | h >> 41;
    h += w[i] * 0x4b33a62d + w[i + 1] * 0x2d358dcd + w[i + 2] * 0x62ed4351 + w[i + 3] * 0x1b8b84bf +
         w[i + 4] * 0x5396a4d3 + w[i + 5] * 0x7c15f39d + w[i + 6] * 0x3f84d5b5 + w[i + 7] * 0x6a09e667;
  }
  for (; i < n; i++) h = (h << 7 | h >> 57) + w[i] * 0x51ed558d;
  __uint128_t f = (__uint128_t)(h ^ 0xff51afd7ed558ccdu) * 0xd1b54a32d192ed03u;
  return (uint64_t)f ^ (uint64_t)(f >> 64);
}

/* ---- the call -------------------------------------------------------------------------------------------------------- */

typedef struct making { qn_context *ctx; const qn_op *op; } making;

/* Caches only refusals that depend on the problem alone: not a bad pointer or a lack of memory. */
static qn_status make_cached(void *arg, qn_plan **out)
{
  making *m = arg;
  qn_graph *g;
  qn_status status = qn__graph_of_op(m->op, &g);
  if (status) return status;
  status = make_plan(m->ctx, g, out);
  return status == QN_UNSUPPORTED ? qn__plan_failed(status, out) : status;
}

/* Finds or makes the plan and puts it into the context's table, which holds the reference. */
static qn_status find_plan(qn_context *ctx, const qn_op *op, const words *k, uint64_t hash, qn_plan **out)
{
  making m = { ctx, op };
  qn_plan *p;
  qn_status status = qn__cache_get(ctx->dev->cache, k->w, k->n, hash, make_cached, &m, &p);
  if (status) return status;
  if (p->status) status = qn__fail(p->status, "%s", p->why);
  else status = qn__context_ready(ctx, p);
  if (status) {
    qn__plan_release(p);
    return status;
  }
  qn_plan **set = ctx->recent[hash % QN_RECENT];
  qn__plan_release(set[1]);
  set[1] = set[0];
  set[0] = *out = p;
  return QN_OK;
}

static inline bool is_plan_of(const qn_plan *p, const words *k, uint64_t hash)
{
  return p && p->hash == hash && p->n_words == k->n && !memcmp(p->key, k->w, k->n * sizeof *k->w);
}

static inline qn_plan *recent(const qn_context *ctx, const words *k, uint64_t hash)
{
  qn_plan *const *set = ctx->recent[hash % QN_RECENT];
  return LIKELY(is_plan_of(set[0], k, hash)) ? set[0] : is_plan_of(set[1], k, hash) ? set[1] : NULL;
}

static qn_status run_words(qn_context *ctx, const qn_op *op, const words *k)
{
  uint64_t hash = hash_words(k->w, k->n);
  qn_plan *p = recent(ctx, k, hash);
  qn_status status = p ? QN_OK : find_plan(ctx, op, k, hash, &p);
  return status ? status : execute(ctx, p, k->ptr, ctx->workspace, ctx->counters);
}

/* The call's plan, if it is among the recent ones; the pointers go into given's. Else NULL, and given holds a copy of the words, to be
 * freed; no copy: they do not fit, or memory is out. Apart from qn_run, so that the words are off the stack when an engine runs. */
static __attribute__((noinline)) qn_plan *look_up(const qn_context *ctx, const qn_op_info *info, const qn_op *op, words *given)
{
  uint64_t w[WORDS_ON_STACK];
  words k = { w, 0, WORDS_ON_STACK, given->ptr, 0, POINTERS_ON_STACK };
  if (UNLIKELY(!read_problem(&k, info, op, ctx->policy->id))) return NULL;
  qn_plan *p = recent(ctx, &k, hash_words(w, k.n));
  if (LIKELY(p)) return p;
  *given = k;
  given->w = qn__alloc(k.n * sizeof *w);
  if (given->w) memcpy(given->w, w, k.n * sizeof *w);
  return NULL;
}

/* Calls whose words do not fit on the stack, or whose attributes have another struct size: uses memory that the context keeps.
 * An invalid problem gets its error from qn__graph_of_op. */
static __attribute__((noinline)) qn_status run_long(qn_context *ctx, const qn_op_info *info, const qn_op *op)
{
  uint64_t attr[info->attr_bytes / 8 + 1], n = 0;
  qn_op same = *op;
  qn_graph *g = NULL;
  qn_status status = op->attr ? qn__attr_copy(info, op->attr, attr) : QN_OK;
  if (op->attr) same.attr = attr;
  for (uint32_t r = 0; r < info->n_roles && !status; r++)
    if (op->arg[r].n > 0 && op->arg[r].n <= QN__MOST_IN_LIST) n += (uint64_t)op->arg[r].n;
  uint64_t most = n * (1 + 2 * QN_MAX_RANK) + 2 * QN_MAX_ROLES + info->attr_bytes / 8 + 2 * QN_MAX_RANK;
  if (!status) status = qn__context_room(&ctx->call, &ctx->call_bytes, most * sizeof(uint64_t) + n * sizeof(void *));
  if (status) return status;
  words k = { ctx->call, 0, (uint32_t)most, (void **)((uint64_t *)ctx->call + most), 0, (uint32_t)n };
  if (read_problem(&k, info, &same, ctx->policy->id)) return run_words(ctx, &same, &k);
  status = qn__graph_of_op(op, &g);
  qn_graph_destroy(g);
  return status ? status : qn__fail(QN_INTERNAL, "%s: a call that can be checked but not read", info->name);
}

static qn_status bad_call(const qn_context *ctx, const qn_op *op, const qn_op_info *info)
{
  qn_status status = qn__context_alive(ctx);
  if (status) return status;
  if (!op) return qn__fail(QN_BAD_ARGUMENT, "op: is NULL");
  if (!info) return qn__fail(QN_BAD_ARGUMENT, "op.kind: %u is no op", op->kind);
  if (op->n_args != info->n_roles || !op->arg)
    return qn__fail(QN_BAD_ARGUMENT, "op.n_args: is %u; %s has %u roles, each of which needs its entry", op->n_args, info->name,
                    info->n_roles);
  return QN_OK;
}

qn_status qn_run(qn_context *ctx, const qn_op *op)
{
  void *ptr[POINTERS_ON_STACK];
  words k = { .ptr = ptr };
  const qn_op_info *info = LIKELY(ctx && op) ? qn__op(op->kind) : NULL;
  uintptr_t before;
  if (UNLIKELY(!info || op->n_args != info->n_roles || !op->arg || !qn__is_alive(ctx))) return bad_call(ctx, op, info);
  if (!qn__begin(ctx, &before)) return qn__in_use();
  const qn_plan *p = look_up(ctx, info, op, &k);
  qn_status status = LIKELY(p) ? execute(ctx, p, ptr, ctx->workspace, ctx->counters) : k.w ? run_words(ctx, op, &k) : run_long(ctx, info, op);
  if (UNLIKELY(k.w != NULL)) qn__free(k.w);
  return qn__end(ctx, before) ? status : qn__disturbed(ctx, before);
}
