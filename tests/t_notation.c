/* t_notation.c -- the problem line: printed text reads back as the same graph, for every op; any bytes give a graph or an
 * error with a position; the examples of docs/problem-lines.md behave as described. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core.h"
#include "problems.h"
#include "tap.h"

enum { TEXT = 1 << 16 };

/* ---- comparing graphs --------------------------------------------------------------------- */

static bool same_value(const qn_value *a, const qn_value *b, const int32_t *map)
{
  return a->dtype == b->dtype && a->rank == b->rank && !memcmp(a->dim, b->dim, sizeof a->dim)
      && !memcmp(a->stride, b->stride, sizeof a->stride) && a->align == b->align && a->flags == b->flags
      && a->producer == b->producer && a->last_user == b->last_user && a->scalar == b->scalar
      && (a->over < 0 ? b->over < 0 : map[a->over] == b->over);
}

/* Compares except for the numbering of values; returns the name of the first argument that differs. */
static const char *difference(const qn_graph *g, const qn_graph *h)
{
  const qn_graph_view *a = qn_graph_inspect(g), *b = qn_graph_inspect(h);
  if (g->single != h->single) return "one is a single op, the other not";
  if (a->n_ops != b->n_ops || a->n_values != b->n_values || a->n_pointers != b->n_pointers || a->n_ins != b->n_ins)
    return "counts";
  int32_t map[256];
  if (a->n_values > 256) return "too large for this test";
  for (uint32_t i = 0; i < a->n_values; i++) map[i] = -1;
  for (uint32_t i = 0; i < a->n_pointers; i++) map[a->pointer[i]] = b->pointer[i];
  for (uint32_t o = 0; o < a->n_ops; o++) {
    const qn_node *m = &a->op[o], *n = &b->op[o];
    const qn_op_info *op = qn_op_find(m->op);
    if (m->op != n->op || m->family != n->family || m->n_roles != n->n_roles || m->n_inputs != n->n_inputs) return "op";
    if (memcmp(m->first, n->first, (op->n_roles + 1) * sizeof *m->first)) return "arguments' counts";
    if (op->attr_bytes && memcmp(m->attr, n->attr, op->attr_bytes)) return "attributes";
    for (int32_t k = 0; k < m->first[op->n_roles]; k++) {
      if (map[m->arg[k]] < 0) map[m->arg[k]] = n->arg[k];
      if (map[m->arg[k]] != n->arg[k]) return "arguments";
    }
  }
  for (uint32_t i = 0; i < a->n_values; i++) {
    if (map[i] < 0) return "a value without a use";
    if (!same_value(&a->value[i], &b->value[map[i]], map)) return "a value";
    if (memcmp(&a->literal[i], &b->literal[map[i]], sizeof(double))) return "a number";
    if (a->name[i][0] && strcmp(a->name[i], b->name[map[i]])) return "a name";
  }
  return NULL;
}

static char text[TEXT], again[TEXT];

/* Parses g's line and prints it again; NULL if both agree. */
static const char *round_trip(const qn_graph *g)
{
  size_t length = qn_graph_print(g, text, sizeof text);
  if (!length || length != strlen(text) || strchr(text, '\n')) return "its line is not one line";
  qn_graph *h;
  if (qn_graph_parse(text, &h)) return qn_last_error();
  const char *why = difference(g, h);
  qn_graph_print(h, again, sizeof again);
  if (!why && strcmp(text, again)) why = again;
  qn_graph_destroy(h);
  return why;
}

/* ---- every op, random problems ------------------------------------------------------------ */

static void test_ops(void)
{
  for (int i = 0; qn_op_at(i); i++) {
    const qn_op_info *op = qn_op_at(i);
    rng r = { 1000u + op->kind };
    const char *why = NULL;
    int made = 0;
    for (int n = 0; n < 400 && !why; n++) {
      problem p;
      problem_random(&r, op, &p);
      qn_graph *g;
      if (qn_graph_make(&p.view, &g)) {
        snprintf(text, sizeof text, "problem %d", n);
        why = qn_last_error();
        break;
      }
      made++;
      why = round_trip(g);
      qn_graph_destroy(g);
    }
    if (!tap_ok(!why, "%s: %d random problems read back as printed", op->name, made)) tap_note("%s: %s", text, why);
  }
}

