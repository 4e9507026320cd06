/* training_direct.c -- steps of sgd, adam and other rules over lists, the norm of a list, loss scales; a list's tensors one by one.
 *
 *   g = grad / scale (sgd, adam: + decay p)      t = step + 1      if found, nothing changes
 *   sgd     u = momentum u + (1 - dampening) g (the first: + g)      p -= rate (nesterov: g + momentum u, else u)
 *   adam    m = b1 m + (1 - b1) g   v = b2 v + (1 - b2) g^2
 *           p -= rate ((m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)      adamw: + decay p)
 *   amsgrad as adam, the largest v so far in v's place      adagrad v = v + g^2      p -= rate / (1 + slowing (t - 1)) g / (sqrt(v) + eps)
 *   rmsprop v = alpha v + (1 - alpha) g^2      u = momentum u + g / (sqrt(v) + eps)      p -= rate u
 *   lamb    u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay p      p -= rate min(|p| / |u|, limit) u, by the tensors' norms
 *   lion    p -= rate (sign(b1 m + (1 - b1) g) + decay p)      m = b2 m + (1 - b2) g */
#include "direct.h"

static cpu_tensor part(const qn_prepared *p, const qn_launch *launch, int8_t role, int32_t i)
{
  const cpu_tensor none = { 0 };
  return role < 0 ? none : cpu_tensor_of(p, launch, (uint32_t)role, i);
}

static double number(const qn_prepared *p, const qn_launch *launch, int8_t role, double absent)
{
  const cpu_tensor t = part(p, launch, role, 0);
  return t.p ? cpu_get(&t, 0) : absent;
}

/* The i-th tensors of all lists have the same dims: offset of an index in t. */
static int64_t offset(const cpu_tensor *t, const int64_t *index) { return t->p ? cpu_offset(t->rank, index, t->stride) : 0; }
static void put(const cpu_tensor *t, const int64_t *index, long double x)
{
  if (t->p) cpu_put(t, offset(t, index), (double)x);
}

/* ---- sgd, adam, adamw -------------------------------------------------------------------------------------------- */

typedef struct step {
  uint32_t op;
  const void *attr;
  cpu_tensor p, g, m, v, peak, new_p, new_m, new_v, new_peak, copy;
  int64_t t;
  double rate, scale;
  int found;
  long double unbias1, unbias2;           /* 1 - beta^t */
  long double reach;                      /* lamb: |p| / |u| of the tensor */
} step;

typedef struct moments { long double m, v, by; } moments;

/* An element's next means, and its move without the rate. */
static moments adam_moments(const step *s, long double g, long double m, long double v, long double peak, long double p)
{
  const qn_adam_rule *a = s->attr;
  moments to = { a->beta1 * m + (1 - (long double)a->beta1) * g, a->beta2 * v + (1 - (long double)a->beta2) * g * g, 0 };
  const long double below = s->op != QN_OP_AMSGRAD || isnan(to.v) || to.v > peak ? to.v : peak;
  to.by = to.m / s->unbias1 / (sqrtl(below / s->unbias2) + a->eps);
  if (s->op == QN_OP_ADAMW || s->op == QN_OP_LAMB) to.by += a->decay * p;
  return to;
}

