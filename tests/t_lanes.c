/* t_lanes.c -- plans whose independent parts run on several streams: which, with what waits and events, live and recorded. On
 * lane_backend.c, whose copies and fills the stand-in for CUDA checks: two that meet must be ordered by waits. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <quern/group.h>
#include <quern/tools.h>
#include "fake_cuda.h"
#include "tap.h"

static const fake_cuda *fake;

static qn_context *context(const char *option)
{
  qn_context *ctx = NULL;
  const char *const options[] = { "backend=" QN_LANES_PLUGIN, "device=0", "tune=off", option, NULL };
  if (qn_context_create(options, &ctx)) tap_note("%s", qn_last_error());
  return ctx;
}

enum { MOST = 64 };
typedef struct run { qn_context *ctx; qn_graph *g; qn_plan *plan; void *ptr[MOST]; uint32_t n; int own[MOST]; } run;

static void end_run(run *r)
{
  for (uint32_t i = 0; i < r->n; i++)
    if (r->own[i]) qn_free(r->ctx, r->ptr[i]);
  qn_plan_destroy(r->plan);
  qn_graph_destroy(r->g);
  r->plan = NULL, r->g = NULL, r->n = 0;
}

/* Plans the lines, with memory for each pointer but those over others. */
static int begin_run(run *r, const char *lines)
{
  if (qn_graph_parse(lines, &r->g) || qn_plan_create(r->ctx, r->g, &r->plan)) {
    tap_note("%s", qn_last_error());
    return 0;
  }
  const qn_graph_view *view = qn_graph_inspect(r->g);
  for (r->n = 0; r->n < view->n_pointers && r->n < MOST; r->n++) {
    const int32_t over = view->value[view->pointer[r->n]].over;
    uint32_t mate = 0;
    while (over >= 0 && view->pointer[mate] != over) mate++;
    r->own[r->n] = over < 0;
    if (over >= 0) r->ptr[r->n] = r->ptr[mate];
    else qn_alloc(r->ctx, 1 << 16, &r->ptr[r->n]);
  }
  fake->noted();
  return 1;
}

/* Executes, and counts what was noted. */
static const char *execute(run *r)
{
  if (qn_plan_execute(r->ctx, r->plan, r->ptr)) tap_note("%s", qn_last_error());
  return fake->noted();
}

static int count(const char *text, const char *word)
{
  int n = 0;
  for (; (text = strstr(text, word)); text++) n++;
  return n;
}

static void all_well(const char *what)
{
  const char *wrong = fake->broken();
  if (!tap_ok(!wrong, "%s: what meets is ordered", what)) tap_note("%s", wrong);
}

/* Two arms of n products each from h, named by the letter `first` and the next one. */
static int two_arms(char *lines, char h, char first, int n)
{
  int at = 0;
  for (int arm = 0; arm < 2; arm++)
    for (int i = 0; i < n; i++)
      at += i ? sprintf(lines + at, "%c%d = matmul a=%c%d b=b\n", first + arm, i, first + arm, i - 1)
              : sprintf(lines + at, "%c0 = matmul a=%c b=%c\n", first + arm, h, 'a' + arm);
  return at;
}

/* h, then two arms of n products, then their join; then a tail. */
static char *diamond(int n, int tail)
{
  static char lines[8192];
  int at = sprintf(lines, "in a f32/8x8\nin b f32/8x8\nh = matmul a=a b=b\n");
  at += two_arms(lines + at, 'h', 'x', n);
  at += sprintf(lines + at, "%sz0 = matmul a=x%d b=y%d\n", tail ? "" : "out ", n - 1, n - 1);
  for (int i = 1; i <= tail; i++) at += sprintf(lines + at, "%sz%d = matmul a=z%d b=b\n", i < tail ? "" : "out ", i, i - 1);
  return lines;
}