/* ---- random graphs ------------------------------------------------------------------------ */

/* A graph of pointwise ops, with some pooling with indices, over values of one shape. */
typedef struct random_graph {
  qn_graph_view view;
  qn_node   op[12];
  qn_value  value[64];
  const char *name[64];
  double    literal[64];
  int32_t   pointer[64], first[12][QN_MAX_ROLES + 1], arg[12][8];
  qn_pool   pool[12];
} random_graph;

static void build_graph(rng *r, random_graph *g)
{
  static const char *const names[] = { "x", "y", "v1", "_v2", "theta", "in0", "relu", "y0", "nhwc", "t" };
  static const uint32_t unary[] = { QN_OP_RELU, QN_OP_EXP, QN_OP_NEG, QN_OP_SIGMOID },
      binary[] = { QN_OP_ADD, QN_OP_MUL, QN_OP_RELU_BACKWARD };
  memset(g, 0, sizeof *g);
  bool named = rng_below(r, 3);
  int64_t dim[4] = { 2, 3, 4, 5 };
  int n = rng_in(r, 1, 3), ins = n, ops = rng_in(r, 1, 10), outs = 0;
  int32_t full[64], n_full = 0, out[64];
  for (int i = 0; i < n; i++) {
    qn_value *v = &g->value[i];
    *v = (qn_value){ .dtype = QN_F32, .rank = 4, .over = -1, .align = rng_below(r, 3) ? 16 : 4 };
    memcpy(v->dim, dim, sizeof dim);
    problem_strides(r, v, 0);
    g->pointer[i] = full[n_full++] = i;
  }
  int n_ops = 0, read_by_last[64];
  memset(read_by_last, -1, sizeof read_by_last);
  for (int o = 0; o < ops; o++) {
    int32_t *arg = g->arg[o], n_args = 0;
    bool pool = rng_below(r, 6) == 0, two = rng_below(r, 2);
    uint32_t kind = pool ? QN_OP_POOL_MAX : two ? binary[rng_below(r, 3)] : unary[rng_below(r, 4)];
    const qn_op_info *op = qn_op_find(kind);
    for (uint32_t i = 0; i < op->n_inputs; i++) {
      g->first[o][i] = n_args;
      if (i && rng_below(r, 4) == 0) {          /* a literal */
        g->value[n] = (qn_value){ .dtype = QN_F64, .over = -1, .flags = QN_VALUE_HOST };
        g->literal[n] = rng_below(r, 4) / 3.0;
        arg[n_args++] = n++;
      } else {
        arg[n_args] = o == 0 && i == 0 ? 0 : full[rng_below(r, n_full)];
        read_by_last[arg[n_args]] = o;
        n_args++;
      }
    }
    for (uint32_t i = op->n_inputs; i < op->n_roles; i++) {
      g->first[o][i] = n_args;
      if (i > op->n_inputs && rng_below(r, 2)) continue;
      g->value[n] = (qn_value){ .rank = -1, .over = -1 };
      if (rng_below(r, 3) == 0 && i == op->n_inputs && !pool) {  /* given, maybe not as it would be inferred */
        qn_value *v = &g->value[n];
        *v = (qn_value){ .dtype = QN_BF16, .rank = 4, .over = -1 };
        memcpy(v->dim, dim, sizeof dim);
        problem_strides(r, v, 0);
      } else if (i > op->n_inputs && rng_below(r, 2)) {
        qn_value *v = &g->value[n];
        *v = (qn_value){ .dtype = QN_I64, .rank = 4, .over = -1 };
        memcpy(v->dim, dim, sizeof dim);
        problem_strides(r, v, 0);
      }
      if (i == op->n_inputs) full[n_full++] = n;
      if (rng_below(r, 3) == 0 || o == ops - 1) out[outs++] = n;
      arg[n_args++] = n++;
    }
    g->first[o][op->n_roles] = n_args;
    g->pool[o] = (qn_pool)QN_POOL_INIT;
    g->pool[o].window[0] = g->pool[o].window[1] = 1;
    g->op[o] = (qn_node){ .op = kind, .n_roles = op->n_roles, .attr = pool ? &g->pool[o] : NULL, .first = g->first[o], .arg = arg };
    n_ops++;
  }
  for (int i = 1; i < ins; i++)                 /* inputs must be read: if by no other op, by the last */
    if (read_by_last[i] < 0) {
      int32_t *arg = g->arg[n_ops], y = n++;
      arg[0] = i;
      arg[1] = y;
      g->first[n_ops][1] = 1;
      g->first[n_ops][2] = 2;
      g->value[y] = (qn_value){ .rank = -1, .over = -1 };
      g->op[n_ops] = (qn_node){ .op = QN_OP_ABS, .n_roles = 2, .first = g->first[n_ops], .arg = arg };
      n_ops++;
      out[outs++] = y;
    }
  for (int i = outs - 1; i > 0; i--) {
    int k = rng_below(r, i + 1);
    int32_t t = out[i];
    out[i] = out[k];
    out[k] = t;
  }
  for (int i = 0; i < outs; i++) g->pointer[ins + i] = out[i];
  for (int i = 0; i < n; i++) g->name[i] = named && i < 10 ? names[i] : NULL;
  g->view = (qn_graph_view){ .struct_size = sizeof g->view, .n_ops = (uint32_t)n_ops, .n_values = (uint32_t)n,
    .n_pointers = (uint32_t)(ins + outs), .n_ins = (uint32_t)ins, .op = g->op, .value = g->value, .name = g->name,
    .literal = g->literal, .pointer = g->pointer };
}

