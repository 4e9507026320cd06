/* conv_windows.c -- reads a convolution as products over its windows (conv_unfold.c): which of them are views, what is copied. */
#include "conv_windows.h"

enum { BATCHES = 65535 };                 /* of a product, at most */

/* ---- layouts ------------------------------------------------------------------------------------------------------- */

/* The dims of the problem, D, H, W, in conv_problem.h's order; and in a tensor of this rank, -1: missing. */
static const int order[3] = { 2, 0, 1 };
static int dim_of(int rank, int d) { return rank - 3 + d >= 2 ? rank - 3 + d : -1; }

/* Strides N, C, D, H, W. */
static void strides_of(const qn_value *v, int64_t stride[5])
{
  stride[0] = v->stride[0], stride[1] = v->stride[1];
  for (int d = 0; d < 3; d++) {
    const int at = dim_of(v->rank, d);
    stride[2 + d] = at < 0 ? 0 : v->stride[at];
  }
}

/* Do dims merge into one? step: its stride. */
static bool merge(int n, const int32_t *dim, const int64_t *stride, int64_t *step)
{
  int64_t extent = 1;
  *step = 1;
  for (int d = n - 1; d >= 0; d--) {
    if (dim[d] == 1) continue;
    if (extent == 1) *step = stride[d];
    else if (stride[d] != *step * extent) return false;
    extent *= dim[d];
  }
  return true;
}

/* The stride of k = (c, r) or (r, c) in a tensor with these strides of C, D, H, W; false: none. */
static bool merge_taps(const cuda_unfold *u, const int64_t stride[4], int64_t *step)
{
  const int32_t first[] = { u->channels, u->size[0], u->size[1], u->size[2] }, last[] = { u->size[0], u->size[1], u->size[2], u->channels };
  const int64_t along[] = { stride[1], stride[2], stride[3], stride[0] };
  return u->last ? merge(4, last, along, step) : merge(4, first, stride, step);
}

static bool has_padding(const cuda_unfold *u)
{
  for (int d = 0; d < 3; d++)
    if (u->before[d] || (int64_t)(u->out[d] - 1) * u->step[d] + (int64_t)(u->size[d] - 1) * u->dilation[d] >= u->in[d]) return true;
  return false;
}

/* Are the windows a view of x? Fills in its steps. */
static bool is_view(cuda_unfold *u)
{
  int64_t windows[3], taps[4] = { u->x_stride[1] };
  for (int d = 0; d < 3; d++) windows[d] = u->x_stride[2 + d] * u->step[d], taps[1 + d] = u->x_stride[2 + d] * u->dilation[d];
  if (has_padding(u) || !merge(3, u->out, windows, &u->p_step) || !merge_taps(u, taps, &u->k_step)) return false;
  u->n_step = u->x_stride[0], u->g_step = u->x_stride[1] * u->channels;
  return true;
}

/* Channels last, not in units of 16 bytes, and a row of a window is contiguous: its taps and channels become one dim. */
static void merge_channels(cuda_unfold *u)
{
  const int32_t c = u->channels;
  if (!u->last || c * u->bytes % 16 == 0 || u->groups > 1 || u->x_stride[1] != 1 || u->x_stride[4] != c || u->dilation[2] != 1) return;
  if ((int64_t)c * (u->in[2] + u->before[2]) > 1 << 28 || (int64_t)c * u->step[2] * u->out[2] > 1 << 28) return;
  u->in[2] *= c, u->size[2] *= c, u->step[2] *= c, u->before[2] *= c;
  u->x_stride[4] = 1, u->channels = 1, u->x_stride[1] = 0, u->last = 0;
}

/* ---- the problem ---------------------------------------------------------------------------------------------------------- */

