/* bound_pointwise.c -- elementwise functions: e = k half-ulps of S in the computing type.
 *
 * k counts units u of that type (2 u are one ulp), including the computation's last rounding. S is |y| if the function can be
 * computed to a relative error, and the sum of the magnitudes of its terms if these cancel. k = 0: exact, so the
 * result is y rounded once, bit for bit. The effect of inexact inputs (in graphs) is found by moving them by their e. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

/* S, from the operands in order and the reference y; a0, a1: the op's attributes. */
typedef double condition_fn(const double *in, double y, double a0, double a1);

static double phi(double x) { return exp(-x * x / 2) / 2.5066282746310002; }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double s_result(const double *in, double y, double a0, double a1)
{
  (void)in, (void)a0, (void)a1;
  return fabs(y);
}

/* relative to the result, plus the rounding of beta x in the exponent */
static double s_scaled(const double *in, double y, double beta, double a1)
{
  (void)a1;
  return fabs(y) * (beta == 1 ? 1 : 1 + fabs(beta * in[0]) / 8);
}

static double s_softplus_backward(const double *in, double y, double beta, double a1)
{
  (void)a1;
  return fabs(y) * (beta == 1 ? 1 : 1 + fabs(beta * in[1]) / 8);
}

static double s_half_x(const double *in, double y, double a0, double a1)        /* gelu: x (1 + |erf|) / 2 */
{
  (void)y, (void)a0, (void)a1;
  return fabs(in[0]);
}

static double s_gelu_backward(const double *in, double y, double a0, double a1)
{
  double x = fabs(in[1]);
  (void)y, (void)a0, (void)a1;
  return fabs(in[0]) * (1 + x * phi(x) * (1 + x * x / 8));
}

/* 1 - t^2 cancels until tanh rounds to 1, after which it is 0: at 22 it is below 4 e^-44. */
static double s_gelu_tanh_backward(const double *in, double y, double a0, double a1)
{
  double x = in[1], at = 0.7978845608028654 * (x + 0.044715 * x * x * x), t = tanh(at);
  (void)y, (void)a0, (void)a1;
  if (fabs(at) > 22)
    return fabs(in[0]);
  return fabs(in[0]) * (1 + fabs(x) * (1 + t * t) / 2 * 0.7978845608028654 * (1 + 0.134145 * x * x));
}

static double s_silu_backward(const double *in, double y, double beta, double a1)
{
  double x = beta * in[1], s = sigmoid(x);
  (void)y, (void)a1;
  return fabs(in[0]) * s * (1 + fabs(x) * (1 + s)) * (beta == 1 ? 1 : 1 + fabs(x) / 8);
}

static double s_sigmoid_backward(const double *in, double y, double a0, double a1)
{
  double s = sigmoid(in[1]);
  (void)y, (void)a0, (void)a1;
  return fabs(in[0]) * s * (1 + s);
}

static double s_tanh_backward(const double *in, double y, double a0, double a1)
{
  double t = tanh(in[1]);
  (void)y, (void)a0, (void)a1;
  return fabs(in[0]) * (1 + t * t);
}

static double s_hardswish(const double *in, double y, double a0, double a1)
{
  (void)a0, (void)a1;
  return fabs(y) + 0 * in[0];
}

static double s_hardswish_backward(const double *in, double y, double a0, double a1)
{
  double x = in[1];
  (void)a0, (void)a1;
  return fabs(x) >= 3 ? fabs(y) : fabs(in[0]) * (2 * fabs(x) + 3) / 6;
}

static double s_mish_backward(const double *in, double y, double a0, double a1)
{
  double x = in[1], t = tanh(log1p(exp(x)));
  (void)y, (void)a0, (void)a1;
  return fabs(in[0]) * (fabs(t) + fabs(x) * sigmoid(x) * (1 + t * t));
}

