/* mutants_norm.c -- bugs of normalization: variances, eps, tails, running statistics, terms of gradients. */
#include "mutant.h"

/* The value of a role, and its memory. */
static const qn_value *part(const struct mut_call *c, int8_t role, void **p)
{
  const qn_value *v = role < 0 ? NULL : mut_value(c->k, (uint32_t)role);
  *p = v ? mut_pointer(c, (uint32_t)role) : NULL;
  return v;
}

static qn_norm *attributes(struct mut_kept *k) { return (qn_norm *)(void *)k->attr; }

/* The bugs below recompute rows along the last dim. */
bool nm_last_dim(struct mut_kept *k)
{
  const qn_value *x = mut_value(k, (uint32_t)qn_norm_roles_of(k->node.op).x);
  return attributes(k)->mask == UINT64_C(1) << (x->rank - 1);
}

static double parameter(const struct mut_call *c, int8_t role, int64_t row, int64_t j, int64_t length, double absent)
{
  void *p;
  const qn_value *v = part(c, role, &p);
  if (!v)
    return absent;
  int64_t rows = qn_elements(v) / v->dim[v->rank - 1], last = v->dim[v->rank - 1];
  return mut_get(v, p, (rows > 1 ? row : 0) * last + (last == length ? j : 0));
}

/* y from statistics over the first elements of each row only, or with the variance from f32 sums of squares or divided by n - less. */
static void forward_by(struct mut_call *c, int64_t vector, bool squares, int less)
{
  qn_norm_roles r = qn_norm_roles_of(c->k->node.op);
  void *px, *py;
  const qn_value *x = part(c, r.x, &px), *y = part(c, r.y, &py);
  int64_t length = x->dim[x->rank - 1], rows = qn_elements(x) / length, upto = length / vector * vector;
  double eps = ((const qn_norm *)(const void *)c->k->attr)->eps;
  if (!upto || length <= less)
    return;
  for (int64_t row = 0; row < rows; row++) {
    double sum = 0, var = 0;
    float square = 0;
    for (int64_t j = 0; j < upto; j++) {
      double v = mut_get(x, px, row * length + j);
      sum += v;
      square += (float)(v * v);
    }
    double mean = sum / (double)length;
    for (int64_t j = 0; j < length; j++)
      var += (mut_get(x, px, row * length + j) - mean) * (mut_get(x, px, row * length + j) - mean);
    var = squares ? fmax(square / (float)length - (float)(mean * mean), 0) : var / (double)(length - less);
    for (int64_t j = 0; j < length; j++) {
      double h = (mut_get(x, px, row * length + j) - mean) / sqrt(var + eps);
      mut_put(y, py, row * length + j, h * parameter(c, r.scale, row, j, length, 1) + parameter(c, r.shift, row, j, length, 0));
    }
  }
}

void nm_difference_of_squares(struct mut_call *c) { forward_by(c, 1, true, 0); }
void nm_unbiased(struct mut_call *c)              { forward_by(c, 1, false, 1); }
void nm_tail_left_out(struct mut_call *c)         { forward_by(c, 8, false, 0); }

bool nm_eps_fixed(struct mut_kept *k)
{
  bool shows = attributes(k)->eps != 1e-5;
  attributes(k)->eps = 1e-5;
  return shows;
}

/* rstd = 1 / (sqrt(var) + eps) */
void nm_eps_outside(struct mut_call *c)
{
  void *p;
  const qn_value *rstd = part(c, qn_norm_roles_of(c->k->node.op).rstd, &p);
  double eps = ((const qn_norm *)(const void *)c->k->attr)->eps;
  for (int64_t i = 0; rstd && i < qn_elements(rstd); i++) {
    double r = mut_get(rstd, p, i), var = fmax(1 / (r * r) - eps, 0);
    mut_put(rstd, p, i, 1 / (sqrt(var) + eps));
  }
}

bool nm_momentum_swapped(struct mut_kept *k)
{
  bool shows = attributes(k)->momentum != 0.5 && mut_value(k, QN_ROLE_BATCH_NORM_NEW_MEAN);
  attributes(k)->momentum = 1 - attributes(k)->momentum;
  return shows;
}

