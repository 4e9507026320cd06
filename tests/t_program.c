/* t_program.c -- program.h: regions read as programs, a reference interpreter of them against the oracle, their text, chains. */
#include <quern/program.h>
#include <quern/tools.h>
#include <stdbool.h>
#include <stdlib.h>
#include "tap.h"

/* ---- the interpreter: one element at a time, as the schema defines each op, rounded to each step's dtype ---------- */

typedef long double wide;
static wide sigmoid(wide x) { return 1 / (1 + expl(-x)); }
static wide normal_below(wide x) { return erfcl(-x / sqrtl(2)) / 2; }
static wide softplus(wide x) { return log1pl(expl(x)); }
static wide tanh_u(wide x) { return tanhl(sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x)); }
static wide floor_mod(wide a, wide b) { return a - b * floorl(a / b); }

static wide tanh_u_slope(wide x)
{
  const wide t = tanh_u(x);
  return (1 - t * t) * sqrtl(2 / acosl(-1)) * (1 + 3 * 0.044715L * x * x);
}

/* The slope at x of an activation whose gradient op that is. */
static wide slope(uint32_t op, wide x, wide p, wide q)
{
  const wide s = sigmoid(x), t = tanhl(softplus(x));
  switch (op) {
  case QN_OP_RELU_BACKWARD:       return x > 0;
  case QN_OP_LEAKY_RELU_BACKWARD: return x > 0 ? 1 : p;
  case QN_OP_ELU_BACKWARD:        return x > 0 ? 1 : p * expl(x);
  case QN_OP_GELU_BACKWARD:       return normal_below(x) + x * expl(-x * x / 2) / sqrtl(2 * acosl(-1));
  case QN_OP_GELU_TANH_BACKWARD:  return (1 + tanh_u(x) + x * tanh_u_slope(x)) / 2;
  case QN_OP_SILU_BACKWARD:       return sigmoid(q * x) * (1 + q * x * (1 - sigmoid(q * x)));
  case QN_OP_SIGMOID_BACKWARD:    return s * (1 - s);
  case QN_OP_TANH_BACKWARD:       return 1 - tanhl(x) * tanhl(x);
  case QN_OP_SOFTPLUS_BACKWARD:   return sigmoid(q * x);
  case QN_OP_HARDSWISH_BACKWARD:  return x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6;
  case QN_OP_MISH_BACKWARD:       return t + x * s * (1 - t * t);
  case QN_OP_CLIP_BACKWARD:       return p < x && x < q;
  default:                        return NAN;
  }
}

/* v: the operands; a normalization's x, mean, var, scale, shift, of which an absent one is NaN. */
static wide of_floats(const qn_program_step *s, const wide *v)
{
  const wide a = v[0], b = v[1], p = s->alpha, q = s->beta;
  switch (s->op) {
  case QN_OP_ADD:          return a + b;
  case QN_OP_SUB:          return a - b;
  case QN_OP_MUL:          return a * b;
  case QN_OP_DIV:          return a / b;
  case QN_OP_MIN:          return fminl(a, b);
  case QN_OP_MAX:          return fmaxl(a, b);
  case QN_OP_POW:          return powl(a, b);
  case QN_OP_EQ:           return a == b;
  case QN_OP_NE:           return a != b;
  case QN_OP_LT:           return a < b;
  case QN_OP_LE:           return a <= b;
  case QN_OP_GT:           return a > b;
  case QN_OP_GE:           return a >= b;
  case QN_OP_SELECT:       return a != 0 ? b : v[2];
  case QN_OP_CAST:         return a;
  case QN_OP_NEG:          return -a;
  case QN_OP_ABS:          return fabsl(a);
  case QN_OP_SIGN:         return (a > 0) - (a < 0);
  case QN_OP_EXP:          return expl(a);
  case QN_OP_LOG:          return logl(a);
  case QN_OP_SQRT:         return sqrtl(a);
  case QN_OP_RSQRT:        return 1 / sqrtl(a);
  case QN_OP_RECIPROCAL:   return 1 / a;
  case QN_OP_ERF:          return erfl(a);
  case QN_OP_SIN:          return sinl(a);
  case QN_OP_COS:          return cosl(a);
  case QN_OP_FLOOR:        return floorl(a);
  case QN_OP_CEIL:         return ceill(a);
  case QN_OP_ROUND:        return rintl(a);
  case QN_OP_TRUNC:        return truncl(a);
  case QN_OP_RELU:         return a > 0 ? a : 0;
  case QN_OP_LEAKY_RELU:   return a > 0 ? a : p * a;
  case QN_OP_ELU:          return a > 0 ? a : p * expm1l(a);
  case QN_OP_GELU:         return a * normal_below(a);
  case QN_OP_GELU_TANH:    return a * (1 + tanh_u(a)) / 2;
  case QN_OP_SILU:         return a * sigmoid(q * a);
  case QN_OP_SIGMOID:      return sigmoid(a);
  case QN_OP_TANH:         return tanhl(a);
  case QN_OP_SOFTPLUS:     return softplus(q * a) / q;
  case QN_OP_HARDSWISH:    return a * fminl(fmaxl(a + 3, 0), 6) / 6;
  case QN_OP_MISH:         return a * tanhl(softplus(a));
  case QN_OP_CLIP:         return fminl(fmaxl(a, p), q);
  case QN_OP_BATCH_NORM_INFERENCE: return (a - b) / sqrtl(v[2] + p) * (isnan(v[3]) ? 1 : v[3]) + (isnan(v[4]) ? 0 : v[4]);
#define QN_FUNCTION(OP, half_ulps, oracle, fast) case QN_OP_##OP: return oracle;
#include <quern/functions.def>
  default:                 return a * slope(s->op, b, p, q);
  }
}

