/* bound_training.c -- training steps. u: unit roundoff of the computing type; each factor, product and sum costs one.
 *
 *   g        e_g = e_grad / scale + 2u |grad / scale| + 2u |decay p|
 *   sgd      e_u = |momentum| e_velocity + e_g + 3u (|momentum velocity| + |g|)       p: rate (e_u + 3u (...)) + 2u (|p| + |move|)
 *   adam     e_m = b1 e + (1 - b1) e_g + 4u (|b1 m| + |(1 - b1) g|)    e_v = b2 e + (1 - b2)(2|g| e_g + e_g^2) + 5u (|b2 v| + (1 - b2) g^2)
 *            d = sqrt(v') + eps, v' = v / (1 - b2^t) within e_v' = e_v / (1 - b2^t) + (3u + 2^-52 / (1 - b2^t)) v', so d within the
 *            root's change by that and 2u d; move = rate m' / d within rate ((|m'| + e_m') / (d - e_d) - |m'| / d) + 5u |move|
 *   amsgrad  the larger v is within the larger error      rmsprop, adagrad   g / d, d = sqrt(v) + eps, as adam's move
 *   lamb     u as adamw's move; r = |p| / |u| within r ((c(n) + 4u) + sum |u| e_u / |u|^2 + sum |p| e_p / |p|^2); move = rate r u
 *   lion     2 rate where the sum whose sign it takes is within its error of 0, else as decay's share
 *   If what is kept, or the mean of squares, overflows the computing type, nothing is known of p.
 *   norm     (c(n) / 2 + 4u) norm: the root halves the relative error of the sum of squares */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

/* The i-th tensor of a role; NULL: absent. */
static struct qc_value *item(const struct qc_node *n, const char *role, int i)
{
  for (int k = 0; k < n->n_in; k++)
    if (!strcmp(n->op->role[n->in_role[k]].name, role) && i-- == 0)
      return n->in[k];
  for (int k = 0; k < n->n_out && i >= 0; k++)
    if (!strcmp(n->op->role[n->out_role[k]].name, role) && i-- == 0)
      return n->out[k];
  return NULL;
}

static double number(const struct qc_node *n, const char *role, double absent)
{
  const struct qc_value *v = qc_role(n, role);
  return v && v->y ? v->y[0] : absent;
}

static double settled(double e) { return isnan(e) ? INFINITY : e; }
static void set(struct qc_value *v, int64_t i, double e)
{
  if (v)
    v->e[i] = settled(e);
}

/* ---- a step -------------------------------------------------------------------------------------------------------- */

struct moved { double by, e; };         /* of p; its error besides p's own */

/* a / (sqrt(w) + eps) and its error, of a within ea and w within ew. Differences of roots and quotients themselves: for f64 the analytic
 * ones round to 0. */
static struct moved over_root(double a, double ea, double w, double ew, double eps, double u)
{
  double root = sqrt(w), low = fmax(w - ew, 0), d = root + eps;
  double up = ew < INFINITY ? ew / fmax(sqrt(w + ew) + root, DBL_MIN) : INFINITY, down = w > low ? (w - low) / (root + sqrt(low)) : 0;
  double ed = fmax(up, down) + 2 * u * d, by = a / d;
  return (struct moved){by, d > ed ? (ea + fabs(a) * (ed / d)) / (d - ed) + 3 * u * fabs(by) : INFINITY};
}

static struct moved by_rmsprop(const struct qc_node *n, int k, int64_t i, double u, double g, double eg, double rate)
{
  const qn_rmsprop_rule *a = n->attr;
  struct qc_value *v = item(n, "v", k), *velocity = item(n, "velocity", k);
  double v1 = a->alpha * v->y[i] + (1 - a->alpha) * g * g, tiny = qc_half_ulp(n->compute, 0);
  double ev = a->alpha * v->e[i] + (1 - a->alpha) * (2 * fabs(g) * eg + eg * eg) + 3 * tiny
      + 5 * u * (a->alpha * fabs(v->y[i]) + (1 - a->alpha) * g * g);
  set(item(n, "new_v", k), i, ev);
  struct moved m = over_root(g, eg, v1, ev, a->eps, u);
  if (velocity) {
    double kept = a->momentum * velocity->y[i];
    m.e += fabs(a->momentum) * velocity->e[i] + 3 * u * (fabs(kept) + fabs(m.by)) + tiny;
    m.by += kept;
    set(item(n, "new_velocity", k), i, m.e);
  }
  if (qc_overflows(n->compute, v1) || qc_overflows(n->compute, m.by))
    return (struct moved){rate * m.by, QC_ANY};
  return (struct moved){rate * m.by, fabs(rate) * (m.e + 2 * u * fabs(m.by))};
}

