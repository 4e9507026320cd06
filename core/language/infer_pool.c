/* infer_pool.c -- pooling: the number of windows, and what index dtypes can hold; and ops whose output size is an attribute. */
#include <string.h>
#include "problem.h"

static int64_t windows(const qn_pool *g, int i, int64_t extent)
{
  int64_t room = extent + g->pad_before[i] + g->pad_after[i] - qn__covered(g->window[i], g->dilation[i]), s = g->stride[i];
  if (!g->ceil_mode) return room < 0 ? 0 : room / s + 1;
  int64_t n = room + s - 1 < 0 ? 0 : (room + s - 1) / s + 1;
  int64_t starts = extent + g->pad_before[i];           /* a window starts before this */
  int64_t most = starts <= 0 ? 0 : (starts - 1) / s + 1;
  return n < most ? n : most;
}

/* i32 and i64 indices number positions in x's spatial plane, u8 taps in the window. */
static qn_status settle_indices(const qn__problem *p, uint32_t role, const qn_value *x, int rank, const int64_t *dim)
{
  const qn_value *indices = qn__arg(p, role);
  double places = 1;
  for (int i = 2; i < rank; i++) places *= (double)x->dim[i];
  bool wide = places > 0x7fffffff;
  qn_status status = p->op->forward ? qn__same_dims(p, role, 0) : qn__settle(p, role, wide ? QN_I64 : QN_I32, rank, dim);
  if (!status && indices && indices->dtype == QN_I32 && wide)
    return qn__refuse(p, "indices", "dtype is i32; the plane has %.0f places: use i64", places);
  return status;
}

/* Maxima and averages also of i8 and u8. */
static qn_status check_dtype(const qn__problem *p)
{
  return qn__dtype_in(p, 0, p->op->role[0].class_ == 'n' ? QN__FLOATS | QN__BIT(QN_I8) | QN__BIT(QN_U8) : QN__FLOATS);
}

static bool adaptive_op(uint32_t kind)
{
  return kind == QN_OP_POOL_ADAPTIVE_MAX || kind == QN_OP_POOL_ADAPTIVE_MAX_BACKWARD || kind == QN_OP_POOL_ADAPTIVE_AVERAGE
      || kind == QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD;
}

/* A scale factor of dim i makes size P = floor(extent up/down). Left in the attributes only where places depend on it: reduced, and not the
 * ratio of the extents. Products of all places with up or down fit 64 bits in any engine. */
static qn_status settle_scale(const qn__problem *p, qn_resampling *r, int i, int64_t extent, int64_t *size)
{
  int64_t *up = &r->up[i], *down = &r->down[i], a = *up, b = *down, scaled;
  if (a == 0 && b == 1) return QN_OK;
  for (a = *up = a ? a : 1; b; ) {
    const int64_t rest = a % b;
    a = b, b = rest;
  }
  *up /= a, *down /= a;
  if (__builtin_mul_overflow(extent, *up, &scaled) || scaled > QN__MAX_ELEMENTS)
    return qn__refuse(p, "up", "entry %d makes more than %lld places", i, (long long)QN__MAX_ELEMENTS);
  if (*down > QN__MAX_ELEMENTS / 4)
    return qn__refuse(p, "down", "entry %d is %lld; at most %lld", i, (long long)*down, (long long)(QN__MAX_ELEMENTS / 4));
  const int64_t places = scaled / *down;
  if (*size && *size != places)
    return qn__refuse(p, "size", "entry %d is %lld; %lld places times %lld/%lld are %lld", i, (long long)*size, (long long)extent,
                      (long long)*up, (long long)*down, (long long)places);
  if (!places && extent) return qn__refuse(p, "up", "entry %d: %lld places times %lld/%lld are none", i, (long long)extent, (long long)*up,
                                 (long long)*down);
  *size = places;
  if (r->grid == QN_GRID_ALIGN_CORNERS || scaled % *down == 0) *up = 0, *down = 1;
  return QN_OK;
}