static int64_t of_integers(const qn_program_step *s, const int64_t *v)
{
  const int64_t a = v[0], b = v[1];
  switch (s->op) {
  case QN_OP_LOGICAL_AND:  return a && b;
  case QN_OP_LOGICAL_OR:   return a || b;
  case QN_OP_LOGICAL_NOT:  return !a;
#define QN_INTEGER(OP, expression) case QN_OP_##OP: return expression;
#include <quern/functions.def>
  default: return 0;
  }
}

/* A double as an element of that dtype holds it. */
static double rounded(double x, uint32_t dtype)
{
  double memory;
  qn_store_f64(&memory, dtype, x);
  return qn_load_f64(&memory, dtype);
}

static bool is_whole(const qn_program_step *s)
{
  if (s->op == QN_OP_LOGICAL_AND || s->op == QN_OP_LOGICAL_OR || s->op == QN_OP_LOGICAL_NOT) return true;
  switch (s->op) {
#define QN_INTEGER(OP, expression) case QN_OP_##OP:
#include <quern/functions.def>
    return qn_is_integer(s->in);
  default: return false;
  }
}

/* x: the inputs; v: the results of all steps. */
static void interpret(const qn_program *p, const double *x, double *v)
{
  for (uint32_t k = 0; k < p->n; k++) {
    const qn_program_step *s = &p->step[k];
    wide a[QN_PROGRAM_OPERANDS];
    int64_t whole[QN_PROGRAM_OPERANDS];
    for (int i = 0; i < QN_PROGRAM_OPERANDS; i++) {
      const int at = s->operand[i];
      double now = at == QN_NO_OPERAND ? NAN : at < 0 ? x[~at] : v[at];
      if (at < 0 && at != QN_NO_OPERAND && !p->input[~at].varies && !(s->op == QN_OP_SELECT && i == 0)) now = rounded(now, s->in);
      a[i] = now;
      whole[i] = isnan(now) ? 0 : (int64_t)now;
    }
    v[k] = rounded(is_whole(s) ? (double)of_integers(s, whole) : (double)of_floats(s, a), s->to);
  }
}

/* ---- graphs --------------------------------------------------------------------------------------------------- */

typedef struct problem {
  qn_graph *graph;
  const qn_graph_view *view;
  qn_request request;
  void *memory[64];                       /* of each value */
} problem;

static bool begin(problem *b, const char *lines)
{
  *b = (problem){ 0 };
  if (qn_graph_parse(lines, &b->graph)) {
    tap_note("%s", qn_last_error());
    return false;
  }
  b->view = qn_graph_inspect(b->graph);
  b->request = (qn_request){ .struct_size = sizeof b->request, .op = b->view->op, .n_ops = b->view->n_ops, .value = b->view->value,
                             .n_values = b->view->n_values };
  return b->view->n_values <= 64;
}

static void end(problem *b)
{
  for (int i = 0; i < 64; i++) free(b->memory[i]);
  qn_graph_destroy(b->graph);
}

