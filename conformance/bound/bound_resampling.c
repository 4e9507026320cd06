/* bound_resampling.c -- resample and its gradient: sums of taps times weights.
 *
 *   e = (c(n) + 3 d u) S + d v T + n times the least subnormal, over d spatial dims and n taps
 *   S = sum |w x|, T = sum |x| over the taps; v = 2u (linear), 16u (cubic, times 4/3 |coefficient| if that is above 1): the
 *   error of a weight (1 - t is as exact as t)
 * antialias: the same, with the widened kernel's taps and weights.
 * nearest is exact. The weights are recomputed here, in double. */
#include <math.h>
#include <stdlib.h>
#include "conform.h"

/* The taps of point i of y among x elements, in dim d: number, positions, weights. The coordinate is a fraction, so that a weight of 0 is
 * exact. */
static int taps(const qn_resampling *a, int d, int64_t i, int64_t x, int64_t y, int64_t *place, double *weight)
{
  const int64_t across = a->up[d] ? a->down[d] : x, by = a->up[d] ? a->up[d] : y;         /* X/P */
  double over = (double)(i * across), under = (double)by;
  int n = a->mode == QN_RESAMPLE_LINEAR ? 2 : 4;
  if (a->grid == QN_GRID_HALF_PIXEL)
    over = 2 * over + (double)(across - by), under *= 2;
  else if (a->grid == QN_GRID_ALIGN_CORNERS)
    over = y > 1 ? (double)(i * (x - 1)) : 0, under = y > 1 ? (double)y - 1 : 1;
  double below = floor(over / under), t = (over - below * under) / under;
  for (int k = 0; k < n; k++) {
    double z = fabs(t - (k - (n == 4)));
    place[k] = (int64_t)fmin(fmax(below + k - (n == 4), 0), (double)x - 1);
    const double c = a->coefficient;
    weight[k] = n == 2 ? 1 - z : fabs(z <= 1 ? ((c + 2) * z - (c + 3)) * z * z + 1 : ((c * z - 5 * c) * z + 8 * c) * z - 4 * c);
  }
  return n;
}

/* The same with antialias: any number of taps. */
static int wide_taps(const qn_resampling *a, int d, int64_t i, int64_t x, int64_t y, int64_t *place, double *weight)
{
  const int64_t across = a->up[d] ? a->down[d] : x, by = a->up[d] ? a->up[d] : y, wider = across > by ? across : by;
  int n = 0;
  double total = 0, c = a->coefficient;
  for (int64_t j = 0; j < x; j++) {
    double z = fabs((double)((2 * j + 1) * by - (2 * i + 1) * across)) / (double)(2 * wider);
    double w = a->mode == QN_RESAMPLE_LINEAR ? fmax(0, 1 - z) : z <= 1 ? ((c + 2) * z - (c + 3)) * z * z + 1
             : z < 2 ? ((c * z - 5 * c) * z + 8 * c) * z - 4 * c : 0;
    if (w == 0)
      continue;
    place[n] = j;
    weight[n++] = w;
    total += w;
  }
  for (int k = 0; k < n; k++)
    weight[k] = fabs(weight[k] / total);
  return n;
}

/* Adds v w to S, v to T and 1 to the count, for each tap of y's elements. */
struct sums { double *s, *t, *n; };

static void each_tap(const struct qc_node *node, bool back, struct sums *to)
{
  const qn_value *x = back ? &node->out[0]->q : &node->in[0]->q, *y = back ? &node->in[0]->q : &node->out[0]->q;
  const double *in = node->in[0]->y;
  int spatial = x->rank - 2;
  const qn_resampling *a = node->attr;
  int64_t *place[3];
  double *weight[3];
  for (int d = 0; d < 3; d++) {
    size_t most = d < spatial && x->dim[2 + d] > 4 ? (size_t)x->dim[2 + d] : 4;
    place[d] = qc_alloc(most * sizeof *place[d]);
    weight[d] = qc_alloc(most * sizeof *weight[d]);
  }
  for (int64_t i = 0; i < qc_elements(y); i++) {
    int64_t rest = i, plane = 1;
    int n[3] = {1, 1, 1};
    for (int d = spatial - 1; d >= 0; d--) {
      n[d] = (a->antialias ? wide_taps : taps)(a, d, rest % y->dim[2 + d], x->dim[2 + d], y->dim[2 + d], place[d], weight[d]);
      rest /= y->dim[2 + d];
      plane *= x->dim[2 + d];
    }
    for (int k = 0; k < n[0] * n[1] * n[2]; k++) {
      int tap[3] = {k / (n[1] * n[2]), k / n[2] % n[1], k % n[2]};
      int64_t from = 0;
      double w = 1;
      for (int d = 0; d < spatial; d++) {
        from = from * x->dim[2 + d] + place[d][tap[d]];
        w *= weight[d][tap[d]];
      }
      from += rest * plane;
      if (w == 0)
        continue;                       /* not read */
      double v = fabs(in[back ? i : from]) + node->in[0]->e[back ? i : from];
      int64_t at = back ? from : i;
      to->s[at] += v * w;
      to->t[at] += v;
      to->n[at]++;
    }
  }
  for (int d = 0; d < 3; d++) {
    free(place[d]);
    free(weight[d]);
  }
}

void qc_bound_resampling(struct qc_node *n, const struct qc_numerics *k)
{
  const qn_resampling *a = n->attr;
  struct qc_value *y = n->out[0];
  bool back = n->op->forward != 0;
  double u = qc_unit(n->compute), d = y->q.rank - 2;
  double v = a->mode == QN_RESAMPLE_LINEAR ? 2 * u : 16 * u * fmax(1, fabs(a->coefficient) / 0.75);
  size_t bytes = (size_t)y->n * sizeof(double) + 8;
  if (a->mode == QN_RESAMPLE_NEAREST) {
    if (back)
      qc_bound_counted_sum(n, k);
    else
      qc_bound_moved(n, k);
    return;
  }
  struct sums to = {qc_alloc(bytes), qc_alloc(bytes), qc_alloc(bytes)};
  each_tap(n, back, &to);
  for (int64_t i = 0; i < y->n; i++)
    y->e[i] = qc_overflows(n->compute, fmax(to.s[i], to.t[i])) ? QC_ANY
            : (qc_sum_error(k, n->compute, to.n[i]) + 3 * d * u) * to.s[i] + d * v * to.t[i]
              + to.n[i] * qc_half_ulp(n->compute, 0);
  free(to.s);
  free(to.t);
  free(to.n);
}
