/* measure.c -- the times of parts that take the same ops: run in turn, on private buffers, cold. */
#include "config.h"
#include "tuning/tuning.h"
#include <quern/kit.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, TILE = 65536, LINE = 64 };
#define TOO_SLOW 4.0                      /* an engine is dropped when its fastest run is this many times the best: one run may have met
                                           * other work on its processor, two in a row seldom do */
#define HOPELESS 20.0                     /* dropped after its first run, if slower than this */
#define LOADING 2e7                       /* ... with this allowance, in ns, for loading code */
#define PATIENCE 1e9                      /* after so many ns of runs three rounds are enough */

typedef struct trial { qn_part *part; void **ptr; double ns[ROUNDS], fastest; int n; bool out; } trial;   /* ptr: its values' */

typedef struct bench {
  const qn__planning *pc;
  const qn_device_ops *ops;
  const qn_device *dev;
  const qn_part *made;                    /* the part whose values the buffers were made for */
  void **ptr;                             /* private buffers, one for each of its values */
  void  *workspace, *counters;
  void  *flush; size_t flush_bytes;       /* written before each run, so that inputs come from memory, not cache; NULL on a CPU, */
  bool   evicts;                          /*   whose operands alone are evicted, unless they are larger than the cache */
  double *host;                           /* storage for values that are host scalars */
  void  *start, *stop;
} bench;

/* Fills with numbers of ordinary size: zeros, NaN and subnormals change timings. */
static qn_status fill(const bench *b, const qn_request *r, uint32_t value)
{
  const qn_graph_view view = { .struct_size = sizeof view, .n_ops = r->n_ops, .n_values = r->n_values, .op = r->op, .value = r->value };
  const uint32_t dtype = r->value[value].dtype;
  const uint64_t bytes = (uint64_t)qn_extent_bytes(&r->value[value]);
  size_t each = qn_dtype_bytes(dtype), n = TILE / each;
  char *tile = qn__alloc(TILE);
  uint64_t seed = 88172645463325252u;
  qn_domain domain;
  qn_status status = tile ? QN_OK : qn__fail(QN_NO_MEMORY, "no memory to measure");
  qn_input_domain(&view, (int32_t)value, &domain);
  const double last = fmax(1, (double)qn_elements(&r->value[value]) - 1);
  for (size_t i = 0; i < n && tile; i++) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    double x = (double)(seed >> 11) * 0x1p-53;
    if (qn_is_float(dtype))
      qn_store_f64(tile + i * each, dtype, domain.floats == QN_FLOATS_ZERO ? 0 : domain.floats == QN_FLOATS_POSITIVE ? x
                                              : (2 * x - 1) / (domain.floats == QN_FLOATS_SMALL ? 32 : 1));
    else qn_store_i64(tile + i * each, dtype, domain.from + (int64_t)(domain.rising ? (double)i * (double)(domain.range - 1) / last
                                                                                   : x * (double)domain.range));
  }
  for (uint64_t at = 0; at < bytes && !status; at += TILE)
    status = b->ops->copy(b->dev, (char *)b->ptr[value] + at, tile, bytes - at < TILE ? bytes - at : TILE, QN_COPY_TO_DEVICE,
                          b->pc->ctx->stream);
  if (!status && b->ops->stream_synchronize) status = b->ops->stream_synchronize(b->dev, b->pc->ctx->stream);
  qn__free(tile);
  return status;
}

/* A CPU's cache may be that of a large server, of which this program has a share: writing twice its size takes longer than all runs. */
#if defined(__x86_64__) && defined(__GNUC__)
static bool can_evict(void) { return true; }

static void evict(const char *p, uint64_t bytes)
{
  for (uint64_t at = 0; at < bytes; at += LINE) __builtin_ia32_clflush(p + at);
  __builtin_ia32_mfence();
}
#else
static bool can_evict(void) { return false; }
static void evict(const char *p, uint64_t bytes) { (void)p, (void)bytes; }
#endif

/* Is the value in the memory of another one of the request? */
static bool is_borrowed(const qn_request *r, uint32_t i) { return r->value[i].over >= 0 || r->value[i].flags & QN_VALUE_VIEW; }

static void evict_operands(const bench *b, const qn_request *r)
{
  uint64_t all = 0;
  for (int turn = 0; turn < 2; turn++)
    for (uint32_t i = 0; i < r->n_values && all < 2 * b->dev->cache; i++) {
      const uint64_t bytes = (uint64_t)qn_extent_bytes(&r->value[i]);
      if (r->value[i].flags & QN_VALUE_HOST || is_borrowed(r, i)) continue;
      if (turn == 0) all += bytes;
      else evict(b->ptr[i], bytes);
    }
}

