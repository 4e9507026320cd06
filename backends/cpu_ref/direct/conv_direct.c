/* conv_direct.c -- convolution and both its gradients, one sum for each output element, 1 to 3 spatial dims. Where the factors of a
 * sum are is found once for some channels, and what those of one group share is read once.
 *
 *   x [N, C, X]   w [K, C/groups, R]   y [N, K, P]
 *   forward          y[n,k,p]  = sum_{c,r} w[k,c,r] x[n, g C/groups + c, p stride + r dilation - pad] + bias[k]
 *   backward data    dx[n,c,x] = sum_{k,r} w[k,c,r] dy[n,k,p]    over the k of c's group and the p with p stride + r dilation - pad = x
 *   backward filter  dw[k,c,r] = sum_{n,p} dy[n,k,p] x[n, g C/groups + c, p stride + r dilation - pad] */
#include "direct.h"

/* Only the extents of x and y are used. */
static cpu_windows windows_of(const qn_prepared *p, const cpu_grid *x, const cpu_grid *w, const cpu_grid *y)
{
  const cpu_kept *kept = p->state;
  const qn_conv *conv = kept->attr;
  const int missing = 5 - x->t.rank;
  cpu_windows v;
  for (int d = 0; d < 3; d++) {
    v.size[d] = w->dim[2 + d];
    v.step[d] = d < missing ? 1 : conv->stride[d - missing];
    v.dilation[d] = d < missing ? 1 : conv->dilation[d - missing];
    v.before[d] = d < missing ? 0 : conv->pad_before[d - missing];
    v.inputs[d] = x->dim[2 + d];
    v.outputs[d] = y->dim[2 + d];
  }
  return v;
}

static int64_t groups_of(const qn_prepared *p)
{
  const cpu_kept *kept = p->state;
  return ((const qn_conv *)kept->attr)->groups;
}

static cpu_grid grid(const qn_prepared *p, const qn_launch *launch, uint32_t role)
{
  return cpu_grid_of(cpu_tensor_of(p, launch, role, 0));
}

/* Where the taps of a sum are in one dim of two tensors: n pairs of indices, in even steps. */
typedef struct taps { int64_t n, first, step, place, place_step; } taps;

/* x = p step + r dilation - before, for one of p and r; the other is counted. Those inside x. */
static taps inside(int64_t count, int64_t start, int64_t by, int64_t extent)
{
  const int64_t first = start < 0 ? (-start + by - 1) / by : 0, beyond = start >= extent ? 0 : (extent - 1 - start) / by + 1;
  return (taps){qn_max_i64(0, qn_min_i64(count, beyond) - first), first, 1, start + first * by, by};
}

/* The taps r of x's windows that hold position x. */
static taps holding(const cpu_windows *v, int d, int64_t x)
{
  const int64_t step = v->step[d], far = x + v->before[d], by = v->dilation[d];
  taps t = { .step = 1 };
  while (t.first < v->size[d] && (far - t.first * by >= step * v->outputs[d] || (far - t.first * by) % step != 0)) t.first++;
  while (t.step < v->size[d] && t.step * by % step != 0) t.step++;
  if (t.first >= v->size[d] || far < t.first * by) return t;
  t.n = qn_min_i64((v->size[d] - 1 - t.first) / t.step, (far - t.first * by) / (t.step * by)) + 1;
  t.place = (far - t.first * by) / step;
  t.place_step = -t.step * by / step;
  return t;
}

/* Up to CPU_RUN elements of t, these many elements from `at`, as doubles. */
static void pick(double *to, int64_t n, const cpu_tensor *t, int64_t at, const int64_t *place)
{
  const unsigned char *from = cpu_at(t, at);
  unsigned char raw[CPU_RUN * 8];
  switch (t->bytes) {
  case 8:  for (int64_t i = 0; i < n; i++) memcpy(raw + 8 * i, from + 8 * place[i], 8); break;
  case 4:  for (int64_t i = 0; i < n; i++) memcpy(raw + 4 * i, from + 4 * place[i], 4); break;
  case 2:  for (int64_t i = 0; i < n; i++) memcpy(raw + 2 * i, from + 2 * place[i], 2); break;
  default: for (int64_t i = 0; i < n; i++) raw[i] = from[place[i]];
  }
  cpu_widen(to, n, raw, t->dtype);
}

/* Channels of a result whose sums are made together: where the factors of each begin. */
enum { TOGETHER = 16 };
typedef struct channels { int64_t n, a[TOGETHER], b[TOGETHER]; cpu_sum sum[TOGETHER]; } channels;

