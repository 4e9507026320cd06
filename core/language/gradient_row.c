/* gradient_row.c -- reads a row of gradients.def for one op of a graph, and writes its lines with that op's tensors and attributes. */
#include <stdlib.h>
#include <quern/kit.h>
#include "gradient.h"

/* ---- the table ---------------------------------------------------------------------------------- */

#define QN_GRADIENT(OP, ...) static const char *const lines_##OP[] = { __VA_ARGS__, NULL };
#include "gradients.def"
#undef QN_GRADIENT

static const qn__row rows[] = {
#define QN_GRADIENT(OP, ...) { QN_OP_##OP, lines_##OP },
#include "gradients.def"
#undef QN_GRADIENT
};

const qn__row *qn__gradient_row(uint32_t op)
{
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].op == op) return &rows[i];
  return NULL;
}

bool qn__is_flat(const qn__row *row) { return row && !strcmp(row->line[0], "0"); }

/* ---- a line's words ----------------------------------------------------------------------------- */

enum { MAX_WORDS = 12, MAX_LOCALS = 24 };
static const qn__term absent = { QN__ABSENT, 0 };

/* [target =] word { key=value }: the conditions of `where` taken off. */
typedef struct row_line {
  qn__span target, word[MAX_WORDS];       /* word[0]: the op, or what else the line says; then its pairs */
  int      n;
  bool     holds;                         /* what follows `where` is true of the op */
} row_line;

/* An op of the graph whose gradient is being written. */
typedef struct row_work {
  qn__gradient     *g;
  int32_t           index;
  const qn_node    *node;
  const qn_op_info *op;
  const qn__row    *row;
  struct { qn__span name; qn__terms terms; } local[MAX_LOCALS];       /* what lines have made */
  int               n_locals;
} row_work;

static qn__span word_at(const char **p)
{
  while (**p == ' ') ++*p;
  qn__span word = { *p, strcspn(*p, " ") };
  *p += word.n;
  return word;
}

static qn__span text_span(const char *s) { return (qn__span){ s, strlen(s) }; }
static bool alike(qn__span a, qn__span b) { return a.n == b.n && !memcmp(a.s, b.s, a.n); }

/* "d" and a role's name. */
static bool is_gradient_by(qn__span word, const char *role)
{
  return word.n > 1 && word.s[0] == 'd' && qn__same((qn__span){ word.s + 1, word.n - 1 }, role);
}

static bool split(qn__span pair, qn__span *key, qn__span *value)
{
  const char *equals = memchr(pair.s, '=', pair.n);
  if (!equals) return false;
  *key = (qn__span){ pair.s, (size_t)(equals - pair.s) };
  *value = (qn__span){ equals + 1, pair.n - key->n - 1 };
  return true;
}

/* The value that the line gives to that key; n 0: none. */
static qn__span pair_of(const row_line *line, const char *name)
{
  qn__span key, value;
  for (int i = 1; i < line->n; i++)
    if (split(line->word[i], &key, &value) && qn__same(key, name)) return value;
  return (qn__span){ "", 0 };
}

static const qn_attr_info *attr_named(const qn_op_info *op, qn__span name)
{
  for (uint32_t k = 0; k < op->n_attrs; k++)
    if (qn__same(name, op->attr[k].name)) return &op->attr[k];
  return NULL;
}

static int64_t attr_number(const row_work *w, const qn_attr_info *a)
{
  int64_t number;
  memcpy(&number, (const char *)w->node->attr + a->offset, sizeof number);
  return number;
}

/* ATTRIBUTE=WORD|WORD, ATTRIBUTE=NUMBER|NUMBER or ATTRIBUTE=LEAST.. */
static bool holds(const row_work *w, qn__span condition)
{
  qn__span key, value;
  const qn_attr_info *a = split(condition, &key, &value) ? attr_named(w->op, key) : NULL;
  if (!a) return false;
  if (value.n > 2 && value.s[value.n - 1] == '.')
    return attr_number(w, a) >= strtoll(value.s, NULL, 10);
  for (const char *p = value.s, *end = p + value.n; p < end; p++) {
    const char *bar = memchr(p, '|', (size_t)(end - p));
    const size_t n = bar ? (size_t)(bar - p) : (size_t)(end - p);
    if ((a->words ? qn__word_number(a->words, p, n) : strtoll(p, NULL, 10)) == attr_number(w, a)) return true;
    p += n;
  }
  return false;
}