static void test_graphs(void)
{
  rng r = { 7 };
  const char *why = NULL;
  int n = 0, in_place = 0;
  for (; n < 3000 && !why; n++) {
    random_graph build;
    build_graph(&r, &build);
    qn_graph *g;
    if (qn_graph_make(&build.view, &g)) {
      text[0] = 0;
      why = qn_last_error();
      break;
    }
    why = round_trip(g);
    /* an output over an input, where the graph allows it */
    const qn_graph_view *v = qn_graph_inspect(g);
    if (!why && v->n_pointers > v->n_ins) {
      int32_t out = v->pointer[v->n_ins + (uint32_t)rng_below(&r, (int)(v->n_pointers - v->n_ins))];
      random_graph placed = build;
      placed.view = build.view;
      placed.value[out] = placed.value[0];
      placed.value[out].over = 0;
      for (int o = 0; o < 12; o++) if (placed.op[o].attr) placed.op[o].attr = &placed.pool[o];
      placed.view.value = placed.value;
      qn_graph *h;
      if (!qn_graph_make(&placed.view, &h)) {
        why = round_trip(h);
        in_place++;
        qn_graph_destroy(h);
      }
    }
    qn_graph_destroy(g);
  }
  if (!tap_ok(!why, "%d random graphs read back as printed", n)) tap_note("%s: %s", text, why);
  tap_ok(in_place > 200, "%d of them with an output over an input", in_place);
}

/* ---- canonical text ----------------------------------------------------------------------- */

/* A long chain: names resolve, near and far; a name used before is refused; and parsing takes much less than quadratic time. */
static void test_names(void)
{
  enum { N = 60000, LINE = 40 };
  char *lines = malloc((N + 3) * LINE), *at = lines;
  qn_graph *g = NULL, *none = NULL;
  const clock_t begin = clock();
  at += sprintf(at, "in a f32/16\nv0 = relu x=a\n");
  for (int i = 1; i < N; i++) at += sprintf(at, "v%d = add a=v%d b=v%d\n", i, i - 1, i / 2);
  const char *end = at;
  at += sprintf(at, "out y = add a=v%d b=a\n", N - 1);
  bool right = !qn_graph_parse(lines, &g) && qn_graph_inspect(g)->n_ops == N + 1;
  const qn_graph_view *v = right ? qn_graph_inspect(g) : NULL;
  for (uint32_t i = 0; right && i < v->n_ops; i++) {
    const qn_node *op = &v->op[i];
    right = i == 0 || i == N || (!strcmp(v->name[op->arg[0]], v->name[v->op[i - 1].arg[v->op[i - 1].first[v->op[i - 1].n_inputs]]])
                                 && atoi(v->name[op->arg[1]] + 1) == (int)i / 2);
  }
  tap_ok(right && (double)(clock() - begin) / CLOCKS_PER_SEC < 8, "a graph of %d names", N);
  strcpy(lines + (end - lines), "out v7 = neg x=a\n");
  tap_ok(qn_graph_parse(lines, &none) == QN_SYNTAX && strstr(qn_last_error(), "\"v7\" is taken"), "%s", qn_last_error());
  qn_graph_destroy(g);
  free(lines);
}

