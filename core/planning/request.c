/* request.c -- operations on requests: copy for a part, what sets of ops read and write, conversion to a graph, printing. */
#include "config.h"
#include "core.h"
#include <quern/kit.h>
#include <string.h>

/* Copies to *at, and moves that on. */
static void *put(char **at, const void *from, size_t bytes)
{
  void *to = memcpy(*at, from, bytes);
  *at += bytes;
  return to;
}

qn_status qn__request_copy(qn_part *p, const qn__offer *o, uint32_t n_ops)
{
  const qn_request *r = &o->request;
  const size_t values = qn__values_of(r, n_ops), graph = o->op_of ? n_ops : 0;
  size_t bytes = n_ops * sizeof(qn_node) + values * (sizeof(qn_value) + sizeof(qn_view) + 1);
  for (uint32_t i = 0; i < n_ops; i++) {
    const qn_op_info *op = qn_op_find(r->op[i].op);
    bytes += op->attr_bytes + sizeof(int32_t) * ((size_t)r->op[i].n_roles + 1 + (size_t)r->op[i].first[r->op[i].n_roles]);
  }
  if (graph) bytes += graph * sizeof(int32_t) + values * sizeof(int32_t);
  if (o->literal) bytes += values * sizeof(double);
  char *at = p->memory = qn__alloc(bytes + 1);
  if (!at) return qn__fail(QN_NO_MEMORY, "no memory for a part of the plan");
  qn_node *node = put(&at, r->op, n_ops * sizeof *node);
  p->request = *r;
  p->request.n_ops = n_ops;
  p->request.n_values = (uint32_t)values;
  p->request.op = node;
  p->request.value = put(&at, r->value, values * sizeof(qn_value));
  if (r->view) p->request.view = put(&at, r->view, values * sizeof(qn_view));
  if (o->literal) p->literal = put(&at, o->literal, values * sizeof(double));
  for (uint32_t i = 0; i < n_ops; i++)    /* attributes are whole words of 8 bytes; what is smaller comes after them */
    if (node[i].attr) node[i].attr = put(&at, node[i].attr, qn_op_find(node[i].op)->attr_bytes);
  for (uint32_t i = 0; i < n_ops; i++) {
    node[i].arg = put(&at, node[i].arg, (size_t)node[i].first[node[i].n_roles] * sizeof(int32_t));
    node[i].first = put(&at, node[i].first, ((size_t)node[i].n_roles + 1) * sizeof(int32_t));
  }
  if (graph) {
    p->op_of = put(&at, o->op_of, graph * sizeof(int32_t));
    p->value_of = put(&at, o->value_of, values * sizeof(int32_t));
  }
  p->use = (uint8_t *)at;
  return QN_OK;
}

uint32_t qn__values_of(const qn_request *r, uint32_t n_ops)
{
  int32_t most = -1;
  for (uint32_t i = 0; i < n_ops; i++)
    for (int32_t a = 0; a < r->op[i].first[r->op[i].n_roles]; a++)
      if (r->op[i].arg[a] > most) most = r->op[i].arg[a];
  return (uint32_t)(most + 1);
}

/* ---- sets of ops ---------------------------------------------------------------------------------------- */

static int32_t memory_of(const qn_request *r, int32_t v) { return r->value[v].flags & QN_VALUE_VIEW && r->view ? r->view[v].of : v; }

static bool op_reads(const qn_request *r, uint32_t i, int32_t v)
{
  for (int32_t a = 0; a < r->op[i].first[r->op[i].n_inputs]; a++)
    if (memory_of(r, r->op[i].arg[a]) == v) return true;
  return false;
}

/* The ops that op i waits for. */
static uint64_t waits_for(const qn_request *r, uint32_t i)
{
  const qn_node *op = &r->op[i];
  uint64_t set = 0;
  for (int32_t a = 0; a < op->first[op->n_roles]; a++) {
    const qn_value *v = &r->value[op->arg[a]];
    if (a < op->first[op->n_inputs]) {
      if (v->producer >= 0) set |= UINT64_C(1) << v->producer;
    } else if (v->over >= 0)
      for (uint32_t k = 0; k < r->n_ops; k++)
        if (k != i && op_reads(r, k, v->over)) set |= UINT64_C(1) << k;
  }
  return set;
}

