/* graph.c -- graphs: laid out in one allocation, then checked as a whole; and those from a caller's arrays. Those from a call's arguments
 * are in graph_of_op.c. */
#include <stdlib.h>
#include <string.h>
#include <quern/kit.h>
#include "problem.h"

/* ---- the one allocation ------------------------------------------------------------------- */

static size_t aligned(size_t bytes)
{
  return (bytes + 15) & ~(size_t)15;
}

/* Takes `bytes` from the block; with base NULL only adds up the size. */
static void *carve(char *base, size_t *used, size_t bytes)
{
  void *p = base ? base + *used : NULL;
  *used += aligned(bytes);
  return p;
}

/* Of all that the view points to. */
static size_t lay_out(qn_graph *g, char *base, const qn__graph_sizes *n, qn__graph_arrays *a)
{
  size_t used = 0;
  void *op = carve(base, &used, n->ops * sizeof(qn_node));
  void *value = carve(base, &used, n->values * sizeof(qn_value));
  void *name = carve(base, &used, n->values * sizeof(char *));
  void *literal = carve(base, &used, n->values * sizeof(double));
  void *pointer = carve(base, &used, n->pointers * sizeof(int32_t));
  *a = (qn__graph_arrays){ 0 };
  a->ints = carve(base, &used, n->ints * sizeof(int32_t));
  a->attr = carve(base, &used, n->attr_bytes);
  a->names = carve(base, &used, n->name_bytes);
  if (g)
    g->view = (qn_graph_view){ .struct_size = sizeof(qn_graph_view), .n_ops = (uint32_t)n->ops,
      .n_values = (uint32_t)n->values, .n_pointers = (uint32_t)n->pointers, .op = op, .value = value, .name = name,
      .literal = literal, .pointer = pointer };
  return used;
}

qn_graph *qn__graph_new(const qn__graph_sizes *sizes, qn__graph_arrays *a)
{
  qn_graph *g = qn__object_new(QN_OBJECT_GRAPH, sizeof *g);
  if (!g || !(g->memory = qn__alloc(lay_out(NULL, NULL, sizes, a)))) {
    qn__object_free(QN_OBJECT_GRAPH, g);
    qn__fail(QN_NO_MEMORY, "no memory for a graph of %zu ops", sizes->ops);
    return NULL;
  }
  lay_out(g, g->memory, sizes, a);
  for (size_t i = 0; i < sizes->values; i++) ((const char **)g->view.name)[i] = "";
  return g;
}

void qn_graph_destroy(qn_graph *g)
{
  if (!g) return;
  if (!g->memory) {
    qn__log_destroyed("graph");
    return;
  }
  qn__free(g->memory);
  g->memory = NULL;
  g->view = (qn_graph_view){ 0 };
  qn__object_free(QN_OBJECT_GRAPH, g);
}

qn_status qn__graph_alive(const qn_graph *g)
{
  if (!g) return qn__fail(QN_BAD_ARGUMENT, "graph: is NULL");
  return g->memory ? QN_OK : qn__destroyed("graph");
}

const qn_graph_view *qn_graph_inspect(const qn_graph *g)
{
  return qn__graph_alive(g) ? NULL : &g->view;
}

int qn_graph_pointers(const qn_graph *g)
{
  return qn__graph_alive(g) ? 0 : (int)g->view.n_pointers;
}

/* In a single-op graph without names the role names serve. */
int qn_graph_index(const qn_graph *g, const char *name)
{
  if (qn__graph_alive(g) || !name) return -1;
  const qn_graph_view *v = &g->view;
  int32_t value = -1;
  for (uint32_t i = 0; i < v->n_values && value < 0 && name[0]; i++)
    if (!strcmp(v->name[i], name)) value = (int32_t)i;
  if (g->single) {
    const qn_op_info *op = qn_op_find(v->op[0].op);
    for (uint32_t r = 0; r < op->n_roles && value < 0; r++)
      if (!strcmp(op->role[r].name, name) && v->op[0].first[r] < v->op[0].first[r + 1])
        value = v->op[0].arg[v->op[0].first[r]];
  }
  for (uint32_t i = 0; i < v->n_pointers && value >= 0; i++)
    if (v->pointer[i] == value) return (int)i;
  return -1;
}

