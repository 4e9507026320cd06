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
  int32_t  along;                         /* the last of the dims summed over: elements come in lines of it */
  int64_t  lines, length;
} group;

static group group_of(const cpu_tensor *x, uint64_t mask)
{
  group g = { .x = x, .mask = mask, .groups = 1, .n = 1, .along = -1, .length = 1 };
  for (int32_t d = 0; d < x->rank; d++) {
    g.walked[d] = mask >> d & 1 ? x->dim[d] : 1;
    g.kept[d] = mask >> d & 1 ? 1 : x->dim[d];
    g.n *= g.walked[d];
    g.groups *= g.kept[d];
    if (mask >> d & 1) g.along = d, g.length = x->dim[d];
  }
  g.lines = g.length ? g.n / g.length : 0;
  return g;
}

/* The index of the first element of group i; that of the next line's, after the last the first's. */
static void begin(const group *g, int64_t i, int64_t *index) { cpu_place(i, g->x->rank, g->kept, index); }
static void next(const group *g, int64_t *index)
{
  for (int32_t d = g->along - 1; d >= 0; d--) {
    if (!(g->mask >> d & 1)) continue;
    if (++index[d] < g->walked[d]) return;
    index[d] = 0;
  }
}

/* Places in a tensor along a line; of one that is absent, its value. */
typedef struct places { const cpu_tensor *t; int64_t at, step; double absent; } places;
static places line_of(const group *g, const cpu_tensor *t, const int64_t *index, double absent)
{
  if (!t->p) return (places){ t, 0, 0, absent };
  return (places){ t, broadcast(t, index), g->along < 0 || t->dim[g->along] == 1 ? 0 : t->stride[g->along], 0 };
}
static long double item(const places *l, int64_t j) { return l->t->p ? cpu_get(l->t, l->at + j * l->step) : l->absent; }

/* ---- forward ---------------------------------------------------------------------------------------------------- */

static void statistics(const group *g, int64_t i, int centred, long double *mean, long double *var)
{
  int64_t index[QN_MAX_RANK];
  cpu_sum sum = { 0 };
  *mean = 0;
  begin(g, i, index);
  for (int64_t l = 0; centred && l < g->lines; l++, next(g, index)) {
    const places x = line_of(g, g->x, index, 0);
    for (int64_t j = 0; j < g->length; j++) cpu_sum_add(&sum, (double)item(&x, j));
  }
  if (centred) *mean = cpu_sum_total(&sum) / g->n;
  long double squares = 0;
  for (int64_t l = 0; l < g->lines; l++, next(g, index)) {
    const places x = line_of(g, g->x, index, 0);
    for (int64_t j = 0; j < g->length; j++) {
      const long double d = item(&x, j) - *mean;
      squares += d * d;
    }
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
    for (int64_t l = 0; l < g.lines; l++, next(&g, index)) {
      const places from = line_of(&g, &x, index, 0), to = line_of(&g, &y, index, 0);
      const places by = line_of(&g, &scale, index, 1), plus = line_of(&g, &shift, index, 0);
      for (int64_t j = 0; j < g.length; j++) {
        const long double h = (item(&from, j) - mean) * rstd;
        cpu_put(&y, to.at + j * to.step, (double)(h * item(&by, j) + item(&plus, j)));
      }
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

/* What a gradient reads along a line. */
typedef struct lines { places x, dy, scale, mean, rstd; } lines;
static lines lines_of(const gradient *s, const group *g, const int64_t *index)
{
  return (lines){ line_of(g, &s->x, index, 0), line_of(g, &s->dy, index, 0), line_of(g, &s->scale, index, 1),
                  line_of(g, &s->mean, index, 0), line_of(g, &s->rstd, index, 1) };
}

static long double h_at(const lines *l, int64_t j) { return (item(&l->x, j) - item(&l->mean, j)) * item(&l->rstd, j); }

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
    for (int64_t l = 0; l < g.lines; l++, next(&g, index)) {
      const lines in = lines_of(s, &g, index);
      for (int64_t j = 0; j < g.length; j++) sum += products ? item(&in.dy, j) * h_at(&in, j) : item(&in.dy, j);
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
    for (int64_t l = 0; l < g.lines; l++, next(&g, index)) {
      const lines in = lines_of(&s, &g, index);
      for (int64_t j = 0; j < g.length; j++) {
        const long double t = item(&in.dy, j) * item(&in.scale, j);
        sum += t;
        along += t * h_at(&in, j);
      }
    }
    const long double mean = centred ? sum / g.n : 0, slope = along / g.n;
    for (int64_t l = 0; l < g.lines; l++, next(&g, index)) {
      const lines in = lines_of(&s, &g, index);
      const places to = line_of(&g, &dx, index, 0);
      for (int64_t j = 0; j < g.length; j++) {
        const long double t = item(&in.dy, j) * item(&in.scale, j), away = mean + h_at(&in, j) * slope;
        cpu_put(&dx, to.at + j * to.step, (double)(item(&in.rstd, j) * (t - away)));
      }
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
