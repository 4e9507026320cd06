/* pool_direct.c -- max, average and lp pooling and their gradients, one window or one sum for each output element.
 *
 *   x [N, C, X]   y, indices [N, C, P]   1 to 3 spatial dims
 *   max       y = the largest tap inside x, NaN above all, the first of equals; no tap inside: -Inf,
 *             or the least integer
 *   average   y = sum of taps inside x / divisor; the divisor counts those taps, or (include_pad) those in x and its
 *             declared padding, but never what ceil_mode adds; no tap inside: 0
 *   lp        y = (sum of |tap|^p)^(1/p) over the taps inside x; dx[x] = the sum of dy sign(x) (|x|/y)^(p-1), terms with y = 0 being 0
 *   backward  dx[x] = the sum of dy over the windows whose maximum is at x, or of dy / divisor over those that cover x */
#include "direct.h"

typedef struct pooling {
  cpu_windows w;
  int64_t taps;
  int64_t after[3];
  int include_pad;
} pooling;

static pooling pooling_of(const qn_prepared *p, const cpu_grid *x, const cpu_grid *y)
{
  const cpu_kept *kept = p->state;
  const qn_pool *pool = kept->attr;
  const int missing = 5 - x->t.rank;
  pooling v = { .taps = 1, .include_pad = pool->include_pad != 0 };
  for (int d = 0; d < 3; d++) {
    const int from = d - missing;                         /* core has resolved windows and strides of 0 */
    v.w.size[d] = d < missing ? 1 : pool->window[from];
    v.w.step[d] = d < missing ? 1 : pool->stride[from];
    v.w.dilation[d] = d < missing ? 1 : pool->dilation[from];
    v.w.before[d] = d < missing ? 0 : pool->pad_before[from];
    v.after[d] = d < missing ? 0 : pool->pad_after[from];
    v.w.inputs[d] = x->dim[2 + d];
    v.w.outputs[d] = y->dim[2 + d];
    v.taps *= v.w.size[d];
  }
  if (v.taps <= 255) return v;                            /* u8 indices can count them */
  v.taps = 1;
  for (int d = 0; d < 3; d++) {                           /* ignore taps that never reach x or its padding */
    v.w.size[d] = qn_min_i64(v.w.size[d], qn_ceil_div(v.w.before[d] + v.w.inputs[d] + v.after[d], v.w.dilation[d]));
    v.taps *= v.w.size[d];
  }
  return v;
}

static cpu_grid grid(const qn_prepared *p, const qn_launch *launch, uint32_t role)
{
  return cpu_grid_of(cpu_tensor_of(p, launch, role, 0));
}

/* ---- maximum ---------------------------------------------------------------------------------- */

/* Number of the tap of `window` that holds the maximum; -1 if none is inside x. */
static int64_t maximum(const pooling *v, const cpu_grid *x, int64_t n, int64_t c, const int64_t window[3], double *value)
{
  int64_t best = -1, r[3] = { 0 }, at[3];
  *value = -INFINITY;
  for (int64_t tap = 0; tap < v->taps; tap++, cpu_next(3, v->w.size, r)) {
    if (!cpu_tap(&v->w, window, r, at)) continue;
    const double here = cpu_get(&x->t, cpu_grid_offset(x, n, c, at));
    if (best < 0 || here > *value || (isnan(here) && !isnan(*value))) {
      best = tap;
      *value = here;
    }
  }
  return best;
}

/* Does this tap, inside x, hold it? It does unless an earlier one is as large, or a later one is larger; the first NaN beats all. */
static int is_maximum(const pooling *v, const cpu_grid *x, int64_t n, int64_t c, const int64_t window[3], int64_t tap)
{
  int64_t r[3], at[3];
  cpu_place(tap, 3, v->w.size, r);
  cpu_tap(&v->w, window, r, at);
  const double here = cpu_get(&x->t, cpu_grid_offset(x, n, c, at));
  r[0] = r[1] = r[2] = 0;
  for (int64_t other = 0; other < v->taps; other++, cpu_next(3, v->w.size, r)) {
    if (other == tap || !cpu_tap(&v->w, window, r, at)) continue;
    const double there = cpu_get(&x->t, cpu_grid_offset(x, n, c, at));
    if (isnan(here) ? other < tap && isnan(there) : isnan(there) || there > here || (other < tap && there == here)) return 0;
  }
  return 1;
}

/* A tap's index in this dtype: its number in the window, or its position in x's spatial plane. */
static int64_t index_of(const pooling *v, uint32_t dtype, const int64_t window[3], int64_t tap)
{
  int64_t r[3], at[3];
  if (dtype == QN_U8) return tap < 0 ? 255 : tap;
  if (tap < 0) return -1;
  cpu_place(tap, 3, v->w.size, r);
  cpu_tap(&v->w, window, r, at);
  return (at[0] * v->w.inputs[1] + at[1]) * v->w.inputs[2] + at[2];
}

