/* t_streams.c -- a device with streams: enqueued work, plans with lanes, objects that outlive their context; on fake_backend.c as
 * quern_streams.so, which logs the device calls. */
#include <quern/tools.h>
#include <string.h>
#include "fake.h"
#include "tap.h"

static char told[2048];
static void take_down(void *user, int level, const char *message)
{
  (void)level;
  (void)user;
  snprintf(told + strlen(told), sizeof told - strlen(told), "%s, ", message);
}

/* Two arms of six products that read h, and what comes after them. */
static const char *arms(const char *after)
{
  static char lines[2048];
  int at = sprintf(lines, "in a f32/8x8\nin b f32/8x8\nh = matmul a=a b=b\n");
  for (int arm = 'x'; arm <= 'y'; arm++)
    for (int i = 0; i < 6; i++)
      at += i ? sprintf(lines + at, "%c%d = matmul a=%c%d b=b\n", arm, i, arm, i - 1) : sprintf(lines + at, "%c0 = matmul a=h b=a\n", arm);
  strcat(lines, after);
  return lines;
}

#define THREE(stream) "three " stream " 0, three " stream " 0, three " stream " 0, "
#define ARM(stream) THREE(stream) THREE(stream)

static void lanes(void)
{
  static float buffer[8][64] __attribute__((aligned(64)));
  void *ptr[8];
  qn_context *ctx = context("tune=off", NULL);
  qn_graph *g;
  qn_plan *p;
  qn_recording *r = NULL;
  const char *live = "three 1 0, record 1 2, " ARM("1") "await 2 2, " ARM("2") "record 2 3, await 1 3, three 1 0, ";
  char recorded[1024];
  for (int i = 0; i < 8; i++) ptr[i] = buffer[i];
  qn_graph_parse(arms("out z = matmul a=x5 b=y5\n"), &g);
  if (qn_plan_create(ctx, g, &p)) tap_note("%s", qn_last_error());
  qn_set_log(take_down, NULL);
  tap_ok(!qn_plan_execute(ctx, p, ptr) && !strcmp(told, live), "independent parts run on two streams, and join: %s", told);
  told[0] = 0;
  snprintf(recorded, sizeof recorded, "begin 1 0, %send 1 0, ", live);
  tap_ok(!qn_record_begin(ctx) && !qn_plan_execute(ctx, p, ptr) && !qn_record_end(ctx, &r) && !strcmp(told, recorded),
         "in a recording too: %s", told);
  tap_ok(qn_plan_counters(p) == 256 + 64, "with counters of their own: %zu bytes", qn_plan_counters(p));
  told[0] = 0;
  qn_plan_destroy(p);
  tap_ok(!told[0], "the plan that it runs on stays");
  qn_recording_destroy(r);
  tap_ok(strstr(told, "release") != NULL, "and goes with it");
  qn_graph_destroy(g);
  qn_graph_parse(arms("out m = reduce_max x=a axis=1\nout z = matmul a=x5 b=y5\n"), &g);
  if (qn_plan_create(ctx, g, &p)) tap_note("%s", qn_last_error());
  told[0] = 0;
  tap_ok(!qn_record_begin(ctx) && qn_plan_execute(ctx, p, ptr) == QN_DEVICE && !qn_record_end(ctx, &r) &&
         strstr(told, "await 2 2, ") && strstr(told, " wait 1 2, end 1 0, "), "lanes join after a failure too: %s", told);
  qn_set_log(NULL, NULL);
  qn_recording_destroy(r);
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
}

static void enqueued(void)
{
  qn_context *ctx = context("tune=off", NULL);
  void *p = NULL;
  char x[4];
  qn_set_log(take_down, NULL);
  told[0] = 0;
  tap_ok(!qn_alloc_host(ctx, 4, &p) && !qn_copy_to_device_async(ctx, x, p, 4) && !qn_copy_to_host_async(ctx, p, x, 4) &&
         !strcmp(told, "host memory 0 0, copy to 3 0, copy from 3 0, "), "copies are enqueued from the device's own host memory: %s", told);
  told[0] = 0;
  tap_ok(!qn_copy_to_host(ctx, p, x, 4) && !strcmp(told, "copy from 3 0, synchronize 3 0, "), "or waited for: %s", told);
  qn_record_begin(ctx);
  told[0] = 0;
  tap_ok(!qn_copy_to_host_async(ctx, p, x, 4) && !strcmp(told, "copy from 3 0, "), "a recording has the device capture them: %s", told);
  qn_recording *r = NULL;
  qn_record_end(ctx, &r);
  qn_recording_destroy(r);
  told[0] = 0;
  qn_free_host(ctx, p);
  tap_ok(!strcmp(told, "host memory back 0 0, "), "and it goes back to the device: %s", told);
  qn_set_log(NULL, NULL);
  qn_context_destroy(ctx);
}

/* A context may be destroyed before its recordings and timers; a new context must not be mistaken for it. */
static void outlived(void)
{
  static float x[8], y[8];
  qn_tensor tx = qn_tensor_1d(x, QN_F32, 8), ty = qn_tensor_1d(y, QN_F32, 8);
  qn_context *ctx = context("tune=off", NULL);
  qn_recording *r = NULL;
  qn_timer *timer = NULL;
  double ns;
  qn_set_log(take_down, NULL);
  tap_ok(!qn_timer_create(ctx, &timer) && !qn_relu(ctx, &tx, &ty) && !qn_record_begin(ctx) && !qn_relu(ctx, &tx, &ty) &&
         !qn_record_end(ctx, &r) && !qn_recording_replay(ctx, r), "a recording and a timer");
  tap_ok(qn_timer_create(ctx, NULL) == QN_BAD_ARGUMENT && qn_timer_start(NULL) == QN_BAD_ARGUMENT &&
         qn_timer_stop(NULL, &ns) == QN_BAD_ARGUMENT && qn_timer_stop(timer, NULL) == QN_BAD_ARGUMENT, "%s", qn_last_error());
  qn_context_destroy(ctx);
  ctx = context("tune=off", NULL);                              /* probably at the address of the old one */
  tap_ok(qn_recording_replay(ctx, r) == QN_BAD_ARGUMENT, "a recording is not for the next context: %s", qn_last_error());
  qn_context_destroy(ctx);
  told[0] = 0;
  qn_recording_destroy(r);
  qn_timer_destroy(timer);
  tap_ok(strstr(told, "recording gone") != NULL, "they may go after their context: %s", told);
  qn_set_log(NULL, NULL);
}

/* Two ops on the CPU, one enqueued after the other. */
static void fallback_in_order(void)
{
  static float x[8], y[2][8];
  qn_tensor tx = qn_tensor_2d(x, QN_F32, 2, 4), ty = qn_tensor_2d(y[0], QN_F32, 2, 4);
  qn_tensor ux = qn_tensor_2d(x, QN_F32, 1, 8), uy = qn_tensor_2d(y[1], QN_F32, 1, 8);
  qn_context *ctx = context("fallback=host", "log=error");
  qn_axis axis = QN_AXIS_INIT;
  tap_ok(!qn_softmax(ctx, &axis, &tx, &ty) && !qn_softmax(ctx, &axis, &ux, &uy) && !qn_context_synchronize(ctx) && y[0][0] == 0.25f &&
         y[1][7] == 0.125f, "ops on the CPU in stream order");
  qn_context_set(ctx, "log", "warn");
  qn_context_destroy(ctx);
}

int main(void)
{
  snprintf(plugin, sizeof plugin, QN_FAKE_PLUGINS "quern_streams.so");
  lanes();
  enqueued();
  outlived();
  fallback_in_order();
  return tap_done();
}
