/* notation_print.c -- writes a graph as its canonical text. What inference or defaults would supply is omitted, so
 * that the text does not change when ops gain attributes. Parsing it gives the same graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "notation.h"

typedef struct printer {
  qn_text *t;
  const qn_graph_view *v;
  bool single;
  int underscores;                      /* put before generated names, so that they differ from given ones */
  const char *const *after;             /* NULL, or what to add to each op's line */
} printer;

/* ---- tensors, numbers, names -------------------------------------------------------------- */

void qn__print_tensor(qn_text *t, const qn_value *v)
{
  static const char *const named[] = { "nhwc", "t" };
  int64_t stride[QN_MAX_RANK];
  size_t bytes = (size_t)v->rank * sizeof *stride;
  qn__text_add(t, "%s", qn_dtype_name(v->dtype));
  for (int i = 0; i < v->rank; i++) qn__text_add(t, "%c%lld", i ? 'x' : '/', (long long)v->dim[i]);
  qn__pack(v->rank, v->dim, stride, NULL);
  bool known = !memcmp(stride, v->stride, bytes);
  for (size_t i = 0; i < sizeof named / sizeof named[0] && !known; i++) {
    known = qn__layout_strides(named[i], v->rank, v->dim, stride) && !memcmp(stride, v->stride, bytes);
    if (known) qn__text_add(t, "/%s", named[i]);
  }
  for (int i = 0; i < v->rank && !known; i++) qn__text_add(t, "%c%lld", i ? ':' : '/', (long long)v->stride[i]);
  if (v->align != 16) qn__text_add(t, "@%u", v->align);
}

/* The fewest digits that read back as the same number. */
void qn__print_number(qn_text *t, double x)
{
  char text[40];
  if (x != x) {
    qn__text_add(t, "nan");
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (strtod(text, NULL) == x) break;
  }
  char point = qn__decimal_point();
  for (char *c = text; *c; c++)
    if (*c == point) *c = '.';
  qn__text_add(t, "%s", text);
}

static bool begins_alike(const char *name, int underscores)
{
  for (int i = 0; i < underscores; i++)
    if (*name++ != '_') return false;
  return name[0] == 'v' && name[1] >= '0' && name[1] <= '9';
}

int qn__underscores(const qn_graph_view *v)
{
  int n = 0;
  for (bool met = true; met; n += met) {
    met = false;
    for (uint32_t i = 0; i < v->n_values && !met; i++) met = begins_alike(v->name[i], n);
  }
  return n;
}

static void print_name(const printer *w, int32_t value)
{
  if (w->v->name[value][0]) {
    qn__text_add(w->t, "%s", w->v->name[value]);
    return;
  }
  for (int i = 0; i < w->underscores; i++) qn__text_add(w->t, "_");
  qn__text_add(w->t, "v%d", (int)value);
}

static void print_operand(const printer *w, int32_t value)
{
  const qn_value *v = &w->v->value[value];
  if (v->flags & QN_VALUE_HOST) qn__print_number(w->t, w->v->literal[value]);
  else if (w->single) qn__print_tensor(w->t, v);
  else print_name(w, value);
}

/* ---- what may be omitted ------------------------------------------------------------------ */

/* A copy of an op's arguments, on which to try what inference gives. */
typedef struct trial {
  const qn_op_info *op;
  qn_node   node;
  const qn_value *right;                /* the arguments as they are */
  qn_value *value;                      /* the arguments as tried */
  uint32_t  wanted;                     /* bit: this output role is tried as inferred */
  char     *attr;                       /* the attributes without those omitted */
  char     *scratch;
  const void *right_attr;
} trial;

static bool same_value(const qn_value *a, const qn_value *b)
{
  return a->dtype == b->dtype && a->rank == b->rank && !memcmp(a->dim, b->dim, sizeof a->dim)
      && !memcmp(a->stride, b->stride, sizeof a->stride);
}