static void describe(cuda_windows *q, const cuda_conv_problem *c, const qn_request *r)
{
  cuda_unfold *u = &q->u;
  const qn_value *x = c->x, *y = c->y, *w = c->w;
  int64_t y_stride[5];
  q->mode = c->mode;
  q->x = c->x_at, q->w = c->w_at, q->y = c->y_at, q->bias = c->bias_at;
  q->x_bytes = (int32_t)qn_kit_bytes(x->dtype), q->y_bytes = (int32_t)qn_kit_bytes(y->dtype);
  q->images = x->dim[0];
  q->groups = c->groups, q->channels = c->channels / c->groups, q->filters = c->filters / c->groups;
  for (int d = 0; d < 3; d++) {
    const int from = order[d];
    u->in[d] = (int32_t)c->in[from], u->out[d] = (int32_t)c->out[from], u->size[d] = (int32_t)c->size[from];
    u->step[d] = (int32_t)c->stride[from], u->dilation[d] = (int32_t)c->dilation[from], u->before[d] = (int32_t)c->before[from];
  }
  strides_of(x, u->x_stride);
  strides_of(y, y_stride);
  strides_of(w, q->w_stride);
  for (q->outer = 0; q->outer < 2 && u->out[q->outer] == 1 && u->in[q->outer] == 1; ) q->outer++;
  u->groups = (int32_t)c->groups, u->channels = (int32_t)q->channels;
  u->k = (int32_t)(q->channels * u->size[0] * u->size[1] * u->size[2]);
  u->last = q->channels > 1 && u->x_stride[1] == 1;
  u->bytes = q->x_bytes;
  u->align = x->align;
  q->p = (cuda_window_pixels){ y_stride[0], y_stride[1], 0, y_stride[2 + q->outer], y->align };
  q->dtype = q->x_dtype = x->dtype;
  const uint32_t read = r->value[c->mode == CUDA_CONV_DATA ? c->y_at : c->x_at].dtype;
  q->sum = read == QN_F64 ? QN_F64 : read == QN_I8 || read == QN_U8 ? QN_I32 : QN_F32;
  q->dw_dtype = w->dtype;
  q->w_align = w->align;
}

static qn_status check(const cuda_windows *q, const cuda_conv_problem *c, qn_prepared *out)
{
  const cuda_unfold *u = &q->u;
  const qn_value *all[] = { c->x, c->w, c->y };
  for (int i = 0; i < 3; i++)
    if (!qn_elements(all[i])) return qn_refuse(out, "nothing to multiply", cuda_conv_name(c, all[i]), "dims of 1 or more", "%s", "0");
  double reach = (double)(q->channels - 1) * (double)u->x_stride[1];
  for (int d = 0; d < 3; d++) {
    const double first = (double)(u->out[d] - 1) * u->step[d], before = u->before[d];
    reach += ((first > before ? first : before) + (double)(u->size[d] - 1) * u->dilation[d]) * (double)u->x_stride[2 + d];
  }
  if (reach > 2e9) return qn_refuse(out, "images within 31 bits", cuda_conv_name(c, c->x), "fewer elements", "%.0f", reach);
  if (u->groups > BATCHES) return qn_refuse(out, "groups", "x", "at most 65535", "%d", u->groups);
  if ((double)q->channels * u->size[0] * u->size[1] * u->size[2] > 1e9)
    return qn_refuse(out, "filters of fewer elements", "w", "10^9", "%s", "more");
  return QN_OK;
}

/* No two windows share an element of x, and if `whole` each element is in one. */
static bool is_disjoint(const cuda_unfold *u, bool whole)
{
  for (int d = 0; d < 3; d++) {
    if (u->out[d] > 1 && (u->size[d] - 1) * (int64_t)u->dilation[d] >= u->step[d]) return false;
    if (whole && (u->before[d] || (u->size[d] > 1 && u->dilation[d] > 1) || (u->out[d] > 1 && u->size[d] != u->step[d]) ||
                  (int64_t)u->out[d] * u->size[d] != u->in[d]))
      return false;
  }
  return true;
}

