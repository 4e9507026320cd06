/* mutants_training.c -- bugs of optimiser steps and loss scales: what a step counts, divides by, skips and leaves behind. */
#include <math.h>
#include "mutant.h"

/* The i-th tensor of a role and its memory, as the caller gave it. */
static const qn_value *item(const struct mut_call *c, int8_t role, int32_t i, void **p)
{
  *p = NULL;
  if (role < 0 || c->k->first[role] + i >= c->k->first[role + 1])
    return NULL;
  *p = c->launch->ptr[c->k->first[role] + i];
  return &c->k->value[c->k->first[role] + i];
}
static qn_step_roles roles(const struct mut_call *c) { return qn_step_roles_of(c->k->node.op); }
static bool has(const struct mut_kept *k, int8_t role) { return role >= 0 && k->first[role] < k->first[role + 1]; }

static void set_scalar(struct mut_call *c, int8_t role, double x)
{
  const qn_value *v = mut_value(c->k, (uint32_t)role);
  qn_store_f64(mut_copy(c, (uint32_t)role), v->dtype, x);
}
static double scalar(const struct mut_call *c, int8_t role)
{
  return mut_get(mut_value(c->k, (uint32_t)role), mut_pointer(c, (uint32_t)role), 0);
}

bool tn_nesterov_ignored(struct mut_kept *k)
{
  qn_sgd_rule *a = (qn_sgd_rule *)(void *)k->attr;
  bool shows = a->nesterov;
  a->nesterov = 0;
  return shows;
}

bool tn_needs_found(struct mut_kept *k) { return has(k, qn_step_roles_of(k->node.op).found); }
bool tn_needs_scale(struct mut_kept *k) { return has(k, qn_step_roles_of(k->node.op).scale); }
void tn_found_ignored(struct mut_call *c) { set_scalar(c, roles(c).found, 0); }
void tn_scale_multiplied(struct mut_call *c) { set_scalar(c, roles(c).scale, 1 / scalar(c, roles(c).scale)); }

void tn_skipped_step_counts(struct mut_call *c)
{
  void *p;
  const qn_value *step = item(c, roles(c).new_step, 0, &p);
  if (scalar(c, roles(c).found) != 0)
    mut_put(step, p, 0, mut_get(step, p, 0) + 1);
}

/* The bias correction uses the number of steps before this one. */
void tn_step_from_zero(struct mut_call *c)
{
  if (scalar(c, roles(c).step) > 0)
    set_scalar(c, roles(c).step, scalar(c, roles(c).step) - 1);
}

/* sqrt(v + eps): near sqrt v + sqrt eps where v is small */
bool tn_eps_under_the_root(struct mut_kept *k)
{
  qn_adam_rule *a = (qn_adam_rule *)(void *)k->attr;
  a->eps = sqrt(a->eps);
  return true;
}

/* Outputs must have memory of their own, or the bug could not show. */
bool tn_apart(struct mut_kept *k)
{
  qn_step_roles r = qn_step_roles_of(k->node.op);
  return k->value[k->first[r.new_params]].over < 0;
}

void tn_keep_params(struct mut_call *c)
{
  int32_t last = c->k->first[roles(c).new_params + 1] - 1;
  size_t bytes = (size_t)qn_extent_bytes(&c->k->value[last]);
  c->scratch[c->n_scratch] = malloc(bytes + 16);
  memcpy(c->scratch[c->n_scratch++], c->launch->ptr[last], bytes);
}

void tn_last_tensor_left(struct mut_call *c)
{
  void *p;
  qn_step_roles r = roles(c);
  const qn_value *v = item(c, r.new_params, c->k->first[r.params + 1] - c->k->first[r.params] - 1, &p);
  for (int64_t i = 0; i < qn_elements(v); i++)
    mut_put(v, p, i, mut_get(v, c->scratch[0], i));
}

void tn_copy_before_the_step(struct mut_call *c)
{
  void *p, *q;
  qn_step_roles r = roles(c);
  const qn_value *copy, *params;
  for (int32_t k = 0; (copy = item(c, r.copy, k, &p)) && (params = item(c, r.params, k, &q)); k++)
    for (int64_t i = 0; i < qn_elements(copy); i++)
      mut_put(copy, p, i, mut_get(params, q, i));
}

