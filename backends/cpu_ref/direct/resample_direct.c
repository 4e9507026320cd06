/* resample_direct.c -- x at points between its elements, and the gradient.
 *
 *   x [N, C, X]   y [N, C, P]   1 to 3 spatial dims
 *   point     half_pixel (i + 1/2) X/P - 1/2   align_corners i (X - 1)/(P - 1)   asymmetric i X/P, as exact fractions
 *             X/P: of the extents, or down/up of a scale factor
 *   y         the sum over taps near the point of the product of the dims' weights times x; taps beyond an edge repeat the edge
 *   antialias a tap j has the kernel's weight at ((2j + 1) P - (2i + 1) X) / (2 max(X, P)) over the sum of these inside x
 *   backward  dx[j] = the sum over all i of dy[i] times the weight of element j in it */
#include "direct.h"

typedef struct resampling {
  int64_t mode, grid, rounding, in[3], out[3];            /* extents of x and of y */
  int64_t over[3], under[3];                              /* X/P */
  double  coefficient;
  int64_t antialias;
} resampling;

static resampling resampling_of(const qn_prepared *p, const cpu_grid *x, const cpu_grid *y)
{
  const qn_resampling *a = ((const cpu_kept *)p->state)->attr;
  resampling s = { .mode = a->mode, .grid = a->grid, .rounding = a->rounding, .coefficient = a->coefficient, .antialias = a->antialias };
  for (int d = 0; d < 3; d++) {
    s.in[d] = x->dim[2 + d];
    s.out[d] = y->dim[2 + d];
    const int given = d - (5 - x->t.rank);                /* index in the attributes */
    const int scaled = given >= 0 && a->up[given];
    s.over[d] = scaled ? a->down[given] : s.in[d];
    s.under[d] = scaled ? a->up[given] : s.out[d];
  }
  return s;
}

/* Keys' kernel with coefficient a at distance z. */
static long double cubic(long double z, long double a)
{
  z = fabsl(z);
  return z <= 1 ? ((a + 2) * z - (a + 3)) * z * z + 1 : z < 2 ? ((a * z - 5 * a) * z + 8 * a) * z - 4 * a : 0;
}

/* The taps of point i in dim d: their number, positions in x and weights. */
static int taps_of(const resampling *s, int d, int64_t i, int64_t place[4], long double weight[4])
{
  const int64_t x = s->in[d], y = s->out[d];
  int64_t over = y > 1 ? i * (x - 1) : 0, under = y > 1 ? y - 1 : 1;
  if (s->grid == QN_GRID_HALF_PIXEL) over = (2 * i + 1) * s->over[d] - s->under[d], under = 2 * s->under[d];
  if (s->grid == QN_GRID_ASYMMETRIC) over = i * s->over[d], under = s->under[d];
  if (s->mode == QN_RESAMPLE_NEAREST) {
    const int64_t floor = qn_floor_div(over, under), twice = 2 * (over - floor * under);      /* twice the distance from it, in 1 / under */
    int64_t at = floor;
    switch (s->rounding) {
    case QN_ROUNDING_FLOOR:        break;
    case QN_ROUNDING_CEIL:         at += twice > 0; break;
    case QN_ROUNDING_PREFER_FLOOR: at += twice > under; break;
    case QN_ROUNDING_PREFER_CEIL:  at += twice >= under; break;
    default:                       at += s->grid != QN_GRID_ASYMMETRIC && twice >= under;
    }
    place[0] = qn_max_i64(0, qn_min_i64(at, x - 1));
    weight[0] = 1;
    return 1;
  }
  const int64_t below = qn_floor_div(over, under);
  const long double t = (long double)(over - below * under) / under;
  const int n = s->mode == QN_RESAMPLE_LINEAR ? 2 : 4, first = n == 2 ? 0 : -1;
  for (int k = 0; k < n; k++) {
    place[k] = qn_max_i64(0, qn_min_i64(below + first + k, x - 1));
    weight[k] = n == 2 ? (k ? t : 1 - t) : cubic(t - (first + k), s->coefficient);
  }
  return n;
}

/* ---- antialias ------------------------------------------------------------------------------------- */

static long double wide_kernel(const resampling *s, int d, int64_t i, int64_t j)
{
  const int64_t x = s->over[d], y = s->under[d];
  const long double z = (long double)((2 * j + 1) * y - (2 * i + 1) * x) / (2 * qn_max_i64(x, y));
  return s->mode == QN_RESAMPLE_CUBIC ? cubic(z, s->coefficient) : fabsl(z) < 1 ? 1 - fabsl(z) : 0;
}