static void diamonds(void)
{
  run r = { .ctx = context(NULL) }, in_order = { .ctx = context("lanes=1") };
  char text[8192];
  const char *noted;
  if (!begin_run(&r, diamond(6, 0)) || !begin_run(&in_order, diamond(6, 0))) {
    tap_ok(0, "a diamond is planned");
    return;
  }
  int streams = 0;
  noted = execute(&r);
  for (int s = 1; s < 9; s++) {
    char word[16];
    snprintf(word, sizeof word, "product %d,", s);
    streams += strstr(noted, word) != NULL;
  }
  tap_ok(streams == 2 && count(noted, "wait") == 2 && count(noted, "record") == 2, "the arms of a diamond run on two streams: %s", noted);
  all_well("live");
  qn_plan_print(r.plan, text, sizeof text);
  tap_ok(strstr(text, " lane=1 after=0 : ") && count(text, "lane=1") == 6 && count(text, "after=") == 2, "and the plan says so");
  const size_t wide = qn_plan_workspace(r.plan);
  noted = execute(&in_order);
  tap_ok(!strstr(noted, "wait") && !strstr(noted, "record") && count(noted, "product") == 14, "with lanes=1 in order: %s", noted);
  tap_ok(wide > qn_plan_workspace(in_order.plan) && qn_plan_counters(r.plan) == 256 + 64 && qn_plan_counters(in_order.plan) == 64,
         "what runs side by side shares neither workspace nor counters: %zu and %zu bytes", wide, qn_plan_workspace(in_order.plan));
  all_well("in order");

  qn_recording *recording = NULL;
  char live[8192];
  snprintf(live, sizeof live, "%s", execute(&r));
  const int begun = !qn_record_begin(r.ctx) && !qn_plan_execute(r.ctx, r.plan, r.ptr) && !qn_record_end(r.ctx, &recording);
  noted = fake->noted();
  const char *comma = strstr(noted, ", ");
  tap_ok(begun && comma && !strncmp(comma + 2, live, strlen(live)) && strstr(noted, "end ") == noted + strlen(comma ? noted : "") - 7,
         "a recording has the same streams, waits and events: %s", noted);
  all_well("recorded");
  tap_ok(!qn_recording_replay(r.ctx, recording) && strstr(fake->noted(), "replay"), "and is replayed");
  execute(&r);
  all_well("live again");
  qn_recording_destroy(recording);
  end_run(&r);
  end_run(&in_order);

  begin_run(&r, diamond(1, 0));
  noted = execute(&r);
  tap_ok(!strstr(noted, "wait") && count(noted, "product") == 4, "tiny arms are not worth a wait: %s", noted);
  end_run(&r);
  begin_run(&r, diamond(6, 5));
  noted = execute(&r);
  tap_ok(qn_plan_workspace(r.plan) == wide && count(noted, "wait") == 2, "after the join the arms' memory is used again: %zu bytes",
         qn_plan_workspace(r.plan));
  all_well("its reuse");
  end_run(&r);
  qn_context_destroy(r.ctx);

  char limit[64];
  snprintf(limit, sizeof limit, "workspace_limit=%zu", wide - 1);
  r.ctx = context(limit);
  begin_run(&r, diamond(6, 0));
  noted = execute(&r);
  tap_ok(!strstr(noted, "wait") && count(noted, "product") == 14, "where the workspace of several lanes is over the limit, one lane");
  end_run(&r);
  qn_context_destroy(r.ctx);
  qn_context_destroy(in_order.ctx);
}

/* The lane of the collectives in the plan's text; -1: they are not all on one, 0: the context's. */
static int lane_of_collectives(const char *text)
{
  int lane = 0, seen = 0;
  for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
    int l = 0;
    const char *says = strstr(line, " lane=");
    if (strncmp(line, "lanes/reduce", 12)) continue;
    if (says && says < strchr(line, '\n')) sscanf(says, " lane=%d", &l);
    if (seen++ && l != lane) return -1;
    lane = l;
  }
  return lane;
}

