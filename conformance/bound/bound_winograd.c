/* bound_winograd.c -- Winograd's own condition sum, for 2-D convolutions of stride 1 and tiles F(m x m, r x r), a = m + r - 1 <= 8:
 *
 *   S_w = |A^T| [ sum_c (|G| |g| |G^T|) o (|B^T| |d| |B|) ] |A|       for each tile d and filter g
 *
 * and the same for the gradient by the filters, over tiles d of x and m x m tiles of dy in place of g. It exceeds the plain S
 * by a factor of up to 7 (F(2,3)), 256 (F(4,3)), 509 (F(6,3)). Points 0, +-1, +-2, +-1/2, infinity; tiles start at the output's (dy's)
 * first row and column. An Inf or NaN counts as 0: elements that it does not reach by the formula must not be affected by it.
 * For other shapes the plain S times the worst growth serves. */
#include <math.h>
#include <stdlib.h>
#include "conform.h"

enum { MOST = 8 };
static const double point[MOST - 1] = {0, 1, -1, 2, -2, .5, -.5};

/* Absolute values. coefficients: B^T, a x a. weight: 1 over the product of a point's distances to the others. */
struct transform { int m, r, a; double coefficients[MOST * MOST], weight[MOST]; };

static struct transform transform_of(int m, int r)
{
  struct transform t = {.m = m, .r = r, .a = m + r - 1};
  for (int row = 0; row < t.a; row++) {
    double c[MOST] = {1};               /* of the product of (x - point) over all points but the row's own; for the last row over all */
    int degree = 0;
    t.weight[row] = 1;
    for (int k = 0; k < t.a - 1; k++) {
      if (k == row)
        continue;
      for (int i = ++degree; i >= 0; i--)
        c[i] = (i ? c[i - 1] : 0) - point[k] * (i < degree ? c[i] : 0);
      if (row < t.a - 1)
        t.weight[row] /= fabs(point[row] - point[k]);
    }
    for (int i = 0; i < t.a; i++)
      t.coefficients[row * t.a + i] = fabs(c[i]);
  }
  return t;
}

/* a x n: maps a polynomial's coefficients to its values at the points; transposed: n x a. */
static void values(const struct transform *t, int n, bool weighted, bool turned, double *out)
{
  for (int row = 0; row < t->a; row++)
    for (int i = 0; i < n; i++) {
      double v = row == t->a - 1 ? i == n - 1 : pow(fabs(point[row]), i);
      out[turned ? i * t->a + row : row * n + i] = v * (weighted ? t->weight[row] : 1);
    }
}

/* out (p x p) = l (p x n) in (n x n) l^T */
static void sandwich(const double *l, int p, int n, const double *in, double *out)
{
  double half[MOST * MOST];
  for (int i = 0; i < p; i++)
    for (int j = 0; j < n; j++) {
      half[i * n + j] = 0;
      for (int k = 0; k < n; k++)
        half[i * n + j] += l[i * n + k] * in[k * n + j];
    }
  for (int i = 0; i < p; i++)
    for (int j = 0; j < p; j++) {
      out[i * p + j] = 0;
      for (int k = 0; k < n; k++)
        out[i * p + j] += half[i * n + k] * l[j * n + k];
    }
}

/* size x size pixels from (h0, w0) on of a plane */
static void fetch(const struct qc_value *v, int64_t plane, int64_t h0, int64_t w0, int size, double *out)
{
  int64_t h = v->q.dim[2], w = v->q.dim[3];
  for (int i = 0; i < size; i++)
    for (int j = 0; j < size; j++) {
      int64_t row = h0 + i, col = w0 + j;
      double x = row >= 0 && row < h && col >= 0 && col < w ? v->y[(plane * h + row) * w + col] : 0;
      out[i * size + j] = isfinite(x) ? fabs(x) : 0;
    }
}