static long double sign_of(long double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

static void one_element(const step *s, int64_t i)
{
  const qn_sgd_rule *sgd = s->attr;
  const qn_adam_rule *adam = s->attr;
  const qn_rmsprop_rule *rmsprop = s->attr;
  const qn_adagrad_rule *adagrad = s->attr;
  const qn_lion_rule *lion = s->attr;
  int64_t index[QN_MAX_RANK];
  cpu_place(i, s->p.rank, s->p.dim, index);
  long double p = cpu_get(&s->p, offset(&s->p, index)), m = s->m.p ? cpu_get(&s->m, offset(&s->m, index)) : 0;
  long double v = s->v.p ? cpu_get(&s->v, offset(&s->v, index)) : 0, peak = s->peak.p ? cpu_get(&s->peak, offset(&s->peak, index)) : 0;
  if (!s->found) {
    long double g = (long double)cpu_get(&s->g, offset(&s->g, index)) / s->scale;
    switch (s->op) {
    case QN_OP_SGD:
      g += sgd->decay * p;
      m = sgd->momentum * m + (s->t > 1 ? 1 - (long double)sgd->dampening : 1) * g;
      p -= s->rate * (sgd->nesterov ? g + sgd->momentum * m : m);
      break;
    case QN_OP_RMSPROP:
      g += rmsprop->decay * p;
      v = rmsprop->alpha * v + (1 - (long double)rmsprop->alpha) * g * g;
      m = rmsprop->momentum * m + g / (sqrtl(v) + rmsprop->eps);
      p -= s->rate * m;
      break;
    case QN_OP_ADAGRAD:
      g += adagrad->decay * p;
      v += g * g;
      p -= s->rate / (1 + (s->t - 1) * (long double)adagrad->slowing) * g / (sqrtl(v) + adagrad->eps);
      break;
    case QN_OP_LION:
      p -= s->rate * (sign_of(lion->beta1 * m + (1 - (long double)lion->beta1) * g) + lion->decay * p);
      m = lion->beta2 * m + (1 - (long double)lion->beta2) * g;
      break;
    default:
      if (s->op == QN_OP_ADAM || s->op == QN_OP_AMSGRAD) g += adam->decay * p;
      const moments to = adam_moments(s, g, m, v, peak, p);
      m = to.m, v = to.v;
      peak = isnan(v) || v > peak ? v : peak;
      p -= s->rate * s->reach * to.by;
    }
  }
  put(&s->new_p, index, p);
  put(&s->new_m, index, m);
  put(&s->new_v, index, v);
  put(&s->new_peak, index, peak);
  put(&s->copy, index, p);
}

/* How much longer a tensor is than its move, at most `limit`; 1 if one of them is 0. */
static long double reach_of(const step *s)
{
  const qn_lamb_rule *a = s->attr;
  long double params = 0, moves = 0;
  for (int64_t i = 0; i < s->p.elements; i++) {
    int64_t index[QN_MAX_RANK];
    cpu_place(i, s->p.rank, s->p.dim, index);
    const long double p = cpu_get(&s->p, offset(&s->p, index)), g = (long double)cpu_get(&s->g, offset(&s->g, index)) / s->scale;
    const long double by = adam_moments(s, g, cpu_get(&s->m, offset(&s->m, index)), cpu_get(&s->v, offset(&s->v, index)), 0, p).by;
    params += p * p;
    moves += by * by;
  }
  if (params == 0 || moves == 0) return 1;
  const long double reach = sqrtl(params / moves);
  return reach > a->limit ? a->limit : reach;
}

static qn_status take_step(const qn_prepared *prepared, const qn_launch *launch)
{
  const cpu_kept *kept = prepared->state;
  const qn_step_roles r = qn_step_roles_of(kept->op);
  const cpu_tensor before = part(prepared, launch, r.step, 0), after = part(prepared, launch, r.new_step, 0);
  const int64_t steps = qn_load_i64(before.p, before.dtype), t = qn_count_on(steps);
  const qn_adam_rule *adam = kept->attr;
  step s = { .op = kept->op, .attr = kept->attr, .t = t, .rate = number(prepared, launch, r.rate, 0),
             .scale = number(prepared, launch, r.scale, 1), .found = number(prepared, launch, r.found, 0) != 0 };
  if (s.op == QN_OP_ADAM || s.op == QN_OP_ADAMW || s.op == QN_OP_AMSGRAD || s.op == QN_OP_LAMB) {
    s.unbias1 = 1 - powl(adam->beta1, t);
    s.unbias2 = 1 - powl(adam->beta2, t);
  }
  for (int32_t i = 0; i < cpu_count(prepared, (uint32_t)r.params); i++) {
    s.p = part(prepared, launch, r.params, i), s.g = part(prepared, launch, r.grads, i);
    s.m = part(prepared, launch, r.m, i), s.v = part(prepared, launch, r.v, i);
    s.new_p = part(prepared, launch, r.new_params, i), s.copy = part(prepared, launch, r.copy, i);
    s.new_m = part(prepared, launch, r.new_m, i), s.new_v = part(prepared, launch, r.new_v, i);
    s.peak = part(prepared, launch, r.peak, i), s.new_peak = part(prepared, launch, r.new_peak, i);
    s.reach = s.op == QN_OP_LAMB && !s.found ? reach_of(&s) : 1;
#pragma omp parallel for num_threads(cpu_team(launch, s.p.elements, 40))
    for (int64_t k = 0; k < s.p.elements; k++) one_element(&s, k);
  }
  qn_store_i64(after.p, QN_I64, s.found ? steps : t);
  return QN_OK;
}

/* ---- lists of gradients --------------------------------------------------------------------------------------------- */

static qn_status global_norm(const qn_prepared *prepared, const qn_launch *launch)
{
  const cpu_kept *kept = prepared->state;
  const double scale = number(prepared, launch, QN_ROLE_GLOBAL_NORM_SCALE, 1), limit = ((const qn_norm_limit *)kept->attr)->limit;
  long double sum = 0;
  for (int32_t i = 0; i < cpu_count(prepared, QN_ROLE_GLOBAL_NORM_X); i++) {
    const cpu_tensor x = cpu_tensor_of(prepared, launch, QN_ROLE_GLOBAL_NORM_X, i);
    for (int64_t k = 0; k < x.elements; k++) {
      int64_t index[QN_MAX_RANK];
      cpu_place(k, x.rank, x.dim, index);
      const long double e = cpu_get(&x, offset(&x, index));
      sum += e * e;
    }
  }
  const cpu_tensor norm = cpu_tensor_of(prepared, launch, QN_ROLE_GLOBAL_NORM_NORM, 0);
  const cpu_tensor divisor = cpu_tensor_of(prepared, launch, QN_ROLE_GLOBAL_NORM_DIVISOR, 0);
  const long double length = sqrtl(sum) / scale, over = length / limit;
  cpu_put(&norm, 0, (double)length);
  if (divisor.p) cpu_put(&divisor, 0, (double)(scale * (over <= 1 ? 1 : over)));         /* keeps NaN */
  return QN_OK;
}

static qn_status amp_unscale(const qn_prepared *prepared, const qn_launch *launch)
{
  const double scale = number(prepared, launch, QN_ROLE_AMP_UNSCALE_SCALE, 1);
  int found = 0;
  for (int32_t i = 0; i < cpu_count(prepared, QN_ROLE_AMP_UNSCALE_GRADS); i++) {
    const cpu_tensor g = cpu_tensor_of(prepared, launch, QN_ROLE_AMP_UNSCALE_GRADS, i);
    const cpu_tensor to = cpu_tensor_of(prepared, launch, QN_ROLE_AMP_UNSCALE_NEW_GRADS, i);
    for (int64_t k = 0; k < g.elements; k++) {
      int64_t index[QN_MAX_RANK];
      cpu_place(k, g.rank, g.dim, index);
      const double x = cpu_get(&g, offset(&g, index));
      found |= !isfinite(x) || scale == 0 || isnan(scale);
      put(&to, index, (long double)x / scale);
    }
  }
  const cpu_tensor out = cpu_tensor_of(prepared, launch, QN_ROLE_AMP_UNSCALE_FOUND, 0);
  cpu_put(&out, 0, found);
  return QN_OK;
}

static qn_status amp_update(const qn_prepared *prepared, const qn_launch *launch)
{
  const qn_loss_scaling *a = ((const cpu_kept *)prepared->state)->attr;
  const cpu_tensor before = cpu_tensor_of(prepared, launch, QN_ROLE_AMP_UPDATE_GOOD, 0);
  const cpu_tensor scale_out = cpu_tensor_of(prepared, launch, QN_ROLE_AMP_UPDATE_NEW_SCALE, 0);
  const cpu_tensor good_out = cpu_tensor_of(prepared, launch, QN_ROLE_AMP_UPDATE_NEW_GOOD, 0);
  const double largest = scale_out.dtype == QN_F64 ? 1.7976931348623157e308 : 3.4028234663852886e38;
  double scale = number(prepared, launch, QN_ROLE_AMP_UPDATE_SCALE, 1);
  int64_t good = qn_count_on(qn_load_i64(before.p, before.dtype));
  if (number(prepared, launch, QN_ROLE_AMP_UPDATE_FOUND, 0) != 0) {
    scale = scale * a->backoff < QN_LEAST_LOSS_SCALE ? QN_LEAST_LOSS_SCALE : scale * a->backoff;
    good = 0;
  } else if (good >= a->interval) {
    if (scale * a->growth <= largest) scale *= a->growth;
    good = 0;
  }
  cpu_put(&scale_out, 0, scale);
  qn_store_i64(good_out.p, QN_I64, good);
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_SGD, take_step),
  CPU_DIRECT_ROW(QN_OP_ADAM, take_step),
  CPU_DIRECT_ROW(QN_OP_ADAMW, take_step),
  CPU_DIRECT_ROW(QN_OP_RMSPROP, take_step),
  CPU_DIRECT_ROW(QN_OP_ADAGRAD, take_step),
  CPU_DIRECT_ROW(QN_OP_LION, take_step),
  CPU_DIRECT_ROW(QN_OP_LAMB, take_step),
  CPU_DIRECT_ROW(QN_OP_AMSGRAD, take_step),
  CPU_DIRECT_ROW(QN_OP_GLOBAL_NORM, global_norm),
  CPU_DIRECT_ROW(QN_OP_AMP_UNSCALE, amp_unscale),
  CPU_DIRECT_ROW(QN_OP_AMP_UPDATE, amp_update),
};
const qn_engine_list cpu_training_direct = { row, sizeof row / sizeof *row };
