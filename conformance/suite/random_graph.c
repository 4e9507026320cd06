/* random_graph.c -- random graphs: fusable ops, values with two readers, intermediates that are outputs too, and outputs over
 * inputs, in combinations that no list of cases covers. Tensors have one shape, or that shape with a dim of 1; sizes are small. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

enum { MOST_INS = 3, MOST_OPS = 8, MOST_VALUES = MOST_INS + 1 + MOST_OPS };

struct shape {
  const char *dims, *weight, *row, *layout;
  const char *contraction, *addend;     /* contraction: of w and what follows, giving the shape; addend: what may be added to its result */
};
static const struct shape shapes[] = {
  {"6x8", "8x8", "1x8", "", "matmul b=w a=", " c="},
  {"2x4x6x6", "4x4x3x3", "1x4x1x1", "", "conv_forward w=w pad=1 x=", NULL},
  {"2x4x6x6", "4x1x3x3", "1x4x1x1", "/nhwc", "conv_forward w=w pad=1 groups=4 x=", NULL},
};

struct value {
  char name[8], text[96];               /* text: its op; empty: an input */
  bool whole;                           /* has the full shape: not a row, not reduced */
  bool elementwise;
  /* derived from a norm, or from one value twice: it cancels, and a bound from sums and norms would be vacuous */
  bool normal;
  int  a, b;                            /* operands of its op; -1: none */
  bool in_turn;                         /* b is read elementwise, where the result is written */
  int  last;                            /* the last op that reads it; -1: none */
  bool lent;
};

struct graph {
  struct qc_dice *dice;
  const struct shape *shape;
  const char *dtype;
  struct value v[MOST_VALUES];          /* inputs, the last of them a row, then results */
  int n_ins, n_values;
  bool weighs;
};

static int roll(struct graph *g, int sides) { return (int)qc_roll(g->dice, sides); }

static int pick(struct graph *g, bool whole)
{
  int i;
  do
    i = roll(g, g->n_values);
  while (whole && !g->v[i].whole);
  return i;
}

static void op_of_one(struct graph *g, struct value *v, const char *a)
{
  static const char *const names[] = {"relu", "abs", "neg", "tanh", "sigmoid"};
  v->elementwise = true;
  if (roll(g, 6) == 0)                  /* the same value again */
    snprintf(v->text, sizeof v->text, "cast x=%s y=%s/%s%s", a, g->dtype, g->shape->dims, g->shape->layout);
  else
    snprintf(v->text, sizeof v->text, "%s x=%s", names[roll(g, 5)], a);
}

static void op_of_two(struct graph *g, struct value *v, const char *a)
{
  static const char *const names[] = {"add", "sub", "mul", "max"};
  const char *name = names[roll(g, 4)];
  v->elementwise = true;
  if (roll(g, 6) == 0) {
    snprintf(v->text, sizeof v->text, "%s a=%s b=0.5", name, a);
    return;
  }
  v->b = pick(g, false);
  v->in_turn = g->v[v->b].whole;
  v->normal |= g->v[v->b].normal || v->b == v->a;
  snprintf(v->text, sizeof v->text, "%s a=%s b=%s", name, a, g->v[v->b].name);
}

static void contraction(struct graph *g, struct value *v, const char *a)
{
  g->weighs = true;
  v->normal = false;
  v->b = g->shape->addend && roll(g, 3) == 0 ? pick(g, true) : -1;
  v->in_turn = true;
  snprintf(v->text, sizeof v->text, "%s%s%s%s", g->shape->contraction, a, v->b < 0 ? "" : g->shape->addend,
           v->b < 0 ? "" : g->v[v->b].name);
}

static void norm(struct graph *g, struct value *v, const char *a)
{
  static const char *const names[] = {"layer_norm", "rms_norm"};
  v->normal = true;
  v->b = roll(g, 3) == 0 ? g->n_ins - 1 : -1;
  snprintf(v->text, sizeof v->text, "%s x=%s%s%s axis=1", names[roll(g, 2)], a, v->b < 0 ? "" : " scale=", v->b < 0 ? "" : g->v[v->b].name);
}

static void reduction(struct graph *g, struct value *v, const char *a)
{
  static const char *const names[] = {"reduce_sum", "reduce_mean", "reduce_max"};
  v->whole = false;
  snprintf(v->text, sizeof v->text, "%s x=%s axis=1", names[roll(g, 3)], a);
}

static void add_op(struct graph *g)
{
  struct value v = {.whole = true, .a = pick(g, true), .b = -1, .last = -1};
  const char *a = g->v[v.a].name;
  const int kind = roll(g, g->v[v.a].normal ? 8 : 10);
  v.normal = g->v[v.a].normal;
  (kind < 3 ? op_of_one : kind < 6 ? op_of_two : kind < 8 ? contraction : kind < 9 ? norm : reduction)(g, &v, a);
  snprintf(v.name, sizeof v.name, "v%d", (g->n_values - g->n_ins) % 1000);
  g->v[v.a].last = g->n_values;
  if (v.b >= 0)
    g->v[v.b].last = g->n_values;
  g->v[g->n_values++] = v;
}

/* An input whose memory output i may take: of its shape, read by no later op, and elementwise by i's own. */
static const char *lender(struct graph *g, int i)
{
  const struct value *out = &g->v[i];
  for (int k = 0; k < g->n_ins; k++) {
    struct value *in = &g->v[k];
    const bool reads = (out->a == k && !out->elementwise) || (out->b == k && !out->in_turn);
    if (in->lent || !in->whole || in->last < 0 || in->last > i || reads)
      continue;
    in->lent = true;
    return in->name;
  }
  return NULL;
}

static void print(struct graph *g, FILE *f)
{
  const struct shape *s = g->shape;
  for (int i = 0; i < g->n_ins; i++)
    if (g->v[i].last >= 0)
      fprintf(f, "in %s %s/%s%s\n", g->v[i].name, g->dtype, g->v[i].whole ? s->dims : s->row, g->v[i].whole ? s->layout : "");
  if (g->weighs)
    fprintf(f, "in w %s/%s%s\n", g->dtype, s->weight, s->layout);
  for (int i = g->n_ins; i < g->n_values; i++) {
    const struct value *v = &g->v[i];
    const bool out = v->last < 0 || roll(g, 4) == 0;
    const char *over = out && v->whole && roll(g, 2) ? lender(g, i) : NULL;
    fprintf(f, "%s%s%s%s = %s\n", out ? "out " : "", v->name, over ? " over " : "", over ? over : "", v->text);
  }
}

char *qc_random_graph(struct qc_dice *dice)
{
  static const char *const dtypes[] = {"f32", "f32", "bf16", "f16"};
  struct graph g = {.dice = dice};
  char *text = NULL;
  size_t bytes;
  FILE *f = open_memstream(&text, &bytes);
  if (!f)
    return NULL;
  g.shape = &shapes[roll(&g, sizeof shapes / sizeof *shapes)];
  g.dtype = dtypes[roll(&g, 4)];
  g.n_ins = g.n_values = 3 + roll(&g, MOST_INS - 1);
  for (int i = 0; i < g.n_ins; i++) {
    g.v[i] = (struct value){.whole = i + 1 < g.n_ins, .a = -1, .b = -1, .last = -1};
    snprintf(g.v[i].name, sizeof g.v[i].name, "i%d", i % 10);
  }
  for (int n = 2 + roll(&g, MOST_OPS - 1); n > 0; n--)
    add_op(&g);
  print(&g, f);
  fclose(f);
  return text;
}
