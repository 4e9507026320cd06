/* t_regions.c -- what the planner offers to rows with patterns, and what it makes of their answers: on probe_backend.c, whose engines
 * log their offers, beside cpu_ref. */
#include <quern/tools.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tap.h"

static const char *pin = "engine=";
static char backends[4200], heard[1 << 16], text[2][16384];
static size_t length;

static void hear(void *user, int level, const char *message)
{
  (void)user;
  if (level == QN_LOG_INFO && length + 1024 < sizeof heard) length += (size_t)snprintf(heard + length, sizeof heard - length, "%s\n",
    message);
}

static qn_context *context(const char *names, const char *log)
{
  char list[4300];
  qn_context *ctx = NULL;
  snprintf(list, sizeof list, "backend=%s", names);
  const char *const options[] = { list, "tune=off", log, pin, NULL };
  if (qn_context_create(options, &ctx)) tap_note("%s", qn_last_error());
  return ctx;
}

/* Plans lines on those backends with the probe's answers; the number of parts, 0: an error. The plan is printed into to. */
static int plan(const char *names, const char *answers, const char *lines, char *to)
{
  qn_context *ctx = context(names, "log=info");
  qn_graph *g = NULL;
  qn_plan *p = NULL;
  int n = 0;
  *to = 0;
  length = 0;
  *heard = 0;
  setenv("QUERN_PROBE", answers, 1);
  if (!qn_graph_parse(lines, &g) && !qn_plan_create(ctx, g, &p)) {
    qn_plan_print(p, to, sizeof *text);
    n = qn_plan_parts(p);
  }
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
  return n;
}

static bool offered(const char *line)
{
  char whole[512];
  snprintf(whole, sizeof whole, "%s\n", line);
  return strstr(heard, whole) != NULL;
}

static bool same_as_alone(const char *answers, const char *lines)
{
  return plan(backends, answers, lines, text[0]) && plan("cpu_ref", answers, lines, text[1]) && !strcmp(text[0], text[1]);
}

/* ---- what is offered ------------------------------------------------------------------------------------------ */

static const char two_readers[] = "in a f32/64x64\nin b f32/64x64\nin h f32/64x64\nm = matmul a=a b=b\nout p = softmax x=m\n"
                                  "s = add a=m b=h\nout y = gelu x=s\n";
static const char norm_mlp[] = "in x f32/8x64\nin g f32/1x64\nin w f32/64x64\nin c f32/8x64\nn = rms_norm x=x scale=g\n"
                               "m = matmul a=n b=w\ns = add a=m b=c\nout y = gelu x=s\n";
static const char conv_sums[] = "in x f32/2x8x9x9\nin w f32/8x8x3x3\ny = conv_forward x=x w=w pad=1\nout r = relu x=y\n"
                                "out s = reduce_sum x=y axis=1\n"
                                "q = mul a=y b=y\nout t = reduce_sum x=q axis=1\n";
static const char glu[] = "in x f32/8x64\nin u f32/64x64\nin v f32/64x64\na = matmul a=x b=u\ns = silu x=a\nb = matmul a=x b=v\n"
                          "out y = mul a=s b=b\n";

static void offers(void)
{
  tap_ok(same_as_alone("", two_readers) && strstr(text[0], "gemm_fused"),
         "a row that declines everything changes nothing of what others fuse");
  plan(backends, "", two_readers, text[0]);
  tap_ok(offered("plain: matmul add gelu") && offered("greedy: matmul softmax add gelu"), "and is offered more than they are");
  tap_ok(same_as_alone("", norm_mlp), "nor does one that would have taken a norm before its anchor");
  plan(backends, "", norm_mlp, text[0]);
  tap_ok(offered("normed: matmul add gelu norm"), "which is offered norm, matmul and epilogue");
  plan(backends, "", conv_sums, text[0]);
  tap_ok(offered("statistics: conv relu mul sum sum"), "a convolution is offered with relu, sum and sum of squares");
  plan(backends, "", glu, text[0]);
  tap_ok(offered("gated: matmul silu matmul mul"), "two products of one tensor are offered together");
  tap_ok(offered("plain: matmul silu mul"), "where they are asked for");
}

