/* mutants_reduce.c -- bugs of softmax, reductions and pooling: shifts, tails, divisors, starts, NaN, ties, axes. */
#include "mutant.h"

#define X QN_ROLE_SOFTMAX_X
#define Y QN_ROLE_SOFTMAX_Y

/* ---- softmax ------------------------------------------------------------------------------ */

struct rows { int64_t outer, len, inner; };

static struct rows rows_of(const struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, X);
  int64_t axis = ((const qn_axis *)(const void *)c->k->original)->axis;
  struct rows r = {1, 1, 1};
  axis = axis < 0 ? axis + x->rank : axis;
  for (int d = 0; d < x->rank; d++)
    *(d < axis ? &r.outer : d == axis ? &r.len : &r.inner) *= x->dim[d];
  return r;
}

/* y = e^x / sum e^x, the sum over the first `upto` of each row, in f32, which overflows beyond 88 */
static void softmax_by(struct mut_call *c, int64_t upto, bool shift)
{
  const qn_value *x = mut_value(c->k, X), *y = mut_value(c->k, Y);
  struct rows r = rows_of(c);
  for (int64_t row = 0; row < r.outer * r.inner; row++) {
    int64_t base = row / r.inner * r.len * r.inner + row % r.inner;
    double sum = 0, m = shift ? -INFINITY : 0;
    for (int64_t i = 0; i < r.len && shift; i++)
      m = fmax(m, mut_get(x, mut_pointer(c, X), base + i * r.inner));
    for (int64_t i = 0; i < upto; i++)
      sum += (float)exp(mut_get(x, mut_pointer(c, X), base + i * r.inner) - m);
    for (int64_t i = 0; i < r.len; i++) {
      float e = (float)exp(mut_get(x, mut_pointer(c, X), base + i * r.inner) - m);
      mut_put(y, mut_pointer(c, Y), base + i * r.inner, (float)(e / sum));
    }
  }
}

void sm_no_shift(struct mut_call *c)
{
  if (mut_value(c->k, X)->dtype != QN_F64)
    softmax_by(c, rows_of(c).len, false);
}

/* Vectors of 8, and the rest of the row left out of the sum. */
void sm_tail_left_out(struct mut_call *c)
{
  int64_t whole = rows_of(c).len / 8 * 8;
  if (whole)
    softmax_by(c, whole, true);
}

bool sm_last_axis_always(struct mut_kept *k)
{
  qn_axis *a = (qn_axis *)(void *)k->attr;
  bool shows = a->axis >= 0 && a->axis != mut_value(k, X)->rank - 1;
  a->axis = mut_value(k, X)->rank - 1;
  return shows;
}

void sm_base_2(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, Y);
  for (int64_t i = 0; i < qn_elements(y); i++)
    mut_put(y, mut_pointer(c, Y), i, mut_get(y, mut_pointer(c, Y), i) / 0.6931471805599453);
}

/* ---- reductions: x and y are roles 0 and 1 of all of them ---------------------------------- */

/* The output element that x's element i contributes to, and its index among the contributors. */
static int64_t target(const struct mut_call *c, int64_t i, int64_t *place)
{
  const qn_value *x = mut_value(c->k, 0), *y = mut_value(c->k, 1);
  int64_t at[QN_MAX_RANK], to = 0, order = 0;
  mut_offset(x, i, at);
  for (int d = 0; d < x->rank; d++) {
    bool reduced = y->dim[d] == 1 && x->dim[d] != 1;
    to = to * y->dim[d] + (reduced ? 0 : at[d]);
    order = reduced ? order * x->dim[d] + at[d] : order;
  }
  *place = order;
  return to;
}

static int64_t terms(const struct mut_call *c)
{
  int64_t n = qn_elements(mut_value(c->k, 1));
  return n ? qn_elements(mut_value(c->k, 0)) / n : 0;
}

/* Vectors of 16, and the rest of the sum left out. */
void rd_tail_dropped(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, 0);
  int64_t whole = terms(c) / 16 * 16, place;
  if (!whole)
    return;
  void *p = mut_copy(c, 0);
  for (int64_t i = 0; i < qn_elements(x); i++) {
    target(c, i, &place);
    if (place >= whole)
      mut_put(x, p, i, 0);
  }
}