/* The running variance takes the biased one. */
void nm_running_biased(struct mut_call *c)
{
  void *p, *from;
  const qn_value *new_var = part(c, QN_ROLE_BATCH_NORM_NEW_VAR, &p), *old = part(c, QN_ROLE_BATCH_NORM_RUNNING_VAR, &from);
  const qn_value *x = mut_value(c->k, QN_ROLE_BATCH_NORM_X);
  if (!new_var || p == from)
    return;
  double n = (double)qn_elements(x) / (double)qn_elements(new_var), m = ((const qn_norm *)(const void *)c->k->attr)->momentum;
  for (int64_t i = 0; i < qn_elements(new_var) && n > 1; i++) {
    double kept = (1 - m) * mut_get(old, from, i);
    mut_put(new_var, p, i, kept + (mut_get(new_var, p, i) - kept) * (n - 1) / n);
  }
}

/* dx without the term of the mean of g. */
void nm_mean_term_missing(struct mut_call *c)
{
  qn_norm_roles r = qn_norm_roles_of(c->k->node.op);
  void *pdy, *pdx;
  const qn_value *dy = part(c, r.dy, &pdy), *dx = part(c, r.dx, &pdx);
  int64_t length = dy->dim[dy->rank - 1], rows = qn_elements(dy) / length;
  for (int64_t row = 0; row < rows; row++) {
    double g = 0;
    for (int64_t j = 0; j < length; j++)
      g += mut_get(dy, pdy, row * length + j) * parameter(c, r.scale, row, j, length, 1);
    double lost = parameter(c, r.rstd, row, 0, 1, 1) * g / (double)length;
    for (int64_t j = 0; j < length; j++)
      mut_put(dx, pdx, row * length + j, mut_get(dx, pdx, row * length + j) + lost);
  }
}

/* The last row of the batch is left out of the parameter sums. */
void nm_last_row_not_in_dshift(struct mut_call *c)
{
  qn_norm_roles r = qn_norm_roles_of(c->k->node.op);
  void *pdy, *p;
  const qn_value *dy = part(c, r.dy, &pdy), *dshift = part(c, r.dshift, &p);
  int64_t length = dy->dim[dy->rank - 1], rows = qn_elements(dy) / length;
  if (!dshift || qn_elements(dshift) != length)
    return;
  for (int64_t j = 0; j < length; j++)
    mut_put(dshift, p, j, mut_get(dshift, p, j) - mut_get(dy, pdy, (rows - 1) * length + j));
}

/* The bugs below recompute group norms: x is [N, G, C/G, spatial]. */
bool nm_by_group(struct mut_kept *k)
{
  const qn_value *x = mut_value(k, (uint32_t)qn_norm_roles_of(k->node.op).x);
  return x->rank == 4 && attributes(k)->mask == 12;
}

/* The last image of the batch is left out of the channel sums. */
void nm_last_image_not_in_dshift(struct mut_call *c)
{
  qn_norm_roles r = qn_norm_roles_of(c->k->node.op);
  void *pdy, *p;
  const qn_value *dy = part(c, r.dy, &pdy), *dshift = part(c, r.dshift, &p);
  int64_t channels = dy->dim[1] * dy->dim[2], spatial = dy->dim[3], image = (dy->dim[0] - 1) * channels * spatial;
  if (!dshift || qn_elements(dshift) != channels)
    return;
  for (int64_t i = 0; i < channels * spatial; i++)
    mut_put(dshift, p, i / spatial, mut_get(dshift, p, i / spatial) - mut_get(dy, pdy, image + i));
}

/* dx with the group's mean of g computed as if all channels had the first one's scale. */
void nm_first_scale_for_group(struct mut_call *c)
{
  qn_norm_roles r = qn_norm_roles_of(c->k->node.op);
  void *pdy, *pdx, *ps;
  const qn_value *dy = part(c, r.dy, &pdy), *dx = part(c, r.dx, &pdx), *scale = part(c, r.scale, &ps);
  int64_t wide = dy->dim[2], spatial = dy->dim[3], length = wide * spatial;
  if (!scale || qn_elements(scale) != dy->dim[1] * wide)
    return;
  for (int64_t group = 0; group < dy->dim[0] * dy->dim[1]; group++) {
    double off = 0;
    for (int64_t i = 0; i < length; i++) {
      int64_t first = group % dy->dim[1] * wide;
      off += mut_get(dy, pdy, group * length + i) * (mut_get(scale, ps, first + i / spatial) - mut_get(scale, ps, first));
    }
    double gained = parameter(c, r.rstd, group, 0, 1, 1) * off / (double)length;
    for (int64_t i = 0; i < length; i++)
      mut_put(dx, pdx, group * length + i, mut_get(dx, pdx, group * length + i) + gained);
  }
}

