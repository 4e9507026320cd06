/* program.h -- pointwise work as a program, for kernels that compute it on the way: an epilogue, a prologue, a region of pointwise ops.
 *
 *   x0, x1 ...   inputs: an element of a tensor, broadcast to the program's dims; a host scalar; the number that the kernel has at hand
 *                (given: a sum before it is stored)
 *   v0, v1 ...   steps: v = op(operands). op: a pointwise kind of the schema, or normalization by given statistics. An operand is an input
 *                or an earlier step, which may be read many times: a program is a DAG. One step for each op of the region, in its order.
 *
 *   qn_program_read         makes one of a region's ops: where it ends and why is decided here alone
 *   qn_program_read_before  the same of the ops that make an operand of the anchor: a prologue
 *   qn_program_cut          keeps its first steps: an engine that takes fewer ops, which changes what must be written
 *   qn_program_link_of      how a step continues a chain, and qn_program_is_sum: for kernels that know no other programs
 *   qn_program_print        as lines, and qn_program_parse reads them: to log and to compare (tests do); no engine compiles from them yet
 *
 * Rounding. A step computes in the dtype `in`, that of its tensors, to which scalars and attributes are converted first. `to` is the
 * dtype of its result's tensor. What is written is rounded to it. A step that reads the result may see more digits, also behind a cast;
 * but of what is not f64, f32, f16 or bf16 it sees that dtype's number (`exact`). Static inlines; C99 and C++, host code. */