static uint64_t random_bits(void)
{
  static uint64_t state = 0x853c49e6748fea9bu;
  state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
  return state * 0x2545f4914f6cdd1du;
}

/* Runs the graph on the direct engines. Floats are between least and most. */
static bool run(problem *b, qn_context *ctx, double least, double most)
{
  void *pointer[64];
  qn_plan *plan = NULL;
  for (uint32_t i = 0; i < b->view->n_pointers; i++) {
    const int32_t at = b->view->pointer[i];
    const qn_value *v = &b->view->value[at];
    const int64_t n = qn_elements(v), bytes = qn_kit_bytes(v->dtype);
    char *p = pointer[i] = b->memory[at] = calloc((size_t)(n + 1), (size_t)bytes);
    for (int64_t k = 0; k < n; k++)
      qn_store_f64(p + k * bytes, v->dtype, qn_is_float(v->dtype) ? least + (most - least) * (double)(random_bits() >> 11) * 0x1p-53
                                                                  : (double)(random_bits() >> 60) / (v->dtype == QN_BOOL ? 8 : 1));
  }
  const bool ok = !qn_plan_create(ctx, b->graph, &plan) && !qn_plan_execute(ctx, plan, pointer) && !qn_context_synchronize(ctx);
  if (!ok) tap_note("%s", qn_last_error());
  qn_plan_destroy(plan);
  return ok;
}

/* Element i of the lead, in row-major order, of value `at`. */
static double element(const problem *b, int32_t at, const qn_value *lead, int64_t i)
{
  const qn_value *v = &b->view->value[at];
  int64_t offset = 0;
  if (!b->memory[at]) return b->view->literal[at];
  for (int32_t d = lead->rank - 1; d >= 0; d--) {
    if (v->rank > 0 && v->dim[d] > 1) offset += i % lead->dim[d] * v->stride[d];
    i /= lead->dim[d];
  }
  return qn_load_f64((char *)b->memory[at] + offset * qn_kit_bytes(v->dtype), v->dtype);
}

/* The number of results that differ; -1: nothing could be compared. */
static int differing(const problem *b, const qn_program *p)
{
  const qn_value *lead = &b->view->value[p->step[0].value];
  int wrong = 0, compared = 0;
  for (int64_t i = 0; i < qn_elements(lead); i++) {
    double x[QN_PROGRAM_INPUTS], v[QN_PROGRAM_STEPS];
    for (uint32_t k = 0; k < p->n_inputs; k++) x[k] = element(b, p->input[k].value, lead, i);
    interpret(p, x, v);
    for (uint32_t k = 0; k < p->n; k++) {
      if (!p->step[k].write) continue;
      const double y = element(b, p->step[k].value, lead, i), room = p->step[k].to == QN_F32 ? 0x1p-22 : 0x1p-6;
      compared++;
      if (!(fabs(v[k] - y) <= room * fabs(y) + 0x1p-24) && !(isnan(v[k]) && isnan(y)) && wrong++ == 0)
        tap_note("step %u, element %d: %g, and the oracle says %g", (unsigned)k, (int)i, v[k], y);
    }
  }
  return compared ? wrong : -1;
}

static bool round_trip(const qn_program *p)
{
  static char text[2][16384];
  static qn_program again;
  int line;
  const size_t length = qn_program_print(p, text[0], sizeof text[0]);
  const char *why = qn_program_parse(&again, text[0], &line);
  if (why) tap_note("line %d: %s\n%s", line, why, text[0]);
  if (why || length >= sizeof text[0] || qn_program_print(&again, text[1], sizeof text[1]) != length) return false;
  if (strcmp(text[0], text[1])) return false;
  return again.first == p->first && again.n == p->n && again.n_inputs == p->n_inputs && again.rank == p->rank &&
         !memcmp(again.input, p->input, p->n_inputs * sizeof *p->input) && !memcmp(again.step, p->step, p->n * sizeof *p->step) &&
         qn_program_print(p, text[1], 10) == length && strlen(text[1]) == 9;
}

