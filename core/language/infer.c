/* infer.c -- checks one op's arguments against the schema, then against the rule that ops.def names for it, which also infers the
 * dtype and dims of outputs not given. Engines need not check again what passes here. */
#include <stdio.h>
#include <string.h>
#include <quern/kit.h>
#include "problem.h"

/* ---- attributes --------------------------------------------------------------------------- */

static qn_status check_entry(const qn__problem *p, const qn_attr_info *a, const void *at, int i)
{
  char entry[24] = "";
  int64_t whole;
  double x;
  if (qn__attr_capacity(a) > 1) snprintf(entry, sizeof entry, "entry %d ", i);
  memcpy(&x, at, sizeof x);
  memcpy(&whole, at, sizeof whole);
  if (a->type != QN_ATTR_REAL) x = (double)whole;
  if (x >= a->least && x <= a->most) return QN_OK;
  if (a->type == QN_ATTR_REAL) return qn__refuse(p, a->name, "is %g; must be %s", x, a->range);
  if (whole > QN__MAX_ELEMENTS) return qn__refuse(p, a->name, "%sis %lld; more than any tensor holds", entry, (long long)whole);
  return qn__refuse(p, a->name, "%sis %lld; must be %s", entry, (long long)whole, a->range);
}

static qn_status check_attributes(const qn__problem *p)
{
  for (uint32_t k = 0; k < p->op->n_attrs; k++) {
    const qn_attr_info *a = &p->op->attr[k];
    const char *at = (const char *)p->attr;
    int64_t value;
    int n;
    memcpy(&value, at + a->offset, sizeof value);
    if (a->words && !qn__word(a->words, value, &n))
      return qn__refuse(p, a->name, "is %lld; must be the number of one of %s", (long long)value, a->words);
    for (int i = 0; a->range && i < qn__attr_entries(a, p->node, p->value); i++) {
      qn_status status = check_entry(p, a, at + a->offset + 8 * i, i);
      if (!status && a->offset2) status = check_entry(p, a, at + a->offset2 + 8 * i, i);
      if (status) return status;
    }
  }
  return QN_OK;
}

/* Resets entries beyond the op's dims to their defaults: they have no meaning. */
static void trim_attributes(const qn__problem *p)
{
  for (uint32_t k = 0; k < p->op->n_attrs; k++) {
    const qn_attr_info *a = &p->op->attr[k];
    for (int i = qn__attr_entries(a, p->node, p->value); i < qn__attr_capacity(a); i++) {
      memcpy((char *)p->attr + a->offset + 8 * i, (const char *)p->op->attr_default + a->offset + 8 * i, 8);
      if (a->offset2)
        memcpy((char *)p->attr + a->offset2 + 8 * i, (const char *)p->op->attr_default + a->offset2 + 8 * i, 8);
    }
  }
}

/* ---- each argument alone ------------------------------------------------------------------ */

static qn_status check_roles(const qn__problem *p)
{
  for (uint32_t r = 0; r < p->op->n_roles; r++) {
    const qn_role_info *role = &p->op->role[r];
    int32_t n = p->node->first[r + 1] - p->node->first[r];
    if (n == 0 && !(role->flags & QN_ROLE_OPTIONAL))
      return qn__refuse(p, role->name, role->flags & QN_ROLE_LIST ? "is empty; wants at least one tensor" : "is missing");
    if (n > 1 && !(role->flags & QN_ROLE_LIST)) return qn__refuse(p, role->name, "%d tensors are given; it takes one", (int)n);
  }
  return QN_OK;
}

static uint32_t class_dtypes(char class_)
{
  switch (class_) {
  case 'f': case 's': return QN__FLOATS;
  case 'w': return QN__BIT(QN_F64) | QN__BIT(QN_F32);
  case 'n': return QN__FLOATS | QN__INTEGERS;
  case 'd': return QN__INTEGERS;
  case 'v': return QN__FLOATS | QN__INTEGERS | QN__BIT(QN_BOOL);
  case 'm': return QN__FLOATS | QN__INTEGERS | QN__F8S;
  case 'b': return QN__BIT(QN_BOOL);
  case 'i': return QN__BIT(QN_I32) | QN__BIT(QN_I64);
  case 't': return QN__BIT(QN_U8) | QN__BIT(QN_I32) | QN__BIT(QN_I64);
  case 'q': return QN__F8S | QN__BIT(QN_I8) | QN__BIT(QN_U8);
  case 'z': return QN__FLOATS | QN__BIT(QN_E8M0);
  case 'o': return QN__BIT(QN_U8);
  case 'k': return QN__BIT(QN_I64);
  default:  return QN__FLOATS | QN__INTEGERS | QN__F8S | QN__BIT(QN_BOOL);
  }
}

