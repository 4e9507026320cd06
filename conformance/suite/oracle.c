/* oracle.c -- one op's f64 twin: the same op and attributes with every float tensor f64 and packed, run by cpu_ref's `direct`
 * engine. It gives reference values, and on other inputs (absolute values, perturbed ones) the parts of bounds. */
#include <stdlib.h>
#include <string.h>
#include "conform.h"

struct qc_twin {
  const struct qc_node *n;
  qn_graph *graph;
  qn_plan  *plan;
  int       n_host;
};

qn_context *qc_reference_context(void)
{
  static qn_context *ctx;
  if (!ctx) {
    const char *const options[] = {"backend=cpu_ref", "tune=off", NULL};
    if (qn_context_create(options, &ctx))
      qc_tap_bail(qc_format("no reference: %s", qn_last_error()));
  }
  return ctx;
}

static bool oracle_failed(const char *what, const struct qc_node *n)
{
  qc_tap_bail(qc_format("the oracle of %s: %s: %s", n->op->name, what, qn_last_error()));
  return false;
}

/* ABSOLUTE: literals of the line lose their sign. MAP: integers are widened too, except indices, and a pad's value is 0.
 * NATIVE: nothing is widened. */
enum twin_kind { PLAIN, ABSOLUTE, MAP, NATIVE };

static bool names_places(const struct qc_node *n, int input)
{
  return n->op->role[n->in_role[input]].class_ == 'i';
}

static struct qc_twin *make_twin(const struct qc_node *n, enum twin_kind kind)
{
  int count = n->n_in + n->n_out;
  qn_value *value = qc_alloc((size_t)count * sizeof *value);
  double *literal = qc_alloc((size_t)count * sizeof *literal);
  const char **name = qc_alloc((size_t)count * sizeof *name);
  int32_t *pointer = qc_alloc((size_t)count * sizeof *pointer), *arg = qc_alloc((size_t)count * sizeof *arg);
  struct qc_twin *t = qc_alloc(sizeof *t);
  uint32_t n_pointers = 0, n_ins = 0;
  t->n = n;
  for (int i = 0; i < count; i++) {
    const struct qc_value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
    qn_value *q = &value[i];
    *q = v->q;
    arg[i] = i;
    name[i] = "";
    if ((qc_is_float(q->dtype) && kind != NATIVE) || (kind == MAP && (i >= n->n_in || !names_places(n, i))))
      q->dtype = QN_F64;
    int64_t step = 1;
    for (int k = q->rank - 1; k >= 0; k--) {
      q->stride[k] = step;
      step *= q->dim[k] > 0 ? q->dim[k] : 1;
    }
    q->align = (uint32_t)qn_dtype_bytes(q->dtype);
    q->over = -1;
    q->flags &= QN_VALUE_HOST;
    if (q->flags) {
      bool key = i < n->n_in && n->op->role[n->in_role[i]].class_ == 'k';
      literal[i] = n->compute == QN_F32 && !key ? (double)(float)v->literal : v->literal;   /* as rounded for the computation */
      if (kind == ABSOLUTE && literal[i] < 0)
        literal[i] = -literal[i];
    } else {
      pointer[n_pointers++] = i;
      n_ins += i < n->n_in;
    }
  }
  qn_node node = n->node;
  node.arg = arg;
  int32_t first[QN_MAX_ROLES + 1];
  for (uint32_t r = 0; r <= node.n_roles; r++)
    first[r] = n->node.first[r] - n->node.first[0];
  node.first = first;
  void *attr = NULL;
  if (kind == MAP && n->op->attr_bytes) {
    attr = qc_alloc(n->op->attr_bytes);
    memcpy(attr, n->attr, n->op->attr_bytes);
    for (uint32_t k = 0; k < n->op->n_attrs; k++)
      if (n->op->attr[k].type == QN_ATTR_REAL)
        memset((char *)attr + n->op->attr[k].offset, 0, sizeof(double));
    node.attr = attr;
  }
  qn_graph_view view = {.struct_size = sizeof view, .n_ops = 1, .n_values = (uint32_t)count, .n_pointers = n_pointers,
                        .n_ins = n_ins, .op = &node, .value = value, .name = name, .literal = literal, .pointer = pointer};
  char pin[64];
  snprintf(pin, sizeof pin, "%s=cpu_ref/direct", n->op->name);
  qn_context *ctx = qc_reference_context();
  if (qn_graph_make(&view, &t->graph))
    oracle_failed("its twin", n);
  if (qn_context_set(ctx, "engine", pin) || qn_plan_create(ctx, t->graph, &t->plan))
    oracle_failed("its plan", n);
  free(attr);
  free(value);
  free(literal);
  free(name);
  free(pointer);
  free(arg);
  return t;
}