/* Reads ops `first` ... of the graph, behind the anchor's result if first is 1, and compares with the oracle. */
static void computes(qn_context *ctx, const char *what, const char *lines, uint32_t first, double least, double most)
{
  static qn_program p;
  problem b;
  const char *why = NULL;
  if (!begin(&b, lines) || !run(&b, ctx, least, most)) {
    tap_ok(0, "%s", what);
    return end(&b);
  }
  const qn_node *anchor = &b.request.op[0];
  const uint32_t wanted = b.request.n_ops - first;
  const uint32_t n = qn_program_read(&p, &b.request, first, wanted, first ? anchor->arg[anchor->first[anchor->n_inputs]] : -1, &why);
  const int wrong = n == wanted ? differing(&b, &p) : -1;
  tap_ok(wrong == 0 && !why, "%s: %u step%s as the oracle%s%s", what, (unsigned)n, n == 1 ? "" : "s", why ? ", but then: " : "",
         why ? why : "");
  if (!round_trip(&p)) tap_ok(0, "%s: the same after printing and parsing", what);
  end(&b);
}

/* ---- every function ---------------------------------------------------------------------------------------------- */

static void functions(qn_context *ctx)
{
  for (const qn_program_op *op = qn_program_ops(); op->name; op++) {
    const qn_op_info *info = qn_op_find(op->op);
    char line[256];
    int n = snprintf(line, sizeof line, "%s", op->name);
    if (op->op == QN_OP_BATCH_NORM_INFERENCE) continue;    /* below */
    for (uint32_t i = 0; i < info->n_inputs; i++) {
      const char class_ = qn_op_role(info, i)->class_, *dtype = class_ == 'b' ? "bool" : class_ == 'd' ? "i32" : "f32";
      n += snprintf(line + n, sizeof line - (size_t)n, " %s=%s/4x7", qn_op_role(info, i)->name, dtype);
    }
    if (op->op == QN_OP_CAST) snprintf(line + n, sizeof line - (size_t)n, " y=f16/4x7");
    const bool above_1 = op->op == QN_OP_ACOSH;
    computes(ctx, line, line, 0, above_1 ? 1.1 : 0.05, above_1 ? 4 : 0.95);
    if (strstr(line, "f32") && qn_op_role(info, 0)->holds == QN_HOLDS_ANY && !above_1) computes(ctx, line, line, 0, -0.95, 0.95);
  }
}

/* ---- regions ----------------------------------------------------------------------------------------------------- */

#define MATMUL "in a f32/6x5\nin b f32/5x8\n"
#define NORMED "in x f32/2x3x4x5\nin m f32/1x3x1x1\nin v f32/1x3x1x1\n"

static void regions(qn_context *ctx)
{
  computes(ctx, "bias, gelu and a residual", MATMUL "in c f32/1x8\nin r f32/6x8\nout m = matmul a=a b=b\ns = add a=m b=c\n"
           "t = gelu x=s\nout y = add a=r b=t\n", 1, -1, 1);
  computes(ctx, "a gate that reads the sum twice", MATMUL "out m = matmul a=a b=b\ns = sigmoid x=m\nout y = mul a=m b=s\n", 1, -1, 1);
  computes(ctx, "a DAG with two results", "in a f32/3x4\nin b f32/3x1\nin c f32/1x4\ns = add a=a b=b\nt = mul a=s b=c\nout u = tanh x=s\n"
           "q = mul a=t b=u\nr = sub a=q b=s\nout y = max a=r b=t\n", 0, -2, 2);
  computes(ctx, "a comparison and a choice", "in a f32/3x4\nin b f32/3x4\nc = lt a=a b=b\nd = logical_not x=c\nout e = select c=d a=a b=b\n"
           "out y = select c=c a=e b=2\n", 0, -2, 2);
  computes(ctx, "scalars and attributes", "in a f32/3x4\nin k f32\ns = leaky_relu x=a slope=0.3\nt = mul a=s b=0.7\n"
           "out u = clip x=t min=-0.2 max=0.5\nout y = div a=t b=k\n", 0, 0.1, 2);
  computes(ctx, "a cast between", "in a f32/3x40\nin b f16/3x40\ns = cast x=a y=f16/3x40\nt = add a=s b=b\n"
           "out y = cast x=t y=f32/3x40\n", 0, -1, 1);
  computes(ctx, "through an integer", "in a f32/3x40\ns = cast x=a y=i8/3x40\nt = cast x=s y=f32/3x40\nout y = sub a=a b=t\n", 0, -9, 9);
  computes(ctx, "a normalization by given statistics", NORMED "in g f32/1x3x1x1\nin h f32/1x3x1x1\ns = relu x=x\n"
           "t = batch_norm_inference x=s mean=m var=v scale=g shift=h eps=0.01\nout y = mul a=t b=x\n", 0, 0.1, 2);
  computes(ctx, "one without scale", NORMED "in h f32/1x3x1x1\ns = abs x=x\n"
           "out y = batch_norm_inference x=s mean=m var=v shift=h\n", 0, 0.1, 2);
}

