/* norm_direct.c -- normalization and its gradients; each group of elements that share statistics is done by one thread.
 *
 *   mean = sum x / n    var = sum (x - mean)^2 / n    rstd = 1 / sqrt(var + eps)    y = (x - mean) rstd scale + shift
 *   rms_norm: mean is 0, var = sum x^2 / n
 *   with h = (x - mean) rstd, g = dy scale:   dx = rstd (g - sum g / n - h sum(g h) / n)    rms_norm: without sum g
 *   dscale = sum dy h    dshift = sum dy */
#include "direct.h"

static cpu_tensor part(const qn_prepared *p, const qn_launch *launch, int8_t role)
{
  cpu_tensor none = { 0 };
  return role < 0 ? none : cpu_tensor_of(p, launch, (uint32_t)role, 0);
}

/* The element of t for an index of x: each dim of t is x's or 1. */
static int64_t broadcast(const cpu_tensor *t, const int64_t *index)
{
  int64_t offset = 0;
  for (int32_t d = 0; d < t->rank; d++)
    if (t->dim[d] != 1) offset += index[d] * t->stride[d];
  return offset;
}

static long double value(const cpu_tensor *t, const int64_t *index, double absent)
{
  return t->p ? cpu_get(t, broadcast(t, index)) : absent;
}

/* ---- the elements of a group: those of x whose index equals `base` in the dims not in mask ---------------------- */

typedef struct group {
  const cpu_tensor *x;
  uint64_t mask;                          /* the dims summed over */
  int64_t  kept[QN_MAX_RANK], walked[QN_MAX_RANK], groups, n;
} group;

static group group_of(const cpu_tensor *x, uint64_t mask)
{
  group g = { .x = x, .mask = mask, .groups = 1, .n = 1 };
  for (int32_t d = 0; d < x->rank; d++) {
    g.walked[d] = mask >> d & 1 ? x->dim[d] : 1;
    g.kept[d] = mask >> d & 1 ? 1 : x->dim[d];
    g.n *= g.walked[d];
    g.groups *= g.kept[d];
  }
  return g;
}

/* The index of the first element of group i; that of the next one, after the last the first's. */
static void begin(const group *g, int64_t i, int64_t *index) { cpu_place(i, g->x->rank, g->kept, index); }
static void next(const group *g, int64_t *index)
{
  for (int32_t d = g->x->rank - 1; d >= 0; d--) {
    if (!(g->mask >> d & 1)) continue;
    if (++index[d] < g->walked[d]) return;
    index[d] = 0;
  }
}

/* ---- forward ---------------------------------------------------------------------------------------------------- */

static void statistics(const group *g, int64_t i, int centred, long double *mean, long double *var)
{
  int64_t index[QN_MAX_RANK];
  cpu_sum sum = { 0 };
  *mean = 0;
  begin(g, i, index);
  for (int64_t j = 0; centred && j < g->n; j++, next(g, index)) cpu_sum_add(&sum, cpu_get(g->x, broadcast(g->x, index)));
  if (centred) *mean = cpu_sum_total(&sum) / g->n;
  long double squares = 0;
  for (int64_t j = 0; j < g->n; j++, next(g, index)) {
    const long double d = cpu_get(g->x, broadcast(g->x, index)) - *mean;
    squares += d * d;
  }
  *var = squares / g->n;
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_norm *norm = kept->attr;
  const qn_norm_roles r = qn_norm_roles_of(kept->op);
  const cpu_tensor x = part(p, launch, r.x), y = part(p, launch, r.y), scale = part(p, launch, r.scale), shift = part(p, launch, r.shift);
  const cpu_tensor given_mean = part(p, launch, r.var < 0 ? -1 : r.mean), given_var = part(p, launch, r.var);
  const cpu_tensor mean_out = part(p, launch, r.var < 0 ? r.mean : -1), rstd_out = part(p, launch, r.rstd);
  const cpu_tensor running_mean = part(p, launch, r.running_mean), running_var = part(p, launch, r.running_var);
  const cpu_tensor new_mean = part(p, launch, r.new_mean), new_var = part(p, launch, r.new_var);
  const group g = group_of(&x, norm->mask);

#pragma omp parallel for num_threads(cpu_team(launch, g.groups, g.n * 16))
  for (int64_t i = 0; i < g.groups; i++) {
    int64_t index[QN_MAX_RANK], home[QN_MAX_RANK];
    long double mean, var;
    cpu_place(i, x.rank, g.kept, home);
    if (given_var.p) {
      mean = value(&given_mean, home, 0);
      var = value(&given_var, home, 0);
    } else statistics(&g, i, kept->op != QN_OP_RMS_NORM, &mean, &var);
    const long double rstd = 1 / sqrtl(var + norm->eps), m = norm->momentum;
    begin(&g, i, index);
    for (int64_t j = 0; j < g.n; j++, next(&g, index)) {
      const long double h = (cpu_get(&x, broadcast(&x, index)) - mean) * rstd;
      cpu_put(&y, broadcast(&y, index), (double)(h * value(&scale, index, 1) + value(&shift, index, 0)));
    }
    if (mean_out.p) cpu_put(&mean_out, broadcast(&mean_out, home), (double)mean);
    if (rstd_out.p) cpu_put(&rstd_out, broadcast(&rstd_out, home), (double)rstd);
    if (new_mean.p) cpu_put(&new_mean, broadcast(&new_mean, home), (double)((1 - m) * value(&running_mean, home, 0) + m * mean));
    if (new_var.p) {
      const long double unbiased = g.n > 1 ? var * g.n / (g.n - 1) : var;
      cpu_put(&new_var, broadcast(&new_var, home), (double)((1 - m) * value(&running_var, home, 0) + m * unbiased));
    }
  }
  return QN_OK;
}