/* x -> norm -> q, k, v -> q k^T -> softmax -> v -> out + x. */
static const char attention[] =
  "in x f32/16x64\nin g f32/1x64\nin wq f32/64x64\nin wk f32/64x64\nin wv f32/64x64\nin wo f32/64x64\nn = rms_norm x=x scale=g\n"
  "q = matmul a=n b=wq\nk = matmul a=n b=wk\nv = matmul a=n b=wv\nkt = permute x=k perm=1,0\ns = matmul a=q b=kt\np = softmax x=s\n"
  "o = matmul a=p b=v\nz = matmul a=o b=wo\nout y = add a=z b=x\n";

static void whole_attention(void)
{
  plan(backends, "", attention, text[0]);
  tap_ok(offered("attention: matmul matmul matmul matmul softmax matmul matmul add norm 7<4"),
         "attention is offered from its norm to its residual, the transpose as a view");
  tap_ok(plan(backends, " attention=1ff", attention, text[0]) == 1, "and is one part if one engine takes it");
  tap_ok(plan(backends, " attention=17f", attention, text[0]) == 2, "or two");
}

/* ---- views ------------------------------------------------------------------------------------------------------ */

static void views(void)
{
  tap_ok(plan("cpu_ref", "", "in a f32/64x32\nin b f32/64x32\nt = permute x=b perm=1,0\nout y = matmul a=a b=t\n", text[0]) == 1,
         "a transpose before a product is a view: %s", text[0]);
  tap_ok(plan("cpu_ref", "", "in a f32/64x32\nin b f32/64x64\nt = slice x=b start=0,32\nu = permute x=t perm=1,0\n"
              "out y = matmul a=a b=u\n", text[0]) == 1,
         "so are a slice and a transpose of it");
  tap_ok(plan("cpu_ref", "", "in b f32/64x64\nout t = permute x=b perm=1,0\nout y = matmul a=t b=b\n", text[0]) == 2,
         "an output is written");
  tap_ok(plan("cpu_ref", "", "in b f32/64x64\nt = permute x=b perm=1,0\nout c over b = abs x=b\nout y = matmul a=t b=c\n", text[0]) >= 2 &&
         strstr(text[0], "permute"), "and what is overwritten before the view is read, copied");
}

/* Only rows that ask for it see a value of the region through a view. */
static void views_inside(void)
{
  plan(backends, "", "in a f32/64x64\nin b f32/64x64\nr = relu x=a\nt = permute x=r perm=1,0\nm = matmul a=t b=b\nu = permute x=m perm=1,0\n"
                     "out y = gelu x=u\n", text[0]);
  tap_ok(offered("plain: matmul") && !offered("plain: matmul relu") && offered("attention: matmul gelu relu 0<6 3<2"),
         "an op that reads through a view joins where views are asked for");
}

/* A view of a value in the workspace, executed. */
static void view_values(void)
{
  const char *lines = "in a f32/2x3\nm = relu x=a\nt = slice x=m start=0,1\nu = permute x=t perm=1,0\nout y = matmul a=t b=u\n"
                      "out z = reduce_max x=m axis=1\n";
  _Alignas(16) float a[6] = { 1, 2, 3, 4, -5, 6 };
  _Alignas(16) float y[4] = {0};
  _Alignas(16) float z[2] = {0};
  void *ptr[] = { a, y, z };
  qn_context *ctx = context("cpu_ref", "log=error");
  qn_graph *g = NULL;
  qn_plan *p = NULL;
  qn_status status = qn_graph_parse(lines, &g);
  if (!status) status = qn_plan_create(ctx, g, &p);
  if (!status) qn_plan_print(p, text[0], sizeof *text);
  if (!status) status = qn_plan_execute(ctx, p, ptr);
  if (!status) status = qn_context_synchronize(ctx);
  tap_ok(!status && !strstr(text[0], "permute") && !strstr(text[0], "slice") && y[0] == 13 && y[1] == 18 && y[2] == 18 && y[3] == 36 &&
         z[0] == 3 &&
         z[1] == 6, "a slice and its transpose are read where they are: %g %g %g %g %s", y[0], y[1], y[2], y[3],
           status ? qn_last_error() : text[0]);
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
}

/* ---- what is taken ---------------------------------------------------------------------------------------------- */