/* Adds n products to each sum. */
static void add(channels *of, int64_t n, const cpu_tensor *a, const int64_t *a_place, const cpu_tensor *b, const int64_t *b_place)
{
  double x[CPU_RUN], y[CPU_RUN];
  for (int64_t k = 0; k < of->n; k++) {
    if (qn_is_integer(a->dtype)) {
      for (int64_t i = 0; i < n; i++)
        of->sum[k].integer += (uint64_t)(qn_load_i64(cpu_at(a, of->a[k] + a_place[i]), a->dtype)
                                         * qn_load_i64(cpu_at(b, of->b[k] + b_place[i]), b->dtype));
      continue;
    }
    pick(x, n, a, of->a[k], a_place);
    if (k == 0 || of->b[k] != of->b[k - 1]) pick(y, n, b, of->b[k], b_place);
    cpu_sum_run(&of->sum[k], n, x, y);
  }
}

/* Adds the products over `count` channels, or images, and the taps of three dims. */
static void products(channels *of, int64_t count, const taps tap[3], const cpu_grid *a, int64_t a_step, const cpu_grid *b, int64_t b_step)
{
  const int64_t n[4] = {count, tap[0].n, tap[1].n, tap[2].n};
  int64_t by_a[4] = {a_step}, by_b[4] = {b_step}, i[4] = {0}, a_place[CPU_RUN], b_place[CPU_RUN], at = 0, bt = 0;
  for (int d = 0; d < 3; d++) {
    at += tap[d].first * a->stride[2 + d];
    bt += tap[d].place * b->stride[2 + d];
    by_a[1 + d] = tap[d].step * a->stride[2 + d];
    by_b[1 + d] = tap[d].place_step * b->stride[2 + d];
  }
  for (int64_t left = n[0] * n[1] * n[2] * n[3], few; left > 0; left -= few) {
    few = qn_min_i64(left, CPU_RUN);
    for (int64_t k = 0; k < few; k++) {
      a_place[k] = at;
      b_place[k] = bt;
      at += by_a[3];
      bt += by_b[3];
      i[3]++;
      for (int d = 3; d > 0 && i[d] == n[d]; d--) {          /* the next of the dim before, from this one's first on */
        at += by_a[d - 1] - n[d] * by_a[d];
        bt += by_b[d - 1] - n[d] * by_b[d];
        i[d] = 0;
        i[d - 1]++;
      }
    }
    add(of, few, &a->t, a_place, &b->t, b_place);
  }
}

/* ---- the three sums ------------------------------------------------------------------------------ */

/* Places in a result, of which each has TOGETHER channels at most: `images` times blocks of channels times the spatial dims. */
typedef struct blocks { int64_t n, dim[5]; } blocks;

static blocks blocks_of(int64_t images, int64_t channels, const int64_t spatial[3])
{
  blocks s = { 1, { images, (channels + TOGETHER - 1) / TOGETHER, spatial[0], spatial[1], spatial[2] } };
  for (int d = 0; d < 5; d++) s.n *= s.dim[d];
  return s;
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid x = grid(p, launch, QN_ROLE_CONV_FORWARD_X), w = grid(p, launch, QN_ROLE_CONV_FORWARD_W);
  const cpu_grid y = grid(p, launch, QN_ROLE_CONV_FORWARD_Y);
  const cpu_tensor bias = cpu_tensor_of(p, launch, QN_ROLE_CONV_FORWARD_BIAS, 0);
  const cpu_windows v = windows_of(p, &x, &w, &y);
  const int64_t positions = v.size[0] * v.size[1] * v.size[2], inputs = w.dim[1], filters = y.dim[1] / groups_of(p);
  const blocks all = blocks_of(y.dim[0], y.dim[1], y.dim + 2);

#pragma omp parallel for num_threads(cpu_team(launch, y.t.elements, positions * inputs))
  for (int64_t i = 0; i < all.n; i++) {
    int64_t at[5];
    taps tap[3];
    cpu_place(i, 5, all.dim, at);
    const int64_t first = at[1] * TOGETHER;
    channels of = { .n = qn_min_i64(y.dim[1] - first, TOGETHER) };
    for (int64_t k = 0; k < of.n; k++) {
      of.a[k] = (first + k) * w.stride[0];
      of.b[k] = at[0] * x.stride[0] + (first + k) / filters * inputs * x.stride[1];
    }
    for (int d = 0; d < 3; d++) tap[d] = inside(v.size[d], at[2 + d] * v.step[d] - v.before[d], v.dilation[d], v.inputs[d]);
    products(&of, inputs, tap, &w, w.stride[1], &x, x.stride[1]);
    for (int64_t k = 0; k < of.n; k++) {
      if (bias.p) {
        const unsigned char *b = cpu_at(&bias, (first + k) * bias.stride[0]);
        if (qn_is_integer(bias.dtype)) of.sum[k].integer += (uint64_t)qn_load_i64(b, bias.dtype);
        else cpu_sum_add(&of.sum[k], qn_load_f64(b, bias.dtype));
      }
      cpu_sum_store(&of.sum[k], &y.t, cpu_grid_offset(&y, at[0], first + k, at + 2));
    }
  }
  return QN_OK;
}

