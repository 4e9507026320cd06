/* notation.c -- reads problem lines (docs/problem-lines.md).
 *
 *   problem   = op line | graph
 *   op line   = OP { role=operand | attribute=value }
 *   graph     = statements, one a line or joined by "|"
 *   statement = in NAME tensor | [out] NAME [over NAME] = OP { ... } | [NAME,...] = OP { ... } | out NAME [over NAME]
 *   operand   = tensor | [operand,...] | number | NAME | ? | NAME:tensor
 *
 * Any problem may be followed by "; settings"; "#" begins a comment. Any bytes give a graph or an error with line and column. */
#include <stdio.h>
#include "notation.h"

/* ---- the problem under construction -------------------------------------------------------- */

typedef struct op_record { const qn_op_info *op; size_t ints, attr; } op_record;

static void *push(qn__vec *v, size_t bytes)
{
  if (v->n + bytes > v->cap) {
    size_t cap = 2 * v->cap + bytes + 256;
    char *p = qn__realloc(v->p, v->cap, cap);
    if (!p) {
      qn__fail(QN_NO_MEMORY, "no memory for a problem line");
      return NULL;
    }
    v->p = p;
    v->cap = cap;
  }
  void *item = v->p + v->n;
  v->n += bytes;
  return item;
}

static bool push_int(qn__vec *v, int32_t i)
{
  int32_t *slot = push(v, sizeof i);
  if (slot) *slot = i;
  return slot;
}

static qn_value *values(qn__parser *s) { return (qn_value *)s->value.p; }
static int32_t n_values(const qn__parser *s) { return (int32_t)(s->value.n / sizeof(qn_value)); }

/* The slot that holds a name, or the free one where it would go. */
static size_t slot_of(const qn__parser *s, qn__span name)
{
  const qn__span *names = (const qn__span *)s->name.p;
  uint64_t h = 0xcbf29ce484222325u;     /* FNV-1a */
  for (size_t i = 0; i < name.n; i++) h = (h ^ (unsigned char)name.s[i]) * 0x100000001b3u;
  size_t at = (size_t)(h ^ h >> 32) & (s->n_slots - 1);
  for (int32_t i; (i = s->slot[at]) >= 0; at = (at + 1) & (s->n_slots - 1))
    if (names[i].n == name.n && !memcmp(names[i].s, name.s, name.n)) break;
  return at;
}

int32_t qn__find_name(const qn__parser *s, qn__span name)
{
  return name.n && s->n_slots ? s->slot[slot_of(s, name)] : -1;
}

static bool grow_slots(qn__parser *s)
{
  const qn__span *names = (const qn__span *)s->name.p;
  const size_t n = s->n_slots ? 2 * s->n_slots : 64;
  int32_t *slot = qn__alloc(n * sizeof *slot);
  if (!slot) {
    qn__fail(QN_NO_MEMORY, "no memory for a problem line");
    return false;
  }
  memset(slot, 0xff, n * sizeof *slot);
  qn__free(s->slot);
  s->slot = slot;
  s->n_slots = n;
  for (int32_t i = 0; i < n_values(s); i++)
    if (names[i].n) slot[slot_of(s, names[i])] = i;
  return true;
}

/* Returns the value's index; -1: no memory. */
static int32_t add_value(qn__parser *s, const qn_value *value, qn__span name, double literal)
{
  if (name.n && 2 * (s->n_named + 1) > s->n_slots && !grow_slots(s)) return -1;
  qn_value *v = push(&s->value, sizeof *v);
  qn__span *n = v ? push(&s->name, sizeof *n) : NULL;
  double *l = n ? push(&s->literal, sizeof *l) : NULL;
  if (!l) return -1;
  *v = *value;
  *n = name;
  *l = literal;
  if (name.n) {
    s->slot[slot_of(s, name)] = n_values(s) - 1;
    s->n_named++;
  }
  return n_values(s) - 1;
}

/* Prefixes the current error sentence with line and column. */
static qn_status place(const qn__parser *s, const char *at, qn_status status)
{
  if (status != QN_BAD_ARGUMENT) return status;
  return qn__fail(status, "line %d, column %d: %s", s->line, (int)(at - s->line_start) + 1, qn_last_error());
}

/* ---- operands ----------------------------------------------------------------------------- */

static const qn__span no_name = { "", 0 };

