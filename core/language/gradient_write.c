/* gradient_write.c -- a line of gradients.def as a line of the graph: its operands, outputs that it is given, attributes that pass on. */
#include <stdlib.h>
#include <quern/kit.h>
#include "gradient.h"

static const qn__term absent = { QN__ABSENT, 0 };

/* The tensor that an output is given: that of a role, of a list the k-th, or "DTYPE/ROLE", of its dims and another's dtype. Returns its
 * dtype. */
static uint32_t add_output(qn__row_work *w, qn_text *text, qn__span spec, int32_t k)
{
  const char *slash = memchr(spec.s, '/', spec.n);
  const qn__span dims = slash ? (qn__span){ slash + 1, spec.n - (size_t)(slash - spec.s) - 1 } : spec;
  const qn__span kind = { spec.s, slash ? (size_t)(slash - spec.s) : spec.n };
  const qn__terms like = qn__operand(w, dims);
  uint32_t dtype = QN_DTYPE_NONE;
  qn__fill_absent(w, dims, like);
  for (uint32_t d = 1; d < QN_DTYPE_COUNT; d++)
    if (qn__same(kind, qn_dtype_name(d))) dtype = d;
  if (!dtype) {
    const qn__terms of = slash ? qn__operand(w, kind) : like;
    const int32_t i = k < of.n ? k : 0;
    dtype = of.n && of.t[i].value >= 0 ? qn__value_of(w->g, of.t[i])->dtype : QN_DTYPE_NONE;
  }
  k = k < like.n ? k : 0;
  if (like.n && like.t[k].value >= 0) qn__output_tensor(text, dtype, qn__value_of(w->g, like.t[k]));
  return dtype;
}

/* The attributes that the line gives, and those that its op has in common with the op whose gradient it is. */
static void add_attributes(const qn__row_work *w, qn_text *text, const qn_op_info *op, const qn__row_line *line)
{
  for (uint32_t k = 0; k < op->n_attrs; k++) {
    const qn_attr_info *a = qn__attr_named(w->op, qn__text_span(op->attr[k].name));
    const qn__span value = qn__pair_of(line, op->attr[k].name);
    if (qn__same(value, "!")) qn__text_add(text, " %s=%d", op->attr[k].name, a && !qn__attr_number(w, a));
    else if (value.n) qn__text_add(text, " %s=%.*s", op->attr[k].name, (int)value.n, value.s);
    else if (a && a->type == op->attr[k].type && !(a->type == QN_ATTR_AXES && !qn__attr_number(w, a))
             && qn__attr_entries(a, w->node, w->g->v->value))
      qn__print_attribute(text, a, w->node, w->g->v->value);
  }
}

/* The line's operands by input role of its op, by_name: those that it leaves out by their namesakes. False: one that is needed is absent;
 * of a list some may be. */
static bool read_inputs(qn__row_work *w, const qn_op_info *op, const qn__row_line *line, bool by_name, qn__terms *in)
{
  for (uint32_t r = 0; r < op->n_inputs; r++) {
    qn__span word = qn__pair_of(line, op->role[r].name);
    if (!word.n && by_name) word = qn__text_span(op->role[r].name);
    const qn__terms found = word.n ? qn__operand(w, word) : (qn__terms){ 0 };
    const bool needed = !(op->role[r].flags & QN_ROLE_OPTIONAL);
    if (needed) qn__fill_absent(w, word, found);
    in[r] = found;
    int32_t present = 0;
    for (int32_t k = 0; k < found.n; k++) present += found.t[k].value != QN__ABSENT;
    if (present < found.n && !(present && op->role[r].flags & QN_ROLE_LIST)) in[r].n = 0;
    if (needed && !in[r].n) return false;
  }
  return true;
}

/* The k-th of each operand that is a list where the role is not. */
static void add_inputs(const qn__row_work *w, qn_text *text, const qn_op_info *op, const qn__terms *in, int32_t k, qn__term *arg)
{
  for (uint32_t r = 0; r < op->n_inputs; r++) {
    const bool list = op->role[r].flags & QN_ROLE_LIST;
    if (!in[r].n) continue;
    arg[r] = in[r].t[in[r].n > k && !list ? k : 0];
    qn__text_add(text, " %s=%s", op->role[r].name, list ? "[" : "");
    const char *comma = "";
    for (int32_t i = 0; i < (list ? in[r].n : 1); i++) {
      if (list && in[r].t[i].value == QN__ABSENT) continue;
      qn__text_add(text, "%s", comma);
      qn__term_add(w->g, text, list ? in[r].t[i] : arg[r]);
      comma = ",";
    }
    if (list) qn__text_add(text, "]");
  }
}

