/* request.c -- operations on requests: copy for a part, conversion to a graph, printing. */
#include "config.h"
#include "core.h"
#include <string.h>

qn_status qn__request_copy(qn_part *p, const qn_request *r)
{
  size_t bytes = r->n_ops * sizeof(qn_node) + r->n_values * sizeof(qn_value);
  for (uint32_t i = 0; i < r->n_ops; i++) {
    const qn_op_info *op = qn_op_find(r->op[i].op);
    bytes += (size_t)op->attr_bytes + 8;
    bytes += sizeof(int32_t) * ((size_t)r->op[i].n_roles + 1 + (size_t)r->op[i].first[r->op[i].n_roles]);
  }
  char *at = p->memory = qn__alloc(bytes + 8 * r->n_ops + 16);
  if (!at) return qn__fail(QN_NO_MEMORY, "no memory for a part of the plan");
  qn_node *node = (qn_node *)at;
  at += r->n_ops * sizeof *node;
  memcpy(node, r->op, r->n_ops * sizeof *node);
  p->request = *r;
  p->request.op = node;
  p->request.value = memcpy(at, r->value, r->n_values * sizeof(qn_value));
  at += r->n_values * sizeof(qn_value);
  for (uint32_t i = 0; i < r->n_ops; i++) {
    size_t attr = qn_op_find(node[i].op)->attr_bytes;
    if (attr) node[i].attr = memcpy(at, node[i].attr, attr);
    at += (attr + 7) / 8 * 8;
  }
  for (uint32_t i = 0; i < r->n_ops; i++) {
    size_t n = node[i].n_roles + 1, args = (size_t)node[i].first[node[i].n_roles];
    node[i].first = memcpy(at, node[i].first, n * sizeof(int32_t));
    at += n * sizeof(int32_t);
    node[i].arg = memcpy(at, node[i].arg, args * sizeof(int32_t));
    at += args * sizeof(int32_t);
  }
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

/* Is v produced by an op of index `from` or later? */
static bool made_here(const qn_request *r, const qn_value *v, uint32_t from)
{
  return v->producer >= (int32_t)from && v->producer < (int32_t)r->n_ops;
}

/* The first op from index `from` on that is not listed and reads nothing produced by one not listed: an anchor's producers come after
 * it in a request. */
static uint32_t next_in_order(const qn_request *r, uint32_t from, const uint8_t *listed)
{
  for (uint32_t i = from; i < r->n_ops; i++) {
    bool ready = !listed[i];
    for (int32_t a = 0; a < r->op[i].first[r->op[i].n_inputs] && ready; a++) {
      const qn_value *v = &r->value[r->op[i].arg[a]];
      ready = !made_here(r, v, from) || listed[v->producer];
    }
    if (ready) return i;
  }
  return from;
}

qn_status qn__request_graph(const qn_request *r, uint32_t from, const double *known, const char *const *name, qn_graph **out)
{
  int32_t args = 0, n = 0;
  for (uint32_t i = from; i < r->n_ops; i++) args += r->op[i].first[r->op[i].n_roles];
  size_t bytes = r->n_values * (sizeof(qn_value) + sizeof(double) + sizeof(char *)) + r->n_ops * sizeof(qn_node) +
                 (2 * r->n_values + (size_t)args) * sizeof(int32_t) + r->n_ops;
  char *block = qn__alloc(bytes);
  if (!block) return qn__fail(QN_NO_MEMORY, "no memory for a problem as a graph");
  qn_value *value = (qn_value *)block;
  double *literal = (double *)(value + r->n_values);
  const char **names = (const char **)(literal + r->n_values);
  qn_node *node = (qn_node *)(names + r->n_values);
  int32_t *pointer = (int32_t *)(node + r->n_ops), *number = pointer + r->n_values, *arg = number + r->n_values;
  uint8_t *listed = (uint8_t *)(arg + args);
  qn_graph_view view = { .struct_size = sizeof view, .n_ops = r->n_ops - from, .op = node, .value = value, .name = names,
                         .literal = literal, .pointer = pointer };
  memset(number, 0xff, r->n_values * sizeof *number);
  for (uint32_t i = 0; i < view.n_ops; i++) {
    uint32_t k = next_in_order(r, from, listed);
    listed[k] = 1;
    node[i] = r->op[k];
    node[i].arg = arg;
    for (int32_t a = 0; a < r->op[k].first[r->op[k].n_roles]; a++) {
      int32_t v = r->op[k].arg[a];
      if (number[v] < 0) {
        literal[n] = known ? known[v] : r->value[v].scalar == QN_SCALAR_ZERO ? 0 : r->value[v].scalar == QN_SCALAR_ONE ? 1 : 2;
        value[n] = r->value[v];
        names[n] = name ? name[v] : NULL;
        number[v] = n++;
      }
      *arg++ = number[v];
    }
  }
  view.n_values = (uint32_t)n;
  for (int32_t v = 0; v < n; v++) {
    value[v].over = value[v].over >= 0 ? number[value[v].over] : -1;
    if (value[v].flags & QN_VALUE_HOST) {
      if (value[v].dtype != QN_BOOL) value[v].dtype = QN_F64;
      value[v].align = 8;
    } else if (!made_here(r, &value[v], from)) pointer[view.n_ins++] = v;
  }
  view.n_pointers = view.n_ins;
  for (int32_t v = 0; v < n; v++)
    if (made_here(r, &value[v], from) &&
        (value[v].flags & QN_VALUE_ESCAPE || value[v].last_user < (int32_t)from || value[v].last_user >= (int32_t)r->n_ops))
      pointer[view.n_pointers++] = v;
  qn_status status = qn_graph_make(&view, out);
  qn__free(block);
  return status;
}

void qn__request_print(qn_text *t, const qn_request *r, const double *literal, const char *const *name)
{
  qn_graph *g;
  if (qn__request_graph(r, 0, literal, name, &g)) {
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