bool qn__request_whole(const qn_request *r, uint64_t taken)
{
  uint64_t wait[QN_MAX_OPS], outside = 0;
  if (!(taken & 1) || taken & ~QN__ALL_OPS(r->n_ops)) return false;
  for (uint32_t i = 0; i < r->n_ops; i++) wait[i] = waits_for(r, i);
  for (uint64_t had = ~outside; had != outside;) {              /* the ops outside that wait for one inside */
    had = outside;
    for (uint32_t i = 0; i < r->n_ops; i++)
      if (!(taken >> i & 1) && wait[i] & (taken | outside)) outside |= UINT64_C(1) << i;
  }
  for (uint32_t i = 0; i < r->n_ops; i++)
    if (taken >> i & 1 && wait[i] & outside) return false;
  return true;
}

uint8_t qn__request_use(const qn_request *r, uint64_t taken, uint32_t v)
{
  const qn_value *value = &r->value[v];
  if (memory_of(r, (int32_t)v) != (int32_t)v) {                 /* the memory's, if it is read at all */
    bool read = false;
    for (uint32_t i = 0; i < r->n_ops && !read; i++)
      for (int32_t a = 0; a < r->op[i].first[r->op[i].n_inputs] && taken >> i & 1; a++) read = read || r->op[i].arg[a] == (int32_t)v;
    if (!read) return QN_USE_NONE;
    if (!(taken >> value->producer & 1)) return QN_USE_READ;
    return qn__request_use(r, taken, (uint32_t)memory_of(r, (int32_t)v)) == QN_USE_INSIDE ? QN_USE_INSIDE : QN_USE_READ;
  }
  bool inside = false, elsewhere = false;
  for (uint32_t i = 0; i < r->n_ops; i++)
    if (op_reads(r, i, (int32_t)v)) *(taken >> i & 1 ? &inside : &elsewhere) = true;
  if (value->producer >= 0 && taken >> value->producer & 1)
    return value->flags & QN_VALUE_ESCAPE || elsewhere || !inside || value->last_user >= (int32_t)r->n_ops ? QN_USE_WRITTEN
                                                                                                           : QN_USE_INSIDE;
  return inside ? QN_USE_READ : QN_USE_NONE;
}

static double traffic(const qn_request *r, uint64_t taken)
{
  double bytes = 0;
  for (uint32_t v = 0; v < r->n_values; v++) {
    const uint8_t use = r->value[v].flags & QN_VALUE_HOST ? QN_USE_NONE : qn__request_use(r, taken, v);
    if (use == QN_USE_READ || use == QN_USE_WRITTEN) bytes += (double)qn_elements(&r->value[v]) * (double)qn_dtype_bytes(r->value[v].dtype);
  }
  return bytes;
}

double qn__request_saves(const qn_request *r, uint64_t taken)
{
  double apart = 0;
  for (uint32_t i = 0; i < r->n_ops; i++)
    if (taken >> i & 1) apart += traffic(r, UINT64_C(1) << i);
  return apart - traffic(r, taken);
}

/* ---- as a graph ------------------------------------------------------------------------------------------- */

static bool made_here(const qn_request *r, int32_t v, uint64_t which)
{
  return r->value[v].producer >= 0 && which >> r->value[v].producer & 1;
}

/* The first op of the set that is not listed and reads nothing produced by one not listed: an anchor's producers come after it in a
 * request. */
static uint32_t next_in_order(const qn_request *r, uint64_t which, uint64_t listed)
{
  uint32_t first = QN_MAX_OPS;
  for (uint32_t i = 0; i < r->n_ops; i++) {
    if (!((which & ~listed) >> i & 1)) continue;
    bool ready = true;
    if (first == QN_MAX_OPS) first = i;
    for (int32_t a = 0; a < r->op[i].first[r->op[i].n_inputs] && ready; a++) {
      const qn_value *v = &r->value[r->op[i].arg[a]];
      ready = v->producer < 0 || !((which & ~listed) >> v->producer & 1);
    }
    if (ready) return i;
  }
  return first;
}

