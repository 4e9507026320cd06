/* measure.c -- the time of one problem on one or two sides, measured alternately on the same data.
 *
 * Several sets of buffers, together larger than the last-level cache, are used in rotation, so each execution finds its
 * inputs in memory; if a problem is so small that MAX_SETS of its sets fit into that cache, it finds them there. One sample
 * is a recording of one execution on each set, replayed until it is long enough for the device's timer. Samples of the two
 * sides alternate, and so does the order within a pair; the ratio is the median over pairs, so that drift (clocks, other
 * load) affects both. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <quern/kit.h>
#include "bench.h"

enum { MAX_SETS = 24, MIN_ROUNDS = 5, MAX_ROUNDS = 301 };
static const double cache_multiple = 6, least_multiple = 1.5, most_rotated = 400e6;     /* most_rotated yields to least_multiple */
static const double sample_ns = 2e6, overtime = 10;

static double now_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double quantile(const double *sorted, int n, double q)
{
  double at = q * (n - 1);
  int i = (int)at;
  return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

double median(double *v, int n)
{
  qsort(v, (size_t)n, sizeof *v, ascending);
  return quantile(v, n, 0.5);
}

/* ---- data ------------------------------------------------------------------------------------ */

static uint64_t random_state;

static uint64_t random_bits(void)       /* splitmix64 */
{
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/* Nearly normal with variance 1, as trained tensors are: a multiplier's power draw depends on the data. */
static double random_normal(void)
{
  uint64_t b = random_bits();
  double sum = 0;
  for (int i = 0; i < 4; i++)
    sum += (double)(b >> 16 * i & 0xffff) / 65536 - 0.5;
  return sum * 1.7320508;
}

static void encode(uint32_t dtype, const qn_domain *d, double x, uint64_t bits, void *to)
{
  if (qn_is_float(dtype))
    qn_store_f64(to, dtype, d->floats == QN_FLOATS_ZERO ? 0 : d->floats == QN_FLOATS_SMALL ? x / 32
                                                            : d->floats == QN_FLOATS_POSITIVE && x < 0 ? -x : x);
  else
    qn_store_i64(to, dtype, d->from + (int64_t)(bits % (uint64_t)d->range));
}

/* Random elements: pieces of a table of 8191, each from a random start. */
static void fill_random(uint32_t dtype, const qn_domain *d, void *to, size_t n)
{
  enum { TABLE = 8191, PIECE = 1024 };
  static _Alignas(16) char table[(TABLE + PIECE) * 8];
  size_t e = qn_dtype_bytes(dtype);
  for (size_t i = 0; i < n && d->rising; i++) {
    const qn_domain one = { .from = d->from + (int64_t)((double)i * (double)(d->range - 1) / (n > 1 ? (double)n - 1 : 1)), .range = 1 };
    encode(dtype, &one, 0, 0, (char *)to + i * e);
  }
  if (d->rising)
    return;
  for (size_t i = 0; i < TABLE + PIECE; i++)
    encode(dtype, d, random_normal(), random_bits(), table + i * e);
  for (size_t i = 0; i < n; i += PIECE) {
    size_t piece = n - i < PIECE ? n - i : PIECE;
    memcpy((char *)to + i * e, table + random_bits() % TABLE * e, piece * e);
  }
}

/* ---- sets of buffers ------------------------------------------------------------------------- */

typedef struct buffers {
  qn_context *ctx;                      /* the owner of the memory */
  int    n_sets;
  size_t set_bytes;
  char  *memory[MAX_SETS];
  void **pointer[MAX_SETS];
} buffers;

static void buffers_free(buffers *b)
{
  for (int i = 0; i < b->n_sets; i++) {
    qn_free(b->ctx, b->memory[i]);
    free(b->pointer[i]);
  }
  memset(b, 0, sizeof *b);
}

/* Lays out one set: offsets of all pointers. An output over an input shares its memory. */
static size_t layout(const qn_graph_view *g, size_t offset[])
{
  size_t used = 0;
  for (uint32_t i = 0; i < g->n_pointers; i++) {
    const qn_value *v = &g->value[g->pointer[i]];
    if (i >= g->n_ins && v->over >= 0) {
      for (uint32_t j = 0; j < g->n_ins; j++)
        if (g->pointer[j] == v->over)
          offset[i] = offset[j];
      continue;
    }
    offset[i] = used + (v->align < 16 ? v->align : 0);    /* no better aligned than the problem promises */
    used = (size_t)qn_round_up((int64_t)offset[i] + qn_extent_bytes(v), 256);
  }
  return used;
}

static qn_status buffers_make(buffers *b, qn_context *ctx, const qn_graph_view *g)
{
  const qn_device *device = qn_context_describe(ctx);
  size_t *offset = calloc(g->n_pointers + 1, sizeof *offset);
  char *host = NULL;
  qn_status status = QN_NO_MEMORY;
  memset(b, 0, sizeof *b);
  b->ctx = ctx;
  if (!offset)
    return status;
  size_t bytes = b->set_bytes = layout(g, offset) + 256;
  double past = cache_multiple * (double)device->cache, least = least_multiple * (double)device->cache;
  double want = (past < most_rotated ? past : least > most_rotated ? least : most_rotated) / (double)bytes + 1;
  double most = (double)device->memory / 4 / (double)bytes;
  int sets = want > MAX_SETS ? MAX_SETS : (int)want;
  sets = sets > most ? (int)most : sets;
  sets = sets < 2 ? 2 : sets;
  host = calloc(1, bytes);
  if (!host)
    goto done;
  for (int s = 0; s < sets; s++) {
    b->pointer[s] = calloc(g->n_pointers + 1, sizeof *b->pointer[s]);
    status = b->pointer[s] ? qn_alloc(ctx, bytes, (void **)&b->memory[s]) : QN_NO_MEMORY;
    if (status)
      goto done;
    b->n_sets = s + 1;
    for (uint32_t i = 0; i < g->n_pointers; i++) {
      b->pointer[s][i] = b->memory[s] + offset[i];
      if (i < g->n_ins) {
        const qn_value *v = &g->value[g->pointer[i]];
        qn_domain domain;
        qn_input_domain(g, g->pointer[i], &domain);
        fill_random(v->dtype, &domain, host + offset[i], (size_t)qn_extent(v));
      }
    }
    status = qn_copy_to_device(ctx, b->memory[s], host, bytes);
    if (status)
      goto done;
  }
done:
  if (status && b->n_sets < MAX_SETS)
    free(b->pointer[b->n_sets]);
  free(host);
  free(offset);
  return status;
}

/* ---- one side of a case ---------------------------------------------------------------------- */

typedef struct trial {
  side         *s;
  buffers      *b;
  qn_plan      *plan;
  qn_recording *recording;
  qn_timer     *timer;
  int           n_sets;                 /* of buffers, all used in one replay */
  int           reps;                   /* replays in a sample */
  double        sample[MAX_ROUNDS];
} trial;

static qn_status fail(result *r, qn_status status)
{
  r->status = status;
  if (!r->why[0])
    snprintf(r->why, sizeof r->why, "%s", qn_last_error()[0] ? qn_last_error() : qn_status_text(status));
  return status;
}

static void name_engines(const qn_plan *plan, result *r)
{
  size_t used = 0;
  for (int i = 0; i < qn_plan_parts(plan); i++) {
    const char *backend;
    const qn_prepared *part = qn_plan_part(plan, i, &backend);
    if (used < sizeof r->engine)
      used += (size_t)snprintf(r->engine + used, sizeof r->engine - used, "%s%s/%s%s%s", i ? " + " : "", backend,
                               part->engine->name, part->variant ? ":" : "", part->variant ? part->variant : "");
    if (part->class_ > r->class_)
      r->class_ = part->class_;
  }
}

/* Plans and executes once, cold; then on each set, unless an execution is so slow that a replay over all sets would exceed its
 * share of the time: then fewer sets serve, as such a problem leaves nothing in the cache anyway. */
static qn_status start(trial *t, const bench_case *c, const measure_options *o, result *r)
{
  double begin = now_ns();
  qn_status status = qn_plan_create(t->s->ctx, c->graph, &t->plan);
  if (!status)
    status = qn_plan_execute(t->s->ctx, t->plan, t->b->pointer[0]);
  if (!status)
    status = qn_context_synchronize(t->s->ctx);
  if (status)
    return fail(r, status);
  r->first_ms = (now_ns() - begin) / 1e6;
  name_engines(t->plan, r);
  begin = now_ns();
  for (t->n_sets = 1; t->n_sets < t->b->n_sets && !status; t->n_sets++) {
    double so_far = now_ns() - begin;
    if (t->n_sets > 2 && so_far / (t->n_sets - 1) * (t->n_sets + 1) > 1e9 * o->seconds / (2 * MIN_ROUNDS))
      break;
    status = qn_plan_execute(t->s->ctx, t->plan, t->b->pointer[t->n_sets]);
    if (!status)
      status = qn_context_synchronize(t->s->ctx);
  }
  return status ? fail(r, status) : QN_OK;
}

static qn_status record(trial *t, result *r)
{
  qn_status status = qn_record_begin(t->s->ctx);
  if (status)
    return fail(r, status);
  for (int i = 0; i < t->n_sets && !status; i++)
    status = qn_plan_execute(t->s->ctx, t->plan, t->b->pointer[i]);
  if (status)
    fail(r, status);
  qn_status end = qn_record_end(t->s->ctx, &t->recording);
  return status ? status : end ? fail(r, end) : QN_OK;
}

static qn_status sample(trial *t, int reps, double *ns)
{
  qn_status status = qn_timer_start(t->timer);
  for (int i = 0; i < reps && !status; i++) {
    if (t->recording)
      status = qn_recording_replay(t->s->ctx, t->recording);
    for (int set = 0; !t->recording && set < t->n_sets && !status; set++)
      status = qn_plan_execute(t->s->ctx, t->plan, t->b->pointer[set]);
  }
  qn_status stop = qn_timer_stop(t->timer, ns);
  *ns /= (double)reps * t->n_sets;
  return status ? status : stop;
}

static qn_status ready(trial *t, const bench_case *c, const measure_options *o, result *r)
{
  qn_status status = start(t, c, o, r);
  if (!status && !o->launches)
    status = record(t, r);
  if (!status && (status = qn_timer_create(t->s->ctx, &t->timer)))
    fail(r, status);
  double once = 0;
  if (!status && ((status = sample(t, 1, &once)) || (status = sample(t, 1, &once))))
    fail(r, status);
  double replay = once * t->n_sets;
  t->reps = replay > 0 && replay < sample_ns ? (int)(sample_ns / replay) + 1 : 1;
  return status;
}

static void finish(trial *t)
{
  qn_timer_destroy(t->timer);
  qn_recording_destroy(t->recording);
  qn_plan_destroy(t->plan);
}

/* ---- both -------------------------------------------------------------------------------------- */

static bool same_device(const side *a, const side *b)
{
  const qn_device *x = qn_context_describe(a->ctx), *y = qn_context_describe(b->ctx);
  return !strcmp(x->kind, y->kind) && x->ordinal == y->ordinal;
}

static void summarise(trial *t, int rounds, result *r)
{
  r->samples = rounds;
  r->ns = median(t->sample, rounds);
  r->ns_q1 = quantile(t->sample, rounds, 0.25);
  r->ns_q3 = quantile(t->sample, rounds, 0.75);
}

void measure(side *const s[], int n, const bench_case *c, const measure_options *o, result r[], double *ratio, int *sets)
{
  const qn_graph_view *g = qn_graph_inspect(c->graph);
  trial t[2] = { 0 };
  buffers b[2] = { 0 };
  double pair[MAX_ROUNDS];
  int live = 0, rounds = 0, made = -1;
  memset(r, 0, (size_t)n * sizeof *r);
  *ratio = 0;
  *sets = 0;
  for (int i = 0; i < n; i++) {
    t[i].s = s[i];
    r[i].status = side_pin(s[i], g, r[i].why, sizeof r[i].why);
    if (r[i].status)
      continue;
    if (made >= 0 && same_device(s[made], s[i])) {
      t[i].b = &b[made];
    } else {
      t[i].b = &b[i];
      random_state = 1;                 /* the same data on both devices */
      if ((r[i].status = buffers_make(&b[i], s[i]->ctx, g))) {
        fail(&r[i], r[i].status);
        continue;
      }
      made = i;
    }
    if (!ready(&t[i], c, o, &r[i]))
      live++;
    if (t[i].n_sets > *sets)
      *sets = t[i].n_sets;
  }
  double end = now_ns() + 1e9 * o->seconds;
  while (live && rounds < MAX_ROUNDS && (rounds < MIN_ROUNDS || now_ns() < end) &&
         (rounds < 2 || now_ns() < end + 1e9 * overtime)) {
    for (int k = 0; k < n; k++) {
      int i = rounds & 1 ? n - 1 - k : k;
      if (!r[i].status && (r[i].status = sample(&t[i], t[i].reps, &t[i].sample[rounds]))) {
        fail(&r[i], r[i].status);
        live--;
      }
    }
    if (live == 2)
      pair[rounds] = t[1].sample[rounds] / t[0].sample[rounds];
    rounds++;
  }
  for (int i = 0; i < n; i++)
    if (!r[i].status)
      summarise(&t[i], rounds, &r[i]);
  if (live == 2)
    *ratio = median(pair, rounds);
  for (int i = 0; i < n; i++)
    finish(&t[i]);
  for (int i = 0; i < n; i++)
    buffers_free(&b[i]);
}