/* ---- checking a whole graph --------------------------------------------------------------- */

enum { UNMADE = -2, WANTED = -2 };      /* markers used while a graph is checked: as a producer, and as an output's last user */

const char *qn__value_name(const qn_graph_view *v, int32_t i, qn__value_text buffer)
{
  if (v->name[i][0]) return v->name[i];
  snprintf(buffer, sizeof(qn__value_text), "value %d", (int)i);
  for (uint32_t o = 0; o < v->n_ops; o++) {
    const qn_op_info *op = qn_op_find(v->op[o].op);
    for (uint32_t r = 0; r < op->n_roles; r++)
      for (int32_t k = v->op[o].first[r]; k < v->op[o].first[r + 1]; k++) {
        if (v->op[o].arg[k] != i) continue;
        snprintf(buffer, sizeof(qn__value_text), "%s: %s", op->name, op->role[r].name);
        return buffer;
      }
  }
  return buffer;
}

static qn_status check_alignment(const qn_graph_view *v, int32_t i, qn_value *value)
{
  qn__value_text buffer;
  uint32_t bytes = (uint32_t)qn_dtype_bytes(value->dtype);
  if (value->align == 0) value->align = 16;
  if (value->align > 16 || (value->align & (value->align - 1)))
    return qn__fail(QN_BAD_ARGUMENT, "%s: alignment is %u; must be 1, 2, 4, 8 or 16", qn__value_name(v, i, buffer), value->align);
  if (value->align < bytes)
    return qn__fail(QN_BAD_ARGUMENT, "%s: alignment is %u; %s needs %u", qn__value_name(v, i, buffer), value->align,
                    qn_dtype_name(value->dtype), bytes);
  return QN_OK;
}

static void begin_value(qn_value *value, double literal)
{
  value->flags &= QN_VALUE_HOST;
  value->producer = value->flags & QN_VALUE_HOST ? -1 : UNMADE;
  value->last_user = -1;
  value->scalar = !(value->flags & QN_VALUE_HOST) ? QN_SCALAR_OTHER
                : literal == 0 ? QN_SCALAR_ZERO : literal == 1 ? QN_SCALAR_ONE : QN_SCALAR_OTHER;
  if (value->rank < 0 || value->rank > QN_MAX_RANK) return;       /* to be inferred, or its op will refuse it */
  for (int i = value->rank; i < QN_MAX_RANK; i++) {
    value->dim[i] = 1;
    value->stride[i] = 0;
  }
  for (int i = 0; i < value->rank; i++)         /* an empty tensor's strides mean nothing and could overflow */
    if (value->dim[i] == 0) qn__default_strides(value, NULL);
}

static qn_status settle_op(qn_graph_view *v, int32_t o)
{
  qn_node *node = (qn_node *)&v->op[o];
  qn_value *value = (qn_value *)v->value;
  const qn_op_info *op = qn_op_find(node->op);
  int32_t inputs = node->first[op->n_inputs], all = node->first[op->n_roles];
  qn__value_text buffer;
  for (int32_t k = 0; k < inputs; k++)
    if (value[node->arg[k]].producer == UNMADE)
      return qn__fail(QN_BAD_ARGUMENT, "%s: reads %s, which is no input and made by no op before it", op->name,
                      qn__value_name(v, node->arg[k], buffer));
  for (int32_t k = inputs; k < all; k++) {
    qn_value *out = &value[node->arg[k]];
    if (out->producer != UNMADE)
      return qn__fail(QN_BAD_ARGUMENT, "%s: writes %s, which %s", op->name, qn__value_name(v, node->arg[k], buffer),
                      out->producer < 0 ? "is an input" : "an op before it has made");
    out->producer = o;
    if (!out->dtype || out->rank < 0) out->last_user = WANTED;
  }
  uint8_t rank[QN_MAX_ROLES];             /* an operand may get leading ones, but not if others know it without them */
  for (int32_t k = 0; k < inputs && k < QN_MAX_ROLES; k++) rank[k] = (uint8_t)value[node->arg[k]].rank;
  qn_status status = qn__infer(op, (void *)node->attr, node, value);
  if (status) return status;
  for (int32_t k = 0; k < inputs && op->family == QN_FAMILY_POINTWISE; k++) {
    const qn_value *arg = &value[node->arg[k]];
    if (arg->rank != rank[k] && (arg->producer >= 0 || arg->last_user >= 0))
      return qn__fail(QN_BAD_ARGUMENT, "%s: reads %s, of rank %d, among tensors of rank %d, and an op before it %s it: give it %d leading "
                      "dims of 1", op->name, qn__value_name(v, node->arg[k], buffer), (int)rank[k], (int)arg->rank,
                      arg->producer >= 0 ? "makes" : "reads", (int)arg->rank - rank[k]);
  }
  for (int32_t k = 0; k < all; k++) {
    qn_value *arg = &value[node->arg[k]];
    if (k < inputs) arg->last_user = o;
    else if (arg->last_user == WANTED) {
      qn__default_strides(arg, qn__layout_model(op, node, value, k));
      arg->last_user = -1;
    }
    if ((status = check_alignment(v, node->arg[k], arg))) return status;
  }
  return QN_OK;
}