static qn_status max_forward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid x = grid(p, launch, QN_ROLE_POOL_MAX_X), y = grid(p, launch, QN_ROLE_POOL_MAX_Y);
  const cpu_grid indices = grid(p, launch, QN_ROLE_POOL_MAX_INDICES);
  const pooling v = pooling_of(p, &x, &y);

#pragma omp parallel for num_threads(cpu_team(launch, y.t.elements, v.taps))
  for (int64_t i = 0; i < y.t.elements; i++) {
    int64_t at[5];
    double value;
    cpu_place(i, 5, y.dim, at);
    const int64_t tap = maximum(&v, &x, at[0], at[1], at + 2, &value);
    cpu_put(&y.t, cpu_offset(5, at, y.stride), value);
    if (indices.t.p)
      qn_store_i64(cpu_at(&indices.t, cpu_offset(5, at, indices.stride)), indices.t.dtype,
                   index_of(&v, indices.t.dtype, at + 2, tap));
  }
  return QN_OK;
}

static qn_status max_backward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid dy = grid(p, launch, QN_ROLE_POOL_MAX_BACKWARD_DY), dx = grid(p, launch, QN_ROLE_POOL_MAX_BACKWARD_DX);
  const cpu_grid indices = grid(p, launch, QN_ROLE_POOL_MAX_BACKWARD_INDICES);
  const cpu_grid x = grid(p, launch, QN_ROLE_POOL_MAX_BACKWARD_X);
  const pooling v = pooling_of(p, &dx, &dy);
  const uint32_t index_dtype = indices.t.dtype;

#pragma omp parallel for num_threads(cpu_team(launch, dx.t.elements, v.taps * (indices.t.p ? 1 : v.taps)))
  for (int64_t i = 0; i < dx.t.elements; i++) {
    int64_t at[5], r[3], window[3];
    cpu_place(i, 5, dx.dim, at);
    cpu_sum sum = { 0 };
    for (int64_t tap = v.taps - 1; tap >= 0; tap--) {     /* the last tap belongs to the first window */
      cpu_place(tap, 3, v.w.size, r);
      if (!cpu_window(&v.w, at + 2, r, window)) continue;
      const int chosen = indices.t.p
        ? qn_load_i64(cpu_at(&indices.t, cpu_grid_offset(&indices, at[0], at[1], window)), index_dtype)
            == index_of(&v, index_dtype, window, tap)
        : is_maximum(&v, &x, at[0], at[1], window, tap);
      if (chosen) cpu_sum_add(&sum, cpu_get(&dy.t, cpu_grid_offset(&dy, at[0], at[1], window)));
    }
    cpu_put(&dx.t, cpu_offset(5, at, dx.stride), cpu_sum_value(&sum));
  }
  return QN_OK;
}

/* ---- average ---------------------------------------------------------------------------------- */

/* The taps that count, of each dim those before an end: x's, or that of its padding. */
static int64_t divisor(const pooling *v, const int64_t window[3])
{
  int64_t count = 1;
  for (int d = 0; d < 3; d++) {
    int64_t here = 0;
    for (int64_t r = 0; r < v->w.size[d]; r++) {
      const int64_t at = window[d] * v->w.step[d] + r * v->w.dilation[d] - v->w.before[d];
      here += v->include_pad ? at < v->w.inputs[d] + v->after[d] : at >= 0 && at < v->w.inputs[d];
    }
    count *= here;
  }
  return count;
}

static qn_status average_forward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid x = grid(p, launch, QN_ROLE_POOL_AVERAGE_X), y = grid(p, launch, QN_ROLE_POOL_AVERAGE_Y);
  const pooling v = pooling_of(p, &x, &y);

#pragma omp parallel for num_threads(cpu_team(launch, y.t.elements, v.taps * 2))
  for (int64_t i = 0; i < y.t.elements; i++) {
    int64_t at[5], r[3] = { 0 }, from[3], inside = 0;
    cpu_place(i, 5, y.dim, at);
    cpu_sum sum = { 0 };
    for (int64_t tap = 0; tap < v.taps; tap++, cpu_next(3, v.w.size, r)) {
      if (!cpu_tap(&v.w, at + 2, r, from)) continue;
      cpu_sum_add(&sum, cpu_get(&x.t, cpu_grid_offset(&x, at[0], at[1], from)));
      inside++;
    }
    const long double total = cpu_sum_total(&sum);
    cpu_put(&y.t, cpu_offset(5, at, y.stride), inside ? (double)(total / divisor(&v, at + 2)) : 0);
  }
  return QN_OK;
}