static const struct budget { uint32_t op; double k; condition_fn *s; } budgets[] = {
  {QN_OP_ADD, 1, s_result}, {QN_OP_SUB, 1, s_result}, {QN_OP_MUL, 1, s_result}, {QN_OP_DIV, 1, s_result},
  {QN_OP_SQRT, 1, s_result}, {QN_OP_RSQRT, 4, s_result}, {QN_OP_RECIPROCAL, 1, s_result}, {QN_OP_POW, 32, s_result},
  {QN_OP_EXP, 6, s_result}, {QN_OP_LOG, 6, s_result}, {QN_OP_ERF, 8, s_result}, {QN_OP_SIN, 8, s_result},
  {QN_OP_COS, 8, s_result},
  {QN_OP_LEAKY_RELU, 2, s_result}, {QN_OP_ELU, 10, s_result}, {QN_OP_GELU, 12, s_half_x}, {QN_OP_GELU_TANH, 16, s_half_x},
  {QN_OP_SILU, 10, s_scaled}, {QN_OP_SIGMOID, 8, s_result}, {QN_OP_TANH, 10, s_result}, {QN_OP_SOFTPLUS, 10, s_scaled},
  {QN_OP_HARDSWISH, 4, s_hardswish}, {QN_OP_MISH, 16, s_result}, {QN_OP_CLIP, 1, s_result},
  {QN_OP_LEAKY_RELU_BACKWARD, 2, s_result}, {QN_OP_ELU_BACKWARD, 10, s_result}, {QN_OP_GELU_BACKWARD, 16, s_gelu_backward},
  {QN_OP_GELU_TANH_BACKWARD, 16, s_gelu_tanh_backward}, {QN_OP_SILU_BACKWARD, 16, s_silu_backward},
  {QN_OP_SIGMOID_BACKWARD, 16, s_sigmoid_backward}, {QN_OP_TANH_BACKWARD, 20, s_tanh_backward},
  {QN_OP_SOFTPLUS_BACKWARD, 10, s_softplus_backward}, {QN_OP_HARDSWISH_BACKWARD, 4, s_hardswish_backward},
  {QN_OP_MISH_BACKWARD, 24, s_mish_backward},
#define QN_FUNCTION(OP, half_ulps, oracle, fast) {QN_OP_##OP, half_ulps, s_result},
#include <quern/functions.def>
};

/* Ops that must be correctly rounded: their one rounding in f32 (or f64), followed by a rounding to 16 bits, gives the same as
 * a single rounding (24 >= 2*11 + 2). Only if input and computing type are equally wide. */
static bool correctly_rounded(uint32_t op)
{
  return op == QN_OP_ADD || op == QN_OP_SUB || op == QN_OP_MUL || op == QN_OP_DIV || op == QN_OP_SQRT;
}

/* Element i of an operand that broadcasts against y. */
static int64_t operand_index(const qn_value *operand, const qn_value *y, int64_t i)
{
  int64_t at = 0, step = 1;
  for (int k = y->rank - 1; k >= 0 && operand->rank; k--) {
    int64_t index = i % y->dim[k];
    i /= y->dim[k];
    at += operand->dim[k] == 1 ? 0 : index * step;
    step *= operand->dim[k];
  }
  return at;
}

/* Runs the twin with some inputs moved by `step` times their e; adds the largest change to `change`, or raises it. */
static void moved(struct qc_node *n, unsigned which, const double *step, double *change, double *scratch)
{
  double *in[64] = {0};
  for (int i = 0; i < n->n_in; i++) {
    struct qc_value *v = n->in[i];
    if (!v->y || !(which >> i & 1))
      continue;
    in[i] = qc_alloc((size_t)v->n * sizeof **in + 8);
    for (int64_t k = 0; k < v->n; k++)
      in[i][k] = v->y[k] + step[i] * v->e[k];
  }
  void *out[QN_MAX_ROLES] = {scratch};
  qc_twin_run(n->twin, (const void *const *)in, out);
  for (int64_t k = 0; k < n->out[0]->n; k++) {
    double difference = fabs(scratch[k] - n->out[0]->y[k]);
    if (difference > change[k])
      change[k] = difference;
  }
  for (int i = 0; i < n->n_in; i++)
    free(in[i]);
}

/* The sum of the changes with each inexact operand moved alone; at least the worst corner of all of them. Sound if the function is
 * monotone between the sampled points, as these are over such short intervals; at a jump both sides are sampled. */