/* Reads an input argument: one tensor, literal or name. A literal is f64, in a bool role 0 or 1. */
static qn_status read_input(qn__parser *s, const qn_role_info *info, qn__span t)
{
  const char *role = info->name;
  const bool truth = info->class_ == 'b';
  double number;
  qn_value v;
  if (t.n == 1 && t.s[0] == '?') return qn__syntax(s, t.s, "%s is an input; only outputs can be wanted with \"?\"", role);
  if (qn__read_number(t, &number)) {
    const char *const why = qn__literal_refused(info, number);
    if (why) return qn__syntax(s, t.s, "%s: \"%s\" %s", role, qn__show(t).s, why);
    v = (qn_value){ .dtype = truth ? QN_BOOL : QN_F64, .over = -1, .align = 16, .flags = QN_VALUE_HOST };
    int32_t i = add_value(s, &v, no_name, number);
    return i >= 0 && push_int(&s->ints, i) ? QN_OK : QN_NO_MEMORY;
  }
  if (s->graph && !qn__tensor_dtype(t).n) {
    int32_t i = qn__find_name(s, t);
    if (i < 0)
      return qn__syntax(s, t.s, "%s: \"%s\" is neither declared by an \"in\" line nor made by an op above", role, qn__show(t).s);
    return push_int(&s->ints, i) ? QN_OK : QN_NO_MEMORY;
  }
  if (s->graph) return qn__syntax(s, t.s, "%s: a graph's tensors are declared: in NAME %s", role, qn__show(t).s);
  qn_status status = qn__read_tensor(s, t, &v);
  if (status) return status;
  int32_t i = add_value(s, &v, no_name, 0);
  return i >= 0 && push_int(&s->ints, i) ? QN_OK : QN_NO_MEMORY;
}

static qn_status read_list(qn__parser *s, const qn_role_info *role, qn__span t)
{
  if (t.n < 2 || t.s[t.n - 1] != ']') return qn__syntax(s, t.s + t.n, "%s: expected \"]\" at the end of the list", role->name);
  const char *p = t.s + 1, *end = t.s + t.n - 1;
  if (p == end) return QN_OK;
  for (;; p++) {
    qn__span item = { p, 0 };
    while (p < end && *p != ',') p++;
    item.n = (size_t)(p - item.s);
    qn_status status = read_input(s, role, item);
    if (status) return status;
    if (p == end) return QN_OK;
  }
}

static const qn_value wanted = { .rank = -1, .over = -1 };

/* An output of an op line: inferred, given, or an input's name to take its memory (in a list, that of the k-th). */
static qn_status read_line_output(qn__parser *s, const qn_op_info *op, const char *role, qn__span t, const int32_t *first, int32_t k)
{
  qn_value v = wanted;
  qn_status status = QN_OK;
  if (t.n && !(t.n == 1 && t.s[0] == '?')) {
    uint32_t r = 0;
    while (r < op->n_inputs && !qn__same(t, op->role[r].name)) r++;
    if (r < op->n_inputs && first[r] + k < first[r + 1]) {
      int32_t i = ((int32_t *)s->ints.p)[first[r] + k];
      v = values(s)[i];
      v.over = i;
      if (v.flags & QN_VALUE_HOST) return qn__syntax(s, t.s, "%s: cannot take the memory of %s, a number", role, op->role[r].name);
    } else if ((status = qn__read_tensor(s, t, &v)))
      return status;
  }
  int32_t i = add_value(s, &v, no_name, 0);
  return i >= 0 && push_int(&s->ints, i) ? QN_OK : QN_NO_MEMORY;
}

/* An output of an op in a graph. The first output's name precedes the op; the others are NAME or NAME:tensor. */
static qn_status read_graph_output(qn__parser *s, const char *role, qn__span t, qn__span name, int32_t over)
{
  qn_value v = wanted;
  qn_status status;
  if (!name.n) {
    const char *colon = memchr(t.s, ':', t.n);
    name = (qn__span){ t.s, colon ? (size_t)(colon - t.s) : t.n };
    if (!qn__is_name(name.s, name.n)) return qn__syntax(s, t.s, "%s: expected a name for it, as %s=NAME", role, role);
    if (qn__find_name(s, name) >= 0) return qn__syntax(s, t.s, "%s: \"%s\" is taken", role, qn__show(name).s);
    t = colon ? (qn__span){ colon + 1, t.n - name.n - 1 } : (qn__span){ t.s, 0 };
  }
  if (t.n && !(t.n == 1 && t.s[0] == '?')) {
    if ((status = qn__read_tensor(s, t, &v))) return status;
  } else if (over >= 0)
    v = values(s)[over];
  v.over = over;
  int32_t i = add_value(s, &v, name, 0);
  return i >= 0 && push_int(&s->ints, i) ? QN_OK : QN_NO_MEMORY;
}