/* The backward half of a chain: gradients go to the other ranks and update parameters while earlier ones are computed. */
static void collectives(void)
{
  static char lines[8192];
  run r = { .ctx = context(NULL) };
  char text[8192];
  int at = sprintf(lines, "in a f32/8x8\nin b f32/8x8\n");
  for (int i = 0; i < 5; i++) at += sprintf(lines + at, "in p%d f32/8x8\n", i);
  at += sprintf(lines + at, "d0 = matmul a=a b=b\n");
  for (int i = 0; i < 5; i++) {
    at += sprintf(lines + at, "g%d = matmul a=a b=d%d\nr%d = all_reduce x=g%d\n", i, i, i, i);
    at += sprintf(lines + at, "out q%d over p%d = add a=p%d b=r%d\n", i, i, i, i);
    if (i < 4) at += sprintf(lines + at, "d%d = matmul a=d%d b=b\n", i + 1, i);
  }
  if (!begin_run(&r, lines)) {
    tap_ok(0, "a backward half is planned");
    return;
  }
  const char *noted = execute(&r);
  qn_plan_print(r.plan, text, sizeof text);
  const int lane = lane_of_collectives(text);
  char own[16];
  snprintf(own, sizeof own, " lane=%d", lane);
  if (!tap_ok(lane > 0 && count(text, own) == 5 && count(noted, "reduce ") == 5, "collectives have a lane of their own, in order"))
    tap_note("%s", noted);
  all_well("collectives live");
  qn_recording *recording = NULL;
  tap_ok(!qn_record_begin(r.ctx) && !qn_plan_execute(r.ctx, r.plan, r.ptr) && !qn_record_end(r.ctx, &recording), "recorded too");
  all_well("collectives recorded");
  qn_recording_destroy(recording);
  end_run(&r);

  begin_run(&r, "in a f32/8x8\ng = matmul a=a b=a\nr = all_reduce x=g\nout y = relu x=r\n");
  noted = execute(&r);
  tap_ok(!strstr(noted, "wait"), "where nothing runs beside it a collective stays in order: %s", noted);
  end_run(&r);
  qn_context_destroy(r.ctx);
}

/* An output over its input must wait for readers of the input on other lanes. */
static void overwriting(void)
{
  run r = { .ctx = context(NULL) };
  char lines[8192];
  const char *arms = diamond(6, 0), *join = strstr(arms, "out z0");
  snprintf(lines, sizeof lines, "in s f32/8x8\n%.*su = matmul a=y5 b=s\nv = matmul a=x5 b=b\nout s_ over s = add a=s b=v\n"
           "out w = matmul a=u b=b\n%s", (int)(join - arms), arms, join);
  if (begin_run(&r, lines)) {
    const char *noted = execute(&r);
    tap_ok(strstr(noted, "wait") != NULL, "an output over its input, which another lane reads: %s", noted);
    all_well("overwriting");
  }
  end_run(&r);
  qn_context_destroy(r.ctx);
}

static void failing(void)
{
  run r = { .ctx = context(NULL) };
  char lines[8192];
  qn_recording *recording = NULL;
  const char *arms = diamond(6, 0), *join = strstr(arms, "out z0");
  snprintf(lines, sizeof lines, "%.*sm = reduce_max x=y5 axis=1\n%sout w = add a=m b=m\n", (int)(join - arms), arms, join);
  if (begin_run(&r, lines)) {
    const int planned = !qn_record_begin(r.ctx) && qn_plan_execute(r.ctx, r.plan, r.ptr) == QN_DEVICE;
    const int ended = !qn_record_end(r.ctx, &recording);
    const char *noted = fake->noted();
    tap_ok(planned && ended && strstr(noted, "wait"), "lanes join after a failure too: %s", noted);
    all_well("a failure");
    qn_recording_destroy(recording);
  }
  end_run(&r);
  qn_context_destroy(r.ctx);
}