/* ---- where a program ends, and chains ---------------------------------------------------------------------------- */

static void ends(const char *what, const char *lines, uint32_t first, uint32_t wanted, const char *reason)
{
  static qn_program p;
  problem b;
  const char *why = NULL;
  const bool ok = begin(&b, lines);
  const qn_node *op = b.request.op;
  const int32_t given = ok && first ? op->arg[op->first[op->n_inputs]] : -1;
  const uint32_t n = !ok ? 0 : qn_program_read(&p, &b.request, first, b.request.n_ops - first, given, &why);
  tap_ok(ok && n == wanted && why && strstr(why, reason), "%s ends a program after %u: %s", what, (unsigned)n,
         why ? why : "nothing says why");
  end(&b);
}

/* The steps of a region behind a matmul that are links of a chain, and why the next is none. */
static void chain(const char *what, const char *lines, uint32_t wanted, const char *reason)
{
  static qn_program p;
  problem b;
  char text[512];
  const char *why = NULL;
  uint32_t k = 0;
  qn_program_link link;
  snprintf(text, sizeof text, MATMUL "%sm = matmul a=a b=b\n%s", strstr(lines, "=c") ? "in c f32/6x8\n" : "", lines);
  const bool ok = begin(&b, text);
  const uint32_t n = !ok ? 0 : qn_program_read(&p, &b.request, 1, b.request.n_ops - 1, b.request.op[0].arg[2], &why);
  while (k < n && !(why = qn_program_link_of(&p, k, &link))) k++;
  tap_ok(ok && k == wanted && (reason ? why && strstr(why, reason) : !why), "%s: %u of %u steps are a chain%s%s", what, (unsigned)k,
         (unsigned)n, why ? ", then: " : "", why ? why : "");
  end(&b);
}

/* The graph backwards: its last op is the anchor, before which the others compute. */
static void prologue(qn_context *ctx, const char *what, const char *lines, const char *reason, bool sum, bool write)
{
  static qn_program p;
  static qn_node op[8];
  static qn_value value[64];
  problem b;
  int32_t term[2] = { -1, -1 };
  const bool ok = begin(&b, lines) && run(&b, ctx, -1, 1) && b.request.n_ops <= 8;
  const uint32_t last = ok ? b.request.n_ops - 1 : 0;
  qn_request r = b.request;
  for (uint32_t v = 0; ok && v < r.n_values; v++) {
    value[v] = r.value[v];
    value[v].producer = r.value[v].producer < 0 ? -1 : (int32_t)last - r.value[v].producer;
    value[v].last_user = -1;
  }
  for (uint32_t k = 0; ok && k <= last; k++) {
    op[k] = r.op[last - k];
    for (int32_t a = 0; a < op[k].first[op[k].n_inputs]; a++) value[op[k].arg[a]].last_user = (int32_t)k;
  }
  r.op = op;
  r.value = value;
  const char *why = ok ? qn_program_read_before(&p, &r, 1, last, op[0].arg[0]) : "no graph";
  const bool right = !why && p.n == last && qn_program_is_sum(&p, &r, term) == sum && p.step[last - 1].write == write &&
                     (!sum || (term[0] >= 0 && term[1] >= 0 && term[0] != term[1])) && (!write || differing(&b, &p) == 0) && round_trip(&p);
  tap_ok(reason ? why && strstr(why, reason) : right,
         "%s before the anchor%s%s", what, why ? ": " : "", why ? why : "");
  end(&b);
}

