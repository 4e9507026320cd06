/* t_prepare.c -- asks every engine about every conformance problem, on devices that need not be present.
 *
 * prepare needs only a device's description, so engines for absent devices can be held to their contract too: an answer is complete
 * (ops taken, a finite estimate) or a refusal with its rule, everything prepared is freed, and an allocation failure is reported and
 * leaks nothing. Linked to core itself, for its allocation counters. */
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <quern/tools.h>
#include "core.h"
#include "tap.h"

static const struct { const char *backend, *model; } devices[] = {
  { "cpu_ref", NULL }, { "cuda", "h200" }, { "cuda", "a100" }, { "cuda", "t4" }, { "cuda", "generic" },
};

typedef struct tally { long problems, answers, taken, lost, partial, starved; } tally;

static void quiet(void *user, int level, const char *message) { (void)user; (void)level; (void)message; }

/* ---- one verdict, one problem ------------------------------------------------------------------------- */

static void judge(void *user, const qn_verdict *v)
{
  tally *t = user;
  const qn_prepared *a = v->answer;
  if (!a) return;                                 /* an engine excluded by the settings */
  t->answers++;
  t->taken += !v->status;
  bool whole = v->status ? *a->refusal.rule != 0 : a->n_ops > 0 && isfinite(a->estimate) && a->estimate >= 0;
  if (!whole && t->partial++ < 5) tap_note("%s on %s: status %d, estimate %g, no rule", v->engine, v->problem, (int)v->status, a->estimate);
}

static void ignore(void *user, const qn_verdict *v) { (void)user; (void)v; }

/* Once normally, then again with each of its allocations failing. */
static void explain(tally *t, const char *const *options, const char *model, const qn_graph *graph, int line)
{
  long first = atomic_load(&qn__alloc_count), live = atomic_load(&qn__alloc_live);
  qn_status status = qn_explain(options, model, graph, judge, t);
  long made = atomic_load(&qn__alloc_count) - first;
  t->problems++;
  if (status && t->partial++ < 5) tap_note("line %d: %s", line, qn_last_error());
  if (atomic_load(&qn__alloc_live) != live && t->lost++ < 5)
    tap_note("line %d: %ld of %ld allocations are kept", line, atomic_load(&qn__alloc_live) - live, made);
  live = atomic_load(&qn__alloc_live);
  atomic_store(&qn__fail_alloc_at, 1 + t->problems * 7 % (made ? made : 1));
  status = qn_explain(options, model, graph, ignore, NULL);
  atomic_store(&qn__fail_alloc_at, 0);
  if ((atomic_load(&qn__alloc_live) != live || (status && status != QN_NO_MEMORY) || (status && !*qn_last_error())) && t->starved++ < 5)
    tap_note("line %d: without memory status %d, %ld allocations kept", line, (int)status, atomic_load(&qn__alloc_live) - live);
}

/* ---- all of them -------------------------------------------------------------------------------------- */

static char *text_of(const char *path)
{
  FILE *f = fopen(path, "r");
  char *text = f ? calloc(1, 1 << 20) : NULL;
  if (text && fread(text, 1, (1 << 20) - 1, f) == 0) *text = '\0';
  if (f) fclose(f);
  return text;
}

/* Replaces f32 by f16, which most case files request by a setting that only quern-conform reads; invalid results are skipped. */
static void halve(char *text)
{
  char *to = text;
  for (const char *from = text; *from;) {
    bool single = !strncmp(from, "f32/", 4);
    *to++ = *from++;
    if (!single) continue;
    memcpy(to, "16/", 3);
    to += 3;
    from += 3;
  }
  *to = '\0';
}

/* Collectives between GPUs are another backend's: plugins/nccl. */
static bool is_for(const char *model, const qn_graph *graph)
{
  return !model || qn_graph_inspect(graph)->op[0].family != QN_FAMILY_COLLECTIVE;
}

static void explain_all(tally *t, const char *const *options, const char *model, const char *text, bool exact)
{
  const char *settings;
  qn_reader *reader;
  qn_graph *graph;
  qn_status status;
  int line;
  if (qn_reader_text(text, &reader)) return;
  while ((status = qn_reader_next(reader, &graph, &settings, &line)) || graph) {
    if (graph && is_for(model, graph)) explain(t, options, model, graph, line);
    else if (!graph && exact && t->partial++ < 5) tap_note("line %d: %s", line, qn_last_error());
    qn_graph_destroy(graph);
  }
  qn_reader_close(reader);
}

/* ---- what an engine must leave to another: sizes beyond its kernel's integers, blocks beyond the device's limits ------------------ */