/* A list of outputs: [items], or in an op line one word for all. */
static qn_status read_output_list(qn__parser *s, const qn_op_info *op, const char *role, qn__span t, const int32_t *first)
{
  uint32_t list;
  bool items = t.n && t.s[0] == '[';
  if (s->graph && !items) return qn__syntax(s, t.s ? t.s : s->p, "%s: expected names for its tensors, as %s=[NAME,NAME]", role, role);
  if (items && (t.n < 3 || t.s[t.n - 1] != ']')) return qn__syntax(s, t.s + t.n, "%s: expected a list, and \"]\" at its end", role);
  int32_t n = qn__list_length(op, first, &list);
  if (!items) {
    qn_status status = QN_OK;
    for (int32_t k = 0; k < n && !status; k++) status = read_line_output(s, op, role, t, first, k);
    return status;
  }
  const char *p = t.s + 1, *end = t.s + t.n - 1;
  for (int32_t k = 0;; k++, p++) {
    qn__span item = { p, 0 };
    while (p < end && *p != ',') p++;
    item.n = (size_t)(p - item.s);
    if (!item.n) return qn__syntax(s, p, "%s: expected a tensor of the list", role);
    qn_status status = s->graph ? read_graph_output(s, role, item, no_name, -1) : read_line_output(s, op, role, item, first, k);
    if (status || p == end) return status;
  }
}

static qn__span next_item(const char **p, const char *end)
{
  qn__span item = { *p, 0 };
  while (*p < end && **p != ',') ++*p;
  item.n = (size_t)(*p - item.s);
  if (*p < end) ++*p;
  return item;
}

static qn_status check_new_name(const qn__parser *s, qn__span name)
{
  if (!qn__is_name(name.s, name.n))
    return qn__syntax(s, name.s, "\"%s\" is no name: a letter or _, then letters, digits and _, and no dtype or keyword", qn__show(name).s);
  if (qn__find_name(s, name) >= 0) return qn__syntax(s, name.s, "\"%s\" is taken", qn__show(name).s);
  return QN_OK;
}

static bool is_list(qn__span t) { return t.n && t.s[0] == '['; }

/* A first output that is a list: [NAME,...] or NAME for a list of one stand before the op; given: [tensor,...], or nothing. */
static qn_status read_named_list(qn__parser *s, const char *role, qn__span names, qn__span given, int32_t over)
{
  const qn__span t = given.s ? given : no_name;
  const char *p = names.s + is_list(names), *end = names.s + names.n - is_list(names);
  const char *q = t.s + is_list(t), *q_end = t.s + t.n - is_list(t);
  if (t.n && (!is_list(t) || t.n < 3 || *q_end != ']'))
    return qn__syntax(s, t.s, "%s: expected a list of tensors, as %s=[f32/4,f32/5]", role, role);
  do {
    const char *at = p;
    const qn__span name = next_item(&p, end), tensor = t.n ? next_item(&q, q_end) : no_name;
    qn_status status = check_new_name(s, name);
    if (!status && t.n && !tensor.n) status = qn__syntax(s, q_end, "%s: expected a tensor for each name", role);
    if (!status && p == end && p > at && p[-1] == ',') status = qn__syntax(s, p, "expected a name after \",\"");
    if (!status) status = read_graph_output(s, role, tensor, name, over);
    if (status) return status;
  } while (p < end);
  return t.n && q < q_end ? qn__syntax(s, q, "%s: more tensors than names", role) : QN_OK;
}

/* ---- attributes --------------------------------------------------------------------------- */

static void set_entry(char *attr, uint32_t offset, int i, int64_t value)
{
  memcpy(attr + offset + 8 * i, &value, sizeof value);
}

