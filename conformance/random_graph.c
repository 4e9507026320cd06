/* random_graph.c -- graphs made by chance: what fuses, what two ops read, what is asked for though others read it, and outputs
 * over inputs, as no list of cases has them all. Tensors have one shape, or that shape with a dim of 1; sizes are small. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

enum { MOST_INS = 3, MOST_OPS = 8, MOST_VALUES = MOST_INS + MOST_OPS };

struct shape {
  const char *dims, *weight, *contraction;      /* contraction: of w and what follows, of the same shape */
};
static const struct shape shapes[] = {
  {"6x8", "8x8", "matmul b=w a="},
  {"2x4x6x6", "4x4x3x3", "conv_forward w=w pad=1 x="},
  {"2x4x6x6/nhwc", "4x1x3x3", "conv_forward w=w pad=1 groups=4 x="},
};

struct value {
  char name[8], text[96];               /* text: of its op; empty: an input */
  bool whole;                           /* of the shape itself, not reduced */
  bool elementwise;
  bool normal;                          /* made by a norm: sums of it cancel, so no bound of theirs excludes anything */
  int  a, b;                            /* read by its op; -1: none */
  int  last;                            /* the last op that reads it; -1: none */
  bool lent;
};

struct graph { uint64_t seed, n; const struct shape *shape; struct value v[MOST_VALUES]; int n_ins, n_values; bool weighs; };

static int roll(struct graph *g, int sides) { return (int)(qc_hash(g->seed, 4343, g->n++) % (uint64_t)sides); }

static int pick(struct graph *g, bool whole)
{
  int i;
  do
    i = roll(g, g->n_values);
  while (whole && !g->v[i].whole);
  return i;
}

static void add_op(struct graph *g)
{
  static const char *const one[] = {"relu", "abs", "neg", "tanh", "sigmoid"}, *const two[] = {"add", "sub", "mul", "max"};
  static const char *const norms[] = {"layer_norm", "rms_norm"}, *const sums[] = {"reduce_sum", "reduce_mean", "reduce_max"};
  struct value v = {.whole = true, .a = pick(g, true), .b = -1, .last = -1};
  const char *a = g->v[v.a].name;
  const int kind = roll(g, g->v[v.a].normal ? 9 : 10);
  if (kind < 3) {
    v.elementwise = true;
    snprintf(v.text, sizeof v.text, "%s x=%s", one[roll(g, 5)], a);
  } else if (kind < 6) {
    v.elementwise = true;
    v.b = pick(g, false);
    snprintf(v.text, sizeof v.text, "%s a=%s b=%s", two[roll(g, 4)], a, g->v[v.b].name);
  } else if (kind < 8) {
    snprintf(v.text, sizeof v.text, "%s%s", g->shape->contraction, a);
    g->weighs = true;
  } else if (kind < 9) {
    v.normal = true;
    snprintf(v.text, sizeof v.text, "%s x=%s axis=1", norms[roll(g, 2)], a);
  } else {
    v.whole = false;
    snprintf(v.text, sizeof v.text, "%s x=%s axis=1", sums[roll(g, 3)], a);
  }
  snprintf(v.name, sizeof v.name, "v%d", g->n_values - g->n_ins);
  g->v[v.a].last = g->n_values;
  if (v.b >= 0)
    g->v[v.b].last = g->n_values;
  g->v[g->n_values++] = v;
}

/* An input whose memory the output i may take: of its shape, read by no later op, and by its own only element by element. */
static const char *lender(struct graph *g, int i)
{
  for (int k = 0; k < g->n_ins; k++) {
    struct value *in = &g->v[k];
    const bool reads = g->v[i].a == k || g->v[i].b == k;
    if (in->lent || in->last < 0 || in->last > i || (reads && !g->v[i].elementwise))
      continue;
    in->lent = true;
    return in->name;
  }
  return NULL;
}

static void print(struct graph *g, FILE *f, const char *dtype)
{
  const char *layout = strchr(g->shape->dims, '/');
  for (int i = 0; i < g->n_ins; i++)
    if (g->v[i].last >= 0)
      fprintf(f, "in %s %s/%s\n", g->v[i].name, dtype, g->shape->dims);
  if (g->weighs)
    fprintf(f, "in w %s/%s%s\n", dtype, g->shape->weight, layout ? layout : "");
  for (int i = g->n_ins; i < g->n_values; i++) {
    const struct value *v = &g->v[i];
    const bool out = v->last < 0 || roll(g, 4) == 0;
    const char *over = out && v->whole && roll(g, 2) ? lender(g, i) : NULL;
    fprintf(f, "%s%s%s%s = %s\n", out ? "out " : "", v->name, over ? " over " : "", over ? over : "", v->text);
  }
}

char *qc_random_graph(uint64_t seed)
{
  static const char *const dtypes[] = {"f32", "f32", "bf16", "f16"};
  struct graph g = {.seed = seed};
  char *text = NULL;
  size_t bytes;
  FILE *f = open_memstream(&text, &bytes);
  if (!f)
    return NULL;
  g.shape = &shapes[roll(&g, sizeof shapes / sizeof *shapes)];
  g.n_ins = g.n_values = 2 + roll(&g, MOST_INS - 1);
  for (int i = 0; i < g.n_ins; i++) {
    g.v[i] = (struct value){.whole = true, .a = -1, .b = -1, .last = -1};
    snprintf(g.v[i].name, sizeof g.v[i].name, "i%d", i);
  }
  for (int n = 2 + roll(&g, MOST_OPS - 1); n > 0; n--)
    add_op(&g);
  print(&g, f, dtypes[roll(&g, 4)]);
  fclose(f);
  return text;
}
