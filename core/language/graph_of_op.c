/* graph_of_op.c -- a graph of one op from a call's tensors and attributes: what they must be, which memory they share, and the outputs that
 * the call would have (qn_infer). */
#include <string.h>
#include <quern/kit.h>
#include "problem.h"

/* What an op's rules look at, of a tensor of which nothing else need be known. open: an output, which may leave dtype or dims open. */
static qn_status outline(const qn_op_info *op, const char *name, const qn_tensor *t, bool open, qn_value *v)
{
  if (t->reserved[0] || t->reserved[1] || t->reserved[2])
    return qn__fail(QN_BAD_ARGUMENT, "%s: %s: its reserved words are not 0; begin with qn_tensor_make or with zeros", op->name, name);
  if (t->flags & ~QN_HOST)
    return qn__fail(QN_BAD_ARGUMENT, "%s: %s: flags are %#x; accepted: QN_HOST or 0", op->name, name, t->flags);
  if (t->rank < (open ? -1 : 0) || t->rank > QN_MAX_RANK)
    return qn__fail(QN_BAD_ARGUMENT, "%s: %s: rank is %d; must be 0 to %d", op->name, name, (int)t->rank, QN_MAX_RANK);
  if (!(open && t->dtype == QN_DTYPE_NONE) && !qn_dtype_bytes(t->dtype))
    return qn__fail(QN_BAD_ARGUMENT, "%s: %s: dtype is %u, which is no dtype", op->name, name, (unsigned)t->dtype);
  *v = (qn_value){ .dtype = t->dtype, .rank = t->rank, .over = -1, .flags = t->flags & QN_HOST ? QN_VALUE_HOST : 0 };
  for (int i = 0; i < t->rank; i++) {
    v->dim[i] = t->dim[i];
    v->stride[i] = t->stride[i];
  }
  return QN_OK;
}

static qn_status argument(const qn_op_info *op, const char *name, const qn_tensor *t, qn_value *v, double *literal)
{
  qn_status status = outline(op, name, t, false, v);
  if (status) return status;
  bool empty = false;
  for (int i = 0; i < t->rank; i++) empty = empty || t->dim[i] == 0;
  if (!t->data && !empty) return qn__fail(QN_BAD_ARGUMENT, "%s: %s: data is NULL", op->name, name);
  v->align = empty ? 16 : qn__alignment(t->data);
  if (v->align < qn_dtype_bytes(t->dtype))
    return qn__fail(QN_BAD_ARGUMENT, "%s: %s: its address is a multiple of %u only; %s needs %zu", op->name, name, v->align,
                    qn_dtype_name(t->dtype), qn_dtype_bytes(t->dtype));
  if (t->flags & QN_HOST) v->align = (uint32_t)qn_dtype_bytes(t->dtype);      /* the next call's may have any address */
  if (t->flags & QN_HOST && t->rank == 0) {
    *literal = qn_load_f64(t->data, t->dtype);
    /* f64 rounds it up past i64's largest, which could not be read back */
    if (t->dtype == QN_I64 && *literal == 0x1p63) *literal = 0x1.fffffffffffffp62;
  }
  return QN_OK;
}

/* The j-th output of role w shares memory with argument k of role r: refused unless that is allowed. */
static qn_status check_shared(const qn_op_info *op, const qn_op *call, const qn_graph_view *v, uint32_t w, int32_t j, uint32_t r, int32_t k)
{
  const qn_node *node = &v->op[0];
  const qn_value *out = &v->value[node->first[w] + j], *other = &v->value[node->first[r] + k];
  const qn_tensor *t = &call->arg[w].t[j], *u = &call->arg[r].t[k];
  if (!qn__views_meet(out, (uintptr_t)t->data, other, (uintptr_t)u->data)) return QN_OK;
  const char *name = op->role[w].name, *other_name = op->role[r].name;
  if (r >= op->n_inputs)
    return qn__fail(QN_BAD_ARGUMENT, "%s: %s: shares memory with %s; outputs must lie apart", op->name, name, other_name);
  if (!qn__may_lend(op, r, w) || j != k)
    return qn__fail(QN_BAD_ARGUMENT, "%s: %s: shares memory with %s; it must lie apart", op->name, name, other_name);
  if (u->data != t->data || !qn__same_place(out, other) || other->flags & QN_VALUE_HOST)
    return qn__fail(QN_BAD_ARGUMENT, "%s: %s: shares memory with %s but does not stand where it does; they must be alike "
                    "in address, dtype, dims and strides, or lie apart", op->name, name, other_name);
  return QN_OK;
}

/* The output that takes the memory of the k-th tensor of input role r; NULL: none. */
static qn_value *overwriter(const qn_op_info *op, const qn_op *call, qn_graph_view *v, uint32_t r, int32_t k)
{
  const int32_t *first = v->op[0].first, w = r < op->n_inputs ? op->role[r].paired : -1;
  if (w < 0 || k >= call->arg[w].n || call->arg[w].t[k].data != call->arg[r].t[k].data) return NULL;
  qn_value *out = (qn_value *)&v->value[first[w] + k];
  const qn_value *in = &v->value[first[r] + k];
  return qn__same_place(out, in) && !(in->flags & QN_VALUE_HOST) && qn_extent_bytes(in) ? out : NULL;
}