void rd_divides_by_n_less_1(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, 1);
  double n = (double)terms(c);
  for (int64_t i = 0; i < qn_elements(y) && n > 1; i++)
    mut_put(y, mut_pointer(c, 1), i, mut_get(y, mut_pointer(c, 1), i) * n / (n - 1));
}

/* The accumulator starts at the lowest finite number instead of -Inf. */
void rd_starts_at_lowest(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, 1);
  for (int64_t i = 0; i < qn_elements(y); i++)
    if (mut_get(y, mut_pointer(c, 1), i) == -INFINITY)
      mut_put(y, mut_pointer(c, 1), i, y->dtype == QN_F16 ? -65504 : -3.3895313892515355e38);
}

static void nan_to_lowest(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, 0);
  void *p = mut_copy(c, 0);
  for (int64_t i = 0; i < qn_elements(x) && qn_is_float(x->dtype); i++)
    if (isnan(mut_get(x, p, i)))
      mut_put(x, p, i, -INFINITY);
}

void rd_nan_dropped(struct mut_call *c) { nan_to_lowest(c); }

void rd_squares_in_f16(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, 0), *y = mut_value(c->k, 1);
  int64_t n = qn_elements(y), place;
  double *sum = calloc((size_t)n + 1, sizeof *sum);
  for (int64_t i = 0; sum && i < qn_elements(x); i++) {
    double v = mut_get(x, mut_pointer(c, 0), i);
    sum[target(c, i, &place)] += qn_f16_to_f64(qn_f16_from_f64(v * v));
  }
  for (int64_t i = 0; sum && i < n; i++)
    mut_put(y, mut_pointer(c, 1), i, sqrt(sum[i]));
  free(sum);
}

/* >= where > was meant */
void rd_last_tie(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, 0), *y = mut_value(c->k, 1);
  int64_t n = qn_elements(y), place;
  double *best = malloc(((size_t)n + 1) * sizeof *best);
  for (int64_t i = 0; best && i < n; i++)
    best[i] = -INFINITY;
  for (int64_t i = 0; best && i < qn_elements(x); i++) {
    int64_t to = target(c, i, &place);
    double v = mut_get(x, mut_pointer(c, 0), i);
    if (v >= best[to]) {
      best[to] = v;
      qn_store_i64((char *)mut_pointer(c, 1) + mut_offset(y, to, NULL) * qn_kit_bytes(y->dtype), y->dtype, place);
    }
  }
  free(best);
}

/* ---- pooling ------------------------------------------------------------------------------ */

void pl_starts_at_zero(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, QN_ROLE_POOL_MAX_Y);
  void *p = mut_pointer(c, QN_ROLE_POOL_MAX_Y);
  for (int64_t i = 0; i < qn_elements(y); i++)
    if (mut_get(y, p, i) < 0)
      mut_put(y, p, i, 0);
}

void pl_nan_dropped(struct mut_call *c) { nan_to_lowest(c); }

bool pl_padding_miscounted(struct mut_kept *k)
{
  qn_pool *pool = (qn_pool *)(void *)k->attr;
  bool shows = false;
  for (int d = 0; d < 3; d++)
    shows |= pool->pad_before[d] || pool->pad_after[d];
  pool->include_pad = !pool->include_pad;
  return shows;
}

bool pl_pads_swapped(struct mut_kept *k)
{
  qn_patches *a = (qn_patches *)(void *)k->attr;
  bool shows = false;
  for (int d = 0; d < 3; d++) {
    const int64_t before = a->pad_before[d];
    shows |= before != a->pad_after[d];
    a->pad_before[d] = a->pad_after[d];
    a->pad_after[d] = before;
  }
  return shows;
}

bool pl_dilation_ignored(struct mut_kept *k)
{
  qn_patches *a = (qn_patches *)(void *)k->attr;
  bool shows = false;
  for (int d = 0; d < 3; d++) {
    shows |= a->dilation[d] > 1 && a->window[d] > 1;
    a->dilation[d] = 1;
  }
  return shows;
}