static struct moved by_adagrad(const struct qc_node *n, int k, int64_t i, double u, double g, double eg, double rate, double t)
{
  const qn_adagrad_rule *a = n->attr;
  struct qc_value *v = item(n, "v", k);
  double v1 = v->y[i] + g * g, ev = v->e[i] + 2 * fabs(g) * eg + eg * eg + 3 * u * (fabs(v->y[i]) + g * g) + 2 * qc_half_ulp(n->compute, 0);
  set(item(n, "new_v", k), i, ev);
  struct moved m = over_root(g, eg, v1, ev, a->eps, u);
  rate /= 1 + (t - 1) * a->slowing;
  if (qc_overflows(n->compute, v1))
    return (struct moved){rate * m.by, QC_ANY};
  return (struct moved){rate * m.by, fabs(rate) * (m.e + 6 * u * fabs(m.by))};
}

static struct moved by_lion(const struct qc_node *n, int k, int64_t i, double u, double g, double eg, double rate, double p)
{
  const qn_lion_rule *a = n->attr;
  struct qc_value *m = item(n, "m", k);
  double tiny = qc_half_ulp(n->compute, 0), c = a->beta1 * m->y[i] + (1 - a->beta1) * g;
  double ec = a->beta1 * m->e[i] + (1 - a->beta1) * eg + 4 * u * (a->beta1 * fabs(m->y[i]) + (1 - a->beta1) * fabs(g)) + 2 * tiny;
  double em = a->beta2 * m->e[i] + (1 - a->beta2) * eg + 4 * u * (a->beta2 * fabs(m->y[i]) + (1 - a->beta2) * fabs(g)) + 2 * tiny;
  set(item(n, "new_m", k), i, em);
  double sign = c > 0 ? 1 : c < 0 ? -1 : c, by = rate * (sign + a->decay * p);
  const bool sure = c == 0 ? m->y[i] == 0 && g == 0 && ec <= 2 * tiny : fabs(c) > ec;
  return (struct moved){by, (sure ? 0 : 2 * fabs(rate)) + 4 * u * fabs(rate) * (1 + fabs(a->decay * p))};
}

static struct moved by_sgd(const struct qc_node *n, struct qc_value *new_u, int64_t i, double u, double g, double eg, double velocity,
                           double e, double rate, double part)
{
  const qn_sgd_rule *a = n->attr;
  double momentum = fabs(a->momentum), next = a->momentum * velocity + part * g;
  double en = momentum * e + fabs(part) * eg + (part == 1 ? 3 : 4) * u * (momentum * fabs(velocity) + fabs(part * g)), by = next, eb = en;
  const bool over = qc_overflows(n->compute, momentum * fabs(velocity) + fabs(part * g));
  set(new_u, i, over ? QC_ANY : en);
  if (a->nesterov) {
    by = g + a->momentum * next;
    eb = eg + momentum * en + 3 * u * (fabs(g) + momentum * fabs(next));
  }
  if (over || qc_overflows(n->compute, by))
    return (struct moved){rate * by, QC_ANY};
  return (struct moved){rate * by, fabs(rate) * (eb + 2 * u * fabs(by))};
}