static row_line read_line(const row_work *w, const char *p)
{
  row_line line = { .holds = true };
  for (qn__span word; (word = word_at(&p)).n; ) {
    if (qn__same(word, "=") && line.n == 1) {
      line.target = line.word[0];
      line.n = 0;
    } else if (qn__same(word, "where"))
      line.holds = holds(w, word_at(&p));
    else if (line.n < MAX_WORDS)
      line.word[line.n++] = word;
  }
  return line;
}

/* A line that is a backward op of this one, its operands and results by their names. */
static const qn_op_info *own_backward(const row_work *w, const row_line *line)
{
  const qn_op_info *op = NULL;
  for (int i = 0; i < qn__n_ops && !line->target.n && !op; i++)
    if (qn__same(line->word[0], qn__ops[i].name)) op = &qn__ops[i];
  return op && op->forward == w->op->kind ? op : NULL;
}

static int role_named(const qn_op_info *op, qn__span name)
{
  for (uint32_t r = 0; r < op->n_roles; r++)
    if (qn__same(name, op->role[r].name)) return (int)r;
  return -1;
}

/* Is it the gradient by that output? dy is that by the first, whatever its name. */
static bool is_gradient_of_output(const row_work *w, qn__span word, uint32_t r)
{
  return is_gradient_by(word, w->op->role[r].name) || (r == w->op->n_inputs && qn__same(word, "dy") && role_named(w->op, word) < 0);
}

static int32_t given(const row_work *w, uint32_t r) { return w->node->first[r + 1] - w->node->first[r]; }

/* ---- what the forward half must give ------------------------------------------------------------ */

static void ask(row_work *w, qn__span name)
{
  qn__gradient *g = w->g;
  const int r = role_named(w->op, name);
  if (r < (int)w->op->n_inputs || given(w, (uint32_t)r)) return;
  for (int i = 0; i < g->n_asked; i++)
    if (g->asked[i].op == w->index && g->asked[i].role == (uint32_t)r) return;
  qn__asked *asked = qn__grown(g->asked, g->n_asked, &g->cap_asked, sizeof *asked);
  if (!asked) {
    qn__gradient_fail(g, QN_NO_MEMORY, "no memory for a gradient");
    return;
  }
  g->asked = asked;
  const char *first = g->v->name[w->node->arg[w->node->first[w->op->n_inputs]]];
  const size_t bytes = strlen(first) + name.n + 24;
  char *text = qn__keep(g, bytes);
  if (!text) return;
  bool taken = true;
  for (int n = 0; taken; n++) {           /* y0_lse, y0_lse1, ... */
    snprintf(text, bytes, n ? "%s_%.*s%d" : "%s_%.*s", first, (int)name.n, name.s, n);
    taken = false;
    for (uint32_t i = 0; i < g->v->n_values && !taken; i++) taken = !strcmp(g->v->name[i], text);
  }
  g->asked[g->n_asked++] = (qn__asked){ w->index, (uint32_t)r, text, -1 };
}

static const char *value_name(const row_work *w, uint32_t r) { return w->g->v->name[w->node->arg[w->node->first[r]]]; }

static qn_status unknown(row_work *w, const char *which, const char *value, const char *why)
{
  return qn__gradient_fail(w->g, QN_UNSUPPORTED, "the gradient of %s%s%s is not known%s%s, and through %s the loss depends on "
                           "what it is differentiated by", w->op->name, which ? " by its " : "", which ? which : "", why ? ": " : "",
                           why ? why : "", value);
}

static void refuse_without(row_work *w, const row_line *line)
{
  for (int i = 1; i < line->n; i++) {
    const int r = role_named(w->op, line->word[i]);
    if (r >= 0 && given(w, (uint32_t)r))
      qn__gradient_fail(w->g, QN_UNSUPPORTED, "the gradient of %s with %s is not known, and through %s the loss depends on what "
                        "it is differentiated by", w->op->name, w->op->role[r].name, value_name(w, w->op->n_inputs));
  }
}