/* Does inference with these attributes, and these outputs to infer, give the graph's arguments? */
static bool comes_out(const trial *t)
{
  const int32_t *first = t->node.first;
  memcpy(t->value, t->right, (size_t)first[t->op->n_roles] * sizeof *t->value);
  if (t->op->attr_bytes) memcpy(t->scratch, t->attr, t->op->attr_bytes);
  for (uint32_t r = t->op->n_inputs; r < t->op->n_roles; r++)
    for (int32_t k = first[r]; k < first[r + 1] && t->wanted >> r & 1; k++) t->value[k] = (qn_value){ .rank = -1 };
  if (!qn__infers(t->op, t->scratch, &t->node, t->value)) return false;
  for (uint32_t r = t->op->n_inputs; r < t->op->n_roles; r++)
    for (int32_t k = first[r]; k < first[r + 1] && t->wanted >> r & 1; k++) {
      qn_value *v = &t->value[k];
      qn__default_strides(v, qn__layout_model(t->op, &t->node, t->value, k));
      for (int i = v->rank; i < QN_MAX_RANK; i++) v->stride[i] = 0;
      if (!same_value(v, &t->right[k]) || t->right[k].align != 16) return false;
    }
  return !t->op->attr_bytes || !memcmp(t->scratch, t->right_attr, t->op->attr_bytes);
}

/* ---- attributes --------------------------------------------------------------------------- */

static int64_t entry(const void *attr, uint32_t offset, int i)
{
  int64_t value;
  memcpy(&value, (const char *)attr + offset + 8 * i, sizeof value);
  return value;
}

void qn__print_attribute(qn_text *t, const qn_attr_info *a, const qn_node *node, const qn_value *value)
{
  qn__text_add(t, " %s=", a->name);
  if (a->type == QN_ATTR_REAL) {
    double x;
    memcpy(&x, (const char *)node->attr + a->offset, sizeof x);
    qn__print_number(t, x);
    return;
  }
  if (a->type == QN_ATTR_AXES) {
    const char *comma = "";
    for (int i = 0; i < QN_MAX_RANK; i++) {
      if (!(entry(node->attr, a->offset, 0) >> i & 1)) continue;
      qn__text_add(t, "%s%d", comma, i);
      comma = ",";
    }
    return;
  }
  int n;
  const char *word = a->words ? qn__word(a->words, entry(node->attr, a->offset, 0), &n) : NULL;
  if (word) {
    qn__text_add(t, "%.*s", n, word);
    return;
  }
  n = qn__attr_entries(a, node, value);
  bool alike = !a->identity;
  for (int i = 1; i < n; i++)
    alike = alike && entry(node->attr, a->offset, i) == entry(node->attr, a->offset, 0)
                  && (!a->offset2 || entry(node->attr, a->offset2, i) == entry(node->attr, a->offset2, 0));
  for (int i = 0; i < (alike ? 1 : n); i++) {
    long long before = entry(node->attr, a->offset, i), after = a->offset2 ? entry(node->attr, a->offset2, i) : before;
    qn__text_add(t, "%s%lld", i ? "," : "", before);
    if (after != before) qn__text_add(t, ":%lld", after);
  }
}

/* ---- ops ---------------------------------------------------------------------------------- */

static void set_attribute(trial *t, const qn_attr_info *a, const void *from)
{
  size_t bytes = 8 * (size_t)qn__attr_capacity(a);
  memcpy(t->attr + a->offset, (const char *)from + a->offset, bytes);
  if (a->offset2) memcpy(t->attr + a->offset2, (const char *)from + a->offset2, bytes);
}

/* The input role whose memory output value k takes, in an op line; a line's values are its arguments, in order. */
static const char *donor(const trial *t, const qn_node *node, int32_t k)
{
  uint32_t r = 0;
  while (node->first[r + 1] <= t->right[k].over) r++;
  return t->op->role[r].name;
}

static void print_item(const printer *w, const trial *t, const qn_node *node, int32_t k)
{
  if (w->single && t->right[k].over >= 0) qn__text_add(w->t, "%s", donor(t, node, k));
  else qn__print_tensor(w->t, &t->right[k]);
}

