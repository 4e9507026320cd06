/* bound_random.c -- random numbers and dropout. u: unit roundoff of the computing type.
 *
 *   uniform, bernoulli   exact, and rounded once
 *   normal               e = 12u |y - mean| + 2u |mean|: within |y - mean| = deviation r cos t the logarithm has 2u, of which the
 *                        root leaves half, the root 1u, the cosine of an exact angle up to 4u, deviation and two products 1u each
 *   dropout              e = s (e_x + 2u |x|), s = 1 / (1 - p); exact where s is a power of two */
#include <math.h>
#include <stdlib.h>
#include "conform.h"

static void normal(struct qc_node *n)
{
  struct qc_value *y = n->out[0];
  double u = qc_unit(n->compute), mean = ((const qn_gauss *)n->attr)->mean;
  for (int64_t i = 0; i < y->n; i++)
    y->e[i] = 12 * u * fabs(y->y[i] - mean) + 2 * u * fabs(mean) + qc_half_ulp(n->compute, 0);
}

static void scaled(struct qc_node *n)
{
  struct qc_value *x = n->in[0], *y = n->out[0];
  double u = qc_unit(n->compute), scale = 1 / (1 - ((const qn_chance *)n->attr)->p);
  int exponent;
  bool power = isfinite(scale) && frexp(scale, &exponent) == 0.5;
  for (int64_t i = 0; i < y->n; i++)
    y->e[i] = y->y[i] == 0 && x->e[i] == 0 ? 0
            : isfinite(y->y[i]) ? scale * x->e[i] + (power ? 0 : 2 * u * fabs(y->y[i]) + qc_half_ulp(n->compute, 0)) : 0;
}

void qc_bound_random(struct qc_node *n, const struct qc_numerics *k)
{
  (void)k;
  switch (n->op->kind) {
  case QN_OP_RNG_NORMAL: normal(n); break;
  case QN_OP_DROPOUT: case QN_OP_DROPOUT_BACKWARD: scaled(n); break;
  }
}