static void answers(void)
{
  tap_ok(plan(backends, " normed=f", norm_mlp, text[0]) == 1, "norm, matmul, add and gelu are one part");
  pin = "engine=matmul=probe/normed";
  tap_ok(plan(backends, " normed=9", norm_mlp, text[0]) == 2 && strstr(text[0], "probe/normed"),
         "norm and matmul without what follows are a region too");
  pin = "engine=";
  tap_ok(plan(backends, " gated=f", glu, text[0]) == 1, "a gated pair of products is one part");
  tap_ok(plan(backends, " statistics=1f", conv_sums, text[0]) == 1, "so is a convolution with its statistics");
  tap_ok(plan(backends, " statistics=19", conv_sums, text[0]) == 3 && !strstr(text[0], "probe/"),
         "a set without what its sums read is none");
  const char *gate = "in a f32/8x8\nin b f32/8x8\nin z f32/8x8\nm = matmul a=a b=b\ns = sigmoid x=z\nout y = mul a=m b=s\n";
  const char *chain = "in a f32/8x8\nin b f32/8x8\nm = matmul a=a b=b\ns = sigmoid x=m\nout y = mul a=m b=s\n";
  pin = "engine=matmul=probe/plain";
  tap_ok(plan(backends, " plain=5", gate, text[0]) == 2 && strstr(text[0], "sigmoid") < strstr(text[0], "probe/plain"),
         "an op that is skipped runs before: %s", text[0]);
  tap_ok(!plan(backends, " plain=5", chain, text[0]) && strstr(qn_last_error(), "comes back"), "but not if a path would come back: %s",
         qn_last_error());
  tap_ok(!plan(backends, " plain=6", chain, text[0]) && strstr(qn_last_error(), "lacks the anchor"), "nor may the anchor be left out");
  tap_ok(!plan(backends, " plain=f", chain, text[0]) && strstr(qn_last_error(), "more than it was offered"),
         "nor more be taken than is offered");
  pin = "engine=";
}

/* ---- the choice --------------------------------------------------------------------------------------------------- */

static void estimates(void)
{
  const char *two = "in x f32/8x64\nin g f32/1x64\nin w f32/64x64\nn = rms_norm x=x scale=g\nout y = matmul a=n b=w\n";
  tap_ok(plan(backends, " normed=3@100 plain=1@10 norm=1@20", two, text[0]) == 2 && strstr(text[0], "probe/plain"),
         "two fast engines against a slower one for both: %s", text[0]);
  tap_ok(plan(backends, " normed=3@25 plain=1@10 norm=1@20", two, text[0]) == 1 && strstr(text[0], "probe/normed"), "and a faster one");
  tap_ok(plan(backends, " normed=3@100 plain=1@10 norm=1", two, text[0]) == 1 && strstr(text[0], "probe/normed"),
         "without all estimates the bytes saved decide");
}

/* ---- layouts ------------------------------------------------------------------------------------------------- */

/* The parts of a stack of convolutions, as problem lines, with those answers. */
static const char *parts_of_stack(const char *answers)
{
  static const char lines[] = "in x f32/2x8x9x9\nin w f32/8x8x3x3\na = conv_forward x=x w=w pad=1\nb = relu x=a\n"
                              "c = conv_forward x=b w=w pad=1\nd = relu x=c\nout y = conv_forward x=d w=w pad=1\n";
  char probe[sizeof backends];
  snprintf(probe, sizeof probe, "%s", backends);
  *strrchr(probe, ',') = 0;
  qn_context *ctx = context(probe, "log=error");
  qn_graph *g = NULL;
  qn_plan *p = NULL;
  size_t n = 0;
  setenv("QUERN_PROBE", answers, 1);
  if (qn_graph_parse(lines, &g) || qn_plan_create(ctx, g, &p)) tap_note("%s", qn_last_error());
  *text[0] = 0;
  for (int i = 0; p && i < qn_plan_parts(p); i++) {
    n += qn_part_line(p, i, text[0] + n, sizeof *text - n);
    n += (size_t)snprintf(text[0] + n, sizeof *text - n, "\n");
  }
  qn_plan_destroy(p);
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
  return text[0];
}

