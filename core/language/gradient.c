/* gradient.c -- a graph's backward half: which values lie between the loss and what it is differentiated by, then the ops in reverse, each
 * by its row of gradients.def; gradients by a value that several ops read are added.
 *
 * The graph is written as text, line by line: the forward half as it prints, then each line of the backward half, whose dims the reader of
 * problem lines infers. */
#include <stdio.h>
#include <quern/graph.h>
#include <quern/kit.h>
#include "gradient.h"

static const qn__term absent = { QN__ABSENT, 0 };

/* ---- writing lines ---------------------------------------------------------------------------- */

qn_status qn__gradient_fail(qn__gradient *g, qn_status status, const char *format, ...)
{
  char text[600];
  va_list args;
  if (g->status) return g->status;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return g->status = qn__fail(status, "%s", text);
}

static qn_status no_memory(qn__gradient *g) { return qn__gradient_fail(g, QN_NO_MEMORY, "no memory for a graph of %u ops", g->v->n_ops); }

/* Takes p over, to free it at the end; frees it at once if that fails. */
static void *kept(qn__gradient *g, void *p)
{
  void **list = p ? qn__grown(g->kept, g->n_kept, &g->cap_kept, sizeof *list) : NULL;
  if (list) {
    g->kept = list;
    return g->kept[g->n_kept++] = p;
  }
  qn__free(p);
  no_memory(g);
  return NULL;
}

void *qn__keep(qn__gradient *g, size_t bytes) { return kept(g, qn__alloc(bytes ? bytes : 1)); }

const qn_value *qn__value_of(const qn__gradient *g, qn__term t) { return (const qn_value *)g->parser.value.p + t.value; }

static qn__span name_of(const qn__gradient *g, int32_t value) { return ((const qn__span *)g->parser.name.p)[value]; }

void qn__term_add(const qn__gradient *g, qn_text *text, qn__term t)
{
  if (t.value >= 0) qn__text_add(text, "%.*s", (int)name_of(g, t.value).n, name_of(g, t.value).s);
  else if (t.value == QN__NUMBER) qn__print_number(text, t.number);
}

char *qn__new_name(qn__gradient *g)
{
  char *name = qn__keep(g, 24);
  while (name) {
    snprintf(name, 24, "g%d", ++g->names);
    if (qn__find_name(&g->parser, (qn__span){ name, strlen(name) }) < 0) break;
  }
  return name;
}

void qn__gradient_read(qn__gradient *g, qn_text *text)
{
  const bool failed = text->failed || !text->s;
  char *s = kept(g, text->s);
  *text = (qn_text){ 0 };
  if (failed) no_memory(g);
  if (!s || g->status) return;
  g->parser.p = g->parser.line_start = s;
  g->parser.end = s + strlen(s);
  const qn_status status = qn__read_statements(&g->parser, NULL);
  if (status) qn__gradient_fail(g, status, "\"%.200s\": %s", s, qn_last_error());
}

qn__term qn__gradient_line(qn__gradient *g, qn_text *text)
{
  qn_text whole = { 0 };
  const char *name = qn__new_name(g);
  qn__text_add(&whole, "%s = %s", name ? name : "", text->s && !text->failed ? text->s : "");
  whole.failed = whole.failed || text->failed;
  qn__free(text->s);
  *text = (qn_text){ 0 };
  qn__gradient_read(g, &whole);
  return g->status ? absent : (qn__term){ qn__find_name(&g->parser, (qn__span){ name, strlen(name) }), 0 };
}

qn__term qn__gradient_write(qn__gradient *g, const char *line, qn__term a, qn__term b, const qn_value *as)
{
  qn_text text = { 0 };
  for (; *line; line++) {
    if (*line != '%') qn__text_add(&text, "%c", *line);
    else if (*++line == 'a') qn__term_add(g, &text, a);
    else if (*line == 'b') qn__term_add(g, &text, b);
    else qn__output_tensor(&text, as->dtype, as);
  }
  return qn__gradient_line(g, &text);
}

qn__term qn__gradient_by(const qn__gradient *g, const qn_node *node, uint32_t r, int32_t k)
{
  const int32_t by = g->by[node->arg[node->first[r] + k]];
  return by < 0 ? absent : (qn__term){ by, 0 };
}

qn__term qn__forward(const qn__gradient *g, int32_t value)
{
  if (g->v->value[value].flags & QN_VALUE_HOST) return (qn__term){ QN__NUMBER, g->v->literal[value] };
  return (qn__term){ g->at[value], 0 };
}