static void limits(void)
{
  ends("a reduction", "in a f32/3x4\ns = relu x=a\nt = reduce_sum x=s axis=1\nout y = exp x=t\n", 0, 1, "not pointwise");
  ends("another shape", "in a f32/3x1\nin b f32/3x4\ns = relu x=a\nout y = add a=s b=b\n", 0, 1, "other dims");
  ends("another result of the anchor",
       "in x f32/3x4\nn = layer_norm x=x mean=m axis=1\ns = relu x=n\nout y = mul a=s b=m\n", 1, 1, "another result");
  chain("a chain", "s = mul a=c b=m\nt = tanh x=s\nout y = sub a=c b=t\n", 3, NULL);
  chain("a gate", "s = sigmoid x=m\nout y = mul a=m b=s\n", 0, "elsewhere");
  chain("a square", "s = tanh x=m\nout y = mul a=s b=s\n", 1, "twice");
  chain("a result in between", "out s = tanh x=m\nout y = add a=s b=c\n", 1, "elsewhere");
  chain("a second branch", "s = tanh x=m\nt = relu x=c\nout y = add a=s b=t\n", 1, "elsewhere");
  chain("a choice", "s = gt a=m b=c\nout y = select c=s a=c b=c\n", 1, "three operands");
}

/* What the first steps alone must write, and read last. */
static void cuts(void)
{
  static qn_program p;
  problem b;
  const char *why;
  const bool ok = begin(&b, "in a f32/3x4\nin b f32/3x4\ns = relu x=a\nt = add a=s b=b\nout y = mul a=s b=t\n");
  const uint32_t n = !ok ? 0 : qn_program_read(&p, &b.request, 0, 3, -1, &why);
  tap_ok(n == 3 && !p.step[0].write && !p.step[1].write && p.step[2].write && p.step[0].last == 2 && p.n_inputs == 2,
         "three steps write one result");
  qn_program_cut(&p, &b.request, 2);
  tap_ok(p.n == 2 && p.step[0].write && p.step[1].write && p.step[0].last == 1 && p.n_inputs == 2, "the first two of them write two");
  qn_program_cut(&p, &b.request, 1);
  tap_ok(p.n == 1 && p.step[0].write && p.step[0].last == -1 && p.n_inputs == 1, "and the first has one input");
  end(&b);
}

/* ---- text --------------------------------------------------------------------------------------------------------- */

static void refused(const char *text, int wanted, const char *reason)
{
  static qn_program p;
  int line = 0;
  const char *why = qn_program_parse(&p, text, &line);
  tap_ok(why && line == wanted && strstr(why, reason), "line %d: %s", line, why ? why : "it was accepted");
}

#define HEAD "program rank 2 from 0\n"
#define INPUT "x0 = tensor f32 11 value 0\n"
static void texts(void)
{
  static qn_program p;
  int line;
  tap_ok(!qn_program_parse(&p, HEAD INPUT "v0 = relu x0 in f32 to f32 value 1 write\n", &line) && p.n == 1 && p.n_inputs == 1 &&
         p.input[0].last == 0, "a program from text");
  tap_ok(!qn_program_parse(&p, HEAD INPUT "v0 = clip x0 in f32 to f32 value 1 alpha -inf beta 2.5 write", &line) &&
         p.step[0].alpha == -INFINITY && p.step[0].beta == 2.5 && round_trip(&p), "with an infinity");
  refused("", 1, "program rank");
  refused("program rank 9 from 0\n", 1, "program rank");
  refused("program rank 2 from 0 x\n", 1, "program rank");
  refused(HEAD "x1 = tensor f32 11 value 0\n", 2, "must be the next");
  refused(HEAD INPUT "\n", 3, "must be the next");
  refused(HEAD "x0 tensor f32 11 value 0\n", 2, "a name, =");
  refused(HEAD "x0 = thing f32 11 value 0\n", 2, "tensor or host");
  refused(HEAD INPUT "x1 = given f32 11 value 1\n", 3, "tensor or host");
  refused(HEAD "x0 = tensor f99 11 value 0\n", 2, "not a dtype");
  refused(HEAD "x0 = tensor f32 110 value 0\n", 2, "for each dim");
  refused(HEAD "x0 = tensor f32 12 value 0\n", 2, "for each dim");
  refused(HEAD "x0 = tensor f32 11 value -1\n", 2, "value and its number");
  refused(HEAD "x0 = tensor f32 11 value nan\n", 2, "value and its number");
  refused(HEAD INPUT "v0 = relu x-0 in f32 to f32 value 1\n", 3, "an input or an earlier step");
  refused(HEAD "x0 = tensor f32 - value 0 known 1\n", 2, "known 0 or 1");
  refused(HEAD "x0 = tensor f32 11 value 0 more\n", 2, "after the end");
  refused(HEAD INPUT "v0 = matmul x0 x0 in f32 to f32 value 1\n", 3, "not a kind");
  refused(HEAD INPUT "v0 = add x0 in f32 to f32 value 1\n", 3, "an input or an earlier step");
  refused(HEAD INPUT "v0 = add x0 x1 in f32 to f32 value 1\n", 3, "an input or an earlier step");
  refused(HEAD INPUT "v0 = add x0 v0 in f32 to f32 value 1\n", 3, "an input or an earlier step");
  refused(HEAD INPUT "v0 = add x0 - in f32 to f32 value 1\n", 3, "an input or an earlier step");
  refused(HEAD INPUT "v0 = relu x0 to f32 value 1\n", 3, "computes");
  refused(HEAD INPUT "v0 = relu x0 in f32 value 1\n", 3, "result's dtype");
  refused(HEAD INPUT "v0 = relu x0 in f32 to f32\n", 3, "value and its number");
  refused(HEAD INPUT "v0 = elu x0 in f32 to f32 value 1 alpha x\n", 3, "alpha");
  refused(HEAD INPUT "v0 = relu x0 in f32 to f32 value 1\nx1 = tensor f32 11 value 2\n", 4, "must be the next");
}

