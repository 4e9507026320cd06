/* infer_selection.c -- ops that choose, count or add up elements by index; and scans. */
#include <quern/kit.h>
#include "problem.h"

/* ---- gradients of gather and pad ----------------------------------------------------------- */

static qn_status scatter_add(const qn__problem *p)
{
  const qn_value *dy = qn__arg(p, QN_ROLE_SCATTER_ADD_DY), *indices = qn__arg(p, QN_ROLE_SCATTER_ADD_INDICES);
  const qn_value *dx = qn__arg(p, QN_ROLE_SCATTER_ADD_DX);
  qn_axis *a = p->attr;
  int64_t dim[QN_MAX_RANK];
  int rank;
  if (dx->rank < 0) return qn__refuse(p, "dx", "must be given: its dim along the axis is in neither dy nor indices");
  if (dx->rank < 1) return qn__refuse(p, "dx", "rank is 0; must be at least 1");
  qn_status status = qn__settle_axis(p, &a->axis, dx->rank);
  if (status) return status;
  if ((status = qn__gathered_dims(p, dx, indices, (int)a->axis, &rank, dim))) return status;
  qn_value gathered = { .rank = rank };
  bool alike = dy->rank == rank;
  for (int i = 0; i < rank; i++) {
    gathered.dim[i] = dim[i];
    alike = alike && dy->dim[i] == dim[i];
  }
  if (!alike)
    return qn__refuse(p, "dy", "dims are %s; must be %s, which gather takes from dx by indices", qn__dims(dy).s, qn__dims(&gathered).s);
  if ((status = qn__dtype_in(p, QN_ROLE_SCATTER_ADD_DX, qn__kin(dy->dtype)))) return status;
  return qn__settle(p, QN_ROLE_SCATTER_ADD_DX, dy->dtype, dx->rank, dx->dim);
}

static qn_status pad_backward(const qn__problem *p)
{
  const qn_value *dy = qn__arg(p, 0);
  const qn_padding *a = p->attr;
  int64_t dim[QN_MAX_RANK];
  qn_status status;
  for (int i = 0; i < dy->rank; i++) {
    dim[i] = dy->dim[i] - a->pad_before[i] - a->pad_after[i];
    if (dim[i] < 0)
      return qn__refuse(p, "pad", "entry %d is %lld:%lld; dy's dim is %lld", i, (long long)a->pad_before[i],
                        (long long)a->pad_after[i], (long long)dy->dim[i]);
  }
  if ((status = qn__check_padding(p, dy->rank, dim))) return status;
  if ((status = qn__dtype_in(p, 1, qn__kin(dy->dtype)))) return status;
  return qn__settle(p, 1, dy->dtype, dy->rank, dim);
}

/* ---- one_hot, top_k ------------------------------------------------------------------------ */

static qn_status one_hot(const qn__problem *p)
{
  const qn_value *indices = qn__arg(p, 0);
  qn_one_hot_encoding *a = p->attr;
  int64_t dim[QN_MAX_RANK];
  if (indices->rank == QN_MAX_RANK) return qn__refuse(p, "indices", "rank is %d; y has one more", QN_MAX_RANK);
  qn_status status = qn__settle_axis(p, &a->axis, indices->rank + 1);
  if (status) return status;
  for (int i = 0; i <= indices->rank; i++)
    dim[i] = i < a->axis ? indices->dim[i] : i == a->axis ? a->depth : indices->dim[i - 1];
  return qn__settle(p, 1, QN_F32, indices->rank + 1, dim);
}

static qn_status top_k(const qn__problem *p)
{
  const qn_value *x = qn__arg(p, 0), *indices = qn__arg(p, QN_ROLE_TOP_K_INDICES);
  qn_ranking *a = p->attr;
  int64_t dim[QN_MAX_RANK];
  if (x->rank < 1) return qn__refuse(p, "x", "rank is 0; must be at least 1");
  qn_status status = qn__settle_axis(p, &a->axis, x->rank);
  if (status) return status;
  if (a->k < 1 || a->k > x->dim[a->axis])
    return qn__refuse(p, "k", "is %lld; must be 1 to x's dim %lld, %lld", (long long)a->k, (long long)a->axis, (long long)x->dim[a->axis]);
  for (int i = 0; i < x->rank; i++) dim[i] = i == a->axis ? a->k : x->dim[i];
  bool wide = x->dim[a->axis] > 0x7fffffff;
  if (wide && indices && indices->dtype == QN_I32)
    return qn__refuse(p, "indices", "dtype is i32; %lld elements are counted: use i64", (long long)x->dim[a->axis]);
  if ((status = qn__dtype_in(p, QN_ROLE_TOP_K_Y, QN__BIT(x->dtype)))) return status;
  if ((status = qn__settle(p, QN_ROLE_TOP_K_Y, x->dtype, x->rank, dim))) return status;
  return qn__settle(p, QN_ROLE_TOP_K_INDICES, wide ? QN_I64 : QN_I32, x->rank, dim);
}

/* ---- scatter_elements, scatter_nd, sort, iota ------------------------------------------------ */