bool pl_stride_is_window(struct mut_kept *k)
{
  qn_pool *pool = (qn_pool *)(void *)k->attr;
  bool shows = false;
  for (int d = 0; d < mut_value(k, 0)->rank - 2; d++) {
    shows |= pool->stride[d] && pool->stride[d] != pool->window[d];
    pool->stride[d] = pool->window[d];
  }
  return shows;
}

/* In one dim: begin and size of adaptive window i, with windows that may (or may not) overlap. */
static int64_t window_size(int64_t x, int64_t windows, int64_t i, bool shared, int64_t *begin)
{
  *begin = i * x / windows;
  return (shared ? qn_ceil_div((i + 1) * x, windows) : (i + 1) * x / windows) - *begin;
}

/* The last dim's windows end where the next begins, so that none overlap. */
void pl_windows_apart(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, QN_ROLE_POOL_ADAPTIVE_AVERAGE_X), *y = mut_value(c->k, QN_ROLE_POOL_ADAPTIVE_AVERAGE_Y);
  int last = x->rank - 1;
  int64_t n = x->dim[last], windows = y->dim[last], begin;
  if (x->rank != 3)
    return;
  for (int64_t i = 0; i < qn_elements(y); i++) {
    double sum = 0;
    int64_t size = window_size(n, windows, i % windows, false, &begin);
    for (int64_t k = 0; k < size; k++)
      sum += mut_get(x, mut_pointer(c, QN_ROLE_POOL_ADAPTIVE_AVERAGE_X), i / windows * n + begin + k);
    if (size)
      mut_put(y, mut_pointer(c, QN_ROLE_POOL_ADAPTIVE_AVERAGE_Y), i, sum / (double)size);
  }
}

/* One divisor for all windows of a dim. */
void pl_divided_by_the_first(struct mut_call *c)
{
  const qn_value *dy = mut_value(c->k, 0), *dx = mut_value(c->k, QN_ROLE_POOL_ADAPTIVE_AVERAGE_BACKWARD_DX);
  int64_t at[QN_MAX_RANK], begin;
  for (int64_t i = 0; i < qn_elements(dx); i++) {
    double right = 1, wrong = 1;
    mut_offset(dx, i, at);
    for (int d = 2; d < dx->rank; d++) {
      wrong *= (double)window_size(dx->dim[d], dy->dim[d], 0, true, &begin);
      right *= (double)window_size(dx->dim[d], dy->dim[d], at[d] * dy->dim[d] / dx->dim[d], true, &begin);
    }
    void *to = mut_pointer(c, QN_ROLE_POOL_ADAPTIVE_AVERAGE_BACKWARD_DX);
    mut_put(dx, to, i, mut_get(dx, to, i) * right / wrong);
  }
}

bool pl_p_is_2(struct mut_kept *k)
{
  qn_pool *pool = (qn_pool *)(void *)k->attr;
  bool shows = pool->p != 2;
  pool->p = 2;
  return shows;
}

void pl_sign_lost(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, QN_ROLE_POOL_LP_BACKWARD_X), *dx = mut_value(c->k, QN_ROLE_POOL_LP_BACKWARD_DX);
  void *p = mut_pointer(c, QN_ROLE_POOL_LP_BACKWARD_DX);
  for (int64_t i = 0; i < qn_elements(dx); i++)
    if (mut_get(x, mut_pointer(c, QN_ROLE_POOL_LP_BACKWARD_X), i) < 0)
      mut_put(dx, p, i, -mut_get(dx, p, i));
}

/* ---- attributes of reductions ------------------------------------------------------------- */

bool rd_always_unbiased(struct mut_kept *k)
{
  qn_axes *a = (qn_axes *)(void *)k->attr;
  bool shows = a->correction != 1;
  a->correction = 1;
  return shows;
}

bool rd_first_of_equals(struct mut_kept *k)
{
  qn_axes *a = (qn_axes *)(void *)k->attr;
  bool shows = a->last != 0;
  a->last = 0;
  return shows;
}
