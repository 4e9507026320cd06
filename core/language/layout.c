/* layout.c -- where a tensor's elements are: whether two tensors overlap, and which dim order an inferred output follows. */
#include <string.h>
#include <quern/kit.h>
#include "problem.h"

/* ---- overlap -------------------------------------------------------------------------------- */

/* Are there integers d[k] in [least[k], most[k]] with low <= sum d[k] stride[k] <= high? Strides descend, and the search leaves
 * a branch as soon as the remaining strides cannot close the gap; *budget limits it (at 0: assume yes). */
typedef struct span { int64_t stride, least, most; } span;

static bool reaches(const span *d, int n, qn__wide low, qn__wide high, int *budget)
{
  if (n == 0) return low <= 0 && 0 <= high;
  if (--*budget < 0) return true;
  qn__wide rest_least = 0, rest_most = 0;
  for (int k = 1; k < n; k++) {
    rest_least += (qn__wide)d[k].least * d[k].stride;
    rest_most += (qn__wide)d[k].most * d[k].stride;
  }
  /* stride d must lie in [low - rest_most, high - rest_least] */
  qn__wide from = low - rest_most, to = high - rest_least, s = d->stride;
  qn__wide least = from / s + (from % s > 0), most = to / s - (to % s < 0);
  if (least < d->least) least = d->least;
  if (most > d->most) most = d->most;
  for (qn__wide i = least; i <= most; i++)
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
  bool nested = true;                   /* the usual case: each stride exceeds the reach of all smaller ones */
  for (int i = 0; i < n; i++) {
    qn__wide reach = 0;
    for (int k = i + 1; k < n; k++) reach += (qn__wide)d[k].most * d[k].stride;
    nested = nested && d[i].stride > reach;
  }
  if (nested) return false;
  int budget = SEARCH_BUDGET;
  for (int i = 0; i < n; i++) {         /* two indices whose first difference is in dim i, at least 1 */
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
  /* The ranges overlap, which columns of one matrix do without sharing an element. The byte offset of an index of a less one of b: */
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
  qn__wide apart = (qn__wide)b_at - (qn__wide)a_at;
  int budget = SEARCH_BUDGET;
  return reaches(d, n, apart - a_bytes + 1, apart + b_bytes - 1, &budget);
}

bool qn__ranges_meet(qn__range *r, size_t n)
{
  for (size_t gap = n; gap > 1;) {      /* Shell sort: in place, and fast when mostly sorted */
    gap = gap < 5 ? 1 : gap * 5 / 11;
    for (size_t i = gap; i < n; i++) {
      qn__range x = r[i];
      size_t k = i;
      for (; k >= gap && r[k - gap].begin > x.begin; k -= gap) r[k] = r[k - gap];
      r[k] = x;
    }
  }
  uintptr_t all = 0, written = 0;       /* the furthest ends of the ranges that began earlier */
  for (size_t i = 0; i < n; i++) {
    uintptr_t end = r[i].end >> 1;
    if (r[i].begin < (r[i].end & 1 ? all : written)) return true;
    if (end > all) all = end;
    if (r[i].end & 1 && end > written) written = end;
  }
  return false;
}

bool qn__may_lend(const qn_op_info *op, uint32_t input, uint32_t output)
{
  return op->role[input].paired == (int32_t)output;
}

bool qn__same_place(const qn_value *a, const qn_value *b)
{
  return a->dtype == b->dtype && qn_same_layout(a, b);
}

/* ---- the order of dims ---------------------------------------------------------------------- */

static void default_order(const qn_value *like, int *order)
{
  for (int i = 0; i < like->rank; i++) {
    int k = i;                          /* slowest first; at equal strides a dim of 1 goes inside */
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

const qn_value *qn__layout_model(const qn_op_info *op, const qn_node *node, const qn_value *value, int32_t k)
{
  if (op->kind == QN_OP_MATMUL || op->kind == QN_OP_GRID_SAMPLE_BACKWARD_GRID) return NULL;     /* a transposed factor implies nothing
                                           about the product's layout, nor dy's channel order about the points' */
  const qn_value *model = NULL, *out = &value[node->arg[k]];
  uint32_t r = op->n_inputs, list = 0;
  while (node->first[r + 1] <= k) r++;
  if (op->role[r].flags & QN_ROLE_LIST && k - node->first[r] < qn__list_length(op, node->first, &list))
    return &value[node->arg[node->first[list] + k - node->first[r]]];     /* the input list's tensor at the same position */
  for (int32_t i = 0; i < node->first[op->n_inputs]; i++) {
    const qn_value *v = &value[node->arg[i]];
    if (v->rank != out->rank) continue;
    if (op->family != QN_FAMILY_POINTWISE) return v;
    if (!memcmp(v->dim, out->dim, sizeof v->dim)) return v;     /* prefer it to broadcast inputs */
    if (!model) model = v;
  }
  return model;
}
