/* training_direct.cu -- sgd, adam, adamw, amsgrad, rmsprop, adagrad, lion, lamb, global_norm, amp_unscale, amp_update in double, any
 * strides and dtypes: a launch for each tensor (lamb: first one of a block for its norms); reductions over a list by one block, tensor
 * after tensor. */
#include "kit/direct.cuh"
#include "engines.h"
#include "kit/sums.cuh"

enum { THREADS = 256 };

__device__ static double value_of(const scalar &s) { return s.p ? element_load<double>(s.p, 0, s.dtype) : s.value; }

/* ---- sgd, adam, adamw --------------------------------------------------------------------------------- */

struct step {
  uint32_t op;
  tensor   p, g, m, v, peak, new_p, new_m, new_v, new_peak, copy;
  scalar   before, rate, scale, found;
  int64_t  n;
  double   b1, b2, eps, decay;            /* sgd, rmsprop: b1 is the momentum, rmsprop: b2 alpha */
  double   less;                          /* dampening, or slowing; lamb: limit */
  int32_t  nesterov;
  double  *reach;                         /* lamb: |p| / |u| of the tensor */
};

__device__ static double at(const tensor &t, const tensor &like, int64_t i) { return t.p ? t.load<double>(place(t, like, i)) : 0; }
__device__ static void put(const tensor &t, const tensor &like, int64_t i, double x) { if (t.p) t.store(place(t, like, i), x); }

/* adamw's and lamb's move without the rate. */
__device__ static double move_of(const step &s, double m, double v, double p, double t)
{
  return m / (1 - pow(s.b1, t)) / (sqrt(v / (1 - pow(s.b2, t))) + s.eps) + s.decay * p;
}

/* How much longer a tensor is than its move, at most the limit; 1 if one of them is 0. */
__global__ static void __launch_bounds__(THREADS) training_reach_direct(const __grid_constant__ step s)
{
  double scale = value_of(s.scale), t = rint(value_of(s.before)) + 1, params = 0, moves = 0;
  for (int64_t i = threadIdx.x; i < s.n; i += THREADS) {
    double p = at(s.p, s.p, i), g = at(s.g, s.p, i) / scale;
    double by = move_of(s, s.b1 * at(s.m, s.p, i) + (1 - s.b1) * g, s.b2 * at(s.v, s.p, i) + (1 - s.b2) * g * g, p, t);
    params += p * p;
    moves += by * by;
  }
  params = block_sum<THREADS>(params);
  moves = block_sum<THREADS>(moves);
  if (threadIdx.x) return;
  double reach = params == 0 || moves == 0 ? 1 : sqrt(params) / sqrt(moves);
  *s.reach = reach > s.less && params != 0 && moves != 0 ? s.less : reach;
}

__global__ static void __launch_bounds__(THREADS) training_step_direct(const __grid_constant__ step s)
{
  double rate = value_of(s.rate), scale = value_of(s.scale), t = rint(value_of(s.before)) + 1;
  bool found = value_of(s.found) != 0;
  double unbias1 = 1 - pow(s.b1, t), unbias2 = 1 - pow(s.b2, t);
  for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < s.n; i += gridDim.x * (int64_t)THREADS) {
    double p = at(s.p, s.p, i), m = at(s.m, s.p, i), v = at(s.v, s.p, i), peak = at(s.peak, s.p, i);
    if (!found) {
      double g = at(s.g, s.p, i) / scale;
      if (s.op != QN_OP_ADAMW && s.op != QN_OP_LION && s.op != QN_OP_LAMB) g += s.decay * p;
      if (s.op == QN_OP_SGD) {
        m = s.b1 * m + (t > 1 ? 1 - s.less : 1) * g;
        p -= rate * (s.nesterov ? g + s.b1 * m : m);
      } else if (s.op == QN_OP_RMSPROP) {
        v = s.b2 * v + (1 - s.b2) * g * g;
        m = s.b1 * m + g / (sqrt(v) + s.eps);
        p -= rate * m;
      } else if (s.op == QN_OP_ADAGRAD) {
        v += g * g;
        p -= rate / (1 + (t - 1) * s.less) * g / (sqrt(v) + s.eps);
      } else if (s.op == QN_OP_LION) {
        double c = s.b1 * m + (1 - s.b1) * g;
        p -= rate * ((c > 0 ? 1 : c < 0 ? -1 : c) + s.decay * p);
        m = s.b2 * m + (1 - s.b2) * g;
      } else if (s.op == QN_OP_LAMB) {
        m = s.b1 * m + (1 - s.b1) * g;
        v = s.b2 * v + (1 - s.b2) * g * g;
        p -= rate * *s.reach * move_of(s, m, v, p, t);
      } else {
        m = s.b1 * m + (1 - s.b1) * g;
        v = s.b2 * v + (1 - s.b2) * g * g;
        peak = v != v || v > peak ? v : peak;
        double below = s.op == QN_OP_AMSGRAD ? peak : v;
        p -= rate * (m / unbias1 / (sqrt(below / unbias2) + s.eps) + (s.op == QN_OP_ADAMW ? s.decay * p : 0));
      }
    }
    put(s.new_p, s.p, i, p);
    put(s.new_m, s.p, i, m);
    put(s.new_v, s.p, i, v);
    put(s.new_peak, s.p, i, peak);
    put(s.copy, s.p, i, p);
  }
}