static bool is_wanted(const row_work *w, uint32_t r)
{
  bool wanted = false;
  for (int32_t k = w->node->first[r]; k < w->node->first[r + 1]; k++) wanted = wanted || w->g->path[w->node->arg[k]] & QN__DEPENDS;
  return wanted;
}

/* Does it make the gradient by an input, and is that one not wanted? */
static bool is_idle(const row_work *w, const row_line *line)
{
  for (uint32_t r = 0; r < w->op->n_inputs; r++)
    if (is_gradient_by(line->target, w->op->role[r].name)) return !is_wanted(w, r);
  return false;
}

void qn__gradient_ask(qn__gradient *g, int32_t op)
{
  const qn_node *node = &g->v->op[op];
  row_work w = { .g = g, .index = op, .node = node, .op = qn_op_find(node->op), .row = qn__gradient_row(node->op) };
  const char *const out = value_name(&w, w.op->n_inputs);
  if (!w.row) unknown(&w, NULL, out, NULL);
  for (const char *const *p = w.row ? w.row->line : NULL; p && *p && !g->status; p++) {
    const row_line line = read_line(&w, *p);
    const qn_op_info *backward = own_backward(&w, &line);
    if (!line.holds || is_idle(&w, &line)) continue;
    if (qn__same(line.word[0], "unknown:")) unknown(&w, NULL, out, *p + strlen("unknown: "));
    else if (qn__same(line.word[0], "without")) refuse_without(&w, &line);
    else if (!line.target.n && line.n == 1 && !backward) ask(&w, line.word[0]);
    for (uint32_t r = 0; backward && r < backward->n_inputs; r++)
      if (!(backward->role[r].flags & QN_ROLE_OPTIONAL)) ask(&w, text_span(backward->role[r].name));
    for (int i = 1; i < line.n; i++) {
      qn__span key, value = { "", 0 };
      if (split(line.word[i], &key, &value)) ask(&w, value);
    }
  }
}

/* ---- operands ------------------------------------------------------------------------------------- */

static qn__terms evaluate(row_work *w, qn__span word);

/* The line that makes a result of that name; false: none does. */
static bool line_of(const row_work *w, qn__span word, row_line *line)
{
  for (const char *const *p = w->row->line; *p; p++) {
    *line = read_line(w, *p);
    if (!line->holds) continue;
    if (line->target.n && alike(line->target, word)) return true;
    const qn_op_info *op = own_backward(w, line);
    for (uint32_t r = op ? op->n_inputs : 0; op && r < op->n_roles; r++)
      if (qn__same(word, op->role[r].name)) return true;
  }
  return false;
}

static qn__terms list_of(row_work *w, int32_t n)
{
  qn__terms list = { n, n ? qn__keep(w->g, (size_t)n * sizeof *list.t) : NULL };
  if (!list.t) list.n = 0;
  return list;
}

static qn__terms number_of(row_work *w, double number)
{
  qn__terms list = list_of(w, 1);
  if (list.n) list.t[0] = (qn__term){ QN__NUMBER, number };
  return list;
}

static qn__terms of_role(row_work *w, uint32_t r)
{
  qn__gradient *g = w->g;
  for (int i = 0; i < g->n_asked; i++) {
    if (g->asked[i].op != w->index || g->asked[i].role != r) continue;
    qn__terms list = list_of(w, 1);
    if (list.n) list.t[0] = (qn__term){ g->asked[i].value, 0 };
    return list;
  }
  qn__terms list = list_of(w, given(w, r));
  for (int32_t k = 0; k < list.n; k++) list.t[k] = qn__forward(g, w->node->arg[w->node->first[r] + k]);
  return list;
}

static qn__terms gradients_by(row_work *w, uint32_t r)
{
  qn__terms list = list_of(w, given(w, r));
  for (int32_t k = 0; k < list.n; k++) list.t[k] = qn__gradient_by(w->g, w->node, r, k);
  return list;
}

/* n: how many elements of the first input an element of the first output comes from; freedom: less the correction. */
static bool counted(const row_work *w, qn__span word, double *number)
{
  const qn_value *value = w->g->v->value;
  if (!qn__same(word, "n") && !qn__same(word, "freedom")) return false;
  *number = (double)qn_elements(&value[w->node->arg[0]]) / (double)qn_elements(&value[w->node->arg[w->node->first[w->op->n_inputs]]]);
  if (word.n > 1) *number -= (double)((const qn_axes *)w->node->attr)->correction;
  return true;
}