static qn_status backward_data(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid dy = grid(p, launch, QN_ROLE_CONV_BACKWARD_DATA_DY), w = grid(p, launch, QN_ROLE_CONV_BACKWARD_DATA_W);
  const cpu_grid dx = grid(p, launch, QN_ROLE_CONV_BACKWARD_DATA_DX);
  const cpu_windows v = windows_of(p, &dx, &w, &dy);
  const int64_t positions = v.size[0] * v.size[1] * v.size[2], inputs = w.dim[1], filters = dy.dim[1] / groups_of(p);
  const blocks all = blocks_of(dx.dim[0], dx.dim[1], dx.dim + 2);

#pragma omp parallel for num_threads(cpu_team(launch, dx.t.elements, positions * filters))
  for (int64_t i = 0; i < all.n; i++) {
    int64_t at[5];
    taps tap[3];
    cpu_place(i, 5, all.dim, at);
    const int64_t first = at[1] * TOGETHER;
    channels of = { .n = qn_min_i64(dx.dim[1] - first, TOGETHER) };
    for (int64_t c = 0; c < of.n; c++) {
      const int64_t group = (first + c) / inputs;
      of.a[c] = group * filters * w.stride[0] + (first + c) % inputs * w.stride[1];
      of.b[c] = at[0] * dy.stride[0] + group * filters * dy.stride[1];
    }
    for (int d = 0; d < 3; d++) tap[d] = holding(&v, d, at[2 + d]);
    products(&of, filters, tap, &w, w.stride[0], &dy, dy.stride[1]);
    for (int64_t c = 0; c < of.n; c++) cpu_sum_store(&of.sum[c], &dx.t, cpu_grid_offset(&dx, at[0], first + c, at + 2));
  }
  return QN_OK;
}

/* Here a place is an input channel's and a tap's. */
static qn_status backward_filter(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid x = grid(p, launch, QN_ROLE_CONV_BACKWARD_FILTER_X), dy = grid(p, launch, QN_ROLE_CONV_BACKWARD_FILTER_DY);
  const cpu_grid dw = grid(p, launch, QN_ROLE_CONV_BACKWARD_FILTER_DW);
  const cpu_windows v = windows_of(p, &x, &dw, &dy);
  const int64_t places = v.outputs[0] * v.outputs[1] * v.outputs[2], inputs = dw.dim[1], filters = dw.dim[0] / groups_of(p);
  const blocks all = blocks_of(inputs, dw.dim[0], dw.dim + 2);

#pragma omp parallel for num_threads(cpu_team(launch, dw.t.elements, places * dy.dim[0]))
  for (int64_t i = 0; i < all.n; i++) {
    int64_t at[5];
    taps tap[3];
    cpu_place(i, 5, all.dim, at);
    const int64_t first = at[1] * TOGETHER;
    channels of = { .n = qn_min_i64(dw.dim[0] - first, TOGETHER) };
    for (int64_t k = 0; k < of.n; k++) {
      of.a[k] = (first + k) * dy.stride[1];
      of.b[k] = ((first + k) / filters * inputs + at[0]) * x.stride[1];
    }
    for (int d = 0; d < 3; d++) tap[d] = inside(v.outputs[d], at[2 + d] * v.dilation[d] - v.before[d], v.step[d], v.inputs[d]);
    products(&of, dy.dim[0], tap, &dy, dy.stride[0], &x, x.stride[0]);
    for (int64_t k = 0; k < of.n; k++) cpu_sum_store(&of.sum[k], &dw.t, cpu_grid_offset(&dw, first + k, at[0], at + 2));
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_CONV_FORWARD, forward),
  CPU_DIRECT_ROW(QN_OP_CONV_BACKWARD_DATA, backward_data),
  CPU_DIRECT_ROW(QN_OP_CONV_BACKWARD_FILTER, backward_filter),
};
const qn_engine_list cpu_conv_direct = { row, sizeof row / sizeof *row };