static struct moved by_adam(const struct qc_node *n, int k, int64_t i, double u, double g, double eg, double rate, double t, double p)
{
  const qn_adam_rule *a = n->attr;
  struct qc_value *m = item(n, "m", k), *v = item(n, "v", k);
  double m1 = a->beta1 * m->y[i] + (1 - a->beta1) * g, v1 = a->beta2 * v->y[i] + (1 - a->beta2) * g * g;
  double em = a->beta1 * m->e[i] + (1 - a->beta1) * eg + 4 * u * (a->beta1 * fabs(m->y[i]) + (1 - a->beta1) * fabs(g));
  double ev = a->beta2 * v->e[i] + (1 - a->beta2) * (2 * fabs(g) * eg + eg * eg) + 5 * u
      * (a->beta2 * fabs(v->y[i]) + (1 - a->beta2) * g * g);
  double tiny = qc_half_ulp(n->compute, 0);       /* for each product that underflows */
  em += 2 * tiny, ev += 3 * tiny;
  const bool over = qc_overflows(n->compute, a->beta1 * fabs(m->y[i]) + (1 - a->beta1) * fabs(g));
  set(item(n, "new_m", k), i, over ? QC_ANY : em);
  set(item(n, "new_v", k), i, ev);
  struct qc_value *peak = item(n, "peak", k);
  if (peak) {
    v1 = isnan(v1) || v1 > peak->y[i] ? v1 : peak->y[i];
    ev = fmax(ev, peak->e[i]);
    set(item(n, "new_peak", k), i, ev);
  }
  double c1 = 1 - pow(a->beta1, t), c2 = 1 - pow(a->beta2, t), power = 0x1p-52;        /* power: error of b^t, always computed in double */
  double w = v1 / c2, ew = ev / fabs(c2) + (3 * u + power / fabs(c2)) * fabs(w) + tiny;
  double mh = m1 / c1, emh = em / fabs(c1) + (2 * u + power / fabs(c1)) * fabs(mh) + tiny;
  struct moved moved = over_root(mh, emh, w, ew, a->eps, u);
  double by = moved.by, e = moved.e;
  if (n->op->kind == QN_OP_ADAMW || n->op->kind == QN_OP_LAMB) {
    by += a->decay * p;
    e += 3 * u * fabs(a->decay * p);
  }
  if (over || qc_overflows(n->compute, v1) || qc_overflows(n->compute, w))
    return (struct moved){rate * by, QC_ANY};
  return (struct moved){rate * by, w < ew && w > -ew && w != 0 && w - ew < 0 && v1 < 0 ? QC_ANY : fabs(rate) * (e + 3 * u * fabs(by))};
}

/* |p| / |u| of tensor k and its error; u: moves with a rate of 1. */
static double reach_of(const struct qc_node *n, const struct qc_numerics *s, const struct qc_value *p, const struct moved *move, double *e)
{
  double params = 0, moves = 0, ep = 0, em = 0, limit = ((const qn_lamb_rule *)n->attr)->limit, u = qc_unit(n->compute);
  for (int64_t i = 0; i < p->n; i++) {
    params += p->y[i] * p->y[i];
    moves += move[i].by * move[i].by;
    ep += (2 * fabs(p->y[i]) + p->e[i]) * p->e[i];
    em += move[i].e == QC_ANY ? INFINITY : (2 * fabs(move[i].by) + move[i].e) * move[i].e;
  }
  *e = 0;
  if (params == 0 || moves == 0) {
    *e = (params > 0 || ep > 0) && (moves > 0 || em > 0) ? INFINITY : 0;        /* what is 0 for certain decides */
    return 1;
  }
  double reach = sqrt(params / moves), relative = qc_sum_error(s, n->compute, (double)p->n) + 4 * u + ep / params + em / moves;
  const bool over = qc_overflows(n->compute, params) || qc_overflows(n->compute, moves);
  *e = em < moves / 2 && ep < params / 2 && !over ? reach * relative : INFINITY;
  return reach - *e > limit ? *e = 0, limit : fmin(reach, limit);
}