/* Any byte of a text changed: it is refused, or is another program, which prints and parses as such. */
static void mutations(void)
{
  static const char text[] = "program rank 2 before 3\nx0 = given bf16 11 value 4 write\nx1 = host f64 - value 12 known 1\n"
                             "v0 = mul x0 x1 in bf16 to bf16 value 6\n"
                             "v1 = batch_norm_inference v0 x1 x0 - - in f32 to f32 value 7 alpha 0.25\n"
                             "v2 = clip v1 in f32 to i8 value 10 alpha -1e3 beta inf exact write\n";
  static const char others[] = "\n -=019xvn.";
  static qn_program p;
  char changed[sizeof text];
  int line, refused_ = 0, accepted = 0, wrong = 0;
  for (size_t i = 0; i + 1 < sizeof text; i++)
    for (const char *c = others; *c; c++) {
      memcpy(changed, text, sizeof text);
      changed[i] = *c;
      const bool taken = !qn_program_parse(&p, changed, &line);
      refused_ += !taken, accepted += taken, wrong += taken && !round_trip(&p);
    }
  tap_ok(!wrong && refused_ > 1000 && accepted > 100,
         "of texts with one byte changed %d are refused, %d are read as they are written, %d not", refused_, accepted, wrong);
}

int main(void)
{
  static char pins[8192] = "engine=matmul=direct,softmax=direct";
  for (const qn_program_op *op = qn_program_ops(); op->name; op++)
    snprintf(pins + strlen(pins), sizeof pins - strlen(pins), ",%s=direct", op->name);
  const char *const options[] = { "backend=cpu_ref", pins, "tune=off", NULL };
  qn_context *ctx = NULL;
  if (qn_context_create(options, &ctx)) {
    tap_ok(0, "a context of direct engines: %s", qn_last_error());
    return tap_done();
  }
  functions(ctx);
  regions(ctx);
  prologue(ctx, "a sum", "in a f32/3x4\nin b f32/3x4\ns = add a=a b=b\nout y = softmax x=s\n", NULL, true, false);
  prologue(ctx, "a sum that is a result, too,", "in a f32/3x4\nin b f32/3x4\nout s = add a=a b=b\nout y = softmax x=s\n", NULL, true, true);
  prologue(ctx, "a row added", "in a f32/3x4\nin b f32/1x4\nout s = add a=a b=b\nout y = softmax x=s\n", NULL, false, true);
  prologue(ctx, "a gate",
           "in a f32/3x4\nin b f32/3x4\nt = sigmoid x=a\nu = mul a=t b=b\nout s = sub a=u b=t\nout y = softmax x=s\n", NULL, false, true);
  prologue(ctx, "a matmul", "in a f32/4x4\nt = matmul a=a b=a\ns = relu x=t\nout y = softmax x=s\n", "not pointwise", false, false);
  prologue(ctx, "another operand",
           "in a f32/4x4\nin b f32/4x4\ns = tanh x=a\nt = relu x=b\nout y = matmul a=s b=t\n", "another operand", false, false);
  limits();
  cuts();
  texts();
  mutations();
  qn_context_destroy(ctx);
  return tap_done();
}