/* An output that takes an input's memory must be the only one, of the same dtype, dims and strides, with no reader of the input after
 * it. During checking the input's own `over` holds that output: a first pass (named false) sets it, a second relies on it. */
static qn_status check_over(const qn_graph_view *v, int32_t i, bool named)
{
  qn_value *out = (qn_value *)&v->value[i], *in = (qn_value *)&v->value[out->over];
  const char *why = in->producer >= 0 || in->flags & QN_VALUE_HOST ? "which is no input tensor"
                  : in->over >= 0 && in->over != i ? "and so is another output"
                  : named && !qn__same_place(out, in) ? "but differs from it in dtype, dims or strides"
                  : named && in->last_user > out->producer ? "which a later op reads" : NULL;
  qn__value_text a, b;
  if (why)
    return qn__fail(QN_BAD_ARGUMENT, "%s: is to take the memory of %s, %s", qn__value_name(v, i, a), qn__value_name(v, out->over, b), why);
  in->over = i;
  if (named) {
    out->align = in->align;
    memcpy(out->stride, in->stride, sizeof out->stride);
  }
  return QN_OK;
}

/* An op that overwrites one of its inputs may read it only in a role paired with the output, at the same list position. */
static qn_status check_lending(const qn_graph_view *v, int32_t o)
{
  const qn_node *node = &v->op[o];
  const qn_op_info *op = qn_op_find(node->op);
  for (uint32_t r = 0; r < op->n_inputs; r++)
    for (int32_t k = node->first[r]; k < node->first[r + 1]; k++) {
      int32_t out = v->value[node->arg[k]].over, w = op->role[r].paired;
      if (out < 0 || v->value[out].producer != o) continue;
      int32_t at = w < 0 ? -1 : node->first[w] + k - node->first[r];
      if (w >= 0 && at < node->first[w + 1] && node->arg[at] == out) continue;
      qn__value_text name;
      return qn__fail(QN_BAD_ARGUMENT, "%s: may not take the memory of %s, which %s may still read when it writes there",
                      qn__value_name(v, out, name), op->role[r].name, op->name);
    }
  return QN_OK;
}