/* ---- the forward half ------------------------------------------------------------------------- */

/* A copy of the view in which every value has a name: a lone op's values those of their roles, others the names that they print with. */
static void name_values(qn__gradient *g, const qn_graph *graph, qn_graph_view *v)
{
  const char **name = qn__keep(g, v->n_values * sizeof *name);
  char *made = qn__keep(g, v->n_values * (size_t)64);
  const int underscores = qn__underscores(v);
  if (!name || !made) return;
  for (uint32_t i = 0; i < v->n_values; i++, made += 64) {
    name[i] = v->name[i][0] || v->value[i].flags & QN_VALUE_HOST ? v->name[i] : made;
    snprintf(made, 64, "%.*sv%u", underscores < 40 ? underscores : 40, "________________________________________", i);
  }
  const qn_op_info *op = qn_op_find(v->op[0].op);
  for (uint32_t r = 0; graph->single && r < op->n_roles; r++)
    for (int32_t k = v->op[0].first[r]; k < v->op[0].first[r + 1]; k++) {
      const bool list = op->role[r].flags & QN_ROLE_LIST;
      char *own = (char *)name[v->op[0].arg[k]];
      if (own[0]) snprintf(own, 64, list ? "%.40s%d" : "%.40s", op->role[r].name, (int)(k - v->op[0].first[r]));
    }
  v->name = name;
}

static int32_t value_named(const qn__gradient *g, const char *name)
{
  for (uint32_t i = 0; i < g->v->n_values; i++)
    if (name && name[0] && !strcmp(g->v->name[i], name)) return (int32_t)i;
  return -1;
}

/* What depends on the values in wrt, and what leads to the loss. */
static void find_path(qn__gradient *g, int32_t loss)
{
  const qn_graph_view *v = g->v;
  for (uint32_t o = 0; o < v->n_ops; o++) {
    const qn_node *node = &v->op[o];
    bool depends = false;
    if (qn__is_flat(qn__gradient_row(node->op))) continue;
    for (int32_t k = 0; k < node->first[node->n_inputs]; k++) depends = depends || g->path[node->arg[k]] & QN__DEPENDS;
    for (int32_t k = node->first[node->n_inputs]; depends && k < node->first[node->n_roles]; k++) g->path[node->arg[k]] |= QN__DEPENDS;
  }
  g->path[loss] |= QN__LEADS | QN__LEADS_ANYHOW;
  for (uint32_t o = v->n_ops; o-- > 0; ) {
    const qn_node *node = &v->op[o];
    uint8_t leads = 0;
    for (int32_t k = node->first[node->n_inputs]; k < node->first[node->n_roles]; k++) leads |= g->path[node->arg[k]];
    leads &= QN__LEADS | QN__LEADS_ANYHOW;
    if (qn__is_flat(qn__gradient_row(node->op))) leads &= QN__LEADS_ANYHOW;
    for (int32_t k = 0; k < node->first[node->n_inputs]; k++) g->path[node->arg[k]] |= leads;
  }
}

/* Does a gradient flow through op o? */
static bool is_between(const qn__gradient *g, uint32_t o)
{
  const qn_node *node = &g->v->op[o];
  bool in = false, out = false;
  for (int32_t k = 0; k < node->first[node->n_inputs]; k++) in = in || g->path[node->arg[k]] & QN__DEPENDS;
  for (int32_t k = node->first[node->n_inputs]; k < node->first[node->n_roles]; k++) out = out || g->path[node->arg[k]] & QN__LEADS;
  return in && out && !qn__is_flat(qn__gradient_row(node->op));
}

/* Eight-bit floats are between in mixed precision, and no gradient of theirs is known. */
static void check_dtypes(qn__gradient *g, uint32_t o)
{
  const qn_node *node = &g->v->op[o];
  for (int32_t k = 0; k < node->first[node->n_roles] && !g->status; k++) {
    const int32_t i = node->arg[k];
    const uint32_t bit = QN__BIT(g->v->value[i].dtype);
    if ((g->path[i] & (QN__DEPENDS | QN__LEADS)) == (QN__DEPENDS | QN__LEADS) && !(bit & (QN__FLOATS | QN__INTEGERS | QN__BIT(QN_BOOL))))
      qn__gradient_fail(g, QN_UNSUPPORTED, "%s: %s: dtype is %s, and a gradient has f64 f32 f16 or bf16", qn_op_find(node->op)->name,
                        g->v->name[i], qn_dtype_name(g->v->value[i].dtype));
  }
}