static qn_status check_value(const qn__problem *p, uint32_t r, const char *name, const qn_value *v)
{
  const qn_role_info *role = &p->op->role[r];
  bool output = role->flags & QN_ROLE_OUTPUT, wanted = output && !v->dtype;       /* a wanted output's strides have no meaning */
  if (output && v->rank == -1 && (wanted || qn_dtype_bytes(v->dtype))) return QN_OK;
  if (v->rank < 0 || v->rank > QN_MAX_RANK)
    return qn__refuse(p, name, "rank is %d; must be 0 to %d", (int)v->rank, QN_MAX_RANK);
  if (!wanted && !qn_dtype_bytes(v->dtype)) return qn__refuse(p, name, "dtype is %u, which is no dtype", (unsigned)v->dtype);
  bool scalar = role->class_ == 's' || role->class_ == 'k';
  if (scalar && v->rank) return qn__refuse(p, name, "rank is %d; a scalar has rank 0", (int)v->rank);
  if (v->flags & QN_VALUE_HOST) {
    if (v->rank) return qn__refuse(p, name, "rank is %d; a host value has rank 0", (int)v->rank);
    if (output) return qn__refuse(p, name, "is a host value; outputs are on the device");
    if (!scalar && p->op->family != QN_FAMILY_POINTWISE)
      return qn__refuse(p, name, "is a host value, where a tensor on the device is wanted");
  }
  /* these limits keep later sums of extents and addresses from overflowing */
  qn__wide elements = 1, reach = 1;
  bool empty = false;
  for (int i = 0; i < v->rank; i++) {
    if (v->dim[i] < 0) return qn__refuse(p, name, "dim %d is %lld; must be at least 0", i, (long long)v->dim[i]);
    if (v->stride[i] < 0 && !wanted) return qn__refuse(p, name, "stride %d is %lld; must be at least 0", i, (long long)v->stride[i]);
    empty = empty || v->dim[i] == 0;
  }
  for (int i = 0; i < v->rank; i++) {
    if (v->dim[i] <= 1) continue;
    elements *= v->dim[i];
    if (!empty && !wanted) reach += (qn__wide)(v->dim[i] - 1) * v->stride[i];
    if (elements > QN__MAX_ELEMENTS || reach > QN__MAX_ELEMENTS)
      return qn__refuse(p, name, "%s at these strides is more than memory can hold", qn__dims(v).s);
  }
  if (output && !empty && !wanted) {
    for (int i = 0; i < v->rank; i++)
      if (v->dim[i] > 1 && v->stride[i] == 0)
        return qn__refuse(p, name, "stride %d is 0; only inputs may be broadcast", i);
    if (qn__overlaps_itself(v)) return qn__refuse(p, name, "two of its elements have one address; outputs may not overlap");
  }
  return QN_OK;
}

static qn_status check_values(const qn__problem *p)
{
  for (uint32_t r = 0; r < p->op->n_roles; r++) {
    const qn_role_info *role = &p->op->role[r];
    uint32_t set = class_dtypes(role->class_);
    for (int32_t k = p->node->first[r]; k < p->node->first[r + 1]; k++) {
      const qn_value *v = &p->value[p->node->arg[k]];
      char item[64];
      const char *name = role->name;
      if (role->flags & QN_ROLE_LIST) {
        snprintf(item, sizeof item, "%s[%d]", role->name, (int)(k - p->node->first[r]));
        name = item;
      }
      qn_status status = check_value(p, r, name, v);
      if (status) return status;
      if (!v->dtype) continue;            /* to be inferred */
      /* a pointwise op converts its scalars: with integers they may be any float */
      uint32_t accepted = p->op->family == QN_FAMILY_POINTWISE && strchr("ndv", role->class_) && !v->rank ? set | QN__FLOATS : set;
      if (role->class_ == 'k' && v->flags & QN_VALUE_HOST) accepted |= QN__BIT(QN_F64);     /* a literal of a problem line */
      if (!(accepted & QN__BIT(v->dtype)))
        return qn__refuse(p, name, "dtype is %s; accepted: %s", qn_dtype_name(v->dtype), qn__dtypes(accepted).s);
    }
  }
  return QN_OK;
}

/* By now the dims of inferred outputs are known. */
static qn_status check_outputs(const qn__problem *p)
{
  for (int32_t k = p->node->first[p->op->n_inputs]; k < p->node->first[p->op->n_roles]; k++) {
    const qn_value *v = &p->value[p->node->arg[k]];
    qn__wide elements = 1;
    for (int i = 0; i < v->rank; i++) {
      if (v->dim[i] > 1) elements *= v->dim[i];
      if (elements <= QN__MAX_ELEMENTS) continue;
      uint32_t r = p->op->n_inputs;
      while (p->node->first[r + 1] <= k) r++;
      return qn__refuse(p, qn__role_name(p, r), "%s is more than memory can hold", qn__dims(v).s);
    }
  }
  return QN_OK;
}

/* ---- the whole op ------------------------------------------------------------------------- */

static qn_status infer(const qn__problem *p)
{
  qn_status status = check_roles(p);
  if (status || (status = check_values(p))) return status;
  if (p->attr) trim_attributes(p);
  if ((status = check_attributes(p))) return status;
  if ((status = qn__rule(p))) return status;
  return check_outputs(p);
}

qn_status qn__infer(const qn_op_info *op, void *attr, const qn_node *node, qn_value *value)
{
  return infer(&(qn__problem){ op, attr, node, value, false });
}

bool qn__infers(const qn_op_info *op, void *attr, const qn_node *node, qn_value *value)
{
  return !infer(&(qn__problem){ op, attr, node, value, true });
}