qn_status qn__graph_finish(qn_graph *g)
{
  qn_graph_view *v = &g->view;
  qn_value *value = (qn_value *)v->value;
  qn__value_text buffer;
  qn_status status;
  for (uint32_t i = 0; i < v->n_values; i++) begin_value(&value[i], v->literal[i]);
  for (uint32_t i = 0; i < v->n_ins; i++) {
    qn_value *in = &value[v->pointer[i]];
    if (in->producer != UNMADE && !(in->flags & QN_VALUE_HOST))
      return qn__fail(QN_BAD_ARGUMENT, "%s: stands twice among the inputs", qn__value_name(v, v->pointer[i], buffer));
    in->producer = -1;
    if ((status = check_alignment(v, v->pointer[i], in))) return status;
  }
  for (uint32_t o = 0; o < v->n_ops; o++)
    if ((status = settle_op(v, (int32_t)o))) return status;
  for (uint32_t i = v->n_ins; i < v->n_pointers; i++) {
    qn_value *out = &value[v->pointer[i]];
    if (out->producer < 0)
      return qn__fail(QN_BAD_ARGUMENT, "%s: is an output, but no op makes it", qn__value_name(v, v->pointer[i], buffer));
    if (out->flags & QN_VALUE_ESCAPE)
      return qn__fail(QN_BAD_ARGUMENT, "%s: stands twice among the outputs", qn__value_name(v, v->pointer[i], buffer));
    out->flags |= QN_VALUE_ESCAPE;
  }
  for (uint32_t i = 0; i < v->n_values; i++) {
    if (value[i].producer == UNMADE)
      return qn__fail(QN_BAD_ARGUMENT, "%s: is no input and made by no op", qn__value_name(v, (int32_t)i, buffer));
    if (value[i].producer == -1 && value[i].last_user == -1)
      return qn__fail(QN_BAD_ARGUMENT, "%s: is an input, but no op reads it", qn__value_name(v, (int32_t)i, buffer));
    if (value[i].over >= 0 && !(value[i].flags & QN_VALUE_ESCAPE))
      return qn__fail(QN_BAD_ARGUMENT, "%s: takes another's memory, which only an output may", qn__value_name(v, (int32_t)i, buffer));
  }
  for (int named = 0; named < 2; named++)
    for (uint32_t i = v->n_ins; i < v->n_pointers; i++)
      if (value[v->pointer[i]].over >= 0 && (status = check_over(v, v->pointer[i], named))) return status;
  for (uint32_t o = 0; o < v->n_ops; o++)
    if ((status = check_lending(v, (int32_t)o))) return status;
  for (uint32_t i = 0; i < v->n_values; i++)
    if (value[i].producer < 0) value[i].over = -1;
  return QN_OK;
}

/* ---- from arrays -------------------------------------------------------------------------- */

static bool is_keyword(const char *s, size_t n)
{
  static const char *const words[] = { "in", "out", "over", "inf", "nan" };
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strlen(words[i]) == n && !memcmp(words[i], s, n)) return true;
  for (uint32_t d = 1; d < QN_DTYPE_COUNT; d++)
    if (strlen(qn_dtype_name(d)) == n && !memcmp(qn_dtype_name(d), s, n)) return true;
  return false;
}

bool qn__is_name(const char *s, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || s[i] == '_';
    if (!letter && !(i > 0 && s[i] >= '0' && s[i] <= '9')) return false;
  }
  return n > 0 && !is_keyword(s, n);
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

static qn_status check_names(const qn_graph_view *v)
{
  const char **sorted = qn__alloc(v->n_values * sizeof *sorted);
  qn_status status = sorted ? QN_OK : qn__fail(QN_NO_MEMORY, "no memory for a graph of %u ops", v->n_ops);
  uint32_t n = 0;
  for (uint32_t i = 0; i < v->n_values && !status; i++)
    if (v->name[i] && v->name[i][0]) sorted[n++] = v->name[i];
  if (n) qsort(sorted, n, sizeof *sorted, by_text);
  for (uint32_t i = 1; i < n && !status; i++)
    if (!strcmp(sorted[i - 1], sorted[i])) status = qn__fail(QN_BAD_ARGUMENT, "graph: two values are called %s", sorted[i]);
  qn__free(sorted);
  return status;
}

const char *qn__literal_refused(const qn_role_info *role, double number)
{
  if (role->class_ == 'b' && number != 0 && number != 1) return "is no truth value; 0 and 1 are";
  const bool whole = number >= -0x1p63 && number < 0x1p63 && number == (double)(int64_t)number;
  if (role->class_ == 'k' && !whole) return "is no whole number of 64 bits";
  return NULL;
}