/* Graphs by chance: products, sums, relus and collectives of values that are mostly recent; some write over an input that others read. */
static char *by_chance(unsigned seed)
{
  static char lines[8192];
  enum { OPS = 40, INS = 4 };
  int kind[OPS], arg[OPS][2], over[OPS], read[INS + OPS] = { 0 }, lent[INS] = { 0 };
  const int n = 8 + (int)(seed * 7 % 33), collectives = seed % 3 > 0;
  for (int i = 0; i < n; i++) {
    seed = seed * 1664525 + 1013904223;
    kind[i] = (int)(seed >> 28) % (3 + collectives);
    over[i] = -1;
    for (int k = 0; k < 2; k++) {
      seed = seed * 1664525 + 1013904223;
      const int back = (int)((seed >> 20) % 6), known = INS + i;
      do arg[i][k] = (seed >> 30) ? known - 1 - (back < known ? back : 0) : (int)((seed >> 24) % (unsigned)known);
      while (arg[i][k] < INS && lent[arg[i][k]] && (seed = seed * 1664525 + 1013904223));   /* its memory holds something else */
      if (!k || kind[i] < 2) read[arg[i][k]] = 1;
    }
    for (int v = 0; v < INS && kind[i] == 1 && over[i] < 0; v++)
      if (arg[i][0] == v && arg[i][1] != v && seed >> 31) over[i] = v, lent[v] = 1;
  }
  int at = 0;
  for (int v = 0; v < INS; v++)
    if (read[v]) at += sprintf(lines + at, "in v%d f32/8x8\n", v);
  for (int i = 0; i < n; i++) {
    const int me = INS + i;
    char name[64];
    if (over[i] >= 0) snprintf(name, sizeof name, "out v%d over v%d", me, over[i]);
    else snprintf(name, sizeof name, "%sv%d", read[me] ? "" : "out ", me);
    if (kind[i] < 2) at += sprintf(lines + at, "%s = %s a=v%d b=v%d\n", name, kind[i] ? "add" : "matmul", arg[i][0], arg[i][1]);
    else at += sprintf(lines + at, "%s = %s x=v%d\n", name, kind[i] == 2 ? "relu" : "all_reduce", arg[i][0]);
  }
  return lines;
}

static void chances(void)
{
  static char text[16384];
  int ran = 0, spread = 0, apart = 0;
  const char *wrong = NULL;
  for (int lanes = 2; lanes <= 4; lanes++) {
    char option[16];
    snprintf(option, sizeof option, "lanes=%d", lanes);
    run r = { .ctx = context(option) };
    for (unsigned seed = 1; seed <= 150 && !wrong; seed++) {
      const char *lines = by_chance(seed);
      if (!begin_run(&r, lines)) {
        wrong = "a graph is not planned";
        break;
      }
      qn_recording *recording = NULL;
      ran++;
      spread += strstr(execute(&r), "wait") != NULL;
      if (qn_record_begin(r.ctx) || qn_plan_execute(r.ctx, r.plan, r.ptr) || qn_record_end(r.ctx, &recording)) wrong = qn_last_error();
      execute(&r);
      qn_plan_print(r.plan, text, sizeof text);
      const int lane = lane_of_collectives(text);
      apart += lane > 0;
      if (lane < 0) wrong = "collectives on several lanes";
      if (!wrong) wrong = fake->broken();
      if (wrong) tap_note("seed %u: %s\n%s", seed, wrong, lines);
      qn_recording_destroy(recording);
      end_run(&r);
    }
    qn_context_destroy(r.ctx);
  }
  tap_ok(!wrong && spread > 50 && apart > 20, "of %d graphs by chance %d run on several streams, %d with collectives apart; what meets is "
         "ordered", ran, spread, apart);
}

/* How many engines ran on the stream of the first one; 0: that is no stream of ours, or something waited. */
static int in_order_on_one(const char *noted)
{
  char word[32];
  const char *first = strstr(noted, "product ");
  const int stream = first ? atoi(first + strlen("product ")) : 0;
  snprintf(word, sizeof word, " %d, ", stream);
  return stream && !strstr(noted, "wait") ? count(noted, word) : 0;
}

/* Executes with a workspace of the caller's, and returns what was noted. */
static const char *execute_with(qn_context *ctx, const run *r)
{
  void *workspace = NULL, *counters = NULL;
  qn_alloc(ctx, qn_plan_workspace(r->plan), &workspace);
  qn_alloc(ctx, qn_plan_counters(r->plan), &counters);
  fake->noted();
  if (qn_plan_execute_with(ctx, r->plan, r->ptr, workspace, counters)) tap_note("%s", qn_last_error());
  const char *noted = fake->noted();
  all_well("with a workspace of the caller's");
  qn_context_synchronize(ctx);
  qn_free(ctx, workspace);
  qn_free(ctx, counters);
  return noted;
}