/* Ops with one window or point per element of y, whatever x's extents. Their attributes begin with the size of struct qn_adaptive. */
qn_status qn__infer_sized(const qn__problem *p)
{
  bool backward = p->op->forward != 0;
  uint32_t out_role = p->op->n_inputs, indices_role = backward ? 1 : out_role + 1;
  const qn_value *in = qn__arg(p, 0), *out = qn__arg(p, out_role), *small = backward ? in : out;
  const char *out_name = qn__role_name(p, out_role);
  bool has_indices = p->op->kind == QN_OP_POOL_ADAPTIVE_MAX || p->op->kind == QN_OP_POOL_ADAPTIVE_MAX_BACKWARD;
  qn_adaptive *a = p->attr;
  int rank = in->rank;
  int64_t dim[QN_MAX_RANK] = { in->dim[0], in->dim[1] };
  if (rank < 3 || rank > 5)
    return qn__refuse(p, qn__role_name(p, 0), "rank is %d; must be 3 to 5: batch, channels and 1 to 3 spatial dims", rank);
  if (backward && out->rank < 0) return qn__refuse(p, out_name, "must be given: its extents are not in dy");
  if (out->rank >= 0 && out->rank != rank)
    return qn__refuse(p, out_name, "rank is %d; must be %s's, %d", (int)out->rank, qn__role_name(p, 0), rank);
  qn_status status = check_dtype(p);
  if (status) return status;
  qn_resampling *r = p->op->family == QN_FAMILY_RESAMPLING ? p->attr : NULL;
  if (r && r->antialias && (r->mode == QN_RESAMPLE_NEAREST || r->grid != QN_GRID_HALF_PIXEL))
    return qn__refuse(p, "antialias", "is 1; wants mode linear or cubic, and grid half_pixel");
  for (int i = 2; i < rank; i++) {
    int64_t *size = &a->size[i - 2];
    const qn_value *plane = backward ? out : in;
    if (r && (status = settle_scale(p, r, i - 2, plane->dim[i], size))) return status;
    if (*size == 0 && small->rank < 0)
      return qn__refuse(p, "size", "entry %d is 0 and y is not given; one of them tells how many places y has", i - 2);
    if (*size == 0) *size = small->dim[i];
    if (backward && *size != in->dim[i])
      return qn__refuse(p, "size", "entry %d is %lld; dy's dim %d is %lld", i - 2, (long long)*size, i, (long long)in->dim[i]);
    dim[i] = backward ? out->dim[i] : *size;
    if (plane->dim[i] == 0 && *size)
      return qn__refuse(p, backward ? out_name : "x", "dim %d is 0, which no place of %s can be made of", i, backward ? "dy" : "y");
  }
  for (int i = rank - 2; i < 3; i++) a->size[i] = 0;
  for (int i = rank - 2; i < 3 && r; i++) r->up[i] = 0, r->down[i] = 1;
  if ((status = qn__dtype_in(p, out_role, QN__BIT(in->dtype)))) return status;
  if ((status = qn__settle(p, out_role, in->dtype, rank, dim))) return status;
  return has_indices ? settle_indices(p, indices_role, backward ? out : in, rank, dim) : QN_OK;
}

/* The larger side, whose extents are the window of global pooling: x, or in a backward op x or dx if known, else NULL. */
static qn_status larger_side(const qn__problem *p, int rank, const qn_value **x)
{
  const qn_value *in = qn__arg(p, 0), *out = qn__arg(p, p->op->n_inputs), *given = NULL;
  *x = in;
  if (!p->op->forward) return QN_OK;
  if (p->op->kind == QN_OP_POOL_MAX_BACKWARD) {
    given = qn__arg(p, QN_ROLE_POOL_MAX_BACKWARD_X);
    if (!given && !qn__arg(p, QN_ROLE_POOL_MAX_BACKWARD_INDICES))
      return qn__refuse(p, "indices", "is missing, and so is x; one of them tells where the maxima came from");
  }
  if (p->op->kind == QN_OP_POOL_LP_BACKWARD) given = qn__arg(p, QN_ROLE_POOL_LP_BACKWARD_X);
  if (given && given->rank != rank) return qn__refuse(p, "x", "rank is %d; must be dy's, %d", (int)given->rank, rank);
  if (out->rank >= 0 && out->rank != rank)
    return qn__refuse(p, qn__role_name(p, p->op->n_inputs), "rank is %d; must be dy's, %d", (int)out->rank, rank);
  *x = given ? given : out->rank == rank ? out : NULL;
  if (*x && ((*x)->dim[0] != in->dim[0] || (*x)->dim[1] != in->dim[1]))
    return qn__refuse(p, qn__role_name(p, 0), "dims are %s; batch and channels must be those of %s", qn__dims(in).s, qn__dims(*x).s);
  return QN_OK;
}