/* Checks what is needed to copy the arrays safely; qn__graph_finish checks the meaning. */
static qn_status measure(const qn_graph_view *v, qn__graph_sizes *n)
{
  const uint32_t most = 1u << 28;
  if (v->struct_size < sizeof *v)
    return qn__fail(QN_BAD_ARGUMENT, "graph: struct_size is %llu; must be %zu", (unsigned long long)v->struct_size, sizeof *v);
  if (v->n_ops < 1 || v->n_ops > most || v->n_values > most || v->n_pointers > most || v->n_ins > v->n_pointers)
    return qn__fail(QN_BAD_ARGUMENT, "graph: %u ops, %u values, %u pointers of which %u are inputs; must be at least one op, "
                    "and no more inputs than pointers", v->n_ops, v->n_values, v->n_pointers, v->n_ins);
  if (v->n_ins == v->n_pointers)
    return qn__fail(QN_BAD_ARGUMENT, "graph: has no output, so nothing would be computed; mark at least one result with \"out\"");
  if (!v->op || (v->n_values && !v->value) || (v->n_pointers && !v->pointer))
    return qn__fail(QN_BAD_ARGUMENT, "graph: an array is NULL");
  *n = (qn__graph_sizes){ .ops = v->n_ops, .values = v->n_values, .pointers = v->n_pointers };
  for (uint32_t o = 0; o < v->n_ops; o++) {
    const qn_node *node = &v->op[o];
    const qn_op_info *op = qn_op_find(node->op);
    if (!op) return qn__fail(QN_BAD_ARGUMENT, "graph: op %u is of kind %u, which is no op", o, node->op);
    if (node->n_roles != op->n_roles || !node->first)
      return qn__fail(QN_BAD_ARGUMENT, "%s: %u roles are given; it has %u", op->name, node->first ? node->n_roles : 0, op->n_roles);
    if (node->first[0] < 0) return qn__fail(QN_BAD_ARGUMENT, "%s: first[0] is below 0", op->name);
    for (uint32_t r = 0; r < op->n_roles; r++)    /* before reading arg: the last entry is its length */
      if (node->first[r + 1] < node->first[r])
        return qn__fail(QN_BAD_ARGUMENT, "%s: %s: ends before it begins", op->name, op->role[r].name);
    for (uint32_t r = 0; r < op->n_roles; r++) {
      for (int32_t k = node->first[r]; k < node->first[r + 1]; k++) {
        if (!node->arg || node->arg[k] < 0 || (uint32_t)node->arg[k] >= v->n_values)
          return qn__fail(QN_BAD_ARGUMENT, "%s: %s: is a value out of range", op->name, op->role[r].name);
        const bool host = v->value[node->arg[k]].flags & QN_VALUE_HOST;
        const char *const why = host && v->literal ? qn__literal_refused(&op->role[r], v->literal[node->arg[k]]) : NULL;
        if (why) return qn__fail(QN_BAD_ARGUMENT, "%s: %s: %g %s", op->name, op->role[r].name, v->literal[node->arg[k]], why);
      }
      if (r >= op->n_inputs && node->first[r + 1] - node->first[r] > 1 && !(op->role[r].flags & QN_ROLE_LIST))
        return qn__fail(QN_BAD_ARGUMENT, "%s: %s: takes one tensor", op->name, op->role[r].name);
    }
    n->ints += op->n_roles + 1 + (size_t)(node->first[op->n_roles] - node->first[0]);
    n->attr_bytes += aligned(op->attr_bytes);
  }
  for (uint32_t i = 0; i < v->n_pointers; i++) {
    if (v->pointer[i] < 0 || (uint32_t)v->pointer[i] >= v->n_values)
      return qn__fail(QN_BAD_ARGUMENT, "graph: pointer %u is value %d; there are %u", i, (int)v->pointer[i], v->n_values);
    if (v->value[v->pointer[i]].flags & QN_VALUE_HOST)
      return qn__fail(QN_BAD_ARGUMENT, "graph: pointer %u is a host scalar; a graph's are constants, in literal[]", i);
  }
  for (uint32_t i = 0; i < v->n_values; i++) {
    const qn_value *value = &v->value[i];
    if (value->over < -1 || value->over >= (int32_t)v->n_values)
      return qn__fail(QN_BAD_ARGUMENT, "graph: value %u is over value %d; there are %u", i, (int)value->over, v->n_values);
    if (value->flags & QN_VALUE_HOST && (!v->literal || (value->dtype != QN_F64 && value->dtype != QN_BOOL) || value->rank))
      return qn__fail(QN_BAD_ARGUMENT, "graph: value %u is a host scalar; it must be f64 (a truth value: bool) of rank 0, and its "
                      "number in literal[]", i);
    const char *name = v->name ? v->name[i] : NULL;
    if (!name || !name[0]) continue;
    if (!qn__is_name(name, strlen(name)))
      return qn__fail(QN_BAD_ARGUMENT, "graph: value %u is called \"%.40s\"; a name is a letter or _, then letters, digits and _, "
                      "and no keyword or dtype", i, name);
    n->name_bytes += strlen(name) + 1;
  }
  return v->name ? check_names(v) : QN_OK;
}

