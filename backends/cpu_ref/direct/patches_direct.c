/* patches_direct.c -- windows side by side, and their gradient, one copy or one sum for each output element.
 *
 *   x [N, C, X]   y [N, C taps, P]   1 to 3 spatial dims, taps numbered row-major
 *   unfold    y[n, c taps + r, p] = tap r of window p of x's channel c; 0 outside of x
 *   backward  dx[x] = the sum of dy over the windows and taps that are at x */
#include "direct.h"

typedef struct patches {
  cpu_windows w;
  int64_t taps;
} patches;

static patches patches_of(const qn_prepared *p, const cpu_grid *x, const cpu_grid *y)
{
  const qn_patches *a = ((const cpu_kept *)p->state)->attr;
  const int missing = 5 - x->t.rank;
  patches v = { .taps = 1 };
  for (int d = 0; d < 3; d++) {
    const int from = d - missing;
    v.w.size[d] = d < missing ? 1 : a->window[from];
    v.w.step[d] = d < missing ? 1 : a->stride[from];
    v.w.dilation[d] = d < missing ? 1 : a->dilation[from];
    v.w.before[d] = d < missing ? 0 : a->pad_before[from];
    v.w.inputs[d] = x->dim[2 + d];
    v.w.outputs[d] = y->dim[2 + d];
    v.taps *= v.w.size[d];
  }
  return v;
}

static qn_status unfold(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid x = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_UNFOLD_X, 0));
  const cpu_grid y = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_UNFOLD_Y, 0));
  const patches v = patches_of(p, &x, &y);

#pragma omp parallel for num_threads(cpu_team(launch, y.t.elements, 4))
  for (int64_t i = 0; i < y.t.elements; i++) {
    int64_t at[5], r[3], from[3];
    cpu_place(i, 5, y.dim, at);
    cpu_place(at[1] % v.taps, 3, v.w.size, r);
    const int inside = cpu_tap(&v.w, at + 2, r, from);
    cpu_put(&y.t, cpu_offset(5, at, y.stride), inside ? cpu_get(&x.t, cpu_grid_offset(&x, at[0], at[1] / v.taps, from)) : 0);
  }
  return QN_OK;
}

static qn_status unfold_backward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid dy = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_UNFOLD_BACKWARD_DY, 0));
  const cpu_grid dx = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_UNFOLD_BACKWARD_DX, 0));
  const patches v = patches_of(p, &dx, &dy);

#pragma omp parallel for num_threads(cpu_team(launch, dx.t.elements, v.taps))
  for (int64_t i = 0; i < dx.t.elements; i++) {
    int64_t at[5], r[3], window[3];
    cpu_place(i, 5, dx.dim, at);
    cpu_sum sum = { 0 };
    for (int64_t tap = v.taps - 1; tap >= 0; tap--) {     /* the last tap belongs to the first window */
      cpu_place(tap, 3, v.w.size, r);
      if (!cpu_window(&v.w, at + 2, r, window)) continue;
      cpu_sum_add(&sum, cpu_get(&dy.t, cpu_grid_offset(&dy, at[0], at[1] * v.taps + tap, window)));
    }
    cpu_put(&dx.t, cpu_offset(5, at, dx.stride), cpu_sum_value(&sum));
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_UNFOLD, unfold),
  CPU_DIRECT_ROW(QN_OP_UNFOLD_BACKWARD, unfold_backward),
};
const qn_engine_list cpu_patches_direct = { row, sizeof row / sizeof *row };