__global__ static void training_count_direct(scalar before, scalar found, int64_t *after)
{
  int64_t step = before.p ? *(const int64_t *)before.p : (int64_t)before.value;
  *after = value_of(found) != 0 ? step : qn_count_on(step);
}

static tensor part(const kept *k, const qn_launch *launch, int role, int i)
{
  return role < 0 ? tensor{} : direct_tensor(k, launch, (uint32_t)role, i);
}
static scalar number(const kept *k, const qn_launch *launch, int role, double absent)
{
  return role < 0 ? scalar{ nullptr, QN_F64, absent } : direct_scalar(k, launch, (uint32_t)role, absent);
}

static qn_status one_double_prepare(const qn_request *r, qn_prepared *p)
{
  p->workspace = sizeof(double);
  return direct_prepare(r, p);
}

static qn_status take_step(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  const qn_step_roles r = qn_step_roles_of(k->op);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  step s = {};
  s.op = k->op;
  s.before = number(k, launch, r.step, 0), s.rate = number(k, launch, r.rate, 0);
  s.scale = number(k, launch, r.scale, 1), s.found = number(k, launch, r.found, 0);
  if (s.op == QN_OP_SGD) {
    const qn_sgd_rule *a = (const qn_sgd_rule *)k->attr;
    s.b1 = a->momentum, s.decay = a->decay, s.nesterov = (int32_t)a->nesterov, s.less = a->dampening;
  } else if (s.op == QN_OP_RMSPROP) {
    const qn_rmsprop_rule *a = (const qn_rmsprop_rule *)k->attr;
    s.b1 = a->momentum, s.b2 = a->alpha, s.eps = a->eps, s.decay = a->decay;
  } else if (s.op == QN_OP_ADAGRAD) {
    const qn_adagrad_rule *a = (const qn_adagrad_rule *)k->attr;
    s.less = a->slowing, s.eps = a->eps, s.decay = a->decay;
  } else if (s.op == QN_OP_LION) {
    const qn_lion_rule *a = (const qn_lion_rule *)k->attr;
    s.b1 = a->beta1, s.b2 = a->beta2, s.decay = a->decay;
  } else if (s.op == QN_OP_LAMB) {
    const qn_lamb_rule *a = (const qn_lamb_rule *)k->attr;
    s.b1 = a->beta1, s.b2 = a->beta2, s.eps = a->eps, s.decay = a->decay, s.less = a->limit, s.reach = (double *)launch->workspace;
  } else {
    const qn_adam_rule *a = (const qn_adam_rule *)k->attr;
    s.b1 = a->beta1, s.b2 = a->beta2, s.eps = a->eps, s.decay = a->decay;
  }
  for (int i = 0; i < direct_count(k, (uint32_t)r.params); i++) {
    s.p = part(k, launch, r.params, i), s.g = part(k, launch, r.grads, i), s.m = part(k, launch, r.m, i), s.v = part(k, launch, r.v, i);
    s.new_p = part(k, launch, r.new_params, i), s.new_m = part(k, launch, r.new_m, i), s.new_v = part(k, launch, r.new_v, i);
    s.peak = part(k, launch, r.peak, i), s.new_peak = part(k, launch, r.new_peak, i);
    s.copy = part(k, launch, r.copy, i);
    s.n = direct_elements(s.p);
    if (s.n && s.reach) training_reach_direct<<<1, THREADS, 0, stream>>>(s);
    if (s.n) training_step_direct<<<direct_blocks(s.n, THREADS), THREADS, 0, stream>>>(s);
  }
  training_count_direct<<<1, 1, 0, stream>>>(s.before, s.found, (int64_t *)part(k, launch, r.new_step, 0).p);
  return direct_launched("training_step_direct");
}

/* ---- reductions over a list ------------------------------------------------------------------------------------------------ */

/* sum: running total; reset by the first tensor. */
__global__ static void __launch_bounds__(THREADS)
    training_squares_direct(const __grid_constant__ tensor x, int64_t n, double *sum, int first)
{
  double s = 0;
  for (int64_t i = threadIdx.x; i < n; i += THREADS) {
    double v = at(x, x, i);
    s += v * v;
  }
  s = block_sum<THREADS>(s);
  if (threadIdx.x == 0) *sum = (first ? 0 : *sum) + s;
}

__global__ static void training_norm_direct(const double *sum, scalar by, double limit, const __grid_constant__ tensor norm,
                                            const __grid_constant__ tensor divisor)
{
  double scale = value_of(by), length = sqrt(*sum) / scale, over = length / limit;
  norm.store(0, length);
  if (divisor.p) divisor.store(0, scale * (over <= 1 ? 1 : over));         /* keeps NaN */
}