/* The tail after the vector loop is not scaled: y holds rms_norm's result without scale. */
void nm_scale_missing_on_tail(struct mut_call *c)
{
  qn_norm_roles r = qn_norm_roles_of(c->k->node.op);
  void *py;
  const qn_value *y = part(c, r.y, &py);
  int64_t length = y->dim[y->rank - 1], rows = qn_elements(y) / length;
  for (int64_t row = 0; row < rows; row++)
    for (int64_t j = length / 8 * 8; j < length; j++) {
      double scale = parameter(c, r.scale, row, j, length, 1);
      if (scale != 0)
        mut_put(y, py, row * length + j, mut_get(y, py, row * length + j) / scale);
    }
}

/* ---- followed by an addition ----------------------------------------------------------------- */

bool nm_with_sum(struct mut_kept *k) { return nm_last_dim(k) && mut_take(k, (uint32_t)qn_norm_roles_of(k->node.op).y, QN_OP_ADD); }
bool nm_inference_with_sum(struct mut_kept *k) { return mut_take(k, QN_ROLE_BATCH_NORM_INFERENCE_Y, QN_OP_ADD); }

/* The other operand of the addition. */
static const qn_value *residual(const struct mut_call *c, void **p)
{
  uint32_t role = c->k->more_number[c->k->more_first[QN_ROLE_ADD_A]] == c->k->between ? QN_ROLE_ADD_B : QN_ROLE_ADD_A;
  return mut_more(c, role, p);
}

/* y[i] += r[place(i)]; a negative place adds nothing. */
static void add_from(struct mut_call *c, int64_t (*place)(int64_t i, int64_t length, int64_t n))
{
  void *py, *pr;
  const qn_value *y = part(c, qn_norm_roles_of(c->k->node.op).y, &py), *r = residual(c, &pr);
  int64_t n = qn_elements(y), length = y->dim[y->rank - 1];
  for (int64_t i = 0; i < n; i++) {
    int64_t from = place(i, length, n);
    if (from >= 0)
      mut_put(y, py, i, mut_get(y, py, i) + mut_get(r, pr, from));
  }
}

static int64_t next_row(int64_t i, int64_t length, int64_t n) { return (i + length) % n; }
static int64_t body_only(int64_t i, int64_t length, int64_t n) { (void)n; return i % length < length / 8 * 8 ? i : -1; }

void nm_residual_of_next_row(struct mut_call *c) { add_from(c, next_row); }
void nm_residual_not_on_tail(struct mut_call *c) { add_from(c, body_only); }

/* The residual is read as if it were packed row-major. */
void nm_residual_by_address(struct mut_call *c)
{
  void *py, *pr;
  const qn_value *y = part(c, QN_ROLE_BATCH_NORM_INFERENCE_Y, &py), *r = residual(c, &pr);
  for (int64_t i = 0; i < qn_elements(y); i++)
    mut_put(y, py, i, mut_get(y, py, i) + qn_load_f64((const char *)pr + i * qn_kit_bytes(r->dtype), r->dtype));
}

/* ---- preceded by an addition ----------------------------------------------------------------- */

bool nm_of_sum(struct mut_kept *k) { return mut_take_before(k, (uint32_t)qn_norm_roles_of(k->node.op).x, QN_OP_ADD); }

/* x = a + b, with b read `apart` elements further on; stored if wanted as an output and `write`. */
static void sum_up(struct mut_call *c, int64_t apart, bool write)
{
  uint32_t role = (uint32_t)qn_norm_roles_of(c->k->node.op).x;
  void *px = mut_scratch(c, role), *pa, *pb, *wanted;
  const qn_value *x = mut_value(c->k, role), *a = mut_more(c, QN_ROLE_ADD_A, &pa), *b = mut_more(c, QN_ROLE_ADD_B, &pb);
  const qn_value *sum = mut_more(c, QN_ROLE_ADD_Y, &wanted);
  int64_t n = qn_elements(x);
  for (int64_t i = 0; i < n; i++) {
    mut_put(x, px, i, mut_get(a, pa, i) + mut_get(b, pb, (i + apart) % n));
    if (wanted && write)
      mut_put(sum, wanted, i, mut_get(x, px, i));
  }
}

void nm_sum_unwritten(struct mut_call *c) { sum_up(c, 0, false); }
void nm_addend_of_next_row(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, (uint32_t)qn_norm_roles_of(c->k->node.op).x);
  sum_up(c, x->dim[x->rank - 1], true);
}