/* The elements that the kernel of point i covers, and perhaps one on either side; returns the sum of its weights. */
static long double wide_range(const resampling *s, int d, int64_t i, int64_t *first, int64_t *end)
{
  const int64_t x = s->over[d], y = s->under[d], reach = 2 * qn_max_i64(x, y) * (s->mode == QN_RESAMPLE_CUBIC ? 2 : 1);
  long double sum = 0;
  *first = qn_max_i64(0, qn_floor_div((2 * i + 1) * x - reach - y, 2 * y));
  *end = qn_min_i64(s->in[d], qn_floor_div((2 * i + 1) * x + reach - y, 2 * y) + 2);
  for (int64_t j = *first; j < *end; j++) sum += wide_kernel(s, d, i, j);
  return sum;
}

static long double wide_sum(const resampling *s, const cpu_grid *x, const int64_t at[5])
{
  int64_t first[3], end[3], from[3];
  long double total = 1, sum = 0;
  for (int d = 0; d < 3; d++) total *= wide_range(s, d, at[2 + d], &first[d], &end[d]);
  for (from[0] = first[0]; from[0] < end[0]; from[0]++)
    for (from[1] = first[1]; from[1] < end[1]; from[1]++)
      for (from[2] = first[2]; from[2] < end[2]; from[2]++) {
        long double w = 1 / total;
        for (int d = 0; d < 3; d++) w *= wide_kernel(s, d, at[2 + d], from[d]);
        if (w != 0) sum += w * (long double)cpu_get(&x->t, cpu_grid_offset(x, at[0], at[1], from));
      }
  return sum;
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid x = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_RESAMPLE_X, 0)),
      y = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_RESAMPLE_Y, 0));
  const resampling s = resampling_of(p, &x, &y);
#pragma omp parallel for num_threads(cpu_team(launch, y.t.elements, 100))
  for (int64_t i = 0; i < y.t.elements; i++) {
    int64_t at[5], place[3][4], n[3], tap[3], from[3];
    long double weight[3][4], sum = 0;
    cpu_place(i, 5, y.dim, at);
    if (s.antialias) {
      cpu_put(&y.t, cpu_offset(5, at, y.stride), (double)wide_sum(&s, &x, at));
      continue;
    }
    for (int d = 0; d < 3; d++) n[d] = taps_of(&s, d, at[2 + d], place[d], weight[d]);
    for (int64_t k = 0; k < n[0] * n[1] * n[2]; k++) {
      long double w = 1;
      cpu_place(k, 3, n, tap);
      for (int d = 0; d < 3; d++) {
        from[d] = place[d][tap[d]];
        w *= weight[d][tap[d]];
      }
      if (w != 0) sum += w * (long double)cpu_get(&x.t, cpu_grid_offset(&x, at[0], at[1], from));
    }
    cpu_put(&y.t, cpu_offset(5, at, y.stride), (double)sum);
  }
  return QN_OK;
}

/* The weight of position `at` in point i, in dim d. */
static long double weight_in(const resampling *s, int d, int64_t i, int64_t at)
{
  int64_t place[4], first, end;
  long double weight[4], sum = 0;
  if (s->antialias) {
    const long double w = wide_kernel(s, d, i, at);
    return w != 0 ? w / wide_range(s, d, i, &first, &end) : 0;
  }
  const int n = taps_of(s, d, i, place, weight);
  for (int k = 0; k < n; k++)
    if (place[k] == at) sum += weight[k];
  return sum;
}

static qn_status backward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid dy = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_RESAMPLE_BACKWARD_DY, 0));
  const cpu_grid dx = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_RESAMPLE_BACKWARD_DX, 0));
  const resampling s = resampling_of(p, &dx, &dy);
#pragma omp parallel for num_threads(cpu_team(launch, dx.t.elements, 100))
  for (int64_t i = 0; i < dx.t.elements; i++) {
    int64_t at[5], o[3];
    long double sum = 0;
    cpu_place(i, 5, dx.dim, at);
    for (o[0] = 0; o[0] < s.out[0]; o[0]++) {
      const long double w0 = weight_in(&s, 0, o[0], at[2]);
      for (o[1] = 0; w0 != 0 && o[1] < s.out[1]; o[1]++) {
        const long double w1 = w0 * weight_in(&s, 1, o[1], at[3]);
        for (o[2] = 0; w1 != 0 && o[2] < s.out[2]; o[2]++) {
          const long double w = w1 * weight_in(&s, 2, o[2], at[4]);
          if (w != 0) sum += w * (long double)cpu_get(&dy.t, cpu_grid_offset(&dy, at[0], at[1], o));
        }
      }
    }
    cpu_put(&dx.t, cpu_offset(5, at, dx.stride), (double)sum);
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_RESAMPLE, forward),
  CPU_DIRECT_ROW(QN_OP_RESAMPLE_BACKWARD, backward),
};
const qn_engine_list cpu_resample_direct = { row, sizeof row / sizeof *row };