/* A line's result, a role, the gradient by an output, a number, an attribute, in this order; ROLE?NUMBER: the number where absent. */
static qn__terms operand(row_work *w, qn__span word)
{
  const char *mark = memchr(word.s, '?', word.n);
  double number;
  if (mark) {
    const qn__terms list = operand(w, (qn__span){ word.s, (size_t)(mark - word.s) });
    return list.n || !qn__read_number((qn__span){ mark + 1, word.n - (size_t)(mark - word.s) - 1 }, &number) ? list : number_of(w, number);
  }
  for (int i = 0; i < w->n_locals; i++)
    if (alike(w->local[i].name, word)) return w->local[i].terms;
  row_line line;
  if (line_of(w, word, &line)) return evaluate(w, word);
  const int r = role_named(w->op, word);
  if (r >= 0) return of_role(w, (uint32_t)r);
  for (uint32_t out = w->op->n_inputs; out < w->op->n_roles; out++)
    if (is_gradient_of_output(w, word, out)) return gradients_by(w, out);
  if (qn__read_number(word, &number) || counted(w, word, &number)) return number_of(w, number);
  const qn_attr_info *a = attr_named(w->op, word);
  if (a) {
    number = (double)attr_number(w, a);
    if (a->type == QN_ATTR_REAL) memcpy(&number, (const char *)w->node->attr + a->offset, sizeof number);
    return number_of(w, number);
  }
  return (qn__terms){ 0 };
}

/* Zeros in place of a gradient that nothing has added to. */
static void fill_absent(row_work *w, qn__span word, qn__terms list)
{
  for (uint32_t r = w->op->n_inputs; r < w->op->n_roles; r++)
    for (int32_t k = 0; k < list.n && is_gradient_of_output(w, word, r); k++)
      if (list.t[k].value == QN__ABSENT)
        list.t[k] = qn__gradient_write(w->g, "cast x=0 y=%t", absent, absent, &w->g->v->value[w->node->arg[w->node->first[r] + k]]);
}

/* ---- writing a line --------------------------------------------------------------------------------- */

/* The tensor that an output is given: that of a role, or "DTYPE/ROLE", of its dims and another's dtype. Returns its dtype. */
static uint32_t add_output(row_work *w, qn_text *text, qn__span spec)
{
  const char *slash = memchr(spec.s, '/', spec.n);
  const qn__span dims = slash ? (qn__span){ slash + 1, spec.n - (size_t)(slash - spec.s) - 1 } : spec;
  const qn__span kind = { spec.s, slash ? (size_t)(slash - spec.s) : spec.n };
  qn__terms like = operand(w, dims), of = slash ? operand(w, kind) : like;
  fill_absent(w, dims, like);
  uint32_t dtype = of.n && of.t[0].value >= 0 ? qn__value_of(w->g, of.t[0])->dtype : QN_DTYPE_NONE;
  for (uint32_t d = 1; d < QN_DTYPE_COUNT; d++)
    if (qn__same(kind, qn_dtype_name(d))) dtype = d;
  if (like.n && like.t[0].value >= 0) qn__output_tensor(text, dtype, qn__value_of(w->g, like.t[0]));
  return dtype;
}

/* The attributes that the line gives, and those that its op has in common with the op whose gradient it is. */
static void add_attributes(const row_work *w, qn_text *text, const qn_op_info *op, const row_line *line)
{
  for (uint32_t k = 0; k < op->n_attrs; k++) {
    const qn_attr_info *a = attr_named(w->op, text_span(op->attr[k].name));
    const qn__span value = pair_of(line, op->attr[k].name);
    if (qn__same(value, "!")) qn__text_add(text, " %s=%d", op->attr[k].name, a && !attr_number(w, a));
    else if (value.n) qn__text_add(text, " %s=%.*s", op->attr[k].name, (int)value.n, value.s);
    else if (a && a->type == op->attr[k].type && !(a->type == QN_ATTR_AXES && !attr_number(w, a))
             && qn__attr_entries(a, w->node, w->g->v->value))
      qn__print_attribute(text, a, w->node, w->g->v->value);
  }
}