static void test_canonical(void)
{
  static const struct { const char *from, *to; } lines[] = {
    { "conv_forward w=f32/8x3x3x3 pad=1,1 stride=1 x=f32/2x3x8x8/nchw groups=1", "conv_forward x=f32/2x3x8x8 w=f32/8x3x3x3 pad=1" },
    { "conv_forward x=f32/2x3x8x8/192:1:24:3 w=f32/8x3x3x3/nchw pad=0:1,1", "conv_forward x=f32/2x3x8x8/nhwc w=f32/8x3x3x3 pad=0:1,1" },
    { "matmul a=f32/4x5/1:4 b=f32/5x6@16 alpha=1.0 y=f32/4x6", "matmul a=f32/4x5/t b=f32/5x6 alpha=1" },
    { "matmul a=bf16/4x5 b=bf16/5x6 y=f32/4x6 alpha=f32", "matmul a=bf16/4x5 b=bf16/5x6 alpha=f32 y=f32/4x6" },
    { "matmul a=f32/4x5 b=f32/5x6 c=f32/4x6 alpha=.5 beta=2e0 y=c", "matmul a=f32/4x5 b=f32/5x6 c=f32/4x6 alpha=0.5 beta=2 y=c" },
    { "relu x=f32/4x5/9:1@8 y=x", "relu x=f32/4x5/9:1@8 y=x" },
    { "softmax x=f32/2x3x4 axis=2", "softmax x=f32/2x3x4" },
    { "softmax x=f32/2x3x4 axis=-1", "softmax x=f32/2x3x4" },
    { "reduce_sum x=f32/2x3 axis=-2,1", "reduce_sum x=f32/2x3" },
    { "reduce_sum x=f32/2x3 axis=-2", "reduce_sum x=f32/2x3 axis=0" },
    { "pool_max x=f32/1x1x8x6 window=8,6 stride=8,6", "pool_max x=f32/1x1x8x6" },
    { "pool_max x=f32/1x1x8x6 window=2 stride=2 indices=?", "pool_max x=f32/1x1x8x6 indices=? window=2" },
    { "pool_max x=f32/1x1x8x6 window=2 stride=2 indices=i64/1x1x4x3", "pool_max x=f32/1x1x8x6 indices=i64/1x1x4x3 window=2" },
    { "slice x=i8/9x9 start=0,3 length=9,3 step=1,2", "slice x=i8/9x9 start=0,3 step=1,2" },
    { "pad x=f32/2 pad=1:0 value=inf", "pad x=f32/2 pad=1:0 value=inf" },
    { "concat x=[f32/2x3,f32/2x4/t] axis=1", "concat x=[f32/2x3,f32/2x4/t]" },
    { "clip x=f32/3 min=-inf max=+6.0", "clip x=f32/3 max=6" },
    { "select c=1.0 a=f32/3 b=0", "select c=1 a=f32/3 b=0" },
    { "in x bool/3 | out y = logical_or a=x b=0", "in x bool/3 | out y = logical_or a=x b=0" },
    { "add a=f32/0x4/7:9 b=-0.1", "add a=f32/0x4 b=-0.1" },
    { "# nothing\n\n  relu\tx=f32/3   # and a comment", "relu x=f32/3" },
    { "in x f32/3 # declared\n# between\nin w f32/1/nchw\n", NULL },
    { "in x f32/3 # declared\n# between\n y=relu x=x  \nout z =relu x=y; seed=3", "in x f32/3 | y = relu x=x | out z = relu x=y" },
    { "in a f32/3 | in b f32/3 | p = add a=a b=b | q = mul a=p b=2 | out q | out p",
      "in a f32/3 | in b f32/3 | p = add a=a b=b | out q = mul a=p b=2 | out p" },
    { "in m f32/3/nchw", NULL },
    { "in m f32/3 | in g f32/3 | t = mul a=m b=0.9 | out m1 over m = add a=t b=g",
      "in m f32/3 | in g f32/3 | t = mul a=m b=0.9 | out m1 over m = add a=t b=g" },
    { "in x f32/1x1x4x4 | y = pool_max x=x window=2 indices=i | out z = pool_max_backward dy=y indices=i dx=f32/1x1x4x4 window=2 | out i",
      "in x f32/1x1x4x4 | y = pool_max x=x indices=i window=2 | out z = pool_max_backward dy=y indices=i window=2 | out i" },
  };
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    qn_graph *g;
    qn_status status = qn_graph_parse(lines[i].from, &g);
    if (!lines[i].to) {
      tap_ok(status != QN_OK && !g, "refused: %s", qn_last_error());
      continue;
    }
    text[0] = 0;
    if (!status) qn_graph_print(g, text, sizeof text);
    if (!tap_ok(!status && !strcmp(text, lines[i].to), "canonical: %s", lines[i].to)) tap_note("%s", status ? qn_last_error() : text);
    qn_graph_destroy(g);
  }
}

