/* infer.c -- one op's arguments held against the schema, then against its family's rules, which give the dtype and dims
 * of outputs that are wanted. What passes here no engine checks again. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <quern/kit.h>
#include "problem.h"

/* ---- sentences ---------------------------------------------------------------------------- */

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

/* "f32 f16 bf16" */
typedef struct dtypes_text { char s[64]; } dtypes_text;
static dtypes_text dtypes_of(uint32_t set)
{
  dtypes_text text = { "" };
  size_t n = 0;
  for (uint32_t d = 1; d < QN_DTYPE_COUNT && n < sizeof text.s; d++)
    if (set & QN__BIT(d)) n += (size_t)snprintf(text.s + n, sizeof text.s - n, "%s%s", n ? " " : "", qn_dtype_name(d));
  return text;
}

/* ---- looking at arguments ----------------------------------------------------------------- */

qn_value *qn__arg(const qn__problem *p, uint32_t role)
{
  const int32_t *first = p->node->first;
  return first[role] < first[role + 1] ? &p->value[p->node->arg[first[role]]] : NULL;
}

const char *qn__role_name(const qn__problem *p, uint32_t role)
{
  return p->op->role[role].name;
}

static uint32_t class_dtypes(char class_)
{
  switch (class_) {
  case 'f': case 's': return QN__FLOATS;
  case 'w': return QN__BIT(QN_F64) | QN__BIT(QN_F32);
  case 'n': return QN__FLOATS | QN__INTEGERS;
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

qn_status qn__dtype_in(const qn__problem *p, uint32_t role, uint32_t set)
{
  const qn_value *v = qn__arg(p, role);
  if (!v || !v->dtype || set & QN__BIT(v->dtype)) return QN_OK;
  return qn__refuse(p, qn__role_name(p, role), "dtype is %s; accepted here: %s", qn_dtype_name(v->dtype), dtypes_of(set).s);
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

qn_status qn__attr_bounds(const qn__problem *p, const char *name, const int64_t *entry, int n, int64_t least)
{
  for (int i = 0; i < n; i++) {
    if (entry[i] < least)
      return qn__refuse(p, name, "entry %d is %lld; must be at least %lld", i, (long long)entry[i], (long long)least);
    if (entry[i] > QN__MAX_ELEMENTS)
      return qn__refuse(p, name, "entry %d is %lld; more than any tensor holds", i, (long long)entry[i]);
  }
  return QN_OK;
}

qn_status qn__settle_axis(const qn__problem *p, int64_t *axis, int rank)
{
  if (*axis < -1 || *axis >= rank)
    return qn__refuse(p, "axis", "is %lld; must be -1 (the last) or 0 to %d", (long long)*axis, rank - 1);
  if (*axis == -1) *axis = rank - 1;
  return QN_OK;
}

bool qn__may_lend(const qn_op_info *op, uint32_t input, uint32_t output)
{
  return op->role[input].paired == (int32_t)output;
}

bool qn__same_place(const qn_value *a, const qn_value *b)
{
  return a->dtype == b->dtype && qn_same_layout(a, b);
}

/* ---- views of memory ---------------------------------------------------------------------- */

/* Are there whole numbers d[k] in [least[k], most[k]] with low <= sum d[k] stride[k] <= high? Strides descend, and the
 * search leaves a branch as soon as the strides to come cannot close the gap; *budget bounds it (0: assume yes). */
typedef struct span { int64_t stride, least, most; } span;
typedef __int128 wide;

static bool reaches(const span *d, int n, wide low, wide high, int *budget)
{
  if (n == 0) return low <= 0 && 0 <= high;
  if (--*budget < 0) return true;
  wide rest_least = 0, rest_most = 0;
  for (int k = 1; k < n; k++) {
    rest_least += (wide)d[k].least * d[k].stride;
    rest_most += (wide)d[k].most * d[k].stride;
  }
  /* stride d must lie in [low - rest_most, high - rest_least] */
  wide from = low - rest_most, to = high - rest_least, s = d->stride;
  wide least = from / s + (from % s > 0), most = to / s - (to % s < 0);
  if (least < d->least) least = d->least;
  if (most > d->most) most = d->most;
  for (wide i = least; i <= most; i++)
    if (reaches(d + 1, n - 1, low - i * s, high - i * s, budget)) return true;
  return false;
}

enum { SEARCH_BUDGET = 2000 };

static int sorted_insert(span *d, int n, span s)
{
  int i = n;
  for (; i > 0 && d[i - 1].stride < s.stride; i--) d[i] = d[i - 1];
  d[i] = s;
  return n + 1;
}

bool qn__overlaps_itself(const qn_value *v)
{
  span d[QN_MAX_RANK];
  int n = 0;
  for (int i = 0; i < v->rank; i++) {
    if (v->dim[i] == 0) return false;
    if (v->dim[i] == 1) continue;
    if (v->stride[i] == 0) return true;
    n = sorted_insert(d, n, (span){ v->stride[i], 1 - v->dim[i], v->dim[i] - 1 });
  }
  bool nested = true;                   /* the usual case: each stride steps over all that the smaller ones reach */
  for (int i = 0; i < n; i++) {
    wide reach = 0;
    for (int k = i + 1; k < n; k++) reach += (wide)d[k].most * d[k].stride;
    nested = nested && d[i].stride > reach;
  }
  if (nested) return false;
  int budget = SEARCH_BUDGET;
  for (int i = 0; i < n; i++) {         /* two indices that differ first in dim i, by at least 1 */
    span first = d[i];
    first.least = 1;
    span rest[QN_MAX_RANK];
    memcpy(rest, d + i, (size_t)(n - i) * sizeof *d);
    rest[0] = first;
    if (reaches(rest, n - i, 0, 0, &budget)) return true;
  }
  return false;
}

bool qn__views_meet(const qn_value *a, uintptr_t a_at, const qn_value *b, uintptr_t b_at)
{
  int64_t a_reach = qn_extent_bytes(a), b_reach = qn_extent_bytes(b);
  if (!a_reach || !b_reach || a_at + (uint64_t)a_reach <= b_at || b_at + (uint64_t)b_reach <= a_at) return false;
  /* The ranges meet; columns of one matrix do so without sharing an element. An index of a less one of b, in bytes: */
  int64_t a_bytes = (int64_t)qn_dtype_bytes(a->dtype), b_bytes = (int64_t)qn_dtype_bytes(b->dtype);
  span d[2 * QN_MAX_RANK];
  int n = 0;
  for (int side = 0; side < 2; side++) {
    const qn_value *v = side ? b : a;
    int64_t bytes = side ? b_bytes : a_bytes;
    for (int i = 0; i < v->rank; i++) {
      if (v->dim[i] == 1 || v->stride[i] == 0) continue;
      span s = { v->stride[i] * bytes, side ? 1 - v->dim[i] : 0, side ? 0 : v->dim[i] - 1 };
      int same = 0;
      while (same < n && d[same].stride != s.stride) same++;
      if (same == n) n = sorted_insert(d, n, s);
      else {
        d[same].least += s.least;
        d[same].most += s.most;
      }
    }
  }
  /* elements share a byte if  b_at - a_at - a_bytes < difference < b_at - a_at + b_bytes */
  wide apart = (wide)b_at - (wide)a_at;
  int budget = SEARCH_BUDGET;
  return reaches(d, n, apart - a_bytes + 1, apart + b_bytes - 1, &budget);
}

bool qn__ranges_meet(qn__range *r, size_t n)
{
  for (size_t gap = n; gap > 1;) {      /* Shell's sort: in place, and quick where much is in order */
    gap = gap < 5 ? 1 : gap * 5 / 11;
    for (size_t i = gap; i < n; i++) {
      qn__range x = r[i];
      size_t k = i;
      for (; k >= gap && r[k - gap].begin > x.begin; k -= gap) r[k] = r[k - gap];
      r[k] = x;
    }
  }
  uintptr_t all = 0, written = 0;       /* how far those reach that began before */
  for (size_t i = 0; i < n; i++) {
    uintptr_t end = r[i].end >> 1;
    if (r[i].begin < (r[i].end & 1 ? all : written)) return true;
    if (end > all) all = end;
    if (r[i].end & 1 && end > written) written = end;
  }
  return false;
}

static void default_order(const qn_value *like, int *order)
{
  for (int i = 0; i < like->rank; i++) {
    int k = i;                          /* slowest first; of two alike the one with a single element goes inside */
    for (; k > 0; k--) {
      int other = order[k - 1];
      if (like->stride[other] > like->stride[i]
          || (like->stride[other] == like->stride[i] && (like->dim[other] > 1 || like->dim[i] <= 1))) break;
      order[k] = other;
    }
    order[k] = i;
  }
}

void qn__default_strides(qn_value *v, const qn_value *like)
{
  int order[QN_MAX_RANK];
  bool follow = like && like->rank == v->rank;
  for (int i = 0; follow && i < like->rank; i++) follow = v->dim[i] && (like->dim[i] <= 1 || like->stride[i] > 0);
  if (follow) default_order(like, order);
  memset(v->stride, 0, sizeof v->stride);
  qn__pack(v->rank, v->dim, v->stride, follow ? order : NULL);
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

const qn_value *qn__layout_model(const qn_op_info *op, const qn_node *node, const qn_value *value, int32_t k)
{
  if (op->kind == QN_OP_MATMUL || op->kind == QN_OP_GRID_SAMPLE_BACKWARD_GRID) return NULL;     /* a transposed factor says nothing of
                                           the product, nor dy's order of channels of that of points */
  const qn_value *model = NULL, *out = &value[node->arg[k]];
  uint32_t r = op->n_inputs, list = 0;
  while (node->first[r + 1] <= k) r++;
  if (op->role[r].flags & QN_ROLE_LIST && k - node->first[r] < qn__list_length(op, node->first, &list))
    return &value[node->arg[node->first[list] + k - node->first[r]]];     /* its fellow in the list that is read */
  for (int32_t i = 0; i < node->first[op->n_inputs]; i++) {
    const qn_value *v = &value[node->arg[i]];
    if (v->rank != out->rank) continue;
    if (op->family != QN_FAMILY_POINTWISE) return v;
    if (!memcmp(v->dim, out->dim, sizeof v->dim)) return v;     /* before those that are broadcast */
    if (!model) model = v;
  }
  return model;
}

/* ---- attributes --------------------------------------------------------------------------- */

int qn__attr_entries(const qn_attr_info *a, const qn_node *node, const qn_value *value)
{
  int rank = node->first[0] < node->first[1] ? value[node->arg[0]].rank : 0;
  if (rank < 0 || rank > QN_MAX_RANK) rank = 0;
  switch (a->type) {
  case QN_ATTR_SPATIAL: case QN_ATTR_SPADS: return rank < 2 ? 0 : rank > 5 ? 3 : rank - 2;
  case QN_ATTR_RANK: case QN_ATTR_RPADS: return rank;
  default: return 1;
  }
}

int qn__attr_capacity(const qn_attr_info *a)
{
  switch (a->type) {
  case QN_ATTR_SPATIAL: case QN_ATTR_SPADS: return 3;
  case QN_ATTR_RANK: case QN_ATTR_RPADS: return QN_MAX_RANK;
  default: return 1;
  }
}

const char *qn__word(const char *words, int64_t value, int *n)
{
  for (; value > 0 && (words = strchr(words, '|')); value--) words++;
  if (!words || value < 0) return NULL;
  *n = (int)strcspn(words, "|");
  return words;
}

int64_t qn__word_number(const char *words, const char *word, size_t bytes)
{
  int n;
  const char *w;
  for (int64_t i = 0; (w = qn__word(words, i, &n)); i++)
    if ((size_t)n == bytes && !memcmp(w, word, bytes)) return i;
  return -1;
}

static qn_status check_words(const qn__problem *p)
{
  for (uint32_t k = 0; k < p->op->n_attrs; k++) {
    const qn_attr_info *a = &p->op->attr[k];
    int64_t value;
    int n;
    if (!a->words) continue;
    memcpy(&value, (const char *)p->attr + a->offset, sizeof value);
    if (!qn__word(a->words, value, &n)) return qn__refuse(p, a->name, "is %lld; must be the number of one of %s", (long long)value, a->words);
  }
  return QN_OK;
}

/* Fields beyond the caller's size keep their defaults; so do those that this op does not use. */
qn_status qn__attr_copy(const qn_op_info *op, const void *from, void *to)
{
  if (!op->attr_bytes) {
    if (!from) return QN_OK;
    return qn__fail(QN_BAD_ARGUMENT, "%s: attributes are given, but it has none; pass NULL", op->name);
  }
  memcpy(to, op->attr_default, op->attr_bytes);
  if (!from) return QN_OK;
  uint64_t size;
  memcpy(&size, from, sizeof size);
  if (size < sizeof size || size > 65536)
    return qn__fail(QN_BAD_ARGUMENT, "%s: attributes: struct_size is %llu; begin with the op's INIT, which sets it to %u",
                    op->name, (unsigned long long)size, op->attr_bytes);
  for (uint64_t i = op->attr_bytes; i < size; i++)
    if (((const unsigned char *)from)[i])
      return qn__fail(QN_BAD_ARGUMENT, "%s: attributes: byte %llu is set, and this library (%s) knows only %u bytes of them",
                      op->name, (unsigned long long)i, qn_version(), op->attr_bytes);
  for (uint32_t k = 0; k < op->n_attrs; k++) {
    const qn_attr_info *a = &op->attr[k];
    size_t bytes = 8 * (size_t)qn__attr_capacity(a);
    if (a->offset + bytes <= size) memcpy((char *)to + a->offset, (const char *)from + a->offset, bytes);
    if (a->offset2 && a->offset2 + bytes <= size)
      memcpy((char *)to + a->offset2, (const char *)from + a->offset2, bytes);
  }
  return QN_OK;
}

/* Entries beyond the op's dims say nothing: they go back to their defaults. */
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

static qn_status check_value(const qn__problem *p, uint32_t r, const char *name, const qn_value *v)
{
  const qn_role_info *role = &p->op->role[r];
  bool output = role->flags & QN_ROLE_OUTPUT;
  if (v->rank < 0 || v->rank > QN_MAX_RANK)
    return qn__refuse(p, name, "rank is %d; must be 0 to %d", (int)v->rank, QN_MAX_RANK);
  if (!qn_dtype_bytes(v->dtype)) return qn__refuse(p, name, "dtype is %u, which is no dtype", (unsigned)v->dtype);
  bool scalar = role->class_ == 's' || role->class_ == 'k';
  if (scalar && v->rank) return qn__refuse(p, name, "rank is %d; a scalar has rank 0", (int)v->rank);
  if (v->flags & QN_VALUE_HOST) {
    if (v->rank) return qn__refuse(p, name, "rank is %d; a host value has rank 0", (int)v->rank);
    if (output) return qn__refuse(p, name, "is a host value; outputs are on the device");
    if (!scalar && p->op->family != QN_FAMILY_POINTWISE)
      return qn__refuse(p, name, "is a host value, where a tensor on the device is wanted");
  }
  /* what is bounded here keeps later sums of extents and addresses from overflowing */
  wide elements = 1, reach = 1;
  bool empty = false;
  for (int i = 0; i < v->rank; i++) {
    if (v->dim[i] < 0) return qn__refuse(p, name, "dim %d is %lld; must be at least 0", i, (long long)v->dim[i]);
    if (v->stride[i] < 0) return qn__refuse(p, name, "stride %d is %lld; must be at least 0", i, (long long)v->stride[i]);
    empty = empty || v->dim[i] == 0;
  }
  for (int i = 0; i < v->rank; i++) {
    if (v->dim[i] <= 1) continue;
    elements *= v->dim[i];
    if (!empty) reach += (wide)(v->dim[i] - 1) * v->stride[i];
    if (elements > QN__MAX_ELEMENTS || reach > QN__MAX_ELEMENTS)
      return qn__refuse(p, name, "%s at these strides is more than memory can hold", qn__dims(v).s);
  }
  if (output && !empty) {
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
      if (role->flags & QN_ROLE_OUTPUT && !v->dtype) continue;
      char item[64];
      const char *name = role->name;
      if (role->flags & QN_ROLE_LIST) {
        snprintf(item, sizeof item, "%s[%d]", role->name, (int)(k - p->node->first[r]));
        name = item;
      }
      qn_status status = check_value(p, r, name, v);
      if (status) return status;
      /* a pointwise op converts its scalars, so they may be any float beside integers */
      uint32_t accepted = p->op->family == QN_FAMILY_POINTWISE && role->class_ == 'n' && !v->rank ? set | QN__FLOATS : set;
      if (role->class_ == 'k' && v->flags & QN_VALUE_HOST) accepted |= QN__BIT(QN_F64);     /* a number of a line */
      if (!(accepted & QN__BIT(v->dtype)))
        return qn__refuse(p, name, "dtype is %s; accepted: %s", qn_dtype_name(v->dtype), dtypes_of(accepted).s);
    }
  }
  return QN_OK;
}

/* Of outputs that were wanted the dims are known by now. */
static qn_status check_outputs(const qn__problem *p)
{
  for (int32_t k = p->node->first[p->op->n_inputs]; k < p->node->first[p->op->n_roles]; k++) {
    const qn_value *v = &p->value[p->node->arg[k]];
    wide elements = 1;
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

static qn_status family_rules(const qn__problem *p)
{
  switch (p->op->family) {
  case QN_FAMILY_CONTRACTION: return p->op->kind == QN_OP_MATMUL ? qn__infer_matmul(p) : qn__infer_conv(p);
  case QN_FAMILY_POINTWISE:   return qn__infer_pointwise(p);
  case QN_FAMILY_REDUCTION:   return qn__infer_reduction(p);
  case QN_FAMILY_SOFTMAX:     return qn__infer_softmax(p);
  case QN_FAMILY_POOLING:     return qn__infer_pool(p);
  case QN_FAMILY_RESAMPLING:  return qn__infer_sized(p);
  case QN_FAMILY_SELECTION:   return qn__infer_selection(p);
  case QN_FAMILY_SCAN:        return qn__infer_scan(p);
  case QN_FAMILY_TRANSFORM:   return qn__infer_transform(p);
  case QN_FAMILY_NORMALIZATION: return qn__infer_normalization(p);
  case QN_FAMILY_SAMPLING:    return qn__infer_sampling(p);
  case QN_FAMILY_LOCAL:       return qn__infer_local(p);
  case QN_FAMILY_RANDOM:      return qn__infer_random(p);
  case QN_FAMILY_LOSS:        return qn__infer_loss(p);
  case QN_FAMILY_TRAINING:    return qn__infer_training(p);
  case QN_FAMILY_QUANTIZATION: return qn__infer_quantization(p);
  default: return qn__fail(QN_INTERNAL, "%s: its family has no rules", p->op->name);
  }
}

static qn_status infer(const qn__problem *p)
{
  qn_status status = check_roles(p);
  if (status || (status = check_values(p))) return status;
  if (p->attr) trim_attributes(p);
  if ((status = check_words(p))) return status;
  if ((status = family_rules(p))) return status;
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
