/* sampling_direct.c -- spatial transformer: grids from affine maps, an image at the points of a grid, and the gradients.
 *
 *   affine_grid   grid = theta (x, y, 1)                     dtheta = sum dy (x, y, 1)
 *   grid_sample   y = the sum over a point's taps of the product of each dim's weight times x
 *                 dx[j] = the sum over all points of dy times j's weight in it
 *                 dgrid = the sum over channels and taps of dy times x times the weights of the other dims times this dim's slope */
#include <stdbool.h>
#include "direct.h"

static const qn_sampling *attributes(const qn_prepared *p) { return ((const cpu_kept *)p->state)->attr; }

/* ---- affine maps ---------------------------------------------------------------------------------------------------- */

/* Entry j of (x, y, 1) or (x, y, z, 1) at a point of a grid of d dims; at: its index. */
static long double homogeneous(const qn_sampling *a, const cpu_tensor *grid, int d, const int64_t *at, int j)
{
  if (j == d) return 1;
  const int64_t n = grid->dim[d - j], i = at[d - j];
  if (!a->align_corners) return (long double)(2 * i + 1 - n) / (long double)n;
  return n > 1 ? (long double)(2 * i - (n - 1)) / (long double)(n - 1) : 0;
}

static qn_status affine(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_tensor theta = cpu_tensor_of(p, launch, QN_ROLE_AFFINE_GRID_THETA, 0),
      grid = cpu_tensor_of(p, launch, QN_ROLE_AFFINE_GRID_GRID, 0);
  const int d = grid.rank - 2;
#pragma omp parallel for num_threads(cpu_team(launch, grid.elements, 20))
  for (int64_t i = 0; i < grid.elements; i++) {
    int64_t at[5];
    long double sum = 0;
    cpu_place(i, grid.rank, grid.dim, at);
    for (int j = 0; j <= d; j++)
      sum += cpu_get(&theta, at[0] * theta.stride[0] + at[d + 1] * theta.stride[1] + j * theta.stride[2]) *
          homogeneous(attributes(p), &grid, d, at, j);
    cpu_put(&grid, cpu_offset(grid.rank, at, grid.stride), (double)sum);
  }
  return QN_OK;
}

static qn_status affine_backward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_tensor dy = cpu_tensor_of(p, launch, QN_ROLE_AFFINE_GRID_BACKWARD_DY, 0),
      dtheta = cpu_tensor_of(p, launch, QN_ROLE_AFFINE_GRID_BACKWARD_DTHETA, 0);
  const int d = dy.rank - 2;
  int64_t points = 1;
  for (int k = 1; k <= d; k++) points *= dy.dim[k];
#pragma omp parallel for num_threads(cpu_team(launch, dtheta.elements, 20 * points))
  for (int64_t i = 0; i < dtheta.elements; i++) {
    int64_t to[3], at[5];
    long double sum = 0;
    cpu_place(i, 3, dtheta.dim, to);
    for (int64_t k = 0; k < points; k++) {
      cpu_place(k, d, dy.dim + 1, at + 1);
      at[0] = to[0], at[d + 1] = to[1];
      sum += cpu_get(&dy, cpu_offset(dy.rank, at, dy.stride)) * homogeneous(attributes(p), &dy, d, at, (int)to[2]);
    }
    cpu_put(&dtheta, cpu_offset(3, to, dtheta.stride), (double)sum);
  }
  return QN_OK;
}

/* ---- points --------------------------------------------------------------------------------------------------------- */

/* One dim of a point: its taps inside x, their weights, and the weights' derivatives by the coordinate. */
typedef struct dim_taps { int n; bool nan; int64_t place[4]; long double weight[4], slope[4]; } dim_taps;

/* Mirrors at low and high until between them; *sign flips each time. */
static long double mirrored(long double at, long double low, long double high, long double *sign)
{
  if (high <= low) return *sign = 0, low;
  const long double span = high - low, from = fabsl(at - low), turns = floorl(from / span), rest = from - turns * span;
  if (at < low) *sign = -*sign;
  if (fmodl(turns, 2) != 0) *sign = -*sign;
  return fmodl(turns, 2) != 0 ? high - rest : low + rest;
}

/* Keys' kernel, coefficient -0.75, and its derivative. */
static long double keys(long double x)
{
  const long double d = fabsl(x), a = -0.75L;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : a * (((d - 5) * d + 8) * d - 4);
}
static long double keys_slope(long double x)
{
  const long double d = fabsl(x), a = -0.75L, s = d <= 1 ? (3 * (a + 2) * d - 2 * (a + 3)) * d : a * ((3 * d - 10) * d + 8);
  return x < 0 ? -s : s;
}