static qn_status average_backward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid dy = grid(p, launch, QN_ROLE_POOL_AVERAGE_BACKWARD_DY), dx = grid(p, launch, QN_ROLE_POOL_AVERAGE_BACKWARD_DX);
  const pooling v = pooling_of(p, &dx, &dy);

#pragma omp parallel for num_threads(cpu_team(launch, dx.t.elements, v.taps * v.taps))
  for (int64_t i = 0; i < dx.t.elements; i++) {
    int64_t at[5], r[3], window[3];
    cpu_place(i, 5, dx.dim, at);
    long double sum = 0;
    for (int64_t tap = v.taps - 1; tap >= 0; tap--) {     /* the last tap belongs to the first window */
      cpu_place(tap, 3, v.w.size, r);
      if (cpu_window(&v.w, at + 2, r, window))
        sum += (long double)cpu_get(&dy.t, cpu_grid_offset(&dy, at[0], at[1], window)) / divisor(&v, window);
    }
    cpu_put(&dx.t, cpu_offset(5, at, dx.stride), (double)sum);
  }
  return QN_OK;
}

/* ---- lp ----------------------------------------------------------------------------------------- */

static qn_status lp_forward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid x = grid(p, launch, QN_ROLE_POOL_LP_X), y = grid(p, launch, QN_ROLE_POOL_LP_Y);
  const pooling v = pooling_of(p, &x, &y);
  const long double e = ((const qn_pool *)((const cpu_kept *)p->state)->attr)->p;

#pragma omp parallel for num_threads(cpu_team(launch, y.t.elements, v.taps * 20))
  for (int64_t i = 0; i < y.t.elements; i++) {
    int64_t at[5], r[3], from[3];
    cpu_place(i, 5, y.dim, at);
    long double sum = 0, most = 0;        /* relative to the largest, so that no power overflows */
    for (int pass = 0; pass < 2; pass++)
      for (int64_t tap = 0; tap < v.taps; tap++) {
        cpu_place(tap, 3, v.w.size, r);
        if (!cpu_tap(&v.w, at + 2, r, from)) continue;
        const long double here = fabsl((long double)cpu_get(&x.t, cpu_grid_offset(&x, at[0], at[1], from)));
        if (pass == 0) most = isnan(here) || here > most ? here : most;
        else if (most > 0 && isfinite(most)) sum += powl(here / most, e);
      }
    cpu_put(&y.t, cpu_offset(5, at, y.stride), (double)(sum > 0 ? most * powl(sum, 1 / e) : most));
  }
  return QN_OK;
}

static qn_status lp_backward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid dy = grid(p, launch, QN_ROLE_POOL_LP_BACKWARD_DY), dx = grid(p, launch, QN_ROLE_POOL_LP_BACKWARD_DX);
  const cpu_grid x = grid(p, launch, QN_ROLE_POOL_LP_BACKWARD_X), y = grid(p, launch, QN_ROLE_POOL_LP_BACKWARD_Y);
  const pooling v = pooling_of(p, &dx, &dy);
  const long double e = ((const qn_pool *)((const cpu_kept *)p->state)->attr)->p;

#pragma omp parallel for num_threads(cpu_team(launch, dx.t.elements, v.taps * 10))
  for (int64_t i = 0; i < dx.t.elements; i++) {
    int64_t at[5], r[3], window[3];
    cpu_place(i, 5, dx.dim, at);
    const long double here = cpu_get(&x.t, cpu_offset(5, at, x.stride)), sign = here > 0 ? 1 : here < 0 ? -1 : here;
    long double sum = 0;
    for (int64_t tap = v.taps - 1; tap >= 0; tap--) {
      cpu_place(tap, 3, v.w.size, r);
      if (!cpu_window(&v.w, at + 2, r, window)) continue;
      const long double norm = cpu_get(&y.t, cpu_grid_offset(&y, at[0], at[1], window));
      if (norm == 0) continue;
      sum += (long double)cpu_get(&dy.t, cpu_grid_offset(&dy, at[0], at[1], window)) * sign * powl(fabsl(here) / norm, e - 1);
    }
    cpu_put(&dx.t, cpu_offset(5, at, dx.stride), (double)sum);
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_POOL_MAX, max_forward),
  CPU_DIRECT_ROW(QN_OP_POOL_MAX_BACKWARD, max_backward),
  CPU_DIRECT_ROW(QN_OP_POOL_AVERAGE, average_forward),
  CPU_DIRECT_ROW(QN_OP_POOL_AVERAGE_BACKWARD, average_backward),
  CPU_DIRECT_ROW(QN_OP_POOL_LP, lp_forward),
  CPU_DIRECT_ROW(QN_OP_POOL_LP_BACKWARD, lp_backward),
};
const qn_engine_list cpu_pool_direct = { row, sizeof row / sizeof *row };