static qn_status read_attribute(const qn__parser *s, const qn_attr_info *a, qn__span t, const qn_node *node, char *attr)
{
  const char *p = t.s, *end = t.s + t.n;
  if (a->type == QN_ATTR_REAL) {
    double number;
    if (!qn__read_number(t, &number)) return qn__syntax(s, t.s, "%s: \"%s\" is no number", a->name, qn__show(t).s);
    memcpy(attr + a->offset, &number, sizeof number);
    return QN_OK;
  }
  if (a->words && t.n && !qn__is_digit(*p) && *p != '-') {
    int64_t word = qn__word_number(a->words, t.s, t.n);
    if (word < 0) return qn__syntax(s, t.s, "%s: \"%s\" is none of %s", a->name, qn__show(t).s, a->words);
    set_entry(attr, a->offset, 0, word);
    return QN_OK;
  }
  bool pads = a->type == QN_ATTR_SPADS || a->type == QN_ATTR_RPADS;
  int n = 0, capacity = a->type == QN_ATTR_AXES ? QN_MAX_RANK : qn__attr_capacity(a);
  int entries = qn__attr_entries(a, node, (const qn_value *)s->value.p);
  uint64_t mask = 0;
  for (;; p++) {
    int64_t before, after;
    const char *at = p;
    if (n == capacity) return qn__syntax(s, p, "%s: more than %d values", a->name, capacity);
    if (!qn__read_integer(&p, end, &before)) return qn__syntax(s, at, "%s: expected an integer", a->name);
    after = before;
    if (pads && p < end && *p == ':') {
      at = ++p;
      if (!qn__read_integer(&p, end, &after)) return qn__syntax(s, at, "%s: expected the padding after, as in 0:1", a->name);
    }
    if (a->type == QN_ATTR_AXES) {
      int rank = node->first[0] < node->first[1] ? ((const qn_value *)s->value.p)[node->arg[0]].rank : 0;
      if (before < -rank || before >= rank)
        return qn__syntax(s, at, "%s: %lld is no dim of %d", a->name, (long long)before, rank);
      mask |= (uint64_t)1 << (before < 0 ? before + rank : before);
    } else {
      set_entry(attr, a->offset, n, before);
      if (pads) set_entry(attr, a->offset2, n, after);
    }
    n++;
    if (p == end) break;
    if (*p != ',')
      return qn__syntax(s, p, "%s: \"%s\" cannot follow; values are joined by \",\"", a->name,
                        qn__show((qn__span){ p, (size_t)(end - p) }).s);
  }
  if (a->type == QN_ATTR_AXES) {
    memcpy(attr + a->offset, &mask, sizeof mask);
    return QN_OK;
  }
  if (n != entries && (n != 1 || a->identity))
    return qn__syntax(s, t.s, "%s: %d values; expected %s%d", a->name, n, a->identity ? "" : "1 or ", entries);
  for (int i = 1; n == 1 && i < capacity && !a->identity; i++) {        /* one value given: it holds for all dims */
    memcpy(attr + a->offset + 8 * i, attr + a->offset, 8);
    if (pads) memcpy(attr + a->offset2 + 8 * i, attr + a->offset2, 8);
  }
  return QN_OK;
}

/* ---- ops ---------------------------------------------------------------------------------- */

enum { MAX_ATTRS = 16 };
typedef struct op_text { qn__span role[QN_MAX_ROLES], attr[MAX_ATTRS]; } op_text;   /* s NULL: absent */

static qn_status read_pairs(qn__parser *s, const qn_op_info *op, op_text *text)
{
  *text = (op_text){ 0 };
  for (qn__skip_space(s); !qn__at_stop(s); qn__skip_space(s)) {
    qn__span key = qn__read_word(s), *slot = NULL;
    if (s->p == s->end || *s->p != '=' || !key.n) return qn__syntax(s, s->p, "expected ROLE=OPERAND or ATTRIBUTE=VALUE");
    for (uint32_t r = 0; r < op->n_roles; r++)
      if (qn__same(key, op->role[r].name)) slot = &text->role[r];
    for (uint32_t k = 0; k < op->n_attrs && k < MAX_ATTRS; k++)
      if (qn__same(key, op->attr[k].name)) slot = &text->attr[k];
    if (!slot) return qn__unknown_key(s, op, key);
    if (slot->s) return qn__syntax(s, key.s, "%s is given twice", qn__show(key).s);
    s->p++;
    *slot = (qn__span){ s->p, 0 };
    while (!qn__at_stop(s) && !qn__is_space(*s->p)) s->p++;
    slot->n = (size_t)(s->p - slot->s);
    if (!slot->n) return qn__syntax(s, s->p, "%s has no value", qn__show(key).s);
  }
  return QN_OK;
}