/* Replaces windows and strides of 0 by numbers. */
static qn_status complete_windows(const qn__problem *p, int spatial, const qn_value *x)
{
  qn_pool *g = p->attr;
  int64_t taps = 1;                     /* engines number the taps; padding can make them many */
  for (int i = 0; i < 3; i++) {
    if (i >= spatial) g->window[i] = g->stride[i] = 1;
    else if (g->window[i] == 0) {
      if (!x) return qn__refuse(p, qn__role_name(p, p->op->n_inputs), "must be given, because the window is its whole extent");
      g->window[i] = x->dim[i + 2] > 0 ? x->dim[i + 2] : 1;
    }
    if (g->stride[i] == 0) g->stride[i] = g->window[i];
    if (__builtin_mul_overflow(taps, g->window[i], &taps) || taps > QN__MAX_ELEMENTS)
      return qn__refuse(p, "window", "has more than %lld taps", (long long)QN__MAX_ELEMENTS);
  }
  return QN_OK;
}

/* dx's extent if nothing else gives it: the smallest that leads to dy's. */
static qn_status least_extent(const qn__problem *p, int i, int64_t windows, int64_t *extent)
{
  const qn_pool *g = p->attr;
  int64_t step;
  if (__builtin_mul_overflow(windows - 1, g->stride[i], &step) || step > QN__MAX_ELEMENTS)
    return qn__refuse(p, qn__role_name(p, p->op->n_inputs), "would be more than memory can hold");
  *extent = step + qn__covered(g->window[i], g->dilation[i]) - g->pad_before[i] - g->pad_after[i];
  if (*extent < 0) *extent = 0;
  return QN_OK;
}

/* x (or dx) [N, C, X...]  y (or dy), indices [N, C, P...] */
qn_status qn__infer_pool(const qn__problem *p)
{
  if (adaptive_op(p->op->kind)) return qn__infer_sized(p);
  const uint32_t kind = p->op->kind, out_role = p->op->n_inputs;
  const bool backward = p->op->forward != 0;
  const qn_value *in = qn__arg(p, 0), *x;
  const qn_pool *g = p->attr;
  int rank = in->rank;
  if (rank < 3 || rank > 5)
    return qn__refuse(p, qn__role_name(p, 0), "rank is %d; must be 3 to 5: batch, channels and 1 to 3 spatial dims", rank);
  qn_status status = check_dtype(p);
  if (status) return status;
  if ((status = larger_side(p, rank, &x)) || (status = complete_windows(p, rank - 2, x))) return status;

  int64_t dim[QN_MAX_RANK] = { in->dim[0], in->dim[1] };
  for (int i = 0; i < rank - 2; i++) {
    int64_t *extent = &dim[i + 2];
    if (x) *extent = x->dim[i + 2];
    else if ((status = least_extent(p, i, in->dim[i + 2], extent))) return status;
    int64_t n = windows(g, i, *extent);
    if (backward && n != in->dim[i + 2])
      return qn__refuse(p, qn__role_name(p, 0), "dim %d is %lld; an extent of %lld has %lld windows", i + 2, (long long)in->dim[i + 2],
                        (long long)*extent, (long long)n);
    if (!backward) *extent = n;
  }
  for (uint32_t r = 1; r < p->op->n_roles; r++)       /* all but indices */
    if (strchr("fn", p->op->role[r].class_) && (status = qn__dtype_in(p, r, QN__BIT(in->dtype)))) return status;
  if ((status = qn__settle(p, out_role, in->dtype, rank, dim))) return status;
  if (kind == QN_OP_POOL_LP_BACKWARD) return qn__same_dims(p, QN_ROLE_POOL_LP_BACKWARD_Y, 0);
  if (kind != QN_OP_POOL_MAX && kind != QN_OP_POOL_MAX_BACKWARD) return QN_OK;

  uint32_t indices_role = backward ? QN_ROLE_POOL_MAX_BACKWARD_INDICES : QN_ROLE_POOL_MAX_INDICES;
  const qn_value *indices = qn__arg(p, indices_role);
  int64_t taps = g->window[0] * g->window[1] * g->window[2];
  if (indices && indices->dtype == QN_U8 && taps > 255)
    return qn__refuse(p, "indices", "dtype is u8, which counts 255 taps; the window has %lld: use i32 or i64", (long long)taps);
  return settle_indices(p, indices_role, backward ? qn__arg(p, out_role) : in, rank, dim);
}