/* A plan of three lanes in a context that has two, with more events than the plan has: in order. */
static void fewer_lanes(void)
{
  static char three[8192], two[8192];
  run r = { .ctx = context(NULL) }, more = { .ctx = context(NULL) };
  char text[16384];
  snprintf(three, sizeof three, "%sr = all_reduce x=h\nout s = relu x=r\n", diamond(12, 0));
  int at = sprintf(two, "in a f32/8x8\nin b f32/8x8\nh = matmul a=a b=b\n");
  for (char h = 'h'; h < 'n'; h++) {
    at += two_arms(two + at, h, (char)('A' + 2 * (h - 'h')), 6);
    at += sprintf(two + at, "%s%c = matmul a=%c5 b=%c5\n", h + 1 < 'n' ? "" : "out ", h + 1, 'A' + 2 * (h - 'h'), 'B' + 2 * (h - 'h'));
  }
  if (!begin_run(&r, three) || !begin_run(&more, two)) {
    tap_ok(0, "plans of several lanes");
    return;
  }
  qn_plan_print(r.plan, text, sizeof text);
  tap_ok(strstr(text, "lane=2") && count(execute(&r), "record") > 0, "two arms and a collective have three lanes");
  qn_plan_print(more.plan, text, sizeof text);
  tap_ok(!strstr(text, "lane=2") && count(execute(&more), "record") > 4, "diamonds in a row have two, and more events");
  qn_context *mine = r.ctx;
  qn_context_synchronize(mine);
  const char *noted = execute_with(more.ctx, &r);
  tap_ok(in_order_on_one(noted) == 28, "a context with fewer lanes than a plan runs it in order: %s", noted);
  r.ctx = more.ctx;
  tap_ok(!qn_context_reserve(r.ctx, r.plan) && strstr(execute(&r), "wait"), "until it is made ready");
  all_well("all lanes");
  r.ctx = mine;
  end_run(&more);
  end_run(&r);
  qn_context_destroy(more.ctx);
  qn_context_destroy(mine);
}

/* A plan made for one context in another: in order, with a workspace of the caller's, until that one is made ready. */
static void elsewhere(void)
{
  run r = { .ctx = context(NULL) };
  qn_context *other = context(NULL), *mine = r.ctx;
  if (begin_run(&r, diamond(6, 0))) {
    tap_ok(qn_plan_execute(other, r.plan, r.ptr) == QN_NOT_READY, "another context: %s", qn_last_error());
    run small = { .ctx = other };
    begin_run(&small, "in a f32/8x8\nout y = relu x=a\n");    /* opens the instance */
    const char *noted = execute_with(other, &r);
    tap_ok(in_order_on_one(noted) == 14, "with a workspace of the caller's it runs in order: %s", noted);
    qn_recording *recording = NULL;
    const qn_status begun = qn_record_begin(other), refused = begun ? begun : qn_context_reserve(other, r.plan);
    tap_ok(refused == QN_NOT_READY && strstr(qn_last_error(), "streams"), "while a recording captures it cannot be made ready: %s",
           qn_last_error());
    if (!begun && !qn_record_end(other, &recording)) qn_recording_destroy(recording);
    end_run(&small);
    r.ctx = other;
    tap_ok(!qn_context_reserve(other, r.plan) && strstr(execute(&r), "wait"), "has lanes when it is made ready");
    all_well("another context");
    r.ctx = mine;
  }
  end_run(&r);
  qn_context_destroy(other);
  qn_context_destroy(mine);
}