/* OP { role=operand | attribute=value }. name: of its first output, in a graph; over: the value whose memory that output takes. */
static qn_status read_op(qn__parser *s, qn__span word, qn__span name, int32_t over)
{
  const qn_op_info *op = qn__op_named(s, word);
  if (!op) return QN_SYNTAX;
  op_text text;
  qn_status status = read_pairs(s, op, &text);
  if (status) return status;

  int32_t first[QN_MAX_ROLES + 1] = { (int32_t)(s->ints.n / sizeof(int32_t)) };
  int32_t base = first[0];
  for (uint32_t r = 0; r < op->n_roles; r++) {
    qn__span t = text.role[r];
    const qn_role_info *role = &op->role[r];
    if (!(role->flags & QN_ROLE_OUTPUT)) {
      if (!t.s) status = QN_OK;         /* missing: left to the schema's check */
      else if (t.s[0] == '[' && !(role->flags & QN_ROLE_LIST)) status = qn__syntax(s, t.s, "%s takes one tensor, not a list", role->name);
      else status = t.s[0] == '[' ? read_list(s, role, t) : read_input(s, role, t);
    } else if (t.s || !(role->flags & QN_ROLE_OPTIONAL)) {
      bool named = r == op->n_inputs;
      if (named && s->graph && role->flags & QN_ROLE_LIST) status = read_named_list(s, role->name, name, t, over);
      else if (named && is_list(name)) status = qn__syntax(s, name.s, "%s is one tensor, not a list", role->name);
      else if (role->flags & QN_ROLE_LIST) status = read_output_list(s, op, role->name, t, first);
      else if (!s->graph) status = read_line_output(s, op, role->name, t, first, 0);
      else if (!t.s && !named) status = qn__syntax(s, word.s, "%s: expected a name for it, as %s=NAME", role->name, role->name);
      else status = read_graph_output(s, role->name, t, named ? name : no_name, named ? over : -1);
    }
    if (status) return status;
    first[r + 1] = (int32_t)(s->ints.n / sizeof(int32_t));
  }

  op_record *record = push(&s->op, sizeof *record);
  if (!record) return QN_NO_MEMORY;
  *record = (op_record){ op, s->ints.n, s->attr.n };
  char *attr = op->attr_bytes ? push(&s->attr, op->attr_bytes) : NULL;
  if (op->attr_bytes && !attr) return QN_NO_MEMORY;
  if (attr) memcpy(attr, op->attr_default, op->attr_bytes);
  for (uint32_t r = 0; r <= op->n_roles; r++) {
    first[r] -= base;
    if (!push_int(&s->ints, first[r])) return QN_NO_MEMORY;
  }
  qn_node node = { .op = op->kind, .family = op->family, .attr = attr, .n_roles = op->n_roles, .n_inputs = op->n_inputs,
                   .first = first, .arg = (int32_t *)s->ints.p + base };
  for (uint32_t k = 0; k < op->n_attrs && k < MAX_ATTRS; k++)
    if (text.attr[k].s && (status = read_attribute(s, &op->attr[k], text.attr[k], &node, attr))) return status;

  /* inferred at once, since later lines refer to its outputs; graph.c checks the whole again */
  if ((status = qn__infer(op, attr, &node, values(s)))) return place(s, word.s, status);
  for (int32_t k = first[op->n_inputs]; k < first[op->n_roles]; k++) {
    qn_value *v = &values(s)[node.arg[k]];
    if (v->align) continue;             /* given */
    v->align = 16;
    qn__default_strides(v, qn__layout_model(op, &node, values(s), k));
  }
  return QN_OK;
}

/* ---- statements --------------------------------------------------------------------------- */

static qn_status read_new_name(qn__parser *s, qn__span *name)
{
  qn__skip_space(s);
  *name = qn__read_word(s);
  if (!qn__is_name(name->s, name->n))
    return qn__syntax(s, name->s, "expected a name: a letter or _, then letters, digits and _, and no dtype or keyword");
  return QN_OK;
}