static void test_buffer(void)
{
  qn_graph *g;
  char small[8];
  if (!tap_ok(!qn_graph_parse("relu x=f32/3", &g), "a line parses")) return;
  memset(small, 'z', sizeof small);
  tap_ok(qn_graph_print(g, small, 5) == 12 && !strcmp(small, "relu") && small[5] == 'z', "a short buffer holds what fits");
  tap_ok(qn_graph_print(g, NULL, 0) == 12, "no buffer gives the length");
  tap_ok(qn_graph_pointers(g) == 2 && qn_graph_index(g, "x") == 0 && qn_graph_index(g, "y") == 1 && qn_graph_index(g, "z") == -1,
         "a single op's pointers are found by role");
  qn_graph_destroy(g);
  if (!tap_ok(!qn_graph_parse("in b f32/3 | in a f32/3 | t = add a=a b=b | out y = mul a=t b=2 | out t", &g), "a graph parses")) return;
  tap_ok(qn_graph_pointers(g) == 4 && qn_graph_index(g, "a") == 1 && qn_graph_index(g, "y") == 2 && qn_graph_index(g, "t") == 3
         && qn_graph_index(g, "") == -1, "a graph's are found by name");
  qn_graph_destroy(g);
}

/* ---- any bytes ---------------------------------------------------------------------------- */

static const char *const seeds[] = {
  "conv_forward x=bf16/64x64x56x56/nhwc w=bf16/64x64x3x3/nhwc bias=f32/64 pad=1:2,0 stride=2,1 dilation=1 groups=1",
  "matmul a=f32/5x12x10/120:1:12 b=f32/1x10x7@4 c=f32/5x12x7 alpha=0.5 beta=f32 y=c ; seed=7 fill=int3",
  "pool_max x=f16/1x2x8x9 window=3,2 stride=2 pad=0:1,1 ceil_mode=1 indices=u8/1x2x4x5",
  "concat x=[i64/2x3,i64/2x5] axis=-1",
  "cross_entropy x=f32/4x5 labels=i64/4x1 ignore=-9223372036854775808",
  "reduce_prod x=i8/2x3x4 axis=0,-1 y=i32/1x3x1",
  "pad x=e4m3/3x3 pad=1:0,2 value=-1e-3",
  "in x bf16/4x4\nin p f32/4x4\nt = mul a=x b=0.125\nout p2 over p = add a=p b=t\nout u = softmax x=p2 axis=0\nout t ; k=v",
  "in x f32/1x1x4x4 | y = pool_max x=x indices=i:i64/1x1x2x2 window=2 | out i | out y",
};