/* Where the padding finds an element beyond the ends; -1: nowhere. */
static int64_t padded(const qn_sampling *a, int64_t at, int64_t n)
{
  if (a->padding == QN_SAMPLE_ZEROS) return at >= 0 && at < n ? at : -1;
  if (a->padding == QN_SAMPLE_BORDER) return at < 0 ? 0 : at < n ? at : n - 1;
  const int64_t period = a->align_corners ? 2 * (n - 1) : 2 * n, last = a->align_corners ? period : period - 1;
  if (period == 0) return 0;
  at = (at % period + period) % period;
  return at < n ? at : last - at;
}

/* Four taps around the point; each of them, not the point, is moved to where the padding finds it. */
static dim_taps cubic_taps(const qn_sampling *a, long double at, long double scale, int64_t n)
{
  dim_taps t = { .nan = isinf(at) };
  if (a->padding == QN_SAMPLE_ZEROS && !(at > -3 && at < (long double)n + 2)) return t;
  if (a->padding == QN_SAMPLE_BORDER) at = at < -3 ? -3 : at > (long double)n + 2 ? (long double)n + 2 : at;   /* taps at an end */
  const int64_t below = (int64_t)floorl(at);
  for (int64_t j = below - 1; j <= below + 2; j++) {
    const int64_t place = padded(a, j, n);
    if (place < 0) continue;
    t.place[t.n] = place;
    t.weight[t.n] = keys(at - (long double)j);
    t.slope[t.n++] = scale * keys_slope(at - (long double)j);
  }
  return t;
}

static dim_taps taps_of(const qn_sampling *a, long double g, int64_t n)
{
  dim_taps t = { 0 };
  if (a->padding == QN_SAMPLE_REFLECTION) g -= 4 * rintl(g / 4);        /* its period, exactly: a far point keeps its digits */
  long double scale = a->align_corners ? (long double)(n - 1) / 2 : (long double)n / 2;
  long double at = a->align_corners ? (g + 1) / 2 * (long double)(n - 1) : ((g + 1) * (long double)n - 1) / 2;
  t.nan = isnan(g) || (isinf(g) && a->padding == QN_SAMPLE_REFLECTION);
  if (t.nan) return t;
  if (a->mode == QN_RESAMPLE_CUBIC) return cubic_taps(a, at, scale, n);
  if (a->padding == QN_SAMPLE_REFLECTION)
    at = a->align_corners ? mirrored(at, 0, (long double)(n - 1), &scale) : mirrored(at, -0.5L, (long double)n - 0.5L, &scale);
  if (a->padding != QN_SAMPLE_ZEROS) {
    if (!(at > 0 && at < (long double)(n - 1))) scale = 0;
    at = at > 0 ? at : 0;
    at = at < (long double)(n - 1) ? at : (long double)(n - 1);
  }
  if (!(at > -1 && at < (long double)n)) return t;
  if (a->mode == QN_RESAMPLE_NEAREST) {
    t.place[0] = (int64_t)rintl(at);
    t.weight[0] = 1;
    t.n = t.place[0] >= 0 && t.place[0] < n;
    return t;
  }
  const int64_t below = (int64_t)floorl(at);
  for (int k = 0; k < 2; k++) {
    if (below + k < 0 || below + k >= n) continue;
    t.place[t.n] = below + k;
    t.weight[t.n] = k ? at - (long double)below : 1 - (at - (long double)below);
    t.slope[t.n++] = k ? scale : -scale;
  }
  return t;
}

/* The taps of a point of image n; a missing dim has extent 1. */
static bool point_taps(const qn_sampling *a, const cpu_tensor *grid, int64_t n, const int64_t at[3], const int64_t extent[3],
                       dim_taps taps[3])
{
  bool nan = false;
  const int d = grid->rank - 2;
  for (int k = 0; k < 3; k++) taps[k] = (dim_taps){ .n = 1, .weight = { 1 } };
  for (int k = 0; k < d; k++) {
    int64_t from = n * grid->stride[0] + k * grid->stride[d + 1];
    for (int m = 0; m < d; m++) from += at[3 - d + m] * grid->stride[1 + m];
    taps[2 - k] = taps_of(a, (long double)cpu_get(grid, from), extent[2 - k]);
    nan |= taps[2 - k].nan;
  }
  return nan;
}

/* The weight of tap k; if `by` is a dim, with its slope in that dim instead; and its position. */
static long double tap_weight(const dim_taps taps[3], int k, int by, int64_t place[3])
{
  long double w = 1;
  for (int d = 2; d >= 0; d--) {
    const int i = k % taps[d].n;
    k /= taps[d].n;
    place[d] = taps[d].place[i];
    w *= d == by ? taps[d].slope[i] : taps[d].weight[i];
  }
  return w;
}

static qn_status sample(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid x = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_GRID_SAMPLE_X, 0)),
      y = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_GRID_SAMPLE_Y, 0));
  const cpu_tensor grid = cpu_tensor_of(p, launch, QN_ROLE_GRID_SAMPLE_GRID, 0);