/* The line's operands by input role of its op, by_name: those that it leaves out by their namesakes. False: one that is needed is absent. */
static bool read_inputs(row_work *w, const qn_op_info *op, const row_line *line, bool by_name, qn__terms *in)
{
  for (uint32_t r = 0; r < op->n_inputs; r++) {
    qn__span word = pair_of(line, op->role[r].name);
    if (!word.n && by_name) word = text_span(op->role[r].name);
    const qn__terms found = word.n ? operand(w, word) : (qn__terms){ 0 };
    const bool needed = !(op->role[r].flags & QN_ROLE_OPTIONAL);
    if (needed) fill_absent(w, word, found);
    in[r] = found;
    for (int32_t k = 0; k < found.n; k++)
      if (found.t[k].value == QN__ABSENT) in[r].n = 0;
    if (needed && !in[r].n) return false;
  }
  return true;
}

/* The k-th of each operand that is a list where the role is not. */
static void add_inputs(const row_work *w, qn_text *text, const qn_op_info *op, const qn__terms *in, int32_t k, qn__term *arg)
{
  for (uint32_t r = 0; r < op->n_inputs; r++) {
    const bool list = op->role[r].flags & QN_ROLE_LIST;
    if (!in[r].n) continue;
    arg[r] = in[r].t[in[r].n > k && !list ? k : 0];
    qn__text_add(text, " %s=%s", op->role[r].name, list ? "[" : "");
    for (int32_t i = 0; i < (list ? in[r].n : 1); i++) {
      if (i) qn__text_add(text, ",");
      qn__term_add(w->g, text, list ? in[r].t[i] : arg[r]);
    }
    if (list) qn__text_add(text, "]");
  }
}

/* Is the result known without a line: a difference of numbers, a choice by one, a product with 1, a power of 1, a conversion of nothing? */
static bool is_plain(const qn__gradient *g, const qn_op_info *op, const qn__term *arg, uint32_t dtype, qn__term *result)
{
  const bool number = op->n_inputs == 2 && arg[1].value == QN__NUMBER, numbers = number && arg[0].value == QN__NUMBER;
  const double a = arg[0].number, b = arg[1].number;
  if (numbers && op->kind == QN_OP_SUB) *result = (qn__term){ QN__NUMBER, a - b };
  else if (numbers && op->kind == QN_OP_EQ) *result = (qn__term){ QN__NUMBER, a == b };
  else if (op->kind == QN_OP_SELECT && arg[0].value == QN__NUMBER) *result = arg[a != 0 ? 1 : 2];
  else if (number && (op->kind == QN_OP_MUL || op->kind == QN_OP_POW) && b == 1) *result = arg[0];
  else if (op->kind == QN_OP_CAST && arg[0].value >= 0 && qn__value_of(g, arg[0])->dtype == dtype) *result = arg[0];
  else return false;
  return true;
}

/* TARGET = OP ...: once, or where an operand is a list and its role is not, for each of the list. */
static qn__terms write_each(row_work *w, const qn_op_info *op, const row_line *line)
{
  qn__terms in[QN_MAX_ROLES] = { { 0 } };
  const qn__span spec = pair_of(line, op->role[op->n_inputs].name);
  int32_t times = 1;
  if (!read_inputs(w, op, line, false, in)) return (qn__terms){ 0 };
  for (uint32_t r = 0; r < op->n_inputs; r++)
    if (in[r].n > times && !(op->role[r].flags & QN_ROLE_LIST)) times = in[r].n;
  const qn__terms result = list_of(w, times);
  for (int32_t k = 0; k < result.n && !w->g->status; k++) {
    qn_text text = { 0 };
    qn__term arg[QN_MAX_ROLES] = { { 0 } };
    uint32_t dtype = QN_DTYPE_NONE;
    qn__text_add(&text, "%s", op->name);
    add_inputs(w, &text, op, in, k, arg);
    if (spec.n) {
      qn__text_add(&text, " %s=", op->role[op->n_inputs].name);
      dtype = add_output(w, &text, spec);
    }
    add_attributes(w, &text, op, line);
    if (is_plain(w->g, op, arg, dtype, &result.t[k])) qn__free(text.s);
    else result.t[k] = qn__gradient_line(w->g, &text);
  }
  return result;
}