#ifndef QUERN_PROGRAM_H
#define QUERN_PROGRAM_H
#include <quern/kit.h>
#ifdef __cplusplus
extern "C" {
#endif

enum { QN_PROGRAM_STEPS = QN_MAX_OPS, QN_PROGRAM_INPUTS = 64, QN_PROGRAM_OPERANDS = 5 };
enum { QN_INPUT_TENSOR, QN_INPUT_HOST, QN_INPUT_GIVEN };

/* An operand: the number of a step; of an input, as ~number; or QN_NO_OPERAND. */
enum { QN_NO_OPERAND = INT16_MIN };

typedef struct qn_program_input {
  uint32_t dtype, kind;                   /* QN_INPUT_... */
  uint32_t varies;                        /* bit d: along dim d of the program; 0: one element for all */
  uint32_t known;                         /* QN_SCALAR_...: of a host scalar */
  int32_t  value;                         /* its number in the request */
  int32_t  last;                          /* the last step that reads it */
  int32_t  write;                         /* 1: the given number must also be written */
} qn_program_input;

typedef struct qn_program_step {
  uint32_t op, in, to;                    /* QN_OP_...; dtypes */
  int32_t  value;                         /* the result's number in the request */
  int32_t  last;                          /* the last step that reads the result; -1: none */
  int16_t  operand[QN_PROGRAM_OPERANDS];  /* in the schema's order of inputs */
  int16_t  write, exact;                  /* 1: the result must be written; steps that read it see it in dtype `to` */
  double   alpha, beta;                   /* as qn_pointwise; alpha of a normalization: eps */
} qn_program_step;

typedef struct qn_program {
  uint32_t first, n, n_inputs;            /* step k is op first + k of the region */
  int32_t  rank, before;                  /* before: 1: a prologue, whose step k is op first + n - 1 - k: the last makes the operand */
  qn_program_input input[QN_PROGRAM_INPUTS];        /* in the order of first use; the given one is the first */
  qn_program_step  step[QN_PROGRAM_STEPS];
} qn_program;

/* ---- operands ------------------------------------------------------------------------------ */

/* The number in the request of an operand; -1: none. */
static inline int32_t qn_program_value(const qn_program *p, int operand)
{
  return operand == QN_NO_OPERAND ? -1 : operand < 0 ? p->input[~operand].value : p->step[operand].value;
}
static inline int32_t qn_program_last(const qn_program *p, int operand)
{
  return operand < 0 ? p->input[~operand].last : p->step[operand].last;
}
static inline uint32_t qn_program_dtype(const qn_program *p, int operand)
{
  return operand < 0 ? p->input[~operand].dtype : p->step[operand].to;
}

/* The op of the region that is step k. */
static inline uint32_t qn_program_op_of(const qn_program *p, uint32_t k) { return p->before ? p->first + p->n - 1 - k : p->first + k; }

/* ---- from a region ------------------------------------------------------------------------- */

/* The input for that value, added if new; QN_NO_OPERAND: no room. */
static inline int qn_program_add_input(qn_program *p, const qn_request *r, int32_t value, uint32_t kind)
{
  const qn_value *v = &r->value[value];
  for (uint32_t i = 0; i < p->n_inputs; i++)
    if (p->input[i].value == value) return ~(int)i;
  if (p->n_inputs == QN_PROGRAM_INPUTS) return QN_NO_OPERAND;
  qn_program_input *x = &p->input[p->n_inputs];
  memset(x, 0, sizeof *x);
  x->dtype = v->dtype;
  x->kind = v->flags & QN_VALUE_HOST ? (uint32_t)QN_INPUT_HOST : kind;
  for (int32_t d = 0; d < v->rank; d++) x->varies |= (uint32_t)(v->dim[d] > 1) << d;
  x->known = v->scalar;
  x->value = value;
  x->last = -1;
  return ~(int)p->n_inputs++;
}

/* The dtype in which an op computes: its tensors'; scalars adapt to it, and if all operands are scalars to the result. */
static inline uint32_t qn_program_computing(const qn_request *r, const qn_node *op, const qn_value *y)
{
  uint32_t widest = QN_DTYPE_NONE;
  for (int32_t k = op->op == QN_OP_SELECT; k < op->first[op->n_inputs]; k++) {
    const qn_value *x = &r->value[op->arg[k]];
    if (x->rank > 0) return x->dtype;
    if (widest == QN_DTYPE_NONE || x->dtype == QN_F64 || !qn_is_float(widest)) widest = x->dtype;
  }
  return y->dtype == QN_BOOL || op->op == QN_OP_CAST ? widest : y->dtype;
}

/* What is read last where, and what must be written, if the program is its first n steps. (A prologue: all of them.) */
static inline void qn_program_cut(qn_program *p, const qn_request *r, uint32_t n)
{
  const int32_t last = (int32_t)(p->first + n) - 1;
  p->n = n;
  for (uint32_t i = 0; i < p->n_inputs; i++) p->input[i].last = -1;
  for (uint32_t k = 0; k < n; k++) {
    qn_program_step *s = &p->step[k];
    const qn_value *y = &r->value[s->value];
    s->last = -1;
    s->write = y->flags & QN_VALUE_ESCAPE || y->last_user < 0 || y->last_user > (p->before ? y->producer : last);
    for (int i = 0; i < QN_PROGRAM_OPERANDS; i++) {
      const int at = s->operand[i];
      if (at >= 0) p->step[at].last = (int32_t)k;
      else if (at != QN_NO_OPERAND) p->input[~at].last = (int32_t)k;
    }
  }
  while (p->n_inputs && p->input[p->n_inputs - 1].last < 0 && p->input[p->n_inputs - 1].kind != QN_INPUT_GIVEN) p->n_inputs--;
  if (p->n_inputs && p->input[0].kind == QN_INPUT_GIVEN) {
    const qn_value *y = &r->value[p->input[0].value];
    p->input[0].write = y->flags & QN_VALUE_ESCAPE || y->last_user > last;
  }
}

/* Adds an operand of an op to step k; NULL, or why not. */
static inline const char *qn_program_add_operand(qn_program *p, const qn_request *r, uint32_t k, int i, int32_t value)
{
  const int32_t producer = r->value[value].producer, first = (int32_t)p->first;
  const int32_t maker = p->before ? first + (int32_t)p->n - 1 - producer : producer - first;
  int at = (int)maker;
  if (r->value[value].flags & QN_VALUE_VIEW) return "an op that reads a result through a view";
  if (producer < 0 || (p->n_inputs && p->input[0].kind == QN_INPUT_GIVEN && p->input[0].value == value))
    at = qn_program_add_input(p, r, value, QN_INPUT_TENSOR);
  else if (maker < 0 || maker >= (int32_t)k) return "an op that reads another result of the region";
  if (at == QN_NO_OPERAND) return "more inputs than a program has";
  p->step[k].operand[i] = (int16_t)at;
  return NULL;
}

/* NULL, or who has read the value before a step makes it. */
static inline const char *qn_program_reader(const qn_program *p, const qn_request *r, int32_t value)
{
  for (uint32_t k = 0; k < p->first && !p->before; k++)
    for (int32_t a = 0; a < r->op[k].first[r->op[k].n_inputs]; a++)
      if (r->op[k].arg[a] == value) return "an op that the anchor reads";
  for (uint32_t i = 0; i < p->n_inputs; i++)
    if (p->input[i].value == value) return "an op that an earlier one reads";
  return NULL;
}

/* Makes an op of the region step k; NULL, or why not. */
static inline const char *qn_program_add_op(qn_program *p, const qn_request *r, uint32_t k, const qn_value *lead)
{
  const qn_node *op = &r->op[qn_program_op_of(p, k)];
  qn_program_step *s = &p->step[k];
  const int norm = op->op == QN_OP_BATCH_NORM_INFERENCE;
  const char *why = NULL;
  if (!norm && op->family != QN_FAMILY_POINTWISE) return "an op that is not pointwise";
  const qn_norm_roles role = qn_norm_roles_of(norm ? op->op : 0);
  const int32_t y = norm ? qn_role_at(op, role.y) : op->arg[op->first[op->n_inputs]];
  if (!qn_same_dims(&r->value[y], lead)) return "an output of other dims than the first";
  if ((why = qn_program_reader(p, r, y))) return why;
  memset(s, 0, sizeof *s);
  for (int i = 0; i < QN_PROGRAM_OPERANDS; i++) s->operand[i] = QN_NO_OPERAND;
  s->op = op->op;
  s->to = r->value[y].dtype;
  s->value = y;
  if (norm) {
    const int8_t part[QN_PROGRAM_OPERANDS] = { role.x, role.mean, role.var, role.scale, role.shift };
    for (int i = 0; i < QN_PROGRAM_OPERANDS && !why; i++)
      if (qn_role_at(op, part[i]) >= 0) why = qn_program_add_operand(p, r, k, i, qn_role_at(op, part[i]));
    s->in = r->value[qn_role_at(op, role.x)].dtype;
    s->alpha = ((const qn_norm *)op->attr)->eps;
    return why;
  }
  for (int32_t i = 0; i < op->first[op->n_inputs] && !why; i++)
    why = i < QN_PROGRAM_OPERANDS ? qn_program_add_operand(p, r, k, i, op->arg[i]) : "an op of more operands than a step has";
  s->in = qn_program_computing(r, op, &r->value[y]);
  s->exact = s->to != QN_F64 && s->to != QN_F32 && s->to != QN_F16 && s->to != QN_BF16;
  if (op->attr) {
    s->alpha = ((const qn_pointwise *)op->attr)->alpha;
    s->beta = ((const qn_pointwise *)op->attr)->beta;
  }
  return why;
}

/* Makes a program of ops first, first + 1, ... of the region, at most n. given: a value that an op before these makes and whose elements
 * the kernel passes; the program has its dims. -1: none, and the dims are those of the first op's result. Returns how many ops it took,
 * from the front; if not all n, *why says what stopped it. */
static inline uint32_t qn_program_read(qn_program *p, const qn_request *r, uint32_t first, uint32_t n, int32_t given, const char **why)
{
  uint32_t k = 0;
  *why = NULL;
  p->first = first;
  p->n = p->n_inputs = 0;
  p->rank = p->before = 0;
  if (given >= 0) qn_program_add_input(p, r, given, QN_INPUT_GIVEN);
  const qn_value *lead = given >= 0 ? &r->value[given] : NULL;
  for (; k < n && !*why; k++) {
    const qn_node *op = &r->op[first + k];
    if (!lead) lead = &r->value[op->arg[op->first[op->n_inputs]]];
    if ((*why = k < QN_PROGRAM_STEPS ? qn_program_add_op(p, r, k, lead) : "more ops than a program has steps")) break;
  }
  if (lead) p->rank = lead->rank;
  qn_program_cut(p, r, k);
  return k;
}

/* Makes a program of ops first to first + n - 1, all of which make, nearest first, `result`, which the anchor reads. NULL, or why not. */
static inline const char *qn_program_read_before(qn_program *p, const qn_request *r, uint32_t first, uint32_t n, int32_t result)
{
  const char *why = NULL;
  p->first = first;
  p->n = n;
  p->n_inputs = 0;
  p->rank = r->value[result].rank;
  p->before = 1;
  if (n > QN_PROGRAM_STEPS) return "more ops than a program has steps";
  for (uint32_t k = 0; k < n && !why; k++) why = qn_program_add_op(p, r, k, &r->value[result]);
  if (why) return why;
  qn_program_cut(p, r, n);
  for (uint32_t k = 0; k + 1 < n; k++)
    if (p->step[k].last < 0) return "an op that makes another operand";
  return p->step[n - 1].value == result ? NULL : "an op that makes another operand";
}

/* ---- chains and sums, for kernels that know no other programs ------------------------------- */

/* Step k as a link of a chain: its result follows from the one before (of the first, from the given number) and at most one input. */
typedef struct qn_program_link {
  int other;                              /* the input, or QN_NO_OPERAND */
  int reversed;                           /* 1: the input is the first operand */
} qn_program_link;

/* NULL, or why the step is no such link. A normalization is one, though it reads more. */
static inline const char *qn_program_link_of(const qn_program *p, uint32_t k, qn_program_link *link)
{
  const qn_program_step *s = &p->step[k];
  const int before = k ? (int)k - 1 : ~0;
  const int last = qn_program_last(p, before), write = k ? p->step[k - 1].write : p->input[0].write;
  link->other = QN_NO_OPERAND;
  link->reversed = 0;
  if (write || last != (int32_t)k) return "a result that is needed elsewhere, too";
  if (s->op == QN_OP_BATCH_NORM_INFERENCE) return s->operand[0] == before ? NULL : "a normalization of something else";
  if (s->operand[2] != QN_NO_OPERAND) return "an op of three operands";
  if (s->operand[0] == s->operand[1]) return "an op that reads one number twice";
  link->reversed = s->operand[1] == before;
  link->other = s->operand[!link->reversed];
  return link->other >= 0 ? "an op that reads two results" : NULL;
}

/* Is the program a sum of two tensors that lie as it does and have its dtype? term: their numbers in the request. */
static inline int qn_program_is_sum(const qn_program *p, const qn_request *r, int32_t term[2])
{
  const qn_program_step *s = &p->step[0];
  if (p->n != 1 || s->op != QN_OP_ADD || s->operand[0] >= 0 || s->operand[1] >= 0) return 0;
  for (int i = 0; i < 2; i++) {
    term[i] = qn_program_value(p, s->operand[i]);
    if (r->value[term[i]].dtype != s->to || !qn_same_layout(&r->value[term[i]], &r->value[s->value])) return 0;
  }
  return 1;
}

/* ---- as lines ------------------------------------------------------------------------------
 *
 *   program rank 2 from 1                         (before: of a prologue)
 *   x0 = given f32 11 value 4                     varies along both dims
 *   x1 = tensor bf16 01 value 3
 *   x2 = host f32 - value 5 known 1               - : one element
 *   v0 = add x0 x1 in f32 to bf16 value 6
 *   v1 = leaky_relu v0 in f32 to bf16 value 7 alpha 0.01 write
 */

typedef struct qn_program_op { const char *name; uint32_t op; int32_t operands; } qn_program_op;

/* The kinds of steps, ended by a NULL name. */
static inline const qn_program_op *qn_program_ops(void)
{
  static const qn_program_op ops[] = {
#define QN_POINTWISE(OP, name, operands) { name, QN_OP_##OP, operands },
#include <quern/pointwise.def>
    { "batch_norm_inference", QN_OP_BATCH_NORM_INFERENCE, QN_PROGRAM_OPERANDS }, { NULL, 0, 0 }
  };
  return ops;
}

typedef struct qn_program_text { char *to; size_t bytes, length; } qn_program_text;
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static inline void qn_program_say(qn_program_text *t, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(t->length < t->bytes ? t->to + t->length : NULL, t->length < t->bytes ? t->bytes - t->length : 0, format, args);
  va_end(args);
  if (n > 0) t->length += (size_t)n;
}

/* As snprintf: returns the length of the whole text, of which at most bytes - 1 characters are stored. */
static inline size_t qn_program_print(const qn_program *p, char *text, size_t bytes)
{
  static const char *const kinds[] = { "tensor", "host", "given" };
  qn_program_text t = { text, bytes, 0 };
  if (bytes) *text = 0;
  qn_program_say(&t, "program rank %d %s %u\n", (int)p->rank, p->before ? "before" : "from", (unsigned)p->first);
  for (uint32_t i = 0; i < p->n_inputs; i++) {
    const qn_program_input *x = &p->input[i];
    qn_program_say(&t, "x%u = %s %s ", (unsigned)i, kinds[x->kind], qn_kit_name(x->dtype));
    for (int32_t d = 0; d < p->rank && x->varies; d++) qn_program_say(&t, "%u", (unsigned)(x->varies >> d & 1));
    qn_program_say(&t, "%s value %d", x->varies ? "" : "-", (int)x->value);
    if (x->known) qn_program_say(&t, " known %d", x->known == QN_SCALAR_ONE);
    qn_program_say(&t, "%s\n", x->write ? " write" : "");
  }
  for (uint32_t k = 0; k < p->n; k++) {
    const qn_program_step *s = &p->step[k];
    const qn_program_op *op = qn_program_ops();
    while (op->name && op->op != s->op) op++;
    qn_program_say(&t, "v%u = %s", (unsigned)k, op->name ? op->name : "?");
    for (int i = 0; i < op->operands; i++) {
      const int at = s->operand[i];
      if (at == QN_NO_OPERAND) qn_program_say(&t, " -");
      else qn_program_say(&t, " %c%d", at < 0 ? 'x' : 'v', at < 0 ? ~at : at);
    }
    qn_program_say(&t, " in %s to %s value %d", qn_kit_name(s->in), qn_kit_name(s->to), (int)s->value);
    if (s->alpha != 0 || 1 / s->alpha < 0) qn_program_say(&t, " alpha %.17g", s->alpha);         /* also -0 */
    if (s->beta != 0 || 1 / s->beta < 0) qn_program_say(&t, " beta %.17g", s->beta);
    qn_program_say(&t, "%s%s\n", s->exact ? " exact" : "", s->write ? " write" : "");
  }
  return t.length;
}

/* The next word of a line; 0: there is none. */
static inline int qn_program_word(const char **at, char word[32])
{
  int n = 0;
  while (**at == ' ') ++*at;
  for (; **at && **at != ' ' && **at != '\n'; ++*at)
    if (n < 31) word[n++] = **at;
  word[n] = 0;
  return n;
}
static inline int qn_program_is(const char **at, const char *wanted)
{
  char word[32];
  const char *from = *at;
  if (qn_program_word(at, word) && !strcmp(word, wanted)) return 1;
  *at = from;
  return 0;
}
static inline int qn_program_number(const char **at, double *x)
{
  char word[32], more;
  return qn_program_word(at, word) && sscanf(word, "%lf%c", x, &more) == 1;
}
static inline int qn_program_whole(const char **at, int32_t *n, int32_t most)
{
  double x;
  if (!qn_program_number(at, &x) || !(x >= 0 && x <= most) || x != (int32_t)x) return 0;
  *n = (int32_t)x;
  return 1;
}
static inline int qn_program_dtype_named(const char **at, uint32_t *dtype)
{
  char word[32];
  if (!qn_program_word(at, word)) return 0;
  for (*dtype = 1; *dtype < QN_DTYPE_COUNT; ++*dtype)
    if (!strcmp(qn_kit_name(*dtype), word)) return 1;
  return 0;
}

static inline const char *qn_program_parse_input(qn_program *p, const char *at)
{
  qn_program_input *x = &p->input[p->n_inputs];
  char word[32];
  memset(x, 0, sizeof *x);
  x->last = -1;
  qn_program_word(&at, word);
  if (!strcmp(word, "given") && p->n_inputs == 0) x->kind = QN_INPUT_GIVEN;
  else if (!strcmp(word, "host")) x->kind = QN_INPUT_HOST;
  else if (strcmp(word, "tensor")) return "an input is tensor or host, the first perhaps given";
  if (!qn_program_dtype_named(&at, &x->dtype)) return "not a dtype";
  qn_program_word(&at, word);
  for (int32_t d = 0; strcmp(word, "-") && d < (int32_t)strlen(word); d++) {
    if ((int32_t)strlen(word) != p->rank || (word[d] != '0' && word[d] != '1')) return "0 or 1 for each dim, or -";
    x->varies |= (uint32_t)(word[d] - '0') << d;
  }
  int32_t known;
  if (!qn_program_is(&at, "value") || !qn_program_whole(&at, &x->value, INT32_MAX)) return "value and its number";
  if (qn_program_is(&at, "known")) {
    if (x->kind != QN_INPUT_HOST || !qn_program_whole(&at, &known, 1)) return "known 0 or 1, of a host scalar";
    x->known = known ? QN_SCALAR_ONE : QN_SCALAR_ZERO;
  }
  x->write = x->kind == QN_INPUT_GIVEN && qn_program_is(&at, "write");
  p->n_inputs++;
  return *at && *at != '\n' ? "something after the end" : NULL;
}

static inline const char *qn_program_parse_step(qn_program *p, const char *at)
{
  qn_program_step *s = &p->step[p->n];
  const qn_program_op *op = qn_program_ops();
  char word[32], kind, more;
  memset(s, 0, sizeof *s);
  s->last = -1;
  qn_program_word(&at, word);
  while (op->name && strcmp(op->name, word)) op++;
  if (!op->name) return "not a kind of step";
  s->op = op->op;
  for (int i = 0; i < QN_PROGRAM_OPERANDS; i++) {
    unsigned number;
    s->operand[i] = QN_NO_OPERAND;
    if (i >= op->operands) continue;
    if (!qn_program_word(&at, word)) return "an operand is missing";
    if (i && op->operands == QN_PROGRAM_OPERANDS && !strcmp(word, "-")) continue;
    if (sscanf(word, "%c%u%c", &kind, &number, &more) != 2 || (kind != 'x' && kind != 'v') || word[1] < '0' || word[1] > '9' ||
        number >= (kind == 'x' ? p->n_inputs : p->n))
      return "an operand is an input or an earlier step";
    s->operand[i] = (int16_t)(kind == 'x' ? ~(int)number : (int)number);
    *(kind == 'x' ? &p->input[number].last : &p->step[number].last) = (int32_t)p->n;
  }
  if (!qn_program_is(&at, "in") || !qn_program_dtype_named(&at, &s->in)) return "in and the dtype in which it computes";
  if (!qn_program_is(&at, "to") || !qn_program_dtype_named(&at, &s->to)) return "to and the result's dtype";
  if (!qn_program_is(&at, "value") || !qn_program_whole(&at, &s->value, INT32_MAX)) return "value and its number";
  if (qn_program_is(&at, "alpha") && !qn_program_number(&at, &s->alpha)) return "alpha and a number";
  if (qn_program_is(&at, "beta") && !qn_program_number(&at, &s->beta)) return "beta and a number";
  s->exact = (int16_t)qn_program_is(&at, "exact");
  s->write = (int16_t)qn_program_is(&at, "write");
  p->n++;
  return *at && *at != '\n' ? "something after the end" : NULL;
}

/* Reads what qn_program_print made. NULL, or what is wrong in line *line (from 1). */
static inline const char *qn_program_parse(qn_program *p, const char *text, int *line)
{
  int32_t first = 0;
  p->n = p->n_inputs = p->first = 0;
  *line = 1;
  if (!qn_program_is(&text, "program") || !qn_program_is(&text, "rank") || !qn_program_whole(&text, &p->rank, QN_MAX_RANK) ||
      (!(p->before = qn_program_is(&text, "before")) && !qn_program_is(&text, "from")) ||
      !qn_program_whole(&text, &first, QN_MAX_OPS) || *text++ != '\n')
    return "program rank RANK from FIRST";
  p->first = (uint32_t)first;
  for (; *text; text += *text == '\n') {
    char name[32], wanted[2][32];
    const char *why = "its name must be the next of x0, x1, ..., and then of v0, v1, ...", *at = text;
    ++*line;
    snprintf(wanted[0], sizeof wanted[0], "x%u", (unsigned)p->n_inputs);
    snprintf(wanted[1], sizeof wanted[1], "v%u", (unsigned)p->n);
    qn_program_word(&at, name);
    const int input = !p->n && !strcmp(name, wanted[0]), step = !strcmp(name, wanted[1]);
    if ((input || step) && !qn_program_is(&at, "=")) why = "a name, = and what it is";
    else if (input) why = p->n_inputs < QN_PROGRAM_INPUTS ? qn_program_parse_input(p, at) : "more inputs than a program has";
    else if (step) why = p->n < QN_PROGRAM_STEPS ? qn_program_parse_step(p, at) : "more steps than a program has";
    if (why) return why;
    while (*text && *text != '\n') text++;
  }
  return NULL;
}

#ifdef __cplusplus
}
#endif
#endif