/* ---- backward --------------------------------------------------------------------------------------------------- */

typedef struct gradient { cpu_tensor x, dy, scale, mean, rstd; } gradient;

static long double h_at(const gradient *s, const int64_t *index)
{
  return (cpu_get(&s->x, broadcast(&s->x, index)) - value(&s->mean, index, 0)) * value(&s->rstd, index, 1);
}

/* dscale (products) or dshift: each element is the sum over the elements of x that use its parameter. */
static void by_parameter(const gradient *s, const cpu_tensor *out, int products, const qn_launch *launch)
{
  uint64_t mask = 0;
  for (int32_t d = 0; d < out->rank; d++)
    if (out->dim[d] == 1) mask |= UINT64_C(1) << d;
  const group g = group_of(&s->x, mask);
#pragma omp parallel for num_threads(cpu_team(launch, g.groups, g.n * 16))
  for (int64_t i = 0; i < g.groups; i++) {
    int64_t index[QN_MAX_RANK];
    long double sum = 0;
    begin(&g, i, index);
    for (int64_t j = 0; j < g.n; j++, next(&g, index)) {
      const long double dy = cpu_get(&s->dy, broadcast(&s->dy, index));
      sum += products ? dy * h_at(s, index) : dy;
    }
    cpu_place(i, s->x.rank, g.kept, index);
    cpu_put(out, broadcast(out, index), (double)sum);
  }
}

static qn_status backward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_norm_roles r = qn_norm_roles_of(kept->op);
  const gradient s = { part(p, launch, r.x), part(p, launch, r.dy), part(p, launch, r.scale), part(p, launch, r.mean),
                       part(p, launch, r.rstd) };
  const cpu_tensor dx = part(p, launch, r.dx), dscale = part(p, launch, r.dscale), dshift = part(p, launch, r.dshift);
  const group g = group_of(&s.x, ((const qn_norm *)kept->attr)->mask);
  const int centred = kept->op != QN_OP_RMS_NORM_BACKWARD;

#pragma omp parallel for num_threads(cpu_team(launch, g.groups, g.n * 16))
  for (int64_t i = 0; i < g.groups; i++) {
    int64_t index[QN_MAX_RANK];
    long double sum = 0, along = 0;
    begin(&g, i, index);
    for (int64_t j = 0; j < g.n; j++, next(&g, index)) {
      const long double t = cpu_get(&s.dy, broadcast(&s.dy, index)) * value(&s.scale, index, 1);
      sum += t;
      along += t * h_at(&s, index);
    }
    begin(&g, i, index);
    for (int64_t j = 0; j < g.n; j++, next(&g, index)) {
      const long double t = cpu_get(&s.dy, broadcast(&s.dy, index)) * value(&s.scale, index, 1);
      const long double away = (centred ? sum / g.n : 0) + h_at(&s, index) * (along / g.n);
      cpu_put(&dx, broadcast(&dx, index), (double)(value(&s.rstd, index, 1) * (t - away)));
    }
  }
  if (dscale.p) by_parameter(&s, &dscale, 1, launch);
  if (dshift.p) by_parameter(&s, &dshift, 0, launch);
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_LAYER_NORM, forward),
  CPU_DIRECT_ROW(QN_OP_LAYER_NORM_BACKWARD, backward),
  CPU_DIRECT_ROW(QN_OP_RMS_NORM, forward),
  CPU_DIRECT_ROW(QN_OP_RMS_NORM_BACKWARD, backward),
  CPU_DIRECT_ROW(QN_OP_BATCH_NORM, forward),
  CPU_DIRECT_ROW(QN_OP_BATCH_NORM_BACKWARD, backward),
  CPU_DIRECT_ROW(QN_OP_BATCH_NORM_INFERENCE, forward),
};
const qn_engine_list cpu_norm_direct = { row, sizeof row / sizeof *row };
