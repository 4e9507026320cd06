/* lrn_direct.c -- local response and divisive normalization and their gradients.
 *
 *   y  = x b^-beta, b = k + alpha/n sum (x - m)^2 over the window at this position: along channels, or in a channel's spatial dims
 *   dx = dy b^-beta - 2 alpha beta/n sum r' (x - m') over the positions ' whose windows hold this one, r = dy x b^-(beta+1)
 *   dmeans = 2 alpha beta/n r sum (x - m) over the window; m is the mean at the window's own position, 0 without means */
#include <stdbool.h>
#include "direct.h"

typedef struct norm {
  cpu_grid x, means;
  const qn_local_norm *a;
  int64_t first[5], count[5];             /* of the window in each dim: first offset and number */
  long double alpha;                      /* alpha/n */
} norm;

static norm norm_of(const qn_prepared *p, cpu_tensor x, cpu_tensor means)
{
  norm s = { .x = cpu_grid_of(x), .means = cpu_grid_of(means), .a = ((const cpu_kept *)p->state)->attr, .alpha = 1 };
  for (int d = 0; d < 5; d++) {
    const bool covered = s.a->region == QN_LOCAL_ACROSS ? d == 1 : d >= 7 - x.rank;
    const int64_t size = covered ? s.a->size : 1, most = s.x.dim[d] - 1;
    s.first[d] = -qn_min_i64((size - 1) / 2, most);
    s.count[d] = qn_min_i64(size / 2, most) - s.first[d] + 1;
    s.alpha /= (long double)size;
  }
  s.alpha *= s.a->alpha;
  return s;
}

/* The tap numbered k in each dim of the window at `at`, or (backward) the position in whose window it is that tap; false: outside. */
static bool neighbour(const norm *s, const int64_t at[5], const int64_t k[5], bool backward, int64_t to[5])
{
  bool inside = true;
  for (int d = 0; d < 5; d++) {
    const int64_t offset = s->first[d] + k[d];
    to[d] = backward ? at[d] - offset : at[d] + offset;
    inside &= to[d] >= 0 && to[d] < s->x.dim[d];
  }
  return inside;
}

static int64_t window(const norm *s)
{
  int64_t n = 1;
  for (int d = 0; d < 5; d++) n *= s->count[d];
  return n;
}

static long double value(const norm *s, const int64_t at[5]) { return cpu_get(&s->x.t, cpu_offset(5, at, s->x.stride)); }

static long double mean(const norm *s, const int64_t at[5])
{
  return s->means.t.p ? cpu_get(&s->means.t, cpu_offset(5, at, s->means.stride)) : 0;
}

/* The sum of x - m over the window at `at`, or of its squares. */
static long double distances(const norm *s, const int64_t at[5], bool squared)
{
  const long double m = mean(s, at);
  long double sum = 0;
  int64_t to[5], k[5] = { 0 };
  for (int64_t n = window(s); n > 0; n--, cpu_next(5, s->count, k)) {
    if (!neighbour(s, at, k, false, to)) continue;
    const long double away = value(s, to) - m;
    sum += away * (squared ? away : 1);
  }
  return sum;
}

static long double base(const norm *s, const int64_t at[5]) { return s->a->k + s->alpha * distances(s, at, true); }

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  const norm s = norm_of(p, cpu_tensor_of(p, launch, QN_ROLE_LRN_X, 0), cpu_tensor_of(p, launch, QN_ROLE_LRN_MEANS, 0));
  const cpu_grid y = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_LRN_Y, 0));
#pragma omp parallel for num_threads(cpu_team(launch, y.t.elements, 10 * window(&s)))
  for (int64_t i = 0; i < y.t.elements; i++) {
    int64_t at[5];
    cpu_place(i, 5, y.dim, at);
    cpu_put(&y.t, cpu_offset(5, at, y.stride), (double)(value(&s, at) * powl(base(&s, at), -s.a->beta)));
  }
  return QN_OK;
}

/* dy x b^-(beta+1) */
static long double share(const norm *s, const cpu_grid *dy, const int64_t at[5])
{
  return cpu_get(&dy->t, cpu_offset(5, at, dy->stride)) * value(s, at) * powl(base(s, at), -s->a->beta - 1);
}

static qn_status backward(const qn_prepared *p, const qn_launch *launch)
{
  const norm s = norm_of(p, cpu_tensor_of(p, launch, QN_ROLE_LRN_BACKWARD_X, 0), cpu_tensor_of(p, launch, QN_ROLE_LRN_BACKWARD_MEANS, 0));
  const cpu_grid dy = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_LRN_BACKWARD_DY, 0));
  const cpu_grid dx = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_LRN_BACKWARD_DX, 0));
  const cpu_grid dmeans = cpu_grid_of(cpu_tensor_of(p, launch, QN_ROLE_LRN_BACKWARD_DMEANS, 0));
  const long double by = 2 * s.alpha * s.a->beta;
#pragma omp parallel for num_threads(cpu_team(launch, dx.t.elements, 10 * window(&s) * window(&s)))
  for (int64_t i = 0; i < dx.t.elements; i++) {
    int64_t at[5], from[5], k[5] = { 0 };
    long double sum = 0;
    cpu_place(i, 5, dx.dim, at);
    for (int64_t n = window(&s); n > 0; n--, cpu_next(5, s.count, k))
      if (neighbour(&s, at, k, true, from)) sum += share(&s, &dy, from) * (value(&s, at) - mean(&s, from));
    const long double own = cpu_get(&dy.t, cpu_offset(5, at, dy.stride)) * powl(base(&s, at), -s.a->beta);
    cpu_put(&dx.t, cpu_offset(5, at, dx.stride), (double)(own - by * sum));
    if (dmeans.t.p) cpu_put(&dmeans.t, cpu_offset(5, at, dmeans.stride), (double)(by * share(&s, &dy, at) * distances(&s, at, false)));
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_LRN, forward),
  CPU_DIRECT_ROW(QN_OP_LRN_BACKWARD, backward),
};
const qn_engine_list cpu_lrn_direct = { row, sizeof row / sizeof *row };