/* decay params is subtracted without rate: the decay is scaled so that this shows at rate 0.01. */
bool tn_decay_unrated(struct mut_kept *k)
{
  qn_adam_rule *a = (qn_adam_rule *)(void *)k->attr;
  bool shows = a->decay != 0;
  a->decay *= 100;
  return shows;
}

void tn_first_tensor_only(struct mut_call *c)
{
  for (int32_t i = c->k->first[QN_ROLE_GLOBAL_NORM_X] + 1; i < c->k->first[QN_ROLE_GLOBAL_NORM_X + 1]; i++) {
    c->scratch[c->n_scratch] = calloc(1, (size_t)qn_extent_bytes(&c->k->value[i]) + 16);
    c->ptr[i] = c->scratch[c->n_scratch++];
  }
}

/* Short gradients are scaled up. */
void tn_divisor_below_one(struct mut_call *c)
{
  void *p, *q, *s;
  const qn_value *divisor = item(c, QN_ROLE_GLOBAL_NORM_DIVISOR, 0, &p), *norm = item(c, QN_ROLE_GLOBAL_NORM_NORM, 0, &q);
  const qn_value *scale = item(c, QN_ROLE_GLOBAL_NORM_SCALE, 0, &s);
  double limit = ((const qn_norm_limit *)(const void *)c->k->attr)->limit;
  if (divisor && isfinite(limit))
    mut_put(divisor, p, 0, (scale ? mut_get(scale, s, 0) : 1) * mut_get(norm, q, 0) / limit);
}

/* found = max |x| == Inf, and a comparison drops NaN. */
void tn_nan_not_found(struct mut_call *c)
{
  void *p, *q;
  const qn_value *found = item(c, QN_ROLE_AMP_UNSCALE_FOUND, 0, &p), *x;
  double any = 0;
  for (int32_t k = 0; (x = item(c, QN_ROLE_AMP_UNSCALE_GRADS, k, &q)); k++)
    for (int64_t i = 0; i < qn_elements(x); i++)
      any = isinf(mut_get(x, q, i)) ? 1 : any;
  mut_put(found, p, 0, any);
}

void tn_good_kept_on_overflow(struct mut_call *c)
{
  void *p;
  const qn_value *good = item(c, QN_ROLE_AMP_UPDATE_NEW_GOOD, 0, &p);
  if (scalar(c, QN_ROLE_AMP_UPDATE_FOUND) != 0)
    mut_put(good, p, 0, scalar(c, QN_ROLE_AMP_UPDATE_GOOD) + 1);
}

bool tn_dampening_ignored(struct mut_kept *k)
{
  qn_sgd_rule *a = (qn_sgd_rule *)(void *)k->attr;
  bool shows = a->dampening != 0;
  a->dampening = 0;
  return shows;
}

bool tn_same_rate(struct mut_kept *k)
{
  qn_adagrad_rule *a = (qn_adagrad_rule *)(void *)k->attr;
  bool shows = a->slowing != 0;
  a->slowing = 0;
  return shows;
}

bool tn_lion_without_decay(struct mut_kept *k)
{
  qn_lion_rule *a = (qn_lion_rule *)(void *)k->attr;
  bool shows = a->decay != 0;
  a->decay = 0;
  return shows;
}

bool tn_limit_ignored(struct mut_kept *k)
{
  qn_lamb_rule *a = (qn_lamb_rule *)(void *)k->attr;
  bool shows = isfinite(a->limit);
  a->limit = INFINITY;
  return shows;
}

bool tn_mean_of_squares_slow(struct mut_kept *k)
{
  qn_rmsprop_rule *a = (qn_rmsprop_rule *)(void *)k->attr;
  bool shows = a->alpha != 0.99;
  a->alpha = 0.99;
  return shows;
}

bool tn_peak_without_decay(struct mut_kept *k)
{
  qn_adam_rule *a = (qn_adam_rule *)(void *)k->attr;
  bool shows = a->decay != 0;
  a->decay = 0;
  return shows;
}