static void add_inexact_inputs(struct qc_node *n)
{
  static const double steps[] = {-1, -0.5, 0.5, 1};
  int64_t size = n->out[0]->n;
  double *sum = qc_alloc((size_t)size * sizeof *sum + 8), *one = qc_alloc((size_t)size * sizeof *one + 8);
  double *scratch = qc_alloc((size_t)size * sizeof *scratch + 8), step[64];
  unsigned inexact = 0;
  for (int i = 0; i < n->n_in; i++) {
    if (n->in[i]->exact || !n->in[i]->y)
      continue;
    inexact |= 1u << i;
    memset(one, 0, (size_t)size * sizeof *one);
    for (int k = 0; k < 4; k++) {
      step[i] = steps[k];
      moved(n, 1u << i, step, one, scratch);
    }
    for (int64_t k = 0; k < size; k++)
      sum[k] += one[k];
  }
  if (inexact & (inexact - 1)) {
    for (unsigned corner = 0; corner < 1u << n->n_in; corner++) {
      if (corner & ~inexact)
        continue;
      for (int i = 0; i < n->n_in; i++)
        step[i] = corner >> i & 1 ? 1 : -1;
      moved(n, inexact, step, sum, scratch);
    }
  }
  for (int64_t k = 0; k < size; k++)
    n->out[0]->e[k] += sum[k];
  free(sum);
  free(one);
  free(scratch);
}

/* A gradient dy f'(x) with infinite dy is Inf, or NaN if f'(x) is 0; if f'(x) is within its computing error of 0,
 * no single value is right. f' is found by the twin with dy = 1. */
static void free_undecided(struct qc_node *n, const struct budget *b, double a0, double a1)
{
  struct qc_value *y = n->out[0], *dy = n->in[0];
  bool any = false;
  for (int64_t i = 0; i < dy->n; i++)
    any |= isinf(dy->y[i]) != 0;
  if (!any)
    return;
  double *ones = qc_alloc((size_t)dy->n * sizeof *ones + 8), *slope = qc_alloc((size_t)y->n * sizeof *slope + 8);
  for (int64_t i = 0; i < dy->n; i++)
    ones[i] = 1;
  const void *in[64] = {ones};
  void *out[1] = {slope};
  qc_twin_run(n->twin, in, out);
  for (int64_t i = 0; i < y->n; i++) {
    double operand[2] = {1, n->in[1]->y[operand_index(&n->in[1]->q, &y->q, i)]};
    double e = b->k * fmax(qc_unit(n->compute) * b->s(operand, slope[i], a0, a1), qc_half_ulp(n->compute, 0));
    if (isinf(dy->y[operand_index(&dy->q, &y->q, i)]) && fabs(slope[i]) <= e)
      y->e[i] = QC_ANY;
  }
  free(ones);
  free(slope);
}

void qc_bound_pointwise(struct qc_node *n, const struct qc_numerics *k)
{
  struct qc_value *y = n->out[0];
  const struct budget *b = NULL;
  for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++)
    if (budgets[i].op == n->op->kind)
      b = &budgets[i];
  if (n->op->kind == QN_OP_CLIP) {      /* inexact only if a limit is not representable in the computing type */
    const qn_pointwise *a = n->attr;
    if (n->compute == QN_F64 || ((float)a->alpha == a->alpha && (float)a->beta == a->beta))
      b = NULL;
  }
  bool rounded_once = correctly_rounded(n->op->kind) && n->compute != QN_F64;
  for (int i = 0; i < n->n_in; i++) {
    const struct qc_value *v = n->in[i];
    bool narrow = v->q.rank == 0 && (!v->y || y->q.dtype == n->compute || qc_round(y->q.dtype, v->y[0]) == v->y[0]);
    rounded_once &= narrow || v->q.dtype == y->q.dtype;
  }
  double u = qc_unit(n->compute), a0 = 0, a1 = 0;
  if (n->op->attr_bytes) {
    a0 = *(const double *)(const void *)((const char *)n->attr + n->op->attr[0].offset);
    a1 = n->op->n_attrs > 1 ? *(const double *)(const void *)((const char *)n->attr + n->op->attr[1].offset) : 0;
  }
  bool exact = !b || (rounded_once && qc_inputs_exact(n));
  for (int64_t i = 0; !exact && i < y->n; i++) {
    double in[4] = {0};
    for (int k = 0; k < n->n_in && k < 4; k++)
      if (n->in[k]->y)
        in[k] = n->in[k]->y[operand_index(&n->in[k]->q, &y->q, i)];
    double s = b->s(in, y->y[i], a0, a1);
    y->e[i] = b->k * fmax(u * s, qc_half_ulp(n->compute, 0));
    if (isnan(y->e[i]))
      y->e[i] = b->k * qc_half_ulp(n->compute, y->y[i]);
  }
  if (!qc_inputs_exact(n))
    add_inexact_inputs(n);
  else if (b && k->special && n->op->forward && n->in[0]->y && n->n_in == 2)
    free_undecided(n, b, a0, a1);
}