/* Is it planned, all of it as the graph has it? */
static bool stays(const char *answers)
{
  const char *parts = parts_of_stack(answers);
  return strstr(parts, "in d f32/2x8x9x9 | in w f32/8x8x3x3 | out y = conv_forward x=d w=w pad=1") && !strstr(parts, "nhwc");
}

static void layouts(void)
{
  const char *parts = parts_of_stack(" conv=1@100/10 any=1@5/6");
  tap_ok(strstr(parts, "out a = conv_forward x=x w=w y=f32/2x8x9x9/nhwc pad=1") && strstr(parts, "in c f32/2x8x9x9/nhwc | out d = relu x=c"),
         "convolutions that are faster channels last have their intermediates so");
  tap_ok(strstr(parts, "in x f32/2x8x9x9 |") && strstr(parts, "out y = conv_forward x=d w=w y=f32/2x8x9x9 pad=1"),
         "but not what the caller sees");
  tap_ok(stays(" conv=1@10/100 any=1@5/6"), "those that are slower do not");
  tap_ok(stays(" conv=1@100/98 any=1@5/5"), "nor those that are as fast");
  tap_ok(stays(" conv=1@100/0 any=1@5/6"), "nor where an engine that meets them does not know its time, and did");
  tap_ok(strstr(parts_of_stack(" conv=1@100/10 any=1"), "out a = conv_forward x=x w=w y=f32/2x8x9x9/nhwc pad=1"),
         "one that knows it in neither case counts the same in both");
}

static void costs(void)
{
  enum { LAYERS = 96, OPS = 15 };
  static char lines[LAYERS * 1024];
  char *at = lines + sprintf(lines, "in x0 f32/16x64\nin g f32/1x64\nin w f32/64x64\n");
  for (int i = 0; i < LAYERS; i++)
    at += sprintf(at,
      "n%d = rms_norm x=x%d scale=g\nq%d = matmul a=n%d b=w\nk%d = matmul a=n%d b=w\nv%d = matmul a=n%d b=w\nt%d = permute x=k%d perm=1,0\n"
      "s%d = matmul a=q%d b=t%d\np%d = softmax x=s%d\no%d = matmul a=p%d b=v%d\ne%d = matmul a=o%d b=w\nr%d = add a=e%d b=x%d\n"
      "m%d = rms_norm x=r%d scale=g\na%d = matmul a=m%d b=w\nh%d = gelu x=a%d\nd%d = matmul a=h%d b=w\n%sx%d = add a=d%d b=r%d\n",
      i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1 < LAYERS ? "" : "out ", i + 1, i,
        i);
  char probe[sizeof backends];
  snprintf(probe, sizeof probe, "%s", backends);
  *strrchr(probe, ',') = 0;
  qn_context *ctx = context(probe, "log=error");
  qn_graph *g = NULL;
  double least = 1e9;
  int parts = 0;
  setenv("QUERN_PROBE", " plain=1 norm=1 permissive_softmax=1 moved=1 any=1 quiet", 1);
  if (qn_graph_parse(lines, &g)) tap_note("%s", qn_last_error());
  for (int turn = 0; turn < 5 && g; turn++) {
    qn_plan *p = NULL;
    const clock_t begin = clock();
    if (qn_plan_create(ctx, g, &p)) tap_note("%s", qn_last_error());
    const double ms = (double)(clock() - begin) * 1e3 / CLOCKS_PER_SEC;
    if (ms < least) least = ms;
    parts = p ? qn_plan_parts(p) : 0;
    qn_plan_destroy(p);
  }
  qn_graph_destroy(g);
  qn_context_destroy(ctx);
  tap_ok(parts > LAYERS * 8 && least < 2000, "%d ops in %d layers, every kind in every pattern: %d parts in %.1f ms", LAYERS * OPS, LAYERS,
         parts, least);
}

int main(int argc, char **argv)
{
  (void)argc;
  (void)argv;
  snprintf(backends, sizeof backends, "%squern_probe.so,cpu_ref", QN_FAKE_PLUGINS);
  qn_set_log(hear, NULL);
  offers();
  whole_attention();
  views();
  views_inside();
  view_values();
  answers();
  estimates();
  layouts();
  costs();
  return tap_done();
}
