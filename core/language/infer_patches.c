/* infer_patches.c -- windows side by side: x (or dx) [N, C, X...]   y (or dy) [N, C taps, P...] */
#include "problem.h"

/* The dims of y by those of x. */
static qn_status unfolded(const qn__problem *p, const qn_value *x, int64_t *dim)
{
  const qn_patches *a = p->attr;
  qn__wide rows = x->dim[1];
  for (int i = 0; i < x->rank - 2; i++) {
    const int64_t room = x->dim[i + 2] + a->pad_before[i] + a->pad_after[i] - qn__covered(a->window[i], a->dilation[i]);
    dim[i + 2] = room < 0 ? 0 : room / a->stride[i] + 1;
    rows *= a->window[i];
    if (rows > QN__MAX_ELEMENTS)
      return qn__refuse(p, "window", "entry %d is %lld; y would be more than memory can hold", i, (long long)a->window[i]);
  }
  dim[0] = x->dim[0];
  dim[1] = (int64_t)rows;
  return QN_OK;
}

qn_status qn__infer_patches(const qn__problem *p)
{
  const bool backward = p->op->forward != 0;
  const qn_value *in = qn__arg(p, 0), *out = qn__arg(p, 1), *x = backward ? out : in;
  const char *name = qn__role_name(p, backward ? 1 : 0);
  int64_t dim[QN_MAX_RANK];
  if (x->rank < 0) return qn__refuse(p, name, "must be given: its extents are not in dy");
  if (x->rank < 3 || x->rank > 5)
    return qn__refuse(p, name, "rank is %d; must be 3 to 5: batch, channels and 1 to 3 spatial dims", (int)x->rank);
  if (in->rank != x->rank) return qn__refuse(p, "dy", "rank is %d; must be dx's, %d", (int)in->rank, (int)x->rank);
  qn_status status = unfolded(p, x, dim);
  if (status || (status = qn__dtype_in(p, 1, QN__BIT(in->dtype)))) return status;
  if (!backward) return qn__settle(p, 1, in->dtype, x->rank, dim);
  if ((status = qn__settle(p, 0, in->dtype, x->rank, dim))) return status;
  return qn__settle(p, 1, in->dtype, out->rank, out->dim);
}