/* y is x with updates, all of one dtype; to join them takes arithmetic. */
static qn_status scatter(const qn__problem *p)
{
  const qn_value *x = qn__arg(p, QN_ROLE_SCATTER_ELEMENTS_X), *indices = qn__arg(p, QN_ROLE_SCATTER_ELEMENTS_INDICES),
      *updates = qn__arg(p, QN_ROLE_SCATTER_ELEMENTS_UPDATES);
  qn_scattering *a = p->attr;
  qn_status status;
  qn_value want = *indices;
  if (x->rank < 1) return qn__refuse(p, "x", "rank is 0; must be at least 1");
  if (p->op->kind == QN_OP_SCATTER_ELEMENTS) {
    if ((status = qn__settle_axis(p, &a->axis, x->rank))) return status;
    if ((status = qn__within_dims(p, QN_ROLE_SCATTER_ELEMENTS_INDICES, x, (int)a->axis))) return status;
  } else {
    const int named = indices->rank ? (int)qn_min_i64(indices->dim[indices->rank - 1], x->rank + 1) : 0;
    if (named < 1 || named > x->rank)
      return qn__refuse(p, "indices", "dims are %s; the last must be 1 to x's rank, %d: how many of its dims a row names",
                        qn__dims(indices).s, (int)x->rank);
    want.rank = indices->rank - 1 + x->rank - named;
    if (want.rank > QN_MAX_RANK)
      return qn__refuse(p, "indices", "rank is %d; updates would have more than %d dims", (int)indices->rank, QN_MAX_RANK);
    for (int i = named; i < x->rank; i++) want.dim[indices->rank - 1 + i - named] = x->dim[i];
  }
  bool alike = updates->rank == want.rank;
  for (int i = 0; alike && i < want.rank; i++) alike = updates->dim[i] == want.dim[i];
  if (!alike) return qn__refuse(p, "updates", "dims are %s; must be %s", qn__dims(updates).s, qn__dims(&want).s);
  if (updates->dtype != x->dtype)
    return qn__refuse(p, "updates", "dtype is %s; must be x's, %s", qn_dtype_name(updates->dtype), qn_dtype_name(x->dtype));
  if (a->mode != QN_SCATTER_NONE && !((QN__FLOATS | QN__INTEGERS) & QN__BIT(x->dtype)))
    return qn__refuse(p, "mode", "joins numbers, and %s is none", qn_dtype_name(x->dtype));
  if ((status = qn__dtype_in(p, QN_ROLE_SCATTER_ELEMENTS_Y, QN__BIT(x->dtype)))) return status;
  return qn__settle(p, QN_ROLE_SCATTER_ELEMENTS_Y, x->dtype, x->rank, x->dim);
}

static qn_status sort(const qn__problem *p)
{
  const qn_value *x = qn__arg(p, QN_ROLE_SORT_X), *indices = qn__arg(p, QN_ROLE_SORT_INDICES);
  qn_sorting *a = p->attr;
  if (x->rank < 1) return qn__refuse(p, "x", "rank is 0; must be at least 1");
  qn_status status = qn__settle_axis(p, &a->axis, x->rank);
  if (status) return status;
  bool wide = x->dim[a->axis] > 0x7fffffff;
  if (wide && indices && indices->dtype == QN_I32)
    return qn__refuse(p, "indices", "dtype is i32; %lld elements are counted: use i64", (long long)x->dim[a->axis]);
  if ((status = qn__dtype_in(p, QN_ROLE_SORT_Y, QN__BIT(x->dtype)))) return status;
  if ((status = qn__settle(p, QN_ROLE_SORT_Y, x->dtype, x->rank, x->dim))) return status;
  return qn__settle(p, QN_ROLE_SORT_INDICES, wide ? QN_I64 : QN_I32, x->rank, x->dim);
}

static qn_status iota(const qn__problem *p)
{
  const qn_value *y = qn__arg(p, QN_ROLE_IOTA_Y);
  if (!y->dtype || y->rank < 0) return qn__refuse(p, "y", "must be given: nothing else says its dtype and dims");
  if (y->rank < 1) return qn__refuse(p, "y", "rank is 0; must be at least 1");
  return qn__settle_axis(p, &((qn_axis *)p->attr)->axis, y->rank);
}

qn_status qn__infer_selection(const qn__problem *p)
{
  switch (p->op->kind) {
  case QN_OP_SCATTER_ELEMENTS: case QN_OP_SCATTER_ND: return scatter(p);
  case QN_OP_SORT:         return sort(p);
  case QN_OP_IOTA:         return iota(p);
  case QN_OP_SCATTER_ADD:  return scatter_add(p);
  case QN_OP_PAD_BACKWARD: return pad_backward(p);
  case QN_OP_ONE_HOT:      return one_hot(p);
  default:                 return top_k(p);
  }
}

/* ---- scans --------------------------------------------------------------------------------- */

qn_status qn__infer_scan(const qn__problem *p)
{
  const qn_value *x = qn__arg(p, 0);
  qn_scan *a = p->attr;
  if (x->rank < 1) return qn__refuse(p, "x", "rank is 0; must be at least 1");
  qn_status status = qn__settle_axis(p, &a->axis, x->rank);
  if (status) return status;
  uint32_t sums = p->op->kind == QN_OP_CUMMAX || p->op->kind == QN_OP_CUMMIN ? 0 : QN__BIT(QN_I32) | QN__BIT(QN_I64);
  uint32_t set = QN__BIT(x->dtype) & QN__FLOATS ? qn__kin(x->dtype) : QN__BIT(x->dtype) | sums;
  if ((status = qn__dtype_in(p, 1, set))) return status;
  return qn__settle(p, 1, x->dtype, x->rank, x->dim);
}