/* The op itself, of its one input: its output, if that was not rounded to fewer digits. */
static bool is_there(const qn__row_work *w, const qn_op_info *op, const qn__row_line *line, const qn__term *arg, qn__term *result)
{
  const qn_value *value = w->g->v->value;
  const int32_t x = w->node->arg[0], y = w->node->arg[w->node->first[w->op->n_inputs]];
  if (op != w->op || op->n_inputs != 1 || line->n != 2 || arg[0].value != qn__forward(w->g, x).value) return false;
  if (value[x].dtype != value[y].dtype) return false;
  *result = qn__forward(w->g, y);
  return true;
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

qn__terms qn__row_write_each(qn__row_work *w, const qn_op_info *op, const qn__row_line *line)
{
  qn__terms in[QN_MAX_ROLES] = { { 0 } };
  const qn__span spec = qn__pair_of(line, op->role[op->n_inputs].name);
  int32_t times = 1;
  if (!read_inputs(w, op, line, false, in)) return (qn__terms){ 0 };
  for (uint32_t r = 0; r < op->n_inputs; r++)
    if (in[r].n > times && !(op->role[r].flags & QN_ROLE_LIST)) times = in[r].n;
  const qn__terms result = qn__list_of(w, times);
  for (int32_t k = 0; k < result.n && !w->g->status; k++) {
    qn_text text = { 0 };
    qn__term arg[QN_MAX_ROLES] = { { 0 } };
    uint32_t dtype = QN_DTYPE_NONE;
    qn__text_add(&text, "%s", op->name);
    add_inputs(w, &text, op, in, k, arg);
    if (spec.n) {
      qn__text_add(&text, " %s=", op->role[op->n_inputs].name);
      dtype = add_output(w, &text, spec, k);
    }
    add_attributes(w, &text, op, line);
    if (is_there(w, op, line, arg, &result.t[k]) || is_plain(w->g, op, arg, dtype, &result.t[k])) qn__free(text.s);
    else result.t[k] = qn__gradient_line(w->g, &text);
  }
  return result;
}

qn__terms qn__row_write_list(qn__row_work *w, const qn_op_info *op, const qn__row_line *line)
{
  qn__terms in[QN_MAX_ROLES] = { { 0 } };
  qn__term arg[QN_MAX_ROLES];
  if (!read_inputs(w, op, line, false, in)) return (qn__terms){ 0 };
  const qn__terms result = qn__list_of(w, in[0].n);
  qn_text text = { 0 };
  const char **name = qn__keep(w->g, (size_t)result.n * sizeof *name), *before = "[";
  for (int32_t k = 0; k < result.n && name && !w->g->status; k++) {
    if (in[0].t[k].value == QN__ABSENT || !(name[k] = qn__new_name(w->g))) continue;
    qn__text_add(&text, "%s%s", before, name[k]);
    before = ",";
  }
  qn__text_add(&text, "] = %s", op->name);
  add_inputs(w, &text, op, in, 0, arg);
  add_attributes(w, &text, op, line);
  qn__gradient_read(w->g, &text);
  for (int32_t k = 0; k < result.n && !w->g->status; k++)
    result.t[k] = name[k] ? (qn__term){ qn__find_name(&w->g->parser, qn__text_span(name[k])), 0 } : absent;
  return w->g->status ? (qn__terms){ 0 } : result;
}

void qn__row_write_backward(qn__row_work *w, const qn_op_info *op, const qn__row_line *line)
{
  qn__terms in[QN_MAX_ROLES] = { { 0 } };
  qn__term arg[QN_MAX_ROLES];
  const char **name[QN_MAX_ROLES] = { 0 };
  qn_text text = { 0 }, before = { 0 };
  const bool pointwise = op->family == QN_FAMILY_POINTWISE;     /* what was broadcast has dy's dims, to be summed */
  if (!read_inputs(w, op, line, true, in)) {
    qn__gradient_fail(w->g, QN_INTERNAL, "%s: its gradient, %s, lacks an operand", w->op->name, op->name);
    return;
  }
  qn__text_add(&text, "%s", op->name);
  add_inputs(w, &text, op, in, 0, arg);
  for (uint32_t r = op->n_inputs; r < op->n_roles && !w->g->status; r++) {
    const bool list = op->role[r].flags & QN_ROLE_LIST, first = r == op->n_inputs;
    const int of = qn__role_of(w->op, qn__text_span(op->role[r].name + 1));
    const bool needed = !(op->role[r].flags & QN_ROLE_OPTIONAL) || qn__pair_of(line, op->role[r].name).n;
    if (of < 0 || !qn__given(w, (uint32_t)of) || (!needed && !qn__is_wanted(w, (uint32_t)of))) continue;
    name[r] = qn__keep(w->g, (size_t)qn__given(w, (uint32_t)of) * sizeof **name);
    qn__text_add(&text, " %s=%s", op->role[r].name, list ? "[" : "");
    for (int32_t k = 0; k < qn__given(w, (uint32_t)of) && name[r] && (name[r][k] = qn__new_name(w->g)); k++) {
      const qn_value *like = &w->g->v->value[w->node->arg[w->node->first[of] + k]];
      if (first) qn__text_add(&before, "%s = ", name[r][k]);
      else qn__text_add(&text, "%s%s:", k ? "," : "", name[r][k]);
      if (pointwise) qn__text_add(&text, "?");
      else qn__output_tensor(&text, like->dtype, like);
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
    qn__terms made = qn__list_of(w, qn__given(w, (uint32_t)qn__role_of(w->op, qn__text_span(op->role[r].name + 1))));
    for (int32_t k = 0; k < made.n; k++) made.t[k] = (qn__term){ qn__find_name(&w->g->parser, qn__text_span(name[r][k])), 0 };
    qn__keep_result(w, qn__text_span(op->role[r].name), made);
  }
}

qn__terms qn__row_write_move(qn__row_work *w, const qn__move *move, const qn__row_line *line)
{
  const qn__span word = qn__pair_of(line, "x"), axis_word = qn__pair_of(line, "axis");
  const int axis = axis_word.n ? (int)strtol(axis_word.s, NULL, 10) : -1;
  qn__terms x = qn__operand(w, word);
  qn__fill_absent(w, word, x);
  return x.n && !w->g->status ? move->write(w->g, w->node, x.t[0], axis) : (qn__terms){ 0 };
}