static const struct { const char *backend, *model, *engine, *problem; } beyond[] = {
  { "cuda", "t4", "fft", "conv_forward x=f32/4x16x128x128 w=f32/16x16x15x15" },
  { "cuda", "h200", "strips", "pool_max x=f16/1x1x65536x65536 window=2 stride=2" },
  { "cuda", "h200", "vector", "pool_average x=f16/1x1x65536x65536/nhwc window=65536" },
  { "cuda", "h200", "vector", "pool_lp x=f16/1x1x65536x65536 window=2 stride=2" },
  { "cuda", "h200", "lanes", "pool_average_backward dy=f32/1x64x1x17000000/1088000000:1:8:64 dx=f32/1x64x1x17000000/1088000000:1:8:64 "
                             "window=3 stride=1 pad=1" },
  { "cuda", "h200", "mma", "matmul a=f16/2147483647x1 b=f16/1x1" },
  { "cuda", "h200", "mma", "matmul a=f16/8x2147483640 b=f16/2147483640x8" },
  { "cuda", "h200", "wgmma", "matmul a=f16/65535x1x64 b=f16/1x64x16777216" },
  { "cuda", "h200", "mma", "conv_forward x=f16/1x8x1x8/nhwc w=f16/8x8x1x1/nhwc stride=1,1048576 pad=0,0:34359738368" },
  { "cuda", "h200", "units", "pad_backward dy=f16/3000000001 dx=f16/1 pad=3000000000:0" },
  { "onednn", NULL, "matmul", "matmul a=f32/4294967296x16 b=f32/16x16" },
  { "onednn", NULL, "direct_conv", "conv_backward_filter x=f32/1x2x5x6 dy=f32/1x4294967296x5x6 pad=1" },
};

/* The second op's operand or result has batch strides that do not merge as the first one's do, which the kernel has as one dim. */
static const struct { const char *model, *engine, *problem; } followed[] = {
  { "h200", "wgmma_3xtf32",
    "in a f32/2x1x4x16x16 | in b f32/2x1x4x16x16 | in r f32/1x1x4x16x16 | y0 = matmul a=a b=b | out y = add a=y0 b=r" },
  { "h200", "mma", "in a f32/2x1x4x16x16 | in b f32/2x1x4x16x16 | in r f32/1x1x4x16x16 | y0 = matmul a=a b=b | out y = add a=y0 b=r" },
  { "h200", "mma", "in a f32/2x3x16x16 | in b f32/2x3x16x16 | y0 = matmul a=a b=b | out y = relu x=y0 y=f32/2x3x16x16/1024:256:16:1" },
};

typedef struct asked { const char *engine; bool seen, refused; uint32_t n_ops; } asked;

static void look(void *user, const qn_verdict *v)
{
  asked *a = user;
  if (strcmp(v->engine, a->engine)) return;
  a->seen = true;
  a->refused = v->status == QN_UNSUPPORTED && v->answer && *v->answer->refusal.rule;
  a->n_ops = v->status || !v->answer ? 0 : v->answer->n_ops;
}

static void leave_to_others(void)
{
  for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
    asked a = { beyond[i].engine, false, false, 0 };
    char backend[32];
    const char *const options[] = { backend, NULL };
    snprintf(backend, sizeof backend, "backend=%s", beyond[i].backend);
    qn_graph *graph;
    if (!tap_ok(!qn_graph_parse(beyond[i].problem, &graph), "parsed: %s", beyond[i].problem)) continue;
    if (qn_explain(options, beyond[i].model, graph, look, &a) == QN_NO_BACKEND)
      tap_skip("this backend is not built", "%s", beyond[i].problem);
    else tap_ok(a.seen && a.refused, "not %s/%s on %s: %s", beyond[i].backend, beyond[i].engine,
                beyond[i].model ? beyond[i].model : "this device", beyond[i].problem);
    qn_graph_destroy(graph);
  }
  static const char *const options[] = { "backend=cuda", NULL };
  for (size_t i = 0; i < sizeof followed / sizeof *followed; i++) {
    asked a = { followed[i].engine, false, false, 0 };
    qn_graph *graph;
    if (!tap_ok(!qn_graph_parse(followed[i].problem, &graph), "parsed: %s", followed[i].problem)) continue;
    if (qn_explain(options, followed[i].model, graph, look, &a) == QN_NO_BACKEND)
      tap_skip("this backend is not built", "%s", followed[i].problem);
    else tap_ok(a.n_ops == 1, "cuda/%s on %s takes the first op alone: %s", followed[i].engine, followed[i].model, followed[i].problem);
    qn_graph_destroy(graph);
  }
}

/* ---- with bits independent of the batch required, no figure that depends on the batch may decide ------------------------------------- */

static void note_chosen(void *user, const qn_verdict *v)
{
  if (v->chosen) *(const char **)user = v->engine;
}

/* The engine and its variant: another tile would be another order. */
static void note_variant(void *user, const qn_verdict *v)
{
  if (v->chosen) snprintf(user, 64, "%s:%s", v->engine, v->answer->variant ? v->answer->variant : "");
}