/* y from x, or dx from dy with the filters rotated. */
static void sum_outputs(struct qc_node *n, const struct transform *t, bool back, int64_t groups, int64_t ph, int64_t pw, double *s)
{
  struct qc_value *x = n->in[0], *w = n->in[1], *y = n->out[0];
  double g_of[MOST * MOST], at[MOST * MOST];
  values(t, t->r, true, false, g_of);
  values(t, t->m, false, true, at);
  int64_t c_in = x->q.dim[1] / groups, c_out = y->q.dim[1] / groups, oh = y->q.dim[2], ow = y->q.dim[3];
  for (int64_t image = 0; image < y->q.dim[0]; image++)
    for (int64_t k = 0; k < y->q.dim[1]; k++)
      for (int64_t h0 = 0; h0 < oh; h0 += t->m)
        for (int64_t w0 = 0; w0 < ow; w0 += t->m) {
          double sum[MOST * MOST] = {0}, g[MOST * MOST], d[MOST * MOST], tg[MOST * MOST], td[MOST * MOST];
          for (int64_t c = 0; c < c_in; c++) {
            int64_t channel = k / c_out * c_in + c;
            fetch(w, back ? channel * c_out + k % c_out : k * c_in + c, 0, 0, t->r, g);
            for (int i = 0, last = t->r * t->r - 1; back && i < last - i; i++) {
              double swap = g[i];
              g[i] = g[last - i];
              g[last - i] = swap;
            }
            fetch(x, image * x->q.dim[1] + channel, h0 - ph, w0 - pw, t->a, d);
            sandwich(g_of, t->a, t->r, g, tg);
            sandwich(t->coefficients, t->a, t->a, d, td);
            for (int i = 0; i < t->a * t->a; i++)
              sum[i] += tg[i] * td[i];
          }
          sandwich(at, t->m, t->a, sum, d);
          for (int i = 0; i < t->m && h0 + i < oh; i++)
            for (int j = 0; j < t->m && w0 + j < ow; j++)
              s[((image * y->q.dim[1] + k) * oh + h0 + i) * ow + w0 + j] = d[i * t->m + j];
        }
}

/* dw by x and dy */
static void sum_gradient(struct qc_node *n, const struct transform *t, int64_t groups, int64_t ph, int64_t pw, double *s)
{
  struct qc_value *x = n->in[0], *y = n->in[1], *w = n->out[0];
  double m_of[MOST * MOST], at[MOST * MOST];
  values(t, t->m, true, false, m_of);
  values(t, t->r, false, true, at);
  int64_t c_in = w->q.dim[1], c_out = y->q.dim[1] / groups;
  for (int64_t k = 0; k < y->q.dim[1]; k++)
    for (int64_t c = 0; c < c_in; c++) {
      double sum[MOST * MOST] = {0}, g[MOST * MOST], d[MOST * MOST], tg[MOST * MOST], td[MOST * MOST];
      for (int64_t image = 0; image < x->q.dim[0]; image++)
        for (int64_t h0 = 0; h0 < y->q.dim[2]; h0 += t->m)
          for (int64_t w0 = 0; w0 < y->q.dim[3]; w0 += t->m) {
            fetch(y, image * y->q.dim[1] + k, h0, w0, t->m, g);
            fetch(x, image * x->q.dim[1] + k / c_out * c_in + c, h0 - ph, w0 - pw, t->a, d);
            sandwich(m_of, t->a, t->m, g, tg);
            sandwich(t->coefficients, t->a, t->a, d, td);
            for (int i = 0; i < t->a * t->a; i++)
              sum[i] += tg[i] * td[i];
          }
      sandwich(at, t->r, t->a, sum, s + (k * c_in + c) * t->r * t->r);
    }
}

double *qc_winograd_sum(struct qc_node *n, int tile, int filter)
{
  bool back = n->op->kind == QN_OP_CONV_BACKWARD_DATA, gradient = n->op->kind == QN_OP_CONV_BACKWARD_FILTER;
  struct qc_value *y = n->out[0], *w = gradient ? y : n->in[1];
  double *s = qc_alloc((size_t)y->n * sizeof *s);
  int64_t pad[2];
  bool fits = tile >= 2 && filter >= 2 && tile + filter - 1 <= MOST && n->in[0]->q.rank == 4;
  for (int d = 0; d < 2; d++) {
    fits = fits && w->q.dim[2 + d] == filter && qc_attr_int(n->op, n->attr, "stride", d, 0, 1) == 1 &&
           qc_attr_int(n->op, n->attr, "dilation", d, 0, 1) == 1;
    pad[d] = qc_attr_int(n->op, n->attr, "pad", d, 0, 0);
    pad[d] = back ? filter - 1 - pad[d] : pad[d];
  }
  if (!fits) {
    for (int64_t i = 0; i < y->n; i++)
      s[i] = 509 * n->s[i];
    return s;
  }
  struct transform t = transform_of(tile, filter);
  int64_t groups = qc_attr_int(n->op, n->attr, "groups", 0, 0, 1);
  if (gradient)
    sum_gradient(n, &t, groups, pad[0], pad[1], s);
  else
    sum_outputs(n, &t, back, groups, pad[0], pad[1], s);
  return s;
}