static qn_status allocate(bench *b, const qn_request *r, uint64_t workspace, uint64_t counters)
{
  qn_status status = QN_OK;
  for (uint32_t i = 0; i < r->n_values && !status; i++) {
    uint64_t bytes = (uint64_t)qn_extent_bytes(&r->value[i]);
    if (r->value[i].flags & QN_VALUE_HOST) {
      b->ptr[i] = &b->host[i];
      qn_store_f64(b->ptr[i], r->value[i].dtype, b->made->literal[i]);
    } else if (is_borrowed(r, i)) continue;
    else if (!(status = b->ops->alloc(b->dev, bytes ? bytes : 1, &b->ptr[i]))) status = fill(b, r, i);
  }
  for (uint32_t i = 0; i < r->n_values; i++)
    if (r->value[i].over >= 0) b->ptr[i] = b->ptr[r->value[i].over];
  for (uint32_t i = 0; i < r->n_values && !status; i++)
    if (r->value[i].flags & QN_VALUE_VIEW)
      b->ptr[i] = (char *)b->ptr[r->view[i].of] + r->view[i].offset * (int64_t)qn_dtype_bytes(r->value[i].dtype);
  if (!status && workspace) status = b->ops->alloc(b->dev, workspace, &b->workspace);
  if (!status && counters && !(status = b->ops->alloc(b->dev, counters, &b->counters)))
    status = b->ops->fill(b->dev, b->counters, 0, counters, b->pc->ctx->stream);
  b->evicts = can_evict() && !strcmp(b->dev->kind, "cpu");
  if (!status && b->ops->stream_create && !b->evicts) {
    b->flush_bytes = 2 * (size_t)b->dev->cache;
    status = b->ops->alloc(b->dev, b->flush_bytes, &b->flush);
  }
  if (!status) status = b->ops->event_create(b->dev, &b->start);
  if (!status) status = b->ops->event_create(b->dev, &b->stop);
  return status;
}

static void release(bench *b, const qn_request *r)
{
  for (uint32_t i = 0; b->ptr && i < r->n_values; i++)
    if (b->ptr[i] && !(r->value[i].flags & QN_VALUE_HOST) && !is_borrowed(r, i)) b->ops->free(b->dev, b->ptr[i]);
  if (b->workspace) b->ops->free(b->dev, b->workspace);
  if (b->counters) b->ops->free(b->dev, b->counters);
  if (b->flush) b->ops->free(b->dev, b->flush);
  if (b->start) b->ops->event_destroy(b->dev, b->start);
  if (b->stop) b->ops->event_destroy(b->dev, b->stop);
  qn__free(b->ptr);
  qn__free(b->host);
}

/* On a device with streams the cache is flushed first, on the device; the launches are enqueued while that runs, so their
 * host cost is not in the time, as it would not be in a recording's. */
static qn_status time_once(bench *b, trial *t, double *ns)
{
  const qn_context *ctx = b->pc->ctx;
  qn_launch launch = { .struct_size = sizeof launch, .stream = ctx->stream, .ptr = t->ptr, .workspace = b->workspace,
    .counters = b->counters, .device = b->dev, .threads = t->part->demands.threads, .core = b->pc->ctx,
    .instance = t->part->backend->instance >= 0 ? ctx->instance[t->part->backend->instance] : NULL };
  qn_status status = b->flush ? b->ops->fill(b->dev, b->flush, 0, b->flush_bytes, ctx->stream) : QN_OK;
  if (b->evicts) evict_operands(b, &t->part->request);
  if (!status) status = b->ops->event_record(b->dev, b->start, ctx->stream);
  if (!status) status = t->part->engine->run(&t->part->prepared, &launch);
  if (!status) status = b->ops->event_record(b->dev, b->stop, ctx->stream);
  return status ? status : b->ops->event_elapsed(b->dev, b->start, b->stop, ns);
}