/* Shared memory: an output at exactly the place of an input that may lend it is `over` that input; all else is refused. */
static qn_status find_sharing(const qn_op_info *op, const qn_op *call, qn_graph_view *v)
{
  const qn_node *node = &v->op[0];
  qn_status status = QN_OK;
  qn__range *range = qn__alloc(v->n_values * sizeof *range);
  size_t n = 0;
  if (!range) return qn__fail(QN_NO_MEMORY, "no memory for a graph of one op");
  for (uint32_t r = 0; r < op->n_roles; r++)
    for (int32_t k = 0; k < call->arg[r].n; k++) {
      const qn_value *value = &v->value[node->first[r] + k];
      qn_value *out = overwriter(op, call, v, r, k);
      uintptr_t at = (uintptr_t)call->arg[r].t[k].data;
      if (!out) range[n++] = (qn__range){ at, (at + (uint64_t)qn_extent_bytes(value)) << 1 | (r >= op->n_inputs) };
      else if (out->over < 0) {
        out->over = node->first[r] + k;
        memcpy(out->stride, value->stride, sizeof out->stride);
      }
    }
  bool meet = qn__ranges_meet(range, n);
  qn__free(range);
  for (uint32_t w = op->n_inputs; w < op->n_roles && meet; w++)         /* the exact test: which tensors, and do they share an element */
    for (int32_t j = 0; j < node->first[w + 1] - node->first[w]; j++)
      for (uint32_t r = 0; r <= w; r++)
        for (int32_t k = 0; k < (r == w ? j : node->first[r + 1] - node->first[r]) && !status; k++)
          status = check_shared(op, call, v, w, j, r, k);
  return status;
}

/* open: without data, and with outputs to be inferred. */
static qn_status graph_of(const qn_op *call, bool open, qn_graph **graph_p)
{
  static const qn_tensor unknown = { .rank = -1 };
  *graph_p = NULL;
  const qn_op_info *op = qn_op_find(call->kind);
  if (!op) return qn__fail(QN_BAD_ARGUMENT, "op: kind is %u, which is no op", call->kind);
  if (call->n_args != op->n_roles || !call->arg)
    return qn__fail(QN_BAD_ARGUMENT, "%s: %u arguments are given; it has %u", op->name, call->arg ? call->n_args : 0, op->n_roles);
  size_t n = 0;
  for (uint32_t r = 0; r < op->n_roles; r++) {
    const qn_arg *arg = &call->arg[r];
    int64_t most = op->role[r].flags & QN_ROLE_LIST ? QN__MOST_IN_LIST : 1;
    if (arg->n < 0 || arg->n > most)
      return qn__fail(QN_BAD_ARGUMENT, "%s: %s: %lld tensors are given; it takes %s%lld", op->name, op->role[r].name,
                      (long long)arg->n, most > 1 ? "up to " : "", (long long)most);
    if (arg->n && !arg->t && !(open && r >= op->n_inputs)) return qn__fail(QN_BAD_ARGUMENT, "%s: %s: is NULL", op->name, op->role[r].name);
    n += (size_t)arg->n;
  }
  qn__graph_arrays a;
  qn_graph *g = qn__graph_new(&(qn__graph_sizes){ .ops = 1, .values = n, .pointers = n, .ints = op->n_roles + 1 + n,
                                              .attr_bytes = op->attr_bytes }, &a);
  if (!g) return QN_NO_MEMORY;
  qn_graph_view *v = &g->view;
  *(qn_node *)v->op = (qn_node){ .op = op->kind, .family = op->family, .attr = op->attr_bytes ? a.attr : NULL,
    .n_roles = op->n_roles, .n_inputs = op->n_inputs, .first = a.ints, .arg = a.ints + op->n_roles + 1 };
  qn_status status = qn__attr_copy(op, call->attr, a.attr);
  int32_t at = 0;
  for (uint32_t r = 0; r < op->n_roles && !status; r++) {
    a.ints[r] = at;
    if (r == op->n_inputs) v->n_ins = (uint32_t)at;
    for (int64_t k = 0; k < call->arg[r].n && !status; k++, at++) {
      a.ints[op->n_roles + 1 + (size_t)at] = at;
      ((int32_t *)v->pointer)[at] = at;
      const qn_tensor *t = call->arg[r].t ? &call->arg[r].t[k] : &unknown;
      qn_value *value = (qn_value *)&v->value[at];
      status = open ? outline(op, op->role[r].name, t, r >= op->n_inputs, value)
                    : argument(op, op->role[r].name, t, value, (double *)&v->literal[at]);
    }
  }
  a.ints[op->n_roles] = at;
  g->single = true;
  if (!status) status = qn__graph_finish(g);
  if (!status && !open) status = find_sharing(op, call, v);
  if (status) {
    qn_graph_destroy(g);
    return status;
  }
  *graph_p = g;
  return QN_OK;
}

qn_status qn__graph_of_op(const qn_op *call, qn_graph **graph_p)
{
  return graph_of(call, false, graph_p);
}

qn_status qn_infer(const qn_op *op, qn_tensor *out)
{
  qn_graph *g;
  if (!op || !out) return qn__fail(QN_BAD_ARGUMENT, "%s: is NULL", op ? "out" : "op");
  qn_status status = graph_of(op, true, &g);
  if (status) return status;
  const qn_node *node = &g->view.op[0];
  for (int32_t k = node->first[node->n_inputs]; k < node->first[node->n_roles]; k++, out++) {
    const qn_value *v = &g->view.value[k];
    *out = (qn_tensor){ .dtype = v->dtype, .rank = v->rank };
    memcpy(out->dim, v->dim, (size_t)v->rank * sizeof *v->dim);
    memcpy(out->stride, v->stride, (size_t)v->rank * sizeof *v->stride);
  }
  qn_graph_destroy(g);
  return QN_OK;
}