static void print_output_list(const printer *w, const trial *t, const qn_node *node, uint32_t r, bool wanted, bool placed)
{
  const qn_role_info *role = &t->op->role[r];
  const bool named = !w->single && r == t->op->n_inputs;        /* the names stand before the op */
  bool alike = w->single;                 /* all outputs take the memory of one role */
  if (named && (wanted || placed)) return;
  if (w->single && wanted) {
    if (role->flags & QN_ROLE_OPTIONAL) qn__text_add(w->t, " %s=?", role->name);
    return;
  }
  for (int32_t k = node->first[r]; k < node->first[r + 1]; k++)
    alike = alike && t->right[k].over >= 0 && donor(t, node, k) == donor(t, node, node->first[r]);
  qn__text_add(w->t, " %s=%s", role->name, alike ? "" : "[");
  for (int32_t k = node->first[r]; k < (alike ? node->first[r] + 1 : node->first[r + 1]); k++) {
    if (k > node->first[r]) qn__text_add(w->t, ",");
    if (w->single) {
      print_item(w, t, node, k);
      continue;
    }
    if (!named) print_name(w, node->arg[k]);
    if (wanted) continue;
    if (!named) qn__text_add(w->t, ":");
    qn__print_tensor(w->t, &t->right[k]);
  }
  if (!alike) qn__text_add(w->t, "]");
}

static void print_output(const printer *w, const trial *t, const qn_node *node, uint32_t r, bool placed)
{
  const qn_role_info *role = &t->op->role[r];
  int32_t k = node->first[r];
  bool first = r == t->op->n_inputs, wanted = t->wanted >> r & 1;
  if (role->flags & QN_ROLE_LIST) {
    print_output_list(w, t, node, r, wanted, placed);
    return;
  }
  if (w->single && placed) {
    qn__text_add(w->t, " %s=%s", role->name, donor(t, node, k));
    return;
  }
  if (w->single || first) {
    if (wanted && role->flags & QN_ROLE_OPTIONAL) qn__text_add(w->t, " %s=?", role->name);
    if (wanted || placed) return;
    qn__text_add(w->t, " %s=", role->name);
    qn__print_tensor(w->t, &t->right[k]);
    return;
  }
  qn__text_add(w->t, " %s=", role->name);
  print_name(w, node->arg[k]);
  if (wanted) return;
  qn__text_add(w->t, ":");
  qn__print_tensor(w->t, &t->right[k]);
}

/* inherits: the line says that the first output is over an input, whose dtype, dims and strides it takes. */
static void print_op(const printer *w, const qn_node *node, bool inherits)
{
  const qn_op_info *op = qn_op_find(node->op);
  size_t n = (size_t)node->first[op->n_roles];
  qn_value *copies = qn__alloc(2 * n * sizeof *copies + n * sizeof(int32_t) + 2 * op->attr_bytes + sizeof(double));
  if (!copies) {
    w->t->failed = true;
    return;
  }
  char *attr = (char *)(copies + 2 * n);
  int32_t *arg = (int32_t *)(attr + 2 * op->attr_bytes);
  for (size_t k = 0; k < n; k++) {
    copies[k] = w->v->value[node->arg[k]];
    if (copies[k].flags & QN_VALUE_HOST && copies[k].dtype != QN_BOOL) copies[k].dtype = QN_F64;  /* the dtype its literal is read as */
    arg[k] = (int32_t)k;
  }
  trial t = { .op = op, .node = *node, .right = copies, .value = copies + n, .attr = attr,
              .scratch = attr + op->attr_bytes, .right_attr = node->attr };
  t.node.arg = arg;
  if (op->attr_bytes) memcpy(t.attr, node->attr, op->attr_bytes);

  qn__text_add(w->t, "%s", op->name);
  for (uint32_t r = 0; r < op->n_inputs; r++) {
    if (node->first[r] == node->first[r + 1]) continue;
    bool list = op->role[r].flags & QN_ROLE_LIST;
    qn__text_add(w->t, " %s=%s", op->role[r].name, list ? "[" : "");
    for (int32_t k = node->first[r]; k < node->first[r + 1]; k++) {
      if (k > node->first[r]) qn__text_add(w->t, ",");
      print_operand(w, node->arg[k]);
    }
    if (list) qn__text_add(w->t, "]");
  }
  for (uint32_t r = op->n_inputs; r < op->n_roles; r++) {
    if (node->first[r] == node->first[r + 1]) continue;
    bool placed = false;
    for (int32_t k = node->first[r]; k < node->first[r + 1]; k++)
      placed = placed || (copies[k].over >= 0 && (w->single || (r == op->n_inputs && inherits)));
    if (!placed) {
      t.wanted |= 1u << r;
      if (!comes_out(&t)) t.wanted &= ~(1u << r);
    }
    print_output(w, &t, node, r, placed);
  }
  for (uint32_t k = 0; k < op->n_attrs; k++) {  /* omit it if the default, with those omitted before, gives the same */
    set_attribute(&t, &op->attr[k], op->attr_default);
    if (comes_out(&t)) continue;
    set_attribute(&t, &op->attr[k], node->attr);
    qn__print_attribute(w->t, &op->attr[k], node, w->v->value);
  }
  qn__free(copies);
}