/* Which operands are copied, and how cols lies. */
static qn_status choose(cuda_windows *q, const cuda_conv_problem *c, qn_prepared *out)
{
  cuda_unfold *u = &q->u;
  const bool data = c->mode == CUDA_CONV_DATA, filter = c->mode == CUDA_CONV_FILTER;
  const int64_t windows = (int64_t)u->out[0] * u->out[1] * u->out[2], k = u->k, f = q->filters, g = q->groups;
  const int64_t sum_bytes = (int64_t)qn_kit_bytes(q->sum);
  int64_t y_stride[5], step;
  strides_of(c->y, y_stride);
  bool one = merge(3, u->out, y_stride + 2, &q->p.window);
  const bool disjoint = data && is_disjoint(u, false);
  const bool covered = disjoint && is_disjoint(u, true);
  q->view = (!data || covered) && is_view(u);
  if (windows == 1) {                     /* the images are the rows of one product */
    q->p.window = q->p.image;
    if (q->view) u->p_step = u->n_step;
  }
  /* a sum over images in one product, if the partial sums would be more than dy; unless dy and x are one already */
  const bool apart = !one || q->p.image != windows * q->p.window || (q->view && u->n_step != windows * u->p_step);
  if (filter && (!one || (apart && q->images > 1 && q->images * f * g * k * sum_bytes > qn_elements(c->y) * q->y_bytes))) {
    qn_value to = *c->y;
    to.align = 16;
    to.stride[0] = windows;
    to.stride[1] = qn_round_up(q->images * windows, 16 / q->y_bytes);
    for (int64_t d = to.rank - 1, s = 1; d >= 2; d--) to.stride[d] = s, s *= to.dim[d];
    q->dy = to;
    q->copy_dy = true;
    q->view = false;
    q->p = (cuda_window_pixels){ windows, to.stride[1], 1, windows / u->out[q->outer], 16 };
    one = true;
  }
  if (!one) return qn_refuse(out, "spatial dims that merge into one", cuda_conv_name(c, c->y), "packed rows", "%s", "other strides");
  q->named = *u;
  /* core prefers the engine that takes the most ops: not where another one is likely to be much faster without them */
  q->follows = q->view || is_disjoint(u, false) || k <= 256;
  if (!merge_taps(u, q->w_stride + 1, &step) || step != 1) {
    if (!filter) {
      qn_value to = *c->w;
      to.align = 16;
      int64_t s = 1;
      if (u->last) to.stride[1] = 1, s = to.dim[1];
      for (int d = to.rank - 1; d >= 2; d--) to.stride[d] = s, s *= to.dim[d];
      if (!u->last) to.stride[1] = s;
      to.stride[0] = k;
      q->filters_as = to;
      q->copy_filters = true;
      q->w_row = k;
      q->w_align = 16;
    }
  } else {
    q->w_row = c->w->dim[0] > 1 ? c->w->stride[0] : k;
    q->direct = filter;
  }
  if (q->view) return QN_OK;
  merge_channels(u);
  q->scatter = disjoint && (covered || qn_is_dense(c->x));
  q->clear = q->scatter && !covered;
  q->clear_bytes = (uint64_t)qn_extent_bytes(c->x);
  if (data && !q->scatter) q->dtype = q->sum;
  u->bytes = (int32_t)qn_kit_bytes(q->dtype);
  q->across = filter ? u->bytes != 2 : data && !q->scatter && !u->last && u->step[2] < 4;
  return QN_OK;
}

qn_status cuda_windows_read(cuda_windows *q, const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  qn_status status = cuda_conv_problem_read_any(&c, r, out);
  if (status) return status;
  describe(q, &c, r);
  status = check(q, &c, out);
  return status ? status : choose(q, &c, out);
}

/* ---- chunks ---------------------------------------------------------------------------------------------------------------- */

static int64_t evenly(int64_t n, int64_t most)
{
  most = qn_max_i64(1, qn_min_i64(n, most));
  return qn_ceil_div(n, qn_ceil_div(n, most));
}

/* Rows of windows that hold one of `slab` rows of dx. */
static int64_t rows_under(const cuda_unfold *u, int d, int64_t slab)
{
  return qn_min_i64(u->out[d], (slab - 1 + (int64_t)(u->size[d] - 1) * u->dilation[d]) / u->step[d] + 1);
}

void cuda_windows_share(cuda_windows *q, int64_t bytes, int64_t *images, int64_t *rows)
{
  const cuda_unfold *u = &q->u;
  const int64_t all = u->out[q->outer], unit = 16 / (int64_t)qn_kit_bytes(q->dtype);
  const int64_t row = (int64_t)u->out[0] * u->out[1] * u->out[2] / all * q->groups * qn_round_up(q->named.k, unit) * qn_kit_bytes(q->dtype);
  const bool fold = q->mode == CUDA_CONV_DATA && !q->scatter;
  *rows = all;
  *images = evenly(q->images, qn_min_i64(qn_min_i64(q->view ? INT64_MAX : bytes / (row * all), BATCHES / q->groups),
                                          INT32_MAX / ((int64_t)u->in[0] * u->in[1] * u->in[2] * u->channels * u->groups)));
  q->slab = u->in[q->outer];
  if (q->view || bytes >= row * all) return;
  if (!fold) {
    *rows = evenly(all, bytes / row);
    return;
  }
  const int64_t most = (bytes / row - 1) * u->step[q->outer] + 1 - (int64_t)(u->size[q->outer] - 1) * u->dilation[q->outer];
  q->slab = evenly(u->in[q->outer], most);
  *rows = rows_under(u, q->outer, q->slab);
}