/* One op, its values unnamed and in role order, each a pointer unless a literal: prints as a line. */
static bool is_single(const qn_graph_view *v)
{
  if (v->n_ops != 1) return false;
  const qn_node *node = &v->op[0];
  uint32_t n = (uint32_t)node->first[node->n_roles], p = 0;
  if (n != v->n_values) return false;
  for (uint32_t k = 0; k < n; k++) {
    if (node->arg[k] != (int32_t)k || v->name[k][0]) return false;
    if ((int32_t)k == node->first[node->n_inputs] && p != v->n_ins) return false;
    if (v->value[k].flags & QN_VALUE_HOST && (p >= v->n_pointers || v->pointer[p] != (int32_t)k)) continue;
    if (p >= v->n_pointers || v->pointer[p++] != (int32_t)k) return false;
  }
  return p == v->n_pointers;
}

qn_status qn_graph_make(const qn_graph_view *from, qn_graph **graph_p)
{
  if (!from || !graph_p) return qn__fail(QN_BAD_ARGUMENT, "%s: is NULL", from ? "graph_p" : "view");
  *graph_p = NULL;
  qn__graph_sizes sizes;
  qn_status status = measure(from, &sizes);
  if (status) return status;
  qn__graph_arrays a;
  qn_graph *g = qn__graph_new(&sizes, &a);
  if (!g) return QN_NO_MEMORY;
  qn_graph_view *v = &g->view;
  v->n_ins = from->n_ins;
  if (v->n_values) memcpy((void *)v->value, from->value, v->n_values * sizeof *v->value);
  if (v->n_values && from->literal) memcpy((void *)v->literal, from->literal, v->n_values * sizeof *v->literal);
  if (v->n_pointers) memcpy((void *)v->pointer, from->pointer, v->n_pointers * sizeof *v->pointer);
  for (uint32_t i = 0; i < v->n_values && from->name; i++) {
    if (!from->name[i] || !from->name[i][0] || v->value[i].flags & QN_VALUE_HOST) continue;     /* literals have no name */
    size_t bytes = strlen(from->name[i]) + 1;
    ((const char **)v->name)[i] = memcpy(a.names, from->name[i], bytes);
    a.names += bytes;
  }
  for (uint32_t o = 0; o < v->n_ops && !status; o++) {
    const qn_node *old = &from->op[o];
    const qn_op_info *op = qn_op_find(old->op);
    int32_t n = old->first[op->n_roles] - old->first[0];
    qn_node *node = (qn_node *)&v->op[o];
    *node = (qn_node){ .op = op->kind, .family = op->family, .attr = op->attr_bytes ? a.attr : NULL,
                       .n_roles = op->n_roles, .n_inputs = op->n_inputs, .first = a.ints, .arg = a.ints + op->n_roles + 1 };
    for (uint32_t r = 0; r <= op->n_roles; r++) a.ints[r] = old->first[r] - old->first[0];
    if (n) memcpy(a.ints + op->n_roles + 1, old->arg + old->first[0], (size_t)n * sizeof *old->arg);
    a.ints += op->n_roles + 1 + (size_t)n;
    status = qn__attr_copy(op, old->attr, a.attr);
    a.attr += aligned(op->attr_bytes);
  }
  if (!status) status = qn__graph_finish(g);
  if (status) {
    qn_graph_destroy(g);
    return status;
  }
  g->single = is_single(v);
  *graph_p = g;
  return QN_OK;
}
