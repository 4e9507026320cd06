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

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid x = grid(p, launch, QN_ROLE_CONV_FORWARD_X), w = grid(p, launch, QN_ROLE_CONV_FORWARD_W);
  const cpu_grid y = grid(p, launch, QN_ROLE_CONV_FORWARD_Y);
  const cpu_tensor bias = cpu_tensor_of(p, launch, QN_ROLE_CONV_FORWARD_BIAS, 0);
  const cpu_windows v = windows_of(p, &x, &w, &y);
  const int64_t taps = v.size[0] * v.size[1] * v.size[2], channels = w.dim[1], filters = y.dim[1] / groups_of(p);

#pragma omp parallel for num_threads(cpu_team(launch, y.t.elements, taps * channels))
  for (int64_t i = 0; i < y.t.elements; i++) {
    int64_t at[5], r[3] = { 0 }, from[3];
    cpu_place(i, 5, y.dim, at);
    const int64_t n = at[0], k = at[1], first = k / filters * channels;
    cpu_sum sum = { 0 };
    for (int64_t tap = 0; tap < taps; tap++, cpu_next(3, v.size, r)) {
      if (!cpu_tap(&v, at + 2, r, from)) continue;
      cpu_sum_products(&sum, channels, &w.t, cpu_grid_offset(&w, k, 0, r), w.stride[1],
                       &x.t, cpu_grid_offset(&x, n, first, from), x.stride[1]);
    }
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
  const int64_t taps = v.size[0] * v.size[1] * v.size[2], channels = w.dim[1], filters = dy.dim[1] / groups_of(p);

#pragma omp parallel for num_threads(cpu_team(launch, dx.t.elements, taps * filters))
  for (int64_t i = 0; i < dx.t.elements; i++) {
    int64_t at[5], r[3] = { 0 }, window[3];
    cpu_place(i, 5, dx.dim, at);
    const int64_t n = at[0], group = at[1] / channels, c = at[1] % channels;
    cpu_sum sum = { 0 };
    for (int64_t tap = 0; tap < taps; tap++, cpu_next(3, v.size, r)) {
      if (!cpu_window(&v, at + 2, r, window)) continue;
      cpu_sum_products(&sum, filters, &w.t, cpu_grid_offset(&w, group * filters, c, r), w.stride[0],
                       &dy.t, cpu_grid_offset(&dy, n, group * filters, window), dy.stride[1]);
    }
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
    int64_t at[5], window[3] = { 0 }, from[3];
    cpu_place(i, 5, dw.dim, at);
    const int64_t k = at[0], c = k / filters * channels + at[1];
    cpu_sum sum = { 0 };
    for (int64_t place = 0; place < places; place++, cpu_next(3, v.outputs, window)) {
      if (!cpu_tap(&v, window, at + 2, from)) continue;
      cpu_sum_products(&sum, dy.dim[0], &dy.t, cpu_grid_offset(&dy, 0, k, window), dy.stride[0],
                       &x.t, cpu_grid_offset(&x, 0, c, from), x.stride[0]);
    }
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
