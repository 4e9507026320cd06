/* infer_pool.c -- pooling: how many windows fit, and what the indices can count. */
#include "problem.h"

/* What a window covers, saturated. */
static int64_t covered(int64_t window, int64_t dilation)
{
  int64_t span;
  if (__builtin_mul_overflow(window - 1, dilation, &span) || span > 4 * QN__MAX_ELEMENTS) return 4 * QN__MAX_ELEMENTS;
  return span + 1;
}

static int64_t windows(const qn_pool *g, int i, int64_t extent)
{
  int64_t room = extent + g->pad_before[i] + g->pad_after[i] - covered(g->window[i], g->dilation[i]), s = g->stride[i];
  if (!g->ceil_mode) return room < 0 ? 0 : room / s + 1;
  int64_t n = room + s - 1 < 0 ? 0 : (room + s - 1) / s + 1;
  int64_t starts = extent + g->pad_before[i];           /* a window starts before this */
  int64_t most = starts <= 0 ? 0 : (starts - 1) / s + 1;
  return n < most ? n : most;
}

static qn_status check_geometry(const qn__problem *p, int spatial)
{
  const qn_pool *g = p->attr;
  qn_status status;
  if ((status = qn__attr_bounds(p, "window", g->window, spatial, 0))) return status;
  if ((status = qn__attr_bounds(p, "stride", g->stride, spatial, 0))) return status;
  if ((status = qn__attr_bounds(p, "dilation", g->dilation, spatial, 1))) return status;
  if ((status = qn__attr_bounds(p, "pad", g->pad_before, spatial, 0))) return status;
  if ((status = qn__attr_bounds(p, "pad", g->pad_after, spatial, 0))) return status;
  if (g->ceil_mode != 0 && g->ceil_mode != 1) return qn__refuse(p, "ceil_mode", "is %lld; must be 0 or 1", (long long)g->ceil_mode);
  if (g->include_pad != 0 && g->include_pad != 1)
    return qn__refuse(p, "include_pad", "is %lld; must be 0 or 1", (long long)g->include_pad);
  return QN_OK;
}

/* u8 counts taps in the window, i32 and i64 places in x's spatial plane. */
static qn_status check_indices(const qn__problem *p, uint32_t role, const qn_value *x)
{
  const qn_value *indices = qn__arg(p, role);
  const qn_pool *g = p->attr;
  if (!indices) return QN_OK;
  double taps = 1, plane = 1;
  for (int i = 2; i < x->rank; i++) {
    taps *= (double)g->window[i - 2];
    plane *= (double)x->dim[i];
  }
  if (indices->dtype == QN_U8 && taps > 255)
    return qn__refuse(p, "indices", "dtype is u8, which counts 255 taps; the window has %.0f: use i32 or i64", taps);
  if (indices->dtype == QN_I32 && plane > 0x7fffffff)
    return qn__refuse(p, "indices", "dtype is i32; the plane has %.0f places: use i64", plane);
  return QN_OK;
}

/* x (or dx) [N, C, X...]  y (or dy), indices [N, C, P...] */
qn_status qn__infer_pool(const qn__problem *p)
{
  bool backward = p->op->forward != 0, has_indices = p->op->kind == QN_OP_POOL_MAX || p->op->kind == QN_OP_POOL_MAX_BACKWARD;
  uint32_t indices_role = backward ? QN_ROLE_POOL_MAX_BACKWARD_INDICES : QN_ROLE_POOL_MAX_INDICES;
  uint32_t out_role = p->op->n_inputs;
  const qn_value *in = qn__arg(p, 0), *out = qn__arg(p, out_role);
  const char *in_name = qn__role_name(p, 0), *out_name = qn__role_name(p, out_role);
  qn_pool *g = p->attr;
  int rank = in->rank, spatial = rank - 2;
  if (rank < 3 || rank > 5)
    return qn__refuse(p, in_name, "rank is %d; must be 3 to 5: batch, channels and 1 to 3 spatial dims", rank);
  qn_status status = check_geometry(p, spatial);
  if (status) return status;

  /* the larger side, whose extents give global pooling its window: x, or in a backward op x or dx as far as they are known */
  const qn_value *x = in;
  if (backward) {
    const qn_value *given = p->op->kind == QN_OP_POOL_MAX_BACKWARD ? qn__arg(p, QN_ROLE_POOL_MAX_BACKWARD_X) : NULL;
    if (p->op->kind == QN_OP_POOL_MAX_BACKWARD && !given && !qn__arg(p, indices_role))
      return qn__refuse(p, "indices", "is missing, and so is x; one of them tells where the maxima came from");
    if (given && given->rank != rank)
      return qn__refuse(p, "x", "rank is %d; must be dy's, %d", (int)given->rank, rank);
    x = given ? given : out->rank == rank ? out : NULL;
    if (out->rank >= 0 && out->rank != rank)
      return qn__refuse(p, out_name, "rank is %d; must be dy's, %d", (int)out->rank, rank);
  }
  for (int i = 0; i < 3; i++) {
    if (i >= spatial) g->window[i] = g->stride[i] = 1;
    else if (g->window[i] == 0) {
      if (!x) return qn__refuse(p, out_name, "must be given, because the window is its whole extent");
      g->window[i] = x->dim[i + 2] > 0 ? x->dim[i + 2] : 1;
    }
    if (g->stride[i] == 0) g->stride[i] = g->window[i];
  }

  int64_t dim[QN_MAX_RANK] = { in->dim[0], in->dim[1] };
  for (int i = 0; i < spatial; i++) {
    int64_t *extent = &dim[i + 2];
    if (!backward) {
      *extent = windows(g, i, x->dim[i + 2]);
      continue;
    }
    if (x) *extent = x->dim[i + 2];
    else {                              /* the least that gives dy's */
      int64_t step;
      if (__builtin_mul_overflow(in->dim[i + 2] - 1, g->stride[i], &step) || step > QN__MAX_ELEMENTS)
        return qn__refuse(p, out_name, "would be more than memory can hold");
      *extent = step + covered(g->window[i], g->dilation[i]) - g->pad_before[i] - g->pad_after[i];
      if (*extent < 0) *extent = 0;
    }
    int64_t n = windows(g, i, *extent);
    if (n != in->dim[i + 2])
      return qn__refuse(p, in_name, "dim %d is %lld; an extent of %lld has %lld windows", i + 2, (long long)in->dim[i + 2],
                        (long long)*extent, (long long)n);
  }
  if (backward && x && (x->dim[0] != dim[0] || x->dim[1] != dim[1]))
    return qn__refuse(p, in_name, "dims are %s; batch and channels must be those of %s", qn__dims(in).s, qn__dims(x).s);

  if ((status = qn__dtype_in(p, out_role, QN__BIT(in->dtype)))) return status;
  if ((status = qn__settle(p, out_role, in->dtype, rank, dim))) return status;
  if (!has_indices) return QN_OK;
  if (backward && (status = qn__dtype_in(p, QN_ROLE_POOL_MAX_BACKWARD_X, QN__BIT(in->dtype)))) return status;
  const qn_value *plane = backward ? out : in;
  double places = 1;
  for (int i = 2; i < rank; i++) places *= (double)plane->dim[i];
  if (backward) status = qn__same_dims(p, indices_role, 0);
  else status = qn__settle(p, indices_role, places > 0x7fffffff ? QN_I64 : QN_I32, rank, dim);
  return status ? status : check_indices(p, indices_role, plane);
}