static void test_any_bytes(void)
{
  static const char letters[] = "=/:x,@?|;#[] \n\t0123456789-+.efnhwctinoutover_\x01\xff";
  rng r = { 99 };
  const char *why = NULL;
  int n = 0, good = 0;
  char line[512], kept[512] = "";
  for (; n < 60000 && !why; n++) {
    const char *seed = seeds[rng_below(&r, (int)(sizeof seeds / sizeof seeds[0]))];
    size_t length = strlen(seed);
    memcpy(line, seed, length + 1);
    for (int k = rng_in(&r, 1, 4); k > 0; k--) {
      size_t at = (size_t)rng_below(&r, (int)length);
      char c = letters[rng_below(&r, (int)sizeof letters - 1)];
      switch (rng_below(&r, 4)) {
      case 0: line[at] = c; break;
      case 1: memmove(line + at + 1, line + at, length - at + 1); line[at] = c; length++; break;
      case 2: if (length > 1) memmove(line + at, line + at + 1, length - at), length--; break;
      default: {
        size_t from = (size_t)rng_below(&r, (int)length), bytes = (size_t)rng_below(&r, 9);
        if (from + bytes <= length && at + bytes <= length) memmove(line + at, line + from, bytes);
      } }
    }
    strcpy(kept, line);
    qn_graph *g;
    qn_status status = qn_graph_parse(line, &g);
    if (!status) {
      good++;
      why = round_trip(g);
    } else if (g || (status != QN_SYNTAX && status != QN_BAD_ARGUMENT))
      why = qn_last_error();
    else if (!strstr(qn_last_error(), "line ") || (status == QN_SYNTAX && !strstr(qn_last_error(), "column ")))
      why = "a sentence without a place";
    qn_graph_destroy(g);
  }
  if (!tap_ok(!why, "%d mutated lines give a graph (%d) that reads back or a sentence with its place", n, good))
    tap_note("%s\n# %s: %s", kept, text, why);
}

/* ---- the reader --------------------------------------------------------------------------- */

static void test_reader(void)
{
  static const char file[] =
    "# workloads\r\n"
    "relu x=f32/4   ; seed=7  fill=int3 \r\n"
    "\n"
    "in x f32/4\n"
    "# a comment does not end it\n"
    "out y = relu x=x ; a=1\n"
    "\n"
    "nonsense\n"
    "abs x=f32/5 # last of its kind\n"
    "in x f32/4 | out y = exp x=x\n"
    "neg x=f32/6\n"
    "in x f32/4\n"
    "out y = wrong x=x\n"
    "out z = relu x=x\n"
    "\n"
    "   \n"
    "log x=f32/7";
  static const struct { int line; const char *text, *settings; } want[] = {
    { 2, "relu x=f32/4", "seed=7  fill=int3" }, { 4, "in x f32/4 | out y = relu x=x", "a=1" }, { 8, NULL, "" },
    { 9, "abs x=f32/5", "" }, { 10, "in x f32/4 | out y = exp x=x", "" }, { 11, "neg x=f32/6", "" }, { 12, NULL, "" },
    { 17, "log x=f32/7", "" },
  };
  qn_reader *reader;
  if (!tap_ok(!qn_reader_text(file, &reader), "a reader opens")) return;
  qn_graph *g;
  const char *settings;
  int line;
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
    qn_status status = qn_reader_next(reader, &g, &settings, &line);
    text[0] = 0;
    if (g) qn_graph_print(g, text, sizeof text);
    bool right = line == want[i].line && !strcmp(settings, want[i].settings)
              && (want[i].text ? !status && !strcmp(text, want[i].text) : status == QN_SYNTAX && !g);
    if (!tap_ok(right, "the reader's problem %zu", i)) tap_note("line %d: %s {%s} %s", line, text, settings, status ? qn_last_error() : "");
    qn_graph_destroy(g);
  }
  tap_ok(!qn_reader_next(reader, &g, &settings, &line) && !g, "then the end");
  tap_ok(!qn_reader_next(reader, &g, &settings, &line) && !g, "and the end again");
  qn_reader_close(reader);
  tap_ok(qn_reader_open("/nonexistent/file.q", &reader) == QN_SYSTEM && !reader && strstr(qn_last_error(), "/nonexistent/file.q"),
         "a file that is not there: %s", qn_last_error());
}

/* ---- docs/problem-lines.md ---------------------------------------------------------------- */