static void write_forward(qn__gradient *g)
{
  const qn_graph_view *v = g->v;
  const char **after = qn__keep(g, v->n_ops * sizeof *after);
  qn_text text = { 0 };
  for (uint32_t o = 0; o < v->n_ops && !g->status; o++) {
    qn_text more = { 0 };
    for (int i = 0; i < g->n_asked; i++)
      if (g->asked[i].op == (int32_t)o)
        qn__text_add(&more, " %s=%s", qn_op_find(v->op[o].op)->role[g->asked[i].role].name, g->asked[i].name);
    after[o] = more.len ? kept(g, more.s) : "";
    if (more.failed) no_memory(g);
  }
  if (g->status) return;
  qn__print_lines(&text, v, after);
  qn__gradient_read(g, &text);
  for (uint32_t i = 0; i < v->n_values && !g->status; i++)
    g->at[i] = qn__find_name(&g->parser, (qn__span){ v->name[i], strlen(v->name[i]) });
  for (int i = 0; i < g->n_asked && !g->status; i++)
    g->asked[i].value = qn__find_name(&g->parser, (qn__span){ g->asked[i].name, strlen(g->asked[i].name) });
}

/* ---- the backward half ------------------------------------------------------------------------ */

static void add_gradient(qn__gradient *g, int32_t value, qn__term by)
{
  if (!(g->path[value] & QN__DEPENDS) || by.value == QN__ABSENT) return;
  by = qn__fit(g, by, &g->v->value[value]);
  if (by.value >= 0 && g->by[value] >= 0) by = qn__gradient_write(g, "add a=%a b=%b", (qn__term){ g->by[value], 0 }, by, NULL);
  if (by.value >= 0 && !g->status) g->by[value] = by.value;
}

static void write_backward(qn__gradient *g, int32_t loss)
{
  g->by[loss] = qn__gradient_write(g, "cast x=1 y=%t", absent, absent, &g->v->value[loss]).value;
  for (uint32_t o = g->v->n_ops; o-- > 0 && !g->status; ) {
    const qn_node *node = &g->v->op[o];
    qn__terms by[QN_MAX_ROLES] = { { 0 } };
    char said[600];
    if (!is_between(g, o)) continue;
    qn__gradient_of(g, (int32_t)o, by);
    for (uint32_t r = 0; r < node->n_inputs && !g->status; r++)
      for (int32_t k = 0; k < by[r].n && !g->status; k++)
        add_gradient(g, node->arg[node->first[r] + (k < node->first[r + 1] - node->first[r] ? k : 0)], by[r].t[k]);
    if (g->status != QN_BAD_ARGUMENT && g->status != QN_SYNTAX) continue;
    snprintf(said, sizeof said, "%s", qn_last_error());
    g->status = qn__fail(g->status, "the gradient of %s, which makes %s: %s", qn_op_find(node->op)->name,
                         g->v->name[node->arg[node->first[node->n_inputs]]], said);
  }
}

/* Makes the gradient by `value` an output of the graph; it is one already where another value has the same. Returns its number. */
static int32_t write_output(qn__gradient *g, int32_t value)
{
  qn__term by = { g->by[value], 0 };
  if (by.value < 0) by = qn__gradient_write(g, "cast x=0 y=%t", absent, absent, &g->v->value[value]);
  for (size_t i = 0; i < g->parser.out.n / sizeof(int32_t) && !g->status; i++)
    if (((const int32_t *)g->parser.out.p)[i] == by.value) {
      by = qn__gradient_write(g, "copy x=%a", by, absent, NULL);
      break;
    }
  qn_text text = { 0 };
  qn__text_add(&text, "out ");
  qn__term_add(g, &text, by);
  qn__gradient_read(g, &text);
  return by.value;
}

/* When no more lines are read, which would not find it by its first name: calls it d<name>, and gives it that value's strides
 * and alignment. */
