/* direct.cu -- the host half of direct.cuh: keeps a copy of an op from prepare to run. */
#include "direct.cuh"

qn_status direct_prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  int n = op->first[op->n_roles];
  uint64_t attr_bytes = op->attr ? *(const uint64_t *)op->attr : 0;      /* attribute structs begin with their size */
  size_t values = sizeof(kept), numbers = values + (size_t)n * sizeof(qn_value), attr = qn_round_up(numbers + (size_t)n * 4, 8);
  char *memory = (char *)cuda_state(p, attr + attr_bytes);
  if (!memory) return QN_NO_MEMORY;
  kept *k = (kept *)memory;
  k->op = op->op;
  k->n_roles = (int32_t)op->n_roles;
  memcpy(k->first, op->first, (op->n_roles + 1) * sizeof *k->first);
  k->value = (qn_value *)(memory + values);
  k->number = (int32_t *)(memory + numbers);
  k->attr = op->attr ? memory + attr : nullptr;
  memcpy(k->number, op->arg, (size_t)n * sizeof *k->number);
  for (int i = 0; i < n; i++) k->value[i] = r->value[op->arg[i]];
  if (op->attr) memcpy(k->attr, op->attr, attr_bytes);
  return QN_OK;
}

tensor direct_tensor(const kept *k, const qn_launch *launch, uint32_t role, int i)
{
  tensor t = {};
  if (i >= direct_count(k, role)) return t;
  int at = k->first[role] + i;
  const qn_value *v = &k->value[at];
  t.p = launch->ptr[k->number[at]];
  t.dtype = v->dtype;
  t.rank = v->rank;
  memcpy(t.dim, v->dim, sizeof t.dim);
  memcpy(t.stride, v->stride, sizeof t.stride);
  return t;
}

grid direct_grid(const tensor &t)
{
  grid g = { t.p, t.dtype, { 1, 1, 1, 1, 1 }, { 0, 0, 0, 0, 0 } };
  for (int d = 0; d < t.rank; d++) {
    int to = d < 2 ? d : d + 5 - t.rank;
    g.dim[to] = t.dim[d];
    g.stride[to] = t.stride[d];
  }
  return g;
}

int64_t direct_elements(const tensor &t)
{
  int64_t n = 1;
  for (int d = 0; d < t.rank; d++) n *= t.dim[d];
  return n;
}

scalar direct_scalar(const kept *k, const qn_launch *launch, uint32_t role, double absent)
{
  scalar s = { nullptr, QN_F64, absent };
  if (!direct_count(k, role)) return s;
  const qn_value *v = &k->value[k->first[role]];
  const void *p = launch->ptr[k->number[k->first[role]]];
  if (v->flags & QN_VALUE_HOST) s.value = qn_load_f64(p, v->dtype);
  else s.p = p, s.dtype = v->dtype;
  return s;
}