/* TARGET = OP ... where the op's first output is a list: of as many tensors as it reads. */
static qn__terms write_list(row_work *w, const qn_op_info *op, const row_line *line)
{
  qn__terms in[QN_MAX_ROLES] = { { 0 } };
  qn__term arg[QN_MAX_ROLES];
  if (!read_inputs(w, op, line, false, in)) return (qn__terms){ 0 };
  const qn__terms result = list_of(w, in[0].n);
  qn_text text = { 0 };
  const char **name = qn__keep(w->g, (size_t)result.n * sizeof *name);
  for (int32_t k = 0; k < result.n && name && (name[k] = qn__new_name(w->g)); k++)
    qn__text_add(&text, "%s%s", k ? "," : "[", name[k]);
  qn__text_add(&text, "] = %s", op->name);
  add_inputs(w, &text, op, in, 0, arg);
  add_attributes(w, &text, op, line);
  qn__gradient_read(w->g, &text);
  for (int32_t k = 0; k < result.n && !w->g->status; k++)
    result.t[k] = (qn__term){ qn__find_name(&w->g->parser, text_span(name[k])), 0 };
  return w->g->status ? (qn__terms){ 0 } : result;
}

static void keep_local(row_work *w, qn__span name, qn__terms terms)
{
  if (w->n_locals == MAX_LOCALS) qn__gradient_fail(w->g, QN_INTERNAL, "%s: its row of gradients.def has too many lines", w->op->name);
  else {
    w->local[w->n_locals].name = name;
    w->local[w->n_locals++].terms = terms;
  }
}

/* A backward op of this one: results of the dims, dtype and, in any packed order, strides of what they belong to. */
static void write_backward(row_work *w, const qn_op_info *op, const row_line *line)
{
  qn__terms in[QN_MAX_ROLES] = { { 0 } };
  qn__term arg[QN_MAX_ROLES];
  const char **name[QN_MAX_ROLES] = { 0 };
  qn_text text = { 0 }, before = { 0 };
  if (!read_inputs(w, op, line, true, in)) {
    qn__gradient_fail(w->g, QN_INTERNAL, "%s: its gradient, %s, lacks an operand", w->op->name, op->name);
    return;
  }
  qn__text_add(&text, "%s", op->name);
  add_inputs(w, &text, op, in, 0, arg);
  for (uint32_t r = op->n_inputs; r < op->n_roles && !w->g->status; r++) {
    const bool list = op->role[r].flags & QN_ROLE_LIST, first = r == op->n_inputs;
    const int of = role_named(w->op, text_span(op->role[r].name + 1));
    const bool needed = !(op->role[r].flags & QN_ROLE_OPTIONAL) || pair_of(line, op->role[r].name).n;
    if (of < 0 || !given(w, (uint32_t)of) || (!needed && !is_wanted(w, (uint32_t)of))) continue;
    name[r] = qn__keep(w->g, (size_t)given(w, (uint32_t)of) * sizeof **name);
    qn__text_add(&text, " %s=%s", op->role[r].name, list ? "[" : "");
    for (int32_t k = 0; k < given(w, (uint32_t)of) && name[r] && (name[r][k] = qn__new_name(w->g)); k++) {
      const qn_value *like = &w->g->v->value[w->node->arg[w->node->first[of] + k]];
      if (first) qn__text_add(&before, "%s = ", name[r][k]);
      else qn__text_add(&text, "%s%s:", k ? "," : "", name[r][k]);
      qn__output_tensor(&text, like->dtype, like);
    }
    if (list) qn__text_add(&text, "]");
  }
  add_attributes(w, &text, op, line);
  qn__text_add(&before, "%s", text.s && !text.failed ? text.s : "");
  before.failed = before.failed || text.failed;
  qn__free(text.s);
  qn__gradient_read(w->g, &before);
  for (uint32_t r = op->n_inputs; r < op->n_roles && !w->g->status; r++) {
    if (!name[r]) continue;
    qn__terms made = list_of(w, given(w, (uint32_t)role_named(w->op, text_span(op->role[r].name + 1))));
    for (int32_t k = 0; k < made.n; k++) made.t[k] = (qn__term){ qn__find_name(&w->g->parser, text_span(name[r][k])), 0 };
    keep_local(w, text_span(op->role[r].name), made);
  }
}