/* Blocks that begin ```q hold problems; ```q-error ones that must be refused. */
static void test_page(void)
{
  char path[4096];
  const char *srcdir = getenv("srcdir");
  snprintf(path, sizeof path, "%s/docs/problem-lines.md", srcdir ? srcdir : ".");
  FILE *file = fopen(path, "r");
  if (!tap_ok(file != NULL, "%s opens", path)) return;
  static char block[TEXT];
  char line[1024];
  int inside = 0, blocks = 0, start = 0, n = 0;
  size_t used = 0;
  while (fgets(line, sizeof line, file)) {
    n++;
    if (!inside && !strncmp(line, "```q", 4)) {
      inside = strncmp(line, "```q-error", 10) ? 1 : 2;
      used = 0;
      start = n;
    } else if (inside && !strncmp(line, "```", 3)) {
      block[used] = 0;
      qn_reader *reader;
      if (qn_reader_text(block, &reader)) break;
      int problems = 0, wrong = 0;
      for (;;) {
        qn_graph *g;
        int at;
        qn_status status = qn_reader_next(reader, &g, NULL, &at);
        if (!status && !g) break;
        problems++;
        const char *why = status ? qn_last_error() : round_trip(g);
        if (inside == 1 ? why != NULL : !status) {
          wrong++;
          tap_note("line %d: %s", start + at, why ? why : "is not refused");
        }
        qn_graph_destroy(g);
      }
      tap_ok(problems && !wrong, "docs/problem-lines.md, line %d: %d problems %s", start, problems,
             inside == 1 ? "read back" : "are refused");
      qn_reader_close(reader);
      blocks++;
      inside = 0;
    } else if (inside && used + strlen(line) < sizeof block) {
      strcpy(block + used, line);
      used += strlen(line);
    }
  }
  fclose(file);
  tap_ok(blocks >= 8, "the page has %d blocks of examples", blocks);
}

/* ---- memory and locale -------------------------------------------------------------------- */

static void test_memory(void)
{
  const char *why = NULL;
  int failures = 0;
  for (size_t i = 0; i < sizeof seeds / sizeof seeds[0] && !why; i++)
    for (long n = 1; n < 1000 && !why; n++) {
      qn_graph *g;
      atomic_store(&qn__fail_alloc_at, n);
      qn_status status = qn_graph_parse(seeds[i], &g);
      bool failed = atomic_load(&qn__fail_alloc_at) <= 0;
      atomic_store(&qn__fail_alloc_at, 0);
      if (!failed) {
        if (status) why = qn_last_error();
        else for (long m = 1; m < 100; m++) {   /* allocations of the printer too */
          atomic_store(&qn__fail_alloc_at, m);
          size_t length = qn_graph_print(g, text, sizeof text);
          bool hit = atomic_load(&qn__fail_alloc_at) <= 0;
          atomic_store(&qn__fail_alloc_at, 0);
          if (hit && (length || text[0])) why = "half a line was printed";
          if (!hit) break;
        }
        qn_graph_destroy(g);
        break;
      }
      failures++;
      if (status != QN_NO_MEMORY || g) why = "a failed allocation passed";
      qn_graph_destroy(g);
    }
  if (!tap_ok(!why && failures > 20, "each of %d failed allocations is NO_MEMORY", failures)) tap_note("%s", why ? why : "too few");
}

static void test_locale(void)
{
  static const char *const commas[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE", "fr_FR", "cs_CZ.UTF-8" };
  const char *line = "matmul a=f32/3x4 b=f32/4x5 alpha=0.125";
  bool found = false;
  for (size_t i = 0; i < sizeof commas / sizeof commas[0] && !found; i++) found = setlocale(LC_ALL, commas[i]);
  if (!found) {
    tap_skip("no locale with a decimal comma is installed", "numbers under another locale");
    return;
  }
  qn_graph *g;
  bool right = !qn_graph_parse(line, &g) && qn_graph_inspect(g)->literal[2] == 0.125;
  if (right) qn_graph_print(g, text, sizeof text);
  tap_ok(right && !strcmp(text, line), "numbers under a decimal comma: %s", text);
  qn_graph_destroy(g);
  setlocale(LC_ALL, "C");
}

int main(void)
{
  test_ops();
  test_graphs();
  test_names();
  test_canonical();
  test_buffer();
  test_any_bytes();
  test_reader();
  test_page();
  test_memory();
  test_locale();
  return tap_done();
}