static void name_output(qn__gradient *g, int32_t out, const char *of, const qn_value *v)
{
  const size_t bytes = strlen(of) + 2;
  char *name = qn__keep(g, bytes);
  if (!name) return;
  snprintf(name, bytes, "d%s", of);
  ((qn__span *)g->parser.name.p)[out] = (qn__span){ name, bytes - 1 };
  qn_value *made = (qn_value *)g->parser.value.p + out;
  qn__output_strides(v, made->stride);
  made->align = v->align;
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static qn_status differentiate(qn__gradient *g, int32_t loss, const char *const wrt[], int n, qn_graph **graph_p)
{
  const qn_value *v = g->v->value;
  const size_t bytes = g->v->n_values * sizeof(int32_t);
  g->at = qn__keep(g, bytes);
  g->by = qn__keep(g, bytes);
  g->path = qn__keep(g, g->v->n_values);
  if (g->status) return g->status;
  memset(g->by, 0xff, bytes);
  for (int i = 0; i < n; i++) {
    const int32_t value = value_named(g, wrt[i]);
    if (value < 0) return qn__gradient_fail(g, QN_BAD_ARGUMENT, "wrt[%d]: \"%.60s\" is no value of the graph", i, wrt[i] ? wrt[i] : "NULL");
    if (!(QN__FLOATS & QN__BIT(v[value].dtype)))
      return qn__gradient_fail(g, QN_BAD_ARGUMENT, "%s: dtype is %s; a gradient is by f64 f32 f16 or bf16", wrt[i],
                               qn_dtype_name(v[value].dtype));
    if (g->path[value]) return qn__gradient_fail(g, QN_BAD_ARGUMENT, "%s: stands twice in wrt", wrt[i]);
    g->path[value] = QN__DEPENDS;
  }
  find_path(g, loss);
  for (int i = 0; i < n; i++)
    if (!(g->path[value_named(g, wrt[i])] & QN__LEADS_ANYHOW))
      return qn__gradient_fail(g, QN_BAD_ARGUMENT, "%s: %s does not depend on it", wrt[i], g->v->name[loss]);
  for (uint32_t o = 0; o < g->v->n_ops && !g->status; o++) {
    if (!is_between(g, o)) continue;
    check_dtypes(g, o);
    qn__gradient_ask(g, (int32_t)o);
  }
  if (!g->status) write_forward(g);
  for (int i = 0; i < n && !g->status; i++) {
    const size_t length = strlen(wrt[i]) + 1;
    char *name = qn__keep(g, length + 1);
    if (name) snprintf(name, length + 1, "d%s", wrt[i]);
    if (name && qn__find_name(&g->parser, (qn__span){ name, length }) >= 0)
      qn__gradient_fail(g, QN_BAD_ARGUMENT, "%s: would be the gradient by %s, and is the name of a value", name, wrt[i]);
  }
  if (!g->status) write_backward(g, loss);
  int32_t *out = qn__keep(g, (size_t)n * sizeof *out);
  for (int i = 0; i < n && !g->status; i++) out[i] = write_output(g, value_named(g, wrt[i]));
  for (int i = 0; i < n && !g->status; i++) name_output(g, out[i], wrt[i], &v[value_named(g, wrt[i])]);
  return g->status ? g->status : qn__make_graph(&g->parser, graph_p);
}

qn_status qn_graph_gradient(const qn_graph *graph, const char *loss, const char *const wrt[], int n, qn_graph **graph_p)
{
  if (!loss || !wrt || !graph_p) return qn__fail(QN_BAD_ARGUMENT, "%s: is NULL", !loss ? "loss" : !wrt ? "wrt" : "graph_p");
  *graph_p = NULL;
  qn_status status = qn__graph_alive(graph);
  if (status) return status;
  if (n < 1) return qn__fail(QN_BAD_ARGUMENT, "n: is %d; must be at least 1", n);
  qn_graph_view view = graph->view;
  qn__gradient g = { .v = &view, .place = -1, .parser = { .line = 1, .graph = true } };
  name_values(&g, graph, &view);
  if (!g.status) {
    const int32_t value = value_named(&g, loss);
    const qn_value *v = value < 0 ? NULL : &view.value[value];
    if (!v) qn__gradient_fail(&g, QN_BAD_ARGUMENT, "loss: \"%.60s\" is no value of the graph", loss);
    else if (!(QN__FLOATS & QN__BIT(v->dtype)))
      qn__gradient_fail(&g, QN_BAD_ARGUMENT, "%s: dtype is %s; a loss is f64 f32 f16 or bf16", loss, qn_dtype_name(v->dtype));
    else if (qn_elements(v) != 1)
      qn__gradient_fail(&g, QN_BAD_ARGUMENT, "%s: dims are %s; a loss is one element, such as reduce_sum or reduce_mean gives", loss,
                        qn__dims(v).s);
    else
      g.status = differentiate(&g, value, wrt, n, graph_p);
  }
  qn__release_parser(&g.parser);
  for (int i = 0; i < g.n_kept; i++) qn__free(g.kept[i]);
  qn__free(g.kept);
  qn__free(g.asked);
  return g.status;
}