static qn__terms write_move(row_work *w, const qn__move *move, const row_line *line)
{
  const qn__span word = pair_of(line, "x"), axis_word = pair_of(line, "axis");
  const int axis = axis_word.n ? (int)strtol(axis_word.s, NULL, 10) : -1;
  qn__terms x = operand(w, word);
  fill_absent(w, word, x);
  return x.n && !w->g->status ? move->write(w->g, w->node, x.t[0], axis) : (qn__terms){ 0 };
}

/* The result of that name, by the line that makes it, and first those that this one reads. */
static qn__terms evaluate(row_work *w, qn__span word)
{
  row_line line;
  if (w->g->status || !line_of(w, word, &line)) return (qn__terms){ 0 };
  for (int i = 0; i < w->n_locals; i++)
    if (alike(w->local[i].name, word)) return w->local[i].terms;
  const qn_op_info *backward = own_backward(w, &line), *op = backward;
  if (backward) {
    write_backward(w, backward, &line);
    for (int i = 0; i < w->n_locals; i++)
      if (alike(w->local[i].name, word)) return w->local[i].terms;
    return (qn__terms){ 0 };
  }
  const qn__move *move = qn__move_named(line.word[0]);
  for (int i = 0; i < qn__n_ops && line.n > 1 && !op; i++)
    if (qn__same(line.word[0], qn__ops[i].name)) op = &qn__ops[i];
  const qn__terms made = line.n == 1 ? operand(w, line.word[0])
                       : move ? write_move(w, move, &line)
                       : !op ? (qn__terms){ 0 }
                       : op->role[op->n_inputs].flags & QN_ROLE_LIST ? write_list(w, op, &line) : write_each(w, op, &line);
  keep_local(w, line.target, made);
  return made;
}

/* ---- one op ----------------------------------------------------------------------------------------- */

/* Does a line read the gradient by output role r, for whatever attributes? */
static bool reads_gradient(const row_work *w, uint32_t r)
{
  for (const char *const *p = w->row->line; *p; p++) {
    const row_line line = read_line(w, *p);
    const qn_op_info *op = own_backward(w, &line);
    for (uint32_t i = 0; op && i < op->n_inputs; i++)
      if (is_gradient_of_output(w, text_span(op->role[i].name), r)) return true;
    for (int i = 0; i < line.n; i++) {
      qn__span key, value = line.word[i];
      split(line.word[i], &key, &value);
      if (is_gradient_of_output(w, value, r)) return true;
    }
  }
  return false;
}

void qn__gradient_of(qn__gradient *g, int32_t op, qn__terms *by_role)
{
  const qn_node *node = &g->v->op[op];
  row_work w = { .g = g, .index = op, .node = node, .op = qn_op_find(node->op), .row = qn__gradient_row(node->op) };
  bool any = false;
  for (uint32_t r = w.op->n_inputs; r < w.op->n_roles; r++)
    for (int32_t k = 0; k < given(&w, r); k++) {
      if (qn__gradient_by(g, node, r, k).value == QN__ABSENT) continue;
      any = true;
      if (!reads_gradient(&w, r)) {
        unknown(&w, w.op->role[r].name, g->v->name[node->arg[node->first[r] + k]], NULL);
        return;
      }
    }
  for (uint32_t r = 0; any && r < w.op->n_inputs && !g->status; r++) {
    row_line line;
    char word[40];
    if (!is_wanted(&w, r)) continue;
    const qn_value *v = &g->v->value[node->arg[node->first[r]]];
    if ((QN__INTEGERS | QN__BIT(QN_BOOL)) & QN__BIT(v->dtype)) continue;      /* piecewise constant */
    snprintf(word, sizeof word, "d%s", w.op->role[r].name);
    if (line_of(&w, text_span(word), &line)) by_role[r] = evaluate(&w, text_span(word));
    else unknown(&w, w.op->role[r].name, value_name(&w, r), NULL);
  }
}
