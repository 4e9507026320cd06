/* t_amp -- a mixed-precision step as a trainer records it: gradients checked, Adam given `found`, the loss scale updated. A
 * forced overflow skips one step and halves the scale, without any decision on the host: one recording is replayed on good
 * gradients, on infinite ones and on good ones again. */
#include <quern/quern.h>
#include <math.h>
#include <string.h>
#include "tap.h"

static const char lines[] =
  "in p f32/5\n"
  "in g f16/5\n"
  "in m f32/5\n"
  "in v f32/5\n"
  "in steps i64\n"
  "in scale f32\n"
  "in good i64\n"
  "found = amp_unscale grads=[g] scale=scale\n"
  "steps_ = adam params=[p] grads=[g] m=[m] v=[v] step=steps rate=0.5 scale=scale found=found new_params=[p_] new_m=[m_] new_v=[v_] copy=[low:f16/5]\n"
  "out scale_ over scale = amp_update scale=scale good=good found=found interval=2 new_good=good_\n"
  "out good_ over good\n"
  "out steps_ over steps\n"
  "out p_ over p\n"
  "out m_ over m\n"
  "out v_ over v\n"
  "out low\n";

enum { P, G, M, V, STEPS, SCALE, GOOD, LOW, TENSORS };
static const char *const name[TENSORS] = { "p", "g", "m", "v", "steps", "scale", "good", "low" };
static const char *const after[TENSORS] = { "p_", NULL, "m_", "v_", "steps_", "scale_", "good_", NULL };
static const size_t bytes[TENSORS] = { 20, 10, 20, 20, 8, 4, 8, 10 };

typedef struct trainer { qn_context *ctx; qn_plan *plan; qn_recording *step; void *at[TENSORS], *pointer[16]; } trainer;
typedef struct state { float p[5], m[5], v[5], scale; int64_t steps, good; uint16_t low[5]; } state;

static state look(const trainer *t)
{
  state s;
  void *to[TENSORS] = { s.p, NULL, s.m, s.v, &s.steps, &s.scale, &s.good, s.low };
  for (int i = 0; i < TENSORS; i++)
    if (to[i]) qn_copy_to_host(t->ctx, to[i], t->at[i], bytes[i]);
  return s;
}

/* A replay with all gradients equal to this f16. */
static state replay(const trainer *t, uint16_t g)
{
  uint16_t grads[5] = { g, g, g, g, g };
  qn_copy_to_device(t->ctx, t->at[G], grads, sizeof grads);
  if (qn_recording_replay(t->ctx, t->step)) tap_note("%s", qn_last_error());
  return look(t);
}

static int begin(trainer *t)
{
  static const float p[5] = { 8, 8, 8, 8, 8 }, zero[5] = { 0 }, scale = 1024;
  static const uint16_t good[5] = { 0x6400, 0x6400, 0x6400, 0x6400, 0x6400 };         /* 1024 */
  const void *from[TENSORS] = { p, good, zero, zero, zero, &scale, zero, zero };
  qn_graph *graph;
  if (qn_context_create(NULL, &t->ctx) || qn_graph_parse(lines, &graph)) return 0;
  for (int i = 0; i < TENSORS; i++) {
    if (qn_alloc(t->ctx, bytes[i], &t->at[i]) || qn_copy_to_device(t->ctx, t->at[i], from[i], bytes[i])) return 0;
    t->pointer[qn_graph_index(graph, name[i])] = t->at[i];
    if (after[i]) t->pointer[qn_graph_index(graph, after[i])] = t->at[i];
  }
  qn_status status = qn_plan_create(t->ctx, graph, &t->plan);
  qn_graph_destroy(graph);
  return !status && !qn_plan_execute(t->ctx, t->plan, t->pointer) && !qn_record_begin(t->ctx)
      && !qn_plan_execute(t->ctx, t->plan, t->pointer) && !qn_record_end(t->ctx, &t->step);
}

int main(void)
{
  trainer t = { 0 };
  if (!tap_ok(begin(&t), "a step runs, and is recorded")) {
    tap_note("%s", qn_last_error());
    return tap_done();
  }
  state s = look(&t);
  tap_ok(s.steps == 1 && s.good == 1 && s.scale == 1024 && fabsf(s.p[0] - 7.5f) < 1e-5f, "the first step moves by its rate: 8 to %g",
         (double)s.p[0]);
  const state before = replay(&t, 0x6400);
  tap_ok(before.steps == 2 && before.good == 0 && before.scale == 2048 && fabsf(before.p[0] - 7) < 1e-5f,
         "the second too, and after two good ones the scale is doubled: %g", (double)before.scale);
  s = replay(&t, 0x7c00);
  tap_ok(s.steps == 2 && !memcmp(s.p, before.p, sizeof s.p) && !memcmp(s.m, before.m, sizeof s.m) && !memcmp(s.v, before.v, sizeof s.v)
         && !memcmp(s.low, before.low, sizeof s.low), "an overflow skips the step: parameters, moments and count stay");
  tap_ok(s.scale == 1024 && s.good == 0, "and halves the scale: %g", (double)s.scale);
  s = replay(&t, 0x6400);
  tap_ok(s.steps == 3 && s.p[0] < before.p[0] && s.good == 1 && s.scale == 1024, "the next good step moves on");
  qn_recording_destroy(t.step);
  qn_plan_destroy(t.plan);
  for (int i = 0; i < TENSORS; i++) qn_free(t.ctx, t.at[i]);
  qn_context_destroy(t.ctx);
  return tap_done();
}