/* ---- graphs ------------------------------------------------------------------------------- */

static void print_over(const printer *w, int32_t value)
{
  if (w->v->value[value].over < 0) return;
  qn__text_add(w->t, " over ");
  print_name(w, w->v->value[value].over);
}

/* Outputs are printed in pointer order: with their op if it is their turn then, else in a later line of their own. */
static void print_graph(const printer *w)
{
  const qn_graph_view *v = w->v;
  for (uint32_t i = 0; i < v->n_ins; i++) {
    qn__text_add(w->t, "%sin ", i ? " | " : "");
    print_name(w, v->pointer[i]);
    qn__text_add(w->t, " ");
    qn__print_tensor(w->t, &v->value[v->pointer[i]]);
  }
  uint32_t next = v->n_ins;
  for (uint32_t o = 0; o < v->n_ops; o++) {
    const qn_node *node = &v->op[o];
    int32_t made = node->arg[node->first[node->n_inputs]];
    const int32_t n_made = node->first[node->n_inputs + 1] - node->first[node->n_inputs];
    bool out = n_made == 1 && next < v->n_pointers && v->pointer[next] == made;
    qn__text_add(w->t, "%s%s", v->n_ins || o ? " | " : "", out ? "out " : "");
    for (int32_t k = 0; k < n_made; k++) {
      qn__text_add(w->t, "%s", k ? "," : n_made > 1 ? "[" : "");
      print_name(w, node->arg[node->first[node->n_inputs] + k]);
    }
    if (n_made > 1) qn__text_add(w->t, "]");
    if (out) print_over(w, made);
    qn__text_add(w->t, " = ");
    print_op(w, node, out && v->value[made].over >= 0);
    if (w->after) qn__text_add(w->t, "%s", w->after[o]);
    for (next += out; next < v->n_pointers && v->value[v->pointer[next]].producer <= (int32_t)o; next++) {
      qn__text_add(w->t, " | out ");
      print_name(w, v->pointer[next]);
      print_over(w, v->pointer[next]);
    }
  }
}

void qn__print_lines(qn_text *t, const qn_graph_view *v, const char *const *after)
{
  print_graph(&(printer){ .t = t, .v = v, .after = after });
}

size_t qn_graph_print(const qn_graph *graph, char *text, size_t bytes)
{
  qn_text t = { 0 };
  if (qn__graph_alive(graph)) return qn__text_out(&t, text, bytes);
  printer w = { .t = &t, .v = &graph->view, .single = graph->single };
  if (w.single) print_op(&w, &w.v->op[0], false);
  else {
    w.underscores = qn__underscores(w.v);
    print_graph(&w);
  }
  return qn__text_out(&t, text, bytes);
}
