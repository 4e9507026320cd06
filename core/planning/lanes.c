/* lanes.c -- which steps of a plan run side by side. A lane is a stream; lane 0 is the context's own. The steps of a lane run in the plan's
 * order, and each waits for those of other lanes on which it depends: one that reads memory for its last writer, one that writes it for
 * its last writer and all that have read it since.
 *
 * Collectives have a lane of their own, in the plan's order, which is the same on all ranks. Of the steps that depend on another, the one
 * with the longest path to the end follows it on its lane; others go where they can begin first. Several numbers of lanes are tried on a
 * model of times, and one lane stays unless others take a tenth less of
 *   max(longest path with its waits, sum of the times in which steps fill the device, time of the host for launches and events) */
#include "config.h"
#include "core.h"
#include <quern/kit.h>
#include <stdio.h>
#include <string.h>

/* In ns, rough: of a launch on the device at least; of a wait for another lane; of the host for a launch, and for an event. */
#define LEAST_NS    3000.0
#define WAIT_NS     4000.0
#define LAUNCH_NS   2000.0
#define EVENT_NS    1000.0
/* What one multiprocessor or core can do in a ns; what a collective moves. */
#define UNIT_FLOPS  4000.0
#define UNIT_BYTES  32.0
#define LINK_BYTES  50.0
#define LINK_NS     20000.0
#define WORTH       0.9

static double larger(double a, double b) { return a > b ? a : b; }

typedef struct edge { int32_t step, next; } edge;

typedef struct node {
  int32_t from;                           /* list of the steps on which it depends */
  int32_t lane, follower;                 /* follower: the step that has its lane next if it can; -1: none */
  double  ns, busy, rest, end;            /* busy: it fills the device so long; rest: from its begin to the plan's end; end: simulated */
  bool    collective;
} node;

typedef struct schedule {
  qn_plan *p;
  int32_t  n, n_edges;
  node    *step;
  edge    *edge;
} schedule;

/* ---- dependences ------------------------------------------------------------------------------------------------- */

static int32_t add(schedule *d, int32_t step, int32_t next)
{
  d->edge[d->n_edges] = (edge){ step, next };
  return d->n_edges++;
}

/* The graph's value that stands for the memory of the part's value v. */
static int32_t cell_of(const qn_plan *p, const qn_part *part, uint32_t v)
{
  int32_t cell = qn__place_of(p, part, v);
  while (p->graph->view.value[cell].over >= 0) cell = p->graph->view.value[cell].over;
  return cell;
}

/* writer, readers: of each cell, the last step that wrote it and the list of those that have read it since; at first -1. */
static void depend(schedule *d, int32_t *writer, int32_t *readers)
{
  for (int32_t s = 0; s < d->n; s++) {
    const qn_part *part = d->p->step[s].part;
    for (int write = 0; write < 2; write++)
      for (uint32_t v = 0; v < part->request.n_values; v++) {
        if (part->use[v] != (write ? QN_USE_WRITTEN : QN_USE_READ) || part->request.value[v].flags & QN_VALUE_HOST) continue;
        const int32_t cell = cell_of(d->p, part, v);
        if (writer[cell] >= 0 && writer[cell] != s) d->step[s].from = add(d, writer[cell], d->step[s].from);
        if (!write) {
          readers[cell] = add(d, s, readers[cell]);
          continue;
        }
        for (int32_t r = readers[cell]; r >= 0; r = d->edge[r].next)
          if (d->edge[r].step != s) d->step[s].from = add(d, d->edge[r].step, d->step[s].from);
        writer[cell] = s;
        readers[cell] = -1;
      }
  }
}

/* ---- times ----------------------------------------------------------------------------------------------------------- */

static void estimate(const qn_plan *p, const qn_part *part, node *to)
{
  const qn_request *r = &part->request;
  const double units = p->dev->desc.units > 0 ? p->dev->desc.units : 1;
  double bytes = 0, flops = 0;
  for (uint32_t v = 0; v < r->n_values; v++)
    if (qn__in_memory(part, v) && !(r->value[v].flags & QN_VALUE_HOST)) bytes += (double)qn_extent_bytes(&r->value[v]);
  for (uint32_t i = 0; i < r->n_ops; i++)
    if (qn__takes(part, i)) flops += qn_flops(&r->op[i], r->value);
  to->collective = r->op[0].family == QN_FAMILY_COLLECTIVE;
  if (to->collective) {
    to->ns = LINK_NS + bytes / LINK_BYTES;
    return;
  }
  to->busy = larger(bytes / UNIT_BYTES, flops / UNIT_FLOPS) / units;
  to->ns = larger(LEAST_NS, part->ns > 0 ? part->ns : part->prepared.estimate > 0 ? part->prepared.estimate : LEAST_NS + to->busy);
  if (to->busy > to->ns) to->busy = to->ns;
}