static int by_time(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(const trial *t)
{
  double sorted[ROUNDS];
  memcpy(sorted, t->ns, sizeof sorted);
  qsort(sorted, (size_t)t->n, sizeof *sorted, by_time);
  return sorted[t->n / 2];
}

static bool timed(bench *b, trial *t, double *ns)
{
  if (time_once(b, t, ns)) t->out = true;
  else if (*ns < t->fastest || t->fastest == 0) t->fastest = *ns;
  return !t->out;
}

/* All engines in turn, round by round, after one warm-up run. */
static void race(bench *b, trial *t, int n)
{
  double least = 1e300, all = 0, ns;
  for (int i = 0; i < n; i++)
    if (timed(b, &t[i], &ns)) {
      t[i].out = ns > HOPELESS * least && ns > LOADING;
      if (ns < least) least = ns;
    }
  for (int round = 0; round < ROUNDS && !(round >= 3 && all > PATIENCE); round++) {
    for (int i = 0; i < n; i++)
      if (!t[i].out && timed(b, &t[i], &ns)) {
        t[i].ns[t[i].n++] = ns;
        all += ns;
        if (ns < least) least = ns;
      }
    for (int i = 0; i < n; i++)
      if (!t[i].out) t[i].out = t[i].fastest > TOO_SLOW * least;
  }
}

/* The buffers as the values of a part that takes the same ops, of another pattern's region perhaps. */
static void **pointers_for(const bench *b, const qn_part *part)
{
  void **ptr = qn__alloc((part->request.n_values + 1) * sizeof *ptr);
  for (uint32_t v = 0; ptr && v < part->request.n_values; v++)
    for (uint32_t k = 0; k < b->made->request.n_values && !ptr[v]; k++)
      if (part->value_of ? part->value_of[v] == b->made->value_of[k] : v == k) ptr[v] = b->ptr[k];
  return ptr;
}

static int by_name(const qn_part *a, const qn_part *b)
{
  int c = strcmp(a->backend->name, b->backend->name);
  if (!c) c = strcmp(a->engine->name, b->engine->name);
  if (!c) c = strcmp(a->prepared.variant ? a->prepared.variant : "", b->prepared.variant ? b->prepared.variant : "");
  return c;
}

/* Among those near the best the first by name wins, so that cold processes agree. */
qn_status qn__tune_measure(const qn__planning *pc, qn_part **part, int n, int *best)
{
  const qn_request *r = &part[0]->request;
  bench b = { .pc = pc, .made = part[0], .ops = pc->ctx->dev->ops, .dev = &pc->ctx->dev->desc };
  uint64_t workspace = 0, counters = 0;
  trial *t = qn__alloc((size_t)n * sizeof *t);
  qn_status status = QN_OK;
  qn_text problem = {0}, now = {0};
  qn__request_print(&problem, r, part[0]->prepared.taken, part[0]->literal, NULL);
  qn__text_add(&now, "measuring %d engine%s on %s", n, n == 1 ? "" : "s", problem.s ? problem.s : "a problem");
  if (now.s) qn__progress(now.s);
  qn__free(now.s);
  b.ptr = qn__alloc(r->n_values * sizeof *b.ptr);
  b.host = qn__alloc(r->n_values * sizeof *b.host);
  if (!t || !b.ptr || !b.host) status = qn__fail(QN_NO_MEMORY, "no memory to measure");
  for (int i = 0; i < n && !status; i++) {
    t[i].part = part[i];
    if (part[i]->prepared.workspace > workspace) workspace = part[i]->prepared.workspace;
    if (part[i]->prepared.counters > counters) counters = part[i]->prepared.counters;
  }
  if (!status) status = allocate(&b, r, workspace, counters);
  for (int i = 0; i < n && !status; i++)
    if (!(t[i].ptr = pointers_for(&b, part[i]))) status = qn__fail(QN_NO_MEMORY, "no memory to measure");
  if (!status) {
    double least = 1e300;
    race(&b, t, n);
    *best = -1;
    for (int i = 0; i < n; i++)
      if (!t[i].out && median(&t[i]) < least) least = median(&t[i]);
    for (int i = 0; i < n; i++)
      if (!t[i].out && median(&t[i]) <= QN__NEAR_TIE * least && (*best < 0 || by_name(part[i], part[*best]) < 0)) *best = i;
    if (*best < 0) status = qn__fail(QN_INTERNAL, "every engine failed as it was measured: %s", qn_last_error());
    else part[*best]->ns = median(&t[*best]) < 1 ? 1 : median(&t[*best]);
  }
  qn__progress("");
  if (status)
    qn__log(QN_LOG_WARN, "tune: %s is not measured, and gets the engine that estimates choose: %s", problem.s ? problem.s : "a problem",
            qn_last_error());
  qn__free(problem.s);
  release(&b, r);
  for (int i = 0; t && i < n; i++) qn__free(t[i].ptr);
  qn__free(t);
  return status;
}