static qn_status read_in(qn__parser *s)
{
  qn__span name;
  qn_status status = read_new_name(s, &name);
  if (status) return status;
  if (qn__find_name(s, name) >= 0) return qn__syntax(s, name.s, "\"%s\" is taken", qn__show(name).s);
  qn__skip_space(s);
  qn__span t = { s->p, 0 };
  while (!qn__at_stop(s) && !qn__is_space(*s->p)) s->p++;
  t.n = (size_t)(s->p - t.s);
  qn_value v;
  if ((status = qn__read_tensor(s, t, &v))) return status;
  int32_t i = add_value(s, &v, name, 0);
  return i >= 0 && push_int(&s->in, i) ? QN_OK : QN_NO_MEMORY;
}

/* NAME [over NAME] [= OP ...]; without an op it turns an earlier op's result into an output. */
static qn_status read_assignment(qn__parser *s, qn__span name, bool out)
{
  int32_t over = -1;
  qn__skip_space(s);
  const char *at = s->p;
  if (out && qn__same(qn__read_word(s), "over")) {
    qn__span from;
    qn_status status = read_new_name(s, &from);
    if (status) return status;
    over = qn__find_name(s, from);
    if (over < 0) return qn__syntax(s, from.s, "\"%s\" is declared nowhere above", qn__show(from).s);
  } else
    s->p = at;
  qn__skip_space(s);
  if (s->p < s->end && *s->p == '=') {
    s->p++;
    qn_status status = is_list(name) ? QN_OK : check_new_name(s, name);
    qn__skip_space(s);
    qn__span word = qn__read_word(s);
    if (status || (status = read_op(s, word, name, over)) || is_list(name)) return status;
    int32_t made = qn__find_name(s, name);
    return !out || push_int(&s->out, made) ? QN_OK : QN_NO_MEMORY;
  }
  if (!out) return qn__syntax(s, s->p, "expected \"=\" and an op");
  int32_t made = qn__find_name(s, name);
  if (made < 0) return qn__syntax(s, name.s, "\"%s\" is made by no op above", qn__show(name).s);
  values(s)[made].over = over;
  return push_int(&s->out, made) ? QN_OK : QN_NO_MEMORY;
}

static qn_status read_statement(qn__parser *s)
{
  qn__span word = qn__read_word(s);
  if (!word.n && s->graph && s->p < s->end && *s->p == '[') {
    while (!qn__at_stop(s) && !qn__is_space(*s->p) && *s->p != '=' && *s->p != ']') s->p++;
    if (s->p == s->end || *s->p != ']') return qn__syntax(s, s->p, "expected names, joined by \",\", and \"]\"");
    s->p++;
    return read_assignment(s, (qn__span){ word.s, (size_t)(s->p - word.s) }, false);
  }
  if (!word.n) return qn__syntax(s, s->p, "expected an op, a name, \"in\" or \"out\"");
  if (!s->graph) return read_op(s, word, no_name, -1);
  if (qn__same(word, "in")) return read_in(s);
  if (!qn__same(word, "out")) {
    qn__skip_space(s);
    if (s->p == s->end || *s->p != '=')
      return qn__syntax(s, word.s, "in a graph an op names its output: NAME = %s ...", qn__show(word).s);
    return read_assignment(s, word, false);
  }
  qn__span name;
  qn_status status = read_new_name(s, &name);
  return status ? status : read_assignment(s, name, true);
}

/* ---- problems ----------------------------------------------------------------------------- */

void qn__release_parser(qn__parser *s)
{
  qn__vec *all[] = { &s->value, &s->name, &s->literal, &s->ints, &s->attr, &s->op, &s->in, &s->out };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) qn__free(all[i]->p);
  qn__free(s->slot);
}