/* apart: collectives have a lane of their own, and are no followers. */
static void find_followers(schedule *d, bool apart)
{
  for (int32_t s = 0; s < d->n; s++) d->step[s].follower = -1, d->step[s].rest = 0;
  for (int32_t s = d->n - 1; s >= 0; s--) {
    node *to = &d->step[s];
    to->rest += to->ns;
    for (int32_t e = to->from; e >= 0; e = d->edge[e].next) {
      node *from = &d->step[d->edge[e].step];
      from->rest = larger(from->rest, to->rest);
      if (!(apart && to->collective) && (from->follower < 0 || to->rest >= d->step[from->follower].rest)) from->follower = s;
    }
  }
}

/* ---- lanes ------------------------------------------------------------------------------------------------------------------- */

/* One of the first n lanes, where it can begin first. idle, tail: when a lane is done, and its last step. */
static int32_t choose_lane(const schedule *d, int32_t s, int n, const double *idle, const int32_t *tail)
{
  int32_t lane = -1;
  double ready = 0, soonest = 0;
  for (int32_t l = 0; l < n; l++)
    if (tail[l] >= 0 && d->step[tail[l]].follower == s && (lane < 0 || (lane > 0 && idle[l] > idle[lane]))) lane = l;   /* 0 ends all */
  if (lane >= 0) return lane;
  for (int32_t e = d->step[s].from; e >= 0; e = d->edge[e].next) ready = larger(ready, d->step[d->edge[e].step].end);
  for (int32_t l = 0; l < n; l++) {
    const int32_t follower = tail[l] >= 0 ? d->step[tail[l]].follower : -1;     /* > s: it comes later, and should find the lane idle */
    const double begin = larger(idle[l], ready) + (follower > s ? d->step[follower].ns : 0);
    if (lane < 0 || begin < soonest) {
      lane = l;
      soonest = begin;
    }
  }
  return lane;
}

/* Gives each step a lane; returns when all are done. */
static double simulate(schedule *d, int n, bool apart)
{
  double idle[QN__LANES] = { 0 }, done = 0;
  int32_t tail[QN__LANES];
  for (int l = 0; l < QN__LANES; l++) tail[l] = -1;
  find_followers(d, apart);
  for (int32_t s = 0; s < d->n; s++) {
    node *to = &d->step[s];
    const int32_t lane = to->lane = apart && to->collective ? n : choose_lane(d, s, n, idle, tail);
    double begin = lane && tail[lane] < 0 ? WAIT_NS : idle[lane];
    for (int32_t e = to->from; e >= 0; e = d->edge[e].next) {
      const node *from = &d->step[d->edge[e].step];
      begin = larger(begin, from->end + (from->lane != lane ? WAIT_NS : 0));
    }
    idle[lane] = to->end = begin + to->ns;
    tail[lane] = s;
  }
  for (int l = 0; l < QN__LANES; l++) done = larger(done, idle[l] + (l && tail[l] >= 0 ? WAIT_NS : 0));
  return done;
}

/* Adds the waits for the steps need[lane], latest first, since they bring others with them. */
static void await(qn_plan *p, qn__step *to, const int32_t *need)
{
  for (;;) {
    int32_t from = -1;
    for (int l = 0; l < QN__LANES; l++)
      if (need[l] > to->before[l] && need[l] > from) from = need[l];
    if (from < 0) return;
    qn__step *other = &p->step[from];
    for (int l = 0; l < QN__LANES; l++)
      if (other->before[l] > to->before[l]) to->before[l] = other->before[l];
    to->before[other->lane] = from;
    to->wait[to->n_waits++] = from;
    if (!other->event) other->event = p->n_events++;
  }
}

static void begin_step(qn_plan *p, qn__step *step, int32_t lane, const int32_t *tail)
{
  step->lane = lane;
  step->n_waits = step->event = 0;
  for (int l = 0; l < QN__LANES; l++) step->before[l] = tail[lane] >= 0 ? p->step[tail[lane]].before[l] : -1;
  step->before[lane] = tail[lane];
}

/* Sets the waits that the steps' lanes need; returns how many there are. */
static int32_t set_waits(schedule *d, int32_t n_lanes)
{
  qn_plan *p = d->p;
  int32_t tail[QN__LANES], need[QN__LANES], n = 0;
  for (int l = 0; l < QN__LANES; l++) tail[l] = -1;
  p->n_lanes = (uint32_t)n_lanes;
  p->n_events = 1;
  p->forks = false;
  for (int32_t s = 0; s < d->n; s++) {
    qn__step *step = &p->step[s];
    const int32_t lane = d->step[s].lane;
    begin_step(p, step, lane, tail);
    for (int l = 0; l < QN__LANES; l++) need[l] = -1;
    for (int32_t e = d->step[s].from; e >= 0; e = d->edge[e].next) {
      const int32_t from = d->edge[e].step;
      if (from > need[d->step[from].lane]) need[d->step[from].lane] = from;
    }
    await(p, step, need);
    if (lane && tail[lane] < 0 && !step->n_waits) {
      step->wait[step->n_waits++] = QN__START;
      p->forks = true;
    }
    n += (int32_t)step->n_waits;
    tail[lane] = s;
  }
  begin_step(p, &p->step[d->n], 0, tail);
  await(p, &p->step[d->n], tail);
  return n + (int32_t)p->step[d->n].n_waits;
}