qn_status qn__request_graph(const qn_request *r, uint64_t which, const double *known, const char *const *name, qn_graph **out)
{
  int32_t args = 0, n = 0;
  uint64_t listed = 0;
  which &= QN__ALL_OPS(r->n_ops);
  for (uint32_t i = 0; i < r->n_ops; i++) args += which >> i & 1 ? r->op[i].first[r->op[i].n_roles] : 0;
  size_t bytes = r->n_values * (sizeof(qn_value) + sizeof(double) + sizeof(char *)) + r->n_ops * sizeof(qn_node) +
                 (3 * r->n_values + (size_t)args) * sizeof(int32_t);
  char *block = qn__alloc(bytes);
  if (!block) return qn__fail(QN_NO_MEMORY, "no memory for a problem as a graph");
  qn_value *value = (qn_value *)block;
  double *literal = (double *)(value + r->n_values);
  const char **names = (const char **)(literal + r->n_values);
  qn_node *node = (qn_node *)(names + r->n_values);
  int32_t *pointer = (int32_t *)(node + r->n_ops), *number = pointer + r->n_values,
          *of = number + r->n_values, *arg = of + r->n_values;
  qn_graph_view view = { .struct_size = sizeof view, .op = node, .value = value, .name = names, .literal = literal, .pointer = pointer };
  memset(number, 0xff, r->n_values * sizeof *number);
  for (; listed != which; view.n_ops++) {
    const uint32_t k = next_in_order(r, which, listed);
    listed |= UINT64_C(1) << k;
    node[view.n_ops] = r->op[k];
    node[view.n_ops].arg = arg;
    for (int32_t a = 0; a < r->op[k].first[r->op[k].n_roles]; a++) {
      int32_t v = r->op[k].arg[a];
      if (number[v] < 0) {
        literal[n] = known ? known[v] : r->value[v].scalar == QN_SCALAR_ZERO ? 0 : r->value[v].scalar == QN_SCALAR_ONE ? 1 : 2;
        value[n] = r->value[v];
        names[n] = name ? name[v] : NULL;
        of[n] = v;
        number[v] = n++;
      }
      *arg++ = number[v];
    }
  }
  view.n_values = (uint32_t)n;
  for (int32_t at = 0; at < n; at++) {
    value[at].over = value[at].over >= 0 ? number[value[at].over] : -1;
    value[at].flags &= ~(uint32_t)QN_VALUE_VIEW;
    if (value[at].flags & QN_VALUE_HOST) {
      if (value[at].dtype != QN_BOOL) value[at].dtype = QN_F64;
      value[at].align = 8;
    } else if (memory_of(r, of[at]) != of[at] || !made_here(r, of[at], which)) pointer[view.n_ins++] = at;
  }
  view.n_pointers = view.n_ins;
  for (int32_t at = 0; at < n; at++)
    if (memory_of(r, of[at]) == of[at] && made_here(r, of[at], which) && qn__request_use(r, which, (uint32_t)of[at]) == QN_USE_WRITTEN)
      pointer[view.n_pointers++] = at;
  qn_status status = qn_graph_make(&view, out);
  qn__free(block);
  return status;
}

void qn__request_print(qn_text *t, const qn_request *r, uint64_t which, const double *literal, const char *const *name)
{
  qn_graph *g;
  if (qn__request_graph(r, which, literal, name, &g)) {
    qn__text_add(t, "%s and what follows", qn_op_find(r->op[0].op)->name);
    return;
  }
  size_t length = qn_graph_print(g, NULL, 0);
  char *text = qn__alloc(length + 1);
  if (text) qn_graph_print(g, text, length + 1);
  else t->failed = true;
  for (char *line = text, *rest = text; text && (line = strsep(&rest, "\n"));)
    if (*line) qn__text_add(t, "%s%s", line == text ? "" : " | ", line);
  qn__free(text);
  qn_graph_destroy(g);
}
