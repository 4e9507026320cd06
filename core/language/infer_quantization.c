/* infer_quantization.c -- quantization: how many elements share a scale, and the dims of scales that follow. */
#include "problem.h"

/* Normalises block[i], the number of elements along dim i that share a scale, 0 for all, so that each problem has one form.
 * scale: NULL if its dims are to be inferred; of rank 0: one for the whole tensor. */
static qn_status complete_blocks(const qn__problem *p, const qn_value *x, const qn_value *scale, int64_t *scale_dim)
{
  int64_t *block = ((qn_blocks *)p->attr)->block;
  if (scale && scale->rank && scale->rank != x->rank)
    return qn__refuse(p, "scale", "rank is %d; must be 0 or x's, %d", (int)scale->rank, (int)x->rank);
  for (int i = 0; i < x->rank; i++) {
    int64_t dim = x->dim[i], scales = !scale ? -1 : scale->rank ? scale->dim[i] : 1;
    if (!block[i] && scales > 1) {
      if (dim % scales)
        return qn__refuse(p, "block", "must be given: %lld scales along dim %d do not divide x's %lld", (long long)scales, i,
                          (long long)dim);
      block[i] = dim / scales;
    }
    if (dim == 0 && (block[i] || scales == 0)) block[i] = 1;
    if (block[i] >= dim && dim) block[i] = 0;
    scale_dim[i] = !block[i] ? 1 : dim / block[i] + (dim % block[i] != 0);
  }
  return QN_OK;
}

qn_status qn__infer_quantization(const qn__problem *p)
{
  bool back = p->op->kind == QN_OP_DEQUANTIZE, dynamic = p->op->kind == QN_OP_QUANTIZE_DYNAMIC;
  uint32_t y_role = back ? QN_ROLE_DEQUANTIZE_Y : dynamic ? QN_ROLE_QUANTIZE_DYNAMIC_Y : QN_ROLE_QUANTIZE_Y;
  uint32_t scale_role = dynamic ? QN_ROLE_QUANTIZE_DYNAMIC_SCALE : QN_ROLE_QUANTIZE_SCALE;    /* dequantize has the same role numbers */
  const qn_value *x = qn__arg(p, 0), *y = qn__arg(p, y_role), *scale = qn__arg(p, scale_role);
  const uint32_t zero_role = dynamic ? QN_ROLE_QUANTIZE_DYNAMIC_ZERO_POINT : QN_ROLE_QUANTIZE_ZERO_POINT;
  const qn_value *narrow = back ? x : y, *zero = qn__arg(p, zero_role);
  uint32_t exact = x->dtype == QN_F64 ? QN_F64 : QN_F32, power = dynamic && zero ? 0 : QN__BIT(QN_E8M0);
  int64_t dim[QN_MAX_RANK];
  qn_status status;
  if (!back && !y->dtype) return qn__refuse(p, "y", "must be given: its dtype is what %s is for", p->op->name);
  if (!back && (status = qn__dtype_in(p, 0, QN__FLOATS | (dynamic ? 0 : QN__BIT(QN_I32))))) return status;
  if (dynamic && !zero && y->dtype == QN_U8) return qn__refuse(p, "zero_point", "is missing; y of u8 wants one");
  const uint32_t kin = qn__kin(x->dtype == QN_I32 ? QN_F32 : x->dtype);
  if (!back && (status = qn__dtype_in(p, scale_role, power | (dynamic ? QN__BIT(exact) : kin)))) return status;
  if (back && scale->dtype != QN_E8M0 && (status = qn__dtype_in(p, y_role, qn__kin(scale->dtype)))) return status;
  if ((status = complete_blocks(p, x, scale->rank < 0 ? NULL : scale, dim))) return status;

  int rank = !dynamic && scale->rank == 0 ? 0 : x->rank;
  if ((status = qn__settle(p, y_role, scale->dtype == QN_E8M0 ? QN_F32 : scale->dtype, x->rank, x->dim))) return status;
  if ((status = qn__settle(p, scale_role, exact, rank, dim))) return status;
  if (zero) {
    if (narrow->dtype != QN_I8 && narrow->dtype != QN_U8)
      return qn__refuse(p, "zero_point", "is given; %s has none", qn_dtype_name(narrow->dtype));
    if ((status = qn__dtype_in(p, zero_role, QN__BIT(narrow->dtype)))) return status;
    if ((status = qn__settle(p, zero_role, narrow->dtype, rank, dim))) return status;
  }
  if (back) return QN_OK;
  uint32_t amax = dynamic ? QN_ROLE_QUANTIZE_DYNAMIC_AMAX : QN_ROLE_QUANTIZE_AMAX;
  if ((status = qn__dtype_in(p, amax, QN__BIT(exact)))) return status;
  return qn__settle(p, amax, exact, rank, dim);
}
