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

static const qn__term absent = { QN__ABSENT, 0 };

static qn__span word_at(const char **p)
{
  while (**p == ' ') ++*p;
  qn__span word = { *p, strcspn(*p, " ") };
  *p += word.n;
  return word;
}

qn__span qn__text_span(const char *s) { return (qn__span){ s, strlen(s) }; }
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

qn__span qn__pair_of(const qn__row_line *line, const char *name)
{
  qn__span key, value;
  for (int i = 1; i < line->n; i++)
    if (split(line->word[i], &key, &value) && qn__same(key, name)) return value;
  return (qn__span){ "", 0 };
}

const qn_attr_info *qn__attr_named(const qn_op_info *op, qn__span name)
{
  for (uint32_t k = 0; k < op->n_attrs; k++)
    if (qn__same(name, op->attr[k].name)) return &op->attr[k];
  return NULL;
}

int64_t qn__attr_number(const qn__row_work *w, const qn_attr_info *a)
{
  int64_t number;
  memcpy(&number, (const char *)w->node->attr + a->offset, sizeof number);
  return number;
}

/* ATTRIBUTE=WORD|WORD, ATTRIBUTE=NUMBER|NUMBER or ATTRIBUTE=LEAST.. */
static bool holds(const qn__row_work *w, qn__span condition)
{
  qn__span key, value;
  const qn_attr_info *a = split(condition, &key, &value) ? qn__attr_named(w->op, key) : NULL;
  if (!a) return false;
  if (value.n > 2 && value.s[value.n - 1] == '.')
    return qn__attr_number(w, a) >= strtoll(value.s, NULL, 10);
  for (const char *p = value.s, *end = p + value.n; p < end; p++) {
    const char *bar = memchr(p, '|', (size_t)(end - p));
    const size_t n = bar ? (size_t)(bar - p) : (size_t)(end - p);
    if ((a->words ? qn__word_number(a->words, p, n) : strtoll(p, NULL, 10)) == qn__attr_number(w, a)) return true;
    p += n;
  }
  return false;
}

static qn__row_line read_line(const qn__row_work *w, const char *p)
{
  qn__row_line line = { .holds = true };
  for (qn__span word; (word = word_at(&p)).n; ) {
    if (qn__same(word, "=") && line.n == 1) {
      line.target = line.word[0];
      line.n = 0;
    } else if (qn__same(word, "where"))
      line.holds = holds(w, word_at(&p));
    else if (line.n < QN__MAX_WORDS)
      line.word[line.n++] = word;
  }
  return line;
}

/* A line that is a backward op of this one, its operands and results by their names. */
static const qn_op_info *own_backward(const qn__row_work *w, const qn__row_line *line)
{
  const qn_op_info *op = NULL;
  for (int i = 0; i < qn__n_ops && !line->target.n && !op; i++)
    if (qn__same(line->word[0], qn__ops[i].name)) op = &qn__ops[i];
  return op && op->forward == w->op->kind ? op : NULL;
}

int qn__role_of(const qn_op_info *op, qn__span name)
{
  for (uint32_t r = 0; r < op->n_roles; r++)
    if (qn__same(name, op->role[r].name)) return (int)r;
  return -1;
}

/* Is it the gradient by that output? dy is that by the first, whatever its name. */
static bool is_gradient_of_output(const qn__row_work *w, qn__span word, uint32_t r)
{
  return is_gradient_by(word, w->op->role[r].name) || (r == w->op->n_inputs && qn__same(word, "dy") && qn__role_of(w->op, word) < 0);
}

int32_t qn__given(const qn__row_work *w, uint32_t r) { return w->node->first[r + 1] - w->node->first[r]; }

/* ---- what the forward half must give ------------------------------------------------------------ */