#pragma omp parallel for num_threads(cpu_team(launch, y.t.elements, 100))
  for (int64_t i = 0; i < y.t.elements; i++) {
    int64_t at[5], place[3];
    dim_taps taps[3];
    cpu_place(i, 5, y.dim, at);
    long double sum = point_taps(attributes(p), &grid, at[0], at + 2, x.dim + 2, taps) ? (long double)NAN : 0;
    for (int k = 0; k < taps[0].n * taps[1].n * taps[2].n; k++) {
      const long double w = tap_weight(taps, k, -1, place);
      if (w != 0) sum += w * (long double)cpu_get(&x.t, cpu_grid_offset(&x, at[0], at[1], place));
    }
    cpu_put(&y.t, cpu_offset(5, at, y.stride), (double)sum);
  }
  return QN_OK;
}

static qn_status by_image(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid dy = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_GRID_SAMPLE_BACKWARD_DATA_DY, 0));
  const cpu_grid dx = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_GRID_SAMPLE_BACKWARD_DATA_DX, 0));
  const cpu_tensor grid = cpu_tensor_of(p, launch, QN_ROLE_GRID_SAMPLE_BACKWARD_DATA_GRID, 0);
  const int64_t points = dy.dim[2] * dy.dim[3] * dy.dim[4];
#pragma omp parallel for num_threads(cpu_team(launch, dx.t.elements, 100 * points))
  for (int64_t i = 0; i < dx.t.elements; i++) {
    int64_t at[5], from[3], place[3];
    dim_taps taps[3];
    long double sum = 0;
    cpu_place(i, 5, dx.dim, at);
    for (int64_t k = 0; k < points; k++) {
      cpu_place(k, 3, dy.dim + 2, from);
      if (point_taps(attributes(p), &grid, at[0], from, dx.dim + 2, taps)) continue;
      for (int m = 0; m < taps[0].n * taps[1].n * taps[2].n; m++) {
        const long double w = tap_weight(taps, m, -1, place);
        if (w != 0 && place[0] == at[2] && place[1] == at[3] && place[2] == at[4])
          sum += w * (long double)cpu_get(&dy.t, cpu_grid_offset(&dy, at[0], at[1], from));
      }
    }
    cpu_put(&dx.t, cpu_offset(5, at, dx.stride), (double)sum);
  }
  return QN_OK;
}

static qn_status by_grid(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_grid dy = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_GRID_SAMPLE_BACKWARD_GRID_DY, 0));
  const cpu_grid x = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_GRID_SAMPLE_BACKWARD_GRID_X, 0));
  const cpu_tensor grid = cpu_tensor_of(p, launch, QN_ROLE_GRID_SAMPLE_BACKWARD_GRID_GRID, 0);
  const cpu_tensor dgrid = cpu_tensor_of(p, launch, QN_ROLE_GRID_SAMPLE_BACKWARD_GRID_DGRID, 0);
  const int d = grid.rank - 2;
#pragma omp parallel for num_threads(cpu_team(launch, dgrid.elements, 100 * x.dim[1]))
  for (int64_t i = 0; i < dgrid.elements; i++) {
    int64_t at[5], from[3] = { 0, 0, 0 }, place[3];
    dim_taps taps[3];
    cpu_place(i, dgrid.rank, dgrid.dim, at);
    for (int m = 0; m < d; m++) from[3 - d + m] = at[1 + m];
    const int by = 2 - (int)at[d + 1];
    long double sum = point_taps(attributes(p), &grid, at[0], from, x.dim + 2, taps) ? (long double)NAN : 0;
    for (int64_t c = 0; c < x.dim[1]; c++)
      for (int k = 0; k < taps[0].n * taps[1].n * taps[2].n; k++) {
        const long double w = tap_weight(taps, k, by, place);
        if (w != 0)
          sum += w * (long double)cpu_get(&x.t, cpu_grid_offset(&x, at[0], c, place))
              * (long double)cpu_get(&dy.t, cpu_grid_offset(&dy, at[0], c, from));
      }
    cpu_put(&dgrid, cpu_offset(dgrid.rank, at, dgrid.stride), (double)sum);
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_AFFINE_GRID, affine),
  CPU_DIRECT_ROW(QN_OP_AFFINE_GRID_BACKWARD, affine_backward),
  CPU_DIRECT_ROW(QN_OP_GRID_SAMPLE, sample),
  CPU_DIRECT_ROW(QN_OP_GRID_SAMPLE_BACKWARD_DATA, by_image),
  CPU_DIRECT_ROW(QN_OP_GRID_SAMPLE_BACKWARD_GRID, by_grid),
};
const qn_engine_list cpu_sampling_direct = { row, sizeof row / sizeof *row };
