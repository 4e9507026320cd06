/* argument.c -- argument checks shared by the rules of all families, and the sentences of their errors. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <quern/kit.h>
#include "problem.h"

/* ---- error sentences ---------------------------------------------------------------------- */

qn_status qn__refuse(const qn__problem *p, const char *argument, const char *format, ...)
{
  if (p->quiet) return QN_BAD_ARGUMENT;
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return qn__fail(QN_BAD_ARGUMENT, "%s: %s: %s", p->op->name, argument, what);
}

qn__dims_text qn__dims(const qn_value *v)
{
  qn__dims_text text = { "a scalar" };
  size_t n = 0;
  for (int i = 0; i < v->rank && n < sizeof text.s; i++)
    n += (size_t)snprintf(text.s + n, sizeof text.s - n, "%s%lld", i ? "x" : "", (long long)v->dim[i]);
  return text;
}

qn__dtypes_text qn__dtypes(uint32_t set)
{
  qn__dtypes_text text = { "" };
  size_t n = 0;
  for (uint32_t d = 1; d < QN_DTYPE_COUNT && n < sizeof text.s; d++)
    if (set & QN__BIT(d)) n += (size_t)snprintf(text.s + n, sizeof text.s - n, "%s%s", n ? " " : "", qn_dtype_name(d));
  return text;
}

/* ---- accessing and checking arguments ----------------------------------------------------- */

qn_value *qn__arg(const qn__problem *p, uint32_t role)
{
  const int32_t *first = p->node->first;
  return first[role] < first[role + 1] ? &p->value[p->node->arg[first[role]]] : NULL;
}

int32_t qn__list_length(const qn_op_info *op, const int32_t *first, uint32_t *role)
{
  for (uint32_t r = 0; r < op->n_inputs; r++) {
    if (!(op->role[r].flags & QN_ROLE_LIST)) continue;
    *role = r;
    return first[r + 1] - first[r];
  }
  return 1;
}

const char *qn__role_name(const qn__problem *p, uint32_t role)
{
  return p->op->role[role].name;
}

qn_status qn__dtype_in(const qn__problem *p, uint32_t role, uint32_t set)
{
  const qn_value *v = qn__arg(p, role);
  if (!v || !v->dtype || set & QN__BIT(v->dtype)) return QN_OK;
  return qn__refuse(p, qn__role_name(p, role), "dtype is %s; accepted here: %s", qn_dtype_name(v->dtype), qn__dtypes(set).s);
}

qn_status qn__same_dims(const qn__problem *p, uint32_t role, uint32_t as)
{
  const qn_value *v = qn__arg(p, role), *w = qn__arg(p, as);
  if (!v || (v->rank == w->rank && !memcmp(v->dim, w->dim, sizeof v->dim))) return QN_OK;
  return qn__refuse(p, qn__role_name(p, role), "dims are %s; must be %s's, %s", qn__dims(v).s, qn__role_name(p, as),
                    qn__dims(w).s);
}

qn_status qn__settle(const qn__problem *p, uint32_t role, uint32_t dtype, int rank, const int64_t *dim)
{
  qn_value *v = qn__arg(p, role);
  return v ? qn__settle_value(p, role, v, dtype, rank, dim) : QN_OK;
}

qn_status qn__settle_value(const qn__problem *p, uint32_t role, qn_value *v, uint32_t dtype, int rank, const int64_t *dim)
{
  if (!v->dtype) v->dtype = dtype;
  qn_value right = { .rank = rank };
  for (int i = 0; i < QN_MAX_RANK; i++) right.dim[i] = i < rank ? dim[i] : 1;
  if (v->rank < 0) {
    v->rank = rank;
    memcpy(v->dim, right.dim, sizeof v->dim);
  } else if (v->rank != rank || memcmp(v->dim, right.dim, sizeof v->dim))
    return qn__refuse(p, qn__role_name(p, role), "dims are %s; must be %s", qn__dims(v).s, qn__dims(&right).s);
  return QN_OK;
}

int64_t qn__covered(int64_t taps, int64_t dilation)
{
  int64_t span;
  if (__builtin_mul_overflow(taps - 1, dilation, &span) || span > 4 * QN__MAX_ELEMENTS) return 4 * QN__MAX_ELEMENTS;
  return span + 1;
}

qn_status qn__settle_axis(const qn__problem *p, int64_t *axis, int rank)
{
  if (*axis < -1 || *axis >= rank)
    return qn__refuse(p, "axis", "is %lld; must be -1 (the last) or 0 to %d", (long long)*axis, rank - 1);
  if (*axis == -1) *axis = rank - 1;
  return QN_OK;
}