static void ask(qn__row_work *w, qn__span name)
{
  qn__gradient *g = w->g;
  const int r = qn__role_of(w->op, name);
  if (r < (int)w->op->n_inputs || qn__given(w, (uint32_t)r)) return;
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

static const char *value_name(const qn__row_work *w, uint32_t r) { return w->g->v->name[w->node->arg[w->node->first[r]]]; }

static qn_status unknown(qn__row_work *w, const char *which, const char *value, const char *why)
{
  return qn__gradient_fail(w->g, QN_UNSUPPORTED, "the gradient of %s%s%s is not known%s%s, and through %s the loss depends on "
                           "what it is differentiated by", w->op->name, which ? " by its " : "", which ? which : "", why ? ": " : "",
                           why ? why : "", value);
}

static void refuse_without(qn__row_work *w, const qn__row_line *line)
{
  for (int i = 1; i < line->n; i++) {
    const int r = qn__role_of(w->op, line->word[i]);
    if (r >= 0 && qn__given(w, (uint32_t)r))
      qn__gradient_fail(w->g, QN_UNSUPPORTED, "the gradient of %s with %s is not known, and through %s the loss depends on what "
                        "it is differentiated by", w->op->name, w->op->role[r].name, value_name(w, w->op->n_inputs));
  }
}

bool qn__is_wanted(const qn__row_work *w, uint32_t r)
{
  bool wanted = false;
  for (int32_t k = w->node->first[r]; k < w->node->first[r + 1]; k++) wanted = wanted || w->g->path[w->node->arg[k]] & QN__DEPENDS;
  return wanted;
}

/* Does it make the gradient by an input, and is that one not wanted? */
static bool is_idle(const qn__row_work *w, const qn__row_line *line)
{
  for (uint32_t r = 0; r < w->op->n_inputs; r++)
    if (is_gradient_by(line->target, w->op->role[r].name)) return !qn__is_wanted(w, r);
  return false;
}

void qn__gradient_ask(qn__gradient *g, int32_t op)
{
  const qn_node *node = &g->v->op[op];
  qn__row_work w = { .g = g, .index = op, .node = node, .op = qn_op_find(node->op), .row = qn__gradient_row(node->op) };
  const char *const out = value_name(&w, w.op->n_inputs);
  if (!w.row) unknown(&w, NULL, out, NULL);
  for (const char *const *p = w.row ? w.row->line : NULL; p && *p && !g->status; p++) {
    const qn__row_line line = read_line(&w, *p);
    const qn_op_info *backward = own_backward(&w, &line);
    if (!line.holds || is_idle(&w, &line)) continue;
    if (qn__same(line.word[0], "unknown:")) unknown(&w, NULL, out, *p + strlen("unknown: "));
    else if (qn__same(line.word[0], "without")) refuse_without(&w, &line);
    else if (!line.target.n && line.n == 1 && !backward) ask(&w, line.word[0]);
    for (uint32_t r = 0; backward && r < backward->n_inputs; r++)
      if (!(backward->role[r].flags & QN_ROLE_OPTIONAL)) ask(&w, qn__text_span(backward->role[r].name));
    for (int i = 1; i < line.n; i++) {
      qn__span key, value = { "", 0 };
      if (split(line.word[i], &key, &value)) ask(&w, value);
    }
  }
}

/* ---- operands ------------------------------------------------------------------------------------- */

static qn__terms evaluate(qn__row_work *w, qn__span word);

/* The line that makes a result of that name; false: none does. */
static bool line_of(const qn__row_work *w, qn__span word, qn__row_line *line)
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

qn__terms qn__list_of(qn__row_work *w, int32_t n)
{
  qn__terms list = { n, n ? qn__keep(w->g, (size_t)n * sizeof *list.t) : NULL };
  if (!list.t) list.n = 0;
  return list;
}

static qn__terms number_of(qn__row_work *w, double number)
{
  qn__terms list = qn__list_of(w, 1);
  if (list.n) list.t[0] = (qn__term){ QN__NUMBER, number };
  return list;
}

static qn__terms of_role(qn__row_work *w, uint32_t r)
{
  qn__gradient *g = w->g;
  for (int i = 0; i < g->n_asked; i++) {
    if (g->asked[i].op != w->index || g->asked[i].role != r) continue;
    qn__terms list = qn__list_of(w, 1);
    if (list.n) list.t[0] = (qn__term){ g->asked[i].value, 0 };
    return list;
  }
  qn__terms list = qn__list_of(w, qn__given(w, r));
  for (int32_t k = 0; k < list.n; k++) list.t[k] = qn__forward(g, w->node->arg[w->node->first[r] + k]);
  return list;
}

static qn__terms gradients_by(qn__row_work *w, uint32_t r)
{
  qn__terms list = qn__list_of(w, qn__given(w, r));
  for (int32_t k = 0; k < list.n; k++) list.t[k] = qn__gradient_by(w->g, w->node, r, k);
  return list;
}

/* n: how many elements of the first input an element of the first output comes from; freedom: less the correction. */
static bool counted(const qn__row_work *w, qn__span word, double *number)
{
  const qn_value *value = w->g->v->value;
  if (!qn__same(word, "n") && !qn__same(word, "freedom")) return false;
  *number = (double)qn_elements(&value[w->node->arg[0]]) / (double)qn_elements(&value[w->node->arg[w->node->first[w->op->n_inputs]]]);
  if (word.n > 1) *number -= (double)((const qn_axes *)w->node->attr)->correction;
  return true;
}

qn__terms qn__operand(qn__row_work *w, qn__span word)
{
  const char *mark = memchr(word.s, '?', word.n);
  double number;
  if (mark) {
    const qn__terms list = qn__operand(w, (qn__span){ word.s, (size_t)(mark - word.s) });
    return list.n || !qn__read_number((qn__span){ mark + 1, word.n - (size_t)(mark - word.s) - 1 }, &number) ? list : number_of(w, number);
  }
  for (int i = 0; i < w->n_results; i++)
    if (alike(w->result[i].name, word)) return w->result[i].terms;
  qn__row_line line;
  if (line_of(w, word, &line)) return evaluate(w, word);
  const int r = qn__role_of(w->op, word);
  if (r >= 0) return of_role(w, (uint32_t)r);
  for (uint32_t out = w->op->n_inputs; out < w->op->n_roles; out++)
    if (is_gradient_of_output(w, word, out)) return gradients_by(w, out);
  if (qn__read_number(word, &number) || counted(w, word, &number)) return number_of(w, number);
  const qn_attr_info *a = qn__attr_named(w->op, word);
  if (a) {
    number = (double)qn__attr_number(w, a);
    if (a->type == QN_ATTR_REAL) memcpy(&number, (const char *)w->node->attr + a->offset, sizeof number);
    return number_of(w, number);
  }
  qn__gradient_fail(w->g, QN_INTERNAL, "%s: its row of gradients.def says %.*s, which is nothing", w->op->name, (int)word.n, word.s);
  return (qn__terms){ 0 };
}

void qn__fill_absent(qn__row_work *w, qn__span word, qn__terms list)
{
  for (uint32_t r = w->op->n_inputs; r < w->op->n_roles; r++)
    for (int32_t k = 0; k < list.n && is_gradient_of_output(w, word, r); k++)
      if (list.t[k].value == QN__ABSENT && QN__FLOATS & QN__BIT(w->g->v->value[w->node->arg[w->node->first[r] + k]].dtype))
        list.t[k] = qn__gradient_write(w->g, "cast x=0 y=%t", absent, absent, &w->g->v->value[w->node->arg[w->node->first[r] + k]]);
}

/* ---- results ------------------------------------------------------------------------------------ */

void qn__keep_result(qn__row_work *w, qn__span name, qn__terms terms)
{
  if (w->n_results == QN__MAX_RESULTS) qn__gradient_fail(w->g, QN_INTERNAL, "%s: its row of gradients.def has too many lines", w->op->name);
  else {
    w->result[w->n_results].name = name;
    w->result[w->n_results++].terms = terms;
  }
}

/* The result of that name, by the line that makes it, and first those that this one reads. */
static qn__terms evaluate(qn__row_work *w, qn__span word)
{
  qn__row_line line;
  if (w->g->status || !line_of(w, word, &line)) return (qn__terms){ 0 };
  for (int i = 0; i < w->n_results; i++)
    if (alike(w->result[i].name, word)) return w->result[i].terms;
  const qn_op_info *backward = own_backward(w, &line), *op = backward;
  if (backward) {
    qn__row_write_backward(w, backward, &line);
    for (int i = 0; i < w->n_results; i++)
      if (alike(w->result[i].name, word)) return w->result[i].terms;
    return (qn__terms){ 0 };
  }
  const qn__move *move = qn__move_named(line.word[0]);
  for (int i = 0; i < qn__n_ops && line.n > 1 && !op; i++)
    if (qn__same(line.word[0], qn__ops[i].name)) op = &qn__ops[i];
  if (line.n > 1 && !move && !op)
    qn__gradient_fail(w->g, QN_INTERNAL, "%s: its row of gradients.def says %.*s, which is no op", w->op->name, (int)line.word[0].n,
                      line.word[0].s);
  const qn__terms made = line.n == 1 ? qn__operand(w, line.word[0])
                       : move ? qn__row_write_move(w, move, &line)
                       : !op ? (qn__terms){ 0 }
                       : op->role[op->n_inputs].flags & QN_ROLE_LIST ? qn__row_write_list(w, op, &line) : qn__row_write_each(w, op, &line);
  qn__keep_result(w, line.target, made);
  return made;
}

/* ---- one op ----------------------------------------------------------------------------------------- */

/* Does a line read the gradient by output role r, for whatever attributes? */
static bool reads_gradient(const qn__row_work *w, uint32_t r)
{
  for (const char *const *p = w->row->line; *p; p++) {
    const qn__row_line line = read_line(w, *p);
    const qn_op_info *op = own_backward(w, &line);
    for (uint32_t i = 0; op && i < op->n_inputs; i++)
      if (is_gradient_of_output(w, qn__text_span(op->role[i].name), r)) return true;
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
  qn__row_work w = { .g = g, .index = op, .node = node, .op = qn_op_find(node->op), .row = qn__gradient_row(node->op) };
  bool any = false;
  for (uint32_t r = w.op->n_inputs; r < w.op->n_roles; r++)
    for (int32_t k = 0; k < qn__given(&w, r); k++) {
      if (qn__gradient_by(g, node, r, k).value == QN__ABSENT) continue;
      any = true;
      if (!reads_gradient(&w, r)) {
        unknown(&w, w.op->role[r].name, g->v->name[node->arg[node->first[r] + k]], NULL);
        return;
      }
    }
  for (uint32_t r = 0; any && r < w.op->n_inputs && !g->status; r++) {
    qn__row_line line;
    char word[40];
    if (!qn__is_wanted(&w, r)) continue;
    const qn_value *v = &g->v->value[node->arg[node->first[r]]];
    if ((QN__INTEGERS | QN__BIT(QN_BOOL)) & QN__BIT(v->dtype)) continue;      /* piecewise constant */
    snprintf(word, sizeof word, "d%s", w.op->role[r].name);
    if (line_of(&w, qn__text_span(word), &line)) by_role[r] = evaluate(&w, qn__text_span(word));
    else unknown(&w, w.op->role[r].name, value_name(&w, r), NULL);
  }
}