void qn__lanes_one(qn_plan *p)
{
  int32_t tail[QN__LANES] = { -1 };
  for (uint32_t s = 0; s <= p->n_steps; s++) {
    begin_step(p, &p->step[s], 0, tail);
    tail[0] = (int32_t)s;
  }
  p->n_lanes = 1;
  p->n_events = 0;
  p->forks = false;
}

/* Tries n lanes, and perhaps one for collectives; the time that the model gives. */
static double try_lanes(schedule *d, int n, bool apart)
{
  const double path = simulate(d, n, apart);
  double busy = 0;
  const int32_t waits = set_waits(d, n + apart);
  const double host = d->n * LAUNCH_NS + ((double)d->p->n_events + waits) * EVENT_NS;
  for (int32_t s = 0; s < d->n; s++) busy += d->step[s].busy;
  return larger(path, larger(busy, host));
}

/* The number of lanes, at most `most`, that is worth it, and their waits. */
static void choose(schedule *d, int most)
{
  bool own = false;                       /* collectives are never on several lanes */
  double serial = 0, best;
  int lanes = 1;
  for (int32_t s = 0; s < d->n; s++) {
    estimate(d->p, d->p->step[s].part, &d->step[s]);
    own |= d->step[s].collective;
    serial += d->step[s].ns;
  }
  best = larger(serial, d->n * LAUNCH_NS);
  for (int n = 2; n <= most; n++) {
    const double ns = try_lanes(d, n - own, own);
    if (ns >= WORTH * best) continue;
    best = ns;
    lanes = n;
  }
  if (lanes == 1) qn__lanes_one(d->p);
  else try_lanes(d, lanes - own, own);
}

qn_status qn__lanes_assign(qn_plan *p)
{
  const qn_device_ops *ops = p->dev->ops;
  const uint32_t n_values = p->graph->view.n_values;
  size_t uses = 0;
  qn__lanes_one(p);
  if (p->n_steps < 2 || !ops->event_wait || p->staging || p->policy->settings.lanes < 2) return QN_OK;
  for (uint32_t s = 0; s < p->n_steps; s++) uses += p->step[s].part->request.n_values;
  schedule d = { .p = p, .n = (int32_t)p->n_steps };
  d.step = qn__alloc(p->n_steps * sizeof *d.step);
  d.edge = qn__alloc((3 * uses + 1) * sizeof *d.edge);          /* of a use: the last writer; as a reader; the next writer on it */
  int32_t *cells = qn__alloc((2 * n_values + 1) * sizeof *cells);
  const bool room = d.step && d.edge && cells;
  if (room) {
    memset(cells, 0xff, 2 * n_values * sizeof *cells);
    for (int32_t s = 0; s < d.n; s++) d.step[s].from = -1;
    depend(&d, cells, cells + n_values);
    choose(&d, p->policy->settings.lanes);
  }
  qn__free(d.step);
  qn__free(d.edge);
  qn__free(cells);
  return room ? QN_OK : qn__fail(QN_NO_MEMORY, "no memory for a plan");
}

/* ---- running ------------------------------------------------------------------------------------------------------------- */

qn_status qn__lanes_begin(qn_context *ctx, const qn_plan *p)
{
  return p->forks ? ctx->dev->ops->event_record(&ctx->dev->desc, ctx->event[0], ctx->stream) : QN_OK;
}

void *qn__lane_stream(const qn_context *ctx, const qn__step *step) { return step->lane ? ctx->lane[step->lane] : ctx->stream; }

qn_status qn__lanes_wait(qn_context *ctx, const qn_plan *p, const qn__step *step)
{
  qn_status status = QN_OK;
  for (uint32_t i = 0; i < step->n_waits && !status; i++) {
    const uint32_t event = step->wait[i] == QN__START ? 0 : p->step[step->wait[i]].event;
    status = ctx->dev->ops->event_wait(&ctx->dev->desc, qn__lane_stream(ctx, step), ctx->event[event]);
  }
  return status;
}

qn_status qn__lanes_end(qn_context *ctx, const qn_plan *p, uint32_t begun, qn_status status)
{
  if (!status && !(status = qn__lanes_wait(ctx, p, &p->step[p->n_steps]))) return QN_OK;
  bool used[QN__LANES] = { false };
  char why[1024];
  snprintf(why, sizeof why, "%s", qn_last_error());             /* the first error counts */
  for (uint32_t s = 0; s < begun; s++) used[p->step[s].lane] = true;
  for (int l = 1; l < QN__LANES; l++)
    if (used[l]) (void)ctx->dev->ops->stream_wait(&ctx->dev->desc, ctx->stream, ctx->lane[l]);
  return qn__fail(status, "%s", why);
}