struct qc_twin *qc_twin_make(const struct qc_node *n)
{
  return make_twin(n, PLAIN);
}

struct qc_twin *qc_twin_absolute(const struct qc_node *n)
{
  return make_twin(n, ABSOLUTE);
}

void qc_twin_free(struct qc_twin *t)
{
  if (!t)
    return;
  qn_plan_destroy(t->plan);
  qn_graph_destroy(t->graph);
  free(t);
}

struct execution { qn_plan *plan; void **pointer; };
static qn_status execute(void *arg)
{
  struct execution *e = arg;
  return qn_plan_execute(qc_reference_context(), e->plan, e->pointer);
}

void qc_twin_run(struct qc_twin *t, const void *const *in, void *const *out)
{
  const struct qc_node *n = t->n;
  void *pointer[64 + 64];
  int k = 0;
  for (int i = 0; i < n->n_in; i++)
    if (!(n->in[i]->q.flags & QN_VALUE_HOST))
      pointer[k++] = in && in[i] ? (void *)(uintptr_t)in[i] : n->in[i]->twin;
  for (int i = 0; i < n->n_out; i++)
    pointer[k++] = out && out[i] ? out[i] : n->out[i]->twin;
  if (qc_on_stack(execute, &(struct execution){t->plan, pointer}) || qn_context_synchronize(qc_reference_context()))
    oracle_failed("its run", n);
}

void qc_transform_bits(struct qc_node *n)
{
  struct qc_value *y = n->out[0];
  double *number[64], *from = qc_alloc((size_t)y->n * sizeof *from + 8), next = 1, pad = 0;
  for (int i = 0; i < n->n_in; i++) {
    number[i] = NULL;
    if (names_places(n, i))
      continue;
    number[i] = qc_alloc((size_t)n->in[i]->n * sizeof **number + 8);
    for (int64_t k = 0; k < n->in[i]->n; k++)
      number[i][k] = next++;
  }
  void *out[1] = {from};
  struct qc_twin *map = make_twin(n, MAP);
  qc_twin_run(map, (const void *const *)number, out);
  qc_twin_free(map);
  for (uint32_t k = 0; k < n->op->n_attrs; k++)
    if (n->op->attr[k].type == QN_ATTR_REAL)
      memcpy(&pad, (const char *)n->attr + n->op->attr[k].offset, sizeof pad);
  size_t bytes = qn_dtype_bytes(y->q.dtype);
  for (int64_t k = 0; k < y->n; k++) {
    char *to = (char *)y->raw + (size_t)k * bytes;
    int64_t source = (int64_t)from[k];
    if (!source)
      qc_encode(y->q.dtype, pad, to);
    for (int i = 0; i < n->n_in && number[i] && source > 0; source -= n->in[i++]->n)
      if (source <= n->in[i]->n)
        memcpy(to, (char *)n->in[i]->raw + (size_t)(source - 1) * bytes, bytes);
    if (y->y)
      y->y[k] = qc_decode(y->q.dtype, to);
    else
      memcpy((char *)y->twin + (size_t)k * bytes, to, bytes);
  }
  for (int i = 0; i < n->n_in; i++)
    free(number[i]);
  free(from);
}

void qc_native_bits(struct qc_node *n)
{
  void *in[64], *out[64];
  for (int i = 0; i < n->n_in; i++) {
    struct qc_value *v = n->in[i];
    size_t bytes = qn_dtype_bytes(v->q.dtype);
    in[i] = v->raw;
    if (!v->y && !v->is_input)
      memcpy(v->raw, v->twin, (size_t)v->n * bytes);
    for (int64_t k = 0; v->y && !v->is_input && k < v->n; k++)
      qc_encode(v->q.dtype, v->y[k], (char *)v->raw + (size_t)k * bytes);
  }
  for (int i = 0; i < n->n_out; i++)
    out[i] = n->out[i]->raw;
  if (!n->twin)
    n->twin = make_twin(n, NATIVE);
  qc_twin_run(n->twin, (const void *const *)in, out);
  for (int i = 0; i < n->n_out; i++) {
    struct qc_value *v = n->out[i];
    size_t bytes = qn_dtype_bytes(v->q.dtype);
    if (!v->y)
      memcpy(v->twin, v->raw, (size_t)v->n * bytes);
    for (int64_t k = 0; v->y && k < v->n; k++)
      v->y[k] = qc_decode(v->q.dtype, (char *)v->raw + (size_t)k * bytes);
  }
}