static void step(struct qc_node *n, const struct qc_numerics *numerics)
{
  double u = qc_unit(n->compute), rate = number(n, "rate", 0), scale = number(n, "scale", 1), decay;
  if (number(n, "found", 0) != 0)
    return;                               /* copies */
  uint32_t kind = n->op->kind;
  const qn_sgd_rule *sgd = n->attr;
  decay = kind == QN_OP_SGD ? sgd->decay : kind == QN_OP_RMSPROP ? ((const qn_rmsprop_rule *)n->attr)->decay
        : kind == QN_OP_ADAGRAD ? ((const qn_adagrad_rule *)n->attr)->decay
        : kind == QN_OP_ADAM || kind == QN_OP_AMSGRAD ? ((const qn_adam_rule *)n->attr)->decay : 0;
  struct qc_value *count = qc_role(n, "step"), *p;
  double t = (count->y ? nearbyint(count->y[0]) : qc_decode(QN_I64, count->twin)) + 1;
  for (int k = 0; (p = item(n, "params", k)); k++) {
    struct qc_value *grad = item(n, "grads", k), *velocity = item(n, "velocity", k), *new_p = item(n, "new_params", k);
    struct qc_value *copy = item(n, "copy", k);
    struct moved *move = kind == QN_OP_LAMB ? qc_alloc((size_t)p->n * sizeof *move + 8) : NULL;
    double e_reach = 0, reach = 1;
    for (int64_t i = 0; move && i < p->n; i++) {
      double g = grad->y[i] / scale, eg = grad->e[i] / fabs(scale) + 2 * u * fabs(g) + qc_half_ulp(n->compute, 0);
      move[i] = by_adam(n, k, i, u, g, eg, 1, t, p->y[i]);
    }
    if (move)
      reach = reach_of(n, numerics, p, move, &e_reach);
    for (int64_t i = 0; i < p->n; i++) {
      double g = grad->y[i] / scale + decay * p->y[i];
      double eg = grad->e[i] / fabs(scale) + 2 * u * fabs(grad->y[i] / scale) + fabs(decay) * p->e[i] + 2 * u * fabs(decay * p->y[i]);
      eg += qc_half_ulp(n->compute, 0);
      struct moved m;
      switch (kind) {
      case QN_OP_SGD:
        m = by_sgd(n, item(n, "new_velocity", k), i, u, g, eg, velocity ? velocity->y[i] : 0, velocity ? velocity->e[i] : 0, rate,
                   t > 1 ? 1 - sgd->dampening : 1);
        break;
      case QN_OP_RMSPROP: m = by_rmsprop(n, k, i, u, g, eg, rate); break;
      case QN_OP_ADAGRAD: m = by_adagrad(n, k, i, u, g, eg, rate, t); break;
      case QN_OP_LION:    m = by_lion(n, k, i, u, g, eg, rate, p->y[i]); break;
      case QN_OP_LAMB:
        m = move[i];
        m.e = m.e == QC_ANY || e_reach == INFINITY
            ? QC_ANY : fabs(rate) * (reach * m.e + e_reach * (fabs(m.by) + m.e) + 3 * u * reach * fabs(m.by));
        m.by *= rate * reach;
        break;
      default:            m = by_adam(n, k, i, u, g, eg, rate, t, p->y[i]);
      }
      double e = m.e == QC_ANY ? QC_ANY : p->e[i] + m.e + 2 * u * (fabs(p->y[i]) + fabs(m.by)) + qc_half_ulp(n->compute, 0);
      set(new_p, i, e);
      set(copy, i, e);
    }
    free(move);
  }
}

/* ---- lists of gradients -------------------------------------------------------------------------------------------- */

static void norm(struct qc_node *n, const struct qc_numerics *k)
{
  double u = qc_unit(n->compute), elements = 0, sum = 0, inexact = 0;
  struct qc_value *x, *length = qc_role(n, "norm"), *divisor = qc_role(n, "divisor");
  for (int i = 0; (x = item(n, "x", i)); i++) {
    elements += (double)x->n;
    for (int64_t j = 0; j < x->n; j++) {
      sum += x->y[j] * x->y[j];
      inexact += 2 * fabs(x->y[j]) * x->e[j] + x->e[j] * x->e[j];
    }
  }
  double relative = qc_sum_error(k, n->compute, elements) / 2 + 4 * u + (sum > 0 ? inexact / (2 * sum) : 0);
  set(length, 0, relative * fabs(length->y[0]));
  if (divisor)
    set(divisor, 0, (relative + 3 * u) * fabs(divisor->y[0]));
}

static void unscale(struct qc_node *n)
{
  double u = qc_unit(n->compute), scale = number(n, "scale", 1);
  struct qc_value *x, *y;
  for (int i = 0; (x = item(n, "grads", i)) && (y = item(n, "new_grads", i)); i++)
    for (int64_t j = 0; j < x->n; j++)
      set(y, j, x->e[j] / fabs(scale) + 2 * u * fabs(y->y[j]) + qc_half_ulp(n->compute, 0));
}

void qc_bound_training(struct qc_node *n, const struct qc_numerics *k)
{
  switch (n->op->kind) {
  case QN_OP_GLOBAL_NORM: norm(n, k); break;
  case QN_OP_AMP_UNSCALE: unscale(n); break;
  case QN_OP_AMP_UPDATE:
    set(n->out[0], 0, 2 * qc_unit(n->compute) * fabs(n->out[0]->y[0]));
    break;
  default: step(n, k);
  }
}