static qn_status global_norm(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  double *sum = (double *)launch->workspace;
  for (int i = 0; i < direct_count(k, QN_ROLE_GLOBAL_NORM_X); i++) {
    tensor x = direct_tensor(k, launch, QN_ROLE_GLOBAL_NORM_X, i);
    training_squares_direct<<<1, THREADS, 0, stream>>>(x, direct_elements(x), sum, i == 0);
  }
  training_norm_direct<<<1, 1, 0, stream>>>(sum, direct_scalar(k, launch, QN_ROLE_GLOBAL_NORM_SCALE, 1),
                                            ((const qn_norm_limit *)k->attr)->limit, direct_tensor(k, launch, QN_ROLE_GLOBAL_NORM_NORM, 0),
                                            direct_tensor(k, launch, QN_ROLE_GLOBAL_NORM_DIVISOR, 0));
  return direct_launched("training_norm_direct");
}

__global__ static void __launch_bounds__(THREADS)
    training_unscale_direct(const __grid_constant__ tensor g, const __grid_constant__ tensor to, int64_t n, scalar by,
                            const __grid_constant__ tensor found, int first)
{
  const double scale = value_of(by);
  double any = n > 0 && (scale == 0 || isnan(scale));
  for (int64_t i = threadIdx.x; i < n; i += THREADS) {
    double x = at(g, g, i);
    any += !isfinite(x);
    put(to, g, i, x / scale);
  }
  any = block_sum<THREADS>(any);
  if (threadIdx.x == 0) found.store(0, any > 0 || (!first && found.load<double>(0) != 0) ? 1.0 : 0.0);
}

static qn_status amp_unscale(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  for (int i = 0; i < direct_count(k, QN_ROLE_AMP_UNSCALE_GRADS); i++) {
    tensor g = direct_tensor(k, launch, QN_ROLE_AMP_UNSCALE_GRADS, i);
    training_unscale_direct<<<1, THREADS, 0, (cudaStream_t)launch->stream>>>(g, direct_tensor(k, launch, QN_ROLE_AMP_UNSCALE_NEW_GRADS, i),
                                                                             direct_elements(g),
                                                                             direct_scalar(k, launch, QN_ROLE_AMP_UNSCALE_SCALE, 1),
                                                                             direct_tensor(k, launch, QN_ROLE_AMP_UNSCALE_FOUND, 0),
                                                                             i == 0);
  }
  return direct_launched("training_unscale_direct");
}

/* ---- loss scales -------------------------------------------------------------------------------------------- */

struct scaling { tensor scale, good, found, new_scale, new_good; double growth, backoff, least, largest; int64_t interval; };

__global__ static void training_scale_direct(const __grid_constant__ scaling a)
{
  double scale = a.scale.load<double>(0);
  int64_t good = qn_count_on(a.good.load<int64_t>(0));
  if (a.found.load<double>(0) != 0) {
    scale = scale * a.backoff < a.least ? a.least : scale * a.backoff;
    good = 0;
  } else if (good >= a.interval) {
    if (scale * a.growth <= a.largest) scale *= a.growth;
    good = 0;
  }
  a.new_scale.store(0, scale);
  a.new_good.store(0, good);
}

static qn_status amp_update(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  const qn_loss_scaling *attr = (const qn_loss_scaling *)k->attr;
  scaling a = { direct_tensor(k, launch, QN_ROLE_AMP_UPDATE_SCALE, 0), direct_tensor(k, launch, QN_ROLE_AMP_UPDATE_GOOD, 0),
                direct_tensor(k, launch, QN_ROLE_AMP_UPDATE_FOUND, 0), direct_tensor(k, launch, QN_ROLE_AMP_UPDATE_NEW_SCALE, 0),
                direct_tensor(k, launch, QN_ROLE_AMP_UPDATE_NEW_GOOD, 0), attr->growth, attr->backoff, QN_LEAST_LOSS_SCALE, 0,
                attr->interval };
  a.largest = a.new_scale.dtype == QN_F64 ? 1.7976931348623157e308 : 3.4028234663852886e38;
  training_scale_direct<<<1, 1, 0, (cudaStream_t)launch->stream>>>(a);
  return direct_launched("training_scale_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_SGD, take_step),
  DIRECT_ROW(QN_OP_ADAM, take_step),
  DIRECT_ROW(QN_OP_ADAMW, take_step),
  DIRECT_ROW(QN_OP_RMSPROP, take_step),
  DIRECT_ROW(QN_OP_ADAGRAD, take_step),
  DIRECT_ROW(QN_OP_LION, take_step),
  DIRECT_ROW(QN_OP_AMSGRAD, take_step),
  { "direct", QN_OP_LAMB, QN_CLASS_GENERIC, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    one_double_prepare, nullptr, take_step, cuda_release },
  { "direct", QN_OP_GLOBAL_NORM, QN_CLASS_GENERIC, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    one_double_prepare, nullptr, global_norm, cuda_release },
  DIRECT_ROW(QN_OP_AMP_UNSCALE, amp_unscale),
  DIRECT_ROW(QN_OP_AMP_UPDATE, amp_update),
};
CUDA_ENGINES(training_direct) = { row, sizeof row / sizeof *row };