static void whatever_the_batch(void)
{
  static const char *const options[] = { "backend=cuda", "deterministic=batch", NULL }, *const models[] = { "h200", "a100" };
  static const char *const problems[] = {
    "conv_forward x=bf16/%dx64x28x28/nhwc w=bf16/64x1x7x7/nhwc groups=64 pad=3", "matmul a=bf16/%dx768 b=bf16/768x3072",
    "matmul a=f32/%dx768 b=f32/768x3072", "matmul a=i8/%dx768 b=i8/768x3072", "matmul a=bf16/%dx765 b=bf16/765x3071",
    "conv_forward x=f16/%dx64x28x28/nhwc w=f16/128x64x3x3/nhwc pad=1", "conv_forward x=f16/%dx60x28x28 w=f16/128x60x3x3 pad=1",
    "conv_forward x=f32/%dx64x28x28 w=f32/128x64x3x3 pad=1", "conv_backward_data dy=f16/%dx64x28x28/nhwc w=f16/64x32x3x3/nhwc pad=1" };
  for (size_t p = 0; p < 2 * sizeof problems / sizeof *problems; p++) {
    char engine[2][64] = { "", "" };
    for (int i = 0; i < 2; i++) {
      char problem[160];
      qn_graph *graph;
      snprintf(problem, sizeof problem, problems[p / 2], i ? 256 : 1);
      if (!tap_ok(!qn_graph_parse(problem, &graph), "parsed: %s", problem)) continue;
      qn_status status = qn_explain(options, models[p % 2], graph, note_variant, engine[i]);
      qn_graph_destroy(graph);
      if (status == QN_NO_BACKEND) {
        tap_skip("this backend is not built", "%s", problem);
        return;
      }
    }
    tap_ok(*engine[0] && !strcmp(engine[0], engine[1]) && strncmp(engine[0], "direct", 6), "deterministic=batch on %s: one goes to %s, 256 to %s: %s",
           models[p % 2], engine[0], engine[1], problems[p / 2]);
  }
}

/* ---- nor may a feature that the device lacks, with bits independent of the device required ------------------------------------------- */

static void whatever_the_device(void)
{
  static const char *const options[] = { "backend=cuda", "deterministic=portable", NULL }, *const models[] = { "h200", "a100", "t4" };
  static const char *const problems[] = { "conv_forward x=f32/1x3x8x8 w=f32/5x3x3x3 pad=1",
                                          "conv_forward x=f32/1x6x8x8 w=f32/6x1x3x3 pad=1 groups=6",
                                          "conv_backward_data dy=bf16/1x8x8x8/nhwc w=bf16/8x1x5x5/nhwc dx=bf16/1x8x8x8/nhwc pad=2 groups=8",
                                          "pool_average x=f32/1x2x40x2000 window=7 stride=2", "lrn x=f32/2x12000x3x3/nhwc size=31" };
  for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
    const char *engine[3] = { "", "", "" };
    qn_graph *graph;
    qn_status status = QN_OK;
    if (!tap_ok(!qn_graph_parse(problems[i], &graph), "parsed: %s", problems[i])) continue;
    for (int m = 0; m < 3 && status != QN_NO_BACKEND; m++) status = qn_explain(options, models[m], graph, note_chosen, &engine[m]);
    qn_graph_destroy(graph);
    if (status == QN_NO_BACKEND) tap_skip("this backend is not built", "%s", problems[i]);
    else tap_ok(*engine[0] && !strcmp(engine[0], engine[1]) && !strcmp(engine[0], engine[2]),
                "deterministic=portable: h200 %s, a100 %s, t4 %s: %s", engine[0], engine[1], engine[2], problems[i]);
  }
}

int main(void)
{
  glob_t files;
  char pattern[512];
  const char *source = getenv("srcdir");
  snprintf(pattern, sizeof pattern, "%s/conformance/cases/*.q", source ? source : ".");
  qn_set_log(quiet, NULL);
  if (!tap_ok(!glob(pattern, 0, NULL, &files), "case files are found")) return 1;
  for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
    char option[64];
    const char *const options[] = { option, NULL }, *model = devices[d].model, *what = model ? model : "this machine";
    tally t = { 0 };
    qn_graph *one;
    snprintf(option, sizeof option, "backend=%s", devices[d].backend);
    if (qn_graph_parse("relu x=f32/4", &one)) return 1;
    qn_status here = qn_explain(options, model, one, ignore, NULL);
    qn_graph_destroy(one);
    if (here == QN_NO_BACKEND) {
      tap_skip("this backend is not built", "%s for %s", devices[d].backend, what);
      continue;
    }
    for (size_t f = 0; f < files.gl_pathc; f++) {
      char *text = text_of(files.gl_pathv[f]);
      if (!text) return 1;
      explain_all(&t, options, model, text, true);
      halve(text);
      explain_all(&t, options, model, text, false);
      free(text);
    }
    tap_ok(t.taken > 0 && !t.partial, "%s for %s: %ld problems, %ld answers, %ld taken, all whole", devices[d].backend, what, t.problems,
           t.answers, t.taken);
    tap_ok(!t.lost, "%s for %s: what was prepared is given back", devices[d].backend, what);
    tap_ok(!t.starved, "%s for %s: memory that runs out is reported and leaves nothing", devices[d].backend, what);
  }
  globfree(&files);
  leave_to_others();
  whatever_the_batch();
  whatever_the_device();
  return tap_done();
}