/* Passes the parsed pieces as a view to qn_graph_make, which checks and copies them. */
qn_status qn__make_graph(qn__parser *s, qn_graph **graph_p)
{
  size_t n_ops = s->op.n / sizeof(op_record), n = (size_t)n_values(s), name_bytes = 0;
  const op_record *record = (const op_record *)s->op.p;
  const qn__span *names = (const qn__span *)s->name.p;
  for (size_t i = 0; i < n; i++) name_bytes += names[i].n + 1;
  if (!n_ops) return qn__syntax(s, s->p, "there is no op");
  qn_node *node = qn__alloc(n_ops * sizeof *node);
  char **name = qn__alloc(n * sizeof *name + name_bytes);
  qn_status status = node && name ? QN_OK : qn__fail(QN_NO_MEMORY, "no memory for a problem line");
  char *bytes = (char *)(name + n);
  for (size_t i = 0; i < n && !status; i++) {
    name[i] = bytes;
    memcpy(bytes, names[i].s, names[i].n);
    bytes += names[i].n + 1;
  }
  const int32_t *ints = (const int32_t *)s->ints.p, *arg = ints;
  for (size_t o = 0; o < n_ops && !status; o++) {
    const qn_op_info *op = record[o].op;
    const int32_t *first = ints + record[o].ints / sizeof *ints;        /* args, then first[], then the next op's */
    node[o] = (qn_node){ .op = op->kind, .n_roles = op->n_roles, .attr = op->attr_bytes ? s->attr.p + record[o].attr : NULL,
                         .first = first, .arg = arg };
    arg = first + op->n_roles + 1;
  }
  if (!s->graph && !status) {           /* single op: its tensors, in the order of its roles */
    int32_t inputs = node[0].first[record[0].op->n_inputs];
    for (int32_t k = 0; k < node[0].first[node[0].n_roles] && !status; k++)
      if (!(values(s)[k].flags & QN_VALUE_HOST) && !push_int(k < inputs ? &s->in : &s->out, k)) status = QN_NO_MEMORY;
  }
  size_t n_ins = s->in.n / sizeof(int32_t), n_outs = s->out.n / sizeof(int32_t);
  for (size_t i = 0; i < n_outs && !status; i++)
    if (!push_int(&s->in, ((int32_t *)s->out.p)[i])) status = QN_NO_MEMORY;
  if (!status)
    status = qn_graph_make(&(qn_graph_view){ .struct_size = sizeof(qn_graph_view), .n_ops = (uint32_t)n_ops,
      .n_values = (uint32_t)n, .n_pointers = (uint32_t)(n_ins + n_outs), .n_ins = (uint32_t)n_ins, .op = node,
      .value = values(s), .name = (const char *const *)name, .literal = (const double *)s->literal.p,
      .pointer = (const int32_t *)s->in.p }, graph_p);
  qn__free(node);
  qn__free(name);
  return status;
}

static qn_status read_settings(qn__parser *s, qn_text *settings)
{
  s->p++;
  qn__skip_space(s);
  qn__span t = { s->p, 0 };
  while (s->p < s->end && *s->p != '\n' && *s->p != '#') s->p++;
  t.n = (size_t)(s->p - t.s);
  while (t.n && qn__is_space(t.s[t.n - 1])) t.n--;
  if (memchr(t.s, '\0', t.n)) return qn__syntax(s, t.s, "settings hold a zero byte");
  if (t.n && settings) qn__text_add(settings, "%s%.*s", settings->len ? " " : "", (int)t.n, t.s);
  return QN_OK;
}

qn_status qn__read_statements(qn__parser *s, qn_text *settings)
{
  qn_status status;
  for (;;) {
    qn__skip_space(s);
    if (!qn__at_stop(s)) {
      if ((status = read_statement(s))) return status;
      qn__skip_space(s);
      if (!qn__at_stop(s)) return qn__syntax(s, s->p, "\"%c\" cannot follow here", *s->p >= ' ' && *s->p < 127 ? *s->p : '?');
    }
    if (s->p < s->end && *s->p == ';' && (status = read_settings(s, settings))) return status;
    if (s->p < s->end && *s->p == '#')
      while (s->p < s->end && *s->p != '\n') s->p++;
    if (s->p == s->end) return QN_OK;
    if (*s->p == '|') {
      if (!s->graph) return qn__syntax(s, s->p, "\"|\" joins the lines of a graph; an op line stands alone");
      const char *bar = s->p++;
      qn__skip_space(s);
      if (qn__at_stop(s)) return qn__syntax(s, bar, "expected a line of the graph after \"|\"");
      continue;
    }
    s->p++;
    s->line++;
    s->line_start = s->p;
  }
}

qn_status qn__read_problem(qn__parser *s, qn_text *settings, qn_graph **graph_p)
{
  int line = s->line;
  qn_status status = qn__read_statements(s, settings);
  if (!status && (status = qn__make_graph(s, graph_p)) == QN_BAD_ARGUMENT)
    status = qn__fail(status, "problem at line %d: %s", line, qn_last_error());
  qn__release_parser(s);
  return status;
}
