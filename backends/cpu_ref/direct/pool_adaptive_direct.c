/* pool_adaptive_direct.c -- pooling into a given number of windows that cover x, and its gradients.
 *
 *   x [N, C, X]   y, indices [N, C, P]   1 to 3 spatial dims; in each, window i holds floor(i X / P) to ceil((i + 1) X / P)
 *   max       y = the largest, NaN above all, the first of equals; indices = its position in x's plane
 *   average   y = the mean
 *   backward  dx = the sum of dy over the windows whose index is this position, or of dy / size over those that hold it */
#include "direct.h"

typedef struct sharing { int64_t in[3], out[3]; } sharing;        /* extents of x and of y */

static cpu_grid grid(const qn_prepared *p, const qn_launch *launch, uint32_t role)
{
  return cpu_grid_of(cpu_tensor_of(p, launch, role, 0));
}

static sharing sharing_of(const cpu_grid *x, const cpu_grid *y)
{
  sharing s;
  for (int d = 0; d < 3; d++) {
    s.in[d] = x->dim[2 + d];
    s.out[d] = y->dim[2 + d];
  }
  return s;
}

/* Begin and size of the window at `at` in each dim; returns its number of elements. */
static int64_t window_of(const sharing *s, const int64_t at[3], int64_t begin[3], int64_t size[3])
{
  int64_t places = 1;
  for (int d = 0; d < 3; d++) {
    begin[d] = at[d] * s->in[d] / s->out[d];
    size[d] = qn_ceil_div((at[d] + 1) * s->in[d], s->out[d]) - begin[d];
    places *= size[d];
  }
  return places;
}

static void place_in_window(int64_t tap, const int64_t begin[3], const int64_t size[3], int64_t at[3])
{
  cpu_place(tap, 3, size, at);
  for (int d = 0; d < 3; d++) at[d] += begin[d];
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch, int average)
{
  const cpu_grid x = grid(p, launch, QN_ROLE_POOL_ADAPTIVE_MAX_X), y = grid(p, launch, QN_ROLE_POOL_ADAPTIVE_MAX_Y);
  cpu_grid indices = { 0 };
  if (!average) indices = grid(p, launch, QN_ROLE_POOL_ADAPTIVE_MAX_INDICES);
  const sharing s = sharing_of(&x, &y);
#pragma omp parallel for num_threads(cpu_team(launch, y.t.elements, x.t.elements / y.t.elements + 1))
  for (int64_t i = 0; i < y.t.elements; i++) {
    int64_t at[5], begin[3], size[3], from[3], best[3] = { 0 };
    double most = -INFINITY;
    cpu_sum sum = { 0 };
    cpu_place(i, 5, y.dim, at);
    const int64_t places = window_of(&s, at + 2, begin, size);
    for (int64_t tap = 0; tap < places; tap++) {
      place_in_window(tap, begin, size, from);
      const double here = cpu_get(&x.t, cpu_grid_offset(&x, at[0], at[1], from));
      cpu_sum_add(&sum, here);
      if (tap && !(here > most) && !(isnan(here) && !isnan(most))) continue;
      most = here;
      memcpy(best, from, sizeof best);
    }
    const double mean = (double)(cpu_sum_total(&sum) / places);
    cpu_put(&y.t, cpu_offset(5, at, y.stride), average ? mean : most);
    if (indices.t.p)
      qn_store_i64(cpu_at(&indices.t, cpu_offset(5, at, indices.stride)), indices.t.dtype,
                   (best[0] * s.in[1] + best[1]) * s.in[2] + best[2]);
  }
  return QN_OK;
}

static qn_status max_forward(const qn_prepared *p, const qn_launch *launch) { return forward(p, launch, 0); }
static qn_status average_forward(const qn_prepared *p, const qn_launch *launch) { return forward(p, launch, 1); }

/* Tests every window for whether it holds the position. */
static qn_status backward(const qn_prepared *p, const qn_launch *launch, int average)
{
  const cpu_grid dy = grid(p, launch, 0);
  const cpu_grid dx = grid(p, launch, average ? QN_ROLE_POOL_ADAPTIVE_AVERAGE_BACKWARD_DX : QN_ROLE_POOL_ADAPTIVE_MAX_BACKWARD_DX);
  cpu_grid indices = { 0 };
  if (!average) indices = grid(p, launch, QN_ROLE_POOL_ADAPTIVE_MAX_BACKWARD_INDICES);
  const sharing s = sharing_of(&dx, &dy);
  const int64_t windows = s.out[0] * s.out[1] * s.out[2];
#pragma omp parallel for num_threads(cpu_team(launch, dx.t.elements, windows))
  for (int64_t i = 0; i < dx.t.elements; i++) {
    int64_t at[5], window[3], begin[3], size[3];
    long double sum = 0;
    cpu_place(i, 5, dx.dim, at);
    const int64_t place = (at[2] * s.in[1] + at[3]) * s.in[2] + at[4];
    for (int64_t w = 0; w < windows; w++) {
      cpu_place(w, 3, s.out, window);
      const int64_t places = window_of(&s, window, begin, size);
      int holds = 1;
      for (int d = 0; d < 3; d++) holds &= at[2 + d] >= begin[d] && at[2 + d] < begin[d] + size[d];
      if (!holds) continue;
      const long double here = cpu_get(&dy.t, cpu_grid_offset(&dy, at[0], at[1], window));
      if (average) sum += here / places;
      else if (qn_load_i64(cpu_at(&indices.t, cpu_grid_offset(&indices, at[0], at[1], window)), indices.t.dtype) == place) sum += here;
    }
    cpu_put(&dx.t, cpu_offset(5, at, dx.stride), (double)sum);
  }
  return QN_OK;
}

static qn_status max_backward(const qn_prepared *p, const qn_launch *launch) { return backward(p, launch, 0); }
static qn_status average_backward(const qn_prepared *p, const qn_launch *launch) { return backward(p, launch, 1); }

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_POOL_ADAPTIVE_MAX, max_forward),
  CPU_DIRECT_ROW(QN_OP_POOL_ADAPTIVE_MAX_BACKWARD, max_backward),
  CPU_DIRECT_ROW(QN_OP_POOL_ADAPTIVE_AVERAGE, average_forward),
  CPU_DIRECT_ROW(QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD, average_backward),
};
const qn_engine_list cpu_pool_adaptive_direct = { row, sizeof row / sizeof *row };
