/* conv_direct.c -- convolution and both its gradients, one sum for each output element, 1 to 3 spatial dims.
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

/* The sum of a b over `count` channels and the taps of three dims; the longest of the four loops is the inner one. */
static cpu_sum products(int64_t count, const taps tap[3], const cpu_grid *a, int64_t a_at, int64_t a_step,
                        const cpu_grid *b, int64_t b_at, int64_t b_step)
{
  int64_t n[4] = {count, tap[0].n, tap[1].n, tap[2].n}, by_a[4] = {a_step}, by_b[4] = {b_step}, i[3];
  int longest = 3;
  for (int d = 0; d < 3; d++) {
    a_at += tap[d].first * a->stride[2 + d];
    b_at += tap[d].place * b->stride[2 + d];
    by_a[1 + d] = tap[d].step * a->stride[2 + d];
    by_b[1 + d] = tap[d].place_step * b->stride[2 + d];
  }
  for (int d = 0; d < 3; d++) longest = n[d] > n[longest] ? d : longest;
  const int64_t inner = n[longest], a_inner = by_a[longest], b_inner = by_b[longest];
  n[longest] = n[3];
  by_a[longest] = by_a[3];
  by_b[longest] = by_b[3];
  cpu_sum sum = { 0 };
  cpu_run run;
  run.n = 0;
  for (i[0] = 0; i[0] < n[0]; i[0]++)
    for (i[1] = 0; i[1] < n[1]; i[1]++)
      for (i[2] = 0; i[2] < n[2]; i[2]++)
        cpu_run_products(&run, &sum, inner, &a->t, a_at + cpu_offset(3, i, by_a), a_inner, &b->t, b_at + cpu_offset(3, i, by_b), b_inner);
  cpu_run_end(&run, &sum);
  return sum;
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid x = grid(p, launch, QN_ROLE_CONV_FORWARD_X), w = grid(p, launch, QN_ROLE_CONV_FORWARD_W);
  const cpu_grid y = grid(p, launch, QN_ROLE_CONV_FORWARD_Y);
  const cpu_tensor bias = cpu_tensor_of(p, launch, QN_ROLE_CONV_FORWARD_BIAS, 0);
  const cpu_windows v = windows_of(p, &x, &w, &y);
  const int64_t positions = v.size[0] * v.size[1] * v.size[2], channels = w.dim[1], filters = y.dim[1] / groups_of(p);

#pragma omp parallel for num_threads(cpu_team(launch, y.t.elements, positions * channels))
  for (int64_t i = 0; i < y.t.elements; i++) {
    int64_t at[5];
    taps tap[3];
    cpu_place(i, 5, y.dim, at);
    const int64_t n = at[0], k = at[1], first = k / filters * channels;
    for (int d = 0; d < 3; d++) tap[d] = inside(v.size[d], at[2 + d] * v.step[d] - v.before[d], v.dilation[d], v.inputs[d]);
    cpu_sum sum = products(channels, tap, &w, k * w.stride[0], w.stride[1], &x, n * x.stride[0] + first * x.stride[1], x.stride[1]);
    if (bias.p) {
      const unsigned char *b = cpu_at(&bias, k * bias.stride[0]);
      if (qn_is_integer(bias.dtype)) sum.integer += (uint64_t)qn_load_i64(b, bias.dtype);
      else cpu_sum_add(&sum, qn_load_f64(b, bias.dtype));
    }
    cpu_sum_store(&sum, &y.t, cpu_offset(5, at, y.stride));
  }
  return QN_OK;
}

static qn_status backward_data(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid dy = grid(p, launch, QN_ROLE_CONV_BACKWARD_DATA_DY), w = grid(p, launch, QN_ROLE_CONV_BACKWARD_DATA_W);
  const cpu_grid dx = grid(p, launch, QN_ROLE_CONV_BACKWARD_DATA_DX);
  const cpu_windows v = windows_of(p, &dx, &w, &dy);
  const int64_t positions = v.size[0] * v.size[1] * v.size[2], channels = w.dim[1], filters = dy.dim[1] / groups_of(p);

#pragma omp parallel for num_threads(cpu_team(launch, dx.t.elements, positions * filters))
  for (int64_t i = 0; i < dx.t.elements; i++) {
    int64_t at[5];
    taps tap[3];
    cpu_place(i, 5, dx.dim, at);
    const int64_t n = at[0], first = at[1] / channels * filters, c = at[1] % channels;
    for (int d = 0; d < 3; d++) tap[d] = holding(&v, d, at[2 + d]);
    const cpu_sum sum = products(filters, tap, &w, first * w.stride[0] + c * w.stride[1], w.stride[0],
                                 &dy, n * dy.stride[0] + first * dy.stride[1], dy.stride[1]);
    cpu_sum_store(&sum, &dx.t, cpu_offset(5, at, dx.stride));
  }
  return QN_OK;
}

static qn_status backward_filter(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid x = grid(p, launch, QN_ROLE_CONV_BACKWARD_FILTER_X), dy = grid(p, launch, QN_ROLE_CONV_BACKWARD_FILTER_DY);
  const cpu_grid dw = grid(p, launch, QN_ROLE_CONV_BACKWARD_FILTER_DW);
  const cpu_windows v = windows_of(p, &x, &dw, &dy);
  const int64_t places = v.outputs[0] * v.outputs[1] * v.outputs[2], channels = dw.dim[1], filters = dw.dim[0] / groups_of(p);

#pragma omp parallel for num_threads(cpu_team(launch, dw.t.elements, places * dy.dim[0]))
  for (int64_t i = 0; i < dw.t.elements; i++) {
    int64_t at[5];
    taps tap[3];
    cpu_place(i, 5, dw.dim, at);
    const int64_t k = at[0], c = k / filters * channels + at[1];
    for (int d = 0; d < 3; d++) tap[d] = inside(v.outputs[d], at[2 + d] * v.dilation[d] - v.before[d], v.step[d], v.inputs[d]);
    const cpu_sum sum = products(dy.dim[0], tap, &dy, k * dy.stride[1], dy.stride[0], &x, c * x.stride[1], x.stride[0]);
    cpu_sum_store(&sum, &dw.t, cpu_offset(5, at, dw.stride));
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_CONV_FORWARD, forward),
  CPU_DIRECT_ROW(QN_OP_CONV_BACKWARD_DATA, backward_data),
  CPU_DIRECT_ROW(QN_OP_CONV_BACKWARD_FILTER, backward_filter),
};
const qn_engine_list cpu_conv_direct = { row, sizeof row / sizeof *row };