static void instances(void)
{
  run r = { .ctx = context(NULL) };
  qn_group *group = NULL;
  const char *const alone[] = { "at=none", NULL };
  fake->noted();
  if (!qn_graph_parse("in a f32/8x8\nout y = relu x=a\n", &r.g) && !qn_plan_create(r.ctx, r.g, &r.plan)) {
    tap_ok(strstr(fake->noted(), "open -1 of -1") != NULL, "an instance is opened for a context of no group");
    const qn_status joined = qn_group_create(alone, &group) ? QN_INTERNAL : qn_context_join(r.ctx, group);
    const char *noted = fake->noted();
    tap_ok(!joined && !strcmp(noted, "close, open 0 of 1, "), "and another when it joins one: %s", noted);
    qn_context_join(r.ctx, NULL);
    noted = fake->noted();
    tap_ok(!strcmp(noted, "close, open -1 of -1, "), "or leaves it: %s", noted);
  }
  end_run(&r);

  /* From one group to another of the same size, whose plans are the same. */
  qn_group *next = NULL;
  float *x = NULL;
  qn_context_join(r.ctx, group);
  qn_alloc(r.ctx, 64 * sizeof *x, (void **)&x);
  const qn_tensor t = qn_tensor_1d(x, QN_F32, 64);
  qn_status status = qn_relu(r.ctx, &t, &t);
  if (!status) status = qn_group_create(alone, &next);
  fake->noted();
  setenv("LANES_OPEN_FAILS", "1", 1);
  if (!status) status = qn_context_join(r.ctx, next);
  unsetenv("LANES_OPEN_FAILS");
  const int failed = !strcmp(fake->noted(), "close, open 0 of 1, ");
  if (!status) status = qn_relu(r.ctx, &t, &t);
  if (!tap_ok(!status && failed && strstr(fake->noted(), "open 0 of 1, "), "an instance that fails to open is opened before it is used"))
    tap_note("%d: %s", (int)status, qn_last_error());
  qn_free(r.ctx, x);
  qn_context_destroy(r.ctx);
  const char *noted = fake->noted();
  tap_ok(count(noted, "close") == 1 && !strstr(noted, "open"), "a context that ends in a group opens nothing: %s", noted);
  qn_group_destroy(next);
  qn_group_destroy(group);
}

/* Recordings hold what their group's collectives communicate by. */
static void recorded_in_a_group(void)
{
  run r = { .ctx = context(NULL) };
  const char *const alone[] = { "at=none", NULL };
  qn_group *group = NULL;
  qn_recording *recording = NULL;
  qn_status status = qn_group_create(alone, &group);
  if (!status) status = qn_context_join(r.ctx, group);
  if (!status && begin_run(&r, "in a f32/8x8\ng = matmul a=a b=a\nr = all_reduce x=g\nout y = relu x=r\n")) {
    execute(&r);
    tap_ok(!qn_record_begin(r.ctx) && !qn_plan_execute(r.ctx, r.plan, r.ptr) && !qn_record_end(r.ctx, &recording) &&
           !qn_recording_replay(r.ctx, recording), "a collective is recorded in a group of one");
    qn_context_join(r.ctx, NULL);
    tap_ok(qn_plan_execute(r.ctx, r.plan, r.ptr) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "group of 1 "),
           "outside it its plan is refused: %s", qn_last_error());
    tap_ok(qn_recording_replay(r.ctx, recording) == QN_BAD_ARGUMENT, "and its recording: %s", qn_last_error());
    qn_context_join(r.ctx, group);
    tap_ok(!qn_plan_execute(r.ctx, r.plan, r.ptr), "back in one the plan runs: %s", qn_last_error());
    tap_ok(qn_recording_replay(r.ctx, recording) == QN_BAD_ARGUMENT, "but not what was captured before it left: %s", qn_last_error());
    qn_recording_destroy(recording);
  } else tap_ok(0, "a collective is planned in a group of one: %s", qn_last_error());
  end_run(&r);
  qn_context_destroy(r.ctx);
  qn_group_destroy(group);
}

int main(void)
{
  if (access(QN_LANES_PLUGIN, F_OK)) {
    tap_skip("the CUDA backend is not built", "plans on several streams");
    return tap_done();
  }
  void *object = dlopen(QN_LANES_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  fake = object ? dlsym(object, FAKE_CUDA_TABLE) : NULL;
  if (!tap_ok(fake != NULL, "the CUDA backend's device loads with a stand-in for the runtime")) {
    tap_note("%s", dlerror());
    return tap_done();
  }
  const char *wrong = fake->judge_order();
  fake->broken();
  if (!tap_ok(!wrong, "the stand-in knows what is ordered")) tap_note("%s", wrong);
  diamonds();
  collectives();
  overwriting();
  failing();
  chances();
  elsewhere();
  fewer_lanes();
  instances();
  recorded_in_a_group();
  return tap_done();
}
